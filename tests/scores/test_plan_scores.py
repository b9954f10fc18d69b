import re

import numpy as np
import pandas as pd
import pytest
import scipy
from command_line import run
from scored import answers, wide

from jaxeval import DataError, error_budget, plan_scores, simulate_facet_scores
from jaxeval.statistics.variance_components import joint_freedom


@pytest.fixture(scope="module")
def table():
    return answers(200, [0.8, 0.7, 0.4])


@pytest.fixture(scope="module")
def scored():
    return simulate_facet_scores(3, 60, {"judge": 5, "prompt": 3}, seed=2)


def test_neighbours_and_formula(table):
    plan = plan_scores(table, difference=0.05, power=0.9, level=0.9)
    assert plan[["model_a", "model_b"]].to_numpy().tolist() == [["m0", "m1"], ["m1", "m2"]]
    x = wide(table)
    sd = (x["m0"] - x["m1"]).std()
    z, z_power = scipy.stats.norm.ppf(0.95), scipy.stats.norm.ppf(0.9)
    first = plan.iloc[0]
    assert first["smallest_difference"] == pytest.approx((z + z_power) * sd / np.sqrt(200))
    assert first["items_needed"] == int(np.ceil(((z + z_power) * sd / 0.05) ** 2))
    shift = 0.05 / (sd / np.sqrt(200))
    assert first["power"] == pytest.approx(scipy.stats.norm.cdf(shift - z) + scipy.stats.norm.cdf(-shift - z))


def test_power_by_simulation(table):
    """The smallest difference is found as often as the power says, at four standard errors."""
    sd = plan_scores(table, [("m0", "m1")])["sd_between"].item()
    delta = plan_scores(table, [("m0", "m1")], n_items=300)["smallest_difference"].item()
    rng = np.random.default_rng(0)
    x = rng.normal(delta, sd, (2000, 300))
    found = np.mean(np.abs(x.mean(1)) > 1.96 * x.std(1, ddof=1) / np.sqrt(300))
    assert abs(found - 0.8) < 4 * np.sqrt(0.16 / 2000)


def test_trials_take_the_noise_within_items():
    rng = np.random.default_rng(0)
    chance = rng.beta(2, 2, (2000, 2))
    runs = (rng.random((4, 2000, 2)) < chance).astype(float)
    t, i, m = (x.reshape(-1) for x in np.indices(runs.shape))
    frame = pd.DataFrame({"model": m, "item": i, "trial": t, "score": runs.reshape(-1)})
    plan = plan_scores(frame, [(0, 1)], n_trials=[1, 4, 16])
    within = np.sqrt(2 * (0.25 - 0.05))  # of Beta(2, 2): mean .5, variance .05
    assert plan["sd_within"].tolist() == pytest.approx([within] * 3, rel=0.03)
    assert plan["sd_between"].tolist() == pytest.approx([np.sqrt(0.1)] * 3, rel=0.06)
    assert plan["smallest_difference"].is_monotonic_decreasing


def test_what_is_refused(table):
    with pytest.raises(DataError, match="a plan of 3 trials needs the spread of trials, and some items have 1"):
        plan_scores(table, n_trials=[3])
    with pytest.raises(ValueError, match=r"power must be between 0 and 1, got 2"):
        plan_scores(table, power=2)
    with pytest.raises(ValueError, match=r"difference must be a finite number above 0"):
        plan_scores(table, difference=0.0)
    with pytest.raises(DataError, match="one model only"):
        plan_scores(table[table["model"] == "m0"])


