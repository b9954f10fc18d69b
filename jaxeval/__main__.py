"""``python -m jaxeval``."""

from jaxeval.cli import main

main()
