"""What a file is good for: the line of a command, and of votes and verdicts which commands, by names and first rows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pandas as pd
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

from jaxeval.capability.columns import USUAL, by_benchmark
from jaxeval.cli.command_table import ROWS
from jaxeval.data.battles import Battles
from jaxeval.data.columns import folded, renames
from jaxeval.data.conditions import equality
from jaxeval.data.found_columns import (
    MOST_JUDGES,
    FoundJudgments,
    SidePairs,
    alike,
    differ,
    fits,
    found,
    names_people,
    quoted,
    reading_of,
    reading_with_blanks,
    results_of,
    side_options,
    verdicts_of_several,
)
from jaxeval.data.roles import (
    COUNT_COLUMNS,
    COUNTED,
    KNOWN_OF_MODELS,
    ONE_HOT_COLUMNS,
    RESULT_COUNTS,
    ROLES,
    SCORES,
    STANDARD_RESULTS,
    WIN_COLUMNS,
    columns_of,
    guessed_column,
    guessed_columns,
    is_plain,
    n_values,
    usual_column,
)
from jaxeval.errors import DataError
from jaxeval.wording import counted, words_of

#: Names of the column of what answers were compared with.
OPPONENTS = (*ROLES["anchor"].names, *ROLES["anchor"].also, "opponent")

METRICS = ("metric", "metric_name", "scorer", "criterion")
_OF_PEOPLE = "Ratings, and how far each person follows them"
#: What is to be known of a line where people are compared with one of them.
STAND_IN = "no rater is called a judge, and {!r} stands for one: name yours; the others are people"
_GOLD = ("gold", "human", "elo", "arenaelo", "truth", "people")


class Use(NamedTuple):
    """A command for a file."""

    question: str  # that it answers
    words: tuple[str, ...]  # of the line after the name of the file's place, {} where that stands
    why: str  # what was found
    open: str = ""  # what the reader must know, or decide
    read: FoundJudgments | None = None  # as what, if the command makes the leaderboard of judgments of such a shape


#: The command that makes the leaderboard of judgments of a shape.
_BOARDS = {"pair": "leaderboard", "ranking": "rankings", "panel": "panel"}


def use_of(
    command: str, options: Sequence[str], why: str, note: str = "", question: str = "", files: Sequence[str] = ("{}",)
) -> Use:
    """Return a use of ``files``, the question of which is by default that of the command."""
    return Use(question or ROWS[command].asks or ROWS[command].line, (command, *files, *options), why, note)


def board_of(read: FoundJudgments) -> Use:
    """Return the use of judgments that are ``read`` so for their leaderboard."""
    return use_of(_BOARDS[read.shape], read.options(), read.why, read.hint)._replace(read=read)


_KEPT = "battles that --state or Battles.save keeps"
#: What files that jaxeval saved are for, by what they hold.
SAVED = {
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


def each(option: str, names: Sequence[str]) -> list[str]:
    """Return the words of an option that is given once for each of the names."""
    return [word for name in names for word in (option, name)]


def naming(**roles: str | None) -> list[str]:
    """Return the options that name columns by role, where they are not called so."""
    return [word for role, name in roles.items() if name not in (role, None) for word in (f"--{role}", str(name))]


def usual(frame: pd.DataFrame, *roles: str) -> list[Any]:
    """Return the columns with the usual names of some roles; None where there is none."""
    return [usual_column(frame, None, role) for role in roles]


#: Objects of the Arena's votes: what a leaderboard makes of them, by which options, and what they are.
_OF_ARENA = {
    "category_tag": ("A leaderboard for each category", ("--by", "category_tag"), "categories"),
    "conv_metadata": ("Ratings, the style of answers controlled for", ("--style", "arena"), "counts of style"),
}
_WON = (("winner", "loser"), ("won", "lost"), ("winning", "losing"), ("chosen", "rejected"),
        ("sieger", "verlierer"), ("gewinner", "verlierer"))  # fmt: skip
#: Words in names of columns that say how sure a score is.
_OF_ERROR = re.compile(
    r"(?:\b|_)(?:lower|upper|ci|se|sd|std|stderr|stdev|error|variance|[qp]\d+)(?:\b|_)", re.IGNORECASE
)
_FEWEST_MODELS = 3  # that two evaluators have both scored
_MOST_SLICES = 100  # values of a column, of which a line takes one
#: Groups that a board may be cut into.
MOST_GROUPS = 20
_SURELY_PER_CENT = 10  # scores may have other scales up to this


def votes(frame: pd.DataFrame, sides: SidePairs, of_panel: FoundJudgments | None) -> Iterator[Use]:
    """Yield battles and their results; ``of_panel`` is how the same table is read as one of a panel, if it is."""
    judges, people = verdicts_of_several(frame, of_panel)
    for two_sides in sides:
        ways = (way for way in results_of(frame, *two_sides) if way.arguments.get("winner") not in people)
        read = next(ways, None)
        if read is not None:
            by_one = read.arguments.get("winner") in judges
            yield from _of_votes(frame, two_sides, read, "Ratings, by one of the judges alone" if by_one else "")
        if read is not None or people:
            return
    blanks, bad = reading_with_blanks(frame, sides), _bad_results(frame, sides)
    if bad is not None and (blanks is None or "winner" not in blanks.arguments):
        yield bad
        return
    if blanks is not None:
        yield board_of(blanks)
        return
    for won, lost in () if {*COUNTED[1]} & {folded(name) for name in frame} else _WON:
        for winner, loser in [(x, y) for x in frame for y in frame if differ(x, y, won, lost) and alike(frame, x, y)]:
            options = ("--winner-model", winner, "--loser-model", loser)
            for command in ("leaderboard", "audit"):
                yield use_of(command, options, found(who_won=winner, who_lost=loser))
            return


def _of_votes(frame: pd.DataFrame, sides: tuple[str, str], read: FoundJudgments, question: str) -> Iterator[Use]:
    """Yield what can be asked of votes that are ``read`` so."""
    options, why = read.options(), f"{found(two_sides=sides)}, {read.why}"
    voters, times = (guessed_columns(frame, role)[:1] for role in ("rater", "time"))
    if not voters:  # more judges than a panel has are people, as the "arena_user_7" of FastChat's files
        judges = [name for name in usual(frame, "judge") if name is not None]
        voters = [name for name in judges if n_values(frame, name) > MOST_JUDGES or names_people(frame[name])]
    # Votes of one person are alike: as if unrelated, they would make leaders of noise.
    by_units = (*options, *each("--cluster", [name for name in voters if 1 < n_values(frame, name) < len(frame)]))
    notes = [read.hint, *_notes_on_votes(frame, sides, read)]
    yield use_of("leaderboard", by_units, why, "; ".join(filter(None, notes)), question)
    groups = [x for x in guessed_columns(frame, "group") if x not in sides and 1 < n_values(frame, x) <= MOST_GROUPS]
    for name in groups[:1]:
        yield use_of("leaderboard", (*by_units, "--by", name), found(groups=name), "", f"A leaderboard for each {name}")
    known = [why, *map("who voted in {!r}".format, voters), *map("when in {!r}".format, times)]
    yield use_of("audit", (*options, *each("--voter", voters), *each("--time", times)), ", ".join(known))
    yield use_of("next", (*options, "--k", "100"), why)
    objects = [x for x in _OF_ARENA if x in frame and frame[x].map(lambda value: isinstance(value, dict)).any()]
    for name in objects:
        question, more, what = _OF_ARENA[name]
        yield use_of("leaderboard", (*options, *more), f"{what} in {name!r}", "", question)
    if objects:
        yield use_of("leaderboard", (*options, "--html", "board.html"), "", "it writes board.html", "A page to share")


def _notes_on_votes(frame: pd.DataFrame, sides: tuple[str, str], read: FoundJudgments) -> Iterator[str]:
    """Yield what is to be known of votes: which columns do not count, and rows that may be copies."""
    for name in columns_of(frame, ("weight", "weights")):
        if is_numeric_dtype(frame[name]) and n_values(frame, name) > 1:
            yield f"{name!r} does not count: say --weight {shlex.quote(name)} if it should"
    orders = [name for name in columns_of(frame, ROLES["shown_first"].names) if 1 < n_values(frame, name) <= 2]
    for name in orders:
        yield (
            f"{name!r} does not count: results are taken to be about {sides[0]!r} and {sides[1]!r}, whichever of them "
            "was shown first"
        )
    ids = [name for name in guessed_columns(frame, "item") if 2 * n_values(frame, name) >= len(frame)]
    plain = [name for name in frame if is_plain(frame[name])]
    copies = int(frame.duplicated(plain).sum()) if ids else 0
    if copies:
        yield f"{counted(copies, 'row repeats', 'rows repeat')} another in all columns, {ids[0]!r} too: drop copies"


def _bad_results(frame: pd.DataFrame, sides: SidePairs) -> Use | None:
    """Return the use of votes, or counts, of which some value cannot be read, with what is wrong."""
    names = list(map(str, frame))
    names += renames(STANDARD_RESULTS, names).values()
    results = [x for x in (("winner",), ONE_HOT_COLUMNS, COUNT_COLUMNS, WIN_COLUMNS) if {*x} <= {*names}]
    empty = {folded(name) for name in names if name in frame and frame[name].isna().all()}
    for a, b in sides[:1] if results and not empty & {*map(folded, results[0])} else []:
        try:
            Battles.from_pandas(frame, model_a=a, model_b=b)
        except (DataError, ValueError, TypeError) as error:
            what = "results" if results[0] == ("winner",) else "counts_of_results"
            why = found(two_sides=(a, b), **{what: results[0]})
            return use_of("leaderboard", side_options(a, b), why, f"correct it first: {error}")
    return None


def against(frame: pd.DataFrame) -> Iterator[Use]:
    """Yield counts of the results of models against one reference or several, each in a column."""
    model, other = guessed_column(frame, "model"), usual_column(frame, None, OPPONENTS)
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
        yield use_of("leaderboard", options, found(two_sides=(model, other), counts_of_results=counts), hint)


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
                return ("--where", equality(name, value)), rows
    return None


def panel(frame: pd.DataFrame, read: FoundJudgments | None) -> Iterator[Use]:
    """Find verdicts of several judges: in rows, or in columns, ``read`` so if it is not None."""
    if read is None:
        return
    judge, human, item = usual(frame, "judge", "human", "item")
    judges, people = read.arguments.get("judges"), read.arguments.get("human", ())
    if judges is None:
        yield board_of(read)
        if human is not None and "verdict" in frame and item is not None:
            hint = read.hint if n_values(frame, judge) > 1 else ""
            yield use_of("agreement", read.options(), f"{read.why}; human labels in {human!r}", hint)
        return
    raters = judges if len(judges) > 1 else people if human is None else []
    of_raters = {name: x for name, x in read.arguments.items() if name != "human"} | {"judges": raters}
    board = board_of(read._replace(arguments=of_raters))
    if not judges:
        yield board._replace(question=_OF_PEOPLE)
        first = {"judges": people[:1], "human": people[1:]}
        whose = read._replace(arguments={**read.arguments, **first}).options()
        yield use_of("agreement", whose, read.why, STAND_IN.format(people[0]), "How far do people agree?")
        return
    if people and max(len(judges), len(people)) > 1:
        names = ("human",) if len(people) > 1 else ()
        yield use_of("agreement", read.options(*names, "model_a", "model_b", "judges"), read.why)
    if len(raters) > 1:
        yield board if raters is judges else board._replace(question=_OF_PEOPLE)


def judged(frame: pd.DataFrame, sides: SidePairs) -> Iterator[Use]:
    """Yield battles with scores of a judge, or with what judges printed."""
    output, human = usual(frame, "output", "human")
    scored = {folded(name) for name in SCORES} <= {folded(name) for name in frame}
    for a, b in sides[:1] if scored or output is not None else []:
        what = found(scores_of_a_judge=SCORES) if scored else found(what_judges_printed=output)
        why, options, hint = f"{found(two_sides=(a, b))}, {what}", side_options(a, b), ""
        if human is not None:
            labelled = reading_of(frame, a, b, {"winner": human})
            if labelled is not None and "labels" in labelled.arguments:
                options, hint = (*options, "--labels", "a_wins_1"), labelled.hint
            why += f", human labels in {human!r}"
            yield use_of("soft-elo", options, why, hint)
            if not scored:
                yield use_of("agreement", options, why, hint)
        yield use_of("panel", options, why, hint, "Ratings from the judges alone")


#: What is asked of who made each model, by the command, and of what another file has.
_OF_FAMILIES = {
    "audit": ("How much does a maker gain by having many models on the leaderboard?", "VOTES_FILE",
              "votes between the models"),
    "agreement": ("Do judges favour models of their own family?", "VERDICTS_FILE",
                  "verdicts of judges, and human labels"),
}  # fmt: skip


def families(frame: pd.DataFrame, sides: SidePairs) -> Iterator[Use]:
    """Yield who made each model, a file that goes with votes."""
    if {"name", "family"} <= {*map(str, frame)} and frame.shape[1] <= 3 and not sides:
        why = "families in 'family', of the models in 'name'"
        for command, (question, file, holds) in _OF_FAMILIES.items():
            note = f"{file} has {holds}; jaxeval {file} shows its options"
            yield use_of(command, (), why, note, question, (file, "--families", "{}"))


def scores_by_metric(frame: pd.DataFrame) -> Iterator[Use]:
    """Yield scores of models by several metrics of several tables, of which one is chosen."""
    model, score = guessed_column(frame, "model"), guessed_column(frame, "score")
    metric = usual_column(frame, None, METRICS)
    if model is None or score is None or metric is None or guessed_column(frame, "item") is not None:
        return
    texts = [str(name) for name in frame if name not in (model, metric) and is_plain(frame[name])]
    for name in (name for name in texts if not is_numeric_dtype(frame[name]) and n_values(frame, name) > 1):
        for value, rows in frame.groupby(name, sort=False):
            if not rows.duplicated([model, metric]).any() and min(rows[model].nunique(), rows[metric].nunique()) > 1:
                options = (*naming(model=model, item=metric, score=score), "--where", equality(name, value))
                why = f"{found(models=model, metrics=metric, scores=score)}, of one value of {name!r}"
                note = "metrics count as items: they must be on one scale"
                yield use_of("scores", (*options, "--missing", "available"), why, note)
                return


def agent_runs(frame: pd.DataFrame) -> Iterator[Use]:
    """Find runs of agents on tasks whose length is known."""
    columns = [usual_column(frame, None, USUAL[role]) for role in ("agent", "task", "minutes", "success")]
    if None not in columns and is_numeric_dtype(frame[str(columns[2])]):
        words = ("agents", "tasks", "minutes_of_people", "successes")
        yield use_of("horizons", (), found(**dict(zip(words, columns, strict=True))))


def benchmarks(frame: pd.DataFrame, sides: SidePairs) -> Iterator[Use]:
    """Yield shares of models on benchmarks, one for each pair."""
    model, benchmark, score = (guessed_column(frame, role) for role in ("model", "benchmark", "score"))
    share = usual_column(frame, None, USUAL["score"])
    if model is not None and frame[model].is_unique and not sides and not _golden(frame):
        with suppress(DataError):
            _, told = by_benchmark(frame, {"model": model, "benchmark": benchmark, "score": share})
            if told and len(frame) > 2:
                yield use_of("index", naming(model=model), told[0])
    if share is None and score is not None and not frame[score].isin((0, 1)).all():
        share = score
    of_shares = share is not None and not frame[share].isin((0, 1)).all()  # a task that is solved or not is an item
    if benchmark is None and of_shares:
        benchmark = guessed_column(frame, "task")
    if model is None or benchmark is None or share is None or not is_numeric_dtype(frame[share]):
        return
    if frame.duplicated([model, benchmark]).any() or columns_of(frame, ("item", "item_id", "question_id", "trial")):
        return
    lowest, highest = frame[share].min(), frame[share].max()
    in_per_cent = _SURELY_PER_CENT < highest <= 100
    many = n_values(frame, benchmark) > 1 and n_values(frame, model) > 2
    if many and lowest >= 0 and (highest <= 1 or in_per_cent):
        what = {"per_cents" if in_per_cent else "shares": share}
        columns = {"model": model, "benchmark": benchmark, "share": share}
        named_so = {role: name for role, name in columns.items() if name not in USUAL.get(role, USUAL["score"])}
        options = (*naming(**named_so), *(("--unit", "percent") if in_per_cent else ()))
        yield use_of("index", options, found(models=model, benchmarks=benchmark, **what))


def meta(frame: pd.DataFrame, sides: SidePairs) -> Iterator[Use]:
    """Yield models, and what several evaluators say of each."""
    model = guessed_column(frame, "model")
    numbers = evaluations(frame)
    if model is None or not frame[model].is_unique or len(numbers) < 2 or len(frame) < 3:
        return
    if any(a not in numbers for a, _ in sides):  # scores called judge1 and judge2 are no sides
        return
    if "rating" in numbers and {"lower", "rating_lower"} & {*numbers}:  # a table that a leaderboard wrote
        return
    gold = next((name for name in _golden(frame) if name in numbers), numbers[0])
    both = frame[numbers].notna().astype(int)
    numbers = [name for name in numbers if (both[name] * both[gold]).sum() >= _FEWEST_MODELS]
    if len(numbers) < 2:
        return
    why = f"a row for each of {model!r}, {found(scores=[name for name in numbers if name != gold])}"
    hint = f"{gold!r} is taken as gold, what the others should agree with: say another by --gold"
    yield use_of("meta", ("--gold", gold, *naming(model=model)), why, hint)


def evaluations(frame: pd.DataFrame) -> list[str]:
    """Return columns of numbers that are no counts of judgments, and say more of models than their size or cost."""
    numbers = [name for name in map(str, frame) if is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name])]
    counts = {*map(folded, ROLES["count"].also), *RESULT_COUNTS}
    about = [name for name in numbers if any(map(KNOWN_OF_MODELS.fullmatch, words_of(name))) or _OF_ERROR.search(name)]
    return [name for name in numbers if folded(name) not in counts and name not in about]


def _golden(frame: pd.DataFrame) -> list[str]:
    """Return columns that are called after people, or after an arena."""
    return [name for name in map(str, frame) if {*re.split(r"[\s_.-]+", name.casefold())} & {*_GOLD}]
