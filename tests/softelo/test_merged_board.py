"""The merged board: a naive twin, one zero, joint errors beside a resampling of everything, and who is not placed."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import twins
from scipy.special import expit

import jaxeval
from jaxeval.softelo.merged_board import _new_on_a, _side, _units
from jaxeval.softelo.own_battles import joint_errors

ELO = 400 / np.log(10)
RIDGE = 0.01
NEW = ("model-02", "model-11")


def of_models(battles, names):
    is_new = battles.models.isin(names)
    return is_new[battles.model_a] | is_new[battles.model_b]


@pytest.fixture(scope="module")
def pool():
    return jaxeval.simulate_judged_battles(1500, 12, noise=2.0, seed=3)


@pytest.fixture(scope="module")
def known(pool):
    return pool.subset(~of_models(pool, NEW))


@pytest.fixture(scope="module")
def new(pool):
    return pool.subset(of_models(pool, NEW))


@pytest.fixture(scope="module")
def board(known, new):
    return jaxeval.merge_boards(known, new, n_resamples=400)


def quick_newton(wins, ridge=0.0):
    n, theta = wins + wins.T, np.zeros(len(wins))
    for _ in range(8):
        p = expit(theta[:, None] - theta)
        w = n * p * (1 - p)
        curved = np.diag(w.sum(1) + 2 * ridge) - w
        theta += np.linalg.pinv(curved, hermitian=True) @ (wins.sum(1) - (n * p).sum(1) - 2 * ridge * theta)
    return theta


def naive(known, own, names, ridge=RIDGE, newton=twins.newton):
    """People's strengths, and those of the ``names`` by the judge, each less its anchors' mean: four fits in a row."""
    a, b, d = known.model_a, known.model_b, known.score_difference
    decided = np.isin(known.human, (0, 1))
    beta = twins.temperature(d[decided], known.human[decided])
    m = known.n_models
    anchors = newton(twins.wins_of(a, b, expit(beta * d), m), ridge)
    voted = ~np.isnan(known.human)
    people = newton(twins.wins_of(a[voted], b[voted], known.human[voted], m))
    new, place = [], known.models.get_indexer(own.models)
    for name in names:
        k = own.models.get_loc(name)
        as_a, as_b = ((own.model_a == k) & (place[own.model_b] >= 0), (own.model_b == k) & (place[own.model_a] >= 0))
        gap = np.concatenate([own.score_difference[as_a], -own.score_difference[as_b]])
        met = anchors[place[np.concatenate([own.model_b[as_a], own.model_a[as_b]])]]
        new.append(twins.one_strength(met, expit(beta * gap), ridge))
    return people - people.mean(), np.array(new) - anchors.mean(), beta, anchors


def test_ratings_are_those_of_a_naive_twin(known, new, board):
    people, judge, *_ = naive(known, new, NEW)
    table = board.table.set_index("model")
    np.testing.assert_allclose(table.loc[known.models, "rating"], 1000 + ELO * people, atol=1e-5)
    np.testing.assert_allclose(table.loc[list(NEW), "rating"], 1000 + ELO * judge, atol=1e-5)


def test_new_models_move_nobody(known, board):
    votes = pd.DataFrame({"model_a": known.models[known.model_a], "model_b": known.models[known.model_b]})
    votes = jaxeval.Battles.from_pandas(votes.assign(target=known.human).dropna(), target="target")
    alone = jaxeval.leaderboard(votes, n_resamples=400, level=0.9).set_index("model")
    table = board.table.set_index("model").loc[alone.index]
    columns = ["rating", "lower", "upper", "variance", "vote_count"]
    pd.testing.assert_frame_equal(table[columns], alone[columns], check_index_type=False)
    np.testing.assert_array_equal(board.joint.draws[:, : known.n_models], board.people.draws)


@pytest.mark.slow
def test_held_out_human_ratings_lie_further_apart_than_the_board():
    """Each has its zero at the mean of the others: M / (M - 1) of the distance to the mean of all."""
    battles = jaxeval.simulate_judged_battles(8000, 4, noise=2.0, seed=5)
    m = battles.n_models
    held_out = jaxeval.soft_elo(battles, n_resamples=0, methods=("soft",)).models.set_index("model")["human_elo"] - 1500
    extra = replace(battles, models=battles.models.map(lambda name: name.replace("model-4", "new")))
    own = extra.subset(of_models(extra, ["new"]))
    merged = jaxeval.merge_boards(battles, own, n_resamples=2, min_anchors=3).table.set_index("model")
    on_board = merged.loc[battles.models, "rating"] - 1000
    stretch = (held_out[battles.models] @ on_board) / (on_board @ on_board)
    assert stretch == pytest.approx(m / (m - 1), rel=0.01)
    # One zero: the mean of the anchors, which the ratings of the people have, and those of new models are relative to.
    assert on_board.mean() == pytest.approx(0, abs=1e-8)
    calibration = jaxeval.SoftEloCalibration.fit(battles, methods=("soft",))
    predicted = calibration.predict(own, 0.8)["rating"][0] - 1500
    assert merged.loc["new", "rating"] - 1000 == pytest.approx(predicted, abs=1e-8)
    # So the fourth model, seen as new by a judge that agrees with people, stands where people put it.
    assert merged.loc["new", "rating"] == pytest.approx(merged.loc["model-4", "rating"], abs=25)


@pytest.mark.slow
def test_joint_errors_are_those_of_resampling_everything(known, new):
    """All battles drawn anew, and four fits in a row each time; covariances within their Monte Carlo errors."""
    is_new = new.models.isin(NEW)
    new = new.subset(is_new[new.model_a] != is_new[new.model_b])
    names, n, b = list(NEW), known.n_battles + new.n_battles, 300
    people, judge, beta, anchors = naive(known, new, names)
    units = _units([known, new], None)
    numbered = [*known.models, *names]
    found = joint_errors(
        _side(known, "soft", beta, numbered, units[0]),
        _new_on_a(_side(new, "soft", beta, numbered, units[1]), known.n_models),
        known.human,
        np.ones(known.n_models, bool),
        anchors=anchors,
        new=judge + anchors.mean(),
        people=people,
        beta=beta,
        ridge=RIDGE,
        on_board=True,
    )
    rng = np.random.default_rng(0)
    draws = np.empty((b, len(names) + known.n_models))
    for row in draws:
        drawn = rng.integers(0, n, n)
        own, old = drawn[drawn >= known.n_battles] - known.n_battles, drawn[drawn < known.n_battles]
        parts = [replace_rows(known, old), replace_rows(new, own)]
        of_people, of_judge, *_ = naive(*parts, names, newton=quick_newton)
        row[:] = np.concatenate([of_judge, of_people])
    expected = np.cov(draws.T)
    spread = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / b)
    # First-order errors of some 120 votes a model are a few per cent short.
    assert np.abs((found - expected) / spread).max() < 5
    new, people = slice(len(names)), slice(len(names), None)
    both = np.abs(found[new, people]).max() / np.sqrt(found[new, new].max() * found[people, people].max())
    assert both > 0.05  # what people's and judge's fits share is not nothing


def replace_rows(battles, rows):
    names = ("model_a", "model_b", "score_difference", "human", "judge")
    return replace(battles, **{name: getattr(battles, name)[rows] for name in names})


def test_draws_are_as_wide_as_the_conformal_interval(board):
    table = board.table.set_index("model").loc[list(NEW)]
    drawn = board.joint.interval(0.9).loc[list(NEW)]
    half = (table["upper"] - table["lower"]) / 2
    width = (drawn["upper"] - drawn["lower"]) / 2
    np.testing.assert_allclose(
        width, half, rtol=5 * 0.07
    )  # of 400 draws an end has an error of some 10 % of half / 1.64
    predicted = board.predictions.set_index("model").loc[list(NEW)]
    np.testing.assert_allclose(2 * half, predicted["upper"] - predicted["lower"])


def test_ranks_and_shares_come_from_all_draws(board):
    own = twins.beat_share(board.joint.draws)
    np.testing.assert_allclose(board.joint.beat_share, own)
    ranks = board.joint.ranks(0.9)
    table = board.table.set_index("model")
    for name in ("rank", "rank_best", "rank_worst", "tier"):
        assert (table[name] == ranks.loc[table.index, name]).all()
    assert table["rests_on"].value_counts().to_dict() == {"both": 10, "judge": 2}
    assert (table.loc[list(NEW), "vote_count"] == 0).all()


def test_one_table_holds_both_where_new_models_have_no_labels(pool, known, new, board):
    unlabelled = replace(pool, human=np.where(of_models(pool, NEW), np.nan, pool.human))
    merged = jaxeval.merge_boards(unlabelled, n_resamples=400)
    pd.testing.assert_frame_equal(merged.table, board.table)


def test_models_with_few_labels_are_new_when_asked(pool, board):
    few = replace(pool, human=pool.human.copy())
    rows = np.flatnonzero(of_models(pool, NEW))
    few.human[rows[6:]] = np.nan
    asked = jaxeval.merge_boards(few, n_resamples=400, min_votes=20)
    pd.testing.assert_frame_equal(asked.table, board.table)
    assert any("on battles of new models: not used" in warning for warning in asked.warnings)


def test_votes_of_other_people_are_the_board(known, new):
    votes = jaxeval.simulate_battles(2000, 14, seed=8)
    renamed = votes.to_pandas().replace({f"model-{k}": f"model-{k:02d}" for k in range(1, 10)})
    votes = jaxeval.Battles.from_pandas(renamed[~renamed[["model_a", "model_b"]].isin(NEW).any(axis=1)])
    merged = jaxeval.merge_boards(known, new, jaxeval.bootstrap(votes, 100, base=1200.0))
    table = merged.table.set_index("model")
    assert table["rests_on"].value_counts().to_dict() == {"both": 10, "judge": 2, "people": 2}
    people = jaxeval.fit_bradley_terry(votes, base=1200.0).ratings
    np.testing.assert_allclose(table.loc[people.index, "rating"], people)
    fitted = merged.calibration.methods["soft"].anchors
    shift = people[fitted.index].mean() - ELO * fitted.mean()
    predicted = merged.predictions.set_index("model")["rating"]
    np.testing.assert_allclose(table.loc[predicted.index, "rating"], predicted - 1200 + 200 + shift)
    with pytest.raises(ValueError, match="filter the votes instead"):
        jaxeval.merge_boards(known, new, votes, min_votes=2)


def test_new_models_that_met_too_few_are_named_and_not_placed(known, new):
    frame = pd.DataFrame(
        {"model_a": ["lonely", "lonely", "shy", "shy"], "model_b": [NEW[0], "shy", "model-01", "model-03"], "gap": 1.0}
    )
    more = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", human=False)
    both = pd.DataFrame(
        {
            "model_a": [*new.models[new.model_a], *frame["model_a"]],
            "model_b": [*new.models[new.model_b], *frame["model_b"]],
            "gap": [*new.score_difference, *more.score_difference],
        }
    )
    judged = jaxeval.JudgedBattles.from_pandas(both, score_difference="gap", human=False)
    merged = jaxeval.merge_boards(known, judged, n_resamples=50)
    last = merged.table.tail(2).set_index("model")
    assert last["flags"].to_dict() == {"lonely": "met no anchor", "shy": "met only 2 anchors"}
    assert (last["standing"] == "not placed").all()
    assert last[["rating", "rank", "tier", "rank_best"]].isna().all(axis=None)
    assert "lonely" not in merged.joint.names
    text = " ".join(merged.warnings)
    assert "2 new models are not placed, as they met fewer than 5 anchors" in text
    assert "battles between two new models: not used" in text
    assert len(jaxeval.merge_boards(known, judged, n_resamples=50, min_anchors=2).joint.names) == 13
    with pytest.raises(jaxeval.DataError, match=r"no new model can be placed .* shy"):
        jaxeval.merge_boards(known, more, n_resamples=50)


def test_what_cannot_be_merged_is_an_error(known, new):
    with pytest.raises(jaxeval.DataError, match="people rate all 10 models"):
        jaxeval.merge_boards(known)
    with pytest.raises(jaxeval.DataError, match=r"none of .* has a human label"):
        jaxeval.merge_boards(replace(known, human=np.full_like(known.human, np.nan)), new)
    with pytest.raises(ValueError, match=r"too small for level 0\.99"):
        jaxeval.merge_boards(known, new, level=0.99, n_resamples=50)
    with pytest.raises(TypeError, match="judged must be JudgedBattles, got DataFrame"):
        jaxeval.merge_boards(pd.DataFrame(), new)
    with pytest.raises(jaxeval.DataError, match="no column 'prompt'"):
        jaxeval.merge_boards(known, new, cluster="prompt")


@pytest.mark.slow
def test_clusters_are_drawn_whole_and_join_the_tables(known, new):
    """Prompts that all models answered make the errors of two new models move together."""
    own, twice = (replace(x, columns=pd.DataFrame({"prompt": np.arange(x.n_battles) % 60})) for x in (known, new))
    merged = jaxeval.merge_boards(own, twice, n_resamples=50, cluster="prompt", method="hard")
    assert merged.table.attrs["settings"]["cluster"] == "prompt"
    assert merged.people.n_clusters == 60
    alone = replace(twice, columns=pd.DataFrame({"prompt": np.zeros(twice.n_battles)}))
    with pytest.raises(jaxeval.DataError, match=r"no new model has an interval.*its battles lie in one cluster"):
        jaxeval.merge_boards(own, alone, n_resamples=50, cluster="prompt", method="hard")
    units = _units([own, twice], "prompt")
    assert units[0].max() == units[1].max() == 59
    assert (units[0] == own.columns["prompt"]).all()


@pytest.mark.slow
def test_intervals_hold_true_strengths_and_their_differences():
    """New models, and their differences from anchors, over pools; a simulation of benchmarks/merged_coverage.py."""
    held = []
    for seed in range(40):
        rng = np.random.default_rng([seed, 9])
        n, new, size = 12, 4, 160
        theta, error = rng.normal(0, 0.8, n + new), rng.normal(0, 0.2, n + new)

        def battles(a, b, labelled, rng=rng, theta=theta, error=error):
            human = (rng.random(len(a)) < expit(theta[a] - theta[b])).astype(float)
            gap = 1.2 * (theta[a] - theta[b] + error[a] - error[b]) + 2 * human - 1 + rng.normal(0, 1.2, len(a))
            names = np.array([f"m{k:02d}" for k in range(len(theta))])
            frame = pd.DataFrame({"model_a": names[a], "model_b": names[b], "gap": gap, "human": human})
            return jaxeval.JudgedBattles.from_pandas(
                frame, score_difference="gap", human="human" if labelled else False, label_coding="a_wins_1"
            )

        a = rng.integers(0, n, n * size // 2)
        b = (a + rng.integers(1, n, len(a))) % n
        row = np.repeat(np.arange(n, n + new), size)
        merged = jaxeval.merge_boards(
            battles(a, b, True),
            battles(row, rng.integers(0, n, len(row)), False),
            level=0.9,
            n_resamples=400,
            seed=seed,
        )
        truth = 1000 + ELO * pd.Series(theta - theta[:n].mean(), [f"m{k:02d}" for k in range(n + new)])
        table = merged.table.set_index("model").loc[truth.index]
        inside = (table["lower"] <= truth) & (truth <= table["upper"])
        lower, upper = (x.loc[truth.index, truth.index].to_numpy() for x in merged.joint.difference_interval(0.9))
        difference = truth.to_numpy()[:, None] - truth.to_numpy()
        within = (lower <= difference) & (difference <= upper)
        rank = truth.rank(ascending=False)
        in_set = (table["rank_best"] <= rank) & (rank <= table["rank_worst"])
        held.append([inside[n:].mean(), within[n:, :n].mean(), in_set[n:].mean()])
    mean, spread = np.mean(held, axis=0), np.std(held, axis=0, ddof=1) / np.sqrt(len(held))
    assert (np.abs(mean[:2] - 0.9) < 4 * spread[:2]).all()
    assert mean[2] > 0.9 - 4 * spread[2]


def test_a_model_of_few_votes_has_no_rating_in_some_resamples(known, new):
    thin = of_models(known, ["model-05"])
    few = known.subset(~thin | (np.cumsum(thin) <= 4))
    found = jaxeval.merge_boards(few, new, n_resamples=400)
    assert np.isnan(found.joint.draws).any() or np.isinf(found.joint.draws).any()
    placed = found.table.set_index("model").loc[list(NEW)]
    assert placed["rank_best"].notna().all()
