"""Differences between models: paired, with one calibration or two, and the bias that a shared one has."""

import answers
import numpy as np
import pandas as pd
import pytest
import twins
from answers import CALIBRATION, JUDGES, MODELS, SETTINGS, TEST, read
from compilations import compilations

from jaxeval import DataError
from jaxeval.accuracy.estimates import ESTIMATORS, estimate_draws
from jaxeval.accuracy.judge_accuracy import judge_accuracy
from jaxeval.accuracy.model_comparison import checked_pairs, compare, compare_models
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.lab.simulate.judged import simulate_judged_answers

KEY = ["model_a", "model_b", "judge", "estimator"]
NUMBERS = ["difference", "lower", "upper", "median", "boot_lower", "boot_upper"]
PAIRS = [("a", "b"), ("c", "a")]


@pytest.fixture(scope="module")
def accuracy():
    return judge_accuracy(read(CALIBRATION), read(TEST), **SETTINGS)


@pytest.fixture(scope="module")
def comparison(accuracy):
    return compare(accuracy, PAIRS)


@pytest.fixture(scope="module")
def table(comparison):
    return comparison.table.set_index(KEY)


def adjusted(model, judge, labelled):
    q0, q1, _, _ = twins.judge_rates(*labelled)
    g = answers.judged_rows(CALIBRATION, TEST, model, judge)[2]
    return np.clip(twins.misclassification_adjusted(np.mean(g), q0, q1), 0, 1) if q0 + q1 > 1 else np.nan


@pytest.mark.parametrize("judge", JUDGES)
def test_differences_are_those_of_the_rows(table, judge):
    for a, b in PAIRS:
        one, other = (answers.accuracies(CALIBRATION, TEST, k, judge, judge != "score") for k in (a, b))
        for name in one:
            bound = (0, 1) if name == "rogan_gladen" else (-np.inf, np.inf)
            expected = np.clip(one[name], *bound) - np.clip(other[name], *bound)
            row = table.loc[(a, b, judge, name)]
            if (name, judge) == ("naive", "score"):
                expected = np.nan  # scores beyond 1 are no shares
                assert row["status"] == "scores are no shares"
            else:
                assert (row["status"] == "J <= 0") == np.isnan(expected)
            assert row["difference"] == pytest.approx(expected, nan_ok=True)
        if judge != "score":
            labels = answers.judged_rows(CALIBRATION, TEST, b, judge)[:2]
            expected = adjusted(a, judge, labels) - adjusted(b, judge, labels)
            row = table.loc[(a, b, judge, "rogan_gladen_shared")]
            assert row["difference"] == pytest.approx(expected)
            assert row["labels"] == len(labels[0])


def test_labels_and_truth(table):
    for a, b in PAIRS:
        every, judged = (
            sum(len(used(CALIBRATION, TEST, k, "good")[0]) for k in (a, b))
            for used in (answers.rows, answers.judged_rows)
        )
        labels = table.loc[(a, b, "good"), "labels"]
        assert labels[["naive", "rogan_gladen", "ppi_plus_plus"]].tolist() == [0, judged, every]
        assert labels["ppi_plus_plus_half"] == every / 2
        one, other = (TEST[TEST["model"] == k]["human"].mean() for k in (a, b))
        assert table.loc[(a, b, "good"), "truth"].to_numpy() == pytest.approx(one - other)


def test_a_pool_or_a_model_may_be_shared(accuracy):
    pooled = compare(accuracy, PAIRS, labels_of_b=False)
    assert (pooled.stability["shared_labels"] == "pooled").all()
    found = pooled.table.set_index(KEY)
    for shared, labelled in (
        ("pooled", answers.pool(CALIBRATION, "good")),
        ("c", answers.judged_rows(CALIBRATION, TEST, "c", "good")[:2]),
    ):
        if shared == "c":
            third = compare_models(read(CALIBRATION), read(TEST), PAIRS, shared="c", **SETTINGS)
            found = third.table.set_index(KEY)
            assert (third.stability["shared_labels"] == "c").all()
        for a, b in PAIRS:
            expected = adjusted(a, "good", labelled) - adjusted(b, "good", labelled)
            assert found.loc[(a, b, "good", "rogan_gladen_shared"), "difference"] == pytest.approx(expected)


