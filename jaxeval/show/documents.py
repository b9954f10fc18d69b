"""Tables and pages for documents, in Markdown, LaTeX and HTML: every name is shown as plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from jaxeval.lazy_names import is_frame, pd
from jaxeval.show.cells import cell_texts, column_at, is_number, only_counts, with_index
from jaxeval.show.cells import heading as usual_heading
from jaxeval.show.html import html_table
from jaxeval.show.shown import Part
from jaxeval.wording import counted, visible, visible_line

#: Characters that Markdown interprets; GitHub makes links of "://" and "www.", too.
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|~$&@^#]|:(?=//)|(?<=www)\.)")
_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    '"': r"\char34{}",  # babel gives the sign itself another meaning
    # After the end of a row LaTeX would read these as options of the row.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    # LaTeX would draw two in a row as one character.
    "-": "-{}",
    ",": ",{}",
}
_LATEX_SIGN = re.compile(r"[\\{}$&#%_^~<>|`'\"\[\]*]|-(?=-)|,(?=,)")
_NUMBER = re.compile(r"[+-]?[\d.,]+(e[+-]?\d+)?")
#: A page holds so many rows.
_ROWS_OF_A_PAGE = 45


def markdown_text(text: str) -> str:
    """``text`` escaped so that Markdown shows it unchanged; invisible characters are written out."""
    return _MARKDOWN.sub(r"\\\1", visible(text))


def markdown_table(
    table: Any, *, title: str | None = None, notes: Iterable[str] = (), heading: Callable[[Any], str] = usual_heading
) -> str:
    r"""Return a table in GitHub's Markdown, with a title above it and notes below it.

    Args:
        table: its columns, after an index that names its rows.
        title: a line above it.
        notes: lines below it.
        heading: makes a heading of a column's name.

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


def markdown_page(
    top: Part | None, *sections: Part, rows: int | None = None, heading: Callable[[Any], str] = usual_heading
) -> str:
    """Return a page of Markdown: a title with numbered sentences, and sections with ``rows`` of each table."""
    lines = [] if top is None else [f"# {top.title}", ""]
    lines += [f"{k}. {markdown_text(sentence)}" for k, sentence in enumerate(top.below if top else (), 1)]
    for part in sections:
        lines += ["", f"## {part.title}", "", *(f"- {markdown_text(sentence)}" for sentence in part.below)]
        if is_frame(part.table) and len(part.table):
            shown = part.table.reset_index(drop=only_counts(part.table.index)).head(rows or len(part.table))
            left = len(part.table) - len(shown)
            notes = [f"and {counted(left, 'more row')}"] if left else []
            lines += ["", markdown_table(shown, notes=notes, heading=heading).rstrip()]
    return "\n".join(lines).lstrip("\n") + "\n"


def html_page(
    top: Part, *sections: Part, rows: int | None = None, heading: Callable[[Any], str] = usual_heading
) -> str:
    """Return the same page as HTML, with bars in its tables."""

    def text(tag: str, value: str | None) -> str:
        return f"<{tag}>{escape(visible(value or ''))}</{tag}>"

    def items(part: Part) -> str:
        return "".join(text("li", sentence) for sentence in part.below)

    head = f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n{text("title", top.title)}\n<body>'
    lines = [head, text("h1", top.title), f"<ol>{items(top)}</ol>"]
    for part in sections:
        lines += [text("h2", part.title), f"<ul>{items(part)}</ul>"]
        if is_frame(part.table) and len(part.table):
            lines.append(html_table(part.table, heading=heading, most_rows=rows))
    return "\n".join([*lines, "</body>\n</html>"]) + "\n"


def latex_text(text: str) -> str:
    """``text`` escaped so that LaTeX shows it unchanged; invisible characters are written out."""
    return _LATEX_SIGN.sub(lambda sign: _LATEX[sign[0]], visible(text))


def latex_table(
    table: pd.DataFrame,
    *,
    title: str | None = None,
    notes: Iterable[str] = (),
    heading: Callable[[Any], str] = usual_heading,
) -> str:
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
    """Headings, the cells of each column, and which columns hold numbers."""
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
