import numpy as np
import pandas as pd
import pytest
import scipy
from numpy.testing import assert_allclose
from scored import answers, wide

from jaxeval import DataError, ItemScores, compare_scores, compare_with_baseline
from jaxeval.scores.paired_tests import mcnemar


@pytest.fixture(scope="module")
def table():
    return answers(150, [0.8, 0.7, 0.4])


def test_paired_difference_and_tests(table):
    found = compare_scores(table, "m0", "m1")
    x = wide(table)
    apart = x["m0"] - x["m1"]
    assert found.difference == pytest.approx(apart.mean())
    assert_allclose([found.lower, found.upper], scipy.stats.t.interval(0.95, 149, apart.mean(), scipy.stats.sem(apart)))
    assert found.p_student == pytest.approx(scipy.stats.ttest_rel(x["m0"], x["m1"]).pvalue)
    assert (found.only_a, found.only_b) == ((apart > 0).sum(), (apart < 0).sum())
    assert found.p_mcnemar == pytest.approx(mcnemar(found.only_a, found.only_b), abs=1e-15)
    assert found.p_sign_flip == pytest.approx(found.p_mcnemar, abs=1e-15)
    assert found.status == ()


def test_the_other_way_round(table):
    one, other = compare_scores(table, "m0", "m1"), compare_scores(table, "m1", "m0")
    assert (one.difference, one.p_mcnemar, one.only_a) == (-other.difference, other.p_mcnemar, other.only_b)
    greater = compare_scores(table, "m0", "m1", alternative="greater")
    less = compare_scores(table, "m1", "m0", alternative="less")
    assert greater.p_mcnemar == less.p_mcnemar
    assert greater.p_student == pytest.approx(less.p_student)


def test_margins(table):
    """Two one-sided t tests (TOST) and non-inferiority."""
    found = compare_scores(table, "m0", "m1", margin=0.2)
    x = wide(table)
    apart = (x["m0"] - x["m1"]).to_numpy()
    below = scipy.stats.ttest_1samp(apart, -0.2, alternative="greater").pvalue
    above = scipy.stats.ttest_1samp(apart, 0.2, alternative="less").pvalue
    assert found.p_non_inferior == pytest.approx(below)
    assert found.p_equivalent == pytest.approx(max(below, above))
    assert np.isnan(compare_scores(table, "m0", "m1").p_equivalent)


def test_graded_scores_have_no_mcnemar(table):
    rng = np.random.default_rng(0)
    graded = table.assign(score=table["score"] + rng.random(len(table)))
    found = compare_scores(graded, "m0", "m2")
    assert np.isnan(found.p_mcnemar)
    assert "no McNemar test: it is for right and wrong answers" in found.status[0]
    assert found.n_flips > 0
    assert (
        found == compare_scores(graded, "m0", "m2")
        or found.p_sign_flip == compare_scores(graded, "m0", "m2").p_sign_flip
    )


def test_clusters_are_the_units(table):
    found = compare_scores(table.assign(cluster=table["item"] // 10), "m0", "m2")
    assert np.isnan(found.p_mcnemar)
    x = wide(table)
    sums = (x["m0"] - x["m2"]).groupby(x.index // 10).sum() / 150
    assert found.standard_error == pytest.approx(np.sqrt(15 / 14 * ((sums - sums.mean()) ** 2).sum()))
    assert found.settings["unit"] == "cluster"


def test_items_that_one_lacks_are_left_out_and_counted(table):
    some = table[~((table["model"] == "m0") & (table["item"] < 20))]
    found = compare_scores(some, "m0", "m1")
    assert (found.n_items, found.n_left_out) == (130, 20)
    assert "20 items that one of the two lacks: left out" in found.status
    whole = compare_scores(table[table["item"] >= 20], "m0", "m1")
    assert found.difference == pytest.approx(whole.difference)


def test_models_that_agree_everywhere(table):
    twins = pd.concat([table, table[table["model"] == "m0"].assign(model="twin")])
    found = compare_scores(twins, "m0", "twin")
    assert found.difference == 0
    assert (found.p_mcnemar, found.p_sign_flip) == (1.0, 1.0)
    assert np.isnan([found.lower, found.upper, found.standard_error, found.p_student]).all()
    assert any("no observed variance" in text for text in found.status)


def test_trials_are_averaged():
    frame = pd.concat([answers(40, [0.8, 0.5], seed).assign(trial=seed) for seed in range(3)])
    found = compare_scores(frame, "m0", "m1")
    means = wide(frame)
    assert found.difference == pytest.approx((means["m0"] - means["m1"]).mean())
    assert found.standard_error == pytest.approx(scipy.stats.sem(means["m0"] - means["m1"]))


def test_many_with_a_baseline(table):
    found = compare_with_baseline(table, "m2")
    assert found["model_name"].tolist() == ["m0", "m1"]
    p = [compare_scores(table, name, "m2").p_mcnemar for name in ("m0", "m1")]
    assert_allclose(found["p"], p)
    assert_allclose(found["p_holm"], [max(2 * min(p), 0) if x == min(p) else max(2 * min(p), max(p)) for x in p])


def test_what_is_refused(table):
    with pytest.raises(DataError, match=r"no model is called 'm9'"):
        compare_scores(table, "m0", "m9")
    with pytest.raises(DataError, match="'m0' is compared with itself"):
        compare_scores(table, "m0", "m0")
    apart = table[((table["model"] == "m0") & (table["item"] < 50)) | ((table["model"] == "m1") & (table["item"] > 48))]
    with pytest.raises(DataError, match=r"share 1 item, of 150: a comparison needs two or more"):
        compare_scores(apart, "m0", "m1")
    with pytest.raises(ValueError, match=r"margin must be a finite number above 0, got -0\.1"):
        compare_scores(table, "m0", "m1", margin=-0.1)
    with pytest.raises(ValueError, match="alternative must be"):
        compare_scores(table, "m0", "m1", alternative="above")
    with pytest.raises(DataError, match="only model"):
        compare_with_baseline(table[table["model"] == "m0"], "m0")


def test_evouna_known_counts(data):
    """Answers of two systems to the same questions of Natural Questions: counts by pandas, p by SciPy."""
    frame = pd.read_parquet(data / "evouna_human_vs_lexical.parquet").astype({"human": float})
    models = ["chatgpt", "fid"]
    scores = ItemScores.from_pandas(frame, item="item_no", score="human", benchmark="dataset")
    found = compare_scores(scores, models[0], models[1])
    x = frame.pivot_table(index=["dataset", "item_no"], columns="model", values="human")
    apart = (x[models[0]] - x[models[1]]).dropna()
    n = int((apart != 0).sum())
    assert found.p_mcnemar == pytest.approx(scipy.stats.binomtest(int((apart > 0).sum()), n).pvalue)
