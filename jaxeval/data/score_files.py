"""Scores of models on items in files: long and wide tables, and what evaluation harnesses write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from jaxeval.data.columns import ALL_COLUMNS, Columns, factorize_sorted, reject_repeats, require_column
from jaxeval.data.conditions import columns_of, rows_that_meet
from jaxeval.data.file_lists import named_twice, names_of, whole_local_file
from jaxeval.data.formats import Source, whole_table
from jaxeval.data.harness_formats import named_by_results, newest, stated_by_results, with_model
from jaxeval.data.harness_runs import NoScoresError, document_of, merge_runs, unlike_documents, unlike_runs
from jaxeval.data.item_scores import ItemScores
from jaxeval.data.judge_calls import OR_POSITIVE
from jaxeval.data.labels import SCORES_IN_WORDS, in_numbers
from jaxeval.data.numbers import numeric_but_for_gaps
from jaxeval.data.published_formats import formats, source_format
from jaxeval.data.remote_names import FileName, base_name, label_of
from jaxeval.data.roles import NO_SCORES, sums_among, usual_column
from jaxeval.data.table_files import naming, told_of
from jaxeval.errors import DataError
from jaxeval.execution.signatures import spelled_out
from jaxeval.lazy_names import pd
from jaxeval.options.columns import ItemScoreColumns, VoteReading
from jaxeval.options.field import again
from jaxeval.plain_tables import PlainTable, in_pandas, objects, stacked
from jaxeval.wording import counted, did_you_mean, named, words_of

if TYPE_CHECKING:
    from jaxeval.data.judged_answers import JudgedAnswers
    from jaxeval.data.report import MissingJudgment
    from jaxeval.options.arguments import ReadScoresArguments

#: What the values of ``missing`` are called in `JudgedAnswers.from_pandas`.
_MISSING: dict[str, MissingJudgment] = {"error": "error", "complete": "complete", "available": "drop"}


def read_judged_scores(
    path: FileName | Sequence[FileName], *, human: str, judge: str | None = None, only_judge: str | None = None,
    keep: Sequence[str] = (), missing: str = "error", **columns: Any,
) -> JudgedAnswers:  # fmt: skip
    """Read scores from files of `read_scores` as judgments, with human labels of some answers in the column ``human``.

    Labels are 1 and 0, and missing where nobody labelled. ``only_judge`` is the one judge in the column ``judge`` whose
    scores are wanted. ``missing`` is as in `score_leaderboard`, and further columns as in `read_scores`.
    """
    from jaxeval.data.judged_answers import JudgedAnswers

    further = [human, *([judge] if judge else []), *keep]
    score_columns = ScoreColumns(keep=list(dict.fromkeys(further)), **columns)
    if score_columns.wide:
        raise DataError(
            "a wide table has no place for labels of single answers: give one row per model and item, without --wide"
        )
    frame, label, notes = score_table(path, score_columns)
    frame = in_pandas(frame)
    with naming(label):
        require_column(frame, *further)
        if only_judge is not None:
            names = frame[judge].astype(str)
            if not (names == only_judge).any():
                raise DataError(
                    f"no judge is called {only_judge!r}; there are {named(names.unique())}"
                    f"{did_you_mean(only_judge, names.unique())}"
                )
            frame = frame[names == only_judge].reset_index(drop=True)
        of_groups = [role for role in ("benchmark", "weight") if role in frame and len(frame[role].unique()) > 1]
        if of_groups:
            raise DataError(
                f"the table has a {' and a '.join(of_groups)} column, but scores that human labels correct take none: "
                "all items count alike. Drop the column, or rate its groups separately (--by)"
            )
        _reject_repeats(frame, judge)
        scores, words = in_numbers(frame["score"], SCORES_IN_WORDS)
        notes += [f"column 'score': read {words}"] if words else []
        frame = frame.assign(score=scores.astype(float) if pd.api.types.is_bool_dtype(scores) else scores)
        try:
            answers = JudgedAnswers.from_pandas(
                frame, judgment="score", label=human, model="model", item="item", judge=judge,
                keep=tuple(dict.fromkeys([*keep, *(["cluster"] if "cluster" in frame else [])])),
                run="trial" if "trial" in frame else None, missing=_MISSING[missing],
            )  # fmt: skip
        except DataError as error:
            # Scores have no such options.
            said, _, of_replies = str(error).replace(f", {OR_POSITIVE}", "").partition(". Say ")
            error.args = (said + ". Write scores as numbers, or leave them empty" * bool(of_replies), *error.args[1:])
            raise
        lacking = int((~answers.answered).sum())
        if missing == "error" and lacking:
            raise DataError(
                f"models lack answers to items ({counted(lacking, 'pair')} of a model and an item): missing='complete' "
                "(--missing complete) takes the items that all models have, missing='available' (--missing available) "
                "scores each model on its own items"
            )
        return answers.reporting(*notes, first=True)


def _reject_repeats(frame: pd.DataFrame, judge: str | None) -> None:
    roles = {"model": "model", "item": "item", "judge": judge, "trial": "trial"}
    there = {role: column for role, column in roles.items() if column is not None and column in frame}
    codes = pd.DataFrame({role: factorize_sorted(frame[column], column)[0] for role, column in there.items()})
    again = codes.duplicated().to_numpy()
    lacking = {"judges": judge is None, "trials": "trial" not in frame}
    options = [f"of {noun} ({noun[:-1]}=, --{noun[:-1]})" for noun, is_lacking in lacking.items() if is_lacking]
    advice = f"name the column {' or '.join(options)}" if options else ""
    reject_repeats(again, frame.index[again.argmax()], frame, there, ("row", "rows"), advice)


#: Names of columns of a long table that are taken if the user names no others.
_USUAL = ("trial", "cluster", "benchmark", "weight")


class ScoreColumns(ItemScoreColumns):
    """How files of scores are read: arguments of `read_scores`."""

    where: str | None = again(VoteReading, "where")
    keep: Sequence[str] = ()

    @property
    def of_condition(self) -> tuple[str, ...]:
        """Columns that ``where`` names."""
        return () if self.where is None else columns_of(self.where)

    def chosen(self, frame: Any) -> Any:
        """Return the rows that meet ``where``, with a note of how many these are.

        Raises:
            NoRowsError: none does.
        """
        if self.where is None:
            return frame
        left, note = rows_that_meet(frame, self.where)
        left.attrs = {**frame.attrs, "notes": [*frame.attrs.get("notes", ()), note]}
        return left


@spelled_out(ScoreColumns)
def read_scores(
    path: FileName | Sequence[FileName], *, keep: Sequence[str] = (), random: Sequence[str] = (),
    **columns: Unpack[ReadScoresArguments],
) -> ItemScores:  # fmt: skip
    """Read scores of models on items from files of evaluations, whose format is recognised by their content.

    - Long tables: a row for each model and item (and trial), with the columns "model", "item" and "score", or those
      that are named. Without a column of models, each file is a model, and its name is the model's.
    - Wide tables (``wide=True``): a row for each item, and a column of scores for each model; or, with a column of
      models, a row for each model, and a column of scores for each item.
    - Output of lm-evaluation-harness: samples of tasks (samples_TASK_DATE.jsonl), or the whole folder. A folder is a
      model, a task a benchmark. ``score`` chooses the metric and ``output_filter`` the filter, if there are several;
      "acc_norm,acc" takes the first one that a task has. Files of results name the models, and tasks without samples
      are told.
    - Logs of Inspect (.json, and .eval archives), or a folder of them: epochs are trials, tasks benchmarks; ``score``
      chooses the scorer. Letters count as Inspect counts them: C 1, P 1/2, I and N 0. Samples with an error have a
      missing score, and these, and evaluations that did not finish, are told.
    - Logs of OpenAI's evals, or a folder of them: events of match, or the metric that ``score`` names.
    - UltraFeedback: ``score`` is overall_score by default, or the rating of an aspect.
    - Every Eval Ever's instance-level JSON lines: evaluations are benchmarks.
    - Reports of SWE-bench (resolved_ids, and the other ids): a file, or the folder it is in, is a model.
    - Results of tau-bench (a list with task_id, trial and reward) and tau2-bench (simulations).

    Args:
        path: a file, a folder, a glob or a list of those. Several files are read as one table.
        keep: further columns of items, for slices.
        random: columns of what was sampled besides items, such as judges, prompts or seeds; see `error_budget`.
        **columns: which column holds what, and how it is read.

    Raises:
        DataError: a file is in none of these forms, or its scores cannot be read; the error begins with its name.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> rows = {"model": [*"xxyy"], "item": [1, 2, 1, 2], "score": [1, 0, 1, 1]}
        >>> pd.DataFrame(rows).to_csv("scores.csv", index=False)
        >>> jaxeval.read_scores("scores.csv").means["score"].to_dict()
        {'x': 0.5, 'y': 1.0}
    """
    return item_scores(path, keep, random, **columns).with_pandas()


def item_scores(
    path: FileName | Sequence[FileName], keep: Sequence[str] = (), random: Sequence[str] = (), **columns: Any
) -> ItemScores:
    """Return `read_scores` whose names are those of pandas only where files are not small."""
    return _of_table(*score_table(path, ScoreColumns(**columns, keep=[*keep, *random])), keep, random)


def _of_table(
    frame: pd.DataFrame, label: str, notes: Sequence[str], keep: Sequence[str] = (), random: Sequence[str] = ()
) -> ItemScores:
    further = {role: role for role in _USUAL if role in frame}
    notes = [*notes, *unlike_runs(frame.attrs.get("runs", ()))]
    if "_document" in frame:
        notes += unlike_documents(frame)
        frame = frame.drop(columns="_document")
    with naming(label):
        scores = ItemScores.from_pandas(frame, keep=keep, random=random, **further)
        if sums := sums_among(scores.items):
            notes.append(f"counted as items: {named(list(map(repr, sums)))}; drop what sums up others")
        return replace(scores, notes=(*notes, *scores.notes))


def read_two_models(
    a: FileName, b: FileName, random: Sequence[str] = (), **columns: Any
) -> tuple[ItemScores, str, str]:
    """Read scores of two models, each from its own files, and their names; equal names get their files' behind them."""
    if str(a) == str(b):
        raise DataError(f"{a} is named twice: name the results of two models, or of two runs")
    score_columns, sides = ScoreColumns(**columns, keep=random), []
    for path in (a, b):
        frame, label, notes = score_table(path, score_columns)
        models = list(dict.fromkeys(frame["model"]))
        if len(models) > 1:
            raise DataError(
                f"{label} has {counted(len(models), 'model')}: {named(models)}; name the two before the files"
            )
        sides.append((frame, label, notes, str(models[0])))
    names: list[str] = [name for _, _, _, name in sides]
    if names[0] == names[1]:
        labels = [label for _, label, *_ in sides]
        labels = labels if labels[0] != labels[1] else [str(a), str(b)]
        names = [f"{name} ({label})" for name, label in zip(names, labels, strict=True)]
    table = stacked([frame.assign(model=name) for (frame, *_), name in zip(sides, names, strict=True)])
    runs = [(run, name) for (frame, *_), name in zip(sides, names, strict=True) for run in frame.attrs["runs"]]
    table.attrs["runs"] = [run._replace(model=name) for run, name in runs]
    notes = [note for _, _, of_model, _ in sides for note in of_model]
    label = f"{sides[0][1]} and {sides[1][1]}"
    return _of_table(table, label, notes, (), random), names[0], names[1]


