"""Options of boards of battles that several commands have, and what they say in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.run_options import Decorator, choice_option, more, several_options
from jaxeval.cli.terminal import named_model

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles
    from jaxeval.data.features import FeatureLike
    from jaxeval.ratings.gauge import Gauge


class GaugeOption(click.ParamType):  # type: ignore[type-arg]
    """mean, votes, or MODEL=RATING."""

    name = "gauge"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The gauge as `bootstrap` takes it."""
        if value in ("mean", "votes") or isinstance(value, tuple):
            return value
        model, equals, rating = value.rpartition("=")
        try:
            return model, float(rating if equals else "")
        except ValueError:
            self.fail(f"{value!r} is not mean, votes, or MODEL=RATING", param, ctx)


def gauge_option(text: str, metavar: str = "mean|votes|MODEL=RATING") -> Decorator:
    """``--gauge``."""
    first = "What is held fixed: the mean of the ratings, their mean by votes, or the rating of a model."
    return click.option("--gauge", default="mean", type=GaugeOption(), metavar=metavar, help=more(first, text))


def ties_option(text: str | None = None) -> Decorator:
    """``--ties``."""
    return choice_option(
        "--ties", "half", "davidson", "rao_kupper", text=more("Ties: half a win each, or a model of ties.", text)
    )


def link_option() -> Decorator:
    """``--link``."""
    return choice_option(
        "--link", "logit", "probit",
        text="From strengths to the probability of a win: Bradley-Terry (logit), or Thurstone's Case V (probit).",
    )  # fmt: skip


#: Options of fits of battles between two models.
pair_options = several_options(
    choice_option("--penalty", "auto", "none", "firth",
                  text="Firth's bias reduction, for models with few votes: of all ratings (firth), or by default of "
                  "the intervals of models under 200 votes alone."),
    click.option("--reweight", is_flag=True,
                 help="Inverse-pair-frequency weights: a battle counts 1 / max(battles of its pair, 50)."),
    choice_option("--method", "auto", "dense", "sparse",
                  text="Tables of all pairs of models (dense), or the graph of the pairs that met (sparse), for 1,000 "
                  "models or more."),
)  # fmt: skip

#: How a fit takes results: ties, and the link.
response_options = several_options(
    ties_option("Ratings of a model of ties are on another scale (Davidson: log-odds of decisive battles). Beside them "
                "stand ratings by expected score, where a tie is half a win."),
    link_option(),
)  # fmt: skip


def check_without(flag: str, without: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Refuse options of `leaderboard` that boards of ``flag`` do not have, by what each is ``without`` it.

    Raises:
        click.UsageError: one was given.
    """
    for name, value in without.items():
        if options[name] != value:
            raise click.UsageError(f"--{name.replace('_', '-')} and {flag} do not go together: leave one out")


def covariates_of(
    names: str | None, position: bool, neutral: str | None, same_groups: tuple[str, ...]
) -> tuple[list[FeatureLike], list[str]]:
    """The covariates, and the columns that they need."""
    from jaxeval.data.features import position_advantage, same_group

    if neutral and not position:
        raise click.UsageError("--neutral says where --position does not hold: it needs --position")
    pairs = _split(names.split(","), "--features takes columns A,B or pairs of columns A:B", 1, 2) if names else []
    groups = _split(same_groups, "--same-group takes three columns COL:A:B", 3, 3)
    given: list[FeatureLike] = [parts[0] if len(parts) == 1 else (parts[0], parts[1]) for parts in pairs]
    given += [position_advantage(neutral)] if position else []
    given += [same_group(*parts) for parts in groups]
    return given, [name for parts in [*pairs, *groups, [neutral] if neutral else []] for name in parts]


def _split(texts: Sequence[str], takes: str, least: int, most: int) -> list[list[str]]:
    """Columns of each of ``texts``, joined by colons."""
    found = [[part.strip() for part in text.split(":")] for text in texts]
    if any(not least <= len(parts) <= most or not all(parts) for parts in found):
        raise click.UsageError(f"{takes}, got {','.join(texts)!r}")
    return found


def gauge_of(battles: Battles, gauge: Gauge) -> Gauge:
    """The gauge of the option, an anchor by the name that the battles have for it."""
    return (named_model(battles.models, str(gauge[0])), gauge[1]) if isinstance(gauge, tuple) else gauge
