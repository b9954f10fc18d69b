"""The calls of compiled programs that estimators make on an accelerator, recorded where there is none.

An estimator sees the devices of a topology that is only described. Programs over lanes are not run: they answer that no
lane has converged, so that every solver of a cascade is called.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from inspect import BoundArguments
from typing import Any, NamedTuple
from unittest.mock import patch

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.stages import Compiled

from jaxeval.execution.lanes import LaneRun, Task
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch.chunks import Chunks
from jaxeval.kernels.batch.programs import Program, kept_in
from jaxeval.kernels.solve import Status

_CASCADES = {"refit", "refit_contextual", "refit_sparse", "hold_out"}


class Call(NamedTuple):
    """One call of a program, its arrays replaced by their shapes."""

    program: Program[Any]
    arguments: dict[str, Any]
    mesh: Mesh  # of the devices that it is for
    task: Task | None  # None of a program that has no lanes
    lanes: int  # of a chunk
    needed: int  # bytes of the results of the lanes that were asked for; 0 without lanes

    @property
    def name(self) -> str:
        """That of the program, and of the solver if there is a choice."""
        form = self.arguments.get("form")
        solver = getattr(form, "solver", None)
        newton = "-newton" if self.arguments.get("newton") else ""
        return self.program.__name__ + newton + ("" if solver is None else f"-{solver.name.lower()}")

    def compiled(self) -> Compiled:
        """The program, compiled for the devices."""
        everywhere = NamedSharding(self.mesh, PartitionSpec())

        def placed(x: Any) -> Any:
            if isinstance(x, jax.ShapeDtypeStruct):
                return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=everywhere)
            return x

        with double_precision():
            compiled: Compiled = self.program.lower(**jax.tree.map(placed, self.arguments)).compile()
        return compiled


def _shape(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic | jax.Array):
        return jax.ShapeDtypeStruct(np.shape(x), x.dtype)
    return x


class _Recorder:
    """A `Store` that keeps calls."""

    def __init__(self, devices: Sequence[Any]) -> None:
        self.calls: list[Call] = []
        self.devices = devices
        self.task: Task | None = None

    def call(self, program: Program[Any], arguments: BoundArguments) -> Any:
        given = arguments.arguments
        if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(given)):
            return program.jitted(*arguments.args, **arguments.kwargs)
        chunks = given.get("chunks")
        shapes = {k: v if k in program.static_argnames else jax.tree.map(_shape, v) for k, v in given.items()}
        if not isinstance(chunks, Chunks):
            mesh = Mesh(np.array(self.devices[:1]), ("lanes",))
            self.calls.append(Call(program, shapes, mesh, None, 0, 0))
            return program.jitted(*arguments.args, **arguments.kwargs)
        results = program.jitted.eval_shape(*arguments.args, **arguments.kwargs)
        per_lane = sum(int(np.prod(x.shape[3:])) * x.dtype.itemsize for x in jax.tree.leaves(results))
        self.calls.append(
            Call(program, shapes, given["mesh"], self.task, chunks.numbers.shape[-1], per_lane * _asked(chunks))
        )
        answer = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), results)
        if program.__name__ in _CASCADES:
            answer.status[:] = Status.STEP_LIMIT
        return answer


def _asked(chunks: Chunks) -> int:
    """Lanes that the ``chunks`` run, each once."""
    slices, numbers, n_chunks = map(np.asarray, chunks)
    lanes = [
        (slices[d, t], number) for d in range(len(n_chunks)) for t in range(n_chunks[d]) for number in numbers[d, t]
    ]
    return len(set(lanes))


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
    """The calls that ``estimate`` makes where it sees ``devices``: of like ones the first."""
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
    different: dict[str, Call] = {}
    for call in recorder.calls:
        different.setdefault(str((call.name, call.arguments)), call)
    return list(different.values())
