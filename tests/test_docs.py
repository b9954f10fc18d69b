"""What the documentation shows is what a run prints, and what it names is there."""

import ast
import re
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import click
import pages
import pytest

import jaxeval
from jaxeval.cli.main import main

pytestmark = pytest.mark.usefixtures("all_on_the_host")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


PAGES = sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
#: What a block may hold, beside the directives of the site (``{note}``): output stands in the first two alone.
LANGUAGES = {"python", "console", "sh", "dockerfile", "yaml", "toml", "json", "html", "bibtex"}
#: Pages whose runs compile programs that no other page shares, or take long in another way.
SLOW = {
    "accelerators.md", "audit.md", "capability-index.md", "comparing-boards.md", "counting.md", "few-battles.md",
    "few-votes.md", "goodness-of-fit.md", "judge-panels.md", "own-estimators.md", "own-models.md",
    "people-and-judges.md", "quick-start.md", "scores.md", "small-categories.md", "time-horizons.md", "wide-boards.md",
    "tasks/a-leaderboard-of-every-day.md", "tasks/confidence-intervals-for-elo.md",
    "tasks/does-my-evaluator-rank-like-people.md", "tasks/rate-models-from-rankings.md", "tasks/rogan-gladen.md",
    "tasks/soft-elo.md", "tasks/style-control.md",
}  # fmt: skip
#: Pages in which a block without a language is a drawing.
DRAWINGS = {"how-it-flows.md"}
#: What blocks of the language ``sh`` call, beside jaxeval and variables that are set.
PROGRAMS = {"pip", "python", "python3", "pytest", "gcloud", "sbatch", "kubectl", "docker", "git", "conda", "hf", "cd"}


@cache
def text_of(page):
    return (DOCS / page).read_text(encoding="utf-8")


RUN = [page for page in PAGES if ">>> " in text_of(page) or "```console" in text_of(page)]


def test_slow_pages_are_there():
    assert set(RUN) >= SLOW


@pytest.mark.parametrize("page", [pytest.param(page, marks=pytest.mark.slow) if page in SLOW else page for page in RUN])
def test_what_pages_show_is_what_runs_print(page, tmp_path, monkeypatch):
    """`pages` says how: in order, in one folder."""
    monkeypatch.chdir(tmp_path)
    failed, tried = pages.run(DOCS / page)
    assert tried == len(re.findall(r"^ *>>> |^\$ ", text_of(page), re.MULTILINE))
    assert failed == 0  # what differs is printed


@pytest.mark.parametrize("page", PAGES)
def test_no_output_stands_where_nothing_is_run(page):
    text = text_of(page)
    blocks, known = pages.blocks(text), {*LANGUAGES, *([""] if page in DRAWINGS else [])}
    assert {language for language, *_ in blocks if not language.startswith("{")} <= known
    assert "doctest: +SKIP" not in text
    for language, block, _ in blocks:
        if language == "console":
            assert block.startswith("$ ")
        if language == "python" and ">>> " not in block:
            ast.parse(block)  # a recipe, without output
    first = [words[0] for words in pages.commands(text)]
    assert [word for word in first if word not in {"jaxeval", *PROGRAMS} and "=" not in word] == []


@pytest.mark.parametrize("page", [page for page in PAGES if "```sh" in text_of(page)])
def test_commands_and_options_exist(page):
    for words in pages.commands(text_of(page)):
        command, context, known = main, click.Context(main), {"-h", "--help", "--version"}
        if words[0] != "jaxeval":
            continue
        for word in words[1:]:
            if isinstance(command, click.Group) and word in command.list_commands(context):
                command = command.get_command(context, word)
                known |= {name for option in command.params for name in [*option.opts, *option.secondary_opts]}
            if re.match("--?[a-z]", word):
                assert word.split("=")[0] in known, " ".join(words)
        assert command is not main, " ".join(words)


@pytest.mark.parametrize("page", ["how-it-flows.md", "glossary.md", "accelerators.md"])
def test_files_that_are_named_exist(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:jaxeval/)?((?:\w+/)*\w+(?:\.py|/))`", text))
    assert named
    there = [name for name in named if (ROOT / name).exists() or list((ROOT / "jaxeval").rglob(name.removesuffix("/")))]
    missing = sorted(named - set(there))
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text_of(page)) if "://" not in link]
    assert [link for link in links if not (DOCS / page).parent.joinpath(link).exists()] == []


def module_of_the_site(name):
    spec = spec_from_file_location(name, DOCS / "_site" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_of_the_site_that_lead_nowhere_are_found(tmp_path):
    links = ["b.html#x", "b.html", "#here", "https://example.org/a", "mailto:a@example.org", "f%20g.png"]
    wrong = ["b.html#y", "c.html", "#there", "https://", "https://example", "LOW:HIGH", "f.png"]
    body = "".join(f'<a href="{link}">.</a>' for link in [*links, *wrong])
    (tmp_path / "a.html").write_text(f'<p id="here">{body}')
    (tmp_path / "b.html").write_text('<p id="x">')
    (tmp_path / "f g.png").touch()
    found = module_of_the_site("links").broken_links(tmp_path)
    assert [line.split(": ")[1] for line in found] == wrong


def test_an_index_of_an_accented_letter_stands_beside_it():
    pytest.importorskip("sphinx")
    mathml = module_of_the_site("mathml").mathml
    found = "".join(mathml(r"\tilde q_1 + \sum_{i}^{n} x_i", block=True).split())
    assert '<msub><moveraccent="true"><mi>q</mi><mostretchy="false">~</mo></mover><mn>1</mn></msub>' in found
    assert "<munderover><mo" in found  # a sum keeps its limits above and below
    equations = [text for page in PAGES for text in re.findall(r"\$\$\n(.*?)\$\$", text_of(page), re.DOTALL)]
    assert len(equations) > 10
    assert all(mathml(text, block=True).startswith("<math") for text in equations)


def test_every_public_name_has_a_place_in_the_reference():
    """A new module joins the group of its package; one of a new package needs a line in docs/_site/groups.py."""
    groups = module_of_the_site("groups")
    found = [name for names in groups.grouped().values() for name in names]
    assert sorted(found) == sorted(name for name in jaxeval.__all__ if name != "plots")
    missing = [
        name
        for module, names in groups.STUDIES.items()
        for name in names
        if not hasattr(import_module(f"jaxeval.{module}"), name)
    ]
    assert missing == []
