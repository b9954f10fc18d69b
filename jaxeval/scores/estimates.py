"""Mean scores of models, and what each unit that another sample would draw anew adds to their errors."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice
from jaxeval.data.columns import plain
from jaxeval.data.item_scores import ItemScores, Trials
from jaxeval.errors import ColumnError, DataError
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import in_pandas
from jaxeval.statistics.clusters import cluster_factors, degrees_of_freedom, effective_clusters
from jaxeval.statistics.item_weights import means_over_weights
from jaxeval.statistics.quantiles import exact_share, skewed_interval, skewness_of, student_quantile
from jaxeval.wording import counted, did_you_mean, named

if TYPE_CHECKING:
    from jaxeval.accuracy.judge_accuracy import JudgeAccuracy

MissingScores = Literal["error", "complete", "available"]
Population = Literal["items", "trials", "benchmarks"]
#: Intervals from fewer units than this depend on how scores are distributed.
FEW_ITEMS = 30
#: With fewer benchmarks "new benchmarks like these" is refused: Student's interval is then as wide as the scale.
FEWEST_BENCHMARKS = 5
#: Standard errors, relative to the largest score, that come from the rounding of equal scores.
_ROUNDING = 1e-13
#: What another evaluation would draw anew, as intervals show how much scores would then vary; in words.
POPULATIONS = {
    "items": "new items like these",  # or clusters of them, within the same benchmarks
    "trials": "these very items, new trials",
    "benchmarks": "new benchmarks like these",
}


@dataclass(frozen=True, eq=False)
class ScoreEstimates:
    """Scores of M models over I items, and the influence of U units on them.

    A unit is an item, a cluster of items, or a benchmark: what another sample draws anew. Unit u moves the score of
    model m by ``influence[u, m]``. Squares of influences sum to the variance of the score: each is scaled by the factor
    that `cluster_factors` gives for the shares of the units in their stratum (of n equal ones, sqrt(n / (n - 1))). A
    stratum of one unit shows no spread, and counts by its distance to the score, with one degree of freedom.

    Where trials are drawn anew, models have trials of their own, and ``influence`` is None.
    """

    models: pd.Index
    score: Float  # (M,)
    influence: Float | None  # (U, M)
    stratum: Int  # (U,) of the units, from 0
    variance: Float  # (M,) of the scores
    dof: Float  # (M,) degrees of freedom of the variance (Satterthwaite)
    n_items: Int  # (M,) items with a score
    unit: str  # what a unit is called
    n_units: int
    worth: Float  # (M,) units of equal size that would hold as much
    binary: bool  # all scores are 0 or 1, and those of a model count alike: a score is a share of items
    bounded: bool  # all scores lie between 0 and 1
    answers: Float | None  # (U, M) scores, NaN where there is none; if binary, and each item is a unit
    parts: Float | None  # (U, M) what each unit adds to the scores, which are the sums; None where trials are drawn
    size: Float | None  # (U, M) shares of the units in the scores; None where trials are drawn

    @property
    def n_effective(self) -> float:
        """Units of equal size that would hold as much, of the model with the fewest."""
        return float(self.worth.min())

    @property
    def in_one_cluster(self) -> bool:
        """Whether there is no other cluster, which an error would need."""
        return self.unit == "cluster" and self.n_units == 1

    @property
    def standard_errors(self) -> Float:
        """(M,) NaN where there is no observed variance."""
        return np.sqrt(np.where(self.variance > 0, self.variance, np.nan))

    @property
    def unseen(self) -> Float:
        """(M,) variances to compare models by: where equal scores show none, as if one more had been at the far end.

        NaN where equal scores are not known to lie between 0 and 1.
        """
        far = np.maximum(self.score, 1 - self.score) / (self.worth + 1) if self.bounded else np.nan
        return np.where(self.variance > 0, self.variance, far**2 * np.ones(len(self.score)))

    @property
    def freedom(self) -> Float:
        """(M,) degrees of freedom of the variances ``unseen``."""
        return np.where(self.variance > 0, self.dof, self.worth - 1)

    def difference_errors(self) -> Float:
        """Return (M, M) standard errors of differences; NaN where the difference has no observed variance.

        A model without observed variance has that of ``unseen``.
        """
        unseen = np.where(self.variance > 0, 0.0, self.unseen)
        if self.influence is None:
            variance = self.variance[:, None] + self.variance
        else:
            products = self.influence.T @ self.influence
            diagonal = products.diagonal()
            variance = diagonal[:, None] + diagonal - 2 * products
            rounding = 1e-12 * (diagonal[:, None] + diagonal)  # of equal columns
            variance = np.where(variance > rounding, variance, 0.0)
        variance = variance + unseen[:, None] + unseen
        return np.sqrt(np.where(variance > 0, variance, np.nan))

    @property
    def skew(self) -> Float:
        """(M,) skewness of the scores over samples; 0 where trials are drawn."""
        if self.influence is None:
            return np.zeros(len(self.score))
        return skewness_of((self.influence**3).sum(0), self.variance, self.dof)

    def interval(self, level: float) -> tuple[Float, Float]:
        """Return (M,) lower and upper ends; NaN without observed variance, unless scores lie between 0 and 1.

        Right and wrong answers have the exact interval of a share, with clusters of as many independent answers as have
        the share's variance (Korn and Graubard 1998). Other scores have Student's, which is as long on the side of a
        long tail as Hall's transformation of t asks for. Between 0 and 1 it never exceeds the exact one of right and
        wrong answers with that mean, which vary most. Of fewer than 30 units it reaches as far as
        `interval_over_weights`: without, it missed .45 of 7 items, a tenth of which have up to .3, the others over .9.
        """
        if self.binary and self.unit != "benchmark" and self.influence is not None:
            lower, upper = exact_share(self.score, self._independent(level), level)
        else:
            lower, upper = skewed_interval(self.score, self.standard_errors, self.dof, self.skew, level)
            if self.bounded:
                share = np.clip(self.score, 0.0, 1.0)
                rare = 1 - ((1 - level) / 2) ** (1 / self.worth)  # of scores that equal ones leave unseen
                equal = ~(self.variance > 0)
                lowest, highest = exact_share(share, self.worth, level)
                few = self.worth < FEW_ITEMS
                if few.any() and (wide := self.interval_over_weights(level, few)) is not None:
                    lower = np.where(few, np.minimum(lower, wide[0]), lower)
                    upper = np.where(few, np.maximum(upper, wide[1]), upper)
                lower = np.where(equal, share * (1 - rare), np.maximum(lower, lowest))
                upper = np.where(equal, share + (1 - share) * rare, np.minimum(upper, highest))
        return lower, upper

    def interval_over_weights(self, level: float, which: Bool | None = None) -> tuple[Float, Float] | None:
        """(M,) ends over weights of units, the lower with half a unit more at 0, the upper with half a one at 1.

        Models without observed variance, and those not among ``which`` (M,), have what the exact interval says of equal
        scores. None for several benchmarks, lone units and scores that are not known to lie between 0 and 1.
        """
        if self.stratum.any() or self.n_units < 2 or self.parts is None or self.size is None or not self.bounded:
            return None
        share = np.clip(self.score, 0.0, 1.0)
        rare = 1 - ((1 - level) / 2) ** (1 / self.worth)
        lower, upper = share * (1 - rare), share + (1 - share) * rare
        varies = self.variance > 0
        for m in np.flatnonzero(varies if which is None else varies & which):
            terms = np.column_stack([self.parts[:, m], self.size[:, m]])[self.size[:, m] > 0]
            seen, count = np.unique(terms, axis=0, return_counts=True)
            one, ends = 1 / self.worth[m], []
            for far, tail in ((0.0, (1 - level) / 2), (one, (1 + level) / 2)):
                part, size = means_over_weights(np.append(count, 0.5), np.vstack([seen, [far, one]])).T
                ends.append(np.quantile(part / size, tail))
            lower[m], upper[m] = min(ends[0], share[m]), max(ends[1], share[m])
        return lower, upper

    def _independent(self, level: float) -> Float:
        """Return (M,) independent answers that have the share's variance; of few units fewer, by Student's t."""
        if self.answers is not None:
            return self.n_items.astype(float)
        spread, units = self.score * (1 - self.score), np.minimum(self.n_items, self.worth)
        known = (self.variance > 0) & (spread > 0)
        n = np.where(known, spread / np.where(known, self.variance, 1.0), units)
        dof = np.where(known, self.dof, np.maximum(units - 1, 1.0))
        return n * (student_quantile(level, np.inf) / student_quantile(level, dof)) ** 2


def as_item_scores(scores: ItemScores | Any) -> ItemScores:
    """Return `ItemScores` of one evaluator, or of a table with the standard columns."""
    if not isinstance(scores, ItemScores):
        named_so = {name: name for name in ("trial", "cluster", "benchmark", "weight") if name in scores}
        scores = ItemScores.from_pandas(scores, **named_so)
    if len(scores.evaluators) > 1:
        raise DataError(
            f"scores of {counted(len(scores.evaluators), 'evaluator')}: {named(scores.evaluators)}; a board is of one: "
            "choose the rows of one evaluator"
        )
    if scores.n_repeated:
        raise ColumnError(
            f"{counted(scores.n_repeated, 'row repeats', 'rows repeat')} a model and an item: name the column of "
            "trials (trial=, --trial), of benchmarks whose items have the same names (benchmark=, --benchmark), or of "
            "judges, prompts or seeds that another evaluation would draw anew (random=, --random), or drop the copies"
        )
    return scores


def kept_items(scores: ItemScores, missing: MissingScores) -> tuple[Bool, list[str]]:
    """Return (I,) items that take part, and sentences on those that do not."""
    check_choice("missing", missing, MissingScores)
    there = ~np.isnan(scores.scores[:, 0])
    lacking = ~there.all(1)
    if not lacking.any():
        return np.ones(len(there), bool), []
    of_model = (~there).sum(0)
    worst = int(of_model.argmax())
    text = (
        f"{counted(int((of_model > 0).sum()), 'model lacks', 'models lack')} scores of "
        f"{counted(int(lacking.sum()), 'item')}, of {len(there):,} (most of all {plain(scores.models[worst])!r}, "
        f"{counted(int(of_model[worst]), 'item')})"
    )
    if missing == "error":
        read = f". What was read: {'; '.join(scores.notes)}" if scores.notes else ""
        of_all = counted(int((~lacking).sum()), "item")
        whole = f"missing='complete' (--missing complete) compares models on {of_all} that all have, "
        own = "missing='available' (--missing available) scores each model on its own items"
        raise DataError(f"{text}: {'' if lacking.all() else whole}{own}{read}")
    if missing == "available":
        return np.asarray(there.any(1)), [
            f"{text}: each model is scored on its own items, which are not the same for all"
        ]
    if lacking.all():
        raise DataError(
            f"{text}: no item has a score of every model; leave out models, or use missing='available' (--missing "
            "available)"
        )
    n = counted(int(lacking.sum()), "item that some model lacks is", "items that some model lacks are")
    return np.asarray(~lacking), [f"{text}: {n} left out"]


def of_items(scores: ItemScores, items: Bool) -> ItemScores:
    """Return the scores of some items; columns that were kept are left out."""
    of_cell = np.flatnonzero(np.broadcast_to(items[:, None, None], scores.scores.shape))
    trials = scores.trials
    if trials is not None:
        there = np.isin(trials.cell, of_cell)
        trials = Trials(np.searchsorted(of_cell, trials.cell[there]), trials.score[there])
    facets = scores.facets
    if facets is not None:
        there = np.isin(facets.cell, of_cell)
        cell = np.searchsorted(of_cell, facets.cell[there])
        facets = facets._replace(code=facets.code[there], cell=cell, score=facets.score[there])
    groups = [
        None if grouping is None else grouping._replace(number=grouping.number[items])
        for grouping in (scores.cluster, scores.benchmark)
    ]
    return ItemScores(
        scores.scores[items], scores.items[items], scores.evaluators, scores.models, trials=trials, cluster=groups[0],
        benchmark=groups[1], weight=None if scores.weight is None else scores.weight[items],
        n_repeated=scores.n_repeated, n_missing=scores.n_missing, notes=scores.notes, facets=facets,
    )  # fmt: skip


def by_item(scores: ItemScores, columns: Mapping[str, Any], places: Any = slice(None)) -> pd.DataFrame:
    """Return columns of some items as a table that begins with ``item``, or with ``benchmark`` and ``item``."""
    names = ["item"] if scores.benchmark is None else ["benchmark", "item"]
    return pd.DataFrame(columns, in_pandas(scores.items[places])).rename_axis(names).reset_index()


def flagged(flag: Any, reasons: Mapping[str, str]) -> list[str]:
    """Say how many items have each flag (I,), and what it means, by the ``reasons``."""
    times = {name: int((flag == name).sum()) for name in reasons}
    return [f"{counted(times[name], 'item')} {text}" for name, text in reasons.items() if times[name]]


def estimate_scores(
    scores: ItemScores,
    items: Bool,
    drawn: Population = "items",
    benchmark_weights: Literal["equal", "items"] | Mapping[Any, float] = "equal",
) -> ScoreEstimates:
    """Return mean scores, weighted over the ``items`` (I,) mask, averaged over benchmarks, with the influence of units.

    The score of model m is sum_g W_g (sum_{i in g} w_i s_im) / (sum_{i in g} w_i), over the items of benchmark g that
    the model has.
    """
    s, there, group, of_group, share = _shares(scores, items, benchmark_weights)
    value = np.where(there, s, 0.0)
    mean = _sums(share * value, group) / of_group[:, None]  # (G, M)
    estimate = of_group @ mean
    alike = np.where(share > 0, share, np.inf).min(0) >= (1 - 1e-12) * share.max(0)
    binary = bool(np.isin(s[there], (0.0, 1.0)).all() and alike.all())
    common: dict[str, Any] = {
        "models": scores.models, "score": estimate, "n_items": there.sum(0), "binary": binary,
        "bounded": bool(((s[there] >= 0) & (s[there] <= 1)).all()),
    }  # fmt: skip
    if drawn == "trials":
        variance, dof = _of_trials(scores, items, share)
        return ScoreEstimates(
            influence=None, stratum=np.zeros(0, np.int64), variance=variance, dof=dof, unit="trial",
            n_units=int(there.sum()), worth=trial_numbers(scores)[items].sum(0).astype(float), answers=None,
            parts=None, size=None, **common,
        )  # fmt: skip
    if drawn == "benchmarks":
        if len(of_group) < FEWEST_BENCHMARKS:
            raise DataError(
                f"{counted(len(of_group), 'benchmark')}: intervals for new benchmarks need {FEWEST_BENCHMARKS} or "
                "more; draw items anew (population='items', --population items), or name more benchmarks"
            )
        parts, unit, size = of_group[:, None] * mean, "benchmark", np.tile(of_group[:, None], mean.shape[1])
        units, stratum = parts - size * estimate, np.zeros(len(parts), np.int64)
    else:
        units, unit, stratum = _by_unit(share * (value - mean[group]), group, scores, items)
        size, parts = (_by_unit(terms, group, scores, items)[0] for terms in (share, share * value))
    scale, freedom = _small_samples(size, stratum)
    influence = np.where(np.isnan(scale), 0.0, units * scale)
    if stratum.any():
        influence += _of_lone_units(parts, np.where(np.isnan(scale), size, 0.0), estimate, common["bounded"])
    constant = (influence**2).sum(0) <= (_ROUNDING * np.abs(value).max(0)) ** 2
    influence[:, constant] = 0.0
    terms = influence**2
    by_stratum = _sums(terms, stratum)  # (S, M)
    variance = terms.sum(0)
    power = 2.0 ** np.frexp(variance)[1]  # the squares of variances of huge or tiny scores are no doubles
    whole, part = variance / power, by_stratum / power
    with np.errstate(invalid="ignore", divide="ignore"):
        dof = whole**2 / np.where(by_stratum > 0, part**2 / freedom, 0.0).sum(0)
    return ScoreEstimates(
        influence=influence, stratum=stratum, variance=variance, unit=unit, n_units=len(units),
        dof=np.where(variance > 0, dof, np.nan), worth=_worth(size), **common,
        answers=s if binary and unit == "item" and len(by_stratum) == 1 else None, parts=parts, size=size,
    )  # fmt: skip


def accuracy_of(scores: Any) -> JudgeAccuracy | None:
    """Return ``scores`` if `judge_accuracy` gave them, whose module is then there; else None, with no import of it."""
    module = sys.modules.get("jaxeval.accuracy.judge_accuracy")
    return scores if module is not None and isinstance(scores, module.JudgeAccuracy) else None


def few_units_text(estimates: ScoreEstimates) -> str:
    """Return how many units there are, and how many of equal size they are worth where that is fewer."""
    if estimates.n_effective >= 0.9 * estimates.n_units:
        return f"only {counted(estimates.n_units, estimates.unit)}"
    worth = f"worth {max(round(estimates.n_effective), 1):,} equal ones"
    return f"{counted(estimates.n_units, estimates.unit)} of such unequal size that they are {worth}"


def _of_lone_units(parts: Float, size: Float, estimate: Float, bounded: bool) -> Float:
    """Return (U, M) influences of units alone in their benchmark, whose shares are ``size`` (U, M); 0 for others.

    Their common variance is the mean square of how far they are off the score, which is too large where benchmarks
    differ; between 0 and 1 as if one more had been at the far end.
    """
    lone = size > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.where(lone, np.nan_to_num(parts / size) - estimate, 0.0)
    far = np.maximum(estimate, 1 - estimate) if bounded else 0.0
    square = ((off**2).sum(0) + np.square(far)) / np.maximum(lone.sum(0) + bounded, 1)
    return size * np.sqrt(square) * np.where(off < 0, -1.0, 1.0)


def _worth(size: Float) -> Float:
    """Return (M,) effective numbers of units from their shares (U, M)."""
    columns, number = _distinct_columns(size)
    return np.array([effective_clusters(column) for column in columns])[number]


def _small_samples(size: Float, stratum: Int) -> tuple[Float, Float]:
    """Return (U, M) factors of units by their shares ``size`` (U, M), NaN if lone; and (S, M) degrees of freedom."""
    columns, number = _distinct_columns(size)
    factor = np.full((len(columns), len(stratum)), np.nan)
    freedom = np.full((len(columns), int(stratum.max(initial=-1)) + 1), np.nan)
    order = np.argsort(stratum, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(stratum[order])) + 1):
        for k, sizes in enumerate(columns[:, rows]):
            held = sizes > 0  # a model may lack all items of a unit
            factor[k, rows[held]] = cluster_factors(sizes[held])
            freedom[k, stratum[rows[0]]] = degrees_of_freedom(sizes[held]) if held.sum() != 1 else 1.0
    return factor[number].T, freedom[number].T


def _distinct_columns(values: Float) -> tuple[Float, NDArray[np.intp]]:
    """Return (K, U) distinct columns of (U, M) values, and each one's number (M,); one where models share items."""
    if (values == values[:, :1]).all():
        return values[:, :1].T, np.zeros(values.shape[1], np.intp)
    return values.T, np.arange(values.shape[1])


