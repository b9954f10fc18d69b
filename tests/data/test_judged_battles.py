"""Reading judged battles: scores as data, both orders, codings that are never guessed, and errors that say where."""

import json

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import DataError, JudgedBattles, read_judged_battles, read_judges
from jaxeval.lab.judge_diagnostics import position_bias

SCORES_A = [{"x": 8, "y": 6.5}, {"x": 5, "y": 5}, {"x": 2, "y": 3}, {"x": 9, "y": 9}]
SCORES_B = [{"x": 7, "y": 6.5}, {"x": 5, "y": 5}, {"y": 4, "x": 3}, {"x": 1, "y": 2}]
DIFFERENCE = [0.5, 0.0, -1.0, 7.5]
TABLE = pd.DataFrame({"model_a": list("abca"), "model_b": list("bcab"), "scores_a": SCORES_A, "scores_b": SCORES_B})
LABELLED = TABLE.assign(human=["model_a", "tie", "model_b", None])


def message(frame, **options):
    with pytest.raises(DataError) as caught:
        JudgedBattles.from_pandas(frame, **options)
    return str(caught.value)


@pytest.mark.parametrize("write", [lambda s: s, str, json.dumps, lambda s: repr(s).replace("'", '"')])
def test_dicts_and_their_text_give_the_mean_difference(write):
    frame = LABELLED.assign(scores_a=[write(s) for s in SCORES_A], scores_b=[write(s) for s in SCORES_B])
    battles = JudgedBattles.from_pandas(frame)
    np.testing.assert_array_equal(battles.score_difference, DIFFERENCE)
    np.testing.assert_array_equal(battles.judge, [1, 0.5, 0, 1])
    np.testing.assert_array_equal(battles.human, [1, 0.5, 0, np.nan])
    assert battles.models.tolist() == ["a", "b", "c"]
    assert (battles.report.n_human, battles.report.n_human_ties, battles.report.n_judge_ties) == (3, 1, 1)


def test_numeric_columns_and_lists_of_them():
    frame = TABLE.drop(columns=["scores_a", "scores_b"])
    frame = frame.assign(
        **{f"{side}{k}": [s[k] for s in scores] for side, scores in (("a", SCORES_A), ("b", SCORES_B)) for k in "xy"}
    )
    lists = JudgedBattles.from_pandas(frame, scores_a=["ax", "ay"], scores_b=["bx", "by"])
    np.testing.assert_array_equal(lists.score_difference, DIFFERENCE)
    one = JudgedBattles.from_pandas(frame, scores_a="ax", scores_b="bx")
    np.testing.assert_array_equal(one.score_difference, [1, 0, -1, 8])


def test_both_orders_average_and_a_flip_is_a_tie():
    frame = pd.DataFrame(
        {
            "model_a": ["a", "a", "b", "b"],
            "model_b": ["b", "c", "c", "a"],
            "a1": [3.0, 5.0, 4.0, 1.0],
            "b1": [1.0, 4.0, 4.0, 2.0],
            "a2": [2.0, 2.0, 5.0, 1.0],
            "b2": [1.0, 4.0, 4.0, 3.0],
        }
    )
    battles = JudgedBattles.from_pandas(
        frame, scores_a="a1", scores_b="b1", scores_a_swapped="a2", scores_b_swapped="b2"
    )
    np.testing.assert_array_equal(battles.orders, [[2, 1], [1, -2], [0, 1], [-1, -2]])
    np.testing.assert_array_equal(battles.score_difference, [1.5, -0.5, 0.5, -1.5])
    np.testing.assert_array_equal(battles.judge, [1, 0.5, 1, 0])
    # Decided: + + + - + - - : first place wins 2 (+, first order) and 2 (-, second order) of 7. Flips: 1 of 3.
    share = position_bias(battles)["share"]
    assert share["position_1"] == 4 / 7
    assert share["flip"] == 1 / 3


@pytest.mark.parametrize(("coding", "target"), [("a_wins_1", [1, 0, 0.5, np.nan]), ("a_wins_0", [0, 1, 0.5, np.nan])])
def test_numeric_labels_are_read_as_told_and_never_guessed(coding, target):
    frame = TABLE.assign(human_pref=[1, 0, 0.5, np.nan], judge_pref=[1, 0, 0.5, np.nan])
    battles = JudgedBattles.from_pandas(frame, label_coding=coding)
    np.testing.assert_array_equal(battles.human, target)
    np.testing.assert_array_equal(battles.verdict, target)
    np.testing.assert_array_equal(battles.hard, [*target[:3], 1])
    for wrong in (None, "labels"):
        assert "label_coding='a_wins_1'" in message(frame, label_coding=wrong)
    with pytest.raises(ValueError, match="a_wins_1"):
        JudgedBattles.from_pandas(frame, label_coding="one")


