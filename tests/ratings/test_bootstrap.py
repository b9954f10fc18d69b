"""The bootstrap: every draw against a naive refit of the same resample, and what must not change a draw."""

import gc
import json
import weakref
from contextlib import nullcontext
from unittest.mock import Mock

import jax
import numpy as np
import pandas as pd
import pytest
import twins

from jaxeval import Battles, DataError, bootstrap, fit_bradley_terry, read_battles, simulate_votes
from jaxeval.execution import host as host_module
from jaxeval.execution import runs
from jaxeval.kernels.batch.programs import Program
from jaxeval.kernels.batch.refits import Solver, draw, refit
from jaxeval.kernels.resample import DrawScheme
from jaxeval.ratings import pair_refits as dense_module
from jaxeval.ratings import vote_groups as votes_module
from jaxeval.ratings.boards import battles_per_model, fit_boards, main_battles
from jaxeval.ratings.bootstrap import VoteBoards
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.pair_refits import dense_refits
from jaxeval.ratings.vote_groups import vote_groups

ELO_PER_LOGIT = 400 / np.log(10)
B = 1000


def agree(n_resamples, other=None):
    """Four standard errors of the ratio of a bootstrap standard error to a known one, or to another bootstrap's."""
    return 4 * np.sqrt(1 / (2 * n_resamples) + (1 / (2 * other) if other else 0))