def item_shares(scores: ItemScores, items: Bool) -> tuple[Float, Float, Float]:
    """Return the only model's scores (N,) on the chosen items, their shares in its score, and their influences.

    The last are influences of items: shares of the differences from the means of benchmarks.
    """
    s, _, group, of_group, share = _shares(scores, items, "equal")
    value, item_share = s[:, 0], share[:, 0]
    return value, item_share, item_share * (value - (np.bincount(group, item_share * value) / of_group)[group])


def _sums(values: Float, group: NDArray[np.intp]) -> Float:
    """Return (G, M) sums of the rows of (N, M) values by group."""
    n_groups = int(group.max(initial=-1)) + 1
    sums = [np.bincount(group, column, n_groups) for column in values.T]
    return np.stack(sums, 1) if sums else np.zeros((n_groups, 0))


def _shares(
    scores: ItemScores, items: Bool, benchmark_weights: Literal["equal", "items"] | Mapping[Any, float]
) -> tuple[Float, Bool, NDArray[np.intp], Float, Float]:
    """Return (N, M) scores, which are there, (N,) benchmarks from 0, their weights (G,), and shares in the estimate.

    Shares (N, M) are 0 where there is no score.
    """
    s = scores.scores[items, 0]
    there = ~np.isnan(s)
    weight = np.ones(len(s)) if scores.weight is None else scores.weight[items]
    group = np.zeros(len(s), np.intp)
    if scores.benchmark is not None:
        _, group = np.unique(scores.benchmark.number[items], return_inverse=True)
    of_group = _weights_of_benchmarks(scores, items, group, benchmark_weights)
    w = np.where(there, weight[:, None], 0.0)
    total = _sums(w, group)
    if (total == 0).any():
        g, m = np.argwhere(total == 0)[0]
        name = "the chosen items" if scores.benchmark is None else f"benchmark {plain(_benchmarks(scores, items)[g])!r}"
        raise DataError(f"model {plain(scores.models[m])!r} has no score in {name}: leave it out")
    return s, there, group, of_group, w * (of_group[:, None] / total)[group]


