"""The cells of a DataFrame as text: the kind of each column's quantity, its decimals, and which columns are intervals.

Screens, notebooks, documents and pages spell numbers by what is said here, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from math import floor, log10
from typing import Any, NamedTuple, TypeVar

import numpy as np

from jaxeval.arrays import Float
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import PlainTable, Whole
from jaxeval.wording import MODEL, Noun, capitalised, counted, named, visible_line

MISSING = "-"
#: Numbers beyond these are written with an exponent.
_LARGEST, _SMALLEST = 1e15, 1e-4
#: Numbers below are errors of rounding.
_NOTHING = 1e-15


class CellKind(NamedTuple):
    """A kind of quantity, and how its numbers are rounded and spelled."""

    name: str
    decimals: int | None = None  # of all numbers of a column; by default what suits the largest
    most: int | None = None  # decimals at most
    digits: int | None = None  # significant ones, of each number by itself
    grouped: bool = False  # whether thousands are set apart in small numbers, too
    percent: bool = False
    infinite: str | None = None  # what an infinite number says
    missing: str = MISSING


NUMBER = CellKind("number")
RATING = CellKind("rating", most=1, infinite="unrated")
ELO = CellKind("elo", decimals=1, grouped=True)  # differences, errors and widths
SHARE = CellKind("share")
NAME = CellKind("name")  # of models, which may be numbers, such as years
COUNT = CellKind("count", most=1, grouped=True, infinite="never")
#: All kinds by name. A table says in ``attrs["kinds"]`` by name which one a column holds.
KINDS = {kind.name: kind for kind in (
    NUMBER, RATING, ELO, SHARE, NAME, COUNT, CellKind("percent", percent=True), CellKind("p_value", digits=2),
    CellKind("agreement", decimals=2, grouped=True),  # of two raters: their errors are larger
    COUNT._replace(name="votes", missing="never"),  # that a claim takes
    CellKind("weight", digits=4), CellKind("time", digits=3), CellKind("money"), CellKind("gap", infinite="never"),
)}  # fmt: skip
#: Kinds of columns that say nothing of themselves, by their names; the first that fits counts.
_USUAL = {
    "model": "name", "above": "name", "below": "name",
    "rating": "rating", "elo": "elo", "p": "p_value", "share": "share", "probability": "share",
    "agreement": "agreement", "kappa": "agreement", "n": "count", "wins": "count", "ties": "count",
    "losses": "count", "battles": "count", "pairs": "count", "*_share": "share", "*_count": "count", "*_elo": "elo",
    "n_*": "count", "p_rank_*": "share", "p_*": "p_value", "votes*": "votes",
}  # fmt: skip

Frame = TypeVar("Frame", bound="pd.DataFrame | PlainTable")


def with_kinds(table: Frame, ends_of: str | None = None, **columns: str) -> Frame:
    """Say of which kind the quantities of columns are, as ``time="horizon typical"``, and return the table.

    Ends and errors of an estimate are of its kind, and those of a rating are distances in Elo. The columns ``lower``
    and ``upper`` are the ``ends_of`` a column, which they need not hold.
    """
    kinds = {name: kind for kind, names in columns.items() for name in names.split()}
    if unknown := set(columns) - set(KINDS):
        raise ValueError(f"no kind of quantity is called {named(sorted(unknown))}; there are {named(list(KINDS))}")
    if kinds:
        table.attrs["kinds"] = {**table.attrs.get("kinds", {}), **kinds}
    if ends_of is not None:
        table.attrs["ends_of"] = ends_of
    return table


def kinds_of(frame: pd.DataFrame) -> list[CellKind]:
    """Return the kind of each column's quantity: as the table says, or by what its name usually means."""
    declared = _declared(frame)
    return [KINDS.get(_kind_of(str(name), declared), NUMBER) for name in frame.columns]


def _declared(frame: pd.DataFrame) -> Mapping[str, str]:
    declared = frame.attrs.get("kinds")
    return declared if isinstance(declared, Mapping) else {}


def _kind_of(name: str, declared: Mapping[str, str]) -> str:
    if name in declared:
        return declared[name]
    stem = re.sub("_(lower|upper|se|standard_error|a|b)$", "", name)
    usual = (kind for pattern, kind in _USUAL.items() if fnmatchcase(stem, pattern))
    kind = declared.get(stem) or next(usual, "number")
    return "elo" if kind == "rating" and stem != name else kind


class Lines(str):
    """A cell that is written over several lines, and holds nobody's names."""

    __slots__ = ()


class Interval(NamedTuple):
    """Positions of three columns: an estimate, and the ends of its interval."""

    estimate: int
    lower: int
    upper: int


def only_counts(index: pd.Index) -> bool:
    """Return whether an index only numbers the rows: integers, and no name."""
    return index.nlevels == 1 and index.name is None and (len(index) == 0 or index.dtype.kind in "iu")


def column_at(table: Any, k: int) -> Any:
    """Return the column at a place of a table, in pandas or not."""
    return table[table.columns[k]] if isinstance(table, PlainTable) else table.iloc[:, k]


