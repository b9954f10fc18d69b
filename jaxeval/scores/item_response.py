"""Item response models: abilities of models and difficulties of items on one scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import logit

from jaxeval.arrays import Bool, Float, as_leaf
from jaxeval.checks import check_choice, check_room, checked_integer
from jaxeval.data.columns import plain
from jaxeval.data.item_scores import ItemColumn, ItemScores
from jaxeval.errors import DataError
from jaxeval.execution.lanes import Lanes
from jaxeval.execution.precision import double_precision
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.shapes import ITEM_RESPONSE, Step, padded
from jaxeval.execution.signatures import spelled_out
from jaxeval.kernels.batch.items import Curves, Parameters, Responses, refit_item_response, split
from jaxeval.kernels.batch.items import fit_item_response as fit_item_response_lanes
from jaxeval.kernels.batch.weighted import Factor, RowForm, WeighedRows
from jaxeval.kernels.solve import Status, Terms
from jaxeval.lazy_names import jax
from jaxeval.resampling.rows import lanes_task
from jaxeval.resampling.units import make_singles, pad, stacked, stream_number
from jaxeval.scores.estimates import FEW_ITEMS, as_item_scores, by_item, flagged
from jaxeval.show.shown import Answer, Result
from jaxeval.show.table import Table
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import checked_level, normal_quantile
from jaxeval.wording import counted, visible_line

_CURVES = {"rasch": Curves.RASCH, "2pl": Curves.TWO_PARAMETER}
_FEWEST_MODELS = {"rasch": 3, "2pl": 10}
#: With fewer models "2pl" has no intervals: at level .95 those of 20 models and 200 items held .80 of the abilities.
_MODELS_FOR_INTERVALS = 50
#: Discriminations beyond that rise from .12 to .88 within one unit of ability.
STEEP = 4.0
#: Nodes of the quadrature. Posteriors of few answers are skew, and need more.
_MANY_NODES, _FEW_NODES, _SKEW = 21, 11, 64
_LEAST_SPREAD = 0.05  # of discriminations: less is as none
_STREAM = "item response"
_FIT = Terms.of(0.0, 1e-5, 1000)
_REFIT = Terms.of(0.0, 3e-4, 200)


@dataclass(frozen=True, eq=False, repr=False)
class ItemResponse(Result):
    """Abilities of models and parameters of items on one scale; see `fit_item_response`.

    Examples:
        >>> import jaxeval
        >>> found = jaxeval.fit_item_response(jaxeval.simulate_scores(200, 3), n_resamples=50, progress=False)
        >>> found.abilities[["model", "ability", "tier"]].round(1).to_numpy().tolist()
        [['model-1', 0.5, 1], ['model-2', 0.4, 1], ['model-3', -1.0, 1]]
    """

    kind: str
    joint: Draws = field(repr=False)  # abilities, in their order in the data
    items: pd.DataFrame = field(repr=False)
    spread: Float = field(repr=False)  # (M,) standard deviation of each ability given the items' parameters
    n_items: NDArray[np.intp] = field(repr=False)  # (M,) items that each model has, of those that tell models apart
    log_likelihood: float  # of all scores, abilities integrated out
    level: float
    status: NDArray[np.str_] = field(repr=False)  # (M,) why an ability is less reliable than it looks
    warnings: tuple[str, ...]
    settings: Mapping[str, Any] = field(repr=False)

    @property
    def abilities(self) -> pd.DataFrame:
        """One row per model, best first.

        ``model``, ``ability``, ``lower``, ``upper``, ``standard_error``, ``n_items`` (items behind
        the ability), ``rank``, ``rank_best``, ``rank_worst``, ``tier``, ``flags``. The standard error is the larger one
        of two. That over resamples of items leaves out that few items draw abilities to 0; that of the posterior leaves
        out the errors of the items' parameters. Intervals are normal ones. Rank sets and tiers come from resamples.
        With "2pl" and fewer than 50 models all of these are missing. docs/scores.md has the coverage.
        """
        ranks = self.joint.ranks(self.level)
        error = np.fmax(self.joint.standard_errors.to_numpy(), self.spread)
        if self.kind == "2pl" and len(error) < _MODELS_FOR_INTERVALS:
            error = np.full(len(error), np.nan)
            ranks[["rank_best", "rank_worst", "tier"]] = pd.NA
        half = normal_quantile(self.level) * error
        table = pd.DataFrame({
            "model": self.joint.names.to_numpy(), "ability": self.joint.estimate, "lower": self.joint.estimate - half,
            "upper": self.joint.estimate + half, "standard_error": error, "n_items": self.n_items,
            **{name: ranks[name].array for name in ranks}, "flags": self.status,
        }).sort_values(["ability", "model"], ascending=[False, True], ignore_index=True)  # fmt: skip
        table.attrs = {"warnings": list(self.warnings), "settings": dict(self.settings)}
        first = ("rank", "model", "ability", "lower", "upper", "tier")
        return Table.of(table, f"Abilities of {counted(len(table), 'model')}", first, "ability")

    def _shown(self) -> Answer:
        title = f"ItemResponse ({self.kind}): {counted(len(self.n_items), 'model')}, {counted(len(self.items), 'item')}"
        names = ["rank", "model", "ability", "lower", "upper", "tier", "flags"]
        return Answer(title, self.abilities[names].set_index("model"), self.settings, self.warnings)

    def _sentences(self) -> list[str]:
        best = self.abilities.iloc[0]
        ends = "" if np.isnan(best["lower"]) else f" ({best['lower']:.2f} to {best['upper']:.2f})"
        others = int((self.abilities["tier"] == best["tier"]).sum()) - 1
        alike = f"; {counted(others, 'other is', 'others are')} not told apart from it" if others > 0 else ""
        return [f"{visible_line(best['model'])} has the highest ability, {best['ability']:.2f}{ends}{alike}"]


@spelled_out()
def fit_item_response(
    scores: ItemScores | Any,
    *,
    kind: Literal["rasch", "2pl"] = "rasch",
    n: str | None = None,
    prior_sd: float | None = None,
    level: float = 0.95,
    n_resamples: int = 200,
    seed: int = 0,
    **running: Unpack[RunOptions],
) -> ItemResponse:
    """Fit abilities of models on one scale, whichever items each model has, by Rasch or two-parameter models.

    A model of ability t solves item i with probability 1 / (1 + exp(-a_i (t - b_i))): b_i is the difficulty of the
    item, a_i its discrimination. In the Rasch model all items have one discrimination. Abilities are N(0, 1) over the
    models; difficulties and discriminations maximise the likelihood from which abilities are integrated out (Bock and
    Aitkin 1981, DOI 10.1007/BF02293801). An ability is the mean of its posterior.

    Missing scores are allowed, if whether a score is missing does not depend on its value.
    Items, or clusters of items, are resampled for all models together, and the model is fitted to every resample.

    Args:
        scores: `ItemScores`, or a table as for `score_leaderboard`. Scores are 0 or 1, or shares of right answers. A
            share counts by the number of answers behind it: that of the trials, or what ``n`` says.
        kind: "rasch" or "2pl".
        n: column with the number of questions of each item, where an item is a benchmark and its score the share of
            right answers (binomial).
        prior_sd: standard deviation of the discriminations of "2pl" as shares of their mean, which have a normal prior.
            By default it is that of these items, by moments of their scores at the fit with one discrimination: few
            models cannot say each by itself. ``math.inf`` leaves the prior out.
        level: of the intervals, the rank sets and the tiers.

    Returns:
        `ItemResponse`: its ``abilities`` is a table with intervals, rank sets and tiers; its ``items`` has ``item``
        (and ``benchmark``), ``n_models``, ``mean``, ``difficulty``, ``discrimination`` and ``flag``. Items that are
        "dead" (no model solves them) or "saturated" (all do) take no part. With 50 models or more, worse models solve
        "negative" items more often, and the discrimination of "steep" items is above 4, and rests on the prior. With
        fewer, `item_report` tests for wrong keys.

    Raises:
        DataError: a score below 0 or above 1, or between them without a number of questions; fewer than 3 models, or 10
            for "2pl"; fewer than two items tell models apart; a model has none of them; the table cannot be read.
        ValueError: an option is invalid.

    Examples:
        >>> import jaxeval
        >>> scores = jaxeval.simulate_scores(200, 3)
        >>> few = scores[(scores["model"] != "model-3") | (scores["item"] % 2 == 0)]
        >>> jaxeval.fit_item_response(few, n_resamples=50, progress=False).abilities["n_items"].tolist()
        [83, 83, 52]
    """
    item_scores = as_item_scores(scores)
    checked_level(level)
    check_choice("kind", kind, _CURVES)
    if prior_sd is not None and (isinstance(prior_sd, bool) or not isinstance(prior_sd, int | float) or prior_sd <= 0):
        raise ValueError(f"prior_sd must be a number above 0 (math.inf for no prior), got {prior_sd!r}")
    n_resamples, seed = checked_integer("n_resamples", n_resamples, 2), checked_integer("seed", seed)
    check_room(n_resamples, 8 * len(item_scores.models))
    s = item_scores.scores[:, 0]
    used, flag = _used_items(item_scores, kind)
    used_scores, answers = s[used], _answers(item_scores, n)[used]
    curves = _CURVES[kind]
    responses, start = _problem(used_scores, answers)
    weight = (np.arange(responses.score.shape[1]) < len(used_scores)).astype(float)
    drawn: dict[str, Any] = {"kind": kind, "seed": seed}
    with double_precision():
        if kind == "2pl":
            if prior_sd is None:
                end, _, spread = jax.device_get(fit_item_response_lanes(responses, Curves.RASCH, start, weight, _FIT))
                start, prior_sd = split(end.theta, len(start.mean)), max(float(spread), _LEAST_SPREAD)
            drawn["prior_sd"] = float(prior_sd)
            responses = responses._replace(prior=as_leaf(1 / prior_sd**2, np.float64))
        end, at, _ = jax.device_get(fit_item_response_lanes(responses, curves, start, weight, _FIT))
    n_models = len(item_scores.models)
    parameters = split(end.theta, len(start.mean))
    settings = {**drawn, "n": n, "n_resamples": n_resamples}

    def identity() -> Identity:
        data = [used_scores, answers, item_scores.cluster, used]
        return Identity(drawn, data, {"level": level, "n_resamples": n_resamples}, noun="scores")

    rows, form = _draw(item_scores, used)
    arguments = {"rows": rows, "data": (responses, parameters, _REFIT), "seed": as_leaf(seed, np.uint64)}
    task = lanes_task(
        refit_item_response, arguments, {"curves": curves, "form": form}, ITEM_RESPONSE, entries=responses.score.size,
        lane_bytes=8 * 4 * responses.score.size, result_bytes=8 * n_resamples * n_models,
    )  # fmt: skip
    with open_run(identity, n_resamples, "resamples", **running) as run:
        fits = run.results(task, Lanes.of(1, n_resamples), _STREAM)
    ended = fits.status == Status.CONVERGED
    draws = np.where(ended[:, None], fits.ability[:, :n_models], np.nan)
    if not ended.any():
        raise DataError(f"none of {counted(n_resamples, 'resample')} has a fit: too few items tell the models apart")
    status = _status(used_scores)
    items = _item_table(item_scores, used, flag, parameters)
    warnings = _warnings(item_scores, used, items, kind, end.status == Status.CONVERGED, int((~ended).sum()))
    joint = Draws(
        item_scores.models.rename("model"), at.mean[:n_models], draws, converged=ended, gauge="abilities N(0, 1)",
        precision=1e-3, status=status, warnings=tuple(warnings), settings=settings,
    )  # fmt: skip
    return ItemResponse(
        kind=kind, joint=joint, items=items, spread=at.spread[:n_models], n_items=(~np.isnan(used_scores)).sum(0),
        log_likelihood=float(at.log_likelihood[:n_models].sum()), level=float(level), status=status,
        warnings=tuple(warnings), settings={**settings, "level": float(level)},
    )  # fmt: skip


def _used_items(scores: ItemScores, kind: str) -> tuple[Bool, NDArray[np.str_]]:
    """Return (I,) items that tell models apart, and the flags of the others."""
    s = scores.scores[:, 0]
    outside = (s < 0) | (s > 1)
    if outside.any():
        raise DataError(
            f"{counted(int(outside.sum()), 'score is', 'scores are')} below 0 or above 1 (the first is "
            f"{s[outside][0]:g}): an item response model takes right and wrong answers, or grades from 0 to 1"
        )
    fewest = _FEWEST_MODELS[kind]
    if len(scores.models) < fewest:
        raise DataError(
            f"{counted(len(scores.models), 'model')} only: kind={kind!r} (--irt {kind}) needs {fewest} or more"
            + ("; 'rasch' needs 3" if kind == "2pl" else "")
        )
    least, most = np.fmin.reduce(s, axis=1), np.fmax.reduce(s, axis=1)
    flag = np.select([most == 0, least == 1], ["dead", "saturated"], "")
    used = flag == ""
    if used.sum() < 2:
        raise DataError(
            f"{counted(int(used.sum()), 'item tells', 'items tell')} models apart, of {len(s):,}: abilities need two"
        )
    without = np.isnan(s[used]).all(0)
    if without.any():
        raise DataError(
            f"{counted(int(without.sum()), 'model has', 'models have')} no item that tells models apart (the first is "
            f"{plain(scores.models[without][0])!r}): leave them out"
        )
    return used, flag


def _answers(scores: ItemScores, n: str | None) -> Float:
    """Return (I, M) answers behind each score: 1, the trials, or the number of questions in column ``n``."""
    s = scores.scores[:, 0]
    if n is not None:
        number = _questions(scores.column(n), scores.items)
        return np.broadcast_to(number[:, None], s.shape)
    if scores.trials is not None and np.isin(scores.trials.score, (0, 1)).all():
        return np.bincount(scores.trials.cell, minlength=s.size).reshape(s.shape).astype(float)
    between = (s > 0) & (s < 1)
    if between.any():
        raise DataError(
            f"{counted(int(between.sum()), 'score lies', 'scores lie')} between 0 and 1 (the first is "
            f"{s[between][0]:g}), and nothing says of how many answers: name the column with the number of questions "
            "of each item (n=, --n), or give a row for each trial with its number (trial=, --trial)"
        )
    return np.ones(s.shape)


def _questions(column: ItemColumn, items: pd.Index) -> Float:
    """Return (I,) numbers of questions, of which an item has one."""
    levels = pd.to_numeric(pd.Series(column.levels), errors="coerce").to_numpy(float)
    bad = ~((levels >= 1) & np.isfinite(levels))
    if bad.any():
        raise DataError(
            f"a number of questions must be a finite number from 1, got {plain(column.levels[bad][0])!r}: mend it"
        )
    several = np.flatnonzero(np.bincount(column.item, minlength=len(items)) > 1)
    if len(several):
        raise DataError(
            f"{counted(len(several), 'item has', 'items have')} several numbers of questions (the first is "
            f"{plain(items[several[0]])!r}): give all rows of an item one number"
        )
    number = np.empty(len(items))
    number[column.item] = levels[column.number]
    return number


def _problem(s: Float, answers: Float) -> tuple[Responses, Parameters]:
    """Return the (I, M) scores as the kernel takes them, and where it starts."""
    n_items, n_models = s.shape
    there = np.where(np.isnan(s), 0.0, answers)
    value = np.where(np.isnan(s), 0.0, s * answers)
    shape = padded(n_models, Step.MODELS), padded(n_items + 1, Step.SUMS)
    enough = max(n_items, there.sum(0).min()) >= _SKEW  # an item may stand for many answers
    node, weight = np.polynomial.hermite_e.hermegauss(_FEW_NODES if enough else _MANY_NODES)
    responses = Responses(
        score=as_leaf(pad(value.T, shape), np.float64), present=as_leaf(pad(there.T, shape), np.float64),
        is_model=as_leaf(np.arange(shape[0]) < n_models, np.bool_), node=as_leaf(node, np.float64),
        node_weight=as_leaf(weight / weight.sum(), np.float64), prior=as_leaf(0.0, np.float64),
    )  # fmt: skip
    ability, ease = (logit((value.sum(axis) + 0.5) / (there.sum(axis) + 1)) for axis in (0, 1))
    spread = ability.std()
    standard = (ability - ability.mean()) / (spread if spread > 0 else 1.0)
    return responses, Parameters(
        mean=as_leaf(pad(standard, shape[:1]), np.float64),
        slope=as_leaf(np.ones(shape[1]), np.float64),
        intercept=as_leaf(pad(ease, shape[1:]), np.float64),
    )


def _draw(scores: ItemScores, used: Bool) -> tuple[WeighedRows, RowForm]:
    """Return the items, or their clusters, that resamples draw, and how."""
    number = np.arange(int(used.sum()))
    if scores.cluster is not None:
        number, _ = pd.factorize(scores.cluster.number[used], sort=True)
    n = int(number.max()) + 1
    width = padded(n + 1, Step.SUMS)
    unit = np.full(padded(len(number) + 1, Step.SUMS), width - 1)
    unit[: len(number)] = number
    singles = stacked([make_singles(n, width)])
    factor = Factor(singles, as_leaf([stream_number(_STREAM)], np.uint64), as_leaf(unit[None], np.int32))
    return WeighedRows((factor,)), RowForm(sizes=(width,))


def _item_table(scores: ItemScores, used: Bool, flag: NDArray[np.str_], parameters: Parameters) -> pd.DataFrame:
    s, n = scores.scores[:, 0], int(used.sum())
    slope, difficulty = np.full((2, len(s)), np.nan)
    slope[used] = parameters.slope[:n]
    difficulty[used] = -parameters.intercept[:n] / np.where(parameters.slope[:n] == 0, np.nan, parameters.slope[:n])
    n_models = (~np.isnan(s)).sum(1)
    # Of few models good items are called bad: `item_report` has the test of keys.
    enough = len(scores.models) >= _MODELS_FOR_INTERVALS
    flags = np.select([enough & (slope < 0), enough & (slope > STEEP)], ["negative", "steep"], flag)
    columns = {
        "n_models": n_models, "mean": np.nansum(s, axis=1) / np.maximum(n_models, 1), "difficulty": difficulty,
        "discrimination": slope, "flag": flags,
    }  # fmt: skip
    table = by_item(scores, columns)
    return Table.of(table, counted(len(table), "item"), ("item", "mean", "difficulty", "discrimination", "flag"))


def _status(s: Float) -> NDArray[np.str_]:
    """Return (M,) what is wrong with models at an end of the scale, whose likelihood has no maximum."""
    top, bottom = (np.isnan(s) | (s == end) for end in (1, 0))
    texts = ["solves all items: held by the prior", "solves no item: held by the prior"]
    return np.select([top.all(0), bottom.all(0)], texts, "")


def _warnings(
    scores: ItemScores, used: Bool, items: pd.DataFrame, kind: str, converged: bool, n_failed: int
) -> list[str]:
    reasons = {
        "dead": "dead: no model solves them, left out",
        "saturated": "saturated: all models solve them, left out",
        "negative": "of negative discrimination: worse models do better on them, look at their keys",
        "steep": f"of a discrimination above {STEEP:g}, which rests on the prior",
    }
    texts = [*scores.notes, *flagged(items["flag"], reasons)]
    if kind == "2pl" and len(scores.models) < _MODELS_FOR_INTERVALS:
        texts.append(
            f"only {counted(len(scores.models), 'model')} for discriminations: no intervals, rank sets and tiers, "
            "which would be too narrow, and no flags of keys; abilities are hardly more exact than those of "
            f"'rasch'; take {_MODELS_FOR_INTERVALS} models or more, or kind='rasch' (--irt rasch)"
        )
    item, model = np.nonzero(~np.isnan(scores.scores[:, 0][used]))
    n_items, size = int(used.sum()), int(used.sum()) + len(scores.models)
    edges = coo_array((np.ones(len(item)), (item, n_items + model)), shape=(size, size))
    n_parts = int(connected_components(edges, directed=False)[0])  # groups of models that share no items
    if n_parts > 1:
        texts.append(
            f"the models fall into {n_parts} groups that share no item: only the assumption that both are N(0, 1) puts "
            "them on one scale"
        )
    n_units = n_items if scores.cluster is None else len(np.unique(scores.cluster.number[used]))
    unit = "item" if scores.cluster is None else "cluster"
    if n_units < FEW_ITEMS:
        texts.append(f"only {counted(n_units, unit)}: intervals of fewer than {FEW_ITEMS} are too narrow")
    if scores.weight is not None:
        texts.append("weights of items are not used: every item counts by what it tells of ability")
    if not converged:
        texts.append("the fit did not converge: do not rely on it")
    if n_failed:
        texts.append(f"{counted(n_failed, 'resample')} did not converge: left out")
    return texts
