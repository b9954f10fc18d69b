"""Runs that are interrupted, and what tells one run from another; `test_invariances` has all estimators."""

import jax
import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.execution import lanes
from jaxeval.execution.checkpoints import Checkpoint
from jaxeval.execution.runs import digest_of

GOLD = pd.Series(np.random.default_rng(4).normal(size=20), [f"m{k}" for k in range(20)])
SCORES = pd.DataFrame({f"e{k}": GOLD + np.random.default_rng(k).normal(size=20) for k in (5, 6)})
BATTLES = jaxeval.simulate_battles(500, 6, seed=7)
JUDGED = jaxeval.simulate_judged_battles(600, 5, seed=1)


def test_after_ctrl_c_the_rest_is_run(tmp_path, monkeypatch):
    def taus(**options):
        return jaxeval.kendall_tau_delta(SCORES, GOLD, [0.5, 2.0], n_resamples=300, **options).select_dtypes(float)

    save = Checkpoint.save

    def interrupted(*arguments):
        save(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(lanes, "slots_per_call", lambda *_: 1)
        patched.setattr(lanes, "chunk_lanes", lambda *_: 8)
        patched.setattr(lanes, "_SECONDS_BETWEEN_SAVES", 0.0)
        patched.setattr(Checkpoint, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            taus(checkpoint=tmp_path / "run")
    (part,) = (tmp_path / "run").glob("*.npz")
    with np.load(part) as kept:
        assert 0 < len(kept["number"]) <= 8 * jax.local_device_count()
    np.testing.assert_allclose(taus(checkpoint=tmp_path / "run"), taus(), rtol=1e-9, atol=1e-9)
    assert len(list((tmp_path / "run").glob("*.npz"))) > 1


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
