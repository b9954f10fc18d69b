"""Whether one number per model fits: the statistics, boards of chance, and what is told or refused."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy

import jaxeval
from jaxeval.audits import goodness_of_fit as tests_of_fit
from jaxeval.audits.chance import Multipliers, share_above
from jaxeval.audits.parts import NotAnsweredError, Severity
from jaxeval.audits.simulated_boards import pair_votes, refitted, simulated_boards, triads_of
from jaxeval.errors import DataError
from jaxeval.execution.lanes import LaneRun
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.options import FitOptions
from jaxeval.ratings.vote_groups import vote_groups

pytestmark = pytest.mark.usefixtures("all_on_the_host")

B = 99
M = 8


def votes(seed, per_pair, *, m=M, tie=0.0, extra=(), voters=0, gap=1.6):
    """A table of votes; ``extra`` is added to the log-odds of the first pairs."""
    rng = np.random.default_rng(seed)
    first, second = np.array(list(combinations(range(m), 2))).T
    z = np.linspace(gap / 2, -gap / 2, m)
    z = z[first] - z[second]
    z[: len(extra)] += extra
    pair = np.repeat(np.arange(len(first)), per_pair)
    win = 1 / (1 + np.exp(-z[pair]))
    share = np.minimum(tie, 1.8 * np.minimum(win, 1 - win))
    u, swap = rng.random(len(pair)), rng.random(len(pair)) < 0.5
    target = np.where(u < win - share / 2, 1.0, np.where(u < win + share / 2, 0.5, 0.0))
    a, b = first[pair], second[pair]
    names = np.array([f"m{k}" for k in range(m)])
    table = pd.DataFrame({
        "model_a": names[np.where(swap, b, a)],
        "model_b": names[np.where(swap, a, b)],
        "target": np.where(swap, 1 - target, target),
    })  # fmt: skip
    return table.assign(voter=rng.integers(0, voters, len(table))) if voters else table


def test_of(table, **options):
    return jaxeval.goodness_of_fit(table, n_resamples=B, progress=False, **options)


test_of.__test__ = False  # type: ignore[attr-defined]


def naive(table):
    """Pearson's X2 and the deviance of votes without ties, by loops."""
    fit = jaxeval.fit_bradley_terry(table)
    theta = fit.ratings * np.log(10) / 400
    pearson = deviance = 0.0
    for a, b in combinations(fit.ratings.index, 2):
        wins, n = 0.0, 0
        for x, y, target in table[["model_a", "model_b", "target"]].itertuples(index=False):
            if {x, y} == {a, b}:
                wins, n = wins + (target if x == a else 1 - target), n + 1
        if n:
            p = 1 / (1 + np.exp(theta[b] - theta[a]))
            pearson += (wins - n * p) ** 2 / (n * p * (1 - p))
            for found, mean in ((wins, n * p), (n - wins, n * (1 - p))):
                deviance += 2 * found * np.log(found / mean) if found else 0.0
    return pearson, deviance


def test_statistics_are_those_of_loops_and_of_many_votes_chi_square():
    table = votes(0, 60)
    found = test_of(table)
    pearson, deviance = naive(table)
    np.testing.assert_allclose([found.statistic, found.deviance], [pearson, deviance], rtol=1e-6)
    assert found.dof == M * (M - 1) // 2 - (M - 1)
    assert list(found.table["statistic"][:2]) == [found.statistic, found.deviance]
    # Chi-square, within three standard errors of B simulated boards.
    for value, p_value in ((found.statistic, found.p_value), (found.deviance, found.deviance_p_value)):
        p = scipy.stats.chi2.sf(value, found.dof)
        assert abs(p_value - p) < 3 * np.sqrt(p * (1 - p) / B) + 1 / B
    assert found.findings()[0].severity == Severity.REASSURING
    assert "presumes independent votes" in found.findings()[0].text


