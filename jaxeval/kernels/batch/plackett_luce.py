"""The Plackett-Luce model of rankings (DOI 10.2307/2346567, 10.1214/aos/1079120141), for many resamples at once.

A ranking is a row of choices: the best item of all, then the best of those that are left, and so on. An item i is
chosen out of a set A with probability exp(theta_i) / sum over j in A of exp(theta_j). A tie counts as the mean of its
possible orders, so it is a mean of choices, too. The log-likelihood of any rankings is therefore

    sum_i chosen_i theta_i - sum_A times_A log sum_{j in A} exp(theta_j),

where item i is chosen chosen_i times, and set A is chosen from times_A times. Nothing else is needed of a resample. A
set that several rankings share is computed once.

Lanes are the last axis of all arrays, so the numbers of one item in all lanes are one line of memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxeval.kernels import connectivity
from jaxeval.kernels.batch import choice_models
from jaxeval.kernels.batch.choice_models import ChoiceData, LaneDerivatives, LaneModel, Resampled
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import RefitProblem
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.kinds import Array, Bool, Float, Int8, Int32, Num, namespace
from jaxeval.kernels.platforms import added
from jaxeval.kernels.solve import Solution, Terms, inverse_and_diagonal
from jaxeval.lazy_names import jax, jnp, lax

_UNROLLED = 8  # items of a set that are added in one pass over the sets


class ChoiceUse(NamedTuple):
    """What the C cells of rankings use (a set, an item, a pair of items), in T entries."""

    number: Int32[Array, "T"]  # of what is used
    cell: Int32[Array, "T"]  # that uses it
    factor: Float[Array, "T"]  # how often one ranking of the cell does; 0 for padding


class Choices(NamedTuple):
    """The sets that are chosen from, and what the C cells of rankings say of them; the last of M items is padding.

    Sets have widths of 2, 4, 8 and so on: the places that a set does not fill hold the last item. They are numbered one
    width after the other.
    """

    sets: tuple[Int32[Array, "_ _"], ...]  # items of each set
    of_sets: ChoiceUse  # times that a ranking chooses from a set, its weight included
    of_items: ChoiceUse  # times that it chooses an item
    edges: ChoiceUse  # first * M + second: the first took the place right before the second's, or the same


class Counts(NamedTuple):
    """The sufficient statistics of R resamples."""

    times: tuple[Float[Array, "_ R"], ...]  # that each set is chosen from, by width
    chosen: Float[Array, "M R"]  # that each item is chosen


class Rated(NamedTuple):
    """Which items move in R resamples, and what becomes of the others."""

    active: Bool[Array, "M R"]  # with a finite strength
    above: Bool[Array, "M R"]  # infinitely strong: whatever is chosen from a set with such an item is such an item


def take(values: Num[Array, "rows R"], index: Int32[Array, "_"]) -> Num[Array, "_ R"]:
    """Return ``values[index]``, unchecked."""
    if namespace(values) is np:
        return values[index]
    return values.at[index].get(mode="promise_in_bounds")


def used(use: ChoiceUse, count: Num[Array, "C R"], n: int) -> Float[Array, "{n} R"]:
    """Return how often each of ``n`` things is used by ``count`` rankings of the cells."""
    zero = namespace(count).zeros((n, count.shape[1]))
    return _increased(zero, use.number, use.factor[:, None] * take(count, use.cell))


def _increased(total: Float[Array, "rows R"], at: Int32[Array, "E"], value: Float[Array, "E R"]) -> Array:
    if namespace(total) is np:
        return added(total, (at, value))
    return total.at[at].add(value, mode="promise_in_bounds")


def counted_choices(choices: Choices, count: Num[Array, "C R"], n_items: int) -> Counts:
    """Return the sufficient statistics of ``count`` rankings of the cells."""
    widths = [s.shape[1] for s in choices.sets]
    times = used(choices.of_sets, count, sum(widths))
    ends = [sum(widths[:k]) for k in range(1, len(widths))]
    return Counts(tuple(namespace(times).split(times, ends)), used(choices.of_items, count, n_items))


def edges(choices: Choices, count: Num[Array, "C R"], n_items: int) -> Bool[Array, "R {n_items} {n_items}"]:
    """Return whether, in some ranking, the row's item stood right before the column's item or shared its place."""
    table = used(choices.edges, count, n_items**2) > 0
    return table.T.reshape(-1, n_items, n_items)


def rated_items(standing: Int8[Array, "M R"], is_item: Bool[Array, "M"], ridge: Num[Array, ""]) -> Rated:
    """Return which items move: with a ridge all, else those of the main group."""
    free = ridge > 0
    active = is_item[:, None] & ((standing == Standing.IDENTIFIED) | free)
    return Rated(active, (standing == Standing.ABOVE) & ~free)


def _over_places(items: Int32[Array, "width A"], add: Callable[[Array, Array], Array], start: Array) -> Array:
    """Apply ``add`` to ``start`` for each place of sets of one width, whose items are given."""
    if len(items) <= _UNROLLED or namespace(items) is np:
        for of_place in items:
            start = add(start, of_place)
        return start
    return lax.fori_loop(0, len(items), lambda k, total: add(total, items[k]), start)


def set_sums(choices: Choices, values: Float[Array, "M R"]) -> list[Float[Array, "_ R"]]:
    """Return sums of the ``values`` of the items of every set, by width; those of the last item must be 0."""

    def of_width(items: Array) -> Array:
        zero = xp.zeros((items.shape[1], values.shape[1]))
        return _over_places(items, lambda total, item: total + take(values, item), zero)

    xp = namespace(values)
    return [of_width(xp.asarray(items)) for items in choices.sets]


def item_sums(choices: Choices, values: list[Float[Array, "_ R"]], n_items: int) -> Float[Array, "{n_items} R"]:
    """Return every item's sum of the ``values`` of the sets that hold it; the values are given by width."""

    def of_width(total: Array, items: Array, weight: Array) -> Array:
        return _over_places(items, lambda sums, item: _increased(sums, item, weight), total)

    xp = namespace(*values)
    total = xp.zeros((n_items, values[0].shape[1]))
    for items, weight in zip(choices.sets, values, strict=True):
        total = of_width(total, xp.asarray(items), weight)
    return total


