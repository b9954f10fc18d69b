"""Paired comparisons of the scores of two models, and of many with one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.accuracy.judge_accuracy import JudgeAccuracy
from jaxeval.arrays import Bool, Float
from jaxeval.checks import checked_integer
from jaxeval.data.columns import plain
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.scores.estimates import ScoreEstimates, estimate_scores, student_quantile, unit_parts
from jaxeval.scores.judged_board import judged_differences, judged_place
from jaxeval.scores.paired_tests import Alternative, FlipTest, anytime_p, mcnemar, sign_flips, student_p
from jaxeval.scores.score_leaderboard import FEW_ITEMS, as_item_scores, few_units_text
from jaxeval.statistics.multiplicity import holm
from jaxeval.statistics.quantiles import checked_level
from jaxeval.tables.shown import Shown, View, settings_line
from jaxeval.tables.table import Table
from jaxeval.wording import counted, did_you_mean, visible_line

_NO_VARIANCE = "no observed variance of the difference"


@dataclass(frozen=True, eq=False, repr=False)
class ScoreComparison(Shown):
    """The score of one model less that of another on the items that both have.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> right = {"x": [1, 1, 1, 0] * 50, "y": [1, 1, 0, 0] * 50}
        >>> table = pd.DataFrame(right).rename_axis("item").reset_index()
        >>> found = jaxeval.compare_scores(table.melt("item", var_name="model", value_name="score"), "x", "y")
        >>> print(f"{found.difference:.2f} [{found.lower:.2f}, {found.upper:.2f}], p {found.p_mcnemar:.1g}")
        0.25 [0.19, 0.31], p 2e-15
    """

    a: Any
    b: Any
    difference: float  # score of a less that of b
    lower: float  # NaN without observed variance
    upper: float
    standard_error: float  # NaN without observed variance
    p_mcnemar: float  # exact; NaN unless all scores are 0 or 1 and items are drawn by themselves
    p_sign_flip: float
    p_student: float
    p_anytime: float  # valid at every look at growing data; NaN for scores without bounds
    n_flips: int  # random flips behind ``p_sign_flip``; 0 where it is exact
    p_non_inferior: float  # of the null that a is worse than b by the margin or more; NaN without a margin
    p_equivalent: float  # of the null that they differ by the margin or more; NaN without a margin
    p_anytime_non_inferior: float  # as ``p_non_inferior``, valid at every look; NaN where ``p_anytime`` is, too
    only_a: int  # items on which a has the higher score
    only_b: int
    n_items: int  # that both have
    n_left_out: int  # items that one of the two lacks
    status: tuple[str, ...]  # what is not there, and why
    settings: dict[str, Any] = field(repr=False)

    def _shown(self) -> View:
        names = ("difference", "lower", "upper", "p_mcnemar", "p_sign_flip", "p_student", "only_a", "only_b", "n_items")
        table = pd.DataFrame({name: [getattr(self, name)] for name in names})
        title = f"ScoreComparison: {visible_line(str(self.a))} less {visible_line(str(self.b))}"
        return View(title, table, settings_line(self.settings), self.status)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the comparison lacks, and why; the same as ``status``."""
        return self.status


