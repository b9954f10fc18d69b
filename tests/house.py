"""Print how large the house is: lines, modules, types, and what one call of the command runs.

python tests/house.py
"""

import ast
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Follow one call of the command in a process of its own, and print the functions of the package that ran.
TRACE = """
import json, os, sys, threading
from jaxeval.cli.main import run
import jaxeval
home, ran = os.path.dirname(jaxeval.__file__), set()

def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(home) and not code.co_name.startswith("<"):
        ran.add((code.co_filename, code.co_qualname))

threading.setprofile(note)
sys.setprofile(note)
try:
    run()
except SystemExit:
    pass
sys.setprofile(None)
threading.setprofile(None)
print("\\n" + json.dumps(sorted(ran)))
"""


def lines(folder: str, kind: str = "*.py") -> int:
    """Count the lines of all Python files below a folder."""
    return sum(len(file.read_text().splitlines()) for file in (ROOT / folder).rglob(kind))


def with_one_importer(imports: dict[str, list], modules: frozenset[str]) -> list[str]:
    """Name the modules that exactly one other module imports, also within functions."""
    pairs = {(module, importer) for importer, names in imports.items() for module in names if module != importer}
    count = Counter(module for module, _ in pairs)
    return sorted(module for module in modules if count[module] == 1)


def functions_run(arguments: list[str]) -> list[tuple[str, str]]:
    """Return the file and the name of every function of the package that a call of the command runs."""
    done = subprocess.run([sys.executable, "-c", TRACE, *arguments], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_for_votes() -> list[tuple[str, str]]:
    """Return what `jaxeval leaderboard votes.parquet` runs, for simulated votes."""
    from jaxeval import simulate_battles

    with tempfile.TemporaryDirectory() as folder:
        votes = Path(folder) / "votes.parquet"
        simulate_battles(2_000, 8).to_pandas().to_parquet(votes)
        return functions_run(["leaderboard", str(votes)])


def entered_for_a_table() -> set[tuple[str, str]]:
    """Return the functions that a call of `Battles.from_pandas` of a small plain table enters, after a first one."""
    import pandas as pd

    from jaxeval import Battles

    table = pd.DataFrame({"model_a": [*"xyz"], "model_b": [*"yzx"], "winner": ["model_a", "model_b", "tie"]})
    entered = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and str(ROOT / "jaxeval") in code.co_filename and not code.co_name.startswith("<"):
            entered.add((code.co_filename, code.co_qualname))

    before = sys.getprofile()
    for _ in range(2):  # the first one imports
        entered.clear()
        sys.setprofile(note)
        try:
            Battles.from_pandas(table)
        finally:
            sys.setprofile(before)
    return entered


def measures() -> dict[str, tuple[object, object]]:
    """Return what is measured, and the goal of each: a number or words."""
    from test_layers import all_imports, modules, nodes

    types = Counter(node.name for file in nodes().values() for node in file if isinstance(node, ast.ClassDef))
    ran, entered = run_for_votes(), entered_for_a_table()
    return {
        "lines of the package": (lines("jaxeval"), 50_000),
        "modules": (len(modules()), 190),
        "modules with one importer": (len(with_one_importer(all_imports(), modules())), 30),
        "types": (types.total(), 230),
        "names of types defined twice": (sum(count > 1 for count in types.values()), 0),
        "files run by `leaderboard votes.parquet`": (len({file for file, _ in ran}), 70),
        "functions run by it": (len(ran), 450),
        "functions entered from a table to `Battles`": (len(entered), 12),
        "modules that hold them": (len({file for file, _ in entered}), 6),
        "lines of tests": (lines("tests"), "fewer"),
    }


def main() -> None:
    print(f"{'':44}{'now':>8}{'goal':>8}")
    for name, (now, goal) in measures().items():
        print(f"{name:44}{now:>8,}{goal if isinstance(goal, str) else f'{goal:,}':>8}")


if __name__ == "__main__":
    main()
