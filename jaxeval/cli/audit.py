"""The command line of audits: ``jaxeval audit FILE``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from jaxeval.cli.board_options import covariates_of, ties_option
from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.outputs import Outputs, check_outputs, present
from jaxeval.cli.reading import Reading, battle_options, lengths_option
from jaxeval.cli.run_options import (
    InputFile,
    by_option,
    choice_option,
    cluster_option,
    families_option,
    features_option,
    resampling_options,
)
from jaxeval.data.remote_names import FileName


@click.command(cls=CompilingCommand)
@click.argument("files", nargs=-1, required=True, type=InputFile(exists=True, path_type=Path))
@click.option("--voter", metavar="COL", help="Column that names who voted.")
@cluster_option("A resample draws whole clusters, which are taken as independent.")
@by_option("The audit asks whether their boards differ; may be repeated.", multiple=True)
@click.option("--time", metavar="COL", help="Column of the time of each vote: dates, or numbers.")
@lengths_option
@families_option()
@click.option("--parts", metavar="A,B", help="The parts of the audit to run. [all]")
@features_option()
@ties_option()
@battle_options
@choice_option("--missing", "error", "drop",
               text="What to do about gaps. error: refuse rows without a model, a result or a value of --by. drop: "
               "leave them out.")  # fmt: skip
@resampling_options(500, fewest=20)
def audit(
    *,
    files: tuple[FileName, ...],
    by: tuple[str, ...],
    families: FileName | None,
    parts: str | None,
    features: str | None,
    reading: Reading,
    drawn: dict[str, Any],
    outputs: Outputs,
    **options: Any,
) -> None:
    """Can the leaderboard of the votes in FILES be believed? A verdict in words, and a table for each question.

    A part whose column is not named says so. --out FOLDER writes one page to read (audit.md, audit.html), audit.json, a
    table for each question, and figures.
    """
    from jaxeval.audits.audit import audit as audited
    from jaxeval.data.model_tables import read_families

    check_outputs({"--out": outputs.out}, [*files, *reading.files, *([families] if families else [])])
    covariates, of_covariates = covariates_of(features, False, None, ())
    columns = [options["voter"], options["cluster"], options["time"], *by, *(options["lengths"] or ()), *of_covariates]
    battles = reading.chosen(reading.read(files, list(dict.fromkeys(name for name in columns if name))))
    for name in by if reading.missing == "drop" else ():
        battles = battles.filter(battles.column(name).notna().to_numpy())
    found = audited(
        battles,
        by=by,
        families=None if families is None else read_families(families),
        parts=None if parts is None else [name.strip() for name in parts.split(",")],
        features=covariates,
        **options,
        **drawn,
    )
    present(found.answer, outputs)
