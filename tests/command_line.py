"""The command, run in this process."""

from unittest import mock

from click.testing import CliRunner

from jaxeval.cli.main import main


def small_work_on_the_host():
    """A context in which NumPy refits small boards, as in a process that has not imported JAX, the command's own.

    It gives what programs give, each of which would be compiled. Tests of numbers compare both.
    """
    return mock.patch("jaxeval.execution.host.spares_jax", return_value=True)


def run(*arguments, **options):
    """What `CliRunner` has of a run; ``options`` are those of its ``invoke``."""
    return CliRunner().invoke(main, [str(x) for x in arguments], **options)


def said(*arguments, code=0):
    """All that it prints, if it ends with ``code``."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result.output
