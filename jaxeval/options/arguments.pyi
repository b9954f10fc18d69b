# Written by tests/stubs.py from the declarations of options.
import collections.abc
import pathlib
import typing

import jaxeval.data.features

class AnchoredVerdictsArguments(typing.TypedDict, total=False):
    verdict: str | None
    model: str | None
    judge: str | None
    anchor: str | None
    task: str | None
    item: str | None
    run: str | None
    labels: str | collections.abc.Mapping[typing.Any, str] | None
    missing: typing.Literal["error", "drop"]
    reference: str | None
    confidence: typing.Literal["share", "percent"] | None
    unparsed: typing.Literal["error", "drop"] | None

class BattlesArguments(typing.TypedDict, total=False):
    model_a: str
    model_b: str
    winner: str | None
    target: str | None
    weight: str | None
    propensity: str | None
    count: str | None
    labels: str | collections.abc.Mapping[typing.Any, str] | None
    winner_model: str | None
    loser_model: str | None
    scores: tuple[str, str] | None
    counts: tuple[str, str, str] | None
    tie_within: float
    both_bad: typing.Literal["half", "drop"]
    missing: typing.Literal["error", "drop"]
    where: str | None
    cluster: str | None
    competitor: str | collections.abc.Sequence[str] | None

class AuditArguments(typing.TypedDict, total=False):
    voter: str | None
    time: str | None
    cluster: str | None
    by: str | collections.abc.Sequence[str] | None
    lengths: tuple[str, str] | None
    families: collections.abc.Mapping[typing.Any, str] | None
    ties: typing.Literal["half", "davidson", "rao_kupper"]
    features: collections.abc.Sequence[str | tuple[str, str] | jaxeval.data.features.Feature]
    level: float
    n_resamples: int
    seed: int
    checkpoint: str | pathlib.Path | None
    memory_limit: int | None
    chunk_size: int | None
    progress: bool | None

class BootstrapArguments(typing.TypedDict, total=False):
    max_slices: int
    min_slice_battles: int
    missing: typing.Literal["error", "drop", "label"]
    ridge: float
    gauge: str | tuple[collections.abc.Hashable, float]
    base: float
    ties: typing.Literal["half", "davidson", "rao_kupper"]
    link: typing.Literal["logit", "probit"]
    method: typing.Literal["auto", "dense", "sparse"]
    penalty: typing.Literal["auto", "none", "firth"]
    reweight: bool
    feature_ridge: float
    normalize: bool
    interval: typing.Literal["auto", "percentile", "basic", "bca", "wald"]
    cluster: str | None
    strata: str | None
    dtype: typing.Literal["float64", "float32"]
    checkpoint: str | pathlib.Path | None
    memory_limit: int | None
    chunk_size: int | None
    progress: bool | None

class CompareBoardsArguments(typing.TypedDict, total=False):
    max_slices: int
    min_slice_battles: int
    missing: typing.Literal["error", "drop", "label"]
    ridge: float
    gauge: str | tuple[collections.abc.Hashable, float]
    base: float
    ties: typing.Literal["half", "davidson", "rao_kupper"]
    link: typing.Literal["logit", "probit"]
    method: typing.Literal["auto", "dense", "sparse"]
    penalty: typing.Literal["auto", "none", "firth"]
    reweight: bool
    feature_ridge: float
    features: collections.abc.Sequence[str | tuple[str, str] | jaxeval.data.features.Feature]
    normalize: bool
    interval: typing.Literal["auto", "percentile", "basic", "bca", "wald"]
    cluster: str | None
    strata: str | None
    n_resamples: int
    seed: int
    scheme: typing.Literal["multinomial", "poisson", "bayesian", "cluster"]
    dtype: typing.Literal["float64", "float32"]
    checkpoint: str | pathlib.Path | None
    memory_limit: int | None
    chunk_size: int | None
    progress: bool | None

class FitBradleyTerryArguments(typing.TypedDict, total=False):
    gauge: str | tuple[collections.abc.Hashable, float]
    base: float
    ties: typing.Literal["half", "davidson", "rao_kupper"]
    link: typing.Literal["logit", "probit"]
    method: typing.Literal["auto", "dense", "sparse"]
    penalty: typing.Literal["auto", "none", "firth"]
    reweight: bool
    feature_ridge: float
    normalize: bool
    interval: typing.Literal["auto", "percentile", "basic", "bca", "wald"]
    cluster: str | None
    strata: str | None