def score_table(
    path: FileName | Sequence[FileName], score_columns: ScoreColumns
) -> tuple[pd.DataFrame, str, list[str]]:
    """Return the long table of all files ("model", "item", "score", other roles of `ScoreColumns`), name, and notes."""
    files, notes = newest(names_of(path))
    notes += named_twice(path)
    tables, samples, results = [], [], []
    for name in files:
        try:
            with naming(name):
                table = _table_of(whole_local_file(name), name, score_columns)
        except NoScoresError as error:
            if len(files) == 1:
                raise
            notes.append(f"left out: {error}")
            continue
        if "results" in table.attrs:
            results.append((name, table.attrs["results"]))
            continue
        tables.append(table)
        if table.attrs.get("samples"):
            samples.append((name, table))
    tables, merged = merge_runs(tables)
    notes += [note for table in tables for note in table.attrs.get("notes", ())] + merged
    notes += named_by_results(samples, results)
    if not tables:
        raise DataError("; ".join([f"{base_name(files[0])} has no scores of items", *notes]))
    reports = [table for table in tables if table.attrs.get("resolved")]
    tables = [table for table in tables if not table.attrs.get("resolved")]
    notes += _complete(reports)
    is_one = isinstance(path, str | Path) or len(path) == 1
    label = label_of(path) if is_one else f"{base_name(files[0])} and others"
    frame = stacked([*tables, *reports])
    frame.attrs["runs"] = [table.attrs["run"] for table in tables if "run" in table.attrs]
    return frame, label, notes


