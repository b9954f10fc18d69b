"""Stubs that type checkers and editors read: of packages whose names are imported when they are used, and of options.

python tests/stubs.py    # writes them anew
"""

import inspect
import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

LAZY_PACKAGES = ["jaxeval", "jaxeval.plots", "jaxeval.core"]
#: Functions whose options are those of declared classes: a TypedDict has them, by the name of the function.
WITH_OPTIONS = [
    "AnchoredVerdicts.from_pandas", "Battles.from_pandas", "audit", "bootstrap", "compare_boards", "fit_bradley_terry",
    "fit_judge_panel", "judge_accuracy", "kendall_tau", "leaderboard", "prediction_powered", "read_scores",
    "separability", "small_categories", "style_effect",
]  # fmt: skip
OPTIONS = "jaxeval.options.arguments"


def stub_path(package):
    if package == OPTIONS:
        return Path(import_module("jaxeval.options").__file__).with_name("arguments.pyi")
    return Path(import_module(package).__file__).with_suffix(".pyi")


def stub_text(package):
    """What the table of a package says, as imports; or what signatures say of options."""
    if package == OPTIONS:
        return options_text()
    table = vars(import_module(package))
    root = "jaxeval" if package == "jaxeval.core" else package
    names = [(f"{root}.{home}", name) for home, names in table["_HOMES"].items() for name in names]
    names = sorted([*names, *((package, name) for name in table.get("_PACKAGES", []))])
    lines = [f"from {home} import {name} as {name}" for home, name in names]
    return "\n".join(["# Written by tests/stubs.py from the table in __init__.py.", *lines, ""])


def options_text():
    """Return a TypedDict for each function, of the options that `spelled_out` named in its signature."""
    jaxeval, blocks = import_module("jaxeval"), []
    for name in WITH_OPTIONS:
        function = attrgetter(name)(jaxeval)
        listed = inspect.signature(function.__wrapped__).parameters
        named = {
            key: own.annotation for key, own in inspect.signature(function).parameters.items() if key not in listed
        }
        lines = [f"    {key}: {kind.__name__ if isinstance(kind, type) else kind}" for key, kind in named.items()]
        words = name.removesuffix(".from_pandas").split("_")
        title = "".join(word[:1].upper() + word[1:] for word in words)
        blocks.append("\n".join([f"class {title}Arguments(typing.TypedDict, total=False):", *lines]))
    text = "\n\n".join(blocks).replace("'", '"')
    text = re.sub(r"typing\.Optional\[(typing\.Literal\[[^]]*\])\]", r"\1 | None", text)  # as others are written
    modules = sorted({"typing", *(word.rpartition(".")[0] for word in re.findall(r"\b[a-z][\w.]*\.[A-Za-z]\w*", text))})
    own, others = ([f"import {x}" for x in modules if x.startswith("jaxeval") is here] for here in (True, False))
    head = "# Written by tests/stubs.py from the declarations of options."
    return "\n".join([head, *others, "", *own, "", text, ""])


if __name__ == "__main__":
    for package in [*LAZY_PACKAGES, OPTIONS]:
        stub_path(package).write_text(stub_text(package))
