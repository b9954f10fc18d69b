"""Runs that are interrupted, and what tells one run from another; `test_invariances` has all estimators."""

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.execution.runs import digest_of

BATTLES = jaxeval.simulate_battles(500, 6, seed=7)
JUDGED = jaxeval.simulate_judged_battles(600, 5, seed=1)


def test_digests_know_arrays_names_and_order():
    one = [np.arange(1000), pd.Index(["a", "b"]), {"ridge": 0.1, "by": None}, BATTLES.cells]
    assert digest_of(one) == digest_of(one[:])
    for k, other in enumerate([np.arange(1000)[::-1], pd.Index(["b", "a"]), {"ridge": 0.2, "by": None}, JUDGED.hard]):
        assert digest_of([*one[:k], other, *one[k + 1 :]]) != digest_of(one)


@pytest.mark.parametrize(("one", "other"), [
    ([1, 23], [12, 3]),
    ((1.0, 12.0), (1.01, 2.0)),
    ([[1], 2], [1, [2]]),
    ([[]], [0]),
    ([np.arange(3), np.arange(3, 5)], [np.arange(4), np.arange(4, 5)]),
    (np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2)),
    (np.zeros(2), np.zeros(2, np.int64)),
])  # fmt: skip
def test_digests_know_where_each_part_ends(one, other):
    assert digest_of(one) != digest_of(other)
