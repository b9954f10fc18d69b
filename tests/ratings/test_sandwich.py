"""Standard errors of battles that belong together, or have weights: naive twins, and the spread over simulations."""

import numpy as np
import pandas as pd
import pytest
from prompts import prompted
from scipy.special import expit

from jaxeval import Battles, DataError, bootstrap, fit_bradley_terry
from jaxeval.data.features import position_advantage
from jaxeval.data.simulated_votes import simulate_votes

ELO = 400 / np.log(10)
NAMES = ("standard_errors", "standard_errors_hessian", "covariance", "difference_standard_errors")


@pytest.fixture(scope="module")
def frame():
    """900 votes with weights on 150 prompts of unequal size, a covariate, and two models that tie too often."""
    rng = np.random.default_rng(2)
    votes = simulate_votes(900, 6, seed=3)[["model_a", "model_b", "winner"]].astype(str)
    return votes.assign(
        prompt=rng.integers(150, size=900), w=rng.choice([0.25, 1.0, 3.0], 900), length=rng.normal(size=900).round(1),
        row=rng.permutation(900),
    )  # fmt: skip


def read(frame):
    return Battles.from_pandas(frame, weight="w")


def naive(battles, fit, groups, ridge, x, pair_weight):
    """Sandwich and model-based covariance of strengths, battle by battle: ties as half a win."""
    m, n = battles.n_models, battles.n_battles
    z = np.zeros((n, m + x.shape[1]))
    z[np.arange(n), battles.model_a], z[np.arange(n), battles.model_b], z[:, m:] = 1, -1, x
    own = fit.coefficients()["coefficient"].to_numpy() if x.shape[1] else np.zeros(0)
    p, w = expit(z @ np.concatenate([fit.theta, own])), battles.weight * pair_weight
    penalty = np.concatenate([np.full(m, 2 * ridge), np.zeros(x.shape[1])])
    centring = np.eye(z.shape[1])
    centring[:m, :m] -= 1 / m
    bread = np.linalg.pinv(centring @ ((z * (w * p * (1 - p))[:, None]).T @ z + np.diag(penalty)) @ centring)
    by_group = pd.DataFrame(z * (w * (battles.target - p))[:, None]).groupby(np.asarray(groups))
    share = by_group.size().to_numpy() / n if by_group.ngroups < n else np.zeros(n)  # battles by themselves
    scores = by_group.sum().to_numpy() / np.sqrt(1 - share)[:, None]
    spread = z * (w * np.sqrt(p * (1 - p)))[:, None]
    return [(bread @ s.T @ s @ bread)[:m, :m] for s in (scores, spread)]


