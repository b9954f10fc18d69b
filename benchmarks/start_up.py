"""What a person waits for before anything is computed, and the first board: whole processes, in turns.

    python benchmarks/start_up.py
    python benchmarks/start_up.py --repeats 3

The command's help, version and an error in an option; imports, beside those of JAX and pandas; and then board S of
`whole_process.py`: `jaxeval leaderboard`, first and later runs, beside a script that loops choix.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from harness import asked_sizes, save
from whole_process import in_turns, installed_tools, run_board

_COMMANDS = {
    "jaxeval --help": ["-m", "jaxeval", "--help"],
    "jaxeval --version": ["-m", "jaxeval", "--version"],
    "jaxeval leaderboard --help": ["-m", "jaxeval", "leaderboard", "--help"],
    "a typo in an option": ["-m", "jaxeval", "leaderboard", "--resample", "9"],
    "python": ["-c", "pass"],
    "import jaxeval": ["-c", "import jaxeval"],
    "import jax, pandas": ["-c", "import jax, pandas"],
    "from jaxeval import leaderboard": ["-c", "from jaxeval import leaderboard"],
}


def main() -> None:
    """Time all."""
    repeats = asked_sizes(__doc__, repeats=9).repeats
    commands = {name: [sys.executable, *arguments] for name, arguments in _COMMANDS.items()}
    with tempfile.TemporaryDirectory() as folder:
        rows = in_turns(commands, Path(folder), repeats, {"a typo in an option": 2})
    for name, row in rows.items():
        print(f"  {name:34s} {row['cpu_seconds']:6.3f} s of all cores, {row['seconds']['median']:6.3f} s")
    over = rows["from jaxeval import leaderboard"]["cpu_seconds"] - rows["import jax, pandas"]["cpu_seconds"]
    print(f"  over JAX and pandas                {over:6.3f} s of all cores")
    tools = [tool for tool in installed_tools()[0] if tool != "arena-rank"]
    board = run_board("S", tools, repeats)
    save("start_up", {"processes": rows, "over_jax_and_pandas_cpu_seconds": over, "board_s": board})


if __name__ == "__main__":
    main()
