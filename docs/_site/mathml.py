"""Equations as MathML, which browsers draw by themselves: pages load no script from elsewhere, and work offline."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def _mathml(text: str, block: bool) -> str:
    text = re.sub(r"\\[bB]igg?[lr]?\b", "", text)  # brackets grow by themselves
    return str(tex2mathml(" ".join(text.split()), as_block=block))


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """An equation in a sentence."""
    self.body.append(_mathml(node.astext(), block=False))
    raise nodes.SkipNode


def displayed(self: HTML5Translator, node: nodes.math_block) -> None:
    """An equation on lines of its own."""
    self.body.append(f'<div class="equation">{_mathml(node.astext(), block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """An extension of Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
