"""``random=`` of boards and comparisons of scores: what was sampled besides items counts in the error."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import jaxeval
from jaxeval.cli.main import main


def simulated(seed=1, judges=3, prompts=2, n_items=60, **options):
    return jaxeval.simulate_facet_scores(3, n_items, {"judge": judges, "prompt": prompts}, seed=seed, **options)


def averaged(table):
    return table.groupby(["model", "item"], as_index=False)["score"].mean()


def test_a_comparison_has_the_error_of_the_budget():
    table = simulated()
    found = jaxeval.compare_scores(table, "model-1", "model-2", random=["judge", "prompt"], margin=0.1)
    row = jaxeval.error_budget(table, ["judge", "prompt"]).differences.iloc[0]
    assert found.standard_error == pytest.approx(row["standard_error"])
    alone = jaxeval.compare_scores(averaged(table), "model-1", "model-2", margin=0.1)
    assert found.difference == pytest.approx(alone.difference)
    assert found.upper - found.lower >= alone.upper - alone.lower
    assert found.p_student >= alone.p_student
    assert found.p_non_inferior >= alone.p_non_inferior
    assert np.isnan([found.p_mcnemar, found.p_sign_flip, found.p_anytime]).all()
    first = found.answer.sentences[0]
    assert first.startswith("for judges, prompts and items like these (3 judges, 2 prompts, 60 items): ")
    assert any(text.startswith("prompt has two levels") for text in found.warnings)


def test_items_alone_are_what_they_were():
    """A facet that each score has a level of its own of adds nothing, nor does an empty list."""
    table = averaged(simulated())
    plain = jaxeval.compare_scores(table, "model-1", "model-2")
    found = jaxeval.compare_scores(table, "model-1", "model-2", random=[])
    assert found.lower == plain.lower
    own = jaxeval.compare_scores(table.assign(seed=table["item"]), "model-1", "model-2", random="seed")
    assert (own.lower, own.upper) == pytest.approx((plain.lower, plain.upper), rel=1e-6)
    board = jaxeval.score_leaderboard(table, n_resamples=50)
    faceted = jaxeval.score_leaderboard(table.assign(seed=table["item"]), random="seed", n_resamples=50)
    np.testing.assert_allclose(board["lower"], faceted["lower"], rtol=1e-6)


def test_a_board():
    table = simulated(spreads={"judge": 0.2})
    found = jaxeval.score_leaderboard(table, random=["judge", "prompt"], n_resamples=100)
    budget = jaxeval.error_budget(table, ["judge", "prompt"]).models
    np.testing.assert_allclose(found["standard_error"], budget["standard_error"])
    alone = jaxeval.score_leaderboard(averaged(table), n_resamples=100)
    np.testing.assert_allclose(found["score"], alone["score"])
    assert (found["upper"] - found["lower"] > alone["upper"] - alone["lower"]).all()
    assert found.answer.sentences[0].startswith("for judges, prompts and items like these")
    assert found.attrs["settings"]["random"] == ["judge", "prompt"]
    joint = jaxeval.score_draws(table, random=["judge", "prompt"], n_resamples=400)
    error = joint.draws.std(0) / jaxeval.score_draws(averaged(table), n_resamples=400).draws.std(0)
    assert (error > 1.2).all()


def test_a_gate_is_the_test_of_a_comparison_on_each_task():
    table = pd.concat([simulated(seed).assign(benchmark=f"task-{seed}") for seed in (1, 2)])
    gate = jaxeval.score_gate(table, "model-1", "model-2", margin=0.2, random=["judge"])
    alone = jaxeval.compare_scores(simulated(2), "model-1", "model-2", margin=0.2, random=["judge"])
    row = gate.table.iloc[1]
    assert (row["task"], row["p_pass"], row["p_fail"]) == ("task-2", alone.p_non_inferior, alone.p_inferior)
    assert gate.answer.sentences[0].startswith(f"{gate.verdict}: for judges and items like these")


def test_one_level():
    table = simulated(judges=1)
    found = jaxeval.compare_scores(table, "model-1", "model-2", random=["judge"], margin=0.1)
    assert np.isnan([found.lower, found.upper, found.p_student, found.p_non_inferior, found.p_equivalent]).all()
    assert "no interval and no p-value, as judge has one level" in found.answer.sentences[0]
    board = jaxeval.score_leaderboard(table, random="judge", n_resamples=50)
    assert board[["lower", "upper", "standard_error", "tier"]].isna().all(axis=None)
    assert "no interval, as judge has one level" in board.answer.sentences[0]
    several = jaxeval.compare_with_baseline(table, "model-1", random="judge")
    assert several["p_holm"].isna().all()
    assert several["flags"].str.startswith("judge has one level").all()


def test_what_is_refused():
    table = simulated(judges=3)
    own = table[table["model"].str[-1] == table["judge"].str[-1]]
    for call in (
        lambda: jaxeval.compare_scores(own, "model-1", "model-2", random="judge"),
        lambda: jaxeval.score_leaderboard(own, random="judge"),
    ):
        with pytest.raises(jaxeval.DataError, match="'judge' is confounded with the models"):
            call()
    with pytest.raises(ValueError, match="leave population and benchmark_weights at their defaults"):
        jaxeval.score_leaderboard(table, random="judge", population="trials")
    with pytest.raises(ValueError, match="peek and bounds do not go with random facets"):
        jaxeval.score_gate(table, "model-1", "model-2", margin=0.1, random="judge", peek=True)
    with pytest.raises(jaxeval.DataError, match="compared with itself"):
        jaxeval.compare_scores(table, "model-1", "model-1", random="judge")


def test_the_commands(tmp_path):
    table = simulated()
    file = tmp_path / "facets.csv"
    table.to_csv(file, index=False)

    def said(*arguments, code=0):
        result = CliRunner().invoke(main, [*map(str, arguments)])
        assert result.exit_code == code, result.output
        return " ".join(result.output.split())

    random = ["--random", "judge,prompt"]
    first = "for judges, prompts and items like these (3 judges, 2 prompts, 60 items)"
    assert first in said("scores", file, *random, "--resamples", 50, "--out", tmp_path / "board.csv")
    written = pd.read_csv(tmp_path / "board.csv", comment="#")
    expected = jaxeval.score_leaderboard(table, random=["judge", "prompt"], n_resamples=50)
    np.testing.assert_allclose(written["lower"], expected["lower"])
    assert first in said("compare-scores", "model-1", "all", file, *random)
    gate = "compare-scores", "model-1", "model-3", file, "--gate", "--margin"
    assert f"PASS: {first}: model-1 is not worse than model-3" in said(*gate, 0.3, *random)
    open_one = said(*gate, 0.001, "--random", "judge", "--level", 0.9999, code=2)
    assert "INCONCLUSIVE: for judges and items like these" in open_one
    assert "`error_budget` says what would make the error smaller" in open_one
    one = tmp_path / "one.csv"
    table[table["judge"] == "judge-1"].to_csv(one, index=False)
    lone = said("compare-scores", "model-1", "model-3", one, "--gate", "--margin", 0.3, *random, code=2)
    assert "judge has one level" in lone
    assert "--random and --peek do not go together" in said(*gate, 0.1, "--peek", *random, code=3)
    assert "judges, prompts or seeds" in said("scores", file, code=1)
    assert "error-budget" in said(file)
    assert "--random judge,prompt" in said(file)
    by_item = table[table["item"].str[-1] == table["judge"].str[-1]].drop_duplicates(["model", "item"])
    by_item.to_csv(one, index=False)
    asked = said("scores", one, "--resamples", 50)
    assert "if another evaluation would draw other judges, --random judge counts them" in asked
    assert "would draw" not in said("scores", one, "--resamples", 50, "--random", "judge")


@pytest.mark.slow
def test_equal_models_are_seldom_told_apart():
    """Six equal models, three judges: tiers and Holm's steps at .95 err in 5 % of the boards, or few more."""
    alike, n = 0, 300
    for seed in range(n):
        table = jaxeval.simulate_facet_scores(
            6, 50, {"judge": 3}, spreads={"judge": 0.05 * (seed % 2)}, gap=0.0, seed=seed
        )
        alike += jaxeval.score_leaderboard(table, random="judge", n_resamples=2)["tier"].max() == 1
    assert alike / n > 0.95 - 3 * np.sqrt(0.05 * 0.95 / n)
