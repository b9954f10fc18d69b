"""Boards of a model of one's own: what it reads of the battles, what these determine, and the fitted parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells, count_by
from jaxeval.engine.statistic import Statistic
from jaxeval.errors import DataError
from jaxeval.execution.precision import double_precision, one_blas_thread
from jaxeval.execution.shapes import padded_columns, padded_few, padded_size
from jaxeval.kernels.batch.choice_models import LaneModel, choice_information, choice_slopes, fit_choices
from jaxeval.kernels.kinds import Array
from jaxeval.lazy_names import jax, jnp
from jaxeval.ratings.boards import fit_terms, inverse_within
from jaxeval.ratings.vote_groups import VoteGroups, score_squares
from jaxeval.resampling.units import pad
from jaxeval.wording import named

#: What a parameter has a number for, in place of a column: each model.
MODEL = "model"
# Of the scaled information: a direction with less is one about which the battles say nothing.
_UNSEEN = 1e-9
# Slopes of so many battles are computed at once.
_BLOCK = 1024


@dataclass(frozen=True, eq=False)
class OccasionCells(Cells):
    """Equal battles of one occasion are a cell. An occasion is a side A, a side B, and what is known of them."""

    values: Float  # (D, P) of each occasion


@dataclass(frozen=True, eq=False, repr=False)
class OccasionRows(Battles):
    """Battles with what a model reads of each."""

    values: dict[str, Float] = field(default_factory=dict, repr=False)  # (R,) of each column that is read
    levels: dict[str, pd.Index] = field(default_factory=dict, repr=False)  # what codes stand for

    def compress(self, rows: slice | NDArray[np.intp]) -> tuple[OccasionCells, NDArray[np.intp]]:
        """Return cells of some rows, and the cell of each."""
        target = self.target[rows]
        weight = np.ones(len(target)) if self.weight is None else self.weight[rows]
        known: list[NDArray[Any]] = [self.model_a[rows], self.model_b[rows]]
        known += [x[rows] for x in self.values.values()]
        keys, cell_of_row = np.unique(np.stack([*known, target, weight]), axis=1, return_inverse=True)
        occasions, pair = np.unique(keys[:-2], axis=1, return_inverse=True)
        first, second = occasions[:2].astype(np.int32)
        count = count_by(cell_of_row.reshape(-1), None if self.count is None else self.count[rows], keys.shape[1])
        cells = OccasionCells(first, second, pair.reshape(-1), keys[-2], keys[-1], count, occasions[2:])
        return cells, cell_of_row.reshape(-1)


@dataclass(frozen=True)
class LaneFunction(LaneModel):
    """The model function of one set of parameters in a row: static, equal to any other of the same code and sizes."""

    function: Statistic
    sizes: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]

    def __call__(self, phi: Array, data: tuple[Array, ...]) -> Array:
        """Return (K, C) log-probabilities."""
        ends = np.cumsum([size for _, size in self.sizes])[:-1]
        parameters = dict(zip([name for name, _ in self.sizes], jnp.split(phi, ends), strict=True))
        battle = dict(zip(("model_a", "model_b", *self.columns), data, strict=True))
        log_p = self.function.function(parameters, battle)
        return jnp.stack([jnp.broadcast_to(x, data[0].shape) for x in log_p]).astype(phi.dtype)


class ChoiceBoard(NamedTuple):
    """One fitted slice; P' is the number of parameters with padding."""

    lane: LaneFunction
    data: tuple[Any, ...]  # (C',) each
    place: Any  # (P,) of the parameters among those with padding
    names: pd.MultiIndex  # (P,)
    cells: OccasionCells
    n_choices: int  # K
    moves: Bool  # (P',) parameters about which the battles say something
    gauge: Float  # (U, P') sums that stay as they are
    ridge: Float  # (P',)
    phi: Float  # (P',)
    inverse: Float  # (P', P')
    status: int
    n_steps: int
    log_likelihood: float

    def unpadded(self, values: Float) -> Float:
        """Return (..., P) ``values`` (..., P') without padding, NaN where the battles say nothing."""
        return np.where(self.moves, values, np.nan)[..., self.place]

    def shares(self) -> Float:
        """Return (K, cells) what a battle of each cell adds to each choice."""
        return _shares(self.cells.target, self.n_choices) * self.cells.weight

    def covariance(self, drawn: VoteGroups) -> Float:
        """Return (P, P) sandwich covariance."""
        slopes = scipy.sparse.csr_array(scipy.sparse.vstack(self._scores()))
        middle = score_squares(slopes, self.cells.count, drawn)
        covariance = self.inverse @ middle @ self.inverse
        there = self.moves[:, None] & self.moves
        return np.asarray(np.where(there, covariance, np.nan)[np.ix_(self.place, self.place)])

    def _scores(self) -> list[scipy.sparse.csr_array]:
        """Return (cells, P') derivatives of one battle's log-likelihood, in blocks of cells."""
        occasion, shares, blocks = self.cells.pair, self.shares(), []
        for first in range(0, len(occasion), _BLOCK):
            block = slice(first, first + _BLOCK)
            occasions = occasion[block]
            data = tuple(np.pad(x[occasions], (0, _BLOCK - len(occasions))) for x in self.data)
            with double_precision():
                _, slopes = jax.device_get(choice_slopes(self.lane, data, self.phi))
            score = np.einsum("kc,kcp->cp", shares[:, block], slopes[:, : len(occasions)]) * self.moves
            blocks.append(scipy.sparse.csr_array(score))
        return blocks


