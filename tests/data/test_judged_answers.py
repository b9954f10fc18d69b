"""Reading judged answers: runs, several judges, missing judgments, shared answers, and errors that say where."""

import pickle

import numpy as np
import pandas as pd
import pytest

from jaxeval import DataError
from jaxeval.accuracy.prediction_powered import ppi_plus_plus
from jaxeval.data.judged_answers import ONLY_MODEL, JudgedAnswers, read_judged_answers, repeated

# Items are out of order, b has no answer to q3, and c's to q1 is a's.
TABLE = pd.DataFrame(
    {
        "item": ["q2", "q2", "q2", "q1", "q1", "q1", "q3", "q3"],
        "model": ["b", "a", "c", "a", "b", "c", "c", "a"],
        "human": [1, 0, 1, 1, 0, 1, np.nan, 1],
        "gpt": [1, 1, 0, 1, 0, 1, 1, 0],
        "score": [0.9, 0.4, 0.2, 0.7, 0.1, 0.7, 0.6, 0.3],
        "text": ["u", "v", "w", "x", "y", "x", "u", "v"],
        "topic": ["s", "s", "s", "t", "t", "t", "t", "t"],
    }
)
NAMES = {"judgment": "gpt", "model": "model", "item": "item"}
GPT = [[1, 0, 1], [1, 1, 0], [0, np.nan, 1]]
HUMAN = [[1, 0, 1], [0, 1, 1], [1, np.nan, np.nan]]


def read(frame=TABLE, **options):
    return JudgedAnswers.from_pandas(frame, **{**NAMES, **options})


def message(frame=TABLE, **options):
    with pytest.raises(DataError) as caught:
        read(frame, **options)
    return str(caught.value)


def long(runs=1):
    """A row per item, model, judge and run."""
    parts = [
        TABLE[["item", "model", "human"]].assign(judge=judge, run=run, verdict=(TABLE["gpt"] + run * flip) % 2)
        for judge, flip in (("steady", 0), ("fickle", 1))
        for run in range(runs)
    ]
    return pd.concat(parts).sample(frac=1, random_state=0)


def test_items_and_models_are_sorted_and_gaps_stay_gaps():
    answers = read()
    assert answers.items.tolist() == ["q1", "q2", "q3"]
    assert answers.models.tolist() == ["a", "b", "c"]
    assert answers.judges.tolist() == ["gpt"]
    np.testing.assert_array_equal(answers.judgment[:, :, 0], GPT)
    np.testing.assert_array_equal(answers.label, HUMAN)
    np.testing.assert_array_equal(answers.judged[:, :, 0], ~np.isnan(GPT))
    report = answers.report
    assert (report.n_rows, report.n_items, report.n_models, report.n_judges) == (8, 3, 3, 1)
    assert (report.n_judgments, report.n_labels, report.n_absent, report.n_missing) == (8, 7, 1, 0)
    assert "8 rows: 3 items, 3 models, 1 judge; 8 judgments, 7 human labels" in str(report)
    assert "1 time a model has no answer to an item" in str(report)


def test_several_columns_are_several_judges():
    answers = read(judgment=["score", "gpt"])
    assert answers.judges.tolist() == ["score", "gpt"]
    assert answers.binary.tolist() == [False, True]
    np.testing.assert_array_equal(answers.judgment[:, :, 1], GPT)
    cut = read(judgment="score", threshold=0.7)
    np.testing.assert_array_equal(cut.judgment[:, :, 0], [[1, 0, 1], [0, 1, 0], [0, np.nan, 0]])
    assert cut.binary.all()
    with pytest.raises(ValueError, match="threshold must be finite, got nan"):
        read(judgment="score", threshold=np.nan)


