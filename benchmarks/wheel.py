"""Runs of real simulators: nine data sets, read from the wheel of the package ``autoemulate``.

The wheel (PyPI, MIT licence) is downloaded by pip once into a cache folder, checked against its
SHA-256, and read as the zip file that it is: nothing is installed, and nothing is part of this
project. ``load("cardiac6")`` is all that a benchmark needs; without a network, put the file
``autoemulate-2.1.2-py3-none-any.whl`` into the folder that the error names.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pooch
from numpy.typing import NDArray

Floats = NDArray[np.float64]

VERSION = "2.1.2"
FILE = f"autoemulate-{VERSION}-py3-none-any.whl"
SHA256 = "4a9285a3c72de13259435840f6f2aefaf0b384d4842333df2fcbe2bf38a5a872"
FOLDER_VARIABLE = "PAIMS_WHEEL_DIR"
"""Environment variable that names the cache folder; the user's cache if it is not set."""

# Runs, inputs, outputs. The file of climate1 has no line of names: its first run serves as one,
# as in the package itself, so that the shapes are the ones that others report.
SHAPES = {
    "cardiac1": (1350, 18, 4),
    "cardiac2": (1100, 27, 7),
    "cardiac3": (630, 21, 26),
    "cardiac4": (407, 45, 20),
    "cardiac5": (176, 9, 6),
    "cardiac6": (180, 6, 2),
    "climate1": (905, 33, 8),
    "engineering1": (994, 6, 2),
    "reactiondiffusion1": (50, 2, 2500),
}


@dataclass(frozen=True, eq=False)
class RealRuns:
    """Runs of a simulator: inputs X (n, p), outputs Y (n, q) and their names."""

    name: str
    X: Floats
    Y: Floats
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]


def load(name: str, folder: Path | None = None) -> RealRuns:
    """Read one of the data sets.

    Parameters
    ----------
    name : str
        A key of ``SHAPES``.
    folder : Path, optional
        Cache folder; by default the one that ``PAIMS_WHEEL_DIR`` names, or the user's cache.
    """
    if name not in SHAPES:
        raise ValueError(f"The data sets are {', '.join(SHAPES)}; got {name!r}.")
    with zipfile.ZipFile(locate(folder)) as archive:
        input_names, X = _table(archive, name, "parameters")
        output_names, Y = _table(archive, name, "outputs")
    if (*X.shape, Y.shape[1]) != SHAPES[name] or len(Y) != len(X):
        raise ValueError(f"{name}: X is {X.shape} and Y {Y.shape}, expected {SHAPES[name]}.")
    return RealRuns(name, X, Y, input_names, output_names)


def locate(folder: Path | None = None) -> Path:
    """Path of a checked copy of the wheel; downloads it if it is not there."""
    folder = folder or Path(os.environ.get(FOLDER_VARIABLE) or pooch.os_cache("paims"))
    path = folder.expanduser() / FILE
    if not path.is_file():
        _download(path)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"{str(path)!r} is not the published wheel: its SHA-256 is {found}, expected "
            f"{SHA256}. Remove it, and call again with a network to have it downloaded."
        )
    return path


def _download(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as place:
        wanted = ["--no-deps", "--only-binary", ":all:", f"autoemulate=={VERSION}"]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", place, *wanted]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        if found.returncode != 0 or not (Path(place) / FILE).is_file():
            reason = (found.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise ConnectionError(
                f"pip could not download {FILE} ({reason}). Either connect to the network and "
                f"call again, or put the file, which PyPI has, into {str(path.parent)!r}; "
                f"{FOLDER_VARIABLE} or --data name another folder."
            )
        (Path(place) / FILE).replace(path)


def _table(archive: zipfile.ZipFile, name: str, kind: str) -> tuple[tuple[str, ...], Floats]:
    """Names of the columns and the numbers of a file."""
    text = archive.read(f"autoemulate/datasets/{name}/processed/{kind}.csv").decode()
    first, *rows = csv.reader(io.StringIO(text))
    return tuple(first), np.array(rows, dtype=float)
