"""Judged battles of another size in the same bucket compile nothing."""

import numpy as np
import pytest
from compilations import compilations

import jaxeval
from jaxeval.lab.held_out_sweeps import budget_sweep, label_smoothing_sweep, slice_ratings
from jaxeval.softelo import held_out
from jaxeval.softelo.calibration import SoftEloCalibration
from jaxeval.softelo.temperature import fit_temperatures


def simulate(n_battles, n_models, seed=0):
    battles = jaxeval.simulate_judged_battles(n_battles, n_models, seed=seed)
    battles.columns["group"] = np.arange(n_battles) % 3
    return battles


def of_two_judges(n_battles, n_models):
    judges = {name: simulate(n_battles - 50 * seed, n_models, seed) for seed, name in enumerate("xy")}
    jaxeval.soft_elo(judges, n_resamples=40, progress=False)


def calibrate_and_predict(n_battles, n_models):
    battles = simulate(n_battles, n_models)
    of_new = (battles.model_a == n_models - 1) | (battles.model_b == n_models - 1)
    calibration = SoftEloCalibration.fit(battles.subset(~of_new))
    calibration.predict(battles.subset(of_new), level=0.8)


def temperatures_of_slices(n_battles, n_slices):
    agree, difference = np.random.default_rng(0).integers(0, 2, (2, n_battles))
    fit_temperatures(difference, agree, np.arange(n_battles) % n_slices)


ESTIMATORS = {
    "soft_elo": lambda *size: jaxeval.soft_elo(simulate(*size), n_resamples=40, progress=False),
    "several judges": of_two_judges,
    "clusters": lambda *size: jaxeval.soft_elo(simulate(*size), n_resamples=40, cluster="group", progress=False),
    "label smoothing": lambda *size: label_smoothing_sweep(simulate(*size), (0.7, 0.8)),
    "budget_sweep": lambda *size: budget_sweep(simulate(*size), (40,), n_repeats=1),
    "slices": lambda *size: slice_ratings(simulate(*size), "group"),
    "calibration": calibrate_and_predict,
    "temperatures": temperatures_of_slices,
}


#: These compile most of the programs; the others are the slow ones.
QUICK = ("soft_elo", "budget_sweep", "calibration", "temperatures")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ESTIMATORS]
)
def test_another_size_in_the_bucket_compiles_nothing(name, monkeypatch):
    ESTIMATORS[name](1000, 8)  # as in test_soft_elo
    monkeypatch.setattr(held_out, "_CHORD_STEPS", 0)  # Newton's method, which some boards need and others do not
    ESTIMATORS[name](1000, 8)
    monkeypatch.undo()
    for size in [(900, 7), (1000, 6), (1010, 5)]:
        with compilations() as count:
            ESTIMATORS[name](*size)
        assert count.programs == [], size
