"""A board of another size compiles nothing."""

import jax
import numpy as np
from compilations import compilations


def test_compilations_are_counted():
    double = jax.jit(lambda x: 2 * x)
    for size, programs, traced in [
        (3, ["jit(<lambda>)"], ["<lambda>"]),
        (3, [], []),
        (4, ["jit(<lambda>)"], ["<lambda>"]),
    ]:
        with compilations() as count:
            double(np.ones(size))
        assert (count.programs, count.traced) == (programs, traced)
    double(np.ones(5))
    assert len(count.programs) == 1  # not those after the block
