from fractions import Fraction
from math import ceil

import numpy as np
import pandas as pd
import pytest

from jaxeval.softelo.conformal import (
    chosen_level,
    conformal_quantile,
    conformal_quantile_by_stratum,
    conformal_rank,
    conformal_study,
    conformity_scores,
    expected_coverage,
    largest_supported_level,
    leave_one_out_intervals,
    smallest_calibration,
    width_decomposition,
)


def pool(n, seed=0, methods=("hard", "soft")):
    """Held-out ratings of n models; residuals heavier than their standard errors say."""
    rng = np.random.default_rng(seed)
    blocks = []
    for method in methods:
        human, error = rng.normal(1500, 80, n), rng.gamma(4, 3, n)
        residual = 2 * error * rng.standard_t(4, n)
        blocks.append(
            pd.DataFrame(
                {
                    "model": [f"m{k:03d}" for k in range(n)],
                    "method": method,
                    "human_elo": human,
                    "judge_elo": human + residual,
                    "residual": residual,
                    "standard_error": error,
                }
            )
        )
    return pd.concat(blocks, ignore_index=True)


def naive_quantile(scores, level):
    rank = ceil(Fraction(str(level)) * (len(scores) + 1))
    return sorted(scores)[rank - 1] if rank <= len(scores) else np.inf


def test_rank_is_exact_where_floats_are_not():
    # 0.68 * 75 is 51, and 51.00000000000001 in floats.
    assert 0.68 * 75 > 51
    assert conformal_rank(74, 0.68) == 51
    assert conformal_quantile(np.arange(1, 75), 0.68) == 51
    assert conformal_rank(27, 0.9) == 26
    assert expected_coverage(27, 0.9) == 26 / 28
    assert conformal_rank(9, np.float64(0.9)) == conformal_rank(9, "0.9") == conformal_rank(9, Fraction(9, 10)) == 9


@pytest.mark.parametrize("level", [0.1, 0.5, 0.68, 0.9, 0.95, 0.975])
def test_quantile_is_the_sorted_lists(level):
    rng = np.random.default_rng(1)
    for n in [0, 1, 2, 8, 9, 10, 18, 19, 20, 39, 74, 200]:
        scores = rng.exponential(size=n)
        assert conformal_quantile(scores, level) == naive_quantile(scores, level)


def test_infinite_exactly_when_the_rank_exceeds_n():
    assert conformal_quantile(np.ones(8), 0.9) == np.inf
    assert conformal_quantile(np.ones(9), 0.9) == 1
    assert smallest_calibration(0.9) == 9
    assert smallest_calibration("0.95") == 19
    for n in range(1, 300):
        level = largest_supported_level(n)
        assert np.isfinite(conformal_quantile(np.ones(n), level))
        assert np.isinf(conformal_quantile(np.ones(n), np.nextafter(level, 1)))
        assert smallest_calibration(Fraction(n, n + 1)) == n


def test_coverage_is_the_expected_one_on_average():
    rng = np.random.default_rng(2)
    trials = 20_000
    for n, level in [(27, 0.9), (9, 0.9), (54, 0.68)]:
        scores = np.abs(rng.standard_t(3, (trials, n + 1)))
        covered = np.mean([row[-1] <= conformal_quantile(row[:-1], level) for row in scores])
        expected = expected_coverage(n, level)
        assert abs(covered - expected) < 4 * np.sqrt(expected * (1 - expected) / trials)


def test_coverage_of_simulated_pools_with_one_test_model_each():
    trials, n = 400, 20
    covered = [conformal_study(pool(n, seed, ("soft",)), 0.9, 1, n - 1, seed).splits["coverage"][0]
               for seed in range(trials)]  # fmt: skip
    expected = expected_coverage(n - 1, 0.9)
    assert expected == 18 / 20
    assert abs(np.mean(covered) - expected) < 4 * np.sqrt(expected * (1 - expected) / trials)


@pytest.mark.parametrize("weight", [1.0, 0.1, 3.7])
def test_equal_weights_change_nothing(weight):
    rng = np.random.default_rng(3)
    for n in [1, 9, 26, 74]:
        scores = rng.exponential(size=n)
        for level in [0.5, 0.68, 0.9]:
            assert conformal_quantile(scores, level, np.full(n, weight)) == conformal_quantile(scores, level)


