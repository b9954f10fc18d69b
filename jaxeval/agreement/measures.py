"""Measures of judges as functions of sums over items, so that one bootstrap of items gives joint draws of all.

Tables of agreement by the gap of people's ratings, by model, by confidence and by pair of raters stand at the end.
Every measure is made of tables that are sums over battles: of a judge's verdicts by people's labels, of the pairs of
labels that people gave to one battle, of choices of the first or the longer answer, and of products of errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.data.battles import Battles
from jaxeval.data.human_labels import PAIRS, LabelScale
from jaxeval.data.labelled_verdicts import LabelledVerdicts, family_of
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import PlainTable
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.resampling.rows import sums_by
from jaxeval.show.cells import with_kinds
from jaxeval.statistics.clusters import wilson_share
from jaxeval.statistics.rater_agreement import (
    cohen_kappa,
    coincidences,
    krippendorff_alpha,
    label_counts,
    label_table,
    reliability_bins,
)

if TYPE_CHECKING:
    from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit

PANEL, PEOPLE = "panel", "people"
#: Measures that are shares of battles.
SHARES = (
    "agreement", "all_agreement", "sensitivity", "specificity", "flips", "first_chosen", "longer_chosen", "own_family",
)  # fmt: skip
#: Edges of the gaps between people's ratings, Elo; the last bin is open.
GAP_EDGES = (0.0, 50.0, 100.0, 200.0, np.inf)
#: Agreement is flagged where people and the judge chose a side on fewer battles than this.
FEW_DECIDED = 30
#: Of people's ratings, and of the judge's: with it every model has one.
RIDGE = 0.01
_STEP = 1e-3  # by which the weight of a battle is moved
_SIDES = (0, 2)  # codes of the labels that name one of two sides


def columns_of(battles: LabelledVerdicts, families: Mapping[Any, str] | None) -> dict[str, Float]:
    """Return what each battle adds to the sums (N, ...), by name."""
    scale = battles.scale
    n_labels, sides = len(scale.values), np.array(scale.sides)
    verdict, human = _codes(np.column_stack([*with_panel(battles).values()]), scale), _codes(battles.human, scale)
    seen, labelled = _one_hot(verdict, n_labels), _one_hot(human, n_labels)  # (N, J, L), (N, R, L)
    labels = labelled.sum(1)
    labels /= np.maximum(labels.sum(1, keepdims=True), 1)
    people = _people(labelled, battles.raters is not None and len(battles.raters) == 2)
    columns = {
        # People's labels by rows, the judge's by columns; each battle weighs 1, whatever its number of labels.
        "confusion": np.einsum("na,njb->njab", labels, seen),
        "people": people,
        "common": _common(seen[..., sides], labels[:, sides], people[:, sides[:, None], sides]),
        "alpha": np.stack(
            [coincidences(label_counts(codes, n_labels)) for codes in (_codes(battles.verdict, scale), human)], axis=1
        ),
        "orders": _orders(battles.orders),
        "longer": _longer(battles, verdict, human),
        "family": _family(battles, families),
        "errors": _errors(battles),
    }
    return {name: np.nan_to_num(values) for name, values in columns.items()}


def measures(sums: Mapping[str, Float], judges: list[Any], scale: LabelScale = PAIRS) -> dict[tuple[str, Any], Float]:
    """Return every measure by its name and judge, of (B, ...) sums of the columns."""
    codes = np.array(scale.sides)
    distance = distance_of(scale)
    names = names_of(judges)
    values: dict[tuple[str, Any], Float] = {}
    tables = [(name, sums["confusion"][:, k]) for k, name in enumerate(names)] + [(PEOPLE, sums["people"])]
    for name, table in tables:
        sides = table[:, codes[:, None], codes]
        for measure, confusion in (("agreement", sides), ("all_agreement", table)):
            values[measure, name] = _ratio(np.einsum("baa->b", confusion), confusion.sum((1, 2)))
        values["kappa", name] = cohen_kappa(sides, distance)[2]
        values["all_kappa", name] = cohen_kappa(table, distance)[2]
        if scale.kind in ("answers", "sides") and name != PEOPLE:  # the second label is the positive one
            values["sensitivity", name] = _ratio(sides[:, 1, 1], sides[:, 1].sum(1))
            values["specificity", name] = _ratio(sides[:, 0, 0], sides[:, 0].sum(1))
            values["youden_j", name] = values["sensitivity", name] + values["specificity", name] - 1
    for k, name in enumerate(names):
        for other, (n, agreed, others) in zip((PEOPLE, PANEL), np.moveaxis(sums["common"][:, k], 0, -1), strict=True):
            if other in (PEOPLE, names[-1]) and name != other:
                values[f"above_{other}", name] = _ratio(agreed - others, n)
    for k, name in enumerate([*names, PEOPLE]):
        values["longer_chosen", name] = _ratio(sums["longer"][:, k, 1], sums["longer"][:, k, 0])
    for k, name in enumerate(judges):
        both, flipped, single, first = sums["orders"][:, k].T
        values["flips", name], values["first_chosen", name] = _ratio(flipped, both), _ratio(first, single)
        n, chosen, n_labelled, by_judge, by_people = sums["family"][:, k].T
        values["own_family", name] = _ratio(chosen, n)
        values["family_excess", name] = _ratio(by_judge - by_people, n_labelled)
    values["alpha", PANEL], values["alpha", PEOPLE] = krippendorff_alpha(sums["alpha"], distance).T
    if len(judges) > 1:
        correlations = error_correlations(sums["errors"])
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = correlations.mean(-1)  # NaN where a pair has none: the panel's worth rests on all of them
            worth = len(judges) / (1 + (len(judges) - 1) * mean)
        values["error_correlation", PANEL] = mean
        values["n_independent", PANEL] = np.where(worth > 0, worth, np.inf)
    return values


def influences(
    columns: Mapping[str, Float], known: Sequence[tuple[str, Any]], judges: list[Any], scale: LabelScale
) -> Float:
    """Return (N, K) N times what a battle adds to each of the ``known`` measures, by central differences."""
    rows = sums_of_items(columns, np.arange(len(next(iter(columns.values())))))
    more, less = (measures(by_name(rows.sum(0) + step * rows, columns), judges, scale) for step in (_STEP, -_STEP))
    with np.errstate(invalid="ignore"):
        slopes = np.column_stack([more[key] - less[key] for key in known]) / (2 * _STEP)
    return np.nan_to_num(len(rows) * slopes, posinf=0.0, neginf=0.0)


def error_correlations(sums: Float) -> Float:
    """Return (B, P) Pearson's correlations of the errors of pairs of judges, of (B, P, 6) sums."""
    n, x, y, xy, xx, yy = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (xx - x * x / n) * (yy - y * y / n)
        return np.asarray(np.where(spread > 1e-9, (xy - x * y / n) / np.sqrt(spread), np.nan))


