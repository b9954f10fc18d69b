"""What leads to a page: a card for sites that show links, a badge for a README, and a static Space of the Hub."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.show.documents import markdown_text
from jaxeval.show.files import write_table
from jaxeval.wording import shortened, visible_line

#: Models of a card, and its width and height in inches of 100 pixels: 1200 x 630, what most sites show whole.
_ROWS, _SIZE = 8, (12.0, 6.3)
_SIGN = 6.6  # pixels of a character of a badge, about
_LONGEST = 60  # characters


def save_card(table: pd.DataFrame, path: str | Path, finding: str, about: str) -> None:
    """Draw the first models of the first board of a leaderboard as a PNG of 1200 x 630 pixels.

    The title is the ``finding``; ``about`` stands below, such as the numbers of models and votes.
    """
    from matplotlib.figure import Figure

    from jaxeval.plots.boards import draw_intervals
    from jaxeval.plots.style import GREY, drawable, save_figure, shown_name

    board = _first(table)
    shown = board[board["rank"].notna()].head(_ROWS)
    figure = Figure(figsize=_SIZE, layout="constrained")
    figure.get_layout_engine().set(rect=(0.02, 0.09, 0.96, 0.72))  # type: ignore[union-attr, call-arg]
    axis = figure.subplots()
    names = [f"{rank}  {shown_name(name)}" for rank, name in zip(shown["rank"], shown["model"], strict=True)]
    ends = shown[["rating", "lower", "upper"]]
    # Shaded is who may be first, by the test of the title; tiers, which compare all pairs, would say something else.
    first = (shown["rank_best"] == 1).map({True: 1, False: 2}) if "rank_best" in shown else pd.Series(dtype="Int64")
    draw_intervals(axis, names, ends, first)
    axis.tick_params(labelsize=15)
    text: dict[str, Any] = {"x": 0.03, "parse_math": False, "wrap": True}
    figure.text(y=0.96, s=drawable(finding), va="top", fontsize=21, fontweight="bold", **text)
    figure.text(y=0.03, s=drawable(about), va="bottom", fontsize=14, color=GREY, **text)
    save_figure(figure, path, dpi=100)


def save_badge(table: pd.DataFrame, path: str | Path, title: str) -> None:
    """Write who leads the first board of a leaderboard as a small SVG, with the ``title`` at the left."""
    leader = lead(table)
    parts = [shortened(visible_line(text), _LONGEST) for text in (title, leader)]
    left, right = (round(_SIGN * len(text) + 14) for text in parts)
    title, leader = map(escape, parts)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{title}: {leader}"><title>{title}: {leader}</title>'
        f'<rect width="{left + right}" height="20" rx="3" fill="#1f5a93"/>'
        f'<path d="M3 0H{left}V20H3Q0 20 0 17V3Q0 0 3 0Z" fill="#444b54"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="{left / 2:g}" y="14" textLength="{left - 12}">{title}</text>'
        f'<text x="{left + right / 2:g}" y="14" textLength="{right - 12}">{leader}</text></g></svg>\n'
    )
    with whole_file(path) as file:
        file.write(svg.encode())


def lead(table: pd.DataFrame) -> str:
    """Return who leads the first board of a leaderboard in few words, and whether others are not told apart from it."""
    board, answer = _first(table), str(table.attrs.get("answer", "")).partition("\n")[0]
    ranked = board[board["rank"].notna()]
    if ranked.empty or "too few games" in answer:
        return "too few votes to say who leads"
    name = visible_line(str(ranked["model"].iloc[0]))
    return f"{name} leads" if f"{name} leads" in answer else f"{name} first, not alone"


def _first(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the first category."""
    return table[table["category"] == table["category"].iloc[0]] if "category" in table else table


_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
#: What a scheduled run needs; YAML for GitHub's workflows.
_WORKFLOW = """\
# A nightly refresh: put this file in .github/workflows of the repository that holds the votes, name these in place of
# votes.parquet, and add a token of the Hub that may write as the secret HF_TOKEN.
name: leaderboard
on:
  schedule: [{cron: "17 3 * * *"}]
  workflow_dispatch:
permissions: {contents: read}
jobs:
  refresh:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install "jaxeval[remote]"
      - run: jaxeval leaderboard votes.parquet --space SPACE --upload
        env:
          HF_TOKEN: ${{ secrets.HF_TOKEN }}
"""


def checked_space(space: str) -> Path:
    """Return the folder of a Space, which is called as the Space is."""
    if not _NAME.fullmatch(space) or space.rpartition("/")[2].strip(".") == "":
        raise DataError(f"--space takes OWNER/NAME, as organization/leaderboard, got {space!r}")
    return Path(space.rpartition("/")[2])


def card_address(space: str) -> str:
    """Return the address of a Space's card."""
    return f"https://huggingface.co/spaces/{space}/resolve/main/card.png"


def write_space(table: pd.DataFrame, folder: Path, space: str, data: Mapping[str, Any]) -> None:
    """Write what a Space has beside its page: its README, the table, and a workflow that makes it again each night.

    The ``folder`` holds its index.html, and ``data`` are those of the page.
    """
    write_table(table, folder / "leaderboard.parquet")
    matter = {
        "title": data["title"], "emoji": "\U0001f4ca", "colorFrom": "blue", "colorTo": "gray", "sdk": "static",
        "app_file": "index.html", "pinned": False, "short_description": data["answer"][:60],
        "thumbnail": card_address(space), "tags": ["leaderboard", "jaxeval"],
    }  # fmt: skip
    lines = [f"{name}: {json.dumps(value, ensure_ascii=True)}" for name, value in matter.items()]
    text = "\n".join([
        "---", *lines, "---", "", markdown_text(data["answer"]), "", markdown_text(data["facts"]), "",
        "- `index.html`: the board, which works offline and refits in the reader's browser",
        "- `leaderboard.parquet`: its table, a row for each model and category",
        "- `eval_results/`: a file for the repository of every model, where the board has no categories",
        "- `workflow.yml`: a workflow that makes all of it again each night", "",
        f"Made {data['made']} with jaxeval {data['version']}.", "",
    ])  # fmt: skip
    for name, content in {"README.md": text, "workflow.yml": _WORKFLOW.replace("SPACE", space)}.items():
        with whole_file(folder / name) as file:
            file.write(content.encode())


def upload_space(folder: Path, space: str) -> str:
    """Upload the folder of a Space with the token that huggingface_hub finds, and return the Space's address."""
    try:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError
    except ImportError as error:
        raise DataError("--upload needs huggingface_hub: pip install 'jaxeval[remote]'") from error
    hub = HfApi()
    try:
        hub.create_repo(space, repo_type="space", space_sdk="static", exist_ok=True)
        hub.upload_folder(folder_path=folder, repo_id=space, repo_type="space", commit_message="Leaderboard")
    except (HfHubHTTPError, LocalTokenNotFoundError, OSError) as error:
        raise DataError(f"{space} was not uploaded; the files are in {folder}: {error}") from error
    return f"https://huggingface.co/spaces/{space}"
