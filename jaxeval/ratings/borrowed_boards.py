"""Boards of categories that borrow from the other battles: the posterior of each, and draws of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
import scipy

from jaxeval.arrays import Float, Int, as_leaf
from jaxeval.data.cells import Cells
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import padded_few, padded_size
from jaxeval.execution.threads import one_blas_thread
from jaxeval.kernels.batch.borrowing import Belief, Split, category_beliefs
from jaxeval.kernels.solve import Terms
from jaxeval.ratings.boards import TOLERANCE_LOGIT, Board
from jaxeval.ratings.slices import Slices
from jaxeval.ratings.vote_groups import VoteGroups, score_squares
from jaxeval.resampling.units import pad, stacked, stream_number
from jaxeval.statistics.comparison import check_square
from jaxeval.wording import counted

#: A category with this borrowed share, or a larger one, is reported as all borrowed.
ALL_BORROWED = 0.9
#: A category's two sets of strengths are found together, on tables of twice as many models.
MOST_MODELS = 1_000
_MAX_NEWTON_STEPS = 200
# Spreads that are tried, in units of the prior's scale: 0, and then each a sixth larger than the one before. 50 models
# do not tell a spread much more finely.
_SPREADS = np.concatenate([[0.0], np.geomspace(0.03, 3.0, 31)])
# A category's variance factor is found as if it had this many more battles, like those of the whole board.
_BATTLES_ON_AVERAGE = 100
# The least variance factor. Where nearly all battles are ties, outcomes would otherwise pass for certain.
_LEAST_FACTOR = 0.1
# Entries of the tables of all categories in one call; each takes some 50 bytes.
_TABLE_ENTRIES = 2**24


class Prior(NamedTuple):
    """The prior of a spread: the right half of a normal distribution about 0.

    Nearly flat where the spreads of most categories are, up to half its scale (DOI 10.1214/06-BA117A).
    """

    scale: float  # logits

    @property
    def spreads(self) -> Float:
        """(K,) those that are tried."""
        return self.scale * _SPREADS

    @property
    def log_weight(self) -> Float:
        """(K,) log-probability of each, which stands for the spreads around it, up to a constant."""
        return np.log(np.gradient(_SPREADS)) - 0.5 * _SPREADS**2


class BorrowedBoard(NamedTuple):
    """One category; K spreads, B draws."""

    board: Board  # its battles; log-strengths are means over the spreads
    covariance: Float  # (M, M) of the log-strengths
    borrowed: Float  # (M,) share that each model has from the other battles
    factor: float  # variance of its outcomes, divided by that of wins and losses
    spread: float  # logits, its posterior mean; NaN where there are no other battles
    draws: Float  # (B, M) log-strengths, 0 for models without a rating
    spread_draws: Float  # (B,) the spread of each draw
    features: tuple[str, ...] = ()  # of a likelihood: names of covariates, here none
    flags: tuple[str, ...] = ()  # what the battles cannot say, here what is borrowed

    def inverse_information(self) -> Float:
        """(M, M) covariance of the log-strengths, given what is borrowed, too."""
        return self.covariance

    def scores(self) -> scipy.sparse.csr_array:
        """(C, M) scores of the category's battles."""
        return self.board.scores()

    def score_variance(self) -> Float:
        """(M, M) variance of the scores of the category's battles."""
        return self.board.score_variance()

    def log_likelihood(self) -> float:
        """Log-likelihood of the category's battles."""
        return self.board.log_likelihood()

    def expected(self, difference: Float) -> Float:
        """Probabilities of a win, a tie counting half, by differences of strengths."""
        return self.board.expected(difference)

    @property
    def borrowed_share(self) -> float:
        """Mean of ``borrowed`` over the rated models; NaN if there are none."""
        return float(self.borrowed[self.board.active].mean()) if self.board.active.any() else np.nan


