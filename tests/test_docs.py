"""The examples of the documentation are true, and the modules that it names are there."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "page", ["how-it-flows.md", "tables.md", "files.md", "few-battles.md", "accelerators.md", "people-and-judges.md"]
)
def test_the_worked_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # they may write files
    failed, tried = doctest.testfile(str(ROOT / "docs" / page), module_relative=False)
    assert tried > 5
    assert failed == 0  # what differs is printed


@pytest.mark.parametrize("page", ["how-it-flows.md", "glossary.md", "accelerators.md", "people-and-judges.md"])
def test_files_that_are_named_exist(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:jaxeval/)?((?:\w+/)*\w+(?:\.py|/))`", text))
    assert named
    there = [name for name in named if (ROOT / name).exists() or list((ROOT / "jaxeval").rglob(name.removesuffix("/")))]
    missing = sorted(named - set(there))
    assert missing == []
