"""Boards rated on the graph of pairs: equal to the dense method, draw by draw, and what they promise beyond."""

import os
import subprocess
import sys

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from jaxeval import Battles, bootstrap, fit_bradley_terry, leaderboard, read_battles
from jaxeval.sparse_boards import SPARSE_MODELS, resolved

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

    def test_invariances(self, battles):
        """Other names, sides turned, twice the battles as weight or as rows, all weights scaled."""
        table = matches()
        fit = fit_bradley_terry(battles, method="sparse").ratings
        names = {name: f"q{hash_:03d}" for hash_, name in enumerate(np.random.default_rng(1).permutation(fit.index))}
        turned = table.assign(
            model_a=table["model_b"].map(names), model_b=table["model_a"].map(names), target=1 - table["target"]
        )
        weighed = Battles.from_pandas(turned.assign(weight=2e5), weight="weight")
        for other in (Battles.from_pandas(turned), Battles.from_pandas(pd.concat([turned, turned])), weighed):
            found = fit_bradley_terry(other, method="sparse").ratings
            np.testing.assert_allclose(found[[names[m] for m in fit.index]], fit, atol=1e-6)

    def test_nobody_has_a_finite_rating(self):
        table = pd.DataFrame({"model_a": ["a", "c"], "model_b": ["b", "d"], "target": [1.0, 1.0]})
        dense, sparse = (fit_bradley_terry(Battles.from_pandas(table), method=m) for m in ("dense", "sparse"))
        assert_same_fit(sparse, dense)


class TestBootstrap:
    @pytest.fixture(scope="class")
    def plain(self, battles):
        return bootstrap(battles, 40, seed=3, method="sparse", progress=False)

    def test_equals_the_dense_one(self, battles, plain):
        dense = bootstrap(battles, 40, seed=3, method="dense", progress=False)
        assert plain.settings.method == "sparse"
        assert_same_draws(plain, dense)
        assert np.isinf(plain.draws).any()
        assert np.isnan(plain.draws).any()

    def test_any_chunks_give_the_same_draws(self, battles, plain):
        for size in (7, 40):
            other = bootstrap(battles, 40, seed=3, method="sparse", progress=False, chunk_size=size)
            np.testing.assert_allclose(other.draws, plain.draws, atol=1e-9)
        np.testing.assert_allclose(
            bootstrap(battles, 7, seed=3, method="sparse", progress=False, chunk_size=7).draws,
            plain.draws[:7],
            atol=1e-9,
        )

    def test_single_precision(self, battles, plain):
        single = bootstrap(battles, 40, seed=3, method="sparse", progress=False, dtype="float32")
        assert_same_draws(single, plain, atol=0.05)

    def test_soft_targets_weights_and_a_ridge(self):
        battles = Battles.from_pandas(matches(soft=True), weight="weight")
        given = {"scheme": "bayesian", "ridge": 0.2, "reweight": True, "progress": False}
        both = [bootstrap(battles, 12, method=method, **given) for method in ("sparse", "dense")]
        assert_same_draws(*both)

    def test_clusters(self, battles):
        both = [bootstrap(battles, 12, cluster="voter", method=m, progress=False) for m in ("sparse", "dense")]
        assert_same_draws(*both)
        assert both[0].settings.scheme == "cluster"

    def test_slices_choose_for_themselves(self, battles, monkeypatch):
        """The draws of a slice do not depend on how it is rated, nor on the others."""
        monkeypatch.setattr("jaxeval.sparse_boards.SPARSE_MODELS", 60)
        table = matches()
        narrow = table["model_a"].isin([f"p{i}" for i in range(30)]) & table["model_b"].isin(
            [f"p{i}" for i in range(30)]
        )
        table = table[(table["season"] == "spring") | narrow]
        given = {"by": "season", "scheme": "poisson", "progress": False}
        auto = bootstrap(Battles.from_pandas(table), 12, **given)
        assert {name: board.settings.method for name, board in auto.items()} == {"spring": "sparse", "autumn": "dense"}
        dense = bootstrap(Battles.from_pandas(table), 12, method="dense", **given)
        for name in auto:
            assert_same_draws(auto[name], dense[name])


