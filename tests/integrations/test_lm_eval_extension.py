"""Aggregations that lm-evaluation-harness finds in its registry, by a stand-in for it."""

import importlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def registry(monkeypatch):
    found = {}

    def register_aggregation(name):
        return lambda function: found.setdefault(name, function)

    for name in ("lm_eval", "lm_eval.api"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    registered = SimpleNamespace(register_aggregation=register_aggregation)
    monkeypatch.setitem(sys.modules, "lm_eval.api.registry", registered)
    monkeypatch.delitem(sys.modules, "jaxeval.integrations.lm_eval_extension", raising=False)
    importlib.import_module("jaxeval.integrations.lm_eval_extension")
    monkeypatch.delitem(sys.modules, "jaxeval.integrations.lm_eval_extension")
    return found


def test_errors_and_ends(registry):
    assert set(registry) == {"jaxeval_lower", "jaxeval_upper", "jaxeval_stderr"}
    right = (np.arange(40) % 3 > 0).astype(float)
    assert registry["jaxeval_stderr"](right.tolist()) == pytest.approx(right.std(ddof=1) / np.sqrt(40))
    lower, upper = (registry[f"jaxeval_{end}"](right.tolist()) for end in ("lower", "upper"))
    assert 0 < lower < right.mean() < upper < 1
    alike = np.repeat(right[:10], 4)
    pairs = list(zip(alike.tolist(), np.arange(40) // 4, strict=True))
    assert registry["jaxeval_stderr"](pairs) == pytest.approx(right[:10].std(ddof=1) / np.sqrt(10))
    assert registry["jaxeval_lower"](pairs) < registry["jaxeval_lower"](alike.tolist())
