"""Simulated verdicts: of a judge beside people, and of panels of judges."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles
from jaxeval.data.simulated_votes import VoteOptions, given_or_drawn, simulate_votes


def judge_verdicts(
    votes: pd.DataFrame, strengths: pd.Series, rng: np.random.Generator, *, agreement: float = 0.6, taste: float = 0.3,
    side_bias: float = 0.0, tie_rate: float = 0.25,
) -> NDArray[np.str_]:  # fmt: skip
    """Return what a judge says about each battle of ``votes``: "model_a", "model_b", "tie", or the human outcome.

    It repeats the human outcome with probability ``agreement``. Otherwise it decides alone, with strengths of its own,
    which differ from people's by ``taste`` logits (standard deviation), and adds ``side_bias`` logits for side A.
    """
    if not 0 <= agreement <= 1:
        raise ValueError(f"agreement must lie in [0, 1], got {agreement}")
    if not 0 <= taste < np.inf:
        raise ValueError(f"taste must be >= 0 and finite, got {taste}")
    of_judge = strengths.to_numpy(float) + rng.normal(0, taste, len(strengths))
    a, b = (votes[side].cat.codes.to_numpy() for side in ("model_a", "model_b"))
    p, u = 1 / (1 + np.exp(of_judge[b] - of_judge[a] - side_bias)), rng.random(len(votes))
    tie = tie_rate * 4 * p * (1 - p)
    alone = np.select([u < p - tie / 2, u < p + tie / 2], ["model_a", "tie"], "model_b")
    return np.where(rng.random(len(votes)) < agreement, votes["winner"].astype(str), alone)


def _votes(n: int, n_models: int, options: VoteOptions) -> tuple[pd.DataFrame, pd.Series]:
    strengths = given_or_drawn(options.get("strengths"), n_models, n, options.get("seed", 0))
    return simulate_votes(n, len(strengths), **{**options, "strengths": strengths}), strengths


def simulate_verdicts(
    n_human: int = 500,
    n_unlabelled: int = 20_000,
    n_models: int = 20,
    *,
    agreement: float = 0.6,
    taste: float = 0.3,
    **options: Unpack[VoteOptions],
) -> tuple[Battles, Battles, Battles]:
    """Return a few battles judged by people and a judge, and many by the judge alone: what `prediction_powered` takes.

    The judge repeats the human outcome with probability ``agreement``. Otherwise it decides alone, by strengths of its
    own, which differ from people's by ``taste`` logits (standard deviation).

    Args:
        n_human: n, number of battles that both people and the judge judged.
        n_unlabelled: N, number of further battles.
        n_models: M, number of models.
        agreement: probability that the judge repeats the human outcome, from 0 to 1.
        taste: standard deviation of the difference between the judge's strengths and people's, logits.
        **options: options of `simulate_votes`.

    Returns:
        People's outcomes of the n battles, the judge's verdicts on them, and its verdicts on the N others.

    Raises:
        ValueError: ``agreement`` is not in [0, 1], ``taste`` is negative, or an option of `simulate_votes` is wrong.

    Examples:
        >>> import jaxeval
        >>> human, judged, unlabelled = jaxeval.simulate_verdicts(100, 1_000, n_models=4)
        >>> human.n_battles, judged.n_battles, unlabelled.n_battles
        (100, 100, 1000)
    """
    n = checked_integer("n_human", n_human, 1) + checked_integer("n_unlabelled", n_unlabelled, 1)
    votes, strengths = _votes(n, n_models, options)
    rng = np.random.default_rng([options.get("seed", 0), 3])
    judge = {"agreement": agreement, "taste": taste, "tie_rate": options.get("tie_rate", 0.25)}
    judged = Battles.from_pandas(votes.assign(winner=judge_verdicts(votes, strengths, rng, **judge)))
    labelled = np.arange(n) < n_human
    return Battles.from_pandas(votes[labelled]), judged.filter(labelled), judged.filter(~labelled)


def simulate_judges(
    n_battles: int = 1_000,
    n_models: int = 8,
    *,
    agreement: Sequence[float] = (0.6, 0.5, 0.3),
    side_biases: Sequence[float] | None = None,
    taste: float = 0.3,
    **options: Unpack[VoteOptions],
) -> pd.DataFrame:
    """Simulate battles with a column for each of two people and each judge, as `judge_agreement` takes them.

    "human" is the outcome of `simulate_votes`. "expert" repeats that outcome with probability .6, and otherwise decides
    by the same strengths. Each judge repeats it with probability ``agreement``, and otherwise decides by a taste and a
    side bias of its own.

    Args:
        n_battles: N, number of battles.
        n_models: M, number of models.
        agreement: (K,) probability that each judge repeats the outcome, from 0 to 1.
        side_biases: (K,) logits for side A; 0 by default.
        taste: standard deviation of the difference between each judge's strengths and people's, logits.
        **options: options of `simulate_votes`.

    Returns:
        The columns of `simulate_votes` with ``human`` in place of ``winner``, and ``item``, ``expert``, ``judge-1``...

    Raises:
        ValueError: a share is not in [0, 1], numbers of judges differ, or an option of `simulate_votes` is wrong.

    Examples:
        >>> import jaxeval
        >>> table = jaxeval.simulate_judges(500, 4, agreement=[0.9, 0.5])
        >>> found = jaxeval.judge_agreement(table, ["human", "expert"], judges=["judge-1", "judge-2"], n_resamples=50)
        >>> found.table["judge"].tolist()
        ['judge-1', 'judge-2', 'panel', 'people']
    """
    biases = [0.0] * len(agreement) if side_biases is None else list(side_biases)
    if len(biases) != len(agreement) or not biases:
        raise ValueError(
            f"every judge needs an agreement and a side bias, got {len(agreement):,} for agreement and {len(biases):,} "
            "for side_biases"
        )
    votes, strengths = _votes(n_battles, n_models, options)
    rng, tie_rate = np.random.default_rng([options.get("seed", 0), 6]), options.get("tie_rate", 0.25)
    table = votes.rename(columns={"winner": "human"}).assign(item=np.arange(n_battles))
    said = partial(judge_verdicts, votes, strengths, rng, tie_rate=tie_rate)
    table["expert"] = said(agreement=0.6, taste=0.0)
    for k, (share, bias) in enumerate(zip(agreement, biases, strict=True), start=1):
        table[f"judge-{k}"] = said(agreement=share, taste=taste, side_bias=bias)
    return table


def simulate_panel(
    n_items: int = 1_000,
    n_models: int = 8,
    *,
    discriminations: Sequence[float] = (0.5, 1.0, 2.0),
    side_biases: Sequence[float] | None = None,
    together: float = 0.0,
    strengths: pd.Series | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Simulate verdicts for `fit_judge_panel`: each judge of a panel chooses a side of each item's two models.

    Judge k takes side A with probability s(g_k (theta_a - theta_b) + b_k). There are no ties.

    Args:
        n_items: number of items; the two models of an item, and their sides, are drawn at random.
        n_models: M, number of models.
        discriminations: (K,) g, discrimination of each judge.
        side_biases: (K,) b, side bias of each judge, logits; 0 by default.
        together: probability that a judge decides an item by a random number that all such judges share.
        strengths: log-strengths by model name (logits); those of `simulate_strengths` (n_models, seed=seed) by default.
        seed: seed of the random numbers.

    Returns:
        A row for each judge and item: judge, item, model_a, model_b, verdict.

    Raises:
        ValueError: ``together`` is not in [0, 1], or numbers of judges differ.

    Examples:
        >>> import jaxeval
        >>> jaxeval.simulate_panel(2, 3, discriminations=[1.0, 2.0], seed=0)[["judge", "item"]].to_numpy().tolist()
        [['judge-1', 0], ['judge-1', 1], ['judge-2', 0], ['judge-2', 1]]
    """
    if not 0 <= together <= 1:
        raise ValueError(f"together must lie in [0, 1], got {together}")
    g = np.asarray(discriminations, float)
    b = np.zeros(len(g)) if side_biases is None else np.asarray(side_biases, float)
    if g.shape != b.shape or g.ndim != 1 or len(g) == 0:
        raise ValueError(
            f"every judge needs a discrimination and a side bias, got {g.size:,} for discriminations and {b.size:,} "
            "for side_biases"
        )
    n = checked_integer("n_items", n_items, 1)
    strength = given_or_drawn(strengths, n_models, n, seed)
    rng = np.random.default_rng([checked_integer("seed", seed), 4])
    m = len(strength)
    a = rng.integers(0, m, n)
    other = (a + rng.integers(1, m, n)) % m
    theta = strength.to_numpy(float)
    p = 1 / (1 + np.exp(-(g[:, None] * (theta[a] - theta[other]) + b[:, None])))
    u = np.where(rng.random((len(g), n)) < together, rng.random(n), rng.random((len(g), n)))
    return pd.DataFrame({
        "judge": np.repeat([f"judge-{k + 1}" for k in range(len(g))], n),
        "item": np.tile(np.arange(n), len(g)),
        "model_a": np.tile(strength.index[a], len(g)),
        "model_b": np.tile(strength.index[other], len(g)),
        "verdict": np.where(u < p, "model_a", "model_b").ravel(),
    })  # fmt: skip


