"""``jaxeval-mcp FOLDER...``: tools for agents, by the Model Context Protocol over standard input and output.

Each tool is a command of jaxeval, run in a process of its own. Its parameters are the options of the command, without
those that write, take SQL, or reach other machines. Files must lie in the folders that are named at the start.
"""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import click

from jaxeval._version import __version__
from jaxeval.cli.command_table import ROWS
from jaxeval.cli.kinds import InputFile
from jaxeval.cli.main import main
from jaxeval.data.remote_names import is_remote
from jaxeval.options.field import RUNS, SHOWN
from jaxeval.wording import counted

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

COMMANDS = ("leaderboard", "scores", "compare-scores", "plan-scores", "judge", "agreement", "audit")
#: Options that a tool lacks, beside those of what is written and of how a command runs: --where is SQL, which may read
#: other files.
_LEFT_OUT = {"where", "help", "checkpoint"}
MOST_BYTES, MOST_CHARACTERS, MOST_SECONDS = 500_000_000, 30_000, 600
_TYPES: Mapping[type, type] = {click.types.IntRange: int, click.types.FloatRange: float}


class Told(TypedDict):
    """What a tool gives."""

    exit_code: int
    output: str
    messages: str


class RefusedError(ValueError):
    """A file that a tool may not read."""


def checked_path(name: str, folders: Sequence[Path]) -> Path:
    """Return a file, folder or pattern that lies in one of the ``folders``, links followed."""
    if is_remote(name):
        raise RefusedError(f"{name} is on another machine: tools read files in {_named(folders)}")
    path = Path(name) if Path(name).is_absolute() else folders[0] / name
    fixed = path
    while set("*?[") & set(str(fixed)):  # the folder that a pattern begins with
        fixed = fixed.parent
    if fixed != path and ".." in path.relative_to(fixed).parts:
        raise RefusedError(f"{name} is not in {_named(folders)} for sure: name the files without ..")
    inside = [*path.parent.glob(path.name)] if fixed == path.parent and fixed != path else [fixed]
    files = [file for entry in inside for file in ([entry, *entry.rglob("*")] if entry.is_dir() else [entry])]
    for file in [fixed, *files]:
        if not any(file.resolve().is_relative_to(folder) for folder in folders):
            raise RefusedError(f"{file} is not in {_named(folders)}: name a file there")
    if not fixed.exists():
        raise RefusedError(f"there is no {path}")
    size = sum(file.stat().st_size for file in files if file.is_file())
    if size > MOST_BYTES:
        raise RefusedError(
            f"{path} has {counted(size, 'byte')}, and a tool reads {MOST_BYTES:,}: use the command itself"
        )
    return path


def _named(folders: Sequence[Path]) -> str:
    return " or ".join(map(str, folders))


