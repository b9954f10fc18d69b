"""Metrics and a hook of Inspect, which it finds by the entry point ``inspect_ai``: ``pip install jaxeval[inspect]``.

In a task: ``@scorer(metrics=[mean(), interval(), stderr(cluster="passage")])``, imported from this module. With
``JAXEVAL_BOARD=1`` in the environment, the end of an eval set writes a board of its models beside its logs; with
``JAXEVAL_BOARD=link`` the metadata of each log says where it is, too.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING

from inspect_ai.hooks import EvalSetEnd, Hooks, hooks
from inspect_ai.scorer import Metric, SampleScore, Value, metric, value_to_float

from jaxeval.errors import DataError
from jaxeval.integrations import estimates_of

if TYPE_CHECKING:
    from jaxeval.scores.estimates import ScoreEstimates

#: In the environment: "1" writes boards at the end of eval sets, and "link" says in each log where they are, too.
BOARD = "JAXEVAL_BOARD"


def _estimates(scores: Sequence[SampleScore], cluster: str | None) -> ScoreEstimates:
    """Return the mean of samples, which are drawn anew, or the clusters of their metadata are."""
    number, clusters = value_to_float(), None
    if cluster is not None:
        lacking = [x.sample_id for x in scores if cluster not in (x.sample_metadata or {})]
        if lacking:
            raise DataError(
                f"{len(lacking):,} of {len(scores):,} samples, the first {lacking[0]!r}, have no {cluster!r} in their "
                "metadata: name a field that all have"
            )
        clusters = [str((x.sample_metadata or {})[cluster]) for x in scores]
    return estimates_of([number(x.score.value) for x in scores], clusters)


@metric(name="jaxeval_interval")
def interval(level: float = 0.95, cluster: str | None = None) -> Metric:
    """Give the ends of the interval of the mean: exact for right and wrong answers, Student's and Hall's for others.

    Args:
        level: the probability that it holds the mean of other samples like these.
        cluster: the field of samples' metadata that groups those that belong together, such as questions on one text.
    """

    def ends(scores: list[SampleScore]) -> Value:
        lower, upper = _estimates(scores, cluster).interval(level)
        return {"lower": float(lower[0]), "upper": float(upper[0])}

    return ends


@metric(name="jaxeval_stderr")
def stderr(cluster: str | None = None) -> Metric:
    """Give the standard error of the mean, with clusters by the sandwich that is corrected for few of them (CR2)."""

    def error(scores: list[SampleScore]) -> Value:
        return float(_estimates(scores, cluster).standard_errors[0])

    return error


def _chance_of_all(scores: list[SampleScore], k: int, epochs: int, right: bool) -> float:
    """Return the mean chance that ``k`` trials of a sample are all ``right``, or all wrong."""
    if not 1 <= k <= epochs:
        raise ValueError(f"k must be from 1 to epochs={epochs}, got {k}")
    number = value_to_float()
    n_right = [round(number(x.score.value) * epochs) for x in scores]
    return sum(comb(n if right else epochs - n, k) for n in n_right) / comb(epochs, k) / len(n_right)


@metric(name="jaxeval_pass_at")
def pass_at(k: int, epochs: int) -> Metric:
    """Give the mean chance that one of ``k`` trials solves a sample, by its mean of ``epochs`` (arXiv:2107.03374)."""

    def chance(scores: list[SampleScore]) -> Value:
        return 1 - _chance_of_all(scores, k, epochs, right=False)

    return chance


@metric(name="jaxeval_pass_hat")
def pass_hat(k: int, epochs: int) -> Metric:
    """Give the mean chance that ``k`` trials all solve a sample, by the mean of its ``epochs``."""

    def chance(scores: list[SampleScore]) -> Value:
        return _chance_of_all(scores, k, epochs, right=True)

    return chance


@metric(name="jaxeval_corrected")
def corrected(calibration: str, label: str = "human", judgment: str = "judgment", level: float = 0.95) -> Metric:
    """Correct the mean of a judge's right and wrong grades by its errors on labelled answers (Rogan and Gladen).

    Args:
        calibration: a table of answers that people labelled, too. They may be another model's: the rates at which the
            judge errs are what is taken from it.
        label: its column of people's labels, 0 or 1.
        judgment: its column of the judge's grades, 0 or 1.
        level: of the interval.
    """

    def estimate(scores: list[SampleScore]) -> Value:
        import pandas as pd

        from jaxeval.accuracy.judge_accuracy import judge_accuracy
        from jaxeval.data.judged_answers import JudgedAnswers, read_judged_answers

        number = value_to_float()
        table = pd.DataFrame({"item": range(len(scores)), "judgment": [number(x.score.value) for x in scores]})
        labelled = read_judged_answers(calibration, judgment=judgment, label=label)
        test = JudgedAnswers.from_pandas(table, judgment="judgment", item="item")
        accuracy = judge_accuracy(labelled, test, sampling="borrowed", level=level, progress=False, n_resamples=200)
        believed = accuracy.table[accuracy.table["believe"]]
        if not len(believed):
            raise DataError(f"{calibration} cannot correct these grades: {'; '.join(accuracy.warnings)}")
        row = believed.iloc[0]
        return {"mean": float(row["estimate"]), "lower": float(row["lower"]), "upper": float(row["upper"])}

    return estimate


@hooks(
    name="jaxeval_board",
    description="Writes a board of an eval set's models beside its logs, where JAXEVAL_BOARD is set",
)
class BoardHooks(Hooks):
    """Writes ``LOGS-board.html``, ``.md`` and ``.csv`` beside LOGS, the folder of an eval set, when it ends."""

    def enabled(self) -> bool:
        """Return whether the environment asks for it."""
        return os.environ.get(BOARD, "") not in ("", "0")

    async def on_eval_set_end(self, data: EvalSetEnd) -> None:
        """Write the board, and link it where the environment asks for that."""
        folder = data.log_dir.removeprefix("file://")
        if "://" in folder:
            warnings.warn(f"{BOARD} writes no board of logs at {folder}: run jaxeval scores on a copy", stacklevel=2)
            return
        boards = write_board(Path(folder))
        if os.environ[BOARD] == "link":
            link_board(Path(folder), boards)


def write_board(folder: Path) -> dict[Path, str]:
    """Write the board of the logs in a folder, beside it: a page, Markdown, and a table with all columns.

    Logs of several scorers have a board of each, with the scorer's name, of the logs that have its scores. A scorer
    whose scores cannot be read has a warning instead. The pages are returned, with the first sentence of each.
    """
    from jaxeval.data.file_lists import names_of
    from jaxeval.data.formats import read_head
    from jaxeval.data.harness_formats import newest
    from jaxeval.data.harness_runs import scorers_of
    from jaxeval.data.score_files import read_scores
    from jaxeval.scores.score_leaderboard import score_leaderboard
    from jaxeval.show.files import write_table

    by_log = {log: scorers_of(read_head(log).document or {}) for log in newest(names_of(folder))[0]}
    scorers = list(dict.fromkeys(scorer for names in by_log.values() for scorer in names))
    pages = {}
    for scorer in scorers:
        try:  # logs without any scores are told on each board
            scores = read_scores([log for log, names in by_log.items() if not names or scorer in names], score=scorer)
            table = score_leaderboard(scores, missing="available", progress=False)
        except DataError as error:
            warnings.warn(f"no board of the scorer {scorer}: {error}", stacklevel=2)
            continue
        name = f"{folder.name}-board" + (f"-{scorer.replace('/', '-')}" if len(scorers) > 1 else "")
        for ending in (".md", ".csv", ".html"):
            write_table(table, page := folder.with_name(f"{name}{ending}"))
        pages[page] = str(table.attrs["answer"]).partition("\n")[0]
    return pages


def link_board(folder: Path, boards: Mapping[Path, str]) -> None:
    """Write where the ``boards`` are, and their first sentences, into the logs' metadata, which ``inspect view`` shows.

    An edit by Inspect's own means: the log keeps what it was, and says that jaxeval added it. Samples stay as they are.
    Without boards logs stay as they are.
    """
    from inspect_ai.log import list_eval_logs, read_eval_log, write_eval_log

    try:
        from inspect_ai.log import MetadataEdit, ProvenanceData, edit_eval_log
    except ImportError as error:
        raise DataError(
            f"{BOARD}=link needs a version of inspect-ai that edits logs: pip install -U inspect-ai"
        ) from error
    if not boards:
        return
    values = {"jaxeval_board": [page.resolve().as_uri() for page in boards], "jaxeval_answer": [*boards.values()]}
    edit = MetadataEdit(metadata_set={name: "\n".join(texts) for name, texts in values.items()})
    for info in list_eval_logs(str(folder)):
        alone = info.name.endswith(".eval")  # only there can a header be written alone
        log = read_eval_log(info, header_only=alone)
        edited = edit_eval_log(log, [edit], ProvenanceData(author="jaxeval", reason=f"{BOARD}=link"))
        if edited is not log:
            write_eval_log(edited, header_only=alone)
