"""Pages as files: what they hold, what may run in them, and what is refused."""

import base64
import hashlib
import json
import re
import subprocess
import sysconfig
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawn_pages import data_of, packed_data
from hostile import NAMES
from results import N_RESAMPLES, RESULTS

import jaxeval
from jaxeval.pages.boards import MOST_ROWS_IN_ALL
from jaxeval.pages.document import LOADER, READING, SCRIPTS, STYLES, json_in_html, script_text, style_text
from jaxeval.pages.history import read_history, with_board, write_history
from jaxeval.wording import visible_line

pytestmark = pytest.mark.usefixtures("all_on_the_host")

HOME = files("jaxeval.pages")
BIOME = Path(sysconfig.get_path("scripts")) / "biome"


def simulated(n=2_000, models=5, seed=0, **options):
    votes = jaxeval.simulate_votes(n, models, seed=seed, details=True)
    return jaxeval.Battles.from_pandas(votes, keep=["language"], **options)


def board_of(battles, **options):
    return jaxeval.leaderboard(battles, n_resamples=N_RESAMPLES, progress=False, **options)


def written(tmp_path, results, **options):
    jaxeval.page(results, tmp_path / "page.html", made="2026-09-13", **options)
    return (tmp_path / "page.html").read_text("utf-8")


@pytest.fixture(scope="module")
def battles():
    return simulated()


@pytest.fixture(scope="module")
def board(battles):
    return board_of(battles)


def test_only_the_own_script_and_style_may_run(tmp_path, board):
    html = written(tmp_path, board)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        assert rules[rule] == f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
    assert not re.search(r"\son\w+=|javascript:|\sstyle=", html.split("<script")[0])
    assert not re.findall(r'(?:src|href)="(?!data:|#)', html)
    for name in ("fetch(", "XMLHttpRequest", "WebSocket", "eval(", "Function(", "innerHTML", "import("):
        assert name not in script_text(reads=True)


def test_no_two_scripts_declare_a_name():
    """In one function the later one would be called in place of the other."""
    declared = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", script_text(reads=True), re.MULTILINE)
    assert len(declared) == len(set(declared))
    assert {path.name for path in HOME.iterdir() if path.name.endswith((".js", ".css"))} == {
        *SCRIPTS,
        *READING,
        *STYLES,
        LOADER,
    }


@pytest.mark.skipif(not BIOME.exists(), reason="biome is not installed: pip install 'jaxeval[dev]'")
def test_scripts_and_styles_are_linted(request):
    sources = [str(HOME / name) for name in (*SCRIPTS, *READING, *STYLES, LOADER)]
    command = [str(BIOME), "check", f"--config-path={request.path.parent}", *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_table_is_there_without_script(tmp_path, board):
    static = written(tmp_path, board).split('<script type="application/json"')[0]
    for row in board.to_dict("records"):
        assert f"<bdi>{row['model']}</bdi>" in static
        assert f"{row['rating']:.1f}" in static
    assert "Digest of the data" in static
    assert "This file asks no network for anything." in static


def test_data_are_those_of_the_table(tmp_path, board, battles):
    html = written(tmp_path, board, battles=battles)
    data = data_of(html)
    (shown,) = data["boards"]
    for row, own in zip(shown["rows"], board.to_dict("records"), strict=True):
        assert data["models"][row["model"]]["name"] == own["model"]
        assert row["rating"] == pytest.approx(own["rating"], abs=1e-6)
        assert (row["best"], row["worst"], row["votes"]) == (own["rank_best"], own["rank_worst"], own["vote_count"])
    assert shown["what_if"] is None
    assert data["seed"] == 0
    data = packed_data(html)
    digest = data.pop("digest")
    from jaxeval.show.files import json_digest

    assert json_digest(data) == digest


def test_hostile_names_are_text(tmp_path):
    names = [name for name in NAMES if name.strip()]
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, len(names), (2, 6_000))
    table = pd.DataFrame({"model_a": np.array(names, object)[a], "model_b": np.array(names, object)[b]})
    table["winner"] = rng.choice(["model_a", "model_b", "tie"], 6_000)
    battles = jaxeval.Battles.from_pandas(table[a != b])
    fit = jaxeval.fit_bradley_terry(battles)
    html = written(tmp_path, fit, battles=battles, title="</title><script>alert(1)</script>")
    assert html.count("<script") == 2
    assert "alert(1)</script>" not in html
    static = html.split('<script type="application/json"')[0]
    assert "\x1b" not in html
    assert "\u202e" not in static
    shown = {model["name"] for model in data_of(html)["models"]}
    assert {visible_line(name) for name in names if name == name.strip()} <= shown


