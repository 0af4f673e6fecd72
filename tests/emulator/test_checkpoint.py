"""Fits that go on after an interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paims
from paims.emulator import FitInterrupted
from paims.gp import Posterior
from paims.sampling import CheckpointError

Runs = tuple[np.ndarray, np.ndarray]


def fit(runs: Runs, path: Path | None = None, **settings: Any) -> paims.Emulator:
    settings = {"n_samples": 300, "random_state": 1, **settings}
    return paims.Emulator(**settings).fit(*runs, checkpoint=path)


def interrupted(runs: Runs, path: Path | None, at: int, **settings: Any) -> FitInterrupted:
    """A fit that is interrupted at its n-th batch."""
    calls = 0
    evaluate = Posterior.__call__

    def counting(self: Posterior, u: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return evaluate(self, u)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Posterior, "__call__", counting)
        patch.setattr("warnings.warn", lambda *arguments, **options: None)
        with pytest.raises(FitInterrupted) as seen:
            fit(runs, path, **settings)
    return seen.value


def assert_same(a: paims.Emulator, b: paims.Emulator) -> None:
    for name in ("draws_", "weights_", "beta_", "sigma2_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("draws", "weights"):
        assert getattr(a.ensemble_, name).tobytes() == getattr(b.ensemble_, name).tobytes()
    assert repr(a.modes_) == repr(b.modes_)
    assert a.log_evidence_ == b.log_evidence_


@pytest.mark.parametrize(
    "settings", [{}, {"goal": "optimum", "nugget": 1e-3}, {"scheme": "paper"}]
)
def test_goes_on_to_the_same_emulator(
    runs: Runs, tmp_path: Path, settings: dict[str, Any]
) -> None:
    path = tmp_path / "fit.h5"
    error = interrupted(runs, path, 9, **settings)
    assert f"Call fit again with checkpoint={str(path)!r}" in str(error)
    assert error.result.status.name == "interrupted"
    whole = fit(runs, **settings)
    assert_same(whole, fit(runs, path, **settings))
    assert_same(whole, fit(runs, path, **settings))  # a finished one gives its result


def test_without_a_seed(runs: Runs, tmp_path: Path) -> None:
    path = tmp_path / "fit.h5"
    interrupted(runs, path, 9, random_state=None)
    one = fit(runs, path, random_state=None)
    assert_same(one, fit(runs, path, random_state=None))


def test_without_a_checkpoint(runs: Runs) -> None:
    error = interrupted(runs, None, 9)
    assert "the emulator is not fitted. Pass fit(X, y, checkpoint='fit.h5')" in str(error)


def test_other_problems_are_refused(runs: Runs, tmp_path: Path) -> None:
    path = tmp_path / "fit.h5"
    interrupted(runs, path, 9)
    X, y = runs
    other = X.copy()
    other[3, 0] += 1e-9
    for changed, settings, text in (
        ((other, y), {}, r"density X is '\d+ x 2 with sha256 \w+' here and"),
        ((X, np.sin(y)), {}, "density y is"),
        ((X[:-1], y[:-1]), {}, "density X is"),
        (runs, {"kernel": "matern52"}, r"density kernel is '?Matern52"),
        (runs, {"mean": "constant"}, "density mean is 'Constant' here and 'Linear'"),
        (runs, {"prior": "jointly_robust"}, r"density prior is '?JointlyRobust"),
        (runs, {"nugget": 0.01}, "density nugget is 'FixedNugget"),
        (runs, {"nugget_prior": "uniform"}, "density nugget is .*Uniform"),
        (runs, {"random_state": 2}, "random_state is"),
        (runs, {"goal": "optimum"}, "goal is 'optimum' here and 'posterior' in the file"),
    ):
        with pytest.raises(CheckpointError, match=f"of another run: .*{text}"):
            fit(changed, path, **settings)
