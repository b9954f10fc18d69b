import numpy as np
import pandas as pd
import pytest
import scipy
from numpy.testing import assert_allclose
from scored import answers, wide

from jaxeval import DataError, ItemScores, compare_scores, compare_with_baseline
from jaxeval.scores.paired_tests import mcnemar
from jaxeval.statistics.p_values import p_above, score_interval


@pytest.fixture(scope="module")
def table():
    return answers(150, [0.8, 0.7, 0.4])


def test_paired_difference_and_tests(table):
    found = compare_scores(table, "m0", "m1")
    x = wide(table)
    apart = x["m0"] - x["m1"]
    assert found.difference == pytest.approx(apart.mean())
    for end, side in ((found.lower, 1), (found.upper, -1)):
        assert naive_score((apart > 0).sum(), (apart < 0).sum(), 150, end) == pytest.approx(side * 1.959964, rel=1e-5)
    assert found.p_student == pytest.approx(scipy.stats.ttest_rel(x["m0"], x["m1"]).pvalue)
    assert (found.only_a, found.only_b) == ((apart > 0).sum(), (apart < 0).sum())
    assert found.p_mcnemar == pytest.approx(mcnemar(found.only_a, found.only_b), abs=1e-15)
    assert found.p_sign_flip == pytest.approx(found.p_mcnemar, abs=1e-15)
    assert found.status == ()


def naive_score(b, c, n, null):
    """(b - c - n null) / its error, with the share of c that has the largest likelihood under the null, on a grid."""
    low = max(0.0, -null)
    q = np.linspace(low, (1 - null) / 2, 2_000_001)[1:-1]
    likelihood = scipy.special.xlogy(b, q + null) + scipy.special.xlogy(c, q) + (n - b - c) * np.log(1 - 2 * q - null)
    q = q[likelihood.argmax()]
    return (b - c - n * null) / np.sqrt(n * (2 * q + null * (1 - null)))


def right(b, c, n):
    """Two models, of which one alone is right on ``b`` items and the other alone on ``c``."""
    a = pd.DataFrame({"item": range(n), "model": "a", "score": np.r_[np.ones(b), np.zeros(c), np.ones(n - b - c)]})
    other = pd.DataFrame({"item": range(n), "model": "b", "score": np.r_[np.zeros(b), np.ones(c), np.ones(n - b - c)]})
    return pd.concat([a, other])


def test_equal_answers_pass_a_margin():
    same = compare_scores(right(0, 0, 500), "a", "b", margin=0.02)
    assert_allclose([same.lower, same.upper], [-0.00762434, 0.00762434], rtol=1e-6)
    assert same.p_non_inferior == same.p_equivalent == pytest.approx(7.0065e-4, rel=1e-4)
    one = compare_scores(right(0, 1, 500), "a", "b", margin=0.02)
    assert one.p_non_inferior > 4.6e-4  # the exact test at a's worst
    assert one.p_non_inferior == pytest.approx(scipy.stats.norm.sf(naive_score(0, 1, 500, -0.02)), rel=1e-3)
    for n in (2, 3):
        few = compare_scores(right(0, 0, n), "a", "b", margin=0.02)
        assert few.p_non_inferior >= 0.98**n
        assert -1 < few.lower < 0 < few.upper < 1
    assert compare_scores(right(0, 9, 9), "a", "b").lower == -1


@pytest.mark.parametrize(("n", "churn"), [(100, 0.0), (200, 0.01), (500, 0.0), (500, 0.01), (500, 0.05)])
def test_a_model_worse_by_the_margin_passes_rarely(n, churn):
    """The margin is .02 or .05; all outcomes of 3,000 data sets, at three standard errors."""
    margin = 0.05 if n < 500 else 0.02
    drawn = np.random.default_rng(n).multinomial(n, [churn, churn + margin, 1 - 2 * churn - margin], 3000)
    outcomes, times = np.unique(drawn[:, :2], axis=0, return_counts=True)
    passed = np.array([p_above(b, c, n, -margin) < 0.05 for b, c in outcomes.tolist()])
    held = [score_interval(b, c, n, 0.95) for b, c in outcomes.tolist()]
    inside = np.array([low - 1e-12 <= -margin <= high + 1e-12 for low, high in held])
    assert passed @ times / 3000 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 3000)
    assert inside @ times / 3000 > 0.94 - 3 * np.sqrt(0.05 * 0.95 / 3000)


