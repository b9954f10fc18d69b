"""What `bootstrap` can do, the other estimators can: checkpoints and memory limits, of all that the driver runs."""

import jax
import numpy as np
import pandas as pd
import pytest
from chunks import chunk_sizes

import jaxeval
from jaxeval import DataError, MemoryLimitError
from jaxeval.anchored.scores import bootstrap_scores as _bootstrap_scores
from jaxeval.data.simulate.verdicts import simulate_anchored_verdicts
from jaxeval.execution import lanes
from jaxeval.execution.checkpoints import Checkpoint
from jaxeval.execution.runs import digest_of

B = 300


def soft_elo(n_resamples=B, **options):
    return jaxeval.soft_elo(JUDGED, n_resamples=n_resamples, **options).draws


def answers(rows):
    return jaxeval.JudgedAnswers.from_pandas(
        ANSWERS[rows], judgment=["judge-1", "judge-2"], label="human", model="model", item="item"
    )


def judge_accuracy(n_resamples=B, **options):
    labelled = ANSWERS["item"] % 3 == 0
    found = jaxeval.judge_accuracy(
        answers(labelled), answers(~labelled), n_resamples=n_resamples, n_halves=4, **options
    )
    return found.slices[""].judged.draws.test.judgment


def compare_models(n_resamples=B, **options):
    labelled = ANSWERS["item"] % 3 == 0
    pair = ("model-1", "model-2")
    found = jaxeval.compare_models(
        answers(labelled), answers(~labelled), pair, n_resamples=n_resamples, n_halves=4, **options
    )
    return found.accuracy.slices[""].judged.half_draws.judgment


def screen_judges(n_resamples=B, **options):
    found = jaxeval.screen_judges(VERDICTS, n_resamples=n_resamples, **options).table
    return found.filter(like="boot").to_numpy() if n_resamples == B else found["n"].to_numpy()


def bootstrap_scores(n_resamples=B, **options):
    return _bootstrap_scores(VERDICTS, n_resamples=n_resamples, **options).filter(like="boot").to_numpy()


def kendall_tau_delta(n_resamples=B, **options):
    return jaxeval.kendall_tau_delta(SCORES, GOLD, [0.5, 2.0], n_resamples=n_resamples, **options).select_dtypes(float)


def reference_study(n_resamples=30, **options):
    options = {"budgets": (5,), "n_repeats": 2, "chunk_size": 2} | options
    return jaxeval.reference_study(BATTLES, n_resamples=n_resamples, **options).tau_draws


JUDGED = jaxeval.simulate_judged_battles(600, 5, seed=1)
ANSWERS = jaxeval.simulate_judged_answers(n_items=120, seed=2)
VERDICTS = jaxeval.AnchoredVerdicts.from_pandas(simulate_anchored_verdicts(n_items=30, n_judges=3, seed=3))
GOLD = pd.Series(np.random.default_rng(4).normal(size=20), [f"m{k}" for k in range(20)])
SCORES = pd.DataFrame({f"e{k}": GOLD + np.random.default_rng(k).normal(size=20) for k in (5, 6)})
BATTLES = jaxeval.simulate_battles(500, 6, seed=7)

SLOW = [pytest.param(estimator, marks=pytest.mark.slow) for estimator in (soft_elo, compare_models, reference_study)]
ESTIMATORS = [judge_accuracy, screen_judges, bootstrap_scores, kendall_tau_delta, *SLOW]


@pytest.fixture(scope="module", params=ESTIMATORS, ids=lambda estimator: estimator.__name__)
def estimator(request):
    return request.param


@pytest.fixture(scope="module")
def whole(estimator):
    return estimator()


def test_chunks_change_no_number(estimator, whole):
    np.testing.assert_allclose(estimator(chunk_size=8), whole, rtol=1e-9, atol=1e-9)


class TestCheckpoints:
    def test_after_ctrl_c_the_rest_is_run(self, estimator, whole, tmp_path, monkeypatch):
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
                estimator(checkpoint=tmp_path / "run")
        (part,) = (tmp_path / "run").glob("*.npz")
        with np.load(part) as kept:
            assert 0 < len(kept["number"]) <= 8 * jax.local_device_count()
        np.testing.assert_allclose(estimator(checkpoint=tmp_path / "run"), whole, rtol=1e-9, atol=1e-9)
        assert len(list((tmp_path / "run").glob("*.npz"))) > 1

    def test_a_finished_run_is_read_back_and_not_mixed_with_another(self, estimator, whole, tmp_path, monkeypatch):
        estimator(checkpoint=tmp_path / "run")
        with pytest.raises(DataError, match=r"holds resamples of another run \(seed 0, not 1\)"):
            estimator(checkpoint=tmp_path / "run", seed=1)
        monkeypatch.setattr(Checkpoint, "save", None)
        np.testing.assert_allclose(estimator(checkpoint=tmp_path / "run"), whole, rtol=1e-12, atol=1e-12)

    def test_a_path_that_is_none(self, estimator):
        with pytest.raises(TypeError, match="checkpoint must be the path of a folder, got 5"):
            estimator(checkpoint=5)


class TestMemoryLimits:
    def test_too_little_says_what_would_do(self, estimator, whole):
        with pytest.raises(MemoryLimitError, match="would do") as caught:
            estimator(memory_limit=1000)
        least = int(str(caught.value).rsplit(";", 1)[1].split()[0].replace(",", ""))
        with pytest.raises(MemoryLimitError):
            estimator(memory_limit=least - 1)

    def test_smaller_chunks_change_nothing(self, estimator, whole, monkeypatch):
        sizes = chunk_sizes(monkeypatch)
        monkeypatch.setattr(lanes, "lanes_within", lambda *_: 8)  # as the chunks above: no more programs
        np.testing.assert_allclose(estimator(memory_limit=10**9), whole, rtol=1e-9, atol=1e-9)
        assert 8 in sizes


def test_digests_know_arrays_names_and_order():
    one = [np.arange(1000), pd.Index(["a", "b"]), {"ridge": 0.1, "by": None}, BATTLES.cells]
    assert digest_of(one) == digest_of(one[:])
    for k, other in enumerate([np.arange(1000)[::-1], pd.Index(["b", "a"]), {"ridge": 0.2, "by": None}, JUDGED.hard]):
        assert digest_of([*one[:k], other, *one[k + 1 :]]) != digest_of(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 23], [12, 3]),
        ((1.0, 12.0), (1.01, 2.0)),
        ([[1], 2], [1, [2]]),
        ([[]], [0]),
        ([np.arange(3), np.arange(3, 5)], [np.arange(4), np.arange(4, 5)]),
        (np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2)),
        (np.zeros(2), np.zeros(2, np.int64)),
    ],
)
def test_digests_know_where_each_part_ends(one, other):
    assert digest_of(one) != digest_of(other)
