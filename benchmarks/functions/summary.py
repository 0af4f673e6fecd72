"""Tables."""
from __future__ import annotations
def report(store):
    return ""
