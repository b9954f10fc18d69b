"""Compress judged battles to cells, and fit the temperature of a judge: the slope in its score difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.execution.precision import double_precision
from jaxeval.execution.shapes import padded_cells, padded_few
from jaxeval.kernels.batch import folds
from jaxeval.kernels.solve import Status, Terms
from jaxeval.show.shown import Result
from jaxeval.show.table import Table
from jaxeval.statistics.clusters import cluster_factors, effective_clusters, few_clusters_text, numbered
from jaxeval.wording import counted, did_you_mean, visible_line


class JudgedCells(NamedTuple):
    """Judged battles compressed: equal (pair, score difference, hard label, human label) are one cell."""

    n_models: int
    first: Int  # (C,) lower model index
    second: Int  # (C,)
    pair: Int  # (C,) number of the pair, sorted
    label: Int  # (C,)
    battles: Int  # (C,) how many
    pairs: tuple[Int, Int]  # (P,) models of each pair
    labels: Float  # (U, 3) score difference, hard label, human label (NaN without one), of the first model
    own: list[Int]  # per model, its cells in order
    own_first: list[Bool]  # and whether it is the first model of them
    of_battle: Int  # (N,) the cell of each battle


def compress(battles: JudgedBattles, rows: NDArray[np.intp] | slice = slice(None)) -> JudgedCells:
    """Return the cells of the battles, or of some ``rows`` of them; the models stay numbered as they are."""
    a, b = battles.model_a[rows].astype(np.int64), battles.model_b[rows].astype(np.int64)
    m, swap = len(battles.models), a > b
    score = battles.score_difference[rows]
    difference = np.where(swap, -score, score) + 0.0
    hard, human = (np.where(swap, 1 - x[rows], x[rows]) for x in (battles.hard, battles.human))
    codes = [np.unique(x, return_inverse=True) for x in (difference, hard, human)]
    joint = np.zeros(len(a), np.int64)
    for values, code in codes:
        joint = joint * len(values) + code
    kinds, label = np.unique(joint, return_inverse=True)
    parts = np.unravel_index(kinds, [len(values) for values, _ in codes])
    labels = np.stack([values[part] for (values, _), part in zip(codes, parts, strict=True)], axis=1)
    pair = np.where(swap, b, a) * m + np.where(swap, a, b)
    keys, of_battle, count = np.unique(pair * len(kinds) + label, return_inverse=True, return_counts=True)
    pairs, of_cell = np.unique(keys // len(kinds), return_inverse=True)
    first, second = divmod(pairs, m)
    cells, own_first = by_model(first[of_cell], second[of_cell], m)
    return JudgedCells(
        n_models=m, first=first[of_cell], second=second[of_cell], pair=of_cell, label=keys % len(kinds),
        battles=count, pairs=(first, second), labels=labels, own=cells, own_first=own_first, of_battle=of_battle,
    )  # fmt: skip


def by_model(first: Int, second: Int, n_models: int) -> tuple[list[Int], list[Bool]]:
    """Return, per model, the places in order where it is (N,) ``first`` or ``second``, and whether it is ``first``."""
    model, place = np.concatenate([first, second]), np.tile(np.arange(len(first)), 2)
    order = np.lexsort((place, model))
    ends = np.cumsum(np.bincount(model, minlength=n_models))[:-1]
    return np.split(place[order], ends), np.split(order < len(first), ends)


def smoothing(method: str) -> float:
    """Return the constant of a target map that moves hard labels: 1 for "hard", c for "smooth:c" (Appendix H).

    It is a ValueError if there is no such map, or c lies outside [0.5, 1].
    """
    name, _, text = method.partition(":")
    try:
        constant = 1.0 if method == "hard" else float(text)
    except ValueError:
        constant = np.nan
    if not (method == "hard" or name == "smooth") or not 0.5 <= constant <= 1:
        raise ValueError(
            f"unknown method {method!r}: expected 'hard', 'soft', or 'smooth:c' with c in [0.5, 1], such as "
            f"'smooth:0.8'{did_you_mean(method, ('hard', 'soft', 'smooth:0.8'))}"
        )
    return constant


def targets(method: str, score_difference: Float, hard: Float, beta: float | Float | None) -> Float:
    """Return targets that A wins by a map: "soft" is s(beta d), the others move the hard label and need no ``beta``."""
    if method == "soft":
        return np.asarray(expit(np.nan if beta is None else beta * score_difference))
    return 0.5 + (2 * smoothing(method) - 1) * (hard - 0.5)


Ties = Literal["drop", "half"]

#: Largest error left, in logits at the largest score difference.
TOLERANCE_LOGIT = 1e-9
MAX_STEPS = 100
#: With fewer battles whose scores differ, no temperature is fitted.
FEWEST_BATTLES = 5

STATUS_TEXT: dict[int, str] = {
    Status.CONVERGED: "converged",
    Status.STEP_LIMIT: "stopped at the step limit before converging",
    Status.NON_FINITE: "diverged to non-finite values",
    Status.SEPARABLE: "separable",
    Status.TOO_FEW: "too few",
}


@dataclass(frozen=True, repr=False)
class Temperature(Result):
    """A fitted temperature: the probability that a human prefers A is s(beta * score difference).

    ``status`` is "converged", or one of these. "negative slope": it converged, but humans prefer what the judge scores
    lower. "separable": human and judge agree in every battle, or in none; there is no maximum, and ``beta`` is inf or
    -inf. "too few": fewer than five battles have scores that differ, and ``beta`` is NaN. Any other status means that
    the iteration failed.

    Examples:
        >>> import jaxeval
        >>> fit = jaxeval.fit_temperature([2, 1, -1, 3, -2, 0.5, -3], [1, 1, 0, 1, 0, 1, 0])
        >>> fit.beta, fit.status, fit.converged
        (inf, 'separable', False)
    """

    beta: float  # logits per point of score difference
    standard_error: float  # sandwich; NaN without a maximum, or with a single cluster
    n_battles: int  # battles in the fit
    n_informative: int  # battles in the fit whose score difference is not 0: the others do not move beta
    status: str
    log_likelihood: float
    n_ties: int  # human ties, in the fit or dropped
    n_unlabelled: int  # battles without a human label or score: not in the fit
    n_steps: int
    ties: Ties
    n_clusters: int | None  # clusters of the battles in the fit; None where battles are independent
    n_effective_clusters: float | None = None  # how many of equal size hold as much, see `effective_clusters`

    @property
    def warnings(self) -> list[str]:
        """What the data leave open, in words."""
        return few_clusters_text(self.n_clusters, self.n_effective_clusters)

    def _sentences(self) -> list[str]:
        of = f"{counted(self.n_informative, 'battle')} with scores that differ"
        if not self.converged:
            return [f"no temperature from {of}: {self.status}"]
        error = "" if np.isnan(self.standard_error) else f" (standard error {self.standard_error:.3g})"
        sentence = f"beta is {self.beta:.4g}{error} logits per point, from {of}"
        return [sentence if self.beta >= 0 else f"{sentence}: people prefer what the judge scores lower"]

    @property
    def converged(self) -> bool:
        """Whether ``beta`` is a maximum of the likelihood."""
        return self.status in ("converged", "negative slope")


def fit_temperature(
    score_difference: ArrayLike,
    human: ArrayLike,
    *,
    ties: Ties = "drop",
    weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
) -> Temperature:
    """Return temperature of a judge by maximum likelihood of y = s(beta d) (Eq. 6 of arXiv:2606.13221).

    With r_b = w_b d_b (y_b - s(beta d_b)) and I the information, the standard error is sqrt(sum r_b^2) / I: the
    sandwich, as in `fit_bradley_terry`. With clusters the sums R_k of r_b over each take its place, as
    R_k / sqrt(1 - I_k / I), with I_k the information of the cluster (CR2, DOI 10.1080/07350015.2016.1247004).

    Args:
        score_difference: (N,) scores of A minus B.
        human: (N,) targets that A wins: 1, 1/2, 0; NaN without a label.
        ties: "drop" leaves human ties out, as the paper does; "half" fits them as targets of 1/2, which about halves
            beta.
        weight: (N,) >= 0, multiplies a battle's log-likelihood; none by default. A weight of 2 stays one battle.
        cluster: (N,) name of each battle's cluster, a prompt or a voter: whole clusters are independent, in place of
            battles.

    Raises:
        ValueError: lengths differ, targets outside [0, 1], negative weights, a missing cluster, or an unknown rule for
            ties.

    Examples:
        >>> import jaxeval
        >>> difference = [2, 1, -1, 3, -2, 0.5, -0.5, 1, -3, 1.5]
        >>> human = [1, 1, 0, 1, 1, 0, 0, 0.5, 0, 1]
        >>> fit = jaxeval.fit_temperature(difference, human)
        >>> round(fit.beta, 3), round(fit.standard_error, 3), fit.n_battles, fit.n_ties
        (0.812, 0.55, 9, 1)
    """
    group = np.zeros(len(np.atleast_1d(np.asarray(score_difference))), np.intp)
    (only,) = _fit_groups(score_difference, human, group, 1, ties, weight, cluster)
    return only


def fit_temperatures(
    score_difference: ArrayLike,
    human: ArrayLike,
    by: ArrayLike,
    *,
    ties: Ties = "drop",
    weight: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
) -> pd.DataFrame:
    """Return temperatures of slices.

    Args:
        by: (N,) name of each battle's slice: a language, a judge.
        score_difference: as in `fit_temperature`, like the other arguments.

    Returns:
        One row per slice, sorted: ``beta, standard_error, n_battles, status, log_likelihood, n_ties, n_unlabelled``,
        and ``n_clusters`` if there are any. ``attrs["warnings"]`` names slices of few clusters.

    Raises:
        ValueError: as in `fit_temperature`, or a slice name is missing.

    Examples:
        >>> import jaxeval
        >>> difference = [2, 1, -1, 3, -2, 1, 1, 2, -2, -1, 3, -3]
        >>> human = [1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0]
        >>> table = jaxeval.fit_temperatures(difference, human, by=["en"] * 6 + ["de"] * 6)
        >>> table["beta"].round(2).to_dict()
        {'de': 0.48, 'en': 1.28}
    """
    codes, names = pd.factorize(np.asarray(by), sort=True)
    if (codes < 0).any():
        raise ValueError(
            f"{counted((codes < 0).sum(), 'battle has', 'battles have')} no slice name; fill them or drop those rows "
            "first"
        )
    fits = _fit_groups(score_difference, human, codes, len(names), ties, weight, cluster)
    columns = ["beta", "standard_error", "n_battles", "status", "log_likelihood", "n_ties", "n_unlabelled"]
    columns += [] if cluster is None else ["n_clusters"]
    index = pd.Index(names, name="slice")
    table = pd.DataFrame([[getattr(fit, c) for c in columns] for fit in fits], index, columns)
    table.attrs = {"warnings": [f"{name}: {x}" for name, fit in zip(names, fits, strict=True) for x in fit.warnings]}
    known, sentence = table["beta"].dropna(), "no slice has enough battles for a beta"
    if len(known):
        steepest = known.idxmax()
        sentence = (
            f"{visible_line(steepest)} has the largest beta of {counted(len(known), 'slice')}, {known[steepest]:.2f}"
        )
    table.attrs["answer"] = sentence
    return Table.of(table, "Temperatures")


def in_likelihood(human: Float, ties: Ties) -> Bool:
    """Return (N,) which human targets enter the likelihood."""
    check_choice("ties", ties, Ties)
    labelled = ~np.isnan(human)
    return labelled if ties == "half" else labelled & (human != 0.5)


def status_text(status: int, beta: float) -> str:
    """Return a status in words."""
    return "negative slope" if status == Status.CONVERGED and beta < 0 else STATUS_TEXT[status]


def _fit_groups(
    score_difference: ArrayLike, human: ArrayLike, group: NDArray[np.intp], n_groups: int, ties: Ties,
    weight: ArrayLike | None, cluster: ArrayLike | None,
) -> list[Temperature]:  # fmt: skip
    difference = np.atleast_1d(np.asarray(score_difference, np.float64))
    targets = np.atleast_1d(np.asarray(human, np.float64))
    if difference.shape != targets.shape or difference.ndim != 1 or len(group) != len(targets):
        raise ValueError(
            f"one human label is needed for each score difference, got {targets.shape} and {difference.shape}"
        )
    if ((targets < 0) | (targets > 1)).any() or np.isinf(difference).any():
        raise ValueError("human targets must lie in [0, 1], and score differences must be finite")
    weights = np.ones_like(targets) if weight is None else np.asarray(weight, np.float64)
    if weights.shape != targets.shape or not (weights >= 0).all() or np.isinf(weights).any():
        raise ValueError("weights must be finite and >= 0, one for each battle")
    drawn = np.arange(len(targets)) if cluster is None else numbered(cluster)
    if drawn.shape != targets.shape:
        raise ValueError(f"one cluster is needed for each battle, got {drawn.shape} for {targets.shape}")
    used = in_likelihood(targets, ties) & ~np.isnan(difference)
    rows = np.flatnonzero(used)
    # The likelihood sees |d| and whether the target agrees with its sign: half the levels.
    towards = np.where(difference < 0, 1 - targets, targets)[rows]
    levels, which = np.unique(np.abs(difference[rows]), return_inverse=True)
    shape = padded_few(n_groups), padded_cells(len(levels))
    slot = group[rows] * shape[1] + which
    n = np.bincount(slot, weights[rows], np.prod(shape)).reshape(shape)
    wins = np.bincount(slot, weights[rows] * towards, np.prod(shape)).reshape(shape)
    level = np.broadcast_to(np.pad(levels, (0, shape[1] - len(levels))), n.shape)
    with double_precision():
        solution = folds.temperatures(level, n, wins, float(FEWEST_BATTLES), Terms.of(0.0, TOLERANCE_LOGIT, MAX_STEPS))
        beta, information, log_likelihood, status, n_steps = (np.asarray(x)[:n_groups] for x in solution)
    fitted = used & (weights > 0)
    known = np.where(np.isfinite(beta), beta, 0.0)
    of_groups = (np.flatnonzero(fitted & (group == g)) for g in range(n_groups))
    each = [
        _over_clusters(known[g], weights[rows], difference[rows], targets[rows], drawn[rows])
        for g, rows in enumerate(of_groups)
    ]
    spread = np.array([x for x, _ in each])
    several = [(None, None) if cluster is None else counts for _, counts in each]
    masks = {
        "n_battles": fitted,
        "n_informative": fitted & (difference != 0),
        "n_ties": targets == 0.5,
        "n_unlabelled": np.isnan(targets) | np.isnan(difference),
    }
    counts = {name: np.bincount(group[mask], minlength=n_groups) for name, mask in masks.items()}
    exists = np.isfinite(beta) & (information > 0)
    error = np.where(exists, spread / np.where(exists, information, 1.0), np.nan)
    fits = pd.DataFrame({**counts, "beta": beta, "standard_error": error, "n_steps": n_steps})
    fits["log_likelihood"] = np.where(exists, log_likelihood, np.nan)
    fits["status"] = [status_text(*of) for of in zip(status.tolist(), beta.tolist(), strict=True)]
    rows_of_fits = zip(fits.to_dict("records"), several, strict=True)
    return [Temperature(**row, ties=ties, n_clusters=n, n_effective_clusters=x) for row, (n, x) in rows_of_fits]


def _over_clusters(
    beta: float, weight: Float, difference: Float, target: Float, cluster: NDArray[np.intp]
) -> tuple[float, tuple[int, float]]:
    """Return the root of the clusters' summed squared scores, how many clusters there are, and how many effective ones.

    NaN with one cluster of several battles. All but ``beta`` are by battle.
    """
    _, row, size = np.unique(cluster, return_inverse=True, return_counts=True)
    n = len(size)
    if n == 0:
        return 0.0, (0, np.nan)
    alone = weight * difference * (target - expit(beta * difference))  # derivatives of log-likelihoods
    if (size == 1).all():  # independent battles have no factor
        return float(np.sqrt(np.bincount(np.zeros_like(row), alone**2)[0])), (n, float(n))
    p = expit(beta * difference)
    information = np.bincount(row, weight * difference**2 * p * (1 - p), n)
    factor = cluster_factors(information) if information.any() else np.ones(n)
    squares = (factor * np.bincount(row, alone, n)) ** 2
    return float(np.sqrt(squares.sum())), (n, effective_clusters(size))
