"""What a report says, and what it warns of."""

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import JudgedAnswers
from jaxeval.accuracy.report import judge_report
from jaxeval.accuracy.statuses import STATUSES

SETTINGS = {"n_resamples": 400, "n_halves": 4, "seed": 1}  # sizes that test_judge_accuracy has, too


def study(accuracy, q0, q1, n=900, seed=0, share=0.4, pairs=(("model-1", "model-2"),)):
    table = jaxeval.simulate_judged_answers(accuracy, q0, q1, n, seed=seed)
    answers = JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
    return jaxeval.compare_models(*answers.split(share), pairs, **SETTINGS).report()


def kinds(report):
    return {caution.kind for caution in report.cautions}


@pytest.fixture(scope="module")
def good():
    return study([0.8, 0.55], [[0.9], [0.9]], [[0.9], [0.9]], seed=1)


@pytest.fixture(scope="module")
def reversal():
    """The judge passes half of the second model's wrong answers, and fails a third of the first's right ones."""
    return study([0.75, 0.6], [[0.95], [0.5]], [[0.65], [0.95]])


def test_a_good_judge_gives_a_plain_claim(good):
    assert kinds(good) == {"raw share"}  # it errs in both directions, and its own shares say less than PPI++
    (claim,) = good.claims()
    assert claim.startswith("judge-1, model-1 against model-2: model-1 is ahead, +0.")
    assert claim.endswith("by PPI++")
    assert "weak" not in claim


def test_the_seven_points(good):
    """Of arXiv:2605.06939, section 7."""
    text = good.text
    for words in (
        "naive is not corrected",  # 1 estimand and correction
        "Differences, A minus B",  # 2 models apart from comparisons
        "Accuracy of each model",
        "the shared calibration uses labels of model-2",  # 3 design and size
        "360 calibration items, 540 test items",
        "resamples keep the judgments of all models on an item together",  # 4 what intervals hold
        "How good the judges are",  # 5 rates with intervals
        "q0_lower",
        "q1_upper",
        "j_lower",
        "delta_j_lower",  # 6
        "What can be claimed",  # 7
    ):
        assert words in text, words
    assert str(good).startswith(good.answer.sentences[0])
    assert str(good).endswith(text)


def test_a_judge_that_errs_differently_weakens_the_claim(reversal):
    assert {"delta J", "sign"} <= kinds(reversal)
    (claim,) = reversal.claims()
    assert "model-1 seems ahead" in claim
    assert "a weak claim (see the cautions: delta J" in claim
    texts = "\n".join(caution.text for caution in reversal.cautions)
    assert "a shared calibration is not defensible" in texts
    assert "naive has the opposite sign" in texts
    assert "rogan_gladen_shared has the opposite sign" in texts


def test_a_near_tie_is_not_told_apart():
    report = study([0.7, 0.7], [[0.8], [0.8]], [[0.8], [0.8]], seed=4)
    assert "not told apart" in kinds(report)
    (claim,) = report.claims()
    assert "not told apart" in claim
    sure = study([0.7, 0.7], [[0.95], [0.95]], [[0.95], [0.95]], n=8000, seed=4)
    assert "near tie" in kinds(sure)


def test_a_judge_that_guesses_is_named():
    report = study([0.7, 0.5], [[0.5], [0.8]], [[0.52], [0.8]])
    low = [c for c in report.cautions if c.kind == "low J"]
    assert {c.subject.models for c in low} == {("model-1",)}
    assert "includes 0: the labels do not tell the judge from one that guesses" in low[0].text
    assert {"no bounds", "undefined"} & kinds(report)


def test_few_labels_are_counted():
    report = study([0.9, 0.9], [[0.9], [0.9]], [[0.9], [0.9]], n=300, share=0.1)
    assert any("hardly known" in c.text for c in report.cautions)


def test_proposition_5_1_says_how_many_labels_are_needed():
    report = study([0.6, 0.6], [[0.6], [0.9]], [[0.6], [0.9]], n=300, share=0.1, seed=2)
    assert any("less bias than the raw share only from about" in c.text for c in report.cautions)


def test_without_labels_of_both_models_there_is_no_claim():
    table = jaxeval.simulate_judged_answers([0.8, 0.5], 0.9, 0.9, 400)
    whole = JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
    one = JudgedAnswers.from_pandas(table[table["model"] == "model-2"], judgment="judge-1", model="model", item="item")
    calibration = one.take(np.arange(150))
    report = jaxeval.compare_models(
        calibration, whole.take(np.arange(150, 400)), ("model-1", "model-2"), **SETTINGS
    ).report()
    (claim,) = report.claims()
    assert "no claim: no calibration items" in claim
    assert "no calibration labels of model-1" in report.text


