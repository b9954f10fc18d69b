"""Battles with covariates and tie models as rows: the maximum of the likelihood by four steps, for many resamples.

The parameters phi (P,) are M log-strengths, D coefficients and the tie parameter t (unused where ties are half a win);
a row's z is theta_first - theta_second + feature . coefficient. Rows do not compress into cells. So lanes are the last
axis here, except in the information: a row's constants are read once for all R lanes, and the weights of rows exist for
only R lanes at a time. A fit of few rows takes arrays of NumPy, too.
"""

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from jaxeval.kernels import connectivity, solve, tie_models
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import RefitForm, RefitProblem, Refits, Solver, lane_draws_of, rated, refit_program
from jaxeval.kernels.kinds import Array, Bool, Float, Int32, Integer, Num, namespace
from jaxeval.kernels.platforms import added, einsum, increased, product
from jaxeval.kernels.tie_models import NO_TIES, Response, TieModel
from jaxeval.lazy_names import jax, jnp, lax


class ContextualRows(NamedTuple):
    """Rows in T blocks of E groups of G rows, or those of one block; a group's rows are of one pair.

    Padding has factor 0.
    """

    feature: Float[Array, "... E G D"]
    target: Float[Array, "... E G"]  # of the pair's first model
    factor: Float[Array, "... E G"]  # weight of one draw of the row's unit
    unit: Int32[Array, "... E G"]  # the unit of a (K, Q) grid of draws, row-major
    first: Int32[Array, "... E"]
    second: Int32[Array, "... E"]
    n_blocks: Int32[Array, ""]  # blocks in use


def _block(rows: ContextualRows, t: Integer[Array, ""]) -> ContextualRows:
    return rows._replace(**{name: getattr(rows, name)[t] for name in ContextualRows._fields[:-1]})


def over_blocks(rows: ContextualRows, add: Callable[[ContextualRows, Array, Any], Any], zero: Any) -> Any:
    """Return the total after ``add(block, its number, total)`` of all blocks in use in turn, from ``zero`` on."""

    def step(t: Any, total: Any) -> Any:
        return add(_block(rows, t), t, total)

    if namespace(rows.n_blocks) is np:
        return reduce(lambda total, t: step(t, total), range(int(rows.n_blocks)), zero)
    return lax.fori_loop(0, rows.n_blocks, step, zero)


class RowLanes(NamedTuple):
    """R lanes: how often each row is drawn in them, and what is maximised."""

    model: Response  # static
    rows: ContextualRows
    draws: Num[Array, "T E G R"]
    terms: solve.Terms  # the ridge is (P,), a coefficient for each parameter

    @property
    def n_models(self) -> int:
        """M."""
        return int(len(self.terms.ridge) - self.rows.feature.shape[-1] - 1)

    def among(self, active: Bool[Array, "M R"]) -> "RowLanes":
        """Return the battles between ``active`` models alone."""
        both = active[self.rows.first] & active[self.rows.second]
        xp = namespace(both)
        return self._replace(draws=xp.where(both[:, :, None], self.draws, xp.zeros((), self.draws.dtype)))


def predictor(block: ContextualRows, phi: Float[Array, "P R"], n_models: int) -> Float[Array, "E G R"]:
    """Return the z of a block's rows."""
    pair = phi[block.first] - phi[block.second]
    z = namespace(phi).broadcast_to(pair[:, None], (*block.target.shape, phi.shape[1]))
    for d in range(block.feature.shape[-1]):  # unrolled, it fuses with what follows; a product does not
        z = z + block.feature[..., d, None] * phi[n_models + d]
    return z


