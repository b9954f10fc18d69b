"""Errors of scores where not only items were sampled: judges, prompts, seeds and servings, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.columns import as_frame, plain
from jaxeval.data.item_scores import Facets, ItemScores
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.scores.paired_tests import PairwiseDifferences
from jaxeval.statistics import special
from jaxeval.statistics.quantiles import student_quantile
from jaxeval.statistics.variance_components import (
    RESIDUAL,
    FacetDesign,
    crossed,
    design_of,
    facet_names,
    sentence_of,
    warnings_of,
)
from jaxeval.wording import counted, did_you_mean

ITEM = "item"


def with_facets(scores: ItemScores | Any, random: str | Sequence[str]) -> ItemScores:
    """Return scores that hold the random facets, from a table or from scores that were read with them."""
    names = facet_names(random)
    if not isinstance(scores, ItemScores):
        frame = as_frame(scores)
        usual = {role: role for role in ("cluster", "benchmark", "weight") if role in frame and role not in names}
        scores = ItemScores.from_pandas(frame, random=names or [ITEM], **usual)
        if not names:
            scores = _without_facets(scores)
    if len(scores.evaluators) > 1:
        raise DataError(f"scores of {counted(len(scores.evaluators), 'evaluator')}: choose the rows of one evaluator")
    names = [name for name in names if name not in (ITEM, scores.items.names[-1])]
    held = {} if scores.facets is None else scores.facets.levels
    for name in names:
        if name not in held:
            have = ", ".join(map(repr, held)) or "none"
            raise DataError(
                f"no column {name!r} was read as random; there are {have}{did_you_mean(name, held)} "
                "(random= of ItemScores.from_pandas and read_scores)"
            )
    if scores.facets is None:
        return _without_facets(scores)
    places = [list(held).index(name) for name in names]
    facets = scores.facets._replace(levels={name: held[name] for name in names}, code=scores.facets.code[:, places])
    return replace(scores, facets=facets)


def _without_facets(scores: ItemScores) -> ItemScores:
    cell = np.flatnonzero(~np.isnan(scores.scores.reshape(-1)))
    return replace(scores, facets=Facets({}, np.zeros((len(cell), 0), np.intp), cell, scores.scores.reshape(-1)[cell]))


@dataclass(frozen=True, eq=False)
class FacetCells:
    """Scores (C, M) by model of the C combinations of an item and levels of facets; NaN where there is none."""

    score: Float
    factors: Mapping[str, NDArray[np.intp]]  # (C,) by factor: items, their clusters, and facets
    levels: Mapping[str, pd.Index]
    benchmark: NDArray[np.intp] | None  # (C,)
    weight: Float | None  # (C,) of the item
    models: pd.Index
    n_averaged: int  # rows beyond the first of their model and cell

    @property
    def facets(self) -> list[str]:
        """Random factors besides items."""
        return [name for name in self.factors if name != ITEM]

    def shared(self, models: Sequence[int]) -> Bool:
        """Return the cells (C,) that all of some models have."""
        return np.asarray(~np.isnan(self.score[:, list(models)]).any(1))

    def design(self, there: Bool, most: int = 1) -> FacetDesign:
        """Return the random effects of the cells that are ``there`` (C,).

        A mean counts items alike, or by their weights, within benchmarks that count alike; and cells alike within an
        item.
        """
        item = np.unique(self.factors[ITEM][there], return_inverse=True)[1]
        weight = 1 / np.bincount(item)[item]
        if self.weight is not None:
            weight = weight * self.weight[there]
        group = None
        if self.benchmark is not None:
            group = np.unique(self.benchmark[there], return_inverse=True)[1]
            weight = weight / np.bincount(group, weight)[group]
        return design_of({name: code[there] for name, code in self.factors.items()}, weight, group, most)


def cells_of(scores: ItemScores) -> FacetCells:
    """Return the `FacetCells` of scores that hold facets."""
    facets = scores.facets
    assert facets is not None
    n_models = len(scores.models)
    item, model = facets.cell // n_models, facets.cell % n_models
    for k, name in enumerate(facets.levels):
        _reject_confounded(name, facets.levels[name], facets.code[:, k], model, scores.models)
    cell = item
    for k in range(len(facets.levels)):
        cell = crossed(cell, facets.code[:, k])
    cell = np.unique(cell, return_inverse=True)[1]
    keys = np.zeros((int(cell.max()) + 1, 1 + len(facets.levels)), np.intp)
    keys[cell] = np.column_stack([item, facets.code])
    flat = cell * n_models + model
    size = len(keys) * n_models
    times = np.bincount(flat, minlength=size)
    with np.errstate(invalid="ignore"):
        score = np.bincount(flat, facets.score, size) / times
    of_item = keys[:, 0]
    factors, levels = {ITEM: of_item}, {ITEM: scores.items}
    if scores.cluster is not None:
        factors[scores.cluster.column] = scores.cluster.number[of_item]
        levels[scores.cluster.column] = scores.cluster.names
    for k, (name, index) in enumerate(facets.levels.items()):
        factors[name], levels[name] = keys[:, 1 + k], index
    return FacetCells(
        score.reshape(len(keys), n_models), factors, levels,
        None if scores.benchmark is None else scores.benchmark.number[of_item],
        None if scores.weight is None else scores.weight[of_item],
        scores.models, int((times - 1).clip(0).sum()),
    )  # fmt: skip


def _reject_confounded(
    name: str, levels: pd.Index, code: NDArray[np.intp], model: NDArray[np.intp], models: pd.Index
) -> None:
    """Raise DataError if each level of a facet belongs to one model."""
    if len(models) < 2:
        return
    pairs = np.unique(np.column_stack([code, model]), axis=0)
    if np.bincount(pairs[:, 0]).max() == 1:
        first = f"{plain(models[pairs[0, 1]])!r} alone has {plain(levels[pairs[0, 0]])!r}"
        raise DataError(
            f"{name!r} is confounded with the models: each of its {counted(len(levels), 'level')} belongs to one model "
            f"({first}), so that a difference of models cannot be told from one of its levels. Let levels meet all "
            "models; where they are runs of each model, number them from 1 within each"
        )


@dataclass(frozen=True, eq=False)
class FacetErrors:
    """Estimates (K,), and what each factor adds to their variances."""

    estimate: Float
    variance: Float  # NaN where a facet has one level
    dof: Float
    parts: Mapping[str, Float]  # (K,) by factor, and the residual; NaN for a facet of one level
    alone: tuple[str, ...]  # facets of one level
    design: FacetDesign

    def interval(self, level: float) -> tuple[Float, Float]:
        """Return Student's interval; NaN without a variance."""
        reach = student_quantile(level, self.dof) * np.sqrt(np.where(self.variance > 0, self.variance, np.nan))
        return self.estimate - reach, self.estimate + reach


