"""Hold a Soft-Elo calibration: its settings, and a calibrated judge for each target map, to JSON and back.

The interval of a model is rating +- q * standard error, with q a conformal quantile of the scores
|residual| / standard error of other models (arXiv:2606.13221, Eqs. 2-4; DOI 10.1080/01621459.2017.1307116).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr

from jaxeval.arrays import Float, Int
from jaxeval.checks import checked_finite, checked_positive, checked_rating
from jaxeval.data.judged_battles import HardLabel, JudgedBattles
from jaxeval.data.labels import Labels, check_labels
from jaxeval.errors import DataError
from jaxeval.show.shown import Result
from jaxeval.softelo.temperature import smoothing
from jaxeval.wording import counted

#: A level as typed: a float is read by its shortest decimal form, so 0.9 is nine tenths.
Level = float | str | Fraction
#: Level of the intervals where none is given and there are enough calibration models for it.
DEFAULT_LEVEL = Fraction(9, 10)


def exact_level(level: Level) -> Fraction:
    """Return the level as the fraction that its decimal form says; a ValueError if it is not between 0 and 1."""
    try:
        exact = Fraction(str(level))
    except ValueError:
        exact = Fraction(0)
    if not 0 < exact < 1:
        raise ValueError(f"level must be a number strictly between 0 and 1, got {level!r}")
    return exact


def conformal_rank(n: int, level: Level) -> int:
    """Rank ceil(level * (n + 1)) of the conformal quantile among n scores, in exact arithmetic; n + 1 if infinite."""
    if n < 0:
        raise ValueError(f"the number of scores must not be negative, got {n}")
    return ceil(exact_level(level) * (n + 1))


def expected_coverage(n: int, level: Level) -> float:
    """Return the coverage of split conformal intervals from n exchangeable scores: ceil(level * (n + 1)) / (n + 1)."""
    return conformal_rank(n, level) / (n + 1)


def chosen_level(level: Level | None, n: int, use: str) -> tuple[Fraction, list[str]]:
    """Return the level of intervals from n scores: the one that is given, or the default as far as n scores support it.

    A default that n scores do not support is lowered to the largest level that they do, rounded down to four decimals,
    and a sentence says so, with the ``use`` of the level. A level that is given is never changed.
    """
    if level is not None:
        return exact_level(level), []
    if n < 1 or conformal_rank(n, DEFAULT_LEVEL) <= n:
        return DEFAULT_LEVEL, []
    text = supported_level_text(n)
    return Fraction(text), [
        f"{use}: {counted(n, 'calibration model supports', 'calibration models support')} levels up to {text}, so the "
        f"default level of {float(DEFAULT_LEVEL):g} is lowered to {text}; a level that you name is never changed"
    ]


def smallest_calibration(level: Level) -> int:
    """Return the fewest calibration scores that give a finite interval at ``level``."""
    exact = exact_level(level)
    return ceil(exact / (1 - exact))


def supported_level_text(n: int) -> str:
    """Return the largest supported level, four decimals, rounded down; in words where there is none."""
    return "none" if n < 1 else f"{int(10_000 * Fraction(n, n + 1)) / 10_000:g}"


def conformal_quantile(
    scores: ArrayLike, level: Level, weights: ArrayLike | None = None, new_weight: float | None = None
) -> float:
    """Return the conformal quantile of (n,) ``scores``: the ceil(level * (n + 1))-th smallest; infinite beyond n.

    Args:
        scores: finite or +inf; for ratings |residual| / standard error.
        level: 1 - alpha, taken by its decimal form and compared exactly.
        weights: (n,) weights >= 0, for calibration models that are not exchangeable with the new one: likelihood
            ratios of the new population to that of the calibration (weighted conformal prediction, arXiv:1904.06019).
            The quantile is then the smallest score up to which the weights reach ``level`` of their sum, which includes
            the new model's weight.
        new_weight: the new model's own weight; the mean of ``weights`` by default. Equal weights give the
            unweighted quantile.

    Raises:
        ValueError: a level outside (0, 1), a NaN score, weights of another length, negative, infinite or all zero.

    Examples:
        >>> import jaxeval
        >>> scores = [0.3, 1.2, 0.7, 0.5, 0.9]
        >>> jaxeval.conformal_quantile(scores, 0.8)
        1.2
        >>> jaxeval.conformal_quantile(scores, 0.9)
        inf
    """
    values = np.asarray(scores, float)
    if values.ndim != 1:
        raise ValueError(f"scores must be one-dimensional, got shape {values.shape}")
    missing = np.isnan(values)
    if missing.any():
        raise ValueError(
            f"{missing.sum():,} of {counted(len(values), 'score is', 'scores are')} NaN (first at "
            f"{int(missing.argmax())}): leave out models without a residual or a standard error"
        )
    if weights is None:
        if new_weight is not None:
            raise ValueError("new_weight is used only together with weights: give both or none")
        rank = conformal_rank(len(values), level)
        return float(np.partition(values, rank - 1)[rank - 1]) if rank <= len(values) else float("inf")
    return _weighted_quantile(values, exact_level(level), np.asarray(weights, float), new_weight)


def _weighted_quantile(values: Float, level: Fraction, weights: Float, new_weight: float | None) -> float:
    if weights.shape != values.shape:
        raise ValueError(
            f"{counted(len(values), 'score needs', 'scores need')} as many weights, got shape {weights.shape}"
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise ValueError(
            f"weights must be finite and >= 0; {bad.sum():,} of {len(weights):,} are not, the first is "
            f"{weights[bad][0]:g}"
        )
    if not weights.any():
        raise ValueError("weights must not all be zero")
    exact = [Fraction(float(w)) for w in weights]
    added = sum(exact) / len(exact) if new_weight is None else Fraction(float(new_weight))
    if added < 0:
        raise ValueError(f"new_weight must be >= 0, got {new_weight}")
    needed, reached = level * (sum(exact) + added), Fraction(0)
    for i in np.argsort(values, kind="stable"):
        reached += exact[i]
        if reached >= needed:
            return float(values[i])
    return float("inf")


def conformity_scores(residual: ArrayLike, standard_error: ArrayLike) -> Float:
    """Return |residual| / standard error (Eq. 3): without spread 0 for a hit, else infinite; NaN if one is missing."""
    size, error = np.abs(np.asarray(residual, float)), np.asarray(standard_error, float)
    without = np.where(size > 0, np.inf, size)
    return np.where(error > 0, size / np.where(error > 0, error, 1.0), np.where(np.isnan(error), np.nan, without))


_COLUMNS = [
    "model", "human_elo", "judge_elo", "residual", "standard_error", "human_error", "residual_error", "n_battles",
    "n_human",
]  # fmt: skip
_ORDERS = {True: "both presentation orders", False: "one presentation order"}
_MADE_OF = {"scores": "the signs of scores", "verdict": "verdicts"}
# After this number of halvings no double is left between the ends, unless the half width is less than 1/2,000 of the
# first one.
_HALVINGS = 64
# Noise beyond this number of standard deviations has a probability that doubles cannot hold beside 1.
_FARTHEST = 9.0
# Weights are rounded to this fraction of the largest weight. Equal weights and simple ratios stay exact.
_WEIGHT_STEPS = 240


def floor_text(tau: float) -> str:
    """Say in words what a judge's error beyond sampling is; ``tau`` is in Elo."""
    if tau == 0:
        return "tau 0: sampling explains the calibration residuals, no error of the judge's own is seen"
    return f"tau {tau:.1f} Elo: the judge's own error, a floor that no number of battles removes"