@pytest.mark.parametrize("runs", [1, 3])
def test_runs_of_a_judge_are_averaged(runs):
    answers = JudgedAnswers.from_pandas(long(runs), model="model", item="item", judge="judge", run="run")
    assert answers.judges.tolist() == ["fickle", "steady"]
    np.testing.assert_array_equal(answers.judgment[:, :, 1], GPT)
    changed = np.array([(np.array(GPT) + run) % 2 for run in range(runs)]).mean(0)
    np.testing.assert_allclose(answers.judgment[:, :, 0], changed)
    assert answers.binary.all()  # its runs are verdicts, though their mean is none
    assert answers.report.n_runs == runs
    assert ("up to 3 runs" in str(answers.report)) == (runs == 3)
    np.testing.assert_array_equal(answers.label, HUMAN)


def test_without_columns_each_row_is_an_item_of_one_model():
    answers = JudgedAnswers.from_pandas(TABLE.rename(columns={"gpt": "judgment"}))
    assert answers.models.tolist() == [ONLY_MODEL]
    assert answers.items.tolist() == list(range(8))
    np.testing.assert_array_equal(answers.judgment[:, 0, 0], TABLE["gpt"])


def test_booleans_and_words():
    booleans = read(TABLE.assign(gpt=TABLE["gpt"] == 1))
    np.testing.assert_array_equal(booleans.judgment[:, :, 0], GPT)
    words = TABLE.assign(
        gpt=np.where(TABLE["gpt"] == 1, "yes", "no"), human=TABLE["human"].map({1: "yes", 0: "no"}).astype(object)
    )
    found = read(words, positive="yes")
    np.testing.assert_array_equal(found.judgment[:, :, 0], GPT)
    np.testing.assert_array_equal(found.label, HUMAN)
    np.testing.assert_array_equal(read(words.assign(gpt="no"), positive="yes").judgment[0, 0], 0)
    assert "with positive='Yes' there may be that value and one other, found 'yes'" in message(words, positive="Yes")
    third = words.assign(gpt=[*words["gpt"][:7], "unsure"])
    assert "'unsure' (1)" in message(third, positive="yes")
    # The command line knows numbers and booleans as text.
    coded = TABLE.assign(gpt=TABLE["gpt"] + 1, human=TABLE["human"] + 1)
    np.testing.assert_array_equal(read(coded, positive="2").judgment[:, :, 0], GPT)
    np.testing.assert_array_equal(read(coded, positive=2).judgment[:, :, 0], GPT)


def gaps():
    return TABLE.assign(gpt=TABLE["gpt"].mask([False, True] + [False] * 6))


def test_missing_judgments_are_an_error_unless_told():
    found = message(gaps())
    assert "1 of 8 judgments is missing (first in row 1 of 'gpt'; rows count from 0)" in found
    assert "missing='drop', 'complete' or 'incorrect'" in found
    with pytest.raises(ValueError, match="missing must be one of 'error', 'drop', 'complete', 'incorrect', got 'skip'"):
        read(gaps(), missing="skip")


@pytest.mark.parametrize(("missing", "items", "value", "told"), [
    ("drop", ["q1", "q2", "q3"], np.nan, "1 judgment is missing: left out"),
    ("incorrect", ["q1", "q2", "q3"], 0, "1 judgment is missing: counted as incorrect"),
    ("complete", ["q1"], None, "2 items left out, because a model or a judge lacks"),
])  # fmt: skip
def test_policies_for_missing_judgments(missing, items, value, told):
    answers = read(gaps(), missing=missing)
    assert answers.items.tolist() == items
    if value is not None:
        np.testing.assert_array_equal(answers.judgment[1, 0, 0], value)
    assert told in str(answers.report)
    assert (answers.report.n_missing, answers.report.missing) == (1, missing)


def test_a_missing_run_leaves_the_others():
    frame = long(3)
    frame["verdict"] = frame["verdict"].mask((frame["item"] == "q1") & (frame["run"] == 1)).astype(float)
    answers = JudgedAnswers.from_pandas(frame, model="model", item="item", judge="judge", run="run", missing="drop")
    assert not np.isnan(answers.judgment[0]).any()
    np.testing.assert_array_equal(answers.judgment[0, :, 0], GPT[0])  # of runs 0 and 2


