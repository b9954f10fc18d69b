"""Options that are declared once: a field of a dataclass says the option's name, type, default and help.

A command takes all of them as one value. What does not go together is refused by the class's ``__post_init__``.
"""

from __future__ import annotations

from dataclasses import field, fields
from functools import wraps
from typing import Any

import click

from jaxeval.cli.run_options import Command, Decorator, several_options

_OPTION = "option"


def option(made: Decorator | None = None, **how: Any) -> Any:
    """Declare a field that is an option.

    Args:
        made: the option, if several commands have it or its spelling is not that of the field.
        how: what `click.option` takes, for one that is spelled as the field is; or ``choices``, the first of which is
            the default.
    """
    if "choices" in how:
        choices = how.pop("choices")
        how |= {"type": click.Choice(choices), "default": choices[0]}
    return field(metadata={_OPTION: (made, how)})


def options_as(name: str, kind: type) -> Decorator:
    """Decorate a command that takes options as ``name``: a value of the dataclass ``kind``, whose fields declare them.

    Fields that declare no option are options that the command has already.
    """
    names = [own.name for own in fields(kind)]
    declared = [(own.name, *own.metadata[_OPTION]) for own in fields(kind) if _OPTION in own.metadata]
    added = [made or click.option(f"--{own.replace('_', '-')}", own, **how) for own, made, how in declared]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def gathered(*args: Any, **options: Any) -> Any:
            return command(*args, **{name: kind(**{own: options.pop(own) for own in names})}, **options)

        return several_options(*added)(gathered)

    return decorate
