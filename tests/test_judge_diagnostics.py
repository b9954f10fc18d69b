import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from twins import newton

import jaxeval
from jaxeval import judge_diagnostics as diagnostics
from jaxeval.annotation_budget import budget_sweep, fold_temperatures, human_ratings, slice_ratings

ELO = 400 / np.log(10)


def simulate(n=600, m=6, seed=0, noise=2.0, slope=3.0):
    rng = np.random.default_rng(seed)
    theta = np.linspace(-0.8, 0.8, m)
    a = rng.integers(m, size=n)
    b = (a + rng.integers(1, m, size=n)) % m
    gap = theta[a] - theta[b]
    orders = np.round((slope * gap + rng.normal(0.4, noise, n))[:, None] + rng.normal(0, 0.7, (n, 2)) + [0.5, -0.5], 1)
    human = np.where(rng.random(n) < 0.2, 0.5, rng.random(n) < expit(gap)).astype(float)
    human[rng.random(n) < 0.05] = np.nan
    names = np.array([f"m{k}" for k in range(m)])
    return pd.DataFrame(
        {
            "model_a": names[a],
            "model_b": names[b],
            "a1": 5 + orders[:, 0],
            "b1": 5.0,
            "a2": 5 + orders[:, 1],
            "b2": 5.0,
            "human": human,
            "verdict": np.where(rng.random(n) < 0.1, 1 - (orders.mean(1) > 0), orders.mean(1) > 0).astype(float),
            "long_a": rng.integers(10, 500, n),
            "long_b": rng.integers(10, 500, n),
            "language": rng.choice(["en", "de"], n, p=[0.7, 0.3]),
        }
    )


