"""All tables that verdicts against a reference give beside their scores, as far as their columns allow."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from jaxeval.anchored.direct_scoring import direct_score_agreement, direct_win_probability, dispersion
from jaxeval.anchored.elo import checked_prior
from jaxeval.anchored.pooling import task_heterogeneity
from jaxeval.anchored.reliability import judge_kappas, reliability_factor
from jaxeval.anchored.score_tables import abstain, guarded_scores, prior_sensitivity, summarised_scores
from jaxeval.anchored.scores import anchored_scores
from jaxeval.arrays import Float
from jaxeval.checks import checked_integer
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.wording import counted

#: Columns of direct scores.
DIRECT = ("score", "reference_score")
_SIZES = (16, 24, 32, 40, 64, 80, 120)
_REPEATS = 400
_HELD = 2**22  # outcomes held at a time


def method_tables(
    verdicts: AnchoredVerdicts,
    direct: pd.DataFrame | None = None,
    *,
    strong: Sequence[Hashable] = (),
    confidence: float | None = None,
    prior: float = 0.5,
    seed: int = 0,
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Return tables by name, and a sentence on each table that the verdicts do not allow.

    Args:
        verdicts: the verdicts.
        direct: a row per verdict with the columns of its roles, ``verdict``, ``score`` and ``reference_score``.
        strong: judges that passed the screen.
        confidence: leave out answers with a stated confidence below this, beside those on which runs disagree.
        prior: as in `anchored_elo`.
        seed: of the subsamples of prompts.

    Returns:
        ``summary``, means over judges; ``kappas``, Cohen's kappa between judges; ``prior``, ratings under another one;
        ``abstention``, scores without answers that judges are not sure of; ``heterogeneity``, tau^2 between tasks;
        ``subsamples``, errors by the number of prompts; and of direct scores ``direct_agreement``, ``dispersion`` and
        ``guarded``.
    """
    several = {role: len(verdicts.levels[role]) > 1 for role in ("judge", "task", "run")}
    tables: dict[str, pd.DataFrame] = {}
    left_out: list[str] = []

    def add(name: str, make: Callable[[], pd.DataFrame]) -> None:
        try:
            tables[name] = make()
        except (DataError, ValueError) as error:
            left_out.append(f"no table {name!r}: {error}")

    if several["judge"]:
        by = ["model", "anchor", *(["task"] if several["task"] else [])]
        add("summary", lambda: summarised_scores(verdicts, by, strong=strong, prior=prior))
        add("kappas", lambda: judge_kappas(verdicts).reset_index())
    other = (prior, 1.0 if prior == 0.5 else 0.5)
    add("prior", lambda: prior_sensitivity(verdicts, "task" if several["task"] else "anchor", priors=other))
    if several["run"] or confidence is not None:
        add("abstention", lambda: abstain(
            verdicts, confidence=confidence, by_runs=several["run"], prior=prior
        ).summary)  # fmt: skip
    if several["task"]:
        add("heterogeneity", lambda: heterogeneity(verdicts, prior=prior))
    add("subsamples", lambda: prompt_subsamples(verdicts, prior=prior, seed=seed))
    if direct is not None:
        add("direct_agreement", lambda: direct_score_agreement(direct))
        roles = ["model", "judge", *(["anchor"] if "anchor" in direct else [])]

        def spread() -> pd.DataFrame:
            anchored = anchored_scores(verdicts, roles, prior=prior)
            return dispersion(direct_win_probability(direct), anchored).reset_index()

        add("dispersion", spread)
        if several["run"] or confidence is not None:
            add("guarded", lambda: guarded_scores(direct, confidence=confidence, prior=prior))
    return tables, left_out


def heterogeneity(verdicts: AnchoredVerdicts, *, prior: float = 0.5) -> pd.DataFrame:
    """Variance tau^2 between tasks of each model's win probability, by DerSimonian and Laird, averaged over judges.

    Returns:
        A row per model and anchor that several tasks have: ``tau_squared``, and ``n_tasks``.
    """
    scores = anchored_scores(verdicts, ["model", "anchor", "judge", "task"], prior=prior)
    rows = []
    for (model, anchor), scores_of_model in scores.groupby(["model", "anchor"], sort=False, observed=True):
        of_judges = [block for _, block in scores_of_model.groupby("judge", observed=True) if len(block) > 1]
        if of_judges:
            variances = [task_heterogeneity(block["probability"], block["probability_se"]) for block in of_judges]
            rows.append((model, anchor, float(np.mean(variances)), int(scores_of_model["task"].nunique())))
    if not rows:
        raise DataError("no judge saw a model in two tasks")
    return pd.DataFrame(rows, columns=["model", "anchor", "tau_squared", "n_tasks"])