@dataclass(frozen=True)
class CalibrationSettings:
    """What made a calibration."""

    ridge: float  # coefficient of ||theta||^2 (not half of it), on anchors and on the new model alike
    base: float
    cluster: str | None  # column of the battles that were sampled together
    judge_name: str
    n_battles: int
    scored: bool  # by the judge's scores; False: by its verdicts alone
    labels: Labels | None  # how labels were read, and how verdicts of new battles are
    hard_label: HardLabel  # what the hard label was made of, and is in new battles
    both_orders: bool  # score differences are means over both presentation orders
    both_verdicts: bool  # verdicts were given in both presentation orders
    mean_score_difference: float  # of absolute values: tells another scale of scores
    versions: str

    def doubts(self, new: JudgedBattles, method: str) -> list[str]:
        """Say of ``new`` battles that another judge, or the same judge on another scale, may have scored them."""
        notes = []
        if method == "soft" and new.scored != self.scored:
            have = ["verdicts only", "scores"]
            raise DataError(
                f"the calibration is on the judge's {have[self.scored]}, the new battles hold {have[new.scored]}: "
                "name the same kind of columns when reading them"
            )
        if new.judge_name != self.judge_name:
            notes.append(f"the calibration is of {self.judge_name!r}, the new battles are of {new.judge_name!r}")
        of_verdicts = method != "soft" and self.hard_label == "verdict"
        both = self.both_verdicts if of_verdicts else self.both_orders
        new_both = (new.verdict_orders if of_verdicts else new.orders) is not None
        if method != "soft" and new.hard_label != self.hard_label:
            notes.append(
                f"the calibration's hard labels are made of {_MADE_OF[self.hard_label]}, those of the new battles "
                f"of {_MADE_OF[new.hard_label]}"
            )
        elif both != new_both:
            notes.append(
                f"the calibration was made from columns of {_ORDERS[both]}, the new battles from those of "
                f"{_ORDERS[new_both]}: a judge that favours a place errs differently in one order. Name the columns of "
                "both each time (scores_a_swapped and scores_b_swapped, or verdict_swapped), unless one column holds "
                "the means of both"
            )
        mean = float(np.abs(new.score_difference).mean())
        if method == "soft" and not self.mean_score_difference / 4 <= mean <= 4 * self.mean_score_difference:
            notes.append(
                f"score differences are {mean:.3g} on average, {self.mean_score_difference:.3g} in the "
                "calibration: on another scale the temperature means nothing"
            )
        return notes

    def check(self) -> None:
        """Raise a ValueError, or a TypeError, where a setting is not one that `SoftEloCalibration.fit` makes."""
        checked_positive("ridge", self.ridge)
        checked_rating("base", self.base)
        checked_finite("mean_score_difference", self.mean_score_difference)
        if self.hard_label not in get_args(HardLabel):
            raise ValueError(f"hard_label cannot be {self.hard_label!r}")
        check_labels(self.labels)
        if not isinstance(self.cluster, str | None):
            raise ValueError(f"cluster must be the name of a column or null, found {self.cluster!r}")
        for name in ("scored", "both_orders", "both_verdicts"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} must be true or false, found {getattr(self, name)!r}")