@pytest.fixture(scope="module")
def fitted():
    battles = jaxeval.Battles.from_pandas(votes(3, 12, tie=0.3, voters=40))
    (board,) = fit_boards([(battles.models, battles.cells)], FitOptions())
    return battles, board, pair_votes(board)


def test_simulated_boards_are_refitted(fitted):
    _, board, own = fitted
    simulated = simulated_boards(board, own, triads_of(own, M), B, 0)
    found = refitted(simulated, LaneRun(chunk_size=16))
    assert (found.status == 0).all()
    q = len(own.n)
    wins, ties = (np.asarray(x)[:, :q] for x in (simulated.boards.wins, simulated.boards.ties))
    # As many votes, points and ties as expected, within five standard errors.
    points = wins + ties / 2
    assert np.all(np.abs(points.mean(0) - own.expected) < 5 * np.sqrt(own.variance / B))
    models, odds = np.array([f"m{k}" for k in range(M)]), float(simulated.boards.design.tie_odds)
    for lane in range(3):
        times = np.stack([wins[lane], ties[lane], own.n - wins[lane] - ties[lane]], axis=1).astype(int).ravel()
        a, b = (models[np.repeat(x, 3)].repeat(times) for x in (own.first, own.second))
        table = pd.DataFrame({"model_a": a, "model_b": b, "target": np.tile([1, 0.5, 0], q).repeat(times)})
        theta = jaxeval.fit_bradley_terry(table).ratings.to_numpy() * np.log(10) / 400
        p = 1 / (1 + np.exp(theta[own.second] - theta[own.first]))
        root = np.sqrt(odds**2 / 4 + (4 - odds) * odds * p * (1 - p))
        share = (ties[lane] + 10 * 2 * odds * p * (1 - p) / (odds / 2 + root)) / (own.n + 10)
        variance = p * (1 - p) - np.minimum(share, 2 * np.minimum(p, 1 - p)) / 4
        expected = ((points[lane] - own.n * p) ** 2 / (own.n * variance)).sum()
        np.testing.assert_allclose(found.pearson[lane], expected, rtol=1e-4)


@pytest.mark.parametrize("clustered", [False, True])
def test_random_signs_vary_as_loops_say(fitted, clustered):
    """Residuals of pairs under signs of units have the covariance of a product of dense matrices."""
    battles, board, own = fitted
    row_cells = battles.compress(slice(None))[1]
    drawn = vote_groups(battles, "voter" if clustered else None, None)(slice(None), row_cells)
    multipliers = Multipliers.of(board, drawn)
    cells, p = board.cells, len(own.n)
    slopes = np.zeros((p, M))
    slopes[np.arange(p), cells.first], slopes[np.arange(p), cells.second] = 1, -1
    share = own.expected / own.n
    information = own.n * share * (1 - share)
    inverse = np.linalg.pinv(slopes.T @ (information[:, None] * slopes))
    project = np.eye(p) - (information[:, None] * slopes) @ inverse @ slopes.T
    of_vote = share * (1 - share) * np.einsum("pi,ij,pj->p", slopes, inverse, slopes)
    units = battles.codes("voter")[0] if clustered else np.arange(battles.n_rows)
    expected = np.zeros((p, p))
    for unit in np.unique(units):
        pulls = np.zeros(p)
        for cell in row_cells[units == unit]:
            pulls[cells.pair[cell]] += cells.target[cell] - share[cells.pair[cell]]
        same = np.bincount(cells.pair[row_cells[units == unit]], minlength=p)
        pulls = project @ (pulls / np.sqrt(1 - same * of_vote))
        expected += np.outer(pulls, pulls)
    draws = np.concatenate(list(multipliers.signed(4000, 0)), axis=1)
    found = draws @ draws.T / draws.shape[1]
    own_error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / draws.shape[1])
    assert np.all(np.abs(found - expected) < 5 * own_error)
    np.testing.assert_allclose(draws[:, :1], np.concatenate(list(multipliers.signed(1, 0)), axis=1))


def test_a_planted_circle_is_found_and_named():
    circle = np.zeros(M)  # of m0 over m1 over m2 over m0: the pairs (0, 1), (0, 2) and (1, 2)
    circle[[0, 1, M - 1]] = 0.9, -0.9, 0.9
    found = test_of(votes(1, 150, extra=circle))
    assert found.p_value == 1 / (B + 1)
    first = found.triads.iloc[0]
    assert [first["model_1"], first["model_2"], first["model_3"]] == ["m0", "m1", "m2"]
    assert first["circular"]
    assert first["p_value"] == 1 / (B + 1)
    assert found.cyclic_share > 3 * found.cyclic_error
    said = [finding.text for finding in found.findings()]
    assert any("m0 over m1 over m2 over m0" in text for text in said)
    assert any("pairs of neighbours" in text for text in said)
    # Ratings of other opponents vary by more than those of the same.
    assert (found.ranks["opponents_error"] > found.ranks["sandwich_error"]).mean() > 0.5
    assert {name.split("_")[0] for name in found.figures()} == {"shares", "residuals"}


def test_the_share_in_circles_is_that_of_the_true_log_odds():
    """Of boards with random log-odds beside strengths, within three standard errors of their mean."""
    slopes = np.zeros((M * (M - 1) // 2, M))
    first, second = np.array(list(combinations(range(M), 2))).T
    slopes[np.arange(len(first)), first], slopes[np.arange(len(first)), second] = 1, -1
    extra = np.random.default_rng(0).normal(0, 0.3, len(first))
    extra -= slopes @ np.linalg.lstsq(slopes, extra, rcond=None)[0]
    truth = (extra**2).sum() / ((slopes @ np.linspace(0.8, -0.8, M) + extra) ** 2).sum()
    shares = np.array([test_of(votes(30 + seed, 100, extra=extra)).cyclic_share for seed in range(6)])
    assert abs(shares.mean() - truth) < 3 * shares.std(ddof=1) / np.sqrt(6) + 0.01


def test_equal_models_have_no_share_in_circles():
    """All log-odds are chance there: 52 % and 100 % were said of some of these boards."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        a, b = rng.integers(0, 6, 600), rng.integers(1, 6, 600)
        even = pd.DataFrame({"model_a": a, "model_b": (a + b) % 6, "target": rng.integers(0, 2, 600) * 1.0})
        found = test_of(even.astype({"model_a": str, "model_b": str}))
        assert np.isnan(found.cyclic_share)
        assert found.reasons["cyclic_share"] == "pairs of models differ hardly more than by chance"
        assert not any("circles" in finding.text for finding in found.findings())


def test_a_pair_that_sticks_out():
    found = test_of(votes(2, 100, extra=[1.5]))
    row = found.pairs.iloc[0]
    assert (row["model_a"], row["model_b"], row["votes"]) == ("m0", "m1", 100)
    assert row["p_value"] == 1 / (B + 1)
    assert row["share"] > row["expected"]
    assert (found.pairs["p_value"].iloc[1:] > 0.01).all()


def test_voters_who_repeat_themselves_are_no_misfit():
    rng = np.random.default_rng(4)
    table = votes(5, 6).assign(voter=lambda t: np.arange(len(t)))
    copied = table.loc[np.repeat(table.index, 12)]  # each voter says the same twelve times
    plain, clustered = test_of(copied), test_of(copied, cluster="voter")
    assert plain.p_value == 1 / (B + 1)
    assert clustered.p_value > 0.05
    assert clustered.statistic == plain.statistic
    assert "presumes" not in clustered.findings()[0].text
    shuffled = test_of(copied.sample(frac=1, random_state=rng), cluster="voter")
    np.testing.assert_allclose(shuffled.pairs["z"], clustered.pairs["z"], rtol=1e-9)


def test_the_effect_of_the_side_is_what_a_fit_finds():
    table = votes(6, 60, gap=0.8).sample(frac=1, random_state=0, ignore_index=True)
    rng = np.random.default_rng(0)
    table["target"] = np.where(rng.random(len(table)) < 0.06, 1.0, table["target"])
    table["length_a"], table["length_b"] = rng.integers(1, 90, (2, len(table)))
    table["day"] = pd.date_range("2025-01-01", periods=len(table), freq="h")
    late = (table["day"] > table["day"].median()) & (rng.random(len(table)) < 0.7)
    for side, result in (("model_a", 1.0), ("model_b", 0.0)):
        table.loc[late & (table[side] == "m3"), "target"] = result
    found = test_of(table, lengths=("length_a", "length_b"), time="day")
    tests = found.table.set_index("test")
    fit = jaxeval.fit_bradley_terry(table, features=[jaxeval.position_advantage()]).coefficients()
    value, error = fit.loc["position", ["coefficient", "standard_error"]]
    side = tests.loc["side A", ["effect", "standard_error"]].astype(float)
    np.testing.assert_allclose(side, [value, error], rtol=0.03)
    assert tests.loc["length_a - length_b", "p_value"] > 0.01
    assert tests.loc["day", "dof"] == M - 1
    assert tests.loc["day", "p_value"] < 1e-4
    assert any("drift with day" in finding.text for finding in found.findings())


def test_slices_and_models_of_ties_that_remove_misfit():
    a, b = votes(7, 200, tie=0.2, gap=2.4), votes(8, 200, gap=-2.4)
    table = pd.concat([a.assign(kind="a"), b.iloc[::2].assign(kind="b")])
    # Pairs are of both kinds, but in other shares, so that no single number per model holds.
    table = table[(table["kind"] == "a") | ((table["model_a"] < "m4") == (table["model_b"] < "m4"))]
    found = test_of(table, by="kind")
    assert found.p_value == 1 / (B + 1)
    assert found.findings()[0].severity == Severity.SERIOUS
    explained = found.explained.set_index("board")
    assert list(explained.index)[1:3] == ["Davidson's model of ties", "Rao and Kupper's model of ties"]
    assert explained.loc["a rating for each of 2 slices by kind", "removed"] > 0.8
    assert abs(explained.loc["Davidson's model of ties", "removed"]) < 0.3
    overlapping = table.assign(kind=[["a", "b"]] * len(table))
    assert "overlap" in test_of(overlapping, by="kind").reasons["slices"]


def test_what_is_refused_says_why():
    thin = test_of(votes(9, 3))
    assert np.isnan(thin.deviance_p_value)
    assert np.isfinite(thin.deviance)
    assert "thin pairs" in thin.reasons["deviance"]
    assert np.isnan(thin.cyclic_share)
    assert "median pair has 3 votes" in thin.reasons["cyclic_share"]
    assert len(thin.triads) == 0
    line = pd.DataFrame({"model_a": [*"aabb"], "model_b": [*"bbcc"], "target": [1, 0, 1, 0]})
    with pytest.raises(DataError, match="2 pairs of 3 rated models met"):
        test_of(line)
    with pytest.raises(DataError, match="all 84 votes are ties"):
        test_of(votes(9, 3).assign(target=0.5))
    with pytest.raises(NotAnsweredError, match=r"1,001 models are more than the 1,000"):
        test_of(pd.DataFrame({"model_a": np.arange(1000), "model_b": np.arange(1, 1001), "target": 1.0}))
    with pytest.raises(ValueError, match="n_resamples"):
        jaxeval.goodness_of_fit(votes(9, 3), n_resamples=5)
    for column, told in (("voter", "84 rows hold no time"), ("same", "one value only"), ("gaps", "84 missing values")):
        table = votes(9, 3).assign(voter="x", same=1, gaps=np.nan)
        with pytest.raises(DataError, match=told):
            test_of(table, time=column)


@pytest.mark.parametrize("wrong", [{"by": "kinds"}, {"by": 3}, {"time": "days"}, {"lengths": ("x", "y")}])
def test_columns_are_looked_for_before_boards_are_simulated(wrong, monkeypatch):
    monkeypatch.setattr(tests_of_fit, "simulated_chance", lambda *_: pytest.fail("boards were simulated"))
    with pytest.raises((DataError, TypeError), match=r"no column '|takes the name of a column"):
        test_of(votes(9, 3), **wrong)


@pytest.mark.parametrize("kind", ["soft", "weighted", "davidson", "features"])
def test_other_boards_are_tested_by_random_signs(kind):
    rng = np.random.default_rng(10)
    table = votes(11, 40, tie=0.3)
    options = {}
    if kind == "soft":
        table["target"] = np.clip(table["target"] + rng.uniform(-0.2, 0.2, len(table)), 0, 1)
    battles = jaxeval.Battles.from_pandas(
        table.assign(w=rng.uniform(0.5, 2, len(table)), x=rng.normal(size=len(table)))
    )
    if kind == "weighted":
        battles = replace(battles, weight=battles.columns["w"].to_numpy())
    if kind == "davidson":
        options = {"ties": "davidson"}
    if kind == "features":
        options = {"features": ["x"]}
    found = test_of(battles, **options)
    assert "random signs of votes" in found.method
    assert found.p_value > 0.02
    assert np.isnan(found.deviance_p_value)
    assert "votes of weight 1" in found.reasons["deviance"]
    assert found.dof == M * (M - 1) // 2 - (M - 1) - (kind in ("davidson", "features"))
    if kind == "features":
        assert found.explained["board"][1] == "control for x"


def test_models_without_a_rating_are_left_out():
    table = votes(12, 12)
    more = pd.DataFrame({"model_a": "best", "model_b": ["m0", "m1"], "target": 1.0})
    whole, less = test_of(pd.concat([table, more])), test_of(table)
    np.testing.assert_allclose(whole.statistic, less.statistic, rtol=1e-9)
    assert whole.dof == less.dof
    assert any("1 model without a finite rating" in warning for warning in whole.warnings)
    assert "best" not in set(whole.pairs["model_a"]) | set(whole.ranks["above"])


def test_an_audit_has_it():
    found = jaxeval.audit(votes(0, 60), parts=["goodness_of_fit"], n_resamples=B, progress=False)
    own = test_of(votes(0, 60))
    assert (found.goodness_of_fit.statistic, found.goodness_of_fit.p_value) == (own.statistic, own.p_value)
    assert own.findings()[0].text in found.verdict


def test_p_values_count_draws_that_are_lost_as_larger():
    draws = np.array([1.0, 2.0, 3.0, np.nan])
    np.testing.assert_allclose(share_above([0.5, 2.0, 9.0], draws), [1, 4 / 5, 2 / 5])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("per_pair", "tie", "clustered"),
    [(40, 0.0, False), (2, 0.0, False), (40, 0.3, False), (2, 0.3, False), (6, 0.2, True)],
)
def test_honest_boards_are_rejected_at_the_nominal_rate(per_pair, tie, clustered):
    """Of 60 boards, .05 are to be rejected: at most what four standard errors allow."""
    n, rejected = 60, 0
    for seed in range(n):
        table = votes(100 + seed, per_pair, tie=tie)
        if clustered:
            table = table.assign(voter=np.arange(len(table))).loc[np.repeat(table.index, 3)]
        found = jaxeval.goodness_of_fit(
            table, cluster="voter" if clustered else None, n_resamples=B, seed=seed, progress=False
        )
        rejected += found.p_value <= 0.05
    assert rejected / n < 0.05 + 4 * np.sqrt(0.05 * 0.95 / n)


def test_what_no_p_value_could_reject_is_refused():
    few = votes(0, 20).assign(voter=lambda v: v.index % 5)
    with pytest.raises(NotAnsweredError, match=r"5 clusters by voter give no p-value below 0.062"):
        jaxeval.goodness_of_fit(few, cluster="voter", n_resamples=B, progress=False)
    with pytest.raises(NotAnsweredError, match=r"n_resamples=99 gives no p-value below 0.01: take more"):
        jaxeval.goodness_of_fit(few, n_resamples=B, level=0.995, progress=False)
