"""Refit resamples: what all kinds of boards have in common, and refits to sums by pair, on (M, M) tables or a graph."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import repeat
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxeval.arrays import Bool, Float, as_leaf, map_tree
from jaxeval.checks import check_room
from jaxeval.data.battles import Battles
from jaxeval.execution.lanes import LaneRun, Lanes, LaneSolver, Task, device_mesh
from jaxeval.execution.precision import in_threads, on_device, one_blas_thread
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.shapes import (
    REFITS,
    SPARSE_REFITS,
    Budget,
    held_numbers,
    padded_few,
    padded_pairs,
    padded_size,
    side_by_side,
)
from jaxeval.kernels.batch import refits, sparse
from jaxeval.kernels.batch.refits import RefitForm, RefitProblem, Refits, Solver
from jaxeval.kernels.batch.sparse import SLOTS
from jaxeval.kernels.kinds import Array
from jaxeval.kernels.resample import DrawScheme
from jaxeval.kernels.solve import Status, Terms
from jaxeval.kernels.tie_models import TieModel
from jaxeval.lazy_names import jax, spares_jax
from jaxeval.ratings.boards import Board, battles_per_model, inverse_information, main_battles
from jaxeval.ratings.drawn_votes import drawn_entries, is_secure_board
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.slices import Slices
from jaxeval.ratings.sparse_boards import recentred
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.resampling.units import UnitDraw, pad, stacked
from jaxeval.statistics.draws import Draws

# Refits stop when the error predicted to remain is under this, logits (1e-8 is 2e-6 Elo).
TOLERANCE_LOGIT = {"float64": 1e-8, "float32": 2e-5}
#: The most bytes that a model takes in a resample's results: strengths and standing, the ratings made of them, and the
#: arrays on the way there.
RESULT_BYTES = 30
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
    able_on_host: bool = False  # whether `refits.refit_on_host` knows these refits

    @cached_property
    def placed(self) -> Any:
        """The ``problem`` on the device."""
        return on_device(self.problem)

    def solvers(self) -> list[LaneSolver]:
        """Return the ways as work for `LaneRun`."""
        every = np.ones(self.n_slices, bool)
        return [
            LaneSolver(
                way.solver,
                way.solver.name.lower().replace("_", "-"),
                self._task(way),
                every if way.takes is None else way.takes,
            )
            for way in self.ways
        ]

    def _terms(self, way: Stage) -> Terms:
        kind = np.dtype(self.options.dtype).type
        ridge = np.asarray(self.options.ridge if self.ridge is None else self.ridge, kind)
        return Terms.of(ridge, kind(TOLERANCE_LOGIT[self.options.dtype] / self.stricter), way.max_steps)

    def on_host(self, n_models: Sequence[int], run: LaneRun) -> tuple[Any, NDArray[np.int8]] | None:
        """Return the refits of all lanes by NumPy, and their solvers; None where programs are to refit them."""
        tables = self.options.n_resamples * sum(m**2 for m in n_models)
        if not (self.able_on_host and run.is_plain and tables <= _MOST_ON_HOST and spares_jax()):
            return None
        way = {way.solver: way for way in self.ways}
        secure = way[Solver.CHORD].takes
        seed: Any = np.uint64(self.options.seed)
        parts, codes = [], []
        for s, m in enumerate(n_models):
            problem, n_lanes = _without_padding(map_tree(lambda x, s=s: x[s], self.problem), m), refits.lanes_on_host(m)

            def refit(solver: Solver, numbers: Any, problem: Any = problem, n_lanes: int = n_lanes) -> Any:
                form, terms = self.form._replace(solver=solver), self._terms(way[solver])
                chunks = np.split(numbers, range(n_lanes, len(numbers), n_lanes))
                chunk = partial(refits.refit_on_host, problem, form, seed, terms)
                return _joined(in_threads(chunk, chunks))

            solver = Solver.CHORD if secure is None or secure[s] else Solver.NEWTON
            refitted = refit(solver, np.arange(self.options.n_resamples))
            run.advance(self.options.n_resamples)
            left = np.flatnonzero(refitted.status != Status.CONVERGED)
            if len(left) and solver == Solver.CHORD:
                again = refit(Solver.NEWTON, left)
                for into, values in zip(refitted, again, strict=True):
                    into[left] = values
            code = np.full(self.options.n_resamples, solver, np.int8)
            code[left] = Solver.NEWTON
            parts.append(refitted)
            codes.append(code)
        width = max(n_models)
        wide = [one._replace(theta=pad(one.theta, (len(one.theta), width)),
                             standing=pad(one.standing, (len(one.theta), width))) for one in parts]  # fmt: skip
        return _joined(wide), np.concatenate(codes)

    def _task(self, way: Stage) -> Task:
        problem, form = (self.placed, self.form) if way.problem is None else (on_device(way.problem), way.form)
        program, seed = way.program or self.program, np.uint64(self.options.seed)
        call = partial(program, problem, form._replace(solver=way.solver), device_mesh(), seed, self._terms(way))
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


def stages(
    limits: Mapping[Solver, int], budget: Budget, words: Callable[[Solver], int], lane_bytes: int, secure: bool = True
) -> list[Stage]:
    """Return the solvers in turn, with the limits of their steps; chord steps take only boards that are ``secure``."""
    no_lane = {} if secure else {Solver.CHORD: np.zeros(1, bool)}
    return [
        Stage(solver, steps, budget, words(solver), lane_bytes, no_lane.get(solver)) for solver, steps in limits.items()
    ]


def lane_refits(
    options: BootstrapOptions, program: Callable[..., Refits], model: Any, problem: RefitProblem,
    limits: Mapping[Solver, int], words: Callable[[Solver], int], *, budget: Budget = REFITS, secure: bool = True,
    **further: Any,
) -> BoardRefits:  # fmt: skip
    """Return refits of one slice that draw all lanes side by side; arguments as in `stages` and `BoardRefits`."""
    ways = stages(limits, budget, words, 8 * max(map(words, limits)), secure)
    form = lane_form(options, model)
    return BoardRefits(options, program, on_device(problem), form, ways, len(problem.start), **further)


def _joined(parts: Sequence[Any]) -> Any:
    """Return the lanes of several parts in one."""
    return Refits._make(map(np.concatenate, zip(*parts, strict=True)))


def _without_padding(problem: RefitProblem, n_models: int) -> RefitProblem:
    """Return a problem of the host without models, and where that can be without pairs, that only fill its shape."""
    units, layout = problem.units, problem.data
    position = layout.position[:n_models, :n_models]
    if layout.pair is None and layout.unit is None and units.tables is not None:
        n_columns = np.flatnonzero(units.size.any(0))[-1] + 2  # and one of a pair that never met
        kept = slice(None), slice(n_columns)
        tables = units.tables._replace(**{name: getattr(units.tables, name)[kept] for name in _OF_UNITS})
        units = units._replace(size=units.size[kept], tables=tables)
        position = np.minimum(position, n_columns - 1)
        if layout.weight is not None:
            layout = layout._replace(weight=layout.weight[kept], target=layout.target[kept])
    if layout.pair_weight is not None:
        layout = layout._replace(pair_weight=layout.pair_weight[:n_models, :n_models])
    return problem._replace(
        units=units, data=layout._replace(position=position), start=problem.start[:n_models],
        main=problem.main[:n_models], inverse=problem.inverse[:n_models, :n_models],
        diagonal=problem.diagonal[:n_models],
    )  # fmt: skip


_OF_UNITS = ("shift", "offset", "least")
#: Numbers in the tables of all lanes that NumPy refits in less time than JAX takes to start and to compile.
_MOST_ON_HOST = 8_000_000


def refit(problem: BoardRefits, run: LaneRun, section: str, n_models: Sequence[int]) -> list[Refitted]:
    """Return the refits of every slice of a ``problem``.

    Args:
        problem: of S slices.
        run: how they are run.
        section: names the problem in the run's checkpoint.
        n_models: (S,) models of the slices.
    """
    lanes = problem.n_slices, problem.options.n_resamples
    known = problem.on_host(n_models, run)
    if known is None:
        with one_blas_thread():  # which Newton's method factors by
            known = run.solve(problem.solvers(), Lanes.of(*lanes), section)
    results, solver = known
    parameters, status, n_steps, grad_norm, standing = (x.reshape(*lanes, *x.shape[1:]) for x in results)
    solver = solver.reshape(lanes)
    # Slices are parts of one array, which lives as long as any of them. If much of it is padding, they are copied.
    leave = sum(n_models) < _MOSTLY_USED * problem.n_slices * max(n_models)
    return [
        problem.on_board(
            Refitted(
                parameters=parameters[s, :, :m].copy() if leave else parameters[s],
                status=status[s],
                n_steps=n_steps[s],
                grad_norm=grad_norm[s],
                standing=standing[s],
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
        """Slices that are fitted together."""
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
        """Every slice fitted, and its resamples refitted, run as ``how`` says.

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
        """As `resampled`, in a ``run`` that is open."""
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


