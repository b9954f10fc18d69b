"""Pages, run as they are read: their ``>>>`` examples and their console blocks, in order, in one folder.

A console block shows commands and all that a terminal of 88 columns prints for them, warnings included:

    ```console
    $ jaxeval simulate --battles 2000 --models 6 --out votes.csv
    wrote 2,000 votes between 6 models to votes.csv
    $ head -n 2 votes.csv
    ...
    ```

* A line that begins with ``$`` is a command: ``jaxeval``, or ``cat``, ``head``, ``ls`` and ``wc`` to look at files. A
  backslash at the end of a line joins the next one. There are no pipes.
* What follows, up to the next command, is compared to the letter. Write ``...`` for what differs from run to run, such
  as times and versions, and a line ``...`` for lines that are left out.
* Blocks and ``>>>`` examples of a page share a folder, which is empty at first: a command may read what Python wrote.
  Pages that name ``examples/`` also find the repository's files of examples there.

``python tests/pages.py PAGE...`` runs pages and writes into their console blocks what was printed, where it differs.
Blocks of the language ``sh`` are commands that are not run (they need files of the reader); their names of commands and
options are checked (`commands`). Outputs stand in no other blocks.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

COLUMNS = 88
_FENCE = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
ROOT = Path(__file__).parents[1]
#: Not the same everywhere, at the end of what a command prints; a narrow terminal breaks it into two lines.
_VERSIONS = re.compile(r"\bjaxeval \d[\w.]*, jax .*(?:\n  \d[\w.]*$)?", re.MULTILINE)


def blocks(text):
    """Fenced blocks of a page: their language, their text, and where that begins."""
    return [(found[1].strip(), found[2], found.start(2)) for found in _FENCE.finditer(text)]


def printed(line):
    """What a terminal shows for a command: its standard output and its messages, without colours."""
    words = shlex.split(line, comments=True)
    if words[0] != "jaxeval":
        assert words[0] in ("cat", "head", "ls", "wc"), f"only jaxeval, cat, head, ls and wc are run: {line}"
        assert not set(words) & {"|", ">", "<", "&&"}, f"there is no shell: {line}"
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout
    from click.testing import CliRunner, _NamedTextIOWrapper
    from host_work import small_work_on_the_host

    from jaxeval.cli.main import main

    terminal = {"COLUMNS": str(COLUMNS), "LINES": "50", "TERM": "dumb", "NO_COLOR": "1"}
    is_shown = mock.patch.object(_NamedTextIOWrapper, "isatty", lambda stream: stream.name == "<stdout>")
    with small_work_on_the_host(), is_shown:
        output = CliRunner(env=terminal).invoke(main, words[1:], prog_name="jaxeval", catch_exceptions=False).output
    return "".join(f"{line.rstrip()}\n" for line in output.splitlines())


class _Transcript(doctest.DocTestParser):
    """Console blocks as examples, beside those in Python; `places` says where the output of each stands in the page."""

    def __init__(self):
        self.places = {}

    def get_examples(self, string, name="<string>"):
        examples = super().get_examples(string, name)
        for language, text, start in blocks(string):
            if language == "console":
                examples += self._commands(string, text, start)
        return sorted(examples, key=lambda example: example.lineno)

    def _commands(self, page, text, start):
        for found in re.finditer(r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            line = _joined(found[1]).strip()
            number = page.count("\n", 0, start + found.start())
            self.places[number] = start + found.start(2), start + found.end(2)
            source = f"print(_printed({line!r}), end='')\n"
            yield doctest.Example(source, found[2], lineno=number, options={doctest.ELLIPSIS: True})


class _Writer(doctest.DocTestRunner):
    """Notes where output is not what the page says."""

    def __init__(self):
        super().__init__(verbose=False)
        self.other = {}

    def report_failure(self, out, test, example, got):
        self.other[example.lineno] = got
        super().report_failure(out, test, example, got)


def run(page, write=False):
    """Run a page in the folder where one is: how many examples failed, and how many were tried.

    What differs is printed. With ``write`` console blocks get what was printed.
    """
    text, parser, runner = page.read_text("utf-8"), _Transcript(), _Writer()
    if "examples/" in text and not Path("examples").exists():
        Path("examples").symlink_to(ROOT / "examples")
    test = parser.get_doctest(text, {"__name__": "__main__", "_printed": printed}, page.name, str(page), 0)
    runner.run(test)
    if write:
        for number, (start, end) in sorted(parser.places.items(), reverse=True):
            if number in runner.other:
                text = text[:start] + _VERSIONS.sub("jaxeval ...", runner.other[number]) + text[end:]
        page.write_text(text, "utf-8")
    return runner.failures, runner.tries


def commands(text):
    """Commands in blocks of the language ``sh``, as words."""
    lines = [line for language, block, _ in blocks(text) if language == "sh" for line in _joined(block).splitlines()]
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def _joined(text):
    return text.replace("\\\n", " ")


if __name__ == "__main__":
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    for page in pages:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            print(page.name, *run(page, write=True))
