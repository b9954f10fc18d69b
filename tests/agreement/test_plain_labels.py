"""Agreement of labels without models: right and wrong, sides, grades and words; and whether a judge is good enough."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

import jaxeval
from jaxeval.agreement.good_enough import beside_people, verdict_beside
from jaxeval.statistics.rater_agreement import cohen_kappa


def labelled(n=200, wrong=(0.1, 0.1, 0.2), words=(0, 1), seed=0):
    """Two people and a judge, each of whom takes some items for the other label."""
    rng = np.random.default_rng(seed)
    right = rng.random(n) < 0.6
    table = pd.DataFrame({"item": np.arange(n)})
    for name, share in zip(("annotator1", "annotator2", "judge_1"), wrong, strict=True):
        table[name] = np.array(words)[np.where(rng.random(n) < share, ~right, right).astype(int)]
    return table


def agreement(table, *args, **options):
    return jaxeval.judge_agreement(table, *args, n_resamples=100, progress=False, **options)


def row(found, judge="judge_1"):
    return found.table.set_index("judge").loc[judge]


@pytest.mark.parametrize("words", [(0, 1), ("no", "Yes"), ("INCORRECT", "CORRECT"), (False, True)])
def test_right_and_wrong_judges(words):
    table = labelled(words=words)
    found = agreement(table)
    judge, people = (table[name].to_numpy() == words[1] for name in ("judge_1", "annotator1"))
    other = table["annotator2"].to_numpy() == words[1]
    own = row(found)
    assert own["agreement"] == pytest.approx(((judge == people).mean() + (judge == other).mean()) / 2)
    assert row(found, "people")["kappa"] == pytest.approx(cohen_kappa_score(people, other))
    hits = judge[people].sum() + judge[other].sum()
    assert own["sensitivity"] == pytest.approx(hits / (people.sum() + other.sum()))
    misses = (~judge)[~people].sum() + (~judge)[~other].sum()
    assert own["specificity"] == pytest.approx(misses / ((~people).sum() + (~other).sum()))
    assert own["youden_j"] == pytest.approx(own["sensitivity"] + own["specificity"] - 1)
    assert own["youden_j_lower"] < own["youden_j"] < own["youden_j_upper"]
    assert found.by_gap.empty
    assert found.by_model.empty
    assert "all_agreement" not in found.table


def test_identical_answers_on_few_items_are_not_taken_for_certain():
    same = labelled(n=20, wrong=(0, 0, 0))
    own = row(agreement(same))
    assert own["youden_j"] == own["kappa"] == 1
    assert own["youden_j_lower"] < 0.9  # twenty items do not make a judge perfect
    assert own["good_enough"] == "not known"
    people = np.array(["right"] * 5 + ["wrong"] * 15)
    rare = row(agreement(pd.DataFrame({"item": range(20), "judge": people, "human": people})), "judge")
    assert rare["sensitivity_lower"] == pytest.approx(0.025 ** (1 / 5))  # of the items that it is about, not of all
    assert rare["specificity_lower"] == pytest.approx(0.025 ** (1 / 15))
    assert row(agreement(labelled(n=400, wrong=(0, 0, 0))))["good_enough"] == "yes"


def test_grades_take_weighted_kappa_and_alpha_of_intervals():
    rng = np.random.default_rng(1)
    grade = rng.integers(1, 6, 120)
    table = pd.DataFrame({"item": np.arange(120)})
    for name in ("rater_a", "rater_b", "judge_1"):
        table[name] = np.clip(grade + rng.integers(-1, 2, 120), 1, 5)
    found = agreement(table)
    expected = cohen_kappa_score(table["rater_a"], table["rater_b"], weights="quadratic")
    assert row(found, "people")["kappa"] == pytest.approx(expected)
    pairs = table[["rater_a", "rater_b"]].to_numpy(float)
    every = pairs.ravel()
    of_all = np.mean([(x - y) ** 2 for j, x in enumerate(every) for k, y in enumerate(every) if j != k])
    alpha = 1 - np.mean((pairs[:, 0] - pairs[:, 1]) ** 2) / of_all
    assert found.panel.set_index(["measure", "of"]).loc[("alpha", "people"), "value"] == pytest.approx(alpha)
    assert found.raters["all_kappa"][0] == pytest.approx(expected)
    with pytest.raises(jaxeval.DataError, match="hold 125 numbers"):
        agreement(table.assign(rater_a=rng.random(120)), judges=["judge_1"], human=["rater_a"])


def test_words_of_any_kind_are_categories():
    table = labelled(words=("toxic", "harmless"))
    table.loc[:20, "annotator1"] = "spam"
    found = agreement(table)
    nominal = cohen_kappa_score(table["annotator1"], table["annotator2"])
    assert row(found, "people")["kappa"] == pytest.approx(nominal)
    assert "sensitivity" not in found.table
    assert any("labels: harmless, spam, toxic" in note for note in found.notes)


def test_sides_in_two_orders_are_one_judge():
    frame = pd.DataFrame(
        {"item": range(4), "human": [1, 2, 1, 2], "win_orig": [1, 2, 1, 1], "win_swap": [1, 2, 2, None]}
    )
    found = agreement(frame)
    own = row(found, "win")
    assert own["n_decided"] == 3
    assert own["flips"] == pytest.approx(1 / 3)
    assert own["first_chosen"] == pytest.approx(5 / 7)  # the first is shown first in orig, the second in swap
    assert "it names another side in 33%" in found.answer.sentences[0]


@pytest.mark.parametrize("numbers", [(1, 2), (0, 1), ("AB", "BA")])
@pytest.mark.parametrize("places", [False, True])
def test_orders_in_rows_are_those_in_columns(numbers, places):
    """Labels name sides, or places, which people's labels tell; either way the table is that of two columns."""
    rng = np.random.default_rng(3)
    human = np.where(rng.random(60) < 0.5, "A", "B")
    orig, swap = (np.where(rng.random(60) < 0.8, human, "A") for _ in range(2))
    columns = pd.DataFrame({"item": range(60), "human": human, "judge_orig": orig, "judge_swap": swap})
    other = {"A": "B", "B": "A"}
    tables = []
    for number, verdict in zip(numbers, (orig, swap), strict=True):
        own = pd.DataFrame({"item": range(60), "order": number, "human": human, "judge": verdict})
        turned = places and number == numbers[1]
        tables.append(own.replace({"human": other, "judge": other}) if turned else own)
    rows = pd.concat(tables).sample(frac=1, random_state=0)
    one, found = agreement(columns), agreement(rows)
    numeric = one.table.select_dtypes("number").columns
    shown = [name for name in numeric if not name.endswith(("lower", "upper"))]
    assert row(found, "judge")["flips"] == (orig != swap).mean()
    pd.testing.assert_frame_equal(found.table[shown], one.table[shown])
    assert any("the place where" in note for note in found.notes) == places
    whose = rows.assign(human=np.where(rng.random(120) < 0.5, "A", "B"))
    with pytest.raises(jaxeval.DataError, match="nobody knows whether a label names an answer or a place"):
        agreement(whose)


