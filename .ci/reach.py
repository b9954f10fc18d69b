"""Which files of slow tests a change can touch, and which have run as they are.

python .ci/reach.py due > FILE        # prints the files whose slow tests must run, with the digests of what they reach;
                                      # those that reach the fewest files come first
python .ci/reach.py all               # prints all files that may have slow tests
python .ci/reach.py ran < FILE        # notes that the slow tests of what `due` printed have passed
python .ci/reach.py digest TESTS...   # prints one digest of all that these files of tests reach
python .ci/reach.py check TESTS...    # runs the slow tests of each file by itself: whatever module of the package a
                                      # process of it has imported must be in reach, or the status is 1

A file of tests reaches the files that it imports, directly or through others, also within functions; the public names
of jaxeval lead to the modules that hold them. Texts in tests count as code, as they may be scripts that other processes
run. What runs the command reaches, of the modules of commands, what those import that it names. What walks all
public names, or the pages, reaches the whole package. The digest of all that a file reaches stands in .ci/ran when its
slow tests have passed; with CI_FULL=1 all are due.
"""

import ast
import hashlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS, KEPT = ROOT / "jaxeval", ROOT / "tests", ROOT / ".ci" / "ran"
#: What decides how all tests run.
_ALWAYS = ("pyproject.toml", "tests/conftest.py", "tests/quick_programs.py")
#: Words of a file of tests beside which names do not tell what it runs.
_ALL_OF_IT = re.compile(
    r"\bjaxeval\.__(?!version)|(getattr|vars|dir|iter_modules|walk_packages)\(jaxeval\b|import jaxeval as"
    r"""|import_module\((?!["']\w)|__import__|^ *(import|from) pages\b""",
    re.MULTILINE,
)
#: Words beside which a file of tests may run any command.
_ALL_COMMANDS = re.compile(r"\bmain\.commands|list_commands|\bCOMMANDS\b|\bROWS\b")
_DOTTED = re.compile(r"\bjaxeval(?:\.[A-Za-z]\w*)+")
_FROM = re.compile(r"\bfrom +(jaxeval[\w.]*) +import +(\([^)]*\)|[^\n]+)")
_IMPORT = re.compile(r"(?:^|[\n;]) *(?:from +(\w+) +import\b|import +([\w, ]+))")
_BENCHMARKS = r"""["'/]benchmarks["'/]"""
#: Words that name other files, and these files.
_BESIDE = {
    "docs|README|pages": ["docs/**/*.md", "docs/jobs/*", "README.md", "examples/*"],
    _BENCHMARKS: ["benchmarks/*.py"],
    "notebooks": ["notebooks/*.ipynb"],
    r'"\.ci/': [".ci/reach.py", ".ci/run"],
}


@cache
def text_of(path: Path) -> str:
    """A file's text."""
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    """A file, parsed."""
    return ast.parse(text_of(path))


@cache
def strings_of(path: Path) -> tuple[str, ...]:
    """The texts in a file, as the program has them."""
    return tuple(
        node.value for node in ast.walk(tree_of(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@cache
def homes(package: str = "") -> dict[str, str]:
    """The module of every public name of the package, or of one within it, that imports lazily."""
    file = PACKAGE / package / "__init__.py"
    tables = (
        node.value
        for node in (tree_of(file).body if file.exists() else ())
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target) == "_HOMES"
    )
    return {name: module for table in tables for module, names in ast.literal_eval(table).items() for name in names}


def files_of(name: str) -> list[Path]:
    """The files of a dotted name of the package: a module, or all of a package that imports lazily."""
    parts = name.split(".")
    if len(parts) > 1 and parts[1] in homes():
        parts = ["jaxeval", *homes()[parts[1]].split(".")]
    if len(parts) > 2 and parts[2] in homes(parts[1]):
        parts[2] = homes(parts[1])[parts[2]]
    for n in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:n])
        if path.with_suffix(".py").exists():
            return [path.with_suffix(".py")]
        if path.is_dir():
            return [path / "__init__.py"] if n == 1 else sorted(path.glob("*.py"))
    return []


# --- files of tests: their text, scripts in it included ------------------------------------------------------------


