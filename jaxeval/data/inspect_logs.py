"""Logs of Inspect: JSON documents and ``.eval`` archives, whose members today are Zstandard streams in a zip file."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from jaxeval.errors import DataError
from jaxeval.wording import counted, did_you_mean, named

#: How the zip format numbers Zstandard (APPNOTE 6.3.8); Python's own module reads it from 3.14 on.
_ZSTANDARD = 93
_MOST_BYTES = 2**30  # of all that is read of a log
#: What Inspect writes for scores that are not numbers.
_VALUES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, True: 1.0, False: 0.0, "yes": 1.0, "no": 0.0}


def read_archive(path: Path) -> dict[str, Any]:
    """Read an ``.eval`` archive as the document that Inspect writes as JSON, its samples without their messages.

    The summaries of samples hold all scores, and are a small part of the samples. A log that was stopped has no header
    and no file of all summaries: its journal has both.

    Raises:
        DataError: the archive is no log, is damaged, or is too large.
    """
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as file:
            entries = {entry.filename: entry for entry in archive.infolist()}
            start = next((name for name in ("header.json", "_journal/start.json") if name in entries), None)
            if start is None:
                raise DataError("the zip archive has no header.json, and so is no log of Inspect")
            journal = sorted(name for name in entries if name.startswith("_journal/summaries/"))
            single = [name for name in entries if name.startswith("samples/") and name.endswith(".json")]
            chosen = ["summaries.json"] if "summaries.json" in entries else journal or single
            if sum(entries[name].file_size for name in (start, *chosen)) > _MOST_BYTES:
                raise DataError("the log is over 1 GiB: write its scores as a table (inspect_ai.analysis.samples_df)")
            header = json.loads(_content(archive, file, entries[start]))
            parts = [json.loads(_content(archive, file, entries[name])) for name in chosen]
    except DataError:
        raise
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError) as error:
        raise DataError(f"the log cannot be read: {error}; it may be damaged") from error
    if not isinstance(header, dict):
        raise DataError(f"{start} of the log is no object: the log may be damaged")
    samples = parts if chosen is single else [sample for part in parts for sample in part]
    status = header.get("status", "success" if start == "header.json" else "started")
    return {**header, "status": status, "samples": samples}


def _content(archive: zipfile.ZipFile, file: Any, entry: zipfile.ZipInfo) -> bytes:
    """The bytes of a member, of the length and with the checksum that the archive states."""
    if entry.compress_type != _ZSTANDARD:
        return archive.read(entry)
    file.seek(entry.header_offset)
    header = file.read(30)
    if header[:4] != b"PK\x03\x04":
        raise ValueError(f"{entry.filename} is not where the archive says")
    name_length, extra_length = struct.unpack("<HH", header[26:30])
    file.seek(name_length + extra_length, 1)
    with pa.CompressedInputStream(pa.BufferReader(file.read(entry.compress_size)), "zstd") as stream:
        content = bytes(stream.read(entry.file_size + 1))  # no more than is stated, whatever the stream would give
    if len(content) != entry.file_size or zlib.crc32(content) != entry.CRC:
        raise ValueError(f"{entry.filename} has another length or checksum than the archive says")
    return content


def inspect_table(log: Mapping[str, Any], scorer: str | None) -> tuple[pd.DataFrame, list[str]]:
    """The long table of a log ("model", "benchmark", "item", "trial", "score"), and what is to be known of it.

    Epochs are trials. A sample that ended in an error, or that nobody scored, has a missing score.

    Args:
        log: as Inspect writes it.
        scorer: whose scores; None if there is one. Values of a scorer that gives several are "scorer.value".

    Raises:
        DataError: the log is damaged, has no scores, or has scores by several scorers and none is named.
    """
    run = log["eval"]
    if not isinstance(run, dict):
        raise DataError("eval of the log is no object: the log may be damaged")
    rows, scorers, without = [], dict[str, None](), []
    samples = log.get("samples") or []
    for number, sample in enumerate(samples, 1):
        scores = (sample.get("scores") or {}) if isinstance(sample, dict) else None
        if not isinstance(scores, dict) or not all(isinstance(own, dict) for own in scores.values()):
            raise DataError(f"sample {number:,} of the log is no object with scores: the log may be damaged")
        given = dict(_values(scores))
        scorers |= dict.fromkeys(given)
        rows.append((sample.get("id"), sample.get("epoch", 1), given))
        if not given:
            without.append("error" if sample.get("error") else "unscored")
    if not scorers:
        raise DataError(
            f"the log has no scores of samples{_ended(log, samples)}: use a log of a finished and scored evaluation"
        )
    chosen = scorer or (next(iter(scorers)) if len(scorers) == 1 else None)
    if chosen is None or chosen not in scorers:
        hint = did_you_mean(chosen, scorers) if chosen else ""
        raise DataError(f"the log has scores by {named(sorted(scorers))}{hint}: name one scorer (score=, --score)")
    own = [(str(item), epoch, as_score(given.get(chosen))) for item, epoch, given in rows]
    frame = pd.DataFrame(own, columns=["item", "trial", "score"])
    notes = []
    if log.get("status", "success") != "success":
        notes.append(f"the evaluation did not finish{_ended(log, samples)}")
    if n := without.count("error"):
        notes.append(f"{counted(n, 'sample')} of {len(samples):,} ended in an error and {_have(n)} no score")
    if n := without.count("unscored"):
        notes.append(f"{counted(n, 'sample')} of {len(samples):,} {_have(n)} no score")
    if log.get("invalidated"):
        notes.append("the log is marked as invalidated")
    about = f"{run.get('model')}, {run.get('task')}"
    return frame.assign(model=run.get("model"), benchmark=run.get("task")), [f"{about}: {note}" for note in notes]


def _have(n: int) -> str:
    return "has" if n == 1 else "have"


def _ended(log: Mapping[str, Any], samples: Sequence[Any]) -> str:
    """How an evaluation ended that was not a success, and with how many samples."""
    status = log.get("status", "success")
    if status == "success":
        return ""
    planned = (log["eval"].get("dataset") or {}).get("samples")
    epochs = (log["eval"].get("config") or {}).get("epochs") or 1
    of = f" of {planned * epochs:,}" if isinstance(planned, int) and isinstance(epochs, int) else ""
    return f" (status {status!r}, {len(samples):,}{of} samples)"


def _values(scores: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Scores by their scorer; of a scorer with several values, by "scorer.value"."""
    for scorer, own in scores.items():
        value = own.get("value")
        if isinstance(value, dict):
            yield from ((f"{scorer}.{name}", part) for name, part in value.items())
        else:
            yield scorer, value


def as_score(value: Any) -> float:
    """A score as harnesses write it: a number, a truth value, yes or no, or one of the letters C, P, I and N.

    Raises:
        DataError: it is none of these.
    """
    if isinstance(value, list | dict):
        raise DataError("a score of the log is a list: only scorers that give numbers or letters are read")
    if value is None:
        return np.nan
    if isinstance(value, str | bool) and value in _VALUES:
        return _VALUES[value]
    try:
        return float(value)
    except ValueError as error:
        raise DataError(f"a score of the log is {value!r}, which is neither a number nor C, I, P or N") from error
