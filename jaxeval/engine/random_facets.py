"""Draws of a statistic of one's own that vary with judges, prompts or seeds, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jaxeval.arrays import Float
from jaxeval.engine.statistic import Statistic, StatisticDraws
from jaxeval.engine.weighing import DataRows
from jaxeval.execution.precision import double_precision
from jaxeval.lazy_names import jax
from jaxeval.statistics.random_facets import RandomFacets
from jaxeval.wording import counted


def with_random_facets(
    draws: StatisticDraws, statistic: Statistic, table: DataRows, facets: Sequence[str], cluster: Any, seed: int
) -> StatisticDraws:
    """Move draws (B, K) of rows, or of clusters, by effects of other facets, with the fewest degrees of freedom.

    Raises:
        DataError: a facet is no column, or has one level.
    """
    codes = {name: table.groups(name, "random")[0] for name in facets}
    drawn = ("row", None) if cluster is None else (str(cluster), table.groups(cluster, "cluster")[0])
    of_rows = RandomFacets.of(codes, *drawn)
    effects, dof = of_rows.effects(_influences(statistic, table), len(draws.draws), seed)
    freedom = [x for x in (draws.freedom, *dof[np.isfinite(dof)]) if x is not None]
    return replace(
        draws, draws=draws.draws + effects, freedom=float(min(freedom)) if freedom else None, derivatives=None,
        about=of_rows.about, warnings=(*draws.warnings, *of_rows.warnings),
        settings={**draws.settings, "random": list(facets)},
    )  # fmt: skip


def _influences(statistic: Statistic, table: DataRows) -> Float:
    """Return (N, K) influences of rows, of which the statistic is about the mean.

    Raises:
        ValueError: the statistic has no derivatives by its weights.
    """
    try:
        with double_precision():
            slopes = jax.jacrev(lambda weights: statistic(weights, table.arrays))(np.ones(table.n))
    except ValueError as error:
        if "Reverse-mode" not in str(error):
            raise
        raise ValueError(
            f"{statistic.name} has a loop of unknown length, through which JAX finds no derivatives in reverse: random "
            f"facets of {counted(table.n, 'row')} need a loop of a given length (jax.lax.fori_loop, jax.lax.scan)"
        ) from None
    slopes = np.asarray(slopes, float)
    return (slopes - slopes.mean(1, keepdims=True)).T * table.n
