"""What every command does with its result: files, standard output or a screen, by the same options everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from jaxeval.cli.kinds import ENDINGS, STDOUT
from jaxeval.cli.processes import first_goes_on
from jaxeval.cli.terminal import QUIET, complain, print_bytes, stdout_console, tell
from jaxeval.execution.atomic_write import whole_file
from jaxeval.options.field import SHOWN, Options, option
from jaxeval.show.files import FORMATS, Logger, answer_bytes, format_of, write_answer
from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from jaxeval.show.shown import Answer, Result

Output: TypeAlias = Path


class Outputs(Options, section=SHOWN):
    """What is to become of a result."""

    full: bool = option(False, "Print all tables, rows and warnings; by default at most a screen of them.")
    quiet: bool = option(False, "Print no screen; warnings still go to standard error.")
    out: Output | None = option(
        None, f"Write the table to a file ({', '.join(ENDINGS)}), all tables, figures and texts to a folder, or the "
        "table to standard output (-), with no screen then.", "PATH",
    )  # fmt: skip
    format: str | None = option(None, "Of tables in a folder or on standard output. [csv]", choices=FORMATS)
    raw_names: bool = option(
        False, "Write names to CSV as they are. By default text that a spreadsheet would run as a formula, since it "
        "begins with =, +, -, @, a tab or a line end, gets an apostrophe in front: remove it when you read the file "
        "back.",
    )  # fmt: skip
    log_to: Logger | None = option(
        None, "Also write numbers, table and answer to the active run of a logger, or to a new one. What it is told "
        "by its environment counts, such as MLFLOW_TRACKING_URI or WANDB_MODE.",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.log_to is not None:
            from jaxeval.show.exports import logger_module

            logger_module(self.log_to)  # an error now, and not after the work
        if self.format is not None and not (self.to_folder or self.out == STDOUT):
            raise click.UsageError("--format needs --out with a folder or -; a file has the format of its ending")
        keep_quiet(self.silent)

    @property
    def to_folder(self) -> bool:
        """Whether all tables are written, into a folder."""
        return self.out is not None and self.out != STDOUT and (self.out.suffix.lower() not in ENDINGS)

    @property
    def silent(self) -> bool:
        """Whether no screen is printed."""
        return self.quiet or self.out == STDOUT


def keep_quiet(value: bool) -> None:
    """Tell nothing but warnings from here on, or do so again."""
    click.get_current_context().meta[QUIET] = value


_ON_REQUEST = ("dominates", "most telling", "without each benchmark")


def beside(answer: Answer, *results: Result | None, tables: Mapping[str, pd.DataFrame] = {}) -> Answer:
    """Return an answer with the sentences, warnings, tables and figures of further results, and further ``tables``."""
    from jaxeval.show.shown import part_of

    further = [result.answer for result in results if result is not None]
    each = [answer, *further]
    more = {name: table for other in further for name, table in other.tables.items()} | dict(tables)
    return answer._replace(
        sentences=[text for one in each for text in one.sentences],
        warnings=list(dict.fromkeys(text for one in each for text in one.warnings)),
        parts=[*answer.grids, *(part_of(name, table, more=name in _ON_REQUEST) for name, table in more.items())],
        tables={**answer.tables, **more},
        figures=lambda: {name: figure for one in each for name, figure in one.figures().items()},
    )


def how_drawn(drawn: Mapping[str, Any], of: str, about: str = "", *more: str) -> str:
    """Return which intervals, about what, which resamples ``of`` what, and which versions a result rests on."""
    from jaxeval.execution.precision import versions

    resamples = f"{counted(drawn['n_resamples'], 'resample')}{f' of {of}' if of else ''}"
    how = f"{100 * drawn['level']:g}% intervals{f' of {about}' if about else ''}, {resamples}, seed {drawn['seed']}"
    return "; ".join([how if drawn["n_resamples"] else "no resamples, so no intervals", *more, versions()])


def draw(figure: Figure, path: Path) -> None:
    """Draw a figure, and say so."""
    from jaxeval.plots.style import save_figure

    save_figure(figure, path, dpi=160)
    tell(f"drew {path}")


def present(answer: Answer, outputs: Outputs, plot: Path | None = None) -> None:
    """Draw and write what is to be written, then print the answer, or only the warnings on standard error.

    Files come first: what is wrong with the terminal must not cost them. Of several processes the first goes on.
    """
    first_goes_on()
    if plot is not None:
        draw(next(iter(answer.figures().values())), plot)
    if outputs.out is not None and outputs.to_folder:
        written = write_answer(answer, outputs.out, outputs.format or "csv", outputs.raw_names)
        tell(f"wrote {', '.join(written[:-1])} and {written[-1]} to {outputs.out}")
    elif outputs.out == STDOUT:
        print_bytes(answer_bytes(answer, outputs.format or "csv", raw_names=outputs.raw_names))
    elif outputs.out is not None:
        data = answer_bytes(answer, format_of(outputs.out), raw_names=outputs.raw_names)
        with whole_file(outputs.out) as file:
            file.write(data)
        tell(f"wrote {outputs.out}")
    try:
        if outputs.log_to is not None:
            from jaxeval.show.exports import log_result

            log_result(answer, outputs.log_to)
            tell(f"logged to {outputs.log_to}")
    finally:
        show(answer, outputs.silent, outputs.full)


def show(answer: Answer, silent: bool, full: bool) -> None:
    """Print an answer, or only its warnings on standard error."""
    if silent:
        for sentence in dict.fromkeys(answer.warnings):
            complain(f"warning: {sentence}")
        return
    from jaxeval.show.screens import print_answer

    print_answer(answer, stdout_console(), full)
