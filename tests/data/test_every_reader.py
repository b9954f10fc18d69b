"""What every reader of a table owes: the same rows give the same result however the file is written."""

import csv
import gzip
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts
from jaxeval.plain_tables import Names

RNG = np.random.default_rng(0)
N = 48
MODELS = np.array(["gpt-4", "new york", "模型"])
A = RNG.integers(0, 3, N)
SIDES = {"model_a": MODELS[A], "model_b": MODELS[(A + RNG.integers(1, 3, N)) % 3]}
HUMAN = RNG.choice(["model_a", "model_b", "tie"], N)
SCORES = RNG.integers(1, 11, (N, 2))
ITEMS = [f"q{k}" for k in range(N // 3)]


def of_battles(found):
    return jaxeval.fit_bradley_terry(found).ratings.sort_index()


def of_judged(found):
    return jaxeval.fit_temperature(found.score_difference, found.human).beta, found.n_battles


class Reader(NamedTuple):
    """A table, how it is read, and what of the result is compared: nothing that depends on the order of rows."""

    table: pd.DataFrame
    summary: Any
    options: dict[str, Any] = {}


READERS = {
    "read_battles": Reader(pd.DataFrame({**SIDES, "winner": HUMAN}), of_battles),
    "Judgments.read": Reader(
        pd.DataFrame({"left": SIDES["model_a"], "right": SIDES["model_b"], "choice": HUMAN}), of_battles
    ),
    "read_judged_battles": Reader(
        pd.DataFrame({**SIDES, "s_a": SCORES[:, 0], "s_b": SCORES[:, 1], "human": HUMAN}),
        of_judged,
        {"scores_a": "s_a", "scores_b": "s_b", "human": "human"},
    ),
    "read_judges": Reader(
        pd.DataFrame(
            {**SIDES, "s_a": SCORES[:, 0], "s_b": SCORES[:, 1], "human": HUMAN, "judge": RNG.choice(["x", "y"], N)}
        ),
        lambda found: [x for _, own in sorted(found.items()) for x in of_judged(own)],
        {"scores_a": "s_a", "scores_b": "s_b", "human": "human"},
    ),
    "read_scores": Reader(
        pd.DataFrame(
            {"model": np.repeat(MODELS, N // 3), "item": ITEMS * 3, "score": RNG.integers(0, 2, N).astype(float)}
        ),
        lambda found: jaxeval.score_leaderboard(found, n_resamples=2).set_index("model")["score"].sort_index(),
    ),
    "read_rankings": Reader(
        pd.DataFrame(
            {
                "ranking": np.repeat(range(N // 3), 3),
                "item": np.tile(MODELS, N // 3),
                "rank": RNG.permuted(np.tile([1, 2, 3], (N // 3, 1)), axis=1).ravel(),
            }
        ),
        lambda found: jaxeval.fit_plackett_luce(found).ratings.sort_index(),
    ),
    "read_judge_outputs": Reader(
        pd.DataFrame({**SIDES, "item": range(N), "output": [f"[[{x}]]" for x in RNG.choice(["A", "B", "C"], N)]}),
        lambda found: found.battles.groupby(["model_a", "model_b", "verdict"]).size().sort_index(),
        {"one_order": "keep"},
    ),
    "read_judged_answers": Reader(
        pd.DataFrame(
            {
                "model": np.repeat(MODELS, N // 3),
                "item": ITEMS * 3,
                "judgment": RNG.integers(0, 2, N),
                "label": np.where(RNG.random(N) < 0.7, RNG.integers(0, 2, N), np.nan),
            }
        ),
        lambda found: (np.nanmean(found.judgment), np.nanmean(found.label), len(found.items), len(found.models)),
        {"model": "model"},
    ),
    "read_anchored_verdicts": Reader(
        simulate_anchored_verdicts(n_items=8, n_judges=2, n_runs=1),
        lambda found: jaxeval.anchored_scores(found).set_index("model")["probability"].groupby(level=0).mean(),
    ),
    "read_metadata": Reader(
        pd.DataFrame({"model": MODELS, "organization": ["x", "y", "z"], "price": [1.5, 2.0, 3.25]}),
        lambda found: found[["organization", "price"]].set_axis(found.index.astype(str)).sort_index(),
    ),
}
#: What they read is a file of ours, not a table of somebody's.
OF_OURS = {"read_draws", "read_ratings"}
ENDINGS = ["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "parquet"]


def write(frame, path):
    """In the format of the ending."""
    if path.suffix == ".parquet":
        frame.to_parquet(path)
        return path
    lines = ".jsonl" in path.name
    text = (
        frame.to_json(orient="records", lines=True)
        if lines
        else frame.to_csv(index=False, sep="\t" if path.suffix == ".tsv" else ",")
    )
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def summary(name, path):
    reader = READERS[name]
    return reader.summary(attrgetter(name)(jaxeval)(path, **reader.options))


def assert_equal(one, other):
    if isinstance(one, pd.Series | pd.DataFrame):
        assert one.index.tolist() == other.index.tolist()
        np.testing.assert_array_equal(one, other)
    else:
        assert one == pytest.approx(other, rel=1e-9)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readers")
    return {name: summary(name, write(reader.table, folder / f"{name}.csv")) for name, reader in READERS.items()}


def test_every_reader_is_here():
    assert {name for name in jaxeval.__all__ if name.startswith("read_")} == {*READERS, *OF_OURS} - {"Judgments.read"}


@pytest.mark.parametrize("name", READERS)
def test_formats(name, plain, tmp_path):
    for ending in ENDINGS[1:]:
        assert_equal(summary(name, write(READERS[name].table, tmp_path / f"table.{ending}")), plain[name])


@pytest.mark.parametrize("name", READERS)
def test_names_are_those_of_pandas(name, tmp_path):
    """Of a small file, too, which is read without pandas."""
    reader = READERS[name]
    found = attrgetter(name)(jaxeval)(write(reader.table, tmp_path / "table.csv"), **reader.options)
    for role in ("items", "models", "judges", "evaluators"):
        names = getattr(found, role, None)
        assert not isinstance(names, Names), role


@pytest.mark.parametrize("name", READERS)
def test_order_of_rows_and_columns_and_further_ones(name, plain, tmp_path):
    table = READERS[name].table
    moved = table.sample(frac=1, random_state=1)[[*table.columns[::-1]]].assign(
        remark=[f"r, {k}" for k in range(len(table))]
    )
    assert_equal(summary(name, write(moved, tmp_path / "table.csv")), plain[name])


@pytest.mark.parametrize("name", READERS)
def test_files_of_spreadsheets(name, plain, tmp_path):
    """A byte order mark, line ends of Windows, every field in quotes, blank lines at the end."""
    text = READERS[name].table.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    (tmp_path / "table.csv").write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n\r\n")
    assert_equal(summary(name, tmp_path / "table.csv"), plain[name])


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_table_names_the_file(name, tmp_path):
    for content in (b"", b"\x00\x01\x02", b"[1, 2"):
        path = tmp_path / "table.csv"
        path.write_bytes(content)
        with pytest.raises(jaxeval.DataError, match=r"table\.csv"):
            summary(name, path)
    with pytest.raises(FileNotFoundError, match=r"nothing\.csv"):
        summary(name, tmp_path / "nothing.csv")
