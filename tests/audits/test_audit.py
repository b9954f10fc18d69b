"""The frame of an audit: its parts, its verdict, its files, and the command."""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from command_line import run

import jaxeval
from jaxeval.audits import audit as module
from jaxeval.audits.audit import Audit
from jaxeval.audits.parts import Answered, Finding, NotAnsweredError, Question, Severity
from jaxeval.errors import DataError
from jaxeval.execution import host as host_module
from jaxeval.kernels.batch.programs import Program
from jaxeval.show.files import json_digest

pytestmark = pytest.mark.usefixtures("all_on_the_host")

# A search for votes asks for a few boards at a time, and a chunk always runs in full.
RUN = {"n_resamples": 20, "chunk_size": 32, "progress": False}


@pytest.fixture(scope="module")
def votes():
    return jaxeval.simulate_votes(1_500, 8, seed=1)


@dataclass(frozen=True, eq=False)
class Told(Answered):
    """A part that says what it is told to."""

    sentences: tuple

    def _shown(self):
        raise NotImplementedError

    def findings(self):
        return [Finding(self.sentences[0][1][0], severity, text) for severity, text in self.sentences]


def saying(*sentences):
    return Told(sentences=sentences, table=pd.DataFrame({"sentence": [text for _, text in sentences]}))


def told(**parts):
    return Audit(parts, dict.fromkeys(parts, "Why?"), {"votes": "", "versions": ""}, ())


def test_the_function_and_the_package_both_work(votes):
    from jaxeval.audits.audit import audit

    assert jaxeval.audit is audit
    assert jaxeval.audit(votes, parts=["board"], progress=False)["board"].table["rank"].tolist() == list(range(1, 9))


def test_the_host_finds_what_programs_find(votes, monkeypatch):
    parts = {"parts": ["fewest_votes", "goodness_of_fit"], "n_resamples": 20, "progress": False}
    with monkeypatch.context() as patch:
        patch.setattr(Program, "__call__", None)
        host = jaxeval.audit(votes, **parts)
    monkeypatch.setattr(host_module, "spares_jax", lambda: False)
    compiled = jaxeval.audit(votes, **parts)
    assert host.verdict == compiled.verdict
    for name, part in host.parts.items():
        for table, found in part.tables.items():
            pd.testing.assert_frame_equal(found, compiled[name].tables[table], rtol=1e-9, atol=1e-9)


def test_the_most_serious_sentence_of_each_part_has_a_place():
    a = saying(*((Severity.SERIOUS, f"a{k}") for k in range(12)))
    b = saying((Severity.NOTE, "b0"), (Severity.CAUTION, "b1"))
    found = told(a=a, b=b)
    assert found.verdict == [*(f"a{k}" for k in range(9)), "b1"]
    assert len(found.findings()) == 14


def test_a_part_without_an_answer_says_why(votes, monkeypatch):
    def refuses(audited):
        raise NotAnsweredError("there are no ties")

    def breaks(audited):
        raise DataError("too few votes")

    def fails(audited):
        raise ZeroDivisionError

    parts = [Question("a", "A?", refuses), Question("b", "B?", breaks), Question("c", "C?", fails, ("voter",))]
    monkeypatch.setattr(module, "PARTS", (*module.PARTS, *parts))
    found = jaxeval.audit(votes, n_resamples=20, progress=False, parts=["board", "a", "b", "c"])
    assert found.absent["a"] == "there are no ties"
    assert found.absent["b"] == "too few votes"
    assert "--voter" in found.absent["c"]
    assert list(found.answers) == ["board"]
    with pytest.raises(ValueError, match="no a: there are no ties"):
        found["a"]
    with pytest.raises(ZeroDivisionError):
        jaxeval.audit(votes, voter="language", parts=["c"], progress=False)


