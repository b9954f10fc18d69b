"""``jaxeval compare-boards``."""

import json

import numpy as np
import pandas as pd
import pytest
from arena_votes import arena_votes
from command_line import run as command

import jaxeval

B = 20


def run(*arguments):
    return command("compare-boards", *arguments, "--resamples", B)


@pytest.fixture(scope="module")
def votes():
    table = (
        jaxeval.simulate_votes(1200, 6, seed=1)
        .astype({"winner": str, "model_a": str, "model_b": str})
        .reset_index(names="vote_id")
    )
    judge = np.where(np.arange(1200) % 3 == 0, "tie", table["winner"])
    language = np.where(np.arange(1200) % 2, "English", "Chinese")
    return table.assign(judge=judge, language=language, length=np.random.default_rng(0).normal(size=1200))


@pytest.fixture(scope="module")
def folder(votes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    votes.to_parquet(folder / "votes.parquet")
    votes.head(800).to_csv(folder / "last.csv", index=False)
    votes.tail(800).to_csv(folder / "this.csv", index=False)
    pd.DataFrame({"model": ["model-1"], "name": ["first"]}).to_csv(folder / "names.csv", index=False)
    pd.DataFrame({"model": ["model-1"], "licence": ["open"]}).to_csv(folder / "about.csv", index=False)
    return folder


def written(result, out):
    assert result.exit_code == 0, result.output
    return pd.read_parquet(out)


def check(found, expected):
    assert list(found["model"]) == list(expected["model"])
    for name in ("rating_a", "rating_b", "difference", "difference_lower", "difference_upper", "rank_change_upper"):
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-9)
    assert found["moved"].tolist() == expected["moved"].tolist()


