"""Bradley-Terry fits by other tools, each as its own users would run it at its best.

Every peer is given the same thing, the outcome counts of a board, and returns mean-zero
log-strengths in logits. Ties count half. Whatever a peer has to build from the counts is part of
its fit; index arrays that depend only on the number of models are built once, as anyone who
bootstraps would.

    python benchmarks/peers.py                 # 25,000 votes, 55 models
    python benchmarks/peers.py --all           # and 200,000 votes, 130 models
    python benchmarks/peers.py --all --large   # and 2,000,000 votes, 300 models

Shape letters: N battles, M models, P = M (M - 1) / 2 pairs, C cells (pair and loss, tie or win)
that have votes.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np

ELO_PER_LOGIT = 400 / np.log(10)
TARGETS = np.array([0.0, 0.5, 1.0])  # loss, tie, win of i: the last axis of a count table
LOSS, TIE, WIN = range(3)

BOARD_SIZES = {"S": (55, 25_000), "M": (130, 200_000), "L": (300, 2_000_000)}
BOARD_SEED = 20_260_101
TIE_PROB = 0.25
POPULARITY_EXPONENT = 0.6


# --- boards -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Board:
    """One simulated set of votes. `target` is 1 when A wins, 0.5 for a tie, 0 when B wins."""

    name: str
    n_models: int
    model_a: np.ndarray  # (N,) int32
    model_b: np.ndarray  # (N,) int32
    target: np.ndarray  # (N,) float64
    outcome_counts: np.ndarray  # (M, M, 3) int64, i < j only: losses, ties, wins of i against j


def simulate_board(name: str) -> Board:
    """Simulate board 'S', 'M' or 'L'.

    Strengths are N(0, 1) logits, a model's popularity is 1 / rank^0.6, one vote in four is a tie.
    """
    n_models, n_battles = BOARD_SIZES[name]
    rng = np.random.default_rng([BOARD_SEED, n_models])
    strength_logit = rng.normal(0.0, 1.0, n_models)
    popularity = rng.permutation(np.arange(1, n_models + 1) ** -POPULARITY_EXPONENT)
    popularity /= popularity.sum()

    model_a = rng.choice(n_models, n_battles, p=popularity)
    model_b = rng.choice(n_models, n_battles, p=popularity)
    while (same := np.flatnonzero(model_a == model_b)).size:  # a model never meets itself
        model_a[same] = rng.choice(n_models, same.size, p=popularity)
        model_b[same] = rng.choice(n_models, same.size, p=popularity)

    win_prob = 1 / (1 + np.exp(strength_logit[model_b] - strength_logit[model_a]))
    target = np.where(rng.random(n_battles) < win_prob, 1.0, 0.0)
    target[rng.random(n_battles) < TIE_PROB] = 0.5
    return Board(
        name=name,
        n_models=n_models,
        model_a=model_a.astype(np.int32),
        model_b=model_b.astype(np.int32),
        target=target,
        outcome_counts=_count_outcomes(n_models, model_a, model_b, target),
    )


def resample(board: Board, n: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Draw the count tables of `n` bootstrap resamples.

    Redrawing N votes with replacement is one multinomial over the observed cells.
    """
    counts = board.outcome_counts
    cells = np.flatnonzero(counts)
    cell_counts = counts.ravel()[cells]
    n_battles = int(cell_counts.sum())
    cell_prob = cell_counts / n_battles
    for _ in range(n):
        table = np.zeros(counts.size, np.int64)
        table[cells] = rng.multinomial(n_battles, cell_prob)
        yield table.reshape(counts.shape)


def _count_outcomes(n_models: int, model_a: np.ndarray, model_b: np.ndarray, target: np.ndarray) -> np.ndarray:
    first, second = np.minimum(model_a, model_b), np.maximum(model_a, model_b)
    outcome = np.rint(2 * np.where(model_a < model_b, target, 1 - target)).astype(np.int64)
    cell = (first.astype(np.int64) * n_models + second) * 3 + outcome
    shape = (n_models, n_models, 3)
    return np.bincount(cell, minlength=n_models * n_models * 3).astype(np.int64).reshape(shape)


