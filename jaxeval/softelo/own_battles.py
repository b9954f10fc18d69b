"""Errors of ratings from a model's own battles, its opponents' strengths fixed (Algorithm 1 of arXiv:2606.13221).

The bootstrap draws these battles again. In closed form a battle moves a rating by its influence
(y - p) / (sum of p (1 - p) + 2 ridge) to first order. The variance of a rating is the sum of the squared influences,
and with clusters the sum of the squared totals of each cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.special import expit

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
from jaxeval.softelo.held_out import Folds, hold_out
from jaxeval.softelo.temperature import JudgedCells, by_model, compress, targets
from jaxeval.statistics.clusters import FEW_CLUSTERS, numbered
from jaxeval.wording import counted, named

Rows = NDArray[np.intp]

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
    """Return, by model, each of the ``groups`` (N,) of its battles, which are in the order of their cells.

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


def _by_width(sizes: Sequence[int]) -> list[tuple[int, Rows]]:
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
    battles: JudgedBattles, target: Float, unit: Rows, anchors: pd.Series, ridge: float, base: float
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


def _refuse_unknown(names: pd.Index, a: Rows, b: Rows, both_new: Bool, anchors: pd.Index) -> None:
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


def held_out_errors(battles: JudgedBattles, methods: Sequence[str], ridge: float, cluster: str | None = None) -> Float:
    """Return (3, K, M) standard errors of the ratings that `soft_elo` gives M models from their own battles, logits.

    By K target maps: of the judge's rating, of the human one, and of judge minus human, which rest on the same battles.
    NaN where one unit is all there is. Battles without a human label move the judge's rating only; those with equal
    values in the column ``cluster`` are sampled together.
    """
    (folds,) = hold_out([compress(battles)], methods, float(ridge))
    model = np.concatenate([battles.model_a, battles.model_b]).astype(np.intp)
    unit, n = np.tile(units(battles, cluster), 2), len(battles.models)
    human, *judged = held_out_influences(battles, methods, folds, ridge)
    rows = [[standard_errors(model, unit, x, n) for x in (judge, human, judge - human)] for judge in judged]
    return np.array(rows).transpose(1, 0, 2)


def held_out_influences(battles: JudgedBattles, methods: Sequence[str], folds: Folds, ridge: float) -> list[Float]:
    """Return by how much each battle moves the rating of its side A, then that of its side B, logits: (2 N,) each.

    The first is of human ratings, the others are of the judge's by target map.
    """
    model = np.concatenate([battles.model_a, battles.model_b]).astype(np.intp)
    opponent = np.concatenate([battles.model_b, battles.model_a]).astype(np.intp)
    # The temperature of a battle's soft target is that of the held-out model: it differs between the two sides.
    sides = [(battles.human, battles.human)] + [
        tuple(
            targets(method, battles.score_difference, battles.hard, folds.beta[side])
            for side in (battles.model_a, battles.model_b)
        )
        for method in methods
    ]
    return [
        influence(model, opponent, np.concatenate([of_a, 1 - of_b]), folds.theta[k], folds.anchors[k], ridge)
        for k, (of_a, of_b) in enumerate(sides)
    ]


def units(battles: JudgedBattles, cluster: str | None) -> Rows:
    """Return (N,) number of each battle's sampling unit: the battle itself, or its cluster.

    A column that is not there, or has missing values, is a DataError.
    """
    if cluster is None:
        return np.arange(battles.n_battles)
    return battles.codes(cluster)[0]


def influence(model: Rows, opponent: Rows, target: Float, theta: Float, anchors: Float, ridge: float) -> Float:
    """Return (N,) by how much each battle moves its model's rating, logits; 0 without a target.

    Battles (N,) are of a model and its opponent, by number, with the target that the model wins. Ratings ``theta`` (M,)
    and the strengths of the opponents as each model sees them, ``anchors`` (M, A), are in logits.
    """
    p = expit(theta[model] - anchors[model, opponent])
    known = ~np.isnan(target)
    information = np.bincount(model, np.where(known, p * (1 - p), 0.0), len(theta)) + 2 * ridge
    return np.where(known, target - p, 0.0) / information[model]


def standard_errors(model: Rows, unit: Rows, moved: Float, n_models: int) -> Float:
    """Return (M,) standard errors from the influence ``moved`` (N,) of battles that are sampled by ``unit`` (N,).

    With G units of a model and their totals t: sqrt(G / (G - 1) * sum (t - mean t)^2). NaN with fewer than two units.
    """
    pairs, which = np.unique(model * (unit.max() + 1) + unit, return_inverse=True)
    total, of = np.bincount(which, moved), pairs // (unit.max() + 1)
    count = np.bincount(of, minlength=n_models)
    mean = np.bincount(of, total, n_models) / np.maximum(count, 1)
    squares = np.bincount(of, (total - mean[of]) ** 2, n_models)
    return np.sqrt(np.where(count > 1, squares * count / np.maximum(count - 1, 1), np.nan))


