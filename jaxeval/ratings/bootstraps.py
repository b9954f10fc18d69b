"""The bootstraps of slices: the result of each group, made of its draws, and what is in no slice."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

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
