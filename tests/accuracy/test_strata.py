"""Judge accuracies within strata: every resample holds as many items of each as there are."""

import numpy as np
import pandas as pd
import pytest

from jaxeval import DataError, JudgedAnswers, compare_models, judge_accuracy, simulate_judged_answers
from jaxeval.accuracy.judged_sums import item_strata


@pytest.fixture(scope="module")
def table():
    """Half of the items are easy and half are hard, for every model."""
    easy, hard = (
        simulate_judged_answers(accuracy, q0=[[0.8]], q1=[[0.9]], n_items=150, seed=seed)
        for accuracy, seed in (([0.95, 0.9], 1), ([0.2, 0.1], 2))
    )
    found = pd.concat([easy.assign(task="easy"), hard.assign(task="hard", item=hard["item"] + 150)])
    return found.assign(one="x", lone=np.where(found["item"] == 0, "a", found["task"]))


def read(table, **options):
    kept = ["task", "one", "lone"]
    return JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item", keep=kept, **options)


@pytest.fixture(scope="module")
def parts(table):
    return read(table[table["item"] % 3 == 0]), read(table[table["item"] % 3 > 0])


@pytest.mark.slow
def test_intervals_leave_out_what_varies_between_strata(parts):
    plain, found = (judge_accuracy(*parts, n_resamples=400, n_halves=4, strata=strata) for strata in (None, "task"))
    same = plain.table["estimator"] != "ppi_plus_plus_half"  # an estimate of the resamples themselves
    pd.testing.assert_series_equal(found.table["estimate"][same], plain.table["estimate"][same])
    naive = plain.table["estimator"] == "naive"
    width = [(x.table["boot_upper"] - x.table["boot_lower"])[naive].mean() for x in (found, plain)]
    # The share that the judge takes for right is near 0.85 and 0.31 in the strata.
    assert width[0] / width[1] == pytest.approx(np.sqrt((0.85 * 0.15 + 0.31 * 0.69) / 2 / (0.58 * 0.42)), rel=0.15)
    assert found.settings.strata == "task"


def test_one_stratum_is_none(parts):
    plain, found = (judge_accuracy(*parts, n_resamples=50, n_halves=4, strata=strata) for strata in (None, "one"))
    pd.testing.assert_frame_equal(found.table, plain.table)
    assert found.warnings == plain.warnings


def test_lone_strata_are_counted(parts):
    found = judge_accuracy(*parts, n_resamples=50, n_halves=4, strata="lone")
    assert any(w.startswith("1 stratum of one calibration item does not vary") for w in found.warnings)


def test_comparisons_have_the_option(parts):
    plain, found = (compare_models(*parts, n_resamples=50, n_halves=4, strata=strata) for strata in (None, "task"))
    same = plain.table["estimator"] != "ppi_plus_plus_half"
    pd.testing.assert_series_equal(found.table["difference"][same], plain.table["difference"][same])
    assert found.accuracy.settings.strata == "task"


def test_errors(table, parts):
    with pytest.raises(DataError, match="no column 'tusk'"):
        judge_accuracy(*parts, n_resamples=5, strata="tusk")
    crossing = table.assign(task=np.where((table["item"] == 4) & (table["model"] == "model-2"), "hard", table["task"]))
    with pytest.raises(DataError, match="1 item lies in several strata of 'task', of 300 items"):
        item_strata(read(crossing), "task")
    with pytest.raises(DataError, match="column 'task' has 3 missing values"):
        read(table.assign(task=table["task"].where(np.arange(len(table)) > 2)))
