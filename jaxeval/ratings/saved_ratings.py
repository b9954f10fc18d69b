"""Ratings in a plain JSON file, with what made them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from jaxeval.data.file_lists import local_file
from jaxeval.data.versioned_json import read_versioned, write_versioned
from jaxeval.errors import DataError

_FORMAT, _VERSION = "jaxeval ratings", 1
_MOST = 2**1023  # smaller whole numbers become doubles without overflow


def save_ratings(ratings: pd.Series, settings: Mapping[str, Any], path: str | Path) -> None:
    """See `BradleyTerryFit.save`."""
    rows = zip(ratings.index.tolist(), ratings.tolist(), strict=True)
    # JSON has neither infinity nor NaN: unrated models are spelled out.
    spelled = [[model, rating if abs(rating) < float("inf") else str(rating)] for model, rating in rows]
    write_versioned(path, _FORMAT, _VERSION, {"settings": dict(settings), "ratings": spelled})


def read_ratings(path: str | Path) -> pd.Series:
    """Ratings by model (Elo) that `BradleyTerryFit.save` wrote; ``attrs["settings"]`` is what made them.

    Raises:
        DataError: the file holds no ratings, is broken, or is of a version that this jaxeval does not know.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import jaxeval
        >>> jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 4, seed=0)).save("ratings.json")
        >>> ratings = jaxeval.read_ratings("ratings.json")
        >>> ratings.round().astype(int).to_dict()
        {'model-1': 1098, 'model-2': 992, 'model-3': 968, 'model-4': 942}
        >>> ratings.attrs["settings"]["gauge"]
        'mean rating 1000'
    """
    path = local_file(path)
    content = read_versioned(path, _FORMAT, _VERSION, "saved ratings")
    rows, settings = content.get("ratings"), content.get("settings")
    if not isinstance(rows, list) or not rows or not isinstance(settings, dict):
        raise DataError(f"{path.name} holds broken ratings: it lacks the list 'ratings' or the 'settings'")
    for row in rows:
        if (
            not isinstance(row, list)
            or len(row) != 2
            or not (isinstance(row[0], str | int | float) and _is_rating(row[1]))
        ):
            raise DataError(f"{path.name} holds broken ratings: expected [model, number], got {str(row)[:80]}")
    models, values = zip(*rows, strict=True)
    ratings = pd.Series([float(v) for v in values], pd.Index(models, name="model"), name="rating")
    if not ratings.index.is_unique:
        twice = ratings.index[ratings.index.duplicated()][0]
        raise DataError(f"{path.name} holds broken ratings: model {twice!r} is there more than once")
    ratings.attrs["settings"] = settings
    return ratings


def _is_rating(value: Any) -> bool:
    """Return whether it is a number that a double holds, or one of those that JSON lacks."""
    if isinstance(value, str):
        return value in ("inf", "-inf", "nan")
    return isinstance(value, float) or (type(value) is int and abs(value) < _MOST)
