"""Which commands fit a file: the names of its columns say it, and whether its first rows can be read so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
from pandas.api.types import is_float_dtype, is_integer_dtype, is_numeric_dtype

from jaxeval.cli.format_uses import known_formats
from jaxeval.cli.uses import (
    METRICS,
    OPPONENTS,
    SAVED,
    STAND_IN,
    Use,
    against,
    agent_runs,
    benchmarks,
    board_of,
    each,
    evaluations,
    families,
    judged,
    meta,
    naming,
    panel,
    scores_by_metric,
    use_of,
    usual,
    votes,
)
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.data.columns import folded
from jaxeval.data.conditions import equality
from jaxeval.data.formats import HEAD_ROWS, Head
from jaxeval.data.found_columns import (
    FoundJudgments,
    SidePairs,
    fits,
    found,
    found_rankings,
    is_binary,
    is_person,
    lacks_header,
    quoted,
    results_of,
    sides_of,
    verdicts_of_several,
)
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.data.labels import ONE_TWO_LABELS, SCORES_IN_WORDS, numbers_of_words
from jaxeval.data.plain_labels import NO_LABELS, names_of_raters, plain_labels
from jaxeval.data.published_formats import about_questions, blind_questions, format_of_names
from jaxeval.data.rankings import Rankings
from jaxeval.data.roles import (
    ANSWER_LABELS,
    COUNT_COLUMNS,
    JUDGES,
    NO_SCORES,
    ONE_PERSON,
    POINTS,
    RESULT_COUNTS,
    RESULTS,
    ROLES,
    TOGETHER,
    columns_of,
    guessed_column,
    guessed_columns,
    has_usual_sides,
    is_plain,
    n_values,
    usual_column,
)
from jaxeval.data.score_files import with_right_and_wrong
from jaxeval.errors import DataError
from jaxeval.statistics.random_facets import USUAL_FACETS
from jaxeval.wording import counted, named, visible_line, words_of

_LABELS_ONLY = "Is a judge good enough?"  # of labels without pairs of models
_HOLD_RESULTS = (*RESULTS, *ROLES["score"].names, *ROLES["score"].also, *COUNT_COLUMNS, "judgment", "target", "output",
                 "rank", "ranking")  # fmt: skip
_WIN_RATES = {"win_rate", "n_wins", "n_wins_base"}  # of AlpacaEval's leaderboard
_JUDGES = {"judge", "grader", "evaluator"}
_MOST_WORDS = 6  # of a column of scores in words
_REPEATED = "correct it first: rows repeat a model and an item: number its runs in a column run, or drop the copies"
#: Names of columns that are items of a benchmark: q1, item_2, 17.
_AN_ITEM = re.compile(r"(q|i|p|t|ex|item|question|prompt|problem|task|sample|example)?[ _.-]?\d+", re.IGNORECASE)
#: Columns of what verdicts of one judge may differ in besides items.
_CONDITIONS = ("prompt", "prompt_variant", "template", "sample", "temperature", "version")


def uses_of(head: Head, others: Callable[[], Sequence[Head]] = lambda: ()) -> list[Use]:
    """Return the commands for a file, the one that fits best first; ``others`` are read with it."""
    if head.saved is not None:
        return SAVED.get(head.saved, [])
    if head.document is not None:
        return list(known_formats(head, others))
    if head.rows is None or len(head.rows) == 0 or is_square(head.rows):
        return []
    if {*head.names} >= _WIN_RATES:
        return list(meta(head.rows, sides_of(head.rows)))
    uses = [*known_formats(head, others), *agent_runs(head.rows), *_models_in_rows(head.rows)]
    if uses:  # the columns alone would say less than the format
        return uses
    rows, sides = head.rows, sides_of(head.rows)
    kinds = (
        benchmarks(rows, sides), panel(rows, sides), judged(rows, sides), _rankings(rows), _anchored(rows, sides),
        votes(rows, sides), against(rows), _answers(rows, sides), _item_scores(rows, sides), scores_by_metric(rows),
        meta(rows, sides), families(rows, sides), _labels(rows, sides),
    )  # fmt: skip
    for kind in kinds:
        uses += [use for use in kind if use.words not in [other.words for other in uses]]
    return uses


def nothing_in(head: Head) -> str | None:
    """Return what is missing in a file that has columns, but no rows, or no results; None if that is not the matter."""
    form = None if head.document is None else format_of_names(head.names, "answer", is_document=True)
    if form is not None and not form.one_of(head.document).get("--score", ["score"]):
        return "There are no results: the log has no scores of samples."
    if head.rows is None or not head.names or head.saved is not None:
        return None
    if str(head.names[0]).startswith("version https://git-lfs"):
        return "It is a pointer of Git LFS in place of the file: git lfs pull fetches the file itself."
    if str(head.names[0]).lower().startswith(("<html", "<!doctype")):
        return "It is a page of HTML, and no table: download the file itself, perhaps after a login."
    if len(head.rows) == 0:
        return "The table has no rows: nothing to rate."
    if head.doubled:
        return f"Several columns are called {visible_line(head.doubled[0])!r}: rename or drop all but one."
    if {*head.names} >= _WIN_RATES:
        return (
            "It is AlpacaEval's leaderboard: win rates that were counted, without the judgments behind them. Ratings "
            "with intervals need its annotations.json: jaxeval leaderboard annotations.json. To compare its win rates "
            "with other scores, call the first column model, and add theirs: jaxeval meta FILE --gold COLUMN"
        )
    if is_square(head.rows):
        return "It is a table of models by models: write a row for each pair, as model_a,model_b,wins_a,ties,wins_b."
    if lacks_header(head.rows):
        line = quoted(head.names)
        return f"The first line seems to be no header, but a row: {line}. Add a header, as model_a,model_b,winner."
    if blind := blind_questions(head.rows):
        return f"Its columns {about_questions(blind)}."
    model = guessed_column(head.rows, "model")
    totals = [name for name in head.names if folded(name) in RESULT_COUNTS]
    if model is not None and head.rows[model].is_unique and len(totals) > 1:
        return (
            f"It has how often each model won and lost in all, in {quoted(totals)}, and not against whom: write a "
            "row for each pair, as model_a,model_b,wins_a,ties,wins_b."
        )
    if model is not None and head.rows[model].is_unique and len(scores := evaluations(head.rows)) == 1:
        return (
            f"There is one number for each model, in {scores[0]!r}: nothing says how sure it is. With a row for each "
            "model and item (model,item,score), jaxeval scores tells models apart; with a column for each benchmark, "
            "jaxeval index puts them on one scale."
        )
    score = guessed_column(head.rows, "score")
    of_what = any(guessed_column(head.rows, role) for role in ("item", "task", "benchmark"))
    if model is not None and score is not None and not of_what:
        return (
            f"There are scores in {score!r} of models in {model!r}, and no column says of which item (a prompt, a "
            "question, a task). Models can be compared where they did the same: add a column item, as in "
            "model,item,score."
        )
    results = [name for name in map(str, head.rows) if folded(name) in map(folded, _HOLD_RESULTS)
               or any(word in folded(name) for word in ("score", "goals", "points"))]  # fmt: skip
    empty = [name for name in results if head.rows[name].isna().all()]
    if not empty:
        return None
    rows = f"the first {HEAD_ROWS:,} rows" if len(head.rows) == HEAD_ROWS else counted(len(head.rows), "row")
    return f"There are no results: {quoted(empty)} {'is' if len(empty) == 1 else 'are'} empty in {rows}."


def is_square(frame: pd.DataFrame) -> bool:
    """Return whether the first column names the other columns, which hold numbers: a table of models against models."""
    first, *others = map(str, frame)
    values = [*map(str, frame[first].dropna())]
    return len(others) > 1 and {*values} == {*others} and all(is_numeric_dtype(frame[name]) for name in others)


def _answers(frame: pd.DataFrame, sides: SidePairs) -> Iterator[Use]:
    """Judged answers, right or wrong, with labels of people."""
    if sides:
        return
    labels = columns_of(frame, (*ANSWER_LABELS, "gold", "truth", "correct"))
    label = next((x for x in labels if frame[x].notna().any()), None)
    judgments = [*columns_of(frame, ROLES["judgment"].names)[:1], *filter(None, usual(frame, "output"))][:1]
    known = {label, *(name for role in ("model", "item", "judge", "run") for name in guessed_columns(frame, role))}
    if not judgments:
        others = [name for name in map(str, frame) if name not in known and folded(name) not in NO_LABELS]
        others = [name for name in others if not is_person(name)]
        called = [name for name in others if any(word in folded(name) for word in JUDGES)]
        # Without labels beside it, a column of 0 and 1 that no word calls a judge's may say anything of a row.
        binary = [name for name in (others if label else called) if is_binary(frame[name])]
        judgments = [name for name in binary if not _is_of_items(frame, name)]
    roles = _answer_roles(frame, judgments, label)
    if not judgments or roles is None:
        return
    model = guessed_column(frame, "model")
    several = model is not None and not frame[model].is_unique  # answers of a model: else it is a table of models
    if label is None and several and not columns_of(frame, POINTS) and judgments != [guessed_column(frame, "score")]:
        yield use_of("judge", [*each("--judgment", judgments), *roles],
                   f"{found(judgments=judgments)}, and no human labels",
                   "LABELLED_FILE has answers with the same columns, and human labels in human",
                   files=("--calibration", "LABELLED_FILE", "--test", "{}"))  # fmt: skip
    if label is None or not is_binary(frame[label]):
        return
    if len(frame[label].dropna()) < len(frame) and model is not None and guessed_column(frame, "item") is not None:
        yield use_of("scores", ("--score", judgments[0], "--human", label),
                   found(judgments=judgments, human_labels_of_some_answers=label), "",
                   "Which model is best, the judge's errors corrected by the labels that there are?")  # fmt: skip
        return
    is_usual = judgments[0] in (*ROLES["judgment"].names, *ROLES["output"].names)
    options = [] if is_usual else each("--judgment", judgments)
    options += [] if label in ANSWER_LABELS else ["--human", label]
    yield use_of("judge", [*options, *roles], found(judgments=judgments, human_labels=label),
               "OTHER_FILE has the answers to rate, with the same columns",
               files=("--calibration", "{}", "--test", "OTHER_FILE"))  # fmt: skip


def _is_of_items(frame: pd.DataFrame, name: str) -> bool:
    """Return whether a column is the same in all rows of an item or a benchmark, and so says nothing of answers."""
    keys = [key for role in ("item", "benchmark") for key in guessed_columns(frame, role)[:1] if key != name]
    return any(n_values(frame, key) < len(frame) and frame.groupby(key)[name].nunique().max() <= 1 for key in keys)


def _answer_roles(frame: pd.DataFrame, judgments: Sequence[str], label: str | None) -> list[str] | None:
    """Options that name models, items, judges and runs of judged answers; None if the rows cannot be read so.

    Models and judges are always named where they are known: without the options, all would count as one.
    """
    roles = [role for role in ("model", "item", "judge", "run") if role != "judge" or len(judgments) == 1]
    known = {role: name for role in roles if (name := guessed_column(frame, role)) is not None}
    columns: dict[str, Any] = {"judgment": list(judgments), "label": label, "missing": "drop"}
    for left_out in ((), ("item", "run")):  # then each row is an item
        kept = {role: name for role, name in known.items() if role not in left_out}
        if judgments and fits(JudgedAnswers.from_pandas, frame, **columns, **kept):
            gaps = frame[list(judgments)].isna().any().any()
            options = [word for role, name in kept.items() for word in (f"--{role}", name)]
            return [*options, *(("--missing", "drop") if gaps else ())]
    return None


def _labels(frame: pd.DataFrame, sides: SidePairs) -> Iterator[Use]:
    """Labels of judges and people without pairs of models, found as the command finds them."""
    if (
        has_usual_sides(frame)
        or usual_column(frame, None, "output") is not None
        or verdicts_of_several(frame, sides)[1]
    ):
        return
    options: tuple[str, ...] = ()
    hint = ""
    known = [name for name in usual(frame, "item", "judge", "rater") if name is not None]
    beside = [name for name in columns_of(frame, _CONDITIONS) if name not in known and is_plain(frame[name])]
    first = {name: there.iloc[0] for name in beside if len(there := frame[name].dropna())}
    if first and known and frame.duplicated(known).any():
        options = ("--where", " AND ".join(equality(name, value) for name, value in first.items()))
        hint = f"rows with one value of {quoted(list(first))}: others are other judges, or runs"
        frame = frame[(frame[list(first)] == pd.Series(first)).all(axis=1)]
    if (unnamed := _rater_without_judges(frame)) is not None:
        yield unnamed
        return
    for coding in (None, ONE_TWO_LABELS):
        try:
            labels = plain_labels(frame, None, None, coding, None)
        except (DataError, ValueError, TypeError):
            continue
        if coding is not None and not options:
            options = FoundJudgments({"labels": coding}, "").options()
            hint = "1 is taken as the first side; if the numbers are grades, say --labels grades"
        counts = [name for name in columns_of(frame, ROLES["count"].also) if is_integer_dtype(frame[name])]
        if counts:
            hint = f"correct it first: {counts[0]!r} does not count here: write a row for each answer"
        yield use_of("agreement", options, "; ".join(labels.notes[:2]), hint, _LABELS_ONLY)
        return
    people = [name for name in map(str, frame) if is_person(name)]
    if len(people) > 1 and (unnamed := _stand_in(frame, people, f"labels of people in {quoted(people)}")) is not None:
        yield unnamed


def _rater_without_judges(frame: pd.DataFrame) -> Use | None:
    """Return the use of a row for each rater and item, where none of the raters is called a judge."""
    if (called := names_of_raters(frame)) is None or usual_column(frame, None, "item") is None:
        return None
    raters = [str(name) for name in frame[called[0]].dropna().unique()]
    if any(word in rater.casefold() for rater in raters for word in JUDGES):
        return None
    why = f"a row for each label in {called[1]!r}, by rater in {called[0]!r}: {quoted(raters)}"
    return _stand_in(frame, raters, why)


def _stand_in(frame: pd.DataFrame, raters: Sequence[str], why: str) -> Use | None:
    """Return the use of labels of ``raters``, the first of whom stands for a judge; None where they cannot be read."""
    if not fits(partial(plain_labels, human=None, judges=raters[:1], labels=None, item=None), frame):
        return None
    return use_of("agreement", ("--judges", raters[0]), why, STAND_IN.format(raters[0]), _LABELS_ONLY)


def _anchored(frame: pd.DataFrame, sides: SidePairs) -> Iterator[Use]:
    if any(next(results_of(frame, *two_sides), None) is not None for two_sides in sides):
        return
    if {"wins", "losses"} <= {*frame} and "verdict" not in frame:
        note = "all are taken as against one reference: else write a row for each pair of models"
        yield use_of("anchored", (), found(counts=("wins", "losses")), note)
        return
    output = usual_column(frame, None, "output")
    if "verdict" not in frame and (output is None or columns_of(frame, ANSWER_LABELS)):
        return
    for options in ((), ("--missing", "drop")):
        if fits(AnchoredVerdicts.from_pandas, frame, missing="drop" if options else "error"):
            roles = [name for name in ("model", "judge", "anchor", "task", "item", "run") if name in frame]
            why = f"verdicts of one model against a reference in {'verdict' if 'verdict' in frame else output!r}"
            yield use_of("anchored", options, f"{why}; besides {quoted(roles)}")
            return


def _rankings(frame: pd.DataFrame) -> Iterator[Use]:
    if (read := found_rankings(frame)) is None:
        return
    use = board_of(read)
    reader: dict[str, Any] = {name: int(value) if name == "first" else value for name, value in read.arguments.items()}
    for name in guessed_columns(frame, "rater")[:1]:
        if not fits(Rankings.from_pandas, frame, **reader, cluster=name):
            continue
        if 1 < n_values(frame, name) < Rankings.from_pandas(frame, **reader).n_rankings:
            use = use._replace(words=(*use.words, "--cluster", name), why=f"{use.why}, who ranked in {name!r}")
    yield use


def _sampled_scores(frame: pd.DataFrame, sides: SidePairs, roles: Mapping[str, Any]) -> Iterator[Use]:
    """Scores of models on items under several judges, prompts or seeds, each of which has a column."""
    facets = [name for name in USUAL_FACETS if name in frame and name not in roles.values()]
    facets += [name for name in guessed_columns(frame, "rater")[:1] if name not in roles.values()]
    known = [str(name) for name in (roles["model"], roles["item"]) if name is not None]
    if len(known) < 2 or not facets or sides or frame.duplicated([*known, *facets]).any():
        return
    random = ("--random", ",".join(facets), *naming(**roles))
    why = f"{found(models=known[0], items=known[1])}, under several values of {named(facets)}"
    yield use_of("error-budget", random, why)
    yield use_of("scores", random, why, "", "A leaderboard of scores, with intervals that count all of them")


def _item_scores(frame: pd.DataFrame, sides: SidePairs) -> Iterator[Use]:
    if {"doc_id", "evaluation_name"} & {*map(str, frame)}:
        return
    model, item, score = (guessed_column(frame, role) for role in ("model", "item", "score"))
    task = usual_column(frame, None, "task")
    runs = guessed_columns(frame, "run")[:1]
    if item is None and model and task and score and is_binary(frame[score]):
        item = None if frame.duplicated([model, task, *runs]).any() else task  # solved or not
    # Of LangSmith's runs; their status says whether they ended.
    feedback = [name for name in map(str, frame) if name.startswith("feedback.") and is_numeric_dtype(frame[name])]
    score = next(iter(feedback), score)
    roles = {"model": model, "item": item, "score": score}
    keys = [str(name) for name in (model, item, usual_column(frame, None, "benchmark"), *runs) if name]
    if score is not None and keys and frame.duplicated(keys).any():  # of several judges, metrics, or references
        uses = [*_sampled_scores(frame, sides, roles)]
        for name in columns_of(frame, METRICS)[:1]:
            if not frame.duplicated([*keys, name]).any():
                metrics = [str(value) for value in frame[name].dropna().unique()]
                uses.append(use_of("scores", (*naming(**roles), "--where", equality(name, metrics[0])),
                                   f"metrics in {name!r}: {quoted(metrics)}", "it rates by the first metric alone; "
                                   f"--benchmark {shlex.quote(name)} instead takes means over all"))  # fmt: skip
        if not uses and model is not None and item is not None and not sides:
            apart = [name for name in guessed_columns(frame, "task") if not frame.duplicated([*keys, name]).any()]
            note = "" if apart else _REPEATED
            why = found(models=model, items=item, scores=score, benchmarks=apart[0] if apart else None)
            uses.append(use_of("scores", (*naming(**roles), *each("--benchmark", apart[:1])), why, note))
        yield from uses
    elif item is not None and score is not None and not sides and n_values(frame, item) < 2:
        return  # of one item nobody knows how scores vary
    elif item is not None and score is not None and not sides:
        more = f"{quoted(feedback[1:])}: further scores, each for a line of its own" if len(feedback) > 1 else ""
        for use in _long_scores(frame, roles, [name for name in runs if name != "trial"]):
            yield use._replace(open="; ".join(filter(None, (use.open, more))))
    else:
        item = "" if item is None and "" in frame else item  # an index that pandas wrote
        if item is None:  # each person scored all models
            item = next((name for name in guessed_columns(frame, "rater") if frame[name].is_unique), None)
        frame, _ = with_right_and_wrong(frame, () if item is None else (item,))
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
            more = f"{found_scores[0]!r} is taken as the score, of {quoted(found_scores)}: name another by --score"
            for use in _long_scores(frame, {**roles, "score": found_scores[0]}, []):
                yield use._replace(open="; ".join(filter(None, (use.open, more))))
        elif item is not None and model is None and len(numbers) > 1 and not others and frame[item].is_unique:
            if any({*words_of(name)} & (ONE_PERSON | TOGETHER | _JUDGES) for name in numbers):  # labels of each
                return
            gaps = ("--missing", "available") if frame[numbers].isna().any().any() else ()
            yield use_of("scores", ("--wide", *naming(item=item), *gaps),
                       f"items in {item!r}, a column of scores for each of {quoted(numbers)}")  # fmt: skip


def _scores_of(frame: pd.DataFrame, *roles: str) -> list[str]:
    """Return columns of numbers with fractions that may be scores, of a table with a row for each model and item."""
    numbers = [name for name in evaluations(frame) if is_float_dtype(frame[name]) and not is_binary(frame[name])]
    numbers = [name for name in numbers if name not in roles and not {*words_of(name)} & (ONE_PERSON | TOGETHER)]
    return numbers if not frame.duplicated(list(roles)).any() else []


def _models_in_rows(frame: pd.DataFrame) -> Iterator[Use]:
    """Yield scores of a table with a row for each model, and a column for each item."""
    model = guessed_column(frame, "model") or next(iter(columns_of(frame, ("name",))), None)
    if model is None or is_numeric_dtype(frame[model]) or not frame[model].is_unique or len(frame) < 2:
        return
    read, _ = with_right_and_wrong(frame, (model,))
    items = [x for x in map(str, read) if x != model and not any(map(NO_SCORES.fullmatch, words_of(x)))]
    others = {*map(folded, (*_HOLD_RESULTS, *ROLES["item"].names, *ROLES["benchmark"].names))}
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


def _long_scores(frame: pd.DataFrame, roles: Mapping[str, Any], trials: Sequence[str]) -> Iterator[Use]:
    model, item, score = roles.values()
    where, options = found(items=item, scores=score), naming(**roles)
    why = f"{'the file is one model' if model is None else found(models=model)}, {where}"
    if model is not None and (apart := _judged_apart(frame, model)) is not None:
        yield use_of("scores", (*options, "--where", apart, "--missing", "available"),
                   f"{why}, each model judged by one of several",
                   "it rates by one judge alone, as scores of several are not on one scale")  # fmt: skip
        return
    whole, scored = _is_whole(frame, [x for x in (model, item) if x]), frame[score].notna().all()
    goes_on = len(frame) >= HEAD_ROWS and model is not None  # and models may lack items below the first rows
    missing = () if whole and scored and not goes_on else ("--missing", "available")
    note = "" if scored else "rows without a score are left out"
    if goes_on or not whole:
        lacks = "each model has its own items" if not whole else "a model that lacks items is scored on those it has"
        note = f"{lacks}; --missing complete takes those that all have"
    lacking = [name for name in (model, item) if name is not None and frame[name].isna().any()]
    if lacking:
        note = f"correct it first: a row has no value in {lacking[0]!r}: fill it in, or drop the row"
    # Rows below the first ones may be of another judge, or of another version.
    others = (*ROLES["judge"].names, *_CONDITIONS) if len(frame) >= HEAD_ROWS else ()
    alone = [name for name in columns_of(frame, others) if name not in roles.values() and n_values(frame, name) == 1]
    if alone:
        options += ["--where", " AND ".join(equality(name, frame[name].dropna().iloc[0]) for name in alone)]
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


def _is_whole(frame: pd.DataFrame, columns: Sequence[str]) -> bool:
    """Return whether every model has every item, as far as the rows tell."""
    if len(columns) < 2 or len(frame) >= HEAD_ROWS:
        return True
    sizes = [frame[name].nunique() for name in columns]
    return len(frame[list(columns)].drop_duplicates()) == sizes[0] * sizes[1]
