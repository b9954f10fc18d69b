"""Finished resamples of a long run on disk, so that the same call, made again, goes on from them."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jaxeval.arrays import Bool, Int
from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import remove_unfinished, whole_file
from jaxeval.kernels.connectivity import Standing
from jaxeval.kernels.solve import Status

Results = Mapping[str, NDArray[Any]]  # arrays by name, each with an entry per lane

_FORMAT, _VERSION = "jaxeval run", 1
#: The largest of the codes, which count from 0.
_LAST_CODE = {"status": max(Status), "standing": Standing.INCOMPARABLE}


class Checkpoint:
    """A folder of finished lanes: `run.json` says of which run, and each .npz file holds the lanes of one call.

    Files appear whole or not at all: they are written under another name first.
    """

    def __init__(self, folder: str | Path, digest: str, settings: Mapping[str, Any], noun: str = "data") -> None:
        """Open the ``folder``, or make it, for the run with this ``digest`` of its data and settings.

        ``noun`` says what the data are, in an error.

        Raises:
            DataError: it holds another run, or something else.
        """
        self.folder, self._prefix = Path(folder), ""
        settings = json.loads(json.dumps(dict(settings), default=str))  # as they are read back
        remove_unfinished(self.folder)
        about = self.folder / "run.json"
        if about.exists():
            self._check(about, digest, settings, noun)
        elif self.folder.exists() and not (
            self.folder.is_dir() and all(path.name.startswith(".") for path in self.folder.iterdir())
        ):  # hidden are files that a killed process left unfinished
            raise DataError(f"{self.folder} exists and holds no finished resamples: name a new or empty folder")
        else:
            self.folder.mkdir(parents=True, exist_ok=True)
            text = {"format": _FORMAT, "version": _VERSION, "digest": digest, "settings": settings}
            with whole_file(about) as file:
                file.write(json.dumps(text, indent=1).encode())

    def _check(self, about: Path, digest: str, settings: Mapping[str, Any], noun: str) -> None:
        try:
            record = json.loads(about.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            record = None
        types = {"version": int, "digest": str, "settings": dict}
        if (
            not isinstance(record, dict)
            or record.get("format") != _FORMAT
            or not all(isinstance(record.get(key), kind) for key, kind in types.items())
        ):
            raise DataError(
                f"{about} does not describe a run of jaxeval: name another folder, or remove this one, and its "
                "resamples are drawn again"
            )
        if record["version"] > _VERSION:
            raise DataError(
                f"{about} is of version {record['version']}, newer than this jaxeval reads ({_VERSION}): update "
                "jaxeval, or name another folder"
            )
        if record["digest"] != digest:
            other = record["settings"]
            differ = [
                f"{k} {_in_words(other[k])}, not {_in_words(v)}"
                for k, v in settings.items()
                if k in other and other[k] != v
            ]
            unknown = [k for k in settings if k not in other]
            if unknown:
                differ.append(f"of another estimator or version, without the settings {', '.join(unknown)}")
            raise DataError(
                f"{self.folder} holds resamples of another run ({'; '.join(differ) or f'of other {noun}'}): "
                "name another folder, or delete this one"
            )

    def of_part(self, digest: str) -> Checkpoint:
        """Return the same folder for a run inside of this one, with this ``digest``: its sections have own names."""
        part = copy(self)
        part._prefix = f"{self._prefix}{digest}-"
        return part

    def load(self, section: str, slices: Int, numbers: Int, results: Results) -> Bool:
        """Fill in the lanes of a ``section`` that are finished, and return (L,) which they are.

        Lanes are found by slice and number, so a run may also go on with more resamples.

        Raises:
            DataError: a file is damaged, or holds something else.
        """
        done = np.zeros(len(slices), bool)
        lane_of = {key: lane for lane, key in enumerate(zip(slices.tolist(), numbers.tolist(), strict=True))}
        for path in sorted(self.folder.glob(f"{self._prefix}{section}.*.npz")):
            try:
                part = _read_part(path, results)
            except (OSError, EOFError, ValueError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
                raise DataError(f"{path} is damaged ({error}): remove it, and its resamples are drawn again") from error
            keys = zip(part["slice"].tolist(), part["number"].tolist(), strict=True)
            lanes = np.array([lane_of.get(key, -1) for key in keys], np.int64)
            wanted = lanes >= 0
            for name, into in results.items():
                into[lanes[wanted]] = part[name][wanted]
            done[lanes[wanted]] = True
        return done

    def save(self, section: str, slices: Int, numbers: Int, results: Results, lanes: Int) -> None:
        """Write finished ``lanes`` of a ``section``.

        Raises:
            OSError: the disk is full, say; nothing half-written is left.
        """
        values: dict[str, Any] = {name: x[lanes] for name, x in results.items()}
        name = f"{self._prefix}{section}.{slices[lanes[0]]}-{numbers[lanes[0]]}.npz"
        with whole_file(self.folder / name) as file:
            np.savez(file, slice=slices[lanes], number=numbers[lanes], **values)


def _read_part(path: Path, results: Results) -> dict[str, NDArray[Any]]:
    """Return the arrays that `Checkpoint.save` wrote, or a ValueError where they are not of the kind of ``results``."""
    with path.open("rb") as file:
        opened = np.load(file, allow_pickle=False)
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise ValueError("it is one array, not an archive of several")
        part = dict(opened)
    of_lane: dict[str, tuple[Any, tuple[int, ...]]] = {"slice": (np.int64, ()), "number": (np.int64, ())}
    of_lane |= {name: (x.dtype, x.shape[1:]) for name, x in results.items()}
    if set(part) != set(of_lane):
        raise ValueError(f"it holds {', '.join(sorted(part))}, not {', '.join(sorted(of_lane))}")
    n_lanes = part["number"].size
    for name, (dtype, shape) in of_lane.items():
        array = part[name]
        if array.dtype != dtype or array.shape != (n_lanes, *shape):
            raise ValueError(f"{name!r} is {array.dtype} {array.shape}, not {np.dtype(dtype)} {(n_lanes, *shape)}")
        if name in _LAST_CODE and not np.all((array >= 0) & (array <= _LAST_CODE[name])):
            raise ValueError(f"{name!r} has codes outside of 0 to {_LAST_CODE[name]}")
    if len(set(zip(part["slice"].tolist(), part["number"].tolist(), strict=True))) < n_lanes:
        raise ValueError("it holds a resample twice")
    return part


def _in_words(setting: Any) -> str:
    """Return a setting of a run as an error shows it: text in quotes, several values in a row."""
    if isinstance(setting, list):
        return ", ".join(map(_in_words, setting)) or "none"
    return "none" if setting is None else repr(setting)
