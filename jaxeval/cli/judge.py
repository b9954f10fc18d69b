"""The command line of judge accuracy: ``jaxeval judge --calibration CAL --test TEST``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jaxeval import plots
from jaxeval.cli.declared import command
from jaxeval.cli.judged_scores import Labels, Sampling
from jaxeval.cli.outputs import Outputs, present
from jaxeval.cli.scores import undeclared
from jaxeval.cli.terminal import named_model
from jaxeval.data.remote_names import FileName
from jaxeval.options.boards import GroupOption
from jaxeval.options.columns import CallReading, FacetOptions, File, ItemScoreColumns, Names, Pair, Unparsed
from jaxeval.options.field import COLUMNS, ROWS, Options, again, option
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions

if TYPE_CHECKING:
    from jaxeval.data.judged_answers import JudgedAnswers


class Answers(Options, section=COLUMNS):
    """How files of judged answers are read: arguments of `read_judged_answers`."""

    judgments: tuple[str, ...] = option(
        (), "Column of verdicts (0, 1) or scores, or of what the judge printed (Yes, No, a grade, JSON); may be "
        "repeated, a judge each. [judgment, verdict or output]", "COL", flag="--judgment",
    )  # fmt: skip
    label: str | None = again(Labels, "human", flag="--human")
    model: str | None = again(ItemScoreColumns, "model")
    judge: str | None = again(CallReading, "judge")
    item: str | None = again(CallReading, "item")
    run: str | None = again(CallReading, "run")
    answer: str | None = option(
        None, "Column that names answers: models with the same answer share its judgment.", "COL"
    )
    positive: str | None = option(None, "The label and verdict that mean right, where they are not 0 and 1.", "VALUE")
    threshold: float | None = option(None, "Turn scores into verdicts: right from T on.", "T")
    missing: str = option(
        "error", "What to do about gaps. error: refuse missing judgments. drop: leave them out, and keep their labels. "
        "complete: leave out their items. incorrect: count them as 0.", section=ROWS,
        choices=("error", "drop", "complete", "incorrect"),
    )  # fmt: skip
    unparsed: Unparsed | None = again(CallReading, "unparsed")


class JudgeOptions(ResamplingOptions, section=""):
    """What is estimated of judged answers."""

    calibration: File = option(None, "Judged answers with human labels.", "FILE", required=True)
    test: File = option(None, "Judged answers to rate; labels, if any, are shown as truth.", "FILE", required=True)
    pairs: tuple[Pair, ...] = option((), "Compare two models; may be repeated.", "A B", flag="--compare")
    shared: str | None = option(None, "Whose labels the shared calibration uses. [B of a pair; else all]", "MODEL")
    by: str | None = again(GroupOption, "by")
    stratify: str | None = option(None, "Column of groups within which the judge is corrected.", "COL")
    sampling: Sampling | None = again(Labels, "sampling")
    cluster: str | None = again(DrawnTogether, "cluster")
    strata: str | None = again(DrawnTogether, "strata")
    random: Names | None = again(FacetOptions, "random", more="judge: accuracies by judges like these, too.")
    n_resamples: int = again(ResamplingOptions, "n_resamples", 10_000)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.random and self.pairs:
            raise click.UsageError("--random and --compare do not go together: leave one out")


@command("judge", renamed={"--label": "--human"})
def judge(options: JudgeOptions, columns: Answers, outputs: Outputs) -> None:
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
    from jaxeval.data.table_files import column_names
    from jaxeval.statistics.random_facets import USUAL_FACETS

    estimated = options.arguments("sampling", "by", "stratify", "strata", "cluster", ResamplingOptions)
    facets = list(options.random or ())
    if rated := {columns.model, "model"}.intersection(facets):
        name = rated.pop()
        raise click.UsageError(
            f"--random {name}: it names the models, which are rated and not drawn anew; leave it out of --random"
        )
    keep = [name for name in (options.by, options.stratify, options.strata, options.cluster, *facets) if name]
    keep = [name for name in keep if name != "judge"]
    labelled, judged = (
        _read(path, columns.arguments(), keep, path == options.calibration)
        for path in (options.calibration, options.test)
    )
    named = [tuple(named_model(judged.models, name) for name in pair) for pair in options.pairs]
    chosen = checked_pairs(judged, named) if named else []
    whose = named_model(labelled.models, options.shared) if options.shared else POOLED
    accuracy = judge_accuracy(labelled, judged, shared=whose, random=facets, **estimated)
    comparison = compare(accuracy, chosen, labels_of_b=options.shared is None) if chosen else None

    def figures() -> dict[str, Any]:
        drawn = {"accuracy": plots.plot_accuracy(accuracy), "rates": plots.plot_rates(accuracy)}
        return drawn if comparison is None else {**drawn, "differences": plots.plot_differences(comparison)}

    answer = judge_report(accuracy, comparison).answer
    notes = [f"calibration: {labelled.report}", f"test: {judged.report}", *answer.notes]
    if not (facets or options.pairs or options.by or options.stratify or options.strata):
        judges = ["judge"] if len(judged.judges) > 1 else []
        used = {"judge", *keep, *columns.arguments().values()}.union(judged.judges)
        used |= {*USUAL_FACETS}.difference(column_names(options.calibration))
        item = columns.item or "item"
        more = undeclared(options.test, used, judges, item if item in column_names(options.test) else None)
        answer = answer._replace(advice=[*answer.advice, *more])
    present(answer._replace(notes=notes, figures=figures), outputs)


def _read(path: FileName, columns: dict[str, Any], keep: list[str], calibration: bool) -> JudgedAnswers:
    from jaxeval.data.judged_answers import read_judged_answers
    from jaxeval.data.table_files import column_names

    unparsed = columns["unparsed"] or "error"
    named = {**columns, "keep": keep, "judgment": list(columns["judgments"]) or None, "unparsed": unparsed}
    del named["judgments"]
    if calibration:
        # A calibration of the judge alone has no models, and one of single items nothing to pair.
        have = column_names(path)
        named |= {key: None for key in ("model", "item", "answer") if named[key] not in have}
    elif named["label"] is not None and named["label"] not in column_names(path):
        named["label"] = None
    return read_judged_answers(path, **named)
