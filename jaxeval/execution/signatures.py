"""Options that several functions take: they are written down once, and every signature still shows them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter, cleandoc, signature, unwrap
from textwrap import fill
from types import SimpleNamespace
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

from jaxeval.options.field import Options, declared_in
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions
from jaxeval.wording import did_you_mean

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


def spelled_out(*kinds: type[Options], only: str = "", without: str = "") -> Callable[[F], F]:
    """Decorate a function that ends in ``**options``: its signature and its docstring name each option.

    `inspect.signature`, `help` and editors then show the options as if the function listed them itself. Options that
    the docstring does not describe, and parameters of the names of declared ones, are described as they are declared.

    Args:
        kinds: classes that declare the options; by default those of a TypedDict in ``**options: Unpack[...]``, which
            are declared as those of a run are.
        only: names of options, with blanks between them; by default all that the function does not list itself.
        without: names of options that it does not take.
    """

    def decorate(function: F) -> F:
        listed = signature(function)
        *parameters, rest = listed.parameters.values()
        there = {parameter.name for parameter in parameters}
        named = []
        for name, kind, default in _options_of(function, rest.name, kinds):
            if name not in there and name not in without.split() and (not only or name in only.split()):
                named.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind))
                there.add(name)
        shown = listed.replace(parameters=[*parameters, *named])
        known = frozenset(shown.parameters)

        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if not known.issuperset(kwargs):  # all else Python checks itself, far faster
                try:
                    shown.bind(*args, **kwargs)
                except TypeError as error:
                    unknown = next((name for name in kwargs if f"argument {name!r}" in str(error)), "")
                    hint = did_you_mean(unknown, known)
                    raise TypeError(f"{function.__qualname__}() {error}{hint}") from None
            return function(*args, **kwargs)

        checked.__signature__ = shown  # type: ignore[attr-defined]
        annotations = {name: parameter.annotation for name, parameter in shown.parameters.items()}
        checked.__annotations__ = {name: kind for name, kind in annotations.items() if kind is not Parameter.empty}
        if "return" in function.__annotations__:
            checked.__annotations__["return"] = function.__annotations__["return"]
        checked.__doc__ = _described(cleandoc(function.__doc__ or ""), list(shown.parameters), kinds)
        return checked  # type: ignore[return-value]

    return decorate


def _options_of(function: F, rest: str, kinds: tuple[type[Options], ...]) -> Iterator[tuple[str, Any, Any]]:
    """Name, type and default of every option; those with defaults of their own first."""
    if not kinds:
        # Of this parameter alone: the types of others may take long to import.
        of_rest = SimpleNamespace(__annotations__={rest: function.__annotations__[rest]})
        (options,) = get_args(get_type_hints(of_rest, unwrap(function).__globals__)[rest])
        yield from ((name, hint, None) for name, hint in get_type_hints(options).items())
    for kind in kinds:
        hints = get_type_hints(kind)
        yield from ((name, hints[name], default) for name, _, default, _ in declared_in(kind))


def _described(doc: str, names: list[str], kinds: tuple[type[Options], ...]) -> str:
    """Return the docstring, with what is declared of options that it does not describe."""
    start = re.search(r"^Args:\n", doc, re.MULTILINE)
    if start is None:
        return doc
    end = doc.find("\n\n", start.end())
    head, args, tail = doc[: start.end()], doc[start.end() : end], doc[end:]
    described = {name for line in re.findall(r"^    (\w[\w, *]*): ", args, re.MULTILINE) for name in line.split(", ")}
    of_rest = args[args.rfind("    **") :] if "    **" in args else ""
    texts = {name: option.text for kind in (*reversed(USUAL), *kinds) for name, _, _, option in declared_in(kind)}
    for name in names:
        if name in texts and name not in described and f"``{name}``" not in of_rest:
            sentence = re.sub(r"--([a-z][a-z-]*)", lambda flag: f"``{flag[1].replace('-', '_')}``", texts[name])
            sentence = sentence[0].lower() + sentence[1:]
            args += "\n" + fill(f"{name}: {sentence}", 112, initial_indent="    ", subsequent_indent="        ")
    return head + args.lstrip("\n") + tail


#: What is declared of options that many functions list themselves.
USUAL = (ResamplingOptions, DrawnTogether)
