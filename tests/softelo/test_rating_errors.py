import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import jaxeval
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.softelo.held_out import hold_out
from jaxeval.softelo.own_battles import held_out_errors, standard_errors
from jaxeval.softelo.temperature import compress

METHODS = ("hard", "soft")


@pytest.fixture(scope="module")
def battles():
    return jaxeval.simulate_judged_battles(1000, 8, noise=2.0, unlabelled=0.3, seed=2)


@pytest.mark.slow
def test_errors_of_the_judge_are_those_of_the_bootstrap(battles):
    bootstrap = jaxeval.soft_elo(battles, n_resamples=256, methods=METHODS).models
    drawn = [bootstrap.loc[bootstrap["method"] == method, "standard_error"] for method in METHODS]
    found = ELO_PER_LOGIT * held_out_errors(battles, METHODS, 0.01)[0]
    # The bootstrap's own standard deviation, and a difference to first order in 1 / battles.
    np.testing.assert_allclose(found, drawn, rtol=4 / np.sqrt(2 * 256) + 0.02)


def test_errors_are_those_of_a_naive_loop(battles):
    (folds,) = hold_out([compress(battles)], METHODS, 0.01)
    found = held_out_errors(battles, METHODS, 0.01, "language")
    for i in (0, 5):
        for k, method in enumerate(METHODS, start=1):
            totals = {}
            for a, b, d, hard, human, language in zip(
                battles.model_a, battles.model_b, battles.score_difference, battles.hard, battles.human,
                battles.column("language"), strict=True,
            ):  # fmt: skip
                if i in (a, b):
                    other = b if a == i else a
                    soft = expit(folds.beta[i] * d) if method == "soft" else hard
                    targets = np.array([soft, human]) if a == i else 1 - np.array([soft, human])
                    p = expit(folds.theta[[k, 0], i] - folds.anchors[[k, 0], i, other])
                    score, information = totals.setdefault(language, (np.zeros(2), np.zeros(2)))
                    score += np.nan_to_num(targets - p)
                    information += p * (1 - p) * ~np.isnan(targets)
            information = sum(part[1] for part in totals.values()) + 2 * 0.01
            moved = np.array([part[0] for part in totals.values()]) / information
            moved = np.column_stack([moved, moved[:, 0] - moved[:, 1]])
            naive = np.sqrt(len(moved) / (len(moved) - 1) * ((moved - moved.mean(axis=0)) ** 2).sum(axis=0))
            ours = [error[k - 1, i] for error in found]
            np.testing.assert_allclose(ours, naive, rtol=1e-9)


def test_shared_battles_make_the_residual_less_noisy_than_its_parts(battles):
    judge, human, residual = held_out_errors(battles, METHODS, 0.01)
    assert (residual[1] < np.hypot(judge[1], human[1])).all()
    unlabelled = held_out_errors(battles, METHODS, 0.01)[1]
    assert (unlabelled > 0).all()


def test_one_unit_alone_has_no_error():
    model, unit = np.array([0, 0, 1, 1, 1]), np.array([3, 3, 0, 1, 1])
    found = standard_errors(model, unit, np.array([1.0, 2.0, 1.0, 2.0, 3.0]), 3)
    assert np.isnan(found[[0, 2]]).all()
    assert found[1] == pytest.approx(np.sqrt(2 * 2 * 2.0**2))


@pytest.mark.slow
def test_clustered_errors_are_the_spread_over_samples():
    """Battles on 30 prompts, on each of which the judge leans to one model: its rating's spread over 200 samples."""
    pairs = jaxeval.simulate_judged_battles(600, 4, seed=1)
    a, b, rng = pairs.models[pairs.model_a], pairs.models[pairs.model_b], np.random.default_rng(3)
    theta, said = [], []
    for _ in range(200):
        prompt = rng.integers(0, 30, len(a))
        lean = rng.normal(0, 2, 30)[prompt] * ((a == "model-1").astype(float) - (b == "model-1"))
        frame = pd.DataFrame({"model_a": a, "model_b": b, "gap": lean + rng.normal(0, 1, len(a)), "prompt": prompt})
        frame["human"] = rng.integers(0, 2, len(a)).astype(float)
        read = jaxeval.JudgedBattles.from_pandas(frame, score_difference="gap", label_coding="a_wins_1")
        (folds,) = hold_out([compress(read)], ("hard",), 0.01)
        place = list(read.models).index("model-1")
        theta.append(folds.theta[1, place])
        said.append([held_out_errors(read, ("hard",), 0.01, c)[0, 0, place] for c in ("prompt", None)])
    clustered, plain = np.sqrt(np.mean(np.square(said), axis=0)) / np.std(theta, ddof=1)
    # The standard deviation of 200 samples has a relative error of 1 / sqrt(400).
    assert abs(clustered - 1) < 4 / np.sqrt(400)
    assert plain < 0.6
