"""Items that belong together: passages, conversations."""

import numpy as np
import pandas as pd
import pytest
import scipy
from answers import SETTINGS

from jaxeval import DataError, JudgedAnswers, compare_models, judge_accuracy
from jaxeval.accuracy.influence import bounds_of_draws


def passages(n=60, size=4, seed=0, n_models=2):
    """Every item of a passage is the same answer again: ``size`` items are worth one."""
    rng = np.random.default_rng(seed)
    label = (rng.random((n, n_models)) < 0.7).astype(float)
    verdict = (rng.random(label.shape) < np.where(label == 1, 0.9, 0.2)).astype(float)
    again = [np.repeat(x, size, 0).ravel() for x in (label, verdict)]
    rows = n * size
    return pd.DataFrame(
        {
            "item": np.repeat(np.arange(rows), n_models),
            "passage": np.repeat(np.arange(rows) // size, n_models),
            "kind": "x",
            "model": np.tile([f"m{k}" for k in range(n_models)], rows),
            "human": again[0],
            "judge": again[1],
        }
    )


def read(table):
    columns = {"judgment": "judge", "label": "human", "model": "model", "item": "item"}
    return JudgedAnswers.from_pandas(table, keep=["passage", "kind"], **columns)


def parts(size, n=90):
    table = passages(n, size)
    known = table["passage"] < n // 2
    return read(table[known]), read(table[~known].drop(columns="human").assign(human=np.nan))


def lengths(table, names=("lower_untruncated", "upper_untruncated")):
    return (table[names[1]] - table[names[0]]).to_numpy()


def test_items_repeated_in_a_cluster_count_once():
    single = judge_accuracy(*parts(1), sampling="random", **SETTINGS).table
    grouped = judge_accuracy(*parts(4), sampling="random", cluster="passage", **SETTINGS).table
    apart = judge_accuracy(*parts(4), sampling="random", **SETTINGS).table
    assert grouped["estimate"].to_numpy()[single["estimator"] == "rogan_gladen"] == pytest.approx(
        single["estimate"].to_numpy()[single["estimator"] == "rogan_gladen"]
    )
    for name in ("ppi_plus_plus", "rogan_gladen", "calibration_only", "naive", "rogan_gladen_shared"):
        own = (single["estimator"] == name).to_numpy()
        # Student's t of about 44 degrees of freedom is 3 % longer; what is added for few items is less of more items.
        assert lengths(grouped)[own] == pytest.approx(lengths(single)[own], rel=0.1), name
        assert lengths(apart)[own] == pytest.approx(lengths(single)[own] / 2, rel=0.15), name
        drawn = ("boot_lower", "boot_upper")
        assert lengths(grouped, drawn)[own] == pytest.approx(lengths(single, drawn)[own], rel=0.25), name
    assert lengths(grouped).shape == lengths(single).shape


def test_differences_and_rates_allow_for_clusters():
    options = {"sampling": "random", **SETTINGS}
    single, apart = (compare_models(*parts(size), ("m0", "m1"), **options) for size in (1, 4))
    grouped = compare_models(*parts(4), ("m0", "m1"), cluster="passage", **options)
    ends = ("lower", "upper")
    for name in ("ppi_plus_plus", "rogan_gladen"):
        own = (single.table["estimator"] == name).to_numpy()
        assert lengths(grouped.table, ends)[own] == pytest.approx(lengths(single.table, ends)[own], rel=0.1), name
        assert lengths(apart.table, ends)[own] < 0.6 * lengths(single.table, ends)[own], name
    for names in (("j_lower", "j_upper"), ("q1_lower", "q1_upper")):
        one, other = (lengths(x.accuracy.rates, names) for x in (single, grouped))
        assert other == pytest.approx(one, rel=0.15)
    delta = ("delta_j_lower", "delta_j_upper")
    assert lengths(grouped.stability, delta) == pytest.approx(lengths(single.stability, delta), rel=0.15)
    p = [x.accuracy.rates["p_same_share"].to_numpy() for x in (single, grouped, apart)]
    assert p[1] == pytest.approx(p[0], abs=0.05)
    assert (p[2] < p[1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("labelled", ["items", "passages"])
def test_intervals_hold_in_clusters(labelled):
    """300 models whose answers to a passage are alike: .2 of the variance is between passages."""
    rng, n, size, m = np.random.default_rng(4), 60, 8, 300
    spread = [rng.beta(4 * x, 4 * (1 - x), (n, m)).repeat(size, 0) for x in (0.7, 0.9, 0.8)]
    label = (rng.random((n * size, m)) < spread[0]).astype(float)
    verdict = np.where(label == 1, rng.random(label.shape) < spread[1], rng.random(label.shape) > spread[2])
    known = rng.permutation(n * size) < 160 if labelled == "items" else np.arange(n * size) < 160
    table = pd.DataFrame(
        {
            "item": np.repeat(np.arange(n * size), m),
            "passage": np.repeat(np.arange(n * size) // size, m),
            "kind": "x",
            "model": np.tile(np.arange(m), n * size),
            "human": np.where(known[:, None], label, np.nan).ravel(),
            "judge": verdict.astype(float).ravel(),
        }
    )
    held = {}
    for cluster in ("passage", None):
        n_resamples = 400 if cluster and labelled == "passages" else 2
        found = judge_accuracy(
            *read(table).by_label("random"), cluster=cluster, n_resamples=n_resamples, n_halves=1
        ).table
        for name in ("ppi_plus_plus", "rogan_gladen"):
            own = found[found["estimator"] == name]
            held[cluster, name] = ((own["lower"] <= 0.7) & (own["upper"] >= 0.7)).mean()
            if n_resamples > 2:
                drawn = ((own["boot_lower"] <= 0.7) & (own["boot_upper"] >= 0.7)).mean()
                assert abs(drawn - held[cluster, name]) < 0.03, name
    error = np.sqrt(0.95 * 0.05 / m)
    for name in ("ppi_plus_plus", "rogan_gladen"):
        assert 0.95 - 4 * error < held["passage", name] < 0.985
    assert held[None, "ppi_plus_plus"] < 0.92, held


def test_resamples_of_few_clusters_are_longer_by_students_t():
    freedom, draws = np.array([np.inf, 9.0]), np.repeat(np.linspace(-0.2, 0.2, 41)[:, None], 2, axis=1)
    _, lower, upper, _ = bounds_of_draws(draws, freedom, 0.95, -1.0, 0.21)
    wider = scipy.stats.t.ppf(0.975, 9) / scipy.stats.norm.ppf(0.975) * np.sqrt(10 / 9)
    assert lower == pytest.approx([-0.19, -0.19 * wider])
    assert upper == pytest.approx([0.19, 0.21])  # no end lies beyond what there can be


def test_one_cluster_bounds_nothing_and_few_are_told():
    table = passages(40, 2)
    for what, status in ((table["passage"] < 20, "too few labels"), (table["passage"] >= 20, "too few test items")):
        one = table.assign(passage=table["passage"].mask(what, 0 if status == "too few labels" else 99))
        known = table["passage"] < 20
        calibration, test = read(one[known]), read(one[~known].assign(human=np.nan))
        found = judge_accuracy(calibration, test, sampling="random", cluster="passage", **SETTINGS)
        rows = found.table[found.table["estimator"].isin(["ppi_plus_plus", "rogan_gladen"])]
        assert set(rows["status"]) == {status}
        assert (rows[["lower", "upper"]].to_numpy() == [0, 1]).all()
        assert not rows["believe"].any()
    assert any(text.startswith("calibration: only 20 clusters") for text in found.warnings)


def test_clusters_of_one_item_change_nothing():
    options = {"sampling": "random", **SETTINGS}
    one, other = (judge_accuracy(*parts(1), cluster=cluster, **options).table for cluster in (None, "passage"))
    pd.testing.assert_frame_equal(one, other)


def test_what_is_refused():
    calibration, test = parts(2)
    with pytest.raises(ValueError, match="strata= and cluster="):
        judge_accuracy(calibration, test, strata="kind", cluster="passage")
    with pytest.raises(DataError, match="no column 'page' to group by"):
        judge_accuracy(calibration, test, cluster="page")
    table = passages(20, 2)
    crossing = table.assign(passage=table["passage"].where(table["model"] == "m0", -1))
    with pytest.raises(DataError, match=r"in several clusters of 'passage'.*leave out cluster="):
        judge_accuracy(read(crossing), test, cluster="passage")
