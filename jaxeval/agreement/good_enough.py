"""Is a judge good enough? Its agreement with people beside that of people with each other, on the same items."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from jaxeval.arrays import Float
from jaxeval.statistics.clusters import FEW_CLUSTERS

Verdict = Literal["yes", "no", "not known"]
#: A judge is good enough if it has at least this share of people's agreement beyond chance.
SHARE = 0.8
#: With a single label an item, a judge is no use if its kappa is below this.
SLIGHT = 0.2
_PSEUDO = 2  # items that agree with one side only, one each way: an interval of no difference has a length


class Beside(NamedTuple):
    """A judge's agreement with people less that of people with each other, where both are known."""

    value: Float
    lower: Float
    upper: Float
    people: Float  # agreement of people with each other on the same items


def beside_people(sums: Float, level: float) -> Beside:
    """Differences of agreement with Student's intervals over items.

    Two items are added, one on which only the judge agrees and one on which only people do (Bonett and Price, Adjusted
    Wald confidence interval for a difference of binomial proportions based on paired data, Journal of Educational and
    Behavioral Statistics, 2012), so that equal answers on few items are not taken for certain. The lengths of the
    intervals are then right for few items, too.

    Args:
        sums: (..., I, 3) of each item: its weight, the judge's agreement and people's, both times the weight.
        level: of the interval.
    """
    n, own, other = np.moveaxis(sums, -1, 0)
    there = n > 0
    count, total = there.sum(-1), n.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / count
        value, people = (own - other).sum(-1) / total, other.sum(-1) / total
        centre = (own - other).sum(-1) / (total + _PSEUDO * mean)
        rest = ((own - other - centre[..., None] * n) ** 2).sum(-1) + _PSEUDO * mean**2 * (1 + centre**2)
        error = np.sqrt(rest * (count + _PSEUDO) / (count + _PSEUDO - 1)) / (total + _PSEUDO * mean)
        half = stdtrit(np.maximum(count + _PSEUDO - 1, 1), (1 + level) / 2) * error
    return Beside(value, np.maximum(centre - half, -1), np.minimum(centre + half, 1), people)


def verdict_beside(beside: Beside, chance: Float, kappas: Float, n_items: Float) -> NDArray[np.str_]:
    """Verdicts (...) of judges beside people.

    "yes": with confidence the judge has 80 % of people's agreement beyond chance, and both it and people agree beyond
    chance. "no": it agrees with people less often than people do. A judge as good as a person is called "no" in at
    most 2.5 % of data sets at the level .95, and one that guesses is practically never called "yes".

    Args:
        beside: the difference.
        chance: (...) agreement of people that chance explains.
        kappas: (..., 2) lower ends of the intervals of kappa, of the judge and of people.
        n_items: (...) items with labels of two people.
    """
    with np.errstate(invalid="ignore"):
        margin = (1 - SHARE) * (beside.people - chance)
        good = (beside.lower > -margin) & (margin > 0) & (kappas > 0).all(-1) & (n_items >= FEW_CLUSTERS)
        return np.select([beside.upper < 0, good], ["no", "yes"], "not known")


def items_needed(beside: Beside, chance: float, n_items: int) -> int | None:
    """About how many items would tell whether the judge is good enough; None where the difference is at the edge."""
    margin = (1 - SHARE) * float(beside.people - chance)
    half = (float(beside.upper) - float(beside.lower)) / 2
    gap = float(np.maximum(beside.value + margin, -beside.value))
    if not (gap > 0 and half > 0 and margin > 0):
        return None
    return max(int(np.ceil(n_items * (half / gap) ** 2)), FEW_CLUSTERS)


class GoodEnough(NamedTuple):
    """Whether a judge is good enough, and what speaks for it."""

    verdict: Verdict
    beside: Beside | None  # None without labels of two people
    items_needed: int | None  # about how many would tell; None if it is told, or nothing would tell


def answer_of(common: Float, chance: float, kappa: tuple[float, float], of_people: float, level: float) -> GoodEnough:
    """Whether a judge is good enough.

    Args:
        common: (I, 3) sums of items, as in `beside_people`; weights are 0 without labels of two people.
        chance: agreement of people that chance explains.
        kappa: both ends of the interval of the judge's kappa.
        of_people: the lower end of that of people's.
        level: of the intervals.
    """
    n_items = int((common[:, 0] > 0).sum())
    if n_items == 0:
        useless = common.shape[0] >= FEW_CLUSTERS and kappa[0] <= 0 and kappa[1] < SLIGHT
        return GoodEnough("no" if useless else "not known", None, None)
    beside = beside_people(common, level)
    ends = np.nan_to_num([kappa[0], of_people], nan=-1.0)
    verdict = str(verdict_beside(beside, np.asarray(chance), ends, np.asarray(n_items)))
    needed = items_needed(beside, chance, n_items) if verdict == "not known" else None
    more = None if needed is None or needed <= n_items else needed
    return GoodEnough(verdict if verdict in ("yes", "no") else "not known", beside, more)  # type: ignore[arg-type]
