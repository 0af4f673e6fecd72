"""Ill-conditioned designs: no crash, no negative variance."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from tests.emulator.designs import NUGGETS, hurting_designs, verdict

# A few of each kind; `python -m benchmarks.hostile designs` takes a hundred.
DESIGNS = list(hurting_designs(60))
CHOSEN = [DESIGNS[i] for i in (0, 31, 12, 23, 55, 56, 59)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("nugget", NUGGETS)
@pytest.mark.parametrize(("name", "X", "y"), CHOSEN, ids=[name for name, _, _ in CHOSEN])
def test_no_crash_and_no_negative_variance(
    name: str, X: np.ndarray, y: np.ndarray, nugget: str | float
) -> None:
    found = verdict(X, y, nugget)
    assert found in ("fitted", "refused")
    if nugget == "estimate" and "clustered" not in name:  # three points that a plane explains
        assert found == "fitted"


def test_designs_differ() -> None:
    kept = {X.tobytes() for _, X, _ in islice(hurting_designs(), 100)}
    assert len(kept) > 80
