"""Options that several commands have; `run_options` are those of every command that resamples."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import reduce, wraps
from pathlib import Path
from typing import Any, TypeAlias

import click

from jaxeval.cli.outputs import Outputs, output_options
from jaxeval.cli.processes import Processes, connected
from jaxeval.data.remote_names import is_remote

#: A function that a command calls, and what adds options to it.
Command: TypeAlias = Callable[..., Any]
Decorator: TypeAlias = Callable[[Command], Command]


class InputFile(click.Path):
    """A file here, or the name of one on another machine, which is text, and is fetched when it is read."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or the name."""
        return value if is_remote(value) else super().convert(value, param, ctx)


#: Types of options.
FILE = InputFile(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


class _Bytes(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes, KB, MB or GB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)B?", value.strip(), re.IGNORECASE)
        if found is None:
            self.fail(f"{value!r} is not a size such as 500MB or 2GB", param, ctx)
        return int(float(found[1]) * {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[found[2].upper()])


def several_options(*options: Decorator) -> Decorator:
    """One decorator of several, the first on top."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


def column_options(**texts: str) -> Decorator:
    """``--name COL`` for every name of a column, with the text of its help."""
    named = ((name.replace("_", "-"), text) for name, text in texts.items())
    return several_options(*(click.option(f"--{name}", metavar="COL", help=text) for name, text in named))


def choice_option(name: str, *choices: str, text: str) -> Decorator:
    """An option with some ``choices``, the first of which is its default."""
    return click.option(name, default=choices[0], type=click.Choice(choices), help=text)


#: The columns of the models of a battle.
side_options = several_options(
    click.option("--model-a", default="model_a", metavar="COL", help="Column of the models of side A."),
    click.option("--model-b", default="model_b", metavar="COL", help="Column of the models of side B."),
)


class Designs(click.Choice[str]):
    """The designs of a calibration, of which "by label" is "by-label" on the command line."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The design."""
        return super().convert(value.replace(" ", "-").replace("_", "-"), param, ctx).replace("-", " ")


def sampling_option() -> Decorator:
    """``--calibration-sampling``, as ``sampling`` of the command."""
    return click.option(
        "--calibration-sampling", "sampling", type=Designs(["random", "by-label", "borrowed"], False),
        help="How the labelled answers were chosen. random: a random part. by-label: so many of each class. borrowed: "
        "of another model or day. It decides what may be believed. [not known]",
    )  # fmt: skip


def more(sentence: str, text: str | None) -> str:
    """Help that begins as it does everywhere, and ends with what a command adds to it."""
    return f"{sentence} {text}" if text else sentence


def seed_option() -> Decorator:
    """``--seed``."""
    return click.option("--seed", default=0, type=click.IntRange(0), metavar="S",
                        help="Seed of the random numbers: the same seed gives the same result.")  # fmt: skip


def draw_options(resamples: int = 1000, fewest: int = 2, text: str | None = None) -> Decorator:
    """``--resamples``, as ``n_resamples`` of the command, and ``--seed``."""
    return several_options(
        click.option("--resamples", "n_resamples", default=resamples, metavar="N", type=click.IntRange(fewest),
                     help=more("Number of resamples behind the intervals.", text)),
        seed_option(),
    )  # fmt: skip


def level_option(text: str | None = None, default: float | None = 0.95) -> Decorator:
    """``--level``."""
    return click.option(
        "--level", default=default, metavar="L", type=SHARE, help=more("Confidence level of the intervals.", text)
    )


def scheme_option() -> Decorator:
    """``--scheme``."""
    return choice_option(
        "--scheme", "multinomial", "poisson", "bayesian",
        text="How a resample is drawn. multinomial: as many as there are, with replacement. poisson: each a Poisson "
        "number of times. bayesian: all, with random weights.",
    )  # fmt: skip


def cluster_option(text: str) -> Decorator:
    """``--cluster``; ``text`` says what is done with clusters."""
    first = "Column of clusters: judgments that belong together, such as those of a prompt, a voter or a session."
    return click.option("--cluster", metavar="COL", help=more(first, text))


def by_option(text: str, multiple: bool = False) -> Decorator:
    """``--by``; ``text`` says what is done with groups."""
    return click.option("--by", metavar="COL", multiple=multiple, help=more("Column of groups.", text))


def ridge_option(default: float = 0.0, text: str | None = None) -> Decorator:
    """``--ridge``."""
    first = "Penalty on the squares of the strengths. It draws ratings together; above 0 all of them are finite."
    return click.option("--ridge", default=default, type=click.FloatRange(0), metavar="R", help=more(first, text))


def base_option(default: float = 1000.0) -> Decorator:
    """``--base``."""
    return click.option(
        "--base", default=default, metavar="ELO", help="Mean of the ratings, where no model is held fixed."
    )


def simultaneous_option() -> Decorator:
    """``--simultaneous-ranks``."""
    return click.option(
        "--simultaneous-ranks", is_flag=True,
        help="Make the rank spreads hold for all models at once; by default each holds by itself.",
    )  # fmt: skip


def top_option() -> Decorator:
    """``--top``."""
    return click.option("--top", type=click.IntRange(1), metavar="K",
                        help="Print the first K models; by default as many as fit the screen.")  # fmt: skip


def top_size_option(default: int | None, fewest: int = 1, text: str | None = None) -> Decorator:
    """``--top-size``, as ``top_size`` of the command."""
    return click.option("--top-size", default=default, type=click.IntRange(fewest), metavar="K",
                        help=more("Number of models in the top.", text))  # fmt: skip


def features_option(text: str | None = None) -> Decorator:
    """``--features``."""
    first = "Columns to control for: a column of differences (side A minus side B), or two columns as A:B."
    return click.option("--features", metavar="A,B", help=more(first, text))


def families_option() -> Decorator:
    """``--families``."""
    return click.option("--families", type=FILE, metavar="FILE",
                        help="A table with the columns name and family, of models and of judges.")  # fmt: skip


def run_options(command: Command) -> Command:
    """``--checkpoint`` and ``--memory``, as ``checkpoint`` and ``memory_limit`` of the command, and ``--distributed``.

    With the last the command runs in a block that shares its resamples, and calls `first_goes_on` once.
    """

    @wraps(command)
    def shared(*args: Any, distributed: dict[str, Any] | None, **options: Any) -> Any:
        if distributed is None:
            return command(*args, **options)
        with connected(distributed):
            return command(*args, **options)

    memory = click.option(
        "--memory",
        "memory_limit",
        type=_Bytes(),
        metavar="SIZE",
        help="Most memory for the resamples and their results, such as 500MB or 2GB. Python, the data and compiling "
        "(some 300 MB) come on top.",
    )
    checkpoint = click.option(
        "--checkpoint",
        type=FOLDER,
        metavar="FOLDER",
        help="Keep finished resamples in this folder. After an interruption the same command goes on from them.",
    )
    processes = click.option(
        "--distributed",
        type=Processes(),
        metavar="auto|I/N@HOST:PORT",
        help="Share the resamples among several processes; `leaderboard` shares the files, too. Start the same command "
        "in each process. The first one prints and writes.",
    )
    return checkpoint(memory(processes(shared)))


def strata_option(drawn: str, column: str = "COL") -> Decorator:
    """``--strata``, for resamples of what is ``drawn``."""
    sentence = f"Column of strata. Every resample has as many {drawn} of each stratum as the data."
    return click.option("--strata", metavar=column, help=sentence)


def resampling_options(resamples: int = 1000, fewest: int = 2, drawn: str | None = None) -> Decorator:
    """``--level``, ``--resamples``, ``--seed``, `run_options` and `output_options`; with help on what is ``drawn``.

    All but those of the output go to the command together, as ``drawn``: the arguments of an estimator.
    """
    names = ("n_resamples", "level", "seed", "checkpoint", "memory_limit")

    def decorate(command: Command) -> Command:
        @wraps(command)
        def gathered(*args: Any, outputs: Outputs, **options: Any) -> Any:
            estimator = {name: options.pop(name) for name in names} | {"progress": outputs.progress}
            return command(*args, drawn=estimator, outputs=outputs, **options)

        added = several_options(level_option(), draw_options(resamples, fewest, drawn), output_options, run_options)
        return added(gathered)

    return decorate
