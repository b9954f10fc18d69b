"""Plackett-Luce strengths of ranked items: the sets that are chosen from, their fit, and their refits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import comb
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int, as_leaf
from jaxeval.data.ranking_places import REST, Places
from jaxeval.data.rankings import ITEM, RankingCells, Rankings, as_rankings
from jaxeval.data.report import DataReport
from jaxeval.execution import shapes
from jaxeval.execution.host import fetched
from jaxeval.kernels.batch.choice_models import ChoiceData, refit_choices
from jaxeval.kernels.batch.plackett_luce import Choices, ChoiceUse, RankingModel, fit_rankings
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.connectivity import Standing
from jaxeval.lazy_names import pd, scipy
from jaxeval.options.boards import Gauge
from jaxeval.ratings.boards import MOST_INVERTED, Board, fit_terms
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bootstraps import bootstrap_result
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit, fit_result
from jaxeval.ratings.connectivity import Connectivity, analyse_pairs, per_model
from jaxeval.ratings.options import BootstrapOptions, FitOptions
from jaxeval.ratings.refits import BoardRefits, Refitted, SliceBoards, lane_refits, refit_problem, weights_alike
from jaxeval.ratings.slices import whole_board
from jaxeval.ratings.vote_groups import VoteGroups, unit_members
from jaxeval.resampling.units import pad
from jaxeval.statistics.comparison import check_square
from jaxeval.wording import MODEL, counted


@dataclass(frozen=True, eq=False, kw_only=True)
class RankingBoard(Board):
    """One fitted slice of rankings; M' is the number of items with padding."""

    cells: RankingCells
    inverse: Float  # (M', M')
    choices: Choices  # NumPy arrays
    diagonal: Float  # (M',) of the information
    main_weight: Float  # (M,) meetings of the items of the main group, 0 for the others

    @property
    def start(self) -> Float:
        """(M',) `theta` with padding."""
        return pad(self.theta, (len(self.diagonal),))

    def scores(self) -> scipy.sparse.csr_array:
        """Return (C, M) derivatives of one ranking's log-likelihood in each cell, its weight included."""
        chosen = _table(self.choices.of_items, len(self.cells.count), len(self.diagonal))
        times, shares, _ = self._sets()
        rated = pad(self.active, (len(self.diagonal),)).astype(float)
        return scipy.sparse.csr_array(chosen.multiply(rated) - times @ shares)[:, : len(self.theta)]

    def score_variance(self) -> Float:
        """Return (M, M) variance of the sum of all scores if the model is right and rankings are independent."""
        times, shares, _ = self._sets()
        expected = times.T @ (self.cells.count * self.cells.weight)
        matrix = np.diag(shares.T @ expected) - (shares.T @ shares.multiply(expected[:, None])).toarray()
        m = len(self.theta)
        return np.asarray(matrix[:m, :m])

    def log_likelihood(self) -> float:
        """Return the log-likelihood of the choices between items with a finite rating."""
        chosen = _table(self.choices.of_items, len(self.cells.count), len(self.diagonal))
        times, _, total = self._sets()
        won = chosen.T @ self.cells.count
        return float(won @ self.start - (times.T @ self.cells.count) @ np.log(total))

    def _sets(self) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array, Float]:
        """Return (C, A) times that rankings choose from sets, (A, M') probabilities of items, (A,) sums of exp(theta).

        A set that says nothing about items with a finite rating counts as chosen from 0 times, and its sum is 1.
        """
        size = len(self.diagonal)
        above = pad(~self.active & (self.connectivity.standing == Standing.ABOVE), (size,))
        mass = np.where(pad(self.active, (size,)), np.exp(self.start), 0.0)
        items, ends, total, says = [], [], [], []
        for table in map(np.asarray, self.choices.sets):
            total.append(mass[table].sum(0))
            says.append((total[-1] > 0) & ~above[table].any(0))
            items.append(table.T.reshape(-1))
            ends.append(np.full(table.shape[1], len(table)))
        informative, sums = np.concatenate(says), np.where(np.concatenate(says), np.concatenate(total), 1.0)
        item, start = np.concatenate(items), np.concatenate([[0], np.cumsum(np.concatenate(ends))])
        share = mass[item] / np.repeat(sums, np.diff(start))
        shares = scipy.sparse.csr_array((share, item, start), (len(sums), size))
        times = _table(self.choices.of_sets, len(self.cells.count), len(sums))
        return scipy.sparse.csr_array(times.multiply(informative)), shares, sums


