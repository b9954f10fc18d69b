"""Is a judge, or a panel, good enough? The verdict, what speaks for it, and the sentences that say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.agreement.measures import PANEL, PEOPLE, fitted
from jaxeval.arrays import Float
from jaxeval.data.battles import Battles
from jaxeval.data.labelled_verdicts import LabelledVerdicts
from jaxeval.data.roles import JUDGES
from jaxeval.lazy_names import pd
from jaxeval.statistics import special
from jaxeval.statistics.clusters import FEW_CLUSTERS
from jaxeval.wording import counted, visible_line

Verdict = Literal["yes", "no", "not known"]
#: Value, lower and upper end of each measure by its name and judge.
Ends = dict[tuple[str, Any], Float]
#: A judge is good enough if it has at least this share of people's agreement beyond chance.
SHARE = 0.8
#: With a single label an item, a judge is no use if its kappa is below this.
SLIGHT = 0.2
_PSEUDO = 2  # items that agree with one side only, one each way: an interval of no difference has a length


class Beside(NamedTuple):
    """A judge's agreement with people less that of people with each other, where both are known."""

    value: Float
    lower: Float
    upper: Float
    people: Float  # agreement of people with each other on the same items


def beside_people(sums: Float, level: float) -> Beside:
    """Return differences of agreement with Student's intervals over items.

    Two items are added, one on which only the judge agrees and one on which only people do (Bonett and Price, Adjusted
    Wald confidence interval for a difference of binomial proportions based on paired data, Journal of Educational and
    Behavioral Statistics, 2012), so that equal answers on few items are not taken for certain. The lengths of the
    intervals are then right for few items, too. The ``sums`` (..., I, 3) are of each item: its weight, the judge's
    agreement and people's, both times the weight.
    """
    n, agreed, other = np.moveaxis(sums, -1, 0)
    there = n > 0
    count, total = there.sum(-1), n.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
        value, people = (agreed - other).sum(-1) / total, other.sum(-1) / total
        centre = (agreed - other).sum(-1) / (total + _PSEUDO * mean)
        rest = ((agreed - other - centre[..., None] * n) ** 2).sum(-1) + _PSEUDO * mean**2 * (1 + centre**2)
        error = np.sqrt(rest * (count + _PSEUDO) / (count + _PSEUDO - 1)) / (total + _PSEUDO * mean)
        half = special.stdtrit(np.maximum(count + _PSEUDO - 1, 1), (1 + level) / 2) * error
    return Beside(value, np.maximum(centre - half, -1), np.minimum(centre + half, 1), people)


def verdict_beside(beside: Beside, chance: Float, kappas: Float, n_items: Float) -> NDArray[np.str_]:
    """Return verdicts (...) of judges beside people.

    "yes": with confidence the judge has 80 % of people's agreement beyond chance, and both it and people agree beyond
    chance. "no": it agrees with people less often than people do. A judge as good as a person is called "no" in at
    most 2.5 % of data sets at the level .95, and one that guesses is practically never called "yes".

    They rest on the agreement of people that ``chance`` (...) explains, on the lower ends (..., 2) of the intervals of
    kappa, of the judge and of people, and on the number (...) of items with labels of two people.
    """
    with np.errstate(invalid="ignore"):
        margin = (1 - SHARE) * (beside.people - chance)
        good = (beside.lower > -margin) & (margin > 0) & (kappas > 0).all(-1) & (n_items >= FEW_CLUSTERS)
        return np.select([beside.upper < 0, good], ["no", "yes"], "not known")


def items_needed(beside: Beside, chance: float, n_items: int) -> int | None:
    """Estimate how many items would tell whether the judge is good enough; None where the difference is at the edge."""
    margin = (1 - SHARE) * float(beside.people - chance)
    half = (float(beside.upper) - float(beside.lower)) / 2
    gap = float(np.maximum(beside.value + margin, -beside.value))
    if not (gap > 0 and half > 0 and margin > 0):
        return None
    return max(int(np.ceil(n_items * (half / gap) ** 2)), FEW_CLUSTERS)


class GoodEnough(NamedTuple):
    """Whether a judge is good enough, and what speaks for it."""

    verdict: Verdict
    beside: Beside | None  # None without labels of two people
    items_needed: int | None  # about how many would tell; None if it is told, or nothing would tell


