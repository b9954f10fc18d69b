"""References against the full ranking: every number against a naive twin, and what must not change it."""

from dataclasses import replace
from itertools import combinations

import jax
import numpy as np
import pandas as pd
import pytest
import twins
from compilations import compilations
from scipy.optimize import minimize
from scipy.stats import kendalltau

from jaxeval import Battles, DataError, bootstrap, fit_bradley_terry, read_battles, reference_study, simulate_votes
from jaxeval.execution.lanes import LaneRun
from jaxeval.kernels.batch import references
from jaxeval.kernels.batch.refits import draw
from jaxeval.lab.reference_tables import mean_by_tier, single_advice, tier_advice
from jaxeval.plots.evaluators import plot_reference_budgets, plot_reference_tiers, plot_references
from jaxeval.resampling.units import stream_number
from jaxeval.statistics.quantiles import centred

DELTAS, BUDGETS, B = (4.0, 12.0), (10, 40), 30
SETS = {"three": ["model-02", "model-07", "model-13"]}
TABLES = ("by_reference", "by_delta", "by_test_tier", "by_tier", "by_tier_and_test_tier", "by_budget", "by_set")
OPTIONS = {"deltas": DELTAS, "budgets": BUDGETS, "sets": SETS, "n_repeats": 3, "n_resamples": B}


@pytest.fixture(scope="module")
def votes():
    """4,000 votes between 14 models, some of which hardly met."""
    return simulate_votes(4000, 14, seed=2, popularity_exponent=0.5)


@pytest.fixture(scope="module")
def battles(votes):
    return Battles.from_pandas(votes)


@pytest.fixture(scope="module")
def study(battles):
    return reference_study(battles, **OPTIONS)


@pytest.fixture(scope="module")
def plain(battles):
    """Without resamples."""
    return reference_study(battles, **{**OPTIONS, "n_resamples": 0})


@pytest.fixture(scope="module")
def grid():
    """30 items, on which all of 9 models met three of them, hardest for the first."""
    rng = np.random.default_rng(3)
    rows = [
        (f"m{i}", f"m{k}", item, float(rng.random() < 1 / (1 + np.exp(0.5 * (i - k)))))
        for item in range(30)
        for k in (2, 5, 7)
        for i in range(9)
        if i != k and not (i in (2, 5, 7) and i < k)
    ]
    return pd.DataFrame(rows, columns=["model_a", "model_b", "prompt", "target"])


def tables(battles):
    """(M, M) battles and wins, from the rows."""
    m = battles.n_models
    n, wins = np.zeros((2, m, m))
    weight = np.ones(battles.n_battles) if battles.weight is None else battles.weight
    np.add.at(n, (battles.model_a, battles.model_b), weight)
    np.add.at(wins, (battles.model_a, battles.model_b), weight * battles.target)
    np.add.at(wins, (battles.model_b, battles.model_a), weight * (1 - battles.target))
    return n + n.T, wins


def win_rates(n, wins, k):
    """(M,) percent against reference k, NaN for itself and those that it never met."""
    with np.errstate(invalid="ignore"):
        return np.round(100 * wins[:, k] / np.where(np.arange(len(n)) == k, 0, n[:, k]), 9)


def naive_agreement(score, gold, delta=np.inf):
    """tau-b, share of pairs in the wrong order and number of pairs within delta, pair by pair."""
    p = q = t = u = n = 0
    for i, j in combinations(range(len(score)), 2):
        gap = gold[i] - gold[j] if np.isfinite(gold[i]) or gold[i] != gold[j] else np.nan
        if np.isnan(score[i] - score[j]) or np.isnan(gap) or not abs(score[i] - score[j]) < delta:
            continue
        product = np.sign(score[i] - score[j]) * np.sign(gap)
        n, p, q = n + 1, p + (product > 0), q + (product < 0)
        t, u = t + (score[i] == score[j]), u + (gap == 0)
    root = np.sqrt((n - t) * (n - u))
    return (p - q) / root if root else np.nan, (q + (n - p - q) / 2) / n if n else np.nan, n


def naive_study(n, wins, theta):
    """(D, L) taus, shares in the wrong order and pairs of all references."""
    found = [[naive_agreement(win_rates(n, wins, k), theta, d) for k in range(len(n))] for d in (*DELTAS, np.inf)]
    return np.moveaxis(np.array(found), 2, 0)


def by_model(table, value, battles):
    """(D, L) a column of by_delta in the order of the models."""
    wide = table.pivot_table(index="delta", columns="reference", values=value, dropna=False)
    return wide[battles.models].to_numpy()


