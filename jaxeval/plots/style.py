"""What the figures share: plain axes, names that every font can draw, colours, and writing figures to files."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import cleandoc, signature
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, TypeVar

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from numpy.typing import NDArray

from jaxeval.execution.atomic_write import whole_file
from jaxeval.execution.signatures import spelled_out
from jaxeval.show.shown import rated, settings_line, view_of
from jaxeval.wording import counted, named, shortened, visible, visible_line

GREY = "#8a8f98"
#: Colours of lines that stand side by side.
COLOURS = ("#1f5a93", "#c2447f", "#6b8e3d", "#c98a1b", "#6f5aa8", "#3c8f8a", GREY)
#: Colour maps of all heat maps: of amounts, and of values about a middle, with blue for the better side.
AMOUNTS, ABOUT_A_MIDDLE, LESS_IS_BETTER = "Blues", "RdBu", "RdBu_r"
_LONGEST_NAME = 40
_LONGEST_TITLE = 160
F = TypeVar("F", bound=Callable[..., Figure])

_LINE = 0.2  # inches between lines
A_ROW = 4  # axes in a row of many


def save_figure(figure: Figure, path: str | Path, dpi: int) -> None:
    """Write a figure in the format of the ending of ``path``, whole or not at all."""
    with whole_file(path) as file:
        figure.savefig(file, dpi=dpi, format=Path(path).suffix.lower().removeprefix("."))


def shown_name(value: Any) -> str:
    """Write a name for figures: on one line, without invisible characters, and without its middle if it is long."""
    return shortened(drawable(visible_line(value)), _LONGEST_NAME)


def joint_name(value: Any) -> str:
    """Return `shown_name` of a name of one level, or of the parts of one of several."""
    return ", ".join(map(shown_name, value)) if isinstance(value, tuple) else shown_name(value)


def width_of(names: Iterable[str]) -> float:
    """Return inches that the longest of some names takes beside an axis."""
    return 0.07 * max(map(len, names), default=1)


def not_shown(n: int, start: str = "", what: tuple[str, str] = ("", "")) -> str:
    """Say how many rows of ``what``, in one word and in many, a figure leaves out; empty where there are none."""
    one, many = (f"more {word}".strip() for word in what)
    return f"{start}{counted(n, one, many)} not shown" if n > 0 else ""


def legend_name(value: Any) -> str:
    """Return a name as legends write it: Matplotlib would leave out one that begins with an underscore."""
    text = shown_name(value)
    return f"\u200b{text}" if text.startswith("_") else text


def drawable(text: str) -> str:
    """Return ``text`` with characters that the fonts lack as escapes, in place of empty boxes and a warning."""
    fonts = mpl.rcParams
    known = _known_signs(tuple(fonts["font.family"]), tuple(fonts["font.sans-serif"]), tuple(fonts["font.serif"]))
    return "".join(sign if sign == "\n" or ord(sign) in known else ascii(sign)[1:-1] for sign in visible(text))


@cache
def _known_signs(families: tuple[str, ...], *_settings: tuple[str, ...]) -> frozenset[int]:
    """Return the code points that some of the fonts can draw, in normal and in bold."""
    signs = []
    for weight in ("normal", "bold"):
        files = [findfont(FontProperties(family=family, weight=weight)) for family in families]
        signs.append({code for file in files for code in get_font(file).get_charmap()})
    return frozenset(signs[0] & signs[1])


def plain(axis: Any) -> None:
    """Draw no frame on top and right, a pale grid behind."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#e3e7ec", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8.5)


