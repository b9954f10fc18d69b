"""What the columns of judgments are for: each role once, with the names by which its column is taken."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from jaxeval.data.columns import factorized, folded, require_column
from jaxeval.data.labels import SCORES_IN_WORDS, in_numbers
from jaxeval.lazy_names import pd
from jaxeval.wording import words_of


class Role(NamedTuple):
    """What a column is for."""

    what: str  # in words: "the column of ..."
    kind: Literal["name", "outcome", "number", "text"]  # of its values: "name" for what is compared or grouped
    names: tuple[str, ...]  # by which its column is taken, in this order, in any spelling
    also: tuple[str, ...] = ()  # by which it is guessed, for a line to type


#: Names of items, and further ones, of whatever is judged.
_ITEMS = ("item", "item_id", "question_id", "prompt_id", "instruction_id", "instruction_index", "question", "prompt")
_IDS = ("query_id", "query", "task_id", "sample_id", "doc_id", "example_id", "problem_id", "test_id", "case_id", "test",
        "test_case", "id")  # fmt: skip
_PEOPLE = ("rater", "annotator", "voter", "user")
_RESULTS = ("winner", "verdict", "result", "outcome", "preference", "label", "choice", "vote", "human", "human_pref",
            "judge_pref", "judge_pick", "pick", "majority", "ftr")  # fmt: skip

#: All roles. The first name of each is what jaxeval writes itself.
ROLES = {
    "model_a": Role("the model on side A", "name", ("model_a",)),
    "model_b": Role("the model on side B", "name", ("model_b",)),
    "model": Role(
        "the model that answered", "name", ("model", "model_name"),
        ("model_id", "system", "Modell", "Modèle", "Modelo", "Modello"),
    ),
    "anchor": Role("the reference that answers are compared with", "name", ("anchor",), ("reference", "baseline")),
    "item": Role(
        "the item that was judged: a prompt, a question, a task", "name",
        _ITEMS, (*_IDS, "Frage", "Aufgabe", "Pregunta", "Domanda"),
    ),
    "task": Role("the task or category of an item", "name", ("task",), ("category", "dataset")),
    "benchmark": Role("the benchmark of an item", "name", ("benchmark",), ("benchmark_name",)),
    "judge": Role("the judge", "name", ("judge", "judge_model", "judge_name")),
    "rater": Role("the person who judged", "name", _PEOPLE,
                  (*(f"{name}_id" for name in (*_PEOPLE, "worker", "participant")), "worker", "participant",
                   "respondent")),
    "run": Role("the number of a repeated run", "name", ("run", "trial", "repetition"), ("seed", "epoch")),
    "shown_first": Role(
        "the side that was shown first", "name",
        ("shown_first", "order", "swapped", "presentation_order", "position", "presentation"),
    ),
    "winner": Role("the result of a battle", "outcome", ("winner",), _RESULTS),
    "target": Role("the probability that side A wins", "number", ("target",)),
    "verdict": Role("the verdict of a judge", "outcome", ("verdict", "judge_pref")),
    "judgment": Role("the judgment of an answer, 1 for right", "outcome", ("judgment", "verdict")),
    "human": Role(
        "the human label", "outcome", ("human", "human_pref", "human_label"), ("label", "gold", "truth", "correct")
    ),
    "output": Role(
        "what a judge printed", "text",
        ("output", "judge_output", "raw_judge_output", "raw_output", "reply", "judge_reply", "judge_response", "raw",
         "completion", "generated_text"),
    ),
    "score": Role(
        "the score of an answer", "number", ("score",),
        ("accuracy", "correct", "is_correct", "acc", "reward", "passed", "exact_match", "preference", "rating", "grade",
         "points", "pass", "success", "resolved", "follow_all_instructions", "status", "result", "outcome",
         "Punkte", "Punktzahl", "Bewertung", "Richtig", "Correcto"),
    ),
    "scores_a": Role("the judge's score of side A, or scores by criterion", "outcome", ("scores_a",)),
    "scores_b": Role("the judge's score of side B, or scores by criterion", "outcome", ("scores_b",)),
    "ranking": Role(
        "the ranking that a place belongs to", "name", ("ranking",),
        ("ranking_id", "voter", "user", "judge", "annotator", "race", "race_id", "contest", "match", "game", "round",
         "event", "heat", "ballot", *_ITEMS, *_IDS),
    ),
    "ranked": Role(
        "what is ranked", "name", ("item",),
        ("model", "player", "competitor", "team", "candidate", "athlete", "driver", "horse", "runner", "option",
         "system", "name"),
    ),
    "rank": Role("the place in a ranking, 1 for the best", "number", ("rank",), ("place", "placement", "position")),
    "score_a": Role("the points of side A, of which the larger win", "number", ()),
    "score_b": Role("the points of side B", "number", ()),
    "winner_model": Role("the model that won", "name", ()),
    "loser_model": Role("the model that lost", "name", ()),
    "weight": Role("the weight of a judgment", "number", ()),
    "propensity": Role("the chance that a battle was of its pair", "number", ()),
    "count": Role(
        "the number of equal judgments that a row stands for", "number", (),
        ("count", "n", "votes", "nvotes", "times", "frequency", "freq"),
    ),
    "cluster": Role("the group of judgments that are resampled together", "name", ()),
    "time": Role("the time of a judgment", "name", ("time", "timestamp", "tstamp", "date", "datetime", "created_at")),
    "group": Role(
        "a group of judgments", "name", (),
        ("language", "lang", "category", "category_tag", "turn", "topic", "domain", "tournament", "subset", "dataset"),
    ),
}  # fmt: skip
#: The columns of both sides unless others are named.
USUAL_SIDES = ROLES["model_a"].names + ROLES["model_b"].names
#: Names of columns of results, in folded spelling; of labels of answers; and of labels in a table of their own.
RESULTS = tuple(folded(name) for name in ROLES["winner"].also)
ANSWER_LABELS = (*ROLES["human"].names, "label")
PAIR_LABELS = (*ROLES["human"].names, "winner", "verdict", "label")
#: Words in the names of columns of the scores of both sides, and in those of judges; words for one person, and for
#: what several people say together, or a key.
POINTS = ("score", "goals", "points", "sets", "runs")
_GOALS = {"tore", "heimtore", "gasttore", "punkte", "goles", "buts", "gol", "gols", "doelpunten", "fthg", "ftag", "hg",
          "ag"}  # fmt: skip
JUDGES = ("judge", "gpt", "claude", "gemini", "llama", "llm", "grader", "verdict", "prediction", "evaluator", "auto")
ONE_PERSON = {"human", "humans", "annotator", "rater", "expert", "worker", "person", "labeller", "labeler", "crowd"}
TOGETHER = {"majority", "consensus", "adjudicated", "gold", "label", "truth", "key", "people"}
#: Names of columns of who voted, in folded spelling.
_VOTERS = [folded(name) for name in (*ROLES["rater"].names, *ROLES["rater"].also)]
#: Columns of how often the first side won, drew and lost.
COUNTED = (("won", "wins", "win"), ("tied", "ties", "tie", "drawn", "draws", "draw"), ("lost", "losses", "loss"))
#: Their names together, which are no benchmarks of a model.
RESULT_COUNTS = frozenset(name for names in (*COUNTED, ("lose",)) for name in names)
#: Columns of results where one column is not enough: one of each row is 1; battles that side A won, ties, and battles
#: that side B won.
ONE_HOT_COLUMNS = ("winner_model_a", "winner_model_b", "winner_tie")
COUNT_COLUMNS = ("wins_a", "ties", "wins_b")
WIN_COLUMNS = (COUNT_COLUMNS[0], COUNT_COLUMNS[2])  # of a table without ties
#: Names by which a result is found if the user names none; and "count", which must not stand beside single battles.
STANDARD_RESULTS = ("winner", "target", *ONE_HOT_COLUMNS, *COUNT_COLUMNS, "count")
#: Columns of a judge's scores of both sides, and of verdicts that were given with side A shown first, and side B.
SCORES = ("scores_a", "scores_b")
ORDERS = ("verdict_a_first", "verdict_b_first")
#: Words in names of columns of a table with a row for each model that are no scores: what sums up the others, and
#: what is known of a model.
KNOWN_OF_MODELS = re.compile(
    "rank|ranking|params?|parameters|size|layers|flops|compute|date|released?|year|month|price|cost|usd|latency|speed|"
    "seconds|minutes|hours|tokens|context|votes|likes|downloads|co2|id"
)
NO_SCORES = re.compile(f"average|avg|mean|median|overall|total|aggregate|index|elo|rating|{KNOWN_OF_MODELS.pattern}")


def are_points(name: Any) -> bool:
    """Return whether a column is called after goals or other points of a side."""
    return any(word in folded(name) for word in POINTS) or not _GOALS.isdisjoint([folded(name), *words_of(name)])


#: Names of what sums up others: of a row, a column, or an item.
SUMS = re.compile(
    "(grand)?totals?|sum|summe|gesamt|insgesamt|average|avg|mean|overall|mittel(wert)?|durchschnitt|moyenne|"
    "promedio|media|macroaverage|microaverage"
)
_NO_DIGITS = re.compile(r"\D{3,30}")


def sums_among(names: Iterable[Any]) -> list[str]:
    """Return names of what sums up others; of an item in a benchmark its own name counts."""
    own = (name[-1] if isinstance(name, tuple) else name for name in names)
    texts = (name for name in own if isinstance(name, str) and _NO_DIGITS.fullmatch(name))  # most items have some
    return list(dict.fromkeys(name for name in texts if SUMS.fullmatch(folded(name))))


def usual_column(columns: Iterable[Any], named: str | None, usual: str | Sequence[str]) -> str | None:
    """Return the column that is ``named``, or else the first with a usual name of a role, or from a list; or None.

    ``columns`` is a table, or a list of its names.
    """
    names = ROLES[usual].names if isinstance(usual, str) else usual
    column = named or next(iter(columns_of(columns, names)), None)
    if column is not None:
        require_column(columns, column)
    return column


def usual_columns(columns: Iterable[Any], **named: str | None) -> dict[str, str | None]:
    """Return the columns by role, each the one that is `usual_column` for its role."""
    return {role: usual_column(columns, name, role) for role, name in named.items()}


def has_usual_sides(columns: Iterable[Any]) -> bool:
    """Return whether a table, or a list of its names, has the columns model_a and model_b, in any spelling."""
    return len(columns_of(columns, USUAL_SIDES)) == len(USUAL_SIDES)


def columns_of(columns: Iterable[Any], names: Sequence[str]) -> list[Any]:
    """Give the columns of a table, or of a list, with some of the names, in any spelling, in the order of the names.

    A column of just that name goes before others, and the first before later ones.
    """
    there = list(columns)
    by_name = {folded(column): column for column in reversed(there)} | {column: column for column in there}
    found = (by_name.get(name, by_name.get(folded(name))) for name in names)
    return list(dict.fromkeys(column for column in found if column is not None))


def guessed_columns(frame: pd.DataFrame, role: str) -> list[str]:
    """Return the columns that may have a role, by all of its names; no lists and records, and of numbers no text."""
    names = [str(name) for name in columns_of(frame, (*ROLES[role].names, *ROLES[role].also))]
    if ROLES[role].kind == "number":
        return [
            name for name in names if pd.api.types.is_numeric_dtype(in_numbers(frame[name], SCORES_IN_WORDS)[0].dtype)
        ]
    return [name for name in names if is_plain(frame[name])]


def guessed_column(frame: pd.DataFrame, role: str) -> str | None:
    """Return the first of `guessed_columns`; None where there is none."""
    return next(iter(guessed_columns(frame, role)), None)


def voter_columns(names: Sequence[Any]) -> list[Any]:
    """Return the columns that may say who voted, those with the usual names first; none that is there twice."""
    columns = [name for name in names if folded(name) in _VOTERS and list(names).count(name) == 1]
    return sorted(columns, key=lambda name: _VOTERS.index(folded(name)))


def is_plain(column: Any) -> bool:
    """Return whether values can be told apart; lists and records, such as chat prompts, cannot."""
    try:
        factorized(column) if isinstance(column, np.ndarray) else column.nunique()
    except TypeError:
        return False
    return True


def n_values(frame: pd.DataFrame, name: str) -> int:
    """Return how many values a column has."""
    return int(frame[name].nunique()) if is_plain(frame[name]) else len(frame)