def answer_of(
    common: Float, chance: float, kappa: tuple[float, float], of_people: float, level: float,
    wider: tuple[float, float] = (np.nan, np.nan),
) -> GoodEnough:  # fmt: skip
    """Return whether a judge is good enough, by (I, 3) sums of items as in `beside_people`.

    ``chance`` is the agreement of people that it explains, ``kappa`` both ends of the judge's, ``of_people`` the lower
    end of people's, and ``wider`` the ends of the judge beside people, where more than items was sampled.
    """
    n_items = int((common[:, 0] > 0).sum())
    if n_items == 0:
        useless = common.shape[0] >= FEW_CLUSTERS and kappa[0] <= 0 and kappa[1] < SLIGHT
        return GoodEnough("no" if useless else "not known", None, None)
    beside = beside_people(common, level)
    beside = beside._replace(lower=np.fmin(beside.lower, wider[0]), upper=np.fmax(beside.upper, wider[1]))
    ends = np.nan_to_num([kappa[0], of_people], nan=-1.0)
    verdict = str(verdict_beside(beside, np.asarray(chance), ends, np.asarray(n_items)))
    needed = items_needed(beside, chance, n_items) if verdict == "not known" else None
    more = None if needed is None or needed <= n_items else needed
    return GoodEnough(verdict if verdict in ("yes", "no") else "not known", beside, more)  # type: ignore[arg-type]


_MOST = 0.95  # of what people decide: a judge that decides less is good enough only there
_WIDE = 3.0  # points: shorter intervals have a decimal
_UNLIKE = 0.05  # shares of ties that differ by less are not worth a word


def _further(battles: LabelledVerdicts, ends: Ends, name: Any, place: int, answer: GoodEnough) -> list[str]:
    verdict = battles.panel if name == PANEL else battles.verdict[:, place]
    return [
        *_reversed(ends, name),
        *_ties(battles, verdict),
        *_orders(battles, ends, name),
        *_ranking(battles, verdict),
        *_next(battles, ends, name, answer),
    ]


def _reversed(ends: Ends, name: Any) -> list[str]:
    kappa = ends.get(("kappa", name))
    if kappa is None or not kappa[2] < 0:
        return []
    return [f"that is less often than by chance (kappa {_with_ends(kappa, 2)})"]


def _with_ends(measure: Float, digits: int) -> str:
    """Return a value with its interval, which it lacks where all draws are alike: one rater has one label only."""
    value, *ends = (f"{x:.{digits}f}" for x in measure)
    return value if np.isnan(measure).any() else f"{value} [{', '.join(ends)}]"


def _ties(battles: LabelledVerdicts, verdict: Float) -> list[str]:
    """Say the shares of ties, or of answers that were not attempted, where the judge and people differ."""
    both = ~np.isnan(verdict) & ~np.isnan(battles.human).all(1)
    if not battles.scale.has_middle or not both.any():
        return []
    labelled = ~np.isnan(battles.human[both])
    by_judge = float((verdict[both] == 0.5).mean())
    people = float(((battles.human[both] == 0.5).sum(1) / labelled.sum(1)).mean())
    if abs(by_judge - people) < _UNLIKE:
        return []
    word = "neither right nor wrong" if battles.scale.kind == "answers" else "a tie"
    return [f"it says {word} on {100 * by_judge:.0f}%, people on {100 * people:.0f}%"]


def _orders(battles: LabelledVerdicts, ends: Ends, name: Any) -> list[str]:
    judges = battles.judges if name == PANEL else [name]
    known = [most for most in judges if ("flips", most) in ends]
    if known:
        most = max(known, key=lambda one: ends["flips", one][0])
        value, lower, upper = 100 * ends["flips", most]
        who = f"{visible_line(most)} names" if name == PANEL else "it names"
        return [f"{who} another side in {value:.0f}% [{lower:.0f}, {upper:.0f}] when the order is swapped"]
    if battles.scale.kind in ("pairs", "sides"):
        return ["no order shown is known, so that a preference for a position is hidden"]
    return []


