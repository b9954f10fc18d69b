"""Simulated arena votes with known strengths: for demonstrations, tests and benchmarks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypedDict, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles
from jaxeval.data.judged_battles import JudgedBattles

_LANGUAGES = {"English": 0.55, "Chinese": 0.15, "Russian": 0.12, "German": 0.1, "Japanese": 0.08}
_BOTH_BAD_SHARE_OF_TIES = 0.4
#: Of Appendix A of arXiv:2606.13221.
_CRITERIA = ("adherence", "helpfulness", "factuality", "completeness", "clarity", "fluency")


def simulate_strengths(n_models: int = 55, spread: float = 1.0, seed: int = 0) -> pd.Series:
    """Normal log-strengths (logits) of standard deviation ``spread``, mean zero, best first, by model name.

    Examples:
        >>> import jaxeval
        >>> jaxeval.simulate_strengths(3).round(2).to_dict()
        {'model-1': 0.43, 'model-2': -0.09, 'model-3': -0.34}
    """
    n_models = checked_integer("n_models", n_models, 2)
    theta = np.random.default_rng(seed).normal(0, spread, n_models)
    names = [f"model-{k:0{len(str(n_models))}d}" for k in range(1, n_models + 1)]
    index = pd.Index(names, name="model")
    return pd.Series(np.sort(theta - theta.mean())[::-1], index, name="logit")


def simulate_votes(
    n_battles: int = 25_000,
    n_models: int = 55,
    *,
    strengths: pd.Series | None = None,
    tie_rate: float = 0.25,
    popularity_exponent: float = 0.6,
    seed: int = 0,
) -> pd.DataFrame:
    """Votes in the Arena's format: model_a, model_b, winner, language, voter.

    Opponents are drawn by popularity, which falls as rank^-exponent in an order unrelated to strength. A battle is a
    tie with probability ``tie_rate`` * 4 p (1 - p), with p = s(theta_a - theta_b), two fifths of ties being both-bad;
    wins are such that the expected score, a tie counting half, is exactly p: ratings fitted with ties as half a win
    estimate ``strengths``.

    Args:
        strengths: log-strengths by model name (logits); `simulate_strengths` (n_models, seed=seed) by default.
        tie_rate: of equals, from 0 to 0.5.

    Raises:
        ValueError: fewer than two models, no battle, or a tie rate out of range.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_votes(1000, n_models=4)
        >>> list(votes.columns)
        ['model_a', 'model_b', 'winner', 'language', 'voter']
    """
    strengths = _given_or_drawn(strengths, n_models, n_battles, seed)
    if not 0 <= tie_rate <= 0.5:
        raise ValueError(f"tie_rate must lie in [0, 0.5], got {tie_rate}")
    if not np.isfinite(strengths.to_numpy(float)).all():
        raise ValueError(f"strengths must be finite, got {strengths[~np.isfinite(strengths)].to_dict()}")
    rng = np.random.default_rng([seed, 1])
    theta, n_models = strengths.to_numpy(float), len(strengths)
    popularity = rng.permutation(np.arange(1.0, n_models + 1) ** -popularity_exponent)
    popularity /= popularity.sum()
    a = rng.choice(n_models, n_battles, p=popularity)
    b = rng.choice(n_models, n_battles, p=popularity)
    while (same := np.flatnonzero(a == b)).size:
        a[same] = rng.choice(n_models, len(same), p=popularity)
        b[same] = rng.choice(n_models, len(same), p=popularity)

    p = 1 / (1 + np.exp(theta[b] - theta[a]))
    tie = tie_rate * 4 * p * (1 - p)
    u = rng.random(n_battles)
    labels = np.array(["model_a", "tie", "both_bad", "model_b"])
    edges = np.stack([p - tie / 2, p - tie / 2 + (1 - _BOTH_BAD_SHARE_OF_TIES) * tie, p + tie / 2])
    winner = pd.Categorical.from_codes((u >= edges).sum(0), labels)
    language = rng.choice(len(_LANGUAGES), n_battles, p=list(_LANGUAGES.values()))
    n_voters = max(1, n_battles // 3)
    names = strengths.index
    return pd.DataFrame(
        {
            "model_a": pd.Categorical.from_codes(a, names),
            "model_b": pd.Categorical.from_codes(b, names),
            "winner": winner,
            "language": pd.Categorical.from_codes(language, list(_LANGUAGES)),
            "voter": rng.integers(n_voters, size=n_battles),
        }
    )


class VoteOptions(TypedDict, total=False):
    """How votes are simulated: see `simulate_votes`."""

    strengths: pd.Series | None
    tie_rate: float
    popularity_exponent: float
    seed: int


def simulate_battles(n_battles: int = 25_000, n_models: int = 55, **options: Unpack[VoteOptions]) -> Battles:
    """`simulate_votes`, with its options, read as `Battles`.

    Examples:
        >>> import jaxeval
        >>> jaxeval.simulate_battles(1000, n_models=4, tie_rate=0).report.n_ties
        0
    """
    return Battles.from_pandas(simulate_votes(n_battles, n_models, **options))


def simulate_verdicts(
    n_human: int = 500,
    n_unlabelled: int = 20_000,
    n_models: int = 20,
    *,
    agreement: float = 0.6,
    taste: float = 0.3,
    **options: Unpack[VoteOptions],
) -> tuple[Battles, Battles, Battles]:
    """A few battles judged by people and a judge, and many by the judge alone: what `prediction_powered` takes.

    The judge repeats the human outcome with probability ``agreement``. Otherwise the judge decides alone, by strengths
    of a taste of its own, which differ from people's by ``taste`` logits (standard deviation).

    Args:
        n_human: n, battles that people judged, and the judge too.
        n_unlabelled: N, further battles.
        n_models: M.
        agreement: from 0 to 1.
        taste: standard deviation of the difference between the judge's strengths and people's, logits.
        **options: of `simulate_votes`.

    Returns:
        People's outcomes of the n battles, the judge's verdicts on them, and those on the N others.

    Raises:
        ValueError: a share that is none, a negative ``taste``, or as by `simulate_votes`.

    Examples:
        >>> import jaxeval
        >>> human, judged, unlabelled = jaxeval.simulate_verdicts(100, 1_000, n_models=4)
        >>> human.n_battles, judged.n_battles, unlabelled.n_battles
        (100, 100, 1000)
    """
    if not 0 <= agreement <= 1:
        raise ValueError(f"agreement must lie in [0, 1], got {agreement}")
    if not 0 <= taste < np.inf:
        raise ValueError(f"taste must be >= 0 and finite, got {taste}")
    n = checked_integer("n_human", n_human, 1) + checked_integer("n_unlabelled", n_unlabelled, 1)
    strengths = _given_or_drawn(options.get("strengths"), n_models, n, options.get("seed", 0))
    votes = simulate_votes(n, len(strengths), **{**options, "strengths": strengths})
    rng = np.random.default_rng([options.get("seed", 0), 3])
    own = strengths.to_numpy(float) + rng.normal(0, taste, len(strengths))
    a, b = (votes[side].cat.codes.to_numpy() for side in ("model_a", "model_b"))
    p, u = 1 / (1 + np.exp(own[b] - own[a])), rng.random(n)
    tie = options.get("tie_rate", 0.25) * 4 * p * (1 - p)
    alone = np.select([u < p - tie / 2, u < p + tie / 2], ["model_a", "tie"], "model_b")
    verdict = np.where(rng.random(n) < agreement, votes["winner"].astype(str), alone)
    judged = Battles.from_pandas(votes.assign(winner=verdict))
    labelled = np.arange(n) < n_human
    return Battles.from_pandas(votes[labelled]), judged.filter(labelled), judged.filter(~labelled)


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
    """Verdicts of a panel: each judge chooses a side of each item's two models, as `fit_judge_panel` takes them.

    Judge k takes side A with probability s(g_k (theta_a - theta_b) + b_k). There are no ties.

    Args:
        n_items: items, each of two models that are chosen at random, as is the side of each.
        n_models: M.
        discriminations: (K,) g.
        side_biases: (K,) b, logits; none by default.
        together: probability that a judge decides an item by the chance that all such judges share.
        strengths: log-strengths by model name (logits); `simulate_strengths` (n_models, seed=seed) by default.
        seed: of the random numbers.

    Returns:
        A row for each judge and item: judge, item, model_a, model_b, verdict.

    Raises:
        ValueError: a share that is none, or numbers of judges that differ.

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
        raise ValueError(f"every judge has a discrimination and a side bias, got {len(g)} and {len(b)} of them")
    n = checked_integer("n_items", n_items, 1)
    own = _given_or_drawn(strengths, n_models, n, seed)
    rng = np.random.default_rng([checked_integer("seed", seed), 4])
    m = len(own)
    a = rng.integers(0, m, n)
    other = (a + rng.integers(1, m, n)) % m
    theta = own.to_numpy(float)
    p = 1 / (1 + np.exp(-(g[:, None] * (theta[a] - theta[other]) + b[:, None])))
    u = np.where(rng.random((len(g), n)) < together, rng.random(n), rng.random((len(g), n)))
    return pd.DataFrame(
        {
            "judge": np.repeat([f"judge-{k + 1}" for k in range(len(g))], n),
            "item": np.tile(np.arange(n), len(g)),
            "model_a": np.tile(own.index[a], len(g)),
            "model_b": np.tile(own.index[other], len(g)),
            "verdict": np.where(u < p, "model_a", "model_b").ravel(),
        }
    )


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
    """Battles scored by a judge whose temperature is known: humans who choose a side take A with s(temperature * d).

    A battle's score difference d is drawn about (theta_a - theta_b) / temperature, standard deviation ``noise``, and
    falls on the lattice of six integer criteria judged in both orders: steps of 1/12, within +-9. Humans choose by the
    d without the judge's length bias, so that `fit_temperature` estimates ``temperature`` where that is 0. A human
    tie is drawn with probability ``tie_rate`` * 4 p (1 - p), p = s(temperature * d), before a side is chosen.

    Args:
        strengths: log-strengths by model name (logits); `simulate_strengths` (n_models, seed=seed) by default.
        temperature: > 0, logits per point of score difference.
        noise: standard deviation of the score difference beyond the models' strengths, points.
        tie_rate: share of human ties among equals, from 0 to 1.
        position_bias: points that the judge adds to the side shown first; the mean of both orders is free of it.
        length_bias: points per unit of ``log_length_a`` - ``log_length_b``, in both orders.
        unlabelled: share of battles without a human label.
        judge_name: as in `JudgedBattles`.

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
    strengths = _given_or_drawn(strengths, n_models, n_battles, seed)
    if not (temperature > 0 and noise >= 0 and 0 <= tie_rate <= 1 and 0 <= unlabelled <= 1):
        raise ValueError(
            f"temperature must be > 0, noise >= 0, and rates in [0, 1]; got temperature={temperature}, noise={noise}, "
            f"tie_rate={tie_rate}, unlabelled={unlabelled}"
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
    # The orders are whole sixths of a point that sum to the mean's twelfths, as far from each other as the scale lets.
    apart = np.rint(6 * position_bias + rng.normal(0, 2, n_battles))
    first = (np.floor(seen / 2) + apart).clip(np.maximum(-54, seen - 54), np.minimum(54, seen + 54))
    names = strengths.index
    language = rng.choice(len(_LANGUAGES), n_battles, p=list(_LANGUAGES.values()))
    frame = pd.DataFrame(
        {
            "model_a": pd.Categorical.from_codes(a, names),
            "model_b": pd.Categorical.from_codes(b, names),
            "human": human,
            "first_a": first / 6,
            "second_a": (seen - first) / 6,
            "b": np.zeros(n_battles),
            "log_length_a": length[0],
            "log_length_b": length[1],
            "language": pd.Categorical.from_codes(language, list(_LANGUAGES)),
        }
    )
    return JudgedBattles.from_pandas(
        frame,
        scores_a="first_a",
        scores_b="b",
        scores_a_swapped="second_a",
        scores_b_swapped="b",
        label_coding="a_wins_1",
        judge_name=judge_name,
    )


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
    """What judges print about the battles of `simulate_judged_battles`, a row per call, each pair in both orders.

    A reply scores both sides on six criteria from 1 to 10 and names the better one, as JSON in fences: the format of
    Appendix A of arXiv:2606.13221. A judge without noise of its own gives exactly those battles when its replies are
    read.

    Args:
        judge_noise: of each judge, the standard deviation of what it adds to each order's score difference, points.
        malformed: share of the replies that are cut short.
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
        raise ValueError(f"judges need a noise >= 0 each, got {judge_noise!r}; and a share in [0, 1], got {malformed}")
    battles = simulate_judged_battles(n_battles, n_models, seed=seed, **options)
    rng = np.random.default_rng([seed, 3])
    sides = np.stack([battles.models[battles.model_a], battles.models[battles.model_b]])
    label = np.select([battles.human == 1, battles.human == 0.5, battles.human == 0], ["model_a", "tie", "model_b"], "")
    other = pd.Series(label).replace({"model_a": "model_b", "model_b": "model_a"}).to_numpy()
    assert battles.orders is not None
    parts = []
    for k, noise in enumerate(noises, start=1):
        # In sixths of a point, within the scale.
        seen = np.rint(6 * (battles.orders + rng.normal(0, noise, battles.orders.shape))).clip(-54, 54).astype(int)
        for order, sign in enumerate((1, -1)):
            replies = _replies(sign * seen[:, order], rng)
            cut = rng.random(n_battles) < malformed
            outputs = [text[: len(text) // 3] if short else text for text, short in zip(replies, cut, strict=True)]
            first, second = sides[::sign]
            human = pd.Series(label if order == 0 else other, dtype=object).replace("", None)
            parts.append(
                pd.DataFrame({"item": np.arange(n_battles), "judge": f"judge-{k}", "model_a": first, "model_b": second,
                              "output": outputs, "human": human})
            )  # fmt: skip
    return pd.concat(parts).sort_values("item", kind="stable", ignore_index=True)


def _replies(sixths: NDArray[np.int_], rng: np.random.Generator) -> list[str]:
    """Replies (N,) with integer scores whose differences, first side less second, sum to ``sixths`` (N,)."""
    n = len(_CRITERIA)
    gap = sixths[:, None] // n + (np.arange(n) < (sixths % n)[:, None])
    low = 1 + np.floor((10 - np.abs(gap)) * rng.random(gap.shape)).astype(int)
    scores = np.stack([low + np.maximum(gap, 0), low - np.minimum(gap, 0)], axis=1)
    names = np.array(["B", "C", "A"])[1 + np.sign(sixths)]
    return [
        "```json\n"
        + json.dumps(
            {**{f"scores_{side}": dict(zip(_CRITERIA, own, strict=True)) for side, own in zip("AB", both, strict=True)},
             "preference": name}
        )
        + "\n```"
        for both, name in zip(scores.tolist(), names.tolist(), strict=True)
    ]  # fmt: skip


def _given_or_drawn(strengths: pd.Series | None, n_models: int, n_battles: int, seed: int) -> pd.Series:
    checked_integer("n_battles", n_battles, 1)
    checked_integer("seed", seed)
    if strengths is None:
        strengths = simulate_strengths(n_models, seed=seed)
    if len(strengths) < 2:
        raise ValueError(f"strengths need two models or more, got {len(strengths)}")
    return strengths
