"""Simulate scores of models on items, of evaluators on models, runs of agents on tasks, and shares on benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.special import expit

from jaxeval.arrays import Bool
from jaxeval.checks import checked_integer
from jaxeval.data.simulated_votes import given_or_drawn


def simulate_runs(
    n_agents: int = 4, n_tasks: int = 120, n_families: int = 40, n_runs: int = 4, *, slope: float = 0.7,
    task_sd: float = 1.0, family_sd: float = 0.7, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Simulate runs of agents on tasks of 8 seconds to 24 hours, as `time_horizons` takes them.

    The typical horizons of the agents at one half go from 2 minutes to 2 hours, in equal ratios.

    Args:
        n_agents: A, called agent-1 (shortest horizon) and so on.
        n_tasks: T, at least as many as families.
        n_families: every family has a task at least.
        n_runs: of each agent on each task.
        slope: by how many logits success falls where the length doubles.
        task_sd: standard deviation of the tasks' difficulties (logits), shared by all agents.
        family_sd: that of the families'.
        seed: any integer from 0 on.

    Returns:
        A table: ``agent``, ``task``, ``family``, ``minutes``, ``success``.

    Examples:
        >>> import jaxeval
        >>> jaxeval.simulate_runs(2, 10, 5, 3).shape
        (60, 5)
    """
    checked_integer("n_families", n_families, 1), checked_integer("n_agents", n_agents, 1)
    checked_integer("n_runs", n_runs, 1), checked_integer("n_tasks", n_tasks, n_families)
    rng = np.random.default_rng(checked_integer("seed", seed))
    family = np.sort(np.append(np.arange(n_families), rng.integers(0, n_families, n_tasks - n_families)))
    x = rng.uniform(-3, 10.5, n_tasks)
    hard = rng.normal(0, task_sd, n_tasks) + rng.normal(0, family_sd, n_families)[family]
    horizon = np.log2(np.geomspace(2, 120, n_agents)) if n_agents > 1 else np.log2([16.0])
    p = expit(slope * (horizon[:, None] - x) - hard)
    success = (rng.random((n_agents, n_tasks, n_runs)) < p[..., None]).astype(int)
    a, t, _ = np.indices(success.shape).reshape(3, -1)
    digits = len(str(n_tasks))
    return pd.DataFrame({
        "agent": np.array([f"agent-{k + 1}" for k in range(n_agents)])[a],
        "task": np.array([f"task-{k + 1:0{digits}d}" for k in range(n_tasks)])[t],
        "family": np.array([f"family-{k + 1:0{digits}d}" for k in range(n_families)])[family][t],
        "minutes": np.round(2**x, 3)[t],
        "success": success.reshape(-1),
    })  # fmt: skip


