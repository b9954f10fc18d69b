"""`leaderboard --state` as a job that nobody watches: it may fail anywhere, be called again, and meet votes again."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest
from command_line import run as command

import jaxeval
from jaxeval.data.battles import Battles
from jaxeval.pages.history import read_history

FEW = ("--resamples", "10")
STRENGTHS = jaxeval.simulate_strengths(4, seed=1)
DAYS = [jaxeval.simulate_votes(200, strengths=STRENGTHS, seed=seed)[["model_a", "model_b", "winner"]].astype(str)
        for seed in range(2)]  # fmt: skip
for number, votes in enumerate(DAYS):
    votes["vote"] = [1000 * number + k for k in range(len(votes))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Votes of two days in a working folder, as Parquet and as CSV."""
    monkeypatch.chdir(tmp_path)
    for name, votes in zip(("monday", "tuesday"), DAYS, strict=True):
        votes.to_parquet(f"{name}.parquet")
        votes.to_csv(f"{name}.csv", index=False)
    return tmp_path


def run(*arguments, code=0, few=FEW):
    """The command; its output on one line."""
    found = command("leaderboard", *arguments, *few)
    assert found.exit_code == code, found.output
    return " ".join(found.output.split())


def votes_of(path="state.parquet"):
    return Battles.load(path).n_battles


def board(path="board.csv"):
    return pd.read_csv(path).set_index("model")["rating"].to_dict()


def test_a_file_that_is_there_adds_nothing_and_the_board_is_drawn(folder):
    run("monday.csv", "--state", "state.parquet", "--out", "board.csv")
    first, state = board(), (folder / "state.parquet").read_bytes()
    os.remove("board.csv")
    (folder / "copy.csv").write_bytes((folder / "monday.csv").read_bytes())
    assert "monday.csv is in state.parquet already: nothing to add" in run(
        "monday.csv", "--state", "state.parquet", "--out", "board.csv"
    )
    assert board() == first
    said = run("copy.csv", "tuesday.csv", "--state", "state.parquet")
    assert "copy.csv is in state.parquet already, as monday.csv: nothing to add" in said
    assert "adding 200 battles of tuesday.csv" in said
    assert votes_of() == 400
    assert (folder / "state.parquet").read_bytes() != state
    (folder / "same.csv").write_bytes((folder / "tuesday.csv").read_bytes())
    said = run("same.csv", "tuesday.csv", "--state", "new.parquet", code=1)
    assert "tuesday.csv is the same as same.csv: its battles would count twice" in said
    assert not (folder / "new.parquet").exists()


def test_a_run_that_is_killed_at_any_rename_is_finished_by_another(folder, monkeypatch):
    """The history is renamed into its place, and then the state; a kill may come before and after each."""
    table, rename = jaxeval.leaderboard(jaxeval.read_battles("monday.csv"), n_resamples=10), Path.replace
    monkeypatch.setattr("jaxeval.cli.leaderboard._rate", lambda battles, state, published, **_: state.history(
        table, published.day))  # fmt: skip
    asked = ("monday.csv", "--publish-date", "2026-09-12", "--state")
    for at in range(4):
        state, met = f"state{at}.parquet", []

        def killed(path, target, at=at, met=met):
            met.append(target)
            if at % 2 or len(met) <= at // 2:
                rename(path, target)
            if len(met) > at // 2:
                raise OSError("killed")

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", killed)
            assert "killed" in run(*asked, state, code=1)
        assert len(met) == at // 2 + 1
        assert Path(state).exists() == (at == 3)
        assert ("nothing to add" if at == 3 else "adding 200 battles") in run(*asked, state)
        assert votes_of(state) == 200
        assert read_history(f"state{at}.history.parquet")["date"].unique().tolist() == ["2026-09-12"]


def test_a_state_is_rated_alone(folder):
    run("monday.csv", "--state", "state.parquet", "--out", "board.csv")
    before = board()
    assert "400 battles" not in run("state.parquet", "--out", "alone.csv")
    assert board("alone.csv") == before
    said = run("state.parquet", "--exclude", "model-2", "--out", "fewer.csv")
    assert "model-2" not in board("fewer.csv")
    for arguments, refusal in [
        (("state.parquet", "--winner", "vote"), "--winner says how votes are read, and those of state.parquet are"),
        (("state.parquet", "--both-bad", "drop"), "--both-bad says how votes are read"),
        (("state.parquet", "tuesday.csv"), "name it alone, or with --state"),
    ]:
        assert refusal in run(*arguments, code=2)
    said = run("state.parquet", "--state", "other.parquet", code=1)
    assert "state.parquet holds battles that jaxeval saved, and no votes to add: rate it by itself" in said


def test_through_a_link_there_is_one_history(folder):
    (folder / "kept").mkdir()
    (folder / "link.parquet").symlink_to(folder / "kept" / "state.parquet")
    run("monday.csv", "--state", "link.parquet", "--publish-date", "2026-09-12")
    run("tuesday.csv", "--state", "kept/state.parquet", "--publish-date", "2026-09-13")
    assert sorted(path.name for path in folder.rglob("*.history.parquet")) == ["state.history.parquet"]
    assert read_history("kept/state.history.parquet")["date"].nunique() == 2
    assert votes_of("link.parquet") == 400


