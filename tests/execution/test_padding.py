"""What is padded, and how far, changes no draw."""

import numpy as np
import pytest

import jaxeval
from jaxeval.execution import shapes
from jaxeval.ratings import boards, contextual_boards, pair_refits, refits, slices, sparse_boards, vote_groups
from jaxeval.resampling import units

VOTES = jaxeval.simulate_votes(600, 5, seed=2).assign(length=np.random.default_rng(0).normal(size=600))
LARGER = {
    "padded_size": lambda n: shapes.padded_size(n) + 8,
    "padded_models": lambda n: 2 * shapes.padded_models(n),
    "padded_columns": lambda n: 2 * shapes.padded_columns(n),
    "padded_graph": lambda pairs, rows: tuple(2 * n for n in shapes.padded_graph(pairs, rows)),
    "padded_units": lambda n: 2 * shapes.padded_units(n),
    "padded_places": lambda n, least: shapes.padded_places(n, least) + 128,
    "padded_table": lambda n: 2 * shapes.padded_table(n),
    "padded_few": lambda n: 1 if n == 1 else 2 * shapes.padded_few(n),
}


def bootstrap(**options):
    found = jaxeval.bootstrap(VOTES, 8, **options)
    return np.stack([board.draws for board in (found.values() if "by" in options else [found])])


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"by": "language"},
        pytest.param({"scheme": "poisson", "ridge": 0.1}, marks=pytest.mark.slow),
        pytest.param({"strata": "language", "link": "probit"}, marks=pytest.mark.slow),
        pytest.param({"cluster": "voter"}, marks=pytest.mark.slow),
        pytest.param({"ties": "davidson"}, marks=pytest.mark.slow),
        pytest.param({"features": ["length"]}, marks=pytest.mark.slow),
        pytest.param({"method": "sparse"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_draws_of_boards(options, monkeypatch):
    expected = bootstrap(**options)
    for module in (boards, contextual_boards, slices, refits, pair_refits, vote_groups, sparse_boards, units):
        for name in LARGER.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, LARGER[name])
    np.testing.assert_allclose(bootstrap(**options), expected, rtol=0, atol=1e-10)
