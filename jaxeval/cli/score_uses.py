"""Scores of models on items, in rows or in columns: the lines of a file that has them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from pandas.api.types import is_float_dtype, is_numeric_dtype

from jaxeval.cli.uses import METRICS, OPPONENTS, Use, each, evaluations, naming, use_of
from jaxeval.data.columns import folded
from jaxeval.data.conditions import equality
from jaxeval.data.formats import Head
from jaxeval.data.found_columns import SidePairs, found, is_binary, quoted
from jaxeval.data.labels import SCORES_IN_WORDS, numbers_of_words
from jaxeval.data.roles import (
    COUNT_COLUMNS,
    JUDGES,
    NO_SCORES,
    ONE_PERSON,
    RESULTS,
    ROLES,
    TOGETHER,
    columns_of,
    guessed_column,
    guessed_columns,
    n_values,
    sums_among,
    usual_column,
)
from jaxeval.data.score_files import with_right_and_wrong
from jaxeval.errors import DataError
from jaxeval.statistics.random_facets import USUAL_FACETS
from jaxeval.wording import named, words_of

_BY_JUDGE = {"judge", "grader", "evaluator"}
_MOST_WORDS = 6  # of a column of scores in words
_GRADES, _WORST = ("note", "schulnote", "endnote"), 6  # of schools in German, 1 for the best
#: What is to be done about rows that repeat others.
REPEATED = "correct it first: rows repeat a model and an item: number its runs in a column run, or drop the copies"
#: Names of columns that are items of a benchmark: q1, item_2, 17.
_AN_ITEM = re.compile(r"(q|i|p|t|ex|item|question|prompt|problem|task|sample|example)?[ _.-]?\d+", re.IGNORECASE)
#: What ends in the number of a run: run1, gpt-4_seed_0.
_A_RUN = re.compile(
    r"(?:(.*)[ _./@:(-])?(?:run|seed|trial|rep|repeat|repetition|epoch|attempt|replicate)[ _.-]?\d+\)?", re.IGNORECASE
)
#: What is to be done about names that `runs_of_one` finds.
AS_RUNS = "{} seem to be runs of one model: write a row for each of its runs, as model,item,run,score"
#: Columns of what verdicts of one judge may differ in besides items.
CONDITIONS = ("prompt", "prompt_variant", "template", "sample", "temperature", "version")
#: Names of columns of results.
HOLD_RESULTS = (*RESULTS, *ROLES["score"].names, *ROLES["score"].also, *COUNT_COLUMNS, "judgment", "target", "output",
                 "rank", "ranking")  # fmt: skip


def runs_of_one(names: Iterable[Any]) -> list[str]:
    """Return names that only the number of a run at their end tells apart: runs of one model."""
    of_model: dict[str, list[str]] = {}
    for name in map(str, names):
        if (run := _A_RUN.fullmatch(name)) is not None:
            of_model.setdefault(run[1] or "", []).append(name)
    return next((runs for runs in of_model.values() if len(runs) > 1), [])


def runs_in_columns(frame: pd.DataFrame) -> list[str]:
    """Return the columns of numbers that are `runs_of_one`."""
    return runs_of_one(name for name in frame if is_numeric_dtype(frame[name]))


def _most_alike(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, str]:
    """Return the rows with the values of some columns that most rows have, and the condition that chooses them."""
    values = frame.groupby(list(names), sort=False, observed=True).size().idxmax()
    values = list(values) if isinstance(values, tuple) else [values]
    rows = frame[(frame[list(names)] == values).all(axis=1)]
    return rows, " AND ".join(map(equality, names, rows[list(names)].iloc[0]))


def rows_of_scores(frame: pd.DataFrame, head: Head, sides: SidePairs) -> tuple[pd.DataFrame, bool]:
    """Return all rows of scores of models and False, or the first ones, in ``frame``, and whether more are below."""
    if sides or head.path is None or guessed_column(frame, "item") is None:
        return frame, head.path is not None
    every = head.all_rows()
    return (frame, True) if every is None else (every, False)


def _sampled_scores(frame: pd.DataFrame, sides: SidePairs, roles: Mapping[str, Any]) -> Iterator[Use]:
    """Find scores of models on items under several judges, prompts or seeds, each of which has a column."""
    facets = [name for name in USUAL_FACETS if name in frame and name not in roles.values()]
    facets += [name for name in guessed_columns(frame, "rater")[:1] if name not in roles.values()]
    known = [str(name) for name in (roles["model"], roles["item"]) if name is not None]
    if len(known) < 2 or not facets or sides or frame.duplicated([*known, *facets]).any():
        return
    if not all(is_whole(frame, [known[0], name]) for name in facets):  # of each model a judge of its own
        return
    random = ("--random", ",".join(facets), *naming(**roles))
    why = f"{found(models=known[0], items=known[1])}, under several values of {named(facets)}"
    yield use_of("error-budget", random, why)
    yield use_of("scores", random, why, "", "A leaderboard of scores, with intervals that count all of them")


def item_scores(head: Head, sides: SidePairs) -> Iterator[Use]:
    """Yield scores of models on items."""
    if head.rows is None or {"doc_id", "evaluation_name"} & {*map(str, head.rows)}:
        return
    frame, goes_on = rows_of_scores(head.rows, head, sides)
    model, item, score = (guessed_column(frame, role) for role in ("model", "item", "score"))
    task = usual_column(frame, None, "task")
    runs = guessed_columns(frame, "run")[:1]
    if item is None and model and task and score and not frame.duplicated([model, task, *runs]).any():
        repeated = frame.duplicated([model, task]).any()
        item = task if repeated or is_binary(frame[score]) else None  # solved or not; one share each is of a benchmark
    # Of LangSmith's runs; their status says whether they ended.
    feedback = [name for name in map(str, frame) if name.startswith("feedback.") and is_numeric_dtype(frame[name])]
    score = next(iter(feedback), score)
    roles = {"model": model, "item": item, "score": score}
    keys = [str(name) for name in (model, item, usual_column(frame, None, "benchmark"), *runs) if name]
    repeats = bool(keys) and frame.dropna(subset=keys).duplicated(keys).any()
    if score is not None and repeats:  # of several judges, metrics, or references
        uses = [*_sampled_scores(frame, sides, roles)]
        for name in columns_of(frame, METRICS)[:1]:
            if not frame.duplicated([*keys, name]).any():
                metrics = [str(value) for value in frame[name].dropna().unique()]
                uses.append(use_of("scores", (*naming(**roles), "--where", equality(name, metrics[0])),
                                   f"metrics in {name!r}: {quoted(metrics)}", "it rates by the first metric alone; "
                                   f"--benchmark {shlex.quote(name)} instead takes means over all"))  # fmt: skip
        beside = columns_of(frame, (*ROLES["judge"].names, *ROLES["rater"].names, *OPPONENTS, *CONDITIONS))
        if not uses and beside and item is not None and not sides and not frame.duplicated([*keys, *beside]).any():
            rows, condition = _most_alike(frame, beside)
            note = f"it takes most of the rows that are alike in {quoted(beside)}, as others score the same answers"
            for use in _long_scores(rows, roles, runs, below=False):
                uses.append(use._replace(words=(*use.words, "--where", condition), open=note))
        elif not uses and model is not None and item is not None and not sides:
            apart = [name for name in guessed_columns(frame, "task") if not frame.duplicated([*keys, name]).any()]
            note = "" if apart else REPEATED
            why = found(models=model, items=item, scores=score, benchmarks=apart[0] if apart else None)
            uses.append(use_of("scores", (*naming(**roles), *each("--benchmark", apart[:1])), why, note))
        yield from uses
    elif item is not None and score is not None and not sides and n_values(frame, item) < 2:
        return  # of one item nobody knows how scores vary
    elif item is not None and score is not None and not sides:
        more = f"{quoted(feedback[1:])}: further scores, each for a line of its own" if len(feedback) > 1 else ""
        for use in _long_scores(frame, roles, [name for name in runs if name != "trial"], goes_on):
            yield use._replace(open="; ".join(filter(None, (use.open, more))))
    else:
        item = "" if item is None and "" in frame else item  # an index that pandas wrote
        if item is None:  # each person scored all models
            item = next((name for name in guessed_columns(frame, "rater") if frame[name].is_unique), None)
        frame, _ = with_right_and_wrong(frame, () if item is None else (item,))
        sums = [name for name in sums_among(map(str, frame)) if name != item]
        frame = frame.drop(columns=sums)
        numbers = [name for name in map(str, frame) if is_numeric_dtype(frame[name]) and name != item]
        others = [name for name in map(str, frame) if name not in (*numbers, item)]
        scores = columns_of(frame, (*ROLES["score"].names, *ROLES["score"].also)) if score is None and item else []
        written = next((name for name in scores if name == "score" or n_values(frame, name) <= _MOST_WORDS), None)
        if written is not None and not sides:
            try:
                numbers_of_words(frame[written], written, SCORES_IN_WORDS)
            except DataError as error:
                yield use_of("scores", naming(model=model, item=item, score=written),
                           found(models=model, items=item, scores=written), f"correct it first: {error}")  # fmt: skip
        elif item is not None and model is not None and not sides and (found_scores := _scores_of(frame, item, model)):
            first, *rest = found_scores
            more = f"{first!r} is taken as the score: name another by --score, {quoted(rest)}" if rest else ""
            for use in _long_scores(frame, {**roles, "score": first}, [], goes_on):
                yield use._replace(open="; ".join(filter(None, (use.open, more))))
        elif item is not None and model is None and len(numbers) > 1 and not others and frame[item].is_unique:
            if any({*words_of(name)} & (ONE_PERSON | TOGETHER | _BY_JUDGE) for name in numbers):  # labels of each
                return
            gaps = ("--missing", "available") if frame[numbers].isna().any().any() else ()
            more = f"; not taken as models: {quoted(sums)}" if sums else ""
            yield use_of("scores", ("--wide", *naming(item=item), *gaps),
                       f"items in {item!r}, a column of scores for each of {quoted(numbers)}{more}",
                       _summed(frame, item))  # fmt: skip


def _summed(frame: pd.DataFrame, item: str) -> str:
    """Return what to correct where an item is called as if it summed up the others; empty where none is."""
    sums = sums_among(frame[item].unique())
    return f"correct it first: {quoted(sums)} in {item!r} seems to sum up other rows: drop it" if sums else ""


def _scores_of(frame: pd.DataFrame, *roles: str) -> list[str]:
    """Return columns of numbers with fractions that may be scores, of a table with a row for each model and item."""
    numbers = [name for name in evaluations(frame) if is_float_dtype(frame[name]) and not is_binary(frame[name])]
    numbers = [name for name in numbers if name not in roles and not {*words_of(name)} & (ONE_PERSON | TOGETHER)]
    return numbers if not frame.duplicated(list(roles)).any() else []


def models_in_rows(frame: pd.DataFrame) -> Iterator[Use]:
    """Yield scores of a table with a row for each model, and a column for each item."""
    model = guessed_column(frame, "model") or next(iter(columns_of(frame, ("name",))), None)
    if model is None or is_numeric_dtype(frame[model]) or not frame[model].is_unique or len(frame) < 2:
        return
    read, _ = with_right_and_wrong(frame, (model,))
    items = [x for x in map(str, read) if x != model and not any(map(NO_SCORES.fullmatch, words_of(x)))]
    others = {*map(folded, (*HOLD_RESULTS, *ROLES["item"].names, *ROLES["benchmark"].names))}
    about = {word for x in items for word in words_of(x)} & {*ONE_PERSON, *TOGETHER, *JUDGES}
    if len(items) < 2 or about or any(folded(x) in others or not is_numeric_dtype(read[x]) for x in items):
        return
    if all(is_binary(read[x]) for x in items) or all(map(_AN_ITEM.fullmatch, items)):
        gaps = ("--missing", "available") if read[items].isna().any().any() else ()
        options, why = (
            ("--wide", *naming(model=model), *gaps),
            f"{found(models=model)}, an item in each of {quoted(items)}",
        )
        yield use_of("scores", options, why)
        yield use_of(
            "compare-scores", options, f"{why}; the first two models", files=(*map(str, frame[model][:2]), "{}")
        )


def _long_scores(frame: pd.DataFrame, roles: Mapping[str, Any], trials: Sequence[str], below: bool) -> Iterator[Use]:
    model, item, score = roles.values()
    where, options = found(items=item, scores=score), naming(**roles)
    why = f"{'the file is one model' if model is None else found(models=model)}, {where}"
    if model is not None and (apart := _judged_apart(frame, model)) is not None:
        yield use_of("scores", (*options, "--where", apart, "--missing", "available"),
                   f"{why}, each model judged by one of several",
                   "it rates by one judge alone, as scores of several are not on one scale")  # fmt: skip
        return
    whole = below or is_whole(frame, [x for x in (model, item) if x])
    scored = frame[score].notna().all()
    goes_on = below and model is not None  # and models may lack items below the first rows
    missing = () if whole and scored and not goes_on else ("--missing", "available")
    note = "" if scored else "rows without a score are left out"
    if goes_on or not whole:
        note = "a model that lacks items is scored on those it has; --missing complete takes those that all have"
    if model is not None and (runs := runs_of_one(frame[model].dropna().unique())):
        note = f"correct it first: {AS_RUNS.format(quoted(runs))}"
    if folded(score) in _GRADES and frame[score].max() <= _WORST:
        note = f"more is taken as better: of grades of which 1 is the best, write 7 - {score} first"
    note = (_summed(frame, item) if item else "") or note
    lacking = [name for name in (model, item) if name is not None and frame[name].isna().any()]
    if lacking:
        note = f"correct it first: a row has no value in {lacking[0]!r}: fill it in, or drop the row"
    # Rows below the first ones may be of another judge, or of another version.
    others = (*ROLES["judge"].names, *CONDITIONS) if below else ()
    alone = [name for name in columns_of(frame, others) if name not in roles.values() and n_values(frame, name) == 1]
    if alone:
        options += ["--where", _most_alike(frame, alone)[1]]
        missing = ("--missing", "available")
        note = f"the first rows are of one value of {quoted(alone)}, which the line takes alone"
    options += [*each("--trial", trials), *missing]
    yield use_of("scores", options, why, note)
    models = [] if model is None else [str(name) for name in frame[model].dropna().unique()[:2]]
    if len(models) == 2:
        yield use_of("compare-scores", options, f"{why}; the first two models", files=(*models, "{}"))


def _judged_apart(frame: pd.DataFrame, model: str) -> str | None:
    """Return the condition of one judge or metric, where each model has its own of several."""
    for name in columns_of(frame, (*METRICS, *ROLES["judge"].names, *ROLES["rater"].names)):
        if n_values(frame, name) > 1 and len(frame[[model, name]].drop_duplicates()) == n_values(frame, model):
            value = frame[name].mode().iloc[0]
            references = columns_of(frame, OPPONENTS)
            beside = [equality(x, frame.loc[frame[name] == value, x].mode().iloc[0]) for x in references]
            return " AND ".join([equality(name, value), *beside])
    return None


def is_whole(frame: pd.DataFrame, columns: Sequence[str]) -> bool:
    """Return whether every model has every item, as far as the rows tell."""
    if len(columns) < 2:
        return True
    sizes = [frame[name].nunique() for name in columns]
    return len(frame[list(columns)].drop_duplicates()) == sizes[0] * sizes[1]