def test_clusters_hold_as_much_as_their_effective_items():
    """Ten copies of each answer, as one cluster: what one copy says, but for the factors of 50 clusters."""
    once = right(5, 2, 50)
    copies = pd.concat([once.assign(item=once["item"] + 50 * k, cluster=once["item"]) for k in range(10)])
    alone, together = compare_scores(once, "a", "b", margin=0.2), compare_scores(copies, "a", "b", margin=0.2)
    assert_allclose([together.lower, together.upper], [alone.lower, alone.upper], atol=0.01)
    assert alone.p_non_inferior < together.p_non_inferior < 2 * alone.p_non_inferior
    assert np.isnan(together.p_mcnemar)


def test_benchmarks_of_unequal_size_have_no_test_of_all_items():
    """Of a large benchmark and a small one, in which the other model is right: means of both, and p of one sign."""
    large, small = right(12, 0, 100), right(0, 3, 4).assign(item=lambda x: x["item"] + 1000)
    both = pd.concat([large.assign(benchmark="large"), small.assign(benchmark="small")])
    found = compare_scores(both, "a", "b")
    assert found.difference < 0
    assert np.isnan(found.p_mcnemar)
    assert any("benchmarks" in text for text in found.status)
    scores = ItemScores.from_pandas(both, benchmark="benchmark")
    row = compare_with_baseline(scores, "b", alternative="greater").iloc[0]
    assert row["p"] > 0.5


