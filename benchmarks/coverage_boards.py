"""Coverage of ratings from votes and rankings: boards of 8 models, 100 votes a model where nothing else is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from coverage_rows import ASKED, LEVEL, Row, inside, part, row
from numpy.typing import NDArray
from scipy.special import expit, ndtr

import jaxeval
from jaxeval.ratings.gauge import ELO_PER_LOGIT

Rng = np.random.Generator
Array = NDArray[Any]
THETA = np.linspace(-1, 1, 8)
NAMES = np.array([f"m{k}" for k in range(8)])
B = 1000
FEW_EFFECTIVE = "a warning says that clusters worth fewer than 30 of equal size give intervals that may be too narrow"
SHORT = "strata are not the cause, as plain resampling falls as short, and basic intervals do not"
BOARD = ("bootstrap", "leaderboard", "Bootstrap", "Draws")


def pairs(rng: Rng, n: int) -> tuple[Array, Array]:
    """Numbers of the models of ``n`` battles, pairs drawn at random."""
    a = rng.integers(0, len(THETA), n)
    return a, (a + rng.integers(1, len(THETA), n)) % len(THETA)


def logit_wins(rng: Rng, a: Array, b: Array, theta: Array = THETA) -> Array:
    """Wins and losses."""
    return (rng.random(len(a)) < expit(theta[a] - theta[b])).astype(float)


def boards(
    n_boards: int, n: int = 400, target: Callable[..., Array] = logit_wins, seed: int = 0, **columns: Callable[..., Any]
) -> pd.DataFrame:
    """Battles of all boards, with their number in the column ``board``."""
    tables = []
    for board in range(n_boards):
        rng = np.random.default_rng([seed, board])
        a, b = pairs(rng, n)
        own = {name: make(rng, a, b) for name, make in columns.items()}
        wins = target(rng, a, b, **own)
        tables.append(pd.DataFrame({"model_a": NAMES[a], "model_b": NAMES[b], "target": wins, "board": board, **own}))
    return pd.concat(tables, ignore_index=True)


def fitted(table: pd.DataFrame, **options: Any) -> list[Any]:
    """The bootstrap of every board."""
    found = jaxeval.bootstrap(
        table, options.pop("n_resamples", B), by="board", max_slices=table["board"].nunique(), progress=False, **options
    )
    return list(found.values())


def elo(theta: Array, models: Any = NAMES, unit: float = 1.0) -> Array:
    """True ratings of ``models``, in the mean gauge."""
    return 1000 + ELO_PER_LOGIT * unit * pd.Series(theta - theta.mean(), NAMES)[list(models)].to_numpy()


def ratings(found: list[Any], theta: Array = THETA, kind: str = "percentile", unit: float = 1.0) -> list[Array]:
    """What the intervals of every board hold."""
    return [inside(board.interval(LEVEL, kind), elo(theta, board.models, unit)) for board in found]


@part(300)
def plain(n: int) -> list[Row]:
    """Intervals of ratings and differences, sets of ranks, tiers."""
    rows = []
    for each in (25, 100, 1000):
        case = f"8 models, {each} votes a model"
        found = fitted(boards(n, each * 4, seed=each))
        for kind in ("percentile", "basic", "wald"):
            names = (*BOARD, "fit_bradley_terry", "BradleyTerryFit") if kind == "wald" else BOARD
            rows.append(row(names, f"Bradley-Terry, {kind} interval", case, ratings(found, kind=kind)))
        held = []
        for board in found:
            lower, upper = (x.to_numpy() for x in board.difference_interval(LEVEL))
            true = elo(THETA, board.models)
            some = np.triu_indices(8, 1)
            gap = true[:, None] - true
            held.append(((lower <= gap) & (gap <= upper))[some])
        rows.append(row(BOARD, "Bradley-Terry, percentile interval of differences", case, held))
    tied = np.repeat([0.9, 0.3, -0.3, -0.9], 2)
    found = fitted(boards(n, 1600, lambda rng, a, b: logit_wins(rng, a, b, tied), seed=7))
    return rows + claims_about_ranks(found, tied)


def claims_about_ranks(found: list[Any], theta: Array) -> list[Row]:
    """Sets of ranks must hold all ranks of a model's block of equals; leaders of tiers must be one above the other."""
    case = "8 models in four pairs of equals, 400 votes a model"
    alone, at_once, told = [], [], []
    for board in found:
        true = pd.Series(theta, NAMES)[list(board.models)].to_numpy()
        first, last = 1 + (true > true[:, None]).sum(1), 8 - (true < true[:, None]).sum(1)
        for simultaneous, kept in ((False, alone), (True, at_once)):
            sets = board.rank_sets(LEVEL, simultaneous=simultaneous).loc[list(board.models)].to_numpy(int)
            held = (sets[:, 0] <= first) & (sets[:, 1] >= last)
            kept.append(held.all() if simultaneous else held)
        tier = board.tiers(LEVEL)[board.fit.ratings.sort_values(ascending=False).index]
        leaders = pd.Series(theta, NAMES)[tier.index[~tier.duplicated()]]
        told.append(bool((leaders.diff().iloc[1:] < 0).all()))
    return [
        row(BOARD, "sets of ranks, each by itself", case, np.array(alone, float)),
        row(BOARD, "sets of ranks, all at once", case, np.array(at_once, float)),
        row(BOARD, "tiers: each leader above the next tier's", case, np.array(told, float)),
    ]


