"""Tables of the measures: a row per evaluator, intervals from the resamples, and warnings about both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.evaluators.model_scores import OK, ModelScores, of_evaluators
from jaxeval.evaluators.resamples import Resampling
from jaxeval.resampling.strata import small_strata_text
from jaxeval.show.table import Table
from jaxeval.statistics.comparison import draw_bounds
from jaxeval.statistics.quantiles import centred
from jaxeval.wording import counted, visible_line

#: Settings that tables and draws show.
SHOWN = ("n_resamples", "resample", "strata", "level", "seed")
#: Percentile intervals over fewer models say little.
FEW_MODELS = 10
_ROUNDING = 1e-9  # a number so little outside its interval, as a share of the number, counts as inside


def interval_columns(
    values: Float, settings: Resampling, least: float, most: float, centre: bool = True
) -> dict[str, Any]:
    """Give columns ``lower, upper, failed_share`` of (1 + B, ...) ``values``, the data's first; none without resamples.

    A resample without a number counts as ``least`` in the lower end and as ``most`` in the upper one. Resamples that
    recompute scores are `centred`; ``centre=False`` leaves them alone, if they already are.
    """
    if settings.n_resamples == 0:
        return {}
    draws = shown_draws(values, settings) if centre else values[1:]
    lower, upper = draw_bounds(draws, settings.level, (least, most))
    failed = np.isnan(values[1:]).mean(0)
    return {"lower": lower, "upper": upper, "failed_share": failed}


def shown_draws(values: Float, settings: Resampling) -> Float:
    """Return (B, ...) resamples of (1 + B, ...) ``values``: `centred` where scores are recomputed."""
    return values[1:] if settings.resample == "models" else centred(values)


def first_reason(*reasons: tuple[Bool, str]) -> NDArray[Any]:
    """The text of the first condition that holds, else "ok"; the conditions broadcast to the shape of the result."""
    conditions = np.broadcast_arrays(*(condition for condition, _ in reasons))
    return np.select(conditions, [text for _, text in reasons], OK).astype(object)


def evaluator_table(
    scores: ModelScores, inner: Sequence[tuple[str, Any]], columns: dict[str, Any], settings: Resampling
) -> pd.DataFrame:
    """Return a row per evaluator and inner value, with the settings and warnings.

    ``columns`` are of shape (E, inner values), or (E,) where the inner values share them. The intervals are of the
    first column.
    """
    e, n_inner = len(scores.scores), len(inner[0][1]) if inner else 1
    table = pd.DataFrame(
        {
            **({"evaluator": np.repeat(scores.evaluators.to_numpy(), n_inner)} if scores.labelled else {}),
            **{name: np.tile(np.asarray(values), e) for name, values in inner},
            **{name: np.broadcast_to(x.reshape(e, -1), (e, n_inner)).reshape(-1) for name, x in columns.items()},
        }
    )
    table.attrs = table_attributes(scores, table, next(iter(columns)), settings)
    table.attrs["answer"] = "\n".join(_said(table, next(iter(columns)), [name for name, _ in inner]))
    return Table.of(table, f"Evaluators: {next(iter(columns)).replace('_', ' ')}")


def _said(table: pd.DataFrame, name: str, inner: Sequence[str]) -> Iterator[str]:
    """A sentence for each evaluator: its number with the interval, at the last of the ``inner`` values that has one."""
    known = with_evaluator(table)
    known = known[known[name].notna()]
    for evaluator, rows in known.groupby("evaluator", sort=False):
        row = rows.iloc[-1]
        ends = row.get("lower", np.nan), row.get("upper", np.nan)
        interval = "" if np.isnan(ends[0]) else f" ({ends[0]:.3g} to {ends[1]:.3g})"
        at = "".join(f" at {text.replace('_', ' ')} {row[text]}" for text in inner)
        who = f"{visible_line(evaluator)}: " if "evaluator" in table else ""
        yield f"{who}{name.replace('_', ' ')}{at} is {row[name]:.3g}{interval}"


def with_evaluator(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table, with an empty name where the one evaluator has none."""
    return table if "evaluator" in table else table.assign(evaluator="")


def table_attributes(scores: ModelScores, table: pd.DataFrame, name: str, settings: Resampling) -> dict[str, Any]:
    """Return ``settings`` and ``warnings`` of a table whose intervals are of the column ``name``."""
    shown = {key: getattr(settings, key) for key in SHOWN}
    warnings = [*_warnings(scores, table, settings), *_outside(table, name)]
    return {"settings": shown | {"n_models": len(scores.gold)}, "warnings": warnings}


def _warnings(scores: ModelScores, table: pd.DataFrame, settings: Resampling) -> list[str]:
    sentences = []
    n, missing = scores.n_models, scores.n_missing
    if missing.any():
        left = [f"{m:,} of {k + m:,}" for k, m in zip(n, missing, strict=True)]
        sentences.append(
            "models that lack one of the two scores are left out: " + of_evaluators(scores, missing > 0, left)
        )
    few = n < FEW_MODELS
    if few.any() and settings.n_resamples and settings.resample != "items":
        sentences.append(
            f"intervals over fewer than {FEW_MODELS} models say little: "
            + of_evaluators(scores, few, [counted(k, "model") for k in n])
        )
    strata = settings.item_strata(scores)
    if settings.n_resamples and strata is not None:
        sentences += small_strata_text(np.bincount(strata), "item")
    if "failed_share" in table:
        some = table["failed_share"][(table["failed_share"] > 0) & (table["failed_share"] < 1)]
        if len(some):
            sentences.append(
                f"{len(some):,} of {counted(len(table), 'number')} {'is' if len(some) == 1 else 'are'} missing in some "
                f"resamples, up to {some.max():.1%} of them: those resamples count as the least possible value in the "
                "lower end of the interval and as the greatest in the upper end"
            )
    return sentences


def _outside(table: pd.DataFrame, name: str) -> list[str]:
    """Return a warning of numbers that lie outside their own intervals."""
    ends = ("lower", "upper") if "lower" in table else (f"{name}_lower", f"{name}_upper")
    if ends[0] not in table:
        return []
    slack = _ROUNDING * (1 + table[name].abs())
    below, above = table[name] < table[ends[0]] - slack, table[name] > table[ends[1]] + slack
    n = int((below | above).sum())
    outside = counted(n, "number lies outside its own interval", "numbers lie outside their own intervals")
    return [f"{outside}, of {len(table):,}: resamples are biased there"] if n else []
