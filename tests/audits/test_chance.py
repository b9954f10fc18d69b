"""What random signs do to residuals of pairs: squares and standard errors, as loops over the units have them."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.audits.chance import Multipliers
from jaxeval.audits.simulated_boards import pair_votes, triads_of
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.options import FitOptions
from jaxeval.ratings.vote_groups import vote_groups

M = 8


@pytest.fixture(scope="module")
def fitted():
    """12 votes on each pair, by 40 voters."""
    rng = np.random.default_rng(3)
    first, second = np.repeat(np.array(list(combinations(range(M), 2))).T, 12, axis=1)
    names = np.array([f"m{k}" for k in range(M)])
    table = pd.DataFrame({
        "model_a": names[first], "model_b": names[second], "voter": rng.integers(40, size=len(first)),
        "target": rng.choice([0, 0.5, 1], len(first), p=[0.3, 0.2, 0.5]),
    })  # fmt: skip
    battles = jaxeval.Battles.from_pandas(table)
    (board,) = fit_boards([(battles.models, battles.cells)], FitOptions())
    return battles, board, pair_votes(board)


def loops(battles, own, units):
    """Sums over the units of the squared residuals of pairs, each by what its leverage leaves of it."""
    share, pair_of = own.expected / own.n, {pair: i for i, pair in enumerate(zip(own.first, own.second, strict=True))}
    slopes = np.zeros((len(own.n), M))
    for (a, b), i in pair_of.items():
        slopes[i, a], slopes[i, b] = 1, -1
    information = share * (1 - share)
    spread = slopes @ np.linalg.pinv(slopes.T @ ((own.n * information)[:, None] * slopes)) @ slopes.T
    rows = list(zip(battles.model_a, battles.model_b, battles.target, units, strict=True))
    found = np.zeros(len(own.n))
    for unit in set(units):
        residual, votes = np.zeros(len(own.n)), np.zeros(len(own.n))
        for a, b, target, of in rows:
            if of == unit:
                i = pair_of[min(a, b), max(a, b)]
                residual[i] += (target if a < b else 1 - target) - share[i]
                votes[i] += 1
        found += residual**2 / (1 - votes * information * np.diag(spread))
    return found


@pytest.mark.parametrize("clustered", [False, True])
def test_squares_and_standard_errors_are_those_of_loops(fitted, clustered):
    battles, board, own = fitted
    drawn = vote_groups(battles, "voter" if clustered else None, None)(slice(None), battles.compress(slice(None))[1])
    multipliers = Multipliers.of(board, drawn)
    squares = loops(battles, own, battles.codes("voter")[0] if clustered else range(battles.n_rows))
    np.testing.assert_allclose(multipliers.squares, squares, rtol=1e-6)
    found = multipliers.misfit(own, triads_of(own, M), 10, 0, lambda n: None)
    # Errors of few units that agree by luck are those of independent votes; there are pairs of either kind.
    assert 0 < (squares < own.variance).sum() < len(squares)
    error = np.sqrt(np.where(squares < own.variance, own.variance, squares))
    np.testing.assert_allclose(found.pair, (own.points - own.expected) / error, rtol=1e-6, atol=1e-9)
    lanes = np.concatenate(list(multipliers.signed(10, 0)), axis=1)
    np.testing.assert_allclose(found.largest_pair, np.abs(lanes / error[:, None]).max(0), rtol=1e-6)
    np.testing.assert_allclose(found.pearson, (lanes**2 / own.variance[:, None]).sum(0), rtol=1e-9)