def _table(use: ChoiceUse, n_cells: int, n: int) -> scipy.sparse.csr_array:
    """Return (C, n) how often the cells use each of ``n`` things."""
    number, cell, factor = map(np.asarray, use)
    return scipy.sparse.csr_array((factor, (cell, number)), (n_cells, n))


def fit_ranking_board(models: pd.Index, cells: RankingCells, options: FitOptions) -> RankingBoard:
    """Fit one slice: its items and cells.

    Raises:
        ValueError: too many items for tables of all pairs.
    """
    m = len(models)
    check_square(m, MOST_INVERTED, "the information of a fit of rankings", "the rankings of the items that you compare")
    connectivity, battles = _connectivity(cells, m)
    active = (connectivity.standing == Standing.IDENTIFIED) | (options.ridge > 0)
    size = shapes.padded_size(m + 1)  # at least one item is padding, which fills up the sets
    choices = make_choices(cells, size)
    standing = np.full(size, Standing.INCOMPARABLE, np.int8)
    standing[:m] = connectivity.standing
    count = pad(cells.count, (shapes.padded_cells(len(cells.count)),))
    of_items = standing, np.arange(size) < m
    solution, inverse, diagonal = fetched(fit_rankings, choices, count, *of_items, fit_terms(options.ridge))
    main_weight = np.where(connectivity.standing == Standing.IDENTIFIED, battles, 0.0)
    return RankingBoard.at(
        solution, models, cells, connectivity=connectivity, active=active, ridge=options.ridge, choices=choices,
        inverse=np.asarray(inverse), diagonal=np.asarray(diagonal), main_weight=main_weight,
    )  # fmt: skip


def _connectivity(cells: RankingCells, n_items: int) -> tuple[Connectivity, Float]:
    """Return what the rankings identify, and (M,) meetings of each item with its neighbours.

    An item takes a point off the next one in a ranking, or half of it if they tie. Chains of such points connect the
    same items as the points of all pairs.
    """
    item, cell, ties = neighbours(cells.places)
    weight = (cells.count * cells.weight)[cell]
    swap = item[0] > item[1]
    first, second = np.where(swap, item[::-1], item)
    pairs, pair = np.unique(first.astype(np.int64) * n_items + second, return_inverse=True)
    # Wins and losses are summed separately: a difference of sums would leave rounding where there is no loss.
    wins, losses = (np.bincount(pair, weight * np.where(ties, 0.5, side)).astype(float) for side in (~swap, swap))
    n = wins + losses
    first, second = np.divmod(pairs, n_items)
    return analyse_pairs(first, second, n, wins, losses, n_items), per_model(first, second, n, n_items)


def neighbours(places: Places) -> tuple[NDArray[np.int32], NDArray[np.intp], Bool]:
    """Return (2, E') items of neighbouring places, the better one first; each pair's ranking; and whether they tie."""
    inside = np.ones(len(places.item), bool)
    inside[places.start[:-1]] = False
    at, rest = np.flatnonzero(inside), places.level == REST
    # Every item of the rest is right below the last one that was put in its place.
    last = places.start[:-1] + np.bincount(places.ranking, ~rest, len(places.length)).astype(int) - 1
    before = np.where(rest[at], last[places.ranking[at]], at - 1)
    return (
        np.stack([places.item[before], places.item[at]]),
        places.ranking[at],
        places.level[at] == places.level[before],
    )


