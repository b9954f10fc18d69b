"""The front of cost and quality, with its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Bool, Float
from jaxeval.data.numbers import numbers_or_nan
from jaxeval.errors import DataError
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Result
from jaxeval.show.table import Table
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted, named, visible_line

_MOST = 2000  # models: all pairs are compared
_VALUES, _MOST_ROWS = 31, 10  # of a point, between which readers of pages slide, and models of each


@dataclass(frozen=True, eq=False, repr=False)
class ParetoFront(Result):
    """Who is on the front of cost and quality, and how sure that is; see `pareto_front`.

    Examples:
        >>> import jaxeval
        >>> index = jaxeval.capability_index(jaxeval.simulate_benchmark_scores(5, 8, seed=1), n_resamples=100)
        >>> found = jaxeval.pareto_front(index, {"model-1": 1.0, "model-3": 2.0, "model-5": 9.0})
        >>> float(found.on_front["model-1"])
        1.0
    """

    quality: Draws = field(repr=False)  # (M,) models with a quality and a cost
    cost: Draws = field(repr=False)
    level: float
    on_front: pd.Series = field(repr=False)  # probability
    dominates: pd.DataFrame = field(repr=False)  # (M, M) probability that the row dominates the column
    claims: pd.DataFrame = field(repr=False)  # (M, M) whether the row is better and no dearer, all claims at the level
    settings: Mapping[str, Any] = field(repr=False)
    warnings: tuple[str, ...]

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each model, the cheapest first.

        ``model``, ``cost``, ``quality``, ``lower``, ``upper``, ``on_front`` (whether the estimates
        are), ``p_front`` (share of draws in which it is), ``dominated_by`` (the best model that is better and no
        dearer, by the claims; missing without one).
        """
        quality, cost = self.quality, self.cost
        beaten = self.claims.to_numpy()
        best = np.where(beaten, quality.estimate[:, None], -np.inf)
        by = [str(quality.names[k]) if beaten[:, j].any() else None for j, k in enumerate(best.argmax(0))]
        lower, upper = quality.ends(self.level)
        table = pd.DataFrame({
            "model": quality.names, "cost": cost.estimate, "quality": quality.estimate, "lower": lower, "upper": upper,
            "on_front": _domination(quality.estimate[None], cost.estimate[None])[1] == 0,
            "p_front": self.on_front.to_numpy(), "dominated_by": by,
        })  # fmt: skip
        table = table.sort_values(["cost", "quality"], ascending=[True, False], kind="stable", ignore_index=True)
        table.attrs = {"warnings": list(self.warnings), "settings": dict(self.settings)}
        title = f"Cost and quality of {counted(len(table), 'model')}"
        return Table.of(table, title, tuple(table), "quality", money="cost", share="p_front")

    def _shown(self) -> Answer:
        title = f"ParetoFront: {counted(len(self.quality.names), 'model')}"
        return Answer(title, self.table.set_index("model"), self.settings, self.warnings)

    def _in_full(self, view: Answer) -> Answer:
        return view._replace(tables={"front": self.table})

    def _figures(self) -> dict[str, tuple[Any, ...]]:
        return {"front": ("plot_front", self)}

    def _sentences(self) -> list[str]:
        table = self.table
        front = table[table["on_front"]]
        beaten = table["dominated_by"].notna()
        sure = (f"{visible_line(m)} ({_sure(p)} sure)" for m, p in zip(front["model"], front["p_front"], strict=True))
        first = f"on the front, from cheap to good: {', '.join(sure)}"
        if not beaten.any():
            return [first, "no model is surely worse than one that costs no more"]
        verb = "is" if beaten.sum() == 1 else "are"
        return [first, f"{named(list(map(visible_line, table['model'][beaten])))} {verb} worse than one no dearer"]

    def _sliding(self) -> tuple[str, dict[str, pd.DataFrame]]:
        """Return who is best by what a point of quality may cost: from where the cheapest is to where the best is."""
        on_front = self.table[self.table["on_front"]]
        steps = on_front[["cost", "quality"]].diff().iloc[1:]
        prices = (steps["cost"] / steps["quality"]).to_numpy()
        prices = prices[np.isfinite(prices) & (prices > 0)]
        if not len(prices):
            prices = np.array([max(float(self.cost.estimate.max()), 1e-9)])
        values = np.geomspace(prices.min() / 3, prices.max() * 3, _VALUES)
        return "Value of a point", {f"{value:.3g}": self.worth(value).head(_MOST_ROWS) for value in values}

    def best_under(self, budget: float) -> pd.DataFrame:
        """Return which model is best among those that cost at most ``budget``, with its probability.

        ``model``, ``quality``, ``p_best`` (share of draws in which it is affordable and the best), ``p_affordable``.

        Raises:
            ValueError: no model costs so little in any draw.
        """
        affordable = self.cost.draws <= budget
        if not affordable.any():
            raise ValueError(f"no model costs {budget:g} or less; the cheapest costs {self.cost.estimate.min():.4g}")
        worth = np.where(affordable, self.quality.of_shares, -np.inf)
        top = (worth == worth.max(1, keepdims=True)) & affordable
        share = (top / np.maximum(top.sum(1, keepdims=True), 1)).mean(0)
        share = np.minimum(share, _most(self.quality)) if affordable.any(0).sum() > 1 else share
        table = pd.DataFrame(
            {"model": self.quality.names, "quality": self.quality.estimate, "p_best": share,
             "p_affordable": affordable.mean(0)}
        )  # fmt: skip
        table = with_kinds(table, share="p_best p_affordable")
        return table[table["p_affordable"] > 0].sort_values("p_best", ascending=False, kind="stable", ignore_index=True)

    def worth(self, value: float) -> pd.DataFrame:
        """Return models by quality less cost over ``value``: what one more point of quality may cost.

        ``model``, ``net``, ``lower``, ``upper``, ``p_best``; the best first.
        """
        if not value > 0:
            raise ValueError(f"the value of a point must be above 0, got {value!r}")
        net = replace(
            self.quality, estimate=self.quality.estimate - self.cost.estimate / value,
            draws=self.quality.draws - self.cost.draws / value, limits=None, closed_form=None, anchored=None,
        )  # fmt: skip
        ends = dict(zip(("lower", "upper"), net.ends(self.level), strict=True))
        share = net.rank_share(1).to_numpy()
        table = pd.DataFrame({"model": net.names, "net": net.estimate, **ends, "p_best": share})
        return with_kinds(table, share="p_best").sort_values("net", ascending=False, kind="stable", ignore_index=True)

    def band(self, costs: Any = None) -> pd.DataFrame:
        """Return the best quality that each cost buys: ``cost``, ``quality``, ``lower``, ``upper``.

        Args:
            costs: by default those of the models.
        """
        at = np.unique(self.cost.estimate) if costs is None else np.asarray(costs, float)

        def best(quality: Float, cost: Float) -> Float:
            return np.where(cost[..., None, :] <= at[:, None], quality[..., None, :], -np.inf).max(-1)

        estimate = best(self.quality.estimate, self.cost.estimate)
        costs_drawn = np.broadcast_to(self.cost.draws, self.quality.draws.shape)
        draws = np.stack([best(q, c) for q, c in zip(self.quality.draws, costs_drawn, strict=True)])
        with np.errstate(invalid="ignore"):
            ends = Draws(pd.RangeIndex(len(at)), estimate, draws, freedom=self.quality.freedom).interval(self.level)
        return pd.DataFrame({"cost": at, "quality": estimate, **ends})


