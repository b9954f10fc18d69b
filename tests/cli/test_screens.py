"""Every command's screen, in three widths: the answer first, whole numbers, at most a screen, harmless names."""

import io
from functools import cache

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from command_line import said
from hostile import NAMES
from rich.cells import cell_len

import jaxeval
from jaxeval.accuracy.report import judge_report
from jaxeval.anchored.diagnostics import diagnose_anchors
from jaxeval.anchored.pooling import anchored_answer, pooled_scores
from jaxeval.cli.console import PlainConsole
from jaxeval.cli.evaluators import study_evaluators, study_references
from jaxeval.cli.main import main
from jaxeval.lab.judge_diagnostics import held_out_answer
from jaxeval.show import screens
from jaxeval.show.boards import board_part, leaderboard_answer
from jaxeval.show.cells import cell_text
from jaxeval.show.screens import columns_of, print_answer
from jaxeval.show.shown import Answer, Column, Part
from jaxeval.softelo.calibration import prediction_answer

WIDTHS = (60, 100, 160)
LINES = 40
OBEYED = "\x1b\x9b\x07\x08\r\u202e\u200b"
DRAWN = {"n_resamples": 20, "level": 0.9, "seed": 0, "progress": False}


_TEXTS = {}


def drawn(screen, width, full=False):
    """What `shown` gives for a screen that is kept, laid out once."""
    key = id(screen), width, full
    if key not in _TEXTS:
        _TEXTS[key] = shown(screen, width, full)
    return _TEXTS[key]


def shown(screen, width, full=False, **options):
    written = io.StringIO()
    print_answer(screen, PlainConsole(file=written, width=width, **options), full)
    return written.getvalue()


@cache
def leaderboard():
    return leaderboard_answer(jaxeval.leaderboard(jaxeval.simulate_battles(6000, 50), n_resamples=20))


@cache
def slices():
    battles = jaxeval.simulate_battles(3000, 8)
    return leaderboard_answer(jaxeval.leaderboard(battles, by="language", n_resamples=20))


@cache
def comparison():
    """Of more rows than a screen has."""
    battles = jaxeval.simulate_battles(1200, 6)
    found = jaxeval.compare_boards(battles.filter(np.arange(1200) < 1000), battles, n_resamples=20)
    first, *others = found.answer.parts
    columns = [column._replace(cells=[*column.cells] * 9) for column in first.table]
    licences = Part(None, pd.DataFrame({"licence": ["open"] * 54}))
    columns += [column._replace(order=8) for column in columns_of(licences)]
    return found.answer._replace(parts=[first._replace(table=columns), *others])


@cache
def judge(pairs=()):
    answers = jaxeval.simulate_judged_answers(
        [0.8, 0.6, 0.7], [[0.9, 0.9], [0.9, 0.4], [0.9, 0.9]], [[0.9, 0.9], [0.9, 0.95], [0.9, 0.9]], 300, seed=2
    )
    options = {"judgment": ["judge-1", "judge-2"], "model": "model", "item": "item"}
    labelled, judged = jaxeval.JudgedAnswers.from_pandas(answers, **options).split(0.4)
    if pairs:
        comparison = jaxeval.compare_models(labelled, judged, list(pairs), n_resamples=20)
        return judge_report(comparison.accuracy, comparison).answer
    accuracy = jaxeval.judge_accuracy(labelled, judged, n_resamples=20)
    return judge_report(accuracy).answer


@cache
def soft_elo():
    battles = jaxeval.simulate_judged_battles(1000, 12, noise=2.0, seed=4)
    return held_out_answer(
        battles, {"progress": False}, level=None, splits=5, methods=(), cluster=None, strata=None, by=None,
        length_a=None, length_b=None, budget=False, smoothing=False, ridge=0.01, n_resamples=20, seed=0, base=1500.0,
    )  # fmt: skip


