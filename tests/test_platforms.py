"""What can be told of accelerators without one: every program of the refits is accepted for CUDA, ROCm and TPU."""

import numpy as np
import pytest

from jaxeval import simulate_battles
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.bootstrap_plan import SCHEMES, make_plan
from jaxeval.ratings.refits import Refitting


@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("solver", [batch.Solver.CHORD, batch.Solver.NEWTON_CG, batch.Solver.NEWTON])
def test_refits_lower(platform, scheme, solver):
    battles = simulate_battles(500, 8, seed=0)
    boards = fit_boards([(battles.models, battles.cells)], 0.0, False)
    plan = make_plan(boards, SCHEMES[scheme], [""], 0.0, [None])
    refits = Refitting(plan, SCHEMES[scheme], 0, 0.0, "float64", 0)
    n_devices = refits.mesh.size
    chunks = (
        np.zeros((n_devices, 2), np.int32),
        np.zeros((n_devices, 2, 8), np.int64),
        np.ones(n_devices, np.int32),
    )
    with double_precision():
        traced = batch.refit.trace(
            refits.problems, refits.method(solver), refits.mesh, refits.seed, refits.ridge, refits.tolerance, *chunks
        )
        assert "while" in traced.lower(lowering_platforms=(platform,)).as_text()
