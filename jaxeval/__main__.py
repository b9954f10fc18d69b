"""``python -m jaxeval``."""

from jaxeval.cli.main import run

run()
