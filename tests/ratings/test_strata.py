"""The bootstrap within strata: what it draws, on every kind of board, and what it says."""

import jax
import numpy as np
import pandas as pd
import pytest

from jaxeval import Battles, bootstrap, fit_bradley_terry, leaderboard, simulate_votes
from jaxeval.errors import DataError
from jaxeval.kernels import resample
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.pair_refits import dense_refits
from jaxeval.ratings.vote_groups import unit_members, vote_groups

SIZES = {"de": 1, "en": 700, "fr": 12, "it": 150, "pt": 40}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    votes = simulate_votes(903, 8, seed=3)
    votes["language"] = rng.permutation(np.repeat(list(SIZES), list(SIZES.values())))
    # Voters who keep to one language: of one vote, and of several.
    votes["voter"] = votes["language"] + rng.integers(0, 60, len(votes)).astype(str)
    votes["length"] = rng.integers(0, 3, len(votes)).astype(float)
    return votes


@pytest.fixture(scope="module")
def battles(table):
    return Battles.from_pandas(table)


def drawn_units(battles, n, cluster=None, scheme="multinomial"):
    """(n, K, C) draws of the units, and the language of each column."""
    options = BootstrapOptions(scheme=scheme)
    cells, cell = battles.compress(slice(None))
    groups = vote_groups(battles, cluster, "language")(slice(None), cell)
    problems = dense_refits(fit_boards([(battles.models, cells)], options), [""], [groups], options).problem
    units, named = jax.tree.map(lambda x: x[0], problems.units), (np.uint64(0), problems.stream[0], np.arange(n))
    with jax.enable_x64(True):
        draws = jax.jit(resample.draw, static_argnums=(1, 2))(units, options.drawn, resample.Packing(None), *named)
    return np.asarray(draws), np.asarray(units.strata.column), np.asarray(units.size)


@pytest.mark.parametrize("scheme", ["multinomial", "bayesian"])
def test_every_resample_holds_the_battles_of_each_stratum(battles, scheme):
    draws, column, size = drawn_units(battles, 200, scheme=scheme)
    for s, n in enumerate(SIZES.values()):
        assert size[:, column == s].sum() == n
        np.testing.assert_allclose(draws[:, :, column == s].sum((1, 2)), n, rtol=1e-12)
    assert draws.std(0).max() > 0


def test_every_resample_holds_the_clusters_of_each_stratum(table, battles):
    draws, column, _ = drawn_units(battles, 200, cluster="voter")
    for s, n in enumerate(table.groupby("language")["voter"].nunique()):
        np.testing.assert_array_equal(draws[:, :, column == s].sum((1, 2)), n)


@pytest.mark.parametrize("cluster", [None, "voter"])
@pytest.mark.parametrize("soft", [False, True])
def test_units_stand_for_their_votes(table, cluster, soft):
    """Drawn as often as they are, the units give back every cell."""
    if soft:
        table = table.assign(target=np.random.default_rng(1).random(len(table)).round(1))
    battles = Battles.from_pandas(table, target="target") if soft else Battles.from_pandas(table)
    cells, cell = battles.compress(slice(None))
    members = unit_members(cells, vote_groups(battles, cluster, "language")(slice(None), cell))
    column, row = np.divmod(members.unit, 4)
    found = np.bincount(members.cell, members.units[row, column] * members.times)
    np.testing.assert_array_equal(found, cells.count)
    assert (np.diff(members.stratum) >= 0).all()
    assert members.units.sum() == (903 if cluster is None else table["voter"].nunique())


@pytest.mark.parametrize(
    "options",
    [{},
     pytest.param({"cluster": "voter"}, marks=pytest.mark.slow),
     pytest.param({"scheme": "bayesian"}, marks=pytest.mark.slow),
     pytest.param({"by": "language", "min_slice_battles": 100}, marks=pytest.mark.slow)],
)  # fmt: skip
def test_one_stratum_is_the_plain_bootstrap(table, options):
    battles = Battles.from_pandas(table.assign(all="x"))
    plain, found = bootstrap(battles, 20, **options), bootstrap(battles, 20, strata="all", **options)
    for name in plain if isinstance(plain, dict) else [None]:
        a, b = (plain, found) if name is None else (plain[name], found[name])
        np.testing.assert_array_equal(a.draws, b.draws)
        np.testing.assert_array_equal(a.fit.standard_errors, b.fit.standard_errors)
        assert a.warnings == b.warnings


@pytest.mark.slow
def test_a_slice_of_one_stratum_draws_the_same_beside_others(table):
    """Strata within each slice; the slice "it" has one, and draws what it draws alone."""
    own = table[table["language"].isin(["it", "en"])]
    half = np.where(own["language"] == "it", "x", np.where(np.arange(len(own)) % 2, "y", "z"))
    battles = Battles.from_pandas(own.assign(half=half))
    found = bootstrap(battles, 30, by="language", strata="half")
    plain = bootstrap(battles, 30, by="language")
    np.testing.assert_allclose(found["it"].draws, plain["it"].draws, rtol=0, atol=1e-9)
    assert np.abs(found["en"].draws - plain["en"].draws).max() > 1


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [pytest.param(None, marks=pytest.mark.slow), "voter"])
def test_boards_with_features(battles, cluster):
    board = bootstrap(battles, 64, strata="language", cluster=cluster, features=["length"])
    # A standard deviation of 64 draws is known to 9 %.
    np.testing.assert_allclose(board.standard_errors, board.fit.standard_errors, rtol=4.5 / np.sqrt(2 * 64))
    lone = "1 stratum of one battle" if cluster is None else "1 stratum of one cluster"
    assert any(warning.startswith(lone) for warning in board.warnings)


