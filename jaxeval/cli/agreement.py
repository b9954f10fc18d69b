"""What may be believed: ``jaxeval agreement FILE`` of judges beside people, and ``jaxeval audit FILE`` of votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.declared import Answer, Files, Lengths, command
from jaxeval.cli.judged_boards import PanelReading
from jaxeval.cli.judged_scores import Labels
from jaxeval.cli.outputs import how_drawn
from jaxeval.cli.reading import Covariates, Reading, covariates_of
from jaxeval.options.boards import ResponseOptions, SliceOptions, Ties
from jaxeval.options.columns import FacetOptions, File, Names, ReplyReading, SideColumns, VoteColumns, VoteReading
from jaxeval.options.columns import Labels as Coding
from jaxeval.options.field import COLUMNS, again, option
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions
from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.agreement.judge_agreement import JudgeAgreement
    from jaxeval.data.remote_names import FileName
    from jaxeval.plain_tables import PlainTable


#: Options of what judges printed that are of tables of verdicts, too.
_OF_TABLES = ("item", "judge", "run", "shown_first", "human_labels")


class Raters(Lengths, SideColumns, section=COLUMNS):
    """Who judged, and what is known of the answers."""

    judges: Names | None = again(PanelReading, "judges")
    human_columns: Names | None = again(
        Labels, "human", more="Of several, each is a rater's.", flag="--human", metavar="A,B"
    )
    families: File | None = option(
        None, "A table with the columns name and family, of models and of judges.", "FILE", section=COLUMNS
    )
    label_coding: Coding | None = again(VoteReading, "labels", flag="--labels", kind="Labels")
    random: Names | None = again(FacetOptions, "random", more="Here with one value for each battle.")
    where: str | None = again(VoteReading, "where")


@command("agreement")
def agreement(file: File, raters: Raters, replies: ReplyReading, drawn: ResamplingOptions) -> Answer:
    """Can the judges of FILE be trusted? Their agreement with people, and of people with each other; their biases.

    FILE has a row for each judge, item and pair of models, with the columns judge, item, model_a, model_b and verdict;
    or a row for each battle and a column of verdicts for each of --judges; or it holds what judges printed, a row for
    each call, in a column such as output. Some battles have human labels.

    Without models, any labels will do: right and wrong, A and B, grades or words, in a column for each judge and each
    person, or in a row for each rater and item. People are found by their names, and judges by theirs or their labels.
    """
    from jaxeval.agreement.judge_agreement import judge_agreement
    from jaxeval.data.file_lists import local_file
    from jaxeval.data.judge_calls import usual_replies
    from jaxeval.data.roles import has_usual_sides
    from jaxeval.data.table_files import naming, read_whole_table, told_of

    judges, human_columns, families = raters.judges, raters.human_columns, raters.families
    model_a, model_b, labels_file = raters.model_a, raters.model_b, replies.human_labels
    if human_columns and labels_file:
        raise click.UsageError("--human names columns of FILE, and --human-labels another file: leave one out")
    labels: Any = None if human_columns is None else list(human_columns)
    if labels_file is not None:
        labels = read_whole_table(labels_file, [model_a, model_b])
    family_of = None
    if families is not None:
        from jaxeval.data.model_tables import read_families

        family_of = read_families(families)
    columns = raters.arguments("model_a", "model_b", "label_coding")
    arguments = {name: x for name, x in replies.arguments().items() if x is not None and name != "human_labels"}
    read, met = None, ""
    with naming(file):
        verdicts: Any = _without_models(file, model_a, model_b)
        if verdicts is None:
            verdicts = read_whole_table(file, [model_a, model_b])
        if raters.where:
            from jaxeval.data.conditions import rows_that_meet

            verdicts, met = rows_that_meet(verdicts, raters.where)
        is_table = judges is not None or not has_usual_sides(verdicts.columns) or "verdict" in verdicts.columns
        if "output" in arguments or (not is_table and usual_replies(verdicts) is not None):
            verdicts = _outputs(verdicts, labels, {**columns, **arguments})
            labels, columns, read = None, {}, str(verdicts.report)
        else:
            if odd := [flag for name, flag in replies.given().items() if name not in _OF_TABLES]:
                names = ", ".join(odd)
                raise click.UsageError(f"{names}: only for what judges printed, and this file is a table of verdicts")
            columns |= {name: arguments[name] for name in ("item", "shown_first") if name in arguments}
            # As `judge_agreement` calls them.
            called = {arguments[name]: name for name in ("judge", "run") if name in arguments}
            verdicts = verdicts.rename(columns=called)
        agreements = judge_agreement(
            verdicts, labels, judges=judges, lengths=raters.lengths, families=family_of, random=raters.random or (),
            **columns, **drawn.arguments(),
        )  # fmt: skip

    notes = [read or _what_was_read(agreements), *([met] if met else []), *agreements.notes]
    notes += [*told_of(local_file(file)), how_drawn(drawn.arguments(), "items")]
    return agreements._plain_answer()._replace(notes=notes)


def _without_models(file: FileName, *sides: str) -> PlainTable | None:
    """Return a small table without columns of models, whose names must be read as text."""
    from jaxeval.data.roles import USUAL_SIDES, columns_of
    from jaxeval.data.table_files import read_plain_table

    table = read_plain_table(file)
    return None if table is None or columns_of(table.columns, (*sides, *USUAL_SIDES)) else table


def _outputs(frame: pd.DataFrame, labels: Any, arguments: dict[str, Any]) -> Any:
    """Return what judges printed, with the labels of people, who may contradict each other."""
    from jaxeval.data.judge_outputs import JudgeOutputs
    from jaxeval.plain_tables import in_pandas

    if isinstance(labels, list):
        if len(labels) > 1:
            raise click.UsageError("calls of judges have one column of labels: give several raters by --human-labels")
        arguments = {**arguments, "human": labels[0]}
    elif labels is not None:
        arguments = {**arguments, "human_labels": labels}
    return JudgeOutputs.from_pandas(in_pandas(frame), **{"people": "majority", **arguments})


def _what_was_read(agreements: JudgeAgreement) -> str:
    n = [row["n_battles"] for row in agreements.rows["table"].records() if row["judge"] not in ("panel", "people")]
    row = "battle" if len(agreements.rows["by_gap"]) else "row"
    return f"{counted(len(n), 'judge')}, up to {counted(max(n), row)} with human labels each"


class AuditedOptions(VoteColumns, Lengths, ResamplingOptions, section=COLUMNS):
    """What an audit asks of votes."""

    parts: Names | None = option(None, "The parts of the audit to run. [all]", "A,B", section="")
    families: File | None = again(Raters, "families")
    cluster: str | None = again(DrawnTogether, "cluster")
    by: Sequence[str] | None = again(SliceOptions, "by", more="The audit asks whether their boards differ.")
    ties: Ties = again(ResponseOptions, "ties", choices=("half", "davidson", "rao_kupper"))
    n_resamples: int = again(ResamplingOptions, "n_resamples", 500, least=20)


@command("audit")
def audit(files: Files, options: AuditedOptions, covariates: Covariates, reading: Reading) -> Answer:
    """Can the leaderboard of the votes in FILES be believed? A verdict in words, and a table for each question.

    A part whose column is not named says so. --out FOLDER writes one page to read (audit.md, audit.html), audit.json, a
    table for each question, and figures.
    """
    from jaxeval.audits.audit import audit as audited
    from jaxeval.data.model_tables import read_families

    families, by = options.families, options.by or ()
    features, of_features = covariates_of(covariates.features)
    columns = [options.voter, options.cluster, options.time, *by, *(options.lengths or ()), *of_features]
    battles = reading.chosen(reading.read(files, list(dict.fromkeys(name for name in columns if name))))
    for name in by if reading.missing == "drop" else ():
        battles = battles.filter(battles.column(name).notna().to_numpy())
    arguments = options.arguments("voter", "cluster", "time", "lengths", "ties", ResamplingOptions)
    family_of = None if families is None else read_families(families)
    return audited(battles, by=by, families=family_of, parts=options.parts, features=features, **arguments).answer