@dataclass(frozen=True, eq=False, repr=False)
class CalibratedMethod(Result):
    """One target map, calibrated on M anchor models.

    ``models`` has one row per calibration model: ``human_elo, judge_elo``, ``residual`` (judge minus human), and the
    sampling errors of these three: ``human_error, standard_error, residual_error``, all in Elo; ``n_battles`` that were
    judged, ``n_human`` of them with a human vote.
    """

    beta: float | None  # temperature of the soft map, from all human non-ties; None for the other maps
    anchors: pd.Series  # (M,) log-strengths that the judge gives the anchors, logits, mean zero
    models: pd.DataFrame

    def _sentences(self) -> list[str]:
        calibrate = counted(len(self.models), "model calibrates", "models calibrate")
        return [f"{counted(len(self.anchors), 'anchor')}, {calibrate}; {floor_text(self.floor)}"]

    @classmethod
    def from_table(cls, beta: float | None, anchors: pd.Series, models: pd.DataFrame) -> CalibratedMethod:
        """Give a method with the columns that it needs of ``models``, a part of the table of `soft_elo` with errors."""
        return cls(beta, anchors, models[_COLUMNS].astype({"model": str}).reset_index(drop=True))

    def to_json(self) -> dict[str, Any]:
        """Return the method in lists, objects, numbers and strings."""
        return {
            "beta": self.beta,
            "anchors": {str(model): float(theta) for model, theta in self.anchors.items()},
            "models": self.models.to_dict("records"),
        }

    @classmethod
    def from_json(cls, name: str, saved: Any) -> CalibratedMethod:
        """Return what `to_json` gave for the method ``name``."""
        if not isinstance(saved["anchors"], dict):
            raise ValueError("anchors must be an object of strengths by model")
        anchors = pd.Series(saved["anchors"], dtype=float, name="logit").rename_axis("model")
        models = pd.DataFrame(saved["models"])[_COLUMNS]
        numbers = models[_COLUMNS[1:]].to_numpy(float)
        if not (np.isfinite(anchors).all() and np.isfinite(numbers).all()):
            raise ValueError("numbers are missing or not finite")
        errors = models[["standard_error", "human_error", "residual_error"]]
        if models["model"].duplicated().any() or not (errors >= 0).all(axis=None) or not (models["n_human"] > 0).all():
            raise ValueError("models must be named once, with errors >= 0 and human votes")
        if not np.allclose(models["judge_elo"] - models["human_elo"], models["residual"], rtol=0, atol=1e-6):
            raise ValueError("residual must be judge_elo minus human_elo")
        beta = saved["beta"]
        if (beta is None) == (name == "soft") or (name == "soft" and not 0 < float(beta) < np.inf):
            raise ValueError(f"beta of method {name!r} cannot be {beta!r}")
        if name != "soft":
            smoothing(name)
        return cls.from_table(None if beta is None else float(beta), anchors, models)

    @property
    def floor(self) -> float:
        """tau, Elo: the judge's own error of a model (root mean square), which no number of battles removes."""
        return floor_spread(self.models["residual"], self.models["residual_error"])


