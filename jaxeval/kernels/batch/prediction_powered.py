"""Bradley-Terry from few human outcomes and many of a judge (prediction-powered inference, arXiv:2403.07008).

The n labelled battles have a human outcome y and the judge's f, N others have f alone. All that the estimate needs are
a few sums for each pair of models (`PairSums`). A pair has n_h labelled battles, with sums s_y of y and s_f of f, and
n_u others, with the sum s_u of f; r is the number of labelled battles for each other one. The points of the pair's
first model are those of people, plus lam times what the judge gives in the other battles less what it gives in the
labelled ones:

    s_eff = s_y + lam (r s_u - s_f)

"By pair", r = n_h / n_u is the pair's own, and the battles are the human ones: n_eff = n_h. "Pooled", r = n / N for all
pairs, and n_eff = (1 - lam) n_h + lam r n_u: the estimator of PPI++ (arXiv:2311.01453).

Lanes are the last axis of arrays.
"""

from collections.abc import Sequence
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from jaxeval.kernels import connectivity, dense_solve, lane_draws, pair_tables
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.batch.refits import (
    RefitForm,
    RefitProblem,
    Refits,
    Solver,
    lane_draws_of,
    rated,
    refit_program,
    stored,
)
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.kinds import Array, Bool, Float, Int8, Int32, Integer, Real
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.platforms import added
from jaxeval.kernels.solve import Solution, Terms
from jaxeval.lazy_names import jax, jnp, lax


class Form(IntEnum):
    """How the judge's verdicts on both samples are compared."""

    BY_PAIR = 0
    "Within each pair of models: the two samples may hold pairs in other proportions."
    POOLED = 1
    "Over all battles: the labelled ones must be a random sample of all."


class PairSums(NamedTuple):
    """Sums over the battles of each pair, outcomes being those of its first model."""

    n: Float[Array, "P *R"]  # labelled battles
    human: Float[Array, "P *R"]
    judge: Float[Array, "P *R"]
    squared_human: Float[Array, "P *R"]
    product: Float[Array, "P *R"]  # human times judge
    squared_judge: Float[Array, "P *R"]
    n_others: Float[Array, "P *R"]  # unlabelled battles
    judge_others: Float[Array, "P *R"]
    squared_judge_others: Float[Array, "P *R"]

    @classmethod
    def of(cls, sums: Sequence[Any]) -> "PairSums":
        """Return them from sums (2 P, ...) in the order of the first six, those over unlabelled battles coming last."""
        half = len(sums[0]) // 2
        return cls(*(x[:half] for x in sums), *(sums[k][half:] for k in (0, 2, 5)))


class Tuning(NamedTuple):
    """What lam is chosen by: what the full data say of each pair."""

    first: Int32[Array, "P"]  # model; any for a pair that pads
    second: Int32[Array, "P"]
    probability: Float[Array, "P"]  # of a win of the first
    judge_mean: Float[Array, "P"]  # outcome that the judge gives on average, by its own strengths
    # K: its product with a score (M,) is how far the score moves the estimates. It is the inverse information, or one
    # row, for a single difference.
    moves: Float[Array, "D M"]
    worth: Float[Array, "P"]  # |K (e_first - e_second)|^2


class Powered(NamedTuple):
    """What a lane is fitted to, and how much the judge helps."""

    n: Float[Array, "P *R"]
    points: Float[Array, "P *R"]  # of the pair's first model
    lam: Float[Array, "*R"]
    gain: Float[Array, "*R"]  # variance without the judge, divided by that with it; 1 or more


