"""The study of references within strata: its draws are those of the bootstrap."""

import numpy as np
import pandas as pd
import pytest

from jaxeval import Battles, DataError, reference_study, simulate_votes


@pytest.fixture(scope="module")
def table():
    votes = simulate_votes(1500, 8, seed=2)
    rng = np.random.default_rng(0)
    task = rng.permutation(np.repeat(["code", "law", "one"], [1000, 499, 1]))
    return votes.assign(task=task, all="x", prompt=np.char.add(task, rng.integers(0, 90, 1500).astype(str)))


def study(table, **options):
    return reference_study(Battles.from_pandas(table), budgets=[20], n_repeats=2, n_resamples=30, n_tiers=2, **options)


@pytest.fixture(scope="module")
def plain(table):
    return study(table)


@pytest.mark.slow
def test_one_stratum_is_the_plain_study(table, plain):
    one = study(table, strata="all")
    np.testing.assert_array_equal(one.tau_draws, plain.tau_draws)
    assert one.settings.strata == "all"


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [None, "prompt"])
def test_strata(table, plain, cluster):
    found = study(table, strata="task", cluster=cluster)
    of_none = plain if cluster is None else study(table, cluster=cluster)
    assert (found.tau_draws != of_none.tau_draws).any()
    pd.testing.assert_frame_equal(found.by_reference[["tau"]], plain.by_reference[["tau"]])
    unit = "battle" if cluster is None else "cluster"
    assert f"1 stratum of one {unit} does not vary" in " ".join(found.warnings)


@pytest.mark.slow
def test_a_board_of_strata_that_never_vary_has_the_same_tau_in_every_resample(table, plain):
    found = study(table.assign(task=np.arange(len(table))), strata="task")
    assert np.nanmax(np.ptp(found.tau_draws, axis=0)) == 0 < np.nanmax(np.ptp(plain.tau_draws, axis=0))
    pd.testing.assert_frame_equal(found.by_reference[["tau"]], plain.by_reference[["tau"]])
    assert "1,500 strata of one battle do not vary" in " ".join(found.warnings)


def test_errors(table):
    with pytest.raises(DataError, match="clusters lie in several strata of 'task'"):
        study(table.assign(prompt=np.arange(1500) // 3), strata="task", cluster="prompt")
    with pytest.raises(DataError, match="column 'task' has 3 missing values"):
        study(table.assign(task=table["task"].where(table.index > 2)), strata="task")
