"""Other rating systems on verdicts against a reference, to see how much judges differ under each (optional extra).

Bradley-Terry is our own; Glicko-2 (DOI 10.1080/02664760120059219) and a TrueSkill-class rating, Thurstone-Mosteller by
Weng and Lin's update, are those of the packages glicko2 and openskill: ``pip install jaxeval[ratings]``.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pandas as pd
import scipy

from jaxeval.anchored.reliability import runs_of_judges
from jaxeval.anchored.scores import anchored_scores
from jaxeval.arrays import Float, Int
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.data.battles import Battles
from jaxeval.ratings.bootstrap import fit_bradley_terry
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.show.shown import Shown

SYSTEMS = ("anchored", "bradley_terry", "glicko2", "openskill")


@dataclass(frozen=True, eq=False, repr=False)
class RatingSystems(Shown):
    """Ratings above the reference under four systems, Elo.

    ``table`` has a row per model, judge and anchor and a column per system. ``summary`` has a row per system and
    anchor: the mean over models of the standard deviation between judges, and the spread of these deviations;
    Spearman's correlation of the models' mean ratings with the anchored ones; ``n_unrated``, the number of ratings that
    are not finite and are left out.
    """

    table: pd.DataFrame
    summary: pd.DataFrame


def compare_rating_systems(verdicts: AnchoredVerdicts, *, seed: int = 0) -> RatingSystems:
    """Rate every judge's verdicts under four systems (Table 7).

    A run is a rating period of Glicko-2. The other sequential system sees verdicts in a random order of models, prompts
    and runs, the same for all judges of a reference and for any order of rows; its rating is the logit of the win
    probability that it predicts. (Without a column of prompts these are numbered by row.)

    Raises:
        ImportError: glicko2 or openskill is not installed.
    """
    missing = [name for name in ("glicko2", "openskill") if find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise ImportError(f"{' and '.join(missing)} {are} not installed: pip install {' '.join(missing)}")
    table = anchored_scores(verdicts)[["model", "judge", "anchor", "rating"]].rename(columns={"rating": "anchored"})
    for system in SYSTEMS[1:]:
        table[system] = np.nan
    group, pairs = verdicts.groups(["judge", "anchor"])
    of_row = pd.MultiIndex.from_frame(table[["judge", "anchor"]])
    models = verdicts.levels["model"]
    place = _places(verdicts, seed)
    for k, key in enumerate(pd.MultiIndex.from_frame(pairs)):
        verdict_rows = np.flatnonzero(group == k)
        verdict_rows = verdict_rows[np.argsort(place[verdict_rows])]
        model, outcome = verdicts.number["model"][verdict_rows], verdicts.outcome[verdict_rows]
        rated = {
            "bradley_terry": _bradley_terry(model, outcome),
            "glicko2": _glicko2(model, outcome, verdicts.number["run"][verdict_rows]),
            "openskill": _openskill(model, outcome),
        }
        rows = np.flatnonzero(of_row == key)
        number = models.get_indexer(table["model"].iloc[rows])
        for system, ratings in rated.items():
            table.loc[rows, system] = [ratings[m] for m in number]
    return RatingSystems(table, _summary(table))


def _places(verdicts: AnchoredVerdicts, seed: int) -> Int:
    """Return (N,) places of verdicts in one random order, for all judges, of a reference's models, prompts and runs."""
    run, n_runs = runs_of_judges(verdicts)
    answer, table = verdicts.groups(["anchor", "model", "item"])
    of_anchor, anchors = verdicts.groups(["anchor"])
    first = np.full(len(anchors) + 1, len(table))  # answers are in the order of their references
    np.minimum.at(first, of_anchor, answer)
    most = int(n_runs.max())
    place = np.empty(len(table) * most, np.int64)
    for start, end in pairwise(first * most):
        place[start:end] = np.random.default_rng(seed).permutation(end - start)
    return place[answer * most + run]


def _summary(table: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for anchor, block in table.groupby("anchor", sort=False, observed=True):
        finite = block[list(SYSTEMS)].where(np.isfinite(block[list(SYSTEMS)]))
        by_model = finite.groupby(block["model"], observed=True)
        deviation, mean = by_model.std(ddof=1), by_model.mean()
        for system in SYSTEMS:
            both = mean[["anchored", system]].dropna() if system != "anchored" else mean[["anchored"]]
            rho = scipy.stats.spearmanr(both["anchored"], both[system]).statistic if len(both) > 2 else np.nan
            unrated = int(finite[system].isna().sum())
            rows.append((system, anchor, deviation[system].mean(), deviation[system].std(ddof=1), rho, unrated))
    names = ["system", "anchor", "judge_sd", "judge_sd_spread", "spearman", "n_unrated"]
    return pd.DataFrame(rows, columns=names)


def _bradley_terry(model: Int, outcome: Float) -> dict[int, float]:
    names = [f"m{m}" for m in model]
    frame = pd.DataFrame({"model_a": names, "model_b": "reference", "target": outcome})
    fit = fit_bradley_terry(Battles.from_pandas(frame, target="target"), gauge=("reference", 0.0))
    return {int(name[1:]): rating for name, rating in fit.ratings.items() if name != "reference"}


def _glicko2(model: Int, outcome: Float, period: Int) -> dict[int, float]:
    from glicko2 import Player

    reference, players = Player(), {int(m): Player() for m in np.unique(model)}
    for now in np.unique(period):
        rows = np.flatnonzero(period == now)
        before = {m: (player.rating, player.rd) for m, player in players.items()}
        anchor = reference.rating, reference.rd
        met = [before[int(m)] for m in model[rows]]
        reference.update_player([r for r, _ in met], [rd for _, rd in met], (1 - outcome[rows]).tolist())
        for m, player in players.items():
            outcomes = outcome[rows[model[rows] == m]].tolist()
            if outcomes:
                player.update_player([anchor[0]] * len(outcomes), [anchor[1]] * len(outcomes), outcomes)
            else:
                player.did_not_compete()
    return {m: player.rating - reference.rating for m, player in players.items()}


def _openskill(model: Int, outcome: Float) -> dict[int, float]:
    from openskill.models import ThurstoneMostellerFull

    system = ThurstoneMostellerFull()
    reference, players = system.rating(), {int(m): system.rating() for m in np.unique(model)}
    for m, y in zip(model.tolist(), outcome, strict=True):
        # The winner has the lower rank; an outcome between a win and a tie counts as the nearer of the two.
        rank = 1 - float(np.rint(2 * y) - 1)
        (players[m],), (reference,) = system.rate([[players[m]], [reference]], ranks=[rank, 1.0])
    rated: dict[int, float] = {}
    for m, player in players.items():
        p = float(system.predict_win([[player], [reference]])[0])
        rated[m] = float(ELO_PER_LOGIT * np.log(p / (1 - p)))
    return rated
