"""The numbers of docs/accelerators.md are those of the committed results, and of the formulas beside them."""

import json
import math
import re
from pathlib import Path

import pytest

from jaxeval.execution.shapes import REFITS, padded_pairs, padded_size

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "accelerators.md").read_text(encoding="utf-8")
BOARDS = {"M": 130, "L": 300}
PCIE_BYTES, FLOPS = 64e9, 34e12  # a second, of PCI Express 5 and of an H200 in double precision, as the page says
LAUNCH, WAIT = 3e-6, 15e-6  # seconds, as the page says


def results(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def memory_bandwidth():
    """Of an H200, bytes a second, as the compiler is told."""
    return float(re.search(r"memory_bandwidth: (\d+)", (ROOT / "tests" / "aot" / "h200.txtpb").read_text())[1])


def limits(board):
    """What is counted of 1,000 resamples of a board, and what follows."""
    counted = results("compiled_cuda")["programs"][f"{board}, float64, refit-chord"]
    steps = results("bootstrap")["boards"][board]["mean_steps"]
    host = results("host")["results"][board]["seconds"]["median"]
    lanes, size = counted["lanes_of_chunk"], padded_size(BOARDS[board])
    pairs = padded_pairs(BOARDS[board] * (BOARDS[board] - 1) // 2, size)
    table = 4 * size**2
    moved = lanes * (2 * 4 * pairs + table * (1 + steps))
    flops = lanes * steps * 6.75 * size**2
    turns = math.ceil(steps)
    once, chunk, again, step = counted["launches"]
    launches, waits = once + chunk + again + turns * step, (1 + 1) + (1 + 1) + (turns + 1)
    sent = (counted["argument_bytes"] + counted["result_bytes"]) / PCIE_BYTES
    seconds = {"host": host, "sent": sent, "launches": launches * LAUNCH, "waits": waits * WAIT,
               "memory": moved / memory_bandwidth(), "flops": flops / FLOPS}  # fmt: skip
    return {
        "models, pairs, lanes": f"{size}, {pairs:,}, {lanes:,}",
        "tables of all lanes, MB": f"{lanes * table / 1e6:,.0f}",
        "steps of a resample, on average": f"{steps:.2f}",
        "host alone, ms": f"{1e3 * host:.1f}",
        "sent to the device, MB": f"{counted['argument_bytes'] / 1e6:.2f}",
        "fetched from it, MB": f"{counted['result_bytes'] / 1e6:.2f}",
        "temporary memory, MB": f"{counted['temporary_bytes'] / 1e6:,.0f}",
        "memory read and written at least, GB": f"{moved / 1e9:.2f}",
        "operations in double precision at least, billions": f"{flops / 1e9:.2f}",
        "random words, millions": f"{lanes * 3 * pairs / 1e6:.0f}",
        "launches at least": f"{launches}",
        "waits of the host at least": f"{waits}",
        "sending and fetching, ms": f"{1e3 * sent:.2f}",
        "launches and waits, ms": f"{1e3 * (seconds['launches'] + seconds['waits']):.2f}",
        "memory, ms": f"{1e3 * seconds['memory']:.2f}",
        "operations, ms": f"{1e3 * seconds['flops']:.2f}",
        "together at least, ms": f"{1e3 * together(seconds, 1):.1f}",
        "with a device at 3 and 10 times its limit, ms": " and ".join(
            f"{1e3 * together(seconds, times):.0f}" for times in (3, 10)
        ),
    }


def together(seconds, times):
    device = times * max(seconds["memory"], seconds["flops"])
    return seconds["host"] + seconds["sent"] + seconds["launches"] + seconds["waits"] + device


def test_the_limits_of_1000_resamples():
    assert REFITS.accelerator.lanes >= 1024  # one chunk
    columns = [limits(board) for board in BOARDS]
    for what in columns[0]:
        assert f"| {what} | {' | '.join(column[what] for column in columns)} |" in PAGE


COMPILED = {
    "compiled_cuda": ["S, float64, refit-chord", "M, float64, refit-chord", "L, float64, refit-chord",
                      "L, float32, refit-chord", "S, float64, refit-newton_cg", "M, bayesian, refit-chord",
                      "style control, 200,000 rows of 4 covariates, refit_contextual-chord",
                      "wide, 5,000 models, refit_sparse-sparse",
                      "Soft-Elo, 1,000,000 battles of 300 models, own_resamples"],
}  # fmt: skip


@pytest.mark.parametrize(("result", "program"), [(r, p) for r, programs in COMPILED.items() for p in programs])
def test_what_the_compiler_says(result, program):
    row = results(result)["programs"][program]
    cells = [f"{row['lanes_of_chunk']:,}", *(f"{row[f'{what}_bytes'] / 1e6:.1f}" for what in ("argument", "result")),
             *(f"{x / 1e6:,.0f}" for x in (row["temporary_bytes"], row["bytes_by_memory_limit"])),
             str(row["host_loops"]), ", ".join(map(str, row["launches"]))]  # fmt: skip
    assert f"| {program} | {' | '.join(cells)} |" in PAGE
    assert row["temporary_bytes"] + row["argument_bytes"] + row["result_bytes"] <= row["bytes_by_memory_limit"]
    assert (row["collectives"], row["conditionals"]) == (0, 0)


def test_versions_and_devices():
    for name in ("compiled_cuda", "compiled_tpu"):
        found = results(name)
        assert found["compiled_for"] in PAGE
        for row in found["programs"].values():
            assert row["compiled_with"] in PAGE


def test_a_program_of_a_tpu():
    row = results("compiled_tpu")["programs"]["M, float64, refit-chord"]
    said = (
        f"took {row['seconds'] / 60:.0f} minutes on two cores that others kept busy. They run in chunks of "
        f"{row['lanes_of_chunk']} resamples and take {row['temporary_bytes'] / 1e6:.0f} MB of temporary memory, "
        f"where the limit counts {row['bytes_by_memory_limit'] / 1e6:,.0f} MB"
    )
    assert said in " ".join(PAGE.split())
    assert row["temporary_bytes"] <= row["bytes_by_memory_limit"]


def test_what_is_returned_and_who_is_busy():
    devices = results("transfer")["devices"]
    rows = [row for boards in devices.values() for rows in boards.values() for row in rows]
    times, share = ([row[key] for row in rows] for key in ("times_the_results", "busiest_times_its_share"))
    assert f"{min(times):.2f} to {max(times):.2f} times the bytes of the results" in PAGE
    assert f"at most {max(share):.2f} times its share" in PAGE
    assert all(lanes > 0 for row in rows for lanes in row["lanes_of_devices"])
    arena = results("host")["results"]["arena"]
    assert f"{arena['seconds']['median']:.1f} s of the host and {arena['peak_memory_beyond_mb'] / 1e3:.1f} GB" in PAGE