def test_answers_that_were_not_attempted_are_neither():
    table = labelled(words=("INCORRECT", "CORRECT"))
    table.loc[:30, "judge_1"] = "NOT_ATTEMPTED"
    found = agreement(table)
    assert row(found)["n_decided"] == 169
    assert "it says neither right nor wrong on 16%, people on 0%" in found.answer.sentences[0]


def test_a_row_for_each_judge_and_item():
    wide = labelled().assign(judge_2=lambda x: x["annotator1"])
    long = wide.melt(["item", "annotator1", "annotator2"], ["judge_1", "judge_2"], "judge", "verdict")
    one, other = (agreement(table).table.drop(columns="flags") for table in (wide, long))
    pd.testing.assert_frame_equal(one, other)
    with pytest.raises(jaxeval.DataError, match="1 row repeats a judge's verdict on an item"):
        agreement(pd.concat([long, long.head(1)]))


def test_replies_of_judges_are_read():
    table = labelled(words=("No", "Yes"))
    replies = '{"reasoning": "r", "prediction": "' + table["judge_1"] + '"}'
    assert row(agreement(table.assign(judge_1=replies)))["agreement"] == row(agreement(table))["agreement"]
    prose = "It depends:\non more than anybody could take for a verdict, which is why it does not end before here."
    with pytest.raises(jaxeval.DataError, match=r"column 'judge_1': 1 of 200 replies cannot be read \(first in row 3"):
        agreement(table.assign(judge_1=replies.where(replies.index != 3, prose)))


