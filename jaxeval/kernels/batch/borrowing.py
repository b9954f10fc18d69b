"""Categories side by side, each over the whole grid of spreads."""

from functools import partial

import jax
from jax import Array

from jaxeval.kernels import borrowing
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.borrowing import Belief, Split
from jaxeval.kernels.kinds import Float
from jaxeval.kernels.solve import Terms


@program()
def category_beliefs(split: Split, spreads: Float[Array, "K"], start: Float[Array, "M"], terms: Terms) -> Belief:
    """`borrowing.beliefs` of C categories at K spreads, (C, K, ...)."""
    return jax.vmap(partial(borrowing.beliefs, spreads=spreads, start=start, terms=terms))(split)
