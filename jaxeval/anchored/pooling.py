"""Several judges pooled: mean ratings, and the error that averaging judges leaves (Proposition 2)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from jaxeval.anchored.elo import AnchoredElo, Scale, anchored_elo, beta_interval, checked_scale, linked_rating
from jaxeval.anchored.reliability import judge_panel
from jaxeval.anchored.scores import COUNTS, ROLE_WORDS, count_verdicts, differing_roles, highest_rated, prompt_strata
from jaxeval.anchored.screening import JudgeScreen, present_judges, reliable_sentence
from jaxeval.arrays import Float, Int
from jaxeval.checks import checked_integer
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.errors import DataError
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.resampling.rows import resampled_sums, sums_by
from jaxeval.resampling.units import small_strata_text
from jaxeval.show.boards import board_part
from jaxeval.show.shown import Answer, Part
from jaxeval.wording import counted, did_you_mean, visible_line

# A Beta distribution has a size above 0. The delta method may give less, where judges contradict each other and the
# prior is tiny.
_SMALLEST_SIZE = 1e-3


def pooled_variance(variance: ArrayLike, rho: ArrayLike, n_judges: ArrayLike) -> Float:
    """Return the variance of the mean of ``n_judges`` ratings: variance (rho + (1 - rho) / J) (Proposition 2)."""
    variance, rho, n = (np.asarray(x, float) for x in (variance, rho, n_judges))
    return variance * (rho + (1 - rho) / n)


def pooled_scores(
    verdicts: AnchoredVerdicts,
    judges: Sequence[Hashable] | None = None,
    *,
    screen: JudgeScreen,
    level: float = 0.95,
    prior: float = 0.5,
    pool_size: float | None = None,
    link: str | Scale = "logit",
) -> pd.DataFrame:
    """Give mean rating over ``judges`` (by default the strong ones) of every model and reference, and its probability.

    ``prior``, ``pool_size`` and ``link`` are as in `anchored_elo`. Only judges that occur in the verdicts are pooled.

    The standard error is that of the delta method from the prompts' own outcomes. All judges see the same prompts, so
    their ratings are correlated; the prompts show by how much, and no assumption about judges is needed. For one judge
    it is the error of the own interval of `anchored_elo`. Proposition 2 predicts the error from the judges' mean own
    variance and a correlation instead. The pooled probability is the rating mapped back through the link (Corollary
    1). Its interval holds the quantiles of the Beta distribution with that mean and error, and the rating's interval is
    their image. In simulations with 20 to 100 prompts, 95 % intervals held the truth 95 to 98 times in 100.

    Returns:
        A row per model and anchor: ``n_judges``; ``probability, probability_lower, probability_upper,
        probability_se``; ``rating, rating_lower, rating_upper, rating_se``, Elo; ``rating_se_predicted`` by Proposition
        2 with the judges' mean ICC(3,k), at least 0, and ``rating_se_predicted_observed`` with their observed mean
        correlation; ``spread``, the standard deviation between judges, Elo. ``attrs["warnings"]`` says which judges are
        left out, and which have no known reliability.

    Raises:
        DataError: no judge is left, or one is unknown.
        ValueError: the link has no inverse.
    """
    mapping = checked_scale(link)
    if mapping.inverse is None:
        raise ValueError("pooled probabilities need the inverse of the link: give Scale(map, derivative, inverse)")
    chosen, warnings = _pooled_judges(verdicts, judges, screen)
    judging = verdicts.levels["judge"]
    verdicts = verdicts.take(np.isin(verdicts.number["judge"], judging.get_indexer(chosen)))
    counts = count_verdicts(verdicts, ["model", "anchor", "judge"])
    wins, ties, losses = (counts[c].to_numpy() for c in COUNTS)
    ratings = anchored_elo(wins, ties, losses, prior, level=level, pool_size=pool_size, link=link)
    pool, table = verdicts.groups(["model", "anchor"])
    own_variance, variance = _prompt_variances(verdicts, ratings, pool)
    # Names as objects: columns of Arrow's strings have no tuples.
    counts = counts.assign(judge=counts["judge"].astype(object), rating=ratings.rating, variance=own_variance)
    of_judges = counts.groupby(["model", "anchor"], sort=False).agg(
        n_judges=("rating", "size"), rating=("rating", "mean"), spread=("rating", "std"), variance=("variance", "mean"),
        judges=("judge", tuple),
    ).reset_index(drop=True)  # fmt: skip
    p = mapping.inverse(of_judges["rating"].to_numpy() / ELO_PER_LOGIT)
    rating_se = np.sqrt(variance)
    error = rating_se / (ELO_PER_LOGIT * mapping.derivative(p))
    with np.errstate(divide="ignore"):
        size = p * (1 - p) / error**2 - 1
    lower, upper = beta_interval(p, 1 - p, np.maximum(size, _SMALLEST_SIZE), level)
    table["n_judges"] = of_judges["n_judges"]
    table["probability"], table["probability_lower"], table["probability_upper"] = p, lower.p, upper.p
    table["probability_se"] = error
    table["rating"] = of_judges["rating"]
    table["rating_lower"], table["rating_upper"] = (linked_rating(link, mapping, end) for end in (lower, upper))
    table["rating_se"] = rating_se
    rho = {names: _mean_reliability(screen, names) for names in of_judges["judges"].unique()}
    seen = {names: _mean_correlation(screen, names) if len(names) > 1 else alone for names, alone in rho.items()}
    for name, correlations in (("rating_se_predicted", rho), ("rating_se_predicted_observed", seen)):
        correlation = of_judges["judges"].map(correlations).to_numpy(float)
        table[name] = np.sqrt(pooled_variance(of_judges["variance"], correlation, of_judges["n_judges"]))
    table["spread"] = of_judges["spread"]
    table.attrs["warnings"] = warnings
    return table


def _pooled_judges(
    verdicts: AnchoredVerdicts, judges: Sequence[Hashable] | None, screen: JudgeScreen
) -> tuple[list[Hashable], list[str]]:
    """Return the judges to pool, by default the strong ones, and sentences about those that are left out or unknown."""
    chosen = screen.strong if judges is None else list(dict.fromkeys(judges))
    unknown = [judge for judge in chosen if judge not in screen.table.index]
    if unknown:
        hint = did_you_mean(unknown[0], screen.table.index)
        raise DataError(f"no judge {unknown[0]!r}; there are {', '.join(map(repr, screen.table.index))}{hint}")
    if not chosen:
        raise DataError(
            f"no judge reaches an ICC(3,k) of {screen.threshold:g}: choose judges, or a lower threshold (--min-icc)"
        )
    judging = verdicts.levels["judge"]
    chosen, warnings = present_judges(chosen, judging[np.unique(verdicts.number["judge"])], screen)
    unreliable = [judge for judge in chosen if np.isnan(screen.table.loc[judge, "average"])]
    if unreliable:
        then = "rests on that of the others" if len(unreliable) < len(chosen) else "is missing"
        warnings.append(
            f"the reliability of {counted(len(unreliable), 'judge')} is not known ({', '.join(map(str, unreliable))}): "
            f"rating_se_predicted {then}"
        )
    return chosen, warnings


def _prompt_variances(verdicts: AnchoredVerdicts, ratings: AnchoredElo, pool: Int) -> tuple[Float, Float]:
    """Return variances of ratings, Elo^2, from the prompts' own outcomes: (C,) of every judge's, (P,) of judges' means.

    The prior enters as in `anchored_elo`, as outcomes of 1 and 0 from prompts that all judges share. The ``ratings``
    (C,) are of models, anchors and judges; ``pool`` (N,) numbers every verdict's model and anchor.
    """
    cell, _ = verdicts.groups(["model", "anchor", "judge"])
    answer, _ = verdicts.groups(["model", "anchor", "judge", "item"])
    prompt, _ = verdicts.groups(["model", "anchor", "item"])
    pool_of_cell, pool_of_prompt = (_of_group(pool, number) for number in (cell, prompt))
    p = np.asarray(ratings.probability)
    # What a judge's rating moves by, Elo, where the outcome of one prompt moves by 1.
    step = ratings.rating_se / np.sqrt(p * (1 - p) * (ratings.n + 2 * ratings.prior))
    own_step = step / np.bincount(pool_of_cell)[pool_of_cell]
    away = (verdicts.outcome - p[cell]) / np.bincount(answer)[answer]
    squares = np.bincount(_of_group(cell, answer), np.bincount(answer, away) ** 2)
    variance_of_judge = step**2 * (squares + ratings.prior * (p**2 + (1 - p) ** 2))
    together = np.bincount(prompt, own_step[cell] * away)
    of_prior = sum(np.bincount(pool_of_cell, own_step * outcome) ** 2 for outcome in (p, 1 - p))
    return variance_of_judge, np.bincount(pool_of_prompt, together**2) + ratings.prior * of_prior


def _of_group(outer: Int, inner: Int) -> Int:
    """Return (G,) number of the outer group that each of G inner groups lies in; both are (N,) numbers of rows."""
    group = np.empty(inner.max() + 1, np.int64)
    group[inner] = outer
    return group


def pooling_curve(verdicts: AnchoredVerdicts, model: Hashable, anchor: Hashable | None = None, *, screen: JudgeScreen,
                  n_resamples: int = 1000, seed: int = 0, strata: str | None = None) -> pd.DataFrame:  # fmt: skip
    """Return the variance of the pooled rating of a model against the number of strong judges (Figure 5).

    ``empirical`` is the variance of the mean rating of J strong judges over resampled items, averaged over all sets of
    J such judges. ``predicted`` is that of Proposition 2 with the judges' mean ICC(3,k), and ``predicted_observed``
    with their mean correlation. Strong judges that did not see the model, and judges that were not screened, are left
    out; ``attrs["warnings"]`` names them.

    Raises:
        DataError: the model or the reference is unknown, or fewer than two strong judges have judged it.
        ValueError: there are fewer than two resamples.
    """
    checked_integer("n_resamples", n_resamples, 2)
    checked_integer("seed", seed)
    rows = np.ones(len(verdicts.outcome), bool)
    for role, name in (("model", model), ("anchor", anchor)):
        if name is None:
            continue
        levels = verdicts.levels[role]
        if name not in levels:
            raise DataError(f"no {role} {name!r}; there are {', '.join(map(repr, levels))}")
        rows &= verdicts.number[role] == levels.get_loc(name)
    part = verdicts.take(rows)
    seen_by = verdicts.levels["judge"][np.unique(part.number["judge"])]
    chosen = [judge for judge in screen.strong if judge in seen_by]
    if len(chosen) < 2:
        raise DataError(
            f"{counted(len(chosen), 'judge of this model reaches', 'judges of this model reach')} an ICC(3,k) of "
            f"{screen.threshold:g}: a curve needs two"
        )
    panel = judge_panel(part)
    means = panel.run_means()[verdicts.levels["judge"].get_indexer(chosen)]
    there = ~np.isnan(means)
    columns = np.concatenate([there, np.where(there, means, 0.0)]).T
    stratum = prompt_strata(part, strata)
    drawn = resampled_sums(sums_by(panel.item, columns), n_resamples, seed, "pooling", strata=stratum)
    n, total = np.split(drawn, 2, axis=1)
    rated = (n > 0).all(1)  # resamples in which every judge has an item
    if rated.sum() < 2:
        raise DataError("too few resamples have items of every judge: a curve needs more items or resamples")
    p = (total[rated] + 0.5) / (n[rated] + 1)
    covariance = np.cov(ELO_PER_LOGIT * np.log(p / (1 - p)), rowvar=False)
    variance = np.diag(covariance).mean()
    off = covariance[~np.eye(len(chosen), dtype=bool)].mean()
    j = np.arange(1, len(chosen) + 1)
    curve = pd.DataFrame(
        {
            "n_judges": j,
            "empirical": variance / j + (j - 1) / j * off,
            "predicted": pooled_variance(variance, _mean_reliability(screen, chosen), j),
            "predicted_observed": pooled_variance(variance, _mean_correlation(screen, chosen), j),
        }
    )
    lone = small_strata_text(None if stratum is None else np.bincount(stratum), "prompt")
    curve.attrs["warnings"] = [*present_judges(screen.strong, seen_by, screen)[1], *lone]
    return curve


def _mean_reliability(screen: JudgeScreen, judges: Sequence[Hashable]) -> float:
    """Return the mean ICC(3,k) of the judges that have one, at least 0: a negative one is no reliability at all."""
    known = screen.table.loc[list(judges), "average"].dropna()
    return max(float(known.mean()), 0.0) if len(known) else float("nan")


def _mean_correlation(screen: JudgeScreen, judges: Sequence[Hashable]) -> float:
    """Return the mean correlation over the pairs that share answers; NaN if none does."""
    pairs = screen.correlation.loc[list(judges), list(judges)].to_numpy()[np.triu_indices(len(judges), 1)]
    return float(np.nanmean(pairs)) if np.isfinite(pairs).any() else float("nan")


def task_heterogeneity(estimates: ArrayLike, standard_errors: ArrayLike) -> Float:
    """Return tau^2 between tasks of (..., T) estimates by DerSimonian and Laird (DOI 10.1016/0197-2456(86)90046-2)."""
    y, s = np.broadcast_arrays(np.asarray(estimates, float), np.asarray(standard_errors, float))
    if y.shape[-1] < 2 or not (s > 0).all():
        raise ValueError("at least two tasks are needed, with positive standard errors")
    w = 1 / s**2
    mean = (w * y).sum(-1, keepdims=True) / w.sum(-1, keepdims=True)
    q = (w * (y - mean) ** 2).sum(-1)
    return np.maximum(0.0, (q - (y.shape[-1] - 1)) / (w.sum(-1) - (w**2).sum(-1) / w.sum(-1)))


#: Columns that are written and not printed: there is no room.
_FILES_ONLY = [
    "probability_se", "rating_se", "own_se", "rating_se_predicted", "rating_se_predicted_observed", "informative",
    "squares",
]  # fmt: skip
#: Further tables, in the order in which they are printed.
_FURTHER = {
    "summary": "Means over judges",
    "kappas": "Cohen's kappa between judges",
    "abstention": "Without the answers that judges are not sure of",
    "guarded": "Direct and anchored scores, with and without such answers",
    "dispersion": "Dispersion of direct and anchored scores over judges",
    "direct_agreement": "Agreement of judges' direct scores",
    "prior": "Ratings under another prior (Elo)",
    "heterogeneity": "Variance between tasks",
    "subsamples": "Errors of subsamples of prompts",
}


def anchored_answer(
    tables: Mapping[str, pd.DataFrame], titles: Mapping[str, str], notes: Sequence[str], warnings: Sequence[str]
) -> Answer:
    """Answer with what anchored ratings say: the mean over the strong judges first, where there is one.

    The ``tables`` are "scores", and perhaps "judges", "pooled", "anchor_coverage", "anchor_swap" and those of
    `_FURTHER`; ``titles`` are those of the judges and of the mean over them.
    """
    title, scores = "Ratings above the reference (Elo)", tables["scores"]
    parts, sentences = [_board(scores, title)], [scores.attrs.get("answer") or highest_rated(scores)]
    if "pooled" in tables:
        parts.insert(0, _board(tables["pooled"], titles["pooled"]))
        sentences = [highest_rated(tables["pooled"], of_mean=True)]
    shown = {name: table.drop(columns=_FILES_ONLY, errors="ignore") for name, table in tables.items()}
    further = []
    if "judges" in tables:
        least = ("single_boot", "average_boot", "n_incomplete", "n", "n_runs")
        further.append(Part(titles["judges"], shown["judges"], rows="judge", kept=("strong", "sure"), least=least))
        sentences.append(reliable_sentence(tables["judges"]))
    if "anchor_coverage" in tables:
        meaning = "share of probabilities in the informative range, at floor and ceiling"
        further.append(Part("References", tables["anchor_coverage"], meaning, rows="reference"))
    if "anchor_swap" in tables:
        further.append(Part("References against each other (Elo)", shown["anchor_swap"], rows="pair"))
    further += [Part(text, tables[name]) for name, text in _FURTHER.items() if name in tables]
    parts += [part._replace(more=k > 0) for k, part in enumerate(further)]
    return Answer(title, scores, "", warnings, sentences=sentences, notes=notes, parts=parts, tables=tables)


def _board(table: pd.DataFrame, title: str) -> Part:
    shown = table.sort_values("rating", ascending=False, kind="stable")
    roles, n = differing_roles(shown), shown.get("n_items")
    if n is None and "wins" in shown:
        n = shown["wins"] + shown["losses"] + shown.get("ties", 0)
    further = [*roles, *(name for name in ("probability", "wins", "ties", "losses") if name in shown)]
    board = shown[["rating", *further]].assign(lower=shown["rating_lower"], upper=shown["rating_upper"])
    board["model"] = shown.get("model", "the model")
    if "model" in shown and shown["model"].is_unique:
        board["rank"] = range(1, len(shown) + 1)
    if n is not None:
        board["n"] = n
    one = (role for role in ROLE_WORDS if role in shown and role not in roles)
    alike = [f"{role} {visible_line(shown[role].iloc[0])}" for role in one]
    part = board_part(title, board, kept=[x for x in (*roles, "probability", "n") if x in board], rows="rating")
    return part._replace(meaning=", ".join(text for text in alike if "(one " not in text))