def test_the_answer_names_the_ranking_and_the_next_command():
    table = pd.concat([labelled(200, (0.02, 0.02, 0.02), seed=k).assign(model=f"m{k}") for k in range(3)])
    found = agreement(table)
    assert found.answer.sentences[0] == found.sentences[0]
    assert found.answer.sentences[0].startswith("Good enough? Yes: judge_1 agrees with people on 9")
    assert "its ranking of 3 models has" in found.answer.sentences[0]
    assert "next: jaxeval judge --calibration FILE --test ANSWERS --judgment judge_1" in found.answer.sentences[0]
    worse = agreement(labelled(400, (0.05, 0.05, 0.4)))
    assert worse.answer.sentences[0].startswith("Good enough? No: ")
    alone = agreement(labelled().drop(columns="annotator2").rename(columns={"annotator1": "human"}))
    assert "have a second person label some of the items" in alone.answer.sentences[0]
    person = agreement(labelled()[["annotator1", "annotator2"]], judges=["annotator1"])
    assert "no item has labels of two people beside annotator1" in person.answer.sentences[0]
    assert "if annotator1 is a person too, two people agree so far: name your judge" in person.answer.sentences[0]
    guess = agreement(labelled(2000, (0, 0, 0.5)).drop(columns="annotator2").rename(columns={"annotator1": "human"}))
    assert guess.answer.sentences[0].startswith("Good enough? No: ")
    assert "by chance" not in worse.answer.sentences[0] + guess.answer.sentences[0]


@pytest.mark.parametrize("people", [1, 2])
def test_a_judge_that_is_mostly_wrong_is_said_to_be_reversed(people):
    """Its errors cannot be corrected before somebody looks how its verdicts are coded."""
    table = labelled(200, (0.02, 0.02, 0.95))
    if people == 1:
        table = table.drop(columns="annotator2").rename(columns={"annotator1": "human"})
    found = agreement(table).answer.sentences[0]
    assert "; that is less often than by chance (kappa -0." in found
    assert found.endswith("next: look whether its verdicts are coded in reverse; else it errs systematically")
    beside = agreement(table.assign(judge_2=table.filter(regex="annotator1|human").iloc[:, 0])).answer.sentences
    (of_first,) = (text for text in beside if text.startswith("judge_1 agrees"))
    assert of_first.count("less often than by chance") == 1


def test_errors_say_what_to_do():
    table = labelled()
    with pytest.raises(jaxeval.DataError, match="no column of people's labels, such as 'human'"):
        agreement(table[["item", "judge_1"]])
    with pytest.raises(jaxeval.DataError, match="no column of a judge's labels"):
        agreement(table[["item", "annotator1"]])
    with pytest.raises(jaxeval.DataError, match="no column 'gold' in the table"):
        agreement(table, human="gold")
    with pytest.raises(jaxeval.DataError, match="which may be sides or grades: say label_coding="):
        agreement(table.assign(judge_1=[0, 1, 2, 1] * 50))
    graded = agreement(table.assign(judge_1=[0, 1, 2, 1] * 50), label_coding="grades")
    assert "sensitivity" not in graded.table
    with pytest.raises(jaxeval.DataError, match="would agree with itself"):
        agreement(table, human="judge_1", judges=["judge_1"])
    with pytest.raises(jaxeval.DataError, match="is about labels of two sides in rows of one order"):
        agreement(table, shown_first="item")


