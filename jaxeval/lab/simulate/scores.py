"""Simulated scores of models on items, and of evaluators on models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from jaxeval.checks import checked_integer
from jaxeval.data.simulated_votes import given_or_drawn


def simulate_scores(
    n_items: int = 300,
    n_models: int = 8,
    *,
    abilities: pd.Series | None = None,
    difficulty_sd: float = 1.5,
    n_benchmarks: int = 1,
    n_trials: int = 1,
    items_per_passage: int = 1,
    seed: int = 0,
) -> pd.DataFrame:
    """Simulate right and wrong answers of every model to every item, as `score_leaderboard` takes them.

    A model of ability t answers an item of difficulty b with probability 1 / (1 + exp(b - t)), trial by trial.

    Args:
        n_items: number of items of all benchmarks together.
        n_models: M, number of models.
        abilities: abilities by model name (logits); those of `simulate_strengths` (n_models, seed=seed) by default.
        difficulty_sd: standard deviation of the difficulties, logits. Passages account for half of their variance.
        n_benchmarks: number of benchmarks that share the items. With more than one there is a column ``benchmark``, and
            each benchmark is harder than the one before by half a logit.
        n_trials: number of trials of every model on every item. With more than one there is a column ``trial``.
        items_per_passage: number of items on one text, which share a part of their difficulty. With more than one there
            is a column ``passage``.
        seed: seed of the random numbers.

    Returns:
        A row for each model, item and trial: ``model``, ``item``, ``score`` (0 or 1), and the columns named above.

    Raises:
        ValueError: fewer than two models, no item, more benchmarks than items, or a negative spread.

    Examples:
        >>> import jaxeval
        >>> scores = jaxeval.simulate_scores(100, 3)
        >>> jaxeval.score_leaderboard(scores, n_resamples=100)["model_name"].tolist()
        ['model-1', 'model-2', 'model-3']
        >>> list(jaxeval.simulate_scores(100, 3, n_benchmarks=2, n_trials=4).columns)
        ['model', 'item', 'benchmark', 'trial', 'score']
    """
    ability = given_or_drawn(abilities, n_models, n_items, seed, name="n_items")
    trials, per_passage = (
        checked_integer("n_trials", n_trials, 1),
        checked_integer("items_per_passage", items_per_passage, 1),
    )
    if checked_integer("n_benchmarks", n_benchmarks, 1) > n_items:
        raise ValueError(
            f"n_benchmarks={n_benchmarks:,} is more than n_items={n_items:,}, but every benchmark needs an item"
        )
    if not 0 <= difficulty_sd < np.inf:
        raise ValueError(f"difficulty_sd must be >= 0 and finite, got {difficulty_sd}")
    rng = np.random.default_rng([seed, 7])
    item = np.arange(n_items)
    benchmark, passage = item * n_benchmarks // n_items, item // per_passage
    common, alone = rng.standard_normal(passage[-1] + 1)[passage], rng.standard_normal(n_items)
    difficulty = difficulty_sd * (common + alone) / np.sqrt(2) + 0.5 * (benchmark - benchmark.mean())
    chance = 1 / (1 + np.exp(difficulty[:, None, None] - ability.to_numpy(float)[:, None]))
    right = rng.random((n_items, len(ability), trials)) < chance
    of, model, trial = (x.reshape(-1) for x in np.indices(right.shape))
    columns = {
        "model": ability.index.to_numpy()[model],
        "item": of,
        "benchmark": np.array([f"benchmark-{k + 1}" for k in range(n_benchmarks)])[benchmark[of]],
        "passage": passage[of],
        "trial": trial + 1,
        "score": right.reshape(-1).astype(int),
    }
    kept = {"benchmark": n_benchmarks > 1, "passage": per_passage > 1, "trial": trials > 1}
    return pd.DataFrame({name: column for name, column in columns.items() if kept.get(name, True)})


def simulate_evaluators(
    n_models: int = 40,
    *,
    errors: Sequence[float] = (20.0, 40.0, 80.0),
    strengths: pd.Series | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Simulate scores of models by evaluators beside their ratings by people, as `compare_evaluators` takes them.

    Args:
        n_models: M, number of models.
        errors: (K,) standard deviation of each evaluator's error, in Elo. An evaluator's scores are percentages: 50 is
            the mean rating, and 10 Elo are one point.
        strengths: log-strengths by model name (logits); those of `simulate_strengths` (n_models, seed=seed) by default.
        seed: seed of the random numbers.

    Returns:
        A row for each model: ``model``, ``arena`` (the rating by people, Elo) and ``evaluator-1``...

    Raises:
        ValueError: fewer than two models, no evaluator, or a negative error.

    Examples:
        >>> import jaxeval
        >>> table = jaxeval.simulate_evaluators(20, errors=[10.0, 200.0]).set_index("model")
        >>> tau = jaxeval.kendall_tau(table.filter(like="evaluator"), table["arena"], n_resamples=50)
        >>> tau["tau"].round(1).tolist()
        [1.0, 0.6]
    """
    strength = given_or_drawn(strengths, n_models, 1, seed)
    spread = np.atleast_1d(np.asarray(errors, float))
    if not (spread.size and (spread >= 0).all() and np.isfinite(spread).all()):
        raise ValueError(f"errors must be finite and >= 0 for at least one evaluator, got {spread.tolist()}")
    rng = np.random.default_rng([seed, 8])
    rating = 1000 + strength.to_numpy(float) * 400 / np.log(10)
    seen = rating + spread[:, None] * rng.standard_normal((len(spread), len(strength)))
    scores = {f"evaluator-{k}": (50 + (x - 1000) / 10).round(1) for k, x in enumerate(seen, start=1)}
    return pd.DataFrame({"model": strength.index.to_numpy(), "arena": rating.round(1), **scores})
