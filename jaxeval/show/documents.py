"""Tables as text: in lines, in HTML with intervals and shares as bars, and as Markdown, LaTeX and pages.

Every name is shown as plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import escape
from textwrap import fill
from typing import Any
from unicodedata import combining, east_asian_width

import numpy as np

from jaxeval.lazy_names import pd
from jaxeval.plain_tables import Whole
from jaxeval.show.cells import (
    COUNT,
    SHARE,
    CellKind,
    Interval,
    as_numbers,
    cell_texts,
    column_at,
    find_intervals,
    is_number,
    kinds_of,
    with_index,
)
from jaxeval.show.cells import heading as usual_heading
from jaxeval.wording import counted, named, shortened, visible, visible_line

_LONG = 40  # a text of more characters may take several lines
# Colours that are visible on white and on black.
_BAND, _POINT, _SHARE = "rgba(70,130,190,.4)", "rgb(40,100,170)", "rgba(70,130,190,.25)"
_STYLE = (
    ".jaxeval{overflow-x:auto}"
    ".jaxeval table{border-collapse:collapse;font-variant-numeric:tabular-nums}"
    ".jaxeval caption,.jaxeval p{text-align:left;margin:.2em 0}"
    ".jaxeval caption{caption-side:top;font-weight:bold}"
    ".jaxeval p{font-size:.9em;white-space:pre-line;overflow-wrap:anywhere}"
    ".jaxeval th,.jaxeval td{padding:.15em .6em;text-align:left;vertical-align:top;unicode-bidi:isolate;"
    "white-space:nowrap}"
    ".jaxeval .long{min-width:20em;white-space:normal;overflow-wrap:anywhere}"
    ".jaxeval .number{text-align:right}"
    ".jaxeval .bar{min-width:9em;background-repeat:no-repeat;background-position:center;background-size:100% .6em}"
    ".jaxeval thead th{border-bottom:1px solid}"
)


def html_table(
    frame: Any, *, title: str | None = None, notes: Iterable[str] = (), bars: bool = True,
    heading: Callable[[Any], str] = str, most_rows: int | None = None,
) -> str:  # fmt: skip
    """Return a table as a piece of HTML that stands by itself, for a notebook or within a page.

    Names, headings, the title above and the notes below may hold any text: it is escaped, invisible characters are
    written out, and a class keeps MathJax away from it. An index that names its rows comes first. With ``bars`` each
    interval (``x_lower`` to ``x_upper``, with a mark at ``x``) is drawn in a cell of its own, and each share and count
    behind its number. Of ``most_rows`` a line says how many more there are.

    Examples:
        >>> import pandas as pd
        >>> from jaxeval.show.documents import html_table
        >>> frame = pd.DataFrame({"rating": [1012.3], "lower": [990.0], "upper": [1031.0]}, ["<b>a</b>"])
        >>> html = html_table(frame, title="Ratings")
        >>> "&lt;b&gt;a&lt;/b&gt;" in html, "linear-gradient" in html
        (True, True)
    """
    shown = frame if most_rows is None else frame.head(most_rows)
    notes = [*notes, *([f"{counted(len(frame) - len(shown), 'more row')}"] if len(shown) < len(frame) else [])]
    table, n_names = with_index(shown)
    intervals = find_intervals(table) if bars else []
    bars_of = {interval.upper: _bars(table, interval) for interval in intervals}
    in_interval = {k for interval in intervals for k in interval}
    texts, kinds = cell_texts(table), kinds_of(table)
    top, columns = [], []
    for k, name in enumerate(table.columns):
        column, parts = column_at(table, k), name if isinstance(name, tuple) else (name,)
        number = is_number(column)
        top.append(_cell('th scope="col"', ", ".join(map(heading, parts)), number))
        tag = 'th scope="row"' if k < n_names else "td"
        full = _full_length(kinds[k], column, not intervals) if bars and k not in in_interval else None
        styles = [""] * len(column) if full is None else [_share(x / full) for x in as_numbers(column)]
        columns.append([_cell(tag, text, number, style) for text, style in zip(texts[k], styles, strict=True)])
        if k in bars_of:
            top.append("<td></td>")
            columns.append([f'<td class="bar"{style}></td>' for style in bars_of[k]])
    rows = [f"<tr>{''.join(cells)}</tr>" for cells in zip(*columns, strict=True)]
    caption = "" if title is None else f"<caption>{_text(title)}</caption>"
    below = "".join(f"<p>{escape(visible(note))}</p>" for note in notes)
    return (
        f'<div class="jaxeval tex2jax_ignore mathjax_ignore"><style>{_STYLE}</style>\n<table>{caption}'
        f"<thead><tr>{''.join(top)}</tr></thead>\n<tbody>\n" + "\n".join(rows) + f"\n</tbody></table>{below}</div>"
    )


def _bars(table: Any, interval: Interval) -> list[str]:
    """Return the style of each row's bar on the scale of all; none where the estimate or an end is missing."""
    columns = [as_numbers(column_at(table, k)) for k in interval]
    finite = np.concatenate(columns)
    finite = finite[np.isfinite(finite)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    estimate, lower, upper = (np.clip(2 + 96 * (x - low) / ((high - low) or 1.0), 0, 100) for x in columns)
    return [
        "" if np.isnan([x, a, b]).any() else f' style="background-image:{_gradient(x, a, b)}"'
        for x, a, b in zip(estimate, lower, upper, strict=True)
    ]


def _gradient(x: float, a: float, b: float) -> str:
    left, right = max(x - 1, 0), min(x + 1, 100)
    a, b = min(a, left), max(b, right)
    return (
        f"linear-gradient(90deg,transparent {a:.1f}%,{_BAND} {a:.1f}%,{_BAND} {left:.1f}%,{_POINT} {left:.1f}%,"
        f"{_POINT} {right:.1f}%,{_BAND} {right:.1f}%,{_BAND} {b:.1f}%,transparent {b:.1f}%)"
    )


def _full_length(kind: CellKind, column: pd.Series, alone: bool) -> float | None:
    """Return the value whose bar fills the cell: 1 of shares, the largest of counts; None for other numbers.

    Numbers from 0 to 1 are shares where the table has no intervals beside them (``alone``), or by their kind.
    """
    values = as_numbers(column)
    known = values[np.isfinite(values)]
    if len(known) == 0 or known.min() < 0 or known.max() == 0:
        return None
    if isinstance(column, Whole) or column.dtype.kind in "iu":
        return float(known.max()) if kind == COUNT else None
    is_share = column.dtype.kind == "f" and (alone or kind == SHARE or kind.percent)
    return 1.0 if is_share and known.max() <= 1 else None


def _share(share: float) -> str:
    if not np.isfinite(share):
        return ""
    return f' style="background:linear-gradient(90deg,{_SHARE} {100 * share:.1f}%,transparent {100 * share:.1f}%)"'


def _cell(tag: str, text: str, number: bool, style: str = "") -> str:
    kind = ' class="long"' if len(text) > _LONG else ' class="number"' if number else ""
    return f"<{tag}{kind}{style}>{_text(text)}</{tag[:2]}>"


def _text(text: str) -> str:
    return escape(visible_line(text))


_LONGEST = 36


def text_table(frame: Any, *, width: int = 80, most_rows: int | None = None, n_rows: int | None = None) -> str:
    """Return the first rows and columns of a table, as many as fit into ``width``, and a line on what is not shown.

    An index that names its rows comes first. ``n_rows`` are all rows, where the table holds only the first ones.
    """
    shown = frame if most_rows is None else frame.head(most_rows)
    table, n_names = with_index(shown)
    texts = cell_texts(table)
    columns, names, used = [], [], 0
    ends = {interval.lower: interval for interval in find_intervals(table)}
    within = {interval.upper for interval in ends.values()}
    for k, name in enumerate(table.columns):
        if k in within or (table.shape[0] and not any(texts[k])):  # a column of empty texts
            continue
        head, cells = _short(visible_line(", ".join(map(str, name)) if isinstance(name, tuple) else name)), texts[k]
        names.append(head if k not in ends else f"{head}, {visible_line(table.columns[ends[k].upper])}")
        if interval := ends.get(k):
            head = f"{head.removeprefix(f'{table.columns[interval.estimate]}_')}, upper"
            cells = [
                "-" if a == b == "-" else f"{a}, {b}" for a, b in zip(texts[k], texts[interval.upper], strict=True)
            ]
        columns.append(_aligned([head, *map(_short, cells)], right=is_number(column_at(table, k))))
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
    """Fold lines of ``text`` at words, each into at most ``most_lines``; write invisible characters out."""
    lines = visible(text).split("\n")
    return "\n".join(
        fill(line, width, subsequent_indent="  ", max_lines=most_lines, placeholder=" …") for line in lines
    )


def text_width(text: str) -> int:
    """Return the columns of a text in a terminal: two for a wide East Asian character, none for a combining accent."""
    return sum(0 if combining(sign) else 1 + (east_asian_width(sign) in "WF") for sign in text)


def _short(text: str) -> str:
    return shortened(text, _LONGEST)


def _aligned(cells: list[str], right: bool) -> list[str]:
    width = max(map(text_width, cells))
    pads = [" " * (width - text_width(cell)) for cell in cells]
    return [pad + cell if right else cell + pad for cell, pad in zip(cells, pads, strict=True)]


#: Characters that Markdown interprets; GitHub makes links of "://" and "www.", too.
MARKDOWN_SIGN = re.compile(r"([\\`*_{}\[\]<>|~$&@^#]|:(?=//)|(?<=www)\.)")
LATEX = {sign: f"\\{sign}" for sign in "{}$&#%_"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    '"': r"\char34{}",  # babel gives the sign itself another meaning
}
LATEX |= {sign: f"{{{sign}}}" for sign in "[]*"}  # after the end of a row LaTeX would read these as its options
LATEX |= {sign: f"{sign}{{}}" for sign in "-,"}  # LaTeX would draw two in a row as one character
LATEX_SIGN = re.compile(r"[\\{}$&#%_^~<>|`'\"\[\]*]|-(?=-)|,(?=,)")
_NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?")
#: A page holds so many rows.
_ROWS_OF_A_PAGE = 45


def markdown_text(text: str) -> str:
    """Escape ``text`` so that Markdown shows it unchanged; invisible characters are written out."""
    return MARKDOWN_SIGN.sub(r"\\\1", visible(text))


def markdown_table(
    table: Any, *, title: str | None = None, notes: Iterable[str] = (), heading: Callable[[Any], str] = usual_heading
) -> str:
    r"""Return a table in GitHub's Markdown, with a title above it and notes below it.

    Examples:
        >>> import pandas as pd
        >>> from jaxeval.show.documents import markdown_table
        >>> print(markdown_table(pd.DataFrame({"model": ["a|b"], "rating": [1012.25]})))
        | Model | Rating |
        |---|---:|
        | a\|b | 1012 |
        <BLANKLINE>
    """
    heads, columns, numbers = _cells(table, heading)
    lines = [] if title is None else [f"**{markdown_text(visible_line(title))}**", ""]
    lines.append(_markdown_row(heads))
    lines.append("|" + "|".join("---:" if number else "---" for number in numbers) + "|")
    lines += [_markdown_row(row) for row in zip(*columns, strict=True)]
    for note in notes:
        lines += ["", "  \n".join(markdown_text(note).split("\n"))]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    """Escape ``text`` so that LaTeX shows it unchanged; invisible characters are written out."""
    return LATEX_SIGN.sub(lambda sign: LATEX[sign[0]], visible(text))


def latex_table(
    table: pd.DataFrame, *, title: str | None = None, notes: Iterable[str] = (),
    heading: Callable[[Any], str] = usual_heading,
) -> str:  # fmt: skip
    r"""Return a table for LaTeX with the package booktabs, and longtable where it has more rows than a page.

    Names beyond Latin letters need XeLaTeX or LuaLaTeX, and a font that has them. The arguments are those of
    `markdown_table`.

    Examples:
        >>> import pandas as pd
        >>> from jaxeval.show.documents import latex_table
        >>> print(latex_table(pd.DataFrame({"model": ["a_b"], "rating": [-12.5]}), title="Ratings"))
        % \usepackage{booktabs}
        \begin{table}
        \caption{Ratings}
        \begin{tabular}{lr}
        \toprule
        Model & Rating \\
        \midrule
        a\_b & $-12.5$ \\
        \bottomrule
        \end{tabular}
        \end{table}
        <BLANKLINE>
    """
    heads, columns, numbers = _cells(table, heading)
    kinds = "".join("r" if number else "l" for number in numbers)
    head = " & ".join(map(latex_text, heads)) + r" \\"
    rows = []
    for row in zip(*columns, strict=True):
        cells = (_latex_number(text) if number else latex_text(text) for text, number in zip(row, numbers, strict=True))
        rows.append(" & ".join(cells) + r" \\")
    caption = [] if title is None else [rf"\caption{{{latex_text(visible_line(title))}}}"]
    below = [rf"\par\footnotesize {latex_text(visible_line(line))}" for note in notes for line in note.split("\n")]
    if len(rows) > _ROWS_OF_A_PAGE:
        top = ["% \\usepackage{booktabs,longtable}", rf"\begin{{longtable}}{{{kinds}}}"]
        top += [f"{line} \\\\" for line in caption]
        body = [*top, r"\toprule", head, r"\midrule", r"\endhead", *rows, r"\bottomrule", r"\end{longtable}", *below]
    else:
        top = ["% \\usepackage{booktabs}", r"\begin{table}", *caption, rf"\begin{{tabular}}{{{kinds}}}"]
        body = [*top, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}", *below, r"\end{table}"]
    return "\n".join(body) + "\n"


def _cells(table: Any, heading: Callable[[Any], str]) -> tuple[list[str], list[list[str]], list[bool]]:
    """Return headings, the cells of each column, and which columns hold numbers."""
    frame, _ = with_index(table)
    heads = [visible_line(heading(name)) for name in frame.columns]
    numbers = [is_number(column_at(frame, k)) for k in range(len(heads))]
    return heads, cell_texts(frame), numbers


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(markdown_text(text) for text in cells) + " |"


def _latex_number(text: str) -> str:
    """Return a number in LaTeX's mathematical notation."""
    infinite = {"inf": r"$\infty$", "-inf": r"$-\infty$"}
    if text in infinite:
        return infinite[text]
    return f"${text.replace(',', '{,}')}$" if _NUMBER.fullmatch(text) and text[0] in "+-" else latex_text(text)
