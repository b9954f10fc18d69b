"""MLflow, W&B and OpenTelemetry themselves, without a network: numbers, tables and answers are there as they were."""

import io
import json

import pandas as pd
import pytest
from command_line import run

import jaxeval

WHERE = ".ci/run installs it in an environment of its own"
mlflow, wandb = (pytest.importorskip(name, reason=WHERE) for name in ("mlflow", "wandb"))
pytest.importorskip("opentelemetry.sdk._logs", reason=WHERE)


@pytest.fixture(scope="module")
def scores():
    return jaxeval.simulate_scores(60, 3, seed=1).replace({"model": {"model-1": "org/m (é)"}})


@pytest.fixture(scope="module")
def board(scores):
    return jaxeval.score_leaderboard(scores, n_resamples=50, progress=False)


@pytest.fixture
def gate_line(scores, tmp_path):
    scores.to_csv(path := tmp_path / "scores.csv", index=False)
    return "compare-scores", "model-2", "model-3", path, "--margin", 0.3, "--gate", "--log-to"


def test_mlflow(board, gate_line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # artifacts of a database lie in ./mlruns
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/runs.db")
    jaxeval.log_result(board, "mlflow")
    with mlflow.start_run() as active:
        assert run(*gate_line, "mlflow").exit_code == 0
    runs = mlflow.search_runs(output_format="list")
    assert [own.info.status for own in runs] == ["FINISHED"] * 2
    of_gate, of_board = sorted(runs, key=lambda own: own.info.run_id != active.info.run_id)
    by_model = board.set_index("model")
    for name in ("model-2", "model-3"):
        assert of_board.data.metrics[f"score/{name}"] == by_model.loc[name, "score"]
        assert of_board.data.metrics[f"score_lower/{name}"] == by_model.loc[name, "lower"]
    assert len(of_board.data.metrics) == 12
    table = mlflow.artifacts.load_text(f"runs:/{of_board.info.run_id}/jaxeval/table.csv")
    assert pd.read_csv(io.StringIO(table))["model"].tolist() == board["model"].tolist()
    assert of_gate.data.tags["jaxeval.answer"].startswith("PASS")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "nowhere://runs")
    refused = run(*gate_line, "mlflow")
    assert refused.exit_code == 3  # and not 1, which is FAIL
    assert "PASS" in refused.stdout
    assert "mlflow did not take the result" in refused.stderr


def test_wandb(board, gate_line, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    with wandb.init() as active:
        jaxeval.log_result(board, "wandb")
        by_model = board.set_index("model")
        assert active.summary["score/model-2"] == by_model.loc["model-2", "score"]
        assert active.summary["jaxeval.answer"] == "\n".join(board.answer.sentences)
    (table,) = tmp_path.glob(f"wandb/*{active.id}/files/media/table/jaxeval/*.json")
    assert [row[0] for row in json.loads(table.read_text())["data"]] == board["model"].tolist()
    assert run(*gate_line, "wandb").exit_code == 0
    assert len(list(tmp_path.glob("wandb/offline-run-*"))) == 2


def test_opentelemetry(board, gate_line):
    from opentelemetry._logs import set_logger_provider
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    refused = run(*gate_line, "opentelemetry")
    assert refused.exit_code == 3
    assert "events would go nowhere" in refused.stderr
    provider, kept = LoggerProvider(), InMemoryLogRecordExporter()
    provider.add_log_record_processor(SimpleLogRecordProcessor(kept))
    set_logger_provider(provider)
    jaxeval.log_result(board, "opentelemetry")
    records = [own.log_record for own in kept.get_finished_logs()]
    assert {own.event_name for own in records} == {"gen_ai.evaluation.result"}
    assert [own.attributes["jaxeval.of"] for own in records] == board["model"].tolist()
    assert [own.attributes["gen_ai.evaluation.score.value"] for own in records] == board["score"].tolist()
