"""How every result shows itself: a short repr, a table with bars in notebooks, and the whole of it when asked.

A result says by one method, ``_shown``, what it is, what made it, and which table it shows. All else follows from it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxeval.lazy_names import is_frame, pd
from jaxeval.plain_tables import PlainTable, in_pandas
from jaxeval.show.cells import MISSING, as_numbers, cell_texts, column_at, find_intervals, heading, with_index
from jaxeval.show.documents import folded, html_table, text_table
from jaxeval.wording import MODEL, Noun, competitor_of, counted, visible_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Rows that data show of their input, and results of their table, unless they are asked for more.
ROWS_OF_DATA = 5
_ROWS_OF_HTML = 60
#: Sentences that ``print`` shows of a result; `Shown.show` prints all of them.
_SENTENCES = 3


class Column(NamedTuple):
    """A column of a table on a screen: its heading, and its cells as text."""

    head: str
    cells: Sequence[str]
    right: bool = True
    #: Where there is no room, columns of the greatest number go first; those of 0 stay.
    order: int = 0
    folds: bool = False
    style: str | None = None


class Part(NamedTuple):
    """A table of an answer under its title, with sentences below.

    Of a DataFrame an estimate and the ends of its interval become one column. Where there is no room the columns
    ``least`` go first, then the last ones; the first and those named in ``kept`` stay.
    """

    title: str | None
    table: pd.DataFrame | PlainTable | Sequence[Column] | Callable[[], Sequence[Column]] | None = None
    meaning: str = ""  # what the numbers are, under the title
    below: Sequence[str] = ()
    rows: str | Noun = "row"  # what one is called
    kept: Sequence[str] = ()
    least: Sequence[str] = ()
    competitor: Noun = MODEL  # the word in headings
    top: int | None = None  # rows shown, whatever the room
    more: bool = False  # shown only on request


class Answer(NamedTuple):
    """What a result says, whoever shows it: text, screens, notebooks, files and pages are views of it."""

    title: str  # what it is, and how many
    table: Any = None  # best first; None where there is nothing beyond sentences
    settings: Any = ""  # what made it: a mapping, a dataclass, or a line of text
    warnings: Sequence[str] = ()
    n_rows: int | None = None  # rows in all, where the table holds the first ones only
    sentences: Sequence[str] = ()  # what it says first, the most important one first
    advice: Sequence[str] = ()  # what to do
    notes: Sequence[str] = ()  # what it rests on
    parts: Sequence[Part] = ()  # the tables of a screen; by default the one table
    tables: Mapping[str, Any] = {}  # those of files, the main one first
    figures: Callable[[], Mapping[str, Figure]] = dict
    texts: Callable[[], Mapping[str, str]] = dict  # further files

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    @property
    def grids(self) -> Sequence[Part]:
        """The tables of a screen: the ``parts``, or all tables under their names, or the one table."""
        if self.parts or len(self.tables) < 2:
            return self.parts or ([] if self.table is None else [Part(self.title, self.table)])
        return [part_of(name, table) for name, table in self.tables.items()]

    def with_top(self, top: int | None) -> Answer:
        """Return it with so many rows of its first part, whatever the room."""
        if top is None:
            return self
        first, *others = self.grids
        return self._replace(parts=[first._replace(top=top), *others])


def part_of(name: str, table: pd.DataFrame, more: bool = False) -> Part:
    """Return a table as a screen shows it under its ``name``, with its first columns kept."""
    return Part(name.replace("_", " ").capitalize(), table, kept=tuple(table)[:3], more=more)


class Html(str):
    """HTML that a notebook shows as such; elsewhere it is a text to write into a file."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


