"""Intervals of rating differences that stay valid when one looks every day."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd
import scipy

from jaxeval.arrays import Float
from jaxeval.audits.parts import Answered, Audited, NotAnsweredError, Severity
from jaxeval.checks import checked_integer, checked_positive
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer
from jaxeval.statistics.quantiles import checked_level, normal_quantile
from jaxeval.wording import counted

#: Standard error of a difference, Elo, at which anytime intervals are least wide beside fixed ones.
TUNED_FOR = 10.0


@dataclass(frozen=True, eq=False, repr=False)
class AnytimeIntervals(Answered):
    """Differences of ratings (Elo) with intervals that hold at all looks at once.

    ``table`` has a row for each pair of rated models, by rank: ``above, below, difference, standard_error``, the ends
    ``lower, upper``, and how many ``places`` lie between both. ``width_ratio`` is how many times as wide the interval
    is as a fixed one of the same level. ``apart`` says whether 0 lies outside of it; ``apart_fixed`` says the same of
    the fixed one.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 4, seed=0))
        >>> found = jaxeval.anytime_intervals(fit)
        >>> found.table[["above", "below", "lower", "upper"]].round().to_numpy().tolist()[0]
        ['model-1', 'model-2', 68.0, 144.0]
    """

    part = "anytime_intervals"

    def _shown(self) -> Answer:
        title = f"AnytimeIntervals: {counted(len(self.table), 'pair')}, {self.table['apart'].sum():,} told apart"
        settings = f"{100 * self.settings['level']:g}% at all looks, tuned for {self.settings['tuned_for']:g} Elo"
        return Answer(title, self.table, settings, self.warnings)

    @property
    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The intervals of neighbours, which an audit shows, and those of all pairs."""
        return {"": self.neighbours, "all_pairs": self.table}

    @property
    def neighbours(self) -> pd.DataFrame:
        """The rows of models that stand next to each other."""
        return self.table[self.table["places"] == 1].drop(columns="places").reset_index(drop=True)

    def _said(self) -> Iterator[tuple[Severity, str]]:
        near = self.neighbours
        if len(near) == 0:
            return
        lost = int((near["apart_fixed"] & ~near["apart"]).sum())
        text = f"Somebody who looks every day needs intervals {near['width_ratio'].median():.2f} times as wide: they "
        text += f"tell {near['apart'].sum():,} of {counted(len(near), 'pair')} of neighbours apart. Fixed intervals "
        text += f"tell {near['apart_fixed'].sum():,} apart, but miss at some look more often than they say."
        yield Severity.CAUTION if lost else Severity.NOTE, text


def anytime_intervals(
    board: BradleyTerryFit | Bootstrap,
    *,
    level: float = 0.95,
    tuned_for: float = TUNED_FOR,
    comparisons: int | Literal["all"] = 1,
) -> AnytimeIntervals:
    """Intervals of all rating differences that hold at all looks at once, however often one looks at a growing board.

    difference -+ s sqrt((1 + 1 / u) log((1 + u) / alpha^2)), with the sandwich standard error s and u = c (tuned_for /
    s)^2; an asymptotic confidence sequence (Waudby-Smith et al., arXiv:2103.06476). On 300 simulated boards of 6
    models with 100 looks at 60 or 300 to 6,000 votes, intervals of 95 % missed the difference at some look in .01
    to .03 of the boards, and fixed ones in .33 to .39. They are 1.55 times as wide as fixed ones where they are
    tuned, and 1.66 times as wide at a quarter of those votes or at ten times as many. They rest on a normal
    approximation from the first look on: first look when every model has about 20 votes.

    Args:
        board: the fit, or a bootstrap, whose fit is taken. A fit with ``cluster=`` has errors over clusters.
        level: at all looks at once.
        tuned_for: the standard error (Elo) at which intervals are least wide beside fixed ones. Choose it before the
            first look, and keep it: half of the gap that you want to detect is a good choice.
        comparisons: how many pairs share 1 - level as the chance that any interval misses; "all": all pairs of rated
            models. For a board that grows, give the number of pairs that it will have.

    Raises:
        ValueError: a level or a number out of range.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 4, seed=0))
        >>> found = jaxeval.anytime_intervals(fit)
        >>> found.neighbours[["above", "below", "apart", "apart_fixed"]].to_numpy().tolist()[0]
        ['model-1', 'model-2', True, True]
        >>> found.neighbours["width_ratio"].round(2).tolist()
        [1.56, 1.55, 1.56]
    """
    alpha = 1 - checked_level(level)
    tuned_for = checked_positive("tuned_for", tuned_for)
    fit = board.fit if isinstance(board, Bootstrap) else board
    rated = fit.ratings[np.isfinite(fit.ratings)].sort_values(ascending=False, kind="stable")
    errors = fit.difference_standard_errors.loc[rated.index, rated.index].to_numpy()
    above, below = np.triu_indices(len(rated), 1)
    n = len(above) if comparisons == "all" else checked_integer("comparisons", comparisons, 1)
    value, error = rated.to_numpy()[above] - rated.to_numpy()[below], errors[above, below]
    error = np.where(error > 0, error, np.nan)  # without spread, as with ties alone, the error is unknown
    half = error * anytime_factor(error, tuned_for, alpha / max(n, 1))
    fixed = normal_quantile(level) * error
    table = pd.DataFrame({
        "above": rated.index[above], "below": rated.index[below], "difference": value, "standard_error": error,
        "lower": value - half, "upper": value + half, "width_ratio": half / fixed, "apart": value > half,
        "apart_fixed": value > fixed, "places": below - above,
    })  # fmt: skip
    with_kinds(table, ends_of="difference")
    settings = {"level": level, "tuned_for": tuned_for, "comparisons": n}
    return AnytimeIntervals(table=table, settings=settings, warnings=list(fit.warnings))


def audited_anytime(audited: Audited) -> AnytimeIntervals:
    """Return the part of an audit."""
    intervals = anytime_intervals(audited.fit, level=audited.options.level)
    if intervals.table["width_ratio"].isna().all():
        raise NotAnsweredError("no difference of two ratings has a standard error: there are no intervals to widen")
    return intervals


def wider_at_all_looks(lower: Float, upper: Float, level: float) -> float:
    """How many times as wide the median interval of ratings would be if it were to hold at all looks; NaN for none."""
    z = normal_quantile(level)
    error = (upper - lower) / (2 * z)
    error = error[np.isfinite(error) & (error > 0)]
    return float(np.median(anytime_factor(error, TUNED_FOR, 1 - level)) / z) if len(error) else np.nan


def anytime_factor(standard_error: Float, tuned_for: float, alpha: float) -> Float:
    """Return half-widths in (present) standard errors, valid at all times with probability 1 - ``alpha``.

    At the standard error ``tuned_for``, chosen before looking, the interval is as narrow as it can be.
    """
    with np.errstate(divide="ignore"):
        # The factor is least at the u with log((1 + u) / alpha^2) = u.
        best = -1 - float(scipy.special.lambertw(-(alpha**2) / np.e, -1).real)
        u = best * (tuned_for / standard_error) ** 2
        # An infinite standard error gives u = 0 and an infinite factor: there is no interval yet. So does one of 0.
        return np.asarray(np.sqrt((1 + 1 / u) * np.log((1 + u) / alpha**2)))
