"""Leave-one-model-out fits of judged battles (Algorithm 1 of arXiv:2606.13221): every model of several sets at once.

A set is what one judge scored, or a part of it: a budget, a slice. For each model of a set the temperature and the
strengths of all others come from the battles without it, then its own strength from its battles, the others fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, as_leaf
from jaxeval.execution.lanes import Call, LaneRun, Lanes, Task, device_mesh
from jaxeval.execution.precision import double_precision, one_blas_thread
from jaxeval.execution.shapes import FOLDS, held_numbers, padded_cells, padded_few, padded_size
from jaxeval.kernels import dense_solve
from jaxeval.kernels.batch.folds import FoldProblem, FullFit, HeldOut, JudgedSet, Targets, fold_temperatures
from jaxeval.kernels.batch.folds import hold_out as hold_out_lanes
from jaxeval.kernels.links import Link
from jaxeval.kernels.pair_tables import PairTable
from jaxeval.kernels.solve import Status, Terms
from jaxeval.lazy_names import jax
from jaxeval.resampling.units import pad
from jaxeval.softelo.temperature import FEWEST_BATTLES, TOLERANCE_LOGIT, JudgedCells, Ties, in_likelihood, targets
from jaxeval.softelo.temperature import MAX_STEPS as _TEMPERATURE_STEPS

_CHORD_STEPS, _NEWTON_STEPS = 40, 200
_START_LOGIT = 1e-9  # accuracy of the fits of all battles, from which the folds start
_MOST_ALONE = 0.1
_FEWEST_CELLS = 1024
_WORDS_HELD = 2**27  # numbers of the sets that are stacked at a time
_BYTES_PER_WORD = 24  # of a lane: the number, and what is made of it on the way


class Folds(NamedTuple):
    """The M folds of one set under K target maps: the human labels, then the methods."""

    n: Float  # (K, M, M) battles
    beta: Float  # (M,) temperatures, logits per point of score difference
    beta_status: NDArray[np.int8]  # (M,) a `Status`
    anchors: Float  # (K, M, M) log-strengths of the others by fold, logits
    theta: Float  # (K, M) log-strength of the fold's model; NaN where the battles, or the temperature, give none
    converged: Bool  # (K, M)
    apart: Bool  # (K, M) the others do not all meet, directly or through others; a few exceptions do not count


def hold_out(
    sets: Sequence[JudgedCells], methods: Sequence[str], ridge: float, ties: Ties = "drop", beta: Float | None = None,
    run: LaneRun | None = None, section: str = "",
) -> list[Folds]:  # fmt: skip
    """Return the folds of every set, by human labels and by the ``methods``; each fold of a target map is a lane.

    The ``ridge`` > 0 is the coefficient of the squared norm in both steps, and ``ties`` says how human ties enter the
    temperature. A ``beta`` (M,) of each fold, NaN where there is none, takes the place of the set's own temperatures.
    ``section`` tells this call from others in the run's checkpoint.
    """
    folds_of: dict[int, Folds] = {}
    # Sets within a factor of four share their shapes; finer kinds would compile more often.
    kinds = [(padded_size(c.n_models), max(len(c.battles), _FEWEST_CELLS - 1).bit_length() // 2) for c in sets]
    for kind in dict.fromkeys(kinds):
        members = [s for s, k in enumerate(kinds) if k == kind]
        words = (1 + len(methods)) * 3 * kind[0] ** 2 + 4 ** (kind[1] + 1)
        most = max(_WORDS_HELD // words, 1)
        for part in (members[start : start + most] for start in range(0, len(members), most)):
            stack = _Stack([sets[s] for s in part], methods, ties, run or LaneRun(), section=f"{section}{part[0]}")
            folds_of |= zip(part, stack.folds(ridge, beta), strict=True)
    return [folds_of[s] for s in range(len(sets))]


def n_lanes(sets: Sequence[JudgedCells], methods: Sequence[str]) -> int:
    """Return lanes that `hold_out` runs: the temperatures, and the folds of every target map."""
    return sum(c.n_models * (len(methods) + 2) + 1 for c in sets)


def above_human(folds: Folds, human: Folds) -> Float:
    """Return (K - 1, M) how far the strengths of every fold and method lie above the ``human`` ones on average, logits.

    Each fold has mean zero over its own anchors. Where some anchors have no human battles, or where a part of the data
    lacks some anchors, these zeros differ. The offset is the mean difference over the anchors that both have. It is 0
    where all anchors are the same.
    """
    m = folds.n.shape[1]
    has_votes, is_judged = human.n[0].sum(1) > 0, folds.n[1:].sum(2) > 0
    common = has_votes & is_judged[:, None, :] & ~np.eye(m, dtype=bool)
    difference = np.where(common, folds.anchors[1:] - human.anchors[0], 0.0)
    return np.asarray(difference.sum(2) / np.maximum(common.sum(2), 1))


class _Stack:
    """Sets on arrays of one shape, and the tasks that fit their folds."""

    def __init__(
        self, sets: Sequence[JudgedCells], methods: Sequence[str], ties: Ties, run: LaneRun, section: str
    ) -> None:
        """Stack the ``sets``; ``section`` tells them from others in the run's checkpoint."""
        self.n_models = np.array([c.n_models for c in sets])
        # Sizes are rounded up, so that similar boards share compiled code; the number of sets by copies of the last.
        self.sets = [*sets, *[sets[-1]] * (padded_few(len(sets)) - len(sets))]
        self.maps, self.run, self.section, self.mesh = ("human", *methods), run, section, device_mesh()
        self.judged = _stacked(self.sets, ties)
        self.size, self.n_labels = self.judged.position.shape[1], self.judged.level.shape[1]

    def folds(self, ridge: float, common_beta: Float | None) -> list[Folds]:
        """Return the folds of every set; ``common_beta`` takes the place of the set's own temperatures."""
        with double_precision(), one_blas_thread():
            beta, status = self._temperatures()
            pooled = np.where(np.isfinite(beta[:, -1]), beta[:, -1], 0.0)
            beta, status = beta[:, :-1], status[:, :-1]
            if common_beta is not None:
                beta = np.tile(pad(common_beta, (self.size,), np.nan), (len(beta), 1))
                status = np.full(beta.shape, Status.CONVERGED, np.int8)
            usable = np.isfinite(beta) & (status == Status.CONVERGED)
            n, anchors, theta, converged = self._fits(ridge, pooled, np.where(usable, beta, 0.0))
        is_soft = np.array(self.maps) == "soft"
        theta[(is_soft[:, None] & ~usable[:, None]) | (n.sum(3) == 0)] = np.nan
        result = []
        for s, m in enumerate(self.n_models):
            # All methods see the same battles: those with a score.
            apart = [_falls_apart(n[s, k, :m, :m]) for k in range(min(len(self.maps), 2))]
            result.append(
                Folds(
                    n=n[s, :, :m, :m],
                    beta=beta[s, :m],
                    beta_status=status[s, :m],
                    anchors=anchors[s, :, :m, :m],
                    theta=theta[s, :, :m],
                    converged=converged[s, :, :m],
                    apart=np.stack([apart[min(k, 1)] for k in range(len(self.maps))]),
                )
            )
        return result

    def _temperatures(self) -> tuple[Float, NDArray[np.int8]]:
        """Return (S, M + 1) temperatures without each model, the last one of all battles, and how their fits ended."""
        fold = np.arange(self.size + 1)
        at = np.nonzero((fold < self.n_models[:, None]) | (fold == self.size))
        terms = Terms.of(0.0, TOLERANCE_LOGIT, _TEMPERATURE_STEPS)
        call = partial(fold_temperatures, self.judged, self.mesh, float(FEWEST_BATTLES), terms)
        words = 4 * self.n_labels + self.judged.of_model.shape[-1]
        results = self.run.results(
            self._task(call, words, self.judged), Lanes(slices=at[0], numbers=at[1]), f"temperatures-{self.section}"
        )
        beta = np.full((len(self.sets), len(fold)), np.nan)
        status = np.full(beta.shape, Status.TOO_FEW, np.int8)
        beta[at], status[at] = results
        return beta, status

    def _fits(self, ridge: float, pooled: Float, beta: Float) -> tuple[Float, Float, Float, Bool]:
        """Return (S, K, M, M) battles and anchors, (S, K, M) strengths and whether they converged, of K target maps."""
        shape = len(self.sets), len(self.maps), self.size
        n, wins = np.zeros((2, *shape, self.size))
        for of_set, (cells, pool) in enumerate(zip(self.sets, pooled, strict=True)):
            difference, hard, human = cells.labels.T
            target = [human, *(targets(name, difference, hard, pool) for name in self.maps[1:])]
            n[of_set], wins[of_set] = _tables(cells, np.stack(target), self.size)
        flat = (-1, self.size, self.size)
        full = full_fits(n.reshape(flat), wins.reshape(flat), ridge)
        maps = Targets(
            is_soft=as_leaf(np.tile(np.array(self.maps) == "soft", shape[0]), np.bool_),
            wins=as_leaf(wins.reshape(flat), np.float64),
            of_set=as_leaf(np.repeat(np.arange(shape[0]), shape[1]), np.int32),
        )
        problem = jax.device_put(FoldProblem(full, maps, self.judged, as_leaf(beta, np.float64)))
        lanes = np.broadcast_to(np.arange(self.size), (len(self.n_models), *shape[1:]))
        s, k, fold = at = np.nonzero(lanes < self.n_models[:, None, None])
        held = self._held_out(problem, Lanes(s * shape[1] + k, fold), ridge)
        anchors, theta, converged = np.zeros((*shape, self.size)), np.full(shape, np.nan), np.zeros(shape, bool)
        anchors[at], theta[at], converged[at] = held.anchors, held.theta, held.status == Status.CONVERGED
        return n, anchors, theta, converged

    def _held_out(self, problem: FoldProblem, lanes: Lanes, ridge: float) -> HeldOut:
        """Return the folds ``lanes`` by chord steps, and those that do not converge so by Newton's method."""
        call = partial(hold_out_lanes, problem, self.mesh)
        table = held_numbers((self.size, self.size))
        words = max(table, self.judged.pair.shape[1])

        def task(newton: bool) -> Task:
            terms = Terms.of(ridge, TOLERANCE_LOGIT, _NEWTON_STEPS if newton else _CHORD_STEPS)
            of_lane = words + 4 * table if newton else words
            return self._task(partial(call, terms, newton=newton), of_lane, problem)

        fits: HeldOut = self.run.results(task(False), lanes, f"folds-{self.section}-chord")
        failed = np.flatnonzero(fits.status != Status.CONVERGED)
        again = replace(self.run, advance=lambda n: None)  # the progress bar has counted them
        again.run(task(True), lanes, failed, fits, f"folds-{self.section}-newton")
        return fits

    def _task(self, call: Call, words: int, held: Any) -> Task:
        # The lanes of a slice are no more than the models.
        budget = FOLDS._replace(cpu=FOLDS.cpu._replace(lanes=min(FOLDS.cpu.lanes, self.size)))
        fixed_bytes = 2 * sum(x.nbytes for x in jax.tree.leaves(held))
        return Task(call, budget, words, lane_bytes=_BYTES_PER_WORD * words, fixed_bytes=fixed_bytes)


