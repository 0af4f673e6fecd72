"""Designs that are built to hurt: nearly singular correlation matrices of every kind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paims import Emulator

NUGGETS: tuple[str | float, ...] = ("estimate", 1e-6, 0.0)


def output(X: np.ndarray) -> np.ndarray:
    """A smooth function, the same however the inputs lie."""
    return np.sin(5.0 * X[:, 0]) + np.cos(3.0 * X[:, -1]) + 0.3 * X.sum(axis=1)


def hurting_designs(n_designs: int = 100) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, inputs and outputs of designs, a different one for each number.

    Clusters of points at distances 1e-1 to 1e-12, near-duplicates of a good design at the same
    distances, points on a line, grids, and grids with points all but on them.
    """
    for number in range(n_designs):
        rng = np.random.default_rng(number)
        p = 1 + number % 3
        distance = 10.0 ** -(1 + number // 5 % 12)
        kind = ("clustered", "near-duplicates", "collinear", "grid", "grid and near")[number % 5]
        if kind == "clustered":
            centres = rng.random((3, p))
            X = np.concatenate([c + distance * rng.standard_normal((5, p)) for c in centres])
        elif kind == "near-duplicates":
            X = rng.random((9, p))
            X = np.concatenate([X, X[:6] + distance * rng.standard_normal((6, p))])
        elif kind == "collinear":
            along = rng.random(14)[:, None]
            X = along * rng.random(p) + distance * rng.standard_normal((14, p)) * (p > 1)
        else:
            side = np.linspace(0.0, 1.0, {1: 14, 2: 4, 3: 3}[p])
            X = np.stack(np.meshgrid(*[side] * p), axis=-1).reshape(-1, p)
            if kind == "grid and near":
                X = np.concatenate([X, X[::3] + distance * rng.standard_normal((len(X[::3]), p))])
        yield f"{kind}, {distance:.0e}, p = {p}", X, output(X)


def verdict(X: np.ndarray, y: np.ndarray, nugget: str | float) -> str:
    """What comes of a design: "fitted", "refused", or what is wrong."""
    emulator = Emulator(nugget=nugget, n_samples=20 * (X.shape[1] + 2), random_state=0, n_jobs=1)
    try:
        emulator.fit(X, y)
    except ValueError:  # the documented kind: it says why
        return "refused"
    low, high = X.min(axis=0), X.max(axis=0)
    between = low + (high - low) * np.random.default_rng(0).random((20, X.shape[1]))
    for new in (X, between):
        for include_nugget in (True, False):
            mean, std = emulator.predict(new, return_std=True, include_nugget=include_nugget)
            if not (np.isfinite(mean).all() and np.isfinite(std).all()):
                return "not finite"
            variance = np.diag(
                emulator.predict(new, return_cov=True, include_nugget=include_nugget)[1]
            )
            if (std < 0.0).any() or (variance < 0.0).any():
                return "negative variance"
    return "fitted"
