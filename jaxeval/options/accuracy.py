"""Options of accuracies by LLM judges: arguments of `judge_accuracy` and of what is made of it."""

from __future__ import annotations

from typing import Literal

from jaxeval.options.boards import GroupOption
from jaxeval.options.field import GROUPS, INTERVALS, again, option
from jaxeval.options.resampling import DrawnTogether, DrawOptions

#: How labelled answers were chosen: a random part of the answers; by their label; or of another model or day.
CalibrationSampling = Literal["random", "by label", "borrowed"]


class AccuracyOptions(DrawOptions, GroupOption):
    """What is estimated of judged answers."""

    sampling: CalibrationSampling | None = option(
        None, "How the labelled answers were chosen. random: a random part. by-label: so many of each class. borrowed: "
        "of another model or day. It decides what may be believed. [not known]", flag="--calibration-sampling",
        section=INTERVALS, kind="Sampling",
    )  # fmt: skip
    stratify: str | None = option(None, "Column of groups within which the judge is corrected.", "COL", section=GROUPS)
    strata: str | None = again(DrawnTogether, "strata")
    cluster: str | None = again(DrawnTogether, "cluster")
    n_resamples: int = again(DrawOptions, "n_resamples", 10_000)
    n_halves: int = option(
        20, "Number of random halves of the calibration items behind ppi_plus_plus_half; the resamples take turns.",
        flag="", least=1, section=INTERVALS,
    )  # fmt: skip