def _by_unit(
    values: Float, group: NDArray[np.intp], scores: ItemScores, items: Bool
) -> tuple[Float, str, NDArray[np.intp]]:
    """Return (U, M) sums of (N, M) values of items by what is drawn, what that is called, and the benchmark of each."""
    if scores.cluster is None:
        return values, "item", group
    clusters, number = np.unique(scores.cluster.number[items], return_inverse=True)
    stratum = np.zeros(len(clusters), np.int64)
    stratum[number] = group
    crossing = np.unique(number[stratum[number] != group])
    if len(crossing):
        first = plain(scores.cluster.names[clusters[crossing[0]]])
        raise DataError(
            f"{counted(len(crossing), 'cluster lies', 'clusters lie')} in several benchmarks (the first is {first!r}): "
            "a cluster is drawn whole within its benchmark; give clusters names of their own in each, or leave out "
            "the benchmarks"
        )
    return _sums(values, number), "cluster", stratum


def _benchmarks(scores: ItemScores, items: Bool) -> pd.Index:
    assert scores.benchmark is not None
    return scores.benchmark.names[np.unique(scores.benchmark.number[items])]


def _weights_of_benchmarks(
    scores: ItemScores, items: Bool, group: NDArray[np.intp], benchmark_weights: str | Mapping[Any, float]
) -> Float:
    """Return (G,) weights that sum to 1."""
    if isinstance(benchmark_weights, str):
        if benchmark_weights not in ("equal", "items"):
            raise ValueError(
                f"benchmark_weights must be 'equal', 'items' or a mapping of weights, got {benchmark_weights!r}"
            )
        size = np.bincount(group).astype(float)
        weight = np.ones(len(size)) if benchmark_weights == "equal" else size
        return weight / weight.sum()
    if scores.benchmark is None:
        raise ValueError("benchmark_weights need a column of benchmarks, and none was named (benchmark=)")
    names = _benchmarks(scores, items)
    unknown = [x for x in benchmark_weights if x not in names]
    lacking = [x for x in names if x not in benchmark_weights]
    if unknown:
        raise ValueError(f"no benchmark is called {unknown[0]!r}{did_you_mean(unknown[0], names)}")
    if lacking:
        raise ValueError(f"{counted(len(lacking), 'benchmark has', 'benchmarks have')} no weight: {named(lacking)}")
    weight = np.array([benchmark_weights[name] for name in names], float)
    if not (np.isfinite(weight).all() and (weight > 0).all()):
        shown = ", ".join(f"{name} {w:g}" for name, w in zip(names, weight, strict=True))
        raise ValueError(f"weights of benchmarks must be finite and above 0, got {shown}")
    return weight / weight.sum()


