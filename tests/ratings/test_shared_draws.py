"""Two boards refitted on one draw of their union, against a naive one, and what must not change it."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import twins
from styled import styled

from jaxeval import Battles
from jaxeval.data.shared_votes import shared_votes
from jaxeval.kernels import resample
from jaxeval.ratings.compare_boards import Posed, shared_units
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.resampling.units import unit_draw

B = 40


@pytest.fixture(scope="module")
def votes():
    """With the verdicts of a judge, who says something else now and then, and seldom has none."""
    table = styled(900).reset_index(names="vote")
    rng = np.random.default_rng(0)
    judge = np.where(rng.random(900) < 0.7, table["winner"], rng.choice(["model_a", "model_b", "tie"], 900))
    return table.assign(judge=judge, fold=rng.integers(3, size=900))


@pytest.fixture(scope="module")
def people(votes):
    return Battles.from_pandas(votes.head(700))


@pytest.fixture(scope="module")
def judge(votes):
    return Battles.from_pandas(votes.tail(600).drop(columns="winner"), winner="judge")


def posed(battles, **options):
    return Posed.of(battles, BootstrapOptions(n_resamples=B, seed=5, **options))


def refitted(a, b, sharing=None, of_b=None, id=("vote",), **options):
    """Strengths of both boards, draw by draw."""
    pair = posed(a, **options), posed(b, **{**options, **(of_b or {})})
    votes = shared_votes(a, b, sharing, () if sharing else id)
    draws = [x.resampled(own, {}).draws_logit for x, own in zip(pair, shared_units(*pair, votes), strict=True)]
    return [own - own.mean(1, keepdims=True) for own in draws]


def union(a, b):
    """Every vote of the union once: its cell on each board, as numbers of pair and result; -1 for none."""
    columns = []
    for battles in (a, b):
        first, second = (np.minimum(battles.model_a, battles.model_b), np.maximum(battles.model_a, battles.model_b))
        target = np.where(battles.model_a < battles.model_b, battles.target, 1 - battles.target)
        cell = first * 100 + second * 10 + (2 * target).astype(int)
        columns.append(pd.Series(cell, battles.column("vote").to_numpy()))
    return pd.concat(columns, axis=1).fillna(-1).astype(int)


def drawn_counts(sizes, scheme):
    """(B, U) draws of units of these ``sizes``, four to a column."""
    grid = np.pad(sizes, (0, -len(sizes) % 4)).reshape(-1, 4).T
    with jax.enable_x64(True):
        draw = unit_draw(grid, scheme, "", resample.Packing(None))
        units, stream = jax.tree.map(jnp.asarray, (draw.units, draw.stream))
        draws = jax.jit(resample.draw, static_argnums=(1, 2))
        found = draws(units, scheme, draw.packing, np.uint64(5), stream, np.arange(B))
    return np.asarray(found).transpose(0, 2, 1).reshape(B, -1)[:, : len(sizes)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheme", ["multinomial", *(pytest.param(name, marks=pytest.mark.slow) for name in ("poisson", "bayesian"))]
)
def test_a_naive_refit_of_the_same_draws(people, judge, scheme):
    """The kinds of votes in order, each with its number; drawn; added up for each board; fitted by Newton."""
    table = union(people, judge)
    swapped = posed(judge, scheme=scheme).digest < posed(people, scheme=scheme).digest
    kinds = table.groupby([1, 0] if swapped else [0, 1]).size()
    drawn = drawn_counts(kinds.to_numpy(), BootstrapOptions(scheme=scheme).drawn)
    if scheme == "multinomial":
        assert (drawn.sum(1) == 900).all()
    found = refitted(people, judge, scheme=scheme)
    for board, draws in enumerate(found):
        cell = kinds.index.get_level_values(board).to_numpy()
        for r in range(0, B, 8):
            wins = np.zeros((6, 6))
            for own, times in zip(cell, drawn[r], strict=True):
                if own >= 0:
                    i, j, twice = own // 100, own // 10 % 10, own % 10
                    wins[i, j] += times * twice / 2
                    wins[j, i] += times * (1 - twice / 2)
            theta = twins.newton(wins)
            np.testing.assert_allclose(draws[r], theta - theta.mean(), rtol=0, atol=1e-5 / ELO_PER_LOGIT)


def test_the_same_votes_on_both_boards_have_the_same_draws(people):
    one, other = refitted(people, people, "index")
    np.testing.assert_array_equal(one, other)


def test_opposite_results_mirror_the_draws(people):
    turned = Battles.from_pandas(people.to_pandas().assign(target=1 - people.target))
    one, other = refitted(people, turned)
    np.testing.assert_allclose(one, -other, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"cluster": "prompt"}, {"strata": "fold"}])
def test_every_kind_of_board_has_the_same_draws(people, options):
    """Tables of pairs, the graph of pairs, and rows with covariates, whose coefficients are held at 0."""
    dense, sparse = refitted(people, people, "index", {"method": "sparse"}, **options)
    np.testing.assert_allclose(dense, sparse, rtol=0, atol=1e-7)
    held = {"features": ["length"], "feature_ridge": np.inf}
    plain, controlled = refitted(people, people, "index", held, **options)
    np.testing.assert_allclose(plain, controlled, rtol=0, atol=1e-7)


def test_clusters_of_the_union_are_drawn_whole(votes):
    """Without any vote in common: what one board holds of a prompt is drawn as often as what the other holds."""
    halves = [Battles.from_pandas(votes[(votes["vote"] % 2) == k]) for k in range(2)]
    units = shared_units(*(posed(x, cluster="prompt") for x in halves), shared_votes(*halves))
    for battles, own in zip(halves, units, strict=True):
        assert own.units.sum() == votes["prompt"].nunique()
        drawn = np.bincount(own.unit, own.times, own.units.size)
        prompts = votes.groupby("prompt").size()
        held = battles.column("prompt").value_counts().reindex(prompts.index, fill_value=0)
        several = (prompts > 1).to_numpy()
        np.testing.assert_array_equal(drawn[own.cluster[several]], held[several])
        assert (own.cluster[~several] == -1).all()
    np.testing.assert_array_equal(units[0].units, units[1].units)
