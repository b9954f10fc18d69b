"""Panels of judges without gold: against a naive fit by a general optimizer, planted truths, what cannot be told."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from compilations import compilations
from scipy.stats import norm, t

import jaxeval
from jaxeval import Battles, DataError, fit_judge_panel, leaderboard, simulate_panel
from jaxeval.data.panel_verdicts import PanelColumns, panel_rows
from jaxeval.execution import host as host_module
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch.choice_models import count_choices
from jaxeval.kernels.batch.programs import Program
from jaxeval.kernels.batch.refits import draw_one
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.panel_boards import FEW_VERDICTS, fit_panel_board, messages_of, panel_refits, typical
from jaxeval.ratings.panel_ratings import CONFOUNDED, NO_ITEMS, SHARED_TASTE
from jaxeval.ratings.slices import whole_board
from jaxeval.ratings.vote_groups import VoteGroups, score_squares

#: NumPy fits, and programs refit: `test_the_host_fits_as_programs_do` compares the fits of both.
pytestmark = pytest.mark.usefixtures("all_on_the_host")

ELO = 400 / np.log(10)
M, B = 5, 64
G, SIDES = [0.6, 1.0, 1.7], [0.5, 0.0, -0.3]


def simulated(n_items=500, **options):
    return simulate_panel(n_items, M, **{"discriminations": G, "side_biases": SIDES, "seed": 3, **options})


@pytest.fixture(scope="module")
def verdicts():
    """With ties, which count as half a win."""
    frame = simulated()
    return frame.assign(verdict=np.where(np.arange(len(frame)) % 7 == 0, "tie", frame["verdict"]))


@pytest.fixture(scope="module")
def panel(verdicts):
    return fit_judge_panel(verdicts, B)


def fitted(frame, side_bias=True, ridge=0.0):
    """The fit alone, without resamples, which would be compiled for each size of data."""
    rows = panel_rows(frame, PanelColumns())
    options = BootstrapOptions(ridge=ridge)
    return fit_panel_board(rows.models, rows.cells, rows.judges, options, side_bias)


def naive(frame, side_bias=True, ridge=0.0, scaled_by=None):
    """Ratings, discriminations and side biases: the maximum of the likelihood, verdict by verdict.

    The first of the discriminations follows from the others, whose mean is 1; at the end their root mean square is,
    weighted by the judges' verdicts in ``scaled_by``: those of ``frame``, unless it is a resample.
    """
    models, judges = (sorted(set(frame[name])) for name in ("model_a", "judge"))
    a, b = (frame[side].map(models.index).to_numpy() for side in ("model_a", "model_b"))
    k = frame["judge"].map(judges.index).to_numpy()
    y = frame["verdict"].map({"model_a": 1.0, "tie": 0.5, "model_b": 0.0}).to_numpy()
    m, n = len(models), len(judges)

    def parts(x):
        g = np.r_[n - x[m : m + n - 1].sum(), x[m : m + n - 1]]
        return x[:m] - x[:m].mean(), g, x[m + n - 1 :] if side_bias else np.zeros(n)

    def loss(x):
        theta, g, sides = parts(x)
        z = g[k] * (theta[a] - theta[b]) + sides[k]
        p = 1 / (1 + np.exp(-z))
        r = p - y
        slope = np.bincount(a, g[k] * r, m) - np.bincount(b, g[k] * r, m) + 2 * ridge * theta
        of_g = np.bincount(k, r * (theta[a] - theta[b]), n)
        of_b = np.bincount(k, r, n) if side_bias else np.zeros(0)
        value = (np.logaddexp(0, z) - y * z).sum() + ridge * theta @ theta
        return value, np.r_[slope - slope.mean(), of_g[1:] - of_g[0], of_b]

    start = np.r_[np.zeros(m), np.ones(n - 1), np.zeros(n if side_bias else 0)]
    found = scipy.optimize.minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000}).x
    theta, g, sides = parts(found)
    told_by = (frame if scaled_by is None else scaled_by)["judge"]
    scale = np.sqrt(np.square(g)[told_by.map(judges.index)].mean())
    return 1000 + ELO * scale * theta, g / scale, sides


class TestFit:
    @pytest.mark.parametrize("side_bias", [True, False])
    @pytest.mark.parametrize("ridge", [0.0, 3.0])
    def test_is_the_naive_one(self, verdicts, side_bias, ridge):
        found = fitted(verdicts, side_bias, ridge)
        ratings, g, sides = naive(verdicts, side_bias, ridge)
        np.testing.assert_allclose(1000 + ELO * found.fitted.theta, ratings, atol=2e-4)
        np.testing.assert_allclose(found.fitted.g, g, atol=1e-6)
        np.testing.assert_allclose(found.fitted.b, sides if side_bias else np.zeros(3), atol=1e-6)

    def test_is_shown(self, verdicts, panel):
        ratings, g, sides = naive(verdicts)
        np.testing.assert_allclose(panel.ratings, ratings, atol=2e-4)
        np.testing.assert_allclose(panel.fit.discriminations, g, atol=1e-6)
        np.testing.assert_allclose(panel.fit.side_biases, sides, atol=1e-6)
        assert panel.fit.n_verdicts.tolist() == [500] * 3
        assert panel.fit.converged

    def test_one_judge_without_a_side_bias_is_bradley_terry(self, verdicts):
        own = verdicts[verdicts["judge"] == "judge-2"]
        found = fit_judge_panel(own, B, side_bias=False, cluster=False)
        battles = Battles.from_pandas(own.rename(columns={"verdict": "winner"}))
        plain = jaxeval.fit_bradley_terry(battles)
        np.testing.assert_allclose(found.ratings, plain.ratings, rtol=0, atol=1e-8)
        np.testing.assert_allclose(found.fit.standard_errors, plain.standard_errors, atol=1e-6)
        assert found.fit.log_likelihood == pytest.approx(plain.log_likelihood)
        assert found.fit.discriminations.tolist() == [1]
        assert found.judges()[["discrimination_lower", "discrimination_upper"]].to_numpy().tolist() == [[1, 1]]

    def test_planted_judges_are_recovered(self):
        g, sides = np.exp(np.linspace(-0.6, 0.6, 4)), np.array([0.4, -0.6, 0.0, 0.2])
        g /= np.sqrt(np.mean(g**2))
        strengths = pd.Series(np.linspace(-1, 1, 6), [*"abcdef"])
        frame = simulate_panel(20_000, discriminations=g, side_biases=sides, strengths=strengths, seed=1)
        found = fitted(frame)
        inverse = found.inverse_information()
        squares = score_squares(found.scores(), found.cells.count, VoteGroups())
        errors = np.sqrt(np.diag(inverse @ squares @ inverse))  # of strengths, discriminations, side biases
        assert (np.abs(np.concatenate(found.fitted) - np.r_[strengths, g, sides]) < 4 * errors).all()
        assert errors.max() < 0.05

    def test_sandwich_errors_are_those_of_draws(self, verdicts):
        """Within four standard errors of a standard deviation of so many draws."""
        n = 512
        panel, close = fit_judge_panel(verdicts, n), 4 / np.sqrt(2 * n)
        np.testing.assert_allclose(panel.fit.standard_errors, panel.standard_errors, rtol=close)
        own = np.sqrt(np.diag(panel.fit._covariance))[M:]
        told = panel.judges()[["discrimination_standard_error", "side_bias_standard_error"]]
        np.testing.assert_allclose(own, told.to_numpy().T.ravel(), rtol=close)


@pytest.mark.parametrize("ridge", [0.0, 3.0])
def test_the_host_fits_as_programs_do(verdicts, monkeypatch, ridge):
    monkeypatch.setattr(host_module, "spares_jax", lambda: False)
    compiled = fitted(verdicts, ridge=ridge).fitted
    monkeypatch.setattr(host_module, "spares_jax", lambda: True)
    monkeypatch.setattr(Program, "__call__", None)
    for host, known in zip(fitted(verdicts, ridge=ridge).fitted, compiled, strict=True):
        np.testing.assert_allclose(host, known, rtol=0, atol=1e-9)


class TestInvariance:
    def test_sides_swapped(self, verdicts, panel):
        swapped = verdicts.rename(columns={"model_a": "model_b", "model_b": "model_a"})
        swapped["verdict"] = verdicts["verdict"].replace({"model_a": "model_b", "model_b": "model_a"})
        other = fitted(swapped).fitted
        np.testing.assert_allclose(other.theta, panel.fit.theta, atol=1e-8)
        np.testing.assert_allclose(other.b, -panel.fit.side_biases, atol=1e-8)
        named = fit_judge_panel(swapped.assign(first=swapped["model_b"]), B, shown_first="first")
        np.testing.assert_allclose(named.fit.side_biases, panel.fit.side_biases, atol=1e-8)

    def test_what_is_fitted_decides_the_run_of_a_checkpoint(self, verdicts, tmp_path):
        fit_judge_panel(verdicts, B, checkpoint=tmp_path / "run")
        with pytest.raises(DataError, match="another run"):
            fit_judge_panel(verdicts, B, checkpoint=tmp_path / "run", side_bias=False)

    def test_gauge(self, verdicts, panel):
        other = fit_judge_panel(verdicts, B, gauge=("model-2", 1200.0))
        assert other.ratings["model-2"] == pytest.approx(1200)
        np.testing.assert_allclose(other.tiers(), panel.tiers())
        np.testing.assert_allclose(other.ratings - panel.ratings, (other.ratings - panel.ratings).iloc[0])

    def test_similar_data_share_programs(self, verdicts, panel, monkeypatch):
        monkeypatch.setattr(host_module, "spares_jax", lambda: False)
        fit_judge_panel(verdicts, B)
        with compilations() as count:
            fit_judge_panel(verdicts.iloc[30:], B)
        assert count.programs == []


class TestDraws:
    @pytest.mark.parametrize("scheme", ["items", "multinomial", pytest.param("poisson", marks=pytest.mark.slow)])
    def test_a_resample_is_what_is_refitted(self, verdicts, scheme):
        given = {} if scheme == "items" else {"scheme": scheme, "cluster": False}
        panel = fit_judge_panel(verdicts, B, **given)
        rows = panel_rows(verdicts, PanelColumns())
        options = BootstrapOptions(cluster="item" if scheme == "items" else None, n_resamples=B)
        options = options if scheme == "items" else BootstrapOptions(scheme=scheme, n_resamples=B)
        options = options.checked(rows)
        cells, drawn = whole_board(rows, options)
        fitted = fit_panel_board(rows.models, cells, rows.judges, options, True)
        refits = panel_refits(fitted, "", drawn, options)
        with double_precision():
            points, lost = np.asarray(draw_one(count_choices, refits.problem, refits.form, np.uint64(0), np.int64(7)))
        own = np.arange(len(cells.first))
        contests = pd.DataFrame({"judge": rows.judges[cells.judge], "model_a": rows.models[cells.first]})
        contests["model_b"] = rows.models[cells.second]
        wins, losses = (np.repeat(own, np.rint(2 * x).astype(int)) for x in (points[own], lost[own]))
        frame = pd.concat(
            [contests.loc[wins].assign(verdict="model_a"), contests.loc[losses].assign(verdict="model_b")]
        )
        ratings, g, sides = naive(frame, scaled_by=verdicts)  # every verdict twice, ties as one of each
        np.testing.assert_allclose(panel.draws[7], ratings, atol=2e-3)
        joint = panel.joint_judges
        np.testing.assert_allclose(joint.of(measure="discrimination").draws[7], g, atol=1e-5)
        np.testing.assert_allclose(joint.of(measure="side_bias").draws[7], sides, atol=1e-5)
        if scheme != "poisson":
            assert points.sum() + lost.sum() == len(verdicts)

    @pytest.mark.slow
    def test_newton_gives_what_chord_steps_give(self, verdicts, panel, monkeypatch):
        from jaxeval.kernels.batch.refits import Solver
        from jaxeval.ratings import panel_boards as module

        monkeypatch.setattr(module, "_MAX_STEPS", {Solver.NEWTON: 200})
        other = fit_judge_panel(verdicts, B)
        np.testing.assert_allclose(other.draws, panel.draws, rtol=0, atol=1e-5)
        assert other.n_by_slower_solvers == B
        assert panel.n_by_slower_solvers == 0

    def test_tables(self, panel):
        joint = panel.joint_judges
        table = panel.judges(0.9)
        ends = joint.interval(0.9).xs("side_bias")
        np.testing.assert_array_equal(table["side_bias_upper"], ends["upper"])
        board = leaderboard(panel)
        assert [row["judge"] for row in board.attrs["judges"]] == ["judge-1", "judge-2", "judge-3"]
        assert SHARED_TASTE in board.attrs["warnings"]
        assert board["vote_count"].sum() == 2 * 1500
        assert not any("penalty" in text for text in board.attrs["warnings"])

    def test_slices(self, verdicts):
        """Each of the size of the other tests' data."""
        frame = pd.concat([verdicts.assign(lang="en"), simulated(seed=4).assign(lang="de")])
        boards = fit_judge_panel(frame, B, by="lang")
        np.testing.assert_allclose(boards["en"].fit.theta, fitted(verdicts).fitted.theta, atol=1e-8)
        assert len(leaderboard(boards)) == 2 * M


