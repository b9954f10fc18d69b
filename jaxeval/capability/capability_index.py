"""A capability index: one number for each model from its scores on many benchmarks, most of them missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
from scipy.special import expit

from jaxeval.arrays import Bool, Float, as_leaf
from jaxeval.capability.columns import BenchmarkCells, ScoreUnit, benchmark_cells
from jaxeval.capability.trends import line_by_date
from jaxeval.checks import check_choice, checked_finite, checked_integer
from jaxeval.engine.draws_of import draws_of
from jaxeval.errors import DataError
from jaxeval.execution.precision import double_precision
from jaxeval.execution.runs import RunOptions
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.batch import capability_index as kernel
from jaxeval.kernels.batch.capability_index import fit_capability
from jaxeval.kernels.kinds import Array
from jaxeval.kernels.solve import Solution
from jaxeval.lazy_names import jax
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Result
from jaxeval.show.table import Table
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import checked_level, normal_quantile
from jaxeval.wording import counted, named, visible_line

Loss = Literal["squared", "likelihood"]
Unit = Literal["cells", "benchmarks"]

#: Shares are taken to lie this far from 0 and 1.
CLIP = 1e-3
_TOLERANCE, _REFIT = 1e-7, 1e-4  # of the gradient
_ALIKE = 1e-6  # differences of capabilities that fits of equal models may leave
_MEAN, _SD = 100.0, 15.0  # of the index over models, without anchors
FEW_BENCHMARKS = 4
_PERMUTATIONS = 999


@dataclass(frozen=True, eq=False, repr=False)
class CapabilityIndex(Result):
    """Indices of models and difficulties of benchmarks on one scale; see `capability_index`.

    Examples:
        >>> import jaxeval
        >>> scores = jaxeval.simulate_benchmark_scores(20, 12, seed=1)
        >>> found = jaxeval.capability_index(scores, n_resamples=100)
        >>> found.table["model"].iloc[0], found.benchmarks.columns.tolist()[:4]
        ('model-20', ['benchmark', 'difficulty', 'slope', 'n_models'])
    """

    joint: Draws = field(repr=False)  # indices of the models
    level: float
    benchmarks: pd.DataFrame = field(repr=False)
    objective: float  # half the sum of squares, or the negative log-likelihood, penalty included
    residual_sd: float  # of shares about their fit
    settings: Mapping[str, Any] = field(repr=False)
    warnings: tuple[str, ...]
    _cells: BenchmarkCells = field(repr=False)
    _fit: kernel.IndexScale = field(repr=False)  # on the scale of the fit
    _line: tuple[float, float] = field(repr=False)  # index = first + second * capability

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each model, best first, and models without a rank at the end.

        ``model``, ``index``, ``lower``, ``upper``, ``standard_error``, ``rank_best``, ``rank_worst``, ``tier``,
        ``n_benchmarks``, ``flag``.
        """
        draws = self.joint
        error = draws.standard_errors.to_numpy()
        lower, upper = draws.ends(self.level)
        table = pd.DataFrame(
            {"model": draws.names, "index": draws.estimate, "lower": lower, "upper": upper, "standard_error": error}
        )
        ranks = self._of_claims.ranks(self.level, among=self._ranked)
        if self._may_be_equal:
            ranked = pd.array(np.where(self._ranked, 1, 0), "Int64")
            ranked[~self._ranked] = pd.NA
            ranks = ranks.assign(rank_best=ranked, rank_worst=ranked * int(self._ranked.sum()), tier=ranked)
        for name in ("rank_best", "rank_worst", "tier"):
            table[name] = ranks[name].array
        table["n_benchmarks"] = np.bincount(self._cells.model, minlength=len(self._cells.models))
        table["flag"] = draws.status if draws.status is not None else "ok"
        table = table.iloc[np.lexsort((-table["index"], ~self._ranked))].reset_index(drop=True)
        table.attrs = {"warnings": list(self.warnings), "settings": dict(self.settings)}
        title = f"Capability index of {counted(len(table), 'model')}"
        return Table.of(table, title, tuple(table)[:4], "index", rating="index")

    @property
    def _may_be_equal(self) -> bool:
        """Whether chance alone may make such differences of all models, by ``p_equal``: no rank is told then."""
        return self.p_equal > max(1 - self.level, 1 / (_PERMUTATIONS + 1))

    @cached_property
    def p_equal(self) -> float:
        """The p-value of all models being equal: scores are permuted within benchmarks, 999 times.

        Without it resamples of equal models, whose noise alone makes the scale, told .27 of 12 models apart that were
        equal, at level .9.
        """
        return _p_of_equal_models(self._cells, self.settings["seed"])

    @property
    def _of_claims(self) -> Draws:
        """The draws with the degrees of freedom that a model with the median number of scores has.

        Where all may be equal, none is told apart.

        Quantiles of the largest of many differences lie further out than those of an interval, and are of Student's t.
        In 40 simulated tables of four groups of four equal models, with 7.5 scores each, rank ranges of level .9 were
        wrong for .050 of the models, and for .123 without (standard errors .01 and .02).
        """
        joint = replace(self.joint, loose=np.full(len(self.joint.names), self._may_be_equal))
        if self.settings["resample"] != "cells":
            return joint
        n = np.bincount(self._cells.model)
        return replace(joint, freedom=float(max(np.median(n[n > 1]) - 1, 1.0)) if (n > 1).any() else None)

    @property
    def _ranked(self) -> Bool:
        """(M,) models with more than one score."""
        return np.asarray(np.isfinite(self.joint.draws).any(0))

    def _shown(self) -> Answer:
        title = f"CapabilityIndex: {counted(len(self._cells.models), 'model')}, "
        title += f"{counted(len(self._cells.benchmarks), 'benchmark')}, {counted(len(self._cells.share), 'score')}"
        return Answer(title, self.table.set_index("model"), self.settings, self.warnings, notes=self._cells.told)

    def _in_full(self, view: Answer) -> Answer:
        return view._replace(tables={"index": self.table, "benchmarks": self.benchmarks})

    def _figures(self) -> dict[str, tuple[Any, ...]]:
        return {"index": ("plot_index", self)}

    def _sentences(self) -> list[str]:
        table = self.table
        best = table.iloc[0]
        ends = "" if np.isnan(best["lower"]) else f" ({best['lower']:.1f} to {best['upper']:.1f})"
        equal = list(table.loc[(table["index"] - best["index"]).abs() < 1e-6, "model"])  # none of them is first
        have = "has" if len(equal) == 1 else "have"
        who = f"{named(list(map(visible_line, equal)))} {have} the highest index, {best['index']:.1f}{ends}"
        if not self._ranked.any():
            return ["no model has two scores, which a rank needs"]
        if self._may_be_equal:
            n = int(self._ranked.sum())
            return [
                f"{who}; these scores do not tell the {n:,} models apart (p = {self.p_equal:.2g}): all ranks are open"
            ]
        apart = self._of_claims.differences(self._ranked).apart_from(
            self.joint.names.get_loc(best["model"]), self.level
        )
        others = [visible_line(name) for name in self.joint.names[self._ranked & ~apart] if name not in equal]
        sure = f"at the {self.level:.0%} level"
        whom = "all others" if self._ranked.all() else "all others with a rank,"
        return [f"{who}; statistically tied with {named(others)} {sure}" if others else f"{who}, above {whom} {sure}"]

    def forecast(self, model: str, benchmark: str) -> dict[str, float]:
        """Return the share that a model is expected to reach on a benchmark, and where a new score may lie.

        ``share``, ``lower``, ``upper``: the interval holds errors of the fit and the scatter of shares about it.
        """
        m, b = self._cells.models.get_indexer([model])[0], self._cells.benchmarks.get_indexer([benchmark])[0]
        if m < 0 or b < 0:
            known = self._cells.benchmarks if m >= 0 else self._cells.models
            raise ValueError(
                f"no {'benchmark' if m >= 0 else 'model'} {benchmark if m >= 0 else model!r}: {named(known)}"
            )
        first, second = self._line
        slope, difficulty = self.benchmarks.set_index("benchmark").loc[benchmark, ["slope", "difficulty"]]
        error = self.joint.standard_errors.to_numpy()[m] / second
        eta = slope * ((self.joint.estimate[m] - first) / second - (difficulty - first) / second)
        share = float(expit(eta))
        sd = np.hypot(self.residual_sd, slope * share * (1 - share) * error)
        half = float(normal_quantile(self.level) * sd)
        return {"share": share, "lower": max(share - half, 0.0), "upper": min(share + half, 1.0)}

    def trend(
        self, released: Mapping[str, Any], *, frontier: bool = True, since: Any = None, until: Any = None,
        at: Sequence[Any] = (),
    ) -> pd.DataFrame:  # fmt: skip
        """Fit a line to the indices of the frontier by release date: points a year, and the line ``at`` dates.

        Returns:
            A row "points a year", and one for each date: ``estimate``, ``lower``, ``upper``. ``attrs["models"]`` has
            the models behind it, and ``attrs["warnings"]`` what is to be known. Intervals know nothing of whether the
            line goes on.

        Raises:
            DataError: a name is no model, a date is none, or there are fewer than two models or dates.
        """
        line = line_by_date(self.joint, "model", released, frontier, since, until, at, self.level)
        table = pd.DataFrame(
            [[365.25 * x for x in line.slope], *line.forecast[["estimate", "lower", "upper"]].to_numpy().tolist()],
            ["points a year", *map(str, line.forecast["date"].dt.date)],
            ["estimate", "lower", "upper"],
        )
        table.attrs = {"models": line.points.to_dict("records"), "warnings": list(line.warnings)}
        return with_kinds(table, ends_of="estimate")

    def _on_scale(self, capability: Float) -> Float:
        first, second = _scale_line(capability, self._cells.models, self.settings["anchors"])
        with np.errstate(invalid="ignore"):  # a choice may make all models equal
            return first + second * capability

    def without_each_benchmark(self) -> pd.DataFrame:
        """Return the change of every index if a benchmark is left out: a row a benchmark, a column a model.

        Models without any other score have none. Benchmarks that change most come first.
        """
        rows = {}
        for b, name in enumerate(self._cells.benchmarks):
            keep = self._cells.benchmark != b
            refit, *_ = _fitted(self._cells, keep.astype(float), self.settings, self._fit)
            left = np.bincount(self._cells.model[keep], minlength=len(self._cells.models)) > 0
            rows[name] = self._on_scale(np.where(left, refit.capability, np.nan)) - self.joint.estimate
        table = pd.DataFrame.from_dict(rows, orient="index", columns=self.joint.names).rename_axis("benchmark")
        return table.loc[table.abs().max(axis=1).sort_values(ascending=False, kind="stable").index]

    def choices(self) -> pd.DataFrame:
        """Return indices under other choices: a row for each ridge, loss and clipping; a column for each model."""
        ridge, loss = self.settings["ridge"], "likelihood" if self.settings["loss"] == "squared" else "squared"
        others: list[dict[str, Any]] = [
            {}, {"ridge": ridge / 10}, {"ridge": ridge * 10}, {"clip": 0.01}, {"loss": loss},
        ]  # fmt: skip
        rows = {}
        for other in others:
            choice = ", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in other.items())
            scale, *_ = _fitted(self._cells, np.ones(len(self._cells.share)), {**self.settings, **other}, None)
            rows[choice or "as asked"] = self._on_scale(np.asarray(scale.capability))
        return pd.DataFrame.from_dict(rows, orient="index", columns=self.joint.names).rename_axis("choice")

    def most_telling(self, n: int = 10) -> pd.DataFrame:
        """Return the missing scores that would lower the variance of their model's index most.

        ``model``, ``benchmark``, ``share`` (expected), ``standard_error`` (of the index after it, by one step).
        """
        _, second = self._line
        c, d, a = self._fit
        p = expit(a * (c[:, None] - d))
        information = (a * p * (1 - p)) ** 2 / self.residual_sd**2
        error = self.joint.standard_errors.to_numpy() / abs(second)
        with np.errstate(divide="ignore"):  # anchors have no error
            after = 1 / np.sqrt(1 / error[:, None] ** 2 + information)
        after[self._cells.model, self._cells.benchmark] = np.nan
        gain = error[:, None] - after
        order = np.argsort(-np.nan_to_num(gain, nan=-1.0), axis=None)[:n]
        m, b = np.unravel_index(order, gain.shape)
        keep = np.isfinite(gain[m, b])
        m, b = m[keep], b[keep]
        return pd.DataFrame(
            {"model": self._cells.models[m], "benchmark": self._cells.benchmarks[b], "share": p[m, b],
             "standard_error": after[m, b] * abs(second)}
        )  # fmt: skip


