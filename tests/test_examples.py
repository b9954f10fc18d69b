"""The examples in docstrings are true, and every public name has some."""

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import jaxeval

pytestmark = pytest.mark.usefixtures("all_on_the_host")

HOME = Path(jaxeval.__file__).parent
#: Modules with examples. They are imported by the test alone, which so starts at once.
MODULES = sorted(
    ".".join(("jaxeval", *path.relative_to(HOME).with_suffix("").parts)).removesuffix(".__init__")
    for path in HOME.rglob("*.py")
    if b">>> " in path.read_bytes()
)
#: Those whose examples compile programs that no others share, or take long in another way.
SLOW = {
    "jaxeval.audits.fewest_votes", "jaxeval.audits.goodness_of_fit", "jaxeval.audits.replication",
    "jaxeval.capability.capability_index", "jaxeval.capability.pareto", "jaxeval.capability.time_horizons",
    "jaxeval.engine.choice_models", "jaxeval.ratings.board_comparison", "jaxeval.ratings.contextual_fit",
    "jaxeval.ratings.panel_ratings", "jaxeval.ratings.prediction_powered", "jaxeval.ratings.small_categories",
    "jaxeval.ratings.contextual_effects", "jaxeval.lab.reference_study", "jaxeval.scores.item_response",
    "jaxeval.softelo.temperature",
}  # fmt: skip


def test_slow_modules_are_there():
    assert set(MODULES) >= SLOW


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in MODULES]
)
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
