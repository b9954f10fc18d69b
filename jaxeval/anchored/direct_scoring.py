"""Direct 1-10 scoring, the baseline: its tails, its agreement between judges, and its map to a win probability."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from jaxeval.arrays import Float, Int, as_leaf
from jaxeval.data.columns import plain, reject_missing, require_column
from jaxeval.data.numbers import numbers
from jaxeval.errors import DataError
from jaxeval.kernels.solve import SolveStep, Terms, loop
from jaxeval.statistics.rater_agreement import cohen_kappa, label_table
from jaxeval.wording import counted, named

_TERMS, _HALVINGS = Terms.of(0.0, 1e-9, 100), 27  # of a step that does not lower the loss
_RIDGE = 1e-6  # of the slope: a finite maximum where the scores tell the levels apart
#: Status of verdicts that are all wins, all ties or all losses.
ONE_LEVEL = "one level"
#: Columns that tell answers of a model apart.
_ANSWER = ("task", "anchor", "item")


def direct_score_statistics(frame: pd.DataFrame, score: str = "score", *, top: float = 10.0) -> pd.DataFrame:
    """Return mean, standard deviation, excess kurtosis and ceiling share of a judge's scores of a model (Table 8)."""
    _require(frame, ("model", "judge"), (score,))
    values = frame.assign(_score=numbers(frame[score], score))
    grouped = values.groupby(["judge", "model"], sort=True, observed=True)["_score"]
    return grouped.agg(
        n="size", mean="mean", sd="std", kurtosis=lambda x: float(scipy.stats.kurtosis(x)) if np.ptp(x) > 0 else np.nan,
        ceiling=lambda x: float((x >= top).mean()),
    ).reset_index()  # fmt: skip


def direct_score_agreement(frame: pd.DataFrame, score: str = "score") -> pd.DataFrame:
    """Return mean Pearson's r, Kendall's tau-b and Cohen's kappa of pairs of judges' scores, by model (Table 1).

    r and tau compare the judges' means over runs of the same answer; kappa their whole scores, rounded. Answers are
    told apart by item and, where there are such columns, by task and anchor.
    """
    _require(frame, ("model", "judge", "item"), (score,))
    answer = [c for c in _ANSWER if c in frame]
    frame = frame.assign(_score=numbers(frame[score], score))
    rows = []
    for model, block in frame.groupby("model", sort=True, observed=True):
        wide = block.pivot_table(index=answer, columns="judge", values="_score", aggfunc="mean", observed=True)
        r, tau, kappa = [], [], []
        for a, b in combinations(wide.columns, 2):
            x, y = wide[[a, b]].dropna().to_numpy().T
            if len(x) < 2:
                continue
            varies = np.ptp(x) > 0 and np.ptp(y) > 0
            r.append(np.corrcoef(x, y)[0, 1] if varies else np.nan)
            tau.append(scipy.stats.kendalltau(x, y).statistic if varies else np.nan)
            x, y = np.rint(x), np.rint(y)
            kappa.append(float(cohen_kappa(label_table(x, y, np.unique(np.concatenate([x, y]))))[2]))
        means = [float(np.nanmean(v)) if np.isfinite(v).any() else np.nan for v in (r, tau, kappa)]
        rows.append((model, *means, len(r)))
    return pd.DataFrame(rows, columns=["model", "pearson", "kendall", "kappa", "n_pairs"])


def _require(frame: pd.DataFrame, roles: tuple[str, ...], values: tuple[str, ...]) -> None:
    """Require columns, without a missing model, judge or answer: such rows would be left out in silence."""
    require_column(frame, *roles, *values)
    for column in dict.fromkeys((*roles, *_ANSWER)):
        if column in frame:
            reject_missing(frame[column].isna().to_numpy(), column)


