"""Style control: 1,000 resamples of 135,634 votes between 53 models with 4 covariates, each refitted.

    python benchmarks/style_control.py
    python benchmarks/style_control.py --votes 20000   # a quick look: nothing is written

Against refits of the same resamples by scikit-learn's logistic regression (sparse design, started from zero and from
the full fit), timed on a few and scaled, and, where it is installed, by arena-rank's contextual model. The answers are
compared on the same weights. Compiling is timed apart (the first call less a later one).
"""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from harness import asked_sizes, peak_memory_mb, save, seconds
from scipy import sparse

from jaxeval import Battles, bootstrap, fit_bradley_terry, simulate_votes
from jaxeval.data.features import design
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch import contextual, refits
from jaxeval.ratings.contextual_boards import contextual_refits, fit_contextual_boards
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.slices import compress
from jaxeval.ratings.vote_groups import VoteGroups

VOTES, MODELS, RESAMPLES = 135_634, 53, 1000
FEATURES = ["length", "headers", "lists", "bold"]
SKLEARN_TIMED, ARENA_TIMED = 3, 2
ELO = 400 / np.log(10)


def votes(n: int) -> pd.DataFrame:
    """Votes decided by strength and by four covariates."""
    rng = np.random.default_rng(0)
    table = simulate_votes(n, MODELS, seed=0)[["model_a", "model_b"]].astype(str)
    names = sorted(set(table["model_a"]) | set(table["model_b"]))
    theta = dict(zip(names, rng.normal(0, 0.5, len(names)), strict=True))
    x = rng.normal(size=(n, len(FEATURES)))
    z = table["model_a"].map(theta) - table["model_b"].map(theta) + x @ [0.5, 0.1, -0.05, 0.02]
    p = 1 / (1 + np.exp(-z))
    tie = 0.5 * p * (1 - p)
    u = rng.random(n)
    winner = np.select([u < p - tie, u < p + tie], ["model_a", "tie"], "model_b")
    return table.assign(winner=winner, **dict(zip(FEATURES, x.T, strict=True)))


class Resamples:
    """The weights that the bootstrap gives to every battle, as its own rows have them."""

    def __init__(self, battles: Battles) -> None:
        covariates = design(battles, FEATURES, normalize=True)
        cells, _ = compress(battles, slice(None), covariates.matrix)
        options = BootstrapOptions(features=FEATURES)
        (fitted,) = fit_contextual_boards([(battles.models, cells)], covariates, options)
        self.refits = contextual_refits(fitted, "", VoteGroups(), options)
        rows: Any = self.refits.problem.data
        self.used = np.asarray(rows.factor) > 0
        self.target, self.feature = np.asarray(rows.target)[self.used], np.asarray(rows.feature)[self.used]
        group = np.broadcast_to(np.arange(rows.first.size).reshape(*rows.first.shape, 1), self.used.shape)[self.used]
        self.first, self.second = rows.first.reshape(-1)[group], rows.second.reshape(-1)[group]

    def weight(self, number: int) -> np.ndarray:
        """(N,) of one resample."""
        with double_precision():
            drawn = refits.draw_one(
                contextual.count_rows, self.refits.problem, self.refits.form, np.uint64(0), np.int64(number)
            )
            return np.asarray(drawn)[self.used]


def by_scikit_learn(drawn: Resamples, times: int) -> tuple[float, list[np.ndarray]]:
    """Seconds of a refit, and the refitted strengths (mean zero) and coefficients."""
    from sklearn.linear_model import LogisticRegression

    n = len(drawn.target)
    rows = np.arange(n)
    incidence = sparse.csr_array(
        (np.repeat([1.0, -1.0], n), (np.concatenate([rows, rows]), np.concatenate([drawn.first, drawn.second]))),
        (n, MODELS),
    )
    x = sparse.hstack([incidence[:, 1:], drawn.feature]).tocsr()  # the first model is the origin
    # A tie is half a win and half a loss.
    win, loss = np.flatnonzero(drawn.target > 0), np.flatnonzero(drawn.target < 1)
    both, y = sparse.vstack([x[win], x[loss]]).tocsr(), np.repeat([1, 0], [len(win), len(loss)])
    elapsed, found = 0.0, []
    for number in range(times):
        weight = drawn.weight(number)
        sample = np.concatenate([(weight * drawn.target)[win], (weight * (1 - drawn.target))[loss]])
        model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-6, max_iter=1000)
        start = time.perf_counter()
        model.fit(both, y, sample_weight=sample)
        elapsed += time.perf_counter() - start
        theta = np.concatenate([[0.0], model.coef_[0, : MODELS - 1]])
        found.append(np.concatenate([theta - theta.mean(), model.coef_[0, MODELS - 1 :]]))
    return elapsed / times, found


