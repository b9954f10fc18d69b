"""Which reference ranks models as all the votes do: single references, several under one budget, and how sure that is.

After Xu, Gaur, Leqi and Goyal, "Revisiting meta-evaluation standards of LLM evaluators" (Setting 1, Tables 3, 4 and 6,
Figures 1 and 2), with bootstrap intervals.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jax.sharding import Mesh
from numpy.typing import NDArray

from jaxeval.battles import Battles, Cells, as_battles
from jaxeval.bootstrap import bootstrap
from jaxeval.bradley_terry import device_name, fit_bradley_terry, named, padded_size
from jaxeval.kernels import batch
from jaxeval.kernels.references import Pools, Votes
from jaxeval.precision import double_precision, versions
from jaxeval.progress import Advance, progress_bar
from jaxeval.quantiles import checked_level, interval_bounds
from jaxeval.resampling import Entries, rounded, stream_number, vote_draws

Float = NDArray[np.float64]
Int = NDArray[np.int64]
Sets = Mapping[str, Sequence[Hashable]] | Sequence[Sequence[Hashable]]

#: Under so many pairs an agreement is not worth a sentence.
FEW_PAIRS = 15
#: Under so many votes of a model against the reference (median), win rates are mostly noise.
FEW_VOTES = 30
#: Share of resamples from which on a choice counts as settled.
SETTLED = 0.95
_TOLERANCE_LOGIT, _MAX_STEPS = 1e-9, 100
_RANGES = {"tau": (-1.0, 1.0), "misordered": (0.0, 1.0), "rank_change": (0.0, np.inf)}
_CHUNKS_PER_CALL = 16
_FEWEST_CELLS = 512  # arrays are no smaller: small boards share one compilation
_MOST_SHORT = 0.1  # share of models without the votes of a budget, for this budget to be compared
_COMBINATIONS = ((1, 2, 3, 4), (1, 2, 3), (2, 3, 4), (3, 4), (1, 4), (1, 3))  # of tiers, Table 6


@dataclass(frozen=True)
class ReferenceStudySettings:
    """What made a study of references."""

    deltas: tuple[float, ...]  # percentage points of win rate
    budgets: tuple[int, ...]  # votes of a model
    n_tiers: int
    n_repeats: int
    n_resamples: int
    seed: int
    level: float
    cluster: str | None
    ridge: float  # of the fits to several references
    device: str
    n_devices: int
    versions: str


@dataclass(frozen=True, eq=False)
class ReferenceStudy:
    """How rankings against references agree with the full Bradley-Terry ranking of the same votes.

    ``tau`` is Kendall's tau-b; with a ``delta`` it is of the pairs of models whose scores, in percent, differ by less
    than delta (infinity: all pairs). ``misordered`` is the share of these pairs in the wrong order, ties counting half:
    the expected loss. ``rank_change`` is the mean |rank - rank in the full ranking| (Eq. 4), both ranks being among the
    models that the reference ranks. Intervals, of what another study of this size would give on average, come from
    resamples of the votes, in each of which the full ranking is refitted too (see `centred`); there are none without
    resamples. The reference's own votes are part of the full ranking. Tier 1 is the top one.
    """

    by_reference: pd.DataFrame  # a row per reference, best first
    by_delta: pd.DataFrame  # a row per reference and delta
    by_test_tier: pd.DataFrame  # a row per reference and tier of the models ranked (Figure 1)
    by_tier: pd.DataFrame  # a row per tier of the references and delta: means over them (Table 4)
    by_tier_and_test_tier: pd.DataFrame  # a row per tier of the references and tier of the models (Figure 2)
    by_budget: pd.DataFrame  # a row per set of references, budget and delta: means over repeats (Table 6)
    advice: list[str]
    warnings: list[str]
    settings: ReferenceStudySettings
    tier: pd.Series = field(repr=False)  # of every model; missing without a rating
    tau_draws: Float = field(repr=False)  # (B, L, D) resamples of by_delta's tau, as they are
    budget_tau_draws: Float = field(repr=False)  # (B, S, budgets, D) and of by_budget's


class _Board(NamedTuple):
    """What is studied, as numbers."""

    models: pd.Index
    references: NDArray[np.intp]  # (L,)
    sets: dict[str, NDArray[np.intp]]  # of several references
    tier: Int  # (M,) 0 = none
    theta: Float  # (B + 1, M) log-strengths of the full data and the resamples


def reference_study(
    battles: Battles | Any,
    *,
    references: Sequence[Hashable] | None = None,
    sets: Sets | None = None,
    deltas: Sequence[float] = (2.0, 5.0, 10.0, 20.0),
    budgets: Sequence[int] = (25, 50, 100, 200),
    n_tiers: int = 4,
    n_repeats: int = 10,
    n_resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    cluster: str | None = None,
    ridge: float = 0.01,
    chunk_size: int | None = None,
    progress: bool | None = None,
) -> ReferenceStudy:
    """Rank the models by their votes against single references and sets of them, and compare with all votes' ranking.

    Against one reference models are ranked by win rate, ties counting half (Eq. 1). The reference itself and models
    that never met it are left out, and so are models without a comparable rating on all votes; all are counted. tau of
    close pairs takes those whose win rates differ by less than delta percentage points, strictly: the scores of the
    evaluator, not of the full ranking (Section 2.3).

    Under a budget every model has so many votes, drawn without replacement from its own (from the resample's, in a
    resample): for each vote a reference of the set, all with votes left being alike, and then one of the votes between
    the two. A model with fewer votes has all of them. One reference ranks by win rate; several by the Bradley-Terry
    model of the votes drawn, whose score is the mean win probability against the set, percent, so that delta means the
    same. References of a set are not ranked by it.

    Resample r and its repeats are functions of (seed, r) alone.

    Args:
        battles: `Battles`, or a table with the standard columns.
        references: models to study as single references; all of them by default.
        sets: several references under one budget, by name or not; by default the tier combinations of Table 6, each
            tier by its model with most battles.
        deltas: margins, percentage points of win rate.
        budgets: votes of every model; none leaves the study of budgets out.
        n_tiers: of equal numbers of models, by rating; a reference belongs to the tier of its own rating.
        n_repeats: studies of every budget, in the data and in every resample; the numbers are their means.
        n_resamples: bootstrap resamples of the votes; 0 for none.
        seed: any integer from 0 to 2**63 - 1.
        level: of the intervals.
        cluster: column of clusters (prompts, voters) that are resampled whole.
        ridge: > 0, coefficient of the squared norm in the fits to several references, which keeps models finite that
            won all their votes.
        chunk_size: resamples computed together; by default sized to the cache, or to 1 GB of an accelerator.
        progress: show a bar on standard error; by default only on a terminal, for work over 0.7 s.

    Raises:
        ValueError: a number out of range, or a reference that is not on the board.
        DataError: ``battles`` is a table that cannot be read, or ``cluster`` no column of it.
    """
    battles = as_battles(battles)
    level = checked_level(level)
    margins, votes = _checked(deltas, budgets, n_tiers, n_repeats, n_resamples, seed, ridge, chunk_size)
    chosen = _numbers(references, battles.models) if references is not None else np.arange(battles.n_models)
    with progress_bar(n_resamples + 1, "ranking against references", progress) as advance:
        if n_resamples:
            gold = bootstrap(battles, n_resamples, seed, cluster=cluster, progress=False)
            fit, warnings, draws = gold.fit, gold.warnings, gold.draws_logit
        else:
            fit = fit_bradley_terry(battles)
            warnings, draws = fit.warnings, np.empty((0, battles.n_models))
        theta = fit.logits.to_numpy()
        tier = _tiers(theta, n_tiers)
        if sets is None:
            several = _default_sets(battles.models, chosen, tier, fit.n_battles.to_numpy()) if votes else {}
        else:
            several = _named_sets(sets, battles.models)
        board = _Board(battles.models, chosen, several, tier, np.concatenate([theta[None], draws]))
        single, under_budget = _run(
            battles, board, cluster, margins, votes, n_tiers, n_repeats, seed, ridge, chunk_size, advance
        )
    settings = ReferenceStudySettings(
        deltas=tuple(margins[:-1].tolist()),
        budgets=votes,
        n_tiers=n_tiers,
        n_repeats=n_repeats,
        n_resamples=n_resamples,
        seed=seed,
        level=level,
        cluster=cluster,
        ridge=float(ridge),
        device=device_name(),
        n_devices=len(jax.local_devices()),
        versions=versions(),
    )
    return _result(battles, board, single, under_budget, margins, settings, warnings)


def _checked(
    deltas: Sequence[float],
    budgets: Sequence[int],
    n_tiers: int,
    n_repeats: int,
    n_resamples: int,
    seed: int,
    ridge: float,
    chunk_size: int | None,
) -> tuple[Float, tuple[int, ...]]:
    """Ascending margins, infinity last, and budgets."""
    positive = {"n_tiers": n_tiers, "n_repeats": n_repeats, "chunk_size": chunk_size}
    for name, value in {**positive, "n_resamples": n_resamples, "seed": seed}.items():
        least = 1 if name in positive else 0
        if isinstance(value, bool) or not isinstance(value, int | np.integer | None):
            raise TypeError(f"{name} must be an integer, got {value!r}")
        if value is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed must be an integer from 0 to 2**63 - 1, got {seed}")
    margins = np.unique(np.asarray(deltas, float))
    if not (margins > 0).all():
        raise ValueError(f"deltas must be > 0 percentage points, got {deltas!r}")
    votes = np.unique(np.asarray(budgets))
    if len(votes) and not (np.issubdtype(votes.dtype, np.integer) and (votes > 0).all() and (votes < 2**31).all()):
        raise ValueError(f"budgets must be whole numbers of votes, from 1 to 2**31 - 1, got {budgets!r}")
    if not (isinstance(ridge, int | float | np.number) and np.isfinite(ridge) and ridge > 0):
        raise ValueError(f"ridge must be finite and > 0, got {ridge!r}: it keeps undefeated models finite")
    return np.append(margins[np.isfinite(margins)], np.inf), tuple(int(b) for b in votes)


def _numbers(names: Sequence[Hashable], models: pd.Index) -> NDArray[np.intp]:
    """Numbers of the models named."""
    if isinstance(names, str) or len(names) == 0:
        raise ValueError(f"references must be a list of one or more models, got {names!r}")
    number = models.get_indexer(pd.Index(list(names)))
    missing = [name for name, n in zip(names, number, strict=True) if n < 0]
    if missing:
        raise ValueError(f"no model {named(missing)} on the board, whose models are {named(models)}")
    if len(set(number)) < len(number):
        raise ValueError(f"references are named twice: {named(list(names))}")
    return np.asarray(number)


def _named_sets(sets: Sets, models: pd.Index) -> dict[str, NDArray[np.intp]]:
    items = sets.items() if isinstance(sets, Mapping) else ((" + ".join(map(str, names)), names) for names in sets)
    found = {str(label): _numbers(names, models) for label, names in items}
    alone = [label for label, numbers in found.items() if len(numbers) < 2]
    if alone:
        raise ValueError(f"sets need two references or more (name single ones with references=): {named(alone)}")
    return found


def _tiers(theta: Float, n_tiers: int) -> Int:
    """(M,) tiers of equal numbers of models by rating, 1 = top; equals share the better one; 0 without a rating."""
    rank = pd.Series(-theta).rank(method="min").to_numpy()
    tier = np.floor((rank - 1) * n_tiers / max(np.isfinite(rank).sum(), 1)) + 1
    return np.nan_to_num(tier).astype(np.int64)


def _default_sets(models: pd.Index, chosen: NDArray[np.intp], tier: Int, n_battles: Int) -> dict[str, NDArray[np.intp]]:
    """The tier combinations of Table 6, each tier by that of the ``chosen`` references with most battles."""
    best = {
        t: own[np.argmax(n_battles[own])]
        for t in np.unique(tier[chosen])
        if t > 0
        for own in [chosen[tier[chosen] == t]]
    }
    wanted = (tuple(t for t in tiers if t in best) for tiers in _COMBINATIONS)
    return {
        f"tiers {', '.join(map(str, tiers))}": np.array([best[t] for t in tiers])
        for tiers in dict.fromkeys(wanted)
        if len(tiers) > 1
    }


def _votes(cells: Cells, entries: Entries) -> Votes:
    """The cells, one more that is empty, and the entries of the draws by cell."""
    at = np.flatnonzero(entries.weight.reshape(-1) > 0)
    cell = entries.cell.reshape(-1)[at]
    times = np.rint(entries.weight.reshape(-1)[at] / cells.weight[cell])
    unit = at if entries.unit is None else entries.unit.reshape(-1)[at]
    order = np.argsort(cell, kind="stable")
    n_cells = rounded(max(len(cells.count) + 1, _FEWEST_CELLS))
    filler = 0, rounded(max(len(order), _FEWEST_CELLS)) - len(order)
    arrays: Any = (
        np.pad(unit[order], filler).astype(np.int32),
        np.pad(cell[order], filler, constant_values=n_cells - 1).astype(np.int32),
        np.pad(times[order], filler).astype(np.int32),
        np.pad(cells.count, (0, n_cells - len(cells.count))).astype(np.int32),
    )
    return Votes(*arrays)


def _pools(sets: Sequence[NDArray[np.intp]], cells: Cells, size: int, nothing: int) -> Pools:
    """The votes of ``size`` models, padding ones included, against the references of every set.

    Args:
        nothing: number of an empty cell.
    """
    n_pairs = len(cells.first)
    position = np.full((size, size), n_pairs)
    position[cells.first, cells.second] = position[cells.second, cells.first] = np.arange(n_pairs)
    n_cells = np.append(np.bincount(cells.pair, minlength=n_pairs), 0)
    first_cell = np.cumsum(n_cells) - n_cells
    g = max(int(n_cells.max()), 3)
    width = max(len(members) for members in sets)
    reference = np.full((width, len(sets)), -1)  # -1: none
    for s, members in enumerate(sets):
        reference[: len(members), s] = members
    model = np.arange(size)[:, None]
    of_set = (model[:, :, None] == reference.T[None]).any(2)  # (M, S) models that are themselves references
    known = (reference >= 0)[:, None] & ~of_set  # (K, M, S)
    pair = np.where(known, position[model, reference[:, None]], n_pairs)[:, None]
    number = first_cell[pair] + np.arange(g)[:, None, None]
    there = np.arange(g)[:, None, None] < n_cells[pair]
    cell = np.where(there, number, 0)
    target = np.where(model < reference[:, None, None], cells.target[cell], 1 - cells.target[cell])
    shape = width * g, size, len(sets)
    arrays: Any = (
        np.where(there, cell, nothing).astype(np.int32).reshape(shape),
        np.where(there, cells.weight[cell], 0.0).reshape(shape),
        np.where(there, target, 0.0).reshape(shape),
        reference >= 0,
    )
    return Pools(*arrays)


def _run(
    battles: Battles,
    board: _Board,
    cluster: str | None,
    margins: Float,
    votes: tuple[int, ...],
    n_tiers: int,
    n_repeats: int,
    seed: int,
    ridge: float,
    chunk_size: int | None,
    advance: Advance,
) -> tuple[batch.SingleReferences, batch.Budgets]:
    """Everything batched, leading axis B + 1, the full data first."""
    cells, m = battles.cells, battles.n_models
    codes = None if cluster is None else battles.codes(cluster)[0]
    drawn = vote_draws(cells, codes, None if cluster is None else battles.compress(slice(None))[1])
    drawn_votes = _votes(cells, drawn.entries)
    size, nothing = padded_size(m), len(drawn_votes.battles) - 1
    # Padding references, too, that nobody met: small boards share one compilation.
    padded = np.pad(
        board.references, (0, padded_size(len(board.references)) - len(board.references)), constant_values=-1
    )
    single = _pools([np.array([k]) for k in padded], cells, size, nothing)
    several = _pools(list(board.sets.values()), cells, size, nothing) if board.sets and votes else None
    tiers = np.zeros((n_tiers, size), bool)
    tiers[:, :m] = board.tier == np.arange(1, n_tiers + 1)[:, None]
    stream, votes_stream = (np.uint64(stream_number(label)) for label in ("", "votes under a budget"))
    parts: Any = drawn.units, stream, votes_stream, drawn_votes, single, several, tiers
    problem = batch.ReferenceProblem(*parts)
    form = batch.StudyForm(drawn.tally, drawn.top_up_size, _MAX_STEPS)
    # No model has more votes than that: larger budgets would only take time.
    budgets = np.minimum(np.array(votes, np.int64), _battle_counts(cells, m).sum(1).max())
    asked: Any = np.uint64(seed), margins, budgets, n_repeats, float(ridge), _TOLERANCE_LOGIT
    settings = batch.StudySettings(*asked)

    lanes = chunk_size or _chunk_size(problem, len(votes))
    mesh = Mesh(np.array(jax.local_devices()), ("lanes",))
    gold = np.full((len(board.theta), size), np.nan)
    gold[:, :m] = board.theta
    n_lanes, per_call = len(gold), lanes * _CHUNKS_PER_CALL * mesh.size
    found = []
    with double_precision():
        problem, settings = jax.tree.map(jax.numpy.asarray, (problem, settings))
        for start in range(0, n_lanes, per_call):
            numbers = np.arange(start, min(start + per_call, n_lanes))
            n_chunks = -(-len(numbers) // lanes)
            # Chunk c goes to device c % D; a short chunk repeats its last resample, slots without one are not run.
            slots = np.pad(numbers, (0, per_call - len(numbers)), mode="edge")
            slots = slots.reshape(_CHUNKS_PER_CALL, mesh.size, lanes).swapaxes(0, 1)
            own = np.array([len(range(d, n_chunks, mesh.size)) for d in range(mesh.size)], np.int32)
            results = jax.device_get(batch.reference_study(problem, form, mesh, settings, slots - 1, gold[slots], own))
            found.append(jax.tree.map(lambda x: x.swapaxes(0, 1).reshape(per_call, *x.shape[3:]), results))
            advance(len(numbers))
    alone, together = jax.tree.map(lambda *parts: np.concatenate(parts)[:n_lanes], *found)
    used = len(board.references)
    sets = [*range(used), *range(len(padded), together.tau.shape[-1])]
    return jax.tree.map(lambda x: x[..., :used], alone), jax.tree.map(lambda x: x[..., sets], together)


def _chunk_size(problem: batch.ReferenceProblem, n_budgets: int) -> int:
    """Lanes whose tables fit the cache of a CPU core, or a gigabyte of an accelerator."""
    pools = [p.cell for p in (problem.single, problem.several) if p is not None]
    words = sum(cell.size for cell in pools) * (2 + 2 * n_budgets)
    budget, most = (2**20, 32) if jax.default_backend() == "cpu" else (2**27, 1024)
    return int(np.clip(budget // words, 1, most))


def centred(values: Float) -> Float:
    """(B, ...) resamples ``values[1:]``, moved to have the full data's ``values[0]`` as their mean.

    A resample has the noise of the votes twice over, which lowers every agreement, most where votes are few: as they
    are, most resamples may lie below the estimate.
    """
    known = (~np.isnan(values[1:])).sum(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(values[1:] + (values[0] - np.nansum(values[1:], 0) / known))


def _ends(values: Float, level: float, within: tuple[float, float]) -> tuple[Float, Float]:
    """Interval of ``values[0]`` by the centred resamples; NaN without any."""
    if len(values) == 1:
        return np.full(values.shape[1:], np.nan), np.full(values.shape[1:], np.nan)
    lower, upper = interval_bounds(centred(values), level)
    return np.clip(lower, *within), np.clip(upper, *within)


def _with_bounds(name: str, values: Any, level: float) -> dict[str, Float]:
    """Columns of the full data's value and interval; ``values`` (B + 1, ...) are flattened."""
    values = np.asarray(values)
    lower, upper = _ends(values, level, _RANGES[name])
    return {
        key: x.reshape(-1)
        for key, x in zip((name, f"{name}_lower", f"{name}_upper"), (values[0], lower, upper), strict=True)
    }


