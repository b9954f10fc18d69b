"""The frame of an audit: its parts, its verdict, its files, and the command."""

import json

import pandas as pd
import pytest
from click.testing import CliRunner

import jaxeval
from jaxeval.audits import audit as module
from jaxeval.audits.audit_result import Audit
from jaxeval.audits.findings import Finding, Severity
from jaxeval.audits.parts import Absent, NotAnsweredError, Part, PartResult
from jaxeval.cli.main import main
from jaxeval.errors import DataError
from jaxeval.tables.records import json_digest


@pytest.fixture(scope="module")
def votes():
    return jaxeval.simulate_votes(1_500, 8, seed=1)


class Told(PartResult):
    """A part that says what it is told to."""

    def __init__(self, *sentences):
        self.sentences = sentences
        self.table = pd.DataFrame({"sentence": [text for _, text in sentences]})

    def _shown(self):
        raise NotImplementedError

    def findings(self):
        return [Finding(self.sentences[0][1][0], severity, text) for severity, text in self.sentences]


def told(**parts):
    return Audit(parts, dict.fromkeys(parts, "Why?"), {"votes": "", "versions": ""}, ())


def test_the_function_and_the_package_both_work(votes):
    from jaxeval.audits.audit import audit

    assert jaxeval.audit is audit
    assert jaxeval.audit(votes, parts=["board"], progress=False)["board"].table["rank"].tolist() == list(range(1, 9))


def test_the_most_serious_sentence_of_each_part_has_a_place():
    a = Told(*((Severity.SERIOUS, f"a{k}") for k in range(12)))
    b = Told((Severity.NOTE, "b0"), (Severity.CAUTION, "b1"))
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

    parts = [Part("a", "A?", refuses), Part("b", "B?", breaks), Part("c", "C?", fails, ("voter",))]
    monkeypatch.setattr(module, "PARTS", (*module.PARTS, *parts))
    found = jaxeval.audit(votes, n_resamples=20, progress=False, parts=["board", "a", "b", "c"])
    assert found.absent["a"] == "there are no ties"
    assert found.absent["b"] == "too few votes"
    assert "--voter" in found.absent["c"]
    assert not found.parts["c"].asked
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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parts": ["bord"]}, "no part 'bord'.*board"),
        ({"voter": "who"}, "no column 'who'"),
        ({"time": "when"}, "no column 'when'"),
        ({"n_resamples": 5}, "at least 20"),
        ({"level": 95}, "level"),
    ],
)
def test_bad_options_are_errors(votes, options, message):
    with pytest.raises(ValueError, match=message):
        jaxeval.audit(votes, progress=False, **options)


def test_parts_are_a_list(votes):
    with pytest.raises(TypeError, match="list of names"):
        jaxeval.audit(votes, parts="board")


def test_the_command_prints_and_writes(votes, tmp_path):
    votes.to_parquet(tmp_path / "votes.parquet")
    out = tmp_path / "audit"
    line = ["audit", str(tmp_path / "votes.parquet"), "--parts", "board", "--by", "language", "--out", str(out)]
    done = CliRunner().invoke(main, line, catch_exceptions=False)
    assert done.exit_code == 0
    assert "Of 1,500 votes between 8 models" in done.output
    assert "What is audited?" in done.output
    assert json.loads((out / "audit.json").read_text())["settings"]["by"] == ["language"]
    assert (out / "verdict.csv").exists()


def test_absent_is_asked_by_default():
    assert Absent("why").asked
