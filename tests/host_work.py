"""Small work by NumPy, as in a process of the command."""

from unittest import mock


def small_work_on_the_host():
    """A context in which NumPy refits small boards, as in a process that has not imported JAX, the command's own.

    It gives what programs give, each of which would be compiled. Tests of numbers compare both.
    """
    return mock.patch("jaxeval.execution.host.spares_jax", return_value=True)
