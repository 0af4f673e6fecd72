"""What the library makes of designs and files that are built to hurt.

    python -m benchmarks.hostile designs [--n 100]
    python -m benchmarks.hostile files [--n 1000] [--forged 100]

Designs: nearly singular ones (clusters, near-duplicates, lines, grids), with the nugget estimated,
fixed at 1e-6 and zero; counts what was fitted, what was refused with an explanation, and what went
wrong. Files: a saved emulator and a checkpoint, each with one bit flipped at random places, cut
off, and files of other programs; counts errors of the documented kind. The first --forged of these
flips, with the checksum made to fit again as a forger would, are read in processes of their own:
counts crashes.
"""

from __future__ import annotations

import argparse
import collections
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from tests.emulator.designs import NUGGETS, hurting_designs, verdict

import paims
from paims import _sealed, simulators
from paims.emulator import EmulatorFileError
from paims.emulator import _storage as storage
from paims.sampling import CheckpointError
from paims.sampling import _checkpoint as checkpoint


def designs(n: int) -> int:
    """Fit every design with every nugget; number of faults."""
    warnings.simplefilter("ignore", UserWarning)
    faults = 0
    counts: dict[Any, collections.Counter[str]] = {x: collections.Counter() for x in NUGGETS}
    for name, X, y in hurting_designs(n):
        for nugget in NUGGETS:
            try:
                found = verdict(X, y, nugget)
            except Exception as error:  # a crash is what is looked for
                found = f"{type(error).__name__}: {error}"
            print(f"{name}, nugget {nugget}: {found}", file=sys.stderr, flush=True)
            counts[nugget][found if found in ("fitted", "refused") else "fault"] += 1
            if found not in ("fitted", "refused"):
                faults += 1
                print(f"{name}, nugget {nugget}: {found}")
    for nugget, counter in counts.items():
        print(f"nugget {nugget!s:9} {dict(counter)}")
    return faults


def files(n: int, n_forged: int) -> int:
    """Damage files and read them; number of faults."""
    with tempfile.TemporaryDirectory() as folder:
        simulator = simulators.branin
        X = simulator.design(18, 4)
        path, state = Path(folder) / "emulator.h5", Path(folder) / "run.h5"
        emulator = paims.Emulator(n_samples=300, random_state=0)
        emulator.fit(X, simulator(X), checkpoint=state).save(path)
        faults = _damage(
            "emulator", path, storage.FORMAT, paims.load_emulator, EmulatorFileError, n, n_forged
        )
        read = _read_checkpoint
        faults += _damage(
            "checkpoint", state, checkpoint.FORMAT, read, CheckpointError, n, n_forged
        )
    return faults


def _read_checkpoint(path: Path) -> object:
    return checkpoint.read_checkpoint(path)


def _damage(
    name: str,
    path: Path,
    kind: str,
    read: Callable[[Path], object],
    error: type[Exception],
    n: int,
    n_forged: int,
) -> int:
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    places, bits = rng.integers(len(content), size=n), rng.integers(8, size=n)
    results: collections.Counter[str] = collections.Counter()
    for place, bit in zip(places, bits, strict=True):
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(bit)
        path.write_bytes(flipped)
        results[_outcome(path, read, error)] += 1
    print(f"{name}: {n} flipped bits: {dict(results)}", flush=True)
    cut: collections.Counter[str] = collections.Counter()
    for length in np.linspace(0, len(content) - 1, 100).astype(int):
        path.write_bytes(content[:length])
        cut[_outcome(path, read, error)] += 1
    print(f"{name}: 100 cut off: {dict(cut)}")
    with h5py.File(path, "w") as file:
        file["X"] = np.zeros(3)
    foreign = _outcome(path, read, error)
    print(f"{name}: HDF5 of another program: {foreign}")
    forged: collections.Counter[str] = collections.Counter()
    for place, bit in zip(places[:n_forged], bits[:n_forged], strict=True):
        flipped = bytearray(content[512:])
        flipped[place % len(flipped)] ^= 1 << int(bit)
        path.write_bytes(_sealed._seal(kind, bytes(flipped)) + flipped)
        forged[_apart(path, read, error)] += 1
    print(f"{name}: {n_forged} flipped bits under a forged checksum: {dict(forged)}")
    path.write_bytes(content)
    wrong = sum(v for key, v in (results + cut).items() if key != "error") + (foreign != "error")
    return wrong


def _outcome(path: Path, read: Callable[[Path], object], error: type[Exception]) -> str:
    try:
        read(path)
    except error:
        return "error"
    except Exception as other:  # what is looked for
        return f"other error, {type(other).__name__}"
    return "read"


def _apart(path: Path, read: Callable[[Path], object], error: type[Exception]) -> str:
    """The same in a process of its own, which may crash or hang."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        warnings.simplefilter("ignore")
        codes = {"error": 0, "read": 1}
        os._exit(codes.get(_outcome(path, read, error), 2))
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"crash, signal {os.WTERMSIG(status)}"
    return ("error", "read as if whole", "other error")[os.WEXITSTATUS(status)]


def main() -> None:
    """Run one of the two."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["designs", "files"])
    parser.add_argument("--n", type=int)
    parser.add_argument("--forged", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.what == "designs":
        sys.exit(designs(arguments.n or 100) > 0)
    sys.exit(files(arguments.n or 1000, arguments.forged) > 0)


if __name__ == "__main__":
    main()
