"""Which commands fit a file: the names of its columns say it, and whether its first rows can be read so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pandas as pd
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from jaxeval.cli.format_uses import known_formats
from jaxeval.cli.score_uses import (
    AS_RUNS,
    CONDITIONS,
    HOLD_RESULTS,
    REPEATED,
    is_whole,
    item_scores,
    models_in_rows,
    rows_of_scores,
    runs_in_columns,
)
from jaxeval.cli.uses import (
    MOST_GROUPS,
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
    found_panel,
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
from jaxeval.data.labels import ONE_TWO_LABELS
from jaxeval.data.plain_labels import NO_LABELS, names_of_raters, plain_labels
from jaxeval.data.published_formats import about_questions, blind_questions, format_of_names
from jaxeval.data.rankings import Rankings
from jaxeval.data.roles import (
    ANSWER_LABELS,
    JUDGES,
    POINTS,
    RESULT_COUNTS,
    ROLES,
    columns_of,
    guessed_column,
    guessed_columns,
    has_usual_sides,
    is_plain,
    n_values,
    usual_column,
)
from jaxeval.errors import DataError
from jaxeval.wording import counted, visible_line

_LABELS_ONLY = "Is a judge good enough?"  # of labels without pairs of models
_COUNTS = "model_a,model_b,wins_a,ties,wins_b"
_RATES = "A rate says nothing of how many battles there were: multiply it by their number, for counts"
_OF_BOTH = re.compile(r"\d+\s*[:\u2013-]\s*\d+(?:\s*\(.*\))?")
_A_RATE = re.compile(r"win[ _.-]*(?:rate|pct|percent|share|%)|(?:rate|pct|percent|share|%)[ _.-]*(?:of[ _.-])?wins?")
_WIN_RATES = {"win_rate", "n_wins", "n_wins_base"}  # of AlpacaEval's leaderboard


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
    uses = [*known_formats(head, others), *agent_runs(head.rows), *models_in_rows(head.rows)]
    if uses:  # the columns alone would say less than the format
        return uses
    rows, sides = head.rows, sides_of(head.rows)
    of_panel = found_panel(rows, sides)
    kinds = (
        benchmarks(rows, sides), panel(rows, of_panel), judged(rows, sides), _rankings(rows), _anchored(rows, sides),
        votes(rows, sides, of_panel), against(rows), _answers(head, sides), item_scores(head, sides),
        scores_by_metric(rows), meta(rows, sides), families(rows, sides), _labels(rows, of_panel),
    )  # fmt: skip
    for kind in kinds:
        uses += [use for use in kind if use.words not in [other.words for other in uses]]
    by = [use for use in uses if "--by" in use.words]
    if by and (every := head.all_rows()) is not None:
        many = {name for name in every if n_values(every, name) > MOST_GROUPS}
        uses = [use for use in uses if use not in by or use.words[use.words.index("--by") + 1] not in many]
    both = _points_of_both(rows)
    uses = [use for use in uses if both not in use.words or "--labels" not in use.words]
    if any(use.words[0] == "rankings" for use in uses):  # ranks are no scores
        uses = [use for use in uses if use.words[0] != "scores" or "--wide" not in use.words]
    if not sides and runs_in_columns(rows):
        uses = [use for use in uses if use.words[0] not in ("index", "meta") and "--wide" not in use.words]
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
        return f"It is a table of models by models: write a row for each pair, as {_COUNTS}. {_RATES}."
    if lacks_header(head.rows):
        line = quoted(head.names)
        return f"The first line seems to be no header, but a row: {line}. Add a header, as model_a,model_b,winner."
    if (both := _points_of_both(head.rows)) is not None and sides_of(head.rows):
        first = head.rows[both].dropna().iloc[0]
        return f"{both!r} holds points of both sides, as {first!r}: write two columns, as home_score,away_score."
    rates = [name for name in head.names if _A_RATE.search(name.casefold()) and is_numeric_dtype(head.rows[name])]
    if rates and sides_of(head.rows):
        return f"There are rates of wins between two sides, in {quoted(rates)}. {_RATES}, as {_COUNTS}."
    if blind := blind_questions(head.rows):
        return f"Its columns {about_questions(blind)}."
    if runs := runs_in_columns(head.rows):
        return f"Its columns {AS_RUNS.format(quoted(runs))}."
    model = guessed_column(head.rows, "model")
    totals = [name for name in head.names if folded(name) in RESULT_COUNTS]
    if model is not None and head.rows[model].is_unique and len(totals) > 1:
        return (
            f"It has how often each model won and lost in all, in {quoted(totals)}, and not against whom: write a "
            f"row for each pair, as {_COUNTS}."
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
    results = [name for name in map(str, head.rows) if folded(name) in map(folded, HOLD_RESULTS)
               or any(word in folded(name) for word in ("score", "goals", "points"))]  # fmt: skip
    empty = [name for name in results if head.rows[name].isna().all()]
    if not empty:
        return None
    rows = f"the first {HEAD_ROWS:,} rows" if len(head.rows) == HEAD_ROWS else counted(len(head.rows), "row")
    return f"There are no results: {quoted(empty)} {'is' if len(empty) == 1 else 'are'} empty in {rows}."


def _points_of_both(frame: pd.DataFrame) -> str | None:
    """Return the column that holds the points of both sides of a game, as 2:1."""
    texts = {str(name): frame[name].dropna().unique() for name in frame if is_plain(frame[name])}
    return next((name for name, values in texts.items() if len(values)
                 and all(isinstance(x, str) and _OF_BOTH.fullmatch(x.strip()) for x in values)), None)  # fmt: skip


def is_square(frame: pd.DataFrame) -> bool:
    """Return whether the first column names the other columns, which hold numbers: a table of models against models."""
    first, *others = map(str, frame)
    values = [*map(str, frame[first].dropna())]
    return len(others) > 1 and {*values} == {*others} and all(is_numeric_dtype(frame[name]) for name in others)


def _answers(head: Head, sides: SidePairs) -> Iterator[Use]:
    """Find judged answers, right or wrong, with labels of people."""
    if sides or (frame := head.rows) is None:
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
    item = guessed_column(frame, "item")
    if len(frame[label].dropna()) < len(frame) and model is not None and item is not None:
        rows = rows_of_scores(frame, head, sides)[0]
        keys = [x for x in (model, item, *usual(rows, "judge"), *columns_of(rows, ("trial",))) if x]
        repeats = rows.duplicated(keys).any()
        gaps = () if repeats or is_whole(rows, [model, item]) else ("--missing", "available")
        yield use_of("scores", ("--score", judgments[0], "--human", label, *gaps),
                   found(judgments=judgments, human_labels_of_some_answers=label), REPEATED * bool(repeats),
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
    """Return options that name models, items, judges and runs of judged answers; None if rows cannot be read so.

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


