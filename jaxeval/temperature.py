"""Temperature of a judge: the slope of the human's probability in the judge's score difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Ties = Literal["drop", "half"]


@dataclass(frozen=True)
class Temperature:
    """A fitted temperature."""

    beta: float
    standard_error: float
    n_battles: int
    status: str
    log_likelihood: float
    n_steps: int
    ties: Ties


def fit_temperature(score_difference: Any, human: Any, *, ties: Ties = "drop", weight: Any = None) -> Temperature:
    """Skeleton."""
    raise NotImplementedError
