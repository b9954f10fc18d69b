"""Two real processes that JAX connects over the loopback address."""

import os
import socket
import subprocess
import sys

import pytest
from quick_programs import flags

HEAD = """
import sys, json
import jax
rank, address, folder = int(sys.argv[1]), sys.argv[2], sys.argv[3]
jax.distributed.initialize(address, 2, rank, heartbeat_timeout_seconds=10)
import contextlib
import numpy as np
import jaxeval

@contextlib.contextmanager
def fails(error, text):
    try:
        yield
    except error as caught:
        assert text in str(caught), caught
    else:
        raise AssertionError(f"no error with {text}")
"""


def free_address():
    """HOST:PORT that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def started(*commands, **variables):
    """A process for each command, with ``variables`` in its environment."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTEST_XDIST_WORKER"}
    one = flags("--xla_force_host_platform_device_count=1")
    environment |= {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": one, **variables}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return [subprocess.Popen([sys.executable, *map(str, c)], text=True, env=environment, **pipes) for c in commands]


def start_script(script, folder):
    """``script`` in two connected processes; it finds its ``rank`` and the ``folder``."""
    address = free_address()
    return started(*(["-c", HEAD + script, rank, address, folder] for rank in (0, 1)))


def start_commands(*arguments, out):
    """The command line with ``arguments`` in two connected processes."""
    address = free_address()
    command = ["-m", "jaxeval", *arguments, "--out", out]
    return started(*([*command, "--distributed", f"{rank}/2@{address}"] for rank in (0, 1)))


def ended(processes):
    """Exit codes, output and errors."""
    said = []
    for process in processes:
        try:
            said.append(process.communicate(timeout=120))
        except subprocess.TimeoutExpired:
            for other in processes:
                other.kill()
            pytest.fail("a process hangs")
    return [p.returncode for p in processes], [out for out, _ in said], [error for _, error in said]
