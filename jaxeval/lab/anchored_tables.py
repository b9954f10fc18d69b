"""Tabulate what verdicts against a reference give beside their scores, as far as their columns allow."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from jaxeval.anchored.direct_scoring import direct_score_agreement, direct_win_probability, dispersion
from jaxeval.anchored.elo import checked_prior
from jaxeval.anchored.pooling import task_heterogeneity
from jaxeval.anchored.reliability import judge_kappas, reliability_factor
from jaxeval.anchored.scores import anchored_scores
from jaxeval.arrays import Float
from jaxeval.checks import checked_finite, checked_integer
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.data.columns import reject_missing, require_column
from jaxeval.data.numbers import numbers
from jaxeval.errors import DataError
from jaxeval.show.shown import Shown
from jaxeval.show.table import Table
from jaxeval.wording import counted

#: An answer is left out where its scores of 1 to 10 vary over runs by a larger standard deviation (Appendix E.2).
_DIRECT_DEVIATION = 0.5
_NEAR = 20.0


@dataclass(frozen=True, eq=False, repr=False)
class Abstention(Shown):
    """Scores with and without the answers on which a judge's runs disagree, or about which the judge is not sure.

    ``table`` has a row per model, judge and reference: ``coverage``, the share of answers kept; ``probability`` and
    ``rating`` of all and of the ``trusted`` ones, and the shifts. ``summary`` has a row per model and reference: mean
    coverage, and the standard error and the coefficient of variation over judges, before and after.
    """

    table: pd.DataFrame
    summary: pd.DataFrame
    trusted: AnchoredVerdicts
    threshold: float | None
    confidence: float | None = None


def abstain(
    verdicts: AnchoredVerdicts,
    threshold: float = 0.25,
    *,
    confidence: float | None = None,
    by_runs: bool | None = None,
    prior: float = 0.5,
) -> Abstention:
    """Leave out answers on which a judge's runs disagree, or about which it is unsure (Tables 6 and 12).

    By runs: the outcome varies over a judge's runs by a standard deviation above ``threshold``. The deviation is that
    of K outcomes of 1, 1/2 or 0, with the divisor K. An answer that was judged once has none, and is left out.

    By stated confidence: its mean over a judge's runs is below ``confidence``, or none was stated. Answers are then
    left out by runs, too, only with ``by_runs=True``.

    A model and judge that lose all answers keep a row with coverage 0.

    Raises:
        DataError: there is one run only, no confidence was stated, or nothing is left.
        ValueError: the threshold is negative or not finite, or the confidence is out of [0, 1].
    """
    cell, _ = verdicts.groups(["model", "judge", "anchor", "item"])
    times = np.bincount(cell)
    kept = np.ones(len(times), bool)
    left_out = []
    threshold = checked_finite("threshold", threshold, 0, ": it is a standard deviation")
    runs_count = confidence is None if by_runs is None else by_runs
    if runs_count:
        if len(verdicts.levels["run"]) < 2:
            raise DataError("abstention needs repeated runs: name the column that numbers them (run=, --run)")
        mean = np.bincount(cell, verdicts.outcome) / times
        variance = np.bincount(cell, (verdicts.outcome - mean[cell]) ** 2) / times
        kept &= (times > 1) & (np.sqrt(variance) <= threshold + 1e-12)
        left_out.append(f"vary by more than {threshold:g} between runs, or have one run")
    if confidence is not None:
        if not 0 <= checked_finite("confidence", confidence) <= 1:
            raise ValueError(f"confidence must lie in [0, 1], got {confidence!r}")
        if verdicts.confidence is None:
            raise DataError("no confidence was stated: there is neither a column 'confidence', nor one in the replies")
        stated = np.bincount(cell, verdicts.confidence) / times
        kept &= stated >= confidence - 1e-12
        left_out.append(f"have a confidence below {confidence:g}, or none")
    if not kept.any():
        raise DataError(f"all answers {', or '.join(left_out)}: nothing is left")
    trusted = verdicts.take(kept[cell])
    by = ["model", "judge", "anchor"]
    before, after = (anchored_scores(v, by, prior=prior).set_index(by) for v in (verdicts, trusted))
    columns = ["n_items", "probability", "probability_se", "rating"]
    table = before[columns].join(after[columns].add_suffix("_trusted"))
    table["n_items_trusted"] = table["n_items_trusted"].fillna(0).astype(int)
    table.insert(0, "coverage", table["n_items_trusted"] / table["n_items"])
    table["probability_shift"] = table["probability_trusted"] - table["probability"]
    table["rating_shift"] = table["rating_trusted"] - table["rating"]
    rows = []
    for key, block in table.groupby(level=["model", "anchor"], sort=False):
        spreads = [(block[f"probability_se{end}"].mean(), _cv(block[f"probability{end}"])) for end in ("", "_trusted")]
        rows.append((*key, block["coverage"].mean(), *spreads[0], *spreads[1]))
    names = ["model", "anchor", "coverage", "standard_error", "cv", "standard_error_trusted", "cv_trusted"]
    return Abstention(
        table.reset_index(), pd.DataFrame(rows, columns=names), trusted, threshold if runs_count else None, confidence
    )


def summarised_scores(
    verdicts: AnchoredVerdicts,
    by: Sequence[str] = ("model", "anchor"),
    *,
    strong: Sequence[Hashable] = (),
    prior: float = 0.5,
) -> pd.DataFrame:
    """Return means of anchored scores over judges, with the errors that all judges, and the strong ones alone, leave.

    These are Table 3 of the paper that `anchored_scores` names (by model and anchor), and its Tables 4, 10 and 11 (by
    model and task): a row for each of the roles ``by``. ``cv`` is the coefficient of variation of the probability over
    judges, ``..._se`` the mean of the judges' own errors, and ``..._se_of_mean`` that of the mean by their spread. With
    ``strong`` judges, as a screen names them, the four errors again of these alone (``..._strong``), and the share by
    which they make the errors of the means smaller (``..._reduction``). One without verdicts is a DataError.
    """
    scores = anchored_scores(verdicts, [*by, "judge"], prior=prior)
    unknown = [judge for judge in strong if judge not in set(scores["judge"])]
    if unknown:
        raise DataError(f"no verdicts of {counted(len(unknown), 'strong judge')}: {', '.join(map(str, unknown))}")
    table = _over_judges(scores, by)
    if len(strong):
        errors = [name for name in table.columns if "_se" in name]
        of_strong = _over_judges(scores[scores["judge"].isin(list(strong))], by)[errors]
        table = table.join(of_strong.add_suffix("_strong"))
        for name in ("probability", "rating"):
            whole, part = (table[f"{name}_se_of_mean{end}"] for end in ("", "_strong"))
            table[f"{name}_se_reduction"] = 1 - part / whole.where(whole > 0)
    return Table.of(table.reset_index(), "Anchored scores over judges", (*by, "rating"))


def _over_judges(scores: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    grouped = scores.groupby(list(by), sort=False, observed=True)
    table = grouped.agg(
        n_judges=("judge", "size"), probability=("probability", "mean"), probability_se=("probability_se", "mean"),
        rating=("rating", "mean"), rating_se=("rating_se", "mean"), cv=("probability", _cv),
    )  # fmt: skip
    for name in ("probability", "rating"):
        table[f"{name}_se_of_mean"] = grouped[name].std(ddof=1) / np.sqrt(table["n_judges"])
    return table


def _cv(values: pd.Series) -> float:
    return float(values.std(ddof=1) / values.mean()) if values.count() > 1 else np.nan


def prior_sensitivity(
    verdicts: AnchoredVerdicts, by: str = "anchor", *, priors: tuple[float, float] = (0.5, 1.0)
) -> pd.DataFrame:
    """Return how far the prior moves the models' ratings: Jeffreys' beside Laplace's by default (Table 13).

    By value of ``by`` ("anchor" or "task"): Kendall's tau-b of the models' mean ratings over judges under either prior,
    their mean and largest absolute difference in Elo, and the share of models within 20 Elo.
    """
    boards = []
    for prior in priors:
        scores = anchored_scores(verdicts, [by, "model", "judge"], prior=prior)
        boards.append(scores.groupby([by, "model"], observed=True)["rating"].mean())
    both = pd.concat(boards, axis=1, keys=["one", "other"])
    rows = []
    for value, block in both.groupby(level=by, sort=False):
        apart = (block["one"] - block["other"]).abs()
        tau = float(scipy.stats.kendalltau(block["one"], block["other"]).statistic) if len(block) > 1 else np.nan
        rows.append((value, tau, apart.mean(), apart.max(), float((apart <= _NEAR).mean()), len(block)))
    return pd.DataFrame(rows, columns=[by, "kendall", "mean_difference", "largest_difference", "within_20", "n_models"])


def guarded_scores(frame: pd.DataFrame, *, confidence: float | None = None, prior: float = 0.5) -> pd.DataFrame:
    """Return direct and anchored scores with and without the answers that judges are not sure of (Table 6).

    The ``frame`` has a row per model, judge, item and run with ``verdict`` ("win", "tie", "loss"), ``score``,
    ``reference_score`` and, if answers are left out by it, ``confidence``. Without `abstain`'s ``confidence`` an
    answer's direct scores are left out where their standard deviation over runs is above 0.5.

    A row per model, method ("direct", "anchored") and filter ("none", "trusted") has the mean ``standard_error`` of the
    probability, its coefficient of variation over judges, and the ``coverage``, the share of answers kept. A column
    that is missing is a DataError, and so is a filter that leaves nothing.
    """
    require_column(frame, "model", "judge", "item", "verdict", "score", "reference_score")
    reject_missing(frame["verdict"].isna().to_numpy(), "verdict")
    abstention = abstain(AnchoredVerdicts.from_pandas(frame), confidence=confidence, prior=prior)
    rows: list[tuple[Any, ...]] = []
    for model, block in abstention.summary.groupby("model", sort=False):
        rows.append((model, "anchored", "none", block["standard_error"].mean(), block["cv"].mean(), 1.0))
        rows.append((model, "anchored", "trusted", block["standard_error_trusted"].mean(), block["cv_trusted"].mean(),
                     block["coverage"].mean()))  # fmt: skip
    answer = [c for c in ("model", "judge", "anchor", "task", "item") if c in frame]
    if confidence is None:
        spread = numbers(frame["score"], "score").reshape(-1)
        deviation = frame.assign(_score=spread).groupby(answer, observed=True)["_score"].transform("std", ddof=0)
        kept = deviation.to_numpy() <= _DIRECT_DEVIATION
    else:
        kept = frame.groupby(answer, observed=True)["confidence"].transform("mean").to_numpy() >= confidence - 1e-12
    if not kept.any():
        vary, unsure = f"vary by more than {_DIRECT_DEVIATION:g} between runs", f"have a confidence below {confidence}"
        raise DataError(f"no direct score is left: all answers {vary if confidence is None else unsure}")
    n_all = _n_answers(frame, answer)
    for name, part in (("none", frame), ("trusted", frame[kept])):
        direct = direct_win_probability(part)
        share = (_n_answers(part, answer) / n_all).fillna(0.0).groupby(level="model").mean()
        for model, block in direct.groupby("model", sort=False):
            rows.append(
                (model, "direct", name, block["standard_error"].mean(), _cv(block["probability"]), share[model])
            )
    columns = ["model", "method", "filter", "standard_error", "cv", "coverage"]
    return pd.DataFrame(rows, columns=columns).sort_values(["model", "method", "filter"], ignore_index=True)


def _n_answers(frame: pd.DataFrame, answer: list[str]) -> pd.Series:
    """Return how many answers of each model a judge has judged, by both."""
    return frame.drop_duplicates(answer).groupby(["model", "judge"], observed=True).size()


#: Columns of direct scores.
DIRECT = ("score", "reference_score")
_SIZES = (16, 24, 32, 40, 64, 80, 120)
_REPEATS = 400
_HELD = 2**22  # outcomes held at a time


def method_tables(
    verdicts: AnchoredVerdicts, direct: pd.DataFrame | None = None, *, strong: Sequence[Hashable] = (),
    confidence: float | None = None, prior: float = 0.5, seed: int = 0,
) -> tuple[dict[str, pd.DataFrame], list[str]]:  # fmt: skip
    """Return tables by name, and a sentence on each table that the verdicts do not allow.

    Args:
        verdicts: the verdicts.
        direct: as in `guarded_scores`.
        strong: judges that passed the screen.
        confidence: leave out answers with a stated confidence below this, beside those on which runs disagree.
        prior: as in `anchored_elo`.
        seed: of the subsamples of prompts.
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
        add("dispersion", lambda: dispersion(
            direct_win_probability(direct), anchored_scores(verdicts, roles, prior=prior)
        ).reset_index())  # fmt: skip
        if several["run"] or confidence is not None:
            add("guarded", lambda: guarded_scores(direct, confidence=confidence, prior=prior))
    return tables, left_out


def heterogeneity(verdicts: AnchoredVerdicts, *, prior: float = 0.5) -> pd.DataFrame:
    """Return the variance tau^2 of a model's win probability over tasks (DerSimonian and Laird), mean over judges."""
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

    Its kappa is that of `reliability_factor`, or 1 without any. Fewer prompts than the smallest size are a DataError.
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
    outcomes: ArrayLike, sizes: ArrayLike = (16, 24, 32, 40, 64, 80, 120), *, kappa: float = 1.0, prior: float = 0.5,
    n_repeats: int = 1000, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
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
    errors = {"theoretical": theoretical, "corrected": corrected, "adjusted": kappa * corrected}
    table = pd.DataFrame({"n": n, "empirical": empirical, **errors})
    for name, error in errors.items():
        table[f"empirical_over_{name}"] = np.divide(empirical, error, out=np.full(len(n), np.nan), where=error > 0)
    return table
