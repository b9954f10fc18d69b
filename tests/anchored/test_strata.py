"""Anchored scores and screens whose prompts are drawn within strata."""

import numpy as np
import pandas as pd
import pytest

from jaxeval.anchored.pooling import pooling_curve
from jaxeval.anchored.scores import bootstrap_scores, prompt_strata
from jaxeval.anchored.screening import screen_judges
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError


@pytest.fixture(scope="module")
def frame():
    """Two judges, three runs; prompts of one task are nearly all won, those of the other nearly all lost."""
    rng = np.random.default_rng(0)
    shape = ["judge", "run", "item"]
    rows = pd.MultiIndex.from_product([["x", "y"], range(3), range(81)], names=shape).to_frame(index=False)
    task = np.where(rows["item"] == 80, "lone", np.where(rows["item"] % 2, "easy", "hard"))
    chance = np.where(rng.random(81) < 0.5, 0.97, 0.8)[rows["item"]]
    won = rng.random(len(rows)) < np.where(task == "hard", 1 - chance, chance)
    return rows.assign(task=task, anchor="r", model="m", verdict=np.where(won, "win", "loss"))


@pytest.fixture(scope="module")
def verdicts(frame):
    return AnchoredVerdicts.from_pandas(frame)


def test_intervals_leave_out_what_varies_between_strata(verdicts):
    plain, found = (bootstrap_scores(verdicts, n_resamples=500, strata=strata) for strata in (None, "task"))
    pd.testing.assert_series_equal(found["probability"], plain["probability"])
    width = [(x["boot_upper"] - x["boot_lower"]).mean() for x in (found, plain)]
    assert width[0] < 0.75 * width[1]
    assert found.attrs["warnings"] == [
        "1 stratum of one prompt does not vary in the resamples, so the intervals leave out what it contributes"
    ]


def test_prompts_resampled_by_task_have_one_stratum_each(verdicts):
    by = ["model", "judge", "anchor", "task"]
    plain, found = (bootstrap_scores(verdicts, by, n_resamples=50, strata=strata) for strata in (None, "task"))
    pd.testing.assert_frame_equal(found, plain)


def test_screens_and_curves(verdicts):
    plain, found = (screen_judges(verdicts, 0.5, n_resamples=200, strata=strata) for strata in (None, "task"))
    assert (found.table["average"] == plain.table["average"]).all()
    assert (found.table["average_boot_lower"] != plain.table["average_boot_lower"]).any()
    assert any("stratum of one prompt" in warning for warning in found.warnings)
    same = screen_judges(verdicts, 0.5, n_resamples=200, strata="model")  # the one model is one stratum
    pd.testing.assert_frame_equal(same.table, plain.table)
    curves = [pooling_curve(verdicts, "m", screen=plain, strata=strata) for strata in (None, "task")]
    assert curves[1]["empirical"].iloc[0] < curves[0]["empirical"].iloc[0]


def test_errors(frame, verdicts):
    with pytest.raises(ValueError, match=r"strata must be one of 'model'.*got 'tusk'"):
        screen_judges(verdicts, strata="tusk")
    with pytest.raises(DataError, match=r"81 prompts lie in several strata of 'judge', of 81 prompts"):
        bootstrap_scores(verdicts, strata="judge")
    without = AnchoredVerdicts.from_pandas(frame.drop(columns="task"))
    with pytest.raises(DataError, match=r"no column of that role: name it with task= .*--task"):
        bootstrap_scores(without, strata="task")
    assert prompt_strata(without, None) is None
