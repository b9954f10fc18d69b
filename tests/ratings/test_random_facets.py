"""``random=`` of `bootstrap`: ratings vary with judges, as components of influences say."""

import numpy as np
import pandas as pd
import pytest
from command_line import run

import jaxeval
from jaxeval.statistics.quantiles import normal_quantile, student_quantile
from jaxeval.statistics.random_facets import RandomFacets, _moderated

KINDS = np.arange(40) % 4


def judged(seed=0, n_models=5, n_items=150, judges=4, sd=0.3):
    """Battles of items by judges, each of whom has ratings of the models; and the ratings that they share, in Elo."""
    rng = np.random.default_rng(seed)
    shared = np.linspace(0.7, -0.7, n_models)
    own = shared + rng.normal(0, sd, (judges, n_models))
    a = rng.integers(0, n_models, n_items)
    b = (a + rng.integers(1, n_models, n_items)) % n_models
    item, judge = np.repeat(np.arange(n_items), judges), np.tile(np.arange(judges), n_items)
    won = rng.random(len(item)) < 1 / (1 + np.exp(own[judge, b[item]] - own[judge, a[item]]))
    names = np.array([f"m{k:02d}" for k in range(n_models)])
    sides = {"model_a": names[a[item]], "model_b": names[b[item]], "winner": np.where(won, "model_a", "model_b")}
    return pd.DataFrame({**sides, "judge": judge, "prompt": item}), 1000 + 400 / np.log(10) * shared


@pytest.fixture(scope="module")
def boards():
    table, _ = judged()
    options = {"n_resamples": 400, "cluster": "prompt", "progress": False}
    return table, jaxeval.bootstrap(table, **options), jaxeval.bootstrap(table, random="judge", **options)


def test_draws_vary_as_components_of_influences_say(boards):
    table, alone, found = boards
    fit = alone.fit
    models = {name: k for k, name in enumerate(fit.ratings.index)}
    a, b = (table[side].map(models).to_numpy() for side in ("model_a", "model_b"))
    theta = fit.theta
    p = 1 / (1 + np.exp(theta[b] - theta[a]))
    slopes = np.eye(len(theta))[a] - np.eye(len(theta))[b]
    information = (slopes * (p * (1 - p))[:, None]).T @ slopes
    influence = ((table["winner"] == "model_a") - p).to_numpy()[:, None] * (slopes @ np.linalg.pinv(information))
    facets = RandomFacets.of({"judge": table["judge"].to_numpy()}, "prompt", table["prompt"].to_numpy())
    effects, dof = facets.effects(influence * len(table), 4000, 1, alike=True)
    longer = student_quantile(0.95, dof) / normal_quantile(0.95)
    unit = 400 / np.log(10)
    expected = np.sqrt(alone.draws.var(0) + unit**2 * effects.var(0)) * longer
    np.testing.assert_allclose(found.draws.std(0), expected, rtol=3 / np.sqrt(2 * 400))  # standard errors
    pd.testing.assert_series_equal(found.fit.ratings, fit.ratings)


def test_what_it_says(boards):
    _, alone, found = boards
    assert found.first_sentence().startswith("for judges and prompts like these (4 judges, 150 prompts): m00 ")
    assert jaxeval.leaderboard(found).answer.sentences[0] == found.first_sentence()
    wider = found.interval().diff(axis=1)["upper"] / alone.interval().diff(axis=1)["upper"]
    assert (wider > 1).all()
    assert (found.tiers() <= alone.tiers()).all()


def test_command(boards, tmp_path):
    """The board of the command is that of Python; what knows nothing of facets is refused."""
    table, _, found = boards
    table.to_csv(tmp_path / "votes.csv", index=False)
    line = "leaderboard", tmp_path / "votes.csv", "--cluster", "prompt", "--resamples", 400, "--random", "judge"
    result = run(*line, "--out", tmp_path / "board.csv")
    assert result.exit_code == 0, result.output
    assert "for judges and prompts like these (4 judges, 150 prompts): " in " ".join(result.output.split())
    written, expected = pd.read_csv(tmp_path / "board.csv", comment="#"), jaxeval.leaderboard(found)
    for end in ("lower", "upper"):
        assert written[end].tolist() == pytest.approx(expected[end].tolist(), abs=1e-6)
    assert "--random and --by do not go together" in run(*line, "--by", "judge").output


