"""Coverage, swaps and chains of references: by hand, against scipy, and on published counts."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau

from jaxeval.anchored.diagnostics import diagnose_anchors
from jaxeval.anchored.scores import anchored_scores
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts
from jaxeval.plots.anchored import plot_anchor_swap
from jaxeval.ratings.gauge import ELO_PER_LOGIT


def scores(rows, error=10.0):
    """Ratings by (model, anchor)."""
    table = pd.DataFrame([(*key, rating) for key, rating in rows.items()], columns=["model", "anchor", "rating"])
    return table.assign(probability=1 / (1 + np.exp(-table["rating"] / ELO_PER_LOGIT)), rating_se=error)


def probabilities(values, anchor="x"):
    p = np.array(values)
    table = pd.DataFrame({"model": [f"m{k}" for k in range(len(p))], "anchor": anchor, "probability": p})
    return table.assign(rating=ELO_PER_LOGIT * np.log(p / (1 - p)), rating_se=10.0)


class TestCoverage:
    def test_shares(self):
        table = pd.concat([probabilities([0.2, 0.8, 0.19, 0.04, 0.96, 0.95, 0.05, 0.5]), probabilities([0.5], "y")])
        found = diagnose_anchors(table).coverage
        assert list(found.columns) == ["below", "mid_region", "above", "floor", "ceiling", "n"]
        assert found.loc["x"].tolist() == [3 / 8, 3 / 8, 2 / 8, 1 / 8, 1 / 8, 8]
        assert found.loc["y"].tolist() == [0, 1, 0, 0, 0, 1]

    def test_the_reference_itself_is_left_out(self):
        table = pd.concat([probabilities([0.9, 0.97]), probabilities([0.5]).assign(model="x")])
        found = diagnose_anchors(table).coverage
        assert found.loc["x"].tolist() == [0, 0, 1, 0, 0.5, 2]

    @pytest.mark.parametrize(("values", "words"), [
        ([0.97, 0.99, 0.6], "67% above, 67% at floor or ceiling: it is too weak for these models, and large gaps"),
        ([0.01, 0.1, 0.6], "67% below and 0% above, 33% at floor or ceiling: it is too strong for these models"),
        ([0.85, 0.15, 0.6], "33% below and 33% above: it lies far from many of these models"),
    ])  # fmt: skip
    def test_advice(self, values, words):
        (advice,) = diagnose_anchors(probabilities(values)).advice
        assert advice.startswith("reference x: 33% of 3 probabilities lie in [0.2, 0.8] (95% are wanted), ")
        assert words in advice

    def test_a_good_reference_needs_none(self):
        assert diagnose_anchors(probabilities([0.3, 0.5, 0.7])).advice == []

    def test_the_best_of_two_is_named(self):
        table = pd.concat([probabilities([0.3, 0.5, 0.7]), probabilities([0.3, 0.9, 0.96], "y")])
        assert diagnose_anchors(table).advice[-1] == (
            "of these references, x has most probabilities in the informative range"
        )

    def test_the_best_is_that_of_what_all_rated(self):
        """The second reference has more in range, but of models that the first did not rate."""
        table = pd.concat([probabilities([0.5, 0.5, 0.9]), probabilities([0.9, 0.9, *[0.5] * 8], "y")])
        assert diagnose_anchors(table).coverage["mid_region"].idxmax() == "y"
        assert diagnose_anchors(table).advice[-1] == (
            "of these references, x has most probabilities in the informative range, of the 3 that all references have"
        )
        equal = pd.concat([probabilities([0.5, 0.9]), probabilities([0.9, 0.5], "y")])
        assert diagnose_anchors(equal).advice[-1] == (
            "of these references, all have equally many probabilities in the informative range"
        )


class TestSwap:
    def test_against_scipy(self):
        rng = np.random.default_rng(0)
        names = [f"m{k}" for k in range(9)]
        rows = {(m, a): 100 * rng.normal() for m in names for a in "xyz" if (m, a) != ("m3", "y")}
        found = diagnose_anchors(scores(rows)).swap.set_index(["anchor_a", "anchor_b"])
        for a, b in combinations("xyz", 2):
            common = [m for m in names if (m, a) in rows and (m, b) in rows]
            first, second = (np.array([rows[m, c] for m in common]) for c in (a, b))
            row = found.loc[a, b]
            assert row["n_models"] == len(common)
            assert row["kendall"] == pytest.approx(kendalltau(first, second).statistic)
            shift = (first - first.mean()) - (second - second.mean())
            assert row["offset"] == pytest.approx(first.mean() - second.mean())
            assert row["mean_shift"] == pytest.approx(np.abs(shift).mean())
            assert row["largest_shift"] == pytest.approx(np.abs(shift).max())

    def test_centred_shifts_by_hand(self):
        rows = {("a", "x"): 10, ("b", "x"): 20, ("c", "x"): 60, ("a", "y"): 0, ("b", "y"): -30, ("c", "y"): 30}
        (row,) = diagnose_anchors(scores(rows)).swap.itertuples(index=False)
        assert row.offset == 30
        assert row.mean_shift == pytest.approx((20 + 20 + 0) / 3)
        assert row.largest_shift == pytest.approx(20)
        assert row.kendall == pytest.approx(1 / 3)

    def test_judges_are_averaged_first(self):
        rows = {("a", "x"): 10, ("b", "x"): 20, ("a", "y"): 0, ("b", "y"): 30}
        table = pd.concat([scores(rows).assign(judge=j) for j in (1, 2)], ignore_index=True)
        table["rating"] += np.where(table["judge"] == 1, 5, -5)
        pd.testing.assert_frame_equal(diagnose_anchors(table).swap, diagnose_anchors(scores(rows)).swap)

    def test_the_same_ranking_needs_no_advice_and_another_does(self):
        rows = {(m, a): 10.0 * k for k, m in enumerate("abcd") for a in "xy"}
        which, best = diagnose_anchors(scores(rows)).advice
        assert which.startswith("whether gaps add up cannot be checked")
        assert best.startswith("of these references")
        rows["a", "y"] = 15.0
        assert diagnose_anchors(scores(rows)).advice[0] == (
            "references x and y rank 4 models with Kendall's tau 0.67, and ratings shift by 6 Elo on average after "
            "centring: name the reference of a ranking"
        )

    def test_models_that_are_their_own_references(self):
        found = diagnose_anchors(scores({("x", "x"): 1, ("y", "y"): 2}))
        assert len(found.coverage) == len(found.swap) == 0
        assert found.advice == ["every model here is its own reference: nothing can be said about the references"]

    def test_no_model_in_common(self):
        row = diagnose_anchors(scores({("a", "x"): 1, ("b", "y"): 2})).swap.iloc[0]
        assert row["n_models"] == 0
        assert np.isnan(row["kendall"])
        advice = diagnose_anchors(scores({("a", "x"): 1, ("b", "y"): 2})).advice
        assert advice[0].startswith("references x and y have no model in common by the same judges and tasks")
        assert not any(line.startswith("of these references") for line in advice)

    def test_ratings_that_all_tie(self):
        rows = {(m, a): 10.0 * k * (a == "x") for k, m in enumerate("abc") for a in "xy"}
        advice = diagnose_anchors(scores(rows)).advice
        assert advice[0].startswith("one of the references x and y rates all 3 models alike")
        assert not any("nan" in line for line in advice)


class TestChains:
    STRENGTH = {"a": 0.0, "b": 40.0, "c": -70.0, "d": 110.0}

    def rows(self):
        names = self.STRENGTH
        return {(m, a): names[m] - names[a] for a in "ab" for m in names if m != a}

    def test_gaps_that_add_up(self):
        found = diagnose_anchors(scores(self.rows()))
        chains = found.additivity
        assert len(chains) == 4  # c and d, through a to b and through b to a
        assert set(zip(chains["model"], chains["through"], chains["anchor"], strict=True)) == {
            ("c", "a", "b"),
            ("d", "a", "b"),
            ("c", "b", "a"),
            ("d", "b", "a"),
        }
        np.testing.assert_allclose(chains["gap"], 0, atol=1e-9)
        np.testing.assert_allclose(chains["standard_error"], np.sqrt(300))
        assert not any("add up" in line for line in found.advice)

    def test_one_that_does_not(self):
        rows = self.rows()
        rows["d", "a"] += 60
        found = diagnose_anchors(scores(rows))
        chains = found.additivity.set_index(["model", "through", "anchor"])
        assert chains.loc[("d", "b", "a"), "gap"] == pytest.approx(60)
        assert chains.loc[("d", "a", "b"), "gap"] == pytest.approx(-60)
        assert chains.loc[("d", "b", "a"), "z"] == pytest.approx(60 / np.sqrt(300))
        assert chains.loc[("c", "b", "a"), "gap"] == pytest.approx(0)
        (advice,) = (line for line in found.advice if "add up" in line)
        assert advice.startswith("gaps do not add up: d against ")
        assert "Elo from the sum through " in advice
        assert "(3.5 standard errors)" in advice

    def test_variances_of_judges_are_averaged_and_tasks_are_independent(self):
        """Judges share the prompts of a task, so that more of them leave the error what it is."""
        judges = pd.concat([scores(self.rows(), error).assign(judge=error) for error in (3.0, 4.0)])
        found = diagnose_anchors(judges).additivity
        np.testing.assert_allclose(found["standard_error"], np.sqrt(3 * 25 / 2))
        tasks = pd.concat([judges.assign(task="t"), scores(self.rows(), 6.0).assign(judge=3.0, task="u")])
        found = diagnose_anchors(tasks).additivity
        np.testing.assert_allclose(found["standard_error"], np.sqrt((2 / 3) ** 2 * 3 * 25 / 2 + (1 / 3) ** 2 * 3 * 36))
        np.testing.assert_allclose(found["gap"], 0, atol=1e-9)

    def test_against_loops_over_cells(self):
        rng = np.random.default_rng(3)
        cells = [(m, a, j, t) for m in "abcd" for a in "abx" for j in "jk" for t in "tu" if m != a]
        table = pd.DataFrame(cells, columns=["model", "anchor", "judge", "task"]).sample(frac=0.8, random_state=1)
        table = table.assign(
            rating=rng.normal(0, 50, len(table)), rating_se=rng.uniform(5, 9, len(table)), probability=0.5
        )
        at = table.set_index(["model", "anchor", "judge", "task"])
        found = diagnose_anchors(table.set_axis(rng.permutation(len(table)))).additivity
        expected = {}
        for a, c in permutations("abx", 2):
            for b in set("abcd") - {a, c} if a != "x" else ():
                parts = (b, c), (b, a), (a, c)
                tasks = {t: [j for j in "jk" if all((*p, j, t) in at.index for p in parts)] for t in "tu"}
                gaps, variance, n = [], 0.0, sum(map(len, tasks.values()))
                for t, judges in tasks.items():
                    for j in judges:
                        direct, first, second = (at.loc[(*p, j, t)] for p in parts)
                        gaps.append(direct["rating"] - first["rating"] - second["rating"])
                        squares = [part["rating_se"] ** 2 for part in (direct, first, second)]
                        variance += len(judges) / n**2 * sum(squares)
                if n:
                    expected[b, a, c] = np.mean(gaps), np.sqrt(variance)
        assert {(r.model, r.through, r.anchor) for r in found.itertuples()} == set(expected)
        for row in found.itertuples():
            assert (row.gap, row.standard_error) == pytest.approx(expected[row.model, row.through, row.anchor])

    def test_references_that_are_no_models_have_none(self):
        rows = {("a", "x"): 1.0, ("b", "x"): 2.0, ("a", "y"): 1.0, ("b", "y"): 2.0}
        assert len(diagnose_anchors(scores(rows)).additivity) == 0

    def test_no_error_has_no_ratio(self):
        """As where all prompts of a pool are judged."""
        assert diagnose_anchors(scores(self.rows(), 0.0)).additivity["z"].isna().all()


def test_additive_ratings_stay_within_their_errors():
    """Wins by differences of strengths: the ratio is standard normal."""
    rng = np.random.default_rng(1)
    strength = dict(zip("abcdefgh", rng.normal(size=8) / 2, strict=True))
    rows = [(m, a, strength[m] - strength[a]) for a in "abc" for m in strength if m != a]
    z = []
    for _ in range(20):
        wins = [rng.binomial(400, 1 / (1 + np.exp(-gap))) for *_, gap in rows]
        table = pd.DataFrame([row[:2] for row in rows], columns=["model", "anchor"])
        table = anchored_scores(table.assign(wins=wins, losses=400 - np.array(wins)))
        chains = diagnose_anchors(table).additivity
        z += chains.loc[chains["model"] == "h", "z"].head(1).tolist()
    assert np.mean(np.square(z)) == pytest.approx(1, abs=5 * np.sqrt(2 / 20))


def test_judges_that_agree_do_not_shrink_the_error():
    """Twenty judges with nearly the same verdicts: the ratio has a standard deviation of 1 at most."""
    rng = np.random.default_rng(2)
    strength = {"a": 0.0, "c": 0.3, "x": 0.5, "y": -0.4}
    pairs = [(m, a) for a in "ac" for m in strength if m != a]
    z, n = [], 16
    for _ in range(n):
        rows = []
        for m, a in pairs:
            won = rng.random(80) < 1 / (1 + np.exp(strength[a] - strength[m]))
            wins = (won ^ (rng.random((20, 80)) < 0.02)).sum(1)
            rows += [(m, a, j, w, 80 - w) for j, w in enumerate(wins)]
        table = pd.DataFrame(rows, columns=["model", "anchor", "judge", "wins", "losses"])
        chains = diagnose_anchors(anchored_scores(table)).additivity
        z += chains.loc[(chains["model"] == "x") & (chains["through"] == "a"), "z"].tolist()
    assert np.sqrt(np.mean(np.square(z))) < 1 + 4 / np.sqrt(2 * n)


def test_verdicts_are_diagnosed():
    table = pd.concat(
        [simulate_anchored_verdicts(n_items=20, n_judges=2, n_runs=2, seed=s).assign(anchor=f"x{s}") for s in (1, 2)]
    )
    found = diagnose_anchors(anchored_scores(AnchoredVerdicts.from_pandas(table)))
    assert found.coverage["n"].tolist() == [8, 8]
    assert found.swap["n_models"].tolist() == [4]


@pytest.mark.parametrize("column", ["model", "anchor", "probability", "rating", "rating_se"])
def test_columns_are_needed(column):
    with pytest.raises(DataError, match=f"no column '{column}'"):
        diagnose_anchors(probabilities([0.5]).drop(columns=column))


def test_published_opponents(data):
    """Rewards of the models that all three opponents of WildBench have."""
    counts = pd.read_csv(data / "wildbench_pairwise_counts.csv.gz").query("length_margin_K == -1")
    counts = counts[counts.groupby("model")["opponent"].transform("nunique") == 3]
    assert counts["model"].nunique() == 49
    table = counts.rename(columns={"opponent": "anchor", "reward": "rating"})
    found = diagnose_anchors(table.assign(probability=(table["rating"] + 1) / 2, rating_se=1.0)).swap
    assert found["n_models"].tolist() == [49] * 3
    pairs = zip(found["anchor_a"], found["anchor_b"], strict=True)
    assert dict(zip(pairs, found["kendall"].round(4), strict=True)) == {
        ("gpt4t", "haiku"): 0.8817,
        ("gpt4t", "llama"): 0.8639,
        ("haiku", "llama"): 0.9226,
    }


def test_judges_that_lack_some_answers_are_no_shift():
    """Two equal references; the lenient judge did not judge c and d against the second."""
    rows = [
        (m, j, a, r + shift)
        for m, r in (("a", 120.0), ("b", 40.0), ("c", -40.0), ("d", -120.0))
        for j, shift in (("lenient", 200.0), ("strict", -200.0))
        for a in "xy"
        if not (j == "lenient" and a == "y" and m in "cd")
    ]
    table = pd.DataFrame(rows, columns=["model", "judge", "anchor", "rating"])
    table = table.assign(probability=0.5, rating_se=10.0)
    (row,) = diagnose_anchors(table).swap.itertuples()
    assert (row.n_models, row.offset, row.mean_shift, row.largest_shift) == (4, 0.0, 0.0, 0.0)
    chained = pd.concat([table, pd.DataFrame({"model": "x", "judge": ["lenient", "strict"], "anchor": "y",
                                              "rating": 0.0, "probability": 0.5, "rating_se": 10.0})])  # fmt: skip
    gaps = diagnose_anchors(chained).additivity
    assert len(gaps) == 4
    assert (gaps["gap"] == 0).all()


def test_the_figure_of_a_swap_shows_no_shift_of_absent_judges():
    rows = [("a", "l", "x", 300.0), ("a", "s", "x", -100.0), ("a", "l", "y", 300.0), ("a", "s", "y", -100.0)]
    rows += [("b", "l", "x", 200.0), ("b", "s", "x", -200.0), ("b", "s", "y", -200.0)]
    table = pd.DataFrame(rows, columns=["model", "judge", "anchor", "rating"])
    for line in plot_anchor_swap(table).axes[0].lines:
        assert np.ptp(line.get_ydata()) == pytest.approx(0, abs=1e-9)


class TestFigureOfASwap:
    def table(self, rows):
        return pd.DataFrame(rows, columns=["model", "judge", "anchor", "rating"])

    def lines(self, figure):
        return [np.asarray(line.get_xydata()) for line in figure.axes[0].lines]

    def test_centred_by_the_models_of_both(self):
        ratings = {"x": [300.0, 100.0, -100.0], "y": [210.0, 30.0, -180.0]}
        rows = [(m, "j", a, r) for a in "xy" for m, r in zip("abc", ratings[a], strict=True)]
        found = sorted(line[:, 1].tolist() for line in self.lines(plot_anchor_swap(self.table(rows))))
        assert found == [pytest.approx([-200, -200]), pytest.approx([0, 10]), pytest.approx([200, 190])]

    def test_models_that_are_references_have_the_points_that_there_are(self):
        strength = {"a": 120.0, "b": 40.0, "x": 10.0, "y": -60.0, "z": 0.0}
        rows = [(m, "j", a, strength[m] - strength[a]) for a in "xyz" for m in strength if m != a]
        lines = self.lines(plot_anchor_swap(self.table(rows)))
        assert sorted(line.shape[0] for line in lines) == [2, 2, 2, 3, 3]
        for line in lines:
            assert np.ptp(line[:, 1]) == pytest.approx(0, abs=1e-9)

    def test_a_reference_by_other_judges_is_left_out_and_named(self):
        rows = [(m, "j", a, 10.0 * k) for a in "xy" for k, m in enumerate("abc")]
        figure = plot_anchor_swap(self.table([*rows, *((m, "other", "z", 1.0) for m in "abc")]))
        assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["x", "y"]
        assert figure.axes[0].get_title(loc="left") == "without z: no model in common by the same judges and tasks"
        assert len(self.lines(figure)) == 3

    def test_nothing_to_compare(self):
        rows = [("a", "one", "x", 1.0), ("a", "two", "y", 2.0)]
        with pytest.raises(DataError, match="no two references have a model in common by the same judge and task"):
            plot_anchor_swap(self.table(rows))
