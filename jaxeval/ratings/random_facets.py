"""Boards whose judges, prompts or voters were sampled, too: a rating moves with them, and its draws do.

In simulations of six designs of 20 models and three to eight judges who differ by .1 to .2 logits, intervals of ratings
hold .94 to .96, and those over battles alone .87 to .925 (benchmarks/which_error_boards.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from jaxeval.data.battles import Battles
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.statistics.random_facets import RandomFacets, reject_confounded

B = TypeVar("B", bound=Bootstrap)


def board_facets(options: BootstrapOptions, battles: Battles, facets: Sequence[str]) -> RandomFacets | None:
    """The random facets of rows of judgments, drawn one by one or in clusters; None where there are none."""
    if not facets:
        return None
    if options.by is not None or options.contextual or options.strata is not None or battles.count is not None:
        raise ValueError(
            "random facets are of one board of single judgments: leave out by, features, ties, strata and counts; for "
            "others give draws_of a statistic of your own"
        )
    codes = {name: battles.codes(name)[0] for name in facets}
    reject_confounded(codes, [battles.model_a, battles.model_b], list(map(str, battles.models)))
    cluster = None if options.cluster is None else battles.codes(options.cluster)[0]
    return RandomFacets.of(codes, options.cluster or "battle", cluster, battles.columns)


def with_random_facets(
    boards: B | dict[Hashable, B], battles: Battles, facets: RandomFacets | None
) -> B | dict[Hashable, B]:
    """Move the draws of a board by effects of facets, as far from the ratings as their degrees of freedom ask for.

    Where intervals of the board are those of its fit, as draws of few battles vary too little, draws are made to vary
    as much first. Boards of slices have no facets, and stay.
    """
    if facets is None or isinstance(boards, dict):
        return boards
    board = boards
    settings, fit = board.settings, board.fit
    ratings, draws, unit = fit.ratings.to_numpy(), board.draws, fit.scale.unit
    influence = unit * battles.n_rows * fit._influence[battles.compress(slice(None))[1]]
    if board._by_errors:
        errors = (fit.standard_errors / board.standard_errors).to_numpy()
        draws = ratings + (draws - ratings) * np.where(np.isfinite(errors), errors, 1.0)
    draws = facets.moved(ratings, draws, influence, settings.seed)
    interval: Any = "percentile" if settings.interval == "auto" else settings.interval
    voters = fit.report._voters
    if voters is not None and voters.column in facets.levels:  # whole voters are drawn already
        fit = replace(fit, report=replace(fit.report, _voters=None))
    with np.errstate(invalid="ignore"):
        known = np.isfinite(draws - ratings)
        logits = np.where(known, fit.theta + (draws - ratings) / unit, board.draws_logit)
    return replace(
        board, fit=fit, draws=draws, draws_logit=logits, settings=replace(settings, interval=interval),
        _about=facets.about, _facets=facets.warnings,
    )  # fmt: skip