def test_resamples_are_differences_of_the_same_items(accuracy, table):
    draws = estimate_draws(accuracy.slices[""], accuracy.binary)
    for a, b in PAIRS:
        for judge in JUDGES[:2]:
            place = [MODELS.index(k) for k in (a, b)], JUDGES.index(judge)
            for name in ESTIMATORS:
                one, other = (draws[name][:, k, place[1]] for k in place[0])
                row, drawn = table.loc[(a, b, judge, name)], one - other
                if name == "rogan_gladen_shared" or row["status"] not in ("ok", "clipped"):
                    continue
                failed = np.isnan(drawn)
                assert row["failed_share"] == failed.mean()
                ends = [twins.quantile(np.where(failed, at, drawn), q) for at, q in ((-1.0, 0.025), (1.0, 0.975))]
                assert row[["boot_lower", "boot_upper"]].tolist() == pytest.approx(ends)
                assert row["median"] == pytest.approx(twins.quantile(drawn, 0.5))


def test_failed_resamples_enter_both_ends(table):
    row = table.loc[("a", "b", "poor", "rogan_gladen")]
    assert row["failed_share"] > 0.05
    assert (row["boot_lower"], row["boot_upper"]) == (-1, 1)


def test_intervals_are_paired(accuracy):
    """Of complete data, where the closed form of the pairs is plain: as influence does, here the ends."""
    calibration, test = answers.simulate(60, 1), answers.simulate(100, 2, first=60)
    found = compare_models(read(calibration), read(test), ("a", "b"), level=0.9, **SETTINGS).table.set_index(KEY)
    one, other = (answers.rows(calibration, test, k, "good") for k in "ab")
    gap = np.subtract(one[2], other[2])
    half = twins.norm.ppf(0.95) * np.sqrt(np.var(gap) / 100)
    row = found.loc[("a", "b", "good", "naive")]
    assert row["difference"] == pytest.approx(gap.mean())
    # A little wider, and centred with an item of each verdict more, as of few items.
    assert (row["lower"] + row["upper"]) / 2 == pytest.approx(gap.mean() * 100 / 102)
    assert half - 1e-12 < (row["upper"] - row["lower"]) / 2 < 1.05 * half
    # The bootstrap is paired too: independent items would spread wider than the variance of the differences.
    drawn = np.array([row["boot_lower"], row["boot_upper"]])
    assert np.ptp(drawn) == pytest.approx(2 * half, rel=5 * 0.1)


def test_two_identical_models_never_differ():
    """Their answers to every item are the same, so that a paired difference is 0 in every resample."""

    def twin(frame):
        copies = frame[frame["model"] == "a"].assign(model="b")
        return pd.concat([frame[frame["model"] != "b"], copies])

    found = compare_models(read(twin(CALIBRATION)), read(twin(TEST)), ("a", "b"), **SETTINGS)
    there = found.table[found.table["status"].isin(["ok", "clipped"]) & (found.table["failed_share"] == 0)]
    assert set(there["estimator"]) == set(ESTIMATORS)
    closed = there["estimator"] != "ppi_plus_plus_half"
    np.testing.assert_allclose(there.loc[closed, ["difference", "lower", "upper"]], 0, atol=1e-12)
    np.testing.assert_allclose(there[["median", "boot_lower", "boot_upper"]], 0, atol=1e-12)
    good = found.stability.set_index("judge").loc["good"]
    assert (good["delta_j"], good["delta_q0_lower"], good["delta_q1_upper"], good["shared_bias"]) == (0, 0, 0, 0)