def test_integer_weights_repeat_scores():
    rng = np.random.default_rng(4)
    scores, weights = rng.exponential(size=12), rng.integers(0, 5, 12)
    repeated = np.repeat(scores, weights)
    for level in [0.3, 0.68, 0.9, 0.95]:
        assert conformal_quantile(scores, level, weights, 1.0) == naive_quantile(repeated, level)


def test_weights_restore_coverage_under_a_known_shift():
    # Scores grow with x; calibration has x uniform, new models favour large x with density 2x.
    rng = np.random.default_rng(5)
    trials, n, level = 4000, 40, 0.8
    hits = np.zeros(2)
    for _ in range(trials):
        x, new_x = rng.random(n), np.sqrt(rng.random())
        scores, new = x * rng.exponential(size=n), new_x * rng.exponential()
        hits += [new <= conformal_quantile(scores, level), new <= conformal_quantile(scores, level, 2 * x, 2 * new_x)]
    plain, weighted = hits / trials
    error = np.sqrt(level * (1 - level) / trials)
    assert plain < level - 4 * error
    assert level - 4 * error < weighted < level + 2 / n + 4 * error


def test_strata_have_their_own_quantiles():
    rng = np.random.default_rng(6)
    strata = np.array(["b"] * 30 + ["a"] * 5 + ["c"] * 19)
    scores = rng.exponential(size=54)
    table = conformal_quantile_by_stratum(scores, strata, 0.9)
    assert list(table.index) == ["a", "b", "c"]
    for name, row in table.iterrows():
        assert row["quantile"] == naive_quantile(scores[strata == name], 0.9)
    assert np.isinf(table.loc["a", "quantile"])
    assert np.isnan(table.loc["a", "expected_coverage"])
    assert table.loc["a", "largest_level"] == largest_supported_level(5)
    assert table.loc["c", "expected_coverage"] == 18 / 20


def test_each_from_all_others_is_the_naive_loop_and_covers_by_arithmetic():
    for n, level in [(30, 0.9), (14, 0.9), (12, 0.5)]:
        table = pool(n)
        result = leave_one_out_intervals(table, level)
        assert "covered" not in result
        for method, block in table.groupby("method"):
            score = np.abs(block["residual"] / block["standard_error"]).to_numpy()
            own = result[result["method"] == method]
            expected = [naive_quantile(np.delete(score, i), level) for i in range(n)]
            np.testing.assert_array_equal(own["quantile"], expected)
            np.testing.assert_allclose(own["width"], 2 * own["quantile"] * own["standard_error"])
            inside = (own["lower"] <= own["human_elo"]) & (own["human_elo"] <= own["upper"])
            assert inside.sum() == ceil(Fraction(str(level)) * n)


def test_study_is_the_naive_loop_over_the_same_splits_for_all_methods():
    table = pool(55)
    study = conformal_study(table, seed=7)
    assert (study.settings.n_calibration, study.settings.n_test, study.settings.n_repeats) == (27, 28, 5)
    assert study.summary["expected_coverage"].eq(26 / 28).all()
    assert study.summary["nominal"].eq(0.9).all()
    for (method, split), block in study.intervals.groupby(["method", "split"]):
        rows = table[table["method"] == method].set_index("model")
        score = np.abs(rows["residual"] / rows["standard_error"])
        tested = list(block["model"])
        quantile = naive_quantile(score.drop(tested), 0.9)
        covered = score[tested] <= quantile
        assert list(block["covered"]) == list(covered)
        row = study.splits[(study.splits["method"] == method) & (study.splits["split"] == split)].iloc[0]
        np.testing.assert_allclose(row["quantile"], quantile)
        np.testing.assert_allclose(row["coverage"], covered.mean())
        np.testing.assert_allclose(row["median_width"], np.median(2 * quantile * rows["standard_error"][tested]))
    for _, block in study.intervals.groupby("split"):
        assert len({tuple(own["model"]) for _, own in block.groupby("method")}) == 1
    assert conformal_study(table, seed=7).summary.equals(study.summary)