class TestBoards:
    """Each way to name two boards gives what Python gives."""

    def test_two_files(self, votes, folder, tmp_path):
        out = tmp_path / "out.parquet"
        result = run(folder / "last.csv", folder / "this.csv", "--id", "vote_id", "--names", "last,this", "--out", out)
        expected = jaxeval.compare_boards(
            votes.head(800), votes.tail(800), id="vote_id", names=("last", "this"), n_resamples=B
        )
        check(written(result, out), expected.table)
        text = " ".join(result.stdout.split())
        assert text.startswith(expected.answer.sentences[0])
        assert expected.answer.sentences[1] in text
        assert "800 votes on last and 800 on this, 400 of them on both, known by the column 'vote_id'; one draw" in text
        rows = run(folder / "last.csv", folder / "this.csv", "--shared", "rows", "--out", out)
        check(written(rows, out), expected.table)

    def test_without_a_word_on_shared_votes(self, folder):
        result = run(folder / "last.csv", folder / "this.csv")
        text = " ".join(result.stdout.split())
        assert "none known to be on both; independent draws" in text
        assert "400 of the 800 rows of the smaller board look like rows of the other" in text
        assert "(on the command line --id)" in text
        said = run(folder / "last.csv", folder / "this.csv", "--shared", "none")
        assert "look like rows" not in " ".join(said.stdout.split())

    def test_one_file_twice(self, folder):
        result = run(folder / "last.csv", folder / "last.csv")
        assert "none of 6 models moved: the boards hold the same votes, rated alike" in " ".join(result.stdout.split())

    def test_a_copy_of_a_file(self, folder, tmp_path):
        votes = pd.read_csv(folder / "last.csv")[["model_a", "model_b", "winner"]]
        files = [tmp_path / "week.csv", tmp_path / "copy.csv"]
        votes.to_csv(files[0], index=False)
        votes[::-1].to_csv(files[1], index=False)  # in another order
        equal = "all 800 rows of both boards are equal, and are taken as different votes"
        assert equal in " ".join(run(*files).stdout.split())
        assert equal not in " ".join(run(*files, "--shared", "none").stdout.split())
        assert "none of 6 models moved: the boards hold the same votes" in run(*files, "--shared", "rows").stdout
        votes.assign(winner=votes["winner"].where(votes.index > 0, "tie (bothbad)")).to_csv(files[1], index=False)
        assert equal not in " ".join(run(*files).stdout.split())
        (votes.replace(regex="model-", value="name-").assign(winner=votes["winner"])).to_csv(files[1], index=False)
        result = run(*files)
        assert "and b 6; 0 of them are on both. If a model has another name" in " ".join(result.stderr.split())

    def test_few_votes_leave_differences_open(self, tmp_path):
        sides = pd.DataFrame({"model_a": [*"abcabc", "a", "b"], "model_b": [*"bcabca", "d", "d"]})
        files = [tmp_path / "a.csv", tmp_path / "b.csv"]
        one, other, tie = "model_a", "model_b", "tie"
        for file, winner in zip(files, ([one, other, tie] * 2, [other, other, tie, one, one, tie]), strict=True):
            last = [one, one] if file == files[0] else [other, other]
            sides.assign(winner=[*winner, *last]).to_csv(file, index=False)
        result = run(*files)
        assert "of a: +0.0 (open: too few votes for an interval)" in " ".join(result.stdout.split())
        assert "Agreement" not in result.stdout

    def test_slices_with_the_draws_of_leaderboard(self, votes, folder, tmp_path):
        out = tmp_path / "out.parquet"
        slices = "--by", "language", "--slices", "English,Chinese"
        result = run(folder / "votes.parquet", *slices, "--out", out)
        boards = jaxeval.bootstrap(votes, B, by="language")
        expected = jaxeval.compare_boards(boards["English"], boards["Chinese"], names=("English", "Chinese"))
        check(written(result, out), expected.table)
        assert "Chinese; each keeps its own draws, taken as independent" in " ".join(result.stdout.split())

    def test_conditions_on_one_file(self, votes, folder, tmp_path):
        out = tmp_path / "out.parquet"
        conditions = "--where-a", "vote_id < 800", "--where-b", "vote_id >= 400"
        result = run(folder / "votes.parquet", *conditions, "--out", out)
        expected = jaxeval.compare_boards(votes.head(800), votes.tail(800), id="vote_id", n_resamples=B)
        check(written(result, out), expected.table)
        assert "known by the one table that both are parts of" in " ".join(result.stdout.split())

    def test_people_and_a_judge(self, votes, folder, tmp_path):
        out = tmp_path / "out.parquet"
        result = run(folder / "votes.parquet", "--winner-b", "judge", "--out", out)
        judge = votes.drop(columns="winner").rename(columns={"judge": "winner"})
        expected = jaxeval.compare_boards(votes, judge, shared="index", n_resamples=B)
        check(written(result, out), expected.table)
        assert "have another result on b); one draw of the union" in " ".join(result.stdout.split())


def test_what_is_written(folder, tmp_path):
    out, figure = tmp_path / "found", tmp_path / "x.png"
    files = folder / "last.csv", folder / "this.csv"
    more = "--metadata", folder / "about.csv", "--gauge", "model-2=1200", "--plot", figure, "--format", "json"
    result = run(*files, "--id", "vote_id", "--out", f"{out}/", *more, "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert {path.name for path in out.iterdir()} == {
        "comparison.json", "agreement.json", "comparison.png", "answer.txt"
    }  # fmt: skip
    assert figure.stat().st_size > 10_000
    content = json.loads((out / "comparison.json").read_text())
    rows = {row["model"]: row for row in content["rows"]}
    assert rows["model-1"]["licence"] == "open"
    assert rows["model-2"]["rating_a"] == rows["model-2"]["rating_b"] == 1200
    assert content["settings"]["n_resamples"] == B
    assert [row["measure"] for row in json.loads((out / "agreement.json").read_text())["rows"]] == [
        "kendall_tau", "spearman", "top_overlap"
    ]  # fmt: skip


