"""Wide boards: fits and bootstraps on the graph of pairs, against peers, and where it overtakes the dense method.

    python benchmarks/wide.py

Matches as in sports: log-normal activity, opponents of like skill more often, one match in ten tied. Peers get the
battles of the main group only (several fail on unbeaten competitors), as counts by pair, and each is run at a tolerance
that reaches the maximum where it has one. How far from the maximum each ends is printed: largest difference in Elo, and
largest component of the gradient of the log-likelihood.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from harness import environment, peak_memory_mb, save, seconds
from peers import ELO_PER_LOGIT, minimise_as_fastchat

import jaxeval

N_RESAMPLES = 100
TIE_PROB = 0.1


class Pairs(NamedTuple):
    """Counts by pair of the main group."""

    first: np.ndarray  # (P,)
    second: np.ndarray  # (P,)
    counts: np.ndarray  # (P, 3) losses, ties, wins of the first
    n_models: int

    @property
    def wins(self) -> tuple[np.ndarray, np.ndarray]:
        """(P,) points of the first model and of the second, a tie half each."""
        loss, tie, win = self.counts.T
        return win + tie / 2, loss + tie / 2


def simulate(n_matches: int, n_models: int) -> pd.DataFrame:
    rng = np.random.default_rng([2026, n_models])
    skill_logit, activity = rng.normal(0, 1, n_models), rng.lognormal(0, 1, n_models)
    activity /= activity.sum()
    a, b = np.zeros((2, 0), np.int64)
    while len(a) < n_matches:
        x, y = rng.choice(n_models, (2, n_matches), p=activity)
        met = (x != y) & (rng.random(n_matches) < np.exp(-np.abs(skill_logit[x] - skill_logit[y])))
        a, b = np.append(a, x[met])[:n_matches], np.append(b, y[met])[:n_matches]
    target = (rng.random(n_matches) < 1 / (1 + np.exp(skill_logit[b] - skill_logit[a]))).astype(float)
    target[rng.random(n_matches) < TIE_PROB] = 0.5
    return pd.DataFrame({"model_a": a, "model_b": b, "target": target})


def main_group(table: pd.DataFrame) -> tuple[jaxeval.Battles, Pairs]:
    """The battles among the models with a finite rating, and their counts by pair."""
    fit = jaxeval.fit_bradley_terry(table)
    inside = fit.ratings.index[np.isfinite(fit.ratings)]
    battles = jaxeval.Battles.from_pandas(table[table["model_a"].isin(inside) & table["model_b"].isin(inside)])
    cells = battles.cells
    counts = np.zeros((len(cells.first), 3), np.int64)
    counts[cells.pair, (2 * cells.target).astype(int)] = cells.count
    return battles, Pairs(cells.first.astype(np.int64), cells.second.astype(np.int64), counts, battles.n_models)


def gradient(pairs: Pairs, theta: np.ndarray) -> np.ndarray:
    won, lost = pairs.wins
    surprise = won - (won + lost) / (1 + np.exp(theta[pairs.second] - theta[pairs.first]))
    return np.bincount(pairs.first, surprise, len(theta)) - np.bincount(pairs.second, surprise, len(theta))


# --- the peers: counts by pair -> log-strengths -------------------------------------------------


def fit_leaderbot(pairs: Pairs) -> np.ndarray:
    from leaderbot import BradleyTerry

    data = {
        "X": np.column_stack([pairs.first, pairs.second]),
        "Y": pairs.counts[:, [2, 0, 1]],
        "models": list(range(pairs.n_models)),
    }
    model = BradleyTerry(data, k_cov=None)
    model.train()
    return model.scores()


def fit_evalica(pairs: Pairs) -> np.ndarray:
    import evalica

    won, lost = pairs.wins
    winner, loser = np.append(pairs.first, pairs.second), np.append(pairs.second, pairs.first)
    weight = np.append(won, lost)
    result = evalica.bradley_terry(
        winner[weight > 0],
        loser[weight > 0],
        [evalica.Winner.X] * int((weight > 0).sum()),
        index=pd.RangeIndex(pairs.n_models),
        weights=weight[weight > 0],
    )
    return np.log(result.scores.sort_index().to_numpy())


def fit_fastchat(pairs: Pairs) -> np.ndarray:
    pair, outcome = np.nonzero(pairs.counts)
    cells = pairs.first[pair], pairs.second[pair], outcome / 2, pairs.counts[pair, outcome].astype(float)
    return minimise_as_fastchat(*cells, pairs.n_models, gtol=1e-10, ftol=0.0, max_iter=10_000)


def fit_choix(pairs: Pairs) -> np.ndarray:
    import choix

    won, lost = pairs.wins
    table = np.zeros((pairs.n_models, pairs.n_models))
    table[pairs.first, pairs.second], table[pairs.second, pairs.first] = won, lost
    return choix.ilsr_pairwise_dense(table, tol=1e-6)


def fit_scikit_learn(pairs: Pairs) -> np.ndarray:
    from scipy.sparse import csr_matrix, vstack
    from sklearn.linear_model import LogisticRegression

    n = len(pairs.first)
    columns = np.column_stack([pairs.first, pairs.second]).ravel()
    rows = csr_matrix((np.tile([1.0, -1.0], n), columns, np.arange(0, 2 * n + 1, 2)), shape=(n, pairs.n_models))
    label, weight = np.repeat([1, 0], n), np.concatenate(pairs.wins)
    kept = weight > 0
    model = LogisticRegression(C=np.inf, fit_intercept=False, solver="lbfgs", tol=1e-8, max_iter=2000)
    model.fit(vstack([rows, rows], format="csr")[kept], label[kept], sample_weight=weight[kept])
    return model.coef_[0]


def fit_arena_rank(pairs: Pairs) -> np.ndarray:
    import jax.numpy as jnp
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    pair, outcome = np.nonzero(pairs.counts)
    count = pairs.counts[pair, outcome].astype(float)
    with jax.enable_x64(True):
        dataset = PairDataset(
            competitors=list(range(pairs.n_models)),
            pairs=jnp.asarray(np.column_stack([pairs.first[pair], pairs.second[pair]]).astype(np.int32)),
            outcomes=jnp.asarray(outcome / 2),
            counts=jnp.asarray(count),
            weights=jnp.ones(len(count)),
            opt_weights=jnp.asarray(count),
        )
        return np.asarray(BradleyTerry(pairs.n_models).fit(dataset).params["ratings"])


PEERS: dict[str, tuple[Callable[[Pairs], np.ndarray], int]] = {
    "leaderbot (penalised)": (fit_leaderbot, 5),
    "FastChat's method": (fit_fastchat, 3),
    "scikit-learn": (fit_scikit_learn, 3),
    "arena-rank": (fit_arena_rank, 3),
    "evalica": (fit_evalica, 1),
    "choix ilsr": (fit_choix, 1),
}


# --- the runs -----------------------------------------------------------------------------------


def against_peers(n_matches: int, n_models: int) -> dict[str, Any]:
    battles, pairs = main_group(simulate(n_matches, n_models))
    print(f"\n{battles.n_battles:,} matches, {battles.n_models:,} competitors, {len(pairs.first):,} pairs")
    start = time.perf_counter()
    theta = jaxeval.fit_bradley_terry(battles).theta
    first_call = time.perf_counter() - start
    ours = seconds(lambda: jaxeval.fit_bradley_terry(battles).ratings, 9)
    own_gradient = float(np.abs(gradient(pairs, theta)).max())
    print(f"  {'jaxeval':22s} {ours['median']:8.3f} s  gradient {own_gradient:.1e}  (first call {first_call:.1f} s)")
    fits = {}
    for name, (fit, repeats) in PEERS.items():
        found: list[np.ndarray] = []
        try:
            fit(pairs) if repeats > 1 else None  # compile, cache
            timed = seconds(lambda fit=fit, found=found: found.append(fit(pairs)), repeats)
        except ImportError:
            continue
        there = found[-1] - found[-1].mean()
        fits[name] = {
            **timed,
            "ratio": timed["median"] / ours["median"],
            "max_difference_elo": float(np.abs(there - theta).max() * ELO_PER_LOGIT),
            "max_gradient": float(np.abs(gradient(pairs, there)).max()),
        }
        print(
            f"  {name:22s} {timed['median']:8.3f} s  gradient {fits[name]['max_gradient']:.1e}, "
            f"within {fits[name]['max_difference_elo']:.1e} Elo, {fits[name]['ratio']:.1f} times"
        )
    start = time.perf_counter()
    draws = jaxeval.bootstrap(battles, N_RESAMPLES, progress=False)
    first_bootstrap = time.perf_counter() - start
    resampled = seconds(lambda: jaxeval.bootstrap(battles, N_RESAMPLES, progress=False), 3)
    print(f"  {N_RESAMPLES} resamples: {resampled['median']:.2f} s (first call {first_bootstrap:.1f} s)")
    result: dict[str, Any] = {
        "matches": battles.n_battles,
        "competitors": battles.n_models,
        "pairs": len(pairs.first),
        "fit": {"jaxeval_seconds": ours, "first_call_seconds": first_call, "max_gradient": own_gradient, "peers": fits},
        "bootstrap": {
            "resamples": N_RESAMPLES,
            "jaxeval_seconds": resampled,
            "first_call_seconds": first_bootstrap,
            "converged": bool(draws.converged.all()),
            "mean_steps": float(draws.n_steps.mean()),
        },
    }
    if "leaderbot (penalised)" in fits:
        rng, times = np.random.default_rng(0), []
        for drawn in resampled_counts(pairs, 5, rng):
            start = time.perf_counter()
            fit_leaderbot(drawn)
            times.append(time.perf_counter() - start)
        result["bootstrap"]["leaderbot_seconds"] = float(np.median(times)) * N_RESAMPLES
        print(f"  leaderbot, scaled from 5: {result['bootstrap']['leaderbot_seconds']:.2f} s and the draws")
    return result


def resampled_counts(pairs: Pairs, n: int, rng: np.random.Generator) -> Iterator[Pairs]:
    """Multinomial resamples, without the pairs that they lack."""
    flat = pairs.counts.ravel()
    for _ in range(n):
        counts = rng.multinomial(flat.sum(), flat / flat.sum()).reshape(-1, 3)
        kept = counts.any(1)
        yield pairs._replace(first=pairs.first[kept], second=pairs.second[kept], counts=counts[kept])


def alone(n_matches: int, n_models: int) -> dict[str, Any]:
    """Fit, bootstrap and leaderboard of a board with whoever is unbeaten or apart, with peak memory."""
    battles = jaxeval.Battles.from_pandas(simulate(n_matches, n_models))
    _ = battles.cells
    before = peak_memory_mb()
    start = time.perf_counter()
    fit = jaxeval.fit_bradley_terry(battles)
    first_call = time.perf_counter() - start
    timed = seconds(lambda: jaxeval.fit_bradley_terry(battles).ratings, 5)
    fit_peak = peak_memory_mb()
    start = time.perf_counter()
    draws = jaxeval.bootstrap(battles, N_RESAMPLES, progress=False)
    with_resamples = time.perf_counter() - start
    start = time.perf_counter()
    jaxeval.leaderboard(draws)
    as_table = time.perf_counter() - start
    standings = fit.standing.value_counts().to_dict()
    print(
        f"\n{n_matches:,} matches, {n_models:,} competitors: fit {timed['median']:.2f} s (first call {first_call:.1f} "
        f"s), {N_RESAMPLES} resamples {with_resamples:.1f} s with compiling, leaderboard {as_table:.1f} s; peak memory "
        f"{before:.0f} MB before, {fit_peak:.0f} MB of fits, {peak_memory_mb():.0f} MB of all; {standings}, "
        f"{fit.component.max()} components"
    )
    return {
        "matches": n_matches,
        "competitors": n_models,
        "fit_seconds": timed,
        "first_call_seconds": first_call,
        "bootstrap_seconds_with_compiling": with_resamples,
        "leaderboard_seconds": as_table,
        "peak_memory_before_mb": before,
        "peak_memory_fit_mb": fit_peak,
        "peak_memory_mb": peak_memory_mb(),
        "standings": {name or "rated": int(n) for name, n in standings.items()},
        "components": int(fit.component.max()),
        "converged": bool(fit.converged and draws.converged.all()),
    }


def crossover(sizes: list[int]) -> list[dict[str, Any]]:
    """Seconds of both methods, 40 matches a competitor, 20 resamples; compiling apart."""
    rows = []
    print("\nmodels; seconds of a fit and of 20 resamples by the dense method, and by the sparse one")
    for m in sizes:
        battles = jaxeval.Battles.from_pandas(simulate(20 * m, m))
        row: dict[str, Any] = {"models": m}
        for method in ("dense", "sparse"):
            fit = partial(jaxeval.fit_bradley_terry, battles, method=method)
            bootstrap = partial(jaxeval.bootstrap, battles, 20, method=method, progress=False)
            bootstrap()
            row[f"fit_{method}"] = seconds(fit, 3)["median"]
            row[f"bootstrap_{method}"] = seconds(bootstrap, 2)["min"]
        rows.append(row)
        print("  " + "  ".join(f"{x:.3f}" if isinstance(x, float) else str(x) for x in row.values()))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a quick trial of everything")
    small = parser.parse_args().small
    print(environment())
    scale = 20 if small else 1
    result = {
        "alone": alone(1_000_000 // scale, 30_000 // scale),
        "peers": against_peers(200_000 // scale, 5_000 // scale),
        "crossover": crossover([100, 200] if small else [125, 250, 500, 1000]),
    }
    if not small:
        save("wide", result)


if __name__ == "__main__":
    main()
