"""ICC(3,1) and ICC(3,k): published values, an analysis of variance cell by cell, and real repeated runs."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from jaxeval import icc3
from jaxeval.anchored.reliability import judge_kappas, judge_panel, reliability_factor
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts

SHROUT_FLEISS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])


def twin(table, level=0.95):
    """Mean squares by loops, intervals by McGraw and Wong's formulas."""
    n, k = table.shape
    grand = table.mean()
    rows = sum(k * (table[i].mean() - grand) ** 2 for i in range(n)) / (n - 1)
    error = 0.0
    for i in range(n):
        for r in range(k):
            error += (table[i, r] - table[i].mean() - table[:, r].mean() + grand) ** 2
    error /= (n - 1) * (k - 1)
    ratio, df = rows / error, (n - 1, (n - 1) * (k - 1))
    low = ratio / stats.f.ppf((1 + level) / 2, *df)
    high = ratio * stats.f.ppf((1 + level) / 2, *df[::-1])
    return [*((x - 1) / (x + k - 1) for x in (ratio, low, high)), *(1 - 1 / x for x in (ratio, low, high))]


def numbers(found):
    return [
        found.single,
        found.single_lower,
        found.single_upper,
        found.average,
        found.average_lower,
        found.average_upper,
    ]


def test_shrout_and_fleiss():
    found = icc3(SHROUT_FLEISS)
    assert found.single == pytest.approx(0.7148407, abs=5e-8)
    assert found.average == pytest.approx(0.9093155, abs=5e-8)
    assert (found.single_lower, found.single_upper) == pytest.approx((0.34, 0.95), abs=0.005)
    assert (found.average_lower, found.average_upper) == pytest.approx((0.68, 0.99), abs=0.005)


@pytest.mark.parametrize("shape", [(5, 2), (40, 3), (12, 8)])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_against_the_analysis_of_variance(shape, level):
    rng = np.random.default_rng(3)
    table = rng.normal(size=(shape[0], 1)) + 0.7 * rng.normal(size=shape) + rng.normal(size=shape[1])
    assert numbers(icc3(table, level)) == pytest.approx(twin(table, level), rel=1e-9)


def test_batches_are_their_tables():
    rng = np.random.default_rng(4)
    tables = rng.normal(size=(2, 3, 20, 1)) + rng.normal(size=(2, 3, 20, 4))
    found = icc3(tables)
    for index in np.ndindex(2, 3):
        assert [x[index] for x in numbers(found)] == pytest.approx(numbers(icc3(tables[index])))


def test_what_must_not_matter():
    rng = np.random.default_rng(5)
    table = rng.normal(size=(30, 1)) + rng.normal(size=(30, 4))
    plain = numbers(icc3(table))
    changed = 3 * table[rng.permutation(30)][:, ::-1] + 1e6 + np.array([0, 5, -2, 1])
    assert numbers(icc3(changed)) == pytest.approx(plain, rel=1e-6)
    assert numbers(icc3(pd.DataFrame(table))) == plain


def test_spearman_and_brown():
    found = icc3(SHROUT_FLEISS)
    assert found.single == pytest.approx(found.average / (4 - 3 * found.average))


class TestMissing:
    def test_it_is_an_error_unless_chosen(self):
        table = SHROUT_FLEISS.astype(float)
        table[1, 2] = np.nan
        with pytest.raises(ValueError, match="1 item lacks 1 score"):
            icc3(table)
        found = icc3(table, missing="complete")
        assert (found.n, found.n_incomplete) == (5, 1)
        assert numbers(found) == pytest.approx(twin(np.delete(table, 1, axis=0)))

    def test_judges_lack_different_items(self):
        rng = np.random.default_rng(6)
        tables = rng.normal(size=(2, 10, 1)) + rng.normal(size=(2, 10, 3))
        tables[0, 4, 0] = tables[1, [2, 7], 1] = np.nan
        found = icc3(tables, missing="complete")
        np.testing.assert_array_equal(found.n, [9, 8])
        assert found.single[1] == pytest.approx(twin(np.delete(tables[1], [2, 7], axis=0))[0])