@spelled_out()
def capability_index(
    scores: Any, *, model: str | None = None, benchmark: str | None = None, score: str | None = None,
    n: str | None = None, unit: ScoreUnit = "auto", loss: Loss = "likelihood", ridge: float = 0.1,
    anchors: Mapping[str, float] | None = None, easiest: str | None = None, clip: float = CLIP,
    resample: Unit = "cells", level: float = 0.9, n_resamples: int = 1000, seed: int = 0, **running: Unpack[RunOptions],
) -> CapabilityIndex:  # fmt: skip
    """Fit one capability for each model and a difficulty and slope for each benchmark to shares of right answers.

    The share of model m on benchmark b is sigmoid(a_b (C_m - D_b)) and an error. Capabilities C, difficulties D and
    slopes a minimise the loss of all scores and ridge / 2 times the mean square of all parameters. The slope of one
    benchmark is held at 1; the scale is then that of the ``anchors``.

    The n_m scores of a model are weighed anew in every resample, by exponential weights: of a model with four scores no
    draw rests on one of them alone, which would lie far out. Intervals are longer than draws alone say, as a model of
    few scores varies too little in resamples, and benchmarks' parameters are fitted to the same scores: draws lie
    sqrt((1 + 1 / n_m) / (1 - 1 / n_m - 2 K / N)) times as far from the estimate.

    Args:
        scores: a table with a row for each model and benchmark, or with a column for each benchmark. Repeated rows are
            an error.
        model: column of models, by default ``model``, ``model_name`` or ``model_id``.
        benchmark: column of benchmarks, by default ``benchmark``, ``benchmark_name`` or ``benchmark_id``.
        score: column of shares of right answers, by default ``score``, ``performance`` or ``share``.
        n: column with the number of questions behind a share; a score then weighs as many as it has, over their mean.
        unit: of scores, "share" or "percent". "auto": shares; in a table with a column for each benchmark all are per
            cents where most columns are above 1.
        loss: "likelihood", of a binomial whose dispersion is free; or "squared", as published indices have it. The
            first forecast scores that were held out a little better on the public table of 2025 (.0988 against .1000).
        ridge: of the mean square of all parameters.
        anchors: two models, and the index that each shall have. By default the mean of all models is 100, and their
            standard deviation 15.
        easiest: benchmark whose slope is held, by default that with the highest mean share.
        clip: shares are moved to at least this, and at most 1 less it.
        resample: "cells" within models, or whole "benchmarks", for claims about benchmarks like these.
        level: of intervals, rank ranges and tiers.

    Returns:
        `CapabilityIndex`: ``table``, ``benchmarks``, ``joint``, and ``forecast``, ``choices``, ``most_telling`` and
        ``without_each_benchmark``. Models with fewer than 4 benchmarks are flagged; one with a single score has no
        interval and no rank.

    Raises:
        DataError: a share is outside of [0, 1]; a pair of model and benchmark is repeated; models and benchmarks fall
            into parts that share nothing; an anchor is not there, or scores put the lower one higher; all models are
            equally good.
        ValueError: an option is out of range.

    Examples:
        >>> import jaxeval
        >>> scores = jaxeval.simulate_benchmark_scores(20, 12, seed=1)
        >>> found = jaxeval.capability_index(scores, anchors={"model-01": 100, "model-20": 150}, n_resamples=100)
        >>> found.table.set_index("model")["index"].loc[["model-20", "model-01"]].round(1).tolist()
        [150.0, 100.0]
    """
    check_choice("loss", loss, Loss)
    check_choice("resample", resample, Unit)
    check_choice("unit", unit, ScoreUnit)
    checked_finite("ridge", ridge, 0.0)
    if not 0 <= checked_finite("clip", clip, 0.0) < 0.5:
        raise ValueError(f"clip must be at least 0 and below 0.5, got {clip}")
    level, seed = checked_level(level), checked_integer("seed", seed)
    cells = benchmark_cells(scores, {"model": model, "benchmark": benchmark, "score": score}, n, unit)
    if anchors is not None:
        missing = [name for name in anchors if name not in cells.models]
        if missing:
            raise DataError(
                f"no scores of {named(missing)}, which anchors= (--fix) names; the models are {named(cells.models)}"
            )
        for name, value in anchors.items():
            checked_finite(f"the anchor of {name}", value)
        if len(anchors) != 2 or len(set(anchors.values())) != 2:
            raise ValueError(f"anchors must be two models with two different indices, got {dict(anchors)}")
    means = np.bincount(cells.benchmark, cells.share) / np.bincount(cells.benchmark)
    held = cells.benchmarks[int(np.argmax(means))] if easiest is None else easiest
    if held not in cells.benchmarks:
        raise DataError(f"no benchmark {held!r} (easiest=); there are {named(cells.benchmarks)}")
    settings = {
        "loss": loss, "ridge": ridge, "anchors": None if anchors is None else dict(anchors), "easiest": held,
        "clip": clip, "resample": resample, "n_resamples": n_resamples, "seed": seed,
    }  # fmt: skip
    scale, objective, end = _fitted(cells, np.ones(len(cells.share)), settings, None)
    draws = _resampled(cells, settings, scale, running)
    k = len(cells.models)
    estimate = np.asarray(scale.capability)
    first, second = _scale_line(estimate, cells.models, anchors)
    if not 0 < second < np.inf:
        if anchors is None:
            raise DataError("all models are equally good by these scores, so their standard deviation makes no scale")
        low, high = map(visible_line, sorted(anchors, key=lambda name: anchors[name]))
        raise DataError(
            f"{high} is not better than {low} by these scores, but has the higher index in anchors= (--fix): choose "
            "others"
        )
    lines = [_scale_line(c, cells.models, anchors) for c in draws.draws[:, :k]]
    drawn = np.stack([one + two * c for (one, two), c in zip(lines, draws.draws[:, :k], strict=True)])
    index = first + second * estimate
    n_each = np.bincount(cells.model, minlength=k)
    if resample == "cells":
        # What weighing and fitting leave of the variance of a model's scores, at least a fifth.
        left = (1 - 1 / n_each - 2 * len(cells.benchmarks) / len(cells.share)) / (1 + 1 / n_each)
        drawn = index + (drawn - index) / np.sqrt(np.maximum(left, 0.2))
    flags = np.where(n_each < FEW_BENCHMARKS, [counted(x, "benchmark") for x in n_each], "ok").astype(object)
    anchored = cells.models.isin(list(anchors or ()))
    # What strata of few scores leave out is made good above, and one score has a warning below.
    made_good = re.compile(r"the (other )?strata hold|[\d,]+ (stratum|strata) of one row")
    warnings = [text for text in draws.warnings if not made_good.match(text)]
    if end.grad_norm > 1e-3:
        warnings.append(f"the fit has not converged: its gradient is {float(end.grad_norm):.1g}")
    if (alone := n_each < 2).any():
        # Resamples of one score are that score: they do not show its error.
        drawn = np.where(alone, np.nan, drawn)
        warnings.append(f"one score shows no error, so there is no interval and no rank: {named(cells.models[alone])}")
    lonely = cells.benchmarks[np.bincount(cells.benchmark) == 1]
    if len(lonely):
        warnings.append(
            f"{counted(len(lonely), 'benchmark')} with one model, whose score fits itself and tells nothing of others: "
            f"{named(lonely)}"
        )
    if unit == "percent" and cells.share.max() <= 0.01:
        warnings.append(f"no score is above {100 * cells.share.max():g} per cent: leave out unit= (--unit) for shares")
    if few := int((n_each < FEW_BENCHMARKS).sum()):
        warnings.append(f"{counted(few, 'model has', 'models have')} fewer than {FEW_BENCHMARKS} benchmarks")
    gauge = f"mean {_MEAN:g} and standard deviation {_SD:g} of all models"
    if anchors is not None:
        gauge = " and ".join(f"{name} at {value:g}" for name, value in anchors.items())
    joint = Draws(
        cells.models, index, drawn, gauge=gauge, anchored=anchored, status=flags, settings=settings,
        warnings=tuple(warnings), freedom=draws.freedom,
        holds_estimate=True,  # draws of a best model are often below its index
    )  # fmt: skip
    c, d, a = map(np.asarray, scale)
    fitted = expit(a * (c[:, None] - d))[cells.model, cells.benchmark]
    n_free = k + 2 * len(cells.benchmarks) - 3
    residual = np.sqrt(((fitted - cells.share) ** 2).sum() / max(len(cells.share) - n_free, 1))
    benchmarks = pd.DataFrame(
        {"benchmark": cells.benchmarks, "difficulty": first + second * d, "slope": a,
         "n_models": np.bincount(cells.benchmark), "mean_share": means}
    ).sort_values("difficulty", ascending=False, ignore_index=True)  # fmt: skip
    return CapabilityIndex(
        joint, level, benchmarks, float(objective), float(residual), settings, tuple(warnings), cells,
        kernel.IndexScale(*scale), (first, second),
    )  # fmt: skip


