"""Time horizons: how long the tasks are, in people's minutes, that an agent solves half of the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, Unpack, get_args

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, xlog1py, xlogy

from jaxeval.arrays import Bool, Float, as_leaf
from jaxeval.capability.trends import line_by_date
from jaxeval.checks import checked_finite, checked_integer
from jaxeval.data.columns import as_frame, numbers, reject_missing, reject_values, require_column
from jaxeval.engine.draws_of import draws_of, loo_of
from jaxeval.errors import DataError
from jaxeval.execution.precision import double_precision
from jaxeval.execution.runs import RunOptions
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels import horizons as kernel
from jaxeval.show.shown import Answer, Result, settings_line
from jaxeval.show.table import Table
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted, named, visible_line

Curve = Literal["logistic", "probit", "asymmetric", "monotone"]
Stage = Literal["family", "task", "run"]

#: Names that columns have in public files, the first one that is there.
_NAMES = {
    "agent": ("agent", "alias", "model"),
    "task": ("task", "task_id"),
    "family": ("family", "task_family"),
    "minutes": ("minutes", "human_minutes"),
    "success": ("success", "score_binarized"),
}
#: An agent with fewer tasks that it solved, or failed, has a bound and no number.
FEWEST = 2
#: So has a horizon that is so many times longer, or shorter, than all tasks.
FAR = 10.0
_MULTIPLES = (0.5, 1.0, 1.5, 2.0)  # of the variance of errors in the lengths, which are added
_NOISE = 16  # sets of simulated errors
_FOLDS = 10


class _Tasks(NamedTuple):
    """Tasks (T,) and agents (A,), and what became of the runs."""

    agents: pd.Index
    table: pd.DataFrame  # task, family, minutes
    share: Float  # (T, A) of an agent's runs that succeed, 0 without runs
    runs: Float  # (T, A)
    weight: Float  # (T, A) of all runs of an agent on a task; an agent's sum to 1
    order: pd.DataFrame  # agent, task (numbers) and success of each run

    @property
    def x(self) -> Float:
        return np.log2(self.table["minutes"].to_numpy())


@dataclass(frozen=True, eq=False, repr=False)
class TimeHorizons(Result):
    """Horizons of agents at levels of success; see `time_horizons`.

    ``joint`` has log2 of the horizons in minutes, named by agent and level: a difference of 1 is a factor of 2.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.time_horizons(jaxeval.simulate_runs(seed=1), n_resamples=200)
        >>> found.table.loc[found.table["level"] == 0.5, ["agent", "horizon"]].round(0).values.tolist()
        [['agent-4', 165.0], ['agent-3', 38.0], ['agent-2', 8.0], ['agent-1', 1.0]]
    """

    joint: Draws = field(repr=False)
    typical: Draws | None = field(repr=False)  # of the task of median difficulty; None without task_spread
    level: float  # of the intervals
    settings: Mapping[str, Any] = field(repr=False)
    warnings: tuple[str, ...]
    _tasks: _Tasks = field(repr=False)
    _bounds: pd.DataFrame = field(repr=False)  # of agents without a number

    @property
    def table(self) -> pd.DataFrame:
        """A row for each agent and level, the longest horizon first.

        ``agent``, ``level``, ``horizon``, ``lower``, ``upper`` (minutes), ``typical``, ``typical_lower``,
        ``typical_upper`` (with ``task_spread``), ``rank_best``, ``rank_worst``, ``n_tasks``, ``n_runs``, ``success``
        (weighted share), ``flag``. Agents without a number have one bound in place of an interval.
        """
        kinds = {"": self.joint} | ({"typical_": self.typical} if self.typical is not None else {})
        columns: dict[str, Any] = {}
        for head, draws in kinds.items():
            ends = draws.interval(self.level)
            columns |= {head[:-1] or "horizon": 2**draws.estimate}
            columns |= {f"{head}{end}": 2 ** ends[end].to_numpy() for end in ("lower", "upper")}
        table = pd.DataFrame(columns, self.joint.names)
        for level in self.settings["levels"]:
            own = self.joint.of(level=level)
            ranks = own.ranks(self.level, among=np.isfinite(own.estimate))
            ranks.index = pd.MultiIndex.from_product([ranks.index, [level]], names=self.joint.names.names)
            for name in ("rank_best", "rank_worst"):
                table.loc[ranks.index, name] = ranks[name].astype("Float64")
        table = table.astype({"rank_best": "Int64", "rank_worst": "Int64"}).reset_index()
        of_agent = self._tasks.agents.get_indexer(table["agent"])
        tasks = self._tasks
        table["n_tasks"] = (tasks.runs > 0).sum(0)[of_agent]
        table["n_runs"] = tasks.runs.sum(0).astype(int)[of_agent]
        table["success"] = (tasks.weight * tasks.share).sum(0)[of_agent]
        table["flag"] = self._bounds["flag"].to_numpy()
        missing = ~np.isfinite(self.joint.estimate)
        table.loc[missing, "horizon"] = np.nan
        for end in ("lower", "upper"):
            table.loc[missing, end] = self._bounds.loc[missing, end].to_numpy()
        order = table.assign(none=table["horizon"].isna()).sort_values(
            ["level", "none", "horizon", "upper"], ascending=[True, True, False, False], kind="stable"
        )
        table = order.drop(columns="none").reset_index(drop=True)
        table.attrs = {"warnings": list(self.warnings), "settings": dict(self.settings)}
        return Table.of(table, f"Time horizons of {counted(len(tasks.agents), 'agent')} (minutes)", tuple(table)[:5])

    def _shown(self) -> Answer:
        table = self.table
        levels = self.settings["levels"]
        title = f"TimeHorizons: {counted(len(self._tasks.agents), 'agent')}, {counted(len(self._tasks.table), 'task')}"
        shown = table[table["level"] == levels[0]].drop(columns="level").set_index("agent")
        return Answer(title, shown, settings_line(self.settings), self.warnings)

    def _sentences(self) -> list[str]:
        level = self.settings["levels"][0]
        table = self.table
        table = table[(table["level"] == level) & table["horizon"].notna()]
        if not len(table):
            return ["no agent has both successes and failures enough for a horizon"]
        first = table.iloc[0]
        ends = f" ({spelled_minutes(first['lower'])} to {spelled_minutes(first['upper'])})"
        said = [
            f"{visible_line(first['agent'])} solves {level:.0%} of tasks of {spelled_minutes(first['horizon'])}{ends}"
        ]
        if len(table) > 1:
            ratio = self.ratio(first["agent"], table["agent"].iloc[1], level)
            verdict = "longer than" if ratio["lower"] > 1 else "statistically tied with"
            said.append(
                f"its horizon is {verdict} that of {visible_line(table['agent'].iloc[1])}: {ratio['ratio']:.3g} times "
                f"({ratio['lower']:.3g} to {ratio['upper']:.3g})"
            )
        return said

    def ratio(self, agent: str, other: str, level: float | None = None) -> dict[str, float]:
        """Return how many times as long the horizon of ``agent`` is as that of ``other``, with its interval.

        Args:
            agent: an agent.
            other: another one.
            level: of success, the first one by default.

        Returns:
            ``ratio``, ``lower`` and ``upper``, from the difference of the same resamples.
        """
        level = self.settings["levels"][0] if level is None else level
        one, two = (self.joint.of(agent=name, level=level) for name in (agent, other))
        name = pd.Index([f"{agent} / {other}"])
        difference = _renamed(one, name) - _renamed(two, name)
        ends = difference.interval(self.level).iloc[0]
        return {
            "ratio": float(2 ** difference.estimate[0]),
            "lower": float(2 ** ends["lower"]),
            "upper": float(2 ** ends["upper"]),
        }

    def influence(self, level: float | None = None) -> pd.DataFrame:
        """Return by what factor each horizon changes if a task is left out: a row for each task, a column an agent.

        The tasks that change most come first.
        """
        level = self.settings["levels"][0] if level is None else level
        statistic, _ = _statistic(self._tasks, self.settings, None, [level])
        data = _rows(self._tasks, (), self.settings["minutes_sd"], self.settings["seed"])
        names = self._tasks.agents
        data["task"] = self._tasks.table["task"].to_numpy()
        moved = loo_of(statistic, data, "task", progress=False)
        base = np.array(list(moved.attrs["estimate"].values()))[len(names) :]
        moved = moved.iloc[:, len(names) :].set_axis(names, axis=1)
        base[~np.isfinite(self.joint.of(level=level).estimate)] = np.nan  # agents without a number
        with np.errstate(invalid="ignore"):
            table = 2 ** (moved - base)
        largest = np.log(table.where(np.isfinite(table) & (table > 0))).abs().max(axis=1)
        return table.loc[largest.sort_values(ascending=False, kind="stable").index]

    def choices(self, level: float | None = None) -> pd.DataFrame:
        """Return horizons (minutes) under other choices: a row for each curve, ridge and weight; a column an agent."""
        level = self.settings["levels"][0] if level is None else level
        tasks = self._tasks
        tried = (tasks.runs > 0).astype(float)
        others: dict[str, tuple[dict[str, Any], Float]] = {"as asked": ({}, tasks.weight)}
        others |= {f"curve={name}": ({"curve": name}, tasks.weight) for name in get_args(Curve)}
        others |= {f"ridge={x:g}": ({"ridge": x}, tasks.weight) for x in (1e-5, 0.1)}
        others["weight=equal"] = {}, tried / tried.sum(0)
        known = np.isfinite(self.joint.of(level=level).estimate)
        rows = {}
        for name, (changed, weight) in others.items():
            statistic, _ = _statistic(tasks, {**self.settings, **changed, "minutes_sd": 0.0}, None, [level])
            with double_precision():
                data = {"x": tasks.x, "weight": weight, "share": tasks.share}
                logs = np.asarray(statistic(np.ones(len(tasks.x)), data))[len(known) :]
            rows[name] = np.where(known, 2**logs, np.nan)
        return pd.DataFrame.from_dict(rows, orient="index", columns=tasks.agents).rename_axis("choice")

    def curves(self) -> pd.DataFrame:
        """Return how well each curve forecasts tasks that it has not seen: by folds of families, a row a curve.

        ``log_score`` is the mean log of the probability of what a run became, weighted as the fit, over all agents:
        the larger, the better. ``worse_by`` and ``standard_error`` compare with the best, by families.
        """
        return _compared_curves(self._tasks, self.settings)

    def trend(
        self, released: Mapping[str, Any], *, level: float | None = None, frontier: bool = True,
        since: Any = None, until: Any = None, at: Sequence[Any] = (),
    ) -> HorizonTrend:  # fmt: skip
        """Fit log2 of the horizons to release dates: the doubling time.

        Args:
            released: date of each agent, by name; agents without one take no part.
            level: of success, the first one by default.
            frontier: take only agents whose horizon is the longest up to their date.
            since: first date; earlier agents take no part.
            until: last date.
            at: dates at which the line is read, also later ones.

        Returns:
            `HorizonTrend`. Its intervals carry the errors of the horizons, which share tasks; they know nothing of
            whether the trend goes on.

        Raises:
            DataError: fewer than two agents with a horizon and a date, or all of one date; a name is no agent.
        """
        level = self.settings["levels"][0] if level is None else level
        return _trend(self, released, level, frontier, since, until, at)


@dataclass(frozen=True, eq=False, repr=False)
class HorizonTrend(Result):
    """How fast horizons grow; see `TimeHorizons.trend`.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.time_horizons(jaxeval.simulate_runs(3, seed=1), n_resamples=200)
        >>> trend = found.trend({"agent-1": "2023-01-01", "agent-2": "2024-01-01", "agent-3": "2025-01-01"})
        >>> len(trend.agents), trend.doubling["lower"] < trend.doubling["days"] < trend.doubling["upper"]
        (3, True)
    """

    doubling: dict[str, float]  # days: "days", "lower", "upper"
    agents: pd.DataFrame = field(repr=False)  # agent, released, horizon, fitted (minutes)
    forecast: pd.DataFrame = field(repr=False)  # date, horizon, lower, upper
    level: float
    settings: Mapping[str, Any] = field(repr=False)
    warnings: tuple[str, ...] = ()

    def _shown(self) -> Answer:
        title = f"HorizonTrend: {counted(len(self.agents), 'agent')}"
        return Answer(title, self.agents.set_index("agent"), settings_line(self.settings), self.warnings)

    def _sentences(self) -> list[str]:
        days, low, high = (self.doubling[name] for name in ("days", "lower", "upper"))
        if not low > 0 or not np.isfinite(high):
            return [f"whether horizons grow is not known: the doubling time is {days:.0f} days by the estimates alone"]
        return [f"horizons double every {days:.0f} days ({low:.0f} to {high:.0f})"]


@spelled_out()
def time_horizons(
    runs: Any, *, agent: str | None = None, task: str | None = None, family: str | None = None,
    minutes: str | None = None, success: str | None = None, weight: str | None = None, ridge: float = 1e-5,
    levels: Sequence[float] = (0.5, 0.8), curve: Curve = "logistic",
    task_spread: float | Literal["estimate"] | None = None, minutes_sd: float = 0.0,
    resample: Sequence[Stage] = ("family",), level: float = 0.95, n_resamples: int = 1000, seed: int = 0,
    **running: Unpack[RunOptions],
) -> TimeHorizons:  # fmt: skip
    """Fit how success falls with the length of tasks, and return the lengths at which it crosses levels.

    For each agent the probability of success is F(a + b log2(minutes)). It minimises the weighted loss of its runs plus
    ridge / 2 b^2; the weights of an agent sum to 1. A horizon at level q is the length at which the curve crosses q.

    Families of tasks are resampled, whole and for all agents together: so differences of agents are paired, and what
    tasks of a family share, and the noise of runs, is in the intervals once. They are as much longer as few families
    ask for.

    Args:
        runs: a table with a row for each run.
        agent: column of the agent; by default ``agent``, ``alias`` or ``model``.
        task: column of the task; by default ``task`` or ``task_id``.
        family: column of what is resampled; by default ``family`` or ``task_family``, and tasks where there is none.
        minutes: column of the time that people take, in minutes; by default ``minutes`` or ``human_minutes``.
        success: column of 0 and 1, or of shares; by default ``success`` or ``score_binarized``.
        weight: column of weights of runs. By default the tasks of a family of n tasks that an agent has tried weigh
            1 / sqrt(n) each, and the runs of a task share its weight. "equal" gives every task of an agent one weight.
        ridge: penalty of the slope, on log2 of minutes. It pulls curves flat, which moves horizons that are far from
            most tasks: .1 made some 20 % shorter.
        levels: of success.
        curve: F. "logistic"; "probit"; "asymmetric" (complementary log-log: success fades out slowly); "monotone" is
            any curve that falls (isotonic), and takes no ridge.
        task_spread: standard deviation, in logits, of how difficult tasks of one length are for an agent; "estimate"
            takes it from how alike the runs of a task are. The horizon is then one of all tasks of a length, and
            ``typical`` that of the task of median difficulty. Only with "logistic".
        minutes_sd: standard deviation of the errors in log2 of the minutes. Horizons are extrapolated to none (SIMEX,
            Cook and Stefanski 1994, DOI 10.1080/01621459.1994.10476871).
        resample: stages, outermost first. ("family", "task", "run") draws tasks within families, and runs within
            tasks, as well: that counts their noise twice, and intervals are longer than their level says.
        level: of intervals and rank ranges.
        n_resamples: B.
        seed: the same seed gives the same draws.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`.

    Returns:
        `TimeHorizons`: ``table``, ``joint``, and ``ratio``, ``influence``, ``curves`` and ``trend``. Agents with fewer
        than two tasks with a success, or with a failure, have no number: their bound is the length at which as many
        families failed (or succeeded) in a row as chance allows in 1 - ``level`` of cases. Agents that do no worse at
        longer tasks have none either. A horizon beyond all tasks is flagged.

    Raises:
        DataError: a column is missing, minutes are not above 0, success is not between 0 and 1, a task has two lengths
            or two families, or there are fewer than three tasks.
        ValueError: an option is out of range.

    Examples:
        >>> import jaxeval
        >>> runs = jaxeval.simulate_runs(seed=1)
        >>> found = jaxeval.time_horizons(runs, n_resamples=200)
        >>> print(found.answer.sentences[0])
        agent-4 solves 50% of tasks of 2.7 h (2 h to 4.3 h)
    """
    columns = {"agent": agent, "task": task, "family": family, "minutes": minutes, "success": success}
    levels = _checked_options(levels, curve, task_spread, minutes_sd, resample, ridge)
    level, seed = checked_level(level), checked_integer("seed", seed)
    tasks, without_family = _tasks(as_frame(runs), columns, weight)
    spread = estimated_spread(tasks.x, tasks.share, tasks.runs) if task_spread == "estimate" else task_spread
    settings = {
        "curve": curve, "levels": list(levels), "ridge": ridge, "weight": weight, "task_spread": spread,
        "minutes_sd": minutes_sd, "resample": list(resample), "n_resamples": n_resamples, "seed": seed,
    }  # fmt: skip
    statistic, kinds = _statistic(tasks, settings, spread, levels)
    data = _rows(tasks, resample, minutes_sd, seed)
    draws = draws_of(statistic, data, n_resamples=n_resamples, seed=seed, cluster=list(resample), **running)
    names = pd.MultiIndex.from_product([tasks.agents, levels], names=["agent", "level"])
    first = len(tasks.agents)  # shares of success come before
    bounds, known = _bounds(tasks, levels, level, draws.estimate[first : first + len(names)])
    warnings = [*draws.warnings] if known.all() else []
    warnings += [] if not without_family else ["no column of families: tasks are resampled one by one, as if unrelated"]
    if not known.all():
        none = names.get_level_values("agent")[~known].unique()
        warnings.append(f"{counted(len(none), 'agent has', 'agents have')} no horizon, see flags: {named(none)}")
    parts = [
        _with_unknown(
            draws.take(np.arange(len(names)) + first + k * len(names)), names, known, settings, tuple(warnings)
        )
        for k in range(kinds)
    ]
    typical = parts[1] if kinds == 2 else None
    return TimeHorizons(parts[0], typical, level, settings, tuple(warnings), tasks, bounds)


def _checked_options(
    levels: Sequence[float], curve: str, task_spread: Any, minutes_sd: float, resample: Sequence[str], ridge: float
) -> tuple[float, ...]:
    levels = tuple(checked_level(level) for level in np.atleast_1d(levels).tolist())
    if not levels or len(set(levels)) < len(levels):
        raise ValueError(f"levels must be shares between 0 and 1, each once, got {levels}")
    if curve not in get_args(Curve):
        raise ValueError(f"curve must be one of {named(get_args(Curve))}, got {curve!r}")
    if task_spread is not None and curve != "logistic":
        raise ValueError(f"task_spread= goes with curve='logistic', got curve={curve!r}")
    if task_spread not in (None, "estimate"):
        checked_finite("task_spread", task_spread, 0.0)
    checked_finite("minutes_sd", minutes_sd, 0.0)
    checked_finite("ridge", ridge, 0.0)
    stages = get_args(Stage)
    if not resample or isinstance(resample, str) or list(resample) != [s for s in stages if s in resample]:
        raise ValueError(f"resample must list some of {named(stages)}, in this order, got {resample!r}")
    return levels


def _tasks(frame: pd.DataFrame, columns: Mapping[str, str | None], weight: str | None) -> tuple[_Tasks, bool]:
    """What the runs say of tasks and agents; and whether there is no column of families."""
    found = {}
    for role, name in columns.items():
        usual = next((x for x in _NAMES[role] if x in frame.columns), None)
        if name is None and usual is None and role != "family":
            raise DataError(
                f"no column of the {role}: name it by {role}=; looked for {named(_NAMES[role])}, and the columns are "
                f"{named(frame.columns)}"
            )
        if name is not None:
            require_column(frame, name)
        found[role] = name or usual or ""
    without_family = not found["family"]
    found["family"] = found["family"] or found["task"]
    for role in ("agent", "task", "family"):
        reject_missing(frame[found[role]].isna().to_numpy(), found[role])
    if not len(frame):
        raise DataError("the table has no runs")
    minutes = numbers(frame[found["minutes"]], found["minutes"])
    reject_values(minutes, ~(minutes > 0), found["minutes"], "above 0, as their logarithm is taken")
    success = numbers(frame[found["success"]], found["success"])
    reject_values(success, (success < 0) | (success > 1), found["success"], "0, 1, or a share between them")
    each = pd.DataFrame(
        {"task": frame[found["task"]].astype(str).to_numpy(), "family": frame[found["family"]].astype(str).to_numpy(),
         "minutes": minutes}
    )  # fmt: skip
    several = each.groupby("task").nunique()
    for role in ("minutes", "family"):
        if (several[role] > 1).any():
            one = several.index[several[role] > 1][0]
            raise DataError(
                f"task {one!r} has {counted(int(several[role][one]), 'value')} of {found[role]!r}, and a task has one: "
                "give each version a name of its own"
            )
    table = each.drop_duplicates("task").sort_values("task", ignore_index=True)
    if len(table) < 3:
        raise DataError(f"a curve needs 3 tasks or more, got {len(table)}")
    agents = pd.Index(sorted(frame[found["agent"]].astype(str).unique()), name="agent")
    row, column = (
        pd.Index(table["task"]).get_indexer(each["task"]),
        agents.get_indexer(frame[found["agent"]].astype(str)),
    )
    shape = len(table), len(agents)

    def summed(values: Float) -> Float:
        total = np.zeros(shape)
        np.add.at(total, (row, column), values)
        return total

    runs = summed(np.ones(len(frame)))
    if weight in (None, "equal"):
        size = np.ones(shape)
        if weight is None:
            number = pd.factorize(table["family"])[0]
            size = np.stack([np.bincount(number, x)[number] for x in (runs > 0).astype(float).T], axis=1)
        heavy, of_runs = np.where(runs > 0, 1 / np.sqrt(np.maximum(size, 1)), 0.0), runs
        share = summed(success) / np.maximum(of_runs, 1)
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
    return _Tasks(agents, table, share, runs, heavy / total, order), without_family


def _rows(tasks: _Tasks, stages: Sequence[str], minutes_sd: float, seed: int) -> dict[str, Any]:
    """Rows for the statistic: tasks, or as many parts of each as an agent has runs at most, where runs are drawn."""
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


def _shares_of_parts(tasks: _Tasks, row: Any, part: Any, parts: Any) -> Float:
    """The share of successes in each part of an agent's runs on a task; runs may lie in two parts."""
    share = tasks.share[row].copy()
    for (a, t), own in tasks.order.groupby(["agent", "task"])["success"]:
        done = np.concatenate([[0.0], np.cumsum(own.to_numpy())])
        at = np.linspace(0, len(own), parts[t] + 1)
        share[row == t, a] = np.diff(np.interp(at, np.arange(len(done)), done)) * parts[t] / len(own)
    return share


def _statistic(
    tasks: _Tasks, settings: Mapping[str, Any], spread: float | None, levels: Sequence[float]
) -> tuple[Any, int]:
    """The function of weights and rows, and how many kinds of horizons it gives."""
    options = {
        "curve": settings["curve"], "levels": tuple(levels), "ridge": settings["ridge"], "spread": spread or None,
        "multiples": _MULTIPLES if settings["minutes_sd"] else (),
    }  # fmt: skip
    return partial(kernel.horizons, **options), 2 if spread else 1


def _bounds(tasks: _Tasks, levels: Sequence[float], level: float, estimate: Float) -> tuple[pd.DataFrame, Bool]:
    """Flags and one-sided bounds of each agent and level; and which have a horizon."""
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


def _with_unknown(
    draws: Draws, names: pd.MultiIndex, known: Bool, settings: Mapping[str, Any], warnings: tuple[str, ...]
) -> Draws:
    """Draws of the ``names``, without numbers where they are not ``known``."""
    return Draws(
        names,
        np.where(known, draws.estimate, np.nan),
        np.where(known, draws.draws, np.nan),
        settings=settings,
        warnings=warnings,
        freedom=draws.freedom,
    )


def _renamed(draws: Draws, names: pd.Index) -> Draws:
    return Draws(names, draws.estimate, draws.draws, freedom=draws.freedom)


def spelled_minutes(value: float) -> str:
    """Return minutes as people say them."""
    if np.isnan(value):
        return "?"
    for most, size, unit in ((1, 1 / 60, "s"), (60, 1, "min"), (60 * 24, 60, "h")):
        if value < most:
            return f"{value / size:.2g} {unit}"
    return f"{value / 60:.0f} h"


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


def _compared_curves(tasks: _Tasks, settings: Mapping[str, Any]) -> pd.DataFrame:
    family = pd.factorize(tasks.table["family"])[0]
    fold = np.random.default_rng(settings["seed"]).permutation(family.max() + 1)[family] % _FOLDS
    x, scores = tasks.x, {}
    for curve in ("logistic", "probit", "asymmetric"):
        of_task = np.zeros(len(x))
        for k in range(fold.max() + 1):
            held = fold == k
            weight = np.where(held[:, None], 0.0, tasks.weight)
            with double_precision():
                values = weight, tasks.share, x, settings["ridge"], 0.0
                weighed, share, lengths, ridge, none = (as_leaf(v, np.float64) for v in values)
                parts = kernel.line(weighed, share, lengths, ridge, none, curve)
                intercept, slope, centre = parts
                p = np.asarray(kernel.success(curve, intercept + slope * (x[:, None] - centre)))
            p = np.clip(p, 1e-4, 1 - 1e-4)
            each = tasks.weight * (xlogy(tasks.share, p) + xlog1py(1 - tasks.share, -p))
            solved = (weight * tasks.share).sum(0)
            usable = (solved > 0) & (solved < weight.sum(0))  # other agents have no curve
            of_task += np.where(held, each[:, usable].sum(1), 0.0)
        scores[curve] = np.bincount(family, of_task) / len(tasks.agents)
    total = {curve: x.sum() for curve, x in scores.items()}
    best = max(total, key=lambda name: total[name])
    rows = [
        {
            "curve": curve,
            "log_score": total[curve],
            "worse_by": total[best] - total[curve],
            "standard_error": float(np.std(scores[best] - scores[curve], ddof=1) * np.sqrt(len(scores[best]))),
        }
        for curve in sorted(total, key=lambda name: -total[name])
    ]
    return pd.DataFrame(rows)


def _trend(
    found: TimeHorizons, released: Mapping[str, Any], level: float, frontier: bool, since: Any, until: Any,
    at: Sequence[Any],
) -> HorizonTrend:  # fmt: skip
    line = line_by_date(found.joint.of(level=level), "agent", released, frontier, since, until, at, found.level)
    (slope, low, high) = line.slope
    with np.errstate(divide="ignore"):
        days = 1 / np.array([slope, high, low])
    doubling = dict(zip(("days", "lower", "upper"), days.tolist(), strict=True))
    if low <= 0:
        doubling["upper"] = np.inf
    ends = {"estimate": "horizon", "lower": "lower", "upper": "upper"}
    forecast = line.forecast.rename(columns=ends).assign(**{x: 2 ** line.forecast[y] for y, x in ends.items()})
    agents = line.points.rename(columns={"estimate": "horizon"})
    agents[["horizon", "fitted"]] = 2 ** agents[["horizon", "fitted"]]
    settings = {"level": level, "frontier": frontier, "since": since, "until": until}
    return HorizonTrend(doubling, agents, forecast, found.level, settings, line.warnings)


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
