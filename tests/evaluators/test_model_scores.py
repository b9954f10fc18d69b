"""What few pairs of models stand behind is hidden, by one rule in tables, advice and figures."""

import numpy as np
import pandas as pd
from evaluated import GAPS, GOLD, B, taus

from jaxeval import agreement_by_gap, smallest_gap, stratified_rank_change
from jaxeval.evaluators.comparison import evaluator_advice
from jaxeval.evaluators.model_scores import FEW_PAIRS, hide_few_pairs
from jaxeval.wording import counted

FIVE = GOLD.nlargest(5).index  # models of 10 pairs


def test_a_number_and_its_interval_are_hidden():
    table = taus()
    shown = hide_few_pairs(table, "tau")
    few = table["n_pairs"] < FEW_PAIRS
    assert few.any()
    assert not few.all()
    assert shown.loc[few, ["tau", "lower", "upper"]].isna().all(axis=None)
    pd.testing.assert_frame_equal(shown[~few], table[~few])
    pd.testing.assert_frame_equal(shown.drop(columns=["tau", "lower", "upper"]),
                                  table.drop(columns=["tau", "lower", "upper"]))  # fmt: skip
    assert shown.attrs == table.attrs
    pd.testing.assert_frame_equal(hide_few_pairs(table, "tau", 0), table)


def test_an_interval_by_the_name_of_its_number_and_another_count():
    table = pd.DataFrame(
        {"below": 0.5, "below_lower": 0.4, "upper": 0.9, "n_pairs": [20, 3, 20], "n_seen": [20.0, 20.0, np.nan]}
    )
    assert hide_few_pairs(table, "below")["below_lower"].isna().tolist() == [False, True, False]
    other = hide_few_pairs(table, "below", count="n_seen")
    assert other["below"].isna().tolist() == [False, False, True]
    assert (other["upper"] == 0.9).all()


def test_advice_is_silent_on_them():
    board = GAPS.loc[FIVE, ["x"]]
    changes = stratified_rank_change(board, GOLD, 2, n_resamples=B)
    gaps = smallest_gap(board, GOLD, n_resamples=B)
    improvements = agreement_by_gap(board, GOLD, [2.0], n_resamples=B)
    assert (gaps["n_pairs"].iloc[0], improvements["n_ordered"].iloc[0]) == (9, 9)  # two scores are equal
    hidden = evaluator_advice(taus(board), changes, gaps, improvements)
    assert hidden == ["x: 10 pairs of models in all, too few to say anything"]
    told = evaluator_advice(taus(board), changes, gaps, improvements, few_pairs=0)
    assert any("an improvement of 2 points" in sentence for sentence in told)


def test_advice_on_what_lies_below_an_improvement():
    improvements = agreement_by_gap(GAPS[["x"]], GOLD, [1.5, 6.0], n_resamples=B)
    near, far = improvements["n_pairs"]
    assert near < FEW_PAIRS <= far
    sentences = [s for s in evaluator_advice(taus(), improvements=improvements) if "an improvement" in s]
    assert "below it" not in sentences[0]
    assert sentences[1].endswith(f"on average below it ({far} pairs)")
    everything = evaluator_advice(taus(), improvements=improvements, few_pairs=0)
    assert any(f"on average below it ({counted(near, 'pair')})" in s for s in everything)
