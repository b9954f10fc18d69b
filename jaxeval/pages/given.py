"""What a page is made of: the leaderboards that tables, resamples and fits give, each with a title."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from jaxeval.data.battles import Battles
from jaxeval.data.model_tables import join_metadata
from jaxeval.errors import DataError
from jaxeval.pages.results import is_result
from jaxeval.ratings import boards
from jaxeval.ratings.bootstrap_result import Bootstrap
from jaxeval.ratings.bradley_terry_fit import BradleyTerryFit
from jaxeval.ratings.leaderboard import PRELIMINARY_VOTES, leaderboard
from jaxeval.show.boards import is_board
from jaxeval.show.shown import Shown
from jaxeval.wording import Noun, competitor_of, competitor_settings

TAKEN = (
    "a leaderboard, as leaderboard() returns it, what bootstrap(), audit(), soft_elo() and others return, or several "
    "of them as a list or as a mapping of titles"
)


class Given(NamedTuple):
    """A leaderboard, which may have several categories."""

    title: str | None
    table: pd.DataFrame

    @property
    def settings(self) -> Mapping[str, Any]:
        """What made it; nothing where it does not say so."""
        return cast("Mapping[str, Any]", self.table.attrs.get("settings") or {})

    @property
    def competitor(self) -> Noun:
        """What it rates."""
        return competitor_of(self.settings)

    @property
    def controls(self) -> bool:
        """Whether it controls for covariates."""
        return bool(self.settings.get("features"))

    @property
    def by(self) -> list[str]:
        """The columns whose groups are its categories."""
        return list(self.settings.get("by") or [])


def scale_of(settings: Mapping[str, Any]) -> str:
    """In words, all that ratings of two days must share to be compared: gauge, link, ties and covariates."""
    usual = {"link": "logit", "ties": "half", "features": ()}
    parts = [str(settings.get("gauge", ""))]
    for name, value in usual.items():
        own = settings.get(name) or value
        if list(own) != list(value):
            parts.append(f"{name} {', '.join(map(str, own)) if isinstance(own, list | tuple) else own}")
    return ", ".join(filter(None, parts))


def given_boards(results: Any, metadata: Any = None) -> tuple[list[Given], list[tuple[str | None, Any]]]:
    """The leaderboards of ``results``, with what ``metadata`` know of their models; and results of other kinds.

    Raises:
        TypeError: ``results`` are of another type.
        DataError: there are no results, or a table has no models; as by `join_metadata`.
    """
    each = _each(results)
    found = [Given(title, _table(result)) for title, result in each if _is_board(result)]
    others = [(title, result) for title, result in each if not _is_board(result)]
    if not each:
        raise DataError(f"there is nothing to show: a page takes {TAKEN}")
    for title, table in found:
        if table.empty:
            said, own = "" if title is None else f" {title!r}", competitor_of(table.attrs.get("settings"))
            raise DataError(f"the leaderboard{said} has no {own.many}")
    if metadata is None:
        return found, others
    if not found:
        raise DataError("metadata= are about the models of a leaderboard, and there is none")
    return [own._replace(table=join_metadata(own.table, metadata)) for own in found], others


def _is_board(result: Any) -> bool:
    """Whether it is a leaderboard, or becomes one.

    Raises:
        TypeError: it is no result at all.
    """
    if isinstance(result, Bootstrap | BradleyTerryFit) or _of_slices(result):
        return True
    if isinstance(result, pd.DataFrame) and is_board(result):
        return True
    if not is_result(result) or isinstance(result, Battles):
        raise TypeError(f"a page takes {TAKEN}; got {type(result).__name__}")
    return False


def _each(results: Any) -> list[tuple[str | None, Any]]:
    """Each result, and its title if it has one."""
    if isinstance(results, pd.DataFrame | Shown) or _of_slices(results):
        return [(None, results)]
    if isinstance(results, Mapping):
        return [(str(title), result) for title, result in results.items()]
    if isinstance(results, Sequence) and not isinstance(results, str | bytes):
        tables = [_table(result) for result in results if _is_board(result)]
        others = [(None, result) for result in results if not _is_board(result)]
        with_and_without = len(tables) == 2 and len({bool(_features(table)) for table in tables}) == 2
        if len(tables) < 2 or with_and_without:
            return [*((None, table) for table in tables), *others]
        return [*((f"Board {k}", table) for k, table in enumerate(tables, 1)), *others]
    raise TypeError(f"a page takes {TAKEN}; got {type(results).__name__}")


def _features(table: pd.DataFrame) -> Any:
    return (table.attrs.get("settings") or {}).get("features")


def _of_slices(results: Any) -> bool:
    return isinstance(results, Mapping) and bool(results) and all(isinstance(x, Bootstrap) for x in results.values())


def _table(result: Any) -> pd.DataFrame:
    """The leaderboard of one result."""
    if isinstance(result, pd.DataFrame):
        return result
    if isinstance(result, Bootstrap) or _of_slices(result):
        return leaderboard(cast("Bootstrap | Mapping[Hashable, Bootstrap]", result))
    if isinstance(result, BradleyTerryFit):
        return fit_table(result)
    raise TypeError(f"a page takes {TAKEN}; got {type(result).__name__}")


def fit_table(fit: BradleyTerryFit, level: float = 0.95) -> pd.DataFrame:
    """A fit in the columns of `leaderboard`: with intervals from its errors; no tiers, no rank sets.

    A board that is too wide for a table of all pairs of models has no errors, and so no intervals.
    """
    rating = fit.ratings.to_numpy()
    rated, warnings = np.isfinite(rating), list(fit.warnings)
    if len(rating) > boards.MOST_INVERTED:
        ends, errors = pd.DataFrame(np.nan, fit.ratings.index, ["lower", "upper"]), np.full(len(rating), np.nan)
        many = fit.competitor.many
        warnings.append(
            f"ratings have no intervals: errors of a fit need its covariance, a table of all pairs of {many}, and "
            f"{len(rating):,} {many} are too many. Those of resamples need none: page(bootstrap(battles), ...)"
        )
    else:
        ends, errors = fit.interval(level), fit.standard_errors.to_numpy()
    table = pd.DataFrame(
        {
            "model_name": fit.ratings.index.to_numpy(),
            "rating": rating,
            "rating_lower": ends["lower"].to_numpy(),
            "rating_upper": ends["upper"].to_numpy(),
            "variance": np.where(rated, errors**2, np.nan),
            "vote_count": fit.n_battles.to_numpy(),
            "rank": pd.Series(rating).where(rated).rank(ascending=False, method="first").astype("Int64").array,
            "component": fit.component.to_numpy(),
            "standing": fit.standing.to_numpy(),
            "preliminary": fit.n_battles.to_numpy() < PRELIMINARY_VOTES,
            "degenerate_share": 0.0,
        }
    )
    order = np.lexsort([table["model_name"].astype(str), -np.nan_to_num(rating), ~rated])
    table = table.iloc[order].reset_index(drop=True)
    made = {"level": level, "interval": "wald", "n_resamples": 0, "by": [], "min_battles": 0}
    table.attrs = {
        "warnings": warnings,
        "report": str(fit.report),
        "settings": {
            **asdict(fit.settings),
            **made,
            "simultaneous_ranks": False,
            **competitor_settings(fit.competitor),
        },
    }
    return table
