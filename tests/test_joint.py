"""Every estimator hands out its draws as `Draws`, which say what its own tables say."""

import numpy as np
import pandas as pd
import pytest
import twins

import jaxeval
from jaxeval import plots
from jaxeval.anchored.scores import bootstrap_scores
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts

B = 200
MODELS = [f"m{k}" for k in range(20)]
GOLD = pd.Series(np.random.default_rng(4).normal(size=20), MODELS)
SCORES = pd.DataFrame({f"e{k}": GOLD + k * np.random.default_rng(k).normal(size=20) / 5 for k in (1, 4, 5)})


def ends(table, prefix=""):
    return table[[f"{prefix}lower", f"{prefix}upper"]].to_numpy(float)


@pytest.fixture(scope="module")
def ratings():
    return jaxeval.bootstrap(jaxeval.simulate_battles(1_000, 5, seed=0), B)


@pytest.fixture(scope="module")
def soft():
    return jaxeval.soft_elo(jaxeval.simulate_judged_battles(600, 5, seed=1), n_resamples=B)


@pytest.fixture(scope="module")
def comparison():
    table = jaxeval.simulate_judged_answers(n_items=240, seed=2)
    columns = {"judgment": ["judge-1", "judge-2"], "label": "human", "model": "model", "item": "item"}
    answers = jaxeval.JudgedAnswers.from_pandas(table, **columns)
    return jaxeval.compare_models(*answers.split(1 / 2), n_resamples=B, n_halves=4)


@pytest.fixture(scope="module")
def verdicts():
    return jaxeval.AnchoredVerdicts.from_pandas(simulate_anchored_verdicts(n_items=30, n_judges=3, seed=3))


@pytest.fixture(scope="module")
def screen(verdicts):
    return jaxeval.screen_judges(verdicts, n_resamples=B)


@pytest.fixture(scope="module")
def study():
    votes = jaxeval.simulate_battles(2_000, 6, seed=7)
    return jaxeval.reference_study(votes, budgets=[5], n_repeats=2, n_tiers=2, n_resamples=30, few_pairs=0)


@pytest.fixture(scope="module")
def merged():
    battles = jaxeval.simulate_judged_battles(600, 6, seed=1)
    of_new = (battles.model_a == 5) | (battles.model_b == 5)
    return jaxeval.merge_boards(battles.subset(~of_new), battles.subset(of_new), n_resamples=B)


@pytest.fixture(scope="module")
def agreement():
    rng = np.random.default_rng(5)
    labels = {name: rng.choice(["model_a", "model_b", "tie"], 200) for name in ("human", "judge-1", "judge-2")}
    votes = pd.DataFrame({"model_a": "x", "model_b": "y", **labels})
    return jaxeval.judge_agreement(votes, judges=["judge-1", "judge-2"], n_resamples=B)


ESTIMATORS = ["ratings", "soft", "merged", "agreement", "comparison", "scores", "screen", "tau", "study"]


SLOW = {"merged", "study"}


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in ESTIMATORS])
def joint(request):
    """The draws of one estimator, of names with one level."""
    if request.param == "tau":
        return jaxeval.joint_tau(SCORES, GOLD, n_resamples=B).of(delta=np.inf)
    found = request.getfixturevalue("verdicts" if request.param == "scores" else request.param)
    if request.param == "scores":
        return jaxeval.joint_scores(found, ["model"], n_resamples=B)
    chosen = {
        "ratings": {},
        "soft": {"method": "soft"},
        "merged": {},
        "agreement": {"measure": "all_agreement"},
        "comparison": {"judge": "judge-1", "estimator": "ppi_plus_plus"},
        "screen": {"measure": "average"},
        "study": {"delta": np.inf},
    }[request.param]
    return found.joint.of(**chosen)


def test_tables_and_files_take_them_all(joint, tmp_path):
    n = len(joint.names)
    table = joint.table(0.9)
    assert len(table) == n
    assert table["tier"].min() == 1
    np.testing.assert_array_equal(joint.beat_share, twins.beat_share(joint.of_shares))
    path = tmp_path / "draws.npz"
    jaxeval.save_draws(joint, path)
    again = jaxeval.read_draws(path)
    pd.testing.assert_frame_equal(again.table(0.9), table)
    np.testing.assert_array_equal(again.draws, joint.draws)
    assert (again.gauge, again.warnings, again.precision) == (joint.gauge, joint.warnings, joint.precision)


