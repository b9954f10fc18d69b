import json

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import JudgeOutputs
from jaxeval.errors import DataError


def calls(outputs, **columns):
    """Two calls of an item, one in each order, as long as there are outputs."""
    n = len(outputs)
    item = np.arange(n) // 2
    a = np.where(np.arange(n) % 2, "y", "x")
    b = np.where(np.arange(n) % 2, "x", "y")
    return pd.DataFrame({"item": item, "model_a": a, "model_b": b, "output": outputs, **columns})


def read(outputs, columns=None, **options):
    return jaxeval.JudgeOutputs.from_pandas(calls(outputs, **(columns or {})), **options)


def scored(a, b, **more):
    return json.dumps({"scores_A": {"clarity": a, "depth": a}, "scores_B": {"clarity": b, "depth": b}, **more})


@pytest.mark.parametrize(("first", "second", "verdict"), [
    ("A", "B", "model_a"),
    ("B", "A", "model_b"),
    ("A", "A", "tie"),
    ("B", "B", "tie"),
    ("C", "A", "model_b"),
    ("tie", "B", "model_a"),
    ("C", "tie", "tie"),
])  # fmt: skip
def test_two_orders_are_one_battle(first, second, verdict):
    outputs = read([first, second])
    (battle,) = outputs.battles.to_dict("records")
    assert (battle["model_a"], battle["model_b"], battle["verdict"]) == ("x", "y", verdict)
    assert outputs.calls["shown_first"].tolist() == ["model_a", "model_b"]
    target = {"model_a": 1, "tie": 0.5, "model_b": 0}[verdict]
    assert outputs.judged().hard.tolist() == [target]


def test_battles_read_back_give_the_same_ratings_bit_for_bit():
    options = {"unlabelled": 0.3, "position_bias": 0.4, "seed": 3}
    battles = jaxeval.simulate_judged_battles(600, 6, **options)
    raw = jaxeval.simulate_judge_outputs(600, 6, judge_noise=[0.0], **options)
    back = jaxeval.JudgeOutputs.from_pandas(raw).judged()
    for name in ("model_a", "model_b", "score_difference", "human", "judge", "orders"):
        np.testing.assert_array_equal(getattr(back, name), getattr(battles, name))
    one, other = (jaxeval.soft_elo(b, n_resamples=30, progress=False) for b in (battles, back))
    pd.testing.assert_frame_equal(one.models, other.models, check_exact=True)
    np.testing.assert_array_equal(one.draws, other.draws)


def test_the_order_may_be_a_column():
    raw = jaxeval.simulate_judge_outputs(40, 4, judge_noise=[0.5], seed=2)
    whole = jaxeval.JudgeOutputs.from_pandas(raw)
    fixed = raw.copy()
    swapped = np.arange(len(raw)) % 2 == 1
    fixed.loc[swapped, ["model_a", "model_b"]] = raw.loc[swapped, ["model_b", "model_a"]].to_numpy()
    fixed["human"] = raw["human"].where(~swapped, raw["human"].shift())
    for name, values in (
        ("shown_first", raw["model_a"]),
        ("order", np.where(swapped, "BA", "AB")),
        ("presentation_order", np.where(swapped, "swapped", "original")),
        ("swapped", swapped),
    ):
        other = jaxeval.JudgeOutputs.from_pandas(fixed.assign(**{name: values}))
        pd.testing.assert_frame_equal(other.calls, whole.calls)
        pd.testing.assert_frame_equal(other.battles, whole.battles)
    with pytest.raises(DataError, match=r"'which' does not say .* in 80 rows \(first in row 0"):
        jaxeval.JudgeOutputs.from_pandas(fixed.assign(which=swapped), shown_first="which")


def test_runs_judges_and_items_tell_battles_apart():
    several = pd.concat([calls(["A", "B"]), calls(["B", "A"])], ignore_index=True)
    for name in ("judge", "run"):
        outputs = jaxeval.JudgeOutputs.from_pandas(several.assign(**{name: [1, 1, 2, 2]}))
        assert outputs.battles["verdict"].tolist() == ["model_a", "model_b"]
        assert outputs.battles[name].tolist() == [1, 2]
    judges = jaxeval.JudgeOutputs.from_pandas(several.assign(judge=["p", "p", "q", "q"]))
    assert judges.judged("q").hard.tolist() == [0.0]
    with pytest.raises(ValueError, match="name one of the judges p, q"):
        judges.judged()