def make_choices(cells: RankingCells, size: int) -> Choices:
    """Return the sets that rankings choose from, with ``size`` items, the last of which is padding; NumPy arrays.

    Let t items tie above the items of a set R. At each of their t choices, k of them are left, and all subsets of k are
    equally probable. So a ranking chooses 1 / (t over k) times from each such subset together with R. Of the rest
    nothing is chosen.
    """
    by_width: dict[int, list[tuple[Int, NDArray[np.intp], float]]] = defaultdict(list)
    for rankings, items, columns, share in _chosen_from(cells.places):
        members = np.sort(items[:, columns], 1)
        width = shapes.power_of_two(members.shape[1])
        filled = np.pad(members, [(0, 0), (0, width - members.shape[1])], constant_values=size - 1)
        by_width[width].append((filled, rankings, share))
    sets, numbers, of_cells, factors, n_before = [], [], [], [], 0
    width = 2
    while width <= max(by_width):
        parts = by_width.get(width, [])
        tables = np.concatenate([np.zeros((0, width), np.int64), *(table for table, _, _ in parts)])
        distinct, number = np.unique(tables, axis=0, return_inverse=True)
        padding = ((0, shapes.padded_columns(len(distinct)) - len(distinct)), (0, 0))
        padded = np.pad(distinct, padding, constant_values=size - 1)
        sets.append(as_leaf(padded.T, np.int32))
        numbers.append(n_before + number.reshape(-1))
        of_cells += [rankings for _, rankings, _ in parts]
        factors += [np.full(len(rankings), share) for _, rankings, share in parts]
        n_before += len(padded)
        width *= 2
    of_sets = np.concatenate(numbers), np.concatenate(of_cells), np.concatenate(factors)
    places = cells.places
    ranking, length = places.ranking, places.length
    last = places.level[places.start[1:] - 1]
    n_last = np.bincount(ranking, places.level == last[ranking], len(length))
    chosen = np.where(places.level == last[ranking], 1 - 1 / n_last[ranking], 1.0) * (places.level < REST)
    pair, cell, ties = neighbours(places)
    there, back = pair[0].astype(np.int64) * size + pair[1], pair[1].astype(np.int64) * size + pair[0]
    edges = np.concatenate([there, back[ties]]), np.concatenate([cell, cell[ties]])
    return Choices(
        sets=tuple(sets),
        of_sets=padded_use(*of_sets[:2], of_sets[2] * cells.weight[of_sets[1]]),
        of_items=padded_use(places.item, ranking, chosen * cells.weight[ranking]),
        edges=padded_use(*edges, np.ones(len(edges[0]))),
    )


def _chosen_from(places: Places) -> Iterator[tuple[NDArray[np.intp], Int, list[int], float]]:
    """Yield rankings with one pattern of ties; their items; columns of items that are one set; how often it is used.

    Sets of one item are left out: there is no choice.
    """
    length = places.length
    for size in np.unique(length):
        of_size = np.flatnonzero(length == size)
        place = places.start[of_size][:, None] + np.arange(size)
        patterns, of_pattern = np.unique(places.level[place], axis=0, return_inverse=True)
        for p, pattern in enumerate(patterns):
            which = of_pattern.reshape(-1) == p
            rankings, items = of_size[which], places.item[place[which]].astype(np.int64)
            for level in np.unique(pattern[pattern < REST]):
                tied, rest = np.flatnonzero(pattern == level), np.flatnonzero(pattern > level).tolist()
                for k in range(len(tied), 0, -1):
                    if k + len(rest) > 1:
                        for left in combinations(tied.tolist(), k):
                            yield rankings, items, [*left, *rest], 1 / comb(len(tied), k)


def padded_use(number: NDArray[Any], cell: NDArray[Any], factor: Float) -> ChoiceUse:
    """Return a `ChoiceUse` for the kernels, with padding."""
    shape = (shapes.padded_cells(len(number)),)
    return ChoiceUse(
        number=as_leaf(pad(number, shape), np.int32),
        cell=as_leaf(pad(cell, shape), np.int32),
        factor=as_leaf(pad(factor, shape), np.float64),
    )


# In turn, each for the lanes that those before it left; and their limits of steps.
_MAX_STEPS = {Solver.CHORD: 30, Solver.NEWTON_CG: 60, Solver.NEWTON: 200}
# Numbers that a lane has for each set, for each ranking and for each pair of items, at most.
_PER_SET, _PER_CELL, _PER_PAIR = 8, 4, 4


def ranking_refits(fitted: RankingBoard, label: str, drawn: VoteGroups, options: BootstrapOptions) -> BoardRefits:
    """Return the refits of a slice called ``label``: rankings are drawn, or clusters of them.

    Chord steps leave resamples that do not rate the same items as the full data.
    """
    members = unit_members(fitted.cells, drawn)
    draw, place = members.drawn(shapes.padded_units(members.units.shape[1]), options.drawn, label)
    m, size = len(fitted.theta), len(fitted.diagonal)
    drawn_members = padded_use(members.cell, place, members.times.astype(float))
    is_item = as_leaf(np.arange(size)[None] < m, np.float64)
    data = ChoiceData(drawn_members, fitted.choices, is_item)
    main, moves = pad(fitted.main_weight, (size,)), fitted.diagonal > 0
    problem = refit_problem(draw, data, fitted.start, main, fitted.inverse, fitted.diagonal, moves)
    n_cells = shapes.padded_cells(len(fitted.cells.count))
    entries = _PER_SET * sum(s.shape[1] for s in fitted.choices.sets) + _PER_CELL * n_cells

    def words(solver: Solver) -> int:
        return entries + (_PER_PAIR if solver == Solver.NEWTON else 1) * size**2

    model, alike, budget = RankingModel(n_cells), weights_alike(fitted.cells.weight), shapes.CONTEXTUAL_REFITS
    return lane_refits(options, refit_choices, model, problem, _MAX_STEPS, words, budget=budget, alike=alike)


