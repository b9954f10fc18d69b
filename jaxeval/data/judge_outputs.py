"""Raw outputs of judges: what they printed in each call, read as verdicts on pairs, with both orders in one battle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jaxeval.checks import check_choice, checked_finite
from jaxeval.data.columns import factorize_sorted, rows_of, under_names
from jaxeval.data.file_lists import whole_local_file
from jaxeval.data.human_labels import People, human_labels_of, joined_labels, targets_of, words_of
from jaxeval.data.judge_calls import Calls, ReplyRules, mean_score, usual_replies
from jaxeval.data.judged_battles import HardLabel, JudgedBattles
from jaxeval.data.labels import Labels, check_labels
from jaxeval.data.presentation_orders import (
    CalledPairs,
    OneOrder,
    Repeats,
    called_pairs,
    in_both_orders,
    of_both_orders,
    rows_by_order,
    without_repeats,
)
from jaxeval.data.published_formats import format_of_names
from jaxeval.data.remote_names import base_name
from jaxeval.data.report import OutputsReport, Reported
from jaxeval.data.roles import SCORES, usual_column, usual_columns
from jaxeval.data.table_files import head_names, naming, read_as, read_whole_table
from jaxeval.errors import DataError
from jaxeval.execution.signatures import with_options_of
from jaxeval.lazy_names import pd
from jaxeval.options.columns import Stated, Unparsed
from jaxeval.show.shown import ROWS_OF_DATA, Answer
from jaxeval.wording import counted, named

_BATTLE = ["judge", "item", "model_a", "model_b", "run"]
_OWN = (*_BATTLE, "verdict", "verdict_a_first", "verdict_b_first", "confidence", "score_a", "score_b")
_SIDES = np.array(["model_a", "model_b"], object)


@dataclass(frozen=True, eq=False, repr=False)
class JudgeOutputs(Reported):
    """Verdicts of judges on pairs of models, read from what they printed.

    ``calls`` has a row per call: ``judge, item, model_a, model_b, run``; ``shown_first`` ("model_a" or "model_b");
    ``verdict`` ("model_a", "model_b" or "tie", whatever the order shown); ``stated``, true if the judge named the
    verdict, false if it is the sign of its scores; ``confidence`` in [0, 1], NaN where none was stated; ``score_a`` and
    ``score_b``, the mean over criteria, NaN for plain verdicts; and a column for each criterion and side, such as
    ``score_a:clarity``.

    ``battles`` has a row per judge, item, pair and run: ``verdict``, the side that both orders name, or that one order
    names and the other calls a tie, or a tie if they name different sides; ``verdict_a_first`` and ``verdict_b_first``,
    missing where that order was not judged; the means over orders of ``confidence``, ``score_a`` and ``score_b``;
    ``human``, the label that people agree on, where there are labels; and the further columns of the table, from the
    first call on the item and pair.

    ``human`` has a row per human label: ``item, model_a, model_b, rater, verdict``. It is None without labels. All
    three tables write the pair of an item in one order, that of the first call.

    Examples:
        >>> import jaxeval
        >>> import pandas as pd
        >>> calls = pd.DataFrame({"item": [1, 1, 2, 2], "model_a": [*"xyxy"], "model_b": [*"yxyx"]})
        >>> calls = calls.assign(output=['{"score": "A", "confidence": 0.9}', "B", "Verdict: [[B]]", "[[B]]"])
        >>> outputs = jaxeval.JudgeOutputs.from_pandas(calls)
        >>> outputs.battles[["item", "model_a", "model_b", "verdict", "verdict_b_first"]].to_numpy().tolist()
        [[1, 'x', 'y', 'model_a', 'model_a'], [2, 'x', 'y', 'tie', 'model_a']]
        >>> print(outputs.report)
        4 rows: 4 calls of 1 judge, 2 battles between 2 models
        2 battles judged in both orders; their verdicts name different sides in 1 (50.0%), which are ties
        column 'model_a': read as the side shown first
    """

    calls: pd.DataFrame
    battles: pd.DataFrame
    human: pd.DataFrame | None
    report: OutputsReport

    def _shown(self) -> Answer:
        title = f"JudgeOutputs: {str(self.report).splitlines()[0]}"
        return Answer(title, self.battles.head(ROWS_OF_DATA), n_rows=len(self.battles))

    @property
    def judges(self) -> list[Any]:
        """Names of the judges, in the order in which they were read."""
        return list(self.battles["judge"].unique())

    @classmethod
    def from_pandas(
        cls, df: Any, *, output: str | None = None, model_a: str = "model_a", model_b: str = "model_b",
        item: str | None = None, judge: str | None = None, run: str | None = None, shown_first: str | None = None,
        labels: Mapping[Any, str] | None = None, criteria: Sequence[str] | None = None,
        scale: tuple[float, float] | None = (1.0, 10.0), confidence: Stated = "share", unparsed: Unparsed = "error",
        one_order: OneOrder = "error", repeats: Repeats = "error", human: str | Literal[False] | None = None,
        human_labels: Any = None, label_coding: Labels | None = None, people: People = "error",
    ) -> JudgeOutputs:  # fmt: skip
        """Read outputs of judges from a DataFrame, or any table with the Arrow interface, with one row per call.

        A reply is JSON or text, with or without fences and prose around it. It names the better side: A, B, or C for a
        tie, under the key "score", "preference", "verdict" or "winner"; ``[[A]]``, ``[[A>>B]]``, "tie". Or it scores
        both sides, by criterion or in one number: ``{"scores_A": {"clarity": 8}, "scores_B": {"clarity": 6}}``. "A" is
        the side that was shown first.

        Args:
            df: a table with one row per call.
            output: column of the replies: text, or objects of JSON; by default "output", "reply" or another usual name.
            model_a: column of the first model. Without ``shown_first`` it is the one that was shown first.
            model_b: column of the second model.
            item: column of the prompts; by default "item", "question_id" or another usual name. The two orders of a
                battle are found by item, pair, judge and run. Without items, each row is an item of its own.
            judge: column of judges; by default "judge" if there. Without it, there is one judge.
            run: column of repeated runs; by default "run" if there.
            shown_first: column of the order: the name of the model that was shown first; or "model_a" and "model_b",
                "AB" and "BA", "original" and "swapped", 1 and 2; or true and false, in a column with "swap" in its
                name. By default "shown_first", "order" or "swapped" if there.
            labels: what other verdicts mean: "model_a" is the side shown first, "model_b" the other, as in
                ``{"1": "model_a", "2": "model_b", "0": "tie"}``.
            criteria: the criteria that count. By default those that most replies of the judge have; a reply with other
                criteria then cannot be read.
            scale: the least and the largest score of a criterion; None for any.
            confidence: "share", stated in [0, 1], or "percent", in [0, 100].
            unparsed: what to do about replies that cannot be read, "error" or "drop": malformed replies, replies with
                missing or unknown criteria or scores beyond the scale, and confidence out of range.
            one_order: what to do about battles that are judged in one order only: "error", "keep" or "drop".
            repeats: what to do if an order is judged twice: "error"; "first", which keeps the first call; or "runs",
                which counts the calls as runs.
            human: column of human labels beside the calls, about the columns ``model_a`` and ``model_b``; by default
                "human" or "human_pref" if there. False reads none.
            human_labels: instead, a table of human labels, or the name of a file with one: an item, ``model_a`` and
                ``model_b`` in either order, a label ("human", "winner" or "verdict"), and a "rater" if there is one.
            label_coding: what human labels mean, as in `JudgedBattles.from_pandas`.
            people: what to do if people contradict each other on an item: "error"; "majority", which is a tie if they
                are split; or "drop", which leaves the item without a label.

        Raises:
            DataError: a column is missing, replies cannot be read, an order is missing or judged twice, or people
                contradict each other. The message says how often, where first, and which option decides.
        """
        for name, value, known in (
            ("confidence", confidence, Stated), ("unparsed", unparsed, Unparsed),
            ("one_order", one_order, OneOrder), ("repeats", repeats, Repeats), ("people", people, People),
        ):  # fmt: skip
            check_choice(name, value, known)
        if scale is not None:
            low, high = (checked_finite("scale", end) for end in scale)
            if low >= high:
                raise ValueError(f"scale must be the least and the largest score, got {scale!r}")
            scale = low, high
        rules = ReplyRules(labels, None if criteria is None else tuple(criteria), scale, confidence)
        if labels is not None:
            check_labels(labels)
        frame = rows_of(df, "the table has no rows: nothing was judged")
        frame, renamed = under_names(frame, [model_a, model_b])
        roles = usual_columns(frame, output=output, item=item, judge=judge, run=run, shown_first=shown_first)
        roles |= {"model_a": model_a, "model_b": model_b}
        used, calls = called_pairs(frame, roles, rules, unparsed)
        messages = [*renamed, *used.told]
        used, n_repeated = without_repeats(used, roles, repeats)
        used, n_one = in_both_orders(used, roles, one_order)
        table, row = _calls_table(used.rows, calls), used.rows["row"].to_numpy()
        battles = _battles_table(table, used)
        labelled, n_unused, n_disputed = None, 0, 0
        if human_labels is not None or human is not False:
            people_labels, more = _labels_given(frame, roles, human, human_labels, label_coding)
            messages += more
            if people_labels is not None:
                beside = human_labels is None
                labelled, battles["human"], n_unused, n_disputed = joined_labels(
                    people_labels, battles, people, beside=beside
                )
        read = [*roles.values(), usual_column(frame, human or None, "human"), *battles.columns]
        first = used.rows["origin"].iloc[np.unique(used.battle, return_index=True)[1]]
        further = frame[[name for name in frame.columns if name not in read]].iloc[first].reset_index(drop=True)
        battles = pd.concat([battles, further], axis=1)
        report = OutputsReport(
            **_counts(table, battles), n_rows=len(frame), n_unparsed=int(calls.unread.sum()), one_order=one_order,
            n_repaired=int(calls.repaired[row].sum()), n_strong=int(calls.strong[row].sum()),
            n_reasoned=int(calls.reasoned[row].sum()),
            n_self_battles=used.n_self, n_repeated=n_repeated, n_one_order=n_one,
            n_human=0 if labelled is None else len(labelled), n_human_unused=n_unused, n_disputed=n_disputed,
            read_as=tuple(messages),
        )  # fmt: skip
        return cls(table, battles, labelled, report)

    def judged(self, judge: Any = None, *, hard_label: HardLabel | None = None) -> JudgedBattles:
        """Return the battles of one judge, as `soft_elo` and others take them, with items, runs and further columns.

        Args:
            judge: the judge's name; it may be left out if there is only one judge.
            hard_label: as in `JudgedBattles.from_pandas`.

        Raises:
            DataError: the hard label cannot be made.
            ValueError: there is no such judge, or there are several and none is named.
        """
        if judge is None and len(self.judges) == 1:
            (judge,) = self.judges
        if judge not in self.judges:
            raise ValueError(f"name one of the judges {named(self.judges)}, got {judge!r}")
        calls = self.calls[self.calls["judge"] == judge].reset_index(drop=True)
        battles = self.battles[self.battles["judge"] == judge].reset_index(drop=True)
        b_first = (calls["shown_first"] == "model_b").to_numpy()
        orders = rows_by_order(calls.groupby(_BATTLE, sort=False).ngroup().to_numpy(), b_first)
        further = battles.columns.drop([name for name in (*_OWN, "human") if name in battles])
        table = battles[["item", "run", "model_a", "model_b", *further]].copy()
        columns: dict[str, Any] = {}
        difference = (calls["score_a"] - calls["score_b"]).to_numpy()
        for side, swapped in zip(np.flatnonzero((orders >= 0).any(axis=0)), ("", "_swapped"), strict=False):
            row = orders[:, side]
            if not np.isnan(difference).all():
                table[f"_a{swapped}"], table[f"_b{swapped}"] = np.where(row < 0, np.nan, difference[row]), 0.0
                columns |= {f"scores_a{swapped}": f"_a{swapped}", f"scores_b{swapped}": f"_b{swapped}"}
            if calls["stated"].any():
                table[f"_verdict{swapped}"] = np.where(row < 0, np.nan, targets_of(calls["verdict"])[row])
                columns[f"verdict{swapped}"] = f"_verdict{swapped}"
        if "human" in battles:
            table["human"] = targets_of(battles["human"])
        return JudgedBattles.from_pandas(
            table, **{"verdict": False, "human": "human" if "human" in battles else False, **columns},
            judge_name=str(judge), label_coding="a_wins_1", one_order="keep", hard_label=hard_label,
        )  # fmt: skip


@with_options_of(JudgeOutputs.from_pandas)
def read_judge_outputs(path: str | Path, **columns: Any) -> JudgeOutputs:
    r"""Read judges' outputs from a file in a format of `read_battles`, with options of `JudgeOutputs.from_pandas`.

    Raises:
        DataError: the file cannot be read as a table of replies.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import json
        >>> import jaxeval
        >>> from pathlib import Path
        >>> call = {"item": 1, "model_a": "x", "model_b": "y", "output": '```json\n{"score": "A"}\n```'}
        >>> swapped = call | {"model_a": "y", "model_b": "x", "output": '{"score": "B", "confidence": 0.7}'}
        >>> _ = Path("calls.jsonl").write_text("\n".join(map(json.dumps, [call, swapped])))
        >>> outputs = jaxeval.read_judge_outputs("calls.jsonl")
        >>> outputs.battles[["model_a", "model_b", "verdict", "confidence"]].to_numpy().tolist()
        [['x', 'y', 'model_a', 0.7]]
    """
    text = [columns.get(role, role) for role in ("model_a", "model_b")]
    return read_as(JudgeOutputs.from_pandas, path, text, columns)


def _calls_table(rows: pd.DataFrame, calls: Calls) -> pd.DataFrame:
    row, b_first = rows["row"].to_numpy(), rows["b_first"].to_numpy()
    scores = np.where(b_first[:, None, None], calls.scores[row][:, ::-1], calls.scores[row])
    target = calls.target[row]
    by_criterion = {
        f"score_{side}:{name}": scores[:, k, c] for c, name in enumerate(calls.criteria) for k, side in enumerate("ab")
    }
    return rows[_BATTLE].assign(
        item=rows["item"].infer_objects(), run=rows["run"].infer_objects(), shown_first=_SIDES[b_first.astype(int)],
        verdict=words_of(np.where(b_first, 1 - target, target)), stated=calls.stated[row],
        confidence=calls.confidence[row], score_a=mean_score(scores[:, 0]), score_b=mean_score(scores[:, 1]),
        **by_criterion,
    )  # fmt: skip


def _battles_table(calls: pd.DataFrame, used: CalledPairs) -> pd.DataFrame:
    """Return `JudgeOutputs.battles`, without human labels and further columns."""
    orders = rows_by_order(used.battle, used.rows["b_first"].to_numpy())
    absent = orders < 0
    target = np.where(absent, np.nan, targets_of(calls["verdict"])[orders])
    battles = calls[_BATTLE].iloc[orders.max(axis=1)].reset_index(drop=True)
    battles["verdict"] = words_of(of_both_orders(target))
    for k, side in enumerate("ab"):
        battles[f"verdict_{side}_first"] = words_of(target[:, k])
    for name in ("confidence", "score_a", "score_b"):
        battles[name] = mean_score(np.where(absent, np.nan, calls[name].to_numpy()[orders]))
    return battles


def _counts(calls: pd.DataFrame, battles: pd.DataFrame) -> dict[str, int]:
    """Return the numbers of the report that follow from the tables."""
    first, second = (targets_of(battles[f"verdict_{side}_first"]) for side in "ab")
    gap, verdict = (calls["score_a"] - calls["score_b"]).to_numpy(), targets_of(calls["verdict"])
    return {
        "n_calls": len(calls),
        "n_judges": int(battles["judge"].nunique()),
        "n_models": len(set(calls["model_a"]) | set(calls["model_b"])),
        "n_battles": len(battles),
        "n_both_orders": int((~np.isnan(first + second)).sum()),
        "n_contradictions": int((np.abs(first - second) == 1).sum()),
        "n_against_scores": int(((verdict - 0.5) * gap < 0).sum()),
        "n_battles_with_human": int(battles["human"].notna().sum()) if "human" in battles else 0,
    }


def _labels_given(
    frame: pd.DataFrame, roles: dict[str, str | None], human: str | Literal[False] | None, table: Any,
    coding: Labels | None,
) -> tuple[pd.DataFrame | None, list[str]]:  # fmt: skip
    """Return human labels, from a table of their own or a column beside the calls; and how they were read, in words."""
    columns = {role: roles[role] for role in ("item", "model_a", "model_b")}
    if table is not None:
        if isinstance(table, str | Path):
            with naming(table):
                text = [str(columns["model_a"]), str(columns["model_b"])]
                return human_labels_of(read_whole_table(table, text), coding, columns)
        return human_labels_of(table, coding, columns)
    column = usual_column(frame, human or None, "human")
    if column is None:
        return None, []
    beside = frame[[roles["model_a"], roles["model_b"], column]].rename(columns={column: "human"})
    beside["item"] = frame[roles["item"]] if roles["item"] else np.arange(len(frame))
    return human_labels_of(beside, coding, {**columns, "item": "item"})


#: The options of tables, and those of replies of judges.
_OF_TABLES = tuple(signature(JudgedBattles.from_pandas).parameters)[1:]
_OF_REPLIES = tuple(signature(JudgeOutputs.from_pandas).parameters)[1:]
#: The options that say where a table holds a judge's scores or verdicts.
_SAYINGS = ("scores_a", "scores_b", "score_difference", "verdict")


def read_judges(path: str | Path, *, only_judge: str | None = None, **columns: Any) -> dict[str, JudgedBattles]:
    """Read judged battles from a file, by the name of the judge; see `read_judged_battles`.

    Args:
        path: a file.
        only_judge: the one judge whose battles are wanted.
        columns: as in `read_judged_battles`; None counts as not given.

    Raises:
        DataError: the file cannot be read as judged battles, or does not have the judge.
        ValueError: an option is for tables and the file holds replies, or the other way round.

    Examples:
        >>> import jaxeval
        >>> calls = jaxeval.simulate_judge_outputs(60, 4, judge_noise=[0.0, 2.0])
        >>> calls.to_json("raw.jsonl", orient="records", lines=True)
        >>> judges = jaxeval.read_judges("raw.jsonl")
        >>> {name: battles.n_battles for name, battles in judges.items()}
        {'judge-1': 60, 'judge-2': 60}
    """
    path = whole_local_file(path)
    arguments = {name: value for name, value in columns.items() if value is not None}
    if arguments.get("one_order") == "error":
        del arguments["one_order"]
    names = head_names(path)
    is_table = any(arguments.get(option) for option in _SAYINGS) or {*SCORES} <= {*names}
    is_table = is_table or usual_column(names, None, "verdict") is not None
    of_replies = "output" in arguments or not (is_table or usual_replies(names) is None)
    known = {*(_OF_REPLIES if of_replies else _OF_TABLES), "judge", "judge_name", "hard_label"}
    idle = next((name for name, value in arguments.items() if name not in known and value is not False), None)
    if idle is not None:
        what = "replies of judges" if of_replies else "a table of scores or verdicts"
        raise ValueError(
            f"{path.name} is read as {what}, for which {idle}= (--{idle.replace('_', '-')}) has no meaning: leave it "
            "out"
        )
    name = arguments.pop("judge_name", None)
    arguments = {key: value for key, value in arguments.items() if key in known}
    judges = (_of_replies if of_replies else _of_table)(path, arguments)
    if name is not None:
        if len(judges) > 1:
            raise ValueError(
                f"judge_name={name!r} (--judge-name) is for one judge, but {path.name} has {len(judges):,} judges"
            )
        (battles,) = judges.values()
        judges = {name: replace(battles, judge_name=name)}
    if only_judge is not None:
        if only_judge not in judges:
            raise DataError(f"{path.name} has no judge {only_judge!r}; its judges are {named(list(judges))}")
        return {only_judge: judges[only_judge]}
    return judges


@with_options_of(JudgedBattles.from_pandas)
def read_judged_battles(path: str | Path, **columns: Any) -> JudgedBattles:
    r"""Read judged battles from a file in a format of `read_battles`: a table of scores or verdicts, or of replies.

    The options are those of `JudgedBattles.from_pandas`. If the file has no column of scores or verdicts, but one of
    replies ("output" or another usual name), they are those of `JudgeOutputs.from_pandas`. ``only_judge`` names one of
    several judges. The sample of the Soft-Elo paper is read with ``label_coding="a_wins_0"``. Errors are as in
    `read_battles`.

    Examples:
        >>> import jaxeval
        >>> from pathlib import Path
        >>> _ = Path("judged.csv").write_text("model_a,model_b,scores_a,scores_b\nx,y,8,6.5\ny,z,5,7\n")
        >>> jaxeval.read_judged_battles("judged.csv").n_battles
        2
    """
    judges = read_judges(path, **columns)
    if len(judges) > 1:
        raise DataError(
            f"{base_name(path)} holds {len(judges):,} judges: {named(list(judges))}. Name the one to read with "
            "only_judge= (on the command line --only-judge)"
        )
    (battles,) = judges.values()
    return battles


def _of_replies(path: Path, arguments: dict[str, Any]) -> dict[str, JudgedBattles]:
    hard_label = arguments.pop("hard_label", None)
    outputs = read_judge_outputs(path, **arguments)
    judges = {}
    for name in outputs.judges:
        battles = outputs.judged(name, hard_label=hard_label)
        judges[str(name)] = battles.reporting(*str(outputs.report).splitlines(), first=True)
    return judges


def _of_table(path: Path, arguments: dict[str, Any]) -> dict[str, JudgedBattles]:
    """Return battles of a table by judge; all belong to "judge" if no column names judges."""
    column = arguments.pop("judge", None)
    with naming(path):
        names = head_names(path)
        form = format_of_names(names, "pair", "answer")
        if form is not None and not set(SCORES) <= {*names} and not any(arguments.get(option) for option in _SAYINGS):
            raise DataError(f"it holds {form.name}, and no scores of both answers beside labels of people")
        text = [arguments.get("model_a", "model_a"), arguments.get("model_b", "model_b")]
        frame = read_whole_table(path, text)
        column = usual_column(frame, column, "judge")
        if column is None:
            return {"judge": JudgedBattles.from_pandas(frame, **arguments)}
        number, names = factorize_sorted(frame[column], column)
        judges = {}
        for k, name in enumerate(map(str, names)):
            try:
                judges[name] = JudgedBattles.from_pandas(frame[number == k], **arguments, judge_name=name)
            except DataError as error:
                rows = counted((number == k).sum(), "row")
                raise DataError(f"judge {name!r} ({rows}, counted from 0 within this judge): {error}") from error
        return judges
