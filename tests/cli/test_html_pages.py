"""``--html`` and the boards of earlier days."""

import re
import struct
from pathlib import Path
from xml.etree import ElementTree

import drawn_pages
import numpy as np
import pandas as pd
import pytest
import yaml
from command_line import said

import jaxeval
from jaxeval.pages.history import read_history


def data_of(path):
    return drawn_pages.data_of(path.read_text("utf-8"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    votes = jaxeval.simulate_votes(2_000, 4, seed=0, details=True)
    votes["longer"] = (votes["length_a"] - votes["length_b"]) / 100
    for k in range(2):
        votes.iloc[k * 1_000 : (k + 1) * 1_000].to_parquet(folder / f"{k}.parquet")
    return [folder / f"{k}.parquet" for k in range(2)]


FEW = ["--resamples", 20, "--quiet"]


def test_card_badge_space_and_the_words_of_a_page(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    votes = pd.read_parquet(files[0])
    votes["day"] = pd.Timestamp("2026-09-01") + pd.to_timedelta(np.arange(len(votes)) % 7, "D")
    votes.to_parquet("votes.parquet")
    named = ["--title", "O & <b>", "--html", "x.html", "--card", "x.png", "--badge", "x.svg", "--space", "me/board"]
    said("leaderboard", "votes.parquet", *named, "--time", "day", "--publish-date", "2026-09-13", *FEW)
    answer = said("leaderboard", "votes.parquet", "--resamples", 20).splitlines()
    html = (tmp_path / "x.html").read_text("utf-8")
    (first,) = re.findall(r"</h1>\s*<p[^>]*>(.*?)</p>", html)
    assert first in answer
    assert f'<meta property="og:description" content="{first}">' in html
    assert "1,000 votes until 2026-09-07" in html
    assert "og:image" not in html
    size = struct.unpack(">II", (tmp_path / "x.png").read_bytes()[16:24])
    assert size == (1200, 630)
    root = ElementTree.fromstring((tmp_path / "x.svg").read_text())
    assert root.get("aria-label") == f"O & <b>: {first.split(' leads')[0]} leads"
    space = tmp_path / "board"
    assert "og:image" in (space / "index.html").read_text("utf-8")
    assert pd.read_parquet(space / "leaderboard.parquet")["model"].nunique() == 4
    assert len(list(space.glob("eval_results/*/.eval_results/elo.yaml"))) == 4
    readme = (space / "README.md").read_text()
    assert yaml.safe_load(readme.split("---")[1])["sdk"] == "static"
    assert "--space me/board --upload" in yaml.safe_load((space / "workflow.yml").read_text())["jobs"]["refresh"][
        "steps"][3]["run"]  # fmt: skip


def test_uploads_are_asked_for(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = []

    class Hub:
        def create_repo(self, space, **how):
            done.append((space, how["space_sdk"]))

        def upload_folder(self, folder_path, **how):
            done.append(sorted(path.name for path in Path(folder_path).iterdir()))
            raise OSError("no network")

    huggingface_hub = pytest.importorskip("huggingface_hub")
    monkeypatch.setattr(huggingface_hub, "HfApi", Hub)
    given = ["leaderboard", files[0], "--space", "me/board", *FEW]
    assert "me/board was not uploaded; the files are in board: no network" in said(*given, "--upload", code=1)
    assert done[0] == ("me/board", "static")
    assert {"README.md", "index.html", "leaderboard.parquet", "card.png"} <= set(done[1])
    said(*given)
    assert len(done) == 2


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
        "--labels-of-groups",
        "English=In English",
        *FEW,
    )
    data = data_of(out)
    assert "In English" in [board["title"] for board in data["boards"]]
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
    own = history[history["date"] == "2026-09-12"].set_index("model")["rating"]
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
    out = tmp_path / "x.html"
    assert "takes NAME=WORDS" in said("leaderboard", files[0], "--html", out, "--labels-of-groups", "x", code=2)
    assert "needs --html" in said("leaderboard", files[0], "--labels-of-groups", "x=y", code=2)
    assert "needs --space" in said("leaderboard", files[0], "--upload", code=2)
    assert "takes OWNER/NAME" in said("leaderboard", files[0], "--space", "me", *FEW, code=1)
    wrong = ["--html", out, "--labels-of-groups", "x=y"]
    assert "name no category 'x'" in said("leaderboard", files[0], *wrong, *FEW, code=1)
    assert "must end in .html" in said("leaderboard", files[0], "--html", tmp_path / "x.pdf", code=2)
