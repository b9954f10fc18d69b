"""Leave-one-model-out fits of judged battles (Algorithm 1 of arXiv:2606.13221): every model of several sets at once.

A set is what one judge scored, or a part of it: a budget, a slice. For each model of a set the temperature and the
strengths of all others come from the battles without it, then its own strength from its battles, the others fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.execution.blas import one_blas_thread
from jaxeval.execution.lanes import device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch
from jaxeval.kernels.held_out import FullFit, HeldOut, Judged
from jaxeval.kernels.solve import Status, Terms
from jaxeval.ratings.boards import padded_size
from jaxeval.softelo.own_battles import OwnBattles
from jaxeval.softelo.temperature import FEWEST_BATTLES, TOLERANCE_LOGIT, Ties, in_likelihood
from jaxeval.softelo.temperature import MAX_STEPS as _TEMPERATURE_STEPS
from jaxeval.statistics.clusters import numbered
from jaxeval.wording import did_you_mean

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

_CHORD_STEPS, _NEWTON_STEPS = 40, 200
_MOST_ALONE = 0.1
# Small boards share their compiled code: arrays have room for so many cells at least, whichever fits, and so on.
_CELLS, _FEWEST_LABELS, _FEWEST_OWN = (1024, 4096), 512, 512
# Numbers that the lanes of a chunk may hold at once: the caches of a CPU. And those of a call.
_WORDS_PER_CHUNK, _WORDS_PER_CALL = 4_000_000, 2**27


class Cells(NamedTuple):
    """Judged battles compressed: equal (pair, score difference, hard label, human label) are one cell."""

    n_models: int
    first: Int  # (C,) lower model index
    second: Int  # (C,)
    pair: Int  # (C,) number of the pair, sorted
    label: Int  # (C,)
    battles: Int  # (C,) how many
    pairs: tuple[Int, Int]  # (P,) models of each pair
    labels: Float  # (U, 3) score difference, hard label, human label (NaN without one), of the first model
    own: list[Int]  # per model, its cells in order
    own_first: list[Bool]  # and whether it is the first model of them
    of_battle: Int  # (N,) the cell of each battle


class Folds(NamedTuple):
    """The M folds of one set under K target maps: the human labels, then the methods."""

    n: Float  # (K, M, M) battles
    beta: Float  # (M,) temperatures, logits per point of score difference
    beta_status: NDArray[np.int8]  # (M,) of `kernels.temperature`
    anchors: Float  # (K, M, M) log-strengths of the others by fold, logits
    theta: Float  # (K, M) log-strength of the fold's model; NaN where the battles, or the temperature, give none
    converged: Bool  # (K, M)
    apart: Bool  # (K, M) the others do not all meet, directly or through others, but for a few


def compress(battles: JudgedBattles, rows: Any = slice(None)) -> Cells:
    """The cells of the battles, or of some ``rows`` of them; the models stay numbered as they are."""
    a, b = battles.model_a[rows].astype(np.int64), battles.model_b[rows].astype(np.int64)
    m, swap = len(battles.models), a > b
    score = battles.score_difference[rows]
    difference = np.where(swap, -score, score) + 0.0
    hard, human = (np.where(swap, 1 - x[rows], x[rows]) for x in (battles.hard, battles.human))
    codes = [np.unique(x, return_inverse=True) for x in (difference, hard, human)]
    joint = np.zeros(len(a), np.int64)
    for values, code in codes:
        joint = joint * len(values) + code
    kinds, label = np.unique(joint, return_inverse=True)
    parts = np.unravel_index(kinds, [len(values) for values, _ in codes])
    labels = np.stack([values[part] for (values, _), part in zip(codes, parts, strict=True)], axis=1)
    pair = np.where(swap, b, a) * m + np.where(swap, a, b)
    keys, of_battle, count = np.unique(pair * len(kinds) + label, return_inverse=True, return_counts=True)
    pairs, of_cell = np.unique(keys // len(kinds), return_inverse=True)
    first, second = divmod(pairs, m)
    first_of_cell, second_of_cell = first[of_cell], second[of_cell]

    model = np.concatenate([first_of_cell, second_of_cell])
    cell = np.tile(np.arange(len(keys)), 2)
    order = np.lexsort((cell, model))
    ends = np.cumsum(np.bincount(model, minlength=m))[:-1]
    own, own_first = np.split(cell[order], ends), np.split(order < len(keys), ends)
    return Cells(
        m, first_of_cell, second_of_cell, of_cell, keys % len(kinds), count, (first, second), labels, own, own_first,
        of_battle,
    )  # fmt: skip


def smoothing(method: str) -> float:
    """The constant of a target map that moves hard labels: 1 for "hard", c for "smooth:c" (Appendix H).

    Raises:
        ValueError: there is no such map, or c lies outside [0.5, 1].
    """
    name, _, text = method.partition(":")
    try:
        constant = 1.0 if method == "hard" else float(text)
    except ValueError:
        constant = np.nan
    if not (method == "hard" or name == "smooth") or not 0.5 <= constant <= 1:
        raise ValueError(
            f"unknown method {method!r}: expected 'hard', 'soft', or 'smooth:c' with c in [0.5, 1], 'smooth:0.8' "
            f"say{did_you_mean(method, ('hard', 'soft', 'smooth:0.8'))}"
        )
    return constant


def targets(method: str, score_difference: Float, hard: Float, beta: Any) -> Float:
    """Targets that A wins by a target map: "soft" is s(beta d), the others move the hard label."""
    if method == "soft":
        return np.asarray(expit(beta * score_difference))
    return 0.5 + (2 * smoothing(method) - 1) * (hard - 0.5)


def hold_out(
    sets: Sequence[Cells], methods: Sequence[str], ridge: float, ties: Ties = "drop", beta: Float | None = None
) -> list[Folds]:
    """The folds of every set, sets of similar size in one batched call.

    Args:
        sets: compressed battles.
        methods: target maps beside the human labels.
        ridge: > 0, coefficient of the squared norm in both steps.
        ties: how human ties enter the temperature.
        beta: (M,) temperature of each fold in place of the set's own; NaN where there is none.
    """
    found: list[Folds | None] = [None] * len(sets)
    # Within a factor of four; finer kinds would compile more often.
    kinds = [(padded_size(c.n_models), max(len(c.battles), _CELLS[0] - 1).bit_length() // 2) for c in sets]
    for kind in dict.fromkeys(kinds):
        members = [s for s, k in enumerate(kinds) if k == kind]
        words = (1 + len(methods)) * 3 * kind[0] ** 2 + 4 ** (kind[1] + 1)
        most = max(_WORDS_PER_CALL // words, 1)
        for start in range(0, len(members), most):
            part = members[start : start + most]
            for s, folds in zip(part, _hold_out([sets[s] for s in part], methods, ridge, ties, beta), strict=True):
                found[s] = folds
    return [folds for folds in found if folds is not None]


def above_human(folds: Folds, human: Folds) -> Float:
    """(K - 1, M) by how much the strengths of every fold and method lie above the ``human`` ones, logits.

    Each fold has mean zero over its own anchors. Where some have no human battles, or a part of the data lacks some,
    these zeros differ: the offset is the mean difference over the anchors that both have. 0 if all are the same.
    """
    m = folds.n.shape[1]
    has_votes, is_judged = human.n[0].sum(1) > 0, folds.n[1:].sum(2) > 0
    common = has_votes & is_judged[:, None, :] & ~np.eye(m, dtype=bool)
    difference = np.where(common, folds.anchors[1:] - human.anchors[0], 0.0)
    return np.asarray(difference.sum(2) / np.maximum(common.sum(2), 1))


def own_battles(
    cells: Cells, folds: Folds, methods: Sequence[str], names: Sequence[str], cluster: Int | None = None
) -> list[OwnBattles]:
    """The battles of every model under every method, against its fold's anchors, for the bootstrap.

    ``cluster`` (N,) says which of the battles are drawn together.
    """
    clusters = None if cluster is None else _own_clusters(cells, cluster)
    difference, hard, _ = cells.labels.T
    fixed = {method: targets(method, difference, hard, None) for method in methods if method != "soft"}
    result = []
    for i, (mine, is_first) in enumerate(zip(cells.own, cells.own_first, strict=True)):
        label, times = cells.label[mine], cells.battles[mine]
        beta = folds.beta[i] if np.isfinite(folds.beta[i]) else 0.0
        y = np.stack([fixed[k][label] if k in fixed else expit(beta * difference[label]) for k in methods])
        opponent = np.where(is_first, cells.second[mine], cells.first[mine])
        result.append(
            OwnBattles(
                str(names[i]),
                np.repeat(opponent, times),
                np.repeat(np.where(is_first, y, 1 - y), times, axis=1),
                folds.anchors[1:, i],
                np.nan_to_num(folds.theta[1:, i]),
                None if clusters is None else clusters[i],
            )
        )
    return result


def _own_clusters(cells: Cells, cluster: Int) -> list[Int]:
    """Per model, the cluster of each of its battles, which are in the order of their cells; numbered by first places.

    Clusters of a cell are in the order of their names, whatever rows the battles were in.
    """
    order = np.lexsort((cluster, cells.of_battle))
    cell = cells.of_battle[order]
    model, place = np.concatenate([cells.first[cell], cells.second[cell]]), np.tile(np.arange(len(cell)), 2)
    ends = np.cumsum(np.bincount(model, minlength=cells.n_models))[:-1]
    return [numbered(own) for own in np.split(cluster[order][place[np.lexsort((place, model))]], ends)]


def _hold_out(
    sets: Sequence[Cells], methods: Sequence[str], ridge: float, ties: Ties, given: Float | None
) -> list[Folds]:
    wanted = sets
    # Similar sets share one compilation: sizes are rounded up, also the number of sets, by copies of the last one.
    sets = [*sets, *[sets[-1]] * (_rounded(len(sets)) - len(sets))]
    judged, n_pairs = _stacked(sets, ties)
    n_sets, size, u = len(sets), judged.position.shape[-1], judged.level.shape[-1]
    m, mesh = size, device_mesh()
    with double_precision(), one_blas_thread():
        chunk = _chunk(m, 4 * u + judged.own.shape[-1])
        temperature = batch.fold_temperatures(
            judged, mesh, float(FEWEST_BATTLES), Terms.of(0.0, TOLERANCE_LOGIT, _TEMPERATURE_STEPS), chunk
        )
        beta, status = np.asarray(temperature.beta), np.asarray(temperature.status)
        pooled = np.where(np.isfinite(beta[:, m]), beta[:, m], 0.0)
        beta, status = beta[:, :m], status[:, :m]
        if given is not None:
            beta = np.broadcast_to(np.pad(given, (0, m - len(given)), constant_values=np.nan), beta.shape)
            status = np.full(beta.shape, Status.CONVERGED, np.int8)
        usable = np.isfinite(beta) & (status == Status.CONVERGED)

        maps = [
            [c.labels[:, 2], *(targets(method, c.labels[:, 0], c.labels[:, 1], p) for method in methods)]
            for c, p in zip(sets, pooled, strict=True)
        ]
        target = np.stack([_padded(np.stack(of_set), u, np.nan) for of_set in maps])
        tables = batch.judged_tables(judged, np.isfinite(target).astype(float), np.nan_to_num(target), n_pairs)
        n_maps = target.shape[1]
        full = batch.fit(tables.n, tables.score, tables.active, Terms.of(ridge, 1e-6, _NEWTON_STEPS))
        inverse, _ = batch.inverse_information(full.theta, tables.n, ridge, tables.active)
        fitted = FullFit(tables.n, full.theta, inverse, tables.active)

        folds = np.arange(m, dtype=np.int32)
        options = (folds, mesh, Terms.of(ridge, TOLERANCE_LOGIT, _CHORD_STEPS))
        map_of_lane = np.tile(np.arange(n_maps), n_sets)
        soft = methods.index("soft") + 1 if "soft" in methods else -1
        at = np.flatnonzero(map_of_lane != soft)
        lanes = batch.take((fitted, tables.wins), at)
        parts = jax.device_get(batch.hold_out(*lanes, *options, _chunk(m, size * size)))
        held = HeldOut(*(np.empty((len(map_of_lane), *x.shape[1:]), x.dtype) for x in parts))  # type: ignore[arg-type]
        _put(held, at, parts)
        if soft >= 0:
            at = np.flatnonzero(map_of_lane == soft)
            known = np.where(usable, beta, 0.0)
            chunk = _chunk(m, max(size * size, judged.pair.shape[-1]))
            lanes = batch.take(fitted, at)
            parts = jax.device_get(batch.hold_out_soft(judged, known, lanes, *options, n_pairs, chunk))
            _put(held, at, parts)
        n = np.asarray(tables.n)
        _finish(held, n, np.asarray(tables.active), ridge)

    shape = (n_sets, n_maps)
    n_all = n.reshape(*shape, size, size)
    anchors, theta = (np.asarray(x).reshape(*shape, *x.shape[1:]) for x in (held.anchors, held.theta))
    both = np.maximum(np.asarray(held.anchor_status), np.asarray(held.status))
    converged = (both == Status.CONVERGED).reshape(*shape, m)
    if soft >= 0:
        theta[:, soft] = np.where(usable, theta[:, soft], np.nan)
    theta[n_all.sum(3)[:, :, :m] == 0] = np.nan
    apart = np.array([[_falls_apart(table[:m, :m]) for table in tables[:2]] for tables in n_all])
    # All methods see the same battles: those with a score.
    apart = np.concatenate([apart, np.repeat(apart[:, 1:], max(n_maps - 2, 0), axis=1)], axis=1)
    return [
        Folds(
            n_all[s, :, : c.n_models, : c.n_models],
            beta[s, : c.n_models],
            status[s, : c.n_models],
            anchors[s, :, : c.n_models, : c.n_models],
            theta[s, :, : c.n_models],
            converged[s, :, : c.n_models],
            apart[s, :, : c.n_models],
        )
        for s, c in enumerate(wanted)
    ]


def _stacked(sets: Sequence[Cells], ties: Ties) -> tuple[Judged, int]:
    """The sets on arrays of one shape, and its number of pairs; cells of count 0 fill up."""
    size = padded_size(max(c.n_models for c in sets))
    n_pairs = size * (size - 1) // 2 + 1  # the last, an empty one, for models that never met
    most = max(len(c.battles) for c in sets) + 1
    n_cells = _rounded(most, _CELLS[0] if most <= _CELLS[0] else _CELLS[1])
    n_labels = _rounded(max(len(c.labels) for c in sets), _FEWEST_LABELS)
    width = 1 << max(max(len(mine) for c in sets for mine in c.own) - 1, _FEWEST_OWN - 1).bit_length()
    rows = []
    for c in sets:
        difference, _, human = c.labels.T
        fitting = in_likelihood(human, ties).astype(float)
        position = np.full((size, size), n_pairs - 1, np.int32)
        first, second = c.pairs
        position[first, second] = position[second, first] = np.arange(len(first))
        own = np.full((size, width), n_cells, np.int32)
        for row, mine in zip(own, c.own, strict=False):
            row[: len(mine)] = mine
        rows.append(
            (
                _padded(c.pair, n_cells, n_pairs - 1).astype(np.int32),
                _padded(c.label, n_cells, 0).astype(np.int32),
                _padded(c.battles, n_cells, 0).astype(float),
                _padded(difference, n_labels, 0),
                _padded(fitting, n_labels, 0),
                _padded(fitting * np.nan_to_num(human), n_labels, 0),
                position,
                own,
            )
        )
    return Judged(*(np.stack(field) for field in zip(*rows, strict=True))), n_pairs  # type: ignore[arg-type]


def _put(into: HeldOut, lanes: NDArray[np.intp], values: HeldOut) -> None:
    for whole, part in zip(into, values, strict=True):
        np.asarray(whole)[lanes] = part


def _finish(held: HeldOut, n: Float, active: Bool, ridge: float) -> None:
    """Newton's method, in place, for folds whose anchors the chord steps left unconverged."""
    failed = np.argwhere(np.asarray(held.anchor_status) != Status.CONVERGED)
    size = n.shape[-1]
    terms = Terms.of(ridge, TOLERANCE_LOGIT, _NEWTON_STEPS)
    limit, least = max(1, 2**25 // size**2), max(1, 2**14 // size**2)
    for start in range(0, len(failed), limit):
        part = failed[start : start + limit]
        lane, fold = part[np.minimum(np.arange(_rounded(len(part), least)), len(part) - 1)].T
        kept = (np.arange(size) != fold[:, None]) & active[lane]
        rest = np.where(kept[:, :, None] & kept[:, None, :], n[lane], 0.0)
        score = np.where(kept, np.asarray(held.anchor_score)[lane, fold], 0.0)
        end = batch.fit(rest, score, kept & rest.any(2), terms)
        own = batch.rate(
            end.theta,
            n[lane, fold],
            np.asarray(held.score)[lane, fold],
            np.zeros(len(lane)),
            terms,
        )
        for into, values in (
            (held.anchors, end.theta),
            (held.anchor_status, end.status),
            (held.theta, own.theta),
            (held.status, own.status),
        ):
            np.asarray(into)[lane, fold] = np.asarray(values)


def _falls_apart(n: Float) -> Bool:
    """(M,) folds in which the models left do not all meet, directly or through others.

    A model that met nobody but the held-out one is not counted, unless such models hold more than a tenth of the
    held-out model's battles: the ridge alone places them.
    """
    m = len(n)
    edge = (n > 0).astype(np.float32)
    left = ~np.eye(m, dtype=bool) & (edge.sum(1) - edge > 0)
    alone = np.where(left, 0.0, n).sum(1) > _MOST_ALONE * n.sum(1)
    reached = np.zeros((m, m), np.float32)
    reached[np.arange(m), left.argmax(1)] = left.any(1)
    while True:
        grown = (((reached @ edge) > 0) | (reached > 0)) & left
        if np.array_equal(grown, reached > 0):
            return np.asarray(~(grown | ~left).all(1) | alone)
        reached = grown.astype(np.float32)


def _padded(x: NDArray[Any], size: int, filler: float) -> NDArray[Any]:
    """``x`` with its last axis filled up to ``size``."""
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])], constant_values=filler)


def _rounded(size: int, least: int = 1) -> int:
    """``size`` rounded up by at most a quarter, to a power of two if that is 8 or less."""
    step = 1 << max(size - 1, 0).bit_length() if size <= 8 else 1 << (size.bit_length() - 3)
    return max(-(-size // step) * step, least)


def _chunk(lanes: int, words: int) -> int:
    """Lanes that run together, each of so many ``words``."""
    return int(np.clip(_WORDS_PER_CHUNK // words, 1, lanes))
