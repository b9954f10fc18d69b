"""Draws that vary with judges, prompts or seeds, too: effects of facets on a statistic, by the influences of rows.

A statistic is about its estimate plus the mean of N influences. Variance components of influences (see
`jaxeval.statistics.variance_components`) say how much levels of a facet move it; these are matrices (K, K), so that
differences between its numbers vary as they should. Draws of rows are moved by normal effects of such components.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxeval.arrays import Float
from jaxeval.engine.statistic import Statistic, StatisticDraws
from jaxeval.engine.weighing import DataRows
from jaxeval.errors import DataError
from jaxeval.execution.precision import double_precision
from jaxeval.statistics.variance_components import RESIDUAL, design_of, normal_effects, sentence_of, warnings_of
from jaxeval.wording import counted

_STREAM = 0x6661636574  # of the effects, beside that of the rows


def with_random_facets(
    draws: StatisticDraws, statistic: Statistic, table: DataRows, facets: Sequence[str], cluster: Any, seed: int
) -> StatisticDraws:
    """Move draws (B, K) of rows, or of clusters, by effects of other facets, with the fewest degrees of freedom.

    Raises:
        DataError: a facet is no column, or has one level.
    """
    factors = {} if cluster is None else {str(cluster): table.groups(cluster, "cluster")[0]}
    levels = {}
    for name in facets:
        factors[name], index = table.groups(name, "random")
        levels[name] = len(index)
    try:
        design = design_of(factors)
    except ValueError as error:
        raise DataError(f"{error}: leave one out of random=") from None
    if design.alone:
        (text, *_) = warnings_of(design, {name: levels[name] for name in facets if name in design.alone})
        raise DataError(text)
    values = _influences(statistic, table)
    components = design.components(design.squares(values))
    dof = design.error(np.diagonal(components, axis1=1, axis2=2).copy())[1]
    rng = np.random.default_rng([seed, _STREAM])
    moved = draws.draws.copy()
    for k, effect in enumerate(design.effects):
        if effect.factors[0] not in (RESIDUAL, cluster):
            moved += normal_effects(design.spread[k] * components[k], len(moved), rng)
    known = dof[np.isfinite(dof)]
    freedom = [x for x in (draws.freedom, float(known.min()) if len(known) else None) if x is not None]
    rows = {str(cluster) if cluster is not None else "row": design.effects[0].n_levels if cluster else table.n}
    return replace(
        draws, draws=moved, freedom=min(freedom) if freedom else None, derivatives=None,
        about=sentence_of(levels | rows), warnings=(*draws.warnings, *warnings_of(design, levels)),
        settings={**draws.settings, "random": list(facets)},
    )  # fmt: skip


def _influences(statistic: Statistic, table: DataRows) -> Float:
    """(N, K) influences of rows, of which the statistic is about the mean.

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
