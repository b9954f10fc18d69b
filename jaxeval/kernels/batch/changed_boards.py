"""Refit one board with some votes changed (dropped, flipped or added), and boards simulated at its fit, in lanes."""

from typing import NamedTuple

from jaxeval.kernels import dense_solve, pair_tables
from jaxeval.kernels.batch.programs import Chunks, over_lanes, program
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.kinds import Array, Bool, Float, Int8, Int32, Integer, Mesh, Num
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.solve import Status, Terms, newton_cg_step
from jaxeval.lazy_names import jax, jnp

#: A pair's own share of ties is averaged with the share that the strengths suggest, which counts as so many votes.
TIE_PRIOR = 10.0


class MisfitDesign(NamedTuple):
    """What votes are measured against: pairs with votes, and what the full data's fit says of them."""

    first: Int32[Array, "Q"]  # the lower model of each pair
    second: Int32[Array, "Q"]
    position: Int32[Array, "M M"]  # the pair of (i, j) and (j, i); one without votes where they never met
    n: Float[Array, "Q"]  # votes; 0 for padding
    tie_odds: Float[Array, ""]  # of Davidson's model, > 0: squared ties over wins times losses
    weight: Float[Array, "Q"]  # of a pair's log-odds in the split: one over their variance
    gradient: Float[Array, "M M"]  # pseudo-inverse of the Laplacian of the weights
    triads: Int32[Array, "3 T"]  # pairs of (i, j), (j, k) and (i, k) for i < j < k; one without votes for padding


class Measures(NamedTuple):
    """What one board's votes say of every pair and of every triad."""

    expected: Float[Array, "Q"]  # share of the points of the first model
    variance: Float[Array, "Q"]  # of a vote's points
    pearson: Float[Array, "Q"]  # parts of X2
    deviance: Float[Array, "Q"]  # parts of the deviance from pairs of their own
    cycle: Float[Array, "T"]  # log-odds around each triad, 0 where one number per model fits
    cycle_variance: Float[Array, "T"]  # infinite where a pair has no votes
    cyclic: Float[Array, ""]  # weighted squares of the log-odds that no strengths explain
    total: Float[Array, ""]  # weighted squares of all log-odds


class Misfit(NamedTuple):
    """The measures of a whole board; the lanes are leading axes."""

    pearson: Float[Array, "..."]
    deviance: Float[Array, "..."]
    cyclic: Float[Array, "..."]
    total: Float[Array, "..."]
    largest_pair: Float[Array, "..."]  # root of the largest part of the deviance
    largest_triad: Float[Array, "..."]  # log-odds around a triad by their standard error
    status: Int8[Array, "..."]  # of the refit


# The next three compute arrays of NumPy, too.


def tie_share(expected: Float[Array, "*shape"], odds: Float[Array, "*odds"]) -> Float[Array, "*shape"]:
    """The share of ties in Davidson's model where the first model takes the ``expected`` share of points; odds > 0."""
    product = expected * (1 - expected)
    return 2 * odds * product / (odds / 2 + (odds**2 / 4 + (4 - odds) * odds * product) ** 0.5)


def shares_of_ties(
    expected: Float[Array, "*shape"], n: Num[Array, "*shape"], ties: Num[Array, "*shape"], odds: Float[Array, "*odds"]
) -> Float[Array, "*shape"]:
    """Each pair's own share of ties; with few votes it is drawn to what the ``expected`` share of points suggests."""
    smoothed = (ties + TIE_PRIOR * tie_share(expected, odds)) / (n + TIE_PRIOR)
    most = 1 - abs(2 * expected - 1)
    return (smoothed + most - abs(smoothed - most)) / 2  # the lesser one


def vote_variance(
    expected: Float[Array, "*shape"], n: Num[Array, "*shape"], ties: Num[Array, "*shape"], odds: Float[Array, "*odds"]
) -> Float[Array, "*shape"]:
    """Variance of the points of one vote: p (1 - p) less a quarter of the share of ties."""
    return expected * (1 - expected) - shares_of_ties(expected, n, ties, odds) / 4


