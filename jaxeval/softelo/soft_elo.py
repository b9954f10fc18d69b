"""Soft-Elo: ratings on the human scale for models that LLM judges have seen, leaving one model out at a time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeAlias, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from jaxeval.arrays import Float
from jaxeval.checks import check_room, checked_integer, checked_positive, checked_rating
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.execution.precision import device_name, one_blas_thread, versions
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.ratings.gauge import ELO_PER_LOGIT
from jaxeval.resampling.units import checked_strata, small_strata_text, stratum_of_groups
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Answer, Result
from jaxeval.softelo.held_out import Folds, above_human, hold_out, n_lanes
from jaxeval.softelo.own_battles import battles_by_model, held_out_influences, resampled_strengths
from jaxeval.softelo.temperature import Ties, compress, in_likelihood, smoothing, status_text
from jaxeval.statistics.clusters import FEW_CLUSTERS
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import interval_bounds
from jaxeval.statistics.random_facets import RandomFacets, reject_confounded
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted, named, visible_line

#: Level of the intervals over models in a summary.
SUMMARY_LEVEL = 0.95
_SUMMARY_RESAMPLES = 1000
_NO_SPREAD = 1e-6  # Elo


@dataclass(frozen=True)
class SoftEloSettings:
    """What made the ratings."""

    ridge: float  # coefficient of ||theta||^2 and of theta_m^2 (not half of it)
    n_resamples: int
    seed: int
    methods: tuple[str, ...]
    base: float
    min_battles: int
    ties: Ties
    level: float  # of the intervals in the summary
    cluster: str | None  # column of the clusters that resamples draw; None for battles
    strata: str | None  # column of the strata that resamples draw within
    random: tuple[str, ...]  # columns of what was sampled besides battles
    hard_label: tuple[str, ...]  # of each judge: "scores" or "verdict", see `JudgedBattles`
    device: str
    versions: str


@dataclass(frozen=True, eq=False, repr=False)
class SoftElo(Result):
    """Held-out ratings of M models by every method, and by every judge where there are several.

    ``models`` has one row per (judge,) model and method. Its ratings are in Elo: ``human_elo``, ``judge_elo``, the
    ``residual`` (judge minus human), and the ``standard_error`` of ``judge_elo`` over resamples of the model's own
    battles, or clusters of them. ``beta`` is the fold's temperature (soft only). ``n_clusters`` is there with clusters.
    ``flags`` says in words what is wrong with a row. Rows with ``averaged`` False are left out of ``summary``, which
    counts them in ``n_left_out``. ``draws`` are the resampled judge ratings.

    Examples:
        >>> import jaxeval
        >>> result = jaxeval.soft_elo(jaxeval.simulate_judged_battles(600, 6, seed=1), n_resamples=50)
        >>> result.draws.shape, list(result.names[:2])
        ((2, 6, 50), ['model-1', 'model-2'])
        >>> result.models[["model", "method", "human_elo", "judge_elo", "standard_error"]].head(2).round(0)
             model method  human_elo  judge_elo  standard_error
        0  model-1   hard     1606.0     1746.0            27.0
        1  model-1   soft     1606.0     1622.0            10.0
    """

    models: pd.DataFrame
    summary: pd.DataFrame
    draws: Float = field(repr=False)  # (K, M, B) Elo by method and model, or (J, K, M, B) of several judges
    names: pd.Index  # the M models, in the order of ``draws``
    judges: tuple[str, ...]
    settings: SoftEloSettings
    warnings: list[str]
    _about: str = field(default="", repr=False)  # what is random besides battles, in words

    def _shown(self) -> Answer:
        judges = f", {len(self.judges):,} judges" if len(self.judges) > 1 else ""
        title = f"SoftElo: held-out ratings of {counted(len(self.names), 'model')}{judges}"
        table = self.models.sort_values("judge_elo", ascending=False, kind="stable").reset_index(drop=True)
        return Answer(title, table, self.settings, self.warnings)

    def _sentences(self) -> list[str]:
        about = [f"standard errors are {self._about}"] if self._about else []
        return [*about, *how_close(self.summary.reset_index())]

    @property
    def joint(self) -> Draws:
        """The judge ratings as joint draws; the names have the levels ``method`` and ``model``.

        With several judges the first level is ``judge``. A draw has the same battles of a model under every method.
        Each model's own battles are drawn by themselves, and so are those of each judge: draws of two models, or of two
        judges, are independent.
        """
        levels = [self.settings.methods, self.names]
        keys = ["method", "model"]
        if len(self.judges) > 1:
            levels, keys = [self.judges, *levels], ["judge", *keys]
        names = pd.MultiIndex.from_product(levels, names=keys)
        rows = self.models.set_index(keys).reindex(names)
        draws = self.draws.reshape(len(names), -1).T
        return Draws(
            names,
            rows["judge_elo"].to_numpy(),
            draws,
            gauge=f"mean rating {self.settings.base:g} of the other models",
            status=rows["flags"].fillna("no battles").to_numpy(),
            warnings=tuple(self.warnings),
            settings=self.settings,
        )


#: Held-out ratings, or their table of models alone.
HeldOutRatings: TypeAlias = SoftElo | pd.DataFrame


def models_table(held_out: HeldOutRatings) -> pd.DataFrame:
    """Return the table of models of held-out ratings."""
    return held_out if isinstance(held_out, pd.DataFrame) else held_out.models


@spelled_out()
def soft_elo(
    battles: JudgedBattles | Mapping[str, JudgedBattles],
    ridge: float = 0.01,
    n_resamples: int = 1000,
    seed: int = 0,
    methods: Sequence[str] = ("hard", "soft"),
    *,
    base: float = 1500.0,
    min_battles: int = 20,
    ties: Ties = "drop",
    cluster: str | None = None,
    strata: str | None = None,
    random: str | Sequence[str] = (),
    **running: Unpack[RunOptions],
) -> SoftElo:
    """Rate every model as if it had no human votes, and compare with what humans say (Algorithm 1, arXiv:2606.13221).

    For each model the temperature and the strengths of all others come from the battles without it; then its own
    strength from its battles, the others fixed, with the same ridge. The human rating is made by the same two steps.
    Human and judge ratings have one zero: the mean of the other models that have human battles.

    Args:
        battles: of one judge, or of several by name.
        ridge: > 0, coefficient of the squared norm in both steps.
        n_resamples: of each model's own battles, the anchors fixed; 0 for none.
        seed: resample r of a model is a function of (seed, the model's name, r).
        methods: target maps: "hard" (the hard label of `JudgedBattles`), "soft" (s(beta d)) and
            "smooth:c" with c in [0.5, 1] (targets c and 1 - c in place of 1 and 0).
        base: rating of strength 0, Elo.
        min_battles: a model with fewer, judged or human, is flagged and left out of the averages.
        ties: how human ties enter the temperature, see `fit_temperature`.
        cluster: column of the clusters (prompts, voters) that resamples draw whole, as many as the model has. Without
            it battles are drawn one by one. A model with a single cluster has no standard error.
        strata: column of strata. Every resample holds as many of the model's battles (or clusters) of each stratum as
            there are, as in `bootstrap`.
        random: columns of what was sampled besides battles, or clusters: prompts, seeds, runs. Draws and standard
            errors then vary as other levels like these would make them, as in `bootstrap`. Judges that have ratings of
            their own are no such column.

    Raises:
        TypeError: an argument that must be a number is not one.
        ValueError: a ridge that is not positive, unknown methods, or no judge.
        DataError: ``cluster`` or ``strata`` names no column beside the battles, or one with missing values; a cluster
            lies in several strata.
        MemoryLimitError: this machine's memory cannot hold the results of so many resamples.

    Examples:
        >>> import jaxeval
        >>> battles = jaxeval.simulate_judged_battles(600, 6, seed=1)
        >>> jaxeval.soft_elo(battles, n_resamples=50).summary["mae"].round(1).to_dict()
        {'hard': 130.2, 'soft': 21.4}
    """
    judges = dict(battles) if isinstance(battles, Mapping) else {battles.judge_name: battles}
    methods = (methods,) if isinstance(methods, str) else tuple(methods)
    _check(judges, ridge, n_resamples, seed, methods, base)
    for judged in judges.values():
        in_likelihood(judged.human[:0], ties)
    every = (judged.models for judged in judges.values())
    names = reduce(lambda one, other: one.union(other).sort_values(), every).rename("model")
    clusters = [None if cluster is None else judged.codes(cluster)[0] for judged in judges.values()]
    facets = facet_names(random)
    if facets and strata is not None:
        raise ValueError("random takes no strata: leave one of both out")
    if "judge" in facets and len(judges) > 1:
        raise ValueError(
            "each judge has ratings of its own here, so that judges are not random: for ratings by judges like these "
            "take fit_judge_panel (jaxeval panel), or read all battles as one judge's"
        )
    of_facets = [
        _facets(judged, facets, cluster, codes) if facets else None
        for judged, codes in zip(judges.values(), clusters, strict=True)
    ]
    stratum_of = [_checked_strata(judged, strata, cluster) for judged in judges.values()]
    sets = [compress(judged) for judged in judges.values()]
    check_room(n_resamples, 2 * 8 * len(judges) * len(methods) * len(names))
    draws = np.full((len(judges), len(methods), len(names), n_resamples), np.nan)
    lanes = n_lanes(sets, methods) + n_resamples * sum(cells.n_models for cells in sets)

    def identity() -> Identity:
        data = list(judges), [judged.models for judged in judges.values()], sets, clusters, stratum_of
        settings = {
            "ridge": ridge, "seed": seed, "methods": methods, "ties": ties, "cluster": cluster, "strata": strata,
        }  # fmt: skip
        shown = {"n_resamples": n_resamples, "base": base, "min_battles": min_battles}
        return Identity(settings, data, shown, noun="battles")

    warnings = [text for each in of_facets if each is not None for text in each.warnings]
    with open_run(identity, lanes, "folds and resamples of held-out models", **running) as run:
        folds = hold_out(sets, methods, float(ridge), ties, run=run)
        frames = [
            _table(judged.models, methods, fold, base, min_battles).assign(judge=judge)
            for (judge, judged), fold in zip(judges.items(), folds, strict=True)
        ]
        if n_resamples:
            of_judges = [
                battles_by_model(cells, fold, methods, list(map(str, judged.models)), codes, stratum)
                for cells, fold, judged, codes, stratum in zip(
                    sets, folds, judges.values(), clusters, stratum_of, strict=True
                )
            ]
            each = [x for of_judge in of_judges for x in of_judge]
            if strata is not None:
                sizes = np.concatenate([np.bincount(x.strata_of_units()) for x in each])
                warnings += small_strata_text(sizes, "battle" if cluster is None else "cluster")
            theta = resampled_strengths(each, n_resamples, seed, float(ridge), run)
            parts = np.split(theta, np.cumsum([cells.n_models for cells in sets])[:-1])
            for k, (frame, fold, judged, part) in enumerate(zip(frames, folds, judges.values(), parts, strict=True)):
                elo = base + ELO_PER_LOGIT * (part.transpose(1, 0, 2) - above_human(fold, fold)[:, :, None])
                elo[~np.isfinite(fold.theta[1:])] = np.nan
                if (random_facets := of_facets[k]) is not None:
                    elo = _moved(elo, random_facets, judged, fold, methods, frame, float(ridge), seed)
                draws[k][:, names.get_indexer(judged.models)] = elo
                error = elo.std(axis=2, ddof=1) if n_resamples > 1 else np.full(elo.shape[:2], np.nan)
                # Draws that differ by rounding alone, as those of one battle, show no uncertainty at all.
                frame["standard_error"] = np.where(error > _NO_SPREAD, error, np.nan).T.ravel()
        for frame, judged, codes in zip(frames, judges.values(), clusters, strict=True):
            if codes is not None:
                frame["n_clusters"] = np.repeat(_clusters_per_model(judged, codes), len(methods))
                frame.loc[(frame["n_clusters"] < 2) & (frame["n_battles"] > 1), "standard_error"] = np.nan
    models = pd.concat(frames, ignore_index=True)
    order = ["judge"] if len(judges) > 1 else []
    columns = ["model", "method", "human_elo", "judge_elo", "residual", "standard_error", "beta", "n_battles"]
    columns += ["n_human"] if cluster is None else ["n_human", "n_clusters"]
    models = with_kinds(models[[*order, *columns, "flags", "averaged"]], elo="residual")
    with one_blas_thread():
        summary = _summary(models, [*order, "method"], seed)
    settings = SoftEloSettings(
        ridge=float(ridge), n_resamples=n_resamples, seed=seed, methods=methods, base=base, min_battles=min_battles,
        ties=ties, level=SUMMARY_LEVEL, cluster=cluster, strata=strata, random=tuple(facets),
        hard_label=tuple(judged.hard_label for judged in judges.values()), device=device_name(), versions=versions(),
    )  # fmt: skip
    return SoftElo(
        models=models,
        summary=summary,
        draws=draws if len(judges) > 1 else draws[0],
        names=names,
        judges=tuple(judges),
        settings=settings,
        warnings=[*_warnings(models, len(judges) > 1), *warnings],
        _about="; ".join(dict.fromkeys(each.about for each in of_facets if each is not None)),
    )


def _facets(
    battles: JudgedBattles, names: Sequence[str], cluster: str | None, codes: NDArray[np.intp] | None
) -> RandomFacets:
    facets = {name: battles.codes(name)[0] for name in names}
    reject_confounded(facets, [battles.model_a, battles.model_b], list(map(str, battles.models)))
    return RandomFacets.of(facets, cluster or "battle", codes, battles.columns)


def _moved(
    elo: Float, facets: RandomFacets, battles: JudgedBattles, fold: Folds, methods: Sequence[str], table: pd.DataFrame,
    ridge: float, seed: int,
) -> Float:  # fmt: skip
    """Move draws (K, M, B) of the judge's ratings by effects of facets, through the battles of both sides."""
    n, (_, *judged) = battles.n_battles, held_out_influences(battles, methods, fold, ridge)
    estimates = table["judge_elo"].to_numpy().reshape(-1, len(methods)).T
    moved = np.empty_like(elo)
    for k, influence in enumerate(judged):
        of_models = np.zeros((n, len(battles.models)))
        for side, of_side in zip((battles.model_a, battles.model_b), np.split(influence, 2), strict=True):
            of_models[np.arange(n), side] = n * ELO_PER_LOGIT * np.nan_to_num(of_side)
        moved[k] = facets.moved(estimates[k], elo[k].T, of_models, seed).T
    return moved


def _checked_strata(battles: JudgedBattles, strata: str | None, cluster: str | None) -> NDArray[np.int64] | None:
    """Return (N,) stratum of each battle; None without strata, and where there is one."""
    if strata is None:
        return None
    codes = battles.codes(strata)[0]
    if cluster is not None:
        stratum_of_groups(codes, *battles.codes(cluster), strata)
    return checked_strata(codes)


def _clusters_per_model(battles: JudgedBattles, codes: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return (M,) clusters that hold battles of each model."""
    size = int(codes.max()) + 1
    both = [model.astype(np.int64) * size + codes for model in (battles.model_a, battles.model_b)]
    return np.bincount(np.unique(np.concatenate(both)) // size, minlength=len(battles.models))


def _check(
    judges: Mapping[str, JudgedBattles], ridge: float, n_resamples: int, seed: int, methods: Sequence[str], base: float
) -> None:
    if not judges:
        raise ValueError("no judge's battles were given")
    checked_positive("ridge", ridge, ": it holds a model that wins or loses all of a fold's battles")
    checked_integer("n_resamples", n_resamples)
    checked_integer("seed", seed)
    checked_rating("base", base)
    if not methods or len(set(methods)) < len(methods):
        raise ValueError(f"methods must name each target map once, got {list(methods)}")
    for method in methods:
        if method != "soft":
            smoothing(method)


def _table(names: pd.Index, methods: Sequence[str], folds: Folds, base: float, min_battles: int) -> pd.DataFrame:
    """Return one row per model and method; the standard errors are still missing."""
    n_human, n_judge = (np.rint(folds.n[k].sum(1)).astype(int) for k in (0, 1))
    theta = folds.theta.copy()
    theta[1:] -= above_human(folds, folds)
    human, judge = base + ELO_PER_LOGIT * theta[0], base + ELO_PER_LOGIT * theta[1:].T
    table = pd.DataFrame({"model": names, "human_elo": human, "n_battles": n_judge, "n_human": n_human})
    table = table.loc[table.index.repeat(len(methods))].reset_index(drop=True)
    soft = np.array(methods) == "soft"
    table["method"], table["judge_elo"] = np.tile(methods, len(names)), judge.ravel()
    table["residual"], table["standard_error"] = table["judge_elo"] - table["human_elo"], np.nan
    table["beta"] = np.where(soft, folds.beta[:, None], np.nan).ravel()
    table["flags"] = [
        ", ".join(_flags(folds, i, k, is_soft, min_battles))
        for i in range(len(names))
        for k, is_soft in enumerate(soft, start=1)
    ]
    return table.assign(averaged=table["flags"] == "")


def _flags(folds: Folds, i: int, k: int, soft: bool, min_battles: int) -> list[str]:
    n_human, n_judge = np.rint(folds.n[:2, i].sum(1))
    status = status_text(int(folds.beta_status[i]), float(folds.beta[i]))
    doubts = {
        "no human labels": n_human == 0,
        "few battles": n_human > 0 and min(n_human, n_judge) < min_battles,
        "anchors fall apart": folds.apart[[0, k], i].any(),
        status if status == "negative slope" else f"no temperature: {status}": soft and status != "converged",
        "not converged": not folds.converged[[0, k], i].all(),
    }
    return [text for text, applies in doubts.items() if applies]


def how_close(summary: pd.DataFrame) -> list[str]:
    """Return sentences on how close judges come to people, by `SoftElo.summary` with its index as columns."""
    summary = summary.sort_values("mae", kind="stable")
    best, first = summary.iloc[0], []
    if best["mae"] != best["mae"]:
        return ["No model has a rating to compare with the humans'"]
    judges = summary["judge"].unique() if "judge" in summary else ()
    if len(judges) > 1:
        first = [f"Of {counted(len(judges), 'judge')}, {visible_line(best['judge'])} comes closest"]
        summary = summary[summary["judge"] == best["judge"]]
    ends = "" if best["mae_lower"] != best["mae_lower"] else f" [{best['mae_lower']:.1f}, {best['mae_upper']:.1f}]"
    sentence = (
        f"The judge's {visible_line(best['method'])} ratings of models held out are {best['mae']:.1f} Elo{ends} off "
        "the human ratings on average"
    )
    rows = [row for _, row in summary.iloc[1:].iterrows()]
    others = [f"{visible_line(x['method'])} {f'{x.mae:.1f}' if x['mae'] == x['mae'] else 'rates none'}" for x in rows]
    return [*first, sentence + (f"; {', '.join(others)}" if others else "")]


def _summary(models: pd.DataFrame, keys: list[str], seed: int) -> pd.DataFrame:
    rows = []
    for key, group in models.groupby(keys, sort=False):
        used = group[group["averaged"]]
        drawn: NDArray[Any] = np.zeros((_SUMMARY_RESAMPLES, 0))
        if len(used):
            share = np.full(len(used), 1 / len(used))
            drawn = np.random.default_rng(seed).multinomial(len(used), share, _SUMMARY_RESAMPLES)
        estimate = _accuracy(used, np.ones((1, len(used))))
        lower, upper = interval_bounds(_accuracy(used, drawn.astype(float)), SUMMARY_LEVEL)
        row: dict[Hashable, Any] = dict(zip(keys, key, strict=True))
        row |= {"n_models": len(used), "n_left_out": len(group) - len(used)}
        row |= dict(zip(_MEASURES, estimate[0], strict=True))
        for k, name in enumerate(_MEASURES):
            row |= {f"{name}_lower": lower[k], f"{name}_upper": upper[k]}
        rows.append(row)
    table = pd.DataFrame(rows)
    ordered = ["n_models", *_MEASURES, "n_left_out", *(f"{x}_{end}" for x in _MEASURES for end in ("lower", "upper"))]
    return with_kinds(table.set_index(keys)[ordered], elo="mae")


_MEASURES = ("mae", "spearman", "kendall", "beta")


def _accuracy(models: pd.DataFrame, weights: Float) -> Float:
    """Return (B, 4) MAE, Spearman, Kendall tau-b and mean beta of models taken (B, M) ``weights`` times each.

    Copies of a model are never paired with each other in tau; they share an average rank in Spearman's correlation.
    """
    x, y = models["human_elo"].to_numpy(float), models["judge_elo"].to_numpy(float)
    if len(x) < 2:
        return np.full((len(weights), 4), np.nan)
    total = weights.sum(1)
    mae = weights @ np.abs(y - x) / total
    beta = weights @ models["beta"].to_numpy(float) / total
    with np.errstate(invalid="ignore", divide="ignore"):
        signs = [np.sign(v[:, None] - v) for v in (x, y)]
        tables = np.concatenate([*signs, signs[0] * signs[1], *(sign**2 for sign in signs)], axis=1)
        over_x, over_y, product, used_x, used_y = np.split(weights @ tables, 5, axis=1)
        product, used_x, used_y = (np.sum(part * weights, 1) for part in (product, used_x, used_y))
        kendall = product / np.sqrt(used_x * used_y)
        # Minus twice the ranks, up to a constant: the number of copies below; copies with the same value count half.
        centred = [r - (np.sum(weights * r, 1) / total)[:, None] for r in (over_x, over_y)]
        covariance, var_x, var_y = (
            np.sum(weights * a * b, 1)
            for a, b in ((centred[0], centred[1]), (centred[0], centred[0]), (centred[1], centred[1]))
        )
        spearman = covariance / np.sqrt(var_x * var_y)
    return np.stack([mae, spearman, kendall, beta], axis=1)


def _warnings(models: pd.DataFrame, several: bool) -> list[str]:
    messages = []
    keys = ["judge", "method"] if several else ["method"]
    for key, group in models.groupby(keys, sort=False):
        where = " / ".join(map(str, key))
        for flags, flagged in group[group["flags"] != ""].groupby("flags", sort=False):
            shown = named(list(flagged["model"]))
            messages.append(f"{where}: {counted(len(flagged), 'model')} left out of the averages ({flags}): {shown}")
        if group["flags"].str.contains("negative slope").mean() > 0.5:
            messages.append(
                f"{where}: the humans prefer what the judge scores lower. If labels were read the wrong way round, all "
                "ratings above are upside down, too, though they agree with each other: check what the labels mean "
                "(label_coding=, --labels)"
            )
    return [*messages, *few_clusters(models)]


def few_clusters(models: pd.DataFrame) -> list[str]:
    """Return a sentence per judge on models whose battles lie in few clusters; none where there are no clusters."""
    if "n_clusters" not in models:
        return []
    few = models[models["n_clusters"] < FEW_CLUSTERS]
    judges = few.groupby("judge", sort=False) if "judge" in few else [("", few)] if len(few) else []
    return [
        f"{judge + ': ' if judge else ''}models whose battles lie in fewer than {FEW_CLUSTERS} clusters, so that their "
        f"standard errors are unreliable, as a rule too small: {named(list(dict.fromkeys(group['model'])))}"
        for judge, group in judges
    ]
