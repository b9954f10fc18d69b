import json

import gallery
import numpy as np
import pandas as pd
import pytest
from command_line import run

import jaxeval

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Judged battles with human votes, and those of one further model without. One language is named."""
    battles = jaxeval.simulate_judged_battles(1200, 12, noise=2.0, seed=4)
    frame = pd.DataFrame(
        {
            "model_a": battles.models[battles.model_a],
            "model_b": battles.models[battles.model_b],
            "gap": battles.score_difference,
            "human": battles.human,
        }
    ).assign(language=np.where(battles.columns["language"] == "English", "en", None))
    new = (frame["model_a"] == "model-03") | (frame["model_b"] == "model-03")
    folder = tmp_path_factory.mktemp("judged")
    frame[~new].to_csv(folder / "known.csv", index=False)
    frame[new].drop(columns="human").to_parquet(folder / "new.parquet")
    return folder


COLUMNS = ("--score-difference", "gap", "--labels", "a_wins_1")


@pytest.mark.slow
def test_file_prints_the_headline_tables_and_writes_the_rest(files, tmp_path):
    out = tmp_path / "out"
    result = run("soft-elo", files / "known.csv", *COLUMNS, "--resamples", 20, "--level", 0.8, "--out", out, "--by",
                 "language", "--budget")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "Held-out ratings against human ratings" in result.stdout
    assert "Split conformal intervals, 5 random splits" in result.stdout
    assert "left out: verdict disagreement: no verdict column was named; position bias" in result.stdout
    held_out = jaxeval.soft_elo(
        jaxeval.read_judged_battles(files / "known.csv", score_difference="gap", label_coding="a_wins_1"),
        n_resamples=20,
    )
    assert f"{held_out.summary.loc['soft', 'mae']:.1f}" in result.stdout
    read = pd.read_csv(out / "models.csv")
    np.testing.assert_allclose(read["judge_elo"], held_out.models["judge_elo"])
    assert set(pd.read_csv(out / "slices.csv")["slice"]) == {"en"}
    tables = {"summary", "conformal", "intervals", "widths", "diagnostics", "reliability", "slices", "budget"}
    assert tables <= {p.stem for p in out.glob("*.csv")}
    assert {p.stem for p in out.glob("*.png")} == {"held_out", "intervals", "calibration", "ramp", "budget"}


@pytest.mark.slow
def test_report_is_the_same_command(files):
    options = (files / "known.csv", *COLUMNS, "--resamples", 20)
    assert run("soft-elo", *options).stdout == run("soft-elo", "report", *options).stdout


@pytest.fixture(scope="module")
def prompted(files):
    """The battles with their prompts, and verdicts that differ from the scores."""
    frame = pd.read_csv(files / "known.csv")
    frame = frame.assign(prompt=np.arange(len(frame)) // 20, verdict=(frame["gap"] > 1) * 1.0)
    frame.to_csv(files / "prompts.csv", index=False)
    return files / "prompts.csv"


@pytest.mark.slow
def test_warnings_clusters_and_hard_labels_are_told(prompted, tmp_path):
    options = (*COLUMNS, "--resamples", 20, "--level", 0.99, "--cluster", "prompt")
    result = run("soft-elo", prompted, *options, "--hard-label", "scores")
    text = " ".join(result.stdout.split())
    assert result.exit_code == 0, result.output
    assert "20 resamples of prompt, seed 0" in text
    assert "hard label: sign of the scores" in text
    assert "warning: 5 calibration models support levels up to 0.8333, so intervals at 0.99 are infinite" in text
    frame = pd.read_csv(prompted)
    frame.assign(prompt=frame["prompt"].where(frame.index > 4)).to_csv(tmp_path / "prompts.csv", index=False)
    missing = run("soft-elo", tmp_path / "prompts.csv", *options)
    assert missing.exit_code != 0
    assert "column 'prompt' has 5 missing values (first in row 0" in " ".join(missing.stderr.split())


@pytest.mark.slow
def test_too_few_models_for_intervals_are_rated_all_the_same(tmp_path):
    path, out = tmp_path / "few.csv", tmp_path / "study"
    rows = [("a", "b", 1, 2), ("b", "c", 0, -1), ("a", "c", 1, 3), ("c", "a", 1, -2), ("b", "a", 0.5, 0)]
    pd.DataFrame(rows, columns=["model_a", "model_b", "human", "gap"]).to_csv(path, index=False)
    options = ("--score-difference", "gap", "--labels", "a_wins_1", "--resamples", 20, "--out", out)
    result = run("soft-elo", path, *options)
    assert result.exit_code == 0, result.output
    assert "no conformal intervals" in " ".join(result.stdout.split())
    assert len(pd.read_csv(out / "models.csv")) == 6
    assert not (out / "intervals.csv").exists()


def test_calibrate_then_predict(files, tmp_path):
    saved, table = tmp_path / "judge.json", tmp_path / "new.csv"
    result = run("soft-elo", "calibrate", files / "known.csv", *COLUMNS, "--out", saved)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "soft: 11 anchors, 11 models calibrate (levels up to 0.9166)" in text
    tau = jaxeval.SoftEloCalibration.load(saved).methods["hard"].floor
    assert f"tau {tau:.1f} Elo: the judge's own error, a floor that no number of battles removes" in text
    assert json.loads(saved.read_text())["version"] == 2
    result = run("soft-elo", "predict", saved, files / "new.parquet", "--score-difference", "gap", "--out", table)
    assert result.exit_code == 0, result.output
    assert "expected coverage 0.9167, nominal 0.9" in result.stdout
    row = pd.read_csv(table).iloc[0]
    assert row["model"] == "model-03"
    assert row["lower"] < row["rating"] < row["upper"]
    text = " ".join(result.stdout.split())
    votes = jaxeval.SoftEloCalibration.load(saved).methods["soft"].models["n_human"].median()
    assert f"the board's rating after {votes:g} human votes" in text
    endless = run("soft-elo", "predict", saved, files / "new.parquet", "--score-difference", "gap", "--human-votes",
                  "inf", "--out", table)  # fmt: skip
    assert "the intervals are for the model's true strength" in " ".join(endless.stdout.split())
    narrow = pd.read_csv(table).iloc[0]
    assert narrow["upper"] - narrow["lower"] < row["upper"] - row["lower"]


def test_a_default_level_is_lowered_and_a_given_one_is_not(files, tmp_path):
    known = pd.read_csv(files / "known.csv")
    kept = [f"model-{k:02d}" for k in (1, 2, 4, 5, 6, 7)]
    known[known["model_a"].isin(kept) & known["model_b"].isin(kept)].to_csv(tmp_path / "few.csv", index=False)
    new = pd.read_parquet(files / "new.parquet")
    new[new["model_a"].isin(kept) | new["model_b"].isin(kept)].to_csv(tmp_path / "new.csv", index=False)
    saved = tmp_path / "judge.json"
    assert run("soft-elo", "calibrate", tmp_path / "few.csv", *COLUMNS, "--out", saved).exit_code == 0
    options = ("predict", saved, tmp_path / "new.csv", "--score-difference", "gap")
    text = " ".join(run("soft-elo", *options).stdout.split())
    assert "with 0.8571 intervals" in text
    assert "warning: predictions: 6 calibration models support levels up to 0.8571, so the default" in text
    result = run("soft-elo", *options, "--level", 0.9)
    assert result.exit_code != 0
    assert "its 6 models support levels up to 0.8571" in " ".join(result.stderr.split())
    text = " ".join(run("soft-elo", tmp_path / "few.csv", *COLUMNS, "--resamples", 20, "--full").stdout.split())
    assert "random splits at level 0.75: 3 models calibrate, 3 tested" in text
    assert "with leave-one-out conformal intervals at the 83.33% level (Elo)" in text
    for sentence in ("random splits: 3", "leave-one-out intervals: 5", "widths: 6"):
        assert f"warning: {sentence} calibration models support levels up to" in text
    assert "inf" not in text


def test_predict_asks_for_no_labels_on_the_public_sample(data, tmp_path):
    """The sample's votes and verdicts are numbers of a coding that only the calibration was told."""
    sample = pd.read_csv(data / "softelo_sample.csv")
    own = (sample["model_a"] == "gemma-2-2b-it") | (sample["model_b"] == "gemma-2-2b-it")
    sample[~own].to_csv(tmp_path / "known.csv", index=False)
    sample[own].to_csv(tmp_path / "new.csv", index=False)
    sample[own].assign(judge_pref="?", human_pref="?").to_csv(tmp_path / "odd.csv", index=False)
    saved = tmp_path / "judge.json"
    fitted = run("soft-elo", "calibrate", tmp_path / "known.csv", "--labels", "a_wins_0", "--out", saved)
    assert fitted.exit_code == 0, fitted.output
    result = run("soft-elo", "predict", saved, tmp_path / "new.csv", "--level", 0.9)
    assert result.exit_code == 0, result.output
    assert run("soft-elo", "predict", saved, tmp_path / "odd.csv", "--level", 0.9).stdout == result.stdout
    named = run("soft-elo", "predict", saved, tmp_path / "odd.csv", "--verdict", "judge_pref")
    assert "odd.csv: column 'judge_pref'" in " ".join(named.stderr.split())
    table = tmp_path / "hard.csv"
    hard = run("soft-elo", "predict", saved, tmp_path / "new.csv", "--method", "hard", "--out", table)
    assert hard.exit_code == 0, hard.output
    calibration = jaxeval.SoftEloCalibration.load(saved)
    named = calibration.predict(
        jaxeval.read_judged_battles(tmp_path / "new.csv", label_coding="a_wins_0"), method="hard"
    )
    assert pd.read_csv(table)["rating"][0] == pytest.approx(named["rating"][0])
    other = run("soft-elo", "predict", saved, tmp_path / "new.csv", "--method", "hard", "--labels", "a_wins_1")
    assert other.stdout != hard.stdout