def _shares(target: Float, n_choices: int) -> Float:
    """Return (K, cells) what a battle with each target says of each choice."""
    if n_choices == 2:
        return np.stack([target, 1 - target])
    return np.stack([target == 1, target == 0.5, target == 0]).astype(float)


def fit_choice_board(
    function: Statistic, parameters: Mapping[str, str | int], begin: Mapping[str, float], models: pd.Index,
    cells: OccasionCells, rows: OccasionRows, ridge: float,
) -> ChoiceBoard:  # fmt: skip
    """Fit one slice, by what each parameter has a number for and where the search for it begins."""
    levels = {name: _levels(of, models, rows) for name, of in parameters.items()}
    sizes = tuple((name, _padded(parameters[name], len(index))) for name, index in levels.items())
    start = np.concatenate([np.full(size, float(begin.get(name, 0.0))) for name, size in sizes])
    ends = np.cumsum([0, *(size for _, size in sizes)])
    place = np.concatenate([end + np.arange(len(index)) for end, index in zip(ends[:-1], levels.values(), strict=True)])
    names = pd.MultiIndex.from_tuples(
        [(name, level) for name, index in levels.items() for level in index], names=["parameter", "name"]
    )
    lane = LaneFunction(function, sizes, tuple(rows.values))
    n = padded_columns(len(cells.first) + 1)
    codes = [
        x.astype(np.int32) if name in rows.levels else x for name, x in zip(rows.values, cells.values, strict=True)
    ]
    data = tuple(pad(x, (n,)) for x in (cells.first, cells.second, *codes))
    there = np.zeros(len(start), bool)
    there[place] = True
    at = start + np.random.default_rng(0).normal(scale=0.5, size=len(start))  # where no direction is hidden by chance
    with double_precision():
        log_p, slopes = (np.asarray(x)[:, : len(cells.first)] for x in jax.device_get(choice_slopes(lane, data, at)))
    _check_probabilities(log_p, function.name)
    k = len(log_p)
    if k == 3 and not np.isin(cells.target, (0.0, 0.5, 1.0)).all():
        raise DataError("a model of wins, ties and losses needs such results: some targets are neither 0, 1/2 nor 1")
    of_cell = _shares(cells.target, k) * cells.weight * cells.count
    counts = np.stack([np.bincount(cells.pair, x, n) for x in of_cell])
    root = slopes * np.sqrt(np.exp(log_p) * counts[:, : len(cells.first)].sum(0))[..., None]
    root = root.reshape(-1, len(start))
    information = root.T @ root
    all_ridge = np.full(len(start), ridge)
    if ridge > 0:
        moves, gauge = there, np.zeros((1, len(start)))
    else:
        moves = there & (np.diag(information) > 0)
        gauge = _gauge(information, moves, sizes, ends)
        _check_determined(information, moves, gauge, names, place)
    with double_precision(), one_blas_thread():
        terms = fit_terms(all_ridge)
        end = jax.device_get(fit_choices(lane, data, counts, np.where(moves, start, 0.0), moves, gauge, terms))
        observed = np.asarray(choice_information(lane, data, counts, end.theta, all_ridge))
        at_end = np.asarray(jax.device_get(choice_slopes(lane, data, end.theta)[0]))
    return ChoiceBoard(
        lane=lane, data=data, place=place, names=names, cells=cells, n_choices=k, moves=moves, gauge=gauge,
        ridge=all_ridge, phi=np.asarray(end.theta), inverse=inverse_within(observed, moves, gauge),
        status=int(end.status), n_steps=int(end.n_steps),
        log_likelihood=float(np.sum(np.where(counts > 0, counts * at_end, 0.0))),
    )  # fmt: skip