class TestItems:
    def test_are_drawn_whole_unless_asked(self, verdicts, panel):
        assert panel.settings.cluster == "item"
        assert panel.n_clusters == 500
        rows = fit_judge_panel(verdicts, B, cluster=False)
        assert rows.n_clusters is None
        assert any("one by one" in text for text in rows.warnings)

    def test_none_is_told(self, verdicts, panel):
        assert NO_ITEMS not in panel.warnings
        found = fit_judge_panel(verdicts.drop(columns="item"), B)
        assert NO_ITEMS in found.warnings

    @pytest.mark.slow
    def test_judges_who_err_together_are_covered(self):
        """Intervals of 95 % of differences; benchmarks/judge_panel.py has more panels."""
        strengths = pd.Series(np.linspace(-1, 1, M), [*"abcde"])
        truth = ELO * (strengths.to_numpy()[:, None] - strengths.to_numpy())
        inside = {None: [], False: []}
        for seed, cluster in itertools.product(range(15), inside):
            frame = simulate_panel(300, discriminations=[1.0] * 8, strengths=strengths, together=0.7, seed=seed)
            lower, upper = fit_judge_panel(frame, 100, cluster=cluster).difference_interval()
            pairs = np.triu_indices(M, 1)
            inside[cluster].append(((lower <= truth) & (truth <= upper)).to_numpy()[pairs].mean())
        assert np.mean(inside[None]) > 0.85
        assert np.mean(inside[False]) < 0.75


