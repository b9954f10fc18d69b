"""``jaxeval leaderboard --judged``: few votes of people, and many verdicts of a judge."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run as command

import jaxeval

B = 20


def run(*arguments):
    return command("leaderboard", *arguments, "--resamples", B)


@pytest.fixture(scope="module")
def samples():
    return jaxeval.simulate_verdicts(500, 4_000, 6, seed=3)


@pytest.fixture(scope="module")
def files(samples, tmp_path_factory):
    folder = tmp_path_factory.mktemp("verdicts")
    words = np.array(["model_b", "tie", "model_a"])
    human, judged, others = (x.to_pandas().drop(columns="voter") for x in samples)
    human, judged, others = (
        x.assign(
            winner=words[(2 * x["target"]).astype(int)],
            prompt=np.arange(first, first + len(x)),
            language=np.where(np.arange(first, first + len(x)) % 2, "English", "Chinese"),
        )
        .drop(columns="target")
        .astype({"model_a": str, "model_b": str})
        for x, first in ((human, 0), (judged, 0), (others, 500))
    )
    human.to_csv(folder / "votes.csv", index=False)
    pd.concat([others, judged]).to_csv(folder / "verdicts.csv", index=False)
    judged.iloc[:450].to_csv(folder / "fewer.csv", index=False)
    return folder


def test_the_board_is_that_of_python(samples, files, tmp_path):
    out = tmp_path / "board.json"
    result = run(files / "votes.csv", "--judged", files / "verdicts.csv", "--item", "prompt", "--out", out)
    assert result.exit_code == 0, result.output
    board = jaxeval.prediction_powered(*samples, n_resamples=B)
    expected = jaxeval.leaderboard(board)
    found = pd.DataFrame(json.loads(out.read_text())["rows"])
    np.testing.assert_allclose(found["rating"], expected["rating"], atol=1e-6)
    np.testing.assert_allclose(found["lower"], expected["lower"], atol=1e-6)
    lower, upper = board.worth_interval()
    told = f"The judge's 4,000 verdicts are worth {board.worth:,.0f} [{lower:,.0f}, {upper:,.0f}] votes"
    assert told in " ".join(result.output.split())
    assert "penalty" not in result.output.lower().replace("ridge", "")


def test_slices_and_the_table_of_the_judge(files, tmp_path):
    result = run(
        files / "votes.csv", "--judged", files / "verdicts.csv", "--item", "prompt", "--by", "language",
        "--lam", 0.5, "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    judge = pd.read_csv(tmp_path / "out" / "judge.csv")
    assert list(judge["category"]) == sorted(judge["category"])
    assert (judge["lam"] == 0.5).all()
    assert judge["n_human"].sum() == 500
    assert judge["n_judge_only"].sum() == 4_000


@pytest.mark.parametrize(("arguments", "told"), [
    ((), "--judged needs --item"),
    (("--item", "prompt", "--ties", "davidson"), "--ties and --judged do not go together"),
    (("--item", "prompt", "--position"), "--features and --judged do not go together"),
    (("--item", "prompt", "--state", "s.parquet"), "--judged and --state do not go together"),
    (("--item", "promt"), "no column 'promt'"),
])  # fmt: skip
def test_what_does_not_go_together(files, arguments, told):
    result = run(files / "votes.csv", "--judged", files / "verdicts.csv", *arguments)
    assert result.exit_code != 0
    assert told in " ".join(result.output.split())


def test_options_without_verdicts(files):
    result = run(files / "votes.csv", "--item", "prompt")
    assert "needs --judged: the judge's verdicts" in " ".join(result.output.split())


@pytest.mark.parametrize("option", [("--samples", "pooled"), ("--without-verdict", "drop"), ("--lam", 0.5)])
def test_no_option_is_passed_over_without_verdicts(files, option):
    result = run(files / "votes.csv", *option)
    assert result.exit_code == 2
    assert "needs --judged: the judge's verdicts" in " ".join(result.output.split())


def test_verdicts_left_out_are_told(files, tmp_path):
    table = pd.read_csv(files / "verdicts.csv")
    table.loc[:9, "winner"] = None
    table.to_csv(tmp_path / "verdicts.csv", index=False)
    given = "--judged", tmp_path / "verdicts.csv", "--item", "prompt", "--missing", "drop"
    result = run(files / "votes.csv", *given)
    assert "the judge's verdicts: 10 rows left out when they were read" in " ".join(result.output.split())


def test_votes_without_a_verdict(files):
    given = files / "votes.csv", "--judged", files / "fewer.csv", "--item", "prompt"
    assert "50 of 500 battles of people have no verdict" in " ".join(run(*given).output.split())
    result = run(*given, "--without-verdict", "drop")
    assert "all 450 verdicts of the judge are on battles of people" in " ".join(result.output.split())
