"""Which models serve as references, alone and in sets, and the tiers of all models."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int
from jaxeval.wording import did_you_mean, named

Sets = Mapping[str, Sequence[Hashable]] | Sequence[Sequence[Hashable]]

_COMBINATIONS = ((1, 2, 3, 4), (1, 2, 3), (2, 3, 4), (3, 4), (1, 4), (1, 3))  # of tiers, Table 6


def model_numbers(names: Sequence[Hashable], models: pd.Index) -> NDArray[np.intp]:
    """Numbers of the models named."""
    if isinstance(names, str) or len(names) == 0:
        got = f"the text {names!r}" if isinstance(names, str) else "none"
        raise ValueError(f"references must be a list of one or more models, got {got}")
    number = models.get_indexer(pd.Index(list(names)))
    missing = [name for name, n in zip(names, number, strict=True) if n < 0]
    if missing:
        raise ValueError(
            f"no model {named(missing)} on the board, whose models are "
            f"{named(models)}{did_you_mean(missing[0], models)}"
        )
    if len(set(number)) < len(number):
        twice = pd.Index(list(names))
        raise ValueError(f"references are named twice: {named(twice[twice.duplicated()].unique())}")
    return np.asarray(number)


def named_sets(sets: Sets, models: pd.Index) -> dict[str, NDArray[np.intp]]:
    """Numbers of the models of every set, by its name or those of its models."""
    items = sets.items() if isinstance(sets, Mapping) else ((" + ".join(map(str, names)), names) for names in sets)
    found: dict[str, NDArray[np.intp]] = {}
    label_of: dict[frozenset[int], str] = {}
    for key, names in items:
        label, numbers = str(key), model_numbers(names, models)
        first = label_of.setdefault(frozenset(numbers.tolist()), label)
        if label in found or first != label:
            raise ValueError(f"sets are named twice: {label}{f' is {first} again' if first != label else ''}")
        found[label] = numbers
    alone = [label for label, numbers in found.items() if len(numbers) < 2]
    if alone:
        raise ValueError(
            f"sets need two references or more: {named(alone)} (name single ones with references=, on the command line "
            "--reference)"
        )
    return found


def tiers_of(theta: Float, n_tiers: int) -> Int:
    """(M,) tiers of equal numbers of models by rating, as in `stratified_rank_change`: 1 = top, 0 = unrated."""
    rank = pd.Series(-theta).rank().to_numpy()
    size, more = divmod(int((~np.isnan(rank)).sum()), n_tiers)
    better = np.arange(1, n_tiers)
    tier = 1 + (rank[:, None] > better * size + np.minimum(better, more)).sum(1)
    return np.where(np.isnan(rank), 0, tier).astype(np.int64)


def default_sets(chosen: NDArray[np.intp], tier: Int, n_battles: Int) -> dict[str, NDArray[np.intp]]:
    """The combinations of tiers of Table 6 of Xu et al. (see `reference_study`).

    Of each tier, the one of the ``chosen`` references that has most battles.
    """
    best = {
        t: own[np.argmax(n_battles[own])]
        for t in np.unique(tier[chosen])
        if t > 0
        for own in [chosen[tier[chosen] == t]]
    }
    wanted = (tuple(t for t in tiers if t in best) for tiers in _COMBINATIONS)
    return {
        f"tiers {', '.join(map(str, tiers))}": np.array([best[t] for t in tiers])
        for tiers in dict.fromkeys(wanted)
        if len(tiers) > 1
    }
