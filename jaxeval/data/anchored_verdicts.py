"""Verdicts against a reference: win, tie or loss of a model's answer, by judge, reference, prompt and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Float, Int
from jaxeval.checks import check_choice
from jaxeval.data.columns import (
    codes_of,
    encode_models,
    factorize_sorted,
    first_place,
    plain,
    reject_missing,
    reject_repeats,
    renames,
    require_column,
    rows_of,
    under_names,
)
from jaxeval.data.equal_rows import one_table
from jaxeval.data.file_lists import files_of
from jaxeval.data.formats import Format, Source
from jaxeval.data.judge_calls import ReplyRules, replied_verdicts, usual_replies
from jaxeval.data.labels import STANDARD, STRONG, Graded, LabelColumn, Labels, Sides, read_labels
from jaxeval.data.numbers import finite_or_nan, numbers_or_nan
from jaxeval.data.published_formats import format_of_names
from jaxeval.data.remote_names import FileName, label_of
from jaxeval.data.report import UNPARSED, told, told_by
from jaxeval.data.roles import usual_column
from jaxeval.data.table_files import head_names, naming, read_whole_table, told_of
from jaxeval.errors import DataError
from jaxeval.execution.signatures import spelled_out, with_options_of
from jaxeval.lazy_names import pd
from jaxeval.options.columns import AnchoredReading, MissingResult, Stated
from jaxeval.show.shown import ROWS_OF_DATA, Answer, Shown
from jaxeval.wording import counted, did_you_mean, named

if TYPE_CHECKING:
    from jaxeval.options.arguments import AnchoredVerdictsArguments


#: The roles of columns, and their names unless others are given.
ROLES = ("model", "judge", "anchor", "task", "item", "run")
_OF_LABEL = {word: Graded(outcome) for word, outcome in (
    ("win", 1.0), ("tie", 0.5), ("loss", 0.0), ("w", 1.0), ("t", 0.5), ("l", 0.0)
)}  # fmt: skip
#: What users say that labels mean, in the standard words: the model is side A.
_SIDES = {"win": "model_a", "loss": "model_b"}


@dataclass(frozen=True, eq=False, repr=False)
class AnchoredVerdicts(Shown):
    """N verdicts: ``outcome`` is 1 for a win of the model over the reference, 1/2 for a tie, 0 for a loss.

    For each role (model, judge, anchor, task, item, run), ``number`` holds the (N,) position of each verdict's value in
    ``levels``; a role without a column has one level. The same item in two tasks is two items.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> table = pd.DataFrame({"model": [*"xxyy"], "item": [1, 2, 1, 2], "verdict": ["win", "loss", "win", "tie"]})
        >>> verdicts = jaxeval.AnchoredVerdicts.from_pandas(table)
        >>> verdicts.outcome.tolist()
        [1.0, 0.0, 1.0, 0.5]
        >>> print(verdicts)
        4 rows: 4 verdicts; 2 models, 1 judge, 2 items
    """

    outcome: Float
    number: dict[str, Int] = field(repr=False)
    levels: dict[str, pd.Index] = field(repr=False)
    n_rows: int
    n_missing: int = told("{:missing verdict} left out")
    named_items: bool = True  # False if no column names items, so that each row is an item
    confidence: Float | None = None  # (N,) as the judge stated it, in [0, 1]; NaN where it did not
    n_unparsed: int = told(UNPARSED)
    read_as: tuple[str, ...] = ()  # how names of columns and labels were read, in words

    def _shown(self) -> Answer:
        first = slice(None, ROWS_OF_DATA)
        columns = {role: self.levels[role][x[first]] for role, x in self.number.items() if len(self.levels[role]) > 1}
        table = pd.DataFrame({**columns, "outcome": self.outcome[first]})
        return Answer(f"AnchoredVerdicts: {self}", table, n_rows=len(self.outcome))

    @classmethod
    @spelled_out(AnchoredReading)
    def from_pandas(cls, df: Any, **options: Unpack[AnchoredVerdictsArguments]) -> AnchoredVerdicts:
        """Read verdicts from a DataFrame, or any table with the Arrow interface, with one row per verdict.

        Args:
            df: the table.
            verdict: column of "win", "tie" and "loss" (or W, T, L) of the model against the reference; or of numbers in
                [0, 1], the outcome for the model: 1, 0.5, 0 or a win probability (decimals and categories of numbers,
                too). With ``reference`` it holds what the judge printed. By default "verdict", or else "output" or
                another usual name of replies.
            item: column of prompts; without it, each row is a prompt. The same item name in two tasks is two items.
            run: column that numbers repeated runs; a judge judges an answer once in each run. It needs items.
            labels: what verdicts in other words mean: a mapping to "win", "tie" and "loss" of the model, or a coding of
                numbers as in `Battles.from_pandas`, where the model is side A.
            reference: the side of the reference in what the judge printed: "A" if the judge saw it first, as in the
                paper; "B" if second; or a column of A and B. The outcome of an answer that was judged with the
                reference on both sides is the mean of both.
            **options: further columns, each by default the one of its name, and how they are read.

        Raises:
            DataError: a column is missing, verdicts cannot be read, a verdict is there twice, no verdict is left, or
                there are runs without items.
        """
        reading = AnchoredReading(**options)
        verdict, labels, reference = reading.verdict or "verdict", reading.labels, reading.reference
        unparsed, confidence = reading.unparsed or "error", reading.confidence or "share"
        check_choice("missing", reading.missing, MissingResult)
        frame = rows_of(df)
        named = reading.arguments(*ROLES)
        frame, renamed = under_names(frame, [verdict, *(name or role for role, name in named.items())])
        columns = {role: named[role] or (role if role in frame.columns else None) for role in ROLES}
        preferred = verdict == "verdict" and verdict not in frame.columns and _is_preference(frame)
        if preferred:
            verdict, replies = "preference", False
            for role, usual in (("anchor", ("reference", "baseline")), ("judge", ("annotator",))):
                if columns[role] is None and usual_column(frame, None, usual) != reference:
                    columns[role] = usual_column(frame, None, usual)
        elif verdict == "verdict" and verdict not in frame.columns:
            verdict = usual_replies(frame) or verdict
            replies = verdict != "verdict"
        else:
            replies = reference is not None
        require_column(frame, verdict, *(c for c in columns.values() if c))
        if columns["run"] and not columns["item"]:
            raise DataError(
                f"column {columns['run']!r} numbers repeated runs, but no column names their prompts: name it with "
                "item= (on the command line --item); without it each row would be a prompt of its own"
            )
        unread, stated = np.zeros(len(frame), bool), _stated(frame, confidence)
        notes: tuple[str, ...] = ()
        weight = np.ones(len(frame))
        if replies and labels is not None:
            raise ValueError(
                "labels= says what verdicts mean, but the table holds replies of judges: leave out labels= or "
                "reference="
            )
        if replies:
            judge, _ = codes_of(frame, columns["judge"], pd.Index(["judge"]))
            rules, drop = ReplyRules(confidence=confidence), unparsed == "drop"
            calls, outcome, unread = replied_verdicts(frame, verdict, reference, judge, rules, drop)
            notes, weight = (calls.unused,) if calls.unused else (), np.where(calls.strong, STRONG, 1.0)
            stated = calls.confidence if stated is None else stated
        elif preferred:
            outcome = finite_or_nan(frame[verdict], verdict) - 1
            notes = ("column 'preference': 2 is read as a win of the model, 1 as a win of the reference, 1.5 as a tie",)
        elif labels is not None:
            outcome, notes = _labelled(frame[verdict], cast(Labels, labels))
        else:
            outcome = _outcomes(frame[verdict], verdict)
        absent = np.isnan(outcome)
        if reading.missing == "error":
            advice = "leave them out with missing='drop', which counts them (on the command line --missing drop)"
            reject_missing(absent & ~unread, verdict, advice=advice)
        if absent.all():
            raise DataError(f"no verdict is left of {counted(len(frame), 'row')}")
        number, levels = {}, {}
        for role, column in columns.items():
            default = pd.RangeIndex(len(frame)) if role == "item" else pd.Index([f"(one {role})"])
            number[role], levels[role] = codes_of(frame, column, default)
        verdicts = cls(
            outcome=outcome, number=number, levels=levels, n_rows=len(frame), n_missing=int((absent & ~unread).sum()),
            named_items=columns["item"] is not None, read_as=(*renamed, *notes),
            confidence=None if stated is None or np.isnan(stated).all() else stated, n_unparsed=int(unread.sum()),
        )._items_by_task()  # fmt: skip
        verdicts = verdicts.take(~absent) if absent.any() else verdicts
        if reference in frame.columns:
            return verdicts._both_sides(frame[reference][~absent], weight[~absent])
        verdicts._reject_repeats(frame[~absent], [c for c in columns.values() if c], columns["run"])
        return verdicts

    def __str__(self) -> str:
        shape = ", ".join(
            counted(len(self.levels[role]), role)
            for role in ROLES
            if len(self.levels[role]) > 1 or role in ("model", "judge", "item")
        )
        return "\n".join(told_by(self, f"{{n_rows:row}}: {counted(len(self.outcome), 'verdict')}; {shape}"))

    def take(self, rows: Bool | NDArray[np.intp]) -> AnchoredVerdicts:
        """Return the verdicts that a mask, or row numbers, select; the levels stay as they are."""
        number = {role: x[rows] for role, x in self.number.items()}
        confidence = None if self.confidence is None else self.confidence[rows]
        return replace(self, outcome=self.outcome[rows], number=number, confidence=confidence)

    def _both_sides(self, side: pd.Series, weight: Float) -> AnchoredVerdicts:
        """Take one verdict per answer: the mean of those with the reference on either ``side`` (N,), by ``weight``."""
        number, _ = self.groups(ROLES)
        again = pd.Series(number).groupby([number, side.to_numpy()]).cumcount().to_numpy() > 0
        if again.any():
            raise DataError(
                f"{counted(again.sum(), 'verdict repeats', 'verdicts repeat')} another one on the same answer and side "
                "of the reference: name the column that numbers runs with run= (on the command line --run)"
            )
        first, times = np.unique(number, return_index=True)[1], np.bincount(number)
        whole = self.take(first)
        stated = None if self.confidence is None else np.bincount(number, self.confidence) / times
        return replace(
            whole, outcome=np.bincount(number, weight * self.outcome) / np.bincount(number, weight), confidence=stated
        )

    def groups(self, roles: str | Sequence[str]) -> tuple[Int, pd.DataFrame]:
        """Return (N,) number of each verdict's combination of ``roles``, and a table of the combinations that occur.

        Raises:
            ValueError: a role is unknown, or no role is named.
        """
        roles = [roles] if isinstance(roles, str) else list(dict.fromkeys(roles))
        if not roles:
            raise ValueError(f"name at least one role: {', '.join(map(repr, ROLES))}")
        unknown = [role for role in roles if role not in ROLES]
        if unknown:
            raise ValueError(
                f"roles are {', '.join(map(repr, ROLES))}, got {unknown[0]!r}{did_you_mean(unknown[0], ROLES)}"
            )
        sizes = [len(self.levels[role]) for role in roles]
        number, key = pd.factorize(np.ravel_multi_index([self.number[role] for role in roles], sizes), sort=True)
        places = zip(roles, np.unravel_index(key, sizes), strict=True)
        return number, pd.DataFrame({role: self.levels[role][place] for role, place in places})

    def _items_by_task(self) -> AnchoredVerdicts:
        if len(self.levels["task"]) == 1:
            return self
        number, table = self.groups(["task", "item"])
        levels = pd.Index(table["task"].astype(str) + " / " + table["item"].astype(str))
        return replace(self, number={**self.number, "item": number}, levels={**self.levels, "item": levels})

    def _reject_repeats(self, frame: pd.DataFrame, columns: list[str], run: str | None) -> None:
        number, _ = self.groups(ROLES)
        again = pd.Series(number).duplicated().to_numpy()
        hint = "a judge judges an answer once in each run"
        if not run:
            hint = "name the column that numbers runs with run= (on the command line --run)"
        if len(self.levels["model"]) == 1 and self.levels["model"][0] == "(one model)":
            named = "name the column of models with model= (on the command line --model)"
            hint = named if run else f"{named}, {hint}"
        by = {name: name for name in columns}
        reject_repeats(again, frame.index[again.argmax()], frame, by, ("verdict", "verdicts"), hint)


@with_options_of(AnchoredVerdicts.from_pandas)
def read_anchored_verdicts(
    path: FileName | Sequence[FileName], *, baseline: str | None = None, **columns: Any
) -> AnchoredVerdicts:
    r"""Read verdicts from files in a format of `read_battles`, with options of `AnchoredVerdicts.from_pandas`.

    Files of AlpacaEval, Arena-Hard and MT-bench are recognised: the games of a prompt are one outcome, the mean of
    their verdicts, where a strong one (A>>B) counts as three.

    Args:
        path: a file, a folder, a glob, or a list of those, as in `read_battles`.
        baseline: the reference, where a published format does not name it.
        **columns: as in `AnchoredVerdicts.from_pandas`.

    Raises:
        DataError: the files cannot be read as a table of verdicts.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import jaxeval
        >>> from pathlib import Path
        >>> _ = Path("verdicts.csv").write_text("model,item,verdict\nx,q1,win\nx,q2,tie\n")
        >>> print(jaxeval.read_anchored_verdicts("verdicts.csv"))
        2 rows: 2 verdicts; 1 model, 1 judge, 2 items
    """
    text = [columns.get(role) or role for role in ROLES if role != "run"]
    frame, notes = anchored_table(path, text, baseline)
    with naming(label_of(path)):
        verdicts = AnchoredVerdicts.from_pandas(frame, **columns)
    return replace(verdicts, read_as=(*notes, *verdicts.read_as))


def _labelled(column: pd.Series, labels: Labels) -> tuple[Float, tuple[str, ...]]:
    """Return outcomes (N,) by what the user says labels mean, NaN where missing, and how they were read, in words."""
    if not isinstance(labels, Mapping):
        return read_labels(column, labels, may_miss=True).target, ()
    odd = next((word for word in labels.values() if word not in (*STANDARD, *_SIDES)), None)
    if odd is not None or not labels:
        shown = repr(plain(odd)) if labels else "an empty mapping"
        raise ValueError(f"labels must map each label to one of 'win', 'tie', 'loss', got {shown}")
    meanings = ", ".join(f"{str(label)!r} as {word}" for label, word in labels.items())
    words = {label: _SIDES.get(word, word) for label, word in labels.items()}
    return read_labels(column, words, may_miss=True).target, (f"column {column.name!r}: read {meanings}",)


def _of_codes(values: Float) -> str:
    """Say how two or three numbers may be named, as preferences of 1 and 2 are."""
    codes = np.unique(values[~np.isnan(values)])
    if not 2 <= len(codes) <= 3:
        return ""
    words = ("loss", "win") if len(codes) == 2 else ("loss", "tie", "win")
    named_so = {f"{code:g}": word for code, word in zip(codes, words, strict=True)}
    typed = ",".join(f"{code}={word}" for code, word in named_so.items())
    return (
        f"; say what others mean with labels={named_so} (on the command line --labels {typed}), or the other way round"
    )


def _outcomes(column: pd.Series, name: str) -> Float:
    """Return (N,) outcomes in [0, 1], NaN where missing."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    kinds = {type(value) for value in column[column.notna()]} if column.dtype == object else set()
    if kinds and all(issubclass(kind, Real | Decimal) and not issubclass(kind, bool | np.bool_) for kind in kinds):
        column = column.astype(float)
    if pd.api.types.is_numeric_dtype(column):
        values = numbers_or_nan(column, name)
        outside = (values < 0) | (values > 1)
        if outside.any():
            raise DataError(
                f"column {name!r}: {counted(outside.sum(), 'value lies', 'values lie')} outside [0, 1], from "
                f"{values[outside].min():g} to {values[outside].max():g}{first_place(outside)}; numbers are the "
                f"outcome for the model: 1 for a win, 0.5 for a tie, 0 for a loss{_of_codes(values)}"
            )
        return values
    labels = LabelColumn.of(column, column.name)
    unknown = [label for label, key in zip(labels.distinct, labels.keys, strict=True) if key not in _OF_LABEL]
    hint = ""
    if any(isinstance(label, str) for label in unknown):
        hint = "; if judges printed them about two sides, say which side is the reference: reference='A' (--reference)"
    if unknown and not pd.to_numeric(pd.Series(unknown), errors="coerce").isna().any():
        hint = "; these are numbers as text: write them without quotes (in pandas make them numbers by .astype(float))"
        if len(unknown) < len(labels.distinct):
            hint = "; numbers may not be mixed with labels"
    first = str(next(iter(unknown), ""))
    return labels.results(
        [_OF_LABEL.get(key) for key in labels.keys], "", "known are 'win', 'tie' and 'loss' of the model, W, T and L, "
        f"or numbers in [0, 1]{hint}. Say what other labels mean: labels={{{first!r}: 'win', ...}}, on the command "
        f"line --labels '{first}=win,...'",
    ).target  # fmt: skip


