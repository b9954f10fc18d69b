"""The command line of meta-evaluation: ``jaxeval meta FILE --gold COL`` and ``jaxeval meta --votes FILE``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import click

from jaxeval.cli.declared import Answer, command
from jaxeval.cli.outputs import Outputs, how_drawn
from jaxeval.options.columns import BothBad, CallReading, File, ItemScoreColumns, Labels, SideColumns, VoteReading
from jaxeval.options.field import Options, again, option
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions

WholeNumbers: TypeAlias = Sequence[int]
Numbers: TypeAlias = Sequence[float]


class OfScores(Options):
    """What is asked of scores beside gold ones."""

    gold: str | None = option(None, "Column of FILE that holds the gold scores.", "COL")
    model: str | None = again(ItemScoreColumns, "model")
    evaluators: tuple[str, ...] = option(
        (), "Column of an evaluator's scores; may be repeated. [all others of numbers]", "COL", flag="--evaluator"
    )
    top: int = option(5, "Number of models in the top.", "K", flag="--top-size", least=1)
    improvements: tuple[float, ...] = option(
        (), "Points of improvement: report how often people agree with that many; may be repeated.", "DELTA",
        flag="--improvement", least=0, open=True,
    )  # fmt: skip
    agreement: float = option(
        0.75, "Probability that people agree; the smallest gap of scores that reaches it is reported.", "P", least=0.5,
        most=1, open=True,
    )  # fmt: skip


class StudiedVotes(SideColumns):
    """What is asked of votes, which rank models against references."""

    winner: str | None = again(VoteReading, "winner")
    labels: Labels | None = again(VoteReading, "labels")
    both_bad: BothBad = again(VoteReading, "both_bad", choices=("half", "drop"))
    item: str | None = again(CallReading, "item", more="--budgets are then numbers of items.")
    references: tuple[str, ...] = option(
        (), "A model to rank others against; may be repeated. [all models]", "MODEL", flag="--reference"
    )
    sets: tuple[str, ...] = option(
        (), "References to use together; may be repeated. [by tiers]", "A,B,...", flag="--set", section=""
    )
    budgets: WholeNumbers = option(
        (25, 50, 100, 200), "Numbers of votes on each model; each is studied.", "N,N,...", section=""
    )
    n_repeats: int = option(
        10, "How many studies there are of each of --budgets.", "N", flag="--studies", least=1, section=""
    )
    cluster: str | None = again(DrawnTogether, "cluster")
    strata: str | None = again(DrawnTogether, "strata")


class OfBoth(ResamplingOptions, section=""):
    """What is asked of both, and where votes are."""

    deltas: Numbers | None = option(
        None, "Gaps in points: models that differ by less are close. [1,2,5,10,20; of votes 2,5,10,20]", "D,D,..."
    )
    n_tiers: int | None = option(
        None, "Number of tiers that models are sorted into; by default 4, or the number of models if there are fewer.",
        "T", flag="--tiers", least=1,
    )  # fmt: skip
    few_pairs: bool = option(
        False, "Also show, in tables, advice and figures, what rests on fewer than 15 pairs of models."
    )
    n_resamples: int = again(ResamplingOptions, "n_resamples", more="0 for no intervals.", least=0)
    votes: File | None = option(
        None, "Votes of people, as `leaderboard` reads them. They rank models against references, in place of scores.",
        "FILE",
    )  # fmt: skip


@command("meta")
def meta(file: File | None, of_scores: OfScores, of_votes: StudiedVotes, options: OfBoth, outputs: Outputs) -> Answer:
    """Say which evaluators rank models as people do, close ones too.

    FILE has a row per model, a column of gold scores and a column per evaluator. The first table compares evaluators
    with each other, the best first, on the models that they share; the others, on close models, tiers and gaps, follow
    with --full. With --votes, models are ranked by their votes against single references and sets of them, and compared
    with the ranking of all votes.
    """
    votes = options.votes
    if (file is None) == (votes is None):
        raise click.UsageError("give a FILE of scores with --gold, or --votes FILE")
    from jaxeval.cli.evaluators import study_evaluators, study_references
    from jaxeval.execution.precision import versions

    foreign: Options = of_votes if votes is None else of_scores
    for flag in foreign.given().values():
        kind = "only with --votes" if votes is None else "only for a FILE of scores, not with --votes"
        raise click.UsageError(f"{flag} is {kind}")
    close: dict[str, Any] = options.arguments("deltas", "n_tiers", "few_pairs")
    close["drawn"] = options.arguments(ResamplingOptions)
    if votes is not None:
        answer = study_references(votes, **of_votes.arguments(), **close)
        unit = of_votes.item or of_votes.cluster or "votes"
    else:
        assert file is not None
        answer = study_evaluators(file, with_curves=outputs.to_folder, **of_scores.arguments(), **close)
        unit = "models"
    drawn = options.arguments("n_resamples", "level", "seed")
    text = "".join(f"{sentence}\n" for sentence in answer.sentences)
    return answer._replace(
        settings={**drawn, "versions": versions()}, sentences=answer.sentences[:1], advice=answer.sentences[1:],
        notes=[*answer.notes, how_drawn(drawn, unit)],
        texts=lambda: {"advice.txt": text},
    )  # fmt: skip
