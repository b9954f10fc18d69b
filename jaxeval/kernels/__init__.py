"""Pure JAX kernels: one problem each, arrays in, NamedTuples out; the callers set precision and batch them.

Annotations give the kinds and shapes of arrays in jaxtyping's notation: a letter is one size in a call, "..." and
"*lanes" are any axes, "#" marks those that broadcast. Only tests check them, NamedTuples included: see
`tests/shapes.py`.
"""
