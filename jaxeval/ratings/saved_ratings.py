"""Ratings in a plain JSON file, with what made them."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file

if TYPE_CHECKING:
    from jaxeval.ratings.bradley_terry import BradleyTerryFit

_FORMAT, _VERSION = "jaxeval ratings", 1


def save_ratings(fit: BradleyTerryFit, path: str | Path) -> None:
    """See `BradleyTerryFit.save`."""
    ratings = zip(fit.ratings.index.tolist(), fit.ratings.tolist(), strict=True)
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "settings": asdict(fit.settings),
        # JSON has neither infinity nor NaN: unrated models are spelled out.
        "ratings": [[model, rating if abs(rating) < float("inf") else str(rating)] for model, rating in ratings],
    }
    try:
        text = json.dumps(content, indent=1, allow_nan=False)
    except TypeError as error:
        raise DataError(f"models must be named by text or numbers to be saved: {error}") from error
    with whole_file(path) as file:
        file.write(text.encode() + b"\n")


def read_ratings(path: str | Path) -> pd.Series:
    """Ratings by model (Elo) that `BradleyTerryFit.save` wrote; ``attrs["settings"]`` is what made them.

    Raises:
        DataError: the file is not one, is broken, or is of a version that this jaxeval does not know.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path.name} holds no saved ratings: it is no JSON text ({error})") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise DataError(f"{path.name} holds no saved ratings: it does not say 'format': {_FORMAT!r}")
    if content.get("version") != _VERSION:
        raise DataError(
            f"{path.name} has version {content.get('version')!r} of the format of ratings, this jaxeval reads version "
            f"{_VERSION}: use the jaxeval that wrote it"
        )
    try:
        models, values = zip(*content["ratings"], strict=True)
        ratings = pd.Series([float(v) for v in values], pd.Index(models, name="model"), name="rating")
        ratings.attrs["settings"] = dict(content["settings"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path.name} holds broken ratings ({type(error).__name__}: {error})") from error
    return ratings