class Slope(NamedTuple):
    """The log-likelihood's derivatives at one point, for R resamples."""

    grad: Float[Array, "M R"]
    expected: Float[Array, "M R"]  # times that each item would be chosen
    mass: Float[Array, "M R"]  # exp(theta) of items that move, 0 of others
    bend: list[Float[Array, "_ R"]]  # times / sum^2 of the sets


def slope(choices: Choices, counts: Counts, rated: Rated, theta: Float[Array, "M R"], ridge: Num[Array, ""]) -> Slope:
    """Return the derivatives at ``theta``.

    Without a ridge, items outside of the main group are at their limits: sets with an infinitely strong item say
    nothing about others, and infinitely weak items are in no set.
    """
    xp = namespace(theta)
    mass = xp.where(rated.active, xp.exp(theta), 0.0)
    sums = set_sums(choices, xp.where(rated.above, xp.inf, mass))
    per_sum = [xp.where(total > 0, 1 / xp.where(total > 0, total, 1.0), 0.0) for total in sums]
    share = [times * inverse for times, inverse in zip(counts.times, per_sum, strict=True)]
    expected = mass * item_sums(choices, share, len(theta))
    grad = xp.where(rated.active, counts.chosen - expected - 2 * ridge * theta, 0.0)
    return Slope(grad, expected, mass, [s * inverse for s, inverse in zip(share, per_sum, strict=True)])


