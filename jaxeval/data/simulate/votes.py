"""Simulated arena votes with known strengths."""

from __future__ import annotations

from typing import TypedDict, Unpack

import numpy as np
import pandas as pd

from jaxeval.data.battles import Battles
from jaxeval.data.simulate.strengths import LANGUAGES, given_or_drawn

_BOTH_BAD_SHARE_OF_TIES = 0.4


def simulate_votes(
    n_battles: int = 25_000,
    n_models: int = 55,
    *,
    strengths: pd.Series | None = None,
    tie_rate: float = 0.25,
    popularity_exponent: float = 0.6,
    seed: int = 0,
) -> pd.DataFrame:
    """Votes in the Arena's format: model_a, model_b, winner, language, voter.

    Opponents are drawn by popularity, which falls as rank^-exponent in an order unrelated to strength. A battle is a
    tie with probability ``tie_rate`` * 4 p (1 - p), with p = s(theta_a - theta_b), two fifths of ties being both-bad;
    wins are such that the expected score, a tie counting half, is exactly p: ratings fitted with ties as half a win
    estimate ``strengths``.

    Args:
        strengths: log-strengths by model name (logits); `simulate_strengths` (n_models, seed=seed) by default.
        tie_rate: of equals, from 0 to 0.5.

    Raises:
        ValueError: fewer than two models, no battle, or a tie rate out of range.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_votes(1000, n_models=4)
        >>> list(votes.columns)
        ['model_a', 'model_b', 'winner', 'language', 'voter']
    """
    strengths = given_or_drawn(strengths, n_models, n_battles, seed)
    if not 0 <= tie_rate <= 0.5:
        raise ValueError(f"tie_rate must lie in [0, 0.5], got {tie_rate}")
    if not np.isfinite(strengths.to_numpy(float)).all():
        raise ValueError(f"strengths must be finite, got {strengths[~np.isfinite(strengths)].to_dict()}")
    rng = np.random.default_rng([seed, 1])
    theta, n_models = strengths.to_numpy(float), len(strengths)
    popularity = rng.permutation(np.arange(1.0, n_models + 1) ** -popularity_exponent)
    popularity /= popularity.sum()
    a = rng.choice(n_models, n_battles, p=popularity)
    b = rng.choice(n_models, n_battles, p=popularity)
    while (same := np.flatnonzero(a == b)).size:
        a[same] = rng.choice(n_models, len(same), p=popularity)
        b[same] = rng.choice(n_models, len(same), p=popularity)

    p = 1 / (1 + np.exp(theta[b] - theta[a]))
    tie = tie_rate * 4 * p * (1 - p)
    u = rng.random(n_battles)
    labels = np.array(["model_a", "tie", "both_bad", "model_b"])
    edges = np.stack([p - tie / 2, p - tie / 2 + (1 - _BOTH_BAD_SHARE_OF_TIES) * tie, p + tie / 2])
    winner = pd.Categorical.from_codes((u >= edges).sum(0), labels)
    language = rng.choice(len(LANGUAGES), n_battles, p=list(LANGUAGES.values()))
    n_voters = max(1, n_battles // 3)
    names = strengths.index
    return pd.DataFrame(
        {
            "model_a": pd.Categorical.from_codes(a, names),
            "model_b": pd.Categorical.from_codes(b, names),
            "winner": winner,
            "language": pd.Categorical.from_codes(language, list(LANGUAGES)),
            "voter": rng.integers(n_voters, size=n_battles),
        }
    )


class VoteOptions(TypedDict, total=False):
    """How votes are simulated: see `simulate_votes`."""

    strengths: pd.Series | None
    tie_rate: float
    popularity_exponent: float
    seed: int


def simulate_battles(n_battles: int = 25_000, n_models: int = 55, **options: Unpack[VoteOptions]) -> Battles:
    """`simulate_votes`, with its options, read as `Battles`.

    Examples:
        >>> import jaxeval
        >>> jaxeval.simulate_battles(1000, n_models=4, tie_rate=0).report.n_ties
        0
    """
    return Battles.from_pandas(simulate_votes(n_battles, n_models, **options))
