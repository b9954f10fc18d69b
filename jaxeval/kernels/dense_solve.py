"""Maximum of the likelihood on an (M, M) table of pairs, one problem at a time: by three kinds of steps."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax.numpy as jnp
from jax import Array, lax

from jaxeval.kernels import likelihood
from jaxeval.kernels.kinds import Bool, Float, Real
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.solve import (
    Solution,
    Terms,
    capped,
    centred,
    iterate,
    newton_cg_step,
    preconditioner,
    pseudo_inverse,
    regular,
    solved,
)

Table = TypeVar("Table", bound=tuple[Any, ...])


def chord(
    gradient: Callable[[Array, Table], Array],
    table: Table,
    start: Float[Array, "P"],
    inverse: Float[Array, "P P"],
    terms: Terms,
) -> Solution:
    """Newton's method with one fixed ``inverse`` of the information, that of the full data.

    The ``gradient`` takes parameters and the ``table``. Batched over resamples, the step is a single matrix product.
    Diverges where a resample's information is far from the full data's.
    """

    def step(theta: Array) -> tuple[Array, Array]:
        theta, counts = _as_kept(theta, table)
        grad = gradient(theta, counts)
        return jnp.matmul(inverse, grad, precision="highest"), grad

    return iterate(step, start, terms.tolerance, terms.max_steps)


def newton(
    link: Link, table: PairTable, active: Bool[Array, "M"], terms: Terms, start: Float[Array, "M"] | None = None
) -> Solution:
    """Newton's method from ``start``, or from each model's own score.

    ``table`` holds no battles of models that are not ``active``: their theta stays 0.
    """
    if start is None:
        battles = row_sums(table.n).astype(table.score.dtype)
        start = jnp.log((table.score + 1) / (battles - table.score + 1))

    def step(theta: Array) -> tuple[Array, Array]:
        grad = likelihood.gradient(link, theta, table, terms.ridge)
        matrix, _ = regular(information(link, theta, table, terms.ridge), active, len(active), terms.ridge)
        return capped(centred(solved(matrix, grad), active)), grad

    return iterate(step, centred(start, active), terms.tolerance, terms.max_steps)


def newton_cg(
    link: Link,
    table: PairTable,
    start: Float[Array, "M"],
    inverse: Float[Array, "M M"],
    information_diagonal: Float[Array, "M"],
    terms: Terms,
) -> Solution:
    """Newton's method with the steps found by preconditioned conjugate gradients: for resamples of sparse boards.

    ``inverse`` and ``information_diagonal`` are of the full data. In a resample, the information of a model with a
    handful of battles is far from theirs, and the preconditioner corrects for that.
    """

    def step(theta: Array) -> tuple[Array, Array]:
        theta, counts = _as_kept(theta, table)
        grad = likelihood.gradient(link, theta, counts, terms.ridge)
        v = likelihood.curvature(link, theta, counts)
        diagonal = row_sums(v) + 2 * terms.ridge
        precondition = preconditioner(inverse, information_diagonal, diagonal, terms.ridge, len(start))
        change = newton_cg_step(
            lambda p: diagonal * p - jnp.matmul(v, p, precision="highest"), precondition, diagonal, grad
        )
        return capped(change), grad

    return iterate(step, start, terms.tolerance, terms.max_steps)


def _as_kept(theta: Float[Array, "P"], table: Table) -> tuple[Float[Array, "P"], Table]:
    """Both as they are, for one step of a loop.

    XLA would otherwise move the conversion of the counts to floats out of the loop, and read twice the bytes in it.
    """
    kept: tuple[Array, Table] = lax.optimization_barrier((theta, table))
    return kept


def information(link: Link, theta: Float[Array, "M"], table: PairTable, ridge: Real[Array, ""]) -> Float[Array, "M M"]:
    """Negative Hessian of the penalised log-likelihood."""
    v = likelihood.curvature(link, theta, table)
    return jnp.diag(jnp.sum(v, 1) + 2 * ridge) - v


def inverse_information(
    link: Link, theta: Float[Array, "M"], table: PairTable, ridge: Real[Array, ""], active: Bool[Array, "M"]
) -> tuple[Float[Array, "M M"], Float[Array, "M"]]:
    """Pseudo-inverse of the information of the ``active`` models, and the diagonal of the information itself."""
    matrix = information(link, theta, table, ridge)
    return pseudo_inverse(matrix, active, len(active), ridge), jnp.where(active, jnp.diagonal(matrix), 0.0)
