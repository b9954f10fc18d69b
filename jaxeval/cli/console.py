"""The console that all tables and sentences are printed on: it shows characters that a terminal would obey."""

from __future__ import annotations

import os
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from jaxeval.wording import visible


class PlainConsole(Console):
    """A console on which text stands as it is: no markup, no highlights, control and format characters escaped.

    Every text, the cells of tables too, must come as ``str``, not as `rich.text.Text`: only those pass through
    `render_str`, where the escapes replace the characters before anything is measured.
    """

    def __init__(self, *, for_programs: bool = False, **options: Any) -> None:
        self.for_programs = for_programs  # no terminal: a sentence that answers is one line
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Lay out ``text`` as Rich does, with its control characters escaped (see `jaxeval.wording.visible`)."""
        return super().render_str(visible(text), **options)

    def on_broken_pipe(self) -> None:
        """Print no more to a reader that has seen enough, as ``head``: a command ends with its code; 1 may be FAIL."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
