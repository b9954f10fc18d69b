"""Simulated arena votes with known strengths."""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from jaxeval.checks import checked_integer
from jaxeval.data.battles import Battles
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.wording import did_you_mean, named

_BOTH_BAD_SHARE_OF_TIES = 0.4
_FIRST_DAY, _DAYS = pd.Timestamp("2026-01-01"), 30
#: The mean length of answers, in tokens, and the standard deviations of lengths over answers and over models.
_MEAN_LENGTH, _SPREAD_OF_LENGTHS, _SPREAD_OF_MODELS = 600, 140, 100
_LOGITS_OF_A_TOKEN = 0.0015
#: Shares of the languages.
LANGUAGES = {"English": 0.55, "Chinese": 0.15, "Russian": 0.12, "German": 0.1, "Japanese": 0.08}


def simulate_votes(
    n_battles: int = 25_000, n_models: int = 55, *, strengths: pd.Series | None = None, tie_rate: float = 0.25,
    popularity_exponent: float = 0.6, details: bool = False, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Simulate votes in the Arena's format: model_a, model_b, winner, language, voter.

    Models are drawn by popularity, which falls as rank^-exponent in an order unrelated to strength. A battle is a tie
    with probability ``tie_rate`` * 4 p (1 - p), where p = s(theta_a - theta_b) and s is the logistic function; two
    fifths of ties are both-bad. Side A's expected score, with a tie as half a win, is exactly p: ratings that are
    fitted with ties as half a win estimate ``strengths``.

    Args:
        n_battles: number of votes.
        n_models: number of models.
        strengths: log-strengths by model name (logits); those of `simulate_strengths` (n_models, seed=seed) by default.
        tie_rate: probability of a tie between equal models, from 0 to 0.5.
        popularity_exponent: exponent of the fall of popularity; 0 makes all models equally popular.
        details: whether votes also have ``vote``, a number; ``prompt``, shared by about four votes, never of the same
            two models; ``time``, in the order of the rows; and ``length_a``, ``length_b`` in tokens. Lengths are such
            that, among votes that are no ties, a token more for side A adds .0015 logits. Some models write more than
            others, so that control for length moves them. The other columns are the same with details and without.
        seed: seed of the random numbers.

    Raises:
        ValueError: fewer than two models, no battle, or a tie rate out of range.

    Examples:
        >>> import jaxeval
        >>> votes = jaxeval.simulate_votes(1000, n_models=4)
        >>> list(votes.columns)
        ['model_a', 'model_b', 'winner', 'language', 'voter']
    """
    strengths = given_or_drawn(strengths, n_models, n_battles, seed)
    if not 0 <= tie_rate <= 0.5:
        raise ValueError(f"tie_rate must lie in [0, 0.5], got {tie_rate}")
    if not np.isfinite(strengths.to_numpy(float)).all():
        odd = strengths[~np.isfinite(strengths)]
        raise ValueError(f"strengths must be finite, got {named([f'{x:g} for {name}' for name, x in odd.items()])}")
    rng = np.random.default_rng([seed, 1])
    theta, n_models = strengths.to_numpy(float), len(strengths)
    popularity = rng.permutation(np.arange(1.0, n_models + 1) ** -popularity_exponent)
    popularity /= popularity.sum()
    a = rng.choice(n_models, n_battles, p=popularity)
    b = rng.choice(n_models, n_battles, p=popularity)
    while (same := np.flatnonzero(a == b)).size:
        a[same] = rng.choice(n_models, len(same), p=popularity)
        b[same] = rng.choice(n_models, len(same), p=popularity)

    winner = _winners(theta[a] - theta[b], tie_rate, rng)
    language = rng.choice(len(LANGUAGES), n_battles, p=list(LANGUAGES.values()))
    n_voters = max(1, n_battles // 3)
    names = strengths.index
    votes = pd.DataFrame(
        {
            "model_a": pd.Categorical.from_codes(a, names),
            "model_b": pd.Categorical.from_codes(b, names),
            "winner": winner,
            "language": pd.Categorical.from_codes(language, list(LANGUAGES)),
            "voter": rng.integers(n_voters, size=n_battles),
        }
    )
    return votes.assign(**_details(votes, np.random.default_rng([seed, 5]))) if details else votes


def votes_on(pairs: pd.DataFrame, strengths: pd.Series, tie_rate: float = 0.25, seed: int = 0) -> pd.DataFrame:
    """Return the rows of ``pairs`` (columns model_a, model_b) with a column ``winner`` as `simulate_votes` draws it."""
    sides = []
    for side in ("model_a", "model_b"):
        if side not in pairs:
            raise DataError(f"no column {side!r} in the table; its columns are {named(list(pairs.columns))}")
        names = pairs[side].astype(str)
        strange = names[~names.isin(strengths.index)]
        if len(strange):
            known = list(strengths.index)
            raise DataError(
                f"column {side!r}: {strange.iloc[0]!r} is no simulated model{did_you_mean(strange.iloc[0], known)}; "
                f"the models are {named(known)}"
            )
        sides.append(strengths[names].to_numpy(float))
    return pairs.assign(winner=_winners(sides[0] - sides[1], tie_rate, np.random.default_rng([seed, 11])))


def _winners(difference: NDArray[np.float64], tie_rate: float, rng: np.random.Generator) -> pd.Categorical:
    p = 1 / (1 + np.exp(-difference))
    tie = tie_rate * 4 * p * (1 - p)
    labels = np.array(["model_a", "tie", "both_bad", "model_b"])
    edges = np.stack([p - tie / 2, p - tie / 2 + (1 - _BOTH_BAD_SHARE_OF_TIES) * tie, p + tie / 2])
    return pd.Categorical.from_codes((rng.random(len(p)) >= edges).sum(0), labels)


def _details(votes: pd.DataFrame, rng: np.random.Generator) -> dict[str, Any]:
    n = len(votes)
    a, b = (votes[side].cat.codes.to_numpy().astype(np.int64) for side in ("model_a", "model_b"))
    pair = np.minimum(a, b) * (max(a.max(), b.max()) + 1) + np.maximum(a, b)
    # The battles of a pair have consecutive prompts, from the pair's own place on: no prompt comes twice.
    place = votes.groupby(pair).cumcount().to_numpy()
    n_prompts = max(-(-n // 4), place.max() + 1)
    prompt = rng.permutation(n_prompts)[(rng.integers(n_prompts, size=pair.max() + 1)[pair] + place) % n_prompts]
    seconds = np.sort(rng.integers(_DAYS * 24 * 3600, size=n))
    # The log-odds that a number is from one of two normal distributions with one variance are linear in the number. So
    # lengths whose mean depends on the outcome are a covariate with a known coefficient, whoever meets.
    won = votes["winner"].map({"model_a": 1.0, "model_b": -1.0}).fillna(0).to_numpy(float)
    wordy = rng.normal(0, _SPREAD_OF_MODELS, len(votes["model_a"].cat.categories))
    shift = _LOGITS_OF_A_TOKEN * _SPREAD_OF_LENGTHS**2 / 2
    lengths = [
        np.rint(_MEAN_LENGTH + wordy[side] + sign * shift * won + rng.normal(0, _SPREAD_OF_LENGTHS, n))
        for side, sign in ((a, 1), (b, -1))
    ]
    return {
        "vote": np.arange(n),
        "prompt": prompt,
        "time": _FIRST_DAY + pd.to_timedelta(seconds, unit="s"),
        "length_a": lengths[0].clip(1).astype(int),
        "length_b": lengths[1].clip(1).astype(int),
    }


class VoteOptions(TypedDict, total=False):
    """How votes are simulated: see `simulate_votes`."""

    strengths: pd.Series | None
    tie_rate: float
    popularity_exponent: float
    details: bool
    seed: int


def simulate_battles(n_battles: int = 25_000, n_models: int = 55, **options: Unpack[VoteOptions]) -> Battles:
    """Simulate `simulate_votes`, with its options, read as `Battles`.

    Examples:
        >>> import jaxeval
        >>> jaxeval.simulate_battles(1000, n_models=4, tie_rate=0).report.n_ties
        0
    """
    return Battles.from_pandas(simulate_votes(n_battles, n_models, **options))


def simulate_strengths(n_models: int = 55, spread: float = 1.0, seed: int = 0) -> pd.Series:
    """Simulate normal log-strengths (logits) of standard deviation ``spread``, mean zero, best first, by model name.

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


def given_or_drawn(strengths: pd.Series | None, n_models: int, n: int, seed: int, name: str = "n_battles") -> pd.Series:
    """Give the ``strengths``, or those of `simulate_strengths`; an error if there are fewer than two, or no battle."""
    checked_integer(name, n, 1)
    checked_integer("seed", seed)
    if strengths is None:
        strengths = simulate_strengths(n_models, seed=seed)
    if len(strengths) < 2:
        raise ValueError(f"strengths must have at least two models, got {len(strengths)}")
    return strengths


def simulate_rankings(
    n_rankings: int = 3_000, n_items: int = 12, *, length: int = 4, tie_rate: float = 0.1,
    strengths: pd.Series | None = None, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Simulate rankings of items drawn at random, by the model of Plackett and Luce, as `Rankings` reads them.

    Args:
        n_rankings: number of rankings.
        n_items: M, number of items.
        length: number of items in a ranking, from 2 to M.
        tie_rate: probability that an item ties with the one before it, whatever their strengths.
        strengths: log-strengths by name; those of `simulate_strengths` (n_items, seed=seed) by default.
        seed: seed of the random numbers.

    Returns:
        A row for each ranking: ``ranking`` as "a > b = c", ``language`` and ``voter``.

    Raises:
        ValueError: fewer than two items, no ranking, or a length or rate out of range.

    Examples:
        >>> import jaxeval
        >>> table = jaxeval.simulate_rankings(500, 4, length=3)
        >>> table["ranking"][0]
        'model-1 > model-4 > model-3'
        >>> fit = jaxeval.fit_plackett_luce(jaxeval.Rankings.from_pandas(table))
        >>> fit.strengths.index.tolist()
        ['model-1', 'model-2', 'model-3', 'model-4']
    """
    strength = given_or_drawn(strengths, n_items, n_rankings, seed, name="n_rankings")
    if not 2 <= checked_integer("length", length, 2) <= len(strength):
        raise ValueError(f"length must lie between 2 and the {len(strength):,} items, got {length:,}")
    if not 0 <= tie_rate <= 1:
        raise ValueError(f"tie_rate must lie in [0, 1], got {tie_rate}")
    rng = np.random.default_rng([seed, 9])
    chosen = np.argsort(rng.random((n_rankings, len(strength))), axis=1)[:, :length]
    # Sorting items by strength plus Gumbel noise draws from the model of Plackett and Luce.
    order = np.argsort(-(strength.to_numpy(float)[chosen] + rng.gumbel(size=chosen.shape)), axis=1)
    names = strength.index.to_numpy().astype(object)[np.take_along_axis(chosen, order, 1)]
    ranking = names[:, 0]
    for k, tied in enumerate((rng.random((n_rankings, length - 1)) < tie_rate).T, start=1):
        ranking = ranking + np.where(tied, " = ", " > ").astype(object) + names[:, k]
    language = rng.choice(len(LANGUAGES), n_rankings, p=list(LANGUAGES.values()))
    return pd.DataFrame(
        {
            "ranking": ranking,
            "language": np.array(list(LANGUAGES))[language],
            "voter": rng.integers(max(1, n_rankings // 3), size=n_rankings),
        }
    )
