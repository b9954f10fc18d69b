"""BCa intervals of boards: beside the definition, draw by draw and battle by battle."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import twins
from command_line import run
from scipy.stats import norm

import jaxeval

pytestmark = pytest.mark.usefixtures("all_on_the_host")


@pytest.fixture(scope="module")
def votes():
    """Few and lopsided ones, of which six are of each voter."""
    votes = jaxeval.simulate_votes(240, 4, seed=3)
    return votes.assign(voter=np.arange(len(votes)) // 6)


def by_definition(board, scores, level=0.95):
    """Ends of each model, from the change of all ratings with the weight of each unit, ``scores`` (U, M) of the fit."""
    theta, wins = board.fit.logits.to_numpy(), board.fit._board.rated_tables()[1]
    influence = scores @ np.linalg.pinv(twins.information(theta, wins))
    influence -= influence.mean(1, keepdims=True)
    a = (influence**3).sum(0) / (6 * (influence**2).sum(0) ** 1.5)
    ends = []
    for k, estimate in enumerate(board.fit.ratings):
        z0 = norm.ppf((board.draws[:, k] < estimate).mean())
        z = z0 + norm.ppf([(1 - level) / 2, (1 + level) / 2])
        ends.append(np.quantile(board.draws[:, k], norm.cdf(z0 + z / (1 - a[k] * z))))
    return np.array(ends)


def scores_of(board, votes):
    """(N, M) derivative of the log-likelihood of each vote."""
    battles = jaxeval.Battles.from_pandas(votes)
    theta = board.fit.logits.to_numpy()
    first, second = (board.models.get_indexer(votes[name]) for name in ("model_a", "model_b"))
    residual = np.asarray(battles.target) - 1 / (1 + np.exp(theta[second] - theta[first]))
    scores = np.zeros((len(votes), len(theta)))
    rows = np.arange(len(votes))
    scores[rows, first], scores[rows, second] = residual, -residual
    return scores


def test_of_battles(votes):
    board = jaxeval.bootstrap(jaxeval.Battles.from_pandas(votes), 400, seed=1)
    found = board.interval(kind="bca")
    np.testing.assert_allclose(found, by_definition(board, scores_of(board, votes)), atol=1e-6)
    assert not np.allclose(found, board.interval(kind="percentile"), atol=0.5)


def test_of_clusters_and_wider_with_few(votes):
    board = jaxeval.bootstrap(jaxeval.Battles.from_pandas(votes), 400, seed=1, cluster="voter")
    summed = np.array([own.sum(0) for own in np.split(scores_of(board, votes), len(votes) // 6)])
    plain = by_definition(board, summed)
    found = board.interval(kind="bca").to_numpy()
    ratings = board.fit.ratings.to_numpy()[:, None]
    ratio = (found - ratings) / (plain - ratings)
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-6)  # Student's quantile
    assert ratio[0, 0] > 1


def test_by_the_command_as_in_python(votes, tmp_path):
    votes.to_csv(tmp_path / "votes.csv", index=False)
    done = run("leaderboard", tmp_path / "votes.csv", "--interval", "bca", "--resamples", 400, "--out", "-")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path.joinpath("board.csv").write_text(done.stdout) and tmp_path / "board.csv")
    expected = jaxeval.leaderboard(votes, n_resamples=400, interval="bca")
    np.testing.assert_allclose(table["lower"], expected["lower"])
    ends = jaxeval.bootstrap(votes, 400, interval="bca").interval().loc[expected["model"]]
    np.testing.assert_allclose(expected["upper"], ends["upper"])


@pytest.mark.parametrize("options", [{"ties": "davidson"}, {"strata": "language"}])
def test_what_it_is_not_for(votes, options):
    """It is told before any resample is drawn: there is no room for so many."""
    with pytest.raises(ValueError, match=r'interval="bca" is for boards .* without covariates, tie models and strata'):
        jaxeval.leaderboard(votes, n_resamples=10**10, interval="bca", **options)


def test_draws_are_those_of_other_intervals(votes):
    one, other = (jaxeval.bootstrap(votes, 50, interval=kind) for kind in ("bca", "auto"))
    assert (one.draws == other.draws).all()


def test_draws_that_equal_the_rating_but_for_rounding_lie_on_neither_side():
    votes = pd.DataFrame({"model_a": "a", "model_b": "b", "winner": ["model_a"] * 3 + ["model_b"] * 2})
    board = jaxeval.bootstrap(votes, 200)
    expected = board.interval(0.9, "bca")
    assert expected["lower"]["a"] > 800  # of five resampled battles, a loses all in 1 of 100
    for error in (-1e-9, 1e-9):
        pd.testing.assert_frame_equal(replace(board, draws=board.draws + error).interval(0.9, "bca"), expected)
