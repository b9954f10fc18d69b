"""An option is a field of a dataclass: its name, type, default, bounds, one sentence of help, and its section.

Signatures, docstrings, commands, checks, settings and the identity of checkpoints follow from it. To add an option: add
a field to the dataclass of its estimator, and write the code that it is for.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from inspect import get_annotations
from itertools import chain, count
from math import inf
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform, get_args

COLUMNS = "Columns of the files"
ROWS = "Which rows and models count"
GROUPS = "Groups"
FIT = "How ratings are fitted"
INTERVALS = "Intervals and resamples"
SHOWN = "What is shown and written"
RUNS = "How it runs"
#: Sections of help in their order; an option without one is what its command is about, and stands before them.
SECTIONS = (COLUMNS, ROWS, GROUPS, FIT, INTERVALS, SHOWN, RUNS)
_DECLARED = "declared"
_NUMBERS = count()


class Declared(NamedTuple):
    """What a field says of its option, besides name, type and default."""

    text: str  # one sentence, or some: the first is the same wherever the option is
    metavar: str | None = None
    flag: str | None = None  # as the name, if none is named; "" for an option of Python alone
    least: float | None = None
    most: float | None = None
    open: bool = False  # whether both ends are excluded
    choices: Sequence[str] = ()  # those of the type, if none are named
    section: str | None = None  # that of the class, if none is named
    shown: bool = False  # whether runs of other values may have the same draws
    required: bool = False
    number: int = 0  # in the order of declaration, which is that of help
    kind: str | None = None  # how text becomes a value, if the type does not say it
    needs: str = ""  # the name of the option without which it says nothing, and perhaps why, as "cost: it is compared"


def option(default: Any, text: str, metavar: str | None = None, **how: Any) -> Any:
    """Declare a field that is an option; ``how`` are attributes of `Declared`."""
    return field(default=default, metadata={_DECLARED: Declared(text, metavar, number=next(_NUMBERS), **how)})


def again(home: type[Options], name: str, /, default: Any = MISSING, more: str = "", **how: Any) -> Any:
    """Declare an option that another class has, with another ``default``, ``more`` help, or what differs otherwise.

    It needs no other option, unless that is said again.
    """
    (original,) = (x for x in fields(home) if x.name == name)
    declared = original.metadata[_DECLARED]._replace(section=section_of(home, name), needs="")
    declared = declared._replace(**{"text": f"{declared.text} {more}".strip(), **how})
    return field(default=original.default if default is MISSING else default, metadata={_DECLARED: declared})


@dataclass_transform(kw_only_default=True, frozen_default=True)
@dataclass(frozen=True, kw_only=True)
class Options:
    """Options that go together: a class of them is a dataclass, frozen and with names for all its fields."""

    section: ClassVar[str] = ""

    def __init_subclass__(cls, section: str | None = None) -> None:
        if section is not None:
            cls.section = section
        dataclass(frozen=True, kw_only=True)(cls)

    def __post_init__(self) -> None:
        """Refuse what does not go together; a class that does calls this one, too."""

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Return the options among the ``arguments`` of a call, so that no call lists them again."""
        return cls(**{f.name: arguments[f.name] for f in fields(cls) if f.name in arguments})

    def arguments(self, *names: str | type[Options]) -> dict[str, Any]:
        """Return the options, or those of some names and classes, as arguments of a call."""
        each = [[name] if isinstance(name, str) else [f.name for f in fields(name)] for name in names]
        chosen = [*chain(*each)] if names else [f.name for f in fields(self)]
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name in chosen}

    def given(self, *names: str) -> dict[str, str]:
        """Return the options that differ from their defaults, of some ``names`` or all, with their flags."""
        return {
            name: str(declared.flag)
            for name, _, default, declared in declared_in(type(self))
            if (not names or name in names) and getattr(self, name) != default
        }

    def checked_values(self) -> dict[str, Any]:
        """Return the options that are numbers, and no defaults, as numbers of Python.

        Raises:
            TypeError: one is no number.
            ValueError: one is out of its range, or none of its choices.
        """
        from jaxeval.checks import check_choice, checked_finite, checked_integer, checked_number

        numbers: dict[str, Any] = {}
        own: Any = type(self)
        for name, written, default, declared in declared_in(own):
            value, kind = getattr(self, name), written.removesuffix(" | None")
            if value is default:
                continue
            least = -inf if declared.least is None else declared.least
            choices = _choices(own, name, written) or declared.choices
            if value is None and kind != written:
                continue
            if choices:
                check_choice(name, value, choices)
            if kind == "int":
                numbers[name] = checked_integer(name, value, int(max(least, 0)))
            elif declared.most == inf:  # which is allowed, too
                numbers[name] = checked_number(name, value)
                if not numbers[name] >= least:
                    raise ValueError(f"{name} must be >= {least:g}, got {numbers[name]:g}")
            elif kind == "float":
                numbers[name] = checked_finite(name, value, least)
        return numbers


def declared_in(kind: type[Options]) -> Sequence[tuple[str, str, Any, Declared]]:
    """Return name, type (as it is written), default and declaration of every option of a class."""
    known: Any = kind  # for mypy, a class with fields has no hash
    return _declared_in(known)


@cache
def _declared_in(kind: Any) -> Sequence[tuple[str, str, Any, Declared]]:
    options = []
    for entry in fields(kind):
        if _DECLARED in entry.metadata:
            declared = entry.metadata[_DECLARED]
            flag = f"--{entry.name.replace('_', '-')}" if declared.flag is None else declared.flag
            where = section_of(kind, entry.name)
            written = entry.type if isinstance(entry.type, str) else getattr(entry.type, "__name__", str(entry.type))
            choices = tuple(declared.choices) or _choices(kind, entry.name, written)
            declared = declared._replace(flag=flag, section=where, choices=choices)
            options.append((entry.name, written, entry.default, declared))
    return tuple(options)


def section_of(kind: type[Options], name: str) -> str:
    """Return the section of an option: its own, or that of the class which declares it."""
    declared = next(x for x in fields(kind) if x.name == name).metadata[_DECLARED]
    return _home(kind, name).section if declared.section is None else declared.section


def _home(kind: type, name: str) -> Any:
    return next(base for base in kind.__mro__ if name in get_annotations(base))


@cache
def _choices(kind: Any, name: str, written: str) -> tuple[str, ...]:
    """Return the values of a type that is a Literal, by its name in the module of the class."""
    names = vars(sys.modules[_home(kind, name).__module__])
    known = get_args(names.get(written.removesuffix(" | None")))
    return known if known and all(isinstance(x, str) for x in known) else ()