def pareto_front(quality: Any, cost: Any, *, level: float = 0.95, higher_is_better: bool = True) -> ParetoFront:
    """Compare models by cost and quality at once: who is on the front, and who is surely beaten.

    A model dominates another if it is at least as good and costs no more, and not both are equal. Probabilities are
    shares of the joint draws. Those of few units are draws of Student's t, and
    K units never say more than 1 - 1 / 2^K, since as often all favour one of two equal models. Claims hold together:
    with probability ``level`` none of them is wrong, if differences of quality (and of cost, where it is drawn) are
    nearly normal (max-t over all pairs).

    Args:
        quality: `Draws`, or a result with ``joint``, as a leaderboard's bootstrap, scores, or a capability index.
        cost: of each model, by name: a mapping or Series of numbers, or `Draws` of the same resamples. Models without a
            cost are left out, and counted in a warning.
        level: of intervals, and of all claims together.
        higher_is_better: whether more quality is better; errors and latencies are better if low.

    Returns:
        `ParetoFront`: ``table``, ``on_front``, ``dominates``, ``claims``, ``band()``, ``best_under(budget)`` and
        ``worth(value)``.

    Raises:
        TypeError: ``quality`` has no draws.
        DataError: fewer than two models have both; a cost is not a number, or below 0.
        ValueError: draws of cost are not those of the quality.

    Examples:
        >>> import numpy as np, pandas as pd
        >>> import jaxeval
        >>> from jaxeval.statistics.draws import Draws
        >>> truth = np.array([60.0, 62.0, 70.0])
        >>> draws = Draws(pd.Index(["a", "b", "c"]), truth, truth + np.random.default_rng(0).normal(size=(1000, 3)))
        >>> found = jaxeval.pareto_front(draws, {"a": 5.0, "b": 1.0, "c": 8.0})
        >>> found.table[["model", "on_front"]].values.tolist()
        [['b', True], ['a', False], ['c', True]]
        >>> found.best_under(6.0)["model"].iloc[0]
        'b'
    """
    draws = quality if isinstance(quality, Draws) else getattr(quality, "joint", None)
    if not isinstance(draws, Draws):
        raise TypeError(f"quality must be Draws, or a result whose joint has them, got {type(quality).__name__}")
    compared = getattr(quality, "_of_claims", draws)  # an index tells fewer models apart than its draws do
    draws = replace(draws, loose=compared.loose)
    if not higher_is_better:
        limits = None if draws.limits is None else (-np.asarray(draws.limits[1]), -np.asarray(draws.limits[0]))
        draws = replace(draws, estimate=-draws.estimate, draws=-draws.draws, limits=limits, closed_form=None)
    level = checked_level(level)
    costs = _costs(draws, cost)
    known = np.isfinite(draws.estimate) & np.isfinite(draws.draws).any(0) & np.isfinite(costs.estimate)
    if known.sum() < 2:
        raise DataError(f"a front needs two models or more with a quality and a cost, got {int(known.sum())}")
    if known.sum() > _MOST:
        raise DataError(f"all pairs are compared, of at most {_MOST:,} models, got {known.sum():,}: choose some")
    warnings = list(draws.warnings)
    if not known.all():
        warnings.append(f"without a cost or a quality, and left out: {named(draws.names[~known])}")
    draws, costs = draws.take(known), costs.take(known)
    of_claims = replace(draws, freedom=compared.freedom)
    shares, beaten = _domination(of_claims.of_shares, costs.draws)
    better = _above(of_claims, level)
    cheaper = costs.estimate[:, None] <= costs.estimate
    most, cheapest = _most(compared), costs.draws == costs.draws.min(1, keepdims=True)
    alone = (cheapest & (cheapest.sum(1, keepdims=True) == 1)).all(0)  # whatever their quality
    shares, beaten = np.minimum(shares, most), np.where(alone, beaten, np.clip(beaten, 1 - most, most))
    if not costs.without_spread.all():
        cheaper = _above(replace(costs, estimate=-costs.estimate, draws=-costs.draws, limits=None), level)
    settings = {"level": level, "n_resamples": len(draws.draws), "higher_is_better": higher_is_better}
    names = draws.names
    return ParetoFront(
        draws, costs, level, pd.Series(1 - beaten, names, name="p_front"), pd.DataFrame(shares, names, names),
        pd.DataFrame(better & cheaper, names, names), settings, tuple(warnings),
    )  # fmt: skip


