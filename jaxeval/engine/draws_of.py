"""An estimator of one's own: any JAX function of weights and data, resampled, with all that a `Draws` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int, as_leaf
from jaxeval.checks import check_choice, check_room, checked_integer
from jaxeval.data.battles import Battles
from jaxeval.engine.statistic import (
    Derivative,
    Function,
    Statistic,
    StatisticDraws,
    Studentised,
    Traced,
    check_shapes,
    same_numbers,
    with_random_facets,
)
from jaxeval.engine.weighing import (
    Cluster,
    DataRows,
    RowKind,
    UnitColumns,
    Weighing,
    rows_of_battles,
    rows_of_data,
    sliced,
    weighed_battles,
    weighed_rows,
    without_groups,
)
from jaxeval.errors import DataError
from jaxeval.execution.lanes import LaneRun, Lanes, Task
from jaxeval.execution.precision import double_precision
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.shapes import STATISTICS, one_by_one
from jaxeval.kernels.batch.weighted import WHOLE, RowForm, WeighedRows, statistic_lanes, statistic_once
from jaxeval.kernels.resample import DrawScheme
from jaxeval.lazy_names import jax
from jaxeval.options.boards import MOST_SLICES
from jaxeval.ratings.options import SCHEMES
from jaxeval.resampling.rows import lanes_task
from jaxeval.show.cells import KINDS
from jaxeval.show.table import Table
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted, named, visible_line

OwnScheme = Literal["multinomial", "poisson", "bayesian"]


def draws_of(
    statistic: Function,
    data: Any,
    names: Any = None,
    n_resamples: int = 1000,
    seed: int = 0,
    scheme: OwnScheme = "multinomial",
    *,
    cluster: Cluster = None,
    strata: Any = None,
    by: str | Sequence[str] | None = None,
    random: str | Sequence[str] = (),
    rows: RowKind = "each",
    kind: str = "number",
    **running: Unpack[RunOptions],
) -> Draws:
    """Return draws of a statistic of one's own: ``statistic(weights, data)`` of all rows, and of every resample.

    The weights (N,) say how often each row counts: 1 for every row of the data, and as often as it was drawn in a
    resample. A statistic is any function of JAX that takes no other notice of rows: a row of weight 0 is not there, and
    one of weight 2 is there twice. So sums are ``weights @ x``, and the number of rows is ``weights.sum()``.

    Resamples are those of all of jaxeval. Resample r is a function of the rows, the seed, the slice's name and r alone:
    not of the order of rows, the number of resamples, chunks or devices. Votes (`Battles`) are drawn as `bootstrap`
    draws them, and scores (`ItemScores`) as `score_leaderboard` does, so that ``draws - board.joint`` is a paired
    difference. Rows of other data are drawn by what they hold; with ``cluster="item"`` the items are drawn whatever
    else the rows hold, and two statistics of the same items are paired.

    Args:
        statistic: of weights (N,) and data: numbers (K,), or a dict of them. Rows come in an order of their own, and
            empty ones of weight 0 after them.
        data: an array (N, ...), or a dict or a tuple of arrays, which the statistic gets as they are; a table, whose
            columns of numbers it gets as one array (N, C), without those that ``cluster``, ``strata`` and ``by`` name
            (``dict(table)`` gives them by name); `Battles`, as the dict ``model_a``, ``model_b`` (numbers of models)
            and ``target`` (what side A won); or `ItemScores`, as an array (items, models).
        names: of the K numbers; by default the keys of a dict, or the columns or models of the data where there are K.
        n_resamples: B.
        seed: any integer from 0 to 2**63 - 1.
        scheme: "multinomial" draws as many as there are, with replacement; "poisson" gives each a Poisson(1) weight;
            "bayesian" an exponential one.
        cluster: a column whose groups are drawn whole (or a value for each row). A list of columns is drawn in stages,
            outermost first: families, then tasks within each family drawn, then runs. A set of columns, such as
            ``{"item", "model"}``, is drawn side by side: a row counts as often as its item times as often as its model.
        strata: a column (or a value for each row): every resample holds as many rows, or clusters, of each stratum.
        by: a column, or several. Each of their groups is a slice, drawn by itself; the names get their levels.
        random: columns of what was sampled besides the rows, or the ``cluster``: judges, prompts, seeds. Draws then
            vary as much as other levels like these would make them (see `jaxeval.engine.statistic`), by normal
            effects from the influences of rows. A column of one level is refused. Not with ``by`` or ``strata``.
        rows: "interchangeable" merges equal rows, which is exact for a statistic as described, and much faster where
            rows repeat. Battles and scores are always merged.
        kind: of the quantity, by which tables spell it: "rating", "elo" (a difference of ratings), "share", "percent",
            "count", "time", "money", or one of ``jaxeval.show.cells.KINDS``.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`.

    Returns:
        `Draws` with intervals ("percentile", "basic", "wald"; "bca" and "studentised" where the statistic is smooth),
        standard errors, differences, tiers, rank sets and tables. Figures, pages and files take them.

    Raises:
        TypeError: ``statistic`` is no function; data are of another kind.
        ValueError: the statistic is no function of JAX, gives other numbers for the same rows, or depends on the number
            of rows; there are not as many names as numbers; an option is out of range.
        DataError: arrays differ in length, hold text, or are empty; a column is not there; a cluster lies in several
            strata.
        MemoryLimitError: not even one resample at a time fits ``memory_limit``.

    Examples:
        >>> import jaxeval
        >>> import numpy as np
        >>> def mean_over_sd(weights, x):
        ...     n = weights.sum()
        ...     mean = weights @ x / n
        ...     return mean / (weights @ (x - mean) ** 2 / n) ** 0.5
        >>> x = np.random.default_rng(0).normal([3.0, 1.0], 1.0, (200, 2))
        >>> draws = jaxeval.draws_of(mean_over_sd, x, ["a", "b"], seed=1)
        >>> draws.table()[["estimate", "lower", "upper", "tier"]].round(1)
           estimate  lower  upper  tier
        a       3.0    2.7    3.3     1
        b       1.0    0.9    1.2     2
        >>> jaxeval.draws_of(lambda weights, x: weights @ x / weights.sum(), x).interval(kind="bca").round(2)
           lower  upper
        0   2.75   3.03
        1   0.88   1.16
    """
    check_choice("kind", kind, tuple(KINDS))
    wrapped = Statistic(statistic)
    n_resamples, seed = checked_integer("n_resamples", n_resamples, 1), checked_integer("seed", seed)
    facets = facet_names(random)
    if facets and (by is not None or strata is not None or not isinstance(cluster, str | None)):
        raise ValueError("random takes one column of clusters, or none, and no strata and by: leave those out")
    options = {"scheme": scheme, "cluster": cluster, "strata": strata, "by": by, "rows": rows, "facets": facets}
    weighings, levels, usual, traced = _weighed(wrapped, data, n_resamples, seed, **options)
    index = traced.names(names, usual, wrapped.name)
    check_room(n_resamples, 8 * traced.n_numbers * len(weighings))
    settings = {"statistic": wrapped.name, "n_resamples": n_resamples, "seed": seed, "scheme": scheme}
    settings |= {
        name: _as_setting(x) for name, x in (("cluster", cluster), ("strata", strata), ("by", by)) if x is not None
    }

    def identity() -> Identity:
        arrays = [jax.tree.leaves((x.data, x.rows)) for x in weighings]
        deciding = {"statistic": wrapped.digest, "seed": seed, "scheme": scheme, "rows": rows}
        return Identity(deciding, arrays, {"n_resamples": n_resamples}, noun="rows")

    lanes = Lanes.of(1, n_resamples + 1)
    lanes = lanes._replace(numbers=lanes.numbers + WHOLE)  # the data themselves come first
    with open_run(identity, len(weighings) * (n_resamples + 1), "resamples", **running) as run:
        parts = [
            _checked_run(wrapped, traced, weighing, seed, lanes, f"statistic-{s}", run, index)
            for s, weighing in enumerate(weighings)
        ]
    values = np.concatenate(parts, axis=1)
    status, warnings = _without_value(values, index, wrapped.name, weighings)
    freedom = [x.freedom for x in weighings if x.freedom is not None]
    draws = StatisticDraws(
        _with_levels(index, [x.name for x in weighings], levels),
        values[0],
        values[1:],
        status=status,
        settings=settings,
        freedom=float(np.min(freedom)) if freedom else None,
        warnings=tuple(dict.fromkeys([text for x in weighings for text in x.warnings] + warnings)),
        derivatives=None if any(x.unit is None for x in weighings) else _Derivatives(wrapped, weighings, seed, lanes),
        kind=kind,
    )
    if not facets:
        return draws
    grouping = [*facets, *([cluster] if isinstance(cluster, str) else [])]
    table = rows_of_battles(data, grouping) if isinstance(data, Battles) else rows_of_data(data, grouping)
    return with_random_facets(draws, wrapped, table, facets, cluster, seed)


def loo_of(
    statistic: Function, data: Any, groups: Any = None, names: Any = None, **running: Unpack[RunOptions]
) -> pd.DataFrame:
    """Return a statistic of one's own with each group of rows left out: folds and the jackknife, in one batched call.

    Args:
        statistic: as for `draws_of`.
        data: as for `draws_of`.
        groups: a column, or a value for each row; or a list of columns, whose values are groups of one kind: a row is
            left out with each of them. Of `Battles`, "model" leaves out the battles of each model. By default each row
            is left out by itself.
        names: of the numbers, as for `draws_of`.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`.

    Returns:
        A row for each group, and a column for each number; ``attrs["estimate"]`` has those of all rows.

    Raises:
        TypeError, ValueError, DataError, MemoryLimitError: as `draws_of`.

    Examples:
        >>> import jaxeval
        >>> table = {"model": ["a", "a", "b", "c"], "score": [1.0, 2.0, 6.0, 9.0]}
        >>> jaxeval.loo_of(lambda weights, d: weights @ d["score"] / weights.sum(), table, "model").iloc[:, 0].to_dict()
        {'a': 7.5, 'b': 4.0, 'c': 3.0}
    """
    wrapped = Statistic(statistic)
    rows, number, levels = _left_out(data, groups)
    traced = Traced(wrapped, np.ones(rows.n), rows.arrays)
    index = traced.names(names, rows.names, wrapped.name)
    one = np.ones(rows.n)
    weighing = without_groups(rows, number, one)
    lanes = Lanes(np.zeros(len(levels) + 1, np.int64), np.arange(-1, len(levels)))
    check_room(len(lanes.numbers), 8 * traced.n_numbers)

    def identity() -> Identity:
        return Identity({"statistic": wrapped.digest}, [jax.tree.leaves(rows.arrays), number], noun="rows")

    with open_run(identity, len(lanes.numbers), "groups", **running) as run:
        values = _checked_run(wrapped, traced, weighing, 0, lanes, "left-out", run, index)
    table = pd.DataFrame(values[1:], levels, index)
    table.attrs["estimate"] = dict(zip(index, values[0].tolist(), strict=True))
    off = np.abs(values[1:] - values[0])
    if np.isfinite(off).any():
        k, j = np.unravel_index(np.nanargmax(off), off.shape)
        ends = f"from {values[0, j]:.4g} to {values[1 + k, j]:.4g}"
        table.attrs["answer"] = f"leaving out {visible_line(levels[k])} moves {visible_line(index[j])} most: {ends}"
    return Table.of(table, f"{counted(len(levels), 'group')} left out, each by itself")


def _left_out(data: Any, groups: Any) -> tuple[DataRows, Int, pd.Index]:
    """Return the rows, the numbers (N, G) of the groups that each is in, and the groups."""
    named_so = [groups] if isinstance(groups, str) else [g for g in groups or [] if isinstance(g, str)] \
        if isinstance(groups, list | tuple) else []  # fmt: skip
    if isinstance(data, Battles):
        rows = rows_of_battles(data, [] if groups == "model" else named_so)
        if groups == "model":
            sides = np.stack([rows.arrays["model_a"], rows.arrays["model_b"]], axis=1)
            return rows, sides, data.models.rename("model")
    else:
        rows = rows_of_data(data, named_so)
    if groups is None:
        return rows, np.arange(rows.n)[:, None], pd.RangeIndex(rows.n, name="row")
    several = isinstance(groups, list | tuple) and len(groups) > 0 and all(isinstance(g, str) for g in groups)
    groups_and_levels = [rows.groups(group, "groups") for group in (groups if several else [groups])]
    levels = reduce(lambda one, other: one.union(other), (group for _, group in groups_and_levels))
    number = np.stack([levels.get_indexer(group)[codes] for codes, group in groups_and_levels], axis=1)
    return rows, number, levels.rename(groups if isinstance(groups, str) else "group")


def _weighed(
    wrapped: Statistic, data: Any, n_resamples: int, seed: int, *, scheme: str, cluster: Cluster, strata: Any, by: Any,
    rows: str, facets: Sequence[str],
) -> tuple[list[Weighing], list[str], pd.Index | None, Traced]:  # fmt: skip
    """Return the rows of every slice, the columns of the slices, the usual names, and what the statistic computes."""
    if scheme not in SCHEMES:
        raise ValueError(f"unknown scheme {scheme!r}; known are {', '.join(SCHEMES)}")
    check_choice("rows", rows, RowKind)
    several = isinstance(cluster, list | tuple | set | frozenset)
    if isinstance(data, Battles) and not (several and len(cluster) != 1):
        column = next(iter(cluster)) if several else cluster
        for option, value in {"cluster": column, "strata": strata}.items():
            if not isinstance(value, str | None):
                raise TypeError(f"{option}= of Battles is the name of a column, got {type(value).__name__}")
        options = {"n_resamples": n_resamples, "seed": seed, "scheme": scheme, "cluster": column, "strata": strata}
        weighings, levels = weighed_battles(data, {**options, "by": by})
        return weighings, levels, data.models, Traced(wrapped, weighings[0].full[: weighings[0].n], weighings[0].data)
    columns_by = [] if by is None else [by] if isinstance(by, str) else list(by)
    grouping = [x for x in (*(cluster if several else [cluster]), strata, *columns_by, *facets) if isinstance(x, str)]
    table = rows_of_battles(data, grouping) if isinstance(data, Battles) else rows_of_data(data, grouping)
    if table.n < 2:
        raise DataError("the data have one row, which does not vary in resamples: draws need two or more")
    columns = UnitColumns.of(table, cluster)
    stratum = None if strata is None else table.groups(strata, "strata")[0]
    _check_together(scheme, columns.kind, strata)
    traced = Traced(wrapped, np.ones(table.n), table.arrays)
    slices = [(None, "", np.arange(table.n))] if by is None else sliced(table, columns_by)
    if len(slices) > MOST_SLICES:
        raise DataError(f"there are {len(slices):,} slices by {named(columns_by)}: name a coarser column")
    alike = rows == "interchangeable" or table.alike
    weighings = [
        weighed_rows(
            table.taken(which),
            columns.taken(which),
            None if stratum is None else stratum[which],
            DrawScheme(SCHEMES[scheme]),
            alike,
            label=f"{table.stream} {label}".strip(),
            name=name,
            strata_name=strata if isinstance(strata, str) else "strata",
        )
        for name, label, which in slices
    ]
    return weighings, [str(x) for x in columns_by], table.names, traced


def _check_together(scheme: str, kind: str, strata: Any) -> None:
    if scheme == "poisson" and strata is not None:
        raise ValueError(
            'scheme="poisson" draws every row on its own, so that no stratum has a given number of them: say '
            'scheme="multinomial" or "bayesian" with strata=, or leave strata= out'
        )
    if kind in ("stages", "crossed") and strata is not None:
        raise ValueError("several columns of clusters have no strata: leave strata= out, or name one column")
    if kind == "stages" and scheme != "multinomial":
        raise ValueError(f"stages are drawn with replacement: scheme={scheme!r} cannot have several columns")


#: Digests of statistics, with shapes of data, whose results did not change with empty rows after the others.
_AGREED: set[tuple[Any, ...]] = set()


def _checked_run(
    statistic: Statistic, traced: Traced, weighing: Weighing, seed: int, lanes: Lanes, section: str, run: LaneRun,
    names: pd.Index,
) -> Float:  # fmt: skip
    """Return (L, K) the statistic in all lanes, of which the first are the data; checked once for a shape of data.

    Raises:
        ValueError: the statistic changes where empty rows are added.
    """
    data = jax.tree.map(weighing.filled, weighing.data)
    task = _task(statistic, traced, weighing, seed, len(lanes.numbers), data, traced.n_numbers)
    values = np.zeros((len(lanes.numbers), traced.n_numbers))
    every = np.arange(len(values))
    shapes = (len(weighing.full), *(x.shape[1:] for x in jax.tree.leaves(data)))
    if not statistic.is_tested and (statistic.digest, shapes) not in _AGREED:
        check_shapes(statistic, weighing.n, weighing.full, data)
        run.run(task, lanes, every[:1], values, section)
        _check_rows(statistic, weighing, values[0], names)
        _AGREED.add((statistic.digest, shapes))
        every = every[1:]
    run.run(task, lanes, every, values, section)
    return values


def _check_rows(statistic: Statistic, weighing: Weighing, values: Float, names: pd.Index) -> None:
    """Check that ``values``, of rows with empty ones, are what there is without these."""
    with double_precision():
        alone = np.asarray(statistic_once(statistic, weighing.full[: weighing.n], weighing.data))
    if not same_numbers(alone, values):
        k = int(np.argmax(np.nan_to_num(np.abs(alone - values), nan=np.inf)))
        raise ValueError(
            f"{statistic.name} changes when rows of weight 0 are added: {plain_number(alone[k])} becomes "
            f"{plain_number(values[k])} for {names[k]!r}. A row of weight 0 is a row that is not there: take "
            "weights.sum() in place of the number of rows, and weighted sums in place of means and sorts of all rows"
        )


def _task(
    statistic: Any, traced: Traced, weighing: Weighing, seed: int, n_lanes: int, data: Any, n_numbers: int
) -> Task:
    """Return the work of lanes that give ``n_numbers`` each."""
    n = len(weighing.full)
    drawn, made = n + weighing.numbers, int(n / weighing.n * traced.made)
    alone = one_by_one(made)
    return lanes_task(
        statistic_lanes,
        {"rows": weighing.stacked, "data": data, "seed": as_leaf(seed, np.uint64)},
        {"statistic": statistic, "form": weighing.form._replace(alone=alone)},
        STATISTICS,
        entries=drawn if alone else drawn + made,
        lane_bytes=8 * (drawn + made + n_numbers),
        result_bytes=8 * n_numbers * n_lanes,
    )


def plain_number(value: float) -> str:
    """Return a number in a message."""
    return f"{value:.6g}"


def _as_setting(option: Any) -> Any:
    """Return an option as settings keep it: names, and not the values of all rows."""
    if isinstance(option, set | frozenset):
        return sorted(option)
    is_names = isinstance(option, str) or (isinstance(option, list | tuple) and all(isinstance(x, str) for x in option))
    return option if is_names else "values"


def _with_levels(index: pd.Index, slices: Sequence[Any], levels: Sequence[str]) -> pd.Index:
    """Return the names of all slices, one after the other."""
    if not levels:
        return index
    heads = [name if isinstance(name, tuple) else (name,) for name in slices]
    parts = [name if isinstance(name, tuple) else (name,) for name in index]
    names = [name or "name" for name in index.names]
    return pd.MultiIndex.from_tuples([(*head, *name) for head in heads for name in parts], names=[*levels, *names])


def _without_value(
    values: Float, index: pd.Index, statistic: str, weighings: Sequence[Weighing]
) -> tuple[NDArray[Any], list[str]]:
    """Return what is wrong with each number, in words, and what to say of all of them."""
    estimate, draws = values[0], values[1:]
    if np.isnan(estimate).all():
        gaps = any(
            np.isnan(x).any() for weighing in weighings for x in jax.tree.leaves(weighing.data) if x.dtype.kind == "f"
        )
        advice = "the data have missing values: leave those rows out, or give them weight 0 in the statistic"
        raise ValueError(
            f"{statistic} has no value (NaN) for the data themselves: "
            f"{advice if gaps else 'look for 0 / 0, and for logarithms and roots of negative numbers'}"
        )
    n = np.isnan(draws).sum(0)
    status = np.full(len(estimate), "ok", object)
    few = n > 0
    status[few] = [f"no value in {k:,} of {counted(len(draws), 'resample')}" for k in n[few]]
    status[np.isinf(estimate)] = "infinite"
    status[np.isnan(estimate)] = "no value"
    if not few.any():
        return status, []
    worst = int(n.argmax())
    numbers = counted(int(few.sum()), "number has", "numbers have")
    return status, [
        f"{numbers} no value in some resamples, at most in {n[worst] / len(draws):.1%} of them "
        f"({index[worst % len(index)]}): those are left out of its interval, and what is missing in more than 1% "
        "takes no part in tiers and rank sets"
    ]


@dataclass(frozen=True, eq=False)
class _Derivatives:
    """Derivatives of a statistic by the weights of its units, computed when they are asked for."""

    statistic: Statistic
    weighings: Sequence[Weighing]
    seed: int
    lanes: Lanes

    @cached_property
    def influence_sums(self) -> tuple[Float, Float]:
        """(M,) sums over the units of the squares and of the cubes of their influences."""
        squares, cubes = zip(*(self._influence_sums(weighing) for weighing in self.weighings), strict=True)
        return np.concatenate(squares), np.concatenate(cubes)

    def _influence_sums(self, weighing: Weighing) -> tuple[Float, Float]:
        rows = WeighedRows((), None, as_leaf(weighing.full, np.float64), as_leaf(_units(weighing)[:, None], np.int32))
        whole = weighing._replace(rows=rows, form=RowForm())
        n = len(weighing.copies)
        lanes = Lanes(np.zeros(n, np.int64), np.arange(n))
        data = weighing.full, jax.tree.map(weighing.filled, weighing.data)
        traced = Traced(self.statistic, weighing.full[: weighing.n], weighing.data)
        task = _task(Derivative(self.statistic), traced, whole, 0, n, data, traced.n_numbers)
        moved = np.asarray(LaneRun().results(task, lanes, "influence"))
        stratum = np.zeros(n, np.int64) if weighing.stratum is None else weighing.stratum
        copies = np.maximum(weighing.copies, 1)[:, None]
        of_strata = np.bincount(stratum, weighing.copies)
        mean = np.stack([np.bincount(stratum, x) for x in moved.T], 1) / np.maximum(of_strata, 1)[:, None]
        away = moved / copies - mean[stratum]
        return (weighing.copies[:, None] * away**2).sum(0), (weighing.copies[:, None] * away**3).sum(0)

    @cached_property
    def studentised(self) -> tuple[Float, Float]:
        """Standard errors of the estimates (M,), and of the statistic in each resample (B, M), from influences."""
        parts = [self._studentised(weighing) for weighing in self.weighings]
        errors = np.concatenate(parts, axis=1)
        return errors[0], errors[1:]

    def _studentised(self, weighing: Weighing) -> Float:
        if weighing.stratum is not None:
            raise ValueError("studentised intervals know no strata: use kind='bca'")
        traced = Traced(self.statistic, weighing.full[: weighing.n], weighing.data)
        k, data = traced.n_numbers, (weighing.base, _units(weighing), jax.tree.map(weighing.filled, weighing.data))
        try:
            task = _task(Studentised(self.statistic), traced, weighing, self.seed, len(self.lanes.numbers), data, 2 * k)
            errors = np.asarray(LaneRun().results(task, self.lanes, "studentised"))
        except ValueError as error:
            if "Reverse-mode" not in str(error):
                raise
            raise ValueError(
                f"{self.statistic.name} has a loop of unknown length, through which JAX finds no derivatives in "
                "reverse: use kind='bca', or a loop of a given length (jax.lax.fori_loop, jax.lax.scan)"
            ) from None
        return errors[:, k:]


def _units(weighing: Weighing) -> Int:
    assert weighing.unit is not None  # the caller has looked
    return weighing.unit
