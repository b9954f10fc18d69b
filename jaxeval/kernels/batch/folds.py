"""Folds that leave a model out (arXiv:2606.13221): judged battles, anchors without the model, its strength alone.

And resamples of a model's own battles, its opponents fixed; and the temperature of a judge: the beta of greatest
likelihood, where score differences d give targets with mean s(beta d), s being the logistic function (Eq. 6).
"""

from typing import NamedTuple

import numpy as np

from jaxeval.kernels import dense_solve, pair_tables, resample, solve
from jaxeval.kernels.batch.programs import Chunks, over_lanes, program
from jaxeval.kernels.kinds import Array, Bool, Float, Float64, Int8, Int32, Integer, Mesh, Num, UInt8, UInt64
from jaxeval.kernels.links import Link, bend, log_probability, probability, share, slope
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.platforms import added
from jaxeval.kernels.solve import SolveStep, Status, Terms, loop
from jaxeval.lazy_names import jax, jnp, lax


class TemperatureFit(NamedTuple):
    """Where the likelihood is greatest, and its shape there."""

    beta: Float[Array, "..."]  # 1 / score; +-inf where SEPARABLE, NaN where TOO_FEW
    information: Float[Array, "..."]  # minus the second derivative, score^2
    log_likelihood: Float[Array, "..."]
    status: Int8[Array, "..."]  # a `Status`
    n_steps: Int32[Array, "..."]


def fit_temperature(
    level: Float[Array, "L"], n: Float[Array, "L"], wins: Float[Array, "L"], fewest: Num[Array, ""], terms: Terms
) -> TemperatureFit:
    """Fit the temperature by Newton's method from zero on the score levels.

    ``n`` is the weight of the battles at a level and ``wins`` their weight times target: all that the likelihood
    sees. Its derivative falls in beta, ever more slowly away from 0, so Newton's steps from 0 never overshoot.
    The tolerance is in logits, at the largest |level|. With under ``fewest`` battles off level 0 nothing is fitted.
    """
    used = (n > 0) & (level != 0)
    reach = jnp.max(jnp.where(used, jnp.abs(level), 0.0))
    agree = jnp.sum(jnp.where(used, jnp.where(level > 0, wins, n - wins), 0.0))
    total = jnp.sum(jnp.where(used, n, 0.0))
    separable = (agree <= 0) | (agree >= total)
    too_few = (total <= 0) | (total < fewest)
    losses = n - wins

    def curvature(beta: Array) -> Array:
        return jnp.sum(n * level**2 * bend(Link.LOGIT, beta * level))

    def step(beta: Array, _: Array, memory: tuple[()]) -> SolveStep:
        z = beta * level
        # Either side's tail to full relative precision: wins - n p would lose it where p is nearly 1.
        grad = jnp.sum(level * (wins * slope(Link.LOGIT, z) - losses * slope(Link.LOGIT, -z)))
        information = curvature(beta)
        # Lanes without a maximum do not hold up the others.
        moves = (information > 0) & ~(separable | too_few)
        change = jnp.where(moves, grad / jnp.where(moves, information, 1.0), 0.0)
        # The steps shrink ever faster: each is more than what remains after it.
        return SolveStep(change[None], grad[None], memory, jnp.abs(change) * reach)

    end, _ = loop(step, jnp.zeros(1), (), terms)
    (beta,) = end.theta
    z = beta * level
    value = jnp.sum(wins * log_probability(Link.LOGIT, z) + losses * log_probability(Link.LOGIT, -z))
    status = jnp.where(separable, Status.SEPARABLE, end.status)
    status = jnp.where(too_few, Status.TOO_FEW, status).astype(jnp.int8)
    estimate = jnp.where(separable, jnp.where(agree > 0, jnp.inf, -jnp.inf), beta)
    estimate = jnp.where(too_few, jnp.nan, estimate)
    n_steps = jnp.where(separable | too_few, 0, end.n_steps)
    return TemperatureFit(estimate, curvature(beta), value, status, n_steps)


class JudgedSet(NamedTuple):
    """Judged battles compressed to cells, each of a pair (lower model first) and a label, or stacked."""

    pair: Int32[Array, "... C"]  # sorted
    label: Int32[Array, "... C"]
    battles: Float[Array, "... C"]  # how many; 0 in the last one
    total: Float[Array, "... U"]  # battles of each label
    level: Float[Array, "... U"]  # score difference of each label, first minus second model
    fitting: Float[Array, "... U"]  # weight of a battle in the temperature's likelihood
    wins: Float[Array, "... U"]  # that weight times the human target
    position: Int32[Array, "... M M"]  # the pair of (i, j) and (j, i); the last, an empty one, if they never met
    # The cells of each fold's model (last, of no model), filled up by the empty cell.
    of_model: Int32[Array, "... M+1 Q"]


