"""Rank changes by tier: the definition by hand, resamples one by one, and published tiers."""

import numpy as np
import pandas as pd
import pytest
import twins
from evaluated import ARENA, GAPS, GOLD, B, M, drawn_models, settings, wildbench_rewards

from jaxeval import DataError, stratified_rank_change
from jaxeval.evaluators.model_scores import align_scores


def changes(scores=GAPS, gold=GOLD, **options):
    return stratified_rank_change(scores, gold, n_resamples=B, **options)


@pytest.mark.parametrize("within", [False, True])
def test_every_change_and_its_interval_are_those_of_the_resamples_one_by_one(within):
    found = changes(within_tier=within)
    assert found.columns.tolist() == [
        "evaluator", "tier", "rank_change", "n_models", "n_pairs", "n_missing", "status", "lower", "upper",
        "failed_share",
    ]  # fmt: skip
    aligned = align_scores(GAPS, GOLD)
    counts = drawn_models(aligned, settings())[1:]
    for e, name in enumerate(GAPS):
        own = found[found["evaluator"] == name]
        x, gold = aligned.scores[e], aligned.gold
        change, number = twins.tier_changes(x, gold, np.arange(M), 4, within)
        np.testing.assert_allclose(own["rank_change"], change)
        np.testing.assert_array_equal(own["n_models"], number)
        number = np.array(number)
        others = 0 if within else np.sum(~np.isnan(x)) - number
        np.testing.assert_array_equal(own["n_pairs"], number * (number - 1) / 2 + number * others)
        draws = np.array([twins.tier_changes(x, gold, np.repeat(np.arange(M), c), 4, within)[0] for c in counts])
        for end, q, fill in (("lower", 0.025, 0.0), ("upper", 0.975, M - 1.0)):
            expected = np.quantile(np.where(np.isnan(draws), fill, draws), q, axis=0)
            # No model moves by more than all the others that the evaluator scored.
            expected = np.minimum(expected, np.sum(~np.isnan(x)) - 1.0)
            np.testing.assert_allclose(own[end], expected, atol=1e-12)
        np.testing.assert_allclose(own["failed_share"], np.isnan(draws).mean(0))


def test_by_hand():
    """Ranks 2 1 | 3 5 | 4 6: changes of 1 1, 0 1, 1 0."""
    found = stratified_rank_change([5.0, 6, 4, 2, 3, 1], [60.0, 50, 40, 30, 20, 10], 3, n_resamples=0)
    assert found["rank_change"].tolist() == [1.0, 0.5, 0.5]
    assert found["n_models"].tolist() == [2, 2, 2]
    assert "lower" not in found


def test_perfect_and_reversed_evaluators():
    board = pd.DataFrame({"same": GOLD, "other": -GOLD})
    found = changes(board).set_index(["evaluator", "tier"])
    assert (found.loc["same", ["rank_change", "lower", "upper"]] == 0).all(axis=None)
    assert found.loc["other", "rank_change"].tolist() == [9.0, 3.0, 3.0, 9.0]


def test_degenerate():
    found = changes(GAPS.assign(y=1.0))
    assert found["status"].tolist() == ["ok"] * 4 + ["scores are constant"] * 4
    assert found.loc[4:, ["rank_change", "lower", "upper"]].isna().all(axis=None)
    top = GOLD.nlargest(3).index
    found = changes(GAPS.assign(y=GAPS["y"].drop(top)))
    assert found["status"].tolist() == ["ok"] * 4 + ["no model of the tier is scored"] + ["ok"] * 3
    assert (changes(gold=GOLD * 0)["status"] == "gold scores are constant").all()


def test_refused():
    with pytest.raises(ValueError, match="n_tiers must be at least 1"):
        changes(n_tiers=0)
    with pytest.raises(TypeError, match="n_tiers must be an integer"):
        changes(n_tiers=2.5)
    with pytest.raises(DataError, match="12 models cannot be split into 13 tiers"):
        changes(n_tiers=13)


def test_published_tiers(data):
    """Table 9 of the method: 6, 5, 5 and 5 of the 21 models; two share tier 2's lowest score."""
    found = stratified_rank_change(wildbench_rewards(data), pd.Series(ARENA, dtype=float), n_resamples=0)
    assert found["n_models"].tolist() == [6, 5, 5, 5] * 4
    assert found.loc[:3, "rank_change"].tolist() == pytest.approx([1 / 3, 1.4, 1.0, 0.8])
