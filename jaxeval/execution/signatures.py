"""Options that several functions take: they are written down once, and every signature still shows them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, get_args, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])


def spelled_out(defaults: type = object) -> Callable[[F], F]:
    """Decorates a function that ends in ``**options: Unpack[Options]``, a TypedDict: its signature names each option.

    `inspect.signature`, `help` and editors then show the options as if the function listed them itself.

    Args:
        defaults: a class whose attributes are defaults of options. The default of every other option is None.
    """

    def decorate(function: F) -> F:
        listed = signature(function)
        *own, rest = listed.parameters.values()
        (options,) = get_args(get_type_hints(function)[rest.name])
        kinds = get_type_hints(options)
        names = sorted(kinds, key=lambda name: not hasattr(defaults, name))  # those with defaults of their own first
        named = [
            Parameter(n, Parameter.KEYWORD_ONLY, default=getattr(defaults, n, None), annotation=kinds[n]) for n in names
        ]
        shown = listed.replace(parameters=[*own, *named])

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            try:
                shown.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(*args, **kwargs)

        checked.__signature__ = shown  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorate
