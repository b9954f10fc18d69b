import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.audits.parts import NotAnsweredError
from jaxeval.audits.replication import _NOISE, TrueBoard
from jaxeval.audits.simulated_boards import (
    expected_covariance,
    half_counts,
    outcomes,
    refitted_boards,
    sandwiches,
    simulated_counts,
)
from jaxeval.statistics.draws import Draws


@pytest.fixture(scope="module")
def votes():
    return jaxeval.simulate_votes(1_500, 8, seed=1)


@pytest.fixture(scope="module")
def fit(votes):
    return jaxeval.fit_bradley_terry(votes)


@pytest.fixture(scope="module")
def found(votes):
    return jaxeval.replication(votes, n_boards=200, n_splits=100, top=3)


def test_refits_are_those_of_the_board(fit):
    cells = fit._board.cells
    ((board, *others),) = refitted_boards(fit, cells, [cells.count] * 40, 40)
    np.testing.assert_allclose(board.theta, fit.strengths, atol=1e-9)
    own = next(sandwiches([board, *others]))
    np.testing.assert_allclose(fit.scale.covariance(own), fit.covariance, rtol=1e-6)


def test_simulated_votes_have_the_design_and_expect_what_the_fit_does(fit):
    own = outcomes(fit)
    cells, n = fit._board.cells, len(own.n)
    counts = np.mean([simulated_counts(own, 0, number).reshape(n, 3) for number in range(400)], 0)
    np.testing.assert_allclose(counts.sum(1), cells.battles)
    expected = fit.win_probability.to_numpy()[cells.first, cells.second]
    np.testing.assert_allclose(own.chances @ [0, 0.5, 1], expected)
    error = np.sqrt(own.n[:, None] * own.chances * (1 - own.chances) / 400)
    assert (np.abs(counts - own.n[:, None] * own.chances) < 4.5 * error + 1e-9).all()
    ties = np.bincount(cells.pair, cells.count * (cells.target == 0.5))
    assert own.chances[:, 1] @ own.n == pytest.approx(ties.sum(), rel=0.01)
    same = simulated_counts(own, 0, 7)
    np.testing.assert_array_equal(same, simulated_counts(own, 0, 7))
    assert (same != simulated_counts(own, 1, 7)).any()


def test_expected_covariance_is_that_of_simulated_boards(fit):
    own = outcomes(fit)
    counts = [simulated_counts(own, 0, number) for number in range(300)]
    theta = np.stack([board.theta for some in refitted_boards(fit, own.cells, counts, 300) for board in some])
    ratio = theta.var(0, ddof=1) / np.diag(expected_covariance(fit, own))
    assert np.abs(np.log(ratio)).max() < 4 * np.sqrt(2 / 300)


def test_halves_are_the_votes_by_whole_clusters(votes):
    fit = jaxeval.fit_bradley_terry(votes, cluster="voter")
    cells, drawn = fit._board.cells, fit._drawn
    one, other = half_counts(cells, drawn, 0, 3)
    np.testing.assert_array_equal(one + other, cells.count)
    heads = np.random.default_rng([0, 1, 3]).random(len(drawn.clusters.size)) < 0.5
    named = np.unique(votes["voter"])[heads]
    assert one.sum() == votes["voter"].isin(named).sum()
    one, other = half_counts(cells, jaxeval.fit_bradley_terry(votes)._drawn, 0, 3)
    assert abs(one.sum() - 750) < 4 * np.sqrt(1500) / 2


def test_closed_form_claims_are_those_of_draws(fit):
    """The same normal noise as draws gives the same sets of ranks and tiers, but for the rounding of errors."""
    covariance = expected_covariance(fit, outcomes(fit))
    theta = fit.strengths.to_numpy()
    true = TrueBoard.of(theta, covariance, fit.scale, np.ones(8, bool), 0.95, 0)
    values, vectors = np.linalg.eigh(covariance)
    noise = np.random.default_rng([0, 2]).normal(size=(_NOISE, 8)) * np.sqrt(np.maximum(values, 0)) @ vectors.T
    draws = Draws(fit.ratings.index, theta, theta + noise)
    assert true.critical_of_all == pytest.approx(draws.differences().critical(0.95), rel=0.06)
    held = true.claims(theta, covariance)
    sets = draws.rank_sets()
    width = (sets["rank_worst"] - sets["rank_best"] + 1).to_numpy(float)
    assert np.abs(held["sets of ranks"][1] - width).max() <= 1
    assert np.abs(held["sets of ranks"][1] - width).mean() <= 0.5
    assert held["tiers"][1] == draws.tiers().max()
    together = draws.rank_sets(simultaneous=True)
    assert held["sets of ranks, all at once"][1] == pytest.approx(
        (together["rank_worst"] - together["rank_best"] + 1).mean(), abs=0.5
    )
    assert np.all(held["ratings"][0] == 1)
    assert np.all(held["sets of ranks"][0] == 1)


