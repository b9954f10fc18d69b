"""What a benchmark can show of models where judges, prompts or seeds are drawn anew, too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxeval.checks import checked_integer
from jaxeval.data.columns import plain
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.scores.compare_scores import place_of
from jaxeval.scores.facets import ITEM, FacetCells, cells_of, errors_of, facet_sentence, facet_warnings
from jaxeval.statistics import special
from jaxeval.statistics.variance_components import RESIDUAL, joint_freedom
from jaxeval.wording import did_you_mean, named, visible_line

_MOST_ITEMS = 10**8
_FEWEST = 2


@dataclass(frozen=True, eq=False)
class FacetPlans:
    """Plans of differences from the scores of a pilot that hold facets; ``n_levels`` are planned ones by facet."""

    cells: FacetCells
    n_levels: Mapping[str, int]

    @classmethod
    def of(cls, scores: ItemScores, n_levels: Mapping[str, int] | None) -> FacetPlans:
        """Those of scores that hold facets.

        Raises:
            DataError: a facet has one level, or is confounded with the models.
            ValueError: a planned number is of no facet, or below 2.
        """
        cells = cells_of(scores)
        for name, n in (n_levels or {}).items():
            if name not in cells.facets:
                raise ValueError(
                    f"n_levels are of {named(cells.facets)}, got {name!r}{did_you_mean(name, cells.facets)}"
                )
            checked_integer(f"n_levels of {name}", n, _FEWEST)
        return cls(cells, dict(n_levels or {}))

    @property
    def about(self) -> str:
        """What the plan is about, in words."""
        return facet_sentence(self.cells)

    def row(
        self, scores: ItemScores, pair: tuple[Any, Any], n_items: int | None, difference: float | None, power: float,
        level: float, one_sided: bool,
    ) -> dict[str, Any]:  # fmt: skip
        """What is to be expected of one pair: a row of `plan_scores`."""
        a, b = places = [place_of(scores, model) for model in pair]
        if a == b:
            raise DataError(f"{plain(pair[0])!r} is compared with itself: name two models")
        there = self.cells.shared(places)
        errors = errors_of(self.cells, [(a, b)], there)
        if errors.alone:
            raise DataError(facet_warnings(self.cells, errors.design)[0])
        now = {name: len(np.unique(code[there])) for name, code in self.cells.factors.items()}
        levels = {name: self.n_levels.get(name, now[name]) for name in self.cells.facets}
        parts = {name: float(x[0]) for name, x in errors.parts.items() if not np.isnan(x[0])}
        within = {effect.factors[0]: effect.within for effect in errors.design.effects}

        def variance(n: float) -> tuple[float, float]:
            """Of the difference with n items, and its degrees of freedom."""
            ratio = {name: levels[name] / now[name] if name in levels else n / now[ITEM] for name in now}
            of = {}
            for name, part in parts.items():
                above = now if name == RESIDUAL else [x for x in now if x == name or x in within.get(name, ())]
                # Items and their clusters grow together, and count once.
                times = {ITEM if x not in levels else x: ratio[x] for x in above}
                of[name] = part / float(np.prod(list(times.values())))
            components = np.array(list(of.values()))
            freedom = np.array([max(levels.get(name, n) - 1, 1) for name in of], float)
            total = components.sum()
            return total, float(joint_freedom(components, freedom, total)) if total > 0 else np.inf

        def quantiles(n: float) -> tuple[float, float, float]:
            total, dof = variance(n)
            tail = level if one_sided else (1 + level) / 2
            return float(np.sqrt(total)), _t(dof, tail), dof

        def smallest(n: float) -> float:
            error, t, dof = quantiles(n)
            return error * (t + _t(dof, power))

        n = n_items or now[ITEM]
        row: dict[str, Any] = {"model_a": pair[0], "model_b": pair[1], "n_items": n}
        row |= {f"n_{name}": size for name, size in levels.items()}
        error, t, dof = quantiles(n)
        row |= {"standard_error": error, "dof": dof, "smallest_difference": smallest(n)}
        flags = ["no observed variance of the difference: nothing can be planned"] if error == 0 else []
        if difference is not None:
            shift = difference / error if error else np.inf
            other = 0.0 if one_sided else float(special.stdtr(dof, -shift - t))
            row["power"] = float(special.stdtr(dof, shift - t)) + other
            row["items_needed"] = _fewest(lambda n: smallest(n) <= difference)
            if row["items_needed"] is None:
                flags.append(f"no number of items finds it: more {named([visible_line(f'{x}s') for x in levels])} do")
        return row | {"flags": "; ".join(flags)}


def _t(dof: float, p: float) -> float:
    return float(special.ndtri(p) if np.isinf(dof) else special.stdtrit(dof, p))


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """The fewest items that are enough, if more are never worse; None where none are."""
    high = _FEWEST
    while not enough(high):
        high *= 2
        if high > _MOST_ITEMS:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
