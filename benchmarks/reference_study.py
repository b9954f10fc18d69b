"""The study of references: 55 models' votes, all references and six sets, 4 budgets x 10 repeats, 1,000 resamples.

    python benchmarks/reference_study.py
    python benchmarks/reference_study.py --votes 20000 --models 20 --resamples 50   # a quick look: nothing is written

One call gives tau-b of all pairs and of four margins for every reference on all votes, by tiers, and for every
reference and set under every budget, in the data and in every resample with the full ranking refitted. Against a loop
over NumPy (win rates, sign tables, hypergeometric draws), scipy.stats.kendalltau and the fits of choix (all votes) and
scipy.optimize (several references), timed on a few resamples and repeats and scaled. Compiling is timed apart (the
first call less a later one).
"""

from __future__ import annotations

import time

import choix
import numpy as np
from harness import asked_sizes, first_and_later, peak_memory_mb, save, seconds
from scipy.optimize import minimize
from scipy.stats import kendalltau

from jaxeval import Battles, fit_bradley_terry, reference_study, simulate_battles

VOTES, MODELS, RESAMPLES = 135_000, 55, 1000
REPEATS, BUDGETS, DELTAS, RIDGE = 10, (25, 50, 100, 200), (2.0, 5.0, 10.0, 20.0), 0.01
RESAMPLES_TIMED, REPEATS_TIMED = 3, 2


class Loop:
    """The same study of one table of outcome counts, by NumPy and SciPy."""

    def __init__(self, counts: np.ndarray, sets: list[np.ndarray]) -> None:
        self.counts = counts  # (M, M, 3): losses, ties, wins of the row against the column
        self.sets = sets
        self.n = counts.sum(2)
        self.wins = counts @ np.array([0.0, 0.5, 1.0])
        self.pairs = np.triu_indices(len(counts), 1)
        # choix wants a comparison matrix of wins without empty rows.
        self.gold = choix.ilsr_pairwise_dense(self.wins + 1e-12)

    def agreement(self, score: np.ndarray) -> np.ndarray:
        """(1 + deltas) tau-b of all pairs, and of close ones."""
        has = ~np.isnan(score)
        taus = [kendalltau(score[has], self.gold[has]).statistic]
        gap = score[self.pairs[0]] - score[self.pairs[1]]
        sign, gold = np.sign(gap), np.sign(self.gold[self.pairs[0]] - self.gold[self.pairs[1]])
        for delta in DELTAS:
            close = np.abs(gap) < delta - 1e-9
            own = np.count_nonzero(sign[close])
            taus.append((sign[close] @ gold[close]) / np.sqrt(own * close.sum()) if own else np.nan)
        return np.array(taus)

    def all_votes(self) -> np.ndarray:
        """(L, 1 + deltas)."""
        with np.errstate(invalid="ignore"):
            rates = 100 * self.wins / self.n
        return np.array([self.agreement(rate) for rate in rates.T])

    def under_budget(self, budget: int, rng: np.random.Generator) -> np.ndarray:
        """(L + S, 1 + deltas) of one repeat."""
        found = []
        for members in [*np.arange(len(self.n))[:, None], *self.sets]:
            n, points = np.zeros((2, len(self.n), len(members)))
            for i in np.setdiff1d(np.arange(len(self.n)), members):
                share = self.allocated(self.n[i, members], budget, rng)
                for k, m in enumerate(share):
                    drawn = rng.multivariate_hypergeometric(self.counts[i, members[k]], int(m))
                    n[i, k], points[i, k] = m, drawn @ np.array([0.0, 0.5, 1.0])
            found.append(self.agreement(self.score(n, points)))
        return np.array(found)

    def allocated(self, votes: np.ndarray, budget: int, rng: np.random.Generator) -> np.ndarray:
        """(K,) votes against each reference: all alike while theirs last."""
        if budget >= votes.sum():
            return votes
        picks = rng.integers(len(votes), size=budget)
        share = np.bincount(picks, minlength=len(votes))
        if (share <= votes).all():
            return share
        share = np.zeros_like(votes)
        for k in picks:
            share[k if share[k] < votes[k] else rng.choice(np.flatnonzero(share < votes))] += 1
        return share

    def score(self, n: np.ndarray, points: np.ndarray) -> np.ndarray:
        """Win rates, or expected ones by a penalised fit, percent."""
        has = n.sum(1) > 0
        if n.shape[1] == 1:
            with np.errstate(invalid="ignore"):
                return 100 * points[:, 0] / n[:, 0]
        m = has.sum()

        def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
            gap = theta[:m, None] - theta[m:]
            residual = n[has] / (1 + np.exp(-gap)) - points[has]
            value = (n[has] * np.logaddexp(0, gap) - points[has] * gap).sum() + RIDGE * theta @ theta
            return value, np.concatenate([residual.sum(1), -residual.sum(0)]) + 2 * RIDGE * theta

        theta = minimize(loss, np.zeros(m + n.shape[1]), jac=True, method="L-BFGS-B").x
        score = np.full(len(n), np.nan)
        score[has] = 100 * (1 / (1 + np.exp(theta[m:] - theta[:m, None]))).mean(1)
        return score


def outcome_counts(battles: Battles) -> np.ndarray:
    counts = np.zeros((battles.n_models, battles.n_models, 3), int)
    label = (2 * battles.target).astype(int)
    np.add.at(counts, (battles.model_a, battles.model_b, label), 1)
    np.add.at(counts, (battles.model_b, battles.model_a, 2 - label), 1)
    return counts


