"""How commands stand in the help: by the question that each answers, and their options in sections of one order."""

from __future__ import annotations

import os
import shlex
import traceback
from collections import UserDict
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import click

from jaxeval.cli.command_table import COMMANDS, ROWS
from jaxeval.cli.terminal import tell
from jaxeval.errors import DataError, ProcessError
from jaxeval.options.field import RUNS, SECTIONS
from jaxeval.wording import did_you_mean, visible, visible_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: What options became.
_BECAME = {
    "--top": "--top-size", "--overlap": "--top-size", "--repeats": "--studies", "--references": "--reference",
    "--benchmark": "--eval-benchmark", "--threshold": "--min-icc", "--label": "--human",
    "--length-a": "--lengths A:B", "--length-b": "--lengths A:B",
}  # fmt: skip

#: Under this name a context of click holds the exit code of bad input.
ERROR_STATUS = "jaxeval.error_status"


class Option(click.Option):
    """An option that knows its section."""

    section: str = ""
    number: int = 0


class Command(click.Command):
    """A command whose options stand in the order and the sections of all commands."""

    typed: Sequence[str] = ()

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return arguments, and options by section, in the order of their declarations."""
        return sorted(super().get_params(ctx), key=self._place)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return what was typed; an error about a former spelling of an option says what it became."""
        self.typed = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            now = _BECAME.get(error.option_name, "")
            if any(now.split()[:1] == param.opts[:1] for param in self.params):
                ctx.fail(f"{error.option_name} is now called {now}")
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, or the command of files of another shape; an error about a file begins with the line to type."""
        try:
            return super().invoke(ctx)
        except DataError as error:
            from jaxeval.cli.look import as_other_shape, found_in, with_line

            found = found_in(error, ctx)
            words = as_other_shape(found, ctx.info_name, self.typed)
            if words is None or ctx.parent is None:
                raise with_line(error, found, ctx, self.typed) from error.__cause__
            group, (name, *arguments) = cast("click.Group", ctx.parent.command), words
            tell(f"these files are rated by another command, which runs now: jaxeval {shlex.join(words)}")
        command = cast("click.Command", group.get_command(ctx.parent, name))
        with command.make_context(name, arguments, parent=ctx.parent) as other:
            return command.invoke(other)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):  # the text above tells of arguments
                rows.setdefault(_section(param), []).append(record)
        for section in ("Options", *SECTIONS):
            if section in rows:
                with formatter.section(section):
                    formatter.write_dl(rows[section])

    def _place(self, param: click.Parameter) -> tuple[int, int]:
        section = _section(param)
        return (SECTIONS.index(section) if section in SECTIONS else -1, getattr(param, "number", -1))


def _section(param: click.Parameter) -> str:
    """Return where it stands; --help is no option of ours."""
    return getattr(param, "section", RUNS if param.is_eager else "") or "Options"


class _Imported(UserDict[str, Any]):
    """Commands by name; that of one which stands for itself is its module, which is imported when it is asked for."""

    def __getitem__(self, name: str) -> click.Command:
        if isinstance(home := self.data[name], str):
            there = vars(import_module(f"jaxeval.cli.{home}")).values()
            command = next(x for x in there if isinstance(x, click.Command) and x.name == name)
            command.epilog = command.epilog or f"In Python: {ROWS[name].in_python}"
            command.short_help, self.data[name] = ROWS[name].line, command
        return self.data[name]


class Commands(click.Group):
    """The commands by the question that they answer; a file in place of one is looked at.

    Other packages add commands by entry points of the group ``jaxeval.estimators``, each a `click.Command`. They are
    listed without being imported, and none takes the name of a command of jaxeval.

    Bad input is one message on standard error and exit code 1, never a traceback. A command for which 1 means something
    else puts another one into its context, under `ERROR_STATUS`.
    """

    command_class = Command

    def __init__(self, *arguments: Any, homes: Mapping[str, str] = {}, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.commands = _Imported(homes)

    @cached_property
    def others(self) -> dict[str, EntryPoint]:
        """The commands of other packages, by name."""
        from importlib.metadata import entry_points

        every = entry_points(group="jaxeval.estimators")
        return {entry.name: entry for entry in every if entry.name not in self.commands}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name, which another package may have added."""
        known = super().get_command(ctx, cmd_name)
        if known is not None or cmd_name not in self.others:
            return known
        entry = self.others[cmd_name]
        try:
            command = entry.load()
        except Exception as error:  # whatever another package does when it is imported
            raise click.ClickException(f"{cmd_name} of {entry.value} cannot be imported: {error}") from error
        if not isinstance(command, click.Command):
            raise click.ClickException(f"{cmd_name} of {entry.value} must be a click.Command, got {command!r}")
        return command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands in the order of the questions."""
        known = [name for name in ROWS if name in self.commands]
        return [*known, *(name for name in self.commands if name not in known), *sorted(self.others)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the questions, and the commands of each."""
        names = self.list_commands(ctx)
        width = max(map(len, names))
        for question, rows in COMMANDS.items():
            formatter.write(f"\n{question}\n")
            with formatter.indentation():
                formatter.write_dl([(row.name.ljust(width), row.line) for row in rows if row.name in names])
        if self.others:
            formatter.write("\nFrom other packages\n")
            with formatter.indentation():
                formatter.write_dl([(name.ljust(width), entry.value) for name, entry in sorted(self.others.items())])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return what was typed: "help" asks for help, as --help does."""
        if args[:1] == ["help"] and not os.path.exists("help"):
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that ``args`` name; for those that begin with a file or a folder, `jaxeval.cli.look`."""
        if args and self.get_command(ctx, args[0]) is None and (args[0] == "-" or not args[0].startswith("-")):
            from jaxeval.cli.look import is_file, look, no_such_file

            if is_file(args[0]):
                return shlex.quote(visible_line(args[0])), look, args
            near = "" if args[0] == "-" else did_you_mean(args[0], self.list_commands(ctx))
            ctx.fail(no_such_file(args[0]) or f"There is no command {args[0]!r}{near}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and report bad input in a message."""
        try:
            return self._told(ctx)
        except click.ClickException as error:  # names of files
            error.message = visible(error.message)  # type: ignore[misc]  # it is final for those who subclass
            error.exit_code = ctx.meta.get(ERROR_STATUS, error.exit_code)  # type: ignore[misc]  # as every instance may
            raise
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception:  # a defect, which Python would end with 1
            if ERROR_STATUS not in ctx.meta:
                raise
            traceback.print_exc()
            ctx.exit(ctx.meta[ERROR_STATUS])

    def _told(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except EOFError as error:  # which click takes for Ctrl-C
            raise click.ClickException(f"a file ends too early: {error}") from error
        except MemoryError as error:
            raise click.ClickException(f"there is not enough memory: {error}") from error
        except ModuleNotFoundError as error:
            advice = "install jaxeval in place of jaxeval-core (pip install jaxeval)"
            raise click.ClickException(f"{error}, which this needs: {advice}") from error
        except (ValueError, OSError, ImportError, ProcessError) as error:
            raise click.ClickException(str(error)) from error
        except RuntimeError as error:
            if "Unable to initialize backend" not in str(error):
                raise
            raise click.ClickException(f"JAX does not find what JAX_PLATFORMS names: {error}") from error
