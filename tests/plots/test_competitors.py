"""Figures say what is rated by the word that the data have for it."""

import re

import pytest

import jaxeval
from jaxeval import plots

SIDES = {"model_a": "player_1", "model_b": "player_2"}


@pytest.fixture(scope="module")
def games():
    votes = jaxeval.simulate_votes(1_500, 6, seed=0, details=True)
    return jaxeval.Battles.from_pandas(votes.rename(columns=SIDES), **SIDES)


@pytest.fixture(scope="module")
def board(games):
    return jaxeval.leaderboard(games, n_resamples=60)


def texts(figure):
    """All that a figure says but names beside its rows."""
    own = [text.get_text() for text in figure.texts]
    for axis in figure.axes:
        own += [axis.get_xlabel(), axis.get_ylabel(), axis.get_title(loc="left"), *(t.get_text() for t in axis.texts)]
    return " ".join([*own, figure.get_suptitle(), figure.get_supxlabel()])


def test_rows_that_are_left_out_have_it(games, board):
    found = jaxeval.compare_boards(games.filter(lambda votes: votes.index < 1300), games, n_resamples=60)
    effect = jaxeval.style_effect(games, [("length_a", "length_b")], n_resamples=60)
    figures = {
        "leaderboard": plots.plot_leaderboard(board, top=4),
        "boards": plots.plot_boards(board, board, top=4),
        "comparison": plots.plot_comparison(found, top=4),
        "history": plots.plot_history({"Monday": board, "Tuesday": board}, top=4),
        "style": plots.plot_style_effect(effect, top=4),
    }
    for name, figure in figures.items():
        assert "2 more players not shown" in texts(figure), name
        assert not re.search(r"\bmodels?\b(?!-)", texts(figure)), name


def test_titles_and_axes_have_it(games):
    sliced = plots.plot_slices(jaxeval.leaderboard(games, by="language", n_resamples=60))
    assert "Players by slice" in texts(sliced)
    pairs = jaxeval.goodness_of_fit(games, n_resamples=99, level=0.9, progress=False).pairs
    assert "expected points of the first player, %" in texts(plots.plot_pair_fit(pairs))


def test_nothing_to_rank(board):
    unranked = board.assign(rank=board["rank"].where(board["rank"] < 0))
    unranked.attrs = board.attrs
    assert "no player takes a rank" in texts(plots.plot_leaderboard(unranked))


def test_models_are_models():
    board = jaxeval.leaderboard(jaxeval.simulate_battles(1_500, 6), n_resamples=60)
    assert "2 more models not shown" in texts(plots.plot_leaderboard(board, top=4))
