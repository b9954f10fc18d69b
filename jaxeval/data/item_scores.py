"""Scores of models item by item, from which the scores of a resample of items are computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.data.columns import as_frame, factorize_sorted, numbers_or_nan, reject_infinite, require_column
from jaxeval.errors import DataError
from jaxeval.tables.shown import ROWS_OF_DATA, Shown, View
from jaxeval.tables.table import PropertyTable
from jaxeval.wording import counted, did_you_mean


class ItemColumn(NamedTuple):
    """A further column: its sorted values, and the distinct pairs of an item and a value."""

    levels: pd.Index
    item: NDArray[np.intp]  # (R,)
    number: NDArray[np.intp]  # (R,)


@dataclass(frozen=True, eq=False, repr=False)
class ItemScores(Shown):
    """Scores by item, evaluator and model, in the evaluator's points; a model's score is the mean over its items.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> table = pd.DataFrame({"model": [*"xxyy"], "item": [1, 2, 1, 2], "score": [1.0, 0.0, 1.0, 1.0]})
        >>> scores = jaxeval.ItemScores.from_pandas(table)
        >>> scores.means["score"].to_dict()
        {'x': 0.5, 'y': 1.0}
    """

    scores: Float  # (I, E, M), NaN where missing
    items: pd.Index
    evaluators: pd.Index
    models: pd.Index
    columns: Mapping[str, ItemColumn] = field(default_factory=dict, repr=False)

    def _shown(self) -> View:
        sizes = {"item": self.items, "evaluator": self.evaluators, "model": self.models}
        title = f"ItemScores: {', '.join(counted(len(index), name) for name, index in sizes.items())}; mean scores"
        return View(title, self.means.head(ROWS_OF_DATA), n_rows=len(self.models))

    @classmethod
    def from_pandas(
        cls,
        frame: Any,
        model: str = "model",
        item: str = "item",
        score: str = "score",
        evaluator: str | None = None,
        keep: Sequence[str] = (),
    ) -> ItemScores:
        """Scores from a table with a row per model and item (and evaluator, if that column is named).

        Several scores of a model on an item, as repeated runs give, are averaged. Missing scores are left out.

        Args:
            frame: the table.
            model: column of models.
            item: column of items.
            score: column of scores.
            evaluator: column of evaluators.
            keep: further columns of items, for ``strata=`` of measures.

        Raises:
            DataError: a column is missing, holds missing names, or is not numeric; or no score is left.
        """
        frame = as_frame(frame)
        columns = [model, item, score, *([] if evaluator is None else [evaluator]), *keep]
        for column in columns:
            require_column(frame, column)
        values = numbers_or_nan(frame[score], score)
        reject_infinite(np.isinf(values), f"column {score!r}", "score")
        if np.isnan(values).all():
            raise DataError(f"column {score!r} has no score at all")
        m, models = factorize_sorted(frame[model], model)
        i, items = factorize_sorted(frame[item], item)
        e, evaluators = (
            (np.zeros(len(frame), np.intp), pd.Index([score]))
            if evaluator is None
            else factorize_sorted(frame[evaluator], evaluator)
        )
        there = ~np.isnan(values)
        shape = len(items), len(evaluators), len(models)
        cell = np.ravel_multi_index((i[there], e[there], m[there]), shape)
        size = int(np.prod(shape))
        times = np.bincount(cell, minlength=size)
        total = np.bincount(cell, values[there], size)
        mean = np.where(times > 0, total / np.maximum(times, 1), np.nan)
        kept = {name: _item_column(frame[name], name, i) for name in keep}
        return cls(mean.reshape(shape), items, evaluators, models, kept)

    def column(self, name: str) -> ItemColumn:
        """A column that was kept.

        Raises:
            DataError: there is none of that name.
        """
        if name not in self.columns:
            have = ", ".join(map(repr, self.columns)) or "none"
            raise DataError(
                f"no column {name!r} was kept with the items; there are {have} (keep=[...] of ItemScores.from_pandas)"
                f"{did_you_mean(name, self.columns)}"
            )
        return self.columns[name]

    @property
    def means(self) -> pd.DataFrame:
        """Mean scores, a row per model and a column per evaluator; NaN where there is none."""
        there = ~np.isnan(self.scores)
        n = there.sum(0)
        step = step_of_means(self.scores)
        mean = np.where(n > 0, np.where(there, self.scores, 0.0).sum(0) / np.maximum(n, 1), np.nan)
        mean = np.round(mean / step) * step
        return PropertyTable(mean.T, self.models.rename("model"), self.evaluators.rename("evaluator"))

    @property
    def standard_errors(self) -> pd.DataFrame:
        """Standard errors of `means` over independent items, of the same shape; NaN with fewer than two items."""
        there = ~np.isnan(self.scores)
        n = there.sum(0)
        away = np.where(there, self.scores - self.means.to_numpy().T, 0.0)
        error = np.sqrt((away**2).sum(0) / np.where(n > 1, n * (n - 1.0), np.nan))
        return PropertyTable(error.T, self.models.rename("model"), self.evaluators.rename("evaluator"))


def _item_column(column: pd.Series, name: str, item: NDArray[np.intp]) -> ItemColumn:
    number, levels = factorize_sorted(column, name)
    pairs = np.unique(item * len(levels) + number)
    return ItemColumn(levels, *np.divmod(pairs, len(levels)))


def step_of_means(scores: Float) -> np.float64:
    """The power of two that means of ``scores`` are rounded to, 1e-12 of the largest of them or so.

    Means of the same scores in another order are so the same number, and not two that differ by rounding.
    """
    largest = np.nanmax(np.abs(scores), initial=0.0)
    return np.float64(2.0 ** (np.ceil(np.log2(largest)) - 40)) if largest > 0 else np.float64(1.0)
