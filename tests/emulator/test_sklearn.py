"""The emulator as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import paims

# Few points and a cheap prior: the checks fit dozens of times, up to 10 inputs and 200 runs.
CHEAP = {"n_samples": 300, "prior": "jointly_robust", "mean": "constant", "random_state": 0}


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
@parametrize_with_checks([paims.Emulator(**CHEAP)])
def test_estimator_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
