"""A board of another size compiles nothing."""

from functools import cache

import jax
import numpy as np
import pytest
from compilations import compilations

import jaxeval


def test_compilations_are_counted():
    double = jax.jit(lambda x: 2 * x)
    for size, programs, traced in [
        (3, ["jit(<lambda>)"], ["<lambda>"]),
        (3, [], []),
        (4, ["jit(<lambda>)"], ["<lambda>"]),
    ]:
        with compilations() as count:
            double(np.ones(size))
        assert (count.programs, count.traced) == (programs, traced)
    double(np.ones(5))
    assert len(count.programs) == 1  # not those after the block


def assert_compiled_once(rate, sizes):
    """``rate(n_models, n_battles)`` compiles for the first of the ``sizes`` at most."""
    rate(*sizes[0])
    for size in sizes[1:]:
        with compilations() as count:
            rate(*size)
        assert (size, count.programs, count.traced) == (size, [], [])


BOARDS = [(55, 25_000), (49, 20_000), (64, 40_000), (56, 25_500), (64, 20_000), (49, 40_000)]


@cache
def battles_of(n_models, n_battles):
    return jaxeval.simulate_battles(n_battles, n_models, seed=n_models)


@pytest.mark.parametrize(
    "options",
    [{},
     *(pytest.param(options, marks=pytest.mark.slow)
       for options in ({"scheme": "poisson"}, {"scheme": "bayesian"}, {"link": "probit"}, {"penalty": "firth"}))],
    ids=str,
)  # fmt: skip
def test_boards_of_similar_sizes_share_programs(options):
    assert_compiled_once(lambda *size: jaxeval.bootstrap(battles_of(*size), 8, **options), BOARDS)


@pytest.mark.slow
def test_graphs_of_similar_sizes_share_programs():
    def rate(n_models, n_battles):
        battles = jaxeval.simulate_battles(n_battles, n_models, seed=n_models)
        jaxeval.bootstrap(battles, 4, method="sparse")

    assert_compiled_once(rate, [(70, 2_600), (75, 2_800), (68, 2_300)])


@pytest.mark.parametrize("link", ["logit", pytest.param("probit", marks=pytest.mark.slow)])
def test_what_fits_of_similar_sizes_say_shares_programs(link):
    def rate(n_models, n_battles):
        votes = jaxeval.simulate_votes(n_battles, n_models, seed=n_models)
        fit = jaxeval.fit_bradley_terry(votes.assign(prompt=np.arange(n_battles) // 3), cluster="prompt", link=link)
        assert np.isfinite([fit.log_likelihood, fit.standard_errors.sum(), fit.win_probability.to_numpy().sum()]).all()

    assert_compiled_once(rate, BOARDS[:3])


SMALL_BOARDS = [(20, 2_600), (17, 2_300), (22, 2_400)]
#: Pairs of more battles have longer groups of rows.
ALIKE_BOARDS = [(55, 25_000), (49, 20_000), (56, 25_500), (64, 20_000)]


@pytest.mark.parametrize(
    "boards", [SMALL_BOARDS, pytest.param(ALIKE_BOARDS, marks=pytest.mark.slow)], ids=["small", "large"]
)
def test_boards_with_covariates_share_programs(boards):
    def rate(n_models, n_battles):
        votes = jaxeval.simulate_votes(n_battles, n_models, seed=n_models)
        votes["length"] = np.random.default_rng(0).normal(size=n_battles).round(2)
        jaxeval.bootstrap(votes, 4, features=["length"])

    assert_compiled_once(rate, boards)