def _ranking(battles: LabelledVerdicts, verdict: Float) -> list[str]:
    """Say how far the judge's ranking of models is people's, on the same battles or answers."""
    people, models = battles.people, battles.models
    both = ~np.isnan(verdict) & ~np.isnan(people)
    if battles.scale.kind == "pairs":
        used = np.union1d(battles.model_a[both], battles.model_b[both])
        if len(used) < 2:
            return []
        sides = {"model_a": models[battles.model_a[both]], "model_b": models[battles.model_b[both]]}
        ratings = [
            fitted(Battles.from_pandas(pd.DataFrame({**sides, "target": labels[both]}), target="target"))
            .logits.reindex(models[used]).to_numpy()
            for labels in (people, verdict)
        ]  # fmt: skip
    elif battles.answers_of is not None:
        used, code = np.unique(battles.answers_of[both], return_inverse=True)
        ratings = [np.bincount(code, labels[both]) / np.bincount(code) for labels in (people, verdict)]
    else:
        return []
    if len(used) < 2:
        return []
    signs = [np.sign(np.round(labels[:, None] - labels, 9))[np.triu_indices(len(used), 1)] for labels in ratings]
    n, swapped = len(signs[0]), int((signs[0] * signs[1] < 0).sum())
    first = [models[used[int(np.argmax(labels))]] for labels in ratings]
    lead = "the same first one"
    if first[0] != first[1]:
        lead = f"{visible_line(first[1])} first, where people have {visible_line(first[0])}"
    who = f"its ranking of {counted(len(used), 'model')}"
    pairs = f"{swapped:,} of {counted(n, 'pair')} the other way round than people's"
    return [f"{who} has {pairs}, and {lead} (errors of neither ranking are counted)"]


def _next(battles: LabelledVerdicts, ends: Ends, name: Any, answer: GoodEnough) -> list[str]:
    judge = battles.judges[0] if name == PANEL else name
    if _reversed(ends, name):
        return ["next: look whether its verdicts are coded in reverse; else it errs systematically"]
    if answer.beside is None:
        kappa = ends.get(("kappa", name))
        evidence = [] if kappa is None else [f"kappa {_with_ends(kappa, 2)}"]
        # A rater whose name says no judge may be a person who stands for one.
        unnamed = name != PANEL and not any(word in str(name).casefold() for word in JUDGES)
        beside = f" beside {visible_line(name)}" if unnamed else ""
        if answer.verdict == "not known":
            evidence.append(f"no item has labels of two people{beside}, so that nobody knows how far people agree")
        more = f"have a second person{beside} label some of the items, then run jaxeval agreement again"
        if unnamed:
            more += f"; if {visible_line(name)} is a person too, two people agree so far: name your judge by --judges"
    elif answer.items_needed is not None:
        evidence, needed = [], f"about {answer.items_needed:,} items with labels of two people"
        more = f"{needed} would tell: jaxeval agreement FILE"
    else:
        evidence, more = [], "jaxeval agreement FILE with more items"
    if answer.verdict == "not known":
        return [*evidence, f"next: {more}"]
    if battles.scale.kind == "answers":
        column = visible_line(battles.verdict_column or judge)
        line = f"jaxeval judge --calibration FILE --test ANSWERS --judgment {column}"
        return [*evidence, f"next: {line}, which corrects its errors"]
    if battles.scale.kind == "pairs":
        line = "jaxeval leaderboard VOTES --judged VERDICTS --item ITEM"
        return [*evidence, f"next: {line}, which corrects its errors by people's votes"]
    if answer.verdict == "yes":
        return [*evidence, "next: jaxeval panel FILE or jaxeval leaderboard FILE with the models that it compares"]
    return [*evidence, "next: jaxeval agreement FILE for another judge or prompt"]


def unit_of(battles: LabelledVerdicts) -> str:
    """Return the word for what is labelled."""
    return {"pairs": "battle", "sides": "item", "answers": "answer"}.get(battles.scale.kind, "item")