def _ridge_of_one(cells: BenchmarkCells, ridge: float) -> float:
    return ridge / (len(cells.models) + 2 * len(cells.benchmarks) - 1)


def _fitted(
    cells: BenchmarkCells, weights: Float, settings: Mapping[str, Any], start: kernel.IndexScale | None
) -> tuple[kernel.IndexScale, Array, Solution]:
    shape = len(cells.models), len(cells.benchmarks)
    weight, share = np.zeros(shape), np.full(shape, 0.5)
    weight[cells.model, cells.benchmark] = weights * cells.questions
    share[cells.model, cells.benchmark] = np.clip(cells.share, settings["clip"], 1 - settings["clip"])
    start = start or kernel.IndexScale(
        *(as_leaf(np.full(n, x), np.float64) for n, x in ((shape[0], 0.0), (shape[1], 0.0), (shape[1], 1.0)))
    )
    free = np.asarray(cells.benchmarks != settings["easiest"])
    ridge = np.float64(_ridge_of_one(cells, settings["ridge"]))
    with double_precision():
        return jax.device_get(
            fit_capability(weight, share, start, free, ridge, settings["loss"] == "likelihood", _TOLERANCE)
        )


def _resampled(cells: BenchmarkCells, settings: Mapping[str, Any], start: kernel.IndexScale, running: Any) -> Draws:
    statistic = partial(
        kernel.indices, n_models=len(cells.models), n_benchmarks=len(cells.benchmarks),
        ridge=_ridge_of_one(cells, settings["ridge"]), likelihood=settings["loss"] == "likelihood", tolerance=_REFIT,
    )  # fmt: skip
    share = np.clip(cells.share, settings["clip"], 1 - settings["clip"])
    data = {"model": cells.model, "benchmark": cells.benchmark, "share": share, "questions": cells.questions}
    c, d, a = map(np.asarray, start)
    data |= {"capability": c[cells.model], "difficulty": d[cells.benchmark], "slope": a[cells.benchmark]}
    data["free"] = (cells.benchmarks != settings["easiest"])[cells.benchmark]
    if settings["resample"] == "cells":
        units: dict[str, Any] = {"strata": np.asarray(cells.models)[cells.model], "scheme": "bayesian"}
    else:
        units = {"cluster": np.asarray(cells.benchmarks)[cells.benchmark]}
    return draws_of(statistic, data, n_resamples=settings["n_resamples"], seed=settings["seed"], **units, **running)


