"""Scores that a judge gave, corrected by human labels: options of ``jaxeval scores`` and ``jaxeval compare-scores``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from jaxeval.cli.reading import refuse_beside
from jaxeval.data.remote_names import FileName
from jaxeval.options.columns import CallReading
from jaxeval.options.field import COLUMNS, INTERVALS, Options, again, option
from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.accuracy.judge_accuracy import JudgeAccuracy

Sampling: TypeAlias = Any
#: Kinds of caution that a board of scores tells. A status of its own estimates is a flag there.
_TOLD = ("undeclared", "borrowed", "balanced", "another share", "few labels", "low J")
_ESTIMATORS = (
    "ppi_plus_plus", "rogan_gladen", "rogan_gladen_shared", "calibration_only", "difference", "conditional", "eif",
    "naive",
)  # fmt: skip


class Labels(Options, section=COLUMNS):
    """The options."""

    human: str | None = option(
        None, "Column of human labels. Where people judged some of the answers, and the scores are a judge's, they "
        "correct the scores. [human, label or human_pref, if there; of scores none]", "COL",
    )  # fmt: skip
    judge: str | None = again(CallReading, "judge")
    only_judge: str | None = option(None, "Read this judge only, of several.", "NAME")
    estimator: str | None = option(
        None, "With --human: how scores are corrected; by default ppi_plus_plus of a random part, else rogan_gladen.",
        choices=_ESTIMATORS,
    )  # fmt: skip
    sampling: Sampling | None = option(
        None, "How the labelled answers were chosen. random: a random part. by-label: so many of each class. borrowed: "
        "of another model or day. It decides what may be believed. [not known]", flag="--calibration-sampling",
        section=INTERVALS,
    )  # fmt: skip

    @property
    def there(self) -> bool:
        """Whether scores are to be corrected by human labels."""
        if self.human is None and {self.judge, self.only_judge, self.estimator, self.sampling} != {None}:
            raise click.UsageError(
                "--judge, --only-judge, --estimator and --calibration-sampling need --human, the labels that correct "
                "the scores"
            )
        if self.only_judge is not None and self.judge is None:
            raise click.UsageError("--only-judge needs --judge, the column that names judges")
        return self.human is not None

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
            files if len(files) > 1 else files[0], human=self.human, judge=self.judge, missing=missing,
            only_judge=self.only_judge, keep=[] if by is None else [by], **columns,
        )  # fmt: skip
        cluster = "cluster" if "cluster" in answers.covariates else None
        estimates = judge_accuracy(*answers.by_label(self.sampling), by=by, cluster=cluster, **drawn)
        counts = answers.report
        parts = [
            counted(counts.n_models, "model"), counted(counts.n_items, "item"), counted(counts.n_judges, "judge"),
            counted(counts.n_judgments, "judged answer"), counted(counts.n_labels, "human label"),
        ]  # fmt: skip
        return estimates, ", ".join(parts)

    def check_without(self, options: Options) -> None:
        """Refuse options of `scores` that boards of judged scores do not have."""
        refuse_beside("--human", options.given(), {"by", "simultaneous_ranks"})

    def boards(self, accuracy: JudgeAccuracy, simultaneous: bool) -> dict[str, pd.DataFrame]:
        """Return the board of each judge, one below the other, accuracies by all estimators, and judges' rates."""
        import pandas as pd

        from jaxeval.scores.score_leaderboard import score_leaderboard

        tables, by = [], self.corrected_by(accuracy)
        for judge in accuracy.judges:
            table = score_leaderboard(accuracy, judge=judge, estimator=by, simultaneous_ranks=simultaneous)
            if len(accuracy.judges) > 1:
                table.insert(0, "judge", judge)
            tables.append(table)
        board = pd.concat(tables, ignore_index=True)
        settings = {name: value for name, value in tables[0].attrs["settings"].items() if name != "judge"}
        board.attrs = {"warnings": warnings_of(accuracy, by), "settings": settings}
        return {"scores": board, "accuracy": accuracy.table, "rates": accuracy.rates}


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


def how_corrected(settings: Mapping[str, Any]) -> str:
    """Return the settings of a board of judged scores, in words."""
    from jaxeval.accuracy.estimates import ESTIMATORS
    from jaxeval.execution.precision import versions

    return (
        f"{100 * settings['level']:g}% intervals of new items like these and new labels, {settings['n_resamples']:,} "
        f"resamples, seed {settings['seed']}; {settings['estimator']}: {ESTIMATORS[settings['estimator']]}; "
        f"{versions()}"
    )
