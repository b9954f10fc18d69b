"""Draws in files: what is written is read back, and everything else is an error."""

import dataclasses
import json
import pickle

import numpy as np
import pandas as pd
import pytest

import jaxeval
from jaxeval import DataError, Draws, read_draws, save_draws


def made(names, **others):
    rng = np.random.default_rng(0)
    return Draws(names, np.arange(len(names), dtype=float), rng.normal(size=(20, len(names))), **others)


@pytest.mark.parametrize("names", [
    pd.Index(["a", "b"], name="model"),
    pd.Index([3, 1]),
    pd.MultiIndex.from_tuples([("x", 0.5), ("x", np.inf)], names=["judge", "delta"]),
])  # fmt: skip
def test_all_fields_are_read_back(names, tmp_path):
    draws = made(
        names,
        converged=np.array([True] * 19 + [False]),
        gauge="mean 0",
        anchored=np.array([True, False]),
        precision=1e-3,
        limits=(np.array([-1.0, -np.inf]), 1.0),
        status=np.array(["ok", "one run"], object),
        warnings=("careful",),
        settings={"seed": 1, "features": ("x",)},
        kind="time",
    )
    save_draws(draws, tmp_path / "draws.npz")
    again = read_draws(tmp_path / "draws.npz")
    pd.testing.assert_index_equal(again.names, names)
    for name in ("estimate", "draws", "converged", "anchored", "status"):
        np.testing.assert_array_equal(getattr(again, name), getattr(draws, name))
    for name in ("gauge", "precision", "warnings", "kind"):
        assert getattr(again, name) == getattr(draws, name)
    assert again.settings == {"seed": 1, "features": ["x"]}
    pd.testing.assert_frame_equal(again.table(), draws.table())


def test_models_without_a_rating_in_some_resamples_keep_their_ranks(tmp_path):
    """Their differences are in closed form, which the file holds."""
    votes = jaxeval.simulate_battles(400, 5, seed=0).to_pandas()[["model_a", "model_b", "target"]]
    met = [f"model-{k}" for k in range(1, 6)] * 4
    few = pd.DataFrame({"model_a": "new", "model_b": met, "target": [1.0] + [0.0] * 19})
    board = jaxeval.bootstrap(pd.concat([votes, few]), 60, progress=False)
    assert board.degenerate_share["new"] > 0.01
    jaxeval.save_draws(board.joint, tmp_path / "draws.npz")
    read = jaxeval.read_draws(tmp_path / "draws.npz")
    pd.testing.assert_frame_equal(read.rank_sets(), board.rank_sets(min_battles=0))
    alone = dataclasses.replace(board.joint, closed_form=None).rank_sets()
    assert alone.loc["new"].tolist() == [1, 6]
    assert not alone.equals(read.rank_sets())


def test_what_draws_lack_they_lack_when_read(tmp_path):
    save_draws(made(pd.Index(["a"])), tmp_path / "draws.npz")
    again = read_draws(tmp_path / "draws.npz")
    assert (again.converged, again.anchored, again.limits, again.status, again.settings) == (None,) * 5


def test_names_that_no_file_holds(tmp_path):
    path = tmp_path / "draws.npz"
    with pytest.raises(DataError, match="quantities must be named by text or numbers to be saved"):
        save_draws(made(pd.Index([pd.Timestamp("2026-01-01")])), path)
    assert not path.exists()


@pytest.mark.parametrize("settings", [{("a", "b"): 1}, [1, 2]])
def test_settings_that_no_file_holds(settings, tmp_path):
    with pytest.raises(DataError, match="settings must be"):
        save_draws(made(pd.Index(["a"]), settings=settings), tmp_path / "draws.npz")


