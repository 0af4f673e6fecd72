"""Tables."""

from __future__ import annotations


def report(store: object) -> str:
    """Nothing yet."""
    return ""
