"""The daily leaderboard: 20,000 votes added to a saved state of 2 or 10 million, against reading all again.

python benchmarks/daily.py

300 models, 29 categories. Both ways end in the same cells, of every category, which is checked.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import environment, save, seconds

import jaxeval
from jaxeval import Battles

N_DAY, N_MODELS, N_CATEGORIES = 20_000, 300, 29


def main() -> None:
    print(environment())
    save("daily", {str(n): measured(n) for n in (2_000_000, 10_000_000)})


def measured(n_votes: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    strengths = jaxeval.simulate_strengths(N_MODELS)
    votes = jaxeval.simulate_votes(n_votes + N_DAY, strengths=strengths)[["model_a", "model_b", "winner"]]
    share = np.arange(1.0, N_CATEGORIES + 1) ** -1.0
    names = [f"category-{k:02d}" for k in range(1, N_CATEGORIES + 1)]
    codes = rng.choice(N_CATEGORIES, len(votes), p=share / share.sum())
    votes["category"] = pd.Categorical.from_codes(codes, names)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("before.parquet", "today.parquet")]
        for path, part in zip(files, (votes[:n_votes], votes[n_votes:]), strict=True):
            part.to_parquet(path, index=False)
        state, new_state, ratings = (Path(folder) / name for name in ("state.parquet", "new.parquet", "ratings.json"))
        yesterday = jaxeval.read_battles(files[0], keep=["category"])
        yesterday.save(state)
        jaxeval.fit_bradley_terry(yesterday).save(ratings)

        def full() -> Battles:
            return jaxeval.read_battles(files, keep=["category"])

        def update() -> Battles:
            return Battles.concat([Battles.load(state), jaxeval.read_battles(files[1], keep=["category"])])

        def cold(battles: Battles) -> jaxeval.BradleyTerryFit:
            return jaxeval.fit_bradley_terry(battles)

        def warm(battles: Battles) -> jaxeval.BradleyTerryFit:
            return jaxeval.fit_bradley_terry(battles, start=jaxeval.read_ratings(ratings))

        both = full(), update()
        fits = cold(both[0]), warm(both[1])
        cells = [[c for _, c, _ in b.cells_by_group(b.codes("category")[0], N_CATEGORIES)] + [b.cells] for b in both]
        # All that ratings and resamples of any category are made of.
        for one, other in zip(*cells, strict=True):
            for name in ("first", "second", "pair", "target", "weight", "count"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        # Fresh cells each time: they are kept with the battles.
        rows = {
            "full: read all votes": seconds(full, 5),
            "full: read all votes and fit": seconds(lambda: cold(full()), 5),
            "daily: load the state, add the day": seconds(update, 5),
            "daily: load the state, add the day, warm fit": seconds(lambda: warm(update()), 5),
            "daily: save the state": seconds(lambda: both[1].save(new_state), 5),
            "fit alone, cold": seconds(lambda: cold(both[0]), 20),
            "fit alone, warm": seconds(lambda: warm(both[0]), 20),
        }
        result = {
            "votes": n_votes,
            "votes_of_the_day": N_DAY,
            "models": N_MODELS,
            "categories": N_CATEGORIES,
            "seconds": rows,
            "newton_steps": {"cold": fits[0].n_steps, "warm": fits[1].n_steps},
            "largest_difference_logit": float((fits[0].logits - fits[1].logits).abs().max()),
            "rows_of_the_state": both[1].n_rows,
            "state_mb": state.stat().st_size / 1e6,
            "votes_mb": files[0].stat().st_size / 1e6,
        }
    for name, row in rows.items():
        print(f"  {name:48s} {row['median']:7.4f} s")
    print({name: value for name, value in result.items() if name != "seconds"})
    return result


if __name__ == "__main__":
    main()