def names_of(judges: Sequence[Any]) -> list[Any]:
    """Return the judges, and the panel where there are several."""
    return [*judges, PANEL] if len(judges) > 1 else list(judges)


def with_panel(battles: LabelledVerdicts) -> dict[Any, Float]:
    """Return verdicts (N,) of each judge, and of the panel where there are several."""
    panel = [battles.panel] if len(battles.judges) > 1 else []
    return dict(zip(names_of(battles.judges), [*battles.verdict.T, *panel], strict=True))


def _codes(target: Float, scale: LabelScale = PAIRS) -> NDArray[np.intp]:
    """Return the places of labels on their scale; -1 for NaN."""
    return np.where(np.isnan(target), -1, np.searchsorted(scale.values, target))


def _one_hot(codes: NDArray[np.intp], n_labels: int) -> Float:
    return np.asarray(codes[..., None] == np.arange(n_labels), float)


def distance_of(scale: LabelScale) -> Float | None:
    """Return (L, L) squared distances of grades; None for labels that are equal or not."""
    values = np.array(scale.values)
    return (values[:, None] - values) ** 2 if scale.kind == "grades" else None


def _ratio(part: Float, whole: Float) -> Float:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(whole > 0, part / whole, np.nan))


def _people(labelled: Float, are_two: bool) -> Float:
    """Return (N, 3, 3) pairs of labels of one battle, which weigh 1 together.

    With two raters the rows are the first one's, and kappa is Cohen's. With more raters, or raters without names, pairs
    count both ways.
    """
    if are_two:
        return np.einsum("na,nb->nab", labelled[:, 0], labelled[:, 1])
    labels = labelled.sum(1)
    pairs = labels[:, :, None] * labels[:, None, :] - labels[:, :, None] * np.eye(labels.shape[1])
    return np.asarray(pairs / np.maximum(pairs.sum((1, 2), keepdims=True), 1))


