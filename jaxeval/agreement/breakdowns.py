"""Break agreement of judges with people down: by gap, model, confidence and rater, and what else speaks for a judge."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.agreement.measures import PANEL, distance_of
from jaxeval.arrays import Bool, Float
from jaxeval.data.battles import Battles
from jaxeval.data.labelled_verdicts import LabelledVerdicts
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import PlainTable
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.show.cells import with_kinds
from jaxeval.statistics import special
from jaxeval.statistics.clusters import FEW_CLUSTERS, wilson_share
from jaxeval.statistics.rater_agreement import cohen_kappa, label_table, reliability_bins
from jaxeval.wording import counted, visible_line

if TYPE_CHECKING:
    from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit

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
    """Differences of agreement with Student's intervals over items.

    Two items are added, one on which only the judge agrees and one on which only people do (Bonett and Price, Adjusted
    Wald confidence interval for a difference of binomial proportions based on paired data, Journal of Educational and
    Behavioral Statistics, 2012), so that equal answers on few items are not taken for certain. The lengths of the
    intervals are then right for few items, too.

    Args:
        sums: (..., I, 3) of each item: its weight, the judge's agreement and people's, both times the weight.
        level: of the interval.
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
    """Verdicts (...) of judges beside people.

    "yes": with confidence the judge has 80 % of people's agreement beyond chance, and both it and people agree beyond
    chance. "no": it agrees with people less often than people do. A judge as good as a person is called "no" in at
    most 2.5 % of data sets at the level .95, and one that guesses is practically never called "yes".

    Args:
        beside: the difference.
        chance: (...) agreement of people that chance explains.
        kappas: (..., 2) lower ends of the intervals of kappa, of the judge and of people.
        n_items: (...) items with labels of two people.
    """
    with np.errstate(invalid="ignore"):
        margin = (1 - SHARE) * (beside.people - chance)
        good = (beside.lower > -margin) & (margin > 0) & (kappas > 0).all(-1) & (n_items >= FEW_CLUSTERS)
        return np.select([beside.upper < 0, good], ["no", "yes"], "not known")


def items_needed(beside: Beside, chance: float, n_items: int) -> int | None:
    """About how many items would tell whether the judge is good enough; None where the difference is at the edge."""
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
    """Whether a judge is good enough.

    Args:
        common: (I, 3) sums of items, as in `beside_people`; weights are 0 without labels of two people.
        chance: agreement of people that chance explains.
        kappa: both ends of the interval of the judge's kappa.
        of_people: the lower end of that of people's.
        level: of the intervals.
        wider: ends of the interval of the judge beside people, where more than items was sampled.
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


#: Of people's ratings, and of the judge's: with it every model has one.
RIDGE = 0.01
_UNLIKE = 0.05  # shares of ties that differ by less are not worth a word


def _fitted(battles: Battles, ridge: float) -> BradleyTerryFit:
    """Return the ratings of ``battles``. They alone need JAX, and answers that are right or wrong have none."""
    from jaxeval.ratings.bootstrap import fit_bradley_terry

    return fit_bradley_terry(battles, ridge)


def further_facts(battles: LabelledVerdicts, ends: Ends, name: Any, place: int, answer: GoodEnough) -> list[str]:
    """Return facts about a judge, or the panel, that the answer names after its agreement."""
    verdict = battles.panel if name == PANEL else battles.verdict[:, place]
    return [
        *_ties(battles, verdict),
        *_orders(battles, ends, name),
        *_ranking(battles, verdict),
        *_next(battles, ends, name, answer),
    ]


def _ties(battles: LabelledVerdicts, verdict: Float) -> list[str]:
    """Shares of ties, or of answers that were not attempted, where the judge and people differ."""
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
    """How far verdicts follow the order shown."""
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
    """How far the judge's ranking of models is people's, on the same battles or answers."""
    people, models = battles.people, battles.models
    both = ~np.isnan(verdict) & ~np.isnan(people)
    if battles.scale.kind == "pairs":
        used = np.union1d(battles.model_a[both], battles.model_b[both])
        if len(used) < 2:
            return []
        sides = {"model_a": models[battles.model_a[both]], "model_b": models[battles.model_b[both]]}
        ratings = [
            _fitted(Battles.from_pandas(pd.DataFrame({**sides, "target": labels[both]}), target="target"), RIDGE)
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
    lead = (
        "the same first one"
        if first[0] == first[1]
        else (f"{visible_line(first[1])} first, where people have {visible_line(first[0])}")
    )
    who = f"its ranking of {counted(len(used), 'model')}"
    pairs = f"{swapped:,} of {counted(n, 'pair')} the other way round than people's"
    return [f"{who} has {pairs}, and {lead} (errors of neither ranking are counted)"]


def _next(battles: LabelledVerdicts, ends: Ends, name: Any, answer: GoodEnough) -> list[str]:
    """The command to run next."""
    judge = battles.judges[0] if name == PANEL else name
    if answer.beside is None:
        kappa = ends.get(("kappa", name))
        evidence = [] if kappa is None else [f"kappa {kappa[0]:.2f} [{kappa[1]:.2f}, {kappa[2]:.2f}]"]
        if answer.verdict == "not known":
            evidence.append("no item has labels of two people, so that nobody knows how far people agree")
        more = "have a second person label some of the items, then run jaxeval agreement again"
    elif answer.items_needed is not None:
        evidence, more = (
            [],
            (f"about {answer.items_needed:,} items with labels of two people would tell: jaxeval agreement FILE"),
        )
    else:
        evidence, more = [], ""
    if answer.verdict == "not known":
        return [*evidence, f"next: {more}"] if more else [*evidence, "next: jaxeval agreement FILE with more items"]
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


#: Edges of the gaps between people's ratings, Elo; the last bin is open.
GAP_EDGES = (0.0, 50.0, 100.0, 200.0, np.inf)
#: Agreement is flagged where people and the judge chose a side on fewer battles than this.
FEW_DECIDED = 30
_RIDGE = 0.01  # of the people's ratings, from which gaps come: with it every model has a rating


def _decided(battles: LabelledVerdicts) -> list[tuple[Any, Bool, Bool]]:
    """Judge, (N,) battles on which it and most people chose a side, and (N,) whether they agree."""
    people = battles.people
    names = [*battles.judges, *([PANEL] if len(battles.judges) > 1 else [])]
    verdicts = [*battles.verdict.T, *([battles.panel] if len(battles.judges) > 1 else [])]
    decided = np.array(battles.scale.values)[list(battles.scale.sides)]
    sides = np.isin(people, decided)
    return [
        (name, sides & np.isin(verdict, decided), verdict == people)
        for name, verdict in zip(names, verdicts, strict=True)
    ]


def _shares(rows: list[tuple[dict[str, Any], Bool]], agree: Bool, item: NDArray[np.intp], level: float) -> list[Any]:
    """A row of `wilson_share` for each of some sets of battles, with clusters of items."""
    rows_found = []
    for names, among in rows:
        share = wilson_share(agree[among], item[among], level)
        rows_found.append({**names, "agreement": share.pop("share"), **share})
    return rows_found


def by_gap(battles: LabelledVerdicts, level: float) -> pd.DataFrame:
    """Agreement on decided battles by the gap of people's ratings."""
    people = battles.people
    voted = ~np.isnan(people)
    sides = {"model_a": battles.models[battles.model_a], "model_b": battles.models[battles.model_b]}
    votes = pd.DataFrame({**sides, "target": people})[voted]
    strength = _fitted(Battles.from_pandas(votes, target="target"), _RIDGE).logits.reindex(battles.models)
    elo = ELO_PER_LOGIT * strength.to_numpy()
    gap = np.abs(elo[battles.model_a] - elo[battles.model_b])
    place = np.digitize(gap, GAP_EDGES[1:-1])
    rows = []
    for name, decided, agree in _decided(battles):
        bins = [
            ({"judge": name, "gap_from": GAP_EDGES[k], "gap_to": GAP_EDGES[k + 1]}, decided & (place == k))
            for k in range(len(GAP_EDGES) - 1)
        ]
        rows += _shares(bins, agree, battles.item, level)
    return pd.DataFrame(rows)