def mean_by_tier(values: Float, tier: Int, n_tiers: int) -> Float:
    """(..., T) means of ``values`` (..., L) over the references of every tier; those without a value are left out."""
    own = tier[:, None] == np.arange(1, n_tiers + 1)
    known = ~np.isnan(values)
    n = known.astype(float) @ own
    with np.errstate(invalid="ignore"):
        return np.where(n > 0, np.nan_to_num(values) @ own / n, np.nan)


def _overall(single: batch.SingleReferences) -> Float:
    """(B + 1, L) mean rank change of all models."""
    change, models = np.nan_to_num(single.rank_change), np.asarray(single.tier_models)
    with np.errstate(invalid="ignore"):
        return np.asarray((change * models).sum(1) / models.sum(1))


def _grid(rows: Mapping[str, Any], columns: Mapping[str, Any]) -> pd.DataFrame:
    """All combinations of labels, ``rows`` slowest, as columns; all lists of either have one length."""
    n, m = len(next(iter(rows.values()))), len(next(iter(columns.values())))
    left = {key: pd.Series(x).repeat(m).array for key, x in rows.items()}
    return pd.DataFrame({**left, **{key: np.tile(np.asarray(x), n) for key, x in columns.items()}})


def _result(
    battles: Battles,
    board: _Board,
    single: batch.SingleReferences,
    under_budget: batch.Budgets,
    margins: Float,
    settings: ReferenceStudySettings,
    warnings: Sequence[str],
) -> ReferenceStudy:
    level, n_tiers = settings.level, settings.n_tiers
    rank = pd.Series(-board.theta[0]).rank(method="min")
    # Best first, the unrated last.
    order = np.argsort(rank.to_numpy()[board.references], kind="stable")
    members = board.references[order]
    board = board._replace(references=members)
    single = batch.SingleReferences(*(np.asarray(x)[..., order] for x in single))  # type: ignore[arg-type]
    tier = board.tier[members]
    names = board.models[members]
    n, _ = battles.cells.tables(battles.n_models)
    n = n[:, members]
    rated = ~np.isnan(board.theta[0])
    labels = {"reference": names, "tier": pd.array(tier, "Int64")}
    labels["tier"][tier == 0] = pd.NA
    with np.errstate(invalid="ignore"):
        median = pd.DataFrame(np.where(n > 0, n, np.nan)).median()
    change = _overall(single)
    by_reference = pd.DataFrame(
        {
            **labels,
            "rank": rank.iloc[members].astype("Int64").array,
            "n_battles": n.sum(0),
            "battles_per_model": median.to_numpy(),
            "n_models": ((n > 0) & rated[:, None]).sum(0),
            "n_never_met": (n == 0).sum(0) - 1,
            "n_unrated": ((n > 0) & ~rated[:, None]).sum(0),
            "n_pairs": np.asarray(single.pairs)[0, -1].astype(int),
            **_with_bounds("tau", single.tau[:, -1], level),
            **_with_bounds("misordered", single.misordered[:, -1], level),
            **_with_bounds("rank_change", change, level),
        }
    )
    tau = np.swapaxes(single.tau, 1, 2)  # (B + 1, L, D)
    by_delta = _grid(labels, {"delta": margins}).assign(
        n_pairs=single.pairs[0].T.reshape(-1).astype(int),
        **_with_bounds("tau", tau, level),
        **_with_bounds("misordered", np.swapaxes(single.misordered, 1, 2), level),
    )
    all_tiers = np.arange(1, n_tiers + 1)
    rank_change, tier_tau = (np.swapaxes(x, 1, 2) for x in (single.rank_change, single.tier_tau))
    by_test_tier = _grid(labels, {"test_tier": all_tiers}).assign(
        n_models=single.tier_models[0].T.reshape(-1).astype(int),
        **_with_bounds("rank_change", rank_change, level),
        n_pairs=single.tier_pairs[0].T.reshape(-1).astype(int),
        **_with_bounds("tau", tier_tau, level),
    )

    def averaged(values: Any) -> Float:
        return mean_by_tier(np.asarray(values), tier, n_tiers)

    of_tier = {"tier": all_tiers, "n_references": np.bincount(tier, minlength=n_tiers + 1)[1:]}
    by_tier = _grid(of_tier, {"delta": margins}).assign(
        n_pairs=averaged(single.pairs[0]).T.reshape(-1),
        **_with_bounds("tau", np.swapaxes(averaged(single.tau), 1, 2), level),
        **_with_bounds("misordered", np.swapaxes(averaged(single.misordered), 1, 2), level),
    )
    tier_change = np.swapaxes(averaged(single.rank_change), 1, 2)  # (B + 1, T, T)
    by_both = _grid(of_tier, {"test_tier": all_tiers}).assign(
        **_with_bounds("rank_change", tier_change, level),
        n_pairs=averaged(single.tier_pairs[0]).T.reshape(-1),
        **_with_bounds("tau", np.swapaxes(averaged(single.tier_tau), 1, 2), level),
    )
    by_budget, budget_tau = _by_budget(battles.cells, board, order, labels["tier"], under_budget, margins, settings)
    advice = [
        *_tier_advice(tier_change, by_both, n_tiers),
        *_single_advice(np.asarray(single.tau)[:, -1], by_reference, by_delta),
        *_budget_advice(budget_tau, by_budget, board, settings),
    ]
    return ReferenceStudy(
        by_reference, by_delta, by_test_tier, by_tier, by_both, by_budget, advice,
        [*warnings, *_warnings(by_reference, settings)], settings,
        pd.Series(board.tier, board.models, name="tier", dtype="Int64").where(board.tier > 0),
        tau[1:], budget_tau[1:],
    )  # fmt: skip


