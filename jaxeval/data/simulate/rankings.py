"""Simulated rankings of several items."""

from __future__ import annotations

import numpy as np
import pandas as pd

from jaxeval.checks import checked_integer
from jaxeval.data.simulate.strengths import LANGUAGES, given_or_drawn


def simulate_rankings(
    n_rankings: int = 3_000,
    n_items: int = 12,
    *,
    length: int = 4,
    tie_rate: float = 0.1,
    strengths: pd.Series | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Rankings of items drawn at random, by the model of Plackett and Luce, as `Rankings` reads them.

    Args:
        n_rankings: number of rankings.
        n_items: M, number of items.
        length: number of items in a ranking, from 2 to M.
        tie_rate: probability that an item ties with the one before it, whatever their strengths.
        strengths: log-strengths by name; those of `simulate_strengths` (n_items, seed=seed) by default.
        seed: seed of the random numbers.

    Returns:
        A row for each ranking: ``ranking`` as "a > b = c", ``language`` and ``voter``.

    Raises:
        ValueError: fewer than two items, no ranking, or a length or rate out of range.

    Examples:
        >>> import jaxeval
        >>> table = jaxeval.simulate_rankings(500, 4, length=3)
        >>> table["ranking"][0]
        'model-1 > model-4 > model-3'
        >>> fit = jaxeval.fit_plackett_luce(jaxeval.Rankings.from_pandas(table))
        >>> fit.strengths.index.tolist()
        ['model-1', 'model-2', 'model-3', 'model-4']
    """
    own = given_or_drawn(strengths, n_items, n_rankings, seed, name="n_rankings")
    if not 2 <= checked_integer("length", length, 2) <= len(own):
        raise ValueError(f"length must lie between 2 and the {len(own):,} items, got {length:,}")
    if not 0 <= tie_rate <= 1:
        raise ValueError(f"tie_rate must lie in [0, 1], got {tie_rate}")
    rng = np.random.default_rng([seed, 9])
    chosen = np.argsort(rng.random((n_rankings, len(own))), axis=1)[:, :length]
    # Sorting items by strength plus Gumbel noise draws from the model of Plackett and Luce.
    order = np.argsort(-(own.to_numpy(float)[chosen] + rng.gumbel(size=chosen.shape)), axis=1)
    names = own.index.to_numpy().astype(object)[np.take_along_axis(chosen, order, 1)]
    ranking = names[:, 0]
    for k, tied in enumerate((rng.random((n_rankings, length - 1)) < tie_rate).T, start=1):
        ranking = ranking + np.where(tied, " = ", " > ").astype(object) + names[:, k]
    language = rng.choice(len(LANGUAGES), n_rankings, p=list(LANGUAGES.values()))
    return pd.DataFrame(
        {
            "ranking": ranking,
            "language": np.array(list(LANGUAGES))[language],
            "voter": rng.integers(max(1, n_rankings // 3), size=n_rankings),
        }
    )