@cache
def named_in_tests(path: Path) -> tuple[Path, ...]:
    """The files that a file of tests, or a benchmark, names anywhere."""
    text = "\n".join([text_of(path), *strings_of(path)])
    names = set(_DOTTED.findall(text))
    for module, what in _FROM.findall(text):
        names |= {f"{module}.{name}" for name in re.findall(r"\w+", what)}
    if re.search(r"-m jaxeval\b|bin/jaxeval\b", text) or "jaxeval" in strings_of(path):
        names.add("jaxeval.cli.main")
    modules = {name for one, more in _IMPORT.findall(text) for name in re.findall(r"\w+", one or more)}
    folders = [TESTS, path.parent]
    if re.search(_BENCHMARKS, text):
        folders.append(ROOT / "benchmarks")
        modules |= {*strings_of(path), *re.findall(r"\b(\w+)\.py\b", text)}
    beside = (folder / f"{name}.py" for name in modules if name.isidentifier() for folder in folders)
    return tuple(dict.fromkeys([*(file for file in beside if file.exists()), *chain(*map(files_of, sorted(names)))]))


def of_tests(path: Path) -> list[Path]:
    """The files of tests, and benchmarks, that a file of tests reaches, itself included."""
    seen, todo = dict[Path, None](), [path, TESTS / "conftest.py", *path.parent.glob("conftest.py")]
    while todo:
        file = todo.pop()
        if file not in seen and PACKAGE not in file.parents:
            seen[file] = None
            todo += named_in_tests(file)
    return list(seen)


# --- modules of the package: their imports --------------------------------------------------------------------------


def _command(node: ast.AST) -> str | None:
    """The name under which a function is a command, or a group of commands."""
    for mark in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
        if isinstance(mark, ast.Call) and ast.unparse(mark.func).rpartition(".")[2] in ("command", "group"):
            first = mark.args[0].value if mark.args and isinstance(mark.args[0], ast.Constant) else None
            return str(first or node.name.replace("_", "-"))
    return None


@cache
def commands_of(path: Path) -> dict[str, str]:
    """The commands in a module of the command line, by the function of each."""
    if path.parent != PACKAGE / "cli":
        return {}
    return {node.name: name for node in tree_of(path).body if (name := _command(node)) is not None}


@cache
def lent() -> frozenset[tuple[str, str]]:
    """Modules of commands, and names that others import from them."""
    imports = (node for file in PACKAGE.rglob("*.py") for node in ast.walk(tree_of(file)))
    return frozenset(
        (node.module or "", alias.name) for node in imports if isinstance(node, ast.ImportFrom) for alias in node.names
    )


def _parts(path: Path, words: frozenset[str] | None) -> Iterator[ast.AST]:
    """What of a module may run where commands are named by ``words`` alone; None stands for all commands."""
    commands, body = commands_of(path), tree_of(path).body
    if words is None or not commands:
        yield from body
        return
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    others = {name for of, name in lent() if of == module} - set(commands)
    whole = path.name == "main.py"  # its commands stand for themselves; those of another module call each other
    named = {function for function, name in commands.items() if name in words}
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node
        elif node.name in commands:
            if node.name in named or (named and not whole):
                yield node
        elif named or whole or others:
            yield node


def _names(parts: Iterable[ast.AST]) -> Iterator[str]:
    """Dotted names that imports and attributes of jaxeval name; imports for types alone are never run."""
    todo = list(parts)
    # Packages that import lazily, whose attributes name the modules.
    lazy = {
        alias.name
        for node in chain(*map(ast.walk, todo))
        if isinstance(node, ast.ImportFrom) and node.module == "jaxeval"
        for alias in node.names
        if homes(alias.name)
    }
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            todo += node.orelse
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{x.name}{'.__init__' if x.name in lazy else ''}" for x in node.names)
        elif isinstance(node, ast.Attribute):
            inner: ast.expr = node
            while isinstance(inner, ast.Attribute):
                inner = inner.value
            if isinstance(inner, ast.Name) and inner.id == "jaxeval":
                yield ast.unparse(node)
            elif isinstance(inner, ast.Name) and inner.id in lazy:
                yield f"jaxeval.{ast.unparse(node)}"
                continue
        elif isinstance(node, ast.Name) and node.id in lazy:  # as in getattr(plots, name)
            yield f"jaxeval.{node.id}"
        todo += ast.iter_child_nodes(node)


@cache
def imported(path: Path, words: frozenset[str] | None) -> tuple[Path, ...]:
    """The files that a module imports, with the packages that hold it."""
    names = {name for name in _names(_parts(path, words)) if name.startswith("jaxeval.")}
    around = (folder / "__init__.py" for folder in path.parents if folder == PACKAGE or PACKAGE in folder.parents)
    # The command line names its modules, and imports those of the commands that are asked for.
    further = sorted(path.parent.glob("*.py")) if path == PACKAGE / "cli" / "main.py" else []
    return tuple(dict.fromkeys([*around, *further, *chain(*map(files_of, sorted(names)))]))