def direct_win_probability(
    frame: pd.DataFrame, score: str = "score", reference_score: str = "reference_score", verdict: str = "verdict"
) -> pd.DataFrame:
    """Return win probabilities from direct scores, on the scale of the reference-anchored ones.

    Every judge's verdicts against a reference are regressed on the difference of its scores by a cumulative logit,
    P(loss) = s(c1 - b d), P(loss or tie) = s(c2 - b d); a model's probability is the mean of P(win) + P(tie) / 2 over
    its answers.

    Another sample of items would change the answers that are averaged, and also the map (c1, c2, b). The standard error
    counts both: it is the sandwich of the stacked estimating equations (M-estimation, DOI 10.1198/000313002753631330),
    and the items are its independent units. In simulations with 20 to 300 items it was 0.96 to 1.06 times the true
    standard deviation. An error that takes the map as known is 0.2 to 0.65 times the true one for noisy judges.

    Returns:
        A row per model, judge and, with a column "anchor", reference: ``probability``, ``standard_error`` over items,
        ``slope`` b, ``status`` ("ok", or "separated", "quasi-separated" or "one level", as `cumulative_logit` has it).
        Verdicts of one level leave the error unknown, and it is NaN.

    Raises:
        DataError: a column is missing or a verdict unknown.
    """
    _require(frame, ("model", "judge", "item"), (score, reference_score, verdict))
    unknown = ~frame[verdict].isin(["win", "tie", "loss"])
    if unknown.any():
        counts = frame.loc[unknown, verdict].value_counts(dropna=False)
        words = ["missing" if pd.isna(value) else repr(plain(value)) for value in counts.index]
        shown = named([f"{word} ({n:,})" for word, n in zip(words, counts, strict=True)], 5)
        raise DataError(
            f"column {verdict!r} has {counted(unknown.sum(), 'value that is', 'values that are')} not 'win', 'tie' or "
            f"'loss': {shown}"
        )
    difference = numbers(frame[score], score) - numbers(frame[reference_score], reference_score)
    level = frame[verdict].map({"loss": 0, "tie": 1, "win": 2}).to_numpy()
    frame = frame.reset_index(drop=True)
    answer = [c for c in ("task", "item") if c in frame]
    by = ["judge", *(c for c in ("anchor",) if c in frame)]
    rows: list[tuple[Any, ...]] = []
    for key, where in frame.groupby(by, sort=True, observed=True).indices.items():
        theta, status = cumulative_logit(difference[where], level[where])
        part = frame.loc[where]
        items = part.groupby(answer, observed=True).ngroup().to_numpy()
        model, models = pd.factorize(part["model"], sort=True)
        probability, error = _mapped_means(difference[where], level[where], items, model, theta)
        if status == ONE_LEVEL:
            error = np.full_like(error, np.nan)
        judge = key if isinstance(key, tuple) else (key,)
        rows += [(m, *judge, p, e, theta[2], status) for m, p, e in zip(models, probability, error, strict=True)]
    columns = ["model", *by, "probability", "standard_error", "slope", "status"]
    return pd.DataFrame(rows, columns=columns).sort_values(["model", *by], ignore_index=True)


def _mapped_means(x: Float, level: Int, item: Int, model: Int, theta: Float) -> tuple[Float, Float]:
    """Return (M,) mean probabilities of the models by one judge's map ``theta``, and their standard errors.

    The map is that of `cumulative_logit` from the same differences ``x`` (N,) of scores and verdicts ``level``, 0 a
    loss to 2 a win. A model's runs of one item are averaged first; a model with one item has no error.
    """
    n_items, n_models = item.max() + 1, model.max() + 1
    cell, number = np.unique(item * n_models + model, return_inverse=True)
    weight = 1 / np.bincount(number)[number]  # of a run among those of its model's item
    of_item, of_model = np.divmod(cell, n_models)
    n = np.bincount(of_model, minlength=n_models)
    below = _below(x, theta)
    each = np.bincount(number, weight * (1 - below.mean(1)))
    mean = np.bincount(of_model, each) / n
    # An item has two influences: its own term in the mean, and how far its verdicts move the map.
    contributions = np.zeros((n_items, n_models))
    contributions[of_item, of_model] = (each - mean[of_model]) / n[of_model]
    by_cut = -(below * (1 - below)) / 2  # (N, 2) derivatives of the probabilities
    slopes = np.stack([*by_cut.T, -x * by_cut.sum(1)], axis=1)
    gradient = np.zeros((n_models, 3))
    np.add.at(gradient, model, (weight / n[model])[:, None] * slopes)
    values, which, count = _level_counts(x, level)
    free = _free(count)
    _, information = _loss_derivatives(values, count, theta, free)
    scores = np.zeros((n_items, 3))
    np.add.at(scores, item, _derivatives(values, theta)[0][which, level])
    influence = contributions + scores @ free @ np.linalg.solve(information, free.T) @ gradient.T
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (influence**2).sum(0) * n / (n - 1)
    return mean, np.sqrt(np.where(n > 1, variance, np.nan))


