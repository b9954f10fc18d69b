"""``jaxeval judge --calibration CAL --test TEST``, and scores of a judge that labels correct, in other commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jaxeval import plots
from jaxeval.cli.declared import Answer, command
from jaxeval.cli.reading import undeclared
from jaxeval.cli.terminal import named_model
from jaxeval.data.file_lists import names_of
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.lazy_names import pd
from jaxeval.options.boards import AccuracyOptions, CalibrationSampling
from jaxeval.options.columns import CallReading, FacetOptions, File, ItemScoreColumns, Names, Pair, Unparsed
from jaxeval.options.field import COLUMNS, ROWS, Options, again, option
from jaxeval.options.resampling import RunningOptions
from jaxeval.wording import counted, named

if TYPE_CHECKING:
    from jaxeval.accuracy.judge_accuracy import JudgeAccuracy
    from jaxeval.data.judged_answers import JudgedAnswers

#: Kinds of caution that a board of scores tells. A status of its own estimates is a flag there.
_TOLD = ("undeclared", "borrowed", "balanced", "another share", "few labels", "low J")
_ESTIMATORS = (
    "ppi_plus_plus", "rogan_gladen", "rogan_gladen_shared", "calibration_only", "difference", "conditional", "eif",
    "naive",
)  # fmt: skip
_OF_LABELS = "human: the labels that correct the scores"


class Labels(Options, section=COLUMNS):
    """The options."""

    human: str | None = option(
        None, "Column of human labels. Where people judged some of the answers, and the scores are a judge's, they "
        "correct the scores. [human, label or human_pref, if there; of scores none]", "COL",
    )  # fmt: skip
    judge: str | None = again(CallReading, "judge", needs=_OF_LABELS)
    only_judge: str | None = option(
        None, "Read this judge only, of several.", "NAME", needs="judge: the column that names judges"
    )
    estimator: str | None = option(
        None, "With --human: how scores are corrected; by default ppi_plus_plus of a random part, else rogan_gladen.",
        choices=_ESTIMATORS, needs=_OF_LABELS,
    )  # fmt: skip
    sampling: CalibrationSampling | None = again(AccuracyOptions, "sampling", needs=_OF_LABELS)

    def corrected_by(self, accuracy: JudgeAccuracy) -> str:
        """Return the estimator's name in the tables."""
        from jaxeval.accuracy.belief import usual_estimator

        return self.estimator or usual_estimator(accuracy.settings.sampling, accuracy.binary)

    def accuracy(
        self, files: Sequence[FileName], columns: Mapping[str, Any], missing: str, by: str | None,
        drawn: Mapping[str, Any],
    ) -> tuple[JudgeAccuracy, str]:  # fmt: skip
        """Return the corrected scores, and what was read."""
        from jaxeval.accuracy.judge_accuracy import judge_accuracy
        from jaxeval.data.score_files import read_judged_scores

        assert self.human is not None
        answers = read_judged_scores(
            files, human=self.human, judge=self.judge, missing=missing, only_judge=self.only_judge,
            keep=[] if by is None else [by], **columns,
        )  # fmt: skip
        cluster = "cluster" if "cluster" in answers.covariates else None
        estimates = judge_accuracy(*answers.by_label(self.sampling), by=by, cluster=cluster, **drawn)
        counts = answers.report
        parts = [
            counted(counts.n_models, "model"), counted(counts.n_items, "item"), counted(counts.n_judges, "judge"),
            counted(counts.n_judgments, "judged answer"), counted(counts.n_labels, "human label"),
        ]  # fmt: skip
        return estimates, "; ".join([", ".join(parts), *counts.read_as])

    def boards(self, accuracy: JudgeAccuracy, simultaneous: bool) -> dict[str, pd.DataFrame]:
        """Return the board of each judge, one below the other, accuracies by all estimators, and judges' rates."""
        from jaxeval.scores.score_leaderboard import score_leaderboard
        from jaxeval.show.cells import with_kinds

        tables, by = [], self.corrected_by(accuracy)
        for judge in accuracy.judges:
            table = score_leaderboard(accuracy, judge=judge, estimator=by, simultaneous_ranks=simultaneous)
            if len(accuracy.judges) > 1:
                table.insert(0, "judge", judge)
            tables.append(table)
        board = pd.concat(tables, ignore_index=True)
        settings = {name: value for name, value in tables[0].attrs["settings"].items() if name != "judge"}
        board.attrs = {"warnings": warnings_of(accuracy, by), "settings": settings}
        return {"scores": with_kinds(board, ends_of="score"), "accuracy": accuracy.table, "rates": accuracy.rates}


