"""Time horizons: how long the tasks are, in people's minutes, that an agent solves half of the time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Unpack, get_args

import numpy as np
import pandas as pd

from jaxeval.arrays import Bool
from jaxeval.capability.tasks import (
    Tasks,
    bounds_of,
    compared_curves,
    estimated_spread,
    estimates_of,
    horizons_of,
    other_choices,
    rows_of,
    statistic_of,
    tasks_of,
)
from jaxeval.capability.trends import dated, line_by_date
from jaxeval.checks import check_choice, checked_finite, checked_integer
from jaxeval.engine.draws_of import loo_of
from jaxeval.errors import DataError
from jaxeval.execution.runs import RunOptions
from jaxeval.execution.signatures import spelled_out
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Result, part_of
from jaxeval.show.table import Table
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import counted, named, visible_line

Curve = Literal["logistic", "probit", "asymmetric", "monotone"]
Stage = Literal["family", "task", "run"]


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
    _tasks: Tasks = field(repr=False)
    _bounds: pd.DataFrame = field(repr=False)  # of agents without a number

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each agent and level, the longest horizon first; before it agents who solve too much for a number.

        ``agent``, ``level``, ``horizon``, ``lower``, ``upper`` (minutes), ``typical``, ``typical_lower``,
        ``typical_upper`` (with ``task_spread``), ``rank_best``, ``rank_worst``, ``n_tasks``, ``n_runs``, ``success``
        (weighted share), ``flag``. Agents without a number have one bound in place of an interval.
        """
        kinds = {"": self.joint} | ({"typical_": self.typical} if self.typical is not None else {})
        columns: dict[str, Any] = {}
        for head, draws in kinds.items():
            lower, upper = draws.ends(self.level)
            columns |= {head[:-1] or "horizon": 2**draws.estimate, f"{head}lower": 2**lower, f"{head}upper": 2**upper}
        table = pd.DataFrame(columns, self.joint.names)
        for level in self.settings["levels"]:
            of_level = self.joint.of(level=level)
            ranks = of_level.ranks(self.level, among=np.isfinite(of_level.estimate))
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
        # Who solves all, so that a horizon is beyond a length, stands above the numbers, and who fails all below them.
        beyond = np.where(missing & table["lower"].notna(), 2, np.where(missing, 0, 1))
        order = table.assign(place=beyond).sort_values(
            ["level", "place", "horizon", "lower", "upper", "success"], ascending=[True, *[False] * 5], kind="stable"
        )
        table = order.drop(columns="place").reset_index(drop=True)
        table.attrs = {"warnings": list(self.warnings), "settings": dict(self.settings)}
        title = f"Time horizons of {counted(len(tasks.agents), 'agent')} (minutes)"
        return Table.of(table, title, tuple(table)[:5], "horizon", time="horizon typical")

    def _shown(self) -> Answer:
        table = self.table
        levels = self.settings["levels"]
        title = f"TimeHorizons: {counted(len(self._tasks.agents), 'agent')}, {counted(len(self._tasks.table), 'task')}"
        shown = table[table["level"] == levels[0]].drop(columns="level").set_index("agent")
        return Answer(title, shown, self.settings, self.warnings)

    def _in_full(self, view: Answer) -> Answer:
        return view._replace(tables={"horizons": self.table}, parts=[part_of("horizons", self.table)])

    def _figures(self) -> dict[str, tuple[Any, ...]]:
        return {"horizons": ("plot_success_curves", self)}

    def _sentences(self) -> list[str]:
        level = self.settings["levels"][0]
        table = self.table
        table = table[table["level"] == level]
        beyond = table[table["horizon"].isna() & table["lower"].notna()]
        table = table[table["horizon"].notna()]
        longer = [f"{visible_line(row.agent)} (over {spelled_minutes(row.lower)})" for row in beyond.itertuples()]
        notes = [f"too seldom fails for a number: {named(longer, 3)}"] if longer else []
        if not len(table):
            return [*notes, "no agent has both successes and failures enough for a horizon"]
        first = table.iloc[0]
        ends = f" ({spelled_minutes(first['lower'])} to {spelled_minutes(first['upper'])})"
        ends = "" if np.isnan(first["lower"]) and np.isnan(first["upper"]) else ends
        sentences = [
            f"{visible_line(first['agent'])} solves {level:.0%} of tasks of {spelled_minutes(first['horizon'])}{ends}"
        ]
        if len(table) > 1:
            ratio = self.ratio(first["agent"], table["agent"].iloc[1], level)
            verdict = "longer than" if ratio["lower"] > 1 else "statistically tied with"
            ends = "" if np.isnan(ratio["lower"]) else f" ({ratio['lower']:.3g} to {ratio['upper']:.3g})"
            second = visible_line(table["agent"].iloc[1])
            sentences.append(f"its horizon is {verdict} that of {second}: {ratio['ratio']:.3g} times{ends}")
        return [*notes, *sentences]

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
        name = pd.Index([f"{agent} / {other}"])
        one, two = (self.joint.of(agent=x, level=level) for x in (agent, other))
        one, two = (Draws(name, x.estimate, x.draws, freedom=x.freedom) for x in (one, two))
        difference = one - two
        ends = difference.interval(self.level).iloc[0]
        return {"ratio": float(2 ** difference.estimate[0]), **{end: float(2**x) for end, x in ends.items()}}

    def influence(self, level: float | None = None) -> pd.DataFrame:
        """Return by what factor each horizon changes if a task is left out: a row for each task, a column an agent.

        The tasks that change most come first.
        """
        level = self.settings["levels"][0] if level is None else level
        statistic = statistic_of({**self.settings, "task_spread": None}, [level])
        data = rows_of(self._tasks, (), self.settings["minutes_sd"], self.settings["seed"])
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
        levels = [self.settings["levels"][0] if level is None else level]
        known = np.isfinite(self.joint.of(level=levels[0]).estimate)
        choices = ("as asked", self._tasks, self.settings), *other_choices(self._tasks, self.settings, get_args(Curve))
        rows = {
            name: np.where(known, 2 ** estimates_of(tasks, settings, levels)[:, 0], np.nan)
            for name, tasks, settings in choices
        }
        return pd.DataFrame.from_dict(rows, orient="index", columns=self._tasks.agents).rename_axis("choice")

    def curve_points(self, levels: Sequence[float] = tuple(np.linspace(0.02, 0.98, 49))) -> pd.DataFrame:
        """Return the lengths at which each curve crosses many levels: ``agent``, ``level``, ``minutes``.

        Levels that a curve does not cross are missing, and so are agents without a horizon.
        """
        points = 2 ** estimates_of(self._tasks, self.settings, levels)
        points[~np.isfinite(self.joint.of(level=self.settings["levels"][0]).estimate)] = np.nan
        names = pd.MultiIndex.from_product([self._tasks.agents, levels], names=["agent", "level"])
        table = pd.DataFrame({"minutes": points.reshape(-1)}, names).reset_index()
        return table[np.isfinite(table["minutes"]) & (table["minutes"] > 0)].reset_index(drop=True)

    def by_length(self, n_bins: int = 8) -> pd.DataFrame:
        """Return each agent's weighted share of success among tasks of about one length.

        ``agent``, ``minutes`` (geometric mean), ``success``, ``standard_error`` (between tasks), ``n_tasks``. Every bin
        has about as many tasks.
        """
        checked_integer("n_bins", n_bins, 1)
        tasks, rows = self._tasks, []
        place = np.argsort(np.argsort(tasks.x, kind="stable"), kind="stable") * n_bins // len(tasks.x)
        for a, agent in enumerate(tasks.agents):
            for k in range(n_bins):
                within = (place == k) & (tasks.weight[:, a] > 0)
                if within.any():
                    w = tasks.weight[within, a] / tasks.weight[within, a].sum()
                    share = tasks.share[within, a]
                    mean = w @ share
                    error = np.sqrt((w**2) @ (share - mean) ** 2) if within.sum() > 1 else np.nan
                    rows.append((agent, 2 ** (w @ tasks.x[within]), mean, error, int(within.sum())))
        return pd.DataFrame(rows, columns=["agent", "minutes", "success", "standard_error", "n_tasks"])

    def curves(self) -> pd.DataFrame:
        """Return how well each curve forecasts tasks that it has not seen: by folds of families, a row a curve.

        ``log_score`` is the mean log of the probability of what a run became, weighted as the fit, over all agents:
        the larger, the better. ``worse_by`` and ``standard_error`` compare with the best, by families.
        """
        return compared_curves(self._tasks, self.settings)

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
        return _trend(self, self.joint.of(level=level), released, level, frontier, since, until, at)

    def trend_choices(
        self, released: Mapping[str, Any], *, frontier: bool = True, since: Any = None, until: Any = None
    ) -> pd.DataFrame:
        """Return the doubling time under other choices: a row each, ``choice``, ``days``, ``lower``, ``upper``.

        One thing is changed at a time: the level of success, the curve, the ridge, the weights, whether only the
        frontier counts, and which half of the dates. ``n_agents`` are behind a line; where there are too few agents or
        dates for one, the row is missing. All choices have the same resamples.

        Args:
            released, frontier, since, until: as in `trend`.
        """
        levels, rows = self.settings["levels"], []

        def add(choice: str, joint: Draws, level: float = levels[0], **changed: Any) -> None:
            options = {"frontier": frontier, "since": since, "until": until, **changed}
            try:
                line = _trend(self, joint, released, level, **options)
            except DataError:
                return
            rows.append({"choice": choice, **line.doubling, "n_agents": len(line.agents)})

        first = self.joint.of(level=levels[0])
        add("as asked", first)
        if not rows:
            self.trend(released, frontier=frontier, since=since, until=until)  # says what is wrong
        for level in levels[1:]:
            add(f"level={level:g}", self.joint.of(level=level), level)
        known = np.isfinite(first.estimate)
        for name, tasks, settings in other_choices(self._tasks, self.settings, get_args(Curve)):
            (joint, *_) = horizons_of(tasks, settings, levels[:1], progress=False)
            add(name, _with_unknown(joint, known & np.isfinite(joint.estimate)).of(level=levels[0]))
        add("all agents" if frontier else "frontier alone", first, frontier=not frontier)
        dates = dated(released).loc[lambda x: x.index.isin(first.names[known])].dropna()
        dates = dates[(dates >= (since or dates.min())) & (dates <= (until or dates.max()))]
        add("since the middle date", first, since=dates.median())
        add("until the middle date", first, until=dates.median())
        return pd.DataFrame(rows)


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
    _drawn: tuple[Any, ...] = field(default=(), repr=False)  # what `plots.plot_over_time` takes

    def _in_full(self, view: Answer) -> Answer:
        return view._replace(tables={"trend": self.agents})

    def _figures(self) -> dict[str, tuple[Any, ...]]:
        return {"trend": ("plot_over_time", *self._drawn)}

    def _shown(self) -> Answer:
        title = f"HorizonTrend: {counted(len(self.agents), 'agent')}"
        return Answer(title, self.agents.set_index("agent"), self.settings, self.warnings)

    def _sentences(self) -> list[str]:
        days, low, high = (self.doubling[name] for name in ("days", "lower", "upper"))
        if high < 0:
            return [f"horizons halve every {-days:.0f} days ({-high:.0f} to {-low:.0f})"]
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
    tasks, without_family = tasks_of(runs, columns, weight)
    spread = estimated_spread(tasks.x, tasks.share, tasks.runs) if task_spread == "estimate" else task_spread
    settings = {
        "curve": curve, "levels": list(levels), "ridge": ridge, "weight": weight, "task_spread": spread,
        "minutes_sd": minutes_sd, "resample": list(resample), "n_resamples": n_resamples, "seed": seed,
    }  # fmt: skip
    parts = horizons_of(tasks, settings, levels, **running)
    names, draws = parts[0].names, parts[0]
    bounds, known = bounds_of(tasks, levels, level, draws.estimate)
    warnings = [*draws.warnings] if known.all() else []
    warnings += [] if not without_family else ["no column of families: tasks are resampled one by one, as if unrelated"]
    if not known.all():
        none = names.get_level_values("agent")[~known].unique()
        warnings.append(f"{counted(len(none), 'agent has', 'agents have')} no horizon, see flags: {named(none)}")
    kinds = [replace(_with_unknown(part, known), settings=settings, warnings=tuple(warnings)) for part in parts]
    typical = kinds[1] if len(kinds) == 2 else None
    return TimeHorizons(kinds[0], typical, level, settings, tuple(warnings), tasks, bounds)