class TestDegenerate:
    def test_runs_that_never_differ(self):
        found = icc3(np.repeat([[1.0], [0.0], [0.1]], 3, axis=1) + np.array([0.0, 0.1, 0.2]))
        assert (found.single, found.single_upper, found.average, found.average_upper) == (1.0, 1.0, 1.0, 1.0)
        assert found.single_lower < 0.5  # of three items
        assert found.status == "runs never differ"

    def test_items_that_do_not_vary(self):
        found = icc3([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
        assert found.status == "items do not vary"
        assert np.isnan(numbers(found)).all()

    @pytest.mark.parametrize("value", [0.1, 1 / 3, 1e9 + 0.1, 1e-9, *(np.arange(9) / 9)])
    def test_constants_that_are_not_exact(self, value):
        for n in (7, 10, 30, 80, 101, 500):
            for k in (2, 3, 5, 8):
                found = icc3(np.full((n, k), value))
                assert found.status == "items do not vary"
                assert np.isnan(numbers(found)).all()
                offsets = icc3(np.full((n, k), value) + 0.1 * np.arange(k))
                assert offsets.status == "items do not vary"

    def test_means_that_are_alike_but_for_rounding(self):
        table = np.tile([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2], [0.2, 0.3, 0.1]], (20, 1))
        assert icc3(table).status == "items do not vary"
        same = np.random.default_rng(0).random((40, 1)) * np.ones(3) + np.array([0.1, 0.7, 1 / 3])
        assert icc3(same + 1e6).status == "runs never differ"
        table[0] += 1e-9  # a difference, however small
        assert icc3(table).status == "ok"

    def test_too_few_items(self):
        found = icc3([[1.0, 2.0], [np.nan, 1.0]], missing="complete")
        assert found.status == "fewer than two complete items"
        assert np.isnan(found.average)

    def test_no_items(self):
        assert icc3(np.zeros((0, 3))).status == "fewer than two complete items"
        assert icc3(np.full((4, 3), np.nan), missing="complete").status == "fewer than two complete items"

    @pytest.mark.parametrize(
        ("table", "message"),
        [([[1.0], [2.0]], "at least two runs"), ([[1.0, np.inf]], "infinite"), ([["a", "b"]], "must be numeric")],
    )
    def test_no_table(self, table, message):
        with pytest.raises(ValueError, match=message):
            icc3(table)


def test_intervals_cover():
    """Of the reliability of runs with normal effects."""
    rng = np.random.default_rng(7)
    tables = rng.normal(size=(4000, 25, 1)) + rng.normal(size=(4000, 25, 4))
    found = icc3(tables)
    covered = np.mean((found.single_lower <= 0.5) & (found.single_upper >= 0.5))
    assert covered == pytest.approx(0.95, abs=5 * np.sqrt(0.95 * 0.05 / 4000))


@pytest.mark.parametrize("shape", [0.02, 0.5])
def test_intervals_of_verdicts_cover(shape):
    """Those of the F distribution miss in .79 and .13: runs of few items never differ."""
    rng = np.random.default_rng(9)
    right = rng.beta(shape, shape, size=(300, 12, 1))
    found = icc3(rng.random((300, 12, 3)) < right)
    true, known = 1 / (1 + 2 * shape), ~np.isnan(found.single)
    covered = ((found.single_lower <= true) & (found.single_upper >= true))[known]
    assert set(found.interval[known]) == {"weighted items"}
    assert covered.mean() >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300)


@pytest.mark.parametrize(("collection", "judge", "single", "average", "n"), [
    ("base_both_k8", "gpt-5.4", 0.963919, 0.995343, 6914),
    ("base_both_k8", "gpt-5.4-mini", 0.930897, 0.990806, 6910),
    ("base_nano_k8", "gpt-5.4-nano", 0.796611, 0.969072, 6837),
])  # fmt: skip
def test_real_runs(data, collection, judge, single, average, n):
    runs = pd.read_parquet(data / "rb2_judge_k8_runs.parquet")
    runs = runs[(runs["collection"] == collection) & (runs["judge"] == judge)]
    found = icc3(runs[[f"s{r}" for r in range(1, 9)]], missing="complete")
    assert (found.single, found.average, found.n) == (
        pytest.approx(single, abs=5e-7),
        pytest.approx(average, abs=5e-7),
        n,
    )


