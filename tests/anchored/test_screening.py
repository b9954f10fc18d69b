"""Screening judges by their repeated runs, what they agree on, and what pooling them buys."""

import numpy as np
import pandas as pd
import pytest
import scipy
from compilations import compilations
from panels import OUTCOME, answers, simulated

from jaxeval.anchored import screening as judge_screening
from jaxeval.anchored.elo import anchored_elo
from jaxeval.anchored.pooling import pooling_curve
from jaxeval.anchored.reliability import icc3, judge_panel
from jaxeval.anchored.scores import bootstrap_scores
from jaxeval.anchored.screening import screen_judges, width_by_threshold
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts


def multinomial_sums(columns, n_resamples, seed, *_, **__):
    """A twin of resampled_sums that compiles nothing."""
    n = len(columns)
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), n_resamples) @ columns


@pytest.fixture(scope="module")
def screen(verdicts):
    return screen_judges(verdicts, n_resamples=2000)


class TestScreening:
    def test_judges_one_by_one(self, frame, screen):
        for judge, table in answers(frame).items():
            found = icc3(table)
            for name in ("single", "single_lower", "single_upper", "average", "average_lower", "average_upper", "n"):
                assert screen.table.loc[judge, name] == pytest.approx(getattr(found, name))
        assert screen.strong == ["judge-1", "judge-2", "judge-3"]
        assert screen.threshold == 0.9
        assert (screen.table["n_runs"] == 4).all()
        assert (screen.table["status"] == "ok").all()
        assert screen.table["sure"].tolist() == [True, True, True, False]
        assert screen._sentences() == ["3 of 4 judges repeat themselves reliably: judge-1, judge-2, judge-3"]

    def test_the_threshold_is_reached(self, verdicts, screen):
        exactly = screen.table["average"].sort_values().iloc[1]
        assert len(screen_judges(verdicts, exactly, n_resamples=10).strong) == 3
        assert len(screen_judges(verdicts, exactly + 1e-9, n_resamples=10).strong) == 2

    def test_a_threshold_that_is_no_number(self, verdicts):
        with pytest.raises(ValueError, match="threshold must be finite, got nan"):
            screen_judges(verdicts, np.nan)

    def test_correlation_of_run_means(self, frame, screen):
        means = pd.DataFrame({judge: table.mean(axis=1) for judge, table in answers(frame).items()})
        np.testing.assert_allclose(screen.correlation, means.corr())
        rho = screen.table["average"]
        assert screen.bound.loc["judge-1", "judge-4"] == pytest.approx(np.sqrt(rho["judge-1"] * rho["judge-4"]))
        np.testing.assert_array_equal(np.diag(screen.bound), 1)

    @pytest.mark.parametrize("name", ["single", "average"])
    def test_resamples_are_naive_resamples_in_law(self, frame, screen, name, monkeypatch):
        """Items with all their models: ends of the interval within the Monte Carlo error of both sides."""
        # The interval of each of the 2,000 naive estimates would take 6 s.
        monkeypatch.setattr("jaxeval.anchored.reliability._ends_over_weights", lambda *_: (1.0, 1.0))
        rng = np.random.default_rng(0)
        for judge in ("judge-1", "judge-4"):
            table = answers(frame)[judge].to_numpy().reshape(2, 60, 4)
            drawn = table[:, rng.integers(60, size=(2000, 60))].transpose(1, 0, 2, 3).reshape(2000, 120, 4)
            twin = getattr(icc3(drawn), name)
            for tail, end in ((0.025, "lower"), (0.975, "upper")):
                mine = screen.table.loc[judge, f"{name}_boot_{end}"]
                # The share of naive resamples below it, twice binomial.
                assert np.mean(twin < mine) == pytest.approx(tail, abs=5 * np.sqrt(2 * 0.025 * 0.975 / 2000))

    def test_a_resample_is_the_table_with_items_repeated(self, frame, monkeypatch):
        gone = (frame["judge"] == "judge-2") & (frame["item"] < 9) & (frame["run"] == 1)
        times = np.random.default_rng(1).multinomial(60, np.full(60, 1 / 60))
        monkeypatch.setattr(judge_screening, "resampled_sums", lambda columns, *_, **__: times[None] @ columns)
        monkeypatch.setattr(judge_screening, "widening_of_draws", lambda *_: 1.0)
        found = screen_judges(AnchoredVerdicts.from_pandas(frame[~gone]), n_resamples=1).table
        for judge, table in answers(frame[~gone]).items():
            twin = icc3(table.loc[np.repeat(table.index, times[table.index.get_level_values("item")])].dropna())
            assert found.loc[judge, "single_boot_lower"] == pytest.approx(twin.single)
            assert found.loc[judge, "average_boot_upper"] == pytest.approx(twin.average)

    def test_judges_that_differ_are_told(self):
        found = screen_judges(AnchoredVerdicts.from_pandas(simulated(judge_sd=2.0)), n_resamples=10)
        assert any("pairs of judges correlate less than their reliabilities promise" in w for w in found.warnings)
        two = AnchoredVerdicts.from_pandas(simulated(judge_sd=2.0, n_judges=2, run_sd=(0.4, 0.4)))
        (told,) = [w for w in screen_judges(two, n_resamples=10).warnings if "correlate" in w]
        assert told.startswith("1 of 1 pair of judges correlates less than their reliabilities promise")
        same = screen_judges(AnchoredVerdicts.from_pandas(simulated(judge_sd=0.0, run_sd=0.4)), n_resamples=10)
        assert not any("correlate" in w for w in same.warnings)

    def test_two_items_tell_no_judges_apart(self):
        """Run means over two items correlate with 1 or -1, in every resample."""
        for seed in range(8):
            options = {"n_judges": 5, "run_sd": (0.6,) * 5, "n_items": 2, "strengths": (0.0,), "judge_sd": 0.0}
            found = screen_judges(AnchoredVerdicts.from_pandas(simulated(seed=seed, **options)), n_resamples=50)
            assert not any("promise, by more than chance" in w for w in found.warnings)

    @pytest.mark.parametrize("others", [(0.5,) * 4, pytest.param((0.3,) * 8, marks=pytest.mark.slow)])
    def test_judges_that_differ_by_chance_are_not_told(self, monkeypatch, others):
        """They share all item effects: told at most in one of twenty samples; with tastes, nearly always."""
        monkeypatch.setattr(judge_screening, "resampled_sums", multinomial_sums)
        options = {"n_judges": len(others), "run_sd": others, "n_items": 80, "strengths": (0.0,), "n_runs": 5}
        told, n = {0.0: 0, 0.5: 0}, 12
        for taste in told:
            for seed in range(n):
                frame = simulated(judge_sd=taste, seed=seed, **options)
                found = screen_judges(AnchoredVerdicts.from_pandas(frame), n_resamples=200)
                assert (found.correlation.to_numpy() < found.bound.to_numpy() - 0.02).any() or taste == 0
                told[taste] += any("promise, by more than chance" in w for w in found.warnings)
        assert told[0.0] <= n * 0.05 + 4 * np.sqrt(n * 0.05 * 0.95)
        assert told[0.5] >= n - 1

    def test_resampled_correlations_are_those_of_items_repeated(self, frame, monkeypatch):
        gone = (frame["judge"] == "judge-2") & (frame["item"] < 9)
        part = frame[~gone]
        times = np.random.default_rng(1).multinomial(60, np.full(60, 1 / 60), 3)
        monkeypatch.setattr(judge_screening, "resampled_sums", lambda columns, *_, **__: times @ columns)
        panel = judge_panel(AnchoredVerdicts.from_pandas(part))
        pairs = np.array([[1, 0], [3, 1]])
        _, found = judge_screening._resampled(panel, panel.run_means(), pairs, 3, 0, None)
        means = pd.DataFrame({judge: table.mean(axis=1) for judge, table in answers(part).items()})
        for r, repeats in enumerate(times):
            twin = means.loc[np.repeat(means.index, repeats[means.index.get_level_values("item")])].corr()
            np.testing.assert_allclose(found[r], [twin.iloc[1, 0], twin.iloc[3, 1]])

    def test_a_judge_whose_constant_is_not_exact(self):
        rows = [
            ("m", judge, item, run, 0.1 if judge == "flat" else (7 * item + run) % 10 / 10)
            for judge in ("flat", "lively") for item in range(80) for run in range(3)
        ]  # fmt: skip
        table = pd.DataFrame(rows, columns=["model", "judge", "item", "run", "verdict"])
        found = screen_judges(AnchoredVerdicts.from_pandas(table), n_resamples=20)
        assert found.table.loc["flat", "status"] == "items do not vary"
        assert found.table.loc["flat", ["single", "average", "single_boot_lower", "average_boot_upper"]].isna().all()
        assert np.isnan(found.correlation.loc["flat", "lively"])
        assert "flat" not in found.strong
        assert any("flat judged all answers alike" in w for w in found.warnings)

    def test_an_interval_below_the_threshold_is_told(self, verdicts, screen):
        unclear = screen.table.loc["judge-3"]
        threshold = (unclear["average_lower"] + unclear["average"]) / 2
        found = screen_judges(verdicts, threshold, n_resamples=10)
        assert any(f"judge-3 reach below {threshold:g}, or their runs never" in w for w in found.warnings)
        assert not any("reach below" in w for w in screen_judges(verdicts, -9.0, n_resamples=10).warnings)

    def test_few_items_make_no_sure_judges(self, monkeypatch):
        """Runs are flipped with a probability e: ICC(3,3) is .9, at the threshold, by (1 - 2 e)^2 = 3 / 4."""
        monkeypatch.setattr(judge_screening, "resampled_sums", multinomial_sums)
        rng, shape = np.random.default_rng(0), (6, 5, 3)
        judge, item, run = np.indices(shape).reshape(3, -1)
        frame = pd.DataFrame({"model": "m", "judge": judge, "item": item, "run": run})
        found = []
        for _ in range(8):
            flipped = rng.random(shape) < (1 - np.sqrt(0.75)) / 2
            verdict = ((rng.random((6, 5, 1)) < 0.5) ^ flipped).ravel() * 1.0
            found.append(screen_judges(AnchoredVerdicts.from_pandas(frame.assign(verdict=verdict)), n_resamples=100))
        table = pd.concat([screen.table for screen in found])
        assert table["strong"].mean() > 0.4
        assert table["sure"].mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / len(table))
        assert sum("; unsure: " in screen._sentences()[0] for screen in found) > 4

    def test_intervals_of_few_items_are_longer(self, frame, monkeypatch):
        """On the scale of the ratio of mean squares, by Student's t; quantiles alone missed .115 of 5 items.

        Of 81 draws both ends are draws themselves.
        """
        few = AnchoredVerdicts.from_pandas(frame[(frame["item"] < 5) & (frame["judge"] == "judge-4")])
        monkeypatch.setattr(judge_screening, "resampled_sums", multinomial_sums)
        longer = screen_judges(few, n_resamples=81).table.iloc[0]
        monkeypatch.setattr(judge_screening, "widening_of_draws", lambda *_: 1.0)
        of_draws = screen_judges(few, n_resamples=81).table.iloc[0]
        for name, ratio in (("single", lambda x: (1 + 3 * x) / (1 - x)), ("average", lambda x: 1 / (1 - x))):
            for end in ("lower", "upper"):
                far = [np.log(ratio(x[f"{name}_boot_{end}"]) / ratio(x[name])) for x in (longer, of_draws)]
                assert far[0] == pytest.approx(far[1] * scipy.stats.t.ppf(0.975, 4) / 1.959964 * np.sqrt(5 / 4))

    def test_resamples_are_needed(self, verdicts):
        with pytest.raises(ValueError, match="n_resamples must be at least 1, got 0"):
            screen_judges(verdicts, n_resamples=0)

    def test_one_run_is_not_enough(self, frame):
        with pytest.raises(DataError, match="reliability needs repeated runs: name the column"):
            screen_judges(AnchoredVerdicts.from_pandas(frame[frame["run"] == 0]))


