"""Leaderboards that rest on more than their votes: on verdicts of a judge or a panel, or on other categories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.reading import Reading, refuse_beside
from jaxeval.cli.terminal import complain
from jaxeval.data.file_lists import files_of
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.lazy_names import pd
from jaxeval.options.boards import SliceOptions
from jaxeval.options.columns import CallReading, File, Names
from jaxeval.options.field import GROUPS, Options, again, option
from jaxeval.options.resampling import DrawnTogether

if TYPE_CHECKING:
    from jaxeval.data.battles import Battles
    from jaxeval.data.verdict_rows import WithoutVerdict
    from jaxeval.ratings.prediction_powered import Samples


#: Options of a table of any boards.
_OF_TABLE = ("level", "interval", "min_battles", "simultaneous_ranks")


def boards_by(
    estimator: Callable[..., Any], data: Sequence[Any], flag: str, typed: Options, options: dict[str, Any],
    **further: Any,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """Return the boards that an estimator makes of those ``options`` that it takes, and the options of their table."""
    takes = {*signature(estimator).parameters}
    flags = typed.given() | ({"features": "--features"} if options.get("features") else {})
    refuse_beside(flag, flags, takes.union(_OF_TABLE))
    arguments = {name: value for name, value in options.items() if name in takes}
    return estimator(*data, **{**arguments, **further}), {name: options[name] for name in _OF_TABLE}


_OF_VERDICTS = "judged: the judge's verdicts"


class Judged(Options):
    """The options."""

    judged: File | None = option(
        None, "Where people's votes are few: a judge's verdicts on the same battles and on many others. They make the "
        "errors of the ratings smaller (prediction-powered), and are read like FILES. --item joins both.", "FILE",
        needs="item: the column by which a vote finds the judge's verdict on the same battle",
    )  # fmt: skip
    item: str | None = again(CallReading, "item", needs=_OF_VERDICTS)
    lam: float | None = option(
        None, "With --judged: the judge's weight; by default the weight with the least variance.", "L", least=0,
        most=1, needs=_OF_VERDICTS,
    )  # fmt: skip
    samples: Samples = option(
        "by pair", "With --judged: compare the votes with the verdicts pair by pair, or over all battles.",
        choices=("by pair", "pooled"), needs=_OF_VERDICTS,
    )  # fmt: skip
    without_verdict: WithoutVerdict = option(
        "error", "With --judged: what to do about votes without a verdict.", choices=("error", "drop"),
        needs=_OF_VERDICTS,
    )  # fmt: skip

    @property
    def keep(self) -> list[str]:
        """The column of items, which both files must have."""
        return [] if self.item is None else [self.item]

    def boards(
        self, human: Battles, verdicts: Battles, typed: Options, options: dict[str, Any], random: Sequence[str] = ()
    ) -> tuple[Any, dict[str, Any]]:
        """Return the resampled boards, and the options of their table."""
        from jaxeval.data.verdict_rows import join_verdicts
        from jaxeval.ratings.prediction_powered import prediction_powered

        samples = join_verdicts(human, verdicts, str(self.item), without_verdict=self.without_verdict)
        further: dict[str, Any] = self.arguments("lam", "samples")
        return boards_by(prediction_powered, samples, "--judged", typed, options, random=random, **further)


class Borrowing(Options, section=GROUPS):
    """The options."""

    borrow: bool = option(
        False, "With --by: boards of small groups borrow from the other battles as much as their own ask for."
    )
    prior_spread: float | None = option(
        None, "With --borrow: the scale of how far ratings may differ from group to group; by default 100.", "ELO",
        least=0, open=True, needs="borrow",
    )  # fmt: skip

    def boards(self, battles: Battles, typed: SliceOptions, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the boards of all groups, and the options of their table."""
        from jaxeval.ratings.small_categories import small_categories

        if not typed.by:
            raise click.UsageError("--borrow needs --by: it is about groups of battles")
        further = {} if self.prior_spread is None else {"prior_spread": self.prior_spread}
        return boards_by(small_categories, [battles], "--borrow", typed, options, **further)


