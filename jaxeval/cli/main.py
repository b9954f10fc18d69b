"""The command line: ``jaxeval leaderboard, compare-boards, agreement, soft-elo, judge, anchored, meta`` and others."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval._version import __version__
from jaxeval.cli.agreement import agreement
from jaxeval.cli.anchored import anchored
from jaxeval.cli.audit import audit
from jaxeval.cli.board_options import covariates_of, gauge_of, gauge_option, pair_options, response_options
from jaxeval.cli.borrowed_boards import borrow_options, borrowed_boards
from jaxeval.cli.commands import Commands
from jaxeval.cli.compare_boards import compare_boards
from jaxeval.cli.compare_scores import compare_scores, plan_scores
from jaxeval.cli.compiling import CompilingCommand, kept_programs
from jaxeval.cli.declared import options_as
from jaxeval.cli.headline import horizons, index
from jaxeval.cli.html_pages import HtmlPage
from jaxeval.cli.judge import judge
from jaxeval.cli.judged_boards import Judged
from jaxeval.cli.meta import meta
from jaxeval.cli.next_battles import next_battles
from jaxeval.cli.outputs import OutputFile, Outputs, check_outputs, output_options, present
from jaxeval.cli.panel_options import PanelReading, panel_options
from jaxeval.cli.processes import first_goes_on, gather_files
from jaxeval.cli.publishing import Publishing
from jaxeval.cli.reading import Reading, competitor_option, reading_options
from jaxeval.cli.run_options import (
    InputFile,
    base_option,
    by_option,
    choice_option,
    cluster_option,
    column_options,
    draw_options,
    features_option,
    level_option,
    ridge_option,
    run_options,
    scheme_option,
    several_options,
    simultaneous_option,
    strata_option,
    top_option,
)
from jaxeval.cli.scores import scores
from jaxeval.cli.simulate import simulate
from jaxeval.cli.soft_elo import soft_elo_commands
from jaxeval.cli.terminal import tell
from jaxeval.data.remote_files import remove_copies
from jaxeval.data.remote_names import FileName
from jaxeval.wording import Noun, counted

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.cli.state import State
    from jaxeval.data.battles import Battles
    from jaxeval.ratings.gauge import Gauge

_FIGURE_ENDINGS = (".png", ".svg", ".pdf")


#: Options of a leaderboard that every command printing one has.
_board_options = several_options(
    draw_options(fewest=1),
    level_option("Rank spreads have the same level; tiers have it for all models at once."),
    simultaneous_option(),
    click.option("--min-votes", "min_battles", default=None, type=click.IntRange(0), metavar="N",
                 help="Models with fewer votes stand apart. They are rated with the others, but take no rank. They "
                 "come last, and rank spreads, tiers and figures leave them out. By default the data decide which "
                 "models have too few; 0 ranks every model."),
    choice_option("--interval", "auto", "percentile", "basic", "wald",
                  text="Intervals from the resamples, or (wald) from the standard errors of the fit. By default models "
                  "under 200 votes have those of a penalised fit, the others percentiles."),
    ridge_option(),
    gauge_option("Ranks and tiers do not depend on it."),
    base_option(),
    run_options,
    top_option(),
    output_options,
    options_as("publishing", Publishing),
    click.option("--plot", type=OutputFile(_FIGURE_ENDINGS), help="Draw the ratings: .png, .svg or .pdf."),
    options_as("html", HtmlPage),
)  # fmt: skip

#: What is rated on its own, and what is drawn together.
_group_options = several_options(
    by_option("Each is rated on its own; may be repeated. COL may be a path such as meta.turns. Where it holds lists "
              "or flags, a vote counts in each of its groups, and in overall.", multiple=True),
    click.option("--min-slice-battles", default=0, type=click.IntRange(0), metavar="N",
                 help="Groups of --by with fewer battles are listed, and not rated."),
    click.option("--max-slices", default=500, type=click.IntRange(1), metavar="N",
                 help="Most groups of --by; more are refused."),
    cluster_option("A resample draws whole clusters."),
)  # fmt: skip

#: click's own completion, and the cache of `jaxeval.cli.compile_cache`.
_EPILOG = """\b
A FILE may also lie elsewhere; this needs the extra jaxeval[remote]:
  hf://datasets/OWNER/NAME/FILE    https://HOST/FILE    s3://BUCKET/FILE

