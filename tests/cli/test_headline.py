"""`jaxeval horizons` and `jaxeval index`: the tables are those of Python, with costs and release dates."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from command_line import run, said

import jaxeval

FEW = ("--resamples", "40", "--quiet")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "runs.jsonl"
    table = jaxeval.simulate_runs(3, 40, 20, 2, seed=4)
    dates = {"agent-1": "2023-01-01", "agent-2": "2024-01-01", "agent-3": "2025-01-01"}
    table = table.assign(released=table["agent"].map(dates), price=table["agent"].str[-1].astype(int))
    table = table.rename(columns={"agent": "alias", "task": "task_id", "family": "task_family",
                                  "minutes": "human_minutes", "success": "score_binarized"})  # fmt: skip
    table.to_json(path, orient="records", lines=True)
    return path


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    path = tmp_path_factory.mktemp("scores") / "scores.csv"
    table = jaxeval.simulate_benchmark_scores(9, 8, seed=3)
    table.assign(price=table["model"].str[-1].astype(int)).to_csv(path, index=False)
    return path


def test_horizons(runs, tmp_path, undrawn):
    written = "--out", tmp_path / "found/", "--plot", tmp_path / "curves.svg"
    result = run("horizons", runs, "--resamples", "40", "--released", "released", "--cost", "price", *written)
    assert result.exit_code == 0, result.output
    assert "agent-3 solves 50% of tasks of " in result.output
    assert "horizons double every " in result.output
    assert (tmp_path / "curves.svg").stat().st_size > 1000
    table = pd.read_csv(tmp_path / "found" / "horizons.csv", comment="#")
    expected = jaxeval.time_horizons(pd.read_json(runs, lines=True), n_resamples=40, progress=False).table
    pd.testing.assert_frame_equal(table[["agent", "horizon"]], pd.DataFrame(expected)[["agent", "horizon"]])
    names = {path.name for path in (tmp_path / "found").iterdir()}
    assert {"trend.csv", "doubling.csv", "front.csv", "horizons.png", "trend.png", "front.png"} <= names
    doubling = pd.read_csv(tmp_path / "found" / "doubling.csv", comment="#").set_index("choice")
    assert doubling.loc["as asked", "days"] == doubling.loc["all agents", "days"]


def test_agents_that_never_fail_have_no_choices(tmp_path):
    (tmp_path / "all.csv").write_text("agent,task,minutes,success\n" + "".join(f"x,t{k},5,1\n" for k in range(10)))
    found = run("horizons", tmp_path / "all.csv", "--resamples", "40").output
    assert "no agent has both successes and failures enough for a horizon" in found
    assert "Choices" not in found


def test_index(scores, tmp_path):
    out = tmp_path / "index.json"
    result = run("index", scores, *FEW, "--fix", "model-1=100", "--fix", "model-9=150", "--out", out)
    assert result.exit_code == 0, result.output
    rows = json.loads(out.read_text())
    index = {row["model"]: row["index"] for row in rows.get("rows", rows.get("table", []))}
    assert index["model-1"] == pytest.approx(100)
    assert index["model-9"] == pytest.approx(150)


def test_index_on_the_screen(scores, tmp_path, undrawn):
    further = "--forecast", "model-1", "benchmark-2", "--out", tmp_path
    result = run("index", scores, "--resamples", "40", "--cost", "price", *further)
    assert "has the highest index" in result.output
    assert "on the front, from cheap to good: model-1" in result.output
    found = jaxeval.capability_index(pd.read_csv(scores), n_resamples=40, progress=False)
    written = {path.stem: pd.read_csv(path, comment="#") for path in tmp_path.glob("*.csv")}
    expected = found.forecast("model-1", "benchmark-2")
    assert written["forecast"].iloc[0, 2:].tolist() == pytest.approx(list(expected.values()))
    pd.testing.assert_frame_equal(written["most telling"], found.most_telling(), check_dtype=False)
    row = written["without each benchmark"].iloc[0]
    changed = found.without_each_benchmark()
    assert row["change"] == pytest.approx(changed.loc[row["benchmark"], row["model"]])
    assert abs(row["change"]) == pytest.approx(changed.abs().to_numpy().max())


@pytest.mark.parametrize(("options", "error"), [
    (["--fix", "model-1"], "--fix must be MODEL=INDEX"),
    (["--cost", "prize"], "did you mean 'price'"),
    (["--draw", "models"], "--draw"),
])  # fmt: skip
def test_what_is_wrong_with_an_index(scores, options, error):
    result = run("index", scores, *FEW, *options)
    assert result.exit_code != 0
    assert error in " ".join(result.output.split())


@pytest.mark.parametrize(("options", "error"), [
    (["--task-spread", "much"], "--task-spread must be a number or estimate"),
    (["--released", "task_id"], "has several values of 'task_id'"),
])  # fmt: skip
def test_what_is_wrong_with_horizons(runs, options, error):
    result = run("horizons", runs, *FEW, *options)
    assert result.exit_code != 0
    assert error in " ".join(result.output.split())


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    jaxeval.simulate_votes(400, 4, seed=0).to_csv(folder / "votes.csv", index=False)
    prices = pd.DataFrame({"model": [f"model-{k}" for k in range(1, 5)], "price": [8.0, 2.0, 4.0, 1.0]})
    prices.to_csv(folder / "prices.csv", index=False)
    return folder


def test_cost_of_a_leaderboard(votes, tmp_path):
    options = "--metadata", votes / "prices.csv", "--cost", "price", "--at-most", "4", "--out", tmp_path / "board/"
    result = run("leaderboard", votes / "votes.csv", *FEW, *options)
    assert result.exit_code == 0, result.output
    written = {path.stem: path for path in (tmp_path / "board").glob("*.csv")}
    assert (tmp_path / "board" / "front.png").exists()
    board = jaxeval.bootstrap(jaxeval.read_battles(votes / "votes.csv"), 40, progress=False)
    prices = pd.read_csv(votes / "prices.csv").set_index("model")["price"]
    front = jaxeval.pareto_front(board, prices)
    table = pd.read_csv(written["front"], comment="#")
    assert table["model"].tolist() == front.table["model"].tolist()
    assert table["p_front"].tolist() == pytest.approx(front.table["p_front"].tolist(), abs=1e-6)
    best = pd.read_csv(written["best for 4"], comment="#")
    assert best["p_best"].tolist() == pytest.approx(front.best_under(4)["p_best"].tolist(), abs=1e-6)
    assert pd.read_csv(written["dominates"], comment="#").shape == (4, 5)


def test_cost_of_scores_is_drawn_with_them(tmp_path):
    scores = jaxeval.simulate_scores(60, 3, seed=1)
    size = scores["model"].str[-1].astype(float)
    scores["dollars"] = (1 + scores["item"] % 7) * size
    scores.to_csv(tmp_path / "scores.csv", index=False)
    result = run("scores", tmp_path / "scores.csv", *FEW, "--cost", "dollars", "--out", tmp_path / "found/")
    assert result.exit_code == 0, result.output
    quality, cost = (
        jaxeval.score_draws(scores.assign(score=scores[name]), n_resamples=40, progress=False)
        for name in ("score", "dollars")
    )
    ratio = cost.draws / cost.draws[:, :1]
    assert np.ptp(cost.draws[:, 0]) > 0
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape))  # all models met the same items
    table = pd.read_csv(tmp_path / "found" / "front.csv", comment="#")
    expected = jaxeval.pareto_front(quality, cost).table
    assert table["p_front"].tolist() == pytest.approx(expected["p_front"].tolist(), abs=1e-6)


def test_two_items_make_no_model_sure_on_the_front(tmp_path):
    table = pd.DataFrame({"model": list("aabb"), "item": [0, 1] * 2, "score": [0, 0, 1, 1], "price": [1, 1, 2, 2]})
    table.to_csv(tmp_path / "two.csv", index=False)
    output = " ".join(run("scores", tmp_path / "two.csv", "--resamples", "40", "--cost", "price").output.split())
    assert "on the front, from cheap to good: a (100% sure), b (75% sure)" in output


@pytest.mark.parametrize(("options", "error"), [
    (["--cost", "price"], "--cost needs --metadata"),
    (["--at-most", "3"], "--at-most needs --cost"),
    (["--cost", "prize", "--metadata", "prices.csv"], "did you mean 'price'"),
    (["--cost", "price", "--metadata", "prices.csv", "--by", "language"], "--cost and --by do not go together"),
])  # fmt: skip
def test_what_is_wrong_with_a_cost(votes, options, error):
    options = [str(votes / word) if word == "prices.csv" else word for word in options]
    result = run("leaderboard", votes / "votes.csv", *FEW, *options)
    assert result.exit_code != 0
    assert error in " ".join(result.output.split())


def test_runs_as_people_write_them(tmp_path):
    """Lengths with units, passes and failures; who solves all stands first, and rows may be left out."""
    lengths = ["30 s", "2 min", "5m", "0.25 h", "30 mins", "1 hour", "2h", "240", "1 day"]
    solved = {"solver": 99, "mid": 4, "human": 5, "none": 0}
    rows = [
        (agent, f"t{k}", lengths[k % 9], "pass" if k % 9 < most or (k % 9 == most and k % 2) else "Fail")
        for agent, most in solved.items()
        for k in range(27)
    ]
    written = pd.DataFrame(rows, columns=["agent", "task", "minutes", "success"])
    written.to_csv(tmp_path / "runs.csv", index=False)
    minutes = dict(zip(lengths, (0.5, 2, 5, 15, 30, 60, 120, 240, 1440), strict=True))
    plain = written.assign(minutes=written["minutes"].map(minutes), success=written["success"] == "pass")
    table = jaxeval.time_horizons(plain, n_resamples=50).table
    pd.testing.assert_frame_equal(jaxeval.time_horizons(written, n_resamples=50).table, table)
    assert table["agent"][:4].tolist() == ["solver", "human", "mid", "none"]
    printed = said("horizons", tmp_path / "runs.csv", "--resamples", 50, "--where", "agent <> 'human'")
    assert "too seldom fails for a number: solver (over" in printed
    assert "81 of 108 rows" in printed
    assert "human" not in printed.split("rows", 1)[1]


def test_shares_in_percent(scores, tmp_path):
    table = pd.read_csv(scores)
    column = next(name for name in table if name in ("score", "performance", "share"))
    table.assign(**{column: [f"{100 * x:.10g} %" for x in table[column]]}).to_csv(tmp_path / "percent.csv", index=False)
    options = ["--resamples", 20, "--out", "-", "--format", "csv"]
    one, other = (
        pd.read_csv(io.StringIO(run("index", path, *options).stdout)) for path in (scores, tmp_path / "percent.csv")
    )
    pd.testing.assert_frame_equal(one, other, atol=1e-6)
