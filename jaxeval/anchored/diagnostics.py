"""Is the reference a good one? Informative range, ranking under another reference, and whether gaps add up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import scipy

from jaxeval.data.columns import require_column
from jaxeval.show.cells import with_kinds
from jaxeval.show.shown import Result
from jaxeval.wording import counted

#: A probability in this range is informative; a reference should have nearly all models there.
MID_REGION = (0.2, 0.8)
ENOUGH = 0.95
SAME_RANKING = 0.9
_FLOOR, _CEILING = 0.05, 0.95


@dataclass(frozen=True, eq=False, repr=False)
class AnchorDiagnostics(Result):
    """What speaks for and against each reference.

    ``coverage`` has a row per reference: the share of probabilities below, in and above [0.2, 0.8], at the floor (under
    0.05) and at the ceiling (over 0.95). ``swap`` has a row per pair of references: Kendall's tau-b of the two
    leaderboards and the centred shifts of ratings, Elo. ``additivity`` has a row per chain B - A - C, in which A is a
    reference and was also judged as a model: the rating of B against C less the sum over the chain, its standard error
    and their ratio. ``advice`` says it in words.
    """

    coverage: pd.DataFrame
    swap: pd.DataFrame
    additivity: pd.DataFrame
    advice: list[str]

    def _sentences(self) -> list[str]:
        return self.advice


def diagnose_anchors(scores: pd.DataFrame) -> AnchorDiagnostics:
    """Return the coverage, swaps and additivity of the references in a table of `anchored_scores`.

    Two references are compared by the models, judges and tasks that both of them have. Ratings are averaged over judges
    and tasks. A model is left out where it is its own reference.

    Raises:
        DataError: a column is missing: "model", "anchor", "probability", "rating" or "rating_se".
    """
    require_column(scores, "model", "anchor", "probability", "rating", "rating_se")
    scores = scores[scores["model"].astype(str) != scores["anchor"].astype(str)]
    p = scores["probability"]
    grouped = scores.assign(
        below=p < MID_REGION[0], mid_region=p.between(*MID_REGION), above=p > MID_REGION[1],
        floor=p < _FLOOR, ceiling=p > _CEILING,
    ).groupby("anchor")  # fmt: skip
    coverage = grouped[["below", "mid_region", "above", "floor", "ceiling"]].mean().assign(n=grouped.size())
    swap, chains = _swaps(rating_board(scores)), _chains(scores)
    advice = [*_advice(coverage, swap, chains), *_most_informative(scores)]
    return AnchorDiagnostics(coverage, swap, chains, advice)


def rating_board(scores: pd.DataFrame, values: str = "rating") -> pd.DataFrame:
    """Return ratings with a row per model, judge and task, and a column per reference; NaN where there is none."""
    index = [c for c in ("model", "judge", "task") if c in scores]
    return scores.pivot_table(index=index, columns="anchor", values=values, aggfunc="mean", observed=True)


def _swaps(board: pd.DataFrame) -> pd.DataFrame:
    rows = []
    for a, b in combinations(board.columns, 2):
        # Judges and tasks that both references have: others would pass for a shift.
        x, y = board[[a, b]].dropna().groupby(level="model", observed=True).mean().to_numpy().T
        row: tuple[float, ...] = (np.nan,) * 4
        if len(x):
            shift = np.abs((x - x.mean()) - (y - y.mean()))
            tau = scipy.stats.kendalltau(x, y).statistic if len(x) > 1 else np.nan
            row = tau, x.mean() - y.mean(), shift.mean(), shift.max()
        rows.append((a, b, len(x), *row))
    columns = ["anchor_a", "anchor_b", "n_models", "kendall", "offset", "mean_shift", "largest_shift"]
    return with_kinds(pd.DataFrame(rows, columns=columns), elo="offset")


def _chains(scores: pd.DataFrame) -> pd.DataFrame:
    """Return chains B - A - C of references A and C, where A is also a model (Appendix B.8).

    A gap is a mean over the judges and tasks that have all three ratings. Judges of a task share its prompts, and
    the correlation of their errors is not known: variances are averaged, as if all had the same error. Tasks are
    independent.
    """
    models, anchors = (pd.Index(dict.fromkeys(scores[c])) for c in ("model", "anchor"))
    of_model, of_anchor = models.get_indexer(scores["model"]), anchors.get_indexer(scores["anchor"])
    # A cell is a judge's rating in a task; ratings that repeat (of runs, say) are told apart by their order.
    cell = pd.DataFrame({c: pd.factorize(scores[c])[0] if c in scores else 0 for c in ("task", "judge")}, scores.index)
    cell["row"] = cell.groupby([cell["task"], cell["judge"], of_model, of_anchor]).cumcount()
    grouped = cell.groupby(["task", "judge", "row"])
    number, tasks = grouped.ngroup().to_numpy(), grouped.size().index.get_level_values("task")
    starts = np.unique(tasks, return_index=True)[1]
    shape = len(models), len(anchors), len(tasks)
    rating, variance = np.full(shape, np.nan), np.full(shape, np.nan)
    rating[of_model, of_anchor, number] = scores["rating"]
    variance[of_model, of_anchor, number] = scores["rating_se"] ** 2

    parts = []
    as_model = models.get_indexer(anchors)
    for a, c in permutations(range(len(anchors)), 2):
        if as_model[a] < 0:
            continue
        gap = rating[:, c] - rating[:, a] - rating[as_model[a], c]
        there = ~np.isnan(gap)
        there[[m for m in (as_model[a], as_model[c]) if m >= 0]] = False
        chained = np.flatnonzero(there.any(1))
        there = there[chained]
        error = np.where(there, (variance[:, c] + variance[:, a] + variance[as_model[a], c])[chained], 0.0)
        n_task, of_task = (np.add.reduceat(x, starts, axis=1) for x in (there.astype(float), error))
        n = n_task.sum(1)
        mean = np.where(there, gap[chained], 0.0).sum(1) / n
        # The variance of a task's mean is of_task / n_task, and its weight n_task / n.
        parts.append((chained, np.full(len(n), a), np.full(len(n), c), mean, np.sqrt((n_task * of_task).sum(1)) / n))
    columns = [np.concatenate(part) for part in zip(*parts, strict=True)] or [np.zeros(0, np.int64)] * 5
    of_model, through, of_anchor, mean, error = columns
    z = np.divide(mean, error, out=np.full(len(mean), np.nan), where=error > 0)
    names = ["model", "through", "anchor", "gap", "standard_error", "z"]
    values = models[of_model], anchors[through], anchors[of_anchor], mean, error, z
    return pd.DataFrame(dict(zip(names, values, strict=True)))


def _advice(coverage: pd.DataFrame, swap: pd.DataFrame, chains: pd.DataFrame) -> Iterator[str]:
    if len(coverage) == 0:
        yield "every model here is its own reference: nothing can be said about the references"
    for anchor, row in coverage.iterrows():
        if row["mid_region"] >= ENOUGH:
            continue
        low, high = row["below"], row["above"]
        side = "is too weak for" if high > low else "is too strong for" if low > high else "lies far from many of"
        extreme = f", {row['floor'] + row['ceiling']:.0%} at floor or ceiling" if row["floor"] + row["ceiling"] else ""
        yield (
            f"reference {anchor}: {row['mid_region']:.0%} of "
            f"{counted(row['n'], 'probability lies', 'probabilities lie')} in [0.2, 0.8] (95% are wanted), {low:.0%} "
            f"below and {high:.0%} above{extreme}: it {side} these models, and large gaps are poorly measured"
        )
    for row in swap.itertuples():
        if row.n_models == 0:
            yield (
                f"references {row.anchor_a} and {row.anchor_b} have no model in common by the same judges and tasks: "
                "their ratings cannot be compared"
            )
        elif row.n_models > 1 and np.isnan(row.kendall):
            yield (
                f"one of the references {row.anchor_a} and {row.anchor_b} rates all {counted(row.n_models, 'model')} "
                "alike: whether both rank the models alike is not known"
            )
        elif row.n_models > 1 and row.kendall < SAME_RANKING:
            yield (
                f"references {row.anchor_a} and {row.anchor_b} rank {counted(row.n_models, 'model')} with Kendall's "
                f"tau {row.kendall:.2f}, and ratings shift by {row.mean_shift:.0f} Elo on average after centring: name "
                "the reference of a ranking"
            )
    if len(chains) and (chains["z"].abs() > 3).mean() > 0.05:
        worst = chains.loc[chains["z"].abs().idxmax()]
        yield (
            f"gaps do not add up: {worst['model']} against {worst['anchor']} is {worst['gap']:+.0f} Elo from the sum "
            f"through {worst['through']} ({abs(worst['z']):.1f} standard errors); ratings against different references "
            "are not on one scale"
        )
    if len(coverage) > 1 and not len(chains):
        yield (
            "whether gaps add up cannot be checked: no reference was judged as a model against another reference, by "
            "judges and with models in common"
        )


def _most_informative(scores: pd.DataFrame) -> Iterator[str]:
    """Yield which reference has most probabilities in the informative range, of those that all references have."""
    inside = rating_board(scores.assign(_inside=scores["probability"].between(*MID_REGION).astype(float)), "_inside")
    common = inside.dropna()
    if len(inside.columns) < 2 or len(common) == 0:
        return
    share = common.mean()
    best = share.index[share >= share.max() - 1e-9]
    if len(best) == len(share):
        what = "all have equally many probabilities in the informative range"
    else:
        verb = "has" if len(best) == 1 else "have"
        what = f"{' and '.join(map(str, best))} {verb} most probabilities in the informative range"
    some = "" if len(common) == len(inside) else f", of the {len(common):,} that all references have"
    yield f"of these references, {what}{some}"