def add_score(
    block: ContextualRows,
    total: Float[Array, "P R"],
    z: Float[Array, "E G R"],
    t: Float[Array, "E G R"] | None,
    n_models: int,
) -> Float[Array, "P R"]:
    """Return ``total`` plus a block's sums of weighted scores: ``z``, the derivatives by z, and ``t``, those by t."""
    # In the precision of the total: few lanes are added in another order than many, and this makes no difference then.
    z = z.astype(total.dtype)
    of_group = z.sum(1)
    total = added(total, (block.first, of_group), (block.second, -of_group))
    n_rows, n_features = z.shape[0] * z.shape[1], block.feature.shape[-1]
    if n_features:
        feature = block.feature.reshape(n_rows, n_features).astype(z.dtype)
        of_features = product(feature.T, z.reshape(n_rows, -1))
        total = increased(total, slice(n_models, n_models + n_features), of_features)
    return total if t is None else increased(total, -1, t.sum((0, 1)))


def counts_of_rows(rows: ContextualRows, drawn: Num[Array, "units R"]) -> Num[Array, "T E G R"]:
    """Return draws of every row's unit, from those of all units; 0 in blocks that are not in use."""

    def gather(t: Array, count: Array) -> Array:
        return count.at[t].set(drawn.at[rows.unit[t]].get(mode="promise_in_bounds"))

    return lax.fori_loop(0, rows.n_blocks, gather, jnp.zeros((*rows.unit.shape, drawn.shape[1]), drawn.dtype))


def win_tables(
    rows: ContextualRows, count: Num[Array, "T E G R"], n_models: int
) -> Float[Array, "R {n_models} {n_models}"]:
    """Return the weights of wins of the row's model against the column's."""
    n_lanes = count.shape[-1]

    def add(block: ContextualRows, t: Array, wins: Array) -> Array:
        weight = count[t] * block.factor[..., None]
        won = weight * block.target[..., None]
        there, back = block.first * n_models + block.second, block.second * n_models + block.first
        return added(wins, (there, jnp.sum(won, 1)), (back, jnp.sum(weight - won, 1)))

    return over_blocks(rows, add, jnp.zeros((n_models**2, n_lanes))).T.reshape(n_lanes, n_models, n_models)


def weighted(
    lanes: RowLanes, block: ContextualRows, t: Array, phi: Float[Array, "P R"]
) -> tuple[tie_models.Score, tie_models.Information]:
    """Return scores and information (E, G, R) of the rows of block ``t`` at ``phi``, times their weights."""
    at = lanes.model, block.target[..., None], predictor(block, phi, lanes.n_models), phi[-1]
    weight = lanes.draws[t] * block.factor[..., None]
    score = tie_models.Score(*(weight * x for x in tie_models.score(*at)))
    return score, tie_models.Information(*(weight * x for x in tie_models.information(*at)))


def add_diagonal(
    block: ContextualRows, total: Float[Array, "P R"], of_rows: tie_models.Information, n_models: int
) -> Float[Array, "P R"]:
    """Return ``total`` plus what the rows of a block (E, G, R) add to the diagonal of the information."""
    of_group = jnp.sum(of_rows.zz, 1)
    total = added(total, (block.first, of_group), (block.second, of_group))
    n_features = block.feature.shape[-1]
    if n_features:
        squares = block.feature.reshape(-1, n_features) ** 2
        of_features = jnp.matmul(squares.T, of_rows.zz.reshape(len(squares), -1), precision="highest")
        total = total.at[n_models : n_models + n_features].add(of_features)
    return total.at[-1].add(jnp.sum(of_rows.tt, (0, 1)))


def derivatives(lanes: RowLanes, phi: Float[Array, "P R"]) -> tuple[Float[Array, "P R"], Float[Array, "R P P"]]:
    """Return gradient and information of the penalised log-likelihood, l(phi) - sum ridge phi^2, by all parameters."""
    rows, ridge, n_models, xp = lanes.rows, lanes.terms.ridge, lanes.n_models, namespace(phi)

    def add(block: ContextualRows, t: Array, total: tuple[Array, _Parts]) -> tuple[Array, _Parts]:
        score, information = weighted(lanes, block, t, phi)
        grad = add_score(block, total[0], score.z, score.t, n_models)
        return grad, _add_information(block, total[1], information, n_models)

    grad, parts = over_blocks(rows, add, (xp.zeros_like(phi), _no_information(rows, phi, n_models)))
    return grad - 2 * ridge[:, None] * phi, _assembled(parts, n_models) + 2 * xp.diag(ridge)


