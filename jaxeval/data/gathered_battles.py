"""Battles of several processes, each of which read its own files."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace

from jaxeval.data.battles import Battles
from jaxeval.errors import DataError, NoRowsError
from jaxeval.execution.processes import gather, process_count


def gather_battles(own: Battles | Callable[[], Battles | None] | None) -> Battles:
    """The battles of all processes of a run together, in every process; all must call this at the same time.

    Connect the processes by `jax.distributed.initialize` before. Bootstraps of the result share its resamples out among
    the processes, with the draws of one process; they, too, must be called in all with the same arguments. In a run of
    one process these are its own battles.

    Args:
        own: the battles of this process; None if it has no files; or a function that reads them, whose errors then
            stop all processes instead of leaving the others waiting. Files without rows are as good as none.

    Raises:
        DataError: no process has battles; some have columns that others lack, or labels in the words of another family.
        ProcessError: another process failed, or is lost.

    Examples:
        In every process, after `jax.distributed.initialize`:

        >>> import jaxeval
        >>> own = jaxeval.simulate_battles(1000, n_models=4)
        >>> jaxeval.gather_battles(own).n_battles  # of one process alone
        1000
    """
    empty: list[NoRowsError] = []

    def packed() -> bytes:
        try:
            battles = own() if callable(own) else own
        except NoRowsError as error:
            empty.append(error)
            return b""
        if battles is None:
            return b""
        file = io.BytesIO()
        battles.write(file)
        return file.getvalue()

    parts = [Battles.parse(io.BytesIO(part), f"process {p}") for p, part in enumerate(gather(packed)) if part]
    if not parts:
        raise DataError("; ".join(["no process has any battles", *map(str, empty)]))
    _check_labels([part.report.label_families for part in parts])
    return replace(Battles.concat(parts), n_processes=process_count())


def _check_labels(families: Sequence[tuple[str, ...]]) -> None:
    """Raise DataError unless there is one way to read the labels of all processes, each of which saw its own only."""
    said = list(filter(None, families))
    if said and not set.intersection(*map(set, said)):
        first, other = next((one, two) for one in said for two in said if not set(one) & set(two))
        raise DataError(
            f"the labels of the processes' files are in different words: some hold {' or '.join(first)}, and some "
            f"{' or '.join(other)}. Say what they mean, labels={{'A': 'model_a', ...}}, on the command line --labels "
            "'A=model_a,...'"
        )
