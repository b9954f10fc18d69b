"""Tasks and agents: rows for the statistic of a table of runs, bounds without a curve, and what curves forecast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, xlog1py, xlogy

from jaxeval.arrays import Bool, Float, as_leaf
from jaxeval.capability.columns import columns_by_role, minutes_of, shares, texts
from jaxeval.data.columns import require_column
from jaxeval.data.numbers import numbers, reject_values
from jaxeval.engine.draws_of import draws_of
from jaxeval.engine.statistic import Statistic
from jaxeval.errors import DataError
from jaxeval.execution.precision import double_precision
from jaxeval.kernels import time_horizons as kernel
from jaxeval.kernels.batch.weighted import statistic_once
from jaxeval.statistics.draws import Draws
from jaxeval.wording import counted, named

#: An agent with fewer tasks that it solved, or failed, has a bound and no number.
FEWEST = 2
#: So has a horizon that is so many times longer, or shorter, than all tasks.
FAR = 10.0
_MULTIPLES = (0.5, 1.0, 1.5, 2.0)  # of the variance of errors in the lengths, which are added
_NOISE = 16  # sets of simulated errors
_FOLDS = 10


class Tasks(NamedTuple):
    """Tasks (T,) and agents (A,), and what became of the runs."""

    agents: pd.Index
    table: pd.DataFrame  # task, family, minutes
    share: Float  # (T, A) of an agent's runs that succeed, 0 without runs
    runs: Float  # (T, A)
    weight: Float  # (T, A) of all runs of an agent on a task; an agent's sum to 1
    order: pd.DataFrame  # agent, task (numbers) and success of each run

    @property
    def x(self) -> Float:
        """Log2 of the minutes (T,)."""
        return np.log2(self.table["minutes"].to_numpy())


def tasks_of(table: Any, columns: Mapping[str, str | None], weight: str | None) -> tuple[Tasks, bool]:
    """Return what the runs say of tasks and agents; and whether there is no column of families."""
    frame, by_role = columns_by_role(table, columns, "runs", ("family",))
    without_family = "family" not in by_role
    by_role = {"family": by_role["task"], **by_role}
    agent, task, family = (texts(frame, by_role[role]) for role in ("agent", "task", "family"))
    minutes = minutes_of(frame, by_role["minutes"])
    reject_values(
        minutes, ~((minutes > 0) & (minutes < np.inf)), by_role["minutes"], "above 0 and finite: logarithms are taken"
    )
    success = shares(frame, by_role["success"])
    reject_values(success, (success < 0) | (success > 1), by_role["success"], "0, 1, or a share between them")
    each = pd.DataFrame({"task": task, "family": family, "minutes": minutes})
    several = each.groupby("task").nunique()
    for role in ("minutes", "family"):
        if (several[role] > 1).any():
            one = several.index[several[role] > 1][0]
            raise DataError(
                f"task {one!r} has {counted(int(several[role][one]), 'value')} of {by_role[role]!r}, and a task has "
                "one: give each version a name of its own"
            )
    known = each.drop_duplicates("task").sort_values("task", ignore_index=True)
    if len(known) < 3:
        raise DataError(f"a curve needs 3 tasks or more, got {len(known)}")
    column, names = pd.factorize(agent, sort=True)
    agents = pd.Index(names, name="agent")
    row = pd.Index(known["task"]).get_indexer(task)
    shape = len(known), len(agents)

    def summed(values: Float) -> Float:
        total = np.zeros(shape)
        np.add.at(total, (row, column), values)
        return total

    runs = summed(np.ones(len(frame)))
    if weight in (None, "equal"):
        heavy = by_tasks(runs, known["family"] if weight is None else None)
        share = summed(success) / np.maximum(runs, 1)
    else:
        require_column(frame, weight)
        of_each = numbers(frame[weight], weight)
        reject_values(of_each, of_each < 0, weight, "0 or more")
        heavy = summed(of_each)
        share = summed(of_each * success) / np.where(heavy > 0, heavy, 1.0)
    total = heavy.sum(0)
    if not (total > 0).all():
        raise DataError(f"all weights of {named(agents[~(total > 0)])} are 0")
    order = pd.DataFrame({"agent": column, "task": row, "success": success})
    return Tasks(agents, known, share, runs, heavy / total, order), without_family


def by_tasks(runs: Float, family: pd.Series | None) -> Float:
    """Return weights (T, A), 1 / sqrt of how many tasks of its family an agent has tried, or 1 without families."""
    number = np.arange(len(runs)) if family is None else pd.factorize(family)[0]
    size = np.stack([np.bincount(number, tried)[number] for tried in (runs > 0).astype(float).T], axis=1)
    return np.where(runs > 0, 1 / np.sqrt(np.maximum(size, 1)), 0.0)


def other_choices(tasks: Tasks, settings: Mapping[str, Any], curves: Sequence[str]) -> Iterator[tuple[str, Tasks, Any]]:
    """Give names, tasks and settings of what else could have been chosen, one thing at a time."""
    for curve in curves:
        if curve != settings["curve"]:
            spread = settings["task_spread"] if curve == "logistic" else None
            yield f"curve={curve}", tasks, {**settings, "curve": curve, "task_spread": spread}
    for ridge in (1e-5, 0.1):
        if ridge != settings["ridge"]:
            yield f"ridge={ridge:g}", tasks, {**settings, "ridge": ridge}
    for weight in ("family", "equal"):
        heavy = by_tasks(tasks.runs, tasks.table["family"] if weight == "family" else None)
        heavy = heavy / heavy.sum(0)
        if np.abs(heavy - tasks.weight).max() > 1e-9:
            yield f"weight={weight}", tasks._replace(weight=heavy), settings


def rows_of(tasks: Tasks, stages: Sequence[str], minutes_sd: float, seed: int) -> dict[str, Any]:
    """Return the statistic's rows: tasks; where runs are drawn, as many parts of each as an agent has runs at most."""
    parts = np.ones(len(tasks.table), int)
    if "run" in stages:
        parts = tasks.runs.max(1).astype(int)
    row = np.repeat(np.arange(len(parts)), parts)
    part = np.arange(len(row)) - np.repeat(np.cumsum(parts) - parts, parts)
    data = {
        "x": tasks.x[row],
        "weight": tasks.weight[row] / parts[row][:, None],
        "share": tasks.share[row] if "run" not in stages else _shares_of_parts(tasks, row, part, parts),
    }
    if minutes_sd:
        noise = np.random.default_rng(seed).normal(size=(len(parts), _NOISE)) * minutes_sd
        data["noise"] = (noise - noise.mean(1, keepdims=True))[row]
    columns = {"family": tasks.table["family"].to_numpy()[row], "task": tasks.table["task"].to_numpy()[row]}
    columns["run"] = part.astype(str)
    return data | {name: columns[name] for name in stages}