def by_arena_rank(drawn: Resamples, times: int) -> tuple[float, list[np.ndarray]]:
    """Seconds of a refit, which compiles every time, with its own ridge and tolerances."""
    import jax

    flag = jax.config.jax_enable_x64
    from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry
    from arena_rank.utils.data_utils import ContextualPairDataset

    pairs = np.column_stack([drawn.first, drawn.second])
    elapsed, found = 0.0, []
    for number in range(times):
        data = ContextualPairDataset(
            competitors=list(range(MODELS)), pairs=jax.numpy.asarray(pairs), outcomes=jax.numpy.asarray(drawn.target),
            features=jax.numpy.asarray(drawn.feature), weights=jax.numpy.asarray(drawn.weight(number)),
        )  # fmt: skip
        model = ContextualBradleyTerry(MODELS, len(FEATURES))
        start = time.perf_counter()
        model.fit(data)
        theta = np.asarray(model.params["ratings"])
        elapsed += time.perf_counter() - start
        found.append(np.concatenate([theta - theta.mean(), np.asarray(model.params["coeffs"])]))
    jax.config.update("jax_enable_x64", flag)
    return elapsed / times, found


def main() -> None:
    n_votes = asked_sizes(__doc__, votes=VOTES).votes
    battles = Battles.from_pandas(votes(n_votes))

    def run() -> Any:
        return bootstrap(battles, RESAMPLES, features=FEATURES, progress=False)

    start = time.perf_counter()
    found = run()
    first = time.perf_counter() - start
    memory = peak_memory_mb()
    ours = seconds(run, 3)
    fit = seconds(lambda: fit_bradley_terry(battles, features=FEATURES), 3)
    plain = seconds(lambda: bootstrap(battles, RESAMPLES, progress=False), 3)

    drawn = Resamples(battles)
    theta = found.draws_logit - found.draws_logit.mean(1, keepdims=True)
    mine = np.concatenate([theta, found.coefficient_draws], 1)
    sklearn_seconds, sklearn_answers = by_scikit_learn(drawn, SKLEARN_TIMED)
    row = {
        "votes": n_votes,
        "models": MODELS,
        "covariates": len(FEATURES),
        "resamples": RESAMPLES,
        "jaxeval_seconds": ours,
        "compile_seconds": first - ours["median"],
        "passes_per_resample": float(found.n_steps.mean()) + 1,
        "nanoseconds_per_row_and_pass": ours["median"] * 1e9 / (n_votes * RESAMPLES * (found.n_steps.mean() + 1)),
        "fit_seconds": fit,
        "without_covariates_seconds": plain,
        "peak_memory_mb": memory,
        "scikit_learn_seconds_per_refit": sklearn_seconds,
        "scikit_learn_ratio": sklearn_seconds * RESAMPLES / ours["median"],
        "scikit_learn_max_difference_elo": max(
            ELO * np.abs(x - mine[b]).max() for b, x in enumerate(sklearn_answers)
        ),
    }  # fmt: skip
    print(
        f"{n_votes:,} votes, {RESAMPLES:,} resamples with {len(FEATURES)} covariates: {ours['median']:.2f} s "
        f"(compiling {row['compile_seconds']:.1f} s), {memory:,.0f} MB"
    )
    print(
        f"scikit-learn {sklearn_seconds * RESAMPLES:,.0f} s ({row['scikit_learn_ratio']:,.0f} times; answers within "
        f"{row['scikit_learn_max_difference_elo']:.1e} Elo)"
    )
    if find_spec("arena_rank"):
        arena_seconds, arena_answers = by_arena_rank(drawn, ARENA_TIMED)
        # Its objective is the mean log-likelihood less half of the squared coefficients.
        same = bootstrap(battles, RESAMPLES, features=FEATURES, feature_ridge=n_votes / 2, progress=False)
        theta = same.draws_logit - same.draws_logit.mean(1, keepdims=True)
        mine = np.concatenate([theta, same.coefficient_draws], 1)
        row["arena_rank_seconds_per_refit"] = arena_seconds
        row["arena_rank_ratio"] = arena_seconds * RESAMPLES / ours["median"]
        row["arena_rank_max_difference_elo"] = max(ELO * np.abs(x - mine[b]).max() for b, x in enumerate(arena_answers))
        print(
            f"arena-rank {arena_seconds * RESAMPLES:,.0f} s ({row['arena_rank_ratio']:,.0f} times; answers within "
            f"{row['arena_rank_max_difference_elo']:.1e} Elo)"
        )
    if n_votes == VOTES:
        save("style_control", row)


if __name__ == "__main__":
    main()