def test_renames_are_remembered(folder):
    (folder / "names.json").write_text(json.dumps({"model-1": "Best", "not-yet": "Later"}))
    run("monday.csv", "--state", "state.parquet", "--rename", "names.json")
    run("tuesday.csv", "--state", "state.parquet", "--out", "board.csv")  # a day without --rename
    assert sorted(board()) == ["Best", "model-2", "model-3", "model-4"]
    run("monday.csv", "tuesday.csv", "--rename", "names.json", "--out", "once.csv")
    assert board() == pytest.approx(board("once.csv"))
    run("state.parquet", "--out", "alone.csv", "--exclude", "Best")
    assert sorted(board("alone.csv")) == ["model-2", "model-3", "model-4"]
    (folder / "names.json").write_text(json.dumps({"model-1": "Better"}))
    assert "nothing to add" in run("monday.csv", "--state", "state.parquet", "--rename", "names.json")
    assert Battles.load("state.parquet").names == {"model-1": "Better", "not-yet": "Later"}
    run("state.parquet", "--out", "alone.csv", "--exclude", "model-1")
    assert sorted(board("alone.csv")) == ["model-2", "model-3", "model-4"]


def test_the_same_rows_in_another_format_do_not_count_again(folder):
    assert "monday.csv is named twice, and counts once" in run("monday.csv", "monday.csv", "--out", "board.csv")
    twice = "monday.csv has the same 200 rows as monday.parquet: they would count twice. Leave it out; or name the"
    assert twice in run("monday.parquet", "monday.csv", code=1)
    assert jaxeval.read_battles(["monday.parquet", "monday.csv"], id="vote").report.n_repeated == 200
    DAYS[0].sample(frac=1, random_state=0).to_json("shuffled.jsonl", orient="records", lines=True)
    assert "shuffled.jsonl has the same 200 rows" in run("monday.csv", "tuesday.csv", "shuffled.jsonl", code=1)
    run("monday.parquet", "--state", "state.parquet")
    for added in (["monday.csv"], ["tuesday.csv", "shuffled.jsonl"]):
        assert "same 200 rows as monday.parquet, which is counted already" in run(
            *added, "--state", "state.parquet", code=1
        )
    assert votes_of() == 200
    # Few votes may be the same by chance.
    (folder / "one.csv").write_text("model_a,model_b,winner\nmodel-1,model-2,model_a\nmodel-2,model-1,tie\n")
    (folder / "two.csv").write_text("model_b,model_a,winner\nmodel-1,model-2,tie\nmodel-2,model-1,model_a\n")
    assert "saved 202 battles of 2 files" in run("one.csv", "--state", "state.parquet")
    said = run("two.csv", "--state", "state.parquet")
    assert "two.csv has the same 2 rows as one.csv, which is counted already: they count again" in said


def test_votes_with_ids_count_once(folder):
    run("monday.parquet", "--state", "state.parquet", "--id", "vote")
    assert "200 votes are there already, by vote" in run("monday.csv", "--state", "state.parquet")  # remembered
    assert votes_of() == 200
    assert "monday.csv is in state.parquet already" in run("monday.csv", "--state", "state.parquet")
    late = DAYS[1].assign(vote=DAYS[1]["vote"].astype(float))  # as a column with gaps comes
    swapped = DAYS[0][:3].rename(columns={"model_a": "model_b", "model_b": "model_a"})
    swapped["winner"] = swapped["winner"].replace({"model_a": "model_b", "model_b": "model_a"})
    changed = DAYS[0][3:5].assign(winner=["tie (bothbad)" if w != "tie (bothbad)" and w != "tie" else "model_a"
                                          for w in DAYS[0]["winner"][3:5]])  # fmt: skip
    pd.concat([swapped, changed, late, late[:7]]).to_csv("mixed.csv", index=False)
    said = run("mixed.csv", "--state", "state.parquet", "--out", "board.csv")
    assert "7 votes are left out, as other rows have the same vote" in said
    assert "5 votes are there already, by vote; 2 of them differ from the vote of that id, which stays" in said
    assert "12 votes left out whose id was there before" in said
    assert votes_of() == 400
    run("monday.csv", "tuesday.csv", "--out", "once.csv")
    assert board() == pytest.approx(board("once.csv"))
    pd.concat([DAYS[0], DAYS[0][:50]]).to_csv("twice.csv", index=False)
    assert "50 votes left out whose id was there before" in run("twice.csv", "--id", "vote", "--out", "twice-board.csv")
    run("monday.csv", "--out", "once.csv")
    assert board("twice-board.csv") == board("once.csv")


def test_ids_that_do_not_tell_votes(folder):
    run("monday.parquet", "--state", "with.parquet", "--id", "vote")
    run("monday.parquet", "--state", "without.parquet")
    DAYS[1].assign(vote=[None, *range(199)]).to_parquet("gap.parquet")
    DAYS[1].assign(n=2).to_csv("counts.csv", index=False)
    pd.DataFrame({"model_a": ["x", "y"], "model_b": ["y", "z"], "wins_a": [2, 1], "ties": [0, 1], "wins_b": [1, 1],
                  "vote": [1, 2]}).to_csv("table.csv", index=False)  # fmt: skip
    for arguments, code, refusal in [
        (("tuesday.csv", "--state", "without.parquet", "--id", "vote"), 1, "was begun without --id"),
        (("tuesday.csv", "--state", "with.parquet", "--id", "winner"), 1, "knows its votes by 'vote', and not by"),
        (("gap.parquet", "--id", "vote"), 1, "1 vote has no 'vote' (first in row 0"),
        (("counts.csv", "--id", "vote", "--count", "n"), 2, "--id and --count do not go together"),
        (("table.csv", "--id", "vote"), 1, "rows stand for several votes"),
        (("tuesday.csv", "--id", "number"), 1, "no column 'number'"),
    ]:
        assert refusal in run(*arguments, code=code)
    assert votes_of("with.parquet") == votes_of("without.parquet") == 200