@cache
def predictions():
    battles = jaxeval.simulate_judged_battles(1000, 12, noise=2.0, seed=4)
    frame = pd.DataFrame({"model_a": battles.models[battles.model_a], "model_b": battles.models[battles.model_b],
                          "gap": battles.score_difference, "human": battles.human})  # fmt: skip
    new = frame["model_a"].eq("model-03") | frame["model_b"].eq("model-03")
    options = {"score_difference": "gap", "label_coding": "a_wins_1"}
    known, other = (jaxeval.JudgedBattles.from_pandas(part, **options) for part in (frame[~new], frame[new]))
    calibration = jaxeval.SoftEloCalibration.fit(known)
    return calibration.answer._replace(table=None), prediction_answer(calibration.predict(other))


@cache
def anchored():
    rng = np.random.default_rng(0)
    rows = [(f"m{m}", f"j{j}", a, i, r, rng.choice(["win", "tie", "loss"], p=[m / 8 + 0.05, 0.1, 0.85 - m / 8]))
            for m in range(6) for j in range(2) for a in "xy" for i in range(20) for r in range(2)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["model", "judge", "anchor", "item", "run", "verdict"])
    verdicts = jaxeval.AnchoredVerdicts.from_pandas(frame)
    scores = jaxeval.anchored_scores(verdicts, ["model", "judge", "anchor"])
    judges = jaxeval.screen_judges(verdicts, -1.0, n_resamples=20)
    tables = {"scores": scores, "judges": judges.table.reset_index(), "pooled": pooled_scores(verdicts, screen=judges),
              "anchor_coverage": diagnose_anchors(scores).coverage.reset_index()}  # fmt: skip
    return anchored_answer(tables, {"judges": "Reliability", "pooled": "Mean"}, ["read"], judges.warnings)


@cache
def meta():
    rng = np.random.default_rng(0)
    gold = np.arange(16) * 10.0
    columns = {"gold": gold, **{f"judge {k}": gold / 10 + rng.normal(0, k + 1, 16) for k in range(4)}}
    return pd.DataFrame({"model": [f"m{k}" for k in range(16)], **columns})


@pytest.fixture(scope="module")
def evaluators(tmp_path_factory):
    """The screen of a study that reads a file."""
    path = tmp_path_factory.mktemp("studies") / "scores.csv"
    meta().to_csv(path, index=False)
    return study_evaluators(
        path, gold="gold", model=None, evaluators=(), top=5, improvements=(1.0,), agreement=0.75, n_tiers=4,
        with_curves=False, few_pairs=False, deltas=None, drawn=DRAWN,
    )  # fmt: skip


@pytest.fixture(scope="module")
def references(tmp_path_factory):
    path = tmp_path_factory.mktemp("studies") / "votes.parquet"
    jaxeval.simulate_votes(4000, 14).to_parquet(path)
    return study_references(
        path, references=(), sets=(), model_a="model_a", model_b="model_b", winner=None, both_bad="half", item=None,
        cluster=None, strata=None, deltas=(4.0, 12.0), budgets=(10, 40), n_repeats=3, n_tiers=4, few_pairs=False,
        drawn=DRAWN,
    )  # fmt: skip


SCREENS = {
    "leaderboard": (leaderboard, "model-01 is first with "),
    "slices": (slices, "language = "),
    "compare-boards": (comparison, "none of 6 models moved at the 95% level; the largest difference is that of "),
    "judge": (judge, "Believe PPI++"),
    "comparison": (lambda: judge((("model-1", "model-2"), ("model-1", "model-3"))), "Believe PPI++"),
    "soft-elo": (soft_elo, "The judge's soft ratings of models held out are "),
    "calibrate": (lambda: predictions()[0], "hard: 11 anchors"),
    "predict": (lambda: predictions()[1], "model-03 rates "),
    "anchored": (anchored, "m5 is rated highest above the reference: "),
    "evaluators": (None, "judge 0 ranks most like gold"),
    "references": (None, ""),
}


#: Screens whose results take longest to make.
LONG = ("soft-elo", "references")


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in SCREENS])
def screen(request):
    make, answer = SCREENS[request.param]
    return (make() if make else request.getfixturevalue(request.param)), answer


