import numpy as np
import pandas as pd
import pytest

from jaxeval import DataError, ItemScores, item_subset


def scores_of(values):
    n_items, n_models = values.shape
    return ItemScores(values[:, None], pd.RangeIndex(n_items), pd.Index(["s"]), pd.RangeIndex(n_models))


def answers(n_items=300, n_models=30):
    rng = np.random.default_rng(0)
    chance = 1 / (1 + np.exp(1.5 * rng.normal(size=(n_items, 1)) - 2 * rng.normal(size=n_models)))
    return (rng.random(chance.shape) < chance).astype(float)


def test_kinds_of_items_are_found():
    """Items of three kinds, of 60, 30 and 10 each: three items say it all."""
    kinds = np.random.default_rng(1).normal(size=(3, 8))
    values = np.repeat(kinds, [60, 30, 10], axis=0)
    found = item_subset(scores_of(values), 3)
    assert found.items["item"].between(0, 99).all()
    assert found.items["n_items"].tolist() == [60, 30, 10]
    np.testing.assert_allclose(found.items["weight"] @ values[found.items["item"]], values.mean(0), atol=1e-12)
    chosen = found.errors.set_index("method").loc["chosen"]
    assert chosen["tau"] == pytest.approx(1)
    assert chosen["mean_absolute_error"] < 1e-12


def test_errors_are_of_models_left_out():
    values = answers()
    found = item_subset(scores_of(values), 30)
    errors = found.errors.set_index("method")
    own = np.abs(found.items["weight"] @ values[found.items["item"]] - values.mean(0)).mean()
    assert errors.loc["chosen", "mean_absolute_error"] > own  # that of models which had a part in the choice
    # Binomial scores of 30 items, without replacement
    binomial = np.sqrt(2 / np.pi * values.mean(0) * (1 - values.mean(0)) / 30 * 0.9).mean()
    assert errors.loc["random", "mean_absolute_error"] == pytest.approx(binomial, rel=0.1)
    assert 0.6 < errors.loc["chosen", "tau"] < 1
    again = item_subset(scores_of(values), 30)
    pd.testing.assert_frame_equal(pd.DataFrame(found.errors), pd.DataFrame(again.errors))


def test_alike_items_and_refusals():
    found = item_subset(scores_of(np.ones((20, 6))), 4)
    assert len(found.items) == 4
    assert found.items["weight"].sum() == pytest.approx(1)
    assert found.warnings
    with pytest.raises(DataError, match="4 models only"):
        item_subset(scores_of(answers(20, 4)), 5)
    with pytest.raises(ValueError, match="k must be less than the 20 items"):
        item_subset(scores_of(answers(20, 6)), 20)
    with pytest.raises(ValueError, match="'error' or 'complete'"):
        item_subset(scores_of(answers(20, 6)), 5, missing="available")
