"""Temperatures, folds that leave a model out, and resamples of a model's own battles."""

from typing import NamedTuple

import jax
from jax import Array, lax
from jax.sharding import Mesh

from jaxeval.kernels import held_out, resample, solve
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.held_out import FullFit, HeldOut, Judged, OwnProblem, Scores, Targets, TemperatureFit
from jaxeval.kernels.kinds import Float, Int8, Integer, Num
from jaxeval.kernels.solve import Terms


@program()
def temperatures(
    level: Float[Array, "S L"], n: Float[Array, "S L"], wins: Float[Array, "S L"], fewest: Num[Array, ""], terms: Terms
) -> TemperatureFit:
    """Temperatures of S judges by their score levels."""
    return jax.vmap(lambda d, n, y: held_out.fit_temperature(d, n, y, fewest, terms))(level, n, wins)


class FoldTemperatures(NamedTuple):
    """Temperatures without a model's battles: the parts of a `TemperatureFit` that the folds need."""

    beta: Float[Array, "..."]  # as in `TemperatureFit`
    status: Int8[Array, "..."]


@program("mesh")
def fold_temperatures(
    judged: Judged, mesh: Mesh, fewest: Num[Array, ""], terms: Terms, chunks: Chunks
) -> FoldTemperatures:
    """Temperatures of sets (slices) without the battles of models (numbers), one per lane.

    The fold after the last model is that of all battles. Results have the leading axes (devices, T, R).
    """

    def chunk(judged: Judged, folds: Array, fewest: Array, terms: Terms) -> FoldTemperatures:
        def one(fold: Array) -> FoldTemperatures:
            own = judged.own[fold]
            rest = judged.total.at[judged.label[own]].add(-judged.battles[own])
            fit = held_out.fit_temperature(judged.level, rest * judged.fitting, rest * judged.wins, fewest, terms)
            return FoldTemperatures(fit.beta, fit.status)

        return jax.vmap(one)(folds)

    return over_lanes(chunk, mesh, chunks, (fewest, terms), judged)


@program("mesh", "newton")
def hold_out(
    full: FullFit,
    targets: Targets,
    judged: Judged,
    beta: Float[Array, "S M"],
    mesh: Mesh,
    terms: Terms,
    chunks: Chunks,
    *,
    newton: bool = False,
) -> HeldOut:
    """Folds (numbers) of target maps (slices) on S sets of ``judged`` battles, one per lane.

    ``beta`` are the temperatures of the folds. Results have the leading axes (devices, T, R). ``newton`` is as in
    `held_out.fold`.
    """

    def chunk(problem: tuple[FullFit, Targets], folds: Array, judged: Judged, beta: Array, terms: Terms) -> HeldOut:
        full, targets = problem

        def soft() -> Scores:
            own = jax.tree.map(lambda x: x[targets.of_set], judged)
            betas = beta[targets.of_set, folds]
            return jax.vmap(lambda b, fold: Scores.of(held_out.soft_wins(own, b, full.n), fold))(betas, folds)

        def fixed() -> Scores:
            return jax.vmap(lambda fold: Scores.of(targets.wins, fold))(folds)

        # A chunk is of one slice: only what it needs is computed.
        scores = lax.cond(targets.is_soft, soft, fixed)
        return jax.vmap(lambda own, fold: held_out.fold(full, own, fold, terms, newton))(scores, folds)

    return over_lanes(chunk, mesh, chunks, (judged, beta, terms), (full, targets))


@program()
def rate(
    anchors: Float[Array, "L M"], n: Num[Array, "L M"], score: Float[Array, "L"], start: Float[Array, "L"], terms: Terms
) -> solve.Solution:
    """Strengths (L,) against fixed ``anchors``, met ``n`` times."""
    return jax.vmap(lambda a, n, y, x: held_out.rating(a, n, y, x, terms))(anchors, n, score, start)


class OwnResamples(NamedTuple):
    """Strengths of G models in resamples of their own battles, or clusters."""

    theta: Float[Array, "... G K"]
    status: Int8[Array, "... G K"]  # a `Status`


@program("mesh")
def own_resamples(own: OwnProblem, mesh: Mesh, seed: Integer[Array, ""], terms: Terms, chunks: Chunks) -> OwnResamples:
    """Resamples of models, G of which are a slice: one draws after the other, and all of them iterate together."""

    def chunk(own: OwnProblem, numbers: Array, seed: Array, terms: Terms) -> OwnResamples:
        def drawn(own: OwnProblem) -> tuple[Array, Array]:
            draws = resample.singles(own.units, len(own.target), seed, own.stream, numbers)
            return held_out.own_sums(own, draws)

        def one_model(n: Array, score: Array, anchors: Array, start: Array) -> solve.Solution:
            def one_map(anchors: Array, score: Array, start: Array) -> solve.Solution:
                return jax.vmap(lambda n, y: held_out.rating(anchors, n, y, start, terms))(n, score)

            return jax.vmap(one_map, out_axes=1)(anchors, score.T, start)

        n, score = lax.map(drawn, own)
        found = jax.vmap(one_model, out_axes=1)(n, score, own.anchors, own.start)
        return OwnResamples(found.theta, found.status)

    return over_lanes(chunk, mesh, chunks, (seed, terms), own)