\b
The shell completes commands and options after
  eval "$(_JAXEVAL_COMPLETE=bash_source jaxeval)"    (or zsh_source)
  _JAXEVAL_COMPLETE=fish_source jaxeval | source

Compiled programs are kept in your cache folder. JAXEVAL_CACHE names another folder, or is "off"."""


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110},
    epilog=_EPILOG,
)
@click.version_option(__version__, prog_name="jaxeval")
def main() -> None:
    """Leaderboards of language models from votes and judges' scores, with honest uncertainty."""


main.add_command(agreement)
main.add_command(soft_elo_commands)
main.add_command(judge)
main.add_command(anchored)
main.add_command(meta)
main.add_command(compare_boards)
main.add_command(audit)
main.add_command(scores)
main.add_command(compare_scores)
main.add_command(plan_scores)
main.add_command(next_battles)
main.add_command(horizons)
main.add_command(index)
main.add_command(simulate)


@main.command(cls=CompilingCommand, renamed={"--benchmark": "--eval-benchmark"})
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, allow_dash=True, path_type=Path))
@_group_options
@strata_option("battles")
@scheme_option()
@reading_options
@options_as("judge", Judged)
@borrow_options
@features_option()
@click.option(
    "--style",
    type=click.Choice(["arena"]),
    help="Control for style as the Arena does: tokens, headers, lists and bold text, from the columns of its files. "
    "Each is (a - b) / (a + b), standardised.",
)
@click.option("--position", is_flag=True, help="Control for the advantage of side A.")
@click.option(
    "--neutral", metavar="COL", help="With --position: column that is true where neither side has the advantage."
)
@click.option("--same-group", multiple=True, metavar="COL:A:B",
              help="Control for the side whose group (column A or B) is the battle's own (COL), such as a judge's "
              "family; may be repeated.")  # fmt: skip
@click.option("--feature-ridge", default=0.0, type=click.FloatRange(0), metavar="R",
              help="Penalty on the squares of the coefficients of --features.")  # fmt: skip
@click.option("--raw-features", is_flag=True, help="Do not divide features by their root mean square.")
@response_options
@click.option("--effect", type=OutputFile(_FIGURE_ENDINGS), help="Draw how far control moves each model.")
@click.option("--state", type=OutputFile((".parquet",)), metavar="FILE",
              help="Add FILES to the battles that earlier runs saved in this file, rate all of them, and save "
              "them. Files that are in it already add nothing. Runs at the same time wait for each other. To rate a "
              "state alone, name it as FILES.")  # fmt: skip
@click.option("--id", "vote_id", metavar="COL",
              help="Column that names a vote. Each vote counts once, in whatever files it comes again. A state that "
              "was begun with it keeps to it.")  # fmt: skip
