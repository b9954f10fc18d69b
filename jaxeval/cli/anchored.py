"""The command line of reference-anchored Elo: ``jaxeval anchored FILE``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from jaxeval import plots
from jaxeval.cli.declared import Answer, Files, command
from jaxeval.cli.outputs import Outputs
from jaxeval.errors import DataError
from jaxeval.options.boards import ResponseOptions
from jaxeval.options.columns import AnchoredReading, FacetOptions, Names, VoteReading
from jaxeval.options.field import Options, again, option
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions
from jaxeval.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from jaxeval.anchored.screening import JudgeScreen


class Anchored(Options):
    """What is estimated of verdicts against a reference."""

    baseline: str | None = again(VoteReading, "baseline")
    min_confidence: float | None = option(
        None, "Also rate without the answers whose stated confidence is below C.", "C", least=0, most=1
    )
    by_task: bool = option(False, "Rate every task on its own.")
    prior: float = option(
        0.5, "Pseudo-count of each outcome: 0.5 is Jeffreys' prior, 1 is Laplace's.", "A", least=0, open=True
    )
    link: str = again(
        ResponseOptions, "link", more="Or the complementary log-log.", choices=("logit", "probit", "cloglog")
    )
    pool_size: float | None = option(None, "Number of prompts in the pool that these were drawn from.", "M", least=1)
    threshold: float = option(
        0.9, "Least reliability, ICC(3,k), of a strong judge.", "R", flag="--min-icc", least=0, most=1
    )
    strata: str | None = again(DrawnTogether, "strata", metavar="task")
    random: Names | None = again(FacetOptions, "random", more="Here: judge, anchor, task, run.")


@command("anchored")
def anchored(
    files: Files, verdict_columns: AnchoredReading, options: Anchored, drawn: ResamplingOptions, outputs: Outputs
) -> Answer:
    """Rate models by wins, ties and losses against a fixed reference.

    FILES have a verdict per row, or what a judge printed, or counts in columns wins, ties and losses; or they are in a
    format of AlpacaEval, Arena-Hard or MT-bench. Judges with
    repeated runs are screened by their reliability, and references by how informative they are. --full and --out add
    the judges' agreement, abstention, the prior's weight, tau^2 between tasks, errors by the number of prompts, and,
    with columns score and reference_score, direct scoring.
    """
    from jaxeval.anchored.diagnostics import diagnose_anchors
    from jaxeval.anchored.pooling import anchored_answer, pooled_scores
    from jaxeval.anchored.scores import anchored_scores
    from jaxeval.anchored.screening import screen_judges
    from jaxeval.data.anchored_verdicts import ROLES, AnchoredVerdicts, anchored_table
    from jaxeval.data.remote_names import label_of
    from jaxeval.data.table_files import naming
    from jaxeval.execution.precision import versions
    from jaxeval.lab.anchored_tables import DIRECT, method_tables

    columns: dict[str, Any] = verdict_columns.arguments()
    threshold, strata = options.threshold, options.strata
    arguments: dict[str, Any] = {"level": drawn.level, **options.arguments("prior", "pool_size", "link")}
    tables: dict[str, pd.DataFrame] = {}
    notes: list[str] = []
    warnings: list[str] = []
    further: dict[str, pd.DataFrame] = {}
    screen = None
    file = label_of(files)
    frame, read_as = anchored_table(files, [columns[role] or role for role in ROLES if role != "run"], options.baseline)
    names, random = list(frame.columns), list(options.random or ())
    if _holds_counts(file, names, columns["verdict"]):
        if strata:
            raise click.UsageError("--strata needs prompts to resample, and a table of counts has none")
        if random:
            raise click.UsageError("--random is about single verdicts, and a table of counts has none")
        counts = _read_counts(file, frame, by_task=options.by_task, **columns)
        with naming(file):
            scores = anchored_scores(counts, **arguments)
        notes.append(counted(len(counts), "row of counts", "rows of counts"))
    else:
        with naming(file):
            verdicts = AnchoredVerdicts.from_pandas(frame, **columns)
        verdicts = replace(verdicts, read_as=(*read_as, *verdicts.read_as))
        by = ["model", "judge", "anchor", *(["task"] if options.by_task else [])]
        scores = anchored_scores(verdicts, [role for role in by if role not in random], random=random, **arguments)
        notes.append(str(verdicts))
        if verdicts.levels["model"][0] == "(one model)":
            warnings.append("no column of models: all verdicts are rated as one model's (name the column, --model)")
        if len(verdicts.levels["run"]) > 1:
            screen = screen_judges(verdicts, threshold, strata=strata, **drawn.arguments())
            tables["judges"] = screen.table.reset_index()
            warnings += screen.warnings
            if screen.strong and len(verdicts.levels["judge"]) > 1 and "judge" not in random:
                tables["pooled"] = pooled_scores(verdicts, screen=screen, **arguments)
            elif not screen.strong:
                warnings.append(f"no judge reaches an ICC(3,k) of {threshold:g}")
        else:
            if strata:
                raise click.UsageError("--strata needs judges with repeated runs, and there is one run")
            warnings.append(
                "one run only: the reliability of judges cannot be estimated (name the column of runs, --run)"
            )
        direct = _direct_scores(frame, columns) if set(DIRECT) <= set(names) else None
        strong = [] if screen is None else screen.strong
        further, unmade = method_tables(
            verdicts, direct, strong=strong, confidence=options.min_confidence, prior=options.prior, seed=drawn.seed
        )
        notes += unmade
    tables = {"scores": scores, **tables}
    warnings += scores.attrs["warnings"]
    if "pooled" in tables:
        warnings += tables["pooled"].attrs["warnings"]
    if "anchor" in scores and "model" in scores:
        diagnosis = diagnose_anchors(scores)
        tables["anchor_coverage"] = diagnosis.coverage.reset_index()
        if len(diagnosis.swap):
            tables["anchor_swap"] = diagnosis.swap
        if len(diagnosis.additivity):
            tables["anchor_additivity"] = diagnosis.additivity
        warnings += diagnosis.advice
    tables |= further
    # The two kinds of interval differ: a mean over judges is less certain than it looks beside one judge.
    pooled = "; those of the mean over judges are by the prompts' own variance" if "pooled" in tables else ""
    kind = "Student's" if random else "Beta"
    how = f"prior {options.prior:g}; {100 * drawn.level:g}% {kind} intervals{pooled}; link {options.link}"
    notes.append(f"{how}; {versions()}")
    figures, undrawn = _figures(tables, scores, screen) if outputs.to_folder else ({}, [])
    warnings += undrawn
    titles = {
        "judges": f"Reliability of the judges' runs (strong: ICC(3,k) of {threshold:g})",
        "pooled": f"Mean over the strong judges{' and all tasks' if options.by_task else ''} (Elo)",
    }
    settings = {**arguments, **({} if screen is None else drawn.arguments("n_resamples", "seed"))}
    settings |= {"threshold": threshold, "versions": versions()}
    return anchored_answer(tables, titles, notes, warnings)._replace(settings=settings, figures=lambda: figures)


def _holds_counts(file: str, names: Sequence[str], verdict: str | None) -> bool:
    """Return whether the file has counts; a column of verdicts beside them must be asked for."""
    counts = {"wins", "losses"} <= set(names)
    if counts and verdict is None and "verdict" in names:
        raise DataError(
            f"{file} has counts (columns 'wins' and 'losses') and a column 'verdict': rate the "
            "verdicts with --verdict verdict, or drop that column to rate the counts"
        )
    return counts and verdict is None


def _read_counts(
    file: str, counts: pd.DataFrame, by_task: bool, missing: str, labels: Any, **columns: str | None
) -> pd.DataFrame:
    """Return a table of counts, its columns of roles under their own names."""
    from jaxeval.data.columns import require_column
    from jaxeval.data.table_files import naming

    named = {role: columns[role] for role in ("model", "judge", "anchor", "task") if columns[role]}
    rows_only = [f"--{name}" for name in ("item", "run", "reference") if columns[name]]
    given_besides = {"--by-task": by_task, "--missing drop": missing == "drop", "--labels": labels is not None}
    rows_only += [name for name, used in given_besides.items() if used]
    if rows_only:
        raise DataError(f"{file} holds counts (columns wins and losses), so {rows_only[0]} has no meaning")
    with naming(file):
        for name in named.values():
            require_column(counts, str(name))
    shadowed = [role for role, name in named.items() if role in counts and role != name]
    return counts.drop(columns=shadowed).rename(columns={str(name): role for role, name in named.items()})


def _direct_scores(frame: pd.DataFrame, columns: dict[str, Any]) -> pd.DataFrame | None:
    """Return rows of direct scores that have verdicts in words, if any; roles become the names of their columns."""
    from jaxeval.data.anchored_verdicts import ROLES

    named = {columns[role]: role for role in ("verdict", *ROLES) if columns.get(role)}
    frame = frame.rename(columns=named)
    if not {"verdict", "model", "judge", "item"} <= set(frame.columns):
        return None
    words = frame["verdict"].isin(["win", "tie", "loss"])
    return frame[words].reset_index(drop=True) if words.any() else None


def _figures(
    tables: dict[str, pd.DataFrame], scores: pd.DataFrame, screen: JudgeScreen | None
) -> tuple[dict[str, Figure], list[str]]:
    """Return figures by name, and sentences about those that cannot be drawn."""
    figures, warnings = {}, []
    if "model" in scores:
        figures["scores"] = plots.plot_anchored(scores, None if screen is None else screen.strong)
    if "anchor_swap" in tables:
        try:
            figures["anchor_swap"] = plots.plot_anchor_swap(scores)
        except DataError as error:
            warnings.append(f"no figure of the references against each other: {error}")
    if screen is not None:
        figures["judges"] = plots.plot_screen(screen)
    return figures, warnings