def test_a_judge_as_good_as_a_person_is_seldom_called_worse_and_one_that_guesses_never_good_enough():
    """In all cells: few items and many, easy and hard, lopsided; identical answers, too."""
    rng, n_sets = np.random.default_rng(7), 1000
    for n, wrong, right in ((2, 0.1, 0.5), (30, 0.01, 0.5), (30, 0.3, 0.9), (200, 0.1, 0.95), (400, 0.3, 0.5)):
        side = rng.random((n_sets, n)) < right

        def voice(share, side=side):
            return np.where(rng.random(side.shape) < share, ~side, side)

        people = voice(wrong), voice(wrong)
        called = {}
        for name, judge in {"person": voice(wrong), "guess": voice(0.5), "first": np.ones_like(side)}.items():
            own = ((judge == people[0]) + (judge == people[1]).astype(float)) / 2
            sums = np.stack([np.ones_like(own), own, people[0] == people[1]], -1)
            chance, kappa = _kappa(*people)
            ends = np.stack([(_kappa(judge, people[0])[1] + _kappa(judge, people[1])[1]) / 2, kappa], -1)
            called[name] = verdict_beside(beside_people(sums, 0.95), chance, ends, np.full(n_sets, n))
        worse = (called["person"] == "no").mean()
        assert worse < 0.05, (n, wrong, right, worse)
        assert (called["guess"] != "yes").all(), (n, wrong, right)
        assert (called["first"] != "yes").all(), (n, wrong, right)


def _kappa(x, y):
    """Agreement by chance, and the lower end of kappa's normal interval, of (B, N) labels."""
    table = np.stack([[(~x & ~y).sum(1), (~x & y).sum(1)], [(x & ~y).sum(1), (x & y).sum(1)]]).transpose(2, 0, 1)
    observed, expected, kappa = cohen_kappa(table.astype(float))
    with np.errstate(invalid="ignore", divide="ignore"):
        return expected, np.nan_to_num(kappa - 1.96 * np.sqrt(observed * (1 - observed) / x.shape[1]) / (1 - expected))


def test_published_numbers_of_public_data(data):
    """PandaLM's kappas and accuracies, LLMBar's accuracies in both orders and its consistency, EVOUNA's agreement."""
    panda = pd.read_parquet(data / "pandalm_human3_vs_judges.parquet")
    found = agreement(panda, label_coding={"1": "model_a", "2": "model_b", "0": "tie"})
    np.testing.assert_allclose(sorted(found.raters["all_kappa"]), [0.8520, 0.8617, 0.8789], atol=1e-4)
    assert row(found, "judge_pandalm7b")["good_enough"] == "no"
    bar = pd.read_parquet(data / "llmbar_human_vs_judges.parquet")
    bar = bar[(bar["subset"] == "LLMBar/Natural") & (bar["prompt"] == "Vanilla_NoRules") & (bar["sample"] == 0)]
    bar = bar[bar["judge"] == "GPT-4"].drop(columns="judge")
    assert 1 - row(agreement(bar), "win")["flips"] == pytest.approx(0.97)
    for name, share in (("win_orig", 0.92), ("win_swap", 0.95)):
        assert row(agreement(bar, judges=[name]), name)["agreement"] == pytest.approx(share)
    evouna = pd.read_parquet(data / "evouna_human_vs_lexical.parquet")
    evouna = evouna[~evouna["improper"]]
    assert row(agreement(evouna), "lexical_match")["agreement"] == pytest.approx(0.8684, abs=1e-4)


def test_a_column_called_judge_has_names_or_labels():
    table = labelled().drop(columns="annotator2").rename(columns={"annotator1": "human", "judge_1": "judge"})
    assert row(agreement(table), "judge")["n_items"] == 200
    both = pd.concat([table.assign(verdict=table["judge"], judge=name) for name in ("gpt", "llm")])
    found = agreement(both)
    assert {"gpt", "llm"} <= set(found.table["judge"])
    people = labelled()[["item", "annotator1", "annotator2"]]
    long = both[["item", "judge", "verdict"]].merge(people, on="item")
    assert "--judgment verdict" in " ".join(agreement(long).answer.sentences)
