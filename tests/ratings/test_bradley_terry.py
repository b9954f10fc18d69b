"""The fit: known answers, independent optima, invariances, gauges, and what no data can say."""

import copy
import json
import pickle
from dataclasses import asdict, replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from jaxeval import Battles, fit_bradley_terry, read_battles, simulate_votes

ELO_PER_LOGIT = 400 / np.log(10)


def from_wins(wins, names):
    """Battles of a table of wins, row over column."""
    i, j = np.nonzero(wins)
    rows = pd.DataFrame({"model_a": np.take(names, i), "model_b": np.take(names, j), "winner": "model_a"})
    return Battles.from_pandas(rows.loc[rows.index.repeat(np.asarray(wins)[i, j])])


def rows(*results):
    """Votes from (model_a, model_b, winner, times)."""
    frame = pd.DataFrame(results, columns=["model_a", "model_b", "winner", "times"])
    return frame.loc[frame.index.repeat(frame.times)].drop(columns="times")


@pytest.fixture(scope="module")
def votes():
    """3,000 simulated votes between 10 models."""
    return simulate_votes(3000, 10, seed=5)


@pytest.fixture(scope="module")
def soft_votes(votes):
    """Soft targets and weights, on both sides of a board with uneven pairs."""
    rng = np.random.default_rng(0)
    frame = votes[["model_a", "model_b", "language"]].iloc[:800]
    return frame.assign(target=rng.beta(2, 1, 800).round(2), w=rng.choice([0.25, 1.0, 3.0], 800))


