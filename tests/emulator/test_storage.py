"""Saved emulators: the same to the bit, and clear errors for other files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import paims
from paims import _sealed, gp
from paims.emulator import EmulatorFileError
from paims.emulator import _storage as storage
from paims.emulator._storage import decode, encode
from paims.sampling import default_scheme


@contextmanager
def changed(path: Path) -> Iterator[h5py.File]:
    """Change a saved file as another version of the library might have written it."""
    with h5py.File(path, "a") as file:
        yield file
    content = path.read_bytes()
    path.write_bytes(_sealed._seal(storage.FORMAT, content[512:]) + content[512:])


NEW = np.random.default_rng(9).random((30, 2)) * [1.5, 30.0]


def assert_same(a: paims.Emulator, b: paims.Emulator) -> None:
    for one, two in zip(
        a.predict(NEW, return_std=True), b.predict(NEW, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, two)
    one, two = a.predict_distribution(NEW), b.predict_distribution(NEW)
    np.testing.assert_array_equal(one.quantile([0.1, 0.9]), two.quantile([0.1, 0.9]))
    np.testing.assert_array_equal(one.cov(), two.cov())
    np.testing.assert_array_equal(a.sample_y(NEW, 3), b.sample_y(NEW, 3))
    assert repr(a.modes_) == repr(b.modes_)
    assert repr(a.map_) == repr(b.map_)
    assert encode("", list(a.get_params().values())) == encode("", list(b.get_params().values()))
    assert a.log_evidence_ == b.log_evidence_
    assert a.compression_ == b.compression_
    for name in ("draws_", "weights_", "beta_", "sigma2_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert str(a.result_) == str(b.result_)
    assert a.result_.levels.dtype == b.result_.levels.dtype
    assert a.result_.levels.tobytes() == b.result_.levels.tobytes()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"goal": "map", "nugget": 1e-3, "predictive": "gaussian"},
        {"goal": "optimum", "scheme": "paper", "nugget_prior": gp.BetaNugget(0.4, 0.6)},
        {"kernel": gp.PowerExponential(1.7), "prior": gp.JointlyRobust(0.5), "mean": "quadratic"},
        {"prior": [stats.gamma(2.0, scale=0.5), stats.lognorm(1.0)], "mean": gp.Constant()},
        {"nugget": gp.EstimatedNugget("beta", 1e-9), "prior": gp.LogNormal([0.0, 1.0], 2.0)},
        {"scheme": default_scheme(), "n_jobs": 1, "prior": "flat"},
        {"kernel": "radial_matern52"},
        {"kernel": ["matern72", "radial_matern72"]},
    ],
    ids=["defaults", "map", "optimum", "objects", "scipy", "nugget", "scheme", "radial", "mixed"],
)
def test_loaded_emulator_is_the_same_to_the_bit(
    runs: tuple[np.ndarray, np.ndarray], tmp_path: Path, settings: dict[str, Any]
) -> None:
    emulator = paims.Emulator(n_samples=300, random_state=1, **settings).fit(*runs)
    emulator.save(tmp_path / "emulator.h5")
    loaded = paims.load_emulator(tmp_path / "emulator.h5")
    assert_same(emulator, loaded)
    lengths = emulator.map_.length_scales[None]
    nugget = None if emulator.goal == "map" else 0.1
    np.testing.assert_array_equal(
        emulator.log_posterior(lengths, nugget), loaded.log_posterior(lengths, nugget)
    )
    assert [path.name for path in tmp_path.iterdir()] == ["emulator.h5"]


def test_loaded_emulator_knows_its_columns(
    runs: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    X = pd.DataFrame({"höhe": runs[0][:, 0], "constant": 1.0, "speed": runs[0][:, 1]})
    with pytest.warns(UserWarning, match="constant of X take one value"):
        emulator = paims.Emulator(n_samples=300, random_state=1).fit(X, runs[1])
    emulator.save(str(tmp_path / "emulator.h5"))
    loaded = paims.load_emulator(str(tmp_path / "emulator.h5"))
    np.testing.assert_array_equal(loaded.predict(X), emulator.predict(X))
    assert loaded.feature_names_in_.tolist() == ["höhe", "constant", "speed"]
    assert loaded.draws_.dtype.names == ("length_scale_höhe", "length_scale_speed", "nugget")
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(X[["speed", "constant", "höhe"]])


def test_loaded_emulator_can_be_saved_fitted_and_compressed(
    emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray], tmp_path: Path
) -> None:
    emulator.compress(20).save(tmp_path / "a.h5")
    loaded = paims.load_emulator(tmp_path / "a.h5")
    loaded.save(tmp_path / "b.h5")
    assert_same(paims.load_emulator(tmp_path / "b.h5"), loaded)
    assert len(loaded.ensemble_.draws) <= 20
    loaded.fit(*runs)
    np.testing.assert_array_equal(loaded.predict(NEW), emulator.predict(NEW))


def user_mean(X: np.ndarray) -> np.ndarray:
    return np.ones((len(X), 1))


class UserKernel(gp.Matern52):
    """A program, not data."""


@pytest.mark.parametrize(
    ("settings", "what"), [({"mean": user_mean}, "mean"), ({"kernel": UserKernel()}, "kernel")]
)
def test_programs_of_the_user_cannot_be_saved(
    runs: tuple[np.ndarray, np.ndarray], tmp_path: Path, settings: dict[str, Any], what: str
) -> None:
    emulator = paims.Emulator(n_samples=300, random_state=1, **settings).fit(*runs)
    with pytest.raises(TypeError, match=f"cannot be saved: its {what} is .*a program of yours"):
        emulator.save(tmp_path / "emulator.h5")
    assert not list(tmp_path.iterdir())


def test_unfitted_emulator_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        paims.Emulator().save(tmp_path / "emulator.h5")


def test_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "other"
    with pytest.raises(FileNotFoundError, match="no file"):
        paims.load_emulator(path)
    path.write_text("x1,x2,y\n")
    with pytest.raises(EmulatorFileError, match="not an HDF5 file"):
        paims.load_emulator(path)
    with h5py.File(path, "w") as file:
        file["X"] = np.zeros(3)
    with pytest.raises(EmulatorFileError, match="HDF5 file of something else"):
        paims.load_emulator(path)


def test_file_of_a_newer_schema(emulator: paims.Emulator, tmp_path: Path) -> None:
    path = tmp_path / "emulator.h5"
    emulator.save(path)
    with changed(path) as file:
        file.attrs["schema"] = storage.SCHEMA + 1
        file.attrs["version"] = "99.0"
    with pytest.raises(EmulatorFileError, match=r"schema 3, written by version 99.0.*Upgrade"):
        paims.load_emulator(path)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.999])
def test_truncated_file(emulator: paims.Emulator, tmp_path: Path, share: float) -> None:
    path = tmp_path / "emulator.h5"
    emulator.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(EmulatorFileError, match=r"cut off|damaged"):
        paims.load_emulator(path)


def test_flipped_bits_are_noticed_before_hdf5_reads_them(
    emulator: paims.Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "emulator.h5"
    emulator.save(path)
    content = path.read_bytes()
    places = np.random.default_rng(0).integers(len(content), size=200)

    def opened(*arguments: Any, **options: Any) -> None:
        raise AssertionError("HDF5 was given a damaged file")

    monkeypatch.setattr(h5py, "File", opened)
    for number, place in enumerate([*range(0, 512, 40), *places]):
        flipped = bytearray(content)
        flipped[place] ^= 1 << number % 8
        path.write_bytes(flipped)
        with pytest.raises(EmulatorFileError, match=r"cut off|damaged"):
            paims.load_emulator(path)


def test_file_is_hdf5_for_other_programs(emulator: paims.Emulator, tmp_path: Path) -> None:
    emulator.save(tmp_path / "emulator.h5")
    with h5py.File(tmp_path / "emulator.h5", "r") as file:
        np.testing.assert_array_equal(file["ensemble/draws"], emulator.ensemble_.draws)


@pytest.mark.parametrize("name", ["settings", "about", "runs", "ensemble", "result/draws"])
def test_missing_part_is_noticed(emulator: paims.Emulator, tmp_path: Path, name: str) -> None:
    path = tmp_path / "emulator.h5"
    emulator.save(path)
    with changed(path) as file:
        del file[name]
    with pytest.raises(EmulatorFileError, match="damaged"):
        paims.load_emulator(path)


def test_file_cannot_name_what_to_execute() -> None:
    for value in (
        {"class": "os.system", "arguments": {"command": "true"}},
        {"class": "Emulator", "arguments": {}},
        {"distribution": "rv_histogram", "arguments": [], "keywords": {}},
        {"distribution": "__builtins__", "arguments": [], "keywords": {}},
    ):
        with pytest.raises(ValueError, match="unknown"):
            decode(value)


def test_numbers_survive_the_encoding() -> None:
    values = [0.1, 1e-300, np.float64(np.pi), np.arange(3) / 7, (1, 2), None, True, "a"]
    expected = [0.1, 1e-300, np.pi, [0.0, 1 / 7, 2 / 7], [1, 2], None, True, "a"]
    assert decode(encode("x", values)) == expected


def test_interrupted_save_leaves_the_old_file(
    emulator: paims.Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "emulator.h5"
    emulator.save(path)
    before = path.read_bytes()

    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storage, "_put_result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        emulator.save(path)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["emulator.h5"]


def test_file_is_readable_by_others(emulator: paims.Emulator, tmp_path: Path) -> None:
    path = tmp_path / "emulator.h5"
    umask = os.umask(0o022)
    try:
        emulator.save(path)
    finally:
        os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o644


def worst_condition(emulator: paims.Emulator) -> float:
    """Largest condition number of the correlation matrices that predictions are made with."""
    posterior = emulator.posterior_
    phi, nugget = posterior.to_physical(emulator.ensemble_.draws)
    K = posterior.kernel.correlation(posterior.X, posterior.X, phi)
    return float(np.linalg.cond(K + nugget[:, None, None] * np.eye(posterior.n_runs)).max())


@pytest.mark.parametrize("name", ["plain", "auto", "matern_fixed"])
def test_files_of_the_first_version_still_load(name: str) -> None:
    folder = Path(__file__).parent.parent / "data" / "saved-by-0.1"
    truth = json.loads((folder / "truth.json").read_text())
    loaded = paims.load_emulator(folder / f"emulator-{name}.h5")
    mean, std = loaded.predict(truth["X"], return_std=True)
    # Another processor rounds otherwise, and the condition of K makes the most of it.
    rounding = np.finfo(float).eps * worst_condition(loaded)
    sd = float(loaded.output_.difference(np.ones(1))[0])
    np.testing.assert_allclose(mean, truth[name]["mean"], rtol=0.0, atol=rounding * sd)
    np.testing.assert_allclose(std, truth[name]["std"], rtol=rounding)
    assert bool(loaded.kernel_evidence_) == (name == "auto")
    assert loaded.leave_one_out().summary.n == 14
    assert loaded.modes_[0].mass > 0.0


@pytest.mark.parametrize(("forgotten", "max_correlation"), [(0.7, 0.7), (-1.0, None)])
def test_a_scheme_of_the_first_version_still_loads(
    runs: tuple[np.ndarray, np.ndarray],
    tmp_path: Path,
    forgotten: float,
    max_correlation: float | None,
) -> None:
    path = tmp_path / "emulator.h5"
    scheme = replace(default_scheme(), max_correlation=0.5)
    emulator = paims.Emulator(n_samples=300, scheme=scheme, random_state=1).fit(*runs)
    emulator.save(path)

    def rename(settings: dict[str, Any]) -> None:
        arguments = settings["scheme"]["arguments"]
        assert arguments.pop("max_correlation") == 0.5
        arguments["forgotten"] = forgotten

    with changed(path) as file:
        forge_json(file, "settings", rename)
    loaded = paims.load_emulator(path)
    assert loaded.scheme == replace(scheme, max_correlation=max_correlation)
    np.testing.assert_array_equal(loaded.predict(NEW), emulator.predict(NEW))


def forge_array(file: h5py.File, name: str, change: Any) -> None:
    values = change(file[name][()])
    del file[name]
    file[name] = values


def forge_json(file: h5py.File, name: str, change: Any) -> None:
    value = _sealed.get_json(file, name)
    change(value)
    del file[name]
    _sealed.put_json(file, name, value)


FORGED: dict[str, tuple[Any, str]] = {
    "negative scale": (
        lambda file: forge_json(file, "output", lambda v: v.update(scale=-3.0)),
        "the scale of its output is -3.0",
    ),
    "no scale": (
        lambda file: forge_json(file, "output", lambda v: v.update(scale=float("nan"))),
        "the scale of its output is nan",
    ),
    "no shift": (
        lambda file: forge_json(file, "output", lambda v: v.update(shift=float("inf"))),
        "the shift of its output is inf",
    ),
    "no modes": (
        lambda file: forge_json(file, "about", lambda v: v.update(modes=[])),
        "it has no modes",
    ),
    "negative mass": (
        lambda file: forge_json(file, "about", lambda v: v["modes"][1].update(mass=-0.5)),
        "a mode has the mass -0.5",
    ),
    "negative width": (
        lambda file: forge_array(file, "inputs/width", lambda v: [v[0], -v[1]]),
        "negative width",
    ),
    "no lower end": (
        lambda file: forge_array(file, "inputs/lower", lambda v: v * np.nan),
        "lower of its inputs is not finite",
    ),
    "NaN in the runs": (lambda file: forge_array(file, "runs/y", lambda v: v * np.nan), "finite"),
    "NaN in a draw": (
        lambda file: forge_array(file, "ensemble/draws", lambda v: v * np.nan),
        "a draw of its mixture is not finite",
    ),
    "lost draws": (
        lambda file: forge_array(file, "ensemble/draws", lambda v: v[1:]),
        "its mixture has draws of shape",
    ),
    "negative weight": (
        lambda file: forge_array(file, "ensemble/weights", lambda v: -v),
        "a weight of its mixture is negative",
    ),
    "weights of another sum": (
        lambda file: forge_array(file, "result/weights", lambda v: 2 * v),
        "the weights of its sample sum to 2",
    ),
    "no draws": (
        lambda file: [
            forge_array(file, f"ensemble/{name}", lambda v: v[:0]) for name in ("draws", "weights")
        ],
        "its mixture is empty",
    ),
    "another file": (
        lambda file: [
            file.__delitem__("runs/X"),
            file.create_dataset("runs/X", (18, 2), "f8", external=[("/etc/passwd", 0, 288)]),
        ],
        "its /runs/X is kept in another file",
    ),
}


def _in_modes(**changes: Any) -> Any:
    def change(about: dict[str, Any]) -> None:
        for mode in about["modes"]:
            mode.update(changes)

    return lambda file: forge_json(file, "about", change)


def _in(name: str, **changes: Any) -> Any:
    return lambda file: forge_json(file, name, lambda value: value.update(changes))


def _text(name: str, text: bytes) -> Any:
    def change(file: Any) -> None:
        del file[name]
        file.create_dataset(name, data=np.array([text]))

    return change


#: Values of other kinds than they should be: tracebacks where they were used.
FORGED |= {
    "unit": (_in("output", exponent=10**12), "a unit in it is 2"),
    "unit that is no number": (_in("output", exponent=True), "a unit in it is 2"),
    "unit of an input": (
        lambda file: forge_array(file, "inputs/exponent", lambda v: v + 10**12),
        "a unit in it is 2",
    ),
    "settings that are none": (_text("settings", b"null"), "its settings is not what it should"),
    "facts in a list": (_text("about", b"[1]"), "its about is not what it should"),
    "depth": (_text("about", b"[" * 200_000), "recursion"),
    "digits": (_text("about", b'{"n_features": ' + b"9" * 5000 + b"}"), "digits"),
    "bytes": (_text("about", b"\xff\xfe{"), "emulator file"),
    "names that are none": (_in("about", feature_names=[1, {}]), "is no text"),
    "names that are too few": (_in("about", feature_names=["a"]), "1 names for 2 inputs"),
    "inputs": (_in("about", n_features=10**9, feature_names=None), "of its inputs is not one row"),
    "names of inputs": (_in("about", input_names=["a"]), "names for 2 inputs"),
    "names of a mode": (_in_modes(input_names=["x", "y"]), "a mode is of the inputs"),
    "effects": (_in_modes(effects=[None, None]), "the effects of a mode"),
    "nested": (_in_modes(length_scales=[[1.0, 2.0]]), "the length_scales of a mode"),
    "no noise": (_in_modes(noise=None), "the noise of a mode is no number"),
    "mass in a text": (_in_modes(mass="0.5"), "the mass of a mode is no number"),
    "evidence": (_in("about", kernel_evidence=[1, 2]), "its kernel_evidence"),
    "compression": (
        lambda file: forge_json(
            file, "about", lambda v: v["compression"].update(mean_error="<b>")
        ),
        "its compression",
    ),
    "levels": (
        lambda file: forge_array(file, "result/levels", lambda v: np.zeros(3)),
        "the levels of its sample",
    ),
    "records for runs": (
        lambda file: forge_array(
            file, "runs/X", lambda v: np.zeros(len(v), dtype=[("a", float), ("b", float)])
        ),
        "records",
    ),
    "evidence in a text": (_in("result/plain", log_evidence="abc"), "log_evidence of its sample"),
    "warnings": (_in("result/plain", warnings={"a": 1}), "a warning of its sample"),
}


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ([1, 2], "its provenance is not what it should"),
        ({"output": {"a": 1}}, "the name of its output is no text"),
        ({"seconds": "<b>"}, "its time is no number"),
        ({"versions": [1, 2]}, "a version that it names"),
        ({"warnings": [{"a": 1}]}, "a warning of its fit is no text"),
    ],
)
def test_forged_provenance_is_refused(
    emulator: paims.Emulator, tmp_path: Path, stored: Any, message: str
) -> None:
    path = tmp_path / "forged.h5"
    emulator.save(path)
    with changed(path) as file:
        _sealed.put_json(file, "provenance", stored)
    with pytest.raises(EmulatorFileError, match=message):
        paims.report.read_provenance(path)


@pytest.mark.parametrize("forgery", FORGED)
def test_forged_values_are_refused(emulator: paims.Emulator, tmp_path: Path, forgery: str) -> None:
    forge, message = FORGED[forgery]
    path = tmp_path / "emulator.h5"
    emulator.save(path)
    with changed(path) as file:
        forge(file)
    with pytest.raises(EmulatorFileError, match=message):
        paims.load_emulator(path)