@pytest.mark.parametrize("cluster", ["prompt", None])
@pytest.mark.parametrize("covariates", [False, True])
@pytest.mark.parametrize(("ridge", "reweight"), [(0.0, False), (0.3, True)])
def test_errors_are_the_naive_sums_over_clusters(frame, ridge, reweight, covariates, cluster):
    """Or over battles: many are alike, and each counts as one of its own."""
    battles = read(frame)
    assert battles.cells.count.max() > 5
    options = {"features": ["length", position_advantage()], "normalize": False} if covariates else {}
    fit = fit_bradley_terry(battles, ridge, reweight=reweight, cluster=cluster, **options)
    pair = frame[["model_a", "model_b"]].apply(lambda r: " ".join(sorted(r)), axis=1)
    factor = 1 / np.maximum(pair.map(pair.value_counts()), 50) if reweight else pd.Series(np.ones(len(frame)))
    x = np.stack([frame["length"], np.ones(len(frame))], 1) if covariates else np.zeros((len(frame), 0))
    groups = frame[cluster] if cluster else np.arange(len(frame))
    clustered, if_right = naive(battles, fit, groups, ridge, x, factor.to_numpy())
    np.testing.assert_allclose(fit.covariance, ELO**2 * clustered, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(fit.standard_errors, ELO * np.sqrt(np.diag(clustered)), rtol=1e-7)
    np.testing.assert_allclose(fit.standard_errors_hessian, ELO * np.sqrt(np.diag(if_right)), rtol=1e-7)
    assert (fit.settings.cluster, fit.n_clusters) == (cluster, frame["prompt"].nunique() if cluster else None)


@pytest.mark.parametrize("ties", ["davidson", "rao_kupper"])
@pytest.mark.slow
def test_tie_models_add_their_scores_by_cluster(frame, ties):
    """Derivatives of the log-likelihood by differences, all parameters together."""
    battles = read(frame)
    fit = fit_bradley_terry(battles, features=["length"], normalize=False, ties=ties, cluster="prompt")
    m, y = battles.n_models, battles.target
    phi = np.concatenate([fit.theta, fit.coefficients()["coefficient"]])
    z_of = np.zeros((len(y), m + 1))
    z_of[np.arange(len(y)), battles.model_a], z_of[np.arange(len(y)), battles.model_b] = 1, -1
    z_of[:, m] = frame["length"]

    def likelihood(phi):
        z, t = z_of @ phi[:-1], phi[-1]
        if ties == "davidson":
            parts = np.stack([-z / 2, np.full_like(z, t), z / 2])
            parts = parts - np.logaddexp.reduce(parts, 0)
        else:
            win, loss = expit(z - t), expit(-z - t)
            parts = np.log(np.stack([loss, 1 - win - loss, win]))
        return battles.weight * parts[(2 * y).astype(int), np.arange(len(y))]

    step = 1e-4 * np.eye(len(phi))
    scores = np.stack([(likelihood(phi + s) - likelihood(phi - s)) / 2e-4 for s in step], 1)
    second = [[(likelihood(phi + s + r) - likelihood(phi + s - r) - likelihood(phi - s + r) + likelihood(phi - s - r))
               / 4e-8 for r in step] for s in step]  # fmt: skip
    centring = np.eye(len(phi))
    centring[:m, :m] -= 1 / m
    bread = np.linalg.pinv(centring @ -np.sum(second, 2) @ centring, rcond=1e-9)
    by_prompt = pd.DataFrame(scores).groupby(frame["prompt"].to_numpy())
    sums = by_prompt.sum().to_numpy() / np.sqrt(1 - by_prompt.size().to_numpy() / len(y))[:, None]
    covariance = bread @ sums.T @ sums @ bread
    np.testing.assert_allclose(fit.standard_errors, ELO * np.sqrt(np.diag(covariance)[:m]), rtol=1e-4)
    assert fit.tie_parameter_standard_error == pytest.approx(np.sqrt(covariance[-1, -1]), rel=1e-4)
    error = fit.coefficients()["standard_error"].iloc[0]
    assert error == pytest.approx(np.sqrt(covariance[m, m]), rel=1e-4)
    middle = -np.tensordot(battles.weight, np.moveaxis(second, 2, 0), 1)
    if_right = np.sqrt(np.diag(bread @ middle @ bread)[:m])
    np.testing.assert_allclose(fit.standard_errors_hessian, ELO * if_right, rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [{}, {"features": ["length", position_advantage()]}, pytest.param({"method": "sparse"}, marks=pytest.mark.slow)],
)
def test_one_battle_a_cluster_is_the_plain_fit(frame, options):
    plain = fit_bradley_terry(read(frame), **options)
    alone = fit_bradley_terry(read(frame), cluster="row", **options)
    for name in NAMES:
        np.testing.assert_array_equal(getattr(alone, name), getattr(plain, name))


@pytest.mark.slow
def test_a_bootstrap_of_clusters_has_their_errors(frame):
    frame = frame.assign(half=np.arange(len(frame)) % 2)
    for options in ({}, {"features": ["length"]}):
        whole = bootstrap(read(frame), 2, cluster="prompt", **options).fit
        expected = fit_bradley_terry(read(frame), cluster="prompt", **options)
        np.testing.assert_array_equal(whole.standard_errors, expected.standard_errors)
        part = bootstrap(read(frame), 2, by="half", cluster="prompt", **options)[1].fit
        half = read(frame[frame["half"] == 1])
        if not options:  # covariates are normalised over the whole board
            expected = fit_bradley_terry(half, cluster="prompt")
            np.testing.assert_allclose(part.standard_errors, expected.standard_errors, rtol=1e-9)
        assert part.settings.cluster == "prompt"


def test_a_row_without_a_cluster_is_an_error(frame):
    gaps = frame.assign(prompt=frame["prompt"].where(frame.index > 2))
    for fit in (fit_bradley_terry, bootstrap):
        with pytest.raises(DataError, match="column 'prompt' has 3 missing values"):
            fit(read(gaps), cluster="prompt")


def votes_on_prompts(seed):
    rng = np.random.default_rng(seed)
    frame, difference = prompted(rng, 0.7)
    return frame.assign(target=(rng.random(len(frame)) < expit(difference)) * 1.0)


@pytest.mark.slow
def test_clustered_errors_are_the_spread_over_simulations():
    fits = {c: [fit_bradley_terry(votes_on_prompts(seed), cluster=c) for seed in range(400)] for c in (None, "prompt")}
    spread = np.std([fit.ratings for fit in fits["prompt"]], axis=0, ddof=1)
    ratio = {
        c: np.sqrt(np.mean([fit.standard_errors**2 for fit in of_kind], axis=0)) / spread for c, of_kind in fits.items()
    }
    # A standard deviation over 400 simulations has a standard error of 3.5 %, and 60 clusters cost a percent or two.
    tolerance = 4 / np.sqrt(2 * 400)
    assert (np.abs(ratio["prompt"] - 1) < tolerance).all()
    assert abs(ratio["prompt"].mean() - 1) < 0.05
    assert ratio[None].mean() < 0.8


@pytest.mark.slow
def test_errors_with_weights_are_the_spread_over_simulations():
    """Also those of the information, where the model is right: weights are no numbers of battles."""
    rng = np.random.default_rng(0)
    a = rng.integers(5, size=600)
    b = (a + rng.integers(1, 5, size=600)) % 5
    theta, names = np.linspace(-0.5, 0.5, 5), np.array(list("abcde"))
    frame = pd.DataFrame({"model_a": names[a], "model_b": names[b], "w": rng.choice([1.0, 2.0, 6.0], 600)})
    won = rng.random((400, 600)) < expit(theta[a] - theta[b])
    fits = [fit_bradley_terry(read(frame.assign(target=one * 1.0))) for one in won]
    spread = np.std([fit.ratings for fit in fits], axis=0, ddof=1)
    for name in ("standard_errors", "standard_errors_hessian"):
        ratio = np.sqrt(np.mean([getattr(fit, name) ** 2 for fit in fits], axis=0)) / spread
        assert (np.abs(ratio - 1) < 4 / np.sqrt(2 * 400)).all()
