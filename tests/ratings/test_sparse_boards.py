"""Boards rated on the graph of pairs: equal to the dense method, draw by draw, and what they promise beyond."""

import re
from io import StringIO

import jax
import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from scipy.optimize import minimize
from scipy.special import expit

from jaxeval import Battles, bootstrap, fit_bradley_terry, leaderboard
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch.refits import draw, draw_pairs
from jaxeval.kernels.batch.sparse import refit_sparse
from jaxeval.kernels.pair_tables import unpacked
from jaxeval.plots.boards import plot_leaderboard
from jaxeval.ratings.boards import fit_boards
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.pair_refits import dense_refits, sparse_refits
from jaxeval.ratings.refits import Refitted
from jaxeval.ratings.sparse_boards import SPARSE_MODELS, resolved
from jaxeval.ratings.vote_groups import vote_groups
from jaxeval.show.screens import print_answer
from jaxeval.statistics import comparison

# Both methods stop within 1e-8 logits of the maximum of a resample.
SAME_ELO = 4e-6


def matches(n=1500, m=70, seed=0, soft=False):
    """Uneven matches: most play few, some never lose or never win, two pairs met nobody else."""
    rng = np.random.default_rng(seed)
    skill, activity = rng.normal(0, 1.2, m), rng.lognormal(0, 1.2, m)
    a, b = rng.choice(m, (2, n), p=activity / activity.sum())
    keep = a != b
    a, b = a[keep], b[keep]
    win = rng.random(len(a)) < expit(skill[a] - skill[b])
    target = np.where(rng.random(len(a)) < 0.15, 0.5, win.astype(float))
    a, b = np.append(a, [m, m, m + 2]), np.append(b, [m + 1, m + 1, m + 3])
    target = np.append(target, [1.0, 0.0, 1.0])
    a, b, target = np.append(a, [m + 4, 0]), np.append(b, [0, m + 5]), np.append(target, [1.0, 1.0])
    table = pd.DataFrame({"model_a": [f"p{i}" for i in a], "model_b": [f"p{i}" for i in b], "target": target})
    table["voter"] = rng.integers(0, len(a) // 2, len(a))
    table["season"] = np.where(rng.random(len(a)) < 0.5, "spring", "autumn")
    table["own voter"] = table["season"] + table["voter"].astype(str)  # who votes in one season
    if soft:
        table["target"] = (table["target"] * 3 + rng.integers(0, 3, len(a))) / 5
        table["weight"] = rng.integers(1, 4, len(a)) / 2
    return table


@pytest.fixture(scope="module")
def battles():
    return Battles.from_pandas(matches())


def assert_same_fit(one, other):
    for name in ("ratings", "logits"):
        mine, theirs = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(mine, theirs, atol=1e-6)
    for name in ("standing", "component", "n_battles"):
        pd.testing.assert_series_equal(getattr(one, name), getattr(other, name))
    assert one.status == other.status
    assert one.warnings == other.warnings
    assert one.log_likelihood == pytest.approx(other.log_likelihood)


def assert_same_draws(one, other, atol=SAME_ELO):
    np.testing.assert_allclose(one.draws, other.draws, atol=atol)
    pd.testing.assert_frame_equal(one.degenerate, other.degenerate)
    assert one.converged.all()
    assert other.converged.all()


class TestFit:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "options",
        [{}, {"ridge": 0.3}, {"ridge": 1e-6}, {"reweight": True, "gauge": "votes"}, {"gauge": ("p0", 1234.0)}],
        ids=str,
    )
    def test_equals_the_dense_one(self, battles, options):
        dense = fit_bradley_terry(battles, method="dense", **options)
        sparse = fit_bradley_terry(battles, method="sparse", **options)
        assert (dense.settings.method, sparse.settings.method) == ("dense", "sparse")
        assert_same_fit(sparse, dense)
        assert dense.component.max() == 3
        if not options:
            assert set(sparse.standing) == {"", "undefeated", "winless", "not comparable"}
            np.testing.assert_allclose(sparse.standard_errors, dense.standard_errors, rtol=1e-6)
            np.testing.assert_allclose(sparse.covariance, dense.covariance, rtol=1e-5, atol=1e-6)

    def test_equals_an_independent_optimum(self, battles):
        fit = fit_bradley_terry(battles, 0.1, method="sparse")
        a, b, y = battles.model_a, battles.model_b, battles.target

        def loss(theta):
            p = expit(theta[a] - theta[b])
            value = -np.sum(y * np.log(p) + (1 - y) * np.log1p(-p)) + 0.1 * theta @ theta
            pull = p - y
            return value, np.bincount(a, pull, len(theta)) - np.bincount(b, pull, len(theta)) + 0.2 * theta

        found = minimize(
            loss, np.zeros(battles.n_models), jac=True, method="L-BFGS-B", options={"gtol": 1e-9, "ftol": 0}
        )
        np.testing.assert_allclose(fit.logits, found.x, atol=1e-6)

    def test_the_unit_of_weights_changes_nothing(self, battles):
        weighed = Battles.from_pandas(matches().assign(weight=2e5), weight="weight")
        found, expected = (fit_bradley_terry(own, method="sparse").ratings for own in (weighed, battles))
        np.testing.assert_allclose(found, expected, atol=1e-6)

    def test_nobody_has_a_finite_rating(self):
        """The pairs are those of the other board: one program fits both."""
        table = matches()
        table["target"] = (table["model_a"] < table["model_b"]).astype(float)
        dense, sparse = (fit_bradley_terry(Battles.from_pandas(table), method=m) for m in ("dense", "sparse"))
        assert_same_fit(sparse, dense)