def powered(sums: PairSums, form: Form, tuning: Tuning, lam: Real[Array, ""]) -> Powered:
    """Return the sums that lanes are fitted to, with ``lam``, or where that is NaN with the lam of least variance.

    With residuals e = y - p and d = f - c (c the judge's mean by strengths of its own, or p if pooled), the variance of
    K times the scores is that of e - lam d in the labelled battles plus that of lam r d in the others. It is a parabola
    in lam, and lam is its lowest point in [0, 1].
    """
    p = tuning.probability[:, None]
    centre = tuning.judge_mean[:, None] if form == Form.BY_PAIR else p
    n, n_others = jnp.sum(sums.n, 0), jnp.sum(sums.n_others, 0)
    if form == Form.BY_PAIR:
        known = sums.n_others > 0
        ratio = jnp.where(known, sums.n / jnp.where(known, sums.n_others, 1.0), 0.0)
    else:
        known = jnp.broadcast_to(n_others > 0, sums.n.shape)
        ratio = jnp.broadcast_to(n / jnp.maximum(n_others, 1.0), sums.n.shape)
    # Sums of e, d and their products by pair.
    e = sums.human - p * sums.n
    d = jnp.where(known, sums.judge - centre * sums.n, 0.0)
    others = sums.judge_others - centre * sums.n_others
    ee = sums.squared_human - 2 * p * sums.human + p**2 * sums.n
    ed = jnp.where(known, sums.product - centre * sums.human - p * sums.judge + p * centre * sums.n, 0.0)
    dd = jnp.where(known, sums.squared_judge - 2 * centre * sums.judge + centre**2 * sums.n, 0.0)
    dd_others = sums.squared_judge_others - 2 * centre * sums.judge_others + centre**2 * sums.n_others

    def moved(residual: Array) -> Array:
        scores = by_model(tuning, residual, -residual, tuning.moves.shape[1])
        return jnp.matmul(tuning.moves, scores, precision="highest")

    def total(values: Array) -> Array:
        return jnp.sum(tuning.worth[:, None] * values, 0)

    without, shared, used = total(ee), total(ed), total(dd) + total(ratio**2 * dd_others)
    if form == Form.POOLED:  # variances are about the samples' means; by pair, they keep what the model does not fit
        of_e, of_d, of_others = moved(e), moved(d), moved(ratio * others)
        n, n_others = jnp.maximum(n, 1.0), jnp.maximum(n_others, 1.0)
        without -= jnp.sum(of_e**2, 0) / n
        shared -= jnp.sum(of_e * of_d, 0) / n
        used -= jnp.sum(of_d**2, 0) / n + jnp.sum(of_others**2, 0) / n_others
    best = jnp.clip(shared / jnp.where(used > 0, used, jnp.inf), 0.0, 1.0)
    lam = jnp.where(jnp.isnan(lam), best, lam)
    points = sums.human + lam * jnp.where(known, ratio * sums.judge_others - sums.judge, 0.0)
    n_eff = sums.n if form == Form.BY_PAIR else (1 - lam) * sums.n + lam * ratio * sums.n_others
    with_ = without - 2 * lam * shared + lam**2 * used
    return Powered(n_eff, points, lam, jnp.where(without > 0, without / jnp.where(with_ > 0, with_, jnp.nan), jnp.nan))


def by_model(
    pairs: Tuning, first: Float[Array, "P R"], second: Float[Array, "P R"], n_models: int
) -> Float[Array, "{n_models} R"]:
    """Return sums by model of what the pairs say of their ``first`` and ``second`` models."""
    zero = jnp.zeros((n_models, first.shape[1]), first.dtype)
    return added(zero, (pairs.first, first), (pairs.second, second))


def without_optimum(
    n: Float[Array, "M M"], points: Float[Array, "M M"], standing: Int8[Array, "M"]
) -> tuple[Float[Array, "M M"], Float[Array, "M M"], Int8[Array, "M"]]:
    """Return tables of the models that may have a finite strength, and the standing of all.

    Points outside [0, n] are possible, so the graph of wins does not decide. A model whose points sum to 0 or less goes
    to minus infinity, one that has all or more to infinity; its battles are then left out, and the search goes on.
    Whether the likelihood of the others has a maximum shows only when it is sought.

    Args:
        n: battles.
        points: of the row's model against the column's.
        standing: in the graph of who met.
    """

    def search(standing: Array) -> Array:
        rated = (standing == Standing.IDENTIFIED).astype(n.dtype)
        # Products leave out the others in less time than tables without them are made.
        met, won = (rated * jnp.matmul(table, rated, precision="highest") for table in (n, points))
        nothing = 1e-9 * met  # rounding of sums that cancel
        below, above = won <= nothing, met - won <= nothing
        outside = jnp.where(below & above, Standing.INCOMPARABLE, jnp.where(below, Standing.BELOW, Standing.ABOVE))
        leaves = (standing == Standing.IDENTIFIED) & (below | above)
        return jnp.where(leaves, outside, standing).astype(jnp.int8)

    def advance(state: tuple[Array, Array]) -> tuple[Array, Array]:
        group = search(state[0])
        return group, jnp.any(group != state[0])

    standing, _ = lax.while_loop(lambda state: state[1], advance, (standing, jnp.bool_(True)))
    rated = standing == Standing.IDENTIFIED
    both = rated[:, None] & rated
    return jnp.where(both, n, 0.0), jnp.where(both, points, 0.0), standing


