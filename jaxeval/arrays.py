"""Arrays on the host: their types."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]


def as_leaf(x: Any, dtype: type) -> Any:
    """``x`` as a NumPy array of type Any: the kernels' tuples declare JAX arrays and hold NumPy ones until the call."""
    return np.asarray(x, dtype)
