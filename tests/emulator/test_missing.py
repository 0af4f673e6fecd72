"""Values of a field that are filled in: each of the two sources on its own."""

from __future__ import annotations

import numpy as np

import paims
from paims.emulator._missing import _guesses, _Kriging


def test_components_are_shrunk() -> None:
    rng = np.random.default_rng(0)
    full = np.outer(rng.normal(size=12), rng.normal(size=9)) + 0.3 * rng.normal(size=(12, 9))
    missing = rng.random(full.shape) < 0.15
    filled = list(_guesses(np.where(missing, np.nan, full), np.zeros(full.shape)))[1]
    U, S, V = np.linalg.svd(filled, full_matrices=False)
    expected = (S[0] - np.mean(S[1:] ** 2) / S[0]) * np.outer(U[:, 0], V[0])
    np.testing.assert_allclose(filled[missing], expected[missing], atol=1e-4)
    np.testing.assert_array_equal(filled[~missing], full[~missing])


def test_kriging_fills_the_gaps_of_each_output_with_its_own() -> None:
    rng = np.random.default_rng(1)
    X = rng.random((30, 1))
    Z = np.column_stack([np.sin(4.0 * X[:, 0]), np.cos(5.0 * X[:, 0]), np.sin(7.0 * X[:, 0])])
    missing = np.zeros(Z.shape, dtype=bool)
    missing[[3, 8], 0] = missing[12, 1] = missing[20, 2] = True
    gaps = np.where(missing, np.nan, Z)
    asked = paims.Emulator(prior="jointly_robust", kernel="squared_exponential")
    found = _Kriging(X, gaps, asked)(gaps)
    np.testing.assert_allclose(found[missing], Z[missing], atol=0.05)
    assert not found[~missing].any()
