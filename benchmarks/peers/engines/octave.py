"""The published MATLAB code under Octave; the code is the user's copy of it.

Called is `likelihood(X, y, 'h', 'covK', phi, delta, 2)`, as the published sampler does.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from scipy.io import savemat

from benchmarks.throughput import FloatArray

N_POINTS = 64
SCRIPT = """
addpath(genpath('{code}'));
load('{data}');
warning('off', 'all');
likelihood(X, y, 'h', 'covK', phi(1, :), delta(1), 2);
start = cputime;
for i = 1:rows(phi)
  likelihood(X, y, 'h', 'covK', phi(i, :), delta(i), 2);
end
printf('%.6g\\n', rows(phi) / (cputime - start));
"""


def rate(code: Path, X: FloatArray, y: FloatArray, phi: FloatArray, delta: FloatArray) -> float:
    """Evaluations per second."""
    program = shutil.which("octave-cli") or shutil.which("octave")
    if program is None:
        raise FileNotFoundError(
            "octave is not installed; install GNU Octave or leave --octave out"
        )
    if not any(code.rglob("likelihood.m")):
        raise FileNotFoundError("the folder given by --octave has no likelihood.m in it")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "points.mat"
        content = {"X": X, "y": y[:, None], "phi": phi[:N_POINTS], "delta": delta[:N_POINTS]}
        savemat(data, content)
        script = Path(folder) / "points.m"
        script.write_text(SCRIPT.format(code=code.resolve(), data=data), encoding="utf-8")
        command = [program, "--no-gui", "--norc", str(script)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])