def test_nothing_left():
    nothing = TABLE.assign(gpt=np.nan)
    assert "no judgment is left of 8 rows: 8 judgments are missing" in message(nothing, missing="drop")
    assert "no judgment is left" in message(TABLE[TABLE["item"] == "q3"].assign(gpt=[1, np.nan]), missing="complete")
    assert "the table has no rows" in message(TABLE[:0])


def test_shared_answers_have_one_judgment():
    answers = read(answer="text")
    again = repeated(answers.answer, answers.judged.any(axis=2))
    np.testing.assert_array_equal(again, [[0, 0, 1], [0, 0, 0], [0, 0, 0]])
    assert answers.report.n_repeated == 1
    assert "1 answer shares the judgment" in str(answers.report)
    assert read().report.n_repeated == 0
    other = TABLE.assign(gpt=[1, 1, 0, 1, 0, 0, 1, 0])
    found = message(other, answer="text")
    assert "2 answers of models that gave the same by column 'text' differ in judge 'gpt' (first: item 'q1')" in found
    assert "differ in the label" in message(TABLE.assign(human=[1, 0, 1, 1, 0, 0, 1, 1]), answer="text")


def test_duplicates():
    twice = pd.concat([TABLE, TABLE.iloc[[4]]])
    found = message(twice)
    assert "1 judgment repeats another one of the same item, model (first in row 8: item 'q1', model 'b'" in found
    assert "name the column that numbers repeated runs with run=" in found
    runs = pd.concat([long(2), long(2).iloc[[0]]])
    found = message(runs, judgment="verdict", judge="judge", run="run")
    assert "of the same item, model, judge, run (first in row 32" in found
    assert "a judge judges an answer once in each run" in found
    numbers = message(twice.assign(item=twice["item"].str[1:].astype(int)))
    assert "(first in row 8: item 1, model 'b'" in numbers


def test_labels_are_0_or_1_and_one_an_answer():
    found = message(TABLE.assign(human=[1, 2, 0, 2, 0.5, 1, 1, 1]))
    words = message(TABLE.assign(human=["sure"] * 8))
    assert "column 'human' is not numeric" in words
    assert ": 'sure' (first in row 0; rows count from 0): write labels as 1 and 0, or name" in words
    assert "column 'human': labels must be 0 or 1, and 3 labels are not: 2 (2), 0.5 (1) (first in row 1" in found
    runs = long(2).reset_index(drop=True)
    runs.loc[0, "human"] = 1 - runs.loc[0, "human"]
    found = message(runs, judgment="verdict", judge="judge", run="run")
    assert "labels 'human': 1 answer has several (first in row 0" in found
    assert np.isnan(read(TABLE.drop(columns="human")).label).all()
    said = read(TABLE.assign(human=["Yes", "no", None, "[[Correct]]", "wrong", "PASS", "f", "y"]))
    assert [(said.label == value).sum() for value in (0, 1)] == [3, 4]
    assert "column 'human': read 'Yes' as 1, 'no' as 0, '[[Correct]]' as 1, 'wrong' as 0" in str(said.report)
    gaps = read(TABLE.assign(human=["yes", "no", "NA", "n/a", "", "-", None, "no"])).label
    assert [(gaps == value).sum() for value in (0, 1)] == [2, 1]
    odd = message(TABLE.assign(human=["yes", "no", "unsure", *["no"] * 5]))
    assert "column 'human' holds 'unsure' beside 'yes', 'no', which alone would be read as right and wrong" in odd
    mixed = message(TABLE.assign(human=["1", "0", "yes", "TRUE", *["0"] * 4]))
    assert "'1', '0' beside 'yes', 'TRUE', which alone" in mixed
    assert "write all of it in numbers, 'yes' as 1, 'TRUE' as 1" in mixed


