"""What a benchmark can show: the smallest difference that it detects, and the items and trials that it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from jaxeval.checks import checked_integer
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import PlainTable, Whole
from jaxeval.scores.compare_scores import paired, places_of
from jaxeval.scores.estimates import FEW_ITEMS, as_item_scores, estimate_scores, item_shares, trial_variances
from jaxeval.scores.facets import ITEM, FacetCells, cells_of, errors_of, facet_sentence, facet_warnings, with_facets
from jaxeval.statistics import special
from jaxeval.statistics.quantiles import checked_level, normal_quantile
from jaxeval.statistics.variance_components import RESIDUAL, facet_names, joint_freedom
from jaxeval.wording import counted, did_you_mean, in_points, named, visible_line

_MOST_ITEMS = 10**8
_FEWEST = 2
_SHOWN_FIRST = ("model_a", "model_b", "n_items", "n_trials", "smallest_difference", "power", "items_needed")


def plan_scores(
    scores: ItemScores | Any,
    pairs: Sequence[tuple[Any, Any]] | None = None,
    *,
    difference: float | None = None,
    n_items: int | None = None,
    n_trials: Sequence[int] | None = None,
    random: str | Sequence[str] = (),
    n_levels: Mapping[str, int] | None = None,
    one_sided: bool = False,
    power: float = 0.8,
    level: float = 0.95,
) -> pd.DataFrame:
    """Plan paired comparisons of two models: the smallest difference that one detects, its power, the items it needs.

    The difference of two models on an item, the mean of k trials each, has the variance between + within / k. A test of
    N items at ``level`` detects a difference D with the probability Phi(D / sqrt(variance / N) - z), and the smallest
    one detected with probability ``power`` is (z + z_power) sqrt(variance / N). Both parts come from the scores that
    are there: the paired differences, and, with two trials or more, their spread within items. Clusters, weights and
    averages over benchmarks count as they do in `compare_scores`; more items are then more of each kind.

    A gate asks on one side: is the new model not worse than the old one by a margin or more? With ``one_sided`` and the
    margin as ``difference``, the column ``power`` is the chance that a model as good as the old one passes, and
    ``smallest_difference`` is the least margin with which it passes as often as the argument ``power`` asks for.

    Args:
        scores: `ItemScores`, or a table as for `score_leaderboard`: this benchmark, or a pilot of it.
        pairs: pairs of models; by default the neighbours on the board.
        difference: a difference of scores that would matter, above 0. It adds ``power`` and ``items_needed``.
        n_items: items of the benchmark that is planned; by default as many as there are.
        n_trials: numbers of trials to plan for; by default as many as there are. Other numbers need two trials or more
            of the items.
        random: columns of what another evaluation would draw anew besides items: judges, prompts, seeds. Tests then
            have Student's quantiles, with degrees of freedom as in `error_budget` for the planned levels, and there are
            columns ``n_<facet>``, ``standard_error`` and ``dof`` in place of those of trials. ``items_needed`` is
            missing where not even 100 million are enough. Not with ``n_trials``.
        n_levels: planned numbers of levels by facet; by default as many as there are.
        one_sided: plan a gate, or a test of one side.
        power: the probability with which ``smallest_difference`` is to be detected.
        level: of the test.

    Returns:
        One row per pair and number of trials: ``model_a``, ``model_b``, ``n_items``, ``n_trials``; ``sd_between`` and
        ``sd_within``, standard deviations of the differences between items and within them (over trials; NaN with one
        trial); ``smallest_difference``, NaN where scores lie between 0 and 1 and not even 1 is found; with a difference
        ``power`` and ``items_needed``; and ``flags``. Two models without observed variance of the difference are
        planned for as if they differed on one item more, by all that the scores span. Plans of right and wrong answers
        promise no more than McNemar's exact test can find.

    Raises:
        DataError: a model is not there, two models share fewer than two items, or trials are planned without any.
        ValueError: an option is invalid.

    Examples:
        >>> import jaxeval
        >>> plan = jaxeval.plan_scores(jaxeval.simulate_scores(200, 2), difference=0.05)
        >>> plan[["smallest_difference", "power", "items_needed"]].round(2).to_numpy().tolist()
        [[0.11, 0.25, 959]]
    """
    table = planned(
        scores, pairs, difference=difference, n_items=n_items, n_trials=n_trials, random=random, n_levels=n_levels,
        one_sided=one_sided, power=power, level=level,
    )  # fmt: skip
    from jaxeval.show.table import Table

    return Table.of(table.frame, table.attrs["title"], _SHOWN_FIRST)


def planned(
    scores: ItemScores | Any, pairs: Sequence[tuple[Any, Any]] | None, *, difference: float | None, n_items: int | None,
    n_trials: Sequence[int] | None, random: str | Sequence[str], n_levels: Mapping[str, int] | None, one_sided: bool,
    power: float, level: float,
) -> PlainTable:  # fmt: skip
    """Return the table of `plan_scores`, without pandas."""
    facets = facet_names(random)
    if n_levels and not facets:
        raise ValueError("n_levels are of random facets: name these (random=, --random)")
    item_scores = with_facets(scores, facets) if facets else as_item_scores(scores)
    checked_level(level)
    if not (isinstance(power, float) and 0 < power < 1):
        raise ValueError(f"power must be between 0 and 1, got {power!r}")
    if difference is not None and not (np.isfinite(difference) and difference > 0):
        raise ValueError(f"difference must be a finite number above 0, got {difference!r}")
    if n_items is not None:
        checked_integer("n_items", n_items, 2)
    ks = None if n_trials is None else [checked_integer("n_trials", k, 1) for k in n_trials]
    settings: dict[str, Any] = {"difference": difference, "power": power}
    settings |= {"level": float(level), "one_sided": bool(one_sided)}
    z, z_power = float(special.ndtri(level)) if one_sided else normal_quantile(level), special.ndtri(power)
    rows: list[dict[str, Any]] = []
    if facets:
        if ks is not None:
            raise ValueError("n_trials do not go with random facets: declare the column of trials random (random=)")
        cells, n_levels = cells_of(item_scores), dict(n_levels or {})
        for name, n in n_levels.items():
            if name not in cells.facets:
                raise ValueError(
                    f"n_levels are of {named(cells.facets)}, got {name!r}{did_you_mean(name, cells.facets)}"
                )
            checked_integer(f"n_levels of {name}", n, _FEWEST)
        rows = [
            _row_under_facets(item_scores, cells, n_levels, pair, n_items=n_items, **settings)
            for pair in (_neighbours(item_scores) if pairs is None else pairs)
        ]
        return _table(rows, item_scores, settings, f"{facet_sentence(cells)}: ")
    for a, b in _neighbours(item_scores) if pairs is None else pairs:
        parts = _parts(item_scores, a, b)
        for k in ks or [parts.n_trials]:
            if parts.within is None and k != parts.n_trials:
                raise DataError(
                    f"a plan of {counted(k, 'trial')} needs the spread of trials, and some items have 1 trial only: "
                    "name the column of trials (trial=, --trial), or run a pilot with two trials of each item"
                )
            n = n_items or parts.n_items
            seen = parts.between + (parts.within or 0.0) / k
            variance = seen if seen > 0 else parts.unseen
            row: dict[str, Any] = {
                "model_a": a, "model_b": b, "n_items": n, "n_trials": k, "sd_between": np.sqrt(parts.between),
                "sd_within": np.nan if parts.within is None else np.sqrt(parts.within),
                "smallest_difference": (z + z_power) * np.sqrt(variance / n),
            }  # fmt: skip
            if difference is not None:
                shift = difference / np.sqrt(variance / n)
                other_side = 0.0 if one_sided else special.ndtr(-shift - z)
                row["power"] = float(special.ndtr(shift - z) + other_side)
                row["items_needed"] = np.ceil(variance * ((z + z_power) / difference) ** 2)
            if one_sided and parts.within_unit:  # no gate passes by fewer items than could miss all losses by chance
                row["smallest_difference"] = max(row["smallest_difference"], 1 - (1 - level) ** (1 / n))
                if difference is not None and difference < 1:
                    least = np.ceil(np.log(1 - level) / np.log1p(-difference))
                    row["items_needed"] = max(row["items_needed"], least)
                    row["power"] = row["power"] if n >= least else 0.0
            elif parts.plain:
                _limit_to_exact(row, n, difference, power, level)
            flags = [f"a pilot of {counted(parts.n_items, 'item')} only"] if parts.n_items < FEW_ITEMS else []
            if parts.within_unit and not row["smallest_difference"] <= 1:
                row["smallest_difference"] = np.nan
                flags.append(f"not even a {'margin' if one_sided else 'difference'} of 1 is found")
            if row.get("items_needed", 0) > _MOST_ITEMS:
                row["items_needed"] = None
                flags.append(f"more than {_MOST_ITEMS:,} items are needed")
            if parts.between == 0 and parts.within:
                flags.append("plans of many trials are too hopeful: the pilot does not show the variance between items")
            if not seen > 0:
                flags.append("no observed variance of the difference: planned as if one more item differed by all")
            row["flags"] = "; ".join(flags)
            rows.append(row)
    return _table(rows, item_scores, settings)


def _table(rows: list[dict[str, Any]], scores: ItemScores, settings: dict[str, Any], about: str = "") -> PlainTable:
    table = PlainTable({name: [row[name] for row in rows] for name in rows[0]})
    if settings["difference"] is not None:
        table["items_needed"] = np.array([row["items_needed"] for row in rows], float).view(Whole)
    table.attrs = {
        "answer": about + _in_words(table, **settings), "warnings": [*scores.notes], "settings": settings,
        "title": f"What {counted(len(scores.items), 'item')} can tell",
    }  # fmt: skip
    return table


def _in_words(table: PlainTable, difference: float | None, power: float, level: float, one_sided: bool) -> str:
    smallest, what = np.asarray(table["smallest_difference"]), "margin" if one_sided else "difference"
    found, nothing = smallest[~np.isnan(smallest)], int(np.isnan(smallest).sum())
    sentence = f"found with power {power:g}: "
    if len(found):
        sentence += f"a {what} of {_span(in_points(found.min()), in_points(found.max()))}"
    if nothing:
        of_others = f", and for {counted(nothing, 'pair')} " if len(found) else ""
        sentence += f"{of_others}not even a {what} of 1"
    if difference is not None:
        powers = _span(f"{table['power'].min():.2f}", f"{table['power'].max():.2f}")
        sentence += f"; {difference:g} is found with power {powers}, and "
        needed, never = np.asarray(table["items_needed"]), int(np.isnan(table["items_needed"]).sum())
        if never < len(needed):
            sentence += f"takes {_span(f'{np.nanmin(needed):,.0f}', f'{np.nanmax(needed):,.0f}')} items"
        if never:
            sentence += (
                f"{', and ' if never < len(needed) else ''}for {counted(never, 'pair')} not even {_MOST_ITEMS:,} items "
                "find it"
            )
    return sentence


def _span(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _neighbours(scores: ItemScores) -> list[tuple[Any, Any]]:
    if len(scores.models) < 2:
        raise DataError("there is one model only: a plan is about the difference between two models")
    order = [scores.models[k] for k in np.argsort(-scores.mean_of_models()[0], kind="stable")]
    return list(pairwise(order))


class _Parts(NamedTuple):
    """Variances of the difference of two models on an item, as if all items were alike and counted alike."""

    between: float  # variance between items
    within: float | None  # variance of single trials; None without two of each item
    n_trials: int  # of each item, at least
    n_items: int  # that both models have
    unseen: float  # variance if one item more differed by all that scores span
    within_unit: bool  # all scores lie between 0 and 1
    plain: bool  # they are 0 or 1, one of each item, and items are drawn one by one


def _parts(scores: ItemScores, a: Any, b: Any) -> _Parts:
    places = places_of(scores, a, b)
    differences, shared = paired(scores, places)
    size = int(shared.sum())
    pair = scores.scores[shared, 0][:, places]
    unit = bool(((pair >= 0) & (pair <= 1)).all())
    alone = all(x is None for x in (scores.trials, scores.cluster, scores.benchmark, scores.weight))
    plain = alone and bool(np.isin(pair, (0.0, 1.0)).all())
    unseen = (1.0 if unit else max(float(np.ptp(pair)), float(np.abs(pair).max()))) ** 2 / (size + 1)
    total = size * float(estimate_scores(differences, shared).variance[0])
    if scores.trials is None:
        return _Parts(total, None, 1, size, unseen, unit, plain)
    n, variance = trial_variances(scores)
    n, variance = n[shared][:, places], variance[shared][:, places]
    least = int(n.min())
    if least < 2:
        return _Parts(total, None, least, size, unseen, unit, plain)
    share = item_shares(differences, shared)[1]
    noise = size * float(share**2 @ (variance / n).sum(1))  # of the differences of means that are there
    within = size * float(share**2 @ variance.sum(1))
    return _Parts(max(total - noise, 0.0), within, least, size, unseen, unit, plain)


def _limit_to_exact(row: dict[str, Any], n: int, difference: float | None, power: float, level: float) -> None:
    """Lower what is planned for right and wrong answers to what McNemar's exact test of ``n`` items can find.

    It needs k items on which the models differ, were they all for one model: 2 / 2^k <= 1 - level. At a difference D
    the better model is alone right on D n items at least, on average.
    """
    k = int(np.ceil(np.log2(2 / (1 - level))))
    least = float(special.betaincinv(k, n - k + 1, power)) if n >= k else np.inf
    row["smallest_difference"] = max(row["smallest_difference"], least)
    if difference is None:
        return
    share = min(difference, 1.0)
    row["power"] = min(row["power"], float(special.bdtrc(k - 1, n, share))) if n >= k else 0.0
    needed = _fewest(lambda m: m >= k and float(special.bdtrc(k - 1, m, share)) >= power)
    row["items_needed"] = max(row["items_needed"], np.inf if needed is None else needed)


def _row_under_facets(
    scores: ItemScores, cells: FacetCells, n_levels: Mapping[str, int], pair: tuple[Any, Any], *,
    n_items: int | None, difference: float | None, power: float, level: float, one_sided: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return what to expect of one pair where judges, prompts or seeds are drawn anew, too."""
    a, b = places = places_of(scores, *pair)
    there = cells.shared(places)
    errors = errors_of(cells, [(a, b)], there)
    if errors.alone:
        raise DataError(facet_warnings(cells, errors.design)[0])
    now = {name: len(np.unique(code[there])) for name, code in cells.factors.items()}
    levels = {name: n_levels.get(name, now[name]) for name in cells.facets}
    parts = {name: float(x[0]) for name, x in errors.parts.items() if not np.isnan(x[0])}
    within = {effect.factors[0]: effect.within for effect in errors.design.effects}

    def variance(n: float) -> tuple[float, float]:
        """Return the variance of the difference with n items, and its degrees of freedom."""
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
    pair_scores = cells.score[there][:, list(places)]
    if row["smallest_difference"] > 1 and ((pair_scores >= 0) & (pair_scores <= 1)).all():
        row["smallest_difference"] = np.nan
        flags.append(f"not even a {'margin' if one_sided else 'difference'} of 1 is found")
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
    """Return the fewest items that are enough, if more are never worse; None where none are."""
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
