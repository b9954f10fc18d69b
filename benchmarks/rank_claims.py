"""Do claims about ranks hold? The interval of whoever came first, and closed-form claims beside those of resamples.

    python benchmarks/rank_claims.py
    python benchmarks/rank_claims.py --boards 50   # a quick look: nothing is written

The first table has boards of 12 and 60 models with 40 votes a pair, neighbours 0 to 30 Elo apart. Votes are equal, or
every fourth model has an eighth of them. Estimates are normal with the covariance of such a board. "usual" is -+1.96
standard errors, "zoom" the interval of `jaxeval.audits.rank_evidence`, and "one unit" the published one, whose radius
is the same for all models.

The second table has boards that are simulated at the fitted values of one of 12 models. Each is resampled and makes
its claims from its draws, and `jaxeval.replication` makes them in closed form.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, save

import jaxeval
from jaxeval.audits.rank_evidence import zoom_radius
from jaxeval.audits.simulated_boards import outcomes, simulated_counts
from jaxeval.ratings.gauge import ELO_PER_LOGIT

DEFAULTS = {"boards": 1000, "resamples": 500}
NOISE = 2000


def winners(n_models: int, gap: float, unequal: bool, n_boards: int) -> dict[str, Any]:
    """How often intervals of the first model hold its strength, and how wide they are in its standard errors."""
    rng = np.random.default_rng([n_models, int(gap), unequal])
    theta = -np.arange(n_models) * gap / ELO_PER_LOGIT
    theta -= theta.mean()
    n = np.full((n_models, n_models), 40.0) * (1 - np.eye(n_models))
    if unequal:
        few = np.arange(n_models) % 4 == 1
        n[few] /= 8
        n[:, few] /= 8
    p = 1 / (1 + np.exp(theta[None] - theta[:, None]))
    weight = n * p * (1 - p)
    values, vectors = np.linalg.eigh(np.linalg.pinv(np.diag(weight.sum(1)) - weight))
    root = vectors * np.sqrt(np.maximum(values, 0))
    noise, error = rng.normal(size=(NOISE, n_models)) @ root.T, np.sqrt((root**2).sum(1))
    held: dict[str, list[float]] = {"usual": [], "zoom": [], "one unit": []}
    width: dict[str, list[float]] = {name: [] for name in held}
    for _ in range(n_boards):
        found = theta + root @ rng.normal(size=n_models)
        first = found.argmax()
        radius = {
            "usual": 1.96 * error[first],
            "zoom": zoom_radius(found, noise, error, 0.95) * error[first],
            "one unit": zoom_radius(found, noise, np.ones(n_models), 0.95),
        }
        for name, own in radius.items():
            held[name].append(abs(found[first] - theta[first]) <= own)
            width[name].append(2 * own / error[first])
    row: dict[str, Any] = {"models": n_models, "votes": "unequal" if unequal else "equal", "gap_elo": gap}
    for name in held:
        row |= {name: np.mean(held[name]), f"{name} width": np.mean(width[name])}
    return row


def closed_form(n_votes: int, n_boards: int, n_resamples: int) -> list[dict[str, Any]]:
    """Coverage and width of claims on simulated boards, by resamples of each and in closed form."""
    battles = jaxeval.simulate_battles(n_votes, 12, strengths=jaxeval.simulate_strengths(12, 0.3, seed=3), seed=3)
    fit = jaxeval.fit_bradley_terry(battles)
    found, models, truth = outcomes(fit), fit.ratings.index, fit.ratings.to_numpy()
    cells, rank = found.cells, 1 + (truth > truth[:, None]).sum(1)
    claims: dict[str, list[tuple[float, float]]] = {"ratings": [], "sets of ranks": []}
    for number in range(n_boards):
        count = simulated_counts(found, 0, number)
        some = count > 0
        pair = cells.pair[some]
        votes = pd.DataFrame(
            {
                "model_a": models[cells.first[pair]],
                "model_b": models[cells.second[pair]],
                "target": cells.target[some],
                "count": count[some],
            }
        )
        own = jaxeval.bootstrap(jaxeval.Battles.from_pandas(votes, target="target", count="count"), n_resamples, number)
        lower, upper = own.interval().reindex(models).to_numpy().T
        best, worst = own.rank_sets().reindex(models).to_numpy(float, na_value=np.nan).T
        claims["ratings"].append((((lower <= truth) & (truth <= upper)).mean(), (upper - lower).mean()))
        claims["sets of ranks"].append((((best <= rank) & (rank <= worst)).mean(), (worst - best + 1).mean()))
    closed = jaxeval.replication(battles, n_boards=n_boards, progress=False).table.set_index("claim")
    return [
        {
            "votes": n_votes,
            "claim": claim,
            "closed_form": closed.loc[claim, "coverage"],
            "closed_form_width": closed.loc[claim, "width"],
            "resamples": np.mean([held for held, _ in each]),
            "resamples_width": np.mean([width for _, width in each]),
            "standard_error": np.std([held for held, _ in each], ddof=1) / np.sqrt(n_boards),
        }
        for claim, each in claims.items()
    ]


def main() -> None:
    sizes = asked_sizes(__doc__, **DEFAULTS)
    designs = [(m, gap, unequal) for unequal in (False, True) for m in (12, 60) for gap in (0.0, 3.0, 10.0, 30.0)]
    first = [winners(*design, sizes.boards) for design in designs]
    print(pd.DataFrame(first).round(3).to_string())
    claims = [row for n in (400, 3000) for row in closed_form(n, max(sizes.boards // 5, 20), sizes.resamples)]
    print(pd.DataFrame(claims).round(4).to_string())
    if vars(sizes) == DEFAULTS:
        save("rank_claims", {"level": 0.95, **DEFAULTS, "winners": first, "closed_form": claims})


if __name__ == "__main__":
    main()