class Shown:
    """Base of results and data, which show themselves through their `_shown`."""

    def _shown(self) -> Answer:
        """Return what is shown. It must take no more than a moment, as debuggers ask for it.

        By default it is the first table among the fields of a dataclass, or what the first result among them shows (as
        `Draws` do). Without either it is the dataclass's numbers: one row, or as many rows as its arrays have entries.
        """
        by_name = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        settings = by_name.get("settings", {"level": by_name.get("level")})
        tables = [value for value in by_name.values() if is_frame(value)]
        title, warnings = type(self).__name__, getattr(self, "warnings", ())
        if tables:
            return Answer(f"{title}: {counted(len(tables[0]), 'row')}", tables[0], settings, warnings)
        if within := [value for value in by_name.values() if isinstance(value, Shown)]:
            return view_of(within[0])._replace(title=title)
        return Answer(title, _entries({name: by_name[name] for name in by_name if name != "level"}), settings, warnings)

    def __repr__(self) -> str:
        return self._text(ROWS_OF_DATA, 80)

    def _repr_html_(self) -> str:
        return self.styled(rows=_ROWS_OF_HTML)

    def show(self, rows: int | None = None) -> None:
        """Print the table and the warnings in full.

        Args:
            rows: of the table, the first ones; all by default.
        """
        print(self._text(rows, max(shutil.get_terminal_size().columns, 40), in_full=True))

    def styled(self, rows: int | None = None, *, bars: bool = True) -> Html:
        """Return the table as HTML: a notebook shows it, and ``path.write_text(result.styled())`` writes it to a file.

        Args:
            rows: of the table, the first ones; all by default.
            bars: draw intervals, shares and counts as bars.
        """
        view = view_of(self)
        table = pd.DataFrame() if view.table is None else in_pandas(view.table)
        left_out = 0 if view.n_rows is None else view.n_rows - len(table)
        more = [counted(left_out, "more row")] if left_out else []
        notes = [
            *view.sentences, *more, *filter(None, [settings_line(view.settings)]),
            *(f"warning: {w}" for w in view.warnings),
        ]  # fmt: skip
        return Html(html_table(table, title=view.title or None, notes=notes, bars=bars, most_rows=rows))

    def _sections(self) -> list[Part]:
        """Return what a document or a page shows, from top to bottom: titles with sentences, and perhaps a table."""
        view = view_of(self)
        answer = self.answer if isinstance(self, Result) else view
        sentences = [*answer.sentences, *filter(None, [settings_line(answer.settings)])]
        further = list(answer.tables.items())[1:]
        named = [Part(f"{type(self).__name__}: {heading(name)}", table) for name, table in further]
        return [Part(view.title, in_pandas(view.table), below=sentences), *named]

    def _text(self, rows: int | None, width: int, in_full: bool = False) -> str:
        view = view_of(self)
        sentences = view.sentences if in_full else ()
        lines = (*sentences, view.title, settings_line(view.settings))
        parts = [folded(text, width, None if in_full else 3) for text in lines]
        if view.table is not None and view.table.shape[1]:
            parts.append(text_table(view.table, width=width, most_rows=rows, n_rows=view.n_rows))
        if in_full:
            parts += [folded(f"warning: {warning}", width) for warning in view.warnings]
        elif view.warnings:
            parts.append(f"{counted(len(view.warnings), 'warning')}: see warnings")
        return "\n".join(part for part in parts if part)


class Result(Shown):
    """Base of results, which begin with their answer in words; data have none."""

    def _sentences(self) -> Sequence[str]:
        """Return what the result says first. It must take no more than a moment, as `_shown` must.

        By default it is which row of the table has the largest estimate, or what the table is.
        """
        view = self._shown()
        return view.sentences or [(view.table is not None and largest_of(view.table)) or view.title]

    def _figures(self) -> Mapping[str, tuple[Any, ...]]:
        """Name the figures: by the name of its file the function of `jaxeval.plots`, and its arguments."""
        return {}

    def _in_full(self, view: Answer) -> Answer:
        """Return `_shown` with all that takes longer: notes, tables, figures, and how a screen lays them out."""
        tables = {} if view.table is None else {"table": view.table}
        held: dict[str, Any] = vars(self) if is_dataclass(self) else {}
        frames = {name: x for name, x in held.items() if is_frame(x) and len(x) and name[0] != "_"}
        further = {name: x for name, x in frames.items() if not (x is view.table or x.equals(view.table))}
        return view._replace(tables=tables | further)

    @property
    def answer(self) -> Answer:
        """What the result says: ``sentences``, the most important one first, and the tables and warnings beside them.

        ``str(result.answer)`` are the sentences, a line each.
        """
        full = self._plain_answer()
        tables = {name: in_pandas(table) for name, table in full.tables.items()}
        parts = [part._replace(table=in_pandas(part.table)) for part in full.parts]
        return full._replace(table=in_pandas(full.table), tables=tables, parts=parts)

    def _plain_answer(self) -> Answer:
        """Return the answer, for what shows small tables without pandas."""
        full = self._in_full(view_of(self))
        return full._replace(sentences=tuple(map(visible_line, full.sentences)))

    def __str__(self) -> str:
        """Return the first sentences, then what ``repr`` gives."""
        sentences = view_of(self).sentences
        n_more = len(sentences) - _SENTENCES
        more = [f"({counted(n_more, 'more sentence')}: see answer)"] if n_more > 0 else []
        return "\n".join([*(folded(sentence, 80, 3) for sentence in sentences[:_SENTENCES]), *more, repr(self)])


