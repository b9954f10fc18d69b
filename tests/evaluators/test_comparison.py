"""Differences between evaluators: resamples one by one, shared models, their order, and coverage."""

import numpy as np
import pandas as pd
import pytest
import twins
from evaluated import GAPS, GOLD, B, M, drawn_models, settings

from jaxeval import DataError, ItemScores, anchored_scores, compare_evaluators, kendall_tau, kendall_tau_delta
from jaxeval.evaluators.comparison import evaluator_advice
from jaxeval.evaluators.model_scores import align_scores

BOARD = GAPS.assign(z=-GAPS["x"])


def compared(scores=BOARD, gold=GOLD, n_resamples=B, **options):
    return compare_evaluators(scores, gold, n_resamples=n_resamples, **options)


def test_every_difference_and_its_interval_are_those_of_the_resamples_one_by_one():
    found = compared()
    assert found.columns.tolist() == [
        "evaluator", "other", "tau", "other_tau", "difference", "n_models", "n_pairs", "status", "lower", "upper",
        "failed_share", "told_apart",
    ]  # fmt: skip
    aligned = align_scores(BOARD, GOLD)
    counts = drawn_models(aligned, settings())[1:]
    counts = counts[:, aligned.models.get_indexer(BOARD.index)]
    gold = GOLD.to_numpy()
    for row in found.itertuples():
        both = BOARD[[row.evaluator, row.other]].dropna()
        x, y = both.reindex(BOARD.index).to_numpy().T
        tau, other = (twins.tau_delta(s, gold, np.arange(M), np.inf) for s in (x, y))
        assert (row.tau, row.other_tau) == pytest.approx((tau, other), abs=1e-14)
        assert row.difference == pytest.approx(tau - other, abs=1e-14)
        assert (row.n_models, row.n_pairs) == (len(both), len(both) * (len(both) - 1) / 2)
        draws = [np.subtract(*(twins.tau_delta(s, gold, np.repeat(np.arange(M), c), np.inf) for s in (x, y)))
                 for c in counts]  # fmt: skip
        assert not np.isnan(draws).any()
        assert (row.lower, row.upper) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])), abs=1e-14)
    assert found["n_models"].tolist() == [10, 12, 10]


def test_the_best_come_first():
    found = compared()
    order = kendall_tau(BOARD, GOLD, n_resamples=0).sort_values("tau", ascending=False)["evaluator"].tolist()
    assert order[-1] == "z"
    pairs = list(zip(found["evaluator"], found["other"], strict=True))
    assert pairs == [(order[0], order[1]), (order[0], order[2]), (order[1], order[2])]
    turned = compared(BOARD[["z", "y", "x"]])
    pd.testing.assert_frame_equal(turned, found)


def test_those_of_few_pairs_come_last():
    few = BOARD.assign(w=GOLD.nlargest(5))  # perfect on ten pairs
    found = compared(few)
    assert found["evaluator"].tolist().count("w") == 0
    assert compared(few, few_pairs=10)["evaluator"].tolist()[:3] == ["w"] * 3


def test_equal_evaluators_do_not_differ():
    """Also where only one of them lacks a model: both are rated on what they share."""
    copy = GAPS["x"].copy()
    copy["m05"] = np.nan
    found = compared(pd.DataFrame({"x": GAPS["x"], "copy": copy}))
    assert (found[["difference", "lower", "upper"]] == 0).all(axis=None)
    assert found["n_models"].tolist() == [11]
    assert "models that lack one of the two scores are left out: 1 of 12 (copy)" in found.attrs["warnings"]


def test_what_has_no_tau():
    found = compared(GAPS.assign(y=1.0))
    assert found["status"].tolist() == ["scores are constant"]
    assert found[["difference", "lower", "upper"]].isna().all(axis=None)
    apart = pd.DataFrame({"x": GAPS["x"].iloc[:6], "y": GAPS["y"].iloc[6:]}, GAPS.index)
    assert compared(apart)["status"].tolist() == ["fewer than two models"]


def test_without_resamples():
    found = compared(n_resamples=0)
    assert "lower" not in found
    np.testing.assert_array_equal(found["difference"], compared()["difference"])


@pytest.mark.parametrize("resample", ["items", "both"])
def test_scores_by_item(resample):
    """A copy does not differ in any resample; nor does another number of resamples or evaluators change a draw."""
    rng = np.random.default_rng(3)
    rows = [(m, i, e, g / 20 + rng.normal(0, s)) for i in range(30) for m, g in GOLD.items()
            for e, s in (("x", 2), ("y", 8))]  # fmt: skip
    table = pd.DataFrame(rows, columns=["model", "item", "judge", "score"])
    copy = table[table["judge"] == "x"].assign(judge="copy")
    items = ItemScores.from_pandas(pd.concat([table, copy]), evaluator="judge")
    found = compared(items, resample=resample).set_index(["evaluator", "other"])
    assert (found.loc[("copy", "x"), ["difference", "lower", "upper"]] == 0).all()
    alone = compared(ItemScores.from_pandas(table, evaluator="judge"), resample=resample)
    for name in ("difference", "lower", "upper"):
        assert alone[name][0] == pytest.approx(found.loc[("x", "y"), name])
    assert found.loc[("x", "y"), "lower"] < found.loc[("x", "y"), "difference"] < found.loc[("x", "y"), "upper"]


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.0, 0.6])
def test_intervals_cover(shared):
    """Two evaluators whose errors may have a part in common; models drawn from a population with known taus."""
    rng = np.random.default_rng(4)
    inside, widths, n = 0, [], 150
    covariance = np.array([[1, 0.8, 0.6], [0.8, 1, 0.48], [0.6, 0.48, 1]])
    covariance[1, 2] = covariance[2, 1] = 0.48 + shared * 0.6 * 0.8
    truth = 2 / np.pi * (np.arcsin(0.8) - np.arcsin(0.6))
    for k in range(n):
        gold, x, y = rng.multivariate_normal([0, 0, 0], covariance, 30).T
        found = compare_evaluators(pd.DataFrame({"x": x, "y": y}), gold, n_resamples=200, seed=k).iloc[0]
        sign = 1 if found["evaluator"] == "x" else -1
        inside += found["lower"] <= sign * truth <= found["upper"]
        widths.append(found["upper"] - found["lower"])
    assert inside / n > 0.95 - 2.5 * np.sqrt(0.05 * 0.95 / n)
    assert np.mean(widths) < (0.6 if shared == 0 else 0.45)


