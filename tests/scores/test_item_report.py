import numpy as np
import pandas as pd
import pytest

from jaxeval import ItemScores, item_report


@pytest.fixture(scope="module")
def values():
    """Answers of 60 models to 40 items, of which one has the wrong key, two are dead and three saturated."""
    rng = np.random.default_rng(0)
    ability, hard = rng.normal(0, 1.5, 60), rng.normal(0, 1, 40)
    x = (rng.random((40, 60)) < 1 / (1 + np.exp(hard[:, None] - ability))).astype(float)
    x[0] = 1 - x[0]
    x[1:3], x[3:6] = 0.0, 1.0
    return x


def report_of(values):
    n_items, n_models = values.shape
    return item_report(ItemScores(values[:, None], pd.RangeIndex(n_items), pd.Index(["s"]), pd.RangeIndex(n_models)))


def test_flags(values):
    report = report_of(values)
    assert report["flag"].tolist()[:6] == ["negative", "dead", "dead", "saturated", "saturated", "saturated"]
    assert (report["flag"][6:] == "").all()
    assert report.attrs["answer"] == "6 of 40 items tell models apart not at all, or the wrong way round"
    assert [text.split()[:2] for text in report.attrs["warnings"]] == [["3", "items"], ["2", "items"], ["1", "item"]]


def test_item_rest_correlation_naively(values):
    lacking = values.copy()
    lacking[10, :5] = np.nan
    report = report_of(lacking)
    for i in (0, 7, 10, 39):
        there = ~np.isnan(lacking[i])
        rest = np.nanmean(np.delete(lacking, i, 0), axis=0)
        assert report["discrimination"][i] == pytest.approx(np.corrcoef(lacking[i, there], rest[there])[0, 1])


def test_honest_items_are_seldom_flagged():
    """Items on which models do not differ: one of a board is called negative on at most 5 % of the boards."""
    rng, flagged = np.random.default_rng(0), 0
    for _ in range(200):
        flagged += (report_of((rng.random((50, 20)) < 0.5).astype(float))["flag"] == "negative").any()
    assert flagged / 200 < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)


def test_few_models_tell_nothing():
    report = report_of(np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]]))
    assert report["discrimination"].isna().all()
    assert "discrimination needs 4 models or more on an item" in report.attrs["warnings"][0]
    assert report.attrs["answer"].startswith("0 of 2 items tell models apart not at all; fewer than 4 models do not")
