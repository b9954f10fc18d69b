"""What results say beside others on one screen: ``--cost`` of boards, scores and indices, and the trend of horizons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from jaxeval.options.field import COLUMNS, Options, option

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.capability.pareto import ParetoFront
    from jaxeval.show.shown import Answer, Result

_MOST_PAIRED = 50  # models of a table of all pairs
_ON_REQUEST = ("dominates", "most telling", "without each benchmark")


class Costs(Options):
    """What models cost."""

    section = COLUMNS

    cost: str | None = option(
        None, "Column with the cost of each model. Adds who is on the front of cost and quality, and who dominates "
        "whom.", "COL",
    )  # fmt: skip
    budget: float | None = option(
        None, "With --cost: which model is best among those that cost no more.", "X", flag="--at-most", least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget is not None and self.cost is None:
            raise click.UsageError("--at-most needs --cost: it is compared with it")

    def front(self, quality: Any, costs: Any, level: float) -> ParetoFront | None:
        """Return the front of models whose ``costs`` are known by name, drawn, or made of the column, if any."""
        from jaxeval.capability.pareto import pareto_front

        if self.cost is None:
            return None
        if not hasattr(quality, "estimate") and not hasattr(quality, "joint"):
            raise click.UsageError("--cost is about one board, and does not go with --by")
        return pareto_front(quality, costs(self.cost) if callable(costs) else costs, level=level)

    def tables(self, front: ParetoFront | None) -> dict[str, pd.DataFrame]:
        """Return further tables of a front: who dominates whom, and who is best under the budget."""
        tables = {}
        if front is not None and len(front.dominates) <= _MOST_PAIRED:
            tables["dominates"] = front.dominates.rename_axis("model", axis=0).rename_axis(None, axis=1).reset_index()
        if front is not None and self.budget is not None:
            tables[f"best for {self.budget:g}"] = front.best_under(self.budget)
        return tables


def beside(answer: Answer, *results: Result | None, tables: Mapping[str, pd.DataFrame] = {}) -> Answer:
    """Return an answer with the sentences, warnings, tables and figures of further results, and further ``tables``."""
    from jaxeval.show.shown import part_of

    there = [result for result in results if result is not None]
    more = {name: table for result in there for name, table in result.answer.tables.items()} | dict(tables)
    warnings = [*answer.warnings, *(text for result in there for text in result.answer.warnings)]

    def figures() -> dict[str, Any]:
        return {
            name: x for shown in (answer, *(result.answer for result in there)) for name, x in shown.figures().items()
        }

    return answer._replace(
        sentences=[*answer.sentences, *(text for result in there for text in result.answer.sentences)],
        warnings=list(dict.fromkeys(warnings)),
        parts=[*answer.grids, *(part_of(name, table, more=name in _ON_REQUEST) for name, table in more.items())],
        tables={**answer.tables, **more},
        figures=figures,
    )
