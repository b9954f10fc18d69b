"""Would the board come out again? Coverage on boards simulated at its fitted values, and agreement of random halves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float
from jaxeval.audits import simulated_boards
from jaxeval.audits.parts import Answered, Audited, AuditOptions, NotAnsweredError, Severity
from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles
from jaxeval.execution.precision import one_blas_thread
from jaxeval.execution.progress import Advance
from jaxeval.execution.runs import Identity, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.options.resampling import RunningOptions
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.gauge import RatingScale
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer
from jaxeval.show.table import Table
from jaxeval.statistics.comparison import ranking_agreement
from jaxeval.statistics.differences import MOST_NOT_FINITE, open_ranks, tiers_below
from jaxeval.statistics.quantiles import normal_quantile
from jaxeval.wording import counted, named, visible_line

if TYPE_CHECKING:
    from jaxeval.options.arguments import AuditArguments

#: With more models, tables of all pairs of all boards take minutes.
_MOST_MODELS = 500
#: A finding names coverage this far below the level, unless it may be an accident of the simulation.
_SHORT = 0.01
_HALVES, _SIMULATED = "two random halves of the votes", "two simulated boards"
#: Draws of noise behind critical values.
_NOISE = 1_000


@dataclass(frozen=True, eq=False, repr=False)
class Replication(Answered):
    """Whether a board would come out again.

    ``table`` has a row for each thing that a board claims at the level: how often the claim was true (``coverage``,
    with the standard error of the simulation) on boards whose votes were simulated at the fitted values, and its mean
    ``width`` (Elo; ranks; number of tiers). Coverage of single claims is the mean over models. The simulated voters are
    independent and follow the fitted model: other parts of an audit look for what breaks that. No two fitted strengths
    are equal. Sets of ranks and tiers would hold for equal ones, too, and so hold more often than the level here.

    ``agreement`` says how alike two rankings are: of random halves of the votes (of whole clusters, where the audit has
    some), and of two simulated boards as large as this one. ``lower`` and ``upper`` hold the middle 95 % of the splits.
    What one half has too much of, the other lacks: two models that are even on all votes lead in one half each.
    Simulated boards agree more than real ones would, as fitted strengths lie further apart than the true ones: of six
    equal models with 600 votes they had a tau of .28 on average in place of 0, and one first model in 32 % of pairs in
    place of 17 %.

    ``models`` has a row for each model: how often its interval and its set of ranks held, and how often it was first.
    Models that win or lose all votes on more than 1 % of the boards are not told apart from others, and never first.

    Intervals are those of the sandwich errors of each simulated board. Sets of ranks and tiers are those of `Draws`,
    with normal noise of these errors in place of resamples. On 200 boards of 12 models and 3,000 votes they held
    as often as those of 500 resamples of each board: .955 and .954 of the time (standard error .005) for ratings, .999
    and 1.000 for sets of ranks. On boards of 400 votes they held .948 and .941 of the time, and .999 both.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.replication(jaxeval.simulate_battles(2_000, 4, seed=0), n_boards=40, n_splits=20, top=2)
        >>> found.agreement[["boards", "measure"]].iloc[0].tolist()
        ['two random halves of the votes', 'kendall_tau']
        >>> bool(found.agreement["mean"].between(0.5, 1).all())
        True
    """

    part = "replication"
    agreement: pd.DataFrame
    models: pd.DataFrame
    level: float

    def _shown(self) -> Answer:
        n = counted(self.settings["n_boards"], "simulated board")
        title = f"Replication: {n} and {counted(self.settings['n_splits'], 'split')} of the votes"
        return Answer(title, self.table, self.settings, self.warnings)

    def _said(self) -> Iterator[tuple[Severity, str]]:
        yield from self._of_coverage()
        yield from self._of_agreement()

    def _of_coverage(self) -> Iterator[tuple[Severity, str]]:
        known = self.table[self.table["coverage"].notna()]
        claims = [f"{row.claim} {row.coverage:.3f}" for row in known.itertuples()]
        short = known["coverage"] < self.level - np.maximum(_SHORT, 3 * known["standard_error"])
        n, error = counted(self.settings["n_boards"], "board"), known["standard_error"].max()
        where = f"on {n} simulated at the fitted values (standard errors up to {error:.3f})"
        if short.any():
            few = ", ".join(text for text, one in zip(claims, short, strict=True) if one)
            text = f"Claims at {self.level:.0%} hold less often than that {where}: {few}."
            yield Severity.CAUTION, text
        elif claims:
            text = f"What the board claims at {self.level:.0%} holds {where}: {', '.join(claims)}"
            yield Severity.REASSURING, f"{text}. This presumes that the model is right."

    def _of_agreement(self) -> Iterator[tuple[Severity, str]]:
        agreement = self.agreement.set_index(["boards", "measure"]).sort_index()
        for boards, what in ((_HALVES, "of random halves of the votes"), (_SIMULATED, "of two boards of this size")):
            tau, top, same = (agreement.loc[(boards, name)] for name in ("kendall_tau", "top_overlap", "same_first"))
            if np.isnan(tau["mean"]):
                continue
            text = (
                f"The rankings {what} agree with Kendall's tau {tau['mean']:.2f} ({tau['lower']:.2f} to "
                f"{tau['upper']:.2f}); they share {top['mean']:.0%} of the first {self.settings['top']}, and the first "
                f"{self.competitor.one} in {same['mean']:.0%} of pairs"
            )
            if boards == _SIMULATED:
                text += ", at most, as true strengths lie closer together than the fitted ones that are simulated"
            rarely = boards == _SIMULATED and same["mean"] < self.level
            yield Severity.CAUTION if rarely else Severity.NOTE, f"{text}."


@spelled_out(AuditOptions, RunningOptions)
def replication(
    battles: Battles | Any,
    *,
    n_boards: int = 200,
    n_splits: int = 100,
    top: int = 10,
    **options: Unpack[AuditArguments],
) -> Replication:
    """Tell whether this board would come out again, by simulated boards and by random halves of the votes.

    Votes are simulated at the fitted values, with the board's own pairs and numbers of votes; a pair ties as often as
    its votes did. Each simulated board is fitted, and claims intervals, sets of ranks and tiers; whether they are true
    is known. They come from sandwich errors in closed form: a bootstrap of each board would take hours.

    Args:
        battles: `Battles`, or a table with the standard columns.
        n_boards: simulated boards, at least 20.
        n_splits: random splits of the votes into halves, at least 20.
        top: how many models make the top, at most half of them; ``agreement`` has the overlap of tops.
        **options: of `jaxeval.audit`; with ``cluster`` whole clusters go to a half. ``n_resamples`` has no effect here.

    Raises:
        TypeError, ValueError: an option has the wrong type, or an impossible value; the board has covariates, a tie
            model, soft targets, or too many models.
        DataError: a column is not there.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.replication(jaxeval.simulate_battles(2_000, 4, seed=0), n_boards=100, n_splits=20, top=2)
        >>> found.table["claim"].tolist()
        ['ratings', 'differences of neighbours', 'sets of ranks', 'sets of ranks, all at once', 'tiers']
        >>> bool(found.table["coverage"].between(0.9, 1).all())
        True
        >>> found.models["model"].iloc[0], found.models["first_share"].round(2).iloc[0]
        ('model-1', np.float64(1.0))
    """
    return replicated(Audited.of(battles, options), n_boards, n_splits, top)


def replicated(audited: Audited, n_boards: int = 200, n_splits: int = 100, top: int = 10) -> Replication:
    """Return `replication` of a board that is audited."""
    n_boards, n_splits = checked_integer("n_boards", n_boards, 20), checked_integer("n_splits", n_splits, 20)
    top, options = checked_integer("top", top, 1), audited.options
    if options.ties != "half" or options.features:
        raise NotAnsweredError(
            "votes are simulated only for boards with ties as half a win and without covariates: leave ties= and "
            "features= out (on the command line --ties, --features)"
        )
    fit = audited.fit
    board, noun = fit._board, fit.competitor
    soft = ~np.isin(board.cells.target, (0.0, 0.5, 1.0))
    if soft.any():
        n = counted(int(board.cells.count[soft].sum()), "battle has", "battles have")
        raise NotAnsweredError(f"only wins, ties and losses are simulated, and {n} another target")
    if len(board.theta) > _MOST_MODELS:
        raise NotAnsweredError(
            f"simulated boards of {noun.counted(len(board.theta))} would take minutes: at most {_MOST_MODELS:,} "
            f"{noun.many} are simulated. Leave out {noun.many} with few battles (Battles.filter, on the command line "
            "--models)"
        )
    if np.isfinite(fit.ratings).sum() < 2:
        raise NotAnsweredError(f"fewer than two {noun.many} have a finite rating: there is nothing to simulate")
    settings = audited.settings | {"n_boards": n_boards, "n_splits": n_splits, "n_resamples": None}
    identity = partial(Identity, settings, audited.digest, noun="battles")
    with open_run(identity, n_boards + 2 * n_splits, "simulated boards", **audited.running) as run, one_blas_thread():
        # One thread: the products of each board are small, and waiting threads would hold up others.
        compared, theta, claims = _simulated(fit, options.level, options.seed, n_boards, run.advance)
        halves = _halves(fit, options.seed, n_splits, run.advance)
    pairs = theta[: n_boards // 2 * 2]
    rankings = {_HALVES: halves, _SIMULATED: (pairs[::2], pairs[1::2])}
    top = min(top, max(int(compared.sum()) // 2, 1))
    agreement = pd.concat(
        [_agreement(name, one[:, compared], other[:, compared], top) for name, (one, other) in rankings.items()]
    )
    thin, warnings = fit.ratings.index[np.isfinite(fit.ratings) & ~compared], list(fit.warnings)
    if len(thin):
        has, names = noun.counted(len(thin), "has", "have"), named(list(map(visible_line, thin)))
        them = "it" if len(thin) == 1 else "them"
        warnings.append(
            f"{has} a chance of more than 1% to win or lose all votes, and agreement leaves {them} out: {names}"
        )
    return Replication(
        table=_claim_table(claims, options.level), agreement=agreement.reset_index(drop=True),
        models=_model_table(fit, compared, theta, claims), level=options.level, settings=settings | {"top": top},
        warnings=tuple(warnings), competitor=noun,
    )  # fmt: skip


#: By claim: where it is true (1, else 0), and how wide it is, of the models of a board or of all of it; NaN without.
Claims = dict[str, tuple[Any, Any]]


def _simulated(
    fit: BradleyTerryFit, level: float, seed: int, n_boards: int, advance: Advance
) -> tuple[Bool, Float, Claims]:
    """Return (M,) models with a rating on 99 % of L boards, the boards' strengths (L, M), and their claims (L, ...)."""
    possible = simulated_boards.outcomes(fit)
    truth = np.where(np.isfinite(fit.ratings), fit.theta, np.nan)
    compared = np.isfinite(truth) & (simulated_boards.separated_chances(possible, len(truth)) <= MOST_NOT_FINITE)
    if compared.sum() < 2:
        raise NotAnsweredError(
            f"fewer than two {fit.competitor.many} have enough votes to have a finite rating on 99% of simulated "
            "boards: there is nothing to replicate"
        )
    true = TrueBoard.of(truth, simulated_boards.expected_covariance(fit, possible), fit.scale, compared, level, seed)
    theta, claims = [], []
    counts = (simulated_boards.simulated_counts(possible, seed, number) for number in range(n_boards))
    for boards in simulated_boards.refitted_boards(fit, possible.cells, counts, n_boards):
        for board, covariance in zip(boards, simulated_boards.sandwiches(boards), strict=True):
            theta.append(np.where(board.active, board.theta, np.nan))
            claims.append(true.claims(theta[-1], covariance))
        advance(len(boards))

    def each(claim: str, part: int) -> Float:
        return np.stack([np.atleast_1d(of_board[claim][part]) for of_board in claims])

    return compared, np.stack(theta), {claim: (each(claim, 0), each(claim, 1)) for claim in claims[0]}


