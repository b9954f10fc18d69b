"""``jaxeval error-budget``: which part of the error of scores is that of items, judges, prompts, seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import click

from jaxeval.cli.declared import Files, Plot, command
from jaxeval.cli.next_battles import GoalOptions
from jaxeval.cli.outputs import Outputs, check_outputs, present
from jaxeval.cli.scores import what_was_read
from jaxeval.cli.terminal import named_model, tell
from jaxeval.options.columns import ItemScoreColumns, Names, Pair, RandomFacets
from jaxeval.options.field import Options, again, option
from jaxeval.options.resampling import ResamplingOptions, Share

Prices: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Budgeting(Options):
    """What the decision study is about."""

    pair: Pair | None = again(GoalOptions, "pair", more="[the two best models]")
    target: float = option(
        0.5, "Plan for so much of the present error of the difference.", "SHARE", flag="--shrink-to", least=0, most=1,
        open=True,
    )  # fmt: skip
    price: Names | None = option(
        None, "What a level of a facet, an item or a single score costs, such as judge=20,item=0.5,score=0.01. "
        "[score=1]", "NAME=COST,...",
    )  # fmt: skip
    level: Share = again(ResamplingOptions, "level")

    @property
    def prices(self) -> Prices | None:
        """Costs by name."""
        if self.price is None:
            return None
        found = {}
        for text in self.price:
            name, _, cost = text.partition("=")
            try:
                found[name.strip()] = float(cost)
            except ValueError:
                raise click.UsageError(f"--price takes NAME=COST, such as judge=20, got {text!r}") from None
        return found


@command("error-budget")
def error_budget(
    files: Files, columns: ItemScoreColumns, facets: RandomFacets, asked: Budgeting, plot: Plot, outputs: Outputs
) -> None:
    """Which error is it: of items, judges, prompts or seeds.

    FILES are read as by `jaxeval scores`, with a column for each facet that --random names. Also: what would make the
    error smaller, and the cheapest way to it.
    """
    from jaxeval.data.score_files import read_scores
    from jaxeval.plots.style import figures_of, save_figure
    from jaxeval.scores.error_budget import error_budget as budgeted

    if plot.plot is not None:
        check_outputs({"--plot": plot.plot}, list(files))
    given = read_scores(files if len(files) > 1 else files[0], random=facets.facets, **columns.arguments())
    pair: Any = None if asked.pair is None else tuple(named_model(given.models, name) for name in asked.pair)
    found = budgeted(given, facets.facets, pair=pair, target=asked.target, prices=asked.prices, level=asked.level)
    if plot.plot is not None:
        save_figure(next(iter(figures_of(found).values())), plot.plot, dpi=160)
        tell(f"drew {plot.plot}")
    answer = found.answer
    notes = [what_was_read(given), f"{100 * asked.level:g}% intervals; components by Henderson's first method"]
    present(answer._replace(notes=notes, figures=lambda: figures_of(found)), outputs)