@pytest.fixture(scope="module")
def resampled(battles):
    return bootstrap(battles, 16, seed=3, method="sparse", progress=False)


@pytest.mark.slow
class TestWeakBridges:
    """Two groups of equal numbers in every pair, joined by four battles won 3:1: their gap is known."""

    @staticmethod
    def joined(number, m=12):
        rng = np.random.default_rng(0)
        theta = rng.normal(0, 1, m)
        pairs = [(i, j) for i in range(m) for j in range(i) if rng.random() < 0.6 or i == j + 1]
        rows = [("a0", "b0", 1.0, 3), ("a0", "b0", 0.0, 1)]
        for group in "ab":
            for i, j in pairs:
                wins = round(number / (1 + np.exp(theta[j] - theta[i])))
                rows += [(f"{group}{i}", f"{group}{j}", y, n) for y, n in ((1.0, wins), (0.0, number - wins))]
        table = pd.DataFrame(rows, columns=["model_a", "model_b", "target", "n"])
        return Battles.from_pandas(table, count="n")

    @pytest.mark.parametrize("number", [100, 10**5])
    def test_the_gap_of_groups_that_little_joins(self, number):
        fit = fit_bradley_terry(self.joined(number), method="sparse")
        assert fit.converged
        np.testing.assert_allclose(fit.ratings["a0"] - fit.ratings["b0"], 400 * np.log10(3), rtol=0, atol=1e-6)

    @pytest.mark.parametrize("number", [10**10, 10**14])
    def test_what_rounding_decides_is_told(self, number):
        """As four battles beside billions, which it hides altogether in the end."""
        fit = fit_bradley_terry(self.joined(number), method="sparse")
        assert not fit.converged
        assert fit.warnings == [
            "the fit stopped before converging, at the step limit or at the limit of double precision"
        ]


