import re

import numpy as np
import pandas as pd
import pytest
from command_line import run, said
from scored import answers

from jaxeval import compare_scores, plan_scores, read_scores, score_leaderboard
from jaxeval.errors import DataError


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("scores") / "scores.csv"
    runs = [answers(120, [0.9, 0.6, 0.58], seed=seed).assign(trial=seed, topic="t") for seed in range(2)]
    pd.concat(runs).to_csv(path, index=False)
    return path


def test_a_board(file):
    printed = said("scores", file, "--resamples", 20)
    assert "m0 is first with 0." in printed
    assert "95% intervals of new items like these, 20 resamples of items" in printed
    assert "3 models, 120 items, 720 trials" in printed


def test_tables_are_those_of_the_library(file, tmp_path):
    further = ["--pass-at", 2, "--pass-hat", 2, "--items", "--benchmark", "topic"]
    said("scores", file, "--resamples", 20, *further, "--out", tmp_path / "out/")
    written = pd.read_csv(tmp_path / "out" / "scores.csv")
    own = score_leaderboard(pd.read_csv(file), n_resamples=20, progress=False)
    assert written["model"].tolist() == own["model"].tolist()
    assert written["score"].tolist() == pytest.approx(own["score"].tolist())
    assert {"pass_at_2.csv", "pass_hat_2.csv", "items.csv"} <= {x.name for x in (tmp_path / "out").iterdir()}
    items = pd.read_csv(tmp_path / "out" / "items.csv")
    assert [*items.columns[:2]] == ["benchmark", "item"]
    assert items["benchmark"].unique().tolist() == ["t"]
    assert items["n_models"].tolist() == [3] * 120


@pytest.mark.slow
def test_abilities_and_a_subset(tmp_path):
    answers(40, [0.9, 0.75, 0.6, 0.5, 0.4, 0.2]).assign(topic="t").to_csv(tmp_path / "scores.csv")
    options = ["--irt", "rasch", "--subset", 5, "--resamples", 20, "--benchmark", "topic"]
    printed = said("scores", tmp_path / "scores.csv", *options, "--out", tmp_path / "out/")
    assert "scores on the subset, of models that had no part in its choice: off by 0." in " ".join(printed.split())
    written = {x.stem for x in (tmp_path / "out").glob("*.csv")}
    assert {"abilities", "difficulties", "subset", "subset_errors"} <= written
    assert len(pd.read_csv(tmp_path / "out" / "subset.csv")) == 5
    assert pd.read_csv(tmp_path / "out" / "difficulties.csv")["benchmark"].tolist() == ["t"] * 40


@pytest.mark.slow
def test_abilities_of_shares(tmp_path):
    rows = [(f"m{m}", f"b{b}", 0.1 + 0.12 * m + 0.03 * b, 200) for m in range(5) for b in range(6)]
    pd.DataFrame(rows, columns=["model", "item", "score", "questions"]).to_csv(tmp_path / "shares.csv", index=False)
    file, out = tmp_path / "shares.csv", ["--irt", "rasch", "--resamples", 20, "--out", tmp_path / "out/"]
    said("scores", file, "--n", "questions", *out)
    assert pd.read_csv(tmp_path / "out" / "abilities.csv")["model"].tolist() == ["m4", "m3", "m2", "m1", "m0"]


@pytest.mark.parametrize("population", ["items", "trials"])
def test_populations_and_slices(file, population):
    printed = said("scores", file, "--by", "topic", "--population", population, "--resamples", 20)
    assert "Category" in printed


def test_two_models(file):
    printed = said("compare-scores", "m1", "m2", file, "--margin", 0.1)
    assert "by sign flips" in printed  # means of two trials
    assert "with a margin of 0.1: not worse p" in printed


@pytest.mark.parametrize("command", ["scores", "plan-scores", "error-budget"])
def test_a_file_that_is_named_twice_counts_once_and_is_told(single, command):
    printed = said(command, single, single)
    assert "single.csv is named twice, and counts once" in printed
    assert printed.partition("\nwarning: ")[0] == said(command, single).partition("\nwarning: ")[0]


@pytest.mark.parametrize("words", [("Yes", "no"), ("correct", "incorrect"), ("C", "I"), ("t", "f")])
def test_scores_in_words(single, tmp_path, words):
    path = tmp_path / "words.csv"
    frame = pd.read_csv(single)
    frame.assign(score=np.where(frame["score"] > 0.5, *words)).to_csv(path, index=False)
    printed, read = said("scores", path), f"{words[0]!r} as 1"
    assert read in printed
    assert printed.splitlines()[0] == said("scores", single).splitlines()[0]
    assert f"jaxeval scores {path}" in said(path)


def test_models_that_are_not_told_apart(single, tmp_path):
    few = pd.read_csv(single).groupby("model").head(60)
    few.to_csv(tmp_path / "few.csv", index=False)
    assert "m0 and m1 are not told apart: difference " in said("compare-scores", "m0", "m1", tmp_path / "few.csv")
    pd.read_csv(single).groupby("model").head(3).to_csv(tmp_path / "three.csv", index=False)
    assert "(1 item for m0, 0 for m2, of 3)" in said("compare-scores", "m0", "m2", tmp_path / "three.csv")
    assert "m0 is above m2: difference +" in said("compare-scores", "m0", "m2", tmp_path / "few.csv")