def _by_budget(
    cells: Cells,
    board: _Board,
    order: NDArray[np.intp],
    tier: Any,
    sums: batch.Budgets,
    margins: Float,
    settings: ReferenceStudySettings,
) -> tuple[pd.DataFrame, Float]:
    """The table, and the mean tau (B + 1, S, budgets, D)."""
    n_single, n_several = len(order), len(board.sets) if settings.budgets else 0
    chosen = np.concatenate([order, n_single + np.arange(n_several)]).astype(int)
    # (B + 1, S, budgets, D)
    sums = batch.Budgets(*(np.moveaxis(np.asarray(x)[..., chosen], 1, -1).swapaxes(1, 2) for x in sums))  # type: ignore[arg-type]
    times = np.where(sums.defined > 0, sums.defined, np.nan)
    tau, wrong, pairs = sums.tau / times, sums.misordered / times, sums.pairs / times
    with np.errstate(invalid="ignore", divide="ignore"):
        square = sums.tau_square[0] / times[0] - tau[0] ** 2
        spread = np.sqrt(np.where(square > 1e-12, square, 0.0) * times[0] / (times[0] - 1))
    labels = {
        "references": [*board.models[board.references], *board.sets][: n_single + n_several],
        "n_references": [1] * n_single + [len(x) for x in list(board.sets.values())[:n_several]],
        "tier": [*tier, *[pd.NA] * n_several],
    }
    count = _battle_counts(cells, len(board.models))
    sets = [np.array([k]) for k in board.references] + list(board.sets.values())[:n_several]
    votes = np.stack(
        [np.where(np.isin(np.arange(len(count)), members), 0, count[:, members].sum(1)) for members in sets]
    )
    ranked = (votes > 0) & ~np.isnan(board.theta[0])
    short = ranked[:, None] & (votes[:, None] < np.array(settings.budgets, int)[:, None])  # (S, budgets, M)
    inner = {
        "budget": np.repeat(np.array(settings.budgets, int), len(margins)),
        "delta": np.tile(margins, len(settings.budgets)),
    }
    table = _grid(labels, inner).assign(
        n_models=np.repeat(ranked.sum(1), len(inner["delta"])),
        n_short=np.repeat(short.sum(2).reshape(-1), len(margins)),
        n_pairs=pairs[0].reshape(-1),
        **_with_bounds("tau", tau, settings.level),
        tau_spread=spread.reshape(-1),
        **_with_bounds("misordered", wrong, settings.level),
        n_repeats=np.asarray(sums.defined)[0].reshape(-1).astype(int),
    )
    return table, np.asarray(tau)


