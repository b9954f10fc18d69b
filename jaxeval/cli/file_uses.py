"""Which commands fit a file: the names of its columns say it, and whether its first rows can be read so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_number, is_numeric_dtype

from jaxeval.capability.columns import USUAL
from jaxeval.cli.command_table import ROWS
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.data.battles import Battles
from jaxeval.data.columns import folded, renames
from jaxeval.data.conditions import columns_of as columns_in
from jaxeval.data.file_heads import HEAD_ROWS, Head
from jaxeval.data.found_columns import (
    FoundVotes,
    alike,
    differ,
    fits,
    is_binary,
    quoted,
    reading_of,
    reading_with_blanks,
    results_of,
    side_options,
    sides_of,
)
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.data.labels import ONE_TWO_LABELS
from jaxeval.data.plain_labels import names_of_raters, plain_labels
from jaxeval.data.published_formats import about_questions, blind_questions, format_of_names
from jaxeval.data.rankings import Rankings
from jaxeval.data.roles import (
    ANSWER_LABELS,
    COUNT_COLUMNS,
    COUNTED,
    JUDGES,
    POINTS,
    RESULTS,
    ROLES,
    SCORES,
    columns_of,
    guessed_column,
    guessed_columns,
    is_plain,
    n_values,
    usual_column,
)
from jaxeval.errors import DataError
from jaxeval.statistics.random_facets import USUAL_FACETS
from jaxeval.wording import counted, named, words_of

_LABELS_ONLY = "Is a judge good enough?"  # of labels without pairs of models
#: Objects of the Arena's votes: what a leaderboard makes of them, by which options, and what they are.
_OF_ARENA = {
    "category_tag": ("A leaderboard for each category", ("--by", "category_tag"), "categories"),
    "conv_metadata": ("Ratings, the style of answers controlled for", ("--style", "arena"), "counts of style"),
}
_WON = (("winner", "loser"), ("won", "lost"), ("winning", "losing"))
_PEOPLE = ("human", "expert", "person", "rater", "annotator", "worker", "labeller", "labeler", "author", "reviewer")
_GOLD = ("gold", "human", "elo", "arenaelo", "truth", "people")
_HOLD_RESULTS = (*RESULTS, *ROLES["score"].names, *ROLES["score"].also, *COUNT_COLUMNS, "judgment", "target", "output",
                 "rank", "ranking")  # fmt: skip
_METRICS = ("metric", "metric_name", "scorer", "criterion")
_OPPONENTS = (*ROLES["anchor"].names, *ROLES["anchor"].also, "opponent")
#: Columns of what verdicts of one judge may differ in besides items.
_CONDITIONS = ("prompt", "prompt_variant", "template", "sample", "temperature", "version")
_MOST_SLICES = 100  # values of a column, of which a line takes one
_FEW = 20  # judges that a panel may have, groups that a board may be cut into


class Use(NamedTuple):
    """A command for a file."""

    question: str  # that it answers
    words: tuple[str, ...]  # of the line after the name of the file's place, {} where that stands
    why: str  # what was found
    open: str = ""  # what the reader must know, or decide


def uses_of(head: Head) -> list[Use]:
    """Return the commands for a file, the one that fits best first."""
    if head.saved is not None:
        return _SAVED.get(head.saved, [])
    if head.document is not None:
        return list(_known_formats(head))
    if head.rows is None or len(head.rows) == 0:
        return []
    uses = [*_known_formats(head), *_runs(head.rows)]
    if uses:  # the columns alone would say less than the format
        return uses
    kinds = (_benchmarks, _panel, _judged, _rankings, _anchored, _votes, _against, _answers,
             _item_scores, _metrics, _meta, _families, _labels)  # fmt: skip
    for kind in kinds:
        uses += [use for use in kind(head.rows) if use.words not in [other.words for other in uses]]
    return uses


def nothing_in(head: Head) -> str | None:
    """Return what is missing in a file that has columns, but no rows, or no results; None if that is not the matter."""
    if head.rows is None or not head.names or head.saved is not None:
        return None
    if len(head.rows) == 0:
        return "The table has no rows: nothing to rate."
    if blind := blind_questions(head.rows):
        return f"Its columns {about_questions(blind)}."
    results = [name for name in map(str, head.rows) if folded(name) in map(folded, _HOLD_RESULTS)
               or any(word in folded(name) for word in ("score", "goals", "points"))]  # fmt: skip
    empty = [name for name in results if head.rows[name].isna().all()]
    if not empty:
        return None
    rows = f"the first {HEAD_ROWS:,} rows" if len(head.rows) == HEAD_ROWS else counted(len(head.rows), "row")
    return f"There are no results: {quoted(empty)} {'is' if len(empty) == 1 else 'are'} empty in {rows}."


def _use(
    command: str, options: Sequence[str], why: str, note: str = "", question: str = "", files: Sequence[str] = ("{}",)
) -> Use:
    """Return a use of ``files``, the question of which is by default that of the command."""
    return Use(question or ROWS[command].asks or ROWS[command].line, (command, *files, *options), why, note)


_KEPT = "battles that --state or Battles.save keeps"
_SAVED = {
    "jaxeval battles": [
        Use("Its leaderboard", ("leaderboard", "{}"), _KEPT),
        Use("Its leaderboard with the votes of another file", ("leaderboard", "NEW_FILE", "--state", "{}"), _KEPT,
            "NEW_FILE has the votes to add; the file is then saved anew"),
    ],
    "jaxeval draws": [
        Use("Tiers, ranks and intervals of the draws",
            ("python", "-c", "import jaxeval; print(jaxeval.read_draws({!r}).tiers())"), "draws that save_draws wrote"),
    ],
    "jaxeval ratings": [
        Use("The ratings", ("python", "-c", "import jaxeval; print(jaxeval.read_ratings({!r}))"),
            "ratings that a fit saved", "fit_bradley_terry(votes, start=...) begins with them"),
    ],
    "jaxeval soft-elo calibration": [
        Use("Ratings of new models, from a judge's scores", ("soft-elo", "predict", "{}", "NEW_FILE"),
            "a calibration that soft-elo calibrate wrote", "NEW_FILE has battles of the new models, judged by the same "
            "judge"),
    ],
}  # fmt: skip


def _known_formats(head: Head) -> Iterator[Use]:
    """Yield what a file of a published format is for."""
    is_document = head.document is not None
    for shape in ("pair", "answer"):
        form = format_of_names(head.names, shape, is_document=is_document, rows=lambda: head.rows)
        if form is None:
            continue
        first = head.document if is_document else head.rows
        asks = () if first is None else form.asks(first)
        hint = form.hint if asks else ""
        what = form.name if is_document or not form.marks else f"{form.name}, told by {quoted(form.seen(head.names))}"
        if form.shape == "pair":
            yield _use("leaderboard", asks, what, hint, "Ratings of the models")
            yield _use("audit", asks, what)
        elif is_document:
            hint = hint or "add the files of other models to the line, to compare them"
            yield _use("scores", asks, what, hint, "The score of a model, with an interval")
        else:
            yield _use("scores", asks, what, hint, "Scores of models, with intervals")


def _each(option: str, names: Sequence[str]) -> list[str]:
    """Return the words of an option that is given once for each of the names."""
    return [word for name in names for word in (option, name)]


def _naming(**roles: str | None) -> list[str]:
    """Return the options that name columns by role, where they are not called so."""
    return [word for role, name in roles.items() if name not in (role, None) for word in (f"--{role}", str(name))]


def _found(**columns: Any) -> str:
    """Return which column, or columns, hold what, in words; None is left out."""
    return ", ".join(
        f"{what.replace('_', ' ')} in {quoted([names] if isinstance(names, str) else names)}"
        for what, names in columns.items()
        if names is not None
    )


def _usual(frame: pd.DataFrame, *roles: str) -> list[Any]:
    """Return the columns with the usual names of some roles; None where there is none."""
    return [usual_column(frame, None, role) for role in roles]


# ---- battles


def _votes(frame: pd.DataFrame) -> Iterator[Use]:
    for sides in sides_of(frame):
        read = next(results_of(frame, *sides), None)
        if read is not None:
            yield from _of_votes(frame, sides, read)
            return
    if (bad := _bad_counts(frame)) is not None:
        yield bad
        return
    if (blanks := reading_with_blanks(frame)) is not None:
        yield _use("leaderboard", blanks.options(), blanks.why, blanks.hint)
        return
    for won, lost in () if {*COUNTED[1]} & {folded(name) for name in frame} else _WON:
        for winner, loser in [(x, y) for x in frame for y in frame if differ(x, y, won, lost) and alike(frame, x, y)]:
            options = ("--winner-model", winner, "--loser-model", loser)
            for command in ("leaderboard", "audit"):
                yield _use(command, options, _found(who_won=winner, who_lost=loser))
            return


def _of_votes(frame: pd.DataFrame, sides: tuple[str, str], read: FoundVotes) -> Iterator[Use]:
    """Yield what can be asked of votes that are ``read`` so."""
    options, why = read.options(), f"{_found(two_sides=sides)}, {read.why}"
    voters, times = (guessed_columns(frame, role)[:1] for role in ("rater", "time"))
    # Votes of one person are alike: as if unrelated, they would make leaders of noise.
    by_units = (*options, *_each("--cluster", [name for name in voters if 1 < n_values(frame, name) < len(frame)]))
    yield _use("leaderboard", by_units, why, read.hint)
    groups = [x for x in guessed_columns(frame, "group") if x not in sides and 1 < n_values(frame, x) <= _FEW]
    for name in groups[:1]:
        yield _use("leaderboard", (*by_units, "--by", name), _found(groups=name), "", f"A leaderboard for each {name}")
    known = [why, *map("who voted in {!r}".format, voters), *map("when in {!r}".format, times)]
    yield _use("audit", (*options, *_each("--voter", voters), *_each("--time", times)), ", ".join(known))
    yield _use("next", (*options, "--k", "100"), why)
    objects = [x for x in _OF_ARENA if x in frame and frame[x].map(lambda value: isinstance(value, dict)).any()]
    for name in objects:
        question, more, what = _OF_ARENA[name]
        yield _use("leaderboard", (*options, *more), f"{what} in {name!r}", "", question)
    if objects:
        yield _use("leaderboard", (*options, "--html", "board.html"), "", "it writes board.html", "A page to share")


def _bad_counts(frame: pd.DataFrame) -> Use | None:
    """Return the use of a table of counts of which some value cannot be read, with what is wrong."""
    names = list(map(str, frame))
    for a, b in sides_of(frame)[:1] if {*COUNT_COLUMNS} <= {*names, *renames(COUNT_COLUMNS, names).values()} else []:
        try:
            Battles.from_pandas(frame, model_a=a, model_b=b)
        except (DataError, ValueError, TypeError) as error:
            why = _found(two_sides=(a, b), counts_of_results=COUNT_COLUMNS)
            return _use("leaderboard", side_options(a, b), why, f"correct it first: {error}")
    return None


def _against(frame: pd.DataFrame) -> Iterator[Use]:
    """Yield counts of the results of models against one reference or several, each in a column."""
    model, other = guessed_column(frame, "model"), next(iter(columns_of(frame, _OPPONENTS)), None)
    whole = [name for name in map(str, frame) if is_integer_dtype(frame[name])]
    counts = [next((name for name in whole if folded(name) in (*words, *more)), "")
              for words, more in zip(COUNTED, ((), (), ("lose",)), strict=True)]  # fmt: skip
    if model is None or other is None or not all(counts) or not (is_plain(frame[model]) and is_plain(frame[other])):
        return
    left = [name for name in whole if name not in counts and {*words_of(name)} & {"win", "lose", "wins", "losses"}]
    sliced = _one_slice(frame, [model, other], [*counts, *left])
    where, rows = sliced if sliced is not None else ((), frame)
    if fits(Battles.from_pandas, rows, model_a=model, model_b=other, counts=tuple(counts)):
        hint = f"{quoted(left)} are not counted: add them to {counts[0]!r} and {counts[2]!r} first" if left else ""
        options = (*side_options(model, other), "--counts", ":".join(counts), *where)
        yield _use("leaderboard", options, _found(two_sides=(model, other), counts_of_results=counts), hint)


def _one_slice(
    frame: pd.DataFrame, keys: Sequence[str], outcomes: Sequence[str]
) -> tuple[tuple[str, str], pd.DataFrame] | None:
    """Return the option of one value of a column within which no rows repeat the ``keys``, and its rows.

    None where nothing repeats, or no column but ``outcomes`` tells the repeats apart and leaves most of the ``keys``.
    """
    if not frame.duplicated(list(keys)).any():
        return None
    n_keys = len(frame[list(keys)].drop_duplicates())
    for name in map(str, frame):
        if name in (*keys, *outcomes) or not is_plain(frame[name]):
            continue
        if 1 < n_values(frame, name) <= _MOST_SLICES and not frame.duplicated([*keys, name]).any():
            value = frame[name].dropna().iloc[0]
            rows = frame[frame[name] == value]
            if 2 * len(rows) > n_keys:
                return ("--where", _equals(name, value)), rows
    return None


def _equals(name: str, value: Any) -> str:
    """Return a condition in SQL."""
    in_sql = name if _is_bare(name) else '"' + name.replace('"', '""') + '"'
    shown = str(value).removesuffix(".0") if is_number(value) else "'" + str(value).replace("'", "''") + "'"
    return f"{in_sql} = {shown}"


def _is_bare(name: str) -> bool:
    """Return whether DuckDB takes a name without quotes for that of a column, as it does not take its own words."""
    try:
        return re.fullmatch(r"[a-z_]\w*", name) is not None and columns_in(f"{name} = 0") == (name,)
    except (DataError, ImportError):
        return False


# ---- what judges said


def _panel(frame: pd.DataFrame) -> Iterator[Use]:
    """Verdicts of several judges: in rows, or in columns."""
    sides = sides_of(frame)[:1]
    judge, human, item, output = _usual(frame, "judge", "human", "item", "output")
    if not sides or output is not None:
        return
    ((a, b),) = sides
    if judge is not None and is_plain(frame[judge]) and frame[judge].dropna().map(_is_person).mean() > 0.5:
        judge = None  # people, one or many, are no panel of judges
    n_judges = 0 if judge is None else n_values(frame, judge)
    one_so_far = n_judges == 1 and len(frame) == HEAD_ROWS
    if one_so_far or 1 < n_judges <= _FEW:
        verdict = next((name for name in columns_of(frame, ("verdict", *RESULTS)) if name != human), None)
        read = None if verdict is None else reading_of(frame, a, b, {"winner": verdict})
        if read is None:
            return
        shown = () if verdict in ("verdict", "winner") else ("--winner", str(verdict))
        further = read.options("missing", "labels", "count")
        who = _found(judges=judge, their_verdicts=verdict)
        yield _use("panel", (*side_options(a, b), *shown, *further), f"{_found(two_sides=(a, b))}, {who}",
                   "the first rows are of one judge, and a panel has several" if one_so_far else read.hint)  # fmt: skip
        if human is not None and verdict == "verdict" and item is not None:
            yield _use("agreement", (*side_options(a, b), *further), f"{who}; human labels in {human!r}", read.hint)
        return
    known = {"model_a": a, "model_b": b, "missing": "drop"}
    columns = [name for name in map(str, frame) if name not in (a, b, human) and n_values(frame, name) <= 6
               and folded(name) not in ("ftr", "htr")  # football: results, and at half time
               and fits(Battles.from_pandas, frame, **known, winner=name)]  # fmt: skip
    people = [*([] if human is None else [human]), *(name for name in columns if _is_person(name))]
    judges = [name for name in columns if name not in people]
    who, shown = _found(two_sides=(a, b), verdicts_of_judges=judges), ("--judges", ",".join(judges))
    if human is not None and (len(judges) > 1 or (judges and len(people) > 1)):
        whose = ("--human", ",".join(people)) if len(people) > 1 else ()
        yield _use("agreement", (*side_options(a, b), *whose, *shown), f"{who}, {_found(human_labels=people)}")
    if len(judges) > 1:
        yield _use("panel", (*side_options(a, b), *shown), who)


def _is_person(name: str) -> bool:
    """Return whether a name is one of a person: expert, annotator_2."""
    return re.sub(r"\d+$", "", folded(name)) in _PEOPLE


def _judged(frame: pd.DataFrame) -> Iterator[Use]:
    """Yield battles with scores of a judge, or with what judges printed."""
    output, human = _usual(frame, "output", "human")
    scored = {folded(name) for name in SCORES} <= {folded(name) for name in frame}
    for a, b in sides_of(frame)[:1] if scored or output is not None else []:
        what = _found(scores_of_a_judge=SCORES) if scored else _found(what_judges_printed=output)
        why, options, hint = f"{_found(two_sides=(a, b))}, {what}", side_options(a, b), ""
        if human is not None:
            labelled = reading_of(frame, a, b, {"winner": human})
            if labelled is not None and "labels" in labelled.arguments:
                options, hint = (*options, "--labels", "a_wins_1"), labelled.hint
            why += f", human labels in {human!r}"
            yield _use("soft-elo", options, why, hint)
            if not scored:
                yield _use("agreement", options, why, hint)
        yield _use("panel", side_options(a, b), why, "", "Ratings from the judges alone")


def _answers(frame: pd.DataFrame) -> Iterator[Use]:
    """Judged answers, right or wrong, with labels of people."""
    if sides_of(frame):
        return
    labels = columns_of(frame, (*ANSWER_LABELS, "gold", "truth", "correct"))
    label = next((x for x in labels if frame[x].notna().any()), None)
    judgments = [*columns_of(frame, ROLES["judgment"].names)[:1], *filter(None, _usual(frame, "output"))][:1]
    known = {label, *(name for role in ("model", "item", "judge", "run") for name in guessed_columns(frame, role))}
    judgments = judgments or [name for name in map(str, frame) if name not in known and is_binary(frame[name])]
    roles = _answer_roles(frame, judgments, label)
    if not judgments or roles is None:
        return
    model = guessed_column(frame, "model")
    several = model is not None and not frame[model].is_unique  # answers of a model: else it is a table of models
    if label is None and several and not columns_of(frame, POINTS):
        yield _use("judge", [*_each("--judgment", judgments), *roles],
                   f"{_found(judgments=judgments)}, and no human labels",
                   "LABELLED_FILE has answers with the same columns, and human labels in human",
                   files=("--calibration", "LABELLED_FILE", "--test", "{}"))  # fmt: skip
    if label is None or not is_binary(frame[label]):
        return
    if len(frame[label].dropna()) < len(frame) and model is not None and guessed_column(frame, "item") is not None:
        yield _use("scores", ("--score", judgments[0], "--human", label),
                   _found(judgments=judgments, human_labels_of_some_answers=label), "",
                   "Which model is best, the judge's errors corrected by the labels that there are?")  # fmt: skip
        return
    usual = judgments[0] in (*ROLES["judgment"].names, *ROLES["output"].names)
    options = [] if usual else _each("--judgment", judgments)
    options += [] if label in ANSWER_LABELS else ["--human", label]
    yield _use("judge", [*options, *roles], _found(judgments=judgments, human_labels=label),
               "OTHER_FILE has the answers to rate, with the same columns",
               files=("--calibration", "{}", "--test", "OTHER_FILE"))  # fmt: skip


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


def _labels(frame: pd.DataFrame) -> Iterator[Use]:
    """Labels of judges and people without pairs of models, found as the command finds them."""
    if {"modela", "modelb"} <= {folded(name) for name in frame} or usual_column(frame, None, "output") is not None:
        return
    options: tuple[str, ...] = ()
    hint = ""
    known = [name for name in _usual(frame, "item", "judge", "rater") if name is not None]
    beside = [name for name in columns_of(frame, _CONDITIONS) if name not in known and is_plain(frame[name])]
    if beside and known and frame.duplicated(known).any():
        options = ("--where", " AND ".join(_equals(name, frame[name].dropna().iloc[0]) for name in beside))
        hint = f"rows with one value of {quoted(beside)}: others are other judges, or runs"
        frame = frame[(frame[beside] == frame[beside].iloc[0]).all(axis=1)]
    if (unnamed := _rater_without_judges(frame)) is not None:
        yield unnamed
        return
    for coding in (None, ONE_TWO_LABELS):
        try:
            labels = plain_labels(frame, None, None, coding, None)
        except (DataError, ValueError, TypeError):
            continue
        if coding is not None and not options:
            options = FoundVotes({"labels": coding}, "").options()
            hint = "1 is taken as the first side; if the numbers are grades, say --labels grades"
        yield _use("agreement", options, "; ".join(labels.notes[:2]), hint, _LABELS_ONLY)
        return


def _rater_without_judges(frame: pd.DataFrame) -> Use | None:
    """Return the use of a row for each rater and item, where none of the raters is called a judge."""
    if (called := names_of_raters(frame)) is None or usual_column(frame, None, "item") is None:
        return None
    raters = [str(name) for name in frame[called[0]].dropna().unique()]
    if any(word in rater.casefold() for rater in raters for word in JUDGES):
        return None
    if not fits(partial(plain_labels, human=None, judges=raters[:1], labels=None, item=None), frame):
        return None
    why = f"a row for each label in {called[1]!r}, by rater in {called[0]!r}: {quoted(raters)}"
    hint = f"no rater is called a judge, and {raters[0]!r} stands for one: name yours; the others are people"
    return _use("agreement", ("--judges", raters[0]), why, hint, _LABELS_ONLY)


def _anchored(frame: pd.DataFrame) -> Iterator[Use]:
    """Verdicts of models against a reference."""
    if any(next(results_of(frame, *sides), None) is not None for sides in sides_of(frame)):
        return
    if {"wins", "losses"} <= {*frame} and "verdict" not in frame:
        yield _use("anchored", (), _found(counts=("wins", "losses")))
        return
    output = usual_column(frame, None, "output")
    if "verdict" not in frame and (output is None or columns_of(frame, ANSWER_LABELS)):
        return
    for options in ((), ("--missing", "drop")):
        if fits(AnchoredVerdicts.from_pandas, frame, missing="drop" if options else "error"):
            roles = [name for name in ("model", "judge", "anchor", "task", "item", "run") if name in frame]
            why = f"verdicts of one model against a reference in {'verdict' if 'verdict' in frame else output!r}"
            yield _use("anchored", options, f"{why}; besides {quoted(roles)}")
            return


# ---- rankings and scores


def _rankings(frame: pd.DataFrame) -> Iterator[Use]:
    rank = usual_column(frame, None, "rank")
    items, rankings = guessed_columns(frame, "ranked"), guessed_columns(frame, "ranking")
    for item, ids in [(x, y) for x in items for y in rankings if x != y] if rank is not None else []:
        roles = {"item": item, "rank": rank, "ranking": ids}
        if n_values(frame, ids) < len(frame) and fits(Rankings.from_pandas, frame, **roles):
            yield _use("rankings", _naming(**roles), _found(items=item, their_ranks=rank, of_the_rankings=ids))
            return
    lists = [name for name in map(str, frame) if folded(name) == "ranking" or _is_list_of_ranks(frame[name])]
    for name in lists[:1]:
        try:
            levels = Rankings.from_pandas(frame, ranking=name).to_lists()
        except DataError:
            chosen, levels = fits(Rankings.from_pandas, frame, ranking=name, first=1), []
        else:
            chosen = all(len(x) == 2 and not isinstance(x[0], list) for x in levels) and max(map(len, levels)) > 1
            chosen = chosen and all(isinstance(x[1], list) for x in levels)
        if chosen or levels:
            hint = "one item is taken as the best of those shown: if the others truly tie, leave out --first 1"
            first, hint = (("--first", "1"), hint) if chosen else ((), "")
            yield _use("rankings", (*_naming(ranking=name), *first), _found(rankings=name), hint)


def _is_list_of_ranks(column: pd.Series) -> bool:
    first = column.dropna().head(5)
    return len(first) > 0 and all(isinstance(value, str) and re.search(r"\S > \S", value) for value in first)


def _sampled_scores(frame: pd.DataFrame, roles: Mapping[str, Any]) -> Iterator[Use]:
    """Scores of models on items under several judges, prompts or seeds, each of which has a column."""
    facets = [name for name in USUAL_FACETS if name in frame and name not in roles.values()]
    known = [str(name) for name in (roles["model"], roles["item"]) if name is not None]
    if len(known) < 2 or not facets or sides_of(frame) or frame.duplicated([*known, *facets]).any():
        return
    random = ("--random", ",".join(facets), *_naming(**roles))
    why = f"{_found(models=known[0], items=known[1])}, under several values of {named(facets)}"
    yield _use("error-budget", random, why)
    yield _use("scores", random, why, "", "A leaderboard of scores, with intervals that count all of them")


def _item_scores(frame: pd.DataFrame) -> Iterator[Use]:
    if {"doc_id", "task_id", "evaluation_name"} & {*map(str, frame)}:
        return
    model, item, score = (guessed_column(frame, role) for role in ("model", "item", "score"))
    roles = {"model": model, "item": item, "score": score}
    runs = guessed_columns(frame, "run")[:1]
    keys = [str(name) for name in (model, item, usual_column(frame, None, "benchmark"), *runs) if name]
    if score is not None and keys and frame.duplicated(keys).any():  # of several judges, metrics, or references
        yield from _sampled_scores(frame, roles)
        for name in columns_of(frame, _METRICS)[:1]:
            if not frame.duplicated([*keys, name]).any():
                metrics = [str(value) for value in frame[name].dropna().unique()]
                yield _use("scores", (*_naming(**roles), "--where", _equals(name, metrics[0])),
                           f"metrics in {name!r}: {quoted(metrics)}", "it rates by the first metric alone; "
                           f"--benchmark {shlex.quote(name)} instead takes means over all")  # fmt: skip
    elif item is not None and score is not None and not sides_of(frame):
        yield from _long_scores(frame, roles, [name for name in runs if name != "trial"])
    else:
        item = "" if item is None and "" in frame else item  # an index that pandas wrote
        numbers = [name for name in map(str, frame) if is_numeric_dtype(frame[name]) and name != item]
        others = [name for name in map(str, frame) if name not in (*numbers, item)]
        if item is not None and model is None and len(numbers) > 1 and not others and frame[item].is_unique:
            gaps = ("--missing", "available") if frame[numbers].isna().any().any() else ()
            yield _use("scores", ("--wide", *_naming(item=item), *gaps),
                       f"items in {item!r}, a column of scores for each of {quoted(numbers)}")  # fmt: skip


def _long_scores(frame: pd.DataFrame, roles: Mapping[str, Any], trials: Sequence[str]) -> Iterator[Use]:
    """Scores of models on items, a row each."""
    model, item, score = roles.values()
    where, options = _found(items=item, scores=score), _naming(**roles)
    why = f"{'the file is one model' if model is None else _found(models=model)}, {where}"
    if model is not None and (apart := _judged_apart(frame, model)) is not None:
        yield _use("scores", (*options, "--where", apart, "--missing", "available"),
                   f"{why}, each model judged by one of several",
                   "it rates by one judge alone, as scores of several are not on one scale")  # fmt: skip
        return
    whole = _is_whole(frame, [x for x in (model, item) if x])
    missing = () if whole else ("--missing", "available")
    note = "" if whole else "each model has its own items; --missing complete takes those that all have"
    yield _use("scores", (*options, *_each("--trial", trials), *missing), why, note)
    models = [] if model is None else [str(name) for name in frame[model].dropna().unique()[:2]]
    if len(models) == 2:
        yield _use("compare-scores", options, f"{why}; the first two models", files=(*models, "{}"))


def _judged_apart(frame: pd.DataFrame, model: str) -> str | None:
    """Return the condition of one judge or metric, where each model has its own of several."""
    for name in columns_of(frame, (*_METRICS, *ROLES["judge"].names, *ROLES["rater"].names)):
        if n_values(frame, name) > 1 and len(frame[[model, name]].drop_duplicates()) == n_values(frame, model):
            value = frame[name].mode().iloc[0]
            references = columns_of(frame, _OPPONENTS)
            beside = [_equals(x, frame.loc[frame[name] == value, x].mode().iloc[0]) for x in references]
            return " AND ".join([_equals(name, value), *beside])
    return None


def _metrics(frame: pd.DataFrame) -> Iterator[Use]:
    """Yield scores of models by several metrics of several tables, of which one is chosen."""
    model, score = guessed_column(frame, "model"), guessed_column(frame, "score")
    metric = next(iter(columns_of(frame, _METRICS)), None)
    if model is None or score is None or metric is None or guessed_column(frame, "item") is not None:
        return
    texts = [str(name) for name in frame if name not in (model, metric) and is_plain(frame[name])]
    for name in (name for name in texts if not is_numeric_dtype(frame[name]) and n_values(frame, name) > 1):
        for value, rows in frame.groupby(name, sort=False):
            if not rows.duplicated([model, metric]).any() and min(rows[model].nunique(), rows[metric].nunique()) > 1:
                options = (*_naming(model=model, item=metric, score=score), "--where", _equals(name, value))
                why = f"{_found(models=model, metrics=metric, scores=score)}, of one value of {name!r}"
                note = "metrics count as items: they must be on one scale"
                yield _use("scores", (*options, "--missing", "available"), why, note)
                return


def _runs(frame: pd.DataFrame) -> Iterator[Use]:
    """Runs of agents on tasks whose length is known."""
    columns = [usual_column(frame, None, USUAL[role]) for role in ("agent", "task", "minutes", "success")]
    if None not in columns and is_numeric_dtype(frame[str(columns[2])]):
        whats = ("agents", "tasks", "minutes_of_people", "successes")
        yield _use("horizons", (), _found(**dict(zip(whats, columns, strict=True))))


def _benchmarks(frame: pd.DataFrame) -> Iterator[Use]:
    """Yield shares of models on benchmarks, one for each pair."""
    model, benchmark = guessed_column(frame, "model"), guessed_column(frame, "benchmark")
    share = usual_column(frame, None, USUAL["score"])
    if model is None or benchmark is None or share is None or not is_numeric_dtype(frame[share]):
        return
    if frame.duplicated([model, benchmark]).any() or columns_of(frame, ("item", "item_id", "question_id", "trial")):
        return
    if frame[share].between(0, 1).all() and n_values(frame, benchmark) > 1 and n_values(frame, model) > 2:
        yield _use("index", (), _found(models=model, benchmarks=benchmark, shares=share))


def _is_whole(frame: pd.DataFrame, columns: Sequence[str]) -> bool:
    """Return whether every model has every item, as far as the rows tell."""
    if len(columns) < 2 or len(frame) >= HEAD_ROWS:
        return True
    sizes = [frame[name].nunique() for name in columns]
    return len(frame[list(columns)].drop_duplicates()) == sizes[0] * sizes[1]


def _meta(frame: pd.DataFrame) -> Iterator[Use]:
    """Yield models, and what several evaluators say of each."""
    model = guessed_column(frame, "model")
    numbers = [name for name in map(str, frame) if is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name])]
    if model is None or not frame[model].is_unique or len(numbers) < 2 or len(frame) < 3:
        return
    if any(a not in numbers for a, _ in sides_of(frame)):  # scores called judge1 and judge2 are no sides
        return
    if "rating" in numbers and {"lower", "rating_lower"} & {*numbers}:  # a table that a leaderboard wrote
        return
    golden = (name for name in numbers if {*re.split(r"[\s_.-]+", name.casefold())} & {*_GOLD})
    gold = next(golden, numbers[0])
    why = f"a row for each of {model!r}, {_found(scores=[name for name in numbers if name != gold])}"
    hint = f"{gold!r} is taken as gold, what the others should agree with: say another by --gold"
    yield _use("meta", ("--gold", gold, *_naming(model=model)), why, hint)


#: What is asked of who made each model, by the command, and of what another file has.
_OF_FAMILIES = {
    "audit": ("How much does a maker gain by having many models on the leaderboard?", "VOTES_FILE",
              "votes between the models"),
    "agreement": ("Do judges favour models of their own family?", "VERDICTS_FILE",
                  "verdicts of judges, and human labels"),
}  # fmt: skip


def _families(frame: pd.DataFrame) -> Iterator[Use]:
    """Yield who made each model, a file that goes with votes."""
    if {"name", "family"} <= {*map(str, frame)} and frame.shape[1] <= 3 and not sides_of(frame):
        why = "families in 'family', of the models in 'name'"
        for command, (question, file, holds) in _OF_FAMILIES.items():
            note = f"{file} has {holds}; jaxeval {file} shows its options"
            yield _use(command, (), why, note, question, (file, "--families", "{}"))
