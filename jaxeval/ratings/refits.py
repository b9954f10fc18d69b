"""Refit resamples: what all kinds of boards have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxeval.arrays import Bool, Float, as_leaf, map_tree
from jaxeval.checks import check_room
from jaxeval.data.battles import Battles
from jaxeval.execution.host import HostTask, is_for_host
from jaxeval.execution.lanes import LaneRun, Lanes, LaneSolver, Task, device_mesh
from jaxeval.execution.precision import in_threads, on_device, one_blas_thread
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.shapes import REFITS, Budget
from jaxeval.kernels.batch.refits import RefitForm, RefitProblem, Refits, Solver
from jaxeval.kernels.resample import DrawScheme
from jaxeval.kernels.solve import Status, Terms
from jaxeval.lazy_names import jax
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.slices import Slices
from jaxeval.resampling.units import UnitDraw
from jaxeval.statistics.draws import Draws

# Refits stop when the error predicted to remain is under this, logits (1e-8 is 2e-6 Elo).
TOLERANCE_LOGIT = {"float64": 1e-8, "float32": 2e-5}
#: The most bytes that a model takes in a resample's results: strengths and standing, the ratings made of them, and the
#: arrays on the way there.
RESULT_BYTES = 30
#: The largest weight of a judgment by the least. From this value on, a resample may lack what joins groups in the full
#: data, and few inner steps would not see them drift: from 1e7 on such claims were wrong in simulations.
_MOST_UNEQUAL = 1e4
# All slices have results as wide as the widest one. Nothing is copied if at least this share of them belongs to models.
_MOSTLY_USED = 0.75
Fit = TypeVar("Fit")
Resampled = TypeVar("Resampled")


class Refitted(NamedTuple):
    """B refits of one slice on the host; M' is the number of models with padding."""

    parameters: Float  # (B, P): M' log-strengths; with covariates or a tie model their coefficients, then t
    status: NDArray[np.int8]  # a `Status`
    n_steps: NDArray[np.int32]
    grad_norm: Float
    standing: NDArray[np.int8]  # (B, M')
    solver: NDArray[np.int8]  # a `Solver`: the one that came last

    @classmethod
    def without_steps(cls, parameters: Float, n_models: int, status: Status = Status.CONVERGED) -> Refitted:
        """Return draws of ``parameters`` (B, P) that no solver has made, in which no model is separated."""
        b = len(parameters)
        of_lanes = np.full(b, status, np.int8), np.zeros(b, np.int32), np.zeros(b), np.zeros((b, n_models), np.int8)
        return cls(parameters, *of_lanes, np.full(b, Solver.CHORD, np.int8))

    @property
    def theta(self) -> Float:
        """(B, M') log-strengths."""
        return self.parameters[..., : self.standing.shape[-1]]

    @property
    def converged(self) -> NDArray[np.bool_]:
        """(B,)."""
        return self.status == Status.CONVERGED


class Stage(NamedTuple):
    """How one solver refits lanes: its program, and what a lane of it takes."""

    solver: Solver
    max_steps: int
    budget: Budget
    words: int  # numbers that a lane works on
    lane_bytes: int  # that a lane takes at most
    takes: Bool | None = None  # (S,) the slices whose lanes it takes; None for all
    program: Callable[..., Refits] | None = None  # with the next two, where they are not those of all ways
    problem: Any = None
    form: Any = None


@dataclass(frozen=True, eq=False)
class BoardRefits:
    """The refits of boards, one a slice, solved in several ways, the fastest first.

    ``form`` holds the static choices of the ``program``, such as the ``solver``, which each way has its own of.
    """

    options: BootstrapOptions
    program: Callable[..., Refits]
    problem: Any  # what is drawn, and the full-data fits
    form: Any
    ways: Sequence[Stage]
    n_parameters: int  # of a lane, for the memory that results take
    n_slices: int = 1
    on_board: Callable[[Refitted], Refitted] = lambda refitted: refitted  # models as on the board, and the final status
    ridge: ArrayLike | None = None  # one for each parameter; None for that of the options
    stricter: float = 1.0  # what the tolerance is divided by
    fixed_bytes: int = 0  # taken besides the problem and all results
    # What one of the ways, chord steps or Newton's, is on the host for boards of so many models; None where it is none.
    on_host: Callable[[BoardRefits, Stage, Sequence[int]], HostTask] | None = None

    @cached_property
    def placed(self) -> Any:
        """The ``problem`` on the device."""
        return on_device(self.problem)

    def solvers(self, n_models: Sequence[int], run: LaneRun) -> list[LaneSolver]:
        """Return the ways as work for ``run``, in which the slices have so many models."""
        every, on_host, ways = np.ones(self.n_slices, bool), self.on_host, self.ways
        if not (run.is_plain and is_for_host(self.options.n_resamples * sum(m**2 for m in n_models))):
            on_host = None
        if on_host is not None:
            ways = [way for way in ways if way.solver in (Solver.CHORD, Solver.NEWTON)]
        return [
            LaneSolver(
                way.solver,
                way.solver.name.lower().replace("_", "-"),
                self._task(way) if on_host is None else on_host(self, way, n_models),
                every if way.takes is None else way.takes,
            )
            for way in ways
        ]

    def terms(self, way: Stage) -> Terms:
        """Return what one of the ways maximises, and when it ends."""
        kind = np.dtype(self.options.dtype).type
        ridge = np.asarray(self.options.ridge if self.ridge is None else self.ridge, kind)
        return Terms.of(ridge, kind(TOLERANCE_LOGIT[self.options.dtype] / self.stricter), way.max_steps)

    def _task(self, way: Stage) -> Task:
        problem, form = (self.placed, self.form) if way.problem is None else (on_device(way.problem), way.form)
        program, seed = way.program or self.program, np.uint64(self.options.seed)
        call = partial(program, problem, form._replace(solver=way.solver), device_mesh(), seed, self.terms(way))
        results = self.n_slices * self.options.n_resamples * self.n_parameters * RESULT_BYTES
        held = results + 2 * sum(x.nbytes for x in jax.tree.leaves(self.placed))  # here and on the device
        return Task(call, way.budget, way.words, way.lane_bytes, held + self.fixed_bytes)


