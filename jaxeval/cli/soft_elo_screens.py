"""Soft-Elo in a terminal: how close the judge comes to the humans, and ratings under the leaderboard's headings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jaxeval.cli.report import leaderboard_screen
from jaxeval.show.headings import heading
from jaxeval.show.rated import board_grid
from jaxeval.show.screens import Grid, Screen, columns_of, grid_of
from jaxeval.softelo.calibrated_methods import floor_text
from jaxeval.softelo.soft_elo import how_close
from jaxeval.wording import counted, visible_line

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.softelo.calibration import SoftEloCalibration
    from jaxeval.softelo.merged_board import MergedBoard

#: Half of a 95 % interval, in standard errors; for ratings that have no conformal interval.
_Z = 1.959964


def held_out_screen(
    tables: Mapping[str, pd.DataFrame],
    notes: Sequence[str],
    warnings: Sequence[str],
    splits: int,
    by: str | None,
    judges: pd.DataFrame | None = None,
) -> Screen:
    """The screen of ``soft-elo FILE``: the best method's error first, then its ratings beside those of the humans.

    With the summaries of several ``judges`` the screen begins with them, and ``tables`` are those of the best.
    """
    summary = tables["summary"].sort_values("mae", kind="stable")
    best = summary.iloc[0]
    shown = ["method", "n_models", "n_left_out", "mae", "mae_lower", "mae_upper", "spearman", "kendall", "beta"]
    title = "Held-out ratings against human ratings (Elo)"
    heads = summary[shown] if judges is None else judges.sort_values("mae", kind="stable")[["judge", *shown]]
    grids = [grid_of(heads, title, rows="method"), _held_out_board(tables, best["method"])]
    more = []
    if "conformal" in tables:
        title = f"Split conformal intervals, {counted(splits, 'random split')} (Elo)"
        more.append(grid_of(tables["conformal"], title, rows="method"))
    more.append(grid_of(tables["diagnostics"], "The judge's scores", rows="measure"))
    if "smoothing" in tables:
        grids.append(grid_of(tables["smoothing"], "Label smoothing by its constant (Elo)"))
    if "slices" in tables:
        title = f"Slices by {by}, against the global human rating (Elo)"
        grids.append(grid_of(tables["slices"], title, rows="slice"))
    if "budget" in tables:
        more.append(grid_of(tables["budget"], "By the annotation budget (Elo)"))
    return Screen(how_close(summary if judges is None else judges), grids, more, notes=notes, warnings=warnings)


def _held_out_board(tables: Mapping[str, pd.DataFrame], method: str) -> Grid:
    """Judged ratings of models, the best first, with conformal intervals where there are any."""
    models = tables["models"]
    own = models[models["method"] == method].sort_values("judge_elo", ascending=False, kind="stable")
    rating, what = own["judge_elo"].to_numpy(float), "95% intervals of sampling"
    half = _Z * own["standard_error"].to_numpy(float)
    lower, upper = rating - half, rating + half
    if "intervals" in tables:
        ends = tables["intervals"]
        ends = ends[ends["method"] == method].set_index("model")[["lower", "upper"]].reindex(own["model"])
        lower, upper = ends["lower"].to_numpy(float), ends["upper"].to_numpy(float)
        what = "leave-one-out conformal intervals"
    return board_grid(
        f"{visible_line(method).capitalize()} ratings of models held out, with {what} (Elo)",
        list(own["model"]),
        rating,
        lower,
        upper,
        rank=range(1, len(own) + 1),
        extra=[
            *columns_of(own[["human_elo"]].rename(columns={"human_elo": "human"}), 7),
            *columns_of(own[["residual"]].rename(columns={"residual": "off_by"}), 8),
        ],
        votes=own["n_human"].tolist(),
        notes=own["flags"].astype(str).tolist(),
    )


def calibration_screen(calibration: SoftEloCalibration, read: object) -> Screen:
    """The screen of ``soft-elo calibrate``: what each method can do, and what it cannot."""
    return Screen(calibration.answer.sentences, [], notes=[str(read)], warnings=calibration.warnings)


def prediction_screen(table: pd.DataFrame, method: str) -> Screen:
    """The screen of ``soft-elo predict``: ratings of new models, under the leaderboard's headings."""
    settings = table.attrs["settings"]
    shown = table.sort_values("rating", ascending=False, kind="stable")
    grid = board_grid(
        f"Ratings on the human scale with {settings['level']:g} intervals (Elo)",
        list(shown["model"]),
        *(shown[name].to_numpy(float) for name in ("rating", "lower", "upper")),
        rank=range(1, len(shown) + 1) if len(shown) > 1 else (),
        extra=columns_of(shown[["n_battles"]], 5),
        notes=shown["flags"].astype(str).tolist(),
    )
    first = shown.iloc[0]
    answer = (
        f"{visible_line(first['model'])} rates {first['rating']:.1f} [{first['lower']:.1f}, {first['upper']:.1f}] on "
        "the human scale"
    )
    votes, error = settings["human_votes"], settings["human_error"]
    endless = "the intervals are for the model's true strength"
    finite = f"the intervals are for the board's rating after {votes:g} human votes (their error: {error:.1f} Elo)"
    calibrate = counted(settings["n_calibration"], "model calibrates", "models calibrate")
    notes = [
        f"{finite if error else endless}; {floor_text(settings['floor'])}",
        f"{calibrate}: expected coverage {settings['expected_coverage']:.4f}, nominal {settings['level']:g}; ridge "
        f"{settings['ridge']:g}; method {method}",
    ]
    return Screen(
        [answer if len(shown) == 1 else f"{answer}, the highest of {counted(len(shown), 'new model')}"],
        [grid],
        notes=notes,
        warnings=table.attrs["warnings"],
    )


def merged_screen(merged: MergedBoard) -> Screen:
    """The screen of ``soft-elo merge``: where the new models stand, and the board."""
    table, settings = merged.table, merged.table.attrs["settings"]
    board = leaderboard_screen(table)
    grids = [
        grid._replace(columns=[c._replace(order=0) if c.head == heading("rests_on") else c for c in grid.columns])
        for grid in board.grids
    ]
    about = (
        f"new models: {visible_line(settings['judge'])}, {settings['target_map']} targets, judge's ridge "
        f"{settings['judge_ridge']:g}; {floor_text(settings['floor'])}"
    )
    return board._replace(answer=merged.answer.sentences, grids=grids, notes=[about, *board.notes])