def _of_trials(scores: ItemScores, items: Bool, share: Float) -> tuple[Float, Float]:
    """Return (M,) variances of scores over new trials of the same items, and their degrees of freedom.

    An item with k trials adds the square of its share times s^2 / k, s^2 the unbiased variance of its trials.
    """
    if scores.trials is None:
        raise DataError("no column of trials was named (trial=, --trial): new trials need several trials of an item")
    n, variance = (x[items] for x in trial_variances(scores))
    lone = (n == 1) & (share > 0)
    if lone.any():
        i, m = np.argwhere(lone)[0]
        raise DataError(
            f"{counted(int(lone.sum()), 'pair of a model and an item has', 'pairs of a model and an item have')} one "
            f"trial only (the first is of model {plain(scores.models[m])!r}, item {plain(scores.items[items][i])!r}): "
            "intervals for new trials need two trials or more of each item"
        )
    each = np.where(share > 0, share**2 * np.nan_to_num(variance) / np.maximum(n, 1), 0.0)
    total = each.sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total, total**2 / (each**2 / np.maximum(n - 1, 1)).sum(0)


def trial_numbers(scores: ItemScores) -> Int:
    """Return (I, M) numbers of trials of each item and model."""
    assert scores.trials is not None
    return np.bincount(scores.trials.cell, minlength=scores.scores.size).reshape(scores.scores.shape)[:, 0]


def trial_variances(scores: ItemScores) -> tuple[Int, Float]:
    """Return (I, M) numbers of trials of each item and model, and their unbiased variances; NaN with fewer than two."""
    assert scores.trials is not None
    n, (cell, value) = trial_numbers(scores), scores.trials
    away = value - scores.scores.reshape(-1)[cell]
    square = np.bincount(cell, away**2, minlength=scores.scores.size).reshape(n.shape)
    with np.errstate(invalid="ignore", divide="ignore"):
        return n, np.where(n > 1, square / (n - 1), np.nan)
