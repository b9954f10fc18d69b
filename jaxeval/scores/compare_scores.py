"""Paired comparisons of the scores of two models, and of many with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxeval.arrays import Bool
from jaxeval.checks import check_choice, checked_integer
from jaxeval.data.columns import plain
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import Names, PlainTable
from jaxeval.scores import facets, paired_tests
from jaxeval.scores.estimates import (
    FEW_ITEMS,
    ScoreEstimates,
    accuracy_of,
    as_item_scores,
    estimate_scores,
    few_units_text,
)
from jaxeval.scores.paired_tests import Alternative
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Result
from jaxeval.statistics.clusters import few_clusters_text
from jaxeval.statistics.p_values import holm
from jaxeval.statistics.quantiles import checked_level
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted, did_you_mean, in_points, named, visible_line

if TYPE_CHECKING:
    from jaxeval.accuracy.judge_accuracy import JudgeAccuracy

_NO_VARIANCE = "no observed variance of the difference"
#: Tests over items alone.
_OF_ITEMS = ("p_mcnemar", "p_sign_flip", "p_anytime", "p_anytime_non_inferior", "p_anytime_inferior")
(_ONE_CLUSTER,) = few_clusters_text(1)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ScoreComparison(Result):
    """The score of one model less that of another on the items that both have.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.compare_scores(jaxeval.simulate_scores(500, 3), "model-1", "model-3")
        >>> print(f"{found.difference:.2f} [{found.lower:.2f}, {found.upper:.2f}], p {found.p_mcnemar:.1g}")
        0.12 [0.07, 0.18], p 6e-06
    """

    a: Any
    b: Any
    difference: float  # score of a less that of b
    lower: float  # NaN without observed variance
    upper: float
    standard_error: float  # NaN without observed variance
    p_mcnemar: float = np.nan  # exact; NaN unless all scores are 0 or 1 and items are drawn by themselves
    p_sign_flip: float = np.nan
    p_student: float
    p_anytime: float = np.nan  # valid at every look at growing data; NaN for scores without bounds
    n_flips: int = 0  # random flips behind ``p_sign_flip``; 0 where it is exact
    p_non_inferior: float = np.nan  # of the null that a is worse than b by the margin or more; NaN without a margin
    p_inferior: float = np.nan  # of the null that a is worse than b by the margin at most; NaN without a margin
    p_equivalent: float = np.nan  # of the null that they differ by the margin or more; NaN without a margin
    p_anytime_non_inferior: float = np.nan  # as ``p_non_inferior``, valid at every look; NaN where ``p_anytime`` is
    p_anytime_inferior: float = np.nan  # as ``p_inferior``, likewise
    only_a: int  # items on which a has the higher score
    only_b: int
    n_items: int  # that both have
    n_left_out: int = 0  # items that one of the two lacks
    status: tuple[str, ...]  # what is not there, and why
    settings: dict[str, Any] = field(repr=False)

    def _shown(self) -> Answer:
        names = ("difference", "lower", "upper", "p_mcnemar", "p_sign_flip", "p_student", "only_a", "only_b", "n_items")
        table = with_kinds(PlainTable({name: [getattr(self, name)] for name in names}), ends_of="difference")
        title = f"ScoreComparison: {visible_line(str(self.a))} less {visible_line(str(self.b))}"
        return Answer(title, table, self.settings, self.status)

    def _sentences(self) -> list[str]:
        a, b = visible_line(str(self.a)), visible_line(str(self.b))
        tests = {"McNemar's exact test": self.p_mcnemar, "sign flips": self.p_sign_flip}
        test, p = next(((name, p) for name, p in tests.items() if p == p), ("its standard error", self.p_student))
        if self.difference != self.difference:
            return [f"{a} and {b} cannot be compared: {'; '.join(self.status)}"]
        side = "above" if self.difference > 0 else "below" if self.difference < 0 else "equal to"
        is_open = self.lower <= 0 <= self.upper and self.lower < self.upper
        # Where few answers differ, the exact test asks for more than the interval does.
        is_open |= self.settings["alternative"] == "two-sided" and p > 1 - self.settings["level"]
        order = f"{a} and {b} are not told apart" if is_open else f"{a} is {side} {b}"
        ends = "" if self.lower != self.lower else f" [{in_points(self.lower, '+')}, {in_points(self.upper, '+')}]"
        counts = f"{counted(self.only_a, 'item')} for {a}, {self.only_b:,} for {b}, of {self.n_items:,}"
        if (self.only_a - self.only_b) * self.difference < 0:
            counts += ", which do not count alike"
        judged = "judge" in self.settings
        by = f"p {p:.2g} by {test}" if p == p else "no p-value"
        about = f"{self.settings['about']}: " if "about" in self.settings else ""
        if self.settings.get("lone"):
            lone = named(list(map(visible_line, self.settings["lone"])))
            return [f"{about}no interval and no p-value, as {lone} has one level; the difference is "
                    f"{in_points(self.difference, '+')}"]  # fmt: skip
        sentences = [
            f"{about}{order}: difference {in_points(self.difference, '+')}{ends}, {by}"
            f"{'' if judged else f' ({counts})'}"
        ]
        if judged:
            sentences.append(f"the judge alone, on what has no label: {counts}")
        margin = self.settings["margin"]
        if margin is not None:
            ps = f"not worse p {self.p_non_inferior:.2g}, equivalent p {self.p_equivalent:.2g}"
            sentences.append(f"with a margin of {margin:g}: {ps}")
        return sentences

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the comparison lacks, and why; the same as ``status``."""
        return self.status


