"""Tables as JSON: the rows, what they rest on, and a digest that reveals damage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def json_table(table: pd.DataFrame, about: Mapping[str, Any]) -> str:
    """A table as JSON: an object of ``rows`` (a record each), of what ``about`` holds, and of ``digest``.

    Missing and infinite numbers are null. A bound is therefore null where an interval has no end, and where there is no
    interval; Parquet and CSV distinguish the two. The digest is the `json_digest` of all the rest.
    """
    content = plain_values({**about, "rows": table.to_dict("records")})
    content["digest"] = json_digest(content)
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def json_digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON object without its own ``digest``, written with sorted names, no spaces, and only ASCII."""
    rest = {name: part for name, part in content.items() if name != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def plain_values(value: Any) -> Any:
    """``value`` in types that JSON has: None for missing and infinite numbers, text for all other types."""
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
