import json
import re

import pytest

from jaxeval.data.judge_replies import MOST_CHARACTERS, read_reply

BOTH = {"scores_A": {"clarity": 8, "fluency": 7}, "scores_B": {"clarity": 6, "fluency": 7}, "preference": "A"}
SCORES = ({"clarity": 8.0, "fluency": 7.0}, {"clarity": 6.0, "fluency": 7.0})


@pytest.mark.parametrize("text", [
    json.dumps(BOTH),
    f"```json\n{json.dumps(BOTH, indent=2)}\n```",
    f"Here is {{my}} verdict:\n```\n{json.dumps(BOTH)}\n```\nA is {{far}} clearer.",
    json.dumps(BOTH).replace('"clarity"', '"Clarity "').replace("scores_A", "Scores A"),
    json.dumps(BOTH).replace("7}", "7,}"),
    json.dumps(BOTH).replace("7}", '"7"}'),
    json.dumps({"scores": {"A": BOTH["scores_A"], "B": BOTH["scores_B"]}, "winner": "A"}),
    json.dumps(BOTH).replace("8", '{"score": 8, "reason": "short, and clear"}'),
    json.dumps(BOTH) + "\n" + json.dumps(BOTH),
    json.dumps(BOTH)[:-1] + ', "reason": "A, [[A]], is better,\n  }, and “clear”,"}',
    json.dumps(BOTH).translate({34: "“"}),
])  # fmt: skip
def test_criteria_of_both_sides_are_read_however_they_are_wrapped(text):
    reply = read_reply(text)
    assert (reply.scores, reply.word, reply.wrong) == (SCORES, "A", "")


@pytest.mark.parametrize(("text", "word", "wrong"), [
    ("<think>[[B]] is wordy, {so</think>\n[[A]]", "A", ""),
    ("<THINKING>\n[[B]]?\n</THINKING>\n\nVerdict: A", "A", ""),
    ('The prompt asks for {"score": "B"}.\n</think>\n{"score": "A"}', "A", ""),
    ("<think>one [[B]]</think><think>two [[B]]</think> [[A]]", "A", ""),
    ("<think>They ask me to think of <think>.</think> [[A]]", "A", ""),
    ("<think>is it [[A]]", "", "reasoning without an answer"),
    ("<think>it is [[A]]</think>\n", "", "reasoning without an answer"),
    ("<think>" * 100_000, "", "reasoning without an answer"),
])  # fmt: skip
def test_reasoning_before_the_answer_is_not_read(text, word, wrong):
    reply = read_reply(text)
    assert (reply.word, reply.wrong, reply.reasoned) == (word, wrong, True)


@pytest.mark.parametrize(
    "text",
    ['{"score": "A", "reason": "no </think> in it"}', "The answer leaks its <think> tag. [[A]]", "[[A]]",
     '```json\n{"score": "A", "reason": "<think>oh</think>"}\n```'],
)  # fmt: skip
def test_tags_that_are_no_reasoning_stay(text):
    assert read_reply(text)[:1] == ("A",)
    assert not read_reply(text).reasoned


def test_an_object_is_read_as_its_text_is():
    assert read_reply({**BOTH, "absent": None}) == read_reply(json.dumps(BOTH))


@pytest.mark.parametrize(("text", "word"), [
    ('{"score": "B", "confidence": 0.75, "reason": "shorter"}', "B"),
    ('{"score": "B", "confidence": 0.75,\n}', "B"),
    ("[[A]]", "A"),
    ("A is better. Final verdict: [[A>>B]]", "A>>B"),
    ("First [[A]] I thought, and [[A]] it is", "A"),
    ("**tie**", "tie"),
    ("Long prose.\n\nMy final verdict is: B.", "B"),
    ("Some prose\nYes", "Yes"),
    ("Rating: [[7]]", "7"),
    ('{"rating": 7}', "7"),
    ('{"correct": true}', "True"),
    ('{"winner": "A", "score": 8}', "A"),
])  # fmt: skip
def test_verdicts_and_grades_are_read(text, word):
    reply = read_reply(text)
    assert (reply.word, reply.wrong) == (word, "")


