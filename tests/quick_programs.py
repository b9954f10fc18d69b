"""Settings of XLA and JAX for tests: programs are compiled fast and run a little slower. The library sets none.

A test runs a program a few times, so that compiling it takes longer than running it. XLA compiles at its highest level
unless it is told otherwise. With these flags compiling takes a seventh of the time, and the suite less than half.

JAX writes beside every operation the calls that led to it, up to 100 of them, most of pytest. XLA reads all of that.
Without it, lowering and compiling take a twentieth less time.

``JAXEVAL_TEST_PROGRAMS=users`` leaves all of it out: programs are compiled as users have them. ``.ci/run`` runs
the numeric core so.
"""

import os

import jax

#: jaxlib 0.8.1, the oldest that is allowed, has all of them. XLA aborts the process on a flag that it does not know.
FLAGS = (
    "--xla_backend_optimization_level=0",  # LLVM's: at level 3 it takes most of the time
    "--xla_cpu_use_fusion_emitters=false",  # the older emitters make less code of a fusion
    "--xla_cpu_parallel_codegen_split_count=1",  # small programs are not worth cutting into parts
)
_VARIABLE = "XLA_FLAGS"
_CALLS = "jax_traceback_in_locations_limit"


def flags(*more: str) -> str:
    """The value of XLA_FLAGS for a process that a test starts: the flags of this one, and ``more``, which win."""
    return " ".join([*os.environ.get(_VARIABLE, "").split(), *more])


def set_flags() -> None:
    """Set all for this process and those that it starts, once; what a developer has set wins."""
    if os.environ.get("JAXEVAL_TEST_PROGRAMS") == "users":
        return
    if _CALLS.upper() not in os.environ:
        os.environ[_CALLS.upper()] = "0"
        jax.config.update(_CALLS, 0)  # which has read its own variables
    named = os.environ.get(_VARIABLE, "").split()
    os.environ[_VARIABLE] = " ".join([*(flag for flag in FLAGS if flag not in named), *named])
