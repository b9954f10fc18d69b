"""Refits of resamples: what all kinds of boards have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from jaxeval.arrays import Float
from jaxeval.execution.blas import one_blas_thread
from jaxeval.execution.lanes import Call, LaneRun, Solver, device_mesh
from jaxeval.kernels import batch
from jaxeval.kernels.resample import Packing
from jaxeval.kernels.solve import Status, Terms
from jaxeval.ratings.options import BootstrapOptions

# Refits stop when the error predicted to remain is under this, logits (1e-8 is 2e-6 Elo).
TOLERANCE_LOGIT = {"float64": 1e-8, "float32": 2e-5}
#: The most bytes that a model takes in a resample's results: strengths and standing, the ratings made of them, and the
#: arrays on the way there.
RESULT_BYTES = 30
# All slices have results as wide as the widest one. Nothing is copied if at least this share of them belongs to models.
_MOSTLY_USED = 0.75


class Refitted(NamedTuple):
    """B refits of one slice on the host; M' is the number of models with padding."""

    parameters: Float  # (B, P): M' log-strengths; with covariates or a tie model their coefficients, then t
    status: NDArray[np.int8]  # a `Status`
    n_steps: NDArray[np.int32]
    grad_norm: Float
    standing: NDArray[np.int8]  # (B, M')
    solver: NDArray[np.int8]  # a `Solver`: the one that came last

    @property
    def theta(self) -> Float:
        """(B, M') log-strengths."""
        return self.parameters[..., : self.standing.shape[-1]]

    @property
    def converged(self) -> NDArray[np.bool_]:
        """(B,)."""
        return self.status == Status.CONVERGED


@dataclass(frozen=True, eq=False)
class BoardRefits(ABC):
    """The refits of boards, one a slice: a `Problem`."""

    options: BootstrapOptions

    @property
    def n_slices(self) -> int:
        """S."""
        return 1

    @property
    def n_resamples(self) -> int:
        """B."""
        return self.options.n_resamples

    @abstractmethod
    def solvers(self) -> Sequence[Solver]:
        """As in `Problem`."""

    def on_board(self, refitted: Refitted) -> Refitted:
        """The refits of one slice with models as on its board (padding may follow), and with their final status."""
        return refitted

    def terms(self, ridge: ArrayLike, max_steps: int) -> Terms:
        """What is maximised, and when a refit ends, in the precision of the refits."""
        kind = np.dtype(self.options.dtype).type
        return Terms.of(np.asarray(ridge, kind), kind(TOLERANCE_LOGIT[self.options.dtype]), max_steps)

    def program(
        self,
        refit: Callable[..., batch.Refits],
        problem: NamedTuple,
        form: NamedTuple,
        ridge: ArrayLike,
        max_steps: int,
    ) -> Call:
        """The compiled ``refit`` of a ``problem``, which takes chunks."""
        terms = self.terms(ridge, max_steps)
        return partial(refit, problem, form, device_mesh(), np.uint64(self.options.seed), terms)

    def held_bytes(self, problem: NamedTuple, n_parameters: int) -> int:
        """Bytes that are held whatever the chunks are: the results, and the ``problem`` here and on the device."""
        results = self.n_slices * self.n_resamples * n_parameters * RESULT_BYTES
        return results + 2 * sum(x.nbytes for x in jax.tree.leaves(problem))


def refit_form(options: BootstrapOptions, packing: Packing, n_pairs: int, solver: batch.Solver) -> batch.RefitForm:
    """The static choices of refits to sums by pair."""
    return batch.RefitForm(
        scheme=options.drawn,
        packing=packing,
        n_pairs=n_pairs,
        solver=solver,
        dtype=np.dtype(options.dtype).type,
        link=options.response.link,
        ties=options.response.ties,
    )


def refit(problem: BoardRefits, run: LaneRun, section: str, n_models: Sequence[int]) -> list[Refitted]:
    """The refits of every slice of a ``problem``.

    Args:
        problem: of S slices.
        run: how they are run.
        section: names the problem in the run's checkpoint.
        n_models: (S,) models of the slices.
    """
    with one_blas_thread():  # which Newton's method factors by
        solved = run.solve(problem, section)
    lanes = problem.n_slices, problem.n_resamples
    parameters, status, n_steps, grad_norm, standing = (x.reshape(*lanes, *x.shape[1:]) for x in solved.results)
    solver = solved.solver.reshape(lanes)
    # Slices are parts of one array, which lives as long as any of them. If much of it is padding, they are copied.
    leave = sum(n_models) < _MOSTLY_USED * problem.n_slices * max(n_models)
    return [
        problem.on_board(
            Refitted(
                parameters=parameters[s, :, :m].copy() if leave else parameters[s],
                status=status[s],
                n_steps=n_steps[s],
                grad_norm=grad_norm[s],
                standing=standing[s],
                solver=solver[s],
            )
        )
        for s, m in enumerate(n_models)
    ]
