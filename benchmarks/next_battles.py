"""What to judge next: votes that planning saves, what choosing pairs does where the model misfits, and time.

    python benchmarks/next_battles.py
    python benchmarks/next_battles.py --boards 3   # a quick look: nothing is written

Votes: boards of 60 models with 20,000 votes of random pairs. Batches of votes are added, planned by `next_battles` for
the top ten or of random pairs, until the median interval of the top ten is 0.8 times as wide as at first. The board is
fitted after every batch, from the fit before.

Misfit: boards of 20 models, each pair of which is 0.4 logits (standard deviation) off the model. 600 votes of random
pairs come first, then ten batches of 300 that are planned for the top five. The truth is what equally frequent pairs
give. Fits weigh all votes alike, or by inverse propensities.

Board: errors of all ratings of 20 models after more votes, planned for the board or of random pairs, where votes so far
are of random pairs, or some models have many more than others. "expected": the widths that the first plan tells.

Time: `next_battles` and `plan_votes` on a board of 300 models, after compiling.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, first_and_later, save, seconds
from scipy.special import expit

import jaxeval
from jaxeval import BradleyTerryFit
from jaxeval.arrays import Float
from jaxeval.execution.precision import one_blas_thread
from jaxeval.planning.information import expected_gains, information_of
from jaxeval.ratings.gauge import ELO_PER_LOGIT

DEFAULTS = {"boards": 40}
SHARE_OF_WIDTH, TOP = 0.8, 10
BATCH, MOST_VOTES = 250, 100_000
#: Votes so far, votes to come, batches, spread of strengths (logits), and the exponent of how often models play.
BOARDS = ((600, 1000, 1, 0.7, 0.0), (600, 1000, 1, 0.7, 1.0), (2000, 1000, 1, 0.7, 1.3), (1000, 3000, 5, 1.2, 0.0))


class Crowd:
    """Votes of people: wins and losses, by the probability that a pair's first model wins."""

    def __init__(self, chance: Float, seed: int) -> None:
        self.chance, self.rng = chance, np.random.default_rng(seed)
        self.names = pd.Index([f"model-{k:02d}" for k in range(len(chance))])

    def votes(self, pairs: pd.DataFrame) -> pd.DataFrame:
        """Results of pairs, a row each."""
        a, b = (self.names.get_indexer(pairs[side]) for side in ("model_a", "model_b"))
        return pairs.assign(target=(self.rng.random(len(pairs)) < self.chance[a, b]).astype(float))

    def uneven(self, n: int, exponent: float) -> pd.DataFrame:
        """Votes on ``n`` pairs of models that are drawn by a power of a rank, so that some have many more."""
        share = self.rng.permutation(np.arange(1, len(self.names) + 1) ** -exponent)
        sides = self.rng.choice(len(share), (2, 3 * n), p=share / share.sum())
        a, b = sides[:, sides[0] != sides[1]][:, :n]
        return self.votes(pd.DataFrame({"model_a": self.names[a], "model_b": self.names[b]}))

    def at_random(self, n: int) -> pd.DataFrame:
        """Votes on ``n`` pairs at random, with their propensity and the weight 1."""
        m = len(self.names)
        a = self.rng.integers(m, size=n)
        b = (a + self.rng.integers(1, m, size=n)) % m
        pairs = {"model_a": self.names[a], "model_b": self.names[b], "propensity": 2 / (m * (m - 1)), "weight": 1.0}
        return self.votes(pd.DataFrame(pairs))


def width_of_top(fit: BradleyTerryFit, top: int) -> float:
    """Median standard error of the best."""
    return float(np.median(fit.standard_errors_hessian[fit.ratings.nlargest(top).index]))