def _shares_of_parts(tasks: Tasks, row: Any, part: Any, parts: Any) -> Float:
    """Return the share of successes in each part of an agent's runs on a task; runs may lie in two parts."""
    share = tasks.share[row].copy()
    for (a, t), successes in tasks.order.groupby(["agent", "task"])["success"]:
        done = np.concatenate([[0.0], np.cumsum(successes.to_numpy())])
        at = np.linspace(0, len(successes), parts[t] + 1)
        share[row == t, a] = np.diff(np.interp(at, np.arange(len(done)), done)) * parts[t] / len(successes)
    return share


def statistic_of(settings: Mapping[str, Any], levels: Sequence[float]) -> Any:
    """Return the function of weights and rows: shares of success, then horizons of a kind or, with a spread, of two."""
    options = {
        "curve": settings["curve"], "levels": tuple(levels), "ridge": settings["ridge"],
        "spread": settings["task_spread"] or None, "multiples": _MULTIPLES if settings["minutes_sd"] else (),
    }  # fmt: skip
    return partial(kernel.horizons, **options)


def estimates_of(tasks: Tasks, settings: Mapping[str, Any], levels: Sequence[float]) -> Float:
    """Return log2 of the horizons (A, L) of all tasks of a length, without draws."""
    rows = {k: as_leaf(x, np.float64) for k, x in rows_of(tasks, (), settings["minutes_sd"], settings["seed"]).items()}
    n, shape = len(tasks.agents), (len(tasks.agents), len(levels))
    statistic, weights = statistic_of(settings, levels), as_leaf(np.ones(len(tasks.x)), np.float64)
    if "noise" in rows:  # many fits
        with double_precision():
            logs = np.asarray(statistic_once(Statistic(statistic), weights, rows))
    else:
        with np.errstate(all="ignore"):
            logs = np.asarray(statistic(weights, rows))
    return logs[n : n + shape[0] * shape[1]].reshape(shape)


def horizons_of(tasks: Tasks, settings: Mapping[str, Any], levels: Sequence[float], **running: Any) -> list[Draws]:
    """Draw log2 of the horizons, by agent and level: of all tasks of a length, and of a typical one with spread."""
    stages = settings["resample"]
    data = rows_of(tasks, stages, settings["minutes_sd"], settings["seed"])
    drawn = {"n_resamples": settings["n_resamples"], "seed": settings["seed"], "cluster": list(stages), **running}
    draws = draws_of(statistic_of(settings, levels), data, **drawn)
    names = pd.MultiIndex.from_product([tasks.agents, levels], names=["agent", "level"])
    first = len(tasks.agents)  # shares of success come before
    parts = [draws.take(np.arange(k, k + len(names))) for k in range(first, len(draws.names), len(names))]
    return [replace(part, names=names, status=None) for part in parts]