class TestFewVerdicts:
    def test_are_moved_towards_a_half_by_one_for_each_parameter(self, verdicts):
        """As if each contest had its share of as many ties as there are parameters."""
        few = verdicts[verdicts["item"] < 60].reset_index(drop=True)
        found, n = fitted(few), M + 2 * 3 - 2
        assert FEW_VERDICTS in found.flags
        ties = few.loc[few.index.repeat(n)].assign(verdict="tie")  # each verdict times 180, and n ties
        ratings, g, sides = naive(pd.concat([few.loc[few.index.repeat(len(few))], ties]))
        np.testing.assert_allclose(1000 + ELO * found.fitted.theta, ratings, atol=2e-3)
        np.testing.assert_allclose(found.fitted.g, g, atol=1e-5)
        np.testing.assert_allclose(found.fitted.b, sides, atol=1e-5)
        assert FEW_VERDICTS not in fitted(verdicts).flags
        assert FEW_VERDICTS not in fitted(few, ridge=1.0).flags

    def test_a_slice_is_moved_as_by_itself(self):
        """Judges without verdicts in it, and models without a finite rating, are no parameters."""
        few = simulate_panel(40, M, discriminations=[1.2, 0.8], seed=3)
        alone, rows = fitted(few), panel_rows(few, PanelColumns())
        judges = rows.judges.append(pd.Index([f"elsewhere-{k}" for k in range(40)]))
        beside = fit_panel_board(rows.models, rows.cells, judges, BootstrapOptions(), True)
        assert not alone.active.all()
        rated = ~(few == rows.models[~alone.active][0]).any(axis=1)
        np.testing.assert_allclose(beside.fitted.theta, alone.fitted.theta, atol=1e-8)
        np.testing.assert_allclose(fitted(few[rated]).fitted.theta, alone.fitted.theta[alone.active], atol=1e-8)

    def test_a_factor_in_all_weights_changes_nothing(self):
        few = simulate_panel(40, M, discriminations=[1.2, 0.8], seed=3).rename(columns={"verdict": "winner"})
        weight = 1 + np.arange(len(few)) % 3
        found = [fitted(Battles.from_pandas(few.assign(w=weight * x), weight="w")) for x in (1.0, 0.01, 10.0)]
        for other in found[1:]:
            np.testing.assert_allclose(np.concatenate(other.fitted), np.concatenate(found[0].fitted), atol=1e-6)

    def test_a_judge_without_exception_keeps_a_finite_scale(self):
        """In the data, and in every resample: whole steps swung between two points in half of them."""
        frame = simulate_panel(60, M, discriminations=[1.5, 1.0, 0.6, 0.25], seed=3)
        found = fit_judge_panel(frame, B)
        assert found.converged.all()
        assert np.isfinite(found.draws).all()
        assert "400 more are odds of 10 to 1 by a typical judge of judge-1, judge-2" in found.first_sentence()


