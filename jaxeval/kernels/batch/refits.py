"""Bradley-Terry refits over slices x resamples."""

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxeval.kernels import connectivity, dense_solve, lane_draws, pair_tables, resample, tie_models
from jaxeval.kernels.batch.programs import Chunks, Program, Runs, over_lanes, program
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.kinds import Array, Bool, Float, Int8, Int32, Integer, Mesh, Num, Real, UInt64, namespace
from jaxeval.kernels.links import Link
from jaxeval.kernels.platforms import by_platform
from jaxeval.kernels.solve import Terms
from jaxeval.kernels.tie_models import TieModel
from jaxeval.lazy_names import jax, jnp, lax


class Solver(IntEnum):
    """How a resample is refitted; see the functions of `dense_solve`, `contextual` and `sparse_solve`."""

    CHORD = 0
    "Steps by the full data's information: for boards that no resample separates."
    NEWTON_CG = 1
    "Newton's method by preconditioned conjugate gradients."
    NEWTON = 2
    "Newton's method by factors of each resample's own information."
    SCALED_CHORD = 3
    "Steps by the full data's information, scaled to each resample's own curvature; for covariates and tie models only."
    SPARSE = 4
    "Newton's method by conjugate gradients on the graph of pairs."
    FIRTH = 5
    "Newton's method on tables with leverages, for another maximum than that of the others; see `firth`."
    CHORD_WITH_NEWTON = 6
    "Chord steps, with Newton's method for models of few battles: for boards most of which no resample separates."


class RefitProblem(NamedTuple):
    """One slice: what is resampled, and the full-data fit that refits start from; or S slices, stacked."""

    units: resample.Units
    stream: UInt64[Array, "..."]  # names the slice's random numbers
    data: Any  # what the draws add to, on tables a `Layout`, and what else a kind of boards knows
    start: Float[Array, "... P"]  # full-data log-strengths, and other parameters
    # Where a kind of boards has no use for one of the next four, it is None.
    main: Any = None  # (..., M) full-data judgments of the models of the main group, 0 for the others
    inverse: Any = None  # (..., P, P) of the information, at right angles to what the data do not see
    diagonal: Any = None  # (..., P) of the information
    moves: Any = None  # (..., P) what is fitted; false for padding
    few: Any = None  # (..., K) models of few battles, for `Solver.CHORD_WITH_NEWTON`; M for none


class Refits(NamedTuple):
    """Lanes of refitted resamples."""

    theta: Float[Array, "... _"]  # of M models; of P parameters with covariates or a tie model
    status: Int8[Array, "..."]  # a `Status`
    n_steps: Int32[Array, "..."]
    grad_norm: Float[Array, "..."]
    standing: Int8[Array, "... M"]  # a `Standing`; all IDENTIFIED after chord steps, which do not search


class RefitForm(NamedTuple):
    """Static choices; each combination compiles once per shape."""

    scheme: resample.DrawScheme
    solver: Solver  # all but CHORD search for separated models first
    dtype: type  # of the refits; where lanes are drawn side by side, of a unit's draws
    model: Any  # a `Response`, on tables of ties with chord steps only; or what else is static of a kind of boards
    packing: resample.Packing = resample.Packing(None)
    n_pairs: int = 0


def lane_draws_of(
    problem: RefitProblem, form: RefitForm, seed: Array, numbers: Integer[Array, "R"]
) -> Num[Array, "units R"]:
    """Return the draws of the units of a ``problem``, all lanes side by side, in the resamples ``numbers``."""
    return lane_draws.draw(problem.units, form.scheme, form.dtype, seed, problem.stream, numbers)


def draw_pairs(
    problem: RefitProblem, layout: pair_tables.Layout, form: RefitForm, seed: Integer[Array, ""],
    numbers: Integer[Array, "R"],
) -> tuple[Num[Array, "R {form.n_pairs}"], ...]:  # fmt: skip
    """Draw the per-pair statistics of the resamples ``numbers``."""
    draws = resample.draw(problem.units, form.scheme, form.packing, seed, problem.stream, numbers)
    keep_ties = form.model.ties != TieModel.HALF

    def of_lane(draws: Array) -> tuple[Array, ...]:
        return pair_tables.pair_statistics(layout, draws, form.n_pairs, keep_ties)

    xp = namespace(draws)
    if xp is np:
        return tuple(map(xp.stack, zip(*map(of_lane, draws), strict=True)))
    return jax.vmap(of_lane)(draws)