class TestBootstrap:
    @pytest.mark.slow
    def test_the_board_is_one_that_resamples_break(self, resampled):
        assert resampled.settings.method == "sparse"
        assert resampled.converged.all()
        assert np.isinf(resampled.draws).any()
        assert np.isnan(resampled.draws).any()

    @pytest.mark.slow
    def test_single_precision(self, battles, resampled):
        single = bootstrap(battles, 16, seed=3, method="sparse", progress=False, dtype="float32")
        assert_same_draws(single, resampled, atol=0.05)

    @pytest.mark.slow
    def test_soft_targets_weights_and_a_ridge_equal_the_dense_method(self):
        battles = Battles.from_pandas(matches(soft=True), weight="weight")
        given = {"scheme": "bayesian", "ridge": 0.2, "reweight": True, "progress": False}
        assert_same_draws(*(bootstrap(battles, 12, method=method, **given) for method in ("sparse", "dense")))

    @pytest.mark.parametrize(
        ("scheme", "strata"),
        [("multinomial", None), pytest.param("poisson", None, marks=pytest.mark.slow),
         pytest.param("bayesian", None, marks=pytest.mark.slow), pytest.param("cluster", None, marks=pytest.mark.slow),
         pytest.param("multinomial", "season", marks=pytest.mark.slow), ("cluster", "season")],
    )  # fmt: skip
    @pytest.mark.parametrize("label", [pytest.param("", marks=pytest.mark.slow), "spring"])
    def test_draws_are_those_of_the_dense_method(self, battles, scheme, strata, label):
        cells, cell = battles.compress(slice(None))
        cluster = ("own voter" if strata else "voter") if scheme == "cluster" else None
        groups = vote_groups(battles, cluster, strata)(slice(None), cell)
        options = [BootstrapOptions(scheme=scheme, method=method) for method in ("dense", "sparse")]
        dense, sparse = (fit_boards([(battles.models, cells)], own)[0] for own in options)
        refits = dense_refits([dense], [label], [groups], options[0])
        plan, own = refits.form, sparse_refits(sparse, label, groups, options[1])
        method = own.form._replace(n_pairs=plan.n_pairs)
        with double_precision():
            n, wins = draw(refits.problem, method, np.uint64(5), 0, 11)
            layout, _ = own.problem.data
            drawn = jax.jit(draw_pairs, static_argnums=2)(own.problem, layout, own.form, np.uint64(5), np.array([11]))
            mine = np.stack(unpacked(drawn, own.form.packing, np.float64))[:, 0, : len(cells.first)]
        theirs = np.stack([np.asarray(table)[cells.first, cells.second] for table in (n, wins)])
        np.testing.assert_allclose(mine, theirs, rtol=1e-13, atol=1e-13)

    @pytest.mark.slow
    def test_slices_choose_for_themselves(self, monkeypatch):
        monkeypatch.setattr("jaxeval.ratings.sparse_boards.SPARSE_MODELS", 60)
        table = matches()
        few = [f"p{i}" for i in range(30)]
        table = table[(table["season"] == "spring") | (table["model_a"].isin(few) & table["model_b"].isin(few))]
        posed = []

        def refit(problem, *_):
            posed.append(problem)
            if problem.program is not refit_sparse:
                raise ZeroDivisionError
            m = problem.n_parameters
            shapes = {"parameters": (2, m), "standing": (2, m)}
            kinds = {"parameters": float}
            return [Refitted(*(np.zeros(shapes.get(name, 2), kinds.get(name, int)) for name in Refitted._fields))]

        monkeypatch.setattr("jaxeval.ratings.refits.refit", refit)
        with pytest.raises(ZeroDivisionError):
            bootstrap(Battles.from_pandas(table), 2, by="season", progress=False)
        wide, narrow = posed
        assert wide.n_parameters >= 60
        assert len(narrow.problem.stream) == 1


@pytest.mark.slow
def test_football_results_equal_the_dense_method(data):
    """337 national teams, 49,520 matches, some of regions that met nobody else."""
    table = pd.read_parquet(data / "football_international_results.parquet")
    table = table.dropna(subset=["home_score", "away_score"])
    target = (np.sign(table["home_score"] - table["away_score"]) + 1) / 2
    battles = Battles.from_pandas(
        table.assign(target=target), model_a="home_team", model_b="away_team", target="target"
    )
    dense, sparse = (bootstrap(battles, 4, method=m, progress=False) for m in ("dense", "sparse"))
    assert_same_fit(sparse.fit, dense.fit)
    assert_same_draws(sparse, dense)
    assert sparse.degenerate.to_numpy().any()


