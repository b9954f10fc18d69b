"""Tests follow a sentence that got better: `python tests/sentences.py [pytest's arguments]`.

It runs the tests, and rewrites the sentences in them that no longer match: of `pytest.raises` and `pytest.warns`, of
`in` and `==` with a text, of `any("..." in line for line in lines)`, of `startswith` and `endswith`. What is said now
stands in their place. Every change is shown for review. Tests that failed run again: behind one sentence there may be
others.

Numbers, names in quotes and options are the meaning: where they differ, nothing is rewritten. Neither is it where the
type of an exception differs, or hardly a word is the same. What is left for the hand is listed, and the status is 1.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_ROUNDS = 6
_ALIKE = 0.5  # of the letters, in order
_WIDTH = 120
_MOST_WORDS = 100
_NEGATION = re.compile("no|not|none|nothing|never|neither|nor|cannot|without|lack|lacks|lacking")
_JOINT = re.compile("a|an|the|of|in|by|for|to|from|with|and|or|nor|than|as|is|are|has|have|no")
_NEAR = 3  # words
_TO = "JAXEVAL_SENTENCES"  # where a run of pytest writes what it missed


class Missed(NamedTuple):
    """A sentence that a test expected in vain."""

    test: str
    frames: list[tuple[str, int]]  # files and lines of tests, from the inside out
    how: str  # "match", "in", "equal", "startswith" or "endswith"
    old: str
    said: list[str]  # texts that may hold it

    def holds(self, new: str) -> bool:
        checks: dict[str, Callable[[str], object]] = {
            "match": lambda text: re.search(new, text),
            "in": lambda text: new in text,
            "equal": lambda text: new == text,
            "startswith": lambda text: text.startswith(new),
            "endswith": lambda text: text.endswith(new),
        }
        return any(checks[self.how](text) for text in self.said)


# --- while pytest runs, with `-p sentences` -------------------------------------------------------------------------

_missed: list[Missed] = []
_failed: set[str] = set()
_raises, _warns = pytest.raises, pytest.warns


def pytest_configure() -> None:
    pytest.raises, pytest.warns = _followed_raises, _followed_warns  # type: ignore[assignment]


def pytest_unconfigure() -> None:
    Path(os.environ[_TO]).write_text(json.dumps({"missed": _missed, "failed": sorted(_failed)}), "utf-8")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed.add(report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _failed.add(report.nodeid)


def _miss(how: str, old: str, said: Sequence[object], frame: Any = None) -> None:
    frame, frames = frame or sys._getframe(1), []
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    own = [(file, line) for file, line in frames if _is_of_tests(file)]
    missed = Missed(test, own, how, old, [text for text in said if isinstance(text, str)])
    if own and not missed.holds(old):
        _missed.append(missed)


@cache
def _is_of_tests(file: str) -> bool:
    path = Path(file)
    if path == Path(__file__) or not path.is_relative_to(Path.cwd()):
        return False
    parts = path.relative_to(Path.cwd()).parts
    return parts[0] != "jaxeval" and not any(part.startswith(".") for part in parts)


@contextmanager
def _caught(*args: Any, **options: Any) -> Iterator[Any]:
    match = options.pop("match")
    with _raises(*args, **options) as caught:
        yield caught
    _miss("match", match, ["\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])])


@contextmanager
def _warned(expected: Any = Warning, *, match: str) -> Iterator[Any]:
    checker = _warns(expected, match=match)
    try:
        with checker as record:
            yield record
    except (pytest.fail.Exception, Warning):
        said = [str(one.message) for one in checker if issubclass(one.category, expected)]
        if not said or any(re.search(match, text) for text in said):
            raise
        _miss("match", match, said)


def _followed_raises(*args: Any, **options: Any) -> Any:
    return (_caught if isinstance(options.get("match"), str) and len(args) < 2 else _raises)(*args, **options)


def _followed_warns(*args: Any, **options: Any) -> Any:
    return (_warned if isinstance(options.get("match"), str) and len(args) < 2 else _warns)(*args, **options)


def pytest_assertrepr_compare(op: str, left: Any, right: Any) -> None:
    if op == "in" and isinstance(left, str):
        with suppress(TypeError):
            _miss("in", left, [right]) if isinstance(right, str) else _miss("equal", left, list(right))
    elif op == "==":
        several = isinstance(left, list | tuple) and isinstance(right, list | tuple) and len(left) == len(right)
        for one, other in zip(left, right, strict=True) if several else [(left, right)]:
            if isinstance(one, str) and isinstance(other, str):
                _miss("equal", other, [one])


def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """Assertions that compare by calls: their parts are computed once more, where they failed."""
    if call.excinfo is None or not call.excinfo.errisinstance(AssertionError):
        return
    frame, line = call.excinfo.tb.tb_frame, call.excinfo.tb.tb_lineno
    for entry in call.excinfo.traceback:
        if _is_of_tests(str(entry.path)):
            frame, line = entry.frame.raw, entry.lineno + 1
    with suppress(Exception):  # what cannot be computed once more is an assertion like others
        for node in ast.walk(_statement(frame.f_code.co_filename, line).test):  # type: ignore[attr-defined]
            _miss_of_call(node, frame)


def _miss_of_call(node: ast.AST, frame: Any) -> None:
    def value(part: ast.expr) -> Any:
        return eval(compile(ast.Expression(part), "assertion", "eval"), frame.f_globals, frame.f_locals)

    match node:
        case ast.Call(ast.Name("any"), [ast.GeneratorExp(element, [ast.comprehension(_, several, [], _)])]):
            match element:
                case ast.Compare(ast.Constant(str(old)), [ast.In()], [_]):
                    how = "in"
                case ast.Call(ast.Attribute(_, "startswith" | "endswith" as how), [ast.Constant(str(old))]):
                    pass
                case _:
                    return
            said = list(value(several))
        case ast.Call(ast.Attribute(text, "startswith" | "endswith" as how), [argument]):
            old, said = value(argument), [value(text)]
        case _:
            return
    if isinstance(old, str):
        _miss(how, old, said, frame)


# --- what corresponds to a sentence ---------------------------------------------------------------------------------


class NotFollowedError(Exception):
    """Why a sentence is left for the hand."""


_TOKEN = re.compile(
    r"""(?<!\w)--[a-z][\w-]*            # an option
    | (?<!\w)(['"`])(?:(?!\1).)*?\1(?!\w)  # a name in quotes
    | \d[\d,.]*\d | \d\w* | \w+(?:'\w+)? | [^\w\s]""",
    re.VERBOSE,
)
_SYNTAX = re.compile(
    r"""(?P<escaped>\\[^\w])
    | (?P<regex>(?:\\\w | \.(?=[*+?{]) | \[(?:\\.|[^]\\])*\] | \((?:\\.|[^()\\])*\) | [\^$])(?:[*+?]\??|\{[\d,]*\})?)
    | (?P<other>[*+?|(){}\[\]]) | (?P<plain>.)""",
    re.VERBOSE | re.DOTALL,
)


def _means(token: str) -> bool:
    return (token[0] in "'\"`" and len(token) > 1) or token.startswith("--") or any(c.isdigit() for c in token)


def followed(old: str, said: str, whole: bool = False) -> str:
    """The part of what is ``said`` that corresponds to the ``old`` sentence, in whole words; or the ``whole`` of it.

    Raises:
        NotFollowedError: there is none, or numbers, names or options in it are others.
    """
    words, found = _words(old), list(_TOKEN.finditer(said))
    now = [token.group().lower() for token in found]
    if not 2 <= sum(word[0].isalpha() for word in words) <= _MOST_WORDS:
        raise NotFollowedError("it is no sentence")
    start, end = (0, len(now)) if whole else _window(words, now)
    first, last = (0, len(said)) if whole else (found[start].start(), found[end - 1].end())
    first -= old[0].isspace() and said[:first][-1:].isspace()
    last += old[-1].isspace() and said[last:][:1].isspace()
    new = said[first:last]
    before, after = (sorted(filter(_means, tokens)) for tokens in (words, now[start:end]))
    if SequenceMatcher(None, old, new, autojunk=False).ratio() < _ALIKE:
        raise NotFollowedError(f"hardly a word of it is said; the nearest is {new!r}")
    if before != after:
        raise NotFollowedError(f"numbers, names or options are others: {new!r}")
    if _negates(words) != _negates(now[start:end]):
        raise NotFollowedError(f"one of the two says no: {new!r}")
    return new


def _negates(words: Sequence[str]) -> bool:
    return any(_NEGATION.fullmatch(word) for word in words)


def _words(text: str) -> list[str]:
    return [token.group().lower() for token in _TOKEN.finditer(text)]


def _window(words: Sequence[str], now: Sequence[str]) -> tuple[int, int]:
    """Start and end of the part of ``now`` that is most like the ``words``."""
    matcher: SequenceMatcher[str] = SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(words)
    known, best, start, end = set(words), 0.0, 0, 0
    for i in (k for k, word in enumerate(now) if word in known):
        for j in (k + 1 for k in range(i, min(i + 2 * len(words), len(now))) if now[k] in known):
            matcher.set_seq1(now[i:j])
            if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and matcher.ratio() > best:
                best, start, end = matcher.ratio(), i, j
    if end == 0:
        raise NotFollowedError("no word of it is said")
    matcher.set_seq1(now[start:end])
    blocks = [block for block in matcher.get_matching_blocks() if block.size]
    # Words at its ends that are others now.
    for _ in range(blocks[0].b):
        start -= start > 0 and now[start - 1][0].isalpha() and not _means(now[start - 1])
    for _ in range(len(words) - blocks[-1].b - blocks[-1].size):
        end += end < len(now) and now[end][0].isalpha() and not _means(now[end])
    # What it must say may stand beside it now: its numbers, names and options, and its "no".
    for token in words:
        if _means(token) and now[start:end].count(token) < words.count(token):
            if token in now[end : end + _NEAR]:
                end = now.index(token, end) + 1
            elif token in (before := now[max(start - _NEAR, 0) : start]):
                start -= before[::-1].index(token) + 1
    if _negates(words) and not _negates(now[start:end]):
        start = max((k for k in range(max(start - _NEAR, 0), start) if _negates(now[k : k + 1])), default=start)
    # No sentence ends with an article.
    while end < len(now) and _JOINT.fullmatch(now[end - 1]) and now[end][0].isalpha() and not _means(now[end]):
        end += 1
    return start, end


def escaped(text: str) -> str:
    """A pattern of the ``text``, with no more backslashes than it needs."""
    return re.sub(r"[.^$*+?{}\[\]\\|()]", r"\\\g<0>", text)


def followed_pattern(old: str, said: str) -> str:
    """The same of a pattern, whose regular expressions are kept; the parts between them follow one by one.

    Raises:
        NotFollowedError: as of `followed`, or the parts do not match together.
    """
    parts: list[tuple[str, str]] = [("", "")]  # as written, and its text; texts and expressions take turns
    for one in _SYNTAX.finditer(old):
        if one["other"]:
            raise NotFollowedError("its pattern is not a sequence of texts")
        if one["regex"]:
            parts += [(one.group(), ""), ("", "")]
        else:
            parts[-1] = parts[-1][0] + one.group(), parts[-1][1] + one.group()[-1]
    new: list[str] = []
    place = 0
    for k, (source, text) in enumerate(parts):
        if k % 2 == 0 and text:
            there = re.compile(source).search(said, place)
            if there is None:
                text = followed(text, said[place:])
                if k and parts[k - 1][0] == "^":  # it begins what is said
                    text = said[: said.index(text)] + text
                source = escaped(text)
                there = re.compile(source).search(said, place)
            place = place if there is None else there.end()
        new.append(source)
    if not re.search(pattern := "".join(new), said):
        raise NotFollowedError("its parts do not match together")
    return pattern


def _proposed(missed: Missed) -> str:
    """What should stand in place of the sentence."""
    said = max(missed.said, key=lambda text: SequenceMatcher(None, text, missed.old).ratio(), default="")
    if missed.how == "match":
        return followed_pattern(missed.old, said)
    new = followed(missed.old, said, missed.how == "equal")
    start, end = said.index(new), said.index(new) + len(new)
    new = said[:end] if missed.how == "startswith" else said[start:] if missed.how == "endswith" else new
    if sorted(filter(_means, _words(new))) != sorted(filter(_means, _words(missed.old))):
        raise NotFollowedError(f"numbers, names or options are others: {new!r}")
    return new


# --- the tests' files -----------------------------------------------------------------------------------------------


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text("utf-8"))


def _fields(node: ast.AST, text: str) -> list[str] | None:
    """What the fields of a literal hold if it says the ``text``: none for a string; None if it says something else."""
    if isinstance(node, ast.Constant):
        return [] if node.value == text else None
    if not isinstance(node, ast.JoinedStr):
        return None
    found = re.fullmatch(
        "".join(re.escape(str(getattr(x, "value", ""))) if _is_text(x) else "(.*?)" for x in node.values), text
    )
    return None if found is None else list(found.groups())


def _is_text(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant)


def _around(file: str, line: int) -> list[ast.stmt]:
    """The statements that hold a line, the innermost first, decorators included."""
    found = []
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.stmt):
            first = min([node.lineno, *(x.lineno for x in getattr(node, "decorator_list", []))])
            if first <= line <= (node.end_lineno or first):
                found.append(node)
    return found[::-1]


