"""How files of battles are read, and which of their battles count: options, in the words of `read_battles`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxeval.cli.run_options import FILE, Decorator, choice_option, column_options, several_options, side_options
from jaxeval.cli.terminal import complain, named_model, tell
from jaxeval.data.remote_names import FileName, is_remote
from jaxeval.wording import Noun, competitor_of

if TYPE_CHECKING:
    import pandas as pd

    from jaxeval.data.battles import Battles
    from jaxeval.data.file_heads import Head
    from jaxeval.data.labels import Labels

_CODINGS = ("a_wins_1", "a_wins_0", "labels", "grades")
#: Words for the sides that meanings may have besides the standard ones.
_SIDE_WORDS = {"a": "model_a", "left": "model_a", "first": "model_a", "b": "model_b", "right": "model_b",
               "second": "model_b", "draw": "tie", "both": "tie", "neither": "both_bad"}  # fmt: skip


class LabelsOption(click.ParamType):  # type: ignore[type-arg]
    """The name of a coding, or LABEL=MEANING,..."""

    name = "labels"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The coding, or the mapping."""
        if not isinstance(value, str) or value in _CODINGS:
            return value
        pairs = [part.rpartition("=") for part in value.split(",")]
        if not all(equals for _, equals, _ in pairs):
            self.fail(
                f"{value!r} is not {', '.join(_CODINGS)}, or a list such as A=model_a,B=model_b,C=tie", param, ctx
            )
        labels = [label.strip() for label, _, _ in pairs]
        if len(set(labels)) < len(labels):
            self.fail(f"{value!r} says twice what a label means", param, ctx)
        meanings = ((label.strip(), meaning.strip()) for label, _, meaning in pairs)
        return {label: _SIDE_WORDS.get(meaning.lower(), meaning) for label, meaning in meanings}


class Scale(click.ParamType):  # type: ignore[type-arg]
    """LOW:HIGH."""

    name = "scale"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Both numbers."""
        try:
            low, high = (float(end) for end in value.split(":")) if isinstance(value, str) else value
        except ValueError:
            self.fail(f"{value!r} is not the least and the largest score, such as 1:10", param, ctx)
        return low, high


class _Names(click.ParamType):  # type: ignore[type-arg]
    """NAME,NAME,..."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The names."""
        return tuple(name.strip() for name in value.split(",")) if isinstance(value, str) else value


class _Word(click.ParamType):  # type: ignore[type-arg]
    """A word, or a word and its plural."""

    name = "word"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The noun."""
        try:
            return Noun.of(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def competitor_option() -> Decorator:
    """``--competitor-name``, as ``competitor`` of the command."""
    return click.option(
        "--competitor-name",
        "competitor",
        type=_Word(),
        metavar="WORD[,PLURAL]",
        help="What is rated, as tables, figures and messages call it: player, or city,cities. [what the columns are "
        "called, as player_1 and player_2; else model]",
    )


def labels_option(argument: str, example: str = "A=model_a,B=model_b,C=tie") -> Decorator:
    """``--labels``, as ``argument`` of the command, with an ``example`` of its words."""
    return click.option(
        "--labels",
        argument,
        type=LabelsOption(),
        metavar="CODING|L=MEANING,...",
        help="What labels mean, where they are not words that are known. For numbers: a_wins_1 or a_wins_0, which is "
        f"never guessed. For words: a list such as {example}.",
    )


class ColumnPair(click.ParamType):  # type: ignore[type-arg]
    """Two columns, A:B."""

    name = "columns"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Both names."""
        if isinstance(value, tuple):
            return value
        parts = [part.strip() for part in value.split(":")]
        if len(parts) != 2 or not all(parts):
            self.fail(f"{value!r} is not two columns such as home_score:away_score", param, ctx)
        return tuple(parts)


_LENGTHS = click.option("--lengths", type=ColumnPair(), metavar="A:B", help="Columns of the lengths of both answers.")