def refit_program(
    chunk: Callable[[Any, Any, Array, Terms, Array], Refits],
    ready: Callable[[Any, Any], Any] = lambda problem, _: problem,
    runs: Runs = "often",
) -> Program[Refits]:
    """Return a program over lanes of ``chunk(problem, form, seed, terms, numbers)``, named like that function.

    ``chunk`` draws and refits the resamples ``numbers`` of one slice; ``ready(problem, form)`` computes before all
    chunks what it takes as the problem; ``runs`` is as in `Program`. Results are those of `refit`.
    """

    def refits(problem: Any, form: Any, mesh: Mesh, seed: Integer[Array, ""], terms: Terms, chunks: Chunks) -> Refits:
        def of_lanes(numbers: Array, problem: Any, seed: Array, terms: Terms) -> Refits:
            return chunk(problem, form, seed, terms, numbers)

        refits_of_lanes: Refits = over_lanes(of_lanes, mesh, chunks, (ready(problem, form), seed, terms))
        return refits_of_lanes

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        setattr(refits, name, getattr(chunk, name))
    return program("form", "mesh", runs=runs)(refits)


@program("drawn", "form")
def draw_one(
    drawn: Callable[[Any, Any, Array, Array], Any], problem: Any, form: Any, seed: Integer[Array, ""],
    number: Integer[Array, ""],
) -> Any:  # fmt: skip
    """Return what ``drawn(problem, form, seed, numbers)`` gives for one resample: to reproduce or audit a refit."""
    return jax.tree.map(lambda x: x[..., 0], drawn(problem, form, seed, number[None]))


def rated(standing: Int8[Array, "*shape"], ridge: Real[Array, ""]) -> Bool[Array, "*shape"]:
    """Return which models have finite ratings: with a ridge all, though ``standing`` says which the data leave open."""
    return (standing == Standing.IDENTIFIED) | (ridge > 0)


def _solve(problem: RefitProblem, form: RefitForm, terms: Terms, dense: tuple[Num[Array, "M M"], ...]) -> Refits:
    model, layout = form.model, problem.data
    start, inverse, diagonal = (x.astype(form.dtype) for x in (problem.start, problem.inverse, problem.diagonal))
    nobody = jnp.zeros(problem.main.shape, jnp.int8)  # chord steps do not search for separated models
    if model.ties != TieModel.HALF:
        ties = tie_models.tie_table(model.ties, layout, dense, form.packing, form.dtype)
        of_ties = partial(tie_models.table_gradient, model.ties, ridge=terms.ridge)
        return Refits(*dense_solve.chord(of_ties, ties, start, inverse, terms), nobody)
    if form.solver == Solver.CHORD_WITH_NEWTON:
        return _solve_few(problem, form, terms, dense)
    keep_wins = form.solver != Solver.CHORD or model.link != Link.LOGIT
    table = pair_tables.pair_table(layout, dense, form.packing, form.dtype, keep_wins)
    if form.solver == Solver.CHORD or table.wins is None:
        return Refits(*dense_solve.chord_of_link(model.link, table, start, inverse, terms), nobody)
    # With leverages, models compare as soon as they met.
    edges = table.n if form.solver == Solver.FIRTH else table.wins
    standing = connectivity.standing(edges, problem.main)
    active = rated(standing, terms.ridge)
    both = active[:, None] & active
    wins = jnp.where(both, table.wins, 0)
    connected = pair_tables.PairTable(jnp.where(both, table.n, 0), pair_tables.row_sums(wins).astype(form.dtype), wins)
    if form.solver == Solver.FIRTH:
        end = dense_solve.newton_firth(connected, active, terms, start)
    elif form.solver == Solver.NEWTON:
        end = dense_solve.newton(model.link, connected, active, terms)
    else:
        end = dense_solve.newton_cg(model.link, connected, start, inverse, diagonal, terms)
    return Refits(*end, standing)


def _solve_few(problem: RefitProblem, form: RefitForm, terms: Terms, dense: tuple[Num[Array, "M M"], ...]) -> Refits:
    few, link = problem.few, form.model.link
    n, wins = pair_tables.oriented(problem.data, dense, form.packing, form.dtype, few)
    standing = connectivity.standing_beside(wins, n - wins, few, problem.main)
    # A ridge would draw padding, which is among the others, to a mean that is not that of the models.
    active = rated(standing, terms.ridge) & (problem.diagonal > 0)
    both = active.at[few].get(mode="fill", fill_value=False)[:, None] & active
    rows = dense_solve.TableRows(few, jnp.where(both, n, 0), jnp.where(both, wins, 0))
    both = active[:, None] & active
    n, wins = (jnp.where(both, x, 0) for x in pair_tables.oriented(problem.data, dense, form.packing, form.dtype))
    table = pair_tables.table_of(n, wins, form.dtype, link != Link.LOGIT)
    start, inverse = problem.start.astype(form.dtype), problem.inverse.astype(form.dtype)
    return Refits(*dense_solve.chord_with_newton(link, table, rows, active, start, inverse, terms), standing)


