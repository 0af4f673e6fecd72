"""Densities and disks that fail in the middle of a run: a clear error, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.sampling.hurting import Floats, two_modes
from tests.sampling.test_checkpoint import assert_same

import paims
from paims.sampling import DensityError, SampleResult
from paims.sampling._checkpoint import read_checkpoint

BOX = paims.Uniform([-2.0, -2.0], [2.0, 2.0])


def sample(density: Any, path: Path | None = None, **options: Any) -> SampleResult:
    return paims.sample(
        density, BOX, 200, random_state=3, progress=False, checkpoint=path, **options
    )


@pytest.fixture(scope="module")
def whole() -> SampleResult:
    """The run that nothing disturbs."""
    return sample(two_modes)


def raises(x: Floats) -> Floats:
    raise OSError("the licence server does not answer")


FAULTS: dict[str, tuple[Any, type[Exception], str]] = {
    "infinite": (lambda x: np.full(len(x), np.inf), ValueError, r"\+inf at \["),
    "column": (lambda x: two_modes(x)[:, None], ValueError, r"got shape \(\d+, 1\)"),
    "matrix": (lambda x: np.zeros((len(x), len(x) + 1)), ValueError, "must return shape"),
    "short": (lambda x: two_modes(x)[:-1], ValueError, r"must return shape \(\d+,\)"),
    "long": (lambda x: np.append(two_modes(x), 0.0), ValueError, r"must return shape \(\d+,\)"),
    "scalar": (lambda x: 0.0, ValueError, r"got shape \(\)"),
    "nothing": (lambda x: None, TypeError, "real numbers; got dtype object"),
    "complex": (lambda x: two_modes(x) + 1j, TypeError, "real numbers; got dtype complex128"),
    "text": (lambda x: ["1.0"] * len(x), TypeError, "real numbers; got dtype <U3"),
    "ragged": (lambda x: [[0.0], *[0.0] * (len(x) - 1)], ValueError, "one number for each"),
    "raises": (raises, DensityError, "OSError: the licence server does not answer"),
}


@pytest.mark.parametrize(("fault", "kind", "text"), FAULTS.values(), ids=FAULTS)
def test_nothing_is_lost(
    fault: Any, kind: type[Exception], text: str, whole: SampleResult, tmp_path: Path
) -> None:
    path = tmp_path / "run.h5"
    calls = 0

    def density(x: Floats) -> Any:
        nonlocal calls
        calls += 1
        return fault(x) if calls >= 9 and len(x) > 1 else two_modes(x)

    with pytest.raises(kind, match=text):
        sample(density, path)
    assert_same(whole, paims.resume(path, two_modes, progress=False))


def test_nan_is_zero_density_and_counted() -> None:
    def density(x: Floats) -> Floats:
        return np.where(x[:, 0] > 0.6, np.nan, two_modes(x))

    def zero(x: Floats) -> Floats:
        return np.where(x[:, 0] > 0.6, -np.inf, two_modes(x))

    with pytest.warns(paims.SamplingWarning, match="log_density was NaN at"):
        result = sample(density)
    assert result.n_nan > 0
    assert result.draws.tobytes() == sample(zero).draws.tobytes()


def test_exceptions_at_random_are_survived(whole: SampleResult, tmp_path: Path) -> None:
    """One batch in four fails; the same call again goes on until the run is done."""
    rng = np.random.default_rng(0)
    path = tmp_path / "run.h5"

    def density(x: Floats) -> Floats:
        if rng.random() < 0.25 and len(x) > 1:
            raise ConnectionError
        return two_modes(x)

    for _ in range(200):
        try:
            result = sample(density, path)
        except DensityError:
            continue
        break
    assert_same(whole, result)


FULL = """
import resource, signal, sys, warnings
import paims
from tests.sampling.hurting import two_modes

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
box = paims.Uniform([-2.0, -2.0], [2.0, 2.0])
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    result = paims.sample(two_modes, box, 200, random_state=3, checkpoint=sys.argv[1])
print(result.status.name, result.log_evidence.hex())
print(*(item.message for item in caught), sep="\\n")
"""


def test_files_that_the_system_does_not_let_grow(whole: SampleResult, tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, *said = done.stdout.splitlines()
    assert first == f"converged {whole.log_evidence.hex()}"
    assert len(said) == 1
    assert "could not be written (File too large). The run goes on" in said[0]
    assert [item.name for item in tmp_path.iterdir()] == ["run.h5"]
    assert read_checkpoint(path).progress.state is not None  # an earlier one, whole
    assert_same(whole, paims.resume(path, two_modes, progress=False))
