"""The command line of meta-evaluation: ``jaxeval meta FILE --gold COL`` and ``jaxeval meta --votes FILE``."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.outputs import Outputs, present
from jaxeval.cli.reading import both_bad_option, labels_option
from jaxeval.cli.run_options import (
    FILE,
    cluster_option,
    column_options,
    resampling_options,
    side_options,
    strata_option,
    top_size_option,
)
from jaxeval.data.remote_names import FileName
from jaxeval.wording import counted

_SCORES_ONLY = ("gold", "model", "evaluators", "top_size", "improvements", "agreement")
_VOTES_ONLY = ("model_a", "model_b", "winner", "labels", "both_bad", "references", "sets", "budgets", "n_repeats",
               "cluster", "strata", "item")  # fmt: skip


class _Numbers(click.ParamType):  # type: ignore[type-arg]
    """Numbers above 0, with commas between them."""

    def __init__(self, kind: type, name: str) -> None:
        self.kind, self.name = kind, name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(self.kind(part) for part in value.split(","))
        except ValueError:
            numbers = ()
        if not numbers or not all(number > 0 for number in numbers):
            whole = "whole numbers" if self.kind is int else "numbers"
            self.fail(f"{value!r} is not a list of {whole} above 0, such as 2,5,10", param, ctx)
        return numbers


@click.command(
    cls=CompilingCommand, renamed={"--top": "--top-size", "--repeats": "--studies", "--references": "--reference"}
)
@click.argument("file", required=False, type=FILE)
@column_options(
    gold="Column of FILE that holds the gold scores.", model="Column of models. [model; else the first of text]"
)
@click.option("--evaluator", "evaluators", multiple=True, metavar="COL",
              help="Column of an evaluator's scores; may be repeated. [all others of numbers]")  # fmt: skip
@top_size_option(5)
@click.option("--improvement", "improvements", multiple=True, type=click.FloatRange(0, min_open=True), metavar="DELTA",
              help="Points of improvement: report how often people agree with that many; may be repeated.")  # fmt: skip
@click.option("--agreement", default=0.75, type=click.FloatRange(0.5, 1, min_open=True, max_open=True), metavar="P",
              help="Probability that people agree; the smallest gap of scores that reaches it "
              "is reported.")  # fmt: skip
@click.option(
    "--votes",
    type=FILE,
    metavar="FILE",
    help="Votes of people, as `leaderboard` reads them. They rank models against references, in place of scores.",
)
@side_options
@column_options(winner="Column of labels. [winner, or one-hot columns]")
@labels_option("labels")
@both_bad_option
@click.option(
    "--reference",
    "references",
    multiple=True,
    metavar="MODEL",
    help="A model to rank others against; may be repeated. [all models]",
)
@click.option("--set", "sets", multiple=True, metavar="A,B,...",
              help="References to use together; may be repeated. [by tiers]")  # fmt: skip
@click.option(
    "--budgets",
    default="25,50,100,200",
    type=_Numbers(int, "N,N,..."),
    help="Numbers of votes on each model; each is studied.",
)
@click.option(
    "--studies",
    "n_repeats",
    default=10,
    type=click.IntRange(1),
    metavar="N",
    help="How many studies there are of each of --budgets.",
)
@column_options(
    item="Column of items: prompts, questions, tasks. Models met all references on each item, and --budgets are "
    "numbers of items."
)
@cluster_option("A resample draws whole clusters.")
@strata_option("votes")
@click.option("--deltas", type=_Numbers(float, "D,D,..."),
              help="Gaps in points: models that differ by less are close. [1,2,5,10,20; of "
              "votes 2,5,10,20]")  # fmt: skip
@click.option(
    "--tiers",
    "n_tiers",
    default=4,
    type=click.IntRange(1),
    metavar="T",
    help="Number of tiers that models are sorted into.",
)
@click.option("--few-pairs", is_flag=True,
              help="Also show, in tables, advice and figures, what rests on fewer than 15 pairs of "
              "models.")  # fmt: skip
@resampling_options(fewest=0, drawn="Of models, or of votes; 0 for no intervals.")
def meta(
    file: FileName | None, votes: FileName | None, drawn: dict[str, Any], outputs: Outputs, **options: Any
) -> None:
    """Which evaluators rank models as people do, close ones too.

    FILE has a row per model, a column of gold scores and a column per evaluator. The first table compares evaluators
    with each other, the best first, on the models that they share; the others, on close models, tiers and gaps, follow
    with --full. With --votes, models are ranked by their votes against single references and sets of them, and compared
    with the ranking of all votes.
    """
    if (file is None) == (votes is None):
        raise click.UsageError("give a FILE of scores with --gold, or --votes FILE")
    from jaxeval.cli.evaluators import study_evaluators
    from jaxeval.cli.references import study_references
    from jaxeval.execution.precision import versions

    context = click.get_current_context()
    foreign = _VOTES_ONLY if votes is None else _SCORES_ONLY
    for option in context.command.params:
        if option.name in foreign and context.get_parameter_source(option.name) is not ParameterSource.DEFAULT:
            kind = "only with --votes" if votes is None else "only for a FILE of scores, not with --votes"
            raise click.UsageError(f"{option.opts[0]} is {kind}")
    own = {name: value for name, value in options.items() if name not in foreign}
    if "top_size" in own:
        own["top"] = own.pop("top_size")
    answer: Any
    if votes is not None:
        answer, unit = study_references(votes, drawn=drawn, **own), own["item"] or own["cluster"] or "votes"
    else:
        assert file is not None
        answer, unit = study_evaluators(file, drawn=drawn, with_curves=outputs.to_folder, **own), "models"
    drawn_how = f"{100 * drawn['level']:g}% intervals, {counted(drawn['n_resamples'], 'resample')} of {unit}, "
    how = f"{drawn_how}seed {drawn['seed']}" if drawn["n_resamples"] else "no resamples, so no intervals"
    text = "".join(f"{sentence}\n" for sentence in answer.sentences)
    answer = answer._replace(
        settings={**{name: drawn[name] for name in ("n_resamples", "level", "seed")}, "versions": versions()},
        sentences=answer.sentences[:1],
        advice=answer.sentences[1:],
        notes=[*answer.notes, f"{how}; {versions()}"],
        texts=lambda: {"advice.txt": text},
    )
    present(answer, outputs)