def _tables(cells: JudgedCells, target: Float, size: int) -> tuple[Float, Float]:
    """Return (K, size, size) battles, and wins of row against column, of (K, U) targets by label, NaN without one."""
    known = ~np.isnan(target)
    of_battles = np.stack([known.astype(float), np.where(known, target, 0.0)])  # and what the first model takes
    at = cells.first * size + cells.second
    each = [
        np.bincount(at, cells.battles * of_label[cells.label], size**2).reshape(size, size)
        for of_label in of_battles.reshape(-1, target.shape[1])
    ]
    n, first = np.reshape(each, (2, len(target), size, size)).astype(float)
    return n + n.swapaxes(1, 2), first + (n - first).swapaxes(1, 2)


def full_fits(n: Float, wins: Float, ridge: float) -> FullFit:
    """Give the fits of all battles that the folds start from: (L, M, M) battles and wins of the row against the column.

    NumPy solves these few small systems in less time than a program takes to compile.
    """
    table, active = PairTable(as_leaf(n, np.float64), as_leaf(wins.sum(2), np.float64)), as_leaf(n.any(2), np.bool_)
    terms = Terms.of(ridge, _START_LOGIT, _NEWTON_STEPS)
    with np.errstate(all="ignore"):
        theta = dense_solve.newton(Link.LOGIT, table, active.T, terms).theta.T
    information = dense_solve.information(Link.LOGIT, theta, table, terms.ridge)
    return FullFit(table.n, theta, as_leaf(np.linalg.inv(information), np.float64), active)