def borrowed_boards(
    whole: Board, whole_drawn: VoteGroups, slices: Slices, prior: Prior, n_resamples: int, seed: int
) -> Iterator[BorrowedBoard]:
    """The boards of all slices, which borrow from the ``whole`` board less their own battles.

    Args:
        whole: the fitted board of all battles.
        whole_drawn: which of them belong together.
        slices: of the categories.
        prior: of the spread of each category.
        n_resamples: B.
        seed: of the draws.

    Raises:
        ValueError: too many models for tables of all pairs.
    """
    m = len(whole.theta)
    check_square(m, MOST_MODELS, "the table of a category that borrows", "the battles of the models that you compare")
    categories = [_on_all_models(whole.models, *board) for board in slices.boards]
    of_whole = _squares(whole, whole.cells, whole_drawn)
    common = _factor(of_whole, (0.0, 0.0, 0.0))
    factors = [
        _factor(_squares(whole, cells, own), of_whole) for cells, own in zip(categories, slices.drawn, strict=True)
    ]
    size = padded_size(m)
    _, all_wins = whole.rated_tables()
    together = max(_TABLE_ENTRIES // (len(_SPREADS) * size**2), 1)
    for first in range(0, len(categories), together):
        block = range(first, min(first + together, len(categories)))
        splits = [_split(whole, all_wins, categories[s], factors[s], common, size) for s in block]
        found = _beliefs(splits, prior.spreads, pad(whole.theta, (size,)))
        for s, belief in zip(block, found, strict=True):
            numbers = np.random.default_rng([seed, stream_number(slices.labels[s]), 5])
            normal = numbers.standard_normal((n_resamples, m + 1))  # resample r takes row r
            yield _mixed(whole, categories[s], factors[s], prior, belief, normal)


def _on_all_models(models: pd.Index, own: pd.Index, cells: Cells) -> Cells:
    """The cells of a slice whose models are ``own``, numbered as all ``models``."""
    place = models.get_indexer(own).astype(np.int32)
    return replace(cells, first=place[cells.first], second=place[cells.second])


def _squares(whole: Board, cells: Cells, drawn: VoteGroups) -> tuple[float, float, float]:
    """Three sums: the squared scores of ``cells``, by whole clusters; what wins and losses alone would give; battles.

    All at the strengths of the ``whole`` board, over its rated models.
    """
    board = whole._replace(cells=cells)
    n, _ = cells.pair_sums()
    p = whole.expected(whole.theta[cells.first] - whole.theta[cells.second])
    both = whole.active[cells.first] & whole.active[cells.second]
    expected = 2 * float(np.sum((n * p * (1 - p))[both]))
    squares = float(np.trace(score_squares(board.scores(), cells.count, drawn)))
    return squares, expected, float(cells.battles[both].sum())


def _factor(own: tuple[float, float, float], whole: tuple[float, float, float]) -> float:
    """The variance factor of some battles, with `_BATTLES_ON_AVERAGE` average battles of the whole board added."""
    share = _BATTLES_ON_AVERAGE / max(whole[2], 1.0)
    own_squares, own_expected = (0.0, 0.0) if np.isnan(own[0]) else own[:2]  # all in one cluster
    squares, expected = own_squares + share * whole[0], own_expected + share * whole[1]
    factor = squares / expected if expected > 0 else np.nan
    return 1.0 if np.isnan(factor) else max(float(factor), _LEAST_FACTOR)


def _split(whole: Board, all_wins: Float, cells: Cells, factor: float, common: float, size: int) -> Split:
    """The battles of a category and the others, as the kernels take them; NumPy arrays."""
    own = cells.tables(len(whole.theta))[1] * (whole.active[:, None] & whole.active)
    others = np.maximum(all_wins - own, 0.0)
    return Split(
        own=as_leaf(pad(own / factor, (size, size)), np.float64),
        others=as_leaf(pad(others / common, (size, size)), np.float64),
        active=as_leaf(pad(whole.active, (size,)), np.bool_),
    )


def _beliefs(splits: list[Split], spreads: Float, start: Float) -> list[Belief]:
    """The beliefs of each category at each spread; NumPy arrays."""
    n = padded_few(len(splits))
    all_splits = Split(*(stacked(list(x), n) for x in zip(*splits, strict=True)))
    terms = Terms.of(0.0, TOLERANCE_LOGIT, _MAX_NEWTON_STEPS)
    with double_precision(), one_blas_thread():
        found = jax.device_get(category_beliefs(all_splits, spreads, start, terms))
    return [Belief(*(x[s] for x in found)) for s in range(len(splits))]


def _mixed(whole: Board, cells: Cells, factor: float, prior: Prior, belief: Belief, normal: Float) -> BorrowedBoard:
    """The board of a category: a mixture over the spreads, each as probable as the battles make it."""
    m = len(whole.theta)
    log_weight = belief.evidence + prior.log_weight
    weight = scipy.special.softmax(np.where(np.isfinite(log_weight), log_weight, -np.inf))
    mean, covariance = np.asarray(belief.mean)[:, :m], np.asarray(belief.covariance)[:, :m, :m]
    theta = weight @ mean
    off = (mean - theta) * np.sqrt(weight)[:, None]
    n, wins = cells.pair_sums()
    alone = cells.count.sum() == whole.cells.count.sum()  # there are no other battles that it could differ from
    spreads = np.full_like(prior.spreads, np.nan) if alone else prior.spreads
    board = whole._replace(
        cells=cells,
        n=n,
        wins=wins,
        theta=theta,
        status=int(belief.status.max()),
        n_steps=int(belief.n_steps.sum()),
        grad_norm=float(belief.grad_norm.max()),
    )
    last = int(np.flatnonzero(weight)[-1])
    drawn = np.minimum(np.searchsorted(np.cumsum(weight), scipy.special.ndtr(normal[:, 0])), last)
    found = BorrowedBoard(
        board=board,
        covariance=np.tensordot(weight, covariance, 1) + off.T @ off,
        borrowed=weight @ np.asarray(belief.borrowed)[:, :m],
        factor=factor,
        spread=float(weight @ spreads),
        draws=_draws(mean, covariance, drawn, np.flatnonzero(whole.active), normal[:, 1:]),
        spread_draws=spreads[drawn],
    )
    if not found.borrowed_share >= ALL_BORROWED:
        return found
    return found._replace(
        flags=(
            f"all borrowed ({found.borrowed_share:.0%}): these ratings show how models do in the other battles, as "
            f"{counted(int(cells.count.sum()), 'battle says', 'battles say')} next to nothing about "
            f"{counted(m, 'model')}",
        )
    )


def _draws(mean: Float, covariance: Float, drawn: Int, active: Int, normal: Float) -> Float:
    """(B, M) strengths of the ``active`` models at the spreads ``drawn`` (B,), from (B, M) ``normal`` numbers."""
    draws = np.zeros((len(normal), mean.shape[1]))
    for k in np.unique(drawn) if len(active) else ():
        own = covariance[k][np.ix_(active, active)]
        # Some variance of the common shift, which no rating shows, makes it regular.
        root = np.linalg.cholesky(own + (np.trace(own) / len(active) + 1e-12) / len(active))
        rows = np.flatnonzero(drawn == k)
        # Not by BLAS, whose rounding of a row depends on how many rows there are.
        draws[np.ix_(rows, active)] = mean[k, active] + np.einsum("rj,ij->ri", normal[np.ix_(rows, active)], root)
    return draws
