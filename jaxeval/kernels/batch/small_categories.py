"""The posterior belief about the log-strengths of a category that borrows from the other battles, at a given spread.

The other battles have log-strengths theta, and the category theta + spread * e with independent e ~ N(0, 1)
(Polyrating, arXiv:2409.00696). Both are found together, so a model needs a finite strength only on all battles taken
together. The belief is normal about the mode: Laplace's approximation, which also gives the evidence of the spread (DOI
10.1080/01621459.1986.10478240). In these parameters a spread of 0 is as regular as any other.
"""

from functools import partial
from typing import NamedTuple

from jaxeval.kernels import pair_tables
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.dense_solve import information
from jaxeval.kernels.kinds import Array, Bool, Float, Int8, Int32, Real
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable, row_sums
from jaxeval.kernels.solve import Terms, capped, centred, iterate, newton_step, regular, solved_and_log_det
from jaxeval.lazy_names import jax, jnp, lax


class Split(NamedTuple):
    """All battles as those of one category and the others, each divided by their variance factor."""

    category: Float[Array, "... M M"]  # wins of the row's model against the column's; 0 for models that are not active
    others: Float[Array, "... M M"]
    active: Bool[Array, "... M"]  # models with a finite strength on all battles


class Belief(NamedTuple):
    """The log-strengths of one category at one spread; at several with a leading axis."""

    mean: Float[Array, "... M"]  # of mean zero, like the covariance
    covariance: Float[Array, "... M M"]
    evidence: Float[Array, "..."]  # log marginal likelihood, up to a constant
    borrowed: Float[Array, "... M"]  # how much of what is known of each model comes from the other battles, 0 to 1
    status: Int8[Array, "..."]  # a `Status`
    n_steps: Int32[Array, "..."]
    grad_norm: Float[Array, "..."]


def beliefs(split: Split, spreads: Float[Array, "K"], start: Float[Array, "M"], terms: Terms) -> Belief:
    """Return the beliefs at all ``spreads``. Each is sought from the one before it, the first one from ``start``."""

    def advance(previous: Array, spread: Array) -> tuple[Array, Belief]:
        return _belief(split, spread, previous, terms)

    first = jnp.concatenate([centred(start, split.active), jnp.zeros_like(start)])
    return lax.scan(advance, first, spreads)[1]


def _belief(
    split: Split, spread: Real[Array, ""], start: Float[Array, "P"], terms: Terms
) -> tuple[Float[Array, "P"], Belief]:
    """Return the mode, of P = 2 M parameters (theta, then e), and the belief about the category."""
    active, m = split.active, len(split.active)
    moves = jnp.concatenate([active, active])
    pairs, others = (PairTable(wins + wins.T, row_sums(wins)) for wins in (split.category, split.others))

    def strengths(x: Array) -> tuple[Array, Array]:
        return x[:m] + spread * x[m:], x[:m]

    def matrix(x: Array) -> tuple[Array, Array]:
        """Return the information of all parameters, and that of the category's strengths by its battles."""
        of_category, of_others = strengths(x)
        mine = information(Link.LOGIT, of_category, pairs, jnp.zeros(()))
        both = mine + information(Link.LOGIT, of_others, others, jnp.zeros(()))
        table = jnp.block([[both, spread * mine], [spread * mine, spread**2 * mine + jnp.eye(m)]])
        return table, mine

    def step(x: Array) -> tuple[Array, Array]:
        of_category, of_others = strengths(x)
        mine = pair_tables.gradient(Link.LOGIT, of_category, pairs, jnp.zeros(()))
        both = mine + pair_tables.gradient(Link.LOGIT, of_others, others, jnp.zeros(()))
        grad = jnp.where(moves, jnp.concatenate([both, spread * mine - x[m:]]), 0.0)
        return capped(newton_step(grad, matrix(x)[0], moves, m, jnp.zeros(()))), grad

    end = iterate(step, start, terms)
    of_category, of_others = strengths(end.theta)
    table, mine = matrix(end.theta)
    table, shift = regular(table, moves, m, jnp.zeros(()))
    chosen = jnp.where(active, jnp.eye(m), 0.0)
    slopes = jnp.concatenate([chosen, spread * chosen])
    spanned, log_det = solved_and_log_det(table, slopes)
    covariance = _centred_table(jnp.matmul(slopes.T, spanned, precision="highest"), active)
    log_likelihood = pair_tables.log_likelihood(Link.LOGIT, of_category, split.category, jnp.zeros(()))
    log_likelihood += pair_tables.log_likelihood(Link.LOGIT, of_others, split.others, jnp.zeros(()))
    n_active = jnp.maximum(jnp.sum(active), 2)
    # The diagonal of covariance times own information is 0 if the category tells nothing of a model. It is at most
    # (n - 1) / n, as all strengths have mean zero.
    known = jnp.sum(covariance * mine, 1) * n_active / (n_active - 1)
    return end.theta, Belief(
        mean=centred(of_category, active),
        covariance=covariance,
        evidence=log_likelihood - 0.5 * (jnp.sum(end.theta[m:] ** 2) + log_det - jnp.log(shift)),
        borrowed=jnp.where(active, 1 - jnp.clip(known, 0.0, 1.0), 1.0),
        status=end.status,
        n_steps=end.n_steps,
        grad_norm=end.grad_norm,
    )


def _centred_table(table: Float[Array, "M M"], among: Bool[Array, "M"]) -> Float[Array, "M M"]:
    """Return rows and columns of mean zero ``among`` the models, and 0 for others."""
    mean = row_sums(table) / jnp.maximum(jnp.sum(among), 1)
    of_all = jnp.sum(mean) / jnp.maximum(jnp.sum(among), 1)
    return jnp.where(among[:, None] & among, table - mean[:, None] - mean + of_all, 0.0)


@program()
def category_beliefs(split: Split, spreads: Float[Array, "K"], start: Float[Array, "M"], terms: Terms) -> Belief:
    """Return `beliefs` of C categories at K spreads, (C, K, ...)."""
    return jax.vmap(partial(beliefs, spreads=spreads, start=start, terms=terms))(split)
