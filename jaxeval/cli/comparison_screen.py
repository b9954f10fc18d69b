"""Two boards compared, in a terminal: who moved, the models of both, and how far the boards agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from jaxeval.cli.outputs import Findings
from jaxeval.show.boards import rank_spread
from jaxeval.show.rated import bars, whole
from jaxeval.show.screens import Column, Grid, Screen, columns_of, grid_of
from jaxeval.show.shown import settings_line
from jaxeval.wording import visible_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from jaxeval.ratings.board_comparison import BoardComparison


def comparison_findings(found: BoardComparison, table: pd.DataFrame, top: int | None) -> Findings:
    """What the command writes and prints; the ``table`` of the comparison may have further columns."""

    def figures() -> dict[str, Figure]:
        from jaxeval.plots.boards import plot_comparison

        return {"comparison": plot_comparison(found)}

    return Findings(
        screen=lambda: comparison_screen(found, table, top),
        tables={"comparison": table, "agreement": found.agreement.reset_index()},
        warnings=found.warnings,
        title=f"{' and '.join(map(visible_line, found.names))} compared",
        notes=notes_of(found),
        figures=figures,
        texts={"answer.txt": "".join(f"{sentence}\n" for sentence in found.answer.sentences)},
        settings=found.settings,
    )


def notes_of(found: BoardComparison) -> list[str]:
    """What was read, how it was drawn, and what the columns are."""
    a, b = map(visible_line, found.names)
    return [
        *found.notes,
        f"{settings_line(found.settings)} of the {found.competitor.many} on both; differences are {b} less {a}",
        f"intervals of differences are for all {found.competitor.many} at once, and decide who moved",
        found.settings["versions"],
    ]


def comparison_screen(found: BoardComparison, table: pd.DataFrame, top: int | None = None) -> Screen:
    """The screen of a comparison."""
    a, b = map(visible_line, found.names)
    rows = table.to_dict("records")
    value, lower, upper = (table[name].to_numpy(float) for name in ("difference", "at_once_lower", "at_once_upper"))
    more = [name for name in table if name not in found.table]
    columns = [
        Column(found.competitor.head, list(map(visible_line, table["model_name"])), right=False, folds=True),
        Column("Moved", [str(row["moved"] or "") for row in rows], right=False, order=1, style="yellow"),
        Column("Difference", [f"{x:+.1f}" for x in value]),
        Column("Interval", [_interval(row) for row in rows], right=False, order=2),
        Column("", bars(value, lower, upper), right=False, order=9, style="cyan"),
        *(
            column
            for side, name in (("a", a), ("b", b))
            for column in (
                Column(f"Rating {name}", [f"{x:.1f}" for x in table[f"rating_{side}"]], order=4),
                Column(f"Rank {name}", [whole(x) for x in table[f"rank_{side}"]], order=3),
                Column(f"Spread {name}", [_spread(row, side) for row in rows], right=False, order=5),
            )
        ),
        Column("Rank change", [_change(row) for row in rows], right=False, order=6),
        *columns_of(table[more], 8, found.competitor),
    ]
    grids = [Grid(None, columns, rows=found.competitor, top=None if top is None else min(top, len(table)))]
    agreement = found.agreement.reset_index().replace({"measure": {"top_overlap": f"top_{found.top}_overlap"}})
    grids.append(grid_of(agreement, "Agreement", rows="measure"))
    return Screen(answer=found.answer.sentences, grids=grids, notes=notes_of(found), warnings=found.warnings)


def _interval(row: dict[Any, Any]) -> str:
    ends = row["at_once_lower"], row["at_once_upper"]
    return "" if pd.isna(ends[0]) else f"{ends[0]:+.1f} to {ends[1]:+.1f}"


def _spread(row: dict[Any, Any], side: str) -> str:
    return rank_spread({name: row[f"{name}_{side}"] for name in ("rank_best", "rank_worst")})


def _change(row: dict[Any, Any]) -> str:
    """The change of a rank with its interval, +2 for two places down."""
    if pd.isna(row["rank_change"]):
        return ""
    ends = row["rank_change_lower"], row["rank_change_upper"]
    return f"{row['rank_change']:+d}" + ("" if pd.isna(ends[0]) else f" [{ends[0]:+.0f}, {ends[1]:+.0f}]")
