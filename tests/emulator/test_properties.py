"""Whatever finite runs of an admissible shape: an emulator, or an error that says why."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import paims

# From one subnormal number to nearly the largest one; and numbers as people have them.
WILD = st.floats(allow_nan=False, allow_infinity=False)
TAME = st.floats(-1e6, 1e6, allow_subnormal=False)
FEW = st.sampled_from([0.0, 0.5, 1.0])  # grids and repetitions
NEAR = st.integers(-3, 3).map(lambda i: 1.0 + i * 1e-12)  # all but equal
LARGE = st.integers(0, 5).map(lambda i: 1e9 + i)  # little variation on a large number


def limited(y: np.ndarray) -> np.ndarray:
    """Outputs whose predictions do not pass the largest number there is."""
    return np.clip(y, -1e290, 1e290)


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Runs and settings."""
    n, p = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    kinds = st.sampled_from([TAME, TAME, WILD, FEW, NEAR, LARGE])
    columns = [draw(hnp.arrays(np.float64, n, elements=draw(kinds))) for _ in range(p)]
    X = np.column_stack(columns)
    y = draw(
        st.one_of(
            hnp.arrays(np.float64, n, elements=draw(kinds)).map(
                lambda y: np.clip(y, -1e290, 1e290)
            ),
            st.just(np.sum(np.sin(np.clip(X, -1e6, 1e6)), axis=1)),
            st.just(np.sum(np.clip(X, -1e6, 1e6), axis=1)),  # all trend
        )
    )
    chosen = {
        "kernel": draw(st.sampled_from(["squared_exponential", "matern32", "matern52"])),
        "mean": draw(st.sampled_from(["linear", "constant", "quadratic", "zero"])),
        "prior": draw(st.sampled_from(["reference", "jointly_robust", "log_normal", "flat"])),
        "nugget": draw(st.sampled_from(["estimate", "estimate", 0.0, 1e-8, 0.1])),
        "goal": draw(st.sampled_from(["posterior", "posterior", "map", "optimum"])),
    }
    return X, y, chosen


def check(problem: tuple[np.ndarray, np.ndarray, dict[str, Any]]) -> None:
    """Fit and predict; errors of the documented kind only, and finite numbers only."""
    X, y, chosen = problem
    emulator = paims.Emulator(n_samples=20 * (X.shape[1] + 2), random_state=0, n_jobs=1, **chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # what the library has to say
        try:
            emulator.fit(X, y)
        except ValueError:  # the documented kind
            return
        for new in (X, 0.5 * X[:1] + 0.5 * X[-1:]):
            for nugget in (True, False):
                mean, std = emulator.predict(new, return_std=True, include_nugget=nugget)
                assert np.all(np.isfinite(mean)), (mean, new)
                assert np.all(np.isfinite(std)), (std, new)
                assert np.all(std >= 0.0)
        lower, upper = emulator.predict_distribution(X).interval(0.9)
        assert np.all(np.isfinite(lower))
        assert np.all(lower <= upper)
        assert np.isfinite(emulator.log_evidence_)
        assert emulator.weights_.sum() == pytest.approx(1.0)


OPTIONS: dict[str, Any] = {
    "deadline": None,  # the pace of a machine is no property
    "derandomize": True,
    "database": None,
    "phases": [Phase.explicit, Phase.generate],  # to shrink takes longer than to look
    "suppress_health_check": list(HealthCheck),
}


@given(problems())
@settings(max_examples=200, **OPTIONS)
def test_any_runs(problem: tuple[np.ndarray, np.ndarray, dict[str, Any]]) -> None:
    check(problem)


def test_inputs_from_end_to_end_of_the_doubles() -> None:
    largest = np.finfo(float).max
    X = np.array([largest] * 4 + [-largest, -2e298, -5.7e119, 7.2e285, -4.4e10, largest])[:, None]
    check((X, np.where(X[:, 0] > 0.0, 1e6, -1e6), {"mean": "zero", "nugget": 0.1}))


def test_outputs_that_cannot_be_predicted_in_doubles() -> None:
    X = np.linspace(0.0, 1.0, 8)[:, None]
    y = np.where(X[:, 0] < 0.1, 1.7e308, X[:, 0])
    with pytest.raises(ValueError, match=r"near the largest that a double can hold"):
        paims.Emulator(n_samples=100, random_state=0).fit(X, y)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@given(problems())
@settings(max_examples=2000, **OPTIONS)
def test_many_more_runs(problem: tuple[np.ndarray, np.ndarray, dict[str, Any]]) -> None:
    check(problem)
