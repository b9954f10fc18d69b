"""All diagnostics at once, from raw scores in two orders, and their figures."""

from dataclasses import replace

import numpy as np
import pytest
from judged import read, two_orders
from matplotlib.figure import Figure

import jaxeval
from jaxeval.plots import soft_elo as soft_elo_plots
from jaxeval.plots.style import save_figures
from jaxeval.softelo import judge_agreement, judge_biases
from jaxeval.softelo.conformal_intervals import leave_one_out_intervals
from jaxeval.softelo.judge_diagnostics import diagnose


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
    position = judge_biases.position_bias(battles)["share"]
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
    table = judge_biases.single_order_ratings(battles, methods=("hard", "soft")).set_index(["model", "method"])
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
    paths = save_figures(figures, tmp_path)
    assert all(path.stat().st_size > 1000 for path in paths)


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
        judge_biases.single_order_ratings(read(frame, **options, hard_label=label)) for label in ("verdict", "scores")
    )
    one = read(frame.assign(v2=frame["v1"]), **options, hard_label="verdict")
    same = judge_biases.single_order_ratings(one)
    np.testing.assert_allclose(by_verdict["a_first"], same["a_first"], atol=1e-6)
    assert (by_verdict["b_first"] - same["b_first"]).abs().max() > 10
    assert (by_verdict["b_first"] - by_scores["b_first"]).abs().max() > 10
