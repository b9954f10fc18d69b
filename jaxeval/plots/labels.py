"""What every figure has: a check of what it is given, a title, and a caption that says what it rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import cleandoc, signature
from typing import Any, NamedTuple, TypedDict, TypeVar

import pandas as pd
from matplotlib.figure import Figure

from jaxeval.execution.signatures import spelled_out
from jaxeval.plots.style import GREY, drawable
from jaxeval.tables.shown import rated, settings_line
from jaxeval.wording import counted, named, visible_line

F = TypeVar("F", bound=Callable[..., Figure])

_LINE = 0.2  # inches between lines


class Labels(TypedDict, total=False):
    """What a figure says beside its numbers.

    ``title`` stands above it: None for the usual one, "" for none. ``caption`` stands below it, for instance the data
    and their date; the numbers of votes and resamples follow, where they are known. "" means no caption at all.
    """

    title: str | None
    caption: str | None


class Takes(NamedTuple):
    """What a figure is drawn from."""

    what: str  # in words, with the function that makes it
    columns: tuple[str, ...] = ()  # that a table must have
    kinds: tuple[type, ...] = (pd.DataFrame,)
    settings: tuple[str, ...] = ()  # that a table must have in its ``attrs``

    def check(self, function: str, given: Any) -> None:
        """Raise TypeError or ValueError, with the name of the ``function``, if ``given`` is anything else."""
        if not isinstance(given, self.kinds):
            names = [name for name in ("joint", "fit", "table", "models") if _is_any(given, name, self.kinds)]
            hint = f"; pass its .{names[0]}" if names else ""
            raise TypeError(f"{function} takes {self.what}, got an object of type {_type_name(given)}{hint}")
        if not isinstance(given, pd.DataFrame):
            return
        if missing := [name for name in self.columns if name not in given]:
            have = named(list(map(visible_line, given.columns)), 12) or "none"
            lacking = f"lacks the columns {named(missing)} and has {have}"
            raise ValueError(f"{function} takes {self.what}; this table {lacking}")
        if missing := [name for name in self.settings if name not in given.attrs.get("settings", {})]:
            raise ValueError(f"{function} takes {self.what}, with {named(missing)} in its attrs['settings']")


def _type_name(value: Any) -> str:
    """The name of a type after its library's, as several have a DataFrame."""
    library, name = type(value).__module__.split(".")[0], type(value).__name__
    return name if library == "builtins" else f"{library}.{name}"


def _is_any(value: Any, name: str, kinds: tuple[type, ...]) -> bool:
    return pd.DataFrame not in kinds and isinstance(getattr(value, name, None), kinds)


def figure_of(title: str, *takes: Takes) -> Callable[[F], F]:
    """Decorates a function that draws: its first arguments are checked, and it takes the options of `Labels`.

    Args:
        title: the usual one; ``{heads}`` in it stands for what is rated, such as "Models".
        takes: what the first arguments must be, in their order.
    """
    usual = title

    def decorate(function: F) -> F:
        *own, _ = signature(function).parameters.values()
        listed = signature(function).replace(parameters=own)

        @wraps(function)
        def draw(*args: Any, title: str | None = None, caption: str | None = None, **options: Any) -> Figure:
            given = list(listed.bind(*args, **options).arguments.values())[: len(takes)]
            for kind, value in zip(takes, given, strict=True):
                kind.check(function.__name__, value)
            figure = function(*args, **options)
            known = (part for value in given for part in _rests_on(value))
            own = usual.format(heads=rated(given[0]).heads if given else "")
            _write(figure, own if title is None else title, _caption(caption, known))
            return figure

        what = "".join(f"It takes {kind.what}. " for kind in takes)
        said = '``title`` stands above the figure, "" for none; ``caption`` below it, before the known votes and draws.'
        draw.__doc__ = f"{cleandoc(function.__doc__ or '')}\n\n{what}{said}"
        return spelled_out()(draw)  # type: ignore[return-value]

    return decorate


def _caption(own: str | None, known: Iterable[str]) -> str:
    """The caller's caption, then what is known of votes and settings, each once; empty if the caller wants none."""
    return "" if own == "" else " · ".join(dict.fromkeys([*([own] if own else []), *known]))


def _rests_on(value: Any) -> list[str]:
    """Votes and resamples of a table or of a result, as far as they are known; of the last of several tables."""
    if isinstance(value, Mapping):
        return _rests_on(list(value.values())[-1])
    if not isinstance(value, pd.DataFrame):
        held = vars(value)  # a caption is no reason to compute what is not there yet
        settings = [getattr(own, "settings", None) for own in (value, held.get("accuracy"), held.get("joint"))]
        n = getattr(held.get("fit", value), "n_battles", None)  # of each model, or in all
        n = int(n.sum()) // 2 if isinstance(n, pd.Series) else n
        return [*_votes(n), *_made(next(filter(None, settings), None))]
    if "vote_count" not in value:
        return _made(value.attrs.get("settings"))
    both = value.groupby("category")["vote_count"].sum().max() if "category" in value else value["vote_count"].sum()
    where = " in the largest slice" if "category" in value else ""
    return [*_votes(int(both) // 2, where), *_made(value.attrs.get("settings"))]  # a vote counts for both its models


def _votes(n: int | None, where: str = "") -> list[str]:
    return [] if n is None else [counted(n, "vote") + where]


def _made(settings: Any) -> list[str]:
    line = settings_line(settings)
    return [line] if line else []


def _write(figure: Figure, title: str, caption: str) -> None:
    """Make room above and below for a title and a caption, and write them there."""
    width, height = figure.get_size_inches()
    above, below = _folded(title, 8.5 * width), _folded(caption, 14 * width)  # signs that surely fit
    over, under = figure.get_suptitle(), figure.get_supxlabel()  # what the figure itself says, which comes next
    top, bottom = (_LINE * (1.1 * n + (n > 0)) for n in (_lines(above, over), _lines(below, under)))
    figure.set_size_inches(width, total := height + top + bottom)
    room = {"right": 0.0, "above": 0.0}  # inches that legends beside the axes take
    for legend in figure.legends:
        box, side = legend.get_window_extent(), str(legend.get_gid())
        room[side] = (box.width if side == "right" else box.height) / figure.dpi + _LINE / 2
        legend.set_bbox_to_anchor((0.0, bottom / total, 1.0, height / total), figure.transFigure)
    engine = figure.get_layout_engine()
    assert engine is not None
    inside = (0.0, bottom / total, 1 - room["right"] / width, (height - room["above"]) / total)
    engine.set(rect=inside)  # type: ignore[call-arg]
    at = {"x": 0.1 / width, "ha": "left", "parse_math": False}
    if above:
        figure.text(y=1 - 0.1 / total, s=above, gid="title", va="top", fontsize=11, fontweight="bold", **at)
    if over:
        figure.suptitle(
            over, y=1 - (top - _LINE * (0.5 + _lines(over))) / total, va="top", fontsize=9, color=GREY, **at
        )
    if under:
        figure.supxlabel(under, y=(bottom - 0.05) / total, va="top", fontsize=8.5, color=GREY, **at)
    if below:
        figure.text(y=0.1 / total, s=below, gid="caption", va="bottom", fontsize=8, color=GREY, **at)


def _folded(text: str, signs: float) -> str:
    return "\n".join(textwrap.fill(line, max(int(signs), 20)) for line in drawable(text).split("\n"))


def _lines(*texts: str) -> int:
    return sum(text.count("\n") + 1 for text in texts if text)
