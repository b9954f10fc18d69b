"""Inspect itself, with a model that is none: metrics of a task, and the board at the end of an eval set."""

import gc
import json
import warnings
from importlib.util import find_spec
from math import comb

import numpy as np
import pandas as pd
import pytest
from command_line import said
from scipy import stats

import jaxeval

pytestmark = pytest.mark.skipif(
    find_spec("inspect_ai") is None,  # importing it takes longer than collecting all tests of a folder
    reason="pip install 'jaxeval[inspect]': .ci/run does so in an environment of its own",
)

N, EPOCHS = 16, 3


def is_right(item, epoch):
    return (7 * item + 3 * epoch) % 5 > 1


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """The logs of two models on one task, and their folder."""
    from inspect_ai import Task, eval_set
    from inspect_ai.dataset import Sample
    from inspect_ai.scorer import CORRECT, INCORRECT, Score, mean, scorer
    from inspect_ai.solver import solver

    from jaxeval.integrations import inspect_extension as own

    folder = tmp_path_factory.mktemp("inspect") / "logs"
    labelled = folder.parent / "labelled.csv"
    rng = np.random.default_rng(0)
    human = rng.uniform(size=200) < 0.6
    judged = np.where(rng.uniform(size=200) < 0.9, human, ~human)
    pd.DataFrame({"item": range(200), "judgment": judged.astype(int), "human": human.astype(int)}).to_csv(labelled)
    metrics = [
        mean(), own.interval(), own.stderr(cluster="passage"), own.pass_at(2, EPOCHS), own.pass_hat(2, EPOCHS)
    ]  # fmt: skip

    @scorer(metrics=metrics)
    def exact():
        async def score(state, target):
            shift = len(state.model.name)
            return Score(value=CORRECT if is_right(state.sample_id + shift, state.epoch) else INCORRECT)

        return score

    @scorer(metrics=[own.corrected(str(labelled))])
    def graded():
        async def score(state, target):
            return Score(value=float(is_right(state.sample_id, 1)))

        return score

    @solver
    def nothing():
        async def solve(state, generate):
            return state

        return solve

    samples = [Sample(input=str(i), target="1", id=i, metadata={"passage": i // 4}) for i in range(N)]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # Inspect leaves streams open, which garbage collection tells
        patch.setenv(own.BOARD, "link")
        done, found = eval_set(
            [Task(samples, solver=nothing(), scorer=[exact(), graded()], epochs=EPOCHS, name="task")],
            log_dir=str(folder), model=["mockllm/one", "mockllm/other"], display="none", retry_attempts=0,
        )  # fmt: skip
        gc.collect()
    assert done, [log.error and log.error.traceback for log in found]
    return folder, {log.eval.model: log for log in found}


def metrics_of(log, scorer):
    (own,) = [score for score in log.results.scores if score.name == scorer]
    return {name.split("/")[-1]: metric.value for name, metric in own.metrics.items()}


def test_metrics_are_those_of_the_library(logs):
    found = metrics_of(logs[1]["mockllm/one"], "exact")
    means = np.array([np.mean([is_right(i + len("one"), e) for e in range(1, EPOCHS + 1)]) for i in range(N)])
    assert found["mean"] == pytest.approx(means.mean())
    table = pd.DataFrame({"model": "m", "item": range(N), "score": means, "cluster": np.arange(N) // 4})
    row = jaxeval.score_leaderboard(table, n_resamples=20, progress=False).iloc[0]
    assert found["jaxeval_stderr"] == pytest.approx(row["standard_error"])
    alone = jaxeval.score_leaderboard(table.drop(columns="cluster"), n_resamples=20, progress=False).iloc[0]
    assert (found["lower"], found["upper"]) == pytest.approx((alone["lower"], alone["upper"]))
    right = np.round(means * EPOCHS).astype(int)
    pairs = comb(EPOCHS, 2)
    assert found["jaxeval_pass_at"] == pytest.approx(np.mean([1 - comb(EPOCHS - r, 2) / pairs for r in right]))
    assert found["jaxeval_pass_hat"] == pytest.approx(np.mean([comb(r, 2) / pairs for r in right]))


def test_grades_are_corrected(logs):
    found = metrics_of(logs[1]["mockllm/one"], "graded")
    raw = np.mean([is_right(i, 1) for i in range(N)])
    assert found["lower"] < found["mean"] < found["upper"]
    assert abs(found["mean"] - raw) > 0.001
    assert found["upper"] - found["lower"] > 2 * stats.norm.ppf(0.975) * np.sqrt(raw * (1 - raw) / N)


def test_an_eval_set_ends_with_its_board(logs):
    folder, _ = logs
    board = pd.read_csv(folder.with_name("logs-board-exact.csv"))
    assert folder.with_name("logs-board-graded.csv").exists()
    assert set(board["model"]) == {"mockllm/one", "mockllm/other"}
    assert "| mockllm/one |" in folder.with_name("logs-board-exact.md").read_text()


def test_logs_say_where_the_board_is(logs):
    from inspect_ai.log import list_eval_logs, read_eval_log

    from jaxeval.integrations.inspect_extension import link_board, write_board

    folder, _ = logs
    page = folder.with_name("logs-board-exact.html")
    assert "mockllm/one" in page.read_text()
    for log in map(read_eval_log, list_eval_logs(str(folder))):
        assert log.metadata["jaxeval_board"].splitlines()[0] == page.as_uri()
        assert "mockllm/" in log.metadata["jaxeval_answer"]
        assert [update.provenance.author for update in log.log_updates] == ["jaxeval"]
        assert len(log.samples) == N * EPOCHS
    before = {file: file.read_bytes() for file in folder.glob("*.eval")}
    link_board(folder, write_board(folder))  # says nothing new
    assert {file: file.read_bytes() for file in before} == before


def test_tasks_of_different_scorers_have_a_board_each(tmp_path):
    """By hand, as Inspect writes them: a log of one scorer, of one of several values, of words, and a failed one."""
    from jaxeval.integrations.inspect_extension import write_board

    folder = tmp_path / "set"
    folder.mkdir()
    values = {"t1": {"exact": "C"}, "t2": {"graded": {"a": 1, "b": 0.5}}, "t3": {"words": "fine"}, "t4": {}}
    for task, scored in values.items():
        scores = {name: {"value": value} for name, value in scored.items()}
        samples = [{"id": k, "epoch": 1, "scores": scores} for k in range(4)]
        for model in ("m", "n"):
            log = {"status": "success", "eval": {"task": task, "model": model}, "samples": samples}
            (folder / f"{task}{model}.json").write_text(json.dumps(log))
    with pytest.warns(UserWarning, match="no board of the scorer words: .*name another scorer"):
        boards = write_board(folder)
    assert {page.name for page in boards} == {f"set-board-{name}.html" for name in ("exact", "graded.a", "graded.b")}
    assert set(pd.read_csv(tmp_path / "set-board-exact.csv")["score"]) == {1.0}
    assert "t1m" not in (tmp_path / "set-board-graded.a.md").read_text()


def test_without_boards_logs_stay_as_they_are(logs):
    from jaxeval.integrations.inspect_extension import link_board

    before = {file: file.read_bytes() for file in logs[0].glob("*.eval")}
    link_board(logs[0], {})
    assert {file: file.read_bytes() for file in before} == before


def test_logs_elsewhere_are_told(monkeypatch):
    import asyncio

    from inspect_ai.hooks import EvalSetEnd

    from jaxeval.integrations.inspect_extension import BOARD, BoardHooks

    monkeypatch.setenv(BOARD, "1")
    with pytest.warns(UserWarning, match="writes no board of logs at s3://bucket/logs: run jaxeval scores on a copy"):
        asyncio.run(BoardHooks().on_eval_set_end(EvalSetEnd("set", "s3://bucket/logs")))


def test_the_command_reads_the_folder_of_an_eval_set(logs):
    folder, found = logs
    printed = said("scores", folder, "--score", "exact")
    assert f"2 models, {N} items" in printed
    files = [log.location.removeprefix("file://") for log in found.values()]
    gate = said("compare-scores", *files, "--score", "exact", "--margin", 0.5, "--gate")
    assert gate.startswith("PASS: mockllm/")
