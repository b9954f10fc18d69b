"""Rows of coverage: what an interval held on simulated data sets, beside what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

Row = dict[str, Any]
#: What the parts simulate, by name: each returns rows, and takes how many data sets it simulates.
PARTS: dict[str, tuple[Callable[[int], list[Row]], int]] = {}
LEVEL = 0.95
#: A note on rows of few votes, where another interval than the default is asked for.
ASKED = "asked for by name: the default takes another interval for so few votes"


def part(n: int) -> Callable[[Callable[[int], list[Row]]], Callable[[int], list[Row]]]:
    """Registers a part that simulates ``n`` data sets a case."""

    def register(simulate: Callable[[int], list[Row]]) -> Callable[[int], list[Row]]:
        PARTS[simulate.__name__] = (simulate, n)
        return simulate

    return register


def inside(ends: pd.DataFrame, truth: ArrayLike, names: tuple[str, str] = ("lower", "upper")) -> NDArray[Any]:
    """Whether each interval holds its truth, 1 or 0; NaN where there is no interval."""
    lower, upper = (ends[name].to_numpy(float) for name in names)
    held = ((lower <= truth) & (np.asarray(truth) <= upper)).astype(float)
    return np.where(np.isnan(lower) | np.isnan(upper), np.nan, held)


def exact(
    functions: str | Sequence[str],
    method: str,
    case: str,
    held: ArrayLike,
    chance: ArrayLike,
    nominal: float = LEVEL,
    note: str = "",
) -> Row:
    """The row of an interval of counts: whether that of each outcome holds the truth, and the outcome's chance."""
    inside, p = np.asarray(held, float).ravel(), np.asarray(chance, float).ravel()
    known = np.isfinite(inside)
    return {
        "functions": [functions] if isinstance(functions, str) else list(functions),
        "method": method,
        "case": case,
        "nominal": nominal,
        "observed": float((np.where(known, inside, 0) * p).sum() / p[known].sum()),
        "standard_error": 0.0,
        "data_sets": None,
        "intervals": len(p),
        "without_interval": max(float(1 - p[known].sum()), 0.0),
        "note": note,
    }


def row(
    functions: str | Sequence[str], method: str, case: str, held: ArrayLike, nominal: float = LEVEL, note: str = ""
) -> Row:
    """The row of ``held``, (N,) or (N, K): N data sets with K intervals each, which depend on each other.

    The standard error is that over data sets. Where all intervals hold, it is that of the nominal share. ``note`` says
    what the library tells users of this case.
    """
    table = np.asarray(held, float).reshape(len(np.asarray(held)), -1)
    known = np.isfinite(table)
    some = known.any(1)
    each = np.where(known, table, 0.0).sum(1)[some] / known.sum(1)[some]
    error = float(np.std(each, ddof=1) / np.sqrt(len(each)))
    return {
        "functions": [functions] if isinstance(functions, str) else list(functions),
        "method": method,
        "case": case,
        "nominal": nominal,
        "observed": float(each.mean()),
        "standard_error": error or float(np.sqrt(nominal * (1 - nominal) / len(each))),
        "data_sets": len(table),
        "intervals": int(known.sum()),
        "without_interval": float(1 - known.mean()),
        "note": note,
    }
