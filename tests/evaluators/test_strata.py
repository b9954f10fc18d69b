"""Measures of evaluators whose items are drawn within strata."""

import numpy as np
import pandas as pd
import pytest

from jaxeval import DataError, ItemScores, kendall_tau, rank_agreement, stratified_rank_change
from jaxeval.evaluators.model_scores import align_scores
from jaxeval.evaluators.resamples import EvaluatorResamples, drawn_counts

MODELS = [f"m{k}" for k in range(8)]
GOLD = pd.Series(np.arange(8.0), MODELS)
TASKS = np.repeat(["code", "law", "one", "sums"], [40, 12, 1, 7])


def table():
    rng = np.random.default_rng(0)
    task = rng.permutation(TASKS)
    rows = pd.MultiIndex.from_product([MODELS, range(len(task))], names=["model", "item"]).to_frame(index=False)
    skill = GOLD[rows["model"]].to_numpy() / 4
    return rows.assign(
        task=task[rows["item"]], one="x", score=skill + 3 * (task[rows["item"]] == "law") + rng.normal(0, 2, len(rows))
    )


@pytest.fixture(scope="module")
def items():
    return ItemScores.from_pandas(table())


@pytest.mark.parametrize("resample", ["items", "both"])
def test_every_resample_holds_as_many_items_of_each_stratum(items, resample):
    scores = align_scores(items, GOLD)
    settings = EvaluatorResamples(n_resamples=300, resample=resample, strata="task")
    models, counts = drawn_counts(scores, settings)
    stratum = settings.item_strata(scores)
    n = len(TASKS)
    found = np.stack([counts[:, :n][:, stratum == s].sum(1) for s in range(4)], 1)
    np.testing.assert_array_equal(found, np.tile([40, 12, 1, 7], (301, 1)))
    assert not counts[:, n:].any()
    assert (counts[1:, :n].mean(0) < 3).all()
    plain, _ = drawn_counts(scores, EvaluatorResamples(n_resamples=300, resample=resample))
    np.testing.assert_array_equal(models, plain)


@pytest.mark.parametrize("measure", [kendall_tau, rank_agreement, stratified_rank_change])
def test_measures(items, measure):
    options = {"resample": "items", "n_resamples": 60}
    found, plain = (measure(items, GOLD, strata=strata, **options) for strata in ("task", None))
    one = measure(items, GOLD, strata="one", **options)
    pd.testing.assert_frame_equal(one, plain)
    ends = ["lower", "upper"]
    assert (found[ends].to_numpy() != plain[ends].to_numpy()).any()
    pd.testing.assert_frame_equal(
        found.drop(columns=[*ends, "failed_share"]), plain.drop(columns=[*ends, "failed_share"])
    )
    assert found.attrs["settings"]["strata"] == "task"
    assert "1 stratum of one item does not vary" in " ".join(found.attrs["warnings"])


def test_errors(items):
    with pytest.raises(ValueError, match="strata= names strata of items, and resample='models' draws no items"):
        kendall_tau(items, GOLD, strata="task")
    with pytest.raises(DataError, match=r"no column 'tusk' to group by; the further columns are: .*'task', 'one'"):
        kendall_tau(items, GOLD, resample="items", strata="tusk")
    crossing = table()
    crossing.loc[3, "task"] = "law" if crossing.loc[3, "task"] != "law" else "code"
    with pytest.raises(DataError, match="1 item lies in several strata of 'task', of 60 items"):
        kendall_tau(ItemScores.from_pandas(crossing, keep=["task"]), GOLD, resample="items", strata="task")
    with pytest.raises(DataError, match="column 'task' has 2 missing values"):
        ItemScores.from_pandas(table().assign(task=lambda t: t["task"].where(t.index > 1)), keep=["task"])
