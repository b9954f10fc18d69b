"""Target maps: from a judged battle to the target that A wins (arXiv:2606.13221, Eq. 5 and Appendix H)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from jaxeval.arrays import Float
from jaxeval.wording import did_you_mean


def smoothing(method: str) -> float:
    """The constant of a target map that moves hard labels: 1 for "hard", c for "smooth:c" (Appendix H).

    Raises:
        ValueError: there is no such map, or c lies outside [0.5, 1].
    """
    name, _, text = method.partition(":")
    try:
        constant = 1.0 if method == "hard" else float(text)
    except ValueError:
        constant = np.nan
    if not (method == "hard" or name == "smooth") or not 0.5 <= constant <= 1:
        raise ValueError(
            f"unknown method {method!r}: expected 'hard', 'soft', or 'smooth:c' with c in [0.5, 1], such as "
            f"'smooth:0.8'{did_you_mean(method, ('hard', 'soft', 'smooth:0.8'))}"
        )
    return constant


def targets(method: str, score_difference: Float, hard: Float, beta: float | Float | None) -> Float:
    """Targets that A wins by a target map: "soft" is s(beta d), the others move the hard label and need no ``beta``."""
    if method == "soft":
        return np.asarray(expit(np.nan if beta is None else beta * score_difference))
    return 0.5 + (2 * smoothing(method) - 1) * (hard - 0.5)
