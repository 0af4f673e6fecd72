"""Fixtures that several test folders share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """Folder of reference values and data beside the repository; its tests skip without it."""
    path = Path(__file__).resolve().parents[2] / "shared"
    if not path.is_dir():
        pytest.skip("the folder ../shared with reference values and data is not here")
    return path