#: Information of pairs of models, of models with the N = D + 1 other parameters, and of the others among themselves.
_Parts = tuple[Float[Array, "pairs R"], Float[Array, "M N R"], Float[Array, "N N R"]]


def _no_information(rows: ContextualRows, phi: Float[Array, "P R"], n_models: int) -> _Parts:
    n_others = rows.feature.shape[-1] + 1
    shapes = (n_models**2,), (n_models, n_others), (n_others, n_others)
    pairs, cross, others = (namespace(phi).zeros((*shape, phi.shape[1])) for shape in shapes)
    return pairs, cross, others


def _add_information(block: ContextualRows, total: _Parts, of_rows: tie_models.Information, n_models: int) -> _Parts:
    """Return the parts ``total`` of the information plus what the rows of a block (E, G, R) add."""
    pairs, cross, others = total
    zz, zt, tt = of_rows
    pairs = added(pairs, (block.first * n_models + block.second, zz.sum(1)))
    feature, xp = block.feature, namespace(zz)
    # (E, D + 1, R): of a group's pair with every other parameter.
    of_group = xp.concatenate([einsum("egd,egr->edr", feature, zz), zt.sum(1)[:, None]], 1)
    cross = added(cross, (block.first, of_group), (block.second, -of_group))
    features = einsum("egd,egc,egr->dcr", feature, feature, zz)
    with_t = einsum("egd,egr->dr", feature, zt)
    of_t = xp.concatenate([with_t, tt.sum((0, 1))[None]])[None]
    return pairs, cross, others + xp.concatenate([xp.concatenate([features, with_t[:, None]], 1), of_t])


def _assembled(parts: _Parts, n_models: int) -> Float[Array, "R P P"]:
    """Return the information of all parameters from its parts."""
    xp = namespace(*parts)
    pairs, cross, others = (xp.moveaxis(x, -1, 0) for x in parts)
    v = pairs.reshape(-1, n_models, n_models)
    v = v + v.swapaxes(1, 2)
    strengths = v.sum(2)[:, :, None] * xp.eye(n_models) - v
    above = xp.concatenate([strengths, cross], 2)
    return xp.concatenate([above, xp.concatenate([cross.swapaxes(1, 2), others], 2)], 1)


class SingleRows(NamedTuple):
    """What changes of the logit's scores are made of, in single precision."""

    rows: ContextualRows
    slope: Float[Array, "T E G"]  # 2 s(z) s(-z), times the weight
    skew: Float[Array, "T E G"]  # 2 s(z) - 1
    widest: Float[Array, "D"]  # covariates


class RowBase(NamedTuple):
    """The rows at the full data's estimate, from which chord steps start."""

    z: Float[Array, "T E G"]
    score: tie_models.Score
    phi: Float[Array, "P"]
    inverse: Float[Array, "P P"]  # pseudo-inverse of the full data's information
    diagonal: Float[Array, "P"]  # of that information
    single: SingleRows | None  # of the logit with ties as half a win


def at_estimate(problem: RefitProblem, form: RefitForm) -> tuple[RefitProblem, RowBase]:
    """Return the problem, and its rows at the full data's estimate."""
    rows, phi = problem.data, problem.start
    z = phi[rows.first] - phi[rows.second]
    z = z[..., None] + jnp.sum(rows.feature * phi[len(problem.main) : -1], -1)
    score = tie_models.score(form.model, rows.target, z, phi[-1])
    single = None
    if form.model == Response(TieModel.HALF):
        p = tie_models.expected(form.model, z, phi[-1])
        feature = jnp.where(rows.factor[..., None] > 0, rows.feature, 0.0)
        single = SingleRows(
            rows=rows._replace(feature=feature.astype(jnp.float32)),
            slope=(2 * p * (1 - p) * rows.factor).astype(jnp.float32),
            skew=(2 * p - 1).astype(jnp.float32),
            widest=jnp.max(jnp.abs(feature), (0, 1, 2)),
        )
    return problem, RowBase(z, score, phi, problem.inverse, problem.diagonal, single)


