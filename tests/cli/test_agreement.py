import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from command_line import run as command

import jaxeval

pytestmark = pytest.mark.usefixtures("undrawn")

run = partial(command, "agreement")


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n, words = 300, np.array(["model_b", "tie", "model_a"])
    side = rng.choice([0, 2], n)
    frame = pd.DataFrame({"item": np.arange(n), "model_a": rng.choice([*"xyz"], n), "model_b": "w"})
    for name, error in {"human": 0.1, "expert": 0.1, "judge-1": 0.2, "judge-2": 0.3}.items():
        frame[name] = words[np.where(rng.random(n) < error, 2 - side, side)]
    return frame.assign(long_a=rng.integers(1, 99, n), long_b=rng.integers(1, 99, n))


def test_wide_tables(table, tmp_path):
    table.to_csv(tmp_path / "votes.csv", index=False)
    names = [("x", "acme"), ("y", "b"), ("z", "b"), ("w", "b"), ("judge-1", "acme"), ("judge-2", "b")]
    pd.DataFrame(names, columns=["name", "family"]).to_csv(tmp_path / "families.csv", index=False)
    out = tmp_path / "out"
    options = [
        "--judges", "judge-1,judge-2", "--human", "human,expert", "--shown-first", "model_a",
        "--lengths", "long_a:long_b", "--families", tmp_path / "families.csv", "--resamples", 20,
    ]  # fmt: skip
    result = run(tmp_path / "votes.csv", *options, "--out", out)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert text.startswith(
        "Good enough? Yes, where it decides: the panel of 2 judges (what most say) agrees with people on "
    )
    assert "people agree with each other on" in text
    assert "judges are worth" in text
    pd.DataFrame(names, columns=["name", "maker"]).to_csv(tmp_path / "families.csv", index=False)
    wrong = run(tmp_path / "votes.csv", *options)
    assert wrong.exit_code == 1
    assert "families.csv: no column 'family' in the table" in wrong.output
    found = jaxeval.judge_agreement(
        table, ["human", "expert"], judges=["judge-1", "judge-2"], shown_first="model_a", lengths=("long_a", "long_b"),
        families=dict(names), n_resamples=20,
    )  # fmt: skip
    written = pd.read_csv(out / "agreement.csv")
    for name in ("agreement", "all_kappa", "first_chosen", "longer_chosen", "family_excess"):
        np.testing.assert_allclose(written[name], found.table[name])
    assert {"panel", "by_gap", "by_model", "raters", "error_correlation"} <= {path.stem for path in out.glob("*.csv")}
    assert (out / "agreement.png").exists()
    assert (out / "answer.txt").read_text().splitlines() == found.sentences


def test_long_tables_with_labels_in_another_file(table, tmp_path):
    long = table.melt(["item", "model_a", "model_b"], ["judge-1", "judge-2"], "judge", "verdict")
    long.to_parquet(tmp_path / "verdicts.parquet")
    labels = table.melt(["item", "model_a", "model_b"], ["human", "expert"], "rater", "label")
    labels.to_csv(tmp_path / "labels.csv", index=False)
    options = ("--human-labels", tmp_path / "labels.csv", "--resamples", 20, "--out", "-", "--format", "json")
    result = run(tmp_path / "verdicts.parquet", *options)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [row["judge"] for row in rows] == ["judge-1", "judge-2", "panel", "people"]
    wide = jaxeval.judge_agreement(table, ["human", "expert"], judges=["judge-1", "judge-2"], n_resamples=20)
    np.testing.assert_allclose([row["agreement"] for row in rows], wide.table["agreement"])


def test_what_judges_printed(tmp_path):
    calls = jaxeval.simulate_judge_outputs(200, 4, seed=2)
    calls.to_json(tmp_path / "calls.jsonl", orient="records", lines=True)
    result = run(tmp_path / "calls.jsonl", "--resamples", 20)
    assert result.exit_code == 0, result.output
    text = " ".join(result.stdout.split())
    assert "agrees with people on" in text
    assert "Flips" in text


def test_help_says_that_only_replies_have_a_usual_order():
    text = " ".join(run("--help").output.split())
    usual = "[of replies: shown_first, order or swapped, else model_a; of tables: none]"
    assert f"Column of the side that was shown first. {usual}" in text


def test_bad_input_is_one_message(table, tmp_path):
    table.to_csv(tmp_path / "votes.csv", index=False)
    for options, message in [
        (("--judges", "judge-9"), "no column 'judge-9'"),
        (("--judges", "judge-1", "--length-a", "long_a"), "--length-a is now called --lengths A:B"),
        (("--judges", "judge-1", "--unparsed", "drop"), "--unparsed: only for what judges printed"),
        (("--judges", "judge-1", "--words", "1=model_a"), "--words: only for what judges printed"),
        ((), "no column 'verdict'"),
        (("--judges", "judge-1", "--human", "human", "--human-labels", tmp_path / "votes.csv"), "leave one"),
    ]:
        result = run(tmp_path / "votes.csv", *options, "--resamples", 20)
        assert result.exit_code != 0
        assert message in " ".join(result.output.split())
        assert "Traceback" not in result.output