class FitJudgePanelArguments(typing.TypedDict, total=False):
    max_slices: int
    min_slice_battles: int
    missing: typing.Literal["error", "drop", "label"]
    ridge: float
    gauge: str | tuple[collections.abc.Hashable, float]
    base: float
    strata: str | None
    scheme: typing.Literal["multinomial", "poisson", "bayesian", "cluster"]
    checkpoint: str | pathlib.Path | None
    memory_limit: int | None
    chunk_size: int | None
    progress: bool | None

class JudgeAccuracyArguments(typing.TypedDict, total=False):
    by: str | None
    level: float
    n_resamples: int
    seed: int
    sampling: typing.Literal["random", "by label", "borrowed"] | None
    stratify: str | None
    strata: str | None
    cluster: str | None
    n_halves: int
    checkpoint: str | pathlib.Path | None
    memory_limit: int | None
    chunk_size: int | None
    progress: bool | None

class KendallTauArguments(typing.TypedDict, total=False):
    level: float
    n_resamples: int
    seed: int
    resample: typing.Literal["models", "items", "both"]
    strata: str | None
    checkpoint: str | pathlib.Path | None
    memory_limit: int | None
    chunk_size: int | None
    progress: bool | None

class LeaderboardArguments(typing.TypedDict, total=False):
    max_slices: int
    min_slice_battles: int
    missing: typing.Literal["error", "drop", "label"]
    ridge: float
    gauge: str | tuple[collections.abc.Hashable, float]
    base: float
    ties: typing.Literal["half", "davidson", "rao_kupper"]
    link: typing.Literal["logit", "probit"]
    method: typing.Literal["auto", "dense", "sparse"]
    penalty: typing.Literal["auto", "none", "firth"]
    reweight: bool
    feature_ridge: float
    features: collections.abc.Sequence[str | tuple[str, str] | jaxeval.data.features.Feature]
    normalize: bool
    interval: typing.Literal["auto", "percentile", "basic", "bca", "wald"]
    cluster: str | None
    strata: str | None
    n_resamples: int
    seed: int
    scheme: typing.Literal["multinomial", "poisson", "bayesian", "cluster"]
    dtype: typing.Literal["float64", "float32"]
    checkpoint: str | pathlib.Path | None
    memory_limit: int | None
    chunk_size: int | None
    progress: bool | None

class PredictionPoweredArguments(typing.TypedDict, total=False):
    max_slices: int
    min_slice_battles: int
    missing: typing.Literal["error", "drop", "label"]
    ridge: float
    gauge: str | tuple[collections.abc.Hashable, float]
    base: float
    cluster: str | None
    scheme: typing.Literal["multinomial", "poisson", "bayesian", "cluster"]
    checkpoint: str | pathlib.Path | None
    memory_limit: int | None
    chunk_size: int | None
    progress: bool | None

class ReadScoresArguments(typing.TypedDict, total=False):
    model: str | None
    item: str | None
    score: str | None
    trial: str | None
    benchmark: str | None
    weight: str | None
    cluster: str | None
    wide: bool
    output_filter: str | None
    where: str | None

class SeparabilityArguments(typing.TypedDict, total=False):
    level: float
    n_resamples: int
    seed: int
    checkpoint: str | pathlib.Path | None
    memory_limit: int | None
    chunk_size: int | None
    progress: bool | None

class SmallCategoriesArguments(typing.TypedDict, total=False):
    max_slices: int
    min_slice_battles: int
    missing: typing.Literal["error", "drop", "label"]
    gauge: str | tuple[collections.abc.Hashable, float]
    base: float
    cluster: str | None

class StyleEffectArguments(typing.TypedDict, total=False):
    max_slices: int
    min_slice_battles: int
    missing: typing.Literal["error", "drop", "label"]
    ridge: float
    gauge: str | tuple[collections.abc.Hashable, float]
    base: float
    ties: typing.Literal["half", "davidson", "rao_kupper"]
    link: typing.Literal["logit", "probit"]
    method: typing.Literal["auto", "dense", "sparse"]
    penalty: typing.Literal["auto", "none", "firth"]
    reweight: bool
    feature_ridge: float
    normalize: bool
    interval: typing.Literal["auto", "percentile", "basic", "bca", "wald"]
    cluster: str | None
    strata: str | None
    n_resamples: int
    seed: int
    scheme: typing.Literal["multinomial", "poisson", "bayesian", "cluster"]
    dtype: typing.Literal["float64", "float32"]
    checkpoint: str | pathlib.Path | None
    memory_limit: int | None
    chunk_size: int | None
    progress: bool | None
