"""``jaxeval compare-boards``: two boards of votes on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.declared import Answer, Files, Plot, Top, command
from jaxeval.cli.meta import OfScores
from jaxeval.cli.reading import BoardReading, Covariates, Reading, check_draws, covariates_of, gauge_of
from jaxeval.data.remote_names import FileName
from jaxeval.errors import DataError
from jaxeval.options.boards import Gauge, GroupOption, PairOptions, RankOptions, ResponseOptions, ScaleOptions
from jaxeval.options.columns import Labels
from jaxeval.options.field import COLUMNS, FIT, GROUPS, again, option
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions
from jaxeval.wording import common_noun, did_you_mean, named

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles
    from jaxeval.ratings.board_comparison import BoardComparison
    from jaxeval.ratings.bootstraps import Bootstraps

#: What conditions may be about besides columns that are read for them.
_OF_BATTLES = ("model_a", "model_b", "target", "weight")


class TwoBoards(PairOptions, ResponseOptions, ScaleOptions, DrawnTogether, GroupOption, Plot):
    """Which two boards are compared, and how both are fitted."""

    names: str | None = option(None, "What the boards are called. [a,b; or the slices]", "A,B", section="")
    id: tuple[str, ...] = option(
        (), "Column that names a vote, which counts once. Of two boards it is drawn once for both, and several columns "
        "together may name it.", "COL", section=COLUMNS,
    )  # fmt: skip
    shared: str | None = option(
        None, "Which votes are on both boards, where no column names votes. rows: those that are equal in all columns "
        "of both files. index: those with the same row number. none: no vote, even if both boards are of one file.",
        choices=("rows", "index", "none"), section="",
    )  # fmt: skip
    slices: str | None = option(None, "The groups of --by that are compared.", "X,Y", section=GROUPS)
    where_a: str | None = option(None, "Condition for the votes of board a, written as for --where.", "SQL", section="")
    where_b: str | None = option(None, "Condition for the votes of board b, written as for --where.", "SQL", section="")
    winner_b: str | None = option(
        None, "Column of labels of board b, such as a judge's labels beside people's.", "COL", section=""
    )
    target_b: str | None = option(None, "Column of soft targets of board b.", "COL", section="")
    labels_b: Labels | None = option(
        None, "What the labels of board b mean, where they differ from --labels.", "CODING|L=MEANING,...", section=""
    )
    features_b: str | None = option(
        None, "Columns that board b controls for, and board a does not.", "A,B", section=FIT
    )
    style_b: str | None = option(
        None, "Board b controls for the Arena's own four covariates, and board a does not.", choices=("arena",),
        section=FIT,
    )  # fmt: skip
    gauge: Gauge = again(ScaleOptions, "gauge", metavar="mean|MODEL=RATING")
    min_battles: int = again(RankOptions, "min_battles", 0)
    top_size: int = again(OfScores, "top", flag="--top-size", section="")


#: What `compare_boards` takes of them.
_ASKED = ("cluster", "strata", "scheme", "ties", "link", "penalty", "reweight", "method", "ridge",
          "base", "min_battles")  # fmt: skip


@command("compare-boards")
def compare_boards(
    files: Files, options: TwoBoards, covariates: Covariates, reading: BoardReading, drawn: ResamplingOptions,
    shown: Top,
) -> Answer:  # fmt: skip
    """Compare two boards: who moved, ranks on both, and how far they agree.

    FILES are two files or folders of votes, such as last week's and this week's. One file holds both boards where an
    option says which: --by and --slices, --where-a and --where-b, --winner-b or --target-b, --features-b or --style-b.
    """
    from jaxeval.data.shared_votes import columns_for_votes
    from jaxeval.ratings.compare_boards import compare_boards as compared
    from jaxeval.show.screens import columns_of as columns_of_part
    from jaxeval.show.shown import Part

    pair = _two(options.slices, "--slices") if options.slices else None
    by, id = options.by, options.id
    _check(len(files), options)
    features, of_own = covariates_of(covariates.features)
    more, of_more = covariates_of(options.features_b, styled=files if options.style_b else ())
    of_b: BoardReading = reading
    shared: Any = options.shared
    if options.winner_b or options.target_b:
        of_b = replace(reading, winner=options.winner_b, target=options.target_b)
        if len(files) == 1 and not id and shared is None:
            shared = "index"  # the two results of a row are of one vote
    of_b = of_b if options.labels_b is None else replace(of_b, labels=options.labels_b)
    keep = [*id, *of_own, *of_more, *(name for name in (by, options.cluster, options.strata) if name)]
    keep += columns_for_votes(files[0], files[1], shared) if len(files) > 1 and not id else []
    boards = _chosen(reading, _read(files, (reading, of_b), keep, (options.where_a, options.where_b)))
    arguments: dict[str, Any] = {
        **options.arguments(*_ASKED), **drawn.arguments(), "features": features, "top": options.top_size,
    }  # fmt: skip
    arguments["gauge"] = gauge_of(boards[0], options.gauge)
    arguments["names"] = _two(options.names, "--names") if options.names else pair or ("a", "b")
    if by is not None and pair is not None:
        comparison = _slices(boards[0], by, pair, reading.missing, arguments)
    else:
        of_b_alone = {"features": [*features, *more]} if more else None
        comparison = compared(boards[0], boards[1], id=id, shared=shared, options_b=of_b_alone, **arguments)
    table = reading.with_metadata(comparison.table)
    answer = comparison.answer
    first, *others = answer.parts
    added = table[[name for name in table if name not in comparison.table]]
    further = columns_of_part(Part(None, added, competitor=comparison.competitor))
    columns = [*columns_of_part(first), *(column._replace(order=8) for column in further)]
    first = first._replace(table=columns)
    if len(files) == 2 and not options.names:
        first = first._replace(meaning=f"a is {files[0]}, b is {files[1]}")
    return answer._replace(parts=[first, *others], tables={**answer.tables, "comparison": table})


def _check(n_files: int, options: TwoBoards) -> None:
    """Raise usage errors of options that do not go together."""
    telling = options.given("by", "where_a", "where_b", "winner_b", "target_b", "features_b", "style_b")
    if n_files > 2:
        raise click.UsageError(f"two boards are compared, got {n_files} files: put those of a board into a folder")
    if (options.by is None) != (options.slices is None):
        raise click.UsageError("--by and --slices need each other: the column, and two of its groups")
    if n_files == 1 and not telling:
        raise click.UsageError(
            "one file holds two boards where an option says which: --by COL --slices X,Y; --where-a and --where-b; "
            "--winner-b or --target-b; --features-b; or --style-b. Else name a second file"
        )
    if options.by is not None and (n_files > 1 or len(telling) > 1 or options.given("shared", "id")):
        raise click.UsageError(
            "--by takes two groups of one file: leave a second file, --id, --shared and the like out"
        )
    if options.gauge == "votes":
        raise click.UsageError(
            "--gauge votes would weigh the models of the two boards differently: take mean, or MODEL=RATING"
        )
    check_draws(options)


def _two(text: str, option: str) -> tuple[str, str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts) or parts[0] == parts[1]:
        raise click.UsageError(f"{option} takes two names X,Y, got {text!r}")
    return parts[0], parts[1]


def _read(
    files: Sequence[FileName], readings: tuple[Reading, Reading], keep: Sequence[str], where: Sequence[str | None]
) -> list[Battles]:
    """Read both boards; one file is read once, which recognises its votes, unless its results are read in two ways."""
    from jaxeval.data.conditions import columns_of

    of_conditions = [name for text in where if text for name in columns_of(text)]
    columns = list(dict.fromkeys([*keep, *(name for name in of_conditions if name not in _OF_BATTLES)]))
    first = readings[0].read(files[:1], columns)
    again = files[0] != files[-1] or readings[0] is not readings[1]
    boards = [first, readings[1].read(files[-1:], columns) if again else first]
    return [board.filter(text) if text else board for board, text in zip(boards, where, strict=True)]


def _chosen(reading: Reading, boards: Sequence[Battles]) -> list[Battles]:
    """Choose the models that count, by new names; an option that names models of one board applies to that board."""
    from jaxeval.data.model_tables import read_names

    word = reading.competitor or common_noun(board.report._said for board in boards)
    new = {} if reading.rename is None else read_names(reading.rename, word)
    before = [set(map(str, board.models)) for board in boards]
    known = [old | {new[name] for name in new if name in old} for old in before]
    chosen = []
    for board, old, here in zip(boards, before, known, strict=True):
        models, exclude = (
            tuple(name for name in names if name in here or not any(name in other for other in known))
            for names in (reading.models, reading.exclude)
        )
        renames = old & {*new} or not any(other & {*new} for other in before)
        board_reading = replace(reading, models=models or reading.models, exclude=exclude)
        chosen.append((board_reading if renames else replace(board_reading, rename=None)).chosen(board))
    return chosen


def _slices(battles: Battles, by: str, pair: tuple[str, str], missing: Any, options: dict[str, Any]) -> BoardComparison:
    """Return two groups of ``by`` compared, with the draws that `leaderboard` has of them."""
    import numpy as np

    from jaxeval.ratings.bootstrap import bootstrap
    from jaxeval.ratings.compare_boards import compare_boards as compared

    members = battles.members(by, missing)
    groups, values = list(map(str, members.groups)), members.groups
    for name in pair:
        if name not in groups:
            raise DataError(f"no group {name!r} of {by!r}; there are {named(groups)}{did_you_mean(name, groups)}")
    numbers = [groups.index(name) for name in pair]
    if members.overlapping:  # votes may be in both, and are then drawn once
        rows = np.arange(battles.n_rows)
        one, other = (battles.filter(np.isin(rows, members.rows(members.codes == number))) for number in numbers)
        return compared(one, other, **options)
    shown = {name: options.pop(name) for name in ("names", "gauge", "base", "level", "min_battles", "top")}
    boards: Bootstraps = bootstrap(battles.filter(np.isin(members.codes, numbers)), by=by, missing=missing, **options)
    return compared(*(boards[values[number]] for number in numbers), **shown)
