"""Runs the batched rankings against references, of the full data and of every resample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int, as_leaf
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells
from jaxeval.errors import DataError
from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import REFERENCES, held_numbers, padded_columns, padded_rows, padded_size
from jaxeval.kernels.batch.references import (
    BudgetSums,
    Pools,
    ReferenceProblem,
    ReferenceVotes,
    SameModelSums,
    SharedItems,
    SingleReferences,
    StudySettings,
    reference_study,
)
from jaxeval.kernels.solve import Terms
from jaxeval.lazy_names import jax
from jaxeval.ratings.vote_groups import ClusterRows, Entries, vote_draws, vote_groups
from jaxeval.resampling.units import pad, stream_number
from jaxeval.wording import counted

_TOLERANCE_LOGIT, _MAX_STEPS = 1e-9, 100
_BYTES_PER_WORD = 10  # of memory for each word of a lane, at most
_LEAST_FILLED = 0.5  # items draw references only if at least this share of the verdicts on them is there
_FEWEST_CELLS = 512  # arrays are no smaller: small boards share one compilation


@dataclass(frozen=True)
class ReferenceStudySettings:
    """What made a study of references."""

    deltas: tuple[float, ...]  # percentage points of win rate
    budgets: tuple[int, ...]  # votes of a model
    n_tiers: int
    n_repeats: int
    n_resamples: int
    seed: int
    level: float
    cluster: str | None
    strata: str | None
    item: str | None  # column of items that draw the references, and are resampled whole
    ridge: float  # of the fits to several references
    device: str
    n_devices: int
    few_pairs: int  # numbers from fewer pairs enter no means and no advice
    versions: str

    @property
    def margins(self) -> Float:
        """(D,) the deltas and infinity, which is all pairs."""
        return np.array([*self.deltas, np.inf])


class ReferenceBoard(NamedTuple):
    """What is studied, as numbers."""

    models: pd.Index
    references: NDArray[np.intp]  # (L,) single ones, best first
    sets: dict[str, NDArray[np.intp]]  # of several references
    tier: Int  # (M,) 0 = none
    theta: Float  # (B + 1, M) log-strengths of the full data and the resamples


def rankings(
    battles: Battles, board: ReferenceBoard, settings: ReferenceStudySettings, run: LaneRun
) -> tuple[SingleReferences, BudgetSums, SameModelSums]:
    """Return all that is computed in batches; the leading axis is B + 1, the full data first."""
    cells, m = battles.cells, battles.n_models
    column = settings.item or settings.cluster
    groups = vote_groups(battles, column, settings.strata)(slice(None), battles.compress(slice(None))[1])
    clusters, (draw, entries, unit_of_cluster) = groups.clusters, vote_draws(cells, groups)
    drawn_votes = _votes(cells, entries)
    size, nothing = padded_size(m), len(drawn_votes.battles) - 1
    # References are padded, too, by ones that nobody met: small boards share one compilation.
    used = len(board.references)
    padded = np.pad(board.references, (0, padded_size(used) - used), constant_values=-1)
    single = _pools([np.array([k]) for k in padded], cells, size, nothing)
    # Sorted, because what is drawn must not depend on the order of the members.
    sets = [np.sort(members) for members in board.sets.values()] if settings.budgets else []
    shared = None
    if settings.item is not None and settings.budgets and clusters is not None and unit_of_cluster is not None:
        shared = _shared_items(battles, settings.item, clusters, unit_of_cluster, padded, sets, size)
    several = _pools(sets, cells, size, nothing) if sets and shared is None else None
    tiers = pad(board.tier == np.arange(1, settings.n_tiers + 1)[:, None], (settings.n_tiers, size))
    problem = ReferenceProblem(
        units=draw.units, stream=as_leaf(stream_number(""), np.uint64),
        votes_stream=as_leaf(stream_number("votes under a budget"), np.uint64), votes=drawn_votes, single=single,
        several=several, members=as_leaf(_members(board, sets), np.int32), tiers=as_leaf(tiers, np.bool_),
        shared=shared,
    )  # fmt: skip
    # No model has more votes: larger budgets would only take time.
    most = battle_counts(cells, m).sum(1).max() if shared is None else len(shared.unit)
    budgets = np.minimum(np.array(settings.budgets, np.int64), most)
    study = StudySettings(
        seed=as_leaf(settings.seed, np.uint64), deltas=as_leaf(settings.margins, np.float64),
        budgets=as_leaf(budgets, np.int64), n_repeats=as_leaf(settings.n_repeats, np.int64),
        terms=Terms.of(settings.ridge, _TOLERANCE_LOGIT, _MAX_STEPS),
    )  # fmt: skip
    mesh, n_lanes = device_mesh(), len(board.theta)
    gold = np.full((n_lanes, size), np.nan)
    gold[:, :m] = board.theta
    pools = [p.cell for p in (problem.single, problem.several) if p is not None]
    words = sum(held_numbers(cell.shape) for cell in pools) * (2 + 2 * len(budgets))
    with double_precision():
        problem, study, gold = jax.device_put((problem, study, padded_rows(gold)))
    call = partial(reference_study, problem, draw.packing, mesh, study, gold)
    held = sum(x.nbytes for x in jax.tree.leaves((problem, gold)))
    task = Task(call=call, budget=REFERENCES, entries=words, lane_bytes=_BYTES_PER_WORD * words, fixed_bytes=held)
    alone, together, same = run.results(task, Lanes.of(1, n_lanes), "references")
    kept = [*range(used), *range(len(padded), together.tau.shape[-1])]
    return jax.tree.map(lambda x: x[..., :used], alone), jax.tree.map(lambda x: x[..., kept], together), same


def _members(board: ReferenceBoard, sets: Sequence[NDArray[np.intp]]) -> NDArray[np.int32]:
    """Return (K, S) places of the references of every set among the single ones.

    It is -1 for no reference, and in all of a set of which one reference is not among the single ones.
    """
    number = np.full(len(board.models), -1)
    number[board.references] = np.arange(len(board.references))
    members = np.full((max(map(len, sets), default=1), len(sets)), -1, np.int32)
    for s, references in enumerate(sets):
        if (number[references] >= 0).all():
            members[: len(references), s] = number[references]
    return members


def _votes(cells: Cells, entries: Entries) -> ReferenceVotes:
    """Return the cells, empty ones after them, and the entries of the draws sorted by cell."""
    order = np.argsort(entries.cell, kind="stable")
    order = order[cells.weight[entries.cell[order]] > 0]
    times = np.ones(len(order)) if entries.times is None else entries.times[order]
    n_cells = padded_columns(max(len(cells.count) + 1, _FEWEST_CELLS))
    size = (padded_columns(max(len(order), _FEWEST_CELLS)),)
    sorted_cells = np.full(size, n_cells - 1)
    sorted_cells[: len(order)] = entries.cell[order]
    return ReferenceVotes(
        unit=as_leaf(pad(entries.place[order], size), np.int32), cell=as_leaf(sorted_cells, np.int32),
        times=as_leaf(pad(times, size), np.int32), battles=as_leaf(pad(cells.count, (n_cells,)), np.int32),
    )  # fmt: skip


def _pools(sets: Sequence[NDArray[np.intp]], cells: Cells, size: int, nothing: int) -> Pools:
    """Return votes of ``size`` models, padding included, against the sets' references; ``nothing`` is an empty cell."""
    n_pairs = len(cells.first)
    position = cells.positions(size, n_pairs)
    n_cells = np.append(np.bincount(cells.pair, minlength=n_pairs), 0)
    first_cell = np.cumsum(n_cells) - n_cells
    g = max(int(n_cells.max()), 3)
    width = max(len(members) for members in sets)
    reference = np.full((width, len(sets)), -1)  # -1: none
    for s, members in enumerate(sets):
        reference[: len(members), s] = members
    model = np.arange(size)[:, None]
    of_set = (model[:, :, None] == reference.T[None]).any(2)  # (M, S) models that are themselves references
    known = (reference >= 0)[:, None] & ~of_set  # (K, M, S)
    pair = np.where(known, position[model, reference[:, None]], n_pairs)[:, None]
    number = first_cell[pair] + np.arange(g)[:, None, None]
    there = np.arange(g)[:, None, None] < n_cells[pair]
    cell = np.where(there, number, 0)
    target = np.where(model < reference[:, None, None], cells.target[cell], 1 - cells.target[cell])
    shape = width * g, size, len(sets)
    return Pools(
        cell=as_leaf(np.where(there, cell, nothing).reshape(shape), np.int32),
        weight=as_leaf(np.where(there, cells.weight[cell], 0.0).reshape(shape), np.float64),
        target=as_leaf(np.where(there, target, 0.0).reshape(shape), np.float64),
        in_set=as_leaf(reference >= 0, np.bool_),
    )


