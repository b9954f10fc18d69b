"""The calls of compiled programs that estimators make on an accelerator, recorded and compiled where there is none.

An estimator sees devices that are only described. Programs over lanes are not run: they answer that no lane has
converged, so that every solver of a cascade is called. All others run on the CPU.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from inspect import BoundArguments
from typing import Any, NamedTuple
from unittest.mock import patch

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxeval.execution.lanes import LaneRun, Task
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import lane_bytes
from jaxeval.kernels.batch.programs import Chunks, Program, kept_in
from jaxeval.kernels.solve import Status

_CASCADES = {"refit", "refit_contextual", "refit_choices", "refit_sparse", "hold_out"}
# Operations that name, group or steer others; all else a GPU launches.
_NOT_LAUNCHED = {"bitcast", "call", "conditional", "constant", "get-tuple-element", "parameter", "tuple", "while"}
_COLLECTIVES = "all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter"


class Lanes(NamedTuple):
    """What a call says of its lanes."""

    size: int  # of a chunk
    bytes_said: int  # that a device's memory needs, as `memory_limit` counts them
    returned: int  # bytes of results that the call gives
    needed: int  # of them, those of lanes that were asked for


class Call(NamedTuple):
    """One call of a program, its arrays replaced by their shapes."""

    program: Program[Any]
    arguments: dict[str, Any]
    mesh: Mesh  # of the devices that it is for
    lanes: Lanes | None  # None of a program that has none

    @property
    def name(self) -> str:
        """That of the program, and of the solver if there is a choice."""
        solver = getattr(self.arguments.get("form"), "solver", None)
        newton = ["newton"] if self.arguments.get("newton") else []
        return "-".join([self.program.__name__, *newton, *([] if solver is None else [solver.name.lower()])])


class Figures(NamedTuple):
    """What the compiler says of a program, of one device."""

    argument_bytes: int
    result_bytes: int
    temporary_bytes: int
    host_loops: int  # whose turns the host counts on a GPU, as it does not know their number
    conditionals: int
    scatters: int
    collectives: int
    launches: list[int]  # of kernels: outside of loops, and in a turn of each loop, in their order, outer ones first


def compiled(call: Call) -> Figures:
    """``call``, compiled for its devices."""
    everywhere = NamedSharding(call.mesh, PartitionSpec())

    def placed(x: Any) -> Any:
        if isinstance(x, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=everywhere)
        return x

    with double_precision():
        program = call.program.lower(**jax.tree.map(placed, call.arguments)).compile()
    memory, text = program.memory_analysis(), program.as_text()

    def lines(operation: str) -> list[str]:
        return re.findall(rf"^.* {operation}\(.*$", text, re.MULTILINE)

    return Figures(
        argument_bytes=memory.argument_size_in_bytes,
        result_bytes=memory.output_size_in_bytes,
        temporary_bytes=memory.temp_size_in_bytes,
        host_loops=sum("known_trip_count" not in line for line in lines("while")),
        conditionals=len(lines("conditional")),
        scatters=len(lines("scatter")),
        collectives=sum(len(lines(f"{name}(?:-start)?")) for name in _COLLECTIVES),
        launches=_launches(text),
    )


def _launches(text: str) -> list[int]:
    """Of the compiled program ``text``."""
    blocks = re.findall(r"^(ENTRY )?%?([\w.-]+) [^\n]*\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    body = {name: lines.splitlines() for _, name, lines in blocks}

    def counted(names: list[str]) -> list[int]:
        """Those of the computations ``names`` together, and of the loops within."""
        own, within = 0, list[int]()
        for line in (line for name in names for line in body[name]):
            found = re.search(r" = .*? ([a-z][\w-]*)\(", line)
            operation = found[1] if found else ""
            own += operation not in _NOT_LAUNCHED
            if operation in ("call", "conditional", "while"):
                called = re.findall(r"(?:body|condition|to_apply|_computation)=%?([\w.-]+)", line)
                called += re.findall(r"%?([\w.-]+)", "".join(re.findall(r"branch_computations=\{(.*?)\}", line)))
                inner = counted(called)
                own += 0 if operation == "while" else inner.pop(0)
                within += inner
        return [own, *within]

    return counted([name for entry, name, _ in blocks if entry])


def _shape(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic | jax.Array):
        return jax.ShapeDtypeStruct(np.shape(x), x.dtype)
    return x


class _Recorder:
    """A `Store` that keeps calls."""

    def __init__(self, devices: Sequence[Any]) -> None:
        self.calls: list[Call] = []
        self.devices = devices
        self.task: Task | None = None  # that runs

    def call(self, program: Program[Any], arguments: BoundArguments) -> Any:
        given = arguments.arguments
        if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(given)):
            return program.jitted(*arguments.args, **arguments.kwargs)
        shapes = {k: v if k in program.static_argnames else jax.tree.map(_shape, v) for k, v in given.items()}
        if "chunks" not in given:
            self.calls.append(Call(program, shapes, Mesh(np.array(self.devices[:1]), ("lanes",)), None))
            return program.jitted(*arguments.args, **arguments.kwargs)
        results = program.jitted.eval_shape(*arguments.args, **arguments.kwargs)
        if self.task is None:
            raise ValueError(f"{program.__name__} was called outside of a run")
        size = given["chunks"].numbers.shape[-1]
        lanes = Lanes(
            size=size,
            bytes_said=self.task.fixed_bytes + size * lane_bytes(self.task.lane_bytes),
            returned=sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(results)),
            needed=_asked(given["chunks"])
            * sum(int(np.prod(x.shape[3:])) * x.dtype.itemsize for x in jax.tree.leaves(results)),
        )
        self.calls.append(Call(program, shapes, given["mesh"], lanes))
        answer = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), results)
        if program.__name__ in _CASCADES:
            answer.status[:] = Status.STEP_LIMIT
        return answer


def _asked(chunks: Chunks) -> int:
    """Lanes that the ``chunks`` run, each once: a short chunk repeats its last."""
    slices, numbers, n_chunks = map(np.asarray, chunks)
    places = [(d, t) for d, n in enumerate(n_chunks) for t in range(n)]
    return len({(slices[at], number) for at in places for number in numbers[at].tolist()})


@contextmanager
def _seeing(devices: Sequence[Any]) -> Iterator[None]:
    """A context in which estimators see these ``devices``."""
    with (
        patch.object(jax, "default_backend", lambda: devices[0].platform),
        patch.object(jax, "local_devices", lambda: list(devices)),
        patch.object(jax, "local_device_count", lambda: len(devices)),
    ):
        yield


def record(estimate: Callable[[], Any], devices: Sequence[Any]) -> list[Call]:
    """The calls that ``estimate`` makes where it sees ``devices``: of those that differ in nothing one."""
    recorder, run = _Recorder(devices), LaneRun.run

    def noted(self: LaneRun, task: Task, *arguments: Any) -> None:
        recorder.task = task
        run(self, task, *arguments)

    with (
        _seeing(devices),
        kept_in(recorder),
        patch.object(LaneRun, "run", noted),
        suppress(ValueError),  # of results that did not converge
        warnings.catch_warnings(action="ignore"),
    ):
        estimate()
    return list({str((call.name, call.arguments)): call for call in recorder.calls}.values())