class TestScale:
    def test_every_judge_counts_by_verdicts(self):
        assert typical(np.array([[3.0, -1.0], [0.0, 2.0]]), np.array([0.25, 0.75])) == pytest.approx([3**0.5, 3**0.5])
        left_out = typical(np.array([[3.0, -1.0, np.nan], [np.nan, 2.0, np.nan]]), np.array([0.25, 0.75, 0.0]))
        np.testing.assert_allclose(left_out, [3**0.5, 2.0])

    def test_judges_who_say_little_hardly_move_ratings(self, verdicts):
        """However many standard errors from 0 such a judge is."""
        own = verdicts[verdicts["judge"] == "judge-1"]
        more = [own.iloc[n : n + 12].assign(judge="few") for n in range(0, 240, 12)]
        spread = [np.std(fitted(pd.concat([verdicts, few])).fitted.theta) for few in more]
        assert np.ptp(spread) < 0.1 * np.mean(spread)

    @pytest.mark.slow
    def test_a_weak_judge_leaves_differences_covered(self):
        """Intervals of 95 % of differences, with a judge who is now within and now beyond three errors of 0."""
        g, strengths = np.array([1.0, 1.3, 0.15]), pd.Series(np.linspace(-1, 1, 4), [*"abcd"])
        truth = ELO * np.sqrt(np.mean(g**2)) * (strengths.to_numpy()[:, None] - strengths.to_numpy())
        inside, pairs = [], np.triu_indices(4, 1)
        for seed in range(40):
            frame = simulate_panel(120, discriminations=g, strengths=strengths, seed=seed)
            lower, upper = fit_judge_panel(frame, 200, seed).difference_interval()
            inside.append(((lower <= truth) & (truth <= upper)).to_numpy()[pairs].mean())
        # Standard error .015; percentiles that are not corrected hold .90 or so.
        assert np.mean(inside) == pytest.approx(0.95, abs=0.035)

    def test_ends_are_bias_corrected_percentiles(self, verdicts):
        """Of ratings and of differences: a naive twin, one quantity at a time."""
        found = fit_judge_panel(verdicts, 200)
        names, draws, estimate = found.models, found.joint.draws, found.joint.estimate

        def ends(x, centre):
            z0 = norm.ppf(np.clip(np.mean(x < centre) + np.mean(x == centre) / 2, 0.01, 0.99))
            own = np.quantile(x, norm.cdf(2 * z0 + norm.ppf([0.025, 0.975])))
            freedom = found.fit.freedom  # of 500 items
            return centre + (own - centre) * t.ppf(0.975, freedom) / norm.ppf(0.975) * np.sqrt(1 + 1 / freedom)

        for k, name in enumerate(names):
            np.testing.assert_allclose(found.interval().loc[name], ends(draws[:, k], estimate[k]))
        lower, upper = found.difference_interval()
        apart = ends(draws[:, 0] - draws[:, 1], estimate[0] - estimate[1])
        np.testing.assert_allclose([lower.iloc[0, 1], upper.iloc[0, 1]], apart)
        np.testing.assert_allclose([-upper.iloc[1, 0], -lower.iloc[1, 0]], apart)


