"""Leaderboards that rest on more than their votes: on verdicts of a judge, or on other categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.board_options import boards_by
from jaxeval.data.remote_names import FileName
from jaxeval.options.boards import SliceOptions
from jaxeval.options.columns import CallReading, File
from jaxeval.options.field import GROUPS, Options, again, option

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles
    from jaxeval.data.verdict_rows import WithoutVerdict
    from jaxeval.ratings.prediction_powered import Samples


@dataclass(frozen=True, kw_only=True)
class Judged(Options):
    """The options."""

    judged: File | None = option(
        None, "Where people's votes are few: a judge's verdicts on the same battles and on many others. They make the "
        "errors of the ratings smaller (prediction-powered), and are read like FILES. --item joins both.", "FILE",
    )  # fmt: skip
    item: str | None = again(CallReading, "item")
    lam: float | None = option(
        None, "With --judged: the judge's weight; by default the weight with the least variance.", "L", least=0, most=1
    )
    samples: Samples = option(
        "by pair", "With --judged: compare the votes with the verdicts pair by pair, or over all battles.",
        choices=("by pair", "pooled"),
    )  # fmt: skip
    without_verdict: WithoutVerdict = option(
        "error", "With --judged: what to do about votes without a verdict.", choices=("error", "drop")
    )

    @property
    def files(self) -> list[FileName]:
        """The file of verdicts, if any."""
        return [] if self.judged is None else [self.judged]

    @property
    def keep(self) -> list[str]:
        """The column of items, which both files must have.

        Raises:
            click.UsageError: there is a file of verdicts and no such column, or options without the file.
        """
        if self.judged is None:
            if self.given():
                raise click.UsageError(
                    "--item, --lam, --samples and --without-verdict need --judged, the judge's verdicts"
                )
            return []
        if self.item is None:
            raise click.UsageError(
                "--judged needs --item, the column by which a vote finds the judge's verdict on the same battle"
            )
        return [self.item]

    def boards(
        self, human: Battles, verdicts: Battles, asked: Options, options: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """The resampled boards, and the options of their table.

        Raises:
            click.UsageError: an option that they do not have.
        """
        from jaxeval.data.verdict_rows import join_verdicts
        from jaxeval.ratings.prediction_powered import prediction_powered

        samples = join_verdicts(human, verdicts, str(self.item), without_verdict=self.without_verdict)
        further: dict[str, Any] = self.arguments("lam", "samples")
        return boards_by(prediction_powered, samples, "--judged", asked, options, **further)


@dataclass(frozen=True, kw_only=True)
class Borrowing(Options):
    """The options."""

    section = GROUPS

    borrow: bool = option(
        False, "With --by: boards of small groups borrow from the other battles as much as their own ask for."
    )
    prior_spread: float | None = option(
        None, "With --borrow: the scale of how far ratings may differ from group to group; by default 100.", "ELO",
        least=0, open=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.prior_spread is not None and not self.borrow:
            raise click.UsageError("--prior-spread needs --borrow")

    def boards(self, battles: Battles, asked: SliceOptions, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The boards of all groups, and the options of their table.

        Raises:
            click.UsageError: an option that they do not have.
        """
        from jaxeval.ratings.small_categories import small_categories

        if not asked.by:
            raise click.UsageError("--borrow needs --by: it is about groups of battles")
        further = {} if self.prior_spread is None else {"prior_spread": self.prior_spread}
        return boards_by(small_categories, [battles], "--borrow", asked, options, **further)