def _battle_counts(cells: Cells, n_models: int) -> Int:
    """(M, M) battles between two models."""
    count = np.zeros((n_models, n_models), np.int64)
    count[cells.first, cells.second] = np.bincount(cells.pair, cells.count, minlength=len(cells.first))
    return count + count.T


def _sure(score: Float) -> str:
    """In how many resamples the best of ``score`` (B + 1, candidates), the highest, is that of the full data."""
    if len(score) == 1:
        return "; without resamples nothing says how sure that is"
    draws = centred(score)
    best = np.where(np.isnan(draws), -np.inf, draws).argmax(1)
    share = float((best == np.nanargmax(score[0])).mean())
    if share >= SETTLED:
        return f", as in {share:.0%} of the resamples"
    return f", but in only {share:.0%} of the resamples: the votes do not settle it"


def _interval(row: Any, name: str) -> str:
    lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
    return "" if np.isnan(lower) else f" [{lower:.2f}, {upper:.2f}]"


def _tier_advice(change: Float, table: pd.DataFrame, n_tiers: int) -> Iterator[str]:
    """Which tier of references serves which tier of models; ``change`` is (B + 1, T of references, T of models)."""
    usable = ~np.isnan(change[0]).all(1)
    if usable.sum() < 2:
        return
    for t in range(n_tiers):
        rows = table[table["test_tier"] == t + 1].set_index("tier")
        if np.isnan(change[0, usable, t]).any():
            yield f"models of tier {t + 1}: not every tier has references that rank them; nothing to advise"
            continue
        pairs = rows["n_pairs"].min()
        if pairs < FEW_PAIRS:
            yield (
                f"models of tier {t + 1}: only {pairs:.0f} pairs of them behind some numbers (under {FEW_PAIRS}), too "
                "few to choose a reference by"
            )
            continue
        own, worst = rows.loc[rows["rank_change"].idxmin()], rows["rank_change"].idxmax()
        yield (
            f"models of tier {t + 1} are ranked best by references of tier {own.name}: {own['rank_change']:.1f} places "
            f"off{_interval(own, 'rank_change')}, with references of tier {worst} {rows['rank_change'].max():.1f}"
            f"{_sure(-change[:, :, t])}"
        )


