"""Simulated judges: of single answers, and of battles whose sides they score, also as replies that are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray

from jaxeval.checks import checked_integer, require_share
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.data.simulated_votes import LANGUAGES, given_or_drawn

#: The criteria of Appendix A of arXiv:2606.13221.
_CRITERIA = ("adherence", "helpfulness", "factuality", "completeness", "clarity", "fluency")


def simulate_judged_battles(
    n_battles: int = 25_000,
    n_models: int = 55,
    *,
    strengths: pd.Series | None = None,
    temperature: float = 0.5,
    noise: float = 2.0,
    tie_rate: float = 0.25,
    position_bias: float = 0.0,
    length_bias: float = 0.0,
    unlabelled: float = 0.0,
    judge_name: str = "judge",
    seed: int = 0,
) -> JudgedBattles:
    """Return battles scored by a judge whose temperature is known: humans choose A with probability s(temperature * d).

    The score difference d of a battle is normal, with mean (theta_a - theta_b) / temperature and standard deviation
    ``noise``, rounded to the values that six integer criteria in both orders can give: steps of 1/12, within +-9.
    Humans choose by d without the judge's length bias, so that `fit_temperature` estimates ``temperature`` if that bias
    is 0. A human tie is drawn with probability ``tie_rate`` * 4 p (1 - p), p = s(temperature * d), before a side is
    chosen; s is the logistic function.

    Args:
        strengths: log-strengths by model name (logits); `simulate_strengths` (n_models, seed=seed) by default.
        temperature: > 0, logits per point of score difference.
        noise: standard deviation of the score difference around the difference of the models' strengths, points.
        tie_rate: share of human ties among equals, from 0 to 1.
        position_bias: points that the judge adds to the side shown first; the mean of both orders is free of it.
        length_bias: points per unit of ``log_length_a`` - ``log_length_b``, in both orders.
        unlabelled: share of battles without a human label.
        judge_name: name of the judge, as in `JudgedBattles`.
        seed: seed of the random numbers.

    Returns:
        Judged battles with both orders and the columns ``log_length_a``, ``log_length_b``, ``language``.

    Raises:
        ValueError: fewer than two models, no battle, or a rate or temperature out of range.

    Examples:
        >>> import jaxeval
        >>> judged = jaxeval.simulate_judged_battles(200, n_models=3, unlabelled=0.5)
        >>> judged.n_battles, judged.scored
        (200, True)
    """
    strengths = given_or_drawn(strengths, n_models, n_battles, seed)
    if not (temperature > 0 and noise >= 0 and 0 <= tie_rate <= 1 and 0 <= unlabelled <= 1):
        raise ValueError(
            "temperature must be > 0, noise >= 0, and tie_rate and unlabelled in [0, 1], got "
            f"temperature={temperature}, noise={noise}, tie_rate={tie_rate}, unlabelled={unlabelled}"
        )
    rng = np.random.default_rng([seed, 2])
    theta, n_models = strengths.to_numpy(float), len(strengths)
    a = rng.integers(n_models, size=n_battles)
    b = (a + rng.integers(1, n_models, size=n_battles)) % n_models
    # In steps of 1/12 point.
    fair = np.rint(12 * rng.normal((theta[a] - theta[b]) / temperature, noise)).clip(-108, 108)
    p = 1 / (1 + np.exp(-temperature * fair / 12))
    human = (rng.random(n_battles) < p).astype(float)
    human[rng.random(n_battles) < tie_rate * 4 * p * (1 - p)] = 0.5
    human[rng.random(n_battles) < unlabelled] = np.nan
    length = rng.normal(0, 1, (2, n_battles))
    seen = np.rint(fair + 12 * length_bias * (length[0] - length[1])).clip(-108, 108)
    # Each order is a whole number of sixths of a point; both add up to the mean's twelfths, within the scale.
    apart = np.rint(6 * position_bias + rng.normal(0, 2, n_battles))
    first = (np.floor(seen / 2) + apart).clip(np.maximum(-54, seen - 54), np.minimum(54, seen + 54))
    names = strengths.index
    language = rng.choice(len(LANGUAGES), n_battles, p=list(LANGUAGES.values()))
    frame = pd.DataFrame({
        "model_a": pd.Categorical.from_codes(a, names), "model_b": pd.Categorical.from_codes(b, names),
        "human": human, "first_a": first / 6, "second_a": (seen - first) / 6, "b": np.zeros(n_battles),
        "log_length_a": length[0], "log_length_b": length[1],
        "language": pd.Categorical.from_codes(language, list(LANGUAGES)),
    })  # fmt: skip
    return JudgedBattles.from_pandas(
        frame, scores_a="first_a", scores_b="b", scores_a_swapped="second_a", scores_b_swapped="b",
        label_coding="a_wins_1", judge_name=judge_name,
    )  # fmt: skip


def simulate_judged_answers(
    accuracy: ArrayLike = (0.75, 0.7, 0.6),
    q0: ArrayLike = ((0.8, 0.6), (0.8, 0.7), (0.8, 0.8)),
    q1: ArrayLike = ((0.9, 0.9), (0.9, 0.85), (0.9, 0.95)),
    n_items: int = 1000,
    *,
    correlation: float = 0.5,
    seed: int = 0,
) -> pd.DataFrame:
    """Simulate answers of M models to the same items, labelled by people and judged by J judges.

    Args:
        accuracy: (M,) share of right answers.
        q0: (M, J) specificity of every judge on every model; broadcasts.
        q1: (M, J) sensitivity of every judge on every model; broadcasts.
        n_items: number of items. Every model answers all of them.
        correlation: between models, of the latent variables that make an answer right. Above 0, some items are harder
            than others for all models.
        seed: the same seed gives the same answers.

    Returns:
        A row per item and model: ``item, model, human`` and a column ``judge-1``, ... per judge.

    Raises:
        TypeError: ``n_items`` or ``seed`` is no integer.
        ValueError: a share is outside of [0, 1], or shapes do not broadcast.

    Examples:
        >>> simulate_judged_answers([0.8, 0.5], q0=0.7, q1=0.9, n_items=2, seed=3)
           item    model  human  judge-1
        0     0  model-1      0        0
        1     0  model-2      0        1
        2     1  model-1      1        1
        3     1  model-2      1        1
    """
    checked_integer("n_items", n_items, 1)
    share = np.atleast_1d(np.asarray(accuracy, float))
    specificity, sensitivity = (np.atleast_2d(np.asarray(q, float)) for q in (q0, q1))
    shape = np.broadcast_shapes((len(share), 1), specificity.shape, sensitivity.shape)
    shares = {"accuracy": share, "q0": specificity, "q1": sensitivity, "correlation": np.asarray(correlation, float)}
    require_share(shares, *shares)
    rng = np.random.default_rng(checked_integer("seed", seed))
    common, of_model = rng.standard_normal((n_items, 1)), rng.standard_normal((n_items, len(share)))
    latent = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * of_model
    right = latent < scipy.special.ndtri(share)
    yes = np.where(right[:, :, None], np.broadcast_to(sensitivity, shape), 1 - np.broadcast_to(specificity, shape))
    verdict = rng.random((n_items, *shape)) < yes
    answers = pd.DataFrame({
        "item": np.repeat(np.arange(n_items), len(share)),
        "model": np.tile([f"model-{k + 1}" for k in range(len(share))], n_items),
        "human": right.reshape(-1).astype(int),
    })  # fmt: skip
    for k in range(shape[1]):
        answers[f"judge-{k + 1}"] = verdict[:, :, k].reshape(-1).astype(int)
    return answers


class JudgedOptions(TypedDict, total=False):
    """How judged battles are simulated: see `simulate_judged_battles`."""

    strengths: pd.Series | None
    temperature: float
    noise: float
    tie_rate: float
    position_bias: float
    length_bias: float
    unlabelled: float


def simulate_judge_outputs(
    n_battles: int = 1000,
    n_models: int = 8,
    *,
    judge_noise: Sequence[float] = (0.0, 1.0, 2.0),
    malformed: float = 0.0,
    seed: int = 0,
    **options: Unpack[JudgedOptions],
) -> pd.DataFrame:
    """Simulate what judges print about battles of `simulate_judged_battles`: a row per call, each pair in both orders.

    A reply scores both sides on six criteria from 1 to 10 and names the better one, as JSON in fences: the format of
    Appendix A of arXiv:2606.13221. The replies of a judge without noise of its own are read as exactly those battles.

    Args:
        n_battles: number of battles; every judge has two calls on each.
        n_models: number of models.
        judge_noise: for each judge, the standard deviation of its noise in the score difference of each order, points.
        malformed: share of the replies that are cut short.
        seed: seed of the random numbers.
        **options: as in `simulate_judged_battles`.

    Returns:
        The columns ``item, judge, model_a, model_b, output, human``; ``model_a`` is the side shown first.

    Raises:
        ValueError: no judge, a negative noise, or a share out of [0, 1].

    Examples:
        >>> import jaxeval
        >>> calls = jaxeval.simulate_judge_outputs(100, 4, judge_noise=[0.0])
        >>> print(calls["output"][0][:37])
        ```json
        {"scores_A": {"adherence": 4,
        >>> jaxeval.JudgeOutputs.from_pandas(calls).judged().n_battles
        100
    """
    noises = np.atleast_1d(np.asarray(judge_noise, float))
    if not (noises.size and (noises >= 0).all() and 0 <= malformed <= 1):
        raise ValueError(
            f"judge_noise must be finite and >= 0 for at least one judge, got {noises.tolist()}; malformed must be in "
            f"[0, 1], got {malformed}"
        )
    battles = simulate_judged_battles(n_battles, n_models, seed=seed, **options)
    rng = np.random.default_rng([seed, 3])
    assert battles.orders is not None
    parts = []
    for k, noise in enumerate(noises, start=1):
        # In sixths of a point, within the scale.
        seen = np.rint(6 * (battles.orders + rng.normal(0, noise, battles.orders.shape))).clip(-54, 54).astype(int)
        for order, sign in enumerate((1, -1)):
            replies = _replies(sign * seen[:, order], rng)
            cut = rng.random(n_battles) < malformed
            outputs = [text[: len(text) // 3] if short else text for text, short in zip(replies, cut, strict=True)]
            parts.append(_calls(battles, sign, output=outputs).assign(judge=f"judge-{k}"))
    calls = pd.concat(parts).sort_values("item", kind="stable", ignore_index=True)
    return calls[["item", "judge", "model_a", "model_b", "output", "human"]]


def _calls(battles: JudgedBattles, sign: int, **shown: Any) -> pd.DataFrame:
    """Return a row per battle as it is ``shown``: in its own order, or swapped where the ``sign`` is -1."""
    first, second = [np.asarray(battles.models[codes]) for codes in (battles.model_a, battles.model_b)][::sign]
    human = sign * (battles.human - 0.5)
    words = pd.Series(np.select([human > 0, human == 0, human < 0], ["model_a", "tie", "model_b"], ""), dtype=object)
    return pd.DataFrame({
        "item": np.arange(len(human)), "model_a": first, "model_b": second, **shown, "human": words.replace("", None),
    })  # fmt: skip


def scored_calls(battles: JudgedBattles, seed: int = 0) -> pd.DataFrame:
    """Return judged battles as the calls that made them: two rows per battle, one in each order.

    Returns:
        The columns ``item``, ``model_a``, ``model_b``, ``scores_a``, ``scores_b`` (means of six criteria, 1 to 10) and
        ``human`` ("model_a", "tie", "model_b"; None where nobody voted). ``model_a`` is the side shown first.
    """
    assert battles.orders is not None
    rng, parts = np.random.default_rng([seed, 10]), []
    for order, sign in enumerate((1, -1)):
        scores = _criterion_scores(np.rint(6 * sign * battles.orders[:, order]).astype(int), rng).mean(2)
        parts.append(_calls(battles, sign, scores_a=scores[:, 0], scores_b=scores[:, 1]))
    return pd.concat(parts).sort_values("item", kind="stable", ignore_index=True)


def _criterion_scores(sixths: NDArray[np.int_], rng: np.random.Generator) -> NDArray[np.int_]:
    """Return integer scores (N, side, criterion) whose differences, first side minus second, sum to ``sixths`` (N,)."""
    n = len(_CRITERIA)
    gap = sixths[:, None] // n + (np.arange(n) < (sixths % n)[:, None])
    low = 1 + np.floor((10 - np.abs(gap)) * rng.random(gap.shape)).astype(int)
    return np.stack([low + np.maximum(gap, 0), low - np.minimum(gap, 0)], axis=1)


def _replies(sixths: NDArray[np.int_], rng: np.random.Generator) -> list[str]:
    """Return replies (N,) with integer scores whose differences, first side minus second, sum to ``sixths`` (N,)."""
    scores = _criterion_scores(sixths, rng)
    names = np.array(["B", "C", "A"])[1 + np.sign(sixths)]
    replies = []
    for both, name in zip(scores.tolist(), names.tolist(), strict=True):
        sides = {f"scores_{x}": dict(zip(_CRITERIA, y, strict=True)) for x, y in zip("AB", both, strict=True)}
        replies.append(f"```json\n{json.dumps({**sides, 'preference': name})}\n```")
    return replies
