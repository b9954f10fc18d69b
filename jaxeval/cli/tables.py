"""What the commands of meta-evaluation print and write: wide tables of estimates with their pairs, and sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxeval.cli.outputs import Findings
from jaxeval.wording import counted, visible_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from jaxeval.show.screens import Screen

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

    from jaxeval.show.cells import Lines

    name = label or _LABELS.get(columns, visible_line)
    found: dict[Any, dict[str, Any]] = {}
    for _, row in table.iterrows():
        first = _LABELS.get(rows, visible_line)(row[rows])
        found.setdefault(first, {rows: first})[name(row[columns])] = Lines(cell(row))
    return pd.DataFrame(list(found.values()), dtype=object)  # a column of text would forget which cells have lines


def pairs_cell(name: str, between: str = "\n") -> Callable[[pd.Series], str]:
    """Cells of the estimate ``name`` and its pairs; the pairs alone where it is missing or hidden."""

    def cell(row: pd.Series) -> str:
        n = 0 if row["n_pairs"] != row["n_pairs"] else row["n_pairs"]
        return estimate(row, name, count=f" ({n:,.0f})", between=between)

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


class Printed(NamedTuple):
    """A table as a command of meta-evaluation prints it."""

    table: pd.DataFrame
    title: str
    rows: str
    meaning: str = ""
    kept: Sequence[str] = ()  # columns that stay where there is little room


class Study(NamedTuple):
    """What a command of meta-evaluation found."""

    printed: Sequence[Printed]  # on the screen
    more: Sequence[Printed]  # only on request
    written: Mapping[str, pd.DataFrame]  # the first is the main one
    figures: Callable[[], dict[str, Figure]]
    read: object  # from the file
    unit: str  # what was resampled
    warnings: Sequence[str]
    advice: Sequence[str]  # the first sentence is the answer


def study_findings(study: Study, drawn: Mapping[str, Any]) -> Findings:
    """What is written and printed of a study; ``drawn`` are the settings of the resamples."""
    from jaxeval.execution.precision import versions
    from jaxeval.show.screens import Screen, grid_of

    resamples = counted(drawn["n_resamples"], "resample")
    intervals = f"{100 * drawn['level']:g}% intervals, {resamples} of {study.unit}, seed {drawn['seed']}"
    drawn_how = intervals if drawn["n_resamples"] else "no resamples, so no intervals"
    notes = [str(study.read), f"{drawn_how}; {versions()}"]

    def screen() -> Screen:
        shown, more = ([grid_of(p.table, p.title, rows=p.rows, meaning=p.meaning, kept=p.kept) for p in some]
                       for some in (study.printed, study.more))  # fmt: skip
        return Screen(study.advice[:1], shown, more, study.advice[1:], notes, study.warnings)

    return Findings(
        screen=screen,
        tables=study.written,
        warnings=study.warnings,
        title=study.printed[0].title,
        notes=notes,
        figures=study.figures,
        texts={"advice.txt": "".join(f"{sentence}\n" for sentence in study.advice)},
        settings={**{name: drawn[name] for name in ("n_resamples", "level", "seed")}, "versions": versions()},
    )
