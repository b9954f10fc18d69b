"""Every result says its answer in words, wherever it is shown; data have none."""

import json
from html import escape

import pandas as pd
import pytest
from results import OBEYED, RESULTS

import jaxeval
from jaxeval.show.documents import markdown_text
from jaxeval.show.shown import Result
from jaxeval.wording import visible

pytestmark = pytest.mark.usefixtures("all_on_the_host")

#: Data, and what only describes a part of a study.
WITHOUT = {
    "Battles", "DataReport", "Rankings", "RankingsReport", "JudgedBattles", "JudgedReport", "JudgeOutputs",
    "OutputsReport", "JudgedAnswers", "AnswersReport", "AnchoredVerdicts", "ItemScores", "ModelScores",
    "ConformalStudy", "Abstention", "RatingSystems", "ChoiceModel",
    "Judgments",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in RESULTS if name not in WITHOUT])
def test_print_begins_with_the_answer(name):
    result = RESULTS[name]()
    assert isinstance(result, Result)
    sentences = result.answer.sentences
    assert sentences
    assert all(sentence and not set(sentence) & set(OBEYED) and "\n" not in sentence for sentence in sentences)
    if name != "Table":  # a DataFrame, which prints as one
        assert " ".join(str(result).split()).startswith(" ".join(sentences[0].split())[:70])
    assert str(result.answer) == "\n".join(sentences)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: jaxeval.ppi_plus_plus([0, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1]), "mean label 0.478 ("),
        (lambda: jaxeval.rogan_gladen([0.7, 0.6], 0.8, 0.9, 100, 50, 50), "row 1 has the largest estimate, 0.714 ("),
        (lambda: jaxeval.plan_votes(2, difference=20), "difference 20: 2,371 votes of the plan tell a difference of "),
        (lambda: jaxeval.item_report(jaxeval.simulate_scores(40, 5, seed=1)), "10 of 40 items tell models apart not "),
        (
            lambda: jaxeval.fit_temperatures(
                [2, 1, -1, 3, -2, 1, 1, 2, -2, -1, 3, -3], [1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0], [*"eeeeeeffffff"]
            ),
            "e has the largest beta of 2 slices, 1.28",
        ),
        (
            lambda: jaxeval.loo_of(lambda w, x: (w * x).sum() / w.sum(), [1.0, 2.0, 9.0], [0, 0, 1], names=["mean"]),
            "leaving out 0 moves mean most: from 4 to 9",
        ),
    ],
    ids=["ppi", "arrays", "plan", "items", "temperatures", "loo"],
)
def test_tables_and_arrays_say_theirs(made, said):
    assert made().answer.sentences[0].startswith(said)


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_data_have_no_answer(name):
    assert not isinstance(RESULTS[name](), Result)


def test_a_notebook_and_a_page_say_it(tmp_path):
    found = RESULTS["Drift"]()
    said = found.answer.sentences[0][:40]
    assert said in found.styled()
    jaxeval.page(found, tmp_path / "page.html")
    assert said in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["Audit", "Bootstrap", "Drift", "Draws"])
def test_files_are_views_of_it(name, tmp_path):
    result = RESULTS[name]()
    for ending in ("md", "html", "json", "csv", "tex", "parquet"):
        jaxeval.write_table(result, tmp_path / f"x.{ending}")
    said = result.answer.sentences[0]
    assert markdown_text(said) in (tmp_path / "x.md").read_text()
    assert escape(visible(said)) in (tmp_path / "x.html").read_text()
    rows = json.loads((tmp_path / "x.json").read_text())["rows"]
    assert len(rows) == len(next(iter(result.answer.tables.values()))) == len(pd.read_csv(tmp_path / "x.csv"))
