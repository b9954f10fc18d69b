"""Agreement by the gap of scores: regressions of resamples one by one, a known truth, and what is never reached."""

import numpy as np
import pandas as pd
import pytest
import twins
from evaluated import GAPS, GOLD, B, M, drawn_models, settings, taus
from scipy.special import expit, logit

from jaxeval import agreement_by_gap, smallest_gap
from jaxeval.evaluators import meaningful_gaps
from jaxeval.evaluators.meaningful_gaps import agreement_fits
from jaxeval.evaluators.model_scores import align_scores

DELTAS = [1.5, 3.0, 6.0, 9.0]


def scale_of(x):
    gap = np.abs(x[:, None] - x)[np.triu_indices(len(x), 1)]
    return gap[gap > 0].std()


@pytest.fixture(scope="module")
def fits():
    """Intercept and slope of evaluator y: of the data, then of the resamples."""
    aligned = align_scores(GAPS, GOLD)
    counts = drawn_models(aligned, settings())
    x = aligned.scores[1]
    scale = scale_of(x[~np.isnan(x)])
    return np.array([twins.gap_regression(x, aligned.gold, np.repeat(np.arange(M), c), scale, 0.01) for c in counts])


def test_probabilities_and_intervals_are_those_of_the_resamples_one_by_one(fits):
    found = agreement_by_gap(GAPS, GOLD, DELTAS, n_resamples=B)
    assert found.columns.tolist() == [
        "evaluator", "delta", "probability", "average_below", "n_pairs", "observed", "n_observed", "n_ordered",
        "n_models", "n_missing", "status", "average_below_lower", "average_below_upper", "observed_lower",
        "observed_upper", "lower", "upper", "failed_share", "lack_of_fit",
    ]  # fmt: skip
    y = found[found["evaluator"] == "y"]
    probability = expit(fits[:, :1] + fits[:, 1:] * DELTAS)
    np.testing.assert_allclose(y["probability"], probability[0], atol=1e-5)
    expected = np.quantile(probability[1:], [0.025, 0.975], axis=0)
    np.testing.assert_allclose(y[["lower", "upper"]].T, expected, atol=1e-4)
    below = taus(deltas=DELTAS, n_resamples=B)
    np.testing.assert_allclose(found["average_below"], (1 + below["tau"]) / 2)
    np.testing.assert_allclose(found["average_below_upper"], (1 + below["upper"]) / 2)
    np.testing.assert_array_equal(found["n_pairs"], below["n_pairs"])


def test_the_smallest_gap_of_a_probability(fits):
    found = smallest_gap(GAPS, GOLD, 0.8, n_resamples=B).set_index("evaluator").loc["y"]
    y = GAPS["y"].dropna()
    most = np.ptp(y)
    wanted = logit(0.8) - fits[:, 0]
    # Where agreement falls with the gap, it is there only if it holds up to the largest.
    always = (wanted <= 0) & (fits[:, 1] * most >= wanted)
    rises = (wanted > 0) & (fits[:, 1] > 0)
    gap = np.where(always, 0, np.where(rises, wanted / fits[:, 1], np.inf))
    gap = np.where(gap > most, np.inf, gap)
    assert found["delta"] == pytest.approx(gap[0], rel=1e-4)
    assert found["largest_gap"] == most
    assert found["reached_share"] == np.isfinite(gap[1:]).mean()
    assert found["lower"] == pytest.approx(np.quantile(gap[1:], 0.025), abs=1e-3)
    at_it = agreement_by_gap(GAPS["y"], GOLD, [found["delta"]], n_resamples=0)
    assert at_it["probability"][0] == pytest.approx(0.8)


@pytest.mark.slow
def test_a_known_truth():
    """Gold differs from scores by noise: pairs of a gap g agree with probability Phi(g / (sqrt(2) sd))."""
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 30, 100)
    gold = x + rng.normal(0, 3, 100)
    found = agreement_by_gap(x, gold, [2.0, 4.0, 8.0], n_resamples=0)
    truth = [0.681, 0.827, 0.970]
    np.testing.assert_allclose(found["probability"], truth, atol=0.04)


def test_never_at_once_and_always():
    found = smallest_gap(pd.DataFrame({"backwards": -GOLD, "same": GOLD}), GOLD, n_resamples=B)
    assert found["delta"].tolist() == [np.inf, 0.0]
    assert found["status"].tolist() == ["gold agrees on no pair", "gold agrees on every pair"]
    assert found["reached_share"].tolist() == [0.0, 1.0]
    assert found["lower"].tolist() == [np.inf, 0.0]
    rng = np.random.default_rng(6)
    board = pd.DataFrame({"noise": rng.normal(size=M), "constant": 1.0}, GOLD.index)
    found = smallest_gap(board, GOLD, 0.99, n_resamples=B)
    assert found["status"].tolist() == ["never reached", "scores are constant"]
    flat = smallest_gap(board[["noise", "noise"]].set_axis(["noise", "again"], axis=1), GOLD * 0, n_resamples=B)
    assert (flat["status"] == "gold scores are constant").all()
    assert flat["delta"].isna().all()
    assert found["delta"][0] == np.inf
    assert found.loc[1, ["delta", "lower", "upper"]].isna().all()