def _single_advice(tau: Float, table: pd.DataFrame, by_delta: pd.DataFrame) -> Iterator[str]:
    """The single reference that agrees best, and what close pairs are worth; ``tau`` is (B + 1, L)."""
    enough = (table["n_pairs"] >= FEW_PAIRS).to_numpy() & ~np.isnan(tau[0])
    if not enough.any():
        yield f"no reference has {FEW_PAIRS} pairs of models to rank: nothing can be said of references here"
        return
    row = table[enough].loc[table["tau"][enough].idxmax()]
    if enough.sum() > 1:
        yield (
            f"of single references, {row['reference']} agrees best with the ranking of all votes: tau {row['tau']:.2f}"
            f"{_interval(row, 'tau')} over {row['n_pairs']:,} pairs{_sure(tau[:, enough])}"
        )
    for delta, rows in by_delta[np.isfinite(by_delta["delta"])].groupby("delta"):
        if rows["n_pairs"].median() >= FEW_PAIRS:
            yield (
                f"win rates within {delta:g} points of each other: tau {rows['tau'].mean():.2f} on average over the "
                f"references, {rows['misordered'].mean():.0%} of these pairs in the wrong order"
            )
            break


def _budget_advice(tau: Float, table: pd.DataFrame, board: _Board, settings: ReferenceStudySettings) -> Iterator[str]:
    """Several references against the same ones alone, under one budget; ``tau`` is (B + 1, S, budgets, D)."""
    if not settings.budgets:
        return
    number = {reference: k for k, reference in enumerate(board.references)}
    all_pairs = table[np.isinf(table["delta"])]
    short = (all_pairs["n_short"] / all_pairs["n_models"]).to_numpy().reshape(-1, len(settings.budgets))
    for s, (label, members) in enumerate(board.sets.items()):
        if not all(member in number for member in members):
            continue
        of_members = [number[member] for member in members]
        # The largest budget that nearly all models have votes for, also from each reference alone.
        enough = np.flatnonzero((short[[*of_members, len(number) + s]] <= _MOST_SHORT).all(0))
        if len(enough) == 0:
            continue
        b = enough[-1]
        own, alone = tau[:, len(number) + s, b, -1], tau[:, of_members, b, -1].mean(1)
        if np.isnan(own[0]) or np.isnan(alone[0]):
            continue
        gain = own - alone
        lower, upper = _ends(gain, settings.level, (-2.0, 2.0))
        sure = "" if np.isnan(lower) else f" (difference {gain[0]:+.2f} [{lower:+.2f}, {upper:+.2f}])"
        yield (
            f"{label} ({named(board.models[members])}) under {settings.budgets[b]:,} votes a model: tau {own[0]:.2f}, "
            f"the same references alone {alone[0]:.2f} on average{sure}"
        )