def compare_scores(
    scores: ItemScores | JudgeAccuracy | Any,
    a: Any,
    b: Any,
    *,
    random: str | Sequence[str] = (),
    judge: str | None = None,
    estimator: str | None = None,
    margin: float | None = None,
    alternative: Alternative = "two-sided",
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> ScoreComparison:
    """Return the paired difference of two models' scores, with its interval and exact tests.

    The items that both models have are compared; several trials of an item are averaged first. Right and wrong answers
    have Tango's score interval and tests of a margin, which hold where hardly any answers differ; with clusters, of
    their effective number of items. Other scores, weights and several benchmarks have Student's over the differences
    of items, or of clusters, which are also the units of all tests. McNemar's exact test is for right and wrong answers
    on items that count alike. Sign flips are for all scores; for right and wrong ones they are the same test.

    Args:
        scores: `ItemScores`, or a table as for `score_leaderboard`. Or what `judge_accuracy` gives: scores by a judge,
            corrected by human labels. Then its level and seed are used, and of the tests only those that belong to the
            interval: ``p_student``, and with a margin ``p_non_inferior`` and ``p_equivalent``. Items are counted by the
            judge's scores of the answers without a label.
        a: a model.
        b: the model that ``a`` is compared with.
        random: columns of what another evaluation would draw anew besides items: judges, prompts, seeds. Intervals and
            p-values are then about others like these, by Student's t with few degrees of freedom (see
            `error_budget`); tests over items alone are left out. A facet with one level gives no interval.
        judge: of judge accuracies, the judge whose scores are compared; needed where there are several.
        estimator: of judge accuracies, the correction: a name in the column "estimator" of its table; by default as
            in `score_leaderboard`.
        margin: above 0, in points of the score: the difference that would matter. It gives a p-value for the claim that
            a is not worse than b by the margin (non-inferiority), and one for the claim that the two differ by less
            than the margin (equivalence, two one-sided tests).
        alternative: "two-sided", or that the score of a is "greater" or "less". The interval is two-sided.
        bounds: the least and the greatest score that there can be, for p-values that hold at every look
            (``p_anytime``, and with a margin ``p_anytime_non_inferior``); 0 and 1 by default, where all scores lie
            between them.
        level: of the interval.
        seed: of random sign flips, where there are too many for all.

    Raises:
        DataError: a model is not there, or is compared with itself; fewer than two items are shared; the table cannot
            be read.
        ValueError: an option is invalid.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.compare_scores(jaxeval.simulate_scores(20, 3), "model-1", "model-3")
        >>> found.p_mcnemar, found.p_sign_flip, found.only_a, found.only_b
        (0.2890625, 0.2890625, 6, 2)
    """
    (comparison,), _, _ = _compared(
        scores, lambda source: [places_of(source, a, b)], random, judge=judge, estimator=estimator, margin=margin,
        alternative=alternative, level=level, seed=seed, bounds=bounds,
    )  # fmt: skip
    return comparison


def _compared(
    scores: Any, pairs: Callable[[Any], list[list[int]]], random: str | Sequence[str], *, judge: str | None,
    estimator: str | None, margin: float | None, alternative: Alternative, level: float, seed: int,
    bounds: tuple[float, float] | None = None,
) -> tuple[list[ScoreComparison], Any, facets.FacetCells | None]:  # fmt: skip
    """Return the comparisons of the ``pairs`` of what scores are read as, this, and the cells of random facets."""
    checked_level(level)
    checked_integer("seed", seed)
    check_choice("alternative", alternative, ("two-sided", "greater", "less"))
    if margin is not None and not (isinstance(margin, int | float) and np.isfinite(margin) and margin > 0):
        raise ValueError(f"margin must be a finite number above 0, got {margin!r}")
    accuracy = accuracy_of(scores)
    if facet_names(random):
        if accuracy is not None:
            raise DataError(
                "random facets are of scores; a judge's scores that labels correct have theirs in judge_accuracy"
            )
        source = facets.with_facets(scores, random)
        cells = facets.cells_of(source)
        arguments = margin, alternative, level, seed
        return [_compare_under(source, cells, pair, *arguments) for pair in pairs(source)], source, cells
    if accuracy is None:
        source = as_item_scores(scores)
        each = [_compare(source, pair, margin, alternative, level, seed, bounds) for pair in pairs(source)]
        return each, source, None
    from jaxeval.scores.judged_board import judged_differences

    paired_tests.check_margin(margin, 1.0 if accuracy.binary else np.inf)
    fields = judged_differences(accuracy, pairs(accuracy), judge, estimator, margin, alternative)
    return [ScoreComparison(**of_pair) for of_pair in fields], accuracy, None


def _compare_under(
    scores: ItemScores, cells: facets.FacetCells, places: list[int], margin: float | None, alternative: Alternative,
    level: float, seed: int,
) -> ScoreComparison:  # fmt: skip
    """Compare as `_compare` does, where facets besides items are drawn anew."""
    alone = facets.over_items(scores, cells, places)
    comparison = _compare(alone, [0, 1], margin, alternative, level, seed)
    errors = facets.errors_of(cells, [(places[0], places[1])], cells.shared(places))
    items = estimate_scores(*paired(alone, [0, 1]))
    ends = facets.widened(
        errors, np.array([comparison.lower]), np.array([comparison.upper]), items.variance, items.dof, level
    )
    error, dof = float(np.sqrt(errors.variance[0])), float(errors.dof[0])

    def p_of(gap: float, other: float, side: Alternative) -> float:
        """Return a p-value that is never more lenient than the test over items alone."""
        return float(np.maximum(paired_tests.student_p(gap, error, dof, side), other))

    tests: dict[str, Any] = dict.fromkeys(_OF_ITEMS, np.nan)
    if margin is not None:
        no_worse = p_of(comparison.difference + margin, comparison.p_non_inferior, "greater")
        worse = p_of(comparison.difference + margin, comparison.p_inferior, "less")
        equivalent = max(no_worse, p_of(comparison.difference - margin, comparison.p_equivalent, "less"))
        tests |= {"p_non_inferior": no_worse, "p_inferior": worse, "p_equivalent": equivalent}
    not_told = [text for text in comparison.status if "McNemar" not in text and "sign flips" not in text]
    return replace(
        comparison, lower=float(ends[0][0]), upper=float(ends[1][0]), standard_error=error,
        **tests, n_flips=0,
        p_student=p_of(comparison.difference, comparison.p_student, alternative),
        status=(*facets.facet_warnings(cells, errors.design), *not_told),
        settings=comparison.settings
        | {"random": cells.facets, "about": facets.facet_sentence(cells), "lone": errors.alone},
    )  # fmt: skip


def compare_with_baseline(
    scores: ItemScores | JudgeAccuracy | Any,
    baseline: Any,
    *,
    random: str | Sequence[str] = (),
    judge: str | None = None,
    estimator: str | None = None,
    margin: float | None = None,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare every model with a baseline: paired differences, with p-values adjusted for their number by Holm's steps.

    Args:
        scores: as in `compare_scores`.
        baseline: the model that all others are compared with.
        random, judge, estimator, margin, alternative, seed: as in `compare_scores`.
        level: of each interval by itself.

    Returns:
        One row per model, the largest difference first: ``model``, ``difference``, ``lower``, ``upper``,
        ``standard_error``, ``p`` (McNemar's where it is defined, else that of sign flips; of a judge's scores
        Student's), ``p_holm``, with a margin ``p_non_inferior`` and ``p_equivalent``, ``only_model``,
        ``only_baseline``, ``n_items``, ``flags``.

    Raises:
        DataError, ValueError: as by `compare_scores`.

    Examples:
        >>> import jaxeval
        >>> table = jaxeval.compare_with_baseline(jaxeval.simulate_scores(1_000, 3), "model-3")
        >>> table[["model", "difference", "p", "p_holm"]].round(3)
             model  difference      p  p_holm
        0  model-1       0.131  0.000   0.000
        1  model-2       0.050  0.008   0.008
    """

    def pairs(source: Any) -> list[list[int]]:
        beside = place_of(source, baseline)
        if len(source.models) < 2:
            raise DataError(f"{plain(baseline)!r} is the only model: there is no other to compare it with")
        return [[m, beside] for m in range(len(source.models)) if m != beside]

    comparisons, source, cells = _compared(
        scores, pairs, random, judge=judge, estimator=estimator, margin=margin, alternative=alternative, level=level,
        seed=seed,
    )  # fmt: skip
    accuracy = accuracy_of(scores)
    if accuracy is not None:
        level, seed = source.settings.level, source.settings.seed
    p = np.array([next((p for p in (x.p_mcnemar, x.p_sign_flip) if p == p), x.p_student) for x in comparisons])
    flags = [
        x.status[0] if accuracy is not None or x.settings.get("lone")
        else _ONE_CLUSTER if _ONE_CLUSTER in x.status else _NO_VARIANCE
        for x in comparisons
    ]  # fmt: skip

    def columns(*names: str) -> dict[str, Any]:
        return {name: [getattr(x, name) for x in comparisons] for name in names}

    rows: dict[str, Any] = {
        "model": [x.a for x in comparisons], **columns("difference", "lower", "upper", "standard_error"),
        "p": p, "p_holm": holm(p), **(columns("p_non_inferior", "p_equivalent") if margin is not None else {}),
        "only_model": [x.only_a for x in comparisons], "only_baseline": [x.only_b for x in comparisons],
        **columns("n_items"),
        "flags": [text if np.isnan(x.standard_error) else "" for x, text in zip(comparisons, flags, strict=True)],
    }  # fmt: skip
    table = pd.DataFrame(rows).sort_values("difference", ascending=False, ignore_index=True, kind="stable")
    settings = {"baseline": plain(baseline), "alternative": alternative, "level": float(level), "seed": seed}
    left_out = max(x.n_left_out for x in comparisons)
    text = f"up to {counted(left_out, 'item')} that the model or the baseline lacks are left out of a comparison"
    apart, beside_it = table[table["p_holm"] <= 1 - settings["level"]], visible_line(str(plain(baseline)))
    above, below = (apart["difference"] > 0).sum(), (apart["difference"] < 0).sum()
    answer = f"of {len(table):,} models {above:,} are above {beside_it} and {below:,} below it, by Holm's steps at "
    warnings = [text] if left_out else []
    if cells is not None:
        answer, settings = f"{facets.facet_sentence(cells)}: {answer}", {**settings, "random": cells.facets}
        warnings += list(dict.fromkeys(text for x in comparisons for text in x.status if text not in warnings))
    table.attrs = {"answer": f"{answer}{settings['level']:g}", "warnings": warnings, "settings": settings}
    title = f"{counted(len(table), 'model')} beside {beside_it}"
    from jaxeval.show.table import Table

    return Table.of(table, title, ("model", "difference", "lower", "upper", "p", "p_holm"), "difference")


def place_of(scores: ItemScores | JudgeAccuracy | facets.FacetCells, model: Any) -> int:
    """Return the position of a model."""
    if model not in scores.models:
        raise DataError(
            f"no model is called {model!r}, of {counted(len(scores.models), 'model')}"
            f"{did_you_mean(model, scores.models)}"
        )
    return int(scores.models.get_loc(model))


def places_of(scores: ItemScores | JudgeAccuracy | facets.FacetCells, a: Any, b: Any) -> list[int]:
    """Return the positions of two models."""
    places = [place_of(scores, model) for model in (a, b)]
    if places[0] == places[1]:
        raise DataError(f"{plain(a)!r} is compared with itself: name two models")
    return places


def paired(scores: ItemScores, places: Sequence[int]) -> tuple[ItemScores, Bool]:
    """Return one model's score less another's on each item, and the (I,) items that both have."""
    pair = scores.scores[:, 0][:, list(places)]
    shared = np.asarray(~np.isnan(pair).any(1))
    if shared.sum() < 2:
        a, b = (plain(scores.models[place]) for place in places)
        raise DataError(
            f"{a!r} and {b!r} share {counted(int(shared.sum()), 'item')}, of {len(pair):,}: a comparison needs two or "
            "more"
        )
    difference: Any = Names(["difference"])
    return replace(scores, scores=(pair[:, 0] - pair[:, 1])[:, None, None], models=difference), shared


def _compare(
    scores: ItemScores, places: list[int], margin: float | None, alternative: Alternative, level: float, seed: int,
    bounds: tuple[float, float] | None = None,
) -> ScoreComparison:  # fmt: skip
    a, b = (plain(scores.models[place]) for place in places)
    pair = scores.scores[:, 0][:, places]
    differences, shared = paired(scores, places)
    one = np.isnan(pair).sum(1) == 1
    widest = bounds or ((0.0, 1.0) if ((pair[shared] >= 0) & (pair[shared] <= 1)).all() else (-np.inf, np.inf))
    paired_tests.check_margin(margin, widest[1] - widest[0])
    apart = differences.scores[:, 0, 0]
    estimates = estimate_scores(differences, shared)
    difference, error, dof = float(estimates.score[0]), float(estimates.standard_errors[0]), float(estimates.dof[0])
    assert estimates.parts is not None
    parts = estimates.parts[:, 0]
    several = scores.benchmark is not None and len({*scores.benchmark.number[shared].tolist()}) > 1
    weighted = scores.weight is not None or several
    p_flip, n_flips = paired_tests.sign_flips(parts, seed, alternative)
    anytime, scale, known = paired_tests.anytime_test(parts, estimates, pair[shared], bounds, weighted)
    only_a, only_b = int((apart > 0).sum()), int((apart < 0).sum())
    graded = not np.isin(pair[shared], (0.0, 1.0)).all()
    alone = not graded and estimates.unit == "item" and not weighted
    if graded:
        lower, upper, p_beyond = paired_tests.interval_of_scores(estimates, level, anytime, scale, known)
    else:
        lower, upper, p_beyond = paired_tests.interval_of_answers(differences, shared, level)
    unlike = int((np.abs(parts) > 1e-12 * np.abs(parts).max()).sum())
    status = _status(estimates, graded, alone, n_flips, int(one.sum()), np.isfinite(lower))
    p_student = paired_tests.student_p(difference, error, dof, alternative)
    least = paired_tests.least_p(unlike, alternative)
    return ScoreComparison(
        a=a, b=b, difference=difference, lower=lower, upper=upper, standard_error=error,
        p_mcnemar=float(paired_tests.mcnemar(only_a, only_b, alternative)) if alone else np.nan, p_sign_flip=p_flip,
        p_student=float(np.maximum(p_student, least)), p_anytime=anytime(alternative, 0.0), n_flips=n_flips,
        **paired_tests.of_margin(margin, p_beyond, anytime), only_a=only_a, only_b=only_b, n_items=int(shared.sum()),
        n_left_out=int(one.sum()), status=tuple(status),
        settings={"unit": estimates.unit, "margin": margin, "alternative": alternative, "level": float(level),
                  "seed": seed},
    )  # fmt: skip


def _status(
    estimates: ScoreEstimates, graded: bool, alone: bool, n_flips: int, n_left_out: int, known: bool
) -> list[str]:
    texts = []
    if n_left_out:
        texts.append(f"{counted(n_left_out, 'item')} that one of the two lacks: left out")
    if graded:
        texts.append("no McNemar test: it is for right and wrong answers, and some scores are neither 0 nor 1")
    elif not alone:
        texts.append(
            "no McNemar test: it takes items as independent and alike, and there are clusters, weights or benchmarks, "
            "so that it, or Cochran, Mantel and Haenszel's, would test another difference; sign flips test this one"
        )
    if estimates.in_one_cluster:
        texts.append(_ONE_CLUSTER)
    elif np.isnan(estimates.standard_errors[0]):
        texts.append(_NO_VARIANCE if known else f"{_NO_VARIANCE}: no interval")
    if not estimates.in_one_cluster and estimates.n_effective < FEW_ITEMS:
        texts.append(f"{few_units_text(estimates)}: rely on the exact tests more than on the interval")
    if n_flips:
        texts.append(f"the p-value of sign flips is of {n_flips:,} random ones")
    return texts
