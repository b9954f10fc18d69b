"""What reaches a terminal: no character of a name is obeyed, and all tables look alike."""

import ast
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import run

import jaxeval
from jaxeval.cli.console import PlainConsole
from jaxeval.show.cells import cell_texts, with_kinds
from jaxeval.show.screens import print_answer
from jaxeval.show.shown import Answer

EVIL = ["e\x1b]0;title\x07", "c1\x9b31m", "back\x08\x08", "bidi\u202eoverride", "cr\rname", "two\nlines", "[bold]:x:"]
CALLED = r"\b(click\.s?echo|print|Text|warnings\.warn|Console)\s*\("
OBEYED = "\x1b\x9b\x07\x08\r\u202e"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Votes, scores, judged answers, verdicts and judged battles of models with such names."""
    folder = tmp_path_factory.mktemp("evil")
    rng = np.random.default_rng(0)
    names = np.array([*EVIL, "plain"])
    n, m = 1200, len(names)
    a = rng.integers(m, size=n)
    b = (a + rng.integers(1, m, size=n)) % m
    winner = rng.choice(["model_a", "model_b", "tie"], n)
    column = "co\x1b[2Jl"
    votes = pd.DataFrame({"model_a": names[a], "model_b": names[b], "winner": winner, column: rng.choice(EVIL[:2], n)})
    votes.to_parquet(folder / "votes.parquet")
    scores = pd.DataFrame({"model": names, "gold": rng.normal(size=m), "ev\x1b[1mil": rng.normal(size=m)})
    scores.to_parquet(folder / "scores.parquet")
    verdicts = pd.DataFrame(
        {"model": names[a], "judge": rng.choice(EVIL[:2], n), "anchor": "an\x1b[0mchor", "verdict": rng.choice(
            ["win", "tie", "loss"], n)}
    )  # fmt: skip
    verdicts.to_parquet(folder / "verdicts.parquet")
    answers = pd.DataFrame({"model": names[a[:200]], "judgment": rng.integers(2, size=200)})
    answers["human"] = rng.integers(2, size=200)
    answers.to_parquet(folder / "answers.parquet")
    return folder


COMMANDS = [
    ["leaderboard", "{0}/votes.parquet", "--resamples", "20", "--by", "co\x1b[2Jl"],
    ["next", "{0}/votes.parquet", "--k", "20"],
    ["leaderboard", "{0}/votes.parquet", "--gauge", "nobody\x1b[2J=1"],
    ["leaderboard", "{0}/votes.parquet", "--by", "co\x1b[2Jx"],
    ["leaderboard", "{0}/no\x1b[2J.parquet"],
    ["meta", "{0}/scores.parquet", "--gold", "gold", "--resamples", "20", "--few-pairs"],
    ["anchored", "{0}/verdicts.parquet", "--resamples", "20"],
    [
        "judge",
        "--calibration",
        "{0}/answers.parquet",
        "--test",
        "{0}/answers.parquet",
        "--model",
        "model",
        "--resamples",
        "20",
    ],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: f"{arguments[0]}-{len(arguments)}")
def test_no_command_prints_what_a_terminal_obeys(files, arguments):
    result = run(*[text.format(files) for text in arguments])
    assert not isinstance(result.exception, Exception) or isinstance(result.exception, SystemExit), result.exception
    shown = result.stdout + result.stderr
    assert not set(OBEYED) & set(shown)
    assert "\\x1b" in shown


def test_names_stay_in_their_cells():
    """Escapes are laid out, not added to a finished table; a name has no second line to look like a row."""
    written = io.StringIO()
    table = pd.DataFrame({"model": [*EVIL, "plain"], "n_votes": range(len(EVIL) + 1)})
    print_answer(Answer("Tit\x1ble", table), PlainConsole(file=written, width=80))
    lines = written.getvalue().rstrip("\n").split("\n")
    assert lines[0].strip() == "Tit\\x1ble"
    assert lines[1].split() == ["Model", "Votes"]
    assert len(lines) == 2 + len(table)
    assert len({len(line) for line in lines[1:]}) == 1
    assert "[bold]:x:" in written.getvalue()


def test_only_one_module_prints():
    """Everything that is printed goes through the console or `tell`, which escape."""
    home = Path(jaxeval.__file__).parent
    found = []
    for file in home.rglob("*.py"):
        text = file.read_text()
        if file.name in ("terminal.py", "console.py") or not re.search(CALLED, text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name in ("click.echo", "click.secho", "print", "Text", "warnings.warn", "Console"):
                    found.append(f"{file.relative_to(home)}: {name}")
    # The words of the first and of the warning are constants, and the others escape what they print.
    assert sorted(found) == [
        *["data/published_formats.py: warnings.warn"] * 2,  # on formats of installed packages
        "execution/progress.py: Console",
        *["execution/progress.py: print"] * 2,  # of a log, a unit and numbers
        *["integrations/inspect_extension.py: warnings.warn"] * 2,  # of logs, with the command to run
        "kernels/batch/programs.py: warnings.warn",
        "show/shown.py: print",
    ]


@pytest.mark.parametrize(
    ("name", "values", "texts"),
    [
        ("x", [4.337e-19, 0.5, -4.337e-19], ["0.000", "0.500", "0.000"]),  # rounding errors
        ("x", [0.0001234567, 0.5], ["0.0001", "0.500"]),
        ("x", [123456.7, np.inf, np.nan], ["123,457", "inf", "-"]),
        ("rating", [1012.34, 998.76, np.inf], ["1012", "999", "unrated"]),
        ("rating_lower", [-np.inf, 98.765], ["-inf", "98.8"]),
        ("x weight", [0.002493, 5.0, 12_345.6], ["0.002493", "5", "12,346"]),
        ("mae elo", [12.3456, -0.01], ["12.3", "0.0"]),
        ("p_value", [0.03456, 0.00012345, 1.0], ["0.035", "0.00012", "1"]),
        ("x_lower percent", [0.01234, 0.5], ["1.23%", "50%"]),
        ("n_votes", [1_234_567.0, 3.0], ["1,234,567", "3"]),
        ("x time", [0.01234, 123.4, np.inf], ["0.0123", "123", "inf"]),
        ("x money", [12.5, 3.0, np.nan], ["12.50", "3.00", "-"]),
        ("wins", [61.333, 6.0], ["61.3", "6.0"]),
        ("votes_to_swap", [np.inf, 120.0], ["never", "120"]),
        ("share", pd.array([0.25, None], "Float64"), ["0.250", "-"]),
    ],
)
def test_numbers_are_spelled_by_their_kind(name, values, texts):
    name, _, kind = name.partition(" ")
    frame = pd.DataFrame({name: values})
    declared = with_kinds(frame, **{kind: name.removesuffix("_lower")}) if kind else frame
    assert cell_texts(declared) == [texts]
    assert cell_texts(declared.rename_axis("model").reset_index())[1] == texts
    with pytest.raises(ValueError, match="no kind of quantity is called colour"):
        with_kinds(frame, colour=name)


def test_sentences_are_folded_after_escaping():
    written = io.StringIO()
    print_answer(Answer("", warnings=["name\x1b " * 10]), PlainConsole(file=written, width=40))
    assert max(map(len, written.getvalue().split("\n"))) <= 40
    assert "\x1b" not in written.getvalue()


class TestBars:
    @pytest.fixture(scope="class")
    @classmethod
    def board(cls):
        return jaxeval.leaderboard(jaxeval.simulate_battles(3000, 8), n_resamples=20)

    @pytest.mark.parametrize("width", [80, 96, *range(100, 105), 120, 160])
    @pytest.mark.parametrize("name", ["model-1", "a-model-with-a-name-of-40-characters-2026"])
    def test_bars_are_whole_or_absent(self, board, width, name):
        table = board.assign(model=board["model"].astype(str).replace("model-1", name))
        table.attrs = board.attrs
        written = io.StringIO()
        print_answer(table.answer, PlainConsole(file=written, width=width))
        wide = io.StringIO()
        print_answer(table.answer, PlainConsole(file=wide, width=400))

        def drawn(text):
            bars = ("".join(sign for sign in line if sign in "─●") for line in text.split("\n"))
            return [bar for bar in bars if bar]

        assert len(drawn(wide.getvalue())) == 8
        assert drawn(written.getvalue()) in ([], drawn(wide.getvalue()))
        assert width < 120 or drawn(written.getvalue())