@pair_options
@_board_options
def leaderboard(
    *,
    files: tuple[FileName, ...],
    by: tuple[str, ...],
    cluster: str | None,
    strata: str | None,
    scheme: str,
    features: str | None,
    style: str | None,
    position: bool,
    neutral: str | None,
    same_group: tuple[str, ...],
    effect: Path | None,
    state: Path | None,
    vote_id: str | None,
    raw_features: bool,
    reading: Reading,
    judge: Judged,
    borrow: bool,
    prior_spread: float | None,
    **board: Any,
) -> None:
    """Rate the models in FILES or folders of votes (.parquet, .csv, .jsonl, .json, .feather, .xlsx, or - for a stream).

    Votes have the columns model_a, model_b and winner, or those that options name. Tables of counts have model_a,
    model_b, wins_a, ties and wins_b. Files may be larger than memory, and may lie elsewhere, such as
    hf://datasets/OWNER/NAME/data/*.parquet.
    """
    from jaxeval.cli.state import State
    from jaxeval.data.features import arena_style, arena_style_columns
    from jaxeval.data.file_lists import files_of
    from jaxeval.data.table_files import head_names
    from jaxeval.execution.processes import n_sharing

    if cluster and scheme != "multinomial":
        raise click.UsageError("--cluster draws clusters with replacement: leave --scheme out")
    if strata and scheme == "poisson":
        raise click.UsageError(
            "--scheme poisson draws every battle on its own, and --strata fixes how many: leave one out"
        )
    covariates, of_covariates = covariates_of(features, position, neutral, same_group)
    if style is not None:
        covariates += arena_style()
        of_covariates += arena_style_columns(head_names(files_of(files)[0]))
    if effect is not None and (not covariates or by):
        raise click.UsageError(
            "--effect draws what control does to one board: it needs --features or --style, and does not go with --by"
        )
    if by and board["publishing"].eval_results:
        raise click.UsageError("--eval-results writes one value for each model, and does not go with --by")
    if reading.missing == "label" and not by:
        raise click.UsageError("--missing label needs --by; without groups say drop")
    if prior_spread is not None and not borrow:
        raise click.UsageError("--prior-spread needs --borrow")
    if raw_features and not features:
        raise click.UsageError("--raw-features needs --features")
    written = {
        "--out": board["outputs"].out,
        "--plot": board["plot"],
        "--effect": effect,
        "--state": state,
        "--html": board["html"].path,
    }
    check_outputs(written, [*files, *reading.files, *judge.files])
    groups = [*by, *(name for name in (cluster, strata) if name)]
    keep = list(dict.fromkeys([*groups, *of_covariates, *judge.keep]))

    def read(paths: Sequence[FileName], more: Sequence[str] = ()) -> Battles:
        return reading.read(paths, list(dict.fromkeys([*keep, *more])))

    board |= {"missing": reading.missing if by else "error", "reading": reading}
    board |= {"features": covariates, "normalize": not raw_features}
    board |= {"by": list(by) or None, "cluster": cluster, "strata": strata, "scheme": scheme}
    if vote_id is not None and (reading.count is not None or judge.judged is not None or n_sharing() > 1):
        raise click.UsageError("--id does not go with --count, --judged or --distributed: leave one out")
    if judge.judged is not None:
        if state is not None or effect is not None or n_sharing() > 1 or borrow:
            raise click.UsageError(
                "--judged does not go with --state, --effect, --borrow or --distributed: leave one out"
            )
        human, verdicts = (reading.chosen(read(paths)) for paths in (files, [judge.judged]))
        _rate(human, boards=lambda options: judge.boards(human, verdicts, options), **board)
        return
    if n_sharing() > 1:
        if state is not None or effect is not None or borrow:
            raise click.UsageError("--distributed does not go with --state, --effect or --borrow: leave one out")
        _rate(reading.chosen(gather_files(files, read)), **board)
        return
    with contextlib.nullcontext() if state is None else State.opened(state, files) as opened:
        if opened is not None:
            battles = reading.remembering(reading.named(opened.with_added(read, vote_id)))
        else:
            battles = read(files) if vote_id is None else _each_once(read(files, (vote_id,)), vote_id)
        chosen = reading.chosen(battles)
        made = (lambda options: borrowed_boards(chosen, prior_spread, options)) if borrow else None
        history = _rate(chosen, boards=made, state=opened, **board)
        if effect is not None:
            _draw_effect(chosen, effect, board)
        if opened is not None:
            # The state comes last: a run that ends before that is made again, and finds everything to do.
            if history is not None:
                opened.save_history(history)
            opened.save(battles)


