"""Scores of models on items; resamples of items are computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.data.columns import as_frame, codes_of, factorize_sorted, plain, require_column, seen_before
from jaxeval.data.labels import SCORES_IN_WORDS, numbers_of_words
from jaxeval.data.nested_columns import LaterColumns, levels_in_pandas
from jaxeval.data.numbers import numbers_or_nan, reject_infinite, reject_values
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import Names, PlainTable, in_pandas
from jaxeval.show.shown import ROWS_OF_DATA, Answer, Shown
from jaxeval.wording import alike_names, counted

#: Squares of variances of larger scores would overflow.
MOST_SCORE = 1e70


class ItemColumn(NamedTuple):
    """A further column: its sorted values, and the R distinct pairs of an item and a value."""

    levels: pd.Index
    item: NDArray[np.intp]  # (R,)
    number: NDArray[np.intp]  # (R,)


class ItemGroups(NamedTuple):
    """The cluster or the benchmark that each item belongs to."""

    column: str
    names: pd.Index  # (G,)
    number: NDArray[np.intp]  # (I,)


class Trials(NamedTuple):
    """Every single score, where a model may have several on an item."""

    cell: NDArray[np.intp]  # (R,) flat positions in the (I, E, M) scores
    score: Float  # (R,)


class Facets(NamedTuple):
    """Every single score, with the levels of what else was sampled: judges, prompts, seeds."""

    levels: Mapping[str, pd.Index]  # of each facet
    code: NDArray[np.intp]  # (R, F)
    cell: NDArray[np.intp]  # (R,) flat positions in the (I, E, M) scores
    score: Float  # (R,)


def _no_columns() -> LaterColumns[ItemColumn]:
    return LaterColumns(PlainTable({}), partial(_item_column, item=np.zeros(0, np.intp)))


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
    columns: LaterColumns[ItemColumn] = field(default_factory=_no_columns, repr=False)  # those asked for
    trials: Trials | None = field(default=None, repr=False)  # None if no column of trials was named
    cluster: ItemGroups | None = field(default=None, repr=False)
    benchmark: ItemGroups | None = field(default=None, repr=False)  # if there, ``items`` has levels benchmark and item
    weight: Float | None = field(default=None, repr=False)  # (I,) of the items
    n_repeated: int = 0  # rows beyond the first of their model and item (and evaluator), without a column of trials
    n_missing: int = 0  # rows without a score
    notes: tuple[str, ...] = ()  # how files were read
    facets: Facets | None = field(default=None, repr=False)  # if columns of ``random`` were named

    def _shown(self) -> Answer:
        sizes = {"item": self.items, "evaluator": self.evaluators, "model": self.models}
        title = f"ItemScores: {', '.join(counted(len(index), name) for name, index in sizes.items())}; mean scores"
        return Answer(title, self.means.head(ROWS_OF_DATA), n_rows=len(self.models))

    @classmethod
    def from_pandas(
        cls, frame: Any, model: str = "model", item: str = "item", score: str = "score", evaluator: str | None = None,
        keep: Sequence[str] = (), *, trial: str | None = None, cluster: str | None = None, benchmark: str | None = None,
        weight: str | None = None, random: Sequence[str] = (),
    ) -> ItemScores:  # fmt: skip
        """Read scores from a table of a row per model and item (and evaluator, and trial, if those columns are named).

        Several scores of a model on an item are averaged. With ``trial``, each of them is kept as well. Without it,
        they are counted as repeated, and functions that need single scores refuse them. Missing scores are left out.

        Args:
            frame: the table.
            model: column of models.
            item: column of items.
            score: column of scores.
            evaluator: column of evaluators.
            keep: further columns of items to check at once; the others are read when an estimator asks for them.
            trial: column that tells runs of a model on an item apart, such as a seed or the number of the run.
            cluster: column of groups of items that belong together, such as questions on one text.
            benchmark: column of benchmarks. Items of two benchmarks are different items, even with the same name.
            weight: column of weights of items, each above 0.
            random: columns of what was sampled besides items, such as judges, prompts or seeds. Their single scores are
                kept, so that errors can count them (`error_budget`, ``random=`` of estimators).

        Raises:
            DataError: a column is missing, holds missing names, or is not numeric; no score is left; a model has two
                scores in one trial; an item lies in two clusters, or has two weights.
        """
        frame = frame if isinstance(frame, PlainTable) else as_frame(frame)
        random = [name for name in dict.fromkeys(random) if name != item]
        for role, name in {"model": model, "score": score, "weight": weight, "benchmark": benchmark}.items():
            if name in random:
                raise DataError(
                    f"column {name!r} cannot be random: it is the column of the {role}; leave it out of random="
                )
        further = [name for name in (evaluator, trial, cluster, benchmark, weight, *random) if name is not None]
        require_column(frame, model, item, score, *further, *keep)
        values, words = numbers_of_words(frame[score], score, SCORES_IN_WORDS)
        reject_infinite(np.isinf(values), f"column {score!r}", "score")
        magnitude = np.abs(values)  # squares of variances would overflow, or be lost
        rule = f"scores must be 0 or of a size between {1 / MOST_SCORE:g} and {MOST_SCORE:g}, as in another unit"
        reject_values(values, (magnitude > MOST_SCORE) | ((magnitude < 1 / MOST_SCORE) & (magnitude > 0)), score, rule)
        there = ~np.isnan(values)
        if not len(frame):
            raise DataError("the table has no rows: there are no scores")
        if not there.any():
            raise DataError(f"column {score!r} has no score: all of its values are missing")
        m, models = factorize_sorted(frame[model], model)
        i, items = factorize_sorted(frame[item], item)
        of_benchmark = None
        if benchmark is not None:
            g, names = factorize_sorted(frame[benchmark], benchmark)
            both, i = np.unique(g * len(items) + i, return_inverse=True)
            of_item, item_code = np.divmod(both, len(items))
            pairs = names[of_item], items[item_code]
            items = (
                Names(zip(*pairs, strict=True), [benchmark, item])
                if isinstance(items, Names) and isinstance(names, Names)
                else pd.MultiIndex.from_arrays(pairs, names=[benchmark, item])
            )
            of_benchmark = ItemGroups(benchmark, names, of_item)
        e, evaluators = codes_of(frame, evaluator, Names([score]))
        shape = len(items), len(evaluators), len(models)
        cell = np.ravel_multi_index((i[there], e[there], m[there]), shape)
        size = int(np.prod(shape))
        times = np.bincount(cell, minlength=size)
        total = np.bincount(cell, values[there], size)
        mean = np.where(times > 0, total / np.maximum(times, 1), np.nan)
        names = items, evaluators, models
        notes = (*((f"column {score!r}: read {words}",) if words else ()), *alike_names(models))
        facets = None
        if random:
            coded = {name: factorize_sorted(frame[name], name) for name in random}
            code = np.stack([number for number, _ in coded.values()], 1)[there]
            facets = Facets({name: levels for name, (_, levels) in coded.items()}, code, cell, values[there])
        if trial is not None and facets is None:
            _reject_repeated(cell, frame[trial][there], trial, names, shape)
        return cls(
            mean.reshape(shape), *names, columns=LaterColumns(frame, partial(_item_column, item=i), keep),
            trials=None if trial is None or facets is not None else Trials(cell, values[there]), facets=facets,
            cluster=None if cluster is None else _groups(frame[cluster], cluster, i, items), benchmark=of_benchmark,
            weight=None if weight is None else _weights(frame[weight], weight, i, items),
            n_repeated=0 if trial is not None or facets is not None else int((times[times > 0] - 1).sum()),
            n_missing=int((~there).sum()), notes=notes,
        )  # fmt: skip

    def with_pandas(self) -> ItemScores:
        """Return the same with names as pandas has them."""
        names = {name: in_pandas(getattr(self, name)) for name in ("items", "evaluators", "models")}
        groups = {name: group for name in ("cluster", "benchmark") if (group := getattr(self, name)) is not None}
        in_groups = {name: group._replace(names=in_pandas(group.names)) for name, group in groups.items()}
        return replace(self, columns=self.columns.then(levels_in_pandas), **names, **in_groups)

    def column(self, name: str) -> ItemColumn:
        """Return a further column.

        Raises:
            DataError: there is no such column, or it has missing values.
        """
        return self.columns[name]

    @property
    def means(self) -> pd.DataFrame:
        """Mean scores, a row per model and a column per evaluator; NaN where there is none."""
        from jaxeval.show.table import Table

        names = (pd.Index(names, name=name) for names, name in ((self.models, "model"), (self.evaluators, "evaluator")))
        return Table(self.mean_of_models().T, *names)

    def mean_of_models(self) -> Float:
        """Return (E, M) means of scores; NaN where there is none."""
        there = ~np.isnan(self.scores)
        n = there.sum(0)
        step = step_of_means(self.scores)
        mean = np.where(n > 0, np.where(there, self.scores, 0.0).sum(0) / np.maximum(n, 1), np.nan)
        return np.round(mean / step) * step

    @property
    def standard_errors(self) -> pd.DataFrame:
        """Standard errors of `means` over independent items, of the same shape; NaN with fewer than two items."""
        there = ~np.isnan(self.scores)
        n = there.sum(0)
        away = np.where(there, self.scores - self.mean_of_models(), 0.0)
        error = np.sqrt((away**2).sum(0) / np.where(n > 1, n * (n - 1.0), np.nan))
        from jaxeval.show.table import Table

        return Table(error.T, self.models.rename("model"), self.evaluators.rename("evaluator"))


def _item_column(column: pd.Series, name: str, item: NDArray[np.intp]) -> ItemColumn:
    number, levels = factorize_sorted(column, name)
    pairs = np.unique(item * len(levels) + number)
    return ItemColumn(levels, *np.divmod(pairs, len(levels)))


def _reject_repeated(
    cell: NDArray[np.intp], trial: pd.Series, name: str, names: tuple[pd.Index, ...], shape: tuple[int, ...]
) -> None:
    """Raise DataError if two rows are of one model, item, evaluator and trial."""
    number, _ = factorize_sorted(trial, name)
    again = seen_before(cell * (number.max(initial=0) + 1) + number)
    if again.any():
        i, _, m = np.unravel_index(cell[again][0], shape)
        raise DataError(
            f"{counted(int(again.sum()), 'row repeats', 'rows repeat')} a trial of a model on an item (the first: "
            f"model {plain(names[2][m])!r}, item {plain(names[0][i])!r}, trial "
            f"{plain(np.asarray(trial)[again][0])!r}): give each trial a number of its own in column {name!r}, or drop "
            "the copies"
        )


def _groups(column: pd.Series, name: str, item: NDArray[np.intp], items: pd.Index) -> ItemGroups:
    number, names = factorize_sorted(column, name)
    return ItemGroups(name, names, _one_each(number, name, item, items))


def _weights(column: pd.Series, name: str, item: NDArray[np.intp], items: pd.Index) -> Float:
    weight = numbers_or_nan(column, name)
    bad = ~(weight > 0) | np.isinf(weight)
    if bad.any():
        raise DataError(
            f"column {name!r} of weights has {counted(int(bad.sum()), 'row')} without a finite number above 0 (the "
            f"first is {plain(np.asarray(column)[bad][0])!r}): drop those rows, or give them a weight"
        )
    return _one_each(weight, name, item, items)


def _one_each(values: NDArray[Any], name: str, item: NDArray[np.intp], items: pd.Index) -> NDArray[Any]:
    """Return (I,) the value of each item, which must be the same in all of its rows."""
    of_item = np.zeros(len(items), values.dtype)
    of_item[item] = values
    several = np.unique(item[of_item[item] != values])
    if len(several):
        raise DataError(
            f"{len(several):,} of {counted(len(items), 'item')} {'has' if len(several) == 1 else 'have'} several "
            f"values in column {name!r} (the first is {plain(items[several[0]])!r}): give all rows of an item one value"
        )
    return of_item


def step_of_means(scores: Float) -> np.float64:
    """Return the power of two that means of ``scores`` are rounded to: about 1e-12 of the largest score.

    Means of the same scores in another order are then exactly equal, and do not differ by rounding.
    """
    largest = np.nanmax(np.abs(scores), initial=0.0)
    return np.float64(2.0 ** (np.ceil(np.log2(largest)) - 40)) if largest > 0 else np.float64(1.0)
