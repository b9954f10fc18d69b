"""The directive ``{commands}``: what ``--help`` prints, for every command, under the questions that commands answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

import jaxeval.cli
from jaxeval.cli.command_table import COMMANDS
from jaxeval.cli.main import main


def _helps(command: click.Command, path: str, outer: click.Context | None = None) -> Iterator[tuple[str, str]]:
    """Commands by what is typed, each with its help, as a terminal prints it."""
    context = click.Context(command, outer, path.split()[-1], **command.context_settings)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None and not inner.hidden:
                yield from _helps(inner, f"{path} {name}", context)


def _section(title: str, anchor: str, *children: nodes.Node) -> nodes.section:
    return nodes.section("", nodes.title(title, title), *children, ids=[anchor], names=[anchor])


class Commands(Directive):
    """All commands of jaxeval."""

    def run(self) -> list[nodes.Node]:
        """A section for each question, with one for each of its commands."""
        helps = dict(_helps(main, "jaxeval"))
        for file in Path(jaxeval.cli.__file__).parent.glob("*.py"):
            self.state.document.settings.env.note_dependency(str(file))
        found = [_section("jaxeval", "jaxeval", _block(helps.pop("jaxeval")))]
        for question, rows in COMMANDS.items():
            names = [row.name for row in rows]
            own = [path for path in helps if path.split()[1] in names]
            sections = [_section(path, path.replace(" ", "-"), _block(helps.pop(path))) for path in own]
            found.append(_section(question, nodes.make_id(question), *sections))
        if helps:
            raise self.error(f"commands without a question in jaxeval/cli/command_table.py: {', '.join(helps)}")
        return found


def _block(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="text")


def setup(app: Sphinx) -> dict[str, Any]:
    """An extension of Sphinx."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
