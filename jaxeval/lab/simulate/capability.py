"""Simulated runs of agents on tasks, and shares of models on benchmarks."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import expit

from jaxeval.arrays import Bool
from jaxeval.checks import checked_integer


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
    return pd.DataFrame(
        {
            "agent": np.array([f"agent-{k + 1}" for k in range(n_agents)])[a],
            "task": np.array([f"task-{k + 1:0{digits}d}" for k in range(n_tasks)])[t],
            "family": np.array([f"family-{k + 1:0{digits}d}" for k in range(n_families)])[family][t],
            "minutes": np.round(2**x, 3)[t],
            "success": success.reshape(-1),
        }
    )


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
    return pd.DataFrame(
        {
            "model": [f"model-{k + 1:0{digits[0]}d}" for k in m],
            "benchmark": [f"benchmark-{k + 1:0{digits[1]}d}" for k in b],
            "score": share[m, b].round(4),
        }
    )
