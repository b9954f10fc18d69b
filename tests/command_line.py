"""The command, run in this process."""

from click.testing import CliRunner

from jaxeval.cli.main import main


def run(*arguments, **options):
    """What `CliRunner` has of a run; ``options`` are those of its ``invoke``."""
    return CliRunner().invoke(main, [str(x) for x in arguments], **options)


def said(*arguments, code=0):
    """All that it prints, if it ends with ``code``."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result.output
