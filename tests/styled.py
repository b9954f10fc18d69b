"""Votes that two covariates of style sway: what the tests of fits with covariates read."""

import numpy as np
from scipy.special import expit

from jaxeval import simulate_votes

M, N = 6, 4000
FEATURES = ["length", "markup"]


def styled(n=N, n_models=M, seed=1, tied=0.3, pairs=None):
    rng = np.random.default_rng(seed)
    votes = simulate_votes(n, n_models, seed=pairs or seed, popularity_exponent=0.3)[["model_a", "model_b"]].astype(str)
    theta = dict(zip(sorted(set(votes["model_a"])), np.linspace(0.6, -0.6, n_models), strict=True))
    length, markup = rng.normal(size=n), rng.integers(-2, 3, size=n)
    z = votes["model_a"].map(theta) - votes["model_b"].map(theta) + 0.4 * length - 0.2 * markup
    u, win, loss = rng.random(n), expit(z - tied), expit(-z - tied)
    winner = np.where(u < win, "model_a", np.where(u > 1 - loss, "model_b", "tie"))
    prompt, half = rng.integers(n // 3, size=n), rng.integers(2, size=n)
    return votes.assign(winner=winner, length=length, markup=markup, prompt=prompt, half=half)
