"""Leaderboards of scores: mean scores of models on items, with intervals, ranks and tiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice, checked_integer
from jaxeval.data.item_scores import ItemScores, step_of_means
from jaxeval.errors import DataError
from jaxeval.execution.runs import Identity, RunOptions, open_run
from jaxeval.execution.signatures import spelled_out
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import PlainTable, Whole, in_pandas, stacked
from jaxeval.resampling.rows import resampled_sums
from jaxeval.resampling.units import stream_number
from jaxeval.scores.estimates import (
    FEW_ITEMS,
    POPULATIONS,
    MissingScores,
    Population,
    ScoreEstimates,
    accuracy_of,
    as_item_scores,
    estimate_scores,
    few_units_text,
    kept_items,
    of_items,
)
from jaxeval.scores.facets import BoardFacets, widened, with_facets
from jaxeval.scores.paired_tests import ENOUGH_FOR_DRAWS, by_pairs, pairwise
from jaxeval.show.boards import score_answers
from jaxeval.show.cells import with_kinds
from jaxeval.statistics.clusters import FEW_CLUSTERS
from jaxeval.statistics.differences import MOST_COMPARISONS
from jaxeval.statistics.draws import Draws
from jaxeval.statistics.quantiles import checked_level
from jaxeval.statistics.variance_components import facet_names
from jaxeval.wording import counted, named, visible_line

if TYPE_CHECKING:
    from jaxeval.accuracy.judge_accuracy import JudgeAccuracy

_NO_VARIANCE = "no observed variance"
_NOTHING = "no interval, rank set or tier"
_SHOWN_FIRST = ("category", "rank", "model", "score", "lower", "upper", "standard_error", "tier")


@dataclass(frozen=True, eq=False, repr=False)
class ScoreBoard:
    """Scores of a board's models, and joint draws of them."""

    estimates: ScoreEstimates
    drawn: Draws = field(repr=False)
    warnings: tuple[str, ...]
    notes: tuple[str, ...]  # on the whole table, not on a slice
    facets: BoardFacets | None = None  # what was sampled besides items

    @property
    def joint(self) -> Draws:
        """Joint draws of the scores, with their degrees of freedom where these are few.

        Without, draws of 10 graded items told some of six equal models apart on .235 of 200 boards.
        """
        few = np.nanmin([ENOUGH_FOR_DRAWS, *self.estimates.freedom])
        freedom = None if self.facets is not None or few == ENOUGH_FOR_DRAWS else max(float(few), 1.0)
        loose = np.full(len(self.drawn.names), few < 2)  # draws of two units have three values
        return replace(self.drawn, names=in_pandas(self.drawn.names), freedom=freedom, loose=loose)

    @property
    def lone(self) -> str:
        """The names of facets of one level, which leave no interval."""
        return "" if self.facets is None else named(list(map(visible_line, self.facets.models.alone)))

    def interval(self, level: float) -> tuple[Float, Float]:
        """Return (M,) lower and upper ends; NaN without observed variance, unless scores lie between 0 and 1."""
        estimates, facets = self.estimates, self.facets
        ends = estimates.interval(level)
        if facets is None:
            return ends
        lower, upper = widened(facets.models, *ends, estimates.variance, estimates.dof, level)
        if estimates.bounded:
            lower, upper = np.maximum(lower, 0.0), np.minimum(upper, 1.0)
        return lower, upper

    @property
    def standard_errors(self) -> Float:
        """(M,) NaN where there is no observed variance, or where a facet has one level."""
        errors = self.estimates.standard_errors if self.facets is None else np.sqrt(self.facets.models.variance)
        return np.where(errors > 0, errors, np.nan)

    def ranks(self, level: float, simultaneous: bool) -> dict[str, Whole]:
        """Return (M,) ``rank_best, rank_worst, tier``: by draws of all pairs at once, or by pairs where these err."""
        estimates, precision = self.estimates, self.drawn.precision
        if self.facets is not None or by_pairs(estimates, level):
            rounded = np.round(estimates.score / precision) * precision if precision else estimates.score
            pairs = pairwise(estimates, rounded) if self.facets is None else self.facets.pairs(rounded)
            return pairs.ranks(level, simultaneous)
        return self.drawn.differences().ranks(level, simultaneous)