def bounds_of(tasks: Tasks, levels: Sequence[float], level: float, estimate: Float) -> tuple[pd.DataFrame, Bool]:
    """Return flags and one-sided bounds of each agent and level; and which have a horizon."""
    rows, known = [], []
    x = tasks.table["minutes"].to_numpy()
    family = tasks.table["family"].to_numpy()
    flat = iter(estimate)
    for a in range(len(tasks.agents)):
        tried = tasks.runs[:, a] > 0
        wins, losses = (tasks.share[tried, a] > 0).sum(), (tasks.share[tried, a] < 1).sum()
        for q in levels:
            value = next(flat)
            lower, upper, flag = np.nan, np.nan, "ok"
            if wins < FEWEST or losses < FEWEST:
                failed = wins < FEWEST
                flag = f"{'success' if failed else 'failure'} in {wins if failed else losses} of {tried.sum()} tasks"
                clean = tried & (tasks.share[:, a] == (0 if failed else 1))
                ordered = np.argsort(x if failed else -x, kind="stable")
                ordered = ordered[tried[ordered]]
                run = ordered[: int(np.argmin(np.append(clean[ordered], False)))]  # up to the first that is different
                first = pd.unique(family[run])
                needed = int(np.ceil(np.log(1 - level) / np.log(1 - q if failed else q)))
                if len(first) >= needed:
                    at = x[run[np.flatnonzero(family[run] == first[needed - 1])[0]]]
                    lower, upper = (np.nan, at) if failed else (at, np.nan)
            elif not np.isfinite(value):
                flag = "success does not fall with length"
            elif 2**value > x[tried].max():
                flag, lower = "beyond the longest task", x[tried].max()
            elif 2**value < x[tried].min():
                flag, upper = "below the shortest task", x[tried].min()
            rows.append({"flag": flag, "lower": lower, "upper": upper})
            near = x[tried].min() / FAR <= 2 ** min(value, 1000.0) <= FAR * x[tried].max()
            known.append(wins >= FEWEST and losses >= FEWEST and bool(near))
    return pd.DataFrame(rows), np.array(known)


def estimated_spread(x: Float, share: Float, runs: Float) -> float:
    """Return the standard deviation (logits) of how difficult tasks of one length are for an agent.

    It maximises the likelihood of the runs of each agent on each task, from which normal difficulties are integrated
    out. Tasks with one run by an agent say little of it.
    """
    nodes, shares = np.polynomial.hermite_e.hermegauss(31)
    log_shares = np.log(shares / shares.sum())

    weight, wins = runs / np.maximum(runs.sum(0), 1), share * runs
    usable = (wins.sum(0) > 0) & (wins.sum(0) < runs.sum(0))

    def loss(spread: float) -> float:
        with double_precision():
            weighed, shares, lengths, ridge, sd = (as_leaf(v, np.float64) for v in (weight, share, x, 1e-5, spread))
            parts = kernel.line(weighed, shares, lengths, ridge, sd, "of tasks")
        intercept, slope, centre = map(np.asarray, parts)
        p = expit((intercept + slope * (x[:, None] - centre))[:, :, None] + spread * nodes)
        each = xlogy(wins[:, :, None], p) + xlog1py((runs - wins)[:, :, None], -p) + log_shares
        return -float(logsumexp(each, axis=2)[:, usable].sum())

    return float(minimize_scalar(loss, bounds=(0.0, 6.0), method="bounded", options={"xatol": 0.01}).x)


def compared_curves(tasks: Tasks, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return what `TimeHorizons.curves` does."""
    family = pd.factorize(tasks.table["family"])[0]
    fold = np.random.default_rng(settings["seed"]).permutation(family.max() + 1)[family] % _FOLDS
    x, scores = tasks.x, {}
    for curve in ("logistic", "probit", "asymmetric"):
        of_task = np.zeros(len(x))
        for k in range(fold.max() + 1):
            held = fold == k
            weight = np.where(held[:, None], 0.0, tasks.weight)
            values = weight, tasks.share, x, settings["ridge"], 0.0
            weighed, share, lengths, ridge, none = (as_leaf(v, np.float64) for v in values)
            with np.errstate(all="ignore"):
                intercept, slope, centre = kernel.line(weighed, share, lengths, ridge, none, curve)
                p = np.asarray(kernel.success(curve, intercept + slope * (x[:, None] - centre)))
            p = np.clip(p, 1e-4, 1 - 1e-4)
            each = tasks.weight * (xlogy(tasks.share, p) + xlog1py(1 - tasks.share, -p))
            solved = (weight * tasks.share).sum(0)
            usable = (solved > 0) & (solved < weight.sum(0))  # other agents have no curve
            of_task += np.where(held, each[:, usable].sum(1), 0.0)
        scores[curve] = np.bincount(family, of_task) / len(tasks.agents)
    total = {curve: x.sum() for curve, x in scores.items()}
    best = max(total, key=lambda name: total[name])
    rows = []
    for curve in sorted(total, key=lambda name: -total[name]):
        error = float(np.std(scores[best] - scores[curve], ddof=1) * np.sqrt(len(scores[best])))
        rows.append((curve, total[curve], total[best] - total[curve], error))
    return pd.DataFrame(rows, columns=["curve", "log_score", "worse_by", "standard_error"])