@part(300)
def schemes(n: int) -> list[Row]:
    """Other ways to resample, and groups of which each resample holds as many battles as the data."""
    table, case = boards(n, seed=100), "8 models, 100 votes a model"
    names = {"poisson": "Poisson weights", "bayesian": "Bayesian bootstrap"}
    rows = [
        row(BOARD, f"Bradley-Terry, {name}, percentile interval", case, ratings(fitted(table, scheme=scheme)))
        for scheme, name in names.items()
    ]
    theta = {0: THETA, 1: THETA[::-1] / 2}

    def group(rng: Rng, a: Array, b: Array) -> Array:
        return np.repeat([0, 1], [len(a) * 3 // 4, len(a) // 4])

    def wins(rng: Rng, a: Array, b: Array, language: Array) -> Array:
        own = np.where(language, theta[1][a] - theta[1][b], theta[0][a] - theta[0][b])
        return (rng.random(len(a)) < expit(own)).astype(float)

    table = boards(n, target=wins, seed=5, language=group)
    # What a board of all possible battles gives: these are no votes of one set of strengths.
    a, b = np.nonzero(~np.eye(8, dtype=bool))
    every = [
        pd.DataFrame(
            {"model_a": NAMES[a], "model_b": NAMES[b], "target": expit(own[a] - own[b]), "count": 1000 * times}
        )
        for own, times in ((theta[0], 3), (theta[1], 1))
    ]
    all_votes = jaxeval.Battles.from_pandas(pd.concat(every), target="target", count="count")
    truth = jaxeval.fit_bradley_terry(all_votes).ratings[NAMES].to_numpy()
    case = "two languages of unlike strengths, 300 and 100 votes in every board"
    for options, method in (({"strata": "language"}, "strata"), ({}, "no strata")):
        found = fitted(table, **options)
        true = [pd.Series(truth, NAMES)[list(board.models)].to_numpy() for board in found]
        for kind, title in (("auto", "by default"), ("percentile", "percentile interval"), ("basic", "basic interval")):
            held = [inside(board.interval(LEVEL, kind), own) for board, own in zip(found, true, strict=True)]
            note = f"{ASKED}; {SHORT}" if kind == "percentile" else ""
            rows.append(row(BOARD, f"Bradley-Terry, {method}, {title}", case, held, note=note))
    return rows


@part(800)
def links(n: int) -> list[Row]:
    """Thurstone's Case V."""
    table = boards(n, target=lambda rng, a, b: (rng.random(len(a)) < ndtr(0.6 * (THETA[a] - THETA[b]))).astype(float))
    found, case = fitted(table, link="probit"), "8 models, 100 votes a model"
    names = {"percentile": BOARD, "wald": (*BOARD, "fit_bradley_terry")}
    return [
        row(own, f"Thurstone's Case V, {kind} interval", case, ratings(found, 0.6 * THETA, kind, 1.702))
        for kind, own in names.items()
    ]


def davidson(rng: Rng, a: Array, b: Array) -> Array:
    """Ties of t = 0: as likely as a win of equals."""
    z = THETA[a] - THETA[b]
    total = 1 + np.exp(z / 2) + np.exp(-z / 2)
    u = rng.random(len(a))
    return np.where(u < np.exp(z / 2) / total, 1.0, np.where(u < (1 + np.exp(z / 2)) / total, 0.5, 0.0))


def rao_kupper(rng: Rng, a: Array, b: Array) -> Array:
    """Ties of threshold 0.6."""
    z = THETA[a] - THETA[b] + rng.logistic(size=len(a))
    return np.where(z > 0.6, 1.0, np.where(z < -0.6, 0.0, 0.5))


@part(800)
def ties(n: int) -> list[Row]:
    """Tie models: ratings and the tie parameter."""
    rows, case = [], "8 models, 100 votes a model"
    names = ("bootstrap", "leaderboard", "ContextualBootstrap")
    for model, make, true in (("davidson", davidson, 0.0), ("rao_kupper", rao_kupper, 0.6)):
        found = fitted(boards(n, target=make, seed=11), ties=model, n_resamples=500)
        title = {"davidson": "Davidson", "rao_kupper": "Rao and Kupper"}[model]
        rows.append(row(names, f"{title}, percentile interval of ratings", case, ratings(found)))
        own = (*names, "ContextualFit", "fit_bradley_terry")
        rows.append(row(own, f"{title}, wald interval of ratings", case, ratings(found, kind="wald")))
        held = [inside(board.coefficients(LEVEL).loc[["tie parameter"]], true) for board in found]
        rows.append(row(names, f"{title}, interval of the tie parameter", case, held))
    return rows


@part(800)
def covariates(n: int) -> list[Row]:
    """A covariate that sways votes, and what controlling for it does to ratings."""
    style = np.linspace(0.5, -0.5, 8)  # what it is on average in a battle of each model

    def length(rng: Rng, a: Array, b: Array) -> Array:
        return style[a] - style[b] + rng.normal(size=len(a))

    def wins(rng: Rng, a: Array, b: Array, length: Array) -> Array:
        return (rng.random(len(a)) < expit(THETA[a] - THETA[b] + 0.5 * length)).astype(float)

    table, case = boards(n, target=wins, seed=3, length=length), "8 models, 100 votes a model, one covariate"
    names = ("bootstrap", "leaderboard", "ContextualBootstrap")
    found = fitted(table, features=["length"], n_resamples=500)
    coefficient = []
    for board in found:
        ends = board.coefficients(LEVEL).loc[["length"]]
        coefficient.append(inside(ends, 0.5 * ends["unit"].to_numpy()))
    rows = [
        row(names, "covariates, percentile interval of ratings", case, ratings(found)),
        row((*names, "ContextualFit"), "covariates, wald interval of ratings", case, ratings(found, kind="wald")),
        row(names, "covariates, interval of the coefficient", case, coefficient),
    ]
    whole = jaxeval.Battles.from_pandas(
        boards(1, 1_000_000, wins, seed=4, length=length), target="target", keep=["length"]
    )
    true = jaxeval.style_effect(whole, ["length"], n_resamples=2, progress=False).set_index("model")["shift"]
    held = []
    for number in range(n):
        own = table[table["board"] == number]
        shift = jaxeval.style_effect(own, ["length"], n_resamples=500, progress=False).set_index("model")
        held.append(inside(shift, true[shift.index].to_numpy(), ("shift_lower", "shift_upper")))
    return [*rows, row("style_effect", "shift of a rating by style control", case, held)]


@part(300)
def rankings(n: int) -> list[Row]:
    """Rankings of 4 of 6 items."""
    theta, names = np.linspace(-1, 1, 6), list("abcdef")
    truth = pd.Series(1000 + ELO_PER_LOGIT * theta, names)
    wald, percentile = [], []
    for number in range(n):
        rng = np.random.default_rng([21, number])
        orders = []
        for _ in range(80):
            some = rng.choice(6, 4, replace=False)
            orders.append(" > ".join(names[k] for k in some[np.argsort(rng.exponential(size=4) / np.exp(theta[some]))]))
        data = jaxeval.Rankings.from_pandas(pd.DataFrame({"ranking": orders}))
        ends = jaxeval.fit_plackett_luce(data).interval(LEVEL)
        wald.append(inside(ends, truth[ends.index].to_numpy()))
        ends = jaxeval.bootstrap(data, 500, progress=False).interval(LEVEL)
        percentile.append(inside(ends, truth[ends.index].to_numpy()))
    case = "80 rankings of 4 of 6 items"
    return [
        row(("fit_plackett_luce", "PlackettLuceFit"), "Plackett-Luce, wald interval", case, wald),
        row(("bootstrap", "leaderboard"), "Plackett-Luce, percentile interval", case, percentile),
    ]


VOTERS: dict[str, Callable[[Rng], Array]] = {
    "60 voters of 40 votes": lambda rng: np.full(60, 40),
    "60 voters, one with 35% of the votes": lambda rng: np.r_[np.full(59, 30), 950],
    "60 voters, log-normal (1.2)": lambda rng: np.round(np.exp(rng.normal(3, 1.2, 60))).astype(int) + 2,
    "1,000 voters, log-normal (1.5)": lambda rng: np.round(np.exp(rng.normal(0, 1.5, 1000))).astype(int) + 1,
    "20 voters of 40 votes": lambda rng: np.full(20, 40),
    "20 voters, one with 40% of the votes": lambda rng: np.r_[np.full(19, 30), 380],
}


@part(800)
def voters(n: int) -> list[Row]:
    """Ratings and differences of voters with tastes of .7 logits a model, who cast unequal numbers of votes."""
    strength, rows = np.array([0.6, 0.3, 0.1, -0.1, -0.3, -0.6]), []
    nodes, chance = np.polynomial.hermite_e.hermegauss(40)
    i, j = np.triu_indices(6, 1)
    tastes = strength[i] - strength[j] + 0.7 * np.sqrt(2) * nodes[:, None]
    share = chance @ expit(tastes) / chance.sum()  # of wins over all voters, to which a board's ratings tend
    sure = pd.DataFrame({"model_a": np.r_[i, i], "model_b": np.r_[j, j], "target": np.repeat([1.0, 0.0], 15)})
    sure["weight"] = np.r_[share, 1 - share]
    whole = jaxeval.Battles.from_pandas(sure, target="target", weight="weight")
    true = jaxeval.fit_bradley_terry(whole).ratings.sort_index().to_numpy()
    gap = true[i] - true[j]
    for case, sizes in VOTERS.items():
        tables = []
        for number in range(n):
            rng = np.random.default_rng([41, number])
            own = sizes(rng)
            voter, taste = np.repeat(np.arange(len(own)), own), rng.normal(0, 0.7, (len(own), 6))
            a = rng.integers(0, 6, len(voter))
            b = (a + rng.integers(1, 6, len(voter))) % 6
            own_strength = strength + taste[voter]
            ahead = own_strength[np.arange(len(a)), a] - own_strength[np.arange(len(a)), b]
            win = (rng.random(len(a)) < expit(ahead)).astype(float)
            tables.append(pd.DataFrame({"model_a": a, "model_b": b, "target": win, "voter": voter, "board": number}))
        table = pd.concat(tables, ignore_index=True)
        table["voter"] += 10_000 * table["board"]
        held: dict[str, list[Any]] = {"by default": [], "wald interval": [], "differences": []}
        for board in fitted(table, cluster="voter", n_resamples=500):
            assert list(board.models) == list(range(6))
            held["by default"].append(inside(board.interval(LEVEL), true))
            held["wald interval"].append(inside(board.fit.interval(LEVEL, "wald"), true))
            lower, upper = (ends.to_numpy()[i, j] for ends in board.difference_interval(LEVEL))
            held["differences"].append(inside(pd.DataFrame({"lower": lower, "upper": upper}), gap))
        note = FEW_EFFECTIVE if "log-normal (1.2)" in case else ""
        rows += [
            row(
                (*BOARD, "fit_bradley_terry", "BradleyTerryFit"), f"Bradley-Terry of clusters, {name}", case, own,
                note=note,
            )
            for name, own in held.items()
        ]  # fmt: skip
    return rows
