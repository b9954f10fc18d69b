"""What every command does with its result: files, standard output or a screen, by the same options everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from jaxeval.cli.kinds import ENDINGS, STDOUT
from jaxeval.cli.processes import first_goes_on
from jaxeval.cli.terminal import QUIET, complain, print_bytes, stdout_console, tell
from jaxeval.data.remote_names import FileName, is_remote
from jaxeval.options.field import SHOWN, Options, option
from jaxeval.show.files import FORMATS, table_bytes, write_table, write_text
from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.show.shown import Answer

Output: TypeAlias = Path


@dataclass(frozen=True, kw_only=True)
class Outputs(Options):
    """What is to become of a result."""

    section = SHOWN

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

    def __post_init__(self) -> None:
        if self.format is not None and not (self.to_folder or self.out == STDOUT):
            raise click.UsageError("--format needs --out with a folder or -; a file has the format of its ending")
        keep_quiet(self.silent)

    @property
    def to_folder(self) -> bool:
        """Whether all tables are written, into a folder."""
        return self.out is not None and self.out != STDOUT and (self.out.suffix.lower() not in ENDINGS)

    @property
    def progress(self) -> bool | None:
        """Whether estimators show a bar; None for only on a terminal."""
        return False if self.quiet else None

    @property
    def silent(self) -> bool:
        """Whether no screen is printed."""
        return self.quiet or self.out == STDOUT


def keep_quiet(value: bool) -> None:
    """Tell nothing but warnings from here on, or do so again."""
    click.get_current_context().meta[QUIET] = value


def check_outputs(outputs: Mapping[str, Path | None], inputs: Sequence[FileName]) -> None:
    """An error if a file to write, by its option, is one to read, or that of another option.

    Inputs are files, folders and patterns; those on other machines cannot be written.
    """
    from jaxeval.data.file_lists import names_of

    local = [name for name in inputs if not is_remote(name)]
    taken = {Path(path).resolve(): "to read" for path in names_of(local)} if local else {}
    for flag, path in outputs.items():
        if path is None or path == STDOUT:
            continue
        if path.resolve() in taken:
            raise click.UsageError(
                f"{flag}: {path} is the file {taken[path.resolve()]}, which would be lost: name another"
            )
        taken[path.resolve()] = f"of {flag}"


def present(answer: Answer, outputs: Outputs) -> None:
    """Write what is to be written, then print the answer, or only the warnings on standard error.

    Files come first: what is wrong with the terminal must not cost them. Of several processes the first goes on.
    """
    first_goes_on()
    if outputs.out is not None and outputs.to_folder:
        _write_folder(answer, outputs.out, outputs.format or "csv", outputs.raw_names)
    elif outputs.out is not None:
        table = _with_attrs(next(iter(answer.tables.values())), answer)
        options: dict[str, Any] = {"title": answer.title, "notes": _notes(answer), "raw_names": outputs.raw_names}
        if outputs.out == STDOUT:
            print_bytes(table_bytes(table, outputs.format or "csv", **options))
        else:
            write_table(table, outputs.out, **options)
            tell(f"wrote {outputs.out}")
    show(answer, outputs.silent, outputs.full)


def show(answer: Answer, silent: bool, full: bool) -> None:
    """Print an answer, or only its warnings on standard error."""
    if silent:
        for sentence in dict.fromkeys(answer.warnings):
            complain(f"warning: {sentence}")
        return
    from jaxeval.show.screens import print_answer

    print_answer(answer, stdout_console(), full)


def _notes(answer: Answer) -> list[str]:
    return [*answer.notes, *(f"warning: {sentence}" for sentence in dict.fromkeys(answer.warnings))]


def _with_attrs(table: pd.DataFrame, answer: Answer) -> pd.DataFrame:
    """The table with what it rests on, where it does not say so itself."""
    from jaxeval.show.shown import settings_of

    known = table.copy(deep=False)
    known.attrs = {
        "report": "\n".join(map(str, answer.notes)),
        "warnings": list(answer.warnings),
        **table.attrs,
        "settings": {**settings_of(answer.settings), **table.attrs.get("settings", {})},
    }
    return known


def _write_folder(answer: Answer, out: Path, format: str, raw_names: bool) -> None:
    """Write tables, figures as PNG and texts into a folder, by their names, and tell so."""
    from jaxeval.plots.style import save_figures

    out.mkdir(parents=True, exist_ok=True)
    first = next(iter(answer.tables))
    texts = answer.texts() or {
        "answer.txt": "".join(f"{sentence}\n" for sentence in (*answer.sentences, *answer.advice))
    }
    for name, table in answer.tables.items():
        title = answer.title if name == first else name.replace("_", " ").capitalize()
        known = _with_attrs(table, answer)
        write_table(known, out / f"{name}.{format}", raw_names=raw_names, title=title, notes=_notes(answer))
    for name, text in texts.items():
        write_text(text, out / name)
    figures = answer.figures()
    save_figures(figures, out)
    *others, last = counted(len(answer.tables), "table"), counted(len(figures), "figure"), *texts
    tell(f"wrote {', '.join(others)} and {last} to {out}")
