"""Battles read from a table: results, weights and counts of rows, and what is left out of them and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice
from jaxeval.data.columns import (
    Rows,
    count_rows,
    encode_models,
    numbers,
    reject_values,
    renames,
    renumbered,
    require_column,
    told_renames,
    without_blanks,
)
from jaxeval.data.conditions import rows_where
from jaxeval.data.labels import Sides
from jaxeval.data.nested_columns import with_fields
from jaxeval.data.outcomes import ONE_HOT_COLUMNS, BattleReading, opposed_winners, read_outcomes, there
from jaxeval.data.report import DataReport, Voters
from jaxeval.data.roles import is_plain, voter_columns
from jaxeval.errors import DataError, NoRowsError
from jaxeval.lazy_names import pd
from jaxeval.options.columns import BothBad, MissingResult
from jaxeval.wording import LONGEST_WORD, MODEL, Noun, counted

#: Words of side A and of side B. They say where the competitors stand, and not what these are.
_SIDES = (
    ("a", "b"), ("1", "2"), ("one", "two"), ("first", "second"), ("left", "right"), ("home", "away"),
    ("white", "black"), ("red", "blue"), ("winner", "loser"), ("winning", "losing"),
)  # fmt: skip
#: Words beside the one that says what is rated: ``player_name_a`` holds players.
_FORMS = {"name", "id"}
#: Words that say nothing of what is rated, and other words for a model.
_UNCLEAR = {"side", "label", "key", "code", "number", "column", "lm", "llm", "models", "entry", "object", "value"}

#: What competes where the columns' names are those of sides and nothing else, as usual in data of chess and of sports.
_OF_SIDES: dict[tuple[str, ...], str] = {("white", "black"): "player", ("home", "away"): "team"}
#: The words of the columns that are read unless others are named.
_DEFAULTS = [["model", "a"], ["model", "b"]]


def competitor_word(noun: str | Sequence[str] | None, *columns: str) -> Noun | None:
    """Give what competes: as somebody says, or as the ``columns`` are called that hold it; None where neither is clear.

    Columns model_a and model_b say nothing: jaxeval expects these names of every table.

    Args:
        noun: a word, a word and its plural, or None.
        columns: those of side A and side B, as player_1 and player_2; or a single one.

    Raises:
        TypeError: ``noun`` is no text.
        ValueError: ``noun`` is no word, or too long a one.
    """
    if noun is not None:
        return Noun.of(noun)
    words = [_words(name) for name in columns]
    if words == _DEFAULTS:
        return None
    if len(columns) == 2:
        sides = tuple(" ".join(word for word in parts if word not in _FORMS) for parts in words)
        if (usual := _OF_SIDES.get(sides)) is not None:
            return Noun.of(usual)
        words = next((rest for side in _SIDES if (rest := _without(words, side)) is not None), [])
    left = {tuple(word for word in parts if word not in _FORMS) for parts in words}
    if len(left) != 1:
        return None
    word = " ".join(left.pop())
    clear = re.fullmatch(r"[a-z]{2,}( [a-z]+)?", word) is not None and word not in _UNCLEAR
    clear &= len(word) <= LONGEST_WORD
    # "players_1" is a plural already, "class_1" is none.
    return Noun.of(word) if clear and (not word.endswith("s") or word.endswith("ss")) else None


def _words(name: str) -> list[str]:
    """Return the words of a column's name: player1_id, Player 1 and playerOne have two or three."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z0-9])", " ", str(name))
    return re.findall(r"[^\W_]+", apart.casefold())


def _without(words: Sequence[list[str]], sides: tuple[str, str]) -> list[list[str]] | None:
    """Return the words of two columns without those of their sides; None where they have not one each, at one place."""
    first, second = words
    if first.count(sides[0]) != 1 or second.count(sides[1]) != 1 or first.index(sides[0]) != second.index(sides[1]):
        return None
    return [[word for word in parts if word != side] for parts, side in zip(words, sides, strict=True)]


#: Counts are summed as doubles, which are exact up to here.
_MOST_BATTLES = 2**53
#: The smallest propensity: its inverse is a weight.
_LEAST_PROPENSITY = 1e-50