def measures(
    design: MisfitDesign, points: Float[Array, "Q"], ties: Num[Array, "Q"], theta: Float[Array, "M"]
) -> Measures:
    """Measures of the ``points`` of the first models, with so many ``ties`` among the votes, at strengths ``theta``.

    With ties, the deviance is that of shares of points divided by the dispersion, variance / (p (1 - p)).
    """
    n, met = design.n, design.n > 0
    difference = theta[design.first] - theta[design.second]
    p = 1 / (1 + jnp.exp(-difference))
    variance = vote_variance(p, n, ties, design.tie_odds)
    safe = jnp.where(met & (variance > 0), n * variance, 1.0)
    pearson = jnp.where(met, (points - n * p) ** 2 / safe, 0.0)
    lost = n - points
    halves = _surprise(points, n * p) + _surprise(lost, n * (1 - p))
    deviance = jnp.where(met, 2 * halves * n * p * (1 - p) / safe, 0.0)
    share = (points + 0.5) / (n + 1)
    log_odds = jnp.where(met, jnp.log(share / (1 - share)), 0.0)
    steep = share * (1 - share)
    of_vote = vote_variance(share, n, ties, design.tie_odds)
    error = jnp.where(met, of_vote / jnp.where(met, n * steep**2, 1.0), jnp.inf)
    a, b, c = design.triads
    weighted = design.weight * log_odds
    i = jnp.arange(len(theta))
    signed = jnp.where(i[:, None] < i, 1.0, -1.0) * weighted[design.position]
    potential = jnp.matmul(design.gradient, row_sums(signed), precision="highest")
    left = log_odds - potential[design.first] + potential[design.second]
    return Measures(
        expected=p, variance=variance, pearson=pearson, deviance=jnp.maximum(deviance, 0.0),
        cycle=log_odds[a] + log_odds[b] - log_odds[c], cycle_variance=error[a] + error[b] + error[c],
        cyclic=jnp.sum(design.weight * left**2), total=jnp.sum(weighted * log_odds),
    )  # fmt: skip


def _surprise(observed: Float[Array, "Q"], expected: Float[Array, "Q"]) -> Float[Array, "Q"]:
    """It is found * log(found / expected), and 0 where either is 0."""
    there = (observed > 0) & (expected > 0)
    return jnp.where(there, observed * jnp.log(jnp.where(there, observed, 1.0) / jnp.where(there, expected, 1.0)), 0.0)


def misfit(measured: Measures, status: Int8[Array, ""]) -> Misfit:
    """Return the sums over pairs, and the largest values of a pair and of a triad."""
    around = jnp.abs(measured.cycle) / jnp.sqrt(measured.cycle_variance)
    return Misfit(
        pearson=jnp.sum(measured.pearson), deviance=jnp.sum(measured.deviance), cyclic=measured.cyclic,
        total=measured.total, largest_pair=jnp.sqrt(jnp.max(measured.deviance)), largest_triad=jnp.max(around),
        status=status,
    )  # fmt: skip


#: A model with less weight of votes than this has none: sums of weights come with rounding errors.
_NO_VOTES = 1e-9


class FullBoard(NamedTuple):
    """The votes of a board as they are, and what its fit knows."""

    n: Float[Array, "M M"]  # weight of the votes between the models that are rated
    score: Float[Array, "M"]  # what each took of it
    inverse: Float[Array, "M M"]  # pseudo-inverse of the information


class Change(NamedTuple):
    """What is changed: K entries, which add up; entries of weight 0 are padding."""

    first: Int32[Array, "... K"]  # models of each entry
    second: Int32[Array, "... K"]
    weight: Float[Array, "... K"]  # added to the weight of the votes between both; negative for dropped votes
    points: Float[Array, "... K"]  # added to the points that the first model took of it
    start: Float[Array, "... M"]  # log-strengths that the refit starts from
    above: Int32[Array, "..."]  # two models, whose difference is asked for
    below: Int32[Array, "..."]