def test_a_gate_passes_as_often_as_was_planned(table):
    """A model as good as the old one passes with the power that was asked for, at four standard errors."""
    plan = plan_scores(table, [("m0", "m1")], n_items=300, difference=0.05, one_sided=True).iloc[0]
    sd, margin = plan["sd_between"], plan["smallest_difference"]
    x = np.random.default_rng(0).normal(0, sd, (2000, 300))
    t = (x.mean(1) + margin) / (x.std(1, ddof=1) / np.sqrt(300))
    assert abs(np.mean(t > scipy.stats.norm.ppf(0.95)) - 0.8) < 4 * np.sqrt(0.16 / 2000)
    z = scipy.stats.norm.ppf(0.95)
    assert plan["power"] == pytest.approx(scipy.stats.norm.cdf(0.05 / (sd / np.sqrt(300)) - z))
    assert plan["items_needed"] == np.ceil((sd * (z + scipy.stats.norm.ppf(0.8)) / 0.05) ** 2)


def test_models_that_never_differ_are_planned_as_if_one_item_did(table):
    twin = pd.concat([table, table[table["model"] == "m0"].assign(model="twin")])
    plan = plan_scores(twin, [("m0", "twin")], difference=0.05).iloc[0]
    n, z = plan["n_items"], scipy.stats.norm.ppf([0.975, 0.8]).sum()
    assert z * np.sqrt(1 / (n + 1) / n) < plan["smallest_difference"]  # the exact test finds less
    assert plan["smallest_difference"] == pytest.approx(scipy.stats.beta.ppf(0.8, 6, n - 5))
    needed = int(plan["items_needed"])
    assert scipy.stats.binom.sf(5, needed - 1, 0.05) < 0.8 <= scipy.stats.binom.sf(5, needed, 0.05)
    assert plan["power"] == pytest.approx(scipy.stats.binom.sf(5, n, 0.05))
    assert plan["flags"].startswith("no observed variance of the difference: planned as if one more item")


@pytest.mark.parametrize("n", [2, 5, 8, 30])
def test_a_plan_of_few_items_promises_what_the_exact_test_finds(n):
    """Where the better model alone is right on a share D of the items, McNemar's test finds it with the power at most.

    Fewer than six items find nothing, whatever the difference: 2 / 2^5 is more than .05.
    """
    won = np.arange(n) % 2
    few = pd.concat([pd.DataFrame({"model": m, "item": range(n), "score": x}) for m, x in (("a", won), ("b", 1 - won))])
    plan = plan_scores(few, difference=0.6)
    row = plan.iloc[0]
    assert row["power"] <= scipy.stats.binom.sf(5, n, 0.6) + 1e-12
    if n <= 8:
        assert np.isnan(row["smallest_difference"])
        assert plan.answer.sentences[0].startswith("found with power 0.8: not even a difference of 1; 0.6 is found")
        assert "not even a difference of 1 is found" in row["flags"]
    else:
        assert scipy.stats.binom.sf(5, n, row["smallest_difference"]) >= 0.8
    gate = plan_scores(few, one_sided=True, n_items=2).iloc[0]
    assert np.isnan(gate["smallest_difference"])
    assert "not even a margin of 1 is found" in gate["flags"]


def test_clusters_count_as_in_comparisons(table):
    """Each item five times is one cluster of five: no more is known than of single items."""
    five = pd.concat([table.assign(item=table["item"] * 5 + k, cluster=table["item"]) for k in range(5)])
    alone, repeated = (plan_scores(x, [("m0", "m1")]).iloc[0] for x in (table, five))
    assert repeated["n_items"] == 5 * alone["n_items"]
    assert repeated["smallest_difference"] == pytest.approx(alone["smallest_difference"], rel=0.01)


