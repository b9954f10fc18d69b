"""Do audits of votes raise false alarms, and what do they find? Voters, blocks of them, drift, and daily looks.

    python benchmarks/odd_votes.py
    python benchmarks/odd_votes.py --boards 10   # a quick look: nothing is written

Voters: 300 of 10 to 200 votes on 20 models, honest but for 10 who always choose one model, toss coins, or always name
the other model than they prefer. Honest voters may differ in taste: each likes each model by a normal number of
logits.
Blocks: 1,500 voters of 3 to 20 votes on 12 models, some of whom always choose one model.
Drift: 6,000 votes on 8 models in 12 weeks, a quarter of even battles tied; one model takes a step, or none. Or voters
of 20 votes with tastes, with and without ``cluster=``. Counted are false alarms, steps found, and intervals that hold.
Five times as many boards are simulated for drift and looks.
Looks: 100, at 60 or 300 to 6,000 votes on 6 models, at the difference of two of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, save
from numpy.typing import NDArray
from scipy.special import expit

import jaxeval
from jaxeval.audits.over_time import anytime_factor
from jaxeval.data.battles import Battles
from jaxeval.ratings.boards import fit_boards, inverse_information
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.options import FitOptions
from jaxeval.statistics.p_values import holm
from jaxeval.statistics.quantiles import normal_quantile

DEFAULTS = {"boards": 60}
ALPHA = 0.05
N_ODD = 10
SIZES = (20, 40, 100, 200)  # votes of odd voters
LOOKS = 100


def simulated(
    rng: np.random.Generator, sizes: NDArray[np.int64], n_models: int, taste: float, kind: str = "", n_odd: int = 0
) -> pd.DataFrame:
    """Votes of voters of ``sizes``, of which the first ``n_odd`` are odd in one ``kind`` of ways."""
    theta = rng.normal(0, 0.7, n_models)
    voter = np.repeat(np.arange(len(sizes)), sizes)
    a = rng.integers(0, n_models, len(voter))
    b = (a + rng.integers(1, n_models, len(voter))) % n_models
    own = theta + taste * rng.normal(size=(len(sizes), n_models))
    won = rng.random(len(voter)) < expit(own[voter, a] - own[voter, b])
    odd = voter < n_odd
    if kind == "one model":
        won = np.where(odd & (a == 0), True, np.where(odd & (b == 0), False, won))
    elif kind == "coins":
        won = np.where(odd, rng.random(len(voter)) < 0.5, won)
    elif kind == "reversed":
        won = np.where(odd, ~won, won)
    names = np.array([f"m{k:02d}" for k in range(n_models)])
    return pd.DataFrame({"model_a": names[a], "model_b": names[b], "target": won.astype(float), "voter": voter})


def voters(n_boards: int) -> Iterator[dict[str, Any]]:
    """False alarms on honest voters, and shares of odd ones found, by their votes."""
    for taste in (0.0, 0.5):
        for kind in ("", "one model", "coins", "reversed"):
            rng = np.random.default_rng([1, int(10 * taste)])
            by_points, by_preference, shares, found = [], [], [], []
            n_odd = N_ODD if kind else 0
            for _ in range(n_boards):
                sizes = rng.choice([10, *SIZES], 300)
                sizes[:N_ODD] = np.resize(SIZES, N_ODD)
                votes = Battles.from_pandas(simulated(rng, sizes, 20, taste, kind, n_odd))
                table = jaxeval.who_votes(votes, "voter", n_strongest=0).table.set_index("voter")
                honest = table.index >= n_odd
                by_points.append(bool((holm(table["p_points"].to_numpy()) <= ALPHA)[honest].any()))
                by_preference.append(bool((holm(table["p_honest"].to_numpy()) <= ALPHA)[honest].any()))
                alarms = table["verdict"].reindex(range(300), fill_value="") != ""
                shares.append(float(alarms[n_odd:].sum() / max(alarms.sum(), 1)))
                found.append([alarms[:N_ODD][sizes[:N_ODD] == size].mean() for size in SIZES])
            row = {"part": "voters", "taste": taste, "odd": kind or "none", "any_false_points": np.mean(by_points)}
            row |= {"any_false_preference": np.mean(by_preference), "false_share": np.mean(shares)}
            if kind:
                row |= {f"found_{size}": share for size, share in zip(SIZES, np.mean(found, 0), strict=True)}
            yield row


def blocks(n_boards: int) -> Iterator[dict[str, Any]]:
    """How often a model is said to divide voters, and how often another one than the one that a block votes for."""
    for taste in (0.0, 0.5):
        for n_odd in (0, 30, 60, 150):
            rng = np.random.default_rng([2, int(10 * taste)])
            hits, false, lean = [], [], []
            for _ in range(n_boards):
                sizes = rng.choice([3, 6, 10, 20], 1500)
                votes = simulated(rng, sizes, 12, taste, "one model", n_odd)
                table = jaxeval.who_votes(votes, "voter", n_strongest=0).blocks
                odd = table[table["p_adjusted"] <= ALPHA]
                hit = odd["model"] == "m00"
                hits.append(bool(hit.any()))
                false.append(bool((~hit).any() if n_odd else len(odd)))
                lean += odd.loc[hit, "lean"].tolist()
            row = {
                "part": "blocks",
                "taste": taste,
                "n_odd": n_odd,
                "found": np.mean(hits),
                "any_false": np.mean(false),
            }
            yield row | {"lean_for": np.mean([x == "for" for x in lean]) if lean else None}


def drifting(n_boards: int) -> Iterator[dict[str, Any]]:
    """How often a change is found, and how often of another model than the one that changes."""
    start = pd.Timestamp("2026-01-05")
    for step, taste, cluster in ((0, 0, None), (0, 0.8, None), (0, 0.8, "voter"), (50, 0, None), (100, 0, None)):
        rng = np.random.default_rng([3, step])
        hits, false, near, held, size, missed = [], [], [], [], [], []
        for seed in range(n_boards):
            if taste:
                votes = simulated(rng, np.full(300, 20), 8, taste)
                order = rng.random(300).argsort()
                votes["time"] = start + pd.to_timedelta(order[votes["voter"]] * 12 * 7 * 24 * 60 // 300, unit="min")
            else:
                theta = pd.Series(rng.normal(0, 0.7, 8), [f"m{k:02d}" for k in range(8)])
                later = theta + np.where(theta.index == "m00", step * np.log(10) / 400, 0.0)
                halves = [jaxeval.simulate_votes(3000, strengths=own, seed=2 * seed + k)
                          for k, own in enumerate((theta, later))]  # fmt: skip
                votes = pd.concat(halves, ignore_index=True)
                votes["time"] = start + pd.to_timedelta(np.arange(6000) * 12 * 7 * 24 * 60 // 6000, unit="min")
            changes = jaxeval.drift(votes, "time", cluster=cluster, seed=seed).changes
            hit = changes["model"] == "m00"
            hits.append(bool(hit.any()))
            false.append(bool((~hit).any() or hit.sum() > 1) if step else len(changes) > 0)
            holds = hit & (changes["lower"] <= step) & (step <= changes["upper"])
            held += holds[hit].tolist()
            size += changes.loc[hit, "difference"].tolist()
            missed.append(not holds.all())
            near += (pd.to_datetime(changes.loc[hit, "period"]) - start).dt.days.div(7).sub(6).abs().le(1).tolist()
        row = {"part": "drift", "step_elo": step, "taste": taste, "cluster": cluster, "any_false": np.mean(false)}
        row |= {"any_missed": np.mean(missed)}
        found = {"found": np.mean(hits), "within_a_week": np.mean(near), "held": np.mean(held)}
        yield row | (found | {"told_by_true": np.mean(size) / step} if step else {})


def looks(n_boards: int) -> Iterator[dict[str, Any]]:
    """How often an interval misses the difference of two even models at some of `LOOKS` looks."""
    z = normal_quantile(1 - ALPHA)
    for first, tuned_for in ((60, 10.0), (300, 10.0), (300, 20.0)):
        rng = np.random.default_rng(4)
        missed, factors = [], []
        for _ in range(n_boards):
            theta = rng.normal(0, 0.6, 6)
            theta[1] = theta[0]
            a = rng.integers(0, 6, 6000)
            b = (a + rng.integers(1, 6, 6000)) % 6
            won = rng.random(6000) < expit(theta[a] - theta[b])
            votes = Battles.from_pandas(pd.DataFrame({"model_a": a, "model_b": b, "target": won.astype(float)}))
            at = np.unique(np.geomspace(first, 6000, LOOKS).astype(int))
            boards = fit_boards([(votes.models, votes.compress(slice(n))[0]) for n in at], FitOptions())
            inverse = inverse_information(boards)[0]
            difference = ELO_PER_LOGIT * np.array([board.theta[0] - board.theta[1] for board in boards])
            error = ELO_PER_LOGIT * np.sqrt(inverse[:, 0, 0] + inverse[:, 1, 1] - 2 * inverse[:, 0, 1])
            rated = np.array([board.active[:2].all() for board in boards])
            score, factor = np.abs(difference / error)[rated], anytime_factor(error, tuned_for, ALPHA)[rated]
            missed.append([(score > factor).any(), (score > z).any(), score[-1] > z])
            factors.append([factor[0] / z, factor[-1] / z])
        anytime, fixed, last = np.mean(missed, 0)
        yield {"part": "looks", "first": first, "tuned_for": tuned_for, "missed_anytime": anytime,
               "missed_fixed": fixed, "missed_fixed_at_the_end": last, "first_width_ratio": np.median(factors, 0)[0],
               "last_width_ratio": np.median(factors, 0)[1]}  # fmt: skip


def main() -> None:
    sizes = asked_sizes(__doc__ or "", **DEFAULTS)
    rows: list[dict[str, Any]] = []
    for part in (looks, drifting, blocks, voters):
        n_boards = sizes.boards * (5 if part in (looks, drifting) else 1)
        for row in part(n_boards):
            rows.append({k: round(float(v), 4) if isinstance(v, float | np.floating) else v for k, v in row.items()})
            rows[-1]["boards"] = n_boards
            print(rows[-1], flush=True)
    if vars(sizes) == DEFAULTS:
        save("odd_votes", {"cells": rows})


if __name__ == "__main__":
    main()
