"""Options that several functions take: they are written down once, and every signature still shows them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
T = TypeVar("T")


def with_options_of(
    made: Callable[Concatenate[Any, P], T],
) -> Callable[[Callable[..., T]], Callable[Concatenate[Any, P], T]]:
    """Decorate ``read(path, **options)``, which hands the options on to ``made``: its signature names them.

    Keyword-only arguments of ``read`` itself stand after them.

    Type checkers know them, too.
    """

    def decorate(read: Callable[..., T]) -> Callable[Concatenate[Any, P], T]:
        path, *parameters, _ = signature(read).parameters.values()
        _, *options = signature(made).parameters.values()
        read.__signature__ = signature(read).replace(parameters=[path, *options, *parameters])  # type: ignore[attr-defined]
        return read

    return decorate


def spelled_out(defaults: type = object) -> Callable[[F], F]:
    """Decorate a function that ends in ``**options: Unpack[Options]``, a TypedDict: its signature names each option.

    `inspect.signature`, `help` and editors then show the options as if the function listed them itself.

    Args:
        defaults: a class whose attributes are defaults of options. The default of every other option is None.
    """

    def decorate(function: F) -> F:
        listed = signature(function)
        *parameters, rest = listed.parameters.values()
        (options,) = get_args(get_type_hints(function)[rest.name])
        kinds = get_type_hints(options)
        names = sorted(kinds, key=lambda name: not hasattr(defaults, name))  # those with defaults of their own first
        named = [
            Parameter(n, Parameter.KEYWORD_ONLY, default=getattr(defaults, n, None), annotation=kinds[n]) for n in names
        ]
        shown = listed.replace(parameters=[*parameters, *named])
        known = frozenset(shown.parameters)

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if not known.issuperset(kwargs):  # all else Python checks itself, far faster
                try:
                    shown.bind(*args, **kwargs)
                except TypeError as error:
                    raise TypeError(f"{function.__name__}() {error}") from None
            return function(*args, **kwargs)

        checked.__signature__ = shown  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorate
