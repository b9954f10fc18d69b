"""Judgments of any kind as one table with roles: who, on what, said what, how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any, TypeVar

from jaxeval.checks import check_choice
from jaxeval.data.anchored_verdicts import AnchoredVerdicts
from jaxeval.data.battles import Battles
from jaxeval.data.columns import as_frame, folded, require_column
from jaxeval.data.equal_rows import one_table
from jaxeval.data.file_lists import named_twice, names_of, whole_local_file
from jaxeval.data.formats import Shape, Source
from jaxeval.data.found_columns import found_votes
from jaxeval.data.item_scores import ItemScores
from jaxeval.data.judge_outputs import JudgeOutputs
from jaxeval.data.judged_answers import JudgedAnswers
from jaxeval.data.judged_battles import JudgedBattles
from jaxeval.data.published_formats import source_format
from jaxeval.data.rankings import Rankings
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.data.roles import ROLES, columns_of
from jaxeval.data.table_files import naming, read_whole_table, told_of
from jaxeval.errors import DataError
from jaxeval.lazy_names import pd
from jaxeval.plain_tables import in_pandas
from jaxeval.show.shown import ROWS_OF_DATA, Answer, Shown
from jaxeval.wording import counted, did_you_mean, named

T = TypeVar("T")

#: What makes a table of each shape, roles of which one must be there in each group; the first shape that fits is taken.
_NEEDS: dict[Shape, tuple[tuple[str, ...], ...]] = {
    "pair": (("model_a", "winner_model"), ("model_b", "loser_model")),
    "ranking": (("rank", "ranking"),),
    "answer": (("model", "item"), ("score", "judgment", "verdict", "output", "human")),
}


@dataclass(frozen=True, eq=False, repr=False)
class Judgments(Shown):
    """One table of judgments, a row each, whose columns have roles.

    ``roles`` says by role what its column was called. ``table`` calls a column by its role where its name is no usual
    one, and by its own name elsewhere. ``shape`` is "pair" for judgments of two sides, "answer" for
    those of one answer, "ranking" for orders of items. The methods give what the estimators take: each is a view of
    this table, with the options and errors of the ``from_pandas`` of its class.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> games = pd.DataFrame({"White": [*"xyxy"], "Black": [*"yxyx"], "Result": ["1-0", "0-1", "1-0", "1/2-1/2"]})
        >>> judgments = jaxeval.Judgments.from_pandas(games)
        >>> judgments.shape, judgments.roles
        ('pair', {'model_a': 'White', 'model_b': 'Black', 'winner': 'Result'})
        >>> judgments.battles().target.tolist()
        [1.0, 0.0, 1.0, 0.5]
    """

    table: pd.DataFrame
    roles: Mapping[str, str]
    shape: Shape
    read_as: tuple[str, ...] = ()  # how the table was read, in words

    @classmethod
    def from_pandas(cls, table: Any, shape: Shape | None = None, **roles: str) -> Judgments:
        """Read judgments from a DataFrame, or any table with the Arrow interface.

        Columns are found by the names that are usual for their roles; those of votes also by their values, where there
        is one way to read them.

        Args:
            table: a row for each judgment.
            shape: "pair", "answer" or "ranking"; by default what the columns say.
            **roles: columns by role, such as ``model_a="left"`` or ``judge="grader"``. Weights, counts, clusters and
                propensities are taken only where they are named so.

        Raises:
            DataError: a column is not there, or the columns do not say what is judged.
            ValueError: there is no such role or shape, or a column is named for two roles.
        """
        frame = as_frame(table)
        unknown = next((role for role in roles if role not in ROLES), None)
        if unknown is not None:
            raise ValueError(f"no role {unknown!r}; there are {named(list(ROLES), 40)}{did_you_mean(unknown, ROLES)}")
        if shape is not None:
            check_choice("shape", shape, _NEEDS)
        for role, column in roles.items():
            require_column(frame, column)
            other = next((x for x in roles if roles[x] == column and x != role), None)
            if other is not None:
                raise ValueError(f"column {column!r} is named for two roles, {role!r} and {other!r}: name it once")
        columns = _found_roles(frame, roles)
        messages: tuple[str, ...] = ()
        result_roles = {"winner", "target", "score_a", "winner_model"} & roles.keys()
        if shape in (None, "pair") and not (_has(columns, "pair") or result_roles):
            by_value = found_votes(frame.loc[:, ~frame.columns.duplicated(keep=False)])
            if by_value is not None:
                vote_columns = dict(by_value.arguments)
                vote_columns |= dict(zip(("score_a", "score_b"), vote_columns.pop("scores", ()), strict=False))
                columns = {
                    role: name for role, name in columns.items() if name not in vote_columns.values()
                } | vote_columns
                messages = (by_value.why,)
        fitting = [kind for kind in _NEEDS if shape in (None, kind) and _has(columns, kind)]
        if not fitting:
            needs = "; ".join(
                f"{kind}s: {', and '.join(' or '.join(group) for group in _NEEDS[kind])}"
                for kind in _NEEDS if shape in (None, kind)
            )  # fmt: skip
            raise DataError(
                f"the columns do not say what is judged; needed are, for {needs}. Name them by role, such as "
                f"model_a='left'; the table's columns are {named(list(map(repr, frame.columns)), 20)}"
            )
        names = {column: role for role, column in columns.items()
                 if folded(column) not in {role, *map(folded, (role, *ROLES[role].names))}}  # fmt: skip
        taken = {name: f"{name}_" for name in frame.columns if name in names.values() and name not in names}
        ordered = {role: columns[role] for role in ROLES if role in columns}
        return cls(frame.rename(columns={**taken, **names}), ordered, fitting[0], messages)

    @classmethod
    def read(
        cls, path: FileName | Sequence[FileName], shape: Shape | None = None, *, baseline: str | None = None,
        **roles: str,
    ) -> Judgments:  # fmt: skip
        r"""Read judgments from files in the formats of `read_battles`, and of `formats`.

        Args:
            path: a file, a folder, a glob or a list of those.
            shape: as in `from_pandas`.
            baseline: the model that others were compared with, where a published format does not name it.
            **roles: as in `from_pandas`.

        Raises:
            DataError: a file cannot be read; the error begins with its name.
            FileNotFoundError: there is no such file.

        Examples:
            >>> import jaxeval
            >>> from pathlib import Path
            >>> _ = Path("votes.csv").write_text("left,right,winner\nx,y,left\ny,x,tie\n")
            >>> print(jaxeval.Judgments.read("votes.csv"))
            2 judgments of pairs: model_a, model_b, winner
            two sides in 'left' and 'right', results in 'winner'
            column 'left': read as model_a
            column 'right': read as model_b
        """
        frames, messages, files = [], dict.fromkeys(named_twice(path)), names_of(path)
        for name in files:
            file = whole_local_file(name)
            with naming(name):
                source = Source.of(name, file, baseline=baseline)
                form = None if roles else source_format(source, *([shape] if shape else _NEEDS))
                if form is None:
                    frames.append(read_whole_table(file, [*roles.values(), "model_a", "model_b", "model"]))
                    messages |= dict.fromkeys(told_of(file))
                    continue
                frames.append(in_pandas(form.read(source)).drop(columns="_document", errors="ignore"))
                if not len(frames[-1]):
                    raise DataError(f"it holds {form.name}, and no judgments")
                messages[form.read_as] = None
        table, again = one_table(frames, [base_name(name) for name in files])
        judgments = cls.from_pandas(table, shape, **roles)
        return replace(judgments, read_as=(*messages, *again, *judgments.read_as))

    def __len__(self) -> int:
        return len(self.table)

    def __str__(self) -> str:
        head = f"{counted(len(self), 'judgment')} of {self.shape}s: {', '.join(self.roles)}"
        renamed = [f"column {name!r}: read as {role}" for role, name in self.roles.items() if name != role]
        return "\n".join([head, *self.read_as, *renamed])

    def _shown(self) -> Answer:
        return Answer(f"Judgments: {self}", self.table.head(ROWS_OF_DATA), n_rows=len(self))

    def column(self, role: str) -> pd.Series:
        """Return the column of a role, or a further column.

        Raises:
            DataError: there is no such column.
        """
        name = role if role in self.table else self.roles.get(role, role)
        require_column(self.table, name)
        return self.table[name]

    def battles(self, **options: Any) -> Battles:
        """View as `Battles`; options as in `Battles.from_pandas`."""
        if "score_a" in self.roles:
            options = {"scores": ("score_a", "score_b"), **options}
        return self._view(Battles.from_pandas, options)

    def judged_battles(self, **options: Any) -> JudgedBattles:
        """View as `JudgedBattles`; options as in `JudgedBattles.from_pandas`."""
        return self._view(JudgedBattles.from_pandas, options)

    def replies(self, **options: Any) -> JudgeOutputs:
        """View as `JudgeOutputs`, for what judges printed; options as in `JudgeOutputs.from_pandas`."""
        return self._view(JudgeOutputs.from_pandas, options)

    def answers(self, **options: Any) -> JudgedAnswers:
        """View as `JudgedAnswers`; options as in `JudgedAnswers.from_pandas`."""
        return self._view(JudgedAnswers.from_pandas, options, human="label")

    def verdicts(self, **options: Any) -> AnchoredVerdicts:
        """View as `AnchoredVerdicts`; options as in `AnchoredVerdicts.from_pandas`."""
        return self._view(AnchoredVerdicts.from_pandas, options)

    def scores(self, **options: Any) -> ItemScores:
        """View as `ItemScores`; options as in `ItemScores.from_pandas`."""
        return self._view(ItemScores.from_pandas, options, run="trial")

    def rankings(self, **options: Any) -> Rankings:
        """View as `Rankings`; options as in `Rankings.from_pandas`."""
        return self._view(Rankings.from_pandas, options, ranked="item")

    def _view(self, make: Callable[..., T], options: dict[str, Any], **called: str) -> T:
        """Return what ``make`` reads of the table, its columns by role; ``called`` are roles with other names there."""
        known = signature(make).parameters
        columns = {called.get(role, role): self.column(role).name for role in self.roles}
        columns = {option: name for option, name in columns.items() if option in known}
        return make(self.table, **{**columns, **options})


def _found_roles(frame: pd.DataFrame, named_roles: Mapping[str, str]) -> dict[str, str]:
    """Return the columns by role that are said, and those with usual names; no column has two roles."""
    roles = dict(named_roles)
    for role in ROLES:
        name = next((name for name in columns_of(frame, ROLES[role].names) if name not in roles.values()), None)
        if role not in roles and name is not None and (frame.columns == name).sum() == 1:
            roles[role] = str(name)
    return roles


def _has(roles: Mapping[str, str], shape: Shape) -> bool:
    return all(any(role in roles for role in group) for group in _NEEDS[shape])