@cache
def _words_of_commands() -> frozenset[str]:
    return frozenset(chain(*(commands_of(file).values() for file in (PACKAGE / "cli").glob("*.py"))))


@cache
def reached(path: Path) -> frozenset[Path]:
    """All files that the tests of a file can run."""
    tests = of_tests(path)
    own = [file for file in tests if file != TESTS / "conftest.py"]  # which runs no command
    text, found = "\n".join(map(text_of, own)), set(tests)
    if _ALL_OF_IT.search(text):
        found |= set(PACKAGE.rglob("*.py")) | set(PACKAGE.rglob("*.j*")) | set(PACKAGE.rglob("*.css"))
    else:
        strings = chain(*map(strings_of, own))
        words = _words_of_commands() & {word for one in strings for word in re.findall(r"[\w-]+", one)}
        named = None if _ALL_COMMANDS.search(text) else frozenset(words)
        direct = {file for one in tests for file in named_in_tests(one)} - set(tests)
        todo = list(direct)
        while todo:
            file = todo.pop()
            if file not in found:
                found.add(file)
                # Of a module of commands that a test itself names, it may call whatever is there.
                any_of_it = not commands_of(file) or (file in direct and file != PACKAGE / "cli" / "main.py")
                todo += imported(file, None if any_of_it else named)
    if any(PACKAGE / "pages" in file.parents for file in found):  # whose scripts and styles are no Python
        found |= {file for file in (PACKAGE / "pages").rglob("*.*") if file.suffix != ".pyc" and file.is_file()}
    for word, patterns in _BESIDE.items():
        if re.search(word, text_of(path)):
            found |= {file for pattern in patterns for file in ROOT.glob(pattern)}
    if path.parent != TESTS:  # small files that tests read
        found |= {file for file in path.parent.rglob("*.*") if file.suffix not in (".py", ".pyc") and file.is_file()}
    return frozenset(found | {ROOT / name for name in _ALWAYS})


@cache
def _line(file: Path) -> bytes:
    return f"{file.relative_to(ROOT)}\0".encode() + hashlib.sha256(file.read_bytes()).digest()


def digest(*paths: Path) -> str:
    """Of the contents of all that files of tests reach."""
    total = hashlib.sha256()
    for file in sorted(set().union(*map(reached, paths))):
        total.update(_line(file))
    return total.hexdigest()[:16]


def with_slow_tests() -> Iterator[Path]:
    """Files in which a test may be slow, or that take a mark of a table for it."""
    for path in sorted(TESTS.rglob("test_*.py")):
        if re.search(r"mark\.slow|\bslow\b", text_of(path)):
            yield path


# --- is what is imported in reach? ---------------------------------------------------------------------------------

#: What every Python that a run starts does at its end.
_HOOK = """
import atexit, os, sys

@atexit.register
def _write():
    files = {getattr(m, "__file__", None) for n, m in list(sys.modules.items()) if n.split(".")[0] == "jaxeval"}
    with open(os.path.join(os.path.dirname(__file__), f"{os.getpid()}.modules"), "w") as out:
        out.write("\\n".join(sorted(filter(None, files))))
"""


def out_of_reach(path: Path, *options: str) -> tuple[int, set[str]]:
    """Return pytest's status for a file alone, and what its processes have imported that is not in reach."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sitecustomize.py").write_text(_HOOK)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", *(options or ["-m", "slow"]), str(path)]
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        files = {line for kept in Path(folder).glob("*.modules") for line in kept.read_text().splitlines()}
    # pytest itself loads the plugin in every run, by its entry point; no test that does not mark itself runs it.
    plugin = {PACKAGE / "integrations" / name for name in ("__init__.py", "pytest_plugin.py")}
    there = {Path(file) for file in files if Path(file).is_relative_to(PACKAGE)} - plugin
    return status, {file.relative_to(ROOT).as_posix() for file in there - reached(path)}


def main() -> int:
    """The command."""
    what, arguments = sys.argv[1], [ROOT / name for name in sys.argv[2:]]
    if what == "digest":
        print(digest(*arguments))
        return 0
    if what == "check":
        bad = 0
        for path in arguments:
            status, missed = out_of_reach(path)
            print(
                path.relative_to(ROOT), "imports what is not in reach:" if missed else "reaches all it imports", *missed
            )
            bad |= bool(missed) | (status not in (0, 5))
        return bad
    if what == "all":
        print(*(path.relative_to(ROOT).as_posix() for path in with_slow_tests()), sep="\n")
        return 0
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    kept = dict(line.split() for line in lines)
    if what == "due":
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