#: Options of a fit that are about battles, with the value that stands for none.
_OF_BATTLES = {"features": (), "ties": "half", "link": "logit", "reweight": False, "penalty": "none"}


@dataclass(frozen=True, eq=False, repr=False)
class PlackettLuceFit(BradleyTerryFit):
    """Fitted strengths of ranked items: a `BradleyTerryFit` of rankings in place of battles.

    ``strengths`` are log-strengths theta of mean zero, and ``ratings`` base + (400 / ln 10) theta. The first of two
    items is ranked above the second with probability 1 / (1 + exp(theta_2 - theta_1)), which ``win_probability`` holds.
    ``n_battles`` counts the rankings of an item.

    An item takes a point off every item that it is ranked above, and half a point off those that it ties with. So an
    item that never stands below the main group, nor ties with it, is "undefeated", and its rating is +inf. It is
    "winless" (-inf) if it never stands above the group. The rating is NaN if no chain of rankings compares the item.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> orders = ["a > b > c", "b > a > c", "a > c > b", "c > a", "b > c"]
        >>> fit = jaxeval.fit_plackett_luce(pd.DataFrame({"ranking": orders}))
        >>> fit.ratings.round().tolist()
        [1087.0, 1017.0, 896.0]
    """

    _board: RankingBoard = field(repr=False)
    _unit: ClassVar[str] = "ranking"

    def _always_above(self, model: int, level: float) -> bool:
        """Return whether the item stood above each other one in all rankings, or clusters, of both, and often enough.

        Of two equal items either is above in a ranking with probability 1/2, so that n of n have the two-sided p-value
        2 / 2^n. An item must be ahead of every other one: no allowance for their number is needed (Berger 1982).
        """
        rows, cells = self._drawn.clusters, self._board.cells
        cell = np.arange(len(cells.count)) if rows is None else rows.cell
        placed = cells.places.of(cell)
        own = np.full(len(cell), -1)
        own[placed.ranking[placed.item == model]] = placed.level[placed.item == model]
        beside = (own[placed.ranking] >= 0) & (placed.item != model)
        if not (placed.level > own[placed.ranking])[beside].all():
            return False
        item, ranking = placed.item[beside], placed.ranking[beside]
        if rows is None:
            n = np.bincount(item, cells.count[ranking], len(self.ratings))
        else:
            n = np.bincount(np.unique(np.stack([item, rows.cluster[ranking]]), axis=1)[0], minlength=len(self.ratings))
        return bool((0.5 ** (np.delete(n, model) - 1) <= 1 - level).all())

    def _how_many(self) -> str:
        items = ITEM if self.competitor == MODEL else self.competitor
        return f"{counted(self.report.n_battles, 'ranking')} of {items.counted(len(self.ratings))}"

    def _rated_by(self, cell: Int) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        placed = self._board.cells.places.of(cell)
        return placed.ranking, placed.item


