"""Soft-Elo: ratings on the human scale for models that LLM judges have seen, leaving one model out at a time."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from jaxeval.bradley_terry import device_name, padded_size
from jaxeval.gauge import ELO_PER_LOGIT
from jaxeval.judged_battles import JudgedBattles
from jaxeval.kernels import batch
from jaxeval.kernels.solve import CONVERGED
from jaxeval.precision import double_precision, versions
from jaxeval.progress import progress_bar
from jaxeval.quantiles import interval_bounds
from jaxeval.resampling import rounded_size, stack, stream_number, unit_tables
from jaxeval.temperature import FEWEST_BATTLES, TOLERANCE_LOGIT, Ties, in_likelihood, status_text
from jaxeval.temperature import MAX_STEPS as _TEMPERATURE_STEPS

Float = NDArray[np.float64]
Int = NDArray[np.int64]

#: Level of the intervals over models in a summary.
SUMMARY_LEVEL = 0.95
_CHORD_STEPS, _NEWTON_STEPS = 40, 200
_SUMMARY_RESAMPLES = 1000
# Numbers that the lanes of a chunk may hold at once: the caches of a CPU.
_WORDS_PER_CHUNK = 4_000_000


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
    device: str
    versions: str


@dataclass(frozen=True, eq=False)
class SoftElo:
    """Held-out ratings of M models by every method, and by every judge where there are several.

    ``models`` has one row a (judge,) model and method. ``residual`` is judge minus human, ``standard_error`` that of
    ``judge_elo`` over resamples of the model's own battles, ``beta`` the fold's temperature (soft only), all but the
    last in Elo. ``flags`` names in words what is wrong with a row; rows of ``averaged`` False are left out of
    ``summary``, which counts them in ``n_left_out``. ``draws`` are the resampled judge ratings.
    """

    models: pd.DataFrame
    summary: pd.DataFrame
    draws: Float = field(repr=False)  # (K, M, B) Elo by method and model, or (J, K, M, B) of several judges
    names: pd.Index  # the M models, in the order of ``draws``
    judges: tuple[str, ...]
    settings: SoftEloSettings
    warnings: list[str]


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
    progress: bool | None = None,
) -> SoftElo:
    """Rate every model as if it had no human votes, and compare with what humans say (Algorithm 1, arXiv:2606.13221).

    For each model the temperature and the strengths of all others come from the battles without it; then its own
    strength from its battles, the others fixed, with the same ridge. The human rating is made by the same two steps.

    Args:
        battles: of one judge, or of several by name.
        ridge: > 0, coefficient of the squared norm in both steps.
        n_resamples: of each model's own battles, the anchors fixed; 0 for none.
        seed: resample r of a model is a function of (seed, the model's name, r).
        methods: target maps: "hard" (the judge's verdict, or the sign of its scores), "soft" (s(beta d)) and
            "smooth:c" with c in [0.5, 1] (targets c and 1 - c in place of 1 and 0).
        base: rating of strength 0, Elo.
        min_battles: a model with fewer, judged or human, is flagged and left out of the averages.
        ties: how human ties enter the temperature, see `fit_temperature`.
        progress: show a bar; by default on a terminal.

    Raises:
        ValueError: a ridge that is not positive, unknown methods, or no judge.
    """
    judges = dict(battles) if isinstance(battles, Mapping) else {battles.judge_name: battles}
    methods = tuple(methods)
    _check(judges, ridge, n_resamples, methods)
    for judged in judges.values():
        in_likelihood(judged.human[:0], ties)
    names = pd.Index([], name="model").astype(object)
    for judged in judges.values():
        names = judged.models if len(names) == 0 else names.union(judged.models).sort_values()
    names = names.rename("model")
    frames, draws = [], np.full((len(judges), len(methods), len(names), n_resamples), np.nan)
    total = sum(len(j.models) for j in judges.values())
    with progress_bar(total, "rating held-out models", progress) as advance:
        for k, (judge, judged) in enumerate(judges.items()):
            study = _Study(judged, methods, float(ridge), ties)
            frame = study.table(base, min_battles)
            if n_resamples:
                of_judge = base + ELO_PER_LOGIT * study.resamples(n_resamples, seed)
                of_judge[~np.isfinite(study.theta[1:])] = np.nan
                draws[k][:, names.get_indexer(judged.models)] = of_judge
                error = of_judge.std(axis=2, ddof=1) if n_resamples > 1 else np.full(of_judge.shape[:2], np.nan)
                frame["standard_error"] = error.T.ravel()
            frames.append(frame.assign(judge=judge))
            advance(len(judged.models))
    models = pd.concat(frames, ignore_index=True)
    keys = ["judge", "method"] if len(judges) > 1 else ["method"]
    order = ["judge"] if len(judges) > 1 else []
    columns = ["model", "method", "human_elo", "judge_elo", "residual", "standard_error", "beta", "n_battles"]
    models = models[[*order, *columns, "n_human", "flags", "averaged"]]
    summary = _summary(models, keys, seed)
    settings = SoftEloSettings(
        float(ridge), n_resamples, seed, methods, base, min_battles, ties, SUMMARY_LEVEL, device_name(), versions()
    )
    drawn = draws if len(judges) > 1 else draws[0]
    return SoftElo(models, summary, drawn, names, tuple(judges), settings, _warnings(models, len(judges) > 1))


def _check(judges: Mapping[str, JudgedBattles], ridge: float, n_resamples: int, methods: Sequence[str]) -> None:
    if not judges:
        raise ValueError("no judge's battles were given")
    if not (np.isfinite(ridge) and ridge > 0):
        raise ValueError(
            f"ridge must be finite and > 0, got {ridge}: it holds a model that wins or loses all of a fold's battles"
        )
    if n_resamples < 0:
        raise ValueError(f"n_resamples must be >= 0, got {n_resamples}")
    if not methods or len(set(methods)) < len(methods):
        raise ValueError(f"methods must name each target map once, got {list(methods)}")
    for method in methods:
        if method not in ("hard", "soft"):
            _smoothing(method)


def _smoothing(method: str) -> float:
    """The constant of label smoothing (Appendix H)."""
    name, _, text = method.partition(":")
    try:
        constant = float(text)
    except ValueError:
        constant = np.nan
    if name != "smooth" or not 0.5 <= constant <= 1:
        raise ValueError(
            f"unknown method {method!r}: expected 'hard', 'soft', or 'smooth:c' with c in [0.5, 1], 'smooth:0.8' say"
        )
    return constant


class _Cells(NamedTuple):
    """Judged battles compressed: equal (pair, score difference, hard label, human label) are one cell."""

    first: Int  # (C,) lower model index
    second: Int  # (C,)
    pair: Int  # (C,) number of the pair, sorted
    label: Int  # (C,)
    battles: Int  # (C,) how many
    pairs: tuple[Int, Int]  # (P,) models of each pair
    labels: Float  # (U, 3) score difference, hard label, human label (NaN without one), of the first model


def _compress(battles: JudgedBattles) -> _Cells:
    a, b = battles.model_a.astype(np.int64), battles.model_b.astype(np.int64)
    swap = a > b
    difference = np.where(swap, -battles.score_difference, battles.score_difference) + 0.0
    hard, human = (np.where(swap, 1 - x, x) for x in (battles.hard, battles.human))
    codes = [np.unique(x, return_inverse=True) for x in (difference, hard, human)]
    joint = np.zeros(len(a), np.int64)
    for values, code in codes:
        joint = joint * len(values) + code
    kinds, label = np.unique(joint, return_inverse=True)
    parts = np.unravel_index(kinds, [len(values) for values, _ in codes])
    labels = np.stack([values[part] for (values, _), part in zip(codes, parts, strict=True)], axis=1)
    pair = np.where(swap, b, a) * len(battles.models) + np.where(swap, a, b)
    keys, count = np.unique(pair * len(kinds) + label, return_counts=True)
    pairs, of_cell = np.unique(keys // len(kinds), return_inverse=True)
    first, second = divmod(pairs, len(battles.models))
    return _Cells(first[of_cell], second[of_cell], of_cell, keys % len(kinds), count, (first, second), labels)


class _Study:
    """One judge: folds of the human labels and of every method; maps are numbered human, then the methods."""

    def __init__(self, battles: JudgedBattles, methods: tuple[str, ...], ridge: float, ties: Ties) -> None:
        self.battles, self.methods, self.ridge = battles, methods, ridge
        self.cells = cells = _compress(battles)
        m, n_cells = len(battles.models), len(cells.battles)
        self.size = padded_size(m)
        self.n_pairs = rounded_size(len(cells.pairs[0]) + 1)
        # Padding cells of count 0 let similar data share one compilation.
        c, u = rounded_size(n_cells + 1), rounded_size(len(cells.labels))
        difference, _, human = cells.labels.T
        fitting = in_likelihood(human, ties).astype(float)
        position = np.full((self.size, self.size), self.n_pairs - 1, np.int32)
        first, second = cells.pairs
        position[first, second] = position[second, first] = np.arange(len(first))
        self.own, self.own_first = _own_cells(cells, m)
        width = 1 << max(max(map(len, self.own)) - 1, 63).bit_length()
        own = np.full((m, width), c, np.int32)
        for row, mine in zip(own, self.own, strict=True):
            row[: len(mine)] = mine
        self.judged = batch.Judged(
            pair=_padded(cells.pair, c, self.n_pairs - 1).astype(np.int32),  # type: ignore[arg-type]
            label=_padded(cells.label, c, 0).astype(np.int32),  # type: ignore[arg-type]
            battles=_padded(cells.battles, c, 0).astype(float),  # type: ignore[arg-type]
            level=_padded(difference, u, 0),  # type: ignore[arg-type]
            fitting=_padded(fitting, u, 0),  # type: ignore[arg-type]
            wins=_padded(fitting * np.nan_to_num(human), u, 0),  # type: ignore[arg-type]
            position=position,  # type: ignore[arg-type]
            own=own,  # type: ignore[arg-type]
        )
        with double_precision():
            self._fit()

    def _fit(self) -> None:
        m, size, cells = len(self.battles.models), self.size, self.cells
        u = len(self.judged.level)
        chunk = _chunk(m, 4 * u + self.judged.own.shape[1])
        found = batch.fold_temperatures(self.judged, float(FEWEST_BATTLES), TOLERANCE_LOGIT, _TEMPERATURE_STEPS, chunk)
        beta, status = np.asarray(found.beta), np.asarray(found.status)
        self.beta, self.beta_status = beta[:m], status[:m]
        usable = np.isfinite(self.beta) & (self.beta_status == CONVERGED)
        pooled = beta[m] if np.isfinite(beta[m]) else 0.0
        human = cells.labels[:, 2]
        targets = np.stack([human, *(self._targets(method, np.float64(pooled)) for method in self.methods)])
        weights = np.isfinite(targets).astype(float)
        n, wins = batch.judged_tables(
            self.judged, _padded(weights, u, 0), _padded(np.nan_to_num(targets), u, 0), self.n_pairs
        )
        met = np.asarray(n) > 0
        self.n = np.asarray(n)
        actives = np.asarray(met.any(2))
        full = batch.fit(n, wins.sum(2), actives, self.ridge, 1e-6, _NEWTON_STEPS)
        inverse, _ = batch.inverse_information(full.theta, n, self.ridge, actives)

        folds = np.arange(m, dtype=np.int32)
        chunk = _chunk(m, size * size)
        fixed = [k for k, name in enumerate(("human", *self.methods)) if name != "soft"]
        at = np.array(fixed)
        options = (folds, self.ridge, TOLERANCE_LOGIT, _CHORD_STEPS, chunk)
        parts = batch.hold_out(n[at], wins[at], full.theta[at], inverse[at], actives[at], *options)
        held = [np.empty((len(targets), *x.shape[1:]), x.dtype) for x in parts]
        for into, values in zip(held, parts, strict=True):
            into[at] = values
        if "soft" in self.methods:
            k = 1 + self.methods.index("soft")
            soft = batch.hold_out_soft(
                self.judged,
                np.where(usable, self.beta, 0.0),
                n[k],
                full.theta[k],
                inverse[k],
                actives[k],
                folds,
                self.ridge,
                TOLERANCE_LOGIT,
                self.n_pairs,
                _CHORD_STEPS,
                _chunk(m, max(size * size, len(self.judged.pair))),
            )
            for into, values in zip(held, soft, strict=True):
                into[k] = values
        result = batch.HeldOut(*map(np.asarray, held))  # type: ignore[arg-type]
        self._finish(result)
        self.anchors, self.theta = np.asarray(result.anchors), np.asarray(result.theta)[:, :m]
        statuses = np.stack([result.anchor_status, result.status])
        self.converged = (statuses == CONVERGED).all(0)
        for k, method in enumerate(self.methods, start=1):
            if method == "soft":
                self.theta[k] = np.where(usable, self.theta[k], np.nan)
        rated = np.asarray(self.n.any(2))[:, :m]
        self.theta[~rated] = np.nan
        self.apart = np.stack([_falls_apart(self.n[k][:m, :m]) for k in (0, 1)])

    def _finish(self, held: batch.HeldOut) -> None:
        """Newton's method, in place, for folds whose anchors the chord steps left unconverged."""
        failed = np.argwhere(np.asarray(held.anchor_status) != CONVERGED)
        m, limit = len(self.battles.models), max(1, 2**25 // self.size**2)
        for start in range(0, len(failed), limit):
            part = failed[start : start + limit]
            padded = part[np.minimum(np.arange(1 << (len(part) - 1).bit_length()), len(part) - 1)]
            k, fold = padded.T
            kept = (np.arange(self.size) != fold[:, None]) & (np.arange(self.size) < m)
            n = np.where(kept[:, :, None] & kept[:, None, :], self.n[k], 0.0)
            score = np.where(kept, np.asarray(held.anchor_score)[k, fold], 0.0)
            end = batch.fit(n, score, kept & n.any(2), self.ridge, TOLERANCE_LOGIT, _NEWTON_STEPS)
            own = batch.rate(
                end.theta,
                self.n[k, fold],
                np.asarray(held.score)[k, fold],
                np.zeros(len(k)),
                self.ridge,
                TOLERANCE_LOGIT,
                _NEWTON_STEPS,
            )
            for into, values in (
                (held.anchors, end.theta),
                (held.anchor_status, end.status),
                (held.theta, own.theta),
                (held.status, own.status),
            ):
                np.asarray(into)[k, fold] = np.asarray(values)

    def _targets(self, method: str, beta: Any) -> Float:
        """Targets of the labels, (U,), or (F, U) for soft targets at (F, 1) ``beta``."""
        difference, hard, _ = self.cells.labels.T
        if method == "soft":
            return np.asarray(expit(beta * difference))
        constant = 1.0 if method == "hard" else _smoothing(method)
        return 0.5 + (2 * constant - 1) * (hard - 0.5)

    def table(self, base: float, min_battles: int) -> pd.DataFrame:
        """One row a model and method; the standard errors are still missing."""
        m = len(self.battles.models)
        n_human, n_judge = (np.rint(self.n[k].sum(1)[:m]).astype(int) for k in (0, 1))
        elo = base + ELO_PER_LOGIT * self.theta
        rows = []
        for i in range(m):
            for k, method in enumerate(self.methods, start=1):
                soft = method == "soft"
                wrong = []
                if n_human[i] == 0:
                    wrong.append("no human labels")
                elif min(n_human[i], n_judge[i]) < min_battles:
                    wrong.append("few battles")
                if self.apart[:, i].any():
                    wrong.append("anchors fall apart")
                status = status_text(int(self.beta_status[i]), float(self.beta[i]))
                if soft and status not in ("converged", "negative slope"):
                    wrong.append(f"no temperature: {status}")
                if not self.converged[[0, k], i].all():
                    wrong.append("not converged")
                notes = [status] if soft and status == "negative slope" else []
                rows.append(
                    {
                        "model": self.battles.models[i],
                        "method": method,
                        "human_elo": elo[0, i],
                        "judge_elo": elo[k, i],
                        "residual": elo[k, i] - elo[0, i],
                        "standard_error": np.nan,
                        "beta": self.beta[i] if soft else np.nan,
                        "n_battles": n_judge[i],
                        "n_human": n_human[i],
                        "flags": ", ".join([*wrong, *notes]),
                        "averaged": not wrong,
                    }
                )
        return pd.DataFrame(rows)

    def resamples(self, n_resamples: int, seed: int) -> Float:
        """(methods, M, B) log-strengths of the held-out models in resamples of their own battles."""
        m, n_methods = len(self.battles.models), len(self.methods)
        theta = np.full((n_methods, m, n_resamples), np.nan)
        units = [self._own_units(i) for i in range(m)]
        # Models of similar numbers of units run together: little is padding, and few shapes are compiled.
        width = np.array([1 << max(len(count) - 1, 255).bit_length() for _, _, count in units])
        numbers = np.arange(n_resamples)
        for size in np.unique(width):
            chosen = np.flatnonzero(width == size)
            counts = [_padded(units[i][2], size, 0)[None] for i in chosen]
            tables, top_up_size = unit_tables(counts)
            problems = stack(
                [
                    batch.OwnBattles(
                        units=table,
                        stream=np.uint64(stream_number(str(self.battles.models[i]))),  # type: ignore[arg-type]
                        opponent=_padded(units[i][0], size, self.size).astype(np.int32),  # type: ignore[arg-type]
                        target=_padded(units[i][1], size, 0).T,  # type: ignore[arg-type]
                        anchors=self.anchors[1:, i],  # type: ignore[arg-type]
                        start=np.nan_to_num(self.theta[1:, i]),
                    )
                    for i, table in zip(chosen, tables, strict=True)
                ]
            )
            lanes = _chunk(n_resamples, 2 * size + 4 * n_methods * self.size)
            with double_precision():
                found, status = batch.own_resamples(
                    problems,
                    np.uint64(seed),
                    self.ridge,
                    TOLERANCE_LOGIT,
                    numbers,
                    top_up_size,
                    _NEWTON_STEPS,
                    lanes,
                )
            values = np.where(np.asarray(status) == CONVERGED, np.asarray(found), np.nan)
            theta[:, chosen] = values.transpose(1, 0, 2)
        return theta

    def _own_units(self, i: int) -> tuple[Int, Float, Int]:
        """Opponents, targets by method (K, Q), and counts of the units of model i."""
        mine = self.own[i]
        is_first = self.own_first[i]
        opponent = np.where(is_first, self.cells.second[mine], self.cells.first[mine])
        label = self.cells.label[mine]
        beta = np.float64(self.beta[i] if np.isfinite(self.beta[i]) else 0.0)
        target = np.stack([self._targets(method, beta)[label] for method in self.methods])
        target = np.where(is_first, target, 1 - target)
        return opponent, target, self.cells.battles[mine]


def _own_cells(cells: _Cells, n_models: int) -> tuple[list[Int], list[NDArray[np.bool_]]]:
    """Per model, its cells in order, and whether it is the first model of them."""
    model = np.concatenate([cells.first, cells.second])
    cell = np.tile(np.arange(len(cells.battles)), 2)
    order = np.lexsort((cell, model))
    ends = np.cumsum(np.bincount(model, minlength=n_models))[:-1]
    return np.split(cell[order], ends), np.split(order < len(cells.battles), ends)


def _falls_apart(n: Float) -> NDArray[np.bool_]:
    """(M,) folds in which the models left do not all meet, directly or through others; models without battles apart."""
    m = len(n)
    edge = (n > 0).astype(np.float32)
    left = ~np.eye(m, dtype=bool) & edge.any(1)
    reached = np.zeros((m, m), np.float32)
    reached[np.arange(m), left.argmax(1)] = left.any(1)
    while True:
        grown = (((reached @ edge) > 0) | (reached > 0)) & left
        if np.array_equal(grown, reached > 0):
            return np.asarray(~(grown | ~left).all(1))
        reached = grown.astype(np.float32)


def _padded(x: NDArray[Any], size: int, filler: float) -> NDArray[Any]:
    """``x`` with its last axis filled up to ``size``."""
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, size - x.shape[-1])], constant_values=filler)


