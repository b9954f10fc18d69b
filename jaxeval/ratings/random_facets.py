"""Boards whose judges, prompts or voters were sampled, too: a rating moves with them, and its draws do.

A rating is about its estimate plus the sum of what battles add to it (their influences). Variance components of
influences (see `jaxeval.statistics.variance_components`) say how much levels of a facet move it. In simulations of 20
models, 1,000 battles and three to eight judges who differ by .1 to .15 logits, intervals of ratings hold .93 to .965,
and those over battles alone .89 to .92.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from jaxeval.data.battles import Battles
from jaxeval.data.columns import factorize_sorted
from jaxeval.errors import DataError
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.statistics.quantiles import normal_quantile, student_quantile
from jaxeval.statistics.variance_components import (
    RESIDUAL,
    FacetDesign,
    design_of,
    normal_effects,
    sentence_of,
    warnings_of,
)

_STREAM = 0x6661636574  # of the effects, beside that of the battles
_LEVEL = 0.95  # at which intervals of draws are as long as Student's


def facet_design(
    options: BootstrapOptions, battles: Battles, facets: Sequence[str]
) -> tuple[FacetDesign, dict[str, int]]:
    """The random effects of votes, and the number of levels of each facet and of the cluster.

    Raises:
        DataError: a facet is no column, or has one level.
        ValueError: the board is not to be of single votes in the usual model.
    """
    usual = options.link == "logit" and not (options.contextual or options.reweight)
    if not usual or options.strata is not None or battles.weight is not None or battles.count is not None:
        raise ValueError(
            "random facets are of single votes in the usual model: leave out features, ties, link, reweight, strata, "
            "weights and counts; for others give draws_of a statistic of your own"
        )
    names = [*([options.cluster] if options.cluster else []), *facets]
    columns = {name: factorize_sorted(battles.column(name), name) for name in names}
    levels = {name: len(index) for name, (_, index) in columns.items()}
    try:
        design = design_of({name: code for name, (code, _) in columns.items()})
    except ValueError as error:
        raise DataError(f"{error}: leave one out of random=") from None
    if alone := [name for name in facets if name in design.alone]:
        raise DataError(warnings_of(design, {alone[0]: 1})[0])
    return design, levels


def with_random_facets(
    board: Bootstrap, battles: Battles, facets: Sequence[str], design: FacetDesign, levels: Mapping[str, int]
) -> Bootstrap:
    """Move the draws of a board by effects of facets, as far from the ratings as Satterthwaite's degrees ask for."""
    settings, fit, cluster = board.settings, board.fit, board.settings.cluster
    active, theta, m = fit._board.active, np.nan_to_num(fit.theta, posinf=0.0, neginf=0.0), len(fit.theta)
    a, b = battles.model_a, battles.model_b
    inverse = fit._inverse[:m, :m]
    inverse = inverse - (inverse @ fit.scale.weights)[:, None]
    score = (battles.target - 1 / (1 + np.exp(theta[b] - theta[a]))) * (active[a] & active[b])
    influence = len(a) * score[:, None] * (inverse[a] - inverse[b])
    components = design.components(design.squares(influence))
    dof = design.error(np.diagonal(components, axis1=1, axis2=2).copy())[1]
    rng = np.random.default_rng([settings.seed, _STREAM])
    noise = np.zeros(board.draws.shape)
    for k, effect in enumerate(design.effects):
        if effect.factors[0] not in (RESIDUAL, cluster):
            noise += fit.scale.unit * normal_effects(design.spread[k] * components[k], len(noise), rng)
    longer = np.where(dof > 0, student_quantile(_LEVEL, np.where(dof > 0, dof, 1.0)) / normal_quantile(_LEVEL), 1.0)
    ratings = fit.ratings.to_numpy()
    with np.errstate(invalid="ignore"):
        away = (board.draws - ratings + noise) * longer
        known = np.isfinite(away)
        draws = np.where(known, ratings + away, board.draws)
        logits = np.where(known, fit.theta + away / fit.scale.unit, board.draws_logit)
    interval = "percentile" if settings.interval == "auto" else settings.interval
    sampled = {name: levels[name] for name in facets} | {cluster or "battle": levels.get(cluster or "", len(a))}
    voters = fit.report._voters
    if voters is not None and voters.column in facets:  # whole voters are drawn already
        fit = replace(fit, report=replace(fit.report, _voters=None))
    return replace(
        board, fit=fit, draws=draws, draws_logit=logits, settings=replace(settings, interval=interval),
        _about=sentence_of(sampled), _facets=tuple(warnings_of(design, {name: levels[name] for name in facets})),
    )  # fmt: skip
