"""Writes the pages of the API reference: every public name, in groups, with what its docstring says."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from groups import GROUPS, PLACES, STUDIES, grouped
from sphinx.application import Sphinx

from jaxeval import plots

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"


def slug(title: str) -> str:
    """The name of a group's page."""
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower().replace("'", "")).split())


def page(title: str, text: str, names: list[str]) -> str:
    """A group: a line for each name, then all of each."""
    names = sorted(names, key=lambda name: isinstance(_value(name), type))  # calls, then what they give
    return "\n".join([*_head(title, "=", text, names), *(line for name in names for line in (*_entry(name), ""))])


def _head(title: str, underline: str, text: str, names: list[str]) -> list[str]:
    lines = [title, underline * len(title), "", text, "", ".. autosummary::", "   :nosignatures:", ""]
    return [*lines, *(f"   ~{name}" if name.count(".") > 1 else f"   {name}" for name in names), ""]


def _value(name: str) -> Any:
    module, _, name = name.rpartition(".")
    return getattr(import_module(module), name)


def _entry(name: str) -> Iterator[str]:
    value = _value(name)
    if isinstance(value, type):
        yield from (f".. autoclass:: {name}", "   :members:")
        if any(base.__name__ in PLACES for base in value.__bases__):
            yield "   :show-inheritance:"
    elif callable(value):
        yield f".. autofunction:: {name}"
    else:
        yield f".. autodata:: {name}"


def write_pages(app: Sphinx) -> None:
    """All pages of the reference, and their index. A page that says the same is left, so that Sphinx reads it once."""
    groups = {title: (text, [f"jaxeval.{name}" for name in grouped()[title]]) for title, text, _ in GROUPS}
    groups["Figures"] = (
        "Figures of results, by matplotlib. Each takes a title and a caption.",
        [f"jaxeval.plots.{name}" for name in plots.__all__],
    )
    groups["Studies"] = (
        "How methods behave, on simulated data and on yours. The notebooks use them. Import them from their modules.",
        [f"jaxeval.{module}.{name}" for module, names in STUDIES.items() for name in names],
    )
    pages = {f"{slug(title)}.rst": page(title, text, names) for title, (text, names) in groups.items()}
    index = ["Python reference", "================", "", "Every public name, by what it is for.", ""]
    index += [".. toctree::", "   :hidden:", "", *(f"   {name.removesuffix('.rst')}" for name in pages), ""]
    for title, (text, names) in groups.items():
        index += _head(title, "-", text, names)
    pages["index.rst"] = "\n".join(index)
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = FOLDER / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    for path in FOLDER.glob("*.rst"):
        if path.name not in pages:
            path.unlink()


def plain(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """What reStructuredText takes for its own: bars are absolute values here, and a lone "B." begins no list."""
    in_example = False
    for k, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example:
            line = re.sub(r"(``.*?``)|\|", lambda found: found[1] or r"\|", line)
            lines[k] = re.sub(r"(^\s*|:param \S+: )([A-Z]\.)(?=\s|$)", r"\1\\\2", line)


def public_fields(app: Sphinx, what: str, name: str, value: Any, options: Any, arguments: str, returned: str) -> Any:
    """Fields of a result that begin with an underscore are nobody's to give."""
    if what != "class" or not arguments:
        return None
    return re.sub(r", _\w+(=[^,()]*(\(\))?)?", "", arguments), returned


def resolved(app: Sphinx, env: Any, node: nodes.Element, content: nodes.Element) -> nodes.Element | None:
    """Names are documented where users find them; docstrings and annotations name them as their module knows them.

    What is not documented but exists (a helper, an argument, a file) is no link. What does not exist stays an error.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    *owner, name = target.split(".")
    full = [PLACES[name]] if name in PLACES else [f"{PLACES[of]}.{name}" for of in owner[-1:] if of in PLACES]
    for place in full:
        found = env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, "obj", place, node, content)
        if found is not None:
            return found
    known = name in _written() or target.startswith("jax.") or (ROOT / target).exists()
    return content if known and node["reftype"] == "obj" else None


@cache
def _written() -> set[str]:
    """Every name that the package's code gives to something."""
    names = set()
    for path in (ROOT / "jaxeval").rglob("*.py"):
        names.add(path.stem)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    names.add(name)
                case ast.Name(id=name, ctx=ast.Store()):
                    names.add(name)
    return names


def setup(app: Sphinx) -> dict[str, Any]:
    """An extension of Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", plain)
    app.connect("autodoc-process-signature", public_fields)
    app.connect("missing-reference", resolved)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