def errors_of(cells: FacetCells, columns: Sequence[tuple[int, ...]], there: Bool) -> FacetErrors:
    """Return errors of scores of models (m,), and of differences (a, b), that all have the cells ``there`` (C,)."""
    design = cells.design(there)
    used = sorted({m for column in columns for m in column})
    values = cells.score[there][:, used]
    squares, mean = design.squares(values), design.weight @ values
    place = {m: k for k, m in enumerate(used)}
    first = np.array([place[column[0]] for column in columns], np.intp)
    second = np.array([place[column[-1]] for column in columns], np.intp)
    single = np.array([len(column) == 1 for column in columns], bool)
    first_squares = squares[:, first, first]
    both = first_squares + squares[:, second, second] - 2 * squares[:, first, second]
    rounding = 1e-13 * (first_squares + squares[:, second, second])
    both = np.where(both > rounding, both, 0.0)
    components = design.components(np.where(single, first_squares, both))
    variance, dof = design.error(components)
    alone = tuple(name for name in design.alone if name in cells.facets)
    if alone:
        variance, dof = np.full_like(variance, np.nan), np.full_like(dof, np.nan)
    added = dict(zip(design.names, np.maximum(components, 0.0) * design.spread[:, None], strict=True))
    parts = {name: added.get(name, np.full(len(columns), np.nan)) for name in (*cells.factors, RESIDUAL)}
    return FacetErrors(np.where(single, mean[first], mean[first] - mean[second]), variance, dof, parts, alone, design)


def board_errors(cells: FacetCells) -> tuple[FacetErrors, FacetErrors]:
    """Return errors of all models, and of the differences of all pairs a < b in the order of `np.triu_indices`."""
    n_models = cells.score.shape[1]
    pairs = [(int(a), int(b)) for a, b in zip(*np.triu_indices(n_models, 1), strict=True)]
    return _by_cells(cells, [(m,) for m in range(n_models)]), _by_cells(cells, pairs)


