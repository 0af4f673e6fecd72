"""The process in which cells are measured: cells come in as JSON lines, results go out likewise.

One process serves many cells, so that imports and compilation are not measured; the parent ends
it when a cell takes too long. Peers print as they like: their standard output goes to standard
error, and the results to the descriptor that was standard output.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
import warnings

from benchmarks.peers.cells import Cell


def answer(cell: Cell) -> dict[str, object]:
    """Measure a cell; a failure is a result too."""
    start = time.perf_counter()
    try:
        name = cell.experiment if "." in cell.experiment else f"benchmarks.peers.{cell.experiment}"
        experiment = importlib.import_module(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"status": "ok", **experiment.measure(cell)}
    except Exception as error:  # whatever a peer raises is counted, not fatal
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return {"status": "failed", "error": text, "seconds": time.perf_counter() - start}


def main() -> None:
    """Serve until the input ends."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        found = answer(Cell(**json.loads(line)))
        results.write(json.dumps(found) + "\n")
        results.flush()


if __name__ == "__main__":
    main()