class TestChoice:
    def test_by_the_number_of_models(self):
        assert resolved("auto", SPARSE_MODELS - 1) == "dense"
        assert resolved("auto", SPARSE_MODELS) == "sparse"
        assert resolved("dense", 10**6) == "dense"

    def test_unknown_methods_are_refused(self, battles):
        with pytest.raises(ValueError, match="method must be one of 'auto', 'dense', 'sparse', got 'fast'"):
            fit_bradley_terry(battles, method="fast")

    def test_features_and_tie_models_are_dense(self, battles):
        for call in (fit_bradley_terry, bootstrap):
            with pytest.raises(ValueError, match="takes no features and no tie model"):
                call(battles, ties="davidson", method="sparse")


@pytest.fixture(scope="module", params=["few", pytest.param("thousands", marks=pytest.mark.slow)])
def wide(request, resampled):
    """More models than a table of all pairs may have: more than 10,000, or 76 where 50 are the most."""
    if request.param == "few":
        with pytest.MonkeyPatch.context() as patch:
            for limit in ("statistics.comparison.MOST_SQUARE", "ratings.bradley_terry_fit.MOST_SQUARE",
                          "ratings.boards.MOST_INVERTED"):  # fmt: skip
                patch.setattr(f"jaxeval.{limit}", 50)
            yield resampled
        return
    rng = np.random.default_rng(0)
    n, m = 21_000, 10_500  # some of which have no battle
    a, b = rng.integers(0, m, (2, n))
    keep = a != b
    table = pd.DataFrame({"model_a": a[keep], "model_b": b[keep], "target": rng.integers(0, 3, keep.sum()) / 2})
    yield bootstrap(Battles.from_pandas(table), 3, progress=False)


class TestWide:
    """More competitors than tables of all pairs are for: nothing allocates a table of all pairs."""

    def test_the_board(self, wide):
        assert wide.settings.method == "sparse"
        assert wide.converged.all()
        table = leaderboard(wide)
        assert len(table) == len(wide.models) > comparison.MOST_SQUARE
        assert any("undefeated" in s for s in table["standing"])
        assert any("groups that never met" in w for w in table.attrs["warnings"])

    def test_the_first_rows_are_printed_and_drawn(self, wide):
        console = Console(file=StringIO(), width=120)
        table = leaderboard(wide)
        print_answer(table.answer, console)
        text = console.file.getvalue()
        (more,) = re.findall(
            r"^\.\.\. and ([\d,]+) more models \(--full prints all, --out writes all\)", text, re.MULTILINE
        )
        assert len(table) - 40 < int(more.replace(",", "")) < len(table) - 5
        assert len(text.splitlines()) <= 40
        assert "sparse method" in " ".join(table.answer.notes)
        (axis,) = plot_leaderboard(table).axes
        assert len(axis.get_yticks()) == 40

    def test_tables_of_all_pairs_are_refused_in_words(self, wide):
        for ask in (
            lambda: wide.fit.covariance,
            lambda: wide.fit.standard_errors,
            lambda: wide.fit.win_probability,
            lambda: wide.beat_share,
            wide.difference_interval,
        ):
            with pytest.raises(ValueError, match=r"models, beyond the .* that it is meant for; use"):
                ask()

    def test_tiers_and_ranks_are_left_out_with_a_warning(self, wide, monkeypatch):
        monkeypatch.setattr("jaxeval.statistics.differences.MOST_COMPARISONS", 1000)
        table = leaderboard(wide)
        assert table[["rank_best", "rank_worst", "tier"]].isna().all(axis=None)
        assert table["rank"].notna().any()
        assert any(w.startswith("no tiers and no rank spread: ") for w in table.attrs["warnings"])
        for ask in (wide.tiers, wide.rank_sets):
            with pytest.raises(ValueError, match="tiers and ranks compare all pairs"):
                ask()

    def test_fewer_models_bring_them_within_reach(self, wide, monkeypatch):
        battles = wide.fit.n_battles.sort_values(ascending=False)
        least = int(battles.iloc[9]) + 1
        monkeypatch.setattr("jaxeval.statistics.differences.MOST_COMPARISONS", wide.differences(least).n_comparisons)
        table = leaderboard(wide, min_battles=least)
        assert 1 < table["rank"].notna().sum() < 10
        assert table["rank_best"].notna().equals(table["rank"].notna())
        assert not any(w.startswith("no tiers") for w in table.attrs["warnings"])
