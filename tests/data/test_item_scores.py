"""Scores by item: reading them, and resamples of items, alone and with models."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from twins import tau_delta

from jaxeval import (
    DataError,
    ItemScores,
    agreement_by_gap,
    kendall_tau_delta,
    rank_agreement,
    read_scores,
    smallest_gap,
)
from jaxeval.evaluators.model_scores import align_scores
from jaxeval.evaluators.resamples import EvaluatorResamples, resampled

N, M, B = 30, 8, 400
RNG = np.random.default_rng(0)
ABILITY = np.linspace(0, 2, M)
FRAME = pd.DataFrame(
    [
        (f"q{i:02d}", f"m{m}", judge, ABILITY[m] + RNG.normal(0, 1))
        for i in range(N)
        for m in range(M)
        for judge in ("a", "b")
        if judge == "a" or (i + m) % 5
    ],
    columns=["item", "model", "judge", "score"],
)
GOLD = pd.Series(ABILITY, [f"m{m}" for m in range(M)])


def read(frame=FRAME, **options):
    return ItemScores.from_pandas(frame, **{"evaluator": "judge", **options})


def lanes_of(scores, gold, counts):
    return scores, counts[None]


def lanes(scores, resample, n_resamples=B, chunk_size=None):
    """Scores (1 + B, E, M) and numbers of models (1 + B, M) of the data and of the resamples."""
    settings = EvaluatorResamples(n_resamples=n_resamples, resample=resample, run={"chunk_size": chunk_size})
    scores, counts = resampled(lanes_of, align_scores(scores, GOLD), (), settings, M)
    return scores[..., :M], counts[:, 0, :M]


@pytest.fixture(scope="module")
def drawn():
    return lanes(read(), "items")


def test_means_and_standard_errors_are_those_of_pandas():
    scores = read()
    for found, name in ((scores.means, "mean"), (scores.standard_errors, "sem")):
        expected = FRAME.pivot_table(index="model", columns="judge", values="score", aggfunc=name)
        pd.testing.assert_frame_equal(found, expected, check_names=False)


def test_runs_are_averaged_and_missing_scores_left_out():
    twice = pd.concat([FRAME, FRAME.assign(score=FRAME["score"] + 2), FRAME.assign(score=np.nan)])
    np.testing.assert_allclose(read(twice).means, read().means + 1)


def test_items_are_drawn_with_replacement():
    """Scores that tell which item it is: an evaluator per item."""
    rows = [(i, m, e, 6.0 * (i == e)) for i in range(6) for m in GOLD.index for e in range(6)]
    frame = pd.DataFrame(rows, columns=["item", "model", "judge", "score"])
    times, counts = lanes(read(frame), "items")
    assert (counts == 1).all()
    assert (times == times[:, :, :1]).all()
    times = times[:, :, 0]
    assert (times[0] == 1).all()
    assert (times.sum(1) == 6).all()
    np.testing.assert_array_equal(times, np.round(times))
    assert (np.abs(times[1:].mean(0) - 1) < 5 * np.sqrt(5 / 6 / B)).all()


def test_scores_are_recomputed_and_vary_as_they_should(drawn):
    scores = read()
    found, _ = drawn
    np.testing.assert_allclose(found[0], scores.means.to_numpy().T, rtol=1e-12)
    n = FRAME.pivot_table(index="judge", columns="model", values="score", aggfunc="size").to_numpy()
    expected = scores.standard_errors.to_numpy().T * np.sqrt((n - 1) / n)
    # Judge b's numbers of scores vary too, which adds a little.
    np.testing.assert_allclose(found[1:].std(0)[0], expected[0], rtol=5 / np.sqrt(2 * B))


def test_resamples_depend_on_the_seed_and_their_number_alone(drawn):
    for a, b in zip(lanes(read(), "items", 50, 7), drawn, strict=True):
        np.testing.assert_allclose(a, b[:51], rtol=1e-12)
    scores, counts = lanes(read(), "both")
    np.testing.assert_allclose(scores, drawn[0], rtol=1e-12)
    assert (counts[1:].sum(1) == M).all()
    assert (counts[1:] != 1).any()
    np.testing.assert_array_equal(counts, lanes(read().means, "models")[1])


def test_taus_of_recomputed_scores(drawn):
    found = kendall_tau_delta(read(), GOLD, [0.5, np.inf], resample="items", n_resamples=B)
    tau, *expected = [tau_delta(x, ABILITY, np.arange(M), 0.5) for x in drawn[0][:, 1]]
    moved = np.clip(expected + tau - np.nanmean(expected), -1, 1)
    low, high = (np.quantile(np.where(np.isnan(expected), f, moved), q) for f, q in ((-1, 0.025), (1, 0.975)))
    row = found[(found["evaluator"] == "b") & (found["delta"] == 0.5)].iloc[0]
    assert row["tau"] == pytest.approx(tau)
    assert row["failed_share"] == np.isnan(expected).mean()
    assert (row["lower"], row["upper"]) == pytest.approx((low, high))
    by_models = kendall_tau_delta(read(), GOLD, [0.5, np.inf], n_resamples=B)
    np.testing.assert_allclose(by_models["tau"], found["tau"])


def test_measures_over_both():
    found = rank_agreement(read(), GOLD, resample="both", n_resamples=B)
    assert (found["failed_share"] == 0).all()
    scores, counts = lanes(read(), "both")
    rows = [np.repeat(np.arange(M), c.astype(int)) for c in counts[1:]]
    spearman = [stats.spearmanr(x[1, own], ABILITY[own]).statistic for x, own in zip(scores[1:], rows, strict=True)]
    row = found.set_index(["evaluator", "measure"]).loc[("b", "spearman")]
    moved = np.clip(spearman + row["value"] - np.mean(spearman), -1, 1)
    np.testing.assert_allclose([row["lower"], row["upper"]], np.quantile(moved, [0.025, 0.975]))


def noisy(rng, ability, sd=3.0, n=25):
    """Scores of 25 items, the noise of whose means is 0.6 times the spread of the models."""
    scores = ability + rng.normal(0, 1, (n, 1)) + rng.normal(0, sd, (n, len(ability)))
    return ItemScores(scores[:, None], pd.RangeIndex(n), pd.Index(["judge"]), pd.RangeIndex(len(ability)))


@pytest.mark.slow
@pytest.mark.parametrize("resample", ["items", "both"])
def test_intervals_over_items_cover(resample):
    """Of the mean tau with 25 items; as they are, the resamples' 95 % intervals hold it 74 times in 100."""
    rng, n = np.random.default_rng(7), 100

    def study(**options):
        nonlocal ability, gold
        if resample == "both":  # other models too
            ability, gold = models()
        return kendall_tau_delta(noisy(rng, ability), pd.Series(gold), [np.inf], **options).iloc[0]

    def models():
        ability = rng.normal(0, 1, 20)
        return ability, ability + rng.normal(0, 0.4, 20)

    ability, gold = models()
    truth = np.mean([study(n_resamples=0)["tau"] for _ in range(400)])
    rows = pd.DataFrame([study(n_resamples=120, resample=resample, seed=k) for k in range(n)])
    inside = ((rows["lower"] <= truth) & (truth <= rows["upper"])).mean()
    assert inside >= 0.95 - 5 * np.sqrt(0.05 * 0.95 / n)
    assert ((rows["lower"] <= rows["tau"]) & (rows["tau"] <= rows["upper"])).all()


