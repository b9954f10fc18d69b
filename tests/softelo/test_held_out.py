"""Folds as lanes: what their results must not depend on, and the two ways to their anchors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from processes import ended, start_commands, start_script

import jaxeval
from jaxeval.execution.checkpoints import Checkpoint
from jaxeval.execution.lanes import LaneRun
from jaxeval.execution.shapes import OWN_BATTLES
from jaxeval.softelo import held_out
from jaxeval.softelo.held_out import hold_out
from jaxeval.softelo.temperature import compress

METHODS = ("hard", "soft")
SETS = [compress(jaxeval.simulate_judged_battles(n, m, seed=m)) for n, m in ((400, 6), (300, 7))]


@pytest.fixture(scope="module")
def folds():
    return hold_out(SETS, METHODS, 0.05)


def assert_alike(found, expected, atol=1e-9):
    for one, other in zip(found, expected, strict=True):
        for name, x in one._asdict().items():
            np.testing.assert_allclose(x, getattr(other, name), rtol=0, atol=atol, err_msg=name)


def test_a_set_does_not_depend_on_the_others(folds):
    assert_alike(hold_out(SETS[1:], METHODS, 0.05), folds[1:])


def test_newtons_method_finds_what_chord_steps_find(folds, monkeypatch):
    monkeypatch.setattr(held_out, "_CHORD_STEPS", 0)
    ran, run_own = [], LaneRun._run_own
    monkeypatch.setattr(LaneRun, "_run_own", lambda *x: ran.append(x[-1]) or run_own(*x))
    assert_alike(hold_out(SETS, METHODS, 0.05), folds, atol=2e-8)  # each within 1e-8 logits
    assert ran == ["temperatures-0", "folds-0-chord", "folds-0-newton"]


def test_the_bar_counts_every_lane(folds):
    done = []
    hold_out(SETS, METHODS, 0.05, run=LaneRun(done.append))
    assert sum(done) == held_out.n_lanes(SETS, METHODS)


def soft_elo(seed=7, **options):
    judges = {name: jaxeval.simulate_judged_battles(300, 6, seed=k) for k, name in enumerate("xy", seed)}
    return jaxeval.soft_elo(judges, n_resamples=100, **options)


class TestCheckpoints:
    @pytest.mark.slow
    def test_finished_folds_are_read_back(self, tmp_path, monkeypatch):
        whole = soft_elo(checkpoint=tmp_path)
        sections = {path.name.split(".")[0] for path in tmp_path.glob("*.npz")}
        assert {"temperatures-0", "folds-0-chord"} < sections
        finished = LaneRun._finished

        def only_resamples(run, task, lanes, which, results):
            assert len(which) == 0 or task.budget is OWN_BATTLES, "a fold is computed again"
            return finished(run, task, lanes, which, results)

        monkeypatch.setattr(LaneRun, "_finished", only_resamples)
        monkeypatch.setattr(Checkpoint, "save", None)
        again = soft_elo(checkpoint=tmp_path)
        np.testing.assert_array_equal(again.draws, whole.draws)
        np.testing.assert_array_equal(again.models["human_elo"], whole.models["human_elo"])

    def test_other_names_are_another_run(self, tmp_path):
        """The names decide the random numbers."""
        battles = jaxeval.simulate_judged_battles(300, 6, seed=1)
        renamed = replace(battles, models=battles.models + "'")
        jaxeval.soft_elo(battles, n_resamples=20, checkpoint=tmp_path)
        with pytest.raises(jaxeval.DataError, match="of other battles"):
            jaxeval.soft_elo(renamed, n_resamples=20, checkpoint=tmp_path)


PROCESSES = """
from jaxeval.execution import lanes
run_own, ran = lanes.LaneRun._run_own, {}

def counted(self, task, of, which, results, section):
    ran[section] = len(which)
    return run_own(self, task, of, which, results, section)

lanes.LaneRun._run_own = counted
battles = jaxeval.simulate_judged_battles(300, 6, seed=7)
with jaxeval.share_resamples():
    found = jaxeval.soft_elo(battles, n_resamples=101, checkpoint=folder + "/run")
    assert ran["temperatures-0"] == [3, 4][rank], ran
    assert ran["folds-0-chord"] == 9, ran
    assert ran["own-512-1"] == 303, ran
    save, lanes.Checkpoint.save = lanes.Checkpoint.save, None  # nothing is left to be kept
    again = jaxeval.soft_elo(battles, n_resamples=101, checkpoint=folder + "/run")
    np.testing.assert_array_equal(again.draws, found.draws)
    lanes.Checkpoint.save = save
    for text, options in {"seed=1, not 0": {"seed": rank}, "base=1.0, not 0.0": {"base": float(rank)}}.items():
        with fails(jaxeval.ProcessError, f"process 1 has {text}"):
            jaxeval.soft_elo(battles, **options)
    with fails(jaxeval.ProcessError, "process 1 has other battles"):
        jaxeval.soft_elo(jaxeval.simulate_judged_battles(300, 6, seed=rank))
found.models.to_pickle(f"{folder}/{rank}.pkl")
"""


@pytest.mark.slow
def test_two_processes_share_folds_and_resamples(tmp_path):
    codes, _, errors = ended(start_script(PROCESSES, tmp_path))
    assert codes == [0, 0], errors
    here = jaxeval.soft_elo(jaxeval.simulate_judged_battles(300, 6, seed=7), n_resamples=101).models
    for rank in (0, 1):
        there = pd.read_pickle(tmp_path / f"{rank}.pkl")
        pd.testing.assert_frame_equal(there, here, check_exact=False, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_the_command_in_two_processes(tmp_path, data):
    path = str(data / "softelo_sample.csv")
    out, options = tmp_path / "out", ("--labels", "a_wins_1", "--resamples", "50")
    codes, outputs, errors = ended(start_commands("soft-elo", path, *options, out=out))
    assert codes == [0, 0], errors
    assert "Held-out ratings" in outputs[0]
    assert "Held-out ratings" not in outputs[1]
    battles = jaxeval.read_judged_battles(path, label_coding="a_wins_1")
    here = jaxeval.soft_elo(battles, n_resamples=50).models
    np.testing.assert_allclose(pd.read_csv(out / "models.csv")["judge_elo"], here["judge_elo"], rtol=0, atol=1e-6)


def test_the_folds_start_from_the_optimum_of_all_battles():
    """NumPy's fit solves the score equation, and its inverse is that of the information; one model has no battles."""
    rng = np.random.default_rng(0)
    n = np.triu(rng.poisson(8, (2, 7, 7)), 1).astype(float)
    n[:, :, 6] = 0
    first = rng.binomial(n.astype(int), 0.8)  # far from even, so that full steps overshoot
    full = held_out.full_fits(n + n.swapaxes(1, 2), first + (n - first).swapaxes(1, 2), 0.05)
    assert full.active.tolist() == [[True] * 6 + [False]] * 2
    for all_, won, theta, inverse in zip(
        full.n, first + (n - first).swapaxes(1, 2), full.theta, full.inverse, strict=True
    ):
        p = 1 / (1 + np.exp(theta - theta[:, None]))
        np.testing.assert_allclose((won - all_ * p).sum(1) - 2 * 0.05 * theta, 0, atol=1e-6)
        v = all_ * p * (1 - p)
        np.testing.assert_allclose(inverse @ (np.diag(v.sum(1) + 0.1) - v), np.eye(7), atol=1e-4)