class TestIncomplete:
    def test_answers_without_a_run_are_left_out(self, frame):
        gone = (frame["judge"] == "judge-2") & (frame["item"] < 3) & (frame["run"] == 1)
        found = screen_judges(AnchoredVerdicts.from_pandas(frame[~gone]), n_resamples=20)
        row = found.table.loc["judge-2"]
        assert (row["n"], row["n_incomplete"]) == (114, 6)
        assert row["single"] == pytest.approx(icc3(answers(frame[~gone])["judge-2"].dropna()).single)
        assert found.warnings[0].startswith(
            "left out of the reliability of 1 judge: 6 answers judged in some runs, not in all"
        )
        full = screen_judges(AnchoredVerdicts.from_pandas(frame), n_resamples=20).table
        assert found.table.loc["judge-1", "single_boot_lower"] != row["single_boot_lower"]
        assert found.table.loc["judge-1", "single"] == full.loc["judge-1", "single"]

    def test_answers_that_a_judge_never_saw(self, frame):
        gone = (frame["judge"] == "judge-2") & (frame["item"] < 30)
        found = screen_judges(AnchoredVerdicts.from_pandas(frame[~gone]), n_resamples=20)
        tables = answers(frame[~gone])
        means = pd.DataFrame({judge: tables[judge].mean(axis=1) for judge in ("judge-1", "judge-2")})
        assert found.correlation.loc["judge-1", "judge-2"] == pytest.approx(means.corr().iloc[0, 1])
        curve = pooling_curve(AnchoredVerdicts.from_pandas(frame[~gone]), "model-1", screen=found, n_resamples=20)
        assert np.isfinite(curve).all(axis=None)

    def test_judges_with_runs_of_their_own(self, frame, monkeypatch):
        """Each by as many runs as it has, whatever they are called."""
        times = np.random.default_rng(1).multinomial(60, np.full(60, 1 / 60), 20)
        monkeypatch.setattr(judge_screening, "resampled_sums", lambda columns, *_, **__: times @ columns)
        runs = frame["judge"].map({"judge-2": 2, "judge-3": 1}).fillna(4)
        few = frame[frame["run"] < runs]
        own = few.assign(run=few["judge"] + few["run"].astype(str))
        found = screen_judges(AnchoredVerdicts.from_pandas(own), n_resamples=20)
        assert found.table["n_runs"].tolist() == [4, 2, 1, 4]
        for judge in ("judge-1", "judge-2"):
            alone = screen_judges(AnchoredVerdicts.from_pandas(few[few["judge"] == judge]), n_resamples=20)
            pd.testing.assert_series_equal(found.table.loc[judge], alone.table.loc[judge])
        assert found.table.loc["judge-3", "status"] == "one run"
        assert "judge-3" not in found.strong
        assert any("judge-3 judged in one run only" in w for w in found.warnings)
        assert any("judges have 1 to 4 runs" in w for w in found.warnings)

    def test_a_judge_of_whom_nothing_is_complete(self, frame):
        judged = frame["judge"] == "judge-2"
        gone = judged & (frame["run"] % 2 == frame["item"] % 2)
        found = screen_judges(AnchoredVerdicts.from_pandas(frame[~gone]), n_resamples=20)
        assert found.table.loc["judge-2", "status"] == "fewer than two complete items"
        assert np.isnan(
            found.table.loc["judge-2", ["single", "single_boot_lower", "average_boot_upper"]].astype(float)
        ).all()
        assert "judge-2" not in found.strong
        assert not found.table.loc["judge-2", "sure"]

    def test_a_judge_that_never_varies_or_never_errs(self, frame):
        flat = frame.assign(verdict=frame["verdict"].where(frame["judge"] != "judge-4", "win"))
        first = frame[(frame["judge"] == "judge-1") & (frame["run"] == 0)].set_index(["model", "item"])["verdict"]
        sure = flat["judge"] == "judge-1"
        flat.loc[sure, "verdict"] = first[pd.MultiIndex.from_frame(flat.loc[sure, ["model", "item"]])].to_numpy()
        table = screen_judges(AnchoredVerdicts.from_pandas(flat), n_resamples=20).table
        assert table.loc["judge-4", "status"] == "items do not vary"
        assert table.loc["judge-1", "status"] == "runs never differ"
        assert table.loc["judge-1", ["average", "average_boot_lower", "average_boot_upper"]].tolist() == pytest.approx(
            [1.0] * 3
        )

    def test_items_of_tasks_that_share_names(self, frame):
        """Also where task and item read the same together."""
        table = frame.assign(task=np.where(frame["item"] < 30, "t", "t / 1"), item=frame["item"] % 30)
        table["item"] = np.where(table["task"] == "t", "1 / " + table["item"].astype(str), table["item"].astype(str))
        found = screen_judges(AnchoredVerdicts.from_pandas(table), n_resamples=20).table
        np.testing.assert_allclose(
            found["single"], screen_judges(AnchoredVerdicts.from_pandas(frame), n_resamples=20).table["single"]
        )