class TestKernel:
    def test_scipy(self):
        rng = np.random.default_rng(0)
        scores, gold = rng.integers(0, 9, 30), rng.integers(0, 9, 30)
        assert naive_agreement(scores, gold)[0] == pytest.approx(kendalltau(scores, gold).statistic, rel=1e-12)


class TestFullData:
    def test_every_reference_and_delta(self, battles, study):
        n, wins = tables(battles)
        theta = fit_bradley_terry(battles).logits.to_numpy()
        expected = naive_study(n, wins, theta)
        for name, values in zip(("tau", "misordered", "n_pairs"), expected, strict=True):
            np.testing.assert_allclose(by_model(study.by_delta, name, battles), values, rtol=1e-10, err_msg=name)
        top = study.by_reference.set_index("reference").loc[battles.models]
        np.testing.assert_allclose(top["tau"], expected[0, -1], rtol=1e-10)
        np.testing.assert_array_equal(top["n_battles"], n.sum(0))
        np.testing.assert_array_equal(top["n_never_met"], (n == 0).sum(0) - 1)
        np.testing.assert_array_equal(top["n_models"], (n > 0).sum(0))
        assert (np.diff(study.by_reference["rank"]) > 0).all()

    def test_tiers_and_rank_changes(self, battles, study):
        n, wins = tables(battles)
        theta = fit_bradley_terry(battles).logits
        better = (theta.to_numpy() > theta.to_numpy()[:, None]).sum(1)
        np.testing.assert_array_equal(study.tier, np.repeat([1, 2, 3, 4], [4, 4, 3, 3])[better])
        for reference, rows in study.by_test_tier.groupby("reference"):
            score = win_rates(n, wins, battles.models.get_loc(reference))
            ranked = pd.DataFrame({"score": -score, "gold": -theta, "tier": study.tier})[~np.isnan(score)]
            change = (ranked["score"].rank() - ranked["gold"].rank()).abs()
            grouped = change.groupby(ranked["tier"])
            np.testing.assert_allclose(rows["rank_change"], grouped.mean().reindex([1, 2, 3, 4]), rtol=1e-12)
            np.testing.assert_array_equal(rows["n_models"], grouped.size().reindex([1, 2, 3, 4], fill_value=0))
            own = study.by_reference.set_index("reference").loc[reference]
            assert own["rank_change"] == pytest.approx(change.mean(), rel=1e-12)

    def test_means_over_the_references_of_a_tier(self, study):
        """Those with 15 pairs: of the closest models some have fewer."""
        enough = study.by_delta["n_pairs"] >= 15
        assert 0 < enough[study.by_delta["delta"] == DELTAS[0]].sum() < 14
        own = study.by_delta.assign(tau=study.by_delta["tau"].where(enough)).groupby(["tier", "delta"])["tau"]
        np.testing.assert_allclose(study.by_tier["tau"], own.mean(), rtol=1e-12)
        np.testing.assert_array_equal(study.by_tier["n_references"], own.count())
        own = study.by_test_tier.groupby(["tier", "test_tier"])["rank_change"].mean()
        np.testing.assert_allclose(study.by_tier_and_test_tier["rank_change"], own, rtol=1e-12)
        assert study.by_tier_and_test_tier["tau"].isna().all()  # no tier has 15 pairs inside

    def test_rank_changes_of_references_that_rank_few(self, study):
        ranked = study.by_test_tier.groupby("reference")["n_models"].transform("sum")
        share = (study.by_test_tier["rank_change"] / (ranked - 1)).groupby(
            [study.by_test_tier["tier"], study.by_test_tier["test_tier"]]
        )
        np.testing.assert_allclose(study.by_tier_and_test_tier["relative_change"], share.mean(), rtol=1e-12)

    def test_table_8_averages_to_table_4(self):
        """The published taus of 20 references by tier, and their means."""
        taus = {
            1: [0.7706, 0.7457, 0.7309, 0.7309, 0.7471],
            2: [0.7949, 0.7275, 0.7484, 0.7389],
            3: [0.7275, 0.7485, 0.7551, 0.7383, 0.7497, 0.7508, 0.7457, 0.7234],
            4: [0.7247, 0.6728, 0.7167],
        }
        in_tier = np.repeat(list(taus), [len(own) for own in taus.values()]) == np.arange(1, 5)[:, None]
        means = mean_by_tier(np.concatenate(list(taus.values()))[:, None], in_tier)
        np.testing.assert_array_equal(np.round(means[:, 0], 3), [0.745, 0.752, 0.742, 0.705])

    def test_without_resamples(self, study, plain):
        """The same numbers without intervals."""
        for name in TABLES:
            ours, theirs = getattr(plain, name), getattr(study, name)
            ends = [c for c in ours if c.endswith(("_lower", "_upper"))]
            assert ours[ends].isna().all(axis=None)
            pd.testing.assert_frame_equal(ours.drop(columns=ends), theirs.drop(columns=ends), rtol=1e-10)
        assert plain.tau_draws.shape == (0, 14, 3)
        assert all("of the resamples" not in sentence for sentence in plain.advice)


