"""What options and arguments take on the command line: each kind of text, and the value that it becomes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import click

from jaxeval.cli.processes import Processes
from jaxeval.data.file_lists import names_of
from jaxeval.data.remote_names import is_remote
from jaxeval.errors import DataError
from jaxeval.show.files import FORMATS
from jaxeval.wording import Noun

#: The path that stands for standard output.
STDOUT = Path("-")
ENDINGS = tuple(f".{name}" for name in FORMATS)
FIGURES = (".png", ".svg", ".pdf")
SIMULATED = (".parquet", ".csv", ".jsonl")
_CODINGS = ("a_wins_1", "a_wins_0", "labels", "names", "grades")
#: Words for the sides that meanings may have besides the standard ones.
_SIDE_WORDS = {"a": "model_a", "left": "model_a", "first": "model_a", "b": "model_b", "right": "model_b",
               "second": "model_b", "draw": "tie", "both": "tie", "neither": "both_bad"}  # fmt: skip


class InputFile(click.Path):
    """A file here, or the name of one on another machine, which is text, and is fetched when it is read.

    Where folders are taken, a pattern of names is, too: quotes keep the shell from putting the names in its place.
    Where one file is taken, a pattern may match one, and a folder may hold one.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, the pattern, or the name."""
        if is_remote(value):
            return value
        if str(value) == str(STDOUT) and not self.dir_okay:  # one file, which standard input may be
            return names_of(value)[0]
        if any(sign in str(value) for sign in "*?[") and not Path(str(value)).exists():
            paths = sorted(glob(str(value), recursive=True))
            if not paths:
                self.fail(f"no file matches {str(value)!r}", param, ctx)
            if self.dir_okay:
                return Path(value)
            if len(paths) > 1:
                self.fail(f"{str(value)!r} matches {len(paths):,} files, and one is read: name it", param, ctx)
            value = paths[0]
        elif not self.dir_okay and Path(value).is_dir():
            value = self._only_file(Path(value), param, ctx)
        from jaxeval.cli.look import no_such_file

        if self.exists and str(value) != str(STDOUT) and not Path(value).exists():
            self.fail(no_such_file(str(value)) or f"There is no file {str(value)!r}", param, ctx)
        return super().convert(value, param, ctx)

    def _only_file(self, folder: Path, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the only table in a folder."""
        try:
            names = names_of(folder)
        except DataError as error:
            self.fail(str(error), param, ctx)
        if len(names) > 1:
            self.fail(f"{str(folder)!r} is a folder of {len(names):,} files, and one is read: name it", param, ctx)
        return Path(names[0])


class OutputFile(click.Path):
    """A file to write, with one of several endings (by default any), in a folder that exists."""

    def __init__(self, endings: tuple[str, ...] = ()) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)
        self.endings = endings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or an error that says what is wrong with it."""
        path = Path(str(super().convert(value, param, ctx)))
        if self.endings and path.suffix.lower() not in self.endings:
            self.fail(f"{path} must end in {', '.join(self.endings)}", param, ctx)
        if not path.resolve().parent.is_dir():
            self.fail(f"there is no folder {path.parent} to write {path.name} to", param, ctx)
        return path


class OutputPath(OutputFile):
    """A file to write, a folder, which need not exist, or - for standard output."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or an error that says what is wrong with it."""
        path = Path(value)
        if path == STDOUT or path.is_dir() or str(value).endswith("/") or not (path.suffix or path.exists()):
            return path
        if path.suffix.lower() not in self.endings:
            self.fail(f"{path} must end in {', '.join(self.endings)}, or in / where it is to be a folder", param, ctx)
        return super().convert(value, param, ctx)


class Designs(click.Choice[str]):
    """The designs of a calibration, of which "by label" is "by-label" on the command line."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the design."""
        return super().convert(value.replace(" ", "-").replace("_", "-"), param, ctx).replace("-", " ")


