from fractions import Fraction
from math import ceil

import numpy as np
import pandas as pd
import pytest
from twins import conformal_quantile as naive_quantile

from jaxeval.lab.held_out_sweeps import conformal_study, leave_one_out_intervals, width_decomposition
from jaxeval.softelo.calibrated_methods import expected_coverage


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


def test_coverage_of_simulated_pools_with_one_test_model_each():
    """Of 20 models 18 lie inside when each is tested on the others, so that splits of a pool are independent draws."""
    n_pools, n_splits, n = 10, 200, 20
    covered = [conformal_study(pool(n, seed, ("soft",)), 0.9, n_splits, n - 1, seed).splits["coverage"]
               for seed in range(n_pools)]  # fmt: skip
    expected = expected_coverage(n - 1, 0.9)
    assert expected == 18 / 20
    assert abs(np.mean(covered) - expected) < 4 * np.sqrt(expected * (1 - expected) / (n_pools * n_splits))


def test_a_judge_that_is_never_off_is_no_proof_that_it_never_will_be():
    flawless = pool(3).assign(residual=0.0)
    found = leave_one_out_intervals(flawless)
    assert (found["width"] == 0).all()
    said = [text for text in found.attrs["warnings"] if "intervals of no length" in text]
    assert [text.partition(":")[0] for text in said] == [
        f"3 models, and the judge is off none by {method} ratings" for method in ("hard", "soft")
    ]
    assert not any("no length" in text for text in leave_one_out_intervals(pool(3)).attrs["warnings"])


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
    assert [study.settings[x] for x in ("n_calibration", "n_test", "n_repeats")] == [27, 28, 5]
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
    assert study.settings["n_calibration"] + study.settings["n_test"] == 19
    assert "m003" in study.warnings[0]


@pytest.mark.parametrize(("call", "message"), [
    (lambda: conformal_study(pool(1)), "at least 2 models"),
    (lambda: conformal_study(pool(4), n_calibration=4), "between 1 and 3"),
    (lambda: conformal_study(pd.DataFrame({"model": []})), "no column 'method'"),
])  # fmt: skip
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_default_level_follows_the_models_and_a_given_one_stays():
    six = pool(6)
    study = conformal_study(six)
    assert study.settings["level"] == 0.75
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
    assert given.settings["level"] == 0.9
    assert np.isinf(given.summary["quantile"]).all()