@pytest.mark.parametrize(
    "joint",
    ["ratings", *(pytest.param(name, marks=pytest.mark.slow) for name in ESTIMATORS if name != "ratings")],
    indirect=True,
)
def test_figures_take_them_all(joint):
    ranked = joint.table(0.9)["rank"].notna().sum()
    for number, plot in enumerate((plots.plot_draws, plots.plot_ranks, plots.plot_draw_differences)):
        figure = plot(joint, level=0.9)
        figure.draw_without_rendering()
        assert len(figure.axes[0].get_yticks()) == ranked - (number == 2)


def test_tiers_and_ranks_are_those_of_the_twin(joint):
    joint = joint.take(np.isfinite(joint.draws).all(0))
    assert len(joint.names) > 1
    sets = twins.rank_sets(joint.draws, joint.estimate, 0.9, len(joint.names))
    np.testing.assert_array_equal(joint.rank_sets(0.9).to_numpy(int), sets)
    half = twins.simultaneous_halfwidth(joint.draws, joint.estimate, 0.9)
    order, tier, leader = np.argsort(-joint.estimate, kind="stable"), 0, None
    for k in order:
        if leader is None or abs(joint.estimate[k] - joint.estimate[leader]) > half[k, leader]:
            tier, leader = tier + 1, k
        assert joint.tiers(0.9).iloc[k] == tier


def test_of_ratings_they_are_those_of_the_board(ratings):
    joint = ratings.joint
    pd.testing.assert_frame_equal(joint.interval(0.9), ratings.interval(0.9))
    pd.testing.assert_series_equal(joint.tiers(), ratings.tiers())
    pd.testing.assert_frame_equal(joint.rank_sets(), ratings.rank_sets())
    for own, of_board in zip(joint.difference_interval(), ratings.difference_interval(), strict=True):
        np.testing.assert_allclose(own, of_board, atol=1e-9)
    assert set(joint.status) == {""}


def test_of_soft_elo_they_have_its_ratings_and_errors(soft):
    table = soft.models.set_index(["method", "model"])
    errors = soft.joint.standard_errors
    np.testing.assert_allclose(errors, table["standard_error"].reindex(errors.index), rtol=1e-12)
    one = soft.joint.of(method="hard", model=soft.names[2])
    np.testing.assert_array_equal(one.draws[:, 0], soft.draws[0, 2])
    assert one.estimate == table.loc[("hard", soft.names[2]), "judge_elo"]
    shift = soft.joint.of(method="hard") - soft.joint.of(method="soft")
    assert shift.names.equals(soft.names)
    np.testing.assert_array_equal(shift.draws, (soft.draws[0] - soft.draws[1]).T)
    with pytest.raises(ValueError, match="there are no draws: ask the estimator for resamples"):
        jaxeval.soft_elo(jaxeval.simulate_judged_battles(600, 5, seed=1), n_resamples=0).joint  # noqa: B018


@pytest.mark.slow
def test_of_several_judges_they_are_named_by_judge(soft):
    battles = jaxeval.simulate_judged_battles(600, 5, seed=1)
    found = jaxeval.soft_elo({"x": battles, "y": battles}, n_resamples=B)
    np.testing.assert_array_equal(found.joint.of(judge="y", method="soft").draws, soft.joint.of(method="soft").draws)


def test_of_accuracies_they_have_the_intervals_of_both_tables(comparison):
    accuracy = comparison.accuracy
    joint, level = accuracy.joint, accuracy.settings.level
    table = accuracy.table.set_index(["model", "judge", "estimator"])
    own = joint.interval(level)
    shown = own["lower"].notna()
    assert shown.mean() > 0.8
    np.testing.assert_allclose(ends(own)[shown], ends(table, "boot_")[shown], rtol=1e-12)
    np.testing.assert_array_equal(joint.estimate, table["estimate"])
    pairs = comparison.table
    by_rates = joint.of(judge="judge-2", estimator="rogan_gladen")
    lower, upper = by_rates.difference_interval(level)
    for row in pairs[(pairs["judge"] == "judge-2") & (pairs["estimator"] == "rogan_gladen")].itertuples():
        found = lower.loc[row.model_a, row.model_b], upper.loc[row.model_a, row.model_b]
        np.testing.assert_allclose(found, (row.boot_lower, row.boot_upper), rtol=1e-10)


