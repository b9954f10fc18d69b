"""Panels of judges: strengths, and how far and to which side each judge follows them.

A judge k prefers model i, on side A, to model j with probability s(g_k (theta_i - theta_j) + b_k), s being the logistic
function (arXiv:2601.21817; the side biases b are an addition). Parameters are stacked: M strengths, K discriminations
g, K side biases b. The common shift of strengths, and the scale that strengths and discriminations share, stay as in
the start: alternating between strengths and judges would take many more steps, because they depend on each other.

Lanes are the last axis.
"""

from dataclasses import dataclass
from typing import NamedTuple

from jaxeval.kernels import connectivity, links
from jaxeval.kernels.batch.choice_models import LaneDerivatives, LaneModel, Resampled
from jaxeval.kernels.batch.refits import RefitProblem, rated
from jaxeval.kernels.kinds import Array, Bool, Float, Int32, namespace
from jaxeval.kernels.links import Link
from jaxeval.kernels.platforms import added
from jaxeval.lazy_names import jax, jnp, nn


class Contests(NamedTuple):
    """C contests, each of a judge and two models on their sides; padding ones have no verdicts."""

    first: Int32[Array, "C"]  # model on side A
    second: Int32[Array, "C"]
    judge: Int32[Array, "C"]


@dataclass(frozen=True)
class PanelModel(LaneModel):
    """The model of a panel, by its numbers of models and judges, with padding. The two choices are the sides."""

    models: int
    judges: int

    def __call__(self, phi: Float[Array, "P ..."], data: Contests) -> Float[Array, "2 C ..."]:
        """Return the log-probabilities of verdicts for side A and side B."""
        difference, g, b = self._parts(phi, data)
        z = g * difference + b
        return jnp.stack([nn.log_sigmoid(z), nn.log_sigmoid(-z)])

    def _parts(self, phi: Float[Array, "P ..."], data: Contests) -> tuple[Array, Array, Array]:
        """Return the contests' differences of strengths, their discriminations and their side biases."""
        theta, g, b = namespace(phi).split(phi, [self.models, self.models + self.judges])
        return theta[data.first] - theta[data.second], g[data.judge], b[data.judge]

    def derivatives(self, data: Contests, counts: Float[Array, "2 C R"], ridge: Float[Array, "P"]) -> LaneDerivatives:
        """Return those of all lanes, by hand: in a third of the time of those by JAX, and in one order on a GPU."""
        points, n = counts[0], counts[0] + counts[1]
        judge = self.models + data.judge
        places = data.first, data.second, judge, judge + self.judges  # of what a contest depends on

        def gradient(phi: Array) -> Array:
            difference, g, b = self._parts(phi, data)
            residual = points - n * links.probability(Link.LOGIT, g * difference + b)
            parts = g * residual, -g * residual, difference * residual, residual
            return added(namespace(phi).zeros(phi.shape), *zip(places, parts, strict=True)) - 2 * ridge[:, None] * phi

        def information(phi: Array) -> Array:
            difference, g, b = self._parts(phi, data)
            chance, p, xp = links.probability(Link.LOGIT, g * difference + b), len(phi), namespace(phi)
            weight, slopes = n * chance * (1 - chance), (g, -g, difference, xp.ones_like(difference))
            parts = [
                (places[j] * p + places[k], weight * slopes[j] * slopes[k]) for j in range(4) for k in range(j + 1)
            ]
            half = added(xp.zeros((p * p, phi.shape[1])), *parts).T.reshape(-1, p, p)
            diagonal = 2 * ridge - xp.diagonal(half, axis1=-2, axis2=-1)
            return half + half.swapaxes(-1, -2) + diagonal[..., None] * xp.eye(p)

        return LaneDerivatives(gradient, information)

    def resampled(self, problem: RefitProblem, counts: Float[Array, "2 C R"], ridge: Float[Array, "P"]) -> Resampled:
        """Look for separated models: verdicts on them are left out, and so are judges without any other verdicts."""
        wins = self.win_tables(problem.data.occasions, counts)
        standing = jax.vmap(lambda wins: connectivity.standing(wins, problem.main))(wins)
        active = rated(standing, ridge[0]).T & problem.moves[: self.models, None]
        counts, moves = self.among(problem.data.occasions, counts, active, problem.moves)
        return Resampled(counts, moves, standing, jnp.ones(counts.shape[-1], bool), problem.start[:, None])

    def win_tables(self, data: Contests, counts: Float[Array, "2 C R"]) -> Float[Array, "R M M"]:
        """Return the points of the row's model against the column's, over all judges and both sides."""
        m = self.models
        there, back = data.first * m + data.second, data.second * m + data.first
        table = added(jnp.zeros((m * m, counts.shape[-1])), (there, counts[0]), (back, counts[1]))
        return table.T.reshape(-1, m, m)

    def among(
        self, data: Contests, counts: Float[Array, "2 C R"], active: Bool[Array, "M R"], moves: Bool[Array, "P"]
    ) -> tuple[Float[Array, "2 C R"], Bool[Array, "P R"]]:
        """Return the verdicts between ``active`` models, and what moves in each lane: no judge without verdicts."""
        kept = jnp.where(active[data.first] & active[data.second], counts, 0.0)
        seen = added(jnp.zeros((self.judges, active.shape[1])), (data.judge, kept[0] + kept[1])) > 0
        return kept, moves[:, None] & jnp.concatenate([active, seen, seen])
