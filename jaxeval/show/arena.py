"""Leaderboards in the columns of the Arena's own data set, lmarena-ai/leaderboard-dataset on the Hugging Face Hub.

The columns and their types are those that readers of the data set rely on in public code (as of September 2026): the
subsets of ratings ("text", "text_style_control" and so on) have ``model_name``, ``organization``, ``license``,
``rating``, ``rating_lower``, ``rating_upper`` (null where unknown), ``variance``, ``vote_count``, ``rank``,
``category`` ("overall" for the whole board) and ``leaderboard_publish_date`` (text, as "2026-09-13"), in Parquet files
with the splits "full" and "latest". The card of the data set itself could not be read, so two points are not verified:
by which rule the Arena's ``rank`` handles ties (here it is the rank by rating), and on which scale its ``variance`` is
(here Elo^2).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING

from jaxeval.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_TEXTS = ("model_name", "organization", "license", "category", "leaderboard_publish_date")
_NUMBERS = ("rating", "rating_lower", "rating_upper", "variance")
_COUNTS = ("vote_count", "rank")
ARENA_COLUMNS = (
    "model_name", "organization", "license", "rating", "rating_lower", "rating_upper", "variance", "vote_count", "rank",
    "category", "leaderboard_publish_date",
)  # fmt: skip


def arena_table(table: pd.DataFrame, published: date | str, about: pd.DataFrame | None = None) -> pd.DataFrame:
    """A leaderboard in the columns and types of the Arena's data set; the module's docstring names their sources.

    Models without a rating or a rank keep their row, with null there: the Arena's set has no infinite numbers.

    Args:
        table: as `jaxeval.leaderboard` gives it.
        published: the day of the leaderboard, as a date or "2026-09-13".
        about: organizations and licenses: columns ``organization`` and ``license``, by model as the index; by default
            those columns of ``table``, if it has them. Other models get null.

    Raises:
        DataError: the table is no leaderboard; ``published`` is no date.

    Examples:
        >>> import jaxeval
        >>> board = jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=200)
        >>> rows = jaxeval.arena_table(board, "2026-09-13")
        >>> rows[["model_name", "vote_count", "rank", "category", "leaderboard_publish_date"]].head(2)
          model_name  vote_count  rank category leaderboard_publish_date
        0    model-1         806     1  overall               2026-09-13
        1    model-2        1254     2  overall               2026-09-13
    """
    import numpy as np
    import pandas as pd

    lacking = [name for name in ("model_name", *_NUMBERS, *_COUNTS) if name not in table]
    if lacking:
        raise DataError(f"the table is no leaderboard: it has no columns {', '.join(lacking)}")
    try:
        day = published if isinstance(published, date) else date.fromisoformat(published)
    except ValueError as error:
        raise DataError(f"published={published!r} is no date such as 2026-09-13") from error
    models = table["model_name"]
    makers = table.set_axis(models.astype(str)) if about is None else about.set_axis(about.index.astype(str))
    makers = makers[~makers.index.duplicated()]  # of several categories
    columns = {
        "model_name": models,
        **{
            name: models.astype(str).map(makers[name]) if name in makers else None
            for name in ("organization", "license")
        },
        **{name: table[name].astype(float).where(np.isfinite(table[name].astype(float))) for name in _NUMBERS},
        **{name: table[name] for name in _COUNTS},
        "category": table.get("category", "overall"),
        "leaderboard_publish_date": day.isoformat(),
    }
    found = pd.DataFrame(columns, index=table.index).loc[:, list(ARENA_COLUMNS)]
    kinds = {**_all(_TEXTS, "string"), **_all(_NUMBERS, "Float64"), **_all(_COUNTS, "Int64")}
    found = found.astype(kinds)
    found.attrs = dict(table.attrs)
    return found


def _all(names: Iterable[str], kind: str) -> dict[str, str]:
    return dict.fromkeys(names, kind)
