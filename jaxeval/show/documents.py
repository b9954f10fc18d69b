"""Tables for documents, in Markdown and LaTeX: every name is shown as plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from jaxeval.show.cells import cell_texts, with_index
from jaxeval.show.headings import heading as usual_heading
from jaxeval.wording import visible, visible_line

if TYPE_CHECKING:
    import pandas as pd

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
    table: pd.DataFrame,
    *,
    title: str | None = None,
    notes: Iterable[str] = (),
    heading: Callable[[Any], str] = usual_heading,
) -> str:
    r"""A table in GitHub's Markdown, with a title above it and notes below it.

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
    r"""A table for LaTeX with the package booktabs, and longtable where it has more rows than a page.

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


def _cells(table: pd.DataFrame, heading: Callable[[Any], str]) -> tuple[list[str], list[list[str]], list[bool]]:
    """Headings, the cells of each column, and which columns hold numbers."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    frame, _ = with_index(table)
    heads = [visible_line(heading(name)) for name in frame.columns]
    numbers = [is_numeric_dtype(kind) and not is_bool_dtype(kind) for kind in frame.dtypes]
    return heads, cell_texts(frame), numbers


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(markdown_text(text) for text in cells) + " |"


def _latex_number(text: str) -> str:
    """A number in LaTeX's mathematical notation."""
    infinite = {"inf": r"$\infty$", "-inf": r"$-\infty$"}
    if text in infinite:
        return infinite[text]
    return f"${text.replace(',', '{,}')}$" if _NUMBER.fullmatch(text) and text[0] in "+-" else latex_text(text)
