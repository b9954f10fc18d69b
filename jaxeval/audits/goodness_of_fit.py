"""Does one number per model fit the votes? Tests of the fit, and where, how and why it fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pandas as pd

from jaxeval.arrays import Int
from jaxeval.audits.audited import Audited
from jaxeval.audits.chance import Chance, share_above, signed_chance, simulated_chance
from jaxeval.audits.dependence import dependence
from jaxeval.audits.explained import explained, n_free, rank_errors
from jaxeval.audits.goodness_result import GoodnessOfFit
from jaxeval.audits.pair_votes import PairVotes, pair_votes, responses, triads_of
from jaxeval.audits.parts import NotAnsweredError
from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.features import FeatureLike, design
from jaxeval.errors import DataError
from jaxeval.execution.runs import RunOptions
from jaxeval.execution.signatures import spelled_out
from jaxeval.ratings.boards import Board
from jaxeval.ratings.contextual_boards import fit_slices
from jaxeval.ratings.options import FitOptions, Ties
from jaxeval.ratings.slices import whole_board
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.statistics.clusters import effective_clusters, few_clusters_text
from jaxeval.statistics.quantiles import checked_level
from jaxeval.wording import Noun, competitor_settings, counted, visible_line

# For the deviance, this share of the pairs must expect so many points on both sides; else it rejects honest boards.
_DENSE_SHARE, _DENSE_POINTS = 0.8, 5.0
#: If the median pair has fewer votes, nobody can say what share of the log-odds goes in circles.
_FEWEST_FOR_CYCLES = 20
#: Models of a board, beyond which refits would take many minutes.
_MOST_MODELS = 1_000
_PRESUMES = "it presumes independent votes"


@spelled_out()
def goodness_of_fit(
    battles: Battles | Any,
    *,
    cluster: str | None = None,
    ties: Ties = "half",
    features: Sequence[FeatureLike] = (),
    by: str | Sequence[str] | None = None,
    time: str | None = None,
    lengths: tuple[str, str] | None = None,
    level: float = 0.95,
    n_resamples: int = 500,
    seed: int = 0,
    **running: Unpack[RunOptions],
) -> GoodnessOfFit:
    """Whether one number per model fits the votes, where it does not, and what removes the misfit.

    Pearson's X2 compares each pair's points with what the ratings expect, in units of their variance. A tie is half a
    point, and makes the variance of its pair smaller. The p-value comes from boards of the same pairs simulated at the
    fit and refitted (a parametric bootstrap). It presumes independent votes.

    With ``cluster`` the votes of a cluster may depend on each other in any way. The p-values then come from random
    signs of the residuals of whole clusters. With soft targets, weights, ``features`` or a model of ``ties``, but
    without clusters, they come from random signs of the residuals of single votes.

    It sees results of pairs added up over all votes, and not whose they are: two populations of opposed tastes, half of
    the votes each, were found on 23 % of simulated boards alone. Look at slices, and at `who_votes`, for such.

    Only models with a finite rating take part. docs/goodness-of-fit.md says how often honest boards are rejected.

    Args:
        battles: `Battles`, or a table with the standard columns.
        cluster: column of who votes, or of the prompts. Without it votes are taken as independent.
        ties: "half" tests ratings that take a tie as half a win; "davidson" or "rao_kupper" those of a model of ties,
            by the points that it expects.
        features: as in `fit_bradley_terry`. The test is of the board that controls for them; ``table`` says how much
            results depend on each, and ``explained`` what they remove.
        by: columns of slices, for ``explained``: how much of the misfit is gone within slices.
        time: column of numbers or dates: whether models drift.
        lengths: columns of the lengths of both answers, of side A and of side B: whether results depend on them.
        level: sentences name pairs, triads and tests whose p is at most 1 - ``level``.
        n_resamples: simulated boards, at least 19.
        seed: the same seed gives the same boards.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`.

    Raises:
        DataError: a column is missing or cannot be read; there are no more pairs than ratings need, so that any votes
            fit; or as in `fit_bradley_terry`.
        ValueError: an impossible level or number, more than 1,000 models, or so few clusters or resamples that no
            p-value could be as small as 1 - ``level``.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.goodness_of_fit(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=99)
        >>> round(found.statistic, 1), found.dof, found.p_value > 0.05
        (4.7, 3, True)
        >>> found.pairs[["model_a", "model_b", "votes"]].astype(str).iloc[0].tolist()
        ['model-2', 'model-4', '518']
    """
    checked_level(level)
    checked_integer("n_resamples", n_resamples, 19)
    checked_integer("seed", seed)
    battles = as_battles(battles)
    own = battles.competitor
    if battles.n_models > _MOST_MODELS:
        raise NotAnsweredError(
            f"{own.counted(battles.n_models)} are more than the {_MOST_MODELS:,} whose boards can be simulated and "
            "refitted: test a part of them (Battles.filter(models=...), on the command line --models)"
        )
    options = FitOptions(ties=ties, features=features, cluster=cluster, method="dense").checked(battles)
    covariates = design(battles, options.features, options.normalize)
    cells, drawn = whole_board(battles, covariates, options)
    (fitted,) = fit_slices([(battles.models, cells)], covariates, options)
    response = responses(fitted)
    votes = pair_votes(fitted, response.expected)
    dof = int(votes.met.sum()) - n_free(fitted)
    if dof < 1:
        rated = f"rated {own.one}", f"rated {own.many}"
        raise DataError(
            f"{counted(int(votes.met.sum()), 'pair')} of {counted(int(fitted.board.active.sum()), *rated)} met: "
            f"one number per {own.one} fits whatever the votes are; more pairs must meet"
        )
    if not votes.votes.sum() > 0:
        raise DataError(f"no two {own.many} that met have finite ratings: there is nothing to test")
    if not votes.variance.sum() > 1e-9 * votes.n.sum():
        raise DataError(
            f"all {counted(int(votes.votes.sum()), 'vote is a tie', 'votes are ties')}: nothing varies, and there is "
            "nothing to test"
        )
    signs = drawn.repeating is not None or options.contextual or not cells.hard
    _check_reach(drawn, cluster, n_resamples, level)
    plain, plain_votes, plain_drawn = fitted.board, votes, drawn
    if options.contextual:  # what results depend on, and what removes misfit, is asked of plain ratings
        bare, nothing = replace(options, features=(), ties="half"), design(battles, (), True)
        plain_cells, plain_drawn = whole_board(battles, nothing, bare)
        plain = fit_slices([(battles.models, plain_cells)], nothing, bare)[0].board
        plain_votes = pair_votes(plain, responses(plain).expected)
    triads = triads_of(votes, battles.n_models)
    if signs:
        chance = signed_chance(fitted, response, votes, triads, drawn, n_resamples, seed, running)
    else:
        chance = simulated_chance(plain, votes, triads, n_resamples, seed, running)
    others = explained(battles, plain_votes, plain, replace(options, ties="half"), by)
    reasons = _reasons(votes, chance) | ({"slices": others.no_slices} if others.no_slices else {})
    settings = {"n_resamples": n_resamples, "seed": seed, "level": float(level), "cluster": cluster, "ties": ties}
    floor, share, error = _cyclic(votes, chance, dof)
    statistic = float(votes.pearson.sum())
    p_value = float(share_above(statistic, chance.pearson))
    deviance_p = np.nan
    if "deviance" not in reasons and chance.deviances is not None:
        deviance_p = float(share_above(chance.deviance, chance.deviances))
    tests = [("Pearson's X2", statistic, dof, p_value), ("deviance", chance.deviance, dof, deviance_p)]
    hangs = dependence(battles, plain, options.features, lengths, time, cluster)
    table = pd.concat([pd.DataFrame(tests, columns=["test", "statistic", "dof", "p_value"]), hangs], ignore_index=True)
    return GoodnessOfFit(
        table=table,
        statistic=statistic,
        dof=dof,
        p_value=p_value,
        deviance=chance.deviance,
        deviance_p_value=deviance_p,
        pairs=_pair_table(battles.models, votes, chance, own),
        triads=_triad_table(battles.models, votes, triads, chance),
        cyclic_share=np.nan if "cyclic_share" in reasons else share,
        cyclic_floor=floor,
        cyclic_error=error,
        explained=others.table,
        ranks=rank_errors(battles.models, plain, plain_votes, plain_drawn),
        method=_method(signs, cluster),
        reasons=reasons,
        warnings=_warnings(fitted.board, drawn, chance, own),
        settings=settings,
        competitor=own,
    )


def _check_reach(drawn: VoteGroups, cluster: str | None, n_resamples: int, level: float) -> None:
    """An error if no p-value can be as small as the level asks for: nothing could ever be rejected."""
    clusters, wanted = drawn.repeating, 1 - level + 1e-9
    if clusters is not None and 0.5 ** (len(clusters.size) - 1) > wanted:
        n = counted(len(clusters.size), "cluster")
        raise NotAnsweredError(
            f"random signs of {n} by {visible_line(str(cluster))} give no p-value below "
            f"{0.5 ** (len(clusters.size) - 1):.2g}: too few to test anything at {level:g}"
        )
    if 1 / (n_resamples + 1) > wanted:
        raise NotAnsweredError(
            f"n_resamples={n_resamples} gives no p-value below {1 / (n_resamples + 1):.2g}: take more to test "
            f"anything at {level:g}"
        )


def _method(signs: bool, cluster: str | None) -> str:
    if cluster is None:
        return f"by {'random signs of votes' if signs else 'simulated boards'}; {_PRESUMES}"
    name = visible_line(cluster)
    return f"by random signs of clusters by {name}" if signs else f"by simulated boards, as each {name} has one vote"


def _reasons(votes: PairVotes, chance: Chance) -> dict[str, str]:
    """Why a number is missing, by its name."""
    least = np.minimum(votes.expected, votes.n - votes.expected)[votes.met]
    dense, median = float((least >= _DENSE_POINTS).mean()), float(np.median(votes.votes[votes.met]))
    reasons = {}
    if np.isnan(chance.deviance):
        reasons["deviance"] = reasons["cyclic_share"] = (
            "it is defined for votes of weight 1 that are won, lost or tied, and ratings without features or tie model"
        )
    elif dense < _DENSE_SHARE:
        reasons["deviance"] = (
            f"only {100 * dense:.0f}% of the pairs expect {_DENSE_POINTS:g} points on both sides: with thin pairs the "
            "deviance rejects honest boards"
        )
    elif chance.deviances is None:
        reasons["deviance"] = "random signs say nothing of its spread"
    if "cyclic_share" not in reasons and median < _FEWEST_FOR_CYCLES:
        reasons["cyclic_share"] = (
            f"the median pair has {counted(median, 'vote')}: with fewer than {_FEWEST_FOR_CYCLES} it is mostly chance"
        )
    return reasons


def _cyclic(votes: PairVotes, chance: Chance, dof: int) -> tuple[float, float, float]:
    """Of the cyclic share: its floor, the share less the floor, and the standard deviation of the floor."""
    if chance.cyclics is None or not chance.total > 0:
        return np.nan, np.nan, np.nan
    mean = float(np.nanmean(chance.cyclics))
    noise = mean * int(votes.met.sum()) / dof  # of all log-odds, as many as pairs
    share = (chance.cyclic - mean) / (chance.total - noise) if chance.total > noise else np.nan
    return mean / chance.total, float(np.clip(share, 0, 1)), float(np.nanstd(chance.cyclics)) / chance.total


def _pair_table(models: pd.Index, votes: PairVotes, chance: Chance, competitor: Noun) -> pd.DataFrame:
    met = np.flatnonzero(votes.met)
    met = met[np.argsort(-np.abs(chance.pair[met]), kind="stable")]
    table = pd.DataFrame(
        {
            "model_a": models[votes.first[met]],
            "model_b": models[votes.second[met]],
            "votes": votes.votes[met].astype(np.int64),
            "share": votes.points[met] / votes.n[met],
            "expected": votes.expected[met] / votes.n[met],
            "z": chance.pair[met],
            "p_value": share_above(np.abs(chance.pair[met]), chance.largest_pair),
        }
    )
    table.attrs = {"settings": competitor_settings(competitor)}  # for figures
    return table


def _triad_table(models: pd.Index, votes: PairVotes, triads: Int, chance: Chance) -> pd.DataFrame:
    order = np.argsort(-np.abs(chance.triad), kind="stable")
    a, b, c = triads[:, order]
    log_odds = np.log((votes.points + 0.5) / (votes.n - votes.points + 0.5))
    cycle = log_odds[a] + log_odds[b] - log_odds[c]
    forward, back = np.stack([log_odds[a], log_odds[b], -log_odds[c]]) > 0, cycle < 0
    second, third = (
        np.where(back, y, x) for x, y in ((votes.first[b], votes.second[b]), (votes.second[b], votes.first[b]))
    )
    return pd.DataFrame(
        {
            "model_1": models[votes.first[a]],
            "model_2": models[second],
            "model_3": models[third],
            "cycle": np.abs(cycle),
            "z": np.abs(chance.triad[order]),
            "p_value": share_above(np.abs(chance.triad[order]), chance.largest_triad),
            "circular": forward.all(0) | (~forward).all(0),
        }
    )


def _warnings(board: Board, drawn: VoteGroups, chance: Chance, competitor: Noun) -> list[str]:
    size = None if drawn.clusters is None else drawn.clusters.size
    warnings = [] if size is None else few_clusters_text(len(size), effective_clusters(size))
    left_out = int((~board.active).sum())
    if left_out:
        are, its = ("is", "its") if left_out == 1 else ("are", "their")
        warnings.append(f"{competitor.counted(left_out)} without a finite rating {are} left out, with {its} votes")
    if chance.n_failed:
        count = "counts as one" if chance.n_failed == 1 else "count as ones"
        warnings.append(
            f"{chance.n_failed:,} of {counted(len(chance.pearson), 'simulated board')} could not be refitted, and "
            f"{count} of more misfit"
        )
    return warnings


def audited_goodness_of_fit(audited: Audited) -> GoodnessOfFit:
    """The same as a part of an audit."""
    own = audited.options
    return goodness_of_fit(
        audited.battles, cluster=own.cluster, ties=own.ties, features=own.features, by=own.by or None,
        time=audited.time, lengths=own.lengths, level=own.level, n_resamples=own.n_resamples, seed=own.seed,
        **audited.running,
    )  # fmt: skip