def test_a_baseline(file):
    assert "of 2 models 0 are above m0 and 2 below it, by Holm's steps" in said("compare-scores", "m0", "all", file)


def test_errors_name_the_option(file, tmp_path):
    pd.read_csv(file).drop(columns="trial").to_csv(tmp_path / "twice.csv", index=False)
    found = run("scores", tmp_path / "twice.csv")
    assert found.exit_code == 1
    assert "--trial" in found.output
    assert "COLUMN" not in found.output
    found = run("compare-scores", "m0", "m7", file)
    assert found.exit_code == 1
    assert "no model is called 'm7'" in found.output


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    """One trial of each item."""
    path = tmp_path_factory.mktemp("scores") / "single.csv"
    answers(400, [0.7, 0.68, 0.3], seed=3).to_csv(path, index=False)
    return path


def test_a_gate_may_be_looked_at_often(single):
    printed = said("compare-scores", "m0", "m2", single, "--margin", 0.05, "--gate", "--peek")
    assert printed.startswith("PASS: m0 is not worse than m2 by 0.05 or more (p ")
    assert "at every look)" in printed.splitlines()[0]


def test_what_a_gate_needs(single, file):
    def refused(*arguments):
        found = run("compare-scores", *arguments)
        assert found.exit_code in (2, 3)
        return found.output

    assert "--gate needs --margin" in refused("m0", "m1", single, "--gate")
    assert "--peek needs --gate" in refused("m0", "m1", single, "--margin", 0.1, "--peek")
    assert "--gate is about two models" in refused("m0", "all", single, "--margin", 0.1, "--gate")


def test_a_plan(single, tmp_path):
    printed = " ".join(said("plan-scores", single, "--pair", "m0", "m1", "--difference", 0.05).split())
    own = plan_scores(pd.read_csv(single), [("m0", "m1")], difference=0.05).iloc[0]
    assert f"a difference of {own['smallest_difference']:.3f}; 0.05 is found with power {own['power']:.2f}" in printed
    assert f"{own['items_needed']:,} items" in printed
    said("plan-scores", single, "--gate", "--difference", 0.05, "--out", tmp_path / "plan.csv")
    written = pd.read_csv(tmp_path / "plan.csv")
    gate = plan_scores(pd.read_csv(single), difference=0.05, one_sided=True)
    assert written["items_needed"].tolist() == gate["items_needed"].tolist()
    assert len(written) == 2  # neighbours


def test_a_plan_of_two_items_promises_nothing(tmp_path):
    answers(2, [1.0, 0.0]).to_csv(tmp_path / "two.csv", index=False)
    assert said("plan-scores", tmp_path / "two.csv").startswith("found with power 0.8: not even a difference of 1\n")


@pytest.mark.parametrize(("ending", "shown"), [("csv", ""), ("jsonl", ""), ("parquet", " 00:00:00")])
def test_names_of_models_that_are_dates_are_shown_as_in_the_file(tmp_path, ending, shown):
    """The sentence and the table write them in the same way."""
    rows = [
        (day, f"2023-01-{item + 1:02}", int(item < right))
        for day, right in (("2024-05-13", 9), ("2024-08-06", 18)) for item in range(20)
    ]  # fmt: skip
    frame, path = pd.DataFrame(rows, columns=["model", "item", "score"]), tmp_path / f"scores.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    elif ending == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.assign(model=pd.to_datetime(frame["model"])).to_parquet(path)
    found = run("scores", path, "--resamples", "100", "--items").output
    assert re.search(r"\n2023-01-20 +2  0.000", found)
    assert found.startswith(f"2024-08-06{shown} is first with 0.900")
    assert re.search(rf"1  2024-08-06{shown}  .*\n +2  2024-05-13{shown}  ", found)


def test_names_that_are_numbers_stay_as_they_are(tmp_path):
    """Years have no commas, here and where two are compared; no difference is -0."""
    table = pd.DataFrame({"model": [2024] * 4 + [2025] * 4, "item": [*range(4)] * 2, "score": [1, 0, 0, 1, 0, 1, 1, 0]})
    table.to_csv(tmp_path / "years.csv", index=False)
    assert re.search(r"\n +1 +2024 +0\.500 .*\n +1 +2025 +0\.500 ", said("scores", tmp_path / "years.csv"))
    printed = said("compare-scores", 2025, 2024, tmp_path / "years.csv")
    assert "difference +0.000 [" in printed
    assert re.search(r"\n2025 +2024 +0\.000 ", printed)
    with pytest.raises(DataError, match=r"no model is called '2024', of 2 models; did you mean 2024 or 2025\?"):
        compare_scores(read_scores(tmp_path / "years.csv"), "2024", 2025)


def test_one_model_is_not_first(tmp_path):
    answers(20, [0.5]).to_csv(tmp_path / "one.csv", index=False)
    assert re.match(r"m0 has a score of 0\.\d{3} \(0\.\d{3} to 0\.\d{3}\)\n", said("scores", tmp_path / "one.csv"))


def test_names_that_look_alike_are_told(tmp_path):
    table = answers(20, [0.5, 0.5]).replace({"model": {"m0": "gpt", "m1": "GPT "}})
    table.to_csv(tmp_path / "alike.csv", index=False)
    assert "taken as different models: 'GPT ' and 'gpt'" in run("scores", tmp_path / "alike.csv").output
