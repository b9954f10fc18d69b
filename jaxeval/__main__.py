"""``python -m jaxeval``."""

from jaxeval.cli.main import main

main()
