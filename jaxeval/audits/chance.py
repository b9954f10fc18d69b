"""Tell misfit from chance, by simulation or by random signs; what removes it, and what it does to errors of ratings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy

from jaxeval.arrays import Float, Int
from jaxeval.audits.periods import vote_times
from jaxeval.audits.simulated_boards import PairVotes, measured, pair_votes, refitted, responses, simulated_boards
from jaxeval.data.battles import Battles
from jaxeval.data.features import Feature, FeatureLike, design, position_advantage
from jaxeval.errors import DataError
from jaxeval.execution.progress import Advance
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.kernels.batch.changed_boards import Measures
from jaxeval.kernels.solve import Status
from jaxeval.options.boards import Ties
from jaxeval.ratings.boards import Board, battle_weights, fit_boards
from jaxeval.ratings.contextual_boards import ContextualBoard, fit_slices
from jaxeval.ratings.gauge import ELO_PER_UNIT
from jaxeval.ratings.options import FitOptions
from jaxeval.ratings.slices import Slices, whole_board
from jaxeval.ratings.vote_groups import VoteGroups, score_squares
from jaxeval.resampling.units import stream_number
from jaxeval.wording import counted

_TIE_MODELS: dict[str, Ties] = {"Davidson's model of ties": "davidson", "Rao and Kupper's model of ties": "rao_kupper"}
_POSITION = "position"
_RANK = 1e-9
_NUMBERS_AT_ONCE = 2**23
_MOST_LEVERAGE = 0.95


def n_free(fitted: Board) -> int:
    """Return parameters that a board fits: strengths but one, coefficients, and that of ties."""
    coefficients = int(fitted.free.sum()) if isinstance(fitted, ContextualBoard) else 0
    return int(fitted.active.sum()) - 1 + coefficients


def explained(
    battles: Battles, plain: PairVotes, board: Board, options: FitOptions, slices: Slices | None
) -> tuple[pd.DataFrame, str]:
    """Return Pearson's X2 of one number per model, and of what else might fit.

    That is a board with the features of ``options``, boards with a model of ties, and boards of each of the ``slices``
    on its own. ``removed`` is the share of the first row's excess of X2 over its degrees of freedom that is gone in a
    row. Slices keep all of it if pairs are as odd in each slice, and have none of it if mixing slices caused it.
    Overlapping slices, in which votes would count twice, have no row: the text says why there are no slices.
    """
    name = f"one number per {battles.competitor.one}"
    rows = [(name, float(plain.pearson.sum()), int(plain.met.sum()) - n_free(board))]
    others = {}
    if options.features:
        others["control for " + ", ".join(design(battles, options.features, options.normalize).names)] = options
    if 0 < plain.ties.sum() < plain.votes.sum() and board.cells.hard:
        others |= {name: replace(options, features=(), ties=ties) for name, ties in _TIE_MODELS.items()}
    for name, other in others.items():
        covariates = design(battles, other.features, other.normalize)
        (fitted,) = fit_slices([(battles.models, whole_board(battles, other, covariates)[0])], covariates, other)
        votes = pair_votes(fitted)
        rows.append((name, float(votes.pearson.sum()), int(votes.met.sum()) - n_free(fitted)))
    no_slices = "no column of slices was named" if slices is None else ""
    if slices is not None:
        if slices.overlapping:
            no_slices = f"the slices by {', '.join(slices.overlapping)} overlap: {slices.told}"
        else:
            boards = fit_boards(slices.boards, FitOptions())
            each = [pair_votes(board) for board in boards]
            dof = sum(int(votes.met.sum()) - n_free(board) for votes, board in zip(each, boards, strict=True))
            name = f"a rating for each of {counted(len(boards), 'slice')} by {', '.join(slices.by)}"
            rows.append((name, float(sum(votes.pearson.sum() for votes in each)), dof))
    table = pd.DataFrame(rows, columns=["board", "statistic", "dof"])
    table["excess"] = table["statistic"] - table["dof"]
    first = table["excess"].iloc[0]
    table["removed"] = 1 - table["excess"] / first if first > 2 * np.sqrt(2 * table["dof"].iloc[0]) else np.nan
    return table, no_slices


def rank_errors(models: pd.Index, board: Board, votes: PairVotes, drawn: VoteGroups) -> pd.DataFrame:
    """Return a row per pair of neighbours in the ranking: their gap (Elo), and its standard error in three ways.

    ``model_error`` takes the fit for right; ``sandwich_error`` does not. Both are for pairs that met as often as they
    did. ``opponents_error`` takes the oddness of pairs as drawn anew, as it would be with other opponents.
    """
    elo = ELO_PER_UNIT[board.link]
    inverse, rated = board.inverse_information(), np.flatnonzero(board.active)
    order = rated[np.argsort(-board.theta[rated], kind="stable")]
    above, below = order[:-1], order[1:]
    residual = np.where(votes.met, votes.points - votes.expected, 0.0)
    odd = np.zeros((len(board.theta),) * 2)
    odd[votes.first, votes.second] = odd[votes.second, votes.first] = residual**2
    n_pairs = int(votes.met.sum())
    middles = {
        "model_error": None,
        "sandwich_error": score_squares(board.scores(), board.cells.count, drawn),
        "opponents_error": (np.diag(odd.sum(1)) - odd) * n_pairs / max(n_pairs - len(rated) + 1, 1),
    }

    def error(middle: Float | None) -> Float:
        covariance = inverse if middle is None else inverse @ middle @ inverse
        variance = covariance.diagonal()
        return np.asarray(
            np.sqrt(np.maximum(variance[above] + variance[below] - 2 * covariance[above, below], 0)) * elo
        )

    return pd.DataFrame({
        "above": models[above], "below": models[below], "gap": (board.theta[above] - board.theta[below]) * elo,
        **{name: error(middle) for name, middle in middles.items()},
    })  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Rows:
    """R rows of votes beside a plain board of M models; those of models without a rating weigh nothing."""

    models: scipy.sparse.csr_array  # (R, M) 1 for side A, -1 for side B
    residual: Float  # (R,) weighted, of one vote
    information: Float  # (R,) of all votes of the row
    times: Float  # (R,) votes
    units: scipy.sparse.csr_array | None  # (U, R) clusters; None where votes are alone
    inverse: Float  # (M, M)

    def pulls(self, x: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return each unit's share (U, K) in scores of covariates ``x`` (R, K), up to signs where votes are alone."""
        if self.units is None:
            return scipy.sparse.csr_array(x * (self.residual * np.sqrt(self.times))[:, None])
        return scipy.sparse.csr_array(self.units @ (x * (self.residual * self.times)[:, None]))

    @cached_property
    def of_models(self) -> tuple[scipy.sparse.csr_array, Float]:
        """(U, M) pulls on the strengths, and (M, M) their squares."""
        pulls = self.pulls(self.models)
        return pulls, _product(pulls, pulls)

    def test(self, x: scipy.sparse.csr_array) -> tuple[Float, Float, Float]:
        """Give score (K,), its information and its variance (K, K) for covariates ``x`` (R, K), the strengths free."""
        informed = scipy.sparse.csr_array(x * self.information[:, None])
        cross = _product(self.models, informed)
        taken = self.inverse @ cross
        (of_models, squares), of_x = self.of_models, self.pulls(x)
        both = _product(of_x, of_models) @ taken
        variance = _product(of_x, of_x) - both - both.T + taken.T @ squares @ taken
        score = np.asarray(x.T @ (self.residual * self.times))
        return score, _product(x, informed) - cross.T @ taken, variance


