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
    assert rows["model"].tolist() == board["model"].tolist()
    np.testing.assert_allclose(rows["lower"], board["lower"])
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
    assert (board.loc[board["model"] == "m1", "rating"] == 1200).all()


@pytest.mark.parametrize("option", ["--ties", "--reweight", "--features", "--state"])
def test_options_of_votes_are_none_of_rankings(path, option):
    assert f"No such option '{option}'" in run(path, option, "x", code=2)


def test_files_that_are_read_are_not_written_over(path):
    assert "is the file to read" in run(path, "--out", path, code=2)


def test_groups_that_are_not_there(path):
    said = run(path, "--by", "nope", code=1)
    assert "no column 'nope' to group rankings by; the further columns are: " in said


NAMES = np.array([*"abcdef"])
SHOWN = [np.random.default_rng(k).permutation(6)[:4] for k in range(120)]  # the first of each was chosen


def best_of(counts):
    """Ratings where places ``counts`` of SHOWN are chosen one after the other, by Newton's method on the logits."""
    theta = np.zeros(6)
    for _ in range(50):
        slope, bend = np.zeros(6), np.full((6, 6), 1 / 6)
        for shown, n in zip(SHOWN, counts, strict=True):
            for k in range(n):
                p = np.zeros(6)
                p[shown[k:]] = np.exp(theta[shown[k:]]) / np.exp(theta[shown[k:]]).sum()
                slope += np.eye(6)[shown[k]] - p
                bend += np.diag(p) - np.outer(p, p)
        theta += np.linalg.solve(bend, slope)
    return dict(zip(NAMES, 1000 + (theta - theta.mean()) * 400 / np.log(10), strict=True))


def ratings(*words):
    rows = json.loads(command("rankings", *words, "--resamples", 20, "--out", "-", "--format", "json").stdout)["rows"]
    return {row["model"]: row["rating"] for row in rows}


@pytest.mark.parametrize("first", [1, 2])
def test_the_first_places_of_several(first, tmp_path):
    """Whatever stands below them says nothing: tied, in any order, or more than may tie."""
    expected = best_of([first] * len(SHOWN))
    orders = [[*shown[:first], *rest] for shown, rest in zip(SHOWN, (sorted(x[first:]) for x in SHOWN), strict=True)]
    for sign in (" > ", " = "):
        lists = [" > ".join(NAMES[x[:first]]) + " > " + sign.join(NAMES[x[first:]]) for x in orders]
        path = tmp_path / "choices.csv"
        pd.DataFrame({"ranking": lists}).to_csv(path, index=False)
        found = ratings(path, "--first", first)
        assert found == pytest.approx(expected, abs=1e-6)
    proposed = command(path).output
    assert ("--first 1" in proposed) == (first == 1)


def test_the_best_of_many(tmp_path):
    path = tmp_path / "choices.csv"
    rng = np.random.default_rng(0)
    # So many that each item is first in every resample: the solver of others is another program.
    shown = [rng.permutation([f"m{k}" for k in range(14)]) for _ in range(400)]
    pd.DataFrame({"ranking": [f"{x[0]} > {' = '.join(x[1:])}" for x in shown]}).to_csv(path, index=False)
    assert "ties more than 10 items" in run(path, code=1).replace("tie more", "ties more")
    won = pd.Series([x[0] for x in shown]).value_counts()
    found = pd.Series(ratings(path, "--first", 1)).dropna()
    # All were shown each time: chances are shares.
    shares = np.log(won[found.index]) * 400 / np.log(10)
    np.testing.assert_allclose(found - found.mean(), shares - shares.mean(), atol=1e-6)
    assert "--first 1" in command(path).output


def test_a_tie_across_the_first_places(tmp_path):
    path = tmp_path / "choices.csv"
    pd.DataFrame({"ranking": ["a = b > c", "a > b > c"]}).to_csv(path, index=False)
    assert "1 of 2 rankings has a tie across place 1" in run(path, "--first", 1, code=1)


PREFLIB = """# FILE NAME: 00001-00000001.toi
# NUMBER ALTERNATIVES: 3
# ALTERNATIVE NAME 1: Ann Lee
# ALTERNATIVE NAME 2: Bob, the elder
# ALTERNATIVE NAME 3: Cy
5: 1,2,3
3: 2,{1,3}
2: {2, 3},1
4: 3,1
"""
OLD = """3
1,Ann Lee
2,Bob, the elder
3,Cy
14,14,4
5,1,2,3
3,2,{1,3}
2,{2,3},1
4,3,1
"""


@pytest.mark.parametrize(("ending", "text"), [("toi", PREFLIB), ("soc", OLD), ("toc", OLD)])
def test_files_of_preflib(ending, text, tmp_path):
    path = tmp_path / f"election.{ending}"
    path.write_text(text)
    lists = [["Ann Lee", "Bob, the elder", "Cy"]] * 5 + [["Bob, the elder", ["Ann Lee", "Cy"]]] * 3
    lists += [[["Bob, the elder", "Cy"], "Ann Lee"]] * 2 + [["Cy", "Ann Lee"]] * 4
    board = jaxeval.leaderboard(jaxeval.Rankings.from_pandas(pd.DataFrame({"ranking": lists})), n_resamples=20)
    assert ratings(path) == pytest.approx(dict(zip(board["model"], board["rating"], strict=True)), abs=1e-6)
    line = next(line for line in command(path).output.splitlines() if line.startswith("  jaxeval "))
    assert line.split()[1:] == ["rankings", str(path)]
    path.write_text(text.replace("{1,3}", "{1,7}"))
    assert "ranking 2 is not as PrefLib writes one" in run(path, code=1)


def test_an_end_that_nothing_bounds_is_open(tmp_path):
    """Of the first and the last item; and both ends of those between, of which a third of the resamples say nothing."""
    orders = ["abcd"] * 49 + ["dcba"]
    rows = [f"{number},{item},{place}" for number, order in enumerate(orders) for place, item in enumerate(order, 1)]
    (tmp_path / "few.csv").write_text("\n".join(["ranking,item,rank", *rows]))
    found = command("rankings", tmp_path / "few.csv").output
    assert found.count("open/open") == 2
    assert "open/-280.0" in found
    assert "+282.5/open" in found
    assert "inf" not in found.replace("information", "")