def test_bad_input_is_one_message_and_a_nonzero_exit(files, tmp_path):
    saved = tmp_path / "judge.json"
    assert run("soft-elo", "calibrate", files / "known.csv", *COLUMNS, "--out", saved).exit_code == 0
    old = tmp_path / "old.json"
    old.write_text(saved.read_text().replace('"version": 2', '"version": 1'))
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    for arguments, message in [
        (("missing.csv",), "There is no file 'missing.csv'"),
        ((files / "known.csv", "--score-difference", "gap"), "say what they mean with label_coding="),
        (("predict", saved, files / "new.parquet", "--score-difference", "gap", "--level", 0.95), "up to 0.9166"),
        (("predict", saved, files / "known.csv", *COLUMNS), "none of"),
        (("predict", old, files / "new.parquet", "--score-difference", "gap"), "or calibrate again"),
        (("predict", broken, files / "new.parquet"), "holds no saved calibration"),
    ]:
        result = run("soft-elo", *arguments)
        assert result.exit_code != 0
        assert message in " ".join(result.stderr.split())
        assert "Traceback" not in result.output


@pytest.mark.slow
def test_sample_gives_the_known_answers(data, tmp_path):
    options = ("--labels", "a_wins_0", "--ridge", 0.005, "--resamples", 20, "--out", tmp_path)
    result = run("soft-elo", data / "softelo_sample.csv", *options)
    assert result.exit_code == 0, result.output
    summary = pd.read_csv(tmp_path / "summary.csv").set_index("method")
    assert summary.loc["hard", "mae"] == pytest.approx(57.633390, abs=0.002)
    assert summary.loc["soft", "mae"] == pytest.approx(19.536330, abs=0.002)
    assert summary.loc["soft", "beta"] == pytest.approx(0.655205, abs=2e-6)


