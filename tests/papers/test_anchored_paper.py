"""Printed numbers of the paper on reference-anchored Elo: columns that follow from other columns."""

import numpy as np
import pytest

from jaxeval import anchored_elo
from jaxeval.ratings.gauge import ELO_PER_LOGIT


def with_error(p, se):
    """The score whose Beta distribution has this mean and this standard error."""
    p, se = np.asarray(p), np.asarray(se)
    size = p * (1 - p) / se**2 - 1
    found = anchored_elo(p * size - 0.5, 0, (1 - p) * size - 0.5)
    np.testing.assert_allclose(found.probability_se, se, rtol=1e-9)
    return found


def test_totals_of_table_1_are_means():
    for values, total in (
        ((0.361, 0.362, 0.340), 0.355),
        ((0.349, 0.340, 0.325), 0.338),
        ((0.248, 0.252, 0.225), 0.242),
    ):
        assert np.mean(values) == pytest.approx(total, abs=0.001)


def test_reductions_of_table_2():
    found = [100 * (1 - after / before) for before, after in ((0.064, 0.036), (0.207, 0.058))]
    assert np.round(found, 1).tolist() == [43.8, 72.0]


def test_reductions_of_table_4():
    """From all to strong judges; the probabilities' errors have one digit."""
    rows = [(0.101, 0.006, 94), (0.100, 0.006, 94), (85.6, 7.1, 92), (83.2, 7.1, 91), (84.0, 7.1, 92), (42.5, 9.3, 78),
            (15.2, 8.0, 47), (47.6, 8.6, 82)]  # fmt: skip
    for before, after, percent in rows:
        assert 100 * (1 - after / before) == pytest.approx(percent, abs=0.6)


def test_ratios_of_table_9():
    empirical = np.array([0.085656, 0.072636, 0.062976, 0.056197, 0.039337, 0.030263, 0.018033])
    columns = {
        (0.117833, 0.098042, 0.085735, 0.077139, 0.061535, 0.055206, 0.045260): (
            0.726925, 0.740862, 0.734537, 0.728524, 0.639253, 0.548177, 0.398423,
        ),
        (0.112137, 0.090674, 0.076925, 0.067014, 0.047815, 0.039159, 0.022701): (
            0.763848, 0.801062, 0.818667, 0.838594, 0.822689, 0.772813, 0.794352,
        ),
        (0.095316, 0.077073, 0.065386, 0.056962, 0.040642, 0.033285, 0.019296): (
            0.898644, 0.942426, 0.963137, 0.986581, 0.967869, 0.909192, 0.934531,
        ),
    }  # fmt: skip
    for analytic, ratio in columns.items():
        np.testing.assert_allclose(empirical / np.array(analytic), ratio, rtol=5e-5)
    # "72 % at n = 40, 83 % with the finite pool, 98.7 % with kappa"
    assert np.round([x[3] for x in columns.values()], 3).tolist() == [0.729, 0.839, 0.987]


def test_ratings_of_table_12():
    """Four models' win shares, of all prompts and of the trusted ones, and their ratings."""
    shares = np.array([(0.3497, 0.3382), (0.3082, 0.2983), (0.5079, 0.5074), (0.4321, 0.4253)])
    ratings = np.array([(-107.74, -116.66), (-140.48, -148.60), (5.51, 5.16), (-47.50, -52.28)])
    np.testing.assert_allclose(with_error(shares, 0.03).rating, ratings, atol=0.05)  # of shares with four decimals
    np.testing.assert_allclose(np.diff(ratings)[:, 0], [-8.92, -8.12, -0.35, -4.78], atol=0.011)


def test_counts_give_the_rating_that_the_text_gives():
    """A gap of 100 Elo is a probability of about 64 %."""
    assert with_error(0.64, 0.01).rating == pytest.approx(100, abs=0.1)


def test_errors_of_tables_10_and_11_lack_the_derivative_of_the_logit():
    """They are (400 / ln 10) SE(p), not Eq. 4, which makes them 4 to 27 times as large. Table 3 has Eq. 4, about."""
    flores = [(0.2761, 0.0287, 5.01), (0.2618, 0.0278, 4.85), (0.3813, 0.0312, 5.44), (0.2958, 0.0284, 4.96),
              (0.2719, 0.0283, 4.93), (0.3959, 0.0317, 5.54)]  # fmt: skip
    summaries = [(0.9614, 0.0146, 2.54), (0.9515, 0.0163, 2.85), (0.9216, 0.0192, 3.35), (0.9552, 0.0153, 2.67),
                 (0.8797, 0.0225, 3.93), (0.7833, 0.0290, 5.07)]  # fmt: skip
    p, se, printed = np.array(flores + summaries).T
    np.testing.assert_allclose(printed / se, ELO_PER_LOGIT, rtol=0.01)
    times = with_error(p, se).rating_se / printed
    assert 4 < times.min() < times.max() < 27.5
    p, se, printed = np.array([(0.2664, 0.0346, 32.54), (0.5645, 0.0386, 28.21), (0.7055, 0.0361, 31.49),
                               (0.5990, 0.0388, 28.90), (0.3492, 0.0377, 29.79)]).T  # fmt: skip
    np.testing.assert_allclose(with_error(p, se).rating_se, printed, rtol=0.07)