@pytest.mark.parametrize(("odd", "why", "option"), [
    ("no idea", "'no idea' is no verdict", "labels="),
    ('{"score": "A"', "JSON that cannot be read (Expecting ',' delimiter)", "unparsed='drop'"),
    ('{"score": "A", "confidence": 85}', "confidence out of range", "confidence='percent'"),
    ('{"score": "A", "confidence": -0.1}', "confidence out of range", "confidence='percent'"),
    (None, "empty", "unparsed='drop'"),
    (scored(8, 7), "with scores, unlike other replies of the judge", "unparsed='drop'"),
])  # fmt: skip
def test_replies_that_cannot_be_read_are_an_error_or_counted(odd, why, option):
    outputs = ["A", "B", odd, "B", "A", "A"]
    with pytest.raises(DataError) as error:
        read(outputs)
    text = str(error.value)
    assert f"1 reply of 6 cannot be read: 1 {why} (first in row 2)" in text
    assert option in text
    left = read(outputs, unparsed="drop", one_order="keep")
    assert (left.report.n_unparsed, left.report.n_one_order, left.report.n_battles) == (1, 1, 3)
    assert "1 reply that cannot be read left out" in str(left.report)
    assert "1 battle judged in one order only kept" in str(left.report)


@pytest.mark.parametrize(
    ("odd", "why", "option", "resolved"),
    [
        (scored(8, 11), "criterion 'clarity' beyond its scale of 1 to 10", "scale=", {"scale": (0, 100)}),
        (scored(8, 7).replace('"depth": 8', '"dept": 8'), "missing criteria depth; unknown criteria dept", "criteria=",
         {"criteria": ["clarity"]}),
        (scored(8, 7).replace('"clarity": 7', '"clarity": 7, "overall": 9'), "unknown criteria overall", "criteria=",
         {"criteria": ["clarity", "Depth"]}),
        (scored(8, 7, preference="first one"), "'first one' is no verdict", "labels=",
         {"labels": {"first one": "model_a"}}),
    ],
)  # fmt: skip
def test_options_resolve_odd_scores(odd, why, option, resolved):
    outputs = [scored(8, 6), scored(6, 8), odd, scored(7, 8)]
    with pytest.raises(DataError) as error:
        read(outputs)
    assert why in str(error.value)
    assert option in str(error.value)
    assert read(outputs, **resolved).battles["verdict"].tolist() == ["model_a", "tie" if "11" in odd else "model_a"]


def test_confidence_in_per_cent():
    outputs = ['{"score": "A", "confidence": 80}', '{"score": "B", "confidence": 60}']
    assert read(outputs, confidence="percent").battles["confidence"].tolist() == [0.7]
    percent = [o.replace("80", '"80%"').replace("60", '"60%"') for o in outputs]
    for stated in ("share", "percent"):
        assert read(percent, confidence=stated).battles["confidence"].tolist() == [0.7]
    with pytest.raises(DataError, match="none of the 2 stated confidences is above 1: they are shares"):
        read([o.replace("80", "0.8").replace("60", "0.6") for o in outputs], confidence="percent")


def test_one_order_is_an_error_or_counted():
    outputs = ["A", "B", "A"]
    with pytest.raises(DataError, match=r"1 of 2 battles is judged in one order.*first in row 2.*one_order='keep'"):
        read(outputs)
    with pytest.raises(DataError, match=r"all 2 battles are judged in one order only.*no column says which item"):
        jaxeval.JudgeOutputs.from_pandas(calls(["A", "B"]).drop(columns="item"))
    assert read(outputs, one_order="drop").report.n_battles == 1
    kept = read(outputs, one_order="keep")
    assert kept.battles["verdict_b_first"].isna().tolist() == [False, True]
    assert kept.judged().hard.tolist() == [1, 1]
    assert np.isnan(kept.judged().orders[1, 1])
    single = read(["A"], one_order="keep").judged()
    assert single.orders is None
    with pytest.raises(DataError, match="no battle is judged in both orders"):
        read(["A"], one_order="drop")


