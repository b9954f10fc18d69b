"""The data of a page that was written, with its rows, models and histories as they were before they were packed."""

import base64
import gzip
import json
import re

import numpy as np

_NOT_NUMBERS = (None, "inf", "-inf")
_SIGNS = {(None, "lower"): -1, (None, "upper"): 1, ("was", "rating"): -1}


def packed_data(html):
    """What stands in the file."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1])


def data_of(html):
    """The same, unpacked."""
    data = packed_data(html)
    if isinstance(data["models"], str):
        data["models"] = json.loads(gzip.decompress(base64.b64decode(data["models"])))
    if "rows" not in data:
        return data
    n = sum(board["rows"] for board in data["boards"])
    rows = [{} for _ in range(n)]
    for column, codes in zip(
        data["rows"]["columns"], _numbers(data["rows"], [n] * len(data["rows"]["bytes"])), strict=True
    ):
        part, key, values = column["part"], column["key"], _decoded(codes, column["steps"])
        for row, value in zip(rows, values, strict=True):
            if value is not None:
                own = row if part is None else row.setdefault(part, {})
                own[key] = (
                    data["rows"]["flags"][value]
                    if key == "flags"
                    else _scaled(value, column["decimals"], _SIGNS.get((part, key), 0), row.get("rating"))
                )
    by_id = {board["id"]: board for board in data["boards"]}
    for board in data["boards"]:
        board["rows"], rows = rows[: board["rows"]], rows[board["rows"] :]
        if "pool" in board:
            board["pool"]["ids"] = data["pools"][board["pool"]["ids"]]
        if isinstance(board["pairs"], str):
            board["pairs"] = by_id[board["pairs"]]["pairs"]
        if "history" in board:
            board["history"] = _history(board["history"])
    return data


def _numbers(packed, lengths):
    content, at, columns = gzip.decompress(base64.b64decode(packed["text"])), 0, []
    for size, length in zip(packed["bytes"], lengths, strict=True):
        planes = np.frombuffer(content, np.uint8, size * length, at).reshape(size, length).astype(np.int64)
        columns.append((planes << (8 * np.arange(size)[:, None])).sum(0))
        at += size * length
    assert at == len(content)
    return columns


def _decoded(codes, steps):
    last, values = 0, []
    for code in codes.tolist():
        if code < len(_NOT_NUMBERS):
            values.append(_NOT_NUMBERS[code])
            continue
        own = code - len(_NOT_NUMBERS)
        value = -(own + 1) // 2 if own % 2 else own // 2
        last += value
        values.append(last if steps else value)
    return values


def _scaled(value, decimals, sign, rating):
    if not isinstance(value, int) or (decimals == 0 and sign == 0):
        return value
    power = 10**decimals
    return value / power if sign == 0 else round(rating * power + sign * value) / power


def _history(packed):
    dates, n = packed["dates"], packed["n"]
    models, *columns = (
        _decoded(codes, True) for codes in _numbers(packed, [n, *[n * len(dates)] * len(packed["keys"])])
    )
    found = {model: {} for model in models}
    for key, column in zip(packed["keys"], columns, strict=True):
        for k, model in enumerate(models):
            own = column[k * len(dates) : (k + 1) * len(dates)]
            ratings = found[model].get("rating", own)
            found[model][key] = (
                own
                if key == "rank"
                else [
                    x if x is None else _scaled(x, packed["decimals"], _SIGNS.get((None, key), 0), at)
                    for x, at in zip(own, ratings, strict=True)
                ]
            )
    return {"dates": dates, "models": found}
