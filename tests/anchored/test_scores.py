"""Ratings of groups: runs of a prompt averaged first, counts as given, and published leaderboards."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from jaxeval.anchored.elo import anchored_elo
from jaxeval.anchored.scores import anchored_scores, bootstrap_scores, count_verdicts, joint_scores
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.statistics.clusters import widening_of_draws


def verdicts(rows, columns):
    return AnchoredVerdicts.from_pandas(pd.DataFrame(rows, columns=columns.split()))


def numbers(table):
    return table[["wins", "ties", "losses", "n_items"]].to_numpy()


class TestCounts:
    def test_runs_are_averaged_first(self):
        rows = [("q", 1, "win"), ("q", 2, "tie"), ("q", 3, "win"), ("r", 1, "loss"), ("r", 2, "tie"), ("s", 3, "win")]
        table = count_verdicts(verdicts(rows, "item run verdict"))
        np.testing.assert_allclose(numbers(table), [[2 / 3 + 1, 1 / 3 + 1 / 2, 1 / 2, 3]])

    def test_judges_in_a_group_are_averaged_too(self):
        rows = [("q", "x", "win"), ("q", "y", "loss"), ("r", "x", "tie")]
        by_model = count_verdicts(verdicts(rows, "item judge verdict"), ["model"])
        np.testing.assert_allclose(numbers(by_model), [[0.5, 1, 0.5, 2]])
        by_judge = count_verdicts(verdicts(rows, "item judge verdict"), ["judge"])
        np.testing.assert_allclose(numbers(by_judge), [[1, 1, 0, 2], [0, 0, 1, 1]])

    def test_outcomes_between_are_shares(self):
        table = count_verdicts(verdicts([(0.75,), (0.1,), (1.0,), (0.5,)], "verdict"))
        np.testing.assert_allclose(numbers(table), [[1.5, 0.5 + 0.2 + 1, 0.8, 4]])

    def test_squares_are_those_of_the_means_of_prompts(self):
        rows = [("q", 1, "win"), ("q", 2, "tie"), ("q", 3, "win"), ("r", 1, "loss"), ("r", 2, "tie"), ("s", 3, "win")]
        table = count_verdicts(verdicts(rows, "item run verdict"))
        np.testing.assert_allclose(table["squares"], (2.5 / 3) ** 2 + 0.25**2 + 1)

    def test_an_item_of_two_tasks_counts_twice(self):
        rows = [("q", "t", "win"), ("q", "u", "loss")]
        np.testing.assert_allclose(numbers(count_verdicts(verdicts(rows, "item task verdict"))), [[1, 0, 1, 2]])
        assert len(count_verdicts(verdicts(rows, "item task verdict"), ["task"])) == 2

    def test_against_pandas(self):
        table = simulate_anchored_verdicts(n_items=10, n_judges=3, n_runs=3, seed=1).sample(frac=0.7, random_state=1)
        found = count_verdicts(AnchoredVerdicts.from_pandas(table)).set_index(["model", "judge"])
        for name, label in (("wins", "win"), ("ties", "tie"), ("losses", "loss")):
            share = (table["verdict"] == label).groupby([table["model"], table["judge"], table["item"]]).mean()
            np.testing.assert_allclose(found[name], share.groupby(["model", "judge"]).sum())
        assert (found["n_items"] == table.groupby(["model", "judge"])["item"].nunique()).all()


class TestRandomJudges:
    """Ratings by judges like these, who like some models more than others."""

    def table(self, seed, n_judges=5, n_items=60, sd=0.5):
        rng = np.random.default_rng(seed)
        model, judge, item = (x.ravel() for x in np.indices((4, n_judges, n_items)))
        logit = np.array([0.8, 0.3, -0.3, -0.8])[:, None] + rng.normal(0, sd, (4, n_judges))
        won = rng.random(len(item)) < 1 / (1 + np.exp(-logit[model, judge]))
        words = np.where(won, "win", "loss")
        return AnchoredVerdicts.from_pandas(
            pd.DataFrame({"model": model, "judge": judge, "item": item, "verdict": words})
        )

    def test_errors_are_those_of_the_variance_components(self):
        data = self.table(1)
        found = anchored_scores(data, "model", random="judge")
        p = found["probability"].to_numpy()
        outcome = data.outcome.reshape(4, 5, 60)
        away = outcome - outcome.mean((1, 2), keepdims=True)
        judges = 60 * (away.mean(2) ** 2).sum(1) / 4
        items = 5 * (away.mean(1) ** 2).sum(1) / 59
        rest = ((away**2).sum((1, 2)) - 4 * judges - 59 * items) / (4 * 59)
        variance = np.maximum(judges + items - rest, np.maximum(judges, items)) / 300
        own = np.sqrt(variance) / (outcome.mean((1, 2)) * (1 - outcome.mean((1, 2))))
        error = found["rating_se"] / ELO_PER_LOGIT
        assert own.min() < error.min() <= error.max() < own.max()  # drawn together
        assert found.attrs["answer"].startswith("for judges and items like these (5 judges, 60 items): 0 is rated ")
        np.testing.assert_allclose(found["probability_se"], error * p * (1 - p))
        middle = (found["rating_lower"] + found["rating_upper"]) / 2
        np.testing.assert_allclose(middle, found["rating"])
        np.testing.assert_allclose(found["probability_lower"], 1 / (1 + np.exp(-found["rating_lower"] / ELO_PER_LOGIT)))
        n = 500
        draws = joint_scores(data, "model", random="judge", n_resamples=n).draws
        logits = np.log(draws / (1 - draws))
        longer = found["rating_upper"] - found["rating"]
        np.testing.assert_allclose(1.96 * ELO_PER_LOGIT * logits.std(0), longer, rtol=4 / np.sqrt(2 * n))

    def test_what_is_fixed_is_told(self):
        data = self.table(1, n_items=20)
        number = data.number | {"run": np.arange(len(data.outcome)) % 2}
        found = anchored_scores(replace(data, number=number), "model", random="judge")
        about = "for judges and items like these (5 judges, 20 items) under these runs: "
        assert found.attrs["answer"].startswith(about)

    def test_what_is_refused(self):
        data = self.table(1, n_judges=1, n_items=5)
        for error, text, options in (
            (DataError, "judge has one level", {"random": "judge"}),
            (ValueError, "leave 'judge' out of by=", {"random": "judge", "by": ("model", "judge")}),
            (ValueError, "random must be one of", {"random": "seed"}),
        ):
            with pytest.raises(error, match=text):
                anchored_scores(data, **{"by": "model", **options})
        own = data.take(data.outcome >= 0)
        own.number["judge"] = own.number["model"]
        with pytest.raises(DataError, match="'judge' is confounded with the models"):
            anchored_scores(own, "model", random="judge")
        with pytest.raises(ValueError, match="counts have none"):
            anchored_scores({"wins": [1], "losses": [2]}, random="judge")

    @pytest.mark.slow
    def test_intervals_hold(self):
        truth = ELO_PER_LOGIT * np.array([0.8, 0.3, -0.3, -0.8])
        held = []
        for seed in range(300):
            ends = anchored_scores(self.table(seed, sd=0.3), "model", random="judge")
            held.append(((ends["rating_lower"] <= truth) & (truth <= ends["rating_upper"])).mean())
        assert 0.92 < np.mean(held) < 0.975


class TestScores:
    COUNTS = pd.DataFrame(
        {"name": ["a", "b"], "wins": [30, 2.5], "ties": [10, 0], "losses": [20, 9.5], "pool": [80, 12]}
    )

    def test_counts_are_rated(self):
        found = anchored_scores(self.COUNTS, prior=1.0, level=0.9, kappa=0.8, link="probit")
        twin = anchored_elo([30, 2.5], [10, 0], [20, 9.5], prior=1.0, level=0.9, kappa=0.8, link="probit")
        for name in ("probability", "probability_lower", "rating", "rating_upper", "rating_se", "own_lower"):
            np.testing.assert_array_equal(found[name], getattr(twin, name))
        assert list(found["name"]) == ["a", "b"]
        assert list(found["informative"]) == [True, True]
        assert found.attrs["settings"] == {
            "prior": 1.0,
            "level": 0.9,
            "link": "probit",
            "pool_size": None,
            "kappa": 0.8,
        }

    def test_ties_may_be_absent(self):
        found = anchored_scores(self.COUNTS.drop(columns="ties"))
        np.testing.assert_array_equal(found["rating"], anchored_elo([30, 2.5], 0, [20, 9.5]).rating)

    def test_pools(self):
        found = anchored_scores(self.COUNTS, pool_size="pool")
        twin = anchored_elo([30, 2.5], [10, 0], [20, 9.5], pool_size=[80, 12])
        np.testing.assert_array_equal(found["probability_se"], twin.probability_se)
        assert found["probability_se"][1] == 0
        same = anchored_scores(self.COUNTS, pool_size=80)
        assert same["probability_se"][0] == found["probability_se"][0]

    def test_verdicts_are_counted(self):
        data = AnchoredVerdicts.from_pandas(simulate_anchored_verdicts(n_items=8, n_judges=2, n_runs=2))
        for by in (["model", "judge"], ["judge"]):
            pd.testing.assert_frame_equal(anchored_scores(data, by), anchored_scores(count_verdicts(data, by)))

    def test_informative_is_the_mid_region(self):
        found = anchored_scores(pd.DataFrame({"wins": [20, 19.5, 79.5, 80], "losses": [79, 79.5, 19.5, 19]}))
        np.testing.assert_array_equal(found["informative"], [True, True, True, False])

    def test_tables_with_the_arrow_interface(self):
        pd.testing.assert_frame_equal(anchored_scores(pa.Table.from_pandas(self.COUNTS)), anchored_scores(self.COUNTS))
        with pytest.raises(TypeError, match="expected a pandas DataFrame"):
            anchored_scores([1, 2])

    def test_a_single_role_may_be_its_name(self):
        data = AnchoredVerdicts.from_pandas(simulate_anchored_verdicts(n_items=8, n_judges=2, n_runs=2))
        pd.testing.assert_frame_equal(anchored_scores(data, "model"), anchored_scores(data, ["model"]))
        pd.testing.assert_frame_equal(
            bootstrap_scores(data, "task", n_resamples=9), bootstrap_scores(data, ["task"], n_resamples=9)
        )
        with pytest.raises(ValueError, match="name at least one role: 'model', 'judge'"):
            anchored_scores(data, [])

    @pytest.mark.parametrize(
        ("table", "options", "message"),
        [
            (
                COUNTS.assign(model="m", judge=[1, 1]),
                {},
                r"1 row of counts repeats another one of the same model, judge \(first in row 1: model .m., judge 1; .*"
                "add up counts that belong together, tell them apart by a column 'task' or 'run', or drop",
            ),
            (
                COUNTS.assign(wins=[0, 3], ties=[0, 0], losses=[0, 3]),
                {},
                r"1 row has no outcome, neither win nor tie nor loss \(first in row 0; rows count from 0\)",
            ),
            (COUNTS.assign(wins=["3", "x"]), {}, "column 'wins' is not numeric .*: 'x' .first in row 1"),
            (COUNTS.assign(squares=99), {}, "squares must lie between"),
            (COUNTS.drop(columns="wins"), {}, "no column 'wins'"),
            (COUNTS.drop(columns="losses"), {}, "no column 'losses'"),
            (COUNTS, {"pool_size": "size"}, "no column 'size'"),
            (COUNTS.iloc[:0], {}, "the table has no rows"),
            (COUNTS.assign(ties=["few", "many"]), {}, "column 'ties' is not numeric"),
            (COUNTS.assign(wins=[1, np.nan]), {}, "column 'wins' has 1 missing value"),
            (COUNTS.assign(wins=[1, -1]), {}, "wins must be finite and not negative"),
            (COUNTS, {"pool_size": 20}, "pool_size must be no less"),
        ],
    )
    def test_no_counts(self, table, options, message):
        with pytest.raises(ValueError, match=message):
            anchored_scores(table, **options)

    def test_verdicts_have_no_column_of_pools(self):
        with pytest.raises(DataError, match="no column 'pool'"):
            anchored_scores(verdicts([("win",)], "verdict"), pool_size="pool")


@pytest.mark.parametrize(
    ("annotator", "board", "n_models"),
    [("alpaca_eval_gpt4", "alpacaeval1", 40), ("weighted_alpaca_eval_gpt4_turbo", "alpacaeval2", 50)],
)
def test_published_leaderboards(data, annotator, board, n_models):
    """Win rates and their standard errors from the outcomes of single prompts, and the smoothed scores beside them."""
    items = pd.read_parquet(data / "alpacaeval_item_preferences.parquet")
    items = items[items["annotator"] == annotator].assign(outcome=lambda t: t["preference"] - 1)
    read = AnchoredVerdicts.from_pandas(
        items.drop(columns=["annotator", "dataset"]), verdict="outcome", anchor="reference", missing="drop"
    )
    scores = anchored_scores(read, ["model"]).set_index("model")
    published = pd.read_parquet(data / "alpacaeval_leaderboards.parquet").query("board == @board").set_index("model")
    both = scores.join(published, how="inner")
    assert len(both) > n_models

    wins, n = both["wins"] + both["ties"] / 2, both["n_items"]
    np.testing.assert_allclose(100 * wins / n, both["win_rate"], atol=1e-5)
    sd = pd.Series(read.outcome).groupby(read.levels["model"][read.number["model"]]).std()[both.index]
    np.testing.assert_allclose(100 * sd / np.sqrt(n), both["standard_error"], atol=1e-5)
    # The prior pulls to one half by its share.
    np.testing.assert_allclose(both["probability"], (wins + 0.5) / (n + 1))
    # A Beta error has no shares: it is that of a coin, and no less than the outcomes'.
    assert (both["probability_se"] > 0.99 * both["standard_error"] / 100).all()
    own = (both["own_upper"] - both["own_lower"]) / 2 / 1.96
    np.testing.assert_array_less(own, both["probability_se"] * 1.02)


def test_resampled_prompts_agree_with_a_loop():
    frame = simulate_anchored_verdicts((0.6, -0.4), 30, 2, 3, seed=6)
    frame["task"] = np.where(frame["item"] < 12, "x", "y")
    frame = frame.drop(frame.index[[0, 1, 2, 100]])  # one answer gone, one run of another
    verdicts = AnchoredVerdicts.from_pandas(frame)
    by = ["model", "judge", "task"]
    table = bootstrap_scores(verdicts, by, n_resamples=4000, seed=1, prior=1.0)
    pd.testing.assert_frame_equal(
        table[anchored_scores(verdicts, by).columns], anchored_scores(verdicts, by, prior=1.0)
    )
    outcome = frame.assign(y=frame["verdict"].map({"win": 1.0, "tie": 0.5, "loss": 0.0}))
    rng = np.random.default_rng(0)
    for row in table.itertuples():
        own = outcome[(outcome["model"] == row.model) & (outcome["judge"] == row.judge) & (outcome["task"] == row.task)]
        means = own.groupby("item")["y"].mean().reindex(np.unique(frame["item"][frame["task"] == row.task]))
        drawn = means.to_numpy()[rng.integers(0, len(means), (4000, len(means)))]
        p = (np.nansum(drawn, 1) + 1) / ((~np.isnan(drawn)).sum(1) + 2)
        # Four standard errors of a 2.5 % quantile of 4,000 draws, whose density there is a normal one's.
        allowed = 4 * np.sqrt(2) * np.sqrt(0.025 * 0.975 / 4000) * p.std() / 0.0584
        wider = widening_of_draws(table["n_items"].median() - 1, 0.95)
        ends = row.probability + wider * (np.quantile(p, [0.025, 0.975]) - row.probability)
        assert [row.boot_lower, row.boot_upper] == pytest.approx(ends, abs=allowed)
        expected = ELO_PER_LOGIT * np.log(row.boot_upper / (1 - row.boot_upper))
        assert row.rating_boot_upper == pytest.approx(expected)


def test_resampled_scores_do_not_depend_on_the_order_or_on_the_parts(monkeypatch):
    frame = simulate_anchored_verdicts((0.6, -0.4, 0.0), 20, 3, 2, seed=8)
    table = bootstrap_scores(AnchoredVerdicts.from_pandas(frame), n_resamples=300)
    shuffled = AnchoredVerdicts.from_pandas(frame.sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(table, bootstrap_scores(shuffled, n_resamples=300))
    monkeypatch.setitem(bootstrap_scores.__globals__, "_DRAWS", 4 * 300)  # groups by fours
    in_parts = bootstrap_scores(shuffled, n_resamples=300)
    group, _ = shuffled.groups(["model", "judge", "anchor"])
    first = bootstrap_scores(shuffled.take(group < 4), n_resamples=300)
    pd.testing.assert_frame_equal(in_parts[:4], first)
    assert not in_parts.isna().any(axis=None)
    with pytest.raises(ValueError, match="at least 2"):
        bootstrap_scores(shuffled, n_resamples=1)


def test_a_single_prompt_has_no_percentile_interval():
    frame = pd.DataFrame({"model": ["a", "a", "b"], "item": [1, 2, 1], "verdict": ["win", "loss", "win"]})
    table = bootstrap_scores(AnchoredVerdicts.from_pandas(frame), n_resamples=50)
    assert table["boot_lower"].isna().tolist() == [False, True]


def test_ties_by_another_name_are_not_taken_for_none():
    with pytest.raises(DataError, match="no column 'ties', but 'draws'"):
        anchored_scores(pd.DataFrame({"wins": [5], "draws": [30], "losses": [3]}))


def test_tables_with_pools_can_be_joined():
    counts = pd.DataFrame({"model": ["a", "b"], "wins": [3, 4], "losses": [4, 2]})
    found = [anchored_scores(counts, pool_size=np.array([20, m])) for m in (30, 40)]
    assert len(pd.concat(found)) == 4
    with pytest.raises(DataError, match="column 'model' has 1 missing value"):
        anchored_scores(counts.assign(model=["a", None]))


def test_the_own_interval_is_as_wide_as_that_of_resampled_prompts():
    """Also where runs are averaged and outcomes lie between: a firm judge, one that wavers, and soft outcomes."""
    rng = np.random.default_rng(3)
    n, rows = 300, []
    for item in range(n):
        p = rng.beta(2, 1.5)
        rows += [("firm", item, run, float(item % 5 < 3)) for run in range(4)]
        rows += [("wavering", item, run, float(rng.random() < p)) for run in range(4)]
        rows += [("soft", item, run, p) for run in range(4)]
    table = bootstrap_scores(verdicts(rows, "judge item run verdict"), "judge", n_resamples=2000).set_index("judge")
    own, drawn = table["own_upper"] - table["own_lower"], table["boot_upper"] - table["boot_lower"]
    # The standard error of a width of 2,000 resamples is 2.3 %; the prior's two outcomes widen the own interval.
    widening = np.sqrt(1 + 2 * 0.5 * 0.25 / (n * (drawn / 3.92) ** 2 * n))
    np.testing.assert_allclose(own / drawn, widening, atol=4 * 0.023)
    beta = table["probability_upper"] - table["probability_lower"]
    assert own["firm"] == pytest.approx(beta["firm"])
    assert own["wavering"] < 0.75 * beta["wavering"]
    assert own["soft"] < 0.55 * beta["soft"]


class TestLikeWithLike:
    def told(self, frame, by=("model", "judge", "anchor")):
        return anchored_scores(AnchoredVerdicts.from_pandas(frame), by).attrs["warnings"]

    @pytest.fixture
    def frame(self):
        frame = simulate_anchored_verdicts((0.5, 0.0), n_items=12, n_judges=2, n_runs=2, seed=1)
        return frame.assign(task=np.where(frame["item"] < 8, "easy", "hard"), anchor="x")

    def test_the_same_items(self, frame):
        assert self.told(frame) == self.told(frame, ["model", "task"]) == []
        assert self.told(frame[frame["run"] < 1 + frame["item"] % 2]) == []  # runs may differ

    def test_a_model_without_a_task(self, frame):
        (told,) = self.told(frame[(frame["model"] != "model-2") | (frame["task"] == "easy")])
        assert told == (
            "2 of 4 scores lack items that others against the same reference have (the worst: model model-2, judge "
            "judge-1, anchor x, with 8 of 12): side by side they do not compare like with like"
        )
        (told,) = self.told(frame[(frame["model"] != "model-2") | (frame["task"] == "easy")], ["model", "task"])
        assert told.startswith("1 of 2 scores lack tasks")
        assert "model model-2, with 1 of 2" in told

    def test_other_items_as_many(self, frame):
        moved = frame["item"].where(frame["judge"] == "judge-1", frame["item"] + 100)
        (told,) = self.told(frame.assign(item=moved, task="one"))
        assert told.startswith("4 of 4 scores lack items")
        assert "with 12 of 24" in told

    def test_references_are_not_compared(self, frame):
        other = frame[frame["item"] < 5].assign(anchor="y")
        assert self.told(pd.concat([frame, other])) == []

    def test_rows_that_are_prompts(self, frame):
        rows = frame.query("run == 0").drop(columns=["item", "run", "task"])
        assert self.told(rows) == []
        (told,) = self.told(rows[3:])
        assert told.startswith("1 of 4 scores lack prompts")
        assert "with 9 of 12" in told

    def test_counts(self):
        counts = pd.DataFrame({"model": ["a", "b", "a"], "anchor": ["x", "x", "y"], "wins": 5, "losses": [5, 3, 1]})
        (told,) = anchored_scores(counts).attrs["warnings"]
        assert told.startswith("1 of 3 scores lack prompts")
        assert "model b, anchor x, with 8 of 10" in told
        tasks = pd.DataFrame({"model": ["a", "a", "b"], "task": ["t", "u", "t"], "wins": 5, "losses": 5})
        (told,) = anchored_scores(tasks).attrs["warnings"]
        assert told.startswith("1 of 2 scores lack tasks")


def test_who_is_rated_highest_is_not_above_those_whose_intervals_overlap():
    counts = pd.DataFrame({"model": [*"abc"], "wins": [3, 5, 0], "ties": 0, "losses": [4, 1, 300]})
    first = anchored_scores(counts, "model").answer.sentences[0]
    assert first.startswith("b is rated highest beside the reference: +")
    assert first.endswith("; its interval overlaps that of a")
    many = counts.assign(wins=counts["wins"] * 100, losses=counts["losses"] * 100)
    assert "overlaps" not in anchored_scores(many, "model").answer.sentences[0]


@pytest.mark.parametrize(("wins", "losses", "starts", "ends"), [
    ([13, 13], [17, 17], "a and b are level, rated highest beside the reference: -", ")"),
    ([13, 12, 13], [17, 18, 17], "a and c are level, rated highest beside the reference: -", " overlaps that of b"),
    ([90, 20], [10, 80], "a is rated highest above the reference: +", ")"),
    ([20, 20], [80, 80], "a and b are level, rated highest yet below the reference: -", ")"),
    ([0, 0], [0, 0], "a and b are level, rated highest beside the reference: +0.0 Elo", ")"),
])  # fmt: skip
def test_equal_models_have_no_highest_and_only_an_interval_says_above(wins, losses, starts, ends):
    ties = 30 if not sum(wins) else 0
    counts = pd.DataFrame({"model": [*"abc"][: len(wins)], "wins": wins, "ties": ties, "losses": losses})
    said = anchored_scores(counts, "model").answer.sentences[0]
    assert said.startswith(starts), said
    assert said.endswith(ends), said


def test_groups_that_won_all_have_equal_intervals_in_any_order():
    """And no equal draws: what two groups that won 8 of 8 differ by is not known."""
    for names in ("abc", "cba"):
        rows = [(m, f"q{i}", "win" if m != "b" else "loss") for m in names for i in range(8)]
        table = pd.DataFrame(rows, columns=["model", "item", "verdict"]).assign(judge="j", anchor="r")
        joint = joint_scores(AnchoredVerdicts.from_pandas(table), "model", n_resamples=400)
        lower, upper = joint.ends(0.95)
        assert (lower[0], upper[0]) == (lower[2], upper[2]) != (lower[1], upper[1])
        assert 0.4 < joint.beat_share.loc["a", "c"] < 0.6
        assert joint.difference_interval()[0].loc["a", "c"] < -0.2


def test_few_prompts_make_no_tiers_of_equal_models():
    """A model that won all of its few prompts has draws that vary; .17 of such boards of 20 prompts had two tiers."""
    rng, n, told = np.random.default_rng(0), 100, 0
    model, item = (x.ravel() for x in np.indices((6, 20)))
    for k in range(n):
        won = rng.random(len(item)) < 0.5
        table = pd.DataFrame({"model": model, "item": item, "verdict": np.where(won, "win", "loss")})
        joint = joint_scores(AnchoredVerdicts.from_pandas(table), "model", n_resamples=200, seed=k, progress=False)
        told += joint.tiers().max() > 1
    assert told / n <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)
    verdict = np.where(model == 0, "win", np.where(won, "win", "loss"))
    found = joint_scores(AnchoredVerdicts.from_pandas(table.assign(verdict=verdict)), "model", n_resamples=2000)
    best, one = found.draws[:, found.names.get_loc(0)], anchored_elo(wins=20, ties=0, losses=0)
    np.testing.assert_allclose(best.mean(), found.estimate.max(), atol=4 * best.std() / np.sqrt(2000))
    np.testing.assert_allclose(np.quantile(best, 0.025), one.probability_lower, atol=0.02)
