import numpy as np
import pytest
import twins

from jaxeval.ratings.connectivity import analyse, secure_models

M = 8


def random_tables(seed):
    """Whole and half points between models of very different numbers of battles."""
    rng = np.random.default_rng(seed)
    met = rng.random((M, M)) < rng.beta(0.7, 3.0)
    wins = rng.integers(1, 60, (M, M)) / 2 * met
    np.fill_diagonal(wins, 0)
    return wins + wins.T, wins


@pytest.mark.parametrize("seed", range(100))
def test_groups_and_standing_agree_with_brute_force(seed):
    n, wins = random_tables(seed)
    found = analyse(n, wins)
    battles = n.sum(1)

    # Components: models that a chain of battles joins; the main group's first, then by their battles.
    met = twins.closure(n > 0)
    np.testing.assert_array_equal(found.component[:, None] == found.component, met)
    assert set(found.component) == set(range(1, found.n_components + 1))
    main = found.standing == twins.IDENTIFIED
    assert set(found.component[main]) <= {1}
    sizes = np.bincount(found.component, battles)[2 if main.any() else 1 :]
    assert np.all(np.diff(sizes) <= 0)
    np.testing.assert_array_equal(found.standing, twins.standing(n, wins))


def test_the_names_of_the_standings():
    """A champion, a loser, a pair connected to nobody, and two that only beat the loser or lost to the champion."""
    wins = np.zeros((8, 8))
    wins[0, 1] = wins[1, 0] = 30  # the main group
    wins[2, 0] = 1  # undefeated
    wins[1, 3] = 1  # winless
    wins[4, 5] = wins[5, 4] = 2
    wins[6, 3] = wins[2, 7] = 1
    found = analyse(wins + wins.T, wins)
    i, above, below, apart = twins.IDENTIFIED, twins.ABOVE, twins.BELOW, twins.INCOMPARABLE
    assert found.standing.tolist() == [i, i, above, below, apart, apart, apart, apart]
    assert found.component.tolist() == [1, 1, 1, 1, 2, 2, 1, 1]


def resamples(rng, wins, n_resamples):
    """Multinomial resamples of whole and half points, half points being ties."""
    ties = 2 * (wins % 1)
    ties = np.triu(ties)
    outcomes = np.concatenate([np.floor(wins).ravel(), ties.ravel()])
    drawn = rng.multinomial(int(outcomes.sum()), outcomes / outcomes.sum(), n_resamples).reshape(-1, 2, *wins.shape)
    return drawn[:, 0] + (drawn[:, 1] + drawn[:, 1].swapaxes(1, 2)) / 2


def units_of(wins):
    """Units in which the row took points off the column: a tie counts for both."""
    return np.ceil(wins)


def secure_all(units):
    return secure_models(units).all()


def sometimes_separated(rng, wins, n_resamples=300):
    return any(not twins.closure(again > 0).all() for again in resamples(rng, wins, n_resamples))


def symmetric_board(rng, scale):
    """Wins in which the ties of a pair are half points on both sides."""
    wins = rng.poisson(scale * rng.gamma(1.0, 1.0, (6, 6))).astype(float)
    ties = np.triu(rng.integers(0, 2, (6, 6)), 1) / 2
    wins += ties + ties.T
    np.fill_diagonal(wins, 0)
    return wins


def test_no_resample_separates_a_board_called_secure():
    rng = np.random.default_rng(0)
    called = []
    for scale in [3, 10, 20, 40, 80] * 6:
        wins = symmetric_board(rng, scale)
        secure = secure_all(units_of(wins))
        called.append(secure)
        if secure:
            assert not sometimes_separated(rng, wins)
    assert 5 < sum(called) < 25


def test_a_model_with_two_votes_makes_a_board_insecure_and_does_separate():
    rng = np.random.default_rng(0)
    wins = symmetric_board(rng, 200)
    assert secure_all(units_of(wins))
    wins[5], wins[:, 5] = 0, 0
    wins[5, 0] = wins[0, 5] = 1
    assert not secure_all(units_of(wins))
    assert sometimes_separated(rng, wins)


def test_forty_units_each_way_join_a_model_also_through_others():
    units = np.zeros((4, 4))
    units[0, 1] = units[1, 0] = 200
    # Twenty each way with each of the two that have joined.
    units[2, 0] = units[0, 2] = units[2, 1] = units[1, 2] = 20
    units[3, 2], units[2, 3] = 100, 40
    assert secure_all(units)
    for i, j in ((2, 0), (0, 2), (2, 1), (1, 2), (2, 3)):
        fewer = units.copy()
        fewer[i, j] -= 1
        assert not secure_all(fewer)


def test_wins_alone_do_not_join():
    units = np.array([[0.0, 1e6], [39.0, 0.0]])
    assert not secure_all(units)
    assert not secure_all(units.T)


def test_many_models_that_met_a_few_times_each():
    """No pair has forty units; a set of models has as many with the others, unless two halves hardly met."""
    rng = np.random.default_rng(0)
    wins = rng.poisson(2.0, (120, 120)).astype(float)
    np.fill_diagonal(wins, 0)
    assert wins.max() < 40
    assert secure_all(wins)
    assert not sometimes_separated(rng, wins, 20)
    half = np.arange(120) < 60
    apart = np.where(half[:, None] == half, wins, 0)
    apart[0, 119], apart[119, 0] = 3, 3
    assert not secure_all(apart)
    assert sometimes_separated(rng, apart, 100)
    few = wins.copy()
    few[7] *= rng.random(120) < 0.1  # a model that hardly took points off anybody
    np.testing.assert_array_equal(secure_models(few), np.arange(120) != 7)
