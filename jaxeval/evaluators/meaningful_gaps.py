"""Does an improvement of so many points mean anything? The probability that gold agrees, by the gap of the scores.

A logistic regression gives the probability: a straight line in the logit. Tables show beside it the share of agreeing
pairs among those of similar gaps, which supposes no line, and the result of a test of the line.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from jaxeval.arrays import Float, as_leaf
from jaxeval.checks import checked_number, checked_positive
from jaxeval.evaluators import resamples
from jaxeval.evaluators.model_scores import FEW_PAIRS, OK, Gold, ModelScores, Scores, of_evaluators
from jaxeval.evaluators.rank_correlation import CONSTANT, CONSTANT_GOLD, FEW_SCORED
from jaxeval.execution.shapes import Step, padded
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.rank_agreement import GapQuestion, GapRegression, gap_regression, tau_b
from jaxeval.kernels.solve import Status
from jaxeval.lazy_names import jax
from jaxeval.options.resampling import RunningOptions
from jaxeval.resampling.units import pad
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Shown
from jaxeval.statistics.quantiles import centred
from jaxeval.wording import counted

if TYPE_CHECKING:
    from jaxeval.options.arguments import KendallTauArguments

ALL_AGREE, NONE_AGREE = "gold agrees on every pair", "gold agrees on no pair"
NEVER, AT_ONCE, FAILED = "never reached", "reached at any gap", "the regression did not converge"
FALLS, BEYOND = "agreement falls with the gap", "beyond the largest gap"

_TOLERANCE_LOGIT = 1e-9
_MOST_BINS = 8
_WORTH_A_START = 2**20  # pairs times resamples


@dataclass(frozen=True, eq=False, repr=False)
class AgreementFits(Shown):
    """Regressions of agreement with gold on the gap of scores, of the data and of the resamples."""

    scores: ModelScores
    settings: resamples.EvaluatorResamples
    ridge: float
    regressions: GapRegression  # (1 + B, E)
    edges: Float  # (E, G + 1) of bins of the gap with about the same number of pairs each; infinite beyond the last

    def _shown(self) -> Answer:
        title = f"AgreementFits: {counted(len(self.scores.evaluators), 'evaluator')}"
        return self.scores._shown()._replace(title=title, settings=self.settings)

    def only(self, evaluators: Sequence[Any]) -> AgreementFits:
        """Return the fits of some of the evaluators; nothing is fitted again."""
        k = self.scores.evaluators.get_indexer(pd.Index(evaluators))
        regressions = jax.tree.map(lambda x: x[:, k], self.regressions)
        return replace(self, scores=self.scores.of(k), regressions=regressions, edges=self.edges[k])

    def by_gap(self, deltas: Sequence[float] | ArrayLike) -> pd.DataFrame:
        """Return the table that `agreement_by_gap` describes."""
        gaps = resamples.checked_deltas(deltas, finite=True)
        aligned, settings, fits = self.scores, self.settings, self.regressions
        probability = expit(fits.intercept[..., None] + fits.slope[..., None] * gaps)
        # No pair shows what happens beyond the largest gap, so the regression gives no probability there.
        beyond = gaps > _largest_gaps(aligned)[:, None]
        probability = np.where(beyond, np.nan, probability)
        sums = resamples.resampled_delta_sums(aligned, gaps, settings)
        below = (1 + tau_b(sums)) / 2
        bins = np.stack([np.searchsorted(edges, gaps, side="right") - 1 for edges in self.edges])
        near = np.clip(bins, 0, fits.bin_pairs.shape[-1] - 1)[None]
        observed = np.where(beyond, np.nan, np.take_along_axis(self._observed(), near, 2))
        status = _status(aligned, fits)[:, None]
        similar = np.take_along_axis(np.asarray(fits.bin_pairs[:1]), near, 2)[0]
        columns: dict[str, Any] = {
            "probability": probability[0],
            "average_below": below[0],
            "n_pairs": sums.pairs[0].astype(int),
            "observed": observed[0],
            "n_observed": np.where(beyond, 0, similar).astype(int),
            "n_ordered": fits.pairs[0].astype(int),
            "n_models": aligned.n_models,
            "n_missing": aligned.n_missing,
            "status": np.where(beyond & (status == OK), BEYOND, status),
        }
        for name, values in (("average_below", below), ("observed", observed)):
            for key, ends in resamples.interval_columns(values, settings, 0.0, 1.0).items():
                if key != "failed_share":
                    columns[f"{name}_{key}"] = ends
        columns |= resamples.interval_columns(probability, settings, 0.0, 1.0, centre=False)
        if settings.n_resamples:
            columns["lack_of_fit"] = self.lack_of_fit
        return self._table([("delta", gaps)], columns)

    def smallest_gap(self, probability: float = 0.75) -> pd.DataFrame:
        """Return the table that `smallest_gap` describes."""
        _check_probability(probability)
        aligned, settings, fits = self.scores, self.settings, self.regressions
        most = _largest_gaps(aligned)
        gap = _gap_at(fits, probability, most)
        status = _status(aligned, fits)
        known = np.isin(status, (OK, ALL_AGREE, NONE_AGREE))
        falls = (np.asarray(fits.slope[0]) < 0) & np.isinf(gap[0])
        status = np.where((status == OK) & falls, FALLS, status)
        status = np.where((status == OK) & np.isinf(gap[0]), NEVER, status)
        status = np.where((status == OK) & (gap[0] == 0), AT_ONCE, status)
        columns: dict[str, Any] = {
            "delta": np.where(known, gap[0], np.nan),
            "largest_gap": most,
            "n_pairs": fits.pairs[0].astype(int),
            "n_models": aligned.n_models,
            "n_missing": aligned.n_missing,
            "status": status,
            **resamples.interval_columns(gap, settings, 0.0, np.inf, centre=False),
        }
        if settings.n_resamples:
            columns["reached_share"] = np.isfinite(gap[1:]).mean(0)
            columns["lack_of_fit"] = self.lack_of_fit
        table = with_kinds(self._table([], columns), gap="delta")
        table.attrs["settings"]["probability"] = probability
        return table

    @cached_property
    def misfit(self) -> Float:
        """(1 + B, E, G) share of agreeing pairs in every bin of gaps less that of the regression; NaN without pairs."""
        expected, n = np.asarray(self.regressions.bin_expected), np.asarray(self.regressions.bin_pairs)
        return np.asarray(self._observed() - expected / np.where(n > 0, n, np.nan))

    @cached_property
    def lack_of_fit(self) -> NDArray[np.bool_]:
        """(E,) whether agreement is not logistic in the gap, at the level of the intervals; False without resamples.

        Each bin's misfit is divided by its standard error. The largest over the bins is compared with the same maximum
        in the resamples, whose misfits are taken from their mean. A misfit of less than one pair does not count; nor
        does that of an evaluator whose regression is finite only by the ridge.
        """
        misfit, draws = self.misfit[0], self.misfit[1:]
        if len(draws) == 0:
            return np.zeros(len(misfit), bool)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # bins without pairs
            error = np.nanstd(draws, 0)
            error = np.where(error > 0, error, np.nan)
            far = np.nanmax(np.abs(draws - np.nanmean(draws, 0)) / error, -1)
            a_pair = np.abs(misfit) * np.asarray(self.regressions.bin_pairs[0]) >= 1
            largest = np.nanmax(np.where(a_pair, np.abs(misfit), 0.0) / error, -1)
            unfit = largest > np.nanquantile(far, self.settings.level, axis=0)
        return np.asarray(unfit & (_status(self.scores, self.regressions) == OK))

    def _observed(self) -> Float:
        """Return (1 + B, E, G) share of agreeing pairs in every bin."""
        n = np.asarray(self.regressions.bin_pairs)
        return np.asarray(self.regressions.bin_agreeing) / np.where(n > 0, n, np.nan)

    def _table(self, inner: Sequence[tuple[str, Any]], columns: dict[str, Any]) -> pd.DataFrame:
        table = resamples.evaluator_table(self.scores, inner, columns, self.settings)
        table.attrs["settings"]["ridge"] = self.ridge
        if self.lack_of_fit.any():
            worst = [self._worst_misfit(e) if unfit else "" for e, unfit in enumerate(self.lack_of_fit)]
            table.attrs["warnings"].append(
                "agreement is not logistic in the gap, so probabilities, gaps and their intervals may be off (see "
                "the observed shares): " + of_evaluators(self.scores, self.lack_of_fit, worst)
            )
        return table

    def _worst_misfit(self, e: int) -> str:
        worst = int(np.nanargmax(np.abs(self.misfit[0, e])))
        low, high = self.edges[e, worst], min(self.edges[e, worst + 1], _largest_gaps(self.scores)[e])
        misfit = self.misfit[0, e, worst]
        return (
            f"{abs(misfit):.2f} {'above' if misfit > 0 else 'below'} the regression at gaps of {low:.3g} to {high:.3g} "
            f"points, {counted(float(self.regressions.bin_pairs[0, e, worst]), 'pair')}"
        )


@spelled_out(resamples.EvaluatorResamples, RunningOptions)
def agreement_fits(
    scores: Scores, gold: Gold, *, ridge: float = 0.01, **options: Unpack[KendallTauArguments]
) -> AgreementFits:
    """Fit the regressions behind `agreement_by_gap` and `smallest_gap` once, for any number of calls of both."""
    checked_positive("ridge", ridge)
    aligned, settings = resamples.opened(scores, gold, options)
    edges = _bins(aligned)
    return AgreementFits(aligned, settings, ridge, _fits(aligned, ridge, edges, settings), edges)


@spelled_out(resamples.EvaluatorResamples, RunningOptions)
def agreement_by_gap(
    scores: Scores,
    gold: Gold,
    deltas: Sequence[float] | ArrayLike,
    *,
    ridge: float = 0.01,
    **options: Unpack[KendallTauArguments],
) -> pd.DataFrame:
    """Return the probability that gold orders two models as the evaluator does, if their scores differ by delta.

    It comes from a logistic regression of agreement on |gap|, over all pairs that the evaluator orders. A tie in gold
    is half an agreement. Pairs share models, so the intervals come from resamples and not from the regression.

    The intervals hold if agreement is logistic in the gap. ``lack_of_fit`` says where bins of pairs show at the level
    of the intervals that it is not, and a warning says by how much. A small misfit goes unnoticed and still costs
    coverage: where gold is the scores plus normal noise, 95 % intervals at large gaps hold the truth 83 to 89 times in
    100. Where items are drawn, the regressions are `centred` in logits.

    Args:
        scores, gold: as in `kendall_tau_delta`, like all other arguments.
        deltas: gaps in the evaluator's points, more than 0 and finite.
        ridge: penalty on the squares of the intercept and of the slope per standard deviation of the gap. It keeps both
            finite where all pairs agree.

    Returns:
        A row per evaluator and delta: ``evaluator`` (if they have names), ``delta``; ``probability`` at that gap, which
        is missing beyond the largest gap between two models; ``average_below``, (1 + tau_delta) / 2, the average over
        the ``n_pairs`` pairs under delta; ``observed``, the share of agreeing pairs among the ``n_observed`` pairs of
        similar gaps (up to eight bins of 15 pairs or more); ``n_ordered``, the pairs of the regression; ``n_models``,
        ``n_missing`` and
        ``status``. With resamples also ``lower`` and ``upper`` of the probability, ``average_below_lower``,
        ``average_below_upper``, ``observed_lower``, ``observed_upper``, ``lack_of_fit`` and ``failed_share``, the share
        of the resamples without a regression; these count as 0 in the lower end and as 1 in the upper one.

    Raises:
        DataError, TypeError, ValueError: as in `kendall_tau_delta`.

    Examples:
        >>> judge, people = [8.1, 7.9, 6.2, 5.0, 4.4, 3.1], [1250, 1270, 1180, 1100, 1090, 1010]
        >>> table = agreement_by_gap(judge, people, [0.5, 1.0], n_resamples=0)
        >>> table[["delta", "probability", "n_ordered"]].round(2)
           delta  probability  n_ordered
        0    0.5         0.66         15
        1    1.0         0.97         15
    """
    gaps = resamples.checked_deltas(deltas, finite=True)
    return agreement_fits(scores, gold, ridge=ridge, **options).by_gap(gaps)


@spelled_out(resamples.EvaluatorResamples, RunningOptions)
def smallest_gap(
    scores: Scores,
    gold: Gold,
    probability: float = 0.75,
    *,
    ridge: float = 0.01,
    **options: Unpack[KendallTauArguments],
) -> pd.DataFrame:
    """Return the smallest gap of scores at which gold agrees with at least ``probability``, by `agreement_by_gap`.

    A gap beyond the largest between two models counts as never reached: no pair shows what happens there.

    Args:
        scores, gold: as in `agreement_by_gap`, like all other arguments.
        probability: between 0.5 and 1.
        ridge: as in `agreement_by_gap`.

    Returns:
        A row per evaluator: ``evaluator`` (if they have names); ``delta``, the gap in the evaluator's points, infinite
        if no gap has the probability and 0 if every gap has it; ``largest_gap`` between two models; ``n_pairs`` that
        the evaluator orders; ``n_models``, ``n_missing`` and ``status``. With resamples also ``lower`` and ``upper``,
        infinite where resamples never reach the probability, ``reached_share``, the share of the resamples that reach
        it, ``failed_share`` and ``lack_of_fit``, as in `agreement_by_gap`.

    Raises:
        DataError, TypeError, ValueError: as in `kendall_tau_delta`.

    Examples:
        >>> judge, people = [8.1, 7.9, 6.2, 5.0, 4.4, 3.1], [1250, 1270, 1180, 1100, 1090, 1010]
        >>> smallest_gap(judge, people, 0.75, n_resamples=0)[["delta", "largest_gap", "status"]].round(2)
           delta  largest_gap status
        0   0.58          5.0     ok
    """
    _check_probability(probability)
    return agreement_fits(scores, gold, ridge=ridge, **options).smallest_gap(probability)


def _check_probability(probability: float) -> None:
    number = checked_number("probability", probability)
    if not 0.5 < number < 1:
        raise ValueError(f"probability must lie between 0.5 and 1, got {number!r}")


def _largest_gaps(scores: ModelScores) -> Float:
    """Return (E,) largest gap between two models; NaN for an evaluator without scores."""
    known = [points[~np.isnan(points)] for points in scores.scores]
    return np.array([np.ptp(points) if len(points) else np.nan for points in known])


def _gaps(scores: ModelScores) -> list[Float]:
    """Return, for every evaluator, the gaps above 0 between two models."""
    first, second = np.triu_indices(len(scores.gold), 1)
    gaps = np.abs(scores.scores[:, first] - scores.scores[:, second])
    return [apart[apart > 0] for apart in gaps]  # False for NaN


def _gap_at(fits: GapRegression, probability: float, most: Float) -> Float:
    """Give (1 + B, E) gap of that probability; 0 if every gap has it, infinite if no gap up to ``most`` (E,) has it."""
    wanted = logit(probability) - np.asarray(fits.intercept)
    slope = np.asarray(fits.slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where agreement falls with the gap, the largest gap must still have the probability.
        always = (wanted <= 0) & (slope * most >= wanted)
        gap = np.where(always, 0.0, np.where((wanted > 0) & (slope > 0), wanted / slope, np.inf))
        gap = np.where(gap > most, np.inf, gap)
    return np.where(np.isnan(wanted), np.nan, gap)


def _bins(scores: ModelScores) -> Float:
    """Give (E, G + 1) edges of bins of the gap, of at least `FEW_PAIRS` pairs each, from 0; infinite after the last."""
    edges = np.full((len(scores.scores), _MOST_BINS + 1), np.inf)
    edges[:, 0] = 0.0
    for e, gap in enumerate(_gaps(scores)):
        n = int(np.clip(len(gap) // FEW_PAIRS, 1, _MOST_BINS))
        inner = np.unique(np.quantile(gap, np.arange(1, n) / n)) if n > 1 else np.empty(0)
        edges[e, 1 : len(inner) + 1] = inner
    return edges


def _fits(scores: ModelScores, ridge: float, edges: Float, settings: resamples.EvaluatorResamples) -> GapRegression:
    """Return (1 + B, E) regressions; NaN where there are no pairs or the iteration did not converge."""
    e, m = scores.scores.shape
    first, second = np.triu_indices(m, 1)
    scale = np.array([(np.std(gap) if len(gap) else 0.0) or gap.max(initial=0.0) or 1.0 for gap in _gaps(scores)])
    # Padding pairs a model with itself: a gap of 0 has no weight.
    ends = [as_leaf(pad(x, (padded(len(x), Step.PAIRS),)), np.int32) for x in (first, second)]

    def fitted(start: Float, settings: resamples.EvaluatorResamples) -> Any:
        question = GapQuestion(
            first=ends[0],
            second=ends[1],
            scale=as_leaf(resamples.in_slots(scale, settings), np.float64),
            start=as_leaf(resamples.in_slots(start, settings), np.float64),
            edges=as_leaf(resamples.in_slots(edges, settings), np.float64),
            ridge=as_leaf(ridge, np.float64),
            tolerance=as_leaf(_TOLERANCE_LOGIT, np.float64),
        )
        return resamples.resampled(gap_regression, scores, (question,), settings, 6 * len(ends[0]))

    start = np.zeros((e, 2))
    if settings.n_resamples and len(ends[0]) * settings.n_resamples > _WORTH_A_START:
        # Resamples' regressions are near that of the data: to start there halves the steps, for one more compilation.
        one = fitted(start, replace(settings, n_resamples=0, run={**settings.run, "progress": False}))
        near = np.stack([one.intercept[0], one.slope[0] * scale], -1)
        start = np.where(np.isfinite(near) & (one.status[0] == Status.CONVERGED)[:, None], near, 0.0)
    fits = fitted(start, settings)
    known = (fits.pairs > 0) & (fits.status == Status.CONVERGED) & ~scores.constant_gold
    intercept, slope = (np.where(known, x, np.nan) for x in (fits.intercept, fits.slope))
    if settings.n_resamples and settings.resample != "models":
        # In logits, and not in gaps, which may be infinite.
        intercept, slope = (np.concatenate([x[:1], centred(x)]) for x in (intercept, slope))
    return fits._replace(intercept=intercept, slope=slope)


def _status(scores: ModelScores, fits: GapRegression) -> NDArray[Any]:
    """Return (E,) "ok", or what is wrong with the regression of the data."""
    pairs, agreeing, code = (np.asarray(x[0]) for x in (fits.pairs, fits.agreeing, fits.status))
    return resamples.first_reason(
        (scores.n_models < 2, FEW_SCORED),
        (pairs == 0, CONSTANT),
        (scores.constant_gold, CONSTANT_GOLD),
        (code != Status.CONVERGED, FAILED),
        (agreeing == pairs, ALL_AGREE),
        (agreeing == 0, NONE_AGREE),
    )