@pytest.mark.parametrize("width", WIDTHS)
class TestEveryScreen:
    def test_begins_with_the_answer(self, screen, width):
        assert " ".join(drawn(screen[0], width).split()).startswith(screen[1].strip())

    def test_is_at_most_a_screen_and_as_wide(self, screen, width):
        lines = drawn(screen[0], width).splitlines()
        assert len(lines) <= LINES
        assert max(map(cell_len, lines)) <= width

    def test_in_full_lacks_nothing(self, screen, width):
        text = drawn(screen[0], width, full=True)
        flat = "".join(text.split())
        assert "--full" not in text
        for sentence in (*screen[0].sentences, *screen[0].advice, *screen[0].warnings):
            assert "".join(sentence.split()) in flat
        for part in screen[0].parts:
            assert "".join(part.title.split()) in flat if part.title else True
            if width == 160:
                cells = [cell for column in columns_of(part)[:2] for cell in column.cells if "\n" not in cell]
                assert all("".join(cell.split()) in flat for cell in cells)

    def test_without_colour_it_says_the_same(self, screen, width):
        plain = drawn(screen[0], width)
        coloured = shown(
            screen[0], width, force_terminal=True, color_system="standard", height=LINES, legacy_windows=False
        )
        assert "\x1b[" in coloured
        assert "\x1b" not in plain
        text = "".join(part.partition("m")[2] if k else part for k, part in enumerate(coloured.split("\x1b[")))
        assert text == plain


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "make", [leaderboard, lambda: predictions()[1], anchored, pytest.param(soft_elo, marks=pytest.mark.slow)]
)
def test_ratings_have_the_same_headings(make, width):
    """Of every command that rates."""
    own = next(line for line in drawn(make(), width, full=True).splitlines() if "+/-" in line).split()
    at = own.index("Model")
    assert own[at : at + 3] == ["Model", "Rating", "+/-"]


@cache
def hostile():
    rng = np.random.default_rng(0)
    names = np.array([name for name in NAMES if name])
    names = np.append(names, [f"model-{k}" for k in range(len(names), 50)])  # a board as large as the first above
    a = rng.integers(len(names), size=6000)
    b = (a + rng.integers(1, len(names), size=6000)) % len(names)
    votes = pd.DataFrame({"model_a": names[a], "model_b": names[b], "winner": rng.choice(["model_a", "model_b"], 6000)})
    return leaderboard_answer(jaxeval.leaderboard(jaxeval.Battles.from_pandas(votes), n_resamples=20))


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_names_are_shown_and_not_obeyed(width):
    screen = hostile()
    text = shown(screen, width, full=True)
    assert not set(OBEYED) & set(text)
    assert "[bold red]rich[/]" in text
    assert max(map(cell_len, text.splitlines())) <= width
    assert len(shown(screen, width).splitlines()) <= LINES


def test_what_is_known_of_models_besides_is_shown():
    board = jaxeval.leaderboard(jaxeval.simulate_battles(2_000, 4, seed=0), n_resamples=20, rank_at_most=1)
    joined = board.assign(organization=["red\x1b", None, "blue", "blue"])
    joined.attrs = board.attrs
    text = shown(leaderboard_answer(joined), 160)
    assert "P rank 1  Organization" in text
    assert "1  red\\x1b" in text


def test_a_pipe_gets_every_row_and_column(tmp_path):
    """Where no terminal is, nothing is left out, and a row is a line, however long its names are."""
    votes = jaxeval.simulate_votes(3000, 60, seed=0)
    votes.to_parquet(tmp_path / "votes.parquet")
    models = sorted({*votes["model_a"], *votes["model_b"]})
    about = pd.DataFrame({"model": models, "about": [f"{name} {'word ' * 40}end" for name in models]})
    about.to_csv(tmp_path / "about.csv", index=False)
    files = [str(tmp_path / name) for name in ("votes.parquet", "about.csv")]
    command = ["leaderboard", files[0], "--metadata", files[1], "--resamples", "20", "--no-cache"]
    text = CliRunner().invoke(main, command, catch_exceptions=False).stdout
    assert sum("word end" in line for line in text.splitlines()) == len(models)
    assert all(head in text for head in ("Rank", "Spread", "Rating", "+/-", "Votes", "Tier", "About"))
    assert "more models" not in text
    assert "no room for" not in text


