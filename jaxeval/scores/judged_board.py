"""Leaderboards and differences of scores that a judge gave and human labels correct: judge accuracies, ranked."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.accuracy import influence
from jaxeval.accuracy.belief import usual_estimator
from jaxeval.accuracy.estimates import ESTIMATORS, contributions, degrees, standard_errors
from jaxeval.accuracy.judge_accuracy import JudgeAccuracy
from jaxeval.accuracy.model_comparison import compare
from jaxeval.accuracy.statuses import BOUNDED, STATUSES
from jaxeval.arrays import Bool, Float
from jaxeval.scores.paired_tests import Alternative, student_p
from jaxeval.show.boards import score_answers
from jaxeval.show.table import Table
from jaxeval.statistics.quantiles import student_quantile
from jaxeval.wording import counted, did_you_mean, named

_SHOWN_FIRST = ("category", "rank", "model", "score", "lower", "upper", "standard_error", "tier")


def judged_leaderboard(
    accuracy: JudgeAccuracy, judge: str | None, estimator: str | None, simultaneous_ranks: bool
) -> pd.DataFrame:
    """Return `score_leaderboard`'s table of judge accuracies: closed-form intervals, and ranks from joint draws."""
    level = accuracy.settings.level
    judge, estimator = _checked(accuracy, judge, estimator)
    tables = []
    for name in accuracy.slices:
        part = accuracy.of(name or "all") if len(accuracy.slices) > 1 else accuracy
        joint = part.joint.of(judge=judge, estimator=estimator)
        joint = replace(joint, freedom=_freedom(part, judge, estimator, np.isfinite(joint.estimate)))
        of_judge = part.table[(part.table["judge"] == judge) & (part.table["estimator"] == estimator)]
        rows = of_judge.set_index("model").loc[joint.names]
        table = pd.DataFrame({
            "model": joint.names,
            "score": rows["estimate"].to_numpy(),
            "lower": rows["lower"].to_numpy(),
            "upper": rows["upper"].to_numpy(),
            "standard_error": _errors(part, judge, estimator, rows["status"]),
            "n_items": rows["n_test"].to_numpy(),
            "rank": joint.rank().array,
            **{end: x.array for end, x in joint.rank_sets(level, simultaneous_ranks).items()},
            "tier": joint.tiers(level).array,
            "flags": rows["status"].where(rows["status"] != "ok", "").to_numpy(),
        })  # fmt: skip
        order = np.lexsort([table["model"].astype(str), table["rank"].to_numpy(float, na_value=np.inf)])
        table = table.iloc[order]
        if len(accuracy.slices) > 1:
            table.insert(0, "category", name or "all")
        tables.append(table)
    board = pd.concat(tables, ignore_index=True)
    settings = {
        "judge": judge, "estimator": estimator, "level": level, "n_resamples": accuracy.settings.n_resamples,
        "seed": accuracy.settings.seed, "simultaneous_ranks": bool(simultaneous_ranks),
    }  # fmt: skip
    board.attrs = {"answer": "\n".join(score_answers(board)), "warnings": list(accuracy.warnings), "settings": settings}
    title = f"Scores of {counted(board['model'].nunique(), 'model')} by {judge}"
    return Table.of(board, title, _SHOWN_FIRST, "score")


def _freedom(accuracy: JudgeAccuracy, judge: str, estimator: str, rated: Bool) -> float | None:
    """Return the fewest degrees of freedom of a rated (M,) model's score's variance; None where there is no formula.

    The variance is a sum of squares of independent contributions, of which few labels make most: its degrees are those
    of a chi-square with its mean and variance. Clusters have theirs, too.
    """
    (part,) = accuracy.slices.values()
    items = contributions(part, accuracy.binary).get(estimator)
    if items is None or not rated.any():
        return None
    k, units = int(accuracy.judges.get_loc(judge)), part.judged.data.units
    squares = np.concatenate([x[:, rated, k] ** 2 for x in influence.together(items, units)])
    total, n = squares.sum(0), (squares > 0).sum(0)
    known = total > 0
    spread = (squares**2).sum(0)[known] - total[known] ** 2 / n[known]
    with np.errstate(divide="ignore"):
        degrees = 2 * total[known] ** 2 / np.maximum(spread, 0.0)
    fewest = min([*degrees, *influence.freedom(items, units)[rated, k]])
    return None if np.isinf(fewest) else float(max(fewest, 1.0))