class JudgedSide(NamedTuple):
    """Judged battles as the fits see them, (N,) each. Numbers are of anchors, or of new models on side A."""

    a: Rows
    b: Rows
    target: Float  # that A wins, by the judge's target map
    difference: Float  # score of A minus that of B
    unit: Rows  # number of the battle's sampling unit, the same in all tables


def joint_errors(
    known: JudgedSide, placed: JudgedSide, human: Float, zero: Bool, *, anchors: Float, new: Float, people: Float,
    beta: float | None, ridge: float, on_board: bool,
) -> Float:  # fmt: skip
    """Return (J + M, J + M) covariances of new models' strengths and of the people's, from battles that both rest on.

    They are of strengths less the mean strength of the anchors that hold the zero, logits^2. The judge's fits, with a
    ``ridge``, gave the strengths of ``anchors`` (M,) and of ``new`` models (J,), and the temperature ``beta`` (None for
    a target map without one); human votes those of ``people`` (M,), which are not finite where votes set none.

    The ``known`` battles between anchors calibrate, with the ``human`` targets (N,), NaN without a label, that give the
    temperature; those ``placed`` have a new model on side A. The mean strength of the anchors ``zero`` (M,) is the
    zero. The people's board rests on these labels, too (``on_board``), or is independent of the judge's fits.
    """
    m, j = len(anchors), len(new)
    p = expit(anchors[known.a] - anchors[known.b])
    placed_p = expit(new[placed.a] - anchors[placed.b])
    with np.errstate(invalid="ignore"):  # two models beyond all others
        human_p = expit(people[known.a] - people[known.b])
    voted = ~(np.isnan(human) | np.isnan(human_p)) & on_board
    decided = np.isin(human, (0.0, 1.0))

    # Scores: of the judge's anchors (M), of the new models (J), of the temperature (1), of the people's strengths (M).
    judge_error = known.target - p
    human_error = np.where(voted, human - human_p, 0.0)
    of_beta = np.where(decided, known.difference * (human - expit((beta or 0.0) * known.difference)), 0.0)
    entries = [
        (known.unit, known.a, judge_error),
        (known.unit, known.b, -judge_error),
        (placed.unit, m + placed.a, placed.target - placed_p),
        (known.unit, np.full(len(p), m + j), of_beta),
        (known.unit, m + j + 1 + known.a, human_error),
        (known.unit, m + j + 1 + known.b, -human_error),
    ]
    row, column, value = (np.concatenate(part) for part in zip(*entries, strict=True))
    scores = coo_array((value, (row, column)), shape=(row.max() + 1, 2 * m + j + 1)).tocsr()
    products = (scores.T @ scores).toarray()

    # How much each parameter moves with each score.
    of_anchors = np.linalg.inv(_information(known.a, known.b, p * (1 - p), m) + 2 * ridge * np.eye(m))
    slope, placed_slope = (0.0 * x.target for x in (known, placed))
    steepness = np.zeros(0)
    if beta is not None:
        slope, placed_slope = (x.difference * x.target * (1 - x.target) for x in (known, placed))
        steepness = (known.difference**2 * known.target * (1 - known.target))[decided]
    per_beta = of_anchors @ (np.bincount(known.a, slope, m) - np.bincount(known.b, slope, m))
    weight = np.bincount(placed.a * m + placed.b, placed_p * (1 - placed_p), j * m).reshape(j, m)
    information = weight.sum(1) + 2 * ridge
    placed_per_beta = (np.bincount(placed.a, placed_slope, j) + weight @ per_beta) / information
    answer = np.zeros((j + m, 2 * m + j + 1))
    share = zero / zero.sum()
    answer[:j, :m] = (weight / information[:, None] - share) @ of_anchors
    answer[:j, m : m + j] = np.diag(1 / information)
    if steepness.sum() > 0:
        answer[:j, m + j] = (placed_per_beta - share @ per_beta) / steepness.sum()
    human_weight = np.where(voted, human_p * (1 - human_p), 0.0)
    of_people = np.linalg.pinv(_information(known.a, known.b, human_weight, m), hermitian=True)
    answer[j:, m + j + 1 :] = of_people - share @ of_people
    return answer @ products @ answer.T


def _information(a: Rows, b: Rows, weight: Float, m: int) -> Float:
    """Return (M, M) information of a Bradley-Terry fit, from the p (1 - p) of its battles."""
    met = np.bincount(a * m + b, weight, m * m).reshape(m, m)
    met += met.T
    return np.asarray(np.diag(met.sum(1)) - met)