def _p_of_equal_models(cells: BenchmarkCells, seed: int) -> float:
    """Return the p-value of the models' mean standard scores, where scores are permuted within benchmarks.

    Among equal models each benchmark's scores may stand in any order, whatever their spread. The statistic is
    sum_m n_m zbar_m^2; a p-value is (1 + permutations that reach it) / (1 + permutations).
    """
    order = np.argsort(cells.benchmark, kind="stable")
    model, benchmark, share = cells.model[order], cells.benchmark[order], cells.share[order]
    n = np.bincount(benchmark)
    centred = share - (np.bincount(benchmark, share) / n)[benchmark]
    spread = np.sqrt(np.bincount(benchmark, centred**2) / n)[benchmark]
    z = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    n_models, each = len(cells.models), np.bincount(model)

    def statistic(z: Float) -> Float:
        rows = np.arange(len(z))[:, None] * n_models + model
        return (np.bincount(rows.ravel(), z.ravel(), len(z) * n_models).reshape(-1, n_models) ** 2 / each).sum(1)

    rng, reached = np.random.default_rng(seed), 0
    observed = statistic(z[None])[0] * (1 - 1e-9)
    for size in np.diff(np.linspace(0, _PERMUTATIONS, 10, dtype=int)):
        # Benchmarks stay in their places, and their scores are sorted by chance.
        reached += int((statistic(z[np.argsort(benchmark + rng.random((size, len(z))), 1)]) >= observed).sum())
    return (1 + reached) / (1 + _PERMUTATIONS)


def _scale_line(capability: Float, models: pd.Index, anchors: Mapping[str, float] | None) -> tuple[float, float]:
    """Return intercept and slope of the index by capability."""
    if anchors is None:
        at, start, rise, apart = _MEAN, np.nanmean(capability), _SD, np.nanstd(capability)
    else:
        (one, at), (two, to) = anchors.items()
        start, end = (capability[models.get_loc(name)] for name in (one, two))
        rise, apart = to - at, end - start
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.divide(rise, apart if abs(apart) > _ALIKE else 0.0)
        return float(at - slope * start), float(slope)