def votes_needed(
    seed: int, planned: bool, *, n_models: int = 60, first: int = 20_000, top: int = TOP, batch: int = BATCH
) -> tuple[int, list[int]]:
    """Votes added until intervals of the best are narrow enough, and the steps of the fits on the way."""
    theta = np.random.default_rng(seed).normal(0, 0.7, n_models)
    crowd = Crowd(expit(theta[:, None] - theta), seed)
    votes = crowd.at_random(first)
    fit = jaxeval.fit_bradley_terry(votes[["model_a", "model_b", "target"]])
    goal, added, steps = SHARE_OF_WIDTH * width_of_top(fit, top), 0, []
    while width_of_top(fit, top) > goal and added < MOST_VOTES:
        if planned:
            plan = jaxeval.next_battles(fit, batch, goal="top", top=top, seed=1000 * seed + added)
            new = crowd.votes(plan.each())
        else:
            new = crowd.at_random(batch)
        votes = pd.concat([votes, new], ignore_index=True)
        fit = jaxeval.fit_bradley_terry(votes[["model_a", "model_b", "target"]], start=fit)
        added += batch
        steps.append(fit.n_steps)
    return added, steps


def misfitting_board(
    seed: int, random: float, *, n_models: int = 20, misfit: float = 0.4, batches: int = 10
) -> dict[str, Float | float]:
    """Errors (Elo) of ratings after planned batches, of both kinds of fits, and what was told of the price."""
    m, strengths = n_models, np.linspace(1, -1, n_models)
    lie = np.triu(misfit * np.random.default_rng(99).normal(size=(m, m)), 1)
    chance = expit(strengths[:, None] - strengths + lie - lie.T)
    crowd = Crowd(chance, seed)
    i, j = np.triu_indices(m, 1)
    exact = pd.DataFrame({"model_a": crowd.names[i], "model_b": crowd.names[j], "target": chance[i, j]})
    truth = jaxeval.fit_bradley_terry(exact).ratings
    votes = crowd.at_random(600)
    plain = jaxeval.fit_bradley_terry(votes[["model_a", "model_b", "target"]], ridge=0.01)
    for batch in range(batches):
        plan = jaxeval.next_battles(plain, 300, goal="top", top=5, random=random, seed=100 * seed + batch)
        votes = pd.concat([votes, crowd.votes(plan.each())], ignore_index=True)
        plain = jaxeval.fit_bradley_terry(votes[["model_a", "model_b", "target"]], ridge=0.01, start=plain)
    weighted = jaxeval.Battles.from_pandas(votes, propensity="propensity")
    fit = jaxeval.fit_bradley_terry(weighted)
    return {
        "plain": (plain.ratings - truth).to_numpy(),
        "inverse propensities": (fit.ratings - truth).to_numpy(),
        "told_plain": float(plain.standard_errors.iloc[:5].mean()),
        "told_weighted": float(fit.standard_errors.iloc[:5].mean()),
        "effective": weighted.report.n_effective or np.nan,
    }


def misfit(n_boards: int, random: float) -> list[dict[str, Any]]:
    """A row for each way to weigh votes: largest bias of the best ten, and errors of the best five."""
    boards = [misfitting_board(seed, random) for seed in range(n_boards)]
    rows = []
    for name, told in (("plain", "told_plain"), ("inverse propensities", "told_weighted")):
        errors = np.array([board[name] for board in boards])
        bias = errors.mean(0)
        worst = int(np.abs(bias[:10]).argmax())
        rows.append(
            {
                "random": random,
                "weights": name,
                "largest_bias_elo": abs(bias[worst]),
                "standard_error": errors[:, worst].std(ddof=1) / np.sqrt(n_boards),
                "spread_elo": errors[:, :5].std(0, ddof=1).mean(),
                "told_error_elo": float(np.mean([board[told] for board in boards])),
                "rms_error_elo": float(np.sqrt((errors[:, :5] ** 2).mean())),
                "effective_votes": float(np.mean([board["effective"] for board in boards])) if "inv" in name else 3600,
            }
        )
        print(rows[-1], flush=True)
    return rows


