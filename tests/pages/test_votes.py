"""Pair counts travel exactly and small."""

import base64
import gzip

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval.pages.votes import outcome_sums, pair_data


def unpacked(pairs, n_whole, n_real):
    """Columns of `packed`, read one byte after another."""
    content = gzip.decompress(base64.b64decode(pairs["text"]))
    at, numbers = 0, []

    def next_number():
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    n_pairs = next_number()
    numbers = [[next_number() for _ in range(n_pairs)] for _ in range(1 + n_whole)]
    keys = np.cumsum(np.array(numbers[0], np.int64))
    at = -(-at // 8) * 8
    real = np.frombuffer(content[at:], "<f8").reshape(n_real, n_pairs)
    size = len(pairs["models"])
    return keys // max(size, 1), keys % max(size, 1), np.array(numbers[1:]), real


def as_table(first, second, columns):
    table = pd.DataFrame(np.asarray(columns).T, index=[np.asarray(first), np.asarray(second)])
    return table.sort_index()


@pytest.mark.parametrize("weighted", [False, True])
def test_counts(weighted):
    votes = jaxeval.simulate_votes(4_000, 12, seed=2)
    rng = np.random.default_rng(0)
    if weighted:
        votes = votes.assign(weight=rng.choice([0.25, 1.0, 1 / 3], len(votes)))
    battles = jaxeval.Battles.from_pandas(votes, weight="weight" if weighted else None)
    pairs = pair_data(battles.cells, range(100, 112))
    assert pairs["models"] == list(range(100, 112))
    assert pairs["kind"] == ("weights" if weighted else "counts")
    first, second, whole, real = unpacked(pairs, 3, 6 if weighted else 0)

    # By hand, of the votes themselves.
    place = {name: k for k, name in enumerate(battles.models)}
    a, b = (votes[side].map(place).to_numpy() for side in ("model_a", "model_b"))
    a, b = a.astype(int), b.astype(int)
    points = votes["winner"].astype(str).map({"model_a": 0, "model_b": 2}).fillna(1).astype(int).to_numpy()
    table = np.zeros((3, 3, 12, 12))
    weight = votes["weight"].to_numpy() if weighted else np.ones(len(votes))
    for power in range(3):
        np.add.at(
            table[power], (np.where(a < b, points, 2 - points), np.minimum(a, b), np.maximum(a, b)), weight**power
        )
    np.testing.assert_array_equal(whole, table[0][:, first, second])
    assert whole.sum() == len(votes)
    if weighted:
        np.testing.assert_allclose(real, table[1:].reshape(6, 12, 12)[:, first, second], rtol=1e-12)
        cells = battles.cells
        expected = as_table(cells.first, cells.second, [*outcome_sums(cells, 1), *outcome_sums(cells, 2)])
        np.testing.assert_array_equal(as_table(first, second, real), expected)  # bit for bit


def test_soft_targets():
    rng = np.random.default_rng(1)
    a, b = np.triu_indices(6, 1)
    table = pd.DataFrame({"model_a": a.astype(str), "model_b": b.astype(str), "target": rng.random(15)})
    battles = jaxeval.Battles.from_pandas(table, target="target")
    pairs = pair_data(battles.cells, range(6))
    first, second, whole, real = unpacked(pairs, 1, 2)
    assert pairs["kind"] == "soft"
    np.testing.assert_array_equal(whole, np.ones((1, 15)))
    np.testing.assert_array_equal([first, second], [a, b])
    np.testing.assert_array_equal(real, [np.ones(15), table["target"]])


def test_some_models():
    """Pairs of two models that are shown stay; numbers are those of the page."""
    battles = jaxeval.simulate_battles(500, 6, seed=0)
    pairs = pair_data(battles.cells, range(10, 16), [4, 1, 2])
    assert pairs["models"] == [11, 12, 14]
    first, second, whole, _ = unpacked(pairs, 3, 0)
    few = battles.filter(models=[battles.models[k] for k in (1, 2, 4)])
    assert whole.sum() == few.n_battles
    np.testing.assert_array_equal(as_table(first, second, whole), as_table(*few_pairs(few)))


def few_pairs(battles):
    return battles.cells.first, battles.cells.second, outcome_sums(battles.cells)


def test_many_battles_of_a_pair():
    """Numbers of more than 32 bits."""
    table = pd.DataFrame({"model_a": ["a", "a"], "model_b": ["b", "b"], "winner": ["model_a", "model_b"]})
    battles = jaxeval.Battles.from_pandas(table.assign(times=[2**40 + 1, 2**45]), count="times")
    _, _, whole, _ = unpacked(pair_data(battles.cells, range(2)), 3, 0)
    assert whole[:, 0].tolist() == [2**40 + 1, 0, 2**45]


def test_the_text_is_small_and_the_same_every_time(data):
    votes = pd.read_parquet(data / "arena140k_votes.parquet")
    votes = votes[votes["model_a"] != votes["model_b"]]
    votes = votes.astype(dict.fromkeys(("model_a", "model_b", "winner"), str))
    battles = jaxeval.Battles.from_pandas(votes[["model_a", "model_b", "winner"]])
    pairs = pair_data(battles.cells, range(battles.n_models))
    assert len(pairs["text"]) < 5_000
    assert pairs == pair_data(battles.cells, range(battles.n_models))