def test_width_by_threshold(verdicts, frame, screen):
    found = width_by_threshold(verdicts, screen, [0.0, 0.9, 1.0], level=0.9)
    share = frame.assign(o=frame["verdict"].map(OUTCOME)).groupby(["judge", "model"])["o"].mean()
    elo = anchored_elo(60 * share, 0, 60 - 60 * share, level=0.9)
    width = pd.Series(elo.probability_upper - elo.probability_lower, share.index)
    assert list(found["n_judges"]) == [4, 3, 0]
    assert found["median_width"][0] == pytest.approx(width.median())
    assert found["median_width"][1] == pytest.approx(width[screen.strong].median())
    assert np.isnan(found["median_width"][2])
    assert (found["median_own_width"] < found["median_width"])[:2].all()  # ties
    np.testing.assert_allclose(width_by_threshold(verdicts, screen)["threshold"], np.linspace(0, 1, 21))


def test_own_widths_are_in_the_order_of_the_noise():
    """The mean of a wavering judge's runs lies near one half, prompt by prompt."""
    noise = [0.1, 0.5, 1.0, 2.0, 4.0]
    frame = simulated(n_judges=5, run_sd=noise, n_items=150, n_runs=5, judge_sd=0.0, seed=4)
    verdicts = AnchoredVerdicts.from_pandas(frame)
    found = screen_judges(verdicts, n_resamples=5)
    reached = np.sort(found.table["average"].to_numpy())
    widths = width_by_threshold(verdicts, found, reached)
    assert list(widths["n_judges"]) == [5, 4, 3, 2, 1]
    alone = [
        width_by_threshold(AnchoredVerdicts.from_pandas(frame[frame["judge"] == f"judge-{j}"]), found, [-9.0]).iloc[0]
        for j in range(1, 6)
    ]
    own = [row["median_own_width"] for row in alone]
    assert own == sorted(own, reverse=True)
    assert own[-1] < 0.7 * own[0]
    assert alone[-1]["median_width"] > 0.95 * alone[0]["median_width"]
    assert (np.diff(widths["median_own_width"]) > 0).all()


