"""Refit one board with some votes changed (dropped, flipped or added), and boards simulated at its fit, in lanes."""

from typing import NamedTuple

from jaxeval.kernels import dense_solve, pair_tables, solve
from jaxeval.kernels.batch.programs import Chunks, over_lanes, program, side_by_side
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.kinds import Array, Bool, Float, Int8, Int32, Integer, Mesh, Num, namespace
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.platforms import add_at, product
from jaxeval.kernels.solve import Status, Terms, newton_cg_step

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
    """What the votes of a board, or of R, say of every pair and of every triad."""

    expected: Float[Array, "*R Q"]  # share of the points of the first model
    variance: Float[Array, "*R Q"]  # of a vote's points
    pearson: Float[Array, "*R Q"]  # parts of X2
    deviance: Float[Array, "*R Q"]  # parts of the deviance from pairs of their own
    cycle: Float[Array, "*R T"]  # log-odds around each triad, 0 where one number per model fits
    cycle_variance: Float[Array, "*R T"]  # infinite where a pair has no votes
    cyclic: Float[Array, "*R"]  # weighted squares of the log-odds that no strengths explain
    total: Float[Array, "*R"]  # weighted squares of all log-odds


class Misfit(NamedTuple):
    """The measures of a whole board; the lanes are leading axes."""

    pearson: Float[Array, "..."]
    deviance: Float[Array, "..."]
    cyclic: Float[Array, "..."]
    total: Float[Array, "..."]
    largest_pair: Float[Array, "..."]  # root of the largest part of the deviance
    largest_triad: Float[Array, "..."]  # log-odds around a triad by their standard error
    status: Int8[Array, "..."]  # of the refit


def tie_share(expected: Float[Array, "*shape"], odds: Float[Array, "*odds"]) -> Float[Array, "*shape"]:
    """Return Davidson's share of ties where the first model takes the ``expected`` share of points; odds > 0."""
    product = expected * (1 - expected)
    return 2 * odds * product / (odds / 2 + (odds**2 / 4 + (4 - odds) * odds * product) ** 0.5)


def shares_of_ties(
    expected: Float[Array, "*shape"], n: Num[Array, "*shape"], ties: Num[Array, "*shape"], odds: Float[Array, "*odds"]
) -> Float[Array, "*shape"]:
    """Return each pair's share of ties. Few votes draw it to what the ``expected`` share of points suggests."""
    smoothed = (ties + TIE_PRIOR * tie_share(expected, odds)) / (n + TIE_PRIOR)
    most = 1 - abs(2 * expected - 1)
    return (smoothed + most - abs(smoothed - most)) / 2  # the lesser one


def vote_variance(
    expected: Float[Array, "*shape"], n: Num[Array, "*shape"], ties: Num[Array, "*shape"], odds: Float[Array, "*odds"]
) -> Float[Array, "*shape"]:
    """Return the variance of the points of one vote: p (1 - p) less a quarter of the share of ties."""
    return expected * (1 - expected) - shares_of_ties(expected, n, ties, odds) / 4


def measures(
    design: MisfitDesign, points: Float[Array, "*R Q"], ties: Num[Array, "*R Q"], theta: Float[Array, "*R M"]
) -> Measures:
    """Return measures of the first models' ``points`` at strengths ``theta``, with so many ``ties`` among the votes.

    Lanes, if any, are leading axes of all three. With ties, the deviance is that of shares of points divided by the
    dispersion, variance / (p (1 - p)).
    """
    n, met, xp = design.n, design.n > 0, namespace(design.n)
    difference = theta[..., design.first] - theta[..., design.second]
    p = 1 / (1 + xp.exp(-difference))
    variance = vote_variance(p, n, ties, design.tie_odds)
    safe = xp.where(met & (variance > 0), n * variance, 1.0)
    pearson = xp.where(met, (points - n * p) ** 2 / safe, 0.0)
    lost = n - points
    halves = _surprise(points, n * p) + _surprise(lost, n * (1 - p))
    deviance = xp.where(met, 2 * halves * n * p * (1 - p) / safe, 0.0)
    share = (points + 0.5) / (n + 1)
    log_odds = xp.where(met, xp.log(share / (1 - share)), 0.0)
    steep = share * (1 - share)
    of_vote = vote_variance(share, n, ties, design.tie_odds)
    error = xp.where(met, of_vote / xp.where(met, n * steep**2, 1.0), xp.inf)
    a, b, c = design.triads
    weighted = design.weight * log_odds
    i = xp.arange(theta.shape[-1])
    signed = xp.where(i[:, None] < i, 1.0, -1.0) * weighted[..., design.position]
    potential = product(design.gradient, row_sums(signed)[..., None])[..., 0]
    left = log_odds - potential[..., design.first] + potential[..., design.second]
    return Measures(
        expected=p, variance=variance, pearson=pearson, deviance=xp.maximum(deviance, 0.0),
        cycle=log_odds[..., a] + log_odds[..., b] - log_odds[..., c],
        cycle_variance=error[..., a] + error[..., b] + error[..., c],
        cyclic=(design.weight * left**2).sum(-1), total=(weighted * log_odds).sum(-1),
    )  # fmt: skip


