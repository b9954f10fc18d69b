"""Tail probabilities of sums of independent chance results.

The sums are of weighted Bernoulli variables. Their tails come from the saddlepoint approximation of Lugannani and Rice
(1980, DOI 10.2307/1426607), for whole numbers with Daniels' second correction (1987, DOI 10.2307/1403269). Its error is
a few per cent of the probability, however small that is (up to a fifth for a dozen unequal weights), where a normal
approximation is wrong by orders of magnitude.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float

_MOST_STEPS = 60
_TOLERANCE = 1e-6  # of tilts, in standard deviations: the tail's relative error is about as large
_FAR = 1.5
_NEAR_MEAN = 1e-3  # standard deviations within which the formula is 0 / 0
_MOST_EXPONENT = 600.0


class ChanceSums(NamedTuple):
    """G sums of independent terms: row r adds ``weight`` to the sum of its group with ``probability``, or else nothing.

    A row stands for ``times`` such terms. Groups are numbers from 0 to G - 1.
    """

    group: NDArray[np.intp]  # (R,)
    probability: Float  # (R,) strictly between 0 and 1
    weight: Float  # (R,) 1 for whole numbers
    times: Float  # (R,)
    n_groups: int

    def take(self, which: Bool) -> ChanceSums:
        """The sums ``which`` (G,), numbered anew."""
        own, number = which[self.group], np.cumsum(which) - 1
        return ChanceSums(
            group=number[self.group[own]],
            probability=self.probability[own],
            weight=self.weight[own],
            times=self.times[own],
            n_groups=int(which.sum()),
        )

    def total(self, values: Float) -> Float:
        """(G,) sums of ``values`` (R,) over the terms of each group."""
        return np.asarray(np.bincount(self.group, self.times * values, self.n_groups))

    @property
    def mean(self) -> Float:
        """(G,) expected sums."""
        return self.total(self.weight * self.probability)

    @property
    def variance(self) -> Float:
        """(G,) variances of the sums."""
        return self.total(self.weight**2 * self.probability * (1 - self.probability))

    def tail(self, observed: Float, above: Bool, *, whole: bool) -> Float:
        """(G,) probabilities of a sum of ``observed`` or more where ``above``, and of ``observed`` or less elsewhere.

        ``whole``: all weights are 1, so that sums are whole numbers.
        """
        if whole:
            upper = self._upper(observed + np.where(above, -0.5, 0.5), 1.0)
            return np.where(above, upper, 1 - upper)
        upper, (low, high) = self._upper(observed, 0.0), self._ends
        # A smallest or largest sum has a probability of its own, which the formula for continuous sums leaves out.
        lower = np.where(observed <= low, self._probability_of_end(above=False), 1 - upper)
        return np.where(above, np.where(observed >= high, self._probability_of_end(above=True), upper), lower)

    def p_values(self, observed: Float) -> Float:
        """(G,) two-sided p-values of whole sums: twice the smaller tail.

        Sums within 1.5 standard deviations take the normal approximation, which is good enough for p of .13 and more.
        """
        variance, mean = self.variance, self.mean
        z = np.maximum(np.abs(observed - mean) - 0.5, 0) / np.sqrt(np.maximum(variance, 1e-300))
        p = 2 * scipy.special.ndtr(-z)
        far = z > _FAR
        p[far] = 2 * self.take(far).tail(observed[far], (observed > mean)[far], whole=True)
        return np.minimum(p, 1.0)

    @property
    def _ends(self) -> tuple[Float, Float]:
        """(G,) the smallest and the largest sum, moved inwards by a margin for rounding."""
        low, high = self.total(np.minimum(self.weight, 0)), self.total(np.maximum(self.weight, 0))
        margin = 1e-9 * self.total(np.abs(self.weight))
        return low + margin, high - margin

    def _probability_of_end(self, *, above: bool) -> Float:
        likely = np.where((self.weight > 0) == above, self.probability, 1 - self.probability)
        return np.asarray(np.exp(self.total(np.log(np.where(self.weight == 0, 1.0, likely)))))

    def _upper(self, value: Float, step: float) -> Float:
        """(G,) probabilities of ``value`` or more, of sums whose values are ``step`` apart (0: continuous)."""
        low, high = self._ends
        inside = (value > low) & (value < high)
        target = np.where(inside, value, self.mean)
        s, logit = self._saddlepoint(target), scipy.special.logit(self.probability)
        tilted = logit + s[self.group] * self.weight
        expected = scipy.special.expit(tilted)
        spread = np.sqrt(np.maximum(self.total(self.weight**2 * expected * (1 - expected)), 1e-190))
        log_moment = self.total(np.logaddexp(0, tilted) - np.logaddexp(0, logit))
        w = np.sign(s) * np.sqrt(np.maximum(2 * (s * target - log_moment), 0))
        u = spread * (s if step == 0 else 2 / step * np.sinh(np.clip(s * step / 2, -_MOST_EXPONENT, _MOST_EXPONENT)))
        skew = self.total(self.weight**3 * expected * (1 - expected) * (1 - 2 * expected)) / spread**3
        near = np.abs(s) * spread < _NEAR_MEAN
        w_, u_ = np.where(near, 1.0, w), np.where(near, 1.0, u)
        density = np.exp(-(w_**2) / 2) / np.sqrt(2 * np.pi)
        beyond = scipy.special.ndtr(-w_) - density * (1 / w_ - 1 / u_)
        beyond = np.where(near, 0.5 - s * spread / np.sqrt(2 * np.pi) - skew / (6 * np.sqrt(2 * np.pi)), beyond)
        bound = np.exp(-(w**2) / 2)  # Chernoff's, which always holds
        beyond = np.clip(beyond, np.where(s < 0, 1 - bound, 0), np.where(s > 0, bound, 1))
        return np.where(inside, beyond, np.where(value <= low, 1.0, 0.0))

    def _saddlepoint(self, target: Float) -> Float:
        """(G,) tilts under which the expected sums are ``target``.

        They come from Newton's steps on the logit of the expected sum within its range. That logit is about linear in
        the tilt; for equal terms it is linear, and the first step is exact. A step that would leave the bracket goes to
        the middle of it.
        """
        logit = scipy.special.logit(self.probability)
        least, most = self.total(np.minimum(self.weight, 0)), self.total(np.maximum(self.weight, 0))
        varies = most > least
        goal = np.log(np.where(varies, target - least, 1.0) / np.where(varies, most - target, 1.0))
        s = np.zeros(self.n_groups)
        low, high = np.full(self.n_groups, -np.inf), np.full(self.n_groups, np.inf)
        for _ in range(_MOST_STEPS):
            expected = scipy.special.expit(logit + s[self.group] * self.weight)
            mean = self.total(self.weight * expected)
            slope = self.total(self.weight**2 * expected * (1 - expected))
            below, above = np.maximum(mean - least, 1e-290), np.maximum(most - mean, 1e-290)
            step = (goal - np.log(below / above)) * below * above / np.maximum((most - least) * slope, 1e-290)
            step = np.where(varies, step, 0.0)
            low, high = np.where(step > 0, s, low), np.where(step < 0, s, high)
            new = s + step
            outside = ((new <= low) | (new >= high)) & np.isfinite(low) & np.isfinite(high)
            new = np.where(outside, (np.where(outside, low, 0) + np.where(outside, high, 0)) / 2, new)
            moved = np.abs(new - s) * np.sqrt(slope)
            s = new
            if moved.max(initial=0) < _TOLERANCE:
                break
        return s
