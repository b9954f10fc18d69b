"""The options of a fit and of its bootstrap: each stands here once, and everything below takes them as one value.

To add an option: a field here, its type in `FitArguments` or `BootstrapArguments`, a sentence in the docstring of
`fit_bradley_terry` or `bootstrap`, whose signatures then show it, and the code that it is for. A field decides the
draws, unless it is marked as `_SHOWN`: a checkpoint of other values is another run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self, TypedDict, get_args

import numpy as np

from jaxeval.checks import checked_finite, checked_integer, checked_number, checked_rating
from jaxeval.data.battles import Battles
from jaxeval.data.columns import first_place
from jaxeval.data.features import FeatureLike, checked_features
from jaxeval.data.groups import MissingGroup
from jaxeval.errors import DataError
from jaxeval.execution.runs import RunOptions
from jaxeval.kernels.links import Link
from jaxeval.kernels.resample import DrawScheme
from jaxeval.kernels.tie_models import Response, TieModel
from jaxeval.ratings.gauge import Gauge
from jaxeval.ratings.sparse_boards import FitMethod, check_dense, resolved
from jaxeval.wording import counted

Scheme = Literal["multinomial", "poisson", "bayesian", "cluster"]
Ties = Literal["half", "davidson", "rao_kupper"]
LinkName = Literal["logit", "probit"]
Penalty = Literal["auto", "none", "firth"]
#: How intervals of ratings come about: from the draws, from errors of the fit, or for each model as suits it.
BoardInterval = Literal["auto", "percentile", "basic", "wald"]
Precision = Literal["float64", "float32"]

#: The kernels' schemes. Clusters are drawn as battles are: as many as there are, with replacement.
SCHEMES = {"multinomial": DrawScheme.MULTINOMIAL, "poisson": DrawScheme.POISSON, "bayesian": DrawScheme.BAYESIAN}
#: With more slices than this, somebody has probably named the wrong column.
MOST_SLICES = 500

#: Marks options that may differ between runs with the same draws.
_SHOWN = {"shown": True}


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What `fit_bradley_terry` is asked for, besides where it starts."""

    ridge: float = 0.0
    gauge: Gauge = field(default="mean", metadata=_SHOWN)
    base: float = field(default=1000.0, metadata=_SHOWN)
    reweight: bool = False
    features: Sequence[FeatureLike] = ()
    normalize: bool = True
    feature_ridge: float = 0.0
    ties: Ties = "half"
    link: LinkName = "logit"
    penalty: Penalty = "auto"
    interval: BoardInterval = field(default="auto", metadata=_SHOWN)
    cluster: str | None = None
    strata: str | None = None
    method: FitMethod = "auto"

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """The options among the ``arguments`` of a call, so that no call lists them again."""
        return cls(**{f.name: arguments[f.name] for f in fields(cls) if f.name in arguments})

    @property
    def contextual(self) -> bool:
        """Whether there are covariates or a tie model."""
        return len(self.features) > 0 or self.ties != "half"

    @property
    def beside_firth(self) -> list[str]:
        """The options that Firth's penalty excludes: its leverages need the information of logits and its inverse."""
        refused = {
            f"ridge={self.ridge:g}": self.ridge > 0,
            "features": len(self.features) > 0,
            f"ties={self.ties!r}": self.ties != "half",
            f"link={self.link!r}": self.link != "logit",
            f"method={self.method!r}": resolved(self.method, 0) == "sparse",
        }
        return [name for name, asked in refused.items() if asked]

    @property
    def response(self) -> Response:
        """What decides a battle, for the kernels."""
        return Response(TieModel[self.ties.upper()], Link[self.link.upper()])

    def checked(self, battles: Battles) -> Self:
        """The same options, with plain Python numbers and lists.

        Raises:
            TypeError: an option has the wrong type.
            ValueError: a bad number, or an unknown name.
            DataError: a tie model for soft targets.
        """
        own = replace(
            self,
            ridge=checked_finite("ridge", self.ridge, 0),
            base=checked_rating("base", self.base),
            features=tuple(checked_features(self.features, self.feature_ridge)),
            feature_ridge=checked_number("feature_ridge", self.feature_ridge),
        )
        if not own.feature_ridge >= 0:
            raise ValueError(f"feature_ridge must be >= 0, got {own.feature_ridge!r}")
        if own.link not in get_args(LinkName):
            raise ValueError(f"link must be one of {', '.join(map(repr, get_args(LinkName)))}, got {own.link!r}")
        _check_ties(battles, own.ties)
        if own.ties != "half" and own.link != "logit":
            raise ValueError(
                f"ties={own.ties!r} is a model of logits, got link={own.link!r}: take link='logit', or ties='half', "
                "which goes with every link"
            )
        if own.contextual:
            check_dense(own.method)
        if own.penalty not in get_args(Penalty):
            raise ValueError(f"penalty must be one of {', '.join(map(repr, get_args(Penalty)))}, got {own.penalty!r}")
        if own.interval not in get_args(BoardInterval):
            known = ", ".join(map(repr, get_args(BoardInterval)))
            raise ValueError(f"interval must be one of {known}, got {own.interval!r}")
        if own.penalty != "firth":
            return own
        if own.beside_firth:
            raise ValueError(
                f"penalty={own.penalty!r} is for plain Bradley-Terry boards on tables of all pairs, got "
                f"{', '.join(own.beside_firth)}: leave one or the other out"
            )
        return replace(own, method="dense")


