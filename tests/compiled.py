"""Kernels as tests call them."""

import jax


def compiled(*kernels):
    """Each kernel compiled whole, for every link or tie model, its first argument, and shape."""
    return [jax.jit(kernel, static_argnums=0) for kernel in kernels]
