"""Estimators of accuracies by judges, which are batched over their arrays' leading axes."""

import jax

from jaxeval.kernels import (
    judge_error,
)

accuracies = jax.jit(judge_error.accuracies)
shared_accuracy = jax.jit(judge_error.shared_accuracy)
ppi_accuracy = jax.jit(judge_error.ppi_accuracy)
by_stratum = jax.jit(judge_error.by_stratum)
with_rates_of = jax.jit(judge_error.with_rates_of)
weights = jax.jit(judge_error.weights)
failure = jax.jit(judge_error.failure)
doubt = jax.jit(judge_error.doubt)
small_sample_excess = jax.jit(judge_error.small_sample_excess)
small_sample_shift = jax.jit(judge_error.small_sample_shift)
rates_excess = jax.jit(judge_error.rates_excess)
rogan_gladen_interval = jax.jit(judge_error.rogan_gladen_interval)