@pytest.mark.parametrize("design", ["benchmark", "cluster", "weight"])
@pytest.mark.parametrize("unit", [1.0, 0.5])
def test_equal_answers_have_a_test_of_a_margin_in_every_design(design, unit):
    """Right and wrong ones, and grades; no p-value below that of losing nothing on so many items by chance."""
    same = right(0, 0, 300).assign(score=lambda x: unit * x["score"])
    own = {"benchmark": same["item"] % 3, "cluster": same["item"] // 2, "weight": 1.0 + same["item"] % 2}
    found = compare_scores(same.assign(**{design: own[design]}), "a", "b", margin=0.05)
    assert 0.9999 * 0.95**300 < found.p_non_inferior < 0.05
    assert -0.05 < found.lower < 0 < found.upper < 0.05


def test_grades_that_hardly_differ_have_no_p_below_an_exact_one():
    grades = right(0, 1, 500).assign(score=lambda x: 0.5 * x["score"])
    found = compare_scores(grades, "a", "b", margin=0.02)
    assert found.standard_error < 0.002
    assert 0.98**500 <= found.p_non_inferior <= found.p_anytime_non_inferior
    few = compare_scores(right(4, 0, 200), "a", "b")
    assert few.p_student == few.p_mcnemar == 0.125


def test_huge_scores_are_refused():
    with pytest.raises(DataError, match=r"column 'score': scores must be 0 or of a size .*1e\+300 \(first in row 2:"):
        compare_scores(pd.DataFrame({"item": [0, 1, 0], "model": list("aab"), "score": [1, 0, 1e300]}), "a", "b")


def test_the_other_way_round(table):
    one, other = compare_scores(table, "m0", "m1"), compare_scores(table, "m1", "m0")
    assert (one.difference, one.p_mcnemar, one.only_a) == (-other.difference, other.p_mcnemar, other.only_b)
    greater = compare_scores(table, "m0", "m1", alternative="greater")
    less = compare_scores(table, "m1", "m0", alternative="less")
    assert greater.p_mcnemar == less.p_mcnemar
    assert greater.p_student == pytest.approx(less.p_student)


def test_margins(table):
    """Two one-sided t tests (TOST) of graded scores, and non-inferiority."""
    table = table.assign(score=table["score"] * 0.9 + table["item"] % 7 / 100)
    found = compare_scores(table, "m0", "m1", margin=0.2)
    x = wide(table)
    apart = (x["m0"] - x["m1"]).to_numpy()
    below = scipy.stats.ttest_1samp(apart, -0.2, alternative="greater").pvalue
    above = scipy.stats.ttest_1samp(apart, 0.2, alternative="less").pvalue
    assert below <= found.p_non_inferior < 2 * below + 1e-12
    assert max(below, above) <= found.p_equivalent < 2 * max(below, above)  # Hall's is the larger one
    assert np.isnan(compare_scores(table, "m0", "m1").p_equivalent)


def test_nothing_is_above_that_the_exact_test_refuses():
    """Four items of 200 for x: the score interval leaves 0 out, and McNemar's p is .125."""
    right = pd.DataFrame({"x": [1] * 200, "y": [1] * 196 + [0] * 4}).rename_axis("item").reset_index()
    found = compare_scores(right.melt("item", var_name="model", value_name="score"), "x", "y")
    assert found.lower > 0
    assert found.p_mcnemar == 0.125
    assert "x and y are not told apart" in str(found.answer.sentences[0])


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
    assert np.isnan([found.standard_error, found.p_student]).all()
    assert found.upper == pytest.approx(-found.lower)
    assert found.upper > 0
    assert any("no observed variance" in text for text in found.status)
    graded = compare_scores(twins.assign(score=twins["score"] * 0.5), "m0", "twin", margin=0.1)
    assert -0.05 < graded.lower == pytest.approx(-graded.upper)
    assert 0 < graded.p_non_inferior == graded.p_anytime_non_inferior < 1


def test_trials_are_averaged():
    frame = pd.concat([answers(40, [0.8, 0.5], seed).assign(trial=seed) for seed in range(3)])
    found = compare_scores(frame, "m0", "m1")
    means = wide(frame)
    assert found.difference == pytest.approx((means["m0"] - means["m1"]).mean())
    assert found.standard_error == pytest.approx(scipy.stats.sem(means["m0"] - means["m1"]))


def test_many_with_a_baseline(table):
    found = compare_with_baseline(table, "m2")
    assert found["model"].tolist() == ["m0", "m1"]
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
    percent = "the margin 5 is not below 1, the largest difference of such scores: 5 percentage points are 0.05"
    with pytest.raises(DataError, match=percent):
        compare_scores(table, "m0", "m1", margin=5)
    assert compare_scores(table, "m0", "m1", margin=5, bounds=(0, 10)).p_non_inferior < 0.05
    with pytest.raises(ValueError, match="alternative must be"):
        compare_scores(table, "m0", "m1", alternative="above")
    with pytest.raises(DataError, match="only model"):
        compare_with_baseline(table[table["model"] == "m0"], "m0")


def test_evouna_known_counts(data):
    """Answers of two systems to the same questions of Natural Questions: counts by pandas, p by SciPy."""
    frame = pd.read_parquet(data / "evouna_human_vs_lexical.parquet").astype({"human": float})
    frame = frame[frame["dataset"] == frame["dataset"].iloc[0]]  # one benchmark: items count alike
    models = ["chatgpt", "fid"]
    scores = ItemScores.from_pandas(frame, item="item_no", score="human", benchmark="dataset")
    found = compare_scores(scores, models[0], models[1])
    x = frame.pivot_table(index=["dataset", "item_no"], columns="model", values="human")
    apart = (x[models[0]] - x[models[1]]).dropna()
    n = int((apart != 0).sum())
    assert found.p_mcnemar == pytest.approx(scipy.stats.binomtest(int((apart > 0).sum()), n).pvalue)
