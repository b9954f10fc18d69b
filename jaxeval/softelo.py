"""Soft-Elo: ratings on the human scale for models that LLM judges have seen, leaving one model out at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.judged_battles import JudgedBattles
from jaxeval.temperature import Ties


@dataclass(frozen=True)
class SoftEloSettings:
    """What made the ratings."""

    ridge: float
    n_resamples: int
    seed: int
    methods: tuple[str, ...]
    base: float
    min_battles: int
    ties: Ties
    device: str
    versions: str


@dataclass(frozen=True, eq=False)
class SoftElo:
    """Held-out ratings of M models by every method, and by every judge where there are several."""

    models: pd.DataFrame
    summary: pd.DataFrame
    draws: NDArray[np.float64]  # (methods, M, B), or (J, methods, M, B)
    settings: SoftEloSettings
    warnings: list[str]


def soft_elo(
    battles: JudgedBattles | Mapping[str, JudgedBattles],
    ridge: float = 0.01,
    n_resamples: int = 1000,
    seed: int = 0,
    methods: Sequence[str] = ("hard", "soft"),
    *,
    base: float = 1500.0,
    min_battles: int = 20,
    ties: Ties = "drop",
    progress: bool | None = None,
) -> SoftElo:
    """Skeleton."""
    raise NotImplementedError
