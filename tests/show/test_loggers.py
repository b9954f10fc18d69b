"""Results in what tracks experiments, by stand-ins that hold what they are told."""

import io
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from command_line import run

import jaxeval
from jaxeval.errors import DataError
from jaxeval.show.exports import logged_values
from jaxeval.show.shown import Answer


@pytest.fixture(scope="module")
def scores():
    return jaxeval.simulate_scores(60, 3, seed=1).replace({"model": {"model-1": "org/m (é)"}})


@pytest.fixture(scope="module")
def board(scores):
    return jaxeval.score_leaderboard(scores, n_resamples=50, progress=False)


@pytest.fixture
def mlflow(monkeypatch):
    told = SimpleNamespace(metrics={}, texts={}, tags={}, runs=0, active=None)

    @contextmanager
    def start_run():
        told.runs += 1
        yield

    monkeypatch.setitem(sys.modules, "mlflow", SimpleNamespace(
        active_run=lambda: told.active, start_run=start_run, log_metrics=told.metrics.update,
        log_text=lambda text, name: told.texts.update({name: text}), set_tags=told.tags.update,
    ))  # fmt: skip
    return told


def test_values_are_those_of_the_table(board, scores):
    for own, (_, row) in zip(logged_values(board), board.iterrows(), strict=True):
        assert own[:6] == ("score", *row[["model", "score", "lower", "upper", "standard_error"]])
        assert (own.n, own.label) == (60, None)
    (own,) = logged_values(jaxeval.score_gate(scores, "model-2", "model-3", margin=0.3))
    assert (own.name, own.of, own.label) == ("difference", "", "PASS")
    ratings = {"model": ["a", "b"], "rating": [1e3, np.inf], "lower": [9e2, np.nan], "upper": [2e3, np.nan]}
    votes = pd.DataFrame(ratings | {"variance": [9.0, 4.0]})
    assert logged_values(Answer("Ratings", votes)) == [("rating", "a", 1e3, 9e2, 2e3, 3.0, None, None)]
    with pytest.raises(DataError, match="no estimate with an interval"):
        logged_values(jaxeval.plan_scores(scores))


def test_mlflow(mlflow, board):
    jaxeval.log_result(board, "mlflow")
    (strange,) = [name for name in mlflow.metrics if name.startswith("score/org")]
    assert strange.startswith("score/org/m ___-")
    assert len(mlflow.metrics) == 12
    by_model = board.set_index("model")
    assert mlflow.metrics["score/model-2"] == by_model.loc["model-2", "score"]
    assert mlflow.metrics[strange] == by_model.loc["org/m (é)", "score"]
    assert sorted(mlflow.texts) == ["jaxeval/table.csv", "jaxeval/table.md"]
    assert mlflow.tags == {"jaxeval.answer": board.answer.sentences[0]}
    assert mlflow.runs == 1
    mlflow.active = "a run"
    jaxeval.log_result(board, "mlflow")
    assert mlflow.runs == 1


def test_wandb(monkeypatch, board):
    told = {}
    started = SimpleNamespace(log=told.update, summary={}, finish=lambda: told.update(finished=True))
    module = SimpleNamespace(run=None, init=lambda job_type: started, Table=lambda **own: own)
    monkeypatch.setitem(sys.modules, "wandb", module)
    jaxeval.log_result(board, "wandb")
    assert told["finished"]
    assert told["jaxeval/table"]["columns"] == list(board)
    assert [row[:2] for row in told["jaxeval/table"]["data"]] == board[["model", "score"]].to_numpy().tolist()
    assert started.summary["score/model-2"] == board.set_index("model").loc["model-2", "score"]


def test_opentelemetry(monkeypatch, scores):
    events = []
    logs = SimpleNamespace(
        get_logger=lambda name: SimpleNamespace(emit=events.append), get_logger_provider=SimpleNamespace,
        LogRecord=SimpleNamespace,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "opentelemetry", SimpleNamespace(_logs=logs))
    monkeypatch.setitem(sys.modules, "opentelemetry._logs", logs)
    gate = jaxeval.score_gate(scores, "model-2", "model-3", margin=0.3)
    jaxeval.log_result(gate, "opentelemetry")
    (event,) = events
    assert event.event_name == "gen_ai.evaluation.result"
    assert event.attributes["gen_ai.evaluation.score.label"] == "PASS"
    assert event.attributes["gen_ai.evaluation.score.value"] == gate.table["difference"][0]
    assert event.attributes["gen_ai.evaluation.explanation"] == gate.answer.sentences[0]


def test_every_eval_ever(board):
    found = jaxeval.every_eval_ever(board)
    row = board.set_index("model").loc["model-2"]
    assert found["model-2"]["score"] == row["score"]
    uncertainty = found["model-2"]["uncertainty"]
    assert uncertainty["standard_error"]["value"] == row["standard_error"]
    assert uncertainty["num_samples"] == 60
    assert uncertainty["confidence_interval"]["lower"] == row["lower"]
    assert uncertainty["confidence_interval"]["confidence_level"] == 0.95


def test_what_is_not_there(monkeypatch, board):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(DataError, match="pip install wandb"):
        jaxeval.log_result(board, "wandb")
    with pytest.raises(ValueError, match="'mlflow', 'wandb', 'opentelemetry'"):
        jaxeval.log_result(board, "tensorboard")


def test_command(mlflow, scores, tmp_path, monkeypatch):
    scores.to_csv(path := tmp_path / "scores.csv", index=False)
    line = ("compare-scores", "model-2", "model-3", path, "--margin", 0.3, "--gate", "--log-to")
    result = run(*line, "mlflow")
    assert result.exit_code == 0, result.output
    assert "logged to mlflow" in result.stderr
    assert mlflow.tags["jaxeval.answer"].startswith("PASS")
    assert "difference" in mlflow.metrics
    assert pd.read_csv(io.StringIO(mlflow.texts["jaxeval/table.csv"]))["verdict"].tolist() == ["PASS"]
    monkeypatch.setitem(sys.modules, "wandb", None)
    result = run(*line, "wandb")
    assert result.exit_code == 3
    assert "pip install wandb" in result.stderr
    monkeypatch.setattr(mlflow, "texts", None)  # a server that does not answer
    result = run(*line, "mlflow")
    assert result.exit_code == 3  # and not 1, which is FAIL
    assert "PASS" in result.stdout
    assert "mlflow did not take the result" in result.stderr
