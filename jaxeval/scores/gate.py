"""A gate for a new model: it passes, it fails, or the data cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jaxeval.arrays import Float
from jaxeval.data.item_scores import ItemScores
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import PlainTable, Whole
from jaxeval.scores.compare_scores import ScoreComparison, compare_scores, place_of
from jaxeval.scores.estimates import accuracy_of, as_item_scores, of_items
from jaxeval.scores.facets import cells_of, facet_sentence, with_facets
from jaxeval.show.cells import with_kinds
from jaxeval.show.files import plain_values
from jaxeval.show.shown import Answer, Part, Result
from jaxeval.statistics import special
from jaxeval.statistics.p_values import holm
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted, named, visible_line

if TYPE_CHECKING:
    from jaxeval.accuracy.judge_accuracy import JudgeAccuracy

Verdict = Literal["PASS", "FAIL", "INCONCLUSIVE"]
#: What a process ends with.
EXIT_CODES: dict[Verdict, int] = {"PASS": 0, "FAIL": 1, "INCONCLUSIVE": 2}
POWER = 0.8  # with which the items needed decide
_MOST_TIMES = 100  # as many items as there are: beyond, "more items" is no advice
_NAMED = 5


@dataclass(frozen=True, eq=False, repr=False)
class ScoreGate(Result):
    """Whether a model is not worse than another one by a margin, on one task or on each of several.

    Examples:
        >>> import jaxeval
        >>> gate = jaxeval.score_gate(jaxeval.simulate_scores(800, 3), "model-1", "model-2", margin=0.1)
        >>> print(gate.verdict, gate.exit_code)
        PASS 0
    """

    a: Any
    b: Any
    verdict: Verdict
    rows: PlainTable = field(repr=False)  # of `table`
    warnings: tuple[str, ...]
    settings: dict[str, Any] = field(repr=False)

    @property
    def table(self) -> pd.DataFrame:
        """A row per task."""
        return self.rows.frame

    @property
    def exit_code(self) -> int:
        """What a process ends with: 0 (PASS), 1 (FAIL) or 2 (INCONCLUSIVE)."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it. What is not known is None.

        ``format`` is "jaxeval gate" and ``version`` 1; fields may be added to a version, and none changes its meaning.
        ``tasks`` are the rows of the table.
        """
        return {
            "format": "jaxeval gate", "version": 1, "verdict": self.verdict, "exit_code": self.exit_code,
            "a": str(self.a), "b": str(self.b), **self.settings, "sentences": list(self._plain_answer().sentences),
            "tasks": plain_values(self.rows.records()), "warnings": list(self.warnings),
        }  # fmt: skip

    def _shown(self) -> Answer:
        a, b = visible_line(str(self.a)), visible_line(str(self.b))
        several = len(self.rows) > 1
        shown = self.rows.drop(["flags", *(() if several else ("p_pass_holm", "p_fail_holm"))])
        part = Part("Gate", shown, rows="task", kept=("verdict", "difference"), least=("n_items", "lower", "upper"))
        return Answer(
            f"ScoreGate: {a} beside {b}", self.rows, self.settings, self.warnings, parts=[part],
            tables={"gate": self.rows},
        )  # fmt: skip

    def _sentences(self) -> list[str]:
        first, *others = self._decided()
        verdict, _, rest = first.partition(": ")
        about = self.settings.get("about")
        return [f"{verdict}: {about}: {rest}" if about else first, *others]

    def _decided(self) -> list[str]:
        a, b, rows = visible_line(str(self.a)), visible_line(str(self.b)), self.rows.records()
        margin, several = f"{self.settings['margin']:g}", len(rows) > 1
        look = ", at every look" if self.settings["peek"] else ""
        not_worse = f"{a} is not worse than {b} by {margin} or more"
        worse = f"{a} is worse than {b} by more than {margin}"
        if self.verdict == "PASS":
            where, p = f" on any of {len(rows):,} tasks" if several else "", max(row["p_pass"] for row in rows)
            return [f"PASS: {not_worse}{where} ({'largest ' if several else ''}p {p:.2g}{look})"]
        if self.verdict == "FAIL":
            failed = [row for row in rows if row["verdict"] == "FAIL"]
            p = max(row["p_fail_holm"] for row in failed)
            on = f" on {len(failed):,} of {counted(len(rows), 'task')}: {named([x['task'] for x in failed], _NAMED)}"
            return [f"FAIL: {worse}{on if several else ''} (p {p:.2g}{' by Holm' if several else ''}{look})"]
        if not several:
            (row,) = rows
            if row["p_pass"] != row["p_pass"]:
                return [f"INCONCLUSIVE: there is no p-value ({row['flags'] or 'see the warnings'})"]
            ps = f"it is shown neither that {not_worse} (p {row['p_pass']:.2g}{look}), nor that it is"
            return [f"INCONCLUSIVE: {ps} (p {row['p_fail']:.2g}); {self._more(row['items_more'])}"]
        open_ones = [row for row in rows if row["verdict"] == "INCONCLUSIVE"]
        on = f"{len(open_ones):,} of {len(rows):,} tasks: {named([row['task'] for row in open_ones], _NAMED)}"
        sentences = [f"INCONCLUSIVE: it is not shown that {not_worse} on {on}"]
        compared = [row["items_more"] for row in open_ones if row["p_pass"] == row["p_pass"]]
        if compared:
            which = "each of them" if len(compared) == len(open_ones) else "those that can be compared"
            sentences.append(f"on {which}, {self._more(None if None in compared else max(compared))}")
        return sentences

    def _more(self, n: Any) -> str:
        if self.settings.get("random"):
            return "`error_budget` says what would make the error smaller"
        if n is None:
            return "the difference is so near the margin that no feasible number of items would decide"
        return f"if the difference stays, about {counted(int(n), 'more item')} would decide"


def score_gate(
    scores: ItemScores | JudgeAccuracy | Any,
    a: Any,
    b: Any,
    *,
    margin: float,
    random: str | Sequence[str] = (),
    peek: bool = False,
    judge: str | None = None,
    estimator: str | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> ScoreGate:
    """Decide whether model ``a`` may replace ``b``: PASS, FAIL, or INCONCLUSIVE where the data show neither.

    FAIL: ``a`` is worse by more than the margin. PASS: it is not worse by the margin or more. Each is a one-sided test
    of `compare_scores` at 1 - level. Several benchmarks are a task each. The gate fails if any task does, by p-values
    adjusted for their number by Holm's steps. It passes if every task does by its own p-value: were one of them worse
    by the margin, all would pass with probability 1 - level at most (an intersection-union test, Berger 1982, DOI
    10.1080/00401706.1982.10487790). A single task passes with the others, or by Holm's steps.

    Args:
        scores: as for `compare_scores`; several trials of an item are averaged first.
        a: the new model.
        b: the model that it must not be worse than.
        margin: above 0, in points of the score.
        random: as for `compare_scores`; not with ``peek``.
        peek: decide by p-values that hold at every look, for data that are looked at as they come in. Scores need
            bounds.
        judge, estimator, bounds: as for `compare_scores`.
        level: 1 - level is the probability of a wrong PASS, and of a wrong FAIL, at most; by exact sums for right and
            wrong answers, in clusters by simulation.
        seed: as for `compare_scores`.

    Returns:
        The verdict and a table with a row per task: ``task`` (NA where there is one), ``verdict``, ``difference``,
        ``lower``, ``upper``, ``p_pass``, ``p_fail``, ``p_pass_holm``, ``p_fail_holm``, ``n_items``; ``items_more``, how
        many more would decide with probability 0.8 if the difference stayed as it is (NA: no feasible number, or no
        p-value); and ``flags``. A task that only one of the two has is open.

    Raises:
        DataError, ValueError: as by `compare_scores`.

    Examples:
        >>> import jaxeval
        >>> scores = jaxeval.simulate_scores(300, 3)
        >>> print(jaxeval.score_gate(scores, "model-3", "model-1", margin=0.05).answer)
        FAIL: model-3 is worse than model-1 by more than 0.05 (p 0.001)
    """
    options: dict[str, Any] = {"margin": margin, "bounds": bounds, "level": level, "seed": seed}
    facets, about, accuracy = facet_names(random), "", accuracy_of(scores)
    tasks: list[tuple[Any, Any]]
    warnings: list[str]
    if facets and (peek or bounds is not None):
        raise ValueError("peek and bounds do not go with random facets, which leave no p-value for all looks")
    if facets and accuracy is None:
        scores = with_facets(scores, facets)
        options, about = options | {"random": facets}, facet_sentence(cells_of(scores))
    if accuracy is not None:
        if facets:
            raise ValueError("random facets are of scores as they are, not of those that labels correct")
        if peek or bounds is not None:
            raise ValueError("peek and bounds are for scores as they are: corrected ones have no p-value for all looks")
        options = {"margin": margin, "judge": judge, "estimator": estimator}
        tasks, warnings = [(None, accuracy)], []
        level, seed = accuracy.settings.level, accuracy.settings.seed
    else:
        scores = as_item_scores(scores)
        groups, warnings = scores.benchmark, [*scores.notes]
        tasks = [(None, scores)]
        if groups is not None and len(groups.names) > 1:
            tasks = [(name, of_items(scores, groups.number == k)) for k, name in enumerate(groups.names)]
    rows = []
    places = None if accuracy is not None else [place_of(tasks[0][1], model) for model in (a, b)]
    for task, of_task in tasks:
        if places is not None and len(tasks) > 1 and (text := _lacks(of_task, places)):
            rows.append({"task": task, "flags": text})
            continue
        comparison = compare_scores(of_task, a, b, **options)
        rows.append({"task": task, **_row(comparison, margin, level, peek)})
        warnings += [text if task is None else f"{visible_line(str(task))}: {text}" for text in comparison.status]
    table = _judged(
        PlainTable.of_rows([[row.get(x, _WITHOUT[x]) for x in _COLUMNS] for row in rows], _COLUMNS), 1 - level
    )
    with_kinds(table, ends_of="difference")
    failed, passed = (table["verdict"] == "FAIL").any(), (table["verdict"] == "PASS").all()
    verdict: Verdict = "FAIL" if failed else "PASS" if passed else "INCONCLUSIVE"
    lacking = [
        f"{visible_line(str(row['task']))} ({row['flags']})" for row in table.records() if row["n_items"] is None
    ]
    if lacking:
        warnings.append(f"{counted(len(lacking), 'task')} cannot be compared: {named(lacking, _NAMED)}")
    settings: dict[str, Any] = {"margin": float(margin), "peek": bool(peek), "level": float(level), "seed": seed}
    settings |= {"random": facets, "about": about} if facets else {}
    return ScoreGate(a, b, verdict, table, tuple(dict.fromkeys(warnings)), settings)


_COLUMNS = ("task", "verdict", "difference", "lower", "upper", "p_pass", "p_fail", "p_pass_holm", "p_fail_holm",
            "n_items", "items_more", "flags")  # fmt: skip
_WITHOUT = {**dict.fromkeys(_COLUMNS, np.nan), "task": None, "verdict": "", "flags": ""}


def _lacks(scores: ItemScores, places: list[int]) -> str:
    there = ~np.isnan(scores.scores[:, 0][:, places])
    if (shared := int(there.all(1).sum())) >= 2:
        return ""
    alone = [
        str(scores.models[place]) for place, has in zip(places, np.any(there, axis=0).tolist(), strict=True) if has
    ]
    return f"only {visible_line(alone[0])} has it" if len(alone) == 1 else f"{counted(shared, 'item')} that both have"


def _row(comparison: ScoreComparison, margin: float, level: float, peek: bool) -> dict[str, Any]:
    p_pass, p_fail = comparison.p_non_inferior, comparison.p_inferior
    if peek:
        p_pass, p_fail = comparison.p_anytime_non_inferior, comparison.p_anytime_inferior
    flags = ""
    if p_pass != p_pass:
        status = "; ".join(text for text in comparison.status if "McNemar" not in text)
        flags = "there are clusters or weights, or bounds are needed" if peek else status
    return {
        "difference": comparison.difference, "lower": comparison.lower, "upper": comparison.upper,
        "p_pass": p_pass, "p_fail": p_fail, "n_items": comparison.n_items,
        "items_more": _items_more(comparison, margin, level, p_pass, p_fail), "flags": flags,
    }  # fmt: skip


def _items_more(comparison: ScoreComparison, margin: float, level: float, p_pass: float, p_fail: float) -> float:
    """Return how many more items like these decide, with probability `POWER`, if the difference stays as it is.

    Equal differences have no spread; the logarithm of their p-value falls with the number of items.
    """
    n, gap = comparison.n_items, abs(comparison.difference + margin)
    if comparison.settings.get("random"):  # more items do not make what other facets add smaller
        return np.nan
    if np.isnan(comparison.standard_error):
        p = p_pass if comparison.difference > -margin else p_fail
        return _of_needed(n * np.log(1 - level) / np.log(max(p, 1e-300)) if p < 1 else np.nan, n)
    spread = (comparison.upper - comparison.lower) / (2 * normal_quantile(comparison.settings["level"])) * np.sqrt(n)
    if not (gap > 0 and np.isfinite(spread)):
        return np.nan
    needed = (spread * (special.ndtri(level) + special.ndtri(POWER)) / gap) ** 2
    if margin < 1:  # fewer items could all miss losses of this size
        needed = max(needed, np.log(1 - level) / np.log1p(-margin))
    return _of_needed(needed, n)


def _of_needed(needed: float, n: int) -> float:
    return float(np.ceil(max(needed - n, 1))) if needed <= _MOST_TIMES * n else np.nan


def _judged(table: PlainTable, most: float) -> PlainTable:
    p_pass, p_fail = table["p_pass"], table["p_fail"]
    all_pass = bool((p_pass <= most).all())
    by_holm: dict[str, Float] = {"p_pass_holm": holm(p_pass), "p_fail_holm": holm(p_fail)}
    passed = (by_holm["p_pass_holm"] <= most) | all_pass
    failed = by_holm["p_fail_holm"] <= most
    verdict = np.select([failed, passed], ["FAIL", "PASS"], "INCONCLUSIVE")
    more = np.where(verdict == "INCONCLUSIVE", table["items_more"], np.nan)
    whole = {
        name: np.asarray(x, float).view(Whole) for name, x in (("n_items", table["n_items"]), ("items_more", more))
    }
    return table.assign(verdict=verdict.astype(object), **by_holm, **whole)