def _levels(of: str | int, models: pd.Index, rows: OccasionRows) -> pd.Index:
    return models if of == MODEL else rows.levels[of] if isinstance(of, str) else pd.RangeIndex(of)


def _padded(of: str | int, n: int) -> int:
    """Return numbers of a parameter with padding, so that similar slices share programs."""
    return n if isinstance(of, int) else padded_size(n) if of == MODEL else max(padded_few(n), 4)


def _check_probabilities(log_p: Float, name: str) -> None:
    if len(log_p) not in (2, 3):
        raise ValueError(
            f"{name} must return two log-probabilities (a win of side A, a win of side B) or three (with a tie between "
            f"them), got {len(log_p)}"
        )
    total = np.exp(log_p).sum(0)
    if not np.allclose(total, 1, atol=1e-6):
        worst = total[np.argmax(np.abs(np.nan_to_num(total, nan=np.inf) - 1))]
        raise ValueError(
            f"the probabilities of {name} must add up to 1, and add up to {worst:.6g}: return logarithms, of all "
            "results of a battle"
        )


def _gauge(information: Float, moves: Bool, sizes: Sequence[tuple[str, int]], ends: Any) -> Float:
    """Return (U, P') a vector for each parameter whose common shift the battles do not see."""
    shifts = []
    for k, _ in enumerate(sizes):
        shift = np.zeros(len(moves))
        shift[ends[k] : ends[k + 1]] = 1.0
        shift *= moves
        if shift.any() and shift @ information @ shift <= _UNSEEN * (shift * np.diag(information)).sum():
            shifts.append(shift)
    return np.stack(shifts) if shifts else np.zeros((1, len(moves)))


def _check_determined(information: Float, moves: Bool, gauge: Float, names: pd.Index, place: Any) -> None:
    """Raise an error that names the parameters about which the battles say too little."""
    moved = np.flatnonzero(moves)
    root = np.sqrt(np.diag(information)[moved])
    fixed = gauge[:, moved] * root
    fixed /= np.maximum(np.linalg.norm(fixed, axis=1, keepdims=True), 1e-300)
    scaled = information[np.ix_(moved, moved)] / np.outer(root, root) + fixed.T @ fixed
    values, vectors = np.linalg.eigh(scaled)
    open_ = vectors[:, values < _UNSEEN]
    if open_.size:
        concerned = moved[np.abs(open_).max(1) > 0.05]
        which = [" ".join(map(str, names[np.flatnonzero(place == p)[0]])) for p in concerned]
        raise DataError(
            f"the battles do not determine {named(which)}: other values give every battle the same probabilities. "
            "Leave parameters out, write the model so that one of them is fixed, or take a ridge > 0"
        )