def read_battle_rows(
    frame: pd.DataFrame, reading: BattleReading, rows: Rows | None, keep: Sequence[str] | None
) -> dict[str, Any]:
    """Return the fields of `Battles` in a table, with the errors of `Battles.from_pandas`."""
    (model_a, model_b), target, count, where = reading.roles.sides, reading.target, reading.count, reading.where
    weight, propensity, cluster, both_bad = reading.weight, reading.propensity, reading.cluster, reading.both_bad
    noun = competitor_word(reading.competitor, model_a, model_b)
    competitor = noun or MODEL
    check_choice("both_bad", both_bad, BothBad)
    check_choice("missing", reading.missing, MissingResult)
    if len(frame) == 0:
        raise NoRowsError("the table has no rows: nothing to rate")
    roles = reading.roles
    named = [*roles.sides, *roles.results, *roles.further]
    renamed = renames([*named, *roles.standard], frame.columns)
    frame = with_fields(frame.rename(columns=renamed), [*named, *(keep or ())])
    standard = [c for c in ("winner", "target", *ONE_HOT_COLUMNS) if c in frame.columns]
    require_column(frame, *named, *standard)
    results = reading.results_of(frame.columns)
    frame, stripped = without_blanks(frame, roles.sides)
    n_rows = count_rows(np.ones(len(frame), bool), rows)
    n_excluded = n_missing = 0
    if where is not None:
        met = rows_where(frame, where, counted=count is not None or (rows is not None and bool((rows.times > 1).any())))
        n_excluded = count_rows(~met, rows)
        if n_excluded == n_rows:
            raise NoRowsError(f"no battle is left of {counted(n_rows, 'row')}: none meets the condition {where!r}")
        frame, rows = _selected(frame, rows, met)
    if reading.missing == "drop":
        whole = there(frame, [*roles.sides, *results])
        n_missing = count_rows(~whole, rows)
        if not whole.any():
            raise NoRowsError(
                f"no battle is left of {counted(n_rows, 'row')}: every row lacks {competitor.a_one} or a result"
            )
        frame, rows = _selected(frame, rows, whole)
    try:
        models, first, second = encode_models(frame, model_a, model_b, rows)
        outcome = read_outcomes(frame, reading, Sides(models, first, second, roles.sides), results, rows)
    except DataError as error:
        lacking = ~there(frame, [*roles.sides, *results])
        if not lacking.any():
            raise
        n = counted(count_rows(lacking, rows), "row lacks", "rows lack")
        advice = "missing='drop' (on the command line --missing drop) leaves them out"
        raise DataError(f"{error}; {n} {competitor.a_one} or a result, and {advice}") from error
    weights = None if weight is None else _weights(frame[weight], rows)
    if outcome.weight is not None:
        weights = outcome.weight if weights is None else weights * outcome.weight
    if propensity is not None:
        propensities = _propensities(frame[propensity], rows)
        both = None if weights is None else weights * propensities
        if both is not None and np.ptp(propensities) > 0 and np.ptp(both) < 1e-6 * both[0]:
            raise DataError(
                f"column {weight!r} is the inverse of column {propensity!r}, as next_battles gives both: naming both "
                "would count it twice. Leave one out"
            )
        weights = (1.0 if weights is None else weights) / propensities
    counts, targets, kept = outcome.times, outcome.target, outcome.row
    if kept is not None:
        first, second, weights = first[kept], second[kept], None if weights is None else weights[kept]
    n_empty_rows = 0
    if counts is not None:
        n_empty_rows = count_rows(counts.reshape(len(frame), -1).max(1) == 0, rows)
    if rows is not None:
        times = rows.times if kept is None else rows.times[kept]
        if counts is not None:  # the product, or the number that is too many wherever it would reach it
            times = np.where(times.astype(float) * counts < _MOST_BATTLES, times * counts, _MOST_BATTLES)
        counts = times
    if counts is not None and counts.sum(dtype=float) >= _MOST_BATTLES:
        raise DataError(f"{counts.sum(dtype=float):.3g} battles are more than can be counted: at most 2**53")

    left_out = np.zeros((3, len(first)), bool)
    left_out[0] = first == second
    if both_bad == "drop":
        left_out[1] = outcome.both_bad
    if weights is not None:
        left_out[2] = weights == 0
    n_left_out = [n_battles_of(which, counts) for which in left_out]
    n_both_bad = n_battles_of(outcome.both_bad, counts)
    stays = ~left_out.any(0)
    if counts is not None:
        stays &= counts > 0
    beside = target not in (None, "winner") and "winner" in frame.columns
    sides = opposed_winners(frame["winner"], targets) if beside else ()
    n_sides = [n_battles_of(which & stays, counts) for which in sides] or [0, 0]
    if not stays.all():
        kept = np.flatnonzero(stays) if kept is None else kept[stays]
        first, second, targets = first[stays], second[stays], targets[stays]
        weights, counts = None if weights is None else weights[stays], None if counts is None else counts[stays]
    if len(first) == 0:
        empty = f", and {counted(n_empty_rows, 'row counts', 'rows count')} no battle" if n_empty_rows else ""
        raise DataError(
            f"no battle is left of {counted(n_rows, 'row')}: {n_left_out[0]:,} of {competitor.a_one} against itself, "
            f"{n_left_out[1]:,} both-bad left out, {n_left_out[2]:,} of weight 0{empty}"
        )
    met, (own_a, own_b) = renumbered(len(models), first, second)
    report = DataReport(
        n_rows=n_rows, n_battles=n_battles_of(np.ones(len(first), bool), counts), n_models=int(met.sum()),
        n_ties=n_battles_of(targets == 0.5, counts), n_both_bad=n_both_bad, both_bad=both_bad,
        n_self_battles=n_left_out[0], n_zero_weight=n_left_out[2], models_left_out=tuple(models[~met]),
        n_empty_rows=n_empty_rows, target=target if beside else None, n_opposed=n_sides[0], n_decided=n_sides[1],
        n_missing=n_missing, n_excluded=n_excluded,
        n_effective=None if weights is None or propensity is None else effective_battles(weights, counts),
        read_as=(*told_renames(renamed), *stripped, *([outcome.told] if outcome.told else [])),
        label_families=outcome.families, _said=noun,
        _voters=None if cluster is not None else _voters(frame if kept is None else frame.iloc[kept], counts),
    )  # fmt: skip
    if weights is not None and np.all(weights == 1):
        weights = None
    if counts is not None and np.all(counts == 1):
        counts = None
    used = {*named, *standard, *results} - {cluster}
    further = [c for c in frame.columns if c not in used]
    if keep is not None:
        further = [cluster] if cluster is not None else []
        for column in keep:
            require_column(frame, column)
            further += [] if column in further or column in used else [column]
    return {
        "models": models[met], "model_a": own_a, "model_b": own_b, "target": targets, "weight": weights,
        "report": report, "columns": frame[further].copy(deep=False), "kept": kept, "count": counts,
        "rows": rows if rows is None or kept is None else rows.of(kept), "cluster": cluster,
    }  # fmt: skip


