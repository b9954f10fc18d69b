"""Rankings on the command line: ``jaxeval rankings FILE``."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run as command
from ranked import places, simulated, table

import jaxeval

LISTS = simulated(60, 4, lengths=(2, 4), seed=3)
JUDGES = np.random.default_rng(8).integers(0, 25, len(LISTS))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rankings.csv"
    table(LISTS, judge=JUDGES, half=np.arange(len(LISTS)) % 2).to_csv(path, index=False)
    return path


def run(*arguments, code=0):
    result = command("rankings", *arguments)
    assert result.exit_code == code, result.output
    return result.output


def test_the_table_is_that_of_the_library(path, tmp_path):
    out, plot = tmp_path / "board.json", tmp_path / "board.png"
    text = run(path, "--cluster", "judge", "--resamples", 20, "--out", out, "--plot", plot)
    assert "60 rankings of 4 items" in text
    written = json.loads(out.read_text())
    board = jaxeval.leaderboard(jaxeval.read_rankings(path), n_resamples=20, cluster="judge")
    rows = pd.DataFrame(written["rows"])
    assert rows["model_name"].tolist() == board["model_name"].tolist()
    np.testing.assert_allclose(rows["rating_lower"], board["rating_lower"])
    assert written["settings"]["cluster"] == "judge"
    assert plot.stat().st_size > 0


def test_items_and_ranks_in_columns_of_other_names_by_group(tmp_path):
    path, out = tmp_path / "places.parquet", tmp_path / "board.csv"
    frame = places(LISTS, half=np.where(np.arange(len(LISTS)) % 2, "odd", "even"))
    frame.rename(columns={"ranking": "vote", "item": "model", "rank": "place"}).to_parquet(path)
    names = ["--ranking", "vote", "--item", "model", "--rank", "place"]
    run(path, *names, "--by", "half", "--resamples", 20, "--gauge", "m1=1200", "--out", out)
    board = pd.read_csv(out)
    assert set(board["category"]) == {"even", "odd"}
    assert (board.loc[board["model_name"] == "m1", "rating"] == 1200).all()


@pytest.mark.parametrize("option", ["--ties", "--reweight", "--features", "--state"])
def test_options_of_votes_are_none_of_rankings(path, option):
    assert f"No such option '{option}'" in run(path, option, "x", code=2)


def test_files_that_are_read_are_not_written_over(path):
    assert "is the file to read" in run(path, "--out", path, code=2)


def test_groups_that_are_not_there(path):
    said = run(path, "--by", "nope", code=1)
    assert "no column 'nope' to group rankings by; the further columns are: " in said


def test_bad_rankings_are_one_message(path):
    path.write_text("ranking\na > b\na\n")
    assert "rankings.csv: 1 of 2 rankings holds fewer than two items" in run(path, code=1)