def test_a_judge_of_verdicts_only_scores_plus_or_minus_one():
    frame = TABLE[["model_a", "model_b"]].assign(gpt=["model_a", "tie", "model_b", None])
    battles = JudgedBattles.from_pandas(frame, verdict="gpt")
    np.testing.assert_array_equal(battles.score_difference, [1, 0, -1])
    assert battles.report.n_without_score == 1
    assert "without a judge's score" in str(battles.report)


def test_whole_numbers_of_more_than_64_bits_are_scores():
    text = [str({**SCORES_A[0], "x": 10**30}), *(str(s) for s in SCORES_A[1:])]
    assert JudgedBattles.from_pandas(TABLE.assign(scores_a=text)).score_difference[0] == pytest.approx(5e29)


@pytest.mark.parametrize(("value", "reason"), [
    ("__import__('os').system('true')", "cannot be parsed"),
    ("[1, 2]", "a list, not a dict"),
    ("{}", "an empty dict"),
    ("{'x': 'high', 'y': 1}", "criterion 'x' has no number"),
    ("{'x': 1e999, 'y': 1}", "criterion 'x' is not finite"),
    ("{'x': " + "9" * 400 + ", 'y': 1}", "criterion 'x' is too large"),
    ("{'x': " + "1" * 20_000 + "}", "longer than 10,000 characters"),
    ("(" * 5000, "cannot be parsed"),
])  # fmt: skip
def test_text_is_data_and_malformed_rows_are_counted(value, reason):
    text = [str(s) for s in SCORES_A]
    found = message(TABLE.assign(scores_a=[text[0], value, text[2], value]))
    assert "column 'scores_a': 2 of 4 rows" in found
    assert f"first in row 1: {reason}" in found


def test_missing_criteria_columns_and_labels():
    assert "different criteria" in message(TABLE.assign(scores_b=[{"x": 1}] * 4))
    assert "1 row has scores for some criteria only (first in row 2; rows count from 0)" in message(
        TABLE.assign(scores_a=[*SCORES_A[:2], {"x": 2}, SCORES_A[3]])
    )
    assert "no column 'scores_q'" in message(TABLE, scores_a="scores_q", scores_b="scores_b")
    assert "no scores of a judge" in message(TABLE[["model_a", "model_b"]])
    assert "unknown labels: 'A1' (1), 'B2' (3)" in message(TABLE.assign(human=["A1", "B2", "B2", "B2"]))
    assert np.isnan(JudgedBattles.from_pandas(TABLE.assign(human=np.nan)).human).all()  # nothing to be told about
    with pytest.raises(ValueError, match="both sides"):
        JudgedBattles.from_pandas(TABLE, scores_a="scores_a")


def test_self_battles_and_missing_scores_are_left_out_and_counted():
    frame = LABELLED.assign(model_b=["b", "b", "a", "b"], scores_a=[*SCORES_A[:3], None], language=list("wxyz"))
    battles = JudgedBattles.from_pandas(frame)
    report = battles.report
    assert (report.n_rows, report.n_battles, report.n_self_battles, report.n_without_score) == (4, 2, 1, 1)
    assert battles.columns["language"].tolist() == ["w", "y"]
    assert "no battle is left" in message(frame.iloc[[1, 3]])


def test_subset_keeps_rows_together_and_drops_models_without_any():
    battles = JudgedBattles.from_pandas(LABELLED)
    part = battles.subset(np.array([True, False, False, True]))
    assert part.models.tolist() == ["a", "b"]
    np.testing.assert_array_equal(part.score_difference, [0.5, 7.5])
    assert part.report.n_battles == 2


def test_objects_are_text_in_a_file(tmp_path):
    path = tmp_path / "judged.csv"
    text = {"scores_a": [*map(str, SCORES_A)], "scores_b": [*map(str, SCORES_B)]}
    LABELLED.assign(**text, extra=range(4)).to_csv(path, index=False)
    battles = read_judged_battles(path, judge_name="gpt")
    np.testing.assert_array_equal(battles.score_difference, DIFFERENCE)
    assert battles.judge_name == "gpt"
    assert battles.columns["extra"].tolist() == [0, 1, 2, 3]
    with pytest.raises(DataError, match=r"judged\.csv: no column 'm'"):
        read_judged_battles(path, model_a="m")