def cumulative_logit(x: Float, level: Int) -> tuple[Float, str]:
    """Return cuts c1 <= c2 and slope b of P(level <= k) = s(c_k - b x), k = 0, 1, by Newton's method, and a status.

    The status is "separated" where x predicts every level, as the levels follow each other along x; "quasi-separated"
    where the last x of one level may be the first of the next; "one level" where there is only one. The likelihood then
    has no finite maximum, and a ridge of 1e-6 on b stops the fit at a finite value. Else the status is "ok".
    """
    values, _, count = _level_counts(x, level)
    total = count.sum()
    shares = np.clip(np.cumsum(count.sum(0))[:2] / total, 1 / (total + 2), 1 - 1 / (total + 2))
    theta = np.array([*np.log(shares / (1 - shares)), 0.0])
    free = _free(count)
    theta[1] = max(theta[1], theta[0] + 1e-3) if len(free.T) == 3 else theta[0]

    def loss(theta: Float) -> float:
        p = _levels(values, theta)
        with np.errstate(divide="ignore"):
            each = np.where(count > 0, count * np.log(np.maximum(p, 1e-300)), 0.0)
        return _RIDGE * theta[2] ** 2 - float(each.sum())

    def step(theta: Any, _: Any, best: float) -> SolveStep:
        gradient, information = _loss_derivatives(values, count, theta, free)
        change: Any = -(free @ np.linalg.solve(information, gradient))
        for _ in range(_HALVINGS):
            trial = theta + change
            if trial[0] <= trial[1] and (lower := loss(trial)) <= best:
                return SolveStep(change, as_leaf(gradient, np.float64), lower, abs(change).max())
            change = change / 2
        return SolveStep(0 * change, as_leaf(gradient, np.float64), best, as_leaf(np.nan, np.float64))

    end, _ = loop(step, as_leaf(theta, np.float64), loss(theta), _TERMS)
    return np.asarray(end.theta), _separation(values, count)


def _separation(x: Float, count: Float) -> str:
    """Return whether sorted values x (D,) with the counts (D, 3) of levels there tell the levels apart."""
    present = [x[counts > 0] for counts in count.T if counts.any()]
    if len(present) < 2:
        return ONE_LEVEL
    for up in (present, [-counts[::-1] for counts in present]):  # larger x go with higher levels, or with lower
        gaps = [high[0] - low[-1] for low, high in pairwise(up)]
        if min(gaps) > 0:
            return "separated"
        if min(gaps) == 0 and up[-1][-1] > up[0][0]:
            return "quasi-separated"
    return "ok"


def _level_counts(x: Float, level: Int) -> tuple[Float, NDArray[np.intp], Float]:
    """Return (D,) sorted values of x (N,), the number of every row's value (N,), and (D, 3) counts of levels there."""
    values, which = np.unique(x, return_inverse=True)
    count = np.zeros((len(values), 3))
    np.add.at(count, (which, level), 1.0)
    return values, which, count


def _free(count: Float) -> Float:
    """Return (3, P) directions in which (c1, c2, b) may move: without ties in ``count`` (D, 3) the cuts are one."""
    # Newton's method would stop where the cuts meet.
    return np.eye(3) if count[:, 1].any() else np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