def _by_cells(cells: FacetCells, columns: Sequence[tuple[int, ...]]) -> FacetErrors:
    """Return `errors_of` models that have cells of their own: columns of the same cells together."""
    if not columns:
        return errors_of(cells, [], cells.shared([0]))
    alike: dict[bytes, list[int]] = {}
    masks: dict[bytes, Bool] = {}
    for k, column in enumerate(columns):
        there = cells.shared(column)
        if len(np.unique(cells.factors[ITEM][there])) < 2:
            who = " and ".join(repr(plain(cells.models[m])) for m in column)
            same = f"share no two items under the same {' and '.join(cells.facets) or 'conditions'}"
            lacking = same if len(column) > 1 else "has fewer than two items"
            raise DataError(f"{who} {lacking}: an error needs two or more")
        masks.setdefault(there.tobytes(), there)
        alike.setdefault(there.tobytes(), []).append(k)
    parts = [(places, errors_of(cells, [columns[k] for k in places], masks[key])) for key, places in alike.items()]
    if len(parts) == 1:
        return parts[0][1]
    order = np.argsort(np.concatenate([places for places, _ in parts]), kind="stable")

    def joined(values: Iterable[Float]) -> Float:
        return np.concatenate(list(values))[order]

    each = [errors for _, errors in parts]
    largest = each[int(np.argmax([masks[key].sum() for key in alike]))]
    whole: dict[str, Any] = {x: joined(getattr(errors, x) for errors in each) for x in ("estimate", "variance", "dof")}
    added = {name: joined(errors.parts[name] for errors in each) for name in largest.parts}
    alone = tuple(dict.fromkeys(name for errors in each for name in errors.alone))
    return replace(largest, **whole, parts=added, alone=alone)


def over_items(scores: ItemScores, cells: FacetCells, models: Sequence[int]) -> ItemScores:
    """Average scores of some models over facets, on cells that they share: a comparison over items alone."""
    there = cells.shared(models)
    item = cells.factors[ITEM][there]
    means = np.full((len(scores.items), 1, len(models)), np.nan)
    times = np.bincount(item, minlength=len(means))
    for k, m in enumerate(models):
        with np.errstate(invalid="ignore"):
            means[:, 0, k] = np.bincount(item, cells.score[there, m], len(means)) / times
    return replace(scores, scores=means, models=scores.models[list(models)], facets=None, trials=None)


def widened(
    errors: FacetErrors, lower: Float, upper: Float, variance: Float, dof: Float, level: float
) -> tuple[Float, Float]:
    """Lengthen intervals over items alone by what other facets add: their ends (K,).

    What Student's interval of all facets is longer than that over items, of a ``variance`` (K,) with ``dof`` degrees of
    freedom, is added in quadrature to both sides. So intervals of shares stay those of shares where facets add nothing.
    """
    whole = student_quantile(level, errors.dof) ** 2 * errors.variance
    items = np.where(variance > 0, student_quantile(level, np.where(dof > 0, dof, 1.0)) ** 2 * variance, 0.0)
    more = np.maximum(whole - np.nan_to_num(items), 0.0)
    ends = [
        sign * np.sqrt(np.where(np.isnan(end), 0.0, end - errors.estimate) ** 2 + more)
        for sign, end in ((-1, lower), (1, upper))
    ]
    known = (errors.variance > 0) | ((errors.variance == 0) & ~np.isnan(lower))
    return tuple(np.where(known, errors.estimate + end, np.nan) for end in ends)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class BoardFacets:
    """Errors of a board's models and of their differences, where facets besides items are drawn anew."""

    models: FacetErrors
    differences: FacetErrors
    about: str
    warnings: Sequence[str]

    @classmethod
    def of(cls, scores: ItemScores, items: Bool) -> BoardFacets:
        """Return `BoardFacets` of the chosen ``items`` (I,) of scores that hold facets."""
        facets = scores.facets
        assert facets is not None
        chosen = items[facets.cell // len(scores.models)]
        kept = facets._replace(code=facets.code[chosen], cell=facets.cell[chosen], score=facets.score[chosen])
        cells = cells_of(replace(scores, facets=kept))
        models, differences = board_errors(cells)
        return cls(models, differences, facet_sentence(cells), facet_warnings(cells, models.design))

    def pairs(self, estimate: Float) -> PairwiseDifferences:
        """Return differences of all pairs by Student's t, of models ranked by their ``estimate`` (M,)."""
        n = len(estimate)
        first, second = np.triu_indices(n, 1)
        p = np.full((n, n), np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.abs(self.differences.estimate) / np.sqrt(self.differences.variance)
            p[first, second] = p[second, first] = 2 * special.stdtr(self.differences.dof, -t)
        return PairwiseDifferences(estimate, p, np.full(n, not self.models.alone and n > 1))


def facet_sentence(cells: FacetCells) -> str:
    """Say what is random, for the first sentence of an answer."""
    sizes = {name: len(cells.levels[name]) for name in cells.facets}
    return sentence_of(sizes | {ITEM: len(np.unique(cells.factors[ITEM]))})


def facet_warnings(cells: FacetCells, design: FacetDesign) -> list[str]:
    """Say which facets have too few levels, which are nested, and what was averaged."""
    warnings = warnings_of(design, {name: len(cells.levels[name]) for name in cells.facets})
    if cells.n_averaged:
        warnings.append(
            f"{counted(cells.n_averaged, 'row repeats', 'rows repeat')} a model, an item and the levels of the random "
            "facets: averaged first"
        )
    return warnings
