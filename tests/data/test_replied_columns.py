import json

import numpy as np
import pandas as pd
import pytest

from jaxeval import AnchoredVerdicts, DataError, JudgedAnswers, read_anchored_verdicts


def answers(replies, **options):
    frame = pd.DataFrame({"item": np.arange(len(replies)), "output": replies, "human": 1})
    return JudgedAnswers.from_pandas(frame, item="item", **options)


def test_yes_and_no_and_grades_are_judgments():
    said = ["Yes", "No.", '{"correct": true}', "Long prose.\nFinal verdict: No", "[[Yes]]"]
    assert answers(said).judgment.ravel().tolist() == [1, 0, 1, 0, 1]
    assert answers(said).binary.all()
    grades = ["Rating: [[7]]", '{"score": 3, "reason": "short"}', "10", "Score: 8.5"]
    assert answers(grades).judgment.ravel().tolist() == [7, 3, 10, 8.5]
    assert answers(grades, threshold=7.5).judgment.ravel().tolist() == [0, 0, 1, 1]


def test_replies_need_no_names_of_columns():
    frame = pd.DataFrame(
        {"question_id": [1, 1, 2, 2], "model": [*"xyxy"], "judge": [*"pppp"], "output": ["Yes", "No", "No", "Yes"]}
    )
    both = pd.concat([frame, frame.assign(judge="q", output="Yes")])
    answers = JudgedAnswers.from_pandas(both)
    assert answers.judgment[..., 0].tolist() == [[1, 0], [0, 1]]
    assert list(answers.judges) == ["p", "q"]
    assert JudgedAnswers.from_pandas(pd.concat([frame, frame]).assign(run=[1] * 4 + [2] * 4)).report.n_runs == 2


def test_grades_that_cannot_be_read_are_an_error_or_counted():
    said = ["Yes", "I do not know whether it is, since the question cannot be answered at all.", "No", None]
    with pytest.raises(DataError, match=r"1 reply of 4 cannot be read: 1 prose without a verdict \(first in row 1\)"):
        answers(said)
    with pytest.raises(DataError, match=r"1 of 4 judgments is missing \(first in row 3"):
        answers(said, unparsed="drop")
    left = answers(said[:3], unparsed="drop")
    np.testing.assert_array_equal(left.judgment.ravel(), [1, np.nan, 0])
    assert "1 reply that cannot be read left out on request" in str(left.report)
    with pytest.raises(DataError, match=r"words such as Yes and No \(1\) and grades in numbers \(1\)"):
        answers(["Yes", "7"])


def anchored(replies, **columns):
    return pd.DataFrame({"model": "m", "item": np.arange(len(replies)), "output": replies} | columns)


def test_the_side_of_the_reference_decides():
    said = [json.dumps({"score": s, "confidence": c}) for s, c in (("A", 0.9), ("B", 0.6), ("C", 1.0))]
    frame = anchored(said)
    with pytest.raises(DataError, match="nothing says which side is the reference: give reference='A'"):
        AnchoredVerdicts.from_pandas(frame)
    verdicts = AnchoredVerdicts.from_pandas(frame, reference="A")
    assert verdicts.outcome.tolist() == [0, 1, 0.5]
    assert verdicts.confidence.tolist() == [0.9, 0.6, 1.0]
    assert AnchoredVerdicts.from_pandas(frame, reference="B").outcome.tolist() == [1, 0, 0.5]
    by_row = AnchoredVerdicts.from_pandas(frame.assign(side=[*"ABA"]), reference="side")
    assert by_row.outcome.tolist() == [0, 0, 0.5]
    with pytest.raises(DataError, match=r"does not say which side the reference is in 1 row \(first in row 2"):
        AnchoredVerdicts.from_pandas(frame.assign(side=[*"AB", "?"]), reference="side")


def test_both_sides_of_the_reference_are_one_verdict():
    frame = anchored(["A", "A", "B"]).assign(item=[0, 0, 1], side=[*"ABA"])
    verdicts = AnchoredVerdicts.from_pandas(frame, reference="side")
    assert verdicts.outcome.tolist() == [0.5, 1]
    with pytest.raises(DataError, match="1 verdict repeats another one on the same answer and side"):
        AnchoredVerdicts.from_pandas(frame.assign(side="A"), reference="side")


def test_letters_of_the_paper_and_a_column_of_confidence(tmp_path):
    frame = pd.DataFrame({"model": "m", "item": [1, 2, 3], "verdict": [*"WTL"], "confidence": [80, 90, 100]})
    with pytest.raises(DataError, match=r"3 values lie outside \[0, 1\] \(first in row 0.*confidence='percent'"):
        AnchoredVerdicts.from_pandas(frame)
    frame.to_csv(tmp_path / "letters.csv", index=False)
    verdicts = read_anchored_verdicts(tmp_path / "letters.csv", confidence="percent")
    assert verdicts.outcome.tolist() == [1, 0.5, 0]
    assert verdicts.confidence.tolist() == [0.8, 0.9, 1.0]
    with pytest.raises(DataError, match=r"unknown labels: 'A' \(3\).*say which side is the reference: reference='A'"):
        AnchoredVerdicts.from_pandas(frame.assign(verdict="A"), confidence="percent")


def test_replies_on_a_reference_that_cannot_be_read():
    frame = anchored(["A", "no idea", '{"score": "B", "confidence": 70}'])
    with pytest.raises(DataError, match=r"2 replies of 3 cannot be read.*confidence='percent'"):
        AnchoredVerdicts.from_pandas(frame, reference="A")
    left = AnchoredVerdicts.from_pandas(frame, reference="A", confidence="percent", unparsed="drop")
    assert left.outcome.tolist() == [0, 1]
    assert left.n_unparsed == 1
    assert "1 reply that cannot be read left out on request" in str(left)


def test_published_grades_of_single_answers():
    said = ['{"reasoning": "r", "prediction": "Yes"}', "correct: no\nconfidence: 80%", '{"correct": "yes", "score": 3}']
    found = answers(said)
    assert found.judgment.ravel().tolist() == [1, 0, 1]
    assert "1 reply holds numbers that look like scores, and are not used: 'score' (1)" in str(found.report)
    assert answers(["7/10", "Score: 3/5", "10/10"]).judgment.ravel().tolist() == [0.7, 0.6, 1.0]
    with pytest.raises(DataError, match="'12/10' is no grade"):
        answers(["7/10", "12/10"])
