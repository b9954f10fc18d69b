"""What `accelerator.py` found, as the tables of benchmarks/README.md.

    python benchmarks/accelerator_page.py checkup    # keeps its JSON as results/accelerator_DEVICE.json, and makes them
    python benchmarks/accelerator_page.py            # makes them anew of what results/ holds

They stand between two markers, a section for each device. What was not measured has no row.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import RESULTS

README = Path(__file__).parent / "README.md"
BEGIN, END = "<!-- accelerators: begin -->", "<!-- accelerators: end -->"
NOTHING = "No accelerator has been measured yet."
SIZES = {"votes": "votes", "battles": "battles", "matches": "matches", "models": "models",
         "categories": "categories", "covariates": "covariates", "resamples": "resamples"}  # fmt: skip


def page(records: Sequence[dict[str, Any]]) -> str:
    """What stands between the markers."""
    return "\n\n".join(section(record) for record in records) or NOTHING


def section(record: dict[str, Any]) -> str:
    """One check-up: the device, a table of times, and sentences on what else was found."""
    found = {name: step["found"] for name, step in record["steps"].items() if step["state"] == "done"}
    parts = [_title(found.get("machine", {})), _times(record, found)]
    sentences = [_ceilings, _equality, _draws, _chunks, _profile]
    parts += [text for sentence in sentences if (text := sentence(record["steps"]))]
    missing = [f"{name} ({step['state']})" for name, step in record["steps"].items() if step["state"] != "done"]
    parts += [f"Without a result: {', '.join(missing)}."] if missing else []
    return "\n\n".join(part for part in parts if part)


def _title(machine: dict[str, Any]) -> str:
    if not machine:
        return "### A device that was not told"
    versions = machine["versions"]
    return f"### {machine['device']}\n\n{machine['date']}, Python {machine['python']}, jax {versions['jax']}."


def _times(record: dict[str, Any], found: dict[str, Any]) -> str:
    rows = []
    for name, row in found.items():
        if "waited_seconds" not in row:
            continue
        peak = record["steps"][name].get("peak_device_bytes")
        limit = record["limits"].get(name)
        rows.append([
            name, ", ".join(f"{row[key]:,} {word}" for key, word in SIZES.items() if key in row),
            _shown(row["first_call_seconds"]), _shown(row["seconds"]["median"]),
            _shown(row["waited_seconds"]["in_programs"]), _shown(row["waited_seconds"]["outside"]),
            f"{peak / 1e6:,.0f} MB" if peak else "", f"{limit['times_the_limit']:.1f}" if limit else "",
        ])  # fmt: skip
    if not rows:
        return ""
    heads = ["step", "what", "first call", "median", "in programs", "outside", "device memory", "times the limit"]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _ceilings(steps: dict[str, Any]) -> str:
    rates = steps.get("ceilings", {}).get("found")
    if not rates:
        return ""
    by_size = {int(size): rate for size, rate in rates["bytes_per_second"].items()}
    copying = ", ".join(f"{rate / 1e9:,.0f} GB/s of {size / 1e6:,.1f} MB" for size, rate in sorted(by_size.items()))
    flops = ", ".join(
        f"{said} in {kind} {rates[f'{kind}_{what}_flops'] / 1e12:.2f}"
        for what, said in {"product": "matrix products", "elementwise": "elementwise"}.items()
        for kind in ("float64", "float32")
    )
    return (
        f"Ceilings: {copying}, read and written; TFLOP/s of {flops}; {rates['random_words_per_second'] / 1e9:.1f} "
        f"billion random words a second; {1e6 * rates['launch_seconds']:.1f} µs a call, "
        f"{1e6 * rates['while_turn_seconds']:.1f} µs a turn of a loop."
    )


def _equality(steps: dict[str, Any]) -> str:
    found = steps.get("equality", {}).get("found")  # told where arrays differ, too
    if not found or not found["arrays"]:
        return ""
    single = [x for name, x in found["arrays"].items() if ".single." in name]
    double = [x for name, x in found["arrays"].items() if ".single." not in name]
    said = [f"{len(double)} arrays in double precision are within {_most(double)} of a CPU's"] if double else []
    said += [f"{len(single)} in single precision within {_most(single)}"] if single else []
    too_far = f" Too far apart: {', '.join(found['too_far'])}." if found["too_far"] else ""
    return f"Beside a CPU: {', '.join(said)}.{too_far}"


def _most(differences: Sequence[float | None]) -> str:
    known = [x for x in differences if x is not None]
    odd = len(differences) - len(known)
    return f"{max(known, default=0):.1e} Elo" + (f" ({odd} have missing or infinite values elsewhere)" if odd else "")


def _draws(steps: dict[str, Any]) -> str:
    found = steps.get("other chunks", {}).get("found")
    if not found:
        return ""
    most = {how: max(row[how] for row in found.values()) for how in ("other_chunks", "again")}
    return f"Draws in other chunks differ by {most['other_chunks']:.1e} Elo, in another run by {most['again']:.1e}."


def _chunks(steps: dict[str, Any]) -> str:
    rows = [row for step in steps.values() if "chunk_size" in (row := step.get("found", {}))]
    if not rows:
        return ""
    said = ", ".join(f"{_shown(row['seconds']['median'])} of {row['chunk_size']:,}" for row in rows)
    return f"{rows[0]['board']} with {rows[0]['resamples']:,} resamples in chunks of several sizes: {said}."


def _profile(steps: dict[str, Any]) -> str:
    found = steps.get("profile", {}).get("found")
    if not found or not found["calls"]:
        return ""
    longest = ", ".join(f"`{row['name']}` {_shown(row['seconds'])}" for row in found["longest"][:5])
    return (
        f"Profile of {found['board']} with {found['resamples']:,} resamples: {found['calls']:,} operations, "
        f"{_shown(found['seconds'])}; the longest {longest}."
    )


def _shown(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.1f} ms"


def kept(folder: Path) -> Path:
    """Where results/ has the check-up of a ``folder`` now."""
    text = (folder / "checkup.json").read_text()
    record = json.loads(text)
    if record["small"]:
        raise SystemExit(f"{folder} holds a check-up in small, which tells nothing of a device")
    if record["steps"].get("machine", {}).get("state") != "done":
        raise SystemExit(f"{folder} does not say which device it was: run the step machine")
    device = record["steps"]["machine"]["found"]["device"]
    path = RESULTS / f"accelerator_{re.sub('[^a-z0-9]+', '-', device.lower())}.json"
    path.write_text(text)
    return path


def with_page(readme: str, text: str) -> str:
    """The ``readme`` with ``text`` between the markers."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise SystemExit(f"{README} has no lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="that of accelerator.py --out")
    folder = parser.parse_args().folder
    if folder:
        print(f"wrote {kept(folder)}")
    records = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("accelerator_*.json"))]
    README.write_text(with_page(README.read_text(), page(records)))


if __name__ == "__main__":
    main()
