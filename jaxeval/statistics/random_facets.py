"""Draws that vary with judges, prompts or seeds, too: effects of facets on numbers, by the influences of rows.

A number is about its estimate plus the mean of N influences. Variance components of influences (see
`jaxeval.statistics.variance_components`) say how much levels of a facet move it; these are matrices (K, K), so that
differences between K numbers vary as they should. Draws of rows are moved by normal effects of such components.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd, scipy
from jaxeval.statistics import variance_components
from jaxeval.statistics.quantiles import normal_quantile, student_quantile
from jaxeval.wording import counted, named

#: Names of columns that are sampled in most evaluations; commands propose to declare them.
USUAL_FACETS = ("judge", "prompt", "prompt_variant", "template", "seed", "run", "trial", "epoch", "serving", "engine")
_FEW_LEVELS = 50  # with more a column tells items apart
_STREAM = 0x6661636574  # of the effects, beside that of the rows
_LEVEL = 0.95  # at which intervals of lengthened draws are as long as Student's


@dataclass(frozen=True, eq=False)
class RandomFacets:
    """The facets of N rows that are drawn anew, beside the rows, or clusters of them, that draws vary by already."""

    design: variance_components.FacetDesign
    levels: Mapping[str, int]  # of each facet
    unit: str  # what is drawn already: "row", "battle", or the name of the clusters
    n_units: int
    fixed: Sequence[str]  # what may be sampled, too, and stays as it is

    @classmethod
    def of(
        cls, facets: Mapping[str, NDArray[np.intp]], unit: str, cluster: NDArray[np.intp] | None = None,
        beside: Mapping[str, pd.Series] = {},
    ) -> RandomFacets:  # fmt: skip
        """Make facets from the level (N,) of each row, by name, and the cluster (N,) of each row that is drawn whole.

        Usual facets of few levels in a table ``beside`` the rows that are neither are fixed.

        Raises:
            DataError: a facet has one level, or facets cannot be told apart.
        """
        factors = dict(facets) if cluster is None else {unit: cluster, **facets}
        sizes = {name: len(np.unique(code)) for name, code in factors.items()}
        levels = {name: sizes[name] for name in facets}
        try:
            design = variance_components.design_of(factors)
        except ValueError as error:
            raise DataError(f"{error}: leave one out of random= (--random)") from None
        if alone := [name for name in facets if name in design.alone]:
            raise DataError(variance_components.warnings_of(design, {alone[0]: 1})[0])
        fixed = []
        for name in (name for name in USUAL_FACETS if name in beside and name not in factors):
            with contextlib.suppress(TypeError):  # of lists
                fixed += [name] if 1 < len(beside[name].unique()) <= _FEW_LEVELS else []
        return cls(design, levels, unit, sizes.get(unit, len(design.weight)), fixed)

    @property
    def about(self) -> str:
        """What numbers are about, in words."""
        fixed = f" under these {named([f'{name}s' for name in self.fixed])}" if self.fixed else ""
        return variance_components.sentence_of({**self.levels, self.unit: self.n_units}) + fixed

    @property
    def warnings(self) -> tuple[str, ...]:
        """Which facets have few levels, are nested, or come together."""
        return tuple(variance_components.warnings_of(self.design, self.levels))

    def errors(self, influence: Float, *, alike: bool = True) -> tuple[Float, Float]:
        """Return standard errors (K,) of numbers of ``influence`` (N, K), and degrees of freedom; see `effects`."""
        components, design = self._components(influence, alike)
        variance, dof = design.error(np.diagonal(components, axis1=1, axis2=2).copy())
        return np.sqrt(variance), dof

    def effects(self, influence: Float, n: int, seed: int, *, alike: bool = False) -> tuple[Float, Float]:
        """Draw (n, K) effects of the facets on numbers of ``influence`` (N, K); and (K,) degrees of freedom.

        ``alike``: the numbers are of one kind, as ratings of models are, and tell together how much a facet moves them.
        """
        components, design = self._components(influence, alike)
        dof = design.error(np.diagonal(components, axis1=1, axis2=2).copy())[1]
        rng = np.random.default_rng([seed, _STREAM])
        effects = np.zeros((n, influence.shape[1]))
        for k, effect in enumerate(design.effects):
            if effect.factors[0] not in (variance_components.RESIDUAL, self.unit):
                effects += variance_components.normal_effects(design.spread[k] * components[k], n, rng)
        return effects, dof

    def _components(self, influence: Float, alike: bool) -> tuple[Float, variance_components.FacetDesign]:
        """Return (R, K, K) components, and the design, in which strata of numbers that are alike have more freedom.

        Three judges say little about how much judges move one rating, and more about how much they move twenty. So
        strata of facets, over the residual, are drawn together as far as they differ by chance (Smyth 2004, DOI
        10.2202/1544-6115.1027). A stratum has at most the freedom of all numbers that vary independently.
        """
        design = self.design
        components = design.components(design.squares(influence))
        own = np.diagonal(components, axis1=1, axis2=2).copy()
        strata, freedom, there = design.strata(own), design.freedom.copy(), own[-1] > 0
        if not alike or there.sum() < 2:
            return components, design
        size = np.sqrt(own[-1, there])
        together = components[-1][np.ix_(there, there)] / np.outer(size, size)
        independent = there.sum() ** 2 / (together**2).sum()
        for k, effect in enumerate(design.effects):
            if effect.factors[0] in self.levels and effect.factors[0] != self.unit:
                ratio = strata[k, there] / strata[-1, there]
                drawn, more = _moderated(ratio, freedom[k], (independent - 1) * freedom[k])
                strata[k, there], freedom[k] = drawn * strata[-1, there], freedom[k] + more
        moved = np.linalg.inv(design.finer.astype(float)) @ strata / design.spread[:, None]
        each = np.arange(len(there))
        components[:, each, each] = np.where(there, moved, own)
        return components, replace(design, freedom=freedom)

    def moved(self, estimate: Float, draws: Float, influence: Float, seed: int, *, alike: bool = True) -> Float:
        """Move draws (B, K) of rows by effects, as far from the ``estimate`` (K,) as Student's t asks for at 95 %.

        Draws that are not finite stay as they are.
        """
        effects, dof = self.effects(influence, len(draws), seed, alike=alike)
        known = dof > 0
        longer = np.where(known, student_quantile(_LEVEL, np.where(known, dof, 1.0)) / normal_quantile(_LEVEL), 1.0)
        with np.errstate(invalid="ignore"):
            away = (draws - estimate + effects) * longer
            return np.where(np.isfinite(away), estimate + away, draws)


def reject_confounded(
    facets: Mapping[str, NDArray[np.intp]], models: Sequence[NDArray[Any]], names: Sequence[str]
) -> None:
    """Raise DataError where each level of a facet is that of the rows of one model, and each of another one.

    The ``models`` (N,) are those of the rows, or of their two sides.
    """
    for name, code in facets.items():
        rows = np.bincount(code)
        if not 1 < len(rows) <= len(names):
            continue
        met = sum(np.bincount(code * len(names) + model, minlength=len(rows) * len(names)) for model in models)
        table = np.reshape(met, (len(rows), len(names)))
        owner = table.argmax(1)
        if (table.max(1) == rows).all() and len(set(owner.tolist())) == len(rows):
            raise DataError(
                f"{name!r} is confounded with the models: each of its {counted(len(rows), 'level')} belongs to one "
                f"model ({names[owner[0]]!r} is the first one's), so that a rating cannot be told from it: let levels "
                "meet all models"
            )


def _moderated(ratio: Float, freedom: float, most: float) -> tuple[Float, float]:
    """Draw (K,) ratios of mean squares towards their common value; and the ``most`` or fewer degrees that this adds."""
    least = scipy.special.chdtri(freedom, 0.99) / freedom * np.median(ratio)  # a chi-square is seldom less
    logs = np.log(np.maximum(ratio, least + np.finfo(float).tiny))
    logs += np.log(freedom / 2) - scipy.special.digamma(freedom / 2)
    apart = float(logs.var(ddof=1) - scipy.special.polygamma(1, freedom / 2))
    half = np.inf
    if apart > 0:
        half = 0.5 + 1 / apart
        for _ in range(20):  # Newton's steps to trigamma(half) = apart
            trigamma = scipy.special.polygamma(1, half)
            half += trigamma * (1 - trigamma / apart) / scipy.special.polygamma(2, half)
    more = min(2 * half, most)
    common = np.exp(logs.mean() + (0.0 if np.isinf(half) else scipy.special.digamma(half) - np.log(half)))
    return (more * common + freedom * ratio) / (more + freedom), more
