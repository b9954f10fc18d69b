"""Scores of models on items."""

import numpy as np
import pandas as pd


def answers(n, chances, seed=0):
    """Right and wrong answers of models to n items, as a long table."""
    rng = np.random.default_rng(seed)
    hard = rng.random((n, 1))
    values = (0.5 * rng.random((n, len(chances))) + 0.5 * hard < np.array(chances)).astype(float)
    names = [f"m{k}" for k in range(len(chances))]
    frame = pd.DataFrame(values, columns=names).rename_axis("item").reset_index()
    return frame.melt("item", var_name="model", value_name="score")


def wide(table):
    """A row an item and a column a model."""
    return table.pivot_table(index="item", columns="model", values="score")
