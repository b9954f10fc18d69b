"""Aggregations for tasks of lm-evaluation-harness: ends of intervals, and errors with clusters.

In the ``utils.py`` beside a task's YAML ``from jaxeval.integrations import lm_eval_extension`` registers them; then
``metric_list`` takes ``aggregation: jaxeval_lower``, ``jaxeval_upper`` or ``jaxeval_stderr`` of any metric that is a
number for each document. A metric may also be a pair of the number and a cluster, such as a passage's name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lm_eval.api.registry import register_aggregation

from jaxeval.integrations import estimates_of

LEVEL = 0.95


def _estimates(values: Sequence[Any]) -> Any:
    clustered = bool(len(values)) and isinstance(values[0], list | tuple)
    scores = [float(value[0]) if clustered else float(value) for value in values]
    return estimates_of(scores, [str(value[1]) for value in values] if clustered else None)


def _end(name: str) -> Callable[[Sequence[Any]], float]:
    def end(values: Sequence[Any]) -> float:
        return float(_estimates(values).interval(LEVEL)[("lower", "upper").index(name)][0])

    return end


def stderr(values: Sequence[Any]) -> float:
    """Give the standard error of the mean; with clusters by the sandwich that is corrected for few of them (CR2)."""
    return float(_estimates(values).standard_errors[0])


lower = register_aggregation("jaxeval_lower")(_end("lower"))
upper = register_aggregation("jaxeval_upper")(_end("upper"))
register_aggregation("jaxeval_stderr")(stderr)