def _statement(file: str, line: int) -> ast.stmt:
    return _around(file, line)[0]


class Place(NamedTuple):
    """A literal that says the sentence of a test."""

    missed: Missed
    file: str
    node: ast.expr
    fields: list[str]  # what they held
    is_pattern: bool  # and not the text of one

    def pieces(self, new: str) -> list[str]:
        """What the literal should say between its fields."""
        new, pieces = new if self.is_pattern or self.missed.how != "match" else _unescaped(new), []
        for value in self.fields:
            piece, found, new = new.partition(value)
            if not (found and value):
                raise NotFollowedError(f"a field of it is lost: {new!r}")
            pieces.append(piece)
        return [*pieces, new]

    def holds(self, pieces: Sequence[str]) -> bool:
        """Whether the test holds where the literal has these pieces."""
        new = _joined(pieces, self.fields)
        return self.missed.holds(new if self.is_pattern or self.missed.how != "match" else re.escape(new))


def _joined(pieces: Sequence[str], fields: Sequence[str]) -> str:
    return "".join(one for pair in zip(pieces, [*fields, ""], strict=True) for one in pair)


def _unescaped(pattern: str) -> str:
    return re.sub(r"\\([^\w])", r"\1", pattern)


def _places(missed: Missed) -> list[Place]:
    """Where the sentence stands: in the statement, else around it, else in the file, else in another of the tests."""
    texts = {missed.old: missed.how == "match"}
    if missed.how == "match" and re.escape(plain := _unescaped(missed.old)) == missed.old:
        texts.setdefault(plain, False)
    files = list(dict.fromkeys(file for file, _ in missed.frames))
    top = Path.cwd() / Path(files[0]).relative_to(Path.cwd()).parts[0]
    others = [str(file) for file in sorted(top.rglob("*.py")) if str(file) not in files]
    around = [(file, node) for file, line in missed.frames for node in _around(file, line)]
    for file, node in (*around, *((file, None) for file in (*files, *others))):
        found = [
            Place(missed, file, x, fields, is_pattern)
            for x in ast.walk(node or _tree(file))
            for text, is_pattern in texts.items()
            if isinstance(x, ast.expr) and (fields := _fields(x, text)) is not None and set(text) - set("".join(fields))
        ]
        if len(found) > 1 and node is None:
            raise NotFollowedError(f"it stands {len(found)} times in {os.path.relpath(file)}")
        if found:
            return found
    raise NotFollowedError("it is put together, and stands in no literal of the tests")