def _product(a: scipy.sparse.csr_array, b: scipy.sparse.csr_array) -> Float:
    return np.asarray((a.T.tocsr() @ b).toarray())


def dependence(
    battles: Battles, board: Board, features: Sequence[FeatureLike], lengths: tuple[str, str] | None,
    time: str | None, cluster: str | None,
) -> pd.DataFrame:  # fmt: skip
    """Return a row for the side, for the difference of ``lengths``, for each of the ``features``, and for ``time``.

    ``effect``, in logits, is that of being side A, or of one unit of the feature, as a fit beside the strengths would
    have it to first order. Time may move every model differently: its row has no effect, and tests that no model moves.
    """
    rows = _rows(battles, board, cluster)
    more = [x for x in ([lengths] if lengths else []) if x not in features]
    others = [x for x in features if not (isinstance(x, Feature) and x.name == _POSITION)]
    covariates = design(battles, [position_advantage(), *more, *others], normalize=True)
    table = []
    for name, x, factor in zip(covariates.names, covariates.matrix.T, covariates.factor, strict=True):
        score, information, variance = rows.test(scipy.sparse.csr_array(x[:, None]))
        per_score = factor / information[0, 0] if information[0, 0] > _RANK * rows.information.sum() else np.nan
        effect, error = score[0] * per_score, np.sqrt(max(variance[0, 0], 0)) * per_score  # rounding may go below 0
        table.append(("side A" if name == _POSITION else name, *_chi_square(score, variance), effect, error))
    if time is not None:
        when = scipy.sparse.csr_array(rows.models * _times(battles, time)[:, None])
        score, _, variance = rows.test(when)
        table.append((time, *_chi_square(score, variance), np.nan, np.nan))
    return pd.DataFrame(table, columns=["test", "statistic", "dof", "p_value", "effect", "standard_error"])