def test_a_study_too_small_for_its_level_says_so_and_gives_no_coverage():
    study = conformal_study(pool(14), 0.9)
    assert study.summary["coverage"].isna().all()
    assert np.isinf(study.summary["median_width"]).all()
    (warning,) = study.warnings
    assert "7 calibration models support levels up to 0.875" in warning
    assert "9 models are needed" in warning


def test_width_is_the_product_of_its_parts():
    table = width_decomposition(pool(40))
    np.testing.assert_allclose(table["width"], 2 * table["quantile"] * table["median_standard_error"])
    np.testing.assert_allclose(table["width_ratio"], table["quantile_ratio"] * table["standard_error_ratio"])
    assert table.loc["hard", ["quantile_ratio", "standard_error_ratio"]].eq(1).all()


def test_several_judges_are_kept_apart():
    both = pd.concat([pool(20, 1).assign(judge="x"), pool(20, 2).assign(judge="y")])
    study, one = conformal_study(both), conformal_study(pool(20, 2))
    pd.testing.assert_frame_equal(study.summary.loc["y"], one.summary)
    decomposed = width_decomposition(both)
    assert decomposed.loc[("y", "hard"), "width_ratio"] == 1


def test_models_without_a_residual_are_left_out_and_named():
    table = pool(20)
    table.loc[3, "residual"] = np.nan
    study = conformal_study(table)
    assert study.settings.n_calibration + study.settings.n_test == 19
    assert "m003" in study.warnings[0]


def test_scores_without_spread():
    np.testing.assert_array_equal(
        conformity_scores([3, -3, 0, np.nan, 1], [2, 0, 0, 1, np.nan]), [1.5, np.inf, 0, np.nan, np.nan]
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conformal_quantile([1.0], 1), "strictly between 0 and 1, got 1"),
        (lambda: conformal_quantile([1.0], 95), "got 95"),
        (lambda: conformal_quantile([1.0], "high"), "got 'high'"),
        (lambda: conformal_quantile([1.0, np.nan], 0.5), "1 of 2 scores are NaN"),
        (lambda: conformal_quantile([[1.0]], 0.5), "one-dimensional"),
        (lambda: conformal_quantile([1.0], 0.5, [1.0, 2.0]), "as many weights"),
        (lambda: conformal_quantile([1.0], 0.5, [-1.0]), "1 of 1 are not"),
        (lambda: conformal_quantile([1.0], 0.5, new_weight=1.0), "beside weights"),
        (lambda: conformal_quantile_by_stratum([1.0], [None], 0.5), "1 of 1 stratum is missing"),
        (lambda: largest_supported_level(0), "n=0"),
        (lambda: conformal_study(pool(1)), "at least 2 models"),
        (lambda: conformal_study(pool(4), n_calibration=4), "between 1 and 3"),
        (lambda: conformal_study(pd.DataFrame({"model": []})), "no column 'method'"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_default_level_follows_the_models_and_a_given_one_stays():
    six = pool(6)
    study = conformal_study(six)
    assert study.settings.level == 0.75
    assert np.isfinite(study.summary["quantile"]).all()
    assert (
        "random splits: 3 calibration models support levels up to 0.75, so the default level of 0.9 is lowered"
        in study.warnings[0]
    )
    each, widths = leave_one_out_intervals(six), width_decomposition(six)
    assert [table.attrs["settings"]["level"] for table in (each, widths)] == [0.8333, 0.8571]
    for table in (each, widths):
        assert np.isfinite(table["quantile"]).all()
        assert "is lowered to" in table.attrs["warnings"][0]
    given = conformal_study(six, 0.9)
    assert given.settings.level == 0.9
    assert np.isinf(given.summary["quantile"]).all()
    assert chosen_level(None, 9, "") == (Fraction(9, 10), [])
    assert chosen_level(0.95, 3, "") == (Fraction("0.95"), [])


def test_lowered_levels_are_supported_up_to_the_last_model():
    for n in range(1, 9):
        level, (sentence,) = chosen_level(None, n, "splits")
        assert conformal_rank(n, level) == n
        assert str(n) in sentence