class TestRandomFacets:
    """Plans where judges and prompts are drawn anew, too."""

    def test_parts_of_the_variance_shrink_with_their_levels(self, scored):
        of = error_budget(scored, ["judge", "prompt"]).differences.set_index(["model_a", "model_b"])
        pair = ("model-1", "model-3")
        parts = {name: of.loc[pair, f"variance_{name}"] for name in ("item", "judge", "prompt", "residual")}
        (row,) = plan_scores(
            scored, [pair], random=["judge", "prompt"], n_items=240, n_levels={"judge": 10}, difference=0.1, level=0.9
        ).to_dict("records")
        own = parts["item"] / 4, parts["judge"] / 2, parts["prompt"], parts["residual"] / 8
        assert row["standard_error"] ** 2 == pytest.approx(sum(own))
        dof = joint_freedom(np.array(own), np.array([239.0, 9, 2, 239]), sum(own))
        mean = np.array(own) / sum(own) @ scipy.stats.t.ppf(0.975, [239, 9, 2, 239])
        satterthwaite = min(sum(own) ** 2 / (np.array(own) ** 2 @ (1 / np.array([239, 9, 2, 239]))), 8 * 2**2)
        fewer = scipy.stats.t.ppf(0.975, satterthwaite)
        between = fewer + 0.6 / 2 * (mean - fewer)
        assert scipy.stats.t.ppf(0.975, dof) == pytest.approx(between, rel=1e-3)  # items and single scores are pooled
        t, z = scipy.stats.t.ppf([0.95, 0.8], dof)
        assert row["smallest_difference"] == pytest.approx((t + z) * row["standard_error"])
        assert (row["n_items"], row["n_judge"], row["n_prompt"]) == (240, 10, 3)

    def test_items_needed_are_the_fewest(self, scored):
        options = {"random": "judge", "difference": 0.12, "pairs": [("model-1", "model-2")]}
        n = plan_scores(scored, **options)["items_needed"].item()
        enough, few = (plan_scores(scored, n_items=k, **options)["smallest_difference"].item() for k in (n, n - 1))
        assert enough <= 0.12 < few
        never = plan_scores(scored, **options | {"difference": 1e-4})
        assert pd.isna(never["items_needed"].item())
        assert "for 1 pair not even 100,000,000 items find it" in never.answer.sentences[0]

    @pytest.mark.parametrize(("options", "error"), [
        ({"n_levels": {"judge": 4}}, "n_levels are of random facets"),
        ({"random": "judge", "n_levels": {"jugde": 4}}, "did you mean 'judge'"),
        ({"random": "judge", "n_levels": {"judge": 1}}, "n_levels of judge"),
        ({"random": "judge", "n_trials": [2]}, "n_trials do not go with random facets"),
    ])  # fmt: skip
    def test_what_is_refused(self, scored, options, error):
        with pytest.raises(ValueError, match=error):
            plan_scores(scored, **options)

    def test_command(self, scored, tmp_path):
        scored.to_csv(tmp_path / "facets.csv", index=False)
        line = "plan-scores", tmp_path / "facets.csv", "--random", "judge,prompt", "--difference", 0.1
        result = run(*line, "--n-levels", "judge=8", "--out", tmp_path / "plan.csv")
        assert result.exit_code == 0, result.output
        expected = plan_scores(scored, random=["judge", "prompt"], n_levels={"judge": 8}, difference=0.1)
        written = pd.read_csv(tmp_path / "plan.csv")
        assert written["smallest_difference"].tolist() == pytest.approx(expected["smallest_difference"].tolist())
        assert "--n-levels takes NAME=N" in run(*line, "--n-levels", "judge").output


def test_very_large_scores_have_an_exponent_in_words(tmp_path):
    """And not thirty digits, of which sixteen are known; so do the board and the comparison."""
    values = np.random.default_rng(0).uniform(size=(50, 2)) * 1e29
    rows = [f"{model},{item},{values[item, k]}" for item in range(50) for k, model in enumerate("ab")]
    (tmp_path / "scores.csv").write_text("\n".join(["model,item,score", *rows]))
    for arguments in (["plan-scores", "--difference", 1], ["compare-scores", "a", "b"], ["scores"], ["error-budget"]):
        first = run(*arguments, tmp_path / "scores.csv").output.splitlines()[0]
        assert "e+28" in first or arguments == ["error-budget"]
        assert re.search(r"\d{10}", first) is None