@pytest.mark.parametrize("table", [
    {"model": [name for name in NAMES if name == name.strip() and not {*name} & {*"\n\t"}]},
    {"model": ["模型", "a"], "rating": [1.5, -20.25], "note": ["", "wide 模"]},
    {"model": ["a", "b", "c"], "chart": ["  -o-  ", " --o-- ", ""], "rating": [1.5, 20.25, 3.0]},
    {"model": ["two\nlines", " spaces "], "n": [1, 2]},
])  # fmt: skip
def test_a_pipe_gets_what_rich_prints(table, monkeypatch):
    screen = Answer("Table", pd.DataFrame(table))

    def all_shown():
        return [shown(screen, 160, for_programs=True), *(shown(screen, width) for width in (160, 40, 20))]

    plain = all_shown()
    monkeypatch.setattr(screens, "_as_text", lambda fitted, n_rows, room: None)
    assert plain == all_shown()


def test_cells_of_several_lines_keep_them(evaluators):
    text = drawn(evaluators, 160, full=True)
    assert "\\n" not in text
    assert "observed" in text


def laid_out(width, *parts, **said):
    return shown(Answer("", parts=parts, **said), width)


class TestRoom:
    COLUMNS = (Column("A", ["x" * 20] * 3), Column("B", ["y" * 20] * 3, order=2), Column("C", ["z" * 20] * 3, order=1))

    def test_columns_that_matter_least_go_first(self):
        part = Part(None, self.COLUMNS)
        assert "no room" not in laid_out(64, part)
        text = laid_out(63, part)
        assert "no room for: B" in text
        assert "z" * 20 in text
        assert "no room for: C, B" in laid_out(40, part)

    def test_narrow_columns_take_the_room_that_a_wide_one_leaves(self):
        text = laid_out(50, Part(None, [*self.COLUMNS[:2], Column("C", ["z" * 40] * 3, order=1)]))
        assert "y" * 20 in text
        assert "no room for: C" in text

    def test_rows_and_tables_beyond_a_screen_are_counted(self):
        def part(n, title, more=False):
            return Part(title, pd.DataFrame({"n": range(n)}), rows="number", more=more)

        text = laid_out(80, part(100, "one"), part(5, "two", more=True), sentences=["answer"])
        assert "... and 68 more numbers (--full prints all, --out writes all)" in text
        assert "--full prints 1 more table: two" in text
        assert len(text.splitlines()) == LINES - 1
        many = laid_out(80, *(part(100, f"slice {k}") for k in range(30)))
        assert "more tables: slice" in many
        assert len(many.splitlines()) <= LINES

    def test_rows_that_are_asked_for_are_shown(self):
        text = laid_out(80, Part(None, pd.DataFrame({"n": range(100)}), top=70))
        assert "69" in text
        assert "... and 30 more rows (--out writes all)" in text


def test_an_interval_is_one_column_and_nothing_known_is_none():
    table = pd.DataFrame({"j": ["a", "b"], "x": [0.5, 0.25], "x_lower": [0.25, np.nan], "x_upper": [0.75, np.nan],
                          "y": np.nan, "p_value": [0.012345, 1e-20]})  # fmt: skip
    columns = columns_of(Part(None, table))
    assert [column.head for column in columns] == ["J", "X", "P value"]
    assert [list(column.cells) for column in columns[1:]] == [["0.500 [0.250, 0.750]", "0.250"], ["0.012", "1e-20"]]


