"""Agreement of judge and human: naive loops, coverage, and the warning in words."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from judged import read, two_orders
from scipy.special import expit

import jaxeval
from jaxeval.lab import judge_diagnostics
from jaxeval.softelo import judge_agreement
from jaxeval.statistics.clusters import wilson_share


@pytest.fixture(scope="module")
def battles():
    return read(two_orders())


def rows_of(battles):
    return zip(battles.score_difference, battles.human, battles.hard, strict=True)


def test_calibration_error_is_that_of_the_sorted_list():
    # Continuous scores: no equal predictions.
    rng = np.random.default_rng(1)
    frame = two_orders(503).assign(gap=rng.normal(0, 2, 503)).drop(columns="verdict")
    battles = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", human="human", label_coding="a_wins_1")
    listed = sorted((expit(0.4 * abs(s)), h == j) for s, h, j in rows_of(battles) if h in (0, 1) and j in (0, 1))
    n, ece, start = len(listed), 0.0, 0
    for k in range(10):
        stop = start + n // 10 + (k < n % 10)
        part = listed[start:stop]
        ece += len(part) / n * abs(np.mean([p for p, _ in part]) - np.mean([hit for _, hit in part]))
        start = stop
    table = judge_agreement.reliability(battles, 0.4)
    assert table.attrs["settings"]["ece"] == pytest.approx(ece, abs=1e-12)
    assert table["n_battles"].sum() == n


def test_calibration_does_not_depend_on_row_order_or_sides(battles):
    frame = two_orders().sample(frac=1, random_state=0)
    swapped = frame.rename(
        columns={"model_a": "model_b", "model_b": "model_a", "a1": "b2", "b2": "a1", "b1": "a2", "a2": "b1"}
    ).assign(human=1 - frame["human"], verdict=1 - frame["verdict"])
    first = judge_agreement.reliability(battles, 0.4)
    pd.testing.assert_frame_equal(first, judge_agreement.reliability(read(swapped), 0.4))
    gaps = judge_agreement.agreement_by_score_gap(battles)
    pd.testing.assert_frame_equal(gaps, judge_agreement.agreement_by_score_gap(read(swapped)))


def test_a_calibrated_judge_has_little_error_and_an_overconfident_one_much():
    rng = np.random.default_rng(2)
    n = 20_000
    gap = rng.normal(0, 2, n)
    frame = pd.DataFrame(
        {"model_a": "a", "model_b": "b", "gap": gap, "human": (rng.random(n) < expit(0.5 * gap)) * 1.0}
    )
    battles = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", label_coding="a_wins_1")
    # Ten bins of 2,000: the mean |error| of a bin is about sqrt(2 / pi) * 0.01.
    assert judge_agreement.reliability(battles, 0.5).attrs["settings"]["ece"] < 4 * 0.01
    assert judge_agreement.reliability(battles, 1.5).attrs["settings"]["ece"] > 0.1


def test_agreement_by_gap_is_the_naive_loop(battles):
    table = judge_agreement.agreement_by_score_gap(battles)
    used = [(abs(s), h == j) for s, h, j in rows_of(battles) if h in (0, 1) and j in (0, 1)]
    for k, row in enumerate(table.itertuples()):
        hits = [hit for s, hit in used if (row.lower < s or (k == 0 and s == 0)) and s <= row.upper]
        assert row.n_battles == len(hits)
        assert row.agreement == pytest.approx(np.mean(hits))
    r = np.corrcoef(*np.array(used, float).T)[0, 1]
    assert table.attrs["settings"]["r"] == pytest.approx(r)
    assert table["n_battles"].sum() == len(used)


def test_correlation_interval_covers():
    rng = np.random.default_rng(3)
    trials, hits = 1500, 0
    gap = np.abs(rng.normal(0, 2, 200_000))
    truth = np.corrcoef(gap, rng.random(len(gap)) < expit(0.3 * gap))[0, 1]
    for _ in range(trials):
        x = np.abs(rng.normal(0, 2, 300))
        _, lower, upper = judge_agreement.correlation_interval(x, rng.random(300) < expit(0.3 * x))
        hits += lower <= truth <= upper
    assert abs(hits / trials - 0.95) < 4 * np.sqrt(0.95 * 0.05 / trials) + 0.005


def test_flat_agreement_is_a_warning_in_words():
    rng = np.random.default_rng(4)
    frame = two_orders(2000).assign(gap=rng.normal(0, 2, 2000), human=rng.integers(0, 2, 2000)).drop(columns="verdict")
    flat = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", label_coding="a_wins_1")
    (warning,) = judge_agreement.agreement_by_score_gap(flat).attrs["warnings"]
    assert "soft targets may compress and reorder the board" in warning
    assert ", 95% interval " in warning
    one = frame.assign(gap=np.sign(frame["gap"]))
    hard_only = jaxeval.JudgedBattles.from_pandas(one, score_difference="gap", label_coding="a_wins_1")
    (warning,) = judge_agreement.agreement_by_score_gap(hard_only).attrs["warnings"]
    assert "cannot test" in warning
    assert judge_agreement.agreement_by_score_gap(read(two_orders(2000, noise=0.5))).attrs["warnings"] == []


def test_kappa_is_the_formula(battles):
    table = judge_agreement.agreement(battles)
    for name, labels in (("all", (0, 0.5, 1)), ("decisive", (0, 1))):
        pairs = [(h, j) for _, h, j in rows_of(battles) if h in labels and j in labels]
        n = len(pairs)
        observed = sum(h == j for h, j in pairs) / n
        expected = sum(sum(h == x for h, _ in pairs) * sum(j == x for _, j in pairs) for x in labels) / n**2
        row = table.loc[name]
        assert row["n_battles"] == n
        assert row["kappa"] == pytest.approx((observed - expected) / (1 - expected))


def test_kappa_standard_error_is_the_bootstraps():
    rng = np.random.default_rng(5)
    x = rng.choice([0, 0.5, 1], 400, p=[0.5, 0.2, 0.3])
    y = np.where(rng.random(400) < 0.6, x, rng.choice([0, 0.5, 1], 400))
    error = judge_agreement._kappa(x, y)[3]
    draws = []
    for _ in range(2000):
        rows = rng.integers(400, size=400)
        draws.append(judge_agreement._kappa(x[rows], y[rows])[2])
    assert abs(np.std(draws) / error - 1) < 4 / np.sqrt(2 * 2000) + 0.02


def test_verdicts_against_scores_are_the_naive_loop():
    battles = read(two_orders(), verdict="verdict")
    against = [(v == 1) != (s > 0) for v, s in zip(battles.verdict, battles.score_difference, strict=True)
               if v in (0, 1) and s]  # fmt: skip
    found = judge_agreement.verdict_disagreement(battles).loc["opposite"]
    assert (found["n_different"], found["n_battles"]) == (np.sum(against), len(against))
    assert found["share"] == pytest.approx(np.mean(against))
    with pytest.raises(jaxeval.DataError, match="no column of verdicts"):
        judge_agreement.verdict_disagreement(read(two_orders().drop(columns="verdict")))


def test_disagreements_of_two_orders_are_counted_each():
    frame = pd.DataFrame({
        "model_a": "a", "model_b": "b",
        "a1": [2.0, 1, 1, -1, 0, 2], "b1": 0.0, "a2": [1.0, 1, -1, -1, 1, 2], "b2": 0.0,
        "v1": [1.0, 0, 1, 0, 0.5, 1], "v2": [1.0, 1, 1, 1, 1, np.nan],
        "human": 1.0,
    })  # fmt: skip
    battles = read(frame, verdict="v1", verdict_swapped="v2")
    np.testing.assert_array_equal(battles.judge, [1, 1, 0.5, 0, 1, 1])
    np.testing.assert_array_equal(battles.verdict, [1, 0.5, 1, 0.5, 1, np.nan])
    table = judge_agreement.verdict_disagreement(battles)
    # Scores 1.5, 1, 0, -1, 0.5, 2 in both orders; the labels of verdicts are A, tie, A, tie, A, missing.
    assert table["n_different"].to_dict() == {
        "opposite": 0, "label": 3, "opposite, a first": 1, "opposite, b first": 2, "flip": 2
    }  # fmt: skip
    assert table["n_battles"].to_dict() == {
        "opposite": 2, "label": 5, "opposite, a first": 5, "opposite, b first": 5, "flip": 4
    }  # fmt: skip


@pytest.fixture(scope="module")
def clustered():
    """Prompts of twenty battles, on which people agree with the judge more or less often."""
    frame, rng = two_orders(2000, seed=3), np.random.default_rng(3)
    prompt = rng.permutation(np.repeat(np.arange(100), 20))
    side = frame["a1"] + frame["a2"] > 10
    human = side == (rng.random(2000) < expit(rng.normal(0.7, 1.2, 100))[prompt])
    verdict = side == (rng.random(2000) < expit(rng.normal(2, 2, 100))[prompt])
    frame = frame.assign(human=human * 1.0, verdict=verdict * 1.0, prompt=prompt, row=rng.permutation(2000))
    return read(frame, verdict="verdict")


TABLES = {
    "reliability": lambda battles, **options: judge_agreement.reliability(battles, 0.4, **options),
    "agreement_by_score_gap": judge_agreement.agreement_by_score_gap,
    "agreement": judge_agreement.agreement,
    "verdict_disagreement": judge_agreement.verdict_disagreement,
    "position_bias": judge_diagnostics.position_bias,
}


@pytest.mark.parametrize("name", TABLES)
def test_one_battle_a_cluster_changes_nothing(clustered, name):
    if name == "position_bias":
        pytest.skip("a battle is two judgments there")
    plain, alone = TABLES[name](clustered), TABLES[name](clustered, cluster="row")
    pd.testing.assert_frame_equal(alone, plain, check_exact=True)
    assert alone.attrs == plain.attrs


@pytest.mark.parametrize("name", TABLES)
def test_errors_are_those_of_a_bootstrap_of_clusters(clustered, name):
    """Standard errors, or half the intervals, against resamples of whole prompts."""
    rng = np.random.default_rng(8)
    rows = [np.flatnonzero(clustered.columns["prompt"] == k) for k in range(100)]

    def measured(table):
        if name == "agreement_by_score_gap":
            found = table.attrs["settings"]
            return pd.DataFrame({"value": found["r"], "lower": found["r_lower"], "upper": found["r_upper"]}, [0])
        value = {"reliability": "agreement", "agreement": "kappa"}.get(name, "share")
        return table.rename(columns={value: "value"})

    found, plain = (measured(TABLES[name](clustered, **options)) for options in ({"cluster": "prompt"}, {}))
    draws = [
        measured(TABLES[name](clustered.subset(np.concatenate([rows[k] for k in rng.integers(100, size=100)]))))[
            "value"
        ]
        for _ in range(120)
    ]
    spread = np.std(draws, axis=0, ddof=1)
    error, without = (
        t["standard_error"] if "standard_error" in t else (t["upper"] - t["lower"]) / 3.92 for t in (found, plain)
    )
    # In the bins of a resample other battles lie: their errors are compared on average.
    ratio = (error / spread).mean() if name == "reliability" else error / spread
    np.testing.assert_allclose(ratio, 1, atol=4 / np.sqrt(2 * 120) + 0.05)
    if name in ("reliability", "agreement", "verdict_disagreement"):
        assert (without / error).mean() < 0.9


def test_few_clusters_are_named(clustered):
    few = replace(clustered, columns=clustered.columns.assign(prompt=clustered.columns["prompt"] % 7))
    for name, table in TABLES.items():
        if name != "position_bias":
            assert "only 7 clusters" in table(few, cluster="prompt").attrs["warnings"][0]


def test_clusters_that_cancel_do_not_make_a_share_certain():
    share = wilson_share(np.array([True, False, True, False]), np.array([0, 0, 1, 1]))
    assert share["share"] == 0.5
    assert share["lower"] < 0.2 < 0.8 < share["upper"]
