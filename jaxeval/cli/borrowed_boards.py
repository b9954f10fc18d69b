"""Leaderboards of categories that borrow from the other battles: their options, and the boards that they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.board_options import boards_by
from jaxeval.options.boards import Slices
from jaxeval.options.field import GROUPS, Options, option

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles


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

    def boards(self, battles: Battles, asked: Slices, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The boards of all groups, and the options of their table.

        Raises:
            click.UsageError: an option that they do not have.
        """
        from jaxeval.ratings.small_categories import small_categories

        if not asked.by:
            raise click.UsageError("--borrow needs --by: it is about groups of battles")
        further = {} if self.prior_spread is None else {"prior_spread": self.prior_spread}
        return boards_by(small_categories, [battles], "--borrow", asked, options, **further)
