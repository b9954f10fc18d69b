"""Votes with columns of many types in a Parquet file, and whether an engine counts them as `read_battles` reads."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import jaxeval

#: How the columns of `write_votes` may be read: options of `read_battles`.
READINGS = {
    "words": {},
    "weights and clusters": {"weight": "w", "cluster": "voter", "keep": ["language"]},
    "targets": {"target": "soft", "keep": ["day"]},
    "numbers": {"winner": "bit", "labels": "a_wins_1", "keep": ["price"]},
    "a family of words": {"winner": "verdict", "keep": ["turns", "kind"]},
    "scores": {"scores": ("home", "away"), "tie_within": 1},
    "winners and losers": {"winner_model": "Model A", "loser_model": "Model B"},
    "missing ones left out": {"winner": "some", "missing": "drop", "both_bad": "drop"},
    "names in another case": {"model_a": "MODEL_A", "model_b": "model b", "winner": "WINNER"},
    "counts": {"count": "n"},
    "fields within columns": {"keep": ["metadata.deep.turns", "flags.hard"]},
    "a condition": {"where": "turns = 1 AND language <> 'German'", "both_bad": "drop"},
}


def write_votes(path):
    """Votes between 7 models; some names differ in case only, and some columns lack values."""
    rng = np.random.default_rng(0)
    votes = jaxeval.simulate_votes(4000, 7, seed=1, popularity_exponent=0.2)
    votes = votes.astype(dict.fromkeys(["model_a", "model_b", "winner", "language"], str))
    names = {"model-6": "MODEL-7", "model-5": "é 模型"}
    votes = votes.replace({"model_a": names, "model_b": names})
    n = len(votes)
    voter = pd.array(rng.integers(2**60, 2**60 + 60, n), "Int64")
    voter[votes["language"] == "German"] = 7
    further = {
        "voter": voter,
        "w": rng.choice([0.3, 1.0, 0.0], n, p=[0.4, 0.5, 0.1]),
        "soft": rng.choice([0.0, 0.1, 0.7, 1.0], n),
        "day": pd.Timestamp("2026-01-31 23:30", tz="UTC") + pd.to_timedelta(rng.integers(3, size=n), "h"),
        "price": pa.array(rng.integers(3, size=n)).cast(pa.decimal128(38, 0)),
        "bit": rng.integers(2, size=n).astype(np.int8),
        "verdict": pd.Categorical(rng.choice(["[[A]]", "b", "TIE"], n)),
        "turns": pd.array(np.where(rng.random(n) < 0.1, None, rng.integers(1, 3, n)), "Int64"),
        "kind": rng.random(n) < 0.5,
        "home": rng.integers(4, size=n).astype(np.uint64),
        "away": rng.integers(4, size=n),
        "some": np.where(rng.random(n) < 0.1, rng.choice([None, "", " "], n), votes["winner"]),
        "n": rng.integers(3, size=n),
        "metadata": [{"deep": {"turns": int(k)}} for k in rng.integers(1, 4, n)],
        "tags": [["math", "code"][k : k + 2] if k < 3 else None for k in rng.integers(4, size=n)],
        "flags": [{"hard": bool(k & 1), "long": bool(k & 2)} for k in rng.integers(4, size=n)],
    }
    columns = {name: pa.array(votes[name]) for name in ("winner", "language")}
    columns |= {"Model A": pa.array(votes["model_a"]), "Model B": pa.array(votes["model_b"])}
    columns |= {name: pa.array(values, from_pandas=True) for name, values in further.items()}
    pq.write_table(pa.table(columns), path)


def counted_and_read(relation, path, keep=(), **options):
    """The battles that an engine counts, and those of the file itself."""
    read = jaxeval.read_battles(path, keep=keep, **options)
    return jaxeval.count_battles(relation, by=keep, **options), read


def assert_same_battles(counted, read):
    """They are equal in all that estimators see."""
    assert counted.n_rows < read.n_rows
    assert replace(counted.report, read_as=()) == replace(read.report, read_as=())
    words = [sorted(re.split(r"[ ,]+", " ".join(b.report.read_as))) for b in (counted, read)]
    assert words[0] == words[1]  # labels in another order
    assert counted.models.tolist() == read.models.tolist()
    assert counted.cluster == read.cluster
    assert_same_cells(counted, read, slice(None), slice(None))
    assert counted.columns.columns.tolist() == read.columns.columns.tolist()
    for name in read.columns:
        (codes, groups), (codes_read, groups_read) = counted.codes(name, "label"), read.codes(name, "label")
        assert list(map(str, groups)) == list(map(str, groups_read))  # which name slices and their random numbers
        rows = zip(*(b.rows_by_group(c, len(groups)) for b, c in ((counted, codes), (read, codes_read))), strict=True)
        for one, other in rows:
            assert_same_cells(counted, read, one, other)


def assert_same_cells(counted, read, rows, rows_read):
    one, other = counted.compress(rows)[0], read.compress(rows_read)[0]
    for name in ("first", "second", "pair", "target", "weight", "count"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def assert_same_draws(counted, read, by=("language", "tags", "flags")):
    """Boards by slices, by overlapping ones and by clusters are equal bit for bit."""
    boards, columns = [], by
    for by in columns:
        slices = [jaxeval.bootstrap(battles, 16, by=by, missing="label") for battles in (counted, read)]
        assert list(slices[0]) == list(slices[1])
        boards += [(slices[0][name], slices[1][name]) for name in slices[0]]
    boards.append(tuple(jaxeval.bootstrap(battles, 16, cluster="voter") for battles in (counted, read)))
    for one, other in boards:
        np.testing.assert_array_equal(one.draws, other.draws)
        pd.testing.assert_series_equal(one.fit.ratings, other.fit.ratings, check_exact=True)
        assert one.warnings == other.warnings
