"""Values as pages have them: numbers in JSON, and ids in addresses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd


def number_of(value: Any) -> float | int | str | None:
    """A number as JSON has it: to a millionth, infinite ones in words, missing ones as None."""
    if value is None or pd.isna(value):
        return None
    if isinstance(value, int | np.integer):
        return int(value)
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    rounded = round(float(value), 6)
    return int(rounded) if rounded == int(rounded) else rounded


def free_id(title: str, taken: set[str]) -> str:
    """A short id of letters and digits, which is then among those that are ``taken``."""
    stem = re.sub(r"[\W_]+", "-", title.casefold()).strip("-")[:40] or "part"
    name, k = stem, 2
    while name in taken:
        name, k = f"{stem}-{k}", k + 1
    taken.add(name)
    return name