def delta_j(a, b, judge):
    """Ends of the difference of J: rates with one success and failure more, items answered by both together."""
    centre, variance, parts = 0.0, 0.0, []
    for sign, model in ((1, a), (-1, b)):
        known = CALIBRATION[(CALIBRATION["model"] == model)].dropna(subset=["human", judge])
        y, f = known["human"].to_numpy(), known[judge].to_numpy()
        q0, q1, m0, m1 = twins.judge_rates(y, f)
        parts.append(dict(zip(known["item"], (1 - y) * (1 - f - q0) / m0 + y * (f - q1) / m1, strict=True)))
        for q, m in ((q0, m0), (q1, m1)):
            more = (m * q + 1) / (m + 2)
            centre, variance = centre + sign * more, variance + more * (1 - more) / (m + 2)
    together = sum(parts[0][item] * parts[1][item] for item in parts[0].keys() & parts[1].keys())
    half = twins.norm.ppf(0.975) * np.sqrt(variance - 2 * together)
    return [centre - half, centre + half]


def test_stability_is_the_difference_of_the_rates(accuracy, comparison):
    found = comparison.stability.set_index(["model_a", "model_b", "judge"])
    own = accuracy.slices[""].judged.draws.own
    q0 = (1 - (own.judgment - own.product) / (own.n - own.label))[:, 0]
    q1 = (own.product / own.label)[:, 0]
    for a, b in PAIRS:
        for judge in JUDGES[:2]:
            one, other = (twins.judge_rates(*answers.judged_rows(CALIBRATION, TEST, k, judge)[:2]) for k in (a, b))
            row = found.loc[(a, b, judge)]
            gaps = one[0] - other[0], one[1] - other[1]
            assert row[["delta_q0", "delta_q1", "delta_j"]].tolist() == pytest.approx([*gaps, sum(gaps)])
            drawn = [(q0 + q1)[:, MODELS.index(k), JUDGES.index(judge)] for k in (a, b)]
            assert row["delta_j_boot_lower"] == pytest.approx(twins.quantile(drawn[0] - drawn[1], 0.025))
            assert row[["delta_j_lower", "delta_j_upper"]].tolist() == pytest.approx(delta_j(a, b, judge))
            drawn = [q1[:, MODELS.index(k), JUDGES.index(judge)] for k in (a, b)]
            assert row["delta_q1_upper"] == pytest.approx(twins.quantile(drawn[0] - drawn[1], 0.975))
            assert row["shared_labels"] == b
        assert found.loc[(a, b, "score")].drop("shared_labels").isna().all()


def test_rates_of_few_labels_may_differ_by_all_that_they_can():
    """Six items: many resamples have labels of one class only, in which a rate is not known."""
    found = compare_models(read(answers.simulate(6, 1)), read(TEST), ("a", "b"), **SETTINGS).stability.set_index(
        "judge"
    )
    ends = found.loc["good", ["delta_j_boot_lower", "delta_j_boot_upper", "delta_q0_lower", "delta_q0_upper"]]
    assert ends.tolist() == [-2, 2, -1, 1]


def test_predicted_bias_is_by_how_much_the_shared_calibration_errs(table, comparison):
    """Appendix C, where nothing is clipped: shared minus model-specific, and B, whose labels they are, has none."""
    found = comparison.stability.set_index(["model_a", "model_b", "judge"])["shared_bias"]
    for a, b in PAIRS:
        rates = [twins.judge_rates(*answers.judged_rows(CALIBRATION, TEST, k, "good")[:2]) for k in (a, b)]
        theta = adjusted(a, "good", answers.judged_rows(CALIBRATION, TEST, a, "good")[:2])
        delta_j = sum(rates[0][:2]) - sum(rates[1][:2])
        expected = (theta * delta_j - (rates[0][0] - rates[1][0])) / (sum(rates[1][:2]) - 1)
        assert found[(a, b, "good")] == pytest.approx(expected)
        statuses = table.loc[(a, b, "good"), "status"]
        if (statuses == "ok").all():
            gap = table.loc[(a, b, "good"), "difference"]
            assert gap["rogan_gladen_shared"] - gap["rogan_gladen"] == pytest.approx(expected)


