import numpy as np
import pandas as pd
import pytest

from jaxeval.audits.rank_evidence import winner, zoom_radius
from jaxeval.statistics.draws import Draws


def naive_radius(estimate, noise, error, level):
    """One quantity after the other; the first radius that no step makes smaller."""
    first, m = int(np.argmax(estimate)), len(estimate)

    def quantile(values):
        return np.sort(values)[int(np.ceil(level * (len(values) - 1)))]

    radius = quantile([max(abs(row[i]) / error[i] for i in range(m)) for row in noise])
    while True:
        reach = estimate[first] - radius * error[first]
        others = max(error[i] for i in range(m) if estimate[i] + radius * error[i] >= reach)
        distance = []
        for i in range(m):
            near = (reach - estimate[i] - radius * error[i]) / (error[i] + others)
            far = (reach - estimate[i]) / (2 * error[i] + others)
            distance.append(0 if i == first else max(near if near <= radius else far, 0))
        beyond = [max([abs(x) / s for x, s, d in zip(row, error, distance, strict=True) if abs(x) / s > d], default=0)
                  for row in noise]  # fmt: skip
        found = quantile(beyond)
        if found >= radius * (1 - 1e-9):
            return radius
        radius = found


@pytest.mark.parametrize("gap", [0.0, 0.5, 2.0, 20.0])
def test_zoom_is_that_of_its_naive_twin(gap):
    rng = np.random.default_rng(3)
    error = np.array([1.0, 0.5, 2.0, 1.0, 1.0, 3.0])
    noise = rng.normal(size=(400, 6)) * error + rng.normal(size=(400, 1))
    estimate = -gap * np.arange(6.0)
    spread = noise.std(0)
    assert zoom_radius(estimate, noise, spread, 0.9) == pytest.approx(naive_radius(estimate, noise, spread, 0.9))


def test_a_winner_far_ahead_has_its_own_interval_and_equals_have_the_joint_one():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(20_000, 8))
    alone = zoom_radius(np.array([100.0] + [0.0] * 7), noise, np.ones(8), 0.95)
    assert alone == pytest.approx(np.quantile(np.abs(noise[:, 0]), 0.95), abs=1e-3)
    equal = zoom_radius(np.zeros(8), noise, np.ones(8), 0.95)
    assert equal == pytest.approx(np.quantile(np.abs(noise).max(1), 0.95), abs=1e-3)


@pytest.mark.parametrize(("gap", "least_naive"), [(0.0, 0.0), (1.0, 0.5)])
def test_zoom_holds_the_truth_of_who_came_first(gap, least_naive):
    rng = np.random.default_rng(1)
    error = np.where(np.arange(12) % 4 == 1, 2.0, 1.0)
    truth = -gap * np.arange(12.0)
    noise, held, naive = rng.normal(size=(1000, 12)) * error, [], []
    for _ in range(300):
        found = truth + rng.normal(size=12) * error
        first = found.argmax()
        off = abs(found[first] - truth[first]) / error[first]
        held.append(off <= zoom_radius(found, noise, error, 0.95))
        naive.append(off <= 1.96)
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300)
    assert least_naive <= np.mean(naive) < 0.95


def test_the_winner_of_draws_is_told_with_its_bias():
    rng = np.random.default_rng(0)
    estimate = np.array([5.0, 5.1, np.inf, 4.9])
    drawn = np.column_stack(
        [estimate[:2] + rng.normal(size=(4000, 2)), np.full(4000, np.inf), 4.9 + rng.normal(size=4000)]
    )
    found = winner(Draws(pd.Index(list("abcd")), estimate, drawn))
    assert found.name == "b"
    assert found.error == pytest.approx(1, abs=0.05)
    assert found.bias == pytest.approx(3 / (2 * np.sqrt(np.pi)), abs=0.05)  # the largest of three normal numbers
    assert found.lower < found.naive_lower < found.estimate < found.naive_upper < found.upper


def test_quantities_that_are_often_infinite_do_not_win():
    rng = np.random.default_rng(0)
    drawn = np.array([9.0, 5.0]) + rng.normal(size=(1000, 2))
    drawn[::20, 0] = np.inf
    assert winner(Draws(pd.Index(["thin", "firm"]), np.array([9.0, 5.0]), drawn)).name == "firm"


def test_a_model_that_the_gauge_holds_has_no_interval():
    drawn = np.column_stack([np.full(100, 10.0), np.random.default_rng(0).normal(size=100)])
    assert winner(Draws(pd.Index(["held", "other"]), np.array([10.0, 0.0]), drawn)) is None