def test_all_files_are_written(votes, tmp_path):
    found = jaxeval.audit(votes, parts=["board"], progress=False)
    found.write(tmp_path / "audit")
    assert {path.name for path in (tmp_path / "audit").iterdir()} == {
        "audit.md", "audit.html", "audit.json", "verdict.csv", "board.csv"
    }  # fmt: skip
    record = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert record["digest"] == json_digest(record)
    assert record["settings"]["seed"] == 0
    assert len(record["parts"]["board"]["tables"]["board"]) == 8
    assert found.verdict[0] in record["verdict"]
    assert "8 models" in (tmp_path / "audit" / "audit.md").read_text()


def test_the_digest_is_that_of_the_votes(votes):
    def digest(frame):
        return jaxeval.audit(frame, parts=["board"], progress=False, voter="language").settings["votes"]

    assert digest(votes) == digest(votes.sample(frac=1, random_state=0))
    assert digest(votes) != digest(votes.iloc[1:])
    assert digest(votes) != digest(votes.assign(language=votes["language"].to_numpy()[::-1]))


@pytest.mark.parametrize(("options", "message"), [
    ({"parts": ["bord"]}, "no part 'bord'.*board"),
    ({"voter": "who"}, "no column 'who'"),
    ({"time": "when"}, "no column 'when'"),
    ({"n_resamples": 5}, "at least 20"),
    ({"level": 95}, "level"),
    ({"parts": []}, "names no part; there are board"),
])  # fmt: skip
def test_bad_options_are_errors(votes, options, message):
    with pytest.raises(ValueError, match=message):
        jaxeval.audit(votes, progress=False, **options)


@pytest.mark.parametrize(("options", "message"), [
    ({"parts": "board"}, "list of names"),
    ({"families": "model-1"}, "families= maps the names"),
    ({"lengths": "language"}, "lengths= takes two columns"),
    ({"lengths": ("language",)}, "lengths= takes two columns"),
])  # fmt: skip
def test_options_of_another_type_are_errors(votes, options, message):
    with pytest.raises(TypeError, match=message):
        jaxeval.audit(votes, **{"parts": ["board"], **options})


def test_columns_with_missing_values_are_refused_before_anything_runs(votes):
    gaps = votes.assign(group=votes["language"].astype(object).where(votes.index != 3), length=np.nan, other=1.0)
    for option in ({"cluster": "group"}, {"by": "group"}, {"lengths": ("length", "other")}):
        with pytest.raises(DataError, match="missing value"):
            jaxeval.audit(gaps, parts=["board"], progress=False, **option)
    with pytest.raises(DataError, match="column 'length' has 1,500 missing values"):
        jaxeval.audit(gaps, parts=["board"], progress=False, voter="length")


@pytest.mark.slow
def test_votes_without_a_voter_stay_in_the_audit():
    votes = jaxeval.simulate_votes(400, 3, seed=0)
    own = votes.assign(voter=np.where(votes.index < 100, np.nan, votes.index % 30))
    found = jaxeval.audit(own, voter="voter", parts=["fewest_votes", "who_votes"], **RUN)
    assert not found.absent
    assert found["who_votes"].n_left_out == 100
    plain = jaxeval.audit(votes, parts=["fewest_votes"], **RUN)
    assert found.fewest_votes["dropped"].equals(plain.fewest_votes["dropped"])
    assert found.fewest_votes["voters"].max() <= 30


@pytest.mark.parametrize("when", ["banana", "2026-01-05"])
def test_times_that_are_none_or_all_the_same_stop_the_part_on_drift_alone(when):
    votes = jaxeval.simulate_votes(400, 3, seed=0).assign(when=when)
    parts = ["goodness_of_fit", "rank_evidence", "drift"]
    found = jaxeval.audit(votes, time="when", parts=parts, **RUN)
    assert list(found.absent) == ["drift"]
    assert "when" not in found.goodness_of_fit.table["test"].tolist()
    assert "first_vote" not in found["rank_evidence"].table


