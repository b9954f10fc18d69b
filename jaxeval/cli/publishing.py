"""Leaderboards for the Hugging Face Hub: the Arena's columns, and .eval_results files of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, TypeAlias

import click

from jaxeval.cli.terminal import tell
from jaxeval.options.field import SHOWN, Options, option
from jaxeval.options.resampling import Folder
from jaxeval.wording import competitor_of, counted

if TYPE_CHECKING:
    import pandas as pd

Day: TypeAlias = datetime


@dataclass(frozen=True, kw_only=True)
class Publishing(Options):
    """How a leaderboard is published: the options."""

    section = SHOWN

    schema: str = option(
        "jaxeval", "Columns that --out writes: all, or those of lmarena-ai/leaderboard-dataset.",
        choices=("jaxeval", "arena"),
    )  # fmt: skip
    publish_date: Day | None = option(
        None, "Day of the leaderboard in --html, --schema arena and --eval-results, such as 2026-09-13. [today; none]",
        "DATE",
    )  # fmt: skip
    eval_results: Folder | None = option(
        None,
        "Write DIR/MODEL/.eval_results/TASK.yaml for the repository of every model on the Hugging Face Hub.",
        "DIR",
    )
    eval_benchmark: str | None = option(None, "The benchmark of --eval-results on the Hub.", "ORG/DATASET:TASK")

    def __post_init__(self) -> None:
        super().__post_init__()
        dataset, colon, task = (self.eval_benchmark or "").partition(":")
        if (self.eval_results is None) != (self.eval_benchmark is None):
            raise click.UsageError("--eval-results and --eval-benchmark need each other")
        if self.eval_benchmark is not None and not (dataset and colon and task):
            raise click.UsageError(f"--eval-benchmark takes ORG/DATASET:TASK, got {self.eval_benchmark!r}")

    def tables(self, tables: Mapping[str, pd.DataFrame]) -> Mapping[str, pd.DataFrame]:
        """The tables to write, the leaderboard in the columns that were asked for."""
        if self.schema == "jaxeval":
            return tables
        from jaxeval.show.hub import arena_table

        return {**tables, "leaderboard": arena_table(tables["leaderboard"], self.day)}

    @property
    def day(self) -> date:
        """The day of the leaderboard."""
        return (self.publish_date or datetime.now(UTC)).date()

    def publish(self, table: pd.DataFrame) -> None:
        """Write a file for the repository of every model, where that was asked for."""
        if self.eval_results is None or self.eval_benchmark is None:
            return
        from jaxeval.show.hub import write_eval_results

        settings = table.attrs["settings"]
        dataset, _, task = self.eval_benchmark.partition(":")
        made = f"{100 * settings['level']:g}% intervals, {counted(settings['n_resamples'], 'resample')}, "
        files = write_eval_results(
            table, self.eval_results, dataset=dataset, task=task,
            date=None if self.publish_date is None else self.publish_date.date().isoformat(),
            notes=f"Elo rating; {made}{settings['versions']}",
        )  # fmt: skip
        tell(f"wrote results of {competitor_of(settings).counted(len(files))} to {self.eval_results}")