def _stacked(sets: Sequence[JudgedCells], ties: Ties) -> JudgedSet:
    """Return the sets on arrays of one shape; cells of count 0 fill up."""
    size = padded_size(max(c.n_models for c in sets))
    nothing = size * (size - 1) // 2  # the last pair, an empty one, is for models that never met
    n_cells = padded_cells(max(len(c.battles) for c in sets) + 1, _FEWEST_CELLS)  # the last cell is empty, too
    n_labels = padded_cells(max(len(c.labels) for c in sets))
    width = padded_cells(max(len(mine) for c in sets for mine in c.own))
    each = []
    for c in sets:
        difference, _, human = c.labels.T
        fitting = in_likelihood(human, ties).astype(float)
        position = np.full((size, size), nothing, np.int32)
        first, second = c.pairs
        position[first, second] = position[second, first] = np.arange(len(first))
        cells_of_model = np.full((size + 1, width), n_cells - 1, np.int32)
        for row, mine in zip(cells_of_model, c.own, strict=False):
            row[: len(mine)] = mine
        each.append(
            {
                "pair": pad(c.pair, (n_cells,), nothing).astype(np.int32),
                "label": pad(c.label, (n_cells,)).astype(np.int32),
                "battles": pad(c.battles, (n_cells,)).astype(float),
                "total": np.bincount(c.label, c.battles, n_labels),
                "level": pad(difference, (n_labels,)),
                "fitting": pad(fitting, (n_labels,)),
                "wins": pad(fitting * np.nan_to_num(human), (n_labels,)),
                "position": position,
                "of_model": cells_of_model,
            }
        )
    with double_precision():
        return JudgedSet(**{name: jax.device_put(np.stack([one[name] for one in each])) for name in JudgedSet._fields})


def _falls_apart(n: Float) -> Bool:
    """Return (M,) folds in which the models left do not all meet, directly or through others.

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
