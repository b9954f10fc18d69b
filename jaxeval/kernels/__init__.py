"""Pure JAX kernels: one problem each, arrays in, NamedTuples out; the callers set precision and batch them."""
