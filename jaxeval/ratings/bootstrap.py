"""Bootstrap of Bradley-Terry fits: every resample refitted to convergence, batched.

The steps: battles are read and checked; compressed to cells, slice by slice; fitted; posed as `BoardRefits`, which
say what is drawn and how it is refitted; run by `LaneRun`; and returned as a `Bootstrap`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np

from jaxeval.arrays import Float
from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.features import FeatureLike, design
from jaxeval.data.rankings import RankingRows, Rankings
from jaxeval.data.report import DataReport
from jaxeval.execution.lanes import LaneRun
from jaxeval.execution.processes import together
from jaxeval.execution.runs import of_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.solve import Status
from jaxeval.lazy_names import pd
from jaxeval.options.resampling import RunningOptions, Scheme
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bootstraps import Bootstraps, board_facets, bootstrap_result, with_random_facets
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.contextual_boards import contextual_refits, fit_slices
from jaxeval.ratings.contextual_fit import ContextualBootstrap, ContextualFit, board_fit, contextual_bootstrap
from jaxeval.ratings.gauge import ELO_PER_UNIT
from jaxeval.ratings.options import BootstrapOptions, FitOptions
from jaxeval.ratings.pair_refits import dense_refits, sparse_refits
from jaxeval.ratings.refits import BoardModel, BoardRefits, Refitted, SliceBoards
from jaxeval.ratings.slices import make_slices, whole_board
from jaxeval.ratings.sparse_boards import resolved
from jaxeval.ratings.vote_groups import are_large
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.variance_components import facet_names

if TYPE_CHECKING:
    from jaxeval.options.arguments import BootstrapArguments, FitBradleyTerryArguments


@spelled_out(FitOptions)
def fit_bradley_terry(
    battles: Battles | Any,
    ridge: float = 0.0,
    *,
    features: Sequence[FeatureLike] = (),
    start: BradleyTerryFit | pd.Series | None = None,
    **options: Unpack[FitBradleyTerryArguments],
) -> BradleyTerryFit:
    """Fit Bradley-Terry ratings by maximum likelihood.

    It maximises sum_b w_b [y_b log F(d_b) + (1 - y_b) log F(-d_b)] - ridge ||theta||^2 with d_b = theta_i - theta_j
    and F the logistic function (DOI 10.2307/2334029; a tie is y = 1/2). With ``features`` x_b, d_b = theta_i - theta_j
    + x_b . coefficient, less feature_ridge ||coefficient||^2. rating = base + (400 / ln 10) theta.

    With ``link="probit"`` F is the normal distribution function: Thurstone's Case V (DOI 10.1037/h0070288; Mosteller
    1951, DOI 10.1007/BF02313422). theta is then in probits, and rating = base + (400 / ln 10) 1.702 theta.

    With ``penalty="firth"`` it maximises the log-likelihood + 1/2 log det of the information (Firth 1993, DOI
    10.1093/biomet/80.1.27; Kosmidis and Firth 2009, DOI 10.1093/biomet/asp055): the bias of order 1 / battles is gone,
    and all models that met, directly or through others, have finite ratings, undefeated and winless ones too. It is
    what R's BradleyTerry2 does with ``br = TRUE``.

    Args:
        battles: `Battles`, or a table with the standard columns.
        ridge: >= 0, coefficient of the squared norm. With 0, models that the data cannot place get infinite or
            NaN ratings and are named in ``warnings``.
        gauge: "mean", "votes" (mean weighted by battles), or (model, rating) to hold a model at a rating.
        base: the mean rating of the first two gauges.
        reweight: inverse-pair-frequency weights: each battle counts 1 / max(battles of its pair, 50).
        features: covariates ("style control"): columns of differences, side A less side B; pairs of columns; or
            `position_advantage`, `same_group`.
        normalize: divide columns by their root mean square over all battles.
        feature_ridge: >= 0, of the normalised coefficients; infinite to hold them at 0.
        ties: "half": a tie counts half a win; "davidson" or "rao_kupper": a tie model. Its ratings are on another
            scale, see `ContextualFit`; its ``expected_score`` has the ratings on the scale of "half".
        link: "logit" or "probit", from strengths to the probability of a win. Tie models take "logit" only.
        penalty: "firth" for all ratings, "none", or "auto": ratings are those of "none", and intervals of models with
            fewer than 200 battles come from the fit with Firth's penalty, see `BradleyTerryFit.interval`. The penalty
            is for logits and ties as half, without a ridge, features or the sparse method; beside these, and with
            ``reweight`` or more than 1,000 models, "auto" is "none". Of weighted battles it is that of as
            many equal ones as would say as much.
        interval: "auto" or "wald", see `BradleyTerryFit.interval`; "percentile" and "basic" are for `bootstrap`.
        cluster: column of the clusters (prompts, voters, sessions) that ``standard_errors`` and ``covariance`` take as
            independent, in place of battles; the ratings do not change.
        strata: column of strata, each with a fixed number of battles, or clusters: ``standard_errors`` and
            ``covariance`` then leave out the variance between strata. No cluster may lie in several strata.
        start: a previous fit, or its ratings (Elo) by model, to start from: the same ratings in fewer steps. Models
            that it does not rate start at its mean. Not for fits with features or a tie model.
        method: "dense", on (M, M) tables; "sparse", on the graph of pairs, which takes memory for the pairs only; or
            "auto", which chooses by the number of models. Features and tie models are dense.

    Returns:
        The fit; a `ContextualFit` with features or a tie model.

    Raises:
        ValueError: a negative ridge, a ``feature_ridge`` without features, an impossible gauge, an unknown link, a
            tie model with another link than the logit, or a penalty with an option that it excludes.
        TypeError: ``features`` is no list of covariates.
        DataError: ``battles`` is a table that cannot be read; a feature is missing, or the models determine it;
            ``cluster`` or ``strata`` names no column, or one with missing values.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 4, seed=0))
        >>> fit.ratings.round().astype(int).to_dict()
        {'model-1': 1098, 'model-2': 992, 'model-3': 968, 'model-4': 942}
        >>> fit.standard_errors.round(1).tolist()
        [8.5, 6.5, 7.8, 7.3]
        >>> fit.win_probability.loc["model-1", "model-2"].round(2)
        np.float64(0.65)
    """
    battles = as_battles(battles)
    checked = FitOptions(ridge=ridge, features=features, **options).checked(battles)
    if checked.contextual and start is not None:
        raise ValueError("start= is for fits without features and tie models")
    return _fit(battles, checked, None if start is None else _start(start, battles.models, checked))


def _fit(battles: Battles, options: FitOptions, start: Float | None = None) -> BradleyTerryFit:
    covariates = design(battles, options.features, options.normalize)
    cells, drawn = whole_board(battles, options, covariates)
    slices = [(battles.models, cells)]
    (fitted,) = fit_slices(slices, covariates, options, starts=None if start is None else [start])
    if start is not None and fitted.status != Status.CONVERGED:  # ratings on another scale, say
        (fitted,) = fit_slices(slices, covariates, options)
    fit = board_fit(fitted, drawn, battles.report, options)
    if options.ties == "half":
        return fit
    return replace(fit, _ties_as_half=_fit(battles, replace(options, ties="half", method="dense")))


def _start(start: BradleyTerryFit | pd.Series, models: pd.Index, options: FitOptions) -> Float:
    """Return (M,) strengths to start from, in the unit of the link; ratings of another link are similar enough."""
    ratings = start.ratings if isinstance(start, BradleyTerryFit) else start
    if not isinstance(ratings, pd.Series):
        raise TypeError(f"start must be a fit or a Series of ratings by model, got {type(start).__name__}")
    if not ratings.index.is_unique:
        twice = ratings.index[ratings.index.duplicated()][0]
        raise TypeError(f"start must be a fit or a Series with each model once: it has {str(twice)!r} more than once")
    try:
        theta = ratings.reindex(models).to_numpy(np.float64, na_value=np.nan) / ELO_PER_UNIT[options.response.link]
    except (TypeError, ValueError) as error:
        raise TypeError(f"start must hold ratings, which are numbers: {error}") from error
    known = np.isfinite(theta)
    return np.where(known, theta - theta[known].mean(), 0.0) if known.any() else np.zeros(len(models))


#: Entries of the (M, M) tables of all slices in one call; each costs about 170 bytes.
_TABLE_ENTRIES = 2**23
#: Multiplications by which narrow slices in tables as wide as those of a wide one take longer than a program of their
#: own and its compilation; and how much wider that is at least.
_WORTH_A_PROGRAM, _WIDER = 2**37, 4


@overload
def bootstrap(
    battles: Battles | Any, n_resamples: int = ..., seed: int = ..., scheme: Scheme = ..., *,
    by: None = None, features: Sequence[FeatureLike] = ..., random: str | Sequence[str] = ...,
    **options: Unpack[BootstrapArguments],
) -> Bootstrap: ...  # fmt: skip
@overload
def bootstrap(
    battles: Battles | Any, n_resamples: int = ..., seed: int = ..., scheme: Scheme = ..., *,
    by: str | Sequence[str], features: Sequence[FeatureLike] = ..., **options: Unpack[BootstrapArguments],
) -> Bootstraps: ...  # fmt: skip
@overload
def bootstrap(
    battles: Battles | Any, n_resamples: int = ..., seed: int = ..., scheme: Scheme = ..., *,
    model: BoardModel, by: None = None, **options: Unpack[BootstrapArguments],
) -> Draws: ...  # fmt: skip
@overload
def bootstrap(
    battles: Battles | Any, n_resamples: int = ..., seed: int = ..., scheme: Scheme = ..., *,
    model: BoardModel, by: str | Sequence[str], **options: Unpack[BootstrapArguments],
) -> dict[Hashable, Draws]: ...  # fmt: skip
@spelled_out(BootstrapOptions, RunningOptions)
def bootstrap(
    battles: Battles | Any,
    n_resamples: int = 1000,
    seed: int = 0,
    scheme: Scheme = "multinomial",
    *,
    by: str | Sequence[str] | None = None,
    features: Sequence[FeatureLike] = (),
    model: BoardModel | None = None,
    random: str | Sequence[str] = (),
    **options: Unpack[BootstrapArguments],
) -> Bootstrap | Bootstraps | Draws | dict[Hashable, Draws]:
    """Resample the battles, refit every resample, and keep the joint draws.

    Resample r is a function of the slice's battles and of (seed, slice name, r) alone. It is the same for any number of
    resamples, chunk size and number of devices, and whatever other slices there are.

    Args:
        battles: `Battles`, or a table with the standard columns; or `Rankings`, whose items are rated by
            `fit_plackett_luce`. Rankings are then drawn and counted in place of battles in all that follows. They have
            no ``reweight``, ``penalty``, ``features``, ``ties`` or ``link``.
        n_resamples: B.
        seed: any integer from 0 to 2**63 - 1.
        scheme: "multinomial" draws N battles with replacement, exactly; "poisson" gives each battle a Poisson(1)
            weight; "bayesian" an exponential one; "cluster" draws whole clusters with replacement.
        by: a column, or several. Each of their groups is a slice, which is rated and resampled on its own; the result
            is a dict by group, `Bootstraps`. In a column of lists, or of objects with flags, categories overlap: a
            battle is in the slice of each of its categories, and in the slice "overall". That slice has the same draws
            as the board without that column. A slice that cannot tell a covariate from its models, or that has no ties
            for a tie model, is rated without the covariate or tie model; its ``warnings`` say so.
        cluster: column of the clusters (prompts, voters, sessions). It implies the scheme "cluster". The standard
            errors of ``fit`` then take clusters as independent, too.
        strata: column of strata: every resample holds exactly as many battles (or clusters) of each stratum as the
            data. Intervals leave out the variance between strata, and so do the standard errors of ``fit``. With
            ``by``, strata are those of each slice. A stratum of one battle does not vary; ``warnings`` count these.
            Weights of the scheme "bayesian" sum to each stratum's number of battles; the scheme "poisson" has no
            strata.
        ridge: as in `fit_bradley_terry`, like ``gauge``, ``base`` and ``reweight``.
        interval: how `Bootstrap.interval` and `leaderboard` make intervals, unless they are asked for others: "auto",
            "percentile", "basic" or "wald".
        dtype: precision of the refits; "float32" stays within 0.05 Elo of "float64" on boards that are not sparse.
        features: as in `fit_bradley_terry`, like ``normalize``, ``feature_ridge``, ``ties``, ``link`` and
            ``penalty``. With features, or a tie model, results are `ContextualBootstrap`. With a tie model resamples
            are also refitted with ties as half a win, see `ContextualBootstrap.expected_score`.
        model: a `ChoiceModel` of one's own in place of Bradley-Terry's, see `fit_model`. The result is a `Draws` of its
            parameters; with ``by`` a dict of them by group. It takes ``ridge``, and no other option of ratings.
        random: columns of what was sampled besides battles, or clusters: judges, prompts. Draws then vary as other
            levels like these would make them, by normal effects that components of the battles' influences give, with
            degrees of freedom as in `error_budget` at the 95 % level. For single votes, without ``by``, ``strata`` and
            covariates. A column of one level is refused.
        method: as in `fit_bradley_terry`; "auto" chooses for each slice by its own number of models. What is drawn does
            not depend on it.
        chunk_size: resamples computed together; by default sized to the cache (CPU) or to 1 GB (GPU, TPU).
        memory_limit: bytes that the refits, their tables and results may take, give or take a fifth; chunks shrink to
            fit. Not counted: Python, JAX and what they compile (about 300 MB, once for each shape of boards), the
            battles, the fit of the whole board, and copies of results that several processes exchange.
        checkpoint: folder that finished resamples are kept in. After an interruption the same call goes on from them,
            with the same draws; with more resamples, too.
        progress: show a bar on standard error; by default only on a terminal, for work over 0.7 s, elsewhere a line a
            minute.
        max_slices: more slices than that raise an error, before any is rated.
        min_slice_battles: slices with fewer battles are not rated: ``left_out`` and ``warnings`` of the result list
            them. By default every slice is rated.
        missing: what to do about battles without a value of ``by``. "error": raise one. "drop": they are in no slice,
            and ``n_missing`` and ``warnings`` of the result count them. "label": they make a slice named "(missing)".

    Raises:
        TypeError: an option has the wrong type.
        ValueError: an unknown scheme, a bad number, an impossible gauge.
        DataError: ``by``, ``cluster`` or ``strata`` names no column, or one with missing values; a cluster lies in
            several strata; there are more than ``max_slices`` slices, or none with ``min_slice_battles`` battles;
            ``checkpoint`` is the folder of another run; without ``by``, a covariate that the models determine, or a tie
            model without ties.
        MemoryLimitError: not even one resample at a time fits ``memory_limit``, or this machine's memory cannot hold
            the results.
        ProcessError: in a run of several processes (`jaxeval.gather_battles`) another one failed; or this process was
            forked after JAX had started.

    Examples:
        >>> import jaxeval
        >>> board = jaxeval.bootstrap(jaxeval.simulate_battles(2_000, 4, seed=0), 200)
        >>> board.draws.shape
        (200, 4)
        >>> board.standard_errors.round().tolist()
        [9.0, 6.0, 7.0, 7.0]
        >>> by_language = jaxeval.bootstrap(jaxeval.simulate_votes(2_000, 4, seed=0), 100, by="language")
        >>> by_language["German"].draws.shape
        (100, 4)
    """
    arguments = {**locals(), **options}  # first of all, so that locals are the arguments alone
    facets = facet_names(random)
    if facets and (by is not None or model is not None or isinstance(battles, Rankings)):
        raise ValueError("random facets are of one board of votes: leave out by and model")
    if model is not None:
        rows = model.rows(battles)
        with together(rows.n_processes):
            return model.boards(rows, BootstrapOptions.of(arguments).checked(rows)).by_group(of_run(options))
    battles = battles.rows if isinstance(battles, Rankings) else as_battles(battles)  # read
    with together(battles.n_processes):
        checked = BootstrapOptions.of(arguments).checked(battles)
        kind: Any = VoteBoards
        if isinstance(battles, RankingRows):
            from jaxeval.ratings.plackett_luce import RankingBoards, check_for_rankings  # of no other board

            kind = RankingBoards
            check_for_rankings(checked)
        of_facets = board_facets(checked, battles, facets)
        slices = make_slices(battles, checked)  # compressed
        results = kind(slices, checked, battles.report).by_group(of_run(options))  # fitted, posed, run and tabled
        boards: Bootstrap | dict[Hashable, Bootstrap] = with_random_facets(results, battles, of_facets)
        return Bootstraps(boards.items(), slices, checked) if isinstance(boards, dict) else boards


@dataclass(frozen=True, eq=False)
class VoteBoards(SliceBoards[BradleyTerryFit, Bootstrap]):
    """Boards of battles: those on tables are fitted and refitted together."""

    report: DataReport

    @property
    def n_rounds(self) -> int:
        """With a tie model, resamples are also refitted with ties as half a win."""
        return 1 if self.options.ties == "half" else 2

    def blocks(self) -> list[list[int]]:
        """Put all slices into one block as a rule, and a wide one alone.

        Arrays hold a few (M, M) tables for every dense slice of a block, where M is that of the widest. If this would
        exceed a gigabyte or two, the slices go into several blocks, wide ones together. Hundreds of narrow slices
        beside a wide one have a block of their own, too.
        """
        n_models = [len(models) for models, _ in self.slices.boards]
        if self.options.contextual:
            return [list(range(len(n_models)))]
        is_sparse = [resolved(self.options.method, m) == "sparse" for m in n_models]
        alone = [[s] for s, sparse in enumerate(is_sparse) if sparse]
        blocks: list[list[int]] = []
        dense = [s for s in np.argsort(-np.asarray(n_models), kind="stable").tolist() if not is_sparse[s]]
        for place, s in enumerate(dense):
            widest = n_models[blocks[-1][0]] if blocks else 0
            too_wide = (len(dense) - place) * self.options.n_resamples * widest**3 > _WORTH_A_PROGRAM
            apart = too_wide and _WIDER * n_models[s] <= widest
            if blocks and not apart and (len(blocks[-1]) + 1) * widest**2 <= _TABLE_ENTRIES:
                blocks[-1].append(s)
            else:
                blocks.append([s])
        return [*alone, *map(sorted, blocks)]

    def fits(self, block: Sequence[int]) -> dict[int, BradleyTerryFit]:
        """Fit one slice after the other."""
        slices, options, fits = self.slices, self.options, {}
        boards = [slices.boards[s] for s in block]
        fitted = fit_slices(boards, slices.covariates, options, strict=slices.groups is None)
        for s, board in zip(block, fitted, strict=True):
            with slices.naming(s):
                fits[s] = board_fit(board, slices.drawn[s], self.report, options)
        return fits

    def problems(self, fits: dict[int, BradleyTerryFit]) -> Iterator[tuple[str, list[int], BoardRefits | Refitted]]:
        """Yield those on tables as one problem, or as two where votes of some are drawn without tables of rates."""
        labels, drawn, options = self.slices.labels, self.slices.drawn, self.options
        dense = [s for s, fit in fits.items() if not isinstance(fit, ContextualFit) and fit._board.graph is None]
        for s, fit in fits.items():
            if isinstance(fit, ContextualFit):
                section = f"slice-{s}" if options.ties == "half" else f"{options.ties}-slice-{s}"
                yield section, [s], contextual_refits(fit._board, labels[s], drawn[s], options)
            elif s not in dense:
                yield f"slice-{s}", [s], sparse_refits(fit._board, labels[s], drawn[s], options)
        large = [s for s in dense if are_large(fits[s]._board.cells, drawn[s])]
        for alike in [s for s in dense if s not in large], large:
            if alike:
                boards = [fits[s]._board for s in alike]
                of_alike = [labels[s] for s in alike], [drawn[s] for s in alike]
                yield f"slices-{alike[0]}", alike, dense_refits(boards, *of_alike, options)

    def result(self, fit: BradleyTerryFit, refitted: Refitted) -> Bootstrap:
        """Return the draws of one slice."""
        if isinstance(fit, ContextualFit):
            return contextual_bootstrap(fit, refitted, self.options)
        return bootstrap_result(Bootstrap, fit, refitted, self.options)

    def resampled_in(self, run: LaneRun) -> list[Bootstrap]:
        """Refit the slices; with a tie model also, beside the draws, the same ones on the scale of expected scores."""
        results = super().resampled_in(run)
        if self.options.ties == "half":
            return results
        halves = replace(self, options=replace(self.options, ties="half", method="dense")).resampled_in(run)
        return [
            board.beside_expected_score(half) if isinstance(board, ContextualBootstrap) else board
            for board, half in zip(results, halves, strict=True)
        ]