def test_an_order_judged_twice_is_an_error_a_run_or_left_out():
    frame = pd.concat([calls(["A", "B"]), calls(["B", "A"])], ignore_index=True)
    with pytest.raises(DataError, match=r"2 calls repeat an order .*first in row 2.*repeats='first'.*repeats='runs'"):
        jaxeval.JudgeOutputs.from_pandas(frame)
    first = jaxeval.JudgeOutputs.from_pandas(frame, repeats="first")
    assert first.battles["verdict"].tolist() == ["model_a"]
    assert first.report.n_repeated == 2
    runs = jaxeval.JudgeOutputs.from_pandas(frame, repeats="runs")
    assert runs.battles[["run", "verdict"]].to_numpy().tolist() == [[0, "model_a"], [1, "model_b"]]
    named = jaxeval.JudgeOutputs.from_pandas(frame.assign(run="r"), repeats="runs")
    assert named.battles["run"].tolist() == ["r", "r/1"]


def test_human_labels_of_a_table_are_joined_by_item_and_pair(tmp_path):
    people = pd.DataFrame(
        {"item": [1, 0, 0, 7], "model_a": [*"xyyx"], "model_b": [*"yxxy"], "winner": ["tie", "y", "model_b", "x"],
         "rater": ["r", "r", "s", "r"]}
    )  # fmt: skip
    outputs = ["A", "B", "A", "A"]
    with pytest.raises(DataError) as error:
        read(outputs, human_labels=people.assign(winner=["tie", "model_a", "model_b", "model_a"]))
    assert "contradict each other on 1 item and pair (the first has 2 labels, from row 1 on: " in str(error.value)
    without = people.assign(winner=[None, "model_a", "model_b", "model_a"])
    with pytest.raises(DataError, match="the first has 2 labels, from row 1 on: "):
        read(outputs, human_labels=without)  # labels that are missing keep their rows
    people["winner"] = ["tie", "model_a", "model_b", "model_a"]
    left = read(outputs, human_labels=people, people="drop")
    assert left.battles["human"].fillna("none").tolist() == ["none", "tie"]
    split = read(outputs, human_labels=people, people="majority")
    assert split.battles["human"].tolist() == ["tie", "tie"]
    assert split.report.n_human_unused == 1
    assert split.human[["item", "model_a", "model_b", "rater", "verdict"]].to_numpy().tolist() == [
        [1, "x", "y", "r", "tie"], [0, "x", "y", "r", "model_b"], [0, "x", "y", "s", "model_a"],
    ]  # fmt: skip
    more = pd.concat([people, people.iloc[[1]].assign(rater="t")])
    more.to_csv(tmp_path / "people.csv", index=False)
    most = read(outputs, human_labels=tmp_path / "people.csv", people="majority")
    assert most.battles["human"].tolist() == ["model_b", "tie"]
    assert most.judged().human.tolist() == [0.0, 0.5]
    with pytest.raises(DataError, match="none of the 4 human labels is on an item and pair that was judged"):
        read(outputs, human_labels=people.assign(item="q"))
    for kind in (float, str):
        assert read(outputs, human_labels=people.astype({"item": kind}), people="drop").report.n_human == 3
    with pytest.raises(DataError, match="no column of the item"):
        read(outputs, human_labels=people.drop(columns="item"))
    with pytest.raises(DataError, match="numbers are never guessed"):
        read(outputs, human_labels=people.assign(winner=1))


def test_human_labels_beside_the_calls_count_once():
    outputs = read(["A", "B"], {"human": ["model_b", "model_a"]})
    assert outputs.human["verdict"].tolist() == ["model_b"]
    assert outputs.judged().human.tolist() == [0.0]
    with pytest.raises(DataError, match="people contradict each other on 1 item"):
        read(["A", "B"], {"human": ["model_b", "model_b"]})
    assert "human" not in read(["A", "B"], {"human": ["?", "?"]}, human=False).battles


def test_further_columns_are_those_of_the_first_call():
    columns = {"length_a": [10, 20, 30, 40], "length_b": [20, 10, 40, 30], "run": [1, 1, 1, 1], "verdict": [1, 2, 3, 4]}
    outputs = read(["A", "B", "no idea", "A"], columns, unparsed="drop", one_order="keep")
    assert outputs.battles[["model_a", "length_a", "length_b"]].to_numpy().tolist() == [["x", 10, 20], ["y", 40, 30]]
    judged = outputs.judged()
    assert list(judged.columns) == ["item", "run", "length_a", "length_b"]
    assert judged.column("length_a").tolist() == [10, 40]


