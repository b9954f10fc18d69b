"""``jaxeval leaderboard, rankings, panel, demo``: boards of votes, rankings, a panel's verdicts, simulated votes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from jaxeval import plots
from jaxeval.cli.compare_boards import TwoBoards
from jaxeval.cli.declared import Competitor, Figure, Files, command
from jaxeval.cli.judged_boards import Borrowing, Judged, PanelReading
from jaxeval.cli.outputs import Outputs, beside, draw, present
from jaxeval.cli.processes import first_goes_on, gather_files
from jaxeval.cli.publishing import Published
from jaxeval.cli.reading import BoardReading, Covariates, check_draws, covariates_of, gauge_of, refuse_beside
from jaxeval.cli.terminal import tell
from jaxeval.data.remote_names import FileName
from jaxeval.options.boards import PairOptions, RankOptions, ScaleOptions, SliceOptions, VoteFitOptions
from jaxeval.options.columns import CallReading, FacetOptions, VoteColumns, VoteReading
from jaxeval.options.field import COLUMNS, SHOWN, again, option
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions
from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.cli.state import State as StateFile
    from jaxeval.data.battles import Battles

State: TypeAlias = Path


class BoardOptions(RankOptions, ScaleOptions, ResamplingOptions):
    """Options of every command that prints a leaderboard: arguments of `leaderboard`."""

    n_resamples: int = again(ResamplingOptions, "n_resamples", least=1)


class GroupBoard(SliceOptions, DrawnTogether, BoardOptions):
    """The same, of groups."""


class VoteBoard(VoteFitOptions, GroupBoard):
    """The same, of battles."""


class DemoBoard(PairOptions, BoardOptions, section=""):
    """The same, of simulated votes."""

    battles: int = option(25_000, "How many votes.", "N", least=1)
    models: int = option(55, "How many models.", "M", least=2)


class OfVotes(Covariates):
    """What a leaderboard of votes controls for, and what it keeps of earlier runs."""

    style: str | None = option(
        None, "Control for style as the Arena does: tokens, headers, lists and bold text, from the columns of its "
        "files. Each is (a - b) / (a + b), standardised.", choices=("arena",),
    )  # fmt: skip
    raw_features: bool = option(False, "Do not divide features by their root mean square.", needs="features")
    position: bool = option(False, "Control for the advantage of side A.")
    neutral: str | None = option(
        None, "With --position: column that is true where neither side has the advantage.", "COL",
        needs="position: it says where that does not hold",
    )  # fmt: skip
    same_group: tuple[str, ...] = option(
        (), "Control for the side whose group (column A or B) is the battle's own (COL), such as a judge's family; "
        "may be repeated.", "COL:A:B",
    )  # fmt: skip
    effect: Figure | None = option(None, "Draw how far control moves each model.", section=SHOWN)

    state: State | None = option(
        None, "Add FILES to the battles that earlier runs saved in this file, rate all of them, and save them. Files "
        "that are in it already add nothing. Runs at the same time wait for each other. To rate a state alone, name "
        "it as FILES.", "FILE", section="",
    )  # fmt: skip
    vote_id: str | None = again(TwoBoards, "id", None, more="A state that was begun with it keeps to it.", flag="--id")
    time: str | None = again(VoteColumns, "time", more="The page of --html says when they end.")


_OF_GROUPS = {"eval_results": "by"}
_APART = {**_OF_GROUPS, "effect": "by", "cost": "by", "random": "by borrow effect", "vote_id": "count judged",
          "judged": "state effect borrow"}  # fmt: skip


@command("leaderboard", apart=_APART)
def leaderboard(
    *, files: Files, options: VoteBoard, reading: BoardReading, judge: Judged, borrowing: Borrowing,
    facets: FacetOptions, further: OfVotes, published: Published, outputs: Outputs,
) -> None:  # fmt: skip
    """Rate the models in FILES or folders of votes (.parquet, .csv, .jsonl, .json, .feather, .xlsx, or - for a stream).

    Votes have the columns model_a, model_b and winner, or those that options name. Tables of counts have model_a,
    model_b, wins_a, ties and wins_b. Files may be larger than memory, and may lie elsewhere, such as
    hf://datasets/OWNER/NAME/data/*.parquet.
    """
    from jaxeval.cli.state import State as StateFile
    from jaxeval.execution.processes import n_sharing

    check_draws(options)
    covariates, of_covariates = covariates_of(
        further.features, further.position, further.neutral, further.same_group, files if further.style else ()
    )
    effect, vote_id = further.effect, further.vote_id
    if effect is not None and not covariates:
        raise click.UsageError("--effect draws what control does to one board: it needs --features or --style")
    random = facets.facets
    if options.missing == "label" and not options.by:
        raise click.UsageError("--missing label needs --by; without groups say drop")
    groups = [*(options.by or ()), *(name for name in (options.cluster, options.strata) if name)]
    times = [] if further.time is None else [further.time]
    keep = list(dict.fromkeys([*groups, *of_covariates, *judge.keep, *times, *random]))

    def read(paths: Sequence[FileName], vote_id: str | None = None, known: Mapping[str, str] | None = None) -> Battles:
        return reading.read(paths, keep, vote_id, known, plain=True)

    board: dict[str, Any] = options.arguments() | {"missing": options.missing if options.by else "error"}
    board |= {"features": covariates, "normalize": not further.raw_features}
    rate = partial(_rate, board=board, published=published, outputs=outputs, reading=reading, time=further.time)
    if n_sharing() > 1:
        of_votes = {**further.given("vote_id", "state", "effect"), **judge.given("judged")}
        refuse_beside("--distributed", {**of_votes, **borrowing.given("borrow"), **facets.given("random")}, set())
    if judge.judged is not None:
        human, verdicts = (reading.chosen(read(paths)) for paths in (files, [judge.judged]))
        rate(human, boards=partial(judge.boards, human, verdicts, options, random=random))
        return
    if n_sharing() > 1:
        rate(reading.chosen(gather_files(files, read)))
        return
    with contextlib.nullcontext() if further.state is None else StateFile.opened(further.state, files) as opened:
        if opened is not None:
            battles = reading.remembering(reading.named(opened.with_added(read, vote_id)))
        else:
            battles = read(files, vote_id)
        chosen = reading.chosen(battles)
        made = partial(borrowing.boards, chosen, options) if borrowing.borrow else None
        made = partial(_drawn, chosen, random=random) if random else made
        history = rate(chosen, boards=made, state=opened)
        if effect is not None:
            _draw_effect(chosen, effect, board)
        if opened is not None:
            # The state comes last: a run that ends before that is made again, and finds everything to do.
            if history is not None:
                opened.save_history(history)
            opened.save(battles)


class RankingReading(Competitor, section=COLUMNS):
    """How files of rankings are read: arguments of `read_rankings`."""

    ranking: str | None = option(
        None, "Column of rankings: lists; or names of rankings, where items and ranks have columns. [ranking]", "COL"
    )
    item: str | None = again(CallReading, "item")
    rank: str | None = option(None, "Column of ranks, 1 for the best. Items of the same rank tie. [rank]", "COL")
    weight: str | None = again(VoteReading, "weight")
    count: str | None = again(VoteReading, "count")
    first: int | None = option(
        None, "The first K places were chosen, and the order of the others says nothing: 1 is the best of n.", "K",
        least=1,
    )  # fmt: skip


@command("rankings", apart=_OF_GROUPS)
def rankings(
    files: Files, options: GroupBoard, columns: RankingReading, published: Published, outputs: Outputs
) -> None:
    """Rate the items of rankings in FILES or folders, by the model of Plackett and Luce.

    A ranking is a list with the best item first, such as a > b = c or a list in JSON; several rows, each with an item
    and its rank; or a row with a column for each place (rank1, rank2, ...), or with a column of ranks for each item.
    The table is that of `leaderboard`, with rankings in place of votes.
    """
    from jaxeval.data.rankings import read_rankings

    ranked = read_rankings(files, **{name: x for name, x in columns.arguments().items() if x is not None})
    _rate(ranked.rows, options.arguments(), published, outputs)


@command("panel", apart={**_OF_GROUPS, "cost": "by", "random": "by", "rows": "cluster"})
def panel(
    files: Files, options: GroupBoard, panel: PanelReading, reading: BoardReading, facets: FacetOptions,
    published: Published, outputs: Outputs,
) -> None:  # fmt: skip
    """Rate the models in FILES by a panel of judges without gold labels, and say how far each judge follows them.

    FILES have a row for each verdict, with the columns judge, item, model_a, model_b and verdict; or a row for each
    battle and a column of verdicts for each of --judges; or scores; or what judges printed, in a column such as output.
    Items are resampled whole. Side A is the one that was shown first.
    """
    keep = [*(options.by or ()), *(name for name in (options.cluster, options.strata) if name), *facets.facets]
    verdicts = reading.chosen(panel.read(files, reading, keep))
    board = options.arguments() | {"missing": options.missing if options.by else "error"}
    _rate(
        verdicts, board, published, outputs, reading,
        boards=partial(panel.panels, verdicts, options, random=facets.facets),
    )  # fmt: skip


def _draw_effect(battles: Battles, path: Path, board: dict[str, Any]) -> None:
    from jaxeval.plots.boards import plot_style_effect
    from jaxeval.ratings.contextual_effects import style_effect

    names = ["features", "normalize", "feature_ridge", "ties", "link", "n_resamples", "seed", "scheme", "cluster",
             "strata", "level", "ridge", "base", "reweight", "min_battles"]  # fmt: skip
    options = {name: board[name] for name in names}
    table = style_effect(battles, gauge=gauge_of(battles, board["gauge"]), **options)
    draw(plot_style_effect(table), path)


@command("demo")
def demo(options: DemoBoard, published: Published, outputs: Outputs) -> None:
    """Simulate votes, rate them, print the leaderboard and draw it to leaderboard.png."""
    from jaxeval.data.simulated_votes import simulate_battles

    board = options.arguments()
    n, n_models = board.pop("battles"), board.pop("models")
    tell(f"simulating {counted(n, 'vote')} between {counted(n_models, 'model')}")
    simulated = simulate_battles(n, n_models, seed=options.seed)
    published = replace(published, plot=published.plot or Path("leaderboard.png"))
    _rate(simulated, board, published, outputs)


def _drawn(battles: Battles, options: dict[str, Any], random: Sequence[str] = ()) -> tuple[Any, dict[str, Any]]:
    """Return draws of one board, and the options of its table."""
    from jaxeval.ratings.bootstrap import bootstrap

    shown: dict[str, Any] = {name: options[name] for name in ("level", "min_battles", "simultaneous_ranks")}
    drawn = {name: x for name, x in options.items() if name not in shown and not (random and name == "by")}
    drawn |= {"random": random} if random else {}
    return bootstrap(battles, **drawn), {**shown, "interval": options["interval"]}


def _rate(
    battles: Battles, board: dict[str, Any], published: Published, outputs: Outputs,
    reading: BoardReading | None = None, state: StateFile | None = None,
    boards: Callable[[dict[str, Any]], tuple[Any, dict[str, Any]]] | None = None, time: str | None = None,
) -> pd.DataFrame | None:  # fmt: skip
    """Print, write and draw the table of ``battles``, or of the ``boards`` that somebody makes of the options.

    Returns:
        The dated boards, this one among them, where there is a state.
    """
    from jaxeval.data.columns import require_column
    from jaxeval.plain_tables import in_pandas
    from jaxeval.ratings.leaderboard import plain_leaderboard, result_table
    from jaxeval.show.boards import leaderboard_answer

    rated: Any = battles
    options = board | {"gauge": gauge_of(battles, board["gauge"])}
    cost = None if reading is None else reading.cost
    if boards is not None:
        rated, options = boards(options)
    elif cost is not None and not options.get("by"):  # the front takes the draws, too
        rated, options = _drawn(rated, options)
    table: Any = plain_leaderboard(rated, **options)
    first_goes_on()
    if state is not None or "category" in table or published.takes_table or (reading and reading.metadata):
        table = result_table(table)
    if reading is not None:
        table = reading.with_metadata(table)
    if published.plot is not None:
        draw(plots.plot_leaderboard(table, published.top or 40), published.plot)
    history = None if state is None else state.history(table, published.day)
    if published.wanted:
        votes = battles if boards is None else None
        published.write(table, votes, options, reading, history=history, made=published.day, time=time)
    published.publish(table)
    answer = leaderboard_answer(table, published.top, () if state is None else state.looked_at_again(table))
    tables = published.tables(answer.tables)
    answer = answer._replace(tables=tables, figures=lambda: {"leaderboard": plots.plot_leaderboard(in_pandas(table))})
    if reading is not None and cost is not None:
        require_column(table, cost)
        front = reading.front(rated, table.set_index("model")[cost], table.attrs["settings"]["level"])
        answer = beside(answer, front, tables=reading.tables(front))
    present(answer, outputs)
    return history