def rewrite(missed: Sequence[Missed]) -> tuple[list[str], list[str]]:
    """Rewrite the literals of sentences, and tell what was changed, and what is left for the hand."""
    wanted: dict[tuple[str, int, int], list[Place]] = defaultdict(list)
    edits: dict[str, list[tuple[Place, list[str]]]] = defaultdict(list)
    changed: list[str] = []
    left: dict[tuple[str, str], str] = {}  # one of several parameters is enough

    def leave(one: Missed, why: object) -> None:
        left.setdefault((one.test.split("[")[0], str(why)), f"{one.test}\n    {one.old!r}\n    {why}")

    for one in missed:
        try:
            found = _places(one)
        except NotFollowedError as why:
            found = []
            if one.how == "equal" and len(one.said) == 1:  # either side may be the test's
                with suppress(NotFollowedError):
                    found = _places(one._replace(old=one.said[0], said=[one.old]))
            if not found:
                leave(one, why)
        for place in found:
            wanted[place.file, place.node.lineno, place.node.col_offset].append(place)
    for (file, line, _), places in wanted.items():
        reasons: list[object] = []
        for place in places:
            try:
                pieces = place.pieces(new := _proposed(place.missed))
                _literal(place, pieces)
            except NotFollowedError as why:
                reasons.append(why)
                continue
            if all(other.holds(pieces) for other in places):
                edits[file].append((place, pieces))
                changed.append(f"{os.path.relpath(file)}:{line}\n  - {place.missed.old}\n  + {new}")
                break
            reasons.append(f"other tests say something else than {new!r}")
        else:
            for place, why in zip(places, reasons, strict=True):
                leave(place.missed, why)
    for file, of_file in edits.items():
        _write(Path(file), of_file)
    return changed, list(left.values())