def board_errors(n_boards: int) -> list[dict[str, Any]]:
    """A row for each of `BOARDS`: errors (Elo) of all ratings after planned votes, and after those of random pairs."""
    rows, columns = [], ["model_a", "model_b", "target"]
    for n_first, n_new, batches, spread, exponent in BOARDS:
        found = []
        for seed in range(n_boards):
            theta = np.random.default_rng([5, seed]).normal(0, spread, 20)
            crowd = Crowd(expit(theta[:, None] - theta), seed)
            truth = pd.Series(1000 + ELO_PER_LOGIT * (theta - theta.mean()), crowd.names)
            first = crowd.uneven(n_first, exponent)[columns]
            votes, expected = first, []
            for batch in range(batches):
                fit = jaxeval.fit_bradley_terry(votes, ridge=0.01)
                plan = jaxeval.next_battles(fit, n_new // batches, goal="board", seed=100 * seed + batch)
                expected.append(plan.expected.loc["planned", "width"] / plan.expected.loc["at random", "width"])
                votes = pd.concat([votes, crowd.votes(plan.each())[columns]], ignore_index=True)
            random = pd.concat([first, crowd.at_random(n_new)[columns]], ignore_index=True)
            errors = [jaxeval.fit_bradley_terry(own, ridge=0.01).ratings - truth for own in (votes, random)]
            found.append([(own**2).mean() for own in errors] + [expected[0]])
        planned, at_random, told = np.mean(found, 0)
        both = np.array(found)[:, :2]
        rows.append(
            {
                "first": n_first,
                "new": n_new,
                "batches": batches,
                "spread_logits": spread,
                "exponent": exponent,
                "planned_elo": np.sqrt(planned),
                "at_random_elo": np.sqrt(at_random),
                "ratio": np.sqrt(planned / at_random),
                "standard_error": (both[:, 0] - both[:, 1]).std(ddof=1) / np.sqrt(n_boards) / (2 * at_random),
                "expected_ratio": told,
                "boards": n_boards,
            }
        )
        print(rows[-1], flush=True)
    return rows


def speed() -> dict[str, Any]:
    """Seconds on a board of 300 models with 60,000 votes."""
    fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(60_000, 300))
    known = information_of(fit)
    covariance, board = known.covariance(), np.eye(300) / 300
    with one_blas_thread():  # as in the library
        gains = seconds(lambda: expected_gains(covariance, board, known.worth), 50)
    found: dict[str, Any] = {"gains of all pairs": gains}
    for goal in ("board", "top"):
        _, first, later = first_and_later(lambda goal=goal: jaxeval.next_battles(fit, 1000, goal=goal), 5)
        found[f"next_battles {goal}"] = {"first": first, **later}
    _, first, later = first_and_later(lambda: jaxeval.plan_votes(fit, width=80, goal="top"), 3)
    return found | {"plan_votes": {"first": first, **later}}


def main() -> None:
    n_boards = asked_sizes(__doc__, **DEFAULTS).boards
    n_few = max(n_boards // 4, 2)
    needed = [[votes_needed(seed, planned) for planned in (True, False)] for seed in range(n_few)]
    added = np.array([[votes for votes, _ in both] for both in needed])
    share = added[:, 0] / added[:, 1]
    narrowing = {
        "boards": n_few,
        "planned": added[:, 0].tolist(),
        "at_random": added[:, 1].tolist(),
        "share": share.mean(),
        "standard_error": share.std(ddof=1) / np.sqrt(n_few),
        "largest_share": share.max(),
        "most_steps_of_a_fit": max(step for both in needed for _, steps in both for step in steps),
    }
    print(narrowing, flush=True)
    rows = [row for random in (0.2, 0.5, 1.0) for row in misfit(n_boards, random)]
    boards = board_errors(5 * n_boards)
    times = speed()
    print(times)
    if n_boards >= DEFAULTS["boards"]:
        save("next_battles", {"narrowing": narrowing, "misfit": rows, "board": boards, "seconds": times})


if __name__ == "__main__":
    main()