#: Solvers in turn, each for the lanes that those before it left, and their limits of steps.
MAX_STEPS = {Solver.CHORD: 40, Solver.NEWTON_CG: 60, Solver.NEWTON: 200}
_FIRTH_STEPS = {Solver.FIRTH: 200}  # a solver of its own
# Tables that a lane works on; Newton's factor is one more.
_TABLES = {Solver.CHORD: 1, Solver.NEWTON_CG: 3, Solver.NEWTON: 4, Solver.FIRTH: 12}
_WITHOUT_TABLES = 16  # numbers that a draw of a unit without tables works on, in rounds
# The most that a compiled chunk takes for each number that a lane works on, by XLA's own figures.
_BYTES_PER_WORD = 10

#: A model's variance times its own curvature. From this value on, groups are joined by so little that the few inner
#: steps of Newton-CG may miss it. It is near 1 on a well connected board, and 4,000 where one vote of target 0.01 joins
#: two groups of 600 battles.
_WEAKLY_JOINED = 1e4


def table_words(problems: RefitProblem, solver: Solver) -> int:
    """Return numbers that a lane works on."""
    units, layout = problems.units, problems.data
    tables = _of_slice(layout.position) * _TABLES[solver]
    drawn = _of_slice(units.size) * (1 if units.tables is not None else _WITHOUT_TABLES)
    return tables + drawn + (0 if layout.weight is None else 4 * _of_slice(layout.weight))


