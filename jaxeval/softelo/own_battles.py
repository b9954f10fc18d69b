"""The bootstrap of a model's own battles, its opponents' strengths fixed (Algorithm 1 of arXiv:2606.13221)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_room
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.errors import DataError
from jaxeval.execution.lanes import LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import OWN_BATTLES, held_numbers, padded_few, padded_own, padded_size, slices_together
from jaxeval.kernels.batch.folds import OwnProblem, own_resamples, rate
from jaxeval.kernels.solve import Status, Terms
from jaxeval.lazy_names import jax
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.resampling.units import checked_strata, make_singles, stacked, stream_number
from jaxeval.softelo.held_out import Folds
from jaxeval.softelo.rating_errors import influence, standard_errors
from jaxeval.softelo.temperature import JudgedCells, by_model, targets
from jaxeval.statistics.clusters import FEW_CLUSTERS, numbered
from jaxeval.wording import counted, named

TOLERANCE_LOGIT = 1e-8  # 2e-6 Elo
MAX_STEPS = 200
_BYTES_PER_SLOT = 24  # draws of a battle in a lane, as counts and as what they are multiplied by
_TABLES = 3  # numbers of a lane by opponent: battles, for each target map what is expected of them, and its square
#: A new model's rating from fewer judged battles, or fewer different opponents, is flagged.
FEW_BATTLES, FEW_ANCHORS = 30, 5
_FEW_FLAGGED = 3  # flagged models that have a sentence each
_ALIKE_ELO = 1e-6  # a smaller standard error comes from rounding: all battles are alike


class OwnBattles(NamedTuple):
    """The N battles of one model, under K target maps, against M anchors."""

    name: str  # names the random numbers
    opponent: Int  # (N,) number of the anchor
    target: Float  # (K, N)
    anchors: Float  # (K, M) log-strengths, logits
    start: Float  # (K,) where the iteration starts: the rating of all battles, say
    cluster: Int | None = None  # (N,) cluster, drawn whole, numbered by first places; None where battles are drawn
    stratum: Int | None = None  # (N,) stratum within which battles or clusters are drawn; None for one stratum

    def strata_of_units(self) -> Int:
        """Return (U,) the stratum of each battle, or cluster."""
        stratum = np.zeros(self.target.shape[1], np.int64) if self.stratum is None else self.stratum
        return stratum if self.cluster is None else stratum[np.unique(self.cluster, return_index=True)[1]]


def battles_by_model(
    cells: JudgedCells, folds: Folds, methods: Sequence[str], names: Sequence[str], cluster: Int | None = None,
    stratum: Int | None = None,
) -> list[OwnBattles]:  # fmt: skip
    """Return the battles of every model under every method, against its fold's anchors, for the bootstrap.

    ``cluster`` (N,) numbers the battles that are drawn together, ``stratum`` (N,) the strata within which they are
    drawn.
    """
    clusters, strata = _own_groups(cells, cluster, stratum)
    difference, hard, _ = cells.labels.T
    result = []
    for i, (mine, is_first) in enumerate(zip(cells.own, cells.own_first, strict=True)):
        label, times = cells.label[mine], cells.battles[mine]
        beta = folds.beta[i] if np.isfinite(folds.beta[i]) else 0.0
        y = np.stack([targets(k, difference[label], hard[label], beta) for k in methods])
        opponent = np.where(is_first, cells.second[mine], cells.first[mine])
        result.append(
            OwnBattles(
                name=str(names[i]),
                opponent=np.repeat(opponent, times),
                target=np.repeat(np.where(is_first, y, 1 - y), times, axis=1),
                anchors=folds.anchors[1:, i],
                start=np.nan_to_num(folds.theta[1:, i]),
                cluster=None if clusters is None else numbered(clusters[i]),
                stratum=None if strata is None else checked_strata(strata[i]),
            )
        )
    return result


def _own_groups(cells: JudgedCells, *groups: Int | None) -> list[list[Int] | None]:
    """By model, each of the ``groups`` (N,) of its battles, which are in the order of their cells.

    Battles of a cell are in the order of their groups, whatever rows they were in.
    """
    if all(x is None for x in groups):
        return [None] * len(groups)
    order = np.lexsort([*(x for x in reversed(groups) if x is not None), cells.of_battle])
    cell = cells.of_battle[order]
    of_models, _ = by_model(cells.first[cell], cells.second[cell], cells.n_models)
    return [None if group is None else [group[order][mine] for mine in of_models] for group in groups]


def strengths(models: Sequence[OwnBattles], ridge: float) -> Float:
    """Return (S, K) log-strengths of ``models`` from all their battles, logits; NaN without battles."""
    n_maps, m = models[0].anchors.shape
    size, rows = padded_size(m), padded_few(len(models) * n_maps)
    anchors, n, score = np.zeros((rows, size)), np.zeros((rows, size)), np.zeros(rows)
    anchors[: len(models) * n_maps, :m] = np.concatenate([model.anchors for model in models])
    met = np.stack([np.bincount(model.opponent, minlength=m) for model in models])
    n[: len(models) * n_maps, :m] = np.repeat(met, n_maps, axis=0)
    score[: len(models) * n_maps] = np.concatenate([model.target.sum(1) for model in models])
    with double_precision():
        solution = rate(anchors, n, score, np.zeros(rows), Terms.of(float(ridge), TOLERANCE_LOGIT, MAX_STEPS))
        theta = np.where(np.asarray(solution.status) == Status.CONVERGED, np.asarray(solution.theta), np.nan)
    return np.where(met.sum(1)[:, None] > 0, theta[: len(models) * n_maps].reshape(-1, n_maps), np.nan)


def resampled_strengths(
    models: Sequence[OwnBattles], n_resamples: int, seed: int, ridge: float, run: LaneRun | None = None
) -> Float:
    """Return (S, K, B) log-strengths of ``models`` in resamples of their own battles, logits; NaN without battles.

    Resample r of a model is a function of (seed, the model's name, r) and of its battles in the order given. It does
    not depend on the other models, the chunks or the devices. With clusters it holds as many clusters, drawn with
    replacement, as the model has; clusters of one battle each give what battles give, bit for bit. With strata it holds
    as many of each.
    """
    if all(
        problem.cluster is None or problem.cluster.max(initial=-1) + 1 == len(problem.cluster) for problem in models
    ):
        models = [problem._replace(cluster=None) for problem in models]
    check_room(n_resamples, 8 * len(models) * len(models[0].anchors))
    theta = np.full((len(models), len(models[0].anchors), n_resamples), np.nan)
    mesh, terms = device_mesh(), Terms.of(float(ridge), TOLERANCE_LOGIT, MAX_STEPS)
    size = padded_size(max(problem.anchors.shape[1] for problem in models))
    stratified = any(problem.stratum is not None for problem in models)
    by_unit = stratified or any(
        problem.cluster is not None or (np.diff(problem.opponent) < 0).any() for problem in models
    )
    run = run or LaneRun()
    of_model = _TABLES * held_numbers((size,)) * theta.shape[1]  # numbers of a lane that iterate
    for width, members in _by_width([problem.target.shape[1] for problem in models]):
        together = 1 if run.memory_limit else slices_together(OWN_BATTLES, of_model, len(members), n_resamples)
        n_slices = -(-len(members) // together)
        filled = np.append(members, np.repeat(members[-1], padded_few(n_slices) * together - len(members)))
        problems = [_problem(models[i], width, size, by_unit=by_unit, stratified=stratified) for i in filled]
        with double_precision():
            problem: OwnProblem = jax.device_put(
                jax.tree.map(lambda x, g=together: x.reshape(-1, g, *x.shape[1:]), stacked(problems))
            )
            held = 2 * sum(x.nbytes for x in jax.tree.leaves(problem)) + 2 * theta.nbytes
            call = partial(own_resamples, problem, mesh, np.uint64(seed), terms)
            words = width + (together - 1) * of_model
            task = Task(call, OWN_BATTLES, words, lane_bytes=_BYTES_PER_SLOT * words, fixed_bytes=held)
            counting = replace(run, advance=lambda n, g=together: run.advance(g * n))
            strength, status = counting.results(task, Lanes.of(n_slices, n_resamples), f"own-{width}-{together}")
            run.advance((len(members) - n_slices * together) * n_resamples)  # the last slice may not be full
        values = np.where(status == Status.CONVERGED, strength, np.nan)  # (slices B, G, K)
        by_slice = values.reshape(n_slices, n_resamples, together, -1).transpose(0, 2, 3, 1)
        theta[members] = by_slice.reshape(-1, *theta.shape[1:])[: len(members)]
    return theta


def _by_width(sizes: Sequence[int]) -> list[tuple[int, NDArray[np.intp]]]:
    """Return models of similar numbers of battles run together: little is padding, and few shapes are compiled."""
    rest, groups = np.array(sizes), []
    while rest.any():
        members = np.flatnonzero(rest > 0.6 * rest.max())
        groups.append((padded_own(int(rest.max())), members))
        rest[members] = 0
    return groups


def _problem(
    battles: OwnBattles, width: int, size: int, *, by_unit: bool = False, stratified: bool = False
) -> OwnProblem:
    """Return the model's problem with ``width`` places of battles, and ``size`` of opponents.

    ``by_unit``: battles have other places than the units that draw them.
    """
    n, order = battles.target.shape[1], np.argsort(battles.opponent, kind="stable")
    stratum = battles.strata_of_units()
    by_stratum = np.argsort(stratum, kind="stable")  # units of a stratum have consecutive numbers
    cluster = np.arange(n) if battles.cluster is None else battles.cluster
    target, unit = np.zeros((width, len(battles.target))), np.zeros(width, np.int32)
    target[:n], unit[:n] = battles.target.T[order], np.argsort(by_stratum)[cluster[order]]
    met = np.bincount(battles.opponent, minlength=size)
    end = np.cumsum(met)
    most = len(stratum) * int(np.bincount(cluster).max(initial=1))
    fields: dict[str, Any] = {  # arrays of the host, which compiled functions take as they are
        "stream": np.uint64(stream_number(battles.name)),
        "first": (end - met).astype(np.int32),
        "end": end.astype(np.int32),
        "target": target,
        "step": np.float64(2.0 ** (np.ceil(np.log2(max(most, 1))) - 23)),
        "unit": unit if by_unit else None,
        "anchors": np.pad(battles.anchors, [(0, 0), (0, size - battles.anchors.shape[1])]),
        "start": np.nan_to_num(battles.start),
    }
    units = make_singles(len(stratum), width, stratum[by_stratum] if stratified else None)
    return OwnProblem(units=units, **fields)


def rate_new_models(
    battles: JudgedBattles, target: Float, unit: NDArray[np.intp], anchors: pd.Series, ridge: float, base: float
) -> tuple[pd.DataFrame, int]:
    """Return the rating of each model that is no anchor, from its battles with anchors alone.

    Battles have a ``target`` (N,) that side A wins, and a number of what each is sampled with, ``unit`` (N,). Strengths
    of the ``anchors`` are in logits; ``base`` is the rating of strength 0, Elo.

    Returns:
        One row per new model: ``model, rating, standard_error`` (Elo; NaN where its battles do not differ),
        ``n_battles, n_anchors``, ``n_units`` (clusters, or battles without clusters), ``won`` and ``lost`` (all
        battles). And the number of battles that are left out.
    """
    names = pd.Index([str(m) for m in battles.models])
    place = pd.Index(anchors.index).get_indexer(names)
    a, b = battles.model_a.astype(np.intp), battles.model_b.astype(np.intp)
    new_a, new_b = place[a] < 0, place[b] < 0
    _refuse_unknown(names, a, b, new_a & new_b, anchors.index)
    of_new = new_a != new_b
    if not of_new.any():
        raise DataError(
            f"none of {counted(len(a), 'battle')} is of a new model: all are between the "
            f"{counted(len(anchors), 'anchor')} of the calibration. A model to predict must not be among them"
        )
    rated, model = np.unique(np.where(new_a, a, b)[of_new], return_inverse=True)
    opponent, points = place[np.where(new_a, b, a)[of_new]], np.where(new_a, target, 1 - target)[of_new]
    strength = anchors.to_numpy()[None]
    each = [
        OwnBattles(str(names[m]), opponent[model == i], points[None, model == i], strength, start=np.zeros(1))
        for i, m in enumerate(rated)
    ]
    theta = strengths(each, ridge)[:, 0]
    moved = influence(model, opponent, points, theta, np.repeat(strength, len(rated), axis=0), ridge)
    error = ELO_PER_LOGIT * standard_errors(model, unit[of_new], moved, len(rated))
    of_model = pd.DataFrame({"opponent": opponent, "points": points, "unit": unit[of_new]}).groupby(model)
    table = pd.DataFrame(
        {
            "model": names[rated],
            "rating": base + ELO_PER_LOGIT * theta,
            "standard_error": np.where(error > _ALIKE_ELO, error, np.nan),
            "n_battles": of_model.size(),
            "n_anchors": of_model["opponent"].nunique(),
            "n_units": of_model["unit"].nunique(),
            "won": of_model["points"].min() == 1,
            "lost": of_model["points"].max() == 0,
        }
    )
    return table, int((~of_new).sum())


def flags(table: pd.DataFrame, pool: pd.DataFrame) -> list[str]:
    """Give why each rating of `rate_new_models`, or its interval, is less reliable than it looks; "" without a reason.

    The ``pool`` holds the calibration models that set the intervals.
    """
    noisiest = pool["residual_error"].max()
    low, high = pool["judge_elo"].min(), pool["judge_elo"].max()
    sentences = []
    for row in table.itertuples():
        one_cluster = row.n_units == 1 < row.n_battles
        doubts = {
            f"only {counted(row.n_battles, 'battle')}": row.n_battles < FEW_BATTLES,
            f"only {counted(row.n_anchors, 'opponent')}": row.n_anchors < FEW_ANCHORS,
            "won all its battles": row.won,
            "lost all its battles": row.lost,
            f"only {counted(row.n_units, 'cluster')}": 1 < row.n_units < min(FEW_CLUSTERS, row.n_battles),
            "its battles lie in one cluster: no standard error, no interval": one_cluster,
            "its battles do not differ: no standard error, no interval": np.isnan(row.standard_error)
            and not one_cluster,
            f"its standard error of {row.standard_error:.0f} exceeds the noise of every calibration residual "
            f"({noisiest:.0f} at most)": row.standard_error > noisiest,
            f"outside the range of the calibration models ({low:.0f} to {high:.0f})": not low <= row.rating <= high,
        }
        sentences.append("; ".join(text for text, applies in doubts.items() if applies))
    return sentences


def flag_sentences(table: pd.DataFrame) -> list[str]:
    """Return sentences on the new models that have flags; one sentence where they are many."""
    flagged = table[table["flags"] != ""]
    if len(flagged) <= _FEW_FLAGGED:
        return [f"{row.model}: {row.flags}" for row in flagged.itertuples()]
    return [
        f"{len(flagged):,} of {len(table):,} new models are flagged, see the column flags: {named(flagged['model'])}"
    ]


def _refuse_unknown(
    names: pd.Index, a: NDArray[np.intp], b: NDArray[np.intp], both_new: Bool, anchors: pd.Index
) -> None:
    if not both_new.any():
        return
    counts = pd.concat([pd.Series(names[a[both_new]]), pd.Series(names[b[both_new]])]).value_counts()
    shown = ", ".join(f"{m} ({c:,})" for m, c in counts.head(8).items())
    raise DataError(
        f"{both_new.sum():,} of {counted(len(a), 'battle has', 'battles have')} no anchor on either side, and a new "
        "model is rated against anchors only. Models of these battles that are not among the "
        f"{counted(len(anchors), 'anchor')}: {shown}; the anchors are {named(anchors)}. Leave those battles out, or "
        "correct the names"
    )
