"""Agreement of judges with people in parts: by gap of the models, by model, by confidence, and by pairs of raters."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.agreement.measures import PANEL, distance_of
from jaxeval.arrays import Bool
from jaxeval.data.battles import Battles
from jaxeval.data.labelled_verdicts import LabelledVerdicts
from jaxeval.ratings.bradley_terry import fit_bradley_terry
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.statistics.calibration_error import reliability_bins
from jaxeval.statistics.clusters import wilson_share
from jaxeval.statistics.rater_agreement import cohen_kappa, label_table

#: Edges of the gaps between people's ratings, Elo; the last bin is open.
GAP_EDGES = (0.0, 50.0, 100.0, 200.0, np.inf)
#: Agreement is flagged where people and the judge chose a side on fewer battles than this.
FEW_DECIDED = 30
_RIDGE = 0.01  # of the people's ratings, from which gaps come: with it every model has a rating


def _decided(battles: LabelledVerdicts) -> list[tuple[Any, Bool, Bool]]:
    """Judge, (N,) battles on which it and most people chose a side, and (N,) whether they agree."""
    people = battles.people
    names = [*battles.judges, *([PANEL] if len(battles.judges) > 1 else [])]
    verdicts = [*battles.verdict.T, *([battles.panel] if len(battles.judges) > 1 else [])]
    decided = np.array(battles.scale.values)[list(battles.scale.sides)]
    sides = np.isin(people, decided)
    return [(name, sides & np.isin(own, decided), own == people) for name, own in zip(names, verdicts, strict=True)]


def _shares(rows: list[tuple[dict[str, Any], Bool]], agree: Bool, item: NDArray[np.intp], level: float) -> list[Any]:
    """A row of `wilson_share` for each of some sets of battles, with clusters of items."""
    found = []
    for names, among in rows:
        own = wilson_share(agree[among], item[among], level)
        found.append({**names, "agreement": own.pop("share"), **own})
    return found


def by_gap(battles: LabelledVerdicts, level: float) -> pd.DataFrame:
    """Agreement on decided battles by the gap of people's ratings."""
    people = battles.people
    voted = ~np.isnan(people)
    sides = {"model_a": battles.models[battles.model_a], "model_b": battles.models[battles.model_b]}
    votes = pd.DataFrame({**sides, "target": people})[voted]
    strength = fit_bradley_terry(Battles.from_pandas(votes, target="target"), _RIDGE).logits.reindex(battles.models)
    elo = ELO_PER_LOGIT * strength.to_numpy()
    gap = np.abs(elo[battles.model_a] - elo[battles.model_b])
    place = np.digitize(gap, GAP_EDGES[1:-1])
    rows = []
    for name, decided, agree in _decided(battles):
        bins = [
            ({"judge": name, "gap_from": GAP_EDGES[k], "gap_to": GAP_EDGES[k + 1]}, decided & (place == k))
            for k in range(len(GAP_EDGES) - 1)
        ]
        rows += _shares(bins, agree, battles.item, level)
    return pd.DataFrame(rows)


def by_model(battles: LabelledVerdicts, level: float) -> pd.DataFrame:
    """Agreement on decided battles of each model, and by how much more often the judge names it than people do."""
    rows = []
    people = battles.people
    for (name, decided, agree), own in zip(_decided(battles), [*battles.verdict.T, battles.panel], strict=False):
        for k, model in enumerate(battles.models):
            is_a, is_b = battles.model_a == k, battles.model_b == k
            among = decided & (is_a | is_b)
            found = _shares([({"judge": name, "model": model}, among)], agree, battles.item, level)[0]
            by_judge, by_people = (np.mean((x == 1)[among] == is_a[among]) if among.any() else np.nan
                                   for x in (own, people))  # fmt: skip
            rows.append({**found, "chosen_by_judge": by_judge, "chosen_by_people": by_people})
    return pd.DataFrame(rows)


def by_confidence(battles: LabelledVerdicts, level: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Stated confidence against agreement on decided battles, in bins; and by judge the calibration error."""
    parts, errors = [], {}
    for k, (name, decided, agree) in enumerate(_decided(battles)[: len(battles.judges)]):
        own = battles.confidence[:, k]
        among = decided & ~np.isnan(own)
        if among.any():
            n_bins = int(np.clip(among.sum() // FEW_DECIDED, 1, 10))
            table, errors[name] = reliability_bins(
                own[among], agree[among].astype(float), battles.item[among], n_bins, level
            )
            parts.append(table.assign(judge=name))
    columns = ["judge", "predicted", "agreement", "standard_error", "n_battles"]
    table = pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)
    names = ["ece", "ece_floor", "ece_debiased", "ece_lower", "ece_upper"]
    return table, pd.DataFrame.from_dict(errors, orient="index", columns=names)


def by_raters(battles: LabelledVerdicts) -> pd.DataFrame:
    """Agreement and Cohen's kappa of every pair of named raters, with ties as a label."""
    rows = []
    for j, k in combinations(range(len(battles.raters or [])), 2):
        x, y = battles.human[:, j], battles.human[:, k]
        both = ~np.isnan(x + y)
        table = label_table(x[both], y[both], np.array(battles.scale.values))
        observed, _, kappa = cohen_kappa(table, distance_of(battles.scale))
        names = battles.raters or []
        row = {"rater": names[j], "other": names[k], "all_agreement": float(observed), "all_kappa": float(kappa)}
        rows.append({**row, "n_battles": int(both.sum())})
    return pd.DataFrame(rows, columns=["rater", "other", "all_agreement", "all_kappa", "n_battles"])