@pytest.mark.slow
def test_clusters_and_hard_labels(prompted, tmp_path):
    out = tmp_path / "study"
    options = ("soft-elo", prompted, *COLUMNS, "--resamples", 20, "--level", 0.8)
    result = run(*options, "--cluster", "prompt", "--hard-label", "scores", "--out", out, "--full")
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "verdict and label of the scores differ in" in text
    for measure in ("temperature (beta)", "ECE of a judge without error", "ECE without that noise"):
        assert measure in text
    judged = jaxeval.read_judged_battles(prompted, score_difference="gap", label_coding="a_wins_1", hard_label="scores")
    expected = jaxeval.soft_elo(judged, n_resamples=20, cluster="prompt").models
    found = pd.read_csv(out / "models.csv")
    np.testing.assert_allclose(found["standard_error"], expected["standard_error"])
    assert (found["n_clusters"] == expected["n_clusters"]).all()
    fit = jaxeval.fit_temperature(judged.score_difference, judged.human, cluster=judged.columns["prompt"])
    beta = pd.read_csv(out / "diagnostics.csv").set_index("measure").loc["temperature (beta)"]
    assert (beta["upper"] - beta["lower"]) / 2 == pytest.approx(1.959964 * fit.standard_error, rel=1e-6)
    assert "hard label: the judge's verdict" in run(*options).stdout