def test_the_real_sample(data):
    battles = read_judged_battles(data / "softelo_sample.csv", label_coding="a_wins_0")
    assert battles.n_battles == 1000
    assert battles.n_models == 14
    assert battles.report.n_human_ties == 361
    assert battles.verdict is not None
    assert list(battles.columns.columns) == ["row_id", "meta_lang"]


def test_simulated_orders_average_to_the_lattice():
    battles = jaxeval.simulate_judged_battles(5_000, 10, position_bias=0.5, unlabelled=0.1, seed=3)
    twelfths = 12 * battles.score_difference
    np.testing.assert_allclose(twelfths, np.rint(twelfths), atol=1e-6)
    np.testing.assert_allclose(battles.orders.mean(1), battles.score_difference, atol=1e-8)
    gap = battles.orders[:, 0] - battles.orders[:, 1]
    inner = np.abs(battles.score_difference) < 6
    error = gap[inner].std() / np.sqrt(inner.sum())
    # The odd twelfth goes to the second order: half a sixth less on average.
    assert abs(gap[inner].mean() - (2 * 0.5 - 1 / 12)) < 5 * error
    missing = np.isnan(battles.human).mean()
    assert abs(missing - 0.1) < 5 * np.sqrt(0.09 / 5000)


BOTH = {"scores_a": "a1", "scores_b": "b1", "scores_a_swapped": "a2", "scores_b_swapped": "b2"}
ORDERS = pd.DataFrame(
    {
        "model_a": ["a", "a", "b", "b"], "model_b": ["b", "c", "c", "a"],
        "a1": [3.0, 5.0, 4.0, 1.0], "b1": [1.0, 4.0, 4.0, 2.0], "a2": [2.0, 2.0, 5.0, 1.0], "b2": [1.0, 4.0, 4.0, 3.0],
        "verdict": ["model_a", "model_a", "tie", None], "swapped": ["model_a", "model_b", "model_b", "model_b"],
    }
)  # fmt: skip


class TestHardLabel:
    def test_with_both_orders_it_is_that_of_the_scores(self):
        """A column that happens to be called a verdict changes no label, and where it differs is said."""
        battles = JudgedBattles.from_pandas(ORDERS, **BOTH)
        np.testing.assert_array_equal(battles.hard, [1, 0.5, 1, 0])
        np.testing.assert_array_equal(battles.hard, battles.judge)
        np.testing.assert_array_equal(battles.verdict, [1, 1, 0.5, np.nan])
        assert battles.hard_label == "scores"
        assert (battles.report.n_verdicts, battles.report.n_verdict_differs) == (3, 2)
        text = str(battles.report)
        assert "hard label: sign of the scores, a tie where it flips with the order (1 tie)" in text
        assert "verdict and label of the scores differ in 2 of 3 battles (66.7%)" in text

    def test_a_verdict_that_is_asked_for(self):
        battles = JudgedBattles.from_pandas(ORDERS, **BOTH, hard_label="verdict")
        np.testing.assert_array_equal(battles.hard, [1, 1, 0.5, 0])
        assert "hard label: the judge's verdict, and the sign of the scores in 1 battle without one" in str(
            battles.report
        )
        assert battles.report.n_verdict_differs == 2

    def test_without_orders_a_verdict_is_the_label(self):
        one = {"scores_a": "a1", "scores_b": "b1"}
        np.testing.assert_array_equal(JudgedBattles.from_pandas(ORDERS, **one).hard, [1, 1, 0.5, 0])
        asked = JudgedBattles.from_pandas(ORDERS, **one, hard_label="scores")
        np.testing.assert_array_equal(asked.hard, [1, 1, 0.5, 0])
        assert "hard label: sign of the scores (1 tie)" in str(asked.report)

    def test_verdicts_of_two_orders(self):
        """One side in both, or one beside a tie; two sides are a tie, and one that is missing is no verdict."""
        battles = JudgedBattles.from_pandas(ORDERS, **BOTH, verdict_swapped="swapped", hard_label="verdict")
        np.testing.assert_array_equal(battles.verdict, [1, 0.5, 0, np.nan])
        np.testing.assert_array_equal(battles.verdict_orders[1], [1, 0])
        np.testing.assert_array_equal(battles.hard, [1, 0.5, 0, 0])
        assert "a tie where it changes sides with the order" in str(battles.report)
        only = ORDERS[["model_a", "model_b", "verdict", "swapped"]]
        alone = JudgedBattles.from_pandas(only, verdict_swapped="swapped")
        np.testing.assert_array_equal(alone.score_difference, [1, 0, -0.5])
        np.testing.assert_array_equal(alone.orders, [[1, 1], [1, -1], [0, -1]])
        np.testing.assert_array_equal(alone.hard, [1, 0.5, 0])
        assert alone.report.n_without_score == 1
        part = battles.subset([0, 2])
        np.testing.assert_array_equal(part.verdict_orders, [[1, 1], [0.5, 0]])
        assert part.hard_label == "verdict"

    def test_what_cannot_be(self):
        with pytest.raises(ValueError, match="'scores', 'verdict', got 'both'"):
            JudgedBattles.from_pandas(ORDERS, **BOTH, hard_label="both")
        without = ORDERS.drop(columns=["verdict", "swapped"])
        assert "needs a column of verdicts: name it with verdict= (on the command line --verdict)" in message(
            without, **BOTH, hard_label="verdict"
        )
        assert "gives verdicts only" in message(ORDERS[["model_a", "model_b", "verdict"]], hard_label="scores")
        with pytest.raises(ValueError, match="need those of the other order: name verdict="):
            JudgedBattles.from_pandas(ORDERS.drop(columns="verdict"), **BOTH, verdict_swapped="swapped")