def _errors(accuracy: JudgeAccuracy, judge: str, estimator: str, status: pd.Series) -> Float:
    """Return closed-form errors of models' scores; NaN where nothing bounds a score, or there is no formula."""
    (part,) = accuracy.slices.values()
    errors = standard_errors(part, accuracy.binary).get(estimator)
    if errors is None:
        return np.full(len(status), np.nan)
    of_models = pd.Series(errors[:, accuracy.judges.get_loc(judge)], accuracy.models)
    return np.where(status.isin(BOUNDED), of_models[status.index], np.nan)


def judged_differences(
    accuracy: JudgeAccuracy, pairs: Sequence[Sequence[int]], judge: str | None, estimator: str | None,
    margin: float | None, alternative: Alternative,
) -> list[dict[str, Any]]:  # fmt: skip
    """Return a `ScoreComparison`'s fields for each pair of models; tests are those of intervals, in closed form."""
    judge, estimator = _checked(accuracy, judge, estimator)
    of_all = accuracy.of("all") if len(accuracy.slices) > 1 else accuracy
    table = compare(of_all, [(of_all.models[a], of_all.models[b]) for a, b in pairs]).table
    rows = table[(table["judge"] == judge) & (table["estimator"] == estimator)].to_dict("records")
    settings = {
        "unit": "item", "judge": judge, "estimator": estimator, "margin": margin, "alternative": alternative,
        "level": of_all.settings.level, "seed": of_all.settings.seed,
    }  # fmt: skip
    k = int(of_all.judges.get_loc(judge))
    return [_difference(of_all, list(pair), k, row, settings) for pair, row in zip(pairs, rows, strict=True)]


def _difference(
    accuracy: JudgeAccuracy, places: list[int], k: int, row: dict[Hashable, Any], settings: dict[str, Any]
) -> dict[str, Any]:
    part, alternative, margin = accuracy.slices[""], settings["alternative"], settings["margin"]
    items = contributions(part, accuracy.binary).get(settings["estimator"])
    dof = float(degrees(part, accuracy.binary, items)[places, k].min())
    quantile = float(student_quantile(settings["level"], dof))
    lower, upper = float(row["lower"]), float(row["upper"])
    inside = row["status"] in BOUNDED and lower > -1 and upper < 1
    centre, error = (lower + upper) / 2, (upper - lower) / 2 / quantile if inside else float("nan")
    of_margin = {}
    if margin is not None:
        non_inferior = student_p(centre + margin, error, dof, "greater")
        inferior, below = (student_p(centre + shift, error, dof, "less") for shift in (margin, -margin))
        of_margin = {"p_non_inferior": non_inferior, "p_inferior": inferior}
        of_margin["p_equivalent"] = float(np.maximum(non_inferior, below))
    judgment = part.test.judgment[:, places, k]
    shared, one = ~np.isnan(judgment).any(1), part.test.answered[:, places].sum(1) == 1
    name = settings["estimator"]
    status = [] if row["status"] == "ok" else [f"{name}: {STATUSES[row['status']]}"]
    how = "not corrected" if name == "naive" else f"corrected by {row['labels']:,.0f} human labels ({name})"
    status.append(f"a judge's scores, {how}: no tests of single items")
    if one.any():
        lacking = counted(int(one.sum()), "item")
        status.append(f"{lacking} that one of the two lacks: each model is scored on its own items")
    return {
        "a": row["model_a"], "b": row["model_b"], "difference": float(row["difference"]), "lower": lower,
        "upper": upper, "standard_error": error, "p_student": student_p(centre, error, dof, alternative), **of_margin,
        "only_a": int((judgment[shared, 0] > judgment[shared, 1]).sum()),
        "only_b": int((judgment[shared, 0] < judgment[shared, 1]).sum()),
        "n_items": int(shared.sum()), "status": tuple(status), "settings": settings,
    }  # fmt: skip


def _checked(accuracy: JudgeAccuracy, judge: str | None, estimator: str | None) -> tuple[str, str]:
    """Return the names of judge and estimator; an error where there is none, or several judges and no choice."""
    judges = list(accuracy.judges)
    if judge is None and len(judges) > 1:
        raise ValueError(
            f"accuracies by {counted(len(judges), 'judge')}: {named(judges)}; choose one (judge=, --only-judge)"
        )
    judge = judges[0] if judge is None else judge
    if estimator is None:
        estimator = usual_estimator(accuracy.settings.sampling, accuracy.binary)
    for what, name, there in (("judge", judge, judges), ("estimator", estimator, list(ESTIMATORS))):
        if name not in there:
            raise ValueError(f"no {what} {name!r}; there are {named(there)}{did_you_mean(name, there)}")
    return judge, estimator
