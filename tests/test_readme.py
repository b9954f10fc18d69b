"""Every line of the README runs, and prints what it says; its numbers are those of the committed runs."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import pages
import pytest
from command_line import run as run_command
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from jaxeval.cli.main import main
from jaxeval.plots.style import COLOURS

pytestmark = pytest.mark.usefixtures("all_on_the_host")

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
#: Questions, calls and links of the one table.
ROWS = re.findall(r"^\| (.+?) \| `(jaxeval .+?)` \| \[.+?\]\((.+?)\) \|$", TEXT, re.MULTILINE)
CALLS = [call for _, call, _ in ROWS]
TEST_COMMAND = "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest"
FIRST_COMMAND = "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/jaxeval leaderboard examples/arena.csv"


def test_a_passer_by_reads_it_to_the_end():
    assert len(TEXT.splitlines()) <= 93


def test_what_it_shows_is_what_a_run_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = pages.run(README)
    assert tried == len(re.findall(r"^>>> |^\$ ", TEXT, re.MULTILINE)) > 5
    assert failed == 0  # what differs is printed
    # The figure below the block is the one that it draws: as large, and with its points in the same places.
    (committed,) = re.findall(r"^!\[.*\bseven\b.*\]\((.+)\)$", TEXT, re.MULTILINE)
    size, points = points_of(ROOT / committed)
    drawn_size, drawn = points_of(tmp_path / "arena.png")
    assert size == drawn_size
    assert len(points) == 7
    np.testing.assert_allclose(points, drawn, atol=size[1] / 200)


def points_of(path):
    """The size of a figure of a board, and the middles of its points, row by row and column by column in pixels."""
    image = imread(path)[..., :3]
    marked = np.abs(image - to_rgb(COLOURS[0])).max(axis=2) < 0.05
    rows = np.flatnonzero(marked.any(axis=1))
    groups = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    return image.shape, [(own.mean(), np.flatnonzero(marked[own].any(axis=0)).mean()) for own in groups]


def test_the_two_commands():
    """Those of .ci/run, which makes both environments; the demo's end is run here."""
    (lines,) = [block.splitlines() for language, block, _ in pages.blocks(TEXT) if language == "sh"]
    assert lines == [FIRST_COMMAND, TEST_COMMAND]
    assert {language for language, *_ in pages.blocks(TEXT)} == {"sh", "console", "python"}


def test_the_demo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_command("demo")
    assert result.exit_code == 0, result.output
    assert "simulating 25,000 votes between 55 models" in result.stderr
    assert (tmp_path / "leaderboard.png").exists()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The example files of the table, small."""
    found = re.search(r"`(jaxeval simulate all --out simulated)` writes the files of these calls", TEXT)
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(f"{found[1]} --battles 300 --models 7")
    return folder / "simulated"


def run(line):
    words = shlex.split(line)
    assert words[0] == "jaxeval"
    result = run_command(*words[1:])
    assert result.exit_code == 0, result.output
    return result.stdout


def command_of(words):
    """The command that the words of a call name, and the words after its name."""
    command, *rest = main.commands[words[1]], *words[2:]
    if isinstance(command, type(main.commands["soft-elo"])) and rest[0] in command.commands:
        command, *rest = command.commands[rest[0]], *rest[1:]
    return command, rest


def test_every_call_of_the_table_is_understood(files, monkeypatch):
    """Its options are there, and so are its files."""
    monkeypatch.chdir(files)
    for call in CALLS:
        command, rest = command_of(shlex.split(call))
        command.make_context(command.name, rest).close()


#: Commands of the table whose calls compile programs that no other call shares, or make many tables.
SLOW = {"audit", "compare-boards", "horizons", "index", "leaderboard", "panel", "rankings", "soft-elo"}


@pytest.mark.parametrize(
    "call", [pytest.param(call, marks=pytest.mark.slow) if call.split()[1] in SLOW else call for call in CALLS]
)
def test_every_call_of_the_table_runs(files, monkeypatch, call):
    monkeypatch.chdir(files)
    command, _ = command_of(shlex.split(call))
    fewer = ["--resamples 50"] * any("--resamples" in parameter.opts for parameter in command.params)
    level = ["--level 0.8"] * ("soft-elo" in call)  # so few models allow no more
    assert len(run(" ".join([call, *fewer, *level])).splitlines()) > 5


def test_a_call_for_every_command():
    """But those that make examples, and that say the same in another way."""
    assert len(ROWS) > 10
    assert len(re.findall(r"^\| .* \| `jaxeval ", TEXT, re.MULTILINE)) == len(ROWS)
    assert {*main.commands} - {call.split()[1] for call in CALLS} == {"demo", "page", "simulate", "plan-scores"}


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)\s]+)\)", TEXT)
    assert [link for link in links if not (ROOT / link.split("#")[0]).exists()] == []


def test_speeds_are_those_of_the_committed_runs():
    warm, whole = (
        json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())["boards"].values()
        for name in ("bootstrap", "whole_process")
    )

    def rounded(ratio):
        return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"

    expected = [
        (f"{a['votes']:,} votes, {a['models']} models", rounded(a["peers"]["choix ilsr"]["ratio"]),
         rounded(b["choix"]["first_ratio"]), rounded(b["choix"]["ratio"]))
        for a, b in zip(warm, whole, strict=True)
    ]  # fmt: skip
    rows = re.findall(
        r"^\| (.* votes, .* models) \| (\S+) times faster \| (\S+) times.*?, then (\S+) times \|$", TEXT, re.M
    )
    assert rows == expected


def test_speeds_of_other_estimators_are_those_of_the_committed_runs():
    """The tables of docs/speed.md, each row of which names its file."""
    text = (ROOT / "docs/speed.md").read_text(encoding="utf-8")

    def results(name):
        return json.loads((ROOT / f"benchmarks/results/{name}.json").read_text())

    judge, anchored, meta = results("judge")["study"], results("anchored"), results("meta_evaluation")
    expected = [
        results("soft_elo")["board"]["ratio"],
        *(judge[f"{name}_ratio"] for name in ("plain_loop", "vectorised_loop", "ppi_python")),
        *(anchored[f"{name}_ratio"] for name in ("scipy_and_pingouin", "numpy_loop")),
        results("style_control")["scikit_learn_ratio"],
        *(meta[f"{name}_ratio"] for name in ("scipy_and_numpy_loop", "lean_numpy_loop")),
        results("reference_study")["loop_ratio"],
    ]
    assert re.findall(r"\| (\d+) \| `\w+\.json` \|$", text, re.M) == [f"{ratio:.0f}" for ratio in expected]
    boards = results("bootstrap")["boards"].values()
    warm = re.findall(r"^\| .* models \| (\S+) times faster \| (\S+) times \| (\S+) times \|$", text, re.M)
    assert [row[:2] for row in warm] == [
        tuple(f"{board['peers'][peer]['ratio']:.0f}" for peer in ("choix ilsr", "evalica")) for board in boards
    ]
    fits = results("fit")["boards"].values()
    exact = ("choix ilsr", "evalica", "scikit-learn", "arena-rank")
    slower = [fit["jaxeval_seconds"]["median"] / min(fit["peers"][name]["median"] for name in exact) for fit in fits]
    assert f"A single fit takes {min(slower):.1f} to {max(slower):.1f} times" in text