class TestResamples:
    def test_every_resample_against_the_naive_study_of_its_tables(self, battles, study):
        """The tables that the bootstrap refits, drawn again."""
        gold = bootstrap(battles, B)
        problems, method = planned(battles)
        order = battles.models.get_indexer(study.by_reference["reference"])
        with jax.enable_x64(True):
            for r in range(5):
                n, wins = draw(problems, method, np.uint64(0), np.int32(0), np.int64(r))
                n, wins = (np.asarray(x)[:14, :14] for x in (n, wins))
                tau, _, _ = naive_study(n, wins, gold.draws_logit[r])
                np.testing.assert_allclose(study.tau_draws[r].T, tau[:, order], rtol=1e-10)

    def test_intervals_hold_the_resamples_and_these_moved_by_twice_their_bias(self, study):
        estimate = study.by_reference["tau"].to_numpy()
        draws = study.tau_draws[:, :, -1]
        moved = draws - draws.mean(0) + estimate
        np.testing.assert_allclose(centred(np.concatenate([estimate[None], draws])), moved, atol=1e-12)
        both = [np.quantile(x, [0.025, 0.975], axis=0) for x in (draws, draws + 2 * (estimate - draws.mean(0)))]
        np.testing.assert_allclose(study.by_reference["tau_lower"], np.maximum(np.min(both, 0)[0], -1), atol=1e-12)
        np.testing.assert_allclose(study.by_reference["tau_upper"], np.minimum(np.max(both, 0)[1], 1), atol=1e-12)

    @pytest.mark.slow
    def test_soft_targets_weights_and_clusters(self, votes):
        rng = np.random.default_rng(0)
        frame = Battles.from_pandas(votes).to_pandas()[["model_a", "model_b", "target"]].iloc[:1500]
        frame["target"] = np.where(rng.random(1500) < 0.5, rng.integers(0, 5, 1500) / 4, frame["target"])
        frame = frame.assign(w=rng.choice([1, 2], 1500), prompt=rng.integers(0, 900, 1500))
        soft = Battles.from_pandas(frame, weight="w")
        options = {
            "deltas": DELTAS,
            "budgets": (20,),
            "sets": (),
            "n_repeats": 2,
            "n_resamples": 4,
            "cluster": "prompt",
        }
        board = reference_study(soft, **options)
        theta = fit_bradley_terry(soft).logits.to_numpy()
        # A weight of two is the vote twice.
        twice = Battles.from_pandas(frame.loc[frame.index.repeat(frame["w"])].drop(columns="w"))
        expected = naive_study(*tables(twice), fit_bradley_terry(twice).logits.to_numpy())
        np.testing.assert_allclose(by_model(board.by_delta, "tau", soft), expected[0], rtol=1e-10)
        k = soft.models.get_loc("model-05")
        taus = [naive_agreement(naive_scores(soft, [k], naive_votes(soft, [k], 20, q)), theta)[0] for q in range(2)]
        row = board.by_budget.query("references == 'model-05' and delta == inf").iloc[0]
        assert row["tau"] == pytest.approx(np.mean(taus), rel=1e-8)
        problems, method = planned(soft, cluster="prompt")
        gold = bootstrap(soft, 4, cluster="prompt").draws_logit
        order = soft.models.get_indexer(board.by_reference["reference"])
        with jax.enable_x64(True):
            for r in range(4):
                n, wins = draw(problems, method, np.uint64(0), np.int32(0), np.int64(r))
                n, wins = (np.asarray(x)[:14, :14] for x in (n, wins))
                tau, _, _ = naive_study(n, wins, gold[r])
                np.testing.assert_allclose(board.tau_draws[r].T, tau[:, order], rtol=1e-10)


def planned(battles, cluster=None):
    """The arguments of `draw`."""
    from jaxeval.ratings.boards import fit_boards
    from jaxeval.ratings.options import BootstrapOptions
    from jaxeval.ratings.pair_refits import dense_refits
    from jaxeval.ratings.vote_groups import vote_groups

    boards = fit_boards([(battles.models, battles.cells)], BootstrapOptions())
    cell = battles.compress(slice(None))[1]
    groups = vote_groups(battles, cluster, None)(slice(None), cell)
    refits = dense_refits(boards, [""], [groups], BootstrapOptions())
    return refits.problem, refits.form


