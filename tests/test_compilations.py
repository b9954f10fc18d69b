"""A board of another size compiles nothing."""

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


@pytest.mark.parametrize(
    "options", [{}, {"scheme": "poisson"}, {"scheme": "bayesian"}, {"link": "probit"}, {"penalty": "firth"}], ids=str
)
def test_boards_of_similar_sizes_share_programs(options):
    def rate(n_models, n_battles):
        battles = jaxeval.simulate_battles(n_battles, n_models, seed=n_models)
        jaxeval.bootstrap(battles, 8, **options)

    assert_compiled_once(rate, BOARDS)


@pytest.mark.slow
def test_graphs_of_similar_sizes_share_programs():
    def rate(n_models, n_battles):
        battles = jaxeval.simulate_battles(n_battles, n_models, seed=n_models)
        jaxeval.bootstrap(battles, 4, method="sparse")

    assert_compiled_once(rate, [(70, 2_600), (75, 2_800), (68, 2_300)])


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_what_fits_of_similar_sizes_say_shares_programs(link):
    def rate(n_models, n_battles):
        votes = jaxeval.simulate_votes(n_battles, n_models, seed=n_models)
        fit = jaxeval.fit_bradley_terry(votes.assign(prompt=np.arange(n_battles) // 3), cluster="prompt", link=link)
        assert np.isfinite([fit.log_likelihood, fit.standard_errors.sum(), fit.win_probability.to_numpy().sum()]).all()

    assert_compiled_once(rate, BOARDS[:3])


def test_boards_with_covariates_share_programs():
    def rate(n_models, n_battles):
        votes = jaxeval.simulate_votes(n_battles, n_models, seed=n_models)
        votes["length"] = np.random.default_rng(0).normal(size=n_battles).round(2)
        jaxeval.bootstrap(votes, 4, features=["length"])

    assert_compiled_once(rate, BOARDS)
