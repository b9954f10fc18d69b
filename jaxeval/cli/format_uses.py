"""Which commands fit a file of a published format, and with which options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from jaxeval.cli.uses import Use, use_of
from jaxeval.data.formats import Format, Head, Source
from jaxeval.data.found_columns import quoted
from jaxeval.data.published_formats import format_of_names
from jaxeval.errors import DataError
from jaxeval.plain_tables import in_pandas


def known_formats(head: Head, others: Callable[[], Sequence[Head]] = lambda: ()) -> Iterator[Use]:
    """Yield what a file of a published format, and ``others`` beside it, are for."""
    is_document = head.document is not None
    for shape in ("pair", "answer"):
        form = format_of_names(head.names, shape, is_document=is_document, rows=lambda: head.rows)
        if form is None:
            continue
        alike = [one for one in others() if (one.document is not None) == is_document and form.seen(one.names)]
        contents = [x for one in (head, *alike) if (x := one.document if is_document else one.rows) is not None]
        choices = [form.one_of(content) for content in contents]
        if choices and not any(one.get("--score", ["score"]) for one in choices):
            return
        chosen = _chosen(choices)
        asks = (*(form.asks(contents[0]) if contents else ()), *chosen)
        hint = form.hint if asks else ""
        table = None
        if is_document:
            try:
                table = _table_of(form, contents, dict(zip(chosen[::2], chosen[1::2], strict=True)))
            except DataError as error:
                hint = f"correct it first: {error}"
        if table is not None and not _is_complete(table):
            asks = (*asks, "--missing", "available")
            hint = "; ".join(filter(None, (hint, "each model is scored on the answers that have a score")))
        what = form.name if is_document or not form.marks else f"{form.name}, told by {quoted(form.seen(head.names))}"
        if form.shape == "pair":
            yield use_of("leaderboard", asks, what, hint, "Ratings of the models")
            yield use_of("audit", asks, what)
        elif is_document and len(contents) == 1 and (table is None or len({*table["model"]}) == 1):
            hint = hint or "add the files of other models to the line, to compare them"
            yield use_of("scores", asks, what, hint, "The score of a model, with an interval")
        else:
            yield use_of("scores", asks, what, hint, "Scores of models, with intervals")


def _table_of(form: Format, documents: Sequence[Any], chosen: Mapping[str, str]) -> pd.DataFrame | None:
    """Return the scores of answers in documents; None where some that have none are not named."""
    sources = [Source("", names=list(x), document=x, score=chosen.get("--score")) for x in documents]
    tables = [in_pandas(form.read(source)) for source in sources]
    # A report need not name what was not resolved.
    return None if any(table.attrs.get("resolved") for table in tables) else pd.concat(tables)


def _is_complete(table: pd.DataFrame) -> bool:
    """Return whether every model has a score of every item."""
    items = [name for name in ("benchmark", "item") if name in table]
    n_pairs, n_items = (len(table[names].drop_duplicates()) for names in (["model", *items], items))
    return bool(table["score"].notna().all() and n_pairs == table["model"].nunique() * n_items)


def _chosen(choices: Sequence[Mapping[str, Sequence[str]]]) -> tuple[str, ...]:
    """Return options that choose one of the names of each file, where a file has several."""
    options: list[str] = []
    for option in dict.fromkeys(option for one in choices for option in one):
        of_files = [names for one in choices if (names := one.get(option))]
        if max(map(len, of_files), default=0) > 1:
            first: list[str] = []
            for names in of_files:
                first += [] if {*first} & {*names} else [names[0]]
            options += [option, ",".join(first)]
    return tuple(options)
