"""``jaxeval compare-scores --gate``: its options, its exit codes, and the reports that a CI job reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast
from xml.etree import ElementTree

import click

from jaxeval.cli.commands import ERROR_STATUS
from jaxeval.cli.compiling import CompilingCommand
from jaxeval.cli.terminal import tell
from jaxeval.execution.atomic_write import whole_file
from jaxeval.options.field import SHOWN, Options, option
from jaxeval.wording import visible

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.scores.gate import ScoreGate

Json: TypeAlias = Path
TextOutput: TypeAlias = Path
#: What a gate ends with where it could not be asked: 0, 1 and 2 are its verdicts.
COULD_NOT_RUN = 3


class GateCommand(CompilingCommand):
    """A command that ends with `COULD_NOT_RUN` after bad input, if it was asked for a gate."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """What was typed."""
        if "--gate" in args:
            ctx.meta[ERROR_STATUS] = COULD_NOT_RUN
        return super().parse_args(ctx, args)


@dataclass(frozen=True, kw_only=True)
class Gate(Options):
    """A decision for a CI job."""

    gate: bool = option(
        False, "Decide whether A may replace B, by task. Ends with 0: PASS, A is not worse by the margin; 1: FAIL, it "
        "is worse by more; 2: INCONCLUSIVE, the data show neither; 3: there was an error.",
    )  # fmt: skip
    peek: bool = option(
        False, "With --gate: decide by p-values that hold at every look, if you look again as items come in."
    )
    summary: TextOutput | None = option(
        None, "With --gate: write the verdict and its table as Markdown, as for $GITHUB_STEP_SUMMARY.", "FILE",
        section=SHOWN,
    )  # fmt: skip
    junit: TextOutput | None = option(
        None, "With --gate: write a JUnit report, with a test case for each task.", "FILE", section=SHOWN
    )
    json: Json | None = option(
        None, "With --gate: write the verdict, the tasks and the settings as JSON.", "FILE", section=SHOWN
    )

    def __post_init__(self) -> None:
        without = self.given("peek", "summary", "junit", "json")
        if without and not self.gate:
            raise click.UsageError(f"{next(iter(without.values()))} needs --gate")

    def write(self, gate: ScoreGate) -> None:
        """Write the reports."""
        for path, text in ((self.summary, _summary), (self.junit, _junit), (self.json, _json)):
            if path is not None:
                with whole_file(path) as file:
                    file.write(text(gate).encode())
                tell(f"wrote {path}")


def _summary(gate: ScoreGate) -> str:
    from jaxeval.show.documents import markdown_table, markdown_text

    first, *further = map(markdown_text, gate.answer.sentences)
    notes = [*further, *(markdown_text(f"warning: {text}") for text in gate.warnings)]
    (part,) = gate.answer.parts
    table = markdown_table(cast("pd.DataFrame", part.table))
    return "\n\n".join([f"**{first}**", table.rstrip(), *notes]) + "\n"


def _junit(gate: ScoreGate) -> str:
    """Tests that fail, and those that are open, which JUnit knows as errors."""
    rows = gate.table.to_dict("records")
    totals = {name: str(sum(row["verdict"] == verdict for row in rows)) for name, verdict in _OF_JUNIT.items()}
    suite = ElementTree.Element("testsuite", {"name": "jaxeval gate", "tests": str(len(rows)), **totals})
    for row in rows:
        name = f"{gate.a} beside {gate.b}" if row["task"] is None else str(row["task"])
        case = ElementTree.SubElement(suite, "testcase", classname="jaxeval.gate", name=visible(name))
        for kind, verdict in _OF_JUNIT.items():
            if row["verdict"] == verdict:
                numbers = [f"{key} {row[key]:.3g}" for key in ("difference", "p_pass", "p_fail")]
                text = ", ".join([*numbers, *filter(None, [row["flags"]])])
                ElementTree.SubElement(case, kind.removesuffix("s"), message=visible(f"{verdict}: {text}"))
    said = ElementTree.SubElement(suite, "system-out")
    said.text = visible("\n".join(gate.answer.sentences))
    return ElementTree.tostring(suite, "unicode", xml_declaration=True) + "\n"


_OF_JUNIT = {"failures": "FAIL", "errors": "INCONCLUSIVE"}


def _json(gate: ScoreGate) -> str:
    return json.dumps(gate.to_dict(), indent=2, ensure_ascii=True, allow_nan=False) + "\n"
