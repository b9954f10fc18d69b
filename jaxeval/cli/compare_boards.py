"""``jaxeval compare-boards``: two boards of votes on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.board_options import covariates_of, gauge_of, gauge_option, pair_options, response_options
from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.outputs import OutputFile, Outputs, check_outputs, present
from jaxeval.cli.processes import first_goes_on
from jaxeval.cli.reading import LabelsOption, Reading, reading_options
from jaxeval.cli.run_options import (
    InputFile,
    base_option,
    by_option,
    cluster_option,
    features_option,
    resampling_options,
    ridge_option,
    scheme_option,
    strata_option,
    top_option,
    top_size_option,
)
from jaxeval.cli.terminal import tell
from jaxeval.data.remote_names import FileName
from jaxeval.wording import common_noun

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles
    from jaxeval.data.labels import Labels
    from jaxeval.ratings.board_comparison import BoardComparison
    from jaxeval.ratings.bootstrap_result import Bootstraps

#: What conditions may be about besides columns that are read for them.
_OF_BATTLES = ("model_a", "model_b", "target", "weight")


@click.command("compare-boards", cls=CompilingCommand, renamed={"--overlap": "--top-size"})
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, path_type=Path))
@click.option("--names", metavar="A,B", help="What the boards are called. [a,b; or the slices]")
@click.option("--id", multiple=True, metavar="COL",
              help="Column that names a vote. Rows with the same name are one vote, which a resample draws once for "
              "both boards. May be repeated where several columns together name a vote.")  # fmt: skip
@click.option("--shared", type=click.Choice(["rows", "index", "none"]),
              help="Which votes are on both boards, where no column names votes. rows: those that are equal in all "
              "columns of both files. index: those with the same row number. none: no vote, even if both boards are of "
              "one file.")  # fmt: skip
@by_option("--slices names the two that are compared.")
@click.option("--slices", metavar="X,Y", help="The groups of --by.")
@click.option("--where-a", metavar="SQL", help="Condition for the votes of board a, written as for --where.")
@click.option("--where-b", metavar="SQL", help="Condition for the votes of board b.")
@click.option(
    "--winner-b", metavar="COL", help="Column of labels of board b, such as a judge's labels beside people's."
)
@click.option("--target-b", metavar="COL", help="Column of soft targets of board b.")
@click.option("--labels-b", type=LabelsOption(), metavar="CODING|L=MEANING,...",
              help="What the labels of board b mean, where they differ from --labels.")  # fmt: skip
@features_option("On both boards.")
@click.option("--features-b", metavar="A,B", help="Columns that board b controls for, and board a does not.")
@click.option("--style-b", type=click.Choice(["arena"]),
              help="Board b controls for the Arena's own four covariates, and board a does not.")  # fmt: skip
@reading_options
@cluster_option("A resample draws whole clusters, and those on both boards once for both.")
@strata_option("battles")
@scheme_option()
@response_options
@pair_options
@ridge_option()
@gauge_option("It puts both boards on one scale; mean is that of the models that are compared.", "mean|MODEL=RATING")
@base_option()
@click.option("--min-votes", "min_battles", default=0, type=click.IntRange(0), metavar="N",
              help="Models with fewer votes stand apart. Models with fewer on either board are "
              "not compared.")  # fmt: skip
@top_size_option(5, text="The overlap of both tops is reported.")
@resampling_options()
@top_option()
@click.option(
    "--plot",
    type=OutputFile((".png", ".svg", ".pdf")),
    help="Draw the ratings: .png, .svg or .pdf. The figure has both boards and their differences.",
)
def compare_boards(
    *,
    files: tuple[FileName, ...],
    names: str | None,
    slices: str | None,
    reading: Reading,
    features: str | None,
    features_b: str | None,
    style_b: str | None,
    id: tuple[str, ...],
    drawn: dict[str, Any],
    outputs: Outputs,
    top: int | None,
    plot: Path | None,
    by: str | None,
    where_a: str | None,
    where_b: str | None,
    winner_b: str | None,
    target_b: str | None,
    labels_b: Labels | None,
    **options: Any,
) -> None:
    """Compare two boards: who moved, ranks on both, and how far they agree.

    FILES are two files or folders of votes, such as last week's and this week's. One file holds both boards where an
    option says which: --by and --slices, --where-a and --where-b, --winner-b or --target-b, --features-b or --style-b.
    """
    from jaxeval.data.features import arena_style, arena_style_columns
    from jaxeval.data.file_lists import files_of
    from jaxeval.data.shared_votes import columns_for_votes
    from jaxeval.data.table_files import head_names
    from jaxeval.ratings.compare_boards import compare_boards as compared
    from jaxeval.show.screens import further_columns

    telling = {"--by": by, "--where-a": where_a, "--where-b": where_b, "--winner-b": winner_b, "--target-b": target_b,
               "--features-b": features_b, "--style-b": style_b}  # fmt: skip
    _check(len(files), {name for name, value in telling.items() if value is not None}, slices, id, options)
    pair = _two(slices, "--slices") if slices else None
    check_outputs({"--out": outputs.out, "--plot": plot}, [*files, *reading.files])
    own, of_own = covariates_of(features, False, None, ())
    more, of_more = covariates_of(features_b, False, None, ())
    if style_b is not None:
        more += arena_style()
        of_more += arena_style_columns(head_names(files_of(files)[0]))
    of_b = reading
    if winner_b or target_b:
        of_b = replace(reading, winner=winner_b, target=target_b)
        if len(files) == 1 and not id and options["shared"] is None:
            options["shared"] = "index"  # the two results of a row are of one vote
    of_b = of_b if labels_b is None else replace(of_b, labels=labels_b)
    options["top"] = options.pop("top_size")
    groups = (by, options["cluster"], options["strata"])
    keep = [*id, *of_own, *of_more, *(name for name in groups if name)]
    keep += columns_for_votes(files[0], files[1], options["shared"]) if len(files) > 1 and not id else []
    boards = _chosen(reading, _read(files, (reading, of_b), keep, (where_a, where_b)))
    named = _two(names, "--names") if names else pair or ("a", "b")
    asked = {**options, **drawn, "features": own, "names": named, "gauge": gauge_of(boards[0], options["gauge"])}
    if by is not None and pair is not None:
        found = _slices(boards[0], by, pair, reading.missing, asked)
    else:
        of_b_alone = {"features": [*own, *more]} if more else None
        found = compared(boards[0], boards[1], id=id, options_b=of_b_alone, **asked)
    if len(files) == 2 and not names:
        found = replace(found, notes=(f"a is {files[0]}, b is {files[1]}", *found.notes))
    first_goes_on()
    table = reading.with_metadata(found.table)
    if plot is not None:
        from jaxeval.plots.boards import plot_comparison
        from jaxeval.plots.style import save_figure

        save_figure(plot_comparison(found), plot, dpi=160)
        tell(f"drew {plot}")
    answer = found.answer
    first, *others = answer.parts
    more = further_columns(table[[name for name in table if name not in found.table]], 8, found.competitor)
    first = first._replace(table=[*first.table, *more])

    def figures() -> dict[str, Any]:
        from jaxeval.plots.boards import plot_comparison

        return {"comparison": plot_comparison(found)}

    answer = answer._replace(parts=[first, *others], tables={**answer.tables, "comparison": table}, figures=figures)
    present(answer.with_top(None if top is None else min(top, len(table))), outputs)


def _check(n_files: int, telling: set[str], slices: str | None, id: tuple[str, ...], options: dict[str, Any]) -> None:
    """Usage errors of options that do not go together; ``telling`` are those given that tell two boards apart."""
    if n_files > 2:
        raise click.UsageError(f"two boards are compared, got {n_files} files: put those of a board into a folder")
    if ("--by" in telling) != (slices is not None):
        raise click.UsageError("--by and --slices need each other: the column, and two of its groups")
    if n_files == 1 and not telling:
        raise click.UsageError(
            "one file holds two boards where an option says which: --by COL --slices X,Y; --where-a and --where-b; "
            "--winner-b or --target-b; --features-b; or --style-b. Else name a second file"
        )
    if "--by" in telling and (n_files > 1 or len(telling) > 1 or options["shared"] is not None or id):
        raise click.UsageError(
            "--by takes two groups of one file: leave a second file, --id, --shared and the like out"
        )
    if options["gauge"] == "votes":
        raise click.UsageError(
            "--gauge votes would weigh the models of the two boards differently: take mean, or MODEL=RATING"
        )
    if options["cluster"] and options["scheme"] != "multinomial":
        raise click.UsageError("--cluster draws clusters with replacement: leave --scheme out")
    if options["strata"] and options["scheme"] == "poisson":
        raise click.UsageError(
            "--scheme poisson draws every battle on its own, and --strata fixes how many: leave one out"
        )


def _two(text: str, option: str) -> tuple[str, str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts) or parts[0] == parts[1]:
        raise click.UsageError(f"{option} takes two names X,Y, got {text!r}")
    return parts[0], parts[1]


def _read(
    files: Sequence[FileName], readings: tuple[Reading, Reading], keep: Sequence[str], where: Sequence[str | None]
) -> list[Battles]:
    """Both boards; one file is read once, so that its votes are recognised, unless its results are read in two ways."""
    from jaxeval.data.conditions import columns_of

    of_conditions = [name for text in where if text for name in columns_of(text)]
    columns = list(dict.fromkeys([*keep, *(name for name in of_conditions if name not in _OF_BATTLES)]))
    first = readings[0].read(files[:1], columns)
    again = files[0] != files[-1] or readings[0] is not readings[1]
    boards = [first, readings[1].read(files[-1:], columns) if again else first]
    return [board.filter(text) if text else board for board, text in zip(boards, where, strict=True)]


def _chosen(reading: Reading, boards: Sequence[Battles]) -> list[Battles]:
    """The models that count, by their new names; an option that names models of one board applies to that board."""
    from jaxeval.data.model_tables import read_names

    word = reading.competitor or common_noun(board.report._said for board in boards)
    new = {} if reading.rename is None else read_names(reading.rename, word)
    before = [set(map(str, board.models)) for board in boards]
    known = [own | {new[name] for name in new if name in own} for own in before]
    found = []
    for board, own, here in zip(boards, before, known, strict=True):
        models, exclude = (
            tuple(name for name in names if name in here or not any(name in other for other in known))
            for names in (reading.models, reading.exclude)
        )
        renames = own & {*new} or not any(other & {*new} for other in before)
        asked = replace(reading, models=models or reading.models, exclude=exclude)
        found.append((asked if renames else replace(asked, rename=None)).chosen(board))
    return found


def _slices(battles: Battles, by: str, pair: tuple[str, str], missing: Any, asked: dict[str, Any]) -> BoardComparison:
    """Two groups of ``by`` compared, with the draws that `leaderboard` has of them."""
    import numpy as np

    from jaxeval.errors import DataError
    from jaxeval.ratings.bootstrap import bootstrap
    from jaxeval.ratings.compare_boards import compare_boards as compared
    from jaxeval.wording import did_you_mean, named

    found = battles.members(by, missing)
    groups, values = list(map(str, found.groups)), found.groups
    for name in pair:
        if name not in groups:
            raise DataError(f"no group {name!r} of {by!r}; there are {named(groups)}{did_you_mean(name, groups)}")
    numbers = [groups.index(name) for name in pair]
    if found.overlapping:  # votes may be in both, and are then drawn once
        rows = np.arange(battles.n_rows)
        one, other = (battles.filter(np.isin(rows, found.rows(found.codes == number))) for number in numbers)
        return compared(one, other, **asked)
    shown = {name: asked.pop(name) for name in ("names", "gauge", "base", "level", "min_battles", "top")}
    asked.pop("shared")
    boards: Bootstraps = bootstrap(battles.filter(np.isin(found.codes, numbers)), by=by, missing=missing, **asked)
    return compared(*(boards[values[number]] for number in numbers), **shown)
