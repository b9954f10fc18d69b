"""Battles read from a table: which columns it needs, the results, weights and counts of rows, and what is left out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast, get_args

import numpy as np

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice
from jaxeval.data.columns import (
    Columns,
    Rows,
    count_rows,
    encode_models,
    factorized,
    first_place,
    folded,
    renames,
    renumbered,
    require_column,
    told_renames,
    without_blanks,
)
from jaxeval.data.conditions import columns_of, rows_where
from jaxeval.data.labels import STANDARD, LabelledResults, Labels, Sides, check_labels, read_labels
from jaxeval.data.nested_columns import with_fields
from jaxeval.data.numbers import numbers, reject_values, weights_of, whole_numbers
from jaxeval.data.report import DataReport, Voters
from jaxeval.data.roles import (
    COUNT_COLUMNS,
    ONE_HOT_COLUMNS,
    STANDARD_RESULTS,
    USUAL_SIDES,
    WIN_COLUMNS,
    is_plain,
    voter_columns,
)
from jaxeval.errors import ColumnError, DataError, NoRowsError
from jaxeval.lazy_names import pd
from jaxeval.options.columns import BothBad, MissingResult, VoteReading
from jaxeval.options.field import again, option
from jaxeval.options.resampling import DrawnTogether
from jaxeval.plain_tables import PlainTable, in_pandas
from jaxeval.wording import MODEL, competitor_word, counted, did_you_mean, listed

#: Counts are summed as doubles, which are exact up to here.
_MOST_BATTLES = 2**53
#: The smallest propensity: its inverse is a weight.
_LEAST_PROPENSITY = 1e-50


class ReadColumns(NamedTuple):
    """The columns that a reader of battles names, by what they are for."""

    sides: tuple[str, str]
    results: tuple[str, ...]
    further: tuple[str, ...]  # of counts, weights and clusters
    standard: tuple[str, ...]  # names by which a result is found, if the user names none


class BattleReading(VoteReading):
    """How a table of battles is read: arguments of `Battles.from_pandas`."""

    cluster: str | None = again(DrawnTogether, "cluster")
    competitor: str | Sequence[str] | None = option(None, "What competes, in a word.", flag="")

    def __post_init__(self) -> None:
        """Check what needs no table."""
        if (self.winner_model is None) != (self.loser_model is None):
            raise ValueError(
                "winner_model= and loser_model= go together: name both (on the command line --winner-model and "
                "--loser-model), or winner= of labels"
            )
        results = [f"{name}=" for name in ("winner", "target", "scores", "counts") if getattr(self, name) is not None]
        results += ["winner_model= and loser_model="] if self.winner_model is not None else []
        if len(results) > 1:
            raise ValueError(f"give the result once, got {' and '.join(results)}")
        if self.labels is not None:
            if results and self.winner is None:
                raise ValueError(f"labels= belongs to a column of labels, winner=: leave out labels= or {results[0]}")
            check_labels(self.labels)
        if self.counts is not None and (isinstance(self.counts, str) or len(self.counts) != len(COUNT_COLUMNS)):
            raise ValueError(f"counts= must name three columns, ('wins_a', 'ties', 'wins_b'), got {self.counts!r}")
        if self.scores is not None and (isinstance(self.scores, str) or len(self.scores) != 2):
            raise ValueError(f"scores= must name the columns of both sides, ('home', 'away'), got {self.scores!r}")
        if not (self.tie_within >= 0 and np.isfinite(self.tie_within)):
            raise ValueError(f"tie_within must be a finite difference of scores >= 0, got {self.tie_within!r}")
        if self.tie_within and self.scores is None:
            raise ValueError("tie_within= needs scores=, which is not given")
        for name, value, known in (("both_bad", self.both_bad, BothBad), ("missing", self.missing, MissingResult)):
            if value not in get_args(known):
                check_choice(name, value, known)

    @cached_property
    def roles(self) -> ReadColumns:
        """The columns that are named."""
        sides = self.model_a, self.model_b
        if self.winner_model is not None and self.loser_model is not None:
            sides = self.winner_model, self.loser_model
        results = [name for name in (self.winner, self.target) if name is not None]
        results += [*(self.scores or ()), *(self.counts or ())]
        further = [name for name in (self.count, self.weight, self.propensity, self.cluster) if name is not None]
        standard = () if results or self.winner_model is not None else STANDARD_RESULTS
        return ReadColumns(sides, tuple(results), tuple(further), standard if self.count is None else standard[:-1])

    def results_of(self, names: Collection[Any]) -> tuple[str, ...]:
        """Return the columns of results of a table with these columns: those that are named, or of standard names."""
        if not self.roles.standard:
            return self.roles.results
        found = tuple(name for name in ("winner", "target") if name in names)
        several = (ONE_HOT_COLUMNS, COUNT_COLUMNS, WIN_COLUMNS)
        found = found or next((x for x in several if all(name in names for name in x)), ())
        if not found:
            raise ColumnError(
                f"no result column: expected 'winner', 'target', the one-hot columns {', '.join(ONE_HOT_COLUMNS)}, or "
                f"the counts {', '.join(COUNT_COLUMNS)}; the table has {listed(names)} (name another "
                "with winner=, target= or scores=, or winner_model= and loser_model=; on the command line --winner, "
                f"--target, --scores, or --winner-model and --loser-model){did_you_mean('winner', names)}"
            )
        if "count" in names and self.count is None and found not in (COUNT_COLUMNS, WIN_COLUMNS):
            alone = f"name the result ({found[0]}={found[0]!r}, on the command line --{found[0]} {found[0]})"
            raise DataError(
                f"the table has a column 'count' beside {found[0]!r}: if it says how many battles a row stands for, "
                "name it (count='count', on the command line --count count); if not, "
                f"{'drop or rename it' if found == ONE_HOT_COLUMNS else alone}"
            )
        return found

    def needed(self, keep: Sequence[str] = ()) -> Columns:
        """Return the columns to read of a file: those that are named, of its condition, of results, and ``keep``."""
        roles = self.roles
        named, beside = [*roles.sides, *roles.results, *roles.further, *keep], roles.standard
        if self.target not in (None, "winner"):
            beside = ("winner",)
        known = {folded(name) for name in (*named, *roles.standard)}
        named += [name for name in (columns_of(self.where) if self.where else ()) if folded(name) not in known]
        return Columns(tuple(dict.fromkeys(named)), beside, self.results_of if roles.standard else None)


def read_battle_rows(
    frame: Any, reading: BattleReading, rows: Rows | None, keep: Sequence[str] | None
) -> dict[str, Any]:
    """Return the fields of `Battles` in a table, in pandas or not, with the errors of `Battles.from_pandas`."""
    roles, target, count = reading.roles, reading.target, reading.count
    cluster, both_bad = reading.cluster, reading.both_bad
    # The usual names of sides say nothing of what competes.
    is_said = reading.competitor is not None or roles.sides != USUAL_SIDES
    noun = competitor_word(reading.competitor, *roles.sides) if is_said else None
    competitor = noun or MODEL
    if len(frame) == 0:
        raise NoRowsError("the table has no rows: nothing to rate")
    named = [*roles.sides, *roles.results, *roles.further]
    told: tuple[str, ...] = ()
    if renamed := renames([*named, *roles.standard], frame.columns):
        frame, told = frame.rename(columns=renamed), told_renames(renamed)
    names = list(frame.columns)
    if not {*names} >= {*named, *(keep or ())}:
        frame = with_fields(in_pandas(frame), [*named, *(keep or ())])
        names = list(frame.columns)
    used = {*named, *(c for c in ("winner", "target", *ONE_HOT_COLUMNS) if c in names)}
    if len({*names}) < len(names) or not used.issubset(names):
        require_column(frame, *named, *(used - {*named}))
    results = reading.results_of(names)
    if results == WIN_COLUMNS:
        told += (f"no column of ties beside {results[0]!r} and {results[1]!r}: none is counted",)
    firsts = [column[0] if isinstance(column := frame[side], np.ndarray) else column.iat[0] for side in roles.sides]
    if not all(isinstance(first, str) and first == first.strip() for first in firsts):
        frame, stripped = without_blanks(in_pandas(frame), roles.sides)
        told += stripped
    n_rows = len(frame) if rows is None else int(rows.times.sum())
    n_excluded = n_missing = 0
    if reading.where is not None:
        are_counted = count is not None or (rows is not None and bool((rows.times > 1).any()))
        met = rows_where(frame, reading.where, counted=are_counted)
        frame, rows, n_excluded = _selected(frame, rows, met, n_rows, f"none meets the condition {reading.where!r}")
    if reading.missing == "drop":
        whole, why = there(frame, [*roles.sides, *results]), f"every row lacks {competitor.a_one} or a result"
        frame, rows, n_missing = _selected(frame, rows, whole, n_rows, why)
    try:
        models, first, second = encode_models(frame, *roles.sides, rows)
        if target is None and (reading.winner is not None or results == ("winner",)):
            times = None if count is None else whole_numbers(frame[count], count, rows)
            advice = ", or name a column of probabilities that side A wins with target= (on the command line --target)"
            labels, sides = cast(Labels, reading.labels), Sides(models, first, second, roles.sides)  # checked
            outcome = read_labels(frame[results[0]], labels, sides, rows, name=results[0], advice=advice)._replace(
                times=times
            )
        else:
            outcome = read_outcomes(frame, reading, results, rows)
    except DataError as error:
        lacking = ~there(frame, [*roles.sides, *results])
        if not lacking.any():
            raise
        n = counted(count_rows(lacking, rows), "row lacks", "rows lack")
        advice = "missing='drop' (on the command line --missing drop) leaves them out"
        raise DataError(f"{error}; {n} {competitor.a_one} or a result, and {advice}") from error
    weights = outcome.weight
    if reading.weight is not None or reading.propensity is not None:
        weights = _weights(frame, reading, rows) * (1.0 if weights is None else weights)
    counts, targets, kept = outcome.times, outcome.target, outcome.row
    if kept is not None:
        first, second, weights = first[kept], second[kept], None if weights is None else weights[kept]
    n_empty_rows = 0 if counts is None else count_rows(counts.reshape(len(frame), -1).max(1) == 0, rows)
    if rows is not None:
        times = rows.times if kept is None else rows.times[kept]
        # The product, or the number that is too many wherever it would reach it.
        counts = times if counts is None else np.minimum(times.astype(float) * counts, _MOST_BATTLES).astype(np.int64)
    if counts is not None and counts.sum(dtype=float) >= _MOST_BATTLES:
        raise DataError(f"{counts.sum(dtype=float):.3g} battles are more than can be counted: at most 2**53")

    no_weight = np.zeros(len(first), bool) if weights is None else weights == 0
    kinds = np.stack([first == second, outcome.both_bad & (both_bad == "drop"), no_weight, outcome.both_bad])
    n_self, n_bad_left_out, n_zero_weight, n_both_bad = (kinds.sum(1) if counts is None else kinds @ counts).tolist()
    stays = ~kinds[:3].any(0)
    if counts is not None:
        stays &= counts > 0
    beside = target not in (None, "winner") and "winner" in frame.columns
    of_winner = opposed_winners(frame["winner"], targets) if beside else ()
    n_opposed, n_decided = [n_battles_of(which & stays, counts) for which in of_winner] or [0, 0]
    met = np.ones(len(models), bool)
    if not stays.all():
        kept = np.flatnonzero(stays) if kept is None else kept[stays]
        first, second, targets = first[stays], second[stays], targets[stays]
        weights, counts = None if weights is None else weights[stays], None if counts is None else counts[stays]
        met, (first, second) = renumbered(len(models), first, second)
    if len(first) == 0:
        empty = f", and {counted(n_empty_rows, 'row counts', 'rows count')} no battle" if n_empty_rows else ""
        raise DataError(
            f"no battle is left of {counted(n_rows, 'row')}: {n_self:,} of {competitor.a_one} against itself, "
            f"{n_bad_left_out:,} both-bad left out, {n_zero_weight:,} of weight 0{empty}"
        )
    voters = () if cluster is not None else voter_columns(names)
    ties = targets == 0.5
    report = DataReport(
        n_rows=n_rows, n_battles=len(first) if counts is None else int(counts.sum()), n_models=int(met.sum()),
        n_ties=int(ties.sum() if counts is None else counts[ties].sum()), n_both_bad=n_both_bad, both_bad=both_bad,
        n_self_battles=n_self, n_zero_weight=n_zero_weight, models_left_out=tuple(models[~met]),
        n_empty_rows=n_empty_rows, target=target if beside else None, n_opposed=n_opposed, n_decided=n_decided,
        n_missing=n_missing, n_excluded=n_excluded,
        n_effective=None if weights is None or reading.propensity is None else effective_battles(weights, counts),
        read_as=(*told, *([outcome.told] if outcome.told else [])), label_families=outcome.families, _said=noun,
        _voters=_voters(frame, kept, voters, counts) if voters else None,
    )  # fmt: skip
    if weights is not None and np.all(weights == 1):
        weights = None
    if counts is not None and np.all(counts == 1):
        counts = None
    used = {*used, *results} - {cluster}
    further = [c for c in frame.columns if c not in used]
    if keep is not None:
        further = [cluster] if cluster is not None else []
        for column in keep:
            require_column(frame, column)
            further += [] if column in further or column in used else [column]
    return {
        "models": models[met], "model_a": first, "model_b": second, "target": targets, "weight": weights,
        "report": report, "kept": kept, "count": counts, "cluster": cluster,
        "columns": frame[further] if isinstance(frame, PlainTable) else frame[further].copy(deep=False),
        "rows": rows if rows is None or kept is None else rows.of(kept),
    }  # fmt: skip


def n_battles_of(which: Bool, count: Int | None) -> int:
    """Give how many battles the rows ``which`` (N,) hold; row n holds ``count[n]``, or one where ``count`` is None."""
    return int(which.sum() if count is None else count[which].sum())


def _voters(frame: Any, kept: Int | None, columns: Sequence[str], count: Int | None) -> Voters | None:
    """Return who voted in rows, if one of the ``columns`` says it; votes without a voter are each of another."""
    name = next((name for name in columns if is_plain(frame[name])), None)
    if name is None:
        return None
    code, people = factorized(frame[name])
    code = code if kept is None else code[kept]
    unknown = code < 0
    known = np.bincount(code[~unknown], None if count is None else count[~unknown], len(people))
    known = known[np.bincount(code[~unknown], minlength=len(people)) > 0]
    n_votes = np.concatenate([known, np.ones(n_battles_of(unknown, count))])
    return Voters(name, len(n_votes), effective_battles(n_votes, None), int(n_votes.sum()))


def effective_battles(weight: Float, count: Int | None) -> float:
    """Return how many battles of equal weight say as much as those of ``weight`` (N,): (sum w)^2 / sum w^2 (Kish)."""
    times = np.ones(len(weight)) if count is None else count
    return float((times @ weight) ** 2 / (times @ weight**2))


def _selected(frame: Any, rows: Rows | None, keep: Bool, n_rows: int, why: str) -> tuple[Any, Rows | None, int]:
    """Select rows of a table, which rows of the input they are, and how many of these are left out; an error if all."""
    if keep.all():
        return frame, rows, 0
    if not keep.any():
        raise NoRowsError(f"no battle is left of {counted(n_rows, 'row')}: {why}")
    rows = rows or Rows(np.ones(len(frame), np.int64), np.arange(len(frame)))
    return frame[keep], rows.of(np.flatnonzero(keep)), count_rows(~keep, rows)


def _weights(frame: pd.DataFrame, reading: BattleReading, rows: Rows | None) -> Float:
    """Return (N,) weights of a column over propensities of another, or of one of these."""
    weights = np.ones(len(frame)) if reading.weight is None else weights_of(frame[reading.weight], reading.weight, rows)
    if reading.propensity is None:
        return weights
    values = numbers(frame[reading.propensity], reading.propensity, rows)
    rule = (
        "propensities must be above 0 and at most 1: where pairs were drawn at random, each has 1 divided by the "
        "number of pairs"
    )
    reject_values(values, ~((values >= _LEAST_PROPENSITY) & (values <= 1)), reading.propensity, rule, rows)
    both = weights * values
    if reading.weight is not None and np.ptp(values) > 0 and np.ptp(both) < 1e-6 * both[0]:
        raise DataError(
            f"column {reading.weight!r} is the inverse of column {reading.propensity!r}, as next_battles gives both: "
            "naming both would count it twice. Leave one out"
        )
    return weights / values


def there(frame: Any, columns: Sequence[str]) -> Bool:
    """Return (N,) whether a row has a value in each of the columns."""
    whole = np.ones(len(frame), bool)
    for name in dict.fromkeys(columns):
        try:
            codes, distinct = factorized(frame[name])
        except TypeError:  # lists and the like, which are reported later
            whole &= frame[name].notna().to_numpy()
            continue
        blank = [isinstance(value, str) and not value.strip() for value in distinct]
        whole &= ~np.array([*blank, True])[codes]
    return whole


def read_outcomes(
    frame: pd.DataFrame, reading: BattleReading, results: Sequence[str], rows: Rows | None = None
) -> LabelledResults:
    """Return the results in columns that hold no labels; a table of counts has three per row."""
    if reading.counts or results in (COUNT_COLUMNS, WIN_COLUMNS):
        if reading.count is not None:
            raise ValueError(
                f"the columns {', '.join(results)} are counts already: leave out count= (on the command line --count)"
            )
        counts = np.stack([whole_numbers(frame[c], c, rows) for c in results], 1)
        counts = np.insert(counts, 1, 0, axis=1) if results == WIN_COLUMNS else counts
        none = np.zeros(counts.size, bool)
        row = np.repeat(np.arange(len(frame)), len(COUNT_COLUMNS))
        return LabelledResults(np.tile([1.0, 0.5, 0.0], len(frame)), none, None, row=row, times=counts.reshape(-1))
    count = None if reading.count is None else whole_numbers(frame[reading.count], reading.count, rows)
    if reading.winner_model is not None:  # side A always wins
        target = np.ones(len(frame))
    elif reading.scores is not None:
        scores = []
        for name in results:
            values = numbers(frame[name], name, rows)
            reject_values(values, (values < 0) | np.isinf(values), name, "scores must be finite and >= 0", rows)
            scores.append(values)
        target = by_difference(scores[0], scores[1], reading.tie_within)
    elif results == ONE_HOT_COLUMNS:
        target = _one_hot_targets(frame, rows)
    elif len(results) > 1:
        raise DataError(
            "the table has both a 'winner' and a 'target' column: name the one to use, winner='winner' or "
            "target='target' (on the command line --winner winner or --target target)"
        )
    else:
        target = numbers(frame[results[0]], results[0], rows)
        reject_values(target, (target < 0) | (target > 1), results[0], "targets must lie in [0, 1]", rows)
    return LabelledResults(target, np.zeros(len(target), bool), None, times=count)


def by_difference(of_a: Float, of_b: Float, tie_within: float) -> Float:
    """Return (N,) targets by scores; the larger wins. 1.1 and 1.0 differ by 0.1, however the last digit is rounded."""
    difference = of_a - of_b
    close = np.abs(difference) <= tie_within + 4 * np.finfo(float).eps * np.maximum(np.abs(of_a), np.abs(of_b))
    return np.where(close, 0.5, np.where(difference > 0, 1.0, 0.0))


def opposed_winners(winner: pd.Series, target: Float) -> tuple[Bool, Bool]:
    """Return (N,) whether label and target name opposite sides, and whether both name one; unknown labels do not."""
    try:
        codes, labels = factorized(winner)
    except TypeError:  # values that are no labels
        codes, labels = np.full(len(winner), -1), pd.Index([])
    side_of = np.array([*(STANDARD[label].target if label in STANDARD else 0.5 for label in labels), 0.5]) - 0.5
    product = side_of[codes] * (target - 0.5)
    return product < 0, product != 0


def _one_hot_targets(frame: pd.DataFrame, rows: Rows | None) -> Float:
    values = np.stack([numbers(frame[c], c, rows) for c in ONE_HOT_COLUMNS])
    bad = ~(np.isin(values, (0, 1)).all(0) & (values.sum(0) == 1))
    if bad.any():
        shown = ", ".join(f"{v:g}" for v in values[:, bad.argmax()])
        raise DataError(
            f"columns {', '.join(ONE_HOT_COLUMNS)} must hold one 1 and two 0s in each row; "
            f"{counted(count_rows(bad, rows), 'row does', 'rows do')} not"
            f"{first_place(bad, rows, f': {shown}') or f' (the first is {shown})'}"
        )
    return values[0] + 0.5 * values[2]