def one_axis(width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure of so many inches with a single axis."""
    figure, (axis,) = panels(1, width, height)
    return figure, axis


def grid(n: int, width: tuple[float, float], height: tuple[float, float], **shared: Any) -> tuple[Figure, NDArray[Any]]:
    """Return a figure and its (n,) axes in rows of `A_ROW`; ``width`` and ``height`` are inches beside and of one."""
    columns = max(min(n, A_ROW), 1)
    rows = -(-max(n, 1) // columns)
    size = width[0] + width[1] * columns, height[0] + height[1] * rows
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **shared).ravel()
    for axis in axes[n:]:
        axis.set_visible(False)
    return figure, axes[:n]


def panels(n: int, width: float, height: float, **shared: Any) -> tuple[Figure, NDArray[Any]]:
    """Return a figure of so many inches, and its (n,) axes side by side."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, n, **shared))


def name_legend(owner: Any, handles: Any, names: Sequence[str], **place: Any) -> Any:
    """Return a legend of a figure or an axis; its names are plain text, without mathematics."""
    legend = owner.legend(handles, names, frameon=False, fontsize=8, **place)
    as_they_are(legend)
    return legend


def legend_beside(figure: Figure, handles: Any, names: Sequence[str]) -> None:
    """Draw a legend at the right of all axes."""
    name_legend(figure, handles, names, loc="outside right upper").set_gid("right")


def legend_above(figure: Figure, handles: Any, names: Sequence[str]) -> None:
    """Draw a legend above all axes, in as many columns as surely fit."""
    columns = max(min(len(names), int(figure.get_figwidth() / 1.3)), 1)
    name_legend(figure, handles, names, loc="outside upper center", ncols=columns).set_gid("above")


def as_they_are(legend: Any) -> None:
    """Show the names of a legend as plain text, without mathematics."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def finish(
    axis: Any, *, x: str = "", y: str = "", title: str = "", legend: bool = False, from_zero: bool = False
) -> None:
    """Name the axes ``x`` and ``y``, add a title and a legend, and make the frame plain."""
    if x:
        axis.set_xlabel(x)
    if y:
        axis.set_ylabel(y)
    if title:
        axis.set_title(title, loc="left", fontsize=11, fontweight="bold", parse_math=False)
    if from_zero:
        axis.set_ylim(bottom=0)
    if legend:
        as_they_are(axis.legend(frameon=False, fontsize=8.5))
    plain(axis)


class FigureLabels(TypedDict, total=False):
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

    def check(self, function: str, value: Any) -> None:
        """Raise TypeError or ValueError, with the name of the ``function``, if ``value`` is anything else."""
        if not isinstance(value, self.kinds):
            names = [name for name in ("joint", "fit", "table", "models") if _is_any(value, name, self.kinds)]
            hint = f"; pass its .{names[0]}" if names else ""
            raise TypeError(f"{function} takes {self.what}, got an object of type {_type_name(value)}{hint}")
        if not isinstance(value, pd.DataFrame):
            return
        if missing := [name for name in self.columns if name not in value]:
            have = named(list(map(visible_line, value.columns)), 12) or "none"
            lacking = f"lacks the columns {named(missing)} and has {have}"
            raise ValueError(f"{function} takes {self.what}; this table {lacking}")
        if missing := [name for name in self.settings if name not in value.attrs.get("settings", {})]:
            raise ValueError(f"{function} takes {self.what}, with {named(missing)} in its attrs['settings']")


def _type_name(value: Any) -> str:
    """Return the name of a type after its library's, as several have a DataFrame."""
    library, name = type(value).__module__.split(".")[0], type(value).__name__
    return name if library == "builtins" else f"{library}.{name}"


def _is_any(value: Any, name: str, kinds: tuple[type, ...]) -> bool:
    return pd.DataFrame not in kinds and isinstance(getattr(value, name, None), kinds)


def figure_of(title: str, *takes: Takes, says: bool = False) -> Callable[[F], F]:
    """Decorate a function that draws: its first arguments are what it ``takes``, and it has options of `FigureLabels`.

    ``{heads}`` in the usual ``title`` stands for what is rated, such as "Models". Where it ``says`` something, the
    first sentence of the first argument, if it is one and short, is the title instead.
    """
    usual = title

    def decorate(function: F) -> F:
        *parameters, _ = signature(function).parameters.values()
        listed = signature(function).replace(parameters=parameters)

        @wraps(function)
        def draw(*args: Any, title: str | None = None, caption: str | None = None, **options: Any) -> Figure:
            bound = listed.bind(*args, **options)
            values = list(bound.arguments.values())[: len(takes)]
            for kind, value in zip(takes, values, strict=True):
                kind.check(function.__name__, value)
            figure = function(*bound.args, **bound.kwargs)
            known = [caption, *(part for value in values for part in _rests_on(value))]
            words = (says and _finding(values[0])) or usual.format(heads=rated(values[0]).heads if values else "")
            below = "" if caption == "" else " · ".join(dict.fromkeys(filter(None, known)))
            _write(figure, words if title is None else title, below)
            return figure

        what = "".join(f"It takes {kind.what}. " for kind in takes)
        about = (
            '``title`` stands above the figure, "" for none; ``caption`` below it, before the known votes and draws.'
        )
        draw.__doc__ = f"{cleandoc(function.__doc__ or '')}\n\n{what}{about}"
        return spelled_out()(draw)  # type: ignore[return-value]

    return decorate


def _finding(value: Any) -> str:
    """Return the first sentence of a result or of a table, as a title; empty if it is long, or there are several."""
    of_table = isinstance(value, pd.DataFrame)
    sentence = value.attrs.get("answer", "") if of_table else next(iter(view_of(value).sentences), "")
    return sentence if "\n" not in sentence and len(sentence) <= _LONGEST_TITLE else ""


def _rests_on(value: Any) -> list[str]:
    """Return votes and resamples of a table or of a result, as far as they are known; of the last of several tables."""
    if isinstance(value, Mapping):
        return _rests_on(list(value.values())[-1])
    where, n = "", None
    if not isinstance(value, pd.DataFrame):
        held = vars(value)  # a caption is no reason to compute what is not there yet
        holders = (value, *map(held.get, ("accuracy", "joint", "drawn")))
        settings = next(filter(None, (getattr(holder, "settings", None) for holder in holders)), None)
        n = getattr(held.get("fit", value), "n_battles", None)  # of each model, or in all
        n = int(n.sum()) // 2 if isinstance(n, pd.Series) else n
    else:
        settings = value.attrs.get("settings")
        if "vote_count" in value:  # a vote counts for both its models
            votes = value.groupby(value.get("category", pd.Series(0, value.index)))["vote_count"].sum()
            n, where = int(votes.max()) // 2, " in the largest slice" if "category" in value else ""
    return [*filter(None, ["" if n is None else counted(n, "vote") + where, settings_line(settings)])]


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