@main.command(cls=CompilingCommand, renamed={"--benchmark": "--eval-benchmark"})
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, path_type=Path))
@column_options(
    ranking="Column of rankings: lists; or names of rankings, where items and ranks have columns. [ranking]",
    item="Column of what is ranked. [item]",
    rank="Column of ranks, 1 for the best. Items of the same rank tie. [rank]",
    weight="Column of weights.",
    count="Column of counts: how many equal rows a row stands for.",
)
@_group_options
@strata_option("rankings")
@scheme_option()
@choice_option("--missing", "error", "drop", "label",
               text="What to do about gaps. error: refuse rankings without a value of --by. drop: they are in no "
               "group. label: they are a group of their own.")  # fmt: skip
@competitor_option()
@_board_options
def rankings(
    *,
    files: tuple[FileName, ...],
    ranking: str | None,
    item: str | None,
    rank: str | None,
    weight: str | None,
    count: str | None,
    competitor: Noun | None,
    by: tuple[str, ...],
    **board: Any,
) -> None:
    """Rate the items of rankings in FILES or folders, by the model of Plackett and Luce.

    A ranking is a list with the best item first, such as a > b = c or a list in JSON; or it is several rows, each with
    an item and its rank. The table is that of `leaderboard`, with rankings in place of votes.
    """
    from jaxeval.data.rankings import read_rankings

    if by and board["publishing"].eval_results:
        raise click.UsageError("--eval-results writes one value for each item, and does not go with --by")
    check_outputs(_written(board), files)
    columns: Any = {"ranking": ranking, "item": item, "rank": rank, "weight": weight, "count": count,
                    "competitor": competitor}  # fmt: skip
    found = read_rankings(files, **{name: column for name, column in columns.items() if column is not None})
    _rate(found.rows, by=list(by) or None, **board)


@main.command(cls=CompilingCommand, renamed={"--benchmark": "--eval-benchmark"})
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, path_type=Path))
@panel_options
@_group_options
@strata_option("verdicts")
@scheme_option()
@reading_options
@_board_options
def panel(
    *,
    files: tuple[FileName, ...],
    by: tuple[str, ...],
    cluster: str | None,
    strata: str | None,
    reading: Reading,
    panel: PanelReading,
    **board: Any,
) -> None:
    """Rate the models in FILES by a panel of judges without gold labels, and say how far each judge follows them.

    FILES have a row for each verdict, with the columns judge, item, model_a, model_b and verdict; or a row for each
    battle and a column of verdicts for each of --judges; or scores; or what judges printed, in a column such as output.
    Items are resampled whole. Side A is the one that was shown first.
    """
    if cluster and panel.rows:
        raise click.UsageError("--rows resamples verdicts one by one, and --cluster whole clusters: leave one out")
    if by and board["publishing"].eval_results:
        raise click.UsageError("--eval-results writes one value for each model, and does not go with --by")
    check_outputs(
        {"--out": board["outputs"].out, "--plot": board["plot"], "--html": board["html"].path}, [*files, *reading.files]
    )
    verdicts = reading.chosen(panel.read(files, reading, [*by, *(name for name in (cluster, strata) if name)]))
    board |= {"missing": reading.missing if by else "error", "reading": reading}
    board |= {"by": list(by) or None, "cluster": cluster, "strata": strata}
    _rate(verdicts, boards=lambda options: panel.panels(verdicts, options), **board)


def _each_once(battles: Battles, vote_id: str) -> Battles:
    """The votes, without those whose id is met again."""
    from jaxeval.data.vote_ids import votes_once

    once, told = votes_once(battles, vote_id)
    for sentence in told:
        tell(sentence)
    assert once is not None  # there is one, and the first of an id counts
    return once


def _written(board: Mapping[str, Any]) -> dict[str, Path | None]:
    """The files that every leaderboard may be written to, by their options."""
    return {"--out": board["outputs"].out, "--plot": board["plot"], "--html": board["html"].path}


