"""Does one number per model fit the votes? Tests of the fit, and where, how and why it fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import pandas as pd

from jaxeval.arrays import Int
from jaxeval.audits.chance import (
    Chance,
    dependence,
    explained,
    n_free,
    rank_errors,
    share_above,
    signed_chance,
    simulated_chance,
)
from jaxeval.audits.parts import Answered, Audited, NotAnsweredError, Severity
from jaxeval.audits.simulated_boards import PairVotes, pair_votes, triads_of
from jaxeval.checks import check_room, checked_integer
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.features import FeatureLike, design
from jaxeval.errors import DataError
from jaxeval.execution.runs import RunOptions
from jaxeval.execution.signatures import spelled_out
from jaxeval.options.boards import Ties
from jaxeval.ratings.boards import Board
from jaxeval.ratings.contextual_boards import fit_slices
from jaxeval.ratings.options import BootstrapOptions, FitOptions
from jaxeval.ratings.slices import make_slices, whole_board
from jaxeval.ratings.vote_groups import VoteGroups
from jaxeval.show.shown import Answer
from jaxeval.statistics.clusters import effective_clusters, few_clusters_text
from jaxeval.statistics.quantiles import checked_level, normal_quantile
from jaxeval.wording import Noun, competitor_settings, counted, visible_line

# For the deviance, this share of the pairs must expect so many points on both sides; else it rejects honest boards.
_DENSE_SHARE, _DENSE_POINTS = 0.8, 5.0
#: If the median pair has fewer votes, nobody can say what share of the log-odds goes in circles.
_FEWEST_FOR_CYCLES = 20
#: Models of a board, beyond which refits would take many minutes.
_MOST_MODELS = 1_000
_PRESUMES = "it presumes independent votes"
# A share of the log-odds in circles that a reader should know of.
_MUCH = 0.1
#: A share in circles with a larger standard deviation is not known.
_LARGEST_ERROR = 0.25


@dataclass(frozen=True, eq=False, repr=False)
class GoodnessOfFit(Answered):
    """How well one number per model fits, and where it does not.

    ``statistic`` is Pearson's X2 of the pairs' points, on ``dof`` degrees of freedom; ``p_value`` is the share of
    boards of chance with so large a one. ``table`` has a row per test: X2; the deviance from a board on which each pair
    has its own share of points; and what results should not depend on: the side, lengths, features, time. ``effect`` is
    in logits. ``reasons`` says why a test, or another number, is missing.

    ``pairs`` has a row per pair, those that stick out most first: ``votes``, ``share`` of the points of the first
    model and the ``expected`` one, ``z``, and ``p_value``, which holds for all pairs at once. ``triads`` has a row per
    triad: ``cycle``, its log-odds around (0 where one number per model fits), ``z``, ``p_value`` for all triads at
    once, and ``circular``, whether each of the three beats the next.

    ``cyclic_share`` is the share of the squared log-odds of pairs that no strengths explain (Hodge's split, DOI
    10.1007/s10107-010-0419-x), beyond ``cyclic_floor``, which chance alone gives. ``cyclic_error`` is the standard
    deviation of chance.

    ``explained`` says how much of the misfit other boards remove. ``ranks`` has a row per pair of neighbours, with
    the standard errors of their gap: of the model, of the sandwich, and with other opponents.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_battles(2_000, 4, seed=0)
        >>> found = jaxeval.goodness_of_fit(votes, n_resamples=99, progress=False)
        >>> print(f"{found.statistic:.2f} on {found.dof}, p {found.p_value:.2f}")
        4.71 on 3, p 0.21
    """

    part = "goodness_of_fit"
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
    explained: pd.DataFrame
    ranks: pd.DataFrame
    method: str  # how the p-values were found, in words
    reasons: Mapping[str, str]  # by the name of what is missing

    def _shown(self) -> Answer:
        return Answer(f"GoodnessOfFit: {self._verdict}", self.table, self.settings, self.warnings)

    def _figures(self) -> Mapping[str, tuple[Any, ...]]:
        return {"shares": ("plot_pair_fit", self.pairs), "residuals": ("plot_pair_residuals", self.pairs)}

    def _said(self) -> Iterator[tuple[Severity, str]]:
        for severity, text in self._clauses():
            yield severity, f"{text[0].upper()}{text[1:]}."

    @property
    def _misfit(self) -> bool:
        return self.p_value <= self._alpha

    @property
    def _alpha(self) -> float:
        return 1 - float(self.settings["level"]) + 1e-9

    @property
    def _verdict(self) -> str:
        return (
            f"one number per {self.competitor.one} {'does not fit' if self._misfit else 'fits'} the votes: Pearson's "
            f"X2 is {self.statistic:,.0f} on {_degrees(self.dof)} ({_p(self.p_value)}, {self.method})"
        )

    def _clauses(self) -> Iterator[tuple[Severity, str]]:
        much = Severity.SERIOUS if self.statistic > 2 * self.dof else Severity.CAUTION
        yield much if self._misfit else Severity.REASSURING, self._verdict
        if np.isfinite(self.deviance_p_value) and (self.deviance_p_value <= self._alpha) != self._misfit:
            text = f"the deviance says otherwise: it is {self.deviance:,.0f} ({_p(self.deviance_p_value)})"
            yield Severity.NOTE, text
        yield from self._of_pairs()
        yield from self._of_circles()
        yield from self._of_tests()
        if self._misfit:
            for row in self.explained.iloc[1:].itertuples():
                share = f"{100 * min(abs(row.removed), 1):.0f}%"
                effect = f"removes {share} of the misfit" if row.removed >= 0 else f"adds {share} to the misfit"
                if np.isfinite(row.removed):
                    yield Severity.NOTE, f"{visible_line(row.board)} {effect}"
            yield self._of_ranks()

    def _of_pairs(self) -> Iterator[tuple[Severity, str]]:
        odd = self.pairs[self.pairs["p_value"] <= self._alpha]
        for row in odd.head(1).itertuples():
            a, b = visible_line(row.model_a), visible_line(row.model_b)
            number = f"{len(odd):,} of {counted(len(self.pairs), 'pair')} {'sticks' if len(odd) == 1 else 'stick'} out"
            yield (
                Severity.CAUTION,
                f"{number}, most of all {a} against {b}: {a} took {100 * row.share:.1f}% of "
                f"the points in {counted(row.votes, 'vote')}, where ratings expect {100 * row.expected:.1f}% "
                f"({_p(row.p_value)} among all pairs)",
            )

    def _of_circles(self) -> Iterator[tuple[Severity, str]]:
        if np.isfinite(self.cyclic_share):
            clear, much = self.cyclic_share > 2 * self.cyclic_error, self._misfit and self.cyclic_share > _MUCH
            yield (
                Severity.REASSURING if not clear else Severity.CAUTION if much else Severity.NOTE,
                f"{100 * self.cyclic_share:.1f}% of the squared log-odds of pairs go in circles, beyond the "
                f"{100 * self.cyclic_floor:.1f}% that chance gives (standard deviation {100 * self.cyclic_error:.1f})",
            )
        odd = self.triads[self.triads["p_value"] <= self._alpha]
        for row in odd.head(1).itertuples():
            triads = f"{counted(len(self.triads), 'triad')} of {self.competitor.many}"
            number = f"{len(odd):,} of {triads} {'does' if len(odd) == 1 else 'do'}"
            names = " over ".join(map(visible_line, (row.model_1, row.model_2, row.model_3, row.model_1)))
            yield (
                Severity.CAUTION,
                f"{number} not add up, {int(odd['circular'].sum()):,} of them with each beating the next; "
                f"the clearest, {names}, has {row.cycle:.2f} logits too many ({_p(row.p_value)} among all triads)",
            )

    def _of_tests(self) -> Iterator[tuple[Severity, str]]:
        tests = self.table.iloc[2:]  # after X2 and the deviance
        for row in tests[tests["p_value"] * len(tests) <= self._alpha].itertuples():
            chance = _p(row.p_value)
            number = f"{row.effect:+.3f} logits (standard error {row.standard_error:.3f}, {chance})"
            text = f"results depend on {visible_line(row.test)}: {number}"
            if np.isnan(row.effect):
                text = f"strengths of {self.competitor.many} drift with {visible_line(row.test)}: chi-square "
                text += f"{row.statistic:,.0f} on {_degrees(row.dof)} ({chance})"
            yield Severity.CAUTION, text

    def _of_ranks(self) -> tuple[Severity, str]:
        z, table = normal_quantile(self.settings["level"]), self.ranks
        names = ("model_error", "sandwich_error", "opponents_error")
        apart = [int((table["gap"] > z * table[name]).sum()) for name in names]
        ratio = float((table["opponents_error"] / table["sandwich_error"]).median())
        return (
            Severity.CAUTION if apart[2] < apart[1] else Severity.NOTE,
            f"of {counted(len(table), 'pair')} of neighbours, the errors of the model tell {apart[0]:,} apart, errors "
            f"that do not rely on it {apart[1]:,}, and errors that allow for other opponents {apart[2]:,} (these are "
            f"{ratio:.2f} times as large in the median)",
        )


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
    """Return whether one number per model fits the votes, where it does not, and what removes the misfit.

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
    noun = battles.competitor
    if battles.n_models > _MOST_MODELS:
        raise NotAnsweredError(
            f"{noun.counted(battles.n_models)} are more than the {_MOST_MODELS:,} whose boards can be simulated and "
            "refitted: test a part of them (Battles.filter(models=...), on the command line --models)"
        )
    check_room(n_resamples, 8 * battles.n_models**2)
    options = FitOptions(ties=ties, features=features, cluster=cluster, method="dense").checked(battles)
    slices = None if by is None else make_slices(battles, BootstrapOptions(by=by).checked(battles))
    covariates = design(battles, options.features, options.normalize)
    cells, drawn = whole_board(battles, options, covariates)
    (fitted,) = fit_slices([(battles.models, cells)], covariates, options)
    votes = pair_votes(fitted)
    dof = int(votes.met.sum()) - n_free(fitted)
    if dof < 1:
        rated = f"rated {noun.one}", f"rated {noun.many}"
        raise DataError(
            f"{counted(int(votes.met.sum()), 'pair')} of {counted(int(fitted.active.sum()), *rated)} met: "
            f"one number per {noun.one} fits whatever the votes are; more pairs must meet"
        )
    if not votes.votes.sum() > 0:
        raise DataError(f"no two {noun.many} that met have finite ratings: there is nothing to test")
    if not votes.variance.sum() > 1e-9 * votes.n.sum():
        raise DataError(
            f"all {counted(int(votes.votes.sum()), 'vote is a tie', 'votes are ties')}: nothing varies, and there is "
            "nothing to test"
        )
    signs = drawn.repeating is not None or options.contextual or not cells.hard
    _check_reach(drawn, cluster, n_resamples, level)
    plain, plain_votes, plain_drawn = fitted, votes, drawn
    if options.contextual:  # what results depend on, and what removes misfit, is asked of plain ratings
        bare, nothing = replace(options, features=(), ties="half"), design(battles, (), True)
        plain_cells, plain_drawn = whole_board(battles, bare)
        plain = fit_slices([(battles.models, plain_cells)], nothing, bare)[0]
        plain_votes = pair_votes(plain)
    hangs = dependence(battles, plain, options.features, lengths, time, cluster)
    triads = triads_of(votes, battles.n_models)
    if signs:
        chance = signed_chance(fitted, votes, triads, drawn, n_resamples, seed, running)
    else:
        chance = simulated_chance(plain, votes, triads, n_resamples, seed, running)
    without, no_slices = explained(battles, plain_votes, plain, replace(options, ties="half"), slices)
    reasons = _reasons(votes, chance) | ({"slices": no_slices} if no_slices else {})
    settings = {"n_resamples": n_resamples, "seed": seed, "level": float(level), "cluster": cluster, "ties": ties}
    floor, share, error = _cyclic(votes, chance, dof)
    if np.isnan(share):
        reasons.setdefault("cyclic_share", f"pairs of {noun.many} differ hardly more than by chance")
    statistic = float(votes.pearson.sum())
    p_value = float(share_above(statistic, chance.pearson))
    deviance_p = np.nan
    if "deviance" not in reasons and chance.deviances is not None:
        deviance_p = float(share_above(chance.deviance, chance.deviances))
    tests = [("Pearson's X2", statistic, dof, p_value), ("deviance", chance.deviance, dof, deviance_p)]
    table = pd.concat([pd.DataFrame(tests, columns=["test", "statistic", "dof", "p_value"]), hangs], ignore_index=True)
    return GoodnessOfFit(
        table=table, statistic=statistic, dof=dof, p_value=p_value, deviance=chance.deviance,
        deviance_p_value=deviance_p, pairs=_pair_table(battles.models, votes, chance, noun),
        triads=_triad_table(battles.models, votes, triads, chance),
        cyclic_share=np.nan if "cyclic_share" in reasons else share, cyclic_floor=floor, cyclic_error=error,
        explained=without, ranks=rank_errors(battles.models, plain, plain_votes, plain_drawn),
        method=_method(signs, cluster), reasons=reasons, warnings=_warnings(fitted, drawn, chance, noun),
        settings=settings, competitor=noun,
    )  # fmt: skip