def stated_means(path: FileName | Sequence[FileName]) -> pd.DataFrame | None:
    """Give what files of lm-evaluation-harness's results state, see `stated_by_results`; None where there are none."""
    means = []
    for name in newest(names_of(path))[0]:
        if base_name(name).startswith("results") and base_name(name).endswith(".json"):
            document = document_of(whole_local_file(name)) or {}
            if isinstance(document.get("results"), Mapping) and "configs" in document:
                means.append(stated_by_results(name, document))
    return pd.concat(means, ignore_index=True) if means else None


def _table_of(path: Path, name: FileName, score_columns: ScoreColumns) -> pd.DataFrame:
    """Return the long table of a file: "model", "item", "score", and its other columns."""
    options = {option: getattr(score_columns, option) for option in ("score", "output_filter")}
    source = Source.of(name, path, keep=[*score_columns.keep, *score_columns.of_condition], **options)
    document, form = source.document, source_format(source, "answer")
    if form is not None:
        return score_columns.chosen(form.read(source))
    if document is None:
        table = _plain_table(source, score_columns)
        table.attrs["notes"] = [*table.attrs.get("notes", ()), *told_of(path)]
        return table
    if {"item", "score"} <= document.keys() or {score_columns.item, score_columns.score} <= document.keys():
        return with_model(pd.DataFrame([document]), name)
    known = named([f"{form.name} ({', '.join(form.marks)})" for form in formats().values()
                   if form.shape == "answer" and form.is_document], 20)  # fmt: skip
    raise DataError(
        f"the file is a JSON object with the keys {named(source.names)}, which no known harness writes: expected "
        f"{known}, or a table"
    )


