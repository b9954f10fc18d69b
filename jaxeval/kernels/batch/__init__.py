"""The one place that batches: fits over slices, refits over slices x resamples, chunked and sharded.

Kernels of tables know one problem: here they are vmapped over the lanes of a chunk. Kernels of graphs and of rows take
a chunk's lanes as the last axis of their arrays. Chunks run one after the other inside one compiled call, and the
chunks of a call are spread over the devices.
"""

from jaxeval.kernels.batch.changed_boards import Simulated, measure, refit_changed, refit_misfit
from jaxeval.kernels.batch.chunks import Chunks
from jaxeval.kernels.batch.folds import OwnResamples, fold_temperatures, hold_out, own_resamples, rate, temperatures
from jaxeval.kernels.batch.items import (
    ItemDraw,
    ItemTotals,
    delta_sums,
    evaluator_resamples,
    fit_item_response,
    refit_item_response,
)
from jaxeval.kernels.batch.programs import elementwise
from jaxeval.kernels.batch.references import (
    BudgetSums,
    ReferenceProblem,
    SameModelSums,
    SingleReferences,
    StudyForm,
    StudySettings,
    reference_study,
)
from jaxeval.kernels.batch.refits import (
    PairProblem,
    RefitForm,
    Refits,
    Solver,
    draw,
    draw_one,
    fit,
    inverse_information,
    refit,
)
from jaxeval.kernels.batch.rows import (
    ContextualForm,
    ContextualProblem,
    ContextualSolution,
    count_rows,
    fit_contextual,
    refit_contextual,
)
from jaxeval.kernels.batch.sparse import Graph, SparseProblem, fit_sparse, refit_sparse

__all__ = [
    "BudgetSums",
    "Chunks",
    "ContextualForm",
    "ContextualProblem",
    "ContextualSolution",
    "Graph",
    "ItemDraw",
    "ItemTotals",
    "OwnResamples",
    "PairProblem",
    "ReferenceProblem",
    "RefitForm",
    "Refits",
    "SameModelSums",
    "Simulated",
    "SingleReferences",
    "Solver",
    "SparseProblem",
    "StudyForm",
    "StudySettings",
    "count_rows",
    "delta_sums",
    "draw",
    "draw_one",
    "elementwise",
    "evaluator_resamples",
    "fit",
    "fit_contextual",
    "fit_item_response",
    "fit_sparse",
    "fold_temperatures",
    "hold_out",
    "inverse_information",
    "measure",
    "own_resamples",
    "rate",
    "reference_study",
    "refit",
    "refit_changed",
    "refit_contextual",
    "refit_item_response",
    "refit_misfit",
    "refit_sparse",
    "temperatures",
]