def n_battles_of(which: Bool, count: Int | None) -> int:
    """Give how many battles the rows ``which`` (N,) hold; row n holds ``count[n]``, or one where ``count`` is None."""
    return int(which.sum() if count is None else count[which].sum())


def _voters(frame: pd.DataFrame, count: Int | None) -> Voters | None:
    """Return who voted, if a column says it; votes without a voter are each of another."""
    name = next((name for name in voter_columns(list(frame)) if is_plain(frame[name])), None)
    if name is None:
        return None
    code, people = pd.factorize(frame[name])
    unknown = code < 0
    known = np.bincount(code[~unknown], None if count is None else count[~unknown], len(people))
    n_votes = np.concatenate([known, np.ones(n_battles_of(unknown, count))])
    return Voters(name, len(n_votes), effective_battles(n_votes, None), int(n_votes.sum()))


def effective_battles(weight: Float, count: Int | None) -> float:
    """Return how many battles of equal weight say as much as those of ``weight`` (N,): (sum w)^2 / sum w^2 (Kish)."""
    times = np.ones(len(weight)) if count is None else count
    return float((times @ weight) ** 2 / (times @ weight**2))


def _selected(frame: pd.DataFrame, rows: Rows | None, keep: Bool) -> tuple[pd.DataFrame, Rows | None]:
    """Some rows of a table, and which rows of the input they are."""
    if keep.all():
        return frame, rows
    rows = rows or Rows(np.ones(len(frame), np.int64), np.arange(len(frame)))
    return frame[keep], rows.of(np.flatnonzero(keep))


def _weights(column: pd.Series, rows: Rows | None) -> Float:
    name = str(column.name)
    values = numbers(column, name, rows)
    reject_values(values, (values < 0) | np.isinf(values), name, "weights must be finite and >= 0", rows)
    extreme = (values > 0) & ((values < 1e-100) | (values > 1e100))
    rule = "weights must lie between 1e-100 and 1e100, or be 0 (only ratios matter)"
    reject_values(values, extreme, name, rule, rows)
    return values


def _propensities(column: pd.Series, rows: Rows | None) -> Float:
    name = str(column.name)
    values = numbers(column, name, rows)
    rule = (
        "propensities must be above 0 and at most 1: where pairs were drawn at random, each has 1 divided by the "
        "number of pairs"
    )
    reject_values(values, ~((values >= _LEAST_PROPENSITY) & (values <= 1)), name, rule, rows)
    return values
