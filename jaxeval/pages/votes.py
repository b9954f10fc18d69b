"""The votes behind boards: their counts by pair, whether a reader's browser can refit them, and covariates.

Refits keep the control at its estimate, as offsets of votes; votes on short answers may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from jaxeval.arrays import Bool, Float
from jaxeval.data.battles import Battles
from jaxeval.data.cells import Cells
from jaxeval.data.features import Design, Feature, FeatureLike, arena_style, design, style_counts
from jaxeval.data.numbers import numbers
from jaxeval.errors import DataError
from jaxeval.kernels.links import Link
from jaxeval.pages.boards import Given
from jaxeval.pages.document import codes, packed_numbers, packed_text
from jaxeval.ratings.gauge import ELO_PER_UNIT
from jaxeval.ratings.slices import slice_name

#: Why a browser does not refit boards that were not fitted by plain maximum likelihood.
_OTHER_FITS = {
    "ties": "this board has a model of ties", "link": "this board is of another link than the logistic one",
    "penalty": "this board is fitted with a penalty", "ridge": "this board is fitted with a ridge",
}  # fmt: skip
_USUAL = {"ties": "half", "link": "logit", "penalty": "auto", "ridge": 0.0}
#: The most models that a browser refits and that heat maps show.
MOST_MODELS = 300

#: Offsets are whole thousandths of a logit, so that each is off by at most .09 Elo.
_STEPS = 1_000
#: Votes on short answers: those whose shorter answer is among this share.
_SHORT = 0.25
_ARENA_LENGTH = "sum_assistant_tokens"
_NEWTON_STEPS = 8
_LENGTH = re.compile(r"len|token|char|word", re.IGNORECASE)

_OUTCOMES = (1.0, 0.5, 0.0)  # targets of a win, a tie and a loss of a pair's first model


def add_votes(
    boards: Sequence[dict[str, Any]], tables: Sequence[Given], battles: Any, number: Mapping[str, int],
    features: Sequence[FeatureLike] = (),
) -> None:  # fmt: skip
    """Give each board its votes by pair, or the reason why it has none.

    The ``boards`` are those that `boards.boards_of` makes of ``tables``, ``battles`` the votes behind all of them,
    ``number`` that of each model by its name, and ``features`` covariates that are no columns.
    """
    if not isinstance(battles, Battles):
        raise TypeError(f"battles= takes Battles, got {type(battles).__name__}: see read_battles and from_pandas")
    left = iter(boards)
    known = [found_features(shown, battles, features) for shown in tables]
    listed = [shown for shown in known if isinstance(shown, list)]
    short = next(filter(None, (short_answers(battles, shown) for shown in listed)), None)
    for shown, covariates_of_board in zip(tables, known, strict=True):
        units = None
        if shown.controls and isinstance(covariates_of_board, list):
            units = design(battles, covariates_of_board, bool(shown.settings.get("normalize", True)))
        of_table = []
        for name, rows, table in _groups(shown, battles):
            board = next(left)
            of_table.append((name, board))
            whole, cell = battles.compress(rows)
            models, cells = whole.localise(battles.models)
            _check(board["title"], models, cells, table)
            _add(board, shown, models, cells, number)
            if board["what_if"] is not None:
                continue
            ratings = table.set_index(table["model"].astype(str))["rating"]
            strength = ratings.reindex(battles.models.astype(str)).to_numpy(float) / ELO_PER_UNIT[Link.LOGIT]
            strength[~np.isfinite(strength)] = np.nan
            side_a = None
            if isinstance(covariates_of_board, str):
                board["what_if"] = f"What-if is off: {covariates_of_board}."
            elif units is not None:
                if (control := coefficients(shown, name, units)) is None:
                    board["what_if"] = "What-if is off: a covariate of this board has no finite coefficient."
                    continue
                side_a = units.matrix @ control
                board["offsets"] = _offsets(battles, rows, whole, cell, strength, side_a[rows])
            if short is not None and len(few := rows[short[0][rows]]):
                of_few = None if side_a is None else side_a[few]
                board["levers"] = [_short_lever(battles, few, short[1], number, of_few, strength)]
        _pool(shown, battles, of_table)


def _groups(board: Given, battles: Battles) -> Iterable[tuple[Any, NDArray[np.intp], pd.DataFrame]]:
    """Return each category in the order of the table: its name, the rows of its battles, and those of the table."""
    if "category" not in board.table:
        yield None, np.arange(battles.n_rows), board.table
        return
    if not board.by:
        raise DataError("the leaderboard has categories and does not say by which column: make it with by=")
    members = battles.members(board.by, board.settings.get("missing"))
    place = {str(slice_name(group)): k for k, group in enumerate(members.groups)}
    for name, table in board.table.groupby("category", sort=False):
        if str(name) not in place:
            raise DataError(
                f"battles= have no {' / '.join(board.by)} {name!r}: give those that the leaderboard is made of"
            )
        yield name, members.rows(np.flatnonzero(members.codes == place[str(name)])), table


def _short_lever(
    battles: Battles, rows: NDArray[np.intp], words: str, number: Mapping[str, int], side_a: Float | None,
    strength: Float,
) -> dict[str, Any]:  # fmt: skip
    """Return the votes on short answers of a board, which a reader may leave out; ``side_a`` as `_offsets` takes it."""
    whole, cell = battles.compress(rows)
    models, cells = whole.localise(battles.models)
    lever = {"title": "short answers", "words": words, "pairs": pair_data(cells, [number[str(m)] for m in models])}
    if side_a is None:
        return lever
    return {**lever, "offsets": _offsets(battles, rows, whole, cell, strength, side_a)}


def _check(title: str, models: pd.Index, cells: Cells, table: pd.DataFrame) -> None:
    """Raise DataError unless each model has as many battles as its row says."""
    n = np.bincount(cells.first[cells.pair], cells.count, len(models))
    n += np.bincount(cells.second[cells.pair], cells.count, len(models))
    stated = pd.Series(table["vote_count"].to_numpy(), table["model"].astype(str).to_numpy())
    there = pd.Series(n.astype(np.int64), models.astype(str))
    both = pd.DataFrame({"said": stated, "there": there}).fillna(0)
    wrong = both[both["said"] != both["there"]]
    if len(wrong):
        first = wrong.iloc[0]
        raise DataError(
            f"battles= are not those of the board {title!r}: {wrong.index[0]!r} has {first['there']:,.0f} of them, and "
            f"the board says {first['said']:,.0f}"
        )


def _add(board: dict[str, Any], table: Given, models: pd.Index, cells: Cells, number: Mapping[str, int]) -> None:
    settings = table.settings
    numbers = [number.get(str(name), -1) for name in models]  # -1: the page does not show it
    shown = None
    if len(models) > MOST_MODELS or -1 in numbers:
        there = {model: k for k, model in enumerate(numbers)}
        shown = [there[row["model"]] for row in board["rows"][:MOST_MODELS]]
    other = [text for name, text in _OTHER_FITS.items() if settings.get(name) not in (None, "none", _USUAL[name])]
    if not has_outcomes(cells):
        other.append("some votes are neither wins nor ties nor losses")
    if len(models) > MOST_MODELS:
        other.append(f"it has {table.competitor.counted(len(models))}, and browsers refit up to {MOST_MODELS}")
    elif shown is not None:
        other.append(f"the page holds the first {len(shown):,} of its {table.competitor.counted(len(models))} only")
    board["law"] = None  # of tie models, whose settings do not say how ratings become expected points
    if settings.get("ties", "half") == "half" and "link" in settings:
        link = Link.PROBIT if settings["link"] == "probit" else Link.LOGIT
        board["law"] = {"name": link.name.lower(), "unit": ELO_PER_UNIT[link]}
    board["pairs"] = pair_data(cells, numbers, shown)
    board["what_if"] = None if not other else f"What-if is off: {other[0]}."
    board["reweight"] = bool(settings.get("reweight", False))
    board["gauge"] = _gauge(settings, models, number)


def _gauge(settings: Mapping[str, Any], models: pd.Index, number: Mapping[str, int]) -> dict[str, Any]:
    """Return what fixes the level of the ratings, from the sentence in the settings."""
    gauge = str(settings.get("gauge", ""))
    name, equals, rating = gauge.rpartition(" = ")
    if equals and name in set(models.astype(str)):
        return {"kind": "model", "model": number.get(name), "rating": float(rating)}
    kind = "votes" if gauge.startswith("mean rating weighted") else "mean"
    return {"kind": kind, "model": None, "rating": float(settings.get("base", 1000.0))}


def _pool(table: Given, battles: Battles, boards: Sequence[tuple[Any, dict[str, Any]]]) -> None:
    """Say which boards a reader may add up; where categories overlap, which one may be taken off the overall board."""
    usable = [(name, board) for name, board in boards if board["what_if"] is None and board["pairs"]]
    if len(usable) < 2:
        return
    overlapping = battles.members(table.by, table.settings.get("missing")).overlapping
    if not overlapping:
        for _, board in usable:
            board["pool"] = {"kind": "add", "ids": [other["id"] for _, other in usable]}
        return
    for name, board in usable:
        if name == "overall" and not table.controls:  # each category has a control of its own
            board["pool"] = {"kind": "take", "ids": [other["id"] for _, other in usable if other is not board]}


def pair_data(cells: Cells, models: Sequence[int], shown: Sequence[int] | None = None) -> dict[str, Any]:
    """Return the battles between M models in the form that a page's heat maps and refits need.

    Of the ``models``, (M,) their numbers on the page, those at the positions ``shown`` are kept, at most `MOST_MODELS`.
    ``models`` of the result are their numbers, to which pairs refer by position; ``kind`` is "counts", "weights" or
    "soft"; and ``text`` holds columns as `packed`: wins, ties and losses of the first model. If battles have weights
    other than 1, the sums of their weights and of their squared weights follow. Soft targets have other columns: the
    number of battles, then their weight and the points of the first model.
    """
    kept = np.arange(len(models)) if shown is None else np.sort(np.asarray(shown, np.intp))
    place = np.full(len(models), -1)
    place[kept] = np.arange(len(kept))
    first, second = place[cells.first], place[cells.second]
    both = (first >= 0) & (second >= 0)
    kind, whole, real = _columns(cells)
    text = packed(first[both], second[both], [x[both] for x in whole], [x[both] for x in real], len(kept))
    return {"models": [int(models[k]) for k in kept], "kind": kind, "text": text}


def has_outcomes(cells: Cells) -> bool:
    """Return whether all battles are wins, ties and losses."""
    return bool(np.isin(cells.target, _OUTCOMES).all())


def _columns(cells: Cells) -> tuple[str, list[Float], list[Float]]:
    """Return the kind of battles, columns of whole numbers, and others."""
    if not has_outcomes(cells):
        return "soft", [cells.battles], [*cells.pair_sums()]
    kind, powers = ("counts", ()) if np.all(cells.weight == 1) else ("weights", (1, 2))
    return kind, [*outcome_sums(cells)], [sums for power in powers for sums in outcome_sums(cells, power)]


def outcome_sums(cells: Cells, power: int = 0) -> Float:
    """Return (3, P) sums of a ``power`` of the weights of each pair's wins, ties and losses; by default their number.

    They are wins, ties and losses of the pair's first model.
    """
    outcome, n_pairs = 2 - (2 * cells.target).astype(np.int64), len(cells.first)  # in the order of _OUTCOMES
    sums = np.bincount(outcome * n_pairs + cells.pair, cells.count * cells.weight**power, 3 * n_pairs)
    return np.asarray(sums.reshape(3, n_pairs), np.float64)


def packed(
    first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]], whole: Sequence[Float], real: Sequence[Float],
    n_models: int,
) -> str:  # fmt: skip
    """Return columns of P pairs as base64 of gzip.

    The bytes begin with whole numbers, seven bits to a byte, the lowest bits first; all but a number's last byte have
    128 added. These numbers are P; the difference of each pair (first * M + second) from the pair before; and each
    column of ``whole``. From the next multiple of eight bytes on follow the columns of ``real`` as little-endian
    doubles.
    """
    key = first.astype(np.int64) * n_models + second
    order = np.argsort(key)
    gaps = np.diff(key[order], prepend=0)
    numbers = np.concatenate([[len(key)], gaps, *(np.asarray(x)[order] for x in whole)]).astype(np.uint64)
    content = _sevens(numbers)
    content += bytes(-len(content) % 8)
    content += np.concatenate([np.zeros(0), *(np.asarray(x)[order] for x in real)]).astype("<f8").tobytes()
    return packed_text(content)


def _sevens(numbers: NDArray[np.uint64]) -> bytes:
    """Return each number as bytes of seven bits."""
    digits = numbers[:, None] >> np.arange(0, 64, 7, dtype=np.uint64)
    low = (digits & np.uint64(127)).astype(np.uint8)
    low[digits > 127] |= 128
    used = digits > 0
    used[:, 0] = True
    return low[used].tobytes()


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


def coefficients(board: Given, name: Any, units: Design) -> Float | None:
    """Return the coefficients (D,) of a category for the columns of the design; None where one is not finite."""
    records = [record for record in board.table.attrs.get("coefficients", ()) if record.get("category") == name]
    by_name = {record["feature"]: record["coefficient"] for record in records}
    values = np.array([by_name.get(feature, np.nan) for feature in units.names], float) / units.factor
    return values if np.isfinite(values).all() else None


def _offsets(
    battles: Battles, rows: NDArray[np.intp], cells: Cells, cell: NDArray[np.intp], strength: Float, side_a: Float
) -> dict[str, Any]:
    """Return where the offsets of each pair's wins, ties and losses lie and how they spread, as packed columns of P.

    Two points, one spread below and one above, stand for the offsets of an outcome. Spreads are standard deviations,
    and the points lie so that they expect as many points as the votes do at the ratings of the board: refits of all
    votes are the board, and those of some are near that of every vote with its offset.

    The ``rows`` (R,) of a board's votes are in the ``cells``, each in the ``cell`` (R,). The control adds ``side_a``
    (R,) to the logit of side A in each row; ``strength`` (M,) of models is in logits, too.
    """
    order = np.argsort(cells.first.astype(np.int64) * len(battles.models) + cells.second)  # that of `packed`
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    slot = 3 * place[cells.pair[cell]] + (2 - 2 * cells.target[cell]).astype(np.int64)  # of the pair and the outcome
    difference = np.repeat((strength[cells.first] - strength[cells.second])[order], 3)
    weight = np.ones(len(rows)) if battles.weight is None else battles.weight[rows]
    weight = weight if battles.count is None else weight * battles.count[rows]
    first = np.where(battles.model_a[rows] > battles.model_b[rows], -side_a, side_a)  # added to the pair's first model
    expected = expit(difference[slot] + first)
    total, *sums = (
        np.bincount(slot, weight * x, len(difference)) for x in (np.ones(len(first)), first, first**2, expected)
    )
    mean, square, points = (np.asarray(x, float) / np.where(total > 0, total, 1) for x in sums)
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    at, solvable = mean.copy(), (total > 0) & np.isfinite(difference)
    for _ in range(_NEWTON_STEPS):
        p = expit((difference + at)[:, None] + spread[:, None] * [-1, 1])
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