def test_football_results_equal_the_dense_method(data):
    """337 national teams, 49,520 matches, some of regions that met nobody else."""
    table = pd.read_parquet(data / "football_international_results.parquet")
    table = table.dropna(subset=["home_score", "away_score"])
    target = (np.sign(table["home_score"] - table["away_score"]) + 1) / 2
    battles = Battles.from_pandas(
        table.assign(target=target), model_a="home_team", model_b="away_team", target="target"
    )
    dense, sparse = (bootstrap(battles, 8, method=m, progress=False) for m in ("dense", "sparse"))
    assert_same_fit(sparse.fit, dense.fit)
    assert_same_draws(sparse, dense)


@pytest.mark.parametrize("x64", [False, True])
def test_four_devices_give_the_draws_of_one_whatever_the_flag(battles, tmp_path, x64):
    matches().to_parquet(tmp_path / "matches.parquet")
    code = (
        "import sys, numpy as np, jax, jaxeval\n"
        f"jax.config.update('jax_enable_x64', {x64})\n"
        "battles = jaxeval.read_battles(sys.argv[1])\n"
        "found = jaxeval.bootstrap(battles, 10, seed=3, method='sparse', progress=False, chunk_size=2)\n"
        "assert found.settings.n_devices == 4 and jax.config.jax_enable_x64 == " + str(x64) + "\n"
        "np.save(sys.argv[2], found.draws)\n"
    )
    out = tmp_path / "draws.npy"
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "matches.parquet"), str(out)], check=True, env=environment
    )
    here = bootstrap(read_battles(tmp_path / "matches.parquet"), 10, seed=3, method="sparse", progress=False)
    np.testing.assert_allclose(np.load(out), here.draws, atol=1e-9)


class TestChoice:
    def test_by_the_number_of_models(self):
        assert resolved("auto", SPARSE_MODELS - 1) == "dense"
        assert resolved("auto", SPARSE_MODELS) == "sparse"
        assert resolved("dense", 10**6) == "dense"

    def test_unknown_methods_are_refused(self, battles):
        with pytest.raises(ValueError, match="method must be 'auto', 'dense' or 'sparse', got 'fast'"):
            fit_bradley_terry(battles, method="fast")

    def test_features_and_tie_models_are_dense(self, battles):
        for call in (fit_bradley_terry, bootstrap):
            with pytest.raises(ValueError, match="knows no features and no tie model"):
                call(battles, ties="davidson", method="sparse")


class TestWide:
    """30,000 competitors: nothing allocates a table of all pairs."""

    @pytest.fixture(scope="class")
    def wide(self):
        rng = np.random.default_rng(0)
        n, m = 60_000, 30_000
        a, b = rng.integers(0, m, (2, n))
        keep = a != b
        table = pd.DataFrame({"model_a": a[keep], "model_b": b[keep], "target": rng.integers(0, 3, keep.sum()) / 2})
        return bootstrap(Battles.from_pandas(table), 3, progress=False)

    def test_the_board(self, wide):
        assert wide.settings.method == "sparse"
        assert wide.converged.all()
        table = leaderboard(wide)
        assert len(table) == len(wide.models) > 29_000
        assert any("undefeated" in s for s in table["standing"])
        assert any("groups that never met" in w for w in table.attrs["warnings"])

    def test_tables_of_all_pairs_are_refused_in_words(self, wide):
        for ask in (
            lambda: wide.fit.covariance,
            lambda: wide.fit.standard_errors,
            lambda: wide.fit.win_probability,
            wide.beat_share,
            wide.difference_interval,
        ):
            with pytest.raises(ValueError, match=r"models, beyond the .* that it is meant for; use"):
                ask()

    def test_tiers_are_left_out_with_a_warning(self, wide, monkeypatch):
        for module in ("leaderboard", "bootstrap_result"):
            monkeypatch.setattr(f"jaxeval.{module}.MOST_COMPARISONS", 1000)
        table = leaderboard(wide)
        assert table["tier"].isna().all()
        assert any(w.startswith("no tiers: ") for w in table.attrs["warnings"])
        with pytest.raises(ValueError, match="tiers compare all pairs"):
            wide.tiers()


def test_jax_is_left_as_it_was():
    assert not jax.config.jax_enable_x64