def lengths_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--lengths``, and its former spelling as two options."""

    @wraps(command)
    def gathered(*args: Any, **options: Any) -> Any:
        former = options.pop("length_a"), options.pop("length_b")
        if any(former):
            if not all(former):
                raise click.UsageError("--length-a and --length-b go together: say --lengths A:B")
            new = f"--lengths {former[0]}:{former[1]}"
            complain(f"--length-a and --length-b are now {new}, and the old names will be removed")
            options["lengths"] = former
        return command(*args, **options)

    hidden = (click.option(name, metavar="COL", hidden=True) for name in ("--length-a", "--length-b"))
    return several_options(_LENGTHS, *hidden)(gathered)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the options say; all but the last ones are arguments of `read_battles`."""

    model_a: str
    model_b: str
    winner: str | None
    target: str | None
    weight: str | None
    propensity: str | None
    count: str | None
    labels: Labels | None
    scores: tuple[str, str] | None
    tie_within: float
    winner_model: str | None
    loser_model: str | None
    both_bad: str
    missing: str
    where: str | None
    baseline: str | None
    models: tuple[str, ...]
    exclude: tuple[str, ...]
    rename: FileName | None
    metadata: FileName | None
    competitor: Noun | None

    def read(self, paths: Sequence[FileName], keep: Sequence[str]) -> Battles:
        """The battles in files."""
        from jaxeval.data.readers import read_battles
        from jaxeval.data.saved_battles import is_saved

        for path in paths:
            if not is_remote(path) and Path(path).is_file() and is_saved(Path(path)):
                return self._saved(paths, Path(path))
        columns: dict[str, Any] = {name: getattr(self, name) for name in _COLUMNS}
        columns["missing"] = "drop" if self.missing == "drop" else "error"
        columns |= self._found(paths)
        return read_battles(paths if len(paths) > 1 else paths[0], keep=keep, **columns)

    def _found(self, paths: Sequence[FileName]) -> dict[str, Any]:
        """The columns of sides and results as their values say, where none are named and none have the usual names.

        Raises:
            DataError: they do not say it, or not surely: the message begins with the line to type.
        """
        from jaxeval.data.columns import folded
        from jaxeval.data.file_lists import names_of
        from jaxeval.data.known_formats import format_of_names
        from jaxeval.data.table_files import head_names

        said = [self.winner, self.target, self.scores, self.winner_model, self.labels, self.count]
        if any(x is not None for x in said) or (self.model_a, self.model_b) != ("model_a", "model_b"):
            return {}
        from jaxeval.data.file_heads import read_head
        from jaxeval.data.file_lists import local_file
        from jaxeval.data.found_columns import found_votes

        first = names_of(paths)[0]
        names = head_names(local_file(first))
        if {"modela", "modelb"} <= {folded(name) for name in names} or format_of_names(names, "pair") is not None:
            return {}
        head = read_head(first)
        found = None if head.rows is None else found_votes(head.rows)
        if found is not None:
            columns, options, why = found
            tell(f"{first}: {why}; read as {shlex.join(options)}" if options else f"{first}: {why}")
            return columns
        return self._asked(first, head)

    def _asked(self, first: FileName, head: Head) -> dict[str, Any]:
        """Raise the error that begins with the line to type."""
        from jaxeval.cli.file_uses import uses_of
        from jaxeval.cli.look import line_of
        from jaxeval.errors import DataError
        from jaxeval.wording import named

        command = click.get_current_context().info_name
        use = next((use for use in uses_of(head) if use.words[0] == "leaderboard" and "--by" not in use.words), None)
        if use is not None:
            line, why = line_of(use._replace(words=(str(command), *use.words[1:])), [first]), f"{use.why}; {use.open}"
        else:
            line = (
                shlex.join(["jaxeval", str(command), str(first)]) + " --model-a COLUMN --model-b COLUMN --winner COLUMN"
            )
            why = "no column is called 'model_a', and the values do not say which columns are the sides and the result"
        raise DataError(f"say it so: {line}\n{first}: {why}; its columns are {named(list(map(repr, head.names)), 20)}")

    def _saved(self, paths: Sequence[FileName], path: Path) -> Battles:
        """The battles of a state, which are read already."""
        from jaxeval.data.battles import Battles

        if len(paths) > 1:
            raise click.UsageError(
                f"{path} holds battles that jaxeval saved: name it alone, or with --state to add the other files to it"
            )
        usual = {"model_a": "model_a", "model_b": "model_b", "tie_within": 0, "both_bad": "half"}
        of_votes = [name for name in _COLUMNS if name not in ("missing", "where")]
        given = [name for name in of_votes if getattr(self, name) != usual.get(name)]
        if given:
            option = f"--{given[0].replace('_', '-')}"
            raise click.UsageError(f"{option} says how votes are read, and those of {path} are: leave it out")
        battles = Battles.load(path)
        return battles if self.where is None else battles.filter(self.where)

    def named(self, battles: Battles) -> Battles:
        """The battles, with the word for what competes, if one was given."""
        if self.competitor is None:
            return battles
        return replace(battles, report=replace(battles.report, _said=self.competitor))

    def chosen(self, battles: Battles) -> Battles:
        """The battles that count, with models renamed; names to leave out may be old or new ones."""
        battles = self.remembering(self.named(battles))
        new = {named_model(battles.models, name): other for name, other in battles.names.items()}
        before = [name for name in self.exclude if named_model(battles.models, name) in battles.models]
        if before and new:
            battles = battles.filter(exclude=[named_model(battles.models, name) for name in before])
        if any(name in battles.models for name in new) or (self.rename is not None and not before):
            battles = battles.rename(new)
        models, exclude = (
            [named_model(battles.models, name) for name in names]
            for names in (self.models, [name for name in self.exclude if not new or name not in before])
        )
        return battles.filter(models=models or None, exclude=exclude) if models or exclude else battles

    def remembering(self, battles: Battles) -> Battles:
        """The battles, with the names of ``--rename`` among those that a state keeps for later runs."""
        if self.rename is None:
            return battles
        from jaxeval.data.model_tables import read_names

        return replace(battles, names={**battles.names, **read_names(self.rename, battles.competitor)})

    def with_metadata(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table of models with the columns of ``--metadata``."""
        if self.metadata is None:
            return table
        from jaxeval.data.model_tables import join_metadata, read_metadata

        return join_metadata(table, read_metadata(self.metadata, competitor_of(table.attrs.get("settings"))))

    @property
    def files(self) -> list[FileName]:
        """The further files that are read."""
        return [path for path in (self.rename, self.metadata) if path is not None]


_NAMES = tuple(field.name for field in fields(Reading))
_COLUMNS = _NAMES[: _NAMES.index("models")]

both_bad_option = choice_option(
    "--both-bad", "half", "drop", text="Votes that both sides are bad: half a win each, or left out."
)

baseline_option = click.option(
    "--baseline", metavar="NAME", help="The model that all others met, for files of Arena-Hard that do not name it."
)

_OPTIONS = several_options(
    side_options,
    column_options(
        winner="Column of labels. [winner, or one-hot columns]",
        target="Column of soft targets in [0, 1] instead of labels.",
        weight="Column of weights.",
        propensity="Column of propensities: the chance that a battle was of its pair, as `next` writes it. Its inverse "
        "is a weight.",
        count="Column of counts: how many equal rows a row stands for.",
    ),
    labels_option("labels"),
    click.option("--winner-model", metavar="COL", help="Column of the model that won. Such files have no ties."),
    click.option("--loser-model", metavar="COL", help="Column of the model that lost."),
    click.option("--scores", type=ColumnPair(), metavar="A:B",
                 help="Columns of the scores of both sides: the larger wins."),
    click.option("--tie-within", default=0.0, type=click.FloatRange(0), metavar="D",
                 help="With --scores: the largest difference that counts as a tie."),
    both_bad_option,
    click.option("--where", metavar="SQL",
                 help="Read only rows that meet a condition, such as \"language = 'en' AND turn = 1\". This needs the "
                 "extra jaxeval[sql]."),
    baseline_option,
    click.option("--models", multiple=True, metavar="NAME",
                 help="Rate only the battles between these models; may be repeated."),
    click.option("--exclude", multiple=True, metavar="NAME",
                 help="Leave out the battles of this model; may be repeated."),
    click.option("--rename", type=FILE, metavar="FILE",
                 help="Other names of models: a table with the columns model and name, or a JSON object. Where "
                 "players are rated, the column model may be called player."),
    competitor_option(),
)  # fmt: skip

_OF_BOARDS = several_options(
    choice_option("--missing", "error", "drop", "label",
                  text="What to do about gaps. error: refuse rows without a model, a result or a value of --by. drop: "
                  "leave them out. label: battles without a value of --by are a group of their own."),
    click.option("--metadata", type=FILE, metavar="FILE",
                 help="A table with a column model (or player, where players are rated). Its other columns "
                 "(organisation, licence, price) are added to every output."),
)  # fmt: skip


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of commands that make boards, as ``reading`` of the command."""
    return _OF_BOARDS(battle_options(command))


def battle_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of commands without boards of groups, and without tables of models, which have a ``--missing``."""

    @wraps(command)
    def gathered(*args: Any, **options: Any) -> Any:
        own = {name: options.pop(name, None) for name in _NAMES}
        return command(*args, reading=Reading(**own), **options)

    return _OPTIONS(gathered)


def unparsed_option(default: str | None = None) -> Decorator:
    """``--unparsed``, whose argument is ``default`` where it is not given."""
    return click.option("--unparsed", type=click.Choice(["error", "drop"]), callback=lambda *given: given[2] or default,
                        help="Replies that cannot be read: an error, or left out. [error]")  # fmt: skip


def confidence_option(default: str | None = None) -> Decorator:
    """``--confidence``, whose argument is ``default`` where it is not given."""
    return click.option("--confidence", type=click.Choice(["share", "percent"]),
                        callback=lambda *given: given[2] or default,
                        help="How judges state their confidence. [share]")  # fmt: skip


#: How what judges printed is read, in the words of `JudgeOutputs.from_pandas`; nothing is given by default.
call_options = several_options(
    column_options(
        output="Column of what the judge printed: JSON, fenced or not, or text. [output or reply, if there are no "
        "scores]",
        item="Column of items: prompts, questions, tasks. They join the two orders of a battle. [item or question_id]",
        judge="Column of judges. Each is read by itself. [judge]",
        run="Column of repeated runs. [run]",
        shown_first="Column of the side that was shown first. "
        "[of replies: shown_first, order or swapped, else model_a; of tables: none]",
    ),
    click.option("--criteria", type=_Names(), metavar="NAME,...",
                 help="Criteria that count. [those that most replies have]"),
    click.option("--scale", type=Scale(), metavar="LOW:HIGH", help="Least and greatest score of a criterion. [1:10]"),
    confidence_option(),
    unparsed_option(),
    click.option("--one-order", type=click.Choice(["error", "keep", "drop", "separate"]),
                 help="Battles that were judged in one order only: refused, kept, left out; or (separate) each row of "
                 "a table is a battle. [error]"),
    click.option("--repeats", type=click.Choice(["error", "first", "runs"]),
                 help="Orders that were judged twice: refused; the first call counts; or each call is a run. [error]"),
)  # fmt: skip

#: The same, with words of verdicts and labels of people beside them.
reply_options = several_options(
    call_options,
    click.option("--words", "labels", type=LabelsOption(), metavar="L=MEANING,...",
                 help="What other verdicts mean, such as 1=model_a,2=model_b; model_a is the side that was shown "
                 "first."),
    click.option("--human-labels", type=FILE, metavar="FILE",
                 help="A table of human labels, joined by item and pair: item, model_a, model_b, winner, and rater."),
    click.option("--people", type=click.Choice(["error", "majority", "drop"]),
                 help="What to do where people contradict each other on an item. [error]"),
)  # fmt: skip
