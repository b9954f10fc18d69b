"""Equations as MathML, which browsers draw by themselves: pages load no script from elsewhere, and work offline."""

import re
from html import unescape
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_MATHML = "{http://www.w3.org/1998/Math/MathML}"
_ACCENTS = {"\u02c6", "~", "\u02c9"}  # of hat, tilde and bar

ElementTree.register_namespace("", _MATHML.strip("{}"))


def mathml(text: str, block: bool) -> str:
    """An equation in LaTeX as MathML."""
    text = re.sub(r"\\[bB]igg?[lr]?\b", "", text)  # brackets grow by themselves
    found = str(tex2mathml(" ".join(text.split()), as_block=block))
    found = re.sub(r"&(?!lt;|gt;|amp;|quot;|apos;|#)\w+;", lambda name: unescape(name[0]), found)  # as in HTML
    root = ElementTree.fromstring(found)
    for node in root.iter(f"{_MATHML}munderover"):
        base, index, over = node
        if over.text in _ACCENTS:  # an index of an accented letter belongs beside it, and not under it
            node.clear()
            node.tag = f"{_MATHML}msub"
            accented = ElementTree.SubElement(node, f"{_MATHML}mover", accent="true")
            accented.extend([base, over])
            node.append(index)
    return ElementTree.tostring(root, encoding="unicode")


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """An equation in a sentence."""
    self.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def displayed(self: HTML5Translator, node: nodes.math_block) -> None:
    """An equation on lines of its own."""
    self.body.append(f'<div class="equation">{mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """An extension of Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