def _surprise(observed: Float[Array, "*R Q"], expected: Float[Array, "*R Q"]) -> Float[Array, "*R Q"]:
    """Return observed * log(observed / expected), and 0 where either is 0."""
    there, xp = (observed > 0) & (expected > 0), namespace(observed)
    return xp.where(there, observed * xp.log(xp.where(there, observed, 1.0) / xp.where(there, expected, 1.0)), 0.0)


def misfit(measured: Measures, status: Int8[Array, "*R"]) -> Misfit:
    """Return the sums over pairs, and the largest values of a pair and of a triad, of R lanes."""
    around = abs(measured.cycle) / measured.cycle_variance**0.5
    return Misfit(
        pearson=measured.pearson.sum(-1), deviance=measured.deviance.sum(-1), cyclic=measured.cyclic,
        total=measured.total, largest_pair=measured.deviance.max(-1) ** 0.5, largest_triad=around.max(-1),
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
    """Refits of a changed board."""

    theta: Float[Array, "... M"]
    status: Int8[Array, "..."]  # a `Status`; `TOO_FEW` where one of the two models has no votes left
    n_steps: Int32[Array, "..."]
    grad_norm: Float[Array, "..."]
    pull: Float[Array, "... M"]  # inverse information times (above - below); times a vote's score, the pull of the vote


def refit(board: FullBoard, changes: Change, terms: Terms, newton: bool, numbers: Integer[Array, "R"]) -> Changed:
    """Refit the board with the changes ``numbers``: by steps of the full board's information, or by Newton's own.

    The pull comes from a few conjugate gradients: it chooses which votes to change next, and no result depends on it.
    """
    xp, m = namespace(board.n), len(board.score)
    change = Change(*(x[numbers] for x in changes))
    i, j, lanes = change.first, change.second, xp.arange(len(numbers))

    def added_to(full: Array, *parts: tuple[Array, Array]) -> Array:
        of_lanes = xp.repeat(full.reshape(1, -1), len(lanes), 0)
        return add_at(of_lanes, *(xp.concatenate(x, 1) for x in zip(*parts, strict=True))).reshape(-1, *full.shape)

    n = added_to(board.n, (i * m + j, change.weight), (j * m + i, change.weight))
    score = added_to(board.score, (i, change.points), (j, change.weight - change.points))
    active = row_sums(n) > _NO_VOTES

    def solved(table: PairTable, active: Array, start: Array) -> solve.Solution:
        if newton:
            return dense_solve.newton(Link.LOGIT, table, active, terms, start)
        return dense_solve.chord_of_link(Link.LOGIT, table, start, board.inverse, terms)

    table = PairTable(n, score)
    theta, *how = side_by_side(solved)(table, active.T, change.start.T)
    difference = 1.0 * (xp.arange(m)[:, None] == change.above) - (xp.arange(m)[:, None] == change.below)
    v = pair_tables.curvature(Link.LOGIT, theta.T, table)
    diagonal = row_sums(v).T
    pull = newton_cg_step(
        lambda p: diagonal * p - product(v, p.T[..., None])[..., 0].T,
        lambda r: product(board.inverse, r),
        diagonal,
        difference,
    ).solution
    rated = active[lanes, change.above] & active[lanes, change.below]
    status, n_steps, grad_norm = how
    return Changed(theta.T, xp.where(rated, status, xp.int8(Status.TOO_FEW)), n_steps, grad_norm, pull.T)


@program("mesh", "newton")
def refit_changed(
    board: FullBoard, changes: Change, mesh: Mesh, terms: Terms, chunks: Chunks, *, newton: bool = False
) -> Changed:
    """Refit with the ``changes`` (numbers), as `refit` does; results have the leading axes (devices, T, R)."""

    def chunk(numbers: Array, board: FullBoard, changes: Change, terms: Terms) -> Changed:
        return refit(board, changes, terms, newton, numbers)

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


def misfit_of(boards: SimulatedLanes, solver: Solver, terms: Terms, numbers: Integer[Array, "R"]) -> Misfit:
    """Refit the strengths of the simulated boards ``numbers``, and return their misfit."""
    design, xp = boards.design, namespace(boards.start)
    n, ties = design.n[design.position], boards.ties[numbers]
    points = boards.wins[numbers] + ties / 2

    def refit(score: Array, start: Array, active: Array) -> solve.Solution:
        if solver == Solver.CHORD:
            return dense_solve.chord_of_link(Link.LOGIT, PairTable(n, score), start, boards.inverse, terms)
        return dense_solve.newton(Link.LOGIT, PairTable(n, score), active, terms)

    score = row_sums(pair_tables.of_rows(points[:, design.position], n))
    of_lanes = (xp.repeat(x[:, None], len(numbers), 1) for x in (boards.start, boards.active))
    end = side_by_side(refit)(score, *of_lanes)
    return misfit(measures(design, points, ties, end.theta.T), end.status)


@program("mesh", "solver")
def refit_misfit(boards: SimulatedLanes, mesh: Mesh, solver: Solver, terms: Terms, chunks: Chunks) -> Misfit:
    """Return `misfit_of` simulated boards (numbers), with the leading axes (devices, T, R)."""

    def chunk(numbers: Array, boards: SimulatedLanes, terms: Terms) -> Misfit:
        return misfit_of(boards, solver, terms, numbers)

    return over_lanes(chunk, mesh, chunks, (boards, terms))
