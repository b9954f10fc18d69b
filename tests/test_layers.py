"""The tree shows the architecture: packages import those below them only, and each idea has its one place."""

import ast
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import jaxeval

#: From the ground up.
LAYERS = [
    "_version",
    "lazy_names",
    "arrays",
    "errors",
    "wording",
    "checks",
    "kernels",
    "execution",
    "statistics",
    "data",
    "resampling",
    "ratings",
    "softelo",
    "accuracy",
    "anchored",
    "evaluators",
    "references",
    "plots",
    "cli",
    "__main__",
    "",  # the package itself
]
HOME = Path(jaxeval.__file__).parent
TREES = {file.relative_to(HOME): ast.parse(file.read_text()) for file in sorted(HOME.rglob("*.py"))}


def name_of(file):
    """The dotted name of a module, without the package's."""
    return ".".join(file.with_suffix("").parts).removesuffix("__init__").removesuffix(".")


MODULES = {name_of(file): tree for file, tree in TREES.items()}
FUNCTIONS = [
    (f"{file}:{node.lineno} {node.name}", node)
    for file, tree in TREES.items()
    for node in ast.walk(tree)
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
]


def imports(tree):
    """The modules and packages that a module imports, also within functions and for type checkers alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "jaxeval":
            home = node.module.removeprefix("jaxeval").removeprefix(".")
            below = {name.name: f"{home}.{name.name}".removeprefix(".") for name in node.names}
            yield from {below[name] if below[name] in MODULES else home for name in below}
        elif isinstance(node, ast.Import):
            yield from (name.name.removeprefix("jaxeval.") for name in node.names if name.name.startswith("jaxeval."))


def test_every_module_has_a_layer():
    assert {name.split(".")[0] for name in MODULES} == set(LAYERS)


def test_imports_go_down():
    upward = [
        f"{name} imports {imported}"
        for name, tree in MODULES.items()
        for imported in imports(tree)
        if LAYERS.index(imported.split(".")[0]) > LAYERS.index(name.split(".")[0])
    ]
    assert upward == []


def test_siblings_stand_alone():
    """Soft-Elo, accuracy, anchored ratings and evaluators know nothing of each other."""
    siblings = {"softelo", "accuracy", "anchored", "evaluators"}
    mixed = [
        f"{name} imports {imported}"
        for name, tree in MODULES.items()
        for imported in imports(tree)
        if {name.split(".")[0], imported.split(".")[0]} <= siblings and name.split(".")[0] != imported.split(".")[0]
    ]
    assert mixed == []


def test_no_modules_import_each_other():
    """Neither by themselves nor by way of others, nor for type checkers alone."""
    names = list(MODULES)
    edges = [(names.index(a), names.index(b)) for a in names for b in set(imports(MODULES[a])) & set(names) - {a}]
    graph = coo_array((np.ones(len(edges)), tuple(zip(*edges, strict=True))), (len(names), len(names)))
    _, group = connected_components(graph, connection="strong")
    circles = [[name for name, own in zip(names, group, strict=True) if own == g] for g in np.unique(group)]
    assert [circle for circle in circles if len(circle) > 1] == []


def test_kernels_are_batched_and_compiled_in_one_place():
    elsewhere = [
        f"{file}:{node.lineno} {name}"
        for file, tree in TREES.items()
        if file.parts[:2] != ("kernels", "batch")
        for node in ast.walk(tree)
        if (name := getattr(node, "attr", getattr(node, "id", ""))) in {"jit", "vmap", "pmap", "shard_map"}
    ]
    assert elsewhere == []


def test_no_package_bears_the_name_of_a_public_function():
    packages = {file.parent.name for file in TREES if file.name == "__init__.py"}
    assert packages & set(jaxeval.__all__) == set()


def test_functions_take_at_most_eight_arguments_by_position():
    def n_positional(node):
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        return len(names) - (names[:1] in (["self"], ["cls"]))

    assert [f"{name}: {n}" for name, node in FUNCTIONS if (n := n_positional(node)) > 8] == []


def test_nothing_of_any_type_is_splatted_by_position():
    """A type checker could not tell a wrong order."""
    splatted = []
    for name, node in FUNCTIONS:
        within = list(ast.walk(node))
        given = [argument for part in within if isinstance(part, ast.Call) for argument in part.args]
        stars = {ast.unparse(argument.value) for argument in given if isinstance(argument, ast.Starred)}
        any_type = [p for p in within if isinstance(p, ast.AnnAssign) and ast.unparse(p.annotation) == "Any"]
        splatted += [f"{name}: {target}" for part in any_type if (target := ast.unparse(part.target)) in stars]
    assert splatted == []