@dataclass(frozen=True, kw_only=True)
class BootstrapOptions(FitOptions):
    """What `bootstrap` is asked for, besides how it runs."""

    n_resamples: int = field(default=1000, metadata=_SHOWN)
    seed: int = 0
    scheme: Scheme = "multinomial"
    by: str | Sequence[str] | None = None
    dtype: Precision = "float64"
    max_slices: int = field(default=MOST_SLICES, metadata=_SHOWN)
    min_slice_battles: int = field(default=0, metadata=_SHOWN)
    missing: MissingGroup = field(default="error", metadata=_SHOWN)

    @property
    def drawn(self) -> DrawScheme:
        """The scheme of the kernels."""
        return SCHEMES["multinomial" if self.scheme == "cluster" else self.scheme]

    def checked(self, battles: Battles) -> Self:
        """As `FitOptions.checked`; ``by`` is then a list of names, if anything."""
        n_resamples = checked_integer("n_resamples", self.n_resamples, 1)
        seed = checked_integer("seed", self.seed)
        if self.scheme not in get_args(Scheme):
            raise ValueError(f"unknown scheme {self.scheme!r}; known are {', '.join(SCHEMES)} and cluster")
        if self.dtype not in get_args(Precision):
            raise ValueError(f"dtype must be 'float64' or 'float32', got {self.dtype!r}")
        scheme, cluster = _checked_cluster(battles, self.scheme, self.cluster)
        if scheme == "poisson" and self.strata is not None:
            raise ValueError(
                'scheme="poisson" draws every battle on its own, so that no stratum has a given number of them: say '
                'scheme="multinomial" or "bayesian" with strata=, or leave strata= out'
            )
        own = replace(
            super().checked(battles),
            n_resamples=n_resamples,
            seed=seed,
            scheme=scheme,
            cluster=cluster,
            by=None if self.by is None else _checked_by(self.by),
            max_slices=checked_integer("max_slices", self.max_slices, 1),
            min_slice_battles=checked_integer("min_slice_battles", self.min_slice_battles),
        )
        if own.missing not in get_args(MissingGroup):
            raise ValueError(f"missing must be one of {', '.join(get_args(MissingGroup))}, got {own.missing!r}")
        if own.contextual and own.dtype != "float64":
            raise ValueError(f"refits with features or a tie model are in double precision, got dtype={own.dtype!r}")
        if own.by is None and (own.max_slices, own.min_slice_battles, own.missing) != (MOST_SLICES, 0, "error"):
            raise ValueError(
                "max_slices, min_slice_battles and missing are about the slices of by= (on the command line --by), and "
                "there are none"
            )
        return own

    def identity(self, features: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The options that decide the draws, covariates by name, and those that do not."""
        deciding: dict[str, Any] = {}
        shown: dict[str, Any] = {}
        for option in fields(self):
            (shown if option.metadata.get("shown") else deciding)[option.name] = getattr(self, option.name)
        penalty = "firth" if self.penalty == "firth" else "none"  # "auto" is for intervals
        return {**deciding, "by": list(self.by or []), "features": list(features), "penalty": penalty}, shown


class FitArguments(TypedDict, total=False):
    """What `fit_bradley_terry` and `bootstrap` take by name alone, besides ``features``, as type checkers see it."""

    gauge: Gauge
    base: float
    reweight: bool
    normalize: bool
    feature_ridge: float
    ties: Ties
    link: LinkName
    penalty: Penalty
    interval: BoardInterval
    cluster: str | None
    strata: str | None
    method: FitMethod


class BootstrapArguments(FitArguments, RunOptions, total=False):
    """What `bootstrap` takes by name alone, besides ``by`` and ``features``."""

    ridge: float
    dtype: Precision
    max_slices: int
    min_slice_battles: int
    missing: MissingGroup


class ResampleArguments(BootstrapArguments, total=False):
    """The same, and what `bootstrap` takes by position: for functions that hand all their options on to it."""

    n_resamples: int
    seed: int
    scheme: Scheme


def _checked_cluster(battles: Battles, scheme: Scheme, cluster: str | None) -> tuple[Scheme, str | None]:
    """The scheme, which a cluster implies, and the cluster, which the battles may name."""
    if cluster is None and scheme == "cluster":
        cluster = battles.cluster
    if cluster is None:
        if scheme == "cluster":
            raise ValueError(
                'scheme="cluster" needs cluster=, the column whose groups are drawn (on the command line --cluster)'
            )
        return scheme, None
    if scheme not in ("cluster", "multinomial"):
        raise ValueError(f"clusters are drawn with replacement: scheme={scheme!r} cannot have cluster=")
    return "cluster", cluster


def _checked_by(by: str | Sequence[str]) -> list[str]:
    if isinstance(by, str):
        return [by]
    if not isinstance(by, Sequence) or not all(isinstance(name, str) for name in by):
        raise TypeError(f"by= takes the name of a column or a list of names, got {by!r}")
    if len(by) == 0:
        raise ValueError("by= names no column; leave it out to rate the whole board")
    if len(set(by)) < len(by):
        raise ValueError(f"by= names a column twice: {', '.join(by)}")
    return list(by)


def _check_ties(battles: Battles, ties: str) -> None:
    """An error for a tie model that is unknown, or that soft targets do not allow."""
    if ties not in get_args(Ties):
        raise ValueError(f"ties must be one of {', '.join(map(repr, get_args(Ties)))}, got {ties!r}")
    if ties == "half":
        return
    soft = ~np.isin(battles.target, (0.0, 0.5, 1.0))
    if soft.any():
        n = int(soft.sum())
        raise DataError(
            f"{n:,} of {counted(len(soft), 'target')} {'is' if n == 1 else 'are'} neither 0, 1/2 nor "
            f"1{first_place(soft, battles.rows)}: a tie model needs wins, ties and losses; ties='half' takes soft "
            "targets"
        )
