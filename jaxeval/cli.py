"""The command line: ``jaxeval leaderboard, soft-elo, judge, anchored, meta, simulate`` and ``demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval._version import __version__
from jaxeval.cli_anchored import anchored
from jaxeval.cli_judge import judge
from jaxeval.cli_meta import meta
from jaxeval.cli_soft_elo import soft_elo_commands
from jaxeval.terminal import OutputFile, named_model, stdout_console

if TYPE_CHECKING:
    import pandas as pd

_TABLE_ENDINGS = (".csv", ".parquet", ".json")
_FIGURE_ENDINGS = (".png", ".svg", ".pdf")


class _Commands(click.Group):
    """Commands whose bad input is one message on standard error and exit code 1, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (ValueError, OSError) as error:
            raise click.ClickException(str(error)) from error


class _Gauge(click.ParamType):  # type: ignore[type-arg]
    """mean, votes, or MODEL=RATING."""

    name = "gauge"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value in ("mean", "votes") or isinstance(value, tuple):
            return value
        model, equals, rating = value.rpartition("=")
        try:
            return model, float(rating if equals else "")
        except ValueError:
            self.fail(f"{value!r} is not mean, votes, or MODEL=RATING", param, ctx)


def _board_options(command: Any) -> Any:
    """Options of a leaderboard that every command printing one has."""
    options = [
        click.option("--resamples", default=1000, show_default=True, type=click.IntRange(1), metavar="N"),
        click.option("--seed", default=0, show_default=True, type=click.IntRange(0), metavar="S"),
        click.option(
            "--level",
            default=0.95,
            show_default=True,
            type=click.FloatRange(0, 1, min_open=True, max_open=True),
            metavar="L",
            help="Confidence level of the intervals and, simultaneously, of the tiers.",
        ),
        click.option("--ridge", default=0.0, show_default=True, type=click.FloatRange(0), metavar="R"),
        click.option(
            "--gauge", default="mean", show_default=True, type=_Gauge(), metavar="mean|votes|MODEL=RATING",
            help="What fixes the level of the ratings.",
        ),
        click.option("--base", default=1000.0, show_default=True, help="Mean rating of the gauges mean and votes."),
        click.option("--reweight", is_flag=True, help="Inverse-pair-frequency weights, 1 / max(battles of pair, 50)."),
        click.option("--method", default="auto", show_default=True, type=click.Choice(["auto", "dense", "sparse"]),
                     help="Tables of all pairs of models, or the graph of those that met: for 1,000 models or more."),
        click.option("--top", type=click.IntRange(1), metavar="K", help="Print the first K models; by default 200."),
        click.option("--out", type=OutputFile(_TABLE_ENDINGS), help="Write the table: .csv, .parquet or .json."),
        click.option("--plot", type=OutputFile(_FIGURE_ENDINGS), help="Draw the ratings: .png, .svg or .pdf."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jaxeval")
def main() -> None:
    """Leaderboards of language models from votes and judges' scores, with honest uncertainty."""


main.add_command(soft_elo_commands)
main.add_command(judge)
main.add_command(anchored)
main.add_command(meta)


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--by", multiple=True, metavar="COL", help="Rate every group of COL on its own; may be repeated.")
@click.option("--cluster", metavar="COL", help="Resample whole clusters: prompts, voters, sessions.")
@click.option("--scheme", default="multinomial", show_default=True,
              type=click.Choice(["multinomial", "poisson", "bayesian"]))  # fmt: skip
@click.option("--model-a", default="model_a", show_default=True, metavar="COL")
@click.option("--model-b", default="model_b", show_default=True, metavar="COL")
@click.option("--winner", metavar="COL", help="Column of labels; winner, or one-hot columns, if there.")
@click.option("--target", metavar="COL", help="Column of soft targets in [0, 1] instead of labels.")
@click.option("--weight", metavar="COL", help="Column of weights.")
@click.option("--both-bad", default="half", show_default=True, type=click.Choice(["half", "drop"]),
              help="Both-bad votes: count as ties, or leave out.")  # fmt: skip
@click.option(
    "--features",
    metavar="A,B",
    help="Columns to control for: differences, side A less side B; or two columns as A:B.",
)
@click.option("--position", is_flag=True, help="Control for the advantage of side A.")
@click.option("--feature-ridge", default=0.0, show_default=True, type=click.FloatRange(0), metavar="R")
@click.option("--raw-features", is_flag=True, help="Do not divide features by their root mean square.")
@click.option("--ties", default="half", show_default=True, type=click.Choice(["half", "davidson", "rao_kupper"]),
              help="Ties: half a win, or a model of their own.")  # fmt: skip
@click.option("--effect", type=OutputFile(_FIGURE_ENDINGS), help="Draw how far control moves each model.")
@_board_options
def leaderboard(
    file: Path,
    by: tuple[str, ...],
    cluster: str | None,
    scheme: Any,
    model_a: str,
    model_b: str,
    winner: str | None,
    target: str | None,
    weight: str | None,
    both_bad: str,
    features: str | None,
    position: bool,
    effect: Path | None,
    raw_features: bool,
    **board: Any,
) -> None:
    """Rate the models in FILE (.parquet, .csv, .tsv, .jsonl): columns model_a, model_b, winner."""
    from jaxeval.readers import read_battles

    covariates, columns = _features(features, position)
    if effect is not None and (not covariates or by):
        raise click.UsageError("--effect draws what --features or --position do to one board: it has no --by")
    battles = read_battles(
        file,
        model_a=model_a,
        model_b=model_b,
        winner=winner,
        target=target,
        weight=weight,
        keep=list(dict.fromkeys([*by, *([cluster] if cluster else []), *columns])),
        both_bad=both_bad,
    )
    if cluster and scheme != "multinomial":
        raise click.UsageError("--cluster draws clusters with replacement: leave --scheme out")
    if isinstance(board["gauge"], tuple):
        name, rating = board["gauge"]
        board["gauge"] = named_model(battles.models, name), rating
    board |= {"features": covariates, "normalize": not raw_features}
    _rate(battles, by=list(by) or None, cluster=cluster, scheme=scheme, **board)
    if effect is not None:
        _draw_effect(battles, effect, cluster, {**board, "scheme": scheme})


def _features(names: str | None, position: bool) -> tuple[list[Any], list[str]]:
    """The covariates, and the columns that they need."""
    from jaxeval.features import position_advantage

    pairs = [[part.strip() for part in name.split(":")] for name in names.split(",")] if names else []
    if any(len(parts) > 2 or not all(parts) for parts in pairs):
        raise click.UsageError(f"--features takes columns A,B or pairs of columns A:B, got {names!r}")
    given: list[Any] = [parts[0] if len(parts) == 1 else tuple(parts) for parts in pairs]
    return [*given, *([position_advantage()] if position else [])], [name for parts in pairs for name in parts]


def _draw_effect(battles: Any, path: Path, cluster: str | None, board: dict[str, Any]) -> None:
    from jaxeval.style_effect import style_effect
    from jaxeval.style_plots import plot_style_effect

    names = (
        "features",
        "normalize",
        "feature_ridge",
        "ties",
        "seed",
        "scheme",
        "level",
        "ridge",
        "gauge",
        "base",
        "reweight",
    )
    options = {name: board[name] for name in names}
    table = style_effect(battles, n_resamples=board["resamples"], cluster=cluster, **options)
    plot_style_effect(table).savefig(path, dpi=160)
    click.echo(f"drew {path}", err=True)


@main.command()
@click.option("--battles", default=25_000, show_default=True, type=click.IntRange(1), metavar="N")
@click.option("--models", default=55, show_default=True, type=click.IntRange(2), metavar="M")
@click.option("--ties", default=0.25, show_default=True, type=click.FloatRange(0, 0.5), help="Tie rate of equals.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0))
@click.option("--out", required=True, type=OutputFile((".parquet", ".csv")), help="Where to write the votes.")
def simulate(battles: int, models: int, ties: float, seed: int, out: Path) -> None:
    """Write simulated arena votes, in the format that `leaderboard` reads."""
    from jaxeval.simulate import simulate_votes

    votes = simulate_votes(battles, models, tie_rate=ties, seed=seed)
    _write(votes, out)
    click.echo(f"wrote {len(votes):,} votes between {models} models to {out}")


@main.command()
@click.option("--battles", default=25_000, show_default=True, type=click.IntRange(1), metavar="N")
@click.option("--models", default=55, show_default=True, type=click.IntRange(2), metavar="M")
@_board_options
def demo(battles: int, models: int, plot: Path | None, seed: int, **board: Any) -> None:
    """Simulate votes, rate them, print the leaderboard and draw it to leaderboard.png."""
    from jaxeval.simulate import simulate_battles

    click.echo(f"simulating {battles:,} votes between {models} models", err=True)
    simulated = simulate_battles(battles, models, seed=seed)
    _rate(simulated, seed=seed, plot=plot or Path("leaderboard.png"), **board)


def _rate(
    battles: Any,
    *,
    resamples: int,
    top: int | None,
    out: Path | None,
    plot: Path | None,
    **options: Any,
) -> None:
    from jaxeval.leaderboard import leaderboard
    from jaxeval.report import print_leaderboard

    table = leaderboard(battles, n_resamples=resamples, **options)
    # Files first: what is wrong with the terminal must not cost them.
    if out is not None:
        _write(table, out)
        click.echo(f"wrote {out}", err=True)
    if plot is not None:
        from jaxeval.plots import save_leaderboard

        save_leaderboard(table, plot)
        click.echo(f"drew {plot}", err=True)
    print_leaderboard(table, stdout_console(), top)


def _write(table: pd.DataFrame, path: Path) -> None:
    import numpy as np

    ending = path.suffix.lower()
    if ending == ".csv":
        table.to_csv(path, index=False)
    elif ending == ".parquet":
        table.to_parquet(path, index=False)
    else:
        # JSON has no infinity, and null is "no interval".
        infinite = {c: np.isinf(table[c]) for c in table.select_dtypes("floating")}
        spelled = {
            c: table[c].astype(object).mask(where, np.where(table[c] > 0, "Infinity", "-Infinity"))
            for c, where in infinite.items()
            if where.any()
        }
        table.assign(**spelled).to_json(path, orient="records", indent=1)


if __name__ == "__main__":
    main()
