"""Commands in several processes: each connects and computes its share, and only the first prints and writes."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.terminal import tell
from jaxeval.data.file_lists import names_of
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.lazy_names import jax

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles

_HEARTBEAT_SECONDS = 30
#: Seconds that a process waits for the others to start, and seconds until it says that it waits.
_SECONDS_TO_CONNECT, _SECONDS_UNTOLD = 300, 5
#: Where the first process is, which one this is, and how many there are.
_VARIABLES = ("JAX_COORDINATOR_ADDRESS", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES")


class Processes(click.ParamType):  # type: ignore[type-arg]
    """auto, or I/N@HOST:PORT: this is process I of N, and process 0 listens at HOST:PORT."""

    name = "processes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return arguments of `jax.distributed.initialize`."""
        if isinstance(value, dict):
            return value
        if value == "auto":
            return self._of_environment(param, ctx)
        match = re.fullmatch(r"(\d+)/(\d+)@(.+:\d+)", value)
        if match is None or not int(match[1]) < int(match[2]):
            self.fail(f"{value!r} is not auto or I/N@HOST:PORT with I from 0 to N - 1", param, ctx)
        return {"process_id": int(match[1]), "num_processes": int(match[2]), "coordinator_address": match[3]}

    def _of_environment(self, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, Any]:
        """Return what Kubeflow's Trainer sets for a JAX job; otherwise nothing, which leaves it to JAX to find out."""
        address, *numbers = (os.environ.get(name) for name in _VARIABLES)
        if not any(numbers):
            return {}
        number, count = (int(text) if text and text.isdecimal() else -1 for text in numbers)
        if not address or not 0 <= number < count:
            settings = ", ".join(f"{name}={os.environ.get(name, '')}" for name in _VARIABLES)
            self.fail(f"the environment says {settings}: set all three, with numbers from 0 to the number of "
                      "processes - 1", param, ctx)  # fmt: skip
        # All is said: JAX need not ask Kubernetes, which takes a package and the right to.
        arguments = {"process_id": number, "num_processes": count, "coordinator_address": address}
        return {**arguments, "cluster_detection_method": "deactivate"}


def first_goes_on() -> None:
    """End the command in every process but the first.

    A command calls this after all that it computes, and before it writes files and prints.
    """
    from jaxeval.execution.processes import n_sharing

    if n_sharing() == 1:
        return
    if jax.process_index() > 0:
        raise click.exceptions.Exit


@contextlib.contextmanager
def connected(processes: dict[str, Any]) -> Iterator[None]:
    """Connect this process to the others, which share the resamples of the block; only the first prints tables."""
    from jaxeval.execution.processes import gather, share_resamples

    longest = _SECONDS_TO_CONNECT + 60  # JAX, by then, would end the process with a dump of its stack
    try:
        with _stdout_on_stderr(), _told_while_waiting():
            jax.distributed.initialize(
                **processes, initialization_timeout=longest, heartbeat_timeout_seconds=_HEARTBEAT_SECONDS
            )
            gather(bytes)  # the first exchange, at which Gloo prints that it connects
    except (RuntimeError, ValueError) as error:
        raise click.ClickException(
            f"the processes cannot be connected: {error}. Outside of Slurm, Open MPI, Kubernetes and TPU pods name "
            f"them: --distributed I/N@HOST:PORT, or auto with {', '.join(_VARIABLES)}"
        ) from error
    silence = contextlib.redirect_stdout(io.StringIO()) if jax.process_index() else contextlib.nullcontext()
    # All leave together: JAX ends every process that is connected to one that has left.
    with silence, share_resamples(), contextlib.suppress(click.exceptions.Exit):
        yield
    if sys.stdout is not None:
        sys.stdout.flush()


@contextlib.contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    """Send what libraries print to standard error: standard output is for the result."""
    if sys.stdout is None or sys.stderr is None:
        yield
        return
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


@contextlib.contextmanager
def _told_while_waiting() -> Iterator[None]:
    """Say what the block waits for if it takes long, and end the process where it takes too long.

    A process that fails before it connects, as for a wrong option, cannot tell the others.
    """

    def give_up() -> None:
        tell(f"Error: after {_SECONDS_TO_CONNECT} s the other processes are not there: see what they said")
        os._exit(1)  # nothing interrupts JAX while it waits

    waits = f"waiting up to {_SECONDS_TO_CONNECT} s for the other processes: if one has failed, end the others"
    timers = threading.Timer(_SECONDS_UNTOLD, tell, [waits]), threading.Timer(_SECONDS_TO_CONNECT, give_up)
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()


def gather_files(paths: Sequence[FileName], read: Callable[[list[FileName]], Battles]) -> Battles:
    """Return the battles of all ``paths``, every process reading its share of the files."""
    from jaxeval.data.readers import gather_battles
    from jaxeval.execution.processes import check_alike

    files = names_of(paths)
    check_alike({"files": [base_name(file) for file in files]})

    def own() -> Battles | None:
        mine = files[jax.process_index() :: jax.process_count()]
        return read(mine) if mine else None

    return gather_battles(own)
