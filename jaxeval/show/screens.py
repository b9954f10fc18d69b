"""What every command prints, in one style: the answer, tables, advice, what it rests on, and warnings, on one screen.

A command makes a `Screen` of its result, and `print_screen` lays it out for the width of the terminal. Columns that
matter least make room for the others, rows and warnings beyond a screen are counted, and ``full`` prints all of them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from jaxeval.show.headings import heading
from jaxeval.wording import MODEL, Noun, counted, named, visible

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console, JustifyMethod, RenderableType

    #: What is printed at once, and in which style.
    Part: TypeAlias = tuple[RenderableType, str | None]

#: Lines of a screen where there is no terminal to tell them, and the fewest that a terminal is taken to have.
_LINES, _FEWEST_LINES = 40, 24
#: Characters of a line for programs.
_ENDLESS = 100_000
#: Rows that a table keeps however little room there is.
_FEWEST_ROWS = 3
#: Rows of the first table for which sentences make room, down to a share of the screen.
_ENOUGH_ROWS, _SMALLEST_SHARE = 8, 6
#: Characters from which on names and notes may be folded to make room for other columns.
_FOLDED = 32
_GAP = 2
#: The longest beginning of a sentence, before a colon, that is taken for what it is about.
_LONGEST_SUBJECT = 80
_LEAST_TEXT = 40


class Column(NamedTuple):
    """A column of a table: its heading, and its cells as text."""

    head: str
    cells: Sequence[str]
    right: bool = True
    #: Where there is no room, columns of the greatest number go first; those of 0 stay.
    order: int = 0
    folds: bool = False
    style: str | None = None


class Grid(NamedTuple):
    """A table under its title, with sentences below."""

    title: str | None
    columns: Sequence[Column]
    meaning: str = ""  # what the numbers are, under the title
    below: Sequence[str] = ()
    rows: str | Noun = "row"  # what one is called
    top: int | None = None  # rows shown, whatever the room

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.columns[0].cells) if self.columns else 0


class Screen(NamedTuple):
    """What a command prints, from top to bottom."""

    answer: Sequence[str]
    grids: Sequence[Grid]
    more: Sequence[Grid] = ()  # only on request
    advice: Sequence[str] = ()
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()


def grid_of(
    table: pd.DataFrame,
    title: str | None,
    *,
    meaning: str = "",
    below: Sequence[str] = (),
    rows: str | Noun = "row",
    kept: Sequence[str] = (),
    least: Sequence[str] = (),
    competitor: Noun = MODEL,
) -> Grid:
    """The columns of a table as a grid, without those that are missing in all rows.

    An estimate and the ends of its interval become one column. Where there is no room the columns ``least`` go first,
    then the last ones; the first and those named in ``kept`` stay. Headings of columns of competitors have the word for
    a ``competitor``.
    """
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    from jaxeval.show.cells import MISSING, cell_texts, find_intervals

    texts, names = cell_texts(table), [str(name) for name in table.columns]
    missing = [set(cells) <= {MISSING, ""} for cells in texts]
    upper = {own.lower: own.upper for own in find_intervals(table)}
    beside = {own.estimate: own.lower for own in reversed(find_intervals(table))}  # the first of several intervals
    columns: list[Column] = []
    for k, name in enumerate(names):
        if k in upper.values() or k in beside.values() or (k and missing[k]):
            continue
        low, cells = k if k in upper else beside.get(k), texts[k]
        if low is not None:
            both = zip(texts[low], texts[upper[low]], strict=True)
            ends = ["" if {x, y} == {MISSING} else f"[{x}, {y}]" for x, y in both]
            cells = ends if k == low else [" ".join(filter(None, own)) for own in zip(cells, ends, strict=True)]
        number = is_numeric_dtype(table.dtypes.iloc[k]) and not is_bool_dtype(table.dtypes.iloc[k])
        order = 0 if k == 0 or name in kept else k + len(texts) * (name in least)
        head = heading(name.removesuffix("_lower") if k in upper else name, competitor)
        columns.append(Column(head, cells, right=number, order=order, folds=not number))
    return Grid(title, columns, meaning, below, rows)


def columns_of(table: pd.DataFrame, order: int, competitor: Noun = MODEL) -> list[Column]:
    """The columns of a table as those of another grid, all of one ``order``."""
    return [column._replace(order=order) for column in grid_of(table, None, competitor=competitor).columns]


def print_screen(screen: Screen, console: Console, full: bool = False) -> None:
    """Print a screen; with ``full`` all tables, rows, advice and warnings, and otherwise at most a screen of them.

    The height is that of the terminal, or 40 lines where there is none. A table keeps three rows in any case. Where a
    program reads, tables have all rows and columns, a line each, and all that is said is there.
    """
    for_programs = getattr(console, "for_programs", False)
    height = max(console.height, _FEWEST_LINES) if console.is_terminal else _LINES
    width = max(console.width, _LEAST_TEXT)
    if for_programs:
        console.width = _ENDLESS
    room, whole, hidden = console.width if for_programs else width, full or for_programs, list(screen.more)
    grids = [_Fitted.of(grid, room, grid.top or (None if whole else height)) for grid in screen.grids]
    if full:
        grids += [_Fitted.of(grid, room, None) for grid in screen.more]
        hidden = []
    if whole:
        texts, rows = _texts(screen, width, None), [grid.most for grid in grids]
    else:
        # The share of the screen that sentences of a kind may take, and whether those below tables are printed.
        for share, legends in ((3, True), (4, True), (5, True), (_SMALLEST_SHARE, True), (5, False), (8, False)):
            grids = [grid._replace(legends=legends) for grid in grids]
            texts = _texts(screen, width, height // share)
            taken = sum(text.count("\n") + 1 for kind in texts for text, _ in kind) + sum(map(bool, texts))
            rows = _rows_of_a_screen(grids, height - taken - 2, console)
            lines = sum(_n_lines(grid, n, console) + 1 for grid, n in zip(grids, rows, strict=True) if n)
            enough = not grids or rows[0] >= min(grids[0].most, _ENOUGH_ROWS) or share == _SMALLEST_SHARE
            if taken + lines < height and enough:
                break
        hidden = [*(grid.grid for grid, n in zip(grids, rows, strict=True) if n < min(grid.most, 1)), *hidden]
    answer, advice, notes, warnings = texts
    if hidden:
        said = f"--full prints {counted(len(hidden), 'more table')}"
        titles = _fold(f"{said}: {named([grid.title for grid in hidden if grid.title], 3)}", width)
        notes = [(titles if titles.count("\n") < 2 else said, "dim"), *notes]
    tables = [list(_laid_out(grid, n, width)) for grid, n in zip(grids, rows, strict=True) if n or not grid.most]
    blocks: list[Sequence[Part]] = [answer, *tables, advice, notes, warnings]
    if for_programs:  # which read the first line
        blocks[0] = [(sentence, "bold") for sentence in screen.answer]
    for k, block in enumerate(filter(None, blocks)):
        if k:
            console.print()
        for part, style in block:
            console.print(part, style=style, soft_wrap=for_programs and block is blocks[0])


class _Fitted(NamedTuple):
    """A table whose columns fit the screen."""

    grid: Grid
    columns: Sequence[Column]  # with the rows that may be shown
    most: int  # the number of these
    left_out: Sequence[str]  # headings of columns that there is no room for
    legends: bool = True

    @classmethod
    def of(cls, grid: Grid, width: int, most: int | None) -> _Fitted:
        """The columns with something in them, without those of the greatest order that there is no room for.

        Narrow ones take the room that a wider one of less order leaves.
        """
        most = grid.n_rows if most is None else min(most, grid.n_rows)
        columns = [column._replace(cells=column.cells[:most]) for column in grid.columns]
        filled = [column for column in columns if column.order == 0 or any(column.cells)]
        taken, fitting = -_GAP, set()
        for k in sorted(range(len(filled)), key=lambda k: filled[k].order):
            own = _GAP + _width(filled[k])
            if filled[k].order == 0 or taken + own <= width:
                taken += own
                fitting.add(k)
        left_out = sorted(set(range(len(filled))) - fitting, key=lambda k: filled[k].order)
        heads = [filled[k].head for k in left_out if filled[k].head]
        return cls(grid, [filled[k] for k in sorted(fitting)], most, heads)


def _texts(screen: Screen, width: int, lines: int | None) -> list[list[tuple[str, str]]]:
    """The answer, advice, notes and warnings, folded; each within so many lines."""
    notes = [line for note in screen.notes for line in str(note).split("\n")]
    few = None if lines is None else lines * 2 // 3
    kinds = [
        (screen.answer, "bold", lines, "sentence", "sentences"),
        ([f"* {sentence}" for sentence in screen.advice], "cyan", few, "piece of advice", "pieces of advice"),
        (notes, "dim", few, "note", "notes"),
        (list(_warnings(screen.warnings, lines is None)), "yellow", lines, "warning", "warnings"),
    ]
    return [_cut([(_fold(text, width), style) for text in sentences], most, one, many)
            for sentences, style, most, one, many in kinds]  # fmt: skip


def _rows_of_a_screen(grids: Sequence[_Fitted], height: int, console: Console) -> list[int]:
    """How many rows of each table fit into so many lines: three of each, then by turns; 0 of those without room."""
    rows = [grid.most if grid.grid.top else min(grid.most, _FEWEST_ROWS) for grid in grids]
    lines = [_n_lines(grid, n, console) + 1 for grid, n in zip(grids, rows, strict=True)]
    for k in range(len(grids) - 1, 0, -1):
        if sum(lines) > height and not grids[k].grid.top:
            rows[k] = lines[k] = 0
    left = float(height - sum(lines))
    costs = [_lines_of_a_row(grid, console) if n else 0.0 for grid, n in zip(grids, rows, strict=True)]
    growing = [k for k, n in enumerate(rows) if n]
    while growing:
        for k in list(growing):
            # The last row takes the place of the line that says how many more there are.
            cost = costs[k] - (rows[k] + 1 == grids[k].grid.n_rows)
            if rows[k] < grids[k].most and cost <= left:
                left -= cost
                rows[k] += 1
            else:
                growing.remove(k)
    return rows


def _lines_of_a_row(grid: _Fitted, console: Console) -> float:
    """Lines that a row takes, on average."""
    n = min(grid.most, 20)
    return (_n_lines(grid, n, console) - _n_lines(grid, 0, console) + (n == grid.grid.n_rows)) / n


def _n_lines(grid: _Fitted, rows: int, console: Console) -> int:
    parts = _laid_out(grid, rows, max(console.width, _LEAST_TEXT))
    return sum(len(console.render_lines(part, pad=False)) for part, _ in parts)


def _laid_out(fitted: _Fitted, n_rows: int, width: int) -> Iterator[Part]:
    """The parts of a table as they are printed, with their styles."""
    from rich.table import Table

    grid = fitted.grid
    table = Table(box=None, pad_edge=False, header_style="bold")
    if grid.title:
        yield _fold(grid.title, width), "bold"
    if grid.meaning:
        yield _fold(grid.meaning, width), "dim"
    for column in fitted.columns:
        justify: JustifyMethod = "right" if column.right else "left"
        table.add_column(column.head, justify=justify, overflow="fold", no_wrap=not column.folds, style=column.style)
    for row in zip(*(column.cells[:n_rows] for column in fitted.columns), strict=True):
        table.add_row(*row)
    yield table, None
    below = []
    if n_rows < grid.n_rows:
        one, many = Noun.of(grid.rows)
        more = counted(grid.n_rows - n_rows, f"more {one}", f"more {many}")
        below.append(f"... and {more} ({'' if grid.top else '--full prints all, '}--out writes all)")
    if fitted.left_out:
        below.append(f"no room for: {', '.join(fitted.left_out)}")
    for sentence in (*below, *(grid.below if fitted.legends else ())):
        yield _fold(sentence, width), "dim"


def _width(column: Column) -> int:
    from rich.cells import cell_len

    lines = [line for text in (column.head, *column.cells) for line in visible(text).split("\n")]
    widest = max(map(cell_len, lines))
    return min(widest, max(_FOLDED, cell_len(column.head))) if column.folds else widest


def _warnings(sentences: Sequence[str], full: bool) -> Iterator[str]:
    """Warnings, each once; those that differ in names and numbers only stand once, with how often and about what."""
    each = list(dict.fromkeys(sentences))
    if full:
        yield from (f"warning: {sentence}" for sentence in each)
        return
    kinds: dict[str, list[str]] = {}
    for sentence in each:
        kinds.setdefault(_kind(sentence), []).append(sentence)
    for alike in kinds.values():
        if len(alike) == 1:
            yield f"warning: {alike[0]}"
            continue
        subjects = [_subject(sentence) for sentence in alike[1:]]
        likewise = f"likewise {named(subjects, 4)}" if all(subjects) else f"and {len(subjects):,} more of this kind"
        yield f"warning, {len(alike):,} times: {alike[0]} ({likewise})"


def _subject(sentence: str) -> str:
    """What a sentence is about: its beginning up to a colon, or nothing."""
    subject, colon, _ = sentence.partition(": ")
    return subject if colon and len(subject) <= _LONGEST_SUBJECT else ""


def _kind(sentence: str) -> str:
    """A sentence without its subject and its numbers."""
    subject = _subject(sentence)
    return re.sub(r"\d[\d.,]*", "0", sentence[len(subject) :] if subject else sentence)


def _fold(sentence: str, width: int) -> str:
    """A sentence folded at words."""
    return "\n".join(textwrap.wrap(visible(sentence), width, subsequent_indent="  "))


def _cut(texts: list[tuple[str, str]], lines: int | None, one: str, many: str) -> list[tuple[str, str]]:
    """As many of the texts as fit into so many lines, at least one, and how many more there are."""
    if lines is None:
        return texts
    shown: list[tuple[str, str]] = []
    taken = 0
    for text, style in texts:
        taken += text.count("\n") + 1
        if shown and taken > lines:
            rest = counted(len(texts) - len(shown), f"more {one}", f"more {many}")
            return [*shown, (f"and {rest} (--full prints all)", style)]
        shown.append((text, style))
    return shown