def test_bias_of_a_pool_counts_for_both_models(accuracy):
    pooled = compare(accuracy, PAIRS, labels_of_b=False)
    found = pooled.stability.set_index(["model_a", "model_b", "judge"])["shared_bias"]
    labelled = answers.pool(CALIBRATION, "good")
    q0, q1, _, _ = twins.judge_rates(*labelled)
    bias = {}
    for model in MODELS:
        own = twins.judge_rates(*answers.judged_rows(CALIBRATION, TEST, model, "good")[:2])
        theta = adjusted(model, "good", answers.judged_rows(CALIBRATION, TEST, model, "good")[:2])
        bias[model] = (theta * (own[0] + own[1] - q0 - q1) - (own[0] - q0)) / (q0 + q1 - 1)
    for a, b in PAIRS:
        assert found[(a, b, "good")] == pytest.approx(bias[a] - bias[b])


def test_turning_a_pair_turns_the_signs(accuracy):
    """Save where the labels of B are shared, which are then those of the other."""
    one, other = (compare(accuracy, [pair], labels_of_b=False) for pair in (("a", "b"), ("b", "a")))
    one, other = (x.table.drop(columns=["model_a", "model_b"]) for x in (one, other))
    np.testing.assert_allclose(other["difference"], -one["difference"])
    np.testing.assert_allclose(other["lower"], -one["upper"])
    np.testing.assert_allclose(other["boot_lower"], -one["boot_upper"])
    assert other["failed_share"].equals(one["failed_share"])


def test_blocks_of_pairs_change_nothing(accuracy, monkeypatch):
    every = [(a, b) for a in MODELS for b in MODELS if a != b]
    whole = compare(accuracy, every)
    monkeypatch.setattr("jaxeval.accuracy.difference_tables._PAIRS_AT_A_TIME", 2)
    parts = compare(accuracy, every)
    pd.testing.assert_frame_equal(parts.table, whole.table)
    pd.testing.assert_frame_equal(parts.stability, whole.stability)
    for pair in every:
        alone = compare(accuracy, [pair]).table
        rows = whole.table[(whole.table["model_a"] == pair[0]) & (whole.table["model_b"] == pair[1])]
        pd.testing.assert_frame_equal(rows.reset_index(drop=True), alone)


def test_slices_and_all_pairs(accuracy):
    found = compare_models(read(CALIBRATION), read(TEST), by="topic", **SETTINGS)
    assert found.pairs == [("a", "b"), ("a", "c"), ("b", "c")]
    assert found.table["slice"].unique().tolist() == ["all", "art", "law"]
    assert len(found.stability) == 3 * 3 * 3
    law = found.table[found.table["slice"] == "law"].set_index(KEY)
    calibration, test = (frame[frame["topic"] == "law"] for frame in (CALIBRATION, TEST))
    one, other = (answers.accuracies(calibration, test, k, "good", True) for k in "ab")
    for name in ("naive", "ppi_plus_plus", "eif"):
        assert law.loc[("a", "b", "good", name), "difference"] == pytest.approx(one[name] - other[name])
    assert found.warnings == found.accuracy.warnings


def test_a_calibration_without_models():
    found = compare(answers.without_models(), PAIRS).table.set_index(KEY)
    labelled = answers.pool(CALIBRATION, "good")
    for a, b in PAIRS:
        row = found.loc[(a, b, "good", "rogan_gladen_shared")]
        assert row["difference"] == pytest.approx(adjusted(a, "good", labelled) - adjusted(b, "good", labelled))
        row = found.loc[(a, b, "good", "rogan_gladen")]
        assert row["status"] == "no calibration items"
        assert row[NUMBERS].isna().all()