def chord(lanes: RowLanes, base: RowBase) -> solve.Solution:
    """Take steps by the full data's information, shared by all lanes, for resamples whose own is not far from it.

    The gradient is that of the resample at the full data's estimate, plus what has changed since. Where ties are half a
    win, and the link is the logit, single precision is enough for the change, at a third of the cost. Each step then
    starts from parameters rounded to single precision, and takes back what rounding added: a parameter's rounding is
    the same in all of its rows.
    """
    model, rows, count, terms = lanes
    ridge, n_models, single = terms.ridge[:, None], lanes.n_models, base.single
    n_lanes = count.shape[-1]
    if single and n_lanes < _LEAST_LANES:  # XLA on the CPU sums the rows of a few lanes in another order
        padded = jnp.pad(count, [(0, 0)] * 3 + [(0, _LEAST_LANES - n_lanes)])
        return jax.tree.map(lambda x: x[..., :n_lanes], chord(lanes._replace(draws=padded), base))

    def add_base(block: ContextualRows, t: Array, total: Array) -> Array:
        weight = count[t] * block.factor[..., None]
        of_t = None if single else weight * base.score.t[t][..., None]
        return add_score(block, total, weight * base.score.z[t][..., None], of_t, n_models)

    zero = jnp.zeros((len(base.phi), count.shape[-1]))
    at_base = over_blocks(rows, add_base, zero) - 2 * ridge * base.phi[:, None]

    def change_of_score(moved: Array) -> Array:
        def add_half(block: ContextualRows, t: Array, total: Array) -> Array:
            assert single is not None
            drop = _drop(predictor(block, moved.astype(jnp.float32) / 2, n_models), single.slope[t], single.skew[t])
            return _add_single(block, total, -drop * count[t].astype(jnp.float32), n_models)

        def add_any(block: ContextualRows, t: Array, total: Array) -> Array:
            z = base.z[t][..., None] + predictor(block, moved, n_models)
            new = tie_models.score(model, block.target[..., None], z, base.phi[-1] + moved[-1])
            weight = count[t] * block.factor[..., None]
            of_z, of_t = (weight * (x - y[t][..., None]) for x, y in zip(new, base.score, strict=True))
            return add_score(block, total, of_z, of_t, n_models)

        return over_blocks(single.rows, add_half, zero) if single else over_blocks(rows, add_any, zero)

    def gradient(moved: Array) -> Array:
        return at_base + change_of_score(moved) - 2 * ridge * moved

    if single is None:
        end = solve.chord(gradient, base.inverse, zero, terms, at_base)
        return end._replace(theta=base.phi[:, None] + end.theta)

    def along(grad: Array) -> tuple[Array, Array]:
        return jnp.matmul(base.inverse, grad, precision="highest"), grad

    def step(moved: Array) -> tuple[Array, Array]:
        near = moved.astype(jnp.float32).astype(moved.dtype)
        change, grad = along(gradient(near))
        return near - moved + change, grad

    end = solve.iterate(step, zero, terms, along(at_base))
    of_features = jnp.matmul(single.widest, jnp.abs(end.theta[n_models:-1]), precision="highest")
    far = jnp.ptp(end.theta[:n_models], 0) + of_features > _FARTHEST
    status = jnp.where(far & (end.status == solve.Status.CONVERGED), solve.Status.STEP_LIMIT, end.status).astype(
        jnp.int8
    )
    return end._replace(theta=base.phi[:, None] + end.theta, status=status)


#: The change of a row's predictor up to which `_drop` is right to a few units in the last place of single precision.
_FARTHEST = 6.0
_LEAST_LANES = 8
_SUMMED_ROWS = 64  # before they are added in double precision


def _drop(half: Float[Array, "E G R"], slope: Float[Array, "E G"], skew: Float[Array, "E G"]) -> Float[Array, "E G R"]:
    """Return by how much scores drop where predictors rise by twice ``half``.

    With T = tanh(d / 2) it is s(z + d) - s(z) = 2 s(z) s(-z) T / (1 + (2 s(z) - 1) T): no digits cancel. T is a
    quotient of polynomials, Lambert's continued fraction, so that one division is enough.
    """
    q = half * half
    above = half * (2027025 + q * (270270 + q * (6930 + q * 36)))
    below = 2027025 + q * (945945 + q * (51975 + q * (630 + q)))
    return slope[..., None] * above / (below + skew[..., None] * above)


