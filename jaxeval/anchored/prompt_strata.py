"""Strata of prompts: every resample holds as many prompts of each stratum as the data."""

from __future__ import annotations

import numpy as np

from jaxeval.arrays import Int
from jaxeval.data.anchored_verdicts import ROLES, AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.resampling.strata import stratum_of_groups
from jaxeval.wording import did_you_mean


def prompt_strata(verdicts: AnchoredVerdicts, strata: str | None) -> Int | None:
    """(I,) the stratum of each of the items that have verdicts, in the order of their numbers; None without strata.

    Args:
        verdicts: of the prompts.
        strata: the role whose values are the strata: "task", as a rule.

    Raises:
        ValueError: the role is unknown.
        DataError: the verdicts have no column of that role, or a prompt lies in several strata.
    """
    if strata is None:
        return None
    if strata not in ROLES:
        raise ValueError(
            f"strata must be one of {', '.join(map(repr, ROLES))}, got {strata!r}{did_you_mean(strata, ROLES)}"
        )
    levels = verdicts.levels[strata]
    if len(levels) == 1 and levels[0] == f"(one {strata})":
        raise DataError(
            f"strata={strata!r}, and the verdicts have no column of that role: name it with {strata}= when they are "
            f"read (on the command line --{strata})"
        )
    items, item = np.unique(verdicts.number["item"], return_inverse=True)
    return stratum_of_groups(verdicts.number[strata], item, verdicts.levels["item"][items], strata, "prompt")
