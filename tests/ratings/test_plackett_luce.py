"""Plackett-Luce fits and their bootstrap: against naive ones, published numbers, choix, and Bradley-Terry."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import twins
from compilations import compilations
from ranked import TOY, levels, simulated, table

import jaxeval
from jaxeval import Battles, Rankings, bootstrap, fit_bradley_terry, fit_plackett_luce, leaderboard
from jaxeval.execution import host as host_module
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch.choice_models import count_choices
from jaxeval.kernels.batch.programs import Program
from jaxeval.kernels.batch.refits import draw_one
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.plackett_luce import fit_ranking_board, ranking_refits
from jaxeval.ratings.slices import whole_board

#: NumPy fits, and programs refit: `test_the_host_fits_as_programs_do` compares the fits of both.
pytestmark = pytest.mark.usefixtures("all_on_the_host")

ELO = 400 / np.log(10)
M = 6
LISTS = simulated(60, M, seed=3)
JUDGES = np.random.default_rng(8).integers(0, 25, len(LISTS))
LANGUAGES = np.where(np.arange(len(LISTS)) % 3 == 0, "de", "en")


@pytest.fixture(scope="module")
def frame():
    weight = np.random.default_rng(9).choice([0.5, 1.0, 2.0], len(LISTS))
    return table(LISTS, judge=JUDGES, language=LANGUAGES, w=weight)


@pytest.fixture(scope="module")
def rankings(frame):
    return Rankings.from_pandas(frame)


@pytest.fixture(scope="module")
def resampled(rankings):
    return bootstrap(rankings, 64)


def items_of(ranking):
    return [item for level in levels(ranking) for item in level]


def naive(lists, weight=None, ridge=0.0):
    return twins.plackett_luce([levels(ranking) for ranking in lists], M, weight, ridge)


class TestFit:
    def test_naive(self, rankings):
        fit = fit_plackett_luce(rankings)
        np.testing.assert_allclose(fit.strengths, naive(LISTS), atol=1e-6)
        assert fit.strengths.mean() == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(fit.ratings, 1000 + ELO * fit.strengths)
        expected = sum(twins.ranking_log_likelihood(fit.strengths.to_numpy(), levels(r)) for r in LISTS)
        assert fit.log_likelihood == pytest.approx(expected)
        assert (fit.warnings, fit.status) == ([], "converged")
        count = [sum(item in items_of(ranking) for ranking in LISTS) for item in range(M)]
        assert fit.n_battles.tolist() == count

    def test_weights_and_ridge(self, frame):
        fit = fit_plackett_luce(Rankings.from_pandas(frame, weight="w"), ridge=0.4)
        np.testing.assert_allclose(fit.strengths, naive(LISTS, frame["w"], 0.4), atol=1e-6)

    def test_choix(self):
        choix = pytest.importorskip("choix")
        lists = simulated(300, M, tied=0, seed=11)
        theta = choix.ilsr_rankings(M, lists)
        np.testing.assert_allclose(fit_plackett_luce(table(lists)).strengths, theta - theta.mean(), atol=1e-6)

    @pytest.mark.parametrize("ridge", [0.0, 0.4])
    def test_the_host_fits_as_programs_do(self, rankings, monkeypatch, ridge):
        monkeypatch.setattr(host_module, "spares_jax", lambda: False)
        compiled = fit_plackett_luce(rankings, ridge=ridge)
        monkeypatch.setattr(host_module, "spares_jax", lambda: True)
        monkeypatch.setattr(Program, "__call__", None)
        host = fit_plackett_luce(rankings, ridge=ridge)
        np.testing.assert_allclose(host.strengths, compiled.strengths, rtol=0, atol=1e-10)
        np.testing.assert_allclose(host.standard_errors, compiled.standard_errors, rtol=1e-9)

    def test_gauges(self, rankings):
        held = fit_plackett_luce(rankings, gauge=("m2", 1200.0))
        assert held.ratings["m2"] == 1200
        weighted = fit_plackett_luce(rankings, gauge="votes", base=0.0)
        assert weighted.ratings @ weighted.n_battles == pytest.approx(0, abs=1e-8)
        with pytest.raises(ValueError, match="the anchor model"):
            fit_plackett_luce(rankings, gauge=("m9", 0.0))


class TestPublished:
    """Turner, van Etten, Firth and Kosmidis (2020, DOI 10.1007/s00180-020-00959-3), section on networks."""

    def test_an_item_that_always_loses(self):
        fit = fit_plackett_luce(pd.DataFrame({"ranking": TOY}), gauge=("A", 0.0))
        assert (fit.ratings / ELO).round(4).tolist() == [0, 0.8392, 0.4196, -np.inf]
        assert (fit.standard_errors_hessian / ELO)[["B", "C"]].round(4).tolist() == [1.3596, 1.5973]
        assert round(-2 * fit.log_likelihood, 4) == 5.1356
        assert fit.warnings == ["D: never took a point off the main group: no finite rating"]

    def test_half_a_win_and_half_a_loss_against_a_ghost(self):
        pseudo = [f"{item} > ghost" for item in "ABCD"] + [f"ghost > {item}" for item in "ABCD"]
        both = pd.DataFrame({"ranking": TOY + pseudo, "w": [1.0] * 5 + [0.5] * 8})
        fit = fit_plackett_luce(Rankings.from_pandas(both, weight="w"), gauge=("A", 0.0))
        assert (fit.ratings / ELO)[[*"ABCD"]].round(6).tolist() == [0, 0.518418, 0.135471, -1.153757]

    def test_brands_of_pudding(self):
        """The first six rows of the pairs that the paper prints, with ties; as half a win they are Bradley-Terry's."""
        rows = [(1, 2, 19, 22, 16), (1, 3, 16, 19, 12), (2, 3, 19, 19, 10),
                (1, 4, 18, 23, 13), (2, 4, 23, 19, 9), (3, 4, 19, 20, 15)]  # fmt: skip
        orders = [(f"{i}>{j}", w, f"{j}>{i}", v, f"{i}={j}", t) for i, j, w, v, t in rows]
        counted = pd.DataFrame([row[k : k + 2] for row in orders for k in (0, 2, 4)], columns=["ranking", "n"])
        fit = fit_plackett_luce(Rankings.from_pandas(counted, count="n"))
        counts = pd.DataFrame(rows, columns=["model_a", "model_b", "wins_a", "wins_b", "ties"])
        pairs = fit_bradley_terry(counts.astype({"model_a": str, "model_b": str}))
        np.testing.assert_allclose(fit.strengths, pairs.strengths, atol=1e-10)
        assert fit.report.n_battles == 311


