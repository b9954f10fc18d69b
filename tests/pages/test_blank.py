"""``jaxeval page --blank``: a page that rates the votes of a file in the browser, as `jaxeval.leaderboard` does."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from command_line import said
from hostile import NAMES

import jaxeval
from jaxeval.pages.boards import shown_name
from jaxeval.pages.votes import outcome_sums

pytestmark = pytest.mark.usefixtures("all_on_the_host")

BOARD = """([votes, names]) => {
  const [first, second] = [votes.first, votes.second].map((side) => Int32Array.from(side));
  const count = votes.count.map((column) => Float64Array.from(column));
  return resampledBoard({ size: names.length, first, second, count }, names, 1000, 0, { one: "model", many: "models" });
}"""


def board_in_browser(page, battles):
    cells, names = battles.cells, list(battles.models)
    votes = {"first": cells.first.tolist(), "second": cells.second.tolist(), "count": outcome_sums(cells).tolist()}
    found = page.evaluate(BOARD, [votes, names])
    rows = pd.DataFrame(found["rows"], index=[names[row["model"]] for row in found["rows"]])
    wanted = ["rating", "lower", "upper", "rank", "best", "worst", "tier", "flags"]
    return rows.reindex(columns=wanted).replace({"inf": np.inf, "-inf": -np.inf}), found


@pytest.fixture
def resampling(scripts):
    return scripts("refit.js", "heat_maps.js", "prices.js", "resample.js")


def said_first(answer):
    """What an answer says without the ends of intervals, which differ as resamples do."""
    return re.sub(r" \(\S+/\S+\)", "", answer)


@pytest.mark.parametrize(
    ("n", "models", "seed"),
    [(12, 4, 0), (60, 8, 0), (1_000, 10, 0),
     *(pytest.param(n, m, 1, marks=pytest.mark.slow) for n, m in [(30, 5), (150, 8), (400, 6), (4_000, 12)])],
)  # fmt: skip
def test_a_board_is_that_of_python(resampling, n, models, seed):
    """Ratings to 1e-6 Elo, few votes alike in all; ends of percentile intervals to the error of 1,000 draws."""
    battles = jaxeval.Battles.from_pandas(jaxeval.simulate_votes(n, models, seed=seed))
    table = jaxeval.leaderboard(battles, progress=False)
    found, whole = board_in_browser(resampling, battles)
    table = table.set_index("model")
    found = found.loc[table.index]
    rated = np.isfinite(table["rating"])
    np.testing.assert_allclose(found.loc[rated, "rating"].astype(float), table.loc[rated, "rating"], rtol=0, atol=1e-6)
    assert found["rating"].isna().tolist() == (~rated).tolist()
    assert found["rank"].isna().tolist() == table["rank"].isna().tolist()
    assert found["rank"].dropna().tolist() == table["rank"].dropna().tolist()
    assert found["tier"].isna().tolist() == table["tier"].isna().tolist()
    assert whole["penalised"] == table.attrs["settings"]["n_penalised"]
    assert said_first(whole["answer"]) == said_first(table.attrs["answer"])
    half = (table["upper"] - table["lower"]) / 2
    for end in ("lower", "upper"):
        off = (found[end].astype(float) - table[end])[rated & np.isfinite(table[end])].abs()
        few = table["vote_count"][off.index] < 200
        assert (off[few & (table["degenerate_share"][off.index] == 0)] < 1e-3).all()  # no draws are in these
        assert (off / half[off.index]).max() < 0.2  # two 2.5 % points of 1,000 draws differ by .1 of it, at most twice
    others = [jaxeval.leaderboard(battles, seed=k, progress=False).set_index("model") for k in (1, 2)]
    for end in ("best", "worst"):  # as some draws of Python's: steps down make leaps of a few places
        each = [(found[end] - own.loc[table.index, f"rank_{end}"]).abs().fillna(0) for own in (table, *others)]
        assert (np.min([own.astype(float) for own in each], axis=0) <= 1).all()


def test_no_draw_and_no_leader(resampling):
    for rows, answer in [
        ([("a", "b"), ("b", "c")], "no model can be ranked: no two models took points off each other"),
        ([("a", "b"), ("b", "a"), ("b", "c"), ("c", "a")], "too few games to say who leads: b is first with 1072.9 "),
        ([("a", "b"), ("a", "c"), ("b", "c"), ("c", "b")], "too few games to say who leads: b and c are level"),
        ([*["ab"] * 5, *["ba"] * 3, *["ac"] * 5, *["ca"] * 3], "too few games to say who leads: a is first with "),
        ([*["ab"] * 40, *["ba"] * 30, "ua", "xy", "yx"], "a is first with "),  # u is undefeated; x and y met none
    ]:
        table = pd.DataFrame(map(list, rows), columns=["model_a", "model_b"]).assign(winner="model_a")
        battles = jaxeval.Battles.from_pandas(table)
        own = jaxeval.leaderboard(battles, progress=False).attrs["answer"]
        assert said_first(board_in_browser(resampling, battles)[1]["answer"]) == said_first(own)
        assert own.startswith(answer)


@pytest.fixture(scope="module")
def blank(tmp_path_factory):
    path = tmp_path_factory.mktemp("blank") / "blank.html"
    said("page", "--blank", path)
    return path


def rated(visit, blank, file):
    page = visit(blank)
    page.set_input_files("input[type=file]", file)
    page.get_by_text(" resamples in ").wait_for(timeout=30_000)
    return page


def test_a_file_becomes_a_page_that_can_be_saved(visit, blank, tmp_path):
    votes = jaxeval.simulate_votes(900, 5, seed=0)[["model_a", "model_b", "winner"]]
    votes.to_csv(tmp_path / "votes.csv", index=False)
    page = rated(visit, blank, tmp_path / "votes.csv")
    fit = jaxeval.fit_bradley_terry(jaxeval.Battles.from_pandas(votes)).ratings.sort_values(ascending=False)
    shown = page.locator(".panel.board td.rating").all_inner_texts()
    assert shown == [f"{x:.1f}" for x in fit]
    assert page.locator("h1 + p").inner_text().startswith(f"{fit.index[0]} ")
    assert "900 votes" in page.locator(".facts").inner_text()
    with page.expect_download() as download:
        page.get_by_role("button", name="Save this page").click()
    download.value.save_as(tmp_path / "saved.html")
    again = visit(tmp_path / "saved.html", "#view=what-if")
    again.locator(".panel.what-if tbody tr").first.wait_for()
    assert again.locator("h1 + p").inner_text() == page.locator("h1 + p").inner_text()


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("x.tsv", "home_team\taway_team\thome_score\taway_score\nA\tB\t1\t0\nB\tA\t2\t2\nB\tA\t3\t2\n",
         ["home_team", "away_team", "home_score"]),
        ("x.jsonl", '{"left": "A", "right": "B", "better": "left"}\n{"left": "B", "right": "A", "better": "tie"}\n',
         ["left", "right", "better"]),
        ("x.csv", 'id;one;other;who won\n1;"A;x";B;B\n2;B;"A;x";"A;x"\n3;B;"A;x";tie\n', ["one", "other", "who won"]),
    ],
)  # fmt: skip
def test_columns_are_found_as_the_command_finds_them(scripts, blank, name, text, columns):
    page = scripts("format.js", "refit.js", "votes_file.js")
    html = blank.read_text("utf-8")
    words = json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1])["blank"]
    find = """([text, name, words]) => {
      const table = tableOf(text, name);
      const found = foundColumns(table, words);
      const { votes, names } = readVotes(table, found, words);
      return [found.a, found.b, found.result[0], names, votes.count.map((column) => [...column])];
    }"""
    *found, names, counts = page.evaluate(find, [text, name, words])
    assert found == columns
    path = blank.parent / name
    path.write_text(text)
    said("leaderboard", path, "--resamples", 1, "--quiet", "--out", blank.parent / "board.csv")  # it finds them, too
    assert sorted(pd.read_csv(blank.parent / "board.csv")["model"]) == names
    assert sum(map(sum, counts)) == text.count("\n") - (not name.endswith("jsonl"))


def test_hostile_and_odd_files(visit, blank, tmp_path):
    page = visit(blank)
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    told = page.locator(".drop .told")
    for content, why in [
        ("", "the file is empty"),
        ("model_a,model_b,winner\n", "the file has no rows"),
        ("model_a,model_b,winner\na,b\n", "row 1 has 2 values, and there are 3 columns"),
        ("x,y,z\n1,2,3\n", "do not say which columns are the sides"),
        ('{"model_a": "a"\n', "line 1 is no JSON"),
    ]:
        odd = tmp_path / f"{len(list(tmp_path.iterdir()))}.csv"
        odd.write_text(content)
        page.set_input_files("input[type=file]", odd)
        page.get_by_text(why).wait_for()
        assert told.inner_text().startswith("This file cannot be read: ")
    shown = [name for name in NAMES if name.strip() and name == shown_name(name)][:12]
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, len(shown), (2, 600))
    table = pd.DataFrame({"model_a": np.array(shown, object)[a], "model_b": np.array(shown, object)[b]})
    table["winner"] = rng.choice(["model_a", "model_b", "tie"], 600)
    table[a != b].to_json(tmp_path / "names.jsonl", orient="records", lines=True)
    page.set_input_files("input[type=file]", tmp_path / "names.jsonl")
    page.get_by_text(" resamples in ").wait_for(timeout=30_000)
    assert sorted(page.locator(".panel.board tbody th .name").all_inner_texts()) == sorted(shown)
    assert page.locator("script").count() == 2