def run_command(arguments: Sequence[str], folder: Path) -> Told:
    """Run a command in a process of its own, and return what it prints, cut where it is too long."""
    try:
        run = subprocess.run(
            [sys.executable, "-m", "jaxeval", *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=MOST_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Told(exit_code=124, output="", messages=f"stopped after {MOST_SECONDS:,} seconds: take fewer resamples")
    return Told(exit_code=run.returncode, output=_cut(run.stdout), messages=_cut(run.stderr))


def _cut(text: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    return (
        f"{text[:MOST_CHARACTERS]}\n... and {len(text) - MOST_CHARACTERS:,} more characters: ask for fewer rows (top)"
    )


def _offered(command: click.Command) -> Iterator[click.Parameter]:
    """Yield the parameters of a command that a tool has."""
    for param in command.params:
        is_shown = getattr(param, "section", "") in (SHOWN, RUNS) and param.name != "top"
        writes = isinstance(param.type, click.Path) and not isinstance(param.type, InputFile)
        if not (is_shown or writes or param.name in _LEFT_OUT or getattr(param, "hidden", False)):
            yield param


def _typed(param: click.Parameter) -> tuple[Any, Any]:
    """Return the type of a parameter, and its default: None leaves the command's own."""
    kind: Any = _TYPES.get(type(param.type), str)
    if param.type is click.INT or param.type is click.FLOAT:
        kind = int if param.type is click.INT else float
    if isinstance(param.type, click.Choice):
        kind = Literal[tuple(map(str, param.type.choices))]
    if isinstance(param, click.Option) and param.is_flag:
        return bool, False
    if param.multiple if isinstance(param, click.Option) else param.nargs == -1:
        kind = list[kind] if param.nargs in (1, -1) else list[list[kind]]
    elif param.nargs > 1:
        kind = list[kind]
    return (kind, inspect.Parameter.empty) if param.required else (kind | None, None)


def _words(param: click.Parameter, value: Any) -> list[str]:
    """Return what is typed for a value of a parameter."""
    several = param.multiple if isinstance(param, click.Option) else param.nargs == -1
    parts = [
        [str(x) for x in item] if isinstance(item, list) else [str(item)] for item in (value if several else [value])
    ]
    if isinstance(param, click.Argument):
        return [word for part in parts for word in part]
    flag = param.opts[0]
    if getattr(param, "is_flag", False):
        return [flag] if value else []
    # One word where it can be, so that no value is taken for an option.
    return [x for part in parts for x in ([f"{flag}={part[0]}"] if len(part) == 1 else [flag, *part])]


def _tool(name: str, command: click.Command, folders: Sequence[Path]) -> Callable[..., Told]:
    """Return a function with the parameters of a command."""
    from pydantic import Field

    params = {str(param.name): param for param in _offered(command)}

    def tool(**values: Any) -> Told:
        options: list[str] = []
        arguments: list[str] = []
        for key, param in params.items():
            value = values.get(key)
            if value is None:
                continue
            is_file = isinstance(param.type, InputFile)
            # Two runs may be named by their files.
            if is_file or (name == "compare-scores" and key in ("a", "b") and not values.get("files")):
                each = value if isinstance(value, list) else [value]
                each = [str(checked_path(str(file), folders)) for file in each]
                value = each if isinstance(value, list) else each[0]
            (arguments if isinstance(param, click.Argument) else options).extend(_words(param, value))
        return run_command([name, *options, "--", *arguments], folders[0])

    made = []
    for key, param in params.items():
        kind, default = _typed(param)
        text = getattr(param, "help", None) or f"{param.human_readable_name} of `jaxeval {name}`"
        annotation = Annotated[kind, Field(description=text)]  # type: ignore[valid-type]  # made of the option
        made.append(inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))
    made.sort(key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    tool.__name__ = name.replace("-", "_")
    tool.__doc__ = f"{ROWS[name].line} {inspect.cleandoc(command.help or '')}"
    tool.__signature__ = inspect.Signature(made, return_annotation=Told)  # type: ignore[attr-defined]
    tool.__annotations__ = {parameter.name: parameter.annotation for parameter in made} | {"return": Told}
    return tool


def _refusing(tool: Callable[..., Told]) -> Callable[..., Told]:
    """Return a tool that says why it refuses a file: the server hides the text of other errors."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def run(**values: Any) -> Told:
        try:
            return tool(**values)
        except RefusedError as error:
            raise ToolError(str(error)) from error

    return run


def server(folders: Sequence[Path]) -> MCPServer:
    """Return a server whose tools read the ``folders``."""
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations

    made = MCPServer(
        "jaxeval", version=__version__,
        instructions="Tools for leaderboards and evaluations with honest uncertainty. Begin with `look` at a file: it "
        f"says what the file can answer. Files are read in {_named(folders)}.",
    )  # fmt: skip
    read_only = ToolAnnotations(readOnlyHint=True, openWorldHint=False)

    def look(file: str) -> Told:
        """Look at a file or a folder: what it holds, and which tool and options answer which question of it."""
        return run_command([str(checked_path(file, folders))], folders[0])

    made.tool(annotations=read_only)(_refusing(look))
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        made.tool(annotations=read_only)(_refusing(_tool(name, command, folders)))
    return made


@click.command("jaxeval-mcp")
@click.argument("folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
def run(folders: tuple[Path, ...]) -> None:
    """Serve tools of jaxeval to an agent over standard input and output; they read files in FOLDERS alone."""
    try:
        import mcp.server.mcpserver  # noqa: F401  # what is needed is said before the agent waits
    except ImportError as error:
        raise click.ClickException("jaxeval-mcp needs mcp 2 or later: pip install 'jaxeval[mcp]'") from error
    server([folder.resolve() for folder in folders]).run("stdio")