class TestTwoItems:
    @pytest.fixture(scope="class")
    @classmethod
    def both(cls):
        """The same votes as rankings of two and as battles, with ties, weights and clusters."""
        rng = np.random.default_rng(4)
        votes = jaxeval.simulate_votes(900, 7, seed=2)[["model_a", "model_b", "winner"]].astype(str)
        votes = votes.assign(w=rng.choice([0.5, 1.0, 3.0], len(votes)), voter=rng.integers(0, 40, len(votes)))
        sign = votes["winner"].map({"model_a": " > ", "model_b": " < "}).fillna(" = ")
        first = np.where(sign == " < ", votes["model_b"], votes["model_a"])
        second = np.where(sign == " < ", votes["model_a"], votes["model_b"])
        votes["ranking"] = first + np.where(sign == " = ", " = ", " > ") + second
        return Rankings.from_pandas(votes, weight="w"), Battles.from_pandas(votes, weight="w")

    @pytest.mark.parametrize("options", [{}, {"ridge": 0.5}, {"cluster": "voter"}, {"gauge": "votes"}])
    def test_are_bradley_terry(self, both, options):
        own, battles = (f(x, **options) for f, x in zip((fit_plackett_luce, fit_bradley_terry), both, strict=True))
        np.testing.assert_allclose(own.strengths, battles.strengths, atol=1e-9)
        np.testing.assert_allclose(own.ratings, battles.ratings, atol=1e-6)
        np.testing.assert_allclose(own.standard_errors, battles.standard_errors, rtol=1e-7)
        np.testing.assert_allclose(own.standard_errors_hessian, battles.standard_errors_hessian, rtol=1e-7)
        np.testing.assert_allclose(own.log_likelihood, battles.log_likelihood, rtol=1e-12)
        np.testing.assert_allclose(own.win_probability, battles.win_probability, atol=1e-9)
        assert own.n_battles.tolist() == battles.n_battles.tolist()

    @pytest.mark.slow
    def test_have_its_intervals(self, both):
        """Draws are others, as cells are: errors agree within five standard errors of them."""
        own, battles = (bootstrap(x, 1000) for x in both)
        error = 5 * np.sqrt(2) / np.sqrt(2 * 1000)
        np.testing.assert_allclose(own.standard_errors / battles.standard_errors, 1, atol=error)


