"""Simulated answers of three models, two judges of verdicts and one of scores: what the tests of accuracies read."""

from functools import cache

import numpy as np
import pandas as pd
import twins

from jaxeval.accuracy.judge_accuracy import judge_accuracy
from jaxeval.data.judged_answers import JudgedAnswers

MODELS = ["a", "b", "c"]
JUDGES = ["good", "poor", "score"]
BINARY = np.array([True, True, False])
# Specificity and sensitivity by judge, of the topics in turn; model c is the harder one to judge.
_RATES = {"good": ((0.8, 0.9), (0.95, 0.75)), "poor": ((0.5, 0.6), (0.55, 0.6))}


def simulate(n, seed, first=0, gaps=0.0, unlabelled=0.0):
    """A row per item and model; a share ``gaps`` of each judge's judgments is missing, and ``unlabelled`` of labels."""
    rng = np.random.default_rng(seed)
    item = np.repeat(np.arange(n), len(MODELS))
    model = np.tile(np.arange(len(MODELS)), n)
    topic = np.repeat(rng.integers(0, 2, n), len(MODELS))
    ease = np.repeat(rng.normal(0, 0.2, n), len(MODELS))
    human = (rng.random(len(item)) < np.array([0.75, 0.6, 0.5])[model] + ease).astype(float)
    frame = pd.DataFrame(
        {"item": [f"q{k + first:04d}" for k in item], "model": np.array(MODELS)[model], "human": human}
    )
    frame["topic"] = np.array(["art", "law"])[topic]
    for judge, rates in _RATES.items():
        q0, q1 = np.array(rates).T[:, topic] - 0.1 * (model == 2)
        frame[judge] = (rng.random(len(item)) < np.where(human == 1, q1, 1 - q0)).astype(float)
    frame["score"] = 2 * human + 1 + rng.normal(0, 1.5, len(item)).round(2)
    for judge in JUDGES:
        frame[judge] = frame[judge].mask(rng.random(len(item)) < gaps)
    frame["human"] = frame["human"].mask(rng.random(len(item)) < unlabelled)
    return frame


def read(frame, **options):
    names = {"judgment": JUDGES, "model": "model", "item": "item", "keep": ["topic"], "missing": "drop"}
    return JudgedAnswers.from_pandas(frame, **{**names, **options})


def rows(calibration, test, model, judge):
    """Labels, their judgments, and the judgments of all test answers of one model and judge in two tables.

    Missing judgments are the mean of the judge's test judgments.
    """
    own, judged = (frame[frame["model"] == model] for frame in (calibration[calibration["human"].notna()], test))
    fill = judged[judge].mean()
    return own["human"].tolist(), own[judge].fillna(fill).tolist(), judged[judge].fillna(fill).tolist()


def accuracies(calibration, test, model, judge, binary):
    """Every estimator with the model's own calibration, from the rows that it uses."""
    judged = twins.accuracies(*judged_rows(calibration, test, model, judge), binary)
    of_judged = {name: value for name, value in judged.items() if name in ("naive", "rogan_gladen")}
    return twins.accuracies(*rows(calibration, test, model, judge), binary) | of_judged


def judged_rows(calibration, test, model, judge):
    """Labels that have a judgment, their judgments, and the judgments of the test, of one model and judge."""
    known = calibration[calibration["human"].notna() & calibration[judge].notna()]
    own, judged = (frame[frame["model"] == model] for frame in (known, test))
    return own["human"].tolist(), own[judge].tolist(), judged[judge].dropna().tolist()


def pool(calibration, judge):
    """Labels and their judgments of all models."""
    known = calibration[calibration["human"].notna() & calibration[judge].notna()]
    return known["human"].tolist(), known[judge].tolist()


SETTINGS = {"n_resamples": 400, "n_halves": 4}
CALIBRATION = simulate(60, 1, gaps=0.05, unlabelled=0.1)
TEST = simulate(100, 2, first=60, gaps=0.05)
# Items enough for estimates to be about linear in them.
MANY = simulate(1_200, 3, gaps=0.05, unlabelled=0.1), simulate(2_000, 4, first=1_200, gaps=0.05)


@cache
def stratified():
    """Accuracies from `MANY` by topic."""
    return judge_accuracy(*map(read, MANY), stratify="topic", **SETTINGS)


@cache
def without_models():
    """Accuracies from a calibration in which every row is an item of one model."""
    calibration = JudgedAnswers.from_pandas(CALIBRATION, judgment=JUDGES, keep=["topic"], missing="drop")
    return judge_accuracy(calibration, read(TEST), **SETTINGS)