def _of_slice(stacked: Array) -> int:
    """Return how many numbers one slice has. The shape says it: to index the array would be a call of its own."""
    return held_numbers(stacked.shape[1:])


def dense_refits(
    boards: Sequence[Board], labels: Sequence[str], drawn: Sequence[VoteGroups], options: BootstrapOptions
) -> BoardRefits:
    """Return the refits of fitted ``boards``, one a slice.

    By chord steps where practically no resample separates models, by Newton-CG where groups are not weakly joined, and
    of what those leave by dense Newton.

    Args:
        labels: names of the slices, which choose their random numbers.
        drawn: per slice, what is drawn together, and within which strata.
    """
    inverse, diagonal = inverse_information(boards)
    start = np.stack([pad(board.theta, inverse.shape[-1:]) for board in boards])
    problems, form = pair_problems(boards, labels, drawn, options, (start, inverse, diagonal))
    worth = np.diagonal(inverse, axis1=-2, axis2=-1) * diagonal
    secure = np.array([is_secure_board(board, groups.clusters) for board, groups in zip(boards, drawn, strict=True)])
    takes = {Solver.CHORD: secure, Solver.NEWTON_CG: worth.max(-1) <= _WEAKLY_JOINED}
    ways = [
        Stage(
            solver,
            steps,
            REFITS,
            table_words(problems, solver),
            _BYTES_PER_WORD * max(table_words(problems, s) for s in (solver, Solver.NEWTON)),
            takes=takes.get(solver),
        )
        for solver, steps in (_FIRTH_STEPS if options.penalty == "firth" else MAX_STEPS).items()
    ]
    able = (
        options.dtype == "float64" and options.drawn != DrawScheme.BAYESIAN and options.penalty != "firth"
        and options.response.ties == TieModel.HALF and problems.units.tables is not None
    )  # fmt: skip
    return BoardRefits(options, refits.refit, problems, form, ways, start.shape[-1], len(boards), able_on_host=able)