def _most(draws: Draws) -> float:
    """Return the most that a share of draws says: less than 1 for few units."""
    return 1 - draws.left_to_chance / 2


def _sure(p: float) -> str:
    return ">99%" if 0.995 <= p < 1 else f"{p:.0%}"


def _costs(draws: Draws, cost: Any) -> Draws:
    """Return costs in the order of the quality's names, missing where there is none."""
    joint = cost if isinstance(cost, Draws) else getattr(cost, "joint", None)
    if isinstance(joint, Draws):
        if not joint.names.equals(draws.names) or len(joint.draws) != len(draws.draws):
            raise ValueError("draws of the cost must have the names and the number of draws of the quality's")
        return joint
    series = pd.Series(dict(cost) if isinstance(cost, Mapping) else cost)
    if series.index.has_duplicates:
        raise DataError(f"{series.index[series.index.duplicated()][0]!r} has several costs, and each model has one")
    numbers_or_nan(series[:0], "cost")  # dates, durations and complex numbers are no costs
    unknown = [name for name in series.index if name not in draws.names]
    if len(unknown) == len(series):
        raise DataError(f"no cost is that of a model: costs are of {named(unknown)}, the models {named(draws.names)}")
    values = pd.to_numeric(series, errors="coerce")
    bad = (values.isna() & series.notna()) | (values < 0) | np.isinf(values)
    if bad.any():
        name = bad.index[bad.to_numpy().argmax()]
        raise DataError(f"the cost of {name!r} must be a number from 0 on, got {series[name]!r}")
    costs = values.reindex(draws.names).to_numpy(float)
    return Draws(draws.names, costs, np.broadcast_to(costs, draws.draws.shape))


def _domination(quality: Float, cost: Float) -> tuple[Float, Float]:
    """Return share of draws in which row dominates column, and in which each is dominated at all."""
    m = quality.shape[1]
    pairs, alone = np.zeros((m, m)), np.zeros(m)
    for q, c in zip(quality, cost, strict=True):
        more, less = q[:, None] >= q, c[:, None] <= c
        over = more & less & ((q[:, None] > q) | (c[:, None] < c))
        pairs += over
        alone += over.any(0)
    return pairs / len(quality), alone / len(quality)


def _above(draws: Draws, level: float) -> Bool:
    """Return (M, M) whether the row is above the column, all pairs at once at ``level``."""
    compared = draws.differences()
    above = np.zeros((len(draws.names), len(draws.names)), bool)
    if len(compared.models) < 2:
        return above
    error, value = compared.errors(slice(None)), compared.estimate
    with np.errstate(invalid="ignore"):
        apart = (value[:, None] - value) - compared.critical(level) * error > compared.noise
    above[np.ix_(compared.models, compared.models)] = apart
    return above
