"""Forged files of emulators of several outputs: one clear error for each."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from tests.emulator.test_storage import _text, changed, forge_array, forge_json

import paims
from paims.emulator import EmulatorFileError


@cache
def stored(way: str) -> bytes:
    """The file of a small emulator: two outputs, and one that takes one value only."""
    X = np.random.default_rng(0).random((14, 2))
    first, second = np.sin(4.0 * X[:, 0]) + X[:, 1], X[:, 1] ** 2 + X[:, 0]
    Y = np.column_stack([first, second, np.full(14, 3.5)])
    settings = {"n_samples": 200, "prior": "jointly_robust", "kernel": "squared_exponential"}
    emulator = paims.Emulator(**settings, random_state=0, outputs=way)
    with pytest.warns(UserWarning, match="leave nothing to learn"):
        emulator.fit(X, Y)
    with tempfile.TemporaryDirectory() as folder:
        emulator.save(Path(folder) / "emulator.h5")
        return (Path(folder) / "emulator.h5").read_bytes()


def told(**changes: Any) -> Any:
    return lambda file: forge_json(file, "several", lambda value: value.update(changes))


def of_certain(**changes: Any) -> Any:
    return lambda file: forge_json(
        file, "several", lambda value: value["certain"]["2"].update(changes)
    )


def of_scaling(**changes: Any) -> Any:
    return lambda file: forge_json(
        file, "several", lambda value: value["scalings"][0].update(changes)
    )


def in_shared(change: Any) -> Any:
    return lambda file: forge_json(file, "shared/about", change)


def elsewhere(name: str) -> Any:
    def change(file: h5py.File) -> None:
        shape = file[name].shape
        del file[name]
        outside = [("/etc/passwd", 0, 8 * int(np.prod(shape)))]
        file.create_dataset(name, shape, "f8", external=outside)

    return change


def from_another(name: str) -> Any:
    def change(file: h5py.File) -> None:
        layout = h5py.VirtualLayout(file[name].shape, "f8")
        layout[...] = h5py.VirtualSource("/etc/passwd", "x", file[name].shape)
        del file[name]
        file.create_virtual_dataset(name, layout)

    return change


def bomb(name: str) -> Any:
    def change(file: h5py.File) -> None:
        del file[name]
        file.create_dataset(name, (10**6, 10**5), "f8", chunks=(1, 100), fillvalue=1.0)

    return change


FORGED: dict[str, tuple[str, Any, str]] = {
    "another file": (
        "shared",
        elsewhere("map/residuals"),
        "map/residuals is kept in another file",
    ),
    "another file, within": ("separate", elsewhere("emulators/0/runs/X"), "kept in another file"),
    "virtual": ("shared", from_another("shared/runs/Y"), "kept in another file"),
    "filled": ("components", bomb("map/loadings"), "would take 8e.11 bytes"),
    "filled, within": ("separate", bomb("emulators/1/ensemble/draws"), "would take 8e.11 bytes"),
    "a link": (
        "separate",
        lambda file: file.__setitem__("emulators/9", h5py.ExternalLink("/etc/passwd", "/")),
        "points at something outside",
    ),
    "way": ("separate", told(way="shared"), "its draws are not as its way has them"),
    "no way": ("separate", told(way=["separate"]), "in the way"),
    "why": ("separate", told(why=None), "is no text"),
    "names": ("separate", told(names=["a", 1, {}]), "a name of its outputs is no text"),
    "one name": ("separate", told(names=["a", "a", "b"]), "have one name"),
    "few names": ("separate", told(names=["a", "y2"]), "lost scalings"),
    "no names": ("shared", told(names=[]), "is no text"),
    "inputs": ("shared", told(n_features=10**12), "not one row"),
    "names of inputs": ("shared", told(feature_names=["a"]), "1 names for 2 inputs"),
    "features": ("separate", told(n_features=3), "another|other inputs|not one row"),
    "explained": ("separate", told(explained=float("nan")), "it explains nan"),
    "emulators": ("separate", told(n_emulators=1), "it lost emulators"),
    "many emulators": ("separate", told(n_emulators=10**12), "damaged"),
    "scale": ("separate", of_scaling(scale=-3.0), "the scale of its output is -3.0"),
    "no scale": ("shared", of_scaling(scale=None), "the scale of its output is no number"),
    "shift": ("components", of_scaling(shift=float("inf")), "the shift of its output is inf"),
    "unit": ("components", of_scaling(exponent=10**12), "a unit in it is 2"),
    "certain": ("separate", told(certain={"7": None}), "damaged"),
    "certain name": ("separate", of_certain(name="y1"), "its output 2 has two names"),
    "certain trend": ("shared", of_certain(constant=False, beta=[1.0] * 9), "has 9 of 3 terms"),
    "certain, NaN": ("shared", of_certain(beta=[float("nan")]), "a trend in it is not finite"),
    "certain, texts": ("separate", of_certain(beta=["a"]), "no row of numbers"),
    "residuals": (
        "separate",
        lambda file: forge_array(file, "map/residuals", lambda v: 3.0 * v),
        "longer than 1",
    ),
    "few residuals": (
        "shared",
        lambda file: forge_array(file, "map/residuals", lambda v: v[:, 1:]),
        "its residuals are of 2 columns",
    ),
    "NaN": (
        "components",
        lambda file: forge_array(file, "map/noise", lambda v: v * np.nan),
        "its noise are not finite",
    ),
    "huge": (
        "components",
        lambda file: forge_array(file, "map/loadings", lambda v: v + 1e300),
        "its loadings are not finite",
    ),
    "no loadings": ("components", lambda file: file.__delitem__("map/loadings"), "lost its load"),
    "complex": (
        "shared",
        lambda file: forge_array(file, "shared/ensemble/draws", lambda v: v + 1j),
        "not made of real numbers",
    ),
    "weights": (
        "shared",
        lambda file: forge_array(file, "shared/ensemble/weights", lambda v: -v),
        "a weight of its mixture is negative",
    ),
    "integers": (
        "shared",
        lambda file: forge_array(file, "shared/inputs/lower", lambda v: v.astype(int)),
        "not one row of numbers",
    ),
    "lost outputs": (
        "shared",
        lambda file: forge_array(file, "shared/runs/Y", lambda v: v[:, :1]),
        "runs of other outputs",
    ),
    "infinite runs": (
        "shared",
        lambda file: forge_array(file, "shared/runs/Y", lambda v: v + np.inf),
        "must be finite",
    ),
    "effective": ("shared", in_shared(lambda v: v.update(effective=-1.0)), "count as -1.0"),
    "no modes": ("shared", in_shared(lambda v: v.update(modes=[])), "it has no modes"),
    "mass": (
        "shared",
        in_shared(lambda v: v["modes"][1].update(mass="<b>")),
        "the mass of a mode is no number",
    ),
    "location": (
        "shared",
        in_shared(lambda v: v["modes"][0].update(location=[1.0])),
        "the location of a mode is not 3 numbers",
    ),
    "compression": (
        "shared",
        in_shared(lambda v: v["compression"].update(mean_error="<b>")),
        "its compression",
    ),
    "nugget": (
        "shared",
        lambda file: forge_json(file, "settings", lambda v: v.update(nugget=1e-3)),
        "its mixture has draws of shape",
    ),
    "not JSON": ("separate", _text("several", b"\xff{"), "emulator file"),
    "within": (
        "separate",
        lambda file: forge_json(file, "emulators/1/output", lambda v: v.update(scale=-3.0)),
        "the scale of its output is -3.0",
    ),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_file_is_refused(tmp_path: Path, forgery: str) -> None:
    way, forge, message = FORGED[forgery]
    path = tmp_path / "emulator.h5"
    path.write_bytes(stored(way))
    with changed(path) as file:
        forge(file)
    with pytest.raises(EmulatorFileError, match=message):
        paims.load_emulator(path)


@pytest.mark.parametrize("way", ["separate", "shared", "components"])
def test_what_is_not_forged_is_read(tmp_path: Path, way: str) -> None:
    path = tmp_path / "emulator.h5"
    path.write_bytes(stored(way))
    with changed(path) as file:
        forge_json(file, "several", lambda value: None)
    assert paims.load_emulator(path).output_names_ == ("y1", "y2", "y3")