def _rows(battles: Battles, board: Board, cluster: str | None) -> _Rows:
    r, m = battles.n_rows, battles.n_models
    count = np.ones(r) if battles.count is None else battles.count.astype(float)
    weight = np.ones(r) if battles.weight is None else battles.weight
    weight = weight * (board.active[battles.model_a] & board.active[battles.model_b])
    expected = board.expected(board.theta[battles.model_a] - board.theta[battles.model_b])
    entries = np.tile([1.0, -1.0], r), np.stack([battles.model_a, battles.model_b], 1).ravel()
    units = None
    if cluster is not None:
        code, names = battles.codes(cluster)
        units = scipy.sparse.csr_array((np.ones(r), (code, np.arange(r))), (len(names), r))
    return _Rows(
        models=scipy.sparse.csr_array((*entries, np.arange(0, 2 * r + 1, 2)), (r, m)),
        residual=weight * (battles.target - expected), information=count * weight * expected * (1 - expected),
        times=count, units=units, inverse=board.inverse_information(),
    )  # fmt: skip


def _chi_square(score: Float, variance: Float) -> tuple[float, int, float]:
    values, vectors = np.linalg.eigh(variance)
    kept = values > _RANK * max(values.max(initial=0.0), np.finfo(float).tiny)
    statistic = float(((vectors.T @ score)[kept] ** 2 / values[kept]).sum())
    dof = int(kept.sum())
    return (statistic, dof, float(scipy.special.chdtrc(dof, statistic))) if dof else (np.nan, 0, np.nan)


def _times(battles: Battles, name: str) -> Float:
    """Return (R,) times less their mean, in standard deviations."""
    value = vote_times(battles, name)
    value = value - value.mean()
    spread = value.std()
    if not spread > 0:
        raise DataError(f"column {name!r} has one value only: nothing can depend on it")
    return np.asarray(value / spread)


class Chance(NamedTuple):
    """Misfit of the votes, and of B boards of chance; None for what is not defined."""

    pearson: Float  # (B,)
    pair: Float  # (P,) how far the votes of each pair stick out
    largest_pair: Float  # (B,)
    triad: Float  # (T,) log-odds around each triad by their standard error
    largest_triad: Float  # (B,)
    deviance: float = np.nan
    deviances: Float | None = None  # (B,)
    cyclic: float = np.nan  # weighted squares of the log-odds that no strengths explain
    total: float = np.nan  # of all log-odds
    cyclics: Float | None = None  # (B,)
    n_failed: int = 0  # boards that could not be fitted, which count as boards of more misfit


def share_above(value: Float | float, draws: Float) -> Float:
    """Return p-values of ``value`` (...) by B ``draws``: (1 + draws as large) / (B + 1); NaN draws count as larger."""
    known = np.sort(draws[~np.isnan(draws)])
    below = np.searchsorted(known, np.asarray(value) * (1 - 1e-9), side="left")
    return np.asarray((1 + len(draws) - below) / (len(draws) + 1))


def _identity(votes: PairVotes, triads: Int, n_resamples: int, seed: int) -> Identity:
    return Identity({"seed": seed}, [votes, triads], {"n_resamples": n_resamples}, noun="votes")