def test_numbers_may_be_of_numpy(tmp_path):
    save_draws(made(pd.Index(["a"]), precision=np.float32(0.5), settings={"x": np.float32(2)}), tmp_path / "draws.npz")
    assert read_draws(tmp_path / "draws.npz").precision == 0.5


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "draws.npz"
    with pytest.raises(FileNotFoundError):
        read_draws(path)
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"draws\.npz holds no draws, or is damaged"):
        read_draws(path)
    for x in (np.array([object()]), np.zeros(3)):
        np.save(path, x, allow_pickle=True) if x.dtype == object else np.savez(path, x=x)
        with pytest.raises(DataError, match="holds no draws"):
            read_draws(path)
    np.savez(path, about=json.dumps({"format": "jaxeval draws", "version": 2}))
    with pytest.raises(DataError, match="has version 2 of the format of draws, but this jaxeval reads version 1"):
        read_draws(path)
    np.savez(path, about=json.dumps({"format": "jaxeval draws", "version": 1}))
    with pytest.raises(DataError, match="holds broken draws: KeyError"):
        read_draws(path)


def test_damage_is_noticed(tmp_path):
    path = tmp_path / "draws.npz"
    save_draws(made(pd.Index(["a", "b"])), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="or is damaged"):
        read_draws(path)
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + bytes([whole[middle] ^ 0xFF]) + whole[middle + 1 :])
    with pytest.raises(DataError, match="or is damaged"):
        read_draws(path)


WHOLE = {"format": "jaxeval draws", "version": 1, "names": ["a", "b"], "levels": ["model"], "status": None,
         "settings": None, "gauge": "", "precision": 0.0, "warnings": []}  # fmt: skip


@pytest.mark.parametrize(("about", "arrays"), [
    ({"levels": []}, {}),
    ({"names": [{"a": 1}, "b"]}, {}),
    ({"precision": "much"}, {}),
    ({"status": ["ok"]}, {}),
    ({}, {"draws": np.zeros((3, 2), "U3")}),
    ({}, {"estimate": np.zeros(2, complex)}),
    ({}, {"limits": np.zeros((3, 2))}),
    ({}, {"converged": np.zeros(9, bool)}),
    ({}, {"other": np.zeros(2)}),
])  # fmt: skip
def test_broken_contents_are_noticed(about, arrays, tmp_path):
    path = tmp_path / "draws.npz"
    whole = {"estimate": np.zeros(2), "draws": np.zeros((3, 2))}
    np.savez(path, about=json.dumps(WHOLE), **whole)
    assert read_draws(path).names.tolist() == ["a", "b"]
    np.savez(path, about=json.dumps(WHOLE | about), **(whole | arrays))
    with pytest.raises(DataError, match="holds broken draws"):
        read_draws(path)


def test_damage_anywhere_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "draws.npz"
    draws = made(pd.Index(["a", "b"]))
    save_draws(draws, path)
    whole = path.read_bytes()
    directory = whole.index(b"PK\x01\x02")  # the archive's list of what it holds
    for place in range(directory, len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            again = read_draws(path)
        except DataError:
            continue
        np.testing.assert_array_equal(again.draws, draws.draws)


class Harm:
    def __reduce__(self):
        return open, ("harm", "w")


def test_pickled_code_is_never_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    objects = np.array([Harm(), Harm()], object)
    np.savez("draws.npz", about=json.dumps(WHOLE), estimate=np.zeros(2), draws=objects[None])
    with pytest.raises(DataError, match="holds no draws, or is damaged"):
        read_draws("draws.npz")
    (tmp_path / "draws.npz").write_bytes(pickle.dumps(Harm()))
    with pytest.raises(DataError, match="holds no draws, or is damaged"):
        read_draws("draws.npz")
    assert not (tmp_path / "harm").exists()


def test_results_that_are_no_draws_say_where_their_draws_are(tmp_path):
    board = jaxeval.bootstrap(jaxeval.simulate_battles(200, 4, seed=0), 10)
    with pytest.raises(TypeError, match=r"takes Draws, got Bootstrap: .*save_draws\(board\.joint, path\)"):
        save_draws(board, tmp_path / "draws.npz")
    with pytest.raises(TypeError, match="takes Draws, got DataFrame: give Draws"):
        save_draws(pd.DataFrame(), tmp_path / "draws.npz")
    assert not list(tmp_path.iterdir())
