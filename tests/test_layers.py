"""The tree shows the architecture: packages import those below them only, and each idea has its one place."""

import ast
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import jaxeval

#: From the ground up.
LAYERS = [
    "_version",
    "lazy_names",
    "plain_tables",
    "arrays",
    "errors",
    "wording",
    "checks",
    "options",
    "kernels",
    "execution",
    "show",
    "statistics",
    "data",
    "resampling",
    "ratings",
    "engine",
    "capability",
    "planning",
    "agreement",
    "softelo",
    "accuracy",
    "scores",
    "anchored",
    "evaluators",
    "lab",
    "plots",
    "audits",
    "pages",
    "cli",
    "integrations",
    "__main__",
    "core",
    "",  # the package itself
]
#: Functions of JAX that batch and compile programs.
BATCHING = {"jit", "vmap", "pmap", "shard_map", "vectorize"}
HOME = Path(jaxeval.__file__).parent


@cache
def nodes():
    """What each file holds, by its path. The files are parsed and walked once, and not before a test asks."""
    return {file.relative_to(HOME): list(ast.walk(ast.parse(file.read_text()))) for file in sorted(HOME.rglob("*.py"))}


def name_of(file):
    """The dotted name of a module, without the package's."""
    return ".".join(file.with_suffix("").parts).removesuffix("__init__").removesuffix(".")


@cache
def modules():
    """The names of all modules."""
    return frozenset(map(name_of, nodes()))


@cache
def all_imports():
    """What each module imports, by its name."""
    return {name_of(file): list(imports(own)) for file, own in nodes().items()}


def functions(*kinds):
    """Every function with its place, of the files that hold nodes of all these kinds."""
    for file, own in nodes().items():
        if set(kinds) <= set(map(type, own)):
            for node in own:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{file}:{node.lineno} {node.name}", node


def imports(nodes):
    """The modules and packages that a module imports, also within functions and for type checkers alone."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jaxeval":
            home = node.module.removeprefix("jaxeval").removeprefix(".")
            below = {name.name: f"{home}.{name.name}".removeprefix(".") for name in node.names}
            yield from {below[name] if below[name] in modules() else home for name in below}
        elif isinstance(node, ast.Import):
            own = (name.name for name in node.names if name.name.split(".")[0] == "jaxeval")
            yield from (name.removeprefix("jaxeval").removeprefix(".") for name in own)


def batched_or_compiled(nodes):
    """Where a module names what batches and compiles programs, or imports it, also under another name."""
    for node in nodes:
        name = getattr(node, "attr", getattr(node, "id", getattr(node, "name", None)))
        if isinstance(node, ast.Attribute | ast.Name | ast.alias) and name.split(".")[-1] in BATCHING:
            yield f"{node.lineno} {name}"


def test_every_module_has_a_layer():
    assert {name.split(".")[0] for name in modules()} == set(LAYERS)


def test_imports_go_down():
    upward = [
        f"{name} imports {imported}"
        for name, imported_ones in all_imports().items()
        for imported in imported_ones
        if LAYERS.index(imported.split(".")[0]) > LAYERS.index(name.split(".")[0])
    ]
    assert upward == []


def test_siblings_stand_alone():
    """Soft-Elo, accuracy, anchored ratings and evaluators know nothing of each other."""
    siblings = {"softelo", "accuracy", "anchored", "evaluators"}
    mixed = [
        f"{name} imports {imported}"
        for name, imported_ones in all_imports().items()
        for imported in imported_ones
        if {name.split(".")[0], imported.split(".")[0]} <= siblings and name.split(".")[0] != imported.split(".")[0]
    ]
    assert mixed == []


def test_no_modules_import_each_other():
    """Neither by themselves nor by way of others, nor for type checkers alone."""
    names = list(all_imports())
    place = {name: k for k, name in enumerate(names)}
    edges = [(place[a], place[b]) for a in names for b in set(all_imports()[a]) & modules() - {a}]
    graph = coo_array((np.ones(len(edges)), tuple(zip(*edges, strict=True))), (len(names), len(names)))
    _, group = connected_components(graph, connection="strong")
    circles = [[name for name, own in zip(names, group, strict=True) if own == g] for g in np.unique(group)]
    assert [circle for circle in circles if len(circle) > 1] == []


def test_kernels_are_batched_and_compiled_in_one_place():
    elsewhere = [
        f"{file}:{found}"
        for file, own in nodes().items()
        if file.parts[:2] != ("kernels", "batch")
        for found in batched_or_compiled(own)
    ]
    assert elsewhere == []


@pytest.mark.parametrize(
    "line", ["jax.vmap(f)", "from jax import jit as fast", "import jax.experimental.shard_map", "jnp.vectorize(f)"]
)
def test_no_other_name_hides_what_batches(line):
    assert list(batched_or_compiled(ast.walk(ast.parse(line))))


@pytest.mark.parametrize(("line", "found"), [
    ("import jaxeval", ""),
    ("import jaxeval.cli.main as above", "cli.main"),
    ("from jaxeval import plots", "plots"),
    ("from jaxeval import bootstrap", ""),
    ("def f():\n    from jaxeval.data.readers import read_battles", "data.readers"),
    ("import jax, jaxevaluation", None),
])  # fmt: skip
def test_every_form_of_an_import_is_seen(line, found):
    assert list(imports(ast.walk(ast.parse(line)))) == [found] * (found is not None)


def test_one_loop_maximises():
    """`kernels.solve` says when steps end. Other loops draw until a draw is usable, or search a graph."""
    looping = {
        name_of(file) for file, own in nodes().items() for node in own if getattr(node, "attr", "") == "while_loop"
    }
    others = {"resample", "squares", "connectivity", "batch.prediction_powered"}
    assert looping == {"kernels.solve", *(f"kernels.{name}" for name in others)}


def test_no_import_is_relative():
    """Those above would not be seen."""
    relative = [node for own in nodes().values() for node in own if getattr(node, "level", 0)]
    assert relative == []


def test_no_package_bears_the_name_of_a_public_function():
    packages = {file.parent.name for file in nodes() if file.name == "__init__.py"}
    assert packages & set(jaxeval.__all__) == set()


def test_functions_take_at_most_eight_arguments_by_position():
    def n_positional(node):
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        return len(names) - (names[:1] in (["self"], ["cls"]))

    assert [f"{name}: {n}" for name, node in functions() if (n := n_positional(node)) > 8] == []


def test_nothing_of_any_type_is_splatted_by_position():
    """A type checker could not tell a wrong order. A program hands on to its chunk, which stands beside it."""
    splatted = []
    stars = {file: [node.lineno for node in own if isinstance(node, ast.Starred)] for file, own in nodes().items()}
    for name, node in functions(ast.Starred):
        lines = stars[Path(name.partition(":")[0])]
        if name.startswith("kernels/batch/") or not any(node.lineno <= line <= node.end_lineno for line in lines):
            continue
        within = list(ast.walk(node))
        given = [argument for part in within if isinstance(part, ast.Call) for argument in part.args]
        starred = {ast.unparse(argument.value) for argument in given if isinstance(argument, ast.Starred)}
        declared = [(ast.unparse(p.target), p.annotation) for p in within if isinstance(p, ast.AnnAssign)]
        declared += [(p.arg, p.annotation) for p in (*node.args.args, *node.args.kwonlyargs) if p.annotation]
        any_type = {target for target, kind in declared if ast.unparse(kind) in ("Any", "tuple[Any, ...]")}
        splatted += [f"{name}: {target}" for target in sorted(any_type & starred)]
    assert splatted == []