class TestKnownAnswers:
    @pytest.mark.parametrize(("file", "label"), [
        ("arena140k_votes", "winner"),
        ("arena27k_human_3judges", "human"),
        ("arena27k_human_3judges", "gpt4_0125"),
        pytest.param("arena27k_human_3judges", "claude3_opus", marks=pytest.mark.slow),
        pytest.param("arena27k_human_3judges", "gpt35_turbo", marks=pytest.mark.slow),
    ])  # fmt: skip
    def test_exact_maximum_likelihood(self, data, file, label):
        """Promised are 1e-4 Elo and 0.5 %; two exact float64 solvers agree far better, so that is held too."""
        golden = pd.read_csv(data / "golden_exact_bt.csv.gz")
        golden = golden[(golden.dataset == file) & (golden.label == label)].set_index("model")
        fit = fit_bradley_terry(read_battles(data / f"{file}.parquet", winner=label))
        assert sorted(fit.ratings.index) == sorted(golden.index)
        assert fit.converged
        at = golden.index
        np.testing.assert_allclose(fit.ratings[at], golden.rating, rtol=0, atol=1e-8)
        np.testing.assert_allclose(fit.standard_errors[at], golden.se_sandwich, rtol=1e-8)
        np.testing.assert_allclose(fit.standard_errors_hessian[at], golden.se_hessian, rtol=1e-8)

    def test_facts_of_the_arena_votes(self, data):
        battles = read_battles(data / "arena140k_votes.parquet")
        assert battles.report.n_rows == 135_634
        assert battles.report.n_self_battles == 10
        assert battles.report.n_battles == 135_624
        assert battles.report.n_models == 53
        fit = fit_bradley_terry(battles)
        best = fit.ratings.sort_values(ascending=False)
        assert best.index[0] == "gemini-2.5-pro"
        assert best.iloc[0] == pytest.approx(1123.76, abs=0.005)
        assert fit.n_battles.min() == 2
        (warning,) = fit.warnings
        assert "only ties" in warning
        assert fit.n_battles.idxmin() in warning

    @pytest.mark.parametrize("name", ["simple", "food", "llmfao"])
    def test_evalica(self, data, name):
        """Its `bradley_terry` is the MLE with ties half: centred log scores agree to 1e-12 (here to 1e-14).

        The fit's tolerance of 1e-9 logits is a bound on the error left after the last Newton step, which by then is
        quadratically smaller.
        """
        fit = fit_bradley_terry(read_battles(data / f"evalica_{name}.csv.gz", model_a="left", model_b="right"))
        golden = pd.read_csv(data / f"evalica_{name}_golden.csv.gz", dtype={"item": str})
        score = golden[golden.algorithm == "bradley_terry"].set_index("item").score
        log_score = np.log(score) - np.log(score).mean()
        assert sorted(log_score.index) == sorted(fit.logits.index)
        np.testing.assert_allclose(fit.logits[log_score.index], log_score, rtol=0, atol=1e-12)

    @pytest.mark.parametrize(("reweight", "within"), [(False, 0.003), (True, 0.0002)])
    @pytest.mark.parametrize("label", ["human", "gpt4_0125", "claude3_opus"])
    def test_arena_rank(self, data, label, reweight, within):
        golden = self.arena_rank(data, "arena27k_human_3judges", label, reweight)
        battles = read_battles(data / "arena27k_human_3judges.parquet", winner=label)
        fit = fit_bradley_terry(battles, reweight=reweight)
        np.testing.assert_allclose(fit.ratings[golden.index], golden.rating, rtol=0, atol=within)
        # Its sandwich is at its own, slightly unconverged, optimum: within 0.15 %.
        se = (golden.upper - golden.lower) / 2 / 1.959964
        np.testing.assert_allclose(fit.standard_errors[golden.index], se, rtol=0.0016)

    @pytest.mark.parametrize(("reweight", "within"), [(False, 0.07), (True, 0.04)])
    def test_arena_rank_stopped_early(self, data, reweight, within):
        """On arena140k it ends before its 2-vote model has converged, which shifts all others."""
        golden = self.arena_rank(data, "arena140k_votes", "winner", reweight)
        fit = fit_bradley_terry(read_battles(data / "arena140k_votes.parquet"), reweight=reweight)
        difference = fit.ratings[golden.index] - golden.rating
        rare = fit.n_battles[golden.index] == 2
        assert rare.sum() == 1
        difference = difference[~rare]
        assert (difference - difference.mean()).abs().max() < within

    @staticmethod
    def arena_rank(data, file, label, reweight):
        golden = pd.read_csv(data / "golden_arena_rank_bt.csv.gz")
        chosen = (golden.dataset == file) & (golden.label == label) & (golden.reweighted == reweight)
        return golden[chosen].set_index("model")

    def test_wikipedia(self, data):
        case = json.loads((data / "fixtures.json").read_text())["wikipedia_bt"]
        battles = Battles.from_pandas(rows(*((*k.split(">"), "model_a", n) for k, n in case["wins"].items())))
        strength = np.exp(fit_bradley_terry(battles).logits)
        for model, expected in case["strength_geomean1"].items():
            assert strength[model] == pytest.approx(expected, rel=case["rtol"])

    def test_choix(self, data):
        cases = json.loads((data / "fixtures.json").read_text())["choix_pairwise"]["cases"]
        assert len(cases) == 2
        for case in cases:
            battles = Battles.from_pandas(rows(*((i, j, "model_a", 1) for i, j in case["data"])))
            np.testing.assert_allclose(fit_bradley_terry(battles).logits, case["ml_est"], rtol=0, atol=1e-9)

    def test_stigler_citations(self, data):
        """Abilities and standard errors of the classic binomial fit, with Biometrika as the reference."""
        case = json.loads((data / "fixtures.json").read_text())["citations_stigler_1994"]
        journals = case["journals"]
        wins = np.array(case["table"])
        np.fill_diagonal(wins, 0)
        fit = fit_bradley_terry(from_wins(wins, journals), gauge=("Biometrika", 0.0))
        assert (fit.ratings / ELO_PER_LOGIT)[journals].to_numpy() == pytest.approx(
            case["ability_ref_biometrika"], abs=1e-8
        )
        errors = (fit.standard_errors_hessian / ELO_PER_LOGIT)[journals].to_numpy()
        # Published from a Fisher scoring that stopped at a relative 1e-8.
        assert errors == pytest.approx(case["se_ref_biometrika"], abs=1e-7)

    def test_baseball(self, data):
        """The 1987 season of Agresti (2002), table 10.10: published to two decimals, Baltimore as the reference."""
        case = json.loads((data / "fixtures.json").read_text())["baseball_agresti_2002"]
        teams = ["Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore"]
        wins = [
            [0, 7, 9, 7, 7, 9, 11],
            [6, 0, 7, 5, 11, 9, 9],
            [4, 6, 0, 7, 7, 8, 12],
            [6, 8, 6, 0, 6, 7, 10],
            [6, 2, 6, 7, 0, 7, 12],
            [4, 4, 5, 6, 6, 0, 6],
            [2, 4, 1, 3, 1, 7, 0],
        ]
        logits = fit_bradley_terry(from_wins(wins, teams)).logits
        abilities = (logits - logits["Baltimore"]).drop("Baltimore").sort_values()
        assert abilities.round(2).tolist() == case["bt_no_home_sorted_vs_reference_Baltimore"]

    def test_two_models(self):
        """3 wins, 1 loss, 2 ties: the score is 4 of 6, so the odds are 2."""
        fit = fit_bradley_terry(rows(("a", "b", "model_a", 3), ("a", "b", "model_b", 1), ("b", "a", "tie", 2)))
        assert fit.logits.tolist() == pytest.approx([np.log(2) / 2, -np.log(2) / 2], abs=1e-12)
        assert fit.ratings["a"] - fit.ratings["b"] == pytest.approx(ELO_PER_LOGIT * np.log(2), abs=1e-9)
        # Hessian: 1 / (n p q) for the difference. Sandwich: the votes' own variance around p over n p^2 q^2.
        p, q, n = 2 / 3, 1 / 3, 6
        assert 2 * fit.standard_errors_hessian["a"] == pytest.approx(ELO_PER_LOGIT / np.sqrt(n * p * q), rel=1e-9)
        squares = 3 * q**2 + 1 * p**2 + 2 * (0.5 - p) ** 2
        assert 2 * fit.standard_errors["a"] == pytest.approx(ELO_PER_LOGIT * np.sqrt(squares) / (n * p * q), rel=1e-9)


