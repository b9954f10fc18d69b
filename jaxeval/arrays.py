"""Arrays on the host: their types, and trees of them."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.lazy_names import pd

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]
#: What a function of scalars or arrays returns.
Numbers = float | NDArray[np.float64]
Words = str | NDArray[np.str_]


def as_leaf(x: Any, dtype: type) -> Any:
    """Return ``x`` as a NumPy array of type Any: kernels' tuples declare JAX arrays and hold NumPy's until the call."""
    return np.asarray(x, dtype)


def distinct(values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return (N,) codes of (N,) numbers and the sorted distinct ones, NaN as one of them and the last."""
    if "pandas" in sys.modules:  # whose hashing is ten times as fast, but no reason to import it
        return pd.factorize(values, sort=True, use_na_sentinel=False)
    levels, codes = np.unique(values, return_inverse=True)
    return codes, levels


def map_tree(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Return ``function`` of the arrays of trees of one form, as `jax.tree.map` does, without JAX.

    A tree is made of tuples, NamedTuples, lists and mappings; None holds no array.
    """
    if tree is None:
        return None
    if isinstance(tree, Mapping):
        return {name: map_tree(function, tree[name], *(other[name] for other in others)) for name in sorted(tree)}
    if isinstance(tree, tuple | list):
        parts = [map_tree(function, *branches) for branches in zip(tree, *others, strict=True)]
        return tree._make(parts) if hasattr(tree, "_make") else type(tree)(parts)
    return function(tree, *others)