def simulated_chance(
    board: Board, votes: PairVotes, triads: Int, n_resamples: int, seed: int, running: RunOptions
) -> Chance:
    """Draw chance by boards simulated at the fit, of independent votes for a win, a tie or a loss."""
    simulated = simulated_boards(board, votes, triads, n_resamples, seed)
    with open_run(partial(_identity, votes, triads, n_resamples, seed), n_resamples, "boards", **running) as run:
        misfit = refitted(simulated, run)
    failed = misfit.status != Status.CONVERGED
    pearson, deviances, cyclics, pair, triad = (
        np.where(failed, np.nan, x)
        for x in (misfit.pearson, misfit.deviance, misfit.cyclic, misfit.largest_pair, misfit.largest_triad)
    )
    of_votes = measured(simulated, votes)
    p, t = len(votes.n), triads.shape[1]
    sign = np.sign(votes.points - votes.expected)
    of_pairs = sign * np.sqrt(np.asarray(of_votes.deviance)[:p])
    of_triads = (np.asarray(of_votes.cycle) / np.sqrt(np.asarray(of_votes.cycle_variance)))[:t]
    return Chance(
        pearson, of_pairs, pair, of_triads, triad, **_sums(of_votes), deviances=deviances, cyclics=cyclics,
        n_failed=int(failed.sum()),
    )  # fmt: skip


def _sums(of_votes: Measures) -> dict[str, Any]:
    deviance = float(np.asarray(of_votes.deviance).sum())
    return {"deviance": deviance, "cyclic": float(of_votes.cyclic), "total": float(of_votes.total)}


def signed_chance(
    fitted: Board, votes: PairVotes, triads: Int, drawn: VoteGroups, n_resamples: int, seed: int,
    running: RunOptions,
) -> Chance:  # fmt: skip
    """Draw chance by random signs of clusters, or of votes; unexplained log-odds vary as X2 does, to first order."""
    multipliers = Multipliers.of(fitted, drawn)
    with open_run(partial(_identity, votes, triads, n_resamples, seed), n_resamples, "boards", **running) as run:
        chance = multipliers.misfit(votes, triads, n_resamples, seed, run.advance)
    if fitted.is_plain and fitted.cells.hard:
        of_votes = measured(simulated_boards(fitted, votes, triads, 0, seed), votes)
        chance = chance._replace(**_sums(of_votes), cyclics=chance.pearson)
    return chance