def negative_log_likelihood(theta, battles, ridge, logaddexp=np.logaddexp, total=np.sum):
    """The issue's formula, battle by battle."""
    d = theta[battles.model_a] - theta[battles.model_b]
    y = battles.target
    w = np.ones(len(y)) if battles.weight is None else battles.weight
    return total(w * (y * logaddexp(0, -d) + (1 - y) * logaddexp(0, d))) + ridge * total(theta**2)


def negative_gradient(theta, battles, ridge):
    w = np.ones(battles.n_battles) if battles.weight is None else battles.weight
    surprise = w * (1 / (1 + np.exp(theta[battles.model_b] - theta[battles.model_a])) - battles.target)
    gradient = 2 * ridge * theta
    np.add.at(gradient, battles.model_a, surprise)
    np.add.at(gradient, battles.model_b, -surprise)
    return gradient


class TestIndependentOptima:
    @pytest.mark.parametrize("ridge", [0.01, 5.0])
    def test_scipy(self, soft_votes, ridge):
        """Equation 1 of arXiv:2606.13221: ``ridge`` multiplies the squared norm itself, not half of it."""
        battles = Battles.from_pandas(soft_votes, weight="w")
        start, options = np.zeros(battles.n_models), {"gtol": 1e-9, "maxiter": 500}
        best = minimize(negative_log_likelihood, start, (battles, ridge), "BFGS", negative_gradient, options=options)
        fit = fit_bradley_terry(battles, ridge)
        # BFGS stops where rounding of the value (1e-16 of 500) hides further descent: gradients of some 1e-6.
        np.testing.assert_allclose(fit.logits, best.x, rtol=0, atol=1e-6)
        # Half the ridge, the other convention, is told apart at this tolerance.
        assert np.abs(fit_bradley_terry(battles, ridge / 2).logits - best.x).max() > 3e-5
        assert negative_log_likelihood(fit.logits.to_numpy(), battles, ridge) <= best.fun + 1e-9

    @pytest.mark.parametrize("unit", [1e-12, 1e12])
    def test_the_unit_of_weights_changes_nothing(self, soft_votes, unit):
        plain = fit_bradley_terry(Battles.from_pandas(soft_votes, weight="w"))
        scaled = fit_bradley_terry(Battles.from_pandas(soft_votes.assign(w=soft_votes.w * unit), weight="w"))
        np.testing.assert_allclose(scaled.ratings, plain.ratings, rtol=0, atol=1e-6)
        np.testing.assert_allclose(scaled.standard_errors, plain.standard_errors, rtol=1e-6)
        np.testing.assert_allclose(
            scaled.difference_standard_errors, plain.difference_standard_errors, rtol=1e-6, atol=1e-9
        )

    def test_reweighting_is_these_weights(self, votes):
        """1 / max(battles of the unordered pair, 50), given as a weight column."""
        pair = votes[["model_a", "model_b"]].astype(str).apply(lambda r: " ".join(sorted(r)), axis=1)
        count = pair.map(pair.value_counts())
        assert (count < 50).any()
        assert (count > 50).any()
        weighted = Battles.from_pandas(votes.assign(w=1 / np.maximum(count, 50)), weight="w")
        fit, by_hand = fit_bradley_terry(votes, reweight=True), fit_bradley_terry(weighted)
        np.testing.assert_allclose(fit.ratings, by_hand.ratings, rtol=0, atol=1e-8)
        np.testing.assert_allclose(fit.standard_errors, by_hand.standard_errors, rtol=1e-9)
        assert np.abs(fit.ratings - fit_bradley_terry(votes).ratings).max() > 0.1
        assert fit.settings.reweighted

    def test_log_likelihood_and_win_probabilities(self, votes):
        battles = Battles.from_pandas(votes)
        fit = fit_bradley_terry(battles)
        theta = fit.logits.to_numpy()
        assert fit.log_likelihood == pytest.approx(-negative_log_likelihood(theta, battles, 0.0), rel=1e-12)
        np.testing.assert_allclose(fit.win_probability, 1 / (1 + np.exp(theta - theta[:, None])), rtol=1e-9)