def _plain_table(source: Source, score_columns: ScoreColumns) -> pd.DataFrame:
    (path,) = source.paths
    if score_columns.wide:
        return _wide_table(path, score_columns)
    stated = {
        role: x for role in ("model", "item", "score", *_USUAL) if (x := getattr(score_columns, role)) is not None
    }
    is_one_model = "model" not in stated and "model" not in source.names
    roles = {role: role for role in ("item", "score", *(() if is_one_model else ("model",)))} | stated
    every = dict.fromkeys((*roles.values(), *score_columns.keep, *score_columns.of_condition))
    needed = Columns(tuple(every), tuple(role for role in _USUAL if role not in stated))
    frame = whole_table(path, needed, nested=True, plain=True)
    if not isinstance(frame, PlainTable):  # names such as 2024-05-13 are text, as they stand there, and no times
        names = {*every} - {roles["score"], *score_columns.of_condition}
        times = [name for name in frame if name in names and pd.api.types.is_datetime64_any_dtype(frame[name])]
        frame = whole_table(path, needed, nested=True, text=times) if times else frame
    frame = score_columns.chosen(frame)
    kept = [role for role, column in roles.items() if column in score_columns.keep]  # under both of its names
    frame = frame.rename(columns={column: role for role, column in roles.items() if role not in kept})
    frame = frame.assign(**{role: frame[roles[role]] for role in kept})
    return with_model(frame, source.name) if is_one_model else frame


def _wide_table(path: Path, score_columns: ScoreColumns) -> pd.DataFrame:
    frame: Any = score_columns.chosen(whole_table(path, ALL_COLUMNS, nested=True, plain=True))
    item = "item" if score_columns.item is None and "item" in frame else score_columns.item
    named_model = None if item is not None else usual_column(frame, score_columns.model, "model")
    if named_model is not None and (score_columns.model is not None or _is_text(frame[named_model])):
        return _models_in_rows(in_pandas(frame), named_model, score_columns)
    about = [
        x
        for x in (item, score_columns.cluster, score_columns.benchmark, score_columns.weight, *score_columns.keep)
        if x is not None
    ]
    about += [x for x in ("cluster", "benchmark", "weight") if x in frame and x not in about]
    require_column(frame, *about)
    note: list[str] = []
    if not isinstance(frame, PlainTable) or any(_is_text(frame[x]) for x in frame if x not in about):
        frame = in_pandas(frame)
        frame = pd.concat([frame[x] if x in about else numeric_but_for_gaps(frame[x]) for x in frame], axis=1)
        frame, note = with_right_and_wrong(frame, about)
    models = [x for x in frame if x not in about and not _is_text(frame[x])]
    sums = sums_among(models)
    texts = [x for x in frame if x not in about and x not in models]
    if sums and len(sums) < len(models):
        models = [x for x in models if x not in sums]
        note = [*note, f"not taken as models: {named(list(map(repr, sums)))} (rename a column to keep it)"]
    if texts:
        raise DataError(
            f"{counted(len(texts), 'column holds', 'columns hold')} no numbers, so that they are no models: "
            f"{named(texts)}. Name the columns of items and slices (item= and keep=; on the command line --item and "
            "--by), or drop them"
        )
    if item is None:
        frame, about, item = frame.assign(item=np.arange(len(frame))), ["item", *about], "item"
    if isinstance(frame, PlainTable) and models:
        long: Any = PlainTable({x: np.tile(frame[x], len(models)) for x in about})
        scores = np.concatenate([frame[x] for x in models])
        long = long.assign(model=objects([x for x in models for _ in range(len(frame))]), score=scores)
    else:
        long = in_pandas(frame).melt(about, models, var_name="model", value_name="score")
    roles = {column: role for role in ("item", *_USUAL) if (column := getattr(score_columns, role)) is not None}
    long = long.rename(columns=roles)
    long.attrs["notes"] = [*frame.attrs.get("notes", ()), *note]
    return long