@spelled_out()
def score_leaderboard(
    scores: ItemScores | JudgeAccuracy | Any,
    *,
    random: str | Sequence[str] = (),
    by: str | None = None,
    judge: str | None = None,
    estimator: str | None = None,
    population: Population = "items",
    benchmark_weights: Literal["equal", "items"] | Mapping[Any, float] = "equal",
    missing: MissingScores = "error",
    level: float = 0.95,
    simultaneous_ranks: bool = False,
    n_resamples: int = 1000,
    seed: int = 0,
    **running: Unpack[RunOptions],
) -> pd.DataFrame:
    """Return mean scores of models with intervals, rank sets and tiers, best first.

    A score is the weighted mean over items; with benchmarks, the mean over benchmarks of the means over their items.
    Items, or clusters of items, are resampled jointly for all models and within benchmarks, so that models are compared
    on the same items. Standard errors and intervals are closed forms of the same sampling: the exact interval of a
    share for right and wrong answers (DOI 10.1093/biomet/26.4.404), Student's t and Hall's for other scores.

    Args:
        scores: `ItemScores`, or a table with the columns "model", "item" and "score", and where they are there "trial",
            "cluster", "benchmark" and "weight". Or what `judge_accuracy` gives: scores by a judge, corrected by human
            labels. Then its joint draws, level and slices are used, and of the options only ``judge``, ``estimator``
            and ``simultaneous_ranks``.
        random: columns of what another evaluation would draw anew besides items: judges, prompts, seeds. Intervals,
            ranks and tiers are then about others like these (see `error_budget`): pairs are compared by Student's t
            with Holm's steps. A facet with one level gives no interval.
        by: a further column whose values have a board each.
        judge: of judge accuracies, the judge whose scores are ranked; needed where there are several.
        estimator: of judge accuracies, the correction: a name in the column "estimator" of its table. By default
            "ppi_plus_plus" where the labelled answers are a random part, else "rogan_gladen".
        population: what another evaluation would draw anew; intervals show how much scores would then vary. "items":
            new items like these. "trials": these very items, and new runs; every item needs two trials or more.
            "benchmarks": new benchmarks like these, by Student's t; there must be five or more.
        benchmark_weights: "equal", by number of "items", or weights by benchmark.
        missing: where models lack scores of items: "error"; "complete" takes the items that all models have;
            "available" scores each model on its own items.
        level: of the intervals and of the rank sets; for the tiers, of all differences at once.
        simultaneous_ranks: the rank sets hold all true ranks at once.
        n_resamples: at least 2. Ranks and tiers depend on it; scores, intervals and errors do not.

    Returns:
        One row per model (and category, with ``by``), best first: ``model``, ``score``, ``lower``,
        ``upper``, ``standard_error``, ``n_items``, ``rank``, ``rank_best``, ``rank_worst``, ``tier``, ``flags``
        (why a row is less reliable than it looks), and ``category`` with ``by``. ``attrs`` holds ``warnings`` and
        ``settings``. The error of a score without observed variance is NaN; so is its interval, unless all scores lie
        between 0 and 1.

        Right and wrong answers are compared by exact tests of pairs with Holm's steps, and so are other scores of fewer
        than 300 units or few differences, by Student's t and Hall's (see `jaxeval.scores.paired_tests`). With more,
        rank sets and tiers come from the largest difference of the draws (max-t). A score without observed variance has
        no rank set and no tier where it has no interval.

    Raises:
        DataError: a table that cannot be read; repeated rows without a column of trials; scores of several evaluators;
            missing scores; fewer than two items; what ``population`` needs is not there.
        ValueError: an option is invalid.

    Examples:
        >>> import jaxeval
        >>> board = jaxeval.score_leaderboard(jaxeval.simulate_scores(1_000, 3), n_resamples=200)
        >>> board[["model", "score", "lower", "upper", "rank", "tier"]].round(2)
             model  score  lower  upper  rank  tier
        0  model-1   0.57   0.54   0.60     1     1
        1  model-2   0.49   0.46   0.52     2     2
        2  model-3   0.44   0.41   0.47     3     3
    """
    if (accuracy := accuracy_of(scores)) is not None:
        if facet_names(random):
            raise DataError(
                "random facets are of scores; a judge's scores that labels correct have theirs in judge_accuracy"
            )
        from jaxeval.scores.judged_board import judged_leaderboard

        return judged_leaderboard(accuracy, judge, estimator, simultaneous_ranks)
    boards = score_boards(
        scores, random=random, by=by, population=population, benchmark_weights=benchmark_weights, missing=missing,
        level=level, n_resamples=n_resamples, seed=seed, **running,
    )  # fmt: skip
    leaderboard = leaderboard_of(boards, level, simultaneous_ranks).frame
    from jaxeval.show.table import Table

    n_models = len(next(iter(boards.values())).estimates.score)
    return Table.of(leaderboard, f"Scores of {counted(n_models, 'model')}", _SHOWN_FIRST)


