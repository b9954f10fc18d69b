"""Files of judged battles, tables of scores and verdicts or replies of judges, by one judge or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from jaxeval.data.columns import factorize_sorted, folded, frame_of
from jaxeval.data.file_lists import whole_local_file
from jaxeval.data.judge_outputs import JudgeOutputs, read_judge_outputs
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.data.remote_names import base_name
from jaxeval.data.roles import SCORES, usual_column, usual_names
from jaxeval.data.table_files import head_names, naming, read_whole_table
from jaxeval.errors import DataError
from jaxeval.execution.signatures import with_options_of
from jaxeval.wording import counted, named

#: The options of tables, and those of replies of judges.
_OF_TABLES = tuple(signature(JudgedBattles.from_pandas).parameters)[1:]
_OF_REPLIES = tuple(signature(JudgeOutputs.from_pandas).parameters)[1:]
#: The options that say where a table holds a judge's scores or verdicts.
_SAYINGS = ("scores_a", "scores_b", "score_difference", "verdict")


def read_judges(path: str | Path, *, only_judge: str | None = None, **columns: Any) -> dict[str, JudgedBattles]:
    """Judged battles in a file, by the name of the judge; see `read_judged_battles`.

    Args:
        path: a file.
        only_judge: the one judge whose battles are wanted.
        columns: as in `read_judged_battles`; None counts as not given.

    Raises:
        DataError: the file cannot be read as judged battles, or does not have the judge.
        ValueError: an option is for tables and the file holds replies, or the other way round.

    Examples:
        >>> import jaxeval
        >>> calls = jaxeval.simulate_judge_outputs(60, 4, judge_noise=[0.0, 2.0])
        >>> calls.to_json("raw.jsonl", orient="records", lines=True)
        >>> judges = jaxeval.read_judges("raw.jsonl")
        >>> {name: battles.n_battles for name, battles in judges.items()}
        {'judge-1': 60, 'judge-2': 60}
    """
    path = whole_local_file(path)
    given = {name: value for name, value in columns.items() if value is not None}
    if given.get("one_order") == "error":
        del given["one_order"]
    of_replies = "output" in given or _holds_replies(head_names(path), given)
    known = {*(_OF_REPLIES if of_replies else _OF_TABLES), "judge", "judge_name", "hard_label"}
    idle = next((name for name, value in given.items() if name not in known and value is not False), None)
    if idle is not None:
        what = "replies of judges" if of_replies else "a table of scores or verdicts"
        raise ValueError(
            f"{path.name} is read as {what}, for which {idle}= (--{idle.replace('_', '-')}) has no meaning: leave it "
            "out"
        )
    name = given.pop("judge_name", None)
    given = {key: value for key, value in given.items() if key in known}
    judges = (_of_replies if of_replies else _of_table)(path, given)
    if name is not None:
        if len(judges) > 1:
            raise ValueError(
                f"judge_name={name!r} (--judge-name) is for one judge, but {path.name} has {len(judges):,} judges"
            )
        (battles,) = judges.values()
        judges = {name: replace(battles, judge_name=name)}
    if only_judge is not None:
        if only_judge not in judges:
            raise DataError(f"{path.name} has no judge {only_judge!r}; its judges are {named(list(judges))}")
        return {only_judge: judges[only_judge]}
    return judges


@with_options_of(JudgedBattles.from_pandas)
def read_judged_battles(path: str | Path, **columns: Any) -> JudgedBattles:
    r"""Judged battles from a file in a format of `read_battles`: a table of scores or verdicts, or replies of judges.

    The options are those of `JudgedBattles.from_pandas`. If the file has no column of scores or verdicts, but one of
    replies ("output" or another usual name), they are those of `JudgeOutputs.from_pandas`. ``only_judge`` names one of
    several judges. The sample of the Soft-Elo paper is read with ``label_coding="a_wins_0"``. Errors are as in
    `read_battles`.

    Examples:
        >>> import jaxeval
        >>> from pathlib import Path
        >>> _ = Path("judged.csv").write_text("model_a,model_b,scores_a,scores_b\nx,y,8,6.5\ny,z,5,7\n")
        >>> jaxeval.read_judged_battles("judged.csv").n_battles
        2
    """
    judges = read_judges(path, **columns)
    if len(judges) > 1:
        raise DataError(
            f"{base_name(path)} holds {len(judges):,} judges: {named(list(judges))}. Name the one to read with "
            "only_judge= (on the command line --only-judge)"
        )
    (battles,) = judges.values()
    return battles


def _holds_replies(names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Whether a file with columns of these names holds replies of judges, and no table of scores or verdicts."""
    own = {folded(name) for name in names}
    table = any(given.get(option) for option in _SAYINGS) or set(SCORES) <= set(names)
    return (
        not table
        and own.isdisjoint(usual_names("verdict"))
        and any(folded(name) in own for name in usual_names("output"))
    )


def _of_replies(path: Path, given: dict[str, Any]) -> dict[str, JudgedBattles]:
    hard_label = given.pop("hard_label", None)
    outputs = read_judge_outputs(path, **given)
    judges = {}
    for name in outputs.judges:
        battles = outputs.judged(name, hard_label=hard_label)
        told = (*str(outputs.report).splitlines(), *battles.report.read_as)
        judges[str(name)] = replace(battles, report=replace(battles.report, read_as=told))
    return judges


def _of_table(path: Path, given: dict[str, Any]) -> dict[str, JudgedBattles]:
    """Battles of a table by judge; all belong to "judge" if no column names judges."""
    column = given.pop("judge", None)
    with naming(path):
        text = [given.get("model_a", "model_a"), given.get("model_b", "model_b")]
        frame = frame_of(read_whole_table(path, text))
        column = usual_column(frame, column, "judge")
        if column is None:
            return {"judge": JudgedBattles.from_pandas(frame, **given)}
        number, names = factorize_sorted(frame[column], column)
        judges = {}
        for k, name in enumerate(map(str, names)):
            try:
                judges[name] = JudgedBattles.from_pandas(frame[number == k], **given, judge_name=name)
            except DataError as error:
                rows = counted((number == k).sum(), "row")
                raise DataError(f"judge {name!r} ({rows}, counted from 0 within this judge): {error}") from error
        return judges
