"""One full-data fit: jaxeval against its peers.

    python benchmarks/fit.py

jaxeval is timed from battles in memory (compressed) to a labelled result, which includes the search for separated
models; a peer from its table of counts to log-strengths.
"""

from __future__ import annotations

import time

import numpy as np
from harness import as_battles, environment, save, seconds
from peers import ELO_PER_LOGIT, peers, simulate_board

import jaxeval


def run_board(name: str) -> dict[str, object]:
    board = simulate_board(name)
    battles = as_battles(board)
    _ = battles.cells
    start = time.perf_counter()
    ratings = jaxeval.fit_bradley_terry(battles).ratings.to_numpy()
    first_call = time.perf_counter() - start
    ours = seconds(lambda: jaxeval.fit_bradley_terry(battles).ratings, 31)
    print(f"\n{name}\n  {'jaxeval':20s} {1e3 * ours['median']:9.2f} ms  (first call {first_call:.2f} s)")
    rows = {}
    for peer in peers():
        peer.fit(board.outcome_counts)
        timed = seconds(lambda fit=peer.fit: fit(board.outcome_counts), 3 if peer.slow else 31)
        difference = np.abs(peer.fit(board.outcome_counts) * ELO_PER_LOGIT - (ratings - 1000)).max()
        rows[peer.name] = {**timed, "max_difference_elo": float(difference), "version": peer.version}
        print(f"  {peer.name:20s} {1e3 * timed['median']:9.2f} ms  answers within {difference:.1e} Elo")
    return {"jaxeval_seconds": ours, "jaxeval_first_call_seconds": first_call, "peers": rows}


def main() -> None:
    print(environment())
    save("fit", {"boards": {name: run_board(name) for name in ("S", "M", "L")}})


if __name__ == "__main__":
    main()
