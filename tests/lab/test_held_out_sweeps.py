"""Budgets and slices against the naive algorithm."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from judged import read, two_orders
from matplotlib.figure import Figure
from scipy.special import expit
from twins import held_out, temperature

import jaxeval
from jaxeval.execution.lanes import LaneRun
from jaxeval.lab.held_out_sweeps import _first_to_reach, budget_sweep, slice_ratings
from jaxeval.plots import soft_elo as soft_elo_plots
from jaxeval.plots.style import save_figure
from jaxeval.softelo.held_out import hold_out
from jaxeval.softelo.temperature import compress

ELO = 400 / np.log(10)


@pytest.fixture(scope="module")
def battles():
    return read(two_orders())


@pytest.mark.parametrize(
    ("budgets", "n_repeats"),
    [((40,), 1), pytest.param((4, 40), 10, marks=pytest.mark.slow)],  # two parts, as most tests have them
)
@pytest.mark.slow
def test_sweep_over_all_battles_is_the_naive_algorithm(battles, budgets, n_repeats):
    a, b, s, human, ridge = battles.model_a, battles.model_b, battles.score_difference, battles.human, 0.05
    (whole,) = hold_out([compress(battles)], (), ridge)
    beta, truth = whole.beta, whole.theta[0]
    known = ~np.isnan(human)
    errors = {"hard": [], "soft": []}
    for fold in range(6):
        fit = np.isin(human, (0, 1)) & (a != fold) & (b != fold)
        assert beta[fold] == pytest.approx(temperature(s[fit], human[fit]), abs=1e-8)
        expected = held_out(a[known], b[known], human[known], 6, fold, ridge)
        assert truth[fold] == pytest.approx(expected, abs=1e-7)
        for method, target in (("hard", battles.hard), ("soft", expit(beta[fold] * s))):
            errors[method].append(abs(held_out(a, b, target, 6, fold, ridge) - expected) * ELO)
    last = budget_sweep(battles, budgets, n_repeats, ridge).set_index(["method", "n_battles"])
    for method, expected in errors.items():
        assert last.loc[(method, 600), "mae"] == pytest.approx(np.mean(expected), abs=1e-4)
    assert last.loc[("soft", 600), "beta"] == pytest.approx(beta.mean())


@pytest.mark.slow
def test_the_figure_shows_the_sweep(battles, tmp_path):
    sweep = budget_sweep(battles, (40,), 1)
    figure = soft_elo_plots.plot_budget(sweep)
    assert isinstance(figure, Figure)
    beta = sweep.loc[sweep["method"] == "soft", "beta"].iloc[-1]
    assert f"{beta:.3f}" in figure.axes[0].get_title(loc="left")
    save_figure(figure, tmp_path / "budget.png", dpi=150)
    assert (tmp_path / "budget.png").stat().st_size > 1000


@pytest.mark.slow
def test_a_slice_is_the_slice_alone_against_all_humans(battles):
    full = slice_ratings(battles, "language", 0.05, full=True)
    rows = np.flatnonzero((battles.columns["language"] == "de").to_numpy())
    (whole,) = hold_out([compress(battles)], (), 0.05)
    pooled, truth = whole.beta, whole.theta[0]
    own = full[(full["slice"] == "de") & (full["method"] == "soft")].set_index("model")["residual"]
    for fold in range(6):
        target = expit(pooled[fold] * battles.score_difference[rows])
        theta = held_out(battles.model_a[rows], battles.model_b[rows], target, 6, fold, 0.05)
        assert own[f"m{fold}"] == pytest.approx((theta - truth[fold]) * ELO, abs=1e-4)
    table = slice_ratings(battles, "language", 0.05)
    assert set(table["method"]) == {"hard", "soft", "soft_own"}
    assert set(table["slice"]) == {"de", "en"}


@pytest.mark.slow
def test_a_slice_of_some_models_is_moved_to_the_scale_of_all():
    """A third of the models, the strongest, have a slice of their own: its mean is not theirs."""
    strengths = jaxeval.simulate_strengths(9, 1.0, seed=2)
    battles = jaxeval.simulate_judged_battles(1000, strengths=strengths, noise=0.5, seed=2)
    best = np.isin(battles.models, strengths.sort_values().index[-4:])
    battles.columns["slice"] = np.where(best[battles.model_a] & best[battles.model_b], "best", "rest")
    full = slice_ratings(battles, "slice", full=True)
    soft = full[(full["slice"] == "best") & (full["method"] == "soft")]["residual"]
    assert len(soft) == 4
    # The zero of the slice alone lies about 200 Elo above that of all models.
    assert abs(soft.mean()) < 40


def test_parts_without_a_temperature_have_no_soft_rating():
    frame = two_orders(400).drop(columns="verdict")
    contrary = jaxeval.JudgedBattles.from_pandas(
        frame.assign(gap=frame["human"].sub(0.5).mul(-2)), score_difference="gap", label_coding="a_wins_1"
    )
    last = budget_sweep(contrary, (20,), 1).set_index(["method", "n_battles"])
    assert last["n_models"].groupby("method").min().to_dict() == {"hard": 6, "soft": 0}
    assert last["n_left_out"].groupby("method").max().to_dict() == {"hard": 0, "soft": 6}


def test_wrong_arguments(battles):
    with pytest.raises(ValueError, match="ridge must be finite and > 0, got 0: subsets separate models"):
        budget_sweep(battles, ridge=0)
    with pytest.raises(ValueError, match="no column 'country'"):
        slice_ratings(battles, "country")


@pytest.mark.slow
def test_budgets_of_clusters_hold_them_whole(battles):
    rng = np.random.default_rng(0)
    prompts = replace(
        battles, columns=battles.columns.assign(prompt=rng.integers(60, size=600), row=rng.permutation(600))
    )
    sizes = prompts.columns["prompt"].value_counts()
    sweep = budget_sweep(prompts, (40,), 3, cluster="prompt")
    n = sweep.loc[sweep["budget"] == 40, "n_battles"]
    assert ((n >= 240) & (n < 240 + sizes.max())).all()
    assert n.iloc[1] != n.iloc[2]
    assert sweep.attrs["settings"]["cluster"] == "prompt"
    pd.testing.assert_frame_equal(budget_sweep(prompts, (40,), 1, cluster="row"), budget_sweep(prompts, (40,), 1))


def test_clusters_are_taken_in_order_until_they_reach_the_budget():
    order, n_of = np.array([3, 0, 2, 1]), np.array([2, 5, 1, 4])
    for size, chosen in ((1, [3]), (4, [3]), (5, [0, 3]), (7, [0, 2, 3]), (8, [0, 1, 2, 3]), (99, [0, 1, 2, 3])):
        assert np.flatnonzero(_first_to_reach(size, order, n_of)).tolist() == chosen


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["budget", pytest.param("slices", marks=pytest.mark.slow)])
def test_finished_folds_are_kept_and_memory_is_limited(kind, tmp_path, monkeypatch):
    battles = jaxeval.simulate_judged_battles(900, 6, seed=3)
    battles.columns["group"] = np.arange(900) % 2

    def rated(**running):
        if kind == "slices":
            return slice_ratings(battles, "group", **running)
        return budget_sweep(battles, (40,), n_repeats=1, **running)

    whole = rated(checkpoint=tmp_path)
    pd.testing.assert_frame_equal(rated(chunk_size=4), whole, rtol=0, atol=1e-9)
    with pytest.raises(jaxeval.MemoryLimitError, match="memory_limit=1 byte is too small"):
        rated(memory_limit=1)
    monkeypatch.setattr(LaneRun, "_finished", _only_none)
    pd.testing.assert_frame_equal(rated(checkpoint=tmp_path), whole)


def _only_none(self, task, lanes, which, results):
    assert len(which) == 0, "a lane is computed again"
    return iter(())