def _add_single(
    block: ContextualRows, total: Float[Array, "P R"], z: Float[Array, "E G R"], n_models: int
) -> Float[Array, "P R"]:
    """Add scores as `add_score` does, for ``z`` in single precision.

    Few rows are summed before sums become doubles: rounding hardly grows with the rows, and the order of the sums does
    not depend on the number of lanes.
    """
    of_group = jnp.sum(z, 1).astype(total.dtype)
    total = added(total, (block.first, of_group), (block.second, -of_group))
    n_rows, n_features = z.shape[0] * z.shape[1], block.feature.shape[-1]
    together = math.gcd(n_rows, _SUMMED_ROWS)
    feature, z = (x.reshape(n_rows // together, together, x.shape[-1]) for x in (block.feature, z))
    of_features = jnp.einsum("nsd,nsr->ndr", feature, z, precision="highest").astype(total.dtype)
    return total.at[n_models : n_models + n_features].add(jnp.sum(of_features, 0))


def alive(lanes: RowLanes, active: Bool[Array, "M R"], free: Bool[Array, "D+1"]) -> Bool[Array, "M+D+1 R"]:
    """Return which parameters move: those of ``active`` models, and the ``free`` others.

    ``lanes`` are `among` the active models. In a lane without ties, t is at its limit, and does not move either.
    """

    def add(block: ContextualRows, t: Array, total: Array) -> Array:
        tied = block.factor * (block.target == 0.5)
        return total + einsum("egr,eg->r", lanes.draws[t].astype(np.float64), tied)

    xp = namespace(active)
    others = xp.broadcast_to(free[:, None], (len(free), active.shape[1]))
    if lanes.model.ties != TieModel.HALF:
        n_ties = over_blocks(lanes.rows, add, xp.zeros(active.shape[1]))
        others = xp.concatenate([others[:-1], free[-1:, None] & (n_ties > 0)])
    return xp.concatenate([active, others])


def _at_limit(model: Response, phi: Float[Array, "P #R"], moves: Bool[Array, "P R"]) -> Float[Array, "P R"]:
    """Return ``phi`` for every lane, with t at its limit where it does not move."""
    xp = namespace(phi)
    phi = xp.broadcast_to(phi, moves.shape)
    return xp.concatenate([phi[:-1], xp.where(moves[-1:], phi[-1:], NO_TIES[model.ties])])


def newton(
    lanes: RowLanes, start: Float[Array, "P #R"], moves: Bool[Array, "P R"]
) -> tuple[solve.Solution, Float[Array, "R P P"]]:
    """Fit the parameters that ``moves`` marks by Newton's method, by each lane's own information, from ``start``.

    ``lanes`` are `among` models that move, here and below. It returns the information of the last step, too, which is
    that of the solution up to the tolerance.
    """
    model, terms, n_models = lanes.model, lanes.terms, lanes.n_models

    def step(phi: Array, _: Array, __: Array) -> solve.SolveStep:
        grad, matrix = derivatives(lanes, phi)
        grad = xp.where(moves, grad, 0.0)
        change = solve.newton_step(grad, matrix, moves, n_models, terms.ridge[0])
        return solve.SolveStep(_damped(model, phi, change), grad, matrix)

    xp = namespace(moves)
    matrix = xp.zeros((moves.shape[1], len(moves), len(moves)))
    return solve.loop(step, _at_limit(model, start, moves), matrix, terms)


def _damped(model: Response, phi: Float[Array, "P R"], change: Float[Array, "P R"]) -> Float[Array, "P R"]:
    """Return the ``change`` of each lane, shrunk where it is too long; a threshold t stays positive."""
    change, xp = solve.capped(change), namespace(change)
    if model.ties != TieModel.RAO_KUPPER:
        return change
    return xp.concatenate([change[:-1], xp.maximum(change[-1:], -0.75 * phi[-1:])])


def scaled_chord(lanes: RowLanes, base: RowBase, moves: Bool[Array, "P R"]) -> solve.Solution:
    """Take chord steps scaled to each lane's own curvature: for boards on which some models have few battles.

    Each step is one pass over the rows, in double precision.
    """
    model, terms, n_models = lanes.model, lanes.terms, lanes.n_models

    def step(phi: Array) -> tuple[Array, Array]:
        def add(block: ContextualRows, t: Array, total: tuple[Array, Array]) -> tuple[Array, Array]:
            score, information = weighted(lanes, block, t, phi)
            grad = add_score(block, total[0], score.z, score.t, n_models)
            return grad, add_diagonal(block, total[1], information, n_models)

        zero = jnp.zeros(phi.shape)
        grad, diagonal = over_blocks(lanes.rows, add, (zero, zero))
        grad, diagonal = _with_ridge(phi, grad, diagonal, moves, terms.ridge)
        change = solve.preconditioner(base.inverse, base.diagonal, diagonal, terms.ridge[0], n_models)(grad)
        return _damped(model, phi, jnp.where(moves, change, 0.0)), grad

    return solve.iterate(step, _at_limit(model, base.phi[:, None], moves), terms)


def _with_ridge(
    phi: Float[Array, "P R"], grad: Float[Array, "P R"], diagonal: Float[Array, "P R"], moves: Bool[Array, "P R"],
    ridge: Float[Array, "P"],
) -> tuple[Float[Array, "P R"], Float[Array, "P R"]]:  # fmt: skip
    """Return gradient and diagonal with those of the ridge, for the parameters that ``moves``; 0 for the others."""
    grad, diagonal = grad - 2 * ridge[:, None] * phi, diagonal + 2 * ridge[:, None]
    return jnp.where(moves, grad, 0.0), jnp.where(moves, diagonal, 0.0)


def newton_cg(lanes: RowLanes, base: RowBase, moves: Bool[Array, "P R"]) -> solve.Solution:
    """Solve as `solve.newton_cg` does: a pass over the rows gives each product with the information.

    On wide boards this is far cheaper than an (M, M) table for every lane.
    """
    model, rows, count, terms = lanes
    n_models, ridge, n_lanes = lanes.n_models, terms.ridge, count.shape[-1]

    def products(phi: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
        # The information of every row; that of t is summed over the rows (R,).

        def add(block: ContextualRows, t: Array, total: tuple[Array, ...]) -> tuple[Array, ...]:
            grad, diagonal, zz, zt, tt = total
            score, information = weighted(lanes, block, t, phi)
            grad = add_score(block, grad, score.z, score.t, n_models)
            diagonal = add_diagonal(block, diagonal, information, n_models)
            zt = zt if model.ties == TieModel.HALF else zt.at[t].set(information.zt)
            return grad, diagonal, zz.at[t].set(information.zz), zt, tt + jnp.sum(information.tt, (0, 1))

        by_row = jnp.zeros((*rows.target.shape, n_lanes))
        of_ties = jnp.zeros((1, 1, 1, 1)) if model.ties == TieModel.HALF else by_row
        zero = jnp.zeros(phi.shape), jnp.zeros(phi.shape), by_row, of_ties, jnp.zeros(n_lanes)
        grad, diagonal, zz, zt, tt = over_blocks(rows, add, zero)
        grad, diagonal = _with_ridge(phi, grad, diagonal, moves, ridge)
        return grad, diagonal, partial(multiplied, tie_models.Information(zz, zt, tt))

    def multiplied(of_rows: tie_models.Information, p: Array) -> Array:
        def add(block: ContextualRows, t: Array, total: Array) -> Array:
            z = predictor(block, p, n_models)
            along = of_rows.zz[t] * z
            if model.ties == TieModel.HALF:
                return add_score(block, total, along, None, n_models)
            return add_score(block, total, along + of_rows.zt[t] * p[-1], of_rows.zt[t] * z, n_models)

        curved = over_blocks(rows, add, jnp.zeros(p.shape)) + 2 * ridge[:, None] * p
        return jnp.where(moves, curved.at[-1].add(of_rows.tt * p[-1]), 0.0)

    of_models, limited = terms._replace(ridge=ridge[0]), partial(_damped, model)
    start = _at_limit(model, base.phi[:, None], moves)
    return solve.newton_cg(products, base.inverse, base.diagonal, start, of_models, n_models, moves, limited)


@program("response", runs="briefly")
def fit_contextual(
    rows: ContextualRows,
    count: Num[Array, "T E G"],
    start: Float[Array, "P"],
    active: Bool[Array, "M"],
    free: Bool[Array, "D+1"],
    response: Response,
    terms: solve.Terms,
) -> tuple[solve.Solution, Float[Array, "P P"], Float[Array, "P"]]:
    """Fit one slice by Newton's method from ``start``: ``count`` battles of ``active`` models, ``free`` parameters.

    It also returns the pseudo-inverse of the information, and the diagonal of the information itself.
    """
    lane = RowLanes(response, rows, count[..., None], terms).among(active[:, None])
    moves = alive(lane, active[:, None], free)
    end, (matrix,) = newton(lane, start[:, None], moves)
    moves = moves[:, 0]
    of_all = solve.inverse_and_diagonal(matrix, moves, len(active), terms.ridge[0])
    return solve.Solution(*(x[..., 0] for x in end)), *of_all


def count_rows(
    problem: RefitProblem, form: RefitForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> Num[Array, "T E G R"]:
    """Return draws of every row's unit in the resamples ``numbers``."""
    return counts_of_rows(problem.data, lane_draws_of(problem, form, seed, numbers))


def refit_lanes(
    posed: tuple[RefitProblem, RowBase],
    form: RefitForm,
    seed: Integer[Array, ""],
    terms: solve.Terms,
    numbers: Integer[Array, "R"],
) -> Refits:
    """Refit resamples of one slice, as `refit` does. The ridge is (P,), a coefficient for each parameter."""
    problem, base = posed
    rows, main = problem.data, problem.main
    n_models, n_lanes = len(main), len(numbers)
    if n_lanes < _LEAST_LANES:  # XLA on the CPU sums the rows of a few lanes in another order
        padded = jnp.pad(numbers, (0, _LEAST_LANES - n_lanes), mode="edge")
        return jax.tree.map(lambda x: x[:n_lanes], refit_lanes(posed, form, seed, terms, padded))
    lanes = RowLanes(form.model, rows, count_rows(problem, form, seed, numbers), terms)
    if form.solver == Solver.CHORD:
        end = chord(lanes, base)
        nobody = jnp.zeros((numbers.shape[0], n_models), jnp.int8)
        return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, nobody)
    # Two models that only one wins have no finite strengths beside ties of any frequency.
    tells = (rows.target != 0.5) | (jnp.sum(main > 0) > 2) if form.model.ties != TieModel.HALF else True
    wins = win_tables(rows._replace(factor=jnp.where(tells, rows.factor, 0.0)), lanes.draws, n_models)
    standing = jax.vmap(lambda wins: connectivity.standing(wins, main))(wins)
    active = rated(standing, terms.ridge[0]).T
    lanes = lanes.among(active)
    moves = alive(lanes, active, problem.moves[n_models:])
    if form.solver == Solver.NEWTON:
        end, _ = newton(lanes, problem.start[:, None], moves)
    else:
        end = (scaled_chord if form.solver == Solver.SCALED_CHORD else newton_cg)(lanes, base, moves)
    return Refits(end.theta.T, end.status, end.n_steps, end.grad_norm, standing)


@partial(refit_program, ready=at_estimate)
def refit_contextual(
    posed: tuple[RefitProblem, RowBase], form: RefitForm, seed: Integer[Array, ""], terms: solve.Terms,
    numbers: Integer[Array, "R"],
) -> Refits:  # fmt: skip
    """Refit by `refit_lanes`, in a program."""
    return refit_lanes(posed, form, seed, terms, numbers)