def test_labels_without_models(table, tmp_path):
    """Right and wrong, sides with ties, and grades: the columns are found, and the answer is that of Python."""
    graded = table[["item", "human", "expert", "judge-1"]].replace({"model_a": 1, "model_b": 0, "tie": 0})
    table.loc[:9, ["human", "judge-1"]] = "tie"
    words = table[["item", "human", "expert", "judge-1"]].replace({"model_a": "A", "model_b": "B"})
    numbers = words.replace({"A": 1, "B": 2, "tie": 0})
    for name, frame, options in (
        ("graded", graded, ()),
        ("words", words, ()),
        ("numbers", numbers, ("--labels", "1=model_a,2=model_b,0=tie")),
        ("grades", numbers, ("--labels", "grades")),
    ):
        path = tmp_path / f"{name}.csv"
        frame.to_csv(path, index=False)
        result = run(path, *options, "--resamples", 20)
        assert result.exit_code == 0, result.output
        text = " ".join(result.stdout.split())
        assert text.startswith("Good enough? "), text
        assert "people's labels in human, expert" in text
        assert "judges in judge-1" in text
        assert "Agreement by the gap" not in text
        assert ("Youden j" in text) == (name != "grades")
        coding = {"numbers": {"1": "model_a", "2": "model_b", "0": "tie"}, "grades": "grades"}.get(name)
        found = jaxeval.judge_agreement(frame, label_coding=coding, n_resamples=20)
        assert " ".join(found.answer.sentences[0].split()) in text
    long = graded.melt("item", var_name="annotator", value_name="label").sample(frac=1.0, random_state=0)
    long.to_csv(tmp_path / "long.csv", index=False)
    rows = run(tmp_path / "long.csv", "--resamples", 20).stdout
    assert "judges judge-1, people expert, human" in " ".join(rows.split())
    alike = jaxeval.judge_agreement(graded[["item", "judge-1", "expert", "human"]], n_resamples=20)
    pd.testing.assert_frame_equal(jaxeval.judge_agreement(long, n_resamples=20).table, alike.table)
    for wrong, options, message in (
        (long, ("--judges", "judge-2"), "names the raters 'expert', 'human', 'judge-1', and 'judge-2' is none of them"),
        (long.replace({"judge-1": "x"}), (), "none is called a judge: say which of them are judges with judges="),
        (long.replace({"judge-1": "human"}), (), "300 rows repeat a rater's label of an item"),
    ):
        wrong.to_csv(tmp_path / "wrong.csv", index=False)
        assert message in " ".join(run(tmp_path / "wrong.csv", *options).output.split())
    unclear = run(tmp_path / "numbers.csv", "--resamples", 20)
    assert unclear.exit_code == 1
    assert "--labels 1=model_a,2=model_b,0=tie" in " ".join(unclear.output.split())
    out = tmp_path / "out"
    assert run(tmp_path / "words.csv", "--resamples", 20, "--out", out).exit_code == 0
    assert (out / "agreement.png").exists()
    assert not (out / "by_gap.csv").exists()


def test_a_judge_called_judge(tmp_path):
    table = pd.DataFrame({"item": range(40), "human": ["yes", "no"] * 20, "judge": ["yes", "no", "yes", "yes"] * 10})
    table.to_csv(tmp_path / "labels.csv", index=False)
    said = run(tmp_path / "labels.csv", "--resamples", 20, "--full").output
    assert "judge agrees with people on 75%" in " ".join(said.split())


def test_one_row_is_a_row(tmp_path):
    (tmp_path / "one.csv").write_text("item,human,judge\n1,yes,yes\n")
    assert "1 judge, up to 1 row with human labels each" in run(tmp_path / "one.csv", "--judges", "judge").stdout


def test_judges_that_are_lists_are_no_names(tmp_path):
    """MT-bench names a judge and its prompt in a list."""
    rows = [{"question_id": k, "model": "x", "judge": ["gpt-4", "single-v1"], "score": k, "turn": 1} for k in range(3)]
    (tmp_path / "single.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert "no column of people's labels" in run(tmp_path / "single.jsonl").output


def test_five_battles_do_not_show_that_a_confidence_of_99_percent_is_right(tmp_path):
    votes = pd.DataFrame({"item": range(5), "model_a": "x", "model_b": "y", "human": "model_a", "verdict": "model_a"})
    votes.assign(confidence=0.99).to_csv(tmp_path / "votes.csv", index=False)
    result = run(tmp_path / "votes.csv", "--resamples", 20, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    judge = pd.read_csv(tmp_path / "out" / "agreement.csv").iloc[0]
    assert judge["calibration_error_lower"] == 0
    assert judge["calibration_error_upper"] > 0.3
