"""The Anderson-Darling statistic of uniforms, and its distribution."""

from __future__ import annotations

import numpy as np

from paims._arrays import FloatArray


def anderson_darling(u: FloatArray) -> FloatArray:
    r""":math:`A^2 = -n - \frac1n \sum (2i-1) \{\log u_{(i)} + \log(1-u_{(n+1-i)})\}`, by row."""
    u = np.clip(np.sort(u, axis=1), np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
    n = u.shape[1]
    i = np.arange(1, n + 1)
    terms = np.log(u) + np.log1p(-u[:, ::-1])
    return np.asarray(-n - (2 * i - 1) @ terms.T / n)


def anderson_darling_cdf(a2: float, n: int) -> float:
    """Distribution function of A^2 for n uniforms (Marsaglia & Marsaglia 2004), to about 1e-6."""
    if not a2 > 0.0:
        return 0.0
    if a2 < 2.0:
        series = np.polyval([0.00168691, -0.011672, 0.0347962, -0.0649821, 0.247105, 2.00012], a2)
        limit = np.exp(-1.2337141 / a2) / np.sqrt(a2) * series
    else:
        series = np.polyval([0.0003146, -0.008056, 0.082433, -0.43424, 2.30695, -1.0776], a2)
        limit = np.exp(-np.exp(-series))
    x = float(limit)
    crossing = 0.01265 + 0.1757 / n
    if x > 0.8:
        correction = (
            np.polyval([-255.7844, 1116.360, -1950.646, 1705.091, -745.2337, 130.2137], x) / -n
        )
    elif x < crossing:
        s = x / crossing
        shape = np.sqrt(s) * (1.0 - s) * (49.0 * s - 102.0)
        correction = shape * (0.0037 / n**2 + 0.00078 / n + 0.00006) / n
    else:
        s = (x - crossing) / (0.8 - crossing)
        shape = np.polyval([1.91864, -8.259, 14.458, -14.6538, 6.54034, -0.00022633], s)
        correction = shape * (0.04213 + 0.01365 / n) / n
    return float(np.clip(x + correction, 0.0, 1.0))