class PoweredData(NamedTuple):
    """The data of a `RefitProblem` of both samples."""

    entries: lane_draws.DrawnSums  # by pair in one sample, to the sums of `PairSums.of`
    position: Int32[Array, "M M"]  # the pair of (i, j) and (j, i); the last, an empty one, if they never met
    tuning: Tuning
    lam: Float[Array, ""]  # NaN: the best one of each resample


tune = program("form", runs="briefly")(powered)  # of the full data, whose sums are (P, 1)


@program(runs="briefly")
def fit_powered(
    n: Float[Array, "M M"],
    points: Float[Array, "M M"],
    standing: Int8[Array, "M"],
    is_model: Bool[Array, "M"],
    terms: Terms,
) -> tuple[Solution, Int8[Array, "M"], Float[Array, "M M"], Float[Array, "M"]]:
    """Fit the full data by Newton's method; models (and padding) have that ``standing`` in the graph of who met.

    It also returns the standing of all, the pseudo-inverse of the information, and the diagonal of the information
    itself.
    """
    table, standings = _table(n, points, standing, terms)
    active = rated(standings, terms.ridge) & is_model
    end = dense_solve.newton(Link.LOGIT, table, active, terms, jnp.zeros(len(n)))
    return end, standings, *dense_solve.inverse_information(Link.LOGIT, end.theta, table, terms.ridge, active)


def _table(
    n: Float[Array, "M M"], points: Float[Array, "M M"], standing: Int8[Array, "M"], terms: Terms
) -> tuple[PairTable, Int8[Array, "M"]]:
    """Return what is fitted, and the standing of all models: with a ridge nobody is left out."""
    less, more, standings = without_optimum(n, points, standing)
    held = terms.ridge > 0
    return PairTable(jnp.where(held, n, less), row_sums(jnp.where(held, points, more))), standings


def powered_sums(
    problem: RefitProblem, form: RefitForm, seed: Integer[Array, ""], numbers: Integer[Array, "R"]
) -> PairSums:
    """Return sums by pair of the resamples ``numbers``."""
    draws, n_pairs = lane_draws_of(problem, form, seed, numbers), len(problem.data.tuning.first)
    return PairSums.of(problem.data.entries.of(draws, 2 * n_pairs))


@refit_program
def refit_powered(
    problem: RefitProblem, form: RefitForm, seed: Integer[Array, ""], terms: Terms, numbers: Integer[Array, "R"]
) -> Refits:
    """Refit resamples of one slice, as `refit` does; lam and the gain follow the strengths."""
    sums = powered_sums(problem, form, seed, numbers)
    fitted = powered(sums, form.model, problem.data.tuning, problem.data.lam)
    on_tables = jax.vmap(partial(pair_tables.spread, problem.data))
    shape = problem.data.position.shape
    if form.solver == Solver.CHORD:
        score = by_model(problem.data.tuning, fitted.points, fitted.n - fitted.points, len(problem.start))
        (n,) = stored(on_tables, (fitted.n.T,), shape)
        refits = jax.vmap(partial(_chord, problem, terms))(n, score.T)
    else:
        n, points = stored(on_tables, (fitted.n.T, fitted.points.T), shape)
        refits = jax.vmap(partial(_solve, problem, form, terms))(n, points)
    extra = jnp.stack([fitted.lam, fitted.gain], 1)
    return refits._replace(theta=jnp.concatenate([refits.theta, extra], 1))


def _chord(problem: RefitProblem, terms: Terms, n: Float[Array, "M M"], score: Float[Array, "M"]) -> Refits:
    end = dense_solve.chord_of_link(Link.LOGIT, PairTable(n, score), problem.start, problem.inverse, terms)
    return Refits(*end, jnp.zeros(len(score), jnp.int8))


def _solve(
    problem: RefitProblem, form: RefitForm, terms: Terms, n: Float[Array, "M M"], first: Float[Array, "M M"]
) -> Refits:
    """Refit the models with a finite strength by conjugate gradients or factors.

    ``first`` are the points of each pair's first model.
    """
    # Models compare as soon as they met: their points may lie outside of what battles can give.
    table, standing = _table(n, pair_tables.of_rows(first, n), connectivity.standing(n, problem.main), terms)
    active = rated(standing, terms.ridge)
    if form.solver == Solver.NEWTON:
        end = dense_solve.newton(Link.LOGIT, table, active, terms, problem.start)
    else:
        end = dense_solve.newton_cg(Link.LOGIT, table, problem.start, problem.inverse, problem.diagonal, terms)
    return Refits(*end, standing)
