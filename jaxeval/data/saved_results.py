"""Results in files that NumPy alone and any reader of JSON can read: draws of any estimator, ratings, calibrations.

A NumPy archive (.npz) holds the arrays of a `Draws` under the names of its fields, and the rest as JSON text under
``about``. Other results are plain JSON, which names its format and its version.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jaxeval.data.file_lists import local_file
from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.lazy_names import pd
from jaxeval.show.files import json_digest
from jaxeval.statistics.differences import MOST_NOT_FINITE, not_finite, tabled
from jaxeval.statistics.draws import Draws

_FORMAT, _VERSION = "jaxeval draws", 1
_OF_RATINGS, _RATINGS_VERSION = "jaxeval ratings", 1
_LARGEST = 2**1023  # smaller whole numbers become doubles without overflow
#: The kinds of NumPy types that each array may have.
_ARRAYS = {"estimate": "fiu", "draws": "fiu", "converged": "b", "anchored": "b", "loose": "b", "limits": "f"}
#: The same of differences in closed form, of quantities whose draws say too little; and the level of their errors.
_CLOSED_FORM, _LEVEL = {"rows": "iu", "difference": "f", "error": "f"}, 0.95
_MOST_ENTRIES = 2**24


def write_versioned(path: str | Path, form: str, version: int, content: dict[str, Any]) -> None:
    """Write ``content`` with the name and version of its format and a digest, whole or not at all."""
    try:
        # As it will be read: with names that are text.
        whole = json.loads(json.dumps({"format": form, "version": version, **content}, allow_nan=False))
        text = json.dumps(whole | {"digest": json_digest(whole)}, indent=1)
    except TypeError as error:
        raise DataError(f"models must be named by text or numbers to be saved: {error}") from error
    with whole_file(path) as file:
        file.write(text.encode() + b"\n")


def read_versioned(path: Path, form: str, version: int, what: str, remedy: str = "make it again") -> dict[str, Any]:
    """Return the content of a file of `write_versioned`; errors call it ``what``, and advise the ``remedy``."""
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no JSON, no text, nested or long beyond reason
        raise DataError(f"{path.name} holds no {what}: it is no JSON text ({error})") from error
    if not isinstance(content, dict) or content.get("format") != form:
        raise DataError(f"{path.name} holds no {what}: it does not say 'format': {form!r}")
    check_version(content, version, path.name, what, remedy)
    try:
        digest = json_digest(content)
    except ValueError:  # numbers that none of these files holds
        digest = None
    if digest is None or content.get("digest") != digest:
        raise DataError(f"{path.name} is damaged: it does not hold what was saved; use a copy, or {remedy}")
    return content


def check_version(content: dict[str, Any], version: int, name: str, what: str, remedy: str = "make it again") -> None:
    """Raise DataError if the ``content`` of the file ``name`` is of another version of its format."""
    if content.get("version") != version or isinstance(content.get("version"), bool):
        raise DataError(
            f"{name} has version {content.get('version')!r} of the format of {what}, but this jaxeval reads version "
            f"{version}: use the jaxeval that wrote it, or {remedy}"
        )


def save_draws(draws: Draws, path: str | Path) -> None:
    """Write draws with their names, settings and warnings to ``path`` (.npz), whole or not at all.

    Raises:
        DataError: a name is neither text nor a number, or JSON cannot hold the settings.
        OSError: the file cannot be written.
        TypeError: these are no `Draws`; results such as a `Bootstrap` have them under ``joint``.

    Examples:
        >>> joint = Draws(pd.Index(["a", "b"]), np.array([0.5, 0.1]), np.array([[0.5, 0.2], [0.6, 0.1]]))
        >>> save_draws(joint, "draws.npz")
        >>> read_draws("draws.npz").draws.tolist()
        [[0.5, 0.2], [0.6, 0.1]]
    """
    _check_draws(draws)
    arrays: dict[str, Any] = {name: x for name in _ARRAYS if (x := getattr(draws, name)) is not None}
    if draws.limits is not None:
        arrays["limits"] = np.array([np.broadcast_to(x, len(draws.names)) for x in draws.limits], float)
    arrays |= _tabled(draws)
    settings = asdict(draws.settings) if is_dataclass(draws.settings) else draws.settings  # type: ignore[arg-type]
    about = {
        "format": _FORMAT, "version": _VERSION, "names": draws.names.tolist(), "levels": list(draws.names.names),
        "status": None if draws.status is None else list(map(str, draws.status)), "settings": _plain(settings),
        "gauge": draws.gauge, "precision": float(draws.precision), "freedom": draws.freedom,
        "bias_corrected": draws.bias_corrected, "holds_estimate": draws.holds_estimate,
        "kind": draws.kind, "warnings": draws.warnings,
    }  # fmt: skip
    try:
        text = json.dumps(about)
    except TypeError as error:
        raise DataError(f"quantities must be named by text or numbers to be saved: {error}") from error
    with whole_file(path) as file:
        np.savez_compressed(file, about=np.array(text), **arrays)


def _tabled(draws: Draws) -> dict[str, Any]:
    """Return arrays of differences that do not come from draws; none where they would be too large for a file."""
    loose = draws._loose | (not_finite(draws.draws, draws.converged) > MOST_NOT_FINITE)
    rows = np.flatnonzero(loose | (len(loose) == 2))
    if draws.closed_form is None or len(rows) * len(draws.names) > _MOST_ENTRIES or len(rows) == 0:
        return {}
    return {f"closed_{name}": x for name, x in zip(_CLOSED_FORM, (rows, *draws.closed_form(rows, _LEVEL)), strict=True)}


def _check_draws(draws: object) -> None:
    if isinstance(draws, Draws):
        return
    kind = type(draws).__name__
    has_joint = isinstance(getattr(draws, "joint", None), Draws)
    advice = f"give the {kind}'s joint draws, as in save_draws(board.joint, path)" if has_joint else "give Draws"
    raise TypeError(f"save_draws takes Draws, got {kind}: {advice}")


def read_draws(path: str | Path) -> Draws:
    """Return the draws that `save_draws` wrote; ``settings`` are a mapping.

    Raises:
        DataError: the file holds something else, is damaged, or is of a version that this jaxeval does not know.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import jaxeval
        >>> joint = jaxeval.bootstrap(jaxeval.simulate_battles(2_000, 4, seed=0), 200).joint
        >>> jaxeval.save_draws(joint, "draws.npz")
        >>> jaxeval.read_draws("draws.npz").tiers().to_dict()
        {'model-1': 1, 'model-2': 2, 'model-3': 2, 'model-4': 3}
    """
    path = local_file(path)
    with path.open("rb") as file:
        try:
            opened = np.load(file, allow_pickle=False)
            arrays: dict[str, Any] = dict(opened) if isinstance(opened, np.lib.npyio.NpzFile) else {}
            about = json.loads(str(arrays.pop("about", "null")))
        except (EOFError, OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise DataError(f"{path.name} holds no draws, or is damaged: {error}") from error
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise DataError(f"{path.name} holds no draws that jaxeval saved")
    check_version(about, _VERSION, path.name, "draws")
    try:
        levels, names = about["levels"], about["names"]
        if len(levels) > 1 or (names and isinstance(names[0], list)):
            index: pd.Index = pd.MultiIndex.from_tuples(map(tuple, names), names=levels)
        else:
            index = pd.Index(names).set_names(levels)
        kinds = _ARRAYS | {f"closed_{name}": kind for name, kind in _CLOSED_FORM.items()}
        for name, x in arrays.items():
            if x.dtype.kind not in kinds[name]:
                raise TypeError(f"{name} is an array of {x.dtype}")
        if "limits" in arrays:
            arrays["limits"] = tuple(arrays["limits"])
        if "closed_rows" in arrays:
            arrays["closed_form"] = partial(tabled, *(arrays.pop(f"closed_{name}") for name in _CLOSED_FORM))
        return Draws(
            names=index, status=None if about["status"] is None else np.array(about["status"], object),
            settings=about["settings"], gauge=str(about["gauge"]), precision=float(about["precision"]),
            warnings=tuple(map(str, about["warnings"])),
            freedom=None if about.get("freedom") is None else float(about["freedom"]),
            bias_corrected=bool(about.get("bias_corrected")), holds_estimate=bool(about.get("holds_estimate")),
            kind=about.get("kind", "number"), **arrays,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path.name} holds broken draws: {type(error).__name__}: {error}") from error


def _plain(settings: Any) -> Any:
    """Return settings as they are after being written to JSON and read again."""
    if not isinstance(settings, Mapping | None):
        raise DataError(f"settings must be a mapping or a dataclass to be saved, got {type(settings).__name__}")
    try:
        return json.loads(json.dumps(settings, default=str))
    except (TypeError, ValueError) as error:
        raise DataError(
            f"settings must be text, numbers, and lists and mappings of them to be saved: {error}"
        ) from error


def save_ratings(ratings: pd.Series, settings: Mapping[str, Any], path: str | Path) -> None:
    """See `BradleyTerryFit.save`."""
    rows = zip(ratings.index.tolist(), ratings.tolist(), strict=True)
    # JSON has neither infinity nor NaN: unrated models are spelled out.
    spelled = [[model, rating if abs(rating) < float("inf") else str(rating)] for model, rating in rows]
    write_versioned(path, _OF_RATINGS, _RATINGS_VERSION, {"settings": dict(settings), "ratings": spelled})


def read_ratings(path: str | Path) -> pd.Series:
    """Read ratings by model (Elo) that `BradleyTerryFit.save` wrote; ``attrs["settings"]`` is what made them.

    Raises:
        DataError: the file holds no ratings, is broken, or is of a version that this jaxeval does not know.
        FileNotFoundError: there is no such file.

    Examples:
        >>> import jaxeval
        >>> jaxeval.fit_bradley_terry(jaxeval.simulate_battles(2_000, 4, seed=0)).save("ratings.json")
        >>> ratings = jaxeval.read_ratings("ratings.json")
        >>> ratings.round().astype(int).to_dict()
        {'model-1': 1098, 'model-2': 992, 'model-3': 968, 'model-4': 942}
        >>> ratings.attrs["settings"]["gauge"]
        'mean rating 1000'
    """
    path = local_file(path)
    content = read_versioned(path, _OF_RATINGS, _RATINGS_VERSION, "saved ratings")
    rows, settings = content.get("ratings"), content.get("settings")
    if not isinstance(rows, list) or not rows or not isinstance(settings, dict):
        raise DataError(f"{path.name} holds broken ratings: it lacks the list 'ratings' or the 'settings'")
    for row in rows:
        if not (
            isinstance(row, list) and len(row) == 2 and isinstance(row[0], str | int | float) and _is_rating(row[1])
        ):
            raise DataError(f"{path.name} holds broken ratings: expected [model, number], got {str(row)[:80]}")
    models, values = zip(*rows, strict=True)
    ratings = pd.Series([float(v) for v in values], pd.Index(models, name="model"), name="rating")
    if not ratings.index.is_unique:
        twice = ratings.index[ratings.index.duplicated()][0]
        raise DataError(f"{path.name} holds broken ratings: model {twice!r} is there more than once")
    ratings.attrs["settings"] = settings
    return ratings


def _is_rating(value: Any) -> bool:
    """Return whether it is a number that a double holds, or one of those that JSON lacks."""
    if isinstance(value, str):
        return value in ("inf", "-inf", "nan")
    return isinstance(value, float) or (type(value) is int and abs(value) < _LARGEST)