def test_models_and_names_that_one_board_has(votes, folder, tmp_path):
    """A rename of one board makes the names of both alike; a model that one board lacks is left out of the other."""
    other = votes.tail(800).replace({"model-1": "first"})
    other[(other["model_a"] != "model-3") & (other["model_b"] != "model-3")].to_csv(tmp_path / "b.csv", index=False)
    options = "--rename", folder / "names.csv", "--exclude", "model-3", "--id", "vote_id", "--out", tmp_path / "out.csv"
    result = run(folder / "last.csv", tmp_path / "b.csv", *options)
    assert result.exit_code == 0, result.output
    models = set(pd.read_csv(tmp_path / "out.csv")["model"])
    assert models == {"first", "model-2", "model-4", "model-5", "model-6"}
    wrong = run(folder / "last.csv", folder / "this.csv", "--id", "vote_id", "--exclude", "model-33")
    assert "no model 'model-33'" in wrong.output


@pytest.mark.parametrize(("arguments", "code", "message"), [
    (["votes.parquet"], 2, "one file holds two boards where an option says which"),
    (["last.csv", "this.csv", "last.csv"], 2, "two boards are compared, got 3 files"),
    (["votes.parquet", "--by", "language"], 2, "--by and --slices need each other"),
    (["votes.parquet", "--by", "language", "--slices", "English"], 2, "--slices takes two names X,Y, got 'English'"),
    (["last.csv", "this.csv", "--by", "language", "--slices", "a,b"], 2, "--by takes two groups of one file"),
    (["votes.parquet", "--by", "a", "--slices", "x,y", "--id", "vote_id"], 2, "leave a second file, --id, --shared"),
    (["votes.parquet", "--by", "language", "--slices", "English,Germen"], 1, "no group 'Germen'"),
    (["last.csv", "this.csv", "--id", "language"], 1, "share their value with other votes"),
    (["last.csv", "this.csv", "--id", "vote"], 1, "no column 'vote' in the"),
    (["last.csv", "this.csv", "--gauge", "votes"], 2, "--gauge votes would weigh"),
    (["last.csv", "this.csv", "--scheme", "poisson", "--strata", "language"], 2, "fixes how many: leave one"),
    (["votes.parquet", "--where-a", "lenght > 0"], 1, "no column 'lenght'"),
    (["last.csv", "this.csv", "--out", "last.csv"], 2, "which would be lost"),
    (["votes.parquet", "--features-b", "lenght"], 1, "no column 'lenght'"),
])  # fmt: skip
def test_errors(folder, monkeypatch, arguments, code, message):
    monkeypatch.chdir(folder)
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert message in " ".join(result.stderr.split())


@pytest.fixture(scope="module")
def arena(tmp_path_factory):
    path = tmp_path_factory.mktemp("arena") / "votes.parquet"
    pd.DataFrame(arena_votes(400)).to_parquet(path)
    return path


def test_overlapping_categories_are_drawn_once(arena, tmp_path):
    names = {"math": "a", "creative_writing": "b"}
    result = run(arena, "--by", "category_tag", "--slices", ",".join(names), "--out", tmp_path / "out.parquet")
    battles = jaxeval.read_battles(arena, keep=["category_tag"])
    members = battles.members("category_tag")
    parts = [
        battles.filter(np.isin(np.arange(battles.n_rows), members.rows(members.codes == members.groups.get_loc(name))))
        for name in names
    ]
    expected = jaxeval.compare_boards(*parts, n_resamples=B, names=tuple(names))
    check(written(result, tmp_path / "out.parquet"), expected.table)
    both = len(set(members.row[members.codes == members.groups.get_loc("math")])
               & set(members.row[members.codes == members.groups.get_loc("creative_writing")]))  # fmt: skip
    assert both > 20
    assert f"{both} of them on both" in " ".join(result.output.split())


@pytest.mark.slow
def test_the_arenas_style_on_one_board(arena, tmp_path):
    result = run(arena, "--style-b", "arena", "--out", tmp_path / "out.parquet")
    battles = jaxeval.read_battles(arena, keep=["conv_metadata"])
    style = {"features": jaxeval.arena_style()}
    expected = jaxeval.compare_boards(battles, battles, n_resamples=B, options_b=style)
    check(written(result, tmp_path / "out.parquet"), expected.table)
