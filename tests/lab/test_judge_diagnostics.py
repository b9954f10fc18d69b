"""All diagnostics at once, from raw scores in two orders, and their figures."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from judged import read, residual_table, two_orders
from matplotlib.figure import Figure

import jaxeval
from jaxeval.lab import judge_diagnostics
from jaxeval.lab.held_out_sweeps import leave_one_out_intervals
from jaxeval.lab.judge_diagnostics import diagnose
from jaxeval.plots import soft_elo as soft_elo_plots
from jaxeval.show.files import write_answer
from jaxeval.show.shown import Answer
from jaxeval.softelo import judge_agreement


@pytest.fixture(scope="module")
def battles():
    return read(two_orders(n=800, m=8), verdict="verdict")


@pytest.fixture(scope="module")
def held_out(battles):
    return jaxeval.soft_elo(battles, n_resamples=200)


@pytest.fixture(scope="module")
def found(battles, held_out):
    families = {f"m{k}": "x" if k < 3 else "y" for k in range(8)}
    return diagnose(battles, held_out, length_a="long_a", length_b="long_b", families=families, judge_family="x")


def test_everything_that_raw_two_order_data_allows_is_there(battles, found):
    assert found.left_out == []
    headline = found.headline["value"]
    position = judge_diagnostics.position_bias(battles)["share"]
    assert headline["first answer preferred"] == position["position_1"]
    assert headline["sign of the scores flips with the order"] == position["flip"]
    assert headline["mean |score difference|"] == pytest.approx(np.abs(battles.score_difference).mean())
    errors = found.tables["reliability"].attrs["settings"]
    rows = found.headline.loc[["calibration error (ECE)", "ECE of a judge without error", "ECE without that noise"]]
    assert rows["value"].tolist() == [errors["ece"], errors["ece_floor"], errors["ece_debiased"]]
    assert rows["upper"].iloc[2] == errors["ece_upper"]
    assert headline["temperature (beta)"] == jaxeval.fit_temperature(battles.score_difference, battles.human).beta
    label = np.mean(battles.verdict != battles.judge)
    assert headline["verdict is not the label of the scores"] == pytest.approx(label)
    assert headline["kappa, all battles"] == judge_agreement.agreement(battles).loc["all", "kappa"]
    assert set(found.tables) == {
        "reliability", "agreement_by_score_gap", "agreement", "verdict_disagreement", "score_gap_by_strength",
        "residual_ramp", "position_bias", "single_order_ratings", "longer_answer_preference", "length_correlation",
        "family_excess",
    }  # fmt: skip
    assert found.warnings == [w for table in found.tables.values() for w in table.attrs["warnings"]]


def test_what_the_data_lacks_is_said(held_out):
    frame = two_orders(n=800, m=8).drop(columns="verdict")
    one = jaxeval.JudgedBattles.from_pandas(frame, scores_a="a1", scores_b="b1", label_coding="a_wins_1")
    found = diagnose(one, held_out)
    absent = {sentence.partition(":")[0] for sentence in found.left_out}
    assert absent == {
        "verdict disagreement", "position bias", "single order ratings", "longer answer preference",
        "length correlation", "family excess",
    }  # fmt: skip


def test_one_order_alone_is_the_fit_of_its_scores():
    battles = read(two_orders())
    table = judge_diagnostics.single_order_ratings(battles, methods=("hard", "soft")).set_index(["model", "method"])
    for name, column, a, b in (("first", "a_first", "a1", "b1"), ("second", "b_first", "a2", "b2")):
        frame = two_orders().drop(columns="verdict")
        one = jaxeval.JudgedBattles.from_pandas(frame, scores_a=a, scores_b=b, label_coding="a_wins_1")
        alone = jaxeval.soft_elo(one, n_resamples=0, methods=("hard", "soft")).models.set_index(["model", "method"])
        np.testing.assert_allclose(table[column], alone["judge_elo"], atol=1e-6, err_msg=name)
        assert table.attrs["settings"]["mae"][column]["soft"] == pytest.approx(
            alone["residual"].abs().xs("soft", level="method").mean()
        )
    np.testing.assert_allclose(table["difference"], table["a_first"] - table["b_first"])


@pytest.mark.slow
def test_figures_show_the_tables(held_out, found, tmp_path):
    figures = {
        "held_out": soft_elo_plots.plot_held_out(held_out),
        "intervals": soft_elo_plots.plot_intervals(leave_one_out_intervals(held_out, 0.8)),
        "calibration": soft_elo_plots.plot_calibration(
            found.tables["agreement_by_score_gap"], found.tables["reliability"]
        ),
        "ramp": soft_elo_plots.plot_ramp(found.tables["residual_ramp"]),
    }
    assert all(isinstance(figure, Figure) for figure in figures.values())
    mae = held_out.summary["mae"]
    titles = [axis.get_title(loc="left") for axis in figures["held_out"].axes]
    assert titles == [f"{method}: MAE {mae[method]:.1f} Elo" for method in ("hard", "soft")]
    settings, panel = found.tables["reliability"].attrs["settings"], figures["calibration"].axes[1]
    assert f"ECE {settings['ece']:.3f}" in panel.get_title(loc="left")
    (note,) = (text.get_text() for text in panel.texts)
    assert f"without error shows {settings['ece_floor']:.3f}" in note
    assert f"{settings['ece_debiased']:.3f} [{settings['ece_lower']:.3f}, {settings['ece_upper']:.3f}]" in note
    assert len(figures["ramp"].axes[0].get_legend_handles_labels()[1]) == 2
    lower = figures["intervals"].axes[0].collections[0].get_segments()
    assert len(lower) == 8
    written = write_answer(Answer("", tables={"ratings": held_out.models}, figures=lambda: figures), tmp_path)
    assert written[:2] == ["1 table", "4 figures"]
    assert all((tmp_path / f"{name}.png").stat().st_size > 1000 for name in figures)


def test_clusters_reach_every_interval(battles, held_out, found):
    prompts = replace(battles, columns=battles.columns.assign(prompt=np.arange(battles.n_battles) // 4 % 40))
    clustered = diagnose(prompts, held_out, length_a="long_a", length_b="long_b", cluster="prompt")
    bounds = [table.headline.dropna()[["lower", "upper"]] for table in (found, clustered)]
    assert len(bounds[0]) == len(bounds[1]) > 8
    assert (bounds[0] != bounds[1]).any(axis=1).all()
    changed = clustered.headline["value"] != found.headline["value"]
    assert changed.index[changed].tolist() == ["ECE of a judge without error", "ECE without that noise"]
    gaps = replace(battles, columns=battles.columns.assign(prompt=np.nan))
    with pytest.raises(jaxeval.DataError, match="800 missing values"):
        diagnose(gaps, held_out, cluster="prompt")


def test_one_order_of_verdicts_is_its_own_label():
    """Where verdicts of both orders make the hard label, a single order has its own."""
    frame = two_orders().assign(v1=lambda t: (t["a1"] > 5) * 1.0, v2=lambda t: (t["a2"] < 5) * 1.0)
    options = {"verdict": "v1", "verdict_swapped": "v2"}
    by_verdict, by_scores = (
        judge_diagnostics.single_order_ratings(read(frame, **options, hard_label=label))
        for label in ("verdict", "scores")
    )
    one = read(frame.assign(v2=frame["v1"]), **options, hard_label="verdict")
    same = judge_diagnostics.single_order_ratings(one)
    np.testing.assert_allclose(by_verdict["a_first"], same["a_first"], atol=1e-6)
    assert (by_verdict["b_first"] - same["b_first"]).abs().max() > 10
    assert (by_verdict["b_first"] - by_scores["b_first"]).abs().max() > 10


@pytest.fixture(scope="module")
def shown_twice():
    return read(two_orders())


def test_position_rates_are_the_naive_loop(shown_twice):
    table = judge_diagnostics.position_bias(shown_twice)
    first = [s1 > 0 for s1, _ in shown_twice.orders if s1] + [s2 < 0 for _, s2 in shown_twice.orders if s2]
    flips = [(s1 > 0) != (s2 > 0) for s1, s2 in shown_twice.orders if s1 and s2]
    assert table.loc["position_1", "share"] == pytest.approx(np.mean(first))
    assert table.loc["flip", "share"] == pytest.approx(np.mean(flips))
    assert table.loc["position_1", "lower"] < table.loc["position_1", "share"] < table.loc["position_1", "upper"]
    assert table.attrs["settings"]["advantage"] == pytest.approx(
        (shown_twice.orders[:, 0] - shown_twice.orders[:, 1]).mean() / 2
    )


def test_longer_answers_are_the_naive_loop():
    shown_twice = read(two_orders(), verdict="verdict")
    longer = [
        (j == 1) == (x > y)
        for s, j, x, y in zip(shown_twice.score_difference, shown_twice.hard, shown_twice.columns["long_a"],
                              shown_twice.columns["long_b"], strict=True)
        if abs(s) <= 0.3 and j in (0, 1) and x != y
    ]  # fmt: skip
    found = judge_diagnostics.longer_answer_preference(shown_twice, "long_a", "long_b").iloc[0]
    assert (found["share"], found["n_battles"]) == (pytest.approx(np.mean(longer)), len(longer))


def test_partial_correlation_is_the_textbook_formula(shown_twice):
    rng = np.random.default_rng(6)
    table = residual_table(6).assign(human_elo=rng.normal(1500, 50, 6))
    lengths = []
    for k in range(6):
        a, b = (shown_twice.models[shown_twice.model_a] == f"m{k}", shown_twice.models[shown_twice.model_b] == f"m{k}")
        lengths.append(np.concatenate([shown_twice.columns["long_a"][a], shown_twice.columns["long_b"][b]]).mean())
    c = np.corrcoef([table["residual"], lengths, table["human_elo"]])
    expected = (c[0, 1] - c[0, 2] * c[1, 2]) / np.sqrt((1 - c[0, 2] ** 2) * (1 - c[1, 2] ** 2))
    found = judge_diagnostics.length_correlation(shown_twice, table, "long_a", "long_b")
    assert found["r"][0] == pytest.approx(expected)


def test_family_excess_against_the_other_judges():
    families = {f"m{k}": "x" if k < 10 else "y" for k in range(40)}
    one = residual_table(judge="p")
    other = one.assign(judge="q", residual=one["residual"] - np.where(np.arange(40) < 10, 25.0, 5.0))
    table = judge_diagnostics.family_excess(pd.concat([one, other]), families, {"p": "x", "q": "y"})
    assert table["excess"].to_numpy() == pytest.approx([20, 20])
    alone = judge_diagnostics.family_excess(one.drop(columns="judge"), families, "x")
    by_hand = one["residual"][:10].mean() - one["residual"][10:].mean()
    assert alone["excess"][0] == pytest.approx(by_hand)


def test_too_few_models_of_either_kind_are_counted():
    table = residual_table()
    families = {f"m{k}": "x" if k < 10 else "y" for k in range(11)}
    sentences = judge_diagnostics.family_excess(table, families, "x").attrs["warnings"]
    assert "no standard error with 10 models of family 'x' and 1 of others; two of each are needed" in sentences[0]
    assert sentences[-1] == "29 models without a family are left out"


def test_what_is_absent_is_named(shown_twice):
    with pytest.raises(jaxeval.DataError, match="no column 'words'"):
        judge_diagnostics.longer_answer_preference(shown_twice, "words", "words")
    one = jaxeval.JudgedBattles.from_pandas(
        two_orders().drop(columns="verdict"), scores_a="a1", scores_b="b1", label_coding="a_wins_1"
    )
    with pytest.raises(jaxeval.DataError, match="both presentation orders"):
        judge_diagnostics.position_bias(one)


def test_the_simulated_bias_is_found():
    """0.5 points for the side shown first: the mean advantage within five standard errors, and a rate above a half."""
    biased = jaxeval.simulate_judged_battles(20_000, 10, position_bias=0.5, seed=2)
    # Nearer the ends of the scale the orders cannot differ as much.
    biased = biased.subset(np.abs(biased.score_difference) < 6)
    table = judge_diagnostics.position_bias(biased)
    # The simulator gives the odd twelfth of a point to the second order: 1/24 less on average.
    apart = (biased.orders[:, 0] - biased.orders[:, 1]) / 2
    error = apart.std() / np.sqrt(len(apart))
    assert abs(table.attrs["settings"]["advantage"] - (0.5 - 1 / 24)) < 5 * error
    assert table.loc["position_1", "lower"] > 0.5
    fair = judge_diagnostics.position_bias(jaxeval.simulate_judged_battles(20_000, 10, seed=2))
    assert fair.loc["position_1", "share"] < table.loc["position_1", "share"]
