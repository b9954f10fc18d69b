"""Few human outcomes and many verdicts: against naive fits, row by row, and simulated truths."""

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
import twins
from compilations import compilations

import jaxeval
from jaxeval import Battles, DataError, leaderboard, prediction_powered, simulate_verdicts
from jaxeval.data.verdict_rows import SAMPLE, verdict_rows
from jaxeval.execution.precision import double_precision
from jaxeval.kernels.batch.prediction_powered import Form, powered_sums
from jaxeval.kernels.batch.refits import draw_one
from jaxeval.ratings.options import BootstrapOptions
from jaxeval.ratings.prediction_powered_boards import fit_powered_board, powered_refits
from jaxeval.ratings.slices import whole_board
from jaxeval.ratings.vote_groups import vote_draws

ELO = 400 / np.log(10)
M = 6
B = 64


@pytest.fixture(scope="module")
def samples():
    return simulate_verdicts(500, 4_000, M, seed=3)


@pytest.fixture(scope="module")
def board(samples):
    return prediction_powered(*samples, n_resamples=B)


def by_row(battles):
    models = [f"model-{k + 1}" for k in range(M)]
    place = pd.Index(models).get_indexer(battles.models)
    return place[battles.model_a], place[battles.model_b], battles.target


def naive_pooled(samples, lam):
    """The minimum of the loss of PPI++, row by row (arXiv:2311.01453, Eq. 3), by a general optimizer."""
    (a, b, y), (_, _, f), (c, d, g) = map(by_row, samples)

    def loss(theta):
        def mean(first, second, outcome):
            x = theta[first] - theta[second]
            p = 1 / (1 + np.exp(-x))
            slope = np.bincount(first, p - outcome, M) - np.bincount(second, p - outcome, M)
            return np.mean(np.logaddexp(0, x) - outcome * x), slope / len(x)

        (one, s1), (two, s2), (three, s3) = mean(a, b, y), mean(a, b, f), mean(c, d, g)
        return one + lam * (three - two), s1 + lam * (s3 - s2)

    theta = scipy.optimize.minimize(loss, np.zeros(M), jac=True, method="BFGS", options={"gtol": 1e-12}).x
    return theta - theta.mean()


def naive_sums(samples):
    """(M, M) n_h, n_u and what the row takes of y, f and the unlabelled f."""
    (a, b, y), (_, _, f), (c, d, g) = map(by_row, samples)
    tables = np.zeros((5, M, M))
    for table, first, second, points in (
        (0, a, b, np.ones(len(a))), (1, c, d, np.ones(len(c))), (2, a, b, y), (3, a, b, f), (4, c, d, g),
    ):  # fmt: skip
        np.add.at(tables[table], (first, second), points)
        np.add.at(tables[table], (second, first), points if table < 2 else 1 - points)
    return tables


def naive_by_pair(samples, lam):
    n, n_others, y, f, g = naive_sums(samples)
    shift = np.where(n_others > 0, n / np.maximum(n_others, 1) * g - f, 0)
    return twins.newton(y + lam * shift)


def naive_variance(samples, theta, lam, pooled, of=slice(None)):
    """The variance by lam, of the sum over models or of what rows ``of`` say, row by row."""
    (a, b, y), (_, _, f), (c, d, g) = map(by_row, samples)
    n, n_others, _, of_judge, of_others = naive_sums(samples)
    p = 1 / (1 + np.exp(theta - theta[:, None]))
    centre = p
    if not pooled:
        own = twins.newton(of_judge + of_others, 0.5)
        centre = 1 / (1 + np.exp(own - own[:, None]))
    ratio = np.full((M, M), len(y) / len(g)) if pooled else n / np.maximum(n_others, 1)
    n_eff = (1 - lam) * n + lam * ratio * n_others if pooled else n
    inverse = np.linalg.pinv(np.diag((n_eff * p * (1 - p)).sum(1)) - n_eff * p * (1 - p))

    def scores(first, second, residual):
        moved = residual[:, None] * (inverse[first] - inverse[second])[:, of]
        moved = moved[:, :1] - moved[:, 1:] if moved.shape[1] == 2 else moved
        return moved - moved.mean(0) if pooled else moved

    def variance(weight):
        people = scores(a, b, y - p[a, b] - weight * (f - centre[a, b]))
        judge = scores(c, d, weight * ratio[c, d] * (g - centre[c, d]))
        return (people**2).sum() + (judge**2).sum()

    return variance