def _is_preference(frame: pd.DataFrame) -> bool:
    """Return whether a column "preference" has numbers between 1 and 2, as AlpacaEval writes them."""
    values = frame["preference"].dropna() if "preference" in frame else pd.Series(dtype=object)
    return len(values) > 0 and pd.api.types.is_numeric_dtype(values) and bool(values.between(1, 2).all())


def _stated(frame: pd.DataFrame, confidence: Stated) -> Float | None:
    """Return (N,) confidence in [0, 1] from the column "confidence"; None without that column."""
    if "confidence" not in frame.columns:
        return None
    values = numbers_or_nan(frame["confidence"], "confidence") / (100 if confidence == "percent" else 1)
    outside = ~np.isnan(values) & ~((values >= 0) & (values <= 1))
    in_percent = "say confidence='percent' if they are in per cent (on the command line --confidence percent)"
    if outside.any():
        raise DataError(
            f"column 'confidence': {counted(outside.sum(), 'value lies', 'values lie')} outside "
            f"{'[0, 100]' if confidence == 'percent' else '[0, 1]'}{first_place(outside)}: "
            + ("correct them" if confidence == "percent" else f"{in_percent}, or correct them")
        )
    return values


def anchored_table(
    path: FileName | Sequence[FileName], text: Sequence[str], baseline: str | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of files as one table for `AnchoredVerdicts.from_pandas`, and how they were read, in words.

    A published format becomes a row for each answer, judge and prompt, with the columns model, anchor, item, verdict
    (the outcome for the model) and, where there are such, judge and task. Columns of ``text`` are read as such, and
    ``baseline`` is the reference where a format does not name it.
    """
    files = files_of(path)
    frames, notes = list[pd.DataFrame](), dict[str, None]()
    for file in files:
        with naming(file):
            names = head_names(file)
            frame, renamed = under_names(read_whole_table(file, [*text, *renames(text, names)]), text)
            notes |= dict.fromkeys([*told_of(file), *renamed])
            form = format_of_names(names, "pair")
            if form is not None and "verdict" not in frame:
                frame, sentences = _against_reference(form, Source(file, table=frame, baseline=baseline))
                notes |= dict.fromkeys(sentences)
            elif baseline is not None:
                raise DataError("baseline= (--baseline) is for published formats, and this is none of them")
        frames.append(frame)
    table, again = one_table(frames, [file.name for file in files])
    return table, list(notes | dict.fromkeys(again))


def _against_reference(form: Format, source: Source) -> tuple[pd.DataFrame, list[str]]:
    """Return battles of a published format as outcomes of models against the reference."""
    battles = form.read(source)
    models, first, second = encode_models(battles, "model_a", "model_b")
    if "target" in battles:
        target, weight = battles["target"].to_numpy(float), np.ones(len(battles))
    else:
        read = read_labels(battles["winner"], None, Sides(models, first, second), may_miss=True)
        target, weight = read.target, np.ones(len(battles))
        weight = weight if read.weight is None else np.nan_to_num(read.weight, nan=1.0)  # strong ones count as three
    reference = form.reference(battles) if form.reference else _only(models, first, second, source.baseline)
    is_a, is_b = (np.asarray(battles[side].astype(object) == reference) for side in ("model_a", "model_b"))
    used = is_a != is_b
    item = usual_column(battles, None, "item")
    item_of = pd.Series(np.arange(len(battles))) if item is None else battles[item].astype(str)
    if "turn" in battles:
        item_of = item_of + " / turn " + battles["turn"].astype(str)
    roles: dict[str, Any] = {
        "model": np.where(is_a, battles["model_b"].astype(object), battles["model_a"].astype(object)),
        "anchor": np.asarray(reference, object) if np.ndim(reference) else np.full(len(battles), reference, object),
        "item": item_of.to_numpy(object),
    }
    judge, task = usual_column(battles, None, "judge"), usual_column(battles, None, ("category", "dataset"))
    roles |= {role: battles[name].to_numpy() for role, name in (("judge", judge), ("task", task)) if name is not None}
    frame = pd.DataFrame(roles)[used]
    outcome = np.where(is_a, 1 - target, target)[used]
    keys = list(frame.columns)
    codes = np.column_stack([factorize_sorted(frame[name], name)[0] for name in keys])
    _, start, cell = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(cell.ravel(), weight[used])
    mean = np.bincount(cell.ravel(), weight[used] * outcome) / total  # NaN where a game has no verdict
    order = np.argsort(start)
    notes = [f"read as {form.name}, against the reference: the games of a prompt are one outcome, their weighted mean"]
    if not used.all():
        notes.append(f"{counted((~used).sum(), 'battle')} without the reference left out")
    return frame.iloc[start[order]].assign(verdict=mean[order]).reset_index(drop=True), notes


def _only(models: pd.Index, first: Any, second: Any, baseline: str | None) -> str:
    """Return the reference: the model that is in every battle."""
    if baseline is not None:
        if baseline not in models:
            raise DataError(
                f"no battle has the reference {baseline!r} (baseline=, --baseline); models are {named(models)}"
            )
        return baseline
    everywhere = [name for k, name in enumerate(models) if ((first == k) | (second == k)).all()]
    if len(everywhere) != 1:
        raise DataError(
            f"{'no' if not everywhere else 'more than one'} model is in every battle, so that the file does not say "
            "which is the reference: name it with baseline= (--baseline)"
        )
    return str(everywhere[0])