def test_reliability_of_a_single_run(screen):
    average = screen.table["average"]
    np.testing.assert_allclose(average / (4 - 3 * average), screen.table["single"])


def test_real_runs(data):
    """Scores of four responses a prompt in eight runs, some of them missing, by two judges."""
    runs = pd.read_parquet(data / "rb2_judge_k8_runs.parquet").query("collection == 'base_both_k8'")
    long = runs.melt(["judge", "item", "response_idx"], [f"s{r}" for r in range(1, 9)], "run", "score").dropna()
    table = long.assign(verdict=(long["score"].astype(float) - 1) / 9, model=long["response_idx"])
    found = screen_judges(AnchoredVerdicts.from_pandas(table), n_resamples=200)
    for judge, single, average, n in (
        ("gpt-5.4", 0.963919, 0.995343, 6914),
        ("gpt-5.4-mini", 0.930897, 0.990806, 6910),
    ):
        row = found.table.loc[judge]
        assert (row["single"], row["average"]) == pytest.approx((single, average), abs=5e-7)
        assert row["n"] == n
        # Answers to a prompt are alike, which the F interval does not know.
        assert row["single_boot_lower"] < row["single"] < row["single_boot_upper"]
        assert row["single_boot_upper"] - row["single_boot_lower"] > row["single_upper"] - row["single_lower"]
    assert found.correlation.iloc[0, 1] < found.bound.iloc[0, 1]
    assert any("1 of 1 pair of judges correlates less than their reliabilities promise" in w for w in found.warnings)


def test_other_numbers_of_models_judges_items_and_resamples_compile_nothing():
    def run(n_models, n_judges, n_items, n_resamples):
        strengths = tuple(np.linspace(-1, 1, n_models))
        frame = simulate_anchored_verdicts(strengths, n_items=n_items, n_judges=n_judges, n_runs=3)
        verdicts = AnchoredVerdicts.from_pandas(frame)
        bootstrap_scores(verdicts, n_resamples=n_resamples, progress=False)
        screen_judges(verdicts, n_resamples=n_resamples, progress=False)

    run(4, 5, 60, 100)
    with compilations() as count:
        for sizes in ((5, 6, 60, 100), (4, 5, 200, 100), (4, 5, 80, 300)):
            run(*sizes)
    assert count.programs == []