def prompt_subsamples(verdicts: AnchoredVerdicts, *, prior: float = 0.5, seed: int = 0) -> pd.DataFrame:
    """Return `subsample_study` of the prompts that all models and judges have under each reference (Table 9).

    The reliability factor is that of `reliability_factor`, or 1 where judges have none.

    Raises:
        DataError: fewer prompts than the smallest size have all verdicts.
    """
    roles = ["item", "model", "judge", "anchor"]
    frame = pd.DataFrame({role: verdicts.number[role] for role in roles}).assign(outcome=verdicts.outcome)
    wide = frame.pivot_table(index="item", columns=roles[1:], values="outcome", aggfunc="mean")
    outcomes: Float = wide.dropna().to_numpy(float)
    sizes = [n for n in _SIZES if n <= len(outcomes)]
    if not sizes:
        complete = counted(len(outcomes), "prompt has", "prompts have")
        raise DataError(f"{complete} the verdicts of all models and judges: subsamples need {_SIZES[0]} or more")
    try:
        kappa = min(reliability_factor(judge_kappas(verdicts)), 1.0)
    except ValueError:
        kappa = 1.0
    return subsample_study(outcomes, sizes, kappa=kappa, prior=prior, n_repeats=_REPEATS, seed=seed)


def subsample_study(
    outcomes: ArrayLike,
    sizes: ArrayLike = (16, 24, 32, 40, 64, 80, 120),
    *,
    kappa: float = 1.0,
    prior: float = 0.5,
    n_repeats: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Give empirical and theoretical standard errors of the win probability of n prompts out of the M in ``outcomes``.

    All sizes are one batch, with as many repeats as fit the memory: a repeat is a random order of the prompts, a size
    its first n.

    Args:
        outcomes: (M,) or (M, G) outcomes of each prompt (averages over runs), of G models or judges.
        sizes: n, up to M.
        kappa: reliability factor of the adjusted error.
        n_repeats: random orders R.

    Returns:
        A row per size: ``empirical`` standard deviation over repeats (mean over G), ``theoretical`` Beta error,
        ``corrected`` for the finite pool, ``adjusted`` by kappa too, and the empirical one over each; NaN where that is
        0, as of the whole pool.

    Raises:
        ValueError: outcomes lie outside of [0, 1] or are missing, a size is no whole number between 1 and M, or there
            is no repeat.
    """
    values = np.asarray(outcomes, float)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"outcomes must be (M,) or (M, G) numbers in [0, 1], none missing; got shape {values.shape}")
    m, n_of_size = len(values), np.asarray(sizes, float)
    if n_of_size.ndim != 1 or not ((n_of_size >= 1) & (n_of_size <= m) & (n_of_size == np.rint(n_of_size))).all():
        raise ValueError(f"sizes must be whole numbers between 1 and the {counted(m, 'prompt')}, got {sizes!r}")
    prior, given_kappa = checked_prior(prior), np.asarray(kappa, float)
    if given_kappa.ndim or not 0 < given_kappa <= 1:
        raise ValueError(f"kappa must lie in (0, 1], got {kappa!r}")
    checked_integer("n_repeats", n_repeats, 1)
    n = n_of_size.astype(int)
    rng = np.random.default_rng(seed)
    total = np.empty((n_repeats, len(n), values.shape[1]))
    size = max(1, _HELD // max(m, n.max(initial=1) * values.shape[1]))
    for start in range(0, n_repeats, size):
        part = total[start : start + size]
        order = rng.permuted(np.broadcast_to(np.arange(m), (len(part), m)), axis=1)[:, : n.max(initial=0)]
        part[:] = np.cumsum(values[order], axis=1)[:, n - 1]
    a, b = total + prior, n[:, None] - total + prior
    left = (m - n) / max(m - 1, 1)
    beta = np.sqrt(a * b / ((a + b) ** 2 * (a + b + 1)))
    theoretical = beta.mean((0, 2))
    corrected = theoretical * np.sqrt(left)
    empirical = (a / (a + b)).std(0, ddof=1).mean(1) if n_repeats > 1 else np.full(len(n), np.nan)
    empirical = np.where(n == m, 0 * empirical, empirical)  # the same prompts in other orders
    table = pd.DataFrame(
        {
            "n": n,
            "empirical": empirical,
            "theoretical": theoretical,
            "corrected": corrected,
            "adjusted": kappa * corrected,
        }
    )
    for name in ("theoretical", "corrected", "adjusted"):
        error = table[name].to_numpy()
        table[f"empirical_over_{name}"] = np.divide(empirical, error, out=np.full(len(n), np.nan), where=error > 0)
    return table