def _chunk(lanes: int, words: int) -> int:
    """Lanes that run together, each of so many ``words``."""
    return int(np.clip(_WORDS_PER_CHUNK // words, 1, lanes))


def _summary(models: pd.DataFrame, keys: list[str], seed: int) -> pd.DataFrame:
    """Accuracy of every method over the models averaged, with bootstrap intervals over models."""
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
    return table.set_index(keys)[ordered]


_MEASURES = ("mae", "spearman", "kendall", "beta")


def _accuracy(models: pd.DataFrame, weights: Float) -> Float:
    """(B, 4) MAE, Spearman, Kendall tau-b and mean beta of models taken (B, M) ``weights`` times each.

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
        product, used_x, used_y = (
            np.sum((weights @ table) * weights, 1) for table in (signs[0] * signs[1], signs[0] ** 2, signs[1] ** 2)
        )
        kendall = product / np.sqrt(used_x * used_y)
        # Ranks up to a constant: how many copies are below, those level with it half.
        ranks = [weights @ (1 - sign) / 2 for sign in signs]
        centred = [r - (np.sum(weights * r, 1) / total)[:, None] for r in ranks]
        covariance, var_x, var_y = (
            np.sum(weights * a * b, 1)
            for a, b in ((centred[0], centred[1]), (centred[0], centred[0]), (centred[1], centred[1]))
        )
        spearman = covariance / np.sqrt(var_x * var_y)
    return np.stack([mae, spearman, kendall, beta], axis=1)


def _warnings(models: pd.DataFrame, several: bool) -> list[str]:
    """What is flagged, in words."""
    messages = []
    keys = ["judge", "method"] if several else ["method"]
    for key, group in models.groupby(keys, sort=False):
        where = " / ".join(map(str, key))
        for flags, flagged in group[group["flags"] != ""].groupby("flags", sort=False):
            shown = ", ".join(map(str, flagged["model"].head(8)))
            more = f" and {len(flagged) - 8} more" if len(flagged) > 8 else ""
            fate = "kept in the averages" if flagged["averaged"].all() else "left out of the averages"
            messages.append(f"{where}: {len(flagged)} models {fate} ({flags}): {shown}{more}")
    return messages
