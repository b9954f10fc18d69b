"""Bootstrap of Bradley-Terry fits: every resample refitted to convergence, batched.

The steps: battles are read and checked; compressed to cells, slice by slice; fitted; posed as a `Problem`, which says
what is drawn and how it is refitted; run by `LaneRun`; and returned as a `Bootstrap`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack, overload

import numpy as np

from jaxeval.data.battles import Battles, as_battles
from jaxeval.data.features import FeatureLike, design
from jaxeval.data.rankings import RankingCells, RankingRows, Rankings
from jaxeval.data.report import DataReport
from jaxeval.execution.lanes import LaneRun
from jaxeval.execution.processes import together
from jaxeval.execution.runs import of_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.ratings.bootstrap_result import Bootstrap, Bootstraps, bootstrap_result
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.contextual_boards import contextual_refits, fit_slices
from jaxeval.ratings.contextual_fit import ContextualBootstrap, ContextualFit, board_fit, contextual_bootstrap
from jaxeval.ratings.options import BootstrapArguments, BootstrapOptions, Scheme
from jaxeval.ratings.pair_refits import dense_refits, sparse_refits
from jaxeval.ratings.plackett_luce import (
    PlackettLuceFit,
    check_for_rankings,
    fit_ranking_board,
    ranking_fit,
    ranking_refits,
)
from jaxeval.ratings.refits import BoardModel, BoardRefits, Refitted, SliceBoards
from jaxeval.ratings.slices import make_slices
from jaxeval.ratings.sparse_boards import resolved
from jaxeval.statistics.draws import Draws

#: Entries of the (M, M) tables of all slices in one call; each costs about 170 bytes.
_TABLE_ENTRIES = 2**23


@overload
def bootstrap(
    battles: Battles | Any, n_resamples: int = ..., seed: int = ..., scheme: Scheme = ..., *,
    by: None = None, features: Sequence[FeatureLike] = ..., **options: Unpack[BootstrapArguments],
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
@spelled_out(BootstrapOptions)
def bootstrap(
    battles: Battles | Any,
    n_resamples: int = 1000,
    seed: int = 0,
    scheme: Scheme = "multinomial",
    *,
    by: str | Sequence[str] | None = None,
    features: Sequence[FeatureLike] = (),
    model: BoardModel | None = None,
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
        method: as in `fit_bradley_terry`; "auto" chooses for each slice by its own number of models. What is drawn does
            not depend on it.
        chunk_size: resamples computed together; by default sized to the cache (CPU) or to 1 GB (GPU, TPU).
        memory_limit: bytes that the refits, their tables and results may take, give or take a fifth; chunks shrink to
            fit. Not counted: Python, JAX and what they compile (about 300 MB, once for each shape of boards), the
            battles, the fit of the whole board, and copies of results that several processes exchange.
        checkpoint: folder that finished resamples are kept in. After an interruption the same call goes on from them,
            with the same draws; with more resamples, too.
        progress: show a bar on standard error; by default only on a terminal, for work over 0.7 s.
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
    given = {**locals(), **options}  # first of all, so that locals are the arguments alone
    if model is not None:
        rows = model.rows(battles)
        with together(rows.n_processes):
            return model.boards(rows, BootstrapOptions.of(given).checked(rows)).by_group(of_run(options))
    battles = battles.rows if isinstance(battles, Rankings) else as_battles(battles)  # read
    with together(battles.n_processes):
        asked = BootstrapOptions.of(given).checked(battles)
        if isinstance(battles, RankingRows):
            check_for_rankings(asked)
        slices = make_slices(battles, design(battles, asked.features, asked.normalize), asked)  # compressed
        kind = RankingBoards if isinstance(battles, RankingRows) else VoteBoards
        results = kind(slices, asked, battles.report).resampled(of_run(options))  # fitted, posed, run and tabled
        if slices.groups is None:
            return results[0]
        return Bootstraps(zip(slices.groups, results, strict=True), slices, asked)


@dataclass(frozen=True, eq=False)
class VoteBoards(SliceBoards[BradleyTerryFit, Bootstrap]):
    """Boards of battles: those on tables are fitted and refitted together."""

    report: DataReport

    @property
    def n_rounds(self) -> int:
        """With a tie model, resamples are also refitted with ties as half a win."""
        return 1 if self.options.ties == "half" else 2

    def blocks(self) -> list[list[int]]:
        """As a rule all slices, but a wide one goes alone.

        Arrays hold a few (M, M) tables for every dense slice of a block, where M is that of the widest. If this would
        exceed a gigabyte or two, the slices go into several blocks, wide ones together.
        """
        n_models = [len(models) for models, _ in self.slices.boards]
        if self.options.contextual:
            return [list(range(len(n_models)))]
        is_sparse = [resolved(self.options.method, m) == "sparse" for m in n_models]
        alone = [[s] for s, sparse in enumerate(is_sparse) if sparse]
        blocks: list[list[int]] = []
        for s in np.argsort(-np.asarray(n_models), kind="stable").tolist():
            if is_sparse[s]:
                continue
            if blocks and (len(blocks[-1]) + 1) * n_models[blocks[-1][0]] ** 2 <= _TABLE_ENTRIES:
                blocks[-1].append(s)
            else:
                blocks.append([s])
        return [*alone, *map(sorted, blocks)]

    def fit(self, s: int) -> BradleyTerryFit:
        """Alone."""
        return self.fits([s])[s]

    def refits(self, s: int, fit: BradleyTerryFit) -> BoardRefits | None:
        """Alone."""
        return next(self.problems({s: fit}))[2]

    def fits(self, block: Sequence[int]) -> dict[int, BradleyTerryFit]:
        """In one batched call."""
        slices, options, fits = self.slices, self.options, {}
        boards = [slices.boards[s] for s in block]
        fitted = fit_slices(boards, slices.covariates, options, strict=slices.groups is None)
        for s, board in zip(block, fitted, strict=True):
            with slices.naming(s):
                fits[s] = board_fit(board, slices.drawn[s], self.report, options)
        return fits

    def problems(self, fits: dict[int, BradleyTerryFit]) -> Iterator[tuple[str, list[int], BoardRefits | None]]:
        """Those on tables are one problem."""
        labels, drawn, options = self.slices.labels, self.slices.drawn, self.options
        dense = [s for s, fit in fits.items() if not isinstance(fit, ContextualFit) and fit._board.graph is None]
        for s, fit in fits.items():
            if isinstance(fit, ContextualFit):
                section = f"slice-{s}" if options.ties == "half" else f"{options.ties}-slice-{s}"
                yield section, [s], contextual_refits(fit._contextual, labels[s], drawn[s], options)
            elif s not in dense:
                yield f"slice-{s}", [s], sparse_refits(fit._board, labels[s], drawn[s], options)
        if dense:
            boards = [fits[s]._board for s in dense]
            of_dense = [labels[s] for s in dense], [drawn[s] for s in dense]
            yield f"slices-{dense[0]}", dense, dense_refits(boards, *of_dense, options)

    def result(self, fit: BradleyTerryFit, refitted: Refitted | None) -> Bootstrap:
        """The draws of one slice."""
        assert refitted is not None
        if isinstance(fit, ContextualFit):
            return contextual_bootstrap(fit, refitted, self.options)
        return bootstrap_result(Bootstrap, fit, refitted, self.options)

    def resampled_in(self, run: LaneRun) -> list[Bootstrap]:
        """With a tie model, beside the same draws on the scale of expected scores."""
        results = super().resampled_in(run)
        if self.options.ties == "half":
            return results
        halves = replace(self, options=replace(self.options, ties="half", method="dense")).resampled_in(run)
        return [
            board.beside_expected_score(half) if isinstance(board, ContextualBootstrap) else board
            for board, half in zip(results, halves, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class RankingBoards(SliceBoards[PlackettLuceFit, Bootstrap]):
    """Boards of rankings."""

    report: DataReport

    def fit(self, s: int) -> PlackettLuceFit:
        """The fit of the choices that rankings are made of."""
        models, cells = self.slices.boards[s]
        assert isinstance(cells, RankingCells)
        own = fit_ranking_board(models, cells, self.options)
        return ranking_fit(own, self.slices.drawn[s], self.report, self.options)

    def refits(self, s: int, fit: PlackettLuceFit) -> BoardRefits:
        """Rankings are drawn, or clusters of them."""
        return ranking_refits(fit._rankings, self.slices.labels[s], self.slices.drawn[s], self.options)

    def result(self, fit: PlackettLuceFit, refitted: Refitted | None) -> Bootstrap:
        """The draws of one slice."""
        assert refitted is not None
        return bootstrap_result(Bootstrap, fit, refitted, self.options)
