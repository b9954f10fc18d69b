"""Which rows of a table are in which groups of a column; a row may be in several if the column holds lists or flags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool
from jaxeval.data.columns import Rows, factorize_sorted, reject_missing, renumbered, require_column
from jaxeval.data.nested_columns import arrow_of, is_nested, within
from jaxeval.errors import DataError
from jaxeval.lazy_names import pa, pc, pd
from jaxeval.options.boards import MissingGroup
from jaxeval.plain_tables import in_pandas
from jaxeval.wording import counted, did_you_mean, listed

#: The group of battles without a value, if they get one.
_MISSING = "(missing)"
#: The group of all battles, beside overlapping categories.
OVERALL = "overall"


class Members(NamedTuple):
    """The groups of R rows, as E entries: a row has one entry for each group that it is in."""

    row: NDArray[np.intp] | None  # (E,) row of each entry, sorted; None: entry k is row k
    codes: NDArray[np.intp]  # (E,) number of the group, -1 for none
    groups: pd.Index
    overlapping: tuple[str, ...] = ()  # columns with overlapping categories

    def rows(self, entries: Any) -> NDArray[np.intp]:
        """Return the rows of some entries."""
        return np.arange(len(self.codes))[entries] if self.row is None else self.row[entries]


def members_by(column: pd.Series, name: str, missing: MissingGroup | None, rows: Rows | None = None) -> Members:
    """Return the sorted groups of a column.

    A column of lists has overlapping categories: a row is in the group of each value in its list, and in "overall". A
    column of objects with flags, such as ``{"math": {"math": true}, "code": {"code": false}}``, has overlapping
    categories, too: the names of the flags that are true. ``missing`` is as in `Battles.codes`.
    """
    overlapping = is_nested(column)
    if overlapping:
        none, row, categories = _categories(column, name)
        of_entries = Rows(np.broadcast_to(1, len(row)), row) if rows is None else rows.of(row)
        codes, values = factorize_sorted(categories, name, of_entries)
    else:
        codes, values = factorize_sorted(column, name, rows, may_miss=missing is not None)
        none = codes < 0
    if missing in (None, "error"):
        advice = "fill in values, or choose missing='drop' or missing='label' (on the command line --missing)"
        reject_missing(none, name, rows, advice)
    taken = [group for group in (_MISSING, OVERALL) if group in values]
    if (missing == "label" and none.any() and _MISSING in taken) or (overlapping and OVERALL in taken):
        what = "missing values" if _MISSING in taken else "overlapping categories"
        raise DataError(f"column {name!r} has {what} and the value {taken[0]!r}: rename that value")
    if missing == "label" and none.any():
        values = pd.Index([*values, _MISSING], dtype=object)
    if not overlapping:
        return Members(None, np.where(none, len(values) - 1, codes) if missing == "label" else codes, values)
    labelled = np.flatnonzero(none & (missing == "label"))
    whole = np.flatnonzero(~none | (missing == "label"))  # rows in a group
    n_groups = len(values) + 1
    entry = np.concatenate([row * n_groups + codes + 1, labelled * n_groups + len(values), whole * n_groups])
    row, codes = np.divmod(np.unique(entry), n_groups)  # twice in a list is once
    return Members(row, codes, pd.Index([OVERALL, *values], dtype=object), (name,))


def crossed(parts: Sequence[Members], names: Sequence[str], n_rows: int) -> Members:
    """Return the groups of several columns of R rows together: one for each combination of groups that occurs."""
    entries = pd.DataFrame({"row": np.arange(n_rows)})
    for k, part in enumerate(parts):
        entries = entries.merge(pd.DataFrame({"row": part.rows(slice(None)), k: part.codes}), on="row")
    row, each = entries.pop("row").to_numpy(), entries.to_numpy()
    there, sizes = (each >= 0).all(1), [len(part.groups) for part in parts]
    groups, number = np.unique(np.ravel_multi_index(each[there].T, sizes), return_inverse=True)
    codes = np.full(len(row), -1, np.intp)
    codes[there] = number
    levels = zip(parts, np.unravel_index(groups, sizes), strict=True)
    index = pd.MultiIndex.from_arrays([part.groups[level] for part, level in levels], names=names)
    overlapping = tuple(name for part in parts for name in part.overlapping)
    return Members(row if overlapping else None, codes, index, overlapping)


def told_overlap(columns: Sequence[str], n_battles: int, n_counted: int) -> str:
    """Return how often battles count where categories of ``columns`` overlap, in words; empty without such columns."""
    if not columns:
        return ""
    return (
        f"categories of {' and '.join(columns)} overlap: a battle counts in each of its categories and in {OVERALL!r}; "
        f"{counted(n_battles, 'battle counts', 'battles count')} {counted(n_counted, 'time')} in all"
    )


def _categories(column: pd.Series, name: str) -> tuple[Bool, NDArray[np.intp], pd.Series]:
    """Return (R,) which rows have no list or object; and for each entry (E,) its row and its category."""
    values = arrow_of(column).combine_chunks()
    none = values.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_struct(values.type):
        flags = dict(_flags(values, ""))
        if not flags:
            fields = ", ".join(repr(f"{name}.{field.name}") for field in values.type)
            raise DataError(
                f"column {name!r} holds objects without flags (true or false) to make groups of: name one of its "
                f"fields {fields}"
            )
        short = [path.rpartition("\0")[2] for path in flags]
        names = [
            one if short.count(one) == 1 else path.replace("\0", ".") for path, one in zip(flags, short, strict=True)
        ]
        are = [pc.fill_null(flag, False).to_numpy(zero_copy_only=False) for flag in flags.values()]
        row, flag = np.nonzero(np.stack(are, 1))
        return none, row, pd.Series(np.array(names, object)[flag])
    if pa.types.is_map(values.type):
        raise DataError(f"column {name!r} holds maps, which make no groups: make them lists of names")
    row = pc.list_parent_indices(values).to_numpy().astype(np.intp)
    categories = pc.list_flatten(values)
    return (
        none,
        row,
        (categories.dictionary_encode() if pa.types.is_string(categories.type) else categories).to_pandas(),
    )


def _flags(values: pa.StructArray, path: str) -> Iterator[tuple[str, pa.Array]]:
    """Yield the fields that are true or false, by the names that lead to them."""
    for field in values.type:
        child = pc.struct_field(values, [field.name])
        if pa.types.is_struct(field.type):
            yield from _flags(child, f"{path}{field.name}\0")
        elif pa.types.is_boolean(field.type):
            yield f"{path}{field.name}", child


class Grouped:
    """Rows of two models each, with further ``columns``, by which they are grouped.

    The row ``kept[r]`` of these belongs to row r.
    """

    models: pd.Index
    model_a: NDArray[np.int32]
    model_b: NDArray[np.int32]
    columns: pd.DataFrame
    kept: NDArray[np.intp] | None = None
    further: Callable[[str], pd.Series | None] | None = None
    _no_column: ClassVar[str]  # what a column is lacking for, and which there are

    if TYPE_CHECKING:

        @property
        def rows(self) -> Rows | None:
            """The rows of the input, for errors to name."""

    @property
    def n_models(self) -> int:
        """The number of models with at least one battle that takes part in fits."""
        return len(self.models)

    def _sides(self, rows: slice) -> dict[str, Any]:
        models = in_pandas(self.models)
        return {"model_a": models[self.model_a[rows]], "model_b": models[self.model_b[rows]]}

    def _met_in(self, rows: NDArray[np.intp]) -> dict[str, Any]:
        """Return the models that met in some rows, and both sides numbered by these."""
        met, (first, second) = renumbered(self.n_models, self.model_a[rows], self.model_b[rows])
        return {"models": self.models[met], "model_a": first, "model_b": second}

    def codes(
        self, names: str | Sequence[str], missing: MissingGroup | None = None
    ) -> tuple[NDArray[np.intp], pd.Index]:
        """Group number of each row (R,) and the sorted groups of one or several further columns.

        Args:
            names: the columns.
            missing: what to do about missing values: "error" raises an error; "drop" gives their rows the number -1;
                "label" makes them the last group, named "(missing)". None raises an error as well, for callers that do
                not offer this choice.

        Raises:
            DataError: a column is not there, has missing values, has the value "(missing)" besides missing ones, or
                holds lists, whose categories overlap: see `members`.
            TypeError: ``names`` is no name, or is an empty list.
        """
        members = self.members(names, missing)
        if members.overlapping:
            raise DataError(
                f"column {members.overlapping[0]!r} has overlapping categories, so that a battle would be in several "
                "groups: only the slices of by= (on the command line --by) may overlap"
            )
        return members.codes, members.groups

    def members(self, names: str | Sequence[str], missing: MissingGroup | None = None) -> Members:
        """Return what `codes` does, also for columns of lists or of flags, where a row may be in several categories."""
        names = [names] if isinstance(names, str) else names
        if not isinstance(names, Sequence) or len(names) == 0:
            raise TypeError(f"name a column of groups by a string, or several by a list of them, got {names!r}")
        columns = [self.column(name) for name in names]
        parts = [members_by(column, name, missing, self.rows) for column, name in zip(columns, names, strict=True)]
        return parts[0] if len(parts) == 1 else crossed(parts, names, len(columns[0]))

    def column(self, name: str) -> pd.Series:
        """Return a further column of the input, or a field within one, for rows (R,) whose battles take part in fits.

        A column of a file that was not read with the battles is read now.

        Raises:
            DataError: there is no such column, or there are several of that name.
        """
        column: pd.Series | None
        columns = in_pandas(self.columns)
        if name in columns:
            require_column(columns, name)
            column = columns[name]
        elif (column := within(columns, name)) is None and self.further is not None:
            column = self.further(name)
        if column is None:
            advice = f"{self._no_column.format(listed(columns))}{did_you_mean(name, columns)}"
            raise DataError(f"no column {name!r} {advice}")
        return column if self.kept is None else column.iloc[self.kept]
