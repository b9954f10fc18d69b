"""Tie models beside each other: likelihoods, and what they predict of battles held out."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from styled import FEATURES, styled

from jaxeval import Battles, DataError, bootstrap, fit_bradley_terry
from jaxeval.data.features import position_advantage
from jaxeval.ratings.contextual_effects import _folds, compare_tie_models


@pytest.fixture(scope="module")
def votes():
    """From Rao and Kupper's model, threshold 0.3."""
    return styled()


def test_likelihoods_and_held_out_scores(votes):
    found = compare_tie_models(votes, features=FEATURES, n_folds=4)
    assert found.index.tolist() == ["half", "davidson", "rao_kupper"]
    for ties in ("davidson", "rao_kupper"):
        fit = fit_bradley_terry(votes, features=FEATURES, ties=ties)
        row = found.loc[ties]
        assert row["tie_parameter"] == pytest.approx(fit.tie_parameter)
        assert row["log_likelihood"] == pytest.approx(fit.log_likelihood)
        assert row["aic"] == pytest.approx(2 * (5 + 2 + 1) - 2 * fit.log_likelihood)
        # Held-out battles are predicted about as well as those of the fit.
        assert row["held_out_log_likelihood"] == pytest.approx(fit.log_likelihood / len(votes), abs=0.02)
    assert found["log_likelihood"].idxmax() == "rao_kupper"
    assert np.isnan(
        found.loc["half", ["tie_parameter", "log_likelihood", "held_out_log_likelihood"]].astype(float)
    ).all()
    assert (found["n_held_out"] == len(votes)).all()
    assert (found["n_skipped"] == 0).all()
    assert found["held_out_error"].between(0.05, 0.25).all()


@pytest.mark.slow
def test_held_out_by_hand(votes):
    """Refits without each part, one by one."""
    some = Battles.from_pandas(votes[:600])
    found = compare_tie_models(some, n_folds=3, seed=4)
    held = _folds(some.cells.count, 3, np.random.default_rng(4))
    assert held.sum(1).tolist() == [200, 200, 200]
    np.testing.assert_array_equal(held.sum(0), some.cells.count)
    fold = np.concatenate([np.repeat(np.arange(3), of_cell) for of_cell in held.T])
    # Cells are sorted by pair and result.
    first, second = np.minimum(some.model_a, some.model_b), np.maximum(some.model_a, some.model_b)
    target = np.where(some.model_a > some.model_b, 1 - some.target, some.target)
    order = np.lexsort([target, second, first])
    names, errors, scores = some.models, [], []
    for part in range(3):
        out, rest = order[fold == part], order[fold != part]
        frame = pd.DataFrame({"model_a": names[first[rest]], "model_b": names[second[rest]], "target": target[rest]})
        fit = fit_bradley_terry(frame)
        p = expit(fit.logits[names[first[out]]].to_numpy() - fit.logits[names[second[out]]].to_numpy())
        errors.append((target[out] - p) ** 2)
        scores.append(target[out] * np.log(p) + (1 - target[out]) * np.log1p(-p))
    assert found.loc["half", "held_out_error"] == pytest.approx(np.concatenate(errors).mean())
    assert found.loc["half", "held_out_score"] == pytest.approx(np.concatenate(scores).mean())


@pytest.mark.slow
def test_models_that_a_part_alone_has(votes):
    rare = pd.DataFrame({"model_a": ["rare"] * 2, "model_b": votes["model_a"][:2], "winner": ["model_a", "model_b"]})
    found = compare_tie_models(pd.concat([votes[:500], rare]), n_folds=5)
    assert (found["n_skipped"] >= 1).all()
    assert (found["n_held_out"] + found["n_skipped"] == 502).all()
    assert np.isfinite(found["held_out_score"]).all()


@pytest.mark.usefixtures("on_the_host")
def test_what_is_refused(votes):
    with pytest.raises(ValueError, match="n_folds must lie between 2 and the 4,000 battles, got 1"):
        compare_tie_models(votes, n_folds=1)
    with pytest.raises(DataError, match="no ties among"):
        compare_tie_models(votes[votes["winner"] != "tie"])


@pytest.fixture(scope="module")
def football(data):
    """All 49,520 international matches since 1872."""
    table = pd.read_parquet(data / "football_international_results.parquet")
    goals = table["home_score"] - table["away_score"]
    winner = np.select([goals > 0, goals < 0], ["model_a", "model_b"], "tie")
    names = {"home_team": "model_a", "away_team": "model_b"}
    return table[[*names, "neutral", "tournament", "date"]].rename(columns=names).assign(winner=winner)


@pytest.mark.slow
def test_sparse_boards_with_a_tie_model(football):
    """World Cup and Euro qualifiers: some resamples see only wins of a team, which is told; all refits converge."""
    qualifiers = football["tournament"].isin(["FIFA World Cup qualification", "UEFA Euro qualification"])
    recent = football[qualifiers & (football["date"].astype(str) >= "2010")]
    found = bootstrap(recent, 16, features=[position_advantage("neutral")], ties="davidson")
    assert found.converged.all()
    assert found.degenerate_share.max() > 0
    ratio = found.coefficients()["standard_error"] / found.fit.coefficients()["standard_error"]
    assert ratio.to_numpy() == pytest.approx(1, abs=4 / np.sqrt(32))
