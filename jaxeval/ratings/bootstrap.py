"""Bootstrap of Bradley-Terry fits: every resample refitted to convergence, batched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import jax
import numpy as np
from numpy.typing import NDArray

from jaxeval.checks import check_room, checked_finite, checked_integer, checked_rating
from jaxeval.data.battles import Battles, MissingGroup, as_battles
from jaxeval.data.features import Design, FeatureLike, checked_features, design
from jaxeval.execution.lanes import LaneRun
from jaxeval.execution.precision import versions
from jaxeval.execution.processes import n_sharing, together
from jaxeval.execution.runs import Identity, open_run
from jaxeval.kernels.resample import DrawScheme
from jaxeval.ratings.boards import Board, fit_boards
from jaxeval.ratings.bootstrap_plan import SCHEMES, make_plan
from jaxeval.ratings.bootstrap_result import Bootstrap, BootstrapSettings, bootstrap_result
from jaxeval.ratings.bradley_terry import BradleyTerryFit, device_name, fit_result
from jaxeval.ratings.contextual import ContextualSettings, Ties, checked_ties, contextual_result, fit_contextual_boards
from jaxeval.ratings.contextual_bootstrap import contextual_bootstrap_result, refit_contextual
from jaxeval.ratings.contextual_rows import compress
from jaxeval.ratings.gauge import Gauge
from jaxeval.ratings.refits import RESULT_BYTES, TOLERANCE_LOGIT, Refitted, refit_all
from jaxeval.ratings.slices import MOST_SLICES, Bootstraps, Slices, Slicing, make_slices
from jaxeval.ratings.sparse_boards import Method, check_dense, resolved
from jaxeval.ratings.sparse_refits import make_sparse_plan, refit_sparse

#: Entries of the (M, M) tables of all slices in one call; each costs about 170 bytes.
_TABLE_ENTRIES = 2**23

Scheme = Literal["multinomial", "poisson", "bayesian", "cluster"]


class BootstrapOptions(TypedDict, total=False):
    """What `bootstrap` is told by name, besides ``by``."""

    cluster: str | None
    ridge: float
    gauge: Gauge
    base: float
    reweight: bool
    dtype: Literal["float64", "float32"]
    features: Sequence[FeatureLike]
    normalize: bool
    feature_ridge: float
    ties: Ties
    method: Method
    chunk_size: int | None
    memory_limit: int | None
    checkpoint: str | Path | None
    progress: bool | None
    max_slices: int
    min_slice_battles: int
    missing: MissingGroup


@overload
def bootstrap(
    battles: Battles | Any,
    n_resamples: int = ...,
    seed: int = ...,
    scheme: Scheme = ...,
    *,
    by: None = None,
    **options: Unpack[BootstrapOptions],
) -> Bootstrap: ...
@overload
def bootstrap(
    battles: Battles | Any,
    n_resamples: int = ...,
    seed: int = ...,
    scheme: Scheme = ...,
    *,
    by: str | Sequence[str],
    **options: Unpack[BootstrapOptions],
) -> Bootstraps: ...
@overload
def bootstrap(
    battles: Battles | Any,
    n_resamples: int = ...,
    seed: int = ...,
    scheme: Scheme = ...,
    *,
    by: str | Sequence[str] | None = ...,
    **options: Unpack[BootstrapOptions],
) -> Bootstrap | Bootstraps: ...
def bootstrap(
    battles: Battles | Any,
    n_resamples: int = 1000,
    seed: int = 0,
    scheme: Scheme = "multinomial",
    *,
    by: str | Sequence[str] | None = None,
    cluster: str | None = None,
    ridge: float = 0.0,
    gauge: Gauge = "mean",
    base: float = 1000.0,
    reweight: bool = False,
    dtype: Literal["float64", "float32"] = "float64",
    features: Sequence[FeatureLike] = (),
    normalize: bool = True,
    feature_ridge: float = 0.0,
    ties: Ties = "half",
    method: Method = "auto",
    chunk_size: int | None = None,
    memory_limit: int | None = None,
    checkpoint: str | Path | None = None,
    progress: bool | None = None,
    max_slices: int = MOST_SLICES,
    min_slice_battles: int = 0,
    missing: MissingGroup = "error",
) -> Bootstrap | Bootstraps:
    """Resample the battles, refit every resample, and keep the joint draws.

    Resample r is a function of the slice's battles and of (seed, slice name, r) alone: the same for any number of
    resamples, chunk size, number of devices, and whatever other slices there are.

    Args:
        battles: `Battles`, or a table with the standard columns.
        n_resamples: B.
        seed: any integer from 0 to 2**63 - 1.
        scheme: "multinomial" draws N battles with replacement, exactly; "poisson" gives each battle a Poisson(1)
            weight; "bayesian" an exponential one; "cluster" draws whole clusters with replacement.
        by: column, or columns, whose groups are rated and resampled each on its own; the result is then a dict by
            group, `Bootstraps`. All in one batched call; with features or a tie model, one slice after the other. A
            slice that cannot tell a covariate from its models, or has no ties for a tie model, is rated without; its
            ``warnings`` say so.
        cluster: column of the clusters (prompts, voters, sessions); implies the scheme "cluster", and the errors of
            ``fit`` are those of clusters, too.
        ridge: as in `fit_bradley_terry`, like ``gauge``, ``base`` and ``reweight``.
        dtype: precision of the refits; "float32" stays within 0.05 Elo of "float64" on boards that are not sparse.
        features: as in `fit_bradley_terry`, like ``normalize``, ``feature_ridge`` and ``ties``; with them, or a tie
            model, results are `ContextualBootstrap`. With a tie model resamples are also refitted with ties as half a
            win, see `ContextualBootstrap.expected_score`.
        method: as in `fit_bradley_terry`, for each slice by its own number of models; the draws are the same.
        chunk_size: resamples computed together; by default sized to the cache (CPU) or to 1 GB (GPU, TPU).
        memory_limit: bytes that the refits, their tables and results may take, give or take a fifth; chunks shrink to
            fit. Not counted: Python, JAX and what they compile (some 300 MB, once for boards of a shape), the battles,
            the fit of the whole board, and copies of results that several processes exchange.
        checkpoint: folder that finished resamples are kept in. After an interruption the same call goes on from them,
            with the same draws; with more resamples, too.
        progress: show a bar on standard error; by default only on a terminal, for work over 0.7 s.
        max_slices: an error tells of more slices than that, before any is rated.
        min_slice_battles: slices with fewer battles are listed and not rated: ``left_out`` and ``warnings`` of the
            result. By default every slice is rated.
        missing: what to do about battles without a value of ``by``: "error"; "drop", they are in no slice, and
            ``n_missing`` and ``warnings`` of the result count them; "label", they are a slice, named "(missing)".

    Raises:
        TypeError: an option is of another type than it says.
        ValueError: an unknown scheme, a bad number, an impossible gauge.
        DataError: ``by`` or ``cluster`` names no column, or one with missing values; there are more than ``max_slices``
            slices, or none of ``min_slice_battles``; ``checkpoint`` is the folder of
            another run; without ``by``, a covariate that the models decide, or a tie model without ties.
        MemoryLimitError: not even one resample at a time fits ``memory_limit``, or this machine's memory cannot hold
            the results.
        ProcessError: another process of a run in several (`jaxeval.gather_battles`) failed; or this one was forked
            after JAX had started.
    """
    battles = as_battles(battles)
    with together(battles.n_processes):
        _check_options(n_resamples, seed, scheme, dtype)
        ridge, base = checked_finite("ridge", ridge, 0), checked_rating("base", base)
        scheme, cluster = _checked_cluster(battles, scheme, cluster)
        features = checked_features(features, feature_ridge)
        checked_ties(battles, ties)
        contextual = len(features) > 0 or ties != "half"
        if contextual:
            check_dense(method)
            if dtype != "float64":
                raise ValueError(f"refits with features or a tie model are in double precision, got dtype={dtype!r}")
        covariates = design(battles, features, normalize)
        compressed = partial(compress, battles, feature=covariates.matrix) if contextual else battles.compress
        slicing = Slicing(max_slices, min_slice_battles, missing).checked()
        slices = make_slices(battles, by, cluster, compressed, slicing)
        run = _Run(
            battles, slices, covariates, contextual, scheme, cluster, int(n_resamples), int(seed),
            ridge, gauge, base, reweight, dtype, normalize, float(feature_ridge), ties, method,
        )  # fmt: skip
        check_room(int(n_resamples), RESULT_BYTES * sum(len(models) for models, _ in slices.boards))
        n_lanes = len(slices.boards) * n_resamples * (1 if ties == "half" else 2)
        with open_run(
            partial(run.identity, slicing), n_lanes, "refitting resamples",
            chunk_size=chunk_size, memory_limit=memory_limit, checkpoint=checkpoint, progress=progress,
        ) as lanes:  # fmt: skip
            results = run.results(lanes)
        if slices.groups is None:
            return results[0]
        return Bootstraps(zip(slices.groups, results, strict=True), slices, slicing)


@dataclass(frozen=True)
class _Run:
    """A call of `bootstrap`, checked."""

    battles: Battles
    slices: Slices
    covariates: Design
    contextual: bool  # whether there are covariates or a tie model
    scheme: str
    cluster: str | None
    n_resamples: int
    seed: int
    ridge: float
    gauge: Gauge
    base: float
    reweight: bool
    dtype: str
    normalize: bool
    feature_ridge: float
    ties: Ties
    method: Method

    def identity(self, slicing: Slicing) -> Identity:
        """What decides the draws, and what decides how many there are and how they are written."""
        names = ("scheme", "cluster", "seed", "ridge", "reweight", "dtype", "normalize", "feature_ridge", "ties",
                 "method")  # fmt: skip
        settings = {name: getattr(self, name) for name in names}
        settings |= {"by": self.slices.by, "features": list(self.covariates.names)}
        data = self.slices.labels, self.slices.boards, self.slices.clusters, self.covariates.matrix
        shown = {"n_resamples": self.n_resamples, "gauge": self.gauge, "base": self.base}
        return Identity(settings, data, shown | slicing._asdict(), noun="battles")

    def results(self, run: LaneRun) -> list[Bootstrap]:
        """The result of every slice."""
        if self.contextual:
            return self._with_context(run)
        results: dict[int, Bootstrap] = {}
        for block in _blocks([len(models) for models, _ in self.slices.boards], self.method):
            boards = fit_boards([self.slices.boards[s] for s in block], self.ridge, self.reweight, self.method)
            fits = []
            for s, board in zip(block, boards, strict=True):
                with self._naming(s):
                    fits.append(
                        fit_result(
                            self.battles.report, board, self.ridge, self.gauge, self.base, self.reweight, self.cluster,
                            self.slices.clusters[s],
                        )
                    )  # fmt: skip
            refits = self._refit(block, boards, run)
            for s, fit, board, lanes in zip(block, fits, boards, refits, strict=True):
                results[s] = self._result(fit, board, lanes)
        return [results[s] for s in range(len(results))]

    def _refit(self, block: NDArray[np.intp], boards: Sequence[Board], run: LaneRun) -> list[Refitted]:
        """The refits of the slices of a ``block``: a wide one alone, or dense ones together."""
        labels, clusters = ([of_all[s] for s in block] for of_all in (self.slices.labels, self.slices.clusters))
        if boards[0].graph is not None:
            ((board,), (label,), (cluster,)) = boards, labels, clusters
            wide = make_sparse_plan(board, self._scheme, label, cluster, self.dtype)
            section = f"slice-{block[0]}"
            return [refit_sparse(board, wide, self.n_resamples, self.seed, self.ridge, run, section)]
        plan = make_plan(boards, self._scheme, labels, self.ridge, clusters)
        section = f"slices-{block[0]}"
        refits = refit_all(plan, self._scheme, self.n_resamples, self.seed, self.ridge, self.dtype, run, section)
        return [refits.of_slice(k) for k in range(len(block))]

    def _with_context(self, run: LaneRun) -> list[Bootstrap]:
        """The results with covariates or a tie model, one slice after the other."""
        slices: Any = self.slices.boards  # of cells with covariates
        context = ContextualSettings(self.covariates.names, self.normalize, self.feature_ridge, self.ties)
        fitted = fit_contextual_boards(
            slices, self.covariates, self.ridge, self.feature_ridge, self.ties, self.reweight,
            strict=self.slices.groups is None,
        )  # fmt: skip
        halves: Sequence[Bootstrap | None] = [None] * len(self.slices.boards)
        section = "slice"
        if self.ties != "half":  # the scale of expected scores, beside that of the tie model
            half = replace(self, ties="half", contextual=len(self.covariates.names) > 0, method="dense")
            halves, section = half.results(run), f"{self.ties}-slice"
        results: list[Bootstrap] = []
        for s, own in enumerate(fitted):
            with self._naming(s):
                fit = contextual_result(
                    self.battles, own, self.ridge, self.gauge, self.base, self.reweight, context, self.cluster,
                    self.slices.clusters[s],
                )  # fmt: skip
            label, cluster = self.slices.labels[s], self.slices.clusters[s]
            lanes = refit_contextual(
                own, self._scheme, label, cluster, self.ties, self.n_resamples, self.seed, run,
                f"{section}-{s}",
            )  # fmt: skip
            plain = self._result(fit, own.board, lanes.of_models())
            results.append(contextual_bootstrap_result(plain, fit, lanes, halves[s]))
        return results

    def _result(self, fit: BradleyTerryFit, board: Board, lanes: Refitted) -> Bootstrap:
        settings = BootstrapSettings(
            self.scheme, self.cluster, self.slices.by, self.n_resamples, self.seed, self.ridge, fit.settings.gauge,
            self.base, self.reweight, self.dtype, device_name(), jax.local_device_count() * n_sharing(),
            versions(), fit.settings.method,
        )  # fmt: skip
        return bootstrap_result(fit, board, lanes, self.ridge, settings)

    @property
    def _scheme(self) -> DrawScheme:
        return SCHEMES["multinomial" if self.scheme == "cluster" else self.scheme]

    @contextmanager
    def _naming(self, s: int) -> Iterator[None]:
        """Errors about a slice that name it."""
        try:
            yield
        except ValueError as error:
            if self.slices.groups is None:
                raise
            raise ValueError(f"{' / '.join(self.slices.by)} = {self.slices.groups[s]!r}: {error}") from error


def _blocks(n_models: Sequence[int], method: Method) -> list[NDArray[np.intp]]:
    """Slices that share a batched call: all of them, as a rule, but for wide ones, each of which goes alone.

    Arrays hold a few (M, M) tables for every dense slice of a block, M being that of the widest. So many of them that
    this would exceed a gigabyte or two go in several blocks, wide ones together.
    """
    blocks: list[list[int]] = []
    is_sparse = np.array([resolved(method, m) == "sparse" for m in n_models])
    alone = [[int(s)] for s in np.flatnonzero(is_sparse)]
    widest = 0
    for s in np.argsort(-np.asarray(n_models), kind="stable"):
        if is_sparse[s]:
            continue
        if blocks and (len(blocks[-1]) + 1) * widest**2 <= _TABLE_ENTRIES:
            blocks[-1].append(int(s))
        else:
            blocks.append([int(s)])
            widest = n_models[s]
    return [np.sort(np.array(block)) for block in (*alone, *blocks)]


def _check_options(n_resamples: int, seed: int, scheme: str, dtype: str) -> None:
    checked_integer("n_resamples", n_resamples, 1)
    checked_integer("seed", seed)
    if scheme not in (*SCHEMES, "cluster"):
        raise ValueError(f"unknown scheme {scheme!r}; known are {', '.join(SCHEMES)} and cluster")
    if dtype not in TOLERANCE_LOGIT:
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")


def _checked_cluster(battles: Battles, scheme: Scheme, cluster: str | None) -> tuple[Scheme, str | None]:
    """The scheme, which a cluster implies, and the cluster, which the battles may name."""
    cluster = cluster or (battles.cluster if scheme == "cluster" else None)
    if cluster is None:
        if scheme == "cluster":
            raise ValueError('scheme="cluster" needs cluster=, the column whose groups are drawn')
        return scheme, None
    if scheme not in ("cluster", "multinomial"):
        raise ValueError(f"clusters are drawn with replacement: scheme={scheme!r} cannot have cluster=")
    return "cluster", cluster