@pytest.fixture(scope="module")
def votes():
    """12,000 votes between 12 models, all of which met; each has 1,500 votes or more."""
    return simulate_votes(12_000, 12, seed=5, popularity_exponent=0.3).assign(
        row=np.arange(12_000), half=np.arange(12_000) % 2, third=np.array(["x", "y", "z"])[np.arange(12_000) // 4000]
    )


@pytest.fixture(scope="module")
def battles(votes):
    return Battles.from_pandas(votes)


@pytest.fixture(scope="module")
def dense(battles):
    """1,000 resamples of a board that none of them can break."""
    return bootstrap(battles, B)


@pytest.fixture(scope="module")
def few_battles():
    """150 votes between 10 models: resamples without losses, and some without battles."""
    return Battles.from_pandas(simulate_votes(150, 10, seed=3))


@pytest.fixture(scope="module")
def sparse(few_battles):
    return bootstrap(few_battles, 300)


@pytest.fixture(scope="module")
def soft_battles(votes):
    """Every other vote a judge's score on a lattice, with weights."""
    rng = np.random.default_rng(0)
    frame = Battles.from_pandas(votes).to_pandas()
    score = rng.integers(0, 5, len(frame)) / 4
    frame["target"] = np.where(rng.random(len(frame)) < 0.5, score, frame["target"])
    return Battles.from_pandas(frame.assign(w=rng.choice([1.0, 2.0], len(frame), p=[0.8, 0.2])), weight="w")


@pytest.fixture(scope="module")
def prompts(votes):
    """4,000 votes on 500 prompts of unequal size, three votes of five the same as the prompt's first."""
    rng = np.random.default_rng(4)
    prompt = np.sort(rng.integers(0, 500, 4000))
    leader = np.searchsorted(prompt, prompt)
    source = np.where(rng.random(4000) < 0.6, leader, np.arange(4000))
    return Battles.from_pandas(votes[["model_a", "model_b", "winner"]].iloc[source].assign(prompt=prompt))


@pytest.fixture(scope="module")
def kinds(votes):
    """Hard outcomes, soft targets, clusters of one battle, of one or two, and of three.

    Their arrays have the sizes of the boards above, which share their compiled code.
    """
    rows = Battles.from_pandas(votes).to_pandas()[["model_a", "model_b", "target"]].assign(prompt=votes.row)
    # Not all pairs have all outcomes.
    rows = rows[((rows.model_a != "model-03") & (rows.model_b != "model-03")) | (rows.target != 0.5)]
    rng = np.random.default_rng(0)
    soft = rows.assign(target=np.where(rng.random(len(rows)) < 0.3, rng.integers(0, 9, len(rows)) / 8, rows.target))
    return {
        "hard": rows,
        "soft": soft,
        "pairs": rows.assign(prompt=rows.prompt.where(rows.prompt % 6 < 3, -(rows.prompt // 2))),
        "threes": soft.assign(prompt=rows.prompt // 3),
    }


@pytest.fixture(scope="module")
def arena(data):
    battles = read_battles(data / "arena140k_votes.parquet")
    return battles, bootstrap(battles, 400, gauge="votes")


def planned(battles, scheme="multinomial", *, ridge=0.0, cluster=None, strata=None, reweight=False):
    """The arguments of `draw` for a whole board."""
    options = BootstrapOptions(scheme=scheme, ridge=ridge, reweight=reweight)
    boards = fit_boards([(battles.models, battles.cells)], options)
    cell = battles.compress(slice(None))[1]
    groups = vote_groups(battles, cluster, strata)(slice(None), cell)
    refits = dense_refits(boards, [""], [groups], options)
    return refits.placed, refits.form


def tables(battles, n_resamples, scheme="multinomial", *, seed=0, **options):
    """(B, M, M) battle weights and wins of the resamples, as the library draws them."""
    problems, method = planned(battles, scheme, **options)
    with jax.enable_x64(True):
        drawn = [draw(problems, method, np.uint64(seed), np.int32(0), np.int64(r)) for r in range(n_resamples)]
    m = battles.n_models
    n, wins = (np.stack([np.asarray(x)[:m, :m] for x in part]) for part in zip(*drawn, strict=True))
    return n, wins


def naive_standing(n, wins, battles):
    """(B, M) standings of every resample; the battles of the data's main group say which group is the main one."""
    whole, won = battles.cells.tables(battles.n_models)
    weight = np.where(twins.standing(whole, won) == 0, whole.sum(1), 0)
    return np.stack([twins.standing(*table, weight) for table in zip(n, wins, strict=True)])


def naive_refit(n, wins, ridge=0.0, standing=None):
    """(B, M) log-strengths by Newton's method from zero, mean zero; 0 for models that are not comparable."""
    n_resamples, m = n.shape[:2]
    active = np.ones((n_resamples, m), bool) if standing is None else standing == 0
    both = active[:, :, None] & active[:, None, :]
    n, score = np.where(both, n, 0), np.where(both, wins, 0).sum(2)
    theta, eye = np.zeros((n_resamples, m)), np.eye(m)
    for _ in range(60):
        p = 1 / (1 + np.exp(theta[:, None, :] - theta[:, :, None]))
        gradient = score - (n * p).sum(2) - 2 * ridge * theta
        v = n * p * (1 - p)
        hessian = eye * (v.sum(2) + 2 * ridge + ~active)[:, :, None] - v + both
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        size = np.abs(step).max(1)
        theta += step * np.minimum(1, 2 / np.maximum(size, 1e-300))[:, None]
        if size.max() < 1e-11:
            return theta
    raise AssertionError(f"the naive refit did not converge: {size.max()}")


def naive_ratings(theta, standing, estimate):
    """Elo in the mean gauge; where some models have no rating, the others have their mean of the ``estimate``."""
    rated = standing == 0
    count = rated.sum(1, keepdims=True)
    centre = (theta * rated).sum(1, keepdims=True) / count
    held = (estimate * rated).sum(1, keepdims=True) / count
    ratings = held + ELO_PER_LOGIT * (theta - centre)
    return np.where(rated, ratings, np.array([0, np.inf, -np.inf, np.nan])[standing])


class TestDraws:
    """Each draw is the exact refit of its resample."""

    @pytest.mark.parametrize(("board", "options"), [
        ("battles", {}),
        ("battles", {"scheme": "bayesian"}),
        pytest.param("battles", {"scheme": "poisson", "ridge": 3.0}, marks=pytest.mark.slow),
        pytest.param("soft_battles", {}, marks=pytest.mark.slow),
        pytest.param("prompts", {"cluster": "prompt"}, marks=pytest.mark.slow),
        ("few_battles", {"ridge": 0.05}),
    ])  # fmt: skip
    def test_on_every_kind_of_board(self, request, board, options):
        battles = request.getfixturevalue(board)
        assert battles.cells.hard == (board != "soft_battles")
        draws = bootstrap(battles, 60, **options).draws
        theta = naive_refit(*tables(battles, 60, **options), options.get("ridge", 0.0))
        np.testing.assert_allclose(draws, 1000 + ELO_PER_LOGIT * theta, rtol=0, atol=1e-5)

    @pytest.mark.slow
    def test_reweighting(self, battles):
        """The pair weights are those of the data, in every resample."""
        draws = bootstrap(battles, 40, reweight=True).draws
        n, wins = tables(battles, 40, reweight=True)
        plain_n, _ = tables(battles, 40)
        count = battles.cells.tables(battles.n_models)[0]
        np.testing.assert_allclose(n, plain_n / np.maximum(count, 50), rtol=1e-12)
        np.testing.assert_allclose(draws, 1000 + ELO_PER_LOGIT * naive_refit(n, wins), rtol=0, atol=1e-5)

    @pytest.mark.slow
    def test_few_battles(self, few_battles, sparse):
        n, wins = tables(few_battles, 300)
        standing = naive_standing(n, wins, few_battles)
        assert (standing != 0).any()
        expected = naive_ratings(naive_refit(n, wins, 0.0, standing), standing, sparse.fit.ratings.to_numpy())
        np.testing.assert_allclose(sparse.draws, expected, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("ridge", [0.0, 0.001])
    def test_very_few_battles(self, ridge):
        """Eight battles a model: the solver's stopping rule has to judge slow and irregular progress."""
        battles = Battles.from_pandas(simulate_votes(80, 10, seed=4))
        board = bootstrap(battles, 500, ridge=ridge)
        n, wins = tables(battles, 500, ridge=ridge)
        standing = naive_standing(n, wins, battles) if ridge == 0 else np.zeros((500, 10), int)
        expected = naive_ratings(naive_refit(n, wins, ridge, standing), standing, board.fit.ratings.to_numpy())
        if ridge > 0:
            expected += 1000 - expected.mean(1, keepdims=True)
        np.testing.assert_allclose(board.draws, expected, rtol=0, atol=1e-5)

    @pytest.mark.parametrize(
        ("ridge", "link"),
        [(0.0, "logit"), *(pytest.param(*x, marks=pytest.mark.slow) for x in ((0.5, "logit"), (0.0, "probit")))],
    )
    def test_models_of_few_battles_beside_others(self, votes, monkeypatch, ridge, link):
        """Chord steps take them along, without the solvers for boards on which most models have few battles."""
        rng = np.random.default_rng(1)
        few = np.repeat(["few-1", "few-2", "few-3"], [500, 3, 3])  # and padding
        n = len(few)
        rows = pd.DataFrame({"model_a": few, "model_b": rng.choice(votes.model_a, n)})
        rows["winner"] = rng.choice(["model_a", "model_b"], n)
        rows.loc[:496, "model_b"] = "few-2"  # two that met mostly each other
        rows.loc[rng.random(n) < 0.1, "model_b"] = "few-3"
        rows = rows[rows.model_a != rows.model_b]
        battles = Battles.from_pandas(pd.concat([votes[["model_a", "model_b", "winner"]], rows]))
        for solver in (Solver.CHORD, Solver.NEWTON_CG, Solver.NEWTON):
            monkeypatch.setitem(dense_module.MAX_STEPS, solver, 1)
        board = bootstrap(battles, 200, ridge=ridge, link=link)
        assert board.converged.all()
        assert board.n_by_slower_solvers == 200
        if link == "probit":
            monkeypatch.undo()
            monkeypatch.setattr(dense_module, "_LITTLE_INFORMATION", np.inf)
            np.testing.assert_allclose(board.draws, bootstrap(battles, 200, link=link).draws, rtol=0, atol=1e-5)
            return
        n, wins = tables(battles, 200, ridge=ridge)
        found = naive_standing(n, wins, battles)
        assert (found != 0).any()
        standing = found if ridge == 0 else np.zeros_like(found)
        expected = naive_ratings(naive_refit(n, wins, ridge, standing), standing, board.fit.ratings.to_numpy())
        if ridge > 0:
            expected += 1000 - expected.mean(1, keepdims=True)
        np.testing.assert_allclose(board.draws, expected, rtol=0, atol=1e-5)

    def test_weights_that_differ_by_many_powers_of_ten(self):
        """In a resample without its heavy battles, light ones alone join two groups: their log-odds are its gap."""
        rng = np.random.default_rng(3)
        a = np.repeat(["a", "a", "b", "d", "d", "e", "a"], [40, 40, 40, 40, 40, 40, 11])
        b = np.repeat(["b", "c", "c", "e", "f", "f", "d"], [40, 40, 40, 40, 40, 40, 11])
        rows = pd.DataFrame({"model_a": a, "model_b": b, "winner": rng.choice(["model_a", "model_b"], len(a))})
        rows["weight"] = np.where(np.arange(len(a)) < 243, 1.0, 1e-10)
        rows.loc[240:, "winner"] = ["model_a", "model_a", "model_b", *4 * ["model_a"], *4 * ["model_b"]]
        battles = Battles.from_pandas(rows, weight="weight")
        board = bootstrap(battles, 200, interval="percentile")
        _, wins = tables(battles, 200)
        gap = (board.draws[:, 0] - board.draws[:, 3]) / ELO_PER_LOGIT
        known = board.converged & np.isfinite(gap)
        np.testing.assert_allclose(gap[known], np.log(wins[known, 0, 3] / wins[known, 3, 0]), rtol=0, atol=1e-6)
        assert 100 < np.count_nonzero(known) < np.count_nonzero(np.isfinite(gap) | ~board.converged)

    @pytest.mark.slow
    def test_real_votes(self, arena):
        battles, board = arena
        n, wins = tables(battles, 20)
        standing = naive_standing(n, wins, battles)
        theta = naive_refit(n, wins, 0.0, standing)
        difference = np.where(standing == 0, board.draws[:20] / ELO_PER_LOGIT - theta, np.nan)
        spread = np.nanmax(difference, 1) - np.nanmin(difference, 1)
        assert spread.max() * ELO_PER_LOGIT < 1e-5

    def test_the_gauge_shifts_draws(self, battles, dense):
        votes = bootstrap(battles, 100, gauge="votes")
        shift = votes.draws - dense.draws[:100]
        np.testing.assert_allclose(shift, np.broadcast_to(shift[:, :1], shift.shape), rtol=0, atol=1e-8)
        np.testing.assert_allclose(np.average(votes.draws, axis=1, weights=votes.fit.n_battles), 1000, atol=1e-8)
        anchored = bootstrap(battles, 100, gauge=("model-03", 1234.0))
        np.testing.assert_allclose(anchored.draws[:, 2], 1234, rtol=0, atol=1e-8)
        np.testing.assert_allclose(dense.draws.mean(1), 1000, rtol=0, atol=1e-8)

    def test_status_of_every_resample(self, dense, sparse):
        for board in (dense, sparse):
            assert board.converged.all()
            assert board.converged.shape == board.n_steps.shape == board.grad_norm.shape == (len(board.draws),)
            assert board.n_steps.min() >= 1
            assert np.isfinite(board.grad_norm).all()

    @pytest.mark.slow
    def test_resamples_that_fail_are_missing_and_counted(self, monkeypatch):
        """Those that conjugate gradients leave to a Newton's method without steps enough."""
        monkeypatch.setitem(dense_module.MAX_STEPS, Solver.NEWTON, 2)
        board = bootstrap(simulate_votes(80, 10, seed=4), 500, ridge=1e-4)
        failed = ~board.converged
        assert failed.any()
        assert np.isnan(board.draws[failed]).all()
        assert np.isfinite(board.draws[~failed]).all()
        assert f"{failed.sum()} of 500 resamples did not converge and are NaN" in board.warnings

    def test_the_fast_solver_hands_over_to_the_safe_one(self, votes, monkeypatch):
        monkeypatch.setitem(dense_module.MAX_STEPS, Solver.CHORD, 3)
        battles = Battles.from_pandas(votes[votes.half == 0])
        board = bootstrap(battles, 60)
        assert board.converged.all()
        assert board.n_by_slower_solvers == 60
        theta = naive_refit(*tables(battles, 60))
        np.testing.assert_allclose(board.draws, 1000 + ELO_PER_LOGIT * theta, rtol=0, atol=1e-5)

    def test_how_many_needed_the_safe_solver(self, dense, sparse):
        assert dense.n_by_slower_solvers == 0
        assert sparse.n_by_slower_solvers == 300


class TestOnTheHost:
    """A process that ends soon refits small boards by NumPy: to what the programs give."""

    @pytest.mark.parametrize(
        ("board", "options", "tolerance"),
        [
            ("battles", {}, 1e-9),
            ("battles", {"scheme": "poisson"}, 1e-9),
            pytest.param("battles", {"strata": "third"}, 1e-9, marks=pytest.mark.slow),
            ("battles", {"by": "half"}, 1e-9),
            ("battles", {"link": "probit"}, 1e-9),
            pytest.param("battles", {"reweight": True}, 1e-9, marks=pytest.mark.slow),
            ("soft_battles", {}, 1e-9),
            ("prompts", {"cluster": "prompt"}, 1e-5),  # Elo that conjugate gradients may leave
            ("few_battles", {}, 1e-5),
            ("few_battles", {"ridge": 0.5}, 1e-5),
            pytest.param("few_battles", {"link": "probit"}, 1e-5, marks=pytest.mark.slow),
        ],
    )
    def test_draws_are_those_of_the_programs(self, request, monkeypatch, board, options, tolerance):
        battles = request.getfixturevalue(board)
        compiled = bootstrap(battles, 300, **options)
        monkeypatch.setattr(host_module, "spares_jax", lambda: True)
        monkeypatch.setattr(Program, "__call__", None)
        host = bootstrap(battles, 300, **options)
        for name, one in host.items() if "by" in options else [("", host)]:
            other = compiled[name] if "by" in options else compiled
            np.testing.assert_allclose(one.draws, other.draws, rtol=0, atol=tolerance)
            pd.testing.assert_frame_equal(one.degenerate, other.degenerate)
            np.testing.assert_array_equal(one.converged, other.converged)

    def test_lanes_that_chord_steps_leave_are_no_more_at_once(self, battles, monkeypatch):
        """Where weights differ widely, chord steps may leave every lane: tables of all would take a gigabyte."""
        sizes = {Solver.CHORD: [], Solver.NEWTON: []}
        refit = dense_module.refits.refit_on_host
        monkeypatch.setattr(host_module, "spares_jax", lambda: True)
        monkeypatch.setattr(dense_module, "lanes_at_once", lambda entries: 16)
        monkeypatch.setattr(
            dense_module.refits, "refit_on_host",
            lambda *given: sizes[given[1].solver].append(len(given[-1])) or refit(*given),
        )  # fmt: skip
        shown = []
        monkeypatch.setattr(runs, "progress_bar", lambda *_: nullcontext(shown.append))
        whole = bootstrap(battles, 60)
        assert sorted(shown) == [12] + 3 * [16]  # the bar moves as parts of a board are done
        monkeypatch.setitem(dense_module.MAX_STEPS, Solver.CHORD, 1)
        np.testing.assert_allclose(bootstrap(battles, 60).draws, whole.draws, rtol=0, atol=1e-5)
        assert sorted(sizes[Solver.CHORD]) == 2 * [1] + 2 * [12] + 6 * [16]  # one lane tells the form of results
        assert sorted(sizes[Solver.NEWTON]) == [12] + 3 * [16]

    def test_groups_of_one_weight_are_told_apart_alike_in_any_order(self, few_battles):
        """Battles weighted by pair are fiftieths; programs add them up in another order than the host."""
        (board,) = fit_boards([(few_battles.models, few_battles.cells)], BootstrapOptions(reweight=True))
        weight = main_battles(board)
        np.testing.assert_allclose(50 * weight, battles_per_model(board.cells, len(weight)), rtol=1e-14)
        for chosen in np.random.default_rng(0).random((40, len(weight))) < 0.5:
            assert sum(weight[chosen]) == sum(weight[chosen][::-1])

    @pytest.mark.parametrize(
        "options", [{"scheme": "bayesian"}, {"ties": "davidson"}, {"penalty": "firth"}, {"chunk_size": 100}]
    )
    def test_what_only_programs_know(self, few_battles, monkeypatch, options):
        """Draws with weights that are no counts, further parameters, another maximum; and chunks of a given size."""
        monkeypatch.setattr(host_module, "spares_jax", lambda: True)
        monkeypatch.setattr(Program, "__call__", Mock(side_effect=InterruptedError))  # what they give is told elsewhere
        with pytest.raises(InterruptedError):
            bootstrap(few_battles, 300, **options)

    def test_many_tables_are_left_to_programs(self, battles, monkeypatch):
        monkeypatch.setattr(host_module, "spares_jax", lambda: True)
        monkeypatch.setattr(host_module, "_MOST", 300 * 12**2 - 1)
        monkeypatch.setattr(dense_module.refits, "refit_on_host", None)
        assert bootstrap(battles, 300).converged.all()


class TestLaw:
    """The resamples follow their scheme's law. Tolerances: 4.5 standard errors, some 100 comparisons each."""

    R = 400

    @pytest.mark.parametrize("scheme", ["multinomial", "poisson", "bayesian"])
    def test_pair_counts(self, battles, scheme):
        n, wins = tables(battles, self.R, scheme, seed=1)
        np.testing.assert_array_equal(n, n.transpose(0, 2, 1))
        np.testing.assert_allclose(wins + wins.transpose(0, 2, 1), n, rtol=1e-12)
        total = n.sum((1, 2)) / 2
        if scheme == "poisson":
            assert abs(total.mean() - 12_000) < 4.5 * np.sqrt(12_000 / self.R)
            assert total.std(ddof=1) / np.sqrt(12_000) == pytest.approx(1, abs=agree(self.R))
        else:
            np.testing.assert_allclose(total, 12_000, rtol=1e-12)
        if scheme != "bayesian":
            np.testing.assert_array_equal(n, np.rint(n))
            np.testing.assert_array_equal(2 * wins, np.rint(2 * wins))
        pairs = np.triu_indices(12, 1)
        count, won = (x[pairs] for x in battles.cells.tables(12))
        # One draw of a battle adds a variance of 1 to the pair's count, and of target^2 to its wins.
        cells = battles.cells
        squares = np.bincount(cells.pair, cells.count * cells.target**2)
        fixed = 0 if scheme == "poisson" else 1 / 12_000
        for drawn, expected, variance in (
            (n[:, *pairs], count, count - fixed * count**2),
            (wins[:, *pairs], won, squares - fixed * won**2),
        ):
            z = (drawn.mean(0) - expected) / np.sqrt(variance / self.R)
            assert np.abs(z).max() < 4.5
            # A sample variance has relative standard error sqrt(2 / R) for counts as large as these.
            np.testing.assert_allclose(drawn.var(0, ddof=1) / variance, 1, rtol=0, atol=4.5 * np.sqrt(2 / self.R))

    def test_clusters_are_drawn_whole(self, votes):
        """Every cluster has one battle p against q: a resample has as many of those as there are clusters."""
        rng = np.random.default_rng(2)
        rows = votes[["model_a", "model_b", "winner"]].astype(str).assign(cluster=rng.integers(700, size=12_000))
        rows.loc[rows.cluster % 3 == 0, "model_a"] = "only-in-thirds"
        marker = pd.DataFrame({"model_a": "p", "model_b": "q", "winner": "tie", "cluster": np.arange(700)})
        battles = Battles.from_pandas(pd.concat([rows, marker]))
        n, _ = tables(battles, 50, cluster="cluster")
        where = {m: k for k, m in enumerate(battles.models)}
        np.testing.assert_array_equal(n[:, where["p"], where["q"]], 700)
        assert len(np.unique(n.sum((1, 2)))) > 10  # the number of battles varies

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("scheme", "refitted"),
        [("multinomial", False),
         pytest.param("multinomial", True, marks=pytest.mark.slow),
         pytest.param("poisson", True, marks=pytest.mark.slow)],
    )  # fmt: skip
    def test_pairs_of_more_than_32768_battles(self, scheme, refitted):
        """Counts of such pairs do not fit half of a 32-bit word; 30,000 is the most that one is trusted with."""
        for counts in ((100_000, 40_000, 33_000), (30_000, 20_000, 500)):
            a, b = np.array(list("aab")), np.array(list("bcc"))
            winner = np.resize(["model_a", "tie", "model_b", "model_a"], sum(counts))
            frame = pd.DataFrame({"model_a": np.repeat(a, counts), "model_b": np.repeat(b, counts), "winner": winner})
            battles = Battles.from_pandas(frame)
            n, wins = tables(battles, 200, scheme)
            expected, expected_wins = battles.cells.tables(3)
            for i, j in ((0, 1), (0, 2), (1, 2)):
                spread = np.sqrt(expected[i, j])
                assert np.abs(n[:, i, j] - expected[i, j]).max() < 6 * spread
                assert abs(n[:, i, j].mean() - expected[i, j]) < 4.5 * spread / np.sqrt(200)
                assert abs(wins[:, i, j].mean() - expected_wins[i, j]) < 4.5 * spread / np.sqrt(200)
            if refitted and max(counts) > 2**15:
                draws = bootstrap(battles, 200, scheme=scheme).draws
                np.testing.assert_allclose(draws, 1000 + ELO_PER_LOGIT * naive_refit(n, wins), rtol=0, atol=1e-5)


class TestReproducible:
    """Resample r is a function of the seed, the slice and r."""

    def test_the_seed(self, battles, dense):
        np.testing.assert_array_equal(bootstrap(battles, 50, seed=0).draws, dense.draws[:50])
        seeds = [0, 1, 2**32, 2**63 - 1]
        first = [bootstrap(battles, 50, seed=s).draws for s in seeds]
        for k, one in enumerate(first):
            for other in first[:k]:
                assert np.abs(one - other).max(1).min() > 1e-3  # no resample in common

    def test_no_resample_twice(self, dense):
        assert len(np.unique(dense.draws.round(6), axis=0)) == B

    @pytest.mark.slow
    @pytest.mark.parametrize(("own", "beside", "scheme"), [
        ("hard", "soft", "multinomial"),
        ("hard", "soft", "poisson"),
        ("hard", "soft", "bayesian"),
        ("soft", "hard", "multinomial"),
        ("hard", "threes", "cluster"),
        ("soft", "threes", "cluster"),
        ("pairs", "threes", "cluster"),
        ("pairs", "soft", "cluster"),
    ])  # fmt: skip
    def test_nor_does_their_kind(self, kinds, own, beside, scheme):
        """Kinds of battles and of clusters next to each other."""
        options = {"cluster": "prompt"} if scheme == "cluster" else {"scheme": scheme}
        first, second = kinds[own].assign(board="own"), kinds[beside].assign(board="beside")
        alone = bootstrap(first, 20, by="board", **options)["own"]
        both = bootstrap(pd.concat([first, second]), 20, by="board", **options)["own"]
        np.testing.assert_allclose(both.draws, alone.draws, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("flag", [False, True])
    def test_the_flag_stays(self, battles, dense, flag):
        with jax.enable_x64(flag):
            board = bootstrap(battles, 100)
            assert jax.config.jax_enable_x64 == flag
        np.testing.assert_array_equal(board.draws, dense.draws[:100])
        assert board.draws.dtype == np.float64

    def test_a_second_call_compiles_nothing(self, battles, few_battles, dense, sparse):
        """Seed, number of resamples, gauge and ridge are data."""
        assert len(dense.draws) != len(sparse.draws)
        before = refit._cache_size()
        bootstrap(battles, 80, seed=9, ridge=0.2, gauge="votes")
        bootstrap(battles, 200, seed=10)
        bootstrap(few_battles, 31, seed=4)
        assert refit._cache_size() == before

    @pytest.mark.parametrize(
        "scheme", ["multinomial", *(pytest.param(name, marks=pytest.mark.slow) for name in ("poisson", "bayesian"))]
    )
    def test_many_distinct_targets_make_no_longer_program(self, battles, scheme):
        """Or a judge with continuous scores would compile for a minute."""
        rng, lengths = np.random.default_rng(0), []
        for levels in (4, 40):
            frame = battles.to_pandas().assign(target=rng.integers(0, levels + 1, 12_000) / levels)
            problems, method = planned(Battles.from_pandas(frame), scheme)
            with jax.enable_x64(True):
                program = draw.lower(problems, method, np.uint64(0), np.int32(0), np.int64(0))
            lengths.append(len(program.as_text()))
        assert lengths[1] < 1.5 * lengths[0]

    @pytest.mark.slow
    def test_the_tables_of_a_board_are_made_once(self, votes, monkeypatch):
        made, unit_draw = [], votes_module.unit_draw

        def noted(sizes, scheme, *more):
            made.append(scheme)
            return unit_draw(sizes, scheme, *more)

        monkeypatch.setattr(votes_module, "unit_draw", noted)
        own = Battles.from_pandas(votes)
        first, later = bootstrap(own, 5, seed=1), bootstrap(own, 9, seed=1, base=0.0)
        assert made == [DrawScheme.MULTINOMIAL]
        np.testing.assert_allclose(first.draws, later.draws[:5] + 1000, rtol=0, atol=1e-9)
        for scheme in ("poisson", "bayesian"):
            bootstrap(own, 5, scheme=scheme)
        assert made == [DrawScheme.MULTINOMIAL, DrawScheme.POISSON, DrawScheme.BAYESIAN]
        cells = weakref.ref(own.cells)
        del own, first, later
        gc.collect()
        assert cells() is None  # its tables hold no board
        before = len(votes_module._OF_WHOLE_BOARDS)
        boards = bootstrap(votes, 5, by="half")
        assert len(votes_module._OF_WHOLE_BOARDS) == before
        assert len(boards) == 2

    def test_single_precision(self, battles, dense):
        board = bootstrap(battles, 100, dtype="float32")
        assert board.settings.dtype == "float32"
        assert board.converged.all()
        error = np.abs(board.draws - dense.draws[:100]).max()
        assert 0 < error < 0.05
        assert board.fit.ratings.equals(dense.fit.ratings)  # the estimate stays double


class TestStandardErrors:
    @pytest.mark.parametrize("scheme", ["multinomial", "poisson", "bayesian"])
    def test_the_sandwich(self, battles, scheme):
        """For 1,000 votes or more a model, in the vote-weighted gauge: |ratio - 1| < 4 / sqrt(2 B)."""
        board = bootstrap(battles, B, scheme=scheme, gauge="votes")
        assert board.fit.n_battles.min() >= 1000
        ratio = board.standard_errors / board.fit.standard_errors
        assert (ratio - 1).abs().max() < agree(B)

    def test_the_sandwich_of_soft_targets_and_weights(self, soft_battles):
        board = bootstrap(soft_battles, B, gauge="votes")
        ratio = board.standard_errors / board.fit.standard_errors
        assert (ratio - 1).abs().max() < agree(B)

    def test_they_are_standard_deviations(self, dense):
        np.testing.assert_allclose(dense.standard_errors, dense.draws.std(0, ddof=1), rtol=1e-12)
        assert dense.standard_errors.index.equals(dense.fit.ratings.index)

    def test_the_draws_are_centred_on_the_estimate(self, dense):
        """Within 4.5 standard errors of their mean; the bias, of second order, is smaller at 1,500 votes a model."""
        z = (dense.draws.mean(0) - dense.fit.ratings) / (dense.standard_errors / np.sqrt(B))
        assert np.abs(z).max() < 4.5

    def test_correlations_are_those_of_the_sandwich(self, dense):
        ours = np.corrcoef(dense.draws, rowvar=False)
        c = dense.fit.covariance.to_numpy()
        expected = c / np.sqrt(np.outer(np.diag(c), np.diag(c)))
        # A correlation r has standard error (1 - r^2) / sqrt(B).
        off = ~np.eye(len(c), dtype=bool)
        assert (np.abs(ours - expected)[off] < 4.5 * (1 - expected[off] ** 2) / np.sqrt(B)).all()


class TestClusters:
    def test_one_battle_a_cluster_is_the_plain_bootstrap(self, battles, dense):
        np.testing.assert_array_equal(bootstrap(battles, 100, cluster="row").draws, dense.draws[:100])
        np.testing.assert_array_equal(bootstrap(battles, 100, scheme="cluster", cluster="row").draws, dense.draws[:100])

    def test_against_a_naive_cluster_bootstrap(self, prompts):
        """Clusters of unequal size whose battles agree, drawn and refitted by NumPy alone."""
        rng = np.random.default_rng(5)
        prompt, names = prompts.codes("prompt")
        n_prompts, reps = len(names), 600
        times = rng.multinomial(n_prompts, np.full(n_prompts, 1 / n_prompts), size=reps)
        n, wins = np.zeros((2, reps, 12, 12))
        for r in range(reps):
            weight = times[r][prompt].astype(float)
            np.add.at(wins[r], (prompts.model_a, prompts.model_b), weight * prompts.target)
            np.add.at(wins[r], (prompts.model_b, prompts.model_a), weight * (1 - prompts.target))
        n = wins + wins.transpose(0, 2, 1)
        naive = (1000 + ELO_PER_LOGIT * naive_refit(n, wins)).std(0, ddof=1)
        board = bootstrap(prompts, B, cluster="prompt")
        assert board.n_clusters == n_prompts
        assert np.abs(board.standard_errors / naive - 1).max() < agree(B, reps)
        plain = bootstrap(prompts, B)
        assert (board.standard_errors / plain.standard_errors).mean() > 1.4  # and it matters here


class TestSoftAndHard:
    """The general path and the one for hard outcomes, where both apply."""

    def test_targets_instead_of_labels(self, battles, dense):
        from_targets = Battles.from_pandas(battles.to_pandas().drop(columns="language"), target="target")
        np.testing.assert_array_equal(bootstrap(from_targets, 100).draws, dense.draws[:100])


@pytest.mark.slow
def test_two_groups_that_a_soft_battle_joins():
    """Its target is their gap in every resample that has it; conjugate gradients see little of it."""
    target = 1e-5
    rows = [("a0", "b0", target)]
    for seed, group in ((1, "a"), (2, "b")):
        rng = np.random.default_rng(seed)
        skill = rng.normal(0, 1, 30)
        first = rng.integers(30, size=600)
        second = (first + rng.integers(1, 30, size=600)) % 30
        tied, won = rng.random(600) < 0.1, rng.random(600) < 1 / (1 + np.exp(skill[second] - skill[first]))
        points = np.where(tied, 0.5, won)
        rows += [(f"{group}{i}", f"{group}{j}", y) for i, j, y in zip(first, second, points, strict=True)]
    result = bootstrap(pd.DataFrame(rows, columns=["model_a", "model_b", "target"]), 30, seed=1, method="dense")
    gap = result.draws[:, list(result.models).index("a0")] - result.draws[:, list(result.models).index("b0")]
    rated = np.isfinite(gap)
    assert rated.any()
    assert result.converged.all()
    np.testing.assert_allclose(gap[rated], 400 * np.log10(target / (1 - target)), rtol=0, atol=1e-4)


class TestSlices:
    @pytest.mark.slow
    def test_two_columns(self, votes, battles):
        boards = bootstrap(battles, 100, by=["third", "half"])
        assert list(boards) == [("x", 0), ("x", 1), ("y", 0), ("y", 1), ("z", 0), ("z", 1)]
        for (third, half), board in boards.items():
            fit = fit_bradley_terry(votes[(votes.half == half) & (votes.third == third)])
            np.testing.assert_allclose(board.fit.ratings, fit.ratings, rtol=0, atol=1e-8)
            np.testing.assert_allclose(board.fit.standard_errors, fit.standard_errors, rtol=1e-9)
            assert board.converged.all()
            assert abs((board.standard_errors / fit.standard_errors).mean() - 1) < agree(100)

    @pytest.mark.slow
    def test_slices_with_models_of_their_own(self, votes):
        """A slice's board lists the models that met there, whatever other slices hold."""
        some = [f"model-{k:02}" for k in (2, 3, 5, 7, 8, 11, 12)]
        outside = ~(votes.model_a.isin(some) & votes.model_b.isin(some))
        frame = votes[~(outside & (votes.half == 1))]
        boards = bootstrap(frame, 50, by="half")
        assert len(boards[0].models) == 12
        assert boards[1].models.tolist() == some
        fit = fit_bradley_terry(frame[frame.half == 1])
        np.testing.assert_allclose(boards[1].fit.ratings, fit.ratings, rtol=0, atol=1e-8)
        assert boards[1].draws.shape == (50, 7)
        assert abs((boards[1].standard_errors / fit.standard_errors).mean() - 1) < agree(50)

    @pytest.mark.slow
    def test_equal_slices_have_their_own_random_numbers(self, votes):
        twice = pd.concat([votes.iloc[:6000].assign(copy="one"), votes.iloc[:6000].assign(copy="two")])
        boards = bootstrap(twice, 50, by="copy")
        one, two = boards["one"].draws, boards["two"].draws
        np.testing.assert_array_equal(boards["one"].fit.ratings, boards["two"].fit.ratings)
        assert np.abs(one - two).max(1).min() > 1e-3

    @pytest.mark.slow
    def test_slices_by_cluster(self, kinds):
        frames = {"own": kinds["hard"], "beside": kinds["threes"]}
        boards = bootstrap(pd.concat([f.assign(board=b) for b, f in frames.items()]), 400, by="board", cluster="prompt")
        # Battles of a cluster are independent here: clusters change nothing.
        for name, frame in frames.items():
            assert boards[name].settings.scheme == "cluster"
            assert boards[name].n_clusters == frame.prompt.nunique()
            honest = fit_bradley_terry(frame).standard_errors
            assert (boards[name].standard_errors / honest - 1).abs().max() < agree(400) + 0.01

    def test_whatever_type_numbers_the_slices(self, votes):
        frames = [votes.assign(half=votes.half.astype(kind)) for kind in ("int64", "Int64", "int8", "category")]
        first, *others = (bootstrap(frame, 20, by="half") for frame in frames)
        for boards in others:
            assert list(boards) == [0, 1]
            for half in (0, 1):
                np.testing.assert_array_equal(boards[half].draws, first[half].draws)

    def test_slices_in_several_calls(self, battles, monkeypatch):
        """As many wide slices go that not all fit at once."""
        together = bootstrap(battles, 20, by="half")
        monkeypatch.setattr("jaxeval.ratings.bootstrap._TABLE_ENTRIES", 12**2)
        apart = bootstrap(battles, 20, by="half")
        assert list(apart) == [0, 1]
        for half in (0, 1):
            np.testing.assert_allclose(apart[half].draws, together[half].draws, rtol=0, atol=1e-7)

    def test_narrow_slices_do_not_go_in_tables_of_a_wide_one(self, votes, monkeypatch):
        """Where that would take longer than a program of their own."""
        narrow = np.where(votes.model_a.isin(["model-01", "model-02"]) & votes.model_b.isin(["model-01", "model-02"]),
                          "narrow", "wide")  # fmt: skip
        frame = votes.assign(narrow=narrow)
        together = bootstrap(frame, 20, by="narrow")
        monkeypatch.setattr("jaxeval.ratings.bootstrap._WORTH_A_PROGRAM", 0)
        blocks, taken = VoteBoards.blocks, []
        monkeypatch.setattr(VoteBoards, "blocks", lambda boards: taken.append(blocks(boards)) or taken[-1])
        apart = bootstrap(frame, 20, by="narrow")
        assert taken == [[[1], [0]]]
        for name, board in together.items():
            np.testing.assert_allclose(apart[name].draws, board.draws, rtol=0, atol=1e-7)

    def test_slices_of_one_width_are_parts_of_one_array(self, battles):
        one, other = (board.draws_logit for board in bootstrap(battles, 20, by="half").values())
        assert one.base is other.base is not None

    def test_a_narrow_slice_does_not_hold_the_memory_of_a_wide_one(self, votes):
        narrow = votes.model_a.isin(["model-01", "model-02"]) & votes.model_b.isin(["model-01", "model-02"])
        for board in bootstrap(votes.assign(narrow=narrow), 20, by="narrow").values():
            logits = board.draws_logit
            held = logits if logits.base is None else logits.base
            assert held.size == logits.size


class TestDegenerate:
    def test_counted_as_by_a_naive_recount(self, few_battles, sparse):
        n, wins = tables(few_battles, 300)
        standing = naive_standing(n, wins, few_battles)
        for code, column in ((1, "undefeated"), (2, "winless"), (3, "not_comparable")):
            np.testing.assert_array_equal(sparse.degenerate[column], (standing == code).sum(0))
        np.testing.assert_allclose(sparse.degenerate_share, (standing != 0).mean(0))
        assert (standing == 1).any()

    def test_a_model_apart_in_a_resample_does_not_set_the_others_apart(self):
        """Most votes and a single loss: where a resample misses that loss, the others are still compared."""

        def votes(a, b, won, lost):
            return [(a, b, "model_a")] * won + [(a, b, "model_b")] * lost

        rest = [*votes("b", "c", 12, 6), *votes("c", "d", 12, 10), *votes("b", "d", 12, 8)]
        top = [*votes("top", "b", 20, 1), *votes("top", "c", 20, 0), *votes("top", "d", 50, 0)]
        columns = ["model_a", "model_b", "winner"]
        with_top = bootstrap(pd.DataFrame(rest + top, columns=columns))
        without = bootstrap(pd.DataFrame(rest, columns=columns))
        assert with_top.degenerate.undefeated["top"] == pytest.approx(B * np.exp(-1), abs=4 * np.sqrt(B * 0.233))
        for i, j in ("bc", "bd", "cd"):
            p, q = (board.beat_share.loc[i, j] for board in (with_top, without))
            # The battles with top tell a little about the others too; what it showed was 0.82 in place of 0.98.
            assert p == pytest.approx(q, abs=0.05)

    def test_groups_of_about_equal_size_do_not_take_turns(self):
        """Two boards of four, tied by one battle each way: the smaller alone is out where a resample lacks one."""
        x, y = (
            simulate_votes(n, 4, seed=n).astype({"model_a": str, "model_b": str}).replace(new)
            for n, new in (
                (500, {f"model-{k + 1}": f"x{k}" for k in range(4)}),
                (490, {f"model-{k + 1}": f"y{k}" for k in range(4)}),
            )
        )
        ties = pd.DataFrame({"model_a": ["x0", "x0"], "model_b": ["y0", "y0"], "winner": ["model_a", "model_b"]})
        board = bootstrap(pd.concat([x, y, ties])[["model_a", "model_b", "winner"]])
        share = board.degenerate_share
        assert (share[["x0", "x1", "x2", "x3"]] == 0).all()
        # A resample lacks one battle of two given ones with probability 2/e - 1/e^2.
        expected = 2 / np.e - np.exp(-2)
        np.testing.assert_allclose(share[["y0", "y1", "y2", "y3"]], expected, rtol=0, atol=4 * np.sqrt(0.24 / B))
        assert (board.tiers()[["x0", "x1", "x2", "x3"]] > 0).all()

    def test_an_anchor_without_a_rating_is_named(self, few_battles, sparse):
        share = sparse.degenerate_share
        worst = share.idxmax()
        assert not any("hold the gauge" in w for w in sparse.warnings)
        anchored = bootstrap(few_battles, 300, gauge=(worst, 1000.0))
        (warning,) = [w for w in anchored.warnings if "hold the gauge" in w]
        assert f"{share[worst]:.1%} of the resamples {worst} " in warning
        assert warning.endswith("Choose another anchor, or a mean")
        nobody = ~np.isfinite(anchored.draws).any(1)
        np.testing.assert_array_equal(nobody, ~np.isfinite(sparse.draws[:, share.argmax()]))

    def test_a_mean_that_nobody_holds_advises_no_other_anchor(self):
        frame = pd.DataFrame({"model_a": "x", "model_b": "y", "winner": ["model_a", "model_b"] * 2})
        (warning,) = [w for w in bootstrap(frame, 300).warnings if "hold the gauge" in w]
        assert "of the resamples no model has a finite rating to hold the gauge" in warning
        assert warning.endswith("More battles, or a ridge > 0, would help")
        assert "anchor" not in warning

    @pytest.mark.parametrize("score", [(2, 2), (5, 1), (1, 2), (1, 0)])
    def test_two_models(self, score):
        """Each mirrors the other: neither holds the board when all battles go one way."""
        won, lost = score
        frame = pd.DataFrame({"model_a": "x", "model_b": "y", "winner": ["model_a"] * won + ["model_b"] * lost})
        board = bootstrap(frame, B)
        if lost == 0:
            assert board.fit.ratings.tolist() == [np.inf, -np.inf]
            assert np.isnan(board.interval()).all(axis=None)
        else:
            n, all_won = won + lost, (won / (won + lost)) ** (won + lost)
            spread = 4 * np.sqrt(B * all_won * (1 - all_won))
            assert board.degenerate.undefeated["x"] == pytest.approx(B * all_won, abs=spread)
            assert board.degenerate.winless["x"] == pytest.approx(B * (lost / n) ** n, abs=spread)
        np.testing.assert_array_equal(board.draws == np.inf, (board.draws == -np.inf)[:, ::-1])
        np.testing.assert_allclose(board.draws[np.isfinite(board.draws).all(1)].sum(1), 2000, atol=1e-9)
        for kind in ("percentile", "basic"):
            interval = board.interval(kind=kind).to_numpy()
            np.testing.assert_allclose(interval[0], 2000 - interval[1, ::-1], atol=1e-6)

    def test_counted_with_a_ridge_too(self, few_battles, sparse):
        """A ridge keeps ratings finite, and hides nothing."""
        board = bootstrap(few_battles, 300, ridge=0.05)
        assert np.isfinite(board.draws).all()
        pd.testing.assert_frame_equal(board.degenerate, sparse.degenerate)

    def test_a_dense_board_has_none(self, dense):
        assert dense.degenerate.to_numpy().sum() == 0
        assert dense.warnings == []

    def test_they_are_named(self, sparse):
        (warning,) = [w for w in sparse.warnings if "in some resamples" in w]
        worst = sparse.degenerate_share.idxmax()
        assert f"{worst} ({sparse.degenerate_share.max():.1%})" in warning

    def test_never_a_bound_in_silence(self, sparse):
        """More infinite draws than a tail holds make the bound infinite, not a large number."""
        shares = (sparse.draws == np.inf).mean(0)
        upper = sparse.interval(0.95, "percentile")["upper"]
        clear = np.abs(shares - 0.025) > 1 / 300
        assert (shares > 0.025).any()
        np.testing.assert_array_equal(np.isinf(upper)[clear], (shares > 0.025)[clear])
        finite = upper[np.isfinite(upper)]
        assert (finite < 2500).all()

    def test_models_without_a_rating_on_the_full_data(self):
        rows = simulate_votes(330, 9, seed=2)[["model_a", "model_b", "winner"]].astype(str)
        extra = pd.DataFrame(
            {"model_a": ["u"] * 30 + ["x"] * 4, "model_b": ["model-1"] * 30 + ["y"] * 4, "winner": "model_a"}
        )
        board = bootstrap(pd.concat([rows, extra]), 300)
        core = board.models.str.startswith("model-")
        assert core.sum() == 9
        assert np.isnan(board.draws[:, ~core]).all()
        assert np.isfinite(board.draws[:, core]).mean() > 0.95
        interval = board.interval(0.8)
        assert interval[core].notna().all(axis=None)
        assert interval[~core].drop("u").isna().all(axis=None)
        assert interval.loc["u", "lower"] > 1000  # never lost a point
        assert interval.loc["u", "upper"] == np.inf
        assert board.standard_errors[~core].isna().all()
        assert board.beat_share.loc["u"].isna().all()
        assert any("u: never lost a point" in w for w in board.warnings)
        assert any("2 groups that never met" in w for w in board.warnings)
        assert board.first_sentence().endswith("; undefeated, without a rank: u; nothing compares x, y with these")


class TestIntervals:
    @pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
    def test_percentile(self, dense, level):
        interval = dense.interval(level)
        tail = (1 - level) / 2
        np.testing.assert_allclose(interval.lower, np.quantile(dense.draws, tail, axis=0), rtol=1e-12)
        np.testing.assert_allclose(interval.upper, np.quantile(dense.draws, 1 - tail, axis=0), rtol=1e-12)
        assert interval.index.equals(dense.fit.ratings.index)

    def test_basic_reflects_about_the_estimate(self, dense):
        percentile, basic = dense.interval(0.9), dense.interval(0.9, "basic")
        np.testing.assert_allclose(basic.lower, 2 * dense.fit.ratings - percentile.upper, rtol=1e-12)
        np.testing.assert_allclose(basic.upper, 2 * dense.fit.ratings - percentile.lower, rtol=1e-12)
        assert not np.allclose(basic, percentile, atol=1e-6)

    @pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, np.nan])
    def test_bad_levels(self, dense, level):
        with pytest.raises(ValueError, match="level must be between 0 and 1"):
            dense.interval(level)

    def test_unknown_kind(self, dense):
        with pytest.raises(ValueError, match="'bca', 'wald', got 'exact'"):
            dense.interval(0.95, "exact")

    def test_draws_without_spread_are_no_certainty(self, votes):
        """Two models that only ever tied; all is known of an anchor, by choice."""
        ties = pd.DataFrame({"model_a": ["p"] * 30, "model_b": ["q"] * 30, "winner": "tie"})
        board = bootstrap(ties, 100)
        assert board.fit.ratings.tolist() == [1000, 1000]
        assert board.without_spread.all()
        assert board.interval(kind="percentile").isna().all(axis=None)
        assert board.interval().notna().all(axis=None)  # of the penalised fit
        assert board.standard_errors.isna().all()
        assert not any("the same rating" in warning for warning in board.warnings)
        asked = bootstrap(ties, 100, interval="percentile")
        assert any("all resamples give the same rating to p, q" in warning for warning in asked.warnings)
        assert board.tiers().tolist() == [1, 1]
        anchored = bootstrap(votes, 50, gauge=("model-03", 1100.0))
        assert anchored.warnings == []
        assert anchored.interval().loc["model-03"].tolist() == pytest.approx([1100, 1100])
        assert bootstrap(votes, 1).interval().isna().all(axis=None)

    def test_few_clusters_are_named(self, prompts):
        """As many as there are; the warning is about their number alone."""
        frame = prompts.to_pandas()
        for n, warnings in ((29, ["only 29 clusters: standard errors and intervals from fewer than 30 are unreliable, "
                                  "as a rule too narrow"]), (30, [])):  # fmt: skip
            fit = fit_bradley_terry(frame.assign(prompt=frame["prompt"] % n), cluster="prompt")
            assert fit.n_clusters == n
            assert fit.warnings == warnings

    @pytest.mark.parametrize("ties", ["half", pytest.param("davidson", marks=pytest.mark.slow)])
    def test_models_of_one_cluster_are_named(self, ties):
        """All battles of one prompt are drawn together: the model's rating moves as its opponents' do, and no more."""
        votes = simulate_votes(600, 5, seed=3).assign(prompt=np.arange(600) // 2)
        thin = votes.head(6).assign(model_a="thin", model_b="model-1", winner=["model_a", "model_b"] * 3, prompt=-1)
        one, two = (
            fit_bradley_terry(pd.concat([votes, own]), cluster="prompt", ties=ties).warnings
            for own in (thin, thin.assign(prompt=[-1] * 5 + [-2]))
        )
        assert len(one) == 1
        assert one[0].startswith("1 model has all battles in one cluster")
        assert one[0].endswith("are too small: thin")
        assert two == []

    def test_differences_do_not_depend_on_the_gauge(self, battles, dense):
        anchored = bootstrap(battles, B, gauge=("model-07", 1000.0))
        for one, other in zip(dense.difference_interval(0.9), anchored.difference_interval(0.9), strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)
        np.testing.assert_allclose(dense.beat_share, anchored.beat_share, rtol=0, atol=1e-12)
        assert dense.tiers().equals(anchored.tiers())
        assert dense.rank_sets().equals(anchored.rank_sets())


class TestArguments:
    @pytest.mark.parametrize(("options", "error", "match"), [
        ({"n_resamples": 0}, ValueError, "n_resamples must be at least 1, got 0"),
        ({"scheme": "jackknife"}, ValueError, "scheme must be one of 'multinomial', .*, got 'jackknife'"),
        ({"scheme": "cluster"}, ValueError, "needs cluster="),
        ({"scheme": "poisson", "cluster": "voter"}, ValueError, "scheme='poisson' cannot have cluster="),
        ({"by": ["half", "lang"]}, DataError, "no column 'lang'"),
        ({"by": []}, ValueError, "by"),
        ({"dtype": "float16"}, ValueError, "'float64', 'float32', got 'float16'"),
        ({"ridge": -1.0}, ValueError, "ridge must be finite and >= 0"),
        ({"ridge": np.nan}, ValueError, "ridge must be finite and >= 0"),
        ({"gauge": "median"}, ValueError, "gauge must be"),
        ({"gauge": ("nobody", 1000)}, ValueError, "'nobody' is not among the 12 models"),
    ])  # fmt: skip
    def test_bad_ones(self, battles, options, error, match):
        with pytest.raises(error, match=match):
            bootstrap(battles, **{"n_resamples": 10, **options})

    def test_settings_say_what_made_it(self, battles):
        board = bootstrap(battles, 50, 7, "poisson", ridge=0.1, gauge="votes", base=1500.0)
        settings = board.settings
        assert (settings.scheme, settings.n_resamples, settings.seed) == ("poisson", 50, 7)
        assert (settings.ridge, settings.base, settings.dtype) == (0.1, 1500.0, "float64")
        assert settings.n_devices == len(jax.local_devices())
        assert f"jax {jax.__version__}" in settings.versions
        assert json.loads(json.dumps(vars(settings)))["device"] == jax.devices()[0].device_kind
        assert np.average(board.fit.ratings, weights=board.fit.n_battles) == pytest.approx(1500)

    def test_tables_are_read(self, votes, dense):
        np.testing.assert_array_equal(bootstrap(votes, 20).draws, dense.draws[:20])


class TestProgress:  # tests/execution/test_progress.py has the bar itself
    def test_nothing_is_written_by_default(self, battles, capfd):
        bootstrap(battles, 50)
        bootstrap(battles, 50, progress=False)
        assert capfd.readouterr() == ("", "")

    def test_the_bar_counts_all_resamples(self, battles, monkeypatch):
        counted = []

        class Bar:
            def __init__(self, total, unit, enabled):
                counted.append(total)

            def __enter__(self):
                return lambda n: counted.append(n)

            def __exit__(self, *_):
                counted.append("done")

        monkeypatch.setattr("jaxeval.execution.runs.progress_bar", Bar)
        bootstrap(battles, 50, by="half", progress=True)
        assert counted[0] == 100
        assert sum(counted[1:-1]) == 100
        assert counted[-1] == "done"
