"""SIGKILL, which no program can answer: what is on the disk has to be enough.

The process kills itself at a chosen moment, so that no clock is involved;
`python -m benchmarks.kills` kills at random moments from outside.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.sampling.hurting import two_modes

import paims
from paims.sampling._checkpoint import read_checkpoint

LIFE = """
import os, signal, sys
import paims
from tests.sampling.hurting import two_modes

path, at, place = sys.argv[1], int(sys.argv[2]), sys.argv[3]
counts = {"batch": 0, "write": 0, "rename": 0}

def may_die(where):
    counts[where] += 1
    if where == place and counts[where] == at:
        os.kill(os.getpid(), signal.SIGKILL)

def density(x):
    may_die("batch")
    return two_modes(x)

fsync, replace = os.fsync, os.replace
os.fsync = lambda handle: (may_die("write"), fsync(handle))
os.replace = lambda a, b: (may_die("rename"), replace(a, b))
box = paims.Uniform([-2.0, -2.0], [2.0, 2.0])
result = paims.sample(density, box, 200, random_state=3, progress=False, checkpoint=path)
print(result.log_evidence.hex(), (result.draws.tobytes() + result.weights.tobytes()).hex())
"""


def live(path: Path, at: int, place: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", LIFE, str(path), str(at), place]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_killed_in_batches_and_in_writes(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    for at, place in ((6, "batch"), (3, "write"), (2, "rename")):
        assert live(path, at, place).returncode == -signal.SIGKILL
        read_checkpoint(path)
    done = live(path, 0, "")
    assert done.returncode == 0, done.stderr
    box = paims.Uniform([-2.0, -2.0], [2.0, 2.0])
    whole = paims.sample(two_modes, box, 200, random_state=3, progress=False)
    evidence, draws = done.stdout.split()
    assert evidence == whole.log_evidence.hex()
    assert draws == (whole.draws.tobytes() + whole.weights.tobytes()).hex()
    assert [item.name for item in tmp_path.iterdir()] == ["run.h5"]