def refit_problem(
    draw: UnitDraw, data: Any, start: Float, main: Float | None = None, inverse: Float | None = None,
    diagonal: Float | None = None, moves: Bool | None = None,
) -> RefitProblem:  # fmt: skip
    """Return what is drawn and refitted of one slice; NumPy arrays."""
    further = [None if x is None else as_leaf(x, np.float64) for x in (main, inverse, diagonal)]
    further.append(None if moves is None else as_leaf(moves, np.bool_))
    stream, begin = as_leaf(draw.stream, np.uint64), as_leaf(start, np.float64)
    return RefitProblem(draw.units, stream, data, begin, *further)


def lane_form(options: BootstrapOptions, model: Any, whole: type = np.int32) -> RefitForm:
    """Return the static choices of refits that draw all lanes side by side; ``whole`` holds whole draws."""
    return RefitForm(options.drawn, Solver.CHORD, np.float64 if options.drawn == DrawScheme.BAYESIAN else whole, model)


def weights_alike(weight: Float) -> bool:
    """Return whether judgments weigh so much alike that few inner steps solve a resample."""
    used = weight[weight > 0]
    return bool(used.max(initial=0) <= _MOST_UNEQUAL * used.min(initial=np.inf))


def stages(
    limits: Mapping[Solver, int], budget: Budget, words: Callable[[Solver], int], lane_bytes: int, secure: bool = True,
    alike: bool = True,
) -> list[Stage]:  # fmt: skip
    """Return the solvers in turn, with the limits of their steps.

    Chord steps take only boards that are ``secure``; Newton-CG and scaled chord steps those whose weights are `alike`.
    """
    able = {Solver.CHORD: secure, Solver.SCALED_CHORD: alike, Solver.NEWTON_CG: alike}
    return [
        Stage(solver, steps, budget, words(solver), lane_bytes, None if able.get(solver, True) else np.zeros(1, bool))
        for solver, steps in limits.items()
    ]


def lane_refits(
    options: BootstrapOptions, program: Callable[..., Refits], model: Any, problem: RefitProblem,
    limits: Mapping[Solver, int], words: Callable[[Solver], int], *, budget: Budget = REFITS, secure: bool = True,
    alike: bool = True, **further: Any,
) -> BoardRefits:  # fmt: skip
    """Return refits of one slice that draw all lanes side by side; arguments as in `stages` and `BoardRefits`."""
    ways = stages(limits, budget, words, 8 * max(map(words, limits)), secure, alike)
    form = lane_form(options, model)
    return BoardRefits(options, program, on_device(problem), form, ways, len(problem.start), **further)


def refit(problem: BoardRefits, run: LaneRun, section: str, n_models: Sequence[int]) -> list[Refitted]:
    """Return the refits of every slice of a ``problem``.

    Args:
        problem: of S slices.
        run: how they are run.
        section: names the problem in the run's checkpoint.
        n_models: (S,) models of the slices.
    """
    lanes = problem.n_slices, problem.options.n_resamples
    solvers = problem.solvers(n_models, run)  # before the block: they may be the first to need JAX, and its BLAS
    with one_blas_thread():  # which Newton's method factors by
        solved = run.solve(solvers, Lanes.of(*lanes), section)
    every, solver = map_tree(lambda x: x.reshape(*lanes, *x.shape[1:]), solved)
    # Slices are parts of one array, which lives as long as any of them. If much of it is padding, they are copied.
    leave = sum(n_models) < _MOSTLY_USED * problem.n_slices * max(n_models)
    return [
        problem.on_board(
            Refitted(
                parameters=every.theta[s, :, :m].copy() if leave else every.theta[s],
                status=every.status[s],
                n_steps=every.n_steps[s],
                grad_norm=every.grad_norm[s],
                standing=every.standing[s],
                solver=solver[s],
            )
        )
        for s, m in enumerate(n_models)
    ]


