"""The calibration error: its floor by simulation, and the error without noise, by coverage."""

import numpy as np
import pytest
from scipy.special import expit

from jaxeval.statistics.rater_agreement import calibration_error, reliability_bins


def in_bins(*columns):
    return [np.array_split(column, 10) for column in columns]


def simulate(n, truth, trials, seed=0, times=1):
    """Errors of a judge that claims s(gap / 2) where ``truth`` (gap) holds, and the true ones; battles repeat."""
    rng = np.random.default_rng(seed)
    found, exact = [], []
    for _ in range(trials):
        gap = np.sort(np.repeat(np.abs(rng.normal(0, 2, n)), times))
        p, chance = expit(gap / 2), truth(gap)
        agree = np.repeat(rng.random(n) < chance[::times], times) * 1.0
        clusters = None if times == 1 else np.array_split(np.repeat(np.arange(n), times), 10)
        found.append(calibration_error(*in_bins(p, agree), clusters))
        exact.append(np.mean([abs(a.mean() - b.mean()) for a, b in zip(*in_bins(p, chance), strict=True)]))
    return {name: np.array([one[name] for one in found]) for name in found[0]}, np.array(exact)


@pytest.mark.parametrize("times", [1, 5])
@pytest.mark.parametrize("n", [490, pytest.param(4000, marks=pytest.mark.slow)])
def test_the_floor_is_what_a_judge_without_error_shows(n, times):
    found, exact = simulate(n, lambda gap: expit(gap / 2), 200, times=times)
    assert exact.max() == 0
    error = found["ece"].std() / np.sqrt(200)
    # The mean |x| of a binomial is that of a normal variable to a percent or so.
    assert abs(found["ece"].mean() - found["ece_floor"].mean()) < 4 * error + 0.02 * found["ece_floor"].mean()
    assert (found["ece_lower"] == 0).mean() > 0.95
    assert found["ece_debiased"].mean() < 0.4 * found["ece"].mean()


TRUTHS = {
    "none": lambda gap: expit(gap / 2),
    "overconfident": lambda gap: expit(gap / 4),
    "one bin": lambda gap: np.where(gap > 3.3, 0.5, expit(gap / 2)),
    "a wave": lambda gap: np.clip(expit(gap / 2) + 0.08 * np.sin(3 * gap), 0, 1),
}


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize(("n", "trials"), [(300, 150), pytest.param(2000, 300, marks=pytest.mark.slow)])
def test_the_interval_holds_however_the_error_is_spread(n, trials, truth):
    found, exact = simulate(n, TRUTHS[truth], trials)
    holds = (found["ece_lower"] <= exact) & (exact <= found["ece_upper"])
    assert holds.mean() > 0.95 - 4 * np.sqrt(0.05 * 0.95 / trials)
    assert (found["ece_lower"] <= found["ece_debiased"]).all()
    assert (found["ece_debiased"] <= np.maximum(found["ece_upper"], 1e-12)).mean() > 0.95
    assert np.abs(found["ece_debiased"] - exact).mean() < np.abs(found["ece"] - exact).mean() + 0.002


def test_nothing_to_measure():
    empty = calibration_error([np.zeros(0)] * 3, [np.zeros(0)] * 3)
    assert all(np.isnan(value) for value in empty.values())
    alike = calibration_error([np.full(4, 0.5)], [np.array([1.0, 0, 1, 0])], [np.zeros(4, int)])
    assert alike["ece"] == 0
    assert np.isnan(alike["ece_upper"])  # one cluster does not show how much it varies
    sure = calibration_error([np.ones(4)], [np.ones(4)])
    assert {name: value for name, value in sure.items() if value} == {"ece_upper": sure["ece_upper"]}
    assert sure["ece_upper"] > 0.3  # four battles show no more


@pytest.mark.parametrize(("stated", "n", "size"), [(0.99, 5, 1), (0.5, 100, 1), (0.9, 400, 10)])
def test_the_interval_holds_for_few_stated_values_and_clusters(stated, n, size):
    """One value for all battles; of bins that share it, or clusters, the upper ends missed .53, .12 and .25."""
    rng, missed, unit = np.random.default_rng(0), [], np.arange(n) // size
    for _ in range(150):
        drawn = np.where(rng.random(n) < 0.7 * (size > 1), rng.random(n)[unit], rng.random(n))
        agree = (drawn < stated - 0.1) * 1.0
        table, found = reliability_bins(np.full(n, stated), agree, unit, max(n // 20, 1))
        assert len(table) == 1
        missed.append(not found["ece_lower"] <= 0.1 <= found["ece_upper"])
    assert np.mean(missed) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(missed))


def test_bins_part_different_predictions_alone():
    stated = np.repeat([0.6, 0.9, 0.7], [5, 4, 3])
    table, _ = reliability_bins(stated, np.ones(12), np.arange(12), 4)
    assert table[["predicted", "n_battles"]].to_numpy() == pytest.approx(np.array([[0.6, 5], [0.7, 3], [0.9, 4]]))