def simulate_anchored_verdicts(
    strengths: Sequence[float] = (1.0, 0.5, 0.0, -0.5),
    n_items: int = 80,
    n_judges: int = 6,
    n_runs: int = 5,
    *,
    item_sd: float = 1.0,
    judge_sd: float = 0.3,
    run_sd: float | Sequence[float] = 0.5,
    tie_width: float = 0.4,
    drift_sd: float = 0.8,
    seed: int = 0,
) -> pd.DataFrame:
    """Simulate verdicts of M models' answers against a reference by J judges in K runs, and direct 1-10 scores of both.

    A judge sees an answer's advantage over the reference: strength + item effect + its own taste for the item + the
    noise of the run. Within ``tie_width`` of 0 it calls a tie. Its direct scores are on a scale of its own, shifted and
    stretched by ``drift_sd``, and stop at 10.

    Args:
        strengths: of the models over the reference, in units of the latent advantage.
        item_sd: spread of the items' effects, which all judges share.
        judge_sd: spread of each judge's own taste.
        run_sd: noise of a run, one number or one per judge: the larger, the less reliable.
        drift_sd: spread of the judges' scales.
        seed: the same seed gives the same verdicts.

    Returns:
        A row per model, judge, item and run: ``verdict`` ("win", "tie", "loss"), ``score`` and ``reference_score``.
    """
    rng = np.random.default_rng(seed)
    noise = np.broadcast_to(np.asarray(run_sd, float), n_judges)
    shape = len(strengths), n_judges, n_items, n_runs
    item = item_sd * rng.standard_normal((len(strengths), 1, n_items, 1))
    taste = judge_sd * rng.standard_normal((len(strengths), n_judges, n_items, 1))
    latent = np.asarray(strengths, float)[:, None, None, None] + item + taste
    advantage = latent + noise[:, None, None] * rng.standard_normal(shape)
    verdict = np.where(np.abs(advantage) < tie_width, "tie", np.where(advantage > 0, "win", "loss"))
    offset = 8.0 + drift_sd * rng.standard_normal(n_judges)[:, None, None]
    stretch = np.exp(drift_sd / 2 * rng.standard_normal(n_judges))[:, None, None]

    def scored(value: np.ndarray) -> np.ndarray:
        error = noise[:, None, None] * rng.standard_normal(shape)
        return np.clip(np.rint(offset + stretch * (value + error)), 1, 10).astype(int)

    model, judge, prompt, run = (x.reshape(-1) for x in np.indices(shape))
    return pd.DataFrame({
        "model": np.array([f"model-{k + 1}" for k in range(len(strengths))], object)[model],
        "judge": np.array([f"judge-{k + 1}" for k in range(n_judges)], object)[judge],
        "item": prompt,
        "run": run,
        "verdict": verdict.reshape(-1),
        "score": scored(latent).reshape(-1),
        "reference_score": scored(np.zeros(shape)).reshape(-1),
    })  # fmt: skip