def _draw_effect(battles: Battles, path: Path, board: dict[str, Any]) -> None:
    from jaxeval.plots.boards import plot_style_effect
    from jaxeval.plots.style import save_figure
    from jaxeval.ratings.style_effect import style_effect

    names = ["features", "normalize", "feature_ridge", "ties", "link", "n_resamples", "seed", "scheme", "cluster",
             "strata", "level", "ridge", "base", "reweight", "min_battles"]  # fmt: skip
    options = {name: board[name] for name in names}
    table = style_effect(battles, gauge=gauge_of(battles, board["gauge"]), **options)
    save_figure(plot_style_effect(table), path, dpi=160)
    tell(f"drew {path}")


_size_options = several_options(
    click.option("--battles", default=25_000, type=click.IntRange(1), metavar="N", help="How many votes."),
    click.option("--models", default=55, type=click.IntRange(2), metavar="M", help="How many models."),
)


@main.command(cls=CompilingCommand, renamed={"--benchmark": "--eval-benchmark"}, first=("--models",))
@_size_options
@pair_options
@_board_options
def demo(battles: int, models: int, plot: Path | None, seed: int, **board: Any) -> None:
    """Simulate votes, rate them, print the leaderboard and draw it to leaderboard.png."""
    from jaxeval.data.simulate.votes import simulate_battles

    tell(f"simulating {counted(battles, 'vote')} between {counted(models, 'model')}")
    simulated = simulate_battles(battles, models, seed=seed)
    _rate(simulated, seed=seed, plot=plot or Path("leaderboard.png"), **board)


def _rate(
    battles: Battles,
    *,
    top: int | None,
    outputs: Outputs,
    publishing: Publishing,
    plot: Path | None,
    html: HtmlPage,
    gauge: Gauge,
    reading: Reading | None = None,
    state: State | None = None,
    boards: Callable[[dict[str, Any]], tuple[Any, dict[str, Any]]] | None = None,
    **options: Any,
) -> pd.DataFrame | None:
    """Print, write and draw the table of ``battles``, or of the ``boards`` that somebody makes of the options.

    Returns:
        The dated boards, this one among them, where there is a state.
    """
    from jaxeval.ratings.leaderboard import leaderboard
    from jaxeval.show.boards import leaderboard_answer

    given: Any = battles
    options |= {"gauge": gauge_of(battles, gauge), "progress": outputs.progress}
    if boards is not None:
        given, options = boards(options)
    table = leaderboard(given, **options)
    first_goes_on()
    if reading is not None:
        table = reading.with_metadata(table)
    if plot is not None:
        from jaxeval.plots.leaderboard import save_leaderboard

        save_leaderboard(table, plot)
        tell(f"drew {plot}")
    history = None if state is None else state.history(table, publishing.day)
    if html.path is not None:
        html.write(table, battles if boards is None else None, options, reading, history=history, made=publishing.day)
    publishing.publish(table)
    answer = leaderboard_answer(table, top, () if state is None else state.looked_at_again(table))

    def figures() -> dict[str, Any]:
        from jaxeval.plots.leaderboard import plot_leaderboard

        return {"leaderboard": plot_leaderboard(table)}

    present(answer._replace(tables=publishing.tables(answer.tables), figures=figures), outputs)
    return history


def run() -> None:
    """`main` as a process of its own, which Ctrl-C ends at once: what XLA still computes does not outlive an exit."""
    # Nearly all objects that imports and tracing make stay alive. To look for garbage among them after every 700 new
    # ones, as Python does, takes a seventh of a small board's time.
    gc.set_threshold(100_000)
    try:
        code = main(standalone_mode=False, obj=kept_programs)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        remove_copies()
        tell("Aborted!")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, a broken pipe, none
            stream.flush()
    os._exit(130)


if __name__ == "__main__":
    run()