def compare_scores(
    scores: ItemScores | JudgeAccuracy | Any,
    a: Any,
    b: Any,
    *,
    judge: str | None = None,
    estimator: str = "ppi_plus_plus",
    margin: float | None = None,
    alternative: Alternative = "two-sided",
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> ScoreComparison:
    """The paired difference of two models' scores, with its interval and exact tests.

    The items that both models have are compared; several trials of an item are averaged first. The interval is that of
    Student's t over the differences of items, or of clusters, which are also the units of all tests. McNemar's exact
    test is for right and wrong answers. Sign flips are for all scores; for right and wrong ones they are the same test.

    Args:
        scores: `ItemScores`, or a table as for `score_leaderboard`. Or what `judge_accuracy` gives: scores by a judge,
            corrected by human labels. Then its level and seed are used, and of the tests only those that belong to the
            interval: ``p_student``, and with a margin ``p_non_inferior`` and ``p_equivalent``. Items are counted by the
            judge's scores of the answers without a label.
        a: a model.
        b: the model that ``a`` is compared with.
        judge: of judge accuracies, the judge whose scores are compared; needed where there are several.
        estimator: of judge accuracies, the correction: a name in the column "estimator" of its table.
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
        >>> import pandas as pd
        >>> right = {"x": [1, 1, 1, 1, 0, 1], "y": [1, 0, 0, 0, 0, 1]}
        >>> table = pd.DataFrame(right).rename_axis("item").reset_index()
        >>> found = jaxeval.compare_scores(table.melt("item", var_name="model", value_name="score"), "x", "y")
        >>> found.p_mcnemar, found.p_sign_flip, found.only_a, found.only_b
        (0.25, 0.25, 3, 0)
    """
    _check_options(margin, alternative, level, seed)
    if isinstance(scores, JudgeAccuracy):
        first, second = (judged_place(scores, model) for model in (a, b))
        _reject_itself(first, second, a)
        (own,) = judged_differences(scores, [(first, second)], judge, estimator, margin, alternative)
        return ScoreComparison(**own)
    given = as_item_scores(scores)
    places = [place_of(given, model) for model in (a, b)]
    _reject_itself(places[0], places[1], a)
    return _compare(given, places, margin, alternative, level, seed, bounds)


def _reject_itself(first: int, second: int, a: Any) -> None:
    if first == second:
        raise DataError(f"{plain(a)!r} is compared with itself: name two models")


def compare_with_baseline(
    scores: ItemScores | JudgeAccuracy | Any,
    baseline: Any,
    *,
    judge: str | None = None,
    estimator: str = "ppi_plus_plus",
    margin: float | None = None,
    alternative: Alternative = "two-sided",
    level: float = 0.95,
    seed: int = 0,
) -> pd.DataFrame:
    """Every model beside a baseline: paired differences, with p-values adjusted for their number by Holm's steps.

    Args:
        scores: as in `compare_scores`.
        baseline: the model that all others are compared with.
        judge: as in `compare_scores`.
        estimator: as in `compare_scores`.
        margin: as in `compare_scores`.
        alternative: as in `compare_scores`.
        level: of each interval by itself.
        seed: as in `compare_scores`.

    Returns:
        One row per model, the largest difference first: ``model_name``, ``difference``, ``lower``, ``upper``,
        ``standard_error``, ``p`` (McNemar's where it is defined, else that of sign flips; of a judge's scores
        Student's), ``p_holm``, with a margin ``p_non_inferior`` and ``p_equivalent``, ``only_model``,
        ``only_baseline``, ``n_items``, ``flags``.

    Raises:
        DataError, ValueError: as by `compare_scores`.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> right = {"x": [1, 1, 1, 0] * 5, "y": [1, 1, 0, 0] * 5, "z": [1, 0, 0, 0] * 5}
        >>> table = pd.DataFrame(right).rename_axis("item").reset_index()
        >>> long = table.melt("item", var_name="model", value_name="score")
        >>> jaxeval.compare_with_baseline(long, "z")[["model_name", "difference", "p", "p_holm"]].round(4)
          model_name  difference       p  p_holm
        0          x        0.50  0.0020  0.0039
        1          y        0.25  0.0625  0.0625
    """
    _check_options(margin, alternative, level, seed)
    judged = isinstance(scores, JudgeAccuracy)
    given: Any = scores if judged else as_item_scores(scores)
    beside = judged_place(given, baseline) if judged else place_of(given, baseline)
    if len(given.models) < 2:
        raise DataError(f"{plain(baseline)!r} is the only model: there is no other to compare it with")
    others = [m for m in range(len(given.models)) if m != beside]
    if judged:
        level, seed = given.settings.level, given.settings.seed
        pairs = [(m, beside) for m in others]
        fields = judged_differences(given, pairs, judge, estimator, margin, alternative)
        found = [ScoreComparison(**own) for own in fields]
    else:
        found = [_compare(given, [m, beside], margin, alternative, level, seed) for m in others]
    p = np.array([next((p for p in (x.p_mcnemar, x.p_sign_flip) if p == p), x.p_student) for x in found])
    rows: dict[str, Any] = {
        "model_name": [x.a for x in found],
        **{name: [getattr(x, name) for x in found] for name in ("difference", "lower", "upper", "standard_error")},
        "p": p,
        "p_holm": holm(p),
    }
    if margin is not None:
        rows |= {name: [getattr(x, name) for x in found] for name in ("p_non_inferior", "p_equivalent")}
    rows |= {"only_model": [x.only_a for x in found], "only_baseline": [x.only_b for x in found]}
    rows |= {"n_items": [x.n_items for x in found]}
    flags = [x.status[0] if judged else _NO_VARIANCE for x in found]
    rows |= {"flags": [text if np.isnan(x.standard_error) else "" for x, text in zip(found, flags, strict=True)]}
    table = pd.DataFrame(rows).sort_values("difference", ascending=False, ignore_index=True, kind="stable")
    settings = {"baseline": plain(baseline), "alternative": alternative, "level": float(level), "seed": seed}
    left_out = max(x.n_left_out for x in found)
    text = f"up to {counted(left_out, 'item')} that the model or the baseline lacks are left out of a comparison"
    table.attrs = {"warnings": [text] if left_out else [], "settings": settings}
    title = f"{counted(len(table), 'model')} beside {visible_line(str(plain(baseline)))}"
    return Table.of(table, title, ("model_name", "difference", "lower", "upper", "p", "p_holm"))


def _check_options(margin: float | None, alternative: str, level: float, seed: int) -> None:
    checked_level(level)
    checked_integer("seed", seed)
    if alternative not in ("two-sided", "greater", "less"):
        raise ValueError(f"alternative must be 'two-sided', 'greater' or 'less', got {alternative!r}")
    if margin is not None and not (isinstance(margin, int | float) and np.isfinite(margin) and margin > 0):
        raise ValueError(f"margin must be a finite number above 0, got {margin!r}")


def place_of(scores: ItemScores, model: Any) -> int:
    """The position of a model.

    Raises:
        DataError: there is no model of that name.
    """
    if model not in scores.models:
        raise DataError(
            f"no model is called {model!r}, of {counted(len(scores.models), 'model')}"
            f"{did_you_mean(model, scores.models)}"
        )
    return int(scores.models.get_loc(model))


def paired(scores: ItemScores, places: Sequence[int]) -> tuple[ItemScores, Bool]:
    """The score of one model less that of another on each item, and the (I,) items that both have.

    Raises:
        DataError: they share fewer than two items.
    """
    pair = scores.scores[:, 0][:, list(places)]
    shared = np.asarray(~np.isnan(pair).any(1))
    if shared.sum() < 2:
        a, b = (plain(scores.models[place]) for place in places)
        raise DataError(
            f"{a!r} and {b!r} share {counted(int(shared.sum()), 'item')}, of {len(pair):,}: a comparison needs two or "
            "more"
        )
    differences = ItemScores(
        (pair[:, 0] - pair[:, 1])[:, None, None], scores.items, scores.evaluators, pd.Index(["difference"]),
        cluster=scores.cluster, benchmark=scores.benchmark, weight=scores.weight,
    )  # fmt: skip
    return differences, shared


def _compare(
    given: ItemScores,
    places: list[int],
    margin: float | None,
    alternative: Alternative,
    level: float,
    seed: int,
    bounds: tuple[float, float] | None = None,
) -> ScoreComparison:
    a, b = (plain(given.models[place]) for place in places)
    pair = given.scores[:, 0][:, places]
    differences, shared = paired(given, places)
    one = np.isnan(pair).sum(1) == 1
    apart = differences.scores[:, 0, 0]
    found = estimate_scores(differences, shared)
    difference, error, dof = float(found.score[0]), float(found.standard_errors[0]), float(found.dof[0])
    half = float(student_quantile(level, dof)) * error
    parts = unit_parts(differences, shared)[:, 0]
    weighted = given.weight is not None or given.benchmark is not None
    flips = sign_flips(parts, seed, alternative)
    anytime = _anytime(parts, found, pair[shared], bounds, weighted)
    only_a, only_b = int((apart > 0).sum()), int((apart < 0).sum())
    graded = not np.isin(pair[shared], (0.0, 1.0)).all()
    alone = not graded and given.cluster is None and given.weight is None
    status = _status(found, graded, alone, flips, int(one.sum()))
    non_inferior, below = np.nan, np.nan
    if margin is not None:
        non_inferior = student_p(difference + margin, error, dof, "greater")
        below = student_p(difference - margin, error, dof, "less")
    return ScoreComparison(
        a=a,
        b=b,
        difference=difference,
        lower=difference - half,
        upper=difference + half,
        standard_error=error,
        p_mcnemar=float(mcnemar(only_a, only_b, alternative)) if alone else np.nan,
        p_sign_flip=flips.p,
        p_student=student_p(difference, error, dof, alternative),
        p_anytime=anytime(alternative, 0.0),
        n_flips=flips.n_flips,
        p_non_inferior=non_inferior,
        p_equivalent=max(non_inferior, below),
        p_anytime_non_inferior=np.nan if margin is None else anytime("greater", -margin),
        only_a=only_a,
        only_b=only_b,
        n_items=int(shared.sum()),
        n_left_out=int(one.sum()),
        status=tuple(status),
        settings={
            "unit": found.unit,
            "margin": margin,
            "alternative": alternative,
            "level": float(level),
            "seed": seed,
        },
    )


def _anytime(
    parts: Float, found: ScoreEstimates, pair: Float, bounds: tuple[float, float] | None, weighted: bool
) -> Callable[[Alternative, float], float]:
    """The p-value, of a null, that holds at every look; NaN without bounds, or where units do not count alike."""
    low, high = (0.0, 1.0) if bounds is None else bounds
    inside = pair.min() >= low and pair.max() <= high
    if not high > low or (bounds is not None and not inside):
        raise ValueError(f"bounds must hold all scores, from {pair.min():g} to {pair.max():g}, got {bounds!r}")
    if not inside or found.unit != "item" or weighted:
        return lambda alternative, null: float("nan")
    scaled = parts * len(parts) / (high - low)
    return lambda alternative, null: anytime_p(scaled, alternative, null / (high - low))


def _status(found: ScoreEstimates, graded: bool, alone: bool, flips: FlipTest, n_left_out: int) -> list[str]:
    """What a comparison does not have, and why; what is left out; what is approximate."""
    texts = []
    if n_left_out:
        texts.append(f"{counted(n_left_out, 'item')} that one of the two lacks: left out")
    if graded:
        texts.append("no McNemar test: it is for right and wrong answers, and some scores are neither 0 nor 1")
    elif not alone:
        texts.append("no McNemar test: it takes items as independent and alike, and there are clusters or weights")
    if np.isnan(found.standard_errors[0]):
        texts.append(f"{_NO_VARIANCE}: no interval")
    if found.n_effective < FEW_ITEMS:
        texts.append(f"{few_units_text(found)}: rely on the exact tests more than on the interval")
    if flips.n_flips:
        texts.append(f"the p-value of sign flips is of {flips.n_flips:,} random ones")
    return texts