def read(frame, **options):
    return jaxeval.JudgedBattles.from_pandas(
        frame, scores_a="a1", scores_b="b1", scores_a_swapped="a2", scores_b_swapped="b2", human="human",
        label_coding="a_wins_1", **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def battles():
    return read(simulate())


def residuals(n=40, seed=0, **columns):
    rng = np.random.default_rng(seed)
    human = rng.normal(1500, 80, n)
    residual = 0.3 * (human - 1500) + rng.normal(0, 10, n)
    return pd.DataFrame(
        {"model": [f"m{k}" for k in range(n)], "method": "hard", "human_elo": human, "judge_elo": human + residual,
         "residual": residual, "standard_error": 10.0, **columns}
    )  # fmt: skip


def rows_of(battles):
    return zip(battles.score_difference, battles.human, battles.hard, strict=True)


def test_calibration_error_is_that_of_the_sorted_list():
    # Continuous scores: no equal predictions.
    rng = np.random.default_rng(1)
    frame = simulate(503).assign(gap=rng.normal(0, 2, 503)).drop(columns="verdict")
    battles = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", human="human", label_coding="a_wins_1")
    listed = sorted((expit(0.4 * abs(s)), h == j) for s, h, j in rows_of(battles) if h in (0, 1) and j in (0, 1))
    n, ece, start = len(listed), 0.0, 0
    for k in range(10):
        stop = start + n // 10 + (k < n % 10)
        part = listed[start:stop]
        ece += len(part) / n * abs(np.mean([p for p, _ in part]) - np.mean([hit for _, hit in part]))
        start = stop
    table = diagnostics.reliability(battles, 0.4)
    assert table.attrs["settings"]["ece"] == pytest.approx(ece, abs=1e-12)
    assert table["n_battles"].sum() == n


def test_calibration_does_not_depend_on_row_order_or_sides(battles):
    frame = simulate().sample(frac=1, random_state=0)
    swapped = frame.rename(
        columns={"model_a": "model_b", "model_b": "model_a", "a1": "b2", "b2": "a1", "b1": "a2", "a2": "b1"}
    ).assign(human=1 - frame["human"], verdict=1 - frame["verdict"])
    first = diagnostics.reliability(battles, 0.4)
    pd.testing.assert_frame_equal(first, diagnostics.reliability(read(swapped), 0.4))
    gaps = diagnostics.agreement_by_score_gap(battles)
    pd.testing.assert_frame_equal(gaps, diagnostics.agreement_by_score_gap(read(swapped)))


def test_a_calibrated_judge_has_little_error_and_an_overconfident_one_much():
    rng = np.random.default_rng(2)
    n = 20_000
    gap = rng.normal(0, 2, n)
    frame = pd.DataFrame(
        {"model_a": "a", "model_b": "b", "gap": gap, "human": (rng.random(n) < expit(0.5 * gap)) * 1.0}
    )
    battles = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", label_coding="a_wins_1")
    # Ten bins of 2,000: the mean |error| of a bin is about sqrt(2 / pi) * 0.01.
    assert diagnostics.reliability(battles, 0.5).attrs["settings"]["ece"] < 4 * 0.01
    assert diagnostics.reliability(battles, 1.5).attrs["settings"]["ece"] > 0.1


def test_agreement_by_gap_is_the_naive_loop(battles):
    table = diagnostics.agreement_by_score_gap(battles)
    used = [(abs(s), h == j) for s, h, j in rows_of(battles) if h in (0, 1) and j in (0, 1)]
    for k, row in enumerate(table.itertuples()):
        hits = [hit for s, hit in used if (row.lower < s or (k == 0 and s == 0)) and s <= row.upper]
        assert row.n_battles == len(hits)
        assert row.agreement == pytest.approx(np.mean(hits))
    r = np.corrcoef(*np.array(used, float).T)[0, 1]
    assert table.attrs["settings"]["r"] == pytest.approx(r)
    assert table["n_battles"].sum() == len(used)


def test_correlation_interval_covers():
    rng = np.random.default_rng(3)
    trials, hits = 1500, 0
    gap = np.abs(rng.normal(0, 2, 200_000))
    truth = np.corrcoef(gap, rng.random(len(gap)) < expit(0.3 * gap))[0, 1]
    for _ in range(trials):
        x = np.abs(rng.normal(0, 2, 300))
        _, lower, upper = diagnostics.correlation_interval(x, rng.random(300) < expit(0.3 * x))
        hits += lower <= truth <= upper
    assert abs(hits / trials - 0.95) < 4 * np.sqrt(0.95 * 0.05 / trials) + 0.005


def test_flat_agreement_is_a_warning_in_words():
    rng = np.random.default_rng(4)
    frame = simulate(2000).assign(gap=rng.normal(0, 2, 2000), human=rng.integers(0, 2, 2000)).drop(columns="verdict")
    flat = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", label_coding="a_wins_1")
    (warning,) = diagnostics.agreement_by_score_gap(flat).attrs["warnings"]
    assert "soft targets may compress and reorder the board" in warning
    one = frame.assign(gap=np.sign(frame["gap"]))
    hard_only = jaxeval.JudgedBattles.from_pandas(one, score_difference="gap", label_coding="a_wins_1")
    (warning,) = diagnostics.agreement_by_score_gap(hard_only).attrs["warnings"]
    assert "cannot test" in warning
    assert diagnostics.agreement_by_score_gap(read(simulate(2000, noise=0.5))).attrs["warnings"] == []


def test_kappa_is_the_formula(battles):
    table = diagnostics.agreement(battles)
    for name, labels in (("all", (0, 0.5, 1)), ("decisive", (0, 1))):
        pairs = [(h, j) for _, h, j in rows_of(battles) if h in labels and j in labels]
        n = len(pairs)
        observed = sum(h == j for h, j in pairs) / n
        expected = sum(sum(h == x for h, _ in pairs) * sum(j == x for _, j in pairs) for x in labels) / n**2
        row = table.loc[name]
        assert row["n_battles"] == n
        assert row["kappa"] == pytest.approx((observed - expected) / (1 - expected))


def test_kappa_standard_error_is_the_bootstraps():
    rng = np.random.default_rng(5)
    x = rng.choice([0, 0.5, 1], 400, p=[0.5, 0.2, 0.3])
    y = np.where(rng.random(400) < 0.6, x, rng.choice([0, 0.5, 1], 400))
    error = diagnostics._kappa(x, y)[3]
    draws = []
    for _ in range(2000):
        rows = rng.integers(400, size=400)
        draws.append(diagnostics._kappa(x[rows], y[rows])[2])
    assert abs(np.std(draws) / error - 1) < 4 / np.sqrt(2 * 2000) + 0.02


def test_position_rates_are_the_naive_loop(battles):
    table = diagnostics.position_bias(battles)
    first = [s1 > 0 for s1, _ in battles.orders if s1] + [s2 < 0 for _, s2 in battles.orders if s2]
    flips = [(s1 > 0) != (s2 > 0) for s1, s2 in battles.orders if s1 and s2]
    assert table.loc["position_1", "share"] == pytest.approx(np.mean(first))
    assert table.loc["flip", "share"] == pytest.approx(np.mean(flips))
    assert table.loc["position_1", "lower"] < table.loc["position_1", "share"] < table.loc["position_1", "upper"]
    assert table.attrs["settings"]["advantage"] == pytest.approx(
        (battles.orders[:, 0] - battles.orders[:, 1]).mean() / 2
    )


def test_verdicts_lengths_and_gaps_are_the_naive_loops():
    battles = read(simulate(), verdict="verdict")
    against = [(v == 1) != (s > 0) for v, s in zip(battles.verdict, battles.score_difference, strict=True)
               if v in (0, 1) and s]  # fmt: skip
    assert diagnostics.verdict_disagreement(battles)["share"][0] == pytest.approx(np.mean(against))
    longer = [
        (j == 1) == (x > y)
        for s, j, x, y in zip(battles.score_difference, battles.hard, battles.columns["long_a"],
                              battles.columns["long_b"], strict=True)
        if abs(s) <= 0.3 and j in (0, 1) and x != y
    ]  # fmt: skip
    found = diagnostics.longer_answer_preference(battles, "long_a", "long_b").iloc[0]
    assert (found["share"], found["n_battles"]) == (pytest.approx(np.mean(longer)), len(longer))
    elo = pd.Series(np.arange(6.0), [f"m{k}" for k in range(6)])
    table = diagnostics.score_gap_by_strength(battles, elo, 3)
    group = {f"m{k}": k // 2 + 1 for k in range(6)}
    names = list(battles.models)
    for row in table.itertuples():
        gaps = [
            abs(s)
            for i, j, s in zip(battles.model_a, battles.model_b, battles.score_difference, strict=True)
            if sorted((group[names[i]], group[names[j]])) == [row.weaker, row.stronger]
        ]
        assert (row.median, row.mean, row.n_battles) == (
            pytest.approx(np.median(gaps)), pytest.approx(np.mean(gaps)), len(gaps)
        )  # fmt: skip


def test_ramp_by_group():
    table = residuals()
    ramp = diagnostics.residual_ramp(table)
    ordered = table.sort_values("human_elo")["residual"].to_numpy()
    np.testing.assert_allclose(ramp["residual"], ordered.reshape(4, 10).mean(1))
    slope, _ = np.polyfit(table["human_elo"], table["residual"], 1)
    np.testing.assert_allclose(ramp["slope"], slope)
    assert ramp["residual"].is_monotonic_increasing


def test_partial_correlation_is_the_textbook_formula(battles):
    rng = np.random.default_rng(6)
    table = residuals(6).assign(human_elo=rng.normal(1500, 50, 6))
    lengths = []
    for k in range(6):
        a, b = battles.models[battles.model_a] == f"m{k}", battles.models[battles.model_b] == f"m{k}"
        lengths.append(np.concatenate([battles.columns["long_a"][a], battles.columns["long_b"][b]]).mean())
    c = np.corrcoef([table["residual"], lengths, table["human_elo"]])
    expected = (c[0, 1] - c[0, 2] * c[1, 2]) / np.sqrt((1 - c[0, 2] ** 2) * (1 - c[1, 2] ** 2))
    found = diagnostics.length_correlation(battles, table, "long_a", "long_b")
    assert found["r"][0] == pytest.approx(expected)


def test_family_excess_against_the_other_judges():
    families = {f"m{k}": "x" if k < 10 else "y" for k in range(40)}
    one = residuals(judge="p")
    other = one.assign(judge="q", residual=one["residual"] - np.where(np.arange(40) < 10, 25.0, 5.0))
    table = diagnostics.family_excess(pd.concat([one, other]), families, {"p": "x", "q": "y"})
    assert table["excess"].to_numpy() == pytest.approx([20, 20])
    alone = diagnostics.family_excess(one.drop(columns="judge"), families, "x")
    by_hand = one["residual"][:10].mean() - one["residual"][10:].mean()
    assert alone["excess"][0] == pytest.approx(by_hand)


def naive_held_out(a, b, target, m, fold, ridge):
    """Both steps for one fold, by the twin's Newton; the second as a grid search refined."""
    wins = np.zeros((m, m))
    for i, j, y in zip(a, b, target, strict=True):
        if fold not in (i, j):
            wins[i, j] += y
            wins[j, i] += 1 - y
    theta = newton(wins, ridge)
    own = [(theta[j if i == fold else i], y if i == fold else 1 - y) for i, j, y in zip(a, b, target, strict=True)
           if fold in (i, j)]  # fmt: skip
    strength, points = np.array(own).T
    low, high = -20.0, 20.0
    for _ in range(200):
        middle = (low + high) / 2
        slope = (points - expit(middle - strength)).sum() - 2 * ridge * middle
        low, high = (middle, high) if slope > 0 else (low, middle)
    return low


def naive_beta(s, human):
    low, high = 0.0, 50.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if ((human - expit(middle * s)) * s).sum() > 0 else (low, middle)
    return low


def test_sweep_over_all_battles_is_the_naive_algorithm(battles):
    a, b, s, human, ridge = battles.model_a, battles.model_b, battles.score_difference, battles.human, 0.05
    beta = fold_temperatures(battles, np.arange(battles.n_battles))
    truth = human_ratings(battles, ridge)
    known = ~np.isnan(human)
    errors = {"hard": [], "soft": []}
    for fold in range(6):
        fit = np.isin(human, (0, 1)) & (a != fold) & (b != fold)
        assert beta[fold] == pytest.approx(naive_beta(s[fit], human[fit]), abs=1e-8)
        expected = naive_held_out(a[known], b[known], human[known], 6, fold, ridge)
        assert truth[fold] == pytest.approx(expected, abs=1e-7)
        for method, target in (("hard", battles.hard), ("soft", expit(beta[fold] * s))):
            errors[method].append(abs(naive_held_out(a, b, target, 6, fold, ridge) - expected) * ELO)
    last = budget_sweep(battles, (5,), 2, ridge).set_index(["method", "n_battles"])
    for method, expected in errors.items():
        assert last.loc[(method, 600), "mae"] == pytest.approx(np.mean(expected), abs=1e-4)
    assert last.loc[("soft", 600), "beta"] == pytest.approx(beta.mean())


def test_error_falls_with_the_budget_and_repeats_are_reproducible(battles):
    sweep = budget_sweep(battles, (4, 40, 1000), 10)
    mean = sweep[sweep["method"] == "soft"].groupby("budget")["mae"].mean()
    assert mean[4.0] > mean[40.0]
    assert "1000" in sweep.attrs["warnings"][0]
    pd.testing.assert_frame_equal(sweep, budget_sweep(battles, (4, 40, 1000), 10))


def test_a_slice_is_the_slice_alone_against_all_humans(battles):
    full = slice_ratings(battles, "language", 0.05, full=True)
    rows = np.flatnonzero((battles.columns["language"] == "de").to_numpy())
    pooled = fold_temperatures(battles, np.arange(battles.n_battles))
    truth = human_ratings(battles, 0.05)
    own = full[(full["slice"] == "de") & (full["method"] == "soft")].set_index("model")["residual"]
    for fold in range(6):
        target = expit(pooled[fold] * battles.score_difference[rows])
        theta = naive_held_out(battles.model_a[rows], battles.model_b[rows], target, 6, fold, 0.05)
        assert own[f"m{fold}"] == pytest.approx((theta - truth[fold]) * ELO, abs=1e-4)
    table = slice_ratings(battles, "language", 0.05)
    assert set(table["method"]) == {"hard", "soft", "soft_own"}
    assert set(table["slice"]) == {"de", "en"}


def test_temperatures_that_the_data_cannot_give_are_missing():
    frame = simulate(60).assign(gap=1.0, human=1.0).drop(columns="verdict")
    separable = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", label_coding="a_wins_1")
    assert np.isnan(fold_temperatures(separable, np.arange(60))).all()
    contrary = jaxeval.JudgedBattles.from_pandas(
        simulate(400).assign(gap=lambda f: f["human"].sub(0.5).mul(-2)).drop(columns="verdict"),
        score_difference="gap", label_coding="a_wins_1",
    )  # fmt: skip
    assert np.isnan(fold_temperatures(contrary, np.arange(contrary.n_battles))).all()


def test_what_is_absent_is_named(battles):
    with pytest.raises(jaxeval.DataError, match="no column 'words'"):
        diagnostics.longer_answer_preference(battles, "words", "words")
    one = jaxeval.JudgedBattles.from_pandas(
        simulate().drop(columns="verdict"), scores_a="a1", scores_b="b1", label_coding="a_wins_1"
    )
    with pytest.raises(jaxeval.DataError, match="both presentation orders"):
        diagnostics.position_bias(one)
    with pytest.raises(jaxeval.DataError, match="no verdict column"):
        diagnostics.verdict_disagreement(one)
    with pytest.raises(ValueError, match="needs a ridge > 0"):
        budget_sweep(battles, ridge=0)
    with pytest.raises(ValueError, match="no column 'country'"):
        slice_ratings(battles, "country")
