"""``--html`` and the boards of earlier days."""

import json
import re

import pandas as pd
import pytest
from command_line import said

import jaxeval
from jaxeval.pages.history import read_history


def data_of(path):
    html = path.read_text("utf-8")
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    votes = jaxeval.simulate_votes(2_000, 4, seed=0, details=True)
    votes["longer"] = (votes["length_a"] - votes["length_b"]) / 100
    for k in range(2):
        votes.iloc[k * 1_000 : (k + 1) * 1_000].to_parquet(folder / f"{k}.parquet")
    return [folder / f"{k}.parquet" for k in range(2)]


FEW = ["--resamples", 20, "--quiet"]


@pytest.mark.slow
def test_a_page_with_slices(files, tmp_path):
    out = tmp_path / "board.html"
    said(
        "leaderboard",
        files[0],
        "--by",
        "language",
        "--html",
        out,
        "--title",
        "Ours",
        "--publish-date",
        "2026-09-13",
        *FEW,
    )
    data = data_of(out)
    assert (data["title"], data["made"]) == ("Ours", "2026-09-13")
    assert len(data["boards"]) == pd.read_parquet(files[0])["language"].nunique()
    assert all(board["pairs"] for board in data["boards"])


@pytest.mark.slow
def test_style_control_brings_the_board_without(files, tmp_path):
    out = tmp_path / "board.html"
    said("leaderboard", files[0], "--features", "longer", "--html", out, *FEW)
    controlled, without = data_of(out)["boards"]
    assert controlled["without"] == without["id"]
    fit = jaxeval.fit_bradley_terry(jaxeval.read_battles(files[0]))
    assert without["rows"][0]["rating"] == pytest.approx(fit.ratings.max(), abs=1e-6)


def test_a_state_keeps_a_board_a_day(files, tmp_path):
    state, out = tmp_path / "state.parquet", tmp_path / "board.html"
    said("leaderboard", files[0], "--state", state, "--publish-date", "2026-09-12", *FEW)
    said("leaderboard", files[1], "--state", state, "--publish-date", "2026-09-13", "--html", out, *FEW)
    history = read_history(tmp_path / "state.history.parquet")
    assert history["date"].unique().tolist() == ["2026-09-12", "2026-09-13"]
    first = jaxeval.fit_bradley_terry(jaxeval.read_battles(files[0])).ratings
    own = history[history["date"] == "2026-09-12"].set_index("model_name")["rating"]
    assert own.to_dict() == pytest.approx(first.to_dict())
    (board,) = data_of(out)["boards"]
    assert board["history"]["dates"] == ["2026-09-12", "2026-09-13"]
    assert all("was" in row for row in board["rows"])


def test_a_run_that_fails_keeps_no_board(files, tmp_path):
    state = tmp_path / "state.parquet"
    said("leaderboard", files[0], "--state", state, "--publish-date", "2026-09-12", *FEW)
    before = (tmp_path / "state.history.parquet").read_bytes()
    said("leaderboard", files[0], "--state", state, "--publish-date", "2026-09-13", "--gauge", "x=1", *FEW, code=1)
    assert (tmp_path / "state.history.parquet").read_bytes() == before


@pytest.mark.parametrize("command", [pytest.param("panel", marks=pytest.mark.slow), "rankings", "demo"])
def test_every_board_has_a_page(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = ["--battles", 150, "--models", 4]
    if command != "demo":
        said("simulate", command, *given, "--out", f"{command}.csv")
        given = [f"{command}.csv"]
    said(command, *given, "--html", "board.html", *FEW)
    (board,) = data_of(tmp_path / "board.html")["boards"]
    assert len(board["rows"]) > 2


def test_what_is_refused(files, tmp_path):
    assert "--title needs --html" in said("leaderboard", files[0], "--title", "x", code=2)
    assert "must end in .html" in said("leaderboard", files[0], "--html", tmp_path / "x.pdf", code=2)
