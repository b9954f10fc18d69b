"""How many models (M, M) results are for: beyond, an error says what to use, before memory runs out."""

from __future__ import annotations

#: Of 10,000 models one (M, M) table takes 800 MB.
MOST_SQUARE = 10_000
#: An inverse takes several tables, and M^3: ten seconds or more for 6,000 models.
MOST_INVERTED = 6_000

#: Differences of pairs, over all resamples, that tiers and ranks are searched among: some ten seconds.
MOST_COMPARISONS = 2_000_000_000


def check_square(n_models: int, most: int, what: str, instead: str) -> None:
    """Raise ValueError if ``what``, an (M, M) table, is out of reach; ``instead`` says what is not."""
    if n_models > most:
        raise ValueError(
            f"{what} is a table of {n_models:,} x {n_models:,} models, beyond the {most:,} that it is meant for; "
            f"use {instead}, or rate fewer models"
        )
