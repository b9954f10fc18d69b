"""Battles of several processes, where each process reads its own files."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace

from jaxeval.data.battles import Battles
from jaxeval.errors import DataError, NoRowsError
from jaxeval.execution.processes import gather, process_count


def gather_battles(own: Battles | Callable[[], Battles | None] | None) -> Battles:
    """The battles of all processes of a run together, in every process; all must call this at the same time.

    Connect the processes with `jax.distributed.initialize` first. A bootstrap of the result shares its resamples among
    the processes; its draws are the same as in one process. All processes must call it, too, with the same arguments.
    In a run of one process, the result is its own battles.

    Args:
        own: the battles of this process; None if it has no files; or a function that reads them, whose errors then
            stop all processes instead of leaving the others waiting. A process may have files without rows.

    Raises:
        DataError: no process has battles; or the processes' battles differ in their columns, or in the words of their
            labels.
        ProcessError: another process failed or was lost.

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
    """Raise DataError unless one family of words fits the labels of all processes; each process saw only its own."""
    said = list(filter(None, families))
    if said and not set.intersection(*map(set, said)):
        first, other = next((one, two) for one in said for two in said if not set(one) & set(two))
        raise DataError(
            f"the processes' files use different words for labels: some hold {' or '.join(first)}, and some "
            f"{' or '.join(other)}. Say what the labels mean: labels={{'A': 'model_a', ...}}, on the command line "
            "--labels 'A=model_a,...'"
        )