class TestRidge:
    @pytest.mark.parametrize("ridge", [0.1, 10.0, 1000.0])
    def test_a_strong_ridge_against_strong_data(self, ridge):
        """The common shift, which only the ridge sees, must not drift while many steps are taken."""
        frame = pd.DataFrame(
            {
                "model_a": list("abcda"),
                "model_b": list("bcdac"),
                "winner": ["model_a", "model_a", "model_a", "tie", "tie"],
                "w": [1e6, 1e6, 1e6, 1, 1],
            }
        )
        battles = Battles.from_pandas(frame, weight="w")
        fit = fit_bradley_terry(battles, ridge)
        assert fit.converged
        assert abs(fit.logits.mean()) < 1e-9
        theta = fit.logits.to_numpy()
        gradient = negative_gradient(theta, battles, ridge)
        n, _ = battles.cells.tables(4)
        v = n / (2 + 2 * np.cosh(theta[:, None] - theta))
        information = np.diag(v.sum(1) + 2 * ridge) - v
        assert np.abs(np.linalg.solve(information, gradient)).max() < 1e-9  # what is left to the maximum, logits

    @pytest.mark.parametrize("ridge", [-0.01, np.nan, np.inf])
    def test_bad_values(self, votes, ridge):
        with pytest.raises(ValueError, match="ridge must be finite and >= 0"):
            fit_bradley_terry(votes, ridge)


@pytest.fixture(scope="module")
def fits(votes):
    """One fit in each gauge."""
    gauges = {"mean": "mean", "votes": "votes", "anchor": ("model-03", 1200.0)}
    return {name: fit_bradley_terry(votes, gauge=gauge) for name, gauge in gauges.items()}


