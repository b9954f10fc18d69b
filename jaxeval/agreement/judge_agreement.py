"""Can judges be trusted? Their agreement with people, beside that of people with each other, and their biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from jaxeval.agreement.good_enough import Ends, GoodEnough, answer_of, sentences_of, unit_of
from jaxeval.agreement.measures import (
    FEW_DECIDED,
    PANEL,
    PEOPLE,
    SHARES,
    by_confidence,
    by_gap,
    by_model,
    by_name,
    by_raters,
    columns_of,
    correlation_table,
    influences,
    measures,
    names_of,
    sums_of_items,
    with_panel,
)
from jaxeval.arrays import Float
from jaxeval.checks import checked_integer
from jaxeval.data.columns import as_frame
from jaxeval.data.judge_outputs import JudgeOutputs
from jaxeval.data.labelled_verdicts import LabelledVerdicts
from jaxeval.data.labels import Labels
from jaxeval.data.plain_labels import plain_labels
from jaxeval.data.roles import ROLES, USUAL_SIDES, usual_column
from jaxeval.errors import DataError
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import Names, PlainTable, held_table, in_pandas
from jaxeval.resampling.rows import resampled_sums
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Part, Result
from jaxeval.statistics.clusters import FEW_CLUSTERS
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import checked_level, exact_share
from jaxeval.statistics.random_facets import RandomFacets
from jaxeval.statistics.rater_agreement import cohen_kappa
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted

_OF_ROWS = (
    "agreement", "kappa", "all_agreement", "all_kappa", "sensitivity", "specificity", "youden_j", "flips",
    "first_chosen", "longer_chosen", "own_family", "family_excess",
)  # fmt: skip
_NOT_KNOWN = np.full(3, np.nan)
_MEASURES = (*_OF_ROWS, "calibration_error")


@dataclass(frozen=True, eq=False, repr=False)
class JudgeAgreement(Result):
    """How far judges agree with people, and what else speaks for and against them.

    ``table`` has a row for each judge, for the panel (what most judges say) where there are several, and for people
    with each other. Each measure has its interval in ``_lower`` and ``_upper``:

    - ``agreement`` and Cohen's ``kappa`` on decided battles (both chose a side); ``all_agreement`` and ``all_kappa``
      with ties as a third label. Where several people labelled a battle, each counts, and the battle weighs 1. (The
      agreement that kappa expects of chance depends a little on which model is written first.)
    - ``flips``: of the battles with a side in both orders, the share in which the two name different sides;
      ``first_chosen``: of single verdicts for a side, the share for the answer shown first;
    - ``longer_chosen``: of verdicts for a side, the share for the longer answer. The row of people has theirs;
    - ``own_family``: in battles of the judge's family against another, the share of verdicts for its own;
      ``family_excess``: by how much more often it names its own than people do on the same battles;
    - ``calibration_error`` of stated confidence on decided battles, without the noise of the bins.

    Each row has decided battles of its own, so do not subtract the shares of two rows. ``joint`` has the differences on
    the battles that both decide: ``above_people``, a judge's agreement less that of people with each other, and
    ``above_panel``, a judge's agreement less the panel's. ``sentences`` report them; of several judges, their intervals
    beside people hold for all at once.

    The first sentence says whether the panel, or the only judge, is good enough, and what to run next; ``good_enough``
    in ``table`` says so of each judge. "yes": with confidence the judge has 80 % of people's agreement beyond chance,
    and both agree beyond chance. "no": it agrees with people less often than they do with each other; or, with one
    label an item, its kappa is surely below .2. In simulations of this rule (two raters, independent items without
    ties) a judge as good as a person was called "no" in at most 2.6 % of data sets, of 2 to 2,000 items; one that
    guesses was never called good enough.

    Of labels without models, right and wrong or two sides have ``sensitivity`` and ``specificity``, the shares of
    people's right (first) and wrong (second) labels that the judge finds, and Youden's ``youden_j``, their sum less 1.
    Kappa and alpha of grades weigh squared distances. ``by_gap`` and ``by_model`` are then empty.

    ``panel`` has a row per measure: the mean ``error_correlation`` of two judges where people chose a side, the number
    of independent judges that the panel is worth, K / (1 + (K - 1) rho), and Krippendorff's ``alpha`` of the judges
    and of people (nominal, with ties as a label). A wrong label counts as an error of all judges, which raises rho.

    ``by_gap``, ``by_model``, ``reliability``, ``raters`` and ``error_correlation`` are tables by the gap of people's
    ratings, by model, by stated confidence, by pairs of named raters, and by pairs of judges.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> votes = pd.DataFrame({"model_a": [*"xyz"] * 40, "model_b": [*"yzx"] * 40})
        >>> votes["human"] = ["model_a", "model_b", "tie", "model_a"] * 30
        >>> votes["judge-1"] = ["model_a", "model_b", "model_a", "model_b"] * 30
        >>> found = jaxeval.judge_agreement(votes, judges=["judge-1"], n_resamples=100)
        >>> print(found.answer.sentences[0].split("; ")[0])
        Good enough? Not known: judge-1 agrees with people on 67% [57, 76] of 90 decided battles
        >>> found.table.set_index("judge").loc["judge-1", ["agreement", "kappa", "all_agreement"]].round(2).to_dict()
        {'agreement': 0.67, 'kappa': 0.4, 'all_agreement': 0.5}
    """

    rows: Mapping[str, Any] = field(repr=False)  # of the tables, by their names
    sentences: list[str]  # the first one is the answer
    notes: list[str]  # how the tables were read
    warnings: list[str]
    drawn: Draws = field(repr=False)  # `joint`

    table = held_table("table", "A row for each judge, for the panel and for people.")
    panel = held_table("panel", "A row per measure of all judges, or of all people.")
    by_gap = held_table("by_gap", "Agreement by the gap of people's ratings.")
    by_model = held_table("by_model", "Agreement by model.")
    reliability = held_table("reliability", "Agreement by stated confidence.")
    raters = held_table("raters", "Agreement of each pair of named raters.")

    @cached_property
    def error_correlation(self) -> pd.DataFrame:
        """(J, J) correlations of the errors of judges."""
        rows = in_pandas(self.rows["error_correlation"])
        return rows.set_index(rows.columns[0]).rename_axis("judge").rename_axis("judge", axis=1)

    @cached_property
    def joint(self) -> Draws:
        """Joint draws of all measures; the names have the levels ``measure`` and ``judge``."""
        return replace(self.drawn, names=in_pandas(self.drawn.names))

    def _sentences(self) -> list[str]:
        return self.sentences

    def _shown(self) -> Answer:
        table = self.rows["table"]  # which has no agreement where judges decide nothing
        measures = [x for x in ("agreement", "agreement_lower", "agreement_upper", *_OF_ROWS[1:]) if x in table]
        title = f"JudgeAgreement: {self.sentences[0].split('; ')[0]}"
        shown = table[["judge", "n_items", "n_decided", *measures, "flags"]]
        return Answer(title, shown, self.drawn.settings, self.warnings)

    def _figures(self) -> dict[str, tuple[Any, ...]]:
        return {"agreement": ("plot_judge_agreement", self)}

    def _in_full(self, view: Answer) -> Answer:
        rows = self.rows
        table, panel = rows["table"].rename(columns={"n_decided": "decided"}), rows["panel"]
        measures = [name for name in table if str(name).removesuffix("_lower").removesuffix("_upper") in _MEASURES]
        main = table[["judge", "n_items", "decided", *measures, "flags"]]
        meaning = "agreement and kappa on battles that both decided; agreement all and kappa all with ties as a label"
        if "all_agreement" not in table:
            meaning = "agreement, and kappa beyond chance"
        elif "youden_j" in table:
            meaning = "agreement and kappa on what both decided; agreement all and kappa all with the third label"
        parts = [Part("Judges and people", main, meaning, rows="judge", kept=("agreement",))]
        if len(panel):
            words = [measure.replace("_", " ") for measure in panel["measure"]]
            parts.append(Part("Together", panel.assign(measure=words), rows="measure"))
        tables = {"agreement": rows["table"], "panel": panel}
        if len(rows["by_gap"]):
            gaps = self.by_gap
            tables |= {"by_gap": gaps, "by_model": self.by_model}
            ends = zip(gaps["gap_from"], gaps["gap_to"], strict=True)
            shown = gaps.drop(columns=["gap_from", "gap_to"])
            shown.insert(1, "gap", [f"{a:g} to {b:g}" if b < np.inf else f"over {a:g}" for a, b in ends])
            parts.append(Part("Agreement by the gap of people's ratings (Elo)", shown))
            parts.append(Part("Agreement by model", self.by_model, more=True))
        titles = {"reliability": "Stated confidence", "raters": "Pairs of raters",
                  "error_correlation": "Correlation of errors"}  # fmt: skip
        tables |= {name: rows[name] for name in titles}
        parts += [Part(title, rows[name], more=True) for name, title in titles.items() if len(rows[name])]
        return view._replace(title="Judges and people", notes=self.notes, parts=parts, tables=tables)


@spelled_out()
def judge_agreement(
    verdicts: JudgeOutputs | pd.DataFrame | Any,
    human: pd.DataFrame | str | Sequence[str] | None = None,
    *,
    judges: Sequence[str] | None = None,
    label_coding: Labels | Literal["grades"] | None = None,
    shown_first: str | None = None,
    lengths: tuple[str, str] | None = None,
    families: Mapping[Any, str] | None = None,
    model_a: str = "model_a",
    model_b: str = "model_b",
    item: str | None = None,
    random: str | Sequence[str] = (),
    level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
    **running: Unpack[RunOptions],
) -> JudgeAgreement:
    """Measure judges' agreement with people, with intervals over items, and what the verdicts show of biases.

    Items are resampled whole, with all battles, judges and labels; draws of all measures are joint. Shares have
    Clopper and Pearson's interval, for the number of independent battles that would have their variance over resamples:
    it holds at least its level, where Wilson's of 100 battles holds .936 to .966. Other measures have percentile
    intervals. In simulations with 120 items, these held the truth in .92 to .95 of the cases (those of alpha in .91 to
    .94): with few items they are a little short.

    Args:
        verdicts: what `read_judge_outputs` gives, or a table of pairwise verdicts. Either a row for each judge, item
            and pair, with the columns "judge", "item" and "verdict", and perhaps "verdict_a_first", "verdict_b_first",
            "confidence" and "run"; or a row per battle, and a column of verdicts for each of ``judges``. A table
            without models has labels of any kind: right and wrong (1 and 0, Yes and No, CORRECT and INCORRECT), two
            sides (A and B, 1 and 2), grades, or other words; two columns such as win_orig and win_swap are one judge
            in both orders. Such a table may also have a row for each label, with the columns of the item, the rater and
            the label: raters called judge, gpt and the like are judges, or those in ``judges``; the others are people.
        human: labels of people: a column, several columns (raters), or a table with a row per label: item, pair, label
            and perhaps "rater". By default the labels of ``verdicts``, or its column "human". Without models, columns
            are found by their names: human, annotator1, rater_2 and the like.
        judges: columns of verdicts, where each judge has its own; or names of raters, of a table with a row for each
            label. Without models, by default those with the labels that people give.
        label_coding: what labels and verdicts mean, where their words do not say so, as in `JudgedBattles.from_pandas`;
            or "grades", for numbers that may be sides or grades.
        shown_first: column of the side shown first, for tables with one order in a row; the name of the column
            ``model_a`` where that side always was. A column of two orders is also found by its values.
        lengths: columns of the lengths of both answers; by default "length_a" and "length_b" if there.
        families: family of models and of judges, by name.
        model_a: column of the first model.
        model_b: column of the second model.
        item: column of the items (prompts), which are drawn; "item" or another usual name by default. Without one,
            battles are.
        random: columns of what was sampled besides items, with one value for each battle: prompt wordings, raters,
            topics. Draws then vary as other levels like these would make them, as in `bootstrap`; tables by gap, model
            and confidence do not. Judges have rows of their own, and are none.
        level: of the intervals.

    Raises:
        DataError: a column is missing, labels cannot be read, verdicts are repeated, no label meets a verdict, or a
            judge is called "people" or "panel".
        ValueError: ``level``, ``n_resamples`` or ``seed`` is out of range.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> rows = [("j1", k, "x", "y", v) for k, v in enumerate(["model_a", "model_b", "tie"] * 20)]
        >>> rows += [("j2", k, "y", "x", "model_a") for k in range(60)]
        >>> verdicts = pd.DataFrame(rows, columns=["judge", "item", "model_a", "model_b", "verdict"])
        >>> people = pd.DataFrame({"item": range(60), "model_a": "x", "model_b": "y"})
        >>> people["label"] = ["model_a", "model_b"] * 30
        >>> found = jaxeval.judge_agreement(verdicts, people, n_resamples=100)
        >>> found.table[["judge", "agreement", "all_agreement"]].round(2).to_numpy().tolist()[:2]
        [['j1', 0.5, 0.33], ['j2', 0.5, 0.5]]
    """
    checked_level(level)
    checked_integer("n_resamples", n_resamples, 2)
    checked_integer("seed", seed)
    battles = _labels(
        verdicts, human, judges, label_coding, item, shown_first=shown_first, lengths=lengths, model_a=model_a,
        model_b=model_b,
    )  # fmt: skip
    _check(battles)
    labels = {model_a, model_b, "verdict", *ROLES["human"].names, *battles.judges, *(battles.raters or ())}
    named_facets = facet_names(random)
    if told := labels.intersection(named_facets):
        raise DataError(f"column {min(told)!r} cannot be random: it holds models or labels; leave it out of random=")
    by_row = {name: battles.facets[name] for name in named_facets}
    facets = RandomFacets.of(by_row, "item", battles.item) if by_row else None
    columns = columns_of(battles, families)
    sums = sums_of_items(columns, battles.item)

    def identity() -> Identity:
        return Identity({"seed": seed}, sums, {"n_resamples": n_resamples, "level": level}, noun="verdicts")

    with open_run(identity, n_resamples, "resamples", **running) as run:
        drawn = resampled_sums(sums, n_resamples, seed, "agreement", run=run)
    whole = by_name(sums.sum(0, keepdims=True), columns)
    estimates = {key: float(value[0]) for key, value in measures(whole, battles.judges, battles.scale).items()}
    draws = measures(by_name(drawn, columns), battles.judges, battles.scale)
    known = [key for key, value in estimates.items() if np.isfinite(value)]
    settings: dict[str, Any] = {"n_resamples": n_resamples, "level": float(level), "seed": seed, "cluster": "items"}
    values = np.column_stack([draws[key] for key in known])
    if facets is not None:
        settings["random"] = list(facets.levels)
        influence = influences(columns, known, battles.judges, battles.scale)
        moved = facets.moved(np.array([estimates[key] for key in known]), values, influence, seed, alike=False)
        shares = np.array([measure != "n_independent" for measure, _ in known])
        values = np.where(shares, np.clip(moved, -1, 1), moved)
    joint = Draws(
        Names(known, ["measure", "judge"]), np.array([estimates[key] for key in known]), values, settings=settings,
    )  # fmt: skip
    chance = _chance(battles, whole)
    with np.errstate(all="ignore"):
        by_item = measures(by_name(sums, columns), battles.judges, battles.scale)
    n_items = np.array([np.isfinite(by_item[key]).sum() for key in known])
    ends = _intervals(joint, known, n_items, level, chance)
    answers = _answers(
        battles, by_name(sums, columns)["common"], chance[PEOPLE], ends, level,
        None if facets is None else (joint, known),
    )  # fmt: skip
    reliability, errors = by_confidence(battles, level)
    table = _table(battles, ends, errors, columns, answers)
    warnings = [f"{row['judge']}: {row['flags']}" for row in table.records() if row["flags"]]
    n_decided = dict(zip(table["judge"], table["n_decided"].tolist(), strict=True))
    sentences = sentences_of(battles, n_decided, ends, answers, whole["common"][0])
    if facets is not None:
        warnings += facets.warnings
        sentences = [f"{facets.about}: {sentences[0]}", *sentences[1:]]
    if ("all_agreement", PEOPLE) not in ends:
        unit = unit_of(battles)
        warnings.append(f"no {unit} has the labels of two people: how far people agree with each other is not known")
    if len(battles.judges) > 1 and ("n_independent", PANEL) not in ends:
        warnings.append("the errors of some pair of judges do not vary: what the panel is worth is not known")
    of_pairs = battles.scale.kind == "pairs"
    return JudgeAgreement(
        rows={
            "table": table,
            "panel": _panel(ends),
            "by_gap": by_gap(battles, level) if of_pairs else PlainTable({}),
            "by_model": by_model(battles, level) if of_pairs else PlainTable({}),
            "reliability": reliability,
            "raters": by_raters(battles),
            "error_correlation": correlation_table(battles, whole),
        },
        sentences=sentences,
        notes=battles.notes,
        warnings=warnings,
        drawn=joint,
    )


def _check(battles: LabelledVerdicts) -> None:
    reserved = [name for name in battles.judges if name in (PANEL, PEOPLE)]
    if reserved:
        raise DataError(f"a judge is called {reserved[0]!r}, which is the name of a row of results: rename it")
    if not (~np.isnan(battles.people) & ~np.isnan(battles.verdict).all(1)).any():
        raise DataError(
            f"no {unit_of(battles)} with a verdict has a human label (of "
            f"{counted(len(battles.item), unit_of(battles))}): name the columns of labels, or a table of them "
            "(human=, --human), or 'human'"
        )


def _chance(battles: LabelledVerdicts, whole: Mapping[str, Float]) -> dict[Any, float]:
    """Return the agreement that chance explains, of each judge with people, and of people with each other."""
    codes = np.array(battles.scale.sides)
    tables = [*whole["confusion"][0], whole["people"][0]]
    expected = [float(cohen_kappa(table[codes[:, None], codes])[1]) for table in tables]
    return dict(zip([*names_of(battles.judges), PEOPLE], expected, strict=True))


def _intervals(
    joint: Draws, known: Sequence[tuple[str, Any]], n_items: NDArray[np.intp], level: float, chance: Mapping[Any, float]
) -> Ends:
    """Return intervals of the ``known`` measures, of which ``n_items`` (K,) say something."""
    lower, upper = joint.ends(level)
    share = np.array([measure in SHARES for measure, _ in known])
    p, error = joint.estimate[share], joint.errors[share]
    varies = (p > 0) & (p < 1) & (error > 0)
    n = np.where(varies, p * (1 - p) / np.where(varies, error, 1.0) ** 2, n_items[share])
    lower[share], upper[share] = exact_share(p, n, level)
    ends = dict(zip(known, np.column_stack([joint.estimate, lower, upper]), strict=True))
    for measure, name in known:
        if measure == "kappa" and ends[measure, name][0] == 1:
            # No resample differs: the interval is that of the agreement, on kappa's scale.
            ends[measure, name][1:] = (ends["agreement", name][1:] - chance[name]) / (1 - chance[name])
        if measure == "youden_j":  # from both shares (Newcombe 1998): it holds where they are near 1
            value, low, high = np.array([ends["sensitivity", name], ends["specificity", name]]).T
            j = value.sum() - 1
            below, above = value - low, high - value
            ends[measure, name] = np.array([j, j - np.sqrt((below**2).sum()), j + np.sqrt((above**2).sum())])
    return ends


def _answers(
    battles: LabelledVerdicts, common: Float, chance: float, ends: Ends, level: float,
    wider_draws: tuple[Draws, Sequence[tuple[str, Any]]] | None,
) -> dict[Any, GoodEnough]:  # fmt: skip
    """Decide whether each judge and the panel are good enough; the level of several judges holds for all at once.

    With random facets, their draws of the known measures make intervals wider.
    """
    answers = {}
    for k, name in enumerate(names_of(battles.judges)):
        of_judge = 1 - (1 - level) / (1 if name == PANEL else len(battles.judges))
        kappa, people = (ends.get(("kappa", of), _NOT_KNOWN)[1:].tolist() for of in (name, PEOPLE))
        wider, above = (np.nan, np.nan), ("above_people", name)
        if wider_draws is not None and above in ends:
            joint, known = wider_draws
            lower, upper = (float(end[known.index(above)]) for end in joint.ends(of_judge))
            wider = (lower, upper)
        answers[name] = answer_of(common[:, k, 0], chance, (kappa[0], kappa[1]), people[0], of_judge, wider)
        beside = answers[name].beside
        if above in ends and beside is not None:
            ends[above][1:] = beside.lower, beside.upper
    return answers


def _labels(
    verdicts: Any, human: Any, judges: Sequence[str] | None, label_coding: Any, item: str | None, **columns: Any
) -> LabelledVerdicts:
    """Return labels of pairs of models; or, where the table has no columns of them, labels alone."""
    of_pairs = isinstance(verdicts, JudgeOutputs)
    if not of_pairs:
        verdicts = verdicts if isinstance(verdicts, PlainTable) else as_frame(verdicts)
        of_pairs = (columns["model_a"], columns["model_b"]) != USUAL_SIDES
        of_pairs = of_pairs or usual_column(verdicts.columns, None, USUAL_SIDES) is not None
    if of_pairs:
        if label_coding == "grades":
            raise ValueError("label_coding='grades' is for labels without models: verdicts on pairs are sides")
        columns |= {"judges": judges, "label_coding": label_coding, "item": item}
        return LabelledVerdicts.of(in_pandas(verdicts), human, **columns)
    if human is not None and not isinstance(human, str) and hasattr(human, "columns"):
        raise DataError(
            "a table of human labels is joined by items and pairs of models, and the verdicts have no columns of "
            "models (model_a=, model_b=): put people's labels into columns of the same table"
        )
    if columns["lengths"] is not None:
        raise DataError(
            "lengths= are of pairs of models, and the table has no columns of them (model_a=, model_b=): leave it out"
        )
    named = [judges] if isinstance(judges, str) else judges
    return plain_labels(verdicts, human, named, label_coding, item, columns["shown_first"])


def _table(
    battles: LabelledVerdicts, ends: Ends, errors: Mapping[Any, Mapping[str, float]], columns: Mapping[str, Float],
    answers: Mapping[Any, GoodEnough],
) -> PlainTable:  # fmt: skip
    names = [*names_of(battles.judges), PEOPLE]
    labelled = [~np.isnan(verdict) & ~np.isnan(battles.people) for verdict in with_panel(battles).values()]
    labelled.append((~np.isnan(battles.human)).sum(1) > 1)
    decided = np.array(battles.scale.sides)
    sides = np.array([*columns["confusion"].sum(0), columns["people"].sum(0)])[:, decided[:, None], decided]
    rows: dict[str, Any] = {
        "judge": names,
        "n_items": [np.count_nonzero(np.bincount(battles.item[among])) for among in labelled],
        "n_battles": [int(among.sum()) for among in labelled],
        "n_decided": np.rint(sides.sum((1, 2))).astype(int),
        "good_enough": [answers[name].verdict if name in answers else "" for name in names],
    }
    for measure in _OF_ROWS:
        intervals = np.array([ends.get((measure, name), _NOT_KNOWN) for name in names])
        rows |= {f"{measure}{end}": x for end, x in zip(("", "_lower", "_upper"), intervals.T, strict=True)}
    for end, of in (("", "ece_debiased"), ("_lower", "ece_lower"), ("_upper", "ece_upper")):
        rows[f"calibration_error{end}"] = [errors.get(name, {}).get(of, np.nan) for name in names]
    table = PlainTable(rows)
    empty = [name for name in (*_OF_ROWS, "calibration_error") if np.isnan(table[name]).all()]
    empty += [] if battles.scale.has_middle else ["all_agreement", "all_kappa"]
    table = table.drop(columns=[f"{name}{end}" for name in empty for end in ("", "_lower", "_upper")])
    table = table.assign(flags=[_flags(row) for row in table.records()])
    return with_kinds(table, agreement="all_agreement all_kappa youden_j")


def _flags(row: Mapping[str, Any]) -> str:
    if row["n_battles"] == 0:
        return "" if row["judge"] == PEOPLE else "no battle with a human label"
    doubts = {
        f"only {counted(row['n_items'], 'item')} with labels": row["n_items"] < FEW_CLUSTERS,
        f"only {counted(row['n_decided'], 'decided battle')}": row["n_decided"] < FEW_DECIDED,
        "one label only: no kappa": row["n_decided"] > 0 and np.isnan(row.get("kappa", np.nan)),
    }
    return "; ".join(text for text, applies in doubts.items() if applies)


def _panel(ends: Ends) -> PlainTable:
    names = [("error_correlation", PANEL), ("n_independent", PANEL), ("alpha", PANEL), ("alpha", PEOPLE)]
    rows = [(name, "judges" if of == PANEL else of, *ends[name, of]) for name, of in names if (name, of) in ends]
    return with_kinds(PlainTable.of_rows(rows, ["measure", "of", "value", "lower", "upper"]), ends_of="value")