def test_pairs():
    test = read(TEST)
    assert checked_pairs(test, ("a", "c")) == [("a", "c")]
    assert checked_pairs(test, ["b", "c"]) == [("b", "c")]
    assert checked_pairs(test, [["a", "b"], ("c", "b")]) == [("a", "b"), ("c", "b")]
    with pytest.raises(DataError, match="no model 'z' in the test; its models are 'a', 'b', 'c'"):
        checked_pairs(test, ("a", "z"))
    without = JudgedAnswers.from_pandas(pd.DataFrame({"judgment": [0.0, 1.0]}), judgment="judgment")
    with pytest.raises(
        DataError, match=r"its models are 'all answers': name the column of models \(model=, --model\)$"
    ):
        checked_pairs(without, ("a", "z"))
    with pytest.raises(ValueError, match="a pair needs two models, got 'a' twice"):
        checked_pairs(test, [("a", "a")])
    with pytest.raises(ValueError, match=r"pairs must be \(A, B\) or a list of such pairs, got 'abc'"):
        checked_pairs(test, ["abc"])
    with pytest.raises(DataError, match="a comparison needs two models"):
        checked_pairs(read(TEST[TEST["model"] == "a"]), None)


@pytest.mark.slow
def test_a_judge_that_reverses_the_order(data):
    """EVOUNA, NQ: lexical match prefers fid to chatgpt, humans the other way; every correction sees it."""
    frame = pd.read_parquet(data / "evouna_human_vs_lexical.parquet")
    frame = frame[(frame["dataset"] == "NQ") & ~frame["improper"] & frame["model"].isin(["chatgpt", "fid", "gpt4"])]
    frame = frame.assign(perfect=frame["human"], constant=1)
    judges = ["lexical_match", "perfect", "constant"]
    judged = JudgedAnswers.from_pandas(frame, judgment=judges, model="model", item="item_no")
    np.testing.assert_allclose(judged.label.mean(0)[:2], [0.7298, 0.6894], atol=5e-5)
    np.testing.assert_allclose(judged.judgment[:, :2, 0].mean(0), [0.5785, 0.5914], atol=5e-5)
    found = compare_models(*judged.split(0.5, seed=1), ("chatgpt", "fid"), **SETTINGS)
    table = found.table.set_index(["judge", "estimator"])
    lexical = table.loc["lexical_match"]
    assert lexical.loc["naive", "difference"] < 0
    assert (lexical.loc[["difference", "ppi_plus_plus", "eif", "rogan_gladen"], "difference"] > 0).all()
    own = lexical.loc["ppi_plus_plus"]
    assert own["lower"] < own["truth"] < own["upper"]
    # The judge misses more of chatgpt's right answers, which the calibration of fid does not know.
    stability = found.stability.set_index("judge").loc["lexical_match"]
    assert stability["delta_q1_upper"] < 0
    shared = lexical.loc["rogan_gladen_shared"]
    assert shared["upper"] < shared["truth"]
    assert stability["shared_bias"] == pytest.approx(shared["difference"] - lexical.loc["rogan_gladen", "difference"])
    perfect = table.loc["perfect"].loc[["naive", "difference", "rogan_gladen"], ["difference", "truth"]]
    np.testing.assert_allclose(perfect["difference"], perfect["truth"])
    assert table.loc[("constant", "rogan_gladen"), "status"] == "J <= 0"


@pytest.mark.slow
def test_other_numbers_of_models_judges_items_and_resamples_compile_nothing():
    def run(n_models, n_judges, n_items, n_resamples):
        rates = np.full((1, n_judges), 0.85)
        table = simulate_judged_answers(np.linspace(0.8, 0.6, n_models), q0=rates, q1=rates, n_items=n_items)
        names = [f"judge-{k + 1}" for k in range(n_judges)]
        read = JudgedAnswers.from_pandas(table, judgment=names, model="model", item="item")
        compare_models(*read.split(1 / 3), n_resamples=n_resamples, n_halves=4, progress=False)

    run(2, 1, 1200, 300)
    with compilations() as count:
        for sizes in ((3, 1, 1300, 300), (2, 2, 1400, 250), (2, 1, 1250, 450)):
            run(*sizes)
    assert count.programs == []