@spelled_out()
def score_draws(
    scores: ItemScores | Any,
    *,
    random: str | Sequence[str] = (),
    population: Population = "items",
    benchmark_weights: Literal["equal", "items"] | Mapping[Any, float] = "equal",
    missing: MissingScores = "error",
    n_resamples: int = 1000,
    seed: int = 0,
    **running: Unpack[RunOptions],
) -> Draws:
    """Return the joint draws behind `score_leaderboard`: for tiers, differences, figures and files of any `Draws`.

    Arguments and errors are those of `score_leaderboard`.

    Examples:
        >>> import jaxeval
        >>> draws = jaxeval.score_draws(jaxeval.simulate_scores(1_000, 3), n_resamples=200)
        >>> draws.beat_share.loc["model-1", "model-3"].item()
        1.0
    """
    boards = score_boards(
        scores, random=random, by=None, population=population, benchmark_weights=benchmark_weights, missing=missing,
        level=0.95, n_resamples=n_resamples, seed=seed, **running,
    )  # fmt: skip
    return boards[None].joint


def score_boards(
    scores: ItemScores | Any, *, random: str | Sequence[str] = (), by: str | None, population: Population,
    benchmark_weights: Literal["equal", "items"] | Mapping[Any, float], missing: MissingScores, level: float,
    n_resamples: int, seed: int, **running: Unpack[RunOptions],
) -> dict[Any, ScoreBoard]:  # fmt: skip
    """Return a board for each value of the column ``by``, or one called None; see `score_leaderboard`."""
    names = facet_names(random)
    item_scores = with_facets(scores, names) if names else as_item_scores(scores)
    if names and (population != "items" or benchmark_weights != "equal"):
        raise ValueError("random facets are drawn with items: leave population and benchmark_weights at their defaults")
    weights = benchmark_weights if isinstance(benchmark_weights, str) else dict(benchmark_weights)
    check_choice("population", population, POPULATIONS)
    options = {"population": population, "benchmark_weights": weights, "missing": missing}
    checked_level(level)
    checked_integer("n_resamples", n_resamples, 2)
    checked_integer("seed", seed)
    chosen = {None: np.ones(len(item_scores.items), bool)} if by is None else _slices(item_scores, by)

    def identity() -> Identity:
        held = item_scores.facets if names else None
        facets = None if held is None else (names, held.code, held.score)
        data = [facets, item_scores.scores, item_scores.weight, item_scores.cluster, item_scores.benchmark,
                item_scores.trials, list(chosen.values())]  # fmt: skip
        shown = {"n_resamples": n_resamples, "level": level}
        return Identity({"seed": seed, "by": by, **options}, data, shown, noun="scores")

    with open_run(identity, n_resamples * len(chosen), "resamples", **running) as run:
        boards = {
            name: _board(item_scores, items, options, n_resamples, seed, name, part, run)
            for part, (name, items) in enumerate(chosen.items())
        }
    if not names:
        return boards
    return {name: _faceted(board, item_scores, chosen[name], missing, level) for name, board in boards.items()}


def leaderboard_of(boards: Mapping[Any, ScoreBoard], level: float, simultaneous_ranks: bool) -> PlainTable:
    """Return the rows of the table of `score_leaderboard`."""
    tables, warnings = [], []
    for name, board in boards.items():
        tables.append(_table(board, level, simultaneous_ranks, {} if name is None else {"category": name}))
        warnings += [text if name is None else f"{name}: {text}" for text in board.warnings]
    leaderboard: PlainTable = stacked(tables)
    first = next(iter(boards.values()))
    about = "" if first.facets is None else f"{first.facets.about}: "
    if first.lone:
        about += f"no interval, as {first.lone} has one level; "
    drawn = {} if first.facets is None else {"random": list(first.facets.models.parts)[1:-1]}
    clusters: dict[str, float] = {}
    if first.estimates.unit == "cluster":
        clusters = {"n_clusters": first.estimates.n_units, "n_effective_clusters": first.estimates.n_effective}
    leaderboard.attrs = {
        "answer": about + "\n".join(score_answers(leaderboard)),
        "warnings": [*first.notes, *warnings],
        "settings": {
            "resampled": f"{first.estimates.unit}s", **clusters, **first.drawn.settings, **drawn,
            "level": float(level), "simultaneous_ranks": bool(simultaneous_ranks),
        },
    }  # fmt: skip
    return with_kinds(leaderboard, ends_of="score")