def battle_counts(cells: Cells, n_models: int) -> Int:
    """Return (M, M) battles between two models."""
    count = np.zeros((n_models, n_models), np.int64)
    count[cells.first, cells.second] = np.bincount(cells.pair, cells.count, minlength=len(cells.first))
    return count + count.T


def _shared_items(
    battles: Battles, item: str, items: ClusterRows, unit: Int, single: NDArray[np.intp],
    sets: Sequence[NDArray[np.intp]], size: int,
) -> SharedItems:  # fmt: skip
    """Return verdicts by item, whose units are ``unit`` (X,), reference (``single`` has -1 for none) and model."""
    used = np.unique(np.concatenate([single[single >= 0], *sets]))
    place = np.full(battles.n_models + 1, len(used))  # the last, of none
    place[used] = np.arange(len(used))
    cells = battles.cells
    first, second = (side[cells.pair][items.cell] for side in (cells.first, cells.second))
    target, weight = cells.target[items.cell], items.times * cells.weight[items.cell]
    sides = (first, second, target), (second, first, 1 - target)
    n_items, share = len(unit), battles.n_battles / (len(unit) * max(len(used), 1) * battles.n_models)
    if (unit < 0).any() or share < _LEAST_FILLED:
        raise DataError(
            f"column {item!r} has {counted(n_items, 'item')}, with {share:.1%} of the verdicts that "
            f"{counted(battles.n_models, 'model')} and {counted(len(used), 'reference')} could have on them: an item "
            "can draw a reference for all models only if nearly all of them met it there; leave out item= (on the "
            "command line --item), or name fewer references (references=, on the command line --reference)"
        )
    n, points = np.zeros((2, n_items, len(used) + 1, size))
    for model, reference, won in sides:
        of = place[reference] < len(used)
        at = items.cluster[of], place[reference[of]], model[of]
        np.add.at(n, at, weight[of])
        np.add.at(points, at, (weight * won)[of])
    several = np.full((max(map(len, sets), default=1), len(sets)), len(used), np.int32)
    ranked = np.ones((len(sets), size), bool)
    for s, members in enumerate(sets):
        several[: len(members), s] = place[members]
        ranked[s, members] = False
    return SharedItems(
        unit=as_leaf(unit, np.int32), n=as_leaf(n, np.float64), points=as_leaf(points, np.float64),
        single=as_leaf(place[single], np.int32), several=as_leaf(several, np.int32),
        size=as_leaf([len(members) for members in sets], np.int32), ranked=as_leaf(ranked, np.bool_),
    )  # fmt: skip