def sentences_of(
    battles: LabelledVerdicts, decided: Mapping[Any, int], ends: Ends, answers: Mapping[Any, GoodEnough], common: Float
) -> list[str]:
    """Say what a manager can use: whether panel or judge is good enough, each judge, and what a panel is worth.

    Each judge, and the panel, decides so many battles, has an answer, and ``common`` (K, 2, 3) sums over the battles
    that it and people, or the panel, decide.
    """
    several, unit = len(battles.judges) > 1, unit_of(battles)
    first = PANEL if several else battles.judges[0]
    order = sorted(battles.judges, key=lambda name: -ends.get(("agreement", name), [-np.inf])[0])
    place = {name: k for k, name in enumerate([*battles.judges, PANEL])}
    sentences = []
    for name in [first, *order] if several else [first]:
        who = f"the panel of {len(battles.judges):,} judges (what most say)" if name == PANEL else visible_line(name)
        if ("agreement", name) not in ends:
            sentence = f"{who} and people never chose a side on the same {unit}: their agreement is not known"
            sentences.append(f"Good enough? Not known: {sentence}" if name == first else sentence)
            continue
        value, lower, upper = 100 * ends["agreement", name]
        digits = 0 if upper - lower >= _WIDE else 1
        percent = f"{value:.{digits}f}% [{lower:.{digits}f}, {upper:.{digits}f}]"
        decides = _decides(battles, decided[name]) if name == PANEL else ""
        beside = _beside_people(battles, ends, name, common[place[name], 0], in_full=name == first)
        n = counted(decided[name], f"{'decided ' if battles.scale.has_middle else ''}{unit}")
        sentence = f"{who} agrees with people on {percent} of {n}{decides}{beside}"
        if name == first:
            partly = decided[name] < _MOST * _n_sides(battles)
            yes = "Yes, where it decides" if partly else "Yes"
            verdict = {"yes": yes, "no": "No", "not known": "Not known"}[answers[name].verdict]
            further = _further(battles, ends, name, place[name], answers[name])
            sentence = f"Good enough? {verdict}: {'; '.join([sentence, *further])}"
        else:
            sentence = "; ".join([sentence, *_reversed(ends, name)])
        sentences.append(sentence)
    worth = ("n_independent", PANEL)
    if worth in ends:
        rho = ends["error_correlation", PANEL][0]
        sentences.append(
            f"The errors of two judges correlate with {rho:.2f} on average: the {len(battles.judges):,} judges are "
            f"worth {_with_ends(ends[worth], 1)} independent ones"
        )
    above = ("above_panel", order[0])
    if above in ends and ends[above][1] > 0:
        sentences.append(
            f"{visible_line(order[0])} alone agrees with people more often than the panel does on the "
            f"{counted(round(common[place[order[0]], 1, 0]), unit_of(battles))} that both decide"
        )
    return sentences


def _decides(battles: LabelledVerdicts, n_decided: int) -> str:
    """Say how many battles, of those on which people chose a side, the panel decides; judges who split decide none."""
    n_sides = _n_sides(battles)
    chose = "chose a side" if battles.scale.kind in ("pairs", "sides") else "decided"
    words = f" (it decides {n_decided:,} of {n_sides:,} on which people {chose})"
    return words + ("; a panel of two has a majority only where both agree" if len(battles.judges) == 2 else "")


def _n_sides(battles: LabelledVerdicts) -> int:
    decided = np.array(battles.scale.values)[list(battles.scale.sides)]
    sides, labels = (x.sum(1) for x in (np.isin(battles.human, decided), ~np.isnan(battles.human)))
    judged = ~np.isnan(battles.verdict).all(1)
    return round(float((sides / np.maximum(labels, 1))[judged].sum()))


def _beside_people(battles: LabelledVerdicts, ends: Ends, name: Any, common: Float, *, in_full: bool) -> str:
    """Say how far a judge is from people's agreement with each other, on battles that both decide."""
    if ("agreement", PEOPLE) not in ends:
        return ""
    who = "the panel" if name == PANEL else "the judge"
    if ("above_people", name) not in ends:
        return f"; {who} decides no {unit_of(battles)} on which two people chose a side" if in_full else ""
    value, lower, upper = 100 * ends["above_people", name]
    points = f"{abs(value):.0f} points [{{:.0f}}, {{:.0f}}]"
    if lower > 0:
        words = f"{points.format(lower, upper)} above that"
    elif upper < 0:
        words = f"{points.format(-upper, -lower)} below that"
    else:
        words = "not told apart from that"
    n, _, others = common
    both = f"the {counted(round(n), unit_of(battles))} that both {'decide' if battles.scale.has_middle else 'label'}"
    if not in_full:
        return ", " + words.replace("that", f"people with each other on {both}")
    return f"; people agree with each other on {100 * others / n:.0f}% of {both}: {who} is {words}"
