"""Leaderboards for others: a page that works offline, the Arena's columns, and .eval_results files of the Hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from jaxeval.cli.terminal import tell
from jaxeval.options.field import SHOWN, Options, option
from jaxeval.options.resampling import Folder
from jaxeval.wording import competitor_of, counted

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.cli.reading import BoardReading

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


Page: TypeAlias = Path
#: Options of a leaderboard that are about covariates.
_OF_FEATURES = ("features", "normalize", "feature_ridge")


@dataclass(frozen=True, kw_only=True)
class HtmlPage(Options):
    """The page that was asked for: the options."""

    section = SHOWN

    path: Page | None = option(
        None, "Write a web page that works offline. Readers sort and filter it, link to what they see, and refit it "
        "without some of the votes. With covariates it also has the board without them.", "FILE", flag="--html",
    )  # fmt: skip
    title: str | None = option(None, "Title of the page of --html. [Leaderboard]", "TEXT")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.title is not None and self.path is None:
            raise click.UsageError("--title needs --html: it is the title of that page")

    def write(
        self,
        table: pd.DataFrame,
        battles: Any,
        options: Mapping[str, Any],
        reading: BoardReading | None,
        *,
        history: pd.DataFrame | None,
        made: date,
    ) -> None:
        """Write the page of a leaderboard of ``battles``; with covariates beside the same without them.

        Args:
            table: the leaderboard.
            battles: the votes that it is of; None where it rests on more than votes.
            options: of `leaderboard`, that made it.
            reading: what is known of its models.
            history: dated boards, this one among them, where they are kept.
            made: the day of the board.
        """
        from jaxeval.data.battles import Battles
        from jaxeval.pages.page import page
        from jaxeval.ratings.leaderboard import leaderboard

        assert self.path is not None
        results = [table]
        if options.get("features") and battles is not None:
            plain = {name: value for name, value in options.items() if name not in _OF_FEATURES}
            without = leaderboard(battles, **plain)
            results.append(without if reading is None else reading.with_metadata(without))
        votes = battles if type(battles) is Battles else None  # no rankings
        page(results, self.path, title=self.title, made=made, battles=votes, history=history)
        tell(f"wrote {self.path}")