class TestWarnings:
    def test_of_a_kind_are_grouped_and_counted(self):
        warnings = [f"model-{k}: 3 of {k} votes are odd" for k in range(7)]
        text = " ".join(laid_out(160, warnings=[*warnings, "other", "other"]).split())
        expected = (
            "warning, 7 times: model-0: 3 of 0 votes are odd (likewise model-1, model-2, model-3, model-4 and 2 more)"
        )
        assert text == f"{expected} warning: other"

    def test_in_full_each_stands_once(self):
        text = shown(Answer("", warnings=["a: 1 x", "b: 2 x", "a: 1 x"]), 160, full=True)
        assert text.splitlines() == ["warning: a: 1 x", "warning: b: 2 x"]

    def test_beyond_a_screen_are_counted(self):
        text = laid_out(100, warnings=[f"{letter} {'word ' * 30}" for letter in "abcdefghijklmnopqrst"])
        assert "more warnings (--full prints all)" in text
        assert len(text.splitlines()) <= LINES


@pytest.mark.parametrize("value", [pd.NA, pd.NaT, None, float("nan")])
def test_what_is_missing_is_a_dash(value):
    assert cell_text(value) == "-"


@pytest.mark.parametrize("width", WIDTHS)
def test_a_board_rests_on_one_line_of_method(width):
    """And --full prints the rest."""
    short, full = (drawn(leaderboard(), width, full) for full in (False, True))
    method = "20 resamples, 95% intervals, seed 0, mean rating 1000"
    (line,) = [line for line in short.splitlines() if method in line]
    assert line.endswith("; --full says how") == (width > 70)
    assert "dense method" not in short
    assert "dense method" in full
    assert "20 multinomial resamples, seed 0; 95% percentile intervals" in " ".join(full.split())


def test_notes_push_out_neither_votes_nor_bars():
    rows = {"rank": [1, 2], "spread": ["1-1", "2-2"], "vote_count": [900, 800], "tier": [1, 2]}
    ratings = {"rating": [1010.0, 990.0], "lower": [1000.0, 980.0], "upper": [1020.0, 1000.0]}
    notes = ["", "no rating in 40.0% of resamples"]
    part = board_part(None, pd.DataFrame({"model": ["a", "b"], **ratings, **rows, "notes": notes}))
    text = shown(Answer("", parts=[part]), 80)
    assert "●" in text
    assert {"Rank", "Spread", "Model", "Rating", "+/-", "Votes", "Tier"} <= set(text.split())
    assert "no room for: Notes" in text
    assert "no rating in 40.0% of resamples" in shown(Answer("", parts=[part]), 120)


def test_a_printed_board_holds_what_a_reader_looks_for(capsys):
    board = jaxeval.bootstrap(jaxeval.simulate_battles(6000, 50), 20)
    table = jaxeval.leaderboard(board).iloc[0]
    print(board)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{table['model']} ")
    (at,) = [k for k, line in enumerate(lines) if line.startswith("model ")]
    settings, head, row = lines[at - 1 : at + 2]
    assert settings == "95% intervals, seed 0, mean rating 1000"
    assert head.split() == ["model", "rank", "rank_range", "rating", "lower,", "upper", "n_battles", "tier"]
    cells = row.replace(", ", ",").split()
    assert cells[:3] == [table["model"], "1", f"1-{table['rank_worst']}"]
    assert cells[3:] == [
        f"{table['rating']:.0f}", f"{table['lower']:.0f},{table['upper']:.0f}",
        f"{table['vote_count']:,}", "1",
    ]  # fmt: skip


def test_reliability_of_constants_shows_its_status(capsys):
    result = jaxeval.icc3([[1, 1, 1]] * 6)
    print(result)
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "the reliability is not known: items do not vary"
    assert said.splitlines()[3].split()[0] == "status"
    assert said.splitlines()[4].startswith("items do not vary")


def test_tables_of_a_plan_and_an_audit_explain_themselves(tmp_path):
    """Propensities stay in the file."""
    jaxeval.simulate_votes(600, 4, seed=0).to_csv(tmp_path / "votes.csv", index=False)
    text = said("next", tmp_path / "votes.csv", "--k", 20, "--out", tmp_path / "plan.csv")
    assert "propensit" not in text.split("Expected intervals")[0].lower()
    assert {"propensity", "weight"} <= set(pd.read_csv(tmp_path / "plan.csv"))
    text = said("audit", tmp_path / "votes.csv", "--parts", "board,fewest_votes")
    assert "dropped, flipped, added: so many votes changed in this way put the one below above" in text