class Changed(NamedTuple):
    """The refit of a changed board."""

    theta: Float[Array, "... M"]
    status: Int8[Array, "..."]  # a `Status`; `TOO_FEW` where one of the two models has no votes left
    n_steps: Int32[Array, "..."]
    grad_norm: Float[Array, "..."]
    pull: Float[Array, "... M"]  # inverse information times (above - below); times a vote's score, the pull of the vote


def refit(board: FullBoard, change: Change, terms: Terms, newton: bool) -> Changed:
    """Refit the board with the change: by steps of the full board's information, or by Newton's own.

    The pull comes from a few conjugate gradients: it chooses which votes to change next, and no result depends on it.
    """
    i, j = change.first, change.second
    n = board.n.at[i, j].add(change.weight).at[j, i].add(change.weight)
    score = board.score.at[i].add(change.points).at[j].add(change.weight - change.points)
    table = PairTable(n, score)
    active = row_sums(n) > _NO_VOTES
    if newton:
        solution = dense_solve.newton(Link.LOGIT, table, active, terms, change.start)
    else:
        solution = dense_solve.chord_of_link(Link.LOGIT, table, change.start, board.inverse, terms)
    difference = jnp.zeros_like(solution.theta).at[change.above].add(1.0).at[change.below].add(-1.0)
    v = pair_tables.curvature(Link.LOGIT, solution.theta, table)
    diagonal = row_sums(v)
    pull = newton_cg_step(
        lambda p: diagonal * p - jnp.matmul(v, p, precision="highest"),
        lambda r: jnp.matmul(board.inverse, r, precision="highest"),
        diagonal,
        difference,
    )
    rated = active[change.above] & active[change.below]
    status = jnp.where(rated, solution.status, jnp.int8(Status.TOO_FEW))
    return Changed(solution.theta, status, solution.n_steps, solution.grad_norm, pull)


@program("mesh", "newton")
def refit_changed(
    board: FullBoard, changes: Change, mesh: Mesh, terms: Terms, chunks: Chunks, *, newton: bool = False
) -> Changed:
    """Refits with the ``changes`` (numbers), as `refit`: leading axes (devices, T, R)."""

    def chunk(numbers: Array, board: FullBoard, changes: Change, terms: Terms) -> Changed:
        chosen = jax.tree.map(lambda x: x[numbers], changes)
        return jax.vmap(lambda change: refit(board, change, terms, newton))(chosen)

    return over_lanes(chunk, mesh, chunks, (board, changes, terms))


measure = program(runs="briefly")(measures)


class SimulatedLanes(NamedTuple):
    """L boards simulated at a fit, and what their refits start from."""

    design: MisfitDesign
    wins: Integer[Array, "L Q"]  # of the first models
    ties: Integer[Array, "L Q"]
    start: Float[Array, "M"]
    inverse: Float[Array, "M M"]  # pseudo-inverse of the information of the full data
    active: Bool[Array, "M"]  # models with a finite rating


@program("mesh", "solver")
def refit_misfit(boards: SimulatedLanes, mesh: Mesh, solver: Solver, terms: Terms, chunks: Chunks) -> Misfit:
    """Misfit of simulated boards (numbers) after refits of their strengths.

    Results have the leading axes (devices, T, R).
    """

    def chunk(numbers: Array, boards: SimulatedLanes, terms: Terms) -> Misfit:
        design = boards.design
        n = design.n[design.position]

        def one(number: Array) -> Misfit:
            ties = boards.ties[number]
            points = boards.wins[number] + ties / 2
            table = PairTable(n, row_sums(pair_tables.of_rows(points[design.position], n)))
            if solver == Solver.CHORD:
                end = dense_solve.chord_of_link(Link.LOGIT, table, boards.start, boards.inverse, terms)
            else:
                end = dense_solve.newton(Link.LOGIT, table, boards.active, terms)
            return misfit(measures(design, points, ties, end.theta), end.status)

        return jax.vmap(one)(numbers)

    return over_lanes(chunk, mesh, chunks, (boards, terms))
