"""What a board that was resampled, a `Bootstrap`, says in words: who leads, and what its draws leave open."""

from __future__ import annotations

from typing import Any

import numpy as np

from jaxeval.options.boards import BoardInterval
from jaxeval.ratings.thin_models import ENOUGH_BATTLES
from jaxeval.show.boards import leader_line, level_names, with_interval
from jaxeval.wording import counted, named, visible_line


def on_condition(fit: Any) -> str:
    """Return on what condition models are told apart where few voters gave many of the votes; else nothing."""
    return ", if votes of one voter are independent" if fit._advice_on_voters else ""


def leader_sentence(board: Any, level: float, kind: BoardInterval | None, min_battles: int | None) -> str:
    """Return who is first, and from whom the data do not tell it apart: see `Bootstrap.first_sentence`."""
    fit, models, noun = board.fit, board.models, board.competitor
    ratings, ranked = fit._ratings, board._ranked(min_battles)
    provided = on_condition(fit)
    undefeated = _undefeated_leader(board, level)
    if undefeated is not None:
        name, met = visible_line(models[undefeated]), counted(int(fit._n_battles[undefeated]), fit._unit)
        sure = f"ahead of all others at the {100 * level:g}% level{provided}"
        return f"{name} leads: undefeated in {met}, so that it has no finite rating, and {sure}"
    rated = np.isfinite(ratings)
    if not ranked.any() and not fit.converged:
        return f"no {noun.one} can be ranked: the fit {fit.status}, so ratings are no estimates"
    if not rated.any():
        why = f"no two {noun.many} took points off each other, directly or through others"
        return f"no {noun.one} can be ranked: {why}"
    among = np.flatnonzero(ranked if ranked.any() else rated)
    strength = np.round(fit.theta[among], 9)  # equal models differ by rounding
    order = np.lexsort([np.array(list(map(str, models[among]))), -strength])
    first, others = among[order[0]], among[order[1:]]
    lower, upper = board.ends(level, kind)
    name = visible_line(models[first])
    rating = with_interval(ratings[first], lower[first], upper[first])
    alike = board.not_below(first, others, level)
    equal = [visible_line(models[j]) for j in others if strength[among == j][0] == strength[order[0]]]
    above = [visible_line(model) for model in models[ratings == np.inf]]
    if not ranked.any() or (board._loose[first] and len(alike)):
        first_with = f"{level_names(name, equal)} are level, first" if equal else f"{name} is first"
        beside = f" of those with a rating; undefeated: {named(above)}" if above else ""
        return f"too few games to say who leads: {first_with} with {rating}{beside}"
    rest = np.setdiff1d(np.arange(len(ratings)), [first, *others])
    unranked = len(rest) > 0 and len(board.maybe_above(first, rest, level)) > 0
    if len(others) == 0 and (unranked or len(rest) == 0):
        return f"{name} is first with {rating}, the only {noun.one} with a rank"
    if len(alike) and (ratings[~ranked] > ratings[first]).any():
        rating += " of those with a rank"
    line = leader_line(name, rating, [visible_line(models[j]) for j in alike], level, unranked, equal, provided)
    line += f"; undefeated, without a rank: {named(above)}" if above else ""
    apart = [visible_line(model) for model in models[np.isnan(ratings)]]
    return f"{line}; nothing compares {named(apart, 3)} with these" if apart else line


def _undefeated_leader(board: Any, level: float) -> int | None:
    """Return the undefeated model that the penalised fit shows to be ahead of all others, if there is one.

    Without such a fit it is the one that was better often enough in direct meetings alone.
    """
    above = np.flatnonzero((board.fit._standing == "undefeated") & np.isinf(board.fit._ratings))
    if len(above) == 0 or not board.fit.has_penalised:
        return next((int(k) for k in above if board.fit._always_above(int(k), level)), None)
    best = int(above[np.argmax(board.fit.penalised_strengths[above])])
    rest = np.delete(np.arange(len(board.models)), best)
    return None if len(board.maybe_above(best, rest, level)) else best


def draw_warnings(board: Any) -> list[str]:
    """Return what the data or the computation leave open: see `Bootstrap.warnings`."""
    fit, scale = board.fit, board.fit.scale
    messages = [*fit.warnings, *board._facets]
    share = np.where(np.isfinite(fit._ratings), board._degenerate_share, 0)
    if n_lost := np.count_nonzero(share):
        most = np.argsort(-share, kind="stable")[: min(n_lost, 5)]
        worst = ", ".join(f"{board.models[k]} ({share[k]:.1%})" for k in most)
        messages.append(
            f"{board.competitor.counted(n_lost, 'has', 'have')} no finite rating in some resamples (share of "
            f"them), which makes intervals of draws unreliable: {worst}"
        )
    held = scale.weights > 0
    lost = float((board.converged & ~np.isfinite(board.draws_logit[:, held]).any(1)).mean())
    if held.any() and lost > 0:
        lacking = f"{named(board.models[held])} has no" if scale.anchored else f"no {board.competitor.one} has a"
        advice = "Choose another anchor, or a mean" if scale.anchored else "More battles, or a ridge > 0, would help"
        messages.append(
            f"in {lost:.1%} of the resamples {lacking} finite rating to hold the gauge, so that no model has a "
            f"rating there, and intervals of draws cannot tell how far they reach. {advice}"
        )
    without = board._in_gauge._equal_draws & np.isfinite(fit._ratings)
    if without.any():  # the fit may still give an interval
        without &= np.isnan(board.ends(0.95)).any(0)
    equal = board.models[without]
    if len(equal):
        messages.append(
            f"all resamples give the same rating to {named(equal)}: they do not show how uncertain this rating is, "
            "and there is no interval"
        )
    few = fit._n_battles < ENOUGH_BATTLES
    rests_on_few = board.n_reflected and scale.weights[few].sum() > 0.5
    if rests_on_few and scale.anchored:
        messages.append(
            f"the anchor {named(board.models[held])} has fewer than {ENOUGH_BATTLES} battles: relative to it, "
            "intervals of the others may be too short. Differences do not depend on it; take an anchor with more"
        )
    elif rests_on_few:
        plain = scale.gauge == f"mean rating {scale.base:g}"
        advice = 'gauge="votes" (--gauge votes) is a mean by battles' if plain else "take an anchor with more"
        messages.append(
            f"{board.competitor.many} with fewer than {ENOUGH_BATTLES} battles make most of the {scale.gauge} and "
            "err together there: relative to it, intervals of the others may be too short. Differences do not "
            f"depend on it; {advice}"
        )
    failed = int((~board.converged).sum())
    if failed:
        messages.append(f"{failed:,} of {counted(len(board.draws), 'resample')} did not converge and are NaN")
    return messages
