"""Position, verbosity and family effects: naive loops and textbook formulas."""

import numpy as np
import pandas as pd
import pytest
from judged import read, residual_table, two_orders

import jaxeval
from jaxeval.softelo import judge_biases


@pytest.fixture(scope="module")
def battles():
    return read(two_orders())


def test_position_rates_are_the_naive_loop(battles):
    table = judge_biases.position_bias(battles)
    first = [s1 > 0 for s1, _ in battles.orders if s1] + [s2 < 0 for _, s2 in battles.orders if s2]
    flips = [(s1 > 0) != (s2 > 0) for s1, s2 in battles.orders if s1 and s2]
    assert table.loc["position_1", "share"] == pytest.approx(np.mean(first))
    assert table.loc["flip", "share"] == pytest.approx(np.mean(flips))
    assert table.loc["position_1", "lower"] < table.loc["position_1", "share"] < table.loc["position_1", "upper"]
    assert table.attrs["settings"]["advantage"] == pytest.approx(
        (battles.orders[:, 0] - battles.orders[:, 1]).mean() / 2
    )


def test_longer_answers_are_the_naive_loop():
    battles = read(two_orders(), verdict="verdict")
    longer = [
        (j == 1) == (x > y)
        for s, j, x, y in zip(battles.score_difference, battles.hard, battles.columns["long_a"],
                              battles.columns["long_b"], strict=True)
        if abs(s) <= 0.3 and j in (0, 1) and x != y
    ]  # fmt: skip
    found = judge_biases.longer_answer_preference(battles, "long_a", "long_b").iloc[0]
    assert (found["share"], found["n_battles"]) == (pytest.approx(np.mean(longer)), len(longer))


def test_partial_correlation_is_the_textbook_formula(battles):
    rng = np.random.default_rng(6)
    table = residual_table(6).assign(human_elo=rng.normal(1500, 50, 6))
    lengths = []
    for k in range(6):
        a, b = battles.models[battles.model_a] == f"m{k}", battles.models[battles.model_b] == f"m{k}"
        lengths.append(np.concatenate([battles.columns["long_a"][a], battles.columns["long_b"][b]]).mean())
    c = np.corrcoef([table["residual"], lengths, table["human_elo"]])
    expected = (c[0, 1] - c[0, 2] * c[1, 2]) / np.sqrt((1 - c[0, 2] ** 2) * (1 - c[1, 2] ** 2))
    found = judge_biases.length_correlation(battles, table, "long_a", "long_b")
    assert found["r"][0] == pytest.approx(expected)


def test_family_excess_against_the_other_judges():
    families = {f"m{k}": "x" if k < 10 else "y" for k in range(40)}
    one = residual_table(judge="p")
    other = one.assign(judge="q", residual=one["residual"] - np.where(np.arange(40) < 10, 25.0, 5.0))
    table = judge_biases.family_excess(pd.concat([one, other]), families, {"p": "x", "q": "y"})
    assert table["excess"].to_numpy() == pytest.approx([20, 20])
    alone = judge_biases.family_excess(one.drop(columns="judge"), families, "x")
    by_hand = one["residual"][:10].mean() - one["residual"][10:].mean()
    assert alone["excess"][0] == pytest.approx(by_hand)


def test_too_few_models_of_either_kind_are_counted():
    table = residual_table()
    families = {f"m{k}": "x" if k < 10 else "y" for k in range(11)}
    sentences = judge_biases.family_excess(table, families, "x").attrs["warnings"]
    assert "no standard error with 10 models of family 'x' and 1 of others; two of each are needed" in sentences[0]
    assert sentences[-1] == "29 models without a family are left out"


def test_what_is_absent_is_named(battles):
    with pytest.raises(jaxeval.DataError, match="no column 'words'"):
        judge_biases.longer_answer_preference(battles, "words", "words")
    one = jaxeval.JudgedBattles.from_pandas(
        two_orders().drop(columns="verdict"), scores_a="a1", scores_b="b1", label_coding="a_wins_1"
    )
    with pytest.raises(jaxeval.DataError, match="both presentation orders"):
        judge_biases.position_bias(one)


def test_the_simulated_bias_is_found():
    """0.5 points for the side shown first: the mean advantage within five standard errors, and a rate above a half."""
    biased = jaxeval.simulate_judged_battles(20_000, 10, position_bias=0.5, seed=2)
    # Nearer the ends of the scale the orders cannot differ as much.
    biased = biased.subset(np.abs(biased.score_difference) < 6)
    table = judge_biases.position_bias(biased)
    # The simulator gives the odd twelfth of a point to the second order: 1/24 less on average.
    apart = (biased.orders[:, 0] - biased.orders[:, 1]) / 2
    error = apart.std() / np.sqrt(len(apart))
    assert abs(table.attrs["settings"]["advantage"] - (0.5 - 1 / 24)) < 5 * error
    assert table.loc["position_1", "lower"] > 0.5
    fair = judge_biases.position_bias(jaxeval.simulate_judged_battles(20_000, 10, seed=2))
    assert fair.loc["position_1", "share"] < table.loc["position_1", "share"]