def _below(x: Float, theta: Float) -> Float:
    """Return (D, 2) probabilities of a loss, and of a loss or tie."""
    return np.asarray(scipy.special.expit(theta[:2] - theta[2] * x[:, None]))


def _levels(x: Float, theta: Float) -> Float:
    """Return (D, 3) probabilities of the levels."""
    below = _below(x, theta)
    return np.stack([below[:, 0], below[:, 1] - below[:, 0], 1 - below[:, 1]], axis=1)


def _derivatives(x: Float, theta: Float) -> tuple[Float, Float]:
    """Return (D, 3, 3) first and (D, 3, 3, 3) second derivatives of the levels' log-probabilities by (c1, c2, b)."""
    below = _below(x, theta)
    density = below * (1 - below)
    p = np.maximum(_levels(x, theta), 1e-12)
    of_level = np.array([[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])  # how the two cuts' probabilities make a level's
    direction = np.zeros((len(x), 2, 3))
    direction[:, 0, 0] = direction[:, 1, 1] = 1.0
    direction[:, :, 2] = -x[:, None]
    first = np.einsum("kc,dc,dci->dki", of_level, density, direction) / p[..., None]
    second = np.einsum("kc,dc,dci,dcj->dkij", of_level, density * (1 - 2 * below), direction, direction)
    return first, second / p[..., None, None] - first[..., :, None] * first[..., None, :]


def _loss_derivatives(x: Float, count: Float, theta: Float, free: Float) -> tuple[Float, Float]:
    """Return gradient and observed information of the penalised negative log-likelihood, by ``free`` (3, P)."""
    first, second = _derivatives(x, theta)
    gradient = -np.einsum("dk,dki->i", count, first) @ free
    information = -free.T @ np.einsum("dk,dkij->ij", count, second) @ free + 1e-9 * np.eye(free.shape[1])
    gradient[-1] += 2 * _RIDGE * theta[2]
    information[-1, -1] += 2 * _RIDGE
    return gradient, information


def dispersion(direct: pd.DataFrame, anchored: pd.DataFrame) -> pd.DataFrame:
    """Return standard error and coefficient of variation over judges, direct scoring beside anchored scores (Table 2).

    ``standard_error`` of the anchored scores is the paper's, by the Beta distribution, which is too large with ties or
    averaged runs. ``own_se`` compares like with like: both errors come from the prompts' own variance.

    Args:
        direct: as `direct_win_probability` returns it.
        anchored: `anchored_scores` by model and judge, of the same models and references.

    Raises:
        DataError: the tables have other models, judges or references.
    """
    by = ["model", "judge"]
    if "anchor" in direct:
        by.append("anchor")
    elif "anchor" in anchored and len(anchored["anchor"].unique()) > 1:
        raise DataError(
            "the anchored scores have several references, and the direct ones do not say which: add the column 'anchor'"
        )
    cells = [set(table[by].itertuples(index=False, name=None)) for table in (direct, anchored)]
    if cells[0] != cells[1]:
        other = sorted(cells[0] ^ cells[1], key=str)
        only = counted(len(other), f"row by {', '.join(by)} is", f"rows by {', '.join(by)} are")
        shown = ", ".join(f"{role} {plain(value)!r}" for role, value in zip(by, other[0], strict=True))
        raise DataError(f"{only} in one of the tables only (the first: {shown})")
    rows = []
    errors = {"direct": ("standard_error", "standard_error"), "anchored": ("probability_se", "own_se")}
    for (name, (error, variation)), table in zip(errors.items(), (direct, anchored), strict=True):
        by_model = table.groupby([c for c in by if c != "judge"], observed=True)["probability"]
        cv = (by_model.std(ddof=1) / by_model.mean()).mean()
        rows.append((name, table[error].mean(), table[variation].mean(), cv))
    frame = pd.DataFrame(rows, columns=["method", "standard_error", "own_se", "cv"]).set_index("method")
    frame.loc["reduction"] = 1 - frame.loc["anchored"] / frame.loc["direct"]
    return frame