def test_the_frame_carries_the_cautions_of_its_rows(reversal):
    frame = reversal.to_frame()
    assert len(frame) == len(reversal.comparison.table)
    assert frame["cautions"].str.contains("delta J").all()
    alone = judge_report(reversal.accuracy).to_frame()
    assert list(alone.columns[:-1]) == list(reversal.accuracy.table.columns)


def test_the_estimate_to_believe_is_marked_everywhere(good):
    frame = good.to_frame()
    assert frame.loc[frame["believe"], "estimator"].tolist() == ["ppi_plus_plus"]
    marked = [line for line in good.to_markdown().splitlines() if line.startswith("| model-1 |") and "| yes |" in line]
    assert len(marked) == 1
    assert "| ppi\\_plus\\_plus | yes |" in marked[0]
    assert "believe ppi_plus_plus: the labelled answers are a random part, so with labels of the" in good.text


def test_statuses_are_explained_in_the_words_of_the_statuses():
    report = study([0.7, 0.5], [[0.5], [0.8]], [[0.55], [0.8]])
    shown = set(report.accuracy.table["status"])
    assert "J near 0" in shown
    for status in shown - {"ok"}:
        assert f"{status}: {STATUSES[status]}." in report.text
    assert any(caution.kind == "no bounds" and STATUSES["J near 0"] in caution.text for caution in report.cautions)


def test_raw_shares_outside_of_the_interval_of_ppi_are_named(good, reversal):
    rows = good.accuracy.table.set_index(["model", "estimator"])
    told = {c.subject.models for c in good.cautions if c.kind == "raw share" and len(c.subject.models) == 1}
    expected = {
        (model,)
        for model in ("model-1", "model-2")
        if not rows.loc[(model, "ppi_plus_plus"), "lower"]
        <= rows.loc[(model, "naive"), "estimate"]
        <= rows.loc[(model, "ppi_plus_plus"), "upper"]
    }
    assert told == expected != set()
    # Of a difference: with the right sign and the wrong size, or with the wrong sign, which has its own caution.
    lenient = study([0.8, 0.6], [[0.9], [0.6]], [[0.9], [0.9]], seed=1)
    (caution,) = [c for c in lenient.cautions if c.kind == "raw share" and len(c.subject.models) == 2]
    assert "the difference of the raw shares" in caution.text
    assert not any(c.kind == "raw share" and len(c.subject.models) == 2 for c in reversal.cautions)


def test_markdown_has_the_sections_and_escaped_tables(reversal):
    markdown = reversal.to_markdown()
    titles = [part.title for part in reversal._sections()]
    assert [line[3:] for line in markdown.splitlines() if line.startswith("## ")] == titles
    assert "| Judge | Model a | Model b |" in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("| judge-1 |")]
    assert len({line.count("|") - line.count("\\|") for line in rows}) <= 2


def test_slices_are_named():
    table = jaxeval.simulate_judged_answers([0.8, 0.6], 0.85, 0.85, 900).assign(
        topic=lambda t: np.where(t["item"] % 2, "law", "art")
    )
    answers = JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item", keep=["topic"])
    report = jaxeval.compare_models(*answers.split(0.4), by="topic", **SETTINGS).report()
    assert len(list(report.claims())) == 3
    assert any(claim.startswith("law, judge-1") for claim in report.claims())
    assert set(report.to_frame()["slice"]) == {"all", "law", "art"}
    assert any(c.text.startswith("3 comparisons, each") for c in report.cautions)


def test_a_real_reversal_is_flagged(data):
    """A string match puts fid ahead of chatgpt, people chatgpt ahead of fid."""
    votes = pd.read_parquet(data / "evouna_human_vs_lexical.parquet")
    votes = votes[~votes["improper"] & (votes["dataset"] == "NQ") & votes["model"].isin(["chatgpt", "fid"])]
    answers = JudgedAnswers.from_pandas(votes, judgment="lexical_match", model="model", item="item_no")
    comparison = jaxeval.compare_models(*answers.split(1 / 3), ("chatgpt", "fid"), **SETTINGS)
    assert {"delta J", "sign"} <= kinds(comparison.report())
    rows = comparison.table.set_index("estimator")
    assert rows.loc["naive", "difference"] < 0 < rows.loc["ppi_plus_plus", "lower"]
    assert rows.loc["naive", "truth"] > 0


