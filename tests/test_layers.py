"""The tree shows the architecture: packages import those below them only."""

import ast
from pathlib import Path

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
]
HOME = Path(jaxeval.__file__).parent


def imports(file):
    """The layers that a file imports, also within functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [name.name for name in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            if name.startswith("jaxeval."):
                yield name.split(".")[1]
            elif name == "jaxeval":
                yield from (imported.name for imported in node.names)


def test_every_module_has_a_layer():
    found = {path.stem for path in HOME.glob("*.py")} | {path.parent.name for path in HOME.glob("*/__init__.py")}
    assert found - {"__init__"} == set(LAYERS)


def test_imports_go_down():
    upward = [
        f"{file.relative_to(HOME)} imports {imported}"
        for file in HOME.rglob("*.py")
        if (layer := file.relative_to(HOME).parts[0].removesuffix(".py")) != "__init__"
        for imported in imports(file)
        if LAYERS.index(imported) > LAYERS.index(layer)
    ]
    assert upward == []


def test_siblings_stand_alone():
    """Soft-Elo, accuracy, anchored ratings and evaluators know nothing of each other."""
    siblings = {"softelo", "accuracy", "anchored", "evaluators"}
    mixed = [
        f"{file.relative_to(HOME)} imports {imported}"
        for sibling in siblings
        for file in (HOME / sibling).rglob("*.py")
        for imported in set(imports(file)) & siblings - {sibling}
    ]
    assert mixed == []
