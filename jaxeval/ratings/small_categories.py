"""Leaderboards of small categories, which borrow from the other battles as much as the battles ask for."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from jaxeval.arrays import Float, Int, as_leaf
from jaxeval.checks import check_room, checked_positive
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.cells import Cells
from jaxeval.data.report import DataReport
from jaxeval.execution.precision import double_precision, one_blas_thread
from jaxeval.execution.progress import progress_bar
from jaxeval.execution.shapes import padded_few, padded_size
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.batch.small_categories import Belief, Split, category_beliefs
from jaxeval.kernels.solve import Status
from jaxeval.lazy_names import jax, pd, scipy
from jaxeval.ratings.boards import Board, fit_boards, fit_terms
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bootstraps import Bootstraps, bootstrap_result
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit, fit_result
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.options import BootstrapOptions, BootstrapSettings
from jaxeval.ratings.refits import RESULT_BYTES, Refitted
from jaxeval.ratings.slices import Slices, make_slices, slice_name, whole_board
from jaxeval.ratings.vote_groups import VoteGroups, score_squares
from jaxeval.resampling.units import pad, stacked, stream_number
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer
from jaxeval.statistics.comparison import check_square
from jaxeval.statistics.quantiles import interval_bounds
from jaxeval.wording import counted

if TYPE_CHECKING:
    from jaxeval.options.arguments import SmallCategoriesArguments
#: A category with this borrowed share, or a larger one, is reported as all borrowed.
ALL_BORROWED = 0.9
#: A category's two sets of strengths are found together, on tables of twice as many models.
MOST_MODELS = 1_000
# Spreads that are tried, in units of the prior's scale: 0, and then each a sixth larger than the one before. 50 models
# do not tell a spread much more finely.
_SPREADS = np.concatenate([[0.0], np.geomspace(0.03, 3.0, 31)])
# A category's variance factor is found as if it had this many more battles, like those of the whole board.
_BATTLES_ON_AVERAGE = 100
# The least variance factor. Where nearly all battles are ties, outcomes would otherwise pass for certain.
_LEAST_FACTOR = 0.1
# Entries of the tables of all categories in one call; each takes some 50 bytes.
_TABLE_ENTRIES = 2**24


def _of_spreads(evidence: Float) -> tuple[Float, Float]:
    """Return (K,) probabilities of the spreads after the battles: for ratings, and for intervals.

    The prior of a spread is the right half of a normal distribution about 0, for ratings and what is borrowed. Nearly
    flat where the spreads of most categories are, up to half its scale (DOI 10.1214/06-BA117A).

    Intervals take Rayleigh's distribution of the same scale. It is flat in the square of small spreads, by which they
    hold at each spread (Morris 1983, DOI 10.1080/01621459.1983.10477920); by the other prior they held on average over
    spreads, and .91 at some. Ratings by it would borrow too little where the battles are few.
    """
    ratings = np.log(np.gradient(_SPREADS)) - 0.5 * _SPREADS**2  # each stands for the spreads around it
    with np.errstate(divide="ignore"):
        logs = [evidence + ratings, evidence + ratings + np.log(_SPREADS)]
    first, second = (scipy.special.softmax(np.where(np.isfinite(x), x, -np.inf)) for x in logs)
    return first, second


@dataclass(frozen=True, eq=False, kw_only=True)
class BorrowedBoard(Board):
    """One category, whose log-strengths are means over K spreads; B draws."""

    inverse: Float  # (M, M) covariance of the log-strengths, given what is borrowed, too
    borrowed: Float  # (M,) share that each model has from the other battles
    factor: float  # variance of its outcomes, divided by that of wins and losses
    spread: float  # logits, its posterior mean; NaN where there are no other battles
    draws: Float  # (B, M) log-strengths, 0 for models without a rating
    spread_draws: Float  # (B,) the spread of each draw

    @property
    def borrowed_share(self) -> float:
        """Mean of ``borrowed`` over the rated models; NaN if there are none."""
        return float(self.borrowed[self.active].mean()) if self.active.any() else np.nan


def borrowed_boards(
    whole: Board, whole_drawn: VoteGroups, slices: Slices, prior_scale: float, n_resamples: int, seed: int
) -> Iterator[BorrowedBoard]:
    """Yield the boards of all slices, which borrow from the ``whole`` board less their own battles.

    Args:
        whole: the fitted board of all battles.
        whole_drawn: which of them belong together.
        slices: of the categories.
        prior_scale: of the prior of the spread of each category, logits.
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
        _factor(_squares(whole, cells, groups), of_whole)
        for cells, groups in zip(categories, slices.drawn, strict=True)
    ]
    size = padded_size(m)
    _, all_wins = whole.rated_tables()
    together = max(_TABLE_ENTRIES // (len(_SPREADS) * size**2), 1)
    for first in range(0, len(categories), together):
        block = range(first, min(first + together, len(categories)))
        splits = [_split(whole, all_wins, categories[s], factors[s], common, size) for s in block]
        beliefs = _beliefs(splits, prior_scale * _SPREADS, pad(whole.theta, (size,)))
        for s, belief in zip(block, beliefs, strict=True):
            numbers = np.random.default_rng([seed, stream_number(slices.labels[s]), 5])
            normal = numbers.standard_normal((n_resamples, m + 1))  # resample r takes row r
            yield _mixed(whole, categories[s], factors[s], prior_scale * _SPREADS, belief, normal)


def _on_all_models(models: pd.Index, listed: pd.Index, cells: Cells) -> Cells:
    """Return the cells of a slice whose models are ``listed``, numbered as all ``models``."""
    place = models.get_indexer(listed).astype(np.int32)
    return replace(cells, first=place[cells.first], second=place[cells.second])


def _squares(whole: Board, cells: Cells, drawn: VoteGroups) -> tuple[float, float, float]:
    """Sum the squared scores of ``cells``, by whole clusters; what wins and losses alone would give; and battles.

    All at the strengths of the ``whole`` board, over its rated models.
    """
    board = replace(whole, cells=cells)
    n, _ = cells.pair_sums()
    p = whole.expected(whole.theta[cells.first] - whole.theta[cells.second])
    both = whole.active[cells.first] & whole.active[cells.second]
    expected = 2 * float(np.sum((n * p * (1 - p))[both]))
    squares = float(np.trace(score_squares(board.scores(), cells.count, drawn)))
    return squares, expected, float(cells.battles[both].sum())


def _factor(category: tuple[float, float, float], whole: tuple[float, float, float]) -> float:
    """Give the variance factor of some battles, with `_BATTLES_ON_AVERAGE` average battles of the whole board added."""
    share = _BATTLES_ON_AVERAGE / max(whole[2], 1.0)
    squares, expected = (0.0, 0.0) if np.isnan(category[0]) else category[:2]  # all in one cluster
    squares, expected = squares + share * whole[0], expected + share * whole[1]
    factor = squares / expected if expected > 0 else np.nan
    return 1.0 if np.isnan(factor) else max(float(factor), _LEAST_FACTOR)


def _split(whole: Board, all_wins: Float, cells: Cells, factor: float, common: float, size: int) -> Split:
    """Return the battles of a category and the others, as the kernels take them; NumPy arrays."""
    wins = cells.tables(len(whole.theta))[1] * (whole.active[:, None] & whole.active)
    others = np.maximum(all_wins - wins, 0.0)
    return Split(
        category=as_leaf(pad(wins / factor, (size, size)), np.float64),
        others=as_leaf(pad(others / common, (size, size)), np.float64),
        active=as_leaf(pad(whole.active, (size,)), np.bool_),
    )


def _beliefs(splits: list[Split], spreads: Float, start: Float) -> list[Belief]:
    """Return the beliefs of each category at each spread; NumPy arrays."""
    n = padded_few(len(splits))
    all_splits = Split(*(stacked(list(x), n) for x in zip(*splits, strict=True)))
    terms = fit_terms(0.0)
    with double_precision(), one_blas_thread():
        beliefs = jax.device_get(category_beliefs(all_splits, spreads, start, terms))
    return [Belief(*(x[s] for x in beliefs)) for s in range(len(splits))]


def _mixed(whole: Board, cells: Cells, factor: float, spreads: Float, belief: Belief, normal: Float) -> BorrowedBoard:
    """Return the board of a category: a mixture over the spreads, each as probable as the battles make it."""
    m = len(whole.theta)
    weight, for_draws = _of_spreads(np.asarray(belief.evidence))
    mean, covariance = np.asarray(belief.mean)[:, :m], np.asarray(belief.covariance)[:, :m, :m]
    theta = weight @ mean
    off = (mean - for_draws @ mean) * np.sqrt(for_draws)[:, None]
    n, wins = cells.pair_sums()
    alone = cells.count.sum() == whole.cells.count.sum()  # there are no other battles that it could differ from
    spreads = np.full_like(spreads, np.nan) if alone else spreads
    last = int(np.flatnonzero(for_draws)[-1])
    drawn = np.minimum(np.searchsorted(np.cumsum(for_draws), scipy.special.ndtr(normal[:, 0])), last)
    about = mean + theta - for_draws @ mean
    mixed = BorrowedBoard.of(
        whole,
        cells=cells,
        n=n,
        wins=wins,
        theta=theta,
        status=int(belief.status.max()),
        n_steps=int(belief.n_steps.sum()),
        grad_norm=float(belief.grad_norm.max()),
        inverse=np.tensordot(for_draws, covariance, 1) + off.T @ off,
        borrowed=weight @ np.asarray(belief.borrowed)[:, :m],
        factor=factor,
        spread=float(weight @ spreads),
        draws=_draws(about, covariance, drawn, np.flatnonzero(whole.active), normal[:, 1:]),
        spread_draws=spreads[drawn],
    )
    if not mixed.borrowed_share >= ALL_BORROWED:
        return mixed
    return replace(
        mixed,
        flags=(
            f"all borrowed ({mixed.borrowed_share:.0%}): these ratings show how models do in the other battles, as "
            f"{counted(int(cells.count.sum()), 'battle says', 'battles say')} next to nothing about "
            f"{counted(m, 'model')}",
        ),
    )


def _draws(mean: Float, covariance: Float, drawn: Int, active: Int, normal: Float) -> Float:
    """Give (B, M) strengths of the ``active`` models at the spreads ``drawn`` (B,), from (B, M) ``normal`` numbers."""
    draws = np.zeros((len(normal), mean.shape[1]))
    for k in np.unique(drawn) if len(active) else ():
        of_active = covariance[k][np.ix_(active, active)]
        # Some variance of the common shift, which no rating shows, makes it regular.
        root = np.linalg.cholesky(of_active + (np.trace(of_active) / len(active) + 1e-12) / len(active))
        rows = np.flatnonzero(drawn == k)
        # Not by BLAS, whose rounding of a row depends on how many rows there are.
        draws[np.ix_(rows, active)] = mean[k, active] + np.einsum("rj,ij->ri", normal[np.ix_(rows, active)], root)
    return draws


#: With a larger prior, strengths would be tried that no computer can tell from infinite ones.
_LARGEST_PRIOR = 1_000


class CategorySettings(BootstrapSettings):
    """What made a `CategoryBoard`: the options of its draws, and the prior of the spread."""

    prior_spread: float  # Elo


@dataclass(frozen=True, eq=False, repr=False)
class CategoryFit(BradleyTerryFit):
    """Ratings of a category that borrows from the other battles: what a `BradleyTerryFit` has.

    ``n_battles`` counts those of the category. All standard errors are those of the posterior of the ratings: they
    include the uncertainty of what is borrowed and of how much is borrowed.

    Examples:
        >>> import jaxeval
        >>> boards = jaxeval.small_categories(jaxeval.simulate_votes(2_000, 4, seed=0), by="language", n_resamples=200)
        >>> boards["German"].fit.standard_errors.round().tolist()
        [24.0, 22.0, 23.0, 20.0]
    """

    _board: BorrowedBoard = field(repr=False)

    @property
    def _model_based(self) -> Float:
        return self._board.inverse

    _sandwich = _model_based

    @property
    def _further_columns(self) -> dict[str, Float]:
        return {"borrowed": self.borrowed.to_numpy()}

    @property
    def borrowed(self) -> pd.Series:
        """(M,) share of what is known of each model that comes from the other battles; 1 if it has no battle here."""
        share = np.where(self._board.active, self._board.borrowed, np.nan)
        return pd.Series(share, self.ratings.index, name="borrowed")

    @property
    def borrowed_share(self) -> float:
        """Mean of ``borrowed``: 0 for a board of its own battles alone, 1 for one of the others alone."""
        return self._board.borrowed_share


@dataclass(frozen=True, eq=False, repr=False)
class CategoryBoard(Bootstrap):
    """A board of a category that borrows from the other battles, with draws: what a `Bootstrap` has.

    The draws come from the posterior of the ratings (see `small_categories`): nothing is resampled.

    Examples:
        >>> import jaxeval
        >>> boards = jaxeval.small_categories(jaxeval.simulate_votes(2_000, 4, seed=0), by="language", n_resamples=200)
        >>> board = boards["German"]
        >>> print(f"{board.borrowed_share:.0%} borrowed, spread {board.spread:.0f} Elo")
        44% borrowed, spread 40 Elo
        >>> board.interval().round().loc["model-1"].tolist()
        [1057.0, 1139.0]
    """

    fit: CategoryFit
    settings: CategorySettings
    _draw: ClassVar[str] = "draw"

    @property
    def borrowed_share(self) -> float:
        """As in `CategoryFit`."""
        return self.fit.borrowed_share

    @property
    def spread(self) -> float:
        """Standard deviation of the ratings here about those of the other battles, Elo: the posterior mean."""
        return ELO_PER_LOGIT * self.fit._board.spread

    @property
    def spread_draws(self) -> Float:
        """(B,) the spread of each draw, Elo: by the prior of draws, under which large ones are more probable."""
        return ELO_PER_LOGIT * self.fit._board.spread_draws

    def beside(self, level: float = 0.95) -> dict[str, list[dict[str, Any]]]:
        """Return what the category borrows, see `category`."""
        return {"categories": [dict(self.category(level))]}

    def category(self, level: float = 0.95) -> dict[str, float]:
        """Return what the category borrows, as a record.

        ``n_battles``; ``borrowed``, the share; ``spread`` and its interval, Elo; ``variance_factor``, the variance of
        outcomes divided by that of wins and losses: ties make it smaller, clusters larger.
        """
        lower, upper = interval_bounds(self.spread_draws, level)
        return {
            "n_battles": int(self.fit.n_battles.sum()) // 2,
            "borrowed": self.borrowed_share,
            "spread": self.spread,
            "spread_lower": float(lower),
            "spread_upper": float(upper),
            "variance_factor": self.fit._board.factor,
        }


class CategoryBoards(Bootstraps):
    """The boards of all categories, by category: a dict, which `leaderboard` takes.

    Examples:
        >>> import jaxeval
        >>> boards = jaxeval.small_categories(jaxeval.simulate_votes(2_000, 4, seed=0), by="language", n_resamples=200)
        >>> boards.table()[["n_battles", "borrowed"]].round(2)  # doctest: +NORMALIZE_WHITESPACE
                  n_battles  borrowed
        language
        Chinese         316      0.58
        English        1086      0.31
        German          191      0.44
        Japanese        172      0.49
        Russian         235      0.59
    """

    def __getitem__(self, group: Hashable) -> CategoryBoard:
        board = super().__getitem__(group)
        assert isinstance(board, CategoryBoard)
        return board

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Make a table with a row per category, by `CategoryBoard.category`."""
        rows = [self[group].category(level) for group in self]
        table = pd.DataFrame(rows, pd.Index(map(slice_name, self), name=" / ".join(self.by)))
        return with_kinds(table, percent="borrowed")

    def _shown(self) -> Answer:
        first = next(iter(self.values()))
        title = f"CategoryBoards: {counted(len(self), 'category', 'categories')}, {counted(len(first.draws), 'draw')}"
        return Answer(title, self.table(), vars(first.settings) | {"n_resamples": None}, self.warnings)


@spelled_out(BootstrapOptions, only="gauge base cluster max_slices min_slice_battles missing")
def small_categories(
    battles: Battles | Any,
    by: str | Sequence[str],
    n_resamples: int = 1000,
    seed: int = 0,
    *,
    prior_spread: float = 100.0,
    progress: bool | None = None,
    **options: Unpack[SmallCategoriesArguments],
) -> CategoryBoards:
    """Return a board of each category, which borrows from all other battles as much as its own battles ask for.

    A board of a few hundred battles is noise, and the board of all battles is of something else. Here the strengths of
    a category are those of the other battles plus differences, theta_c = theta + d_c. The differences are normal about
    0 with a *spread* (Polyrating, arXiv:2409.00696). The marginal likelihood says how probable each spread is, and the
    ratings are a mean over all spreads. A category with many battles has a board of its own; one with few has nearly
    that of the others. ``borrowed`` says how much is from elsewhere, for each category and each model in it.

    The draws come from the posterior, what is believed of the ratings after the battles: first a spread, as probable as
    the battles make it, then strengths from the normal distribution about their mode at this spread. So intervals
    include the uncertainty of the spread; with the most probable spread taken for certain they would be too short. They
    hold at each spread, and more often than they say where the spread is small and the battles are few. Nothing is
    resampled, so that there is no checkpoint. See docs/small-categories.md.

    Ties are half a win. Outcomes then vary less than wins and losses do: the likelihood is divided by the variance
    factor, the sum of squared residuals divided by what it would be of wins and losses. With ``cluster`` residuals are
    summed over each cluster first.

    Args:
        battles: `Battles`, or a table with the standard columns.
        by: a column, or several, whose groups are the categories. Categories of a column of lists, or of objects with
            flags, overlap. Each borrows from the battles that are not in it, so that each board counts a battle once;
            the category "overall" has all battles and borrows nothing.
        n_resamples: B, draws.
        seed: any integer from 0 to 2**63 - 1. Draw r of a category depends on its name, the seed and r alone.
        prior_spread: Elo, at most 1,000: the scale of the prior of spreads, which is the right half of a normal
            distribution about 0, and Rayleigh's for draws. It matters if a category's battles say little about its
            spread.
        progress: show a bar on standard error; by default only on a terminal, for work over 0.7 s, elsewhere a line a
            minute.
        gauge: as in `fit_bradley_terry`, like ``base``.
        cluster: column of the clusters (prompts, voters, sessions), whose battles vary together.
        max_slices: as in `bootstrap`, like ``min_slice_battles`` and ``missing``. Battles without a category, and those
            of categories that are too small, are among the other battles all the same.

    Raises:
        TypeError: an option has the wrong type.
        ValueError: a bad number, an impossible gauge, or more than 1,000 models.
        DataError: as in `bootstrap`.

    Returns:
        A dict of `CategoryBoard` by category, of which `leaderboard` makes a table. A model has a rating on each board
        if all battles together give it one; its ``n_battles`` is 0 where all of its rating is borrowed.

    Examples:
        >>> import jaxeval
        >>> boards = jaxeval.small_categories(jaxeval.simulate_votes(2_000, 4, seed=0), by="language", n_resamples=200)
        >>> boards["German"].fit.ratings.round().tolist()
        [1099.0, 967.0, 984.0, 950.0]
        >>> table = jaxeval.leaderboard(boards)
        >>> table.loc[table["category"] == "German", ["model", "rating", "borrowed"]].round(2)
              model   rating  borrowed
        8   model-1  1099.12      0.49
        9   model-3   983.92      0.46
        10  model-2   967.36      0.42
        11  model-4   949.61      0.42
    """
    arguments = {**locals(), **options}
    battles = as_battles(battles)
    scale = checked_positive("prior_spread", prior_spread)
    if scale > _LARGEST_PRIOR:
        raise ValueError(f"prior_spread must be at most {_LARGEST_PRIOR:,} Elo, got {prior_spread!r}")
    if by is None:
        raise TypeError("by= takes the name of a column or a list of names, got None")
    checked = replace(BootstrapOptions.of(arguments), method="dense").checked(battles)
    slices = make_slices(battles, checked)
    check_room(checked.n_resamples, RESULT_BYTES * battles.n_models * len(slices.boards))
    cells, drawn = whole_board(battles, checked)
    (whole,) = fit_boards([(battles.models, cells)], checked)
    with progress_bar(len(slices.boards), "categories", progress) as advance:
        borrowed = []
        for board in borrowed_boards(whole, drawn, slices, scale / ELO_PER_LOGIT, checked.n_resamples, checked.seed):
            borrowed.append(board)
            advance(1)
    boards = [
        _board(category, groups, battles.report, checked, scale)
        for category, groups in zip(borrowed, slices.drawn, strict=True)
    ]
    assert slices.groups is not None
    return CategoryBoards(zip(slices.groups, boards, strict=True), slices, checked)


def _board(
    borrowed: BorrowedBoard, drawn: VoteGroups, report: DataReport, options: BootstrapOptions, prior_spread: float
) -> CategoryBoard:
    """Return the result for one category."""
    fit = fit_result(CategoryFit, borrowed, drawn, report, options)
    refitted = Refitted.without_steps(borrowed.draws, borrowed.draws.shape[1], Status(borrowed.status))
    how = {"prior_spread": prior_spread}
    return bootstrap_result(CategoryBoard, fit, refitted, options, CategorySettings, how)