# --- the exact answer ---------------------------------------------------------------------------


def exact_mle(counts: np.ndarray, max_steps: int = 50) -> np.ndarray:
    """Find the maximum-likelihood log-strengths (M,) by full Newton in double precision.

    The yardstick for every peer. It needs a board whose maximum exists (connected, nobody
    undefeated or winless) and raises otherwise.
    """
    wins = _win_matrix(counts)
    battles = wins + wins.T
    n_models = len(wins)
    theta = np.zeros(n_models)
    no_maximum = "likely an undefeated or winless model, or a board in several pieces"
    for _ in range(max_steps):
        expected = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        gradient = (wins - battles * expected).sum(axis=1)
        curvature = battles * expected * (1 - expected)
        hessian = np.diag(curvature.sum(axis=1)) - curvature
        hessian += curvature.sum() / n_models**2  # fixes the gauge: the step has mean zero
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError as error:
            raise RuntimeError(f"The Hessian is singular: {no_maximum}.") from error
        theta = theta + step
        if np.abs(step).max() < 1e-12:
            return theta - theta.mean()
    raise RuntimeError(
        f"Newton moved by {np.abs(step).max():.1e} logits in step {max_steps}, expected < 1e-12: {no_maximum}."
    )


def _win_matrix(counts: np.ndarray) -> np.ndarray:
    """Count the wins of row over column, (M, M), a tie as half a win each."""
    half_ties = 0.5 * counts[..., TIE]
    wins = (counts[..., WIN] + counts[..., LOSS].T).astype(np.float64)
    wins += half_ties
    wins += half_ties.T
    return wins


# --- the peers ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Peer:
    """A tool as it is run here, and how far from the maximum-likelihood answer it may end."""

    name: str
    version: str
    fit: Callable[[np.ndarray], np.ndarray]  # counts (M, M, 3) -> mean-zero log-strengths (M,)
    note: str
    slow: bool  # too slow to be looped over 1,000 resamples
    tolerance_logit: float  # largest difference from `exact_mle` to expect on boards S, M, L


@dataclass(frozen=True)
class _Candidate:
    name: str
    distribution: str
    fit: Callable[[np.ndarray], np.ndarray]
    note: str
    load: Callable[[], object]  # raises ImportError when the peer is not there
    tolerance_logit: float
    slow: bool = False
    stands_on: str = ""  # the library whose version is given, where the method is written here


_CANDIDATES: list[_Candidate] = []


def _candidate(name: str, distribution: str, **about: Any) -> Callable[[Callable[[np.ndarray], np.ndarray]], Any]:
    """Decorates the fit of a tool, a peer where it can be imported; its docstring ends with a paragraph, the note."""

    def listed(fit: Callable[[np.ndarray], np.ndarray]) -> Any:
        note = " ".join((fit.__doc__ or "").split("\n\n")[-1].split())
        _CANDIDATES.append(_Candidate(name, distribution, fit, note, **about))
        return fit

    return listed


def _importer(*modules: str) -> Callable[[], object]:
    return lambda: [importlib.import_module(module) for module in modules]


def _import_arena_rank() -> None:
    """Import arena-rank and undo the process-wide switch to double precision it makes."""
    import jax

    was_double = jax.config.jax_enable_x64
    try:
        importlib.import_module("arena_rank.models.bradley_terry")
    finally:
        jax.config.update("jax_enable_x64", was_double)


def _centred(log_strength: np.ndarray) -> np.ndarray:
    return log_strength - log_strength.mean()


@cache
def _pairs(n_models: int) -> np.ndarray:
    """(P, 2) the pairs i < j."""
    return np.column_stack(np.triu_indices(n_models, 1))