def _write(file: Path, edits: Sequence[tuple[Place, list[str]]]) -> None:
    lines = file.read_bytes().splitlines(keepends=True)
    for place, pieces in sorted(edits, key=lambda edit: (-edit[0].node.lineno, -edit[0].node.col_offset)):
        node, last = place.node, (place.node.end_lineno or place.node.lineno) - 1
        head, tail = lines[node.lineno - 1][: node.col_offset], lines[last][node.end_col_offset :]
        literal = _literal(place, pieces)
        if len((head + tail).decode()) + len(literal) > _WIDTH + 1 and not place.fields:
            parts = re.findall(r".{1,90}(?:\s|$)|\S+\s?", pieces[0], re.DOTALL)
            literal = f"({' '.join(_literal(place, [part]) for part in parts)})"
        lines[node.lineno - 1 : last + 1] = [head + literal.encode() + tail]
    file.write_bytes(b"".join(lines))
    with suppress(FileNotFoundError):
        subprocess.run([Path(sys.executable).with_name("ruff"), "format", "--quiet", file], check=False)


def _literal(place: Place, pieces: Sequence[str]) -> str:
    """Python's source of a string with these pieces between its fields."""
    text = "".join(pieces)
    fields = [ast.unparse(ast.JoinedStr([x]))[2:-1] for x in getattr(place.node, "values", []) if not _is_text(x)]
    raw = place.is_pattern and escaped(text) != text
    if not fields and (not raw or "\n" in text or {"'", '"'} <= set(text)):
        return repr(text)
    quote = "'" if '"' in text + "".join(fields) else '"'
    if quote in text + "".join(fields) or "\n" in text or ("\\" in text and not raw):
        raise NotFollowedError("its literal is for the hand")
    own = [piece.replace("{", "{{").replace("}", "}}") if fields else piece for piece in pieces]
    return f"{'r' * raw}{'f' * bool(fields)}{quote}{_joined(own, fields)}{quote}"


# --- the command ----------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Rewrite until nothing more follows; 1 if a test still fails."""
    tests, own = list(arguments), Path(__file__).resolve().parent
    path = os.pathsep.join(filter(None, [str(own), os.environ.get("PYTHONPATH")]))
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            to = Path(folder, "missed.json")
            command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-n", "0", "-p", "no:cacheprovider"]
            environment = os.environ | {_TO: str(to), "PYTHONPATH": path}
            status = subprocess.run([*command, "-p", "sentences", *tests], env=environment, check=False)
            if not to.exists():
                return status.returncode
            said = json.loads(to.read_text("utf-8"))
        missed = [Missed(*one) for one in said["missed"]]
        _tree.cache_clear()
        changed, left = rewrite(missed)
        print(*changed, sep="\n", flush=True)
        if not changed:
            break
        # Parametrised tests may be called by their sentences.
        tests = ["-m", "", *{test.split("[")[0] for test in (*said["failed"], *(one.test for one in missed))}]
    failed = {*said["failed"], *(one.test for one in missed)}
    print(*(f"left for the hand: {text}" for text in left), sep="\n")
    print(f"{len(failed)} tests still fail" if failed else "the tests pass")
    return 1 if failed else status.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
