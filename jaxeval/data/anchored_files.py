"""Tables of verdicts against a reference, from one file or several, in any published format of battles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.arrays import Float
from jaxeval.data.columns import encode_models, factorize_sorted, frame_of, one_table, renames, told_renames
from jaxeval.data.file_lists import files_of
from jaxeval.data.formats import Format, Source
from jaxeval.data.labels import Sides, read_labels
from jaxeval.data.published_formats import format_of_names
from jaxeval.data.remote_names import FileName, base_name
from jaxeval.data.roles import usual_column
from jaxeval.data.same_rows import reject_same_tables
from jaxeval.data.table_files import head_names, naming, read_whole_table, told_of
from jaxeval.errors import DataError
from jaxeval.wording import counted, named

_TASKS = ("category", "dataset")


def anchored_table(
    path: FileName | Sequence[FileName], text: Sequence[str], baseline: str | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """The rows of files as one table for `AnchoredVerdicts.from_pandas`, and how they were read, in words.

    A published format becomes a row for each answer, judge and prompt, with the columns model, anchor, item, verdict
    (the outcome for the model) and, where there are such, judge and task.

    Args:
        path: as in `read_battles`.
        text: columns that are read as text.
        baseline: the reference, where a format does not name it.

    Raises:
        DataError: a file cannot be read, or files have different columns.
        FileNotFoundError: there is no such file.
    """
    files = files_of(path)
    frames, notes = list[pd.DataFrame](), dict[str, None]()
    for file in files:
        with naming(file):
            names = head_names(file)
            renamed = renames(text, names)
            frame = frame_of(read_whole_table(file, [*text, *renamed])).rename(columns=renamed)
            notes |= dict.fromkeys([*told_of(file), *told_renames(renamed)])
            form = format_of_names(names, "pair")
            if form is not None and "verdict" not in frame:
                frame, sentences = _against_reference(form, Source(file, table=frame, baseline=baseline))
                notes |= dict.fromkeys(sentences)
            elif baseline is not None:
                raise DataError("baseline= (--baseline) is for published formats, and this is none of them")
        frames.append(frame)
    notes |= dict.fromkeys(reject_same_tables(frames, [file.name for file in files]))
    return one_table(frames, [file.name for file in files]), list(notes)


def _against_reference(form: Format, source: Source) -> tuple[pd.DataFrame, list[str]]:
    """Battles of a published format as outcomes of models against the reference."""
    battles = form.read(source)
    models, first, second = encode_models(battles, "model_a", "model_b")
    target, weight = _targets(battles, Sides(models, first, second))
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
    judge, task = usual_column(battles, None, "judge"), usual_column(battles, None, _TASKS)
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


def _targets(battles: pd.DataFrame, sides: Sides) -> tuple[Float, Float]:
    """(N,) targets that side A wins, NaN where missing, and weights of the verdicts: strong ones count as three."""
    if "target" in battles:
        return battles["target"].to_numpy(float), np.ones(len(battles))
    read = read_labels(battles["winner"], None, sides, may_miss=True)
    weight = np.ones(len(battles)) if read.weight is None else np.nan_to_num(read.weight, nan=1.0)
    return read.target, weight


def _only(models: pd.Index, first: Any, second: Any, baseline: str | None) -> str:
    """The reference: the model that is in every battle."""
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


def label_of(path: FileName | Sequence[FileName]) -> str:
    """What errors call one file or several."""
    if isinstance(path, str | Path):
        return base_name(path)
    return base_name(path[0]) if len(path) == 1 else f"{base_name(path[0])} and {len(path) - 1} more"