def refit_on_host(
    problem: RefitProblem, form: RefitForm, seed: Integer[Array, ""], terms: Terms, numbers: Integer[Array, "R"]
) -> Refits:
    """Return what `refit` gives for the resamples ``numbers`` of one slice, by NumPy: by chord steps or by Newton's.

    All arrays are on the host; ties are halves, and there is no penalty.
    """
    layout, link, xp = problem.data, form.model.link, namespace(problem.main)
    statistics = draw_pairs(problem, layout, form, seed, numbers)
    dense = tuple(x[:, layout.position] for x in statistics)
    table = pair_tables.pair_table(layout, dense, form.packing, np.float64, keep_wins=True)
    if form.solver == Solver.CHORD:
        start = xp.repeat(problem.start[:, None], len(numbers), 1)
        end = dense_solve.chord_of_link(link, table, start, problem.inverse, terms)
        return Refits(end.theta.T, *end[1:], xp.zeros((len(numbers), len(problem.main)), np.int8))
    wins: Any = table.wins
    standing = connectivity.lane_standings(wins, problem.main)
    active = rated(standing, terms.ridge)
    both = active.T[:, :, None] & active.T[:, None, :]
    wins = xp.where(both, wins, 0)
    connected = pair_tables.PairTable(xp.where(both, table.n, 0), pair_tables.row_sums(wins).astype(np.float64), wins)
    end = dense_solve.newton(link, connected, active, terms)
    return Refits(end.theta.T, *end[1:], standing.T)


def stored(
    function: Callable[[tuple[Array, ...]], tuple[Array, ...]],
    statistics: tuple[Num[Array, "R P"], ...],
    shape: tuple[int, ...],
) -> tuple[Num[Array, "R M M"], ...]:
    """Return ``function(statistics)``, a table of ``shape`` per lane and statistic, in memory before its use.

    XLA on the CPU would otherwise fuse the gather into every pass of the solver. It cannot fuse out of a conditional
    whose predicate depends on the data. This one always holds: no pair has that many battles. Accelerators compute
    before a loop what it reads. There a conditional would copy the tables, and the host would wait for its predicate.
    """
    lanes = statistics[0].shape[0]
    kind = statistics[0].dtype
    never = np.inf if jnp.issubdtype(kind, jnp.floating) else np.iinfo(kind).max

    def apart(statistics: tuple[Array, ...]) -> tuple[Array, ...]:
        zeros = tuple(jnp.zeros((lanes, *shape), x.dtype) for x in statistics)
        return lax.cond(statistics[0][0, 0] != np.asarray(never, kind), function, lambda _: zeros, statistics)

    return by_platform(statistics, cpu=apart, default=function)


@program("form", "mesh")
def refit(
    problems: RefitProblem, form: RefitForm, mesh: Mesh, seed: Integer[Array, ""], terms: Terms, chunks: Chunks
) -> Refits:
    """Refit resamples of slices: (devices, T, R, ...), with zeros where no chunk ran."""

    def chunk(problem: RefitProblem, numbers: Array, seed: Array, terms: Terms) -> Refits:
        layout = problem.data
        statistics = draw_pairs(problem, layout, form, seed, numbers)
        dense = stored(jax.vmap(partial(pair_tables.spread, layout)), statistics, layout.position.shape)
        return jax.vmap(partial(_solve, problem, form, terms))(dense)

    return over_lanes(chunk, mesh, chunks, (seed, terms), problems)


@program("form")
def draw(
    problems: RefitProblem,
    form: RefitForm,
    seed: Integer[Array, ""],
    slice_: Integer[Array, ""],
    number: Integer[Array, ""],
) -> tuple[Num[Array, "M M"], Num[Array, "M M"] | None]:
    """Draw the battle weights and wins of one resample, as `refit` does: to reproduce or audit it."""
    problem = jax.tree.map(lambda x: x[slice_], problems)
    layout = problem.data
    (statistics,) = zip(*draw_pairs(problem, layout, form, seed, number[None]), strict=True)
    dense = pair_tables.spread(layout, statistics)
    table = pair_tables.pair_table(layout, dense, form.packing, np.float64, keep_wins=True)
    return table.n, table.wins