@pytest.mark.parametrize(("n", "k", "noise"), [(5, 2, 0.3), (40, 4, 1.0), (200, 8, 3.0)])
def test_pingouin_agrees(n, k, noise):
    import pingouin

    rng = np.random.default_rng(n)
    table = rng.normal(size=(n, 1)) + rng.normal(size=(1, k)) + noise * rng.normal(size=(n, k))
    long = pd.DataFrame(table).melt(ignore_index=False, var_name="run").rename_axis("item").reset_index()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, about pandas
        found = pingouin.intraclass_corr(long, targets="item", raters="run", ratings="value")
    single, average = found.iloc[2], found.iloc[5]  # consistency, of one run and of the mean of all
    ours = icc3(table)
    assert [ours.single, ours.average] == pytest.approx([single["ICC"], average["ICC"]], abs=1e-12)
    ends = next(column for column in found if column.startswith("CI95"))
    # printed to two decimals
    assert [ours.single_lower, ours.single_upper] == pytest.approx(single[ends], abs=0.00501)
    assert [ours.average_lower, ours.average_upper] == pytest.approx(average[ends], abs=0.00501)


@pytest.fixture(scope="module")
def frame():
    return simulate_anchored_verdicts((0.8, 0.0), 60, 4, 4, run_sd=(0.2, 0.2, 0.3, 2.5), seed=2)


def cohen(x, y):
    observed = np.mean(x == y)
    expected = sum(np.mean(x == c) * np.mean(y == c) for c in ("win", "tie", "loss"))
    return (observed - expected) / (1 - expected)


class TestKappa:
    def test_pairs_one_by_one(self, frame):
        some = frame.sample(frac=0.8, random_state=3)
        found = judge_kappas(AnchoredVerdicts.from_pandas(some))
        wide = some.pivot_table("verdict", ["model", "item", "run"], "judge", aggfunc="first")
        for a, b in combinations(wide.columns, 2):
            both = wide[[a, b]].dropna()
            assert found.loc[a, b] == pytest.approx(cohen(both[a], both[b]))
            assert found.loc[b, a] == found.loc[a, b]
        np.testing.assert_allclose(np.diag(found), 1)

    def test_one_verdict_only_has_none(self):
        table = pd.DataFrame({"judge": ["x", "y"] * 2, "item": [1, 1, 2, 2], "verdict": "win"})
        assert judge_kappas(AnchoredVerdicts.from_pandas(table)).isna().all(axis=None)

    def test_it_needs_verdicts(self):
        table = pd.DataFrame({"judge": ["x", "y"], "item": [1, 1], "verdict": [0.3, 1.0]})
        with pytest.raises(DataError, match="Cohen's kappa needs verdicts of win, tie and loss"):
            judge_kappas(AnchoredVerdicts.from_pandas(table))

    def test_the_factor_is_the_root_of_the_mean(self):
        kappas = pd.DataFrame([[1, 0.5, 0.7], [0.5, 1, np.nan], [0.7, np.nan, 1]])
        assert reliability_factor(kappas) == pytest.approx(np.sqrt(0.6))
        with pytest.raises(
            ValueError, match=r"the mean kappa of 1 pair of judges is -0\.2, and a .* needs one above 0"
        ):
            reliability_factor(pd.DataFrame([[1, -0.2], [-0.2, 1]]))
        with pytest.raises(ValueError, match="the mean kappa of 1 pair of judges is 0, and a reliability factor"):
            reliability_factor(pd.DataFrame([[1, 0], [0, 1]]))
        with pytest.raises(ValueError, match="the mean kappa of 0 pairs of judges is nan"):
            reliability_factor(pd.DataFrame([[1.0]]))

    def test_runs_are_numbered_within_a_judge(self, frame):
        """Names of runs that judges do not share, and a run that one judge lacks."""
        few = frame[(frame["judge"] != "judge-2") | (frame["run"] < 2)]
        own = few.assign(run=few["judge"] + "/" + few["run"].astype(str))
        named, plain = (AnchoredVerdicts.from_pandas(table) for table in (own, few))
        pd.testing.assert_frame_equal(judge_kappas(named), judge_kappas(plain))
        panel = judge_panel(named)
        assert panel.outcome.shape == (4, 120, 4)
        assert panel.n_runs.tolist() == [4, 2, 4, 4]
        np.testing.assert_array_equal(panel.outcome, judge_panel(plain).outcome)
        assert np.isnan(panel.outcome[1, :, 2:]).all()
