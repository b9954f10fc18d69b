"""``jaxeval panel``: boards of panels from every form of file."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run as command

import jaxeval

B = 20


def run(*arguments):
    return command("panel", *arguments, "--resamples", B)


@pytest.fixture(scope="module")
def verdicts():
    frame = jaxeval.simulate_panel(150, 4, discriminations=[0.6, 1.0, 1.7], side_biases=[0.5, 0, -0.3], seed=3)
    return frame.assign(lang=np.where(frame["item"] % 2, "en", "de"))


@pytest.fixture(scope="module")
def files(verdicts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("panels")
    verdicts.to_csv(folder / "long.csv", index=False)
    one = verdicts[verdicts["judge"] == "judge-1"].reset_index(drop=True)
    judges = {name: own["verdict"].to_numpy() for name, own in verdicts.groupby("judge")}
    wide = one.drop(columns=["judge", "verdict"]).assign(**judges)
    wide.rename(columns={"item": "what"}).to_csv(folder / "wide.csv", index=False)
    halves = verdicts["item"] < 75
    verdicts[halves].to_csv(folder / "first.csv", index=False)
    verdicts[~halves].to_csv(folder / "second.csv", index=False)
    calls = jaxeval.simulate_judge_outputs(60, 4, judge_noise=[0.5, 2.0], seed=1)
    calls.to_json(folder / "raw.jsonl", orient="records", lines=True)
    return folder


@pytest.fixture(scope="module")
def expected(verdicts):
    return jaxeval.leaderboard(jaxeval.fit_judge_panel(verdicts, B))


@pytest.mark.parametrize("given", [
    pytest.param(["long.csv"], marks=pytest.mark.slow),
    ["wide.csv", "--judges", "judge-1,judge-2,judge-3", "--item", "what"],
    pytest.param(["first.csv", "second.csv"], marks=pytest.mark.slow),
])  # fmt: skip
def test_the_board_is_that_of_python(files, expected, given, tmp_path):
    out = tmp_path / "board.json"
    names = [files / name if name.endswith(".csv") else name for name in given]
    result = run(*names, "--out", out)
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    np.testing.assert_allclose(pd.DataFrame(found["rows"])["rating"], expected["rating"], atol=1e-6)
    np.testing.assert_allclose(
        [row["discrimination_lower"] for row in found["judges"]],
        [row["discrimination_lower"] for row in expected.attrs["judges"]],
        atol=1e-6,
    )
    text = " ".join(result.output.split())
    assert "taste that all its judges share" in text
    assert "Discrimination" in text
    assert "20 cluster resamples of" in text


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--no-side-bias"]])
def test_slices_and_tables(files, tmp_path, options):
    result = run(files / "long.csv", "--by", "lang", *options, "--out", tmp_path / "out", "--quiet")
    assert result.exit_code == 0, result.output
    judges = pd.read_csv(tmp_path / "out" / "judges.csv")
    assert judges["category"].tolist() == ["de"] * 3 + ["en"] * 3
    assert ("side_bias" in judges) == (not options)
    assert set(pd.read_csv(tmp_path / "out" / "leaderboard.csv")["category"]) == {"de", "en"}


def test_what_judges_printed(files):
    result = run(files / "raw.jsonl")
    assert result.exit_code == 0, result.output
    calls = pd.read_json(files / "raw.jsonl", lines=True)
    outputs = jaxeval.JudgeOutputs.from_pandas(calls)
    best = jaxeval.fit_judge_panel(outputs, B).ratings
    assert f"{best.idxmax()} leads with {best.max():.1f}" in result.output


@pytest.mark.slow
def test_models_and_rows(files):
    result = run(files / "long.csv", "--exclude", "model-4", "--rows")
    assert result.exit_code == 0, result.output
    assert "model-4" not in result.output.split("left out")[0].split("Judges")[0]
    assert "20 multinomial resamples" in result.output


@pytest.mark.parametrize(("arguments", "told"), [
    (["long.csv", "--rows", "--cluster", "item"], "leave one"),
    (["long.csv", "--judge", "whom"], "whom"),
    (["long.csv", "--unparsed", "drop"], "only for what judges printed"),
    (["wide.csv", "--judges", "judge-1,judge-9"], "judge-9"),
    (["wide.csv", "--judges", "judge-1,judge-2", "--item", "itm"], "itm"),
    (["wide.csv", "--judges", "judge-1,judge-2", "--judge", "whom"], "leave one out"),
    (["wide.csv", "--judges", "judge-1,judge-2", "--propensity", "p"], "--propensity"),
    (["wide.csv", "--judges", "judge-1,judge-2", "--winner", "foo"], "--winner"),
    (["wide.csv", "--judges", "judge-1", "--where", "lang = 'en'"], "--where"),
])  # fmt: skip
def test_errors(files, arguments, told):
    result = run(files / arguments[0], *arguments[1:])
    assert result.exit_code != 0
    assert told in result.output
    assert "Traceback" not in result.output
