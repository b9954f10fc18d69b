"""Draws in a file, whatever estimator made them: a NumPy archive (.npz), which any Python reads.

It holds the arrays of a `Draws` under the names of its fields, and the rest as JSON text under ``about``.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from jaxeval.data.versioned_json import check_version
from jaxeval.errors import DataError
from jaxeval.execution.atomic_write import whole_file
from jaxeval.statistics.draws import Draws

_FORMAT, _VERSION = "jaxeval draws", 1
_ARRAYS = ("estimate", "draws", "converged", "anchored")
_TEXTS = ("gauge", "precision", "warnings")


def save_draws(draws: Draws, path: str | Path) -> None:
    """Write draws with their names, settings and warnings to ``path`` (.npz), whole or not at all.

    Raises:
        DataError: a name is neither text nor a number.
        OSError: the file cannot be written.

    Examples:
        >>> joint = Draws(pd.Index(["a", "b"]), np.array([0.5, 0.1]), np.array([[0.5, 0.2], [0.6, 0.1]]))
        >>> save_draws(joint, "draws.npz")
        >>> read_draws("draws.npz").draws.tolist()
        [[0.5, 0.2], [0.6, 0.1]]
    """
    settings = draws.settings if isinstance(draws.settings, Mapping | None) else asdict(draws.settings)
    arrays: dict[str, Any] = {name: x for name in _ARRAYS if (x := getattr(draws, name)) is not None}
    if draws.limits is not None:
        arrays["limits"] = np.array([np.broadcast_to(x, len(draws.names)) for x in draws.limits], float)
    about = {
        "format": _FORMAT,
        "version": _VERSION,
        "names": draws.names.tolist(),
        "levels": list(draws.names.names),
        "status": None if draws.status is None else list(map(str, draws.status)),
        "settings": json.loads(json.dumps(settings, default=str)),
        **{name: getattr(draws, name) for name in _TEXTS},
    }
    try:
        text = json.dumps(about)
    except TypeError as error:
        raise DataError(f"quantities must be named by text or numbers to be saved: {error}") from error
    with whole_file(path) as file:
        np.savez_compressed(file, about=np.array(text), **arrays)


def read_draws(path: str | Path) -> Draws:
    """The draws that `save_draws` wrote; ``settings`` are a mapping.

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
    path = Path(path)
    try:
        with path.open("rb") as file:
            opened = np.load(file, allow_pickle=False)
            arrays: dict[str, Any] = dict(opened) if isinstance(opened, np.lib.npyio.NpzFile) else {}
        about = json.loads(str(arrays.pop("about", "null")))
    except (EOFError, ValueError, RecursionError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path.name} holds no draws, or is damaged: {error}") from error
    if not isinstance(about, dict) or about.get("format") != _FORMAT:
        raise DataError(f"{path.name} holds no draws that jaxeval saved")
    check_version(about, _VERSION, path.name, "draws")
    try:
        levels, names = about["levels"], about["names"]
        if len(levels) > 1:
            index: pd.Index = pd.MultiIndex.from_tuples(map(tuple, names), names=levels)
        else:
            index = pd.Index(names, name=levels[0])
        texts = {name: about[name] for name in _TEXTS} | {"warnings": tuple(about["warnings"])}
        status = None if about["status"] is None else np.array(about["status"], object)
        limits = tuple(arrays.pop("limits")) if "limits" in arrays else None
        return Draws(names=index, limits=limits, status=status, settings=about["settings"], **texts, **arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path.name} holds broken draws: {error!r}") from error
