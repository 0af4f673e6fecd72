"""Kill a run with SIGKILL at random moments, go on from its checkpoint, compare the draws.

    python -m benchmarks.kills [--kills 20] [--seed 0]

A run in a process of its own writes its checkpoint after every batch, so that many of the kills
fall into a write. After each the file has to be readable. When a run comes to its end its draws,
weights and evidence have to be those of an undisturbed run, to the bit; then the next begins, with
another seed, until as many kills as asked for have been survived.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import paims
from paims.sampling._checkpoint import read_checkpoint

_PAUSE = 1e-4  # seconds of a point


def density(x: np.ndarray) -> np.ndarray:
    """Two modes, slow enough to be killed in the middle."""
    time.sleep(_PAUSE * len(x))
    left = -0.5 * np.sum((x + 0.5) ** 2, axis=1) / 0.02
    right = -0.5 * np.sum((x - 0.5) ** 2, axis=1) / 0.001
    return np.logaddexp(left + np.log(0.3), right + np.log(0.7))


def warm_up() -> None:
    """Import and compile, which is not what is to be killed."""
    paims.sample(
        lambda x: -50.0 * np.sum(x**2, axis=1), paims.Uniform([-1.0] * 3, [1.0] * 3), 400,
        random_state=0, progress=False,
    )  # fmt: skip


def run(seed: int, path: str | None) -> str:
    """Run to the end; name of everything in the result."""
    box = paims.Uniform([-3.0] * 3, [3.0] * 3)
    options = {} if path is None else {"checkpoint": path, "checkpoint_every": 0.02}
    result = paims.sample(density, box, 400, random_state=seed, progress=False, **options)
    name = hashlib.sha256(repr((result.log_evidence, result.n_evaluations)).encode())
    for array in (result.draws, result.weights, result.log_density, result.levels):
        name.update(array.tobytes())
    return name.hexdigest()


def lived(seed: int, path: Path, seconds: float | None) -> str | None:
    """Result of a process that goes on with the run, or None if it was killed first."""
    command = [sys.executable, "-m", "benchmarks.kills", "--child", str(path), "--seed", str(seed)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    assert process.returncode == 0
    return output.strip()


def survive(n_kills: int, seed: int) -> int:
    """Kill, go on and compare; number of failures."""
    rng = np.random.default_rng(seed)
    warm_up()
    killed, n_runs, failures = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while killed < n_kills:
            start = time.monotonic()
            expected = run(seed + n_runs, None)
            whole = time.monotonic() - start
            path = Path(folder) / f"run-{n_runs}.h5"
            while True:
                wait = rng.uniform(0.0, 1.5 * whole) if killed < n_kills else None
                found = lived(seed + n_runs, path, wait)
                if found is not None:
                    break
                killed += 1
                level = "no file yet"
                if path.exists():
                    saved = read_checkpoint(path)
                    n_levels, n_batches = len(saved.progress.infos), len(saved.journal.entries)
                    level = f"{n_levels} levels, {n_batches} batches"
                print(f"kill {killed:2d} after {wait:5.2f} s: readable, {level}", flush=True)
            same = found == expected
            failures += not same
            left = [item.name for item in Path(folder).iterdir() if item.suffix == ".tmp"]
            print(f"run {n_runs}: {'the same to the bit' if same else 'DIFFERENT'}; "
                  f"{len(left)} temporary file(s) left by kills")  # fmt: skip
            n_runs += 1
    print(f"{killed} kills, {n_runs} runs, {failures} differ from the undisturbed run")
    return failures


def main() -> None:
    """Run the benchmark, or one of its lives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child is None:
        sys.exit(survive(arguments.kills, arguments.seed) > 0)
    warm_up()
    print("ready", flush=True)
    print(run(arguments.seed, arguments.child))


if __name__ == "__main__":
    main()