# --- what strata are for -------------------------------------------------------------------------


def between_strata(n, n_boards):
    """Boards of two models, each of two strata of fixed sizes, in which A wins nearly always and nearly never."""
    rng = np.random.default_rng(0)
    stratum = np.tile(np.repeat(["easy", "hard"], n // 2), n_boards)
    won = rng.random(len(stratum)) < np.where(stratum == "easy", 0.95, 0.05)
    data = {"model_a": "A", "model_b": "B", "winner": np.where(won, "model_a", "model_b"), "stratum": stratum}
    return Battles.from_pandas(pd.DataFrame(data).assign(board=np.repeat(np.arange(n_boards), n)))


@pytest.mark.slow
def test_intervals_leave_out_what_varies_between_strata():
    """The share of A is known: 1/2; its variance within strata is a fifth of that with strata drawn anew."""
    repeats, resamples, covered, width = 60, 128, {}, {}
    battles = between_strata(300, repeats)
    for strata in (None, "stratum"):
        boards = bootstrap(battles, resamples, by="board", strata=strata, chunk_size=resamples).values()
        difference = np.array([board.draws[:, 0] - board.draws[:, 1] for board in boards])
        lower, upper = np.quantile(difference, [0.025, 0.975], axis=1)
        covered[strata] = ((lower <= 0) & (upper >= 0)).sum()
        errors = np.array([board.fit.difference_standard_errors.loc["A", "B"] for board in boards])
        # A standard deviation of 128 draws is known to 6 %, and the mean of 60 of them to 0.8 %.
        ratio, known = difference.std(1, ddof=1) / errors, 1 / np.sqrt(2 * resamples)
        assert np.abs(ratio - 1).max() < 4.5 * known
        assert ratio.mean() == pytest.approx(1, abs=4 * known / np.sqrt(repeats))
        width[strata] = np.mean(upper - lower)
    assert covered["stratum"] / repeats == pytest.approx(0.95, abs=4 * np.sqrt(0.95 * 0.05 / repeats))
    assert covered[None] == repeats
    assert width["stratum"] / width[None] == pytest.approx(np.sqrt(4 * 0.95 * 0.05), rel=0.2)


@pytest.mark.parametrize("cluster", [None, "voter"])
def test_errors_of_the_fit_are_those_within_strata(table, battles, cluster):
    """By hand: scores of battles (or clusters), less their mean in the stratum, between the inverse informations."""
    fit = fit_bradley_terry(battles, strata="language", cluster=cluster)
    theta = fit.logits
    slopes = np.zeros((len(table), len(theta)))
    rows = np.arange(len(table))
    first, second = (theta.index.get_indexer(table[side]) for side in ("model_a", "model_b"))
    slopes[rows, first], slopes[rows, second] = 1, -1
    p = 1 / (1 + np.exp(-(slopes @ theta.to_numpy())))
    scores = slopes * (battles.target - p)[:, None]
    stratum = table["language"].to_numpy()
    if cluster is not None:
        number, names = table["voter"].factorize()
        share = np.bincount(number) / len(number)
        scores = np.stack([np.bincount(number, column) / np.sqrt(1 - share) for column in scores.T], 1)
        stratum = np.array([name[:2] for name in names])
    for name in SIZES:
        scores[stratum == name] -= scores[stratum == name].mean(0)
    inverse = np.linalg.pinv(slopes.T @ (slopes * (p * (1 - p))[:, None]))
    covariance = ELO_PER_LOGIT**2 * inverse @ scores.T @ scores @ inverse
    np.testing.assert_allclose(fit.covariance, covariance, rtol=1e-6, atol=1e-6)
    plain = fit_bradley_terry(battles, cluster=cluster)
    assert (fit.standard_errors <= plain.standard_errors + 1e-9).all()


# --- what is said --------------------------------------------------------------------------------


@pytest.mark.usefixtures("on_the_host")
def test_lone_strata_are_counted(battles):
    sentence = "1 stratum of one battle does not vary in the resamples, so the intervals leave out what it contributes"
    assert sentence in bootstrap(battles, 5, strata="language").warnings
    assert sentence in leaderboard(battles, n_resamples=5, strata="language").attrs["warnings"]


def test_errors_say_what_to_do(table, battles):
    with pytest.raises(ValueError, match=r'scheme="poisson" draws every battle on its own.*leave strata= out'):
        bootstrap(battles, 5, scheme="poisson", strata="language")
    with pytest.raises(DataError, match=r"no column 'tongue'.*'language'"):
        bootstrap(battles, 5, strata="tongue")
    missing = Battles.from_pandas(table.assign(language=table["language"].where(table.index > 2)))
    with pytest.raises(DataError, match="column 'language' has 3 missing values"):
        bootstrap(missing, 5, strata="language")
    crossing = Battles.from_pandas(table.assign(voter=np.arange(len(table)) // 2))
    with pytest.raises(DataError, match=r"clusters lie in several strata of 'language', of 452 clusters"):
        bootstrap(crossing, 5, strata="language", cluster="voter")
    with pytest.raises(DataError, match="several strata"):
        fit_bradley_terry(crossing, strata="language", cluster="voter")


@pytest.mark.parametrize("option", ["strata", "cluster"])
def test_a_column_is_given_by_its_name(battles, option):
    for value in (1, True, []):
        with pytest.raises(TypeError, match="name a column of groups by a string, or several by a list of them, got"):
            bootstrap(battles, 5, **{option: value})
    with pytest.raises(DataError, match="no column ''"):
        bootstrap(battles, 5, **{option: ""})
