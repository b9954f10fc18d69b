"""A leaderboard as a static Space of the Hugging Face Hub: a folder that can be uploaded as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.show.files import write_table

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
    """Return the folder of a Space, which is called as the Space is.

    Raises:
        DataError: it is no name such as "organization/name".
    """
    if not _NAME.fullmatch(space) or space.rpartition("/")[2].strip(".") == "":
        raise DataError(f"--space takes OWNER/NAME, as organization/leaderboard, got {space!r}")
    return Path(space.rpartition("/")[2])


def card_address(space: str) -> str:
    """Return the address of a Space's card."""
    return f"https://huggingface.co/spaces/{space}/resolve/main/card.png"


def write_space(table: pd.DataFrame, folder: Path, space: str, data: Mapping[str, Any]) -> None:
    """Write what a Space has beside its page: its README, the table, and a workflow that makes it again each night.

    Args:
        table: the leaderboard.
        folder: where its index.html is.
        space: "organization/name".
        data: of the page.

    Raises:
        OSError: a file cannot be written.
    """
    write_table(table, folder / "leaderboard.parquet")
    matter = {
        "title": data["title"], "emoji": "\U0001f4ca", "colorFrom": "blue", "colorTo": "gray", "sdk": "static",
        "app_file": "index.html", "pinned": False, "short_description": data["answer"][:60],
        "thumbnail": card_address(space), "tags": ["leaderboard", "jaxeval"],
    }  # fmt: skip
    lines = [f"{name}: {json.dumps(value, ensure_ascii=True)}" for name, value in matter.items()]
    text = "\n".join([
        "---", *lines, "---", "", _plain(data["answer"]), "", _plain(data["facts"]), "",
        "- `index.html`: the board, which works offline and refits in the reader's browser",
        "- `leaderboard.parquet`: its table, a row for each model and category",
        "- `eval_results/`: a file for the repository of every model, where the board has no categories",
        "- `workflow.yml`: a workflow that makes all of it again each night", "",
        f"Made {data['made']} with jaxeval {data['version']}.", "",
    ])  # fmt: skip
    for name, content in {"README.md": text, "workflow.yml": _WORKFLOW.replace("SPACE", space)}.items():
        with whole_file(folder / name) as file:
            file.write(content.encode())


def _plain(text: str) -> str:
    """Text as Markdown that is nothing but text."""
    return re.sub(r"([\\`*_{}\[\]<>|~$&#!])", r"\\\1", text)


def upload_space(folder: Path, space: str) -> str:
    """Upload the folder of a Space with the token that huggingface_hub finds, and return the Space's address.

    Raises:
        DataError: huggingface_hub is not installed, or the Hub refuses.
    """
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
