from functools import partial

import numpy as np
import pandas as pd
import pytest
from command_line import run as command

import jaxeval
from jaxeval.accuracy.statuses import STATUSES

FAST = ("--resamples", 20)


pytestmark = pytest.mark.usefixtures("undrawn")

run = partial(command, "judge")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    table = jaxeval.simulate_judged_answers(
        [0.8, 0.6, 0.7], [[0.9, 0.9], [0.9, 0.4], [0.9, 0.9]], [[0.9, 0.9], [0.9, 0.95], [0.9, 0.9]], 300, seed=2
    )
    table["topic"] = np.where(table["item"] % 2, "law", "art")
    table[table["item"] < 120].to_csv(folder / "cal.csv", index=False)
    table[table["item"] >= 120].drop(columns="human").to_parquet(folder / "test.parquet")
    long = table.melt(["item", "model", "human", "topic"], ["judge-1", "judge-2"], "judge", "verdict")
    long["verdict"] = np.where(long["verdict"] == 1, "yes", "no")
    long["human"] = np.where(long["human"] == 1, "yes", "no")
    long[long["item"] < 120].to_json(folder / "cal.jsonl", orient="records", lines=True)
    long[long["item"] >= 120].to_json(folder / "test.jsonl", orient="records", lines=True)
    table[table["item"] < 120].drop(columns=["model", "item"]).to_csv(folder / "judge_only.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def columns():
    return ("--judgment", "judge-1", "--judgment", "judge-2", "--model", "model", "--item", "item")


@pytest.mark.parametrize("name", ["cal.csv", "judge_only.csv"])
def test_one_file_as_calibration_and_test(files, name):
    other = files / ".." / files.name / name
    said = run("--calibration", files / name, "--test", other, "--judgment", "judge-1", *FAST).output
    assert f"{name} is both calibration and test, so that 360 labels of it count in both: all have one" in said


@pytest.mark.parametrize(("option", "column", "said"), [
    ("--by", "nope", "Error: cal.csv: no column 'nope' to group by; the further columns are: "),
    ("--cluster", "nope", "Error: cal.csv: no column 'nope' to group by"),
])  # fmt: skip
def test_columns_that_cannot_group(files, option, column, said):
    both = ("--calibration", files / "cal.csv", "--test", files / "test.parquet", "--judgment", "judge-1")
    refused = run(*both, option, column)
    assert refused.exit_code
    assert said in refused.output


@pytest.mark.slow
def test_tables_claims_and_cautions(files, columns, tmp_path):
    out = tmp_path / "out"
    result = run("--calibration", files / "cal.csv", "--test", files / "test.parquet", *columns, *FAST, "--compare",
                 "model-1", "model-2", "--calibration-sampling", "random", "--out", out)  # fmt: skip
    assert result.exit_code == 0, result.output
    for words in ("Believe PPI++", "Accuracy of each model", "Differences, A minus B", "model-1 is ahead",
                  "warning: judge-2, model-1 against model-2: delta J", "20 resamples, seed 0"):  # fmt: skip
        assert words in result.stdout, words
    assert {p.name for p in out.iterdir()} == {
        "accuracy.csv", "rates.csv", "differences.csv", "stability.csv", "report.md",
        "accuracy.png", "rates.png", "differences.png",
    }  # fmt: skip
    options = {"judgment": ["judge-1", "judge-2"], "model": "model", "item": "item"}
    expected = jaxeval.compare_models(
        jaxeval.read_judged_answers(files / "cal.csv", **options),
        jaxeval.read_judged_answers(files / "test.parquet", **options),
        ("model-1", "model-2"),
        n_resamples=20,
    )
    found = pd.read_csv(out / "differences.csv")
    np.testing.assert_allclose(found["difference"], expected.table["difference"])
    assert (out / "report.md").read_text().startswith("## What is estimated")


def test_long_files_with_words_for_labels(files, tmp_path):
    options = ("--judge", "judge", "--judgment", "verdict", "--positive", "yes", "--model", "model", "--item", "item")
    result = run(
        "--calibration", files / "cal.jsonl", "--test", files / "test.jsonl", *options, *FAST, "--out", tmp_path
    )
    assert result.exit_code == 0, result.output
    wide = jaxeval.judge_accuracy(
        *(jaxeval.read_judged_answers(files / f, judgment=["judge-1", "judge-2"], model="model", item="item")
          for f in ("cal.csv", "test.parquet")),
        n_resamples=20,
    )  # fmt: skip
    np.testing.assert_allclose(pd.read_csv(tmp_path / "accuracy.csv")["estimate"], wide.table["estimate"])


def test_a_calibration_of_the_judge_alone_is_shared(files, columns):
    result = run("--calibration", files / "judge_only.csv", "--test", files / "test.parquet", *columns, *FAST)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Believe none of these estimates for sure: no model has labels of its own")
    assert "Shared calibration" in result.stdout
    assert "only a shared calibration can correct them" in result.stdout


@pytest.mark.parametrize(("arguments", "message"), [
    (("--compare", "model-1", "other"), "no model 'other' in the test; its models are 'model-1', 'model-2', 'model-3'"),
    (("--by", "language"), "no column 'language'"),
    (("--human", "truth"), "no column 'truth'"),
])  # fmt: skip
def test_bad_input_is_one_message(files, columns, arguments, message):
    result = run("--calibration", files / "cal.csv", "--test", files / "test.parquet", *columns, *FAST, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_missing_judgments_need_a_policy(files, columns, tmp_path):
    table = pd.read_csv(files / "cal.csv")
    table.loc[3, "judge-1"] = np.nan
    table.to_csv(tmp_path / "cal.csv", index=False)
    arguments = ("--calibration", tmp_path / "cal.csv", "--test", files / "test.parquet", *columns, *FAST)
    result = run(*arguments)
    assert result.exit_code == 1
    assert "1 of 720 judgments is missing" in result.stderr
    assert "--missing" in result.stderr
    result = run(*arguments, "--missing", "drop")
    assert result.exit_code == 0, result.output
    assert "1 judgment is missing: left out, and human labels stay" in result.stdout
    assert "warning: judge-1: 1 of 360 labelled calibration answers and 0 of 540 test answers" in result.stdout


def test_the_estimate_to_believe_and_the_statuses_are_explained(files, columns):
    table = pd.read_csv(files / "cal.csv")
    table["judge-2"] = table["item"] % 2
    table.to_csv(files / "guesses.csv", index=False)
    arguments = ("--calibration", files / "guesses.csv", "--test", files / "test.parquet", *columns, *FAST)
    arguments += ("--calibration-sampling", "random")
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Believe, of 6 models by judges, PPI++ for 3, none for 3")
    assert "PPI++: the labelled answers are a random part" in result.stdout
    flat = " ".join(run(*arguments, "--full").stdout.split())
    assert "believe ppi_plus_plus: the labelled answers are a random part" in flat
    shown = [status for status in STATUSES if status != "ok" and f"{status}: {STATUSES[status]}." in flat]
    assert {"J near 0", "J <= 0"} & set(shown)


@pytest.mark.slow
def test_what_judges_printed_is_read(tmp_path, files):
    """Yes and No in prose or JSON give what 1 and 0 give."""
    said = {1: ['{"correct": true, "reason": "as in the key"}', "It is.\nVerdict: Yes"], 0: ["[[No]]", "No."]}
    for name in ("cal", "test"):
        table = pd.read_csv(files / "cal.csv") if name == "cal" else pd.read_parquet(files / "test.parquet")
        table["output"] = [said[int(v)][k % 2] for k, v in enumerate(table["judge-1"])]
        table.drop(columns=["judge-1", "judge-2"]).to_json(tmp_path / f"{name}.jsonl", orient="records", lines=True)
    columns = ("--model", "model", "--item", "item", *FAST)
    raw = run("--calibration", tmp_path / "cal.jsonl", "--test", tmp_path / "test.jsonl", *columns, "--out",
              tmp_path / "raw")  # fmt: skip
    plain = run("--calibration", files / "cal.csv", "--test", files / "test.parquet", "--judgment", "judge-1", *columns,
                "--out", tmp_path / "plain")  # fmt: skip
    assert (raw.exit_code, plain.exit_code) == (0, 0), raw.output + plain.output
    one, other = (pd.read_csv(tmp_path / name / "accuracy.csv") for name in ("raw", "plain"))
    pd.testing.assert_frame_equal(one.drop(columns="judge"), other.drop(columns="judge"))
    broken = (tmp_path / "test.jsonl").read_text().replace("[[No]]", "I cannot tell from this answer alone, nor guess.")
    (tmp_path / "test.jsonl").write_text(broken)
    unread = run("--calibration", tmp_path / "cal.jsonl", "--test", tmp_path / "test.jsonl", *columns)
    assert "cannot be read" in unread.output
    assert "--unparsed drop" in unread.output
    left = run(
        "--calibration", tmp_path / "cal.jsonl", "--test", tmp_path / "test.jsonl", *columns, "--unparsed", "drop"
    )
    assert left.exit_code == 0, left.output
    assert "that cannot be read left out on request" in left.output


@pytest.mark.parametrize("word", ["by-label", "by label", "BY_LABEL"])
def test_the_design_of_the_calibration_decides_what_is_believed(files, columns, tmp_path, word):
    arguments = ("--calibration", files / "cal.csv", "--test", files / "test.parquet", *columns, *FAST)
    result = run(*arguments, "--calibration-sampling", word, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Believe Rogan-Gladen with the models' own labels")
    assert "nobody said" not in result.stdout
    flat = " ".join(result.stdout.split())
    assert 'How the labelled answers were chosen: "by label": the numbers of right and wrong' in flat
    assert "Holds to: how far the share of right answers (share), or q0 and q1 both (rates)" in flat
    found = pd.read_csv(tmp_path / "accuracy.csv")
    options = {"judgment": ["judge-1", "judge-2"], "model": "model", "item": "item"}
    parts = [jaxeval.read_judged_answers(files / name, **options) for name in ("cal.csv", "test.parquet")]
    expected = jaxeval.judge_accuracy(*parts, sampling="by label", n_resamples=20).table
    assert found["believe"].tolist() == expected["believe"].tolist()
    assert set(found.loc[found["believe"], "estimator"]) == {"rogan_gladen"}
    np.testing.assert_allclose(found["tolerance"], expected["tolerance"])


def test_an_undeclared_design_is_told_and_a_wrong_one_refused(files, columns):
    arguments = ("--calibration", files / "cal.csv", "--test", files / "test.parquet", *columns, *FAST)
    flat = " ".join(run(*arguments).stdout.split())
    assert "nobody said how the labelled answers were chosen (--calibration-sampling)" in flat
    assert "by Hausman's test of PPI++ against Rogan-Gladen" in flat
    refused = run(*arguments, "--calibration-sampling", "balanced")
    assert refused.exit_code == 2
    assert "'balanced' is not one of 'random', 'by-label', 'borrowed'" in refused.output


def test_clusters_are_those_of_the_library(files, columns, tmp_path):
    for name in ("cal.csv", "test.parquet"):
        read = pd.read_csv if name == "cal.csv" else pd.read_parquet
        table = read(files / name)
        table.assign(page=table["item"] // 4).to_csv(tmp_path / f"{name}.csv", index=False)
    own = [tmp_path / f"{name}.csv" for name in ("cal.csv", "test.parquet")]
    arguments = ("--calibration", own[0], "--test", own[1], *columns, *FAST, "--cluster", "page")
    result = run(*arguments, "--calibration-sampling", "random", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    options = {"judgment": ["judge-1", "judge-2"], "model": "model", "item": "item", "keep": ["page"]}
    parts = [jaxeval.read_judged_answers(name, **options) for name in own]
    expected = jaxeval.judge_accuracy(*parts, sampling="random", cluster="page", n_resamples=20).table
    found = pd.read_csv(tmp_path / "accuracy.csv")
    for column in ("lower", "upper", "boot_lower", "boot_upper"):
        np.testing.assert_allclose(found[column], expected[column])
    refused = run(*arguments, "--strata", "page")
    assert refused.exit_code == 1
    assert "strata= and cluster= (--strata, --cluster) do not go together" in refused.output


def test_models_are_not_drawn_anew(files):
    parts = "--calibration", files / "cal.csv", "--test", files / "test.parquet"
    refused = run(*parts, "--model", "model", "--judgment", "judge-1", "--item", "item", "--random", "model")
    assert refused.exit_code == 2
    assert "--random model: it names the models, which are rated and not drawn anew" in refused.output


def test_usual_columns_of_models_and_items_need_no_name(files):
    """Unless they have another role. Where rows repeat an item, each is one of its own, and the output says so."""
    parts = "--calibration", files / "cal.csv", "--test", files / "test.parquet", "--judgment", "judge-1", *FAST
    printed = run(*parts).output
    note = "models in 'model' (--model names another column), items in 'item' (--item names another column)\n"
    assert note in printed
    named = run(*parts, "--model", "model", "--item", "item").output
    assert printed.replace(note, "") == named
    assert "of its own" not in named
    by_model = run(*parts, "--by", "model").output
    assert "all answers" in by_model
    assert "each row counts as an item of its own: --item item says what keeps it" in " ".join(by_model.split())
    renamed = pd.read_csv(files / "cal.csv").rename(columns={"model": "who"})
    renamed.to_csv(files / "renamed.csv", index=False)
    refused = run(
        *parts[:1], files / "renamed.csv", "--test", files / "renamed.csv", *parts[4:], "--item", "item"
    ).output
    assert "the column of models with model= (--model), or the column" in refused
    assert "for models and items like these" in run(*parts, "--random", "model").output  # which are not rated