def main() -> None:
    asked = asked_sizes(__doc__, votes=VOTES, models=MODELS, resamples=RESAMPLES)
    battles = simulate_battles(asked.votes, asked.models)
    order = np.argsort(-fit_bradley_terry(battles).logits.to_numpy())
    quarter = asked.models // 4
    tiers = [order[k * quarter + quarter // 2] for k in range(4)]
    sets = [np.array([tiers[t] for t in own]) for own in ((0, 1, 2, 3), (0, 1, 2), (1, 2, 3), (2, 3), (0, 3), (0, 2))]
    names = [[battles.models[k] for k in own] for own in sets]
    options = {"sets": names, "deltas": DELTAS, "budgets": BUDGETS, "n_repeats": REPEATS, "ridge": RIDGE}

    def run(n_resamples: int = asked.resamples) -> object:
        return reference_study(battles, n_resamples=n_resamples, progress=False, **options)

    study, first, ours = first_and_later(run, 3)
    no_budgets = seconds(
        lambda: reference_study(battles, n_resamples=asked.resamples, budgets=(), deltas=DELTAS, progress=False), 3
    )

    counts = outcome_counts(battles)
    exact = Loop(counts, sets)
    labels = battles.models[order]
    wide = study.by_delta.pivot_table(index="reference", columns="delta", values="tau", dropna=False).loc[labels]
    ours_full = wide[[np.inf, *DELTAS]].to_numpy()
    difference = np.nanmax(np.abs(ours_full - exact.all_votes()[order]))

    rng = np.random.default_rng(0)
    cells = battles.cells
    share = cells.count / cells.count.sum()
    all_votes_seconds, repeat_seconds, taus = [], [], []
    for r in range(RESAMPLES_TIMED):
        start = time.perf_counter()
        drawn = rng.multinomial(cells.count.sum(), share)
        table = np.zeros_like(counts)
        first_model, second = cells.first[cells.pair], cells.second[cells.pair]
        label = (2 * cells.target).astype(int)
        table[first_model, second, label] = drawn
        table[second, first_model, 2 - label] = drawn
        loop = Loop(table, sets)
        loop.all_votes()
        all_votes_seconds.append(time.perf_counter() - start)
        # Budgets are compared on the data, in which jaxeval's means have a spread between repeats.
        for _ in range(REPEATS_TIMED if r == 0 else 0):
            start = time.perf_counter()
            taus.append([exact.under_budget(budget, rng)[:, 0] for budget in BUDGETS])
            repeat_seconds.append(time.perf_counter() - start)
    per_resample, per_repeat = np.mean(all_votes_seconds), np.mean(repeat_seconds)
    total = (asked.resamples + 1) * (per_resample + REPEATS * per_repeat)

    by_budget = study.by_budget[np.isinf(study.by_budget["delta"])]
    means = by_budget["tau"].to_numpy().reshape(-1, len(BUDGETS))
    spread = by_budget["tau_spread"].to_numpy().reshape(-1, len(BUDGETS))
    reorder = [*order, *range(asked.models, asked.models + len(sets))]
    theirs = np.mean(taus, 0).T[reorder]
    error = spread * np.sqrt(1 / REPEATS + 1 / len(taus))
    with np.errstate(invalid="ignore", divide="ignore"):
        z = np.where(error > 0, (means - theirs) / error, np.nan)
    rankings = (asked.resamples + 1) * (asked.models + REPEATS * len(BUDGETS) * (asked.models + len(sets)))
    row = {
        "votes": asked.votes,
        "models": asked.models,
        "sets": len(sets),
        "budgets": len(BUDGETS),
        "repeats": REPEATS,
        "resamples": asked.resamples,
        "rankings": rankings,
        "jaxeval_seconds": ours,
        "compile_seconds": first - ours["median"],
        "loop_seconds": float(total),
        "loop_ratio": float(total / ours["median"]),
        "without_budgets": {
            "jaxeval_seconds": no_budgets,
            "loop_seconds": float(per_resample * (asked.resamples + 1)),
            "loop_ratio": float(per_resample * (asked.resamples + 1) / no_budgets["median"]),
        },
        "max_difference_of_tau": float(difference),
        # Both are Monte Carlo; the loop's few repeats make the tails heavy.
        "z_of_budget_tau": {"mean": float(np.nanmean(z)), "rms": float(np.sqrt(np.nanmean(z**2)))},
        "peak_memory_mb": peak_memory_mb(),
    }
    print(
        f"{asked.votes:,} votes, {asked.models} models, {rankings:,} rankings: {ours['median']:.2f} s (compiling "
        f"{row['compile_seconds']:.1f} s); the loop {total:,.0f} s ({row['loop_ratio']:,.0f} times); without budgets "
        f"{no_budgets['median']:.2f} s, the loop {row['without_budgets']['loop_seconds']:,.0f} s "
        f"({row['without_budgets']['loop_ratio']:,.0f} times)"
    )
    print(
        f"tau on all votes within {difference:.1e}; mean tau under budgets: z {row['z_of_budget_tau']}; "
        f"peak memory {row['peak_memory_mb']:.0f} MB"
    )
    if (asked.votes, asked.models, asked.resamples) == (VOTES, MODELS, RESAMPLES):
        save("reference_study", row)


if __name__ == "__main__":
    main()
