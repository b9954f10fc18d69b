"""Simulated arena votes with known strengths: for demonstrations, tests and benchmarks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from jaxeval.battles import Battles

_LANGUAGES = {"English": 0.55, "Chinese": 0.15, "Russian": 0.12, "German": 0.1, "Japanese": 0.08}
_BOTH_BAD_SHARE_OF_TIES = 0.4


def simulate_strengths(n_models: int = 55, spread: float = 1.0, seed: int = 0) -> pd.Series:
    """Normal log-strengths (logits) of standard deviation ``spread``, mean zero, best first, by model name."""
    if n_models < 2:
        raise ValueError(f"a board needs at least 2 models, got n_models={n_models}")
    theta = np.random.default_rng(seed).normal(0, spread, n_models)
    names = [f"model-{k:0{len(str(n_models))}d}" for k in range(1, n_models + 1)]
    index = pd.Index(names, name="model")
    return pd.Series(np.sort(theta - theta.mean())[::-1], index, name="logit")


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
    """
    if strengths is None:
        strengths = simulate_strengths(n_models, seed=seed)
    if n_battles < 1 or len(strengths) < 2:
        raise ValueError(f"need a battle and two models, got {n_battles} and {len(strengths)}")
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
    language = rng.choice(len(_LANGUAGES), n_battles, p=list(_LANGUAGES.values()))
    n_voters = max(1, n_battles // 3)
    names = strengths.index
    return pd.DataFrame(
        {
            "model_a": pd.Categorical.from_codes(a, names),
            "model_b": pd.Categorical.from_codes(b, names),
            "winner": winner,
            "language": pd.Categorical.from_codes(language, list(_LANGUAGES)),
            "voter": rng.integers(n_voters, size=n_battles),
        }
    )


def simulate_battles(
    n_battles: int = 25_000,
    n_models: int = 55,
    *,
    strengths: pd.Series | None = None,
    tie_rate: float = 0.25,
    popularity_exponent: float = 0.6,
    seed: int = 0,
) -> Battles:
    """`simulate_votes`, read as `Battles`."""
    votes = simulate_votes(
        n_battles,
        n_models,
        strengths=strengths,
        tie_rate=tie_rate,
        popularity_exponent=popularity_exponent,
        seed=seed,
    )
    return Battles.from_pandas(votes)