def _warnings(table: pd.DataFrame, settings: ReferenceStudySettings) -> Iterator[str]:
    few = table.loc[table["n_pairs"] < FEW_PAIRS, "reference"]
    if len(few):
        yield f"under {FEW_PAIRS} pairs of models behind the agreement of {named(list(few))}: it says little"
    unsure = table.loc[(table["battles_per_model"] < FEW_VOTES) & (table["n_pairs"] >= FEW_PAIRS), "reference"]
    if len(unsure):
        yield (
            f"{named(list(unsure))}: under {FEW_VOTES} votes against half of the models or more, win rates are mostly "
            "noise"
        )
    missing = table["n_never_met"] + table["n_unrated"]
    if (missing > 0).any():
        worst = table.loc[missing.idxmax()]
        yield (
            f"{(missing > 0).sum()} of {len(table)} references do not rank all other models: most are missing from "
            f"{worst['reference']} ({worst['n_never_met']:.0f} never met it, {worst['n_unrated']:.0f} have no "
            "comparable rating). Numbers of different references rest on different models"
        )
    enough = int(np.ceil(2 / (1 - settings.level) - 1e-9))
    if 0 < settings.n_resamples < enough:
        yield (
            f"{settings.n_resamples:,} resamples are too few for {100 * settings.level:g}% intervals, whose tails each "
            f"hold less than one of them: take {enough:,} or more"
        )
