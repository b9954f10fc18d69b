"""Commands in several processes: each connects, reads its own files, and only the first prints and writes."""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles

_HEARTBEAT_SECONDS = 30


class Processes(click.ParamType):  # type: ignore[type-arg]
    """auto, or I/N@HOST:PORT: this is process I of N, and process 0 listens at HOST:PORT."""

    name = "processes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Arguments of `jax.distributed.initialize`."""
        if isinstance(value, dict):
            return value
        if value == "auto":
            return {}
        found = re.fullmatch(r"(\d+)/(\d+)@(.+:\d+)", value)
        if found is None or not int(found[1]) < int(found[2]):
            self.fail(f"{value!r} is not auto or I/N@HOST:PORT with I from 0 to N - 1", param, ctx)
        return {"process_id": int(found[1]), "num_processes": int(found[2]), "coordinator_address": found[3]}


@contextlib.contextmanager
def connected(processes: dict[str, Any]) -> Iterator[bool]:
    """Connect this process to the others; True for the first, and silence for the rest, whose errors alone are told."""
    import jax

    try:
        jax.distributed.initialize(**processes, heartbeat_timeout_seconds=_HEARTBEAT_SECONDS)
    except (RuntimeError, ValueError) as error:
        raise click.ClickException(
            f"the processes cannot be connected: {error}. Outside of Slurm, Open MPI, Kubernetes and TPU pods name "
            "them: --distributed I/N@HOST:PORT"
        ) from error
    first = jax.process_index() == 0
    with contextlib.nullcontext() if first else contextlib.redirect_stdout(io.StringIO()):
        yield first
    sys.stdout.flush()


def gather_files(paths: Sequence[Path], read: Callable[[list[Path]], Battles]) -> Battles:
    """The battles of all ``paths``, every process reading its share of the files."""
    import jax

    from jaxeval.data.gathered_battles import gather_battles
    from jaxeval.data.table_files import files_of

    def own() -> Battles | None:
        mine = files_of(paths)[jax.process_index() :: jax.process_count()]
        return read(mine) if mine else None

    return gather_battles(own)