@dataclass(frozen=True, eq=False)
class SliceBoards(ABC, Generic[Fit, Resampled]):
    """A kind of boards, one a slice: how they are fitted, refitted to resamples, and returned."""

    slices: Slices
    options: BootstrapOptions  # checked

    judgments: ClassVar[str] = "battles"  # what is drawn, in errors

    def fit(self, s: int) -> Fit:
        """Return the full-data fit of slice ``s``, where `fits` does not take several at once."""
        raise NotImplementedError

    def refits(self, s: int, fit: Fit) -> BoardRefits | Refitted:
        """Return the refits of slice ``s`` that are to be done, or what they give where nothing can be fitted."""
        raise NotImplementedError

    @abstractmethod
    def result(self, fit: Fit, refitted: Refitted) -> Resampled:
        """Return the result of a slice."""

    @property
    def deciding(self) -> Mapping[str, Any]:
        """What decides the draws besides the options."""
        return {}

    @property
    def data(self) -> tuple[Any, ...]:
        """The same, of the data besides the slices."""
        return ()

    @property
    def n_parameters(self) -> int:
        """Of a lane, over all slices."""
        return sum(len(models) for models, _ in self.slices.boards)

    @property
    def n_rounds(self) -> int:
        """How often a resample is refitted."""
        return 1

    def blocks(self) -> list[list[int]]:
        """Group the slices that are fitted together."""
        return [[s] for s in range(len(self.slices.boards))]

    def fits(self, block: Sequence[int]) -> dict[int, Fit]:
        """Return the full-data fits of the slices of a ``block``."""
        fitted = {}
        for s in block:
            with self.slices.naming(s):
                fitted[s] = self.fit(s)
        return fitted

    def problems(self, fits: dict[int, Fit]) -> Iterator[tuple[str, list[int], BoardRefits | Refitted]]:
        """Yield the refits of a block: name in a checkpoint, and slices, of each."""
        for s, fit in fits.items():
            with self.slices.naming(s):
                refits = self.refits(s, fit)
            yield f"slice-{s}", [s], refits

    def resampled(self, how: RunOptions) -> list[Resampled]:
        """Fit every slice and refit its resamples, run as ``how`` says.

        Raises:
            MemoryLimitError, ProcessError, DataError: as `jaxeval.bootstrap`.
        """
        options = self.options
        check_room(options.n_resamples, RESULT_BYTES * self.n_parameters)
        n_lanes = len(self.slices.boards) * options.n_resamples * self.n_rounds
        with open_run(self._identity, n_lanes, "refitting resamples", **how) as run:
            return self.resampled_in(run)

    def by_group(self, how: RunOptions) -> Resampled | dict[Hashable, Resampled]:
        """Return the board of all judgments; with groups a dict by group."""
        results = self.resampled(how)
        return results[0] if self.slices.groups is None else dict(zip(self.slices.groups, results, strict=True))

    def _identity(self) -> Identity:
        """Give what decides the draws; and, apart from it, what decides how many there are and how they are written."""
        slices = self.slices
        deciding, shown = self.options.identity(slices.covariates.names)
        data = (slices.labels, slices.boards, slices.drawn, slices.covariates.matrix, *self.data)
        return Identity({**deciding, **self.deciding}, data, shown, noun=self.judgments)

    def resampled_in(self, run: LaneRun) -> list[Resampled]:
        """Fit and refit as `resampled` does, in a ``run`` that is open."""
        results: dict[int, Resampled] = {}
        for block in self.blocks():
            fits = self.fits(block)
            for section, members, problem in self.problems(fits):
                if isinstance(problem, Refitted):
                    refits = [problem]
                    run.advance(self.options.n_resamples)
                else:
                    refits = refit(problem, run, section, [len(self.slices.boards[s][0]) for s in members])
                del problem  # its tables make room for the draws
                made = in_threads(self.result, [fits[s] for s in members], refits)
                results |= zip(members, made, strict=True)
        return [results[s] for s in range(len(results))]


class BoardModel(Protocol):
    """A model that somebody brings, which `jaxeval.bootstrap` resamples."""

    def rows(self, judgments: Any) -> Battles:
        """Return the judgments, with what the model reads of them."""
        ...

    def boards(self, rows: Any, options: BootstrapOptions) -> SliceBoards[Any, Draws]:
        """Return the model's boards of all slices."""
        ...