def test_a_board_of_ties_alone_is_audited():
    votes = jaxeval.simulate_votes(400, 3, seed=0).assign(winner="tie")
    found = jaxeval.audit(votes, **RUN)
    assert found.fewest_votes[["dropped", "flipped"]].isna().all(axis=None)
    assert found.fewest_votes["added"].tolist() == [1, 1]
    assert "ties" in found.absent["goodness_of_fit"]
    assert "no difference of two ratings has a standard error" in found.absent["anytime_intervals"]
    assert found["fewest_votes"].findings()[0].text.startswith("All 3 models are level: there is no order that votes")
    assert found["board"].findings()[0].text == "Of 400 votes between 3 models, all 3 models are level, and none leads."
    assert not any("ahead of" in sentence or "#1" in sentence for sentence in found.verdict)


def test_models_that_are_level_at_the_top_do_not_lead():
    wins = pd.DataFrame({"model_a": ["a", "b"] * 10, "model_b": "c", "winner": ["model_a"] * 16 + ["model_b"] * 4})
    found = jaxeval.audit(wins, parts=["board", "fewest_votes"], **RUN)
    assert found["board"].findings()[0].text == "Of 20 votes between 3 models, a, b are level, and none leads."
    said = found["fewest_votes"].findings()[0].text
    assert said == "No model is #1 by itself: a, b are level."
    assert not any("a passes b" in sentence or "b passes a" in sentence for sentence in found.verdict)


def test_one_cluster_tells_nothing():
    votes = jaxeval.simulate_votes(400, 3, seed=0).assign(voter="x", when=lambda v: v.index + 1_700_000_000)
    parts = ["board", "goodness_of_fit", "drift", "anytime_intervals"]
    found = jaxeval.audit(votes, cluster="voter", time="when", parts=parts, **RUN)
    assert set(found.absent) == set(parts[1:])
    assert found.verdict[0].endswith("(its standard error is not known), statistically tied.")


def test_the_command_leaves_out_votes_without_a_group(votes, tmp_path):
    group = votes["language"].astype(object).where(votes.index >= 100)
    votes.assign(group=group).to_parquet(tmp_path / "votes.parquet")
    line = ["audit", str(tmp_path / "votes.parquet"), "--parts", "board", "--by", "group", "--missing"]
    assert "Of 1,400 votes" in run(*line, "drop", catch_exceptions=False).output
    assert "100 missing values" in run(*line, "error").output
    assert "is not one of 'error', 'drop'" in run(*line, "label").output


def test_the_command_prints_and_writes(votes, tmp_path):
    votes.to_parquet(tmp_path / "votes.parquet")
    out = tmp_path / "audit"
    line = ["audit", str(tmp_path / "votes.parquet"), "--parts", "board", "--by", "language", "--out", str(out)]
    done = run(*line, catch_exceptions=False)
    assert done.exit_code == 0
    assert "Of 1,500 votes between 8 models" in done.output
    assert "What is audited?" in done.output
    assert json.loads((out / "audit.json").read_text())["settings"]["by"] == ["language"]
    assert (out / "verdict.csv").exists()


def test_the_command_tells_no_pair_apart_at_the_edge(tmp_path):
    """37 of 60 votes have p .09."""
    votes = pd.DataFrame({"model_a": "x", "model_b": "y", "winner": ["model_a"] * 37 + ["model_b"] * 23})
    votes.to_csv(tmp_path / "votes.csv", index=False)
    line = ["audit", str(tmp_path / "votes.csv"), "--parts", "rank_evidence", "--resamples", "100"]
    said = run(*line, catch_exceptions=False).output
    assert "1 of 1 pair of neighbours on the board cannot be told apart" in said
    assert "2 models may be first at 95%: x, y." in said
    voter = [max(row, 20) for row in range(60)]
    votes.assign(winner=["model_a"] * 45 + ["model_b"] * 15, voter=voter).to_csv(line[1])
    assert "Only 1 model may be first at 95%: x, if votes of one voter are independent." in run(*line).output
