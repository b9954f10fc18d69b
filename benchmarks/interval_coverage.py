"""Do the library's intervals hold? Every interval that no other benchmark simulates, on small simulated data sets.

    python benchmarks/interval_coverage.py                    # what is not there yet; each part is saved when done
    python benchmarks/interval_coverage.py plain ties         # these parts, anew
    python benchmarks/interval_coverage.py plain --sets 20    # a quick look: nothing is written

A part simulates data sets whose truth is known, and asks how many of the intervals hold it. Seeds are fixed.
`trust.py` puts the rows, and those of the other benchmarks, on one page.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import coverage_boards  # noqa: F401  # each registers its parts
import coverage_evaluators  # noqa: F401
import coverage_judges  # noqa: F401
import coverage_votes  # noqa: F401
import pandas as pd
from coverage_rows import PARTS
from harness import RESULTS, environment

PATH = RESULTS / "coverage.json"


def run(name: str, n: int | None) -> dict[str, Any]:
    """What a part found, with its date and its processor seconds."""
    simulate, usual = PARTS[name]
    start = time.process_time()
    rows = simulate(usual if n is None else n)
    shown = pd.DataFrame(rows)[["method", "case", "nominal", "observed", "standard_error", "without_interval"]]
    print(f"\n{name}\n{shown.to_string(float_format='{:.3f}'.format)}", flush=True)
    found = environment()
    about = {"date": found["date"], "jaxeval": found["versions"].get("jaxeval")}
    return {**about, "processor_seconds": round(time.process_time() - start, 1), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--sets", type=int, help="data sets a case; nothing is written")
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    saved = json.loads(PATH.read_text()) if PATH.exists() else {}
    for name in asked.parts or [name for name in PARTS if name not in saved]:
        found = run(name, asked.sets)
        if asked.sets is None:
            saved = {own: saved[own] if own != name else found for own in PARTS if own in saved or own == name}
            PATH.write_text(json.dumps(saved, indent=1) + "\n")


if __name__ == "__main__":
    main()