def test_columns():
    with pytest.raises(DataError, match="no column 'judgment': name the column, or columns, with judgment="):
        JudgedAnswers.from_pandas(TABLE)
    for option in ("judgment", "label", "model", "judge", "item", "run", "answer"):
        assert "no column 'z' in the table" in message(**{option: "z"})
    assert "no column 'z'" in message(keep=["z"])
    assert "column 'item' has 1 missing value (first in row 2" in message(TABLE.assign(item=[*"ab", None, *"cdefg"]))
    told = message(TABLE.assign(gpt="sure"))
    assert "column 'gpt' is not numeric" in told
    assert "write judgments as 1 and 0 or as scores, or name the value that means right with positive=" in told
    assert "column 'gpt' has 1 infinite value" in message(TABLE.assign(gpt=[np.inf, *[1] * 7]))
    with pytest.raises(TypeError, match="keep must be a list"):
        read(keep="topic")
    with pytest.raises(ValueError, match="names the judges of one column of judgments"):
        read(judgment=["gpt", "score"], judge="topic")
    for wrong in ([], ["gpt", "gpt"]):
        with pytest.raises(ValueError, match="judgment must name one column, or several different ones"):
            read(judgment=wrong)
    with pytest.raises(TypeError, match="expected a pandas DataFrame"):
        read(TABLE["gpt"])


def test_covariates_belong_to_answers():
    answers = read(keep=["topic"])
    topic = answers.covariate("topic")
    assert topic.levels.tolist() == ["s", "t"]
    np.testing.assert_array_equal(topic.number, [[1, 1, 1], [0, 0, 0], [1, -1, 1]])
    with pytest.raises(DataError, match=r"no column 'length' to group by; the further columns are: .*'topic'"):
        answers.covariate("length")
    with pytest.raises(DataError, match=r"no column 3 to group by; the further columns are: .*'topic'"):
        answers.covariate(3)
    with pytest.raises(TypeError, match=r"name one column, got \['topic', 'length'\]"):
        answers.covariate(["topic", "length"])
    numbered = read(TABLE.rename(columns={"topic": 3}))
    np.testing.assert_array_equal(numbered.covariate(3).number, topic.number)
    later = pickle.loads(pickle.dumps(read().take(np.array([True, False, True]))))
    np.testing.assert_array_equal(later.covariate("topic").number, [[1, 1, 1], [1, -1, 1]])
    runs = long(2).reset_index(drop=True)
    found = message(runs.assign(z=np.arange(32)), judgment="verdict", judge="judge", run="run", keep=["z"])
    assert "values of column 'z': 8 answers have several" in found


def test_take_and_split():
    answers = read(keep=["topic"], answer="text")
    part = answers.take(np.array([True, False, True]))
    assert part.items.tolist() == ["q1", "q3"]
    np.testing.assert_array_equal(part.covariate("topic").number, [[1, 1, 1], [1, -1, 1]])
    assert (part.report.n_items, part.report.n_judgments, part.report.n_repeated) == (2, 5, 1)
    calibration, test = answers.split(1 / 3, seed=1)
    assert (len(calibration.items), len(test.items)) == (1, 2)
    assert sorted([*calibration.items, *test.items]) == ["q1", "q2", "q3"]
    assert answers.split(1 / 3, seed=1)[0].items.equals(calibration.items)
    assert len({answers.split(1 / 3, seed)[0].items[0] for seed in range(20)}) == 3
    for wrong in (0, 1, 1.5):
        with pytest.raises(ValueError, match="calibration_share must be between 0 and 1"):
            answers.split(wrong)


def test_numbers_in_a_file_are_names(tmp_path):
    path = tmp_path / "answers.csv"
    TABLE.assign(item=TABLE["item"].str.replace("q", "00")).to_csv(path, index=False)
    assert read_judged_answers(path, **NAMES).items.tolist() == ["001", "002", "003"]
    with pytest.raises(DataError, match=r"answers\.csv: no column 'z'"):
        read_judged_answers(path, judgment="z")