def _models_in_rows(frame: pd.DataFrame, model: str, score_columns: ScoreColumns) -> pd.DataFrame:
    """Return the long table of one with a row for each model, and a column of scores for each item."""
    further = [x for x in ("trial", "cluster", "benchmark", "weight") if getattr(score_columns, x) is not None]
    if further or score_columns.keep:
        raise DataError(
            f"each row is a model (column {model!r}), and each column an item, so that no column is of "
            f"{named([*further, *score_columns.keep])}: leave that out, or write a row for each model and item"
        )
    sums = [x for x in frame if x != model and any(map(NO_SCORES.fullmatch, words_of(str(x))))]
    frame = frame.drop(columns=sums)
    read = pd.concat([frame[x] if x == model else numeric_but_for_gaps(frame[x]) for x in frame], axis=1)
    read, notes = with_right_and_wrong(read, (model,))
    texts = [x for x in read if x != model and _is_text(read[x])]
    if texts:
        raise DataError(
            f"each row is a model (column {model!r}), and {counted(len(texts), 'column holds', 'columns hold')} no "
            f"numbers, so that they are no items: {named(texts)}. Drop them; or, if each row is an item, name the "
            "column of items (item=, --item)"
        )
    if read.shape[1] < 2:
        raise DataError(f"each row is a model (column {model!r}), and no column holds scores of an item")
    notes += [f"a row for each {model!r}, and {counted(read.shape[1] - 1, 'item')} in columns"]
    notes += [f"not taken as items: {named(list(map(repr, sums)))}"] if sums else []
    long = read.rename(columns={model: "model"}).melt("model", var_name="item", value_name="score")
    long.attrs["notes"] = [*frame.attrs.get("notes", ()), *notes]
    return long


def _is_text(column: Any) -> bool:
    """Return whether a column holds anything else than numbers and truth values."""
    return getattr(column.dtype, "kind", "O") not in "biufc"


def with_right_and_wrong(frame: pd.DataFrame, about: Sequence[Any] = ()) -> tuple[pd.DataFrame, list[str]]:
    """Read columns of words of right and wrong as numbers, and tell it; not where all together hold one of both only.

    Columns ``about`` items stay as they are.
    """
    read = {x: in_numbers(frame[x], SCORES_IN_WORDS) for x in frame if x not in about}
    points = {x: values for x, (values, words) in read.items() if words}
    if len({value for values in points.values() for value in values.dropna()}) < 2:
        return frame, []
    words = ", ".join(dict.fromkeys(word for _, told in read.values() if told for word in told.split(", ")))
    return frame.assign(**points), [f"{counted(len(points), 'column')}: read {words}"]


def _complete(reports: list[pd.DataFrame]) -> list[str]:
    """Add to every report the items that only other reports name, as not resolved; and say in words how many."""
    items = sorted(set().union(*(report["item"] for report in reports)))
    added = 0
    for number, report in enumerate(reports):
        lacking = pd.Index(items).difference(report["item"])
        added += len(lacking)
        rest = pd.DataFrame({"item": lacking, "score": 0.0, "model": report["model"].iloc[0]})
        reports[number] = pd.concat([report, rest], ignore_index=True)
    if not reports:
        return []
    return [
        f"reports of SWE-bench name {counted(len(items), 'item')}; {counted(added, 'score')} of items that a report "
        "does not name count as not resolved, and items that no report names do not count"
    ]
