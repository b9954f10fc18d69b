"""Where the error of scores comes from: items, judges, prompts, seeds; and what would make it smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.checks import checked_finite
from jaxeval.data.columns import plain
from jaxeval.data.item_scores import ItemScores
from jaxeval.errors import DataError
from jaxeval.scores import facets
from jaxeval.scores.compare_scores import places_of
from jaxeval.show.shown import Answer, Part, Result
from jaxeval.show.table import Table
from jaxeval.statistics.quantiles import checked_level
from jaxeval.statistics.variance_components import RESIDUAL, FacetDesign, design_of
from jaxeval.wording import counted, did_you_mean, named, visible_line

MODEL = "model"
_MOST_LEVELS = 12  # of a facet that a decision study tries, beyond four times those that there are
_MOST_DESIGNS = 100_000  # that a decision study tries
_MOST_ROWS = 300_000  # of effects that cross three factors of five or more
_MORE = 1.005  # so many times an error is worth a word


@dataclass(frozen=True, eq=False, repr=False)
class ErrorBudget(Result):
    """Variance components of scores, and the error of every model and difference by facet; see `error_budget`.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.error_budget(jaxeval.simulate_facet_scores(seed=1), random=["judge"])
        >>> found.table[["facet", "share"]].round(2).to_numpy().tolist()[:3]
        [['model', 0.03], ['item', 0.35], ['judge', 0.0]]
    """

    table: pd.DataFrame = field(repr=False)  # facet, component, lower, upper, share, n_levels, dof, flags
    models: pd.DataFrame = field(repr=False)
    differences: pd.DataFrame = field(repr=False)
    generalizability: float  # of comparisons of models: share of the variance of scores that is the models'; NaN
    dependability: float  # of scores as such: facets that are hard for all models count as error, too
    decision: pd.DataFrame = field(repr=False)  # designs that reach the target; empty where there is none
    settings: Mapping[str, Any] = field(repr=False)
    warnings: tuple[str, ...]
    _cells: facets.FacetCells = field(repr=False)

    def _shown(self) -> Answer:
        title = f"ErrorBudget: {counted(len(self.models), 'model')}, random {', '.join(self.settings['random'])}"
        return Answer(title, self.table, self.settings, self.warnings)

    def _in_full(self, view: Answer) -> Answer:
        tables = {"components": self.table, "models": self.models, "differences": self.differences}
        parts = [
            Part("Variance components of a single score", self.table, rows="component", kept=("facet", "component")),
            Part("Errors of models", self.models, rows=MODEL, kept=("model", "score", "standard_error")),
            Part("Errors of differences", self.differences, rows="pair", kept=("model_a", "model_b", "standard_error")),
        ]
        if len(self.decision):
            tables["decision"] = self.decision
            parts.insert(1, Part("What would reach the target", self.decision, rows="design", kept=("design",)))
        return view._replace(tables=tables, parts=[part for part in parts if len(part.table)])  # type: ignore[arg-type]

    def _figures(self) -> dict[str, tuple[Any, ...]]:
        return {"error_budget": ("plot_error_budget", self)}

    def _sentences(self) -> list[str]:
        rows = self.differences if len(self.differences) else self.models
        of = "difference" if len(self.differences) else "score"
        shares = error_shares(rows)
        about = f"{facets.facet_sentence(self._cells)}: "
        if rows["standard_error"].isna().all():
            lone = [name for name in self._cells.facets if len(self._cells.levels[name]) == 1]
            return [f"{about}no error can be given, as {named(list(map(visible_line, lone)))} has one level"]
        parts = [f"{visible_line(name)} {share:.0%}" for name, share in shares.items() if share == share]
        if not parts:
            what = "differences" if (self.models["standard_error"] > 0).any() else "scores"
            return [f"{about}{what} show no variance, and no error"]
        sentences = [f"{about}the error of a {of} is {', '.join(parts)}, as variance"]
        ratio = float((rows["standard_error"] / rows["standard_error_items"]).median())
        if ratio >= _MORE:
            sentences.append(f"errors over items alone are too small by a factor of {ratio:.2f} (median)")
        elif ratio == ratio:
            sentences.append("errors over items alone are about as large")
        if len(self.decision):
            sentences += _decision_sentences(self.decision, self.settings)
        if self.generalizability == self.generalizability:
            sentences.append(
                f"generalizability {self.generalizability:.3f} for comparing models, dependability "
                f"{self.dependability:.3f} for scores as such"
            )
        return sentences


def error_budget(
    data: ItemScores | Any,
    random: str | Sequence[str] = (),
    *,
    pair: tuple[Any, Any] | None = None,
    target: float = 0.5,
    prices: Mapping[str, float] | None = None,
    level: float = 0.95,
) -> ErrorBudget:
    """Split scores into variance components and errors of models and differences by facet; say what lowers them.

    A score is a sum of effects: y = model + item + judge + ... + their interactions + residual. Items are random in any
    case; ``random`` names the other facets that another evaluation would draw anew. Components come from sums of
    squares (Henderson's first method; in balanced designs the analysis of variance), negative ones are 0 and flagged.
    Facets may be crossed or nested, and cells may be missing.

    The error of a score, or of a difference on the cells that both models have, counts facets and the residual;
    interactions of facets are in the residual and in both of their facets, which errs on the long side. Degrees of
    freedom are those of `jaxeval.statistics.variance_components.joint_freedom`.

    The decision study scales the components of one pair to other numbers of items and levels.

    Args:
        data: a table with the columns "model", "item", "score" and those of the facets, and where they are there
            "cluster", "benchmark" and "weight"; or `ItemScores` that were read with ``random``.
        random: columns of facets.
        pair: the difference of the decision study; by default that of the two best models.
        target: of the decision study, in parts of the present standard error.
        prices: of a level of each facet, of an "item", and of a single "score"; by default 1 for a score, else 0.
        level: of the intervals.

    Returns:
        An `ErrorBudget`. Its ``table`` has a row per component: ``facet``, ``component``, ``lower``, ``upper``,
        ``share`` (of the variance of a single score), ``n_levels``, ``dof``, ``flags``.

    Raises:
        DataError: a column is missing; a facet is confounded with the models; models share no two items.
        ValueError: an option is invalid.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.error_budget(jaxeval.simulate_facet_scores(seed=1), random=["judge", "prompt"])
        >>> print(found.answer.sentences[1])
        errors over items alone are too small by a factor of 1.07 (median)
    """
    checked_level(level)
    if not (isinstance(target, int | float) and 0 < target < 1):
        raise ValueError(f"target must be between 0 and 1, got {target!r}")
    scores = facets.with_facets(data, random)
    cells = facets.cells_of(scores)
    prices = _checked_prices(prices, cells)
    models, differences = facets.board_errors(cells)
    whole, notes = _whole_design(cells)
    values = cells.score[~np.isnan(cells.score)][:, None]
    components = whole.components(whole.squares(values))[:, 0, 0]
    table = _component_table(cells, whole, components, level)
    warnings = [
        *scores.notes,
        *notes,
        *facets.facet_warnings(cells, differences.design if len(cells.models) > 1 else models.design),
    ]
    if scores.n_repeated:
        warnings.append(
            f"{counted(scores.n_repeated, 'row repeats', 'rows repeat')} a model and an item: averaged first; name "
            "what tells them apart in random= (--random) to count it"
        )
    if scores.n_missing:
        warnings.append(f"{counted(scores.n_missing, 'row has', 'rows have')} no score: left out")
    general, depend = _coefficients(whole, components, len(cells.models))
    chosen = _pair(cells, pair, models)
    decision = pd.DataFrame()
    if chosen is not None and not models.alone:
        decision = _decision(cells, chosen, target, prices)
    settings = {
        "random": [*cells.facets, facets.ITEM], "level": float(level), "target": float(target), "prices": prices,
        "pair": None if chosen is None else [plain(cells.models[m]) for m in chosen],
    }  # fmt: skip
    names = np.array([plain(name) for name in cells.models], object)
    first, second = np.triu_indices(len(names), 1)
    of_models = _error_table(models, {"model": names.tolist()}, "score", level)
    of_pairs = _error_table(differences, {"model_a": names[first], "model_b": names[second]}, "difference", level)
    return ErrorBudget(table, of_models, of_pairs, general, depend, decision, settings, tuple(warnings), cells)


def error_shares(rows: pd.DataFrame) -> dict[str, float]:
    """Return the mean share of each factor in the variances of models or differences, the largest first."""
    names = [name for name in rows if str(name).startswith("variance_")]
    parts = rows[names].div(rows[names].sum(axis=1), axis=0).mean()
    shares = {str(name).removeprefix("variance_"): float(parts[name]) for name in names}
    return dict(sorted(shares.items(), key=lambda x: -np.nan_to_num(x[1])))


def _whole_design(cells: facets.FacetCells) -> tuple[FacetDesign, list[str]]:
    """Return the effects of all single scores, models and interactions among them."""
    there = ~np.isnan(cells.score)
    cell, model = np.nonzero(there)
    factors = {} if len(cells.models) < 2 else {MODEL: model}
    factors |= {name: code[cell] for name, code in cells.factors.items()}
    group = None if cells.benchmark is None else np.unique(cells.benchmark[cell], return_inverse=True)[1]
    n = len(factors)
    most = max(n - 1, 1) if n <= 4 else 3 if len(cell) <= _MOST_ROWS and n == 5 else 2
    for size in range(most, 0, -1):
        try:
            design = design_of(factors, None, group, size)
        except ValueError:
            continue
        lost = f"interactions of {size + 1} factors cannot be told apart in these cells: they are in the residual"
        return design, [] if size == most else [lost]
    raise DataError("the facets cannot be told apart in the cells that are there: leave one out")


def _component_table(cells: facets.FacetCells, design: FacetDesign, components: Float, level: float) -> pd.DataFrame:
    kept = np.maximum(components, 0.0)
    lower, upper = design.component_intervals(components, level)
    rows = []
    for k, effect in enumerate(design.effects):
        flags = ["would be negative, and is 0"] if components[k] < 0 else []
        if design.freedom[k] < 1.5 and effect.factors[0] != RESIDUAL:
            flags.append("one degree of freedom: hardly known")
        rows.append(
            {"facet": effect.name, "component": kept[k], "lower": lower[k], "upper": upper[k],
             "share": kept[k] / max(kept.sum(), np.finfo(float).tiny), "n_levels": effect.n_levels,
             "dof": design.freedom[k], "flags": "; ".join(flags)}
        )  # fmt: skip
    held = {name: f"in {effect}" for name, effect in design.merged.items()}
    for name in cells.facets:
        if name in design.alone or name in held:
            flag = "one level: not known" if name in design.alone else held[name]
            rows.insert(len(rows) - 1, {"facet": name, "n_levels": len(cells.levels[name]), "flags": flag})
    table = pd.DataFrame(rows)
    table["n_levels"] = table["n_levels"].astype("Int64")
    return Table.of(table, "Variance components", ("facet", "component", "lower", "upper", "share"), "component")


def _error_table(errors: facets.FacetErrors, names: dict[str, Any], what: str, level: float) -> pd.DataFrame:
    """Return a row for each of the ``names``, with its score or difference and what each factor adds to the error."""
    lower, upper = errors.interval(level)
    over_items = sum((np.nan_to_num(errors.parts[name]) for name in (facets.ITEM, RESIDUAL)), np.zeros(len(lower)))
    table = pd.DataFrame({
        **names, what: errors.estimate, "standard_error": np.sqrt(errors.variance), "lower": lower, "upper": upper,
        "dof": errors.dof, "standard_error_items": np.sqrt(over_items),
        **{f"variance_{name}": value for name, value in errors.parts.items()},
    })  # fmt: skip
    title = "Errors of differences"
    if what == "score":
        title, table = "Errors of models", table.sort_values(what, ascending=False, kind="stable", ignore_index=True)
    return Table.of(table, title, (*names, what, "lower", "upper", "standard_error"), what)


def _coefficients(design: FacetDesign, components: Float, n_models: int) -> tuple[float, float]:
    """Return generalizability and dependability (Brennan 2001) of mean scores over the cells that are there."""
    by_name = {effect.name: k for k, effect in enumerate(design.effects)}
    if MODEL not in by_name:
        return float("nan"), float("nan")
    kept = np.maximum(components, 0.0)
    with_model = np.array([MODEL in effect.within for effect in design.effects])
    error = kept * design.spread * np.where(with_model, n_models, 1)
    of_models = kept[by_name[MODEL]]
    error[by_name[MODEL]] = 0.0
    relative, absolute = float(error[with_model].sum()), float(error.sum())
    if not of_models + relative > 0:
        return float("nan"), float("nan")
    return float(of_models / (of_models + relative)), float(of_models / (of_models + absolute))


def _pair(cells: facets.FacetCells, pair: tuple[Any, Any] | None, models: facets.FacetErrors) -> tuple[int, int] | None:
    if pair is None:
        if len(cells.models) < 2:
            return None
        best = np.argsort(-models.estimate, kind="stable")[:2]
        return int(best[0]), int(best[1])
    a, b = places_of(cells, *pair)
    return a, b


def _checked_prices(prices: Mapping[str, float] | None, cells: facets.FacetCells) -> dict[str, float]:
    known = [*cells.factors, "score"]
    checked = {"score": 1.0} if prices is None else dict(prices)
    for name, price in checked.items():
        if name not in known:
            raise ValueError(f"prices are of {named(known)}, got {name!r}{did_you_mean(name, known)}")
        checked[name] = checked_finite(f"the price of {name}", price, 0.0)
    if not any(checked.values()):
        raise ValueError("prices must have one above 0")
    return checked


def _decision(
    cells: facets.FacetCells, pair: tuple[int, int], target: float, prices: Mapping[str, float]
) -> pd.DataFrame:
    """Return designs whose standard error of the difference is at most ``target`` times the present one."""
    there = cells.shared(pair)
    error = float(np.sqrt(facets.errors_of(cells, [pair], there).variance[0]))
    try:
        design = cells.design(there, 2)
    except ValueError:
        design = cells.design(there)
    apart = cells.score[there][:, [pair[0]]] - cells.score[there][:, [pair[1]]]
    parts = np.maximum(design.components(design.squares(apart))[:, 0, 0], 0.0) * design.spread
    if not parts.sum() > 0:
        return pd.DataFrame()
    factors = [name for name in cells.factors if name not in design.alone and name not in design.merged]
    if facets.ITEM not in factors:  # each item has one score: more items are more of the residual
        factors = [facets.ITEM, *factors]
    within = {effect.factors[0]: effect.within for effect in design.effects if len(effect.factors) == 1}
    now = {name: len(np.unique(cells.factors[name][there])) for name in factors}
    scaled = [
        [name for name in factors if name in effect.within or effect.factors[0] == RESIDUAL]
        for effect in design.effects
    ]
    n_scores, goal = int(there.sum()), target**2 * parts.sum()

    def variance(ratio: Mapping[str, Any]) -> Any:
        """Return the variance of designs with so many times the levels that there are."""
        return sum(
            part / np.prod(np.broadcast_arrays(1.0, *(ratio[name] for name in names)), 0)
            for part, names in zip(parts, scaled, strict=True)
        )

    def levels(ratio: Mapping[str, Any]) -> dict[str, Any]:
        """Return levels of every factor, those of the factors that it is nested in counted; and single scores."""
        sizes = {
            name: now[name] * np.prod([ratio[x] for x in factors if x == name or x in within.get(name, ())], 0)
            for name in factors
        }
        return sizes | {"score": n_scores * np.prod(np.broadcast_arrays(*ratio.values()), 0)}

    def cost(sizes: Mapping[str, Any]) -> Any:
        return sum(price * sizes[name] for name, price in prices.items() if price > 0 and name in sizes)

    def grown(ratio: Mapping[str, Any], name: str) -> Any:
        """Return the ratio with enough levels of one factor to reach the goal; infinite where none are enough."""
        rest = variance({**ratio, name: np.inf})
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.where(rest < goal, (variance({**ratio, name: 1.0}) - rest) / (goal - rest), np.inf)
        return {**ratio, name: np.maximum(np.ceil(times * now[name] - 1e-9), 2) / now[name]}

    def row(what: str, ratio: Mapping[str, Any]) -> dict[str, Any]:
        columns = {"design": what, "standard_error": error * float(np.sqrt(variance(ratio) / parts.sum()))}
        sizes = levels(ratio)
        if np.isinf(sizes["score"]):
            return columns
        counts = {name: round(float(n)) for name, n in sizes.items()}
        numbers = {"n_scores" if name == "score" else f"n_{name}": n for name, n in counts.items()}
        return {**columns, **numbers, "cost": float(cost(counts))}

    same: dict[str, Any] = dict.fromkeys(factors, 1.0)
    rows = [row("as it is", same), *(row(f"more {name}s", grown(same, name)) for name in factors)]
    others = [name for name in factors if name != facets.ITEM]
    most = max(int(_MOST_DESIGNS ** (1 / max(len(others), 1))), 2)
    tries = []
    for name in others:  # at least two levels, and of nested ones, one in each level of what they are nested in
        above = max([now[x] for x in factors if x != name and x in within.get(name, ())], default=0)
        levels_each = now[name] / max(above, 1)
        tries.append(np.arange(1 if above else 2, max(4 * levels_each, _MOST_LEVELS) + 1)[:most] / levels_each)
    grid = dict(zip(others, (axis.reshape(-1) for axis in np.meshgrid(*tries, indexing="ij")), strict=True))
    ratios = {name: np.atleast_1d(values) for name, values in grown({**grid, facets.ITEM: 1.0}, facets.ITEM).items()}
    costs = np.where(np.isfinite(ratios[facets.ITEM]), cost(levels(ratios)), np.inf)
    if np.isfinite(costs).any():
        best = int(costs.argmin())
        rows.append(row("cheapest", {name: float(values[best]) for name, values in ratios.items()}))
    table = pd.DataFrame(rows)
    counts = [*(f"n_{name}" for name in factors), "n_scores"]
    table = table[["design", *counts, "cost", "standard_error"]].astype(dict.fromkeys(counts, "Int64"))
    return Table.of(table, "What would reach the target", ("design", *counts))


def _decision_sentences(decision: pd.DataFrame, settings: Mapping[str, Any]) -> list[str]:
    a, b = (visible_line(str(x)) for x in settings["pair"])
    goal = "halve the error" if settings["target"] == 0.5 else f"have {settings['target']:g} of the error"
    now = decision.iloc[0]
    ways, never = [], []
    for _, row in decision.iloc[1:].iterrows():
        name = row["design"].removeprefix("more ").removesuffix("s")
        if row["design"] == "cheapest":
            continue
        if pd.isna(row["n_scores"]):
            never.append(f"{visible_line(name)}s")
        else:
            ways.append(f"{row[f'n_{name}']:,} {visible_line(name)}s in place of {now[f'n_{name}']:,}")
    sentence = (
        f"to {goal} of {a} less {b}: {', or '.join(ways)}" if ways else f"no facet alone can {goal} of {a} less {b}"
    )
    if ways and never:
        sentence += f"; not by more {named(never)} alone"
    cheapest = decision[decision["design"] == "cheapest"]
    if len(cheapest):
        best = cheapest.iloc[0]
        counts = [f"{best[name]:,} {visible_line(str(name)[2:])}s" for name in decision if str(name).startswith("n_")]
        sentence += (
            f"; cheapest for these prices: {', '.join(counts[:-1])} ({counts[-1][:-1]}, cost {best['cost']:,.6g})"
        )
    return [sentence]
