"""Draws of a smooth statistic: intervals that know how much each unit moves it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.statistics.comparison import bias_corrected_bounds
from jaxeval.statistics.draws import Draws, IntervalKind
from jaxeval.statistics.quantiles import interval_bounds


class Derivatives(Protocol):
    """What a statistic's derivatives say; computed when asked for."""

    def influence_sums(self) -> tuple[Float, Float]:
        """(M,) sums over the units of the squares and of the cubes of their influences."""
        ...

    def studentised(self) -> tuple[Float, Float]:
        """Standard errors of the estimates (M,), and of the statistic in each resample (B, M), from influences."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class StatisticDraws(Draws):
    """`Draws` of a statistic that can be differentiated by its weights: BCa and studentised intervals, too."""

    derivatives: Derivatives | None = field(default=None, repr=False)
    place: Any = field(default=None, repr=False)  # (M,) of each quantity among those of the derivatives

    def take(self, which: Bool | NDArray[np.intp]) -> Draws:
        """The quantities ``which``: a mask (M,), or their numbers."""
        own: Any = super().take(which)
        return replace(own, place=self._places[which])

    @property
    def _places(self) -> NDArray[np.intp]:
        return np.arange(len(self.names)) if self.place is None else np.asarray(self.place)

    @cached_property
    def influence_errors(self) -> pd.Series:
        """Standard errors from the influence of each unit (the infinitesimal jackknife), without resamples.

        Raises:
            ValueError: the statistic has no derivatives, or units are not drawn by themselves.
        """
        return pd.Series(np.sqrt(self._known.influence_sums()[0][self._places]), self.names)

    @property
    def _known(self) -> Derivatives:
        if self.derivatives is None:
            raise ValueError(
                "columns that are drawn side by side have no single units, whose influence these errors and intervals "
                "take: use kind='percentile', 'basic' or 'wald'"
            )
        return self.derivatives

    def interval(self, level: float = 0.95, kind: IntervalKind = "percentile") -> pd.DataFrame:
        """Confidence intervals, as of `Draws`; two more kinds know the influence of each unit.

        Args:
            level: of each interval by itself.
            kind: as for `Draws.interval`; or "bca", quantiles corrected for bias and for an error that changes with
                the value (Efron 1987); or "studentised", from draws divided by the error that each resample has.

        Raises:
            ValueError: as `Draws.interval`; for these two also where the statistic has no derivatives.
        """
        if kind not in ("bca", "studentised"):
            return super().interval(level, kind)
        known = np.isfinite(self.estimate) & ~self.without_spread.to_numpy()
        if kind == "bca":
            squares, cubes = (x[self._places] for x in self._known.influence_sums())
            with np.errstate(invalid="ignore", divide="ignore"):
                acceleration = np.where(squares > 0, cubes / (6 * squares**1.5), 0.0)
            bounds = bias_corrected_bounds(self.draws, level, self.estimate, acceleration)
            lower, upper = self._widened(self.estimate, bounds, level, self.limits)
        else:
            error, errors = (x[..., self._places] for x in self._known.studentised())
            with np.errstate(invalid="ignore", divide="ignore"):
                scaled = np.where(errors > 0, (self.draws - self.estimate) / errors, np.nan)
            low, high = interval_bounds(scaled, level)
            lower, upper = self.estimate - high * error, self.estimate - low * error
        return pd.DataFrame(
            {"lower": np.where(known, lower, np.nan), "upper": np.where(known, upper, np.nan)}, self.names
        )
