"""What every command does with its result: files, standard output or a screen, by the same options everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from jaxeval.cli.processes import first_goes_on
from jaxeval.cli.terminal import QUIET, complain, print_bytes, stdout_console, tell
from jaxeval.data.remote_names import FileName, is_remote
from jaxeval.show.files import FORMATS, table_bytes, write_table, write_text
from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.show.shown import Answer

#: The path that stands for standard output.
STDOUT = Path("-")
_ENDINGS = tuple(f".{name}" for name in FORMATS)


class OutputFile(click.Path):
    """A file to write, with one of several endings, in a folder that exists."""

    def __init__(self, endings: tuple[str, ...]) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or an error that says what is wrong with it."""
        path = Path(str(super().convert(value, param, ctx)))
        if path.suffix.lower() not in self.endings:
            self.fail(f"{path} must end in {', '.join(self.endings)}", param, ctx)
        if not path.resolve().parent.is_dir():
            self.fail(f"there is no folder {path.parent} to write {path.name} to", param, ctx)
        return path


class _OutputPath(OutputFile):
    """A file to write, a folder, or - for standard output."""

    def __init__(self) -> None:
        super().__init__(_ENDINGS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or an error that says what is wrong with it."""
        path = Path(value)
        if path == STDOUT or path.is_dir() or str(value).endswith("/"):
            return path
        if not path.suffix and not path.exists():
            return path
        if path.suffix.lower() not in _ENDINGS:
            self.fail(f"{path} must end in {', '.join(_ENDINGS)}, or in / where it is to be a folder", param, ctx)
        return super().convert(value, param, ctx)


class Outputs(NamedTuple):
    """What is to become of a result."""

    out: Path | None = None
    format: str | None = None
    raw_names: bool = False
    quiet: bool = False
    full: bool = False

    @property
    def to_folder(self) -> bool:
        """Whether all tables are written, into a folder."""
        return self.out is not None and self.out != STDOUT and (self.out.suffix.lower() not in _ENDINGS)

    @property
    def progress(self) -> bool | None:
        """Whether estimators show a bar; None for only on a terminal."""
        return False if self.quiet else None

    @property
    def silent(self) -> bool:
        """Whether no screen is printed."""
        return self.quiet or self.out == STDOUT


def _keep_quiet(ctx: click.Context, _: click.Parameter, value: bool) -> bool:
    ctx.meta[QUIET] = value
    return value


#: Of commands that print a screen, or tell what they did.
quiet_option = click.option(
    "--quiet", is_flag=True, callback=_keep_quiet, help="Print no screen; warnings still go to standard error."
)
full_option = click.option(
    "--full", is_flag=True, help="Print all tables, rows and warnings; by default at most a screen of them."
)


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--out``, ``--format``, ``--raw-names``, ``--quiet`` and ``--full``, as ``outputs`` of the command."""

    @wraps(command)
    def gathered(*args: Any, **options: Any) -> Any:
        outputs = Outputs(**{name: options.pop(name) for name in Outputs._fields})
        if outputs.format is not None and not (outputs.to_folder or outputs.out == STDOUT):
            raise click.UsageError("--format needs --out with a folder or -; a file has the format of its ending")
        click.get_current_context().meta[QUIET] = outputs.silent
        return command(*args, outputs=outputs, **options)

    added = (
        click.option(
            "--out",
            type=_OutputPath(),
            metavar="PATH",
            help=f"Write the table to a file ({', '.join(_ENDINGS)}), all tables, figures and texts to a folder, or "
            "the table to standard output (-), with no screen then.",
        ),
        click.option("--format", type=click.Choice(FORMATS), help="Of tables in a folder or on standard output. [csv]"),
        click.option(
            "--raw-names",
            is_flag=True,
            help="Write names to CSV as they are. By default text that a spreadsheet would run as a formula, since it "
            "begins with =, +, -, @, a tab or a line end, gets an apostrophe in front: remove it when you read the "
            "file back.",
        ),
        quiet_option,
        full_option,
    )
    for option in reversed(added):
        gathered = option(gathered)
    return gathered


def check_outputs(outputs: Mapping[str, Path | None], inputs: Sequence[FileName]) -> None:
    """An error if a file to write, by its option, is one to read, or that of another option.

    Inputs are files, folders and patterns; those on other machines cannot be written.
    """
    from jaxeval.data.file_lists import names_of

    local = [name for name in inputs if not is_remote(name)]
    taken = {Path(path).resolve(): "to read" for path in names_of(local)} if local else {}
    for option, path in outputs.items():
        if path is None or path == STDOUT:
            continue
        if path.resolve() in taken:
            raise click.UsageError(
                f"{option}: {path} is the file {taken[path.resolve()]}, which would be lost: name another"
            )
        taken[path.resolve()] = f"of {option}"


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