def test_of_one_slice_of_accuracies():
    table = jaxeval.simulate_judged_answers(n_items=240, seed=2)
    table["half"] = np.where(table["item"] % 2, "odd", "even")
    columns = {"judgment": ["judge-1"], "label": "human", "model": "model", "item": "item", "keep": ["half"]}
    answers = jaxeval.JudgedAnswers.from_pandas(table, **columns)
    accuracy = jaxeval.judge_accuracy(*answers.split(1 / 2), by="half", n_resamples=B, n_halves=4)
    odd = accuracy.of("odd")
    assert "slice" not in odd.table
    assert len(odd.table) == len(accuracy.table) / 3
    own = odd.joint.interval(odd.settings.level)
    shown = own["lower"].notna().to_numpy()
    assert shown.any()
    np.testing.assert_allclose(ends(own)[shown], ends(odd.table, "boot_")[shown], rtol=1e-12)
    assert accuracy.of("all").joint.names.equals(accuracy.joint.names)
    with pytest.raises(ValueError, match="no slice 'add'; there are 'all', 'even', 'odd'"):
        accuracy.of("add")


def test_estimates_that_nothing_bounds_have_no_draws():
    table = jaxeval.simulate_judged_answers([0.8, 0.6], q0=[[0.8]], q1=[[0.9]], n_items=60, seed=0)
    answers = jaxeval.JudgedAnswers.from_pandas(table, judgment="judge-1", model="model", item="item")
    accuracy = jaxeval.judge_accuracy(*answers.split(1 / 6), n_resamples=B, n_halves=2)
    joint = accuracy.joint
    without = np.isin(joint.status, ["few labels of a class", "J near 0"])
    assert without.any()
    assert np.isnan(joint.draws[:, without]).all()
    assert joint.table().loc[joint.names[without], ["lower", "tier"]].isna().all(axis=None)


def test_of_anchored_scores_they_have_the_intervals_of_the_table(verdicts):
    by = ["model", "judge"]
    joint = jaxeval.joint_scores(verdicts, by, n_resamples=B, prior=1.0)
    table = bootstrap_scores(verdicts, by, n_resamples=B, prior=1.0, level=0.9).set_index(by)
    np.testing.assert_allclose(joint.estimate, table["probability"], rtol=1e-12)
    np.testing.assert_array_equal(ends(joint.interval(0.9)), ends(table, "boot_"))


def test_of_a_screen_they_have_its_intervals(screen):
    for measure in ("single", "average"):
        own = screen.joint.of(measure=measure)
        np.testing.assert_array_equal(own.estimate, screen.table[measure])
        np.testing.assert_array_equal(ends(own.interval()), ends(screen.table, f"{measure}_boot_"))


@pytest.mark.parametrize("resample", ["models", "items"])
def test_of_evaluators_they_have_the_intervals_of_both_tables(resample):
    scores, deltas = SCORES, [0.8, np.inf]
    if resample == "items":
        noise = np.random.default_rng(0).normal(size=(25, *SCORES.shape))
        rows = [(f"i{i}", m, e, SCORES.loc[m, e] + noise[i, k, j]) for i in range(25)
                for k, m in enumerate(SCORES.index) for j, e in enumerate(SCORES)]  # fmt: skip
        scores = pd.DataFrame(rows, columns=["item", "model", "evaluator", "score"])
        scores = jaxeval.ItemScores.from_pandas(scores, evaluator="evaluator")
    options = {"n_resamples": B, "resample": resample}
    joint = jaxeval.joint_tau(scores, GOLD, deltas, **options)
    table = jaxeval.kendall_tau_delta(scores, GOLD, deltas, **options).set_index(["evaluator", "delta"])
    np.testing.assert_array_equal(joint.estimate, table["tau"])
    shown = ~joint.without_spread  # an evaluator whose order is gold's in every resample
    assert shown.sum() >= 4
    np.testing.assert_array_equal(ends(joint.interval())[shown], ends(table)[shown])
    pairs = jaxeval.compare_evaluators(scores, GOLD, few_pairs=0, **options)
    lower, upper = joint.of(delta=np.inf).difference_interval()
    for row in pairs.itertuples():
        found = lower.loc[row.evaluator, row.other], upper.loc[row.evaluator, row.other]
        np.testing.assert_allclose(found, (row.lower, row.upper), atol=1e-12)


@pytest.mark.slow
def test_of_a_study_of_references_they_lie_within_its_intervals(study):
    """Which also hold the draws where they would be without their bias, twice."""
    for joint, table in ((study.joint, study.by_delta), (study.joint_under_budget, study.by_budget)):
        own, shown = ends(joint.interval(study.settings.level)), ends(table, "tau_")
        complete = np.isfinite(joint.draws).all(0) & ~joint.without_spread.to_numpy()
        assert complete.mean() > 0.3
        assert (shown[complete, 0] <= own[complete, 0] + 1e-12).all()
        assert (shown[complete, 1] >= own[complete, 1] - 1e-12).all()
        np.testing.assert_array_equal(joint.estimate, table["tau"])