def warnings_of(accuracy: JudgeAccuracy, estimator: str) -> list[str]:
    """Return what is to be said of scores by an estimator."""
    from jaxeval.accuracy.belief import SPOKEN, why_none
    from jaxeval.accuracy.cautions import model_cautions

    texts = [caution.text for caution in model_cautions(accuracy) if caution.kind in _TOLD]
    marked = accuracy.table["believe"] & (accuracy.table["estimator"] != estimator)
    for name, n in accuracy.table.loc[marked, "estimator"].value_counts().items():
        n_all = int((accuracy.table["estimator"] == estimator).sum())
        texts.append(f"{n:,} of {counted(n_all, 'score')}: believe {SPOKEN[name]} (--estimator {name}) rather than "
                     f"{estimator}")  # fmt: skip
    keys = [name for name in ("slice", "model", "judge") if name in accuracy.table]
    reasons: dict[str, int] = {}
    for _, rows in accuracy.table.groupby(keys, sort=False):
        if not rows["believe"].any():
            why = why_none(dict(zip(rows["estimator"], rows["status"], strict=True)), accuracy.settings.sampling)
            reasons[why] = reasons.get(why, 0) + 1
    texts += [f"{counted(n, 'score')} that nothing here makes believable: {why}" for why, n in reasons.items()]
    if estimator == "naive":
        texts.append("these are the judge's raw shares, which its errors bias: no correction was asked for")
    return [*accuracy.warnings, *dict.fromkeys(texts)]


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


class JudgeOptions(RunningOptions, AccuracyOptions, section=""):
    """What is read, and what is estimated of it."""

    calibration: File = option(None, "Judged answers with human labels.", "FILE", required=True)
    test: File = option(None, "Judged answers to rate; labels, if any, are shown as truth.", "FILE", required=True)
    pairs: tuple[Pair, ...] = option((), "Compare two models; may be repeated.", "A B", flag="--compare")
    shared: str | None = option(None, "Whose labels the shared calibration uses. [B of a pair; else all]", "MODEL")
    random: Names | None = again(FacetOptions, "random", more="judge: accuracies by judges like these, too.")


@command("judge", apart={"random": "pairs"})
def judge(options: JudgeOptions, columns: Answers) -> Answer:
    """Rate models' accuracy by LLM judges, corrected by human labels, and say what the data cannot.

    The first table has the estimate to believe for each model and judge, beside the judge's raw share, and why it is
    believed. With --full follow all estimates with intervals: the judge's raw share, labels alone, PPI++, Rogan-Gladen
    with each model's own and with a shared calibration, and the rates of the judges. Columns have the same names in
    both files.
    """
    from jaxeval.accuracy.judge_accuracy import judge_accuracy
    from jaxeval.accuracy.judged_sums import POOLED
    from jaxeval.accuracy.report import judge_report
    from jaxeval.data.table_files import column_names, naming
    from jaxeval.statistics.random_facets import USUAL_FACETS

    estimated = options.arguments(AccuracyOptions, RunningOptions)
    facets = list(options.random or ())
    if columns.model in facets:
        raise click.UsageError(
            f"--random {columns.model}: it names the models, which are rated and not drawn anew; leave it out of "
            "--random"
        )
    (labelled, judged), columns, found, advice = _read_both(options, columns)
    for name in filter(None, (options.by, options.stratify, options.strata, options.cluster)):
        for path, answers in ((options.calibration, labelled), (options.test, judged)):
            with naming(path):
                answers.covariate(name)
    if options.pairs or options.shared:
        labelled, judged = labelled.with_pandas(), judged.with_pandas()
    chosen = []
    if options.pairs:
        from jaxeval.accuracy.model_comparison import checked_pairs, compare

        pairs = [tuple(named_model(judged.models, name) for name in pair) for pair in options.pairs]
        chosen = checked_pairs(judged, pairs)
    whose = named_model(labelled.models, options.shared) if options.shared else POOLED
    accuracy = judge_accuracy(labelled, judged, shared=whose, random=facets, **estimated)
    comparison = compare(accuracy, chosen, labels_of_b=options.shared is None) if chosen else None

    def figures() -> dict[str, Any]:
        drawn = {"accuracy": plots.plot_accuracy(accuracy), "rates": plots.plot_rates(accuracy)}
        return drawn if comparison is None else {**drawn, "differences": plots.plot_differences(comparison)}

    answer = judge_report(accuracy, comparison)._plain_answer()
    if len(names_of([options.calibration, options.test])) == 1:
        answer = answer._replace(warnings=[_of_one_file(options.test, labelled), *answer.warnings])
    notes = [f"calibration: {labelled.report}", f"test: {judged.report}", *found, *answer.notes]
    if not (facets or options.pairs or options.by or options.stratify or options.strata):
        judges = ["judge"] if len(judged.judges) > 1 else []
        used = {"judge", options.cluster, *columns.arguments().values()}.union(judged.judges)
        used |= {*USUAL_FACETS}.difference(column_names(options.calibration))
        item = columns.item or "item"
        advice += undeclared(options.test, used, judges, item if item in column_names(options.test) else None)
    return answer._replace(advice=[*answer.advice, *advice], notes=notes, figures=figures)