def test_groups_of_a_column_name_the_rows_of_the_table():
    frame = LABELLED.assign(model_b=["b", "b", "a", "b"], prompt=["x", "y", None, "x"], language=list("wxyz"))
    battles = JudgedBattles.from_pandas(frame.set_index("language", drop=False))
    codes, names = battles.codes("language")
    assert (codes.tolist(), names.tolist()) == ([0, 1, 2], ["w", "y", "z"])
    with pytest.raises(DataError, match=r"column 'prompt' has 1 missing value \(first in row 2; rows count from 0"):
        battles.codes("prompt")


def test_labels_that_are_not_wanted_are_not_read():
    frame = pd.DataFrame(
        {"model_a": ["x", "y"], "model_b": ["y", "z"], "scores_a": [1, 2], "scores_b": [2, 1], "human_pref": [0, "?"],
         "judge_pref": [7, 1]}
    )  # fmt: skip
    with pytest.raises(jaxeval.DataError):
        jaxeval.JudgedBattles.from_pandas(frame)
    battles = jaxeval.JudgedBattles.from_pandas(frame, human=False, verdict=False)
    assert np.isnan(battles.human).all()
    assert battles.verdict is None
    assert battles.label_coding is None
    assert {"human_pref", "judge_pref"} <= set(battles.columns.columns)
    coded = jaxeval.JudgedBattles.from_pandas(frame.assign(human_pref=[0, 1]), verdict=False, label_coding="a_wins_0")
    assert coded.label_coding == "a_wins_0"
    assert list(coded.human) == [1, 0]