@dataclass(frozen=True, eq=False)
class Multipliers:
    """What signs of units do to the residuals of P pairs."""

    residuals: scipy.sparse.csr_array  # (P, C) of one vote of each cell, its weight included
    taken: scipy.sparse.csr_array  # (P, K) change of the expected points by the parameters
    scores: scipy.sparse.csr_array  # (C, K)
    inverse: Float  # (K, K)
    times: scipy.sparse.csr_array | None  # (U, C) votes of each cluster in each cell; None where each vote is alone
    count: Int  # (C,) votes
    stretch: Float  # (C,) `_stretch` of single votes

    @classmethod
    def of(cls, fitted: Board, drawn: VoteGroups) -> Multipliers:
        """Return those of a ``fitted`` board, whose units are the clusters ``drawn`` together, or single votes.

        The fit follows the votes, and so takes up a share of a unit's residuals, its leverage h. Divided by 1 - h,
        their variance is what it was before the fit (DOI 10.1016/0304-4076(85)90158-7). For a cluster h is that of its
        votes on a pair.
        """
        (expected, slopes), cells = responses(fitted), fitted.cells
        p, c = len(cells.first), len(cells.count)
        weight, inverse = battle_weights(fitted, cells), fitted.inverse_information()
        by_pair = scipy.sparse.csr_array((np.ones(c), (cells.pair, np.arange(c))), (p, c))
        variance = inverse.diagonal()
        spread = variance[cells.first] + variance[cells.second] - 2 * inverse[cells.first, cells.second]
        leverage = (weight * expected * (1 - expected)) * spread[cells.pair]  # of a vote
        clusters, times = drawn.repeating, None
        if clusters is not None:
            key, place = np.unique(clusters.cluster * p + cells.pair[clusters.cell], return_inverse=True)
            of_pair = np.bincount(place, clusters.times * leverage[clusters.cell], len(key)).astype(float)[place]
            entries = clusters.times * _stretch(of_pair), (clusters.cluster, clusters.cell)
            times = scipy.sparse.csr_array(entries, (len(clusters.size), c))
        return cls(
            residuals=by_pair * (weight * (cells.target - expected))[None],
            taken=scipy.sparse.csr_array((by_pair * (weight * cells.count)[None]) @ slopes),
            scores=fitted.scores(), inverse=inverse, times=times, count=cells.count, stretch=_stretch(leverage),
        )  # fmt: skip

    @property
    def squares(self) -> Float:
        """(P,) sum over units of the squared residuals of each pair."""
        if self.times is None:
            return np.asarray(self.residuals.power(2) @ (self.count * self.stretch**2))
        return np.asarray((self.times @ self.residuals.T.tocsr()).power(2).sum(0))

    def signed(self, n_resamples: int, seed: int) -> Iterator[Float]:
        """Yield residuals of the pairs, (P, some lanes) at a time, in ``n_resamples`` lanes in all."""
        n_units = len(self.count) if self.times is None else self.times.shape[0]
        n_lanes = max(_NUMBERS_AT_ONCE // max(n_units, len(self.count)), 1)
        of_cells = None if self.times is None else self.times.T.tocsr()
        of_parameters = self.scores.T.tocsr()
        stream = stream_number("signs")
        for start in range(0, n_resamples, n_lanes):
            lanes = range(start, min(start + n_lanes, n_resamples))
            signs = np.empty((n_units, len(lanes)))
            for column, r in enumerate(lanes):
                rng = np.random.default_rng([seed, stream, r])
                if of_cells is None:  # the sum of as many signs as a cell has votes
                    signs[:, column] = self.stretch * (2 * rng.binomial(self.count, 0.5) - self.count)
                else:
                    signs[:, column] = 2 * rng.integers(0, 2, n_units, dtype=np.int8) - 1
            times = signs if of_cells is None else of_cells @ signs
            moved = self.inverse @ (of_parameters @ times)
            yield self.residuals @ times - self.taken @ moved

    def misfit(self, votes: PairVotes, triads: Int, n_resamples: int, seed: int, advance: Advance) -> Chance:
        """Return the misfit of the votes, and of ``n_resamples`` lanes.

        Triads are of log-odds to first order in the residuals, and their standard errors are those of the lanes.
        """
        variance = np.where(votes.variance > 0, votes.variance, np.inf)
        share = votes.expected / np.where(votes.n > 0, votes.n, 1.0)
        steep = np.where(votes.met, votes.n * share * (1 - share), np.inf)
        steep = np.where(steep > 0, steep, np.inf)
        # Errors of a few units can be small by luck; units of dependent votes vary no less than independent votes.
        error = np.sqrt(np.maximum(self.squares, votes.variance))
        error = np.where(error > 0, error, np.inf)
        t = triads.shape[1]
        entries = np.repeat([1.0, 1.0, -1.0], t), (np.tile(np.arange(t), 3), triads.reshape(-1))
        table = scipy.sparse.csr_array(entries, (t, len(share)))
        drawn = []
        for part in self.signed(n_resamples, seed):
            drawn.append(part)
            advance(part.shape[1])
        pearson = np.concatenate([(e**2 / variance[:, None]).sum(0) for e in drawn])
        pairs = np.concatenate([np.abs(e / error[:, None]).max(0, initial=0.0) for e in drawn])
        total, largest = np.zeros(t), [np.zeros(e.shape[1]) for e in drawn]
        for e in drawn:
            for some, x in _around(table, e / steep[:, None]):
                total[some] += (x**2).sum(1)
        spread = np.sqrt(total / n_resamples)
        spread = np.where(spread > 0, spread, np.inf)
        for e, most in zip(drawn, largest, strict=True):
            for some, x in _around(table, e / steep[:, None]):
                np.maximum(most, np.abs(x / spread[some, None]).max(0, initial=0.0), out=most)
        residual = votes.points - votes.expected
        of_triads = np.asarray(table @ (residual / steep)[:, None])[:, 0] / spread
        return Chance(pearson, residual / error, pairs, of_triads, np.concatenate(largest))


def _stretch(leverage: Float) -> Float:
    """Return what brings residuals back to the variance that they had before the fit."""
    return np.asarray(1 / np.sqrt(1 - np.clip(leverage, 0.0, _MOST_LEVERAGE)))


def _around(triads: scipy.sparse.csr_array, values: Float) -> Iterator[tuple[slice, Float]]:
    """Yield sums (some triads, B) around ``triads`` (T, P) of what pairs have, ``values`` (P, B)."""
    step = max(_NUMBERS_AT_ONCE // max(values.shape[1], 1), 1)
    for start in range(0, triads.shape[0], step):
        part = slice(start, start + step)
        yield part, np.asarray(triads[part] @ values)
