"""Temperature: known answers, an independent optimiser, recovery from simulation, and statuses."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar

import jaxeval
from jaxeval import JudgedBattles, fit_temperature, fit_temperatures


def by_search(d, y, w=None):
    w = np.ones_like(d) if w is None else w
    loss = lambda beta: np.sum(w * (y * np.logaddexp(0, -beta * d) + (1 - y) * np.logaddexp(0, beta * d)))  # noqa: E731
    return minimize_scalar(loss, bounds=(-20, 20), method="bounded", options={"xatol": 1e-12}).x


@pytest.fixture(scope="module")
def judged():
    return jaxeval.simulate_judged_battles(20_000, 12, temperature=0.4, seed=1)


def test_recovers_the_simulated_temperature(judged):
    fit = fit_temperature(judged.score_difference, judged.human)
    assert fit.status == "converged"
    assert abs(fit.beta - 0.4) < 4 * fit.standard_error
    assert fit.n_ties == np.count_nonzero(judged.human == 0.5)


def test_the_standard_error_is_the_spread_over_simulations():
    """Of 200 samples of 400 battles each."""
    judged = jaxeval.simulate_judged_battles(80_000, 8, temperature=0.4, seed=0)
    fits = fit_temperatures(judged.score_difference, judged.human, np.arange(80_000) % 200)
    z = (fits["beta"] - 0.4) / fits["standard_error"]
    assert len(z) == 200
    assert abs(z.std() - 1) < 4 / np.sqrt(2 * len(z))


@pytest.mark.parametrize("ties", ["drop", "half"])
def test_equals_an_independent_optimiser(judged, ties):
    d, y = judged.score_difference[:500], judged.human[:500]
    weight = np.random.default_rng(0).uniform(0.5, 2, 500)
    used = (y != 0.5) | (ties == "half")
    fit = fit_temperature(d, y, ties=ties, weight=weight)
    assert fit.beta == pytest.approx(by_search(d[used], y[used], weight[used]), abs=1e-6)
    assert fit.n_battles == used.sum()


def test_statuses():
    d = np.array([1.0, 2, -1, -3, 0.5, 2])
    agree = (d > 0).astype(float)
    separable, opposite = fit_temperature(d, agree), fit_temperature(d, 1 - agree)
    assert (separable.status, separable.beta) == ("separable", np.inf)
    assert (opposite.status, opposite.beta) == ("separable", -np.inf)
    assert np.isnan(separable.standard_error)
    assert not separable.converged
    few = fit_temperature([1.0, 2, 0, 0, 0, 0], [1, 0, 1, 1, 0, 0])
    assert few.status == "too few"
    assert np.isnan(few.beta)
    negative = fit_temperature(d, [0, 0, 1, 1, 1, 0])
    assert negative.status == "negative slope"
    assert negative.beta < 0
    assert negative.converged
    assert fit_temperature([], []).status == "too few"


def test_slices_are_the_fits_of_their_rows(judged):
    language = judged.columns["language"].to_numpy()
    table = fit_temperatures(judged.score_difference, judged.human, language)
    assert table.index.tolist() == sorted(set(language))
    for name, row in table.iterrows():
        rows = language == name
        alone = fit_temperature(judged.score_difference[rows], judged.human[rows])
        assert row["beta"] == pytest.approx(alone.beta, abs=1e-10)
        assert row["n_battles"] == alone.n_battles


def test_missing_labels_are_counted_and_bad_ones_refused():
    d, y = np.array([1.0, -1, 2, -2, 1, -1, 1]), np.array([1, 0, 1, 0, 0, np.nan, 1])
    fit = fit_temperature(d, y)
    assert (fit.n_battles, fit.n_unlabelled) == (6, 1)
    with pytest.raises(ValueError, match="one human label"):
        fit_temperature(d, y[:3])
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        fit_temperature(d, y + 1)
    with pytest.raises(ValueError, match="ties must be"):
        fit_temperature(d, y, ties="skip")
    with pytest.raises(ValueError, match="weights"):
        fit_temperature(d, y, weight=-np.ones(7))


def test_pooled_temperature_of_the_sample(data):
    battles = jaxeval.read_judged_battles(data / "softelo_sample.csv", label_coding="a_wins_0")
    fit = fit_temperature(battles.score_difference, battles.human)
    assert fit.n_battles == 639
    assert fit.beta == pytest.approx(0.652203, abs=2e-6)


@pytest.mark.parametrize(
    ("judge", "beta", "n"),
    [("gpt4_0125", 1.605193, 14_397), ("claude3_opus", 0.957901, 13_801), ("gpt35_turbo", 0.280146, 18_877)],
)
def test_verdicts_give_the_logit_of_the_agreement(data, judge, beta, n):
    votes = pd.read_parquet(data / "arena27k_human_3judges.parquet")
    battles = JudgedBattles.from_pandas(votes, human="human", verdict=judge)
    fit = fit_temperature(battles.score_difference, battles.human)
    assert fit.beta == pytest.approx(beta, abs=1e-6)
    assert fit.n_informative == n


def test_clusters_add_up_their_scores():
    """CR2, battle by battle; unlabelled battles, ties and battles of weight 0 are in no cluster."""
    rng = np.random.default_rng(4)
    d, y = rng.normal(0, 2, 600).round(1), rng.choice([0, 0.5, 1, np.nan], 600, p=[0.3, 0.1, 0.55, 0.05])
    weight, cluster, by = rng.choice([0.0, 1, 3], 600), rng.integers(70, size=600), rng.integers(2, size=600)
    used = np.isin(y, (0, 1)) & (weight > 0)
    fit = fit_temperature(d, y, weight=weight, cluster=cluster)
    p = 1 / (1 + np.exp(-fit.beta * d))
    score = pd.Series(weight * d * (y - p))[used].groupby(cluster[used]).sum()
    information = pd.Series(weight * d**2 * p * (1 - p))[used].groupby(cluster[used]).sum()
    corrected = score / np.sqrt(1 - information / information.sum())
    assert fit.standard_error == pytest.approx(np.sqrt((corrected**2).sum()) / information.sum(), rel=1e-9)
    size = pd.Series(cluster[used]).value_counts()
    assert fit.n_clusters == len(score)
    assert fit.n_effective_clusters == pytest.approx(size.sum() ** 2 / (size**2).sum())
    table = fit_temperatures(d, y, by, weight=weight, cluster=cluster)
    for k in (0, 1):
        own = by == k
        alone = fit_temperature(d[own], y[own], weight=weight[own], cluster=cluster[own])
        assert table.loc[k, "standard_error"] == pytest.approx(alone.standard_error, rel=1e-9)
        assert table.loc[k, "n_clusters"] == alone.n_clusters
    assert table.attrs["warnings"] == []


def test_one_battle_a_cluster_is_the_plain_error(judged):
    d, y = judged.score_difference[:700], judged.human[:700]
    names = np.random.default_rng(0).permutation(700)
    plain, alone = fit_temperature(d, y), fit_temperature(d, y, cluster=names)
    assert (alone.beta, alone.standard_error) == (plain.beta, plain.standard_error)
    assert (plain.n_clusters, alone.n_clusters) == (None, plain.n_battles)


def test_errors_of_unequal_clusters_are_the_spread_over_samples():
    """One cluster holds two fifths of the battles, and clusters differ: 16 clusters, 400 samples."""
    rng = np.random.default_rng(7)
    cluster = np.r_[np.zeros(160, int), np.repeat(np.arange(1, 17), 15)]
    d = rng.normal(0, 2, (400, 400)).round(1)
    lean = rng.normal(0, 0.8, (400, 17))[:, cluster]
    y = rng.uniform(size=d.shape) < 1 / (1 + np.exp(-(0.6 * d + lean)))
    sample = np.repeat(np.arange(400), 400)
    fits = fit_temperatures(d.ravel(), y.ravel(), by=sample, cluster=np.tile(cluster, 400))
    beta, error = fits["beta"].to_numpy(), fits["standard_error"].to_numpy()
    # The mean of 400 variances against the variance of 400 estimates, whose relative error is sqrt(2 / 400).
    assert np.mean(error**2) == pytest.approx(beta.var(), rel=3 * np.sqrt(2 / 400))
    one = fit_temperature(d[0], y[0], cluster=cluster)
    assert one.n_effective_clusters < 6
    assert "17 clusters, of such unequal size that they are worth 5 equal ones" in one.warnings[0]
    assert (one.beta, one.standard_error) == pytest.approx((beta[0], error[0]), abs=1e-9)


def test_few_clusters_and_missing_ones(judged):
    d, y = judged.score_difference[:300], judged.human[:300]
    few = fit_temperature(d, y, cluster=np.arange(300) % 5)
    assert len(few.warnings) == 1
    assert "only 5 clusters: standard errors and intervals from fewer than 30 are unreliable" in few.warnings[0]
    assert np.isnan(fit_temperature(d, y, cluster=np.zeros(300)).standard_error)
    with pytest.raises(ValueError, match="1 of 300 battles has no cluster \\(first in row 2"):
        fit_temperature(d, y, cluster=np.where(np.arange(300) == 2, np.nan, 1.0))
    with pytest.raises(ValueError, match="one cluster is needed"):
        fit_temperature(d, y, cluster=np.arange(299))
