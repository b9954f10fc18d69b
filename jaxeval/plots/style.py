"""What the figures share: plain axes, a muted grey, and writing them to files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from jaxeval.execution.atomic_write import whole_file
from jaxeval.wording import visible_line

GREY = "#8a8f98"
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
    """A name as figures write it: on one line, harmless, and without its middle where it would push the axes away."""
    text = visible_line(value)
    half = _LONGEST_NAME // 2
    return text if len(text) <= _LONGEST_NAME else f"{text[:half]}…{text[1 - half :]}"


def plain(axis: Any) -> None:
    """No frame on top and right, a pale grid behind."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(color="#e3e7ec", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.tick_params(labelsize=8.5)


def one_axis(width: float, height: float) -> tuple[Figure, Any]:
    """A figure of so many inches with a single axis."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


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
        axis.legend(frameon=False, fontsize=8.5)
    plain(axis)