def fit_plackett_luce(
    rankings: Rankings | Any,
    ridge: float = 0.0,
    *,
    gauge: Gauge = "mean",
    base: float = 1000.0,
    cluster: str | None = None,
    strata: str | None = None,
) -> PlackettLuceFit:
    """Fit Plackett-Luce strengths by maximum likelihood.

    A ranking is a row of choices. The best item is chosen out of all of its items, the second best out of those that
    are left, and so on. Item i is chosen out of a set A with probability exp(theta_i) / sum over j in A of exp(theta_j)
    (Luce 1959; Plackett 1975, DOI 10.2307/2346567; Hunter 2004, DOI 10.1214/aos/1079120141). The fit maximises the
    weighted log-likelihood of all rankings less ridge ||theta||^2.

    A tie counts as the mean of its orders: the mean of their log-likelihoods. Two items that tie at the end are half a
    win each, as a tie of two models is in `fit_bradley_terry`. The mean is exact, over the sets of items that may be
    left in any order. If more than ten items tie, there are too many such sets, and `Rankings` refuses the ranking.

    Rankings of two items give the strengths of `fit_bradley_terry`. Do not break longer rankings into pairs for it. A
    ranking of K items makes K (K - 1) / 2 battles, which are not independent: errors and intervals that take them as
    independent are wrong. For rankings of five items they were too small by a quarter in simulations. The strengths
    from pairs differ, too, and are less exact.

    ``jaxeval.bootstrap(rankings, ...)`` resamples rankings, and ``jaxeval.leaderboard(rankings, ...)`` makes a table of
    them, with slices, clusters, strata, checkpoints and all else that these functions have for battles.

    Args:
        rankings: `Rankings`, or a table of the standard columns, see `Rankings.from_pandas`.
        ridge: >= 0, coefficient of the squared norm. With 0, items that the rankings cannot place get infinite or NaN
            ratings and are named in ``warnings``.
        gauge: of the ratings: "mean", "votes" (mean weighted by rankings), or (item, rating) to hold an item at one.
        base: the mean rating of the first two gauges.
        cluster: column of the clusters (judges, prompts) that ``standard_errors`` and ``covariance`` take as
            independent, in place of rankings; the ratings do not change.
        strata: column of strata, each with a fixed number of rankings, or clusters.

    Raises:
        ValueError: a negative ridge, or an impossible gauge.
        DataError: ``rankings`` is a table that cannot be read; ``cluster`` or ``strata`` names no column, or one with
            missing values, or one that differs within a ranking.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> orders = ["a > b > c", "b > a > c", "a > c > b", "c > a", "b > c"]
        >>> rankings = jaxeval.Rankings.from_pandas(pd.DataFrame({"ranking": orders}))
        >>> fit = jaxeval.fit_plackett_luce(rankings)
        >>> fit.strengths.round(2).to_dict()
        {'a': 0.5, 'b': 0.1, 'c': -0.6}
        >>> fit.standard_errors.round().tolist()
        [110.0, 110.0, 92.0]
    """
    rows = as_rankings(rankings).rows
    options = FitOptions(ridge=ridge, gauge=gauge, base=base, cluster=cluster, strata=strata).checked(rows)
    cells, drawn = whole_board(rows, options)
    assert isinstance(cells, RankingCells)
    return ranking_fit(fit_ranking_board(rows.models, cells, options), drawn, rows.report, options)


def ranking_fit(fitted: RankingBoard, drawn: VoteGroups, report: DataReport, options: FitOptions) -> PlackettLuceFit:
    """Return the result for a fitted board of rankings."""
    count = fitted.cells.per_item(len(fitted.theta))
    return fit_result(PlackettLuceFit, fitted, drawn, report, options, count)


@dataclass(frozen=True, eq=False)
class RankingBoards(SliceBoards[PlackettLuceFit, Bootstrap]):
    """Boards of rankings."""

    report: DataReport

    def fit(self, s: int) -> PlackettLuceFit:
        """Return the fit of the choices that rankings are made of."""
        models, cells = self.slices.boards[s]
        assert isinstance(cells, RankingCells)
        board = fit_ranking_board(models, cells, self.options)
        return ranking_fit(board, self.slices.drawn[s], self.report, self.options)

    def refits(self, s: int, fit: PlackettLuceFit) -> BoardRefits:
        """Return the refits to draws of rankings, or of clusters of them."""
        return ranking_refits(fit._board, self.slices.labels[s], self.slices.drawn[s], self.options)

    def result(self, fit: PlackettLuceFit, refitted: Refitted) -> Bootstrap:
        """Return the draws of one slice."""
        return bootstrap_result(Bootstrap, fit, refitted, self.options)


def check_for_rankings(options: FitOptions) -> None:
    """Raise an error for options that are about battles."""
    for name, without in _OF_BATTLES.items():
        if getattr(options, name) != without and getattr(options, name) != "auto":
            raise ValueError(f"{name}= is about battles, and rankings have none: leave it out")
    if options.method == "sparse":
        raise ValueError("method='sparse' is for battles: rankings are fitted on tables of all items")
    if getattr(options, "dtype", "float64") != "float64":
        raise ValueError("refits of rankings are in double precision: leave dtype= out")
