"""Boards of equal competitors: how often one of them is said to be ahead of all others."""

import numpy as np
import pandas as pd
import pytest
from command_line import run

import jaxeval

N_BOARDS = 200


def equal_competitors(n_models, n_games, ties, seed):
    """A vote per game of pairs at random, on each of the boards."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(n_models, 1)
    pair = rng.integers(0, len(first), (N_BOARDS, n_games))
    result = rng.choice(["tie", "model_a", "model_b"], pair.shape, p=[ties, (1 - ties) / 2, (1 - ties) / 2])
    board = np.repeat(np.arange(N_BOARDS), n_games).astype(str)
    columns = {"model_a": first[pair].ravel(), "model_b": second[pair].ravel(), "winner": result.ravel()}
    return pd.DataFrame({"board": board, **columns})


def claims(boards):
    """How many of the boards have a model whose only rank is the first, and how many say so."""
    ranks = sum(bool((board.rank_sets(min_battles=0)["rank_worst"] == 1).any()) for board in boards.values())
    return ranks, sum("ahead of all" in board.first_sentence() for board in boards.values())


def test_two_games_name_no_leader():
    """Won once and tied once: a quarter of the resamples leave both without a rating, and say so of both."""
    votes = pd.DataFrame({"model_a": ["x", "x"], "model_b": ["y", "y"], "winner": ["model_a", "tie"]})
    board = jaxeval.leaderboard(votes, n_resamples=100)
    assert board[["rank", "rank_best", "rank_worst", "tier"]].isna().all(axis=None)
    assert board.attrs["answer"].startswith("too few games to say who leads: x is first with 1095.4 (")
    ranked = jaxeval.leaderboard(votes, n_resamples=100, min_battles=0)
    assert ranked["rank_worst"].tolist() == [2, 2]
    assert ranked["tier"].tolist() == [1, 1]
    assert ranked.attrs["answer"].startswith("too few games to say who leads: x is first with 1095.4 (")


def test_one_loud_voter_makes_no_sure_leader(tmp_path, on_the_host):
    """A third of the votes are of one who always prefers x: it leads if these are as good as those of many."""
    votes = pd.DataFrame({"model_a": ["x"] * 120, "model_b": "y", "user": [*range(40), *range(40), *[99] * 40]})
    votes["winner"] = [*["model_a", "model_b"] * 40, *["model_a"] * 40]
    votes.to_csv(tmp_path / "votes.csv", index=False)
    battles = jaxeval.read_battles(tmp_path / "votes.csv", keep=["user"])
    alone, together = (jaxeval.bootstrap(battles, 200, cluster=cluster) for cluster in (None, "user"))
    assert alone.first_sentence().endswith(
        "ahead of all others at the 95% level, if votes of one voter are independent"
    )
    assert "x is first with" in together.first_sentence()
    assert "independent" not in together.first_sentence()


@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize(("wins", "sure"), [(1, False), (3, False), (5, False), (10, True)])
def test_a_ridge_alone_names_no_leader(wins, sure, ridge, on_the_host):
    """All resamples are alike, and finite by the ridge: of equals, one wins three of three on a quarter of boards."""
    votes = pd.DataFrame({"model_a": ["x"] * wins, "model_b": "y", "winner": "model_a"})
    board = jaxeval.leaderboard(votes, n_resamples=100, ridge=ridge)
    assert board["rank"].tolist() == [1, 2]
    assert board["rank_worst"].tolist() == [1 if sure else 2, 2]
    assert board.attrs["answer"].startswith("x leads with " if sure else "too few games to say who leads: x is first")


@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_joint_draws_know_what_a_ridge_alone_rates(ridge, tmp_path, on_the_host):
    """Of three equal models with four votes one wins all; on the other board it loses all."""
    votes = pd.DataFrame({"model_a": ["x", "x", "x", "y"], "model_b": ["y", "y", "z", "z"], "winner": "model_a"})
    board = jaxeval.bootstrap(votes, 100, ridge=ridge)
    jaxeval.save_draws(board.joint, tmp_path / "draws.npz")
    kept = jaxeval.read_draws(tmp_path / "draws.npz")
    for joint in (board.joint, board.contrasts, kept, board.joint.take(np.array([0, 2]))):
        assert set(joint.tiers().dropna()) <= {1}
    assert board.joint.not_below(0, np.array([1, 2])).tolist() == [1, 2]
    found = jaxeval.compare_boards(votes, votes.assign(winner="model_b"), shared="none", n_resamples=100, ridge=ridge)
    assert len(found.movers) == 0
    assert set(found.joint.tiers().dropna()) <= {1}
    assert found.table[["rank_best_a", "rank_best_b"]].eq(1).all(axis=None)


def test_intervals_of_few_games_hold_with_a_ridge(on_the_host):
    """Of equal competitors with 5 games each; quantiles of draws alone miss .14."""
    votes = equal_competitors(5, 12, 0.0, seed=0)
    votes = votes[votes["board"].astype(int) < 20]
    boards = jaxeval.bootstrap(votes, 100, by="board", min_slice_battles=1, ridge=0.1).values()

    missed = {}
    for kind in ("auto", "percentile"):
        ends = [board.ends(0.95, kind) for board in boards]
        missed[kind] = np.array([((lower > 1000) | (upper < 1000)).mean() for lower, upper in ends])
    assert missed["auto"].mean() <= 0.05 + 3 * missed["auto"].std() / np.sqrt(len(boards))
    assert missed["percentile"].mean() > missed["auto"].mean() + 0.05


def test_a_ridge_that_says_more_than_the_games_is_told(on_the_host, tmp_path):
    votes = pd.DataFrame({"model_a": "x", "model_b": "y", "winner": ["model_a", "model_b"] * 7})
    told = (
        "2 models have fewer than 256 battles: the ridge of 1 draws their ratings together, and their intervals reach"
    )
    assert any(told in text for text in jaxeval.bootstrap(votes, 20, ridge=1.0).warnings)
    assert not any("the ridge of" in text for text in jaxeval.bootstrap(votes, 20, ridge=0.2).warnings)
    short = "by more than intervals allow for"
    assert any(short in text for text in jaxeval.fit_bradley_terry(votes, ridge=1.0, link="probit").warnings)
    votes.to_csv(tmp_path / "votes.csv")
    line = "leaderboard", tmp_path / "votes.csv", "--resamples", 20, "--ridge", 1
    assert told in " ".join(run(*line).output.split())


def test_intervals_of_few_games_hold_with_a_large_ridge(on_the_host):
    """Of one model in 40 boards, with 8 games and an advantage of 260 Elo: the ridge's own intervals miss .8."""
    rng, held, own = np.random.default_rng(0), [], []
    strength = np.array([0.0, 0.0, 0.0, 1.5])
    for _ in range(40):
        a, b = np.append(rng.integers(0, 3, 150), np.full(8, 3)), np.tile([0, 1, 2], 53)[:158]
        a, b = a[a != b], b[a != b]
        won = rng.random(len(a)) < 1 / (1 + np.exp(strength[b] - strength[a]))
        votes = pd.DataFrame({"model_a": a, "model_b": b, "winner": np.where(won, "model_a", "model_b")})
        fit, truth = jaxeval.fit_bradley_terry(votes, ridge=1.0), 1000 + 400 / np.log(10) * (1.5 - 1.5 / 4)
        for kept, kind in ((held, "auto"), (own, "wald")):
            lower, upper = (end[3] for end in fit.ends(0.95, kind))
            kept.append(lower <= truth <= upper)
    assert np.mean(held) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 40) > np.mean(own)


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize(("n_models", "n_games"), [(2, 12), (3, 6), (5, 30)])
def test_a_ridge_claims_no_more(n_models, n_games, ridge):
    votes = equal_competitors(n_models, n_games, 0.0, seed=n_games)
    boards = jaxeval.bootstrap(
        votes, 300, by="board", min_slice_battles=1, max_slices=N_BOARDS, progress=False, ridge=ridge
    )
    tiers = max(sum((x.tiers() > 1).any() for x in xs) for xs in (boards.values(), [x.joint for x in boards.values()]))
    assert max(claims(boards)[1], tiers) <= N_BOARDS * (0.05 + 3 * np.sqrt(0.05 * 0.95 / N_BOARDS))


@pytest.mark.slow
@pytest.mark.parametrize(("n_models", "n_games", "ties"), [(2, 3, 0.3), (2, 20, 0.3), (2, 40, 0.0), (3, 40, 0.3)])
def test_a_leader_is_claimed_on_one_board_of_twenty(n_models, n_games, ties):
    votes = equal_competitors(n_models, n_games, ties, seed=n_games)
    boards = jaxeval.bootstrap(votes, 400, by="board", min_slice_battles=1, max_slices=N_BOARDS, progress=False)
    assert len(boards) == N_BOARDS
    assert max(claims(boards)) <= N_BOARDS * (0.05 + 3 * np.sqrt(0.05 * 0.95 / N_BOARDS))