def _claim_table(claims: Claims, level: float) -> pd.DataFrame:
    rows = []
    for claim, parts in claims.items():
        each, wide = (_mean(part, 1) for part in parts)
        known = each[~np.isnan(each)]
        error = known.std(ddof=1) / np.sqrt(len(known)) if len(known) > 1 else np.nan
        rows.append((claim, level, float(_mean(each, 0)), error, float(_mean(wide, 0)), len(known)))
    table = pd.DataFrame(rows, columns=["claim", "level", "coverage", "standard_error", "width", "n_boards"])
    return with_kinds(table, elo="width")


def _model_table(fit: BradleyTerryFit, compared: Bool, theta: Float, claims: Claims) -> pd.DataFrame:
    rated = ~np.isnan(theta)
    first = np.where(rated & compared, theta, -np.inf).argmax(1)
    ranks, n_ranks = claims["sets of ranks"]
    table = pd.DataFrame({
        "model": fit.ratings.index, "rating": fit.ratings.to_numpy(),
        "rating_coverage": _mean(claims["ratings"][0], 0), "rank_coverage": _mean(ranks, 0),
        "ranks_in_set": _mean(n_ranks, 0), "first_share": np.bincount(first, minlength=len(compared)) / len(first),
        "unrated_share": 1 - rated.mean(0),
    })  # fmt: skip
    return Table(table.sort_values("rating", ascending=False, ignore_index=True, kind="stable"))