def test_json_cannot_end_its_element():
    text = json_in_html({"x": "</script><!-- \u2028 & é"})
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text) == {"x": "</script><!-- \u2028 & é"}


@pytest.mark.slow
def test_slices_are_boards_that_readers_may_put_together(tmp_path, battles):
    table = board_of(battles, by="language")
    data = data_of(written(tmp_path, table, battles=battles))
    languages = list(table["category"].unique())
    assert [board["title"] for board in data["boards"]] == languages
    ids = [board["id"] for board in data["boards"]]
    assert all(board["pool"] == {"kind": "add", "ids": ids} for board in data["boards"])
    with pytest.raises(jaxeval.DataError, match="no column 'language'"):
        written(tmp_path, table, battles=jaxeval.Battles.from_pandas(battles.to_pandas().drop(columns="language")))


@pytest.mark.parametrize(("options", "reason"), [
    ({"ties": "davidson"}, "this board has a model of ties"),
    ({"link": "probit"}, "this board is of another link"),
    ({"ridge": 0.1}, "this board is fitted with a ridge"),
    ({"penalty": "firth"}, "this board is fitted with a penalty"),
])  # fmt: skip
def test_what_if_is_off_with_a_reason(tmp_path, battles, options, reason):
    make = board_of if "ridge" in options else jaxeval.fit_bradley_terry  # whose other options are other programs
    (shown,) = data_of(written(tmp_path, make(battles, **options), battles=battles))["boards"]
    assert reason in shown["what_if"]
    assert shown["pairs"] is not None


@pytest.mark.slow
def test_soft_targets_and_missing_votes_switch_what_if_off(tmp_path, board):
    (shown,) = data_of(written(tmp_path, board))["boards"]
    assert shown["what_if"] == "What-if is off: no votes came with this page."
    rng = np.random.default_rng(0)
    a, b = np.triu_indices(5, 1)
    table = pd.DataFrame({"model_a": a.astype(str), "model_b": b.astype(str), "target": rng.random(10)})
    soft = jaxeval.Battles.from_pandas(table, target="target")
    (shown,) = data_of(written(tmp_path, board_of(soft), battles=soft))["boards"]
    assert "neither wins nor ties nor losses" in shown["what_if"]


def test_votes_of_another_board_are_refused(tmp_path, board):
    with pytest.raises(jaxeval.DataError, match=r"battles= are not those of the board .*: 'model-\d' has"):
        written(tmp_path, board, battles=simulated(seed=1))
    with pytest.raises(TypeError, match="battles= takes Battles, got DataFrame"):
        written(tmp_path, board, battles=pd.DataFrame())


@pytest.fixture(scope="module")
def with_length():
    """Battles whose lengths are known, their board and the one without the effect of length."""
    votes = jaxeval.simulate_votes(2_000, 5, seed=0, details=True)
    votes["longer"] = (votes["length_a"] - votes["length_b"]) / 100
    battles = jaxeval.Battles.from_pandas(votes, keep=["longer"])
    return battles, board_of(battles), board_of(battles, features=["longer"])