def in_rows(n=40, seed=0):
    """The same judged battles in two shapes: a row with columns of both orders, and a row for each order."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(1, 11, (2, 2, n)).astype(float)
    wide = pd.DataFrame(
        {"item": np.arange(n), "model_a": np.array([*"xyz"])[np.arange(n) % 3],
         "model_b": np.array([*"yzx"])[np.arange(n) % 3], "a1": first[0], "b1": first[1], "a2": second[0],
         "b2": second[1], "human": rng.choice(["model_a", "tie", "model_b"], n)}
    )  # fmt: skip
    other = {"model_a": "model_b", "model_b": "model_a", "tie": "tie"}
    one = wide[["item", "model_a", "model_b", "human"]].assign(scores_a=first[0], scores_b=first[1])
    two = pd.DataFrame(
        {"item": wide["item"], "model_a": wide["model_b"], "model_b": wide["model_a"],
         "human": wide["human"].map(other), "scores_a": second[1], "scores_b": second[0]}
    )  # fmt: skip
    return wide, pd.concat([one, two], ignore_index=True)


def test_both_orders_in_rows_of_their_own_are_one_battle():
    wide, rows = in_rows()
    expected = JudgedBattles.from_pandas(
        wide, scores_a="a1", scores_b="b1", scores_a_swapped="a2", scores_b_swapped="b2", item="item"
    )
    battles = JudgedBattles.from_pandas(rows)
    for name in ("model_a", "model_b", "score_difference", "orders", "human", "judge"):
        np.testing.assert_array_equal(getattr(battles, name), getattr(expected, name))
    assert "two rows with the models in both orders are one battle (40 times)" in str(battles.report)
    assert position_bias(battles).loc["flip", "n_battles"] > 0
    separate = JudgedBattles.from_pandas(rows, one_order="separate")
    assert (separate.n_battles, separate.orders) == (80, None)
    verdicts = rows.assign(verdict=np.where(rows["scores_a"] > rows["scores_b"], "model_a", "model_b"))
    printed = JudgedBattles.from_pandas(verdicts)
    np.testing.assert_array_equal(printed.verdict_orders[:, 0] * 2 - 1, np.where(expected.orders[:, 0] > 0, 1, -1))


def test_rows_with_one_order_are_an_error_kept_or_left_out():
    wide, rows = in_rows()
    some = rows.drop(index=[45, 46])
    with pytest.raises(DataError, match=r"2 of 40 battles are judged in one order only.*first in row 5.*'separate'"):
        JudgedBattles.from_pandas(some)
    assert JudgedBattles.from_pandas(some, one_order="drop").n_battles == 38
    kept = JudgedBattles.from_pandas(some, one_order="keep")
    assert kept.n_battles == 40
    assert kept.score_difference[5] == wide["a1"][5] - wide["b1"][5]
    with pytest.raises(
        DataError, match=r"human labels beside the two orders of 1 battle differ \(first in rows 0 and 40"
    ):
        JudgedBattles.from_pandas(rows.assign(human=["model_a"] + ["tie"] * 79))


def test_rows_that_share_a_prompt_by_chance_are_battles_of_their_own():
    _, rows = in_rows()
    few = rows.iloc[:41]
    battles = JudgedBattles.from_pandas(few)
    assert battles.n_battles == 41
    assert "1 pair of models is there in both orders, but each row is read as a battle of its own" in str(
        battles.report
    )
    with pytest.raises(DataError, match="39 of 40 battles are judged in one order only"):
        JudgedBattles.from_pandas(few, item="item")
    twice = pd.concat([rows, rows.iloc[:3]], ignore_index=True)
    assert JudgedBattles.from_pandas(twice).n_battles == 83
    with pytest.raises(DataError, match=r"3 rows repeat an order \(first in row 80"):
        JudgedBattles.from_pandas(twice, item="item")
    runs = JudgedBattles.from_pandas(twice.assign(run=[0] * 80 + [1] * 3), one_order="keep")
    assert runs.n_battles == 43


def test_judges_of_a_table_are_told_apart(tmp_path):
    _, rows = in_rows()
    path = tmp_path / "judged.csv"
    pd.concat([rows.assign(judge="p"), rows.head(40).assign(judge="q")]).to_csv(path, index=False)
    assert "names 2 judges, but all battles are read as those of one judge" in str(
        JudgedBattles.from_pandas(pd.read_csv(path), one_order="separate").report
    )
    judges = read_judges(path)
    assert {name: (battles.n_battles, battles.judge_name) for name, battles in judges.items()} == {
        "p": (40, "p"),
        "q": (40, "q"),
    }
    assert judges["q"].orders is None
    assert list(read_judges(path, only_judge="q")) == ["q"]
    with pytest.raises(DataError, match=r"holds 2 judges: p, q\. Name the one to read"):
        read_judged_battles(path)
    with pytest.raises(DataError, match="has no judge 'r'; its judges are p, q"):
        read_judged_battles(path, only_judge="r")
    with pytest.raises(ValueError, match="is for one judge"):
        read_judges(path, judge_name="one")
    with pytest.raises(ValueError, match=r"scores or verdicts, for which unparsed= \(--unparsed\) has no meaning"):
        read_judges(path, unparsed="drop")
    broken = pd.concat([rows.assign(judge="p"), rows.assign(judge="q", scores_a="?")])
    broken.to_csv(path, index=False)
    with pytest.raises(
        DataError, match=r"judged\.csv: judge 'p' \(80 rows, counted from 0 within this judge\): column 'scores_a'"
    ):
        read_judges(path)
