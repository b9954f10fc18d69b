"""Evaluators' scores and gold scores of the same models, in one order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.types import is_numeric_dtype

from jaxeval.arrays import Bool, Float, Int
from jaxeval.data.columns import as_frame, plain
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.show.shown import Answer, Shown
from jaxeval.wording import counted, did_you_mean, named

Scores: TypeAlias = pd.DataFrame | pd.Series | ItemScores | ArrayLike
Gold: TypeAlias = pd.Series | ArrayLike | str

#: The status of a number that the data have.
OK = "ok"
#: Numbers from fewer pairs of models are hidden, as in Xu et al. (see `reference_study`).
FEW_PAIRS = 15
_MOST_FACTS = 5  # of evaluators, in one sentence


@dataclass(frozen=True, eq=False, repr=False)
class ModelScores(Shown):
    """Scores of the models that have a gold score and one by some evaluator, by gold score and then label.

    ``labelled`` says whether the evaluators came as columns with names.
    """

    scores: Float  # (E, M) evaluators' points, NaN where missing
    gold: Float  # (M,)
    models: pd.Index
    evaluators: pd.Index
    labelled: bool
    n_missing: Int  # (E,) models with one of the two scores only
    items: Float | None  # (I, E, M), NaN where missing
    by_item: ItemScores | None = None  # as they were given

    def _shown(self) -> Answer:
        table = pd.DataFrame(self.scores.T, self.models, self.evaluators).assign(gold=self.gold)
        title = f"ModelScores: {counted(len(self.evaluators), 'evaluator')}, {counted(len(self.models), 'model')}"
        return Answer(title, table.sort_values("gold", ascending=False, kind="stable"))

    @property
    def n_models(self) -> Int:
        """(E,) models that each evaluator has scored."""
        return (~np.isnan(self.scores)).sum(1)

    @property
    def constant(self) -> Bool:
        """(E,) evaluators whose scores are all the same."""
        return np.array([len(np.unique(x[~np.isnan(x)])) == 1 for x in self.scores])

    @property
    def constant_gold(self) -> Bool:
        """(E,) evaluators whose models all have the same gold score."""
        return np.array([len(np.unique(self.gold[~np.isnan(x)])) == 1 for x in self.scores])

    def of(self, evaluators: NDArray[np.intp], kept: Bool | Literal[True] = True) -> ModelScores:
        """Return scores by each of the ``evaluators`` (K,), which may repeat, of models that are ``kept`` (K, M) only.

        The models keep their places, so the resamples stay the same.
        """
        return replace(
            self,
            scores=np.where(kept, self.scores[evaluators], np.nan),
            evaluators=self.evaluators[evaluators],
            n_missing=self.n_missing[evaluators],
            items=None if self.items is None else np.where(kept, self.items[:, evaluators], np.nan),
        )


def align_scores(scores: Scores, gold: Gold) -> ModelScores:
    """Return evaluators' scores, one or a column each, and (M,) gold ones of the same models.

    A table of polars or another library with the Arrow interface may name the models in its one column of text. Gold is
    matched by index where both have one, else by position; or it is the name of a column.
    """
    items = scores if isinstance(scores, ItemScores) else None
    table, labelled = score_table(scores)
    if isinstance(gold, str):
        if gold not in table.columns or isinstance(scores, ItemScores):
            have = ", ".join(map(repr, table.columns))
            hint = did_you_mean(gold, table.columns)
            raise DataError(f"no column {gold!r} of gold scores; the columns are {have}{hint}")
        target, table = table[gold], table.drop(columns=gold)
    elif isinstance(gold, pd.Series) and (
        isinstance(scores, pd.DataFrame | pd.Series | ItemScores) or not isinstance(table.index, pd.RangeIndex)
    ):
        target = gold
    else:
        target = pd.Series(np.asarray(gold).reshape(-1))
        if len(target) != len(table):
            raise DataError(
                f"{counted(len(table), 'model has a score', 'models have scores')}, but "
                f"{counted(len(target), 'gold score is', 'gold scores are')} given: give one for each model, in the "
                "same order"
            )
        target.index = table.index
    if table.shape[1] == 0:
        raise DataError("there is no evaluator: scores need a column other than the gold one")
    for name, index in (("scores", table.index), ("gold", target.index)):
        if index.has_duplicates:
            twice = index[index.duplicated()][0]
            raise DataError(f"model {plain(twice)!r} has more than one row in {name}: keep one, or average them first")
    values = np.stack([_numbers(table.iloc[:, k], table.columns[k]) for k in range(table.shape[1])])
    true = pd.Series(_numbers(target, "gold"), target.index)
    beside = true.reindex(table.index).to_numpy()
    both = ~np.isnan(values) & ~np.isnan(beside)
    n_gold = int(true.notna().sum())
    n_missing = (~np.isnan(values)).sum(1) + n_gold - 2 * both.sum(1)
    keep = np.flatnonzero(both.any(0))
    if len(keep) == 0:
        raise DataError(
            f"no model has both a score and a gold score: {counted(len(table), 'model')} in scores (the first is "
            f"{plain(table.index[0])!r}), {len(true):,} in gold (the first is {plain(true.index[0])!r}); do their "
            "names agree?"
            if len(table) and len(true)
            else "there is no model"
        )
    # The order of the rows must not change the resamples.
    by_label = np.arange(len(keep))
    with suppress(TypeError):  # labels that do not compare stay in the order of their rows
        by_label[pd.Series(table.index[keep]).argsort()] = np.arange(len(keep))
    keep = keep[np.lexsort([by_label, beside[keep]])]
    return ModelScores(
        scores=values[:, keep],
        gold=beside[keep],
        models=table.index[keep],
        evaluators=table.columns,
        labelled=labelled,
        n_missing=n_missing,
        items=None if items is None else items.scores[:, :, keep],
        by_item=items,
    )


def score_table(scores: Scores) -> tuple[pd.DataFrame, bool]:
    """Return a row per model and a column per evaluator, and whether these have names."""
    if isinstance(scores, ItemScores):
        return scores.means, True
    if isinstance(scores, pd.DataFrame):
        return scores, True
    if isinstance(scores, pd.Series):
        return scores.to_frame(), False
    if hasattr(scores, "__arrow_c_stream__") and hasattr(scores, "columns"):
        frame = as_frame(scores)
        text = [name for name in frame if not is_numeric_dtype(frame[name])]
        return (frame.set_index(text[0]) if len(text) == 1 else frame), True
    values = np.asarray(scores)
    if values.ndim not in (1, 2):
        raise DataError(f"scores must be of one axis, or of two (models, evaluators), got shape {values.shape}")
    return pd.DataFrame(values if values.ndim == 2 else values[:, None]), values.ndim == 2


def _numbers(column: pd.Series, name: Any) -> Float:
    try:
        values = column.to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"column {plain(name)!r} is not numeric ({error}): put the models' names in the index, and drop other "
            "columns"
        ) from error
    if np.isinf(values).any():
        raise DataError(
            f"column {plain(name)!r} has {counted(np.isinf(values).sum(), 'infinite score')}: make scores finite, or "
            "leave them out"
        )
    return values


def of_evaluators(scores: ModelScores, chosen: Bool, facts: Sequence[str]) -> str:
    """Return the facts (E,) of the ``chosen`` evaluators, each with its evaluator's name; equal facts appear once."""
    if not scores.labelled:
        return facts[0]
    by_fact: dict[str, list[Any]] = {}
    for k in np.flatnonzero(chosen).tolist():
        by_fact.setdefault(facts[k], []).append(scores.evaluators[k])
    sentences = [f"{fact} ({named(names)})" for fact, names in by_fact.items()]
    return "; ".join(sentences[:_MOST_FACTS]) + f"; and {len(sentences) - _MOST_FACTS} more such" * (
        len(sentences) > _MOST_FACTS
    )


def hide_few_pairs(table: pd.DataFrame, name: str, few_pairs: int = FEW_PAIRS, count: str = "n_pairs") -> pd.DataFrame:
    """Return ``table`` with NaN for numbers ``name``, and their intervals, that come from fewer than ``few_pairs``.

    The interval is the columns ``name``_lower and ``name``_upper, or else lower and upper. The column ``count`` counts
    the pairs behind each number, and stays as it is.
    """
    ends = [f"{name}_lower", f"{name}_upper"]
    if ends[0] not in table:
        ends = ["lower", "upper"]
    columns = [column for column in (name, *ends) if column in table]
    few = table[count].fillna(0) < few_pairs
    return table.assign(**{column: table[column].mask(few, np.nan) for column in columns})


def hide_few_in_agreement(table: pd.DataFrame, few_pairs: int = FEW_PAIRS) -> pd.DataFrame:
    """Return `hide_few_pairs` of every number of `agreement_by_gap`, each by its own count of pairs."""
    for name, count in (("probability", "n_ordered"), ("average_below", "n_pairs"), ("observed", "n_observed")):
        table = hide_few_pairs(table, name, few_pairs, count)
    return table