@pytest.mark.slow
def test_style_control_has_both_boards(tmp_path, with_length):
    battles, plain, controlled = with_length
    data = data_of(written(tmp_path, [controlled, plain], battles=battles))
    controlled, without = data["boards"]
    assert without["controlled"] == controlled["id"]
    assert controlled["without"] == without["id"]
    assert without["what_if"] is controlled["what_if"] is None
    assert controlled["pairs"] == without["pairs"]  # of the same votes, whose control is kept as offsets
    assert "offsets" in controlled
    assert "offsets" not in without


def test_history_and_earlier_boards(tmp_path, battles, board):
    first = board_of(simulated(1_000))
    history = with_board(
        with_board(None, first, pd.Timestamp("2026-09-11").date()), board, pd.Timestamp("2026-09-13").date()
    )
    write_history(history, tmp_path / "history.parquet")
    assert read_history(tmp_path / "history.parquet").equals(history)
    (shown,) = data_of(written(tmp_path, board, history=tmp_path / "history.parquet"))["boards"]
    assert shown["history"]["dates"] == ["2026-09-11", "2026-09-13"]
    before = first.set_index("model")["rating"]
    for row, own in zip(shown["rows"], board.to_dict("records"), strict=True):
        assert row["was"]["rating"] == pytest.approx(before[own["model"]], abs=1e-6)
        half = (row["upper"] - row["lower"]) / 2  # of twice the votes, about: V / 1000 - V / 2000 = V / 2000
        assert 0.9 * half < row["was"]["half"] < 1.3 * half
    (again,) = data_of(written(tmp_path, board, earlier=first))["boards"]
    assert [row["was"]["rating"] for row in again["rows"]] == pytest.approx(
        [row["was"]["rating"] for row in shown["rows"]]
    )
    assert len(data_of(written(tmp_path, [first, board]))["boards"]) == 2
    with pytest.raises(jaxeval.DataError, match="earlier= is no leaderboard"):
        written(tmp_path, board, earlier=first[["model", "rating"]])
    (tmp_path / "history.parquet").write_bytes(b"no parquet")
    with pytest.raises(jaxeval.DataError, match="is no history of boards"):
        written(tmp_path, board, history=tmp_path / "history.parquet")


@pytest.mark.slow
def test_intervals_of_changes_hold_them():
    """Boards that grow from 5,000 to 6,000 votes, of models that stay as they are: 40 of them hold 96.25 % of 400."""
    from jaxeval.pages.history import _half_of_change

    scaled = []
    for seed in range(12):
        votes = jaxeval.simulate_votes(6_000, 10, seed=seed)
        before, after = (jaxeval.fit_bradley_terry(jaxeval.Battles.from_pandas(votes.iloc[:n])) for n in (5_000, 6_000))
        ends, grown = after.interval(), after.n_battles.sum() / before.n_battles.sum()
        for model, (lower, upper) in ends.iterrows():
            row = {"lower": lower, "upper": upper, "votes": after.n_battles[model]}
            half = _half_of_change(row, int(before.n_battles[model]), True, grown)["half"]
            scaled.append((after.ratings[model] - before.ratings[model]) / half)
    assert (
        0.9 <= np.mean(np.abs(scaled) <= 1) <= 0.99
    )  # .95 and three standard errors of 120, some of which go together
    assert 1.96 * np.std(scaled) == pytest.approx(1, abs=0.2)


def test_thirty_thousand_competitors(tmp_path):
    n = 30_000
    order = np.random.default_rng(0).permutation(n)
    table = pd.DataFrame({
        "model": [f"p{k}" for k in order], "rating": np.linspace(2000, 1000, n), "lower": 990.0,
        "upper": 2010.0, "vote_count": 7, "rank": pd.array(np.arange(1, n + 1), "Int64"), "standing": "",
        "degenerate_share": 0.0, "component": 1, "preliminary": True,
    })  # fmt: skip
    html = written(tmp_path, table)
    (shown,) = data_of(html)["boards"]
    assert len(shown["rows"]) == 1_000
    assert shown["notes"] == [
        "30,000 models, of which the first 1,000 by rank are here; the table of the command (--out) has all"
    ]
    assert len(html) < 600_000