def _observed_cells(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """List the unique (i, j, target) rows of a board and their counts, each (C,)."""
    cells = np.flatnonzero(counts)
    pair, outcome = np.divmod(cells, 3)
    first, second = np.divmod(pair, len(counts))
    return first, second, TARGETS[outcome], counts.ravel()[cells].astype(np.float64)


@_candidate("choix ilsr", "choix", load=_importer("choix"), tolerance_logit=2e-06)
def fit_choix_ilsr(counts: np.ndarray) -> np.ndarray:
    """Fit by iterated Luce spectral ranking on the win matrix, choix's quick way to the MLE.

    MLE. Spectral iteration on the win matrix from equal strengths; an undefeated model is a ValueError.
    """
    import choix

    # `tol` is the mean absolute change of an iteration; the error left is a fraction of it
    return choix.ilsr_pairwise_dense(_win_matrix(counts), tol=1e-6)


@_candidate("choix lsr (one step)", "choix", load=_importer("choix"), tolerance_logit=0.5)
def fit_choix_lsr(counts: np.ndarray) -> np.ndarray:
    """Fit by one Luce spectral ranking step from equal strengths: consistent, but not the MLE.

    Not the MLE: a consistent spectral estimate, the first iteration of the row above.
    """
    import choix

    return choix.lsr_pairwise_dense(_win_matrix(counts))


@_candidate("leaderbot", "leaderbot", load=_importer("leaderbot"), tolerance_logit=0.02)
def fit_leaderbot(counts: np.ndarray) -> np.ndarray:
    """Fit leaderbot's classical Bradley-Terry (its default also fits a scale per model).

    Not the MLE: every model is also given one win and one loss against an opponent of average strength; stops
    at a relative change of 1e-5 whatever `tol`. Its first fit compiles.
    """
    from leaderbot import BradleyTerry

    pairs = _pairs(len(counts))
    outcomes = counts[pairs[:, 0], pairs[:, 1]][:, [WIN, LOSS, TIE]]
    data = {"X": pairs, "Y": outcomes, "models": list(range(len(counts)))}
    model = BradleyTerry(data, k_cov=None)
    model.train()
    return _centred(model.scores())


@_candidate("evalica", "evalica", load=_importer("evalica"), tolerance_logit=1e-06)
def fit_evalica(counts: np.ndarray) -> np.ndarray:
    """Fit by evalica's Rust solver, one weighted row per ordered pair, a tie half a win each.

    MLE by Newman's iteration at its default tolerance; says nothing when it stops after 100 sweeps or when an
    undefeated model collapses all scores.
    """
    import evalica
    import pandas as pd

    wins = _win_matrix(counts)
    winner, loser = np.nonzero(wins)
    result = evalica.bradley_terry(
        winner, loser, [evalica.Winner.X] * len(winner), index=pd.RangeIndex(len(wins)), weights=wins[winner, loser]
    )
    theta = np.empty(len(wins))
    theta[result.scores.index.to_numpy()] = np.log(result.scores.to_numpy())  # it sorts by score
    return _centred(theta)


@cache
def _logistic_design(n_models: int) -> tuple[object, np.ndarray]:
    """Build sparse rows e_i - e_j, model 0's column left out, once per label 1 and 0."""
    from scipy.sparse import csr_matrix, vstack

    pairs = _pairs(n_models)
    entries = np.tile([1.0, -1.0], len(pairs))
    row_ends = np.arange(0, 2 * len(pairs) + 1, 2)
    rows = csr_matrix((entries, pairs.ravel(), row_ends), shape=(len(pairs), n_models))[:, 1:]
    return vstack([rows, rows], format="csr"), np.repeat([1, 0], len(pairs))


@_candidate(
    "scikit-learn", "scikit-learn", load=_importer("sklearn.linear_model", "scipy.sparse"), tolerance_logit=1e-06
)
def fit_scikit_learn(counts: np.ndarray) -> np.ndarray:
    """Fit an unpenalised logistic regression on two weighted rows per pair.

    Model 0 is pinned at zero: the Hessian is then regular and the Cholesky Newton, quicker and more
    exact here than the default solver, needs no ridge.

    MLE. No penalty, sparse deduplicated rows, Cholesky Newton, model 0 pinned.
    """
    from sklearn.linear_model import LogisticRegression

    design, label = _logistic_design(len(counts))
    wins = _win_matrix(counts)
    first, second = _pairs(len(counts)).T
    weight = np.concatenate([wins[first, second], wins[second, first]])
    model = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-6)
    model.fit(design, label, sample_weight=weight)
    return _centred(np.concatenate([[0.0], model.coef_[0]]))


