"""The command line of judge accuracy: ``jaxeval judge --calibration CAL --test TEST``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.outputs import Outputs, present
from jaxeval.cli.reading import unparsed_option
from jaxeval.cli.run_options import (
    FILE,
    by_option,
    choice_option,
    cluster_option,
    resampling_options,
    sampling_option,
    strata_option,
)
from jaxeval.cli.terminal import named_model
from jaxeval.data.remote_names import FileName

if TYPE_CHECKING:
    from jaxeval.data.judged_answers import JudgedAnswers


@click.command(cls=CompilingCommand, renamed={"--label": "--human"})
@click.option("--calibration", required=True, type=FILE, metavar="FILE", help="Judged answers with human labels.")
@click.option(
    "--test",
    required=True,
    type=FILE,
    metavar="FILE",
    help="Judged answers to rate; labels, if any, are shown as truth.",
)
@sampling_option()
@click.option("--judgment", "judgments", multiple=True, metavar="COL",
              help="Column of verdicts (0, 1) or scores, or of what the judge printed (Yes, No, a grade, JSON); may be "
              "repeated, a judge each. [judgment, verdict or output]")  # fmt: skip
@click.option("--human", "label", metavar="COL", help="Column of human labels. [human or label]")
@click.option("--model", metavar="COL", help="Column of models. A calibration without it is shared by all.")
@click.option("--judge", metavar="COL", help="Column of judges. Where one column holds all judgments.")
@click.option("--item", metavar="COL", help="Column of items: prompts, questions, tasks. Models are paired by them.")
@click.option("--run", metavar="COL", help="Column of repeated runs. They are averaged.")
@click.option(
    "--answer", metavar="COL", help="Column that names answers: models with the same answer share its judgment."
)
@click.option("--positive", metavar="VALUE", help="The label and verdict that mean right, where they are not 0 and 1.")
@click.option("--threshold", type=float, metavar="T", help="Turn scores into verdicts: right from T on.")
@choice_option("--missing", "error", "drop", "complete", "incorrect",
               text="What to do about gaps. error: refuse missing judgments. drop: leave them out, and keep their "
               "labels. complete: leave out their items. incorrect: count them as 0.")  # fmt: skip
@unparsed_option("error")
@click.option("--compare", "pairs", nargs=2, multiple=True, metavar="A B", help="Compare two models; may be repeated.")
@click.option("--shared", metavar="MODEL", help="Whose labels the shared calibration uses. [B of a pair; else all]")
@by_option("Each is also shown on its own.")
@click.option("--stratify", metavar="COL", help="Column of groups within which the judge is corrected.")
@strata_option("items")
@cluster_option("Here: items of one passage or conversation. They are drawn whole.")
@resampling_options(resamples=10_000)
def judge(
    *,
    calibration: FileName,
    test: FileName,
    pairs: tuple[tuple[str, str], ...],
    shared: str | None,
    by: str | None,
    stratify: str | None,
    strata: str | None,
    cluster: str | None,
    sampling: Any,
    drawn: dict[str, Any],
    outputs: Outputs,
    **columns: Any,
) -> None:
    """Accuracies of models by LLM judges, corrected by human labels, with what the data cannot say.

    The first table has the estimate to believe for each model and judge, beside the judge's raw share, and why it is
    believed. With --full follow all estimates with intervals: the judge's raw share, labels alone, PPI++, Rogan-Gladen
    with each model's own and with a shared calibration, and the rates of the judges. Columns have the same names in
    both files.
    """
    from jaxeval.accuracy.judge_accuracy import judge_accuracy
    from jaxeval.accuracy.judged_sums import POOLED
    from jaxeval.accuracy.model_comparison import checked_pairs, compare
    from jaxeval.accuracy.report import judge_report

    labelled, judged = (_read(path, columns, [c for c in (by, stratify, strata, cluster) if c], path == calibration)
                        for path in (calibration, test))  # fmt: skip
    named = [tuple(named_model(judged.models, name) for name in pair) for pair in pairs]
    chosen = checked_pairs(judged, named) if pairs else []
    whose = named_model(labelled.models, shared) if shared else POOLED
    accuracy = judge_accuracy(
        labelled,
        judged,
        sampling=sampling,
        by=by,
        stratify=stratify,
        strata=strata,
        cluster=cluster,
        shared=whose,
        **drawn,
    )
    comparison = compare(accuracy, chosen, labels_of_b=shared is None) if chosen else None

    def figures() -> dict[str, Any]:
        from jaxeval.plots import accuracy as plots

        drawn = {"accuracy": plots.plot_accuracy(accuracy), "rates": plots.plot_rates(accuracy)}
        return drawn if comparison is None else {**drawn, "differences": plots.plot_differences(comparison)}

    answer = judge_report(accuracy, comparison).answer
    notes = [f"calibration: {labelled.report}", f"test: {judged.report}", *answer.notes]
    present(answer._replace(notes=notes, figures=figures), outputs)


def _read(path: FileName, columns: dict[str, Any], keep: list[str], calibration: bool) -> JudgedAnswers:
    from jaxeval.data.judged_answers import read_judged_answers
    from jaxeval.data.table_files import column_names

    named = {**columns, "keep": keep, "judgment": list(columns["judgments"]) or None}
    del named["judgments"]
    if calibration:
        # A calibration of the judge alone has no models, and one of single items nothing to pair.
        have = column_names(path)
        named |= {key: None for key in ("model", "item", "answer") if named[key] not in have}
    elif named["label"] is not None and named["label"] not in column_names(path):
        named["label"] = None
    return read_judged_answers(path, **named)
