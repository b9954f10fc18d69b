"""Leaderboards of categories that borrow from the other battles: their options, and the boards that they ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.board_options import check_without
from jaxeval.cli.run_options import several_options

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles

#: Options of `leaderboard` that such boards do not have, and what each is without.
_WITHOUT: Mapping[str, Any] = {
    "features": [], "feature_ridge": 0.0, "ties": "half", "link": "logit", "penalty": "auto", "reweight": False,
    "method": "auto", "strata": None, "ridge": 0.0, "scheme": "multinomial", "memory_limit": None,
    "checkpoint": None,
}  # fmt: skip
_SHOWN = ("level", "interval", "min_battles", "simultaneous_ranks")
_OF_BOARD = (
    "n_resamples", "seed", "cluster", "gauge", "base", "max_slices", "min_slice_battles", "missing", "progress",
)  # fmt: skip

borrow_options = several_options(
    click.option("--borrow", is_flag=True,
                 help="With --by: boards of small groups borrow from the other battles as much as their own ask for."),
    click.option("--prior-spread", type=click.FloatRange(0, min_open=True), metavar="ELO",
                 help="With --borrow: the scale of how far ratings may differ from group to group; by default 100."),
)  # fmt: skip


def borrowed_boards(
    battles: Battles, prior_spread: float | None, options: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The boards of all groups, and the options of their table.

    Raises:
        click.UsageError: an option that they do not have.
    """
    from jaxeval.ratings.small_categories import small_categories

    if options["by"] is None:
        raise click.UsageError("--borrow needs --by: it is about groups of battles")
    check_without("--borrow", _WITHOUT, options)
    own: Any = {name: options[name] for name in _OF_BOARD}
    if prior_spread is not None:
        own["prior_spread"] = prior_spread
    boards = small_categories(battles, options["by"], **own)
    return boards, {name: options[name] for name in _SHOWN}
