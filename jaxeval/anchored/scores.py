"""Tables of reference-anchored ratings, from verdicts or from counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, expit, logit

from jaxeval.anchored.elo import AnchoredElo, Scale, anchored_elo, checked_prior, checked_scale
from jaxeval.arrays import Float, Int
from jaxeval.checks import check_choice, check_room, checked_integer
from jaxeval.data.anchored_verdicts import ROLES, AnchoredVerdicts
from jaxeval.data.columns import as_frame, first_place, reject_missing, reject_repeats, require_column
from jaxeval.data.numbers import numbers
from jaxeval.errors import DataError
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.resampling.rows import resampled_sums
from jaxeval.resampling.units import small_strata_text, stratum_of_groups
from jaxeval.show.boards import level_names, plus_minus
from jaxeval.show.table import Table
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import student_quantile
from jaxeval.statistics.random_facets import RandomFacets, reject_confounded
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted, named, visible_line

COUNTS = ("wins", "ties", "losses")
_TIES = {"tie", "draw", "draws", "n_ties", "n_draws"}
_DRAWS = 2**23  # sums of resamples held at a time
_SHOWN = (
    "probability", "probability_lower", "probability_upper", "probability_se", "rating", "rating_lower", "rating_upper",
    "rating_se", "own_lower", "own_upper", "own_se",
)  # fmt: skip


def count_verdicts(verdicts: AnchoredVerdicts, by: str | Sequence[str] = ("model", "judge", "anchor")) -> pd.DataFrame:
    """Return wins, ties and losses of every group, the runs of a prompt averaged first.

    A prompt counts once in a group, however many runs, judges or references it has there. Outcomes between a win and a
    tie, or a tie and a loss, count as that much of each: counts may be fractional. ``squares`` is the sum of the
    prompts' squared mean outcomes.
    """
    group, table = verdicts.groups(by)
    cell, _ = pd.factorize(group * len(verdicts.levels["item"]) + verdicts.number["item"])
    weight = 1 / np.bincount(cell)[cell]
    win, loss = np.maximum(2 * verdicts.outcome - 1, 0), np.maximum(1 - 2 * verdicts.outcome, 0)
    for name, share in zip(COUNTS, (win, 1 - win - loss, loss), strict=True):
        table[name] = np.bincount(group, weight * share, len(table))
    of_cell = np.empty(cell.max() + 1, np.int64)
    of_cell[cell] = group
    mean = np.bincount(cell, weight * verdicts.outcome)
    table["squares"] = np.bincount(of_cell, mean**2, len(table))
    return table.assign(n_items=np.bincount(of_cell, minlength=len(table)))


#: How sentences name the roles of a rating.
ROLE_WORDS = {"judge": "by", "anchor": "over", "task": "on"}


def differing_roles(table: pd.DataFrame) -> list[str]:
    """Return the roles that differ between rows."""
    return [role for role in ROLE_WORDS if role in table and (table[role] != table[role].iloc[0]).any()]


def highest_rated(table: pd.DataFrame, of_mean: bool = False) -> str:
    """Say who is rated highest beside the reference, in a table of anchored ratings; empty where nothing is rated.

    It is above the reference, or below it, where its interval is.
    """
    rated = table[table["rating"].notna()].sort_values("rating", ascending=False, kind="stable")
    if rated.empty:
        return ""
    first = rated.iloc[0]
    interval = plus_minus(first["rating"], first["rating_lower"], first["rating_upper"])
    roles = [f"{ROLE_WORDS[role]} {visible_line(first[role])}" for role in differing_roles(table)]
    who = visible_line(first["model"]) if "model" in table else "the model"
    by = " ".join(["by the mean over the strong judges"] * of_mean + roles)
    end = f" ({interval})" if interval else ""
    beside = rated.iloc[1:]
    for role in ROLE_WORDS:
        if role in beside:
            beside = beside[beside[role] == first[role]]
    alike = beside[~(beside["rating_upper"] < first["rating_lower"])] if "model" in table else beside.iloc[:0]
    level = alike["rating"].to_numpy() == first["rating"]
    equal = list(map(visible_line, alike.loc[level, "model"])) if len(alike) else []
    alike = alike[~level]
    names = named(list(map(visible_line, alike["model"])), 3) if len(alike) else ""
    whose = "their interval" if equal else "its interval"
    side = "above" if first["rating_lower"] > 0 else "yet below" if first["rating_upper"] < 0 else "beside"
    where = f"{'are level, rated' if equal else 'is rated'} highest {side}" if len(table) > 1 else "beside"
    who = level_names(who, equal) if equal else who
    open_ = f"; {whose} overlaps {'that' if len(alike) == 1 else 'those'} of {names}" if names else ""
    return f"{who} {where} the reference: {first['rating']:+.1f} Elo{end}{f', {by}' if by else ''}{open_}"


def anchored_scores(
    data: Any,
    by: str | Sequence[str] = ("model", "judge", "anchor"),
    *,
    prior: float = 0.5,
    level: float = 0.95,
    pool_size: float | str | None = None,
    kappa: float = 1.0,
    link: str | Scale = "logit",
    random: str | Sequence[str] = (),
) -> pd.DataFrame:
    """Return reference-anchored ratings of every group of verdicts, or of every row of a table of counts.

    After "Robust LLM-based scoring via reference-anchored Elo estimation" (anonymous, under review).

    Args:
        data: `AnchoredVerdicts`; or a DataFrame, or any table with the Arrow interface, with the columns ``wins``,
            ``ties`` (0 if absent) and ``losses``, and maybe ``squares`` (as in `anchored_elo`). Its columns "model",
            "judge", "anchor", "task", "item" and "run", as far as there are any, tell its rows apart.
        by: roles that make the groups of verdicts: "model", "judge", "anchor", "task", "run".
        pool_size: prompts that the group's were drawn from, or the column of counts that has it.
        prior: as in `anchored_elo`, like ``level``, ``kappa`` and ``link``.
        random: roles of verdicts, besides those of ``by``, whose values were sampled, too: with "judge" a rating is
            that by judges like these. Intervals and standard errors then come from the variance components of what
            prompts, judges and so on add to a group's rating, with Student's t.

    Returns:
        The table with the fields of `AnchoredElo`, and ``informative``: whether the probability lies in [0.2, 0.8].
        ``attrs["warnings"]`` says where scores that stand side by side are of different prompts.

    Raises:
        DataError: counts are missing, not numeric, all 0, or repeat.
        ValueError: as in `anchored_elo`.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> counts = pd.DataFrame({"model": ["x", "y"], "wins": [60, 45], "ties": [20, 10], "losses": [20, 45]})
        >>> scores = jaxeval.anchored_scores(counts)
        >>> scores[["model", "probability", "rating", "rating_lower", "rating_upper"]].round(1)
          model  probability  rating  rating_lower  rating_upper
        0     x          0.7   145.6          74.4         223.1
        1     y          0.5     0.0         -68.1          68.1
    """
    by = [by] if isinstance(by, str) else list(by)
    facets, verdicts = None, data
    if isinstance(data, AnchoredVerdicts):
        table = count_verdicts(data, by)
        warnings = _unlike_rows(table, by, table["n_items"].to_numpy(), data)
        facets = _facets(data, by, random)
    elif facet_names(random):
        raise ValueError("random facets are of single verdicts, and counts have none: give AnchoredVerdicts")
    else:
        table = _checked_counts(as_frame(data).reset_index(drop=True))
        n = np.sum([numbers(table[c], c) for c in COUNTS if c in table], axis=0)
        warnings = _unlike_rows(table, [role for role in ROLES if role in table], n)
    if isinstance(pool_size, str):
        require_column(table, pool_size)
    wins, ties, losses = (numbers(table[c], c) if c in table else np.zeros(len(table)) for c in COUNTS)
    if (empty := wins + ties + losses == 0).any():
        raise DataError(
            f"{counted(empty.sum(), 'row has', 'rows have')} no outcome, neither win nor tie nor loss"
            f"{first_place(empty)}: leave them out"
        )
    squares = numbers(table["squares"], "squares") if "squares" in table else None
    pool: ArrayLike | None = numbers(table[pool_size], pool_size) if isinstance(pool_size, str) else pool_size
    ratings: AnchoredElo = anchored_elo(
        wins, ties, losses, prior, level=level, pool_size=pool, kappa=kappa, link=link, squares=squares
    )
    scores = table.assign(**{name: np.asarray(getattr(ratings, name)) for name in _SHOWN})
    scores["informative"] = scores["probability"].between(0.2, 0.8)
    scores.attrs["settings"] = {
        "prior": ratings.prior, "level": ratings.level, "link": ratings.link, "kappa": kappa,
        # pandas compares attrs of tables that it joins, and that fails with arrays.
        "pool_size": pool_size if np.isscalar(pool_size) else None if pool_size is None else "by row",
    }  # fmt: skip
    scores.attrs["warnings"] = warnings
    if facets is not None:
        _widen(scores, *facets.errors(_influences(verdicts, by, prior)), level, checked_scale(link))
        scores.attrs["settings"] |= {"random": list(facets.levels)}
        scores.attrs["warnings"] = [*warnings, *facets.warnings]
    answer = highest_rated(scores)
    scores.attrs["answer"] = f"{facets.about}: {answer}" if facets is not None and answer else answer
    return Table.of(scores, "Reference-anchored scores", (*by, "rating", "rating_lower", "rating_upper"))


def _facets(verdicts: AnchoredVerdicts, by: Sequence[str], random: str | Sequence[str]) -> RandomFacets | None:
    """Return the roles that are random, beside items that are drawn whole."""
    names = facet_names(random)
    for name in names:
        check_choice("random", name, ("judge", "anchor", "task", "run"))
        if name in by:
            raise ValueError(f"each {name} has ratings of its own: leave {name!r} out of by=, or out of random=")
    if not names:
        return None
    others = pd.DataFrame({role: number for role, number in verdicts.number.items() if role not in by})
    facets, (group, table) = {name: verdicts.number[name] for name in names}, verdicts.groups(by)
    reject_confounded(facets, [group], table.astype(str).agg(" ".join, axis=1).tolist())
    return RandomFacets.of(facets, "item", verdicts.number["item"], others)


def _influences(verdicts: AnchoredVerdicts, by: Sequence[str], prior: float) -> Float:
    """Return (N, G) what single verdicts add to the logits of the groups' probabilities, N times."""
    group, table = verdicts.groups(by)
    cell, _ = pd.factorize(group * len(verdicts.levels["item"]) + verdicts.number["item"])
    weight, n_rows = 1 / np.bincount(cell)[cell], len(group)
    n, won = np.bincount(group, weight), np.bincount(group, weight * verdicts.outcome)
    p = (won + prior) / (n + 2 * prior)
    moved = weight * (verdicts.outcome - (won / n)[group]) / ((n + 2 * prior) * p * (1 - p))[group]
    influence = np.zeros((n_rows, len(table)))
    influence[np.arange(n_rows), group] = n_rows * moved
    return influence


