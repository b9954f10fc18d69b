"""An answer in a terminal: sentences, tables, advice, what it rests on, and warnings, on one screen.

Columns that matter least make room for the others, rows and warnings beyond a screen are counted, and ``full`` prints
all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from jaxeval.lazy_names import is_frame
from jaxeval.plain_tables import PlainTable
from jaxeval.show.cells import (
    MISSING,
    cell_texts,
    column_at,
    find_intervals,
    heading,
    is_number,
    only_counts,
    with_index,
)
from jaxeval.show.documents import folded
from jaxeval.show.shown import Answer, Column, Part, settings_line
from jaxeval.wording import Noun, counted, named, visible

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod, RenderableType

    #: What is printed at once, and in which style.
    Printed: TypeAlias = tuple[RenderableType, str | None]

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


def columns_of(part: Part) -> Sequence[Column]:
    """Return the columns of a table, without those that are missing in all rows."""
    if isinstance(part.table, PlainTable):
        table: Any = part.table
    elif is_frame(part.table):
        table = part.table if only_counts(part.table.index) else with_index(part.table)[0]
    else:
        return part.table() if callable(part.table) else part.table or ()
    texts, names = cell_texts(table), [str(name) for name in table.columns]
    missing = [set(cells) <= {MISSING, ""} for cells in texts]
    upper = {one.lower: one.upper for one in find_intervals(table)}
    beside = {one.estimate: one.lower for one in reversed(find_intervals(table))}  # the first of several intervals
    columns: list[Column] = []
    for k, name in enumerate(names):
        if k in upper.values() or k in beside.values() or (k and missing[k]):
            continue
        low, cells = k if k in upper else beside.get(k), texts[k]
        if low is not None:
            both = zip(texts[low], texts[upper[low]], strict=True)
            ends = ["" if {x, y} == {MISSING} else f"[{x}, {y}]" for x, y in both]
            cells = ends if k == low else [" ".join(filter(None, pair)) for pair in zip(cells, ends, strict=True)]
        number = is_number(column_at(table, k))
        order = 0 if k == 0 or name in part.kept else k + len(texts) * (name in part.least)
        head = heading(name.removesuffix("_lower") if k in upper else name, part.competitor)
        columns.append(Column(head, cells, right=number, order=order, folds=not number))
    return columns


def print_answer(answer: Answer, console: Console, full: bool = False) -> None:
    """Print an answer; with ``full`` all tables, rows, advice and warnings, and otherwise at most a screen of them.

    The height is that of the terminal, or 40 lines where there is none. A table keeps three rows in any case. Where a
    program reads, tables have all rows and columns, a line each, and all that is said is there.
    """
    for_programs = getattr(console, "for_programs", False)
    height = max(console.height, _FEWEST_LINES) if console.is_terminal else _LINES
    width = max(console.width, _LEAST_TEXT)
    if for_programs:
        console.width = _ENDLESS
    room, whole = console.width if for_programs else width, full or for_programs
    hidden = [part for part in answer.grids if part.more and not full]
    shown = [part for part in answer.grids if not part.more] + [part for part in answer.grids if part.more and full]
    grids = [_Fitted.of(part, room, part.top or (None if whole else height)) for part in shown]
    n_lines = _counter_of_lines(console)
    if whole:
        texts, rows = _texts(answer, width, None), [grid.most for grid in grids]
    else:
        # The share of the screen that sentences of a kind may take, and whether those below tables are printed.
        for share, legends in ((3, True), (4, True), (5, True), (_SMALLEST_SHARE, True), (5, False), (8, False)):
            grids = [grid._replace(legends=legends) for grid in grids]
            texts = _texts(answer, width, height // share)
            taken = sum(text.count("\n") + 1 for kind in texts for text, _ in kind) + sum(map(bool, texts))
            rows = _rows_of_a_screen(grids, height - taken - 2, n_lines)
            lines = sum(n_lines(grid, n) + 1 for grid, n in zip(grids, rows, strict=True) if n)
            enough = not grids or rows[0] >= min(grids[0].most, _ENOUGH_ROWS) or share == _SMALLEST_SHARE
            if taken + lines < height and enough:
                break
        hidden = [*(grid.part for grid, n in zip(grids, rows, strict=True) if n < min(grid.most, 1)), *hidden]
    sentences, advice, notes, warnings = texts
    if hidden:
        hint = f"--full prints {counted(len(hidden), 'more table')}"
        titles = folded(f"{hint}: {named([part.title for part in hidden if part.title], 3)}", width)
        notes = [(titles if titles.count("\n") < 2 else hint, "dim"), *notes]
    room = 0 if console.is_terminal else console.width
    tables = [list(_laid_out(grid, n, width, room)) for grid, n in zip(grids, rows, strict=True) if n or not grid.most]
    blocks: list[Sequence[Printed]] = [sentences, *tables, advice, notes, warnings]
    if for_programs:  # which read the first line
        blocks[0] = [(sentence, "bold") for sentence in answer.sentences]
    for k, block in enumerate(filter(None, blocks)):
        if k:
            console.print()
        for part, style in block:
            whole_lines = isinstance(part, str) and (style is None or (for_programs and block is blocks[0]))
            console.print(part, style=style, soft_wrap=whole_lines)


class _Fitted(NamedTuple):
    """A table whose columns fit the screen."""

    part: Part
    columns: Sequence[Column]  # with the rows that may be shown
    n_rows: int
    most: int  # the rows that may be shown
    left_out: Sequence[str]  # headings of columns that there is no room for
    legends: bool = True

    @classmethod
    def of(cls, part: Part, width: int, most: int | None) -> _Fitted:
        """Return the columns with something in them, without those of the greatest order that there is no room for.

        Narrow ones take the room that a wider one of less order leaves.
        """
        all_columns = columns_of(part)
        n_rows = len(all_columns[0].cells) if all_columns else 0
        most = n_rows if most is None else min(most, n_rows)
        columns = [column._replace(cells=column.cells[:most]) for column in all_columns]
        filled = [column for column in columns if column.order == 0 or any(column.cells)]
        taken, fitting = -_GAP, set()
        for k in sorted(range(len(filled)), key=lambda k: filled[k].order):
            wide = _GAP + _width(filled[k])
            if filled[k].order == 0 or taken + wide <= width:
                taken += wide
                fitting.add(k)
        left_out = sorted(set(range(len(filled))) - fitting, key=lambda k: filled[k].order)
        heads = [filled[k].head for k in left_out if filled[k].head]
        return cls(part, [filled[k] for k in sorted(fitting)], n_rows, most, heads)


def _texts(answer: Answer, width: int, lines: int | None) -> list[list[tuple[str, str]]]:
    """Return the answer, advice, notes and warnings, folded; each within so many lines."""
    notes = _rests_on(answer, None if lines is None else width)
    few = None if lines is None else lines * 2 // 3
    kinds = [
        (answer.sentences, "bold", lines, "sentence", "sentences"),
        ([f"* {sentence}" for sentence in answer.advice], "cyan", few, "piece of advice", "pieces of advice"),
        (notes, "dim", None, "note", "notes"),
        (list(_warnings(answer.warnings, lines is None)), "yellow", lines, "warning", "warnings"),
    ]
    return [_cut([(folded(text, width), style) for text in sentences], most, one, many)
            for sentences, style, most, one, many in kinds]  # fmt: skip


def _rests_on(answer: Answer, width: int | None) -> list[str]:
    """Return what an answer rests on: all of it, or one line of so many characters, and that there is more."""
    notes = [line for note in answer.notes for line in str(note).split("\n")]
    made = settings_line(answer.settings)
    if width is None or len(notes) < 2:
        return notes
    more = "; --full says how"
    lines = [f"{notes[0]}; {made}", made] if made else []
    fitting = [line for line in lines if len(line + more) <= width]
    return [(fitting or [made or notes[0]])[0] + more]


def _rows_of_a_screen(grids: Sequence[_Fitted], height: int, n_lines: Callable[[_Fitted, int], int]) -> list[int]:
    """Return how many rows of each table fit into the lines: three of each, then by turns; 0 of those without room."""
    rows = [grid.most if grid.part.top else min(grid.most, _FEWEST_ROWS) for grid in grids]
    lines = [n_lines(grid, n) + 1 for grid, n in zip(grids, rows, strict=True)]
    for k in range(len(grids) - 1, 0, -1):
        if sum(lines) > height and not grids[k].part.top:
            rows[k] = lines[k] = 0
    left = float(height - sum(lines))
    costs = [_lines_of_a_row(grid, n_lines) if n else 0.0 for grid, n in zip(grids, rows, strict=True)]
    growing = [k for k, n in enumerate(rows) if n]
    while growing:
        for k in list(growing):
            # The last row takes the place of the line that says how many more there are.
            cost = costs[k] - (rows[k] + 1 == grids[k].n_rows)
            if rows[k] < grids[k].most and cost <= left:
                left -= cost
                rows[k] += 1
            else:
                growing.remove(k)
    return rows


def _lines_of_a_row(grid: _Fitted, n_lines: Callable[[_Fitted, int], int]) -> float:
    """Return the lines that a row takes, on average."""
    n = min(grid.most, 20)
    return (n_lines(grid, n) - n_lines(grid, 0) + (n == grid.n_rows)) / n


def _counter_of_lines(console: Console) -> Callable[[_Fitted, int], int]:
    """Return what counts the lines of a table with so many rows, which lays each out once: that takes long."""
    known: dict[tuple[int, bool, int], int] = {}

    def n_lines(grid: _Fitted, rows: int) -> int:
        key = id(grid.part), grid.legends, rows
        if key not in known:
            parts = _laid_out(grid, rows, max(console.width, _LEAST_TEXT), console.width)
            known[key] = sum(_n_lines_of(part, console) for part, _ in parts)
        return known[key]

    return n_lines


def _n_lines_of(part: RenderableType, console: Console) -> int:
    from rich.cells import cell_len

    lines = part.split("\n") if isinstance(part, str) else []
    fits = lines and max(map(cell_len, map(visible, lines))) <= console.width
    return len(lines) if fits else len(console.render_lines(part, pad=False))


def _as_table(fitted: _Fitted, n_rows: int) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in fitted.columns:
        justify: JustifyMethod = "right" if column.right else "left"
        table.add_column(column.head, justify=justify, overflow="fold", no_wrap=not column.folds, style=column.style)
    for row in zip(*(column.cells[:n_rows] for column in fitted.columns), strict=True):
        table.add_row(*row)
    return table


def _as_text(fitted: _Fitted, n_rows: int, room: int) -> str | None:
    """Return a table as Rich prints it, in a tenth of the time; None where it would fold a line or change a cell."""
    from rich.cells import cell_len

    columns, taken = [], -_GAP
    for column in fitted.columns:
        cells = list(map(visible, (column.head, *column.cells[:n_rows])))
        if any((column.right and cell != cell.rstrip()) or "\n" in cell or "\t" in cell for cell in cells):
            return None
        lengths = list(map(cell_len, cells))
        widest = max(lengths)
        taken += _GAP + widest
        if taken > room:
            return None
        blanks = [" " * (widest - length) for length in lengths]
        pairs = zip(blanks, cells, strict=True) if column.right else zip(cells, blanks, strict=True)
        columns.append(list(map("".join, pairs)))
    return "\n".join(map((" " * _GAP).join, zip(*columns, strict=True))) or None


def _laid_out(fitted: _Fitted, n_rows: int, width: int, room: int) -> Iterator[Printed]:
    """Yield the parts of a table as they are printed, with their styles.

    A table of at most ``room`` characters is text: 0 where a terminal shows styles.
    """
    part = fitted.part
    if part.title:
        yield folded(part.title, width), "bold"
    if part.meaning:
        yield folded(part.meaning, width), "dim"
    yield _as_text(fitted, n_rows, room) or _as_table(fitted, n_rows), None
    below = []
    if n_rows < fitted.n_rows:
        one, many = Noun.of(part.rows)
        more = counted(fitted.n_rows - n_rows, f"more {one}", f"more {many}")
        below.append(f"... and {more} ({'' if part.top else '--full prints all, '}--out writes all)")
    if fitted.left_out:
        below.append(f"no room for: {', '.join(fitted.left_out)}")
    for sentence in (*below, *(part.below if fitted.legends else ())):
        yield folded(sentence, width), "dim"


def _width(column: Column) -> int:
    from rich.cells import cell_len

    lines = [line for text in (column.head, *column.cells) for line in visible(text).split("\n")]
    widest = max(map(cell_len, lines))
    return min(widest, max(_FOLDED, cell_len(column.head))) if column.folds else widest


def _warnings(sentences: Sequence[str], full: bool) -> Iterator[str]:
    """Yield each warning once; those that differ only in names and numbers once, with how often and about what."""
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
    """Return what a sentence is about: its beginning up to a colon, or nothing."""
    subject, colon, _ = sentence.partition(": ")
    return subject if colon and len(subject) <= _LONGEST_SUBJECT else ""


def _kind(sentence: str) -> str:
    """Return a sentence without its subject and its numbers."""
    subject = _subject(sentence)
    return re.sub(r"\d[\d.,]*", "0", sentence[len(subject) :] if subject else sentence)


def _cut(texts: list[tuple[str, str]], lines: int | None, one: str, many: str) -> list[tuple[str, str]]:
    """Return as many texts as fit into so many lines, at least one, and how many more there are."""
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
