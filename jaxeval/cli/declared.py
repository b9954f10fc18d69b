"""Commands from declarations: the parameters of a command are dataclasses of options, and arguments."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

import click

from jaxeval.cli.commands import Option
from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.kinds import FILE, FILES, KINDS, STDOUT, InputFile, OutputFile
from jaxeval.cli.processes import connected
from jaxeval.data.file_lists import names_of
from jaxeval.data.remote_names import FileName, is_remote
from jaxeval.options.columns import ColumnPair
from jaxeval.options.field import COLUMNS, RUNS, SHOWN, Declared, Options, declared_in, option
from jaxeval.options.resampling import RunningOptions
from jaxeval.wording import Noun

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.capability.pareto import ParetoFront
    from jaxeval.show.shown import Answer as Answer
else:
    Answer = Any  # what a command may return, which need not be imported for its help

#: A function that a command calls.
Function: TypeAlias = Callable[..., Any]
#: Types of arguments.
File: TypeAlias = FileName
Files: TypeAlias = tuple[FileName, ...]
FilesIfAny: TypeAlias = tuple[FileName, ...]
Words: TypeAlias = tuple[str, ...]
Figure: TypeAlias = Path
Processes: TypeAlias = dict[str, Any]


class Shared(Options, section=RUNS):
    """How resamples are shared; the command runs in a block that does it, and calls `first_goes_on` once."""

    distributed: Processes | None = option(
        None, "Share the resamples among several processes; `leaderboard` shares the files, too. Start the same "
        "command in each process. The first one prints and writes.", "auto|I/N@HOST:PORT",
    )  # fmt: skip


class Top(Options, section=SHOWN):
    """How much is printed."""

    top: int | None = option(None, "Print the first K models; by default as many as fit the screen.", "K", least=1)


class Plot(Options, section=SHOWN):
    """A figure."""

    plot: Figure | None = option(
        None, "Draw the main figure: .png, .svg or .pdf. Of a board the ratings, of two with their differences."
    )


class Lengths(Options, section=COLUMNS):
    """How long answers are."""

    lengths: ColumnPair | None = option(None, "Columns of the lengths of both answers.", "A:B")


class Competitor(Options, section=SHOWN):
    """What things that are rated are called."""

    competitor: Noun | None = option(
        None, "What is rated, as tables, figures and messages call it: player, or city,cities. [what the columns are "
        "called, as player_1 and player_2; else model]", "WORD[,PLURAL]", flag="--competitor-name",
    )  # fmt: skip


_MOST_PAIRED = 50  # models of a table of all pairs
_OF_COST = "cost: it is compared with it"


class Costs(Options, section=COLUMNS):
    """What models cost."""

    cost: str | None = option(
        None, "Column with the cost of each model. Adds who is on the front of cost and quality, and who dominates "
        "whom.", "COL",
    )  # fmt: skip
    budget: float | None = option(
        None, "With --cost: which model is best among those that cost no more.", "X", flag="--at-most", least=0,
        needs=_OF_COST,
    )  # fmt: skip

    def front(self, quality: Any, costs: Any, level: float) -> ParetoFront | None:
        """Return the front of models whose ``costs`` are known by name, drawn, or made of the column, if any."""
        from jaxeval.capability.pareto import pareto_front

        if self.cost is None:
            return None
        return pareto_front(quality, costs(self.cost) if callable(costs) else costs, level=level)

    def tables(self, front: ParetoFront | None) -> dict[str, pd.DataFrame]:
        """Return further tables of a front: who dominates whom, and who is best under the budget."""
        tables = {}
        if front is not None and len(front.dominates) <= _MOST_PAIRED:
            tables["dominates"] = front.dominates.rename_axis("model", axis=0).rename_axis(None, axis=1).reset_index()
        if front is not None and self.budget is not None:
            tables[f"best for {self.budget:g}"] = front.best_under(self.budget)
        return tables


def command(
    name: str,
    cls: type[click.Command] = CompilingCommand,
    *,
    group: click.Group | None = None,
    metavars: Mapping[str, str] = {},
    types: Mapping[str, click.ParamType] = {},  # type: ignore[type-arg]
    apart: Mapping[str, str] = {},
    **settings: Any,
) -> Callable[[Function], click.Command]:
    """Make a command of a function: its parameters are dataclasses of `Options`, or arguments of `ARGUMENTS`.

    The docstring is the help. An option that two classes have goes to both. ``types`` and ``metavars`` of arguments are
    named where they are not those of all such; ``apart`` names options that do not go with one, by its name;
    ``settings`` are further ones of the class. A function that returns an `Answer` has the options of `Outputs`, too:
    its answer is drawn, written and printed as they, `Plot` and `Top` say.
    """
    from jaxeval.cli.outputs import Outputs, present  # whose options come after those of this module

    def decorate(function: Function) -> click.Command:
        hints = {key: hint for key, hint in get_type_hints(function).items() if key != "return"}
        kinds = {key: hint for key, hint in hints.items() if isinstance(hint, type) and issubclass(hint, Options)}
        written = {key: str(hint) for key, hint in function.__annotations__.items() if key in hints}
        texts = [key for key in hints if key not in kinds]
        arguments = []
        for key in texts:
            usual, n, required = ARGUMENTS[written[key]]
            how: dict[str, Any] = {"nargs": n, "required": required, "metavar": metavars.get(key)}
            arguments.append(click.Argument([key], type=types.get(key, usual), **how))
        further = [Outputs] if function.__annotations__["return"] == "Answer" else []
        shared = [Shared for kind in kinds.values() if issubclass(kind, RunningOptions)]
        options: dict[Any, Option] = {}
        for kind in (*kinds.values(), *further, *shared):
            for parameter in declared_options(kind):
                options.setdefault(parameter.name, parameter)

        @wraps(function)
        def run(*, distributed: Any = None, **values: Any) -> None:
            values["progress"] = False if values.get("quiet") else None
            made: dict[str, Any] = {key: kind.of(values) for key, kind in kinds.items()}
            outputs = [made.get("outputs") or kind.of(values) for kind in further]
            _check_together([*made.values(), *outputs], apart)
            _check_outputs([*arguments, *options.values()], values)
            with contextlib.nullcontext() if distributed is None else connected(distributed):
                answer = function(**made, **{key: values[key] for key in texts})
                for shown in outputs:
                    top = next((kind.top for kind in made.values() if isinstance(kind, Top)), None)
                    present(answer.with_top(top), shown, values.get("plot"))

        made = cls(name, callback=run, params=[*arguments, *options.values()], help=function.__doc__, **settings)
        if group is not None:
            group.add_command(made)
        return made

    return decorate


def _check_together(made: Iterable[Options], apart: Mapping[str, str]) -> None:
    """Raise an error if an option was given without the one that it needs, or with one that it does not go with."""
    given: dict[str, str] = {}
    for options in made:
        declared = {name: option for name, _, _, option in declared_in(type(options))}
        given |= (own := options.given())
        for name, flag in own.items():
            needed, _, why = declared[name].needs.partition(": ")
            if needed and not getattr(options, needed):
                raise click.UsageError(f"{flag} needs {declared[needed].flag}{why and f': {why}'}")
    for name, others in apart.items():
        if name in given and (other := next(filter(given.get, others.split()), None)):
            raise click.UsageError(f"{given[name]} and {given[other]} do not go together: leave one out")


def _check_outputs(params: Sequence[click.Parameter], values: Mapping[str, Any]) -> None:
    """Raise an error if a file to write is one to read, or that of another option.

    Inputs are files, folders and patterns; those on other machines cannot be written.
    """
    files: list[FileName] = []
    written: dict[str, Path] = {}
    for param in reversed(params):
        value = values.get(str(param.name))
        if isinstance(param.type, InputFile) and value is not None:
            files += value if isinstance(value, tuple) else [value]
        elif isinstance(param.type, OutputFile) and value not in (None, STDOUT):
            written[param.opts[0]] = value
    local = [name for name in files if not is_remote(name)]
    taken = {Path(path).resolve(): "to read" for path in names_of(local)} if local and written else {}
    for flag, path in written.items():
        if path.resolve() in taken:
            raise click.UsageError(
                f"{flag}: {path} is the file {taken[path.resolve()]}, which would be lost: name another"
            )
        taken[path.resolve()] = f"of {flag}"


#: Types of arguments, and how many there may be.
ARGUMENTS: Mapping[str, tuple[click.ParamType, int, bool]] = {  # type: ignore[type-arg]
    "Files": (FILES, -1, True), "FilesIfAny": (FILES, -1, False),
    "File": (FILE, 1, True), "File | None": (FILE, 1, False), "str": (click.STRING, 1, True),
    "Words": (click.STRING, -1, False),
}  # fmt: skip


def declared_options(kind: type[Options]) -> Iterator[Option]:
    """Yield what a class of options is on the command line."""
    for name, written, default, declared in declared_in(kind):
        if declared.flag:
            made = Option([declared.flag, name], **_how(written.removesuffix(" | None"), default, declared))
            made.section, made.number = declared.section or "", declared.number
            yield made


def _how(written: str, default: Any, declared: Declared) -> dict[str, Any]:
    """Return what `click.Option` takes."""
    how: dict[str, Any] = {"help": declared.text or None, "metavar": declared.metavar}
    if declared.metavar in ("COL", "A:B", "A:TIES:B", "A,B"):
        how["shell_complete"] = _columns_there
    if declared.required:
        how["required"] = True
    elif default is not None and default is not False and default != ():
        how["default"] = default
    if written == "bool":
        return how | ({"is_flag": True} if not default else {})
    if "Sequence[str]" in written:  # one name, several, or none
        return how | {"multiple": True, "callback": lambda _, __, value: list(value) or None}
    if isinstance(default, tuple) and "tuple" not in written:
        how["default"] = ",".join(map(str, default))
    several = re.fullmatch(r"tuple\[(.+), \.\.\.\]", written)
    kind = declared.kind or (several[1] if several else written)
    if kind == "Pair":
        how |= {"nargs": 2, "type": str}
    elif declared.choices and not declared.kind:
        how["type"] = click.Choice(declared.choices)
    elif kind in KINDS:
        how["type"] = KINDS[kind]
    else:
        bounds: dict[str, Any] = {"min": declared.least, "max": None if declared.most == inf else declared.most}
        if declared.open:
            bounds |= {f"{end}_open": True for end, at in tuple(bounds.items()) if at is not None}
        number = click.IntRange if kind == "int" else click.FloatRange
        plain = click.INT if kind == "int" else click.FLOAT
        how["type"] = plain if declared.least is declared.most is None else number(**bounds)
    return how | ({"multiple": True} if several else {})


def _columns_there(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return, for the shell, names of columns of the files typed before; of several names, the last one grows."""
    from jaxeval.data.table_files import head_names

    files = [*(ctx.params.get("files") or ()), *ctx.args]
    names = dict.fromkeys(name for file in files if Path(str(file)).is_file() for name in head_names(Path(str(file))))
    begun, sign, last = re.fullmatch(r"(?:(.*)([:,]))?(.*)", incomplete, re.DOTALL).groups()  # type: ignore[union-attr]
    return [f"{begun or ''}{sign or ''}{name}" for name in names if name.startswith(last)]
