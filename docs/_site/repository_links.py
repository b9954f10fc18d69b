"""Links from what pages name in code font: public names to the reference, files of the repository to their text.

A code host shows the same pages without these links, and has the files themselves.
"""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from groups import PLACES
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).parents[2]
_NAVIGATION: dict[tuple[Any, ...], str] = {}
_FILE = re.compile(r"(?:jaxeval|benchmarks|tests|docs)/[\w./-]+\.(?:py|sh|yaml|toml)")


def _page_of(path: str) -> str | None:
    return f"source/{path}" if _FILE.fullmatch(path) and (ROOT / path).is_file() else None


class NamesToReference(SphinxTransform):
    """`bootstrap` and `jaxeval.plots.plot_draws` in pages, in code font, become references to what is documented."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        """Transform one page."""
        if self.env.docname.startswith("docs/reference/"):
            return
        for node in list(self.document.findall(nodes.literal)):
            name = re.sub(r"^jaxeval\.|\(.*\)$", "", node.astext()).removeprefix("plots.")
            if name in PLACES and not isinstance(node.parent, nodes.reference | nodes.title):
                place = {"reftarget": PLACES[name], "refdoc": self.env.docname}
                target = pending_xref("", refdomain="py", reftype="obj", refexplicit=True, **place)
                node.replace_self(target)
                target += node


def files_to_pages(app: Sphinx, tree: nodes.document, page: str) -> None:
    """`jaxeval/ratings/bootstrap.py` in a page, in code font, becomes a link to that file's text."""
    if app.builder.format != "html":
        return
    for node in list(tree.findall(nodes.literal)):
        source = _page_of(node.astext())
        if source and not isinstance(node.parent, nodes.reference):
            link = nodes.reference("", "", refuri=app.builder.get_relative_uri(page, source), internal=True)
            node.replace_self(link)
            link += node


def line_of(domain: str, info: dict[str, str]) -> str | None:
    """Where the source of a documented name begins, as seen from the pages of the reference."""
    value: Any = import_module(info["module"])
    for part in info["fullname"].split("."):
        value = getattr(value, part, None)
    value = getattr(value, "fget", None) or getattr(value, "func", None) or value
    try:
        value = inspect.unwrap(value)
        path = Path(inspect.getsourcefile(value) or "").relative_to(ROOT).as_posix()
        return f"../../source/{path}.html#line-{inspect.getsourcelines(value)[1]}"
    except (TypeError, ValueError, OSError):  # a constant, or a method that dataclasses make
        return None


def text_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A page for every file of the package, and every other one that some page names."""
    texts = [Path(app.env.doc2path(page)).read_text("utf-8") for page in sorted(app.env.found_docs)]
    named = {path for text in texts for path in re.findall(r"`([^`\n]+)`", text) if _page_of(path)}
    for path in sorted(named | {path.relative_to(ROOT).as_posix() for path in (ROOT / "jaxeval").rglob("*.py")}):
        form = HtmlFormatter(lineanchors="line", cssclass="highlight")
        shown = highlight((ROOT / path).read_text("utf-8"), get_lexer_for_filename(path), form)
        yield f"source/{path}", {"title": path, "body": f"<h1>{path}</h1>{shown}"}, "page.html"


def navigation_of_texts(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Make the navigation of `text_pages` once for all in folders of one depth, from where the same links lead on.

    The theme resolves all tables of contents anew for every page, which takes longer than all else about these pages.
    """
    if page.startswith("source/"):
        resolve, depth = context["toctree"], page.count("/")

        def toctree(**options: Any) -> str:
            key = (depth, *sorted(options.items()))
            if key not in _NAVIGATION:
                _NAVIGATION[key] = resolve(**options)
            return _NAVIGATION[key]

        context["toctree"] = toctree


def setup(app: Sphinx) -> dict[str, Any]:
    """An extension of Sphinx."""
    app.add_transform(NamesToReference)
    app.connect("doctree-resolved", files_to_pages)
    app.connect("html-collect-pages", text_pages)
    app.connect("html-page-context", navigation_of_texts, priority=400)  # before the theme's
    return {"parallel_read_safe": True, "parallel_write_safe": True}