@pytest.mark.parametrize(("text", "wrong"), [
    (None, "empty"),
    (float("nan"), "empty"),
    ("  \n ", "empty"),
    ("a" * (MOST_CHARACTERS + 1), "longer than"),
    ("I cannot compare these two answers, since neither of them says anything at all.", "prose without a verdict"),
    ('{"scores_A": {"clarity": 8}, "scores_B": {"cla', "JSON that cannot be read"),
    ('{"scores_A": {"clarity": 8}, "preference": "A"\n"preference": "A"', "JSON that cannot be read"),
    ('{"score": "A", "score": "B"}', "names a key twice"),
    ('{"Score": "A", "verdict": "B"}', "several verdicts that differ"),
    ('{"score": "A"} {"score": "B"}', "several answers that differ"),
    ('{"score": "A",} or {"score": "B"}', "several answers that differ"),
    ('{"score": "A",} or {“score”: "B",}', "several answers that differ"),
    ("[[A]] or [[B]]", "several verdicts in brackets"),
    ('{"score": "A", "confidence": NaN}', "NaN"),
    ('{"score": "A", "confidence": -Infinity}', "Infinity"),
    ('{"score": "A", "confidence": 1e999}', "confidence that is no number"),
    ('{"score": "A", "confidence": "high"}', "confidence that is no number"),
    ('{"scores_A": {"clarity": 1e999}, "scores_B": {"clarity": 1}}', "'clarity' has no number"),
    ('{"scores_A": {"clarity": true}, "scores_B": {"clarity": 1}}', "'clarity' has no number"),
    ('{"scores_A": {"clarity": "good"}, "scores_B": {"clarity": 1}}', "'clarity' has no number"),
    ('{"scores_A": {"clarity": ' + "9" * 400 + '}, "scores_B": {"clarity": 1}}', "'clarity' has no number"),
    ('{"scores_A": {"clarity": ' + "9" * 5000 + '}, "scores_B": {"clarity": 1}}', "JSON that cannot be read"),
    ('{"scores_A": {"clarity": 1, "Clarity": 2}, "scores_B": {"clarity": 1}}', "names a criterion twice"),
    ('{"scores_A": {}, "scores_B": {}}', "without a criterion"),
    ('{"scores_A": {"clarity": 8}}', "one side only"),
    ('{"opinion": "A"}', "without a verdict"),
    ("{}", "without a verdict"),
    ('{"a":' * 100_000, "JSON|too deep"),
    ('{"a":' + "[" * 100_000, "JSON|too deep"),
])  # fmt: skip
def test_what_cannot_be_read_says_why(text, wrong):
    reply = read_reply(text)
    assert re.search(wrong, reply.wrong), reply
    assert not reply.word
    assert reply.scores is None


@pytest.mark.parametrize("sign", ["{", '{"a":', "[[A", '{"a":1}', "“", "{,", ", }", "```", "verdict: ", "\n", "\\"])
def test_hostile_length_costs_no_more_than_it_is_long(sign):
    # In quadratic time this would take hours.
    assert read_reply("{" + '"' * (sign == "\\") + sign * (400_000 // len(sign))).wrong


@pytest.mark.parametrize(("text", "word"), [
    ('{"reasoning": "It follows.", "prediction": "Yes"}', "Yes"),
    ("Answer: A", "A"),
    ("extracted_final_answer: 3\nreasoning: as it is\ncorrect: yes\nconfidence: 90%", "yes"),
    ("correct: no", "no"),
    ("[{'model': 'model_1', 'rank': 2}, {'model': 'model_2', 'rank': 1}]", "B"),
    ('[{"model": "A", "rank": 1}, {"model": "B", "rank": 1}]', "tie"),
    ('{"ranking": ["B", "A"]}', "B"),
    ('{"ranks": {"A": 1, "B": 2}}', "A"),
])  # fmt: skip
def test_words_of_published_prompts(text, word):
    reply = read_reply(text)
    assert (reply.wrong, reply.word, reply.scores, reply.unused) == ("", word, None, ())


@pytest.mark.parametrize("text", [
    '{"clarity": {"A": 8, "B": 6}, "fluency": {"A": 7, "B": 7}, "preference": "A"}',
    '{"clarity_A": 8, "clarity_B": 6, "fluency_A": 7, "fluency_B": 7, "preference": "A"}',
    '{"scores": {"clarity": {"A": 8, "B": 6}, "fluency": {"a": 7, "b": 7}}, "preference": "A"}',
    '{"clarity": {"completion_A": 8, "completion_B": 6}, "fluency": {"A": 7, "B": 7}, "winner": "A"}',
])  # fmt: skip
def test_criteria_may_come_before_the_sides(text):
    reply = read_reply(text)
    assert reply.word == "A"
    assert reply.scores == ({"clarity": 8.0, "fluency": 7.0}, {"clarity": 6.0, "fluency": 7.0})
    assert reply.unused == ()


def test_two_numbers_on_a_line_are_scores_of_both_sides():
    for text in ("8 7", "8, 7", "8/10 7/10", "8 7\nThe first one explains more.", "The first one explains more.\n8 7"):
        assert read_reply(text).scores == ({"score": 8.0}, {"score": 7.0}), text
    assert read_reply("[1, 2]").scores is None  # ranks or scores


def test_numbers_that_look_like_scores_and_are_not_read_are_named():
    assert read_reply('{"preference": "A", "clarity": 8, "tokens": 40}').unused == ("clarity",)
    assert read_reply('{"preference": "A", "clarity": {"A": 8}}').unused == ("clarity",)
    assert read_reply('{"correct": "yes", "score": 7}').unused == ("score",)
    assert "scores of one side only" in read_reply('{"clarity_A": 8, "preference": "A"}').wrong
