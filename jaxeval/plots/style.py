"""What the figures share: plain axes, names that every font can draw, colours, and writing figures to files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from numpy.typing import NDArray

from jaxeval.execution.atomic_write import whole_file
from jaxeval.wording import shortened, visible, visible_line

GREY = "#8a8f98"
#: Colours of lines that stand side by side.
COLOURS = ("#1f5a93", "#c2447f", "#6b8e3d", "#c98a1b", "#6f5aa8", "#3c8f8a", GREY)
_LONGEST_NAME = 40


def save_figure(figure: Figure, path: str | Path, dpi: int) -> None:
    """Write a figure in the format of the ending of ``path``, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    with whole_file(path) as file:
        figure.savefig(file, dpi=dpi, format=Path(path).suffix.lower().removeprefix("."))


def save_figures(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Write every figure as ``folder/name.png``."""
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        save_figure(figure, paths[-1], dpi=150)
    return paths


def shown_name(value: Any) -> str:
    """A name as figures write it: on one line, without invisible characters, and without its middle if it is long."""
    return shortened(drawable(visible_line(value)), _LONGEST_NAME)


def joint_name(value: Any) -> str:
    """`shown_name` of a name of one level, or of the parts of one of several."""
    return ", ".join(map(shown_name, value)) if isinstance(value, tuple) else shown_name(value)


def width_of(names: Iterable[str]) -> float:
    """Inches that the longest of some names takes beside an axis."""
    return 0.07 * max(map(len, names), default=1)


def legend_name(value: Any) -> str:
    """A name as legends write it: Matplotlib would leave out one that begins with an underscore."""
    text = shown_name(value)
    return f"\u200b{text}" if text.startswith("_") else text


def drawable(text: str) -> str:
    """``text`` with characters that the fonts lack as escapes, in place of empty boxes and a warning."""
    fonts = mpl.rcParams
    known = _known_signs(tuple(fonts["font.family"]), tuple(fonts["font.sans-serif"]), tuple(fonts["font.serif"]))
    return "".join(sign if sign == "\n" or ord(sign) in known else ascii(sign)[1:-1] for sign in visible(text))


@cache
def _known_signs(families: tuple[str, ...], *_settings: tuple[str, ...]) -> frozenset[int]:
    """The code points that some of the fonts can draw, in normal and in bold."""
    signs = []
    for weight in ("normal", "bold"):
        files = [findfont(FontProperties(family=family, weight=weight)) for family in families]
        signs.append({code for file in files for code in get_font(file).get_charmap()})
    return frozenset(signs[0] & signs[1])


def plain(axis: Any) -> None:
    """No frame on top and right, a pale grid behind."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#e3e7ec", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8.5)


def one_axis(width: float, height: float) -> tuple[Figure, Any]:
    """A figure of so many inches with a single axis."""
    figure, (axis,) = panels(1, width, height)
    return figure, axis


def panels(n: int, width: float, height: float, **shared: Any) -> tuple[Figure, NDArray[Any]]:
    """A figure of so many inches, and its (n,) axes side by side."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, n, **shared))


def name_legend(owner: Any, handles: Any, names: Sequence[str], **place: Any) -> Any:
    """A legend of a figure or an axis; its names are plain text, without mathematics."""
    legend = owner.legend(handles, names, frameon=False, fontsize=8, **place)
    as_they_are(legend)
    return legend


def legend_beside(figure: Figure, handles: Any, names: Sequence[str]) -> None:
    """A legend at the right of all axes."""
    name_legend(figure, handles, names, loc="outside right upper").set_gid("right")


def legend_above(figure: Figure, handles: Any, names: Sequence[str]) -> None:
    """A legend above all axes, in as many columns as surely fit."""
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