def drawn(rankings, number, scheme, **groups):
    """How often each ranking is in one resample, by cell; and the cells as lists of levels."""
    options = BootstrapOptions(scheme=scheme, **groups).checked(rankings.rows)
    cells, drawn = whole_board(rankings.rows, options)
    refits = ranking_refits(fit_ranking_board(rankings.items, cells, options), "", drawn, options)
    with double_precision():
        count = np.asarray(draw_one(count_choices, refits.problem, refits.form, np.uint64(0), np.int64(number)))
    places, n = cells.places, len(cells.count)
    assert not count[n:].any()
    lists = []
    for a, b in zip(places.start[:-1], places.start[1:], strict=True):
        level = places.level[a:b]
        lists.append([places.item[a:b][level == k].tolist() for k in range(level[-1] + 1)])
    return count[:n], lists


class TestBootstrap:
    @pytest.mark.parametrize(("scheme", "groups"), [
        ("multinomial", {}),
        pytest.param("poisson", {}, marks=pytest.mark.slow),
        pytest.param("bayesian", {}, marks=pytest.mark.slow),
        ("cluster", {"cluster": "judge"}),
        pytest.param("multinomial", {"strata": "language"}, marks=pytest.mark.slow),
    ])  # fmt: skip
    def test_naive_refits(self, rankings, scheme, groups):
        board = bootstrap(rankings, 8, scheme=scheme, **groups)
        count, lists = drawn(rankings, 5, scheme, **groups)
        if scheme == "multinomial":
            assert count.sum() == len(LISTS)
        own = board.draws_logit[5]
        np.testing.assert_allclose(own - own.mean(), twins.plackett_luce(lists, M, count), atol=2e-6)

    def test_clusters_are_drawn_whole(self, rankings):
        count, _ = drawn(rankings, 3, "cluster", cluster="judge")
        own = pd.Series(JUDGES).value_counts()
        assert 0 < count.sum() <= own.max() * len(own)

    @pytest.mark.slow
    def test_degenerate_resamples(self):
        """Items at their limits are as if they were not ranked."""
        lists = simulated(25, M, seed=6, spread=2.5)
        rankings = Rankings.from_pandas(table(lists))
        board = bootstrap(rankings, 60)
        lost = ~np.isfinite(board.draws_logit)
        some = np.flatnonzero(lost.any(1) & (lost.sum(1) < M - 2))
        assert len(some) > 3
        assert not np.isnan(board.converged).any()
        for number in some[:2]:
            count, lists = drawn(rankings, int(number), "multinomial")
            kept = np.flatnonzero(~lost[number])
            inner = [[[i for i in level if i in kept] for level in ranking] for ranking in lists]
            inner = [[level for level in ranking if level] for ranking in inner]
            use = [k for k, ranking in enumerate(inner) if sum(map(len, ranking)) > 1]
            place = {item: k for k, item in enumerate(kept)}
            renamed = [[[place[i] for i in level] for level in inner[k]] for k in use]
            theta = twins.plackett_luce(renamed, len(kept), count[use])
            own = board.draws_logit[number, kept]
            np.testing.assert_allclose(own - own.mean(), theta, atol=1e-5)
        assert (board.degenerate.sum(axis=1) > 0).any()
        assert any("no finite rating in some resamples" in warning for warning in board.warnings)

    @pytest.mark.slow
    def test_standard_errors(self):
        """Those of the sandwich are about those of the draws, by ranking and by judge."""
        lists = simulated(600, M, seed=12)
        judges = np.random.default_rng(1).integers(0, 120, 600)
        rankings = Rankings.from_pandas(table(lists, judge=judges))
        for cluster in (None, "judge"):
            board = bootstrap(rankings, 1000, cluster=cluster)
            five_errors = 5 / np.sqrt(2 * 1000)  # of a standard deviation of 1,000 draws
            np.testing.assert_allclose(board.standard_errors, board.fit.standard_errors, rtol=five_errors)

    def test_slices_are_resampled_on_their_own(self, frame, rankings):
        boards = bootstrap(rankings, 30, by="language")
        assert list(boards) == ["de", "en"]
        alone = bootstrap(Rankings.from_pandas(frame[frame["language"] == "de"]), 30, by="language")
        np.testing.assert_array_equal(boards["de"].draws, alone["de"].draws)

    def test_rankings_of_a_similar_size_compile_nothing_more(self, rankings, monkeypatch):
        monkeypatch.setattr(host_module, "spares_jax", lambda: False)
        bootstrap(rankings, 40)
        with compilations() as count:
            bootstrap(Rankings.from_pandas(table(simulated(70, M - 1, lengths=(2, 5), tied=0.2, seed=21))), 40)
        assert count.programs == []

    @pytest.mark.slow
    def test_weights_that_differ_by_many_powers_of_ten(self):
        """Of two groups that light rankings alone join, only rounding is between a draw and the odds of these."""
        rng = np.random.default_rng(0)
        heavy = [(" > ".join(rng.permutation(list(group))), 1.0) for group in ("abc", "def") for _ in range(80)]
        lists = pd.DataFrame([*heavy, *4 * [("a > d", 1e-12)], *2 * [("d > a", 1e-12)]], columns=["ranking", "weight"])
        draws = bootstrap(Rankings.from_pandas(lists, weight="weight"), 200).draws_logit
        gap = draws[:, 0] - draws[:, 3]
        odds = np.log(np.divide.outer(np.arange(1, 40), np.arange(1, 40))).ravel()
        assert np.isfinite(gap).any()
        assert abs(gap[np.isfinite(gap), None] - odds).min(1).max() < 0.1

    @pytest.mark.parametrize("options", [
        {"link": "probit"},
        {"ties": "davidson"},
        {"reweight": True},
        {"penalty": "firth"},
        {"features": ["judge"]},
        {"method": "sparse"},
        {"dtype": "float32"},
    ])  # fmt: skip
    def test_options_of_battles_are_refused(self, rankings, options):
        (name,) = options
        with pytest.raises(ValueError, match=name):
            bootstrap(rankings, 10, **options)


