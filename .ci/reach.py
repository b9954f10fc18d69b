"""Which files of slow tests a change can touch, and which have run as they are.

python .ci/reach.py due > FILE  # prints the files whose slow tests must run, with the digests of what they reach;
                                # those that reach the fewest files come first
python .ci/reach.py ran < FILE  # notes that the slow tests of what `due` printed have passed

A file of tests reaches the files that it imports, directly or through others, also within functions; the public names
of jaxeval lead to the modules that hold them. What starts processes, runs the command or walks all public names reaches
the whole package. The digest of all that a file reaches stands in .ci/ran when its slow tests have passed; with
CI_FULL=1 all are due.
"""

import ast
import hashlib
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS, KEPT = ROOT / "jaxeval", ROOT / "tests", ROOT / ".ci" / "ran"
#: What decides how all tests run.
_ALWAYS = ("pyproject.toml", "tests/conftest.py", "tests/quick_programs.py")
#: Words of a file of tests beside which imports do not tell what it runs.
_ALL_OF_IT = re.compile(
    r"subprocess|sys\.executable|jaxeval\.cli\.main|jaxeval\.__all__|import_module|import (pages|processes|devices)\b"
)
#: Words that name other files, and these files.
_BESIDE = {
    "docs|README|pages": ["docs/**/*.md", "docs/jobs/*", "README.md"],
    "benchmarks": ["benchmarks/*.py"],
    "notebooks": ["notebooks/*.ipynb"],
}


@cache
def tree_of(path: Path) -> ast.Module:
    """A file, parsed."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def homes() -> dict[str, str]:
    """The module of every public name."""
    (table,) = (
        node.value
        for node in tree_of(PACKAGE / "__init__.py").body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target) == "_HOMES"
    )
    return {name: module for module, names in ast.literal_eval(table).items() for name in names}


def files_of(name: str) -> list[Path]:
    """The files of a dotted name: a module of the package or of the tests, or all of a package that imports lazily."""
    parts = name.split(".")
    if parts[0] != "jaxeval":
        return [path for path in [TESTS / f"{parts[0]}.py"] if path.exists()]
    if len(parts) > 1 and parts[1] in homes():
        parts = ["jaxeval", *homes()[parts[1]].split(".")]
    for n in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:n])
        if path.with_suffix(".py").exists():
            return [path.with_suffix(".py")]
        if path.is_dir():
            return [path / "__init__.py"] if n == 1 else sorted(path.glob("*.py"))
    return []


@cache
def imported(path: Path) -> tuple[Path, ...]:
    """The files that a file names in imports, or as attributes of jaxeval."""
    names: list[str] = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and ast.unparse(node).startswith("jaxeval."):
            names.append(ast.unparse(node))
    return tuple(dict.fromkeys(file for name in names for file in files_of(name)))


def reached(path: Path) -> set[Path]:
    """All files that the tests of a file can run."""
    found, todo = set[Path](), [path, *(TESTS / name for name in ("conftest.py",)), *path.parent.glob("conftest.py")]
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += imported(file)
    words = "\n".join(file.read_text(encoding="utf-8") for file in found if TESTS in file.parents)
    if _ALL_OF_IT.search(words.replace(TESTS.joinpath("conftest.py").read_text(encoding="utf-8"), "")):
        found |= set(PACKAGE.rglob("*.py")) | set(PACKAGE.rglob("*.j*")) | set(PACKAGE.rglob("*.css"))
    if any(PACKAGE / "pages" in file.parents for file in found):  # whose scripts and styles are no Python
        found |= {file for file in (PACKAGE / "pages").rglob("*.*") if file.suffix != ".pyc" and file.is_file()}
    for word, patterns in _BESIDE.items():
        if re.search(word, path.read_text(encoding="utf-8")):
            found |= {file for pattern in patterns for file in ROOT.glob(pattern)}
    return found | {ROOT / name for name in _ALWAYS}


def digest(path: Path) -> str:
    """Of the contents of all that a file reaches."""
    total = hashlib.sha256()
    for file in sorted(reached(path)):
        total.update(f"{file.relative_to(ROOT)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:16]


def with_slow_tests() -> Iterator[Path]:
    """Files in which a test may be slow, or that take a mark of a table for it."""
    for path in sorted(TESTS.rglob("test_*.py")):
        if re.search(r"mark\.slow|\bslow\b", path.read_text(encoding="utf-8")):
            yield path


def main() -> int:
    """The command."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    kept = dict(line.split() for line in lines)
    if sys.argv[1] == "due":
        for path in sorted(with_slow_tests(), key=lambda path: len(reached(path))):
            name, now = path.relative_to(ROOT).as_posix(), digest(path)
            if os.environ.get("CI_FULL") == "1" or kept.get(f"slow:{name}") != now:
                print(name, now)
        return 0
    kept |= {f"slow:{line.split()[0]}": line.split()[1] for line in sys.stdin}
    there = {f"slow:{path.relative_to(ROOT).as_posix()}" for path in with_slow_tests()}
    kept = {name: value for name, value in kept.items() if name in there or not name.startswith("slow:")}
    KEPT.write_text("".join(f"{name} {value}\n" for name, value in sorted(kept.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