def test_a_fit_too_wide_for_a_covariance_has_a_page(tmp_path, battles, monkeypatch):
    monkeypatch.setattr("jaxeval.ratings.boards.MOST_INVERTED", 4)
    fit = jaxeval.fit_bradley_terry(battles)
    data = data_of(written(tmp_path, fit))
    (board,) = data["boards"]
    ratings = {data["models"][row["model"]]["name"]: row["rating"] for row in board["rows"]}
    assert ratings == pytest.approx(fit.ratings.to_dict(), abs=1e-5)
    assert not any("lower" in row or "upper" in row for row in board["rows"])
    assert any("ratings have no intervals" in warning and "5 models are too many" in warning
               for warning in [*board["warnings"], *data["warnings"]])  # fmt: skip
    with pytest.raises(ValueError, match="the covariance of a fit is a table of 5 x 5 models"):
        fit.interval()


def test_no_finite_interval_and_two_models(tmp_path):
    table = pd.DataFrame({"model_a": ["a"] * 6, "model_b": ["b"] * 6, "winner": ["tie"] * 6})
    battles = jaxeval.Battles.from_pandas(table)
    (shown,) = data_of(written(tmp_path, board_of(battles, penalty="none"), battles=battles))["boards"]
    assert "no model of this board has an interval: nothing shows how uncertain its ratings are" in shown["notes"]


def test_names_that_are_equal_when_trimmed(tmp_path):
    table = pd.DataFrame(
        {"model_a": ["x", "x ", "y"] * 20, "model_b": ["x ", "y", "x"] * 20, "winner": ["model_a", "tie"] * 30}
    )
    data = data_of(written(tmp_path, board_of(jaxeval.Battles.from_pandas(table))))
    assert any("differ only by space around them" in text for text in data["warnings"])
    assert {model["name"] for model in data["models"]} == {"x", '"x "', "y"}


@pytest.mark.parametrize("name", sorted(RESULTS))
def test_every_result_has_a_page(tmp_path, name):
    result = RESULTS[name]()
    try:
        html = written(tmp_path, result, title="T")
    except TypeError as error:
        assert "a page takes a leaderboard" in str(error)  # noqa: PT017  # data are none
        assert isinstance(result, jaxeval.Battles)
        return
    data = data_of(html)
    assert data["boards"] or data["results"]
    assert html.count("<script") == 2


def test_a_board_and_what_its_audit_found(tmp_path, battles, board):
    audit = jaxeval.audit(battles, parts=["board", "rank_evidence"], n_resamples=N_RESAMPLES, progress=False)
    data = data_of(written(tmp_path, [board, audit], battles=battles))
    assert data["panels"][0] == "board"
    first, *parts = data["results"]
    assert first["title"] == "Can this leaderboard be believed?"
    assert first["notes"] == audit.verdict
    assert [part["title"] for part in parts[:2]] == list(audit.questions.values())


def test_a_front_has_a_figure_and_a_slider(tmp_path):
    front = RESULTS["ParetoFront"]()
    first, *others = data_of(written(tmp_path, front))["results"]
    assert [figure.split(",")[0] for figure in first["figures"]] == ["data:image/png;base64"]
    assert not any("sliding" in part for part in others)
    texts, tables = first["sliding"]["texts"], first["sliding"]["tables"]
    value = front._sliding()[1][texts[-1]]
    assert tables[-1]["columns"][1]["value"] == pytest.approx(value["net"].tolist(), rel=1e-4)
    assert value["model"].iloc[0] == front.quality.names[front.quality.estimate.argmax()]  # points are worth all
    assert front._sliding()[1][texts[0]]["model"].iloc[0] == front.quality.names[front.cost.estimate.argmin()]