def by_model(battles: LabelledVerdicts, level: float) -> pd.DataFrame:
    """Agreement on decided battles of each model, and by how much more often the judge names it than people do."""
    rows = []
    people = battles.people
    for (name, decided, agree), verdict in zip(_decided(battles), [*battles.verdict.T, battles.panel], strict=False):
        for k, model in enumerate(battles.models):
            is_a, is_b = battles.model_a == k, battles.model_b == k
            among = decided & (is_a | is_b)
            shares = _shares([({"judge": name, "model": model}, among)], agree, battles.item, level)[0]
            by_judge, by_people = (np.mean((x == 1)[among] == is_a[among]) if among.any() else np.nan
                                   for x in (verdict, people))  # fmt: skip
            rows.append({**shares, "chosen_by_judge": by_judge, "chosen_by_people": by_people})
    return pd.DataFrame(rows)


def by_confidence(
    battles: LabelledVerdicts, level: float
) -> tuple[pd.DataFrame | PlainTable, dict[Any, dict[str, float]]]:
    """Stated confidence against agreement on decided battles, in bins; and by judge the calibration error."""
    parts, errors = [], {}
    for k, (name, decided, agree) in enumerate(_decided(battles)[: len(battles.judges)]):
        stated = battles.confidence[:, k]
        among = decided & ~np.isnan(stated)
        if among.any():
            n_bins = int(np.clip(among.sum() // FEW_DECIDED, 1, 10))
            table, errors[name] = reliability_bins(
                stated[among], agree[among].astype(float), battles.item[among], n_bins, level
            )
            parts.append(table.assign(judge=name))
    columns = ["judge", "predicted", "agreement", "standard_error", "n_battles"]
    table = pd.concat(parts, ignore_index=True)[columns] if parts else PlainTable.of_rows([], columns)
    return table, errors


def by_raters(battles: LabelledVerdicts) -> PlainTable:
    """Agreement and Cohen's kappa of every pair of named raters, with ties as a label."""
    rows = []
    for j, k in combinations(range(len(battles.raters or [])), 2):
        x, y = battles.human[:, j], battles.human[:, k]
        both = ~np.isnan(x + y)
        table = label_table(x[both], y[both], np.array(battles.scale.values))
        observed, _, kappa = cohen_kappa(table, distance_of(battles.scale))
        names = battles.raters or []
        rows.append((names[j], names[k], float(observed), float(kappa), int(both.sum())))
    table = PlainTable.of_rows(rows, ["rater", "other", "all_agreement", "all_kappa", "n_battles"])
    return with_kinds(table, agreement="all_agreement all_kappa")