def test_real_answers_with_gaps(data):
    """NQ-open: some verdicts could not be read, and models share answers, whose judgment is one."""
    path = data / "nqopen301_human_vs_judges.parquet"
    columns = {"judgment": ["judge_gpt4", "judge_davinci003"], "model": "model", "item": "item", "answer": "answer"}
    with pytest.raises(DataError, match="268 of 7,096 judgments are missing"):
        read_judged_answers(path, **columns)
    answers = read_judged_answers(path, **columns, missing="drop")
    assert (len(answers.items), len(answers.models), answers.report.n_absent) == (301, 12, 64)
    accuracy = pd.Series(np.nanmean(answers.label, 0), answers.models)
    assert accuracy[["text-davinci-003_zeroshot", "FiD-KD", "R2D2"]].round(3).tolist() == [0.711, 0.73, 0.713]
    gpt = pd.Series(np.nanmean(answers.judgment[:, :, 0], 0), answers.models)
    assert gpt["text-davinci-003_zeroshot"] == pytest.approx(0.686, abs=6e-4)
    assert answers.report.n_repeated > 1_000
    complete = read_judged_answers(path, **columns, missing="complete")
    assert not np.isnan(complete.judgment).any()
    assert complete.report.n_dropped_items == 301 - len(complete.items)


def test_claude_against_qwen(data):
    """Humans prefer qwen3 (.400), one judge claude (.705), the other qwen3 more than they do (.225)."""
    frame = pd.read_parquet(data / "arena140k_gpt_judges_3pairs.parquet")
    frame = frame[frame["pair"].str.endswith("qwen3-235b-a22b-no-thinking")]
    claude_a = frame["model_a"] == "claude-opus-4-20250514"

    def claude_wins(column):
        return ((frame[column] == "model_a") == claude_a).astype(float).where(frame[column].notna())

    frame = frame.assign(human=claude_wins("human"), verdict=claude_wins("judge_pick"))
    answers = JudgedAnswers.from_pandas(frame, item="item", judge="judge", missing="drop")
    assert np.nanmean(answers.label) == pytest.approx(0.400, abs=5e-4)
    shares = dict(zip(answers.judges, np.nanmean(answers.judgment[:, 0], 0), strict=True))
    assert shares == pytest.approx({"gpt-5.2": 0.705, "gpt-4o-mini": 0.225}, abs=6e-4)
    calibration, test = answers.split(0.5, seed=0)
    both = ~np.isnan(calibration.judgment[:, 0]).any(1), ~np.isnan(test.judgment[:, 0]).any(1)
    known, judged = calibration.take(both[0]), test.take(both[1])
    found = ppi_plus_plus(known.label[:, 0], known.judgment[:, 0].T, judged.judgment[:, 0].T)
    assert ((found.lower < 0.4) & (found.upper > 0.4)).all()


def test_columns_in_another_case():
    table = pd.DataFrame({"Model": [*"xxyy"], "Item": [1, 2, 1, 2], "Judgment": [1, 0, 1, 1], "Human": [1, 0, None, 1]})
    answers = JudgedAnswers.from_pandas(table, model="model", item="item")
    assert answers.judgment[:, :, 0].T.tolist() == [[1, 0], [1, 1]]
    assert answers.report.n_labels == 3
    for column in ("Model", "Item", "Judgment", "Human"):
        assert f"column {column!r}: read as {column.lower()!r}" in str(answers.report)


def test_a_column_of_the_very_name_goes_before_another_spelling():
    table = pd.DataFrame({"Label": [0, 0, 0, 0], "label": [1, 0, 1, 1], "judgment": [1, 0, 0, 1]})
    answers = JudgedAnswers.from_pandas(table)
    assert answers.label.ravel().tolist() == [1, 0, 1, 1]