def test_scores_with_few_labels_make_no_flat_claim():
    rng = np.random.default_rng(0)
    calibration = pd.DataFrame({"item": [0, 0, 1, 1], "model": ["a", "b"] * 2, "human": [1, 0, 1, 0],
                                "judgment": [0.9, 0.2, 0.8, 0.3]})  # fmt: skip
    test = pd.DataFrame({"item": np.repeat(np.arange(2, 102), 2), "model": ["a", "b"] * 100,
                         "judgment": rng.random(200)})  # fmt: skip
    report = jaxeval.compare_models(
        *(JudgedAnswers.from_pandas(f, model="model", item="item") for f in (calibration, test)), ("a", "b"), **SETTINGS
    ).report()
    assert "few labels" in kinds(report)
    (claim,) = report.claims()
    assert "is ahead" not in claim


def test_a_judge_coded_in_reverse_is_not_called_a_guesser():
    report = study([0.7, 0.5], [[0.1], [0.1]], [[0.1], [0.1]])
    low = next(c for c in report.cautions if c.kind == "low J")
    assert "coded in reverse" in low.text
    assert "nan" not in report.text.lower().replace("naive", "")


@pytest.fixture(scope="module")
def three():
    """Three models by two judges."""
    table = jaxeval.simulate_judged_answers(n_items=300, seed=1)
    return JudgedAnswers.from_pandas(table, judgment=["judge-1", "judge-2"], model="model", item="item").split(0.4)


@pytest.mark.slow
def test_several_pairs_are_counted(three):
    report = jaxeval.compare_models(*three, **SETTINGS).report()
    assert any("6 comparisons" in c.text for c in report.cautions)


def test_levels_are_not_rounded_to_certainty(three):
    assert "99.9%" in jaxeval.judge_accuracy(*three, level=0.999, **SETTINGS).report().text


def test_it_says_which_class_to_label_next(good):
    (table,) = (x.table for x in good._sections() if x.title.startswith("Where the next 100 labels"))
    assert table[["model", "judge"]].to_numpy().tolist() == [["model-1", "judge-1"], ["model-2", "judge-1"]]
    assert (table["next_wrong"] + table["next_right"] == 100).all()
    rates = good.accuracy.rates.iloc[0]
    p = good.accuracy.table.set_index(["model", "estimator"]).loc[("model-1", "naive"), "estimate"]
    m0, m1 = rates["m0"], rates["m1"]
    split = jaxeval.allocate_calibration(m0 + m1 + 100, p, rates["q0"], rates["q1"], m0, m1)
    assert (table["next_wrong"].iloc[0], table["next_right"].iloc[0]) == (split.more0, split.more1)


def test_a_model_that_was_not_judged_has_one_caution_for_it():
    """Not one for every estimator, and none about a stratum without labels: there is no stratum."""
    table = jaxeval.simulate_judged_answers([0.8, 0.6], [[0.9], [0.9]], [[0.9], [0.9]], 400, seed=1)
    labelled = table["item"].isin(table["item"].unique()[:150])
    table.loc[~labelled & (table["model"] == "model-2"), "judge-1"] = np.nan
    read = {"judgment": "judge-1", "model": "model", "item": "item", "missing": "drop"}
    parts = (JudgedAnswers.from_pandas(table[rows], **read) for rows in (labelled, ~labelled))
    cautions = jaxeval.judge_accuracy(*parts, **SETTINGS).report().cautions
    (caution,) = [c for c in cautions if "stratum" in c.text or c.kind == "no test items"]
    assert caution.text == f"judge-1 on model-2: {STATUSES['no test items']}, so there is no estimate"
    assert not any("is not defined" in c.text for c in cautions)


def test_a_raw_share_of_few_items_is_not_called_biased():
    """One item answered wrong: the raw share is 0, PPI++ lies elsewhere, and chance explains the two."""
    rng = np.random.default_rng(0)
    right = np.concatenate([rng.random(100) < 0.7, [False]]).astype(float)
    judged = np.where(rng.random(101) < 0.8, right, 1 - right)
    judged[-1] = 0.0
    table = pd.DataFrame({"judgment": judged, "human": right})
    parts = (JudgedAnswers.from_pandas(x, judgment="judgment") for x in (table[:-1], table[-1:]))
    found = jaxeval.judge_accuracy(*parts, sampling="random", **SETTINGS).report().cautions
    (caution,) = [c for c in found if c.kind == "raw share"]
    assert caution.text.endswith(": do not report it without a correction")


def test_what_decides_a_claim_comes_first():
    """The command line shows the first cautions only: those of the pair, and of the raw shares, must be among them."""
    accuracy, good, poor = [0.8, 0.6], [[0.95], [0.95]], [[0.5], [0.9]]
    told = [c.kind for c in study(accuracy, good, poor, n=100, share=0.5, seed=2).cautions]
    order = [told.index(kind) for kind in ("sign", "raw share", "few errors")]
    assert order == sorted(order)