class TestTables:
    def test_the_leaderboard_has_the_columns_of_battles(self, rankings):
        table_ = leaderboard(rankings, n_resamples=200, rank_at_most=1)
        battles = leaderboard(jaxeval.simulate_battles(300, M, seed=0), n_resamples=200, rank_at_most=1)
        assert list(table_.columns) == list(battles.columns)
        assert table_["vote_count"].tolist() == fit_plackett_luce(rankings).n_battles[table_["model"]].tolist()
        assert table_["rank"].tolist() == sorted(table_["rank"])
        assert (table_["rank_best"] <= table_["rank"]).all()
        assert (table_["rank"] <= table_["rank_worst"]).all()
        assert "60 rankings of 6 items" in table_.attrs["report"]
        assert table_.attrs["warnings"] == []  # Firth's penalty is none of rankings

    def test_intervals_of_the_fit(self, rankings, resampled):
        own = leaderboard(resampled, interval="wald").set_index("model")
        half = (own["upper"] - own["lower"]) / 2
        error = fit_plackett_luce(rankings).standard_errors_hessian[own.index]
        np.testing.assert_allclose(half, 1.959964 * error, rtol=1e-6)

    def test_by_and_a_table_of_the_result(self, rankings, resampled):
        assert set(leaderboard(rankings, by="language", n_resamples=50)["category"]) == {"de", "en"}
        pd.testing.assert_series_equal(leaderboard(resampled)["rank"], leaderboard(rankings, n_resamples=64)["rank"])


