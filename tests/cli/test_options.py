"""All commands: options of one name are one option, stand in one order, and say what they are for."""

import re
from collections import defaultdict
from pathlib import Path

import click
import pytest
from command_line import run

import jaxeval
from jaxeval.cli.command_table import COMMANDS, ROWS
from jaxeval.cli.main import main
from jaxeval.options.field import SECTIONS

#: What differs between commands under one name, and why.
OTHERWISE = {
    ("--battles", None): "demo makes votes, and simulate other things, too",
    ("--base", "default"): "Soft-Elo's papers count from 1500",
    ("--difference", None): "next: in Elo, and of a plan only; plan-scores: in points",
    ("--gate", "help"): "compare-scores decides, and plan-scores plans",
    ("--human", "metavar"): "agreement takes a column for each rater",
    ("--human", "type"): "agreement takes a column for each rater",
    ("--level", "default"): "conformal intervals take the level that the calibration models support",
    ("--resamples", "default"): "accuracies are cheap, an audit resamples many boards",
    ("--resamples", "type"): "what the intervals of each need at least",
    ("--ridge", "default"): "a judge's ratings are fitted on few battles of each model",
    ("--min-votes", "default"): "merge: one human label makes a model one of the people's board",
    ("--min-votes", "type"): "the same",
    ("--missing", "type"): "what can be done about gaps depends on what has them",
    ("--by", "multiple"): "boards of votes can be sliced by several columns at once",
    ("--strata", "metavar"): "anchored verdicts have one column of strata, their tasks",
    ("--gauge", "metavar"): "votes weigh the models of two boards differently",
    ("--link", "type"): "the complementary log-log link is for ties with a reference",
    ("--top-size", "default"): "next: only with --goal top",
    ("--top-size", "type"): "next: a top of one has no pairs",
    ("--pair", "multiple"): "next spends its battles on one difference",
    ("--power", "default"): "next: of a plan only",
    ("--out", None): "simulate and soft-elo calibrate write one file, which is all they are for",
    ("--id", "multiple"): "a state knows its votes by one column",
    ("--method", None): "the solver of a fit, or Soft-Elo's target maps: as in Python",
    ("--models", None): "simulate and demo make so many; elsewhere names to keep",
    ("--random", None): "next: a share of battles; of scores: what was sampled",
    ("--reference", None): "anchored: the side that a reference stands on; meta: a model",
    ("--shared", None): "judge: whose labels; compare-boards: which votes are on both boards",
    ("--ties", None): "simulate makes ties, by their share",
    ("--votes", None): "next: a number; soft-elo merge and meta: a file",
}
#: Words that would name again what an option already names.
TAKEN = {"--lengths": ("--length",), "--human": ("--label", "--gold-labels"), "--top-size": ("--overlap",)}


