"""Leaderboards of small categories, which borrow from the other battles as much as the battles ask for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypedDict, Unpack

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.checks import check_room, checked_positive
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.features import design
from jaxeval.data.groups import MissingGroup
from jaxeval.data.report import DataReport
from jaxeval.execution.progress import progress_bar
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.batch.refits import Solver
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.bootstrap_result import Bootstrap, Bootstraps, BootstrapSettings, bootstrap_result
from jaxeval.ratings.borrowed_boards import BorrowedBoard, Prior, borrowed_boards
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit, fit_result
from jaxeval.ratings.gauge import ELO_PER_LOGIT, Gauge
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.refits import RESULT_BYTES, Refitted
from jaxeval.ratings.slices import make_slices, slice_name, whole_board
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.show.shown import Answer
from jaxeval.statistics.quantiles import interval_bounds
from jaxeval.wording import counted

#: With a larger prior, strengths would be tried that no computer can tell from infinite ones.
_LARGEST_PRIOR = 1_000


@dataclass(frozen=True, kw_only=True)
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
        [20.0, 22.0, 21.0, 18.0]
    """

    @property
    def _borrowed(self) -> BorrowedBoard:
        fitted = self._likelihood
        assert isinstance(fitted, BorrowedBoard)
        return fitted

    @property
    def _model_based(self) -> Float:
        return self._borrowed.covariance

    _sandwich = _model_based

    @property
    def borrowed(self) -> pd.Series:
        """(M,) share of what is known of each model that comes from the other battles; 1 if it has no battle here."""
        own = np.where(self._board.active, self._borrowed.borrowed, np.nan)
        return pd.Series(own, self.ratings.index, name="borrowed")

    @property
    def borrowed_share(self) -> float:
        """Mean of ``borrowed``: 0 for a board of its own battles alone, 1 for one of the others alone."""
        return self._borrowed.borrowed_share


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
        [1063.0, 1135.0]
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
        return ELO_PER_LOGIT * self.fit._borrowed.spread

    @property
    def spread_draws(self) -> Float:
        """(B,) the spread of each draw, Elo."""
        return ELO_PER_LOGIT * self.fit._borrowed.spread_draws

    def beside(self, level: float = 0.95) -> dict[str, list[dict[str, Any]]]:
        """What the category borrows, see `category`."""
        return {"categories": [dict(self.category(level))]}

    def category(self, level: float = 0.95) -> dict[str, float]:
        """What the category borrows, as a record.

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
            "variance_factor": self.fit._borrowed.factor,
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
        """One row per category: `CategoryBoard.category`."""
        rows = [self[group].category(level) for group in self]
        return pd.DataFrame(rows, pd.Index(map(slice_name, self), name=" / ".join(self.by)))

    def _shown(self) -> Answer:
        first = next(iter(self.values()))
        title = f"CategoryBoards: {counted(len(self), 'category', 'categories')}, {counted(len(first.draws), 'draw')}"
        return Answer(title, self.table(), vars(first.settings) | {"n_resamples": None}, self.warnings)


class CategoryArguments(TypedDict, total=False):
    """What `small_categories` takes by name alone, as type checkers see it."""

    gauge: Gauge
    base: float
    cluster: str | None
    max_slices: int
    min_slice_battles: int
    missing: MissingGroup


@spelled_out(BootstrapOptions)
def small_categories(
    battles: Battles | Any,
    by: str | Sequence[str],
    n_resamples: int = 1000,
    seed: int = 0,
    *,
    prior_spread: float = 100.0,
    progress: bool | None = None,
    **options: Unpack[CategoryArguments],
) -> CategoryBoards:
    """A board of each category, which borrows from all other battles as much as its own battles ask for.

    A board of a few hundred battles is noise, and the board of all battles is of something else. Here the strengths of
    a category are those of the other battles plus differences, theta_c = theta + d_c. The differences are normal about
    0 with a *spread* (Polyrating, arXiv:2409.00696). The marginal likelihood says how probable each spread is, and the
    ratings are a mean over all spreads. A category with many battles has a board of its own; one with few has nearly
    that of the others. ``borrowed`` says how much is from elsewhere, for each category and each model in it.

    The draws come from the posterior, what is believed of the ratings after the battles: first a spread, as probable as
    the battles make it, then strengths from the normal distribution about their mode at this spread. So intervals
    include the uncertainty of the spread; with the most probable spread taken for certain they would be too short. They
    hold on average over the prior of spreads: more often than they say where the true spread is small, and less often
    (.91 at worst, at .95) for some larger ones. Nothing is resampled, so that there is no checkpoint. See
    docs/small-categories.md.

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
            distribution about 0. It matters if a category's battles say little about its spread.
        progress: show a bar on standard error; by default only on a terminal, for work over 0.7 s.
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
        >>> table.loc[table["category"] == "German", ["model_name", "rating", "borrowed"]].round(2)
           model_name   rating  borrowed
        8     model-1  1099.12      0.49
        9     model-3   983.92      0.46
        10    model-2   967.36      0.42
        11    model-4   949.61      0.42
    """
    given = {**locals(), **options}
    battles = as_battles(battles)
    scale = checked_positive("prior_spread", prior_spread)
    if scale > _LARGEST_PRIOR:
        raise ValueError(f"prior_spread must be at most {_LARGEST_PRIOR:,} Elo, got {prior_spread!r}")
    if by is None:
        raise TypeError("by= takes the name of a column or a list of names, got None")
    asked = replace(BootstrapOptions.of(given), method="dense").checked(battles)
    no_covariates = design(battles, (), True)
    slices = make_slices(battles, no_covariates, asked)
    check_room(asked.n_resamples, RESULT_BYTES * battles.n_models * len(slices.boards))
    cells, drawn = whole_board(battles, no_covariates, asked)
    (whole,) = fit_boards([(battles.models, cells)], asked)
    prior = Prior(scale / ELO_PER_LOGIT)
    with progress_bar(len(slices.boards), "categories", progress) as advance:
        found = []
        for board in borrowed_boards(whole, drawn, slices, prior, asked.n_resamples, asked.seed):
            found.append(board)
            advance(1)
    boards = [
        _board(own, own_drawn, battles.report, asked, scale) for own, own_drawn in zip(found, slices.drawn, strict=True)
    ]
    assert slices.groups is not None
    return CategoryBoards(zip(slices.groups, boards, strict=True), slices, asked)


def _board(
    found: BorrowedBoard, drawn: VoteGroups, report: DataReport, options: BootstrapOptions, prior_spread: float
) -> CategoryBoard:
    """The result for one category."""
    b, m = found.draws.shape
    fit = fit_result(CategoryFit, found, drawn, report, options)
    refitted = Refitted(
        parameters=found.draws,
        status=np.full(b, found.board.status, np.int8),
        n_steps=np.zeros(b, np.int32),
        grad_norm=np.zeros(b),
        standing=np.zeros((b, m), np.int8),
        solver=np.full(b, Solver.CHORD, np.int8),
    )
    board = bootstrap_result(CategoryBoard, fit, refitted, options)
    return replace(board, settings=CategorySettings.of(vars(board.settings) | {"prior_spread": prior_spread}))
