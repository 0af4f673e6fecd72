"""Numbers as people write them."""

from __future__ import annotations

import math


def number(value: float, digits: int = 4) -> str:
    """A number to some significant digits: 15300 and 0.0153, not 1.53e+04; 1.5e+07 and 1.5e-05."""
    value = float(value)
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 1e7 or abs(value) < 1e-3:
        return f"{value:.{digits}g}"
    return f"{float(f'{value:.{digits}g}'):.12g}"
