"""Refits of one board with changed votes, one change per lane."""

import jax
from jax import Array
from jax.sharding import Mesh

from jaxeval.kernels import changed_votes
from jaxeval.kernels.batch.chunks import Chunks, over_lanes
from jaxeval.kernels.batch.programs import program
from jaxeval.kernels.changed_votes import Change, Changed, FullBoard
from jaxeval.kernels.solve import Terms


@program("mesh", "newton")
def refit_changed(
    board: FullBoard, changes: Change, mesh: Mesh, terms: Terms, chunks: Chunks, *, newton: bool = False
) -> Changed:
    """Refits with the ``changes`` (numbers), as `changed_votes.refit`: leading axes (devices, T, R)."""

    def chunk(numbers: Array, board: FullBoard, changes: Change, terms: Terms) -> Changed:
        own = jax.tree.map(lambda x: x[numbers], changes)
        return jax.vmap(lambda change: changed_votes.refit(board, change, terms, newton))(own)

    return over_lanes(chunk, mesh, chunks, (board, changes, terms))
