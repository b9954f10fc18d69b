"""Does one number per model fit the votes? Tests of the fit, and where, how and why it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
import pandas as pd

from jaxeval.arrays import Int
from jaxeval.audits.chance import Chance, share_above, signed_chance, simulated_chance
from jaxeval.audits.dependence import dependence
from jaxeval.audits.explained import explained, n_free, rank_errors
from jaxeval.audits.findings import Finding, Severity
from jaxeval.audits.pair_votes import PairVotes, pair_votes, responses, triads_of
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
from jaxeval.statistics.clusters import few_clusters_text
from jaxeval.statistics.quantiles import checked_level, normal_quantile
from jaxeval.tables.shown import Shown, View, settings_line
from jaxeval.wording import counted, visible_line

_PART = "goodness of fit"
# Of the pairs, this share must expect so many points on both sides for the deviance, which else rejects honest boards.
_DENSE_SHARE, _DENSE_POINTS = 0.8, 5.0
#: Votes of the median pair, below which nobody can tell what share of the log-odds goes in circles.
_FEWEST_FOR_CYCLES = 20
PRESUMES = "it presumes independent votes"


@dataclass(frozen=True, eq=False, repr=False)
class GoodnessOfFit(Shown):
    """How well one number per model fits, and where it does not.

    ``statistic`` is Pearson's X2 of the pairs' points, on ``dof`` degrees of freedom; ``p_value`` is the share of
    simulated boards with as much. ``deviance`` is that from a board on which each pair has its own share of points, and
    ``deviance_p_value`` is NaN where it would mislead; ``reasons`` tell why.

    ``pairs`` has a row per pair, those that stick out most first: ``votes``, ``share`` of the points of the first
    model and the ``expected`` one, ``z``, and ``p_value``, which holds for all pairs at once. ``triads`` has one per
    triad: ``cycle``, its log-odds around (0 where one number per model fits), ``z``, ``p_value`` for all triads at once,
    and ``circular``, whether each of three beats the next.

    ``cyclic_share`` is the share of the squared log-odds of pairs that no strengths explain (Hodge's split, DOI
    10.1007/s10107-010-0419-x), less what chance alone gives, ``cyclic_floor``; ``cyclic_error`` is the standard
    deviation of chance.

    ``dependence`` has a row per test of what results should not hang on: side, features, time. ``explained`` tells how
    much of the misfit other boards remove. ``ranks`` has a row per pair of neighbours: the errors of their gap.
    """

    statistic: float
    dof: int
    p_value: float
    deviance: float
    deviance_p_value: float
    pairs: pd.DataFrame
    triads: pd.DataFrame
    cyclic_share: float
    cyclic_floor: float
    cyclic_error: float
    dependence: pd.DataFrame
    explained: pd.DataFrame
    ranks: pd.DataFrame
    method: str  # how the p-values were found, in words
    reasons: Mapping[str, str]  # by the name of what is not told
    warnings: list[str]
    settings: Mapping[str, Any] = field(repr=False)

    def _shown(self) -> View:
        shown = self.pairs[["model_a", "model_b", "votes", "share", "expected", "z", "p_value"]]
        return View(f"GoodnessOfFit: {_fit_text(self)}", shown, settings_line(self.settings), self.warnings)

    def findings(self) -> list[Finding]:
        """What it says in words, the test first."""
        return _findings(self)


@spelled_out()
def goodness_of_fit(
    battles: Battles | Any,
    *,
    cluster: str | None = None,
    ties: Ties = "half",
    features: Sequence[FeatureLike] = (),
    by: str | Sequence[str] | None = None,
    time: str | None = None,
    level: float = 0.95,
    n_resamples: int = 500,
    seed: int = 0,
    **running: Unpack[RunOptions],
) -> GoodnessOfFit:
    """Whether one number per model fits the votes, where it does not, and what removes the misfit.

    Pearson's X2 compares each pair's points with what the ratings expect, in units of their variance; a tie is half a
    point, and ties take off what the pair's own share of them does. Its p-value comes from boards of the same pairs
    simulated at the fit and refitted (a parametric bootstrap). It presumes independent votes.

    With ``cluster`` the votes of a cluster may hang together in any way. So may votes in what else they have: soft
    targets, weights, ``features`` or a model of ``ties``. Then the p-values come from random signs of the residuals of
    whole clusters, or of single votes.

    Only models with a finite rating take part. docs/goodness-of-fit.md tells how often honest boards are rejected.

    Args:
        battles: `Battles`, or a table with the standard columns.
        cluster: column of who votes, or of the prompts. Without it votes are taken as independent.
        ties: "half" tests ratings that take a tie as half a win; "davidson" or "rao_kupper" those of a model of ties,
            by the points that it expects.
        features: as in `fit_bradley_terry`. The test is of the board that controls for them; ``dependence`` says how
            much hangs on each, and ``explained`` what they remove.
        by: columns of slices, for ``explained``: how much of the misfit is gone within slices.
        time: column of numbers or dates, for ``dependence``: whether models drift.
        level: pairs, triads and tests are told of where p is at most 1 - ``level``.
        n_resamples: simulated boards, at least 19.
        seed: the same seed gives the same boards.
        chunk_size, memory_limit, checkpoint, progress: as in `bootstrap`.

    Raises:
        DataError: a column is missing or cannot be read; there are no more pairs than ratings need, so that any votes
            fit; or as in `fit_bradley_terry`.
        ValueError: a level or a number that is none.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.goodness_of_fit(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=99)
        >>> round(found.statistic, 1), found.dof, found.p_value > 0.05
        (3.9, 3, True)
        >>> found.pairs[["model_a", "model_b", "votes"]].iloc[0].tolist()
        ['model-1', 'model-3', 340]
    """
    checked_level(level)
    checked_integer("n_resamples", n_resamples, 19)
    checked_integer("seed", seed)
    battles = as_battles(battles)
    options = FitOptions(ties=ties, features=features, cluster=cluster, method="auto").checked(battles)
    covariates = design(battles, options.features, options.normalize)
    cells, drawn = whole_board(battles, covariates, options)
    (fitted,) = fit_slices([(battles.models, cells)], covariates, options)
    response = responses(fitted)
    votes = pair_votes(fitted, response.expected)
    dof = int(votes.met.sum()) - n_free(fitted)
    if dof < 1:
        raise DataError(
            f"{counted(int(votes.met.sum()), 'pair')} of {counted(int(fitted.board.active.sum()), 'rated model')} met: "
            "one number per model fits whatever the votes are; more pairs must meet"
        )
    signs = drawn.repeating is not None or options.contextual or not cells.hard
    if not options.contextual:
        plain, plain_votes, plain_drawn = fitted.board, votes, drawn
    else:
        bare = replace(options, features=(), ties="half")
        nothing = design(battles, (), True)
        plain_cells, plain_drawn = whole_board(battles, nothing, bare)
        plain = fit_slices([(battles.models, plain_cells)], nothing, bare)[0].board
        plain_votes = pair_votes(plain, responses(plain).expected)
    triads = triads_of(votes, battles.n_models)
    if signs:
        chance = signed_chance(fitted, response, votes, triads, drawn, n_resamples, seed)
    else:
        chance = simulated_chance(plain, votes, triads, n_resamples, seed, running)
    reasons = _reasons(votes, chance, drawn, by, time)
    settings = {"n_resamples": n_resamples, "seed": seed, "level": float(level), "cluster": cluster, "ties": ties}
    floor, share, error = _cyclic(votes, chance, dof)
    statistic = float(votes.pearson.sum())
    told = "deviance" not in reasons and chance.deviances is not None
    return GoodnessOfFit(
        statistic=statistic,
        dof=dof,
        p_value=float(share_above(statistic, chance.pearson)),
        deviance=chance.deviance,
        deviance_p_value=float(share_above(chance.deviance, chance.deviances)) if told else np.nan,
        pairs=_pair_table(battles.models, votes, chance),
        triads=_triad_table(battles.models, votes, triads, chance),
        cyclic_share=np.nan if "cyclic_share" in reasons else share,
        cyclic_floor=floor,
        cyclic_error=error,
        dependence=dependence(battles, plain, options.features, time, cluster),
        explained=explained(battles, plain_votes, plain, replace(options, ties="half"), by),
        ranks=rank_errors(battles.models, plain, plain_votes, plain_drawn),
        method=_method(signs, cluster),
        reasons=reasons,
        warnings=_warnings(fitted.board, drawn, chance),
        settings=settings,
    )


def _method(signs: bool, cluster: str | None) -> str:
    if cluster is not None:
        return (
            f"by random signs of clusters by {visible_line(cluster)}"
            if signs
            else "by simulated boards of one vote a cluster"
        )
    return f"by random signs of votes; {PRESUMES}" if signs else f"by simulated boards; {PRESUMES}"


def _reasons(
    votes: PairVotes, chance: Chance, drawn: VoteGroups, by: str | Sequence[str] | None, time: str | None
) -> dict[str, str]:
    """Why something is not told, by its name."""
    least = np.minimum(votes.expected, votes.n - votes.expected)[votes.met]
    dense, median = float((least >= _DENSE_POINTS).mean()), float(np.median(votes.votes[votes.met]))
    reasons = {}
    if np.isnan(chance.deviance):
        reasons["deviance"] = reasons["cyclic_share"] = (
            "it is defined for votes of weight 1 that are won, lost or tied, and ratings without features or tie model"
        )
    elif dense < _DENSE_SHARE:
        reasons["deviance"] = (
            f"only {100 * dense:.0f}% of the pairs expect {_DENSE_POINTS:g} points on both sides: of thin pairs the "
            "deviance rejects honest boards"
        )
    elif chance.deviances is None:
        reasons["deviance"] = "random signs say nothing of its spread"
    if "cyclic_share" not in reasons and median < _FEWEST_FOR_CYCLES:
        reasons["cyclic_share"] = (
            f"the median pair has {median:g} votes; of fewer than {_FEWEST_FOR_CYCLES} chance makes most of it"
        )
    if by is None:
        reasons["slices"] = "no columns of slices are named (by=)"
    if time is None:
        reasons["time"] = "no column of times is named (time=)"
    return reasons


def _cyclic(votes: PairVotes, chance: Chance, dof: int) -> tuple[float, float, float]:
    """Its floor, its share less the floor, and the standard deviation of the floor."""
    if chance.cyclics is None or not chance.total > 0:
        return np.nan, np.nan, np.nan
    mean = float(np.nanmean(chance.cyclics))
    noise = mean * int(votes.met.sum()) / dof  # of all log-odds, as many as pairs
    share = (chance.cyclic - mean) / (chance.total - noise) if chance.total > noise else np.nan
    return mean / chance.total, float(np.clip(share, 0, 1)), float(np.nanstd(chance.cyclics)) / chance.total


def _pair_table(models: pd.Index, votes: PairVotes, chance: Chance) -> pd.DataFrame:
    met = np.flatnonzero(votes.met)
    met = met[np.argsort(-np.abs(chance.pair[met]), kind="stable")]
    return pd.DataFrame(
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
            "first": models[votes.first[a]],
            "second": models[second],
            "third": models[third],
            "cycle": np.abs(cycle),
            "z": np.abs(chance.triad[order]),
            "p_value": share_above(np.abs(chance.triad[order]), chance.largest_triad),
            "circular": forward.all(0) | (~forward).all(0),
        }
    )


def _warnings(board: Board, drawn: VoteGroups, chance: Chance) -> list[str]:
    warnings = few_clusters_text(None if drawn.clusters is None else len(drawn.clusters.size))
    left_out = int((~board.active).sum())
    if left_out:
        warnings.append(f"{counted(left_out, 'model')} without a finite rating left out, with their votes")
    if chance.n_failed:
        warnings.append(
            f"{counted(chance.n_failed, 'simulated board')} of {len(chance.pearson):,} could not be refitted, and "
            "count as ones of more misfit"
        )
    return warnings


def _fit_text(found: GoodnessOfFit) -> str:
    fits = "fits" if found.p_value > 1 - found.settings["level"] else "does not fit"
    return (
        f"one number per model {fits} the votes: Pearson's X2 is {found.statistic:,.0f} on "
        f"{counted(found.dof, 'degree', 'degrees')} of freedom (p = {_p(found.p_value)}, {found.method})"
    )


def _p(value: float) -> str:
    return f"{value:.2f}" if value >= 0.095 else f"{value:.3f}"


def _findings(found: GoodnessOfFit) -> list[Finding]:
    alpha = 1 - found.settings["level"]
    misfit = found.p_value <= alpha
    said: list[tuple[Severity, str]] = []
    text = _fit_text(found)
    severity = (
        Severity.REASSURING if not misfit else Severity.SERIOUS if found.statistic > 2 * found.dof else Severity.CAUTION
    )
    said.append((severity, text[0].upper() + text[1:]))
    if np.isfinite(found.deviance_p_value) and (found.deviance_p_value <= alpha) != misfit:
        said.append(
            (Severity.NOTE, f"The deviance says otherwise: {found.deviance:,.0f} with p = {_p(found.deviance_p_value)}")
        )
    odd = found.pairs[found.pairs["p_value"] <= alpha]
    if len(odd):
        row = odd.iloc[0]
        said.append(
            (
                Severity.CAUTION,
                f"{counted(len(odd), 'pair sticks', 'pairs stick')} out of {len(found.pairs):,}, most of all "
                f"{_name(row.model_a)} against {_name(row.model_b)}: {_name(row.model_a)} took {100 * row.share:.1f}% of "
                f"{counted(row.votes, 'vote')}, and its rating says {100 * row.expected:.1f}% (p = {_p(row.p_value)} among all pairs)",
            )
        )
    if np.isfinite(found.cyclic_share):
        clear = found.cyclic_share > 2 * found.cyclic_error
        said.append(
            (
                Severity.CAUTION if misfit and clear and found.cyclic_share > 0.1 else Severity.NOTE,
                f"{100 * found.cyclic_share:.1f}% of the squared log-odds of pairs go in circles, beyond the "
                f"{100 * found.cyclic_floor:.1f}% that chance gives (give or take {100 * found.cyclic_error:.1f} points)",
            )
        )
    circles = found.triads[found.triads["p_value"] <= alpha]
    if len(circles):
        row = circles.iloc[0]
        said.append(
            (
                Severity.CAUTION,
                f"{counted(len(circles), 'triad of models does', 'triads of models do')} not add up of "
                f"{len(found.triads):,}, {int(circles.circular.sum()):,} of them full circles; the clearest is "
                f"{_name(row['first'])} over {_name(row.second)} over {_name(row.third)} over {_name(row['first'])}, "
                f"with {row.cycle:.2f} logits around (p = {_p(row.p_value)} among all triads)",
            )
        )
    tests = found.dependence
    for row in tests[tests["p_value"] * len(tests) <= alpha].itertuples():
        if np.isnan(row.effect):
            told = f"The strengths of models drift with {_name(row.of)}: chi-square {row.statistic:,.0f} on {counted(row.dof, 'degree', 'degrees')} of freedom"
        else:
            what = "who stands on side A" if row.of == "position" else _name(row.of)
            told = (
                f"Results hang on {what}: {row.effect:+.3f} logits, with a standard error of {row.standard_error:.3f}"
            )
        said.append((Severity.CAUTION, f"{told} (p = {_p(row.p_value)})"))
    for row in found.explained.iloc[1:].itertuples() if misfit else ():
        if np.isfinite(row.removed):
            said.append((Severity.NOTE, f"A board {_board(row.board)} removes {100 * row.removed:.0f}% of the misfit"))
    if misfit:
        z = normal_quantile(found.settings["level"])
        apart = {
            name: int((found.ranks["gap"] > z * found.ranks[name]).sum()) for name in ("model_error", "opponents_error")
        }
        ratio = float((found.ranks["opponents_error"] / found.ranks["model_error"]).median())
        lost = apart["opponents_error"] < apart["model_error"]
        said.append(
            (
                Severity.CAUTION if lost else Severity.NOTE,
                f"With other opponents ratings would vary more: errors of gaps are {ratio:.2f} times those of the "
                f"model in the median, and {apart['opponents_error']} instead of {apart['model_error']} of "
                f"{counted(len(found.ranks), 'pair')} of neighbours are told apart",
            )
        )
    return [Finding(_PART, severity, text) for severity, text in said]


def _name(name: Any) -> str:
    return visible_line(name)


def _board(name: str) -> str:
    return name if name.startswith("with ") else f"of {name}" if "slices by" in name else f"with {name}"
