"""Options, each declared once: what it is called, takes, means and decides."""

from jaxeval.options import boards as _boards  # noqa: F401  # all declare in one order, whichever is imported first