def _slices(scores: ItemScores, by: str) -> dict[Any, Bool]:
    """Return (I,) items of each value of a kept column."""
    column = scores.column(by)
    masks = np.zeros((len(column.levels), len(scores.items)), bool)
    masks[column.number, column.item] = True
    return dict(zip(column.levels, masks, strict=True))


def _board(
    scores: ItemScores, items: Bool, options: Mapping[str, Any], n_resamples: int, seed: int, name: Any, part: int,
    run: Any,
) -> ScoreBoard:  # fmt: skip
    kept, warnings = _of_items(scores, items, options["missing"])
    estimates = estimate_scores(scores, kept, options["population"], options["benchmark_weights"])
    if estimates.n_units < 2:
        raise DataError(
            f"one {estimates.unit} only{'' if name is None else f' in {name!r}'}: an interval needs two or more"
        )
    warnings += _few_units(estimates)
    draws = _draws(estimates, n_resamples, seed, "" if name is None else str(name), part, run)
    scored = Draws(
        estimates.models.rename("model"), estimates.score, draws, precision=float(2 * step_of_means(scores.scores)),
        limits=(0.0, 1.0) if estimates.bounded else None,
        settings={**options, "n_resamples": n_resamples, "seed": seed},
    )  # fmt: skip
    if estimates.answers is None and estimates.influence is not None and not scored.differences().within_reach:
        warnings.append(
            f"no tiers and no rank sets: {scored.differences().n_comparisons:,} differences, of all pairs of models in "
            f"all resamples, are more than the {MOST_COMPARISONS:,} that can be compared; take fewer resamples "
            "(n_resamples=, --resamples)"
        )
    missing = [f"{counted(scores.n_missing, 'row has', 'rows have')} no score: left out"] if scores.n_missing else []
    return ScoreBoard(estimates, scored, tuple(warnings), (*scores.notes, *missing))


def _of_items(scores: ItemScores, items: Bool, missing: MissingScores) -> tuple[Bool, list[str]]:
    """Return (I,) which of the ``items`` take part, and sentences on those that do not."""
    only = ItemScores(scores.scores[items], scores.items[items], scores.evaluators, scores.models, notes=scores.notes)
    chosen, warnings = kept_items(only, missing)
    kept = items.copy()
    kept[items] = chosen
    return kept, warnings


def _faceted(board: ScoreBoard, scores: ItemScores, items: Bool, missing: MissingScores, level: float) -> ScoreBoard:
    """Return a board over items that counts what else was sampled; its draws are spread as its intervals are."""
    facets = BoardFacets.of(scores, _of_items(scores, items, missing)[0])
    estimates, draws = board.estimates, board.drawn.draws
    wider = replace(board, facets=facets, warnings=(*board.warnings, *facets.warnings))
    lengths = [upper - lower for lower, upper in (wider.interval(level), estimates.interval(level))]
    with np.errstate(invalid="ignore", divide="ignore"):
        times = np.where(estimates.variance > 0, lengths[0] / lengths[1], 1.0)
    return replace(wider, drawn=replace(board.drawn, draws=estimates.score + (draws - estimates.score) * times))


def _draws(estimates: ScoreEstimates, n: int, seed: int, slice_name: str, part: int, run: Any) -> Float:
    """Return (B, M) joint draws, whose variance is that of the estimates."""
    if estimates.influence is None:
        rng = np.random.default_rng([seed, stream_number(f"trials {slice_name}")])
        return estimates.score + rng.standard_normal((n, len(estimates.score))) * np.sqrt(estimates.variance)
    stream = f"scores {slice_name}".strip()
    if estimates.answers is not None and not np.isnan(estimates.answers).any():
        # Sums of right answers are exact in single precision, which is twice as fast.
        sums, size = resampled_sums(estimates.answers, n, seed, stream, run=run, part=part), len(estimates.answers)
        return estimates.score + (sums / size - estimates.score) * np.sqrt(size / (size - 1))
    lone = np.bincount(estimates.stratum)[estimates.stratum] == 1  # these are drawn together
    _, stratum = np.unique(np.where(lone, -1, estimates.stratum), return_inverse=True)
    strata = stratum if stratum.any() else None
    influence = _centred(estimates.influence, stratum)
    return estimates.score + resampled_sums(influence, n, seed, stream, run=run, strata=strata, part=part)