def half_widths(
    residual: ArrayLike, noise: ArrayLike, prediction_noise: ArrayLike, level: Level, weights: ArrayLike | None = None
) -> Float:
    """Return (S,) half widths of the intervals of S predictions, in the unit of the residuals.

    Where no residual is less noisy than the prediction, this is the conformal quantile of |residual|. It is infinite
    where the level cannot be reached, and NaN where the prediction's noise is NaN.

    Args:
        residual: (n,) residuals of the calibration models.
        noise: (n,) standard errors of these residuals.
        prediction_noise: (S,) standard errors of the predictions' residuals.
        level: 1 - alpha, taken by its decimal form and compared exactly.
        weights: (n,) >= 0 and not all zero, for calibration models that are not exchangeable with the new ones
            (arXiv:1904.06019). The weight within the half width reaches ``level`` of the total, to which the new model
            adds the mean of the others. They are rounded to 1/240 of the largest. Equal weights change nothing.
    """
    r, s = np.asarray(residual, float), np.asarray(noise, float)
    v = np.atleast_1d(np.asarray(prediction_noise, float))
    steps = np.ones(len(r), np.int64)
    if weights is not None:
        weight = np.asarray(weights, float)
        if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
            raise ValueError("weights must be finite, >= 0 and not all zero")
        steps = np.rint(_WEIGHT_STEPS * weight / weight.max()).astype(np.int64)
    total = int(steps.sum())
    needed = ceil(exact_level(level) * (total + Fraction(total, max(len(r), 1))))
    if needed > total:
        return np.where(np.isnan(v), np.nan, np.inf)
    added = np.sqrt(np.maximum(v[:, None] ** 2 - s**2, 0))
    below, above = np.zeros(len(v)), np.abs(r).max() + _FARTHEST * added.max(axis=1)
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        enough = _reaches(_within(r, added, middle), steps, needed) >= 0.5
        below, above = np.where(enough, below, middle), np.where(enough, middle, above)
    return above


def floor_spread(residual: ArrayLike, noise: ArrayLike) -> float:
    """Return tau, the judge's own error, which no number of battles removes: root mean square over models.

    The estimate of Paule and Mandel (1982) about zero: sum r_i^2 / (s_i^2 + tau^2) = n, of residuals r (n,) and their
    standard errors s. It is 0 where the residuals are no larger than their noise.
    """
    squares, variance = np.asarray(residual, float) ** 2, np.asarray(noise, float) ** 2
    most = float(squares.sum())

    def excess(tau_squared: float) -> float:
        return float((squares / (variance + tau_squared)).sum()) - len(squares)

    least = 1e-12 * most
    return float(np.sqrt(brentq(excess, least, most))) if most > 0 and excess(least) > 0 else 0.0


def _within(residual: Float, added: Float, half: Float) -> Float:
    """Return (S, n) probability that each residual lies within its prediction's half width (S,)."""
    has_noise, h = added > 0, half[:, None]
    scale = np.where(has_noise, added, 1.0)
    noisy = ndtr((h - residual) / scale) - ndtr((-h - residual) / scale)
    return np.where(has_noise, noisy, np.abs(residual) <= h)


def _reaches(p: Float, steps: Int, needed: int) -> Float:
    """Return (S,) probability that independent events of probability ``p`` (S, n) weigh ``needed`` or more together."""
    # Column w is the probability that the weight is w so far; the last one takes all from ``needed`` on.
    weight = np.zeros((len(p), needed + 1))
    weight[:, 0] = 1.0
    for i, step in enumerate(np.minimum(steps, needed)):
        if step:
            moved = weight * p[:, i, None]
            weight -= moved
            weight[:, step:] += moved[:, : needed + 1 - step]
            weight[:, -1] += moved[:, needed + 1 - step :].sum(axis=1)
    return np.asarray(weight[:, -1])