def _common(seen: Float, labels: Float, people: Float) -> Float:
    """Return (N, K, 2, 3) each judge beside people and the last judge (the panel), on battles that both decide.

    The weight of the battle, the judge's agreement with people, and the other's: people's with each other.
    """
    decided, agreed = np.einsum("na,njb->nj", labels, seen), np.einsum("na,nja->nj", labels, seen)
    pairs = people.sum((1, 2))
    share = _ratio(np.einsum("naa->n", people), pairs)
    of_people = np.stack([decided, agreed, decided * np.nan_to_num(share)[:, None]], -1) * (pairs > 0)[:, None, None]
    both = (decided > 0) & (decided[:, -1:] > 0)
    of_panel = np.stack([decided, agreed, np.broadcast_to(agreed[:, -1:], agreed.shape)], -1) * both[..., None]
    return np.stack([of_people, of_panel], axis=2)


def _orders(orders: Float) -> Float:
    """Count (N, J, 4) battles with a side in both orders, those that flip; verdicts for a side, for the first shown."""
    side = np.isin(orders, (0.0, 1.0))
    both = side.all(-1)
    first = np.stack([orders[..., 0] == 1, orders[..., 1] == 0], -1)
    return np.stack([both, both & (orders[..., 0] != orders[..., 1]), side.sum(-1), first.sum(-1)], -1).astype(float)


def _longer(battles: LabelledVerdicts, verdict: NDArray[np.intp], human: NDArray[np.intp]) -> Float:
    """Count (N, J + 1, 2) verdicts for a side where one answer is longer, and for the longer; of judges, of people."""
    apart = (np.abs(battles.longer) == 1) & (battles.scale.kind in ("pairs", "sides"))
    choices = [_chosen(verdict[:, k], battles.longer > 0, apart) for k in range(verdict.shape[1])]
    labels = np.stack([_chosen(codes, battles.longer > 0, apart) for codes in human.T] or [np.zeros((len(apart), 2))])
    share = labels.sum(0) / np.maximum(labels[..., 0].sum(0), 1)[:, None]
    return np.stack([*choices, share], axis=1)


def _chosen(codes: NDArray[np.intp], is_a: NDArray[np.bool_], among: NDArray[np.bool_]) -> Float:
    """Return (N, 2) whether a side is chosen, and whether it is side A where ``is_a`` and side B elsewhere."""
    side = among & np.isin(codes, _SIDES)
    return np.stack([side, side & ((codes == 2) == is_a)], -1).astype(float)


