"""All tables that verdicts against a reference give beside their scores, as far as their columns allow."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
import pandas as pd

from jaxeval.anchored.abstention import abstain
from jaxeval.anchored.direct_scoring import direct_score_agreement, direct_win_probability, dispersion
from jaxeval.anchored.judge_panel import judge_kappas, reliability_factor
from jaxeval.anchored.pooling import task_heterogeneity
from jaxeval.anchored.prompt_subsampling import subsample_study
from jaxeval.anchored.score_tables import guarded_scores, prior_sensitivity, summarised_scores
from jaxeval.anchored.scores import anchored_scores
from jaxeval.arrays import Float
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.wording import counted

#: Columns of direct scores.
DIRECT = ("score", "reference_score")
_SIZES = (16, 24, 32, 40, 64, 80, 120)
_REPEATS = 400


def method_tables(
    verdicts: AnchoredVerdicts,
    direct: pd.DataFrame | None = None,
    *,
    strong: Sequence[Hashable] = (),
    confidence: float | None = None,
    prior: float = 0.5,
    seed: int = 0,
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Tables by name, and a sentence on each table that the verdicts do not allow.

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
    for (model, anchor), own in scores.groupby(["model", "anchor"], sort=False, observed=True):
        of_judges = [block for _, block in own.groupby("judge", observed=True) if len(block) > 1]
        if of_judges:
            found = [task_heterogeneity(block["probability"], block["probability_se"]) for block in of_judges]
            rows.append((model, anchor, float(np.mean(found)), int(own["task"].nunique())))
    if not rows:
        raise DataError("no judge saw a model in two tasks")
    return pd.DataFrame(rows, columns=["model", "anchor", "tau_squared", "n_tasks"])


def prompt_subsamples(verdicts: AnchoredVerdicts, *, prior: float = 0.5, seed: int = 0) -> pd.DataFrame:
    """`subsample_study` of the prompts that all models and judges have under each reference (Table 9).

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
        found = counted(len(outcomes), "prompt has", "prompts have")
        raise DataError(f"{found} the verdicts of all models and judges: subsamples need {_SIZES[0]} or more")
    try:
        kappa = min(reliability_factor(judge_kappas(verdicts)), 1.0)
    except ValueError:
        kappa = 1.0
    return subsample_study(outcomes, sizes, kappa=kappa, prior=prior, n_repeats=_REPEATS, seed=seed)