def is_number(column: Any) -> bool:
    """Return whether a column holds numbers, and no truth values."""
    return column.dtype.kind in "iufc"


def with_index(frame: Any) -> tuple[Any, int]:
    """Return the table with its index as leading columns, and their number: 0 where the index only numbers the rows."""
    if isinstance(frame, PlainTable):
        return frame, 0
    index = frame.index
    if isinstance(index, pd.RangeIndex) and index.name is None:
        return frame, 0
    levels = [index.get_level_values(k) for k in range(index.nlevels)]
    leading = pd.concat([pd.Series(level, frame.index) for level in levels], axis=1)
    leading.columns = ["" if name is None else name for name in index.names]
    leading = leading.astype(object)  # names, also where they are numbers
    if frame.columns.nlevels > 1:
        leading.columns, frame = pd.Index(leading.columns), frame.set_axis(frame.columns.to_flat_index(), axis=1)
    joined = pd.concat([leading, frame], axis=1)
    joined.attrs = frame.attrs
    return joined, index.nlevels


def find_intervals(frame: Any) -> list[Interval]:
    """Find estimates that have an interval: columns ``x``, ``x_lower``, ``x_upper``, or a number followed by its ends.

    Columns ``lower`` and ``upper`` belong to the column that the table declares, or to one of a declared kind before
    them: basic intervals need not hold their estimate. Others, as ``y_lower`` without a column ``y``, belong to the
    nearest number on their left that lies between them.
    """
    names = [str(name) for name in frame.columns]
    intervals = []
    for low, name in enumerate(names):
        if not (name == "lower" or name.endswith("_lower")) or f"{name[:-5]}upper" not in names:
            continue
        high = names.index(f"{name[:-5]}upper")
        stem = name.removesuffix("lower").removesuffix("_")
        if (middle := _estimate_of(frame, names, stem, low, high)) is not None:
            intervals.append(Interval(middle, low, high))
    return intervals


def _estimate_of(frame: Any, names: list[str], stem: str, low: int, high: int) -> int | None:
    ends = as_numbers(column_at(frame, low)), as_numbers(column_at(frame, high))
    if (declared := stem or frame.attrs.get("ends_of")) in names:
        return names.index(declared)
    if low and names[low - 1] in _declared(frame):
        return low - 1
    for k in range(low - 1, -1, -1):
        if column_at(frame, k).dtype.kind == "f" and not names[k].endswith(("error", "lower", "upper")):
            value = as_numbers(column_at(frame, k))
            known = ~(np.isnan(value) | np.isnan(ends[0]) | np.isnan(ends[1]))
            if known.any() and ((ends[0] <= value) & (value <= ends[1]))[known].all():
                return k
    return None


