"""What jaxeval raises beside the errors of Python."""

from __future__ import annotations


class DataError(ValueError):
    """Input that cannot be read as judgments; the message says what was found, where, and what to do."""


class NoRowsError(DataError):
    """A table without rows: nothing to rate, but for a process of several, others of which may have some."""


class MemoryLimitError(ValueError):
    """A limit of memory, a stated one or the machine's, that the smallest piece of work does not fit in."""


class ProcessError(RuntimeError):
    """Another process of the run failed, or was lost; or this one is a copy, by fork, in which JAX would hang."""
