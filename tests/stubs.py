"""Stubs of packages whose names are imported when they are used: type checkers and editors read them.

python tests/stubs.py    # writes them anew
"""

from importlib import import_module
from pathlib import Path

LAZY_PACKAGES = ["jaxeval", "jaxeval.plots"]


def stub_path(package):
    return Path(import_module(package).__file__).with_suffix(".pyi")


def stub_text(package):
    """What the table of a package says, as imports."""
    table = vars(import_module(package))
    names = [(f"{package}.{home}", name) for home, names in table["_HOMES"].items() for name in names]
    names = sorted([*names, *((package, name) for name in table.get("_PACKAGES", []))])
    lines = [f"from {home} import {name} as {name}" for home, name in names]
    return "\n".join(["# Written by tests/stubs.py from the table in __init__.py.", *lines, ""])


if __name__ == "__main__":
    for package in LAZY_PACKAGES:
        stub_path(package).write_text(stub_text(package))