@_candidate(
    "FastChat", "scipy", load=_importer("scipy.optimize", "scipy.special"), tolerance_logit=0.005, stands_on="SciPy "
)
def fit_fastchat(counts: np.ndarray) -> np.ndarray:
    """Fit by FastChat's method with the settings it was published with.

    MLE up to the published stopping rule, which is loose. Written here on SciPy's L-BFGS-B from the
    description; the original also spreads resamples over processes.
    """
    return _fit_fastchat(counts, gtol=1e-6, ftol=2.22e-9, max_iter=100)


@_candidate(
    "FastChat (tight)",
    "scipy",
    load=_importer("scipy.optimize", "scipy.special"),
    tolerance_logit=2e-06,
    stands_on="SciPy ",
)
def fit_fastchat_tight(counts: np.ndarray) -> np.ndarray:
    """Fit by FastChat's method, run until L-BFGS finds nothing more.

    MLE. The same, run to the end of L-BFGS.
    """
    return _fit_fastchat(counts, gtol=1e-10, ftol=0.0, max_iter=1000)


def _fit_fastchat(counts: np.ndarray, **settings: float) -> np.ndarray:
    return _centred(minimise_as_fastchat(*_observed_cells(counts), len(counts), **settings))


def minimise_as_fastchat(
    first: np.ndarray,
    second: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    n_models: int,
    *,
    gtol: float,
    ftol: float,
    max_iter: int,
) -> np.ndarray:
    """Minimise the mean loss of the unique outcomes by L-BFGS-B, in units of 400 Elo; (n_models,) log-strengths."""
    from scipy.optimize import minimize
    from scipy.special import expit

    weight = weight / weight.sum()
    logits_per_unit = np.log(10.0)

    def loss_and_gradient(rating: np.ndarray) -> tuple[float, np.ndarray]:
        prob = expit(logits_per_unit * (rating[first] - rating[second]))
        loss = -(weight * (target * np.log(prob) + (1 - target) * np.log(1 - prob))).sum()
        pull = logits_per_unit * weight * (prob - target)
        gradient = np.bincount(first, pull, n_models) - np.bincount(second, pull, n_models)
        return loss, gradient

    found = minimize(
        loss_and_gradient,
        np.zeros(n_models),
        jac=True,
        method="L-BFGS-B",
        options={"gtol": gtol, "ftol": ftol, "maxiter": max_iter},
    )
    return logits_per_unit * found.x


@_candidate("arena-rank", "arena-rank", load=_import_arena_rank, tolerance_logit=0.002, slow=True)
def fit_arena_rank(counts: np.ndarray) -> np.ndarray:
    """Fit by arena-rank at its own tolerances, its data set filled with the unique outcomes.

    MLE up to its default tolerance. Compiles anew in every fit; its own bootstrap forks after JAX has started
    threads and hangs, so it is not run.
    """
    import jax
    from arena_rank.models.bradley_terry import BradleyTerry

    with jax.enable_x64(True):  # it wants double precision process-wide: here for this fit only
        # a new model each time, as in its bootstrap: a fitted one starts from its old ratings
        model = BradleyTerry(len(counts)).fit(_arena_rank_dataset(counts))
        return _centred(np.asarray(model.params["ratings"]))


def arena_rank_sandwich(counts: np.ndarray, level: float = 0.95) -> np.ndarray:
    """Fit by arena-rank with its own closed-form intervals: (3, M) ratings, lower and upper bounds, Elo, mean 0."""
    import jax
    from arena_rank.models.bradley_terry import BradleyTerry

    with jax.enable_x64(True):
        model = BradleyTerry(len(counts))
        found = model.compute_ratings_and_cis(_arena_rank_dataset(counts), significance_level=1 - level)
        ratings = np.stack([np.asarray(found[name]) for name in ("ratings", "rating_lower", "rating_upper")])
        return ratings - ratings[0].mean()