@pytest.mark.parametrize("last", ["Final: [[B]]", "[[B>>A]]", "[[who knows]]"])
def test_a_verdict_in_brackets_that_contradicts_json_is_an_error(last):
    json_first = '{"score": "A", "confidence": 0.9}\n'
    for odd in (json_first + last, f"{last}\n{json_first}"):
        with pytest.raises(DataError, match=r"1 reply of 2 cannot be read: 1 several answers that differ"):
            read([odd, "B"])
    for same in ("[[A]]", "[[A>>B]]", "[[ a ]]"):
        assert read([json_first + same, "B"]).battles["verdict"].tolist() == ["model_a"]
    own = {"labels": {"first": "model_a", "who knows": "model_a"}}
    assert read(['{"score": "first"} [[A]]', '{"score": "B"}'], **own).battles["verdict"].tolist() == ["model_a"]


def test_a_verdict_in_brackets_beside_scores_is_the_verdict():
    outputs = read([scored(8, 6) + " [[B]]", scored(6, 8)])
    assert outputs.calls["verdict"].tolist() == ["model_b", "model_a"]
    assert outputs.report.n_against_scores == 1


def test_grades_of_single_answers_with_two_answers_are_an_error():
    def grades(*replies):
        return jaxeval.JudgedAnswers.from_pandas(pd.DataFrame({"item": range(2), "output": replies}), item="item")

    same = grades('{"correct": true} [[Yes]]', '{"correct": "no"} [[No]]')
    assert same.judgment.ravel().tolist() == [1, 0]
    with pytest.raises(DataError, match="1 several answers that differ"):
        grades('{"correct": true} [[No]]', "No")


def test_reasoning_is_counted():
    outputs = read(["<think>[[B]]?</think>[[A]]", "Hm.</think>\nB", "A", "B"])
    assert outputs.report.n_reasoned == 2
    assert "2 replies with reasoning before the answer" in str(outputs.report)
    assert "reasoning" not in str(read(["A", "B"]).report)


def test_grades_with_blanks_are_read():
    said = [("[[A >> B]]", "[[B > A]]"), ('{"score": "A >> B"}', "B>A"), ("[[ A = B ]]", "[[A=B]]")]
    verdicts = [read(pair).battles["verdict"][0] for pair in said]
    assert verdicts == ["model_a", "model_a", "tie"]
    assert read(["A >> B. [[A >> B]] [[A>>B]]", "B"]).battles["verdict"].tolist() == ["model_a"]
    odd = {"labels": {"A >> B": "model_b"}}
    assert read(["[[A >> B]]", "A"], **odd).battles["verdict"].tolist() == ["model_b"]


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA, " \n", ""])
def test_an_empty_reply_is_told_as_one(nothing):
    with pytest.raises(DataError, match=r"The first of them: an empty reply\. Say"):
        read([nothing, "B"])


def test_what_was_done_is_reported():
    outputs = [scored(8, 6, preference="B"), scored(6, 8).replace("}}", ",}}"), "[[A]]", "A"]
    frame = calls(outputs, judge=["s", "s", "v", "v"])
    frame.loc[3, "model_b"] = "y"
    report = str(jaxeval.JudgeOutputs.from_pandas(frame, one_order="keep").report)
    assert "1 call with a verdict for the side with the lower score" in report
    assert "1 reply read after commas or quotes were mended" in report
    assert "1 call of a model against itself left out" in report


def test_usual_names_of_columns_are_recognised_and_told():
    frame = calls(["A", "B"]).rename(
        columns={"item": "question_id", "model_a": "Model A", "model_b": "modelB", "output": "judge_output"}
    )
    outputs = jaxeval.JudgeOutputs.from_pandas(frame)
    assert "column 'Model A': read as 'model_a'" in str(outputs.report)
    with pytest.raises(DataError, match="2 columns named 'judge_output'"):
        jaxeval.JudgeOutputs.from_pandas(pd.concat([frame, frame[["judge_output"]]], axis=1))
    with pytest.raises(DataError, match="no column of what the judge printed"):
        jaxeval.JudgeOutputs.from_pandas(frame.drop(columns="judge_output"))


