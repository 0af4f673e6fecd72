"""Memory that is not there is an error before it is asked for."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paims
from paims import _memory
from paims.gp import _shared
from paims.gp._shared import SharedPosterior


def test_what_there_is_is_the_least_of_machine_and_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 1e7 < _memory.available() < 1e15
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    5000000 kB\n")
    monkeypatch.setattr(_memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(_memory, "_CGROUP", tmp_path)
    assert _memory.available() == 5.12e9
    (tmp_path / "memory.max").write_text("3000\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert _memory.available() == 2000.0
    (tmp_path / "memory.max").write_text("max\n")
    assert _memory.available() == 5.12e9


@pytest.mark.parametrize(
    ("n_bytes", "text"),
    [(3e8, "300 MB"), (2.34e9, "2.3 GB"), (8e11, "800 GB"), (4.2e13, "42 TB"), (0.0, "0 MB")],
)
def test_words(n_bytes: float, text: str) -> None:
    assert _memory.in_words(n_bytes) == text


def test_predictions_that_have_no_room_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).random((12, 2))
    emulator = paims.Emulator(random_state=0, n_samples=200).fit(X, np.sin(4.0 * X[:, 0]))
    many = np.random.default_rng(1).random((20_000, 2))
    monkeypatch.setattr(_memory, "available", lambda: 1.2e10)
    with pytest.raises(MemoryError, match=r"covariance of 20,000 points takes about 26 GB.*12 GB"):
        emulator.predict(many, return_cov=True)
    with pytest.raises(MemoryError, match=r"A joint sample of 20,000 points takes about 26 GB"):
        emulator.sample_y(many)
    monkeypatch.setattr(_memory, "available", lambda: 5e7)
    with pytest.raises(MemoryError, match=r"distribution of 1,000,000 points.*Take them in parts"):
        emulator.predict_distribution(np.zeros((1_000_000, 2)))
    # What is done in parts needs no room.
    mean, std = emulator.predict(many[:5000], return_std=True)
    assert mean.shape == std.shape == (5000,)


def test_many_samples_of_few_points_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).random((12, 2))
    emulator = paims.Emulator(random_state=0, n_samples=200).fit(X, np.sin(4.0 * X[:, 0]))
    monkeypatch.setattr(_memory, "available", lambda: 1e9)
    with pytest.raises(MemoryError, match=r"of 12 points, 3,000,000 times, takes about 1\.3 GB"):
        emulator.sample_y(X, n_samples=3_000_000)


def test_several_outputs_that_have_no_room_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((16, 2))
    Y = np.column_stack([np.sin(4.0 * X[:, 0]), X[:, 1] ** 2 + 0.1 * np.sin(9.0 * X[:, 0])])
    emulator = paims.Emulator(
        random_state=0, n_samples=200, outputs="shared", kernel="squared_exponential"
    ).fit(X, Y)
    few, many = emulator.predict_distribution(X), rng.random((20_000, 2))
    monkeypatch.setattr(_memory, "available", lambda: 1.2e10)
    with pytest.raises(MemoryError, match=r"covariance of 20,000 points, for each of 2 outputs"):
        emulator.predict(many, return_cov=True)
    with pytest.raises(MemoryError, match=r"sample of 20,000 points and 2 outputs takes about 26"):
        emulator.sample_y(many)
    with pytest.raises(MemoryError, match=r"16 points and 2 outputs, 20,000,000 times, takes"):
        few.sample(20_000_000)
    monkeypatch.setattr(_memory, "available", lambda: 5e7)
    with pytest.raises(MemoryError, match=r"1,000,000 points and 2 outputs takes.*in parts"):
        emulator.predict_distribution(np.zeros((1_000_000, 2)))


def test_points_of_shared_outputs_are_predicted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X, new = rng.random((16, 2)), rng.random((50, 2))
    posterior = SharedPosterior(X, np.column_stack([np.sin(4.0 * X[:, 0]), X[:, 1] ** 2]))
    u = np.zeros((3, posterior.n_params))
    whole = posterior.predict_outputs(u, new)
    sizes = []
    predict = _shared._Regressions.predict

    def counting(self: Any, X_new: Any, *rest: Any) -> Any:
        sizes.append(len(X_new))
        return predict(self, X_new, *rest)

    monkeypatch.setattr(_shared._Regressions, "predict", counting)
    monkeypatch.setattr(_shared, "_BLOCK_SIZE", 16 * 16)
    parts = posterior.predict_outputs(u, new)
    assert max(sizes) == 16
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(parts.scale2, whole.scale2, rtol=1e-12, atol=1e-15)


def test_a_distribution_of_many_points_takes_little_more_than_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.random.default_rng(0).random((15, 2))
    emulator = paims.Emulator(random_state=0, n_samples=200, n_jobs=1)
    emulator.fit(X, np.sin(4.0 * X[:, 0]) + X[:, 1])
    many = np.random.default_rng(1).random((20_001, 2))
    whole = emulator.predict_distribution(many)
    expected = [whole.mean, whole.std, *whole.interval(), whole.quantile(0.3)]
    monkeypatch.setattr("paims.emulator._ensemble._PART_SIZE", 2**16)
    monkeypatch.setattr("paims._student._PART_SIZE", 2**16)
    assert len(whole._scaled._parts()) > 5
    tracemalloc.start()
    try:
        parts = emulator.predict_distribution(many)
        held = parts._scaled.location.nbytes + parts._scaled.scale.nbytes
        found = [parts.mean, parts.std, *parts.interval(), parts.quantile(0.3)]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)
    assert peak < 1.35 * held