def naive_votes(battles, members, budget, repeat, seed=0):
    """{(model, reference): weights and targets} that every model draws from the full data, one by one."""
    key = twins.stream_key(seed, stream_number("votes under a budget"), 2**64 - 1, repeat)
    left = {}
    weight = np.ones(battles.n_battles) if battles.weight is None else battles.weight
    for a, b, target, w in zip(battles.model_a, battles.model_b, battles.target, weight, strict=True):
        for i, k, y in ((a, b, target), (b, a, 1 - target)):
            if k in members and i not in members:
                left.setdefault((i, k), []).append((y if i < k else 1 - y, w, y))
    for own in left.values():
        own.sort()  # cells are in the order of the lower model's points, then of the weights
    drawn = {key: [] for key in left}
    for i in range(battles.n_models):
        for v in range(budget):
            has = [k for k in members if left.get((i, k))]
            if not has:
                break
            word = twins.squares32(i * 2**32 + v, key)
            if len(members) > 1:
                word *= len(has)
                k, word = has[word >> 32], word & (2**32 - 1)
            else:
                (k,) = has
            drawn[i, k].append(left[i, k].pop(word * len(left[i, k]) >> 32)[1:])
    return drawn


def naive_scores(battles, members, drawn, ridge=0.01):
    """(M,) win rates, or expected win rates of a penalised fit by BFGS, percent; NaN for models without votes."""
    m = battles.n_models
    score = np.full(m, np.nan)
    has = sorted({i for (i, _), own in drawn.items() if own})
    if len(members) == 1:
        for i in has:
            weight, target = np.array(drawn[i, members[0]]).T
            score[i] = np.round(100 * np.average(target, weights=weight), 9)
        return score
    number = {**{i: a for a, i in enumerate(has)}, **{k: len(has) + a for a, k in enumerate(members)}}

    def loss(theta):
        value, gradient = ridge * theta @ theta, 2 * ridge * theta
        for (i, k), own in drawn.items():
            if own:
                gap, y, n = theta[number[i]] - theta[number[k]], sum(w * y for w, y in own), sum(w for w, _ in own)
                value += n * np.logaddexp(0, gap) - y * gap
                residual = n / (1 + np.exp(-gap)) - y
                gradient[number[i]] += residual
                gradient[number[k]] -= residual
        return value, gradient

    theta = minimize(loss, np.zeros(len(number)), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    for i in has:
        rate = np.mean([1 / (1 + np.exp(theta[number[k]] - theta[number[i]])) for k in members])
        score[i] = np.round(100 * rate, 6)  # models with the same votes are equal
    return score


class TestBudgets:
    @pytest.mark.parametrize("names", [["model-03"], ["model-12"], SETS["three"]])
    def test_against_votes_drawn_one_by_one(self, battles, plain, names):
        members = [battles.models.get_loc(name) for name in names]
        theta = fit_bradley_terry(battles).logits.to_numpy()
        label = names[0] if len(names) == 1 else "three"
        rows = plain.by_budget[plain.by_budget["references"] == label].set_index(["budget", "delta"])
        for budget in BUDGETS:
            scores = [naive_scores(battles, members, naive_votes(battles, members, budget, q)) for q in range(3)]
            for delta in (*DELTAS, np.inf):
                taus, wrong, pairs = np.array([naive_agreement(s, theta, delta) for s in scores]).T
                row, known = rows.loc[(budget, delta)], ~np.isnan(taus)
                assert row["n_repeats"] == known.sum()
                if known.all():
                    assert row["tau"] == pytest.approx(taus.mean(), rel=1e-8)
                    assert row["tau_spread"] == pytest.approx(taus.std(ddof=1), rel=1e-6)
                    assert row["misordered"] == pytest.approx(wrong.mean(), rel=1e-8)
                    assert row["n_pairs"] == pytest.approx(pairs.mean(), rel=1e-12)

    def test_a_set_beside_its_references_on_the_same_models(self, battles, plain):
        members = [battles.models.get_loc(name) for name in SETS["three"]]
        theta = fit_bradley_terry(battles).logits.to_numpy()
        for budget in BUDGETS:
            found = []
            for q in range(3):
                sets = [members, *([k] for k in members)]
                scores = np.array([naive_scores(battles, own, naive_votes(battles, own, budget, q)) for own in sets])
                scores[:, np.isnan(scores).any(0)] = np.nan  # members of the set, which single references do rank
                together, *alone = (naive_agreement(score, theta) for score in scores)
                found.append((together[0], np.mean([tau for tau, _, _ in alone]), together[2]))
            row = plain.by_set[plain.by_set["budget"] == budget].iloc[0]
            np.testing.assert_allclose(row[["tau", "tau_alone", "n_pairs"]].astype(float), np.mean(found, 0), rtol=1e-8)
            assert row["gain"] == pytest.approx(row["tau"] - row["tau_alone"])
            every = plain.by_budget[
                plain.by_budget["references"].isin(SETS["three"]) & (plain.by_budget["budget"] == budget)
            ]
            assert abs(every[np.isinf(every["delta"])]["tau"].mean() - row["tau_alone"]) > 1e-3  # on other models
            n = tables(battles)[0][:, members].min(1)
            n[members] = 0
            assert (row["n_models"], row["n_short"]) == ((n > 0).sum(), ((n > 0) & (n < budget)).sum())

    def test_a_set_whose_references_are_not_studied_alone(self, battles):
        board = reference_study(battles, references=["model-01"], **{**OPTIONS, "n_resamples": 0})
        assert board.by_set["gain"].isna().all()
        assert (board.by_set["n_repeats"] == 0).all()

    def test_a_budget_beyond_all_votes_is_all_votes(self, battles, study, plain):
        every = reference_study(battles, **{**OPTIONS, "budgets": (10, 100_000), "n_resamples": 0})
        rows = every.by_budget[every.by_budget["budget"] == 100_000]
        single = rows[rows["n_references"] == 1]
        np.testing.assert_allclose(single["tau"], study.by_delta["tau"], rtol=1e-10)
        assert (rows["tau_spread"] == 0).all()
        assert (rows["n_short"] == rows["n_models"]).all()
        small = every.by_budget[every.by_budget["budget"] == 10]
        same = plain.by_budget[plain.by_budget["budget"] == 10]
        np.testing.assert_allclose(small["tau"], same["tau"], rtol=1e-10)

    def test_models_and_votes_behind_a_budget(self, battles, plain):
        n, _ = tables(battles)
        members = battles.models.get_indexer(SETS["three"])
        own = np.where(np.isin(np.arange(14), members), 0, n[:, members].sum(1))
        for budget in BUDGETS:
            row = plain.by_budget.query("references == 'three' and budget == @budget and delta == inf").iloc[0]
            assert (row["n_models"], row["n_short"]) == ((own > 0).sum(), ((own > 0) & (own < budget)).sum())


class TestItems:
    """On a grid of items, an item draws one reference of a set for all models."""

    OPTIONS = {"deltas": (), "budgets": (5, 20), "n_repeats": 2, "n_resamples": 6, "item": "prompt"}
    OPTIONS |= {"references": ["m2", "m5", "m7"], "sets": {"pair": ["m7", "m2"]}}

    def scores(self, grid, members, budget, repeat):
        """(9,) scores from items drawn one by one."""
        key = twins.stream_key(0, stream_number("votes under a budget"), 2**64 - 1, repeat)
        left, drawn = list(range(30)), {}
        for v in range(budget):
            item = left.pop(twins.squares32(2 * v, key) * len(left) >> 32)
            reference = members[twins.squares32(2 * v + 1, key) * len(members) >> 32]
            for i in set(range(9)) - set(members):
                own = grid[grid["prompt"] == item].set_index(["model_a", "model_b"])["target"]
                there, back = (f"m{i}", f"m{reference}"), (f"m{reference}", f"m{i}")
                y = own[there] if there in own.index else 1 - own[back]
                drawn.setdefault((i, reference), []).append((1.0, y))
        return naive_scores(Battles.from_pandas(grid), members, drawn)

    @pytest.mark.slow
    def test_against_items_drawn_one_by_one(self, grid):
        board = reference_study(grid, **self.OPTIONS)
        theta = fit_bradley_terry(grid).logits.to_numpy()
        for name, members in (("m2", [2]), ("m7", [7]), ("pair", [2, 7])):
            for budget in (5, 20):
                taus = [naive_agreement(self.scores(grid, members, budget, q), theta)[0] for q in range(2)]
                own = (board.by_budget["references"] == name) & (board.by_budget["budget"] == budget)
                row = board.by_budget[own].iloc[0]
                assert row["tau"] == pytest.approx(np.mean(taus), rel=1e-8)
                assert (row["n_models"], row["n_short"]) == (9 - len(members), 0)

    @pytest.mark.slow
    def test_all_items_are_all_votes(self, grid):
        """In resamples too: the items drawn are those that the full ranking is fitted to."""
        board = reference_study(grid, **{**self.OPTIONS, "budgets": (5, 400)})
        rows = board.by_budget.query("budget == 400 and n_references == 1")
        np.testing.assert_allclose(rows["tau"], board.by_reference["tau"], rtol=1e-10)
        np.testing.assert_allclose(board.budget_tau_draws[:, :3, 1], board.tau_draws, rtol=1e-10)
        assert (rows["tau_spread"] == 0).all()
        assert (rows["n_short"] == 8).all()

    def test_arena_votes_are_no_grid(self, votes):
        with pytest.raises(DataError, match=r"1\.0% of the verdicts .* leave out item="):
            reference_study(votes.assign(prompt=np.arange(4000) // 2), item="prompt", n_resamples=0)


class TestInvariance:
    def same(self, ours, theirs):
        for name in TABLES:
            pd.testing.assert_frame_equal(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-9)

    def test_order_of_the_members_of_a_set(self, battles, plain):
        board = reference_study(battles, **{**OPTIONS, "sets": {"three": SETS["three"][::-1]}, "n_resamples": 0})
        self.same(board, plain)

    def test_the_seed(self, battles, study):
        other = reference_study(battles, seed=1, **OPTIONS)
        assert (other.tau_draws != study.tau_draws).any()
        np.testing.assert_allclose(other.by_reference["tau"], study.by_reference["tau"], rtol=1e-9)
        assert (other.by_budget["tau"] != study.by_budget["tau"]).any()

    def test_a_second_call_compiles_nothing(self, battles, study):
        before = references.reference_study._cache_size()
        asked = {"deltas": (1.0, 2.0), "budgets": (3, 9), "n_repeats": 2, "n_resamples": 5, "seed": 4, "ridge": 0.1}
        reference_study(battles, **{**OPTIONS, **asked})
        assert references.reference_study._cache_size() == before


@pytest.mark.slow
def test_a_checkpoint_keeps_the_full_ranking_of_every_resample_too(battles, tmp_path, monkeypatch):
    options = OPTIONS | {"n_resamples": 6, "budgets": (), "sets": None, "checkpoint": tmp_path / "run"}
    first = reference_study(battles, **options)

    def nothing_left(run, task, of, which, results):
        assert len(which) == 0
        return []

    monkeypatch.setattr(LaneRun, "_finished", nothing_left)
    again = reference_study(battles, **options)
    np.testing.assert_array_equal(again.tau_draws, first.tau_draws)


class TestWeakData:
    @pytest.mark.slow
    def test_two_models_rank_no_reference(self):
        two = reference_study(simulate_votes(60, 2), **{**OPTIONS, "sets": ()})
        assert two.by_reference["tau"].isna().all()
        assert (two.by_reference["n_pairs"] == 0).all()
        assert any("say nothing about references" in sentence for sentence in two.advice)
        assert plot_references(two).axes[0].get_title(loc="left") == "no reference has two models to rank"

    def test_an_undefeated_reference_and_a_separate_group(self):
        ring = [
            ("a", "b", "model_a"),
            ("b", "c", "model_a"),
            ("c", "a", "model_a"),
            ("a", "c", "tie"),
            ("b", "d", "tie"),
        ]
        ring += [("d", "a", "model_b"), ("c", "d", "model_a")]
        best = [("best", name, "model_a") for name in "abcd"] * 2
        apart = [("x", "y", "model_a"), ("y", "x", "model_a")]
        rows = pd.DataFrame([*ring * 3, *best, *apart], columns=["model_a", "model_b", "winner"])
        board = reference_study(rows, **{**OPTIONS, "sets": [["a", "b", "best"]]})
        table = board.by_reference.set_index("reference")
        assert table.index[0] == "best"
        assert table.loc["best", "rank"] == 1
        assert np.isnan(table.loc["best", "tau"])  # all models at 0 %
        assert table.loc["best", "misordered"] == 0.5
        assert table.loc["a", "n_pairs"] == 6  # the undefeated model has its place, though no rating
        assert table.loc["x", "n_unrated"] == 1
        assert pd.isna(board.tier["x"])
        assert any("do not rank all other models" in sentence for sentence in board.warnings)
        assert any("2 groups that never met" in sentence for sentence in board.warnings)
        assert any("undefeated" in sentence or "never lost" in sentence for sentence in board.warnings)

    def test_both_bad_left_out(self, votes):
        options = {**OPTIONS, "n_resamples": 0}
        dropped = reference_study(Battles.from_pandas(votes, both_bad="drop"), **options)
        without = reference_study(votes[votes["winner"] != "both_bad"], **options)
        pd.testing.assert_frame_equal(dropped.by_reference, without.by_reference)

    def test_some_references(self, battles, study):
        names = ["model-04", "model-01"]
        board = reference_study(battles, references=names, **{**OPTIONS, "n_resamples": 0})
        own = study.by_reference[study.by_reference["reference"].isin(names)].reset_index(drop=True)
        pd.testing.assert_frame_equal(board.by_reference[["reference", "tau"]], own[["reference", "tau"]])

    @pytest.mark.parametrize(("options", "message"), [
        ({"references": ["nobody"]}, "no model nobody on the board"),
        ({"references": []}, "one or more models"),
        ({"sets": [["model-01"]]}, "two references or more"),
        ({"sets": [["model-01", "model-01"]]}, "named twice"),
        ({"sets": [["model-01", "model-02"]] * 2}, "sets are named twice: model-01 . model-02$"),
        ({"sets": {"a": ["model-01", "model-02"], "b": ["model-02", "model-01"]}}, "named twice: b is a again"),
        ({"deltas": (0.0,)}, "deltas must be > 0"),
        ({"budgets": (0,)}, "budgets must be whole numbers"),
        ({"budgets": (2.5,)}, "budgets must be whole numbers"),
        ({"ridge": 0.0}, "ridge must be finite and > 0"),
        ({"n_tiers": 0}, "n_tiers must be at least 1"),
        ({"n_resamples": 1}, "n_resamples must be 0 or at least 2, got 1"),
    ])  # fmt: skip
    def test_what_is_refused(self, battles, options, message):
        with pytest.raises(ValueError, match=message):
            reference_study(battles, **options)

    @pytest.mark.parametrize("options", [{"n_tiers": 2.5}, {"n_repeats": True}, {"few_pairs": 3.0}])
    def test_what_is_no_integer(self, battles, options):
        with pytest.raises(TypeError, match=f"{next(iter(options))} must be an integer"):
            reference_study(battles, **options)


class TestWords:
    def test_few_resamples(self, study):
        assert any("30 resamples are too few for 95% intervals" in sentence for sentence in study.warnings)

    def test_advice(self, battles, study):
        """14 models make tiers of 3 or 4; references are chosen by their ranking of all others."""
        assert sum("are ranked best by references of tier" in sentence for sentence in study.advice) == 4
        assert any("agrees best with the ranking of all votes under that budget" in words for words in study.advice)
        row = study.by_set.iloc[0]
        words = next(
            words for words in study.advice if words.startswith("three (model-02, model-07, model-13) under 10")
        )
        assert f"{row['tau']:.2f}, the same references alone {row['tau_alone']:.2f} on average on the same mod" in words
        everything = reference_study(battles, **{**OPTIONS, "n_resamples": 0, "few_pairs": 0}).advice
        assert sum("are ranked best by references of tier" in sentence for sentence in everything) == 4
        (none,) = single_advice(np.empty((1, 14, 0)), study.by_budget, 14, replace(study.settings, budgets=()))
        assert "with more votes agree better for that reason alone" in none

    def test_tiers_are_advised_by_relative_changes(self, study):
        """References of tier 1 are fewer places off, but rank few models."""
        rows = pd.DataFrame(
            {
                "tier": [1, 2], "test_tier": 1, "rank_change": [1.0, 2.0], "relative_change": [0.2, 0.05],
                "relative_change_lower": np.nan, "relative_change_upper": np.nan, "n_references": 3,
            }
        )  # fmt: skip
        settings = replace(study.settings, n_tiers=1)
        (sentence,) = tier_advice(np.array([[[0.2], [0.05]]]), rows, settings)
        assert "by references of tier 2: 2.0 places off, 5.0% of the most possible" in sentence

    def test_the_best_reference_is_that_of_equal_votes(self, study):
        """Under the budget that most have; not the one that half of the models have fewer votes against."""
        rows = pd.DataFrame(
            {
                "references": np.repeat(["short", "fair", "best"], 2), "n_references": 1, "delta": np.inf,
                "budget": [10, 40] * 3, "n_models": 13, "n_short": [0, 6, 0, 1, 0, 1], "n_pairs": 78.0,
                "tau": [0.9, 0.9, 0.5, 0.6, 0.4, 0.7], "tau_lower": np.nan, "tau_upper": np.nan,
            }
        )  # fmt: skip
        tau = rows["tau"].to_numpy().reshape(1, 3, 2)
        (sentence,) = single_advice(tau, rows, 14, study.settings)
        assert sentence.startswith("of the 2 single references (of 3) with 40 votes of nearly every model, best agrees")
        (sentence,) = single_advice(tau, rows.assign(n_short=9), 14, study.settings)
        assert sentence.startswith("no two references have 10 votes of nearly every model")
        (sentence,) = single_advice(tau, rows.assign(n_pairs=9.0), 14, study.settings)
        assert sentence.startswith("no reference has 15 pairs")


class TestFigures:
    def test_references_best_first(self, study, plain):
        for board in (study, plain):
            axis = plot_references(board).axes[0]
            assert [t.get_text() for t in axis.get_yticklabels()] == list(board.by_reference["reference"])
        with pytest.raises(ValueError, match=r"delta 3 was not studied; there are 4, 12, inf"):
            plot_references(study, 3.0)

    def test_tiers(self, study):
        texts = [t.get_text() for t in plot_reference_tiers(study).axes[0].texts]
        assert len(texts) == 16
        first = study.by_tier_and_test_tier.iloc[0]
        assert texts[0].startswith(f"{100 * first['relative_change']:.1f} %\n[")
        assert texts[0].endswith(f"\n{first['rank_change']:.1f} places")

    def test_budgets(self, study):
        axis = plot_reference_budgets(study, 12.0).axes[0]
        assert [line.get_label() for line in axis.lines][-1] == "three"
        assert len(axis.lines) == 5

    def test_budgets_of_few_pairs_are_not_drawn(self, study):
        table = study.by_budget
        of_set = (table["references"] == "three") & (table["delta"] == 12.0)
        few = replace(study, by_budget=table.assign(n_pairs=table["n_pairs"].mask(of_set & (table["budget"] == 10), 3)))
        line = plot_reference_budgets(few, 12.0).axes[0].lines[-1]
        assert line.get_label() == "three"
        assert list(line.get_xdata()) == [40]
        none = replace(study, by_budget=table.assign(n_pairs=table["n_pairs"].mask(of_set, 3)))
        assert "three" not in [line.get_label() for line in plot_reference_budgets(none, 12.0).axes[0].lines]

    def test_references_of_few_pairs_show_their_number_only(self, study):
        table = study.by_delta
        first = (table["reference"] == table["reference"].iloc[0]) & np.isinf(table["delta"])
        axis = plot_references(replace(study, by_delta=table.assign(n_pairs=table["n_pairs"].mask(first, 1)))).axes[0]
        assert [text.get_text() for text in axis.texts] == ["1 pair"]
        assert np.ma.getmaskarray(axis.collections[1].get_offsets())[0].any()
        assert len(axis.get_yticklabels()) == table["reference"].nunique()


class TestRealVotes:
    @pytest.mark.slow
    def test_arena(self, data):
        battles = read_battles(data / "arena140k_votes.parquet")
        board = reference_study(battles, budgets=(), n_resamples=0)
        n, wins = tables(battles)
        theta = fit_bradley_terry(battles).logits.to_numpy()
        table = board.by_reference.set_index("reference").loc[battles.models]
        for k in range(53):
            score = win_rates(n, wins, k)
            has = ~np.isnan(score)
            if has.sum() > 2:
                assert table["tau"].iloc[k] == pytest.approx(kendalltau(score[has], theta[has]).statistic, rel=1e-9)
        assert table["n_never_met"]["qwen3-coder-480b-a35b-instruct"] == 50
        assert table["tau"]["gemini-2.5-flash"] == pytest.approx(0.8316, abs=1e-4)
        served = [sentence for sentence in board.advice if "are ranked best by references of tier" in sentence]
        assert len(served) == 4
        assert all("nothing says how sure" in sentence for sentence in served)

    @pytest.mark.slow
    def test_judges_rank_as_people_do(self, data):
        """The 20 models of 2023: a reference ranks them as all votes do, nearly, by people and by a judge."""
        frame = pd.read_parquet(data / "arena27k_human_3judges.parquet")
        for label in ("human", "gpt4_0125"):
            votes = Battles.from_pandas(frame, winner=label)
            board = reference_study(votes, sets=(), budgets=(), n_resamples=0)
            n, wins = tables(votes)
            theta = fit_bradley_terry(votes).logits.to_numpy()
            taus = [kendalltau(np.delete(win_rates(n, wins, k), k), np.delete(theta, k)).statistic for k in range(20)]
            table = board.by_reference.set_index("reference").loc[votes.models]
            np.testing.assert_allclose(table["tau"], taus, rtol=1e-9)
            assert (table["n_pairs"] == 171).all()


@pytest.mark.slow
def test_other_numbers_of_models_votes_references_and_resamples_compile_nothing():
    def run(n_models, n_votes, left_out, n_resamples, n_repeats):
        battles = Battles.from_pandas(simulate_votes(n_votes, n_models, seed=1))
        chosen = battles.models.delete(left_out)  # of every tier some are left
        own = {"n_resamples": n_resamples, "n_repeats": n_repeats, "sets": {"three": list(chosen[:3])}}
        reference_study(battles, references=chosen, progress=False, **OPTIONS | own)

    run(14, 4000, [], B, 3)  # as `study`
    with compilations() as count:
        for sizes in ((11, 3900, [3, 6], 12, 3), (13, 4000, [], 20, 2), (10, 3800, [4], 8, 1)):
            run(*sizes)
    assert count.programs == []