def test_claims_about_a_wrong_truth_do_not_hold(fit):
    covariance = expected_covariance(fit, outcomes(fit))
    theta = fit.strengths.to_numpy()
    true = TrueBoard.of(-theta, covariance, fit.scale, np.ones(8, bool), 0.95, 0)
    held = true.claims(theta, covariance)
    assert held["ratings"][0].mean() < 0.9
    assert held["sets of ranks"][0].min() == 0
    assert (held["sets of ranks, all at once"][0], held["tiers"][0]) == (0, 0)


def test_models_of_one_strength_share_their_ranks():
    """All sets must hold all ranks: the family of a model misses one as often as the level says."""
    m, rng = 6, np.random.default_rng(0)
    covariance = np.eye(m) - 1 / m
    scale = jaxeval.fit_bradley_terry(jaxeval.simulate_battles(300, m, seed=0)).scale
    true = TrueBoard.of(np.zeros(m), covariance, scale, np.ones(m, bool), 0.9, 0)
    held = [true.claims(rng.normal(size=m), covariance) for _ in range(400)]
    share = np.mean([own["sets of ranks"][0].mean() for own in held])
    assert share == pytest.approx(0.9, abs=0.03)
    assert np.mean([own["sets of ranks, all at once"][0] for own in held]) == pytest.approx(0.9, abs=0.05)


def test_intervals_hold_as_often_as_they_say(found):
    table = found.table.set_index("claim")
    for claim in ("ratings", "differences of neighbours"):
        row = table.loc[claim]
        assert abs(row["coverage"] - 0.95) < 3.5 * row["standard_error"]
    assert (table["coverage"] > 0.95 - 3.5 * table["standard_error"]).all()
    assert found.models["first_share"].sum() == pytest.approx(1)
    assert found.models["rating_coverage"].mean() == pytest.approx(table.loc["ratings", "coverage"])
    assert found.findings()[0].text.startswith("What the board claims at 95% holds on 200 boards")


def test_larger_boards_agree_more_than_halves(found):
    tau = found.agreement.query("measure == 'kendall_tau'")["mean"].tolist()
    assert 0.3 < tau[0] < tau[1] < 1
    texts = [finding.text for finding in found.findings()[1:]]
    assert [f"Kendall's tau {value:.2f}" in text for value, text in zip(tau, texts, strict=True)] == [True, True]


def test_simulated_boards_of_equal_models_agree_too_much_and_say_so():
    """Fitted strengths differ where true ones are equal: tau is 0 there, and one model first on a sixth of pairs."""
    tau = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        a, b = rng.integers(0, 6, 600), rng.integers(1, 6, 600)
        even = pd.DataFrame({"model_a": a, "model_b": (a + b) % 6, "target": rng.integers(0, 2, 600) * 1.0})
        found = jaxeval.replication(even.astype({"model_a": str, "model_b": str}), n_boards=40, n_splits=20, top=2)
        tau.append(found.agreement.set_index(["boards", "measure"])["mean"].loc["two simulated boards", "kendall_tau"])
        halves, simulated = (finding.text for finding in found.findings()[1:])
        assert "at most" not in halves
        assert "% of pairs, at most, as true strengths lie closer together than the fitted ones" in simulated
    assert np.mean(tau) > 0.1


def test_thin_models_are_left_out_of_agreement(votes):
    thin = pd.DataFrame({"model_a": "thin", "model_b": ["model-1", "model-2"], "winner": ["model_a", "model_b"]})
    own = jaxeval.replication(pd.concat([votes, thin]), n_boards=40, n_splits=20)
    row = own.models.set_index("model").loc["thin"]
    assert row["first_share"] == 0
    assert row["unrated_share"] > 0.2
    assert row["ranks_in_set"] == 9
    assert any("agreement leaves it out: thin" in warning for warning in own.warnings)


@pytest.mark.parametrize(("make", "message"), [
    (lambda votes: (votes, {"ties": "davidson"}), "only for boards with ties as half a win and without covariates"),
    (lambda votes: (jaxeval.Battles.from_pandas(votes.assign(p=0.3), target="p"), {}), "1,500 battles have another"),
    (lambda votes: (votes.head(3), {}), "fewer than two models"),
])  # fmt: skip
def test_boards_that_are_not_simulated_say_why(votes, make, message):
    own, options = make(votes)
    with pytest.raises(NotAnsweredError, match=message):
        jaxeval.replication(own, **options)


def test_a_clustered_board_without_ties_is_replicated_too():
    votes = jaxeval.simulate_votes(1_500, 8, tie_rate=0, seed=1)
    own = jaxeval.replication(votes, cluster="voter", n_boards=40, n_splits=20)
    assert own.table["coverage"].min() > 0.8