@pytest.mark.slow
def test_gaps_over_items_surround_the_estimate():
    """Regressions are centred in logits, so that gaps that some resamples do not reach are too."""
    rng = np.random.default_rng(8)
    ability = rng.normal(0, 1, 20)
    items = noisy(rng, ability)
    for what in ("items", "both"):
        curve = agreement_by_gap(items, pd.Series(ability), [0.5, 1.0], resample=what, n_resamples=100)
        assert ((curve["lower"] < curve["probability"]) & (curve["probability"] < curve["upper"])).all()
        gap = smallest_gap(items, pd.Series(ability), 0.75, resample=what, n_resamples=100).iloc[0]
        assert gap["lower"] < gap["delta"] < gap["upper"]


@pytest.mark.parametrize(("frame", "message"), [
    (FRAME.drop(columns="item"), "no column 'item'"),
    (FRAME.assign(score="x"), "column 'score' is not numeric"),
    (FRAME.assign(score=np.inf), "infinite scores"),
    (FRAME.assign(score=-1e80), r"between 1e-70 and 1e\+70, as in another unit; .* wrong: -1e\+80 \(first in row 0:"),
    (FRAME.assign(score=np.nan), "has no score: all of its values are missing"),
    (FRAME[:0], "the table has no rows"),
    (FRAME.assign(model=None), "missing values"),
])  # fmt: skip
def test_refused(frame, message):
    with pytest.raises(DataError, match=message):
        read(frame)


def test_weights_are_shown_without_types_of_numpy():
    with pytest.raises(DataError, match=r"without a finite number above 0 \(the first is -1\.0\)"):
        read(FRAME.assign(w=-1.0), weight="w")


def test_the_order_of_items_makes_no_ties_or_differences():
    """Models with the same scores, of other items, are equal; also where sums round to other numbers."""
    rng = np.random.default_rng(2)
    own = np.array([rng.permutation([0.1, 0.2, 0.3, 0.7, 0.9]) for _ in range(6)])
    frame = pd.DataFrame(own, [f"m{k}" for k in range(6)]).rename_axis("model").reset_index()
    long = frame.melt("model", var_name="item", value_name="score")
    items = ItemScores.from_pandas(long, model="model", item="item", score="score")
    assert len(np.unique(items.means)) == 1


def test_means_of_a_file_are_named(tmp_path):
    (tmp_path / "scores.csv").write_text("model,item,score\na,1,1\nb,1,0\na,2,0\nb,2,0\n")
    scores = read_scores(tmp_path / "scores.csv")
    assert (scores.means.index.name, scores.means.columns.name) == ("model", "evaluator")
    assert str(scores).splitlines()[1].split() == ["model", "score"]