@pytest.mark.slow
def test_raw_replies_need_no_option_and_all_judges_are_read(tmp_path):
    raw = jaxeval.simulate_judge_outputs(300, 6, judge_noise=[0, 1], seed=4)
    raw.to_json(tmp_path / "raw.jsonl", orient="records", lines=True)
    result = run("soft-elo", tmp_path / "raw.jsonl", "--resamples", 20, "--out", tmp_path / "out", "--full")
    assert result.exit_code == 0, result.output
    assert "Of 2 judges, judge-" in result.stdout
    assert "600 battles judged in both orders" in result.stdout
    summary = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert summary["judge"].tolist() == ["judge-1"] * 2 + ["judge-2"] * 2
    one = jaxeval.soft_elo(jaxeval.JudgeOutputs.from_pandas(raw).judged("judge-2"), n_resamples=20, progress=False)
    np.testing.assert_allclose(summary["mae"][2:], one.summary["mae"])
    assert set(pd.read_csv(tmp_path / "out" / "position_bias.csv")["judge"]) == {"judge-1", "judge-2"}
    assert jaxeval.read_judged_battles(tmp_path / "raw.jsonl", only_judge="judge-1").judge_name == "judge-1"


def test_options_of_replies(tmp_path):
    raw = jaxeval.simulate_judge_outputs(60, 6, judge_noise=[0, 1], seed=4, malformed=0.02)
    raw = raw.rename(columns={"output": "said"})
    raw.to_json(tmp_path / "raw.jsonl", orient="records", lines=True)
    out = ("--out", tmp_path / "c.json")
    result = run("soft-elo", "calibrate", tmp_path / "raw.jsonl", "--output", "said", *out)
    assert "cannot be read" in result.output
    assert "--unparsed drop" in result.output
    drop = ("--output", "said", "--unparsed", "drop", "--one-order", "drop")
    several = run("soft-elo", "calibrate", tmp_path / "raw.jsonl", *drop, *out)
    assert "holds 2 judges: judge-1, judge-2. Name the one to read with only_judge=" in several.output
    wrong = run("soft-elo", "calibrate", tmp_path / "raw.jsonl", *drop, "--scores-a", "x", *out)
    assert "read as replies of judges, for which scores_a= (--scores-a) has no meaning" in wrong.output
    odd = run("soft-elo", "calibrate", tmp_path / "raw.jsonl", *drop, "--scale", "10", *out)
    assert "is not the least and the largest score" in odd.output


MERGE = ("--score-difference", "gap", "--labels", "a_wins_1", "--resamples", 20)


