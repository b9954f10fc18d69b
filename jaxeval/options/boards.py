"""Options of boards: what is fitted, to which groups, and with which intervals; and of accuracies by LLM judges."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import inf
from typing import Literal, TypeAlias

from jaxeval.options.columns import VoteReading
from jaxeval.options.field import FIT, GROUPS, INTERVALS, Options, again, option
from jaxeval.options.resampling import DrawnTogether, DrawOptions

#: What holds ratings in place.
Gauge: TypeAlias = str | tuple[Hashable, float]
Ties = Literal["half", "davidson", "rao_kupper"]
LinkName = Literal["logit", "probit"]
Penalty = Literal["auto", "none", "firth"]
FitMethod = Literal["auto", "dense", "sparse"]
#: How intervals of ratings come about: from the draws, from errors of the fit, or for each model as suits it.
BoardInterval = Literal["auto", "percentile", "basic", "bca", "wald"]
MissingGroup = Literal["error", "drop", "label"]
#: How labelled answers were chosen: a random part of the answers; by their label; or of another model or day.
CalibrationSampling = Literal["random", "by label", "borrowed"]

#: With more slices than this, somebody has probably named the wrong column.
MOST_SLICES = 500


class ScaleOptions(Options, section=FIT):
    """Where ratings stand."""

    ridge: float = option(
        0.0, "Penalty on the squares of the strengths. It draws ratings together; above 0 all of them are finite.",
        "R", least=0,
    )  # fmt: skip
    gauge: Gauge = option(
        "mean", "What is held fixed: the mean of the ratings, their mean by votes, or the rating of a model. "
        "Differences, ranks and tiers do not depend on it.", "mean|votes|MODEL=RATING", shown=True,
    )  # fmt: skip
    base: float = option(1000.0, "Mean of the ratings, where no model is held fixed.", "ELO", shown=True)


class ResponseOptions(Options, section=FIT):
    """How a fit takes results."""

    ties: Ties = option(
        "half", "Ties: half a win each, or a model of ties. Ratings of a model of ties are on another scale (Davidson: "
        "log-odds of decisive battles). Beside them stand ratings by expected score, where a tie is half a win.",
    )  # fmt: skip
    link: LinkName = option(
        "logit", "From strengths to the probability of a win: Bradley-Terry (logit), or Thurstone's Case V (probit)."
    )


class PairOptions(Options, section=FIT):
    """Options of fits of battles between two models."""

    method: FitMethod = option(
        "auto", "Tables of all pairs of models (dense), or the graph of the pairs that met (sparse), for 1,000 models "
        "or more.",
    )  # fmt: skip
    penalty: Penalty = option(
        "auto", "Firth's bias reduction, for models with few votes: of all ratings (firth), or by default of the "
        "intervals of models under 200 votes alone.",
    )  # fmt: skip
    reweight: bool = option(False, "Inverse-pair-frequency weights: a battle counts 1 / max(battles of its pair, 50).")


class VoteFitOptions(PairOptions, ResponseOptions):
    """How battles are fitted, with covariates."""

    feature_ridge: float = option(
        0.0, "Penalty on the squares of the coefficients of --features.", "R", least=0, most=inf
    )


class RankOptions(Options, section=INTERVALS):
    """Where intervals of ratings come from, and who is ranked."""

    interval: BoardInterval = option(
        "auto", "Intervals from the resamples (bca: corrected for bias, and for errors that change with ratings), or "
        "(wald) from the standard errors of the fit. By default models under 200 votes have those of a penalised fit, "
        "the others percentiles.", shown=True,
    )  # fmt: skip
    simultaneous_ranks: bool = option(
        False, "Make the rank spreads hold for all models at once; by default each holds by itself."
    )
    min_battles: int | None = option(
        None, "Models with fewer votes stand apart. They are rated with the others, but take no rank. They come last, "
        "and rank spreads, tiers and figures leave them out. By default the data decide which models have too few; 0 "
        "ranks every model.", "N", flag="--min-votes", least=0,
    )  # fmt: skip


class GroupOption(Options, section=GROUPS):
    """Groups of one column."""

    by: str | None = option(None, "Column of groups. Each is rated on its own.", "COL")


class SliceOptions(Options, section=GROUPS):
    """What is rated on its own."""

    by: str | Sequence[str] | None = again(
        GroupOption, "by", more="May be repeated. COL may be a path such as meta.turns. Where it holds lists or "
        "flags, a vote counts in each of its groups, and in overall.",
    )  # fmt: skip
    max_slices: int = option(MOST_SLICES, "Most groups of --by; more are refused.", "N", least=1, shown=True)
    min_slice_battles: int = option(
        0, "Groups of --by with fewer battles are listed, and not rated.", "N", least=0, shown=True
    )
    missing: MissingGroup = again(
        VoteReading, "missing", more="label: what has no value of --by is a group of its own.", shown=True,
        choices=("error", "drop", "label"),
    )  # fmt: skip


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
