"""``jaxeval scores``: benchmark scores of models on items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from jaxeval import plots
from jaxeval.cli.declared import Answer, Costs, Files, Top, command
from jaxeval.cli.judged_scores import Labels
from jaxeval.cli.outputs import beside, how_drawn
from jaxeval.cli.reading import refuse_beside, undeclared
from jaxeval.data.remote_names import FileName
from jaxeval.options import columns as declared
from jaxeval.options.boards import GroupOption, RankOptions
from jaxeval.options.field import again, option
from jaxeval.options.resampling import ResamplingOptions
from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from jaxeval.data.item_scores import ItemScores
    from jaxeval.plain_tables import PlainTable
    from jaxeval.statistics.draws import Draws

Missing = Literal["error", "complete", "available"]
BenchmarkWeights = Literal["equal", "items"]
Irt = Literal["rasch", "2pl"]
_MOST_ANSWERS = 5  # of several boards


class ScoreReading(declared.ItemScoreColumns):
    """How files of scores are read, and what to do about gaps."""

    missing: Missing = again(
        declared.VoteReading, "missing", text="What to do about gaps. error: refuse models that lack scores. complete: "
        "take the items that all have. available: take each model on the items that it has.",
    )  # fmt: skip
    where: str | None = again(declared.VoteReading, "where")

    def read(self, files: Sequence[FileName], keep: Sequence[str] = (), random: Sequence[str] = ()) -> ItemScores:
        """Return the scores in ``files``."""
        from jaxeval.data.score_files import item_scores

        return item_scores(files, keep=keep, random=random, **self.columns)

    def undeclared(self, files: Sequence[FileName], random: Sequence[str]) -> list[str]:
        """Propose to declare columns of judges, prompts or seeds that are in tables, and have no role."""
        return [] if random else undeclared(files[0], {*self.columns.values(), "trial"})

    @property
    def columns(self) -> dict[str, Any]:
        """Arguments of `read_scores`."""
        return {name: value for name, value in self.arguments().items() if name != "missing"}


class ScoreBoardOptions(Costs, declared.FacetOptions, GroupOption):
    """What is estimated of scores."""

    cost: str | None = again(
        Costs, "cost", more="It may differ between rows, as dollars, tokens or seconds do: costs are then means, and "
        "drawn with the scores.",
    )  # fmt: skip
    population: str = option(
        "items", "What the intervals are about: other items like these, new trials of the same items, or other "
        "benchmarks like these.", choices=("items", "trials", "benchmarks"),
    )  # fmt: skip
    benchmark_weights: BenchmarkWeights = option("equal", "Benchmarks count alike, or by their items.")
    pass_at: tuple[int, ...] = option(
        (), "Also: the chance that one of K trials solves an item; may be repeated.", "K", least=1
    )
    pass_hat: tuple[int, ...] = option(
        (), "Also: the chance that K trials all solve an item; may be repeated.", "K", least=1
    )
    items: bool = option(False, "Also: what each item tells; items that all or none solve, and items that look wrong.")
    irt: Irt | None = option(
        None, "Also: abilities of models on one scale by an item response model, where models have different items."
    )
    n: str | None = option(
        None, "Column with the number of questions of each item, for --irt of shares of right answers.", "COLUMN",
        needs="irt: it is the number of questions behind each share",
    )  # fmt: skip
    subset: int | None = option(
        None, "Also: K weighted items that stand for all of them, and their error for other models.", "K", least=2
    )
    simultaneous_ranks: bool = again(RankOptions, "simultaneous_ranks")


@command("scores", apart={"cost": "by random"})
def scores(
    files: Files, columns: ScoreReading, labels: Labels, options: ScoreBoardOptions, drawn: ResamplingOptions,
    shown: Top,
) -> Answer:  # fmt: skip
    """Rank models by benchmark scores of items and trials.

    FILES hold a row for each model and item with its score, or are what an evaluation harness wrote: samples of
    lm-evaluation-harness, logs of Inspect, Every Eval Ever, reports of SWE-bench, results of tau-bench. Items are
    resampled for all models together, so that models are compared on the same items.
    """
    from jaxeval.data.harness_formats import MeansOnlyError
    from jaxeval.data.score_files import stated_means
    from jaxeval.scores.score_leaderboard import leaderboard_of, score_boards, score_draws

    missing: Any = columns.missing
    level = drawn.level
    if labels.human:
        refuse_beside("--human", options.given(), {"by", "simultaneous_ranks"})
        accuracy, read = labels.accuracy(files, columns.columns, missing, options.by, drawn.arguments())
        return _judged(labels.boards(accuracy, options.simultaneous_ranks), read, accuracy.joint)
    try:
        item_scores = columns.read(
            files, [name for name in (options.by, options.n) if name is not None], options.facets
        )
    except MeansOnlyError as error:
        return _of_means(error.means, level)
    estimated: dict[str, Any] = options.arguments("by", "population", "benchmark_weights")
    boards = score_boards(item_scores, random=options.facets, missing=missing, **estimated, **drawn.arguments())
    table = leaderboard_of(boards, level, options.simultaneous_ranks)
    tables: dict[str, Any] = {"scores": table}
    for what, ks in (("pass_at", options.pass_at), ("pass_hat", options.pass_hat)):
        for k in dict.fromkeys(ks):
            from jaxeval.scores import items

            measure = getattr(items, f"{what}_k")
            tables[f"{what}_{k}"] = measure(item_scores, k, missing=missing, level=level)
    warnings = list(table.attrs["warnings"])
    if options.items:
        from jaxeval.scores.items import item_report

        tables["items"] = item_report(item_scores, level=level)
        warnings += tables["items"].attrs["warnings"]
    notes = [what_was_read(item_scores), _how(table.attrs["settings"])]
    if options.irt:
        from jaxeval.scores.item_response import fit_item_response

        fitted = fit_item_response(item_scores, kind=options.irt, n=options.n, **drawn.arguments())
        tables |= {"abilities": fitted.abilities, "difficulties": fitted.items}
        warnings += [f"{options.irt}: {text}" for text in fitted.warnings]
    if options.subset is not None:
        from jaxeval.scores.items import item_subset

        few = item_subset(item_scores, options.subset, missing=missing, seed=drawn.seed)
        tables |= {"subset": few.items, "subset_errors": few.errors}
        warnings += few.warnings
        notes.append(few.answer.sentences[0])

    stated = stated_means(files)
    if stated is not None:
        from jaxeval.scores.score_leaderboard import beside_stated

        beside_them = beside_stated(item_scores, stated, columns.score)
        tables |= {"harness": beside_them} if len(beside_them) else {}
    answer = _answer(tables, notes, warnings)
    if len(boards) == 1:
        answer = answer._replace(figures=lambda: {"scores": plots.plot_draws(next(iter(boards.values())).joint)})
    if options.cost is not None:
        (board,) = boards.values()
        how = {name: x for name, x in drawn.arguments().items() if name != "level"}
        how |= options.arguments("population", "benchmark_weights")
        costs = score_draws(replace(columns, score=options.cost).read(files), missing=missing, **how)
        front = options.front(board.joint, costs, level)
        answer = beside(answer, front, tables=options.tables(front))
    return answer._replace(advice=[*answer.advice, *columns.undeclared(files, options.facets)])


def _of_means(means: pd.DataFrame, level: float) -> Answer:
    """Report means of tasks whose items are not there."""
    from scipy.stats import norm

    from jaxeval.show.cells import with_kinds
    from jaxeval.show.shown import Answer, Part

    reach = norm.ppf(0.5 + level / 2) * means["standard_error"]
    means = means.assign(lower=means["score"] - reach, upper=means["score"] + reach)
    means = means.sort_values(["benchmark", "metric", "filter", "score"], ascending=[True, True, True, False])
    means = means[["benchmark", "metric", "filter", "model", "score", "lower", "upper",
                   "standard_error"]].reset_index(drop=True)  # fmt: skip
    with_kinds(means, ends_of="score")
    return Answer(
        "Means of tasks", means, {"level": level},
        sentences=["there are no samples: models are not compared, and have no ranks"],
        advice=["run lm_eval with --log_samples: items are then resampled, and models compared on the same ones"],
        notes=[f"{100 * level:g}% intervals from the standard errors that the files state"],
        parts=[Part("Means of tasks", means, rows="mean", kept=("model", "score"))], tables={"scores": means},
    )  # fmt: skip


def _judged(tables: dict[str, pd.DataFrame], read: str, joint: Draws) -> Answer:
    from jaxeval.accuracy.estimates import ESTIMATORS

    table = tables["scores"]
    settings = table.attrs["settings"]
    corrected = f"{settings['estimator']}: {ESTIMATORS[settings['estimator']]}"

    def figures() -> dict[str, Figure]:
        drawn = joint.of(estimator=settings["estimator"])
        return {} if "judge" in table else {"scores": plots.plot_draws(drawn.of(judge=drawn.names[0][1]))}

    notes = [read, how_drawn(settings, "", "new items like these and new labels", corrected)]
    return _answer({"scores": table}, notes, table.attrs["warnings"])._replace(tables=tables, figures=figures)


def what_was_read(item_scores: ItemScores) -> str:
    """Return how much there is of everything, in words."""
    parts = [counted(len(item_scores.models), "model"), counted(len(item_scores.items), "item")]
    groups = {"benchmark": item_scores.benchmark, "cluster": item_scores.cluster}
    parts += [counted(len(group.names), name) for name, group in groups.items() if group is not None]
    if item_scores.trials is not None:
        parts.append(f"{len(item_scores.trials.score):,} trials")
    return ", ".join(parts)


def _how(settings: dict[str, Any]) -> str:
    from jaxeval.scores.estimates import POPULATIONS

    about = POPULATIONS[settings["population"]]
    if settings.get("random"):
        about = f"new {', '.join(f'{name}s' for name in settings['random'])} and items like these"
    return how_drawn(settings, settings["resampled"], about)


def _answer(tables: Mapping[str, pd.DataFrame | PlainTable], notes: list[str], warnings: list[str]) -> Answer:
    from jaxeval.plain_tables import PlainTable
    from jaxeval.show.boards import rank_spread, score_answers
    from jaxeval.show.shown import Answer, Part

    table = tables["scores"]
    rows = table.records() if isinstance(table, PlainTable) else table.to_dict("records")
    shown = table.assign(spread=[rank_spread(row) for row in rows]).drop(columns=["rank_best", "rank_worst"])
    first = ["judge", "category", "rank", "model", "score", "lower", "upper", "spread"]
    first = [x for x in first if x in shown]
    shown = shown[[*first, *(x for x in shown if x not in first)]]
    parts = [Part("Scores", shown, rows="model", kept=("model", "score"), least=("n_items",))]
    for name, further in tables.items():
        if name != "scores":
            title = name.replace("_at_", "@").replace("_hat_", "^").capitalize()
            kept = further.drop(columns=[x for x in further if x == "fewest_trials"])
            parts.append(Part(title, kept, rows="row"))
    answers = str(table.attrs.get("answer", "")).splitlines() or score_answers(table)
    sentences = answers[:_MOST_ANSWERS]
    return Answer(
        "Scores", table, table.attrs["settings"], warnings, sentences=sentences, notes=notes, parts=parts, tables=tables
    )