def product(choices: Choices, at: Slope, p: Float[Array, "M R"], ridge: Num[Array, ""]) -> Float[Array, "M R"]:
    """Return the information times ``p``, for items that move."""
    along = set_sums(choices, at.mass * p)
    back = item_sums(choices, [b * x for b, x in zip(at.bend, along, strict=True)], len(p))
    return namespace(p).where(at.mass > 0, at.expected * p - at.mass * back + 2 * ridge * p, 0.0)


def diagonal(choices: Choices, at: Slope, ridge: Num[Array, ""]) -> Float[Array, "M R"]:
    """Return the diagonal of the information, for items that move."""
    curvature = at.expected - at.mass**2 * item_sums(choices, at.bend, len(at.mass))
    return jnp.where(at.mass > 0, jnp.maximum(curvature, 0.0) + 2 * ridge, 0.0)


def information(choices: Choices, at: Slope, ridge: Num[Array, ""]) -> Float[Array, "R M M"]:
    """Return the whole information, computed column by column."""
    return choice_models.by_columns(lambda unit: product(choices, at, unit, ridge), at.mass)


@dataclass(frozen=True)
class RankingModel(LaneModel):
    """The model of rankings in this number of cells, with padding: counts are `Counts`, and which items move."""

    n_cells: int

    def counted(self, data: ChoiceData, draws: Num[Array, "units R"]) -> Num[Array, "C R"]:
        """Return rankings of every cell; entries of the data are rankings of each cell (``number``) by unit."""
        return used(data.entries, draws, self.n_cells)

    def derivatives(self, data: Choices, counts: tuple[Counts, Rated], ridge: Num[Array, ""]) -> LaneDerivatives:
        """Return those of all lanes: in far less time than by JAX, as sets share their sums."""

        def at(theta: Array) -> Slope:
            return slope(data, *counts, theta, ridge)

        def products(theta: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
            here = at(theta)
            return here.grad, diagonal(data, here, ridge), lambda p: product(data, here, p, ridge)

        return LaneDerivatives(
            lambda theta: at(theta).grad, lambda theta: information(data, at(theta), ridge), products
        )

    def resampled(self, problem: RefitProblem, counts: Num[Array, "C R"], ridge: Num[Array, ""]) -> Resampled:
        """Look for separated items; what the gauge holds are items, and the others are padding."""
        choices, n_items = problem.data.occasions, len(problem.start)
        preferred = edges(choices, counts, n_items)
        standing = jax.vmap(lambda edge: connectivity.standing(edge, problem.main))(preferred)
        rated = rated_items(standing.T, problem.data.gauge[0] > 0, ridge)
        of_sets = counted_choices(choices, counts, n_items)
        known, zero = jnp.ones(counts.shape[1], bool), jnp.zeros(rated.active.shape)
        return Resampled((of_sets, rated), rated.active, standing, known, zero)


@program(runs="briefly")
def fit_rankings(
    choices: Choices, count: Num[Array, "C"], standing: Int8[Array, "M"], is_item: Bool[Array, "M"], terms: Terms
) -> tuple[Solution, Float[Array, "M M"], Float[Array, "M"]]:
    """Fit one slice with ``count`` rankings of every cell, whose items have that ``standing``, by Newton's method.

    It also returns the pseudo-inverse of the information, and the diagonal of the information itself.
    """
    m = len(is_item)
    rated = rated_items(standing[:, None], is_item, terms.ridge)
    counts = counted_choices(choices, count[:, None].astype(float), m), rated
    of_lane = RankingModel(len(count)).derivatives(choices, counts, terms.ridge)
    xp = namespace(count)
    end = choice_models.newton(of_lane, xp.zeros((m, 1)), rated.active, xp.ones((1, m)), terms)
    (matrix,), active = of_lane.information(end.theta), rated.active[:, 0]
    return Solution(*(x[..., 0] for x in end)), *inverse_and_diagonal(matrix, active, m, terms.ridge)
