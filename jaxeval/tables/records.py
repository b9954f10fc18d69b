"""Tables as JSON: rows with what they rest on, and a digest that tells damage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def json_table(table: pd.DataFrame, about: Mapping[str, Any]) -> str:
    """A table as JSON: an object of ``rows``, a record each, of what ``about`` holds, and of ``digest``.

    Numbers that are missing or infinite are null, so that a bound is null where an interval has no end or where there
    is no interval; Parquet and CSV tell the two apart. The digest is `json_digest` of all else.
    """
    content = plain_values({**about, "rows": table.to_dict("records")})
    content["digest"] = json_digest(content)
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def json_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of an object of JSON but for its own ``digest``, with sorted names, no spaces, and ASCII alone."""
    rest = {name: part for name, part in content.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def plain_values(value: Any) -> Any:
    """``value`` in types that JSON has: None for every number that it lacks, text for what is no number."""
    import numpy as np
    import pandas as pd

    if isinstance(value, Mapping):
        return {str(key): plain_values(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(part) for part in value]
    found = value.item() if isinstance(value, np.generic) else value
    if found is None or found is pd.NA or found is pd.NaT:
        return None
    if isinstance(found, float):
        return found if isfinite(found) else None
    return found if isinstance(found, bool | int | str) else str(found)
