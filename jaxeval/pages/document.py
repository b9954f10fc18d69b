"""One HTML file from a template, plain scripts and styles, and data; nothing else can run in it or be fetched."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.execution.atomic_write import whole_file
from jaxeval.show.documents import LATEX, LATEX_SIGN, MARKDOWN_SIGN
from jaxeval.show.files import FORMULA

#: Files of this package that become one script, in this order: the others declare, and `main.js` starts.
SCRIPTS = (
    "dom.js", "format.js", "packed.js", "state.js", "copying.js", "tables.js", "charts.js", "board.js", "intervals.js",
    "prices.js", "categories.js", "history.js", "refit.js", "what_if.js", "heat_maps.js", "results.js", "about.js",
    "main.js",
)  # fmt: skip
#: Further ones of a page that reads votes, before `main.js`.
READING = ("resample.js", "votes_file.js", "blank.js")
LOADER, STYLES = "loader.js", ("page.css",)
#: Characters that could end the element around the data, or begin another one.
_IN_MARKUP = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def document(
    template: str, data: Mapping[str, Any], reads: bool = False, page: Mapping[str, Any] | None = None,
    small: bool = False,
) -> str:  # fmt: skip
    """Return the page of a template in ``templates``, which extends ``base.html.jinja``.

    The script gets the ``data``; it ``reads`` files of votes and resamples them in a worker, or is ``small``: packed,
    and started by ``loader.js``. The template shows the ``page``, by default the data, to readers without scripts.
    """
    scripts, style = [script_text(reads)], style_text()
    code = packed_text(scripts[0].encode()) if small else None
    if small:
        scripts.insert(0, _joined([LOADER]))
    values = {
        "policy": policy(scripts, style, reads), "script": scripts[0], "code": code, "style": style,
        "data": json_in_html(data), "page": data if page is None else page,
    }  # fmt: skip
    return f"{_environment().get_template(template).render(**values).strip()}\n"


def packed_text(content: bytes) -> str:
    """Return bytes as base64 of gzip."""
    return b64encode(gzip.compress(content, 9, mtime=0)).decode("ascii")


def write_document(html: str, path: str | Path) -> None:
    """Write a page as UTF-8, whole or not at all."""
    with whole_file(path) as file:
        file.write(html.encode())


def policy(scripts: Sequence[str], style: str, reads: bool = False) -> str:
    """Return the content-security policy: only these scripts and this style may run, and no request is allowed.

    A page that ``reads`` votes may start a worker from a text of its own, which obeys the same policy.
    """
    rules = [
        "default-src 'none'",
        f"script-src {' '.join(map(_hash, scripts))}",
        f"style-src {_hash(style)}",
        "img-src data:",  # the icon, without which browsers ask servers for one
        *(["worker-src blob:"] if reads else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def json_in_html(data: Mapping[str, Any]) -> str:
    """Return ``data`` as ASCII JSON without characters of markup, whatever names it holds."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign, escape in _IN_MARKUP.items():
        text = text.replace(sign, escape)
    return text


@cache
def script_text(reads: bool = False) -> str:
    """Return all scripts within one function, so that they declare no global name."""
    *names, main = SCRIPTS
    text = written_signs() + _joined([*names, *(READING if reads else ()), main])
    return f'(() => {{\n"use strict";\n{text}}})();\n'


def written_signs() -> str:
    """Return what `jaxeval.show` escapes in CSV, Markdown and LaTeX, for the script that copies tables."""
    patterns = {"formula": FORMULA, "markdown": MARKDOWN_SIGN, "latex": LATEX_SIGN}
    signs = {name: pattern.pattern for name, pattern in patterns.items()} | {"latex_signs": LATEX}
    return f"const WRITTEN = {json.dumps(signs)};\n"


@cache
def style_text() -> str:
    """Return all styles."""
    return _joined(STYLES)


def _joined(names: Sequence[str]) -> str:
    home = files(__package__)
    return "".join(home.joinpath(name).read_text(encoding="utf-8") for name in names)


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Any:
    """Return the templates. They escape all values but our own script, style and JSON, which they mark as safe."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("jaxeval.pages"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {
        "rating": lambda value: "unrated" if value is None else f"{value:.1f}",
        "interval": _interval,
        "count": lambda value: f"{value:,.6g}" if isinstance(value, float) else f"{value:,}",
    }
    return environment


def _interval(row: Mapping[str, Any]) -> str:
    """Return the ends of an interval as distances from the rating."""
    if "rating" not in row or "lower" not in row:
        return ""
    upper, lower = (float(row[end]) - row["rating"] for end in ("upper", "lower"))
    return f"{upper:+.1f} / {lower:+.1f}".replace("-", "\u2212").replace("inf", "\u221e")


def number_of(value: Any) -> float | int | str | None:
    """Return a number for JSON, rounded to a millionth: "inf" and "-inf" for infinite ones, None for missing ones."""
    if value is None or pd.isna(value):
        return None
    if isinstance(value, int | np.integer):
        return int(value)
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    rounded = round(float(value), 6)
    return int(rounded) if rounded == int(rounded) else rounded


def free_id(title: str, taken: set[str]) -> str:
    """Return a short id of letters and digits that is not ``taken``; it is added to those."""
    stem = re.sub(r"[\W_]+", "-", title.casefold()).strip("-")[:40] or "part"
    name, k = stem, 2
    while name in taken:
        name, k = f"{stem}-{k}", k + 1
    taken.add(name)
    return name
