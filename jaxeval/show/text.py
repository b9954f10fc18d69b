"""A DataFrame as lines of text: its first columns, estimates with their intervals, and the names of other columns."""

from __future__ import annotations

from textwrap import fill
from unicodedata import combining, east_asian_width

import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from jaxeval.show.cells import cell_texts, find_intervals, with_index
from jaxeval.wording import counted, named, shortened, visible, visible_line

_LONGEST = 36


def text_table(frame: pd.DataFrame, *, width: int = 80, most_rows: int | None = None, n_rows: int | None = None) -> str:
    """The first rows and columns of a table, as many as fit, and a line on what is not shown.

    Args:
        frame: the table; an index that names its rows comes first.
        width: characters of a line.
        most_rows: rows to show; all by default.
        n_rows: number of all rows, where the table holds only the first ones.
    """
    shown = frame if most_rows is None else frame.head(most_rows)
    table, n_names = with_index(shown)
    texts = cell_texts(table)
    columns, names, used = [], [], 0
    ends = {own.lower: own for own in find_intervals(table)}
    within = {own.upper for own in ends.values()}
    for k, name in enumerate(table.columns):
        if k in within or (table.shape[0] and not any(texts[k])):  # a column of empty texts
            continue
        head, cells = _short(visible_line(", ".join(map(str, name)) if isinstance(name, tuple) else name)), texts[k]
        names.append(head if k not in ends else f"{head}, {visible_line(table.columns[ends[k].upper])}")
        if own := ends.get(k):
            head = f"{head.removeprefix(f'{table.columns[own.estimate]}_')}, upper"
            cells = ["-" if a == b == "-" else f"{a}, {b}" for a, b in zip(texts[k], texts[own.upper], strict=True)]
        is_number = is_numeric_dtype(table.dtypes.iloc[k]) and not is_bool_dtype(table.dtypes.iloc[k])
        columns.append(_aligned([head, *map(_short, cells)], right=is_number))
    kept = 0
    for column in columns:
        used += text_width(column[0]) + 2 * (kept > 0)
        if used > width and kept > n_names:
            break
        kept += 1
    lines = ["  ".join(cells).rstrip() for cells in zip(*columns[:kept], strict=True)]
    left_out = (len(frame) if n_rows is None else n_rows) - len(shown)
    more = [counted(left_out, "more row")] if left_out > 0 else []
    more += [f"columns not shown: {named(names[kept:], 12)}"] if kept < len(names) else []
    return "\n".join([*lines, *([folded(f"({'; '.join(more)})", width)] if more else [])])


def folded(text: str, width: int, most_lines: int | None = None) -> str:
    """``text`` with lines folded at words, each into ``most_lines`` or fewer; invisible characters are written out."""
    lines = visible(text).split("\n")
    return "\n".join(
        fill(line, width, subsequent_indent="  ", max_lines=most_lines, placeholder=" …") for line in lines
    )


def text_width(text: str) -> int:
    """Columns that a text takes in a terminal: two for a wide East Asian character, none for a combining accent."""
    return sum(0 if combining(sign) else 1 + (east_asian_width(sign) in "WF") for sign in text)


def _short(text: str) -> str:
    return shortened(text, _LONGEST)


def _aligned(cells: list[str], right: bool) -> list[str]:
    width = max(map(text_width, cells))
    pads = [" " * (width - text_width(cell)) for cell in cells]
    return [pad + cell if right else cell + pad for cell, pad in zip(cells, pads, strict=True)]