def _checked_options(
    levels: Sequence[float], curve: str, task_spread: Any, minutes_sd: float, resample: Sequence[str], ridge: float
) -> tuple[float, ...]:
    levels = tuple(checked_level(level) for level in np.atleast_1d(levels).tolist())
    if not levels or len(set(levels)) < len(levels):
        raise ValueError(f"levels must be shares between 0 and 1, each once, got {levels}")
    check_choice("curve", curve, Curve)
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


def _with_unknown(draws: Draws, known: Bool) -> Draws:
    return replace(draws, estimate=np.where(known, draws.estimate, np.nan), draws=np.where(known, draws.draws, np.nan))


def spelled_minutes(value: float) -> str:
    """Return minutes as people say them."""
    if np.isnan(value):
        return "?"
    for most, size, unit in ((1, 1 / 60, "s"), (60, 1, "min"), (60 * 24, 60, "h")):
        if value < most:
            return f"{value / size:.2g} {unit}"
    return f"{value / 60:.0f} h"


def _trend(
    horizons: TimeHorizons, joint: Draws, released: Mapping[str, Any], level: float, frontier: bool, since: Any,
    until: Any, at: Sequence[Any] = (),
) -> HorizonTrend:  # fmt: skip
    line = line_by_date(joint, "agent", released, frontier, since, until, at, horizons.level)
    (slope, low, high) = line.slope
    with np.errstate(divide="ignore"):
        days = 1 / np.array([slope, high, low])
    doubling = dict(zip(("days", "lower", "upper"), days.tolist(), strict=True))
    if low <= 0 <= high:
        doubling["upper"] = np.inf
    ends = {"estimate": "horizon", "lower": "lower", "upper": "upper"}
    forecast = line.forecast.rename(columns=ends).assign(**{x: 2 ** line.forecast[y] for y, x in ends.items()})
    agents = line.points.rename(columns={"estimate": "horizon"})
    agents = with_kinds(agents, time="horizon fitted")
    agents[["horizon", "fitted"]] = 2 ** agents[["horizon", "fitted"]]
    settings = {"level": level, "frontier": frontier, "since": since, "until": until}
    return HorizonTrend(
        doubling, agents, with_kinds(forecast, "horizon", time="horizon"), horizons.level, settings, line.warnings,
        (horizons, dict(released), frontier),
    )  # fmt: skip