class Parsed(click.ParamType):  # type: ignore[type-arg]
    """What a function makes of text; its ValueError says what is wrong with it."""

    def __init__(self, parse: Callable[[str], Any], name: str = "") -> None:
        self.name = name or parse.__name__.strip("_")
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value."""
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _size(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)B?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"{text!r} is not a size such as 500MB or 2GB")
    return int(float(match[1]) * {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[match[2].upper()])


def _labels(text: str) -> str | dict[str, str]:
    """Return the name of a coding, or the mapping LABEL=MEANING,..."""
    if text in _CODINGS:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    if not all(equals for _, equals, _ in pairs):
        raise ValueError(f"{text!r} is not {', '.join(_CODINGS)}, or a list such as A=model_a,B=model_b,C=tie")
    labels = [label.strip() for label, _, _ in pairs]
    if len(set(labels)) < len(labels):
        raise ValueError(f"{text!r} says twice what a label means")
    meanings = ((label.strip(), meaning.strip()) for label, _, meaning in pairs)
    return {label: _SIDE_WORDS.get(meaning.lower(), meaning) for label, meaning in meanings}


def _scale(text: str) -> tuple[float, float]:
    try:
        low, high = (float(end) for end in text.split(":"))
    except ValueError:
        raise ValueError(f"{text!r} is not the least and the largest score, such as 1:10") from None
    return low, high


def _columns(number: int, example: str, text: str) -> tuple[str, ...]:
    parts = tuple(part.strip() for part in text.split(":"))
    if len(parts) != number or not all(parts):
        raise ValueError(f"{text!r} is not {'two' if number == 2 else 'three'} columns such as {example}")
    return parts


def _gauge(text: str) -> str | tuple[str, float]:
    if text in ("mean", "votes"):
        return text
    model, equals, rating = text.rpartition("=")
    try:
        return model, float(rating if equals else "")
    except ValueError:
        raise ValueError(f"{text!r} is not mean, votes, or MODEL=RATING") from None


def _numbers(kind: type, text: str) -> tuple[Any, ...]:
    try:
        numbers = tuple(kind(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or not all(number > 0 for number in numbers):
        whole = "whole numbers" if kind is int else "numbers"
        raise ValueError(f"{text!r} is not a list of {whole} above 0, such as 2,5,10")
    return numbers


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


FILE = InputFile(exists=True, dir_okay=False, path_type=Path)
FILES = InputFile(exists=True, allow_dash=True, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
#: Kinds of text, by the name of a type as options are declared with it.
KINDS: Mapping[str, click.ParamType] = {  # type: ignore[type-arg]
    "str": click.STRING, "File": FILE, "FileName": FILE, "Folder": FOLDER, "Share": SHARE, "Size": Parsed(_size),
    "Labels": Parsed(_labels), "Gauge": Parsed(_gauge), "Noun": Parsed(Noun.of), "Bounds": Parsed(_scale),
    "ColumnPair": Parsed(partial(_columns, 2, "home_score:away_score"), "column_pair"),
    "ColumnTriple": Parsed(partial(_columns, 3, "wins_a:ties:wins_b"), "column_triple"),
    "Names": Parsed(_names), "Numbers": Parsed(partial(_numbers, float), "floats"),
    "WholeNumbers": Parsed(partial(_numbers, int), "whole"), "Day": click.DateTime(["%Y-%m-%d"]),
    "Figure": OutputFile(FIGURES), "Page": OutputFile((".html",)), "Card": OutputFile((".png",)),
    "Badge": OutputFile((".svg",)), "State": OutputFile((".parquet",)), "Json": OutputFile((".json",)),
    "TextOutput": OutputFile(), "Output": OutputPath(ENDINGS), "Simulation": OutputPath(SIMULATED),
    "Processes": Processes(), "Sampling": Designs(["random", "by-label", "borrowed"], case_sensitive=False),
}  # fmt: skip