def test_what_is_no_result(tmp_path, board):
    for wrong, message in (
        (3, "a page takes a leaderboard"),
        ([], "there is nothing to show"),
        ({}, "there is nothing to show"),
        (board.iloc[:0], "has no models"),
    ):
        with pytest.raises((TypeError, jaxeval.DataError), match=message):
            jaxeval.page(wrong, tmp_path / "page.html")
    with pytest.raises(jaxeval.DataError, match="made='yesterday' is no date"):
        jaxeval.page(board, tmp_path / "page.html", made="yesterday")
    with pytest.raises(OSError, match="No such file"):
        jaxeval.page(board, tmp_path / "none" / "page.html")


def test_styles_are_plain():
    assert "url(" not in style_text()
    assert "@import" not in style_text()


def test_days_on_another_scale_are_left_out(tmp_path, battles, board):
    """Neither a controlled board nor one of another gauge lends its ratings to a plain one."""
    anchored = board_of(battles, gauge=("model-1", 1500.0))
    history = with_board(
        with_board(None, anchored, pd.Timestamp("2026-09-11").date()), board, pd.Timestamp("2026-09-13").date()
    )
    (shown,) = data_of(written(tmp_path, board, history=history))["boards"]
    assert shown["history"]["dates"] == ["2026-09-13"]
    assert not any("was" in row for row in shown["rows"])
    assert "1 day of the history, the last 2026-09-11, is left out" in " ".join(shown["notes"])
    (again,) = data_of(written(tmp_path, board, earlier=anchored))["boards"]
    assert not any("was" in row for row in again["rows"])


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_past_of_a_controlled_board_is_its_own(tmp_path, with_length, order):
    _, *both = with_length
    given = [both[k] for k in order]
    history = with_board(None, both[1], pd.Timestamp("2026-09-11").date())
    boards = data_of(written(tmp_path, given, history=history, earlier=given))["boards"]
    for board in boards:
        assert all(row["was"]["rating"] == pytest.approx(row["rating"], abs=1e-3) for row in board["rows"])
        assert ("history" in board) == bool(board["controls"])


def test_models_that_a_page_has_no_room_for_switch_what_if_off(tmp_path, battles, board, monkeypatch):
    assert MOST_ROWS_IN_ALL == 20_000
    monkeypatch.setattr("jaxeval.pages.boards.MOST_ROWS_IN_ALL", 20)
    monkeypatch.setattr("jaxeval.pages.boards._FEWEST_ROWS", 1)
    boards = data_of(written(tmp_path, {f"b{k}": board for k in range(6)}, battles=battles))["boards"]
    assert boards[0]["what_if"] == "What-if is off: the page holds the first 3 of its 5 models only."
    assert min(boards[0]["pairs"]["models"]) >= 0


def test_dates_of_a_history_are_read_in_all_forms(tmp_path, board):
    history = with_board(None, board, pd.Timestamp("2026-09-11").date()).assign(date="20260911")
    (shown,) = data_of(written(tmp_path, board, history=history))["boards"]
    assert shown["history"]["dates"] == ["2026-09-11"]


@pytest.fixture(scope="module")
def games():
    """Battles of players."""
    votes = jaxeval.simulate_votes(2_000, 5, seed=0, details=True)
    sides = {"model_a": "player_1", "model_b": "player_2"}
    return jaxeval.Battles.from_pandas(votes.rename(columns=sides), **sides, keep=["language"])


