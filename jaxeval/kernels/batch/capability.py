"""The capability index of all scores, compiled."""

from jax import Array

from jaxeval.kernels import capability
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.capability import Index, Scale
from jaxeval.kernels.kinds import Bool, Float


@program("likelihood", "tolerance")
def fit_capability(
    weight: Float[Array, "M K"], share: Float[Array, "M K"], start: Scale, free: Bool[Array, "K"], ridge: Array,
    likelihood: bool, tolerance: float,
) -> Index:  # fmt: skip
    """Run `capability.fit`."""
    return capability.fit(weight, share, start, free, ridge, likelihood, tolerance)