class TestWhatCannotBeTold:
    def one_sided(self, pairs, n=40, judges=("j1", "j2")):
        rng = np.random.default_rng(0)
        rows = [(j, k, a, b, rng.choice(["model_a", "model_b"])) for j in judges for a, b in pairs for k in range(n)]
        return pd.DataFrame(rows, columns=["judge", "item", "model_a", "model_b", "verdict"])

    @pytest.mark.parametrize(("pairs", "told"), [
        ([("ref", x) for x in "abc"], "ref is always on side A and a, b, c are always on side B"),
        (list(itertools.product("abc", "xyz")), "a, b, c are always on side A and x, y, z are always on side B"),
    ])  # fmt: skip
    def test_side_biases_and_ratings(self, pairs, told):
        frame = self.one_sided(pairs)
        found = fit_judge_panel(frame, B)
        assert found.ratings.isna().all()
        assert set(found.fit.standing) == {CONFOUNDED}
        assert found.fit.discriminations.isna().all()
        assert found.judges()["flags"].ne("").all()
        text = " ".join(found.warnings)
        assert told in text
        assert "side_bias=False" in text
        assert "took points" not in text
        assert leaderboard(found)["rating"].isna().all()
        without = fitted(frame, side_bias=False)
        assert without.active.all()
        assert set(without.flags) <= {FEW_VERDICTS}

    def test_discriminations_of_judges_with_one_model_in_common(self):
        pairs = [list(itertools.permutations(own, 2)) for own in ("abc", "cde")]
        frame = pd.concat([self.one_sided(own, judges=[judge]) for own, judge in zip(pairs, ["j1", "j2"], strict=True)])
        found = fitted(frame)
        assert not found.active.any()
        assert "cannot be compared" in found.flags[0]

    def test_judges_at_0_and_against_the_panel(self):
        frame = simulate_panel(500, M, discriminations=[1.0, 1.2, 0.0, -1.0], seed=1)
        found = fit_judge_panel(frame, B)
        flags = found.judges()["flags"]
        assert flags["judge-3"].startswith("may not follow")
        assert flags["judge-4"].startswith("goes against")
        assert flags["judge-1"] == flags["judge-2"] == ""
        assert np.square(found.fit.discriminations).mean() == pytest.approx(1)
        draws = found.joint_judges.of(measure="discrimination").draws
        np.testing.assert_allclose(np.square(draws).mean(1), 1)

    def test_judges_who_contradict_each_other(self):
        """No mean of both discriminations is of use for a scale."""
        frame = simulate_panel(500, M, discriminations=[1.0, -1.0], seed=1)
        found = fit_judge_panel(frame, B)
        assert found.converged.all()
        assert sorted(np.sign(found.fit.discriminations)) == [-1, 1]
        assert any("against the ratings" in text for text in found.warnings)

    def test_nothing_but_ties(self, verdicts):
        found = fitted(verdicts.assign(verdict="tie"))
        np.testing.assert_allclose(np.concatenate(found.fitted), [0.0] * M + [1.0] * 3 + [0.0] * 3)

    def test_judges_who_say_too_little(self, verdicts):
        pair = {"judge": "once", "item": [0, 1], "model_a": "model-1", "model_b": "model-2"}
        once = pd.DataFrame({**pair, "verdict": ["model_a", "model_b"]})
        side = verdicts.iloc[:60].assign(judge="always A", verdict="model_a")
        without = fitted(verdicts).fitted
        for more, name, why in ((once, "once", "too few"), (side, "always A", "one side")):
            found = fitted(pd.concat([verdicts, more]))
            assert why in found.judge_status[list(found.judges).index(name)]
            np.testing.assert_allclose(found.fitted.theta, without.theta, atol=1e-8)
            np.testing.assert_allclose(found.fitted.g[found.judges != name], without.g, atol=1e-8)
            assert any(name in text for text in messages_of(found))

    def test_a_judge_who_follows_the_ratings_without_exception(self, verdicts):
        order = pd.Series(fitted(verdicts).fitted.theta, sorted(set(verdicts["model_a"])))
        a, b = (verdicts[side].map(order) for side in ("model_a", "model_b"))
        sure = verdicts.assign(judge="sure", verdict=np.where(a > b, "model_a", "model_b")).iloc[:300]
        found = fitted(pd.concat([verdicts, sure]))
        assert "without exception" in found.judge_status[list(found.judges).index("sure")]
        np.testing.assert_allclose(found.fitted.theta, order, atol=1e-8)

    @pytest.mark.slow
    def test_models_apart(self, verdicts):
        more = pd.DataFrame(
            {"judge": ["judge-1", "judge-1", "judge-1", "judge-2", "judge-3"], "item": [900, 901, 902, 903, 904],
             "model_a": ["model-1", "new", "model-1", "model-2", "few"],
             "model_b": ["new", "model-2", "few", "few", "model-2"],
             "verdict": ["model_b", "model_a", "model_b", "model_a", "model_a"]}
        )  # fmt: skip
        found = fit_judge_panel(pd.concat([verdicts, more]), B)
        assert found.fit.standing["new"] == "undefeated"
        assert found.ratings["new"] == np.inf
        assert 0 < found.degenerate.loc["few"].sum() < B
        assert 0 < found.n_by_slower_solvers < B
        assert found.converged.all()

    def test_nothing_is_rated(self):
        frame = pd.DataFrame({"judge": ["j"], "item": [1], "model_a": ["a"], "model_b": ["b"], "verdict": ["model_a"]})
        found = fit_judge_panel(frame, B)
        assert not np.isfinite(found.ratings).any()

    def test_two_models_by_judges_whose_side_biases_are_unknown(self):
        """They met, and took points off each other: no sentence says otherwise. What it advises gives ratings."""
        verdicts = ["model_a", "model_b", "model_b", "tie"] * 2
        pair = {"item": [0, 1, 2, 3] * 2, "model_a": "a", "model_b": "b", "verdict": verdicts}
        frame = pd.DataFrame({"judge": ["j"] * 4 + ["k"] * 4, **pair})
        found = fit_judge_panel(frame, B)
        assert found.first_sentence().startswith("no model can be ranked: all judges are left out (too few different")
        assert not any("never met" in text or "took points" in text for text in found.warnings)
        assert np.isfinite(fit_judge_panel(frame, B, side_bias=False).ratings).all()


