"""What control does to a board, and its figures."""

import numpy as np
import pandas as pd
import pytest
from styled import FEATURES, styled

from jaxeval import Battles, bootstrap, fit_bradley_terry
from jaxeval.plots.boards import plot_coefficients, plot_style_effect
from jaxeval.ratings.contextual_effects import style_effect


@pytest.fixture(scope="module")
def battles():
    """One model writes at length: control moves it down."""
    votes = styled()
    wordy = (votes["model_a"] == "model-3").astype(float) - (votes["model_b"] == "model-3")
    rng = np.random.default_rng(5)
    won = rng.random(len(votes)) < 0.25 * np.abs(wordy)
    winner = votes["winner"].mask(won & (wordy > 0), "model_a").mask(won & (wordy < 0), "model_b")
    return Battles.from_pandas(votes.assign(length=votes["length"] + 1.5 * wordy, winner=winner))


@pytest.fixture(scope="module")
def effect(battles):
    return style_effect(battles, FEATURES, n_resamples=32)


def test_ratings_with_and_without(battles, effect):
    table = effect.set_index("model").sort_index()
    controlled, plain = fit_bradley_terry(battles, features=FEATURES), fit_bradley_terry(battles)
    np.testing.assert_allclose(table["rating"], controlled.ratings, atol=1e-6)
    np.testing.assert_allclose(table["rating_plain"], plain.ratings, atol=1e-5)
    np.testing.assert_allclose(table["shift"], table["rating"] - table["rating_plain"])
    assert table["shift"].idxmin() == "model-3"
    assert table.loc["model-3", "shift_upper"] < 0
    assert table["rank"].tolist() == controlled.ratings.rank(ascending=False).astype(int).tolist()
    assert effect["rating"].is_monotonic_decreasing
    ratio = (table["standard_error"] / table["standard_error_plain"]) ** 2
    np.testing.assert_allclose(table["variance_ratio"], ratio)
    # The price of control is highest for the model whose length is its own.
    assert table["variance_ratio"].idxmax() == "model-3"


def test_models_with_too_few_battles_take_no_rank(battles, effect):
    """Nor a line in the figure; the others' ranks are among themselves."""
    votes = fit_bradley_terry(battles).n_battles
    least = int(votes.median()) + 1
    table = style_effect(battles, FEATURES, n_resamples=32, min_battles=least)
    ranked = (votes[table["model"]] >= least).to_numpy()
    assert 0 < ranked.sum() < len(table)
    assert table["rank"].notna().tolist() == table["rank_plain"].notna().tolist() == ranked.tolist()
    assert table["rank"][ranked].tolist() == list(range(1, ranked.sum() + 1))
    pd.testing.assert_series_equal(table["shift"], effect["shift"])
    assert len(plot_style_effect(table).axes[0].get_yticks()) == ranked.sum()


def test_shifts_are_of_the_same_resamples(battles, effect):
    """Their intervals are narrower than those of ratings by far."""
    drawn = bootstrap(battles, 32, features=FEATURES)
    width = drawn.interval().eval("upper - lower").sort_index().to_numpy()
    table = effect.set_index("model").sort_index()
    own = (table["shift_upper"] - table["shift_lower"]).to_numpy()
    others = table.index != "model-3"
    assert (own[others] < width[others]).all()
    assert ((table["shift_lower"] < table["shift"]) & (table["shift"] < table["shift_upper"])).all()


def test_what_it_rests_on(effect):
    names = [record["feature"] for record in effect.attrs["coefficients"]]
    assert names == FEATURES
    assert effect.attrs["settings"]["n_resamples"] == 32
    with pytest.raises(ValueError, match="no features: there is nothing to control for"):
        style_effect(pd.DataFrame(), [])


def test_figures(battles, effect):
    figure = plot_style_effect(effect, top=4)
    figure.canvas.draw()
    ratings, shifts = figure.axes
    assert [text.get_text() for text in ratings.get_yticklabels()] == [
        f"{row.rank}  {row.model}  ({row.rank_plain})" for row in effect.head(4).itertuples()
    ]
    assert "2 more models not shown" in ratings.get_xlabel()
    np.testing.assert_allclose(shifts.collections[1].get_offsets()[:, 0], effect["shift"].head(4))
    fit = fit_bradley_terry(battles, features=FEATURES)
    figure = plot_coefficients(fit.coefficients())
    figure.canvas.draw()
    np.testing.assert_allclose(figure.axes[0].collections[1].get_offsets()[:, 0], fit.coefficients()["odds_ratio"])


@pytest.mark.usefixtures("on_the_host")
def test_coefficients_of_probits_are_shown_themselves(battles):
    table = fit_bradley_terry(battles, features=FEATURES, link="probit").coefficients()
    figure = plot_coefficients(table)
    figure.canvas.draw()
    (axis,) = figure.axes
    np.testing.assert_allclose(axis.collections[1].get_offsets()[:, 0], table["coefficient"])
    assert "probits" in axis.get_xlabel()
    assert axis.get_xscale() == "linear"


def test_the_plain_board_of_raw_covariates(battles):
    """However large their values are."""
    raw = Battles.from_pandas(battles.to_pandas().assign(length=lambda t: 1e6 * t["length"]), target="target")
    found = style_effect(raw, FEATURES, normalize=False, n_resamples=32).set_index("model").sort_index()
    np.testing.assert_allclose(found["rating_plain"], fit_bradley_terry(battles).ratings, atol=1e-8)


def test_both_boards_go_on_from_a_checkpoint(battles, effect, tmp_path, monkeypatch):
    kept = style_effect(battles, FEATURES, n_resamples=32, checkpoint=tmp_path)
    pd.testing.assert_frame_equal(kept, effect)
    assert {path.name for path in tmp_path.iterdir()} == {"controlled", "plain"}
    monkeypatch.setattr("jaxeval.execution.lanes._store", None)  # nothing is run
    again = style_effect(battles, FEATURES, n_resamples=32, checkpoint=tmp_path)
    pd.testing.assert_frame_equal(again, effect)


def test_options_that_are_none_are_named(battles):
    with pytest.raises(TypeError, match=r"style_effect\(\) got an unexpected keyword argument 'by'"):
        style_effect(battles, FEATURES, by="language")
