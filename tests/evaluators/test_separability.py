import numpy as np
import pandas as pd
import pytest
import scipy
import twins
from evaluated import GAPS, GOLD, MODELS, B, M, drawn_models, settings

import jaxeval
from jaxeval import DataError, separability
from jaxeval.evaluators.model_scores import align_scores

HALF = pd.DataFrame(np.random.default_rng(3).uniform(0.5, 6, (M, 2)), MODELS, ["x", "y"])
ENDS = {"lower": GAPS - HALF, "upper": GAPS + HALF}


def shares(name, rows):
    """Share of pairs that are apart, and of those that gold orders alike."""
    low, high, gold = (x.to_numpy() for x in (ENDS["lower"][name], ENDS["upper"][name], GOLD))
    pairs = twins.pairs_of([i for i in rows if not np.isnan(low[i])])
    alike = [gold[i] > gold[j] if low[i] > high[j] else gold[j] > gold[i] for i, j in pairs
             if low[i] > high[j] or low[j] > high[i]]  # fmt: skip
    return len(alike) / len(pairs), np.mean(alike) if alike else np.nan, len(alike), len(pairs)


def test_shares_and_intervals_are_those_of_the_resamples_one_by_one():
    found = separability(GAPS, GOLD, **ENDS, n_resamples=B).set_index("evaluator")
    aligned = align_scores(GAPS, GOLD)
    counts = drawn_models(aligned, settings())[1:, aligned.models.get_indexer(GAPS.index)]
    for name in GAPS:
        row = found.loc[name]
        assert tuple(row[["separated", "agreement", "n_separated", "n_pairs"]]) == shares(name, range(M))
        draws = np.array([shares(name, np.repeat(np.arange(M), c))[:2] for c in counts])
        for k, key in enumerate(("separated", "agreement")):
            one, share = draws[:, k], row[key]
            half = scipy.stats.t.ppf(0.975, row["n_models"] - 1) * np.nanstd(one) / (share * (1 - share))
            ends = scipy.special.expit(scipy.special.logit(share) + half * np.array([-1, 1]))
            if np.isnan(one).any():
                whole = [np.quantile(np.where(np.isnan(one), fill, one), q) for fill, q in ((0, 0.025), (1, 0.975))]
                ends = [min(ends[0], whole[0]), max(ends[1], whole[1])]
            np.testing.assert_allclose(row[[f"{key}_lower", f"{key}_upper"]].astype(float), ends)
        assert row["failed_share"] == np.isnan(draws[:, 1]).mean()


def test_a_share_of_all_pairs_has_an_exact_interval():
    scores = np.arange(8.0)
    found = separability(scores, scores, standard_error=np.full(8, 0.1), n_resamples=20).iloc[0]
    assert found["agreement"] == 1
    exact = jaxeval.statistics.quantiles.exact_share(1, 8, 0.95)[0]
    assert (found["agreement_lower"], found["agreement_upper"]) == (exact, 1)


def test_standard_errors_and_arrays():
    by_error = separability(GAPS, GOLD, standard_error=HALF / 1.959963984540054, n_resamples=0)
    by_ends = separability(GAPS, GOLD, **ENDS, n_resamples=0)
    pd.testing.assert_frame_equal(by_error, by_ends)
    array = separability(GAPS.to_numpy(), GOLD.to_numpy(), standard_error=HALF.to_numpy() / 1.96, n_resamples=0)
    np.testing.assert_array_equal(array["n_separated"], by_ends["n_separated"])
    one = separability(GAPS["y"], GOLD, standard_error=HALF["y"] / 1.96, n_resamples=0)
    assert one["n_separated"].tolist() == by_ends["n_separated"].tolist()[1:]


def test_a_score_without_an_interval_is_missing():
    error = HALF.copy()
    error.loc["m00", "x"] = np.nan
    found = separability(GAPS, GOLD, standard_error=error, n_resamples=0)
    assert found["n_models"].tolist() == [11, 10]
    assert found["n_missing"].tolist() == [1, 2]


def test_no_pair_is_separated():
    found = separability(GAPS, GOLD, standard_error=HALF + 100, n_resamples=B)
    assert found["status"].tolist() == ["no pair is separated"] * 2
    assert found["separated"].tolist() == [0.0, 0.0]
    assert found["agreement"].isna().all()


@pytest.mark.parametrize(("options", "message"), [
    ({}, "give lower and upper, or standard_error"),
    ({"lower": GAPS}, "give lower and upper, or standard_error"),
    ({**ENDS, "standard_error": HALF}, "give lower and upper, or standard_error"),
    ({"lower": ENDS["upper"], "upper": ENDS["lower"]}, "22 intervals end before they begin"),
    ({"standard_error": -HALF}, "24 negative"),
    ({"standard_error": HALF[["x"]]}, "standard_error has no column 'y'"),
    ({"standard_error": HALF.astype(object).replace(HALF.iloc[0, 0], "wide")}, "standard_error is not numeric.*wide"),
    ({**ENDS, "lower": pd.concat([ENDS["lower"]] * 2)}, "model 'm00' has more than one row in lower"),
    ({**ENDS, "upper": pd.concat([ENDS["upper"]] * 2, axis=1)}, "upper has more than one column 'x'"),
    ({**ENDS, "lower": ENDS["upper"]}, "22 scores lie outside their own intervals, the first that of model"),
    ({"standard_error": np.ones(5)}, r"standard_error has shape \(5,\), but scores have 12 models by 2"),
])  # fmt: skip
def test_refused(options, message):
    with pytest.raises(DataError, match=message):
        separability(GAPS, GOLD, **options)


def test_arrays_must_have_the_shape_of_scores():
    rng = np.random.default_rng(0)
    scores, error = rng.normal(size=(15, 2)), rng.uniform(0.1, 0.5, (15, 2))
    with pytest.raises(DataError, match=r"standard_error has shape \(2, 15\), but scores have 15 models by 2"):
        separability(scores, np.arange(15.0), standard_error=error.T, n_resamples=0)
    tied = separability(scores, np.zeros(15), standard_error=error, n_resamples=0)
    assert (tied["status"] == "gold ties all separated pairs").all()
    with pytest.raises(ValueError, match="level"):
        separability(scores, np.arange(15.0), standard_error=error, score_level=2, n_resamples=0)
