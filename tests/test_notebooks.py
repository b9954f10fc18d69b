"""Notebooks are saved with the outputs of one run each, which hold nothing of the machine that ran them."""

import json
import re
import socket
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
#: Folders at the root of file systems, addresses in memory, and the colours of a traceback.
_ROOTS = "home|root|tmp|work|Users|usr|opt|mnt|var|private"
OF_A_MACHINE = re.compile(rf"(?<![\w:/.])/(?:{_ROOTS})/|[A-Z]:\\\\|\bat 0x|\x1b\[")


def cells(path):
    return [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def texts(value):
    """All text in outputs; pictures are none."""
    if isinstance(value, dict):
        return [text for key, part in value.items() if not key.startswith("image/") for text in texts(part)]
    return [text for part in value for text in texts(part)] if isinstance(value, list) else [str(value)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_of_one_run_from_top_to_bottom(path):
    assert [cell["execution_count"] for cell in cells(path)] == list(range(1, len(cells(path)) + 1))
    kinds = [output["output_type"] for cell in cells(path) for output in cell["outputs"]]
    assert len(kinds) > len(cells(path)) / 2
    assert "error" not in kinds
    assert path.stat().st_size < 400_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_nothing_of_a_machine_is_saved(path):
    saved = "\n".join(texts([cell["outputs"] for cell in cells(path)]))
    assert [found[0] for found in OF_A_MACHINE.finditer(saved)] == []
    assert socket.gethostname() not in saved
    assert [name for cell in cells(path) for name in cell["metadata"] if name != "tags"] == []
    assert set(json.loads(path.read_text("utf-8"))["metadata"]) == {"kernelspec", "language_info"}
    streams = [o for cell in cells(path) for o in cell["outputs"] if o.get("name") == "stderr"]
    assert streams == []  # warnings of libraries, with the paths of their files
