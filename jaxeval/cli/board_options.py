"""Options of boards of battles that several commands have, and what they say in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from inspect import signature
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.terminal import named_model
from jaxeval.options.columns import Pair
from jaxeval.options.field import FIT, Options, again, option
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions, Share

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles
    from jaxeval.data.features import FeatureLike
    from jaxeval.options.boards import Gauge


class Covariates(Options):
    """What a board controls for."""

    section = FIT

    features: str | None = option(
        None, "Columns to control for: a column of differences (side A minus side B), or two columns as A:B.", "A,B"
    )


#: Options of a table of any boards.
_OF_TABLE = ("level", "interval", "min_battles", "simultaneous_ranks")


class GoalOptions(Options):
    """What battles should tell."""

    k: int | None = option(None, "Number of battles.", "K", least=1)
    width: tuple[float, ...] = option(
        (), "In place of --k: as many battles as it takes for intervals of this mean width; with --plan it may be "
        "repeated.", "ELO", least=0, open=True,
    )  # fmt: skip
    goal: str | None = option(
        None, "What the battles should tell: all ratings (board; random pairs do as well if all have as many votes), "
        "those of the best (top), a difference (pair), or one rating (newcomer). [the one that --top-size, --pair or "
        "--newcomer is about, else board]", choices=("board", "top", "pair", "newcomer"),
    )  # fmt: skip
    top: int | None = option(
        None, "Number of models in the top. By default 10 with --goal top.", "K", flag="--top-size", least=2
    )
    pair: Pair | None = option(None, "The difference of two models.", "A B")
    newcomer: str | None = option(
        None, "The rating of one model, which alone meets others; the files need not hold it.", "NAME"
    )
    random: float = option(
        0.2, "Share of battles between random pairs, which keep all models connected.", "SHARE", least=0, most=1
    )
    level: Share = again(ResamplingOptions, "level")
    seed: int = again(ResamplingOptions, "seed")

    def __post_init__(self) -> None:
        if self.top is not None and self.goal not in (None, "top"):
            raise click.UsageError(f"--top-size is about --goal top, and the goal is {self.goal}: leave one out")


class VotePlan(Options):
    """How many votes are needed."""

    plan: bool = option(
        False, "Print no list of battles, but how many votes --width and --difference take, and what --votes can tell."
    )
    difference: tuple[float, ...] = option(
        (), "With --plan: how many votes tell apart two models that differ by so much; may be repeated.", "ELO",
        least=0, open=True,
    )  # fmt: skip
    votes: tuple[int, ...] = option((), "With --plan: what N more votes can tell; may be repeated.", "N", least=1)
    power: Share | None = option(None, "Chance to tell them apart. [0.8]", "P")


def refuse_beside(flag: str, flags: Mapping[str, str], has: Set[str]) -> None:
    """Refuse options, by name and flag, that what ``flag`` makes does not have.

    Raises:
        click.UsageError: one was given.
    """
    for name, other in flags.items():
        if name not in has:
            raise click.UsageError(f"{other} and {flag} do not go together: leave one out")


def boards_by(
    estimator: Callable[..., Any], data: Sequence[Any], flag: str, typed: Options, options: dict[str, Any],
    **further: Any,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Return the boards that an estimator makes of those ``options`` that it takes, and the options of their table.

    Raises:
        click.UsageError: options were ``typed`` that it does not take, and ``flag`` chose it.
    """
    takes = {*signature(estimator).parameters}
    flags = typed.given() | ({"features": "--features"} if options.get("features") else {})
    refuse_beside(flag, flags, takes.union(_OF_TABLE))
    arguments = {name: value for name, value in options.items() if name in takes}
    return estimator(*data, **{**arguments, **further}), {name: options[name] for name in _OF_TABLE}


def check_draws(options: DrawnTogether) -> None:
    """Refuse ways to draw that do not go together."""
    if options.cluster and options.scheme != "multinomial":
        raise click.UsageError("--cluster draws clusters with replacement: leave --scheme out")
    if options.strata and options.scheme == "poisson":
        raise click.UsageError(
            "--scheme poisson draws every battle on its own, and --strata fixes how many: leave one out"
        )


def covariates_of(
    names: str | None, position: bool = False, neutral: str | None = None, same_groups: tuple[str, ...] = ()
) -> tuple[list[FeatureLike], list[str]]:
    """Return the covariates, and the columns that they need."""
    from jaxeval.data.features import position_advantage, same_group

    if neutral and not position:
        raise click.UsageError("--neutral says where --position does not hold: it needs --position")
    pairs = _split(names.split(","), "--features takes columns A,B or pairs of columns A:B", 1, 2) if names else []
    groups = _split(same_groups, "--same-group takes three columns COL:A:B", 3, 3)
    features: list[FeatureLike] = [parts[0] if len(parts) == 1 else (parts[0], parts[1]) for parts in pairs]
    features += [position_advantage(neutral)] if position else []
    features += [same_group(*parts) for parts in groups]
    return features, [name for parts in [*pairs, *groups, [neutral] if neutral else []] for name in parts]


def _split(texts: Sequence[str], takes: str, least: int, most: int) -> list[list[str]]:
    """Return columns of each of ``texts``, joined by colons."""
    columns = [[part.strip() for part in text.split(":")] for text in texts]
    if any(not least <= len(parts) <= most or not all(parts) for parts in columns):
        raise click.UsageError(f"{takes}, got {','.join(texts)!r}")
    return columns


def gauge_of(battles: Battles, gauge: Gauge) -> Gauge:
    """Return the gauge of the option, an anchor by the name that the battles have for it."""
    return (named_model(battles.models, str(gauge[0])), gauge[1]) if isinstance(gauge, tuple) else gauge
