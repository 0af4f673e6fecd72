r"""Values that some runs of a field do not have, so that its components can be found.

Two things tell of them: the same output in runs nearby, and the other outputs of the same run.
The first is kriging, with hyper-parameters that an even choice of outputs has in common. It is
where the second starts from: the leading r components Z = U S V', found anew with the missing
values replaced by what they say, until they agree. Singular values are shrunk to
:math:`s - \sigma^2 / s`, with :math:`\sigma^2` the mean square of those left out, as in
probabilistic principal components (Tipping and Bishop 1999): without that a run that lacks much
has its scores from hardly anything, and its values run away.

How many components, or none but kriging, is decided by known values that are taken away; the error
on these is that of what is filled in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from paims._arrays import BoolArray, FloatArray
from paims.emulator._averaging import candidates
from paims.emulator._pilot import common_point
from paims.emulator._scaling import InputScaling
from paims.emulator._trend import basis_in_units

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

_RANKS = (1, 2, 3, 4, 6, 8, 11, 16)
_STEPS = 200
_TOLERANCE = 1e-6
# Share of the known values that are taken away to choose, and how many at least and at most.
_TAKEN = 0.05
_LEAST, _MOST = 20, 5000


@dataclass(frozen=True, eq=False)
class Completed:
    """A table without gaps.

    Attributes
    ----------
    values : (n, m) ndarray
    n_missing : int
        Values that were filled in.
    error : float
        Root mean square error of filling in known values that were taken away.
    """

    values: FloatArray
    n_missing: int = 0
    error: float = 0.0


def completed(X: FloatArray, Z: FloatArray, asked: Emulator) -> Completed:
    """Fill in what is NaN.

    Parameters
    ----------
    X : (n, n_features) ndarray
        Inputs, in the user's units.
    Z : (n, m) ndarray
        Outputs, scaled to a spread of about 1.
    asked : Emulator
        For its mean, nugget and kernel.
    """
    missing = np.isnan(Z)
    if not missing.any():
        return Completed(Z)
    start = _Kriging(X, Z, asked)
    taken = _some_known(~missing)
    tried = np.where(taken, np.nan, Z)
    errors = [
        float(np.sqrt(np.mean((guess[taken] - Z[taken]) ** 2)))
        for guess in _guesses(tried, start(tried))
    ]
    best = int(np.argmin(errors))
    guess = next(islice(_guesses(Z, start(Z)), best, None))
    return Completed(guess, int(missing.sum()), errors[best])


def _some_known(known: BoolArray) -> BoolArray:
    """Known values to take away: at random, but no more than half of a run's or an output's."""
    count = int(np.clip(_TAKEN * known.sum(), _LEAST, _MOST))
    order = np.random.default_rng(0).permutation(np.flatnonzero(known))
    taken = np.zeros(known.shape, dtype=bool)
    of_run, of_output = known.sum(axis=1) // 2, known.sum(axis=0) // 2
    for i, j in zip(*np.unravel_index(order, known.shape), strict=True):
        if count == 0:
            break
        if of_run[i] > 0 and of_output[j] > 0:
            taken[i, j] = True
            of_run[i], of_output[j], count = of_run[i] - 1, of_output[j] - 1, count - 1
    return taken


def _guesses(Z: FloatArray, start: FloatArray) -> Iterator[FloatArray]:
    """Full tables: by kriging alone, then by more and more components."""
    missing = np.isnan(Z)
    filled = np.where(missing, start, Z)
    yield filled
    for rank in _RANKS:
        if rank > (min(Z.shape) - 1) // 2:
            return
        for _ in range(_STEPS):
            U, S, V = np.linalg.svd(filled, full_matrices=False)
            rest = np.mean(S[rank:] ** 2)
            shrunk = S[:rank] - rest / np.where(S[:rank] > 0.0, S[:rank], 1.0)
            guess = np.where(missing, (U[:, :rank] * shrunk) @ V[:rank], Z)
            step = float(np.abs(guess - filled).max())
            filled = guess
            if step < _TOLERANCE:
                break
        yield filled


class _Kriging:
    """Prediction of an output's missing runs from those that it has."""

    def __init__(self, X: FloatArray, Z: FloatArray, asked: Emulator) -> None:
        inputs = InputScaling.of(X)
        self.X = inputs.runs(X)
        self.H = basis_in_units(asked.mean, inputs)(self.X)
        kernel = candidates(asked.kernel)[0]
        usable = np.array([self._usable(z) for z in Z.T])
        self.K = None
        if usable.any():
            phi, nugget = common_point(self.X, Z[:, usable], inputs, asked, kernel)
            self.K = kernel.correlation(self.X, self.X, phi)[0]
            self.K[np.diag_indices(len(Z))] += nugget

    def _usable(self, z: FloatArray) -> bool:
        """Whether hyper-parameters can be learnt: enough runs that the trend does not explain."""
        rows = ~np.isnan(z)
        H, q = self.H[rows], self.H.shape[1]
        if rows.sum() < q + 4:
            return False
        left = z[rows] - H @ np.linalg.lstsq(H, z[rows], rcond=None)[0]
        return bool(np.abs(left).max() > 1e-8 * np.abs(z[rows]).max())

    def __call__(self, Z: FloatArray) -> FloatArray:
        """Predictions ``(n, m)`` of what is NaN, 0 elsewhere."""
        found = np.zeros(Z.shape)
        patterns, which = np.unique(np.isnan(Z), axis=1, return_inverse=True)
        q = self.H.shape[1]
        for i, gaps in enumerate(patterns.T):
            rows, outputs = ~gaps, np.flatnonzero(which.ravel() == i)
            k = int(rows.sum())
            if self.K is None or not gaps.any() or k < q + 2:
                continue
            # The equations of universal kriging: weights of the known runs, and multipliers.
            left = np.zeros((k + q, k + q))
            left[:k, :k], left[:k, k:] = self.K[np.ix_(rows, rows)], self.H[rows]
            left[k:, :k] = self.H[rows].T
            right = np.vstack([self.K[np.ix_(rows, gaps)], self.H[gaps].T])
            weights = np.linalg.lstsq(left, right, rcond=None)[0][:k]
            found[np.ix_(gaps, outputs)] = weights.T @ Z[np.ix_(rows, outputs)]
        return found