def _of_one_file(path: FileName, answers: JudgedAnswers) -> str:
    """Return what is to be said where the calibration is the test, too."""
    labels = counted(answers.report.n_labels, "label")
    advice = "jaxeval scores --human reads one file of which people labelled some answers"
    if answers.report.n_labels >= answers.report.n_judgments:
        advice = "all have one, which says more than a judge; name answers without a label as the test"
    return f"{base_name(path)} is both calibration and test, so that {labels} of it count in both: {advice}"


def _read_both(options: JudgeOptions, columns: Answers) -> tuple[list[JudgedAnswers], Answers, list[str], list[str]]:
    """Return the calibration and the test, the columns that they are read by, and a note and advice about these.

    Nobody need name models and items whose columns have a usual name, and no other role.
    """
    from jaxeval.data.roles import usual_column
    from jaxeval.data.table_files import column_names
    from jaxeval.errors import DataError

    roles = (options.by, options.stratify, options.strata, options.cluster, *(options.random or ()))
    used = {*roles, *columns.judgments, *(x for x in columns.arguments().values() if isinstance(x, str))}
    unused = [name for name in column_names(options.test) if name not in used]
    usual = {role: usual_column(unused, None, role) for role in ("model", "item") if getattr(columns, role) is None}

    def read(found: dict[str, Any]) -> tuple[list[JudgedAnswers], Answers, list[str]]:
        taken, files = replace(columns, **found), ((options.calibration, True), (options.test, False))
        told = [f"{role}s in {name!r} (--{role} names another column)" for role, name in found.items()]
        return [_read(path, taken.arguments(), part) for path, part in files], taken, [named(told)] if told else []

    found = {role: name for role, name in usual.items() if name is not None}
    try:
        return *read(found), []
    except DataError:
        if "item" not in found:
            raise
    item = found.pop("item")
    advice = (
        f"each row counts as an item of its own: --item {item} says what keeps it from having the answers to an item"
    )
    return *read(found), [advice]


def _read(path: FileName, columns: dict[str, Any], calibration: bool) -> JudgedAnswers:
    from jaxeval.data.judged_answers import read_answers
    from jaxeval.data.table_files import column_names

    unparsed = columns["unparsed"] or "error"
    named = {**columns, "judgment": list(columns["judgments"]) or None, "unparsed": unparsed}
    del named["judgments"]
    if calibration:
        # A calibration of the judge alone has no models, and one of single items nothing to pair.
        have = column_names(path)
        named |= {key: None for key in ("model", "item", "answer") if named[key] not in have}
    elif named["label"] is not None and named["label"] not in column_names(path):
        named["label"] = None
    return read_answers(path, **named)
