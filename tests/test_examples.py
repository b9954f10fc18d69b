"""The examples in docstrings are true, and every public name has some."""

import doctest
import inspect
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


def test_every_public_name_has_examples():
    public = {name: getattr(jaxeval, name) for name in jaxeval.__all__}
    shown = {
        name: value
        for name, value in public.items()
        if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception))
    }
    without = [name for name, value in shown.items() if "Examples:" not in (inspect.getdoc(value) or "")]
    assert without == []