class TestWhatRankingsCannotSay:
    def test_groups_that_no_ranking_joins(self):
        lists = [*LISTS, *([[6, 7], [7, 6]] * 3)]
        fit = fit_plackett_luce(table(lists))
        assert fit.component.tolist() == [1] * M + [2, 2]
        assert fit.ratings[["m6", "m7"]].isna().all()
        assert "the models fall into 2 groups that never met (6, 2 models)" in fit.warnings[0]
        np.testing.assert_allclose(fit.strengths[:M], naive(LISTS), atol=1e-6)

    def test_an_undefeated_item(self):
        lists = [[6, *ranking] for ranking in LISTS[:10]] + LISTS
        fit = fit_plackett_luce(table(lists))
        assert fit.standing["m6"] == "undefeated"
        assert fit.ratings["m6"] == np.inf
        np.testing.assert_allclose(fit.strengths[:M], naive(LISTS[:10] + LISTS), atol=1e-6)
        assert np.isnan(fit.standard_errors["m6"])
        held = fit_plackett_luce(table(lists), ridge=0.1)
        assert np.isfinite(held.ratings).all()

    def test_a_tie_with_the_group_joins_it(self):
        fit = fit_plackett_luce(table([*LISTS, [[0, 6], 1], [6, 1]]))
        assert fit.standing["m6"] == ""
        assert np.isfinite(fit.ratings["m6"])

    def test_nobody_is_rated(self):
        board = leaderboard(Rankings.from_pandas(pd.DataFrame({"ranking": ["a > b > c > d > e"] * 4})), n_resamples=40)
        assert board["rating"].isin([np.inf, -np.inf]).sum() + board["rating"].isna().sum() == 5
        assert board["rank"].isna().all()

    @pytest.mark.parametrize(("n", "more", "leads"), [
        (50, [], True),
        (6, [], True),
        (5, [], False),  # 2 / 2^5 is more than .05
        (50, ["b > a > c"], False),
        (50, ["b = a"], False),
        (50, ["d > e"] * 6, False),  # a never met d
        (50, ["d > e", *["a > d > e"] * 6], True),
    ])  # fmt: skip
    def test_who_is_always_first_leads_by_exact_tests(self, n, more, leads):
        rankings = Rankings.from_pandas(pd.DataFrame({"ranking": ["a > b > c"] * n + more}))
        said = bootstrap(rankings, 40, progress=False).first_sentence()
        assert said.startswith(f"a leads: undefeated in {n + (6 if len(more) == 7 else 0)} rankings") == leads, said
        assert said.endswith("ahead of all others at the 95% level") == leads

    def test_rankings_of_one_judge_are_one_meeting(self):
        """Ten rankings of each of five judges are five meetings, and of six judges six."""
        for judges, leads in ((5, False), (6, True)):
            frame = pd.DataFrame({"ranking": "a > b > c", "judge": np.repeat(np.arange(judges), 10)})
            board = bootstrap(Rankings.from_pandas(frame), 40, cluster="judge", progress=False)
            assert board.first_sentence().startswith("a leads") == leads

    def test_one_cluster(self):
        judges = np.where([5 in items_of(ranking) for ranking in LISTS], 0, 1 + np.arange(len(LISTS)))
        fit = fit_plackett_luce(table(LISTS, judge=judges), cluster="judge")
        assert any("all battles in one cluster" in warning and "m5" in warning for warning in fit.warnings)


class TestPairs:
    @pytest.mark.slow
    def test_rankings_broken_into_pairs_have_wrong_errors(self):
        """Errors of rankings are right; those of their pairs, taken as independent, are a quarter too small."""
        n_sets, n, m = 80, 100, 5
        found = {"rankings": ([], []), "pairs": ([], [])}
        for seed in range(n_sets):
            lists = simulated(n, m, lengths=(m, m), tied=0, seed=100 + seed)
            pairs = pd.DataFrame(
                [(f"m{a}", f"m{b}", "model_a") for r in lists for a, b in combinations(r, 2)],
                columns=["model_a", "model_b", "winner"],
            )
            for name, fit in (("rankings", fit_plackett_luce(table(lists))), ("pairs", fit_bradley_terry(pairs))):
                found[name][0].append(fit.ratings.to_numpy())
                found[name][1].append(fit.standard_errors.to_numpy())
        ratio = {
            name: float(np.mean(errors)) / np.sqrt(np.var(ratings, axis=0, ddof=1).mean())
            for name, (ratings, errors) in found.items()
        }
        error = 1 / np.sqrt(2 * (n_sets - 1) * (m - 1))  # of the ratio, of about m - 1 independent ratings
        assert abs(ratio["rankings"] - 1) < 4 * error
        assert ratio["pairs"] < 0.85
