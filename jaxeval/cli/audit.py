"""The command line of audits: ``jaxeval audit FILE``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxeval.cli.agreement import Raters
from jaxeval.cli.board_options import Covariates, covariates_of
from jaxeval.cli.declared import Files, command
from jaxeval.cli.outputs import Outputs, check_outputs, present
from jaxeval.cli.reading import Lengths, Reading
from jaxeval.options.boards import ResponseOptions, SliceOptions, Ties
from jaxeval.options.columns import File, VoteColumns
from jaxeval.options.field import COLUMNS, again, option
from jaxeval.options.resampling import DrawnTogether, ResamplingOptions


@dataclass(frozen=True, kw_only=True)
class AuditedOptions(VoteColumns, Lengths):
    """What an audit asks of votes."""

    section = COLUMNS

    parts: str | None = option(None, "The parts of the audit to run. [all]", "A,B", section="")
    families: File | None = again(Raters, "families")
    cluster: str | None = again(DrawnTogether, "cluster")
    by: Sequence[str] | None = again(SliceOptions, "by", more="The audit asks whether their boards differ.")
    ties: Ties = again(ResponseOptions, "ties", choices=("half", "davidson", "rao_kupper"))


@dataclass(frozen=True, kw_only=True)
class AuditDraws(ResamplingOptions):
    """Draws of many boards."""

    n_resamples: int = again(ResamplingOptions, "n_resamples", 500, least=20)


@command("audit")
def audit(
    files: Files, asked: AuditedOptions, covariates: Covariates, reading: Reading, drawn: AuditDraws, outputs: Outputs
) -> None:
    """Can the leaderboard of the votes in FILES be believed? A verdict in words, and a table for each question.

    A part whose column is not named says so. --out FOLDER writes one page to read (audit.md, audit.html), audit.json, a
    table for each question, and figures.
    """
    from jaxeval.audits.audit import audit as audited
    from jaxeval.data.model_tables import read_families

    families, by = asked.families, asked.by or ()
    check_outputs({"--out": outputs.out}, [*files, *reading.files, *([families] if families else [])])
    features, of_features = covariates_of(covariates.features)
    columns = [asked.voter, asked.cluster, asked.time, *by, *(asked.lengths or ()), *of_features]
    battles = reading.chosen(reading.read(files, list(dict.fromkeys(name for name in columns if name))))
    for name in by if reading.missing == "drop" else ():
        battles = battles.filter(battles.column(name).notna().to_numpy())
    options: dict[str, Any] = asked.arguments("voter", "cluster", "time", "lengths", "ties")
    found = audited(
        battles,
        by=by,
        families=None if families is None else read_families(families),
        parts=None if asked.parts is None else [name.strip() for name in asked.parts.split(",")],
        features=features,
        **options,
        **drawn.arguments(),
    )
    present(found.answer, outputs)