def _labels(frame: pd.DataFrame, of_panel: FoundJudgments | None) -> Iterator[Use]:
    """Find labels of judges and people without pairs of models, as the command finds them."""
    if (
        has_usual_sides(frame)
        or usual_column(frame, None, "output") is not None
        or verdicts_of_several(frame, of_panel)[1]
    ):
        return
    options: tuple[str, ...] = ()
    hint = ""
    known = [name for name in usual(frame, "item", "judge", "rater") if name is not None]
    beside = [name for name in columns_of(frame, CONDITIONS) if name not in known and is_plain(frame[name])]
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
    output, has_verdicts = usual_column(frame, None, "output"), "verdict" in frame
    counts = {"wins", "losses"} <= {*frame} and not has_verdicts
    if not (counts or has_verdicts) and (output is None or columns_of(frame, ANSWER_LABELS)):
        return
    if any(next(results_of(frame, *two_sides), None) is not None for two_sides in sides):
        return
    if counts:
        note = "all are taken as against one reference: else write a row for each pair of models"
        yield use_of("anchored", (), found(counts=("wins", "losses")), note)
        return
    for options in ((), ("--missing", "drop")):
        if fits(AnchoredVerdicts.from_pandas, frame, missing="drop" if options else "error"):
            roles = [name for name in ("model", "judge", "anchor", "task", "item", "run") if name in frame]
            why = f"verdicts of one model against a reference in {'verdict' if has_verdicts else output!r}"
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
