"""Variance components of crossed, nested and unbalanced designs, and the error of a weighted mean under them.

Henderson's first method (1953, DOI 10.2307/3001853) with fixed groups swept out: sums of squares between the levels of
each effect are set equal to what they are on average. In a balanced design that is the analysis of variance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.lazy_names import scipy
from jaxeval.statistics.quantiles import student_quantile
from jaxeval.wording import counted, named, visible_line

RESIDUAL = "residual"
_LEVEL = 0.95  # at which degrees of freedom give intervals of the length that they should have
_MEAN_OF_PARTS = 0.6  # how near quantiles are to the mean of those of their parts, if one has one degree of freedom
_ALIKE = 1.6  # strata whose degrees of freedom differ by a smaller factor are pooled: those of 3 and 4 levels are
_SINGULAR = 1e-10  # smallest singular value of the equations, of the largest, with which effects are told apart
_ROUNDING = 1e-9  # of a stratum, beside those nested in it


@dataclass(frozen=True, eq=False)
class Effect:
    """A random effect: the factors whose levels it crosses, and the level of each cell."""

    factors: tuple[str, ...]
    code: NDArray[np.intp]  # (N,)
    n_levels: int
    within: frozenset[str]  # factors whose levels follow from its own: those it crosses, and those they are nested in

    @property
    def name(self) -> str:
        """The factors in words."""
        return " x ".join(self.factors)


@dataclass(frozen=True, eq=False)
class FacetDesign:
    """Random effects of N cells, the last one the residual, and what they do to a weighted mean.

    The R effects are in the order of ``effects``. Effect r adds ``component[r] * spread[r]`` to the variance of the
    mean. Strata of variance are sums of these parts over an effect and all that are nested in it: in a balanced design
    mean squares over N, which are independent and have ``freedom`` degrees.
    """

    effects: tuple[Effect, ...]
    weight: Float  # (N,) of the cells in the mean; they sum to 1
    group: NDArray[np.intp]  # (N,) fixed groups, whose means are swept out
    expected: Float  # (R, R) sums of squares (rows) that a component of 1 (columns) gives on average
    spread: Float  # (R,) sums of squares of the weights of the levels; 1 over their number where all weigh alike
    finer: Bool  # (R, R) whether the effect of the column is nested in that of the row, or the same
    freedom: Float  # (R,) degrees of freedom of the strata
    alone: tuple[str, ...]  # factors of one level
    merged: Mapping[str, str]  # factors that have no effect of their own, and the effect that holds theirs

    @property
    def names(self) -> list[str]:
        """(R,) names of the effects."""
        return [effect.name for effect in self.effects]

    def swept(self, values: Float) -> Float:
        """Return (N, K) values less the means of the fixed groups."""
        return values - (_sums(values, self.group) / np.bincount(self.group)[:, None])[self.group]

    def squares(self, values: Float) -> Float:
        """Return (R, K, K) sums of squares and products of (N, K) values between the levels of each effect."""
        away = self.swept(values)
        squares = [
            (sums / np.bincount(effect.code)[:, None]).T @ sums
            for effect in self.effects[:-1]
            for sums in (_sums(away, effect.code),)
        ]
        return np.stack([*squares, away.T @ away])

    def components(self, squares: Float) -> Float:
        """Return (R, ...) components, negative ones as they come out, from sums of squares (R, ...)."""
        return np.tensordot(np.linalg.inv(self.expected), squares, 1)

    def strata(self, components: Float) -> Float:
        """Return (R, ...) variances of the mean over the levels of each effect.

        None is truly smaller than those nested in it. Where levels of unlike size, or equal means, give one of 0 or
        less, the largest of these stands for it.
        """
        strata = np.maximum(np.tensordot(self.finer * self.spread, components, 1), 0.0)
        for k in np.argsort(self.finer.sum(1)):  # the finest first
            if (nested := self.finer[k] & (np.arange(len(strata)) != k)).any():
                least = strata[nested].max(0)
                strata[k] = np.where(strata[k] > _ROUNDING * least, strata[k], least)
        return strata

    @property
    def signs(self) -> Float:
        """(R,) how often each stratum counts in the variance of the mean: the sum over coarser ones is 1 for each."""
        return np.linalg.solve(self.finer.T.astype(float), np.ones(len(self.effects)))

    def error(self, components: Float, least: float = 0.0) -> tuple[Float, Float]:
        """Return the variance (...) of the weighted mean, and its degrees of freedom, from components (R, ...).

        The variance is at least that of each single stratum, and ``least`` (...). See `joint_freedom` for the degrees.
        """
        strata, signs = self.strata(components), self.signs
        counted = signs > 1e-9
        with np.errstate(invalid="ignore"):
            variance = np.maximum(np.maximum(np.tensordot(signs, strata, 1), strata[counted].max(0)), least)
        parts = signs[counted] * np.moveaxis(strata[counted], 0, -1)
        return variance, joint_freedom(parts, self.freedom[counted], variance)

    def component_intervals(self, components: Float, level: float) -> tuple[Float, Float]:
        """Return ends (R, ...) of intervals of the components, at least 0, by modified large samples.

        Each stratum is a chi-square; its exact bounds are joined in quadrature (Ting, Burdick, Graybill et al. 1990,
        DOI 10.1080/00949659008811240, without the small terms of pairs).
        """
        strata, tail = self.strata(components), (1 - level) / 2
        weights = np.linalg.inv(self.finer.astype(float)) / self.spread[:, None]  # (R, R)
        low = 1 - self.freedom / scipy.special.chdtri(self.freedom, tail)
        high = self.freedom / scipy.special.chdtri(self.freedom, 1 - tail) - 1
        up, down = (weights > 0)[..., None] * high[:, None], (weights < 0)[..., None] * low[:, None]
        lows, highs = (weights > 0)[..., None] * low[:, None], (weights < 0)[..., None] * high[:, None]
        squares = (weights[..., None] * strata.reshape(len(strata), -1)) ** 2  # (R, R, K)
        flat = components.reshape(len(strata), -1)
        lower = flat - np.sqrt((squares * (lows + highs) ** 2).sum(1))
        upper = flat + np.sqrt((squares * (up + down) ** 2).sum(1))
        return np.maximum(lower, 0.0).reshape(components.shape), np.maximum(upper, 0.0).reshape(components.shape)


def joint_freedom(parts: Float, freedom: Float, variance: Float) -> Float:
    """Return degrees of freedom (...) of a ``variance`` (...) of ``parts`` (..., R) with ``freedom`` (R,); NaN for 0.

    Satterthwaite's (1946, DOI 10.2307/3002019) rest on each part as it is estimated. Where that of few levels is small
    by chance they are too many, and where a facet has no effect its part is often too large. So the square of the
    variance in their numerator is v^(1 + 1/d) u^(1 - 1/d), d the fewest degrees of a part, and u the sum of the parts,
    from which error is not subtracted; and they are at most 8 d^2. Intervals with them would still hold .88 of the
    truths where two levels make most of the variance, and .92 with three.

    Cochran and Cox (Experimental Designs, 1957) take the mean of Student's quantiles of the parts, by their shares of
    the variance; parts with about as many degrees have Satterthwaite's together. It holds .94 and more, whatever the
    facets add, and is a fifth too long where three levels add nothing.

    The quantile here lies .6 / d of the way from the first to the second, and the degrees are those with which an
    interval of .95 is as long. By simulation it holds .927 to .98 with two levels, .934 to .962 with three, and .94 to
    .956 with four and more. Parts may add up to more than the variance: those of most degrees then count less.
    """
    order = np.argsort(freedom)
    parts, freedom = parts[..., order], freedom[order]
    fewest = freedom[0]
    near = np.maximum.outer(freedom, freedom) <= _ALIKE * np.minimum.outer(freedom, freedom)
    with np.errstate(invalid="ignore", divide="ignore"):
        before = np.maximum(parts.sum(-1), variance)
        satterthwaite = variance ** (1 + 1 / fewest) * before ** (1 - 1 / fewest) / (parts**2 @ (1 / freedom))
        share = np.diff(np.minimum(parts.cumsum(-1) / np.asarray(variance)[..., None], 1.0), prepend=0.0)
        together = (parts @ near) ** 2 / (parts**2 @ (near / freedom[:, None]))
    share[..., -1] += 1 - share.sum(-1)
    mean = (share * student_quantile(_LEVEL, np.where(together > 0, together, freedom))).sum(-1)
    quantile = student_quantile(_LEVEL, np.where(variance > 0, np.clip(satterthwaite, 1.0, 8 * fewest**2), 1.0))
    quantile = quantile + _MEAN_OF_PARTS / fewest * (mean - quantile)
    return np.where(variance > 0, scipy.special.stdtridf((1 + _LEVEL) / 2, quantile), np.nan)


def design_of(
    factors: Mapping[str, NDArray[np.intp]],
    weight: Float | None = None,
    group: NDArray[np.intp] | None = None,
    most: int = 1,
) -> FacetDesign:
    """Find the random effects of cells, and what their sums of squares are on average.

    Args:
        factors: level (N,) of each cell, by factor.
        weight: (N,) of each cell in the mean; alike by default.
        group: (N,) fixed groups; one by default.
        most: the most factors whose levels an effect crosses. 1 gives main effects alone: interactions then go to the
            residual, and the error of a mean, which counts them once with each of their factors, is not too small.
    """
    names = list(factors)
    n = len(next(iter(factors.values())))
    weight = np.full(n, 1 / n) if weight is None else weight / weight.sum()
    group = np.zeros(n, np.intp) if group is None else group
    coded: dict[tuple[str, ...], NDArray[np.intp]] = {
        (name,): _coded(np.asarray(code, np.intp)) for name, code in factors.items()
    }
    alone = tuple(name for name in names if coded[name,].max(initial=0) == 0)
    names = [name for name in names if name not in alone]
    for size in range(2, min(most, len(names)) + 1):
        for chosen in combinations(names, size):
            coded[chosen] = crossed(coded[chosen[:-1]], coded[chosen[-1:]])
    effects: list[Effect] = []
    merged: dict[str, str] = {}
    for chosen in (key for size in range(1, most + 1) for key in coded if len(key) == size and key[0] not in alone):
        levels = int(coded[chosen].max()) + 1
        if levels == n:
            if len(chosen) == 1:
                merged[chosen[0]] = RESIDUAL
            continue
        within = frozenset(
            name for name in names if name in chosen or crossed(coded[chosen], coded[name,]).max() + 1 == levels
        )
        same = next((effect for effect in effects if effect.within == within and effect.n_levels == levels), None)
        if same is None:
            effects.append(Effect(chosen, coded[chosen], levels, within))
        elif len(chosen) == 1:
            merged[chosen[0]] = same.name
    effects.append(Effect((RESIDUAL,), np.arange(n), n, frozenset([*names, RESIDUAL])))
    expected = _expected(effects, group)
    singular = np.linalg.svd(expected / np.sqrt(np.outer(np.diag(expected), np.diag(expected))), compute_uv=False)
    if not singular[-1] > _SINGULAR * singular[0]:
        raise ValueError(f"the effects {', '.join(effect.name for effect in effects)} cannot be told apart")
    spread = np.array([(np.bincount(effect.code, weight) ** 2).sum() for effect in effects])
    finer = np.array([[row.within <= column.within for column in effects] for row in effects])
    freedom = _freedom(effects, spread, finer, group, weight)
    return FacetDesign(tuple(effects), weight, group, expected, spread, finer, freedom, alone, merged)


def normal_effects(covariance: Float, n: int, rng: np.random.Generator) -> Float:
    """Draw (n, K) normal effects of an estimated (K, K) covariance, which need not be one.

    Their variances are its diagonal, at least 0; negative directions are left out of how they go together.
    """
    size, axes = np.linalg.eigh(covariance)
    axes = axes * np.sqrt(np.maximum(size, 0.0))
    kept, wanted = (axes**2).sum(1), np.maximum(np.diagonal(covariance), 0.0)
    drawn: Float = (
        rng.standard_normal((n, len(size))) @ (axes * np.sqrt(wanted / np.where(kept > 0, kept, 1.0))[:, None]).T
    )
    return drawn


def facet_names(random: str | Sequence[str]) -> list[str]:
    """List the names of random facets as they were given: one name, or several."""
    names = list(random) if np.iterable(random) and not isinstance(random, str) else [random]
    if not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"random must be names of columns, got {random!r}")
    return list(dict.fromkeys(names))


def sentence_of(levels: Mapping[str, int]) -> str:
    """Say what is random, by the number of levels of each facet."""
    *first, last = [f"{visible_line(name)}s" for name in levels]
    drawn = [counted(n, visible_line(name)) for name, n in levels.items()]
    return f"for {' and '.join([', '.join(first), last]) if first else last} like these ({', '.join(drawn)})"


def warnings_of(design: FacetDesign, levels: Mapping[str, int]) -> list[str]:
    """Say which facets have too few levels, and which are nested or come together."""
    messages = []
    for name, n in levels.items():
        word = visible_line(name)
        if name in design.alone:
            messages.append(
                f"{word} has one level: how much others like it would differ cannot be known, so that there is no "
                "interval; read the scores of a second one, or leave it out of the random facets"
            )
        elif n == 2:
            messages.append(
                f"{word} has two levels: what it adds rests on one difference, so that intervals are long and weak; "
                "three or more tell far more"
            )
        held = design.merged.get(name)
        if held == RESIDUAL:
            messages.append(f"every score has a {word} of its own: what it adds is in the residual")
        elif held is not None:
            both = f"{word} and {visible_line(held)}"
            messages.append(f"{both} always come together: what they add is counted once, as {visible_line(held)}")
    for effect in design.effects[:-1]:
        above = [name for name in effect.within if name not in effect.factors]
        if above and effect.factors[0] in levels:
            messages.append(
                f"{visible_line(effect.factors[0])} is nested in {named(sorted(map(visible_line, above)))}: each level "
                "lies within one of them, and is counted so"
            )
    return messages


def _freedom(effects: Sequence[Effect], spread: Float, finer: Bool, group: NDArray[np.intp], weight: Float) -> Float:
    """Return (R,) degrees of freedom of strata: the effective number of levels less what coarser effects take."""
    fixed = 1 / (np.bincount(group, weight) ** 2).sum()
    freedom = np.zeros(len(effects))
    for k in sorted(range(len(effects)), key=lambda k: int(finer[:, k].sum())):
        effect = effects[k]
        inside = group.max() > 0 and crossed(effect.code, group).max() + 1 == effect.n_levels
        coarser = [j for j in range(len(effects)) if finer[j, k] and j != k]
        freedom[k] = 1 / spread[k] - (fixed if inside else 1.0) - freedom[coarser].sum()
    return np.maximum(freedom, 1.0)


def _expected(effects: Sequence[Effect], group: NDArray[np.intp]) -> Float:
    """Return (R, R) traces tr(P_s Q Z_r Z_r' Q): Q sweeps out the fixed groups, P_s averages over effect s's levels."""
    n, sizes = len(group), np.bincount(group).astype(float)
    counts = [np.bincount(effect.code).astype(float) for effect in effects]
    by_group = [_counts(effect.code, group, len(sizes)) for effect in effects[:-1]]  # (levels, G)
    expected = np.empty((len(effects),) * 2)
    last = len(effects) - 1
    expected[last, last] = n - len(sizes)
    for s, counts_of_s in enumerate(by_group):
        share = counts_of_s**2 / sizes
        expected[last, s] = n - float(share.sum())
        expected[s, last] = effects[s].n_levels - float((share / counts[s][:, None]).sum())
        inner = counts_of_s.T @ (counts_of_s / counts[s][:, None])
        for r, other in enumerate(by_group):
            both = crossed(effects[s].code, effects[r].code)
            first = np.zeros(int(both.max()) + 1, np.intp)
            first[both] = np.arange(n)
            times, rows, columns = np.bincount(both), effects[s].code[first], effects[r].code[first]
            through = np.zeros(len(times))
            for g in range(len(sizes)):
                through += counts_of_s[rows, g] * other[columns, g] / sizes[g]
            outer = (other.T @ other) / np.outer(sizes, sizes)
            expected[s, r] = float((times * (times - 2 * through) / counts[s][rows]).sum() + (inner * outer).sum())
    return expected


def _coded(code: NDArray[np.intp]) -> NDArray[np.intp]:
    """Number levels from 0 without gaps."""
    if code.max(initial=0) <= 4 * len(code) + 1024:
        there = np.bincount(code) > 0
        return (np.cumsum(there) - 1)[code]
    return np.unique(code, return_inverse=True)[1]


def crossed(a: NDArray[np.intp], b: NDArray[np.intp]) -> NDArray[np.intp]:
    """Number the pairs of levels that are there, from 0 without gaps."""
    return _coded(a * (int(b.max(initial=0)) + 1) + b)


def _counts(code: NDArray[np.intp], group: NDArray[np.intp], n_groups: int) -> Float:
    levels = int(code.max()) + 1
    return np.bincount(code * n_groups + group, minlength=levels * n_groups).reshape(levels, n_groups).astype(float)


def _sums(values: Float, code: NDArray[np.intp] | Int) -> Float:
    """Sum the rows of (N, K) values by level: (L, K)."""
    n = len(code)
    member = scipy.sparse.csr_array((np.ones(n), (code, np.arange(n))), shape=(int(code.max()) + 1, n))
    return np.asarray(member @ values)
