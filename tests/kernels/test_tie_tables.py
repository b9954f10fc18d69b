"""Tie models on tables of pairs, against plain loops over battles and derivatives of the log-likelihood."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxeval.kernels import pair_tables, tie_models
from jaxeval.kernels.resample import Packing
from jaxeval.kernels.tie_models import Response, TieModel

pytestmark = pytest.mark.usefixtures("x64")

M = 8
FIRST, SECOND = np.triu_indices(M, 1)
PACKED = Packing(np.uint64, keeps_ties=True)
T = {TieModel.DAVIDSON: -0.4, TieModel.RAO_KUPPER: 0.5}


def battles(seed):
    """(3, P) losses, ties and wins of each pair; some never met."""
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.choice([0.0, 3.0, 40.0], (3, len(FIRST))))


@partial(jax.jit, static_argnames=("model", "packed"))
def table(model, count, factor=None, packed=True):
    """From words, or from weights of the same battles."""
    position = np.full((M, M), len(FIRST), np.int32)
    position[FIRST, SECOND] = position[SECOND, FIRST] = np.arange(len(FIRST))
    layout = pair_tables.Layout(jnp.asarray(position), factor)
    count, packing = jnp.pad(count, ((0, 0), (0, 1))), PACKED if packed else Packing(None, keeps_ties=True)
    draws = PACKED.pack(list(count)) if packed else count
    if not packed:
        target = jnp.broadcast_to(jnp.asarray([[0.0], [0.5], [1.0]]), count.shape)
        layout = layout._replace(weight=jnp.ones(count.shape), target=target)
    dense = pair_tables.spread(layout, pair_tables.pair_statistics(layout, draws, len(FIRST) + 1, keep_ties=True))
    return tie_models.tie_table(model, layout, dense, packing, np.float64)


def log_likelihood(model, phi, count, factor, ridge):
    """Pair by pair."""
    z = phi[FIRST] - phi[SECOND]
    each = sum(
        count[k] * tie_models.log_likelihood(Response(model), jnp.full(len(FIRST), k / 2), z, phi[-1]) for k in range(3)
    )
    return jnp.sum(factor[FIRST, SECOND] * each) - jnp.sum(ridge * phi**2)


gradient = jax.jit(tie_models.table_gradient, static_argnums=0)
by_jax = jax.jit(jax.grad(log_likelihood, 1), static_argnums=0)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_tables_hold_the_battles(seed, packed):
    count = battles(seed)
    n, kept = np.zeros((2, M, M))
    score = np.zeros(M)
    for i, j, (losses, ties, wins) in zip(FIRST, SECOND, count.T, strict=True):
        n[i, j] = n[j, i] = losses + ties + wins
        kept[i, j], kept[j, i] = wins + ties, losses + ties
        score[i] += wins + ties / 2
        score[j] += losses + ties / 2
    for model, twins in (TieModel.DAVIDSON, (n, score)), (TieModel.RAO_KUPPER, (kept, kept.T)):
        for own, twin in zip(table(model, count, packed=packed), (*twins, count[1].sum()), strict=True):
            np.testing.assert_array_equal(own, twin)


@pytest.mark.parametrize("model", [TieModel.DAVIDSON, TieModel.RAO_KUPPER])
@pytest.mark.parametrize("reweighted", [False, True])
def test_the_gradient_is_that_of_the_log_likelihood(model, reweighted):
    rng = np.random.default_rng(3)
    factor = np.ones((M, M))
    if reweighted:
        factor = rng.random((M, M))
        factor = factor + factor.T
    count, ridge = battles(4), np.append(np.full(M, 0.3), 0.0)
    phi = np.append(rng.normal(0, 1.5, M), T[model])
    found = gradient(model, phi, table(model, count, factor if reweighted else None), ridge)
    np.testing.assert_allclose(found, by_jax(model, phi, count, factor, ridge), rtol=1e-10, atol=1e-10)
