"""Label smoothing beside Soft-Elo: what the size of a score difference adds to its sign (Appendix H)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.softelo.held_out import smoothing
from jaxeval.softelo.soft_elo import soft_elo

#: Constants of Table 8.
CONSTANTS = (0.55, 0.65, 0.75, 0.85, 0.95)


def label_smoothing_sweep(
    battles: JudgedBattles, constants: Sequence[float] = CONSTANTS, ridge: float = 0.01
) -> pd.DataFrame:
    """Held-out accuracy of label smoothing by its constant, all in one call (Table 8 of arXiv:2606.13221).

    A hard label 1 or 0 becomes c or 1 - c: Soft-Elo that sees the sign of the score difference only. The constant with
    the least error is found by looking at the errors; it is no estimate from the data, as the temperature is.

    Args:
        battles: with human labels.
        constants: c, each in [0.5, 1].
        ridge: > 0, as in `soft_elo`.

    Returns:
        One row a method, hard and soft first: ``method, constant`` (1 for hard, NaN for soft), ``n_models, mae`` (Elo,
        with its 95 % interval over models ``mae_lower, mae_upper``), ``spearman, kendall``. ``attrs`` holds
        ``warnings`` and ``settings``.
    """
    names = [f"smooth:{float(c)!r}" for c in dict.fromkeys(constants)]
    held_out = soft_elo(battles, ridge, 0, methods=("hard", "soft", *names))
    table = held_out.summary.reset_index()
    table.insert(1, "constant", [np.nan if name == "soft" else smoothing(name) for name in table["method"]])
    table = table[["method", "constant", "n_models", "mae", "mae_lower", "mae_upper", "spearman", "kendall"]]
    table.attrs = {"warnings": held_out.warnings, "settings": {"ridge": ridge}}
    return table
