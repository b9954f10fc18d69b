"""The net that tells whether a change moved anything: it leaves out no public function and no command."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))
from test_options import ALL

import jaxeval


@pytest.fixture
def unchanged(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import unchanged

    return unchanged


def test_every_public_function_is_called(unchanged):
    assert unchanged.left_out() == set()
    assert {*unchanged.FUNCTIONS, *unchanged.OTHERWISE} <= {*jaxeval.__all__}


def test_every_command_is_called(unchanged):
    called = {unchanged.command_of(call)[0] for call in unchanged.calls()}
    assert called == set(ALL)


def test_what_moved_is_told(unchanged):
    one = np.array([1.0, np.nan, np.inf])
    assert unchanged.told(one, one.copy())[0] == "equal, bit for bit"
    assert unchanged.told(one, one + np.array([1e-10, 0, 0]))[0] == "near"
    assert unchanged.told(one, one + np.array([1e-8, 0, 0]))[0] == "moved"
    assert unchanged.told(one, np.array([1.0, 0.0, np.inf]))[0] == "moved"
    assert unchanged.told(one, one[:2])[0] == "moved"
    assert unchanged.told("a\nb", "a\nc") == ("moved", "\n    --- before\n    +++ now\n    @@ -2 +2 @@\n    -b\n    +c")
    assert [unchanged.told(*pair)[0] for pair in (("a", "a"), (None, "a"), (one, None))] == [
        "equal, bit for bit", "new", "gone",
    ]  # fmt: skip
