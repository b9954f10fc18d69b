"""The bootstraps of slices: the result of each group, made of its draws, and what is in no slice.

Draws of a board whose judges, prompts or voters were sampled, too, move with them. In simulations of six designs of 20
models and three to eight judges who differ by .1 to .2 logits, intervals of ratings then hold .94 to .96, and those
over battles alone .87 to .925 (benchmarks/which_error_boards.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from jaxeval.data.battles import Battles
from jaxeval.execution.precision import device_name, n_devices
from jaxeval.execution.processes import n_sharing
from jaxeval.kernels.batch.refits import Solver
from jaxeval.kernels.connectivity import Standing
from jaxeval.lazy_names import pd
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.options import BootstrapOptions, BootstrapSettings
from jaxeval.ratings.refits import Refitted
from jaxeval.ratings.slices import Slices, slice_name
from jaxeval.show.shown import Answer, Result
from jaxeval.statistics.random_facets import RandomFacets, reject_confounded
from jaxeval.wording import Noun, common_noun, counted, named, slice_title

B = TypeVar("B", bound=Bootstrap)
_FIRST_SOLVERS = Solver.CHORD, Solver.SPARSE, Solver.FIRTH


def bootstrap_result(
    kind: type[B], fit: BradleyTerryFit, refitted: Refitted, options: BootstrapOptions,
    settings: type[BootstrapSettings] = BootstrapSettings, how: Mapping[str, Any] | None = None, **further: Any,
) -> B:  # fmt: skip
    """Return the draws of one slice, of a class of bootstraps that has ``further`` fields, and ``settings`` how."""
    board = fit._board
    m = len(board.theta)
    theta, standing = refitted.theta[:, :m], refitted.standing[:, :m]  # written over: nothing else reads them
    lost = np.flatnonzero(standing.any(1))  # resamples, as a rule none: IDENTIFIED is 0
    if options.ridge == 0:
        values = np.array([0.0, np.inf, -np.inf, np.nan])[standing[lost]]
        theta[lost] = np.where(standing[lost] == Standing.IDENTIFIED, theta[lost], values)
    theta[:, ~board.active] = np.nan
    theta[~refitted.converged] = np.nan
    kinds = Standing.ABOVE, Standing.BELOW, Standing.INCOMPARABLE
    made = vars(fit.settings) | {"by": list(options.by or []), "dtype": options.dtype}
    made |= {"device": device_name(), "n_devices": n_devices() * n_sharing()}
    return kind(
        fit=fit, draws=fit.scale.aligned_ratings(theta, board.theta), draws_logit=theta, converged=refitted.converged,
        n_steps=refitted.n_steps, grad_norm=refitted.grad_norm,
        _degenerate=np.stack([(standing[lost] == kind).sum(0) for kind in kinds], 1),
        settings=settings.of(vars(options) | made | dict(how or {})),
        n_by_slower_solvers=int((~np.isin(refitted.solver, _FIRST_SOLVERS)).sum()), **further,
    )  # fmt: skip


class Bootstraps(Result, dict[Hashable, Bootstrap]):
    """The bootstraps of the slices, by group, and what is in no slice.

    Slices with similar numbers of models keep their draws in one array. Its memory is freed when none of them is left.

    Attributes:
        by: the columns whose groups the slices are.
        left_out: how many battles each slice has that is not rated, as they are too few; by group.
        n_missing: battles without a value of ``by``, which are in no slice: ``missing="drop"``.
        told: how often battles count where categories overlap, in words; else empty.
    """

    def __init__(self, boards: Iterable[tuple[Hashable, Bootstrap]], slices: Slices, options: BootstrapOptions) -> None:
        overlapping = slices.overlapping
        super().__init__((group, replace(x, _overlapping=overlapping) if overlapping else x) for group, x in boards)
        self.by, self.left_out, self.n_missing, self.told = slices.by, slices.left_out, slices.n_missing, slices.told
        self._least = options.min_slice_battles

    def _shown(self) -> Answer:
        rows = {
            "n_models": [len(board.models) for board in self.values()],
            "n_battles": [int(board.fit.n_battles.sum()) // 2 for board in self.values()],
            "best": [board.fit._best_first().index[0] for board in self.values()],
        }
        table = pd.DataFrame(rows, pd.Index(map(slice_name, self), name=" / ".join(self.by)))
        settings = next(iter(self.values())).settings if self else ""
        return Answer(f"Bootstraps: {counted(len(self), 'slice')}", table, settings, self.warnings)

    def _sentences(self) -> list[str]:
        return [f"{slice_title(slice_name(group), self.by)}: {board.first_sentence()}" for group, board in self.items()]

    @property
    def competitor(self) -> Noun:
        """What is rated, in a word and its plural."""
        return common_noun(board.competitor for board in self.values())

    @property
    def warnings(self) -> list[str]:
        """What is in no slice, in words."""
        by, messages = " / ".join(self.by), []
        if self.n_missing:
            are = "battles without a value of {} are" if self.n_missing > 1 else "battle without a value of {} is"
            messages.append(f"{self.n_missing:,} {are.format(by)} in no slice")
        if len(self.left_out):
            shown = [f"{slice_name(group)} ({n:,})" for group, n in self.left_out.items()]
            few = f"{len(shown):,} slices by {by} have" if len(shown) > 1 else f"1 slice by {by} has"
            messages.append(
                f"{few} fewer than {self._least:,} battles and no ratings (battles in brackets): {named(shown)}"
            )
        return messages


def board_facets(options: BootstrapOptions, battles: Battles, facets: Sequence[str]) -> RandomFacets | None:
    """Return the random facets of rows of judgments, drawn one by one or in clusters; None where there are none."""
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