def test_what_is_refused():
    table, _ = judged(n_items=20, judges=2)
    for options, error, text in (
        ({}, jaxeval.DataError, "judge has one level"),
        ({"strata": "winner"}, ValueError, "of one board of single judgments"),
        ({"ties": "davidson"}, ValueError, "of one board of single judgments"),
        ({"by": "judge"}, ValueError, "leave out by and model"),
    ):
        with pytest.raises(error, match=text):
            jaxeval.bootstrap(table.assign(judge=0), 20, random=["judge"], progress=False, **options)
    first = table.assign(judge="j-" + table[["model_a", "model_b"]].min(axis=1))
    own = first[first["judge"].isin(["j-m00", "j-m01"]) & ~first[["model_a", "model_b"]].eq("m00").all(axis=1)]
    with pytest.raises(jaxeval.DataError, match=r"'judge' is confounded with the models: .*\('m00' is the first"):
        jaxeval.bootstrap(own, 20, random=["judge"], progress=False)


@pytest.mark.slow
def test_a_panel_and_a_board_of_few_votes(tmp_path):
    """Their draws move, too, and the commands say what Python does."""
    table, _ = judged(n_items=40, judges=3)
    table.to_csv(tmp_path / "panel.csv", index=False)
    panel = [jaxeval.fit_judge_panel(table, 60, item="prompt", random=x, progress=False) for x in ((), "judge")]
    assert panel[1].first_sentence().startswith("for judges and prompts like these (3 judges, 40 prompts): m00 ")
    assert (panel[1].standard_errors > panel[0].standard_errors).all()
    line = "panel", tmp_path / "panel.csv", "--item", "prompt", "--random", "judge", "--resamples", 60
    assert panel[1].first_sentence()[:70] in " ".join(run(*line).output.split())
    assert "--random and --by do not go together" in run(*line, "--by", "judge").output
    human, judge, others = (table[table["judge"] == k].reset_index(drop=True).assign(kind=KINDS) for k in range(3))
    few = [
        jaxeval.prediction_powered(human, judge, others, n_resamples=60, random=x, progress=False) for x in ((), "kind")
    ]
    assert few[1].first_sentence().startswith("for kinds and battles like these (4 kinds, 80 battles): ")
    ends = [board.interval().diff(axis=1)["upper"] for board in few]
    assert (ends[1] > 0.9 * ends[0]).all()
    for name, rows in (("votes", human), ("verdicts", pd.concat([judge, others.assign(prompt=range(40, 80))]))):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    files = tmp_path / "votes.csv", "--judged", tmp_path / "verdicts.csv", "--item", "prompt"
    output = run("leaderboard", *files, "--random", "kind", "--resamples", 60).output
    assert few[1].first_sentence()[:70] in " ".join(output.split())


def test_mean_squares_of_one_kind_are_drawn_together():
    """Those of 4,000 numbers: of one variance, and of variances that differ as 3 degrees of freedom let them."""
    rng = np.random.default_rng(0)
    alike = rng.chisquare(2, 4000) / 2
    drawn, more = _moderated(alike, 2.0, 1e9)
    assert more > 100
    np.testing.assert_allclose(drawn, 1, atol=0.15)
    apart = alike * 3 / rng.chisquare(3, 4000)
    drawn, more = _moderated(apart, 2.0, 1e9)
    assert more == pytest.approx(3, rel=0.4)
    assert (np.argsort(drawn) == np.argsort(apart)).all()
    assert np.std(np.log(drawn)) < np.std(np.log(apart))
    assert _moderated(alike, 2.0, 5.0)[1] == 5


@pytest.mark.slow
@pytest.mark.parametrize(("models", "judges", "sd"), [(8, 4, 0.15), (20, 3, 0.15), (20, 6, 0.1), (20, 8, 0.15)])
def test_intervals_hold(models, judges, sd):
    held = []
    for seed in range(60):
        table, truth = judged(seed, models, 800, judges, sd)
        found = jaxeval.bootstrap(table, 200, cluster="prompt", random="judge", progress=False)
        ends = found.interval()
        held.append(np.mean((ends["lower"].to_numpy() <= truth) & (truth <= ends["upper"].to_numpy())))
    error = np.std(held) / np.sqrt(len(held))
    assert 0.92 - 2 * error < np.mean(held) < 0.975 + 2 * error