def _widen(scores: pd.DataFrame, error: Float, dof: Float, level: float, scale: Scale) -> None:
    """Write intervals by standard errors (G,) of logits, with degrees of freedom, on the ``scale`` of the ratings."""
    p = scores["probability"].to_numpy()
    error = error * p * (1 - p)
    slope, reach = scale.derivative(p), student_quantile(level, dof)
    columns = {"probability_se": error, "own_se": error, "rating_se": ELO_PER_LOGIT * slope * error}
    for end, sign in (("lower", -1), ("upper", 1)):
        linked = scale.map(p) + sign * reach * slope * error
        columns[f"rating_{end}"] = ELO_PER_LOGIT * linked
        if scale.inverse is not None:
            columns[f"probability_{end}"] = columns[f"own_{end}"] = scale.inverse(linked)
    lone = scores["n_items"].to_numpy() < 2 if "n_items" in scores else False
    for name, values in columns.items():
        scores[name] = np.where(lone, np.nan, values)


def _checked_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table itself; an error where counts or a role are missing, ties have another name, or rows repeat."""
    require_column(table, "wins", "losses")
    if len(table) == 0:
        raise DataError("the table has no rows")
    named = [c for c in table if str(c).lower() in _TIES]
    if named and "ties" not in table:
        raise DataError(f"no column 'ties', but {named[0]!r}: rename it, or drop it if there were no ties")
    roles = [role for role in ROLES if role in table]
    for role in roles:
        reject_missing(table[role].isna().to_numpy(), role)
    again = table.duplicated(roles).to_numpy() if roles else np.zeros(len(table), bool)
    advice = "add up counts that belong together, tell them apart by a column 'task' or 'run'"
    noun, by = ("row of counts", "rows of counts"), {role: role for role in roles}
    reject_repeats(again, again.argmax(), table, by, noun, advice)
    return table


def _unlike_rows(
    table: pd.DataFrame, roles: Sequence[str], n: NDArray[Any], verdicts: AnchoredVerdicts | None = None
) -> list[str]:
    """Return sentences about rows of fewer prompts ``n``, or tasks, than others under their reference (and task)."""
    if not roles or "item" in roles:  # single items are not compared
        return []
    side = [role for role in ("anchor", "task") if role in roles]
    what, most = "prompts", np.full(len(n), n.max())
    if verdicts is not None and verdicts.named_items:
        of_side, sides = verdicts.groups(side) if side else (np.zeros(len(verdicts.outcome), np.int64), None)
        n_levels = len(verdicts.levels["item"])
        union = np.bincount(pd.unique(of_side * n_levels + verdicts.number["item"]) // n_levels)
        what, most = "items", np.full(len(table), union[0])
        most = most if sides is None else table[side].merge(sides.assign(n=union), "left")["n"].to_numpy()
    elif side:
        most = pd.Series(n).groupby([table[role] for role in side], observed=True).transform("max").to_numpy()
    return _unlike(table, roles, n, most, what) + _unlike_tasks(table, roles)


def _unlike_tasks(table: pd.DataFrame, roles: Sequence[str]) -> list[str]:
    others = [role for role in roles if role != "task"]
    if "task" not in roles or not others:
        return []
    n = table.groupby(others, observed=True, sort=False)["task"].nunique().rename("n").reset_index()
    of_anchor = table.groupby("anchor", observed=True)["task"].nunique() if "anchor" in others else None
    most = np.full(len(n), table["task"].nunique()) if of_anchor is None else of_anchor[n["anchor"]].to_numpy()
    return _unlike(n, others, n["n"].to_numpy(), most, "tasks")


def _unlike(table: pd.DataFrame, roles: Sequence[str], n: NDArray[Any], most: NDArray[Any], what: str) -> list[str]:
    less = n < most * (1 - 1e-9)
    if not less.any():
        return []
    worst = int((n / most).argmin())
    name = ", ".join(f"{role} {table[role][worst]}" for role in roles if table[role][worst] != f"(one {role})")
    return [
        f"{less.sum():,} of {counted(len(n), 'score lacks', 'scores lack')} {what} that others against the same "
        f"reference have (the worst: {name}, with {n[worst]:g} of {most[worst]:g}): side by side they do not compare "
        "like with like"
    ]


@spelled_out()
def bootstrap_scores(
    verdicts: AnchoredVerdicts,
    by: str | Sequence[str] = ("model", "judge", "anchor"),
    *,
    n_resamples: int = 1000,
    prior: float = 0.5,
    level: float = 0.95,
    link: str | Scale = "logit",
    seed: int = 0,
    strata: str | None = None,
    **running: Unpack[RunOptions],
) -> pd.DataFrame:
    """Return `anchored_scores` with intervals of resampled prompts, those of `joint_scores`.

    The Beta interval is for wins and losses of independent prompts. Resampled prompts show how much shorter ties and
    averaged runs make it.

    Args:
        verdicts: with prompts.
        by: roles that make the groups, as in `anchored_scores`.
        level: as in `anchored_elo`, like ``link``.
        n_resamples: as in `joint_scores`, like all other arguments.

    Returns:
        The table with ``boot_lower, boot_upper`` of the probability and ``rating_boot_lower, rating_boot_upper``; they
        are NaN where a group has a single prompt, or ties alone.

    Raises:
        ValueError: as in `anchored_elo`, or there are fewer than two resamples.
        DataError: a prompt lies in several strata.
    """
    joint = joint_scores(verdicts, by, n_resamples=n_resamples, prior=prior, seed=seed, strata=strata, **running)
    table = anchored_scores(verdicts, by, prior=prior, level=level, link=link)
    table["boot_lower"], table["boot_upper"] = joint.interval(level).to_numpy().T
    chosen = checked_scale(link)
    with np.errstate(divide="ignore"):
        for end in ("lower", "upper"):
            table[f"rating_boot_{end}"] = ELO_PER_LOGIT * chosen.map(table[f"boot_{end}"].to_numpy())
    table.attrs["warnings"] = [*table.attrs["warnings"], *joint.warnings]
    return table


@spelled_out()
def joint_scores(
    verdicts: AnchoredVerdicts,
    by: str | Sequence[str] = ("model", "judge", "anchor"),
    *,
    n_resamples: int = 1000,
    prior: float = 0.5,
    seed: int = 0,
    strata: str | None = None,
    random: str | Sequence[str] = (),
    **options: Unpack[RunOptions],
) -> Draws:
    """Give joint draws of the win probabilities of all groups in resampled prompts; the levels of the names are ``by``.

    With "task" in ``by`` each task's prompts are resampled among themselves. A prompt keeps its runs, and the other
    judges or references of its group; they are averaged first. A group with a single prompt has no draws. One that won
    all of its prompts, or none, has those of the Beta distribution of `anchored_elo`, as its resamples are all alike.
    Intervals and differences are widened by Student's quantile, for the median number of prompts of a group.

    Args:
        verdicts: with prompts.
        by: roles that make the groups, as in `anchored_scores`.
        prior: as in `anchored_elo`.
        strata: role, as a rule "task": a resample holds as many prompts of each of its values as there are, as in
            `bootstrap`.
        random: as in `anchored_scores`: draws vary with other judges, references, tasks or runs like these, too.

    Raises:
        ValueError: there are fewer than two resamples, or the prior is not positive.
        DataError: a prompt lies in several strata.

    Examples:
        >>> import jaxeval
        >>> from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts
        >>> frame = simulate_anchored_verdicts(n_items=40, n_judges=1, seed=1)
        >>> joint = jaxeval.joint_scores(jaxeval.AnchoredVerdicts.from_pandas(frame), "model", n_resamples=100)
        >>> joint.tiers().to_dict()
        {'model-1': 1, 'model-2': 2, 'model-3': 3, 'model-4': 4}
    """
    checked_integer("n_resamples", n_resamples, 2)
    checked_integer("seed", seed)
    checked_prior(prior)
    by = [by] if isinstance(by, str) else list(by)
    table, facets = count_verdicts(verdicts, by), _facets(verdicts, by, random)
    group, _ = verdicts.groups(by)
    apart = verdicts.number["task"] if "task" in by else np.zeros(len(group), np.int64)
    parts = []  # of a task's groups, as many as may be held at a time
    lone: list[str] = []
    for rows in pd.Series(apart).groupby(apart).indices.values():
        groups, n_items = np.unique(group[rows]), len(np.unique(verdicts.number["item"][rows]))
        stratum = prompt_strata(verdicts.take(rows), strata)
        lone += small_strata_text(None if stratum is None else np.bincount(stratum), "prompt")
        size = max(1, _DRAWS // max(n_resamples, n_items))
        parts += [(rows, stratum, groups[start : start + size]) for start in range(0, len(groups), size)]

    def identity() -> Identity:
        sizes = [len(part) for *_, part in parts]
        data = verdicts.outcome, group, verdicts.number["item"], apart, [stratum for _, stratum, _ in parts], sizes
        shown = {"n_resamples": n_resamples, "prior": prior}
        return Identity({"seed": seed, "by": by, "strata": strata}, data, shown, noun="verdicts")

    check_room(n_resamples, 8 * len(table))
    draws = np.empty((n_resamples, len(table)))
    with open_run(identity, len(parts) * n_resamples, "resamples of prompts", **options) as run:
        for number, (rows, stratum, part) in enumerate(parts):
            times, outcome = _prompt_means(verdicts, rows, group, part)
            there = [] if (times > 0).all() else [times > 0]  # as a rule half of the columns would be ones
            columns = np.concatenate([outcome, *there], axis=1)
            sums = resampled_sums(columns, n_resamples, seed, "anchored", run=run, part=number, strata=stratum)
            won, n = np.split(sums, 2, axis=1) if there else (sums, float(len(times)))
            draws[:, part] = np.where(n > 0, (won + prior) / (n + 2 * prior), np.nan)
    won, n = table["wins"] + table["ties"] / 2, table[list(COUNTS)].sum(axis=1)
    estimate = ((won + prior) / (n + 2 * prior)).to_numpy()
    n_items = table["n_items"].to_numpy()
    several = n_items > 1
    alike = np.flatnonzero(several & ((won == 0) | (won == n)))  # resamples would feign certainty
    good, size = n_items[alike] * (won > 0).to_numpy()[alike] + prior, n_items[alike] + 2 * prior
    draws[:, ~several] = np.nan  # the one prompt drawn again would, too
    share = np.tile((np.arange(n_resamples)[:, None] + 0.5) / n_resamples, len(alike))
    share = np.random.default_rng(seed).permuted(share, axis=0)  # equal groups have equal intervals, in any order
    draws[:, alike] = betaincinv(good, size - good, share)
    settings: dict[str, Any] = {"n_resamples": n_resamples, "prior": prior, "seed": seed, "strata": strata}
    if facets is not None:
        draws = expit(facets.moved(logit(estimate), logit(draws), _influences(verdicts, by, prior), seed))
        settings["random"] = list(facets.levels)
        lone += [f"draws are {facets.about}", *facets.warnings]
    return Draws(
        table.set_index(by).index, estimate, draws, limits=(0.0, 1.0), warnings=tuple(dict.fromkeys(lone)),
        settings=settings, freedom=float(np.median(n_items[several])) - 1 if several.any() else None,
    )  # fmt: skip


def _prompt_means(verdicts: AnchoredVerdicts, rows: Int, group: Int, part: Int) -> tuple[Int, Float]:
    """Return (I, G) verdicts on every prompt of ``rows`` in each group of a ``part``, and mean outcomes; 0 without any.

    ``group`` (N,) is that of every verdict, and ``part`` (G,) is sorted.
    """
    _, item = np.unique(verdicts.number["item"][rows], return_inverse=True)
    in_part = np.isin(group[rows], part)
    shape = int(item.max()) + 1, len(part)
    cell = item[in_part] * len(part) + np.searchsorted(part, group[rows][in_part])
    times = np.bincount(cell, minlength=shape[0] * shape[1])
    total = np.bincount(cell, verdicts.outcome[rows][in_part], len(times))
    return times.reshape(shape), (total / np.maximum(times, 1)).reshape(shape)


def prompt_strata(verdicts: AnchoredVerdicts, strata: str | None) -> Int | None:
    """Return (I,) the stratum of each item that has verdicts, in the order of their numbers; None without strata.

    The strata are the values of a role, as a rule "task". An unknown role is a ValueError; it is a DataError if the
    verdicts have no column of that role, or a prompt lies in several strata.
    """
    if strata is None:
        return None
    check_choice("strata", strata, ROLES)
    levels = verdicts.levels[strata]
    if len(levels) == 1 and levels[0] == f"(one {strata})":
        raise DataError(
            f"strata={strata!r}, and the verdicts have no column of that role: name it with {strata}= when they are "
            f"read (on the command line --{strata})"
        )
    items, item = np.unique(verdicts.number["item"], return_inverse=True)
    return stratum_of_groups(verdicts.number[strata], item, verdicts.levels["item"][items], strata, "prompt")