def _family(battles: LabelledVerdicts, families: Mapping[Any, str] | None) -> Float:
    """Return (N, J, 5) counts of battles of a model of the judge's family against another.

    Verdicts for a side, those for the own family; and where people chose a side, too: battles, choices of the own
    family by the judge and by people.
    """
    if battles.scale.kind != "pairs":
        return np.zeros((len(battles.item), len(battles.judges), 5))
    of_model, of_judge = family_of(battles.models, families), family_of(battles.judges, families)
    people, parts = _codes(battles.people), []
    for k, family in enumerate(of_judge):
        own_a, own_b = (of_model[side] == family for side in (battles.model_a, battles.model_b))
        known = (of_model[battles.model_a] != None) & (of_model[battles.model_b] != None)  # noqa: E711
        among = known & (own_a != own_b) & (family is not None)
        judge = _chosen(_codes(battles.verdict[:, k]), own_a, among)
        labelled = (judge[:, 0] > 0) & np.isin(people, _SIDES)
        both = [_chosen(codes, own_a, labelled)[:, 1] for codes in (_codes(battles.verdict[:, k]), people)]
        parts.append(np.column_stack([judge, labelled, *both]))
    return np.stack(parts, axis=1).astype(float)


def _errors(battles: LabelledVerdicts) -> Float:
    """Return (N, P, 6) of pairs of judges: 1, both errors, their product and squares, where people chose a side.

    An error is 1 for the other side and 1/2 for a tie.
    """
    people, scale = battles.people, battles.scale
    decided = np.where(np.isin(people, np.array(scale.values)[list(scale.sides)]), people, np.nan)[:, None]
    error = np.abs(battles.verdict - decided)
    if scale.kind == "categories":
        error = np.where(np.isnan(error), np.nan, error > 0)
    parts = []
    for j, k in combinations(range(error.shape[1]), 2):
        x, y = error[:, j], error[:, k]
        known = ~np.isnan(x + y)
        parts.append(np.column_stack([known, *(np.where(known, v, 0.0) for v in (x, y, x * y, x * x, y * y))]))
    return np.stack(parts, axis=1).astype(float) if parts else np.zeros((len(error), 0, 6))


def sums_of_items(columns: Mapping[str, Float], item: NDArray[np.intp]) -> Float:
    """Return (I, K) columns summed over the battles of each item, side by side."""
    return sums_by(item, np.concatenate([values.reshape(len(item), -1) for values in columns.values()], axis=1))