@pytest.mark.slow
def test_the_arena(data):
    """Three judges of 27,000 votes: smaller errors than each, and no better ranks than the best (tau .947)."""
    table = pd.read_parquet(data / "arena27k_human_3judges.parquet")
    judges = ["gpt4_0125", "claude3_opus", "gpt35_turbo"]
    sides = table[["model_a", "model_b"]]
    panel = fit_judge_panel(table.drop(columns="human"), 2, judges=judges)
    plain = {name: jaxeval.fit_bradley_terry(sides.assign(winner=table[name])).ratings for name in ["human", *judges]}

    def error(ratings):
        return np.sqrt(((ratings - plain["human"]) ** 2).mean())

    assert error(panel.ratings) == pytest.approx(17.83, abs=0.01)
    assert min(error(plain[name]) for name in judges) == pytest.approx(33.89, abs=0.01)
    boards = {**plain, "panel": panel.ratings}
    tau = {name: ratings.corr(plain["human"], "kendall") for name, ratings in boards.items()}
    assert tau["panel"] == pytest.approx(0.916, abs=5e-4)
    assert max(tau[name] for name in judges) == pytest.approx(0.947, abs=5e-4)
    assert panel.fit.side_biases["gpt35_turbo"] == pytest.approx(1.914, abs=1e-3)


def test_judges_of_unrated_models_tell_who_met(verdicts):
    few = verdicts[(verdicts["item"] < 40) & (verdicts["judge"] == "judge-1")]
    few = few.replace(r"^(model|judge)-", r"other-\1-", regex=True)
    panel = fit_judge_panel(pd.concat([verdicts, few]), B)
    assert any("2 groups that never met (5, 5 models)" in message for message in panel.warnings)


def test_a_fit_without_an_end_ranks_nobody(panel):
    """A judge that hardly follows the others may leave the likelihood without a maximum."""
    endless = replace(panel, fit=replace(panel.fit, converged=False, status="stopped before converging"))
    said = endless.first_sentence(min_battles=10**6)
    assert said == "no model can be ranked: the fit stopped before converging, so ratings are no estimates"
    assert endless.first_sentence() == panel.first_sentence()
