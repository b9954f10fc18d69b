"""Values in the form that pages use: numbers in JSON, and ids in addresses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd


def number_of(value: Any) -> float | int | str | None:
    """A number for JSON, rounded to a millionth: "inf" and "-inf" for infinite ones, None for missing ones."""
    if value is None or pd.isna(value):
        return None
    if isinstance(value, int | np.integer):
        return int(value)
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    rounded = round(float(value), 6)
    return int(rounded) if rounded == int(rounded) else rounded


def free_id(title: str, taken: set[str]) -> str:
    """A short id of letters and digits that is not ``taken``; it is added to those."""
    stem = re.sub(r"[\W_]+", "-", title.casefold()).strip("-")[:40] or "part"
    name, k = stem, 2
    while name in taken:
        name, k = f"{stem}-{k}", k + 1
    taken.add(name)
    return name
