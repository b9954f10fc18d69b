"""Soft-Elo within strata: every resample of a model's battles holds as many of each stratum as the model has."""

from dataclasses import replace

import jax
import numpy as np
import pytest

import jaxeval
from jaxeval import soft_elo
from jaxeval.kernels import resample
from jaxeval.softelo.own_battles import OwnBattles, _problem, resampled_strengths


@pytest.fixture(scope="module")
def judged():
    battles = jaxeval.simulate_judged_battles(600, 6, seed=1)
    rng = np.random.default_rng(0)
    stratum = rng.choice(["a", "b", "c"], battles.n_battles, p=[0.7, 0.28, 0.02])
    stratum[0] = "one"
    prompt = np.char.add(stratum, rng.integers(0, 40, battles.n_battles).astype(str))
    return replace(battles, columns=battles.columns.assign(task=stratum, all="x", prompt=prompt))


def own(stratum, cluster=None):
    rng = np.random.default_rng(2)
    n = len(stratum)
    return OwnBattles("x", np.sort(rng.integers(5, size=n)), rng.random((2, n)), rng.normal(0, 0.7, (2, 5)),
                      np.zeros(2), cluster, stratum)  # fmt: skip


@pytest.mark.parametrize("clustered", [False, True])
def test_every_resample_holds_as_many_of_each_stratum(clustered):
    stratum = np.random.default_rng(3).permutation(np.repeat([0, 1, 2], [1, 30, 90]))
    cluster = None
    if clustered:  # three battles, of one stratum
        _, cluster = np.unique(stratum * 1000 + np.arange(121) % 40, return_inverse=True)
    model = own(stratum, cluster)
    problem = _problem(model, 512, 16, by_unit=True, stratified=True)
    with jax.enable_x64(True):
        draws = jax.jit(resample.singles, static_argnums=1)(
            problem.units, 512, np.uint64(0), problem.stream, np.arange(300)
        )
    units = model.strata_of_units()
    for s in range(3):
        own_units = np.sort(units) == s
        np.testing.assert_array_equal(np.asarray(draws)[:, : len(units)][:, own_units].sum(1), (units == s).sum())
    # Battles are sorted by opponents, and know their units, which are sorted by strata.
    numbers = np.argsort(units, kind="stable")[problem.unit[:121]]
    np.testing.assert_array_equal(numbers, np.arange(121) if cluster is None else cluster)
    np.testing.assert_array_equal(problem.target[:121], model.target.T)


@pytest.mark.slow
def test_models_without_strata_draw_the_same_beside_others():
    plain, split = own(np.zeros(50, int)), own(np.arange(80) % 3)._replace(name="y")
    alone = resampled_strengths([plain._replace(stratum=None)], 20, 0, 0.1)
    both = resampled_strengths([plain._replace(stratum=None), split], 20, 0, 0.1)
    np.testing.assert_allclose(both[0], alone[0], atol=1e-9)
    assert np.abs(both[1] - resampled_strengths([split._replace(stratum=None)], 20, 0, 0.1)[0]).max() > 1e-3


def test_one_stratum_is_the_plain_bootstrap(judged):
    plain, one = (soft_elo(judged, n_resamples=50, strata=strata) for strata in (None, "all"))
    np.testing.assert_array_equal(one.draws, plain.draws)
    assert one.settings.strata == "all"


def test_strata_and_what_is_said_of_them(judged):
    found = soft_elo(judged, n_resamples=50, strata="task")
    (sentence,) = [w for w in found.warnings if "one battle" in w]
    assert "not vary in the resamples" in sentence
    shuffled = judged.subset(np.random.default_rng(5).permutation(judged.n_battles))
    np.testing.assert_allclose(soft_elo(shuffled, n_resamples=50, strata="task").draws, found.draws, atol=1e-6)
    clustered = soft_elo(judged, n_resamples=50, strata="task", cluster="prompt")
    assert any("one cluster" in w for w in clustered.warnings)


@pytest.mark.parametrize(("options", "differ"), [({"strata": "task"}, "strata"), ({"cluster": "prompt"}, "cluster")])
def test_what_is_drawn_decides_the_run_of_a_checkpoint(judged, options, differ, tmp_path):
    soft_elo(judged, n_resamples=5, checkpoint=tmp_path, **options)
    with pytest.raises(jaxeval.DataError, match=f"another run \\({differ} '{options[differ]}', not none"):
        soft_elo(judged, n_resamples=5, checkpoint=tmp_path)


def test_errors(judged):
    crossing = replace(judged, columns=judged.columns.assign(prompt=np.arange(judged.n_battles) // 20))
    with pytest.raises(jaxeval.DataError, match="clusters lie in several strata of 'task', of 30 clusters"):
        soft_elo(crossing, n_resamples=5, strata="task", cluster="prompt")
    gaps = judged.columns["task"].where(np.arange(judged.n_battles) > 2)
    with pytest.raises(jaxeval.DataError, match="column 'task' has 3 missing values"):
        soft_elo(replace(judged, columns=judged.columns.assign(task=gaps)), n_resamples=5, strata="task")
    with pytest.raises(jaxeval.DataError, match="'tusk'"):
        soft_elo(judged, n_resamples=5, strata="tusk")