def _centred(influence: Float, stratum: Int) -> Float:
    """Return (U, M) influences that sum to 0 in each stratum, with the squares' sums that they had.

    Factors of unequal units leave sums other than 0, by which draws would be off on average.
    """
    n = np.bincount(stratum)
    mean = np.stack([np.bincount(stratum, of_model) for of_model in influence.T], 1) / n[:, None]
    centred = influence - mean[stratum]
    squares, of_model = (influence**2).sum(0), (centred**2).sum(0)
    return centred * np.sqrt(squares / np.where(of_model > 0, of_model, 1.0))


def _few_units(estimates: ScoreEstimates) -> list[str]:
    texts: list[str] = []
    if estimates.unit not in ("cluster", "item"):
        return texts
    limit = FEW_CLUSTERS if estimates.unit == "cluster" else FEW_ITEMS
    if estimates.n_effective < limit:
        texts.append(
            f"{few_units_text(estimates)}: intervals from fewer than {limit} depend on how scores are "
            "distributed, and rank sets are wide"
        )
    lone = int((np.bincount(estimates.stratum) == 1).sum())
    if lone:
        texts.append(
            f"{counted(lone, 'benchmark has', 'benchmarks have')} one {estimates.unit} only, which shows no "
            "spread: its distance to the mean of all benchmarks counts instead"
        )
    return texts


def _table(board: ScoreBoard, level: float, simultaneous: bool, about: Mapping[str, Any]) -> PlainTable:
    estimates = board.estimates
    lower, upper = board.interval(level)
    flags = np.where(estimates.variance > 0, "", _NO_VARIANCE if estimates.bounded else f"{_NO_VARIANCE}: {_NOTHING}")
    if board.lone:
        flags = np.full(len(flags), f"one level of {board.lone}: {_NOTHING}")
    models = estimates.models.to_numpy()
    if models.dtype.kind == "M":  # whose values NumPy writes in one way in a table, and in another alone
        models = estimates.models.to_numpy(object)
    table = PlainTable({
        **{name: [value] * len(models) for name, value in about.items()}, "model": models, "score": estimates.score,
        "lower": lower, "upper": upper, "standard_error": board.standard_errors, "n_items": estimates.n_items,
        "rank": board.drawn.rank_numbers(), **board.ranks(level, simultaneous), "flags": flags.astype(object),
    })  # fmt: skip
    return table[np.lexsort([models.astype(str), table["rank"]])]


def beside_stated(scores: ItemScores, stated: pd.DataFrame, metric: str | None) -> pd.DataFrame:
    """Return the mean and the standard error of each model on each task, and what the harness states of them.

    A group of tasks is the mean of all their items, as the harness weighs tasks by their sizes.

    Args:
        scores: with a benchmark for each task.
        stated: as `jaxeval.data.score_files.stated_means` gives it.
        metric: the one that was read, or several with commas between them: the first that a task has; None for all.

    Returns:
        ``model``, ``benchmark``, ``metric``, ``filter``, ``score``, ``standard_error``, ``stated_score``,
        ``stated_standard_error`` (NaN where none is stated) and ``n_items``, for tasks with samples.
    """
    rows = []
    metrics = None if metric is None else [part.strip() for part in metric.split(",")]
    groups = scores.benchmark
    names = [] if groups is None else [str(name) for name in groups.names]
    for (model, benchmark), part in stated.groupby(["model", "benchmark"], sort=False):
        if metrics is not None:
            first = next((name for name in metrics if name in set(part["metric"])), None)
            part = part[part["metric"] == first]
        places = [names.index(task) for task in part["tasks"].iloc[0] if task in names] if len(part) else []
        if groups is None or not places or model not in scores.models:
            continue
        chosen = of_items(scores, np.isin(groups.number, places))
        m = int(chosen.models.get_loc(model))
        chosen = replace(
            chosen, scores=chosen.scores[:, :, [m]], models=chosen.models[[m]], trials=None, benchmark=None
        )
        there = ~np.isnan(chosen.scores[:, 0, 0])
        if not there.any():
            continue
        estimates = estimate_scores(chosen, there)
        score, error = float(estimates.score[0]), float(estimates.standard_errors[0])
        rows += [
            (model, benchmark, row["metric"], row["filter"], score, error, row["stated_score"],
             row["stated_standard_error"], int(there.sum()))
            for row in part.to_dict("records")
        ]  # fmt: skip
    columns = ["model", "benchmark", "metric", "filter", "score", "standard_error", "stated_score",
               "stated_standard_error", "n_items"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
