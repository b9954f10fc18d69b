"""``--html``: a leaderboard as a page that works offline and refits in the reader's browser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from jaxeval.cli.terminal import tell
from jaxeval.options.field import SHOWN, Options, option

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.cli.reading import BoardReading

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