def as_numbers(column: Any) -> Float:
    """Return (R,) doubles, NaN where a value is missing or no number."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return np.asarray(column, float)
    if column.dtype.kind in "biufc":
        return column.to_numpy(float, na_value=np.nan)
    return np.full(len(column), np.nan)


def cell_texts(frame: Any) -> list[list[str]]:
    """Return the cells of each column by the kind of its quantity; an estimate and its interval have equal decimals."""
    kinds = kinds_of(frame)
    together = [[k] for k in range(frame.shape[1])]
    for interval in find_intervals(frame):
        for k in interval:
            together[k] = list(interval)
            if k != interval.estimate and (kinds[k] is NUMBER or kinds[interval.estimate] is RATING):
                kinds[k] = kinds[interval.estimate]._replace(infinite=None)
    return [
        _column(column_at(frame, k), [column_at(frame, x) for x in like], kind)
        for k, (like, kind) in enumerate(zip(together, kinds, strict=True))
    ]


def _column(column: Any, like: Sequence[Any], kind: CellKind) -> list[str]:
    """Return the cells of a column; floating-point numbers get the decimals that suit the columns ``like``."""
    if kind is NAME:
        return [kind.missing if is_missing(value) else visible_line(value) for value in column]
    if isinstance(column, Whole):
        return [kind.missing if value != value else f"{value:,.0f}" for value in column.tolist()]
    if column.dtype.kind == "b":
        return [MISSING if is_missing(value) else "yes" if value else "no" for value in column]
    if column.dtype.kind in "iu":
        return [kind.missing if is_missing(value) else f"{value:,}" for value in column]
    if column.dtype.kind == "f":
        decimals = _decimals(np.concatenate(list(map(as_numbers, like))))
        return [_spelled(value, kind, decimals) for value in as_numbers(column).tolist()]
    return [cell_text(value, kind) for value in column]


def cell_text(value: Any, kind: CellKind = NUMBER) -> str:
    """Write one cell of a column of mixed values: names on one line, their invisible characters written out."""
    if isinstance(value, Lines):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return _spelled(float(value), kind, _decimals(np.array([value], float)))
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    return MISSING if is_missing(value) else visible_line(value)


def is_missing(value: Any) -> bool:
    """Return whether a value stands for none, in pandas or not."""
    return type(value).__name__ in ("NoneType", "NAType", "NaTType") or (isinstance(value, float) and value != value)


def _spelled(value: float, kind: CellKind, decimals: int) -> str:
    """Return a number of a kind, where its column has so many decimals."""
    if np.isinf(value) and kind.infinite is not None:
        return kind.infinite
    if np.isnan(value):
        return kind.missing
    if np.isinf(value):
        return _number_text(value, 0)
    if kind.percent:
        return f"{value:.{2 if abs(value) < 0.1 else 0}%}"
    if kind.digits is not None:
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value + 0.0:.{kind.digits}g}"
    most = decimals if kind.most is None else kind.most
    decimals = min(decimals, most) if kind.decimals is None else kind.decimals
    if kind.grouped:
        return f"{round(value, decimals) + 0.0:,.{decimals}f}"
    return _number_text(0.0 if abs(value) < _NOTHING else value, decimals)


def _decimals(values: Float) -> int:
    """Return decimals for four digits of the largest value: at most three unless all are small, 0 for whole numbers."""
    finite = np.abs(values[np.isfinite(values)])
    largest = finite.max(initial=0.0)
    if (finite == np.round(finite)).all():
        return 0
    if not _SMALLEST <= largest < _LARGEST:
        return 3
    place = floor(log10(largest))
    return 2 - place if place < -1 else min(max(3 - place, 0), 3)


def _number_text(value: float, decimals: int) -> str:
    """Give a number with so many decimals; with an exponent if these would show only zeros, or if it is very large."""
    if value == 0 or np.isinf(value):
        return f"{value + 0.0:.{decimals}f}" if value == 0 else f"{value:g}"
    shown = f"{value:,.{decimals}f}" if abs(value) >= 10_000 else f"{value:.{decimals}f}"
    nothing = not any(digit in shown for digit in "123456789")
    return f"{value:.1g}" if nothing else f"{value:.4g}" if abs(value) >= _LARGEST else shown


#: Headings that differ from the words of the column's name.
_HEADINGS = {
    "mae": "MAE", "mae_lower": "MAE lower", "mae_upper": "MAE upper", "vote_count": "Votes",
    "expected_score_rating": "By expected score",
}  # fmt: skip
#: Columns that hold competitors, or their number, whatever these are called.
_OF_COMPETITORS = {
    "model": "{one}", **{f"model_{k}": f"{{one}} {k}" for k in ("a", "b", "1", "2", "3")}, "n_models": "{many}",
    "n_on_model": "on {one}",
}  # fmt: skip


def heading(name: object, competitor: Noun = MODEL) -> str:
    """Return the heading of a column: its name with spaces and a capital letter. ``n_votes`` becomes "Votes"."""
    text = str(name)
    if text in _HEADINGS:
        return _HEADINGS[text]
    if text in _OF_COMPETITORS:
        return capitalised(_OF_COMPETITORS[text].format(**competitor._asdict()))
    return capitalised(text.replace("_", " ").removeprefix("n "))


_LABELS: dict[str, Callable[[Any], str]] = {
    "delta": lambda delta: "all pairs" if delta == float("inf") else f"< {delta:g}",
    "tier": "tier {:g}".format,  # rows of numbers hold whole ones as floats
    "test_tier": "tier {:g}".format,
    "budget": lambda budget: counted(budget, "vote"),
}


def wide(
    table: pd.DataFrame, rows: str, columns: str, cell: Callable[[pd.Series], str],
    label: Callable[[Any], str] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Return a row per value of ``rows`` and a column per value of ``columns``, the cells as text."""
    name = label or _LABELS.get(columns, visible_line)
    records: dict[Any, dict[str, Any]] = {}
    for _, row in table.iterrows():
        first = _LABELS.get(rows, visible_line)(row[rows])
        records.setdefault(first, {rows: first})[name(row[columns])] = Lines(cell(row))
    return pd.DataFrame(list(records.values()), dtype=object)  # a column of text would forget which cells have lines


def pairs_cell(name: str, between: str = "\n") -> Callable[[pd.Series], str]:
    """Return cells of the estimate ``name`` and its pairs; the pairs alone where it is missing or hidden."""

    def cell(row: pd.Series) -> str:
        n = 0 if row["n_pairs"] != row["n_pairs"] else row["n_pairs"]
        return estimate(row, name, count=f" ({n:,.0f})", between=between)

    return cell


def estimate(row: pd.Series, name: str, form: str = ".3f", count: str = "", between: str = "\n") -> str:
    """Return a cell of a number and, on the next line, its interval; a dash where there is none."""
    if row[name] != row[name]:
        return f"-{count}"
    prefix = f"{name}_" if f"{name}_lower" in row else ""
    lower, upper = row.get(f"{prefix}lower", float("nan")), row.get(f"{prefix}upper", float("nan"))
    short = ".1f" if form == ".1f" else ".2f"
    ends = "" if lower != lower else f"{between}[{lower:{short}}, {upper:{short}}]"
    return f"{row[name]:{form}}{count}{ends}"
