"""Covariates on a page: refits keep the control at its estimate, as offsets of votes; and votes on short answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from jaxeval.arrays import Bool, Float
from jaxeval.data.battles import Battles
from jaxeval.data.columns import numbers
from jaxeval.data.features import Design, Feature, FeatureLike, arena_style, design, style_counts
from jaxeval.errors import DataError
from jaxeval.pages.boards import Given
from jaxeval.pages.room import codes, packed_numbers

#: Offsets are whole thousandths of a logit, so that each is off by at most .09 Elo.
_STEPS = 1_000
#: Votes on short answers: those whose shorter answer is among this share.
_SHORT = 0.25
_ARENA_LENGTH = "sum_assistant_tokens"
_NEWTON_STEPS = 8
_LENGTH = re.compile(r"len|token|char|word", re.IGNORECASE)


class PairedVotes(NamedTuple):
    """Votes of R rows by pair and outcome, in the order of a page's pairs."""

    rows: NDArray[np.intp]  # (R,) among those of the battles
    cell: NDArray[np.intp]  # (R,) pair * 3 + outcome, which is a win, a tie or a loss of the pair's first model
    turned: Bool  # (R,) whether side A is the pair's second model
    weight: Float  # (R,) of all battles of the row
    difference: Float  # (3 P,) strength of the pair's first model less that of its second, in logits


def found_features(board: Given, battles: Battles, covariates_given: Sequence[FeatureLike]) -> list[FeatureLike] | str:
    """Return the covariates of a leaderboard by their names, or why a page cannot have them."""
    known: dict[str, FeatureLike] = {feature.name: feature for feature in arena_style()}
    known |= {_name(feature): feature for feature in covariates_given}
    features: list[FeatureLike] = []
    for name in map(str, board.settings.get("features") or ()):
        sides = name.split(" - ")
        if name in known:
            features.append(known[name])
        elif _has(battles, name):
            features.append(name)
        elif len(sides) == 2 and all(_has(battles, side) for side in sides):
            features.append((sides[0], sides[1]))
        else:
            return f"the covariate {name!r} is no column of these votes: give it to page() as features="
    return features


def _name(feature: FeatureLike) -> str:
    if isinstance(feature, Feature):
        return feature.name
    return feature if isinstance(feature, str) else " - ".join(feature)


def _has(battles: Battles, name: str) -> bool:
    try:
        return len(battles.column(name)) == battles.n_rows
    except DataError:
        return False


def covariates(board: Given, battles: Battles, features: Sequence[FeatureLike]) -> Design:
    """Return the covariates of all rows, as the leaderboard has them."""
    return design(battles, features, bool(board.settings.get("normalize", True)))


def coefficients(board: Given, name: Any, units: Design) -> Float | None:
    """Return the coefficients (D,) of a category for the columns of the design; None where one is not finite."""
    records = [record for record in board.table.attrs.get("coefficients", ()) if record.get("category") == name]
    by_name = {record["feature"]: record["coefficient"] for record in records}
    values = np.array([by_name.get(feature, np.nan) for feature in units.names], float) / units.factor
    return values if np.isfinite(values).all() else None


def offsets(rows: PairedVotes, side_a: Float) -> dict[str, Any]:
    """Return where the offsets of each pair's wins, ties and losses lie and how they spread, as packed columns of P.

    Two points, one spread below and one above, stand for the offsets of an outcome. Spreads are standard deviations,
    and the points lie so that they expect as many points as the votes do at the ratings of the board: refits of all
    votes are the board, and those of some are near that of every vote with its offset.

    Args:
        rows: the votes of a board.
        side_a: (R,) what the control adds to the logit of side A in each row.
    """
    first, n = np.where(rows.turned, -side_a, side_a), len(rows.difference)
    expected = expit(rows.difference[rows.cell] + first)
    total, *sums = (
        np.bincount(rows.cell, rows.weight * x, n) for x in (np.ones(len(first)), first, first**2, expected)
    )
    mean, square, points = (np.asarray(x, float) / np.where(total > 0, total, 1) for x in sums)
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    at, solvable = mean.copy(), (total > 0) & np.isfinite(rows.difference)
    for _ in range(_NEWTON_STEPS):
        p = expit((rows.difference + at)[:, None] + spread[:, None] * [-1, 1])
        slope = np.where(solvable, (p * (1 - p)).mean(1), 1)
        at += np.where(solvable, points - p.mean(1), 0) / slope
    columns = [*at.reshape(-1, 3).T, *spread.reshape(-1, 3).T]
    return packed_numbers([codes(np.round(_STEPS * column).astype(int).tolist()) for column in columns])


def short_answers(battles: Battles, features: Sequence[FeatureLike]) -> tuple[Bool, str] | None:
    """Return which votes (R,) are on short answers, and which these are in words; None where nothing has lengths."""
    for feature in features:
        if not _LENGTH.search(_name(feature)):
            continue
        if isinstance(feature, str) or (isinstance(feature, Feature) and feature.name != _ARENA_LENGTH):
            continue
        if isinstance(feature, Feature):
            a, b = (style_counts(battles, f"sum_assistant_{side}_tokens").to_numpy(float) for side in "ab")
        else:
            a, b = (numbers(battles.column(name), name, battles.rows) for name in feature)
        shorter = np.minimum(a, b)
        cut = float(np.quantile(shorter, _SHORT))
        return shorter <= cut, f"votes whose shorter answer has at most {cut:,.0f} ({_name(feature)})"
    return None
