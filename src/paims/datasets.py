"""The designs behind the paper's three experiments, as its authors published them.

The files are not part of this package. They are fetched from the authors' repository into a
cache in the user's account (by pooch, in the extra ``app``), or read from the folder that the
environment variable ``PAIMS_DATA_DIR`` names. Either way a file is used only if its SHA-256 is
the one recorded here.

>>> from paims import datasets
>>> data = datasets.load_branin()          # doctest: +SKIP
>>> data.X.shape, data.y.shape             # doctest: +SKIP
((18, 2), (18,))
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paims._arrays import FloatArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DATA_DIR_VARIABLE", "Dataset", "load_branin", "load_nilson_kuusk", "load_two_d_model"]

DATA_DIR_VARIABLE = "PAIMS_DATA_DIR"
"""Environment variable that names a folder which already holds the files."""

_SHA256 = {
    "bastos_sample.mat": "fb33861baae0ec013fea6189960875783155abb93ac8a99c9188c97fea0df2ab",
    "branin_sample.mat": "c5c8f640081ade6a482e21b33192ac0742b3da637bb79f6a6fa6bbd38d921384",
    "in_5_150.txt": "98e7acd5c54b20df172af3e8ce020b1938d93cad724f24367655b09239fb2e15",
    "out_5_100.txt": "ae43bbcc900998ce950d2a64476230dde4e2affd6db6dbe5128b3248555d9f1f",
    "out_5_150.txt": "ab02e92679a0f42251826d4052a66323f988cd65e8e2de17f2173b62ff2b2c8d",
    "training.txt": "64c073d2430e3f636a8e21a9d844595b2257af5aaec3232166563dfcd41fc4da",
}
_REPOSITORY = "https://github.com/agarbuno/paims_codes"
_RAW = "https://raw.githubusercontent.com/agarbuno/paims_codes"
# A fixed commit first. The branch is a second chance for a file that is not in that commit; the
# checksum decides what is accepted, so what is loaded is the same from either.
_REVISIONS = ("33d21333c7e4a7dd4b3eb8f919e72dd3f6e9d41f", "master")
_SOURCE = (
    "Garbuno-Inigo, A., DiazDelaO, F. A., Zuev, K. M. (2016). Gaussian process hyper-parameter "
    "estimation using Parallel Asymptotically Independent Markov Sampling. Computational "
    f"Statistics & Data Analysis 103, 367-383. Files: {_REPOSITORY}, folder sample-data"
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Runs of a simulator.

    Parameters
    ----------
    name : str
        Short name.
    X : ndarray, shape (n_runs, n_inputs)
        Inputs, in raw units.
    y : ndarray, shape (n_runs,)
        Outputs.
    input_names : tuple of str
        Names of the columns of ``X``.
    output_name : str
        Name of ``y``.
    description : str
        What was run and what is worth knowing.
    source : str
        Citation and address.
    X_test : ndarray, shape (n_tests, n_inputs), optional
        Further inputs, kept apart for validation.
    y_test : ndarray, shape (n_tests,), optional
        Outputs at ``X_test``.
    """

    name: str
    X: FloatArray
    y: FloatArray
    input_names: tuple[str, ...]
    output_name: str
    description: str
    source: str = _SOURCE
    X_test: FloatArray | None = None
    y_test: FloatArray | None = None

    def to_frame(self, *, test: bool = False) -> pd.DataFrame:
        """Give inputs and output as one table (needs pandas, in the extra ``app``).

        Parameters
        ----------
        test : bool
            The test runs instead of the training runs.
        """
        try:
            import pandas  # noqa: PLC0415 - optional, and slow to import
        except ImportError as error:
            raise ImportError(
                "A table needs pandas, which is not installed: pip install 'paims[app]', or use "
                "the arrays X and y."
            ) from error
        X, y = (self.X_test, self.y_test) if test else (self.X, self.y)
        if X is None or y is None:
            raise ValueError(f"The dataset {self.name!r} has no test runs; leave test=False.")
        frame = pandas.DataFrame(X, columns=list(self.input_names))
        frame[self.output_name] = y
        return frame


