"""The checkpoint of several outputs: forged, in use, of no use."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from tests.emulator.test_outputs import NEW, X, Y, emulator, fitted
from tests.emulator.test_storage import forge_array, forge_json

from paims import _sealed
from paims.emulator import _apart
from paims.emulator._table import FORMAT, _Keeper
from paims.sampling import CheckpointError
from paims.sampling._lock import only_run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The checkpoint of a fit that is done."""
    path = tmp_path_factory.mktemp("fit") / "fit.h5"
    emulator("separate").fit(X, Y, checkpoint=path)
    return path.read_bytes()


def told(name: str, **changes: Any) -> Callable[[h5py.File], None]:
    return lambda file: forge_json(file, name, lambda value: value.update(changes))


def swapped(file: h5py.File) -> None:
    for old, new in (("0", "9"), ("1", "0"), ("9", "1")):
        file.move(old, new)


FORGED: dict[str, tuple[Callable[[h5py.File], None], str]] = {
    "no description": (told("about", description=None), "cannot be gone on from"),
    "seed": (told("about", seed="x"), "cannot be gone on from"),
    "nothing about it": (lambda file: file.__delitem__("about"), "cannot be gone on from"),
    "scale": (told("0/output", scale=-3.0), "the scale of its output is -3.0"),
    "weights": (
        lambda file: forge_array(file, "0/ensemble/weights", lambda a: a * np.nan),
        "a weight of its mixture is negative or NaN",
    ),
    "no settings": (lambda file: file.__delitem__("0/settings"), "cannot be gone on from"),
    "other runs": (
        lambda file: forge_array(file, "1/runs/y", lambda y: y + 1.0),
        "has a fit of b to other runs",
    ),
    "another output's": (swapped, "has a fit of a to other runs"),
}


@pytest.mark.parametrize("forgery", list(FORGED))
def test_a_forged_one_is_refused(forgery: str, whole: bytes, tmp_path: Path) -> None:
    change, text = FORGED[forgery]
    path = tmp_path / "fit.h5"
    path.write_bytes(whole)
    with h5py.File(path, "a") as file:
        change(file)
    content = path.read_bytes()
    path.write_bytes(_sealed._seal(FORMAT, content[512:]) + content[512:])
    with pytest.raises(CheckpointError, match=text):
        emulator("separate").fit(X, Y, checkpoint=path)
    assert path.exists()


@pytest.mark.parametrize("way", ["separate", "shared", "components"])
def test_two_fits_on_one_file(way: str, tmp_path: Path) -> None:
    """With workers no output has a file of its own, which the sampler would lock."""
    path = tmp_path / "fit.h5"
    with only_run(path), pytest.raises(CheckpointError, match="is in use by"):
        emulator(way).fit(X, Y, checkpoint=path, executor=ThreadPoolExecutor(1))
    assert not path.exists()


@pytest.fixture
def never(monkeypatch: pytest.MonkeyPatch) -> None:
    """No output may be fitted."""

    def fit_runs(*_: Any, **__: Any) -> None:
        raise AssertionError("a fit was begun")

    monkeypatch.setattr(_apart, "fit_runs", fit_runs)


@pytest.mark.usefixtures("never")
def test_what_cannot_be_kept_is_refused_before_the_first_output(tmp_path: Path) -> None:
    path = tmp_path / "fit.h5"
    trend = lambda X: np.column_stack([np.ones(len(X)), X])  # noqa: E731
    with pytest.raises(TypeError, match=r"a program of yours.*Or fit without a checkpoint"):
        emulator("separate", mean=trend).fit(X, Y, checkpoint=path)
    assert not path.exists()


@pytest.mark.usefixtures("never")
@pytest.mark.parametrize("way", ["separate", "components"])
def test_runs_that_the_last_output_refuses(way: str, tmp_path: Path) -> None:
    path = tmp_path / "fit.h5"
    again, values = np.vstack([X, X[:1]]), np.vstack([Y.to_numpy(), Y.to_numpy()[:1]])
    values[-1, 2] += 0.1
    values[-1, :2] = np.nan if way == "separate" else values[-1, :2]
    with pytest.raises(ValueError, match=r"Output (y3|component 1): X has repeated rows"):
        emulator(way, nugget=0.0).fit(again, values, checkpoint=path)
    assert not path.exists(), "it would block the corrected call"


def test_what_is_done_outlives_an_error(tmp_path: Path) -> None:
    path = tmp_path / "fit.h5"
    store = _Keeper.store

    def stored(self: _Keeper, i: int, one: Any) -> None:
        store(self, i, one)
        raise ValueError("after the first")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Keeper, "store", stored)
        with pytest.raises(ValueError, match="after the first"):
            emulator("separate").fit(X, Y, checkpoint=path)
    with h5py.File(path) as file:
        assert sorted(file) == ["0", "about"]
    again = emulator("separate").fit(X, Y, checkpoint=path)
    np.testing.assert_array_equal(again.predict(NEW), fitted("separate").predict(NEW))
