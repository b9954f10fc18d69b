"""The options of a fit and of its bootstrap: each stands here once, and everything below takes them as one value.

To add an option: a field here or in `jaxeval.options`, and the code that it is for. Signatures, docstrings, types,
checks and commands follow. A field decides the draws, unless it is ``shown``: a checkpoint
of other values is another run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from jaxeval.checks import checked_rating
from jaxeval.data.battles import Battles
from jaxeval.data.columns import first_place
from jaxeval.data.features import FeatureLike, checked_features
from jaxeval.errors import DataError
from jaxeval.kernels.links import Link
from jaxeval.kernels.resample import DrawScheme
from jaxeval.kernels.tie_models import Response, TieModel
from jaxeval.options.boards import MOST_SLICES, BoardInterval, RankOptions, ScaleOptions, SliceOptions, VoteFitOptions
from jaxeval.options.field import again, declared_in, option
from jaxeval.options.resampling import DrawnTogether, DrawOptions, Scheme
from jaxeval.ratings.sparse_boards import check_dense, resolved
from jaxeval.wording import counted

Precision = Literal["float64", "float32"]

#: The kernels' schemes. Clusters are drawn as battles are: as many as there are, with replacement.
SCHEMES = {"multinomial": DrawScheme.MULTINOMIAL, "poisson": DrawScheme.POISSON, "bayesian": DrawScheme.BAYESIAN}


class FitOptions(VoteFitOptions, ScaleOptions):
    """What `fit_bradley_terry` is asked for, besides where it starts."""

    features: Sequence[FeatureLike] = option((), "Covariates of the battles.", flag="")
    normalize: bool = option(True, "Divide every covariate by its root mean square.", flag="")
    interval: BoardInterval = again(RankOptions, "interval")
    cluster: str | None = again(DrawnTogether, "cluster")
    strata: str | None = again(DrawnTogether, "strata")

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
        return [name for name, is_asked in refused.items() if is_asked]

    @property
    def response(self) -> Response:
        """What decides a battle, for the kernels."""
        return Response(TieModel[self.ties.upper()], Link[self.link.upper()])

    def checked(self, battles: Battles) -> Self:
        """Return the same options, with plain Python numbers and lists.

        Raises:
            TypeError: an option has the wrong type.
            ValueError: a bad number, or an unknown name.
            DataError: a tie model for soft targets.
        """
        features = tuple(checked_features(self.features, self.feature_ridge))
        numbers = self.checked_values() | {"base": checked_rating("base", self.base)}
        checked = replace(self, features=features, **numbers)
        _check_ties(battles, checked.ties)
        if checked.ties != "half" and checked.link != "logit":
            raise ValueError(
                f"ties={checked.ties!r} is a model of logits, got link={checked.link!r}: take link='logit', or "
                "ties='half', which goes with every link"
            )
        if checked.contextual:
            check_dense(checked.method)
        if checked.penalty != "firth":
            return checked
        if checked.beside_firth:
            raise ValueError(
                f"penalty={checked.penalty!r} is for plain Bradley-Terry boards on tables of all pairs, got "
                f"{', '.join(checked.beside_firth)}: leave one or the other out"
            )
        return replace(checked, method="dense")


class FitSettings(FitOptions):
    """What made a fit: its options, with the gauge in words, covariates by name and the method that was chosen."""

    gauge: str
    method: Literal["dense", "sparse"]  # on (M, M) tables, or on the graph of pairs
    dtype: Precision
    device: str
    versions: str

    @property
    def reweighted(self) -> bool:
        """Whether each battle counts by the battles of its pair."""
        return self.reweight


class BootstrapOptions(FitOptions, SliceOptions):
    """What `bootstrap` is asked for, besides how it runs."""

    n_resamples: int = again(DrawOptions, "n_resamples", least=1)
    seed: int = again(DrawOptions, "seed")
    scheme: Scheme = again(DrawnTogether, "scheme", choices=())
    dtype: Precision = option("float64", "Precision of the refits.", flag="")

    @property
    def drawn(self) -> DrawScheme:
        """The scheme of the kernels."""
        return SCHEMES["multinomial" if self.scheme == "cluster" else self.scheme]

    def checked(self, battles: Battles) -> Self:
        """Check as `FitOptions.checked` does; ``by`` is then a list of names, if anything."""
        scheme, cluster = _checked_cluster(battles, self.scheme, self.cluster)
        if scheme == "poisson" and self.strata is not None:
            raise ValueError(
                'scheme="poisson" draws every battle on its own, so that no stratum has a given number of them: say '
                'scheme="multinomial" or "bayesian" with strata=, or leave strata= out'
            )
        by = None if self.by is None else _checked_by(self.by)
        checked = replace(super().checked(battles), scheme=scheme, cluster=cluster, by=by)
        if checked.contextual and checked.dtype != "float64":
            raise ValueError(
                f"refits with features or a tie model are in double precision, got dtype={checked.dtype!r}"
            )
        if checked.interval == "bca" and (checked.contextual or checked.strata is not None):
            raise ValueError(
                'interval="bca" is for boards of votes without covariates, tie models and strata: take '
                'interval="percentile", or leave these out'
            )
        if checked.by is None and (checked.max_slices, checked.min_slice_battles, checked.missing) != (
            MOST_SLICES,
            0,
            "error",
        ):
            raise ValueError(
                "max_slices, min_slice_battles and missing are about the slices of by= (on the command line --by), and "
                "there are none"
            )
        return checked

    def identity(self, features: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the options that decide the draws, covariates by name, and those that do not."""
        deciding: dict[str, Any] = {}
        shown: dict[str, Any] = {}
        for name, _, _, declared in declared_in(type(self)):
            (shown if declared.shown else deciding)[name] = getattr(self, name)
        penalty = "firth" if self.penalty == "firth" else "none"  # "auto" is for intervals
        return {**deciding, "by": list(self.by or []), "features": list(features), "penalty": penalty}, shown


class BootstrapSettings(FitSettings, BootstrapOptions):
    """What made a bootstrap: its options, in the words of `FitSettings`, and the devices."""

    by: list[str]  # columns whose groups are the slices
    n_devices: int


def _checked_cluster(battles: Battles, scheme: Scheme, cluster: str | None) -> tuple[Scheme, str | None]:
    """Return the scheme, which a cluster implies, and the cluster, which the battles may name."""
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
    """Raise an error for a tie model that soft targets do not allow."""
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
