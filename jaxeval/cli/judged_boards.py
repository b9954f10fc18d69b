"""A leaderboard of few human votes and many verdicts of a judge: its options, and the boards that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.board_options import check_without
from jaxeval.cli.declared import option
from jaxeval.cli.run_options import FILE
from jaxeval.data.remote_names import FileName

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles
    from jaxeval.data.verdict_rows import WithoutVerdict
    from jaxeval.ratings.prediction_powered import Samples

#: Options of `leaderboard` that such boards do not have, and what each is without.
_WITHOUT: Mapping[str, Any] = {
    "features": [], "feature_ridge": 0.0, "ties": "half", "link": "logit", "penalty": "auto", "reweight": False,
    "method": "auto", "strata": None,
}  # fmt: skip
_SHOWN = ("level", "interval", "min_battles", "simultaneous_ranks")
_OF_BOARD = (
    "n_resamples", "seed", "scheme", "cluster", "by", "ridge", "base", "max_slices", "min_slice_battles",
    "memory_limit", "checkpoint",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The options."""

    judged: FileName | None = option(
        type=FILE,
        metavar="FILE",
        help="Where people's votes are few: a judge's verdicts on the same battles and on many others. They make the "
        "errors of the ratings smaller (prediction-powered), and are read like FILES.",
    )
    item: str | None = option(
        metavar="COL", help="Column of items: prompts, questions, tasks. With --judged: by it a vote finds its verdict."
    )
    lam: float | None = option(
        type=click.FloatRange(0, 1),
        metavar="L",
        help="With --judged: the judge's weight; by default the weight with the least variance.",
    )
    samples: Samples = option(
        choices=("by pair", "pooled"),
        help="With --judged: compare the votes with the verdicts pair by pair, or over all battles.",
    )
    without_verdict: WithoutVerdict = option(
        choices=("error", "drop"), help="With --judged: what to do about votes without a verdict."
    )  # fmt: skip

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
            if (self.item, self.lam, self.samples, self.without_verdict) != (None, None, "by pair", "error"):
                raise click.UsageError(
                    "--item, --lam, --samples and --without-verdict need --judged, the judge's verdicts"
                )
            return []
        if self.item is None:
            raise click.UsageError(
                "--judged needs --item, the column by which a vote finds the judge's verdict on the same battle"
            )
        return [self.item]

    def boards(self, human: Battles, verdicts: Battles, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The resampled boards, and the options of their table.

        Raises:
            click.UsageError: an option that they do not have.
        """
        from jaxeval.data.verdict_rows import join_verdicts
        from jaxeval.ratings.prediction_powered import prediction_powered

        check_without("--judged", _WITHOUT, options)
        samples = join_verdicts(human, verdicts, str(self.item), without_verdict=self.without_verdict)
        own: Any = {name: options[name] for name in (*_OF_BOARD, "gauge", "progress", "missing")}
        boards = prediction_powered(*samples, self.lam, **own, samples=self.samples)
        return boards, {name: options[name] for name in _SHOWN}
