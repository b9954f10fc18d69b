"""What the commands of meta-evaluation print and write: wide tables of estimates with their pairs, and sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxeval.cli.outputs import write_folder
from jaxeval.cli.processes import first_goes_on
from jaxeval.cli.terminal import note, print_table, say, short_number, stdout_console, warn
from jaxeval.wording import counted, visible_line

if TYPE_CHECKING:
    import pandas as pd

_MOST_SENTENCES = 30
_LABELS: dict[str, Callable[[Any], str]] = {
    "delta": lambda delta: "all pairs" if delta == float("inf") else f"< {delta:g}",
    "tier": "tier {:g}".format,  # rows of numbers hold whole ones as floats
    "test_tier": "tier {:g}".format,
    "budget": lambda budget: counted(budget, "vote"),
}


def wide(
    table: pd.DataFrame,
    rows: str,
    columns: str,
    cell: Callable[[pd.Series], str],
    label: Callable[[Any], str] | None = None,
) -> pd.DataFrame:
    """A row per value of ``rows`` and a column per value of ``columns``, the cells as text."""
    import pandas as pd

    name = label or _LABELS.get(columns, visible_line)
    found: dict[Any, dict[str, Any]] = {}
    for _, row in table.iterrows():
        first = _LABELS.get(rows, visible_line)(row[rows])
        found.setdefault(first, {rows: first})[name(row[columns])] = cell(row)
    return pd.DataFrame(list(found.values()))


def pairs_cell(name: str) -> Callable[[pd.Series], str]:
    """Cells of the estimate ``name`` and its pairs; the pairs alone where it is missing or hidden."""

    def cell(row: pd.Series) -> str:
        n = 0 if row["n_pairs"] != row["n_pairs"] else row["n_pairs"]
        return estimate(row, name, count=f" ({n:,.0f})")

    return cell


def estimate(row: pd.Series, name: str, form: str = ".3f", count: str = "", between: str = "\n") -> str:
    """A cell of a number and, on the next line, its interval; a dash where there is none."""
    if row[name] != row[name]:
        return f"-{count}"
    own = f"{name}_" if f"{name}_lower" in row else ""
    lower, upper = row.get(f"{own}lower", float("nan")), row.get(f"{own}upper", float("nan"))
    short = ".1f" if form == ".1f" else ".2f"
    ends = "" if lower != lower else f"{between}[{lower:{short}}, {upper:{short}}]"
    return f"{row[name]:{form}}{count}{ends}"


def number_cell(name: Any, value: Any) -> str:
    """A cell of a number, or one that `wide` made, whose lines it keeps."""
    if isinstance(value, float):
        if str(name) == "reached_share" and value == value:
            return f"{value:.2f}"
        return "-" if value != value else "never" if value == float("inf") else short_number(value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def one_line_cell(name: Any, value: Any) -> str:
    """A cell of a number or of a name."""
    return visible_line(value) if isinstance(value, str) else number_cell(name, value)


class Findings(NamedTuple):
    """What a command of meta-evaluation found."""

    printed: Sequence[tuple[pd.DataFrame, str, Callable[[Any, Any], str]]]  # tables, titles, and how cells are shown
    written: Mapping[str, pd.DataFrame]
    figures: Callable[[], dict[str, Any]]
    read: object  # from the file
    unit: str  # what was resampled
    warnings: Sequence[str]
    advice: Sequence[str]


def present(found: Findings, drawn: Mapping[str, Any], out: Path | None) -> None:
    """Write tables, figures and the advice into the folder ``out``, if any; print what is to be printed."""
    first_goes_on()
    # Files first: what is wrong with the terminal must not cost them.
    if out is not None:
        write_folder(out, found.written, found.figures(), {"advice.txt": "".join(f"{s}\n" for s in found.advice)})
    console = stdout_console()
    for table, title, cell in found.printed:
        print_table(console, table, title, cell)
    note(console, found.read)
    resamples = counted(drawn["n_resamples"], "resample")
    intervals = f"{100 * drawn['level']:g}% intervals, {resamples} of {found.unit}, seed {drawn['seed']}"
    note(console, intervals if drawn["n_resamples"] else "no resamples, so no intervals")
    warn(console, found.warnings)
    for sentence in found.advice[:_MOST_SENTENCES]:
        say(console, f"* {sentence}", "cyan")
    if len(found.advice) > _MOST_SENTENCES:
        say(console, f"* and {len(found.advice) - _MOST_SENTENCES:,} more: --out writes all to advice.txt", "cyan")