def _arena_rank_dataset(counts: np.ndarray) -> Any:
    """The unique outcomes, as arena-rank's own reader would make them of votes."""
    import jax.numpy as jnp
    from arena_rank.utils.data_utils import PairDataset

    first, second, target, weight = _observed_cells(counts)
    cell_counts = jnp.asarray(weight)
    return PairDataset(
        competitors=list(range(len(counts))),
        pairs=jnp.asarray(np.column_stack([first, second]).astype(np.int32)),
        outcomes=jnp.asarray(target),
        counts=cell_counts,
        weights=jnp.ones_like(cell_counts),
        opt_weights=cell_counts,
    )


def peers() -> list[Peer]:
    """List the peers that can be imported here (which takes a few seconds, once)."""
    return [
        Peer(
            name=c.name,
            version=c.stands_on + version(c.distribution),
            fit=c.fit,
            note=c.note,
            slow=c.slow,
            tolerance_logit=c.tolerance_logit,
        )
        for c in _CANDIDATES
        if _is_importable(c)
    ]


def missing_peers() -> list[str]:
    """Name the peers that cannot be imported here."""
    return [c.name for c in _CANDIDATES if not _is_importable(c)]


@cache
def _is_importable(candidate: _Candidate) -> bool:
    try:
        candidate.load()
    except ImportError:
        return False
    return True


# --- timing -------------------------------------------------------------------------------------


def _timed(run: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def _report(board: Board, n_fits: int = 5) -> None:
    """Time each peer on `n_fits` resamples of a board and compare it with the exact MLE of each."""
    print(
        f"\nBoard {board.name}: {len(board.target):,} votes, {board.n_models} models, "
        f"{np.count_nonzero(board.outcome_counts):,} outcome cells"
    )
    draws = resample(board, n_fits + 1, np.random.default_rng(1))
    next(draws)  # the first draw also prepares the probabilities
    draw_seconds, tables = zip(*(_timed(lambda: next(draws)) for _ in range(n_fits)), strict=True)
    draw_s = statistics.median(draw_seconds)
    exact = np.stack([exact_mle(table) for table in tables])
    print(f"drawing one resample: {1e3 * draw_s:.2f} ms (NumPy multinomial, in the last column)\n")

    header = ("peer", "first ms", "fit ms", "max |diff| logit", "in Elo", "1,000 resamples")
    print("{:<21}{:>10}{:>10}{:>18}{:>10}{:>17}".format(*header))
    for name, fit, slow, tolerance_logit in [
        *((peer.name, peer.fit, peer.slow, peer.tolerance_logit) for peer in peers()),
        ("(exact, NumPy)", exact_mle, False, 0.0),
    ]:
        first_s, _ = _timed(partial(fit, board.outcome_counts))
        for table in () if slow else tables:  # warm caches and threads, untimed
            fit(table)
        seconds, fits = zip(*(_timed(partial(fit, table)) for table in tables), strict=True)
        fit_s = statistics.median(seconds)
        diff = np.abs(np.stack(fits) - exact).max()
        print(
            f"{name:<21}{1e3 * first_s:>10.1f}{1e3 * fit_s:>10.2f}{diff:>18.1e}"
            f"{ELO_PER_LOGIT * diff:>10.1e}{1e3 * (draw_s + fit_s):>15.1f} s"
            + ("" if diff <= tolerance_logit else f"  (expected < {tolerance_logit:.0e})")
        )


def main() -> None:
    """Print the seconds and the error of every peer on the simulated boards."""
    parser = argparse.ArgumentParser(description="Seconds per fit of other tools, and their error.")
    parser.add_argument("--all", action="store_true", help="board M too")
    parser.add_argument("--large", action="store_true", help="board L too")
    args = parser.parse_args()

    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, {os.cpu_count()} CPUs")
    for peer in peers():
        print(f"  {peer.name} ({peer.version}): {peer.note}")
    if missing := missing_peers():
        print(f"not installed: {', '.join(missing)}")
    for name in ["S"] + ["M"] * args.all + ["L"] * args.large:
        _report(simulate_board(name))
    print(
        "\nfirst: one call that includes any compilation. fit: median of five resamples after it."
        "\ndiff: largest over models and resamples, against the exact MLE of the same resample."
        "\n1,000 resamples: 1,000 x (draw + fit) in one process, projected."
    )


if __name__ == "__main__":
    main()