def _check_reach(drawn: VoteGroups, cluster: str | None, n_resamples: int, level: float) -> None:
    """Raise an error if no p-value can be as small as the level asks for: nothing could ever be rejected."""
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
    """Return the cyclic share's floor, the share less the floor, and the standard deviation that chance gives it.

    The share is of what chance does not explain of all log-odds. Where that is little, no share of it is known: NaN.
    """
    if chance.cyclics is None or not chance.total > 0:
        return np.nan, np.nan, np.nan
    mean, spread = float(np.nanmean(chance.cyclics)), float(np.nanstd(chance.cyclics))
    explained = chance.total - mean * int(votes.met.sum()) / dof  # less the chance of as many log-odds as pairs
    if not spread <= _LARGEST_ERROR * explained:
        return mean / chance.total, np.nan, np.nan
    share = (chance.cyclic - mean) / explained
    return mean / chance.total, float(np.clip(share, 0, 1)), spread / explained


def _pair_table(models: pd.Index, votes: PairVotes, chance: Chance, competitor: Noun) -> pd.DataFrame:
    met = np.flatnonzero(votes.met)
    met = met[np.argsort(-np.abs(chance.pair[met]), kind="stable")]
    table = pd.DataFrame({
        "model_a": models[votes.first[met]], "model_b": models[votes.second[met]],
        "votes": votes.votes[met].astype(np.int64), "share": votes.points[met] / votes.n[met],
        "expected": votes.expected[met] / votes.n[met], "z": chance.pair[met],
        "p_value": share_above(np.abs(chance.pair[met]), chance.largest_pair),
    })  # fmt: skip
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
    return pd.DataFrame({
        "model_1": models[votes.first[a]], "model_2": models[second], "model_3": models[third],
        "cycle": np.abs(cycle), "z": np.abs(chance.triad[order]),
        "p_value": share_above(np.abs(chance.triad[order]), chance.largest_triad),
        "circular": forward.all(0) | (~forward).all(0),
    })  # fmt: skip


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
    """Return the same as a part of an audit."""
    options = audited.options
    return goodness_of_fit(
        audited.battles, cluster=options.cluster, ties=options.ties, features=options.features, by=options.by or None,
        time=audited.time, lengths=options.lengths, level=options.level, n_resamples=options.n_resamples,
        seed=options.seed, **audited.running,
    )  # fmt: skip


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}" if value < 0.095 else f"p = {value:.2f}"


def _degrees(n: int) -> str:
    return counted(n, "degree of freedom", "degrees of freedom")