def view_of(result: Shown) -> Answer:
    """Return what a result or data show of themselves, with the word for what is rated over an index of models."""
    view, competitor = result._shown(), rated(result)
    if isinstance(result, Result):
        sentences = tuple(map(visible_line, result._sentences())) or view.sentences
        drawn = partial(figures_of, result) if view.figures is dict else view.figures
        view = view._replace(sentences=sentences, figures=drawn)
    if competitor == MODEL or not is_frame(view.table) or view.table.index.name != "model":
        return view
    return view._replace(table=view.table.rename_axis(competitor.one))


def figures_of(result: Shown) -> dict[str, Figure]:
    """Draw the figures that a result names, by the names of their files."""
    named_by = result._figures() if isinstance(result, Result) else {}
    # Figures are drawn by what stands above results, and Matplotlib is imported where somebody draws.
    plots: Any = import_module("jaxeval.plots") if named_by else None
    return {name: getattr(plots, function)(*arguments) for name, (function, *arguments) in named_by.items()}


def rated(value: Any) -> Noun:
    """Return what a table or a result rates, as far as it says so; of the last of several tables."""
    if is_frame(value):
        return competitor_of(value.attrs.get("settings"))
    competitor = getattr(value, "competitor", None)
    if competitor is None and isinstance(value, Mapping) and value:
        return rated(list(value.values())[-1])
    return competitor if isinstance(competitor, Noun) else MODEL


def largest_of(table: pd.DataFrame) -> str:
    """Say which row has the largest of the first estimates with an interval; empty where there is none."""
    rows, _ = with_index(table)
    intervals = find_intervals(rows)
    values = as_numbers(column_at(rows, intervals[0].estimate)) if intervals else np.array([])
    if not np.isfinite(values).any():
        return ""
    interval, best = intervals[0], int(np.argmax(np.where(np.isfinite(values), values, -np.inf)))
    cells = [column[0] for column in cell_texts(rows.iloc[[best]])]
    named_by = [cells[k] for k in range(interval.estimate) if column_at(rows, k).dtype.kind not in "biufc"]
    which = ", ".join(named_by) or ("" if len(rows) == 1 else f"row {best + 1}")
    lower, upper = cells[interval.lower], cells[interval.upper]
    ends = "" if MISSING in (lower, upper) else f" ({lower} to {upper})"
    what = str(rows.columns[interval.estimate]).replace("_", " ")
    if len(rows) > 1:
        return f"{which} has the largest {what}, {cells[interval.estimate]}{ends}"
    return f"{f'{which}: ' if which else ''}{what} {cells[interval.estimate]}{ends}"


def settings_line(settings: Any) -> str:
    """Return the settings of a result (a mapping, a dataclass, or None) on one line; a text is one already."""
    if isinstance(settings, str):
        return settings
    values = settings_of(settings)
    n, level = values.get("n_resamples"), values.get("level")
    parts = [] if n is None else [counted(n, "resample") if n else "no resamples"]
    parts += [f"{100 * level:g}% intervals"] if isinstance(level, float) and n != 0 else []
    parts += [f"seed {values['seed']}"] if values.get("seed") is not None and n != 0 else []
    words = {"cluster": "clusters by {}", "strata": "strata by {}", "gauge": "{}", "reference": "against {}"}
    parts += [text.format(visible_line(values[name])) for name, text in words.items() if values.get(name)]
    usual = {"ties": "half", "link": "logit", "ridge": 0.0, "penalty": "auto"}
    parts += [f"{name} {values[name]}" for name, value in usual.items() if values.get(name, value) != value]
    return ", ".join(parts)


def settings_of(settings: Any) -> Mapping[str, Any]:
    """Return the settings of a result by their names; those of a text are not known."""
    if isinstance(settings, str):
        return {}
    return vars(settings) if is_dataclass(settings) else settings or {}


def _entries(fields_of: Mapping[str, Any]) -> pd.DataFrame:
    """Return numbers and arrays as columns, broadcast to one shape, and a row for each entry."""
    columns = np.broadcast_arrays(*(np.asarray(value) for value in fields_of.values()))
    several = columns[0].ndim > 1
    index = pd.MultiIndex.from_tuples(np.ndindex(columns[0].shape)) if several else pd.RangeIndex(columns[0].size)
    return pd.DataFrame({name: x.reshape(-1) for name, x in zip(fields_of, columns, strict=True)}, index)
