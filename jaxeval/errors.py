"""The errors that jaxeval raises besides those of Python."""

from __future__ import annotations


class DataError(ValueError):
    """Input that cannot be read as judgments; the message says what was found, where, and what to do.

    ``file`` is the name of the file whose content it is about, as far as that is known.
    """

    file: str | None = None


class ColumnError(DataError):
    """Columns have to be named: one is not there, or rows cannot be told apart by those that are."""


class NoRowsError(DataError):
    """A table without rows: nothing to rate. In a run of several processes, the others may have rows."""


class MemoryLimitError(ValueError):
    """The smallest piece of work does not fit in memory: in the limit that was given, or in the machine's."""


class ProcessError(RuntimeError):
    """Another process of the run failed or was lost; or this process is a fork, in which JAX would hang."""