def _mean(values: Float, axis: int) -> Float:
    """Return means of the values that are not NaN."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis) / known.sum(axis))


def _halves(fit: BradleyTerryFit, seed: int, n_splits: int, advance: Advance) -> tuple[Float, Float]:
    """Return (S, M) strengths of both halves of S splits of the votes; NaN without a rating."""
    cells = fit._board.cells
    counts = (
        half for number in range(n_splits) for half in simulated_boards.half_counts(cells, fit._drawn, seed, number)
    )
    theta: list[Float] = []
    for boards in simulated_boards.refitted_boards(fit, cells, counts, 2 * n_splits):
        theta += [np.where(board.active, board.theta, np.nan) for board in boards]
        advance(len(boards))
    return np.stack(theta[::2]), np.stack(theta[1::2])


def _agreement(boards: str, one: Float, other: Float, top: int) -> pd.DataFrame:
    """Return how alike the rankings by (S, M) strengths are: a row per measure."""
    measures = ranking_agreement(one, other, top)
    firsts = [np.where(np.isnan(x), -np.inf, x).argmax(1) for x in (one, other)]
    measures["same_first"] = (firsts[0] == firsts[1]).astype(float)
    rows = []
    for name in ("kendall_tau", "top_overlap", "same_first"):
        known = measures[name][~np.isnan(measures[name])]
        ends = np.quantile(known, [0.025, 0.975]) if len(known) and name != "same_first" else (np.nan, np.nan)
        rows.append((boards, name, known.mean() if len(known) else np.nan, *ends, len(known)))
    table = pd.DataFrame(rows, columns=["boards", "measure", "mean", "lower", "upper", "n_pairs"])
    return with_kinds(table, ends_of="mean")


@dataclass(frozen=True, eq=False)
class TrueBoard:
    """The strengths that boards are simulated at, and the critical values of their claims."""

    theta: Float  # (M,) strengths; NaN for models without a rating
    scale: RatingScale
    compared: Bool  # (M,) models that may be told apart from others; the rest too often have no finite rating
    critical: Float  # (M, M) critical value of the differences of a model to its k nearest, k from 0 on
    critical_of_all: float  # that of the differences of all pairs
    level: float  # of every claim

    @classmethod
    def of(
        cls, theta: Float, covariance: Float, scale: RatingScale, compared: Bool, level: float, seed: int
    ) -> TrueBoard:
        """Return critical values (max-t) from normal noise with the ``covariance`` (M, M) of the strengths."""
        m, error = len(theta), _errors(covariance)
        values, vectors = np.linalg.eigh(covariance)
        noise = np.random.default_rng([seed, 2]).normal(size=(_NOISE, m)) * np.sqrt(np.maximum(values, 0)) @ vectors.T
        critical, largest = np.zeros((m, m)), np.zeros(_NOISE)
        for i in np.flatnonzero(compared):
            others = np.flatnonzero(compared & (error[i] > 0))
            if len(others) == 0:
                continue
            others = others[np.argsort(np.abs(theta[others] - theta[i]) / error[i, others], kind="stable")]
            statistic = np.abs(noise[:, others] - noise[:, [i]]).T / error[i, others, None]
            np.maximum.accumulate(statistic, axis=0, out=statistic)
            quantiles = np.quantile(statistic, level, axis=1, method="inverted_cdf")
            critical[i, 1 : len(others) + 1], critical[i, len(others) + 1 :] = quantiles, quantiles[-1]
            np.maximum(largest, statistic[-1], out=largest)
        of_all = float(np.quantile(largest, level, method="inverted_cdf"))
        return cls(theta, scale, compared, critical, of_all, level)

    def claims(self, theta: Float, covariance: Float) -> Claims:
        """Return whether what a board with these strengths (M,), NaN without a rating, and errors claims is true."""
        rated = np.isfinite(theta) & np.isfinite(self.theta)
        truth, z, unit = np.where(rated, self.theta, np.nan), normal_quantile(self.level), self.scale.unit
        error_of_rating = np.sqrt(np.maximum(np.diag(self.scale.covariance(covariance)), 0))
        # A model that the gauge holds has no interval.
        error_of_rating = np.where(rated & (error_of_rating > 0), error_of_rating, np.nan)
        at = np.nan_to_num(self.theta)
        off = self.scale.aligned_ratings(theta[None], at)[0] - self.scale.ratings(at)
        error = _errors(covariance)
        order = np.argsort(-self.theta, kind="stable")
        above, below = order[:-1], order[1:]
        apart_by = theta[above] - theta[below] - (truth[above] - truth[below])
        with np.errstate(invalid="ignore", divide="ignore"):
            statistic = np.abs(theta[:, None] - theta) / error
        comparable = rated & self.compared
        statistic[~(comparable[:, None] & comparable) | (error == 0)] = 0.0
        ranks, width = self._ranks(theta, truth, statistic > self._critical_of_each(statistic)[:, None])
        all_ranks, all_width = self._ranks(theta, truth, statistic > self.critical_of_all)
        starts = self._tier_starts(theta, statistic, comparable)
        of_gap = error[above, below]
        return {
            "ratings": (_share(np.abs(off) <= z * error_of_rating, error_of_rating), 2 * z * error_of_rating),
            "differences of neighbours": (
                _share(np.abs(apart_by) <= z * of_gap, apart_by), _share(2 * z * unit * of_gap, apart_by)
            ),
            "sets of ranks": (ranks, width),
            "sets of ranks, all at once": (
                np.nanmin(all_ranks, initial=1.0), all_width[rated].mean() if rated.any() else np.array(np.nan)
            ),
            # the first model of every tier is worse than the first of the tier above
            "tiers": (np.float64((truth[starts[:-1]] > truth[starts[1:]]).all()), np.float64(len(starts))),
        }  # fmt: skip

    def _critical_of_each(self, statistic: Float) -> Float:
        """Return (M,) critical values by steps down (`Differences.rank_sets`); of k models left, of the k nearest."""
        models = np.arange(len(statistic))
        left = np.full(len(models), len(models) - 1)
        while True:
            critical = self.critical[models, left]
            still = ((statistic <= critical[:, None]) & self.compared).sum(1) - self.compared
            still = np.where(still > 0, np.minimum(still, left), left)
            if (still == left).all():
                return critical
            left = still

    def _ranks(self, theta: Float, truth: Float, apart: Bool) -> tuple[Float, Float]:
        """Return (M,) whether sets of ranks hold, and how many ranks they have, by pairs told ``apart`` (M, M)."""
        n = int(np.isfinite(truth).sum())
        best, worst = open_ranks(theta, apart, n)
        true_best, true_worst = open_ranks(truth, np.ones_like(apart), n)
        holds = _share((best <= true_best) & (true_worst <= worst), truth)
        return holds, np.where(np.isnan(truth), np.nan, worst - best + 1)

    def _tier_starts(self, theta: Float, statistic: Float, comparable: Bool) -> NDArray[np.intp]:
        """Return the first models of all tiers, from the top down; see `Differences.tiers`."""
        models = np.flatnonzero(comparable)
        models = models[np.argsort(-theta[models], kind="stable")]
        apart = statistic > self.critical_of_all
        tier = tiers_below(len(models), lambda leader: apart[models[leader], models])
        return models[np.diff(tier, prepend=0) > 0]


def _errors(covariance: Float) -> Float:
    variance = np.diag(covariance)
    return np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0))


def _share(holds: Bool | Float, known: Float) -> Float:
    """Return 1 where something holds, 0 where not (or a width), NaN where ``known`` is."""
    return np.where(np.isnan(known), np.nan, holds)
