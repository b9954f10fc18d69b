"""What results say beside others on one screen: ``--cost`` of boards, scores and indices, and the trend of horizons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jaxeval.show.shown import Answer, Part, Result

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.capability.pareto import ParetoFront


def front_of(quality: Any, costs: Any, level: float) -> ParetoFront:
    """Return the front of models whose ``costs`` are known by name, or drawn."""
    from jaxeval.capability.pareto import pareto_front

    return pareto_front(quality, costs, level=level)


def beside(answer: Answer, *results: Result | None, tables: Mapping[str, pd.DataFrame] = {}) -> Answer:
    """Return an answer with the sentences, warnings, tables and figures of further results, and further ``tables``."""
    there = [result for result in results if result is not None]
    more = {name: table for result in there for name, table in result.answer.tables.items()} | dict(tables)
    warnings = [*answer.warnings, *(text for result in there for text in result.answer.warnings)]

    def figures() -> dict[str, Any]:
        from jaxeval.plots.style import figures_of

        return {**answer.figures(), **{name: x for result in there for name, x in figures_of(result).items()}}

    parts = [Part(name.capitalize(), table, kept=tuple(table)[:3]) for name, table in more.items()]
    return answer._replace(
        sentences=[*answer.sentences, *(text for result in there for text in result.answer.sentences)],
        warnings=list(dict.fromkeys(warnings)),
        parts=[*answer.parts, *parts],
        tables={**answer.tables, **more},
        figures=figures,
    )