@pytest.mark.parametrize(("call", "message"), [
    (lambda: agreement_by_gap(GAPS, GOLD, [np.inf]), "deltas must be finite numbers above 0"),
    (lambda: agreement_by_gap(GAPS, GOLD, [1.0], ridge=0), "ridge must be finite and > 0"),
    (lambda: smallest_gap(GAPS, GOLD, 0.5), "probability must lie between 0.5 and 1"),
])  # fmt: skip
def test_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_agreement_that_falls_with_the_gap():
    x = np.arange(20.0)
    gold = np.where(x < 3, x + 100, x)
    found = smallest_gap(x, gold, 0.6, n_resamples=0).iloc[0]
    assert found["delta"] == np.inf
    assert found["status"] == "agreement falls with the gap"


def test_gaps_that_nobody_saw():
    x = np.arange(20.0)
    found = agreement_by_gap(x, np.roll(x, 3), [5.0, 19.0, 19.5], n_resamples=0)
    assert found["probability"].notna().tolist() == [True, True, False]
    assert found["status"].tolist() == ["ok", "ok", "beyond the largest gap"]


def test_observed_shares_are_those_of_pairs_of_similar_gaps():
    found = agreement_by_gap(GAPS["x"], GOLD, DELTAS, n_resamples=0)
    first, second = np.triu_indices(M, 1)
    gap = GAPS["x"].to_numpy()[first] - GAPS["x"].to_numpy()[second]
    agree = np.sign(gap) == np.sign(GOLD.to_numpy()[first] - GOLD.to_numpy()[second])
    ordered, gap = gap != 0, np.abs(gap)
    n_bins = ordered.sum() // 15
    assert n_bins == 4
    edges = [0, *np.quantile(gap[ordered], np.arange(1, n_bins) / n_bins), np.inf]
    for row in found.itertuples():
        k = np.searchsorted(edges, row.delta, side="right") - 1
        own = ordered & (gap >= edges[k]) & (gap < edges[k + 1])
        assert (row.n_observed, row.observed) == (own.sum(), pytest.approx(agree[own].mean()))
    assert "lack_of_fit" not in found  # which takes resamples


@pytest.mark.slow
def test_lack_of_fit():
    """Blocks in any order, in order inside: agreement falls at once to a half. Normal noise is nearly a line."""
    rng = np.random.default_rng(3)
    x = np.arange(100.0)
    blocks = 10 * rng.permutation(10)[(x // 10).astype(int)] + x % 10
    line = agreement_by_gap(x, x + rng.normal(0, 20, 100), [10.0, 40.0], n_resamples=60)
    assert not line["lack_of_fit"].any()
    assert ((line["observed_lower"] <= line["observed"]) & (line["observed"] <= line["observed_upper"])).all()
    fits = agreement_fits(x, blocks, n_resamples=60)
    for table in (fits.by_gap([10.0, 40.0]), fits.smallest_gap(0.8)):
        assert table["lack_of_fit"].all()
        (warning,) = (words for words in table.attrs["warnings"] if "not logistic" in words)
        assert "see the observed shares" in warning


@pytest.mark.parametrize("sign", [1, -1])
def test_a_perfect_evaluator_fits(sign):
    """And a reversed one: what the ridge leaves is no misfit."""
    gold = np.sort(np.random.default_rng(0).normal(0, 5, 20))
    table = agreement_by_gap(sign * 2 * gold, gold, [1.0, 3.0], n_resamples=100)
    assert not table["lack_of_fit"].any()
    assert not any("not logistic" in words for words in table.attrs["warnings"])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: smallest_gap(GAPS, GOLD, "x"), "probability must be a number, got 'x'"),
    (lambda: agreement_by_gap(GAPS, GOLD, [1.0], ridge="a"), "ridge must be a number, got 'a'"),
    (lambda: agreement_by_gap(GAPS, GOLD, "abc"), "deltas must be numbers, got 'abc'"),
])  # fmt: skip
def test_what_is_no_number(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_fits_are_asked_as_often_as_liked():
    fits = agreement_fits(GAPS, GOLD, n_resamples=B)
    pd.testing.assert_frame_equal(fits.by_gap(DELTAS), agreement_by_gap(GAPS, GOLD, DELTAS, n_resamples=B))
    pd.testing.assert_frame_equal(fits.smallest_gap(0.8), smallest_gap(GAPS, GOLD, 0.8, n_resamples=B))
    one = fits.by_gap(DELTAS).query("evaluator == 'y'").reset_index(drop=True)
    pd.testing.assert_frame_equal(fits.only(["y"]).by_gap(DELTAS), one)


def test_a_start_from_the_data_changes_nothing(monkeypatch):
    slow = agreement_fits(GAPS, GOLD, n_resamples=B).regressions
    monkeypatch.setattr(meaningful_gaps, "_WORTH_A_START", 0)
    for a, b in zip(agreement_fits(GAPS, GOLD, n_resamples=B).regressions, slow, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