class PanelReading(CallReading):
    """What the options say: how files of verdicts are read, and how judges are modelled."""

    judges: Names | None = option(None, "Columns of verdicts, where each judge has its own. [a row each]", "A,B")
    rows: bool = option(
        False, "Resample verdicts one by one, as if judges erred independently; by default items.", section=""
    )
    side_bias: bool = option(True, "Whether judges may favour a side.", flag="--side-bias/--no-side-bias", section="")

    def read(self, files: Sequence[FileName], reading: Reading, keep: Sequence[str]) -> Battles:
        """Return the verdicts in files, each with its judge: of rows, columns, scores, or what judges printed."""
        from jaxeval.data.judge_calls import usual_replies
        from jaxeval.data.panel_verdicts import PanelColumns, panel_battles
        from jaxeval.data.roles import ORDERS, SCORES, usual_column
        from jaxeval.data.table_files import head_names

        paths = files_of(files)
        names = head_names(paths[0])
        arguments = {name: getattr(self, name) for name in _OF_CALLS if getattr(self, name) is not None}
        is_table = self.judges or reading.winner or usual_column(names, None, ("verdict", "winner"))
        if "output" in arguments or (not is_table and usual_replies(names)):
            return panel_battles(*self._outputs(paths, reading, arguments))
        if arguments:
            odd = ", ".join(self.given(*_OF_CALLS).values())
            raise click.UsageError(f"{odd}: only for what judges printed, and these files are tables of verdicts")
        if not is_table and set(SCORES) <= {*names}:
            return panel_battles(self._scored(paths, reading), PanelColumns(item=self.item))
        coding: Any = reading.labels
        where = PanelColumns(
            judge=self.judge, item=self.item, label_coding=coding, shown_first=self.shown_first, judges=self.judges,
            model_a=reading.model_a, model_b=reading.model_b,
        )  # fmt: skip
        if self.judges is not None or self.shown_first is not None or set(ORDERS) <= {*names}:
            return panel_battles(_table(paths, reading), where)
        if reading.winner is None and "verdict" in names:
            reading = replace(reading, winner="verdict")
        kept = [usual_column(names, self.judge, "judge"), usual_column(names, self.item, "item")]
        return panel_battles(reading.read(files, list(dict.fromkeys([*keep, *filter(None, kept)]))), where)

    def _outputs(self, paths: Sequence[FileName], reading: Reading, arguments: dict[str, Any]) -> tuple[Any, Any]:
        from jaxeval.data.judge_outputs import JudgeOutputs
        from jaxeval.data.panel_verdicts import PanelColumns

        columns = {"item": self.item, "judge": self.judge, "shown_first": self.shown_first, "labels": reading.labels}
        columns = {name: value for name, value in columns.items() if value is not None} | arguments
        table = _table(paths, reading)
        options: dict[str, Any] = {"human": False, "one_order": "keep", **columns}
        outputs = JudgeOutputs.from_pandas(table, model_a=reading.model_a, model_b=reading.model_b, **options)
        return outputs, PanelColumns()

    def _scored(self, paths: Sequence[FileName], reading: Reading) -> dict[str, Any]:
        """Return tables of scores, by judge."""
        from jaxeval.data.judge_outputs import read_judges

        if len(paths) > 1:
            raise click.UsageError("tables of scores are read one at a time: give one FILE")
        sides: Any = {"model_a": reading.model_a, "model_b": reading.model_b, "label_coding": reading.labels}
        (path,) = paths
        return read_judges(path, judge=self.judge, item=self.item, **sides)

    def panels(
        self, verdicts: Battles, typed: DrawnTogether, options: dict[str, Any], random: Sequence[str] = ()
    ) -> tuple[Any, dict[str, Any]]:
        """Return the resampled boards, and the options of their table."""
        from jaxeval.ratings.panel_ratings import fit_judge_panel

        # What judges printed is read into columns of usual names.
        judge, item = (name if name in verdicts.columns else None for name in (self.judge, self.item))
        further = {"cluster": False if self.rows else typed.cluster, "side_bias": self.side_bias, "random": random}
        return boards_by(fit_judge_panel, [verdicts], "panel", typed, options, judge=judge, item=item, **further)


#: What is about rows of verdicts, and what is about what judges printed.
_OF_ROWS = ("where", "winner", "winner_model", "loser_model", "scores", "count", "weight", "propensity", "target")
_OF_CALLS = tuple(field.name for field in fields(CallReading) if field.name not in ("item", "judge", "shown_first"))


def _table(paths: Sequence[FileName], reading: Reading) -> Any:
    """Read whole files, one after the other."""
    from jaxeval.data.equal_rows import reject_same_tables
    from jaxeval.data.table_files import read_whole_table

    for flag in reading.given(*_OF_ROWS).values():
        raise click.UsageError(
            f"{flag} is for files with a row for each verdict of a judge, as columns of a judge and of a winner"
        )
    text = [reading.model_a, reading.model_b]
    frames = [read_whole_table(path, text) for path in paths]
    for sentence in reject_same_tables(frames, [base_name(path) for path in paths]):
        complain(sentence)
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)
