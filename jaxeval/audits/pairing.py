"""Who meets whom: whether pairs follow from the results so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from jaxeval.arrays import Float, Int
from jaxeval.audits.parts import Answered, Audited, NotAnsweredError, Severity, check_plain
from jaxeval.audits.periods import vote_times
from jaxeval.data.battles import Battles
from jaxeval.ratings.boards import Board
from jaxeval.show.shown import Answer
from jaxeval.statistics.clusters import cluster_factors, degrees_of_freedom, numbered

#: Windows of time within which models are taken to play equally often, and the fewest rows of one.
_MOST_WINDOWS, _FEWEST_ROWS = 50, 20
#: Parts of the time within which models are compared with themselves, as what models there are may change, and the
#: fewest windows of one: results so far differ between windows.
_MOST_ERAS, _FEWEST_WINDOWS = 4, 5
#: Information (logits^-2) that draws an error of few votes towards 0: that of four even votes.
_PRIOR = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class Pairing(Answered):
    """Whether models met stronger opponents after better results than their ratings say.

    ``table`` has one row: the ``slope`` (by how much stronger opponents are, for each unit by which the rating so far
    is above the final one), its ``z`` and ``p_value``.
    """

    part = "pairing"
    level: float

    def _shown(self) -> Answer:
        return Answer(f"Pairing: slope {self.table['slope'].iloc[0]:.2f}", self.table, self.settings)

    def _said(self) -> Iterator[tuple[Severity, str]]:
        row = self.table.iloc[0]
        test = f"z {row['z']:.1f}, p = {row['p_value']:.2g}"
        if row["p_value"] > 1 - self.level:
            yield Severity.REASSURING, f"Who meets whom does not visibly follow from the results so far ({test})."
            return
        size = f"{100 * abs(row['slope']):.0f} Elo {'stronger' if row['slope'] > 0 else 'weaker'}"
        yield (
            Severity.CAUTION,
            "Who meets whom follows from the results so far: for every 100 Elo that results put a "
            f"{self.competitor.one} too high, its next opponents are {size} ({test}). Intervals take pairs as given: "
            "where running ratings chose them, 95% intervals of simulated boards held 87% to 94%.",
        )


def audited_pairing(audited: Audited) -> Pairing:
    """Return the part of an audit: a regression of the strength of opponents on results so far."""
    check_plain(audited)
    options = audited.options
    times = vote_times(audited.battles, str(options.time))
    cluster = None if options.cluster is None else audited.battles.codes(options.cluster)[0]
    slope, z, p_value = followed(audited.battles, audited.fit._board, times, cluster)
    if not np.isfinite(p_value):
        raise NotAnsweredError(
            "no votes came after others, or opponents do not differ: pairs cannot follow from results"
        )
    table = pd.DataFrame([{"slope": slope, "z": z, "p_value": p_value}])
    settings = {"time": options.time, "cluster": options.cluster}
    return Pairing(table=table, level=options.level, settings=settings, competitor=audited.battles.competitor)


def followed(battles: Battles, board: Board, times: Float, cluster: Int | None = None) -> tuple[float, float, float]:
    """Return how the strengths of opponents depend on the errors of running ratings.

    The error e of a model before a vote is the sum of its residuals so far, at the fit of all votes, divided by their
    information. x is the strength of its opponent, less the mean of those that play at that time, each as often as it
    does. Both are centred by model within each of a few parts of the time. If results do not choose pairs, the sum of
    e x over the two sides of a vote has mean 0, however unequal models' shares are; so the sum over votes is divided by
    the root of its squares. With ``cluster`` (R,), the number of each row's cluster, squares are those of whole
    clusters, with the factors and the degrees of freedom of a mean over clusters of unequal size.
    """
    active = board.active[battles.model_a] & board.active[battles.model_b] & np.isfinite(times)
    a, b, when = battles.model_a[active], battles.model_b[active], times[active]
    n, m = len(a), len(board.theta)
    if n == 0:
        return np.nan, np.nan, np.nan
    theta = np.where(board.active, board.theta, 0.0)
    count = np.ones(n) if battles.count is None else battles.count[active].astype(float)
    weight = count if battles.weight is None else count * battles.weight[active]
    p = scipy.special.expit(theta[a] - theta[b])
    residual, information = weight * (battles.target[active] - p), weight * p * (1 - p)
    model, opponent, vote = np.concatenate([a, b]), np.concatenate([b, a]), np.tile(np.arange(n), 2)
    order = np.lexsort((when[vote], model))
    signed = np.concatenate([residual, -residual])[order]
    model, opponent, vote = model[order], opponent[order], vote[order]
    error = _before(signed, model, when[vote]) / (_before(information[vote], model, when[vote]) + _PRIOR)
    k = int(np.clip(n // _FEWEST_ROWS, 1, _MOST_WINDOWS))
    ends = np.sort(when)[np.arange(1, k) * n // k]
    window = np.searchsorted(np.unique(ends), when, side="right")  # of time, with about as many rows each
    strength = theta[opponent] - _expected(theta, model, window[vote], count[vote], m)
    k = int(window.max()) + 1
    eras = int(np.clip(k // _FEWEST_WINDOWS, 1, _MOST_ERAS))
    era = model * eras + (eras * window // k)[vote]
    e, x = (_centred(values, era, count[vote]) for values in (error, strength))
    products = np.bincount(vote, e * x, n)
    squared, freedom = (count * products**2).sum(), np.inf
    if cluster is not None:
        of_cluster = numbered(cluster[active])
        size = np.bincount(of_cluster, count)
        sums, freedom = np.bincount(of_cluster, count * products), degrees_of_freedom(size)
        squared = ((cluster_factors(size) * sums) ** 2).sum() if len(size) > 1 else 0.0
    spread = np.sqrt(squared)
    squares = (count[vote] * e**2).sum()
    if not (spread > 1e-12 and squares > 1e-12):
        return np.nan, np.nan, np.nan
    total = float((count * products).sum())
    z = float(total / spread)
    return float(total / squares), z, float(2 * scipy.special.stdtr(float(freedom), -abs(z)))


def _before(values: Float, model: Int, when: Float) -> Float:
    """Return sums of ``values`` of the same model at earlier times; rows are sorted by model and time."""
    place = np.arange(len(values))
    starts = np.append(True, model[1:] != model[:-1])
    later = starts | np.append(True, when[1:] != when[:-1])
    total = np.cumsum(values) - values
    latest, first = (np.maximum.accumulate(np.where(new, place, 0)) for new in (later, starts))
    return np.asarray(total[latest] - total[first])


def _expected(theta: Float, model: Int, window: Int, count: Float, m: int) -> Float:
    """Return the mean strength of those that play in the window, without the model itself."""
    k = int(window.max()) + 1
    plays = np.bincount(window * m + model, count, k * m).reshape(k, m)
    total, strong = plays.sum(1), plays @ theta
    of_itself = plays[window, model]
    return np.asarray((strong[window] - of_itself * theta[model]) / np.maximum(total[window] - of_itself, 1.0))


def _centred(values: Float, group: Int, count: Float) -> Float:
    """Return the values less their mean by group."""
    mean = np.bincount(group, count * values) / np.maximum(np.bincount(group, count), 1e-300)
    return np.asarray(values - mean[group])
