"""Leaderboards for others: a page that works offline, the Arena's columns, and .eval_results files of the Hub."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from jaxeval.cli.commands import Command
from jaxeval.cli.declared import Plot, Top, command
from jaxeval.cli.terminal import tell
from jaxeval.options.field import SHOWN, Options, option
from jaxeval.options.resampling import Folder
from jaxeval.wording import competitor_of, counted

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.cli.reading import BoardReading

Day: TypeAlias = datetime
Page: TypeAlias = Path
Card: TypeAlias = Path
Badge: TypeAlias = Path
#: Options of a leaderboard that are about covariates.
_OF_FEATURES = ("features", "normalize", "feature_ridge")


class Published(Plot, Top, section=SHOWN):
    """What becomes of a leaderboard besides tables."""

    schema: str = option(
        "jaxeval", "Columns that --out writes: all, or those of lmarena-ai/leaderboard-dataset.",
        choices=("jaxeval", "arena"),
    )  # fmt: skip
    publish_date: Day | None = option(
        None, "Day of the leaderboard in --html, --schema arena and --eval-results, such as 2026-09-13. [today; none]",
        "DATE",
    )  # fmt: skip
    eval_results: Folder | None = option(
        None, "Write DIR/MODEL/.eval_results/TASK.yaml for the repository of every model on the Hugging Face Hub.",
        "DIR",
    )  # fmt: skip
    eval_benchmark: str | None = option(None, "The benchmark of --eval-results on the Hub.", "ORG/DATASET:TASK")
    path: Page | None = option(
        None, "Write a web page that works offline. Readers sort and filter it, link to what they see, and refit it "
        "without some of the votes. With covariates it also has the board without them.", "FILE", flag="--html",
    )  # fmt: skip
    title: str | None = option(None, "Title of the page of --html. [Leaderboard]", "TEXT")
    labels_of_groups: tuple[str, ...] = option(
        (), "What pages call a category, such as is_if=\"Instruction following\"; may be repeated.", "NAME=WORDS",
    )  # fmt: skip
    card: Card | None = option(
        None, "Draw the finding and the first models as a PNG of 1200 x 630 pixels, for links to the page.", "FILE"
    )
    badge: Badge | None = option(None, "Write who leads as a small SVG, for a README.", "FILE")
    space: str | None = option(
        None, "Write a static Space of the Hugging Face Hub to the folder NAME: page, table, README, card, and a "
        "workflow that makes it again each night.", "OWNER/NAME",
    )  # fmt: skip
    upload: bool = option(
        False, "Upload the folder of --space, with the token of huggingface_hub (HF_TOKEN).",
        needs="space: it uploads that folder",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        dataset, colon, task = (self.eval_benchmark or "").partition(":")
        if (self.eval_results is None) != (self.eval_benchmark is None):
            raise click.UsageError("--eval-results and --eval-benchmark need each other")
        if self.eval_benchmark is not None and not (dataset and colon and task):
            raise click.UsageError(f"--eval-benchmark takes ORG/DATASET:TASK, got {self.eval_benchmark!r}")
        if self.title is not None and not self.wanted:
            raise click.UsageError("--title needs --html: it is the title of that page")
        if self.labels_of_groups and not self.wanted:
            raise click.UsageError("--labels-of-groups needs --html: pages show these words")
        if wrong := [text for text in self.labels_of_groups if not all(text.partition("="))]:
            raise click.UsageError(f"--labels-of-groups takes NAME=WORDS, got {wrong[0]!r}")

    def tables(self, tables: Mapping[str, pd.DataFrame]) -> Mapping[str, pd.DataFrame]:
        """Return the tables to write, the leaderboard in the columns that were asked for."""
        if self.schema == "jaxeval":
            return tables
        from jaxeval.show.exports import arena_table

        return {**tables, "leaderboard": arena_table(tables["leaderboard"], self.day)}

    @property
    def day(self) -> date:
        """The day of the leaderboard."""
        return (self.publish_date or datetime.now(UTC)).date()

    def publish(self, table: pd.DataFrame) -> None:
        """Write a file for the repository of every model, where that was asked for."""
        if self.eval_results is None or self.eval_benchmark is None:
            return
        from jaxeval.show.exports import write_eval_results

        settings = table.attrs["settings"]
        dataset, _, task = self.eval_benchmark.partition(":")
        made = f"{100 * settings['level']:g}% intervals, {counted(settings['n_resamples'], 'resample')}, "
        files = write_eval_results(
            table, self.eval_results, dataset=dataset, task=task,
            date=None if self.publish_date is None else self.publish_date.date().isoformat(),
            notes=f"Elo rating; {made}{settings['versions']}",
        )  # fmt: skip
        tell(f"wrote results of {competitor_of(settings).counted(len(files))} to {self.eval_results}")

    @property
    def wanted(self) -> bool:
        """Whether anything is to be written."""
        return any(x is not None for x in (self.path, self.card, self.badge, self.space))

    @property
    def takes_table(self) -> bool:
        """Whether anything needs the leaderboard in pandas."""
        return self.wanted or self.plot is not None or self.eval_results is not None or self.schema != "jaxeval"

    def write(
        self, table: pd.DataFrame, battles: Any, options: Mapping[str, Any], reading: BoardReading | None, *,
        history: pd.DataFrame | None, made: date, time: str | None = None,
    ) -> None:  # fmt: skip
        """Write the page of a leaderboard, made on a day, of ``battles`` (None where it rests on more than votes).

        ``options`` of `leaderboard` made it: with covariates the same without them stands beside it. ``history`` are
        dated boards, this one among them, where they are kept, and ``time`` is the column of the times of votes.
        """
        from jaxeval.data.battles import Battles
        from jaxeval.pages import sharing
        from jaxeval.pages.page import data_of_page, write_page
        from jaxeval.ratings.leaderboard import leaderboard

        results = [table]
        if options.get("features") and battles is not None and (self.path or self.space):
            plain = {name: value for name, value in options.items() if name not in _OF_FEATURES}
            without = leaderboard(battles, **plain)
            results.append(without if reading is None else reading.with_metadata(without))
        votes = battles if type(battles) is Battles else None  # no rankings
        ends = None
        if time is not None and battles is not None:
            from jaxeval.audits.periods import vote_seconds

            ends = datetime.fromtimestamp(int(vote_seconds(battles, time).max()), UTC).date()
        data = data_of_page(
            results, title=self.title, made=made, battles=votes, history=history, ends=ends,
            labels=dict(text.split("=", 1) for text in self.labels_of_groups), features=options.get("features") or (),
        )  # fmt: skip
        about = f"{data['title']} · {data['facts']}"
        if self.path is not None:
            write_page(data, self.path)
            tell(f"wrote {self.path}")
        if self.card is not None:
            sharing.save_card(table, self.card, data["answer"], about)
            tell(f"drew {self.card}")
        if self.badge is not None:
            sharing.save_badge(table, self.badge, data["title"])
            tell(f"wrote {self.badge}")
        if self.space is None:
            return
        folder = sharing.checked_space(self.space)
        folder.mkdir(exist_ok=True)
        write_page({**data, "image": sharing.card_address(self.space)}, folder / "index.html")
        sharing.save_card(table, folder / "card.png", data["answer"], about)
        sharing.write_space(table, folder, self.space, data)
        if "category" not in table:
            from jaxeval.show.exports import write_eval_results

            write_eval_results(
                table, folder / "eval_results", dataset=self.space, task="elo", date=made.isoformat(),
                source=f"https://huggingface.co/spaces/{self.space}", notes=f"Elo rating; jaxeval {data['version']}",
            )  # fmt: skip
        tell(f"wrote the Space {self.space} to {folder}/")
        if self.upload:
            tell(f"uploaded {sharing.upload_space(folder, self.space)}")


class Blank(Options):
    """The page without a board: the options."""

    blank: Page = option(
        None, "Write a page that reads a CSV, TSV or JSON lines file of votes in the reader's browser and rates it.",
        "FILE", required=True,
    )  # fmt: skip


@command("page", Command)
def page(*, options: Blank) -> None:
    """Write a page that rates votes without an install: readers drop a file on it, and nothing leaves their browser.

    The page finds the columns, gives ratings, intervals, rank ranges, tiers and the answer, and saves itself as the
    page of their board.
    """
    from jaxeval.pages.page import write_blank

    write_blank(options.blank)
    tell(f"wrote {options.blank}")
