"""The examples in docstrings are true."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import jaxeval

HOME = Path(jaxeval.__file__).parent
#: Modules with examples. They are imported by the test alone, which so starts at once.
MODULES = sorted(
    ".".join(("jaxeval", *path.relative_to(HOME).with_suffix("").parts)).removesuffix(".__init__")
    for path in HOME.rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    """They may write files, into a folder of their own."""
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(import_module(name), verbose=False)
    assert tried > 0
    assert failed == 0  # what differs is printed