def commands(group=main, path=()):
    """All commands, by their names."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


ALL = dict(commands())
SHOWN = {
    name: [
        p
        for p in command.get_params(click.Context(command))
        if isinstance(p, click.Option) and not (p.hidden or "--help" in p.opts)
    ]
    for name, command in ALL.items()
}
BY_NAME = defaultdict(dict)
for _name, _options in SHOWN.items():
    for _option in _options:
        BY_NAME[_option.opts[0]][_name] = _option


def described(option):
    """What a user sees and gives; help as far as its first sentence, after which each command may add its own."""
    kind = option.type.to_info_dict()
    kind |= {"class": type(option.type).__name__, "endings": getattr(option.type, "endings", None)}
    return {
        "type": kind,
        "default": None if "UNSET" in str(option.default).upper() else option.default,
        "metavar": option.metavar,
        "multiple": option.multiple,
        "flag": option.is_flag,
        "help": option.help.split(". ")[0].split(" [")[0].rstrip("."),
    }


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_options_of_one_name_are_one(name):
    found = {command: described(option) for command, option in BY_NAME[name].items()}
    if (name, None) in OTHERWISE:
        return
    first, one = next(iter(found.items()))
    for command, own in found.items():
        differs = {key: (one[key], own[key]) for key in own if own[key] != one[key] and (name, key) not in OTHERWISE}
        assert not differs, f"{name} of {first} and {command}"


def test_every_exception_is_needed():
    for name, key in OTHERWISE:
        found = [described(option) for option in BY_NAME[name].values()]
        alike = [own if key is None else own[key] for own in found]
        assert any(own != alike[0] for own in alike), (name, key)


@pytest.mark.parametrize("command", ALL)
def test_every_option_has_help(command):
    for option in SHOWN[command]:
        assert option.help, option.opts
        assert option.help[0].isupper(), option.opts
        assert option.help.rstrip()[-1] in ".])", (option.opts, option.help)


def test_shared_options_stand_in_one_order():
    before = defaultdict(dict)
    for command, options in SHOWN.items():
        names = [option.opts[0] for option in options]
        for k, name in enumerate(names):
            for later in names[k + 1 :]:
                before[name, later][command] = True
    own = {name for name, of in BY_NAME.items() if len(of) > 1 and (name, None) not in OTHERWISE}
    mixed = {
        (a, b): (next(iter(before[a, b])), next(iter(before[b, a])))
        for a, b in list(before)
        if a < b and (b, a) in before and {a, b} <= own
    }
    assert mixed == {}


def test_options_of_one_name_stand_in_one_section():
    for name, of in BY_NAME.items():
        if (name, None) not in OTHERWISE:
            assert len({option.section for option in of.values()}) == 1, name


def test_no_name_is_spelled_twice():
    for name, others in TAKEN.items():
        assert name in BY_NAME
        for other in others:
            assert not [found for found in BY_NAME if found == other or found.startswith(f"{other}-")], name


@pytest.mark.parametrize(("command", "old", "new"), [
    ("next", "--top", "--top-size"), ("anchored", "--threshold", "--min-icc"),
    ("panel", "--benchmark", "--eval-benchmark"),
])  # fmt: skip
def test_a_former_spelling_says_what_it_became(command, old, new):
    result = run(command, "x.csv", f"{old}=2")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"{old} is now called {new}" in result.stderr
    assert "now called" not in run("scores", "x.csv", f"{old}=2").stderr  # which has the old one, or neither


class TestHelp:
    def test_commands_stand_under_questions(self):
        shown = run("--help").stdout
        for question, rows in COMMANDS.items():
            assert f"\n{question}\n" in shown
            for row in rows:
                assert any(own.split() == [row.name, *row.line.split()] for own in shown.splitlines()), row.name

    def test_every_command_has_a_question(self):
        assert list(ROWS) == main.list_commands(None)
        assert set(main.list_commands(None)) == set(main.commands)

    @pytest.mark.parametrize("command", ALL)
    def test_sections(self, command):
        shown = run(*command.split(), "--help").stdout
        heads = [line.removesuffix(":") for line in shown.splitlines() if line.removesuffix(":") in SECTIONS]
        assert heads == [section for section in SECTIONS if section in heads]
        for option in SHOWN[command]:
            assert option.opts[0] in shown

    def test_a_mistyped_command_gets_a_suggestion(self):
        result = run("lederboard")
        assert result.exit_code == 2
        assert "no command 'lederboard'; did you mean 'leaderboard'?" in result.stderr


@pytest.mark.parametrize("command", ALL)
def test_help_names_options_that_the_command_has(command):
    """Those of another command stand in backticks, with its name."""
    own = {spelling for option in SHOWN[command] for spelling in (*option.opts, *option.secondary_opts)}
    for option in SHOWN[command]:
        text = re.sub(r"`[^`]*`", "", option.help)
        assert set(re.findall(r"--[a-z][a-z-]*", text)) <= own, (option.opts, option.help)


@pytest.mark.parametrize("row", ROWS.values(), ids=lambda row: row.name)
def test_what_the_table_says_of_a_command(row):
    """Its reader and its estimator are names of jaxeval, and README has its example and its page."""
    for name in re.findall(r"([a-z_]+)\(", row.python):
        assert callable(getattr(jaxeval, name)), name
    readme, docs = (Path(__file__).parents[2] / name for name in ("README.md", "docs"))
    if row.call:
        assert f"| `jaxeval {row.name} {row.call}` | " in readme.read_text()
        assert f"](docs/{row.page}) |" in readme.read_text()
        assert (docs / row.page).exists()
    assert row.in_python in run(row.name, "--help").stdout.replace("\n  ", " ") or row.name in ("simulate", "soft-elo")