def pair_problems(
    boards: Sequence[Board], labels: Sequence[str], drawn: Sequence[VoteGroups], options: BootstrapOptions,
    full: tuple[Float, Float, Float],
) -> tuple[RefitProblem, RefitForm]:  # fmt: skip
    """Return what is drawn, and how chord steps refit it; arguments as in `dense_refits`.

    ``full`` holds the parameters (S, P) of the full data, the pseudo-inverse of their information, and its diagonal.
    """
    size = padded_size(max(len(board.theta) for board in boards))
    # One pair more than there are: models that never met share an empty one.
    n_pairs = padded_pairs(max(len(board.cells.first) for board in boards) + 1, size)
    keep_ties = options.response.ties != TieModel.HALF
    entries = drawn_entries([board.cells for board in boards], options.drawn, drawn, n_pairs, keep_ties)
    packing = entries.packing(max(battles_per_model(board.cells, len(board.theta)).max() for board in boards))
    draws = in_threads(entries.draw, range(len(boards)), repeat(options.drawn), labels, repeat(packing))
    problems = [
        refit_problem(
            draw,
            entries.layout(s, *_tables_of_pairs(board, size, n_pairs - 1)),
            full[0][s],
            pad(main_battles(board), (size,)),
            full[1][s],
            full[2][s],
        )
        for s, (board, draw) in enumerate(zip(boards, draws, strict=True))
    ]
    form = RefitForm(options.drawn, Solver.CHORD, np.dtype(options.dtype).type, options.response, packing, n_pairs)
    return stacked(problems, padded_few(len(boards))), form


def _tables_of_pairs(board: Board, size: int, no_pair: int) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """(M', M') number of every pair, ``no_pair`` for models that never met; and the factor in its weight, if any."""
    cells, position = board.cells, board.cells.positions(size, no_pair)
    if board.pair_weight is None:
        return position, None
    factor = np.zeros((size, size))
    factor[cells.first, cells.second] = factor[cells.second, cells.first] = board.pair_weight
    return position, factor


_SPARSE_STEPS = 200
_SLOT_COPIES = 3  # of the weights by slot, with what a step makes of them


def sparse_refits(board: Board, label: str, drawn: VoteGroups, options: BootstrapOptions) -> BoardRefits:
    """Return the refits of a board called ``label``, whose draws are those of `dense_refits`."""
    if board.graph is None:
        raise ValueError("the board was fitted by the dense method")
    wide, n_pairs = board.graph, len(board.graph.graph.first)
    entries = drawn_entries([board.cells], options.drawn, [drawn], n_pairs)
    packing = entries.packing(battles_per_model(board.cells, len(board.theta)).max())
    draw = entries.draw(0, options.drawn, label, packing)
    weight = None if board.pair_weight is None else pad(board.pair_weight, (n_pairs,))
    data = entries.layout(0, np.zeros((0, 0), np.int64), weight), wide.graph  # no tables
    problem = refit_problem(draw, data, wide.numbered(board.theta), wide.numbered(main_battles(board)))
    form = RefitForm(options.drawn, Solver.SPARSE, np.dtype(options.dtype).type, options.response, packing, n_pairs)
    # The weights by slot, which every step passes over.
    slot_bytes = 3 * wide.graph.adjacency.owner.size * SLOTS * np.dtype(form.dtype).itemsize

    def on_board(refitted: Refitted) -> Refitted:
        """Return (B, M) refits with models as on the board, from those of the graph."""
        theta = recentred(refitted.theta[:, wide.number], board.connectivity, options.ridge)
        return refitted._replace(parameters=theta, standing=refitted.standing[:, wide.number])

    return BoardRefits(
        options, sparse.refit_sparse, on_device(problem), form,
        [Stage(Solver.SPARSE, _SPARSE_STEPS, SPARSE_REFITS, slot_bytes, _SLOT_COPIES * slot_bytes)], len(board.theta),
        on_board=on_board, fixed_bytes=(side_by_side() - 1) * _SLOT_COPIES * slot_bytes,
    )  # fmt: skip