class TestGauges:
    def test_copies_have_the_numbers_of_their_own_fields(self, votes):
        """What a fit has computed goes into a pickle, and not into a fit with another scale."""
        fit = fit_bradley_terry(votes)
        before = pickle.loads(pickle.dumps(fit))
        moved = replace(fit, scale=fit.scale._replace(base=1500.0))
        np.testing.assert_allclose(moved.ratings, fit.ratings + 500)
        for again in (before, pickle.loads(pickle.dumps(fit)), copy.copy(fit), copy.deepcopy(fit)):
            pd.testing.assert_series_equal(again.ratings, fit.ratings)
            pd.testing.assert_series_equal(again.standard_errors, fit.standard_errors)
        assert asdict(fit)["settings"] == asdict(fit.settings)

    def test_standard_errors_of_differences_do_not_depend_on_it(self, fits):
        expected = fits["mean"].difference_standard_errors.to_numpy()
        for fit in fits.values():
            np.testing.assert_allclose(fit.difference_standard_errors, expected, rtol=1e-9)
            c = fit.covariance.to_numpy()
            variance = np.diag(c)[:, None] + np.diag(c) - 2 * c
            np.testing.assert_allclose(variance, expected**2, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(np.sqrt(np.diag(c)), fit.standard_errors, rtol=1e-9, atol=1e-9)

    def test_standard_errors_are_of_their_gauge(self, fits):
        anchor = fits["anchor"].standard_errors
        assert anchor["model-03"] == pytest.approx(0, abs=1e-6)
        np.testing.assert_allclose(
            anchor.drop("model-03"), fits["mean"].difference_standard_errors["model-03"].drop("model-03"), rtol=1e-9
        )

    def test_the_vote_weighted_gauge_does_not_suffer_from_a_newcomer(self, votes):
        """A model with 4 votes moves the mean of all ratings, hardly that of all votes."""
        plain = fit_bradley_terry(votes, gauge="votes").standard_errors
        newcomer = rows(
            ("new", "model-01", "model_a", 1),
            ("new", "model-01", "model_b", 1),
            ("new", "model-05", "model_a", 1),
            ("new", "model-05", "model_b", 1),
        )
        joined = pd.concat([votes.astype({"model_a": str, "model_b": str, "winner": str}), newcomer])
        held = fit_bradley_terry(joined, gauge="votes").standard_errors.drop("new")
        inflated = fit_bradley_terry(joined, gauge="mean").standard_errors.drop("new")
        assert (held / plain).max() < 1.02
        assert (inflated / plain).min() > 1.2


MIXED = (("a", "b", "model_a", 6), ("a", "b", "model_b", 4), ("b", "c", "model_a", 5), ("b", "c", "tie", 3))
# a, b and c can be compared; alone they look like this.
CORE = (*MIXED, ("c", "a", "model_a", 2), ("c", "a", "model_b", 5))


class TestWhatVotesCannotSay:
    @staticmethod
    def assert_core_is_untouched(fit):
        """Models without a finite rating leave the others' as if they were not there."""
        alone = fit_bradley_terry(rows(*CORE))
        for one, other in ((fit.ratings, alone.ratings), (fit.standard_errors, alone.standard_errors)):
            np.testing.assert_allclose(one[list("abc")], other, rtol=1e-9)
        assert (fit.standing[list("abc")] == "").all()
        assert fit.log_likelihood == pytest.approx(alone.log_likelihood, rel=1e-12)

    def test_a_healthy_board_has_no_warnings(self):
        fit = fit_bradley_terry(rows(*CORE))
        assert fit.warnings == []
        assert fit.status == "converged"
        assert (fit.component == 1).all()

    def test_undefeated(self):
        """Thirty wins and no loss: no rating at all, rather than 3737.885 with an interval of 6 milli-Elo."""
        fit = fit_bradley_terry(rows(*CORE, ("u", "a", "model_a", 30)))
        assert fit.ratings["u"] == np.inf
        assert fit.standing["u"] == "undefeated"
        assert np.isnan(fit.standard_errors["u"])
        assert any("u: never lost a point" in w for w in fit.warnings)
        self.assert_core_is_untouched(fit)

    def test_winless(self):
        fit = fit_bradley_terry(rows(*CORE, ("a", "w", "model_a", 30), ("w", "c", "model_b", 1)))
        assert fit.ratings["w"] == -np.inf
        assert fit.standing["w"] == "winless"
        assert np.isnan(fit.standard_errors["w"])
        assert any("w: never took a point" in w for w in fit.warnings)
        self.assert_core_is_untouched(fit)

    def test_one_tie_is_a_point(self):
        fit = fit_bradley_terry(rows(*CORE, ("u", "a", "model_a", 30), ("u", "b", "tie", 1)))
        assert np.isfinite(fit.ratings).all()
        assert fit.warnings == []
        assert fit.ratings["u"] == fit.ratings.max()

    def test_undefeated_through_others(self):
        """v beat only u, who is undefeated by the rest; p lost only to u, so nothing compares p with the rest."""
        votes = rows(*CORE, ("u", "a", "model_a", 3), ("v", "u", "model_a", 2), ("p", "u", "model_b", 2))
        fit = fit_bradley_terry(votes)
        assert fit.ratings[["u", "v"]].tolist() == [np.inf, np.inf]
        assert np.isnan(fit.ratings["p"])
        assert fit.standing[["u", "v", "p"]].tolist() == ["undefeated", "undefeated", "not comparable"]
        assert any("u, v: never lost a point" in w for w in fit.warnings)
        assert any("p: no chain of wins both ways" in w for w in fit.warnings)
        self.assert_core_is_untouched(fit)

    def test_a_group_that_always_wins(self):
        """Two groups comparable inside: the one with more battles is rated, the other is above it."""
        group = (("x", "y", "model_a", 3), ("x", "y", "model_b", 2), ("x", "a", "model_a", 4))
        fit = fit_bradley_terry(rows(*CORE, *group))
        assert fit.standing[["x", "y"]].tolist() == ["undefeated", "undefeated"]
        assert (fit.ratings[["x", "y"]] == np.inf).all()
        self.assert_core_is_untouched(fit)

    def test_groups_that_never_met(self):
        fit = fit_bradley_terry(rows(*CORE, ("x", "y", "model_a", 3), ("x", "y", "model_b", 2), ("q", "r", "tie", 1)))
        assert fit.component[list("abcxyqr")].tolist() == [1, 1, 1, 2, 2, 3, 3]
        assert fit.ratings[list("xyqr")].isna().all()
        assert (fit.standing[list("xyqr")] == "not comparable").all()
        (warning,) = [w for w in fit.warnings if "never met" in w]
        assert "3 groups" in warning
        assert "(3, 2, 2 models)" in warning
        assert "q, r, x, y" in warning
        self.assert_core_is_untouched(fit)

    def test_many_models_are_named_in_short(self):
        winless = [(f"w{k:02}", "a", "model_b", 1) for k in range(12)]
        (warning,) = fit_bradley_terry(rows(*CORE, *winless)).warnings
        assert warning.startswith("w00, w01, w02, w03, w04, w05, w06, w07 and 4 more: never took a point")

    def test_a_single_battle(self):
        fit = fit_bradley_terry(rows(("a", "b", "model_a", 1)))
        assert fit.ratings.tolist() == [np.inf, -np.inf]
        assert fit.logits.tolist() == [np.inf, -np.inf]
        assert fit.standing.tolist() == ["undefeated", "winless"]
        assert fit.standard_errors.isna().all()
        assert fit.converged
        assert fit.win_probability.loc["a", "b"] == 1
        (warning,) = fit.warnings
        assert warning.startswith("no two models took points off each other")
        with pytest.raises(ValueError, match="has no rating that compares"):
            fit_bradley_terry(rows(("a", "b", "model_a", 1)), gauge=("a", 1000.0))
        held = fit_bradley_terry(rows(("a", "b", "model_a", 1)), ridge=0.1)
        assert np.isfinite(held.ratings).all()
        assert "ridge of 0.1 alone" in held.warnings[0]

    def test_a_ladder_rates_nobody(self):
        """Wins in one direction only: the top is undefeated, the bottom winless, nothing places those between."""
        ladder = [("a", "b", "model_a", 9), ("b", "c", "model_a", 9), ("c", "d", "model_a", 9)]
        fit = fit_bradley_terry(rows(*ladder))
        np.testing.assert_array_equal(fit.ratings, [np.inf, np.nan, np.nan, -np.inf])

    def test_a_small_group_is_the_main_one_where_there_is_no_other(self):
        """A hundred votes all won by one side compare nobody; two votes each way do."""
        fit = fit_bradley_terry(rows(("a", "b", "model_a", 100), ("c", "d", "model_a", 1), ("c", "d", "model_b", 1)))
        assert fit.component.to_dict() == {"a": 2, "b": 2, "c": 1, "d": 1}
        assert fit.ratings[["c", "d"]].tolist() == pytest.approx([1000, 1000])
        assert fit.ratings[["a", "b"]].isna().all()

    def test_soft_targets_inside_separate_nothing(self):
        """A judge's 0.999 is a point lost, if a small one."""
        frame = rows(*CORE).assign(target=lambda f: f.winner.map({"model_a": 1.0, "tie": 0.5, "model_b": 0.0}))
        extra = pd.DataFrame({"model_a": ["u"], "model_b": ["a"], "target": [0.999]})
        fit = fit_bradley_terry(pd.concat([frame.drop(columns="winner"), extra]))
        assert fit.warnings == []
        probability = fit.win_probability.loc["u", "a"]
        assert probability == pytest.approx(0.999, rel=1e-9)

    def test_a_ridge_keeps_them_finite_and_says_so(self):
        fit = fit_bradley_terry(rows(*CORE, ("u", "a", "model_a", 30), ("x", "y", "model_a", 3)), 0.1)
        assert np.isfinite(fit.ratings).all()
        assert np.isfinite(fit.standard_errors).all()
        assert any("u: never lost a point" in w and "the ridge of 0.1 alone makes it finite" in w for w in fit.warnings)
        assert any("2 groups that never met" in w for w in fit.warnings)

    def test_a_model_nine_hundred_points_away(self):
        """Nearly separated is not separated: one loss in a million is a finite, converged rating."""
        won = ["model_a", "model_b", "model_a", "model_b"]
        frame = pd.DataFrame({"model_a": list("aabb"), "model_b": list("bbcc"), "winner": won, "w": [1e6, 1, 1, 1]})
        fit = fit_bradley_terry(Battles.from_pandas(frame, weight="w"))
        assert fit.converged
        assert fit.warnings == []
        assert fit.ratings["a"] - fit.ratings["b"] == pytest.approx(ELO_PER_LOGIT * np.log(1e6), abs=1e-6)


@pytest.fixture(scope="module")
def frame(soft_votes):
    return soft_votes.astype({"model_a": str, "model_b": str})


@pytest.fixture(params=[0.0, 0.2])
def ridge(request):
    return request.param


class TestInvariances:
    @staticmethod
    def fit(frame, ridge):
        return fit_bradley_terry(Battles.from_pandas(frame, weight="w"), ridge)

    def test_weight_two_is_the_row_twice(self, frame, ridge):
        """For the estimate; its errors know that one row of weight 2 is one observation."""
        doubled = self.fit(frame.assign(w=2 * frame.w), ridge)
        twice = self.fit(pd.concat([frame, frame]), ridge)
        np.testing.assert_allclose(doubled.ratings, twice.ratings, rtol=0, atol=1e-8)
        for name in ("standard_errors", "standard_errors_hessian"):
            np.testing.assert_allclose(getattr(doubled, name), np.sqrt(2) * getattr(twice, name), rtol=1e-9)


class TestPrecision:
    @pytest.mark.parametrize("flag", [False, True])
    def test_double_whatever_the_flag_which_stays(self, votes, flag):
        with jax.enable_x64(flag):
            fit = fit_bradley_terry(votes)
            errors = fit.standard_errors
            assert jax.config.jax_enable_x64 == flag
            assert jnp.ones(1).dtype == (jnp.float64 if flag else jnp.float32)
        reference = fit_bradley_terry(votes)
        np.testing.assert_array_equal(fit.ratings, reference.ratings)
        np.testing.assert_array_equal(errors, reference.standard_errors)
        assert fit.ratings.dtype == fit.theta.dtype == np.float64
        assert fit.settings.dtype == "float64"

    def test_a_result_says_what_made_it(self, votes):
        fit = fit_bradley_terry(votes, 0.01, gauge=("model-02", 1100), reweight=True)
        settings = fit.settings
        assert (settings.ridge, settings.reweighted) == (0.01, True)
        assert settings.gauge == "model-02 = 1100"
        assert f"jax {jax.__version__}" in settings.versions
        assert settings.device == jax.devices()[0].device_kind
        assert fit.report.n_battles == 3000
        assert fit.n_battles.sum() == 6000
        assert fit.ratings.index.equals(fit.n_battles.index)


def test_models_that_hardly_anything_ties_down_are_named():
    rows = [("a", "b", 1e-13), ("b", "c", 0.5), ("c", "a", 1 - 1e-13)]
    fit = fit_bradley_terry(pd.DataFrame(rows, columns=["model_a", "model_b", "target"]))
    assert not fit.converged
    (warning,) = fit.warnings
    assert "the battles hardly determine the rating of a; a ridge > 0 would" in warning
    held = fit_bradley_terry(pd.DataFrame(rows, columns=["model_a", "model_b", "target"]), ridge=0.01)
    assert held.converged
    assert not held.warnings
