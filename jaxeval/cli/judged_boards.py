"""A leaderboard of few human votes and many verdicts of a judge: its options, and the boards that they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.board_options import boards_by
from jaxeval.data.remote_names import FileName
from jaxeval.options.columns import Calls, File
from jaxeval.options.field import Options, again, option

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
    item: str | None = again(Calls, "item")
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