class TestFit:
    @pytest.mark.parametrize("lam", [0.0, 0.4, 1.0])
    def test_pooled_is_that_of_the_paper(self, samples, lam):
        board = prediction_powered(*samples, lam, n_resamples=1, samples="pooled")
        np.testing.assert_allclose(board.fit.strengths, naive_pooled(samples, lam), atol=2e-6)

    @pytest.mark.parametrize("lam", [0.4, 1.0])
    def test_by_pair(self, samples, lam):
        board = prediction_powered(*samples, lam, n_resamples=1)
        np.testing.assert_allclose(board.fit.strengths, naive_by_pair(samples, lam), atol=1e-9)

    def test_without_the_judge(self, samples):
        board = prediction_powered(*samples, 0, n_resamples=1)
        alone = jaxeval.fit_bradley_terry(samples[0])
        np.testing.assert_allclose(board.ratings, alone.ratings, atol=1e-7)
        np.testing.assert_allclose(board.fit.standard_errors, alone.standard_errors, rtol=0.02)
        assert board.worth == pytest.approx(0, abs=1e-9)

    @pytest.mark.parametrize("pooled", [False, True])
    def test_lam_is_at_the_minimum(self, samples, pooled):
        board = prediction_powered(*samples, n_resamples=1, samples="pooled" if pooled else "by pair")
        variance = naive_variance(samples, board.fit.theta, board.lam, pooled)
        found = scipy.optimize.minimize_scalar(variance, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x
        assert board.lam == pytest.approx(found, abs=1e-5)
        worth = len(samples[0]) * (variance(0.0) / variance(board.lam) - 1)
        assert board.worth == pytest.approx(worth, rel=1e-6)

    def test_lam_for_one_difference(self, samples):
        board = prediction_powered(*samples, n_resamples=1, best_for=("model-1", "model-6"))
        variance = naive_variance(samples, board.fit.theta, board.lam, False, [0, 5])
        found = scipy.optimize.minimize_scalar(variance, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x
        assert board.lam == pytest.approx(found, abs=1e-5)
        assert abs(board.lam - prediction_powered(*samples, n_resamples=1).lam) > 1e-3
        assert board.settings.best_for == ("model-1", "model-6")

    def test_standard_errors_are_those_of_the_draws(self, samples):
        board = prediction_powered(*samples, n_resamples=1000)
        ratio = board.standard_errors / board.fit.standard_errors
        # A standard deviation of 1,000 draws has an error of 2.2 %, and the sandwich is of first order.
        assert np.all(np.abs(ratio - 1) < 0.12)


class TestResamples:
    def test_naive(self, samples, board):
        """Both kinds of boards are refitted to the same draws."""
        pooled = prediction_powered(*samples, n_resamples=B, samples="pooled")
        rows = verdict_rows(*samples)
        options = BootstrapOptions(n_resamples=B, strata=SAMPLE)
        cells, drawn = whole_board(rows, options)
        fitted = fit_powered_board(rows.models, cells, options, Form.BY_PAIR)
        refits = powered_refits(fitted, "", drawn, options, None)
        for r in (0, 17):
            with double_precision():
                sums = draw_one(powered_sums, refits.problem, refits.form, np.uint64(0), np.int64(r))
            n, human, judge, _, _, _, n_others, others, _ = (np.asarray(x)[: len(cells.first)] for x in sums)
            assert n.sum() == len(samples[0])
            assert n_others.sum() == len(samples[2])
            for found in (board, pooled):
                lam = found.lam_draws[r]
                ratio = n.sum() / n_others.sum() if found is pooled else n / n_others
                n_eff = (1 - lam) * n + lam * ratio * n_others if found is pooled else n
                tables = np.zeros((2, M, M))
                cells.fill_tables(n_eff, human + lam * (ratio * others - judge), *tables)
                np.testing.assert_allclose(found.draws[r], 1000 + ELO * twins.newton(tables[1]), atol=2e-6)
        assert board.converged.all()
        assert pooled.converged.all()

    def test_hardly_any_column_is_empty(self):
        """Most pairs of few votes have none: columns are those of votes and verdicts, not two for each pair."""
        rows = verdict_rows(*simulate_verdicts(400, 2_000, 60, seed=0))
        cells, drawn = whole_board(rows, BootstrapOptions(strata=SAMPLE))
        sizes = np.asarray(vote_draws(cells.by_sample(2_000), drawn, n_pairs=4_000)[0].units.size)
        assert sizes.shape[1] < 1.25 * sizes.any(0).sum()

    def test_nothing_is_compiled_anew(self, samples, board):
        others = simulate_verdicts(480, 4_100, M, seed=9)
        with compilations() as made:
            prediction_powered(*others, n_resamples=B)
        assert made.programs == []

    @pytest.mark.slow
    def test_clusters_lie_in_both_samples(self, samples):
        human, judged, unlabelled = (x.to_pandas() for x in samples)
        rng = np.random.default_rng(1)
        human, unlabelled = (x.assign(item=rng.integers(0, 60, len(x))) for x in (human, unlabelled))
        judged = judged.assign(item=human["item"].to_numpy())
        tables = [Battles.from_pandas(x, target="target") for x in (human, judged, unlabelled)]
        board = prediction_powered(*tables, n_resamples=B, cluster="item")
        assert board.n_clusters == 60
        assert board.converged.all()
        ratio = board.standard_errors / board.fit.standard_errors
        assert 0.6 < ratio.mean() < 1.6


class TestSlices:
    def test_a_slice_is_a_board_of_its_own(self):
        two = ["English", "German"]
        human, judged, unlabelled = (
            x.filter(lambda votes: votes["language"].isin(two)) for x in simulate_verdicts(900, 5_000, M, seed=4)
        )
        boards = prediction_powered(human, judged, unlabelled, by="language", n_resamples=16)
        assert list(boards) == two
        own = [x.filter(lambda votes: votes["language"] == "English") for x in (human, judged, unlabelled)]
        alone = prediction_powered(*own, n_resamples=16)
        np.testing.assert_allclose(boards["English"].ratings, alone.ratings, atol=1e-9)
        table = leaderboard(boards)
        assert set(table["category"]) == set(boards)


class TestJudgeOnly:
    def test_models_without_human_votes_are_named(self, samples):
        human, judged, unlabelled = samples
        keep = ["model-1", "model-2", "model-3", "model-4"]
        board = prediction_powered(human.filter(models=keep), judged.filter(models=keep), unlabelled, n_resamples=B)
        assert board.ratings[keep].notna().all()
        assert board.ratings[["model-5", "model-6"]].isna().all()
        table = leaderboard(board).set_index("model")
        assert list(table.loc[["model-5", "model-6"], "standing"]) == ["judge only"] * 2
        assert table.loc[["model-5", "model-6"], "rank"].isna().all()
        assert any("model-5, model-6" in text and "soft_elo" in text for text in board.warnings)
        alone = prediction_powered(*(x.filter(models=keep) for x in samples), n_resamples=B)
        np.testing.assert_allclose(board.ratings[keep], alone.ratings, atol=1e-9)

    def test_not_by_a_ridge_either(self, samples):
        human, judged, unlabelled = samples
        keep = ["model-1", "model-2", "model-3", "model-4"]
        parts = human.filter(models=keep), judged.filter(models=keep), unlabelled
        board = prediction_powered(*parts, n_resamples=16, ridge=0.5)
        assert board.ratings[["model-5", "model-6"]].isna().all()
        assert leaderboard(board).set_index("model")["rank"][["model-5", "model-6"]].isna().all()
        with pytest.raises(DataError, match="people judged no battle of 'model-5'"):
            prediction_powered(*parts, best_for=("model-1", "model-5"))

    def test_a_slice_without_votes_knows_no_weight(self):
        two = ["English", "German"]
        human, judged, unlabelled = (
            x.filter(lambda votes: votes["language"].isin(two)) for x in simulate_verdicts(300, 2_000, 4, seed=4)
        )
        some = human.to_pandas()["language"].to_numpy() != "German"
        boards = prediction_powered(human.filter(some), judged.filter(some), unlabelled, by="language", n_resamples=8)
        assert np.isnan(boards["German"].lam)
        assert boards["German"].ratings.isna().all()


def test_intervals_are_those_of_the_fit_and_the_worth_reaches_further_than_percentiles():
    board = prediction_powered(*simulate_verdicts(400, 3_000, 4, seed=1), n_resamples=64)
    pd.testing.assert_frame_equal(board.interval(), board.fit.interval(kind="wald"))
    difference, error = board.fit.differences(np.arange(4))
    expected = np.where(np.eye(4, dtype=bool), np.nan, difference + scipy.special.ndtri(0.975) * error)
    np.testing.assert_allclose(board.difference_interval()[1], expected)
    worths = np.minimum(board.fit.n_human * (board._gain - 1), board.fit.n_judge_only)
    low, high = np.quantile(worths, [0.025, 0.975])
    assert board.worth_interval() == pytest.approx((min(low, board.worth**2 / high), max(high, board.worth**2 / low)))


class TestFewVerdicts:
    """The judge's own mean must not be taken from the verdicts whose variance is told."""

    @pytest.mark.parametrize("n", [1, 2, 20])
    def test_they_are_worth_no_more_than_themselves(self, n):
        board = prediction_powered(*simulate_verdicts(1000, n, 4, seed=3, agreement=0.9), n_resamples=16)
        assert 0 <= board.worth <= n
        assert board.worth_interval()[1] <= n
        assert board.lam < 0.4

    @pytest.mark.slow
    def test_the_board_is_not_worse_than_without(self):
        strengths = jaxeval.simulate_strengths(10, seed=5)
        errors = []
        for seed in range(30):
            samples = simulate_verdicts(300, 30, strengths=strengths, seed=seed, agreement=0.9)
            ours, alone = prediction_powered(*samples, n_resamples=1), jaxeval.fit_bradley_terry(samples[0])
            errors.append([np.mean((x - strengths) ** 2) for x in (ours.fit.theta, alone.strengths.to_numpy())])
        ours, alone = np.mean(errors, 0)
        assert ours < 1.05 * alone

    def test_few_votes_are_told(self):
        board = prediction_powered(*simulate_verdicts(30, 500, 3, seed=1), n_resamples=8)
        assert any("rest on 30 human votes, too few" in text for text in board.warnings)


class TestNoOptimum:
    def test_a_model_that_lost_everything(self):
        rows = [("a", "b", "model_a")] * 6 + [("a", "b", "model_b")] * 6 + [("a", "c", "model_a")] * 4
        human = pd.DataFrame(rows, columns=["model_a", "model_b", "winner"])
        unlabelled = pd.concat([human] * 30)
        board = prediction_powered(human, human, unlabelled, n_resamples=16)
        assert board.ratings["c"] == -np.inf
        assert board.fit.standing["c"] == "winless"
        assert np.isfinite(board.ratings[["a", "b"]]).all()

    def test_the_judge_can_hold_it(self):
        rows = [("a", "b", "model_a")] * 6 + [("a", "b", "model_b")] * 6 + [("a", "c", "model_a")] * 4
        human = pd.DataFrame(rows, columns=["model_a", "model_b", "winner"])
        unlabelled = pd.concat([human] * 30 + [pd.DataFrame([("a", "c", "model_b")] * 60, columns=human.columns)])
        board = prediction_powered(human, human, unlabelled, 1.0, n_resamples=16)
        assert np.isfinite(board.ratings).all()

    def test_points_beyond_the_battles_are_told(self):
        rows = [("a", "b", "model_a")] * 6 + [("a", "b", "model_b")] * 6
        rows += [("a", "c", "model_a"), ("b", "c", "model_a"), ("b", "c", "model_b")] * 3
        human = pd.DataFrame(rows, columns=["model_a", "model_b", "winner"])
        judged = human.assign(winner=np.where(human["model_b"] == "c", "model_a", human["winner"]))
        unlabelled = human.assign(winner="model_b")
        board = prediction_powered(human, judged, pd.concat([unlabelled] * 20), 1.0, n_resamples=16, ridge=0.1)
        assert any("beyond what human battles can give" in text for text in board.warnings)


class TestInput:
    def test_other_rows(self, samples):
        human, _, unlabelled = samples
        with pytest.raises(DataError, match=r"human has 500 rows and judged 4,000"):
            prediction_powered(human, unlabelled, unlabelled)
        with pytest.raises(DataError, match=r"of different pairs of models \(first in row \d+: model-"):
            prediction_powered(human, unlabelled.filter(np.arange(4_000) < 500), unlabelled)

    def test_left_out_rows(self, samples):
        frame = samples[0].to_pandas().assign(winner="model_a").drop(columns="target")
        holes = frame.assign(winner=frame["winner"].where(np.arange(len(frame)) > 3))
        with pytest.raises(DataError, match="judged: 4 rows were left out when it was read"):
            prediction_powered(frame, Battles.from_pandas(holes, missing="drop"), samples[2])

    def test_soft_targets_and_weights(self, samples):
        human, judged, unlabelled = samples
        soft = human.to_pandas().assign(target=0.3)
        with pytest.raises(DataError, match="human: 500 of 500 outcomes are neither 0, 1/2 nor 1"):
            prediction_powered(Battles.from_pandas(soft, target="target"), judged, unlabelled)
        weighted = unlabelled.to_pandas().assign(w=2.0)
        with pytest.raises(DataError, match="unlabelled: battles have weights"):
            prediction_powered(human, judged, Battles.from_pandas(weighted, target="target", weight="w"))

    @pytest.mark.parametrize("lam", [-0.1, 1.5, np.nan])
    def test_lam(self, samples, lam):
        with pytest.raises(ValueError, match="lam must be"):
            prediction_powered(*samples, lam)

    def test_names(self, samples):
        with pytest.raises(DataError, match="no model 'model-7' among the 6"):
            prediction_powered(*samples, best_for=("model-1", "model-7"))
        with pytest.raises(ValueError, match="samples must be one of 'by pair', 'pooled'"):
            prediction_powered(*samples, samples="both")
        with pytest.raises(DataError, match="no column 'language2'"):
            prediction_powered(*samples, by="language2")


@pytest.fixture(scope="module")
def tables(samples):
    frames = [x.to_pandas().drop(columns="voter") for x in samples]
    prompts = np.arange(4_500)
    human, judged, others = (x.assign(prompt=prompts[k : k + len(x)]) for x, k in zip(frames, (0, 0, 500), strict=True))
    verdicts = pd.concat([others, judged]).sample(frac=1, random_state=0)
    swap = np.random.default_rng(0).random(len(verdicts)) < 0.5
    a, b = verdicts["model_a"].astype(str), verdicts["model_b"].astype(str)
    verdicts = verdicts.assign(
        model_a=a.where(~swap, b), model_b=b.where(~swap, a),
        target=verdicts["target"].where(~swap, 1 - verdicts["target"]),
    )  # fmt: skip
    return Battles.from_pandas(human, target="target"), Battles.from_pandas(verdicts, target="target")


class TestJoin:
    def test_gives_the_samples(self, tables, board):
        joined = jaxeval.join_verdicts(*tables, "prompt")
        again = prediction_powered(*joined, n_resamples=B)
        np.testing.assert_allclose(again.draws, board.draws, atol=1e-9)

    def test_what_was_left_out_does_not_matter(self, tables, board):
        human, judged = (x.to_pandas() for x in tables)
        words = np.array(["model_b", "tie", "model_a"])
        human = human.assign(winner=words[(2 * human["target"]).astype(int)]).drop(columns="target")
        holes = pd.concat([human, human.iloc[:3].assign(winner=None)]).sample(frac=1, random_state=1)
        people = Battles.from_pandas(holes, missing="drop")
        joined = jaxeval.join_verdicts(people, Battles.from_pandas(judged, target="target"), "prompt")
        again = prediction_powered(*joined, n_resamples=B)
        np.testing.assert_allclose(again.draws, board.draws, atol=1e-9)
        assert "3 rows left out when they were read" in str(again.fit.report)

    def test_numbers_and_text_are_told(self, tables):
        human, judged = (x.to_pandas() for x in tables)
        number = {f"model-{k}": k for k in range(1, 7)}
        human = human.assign(**{side: human[side].astype(str).map(number) for side in ("model_a", "model_b")})
        judged = judged.assign(**{side: judged[side].astype(str).str[-1] for side in ("model_a", "model_b")})
        human, judged = (Battles.from_pandas(x, target="target") for x in (human, judged))
        with pytest.raises(
            DataError, match=r"6 models are numbers in one table and text in another \(the first is 1\)"
        ):
            jaxeval.join_verdicts(human, judged, "prompt")

    def test_several_people_on_one_battle(self, tables):
        human, judged = tables
        twice = Battles.concat([human, human])
        people, verdicts, others = jaxeval.join_verdicts(twice, judged, "prompt")
        assert [x.n_battles for x in (people, verdicts, others)] == [1000, 1000, 4_000]
        assert verdicts.report.n_battles == 1000

    def test_battles_without_a_verdict(self, tables):
        human, judged = tables
        fewer = judged.filter(lambda x: x["prompt"] % 10 != 0)
        with pytest.raises(DataError, match="50 of 500 battles of people have no verdict of the judge"):
            jaxeval.join_verdicts(human, fewer, "prompt")
        people, verdicts, _ = jaxeval.join_verdicts(human, fewer, "prompt", without_verdict="drop")
        assert people.n_battles == verdicts.n_battles == 450
        assert people.report.n_excluded == 50

    def test_two_verdicts_on_a_battle(self, tables):
        human, judged = tables
        with pytest.raises(DataError, match=r"several verdicts on 500 battles of people \(the first is prompt"):
            jaxeval.join_verdicts(human, Battles.concat([judged, judged]), "prompt")

    def test_nothing_in_common(self, tables):
        human, judged = tables
        with pytest.raises(DataError, match="no battle was judged by both"):
            jaxeval.join_verdicts(human, judged.filter(lambda x: x["prompt"] >= 500), "prompt")
        with pytest.raises(DataError, match="no column 'promt'"):
            jaxeval.join_verdicts(human, judged, "promt")


@pytest.mark.slow
class TestSimulated:
    """Many boards of 8 models, 500 human votes and 6,000 verdicts; a share has a standard error of .01 or less."""

    N_BOARDS = 100

    @pytest.mark.parametrize("equal", [True, False])
    def test_coverage(self, equal):
        strengths = jaxeval.simulate_strengths(8, seed=5)
        inside, errors, worth = [], [], []
        for seed in range(self.N_BOARDS):
            human, judged, unlabelled = simulate_verdicts(500, 6_000, strengths=strengths, seed=1000 + seed, taste=0.5)
            if not equal:
                u, both = np.random.default_rng(seed).random(6_000), (unlabelled.model_a < 4) & (unlabelled.model_b < 4)
                unlabelled = unlabelled.filter(both | (u < 0.3))
            board = prediction_powered(human, judged, unlabelled, n_resamples=200, seed=seed)
            truth = 1000 + ELO * strengths
            ends = board.interval()
            inside.append((ends["lower"] <= truth) & (truth <= ends["upper"]))
            errors.append(board.ratings - truth)
            worth.append(board.worth)
        per_board = np.mean(inside, axis=1)
        error = per_board.std() / np.sqrt(self.N_BOARDS)
        assert abs(per_board.mean() - 0.945) < 0.015 + 3 * error
        bias, noise = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(self.N_BOARDS)
        assert np.all(np.abs(bias) < 2 + 4 * noise)
        assert np.mean(worth) > 100


@pytest.mark.parametrize(("n_models", "n_told"), [pytest.param(40, 1, marks=pytest.mark.slow), (6, 0)])
def test_a_worth_that_few_votes_a_model_make_too_low_is_told(n_models, n_told):
    """Of 25 votes a model, resamples say too little of the judge; of 170, they surround what the votes say."""
    samples = jaxeval.simulate_verdicts(1_000, 8_000, n_models, seed=1)
    warnings = jaxeval.prediction_powered(*samples, n_resamples=64, progress=False).warnings
    assert sum("in the resamples the judge's verdicts are worth" in text for text in warnings) == n_told
