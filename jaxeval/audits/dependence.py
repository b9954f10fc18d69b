"""Whether results depend on something beside the models: on the side, on covariates, on time.

Each is a score test (DOI 10.1017/S0305004100023987): how far the residuals of the board go with a covariate that it
leaves out, beyond what the strengths would take up. The errors are those of independent units, votes or clusters,
whether or not the board fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import scipy

from jaxeval.arrays import Float
from jaxeval.audits.periods import vote_times
from jaxeval.data.battles import Battles
from jaxeval.data.features import Feature, FeatureLike, design, position_advantage
from jaxeval.errors import DataError
from jaxeval.ratings.boards import Board

_COLUMNS = ("test", "statistic", "dof", "p_value", "effect", "standard_error")
_POSITION = "position"
_RANK = 1e-9


@dataclass(frozen=True, eq=False)
class _Rows:
    """R rows of votes beside a plain board of M models; those of models without a rating weigh nothing."""

    models: scipy.sparse.csr_array  # (R, M) 1 for side A, -1 for side B
    residual: Float  # (R,) weighted, of one vote
    information: Float  # (R,) of all votes of the row
    times: Float  # (R,) votes
    units: scipy.sparse.csr_array | None  # (U, R) clusters; None where votes are alone
    inverse: Float  # (M, M)

    def pulls(self, x: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """(U, K) what each unit adds to the scores of covariates ``x`` (R, K), but for signs where votes are alone."""
        if self.units is None:
            return scipy.sparse.csr_array(x * (self.residual * np.sqrt(self.times))[:, None])
        return scipy.sparse.csr_array(self.units @ (x * (self.residual * self.times)[:, None]))

    @cached_property
    def of_models(self) -> tuple[scipy.sparse.csr_array, Float]:
        """(U, M) pulls on the strengths, and (M, M) their squares."""
        pulls = self.pulls(self.models)
        return pulls, _product(pulls, pulls)

    def test(self, x: scipy.sparse.csr_array) -> tuple[Float, Float, Float]:
        """Score (K,), its information and its variance (K, K) for covariates ``x`` (R, K), the strengths free."""
        informed = scipy.sparse.csr_array(x * self.information[:, None])
        cross = _product(self.models, informed)
        taken = self.inverse @ cross
        (of_models, squares), own = self.of_models, self.pulls(x)
        both = _product(own, of_models) @ taken
        variance = _product(own, own) - both - both.T + taken.T @ squares @ taken
        score = np.asarray(x.T @ (self.residual * self.times))
        return score, _product(x, informed) - cross.T @ taken, variance


def _product(a: scipy.sparse.csr_array, b: scipy.sparse.csr_array) -> Float:
    return np.asarray((a.T.tocsr() @ b).toarray())


def dependence(
    battles: Battles,
    board: Board,
    features: Sequence[FeatureLike],
    lengths: tuple[str, str] | None,
    time: str | None,
    cluster: str | None,
) -> pd.DataFrame:
    """A row for the side, for the difference of ``lengths``, for each of the ``features``, and for ``time``.

    ``effect``, in logits, is that of being side A, or of one unit of the feature, as a fit beside the strengths would
    have it to first order. Time may move every model differently: its row has no effect, and tests that no model moves.

    Raises:
        DataError: a column is not there, or is not numeric or a date.
    """
    rows = _rows(battles, board, cluster)
    more = [x for x in ([lengths] if lengths else []) if x not in features]
    own = [x for x in features if not (isinstance(x, Feature) and x.name == _POSITION)]
    found = design(battles, [position_advantage(), *more, *own], normalize=True)
    table = []
    for name, x, factor in zip(found.names, found.matrix.T, found.factor, strict=True):
        score, information, variance = rows.test(scipy.sparse.csr_array(x[:, None]))
        told = factor / information[0, 0] if information[0, 0] > _RANK * rows.information.sum() else np.nan
        effect, error = score[0] * told, np.sqrt(variance[0, 0]) * told
        table.append(("side A" if name == _POSITION else name, *_chi_square(score, variance), effect, error))
    if time is not None:
        when = scipy.sparse.csr_array(rows.models * _times(battles, time)[:, None])
        score, _, variance = rows.test(when)
        table.append((time, *_chi_square(score, variance), np.nan, np.nan))
    return pd.DataFrame(table, columns=list(_COLUMNS))


def _rows(battles: Battles, board: Board, cluster: str | None) -> _Rows:
    r, m = battles.n_rows, battles.n_models
    count = np.ones(r) if battles.count is None else battles.count.astype(float)
    weight = np.ones(r) if battles.weight is None else battles.weight
    weight = weight * (board.active[battles.model_a] & board.active[battles.model_b])
    expected = board.expected(board.theta[battles.model_a] - board.theta[battles.model_b])
    entries = np.tile([1.0, -1.0], r), np.stack([battles.model_a, battles.model_b], 1).ravel()
    units = None
    if cluster is not None:
        code, names = battles.codes(cluster)
        units = scipy.sparse.csr_array((np.ones(r), (code, np.arange(r))), (len(names), r))
    return _Rows(
        models=scipy.sparse.csr_array((*entries, np.arange(0, 2 * r + 1, 2)), (r, m)),
        residual=weight * (battles.target - expected),
        information=count * weight * expected * (1 - expected),
        times=count,
        units=units,
        inverse=board.inverse_information(),
    )


def _chi_square(score: Float, variance: Float) -> tuple[float, int, float]:
    """Statistic, degrees of freedom and p."""
    values, vectors = np.linalg.eigh(variance)
    kept = values > _RANK * max(values.max(initial=0.0), np.finfo(float).tiny)
    statistic = float(((vectors.T @ score)[kept] ** 2 / values[kept]).sum())
    dof = int(kept.sum())
    return (statistic, dof, float(scipy.special.chdtrc(dof, statistic))) if dof else (np.nan, 0, np.nan)


def _times(battles: Battles, name: str) -> Float:
    """(R,) times less their mean, in standard deviations."""
    value = vote_times(battles, name)
    value = value - value.mean()
    spread = value.std()
    if not spread > 0:
        raise DataError(f"column {name!r} has one value only: nothing can depend on it")
    return np.asarray(value / spread)
