"""The one list of published formats: those of jaxeval, and those that other packages add."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from importlib.metadata import entry_points

from jaxeval.data.columns import folded
from jaxeval.data.formats import Format, Shape
from jaxeval.data.harness_formats import ANSWERS
from jaxeval.data.published_formats import PAIRS


@cache
def formats() -> dict[str, Format]:
    """Published formats of judgments by name, in the order in which a file is compared with them.

    Other packages add formats by entry points of the group ``jaxeval.formats``, each a `Format`. They come after those
    of jaxeval, whose names they cannot take. One that cannot be loaded is left out, with a warning.

    Examples:
        >>> import jaxeval
        >>> list(jaxeval.formats())[:2]
        ["MT-bench's judgments of pairs", "MT-bench's scores of single answers"]
    """
    every = {form.name: form for form in (*PAIRS, *ANSWERS)}
    for entry in entry_points(group="jaxeval.formats"):
        try:
            form = entry.load()
        except Exception as error:  # whatever another package does when it is imported
            warnings.warn(f"the format {entry.name} of {entry.value} cannot be imported: {error}", stacklevel=2)
            continue
        if isinstance(form, Format):
            every.setdefault(form.name, form)
        else:
            warnings.warn(f"{entry.name} of {entry.value} must be a jaxeval.Format, got {form!r}", stacklevel=2)
    return every


def format_of_names(names: Sequence[str], shape: Shape, is_document: bool = False) -> Format | None:
    """The first format of a shape that a file with these columns, or a JSON object with these keys, has."""
    if shape == "pair" and {"modela", "modelb"} <= {folded(name) for name in names}:
        return None  # a table of battles
    known = (form for form in formats().values() if (form.shape, form.is_document) == (shape, is_document))
    return next((form for form in known if form.seen(names)), None)
