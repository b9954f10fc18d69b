"""Numbers from few pairs of models: the one rule by which tables, advice and figures hide them."""

from __future__ import annotations

import numpy as np
import pandas as pd

#: Numbers from fewer pairs of models are hidden, as in Xu et al. (see `reference_study`).
FEW_PAIRS = 15


def hide_few_pairs(table: pd.DataFrame, name: str, few_pairs: int = FEW_PAIRS, count: str = "n_pairs") -> pd.DataFrame:
    """``table`` with NaN for the numbers ``name``, and for their intervals, that come from too few pairs of models.

    Args:
        table: has the column ``name``. Its interval is the columns ``name``_lower and ``name``_upper, or else lower and
            upper.
        name: the column of numbers.
        few_pairs: a number from fewer pairs becomes NaN; 0 hides none.
        count: the column that counts the pairs behind each number.

    Returns:
        A copy with the same rows and columns, and the counts as they are.
    """
    ends = [f"{name}_lower", f"{name}_upper"]
    if ends[0] not in table:
        ends = ["lower", "upper"]
    columns = [column for column in (name, *ends) if column in table]
    few = table[count].fillna(0) < few_pairs
    return table.assign(**{column: table[column].mask(few, np.nan) for column in columns})


def hide_few_in_agreement(table: pd.DataFrame, few_pairs: int = FEW_PAIRS) -> pd.DataFrame:
    """`hide_few_pairs` of every number of `agreement_by_gap`, each by its own count of pairs."""
    for name, count in (("probability", "n_ordered"), ("average_below", "n_pairs"), ("observed", "n_observed")):
        table = hide_few_pairs(table, name, few_pairs, count)
    return table
