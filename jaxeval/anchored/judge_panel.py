"""A panel of judges of the same answers: their runs side by side, and how far they agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from jaxeval.arrays import Float, Int
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.statistics.rater_agreement import cohen_kappa
from jaxeval.wording import counted


@dataclass(frozen=True, eq=False)
class JudgePanel:
    """Outcomes (J, R, K) of R answers by judge and run, NaN where there is none; ``item`` (R,) of every answer.

    Runs are numbered within each judge, so that judges need not name them alike; judge j has ``n_runs[j]`` of them.
    """

    item: Int
    outcome: Float
    n_runs: Int

    def run_means(self) -> Float:
        """(J, R) means over the runs that there are, NaN where there is none."""
        there = ~np.isnan(self.outcome)
        with np.errstate(invalid="ignore"):
            return np.where(there, self.outcome, 0.0).sum(-1) / there.sum(-1)


def judge_panel(verdicts: AnchoredVerdicts) -> JudgePanel:
    """The verdicts by judge, answer and run."""
    number, answers = verdicts.groups(["model", "anchor", "item"])
    items = np.empty(len(answers), np.int64)
    items[number] = verdicts.number["item"]
    run, n_runs = runs_of_judges(verdicts)
    tables = np.full((len(n_runs), len(answers), n_runs.max()), np.nan)
    tables[verdicts.number["judge"], number, run] = verdicts.outcome
    return JudgePanel(items, tables, n_runs)


def runs_of_judges(verdicts: AnchoredVerdicts) -> tuple[Int, Int]:
    """(N,) number of each verdict's run among those of its judge, and (J,) how many each judge has."""
    judge = verdicts.number["judge"]
    used = np.zeros((len(verdicts.levels["judge"]), len(verdicts.levels["run"])), bool)
    used[judge, verdicts.number["run"]] = True
    return (used.cumsum(1) - 1)[judge, verdicts.number["run"]], used.sum(1)


def judge_kappas(verdicts: AnchoredVerdicts) -> pd.DataFrame:
    """(J, J) Cohen's kappa between judges over win, tie and loss of the same answers, run by run.

    Raises:
        DataError: outcomes are not verdicts of win, tie and loss.
    """
    if not np.isin(verdicts.outcome, (0.0, 0.5, 1.0)).all():
        raise DataError("Cohen's kappa needs verdicts of win, tie and loss, and some outcomes lie between them")
    tables = judge_panel(verdicts).outcome
    answers = tables.reshape(len(tables), -1)
    one_hot = np.stack([answers == c for c in (0.0, 0.5, 1.0)], -1).astype(float)  # (J, R K, 3)
    _, _, kappa = cohen_kappa(np.einsum("iab,jac->ijbc", one_hot, one_hot))
    judges = verdicts.levels["judge"].rename("judge")
    return pd.DataFrame(kappa, judges, judges)


def reliability_factor(kappas: pd.DataFrame) -> float:
    """Root of the mean Cohen's kappa over pairs of judges, the ``kappa`` of `anchored_elo`.

    It is an empirical shrinkage of standard errors, not a correction: the less judges agree, the shorter it makes them.

    Raises:
        ValueError: there is one judge only, or the mean is not positive.
    """
    values = kappas.to_numpy()
    pairs = values[np.triu_indices(len(values), 1)]
    mean = np.nanmean(pairs) if np.isfinite(pairs).any() else np.nan
    if not mean > 0:
        raise ValueError(
            f"the mean kappa of {counted(len(pairs), 'pair')} of judges is {mean:.3g}, and a reliability factor needs "
            "one above 0"
        )
    return float(np.sqrt(mean))