def test_replies_may_be_objects_of_a_file(tmp_path):
    raw = jaxeval.simulate_judge_outputs(30, 3, judge_noise=[0, 1], seed=1)
    objects = raw.assign(output=[json.loads(text.strip("`json \n")) for text in raw["output"]])
    objects.to_json(tmp_path / "objects.jsonl", orient="records", lines=True)
    pd.testing.assert_frame_equal(
        jaxeval.read_judge_outputs(tmp_path / "objects.jsonl").battles, jaxeval.JudgeOutputs.from_pandas(raw).battles,
        check_dtype=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "options", [{"scale": (3, 2)}, {"confidence": "sure"}, {"unparsed": "keep"}, {"labels": {"1": "first"}}]
)
def test_options_are_checked(options):
    with pytest.raises(ValueError, match=r"scale|confidence|unparsed|labels"):
        read(["A", "B"], **options)


def test_malformed_replies_are_simulated():
    raw = jaxeval.simulate_judge_outputs(100, 4, judge_noise=[0], malformed=0.2)
    with pytest.raises(DataError, match=r"replies of 200 cannot be read"):
        jaxeval.JudgeOutputs.from_pandas(raw)
    outputs = jaxeval.JudgeOutputs.from_pandas(raw, unparsed="drop", one_order="keep")
    assert outputs.report.n_unparsed + outputs.report.n_calls == 200
    assert 20 < outputs.report.n_unparsed < 65
    assert outputs.judged().n_battles == len(outputs.battles)


@pytest.mark.parametrize("name", ["order", "my_position"])
@pytest.mark.parametrize("values", [(1, 2), (0, 1), ("AB", "BA"), ("1", "2")])
def test_a_column_of_the_two_orders_is_recognised_by_its_values(name, values):
    rows = [(item, "x", "y", values[order], reply) for item in range(4) for order, reply in enumerate("AB")]
    frame = pd.DataFrame(rows, columns=["item", "model_a", "model_b", name, "output"])
    outputs = JudgeOutputs.from_pandas(frame)
    assert outputs.report.n_both_orders == 4
    assert outputs.battles["verdict"].tolist() == ["model_a"] * 4  # x is A in the first order, and B in the second
    assert any(f"column {name!r}: read as the side shown first" in line for line in outputs.report.read_as)


def test_numbers_that_may_be_turns_are_not_taken_for_orders():
    rows = [(item, "x", "y", turn, "A") for item in range(4) for turn in (1, 2)]
    frame = pd.DataFrame(rows, columns=["item", "model_a", "model_b", "turn", "output"])
    with pytest.raises(DataError, match=r"Column 'turn' tells them apart: .* say shown_first='turn'"):
        JudgeOutputs.from_pandas(frame)
    assert JudgeOutputs.from_pandas(frame, shown_first="turn").report.n_contradictions == 4


def test_numbers_that_look_like_scores_and_are_not_used_are_told():
    frame = pd.DataFrame({"item": [1], "model_a": "x", "model_b": "y", "output": ['{"clarity": 8, "winner": "A"}']})
    told = str(JudgeOutputs.from_pandas(frame, one_order="keep").report)
    assert "1 reply holds numbers that look like scores, and are not used: 'clarity' (1)" in told


def test_scores_by_criterion_first_are_scores():
    reply = '{"adherence": {"A": 8, "B": 6}, "fluency": {"A": 7, "B": 7}, "preference": "B"}'
    frame = pd.DataFrame({"item": [1], "model_a": "x", "model_b": "y", "output": [reply]})
    outputs = JudgeOutputs.from_pandas(frame, one_order="keep")
    assert outputs.calls[["score_a", "score_b"]].to_numpy().tolist() == [[7.5, 6.5]]
    assert outputs.report.n_against_scores == 1
    for word in ("Output (a)", "Answer: A", "output (A)"):
        verdict = JudgeOutputs.from_pandas(frame.assign(output=word), one_order="keep").battles["verdict"]
        assert verdict.tolist() == ["model_a"], word
