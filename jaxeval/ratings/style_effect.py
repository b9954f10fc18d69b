"""What controlling for covariates does to a board: how far each model moves, and what it costs in variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd

from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.features import FeatureLike, checked_features
from jaxeval.execution.signatures import spelled_out
from jaxeval.options.resampling import RunningOptions
from jaxeval.ratings.bootstrap import bootstrap
from jaxeval.ratings.contextual_fit import ContextualBootstrap
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.show.table import Table
from jaxeval.wording import competitor_settings

if TYPE_CHECKING:
    from jaxeval.options.arguments import StyleEffectArguments


@spelled_out(BootstrapOptions, RunningOptions, without="by")
def style_effect(
    battles: Battles | Any,
    features: Sequence[FeatureLike],
    *,
    level: float = 0.95,
    min_battles: int = 0,
    **options: Unpack[StyleEffectArguments],
) -> pd.DataFrame:
    """Ratings with and without the covariates, from the same resamples.

    Args:
        battles: `Battles`, or a table with the standard columns.
        features: as in `bootstrap`.
        level: of the intervals of the shifts.
        min_battles: models with fewer battles take no rank, as in `leaderboard`; figures leave them out.
        **options: of `bootstrap`, by its names and with its defaults. A ``checkpoint`` gets a folder for each board.

    Returns:
        A row per model, by controlled rating: ``rating`` controlled, ``rating_plain``, ``shift`` with ``shift_lower``
        and ``shift_upper`` (Elo; the percentile interval of the paired draws), ``rank``, ``rank_plain``,
        ``standard_error``, ``standard_error_plain`` and ``variance_ratio``, the cost of controlling. ``attrs`` holds
        ``coefficients`` (a list of records), ``warnings`` and ``settings``.

    Raises:
        ValueError: there are no features; else as in `bootstrap`.

    Examples:
        >>> import jaxeval, numpy as np
        >>> votes = jaxeval.simulate_votes(2_000, 4, seed=0)
        >>> longer = np.random.default_rng(0).normal(size=2_000) + (votes["model_a"] == "model-1")
        >>> effect = jaxeval.style_effect(votes.assign(length=longer), ["length"], n_resamples=100)
        >>> effect[["rank", "rank_plain"]].astype(int).to_numpy().tolist()
        [[1, 1], [2, 2], [3, 3], [4, 4]]
        >>> effect.attrs["coefficients"][0]["feature"]
        'length'
    """
    features = checked_features(features, 0.0)
    if not features:
        raise ValueError("no features: there is nothing to control for")
    battles = as_battles(battles)
    kept, boards = options.get("checkpoint"), []
    # The same rows, and so the same draws; without control the coefficients are held at 0.
    for name, feature_ridge in {"controlled": options.get("feature_ridge", 0.0), "plain": np.inf}.items():
        options["feature_ridge"] = feature_ridge
        options["checkpoint"] = Path(kept) / name if isinstance(kept, str | PathLike) else kept
        boards.append(bootstrap(battles, features=features, **options))
    controlled, plain = boards
    assert isinstance(controlled, ContextualBootstrap)
    shift = controlled.joint - plain.joint
    bounds = shift.interval(level)
    error, error_plain = controlled.standard_errors, plain.standard_errors
    table = pd.DataFrame(
        {
            "model_name": controlled.models,
            "rating": controlled.fit.ratings.to_numpy(),
            "rating_plain": plain.fit.ratings.to_numpy(),
            "shift": shift.estimate,
            "shift_lower": bounds["lower"].to_numpy(),
            "shift_upper": bounds["upper"].to_numpy(),
            **{
                name: board.contrasts.rank(board.ranked(min_battles).to_numpy()).array
                for name, board in (("rank", controlled), ("rank_plain", plain))
            },
            "standard_error": error.to_numpy(),
            "standard_error_plain": error_plain.to_numpy(),
            "variance_ratio": (error / error_plain).to_numpy() ** 2,
        }
    )
    table = table.sort_values("rating", ascending=False, ignore_index=True, kind="stable")
    table.attrs = {
        "coefficients": controlled.coefficients(level).reset_index().to_dict("records"),
        "warnings": list(dict.fromkeys([*controlled.warnings, *plain.warnings])),
        "settings": {
            **asdict(controlled.settings),
            "level": float(level),
            **competitor_settings(controlled.competitor),
        },
    }
    return Table.of(table, "Ratings with style control and without")