class TestCompetitors:
    """A page says what is rated by the word that the data have for it."""

    @staticmethod
    def seen(html):
        """What stands on a page without its script."""
        return re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)

    def test_heads_facts_and_sentences(self, tmp_path, games):
        html = written(tmp_path, board_of(games), battles=games)
        assert '<th scope="col">Player</th>' in html
        assert "5 players \u00b7 2,000 votes" in self.seen(html)
        assert not re.search(r"\bmodels?\b(?!-)", self.seen(html), re.IGNORECASE)
        own = data_of(html)["competitor"]
        assert own == {"one": "player", "many": "players", "a_one": "a player", "head": "Player", "heads": "Players"}

    def test_the_scripts_take_it_from_the_data(self):
        """No text of a script calls what readers see a model; "model" alone is a kind of column, and of gauge."""
        lines = [line for line in script_text().splitlines() if not re.match(r"\s*(//|/?\*|const WRITTEN)", line)]
        texts = re.findall(r"""("[^"]*"|'[^']*'|`[^`]*`)""", "\n".join(line.partition(" // ")[0] for line in lines))
        parts = [re.sub(r"\$\{[^}]*\}", "", text) for text in texts]
        assert [text for text in parts if re.search(r"\b[Mm]odels?\b", text) and text != '"model"'] == []

    def test_of_fits_and_other_results(self, tmp_path, games):
        html = written(tmp_path, jaxeval.fit_bradley_terry(games))
        assert "no player of this board has an interval" not in html
        assert data_of(html)["competitor"]["many"] == "players"
        found = jaxeval.audit(games, parts=["board", "drift"], n_resamples=N_RESAMPLES, progress=False)
        assert data_of(written(tmp_path, found))["competitor"]["many"] == "players"
        assert data_of(written(tmp_path, found))["results"][1]["columns"][1]["title"] == "Player"

    def test_of_models(self, tmp_path, board):
        html = written(tmp_path, board)
        assert '<th scope="col">Model</th>' in html
        assert data_of(html)["competitor"]["head"] == "Model"

    def test_a_word_is_never_more_than_text(self, tmp_path, games):
        odd = games.filter(lambda votes: votes["target"] >= 0)
        odd = jaxeval.Battles.from_pandas(
            odd.to_pandas().rename(columns={"model_a": "x", "model_b": "y"}),
            model_a="x", model_b="y", target="target", competitor="<b>x</b>,</script>",
        )  # fmt: skip
        html = written(tmp_path, board_of(odd))
        assert '<th scope="col">&lt;b&gt;x&lt;/b&gt;</th>' in html
        assert html.count("</script>") == 2


@pytest.mark.slow
def test_three_hundred_models_in_thirty_categories_have_400_kb(tmp_path):
    from jaxeval.pages.page import data_of_page, write_page

    battles = jaxeval.simulate_battles(60_000, 300, seed=0)
    past = dict.fromkeys(("metadata", "earlier", "history", "ends", "labels"))
    fit = jaxeval.fit_bradley_terry(battles)
    data = data_of_page(fit, battles=battles, title="Many", made="2026-09-13", **past)
    (board,) = data["boards"]
    rng = np.random.default_rng(0)
    boards = []
    for k in range(30):
        rows = [
            {**row, "rating": row["rating"] + rng.normal(0, 9), "votes": int(rng.integers(9, 999))}
            for row in board["rows"]
        ]
        rows = [{**row, "lower": row["rating"] - rng.uniform(5, 50), "upper": row["rating"] + 20} for row in rows]
        models = np.roll(board["pairs"]["models"], k).tolist()
        pairs = {**board["pairs"], "models": models}
        boards.append({**board, "id": f"c{k}", "title": f"c{k}", "rows": rows, "pairs": pairs, "n_votes": 1_000 - k})
    write_page({**data, "boards": boards}, tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text("utf-8")
    assert 300_000 < len(html) <= 400_000
    shown = data_of(html)["boards"]
    assert [bool(own["pairs"]) for own in shown[:2]] == [True, True]  # those with the most votes
    assert sum(bool(own["pairs"]) for own in shown) < 30
    for own, given in zip(shown, boards, strict=True):
        assert (own["what_if"] is None) == bool(own["pairs"])
        assert any("No room on a page" in note for note in own["notes"]) == (not own["pairs"])
        for row, exact in zip(own["rows"], given["rows"], strict=True):
            assert f"{row['rating']:.1f}" == f"{exact['rating']:.1f}"
            assert f"{row['rating'] - row['lower']:.1f}" == f"{exact['rating'] - exact['lower']:.1f}"
            assert (row["votes"], row["model"]) == (exact["votes"], exact["model"])
