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

from jaxeval.execution.blas import one_blas_thread
from jaxeval.execution.lanes import device_mesh
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import batch
from jaxeval.kernels.held_out import FullFit, HeldOut, Judged
from jaxeval.kernels.solve import Status, Terms
from jaxeval.ratings.boards import padded_size
from jaxeval.softelo.judged_cells import JudgedCells
from jaxeval.softelo.target_maps import targets
from jaxeval.softelo.temperature import FEWEST_BATTLES, TOLERANCE_LOGIT, Ties, in_likelihood
from jaxeval.softelo.temperature import MAX_STEPS as _TEMPERATURE_STEPS

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Bool = NDArray[np.bool_]

_CHORD_STEPS, _NEWTON_STEPS = 40, 200
_MOST_ALONE = 0.1
# Small boards share their compiled code: arrays have room for so many cells at least, whichever fits, and so on.
_CELLS, _FEWEST_LABELS, _FEWEST_OWN = (1024, 4096), 512, 512
# Numbers that the lanes of a chunk may hold at once: the caches of a CPU. And those of a call.
_WORDS_PER_CHUNK, _WORDS_PER_CALL = 4_000_000, 2**27


class Folds(NamedTuple):
    """The M folds of one set under K target maps: the human labels, then the methods."""

    n: Float  # (K, M, M) battles
    beta: Float  # (M,) temperatures, logits per point of score difference
    beta_status: NDArray[np.int8]  # (M,) of `kernels.temperature`
    anchors: Float  # (K, M, M) log-strengths of the others by fold, logits
    theta: Float  # (K, M) log-strength of the fold's model; NaN where the battles, or the temperature, give none
    converged: Bool  # (K, M)
    apart: Bool  # (K, M) the others do not all meet, directly or through others, but for a few


def hold_out(
    sets: Sequence[JudgedCells], methods: Sequence[str], ridge: float, ties: Ties = "drop", beta: Float | None = None
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


def _hold_out(
    sets: Sequence[JudgedCells], methods: Sequence[str], ridge: float, ties: Ties, given: Float | None
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


def _stacked(sets: Sequence[JudgedCells], ties: Ties) -> tuple[Judged, int]:
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
