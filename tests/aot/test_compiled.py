"""Every program over lanes, compiled for accelerators that are not there, and what the compiler says of it.

For a TPU it takes `pip install -e '.[test,aot]'`, for a GPU `jax[cuda13]` beside it. Both belong in an environment of
their own, as libtpu makes every process of JAX look for a TPU: JAX_PLATFORMS=cpu pytest -m aot tests/aot
"""

from functools import cache

import pytest
from aot.calls import compiled, record
from aot.estimates import ESTIMATES
from aot.topologies import DEVICES, what_lacks

pytestmark = pytest.mark.aot

# Loops whose turns a GPU's host counts, the chunks' among them, and conditionals, for which it waits, too.
HOST_LOOPS = {
    "delta_sums": 5,
    "evaluator_resamples": 1,
    "fold_temperatures": 2,
    "hold_out": 3,
    "hold_out-newton": 3,
    "own_resamples": 3,
    "reference_study": 6,
    "refit-chord": 3,
    "refit-firth": 6,
    "refit-newton": 6,
    "refit-newton_cg": 7,
    "refit_changed": 3,
    "refit_choices-chord": 6,
    "refit_choices-newton": 6,
    "refit_choices-newton_cg": 7,
    "refit_contextual-chord": 6,
    "refit_contextual-newton": 10,
    "refit_contextual-newton_cg": 12,
    "refit_contextual-scaled_chord": 10,
    "refit_item_response": 3,
    "refit_misfit": 2,
    "refit_powered-newton_cg": 8,
    "refit_sparse-sparse": 7,
    "row_counts": 2,
    "row_sums": 2,
}
CONDITIONALS = {"hold_out": 1, "hold_out-newton": 1}  # of folds by target map: all but one kind is spared
MOST_RETURNED = 1.5  # times what is needed
# A dozen folds, and a few candidates for each pair of neighbours, of which each of four devices takes eight.
RETURNED = {"fold_temperatures": 2.5, "hold_out": 1.8, "hold_out-newton": 1.8, "refit_changed": 2.5}
OVERHEAD = {"cuda": 2**20, "tpu": 2**24}  # bytes that programs take whatever their lanes


@cache
def devices(platform):
    lack = what_lacks(platform)
    if lack:
        pytest.skip(lack)
    return DEVICES[platform]()


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("platform", DEVICES)
def test_programs_over_lanes_compile(platform, estimate):
    """Without talk between devices, into the memory that they are said to take, with as few waits as are known."""
    calls = [call for call in record(ESTIMATES[estimate], devices(platform)) if call.lanes is not None]
    assert calls
    for call in calls:
        found = compiled(call)
        said = f"{call.name}: {found}, {call.lanes}"
        assert found.collectives == 0, said
        assert call.lanes.returned <= RETURNED.get(call.name, MOST_RETURNED) * call.lanes.needed, said
        taken = found.argument_bytes + found.result_bytes + found.temporary_bytes
        assert taken <= call.lanes.bytes_said + OVERHEAD[platform], said
        if platform == "cuda":
            assert found.host_loops <= HOST_LOOPS[call.name], said
            assert found.conditionals <= CONDITIONALS.get(call.name, 0), said
