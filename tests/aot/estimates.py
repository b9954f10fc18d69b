"""Estimates of small boards that call every program over lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from ranked import simulated, table

import jaxeval
from jaxeval import Battles, Rankings


@cache
def _battles(n_votes: int = 3000, n_models: int = 20) -> Battles:
    votes, rng = jaxeval.simulate_votes(n_votes, n_models, seed=0), np.random.default_rng(0)
    votes["length"] = rng.normal(size=n_votes)
    votes["prompt"] = rng.integers(0, n_votes // 3, n_votes)
    votes["language"] = votes["prompt"] % 3
    return Battles.from_pandas(votes)


def _bootstrap(**options: Any) -> None:
    jaxeval.bootstrap(_battles(), 256, progress=False, **options)


def _rankings() -> None:
    jaxeval.bootstrap(Rankings.from_pandas(table(simulated(400, 12))), 256, progress=False)


def _judge_accuracy() -> None:
    rng = np.random.default_rng(0)
    accuracy, q0, q1 = rng.uniform(0.5, 0.85, 4), rng.uniform(0.6, 0.9, (4, 2)), rng.uniform(0.7, 0.95, (4, 2))
    table = jaxeval.simulate_judged_answers(accuracy, q0, q1, 300)
    judged = jaxeval.JudgedAnswers.from_pandas(table, judgment=["judge-1", "judge-2"], model="model", item="item")
    # Without a limit, resamples of so few kinds of answers are drawn on the host.
    jaxeval.judge_accuracy(*judged.split(1 / 3), n_resamples=256, memory_limit=2**30, progress=False)


def _scores() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    gold, names = 10 * rng.normal(size=30), [f"model-{k}" for k in range(30)]
    return pd.DataFrame(gold[:, None] + rng.normal(size=(30, 3)), names), pd.Series(gold, names)


def _kendall_tau_delta() -> None:
    jaxeval.kendall_tau_delta(*_scores(), deltas=[1, 2.0], n_resamples=256, progress=False)


def _rank_agreement() -> None:
    jaxeval.rank_agreement(*_scores(), n_resamples=256, progress=False)


def _reference_study() -> None:
    battles = jaxeval.simulate_battles(3000, 12)
    sets = [[battles.models[k] for k in own] for own in ([1, 4, 7], [2, 5])]
    jaxeval.reference_study(
        battles, n_resamples=64, sets=sets, budgets=(20, 50), n_repeats=3, deltas=(5.0, 10.0), progress=False
    )


def _soft_elo() -> None:
    jaxeval.soft_elo(jaxeval.simulate_judged_battles(3000, 12, seed=0), n_resamples=256, progress=False)


def _powered() -> None:
    votes = _battles()
    own, others = votes.filter(np.arange(3000) < 1200), votes.filter(np.arange(3000) >= 1200)
    jaxeval.prediction_powered(own, own, others, n_resamples=256, progress=False)


def _panel() -> None:
    jaxeval.fit_judge_panel(jaxeval.simulate_panel(300, 8, seed=0), 256, progress=False)


def _audit(part: str) -> None:
    jaxeval.audit(_battles(), parts=[part], n_resamples=256, progress=False)


def _item_response() -> None:
    values = np.random.default_rng(0).random((40, 12)) < 0.6
    scores = jaxeval.ItemScores(values[:, None].astype(float), pd.RangeIndex(40), pd.Index(["s"]), pd.RangeIndex(12))
    jaxeval.fit_item_response(scores, n_resamples=64, progress=False)


ESTIMATES: Mapping[str, Callable[[], None]] = {
    "multinomial": _bootstrap,
    "single-precision": partial(_bootstrap, dtype="float32"),
    "bayesian": partial(_bootstrap, scheme="bayesian"),
    "clusters": partial(_bootstrap, cluster="prompt"),
    "sparse": partial(_bootstrap, method="sparse"),
    "style": partial(_bootstrap, features=["length"]),
    "davidson": partial(_bootstrap, ties="davidson"),
    "firth": partial(_bootstrap, penalty="firth"),
    "rankings": _rankings,
    "soft-elo": _soft_elo,
    "judge-accuracy": _judge_accuracy,
    "kendall-tau-delta": _kendall_tau_delta,
    "rank-agreement": _rank_agreement,
    "reference-study": _reference_study,
    "prediction-powered": _powered,
    "judge-panel": _panel,
    "fewest-votes": partial(_audit, "fewest_votes"),
    "goodness-of-fit": partial(_audit, "goodness_of_fit"),
    "item-response": _item_response,
}