@pytest.mark.slow
def test_merge_places_new_models_on_the_board_of_votes(files, tmp_path):
    out, options = tmp_path / "board", MERGE
    result = run("soft-elo", "merge", files / "known.csv", "--new", files / "new.parquet", *options, "--out", out)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "model-03 would stand at rank" in text
    assert "by the judge's scores alone" in text
    assert {path.name for path in out.iterdir()} == {
        "leaderboard.csv", "leaderboard.png", "predictions.csv", "beat_share.csv", "answer.txt"
    }  # fmt: skip
    written = pd.read_csv(out / "leaderboard.csv").set_index("model")
    judged = [
        jaxeval.read_judged_battles(path, score_difference="gap", label_coding="a_wins_1", human=human)
        for path, human in ((files / "known.csv", None), (files / "new.parquet", False))
    ]
    expected = jaxeval.merge_boards(*judged, n_resamples=20).table.set_index("model")
    np.testing.assert_allclose(written["rating"], expected["rating"])
    assert written.loc["model-03", "rests_on"] == "judge"
    none = run("soft-elo", "merge", files / "known.csv", *options)
    assert none.exit_code == 1
    assert "none is new" in none.stderr


@pytest.mark.slow
def test_merge_of_one_file_and_of_the_votes_of_another(files, tmp_path):
    options = MERGE
    two = ("soft-elo", "merge", files / "known.csv", "--new", files / "new.parquet", *options)
    assert run(*two, "--out", tmp_path / "board.csv").exit_code == 0
    expected = pd.read_csv(tmp_path / "board.csv")
    known, new = pd.read_csv(files / "known.csv"), pd.read_parquet(files / "new.parquet")
    pd.concat([known, new]).to_csv(tmp_path / "both.csv", index=False)
    known.dropna(subset="human").assign(
        winner=lambda x: x["human"].map({1: "model_a", 0: "model_b"}).fillna("tie")
    )[["model_a", "model_b", "winner"]].to_csv(tmp_path / "votes.csv", index=False)  # fmt: skip
    one = run("soft-elo", "merge", tmp_path / "both.csv", *options, "--out", tmp_path / "one.csv", "--quiet")
    assert one.exit_code == 0, one.output
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "one.csv"), expected)
    other = run("soft-elo", "merge", tmp_path / "both.csv", *options, "--votes", tmp_path / "votes.csv", "--out",
                tmp_path / "two.csv")  # fmt: skip
    assert other.exit_code == 0, other.output
    two = pd.read_csv(tmp_path / "two.csv").set_index("model")
    np.testing.assert_allclose(two["rating"], expected.set_index("model")["rating"].reindex(two.index))


@pytest.mark.parametrize("method", ["soft", pytest.param("hard", marks=pytest.mark.slow)])
def test_a_calibration_of_replies_rates_new_models_by_replies(tmp_path, method):
    raw = jaxeval.simulate_judge_outputs(1200, 12, judge_noise=[0], seed=4)
    new = (raw["model_a"] == "model-03") | (raw["model_b"] == "model-03")
    raw[~new].to_json(tmp_path / "known.jsonl", orient="records", lines=True)
    raw[new].drop(columns="human").to_json(tmp_path / "new.jsonl", orient="records", lines=True)
    made = run("soft-elo", "calibrate", tmp_path / "known.jsonl", "--out", tmp_path / "c.json")
    assert made.exit_code == 0, made.output
    rated = run("soft-elo", "predict", tmp_path / "c.json", tmp_path / "new.jsonl", "--level", 0.8, "--method", method)
    assert rated.exit_code == 0, rated.output
    assert "model-03 rates" in rated.stdout


@pytest.mark.parametrize("name", ["mt_bench_pair", "mt_bench_single"])
def test_published_judgments_without_scores_of_both_answers(name, tmp_path):
    rows = getattr(gallery, name)(np.random.default_rng(0))
    path = tmp_path / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for command in ("merge", "report"):
        shown = " ".join(run("soft-elo", command, path).output.split())
        assert "it holds MT-bench's" in shown
        assert "and no scores of both answers beside labels of people; the file rather fits: jaxeval leaderb" in shown