def simulate_benchmark_scores(
    n_models: int = 40, n_benchmarks: int = 15, *, observed: float = 0.5, noise: float = 0.04, seed: int = 0
) -> pd.DataFrame:
    """Simulate shares of models on benchmarks, as `capability_index` takes them.

    Args:
        n_models: M, called model-01 (weakest) and so on.
        n_benchmarks: K.
        observed: share of the cells that have a score; each model has four at least.
        noise: standard deviation of a share about its curve.
        seed: any integer from 0 on.

    Returns:
        A table: ``model``, ``benchmark``, ``score``.

    Examples:
        >>> import jaxeval
        >>> jaxeval.simulate_benchmark_scores(5, 4, observed=1).shape
        (20, 3)
    """
    checked_integer("n_models", n_models, 3), checked_integer("n_benchmarks", n_benchmarks, 2)
    rng = np.random.default_rng(checked_integer("seed", seed))
    c, d = np.linspace(-2, 2, n_models), rng.normal(0, 1.2, n_benchmarks)
    a = np.exp(rng.normal(0, 0.4, n_benchmarks))
    share = np.clip(expit(a * (c[:, None] - d)) + rng.normal(0, noise, (n_models, n_benchmarks)), 0, 1)
    seen: Bool = rng.random(share.shape) < observed
    for row in seen:
        row[rng.permutation(n_benchmarks)[: min(4, n_benchmarks)]] = True
    m, b = np.nonzero(seen)
    digits = len(str(n_models)), len(str(n_benchmarks))
    return pd.DataFrame({
        "model": [f"model-{k + 1:0{digits[0]}d}" for k in m],
        "benchmark": [f"benchmark-{k + 1:0{digits[1]}d}" for k in b],
        "score": share[m, b].round(4),
    })  # fmt: skip


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
        >>> jaxeval.score_leaderboard(scores, n_resamples=100)["model"].tolist()
        ['model-1', 'model-2', 'model-3']
        >>> list(jaxeval.simulate_scores(100, 3, n_benchmarks=2, n_trials=4).columns)
        ['model', 'item', 'benchmark', 'trial', 'score']
    """
    ability = given_or_drawn(abilities, n_models, n_items, seed, name="n_items")
    trials = checked_integer("n_trials", n_trials, 1)
    per_passage = checked_integer("items_per_passage", items_per_passage, 1)
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
    benchmarks = np.array([f"benchmark-{k + 1}" for k in range(n_benchmarks)])
    columns = {
        "model": ability.index.to_numpy()[model], "item": of, "benchmark": benchmarks[benchmark[of]],
        "passage": passage[of], "trial": trial + 1, "score": right.reshape(-1).astype(int),
    }  # fmt: skip
    kept = {"benchmark": n_benchmarks > 1, "passage": per_passage > 1, "trial": trials > 1}
    return pd.DataFrame({name: column for name, column in columns.items() if kept.get(name, True)})


def simulate_facet_scores(
    n_models: int = 3, n_items: int = 200, levels: Mapping[str, int] | None = None, *,
    spreads: Mapping[str, float] | None = None, shared: float = 1.0, gap: float = 0.05, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Simulate scores under several judges, prompts or seeds, as `error_budget` takes them.

    A score is the model's, ``gap`` below that of the model before it, and normal effects: of the item and of each level
    of each facet on a model alone, of the same on all models, and of the single score.

    Args:
        n_models: called model-1 (best) and so on.
        n_items: each has a score under all levels of all facets.
        levels: numbers of levels by facet; by default 3 judges and 4 prompts.
        spreads: standard deviations of the effects on a model alone, by facet, "item" and "residual"; by default 0.3,
            0.02, 0.01 and 0.4 (of items, judges, prompts, residuals), 0.02 of other facets.
        shared: those of the effects on all models, in parts of these.
        gap: between neighbours.
        seed: any integer from 0 on.

    Returns:
        A table: ``model``, ``item``, a column for each facet, ``score``.

    Examples:
        >>> import jaxeval
        >>> jaxeval.simulate_facet_scores(2, 10, {"judge": 3}).columns.to_list()
        ['model', 'item', 'judge', 'score']
    """
    levels = {"judge": 3, "prompt": 4} if levels is None else dict(levels)
    sizes = {"model": checked_integer("n_models", n_models, 1), "item": checked_integer("n_items", n_items, 1)}
    sizes |= {name: checked_integer(f"levels of {name}", n, 1) for name, n in levels.items()}
    sd = {"item": 0.3, "prompt": 0.01, "residual": 0.4} | dict(spreads or {})
    rng = np.random.default_rng(checked_integer("seed", seed))
    place = dict(zip(sizes, np.indices(tuple(sizes.values())).reshape(len(sizes), -1), strict=True))
    score = 0.7 - gap * place["model"] + rng.normal(0, sd["residual"], len(place["item"]))
    for name in ("item", *levels):
        interaction = rng.normal(0, sd.get(name, 0.02), (n_models, sizes[name]))[place["model"], place[name]]
        score = score + interaction + shared * rng.normal(0, sd.get(name, 0.02), sizes[name])[place[name]]
    names = {
        name: np.array([f"{name}-{k + 1:0{len(str(n))}d}" for k in range(n)])[place[name]] for name, n in sizes.items()
    }
    return pd.DataFrame({**names, "score": score})


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
