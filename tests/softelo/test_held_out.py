"""Folds as lanes: what their results must not depend on, and the two ways to their anchors."""

from dataclasses import replace

import numpy as np
import pytest

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