def by_name(sums: Float, columns: Mapping[str, Float]) -> dict[str, Float]:
    """Split (B, K) sums of the columns side by side, each in its shape again."""
    shapes = {name: values.shape[1:] for name, values in columns.items()}
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])[:-1]
    parts = np.split(sums, ends, axis=1)
    return {name: part.reshape(len(part), *shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def correlation_table(battles: LabelledVerdicts, sums: Mapping[str, Float]) -> PlainTable:
    """Return (J, J) correlations of judges' errors, of the sums of all items, behind a column of the judges."""
    n = len(battles.judges)
    table = np.eye(n)
    j, k = np.triu_indices(n, 1)
    table[j, k] = table[k, j] = error_correlations(sums["errors"])[0]
    first = "of" if "judge" in battles.judges else "judge"  # a judge may be called "judge"
    return PlainTable({first: battles.judges, **dict(zip(battles.judges, table.T, strict=True))})


def fitted(battles: Battles) -> BradleyTerryFit:
    """Return the ratings of ``battles``. They alone need JAX, and answers that are right or wrong have none."""
    from jaxeval.ratings.bootstrap import fit_bradley_terry

    return fit_bradley_terry(battles, RIDGE)


def _decided(battles: LabelledVerdicts) -> list[tuple[Any, Float, Bool, Bool]]:
    """Return each judge, its verdicts (N,), on which battles it and most people chose a side, and if they agree."""
    people, decided = battles.people, np.array(battles.scale.values)[list(battles.scale.sides)]
    sides = np.isin(people, decided)
    return [
        (name, verdict, sides & np.isin(verdict, decided), verdict == people)
        for name, verdict in with_panel(battles).items()
    ]


def _share(among: Bool, agree: Bool, item: NDArray[np.intp], level: float) -> dict[str, float]:
    share = wilson_share(agree[among], item[among], level)
    return {"agreement": share.pop("share"), **share}


def by_gap(battles: LabelledVerdicts, level: float) -> pd.DataFrame:
    """Return agreement on decided battles by the gap of people's ratings."""
    people = battles.people
    voted = ~np.isnan(people)
    sides = {"model_a": battles.models[battles.model_a], "model_b": battles.models[battles.model_b]}
    votes = pd.DataFrame({**sides, "target": people})[voted]
    strength = fitted(Battles.from_pandas(votes, target="target")).logits.reindex(battles.models)
    elo = ELO_PER_LOGIT * strength.to_numpy()
    gap = np.abs(elo[battles.model_a] - elo[battles.model_b])
    place = np.digitize(gap, GAP_EDGES[1:-1])
    rows = []
    for name, _, decided, agree in _decided(battles):
        for k, (low, high) in enumerate(pairwise(GAP_EDGES)):
            share = _share(decided & (place == k), agree, battles.item, level)
            rows.append({"judge": name, "gap_from": low, "gap_to": high, **share})
    return with_kinds(pd.DataFrame(rows), ends_of="agreement")


def by_model(battles: LabelledVerdicts, level: float) -> pd.DataFrame:
    """Return agreement on decided battles of each model, and how much more often the judge names it than people do."""
    rows, people = [], battles.people
    for name, verdict, decided, agree in _decided(battles):
        for k, model in enumerate(battles.models):
            is_a, is_b = battles.model_a == k, battles.model_b == k
            among = decided & (is_a | is_b)
            share = _share(among, agree, battles.item, level)
            by_judge, by_people = (np.mean((x == 1)[among] == is_a[among]) if among.any() else np.nan
                                   for x in (verdict, people))  # fmt: skip
            chosen = {"chosen_by_judge": by_judge, "chosen_by_people": by_people}
            rows.append({"judge": name, "model": model, **share, **chosen})
    return with_kinds(pd.DataFrame(rows), ends_of="agreement")


def by_confidence(
    battles: LabelledVerdicts, level: float
) -> tuple[pd.DataFrame | PlainTable, dict[Any, dict[str, float]]]:
    """Compare stated confidence with agreement on decided battles, in bins; and give calibration errors by judge."""
    parts, errors = [], {}
    for k, (name, _, decided, agree) in enumerate(_decided(battles)[: len(battles.judges)]):
        stated = battles.confidence[:, k]
        among = decided & ~np.isnan(stated)
        if among.any():
            n_bins = int(np.clip(among.sum() // FEW_DECIDED, 1, 10))
            table, errors[name] = reliability_bins(
                stated[among], agree[among].astype(float), battles.item[among], n_bins, level
            )
            parts.append(table.assign(judge=name))
    columns = ["judge", "predicted", "agreement", "standard_error", "n_battles"]
    table = pd.concat(parts, ignore_index=True)[columns] if parts else PlainTable.of_rows([], columns)
    return table, errors


def by_raters(battles: LabelledVerdicts) -> PlainTable:
    """Return agreement and Cohen's kappa of every pair of named raters, with ties as a label."""
    rows = []
    for j, k in combinations(range(len(battles.raters or [])), 2):
        x, y = battles.human[:, j], battles.human[:, k]
        both = ~np.isnan(x + y)
        counts = label_table(x[both], y[both], np.array(battles.scale.values))
        observed, _, kappa = cohen_kappa(counts, distance_of(battles.scale))
        names = battles.raters or []
        rows.append((names[j], names[k], float(observed), float(kappa), int(both.sum())))
    table = PlainTable.of_rows(rows, ["rater", "other", "all_agreement", "all_kappa", "n_battles"])
    return with_kinds(table, agreement="all_agreement all_kappa")