class Targets(NamedTuple):
    """The battles by one target map, or stacked: targets that all folds share, or one temperature for each fold."""

    is_soft: Bool[Array, "..."]  # targets s(beta d), else ``wins``
    wins: Float[Array, "... M M"]  # of the row against the column
    of_set: Int32[Array, "..."]  # the set of battles, and of temperatures


class Scores(NamedTuple):
    """What a fold needs of the wins, or stacked."""

    total: Float[Array, "... M"]  # of every model against all others
    against: Float[Array, "... M"]  # of every model against the held-out one

    @classmethod
    def of(cls, wins: Float[Array, "M M"], held_out: Integer[Array, ""]) -> "Scores":
        """Return the scores of the ``wins`` of the row against the column."""
        return cls(row_sums(wins), wins[:, held_out])


def soft_wins(judged: JudgedSet, beta: Float[Array, ""], n: Float[Array, "M M"]) -> Float[Array, "M M"]:
    """Return wins of the row against the column by the targets s(beta d) of all battles ``n``."""
    m = len(n)
    per_cell = judged.battles * probability(Link.LOGIT, beta * judged.level)[judged.label]
    per_pair = added(jnp.zeros(m * (m - 1) // 2 + 1), (judged.pair, per_cell))
    return pair_tables.of_rows(per_pair[judged.position], n)


class FullFit(NamedTuple):
    """All battles of a target map, and their fit, from which the folds start, or stacked."""

    n: Float[Array, "... M M"]  # weights of battles
    theta: Float[Array, "... M"]  # log-strengths
    inverse: Float[Array, "... M M"]  # of the information
    active: Bool[Array, "... M"]  # models with battles


class HeldOut(NamedTuple):
    """One fold of a target map."""

    anchors: Float[Array, "... M"]  # log-strengths, 0 for the held-out model
    theta: Float[Array, "..."]  # log-strength of the held-out model
    status: Int8[Array, "..."]  # a `Status`: the worse of the two steps


def anchors(full: FullFit, score: Float[Array, "M"], held_out: Integer[Array, ""], terms: Terms) -> solve.Solution:
    """Return log-strengths (M,) of all models but ``held_out``, mean zero, by chord steps; 0 for the held-out one.

    ``full`` holds all battles, those of the held-out model too, and is shared by the folds: what that model's column
    adds to the gradient is taken off. ``score`` is without its battles. The inverse of the full data's information, cut
    to the anchors, is that of a graph in which the held-out model's battles still tie its opponents together. It has
    all the curvature of the fold and some more, so the steps are too short, by the model's share in the battles.
    """
    kept = full.active & (jnp.arange(len(score)) != held_out)
    column, table = full.n[:, held_out], PairTable(full.n, score)

    def gradient(theta: Array) -> Array:
        expected = column * probability(Link.LOGIT, theta)  # the held-out model stands at 0
        return jnp.where(kept, pair_tables.gradient(Link.LOGIT, theta, table, terms.ridge) + expected, 0.0)

    def project(x: Array) -> Array:
        return solve.centred(x, kept)

    return solve.chord(gradient, full.inverse, project(full.theta), terms, project=project)


def rating(
    anchor: Float[Array, "M"], n: Num[Array, "M"], score: Float[Array, ""], start: Float[Array, ""], terms: Terms
) -> solve.Solution:
    """Rate one model that met the fixed ``anchor`` strengths ``n`` times and took ``score``, by its log-strength.

    Newton's method maximises a concave function of one variable; its steps are capped.
    """
    e = jnp.exp(anchor)
    n = n.astype(anchor.dtype)

    def step(theta: Array) -> tuple[Array, Array]:
        p = share(jnp.exp(theta), e)
        expected = n * p
        moments = row_sums(jnp.stack([expected, expected * p]))
        grad = score - moments[:1] - 2 * terms.ridge * theta
        information = moments[:1] - moments[1:] + 2 * terms.ridge
        return solve.capped(grad / information), grad

    end = solve.iterate(step, start[None], terms)
    return end._replace(theta=end.theta[0])


def fold(full: FullFit, scores: Scores, held_out: Integer[Array, ""], terms: Terms, newton: bool) -> HeldOut:
    """Return both parts of one fold: the anchors' log-strengths, and then that of the held-out model.

    With ``newton`` the anchors are found by Newton's method on their own battles, for folds in which `anchors` does not
    converge.
    """
    score, start = scores.total - scores.against, full.theta[held_out]
    if newton:
        kept = full.active & (jnp.arange(len(score)) != held_out)
        rest = jnp.where(kept[:, None] & kept, full.n, 0.0)
        table = PairTable(rest, jnp.where(kept, score, 0.0))
        anchored, start = (
            dense_solve.newton(Link.LOGIT, table, kept & jnp.any(rest > 0, 1), terms),
            jnp.zeros_like(start),
        )
    else:
        anchored = anchors(full, score, held_out, terms)
    rated = rating(anchored.theta, full.n[held_out], scores.total[held_out], start, terms)
    return HeldOut(anchored.theta, rated.theta, jnp.maximum(anchored.status, rated.status))


class OwnProblem(NamedTuple):
    """What the bootstrap of one model draws from, its opponents fixed, or stacked."""

    units: resample.Singles  # its battles, or the clusters that they come in
    stream: UInt64[Array, "..."]
    first: Int32[Array, "... M"]  # place of the first battle against each opponent
    end: Int32[Array, "... M"]  # and the place after the last
    target: Float[Array, "... Q K"]  # by target map; 0 where there is no battle
    step: Float64[Array, "..."]  # 2**-23 of the most battles of a resample, rounded up to a power of two
    unit: Int32[Array, "... Q"] | None  # the unit that each battle is drawn with; None if each battle is a unit
    anchors: Float[Array, "... K M"]
    start: Float[Array, "... K"]


def own_sums(problem: OwnProblem, draws: UInt8[Array, "R Q"]) -> tuple[Float64[Array, "R M"], Float64[Array, "R K"]]:
    """Return battles by opponent, and scores by target map, from draws of units; exact but for the last digits.

    A target is split into a multiple of ``step``, a multiple of its square, and a rest. In single precision the sums
    of the first two are exact, in any order, and the rest is too small to count.
    """
    if problem.unit is not None:
        draws = draws[:, problem.unit]
    coarse = jnp.round(problem.target / problem.step) * problem.step
    fine = jnp.round((problem.target - coarse) / problem.step**2) * problem.step**2
    parts = jnp.concatenate([coarse, fine, problem.target - coarse - fine], axis=1).astype(jnp.float32)
    sums = jnp.matmul(draws.astype(jnp.float32), parts, precision="highest").astype(jnp.float64)
    of_coarse, of_fine, rest = jnp.split(sums, 3, axis=1)
    return sums_between(draws, problem.first, problem.end), of_coarse + of_fine + rest


def sums_between(draws: UInt8[Array, "R Q"], first: Int32[Array, "M"], end: Int32[Array, "M"]) -> Float64[Array, "R M"]:
    """Sum the ``draws`` from ``first`` to before ``end``, if sixteen of them sum to under 256; 16 must divide Q.

    A product of 32-bit words adds four bytes, and another one adds four such sums. The rest is a product of matrices,
    with a sixteenth of the columns.
    """
    ends = jnp.zeros((), jnp.int32)
    for _ in range(2):
        words = lax.bitcast_convert_type(draws.reshape(len(draws), -1, 4), jnp.uint32)
        words = words * np.uint32(0x01010101)  # byte k is the sum of bytes 0 to k

        def begun(place: Array, words: Array = words) -> Array:
            """Return the sum of those bytes of a place's word that come before the place."""
            of_word = words.at[:, place // 4].get(mode="clip")  # where one ends with the last word, the sum is 0
            return (((of_word << 8) >> (8 * (place % 4)).astype(jnp.uint32)) & 0xFF).astype(jnp.int32)

        ends = ends + begun(end) - begun(first)
        first, end = first // 4, end // 4
        draws = (words >> 24).astype(jnp.uint8)
    column = jnp.arange(draws.shape[1])[:, None]
    whole = (column < end).astype(jnp.float32) - (column < first).astype(jnp.float32)
    return (jnp.matmul(draws.astype(jnp.float32), whole, precision="highest") + ends).astype(jnp.float64)


@program(runs="briefly")
def temperatures(
    level: Float[Array, "S L"], n: Float[Array, "S L"], wins: Float[Array, "S L"], fewest: Num[Array, ""], terms: Terms
) -> TemperatureFit:
    """Fit the temperatures of S judges to their score levels."""
    return jax.vmap(lambda d, n, y: fit_temperature(d, n, y, fewest, terms))(level, n, wins)


@program("mesh", runs="briefly")
def fold_temperatures(
    judged: JudgedSet, mesh: Mesh, fewest: Num[Array, ""], terms: Terms, chunks: Chunks
) -> tuple[Float[Array, "..."], Int8[Array, "..."]]:
    """Return temperatures of sets (slices) without the battles of models (numbers), one per lane, and their `Status`.

    The fold after the last model is that of all battles. Results have the leading axes (devices, T, R).
    """

    def chunk(judged: JudgedSet, folds: Array, fewest: Array, terms: Terms) -> tuple[Array, Array]:
        def one(fold: Array) -> tuple[Array, Array]:
            cells = judged.of_model[fold]
            rest = judged.total.at[judged.label[cells]].add(-judged.battles[cells])
            fit = fit_temperature(judged.level, rest * judged.fitting, rest * judged.wins, fewest, terms)
            return fit.beta, fit.status

        return jax.vmap(one)(folds)

    return over_lanes(chunk, mesh, chunks, (fewest, terms), judged)


class FoldProblem(NamedTuple):
    """Target maps on S sets of judged battles, whose models are held out."""

    full: FullFit  # of each map
    targets: Targets
    judged: JudgedSet
    beta: Float[Array, "S M"]  # temperatures of the folds


@program("mesh", "newton", runs="briefly")
def hold_out(problem: FoldProblem, mesh: Mesh, terms: Terms, chunks: Chunks, *, newton: bool = False) -> HeldOut:
    """Compute the folds (numbers) of target maps (slices), one per lane.

    Results have the leading axes (devices, T, R). ``newton`` is as in `fold`.
    """

    def chunk(of_map: tuple[FullFit, Targets], folds: Array, judged: JudgedSet, beta: Array, terms: Terms) -> HeldOut:
        full, targets = of_map

        def soft() -> Scores:
            shared = jax.tree.map(lambda x: x[targets.of_set], judged)
            betas = beta[targets.of_set, folds]
            return jax.vmap(lambda b, fold: Scores.of(soft_wins(shared, b, full.n), fold))(betas, folds)

        def fixed() -> Scores:
            return jax.vmap(lambda fold: Scores.of(targets.wins, fold))(folds)

        # A chunk is of one slice: only what it needs is computed.
        scores = lax.cond(targets.is_soft, soft, fixed)
        return jax.vmap(lambda fold_scores, model: fold(full, fold_scores, model, terms, newton))(scores, folds)

    full, targets, judged, beta = problem
    return over_lanes(chunk, mesh, chunks, (judged, beta, terms), (full, targets))


@program(runs="briefly")
def rate(
    anchors: Float[Array, "L M"], n: Num[Array, "L M"], score: Float[Array, "L"], start: Float[Array, "L"], terms: Terms
) -> solve.Solution:
    """Return strengths (L,) against fixed ``anchors``, met ``n`` times."""
    return jax.vmap(lambda a, n, y, x: rating(a, n, y, x, terms))(anchors, n, score, start)


@program("mesh", runs="briefly")
def own_resamples(
    problem: OwnProblem, mesh: Mesh, seed: Integer[Array, ""], terms: Terms, chunks: Chunks
) -> tuple[Float[Array, "..."], Int8[Array, "..."]]:
    """Resample models, G of which are a slice: one draws after the other, and all of them iterate together.

    Returns strengths (devices, T, R, G, K) by target map, and their `Status`.
    """

    def chunk(problem: OwnProblem, numbers: Array, seed: Array, terms: Terms) -> tuple[Array, Array]:
        def drawn(problem: OwnProblem) -> tuple[Array, Array]:
            draws = resample.singles(problem.units, len(problem.target), seed, problem.stream, numbers)
            return own_sums(problem, draws)

        def one_model(n: Array, score: Array, anchors: Array, start: Array) -> solve.Solution:
            def one_map(anchors: Array, score: Array, start: Array) -> solve.Solution:
                return jax.vmap(lambda n, y: rating(anchors, n, y, start, terms))(n, score)

            return jax.vmap(one_map, out_axes=1)(anchors, score.T, start)

        n, score = lax.map(drawn, problem)
        solution = jax.vmap(one_model, out_axes=1)(n, score, problem.anchors, problem.start)
        return solution.theta, solution.status

    results: tuple[Array, Array] = over_lanes(chunk, mesh, chunks, (seed, terms), problem)
    return results
