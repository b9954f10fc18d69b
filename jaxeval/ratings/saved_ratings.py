"""Ratings in a plain JSON file, with what made them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from jaxeval.data.versioned_json import read_versioned, write_versioned
from jaxeval.errors import DataError

if TYPE_CHECKING:
    from jaxeval.ratings.bradley_terry import BradleyTerryFit

_FORMAT, _VERSION = "jaxeval ratings", 1


def save_ratings(fit: BradleyTerryFit, path: str | Path) -> None:
    """See `BradleyTerryFit.save`."""
    ratings = zip(fit.ratings.index.tolist(), fit.ratings.tolist(), strict=True)
    # JSON has neither infinity nor NaN: unrated models are spelled out.
    spelled = [[model, rating if abs(rating) < float("inf") else str(rating)] for model, rating in ratings]
    write_versioned(path, _FORMAT, _VERSION, {"settings": asdict(fit.settings), "ratings": spelled})


def read_ratings(path: str | Path) -> pd.Series:
    """Ratings by model (Elo) that `BradleyTerryFit.save` wrote; ``attrs["settings"]`` is what made them.

    Raises:
        DataError: the file is not one, is broken, or is of a version that this jaxeval does not know.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    content = read_versioned(path, _FORMAT, _VERSION, "saved ratings")
    try:
        models, values = zip(*content["ratings"], strict=True)
        ratings = pd.Series([float(v) for v in values], pd.Index(models, name="model"), name="rating")
        ratings.attrs["settings"] = dict(content["settings"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path.name} holds broken ratings ({type(error).__name__}: {error})") from error
    return ratings