def load_branin() -> Dataset:
    """Load the 18 runs of the modified Branin function (the paper's section 5.1)."""
    X, y = _read_mat("branin_sample.mat")
    return Dataset(
        name="branin",
        X=X,
        y=y,
        input_names=("x1", "x2"),
        output_name="y",
        description=(
            "18 Latin hypercube runs of Branin's function on the unit square plus 5 x1. "
            "paims.simulators.branin reproduces them; the paper prints 5 (15 x1 - 5) instead, "
            "which is paims.simulators.branin_printed."
        ),
    )


def load_two_d_model() -> Dataset:
    """Load the 20 runs of the 2D model (the paper's section 5.2)."""
    X, y = _read_mat("bastos_sample.mat")
    return Dataset(
        name="two_d_model",
        X=X,
        y=y,
        input_names=("x1", "x2"),
        output_name="y",
        description=(
            "20 Latin hypercube runs of the 2D model on the unit square, with the denominator "
            "as the paper prints it. paims.simulators.two_d_model reproduces them."
        ),
    )


def load_nilson_kuusk() -> Dataset:
    """Load the 100 training and 150 test runs of the Nilson-Kuusk model (section 5.3)."""
    return Dataset(
        name="nilson_kuusk",
        X=_read_text("training.txt"),
        y=_read_text("out_5_100.txt").ravel(),
        X_test=_read_text("in_5_150.txt"),
        y_test=_read_text("out_5_150.txt").ravel(),
        input_names=(
            "solar zenith angle",
            "leaf area index",
            "relative leaf size",
            "Markov clumping parameter",
            "lambda",
        ),
        output_name="reflectance",
        description=(
            "Reflectance of a homogeneous plant canopy (Nilson and Kuusk, 1989), inputs in raw "
            "units: the box -60..60 degrees, 1..8, 0.05..0.35, 0.4..1, 550..850. The paper "
            "rescales them to [0, 1] with the training minimum and maximum of each column, "
            "which are the ends of that box."
        ),
    )


def _read_mat(file: str) -> tuple[FloatArray, FloatArray]:
    from scipy.io import loadmat  # noqa: PLC0415 - brings SciPy's sparse matrices with it

    content = loadmat(_locate(file))
    return np.array(content["X"], dtype=float), np.array(content["y"], dtype=float).ravel()


def _read_text(file: str) -> FloatArray:
    return np.loadtxt(_locate(file), dtype=float)


def _locate(file: str) -> Path:
    """Path of a checked copy of the file."""
    folder = os.environ.get(DATA_DIR_VARIABLE)
    return _from_folder(file, Path(folder)) if folder else _from_network(file)


def _from_folder(file: str, folder: Path) -> Path:
    path = folder.expanduser() / file
    if not path.is_file():
        raise FileNotFoundError(
            f"{DATA_DIR_VARIABLE} names the folder {str(folder)!r}, which has no file {file!r}. "
            f"Copy it there from the folder sample-data of {_REPOSITORY}, or unset the variable "
            "to have it downloaded."
        )
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != _SHA256[file]:
        raise ValueError(
            f"{str(path)!r} is not the published file: its SHA-256 is {found}, expected "
            f"{_SHA256[file]}. Replace it by the one in the folder sample-data of {_REPOSITORY}."
        )
    return path


def _from_network(file: str) -> Path:
    try:
        import pooch  # noqa: PLC0415 - optional, and wanted only here
    except ImportError as error:
        raise ImportError(
            f"Downloading {file!r} needs pooch, which is not installed: pip install "
            f"'paims[app]'. Or set {DATA_DIR_VARIABLE} to a folder that holds the files of "
            f"sample-data of {_REPOSITORY}."
        ) from error
    failures = []
    for revision in _REVISIONS:
        url = f"{_RAW}/{revision}/sample-data/{file}"
        try:
            return Path(
                pooch.retrieve(
                    url,
                    known_hash=f"sha256:{_SHA256[file]}",
                    fname=file,
                    path=pooch.os_cache("paims"),
                )
            )
        # No route and HTTP errors are OSErrors of requests; a wrong checksum is a ValueError.
        except (OSError, ValueError) as error:
            failures.append(f"{url}: {type(error).__name__}: {error}")
    raise ConnectionError(
        f"Could not get the published file {file!r}. Either connect to the network and call "
        f"again, or set {DATA_DIR_VARIABLE} to a folder that holds the files of sample-data of "
        f"{_REPOSITORY}. Tried: {'; '.join(failures)}"
    )