def test_equal_evaluators_are_not_told_from_the_best_one():
    """Five of six evaluators are compared with the one that chance put first: by single intervals, 14 of 40 were."""
    wrong, n = 0, 20
    for seed in range(n):
        rng = np.random.default_rng([seed, 1])
        gold = rng.normal(size=30)
        scores = pd.DataFrame({f"e{k}": 0.6 * gold + 0.8 * rng.normal(size=30) for k in range(6)})
        found = compare_evaluators(scores, gold, n_resamples=100, seed=seed)
        wrong += found["told_apart"].any()
        assert found["told_apart"].any() == (" more so than " in found.attrs["answer"])
    assert wrong <= 0.05 * n + 3 * np.sqrt(n * 0.05 * 0.95)


def test_what_is_needed():
    with pytest.raises(DataError, match="a comparison needs two evaluators or more, got 1"):
        compared(GAPS["x"])
    with pytest.raises(ValueError, match="few_pairs must be at least 0"):
        compared(few_pairs=-1)


def test_few_shared_models_are_counted():
    """Evaluators that scored ten models each and share two: their resamples can hardly vary."""
    gold = pd.Series(np.arange(18.0))
    scores = pd.DataFrame({"x": gold.where(gold < 10), "y": gold.where(gold >= 8), "z": gold})
    warning = (
        "1 of 3 differences is over fewer than 10 models that both evaluators scored: intervals over so few say little"
    )
    assert warning in compared(scores, gold).attrs["warnings"]
    for options in ({"n_resamples": 0}, {"scores": BOARD}):
        found = compared(**{"scores": scores, "gold": gold if options.get("scores") is None else GOLD, **options})
        assert not any("that both evaluators scored" in warning for warning in found.attrs["warnings"])


def test_advice_says_who_is_better_worse_and_not_to_be_compared():
    """The largest tau may be over the easier models: on shared ones another evaluator is the better one."""
    rng = np.random.default_rng(0)
    gold = pd.Series(np.arange(60.0))
    first = gold < 20
    scores = pd.DataFrame(
        {
            "best": (gold + rng.normal(0, 8, 60)).where(gold < 40),
            "exact then random": gold.where(first, rng.normal(0, 30, 60)),
            "noisy": gold + rng.normal(0, 40, 60),
            "alike": (gold + rng.normal(0, 8, 60)).where(first),
            "elsewhere": gold.where(gold >= 40).mul(rng.normal(0, 1, 60)),
            "constant": 1.0,
        }
    )
    scores.loc[gold.between(20, 39), "exact then random"] = np.nan
    taus = kendall_tau(scores, gold, n_resamples=0)
    assert taus["evaluator"][taus["tau"].idxmax()] == "best"
    (sentence, *_) = evaluator_advice(taus.assign(delta=np.inf), comparison=compared(scores, gold, 300))
    assert sentence == (
        "best ranks most like gold: more so than noisy; but less so, on the models that both scored, than exact then "
        "random; it is not told apart from alike; it cannot be compared with elsewhere, constant"
    )


def test_advice_names_an_evaluator_in_reverse():
    sentences = evaluator_advice(kendall_tau_delta(BOARD, GOLD, [3, np.inf], n_resamples=B))
    assert [s.split(":")[0] for s in sentences if "it ranks in reverse" in s] == ["z"]


def test_tables_say_what_they_found_in_words():
    rng = np.random.default_rng(0)
    gold = np.arange(16.0) * 10
    scores = pd.DataFrame({"near": gold + rng.normal(0, 5, 16), "far": gold + rng.normal(0, 90, 16)})
    table = compare_evaluators(scores, gold, n_resamples=50)
    assert table.answer.sentences[0].startswith("near ranks most like gold")
    assert pd.concat([table, table]).attrs["answer"] == table.attrs["answer"]  # attributes of pandas stay comparable
    taus = kendall_tau_delta(scores, gold, [20.0, np.inf], n_resamples=50)
    row = taus.iloc[1]
    said = f"near: tau at delta inf is {row['tau']:.3g} ({row['lower']:.3g} to {row['upper']:.3g})"
    assert taus.answer.sentences[0] == said
    counts = pd.DataFrame({"model": ["a", "b"], "wins": [3, 5], "ties": [0, 0], "losses": [4, 1]})
    first = anchored_scores(counts, "model").answer.sentences[0]
    assert first.startswith("b is rated highest beside the reference: +")
