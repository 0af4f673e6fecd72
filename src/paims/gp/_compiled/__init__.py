"""The compiled hot loop of the posterior: determinants, residual and information of a batch.

K = k(X, X | phi) + delta I. As many runs as there are basis functions are taken as pivots and put
last: H = [H1; H2] with H2 square, A = H1 H2^-1, and the contrasts C = [I, -A] do not see the
basis, C H = 0. With T = [[I, -A], [0, I]], |T| = 1, one factorisation T K T' = L L', whose first
block Lc belongs to C K C', gives everything (the paper's Q is C'(C K C')^-1 C):

    log|K|          = 2 sum log L_ii
    log|H'K^-1 H|   = 2 log|det H2| - 2 sum over the last q of log L_ii
    S2 = y'Qy       = |Lc^-1 C y|^2
    |I|             of [[n-q, tr M_i], [tr M_i, <M_i, M_j>]],  M_i = Lc^-1 C dK_i C' Lc^-T

The last line is Paulo's information matrix of W_i = dK_i Q, as tr W_i = tr M_i and
tr W_i W_j = <M_i, M_j>. Compared with a QR decomposition of L^-1 H the matrices are smaller by q
rows and nothing has to be projected; and where the constant is in the basis, K - 1 1' may take
the place of K in the contrasts, which keeps the digits that long correlation lengths cost.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from paims._arrays import BoolArray, FloatArray
from paims._parallel import for_chunks, single_threaded_blas
from paims.gp._compiled import (
    _gradient,
    _information,
    _kernels,
    _lanes,
    _lapack,
    _large,
    _outputs,
    _pairs,
    _simd,
    _tiles,
)
from paims.gp._compiled._kernels import pair_terms, point_terms
from paims.gp._compiled._pairs import leading_dimension, run_terms, scale_terms
from paims.gp._compiled._simd import LANES
from paims.gp._kernels import ExponentialForm, ExponentialKernel

_PARTS = (
    _gradient,
    _information,
    _kernels,
    _lanes,
    _lapack,
    _large,
    _outputs,
    _pairs,
    _simd,
    _tiles,
)
# Runs from which one point through LAPACK is faster than four in the lanes of a vector, without
# and with the information matrix.
_LARGE = (400, 600)
_FLOPS = 3e10  # what a core does in a second, roughly: chunks of work are made by it


def _version() -> int:
    """Number that changes with the source of the compiled code."""
    try:
        sources = [Path(str(part.__file__)).read_bytes() for part in _PARTS]
    except OSError:  # no sources, so they do not change
        return 0
    return zlib.crc32(b"".join(sources))


_run = _lanes.make_run(_version())
_run_large = _large.make_run(_version())
_run_gradient = _gradient.make_run(_version())
_run_outputs = _outputs.make_run(_version())
_run_outputs_gradient = _outputs.make_run_gradient(_version())

# order, A, z, log_det and shift, see `contrasts`
Contrasts = tuple[NDArray[np.intp], FloatArray, FloatArray, float, float]
_Arguments = tuple[Any, ...]


class Prepared:
    """What does not depend on the points: contrasts, and what the runs bring to correlations.

    For a single point of a few runs it costs several times what the point itself does.
    """

    def __init__(self, X: FloatArray, found: Contrasts, kernel: ExponentialKernel) -> None:
        self.contrasts = found
        self.form = kernel.form
        self._X = X[found[0]]

    @cached_property
    def pairs(self) -> FloatArray:
        """Of each pair of runs, as the lanes want it."""
        return pair_terms(self._X, self.form)

    @cached_property
    def runs(self) -> tuple[int, FloatArray]:
        """Of each run, as one point at a time wants it."""
        return run_terms(self._X, self.form)


def contrasts(H: FloatArray, y: FloatArray) -> Contrasts | None:
    """What the loop has to know of H and y; None when the columns of H are dependent.

    Returns
    -------
    order : ndarray of shape (n,)
        The runs, pivots last: rows of an orthonormal basis of H chosen by a QR decomposition with
        pivoting, which keeps the entries of A near 1 or below.
    A : ndarray of shape (n - q, q)
    z : ndarray of shape (n - q,)
        C y.
    log_det : float
        2 log|det H2|.
    shift : float
        1 when the constant is in the span of H, else 0.
    """
    n, q = H.shape
    dof = n - q
    if q == 0:
        return np.arange(n), np.zeros((n, 0)), y, 0.0, 0.0
    norms = np.sqrt((H * H).sum(axis=0))
    if not norms.all():
        return None
    basis, R, _ = scipy.linalg.qr(H / norms, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    if diagonal[-1] <= n * np.finfo(float).eps * diagonal[0]:
        return None
    chosen = scipy.linalg.qr(basis.T, mode="r", pivoting=True)[-1]
    order = np.concatenate([np.sort(chosen[q:]), chosen[:q]])
    rest, pivots = basis[order[:dof]], basis[order[dof:]]
    A = np.ascontiguousarray(np.linalg.solve(pivots.T, rest.T).T)
    log_det = 2.0 * (np.linalg.slogdet(pivots)[1] + np.log(norms * diagonal).sum())
    z = y[order[:dof]] - A @ y[order[dof:]]
    spread = np.abs(A).sum(axis=1)
    shift = np.all(np.abs(1.0 - A.sum(axis=1)) <= 64 * np.finfo(float).eps * (1.0 + spread))
    return order, A, z, float(log_det), float(shift)


def prepare(
    X: FloatArray, H: FloatArray, y: FloatArray, kernel: ExponentialKernel
) -> Prepared | None:
    """What callers who come again may keep; None when the columns of H are dependent."""
    found = contrasts(H, y)
    return None if found is None else Prepared(X, found, kernel)


def core_terms(
    X: FloatArray,
    H: FloatArray,
    y: FloatArray,
    kernel: ExponentialKernel,
    phi: FloatArray,
    delta: FloatArray,
    information: int,
    n_jobs: int | None = None,
    prepared: Prepared | None = None,
) -> FloatArray:
    """Compute the terms of the log posterior for a batch of points.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Inputs of the training runs.
    H : ndarray of shape (n, q)
        Basis functions at the training runs; q may be 0.
    y : ndarray of shape (n,)
        Outputs of the training runs.
    kernel : ExponentialKernel
    phi : ndarray of shape (m, p)
        Correlation lengths, one row per point.
    delta : ndarray of shape (m,)
        Nuggets.
    information : int
        0: log|I| is not wanted; 1: rows for the variance and each log phi_i; 2: also log delta.
    n_jobs : int, optional
        Number of threads; None or -1 for every available core. The result does not depend on it.
    prepared : tuple, optional
        What :func:`prepare` made of the first four arguments, for callers who come again.

    Returns
    -------
    ndarray of shape (m, 4)
        log|K|, log|H'K^-1 H| (0 for q = 0), S2 = y'Qy, log|I| (0 when not wanted). A point that
        fails (phi or delta out of range, K or I not positive definite to working precision) is
        NaN in all four and does not change the others; so are all when H has dependent columns.
    """
    X, H, y, phi, delta = _checked(X, H, y, phi, delta)
    n, p = X.shape
    if information not in range(3):
        raise ValueError(f"information must be 0, 1 or 2; got {information!r}.")
    out = np.full((len(phi), 4), np.nan)
    prepared = prepared or prepare(X, H, y, kernel)
    if prepared is None:
        return out
    valid, phi, delta = _harmless(phi, delta)
    n_rows = p + information - 1 if information else 0
    if n < _LARGE[information > 0]:
        _in_lanes(prepared, phi, delta, information, n_rows, n_jobs, out)
    else:
        where = _large.layout(n, p, H.shape[1], n_rows)

        def stages(
            arguments: _Arguments, m: int, first: int, last: int, workspace: FloatArray
        ) -> None:
            _run_large(
                *arguments, n_rows, leading_dimension(n), m, first, last, where, workspace, out
            )

        numbers = (-1, n_rows if n_rows else -1)
        _one_by_one(prepared, phi, delta, stages, numbers, where[-1], n_jobs)
    out[~valid] = np.nan
    return out


def core_gradients(
    X: FloatArray,
    H: FloatArray,
    y: FloatArray,
    kernel: ExponentialKernel,
    phi: FloatArray,
    delta: FloatArray,
    n_jobs: int | None = None,
    prepared: Prepared | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Compute the terms, and the gradient of the integrated log likelihood, for a batch.

    Parameters
    ----------
    X, H, y, kernel, phi, delta, n_jobs, prepared
        As in :func:`core_terms`.

    Returns
    -------
    terms : ndarray of shape (m, 4)
        As in :func:`core_terms` without information. Up to rounding: the operations are others.
    gradient : ndarray of shape (m, p + 1)
        In log phi_1, .., log phi_p and in delta (not its logarithm); NaN where a point fails.
    """
    X, H, y, phi, delta = _checked(X, H, y, phi, delta)
    out, gradient = np.full((len(phi), 4), np.nan), np.full((len(phi), X.shape[1] + 1), np.nan)
    prepared = prepared or prepare(X, H, y, kernel)
    if prepared is None:
        return out, gradient
    valid, phi, delta = _harmless(phi, delta)
    n, q = H.shape
    where = _gradient.layout(n, X.shape[1], q)

    def stages(
        arguments: _Arguments, m: int, first: int, last: int, workspace: FloatArray
    ) -> None:
        _run_gradient(
            *arguments, leading_dimension(n), m, first, last, where, workspace, out, gradient
        )

    _one_by_one(prepared, phi, delta, stages, (0, _gradient.N_STAGES - 1), where[-1], n_jobs)
    failed = ~valid | ~np.isfinite(out).all(axis=1)
    out[failed], gradient[failed] = np.nan, np.nan
    return out, gradient


def outputs_terms(
    X: FloatArray,
    H: FloatArray,
    Y: FloatArray,
    kernel: ExponentialKernel,
    phi: FloatArray,
    delta: FloatArray,
    n_jobs: int | None = None,
    prepared: Prepared | None = None,
) -> FloatArray:
    """Compute the terms of several outputs, which have the factorisation in common.

    Parameters
    ----------
    X, H, kernel, phi, delta, n_jobs
        As in :func:`core_terms`.
    Y : ndarray of shape (n, k)
        Outputs of the training runs.
    prepared : optional
        What :func:`prepare` made of X, H, the first output and the kernel.

    Returns
    -------
    ndarray of shape (m, 2 + k)
        log|K|, log|H'K^-1 H|, and S2 = y'Qy of each output; NaN where a point fails.
    """
    X, H, y, phi, delta = _checked(X, H, np.ascontiguousarray(Y[:, 0]), phi, delta)
    out = np.full((len(phi), 2 + Y.shape[1]), np.nan)
    prepared = prepared or prepare(X, H, y, kernel)
    if prepared is None:
        return out
    valid, phi, delta = _harmless(phi, delta)
    n, q = H.shape
    order, A = prepared.contrasts[:2]
    Z = np.ascontiguousarray((Y[order[: n - q]] - A @ Y[order[n - q :]]).T)
    where = _large.layout(n, X.shape[1], q, 0)

    def stages(
        arguments: _Arguments, m: int, first: int, last: int, workspace: FloatArray
    ) -> None:
        lapack, runs, kind, A, _, log_det, shift, _, *kernel, points, nugget = arguments
        _run_outputs(
            lapack, runs, kind, A, Z, log_det, shift, *kernel, points, nugget,
            leading_dimension(n), m, where, workspace, out,
        )  # fmt: skip

    _one_by_one(prepared, phi, delta, stages, (0, 0), where[-1], n_jobs)
    out[~valid] = np.nan
    return out


def outputs_gradients(
    X: FloatArray,
    H: FloatArray,
    Y: FloatArray,
    kernel: ExponentialKernel,
    phi: FloatArray,
    delta: FloatArray,
    n_jobs: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Compute the terms of several outputs, and the gradient of their summed log likelihoods.

    Parameters
    ----------
    X, H, Y, kernel, phi, delta, n_jobs
        As in :func:`outputs_terms`.

    Returns
    -------
    terms : ndarray of shape (m, 2 + k)
        As in :func:`outputs_terms`.
    gradient : ndarray of shape (m, p + 1)
        In log phi_1, .., log phi_p and in delta (not its logarithm); NaN where a point fails.
    """
    X, H, y, phi, delta = _checked(X, H, np.ascontiguousarray(Y[:, 0]), phi, delta)
    n, q = H.shape
    p, k = X.shape[1], Y.shape[1]
    out, gradient = np.full((len(phi), 2 + k), np.nan), np.full((len(phi), p + 1), np.nan)
    prepared = prepare(X, H, y, kernel)
    if prepared is None:
        return out, gradient
    valid, phi, delta = _harmless(phi, delta)
    order, A = prepared.contrasts[:2]
    Z = np.ascontiguousarray((Y[order[: n - q]] - A @ Y[order[n - q :]]).T)
    where = _outputs.layout(n, p, q, k)

    def stages(
        arguments: _Arguments, m: int, first: int, last: int, workspace: FloatArray
    ) -> None:
        lapack, runs, kind, A, _, *rest = arguments
        _run_outputs_gradient(
            lapack, runs, kind, A, Z, *rest, leading_dimension(n), m, first, last, where,
            workspace, out, gradient,
        )  # fmt: skip

    _one_by_one(prepared, phi, delta, stages, (0, _outputs.N_STAGES - 1), where[-1], n_jobs)
    failed = ~valid | ~np.isfinite(out).all(axis=1)
    out[failed], gradient[failed] = np.nan, np.nan
    return out, gradient


def _checked(
    X: FloatArray, H: FloatArray, y: FloatArray, phi: FloatArray, delta: FloatArray
) -> list[FloatArray]:
    """Arrays as the loops want them, with shapes that go together."""
    X, H, y, phi, delta = arrays = [
        np.ascontiguousarray(a, dtype=np.float64) for a in (X, H, y, phi, delta)
    ]
    n, p = X.shape
    q, m = H.shape[1], phi.shape[0]
    if H.shape[0] != n or y.shape != (n,) or phi.shape != (m, p) or delta.shape != (m,):
        raise ValueError(
            "shapes must be X (n, p), H (n, q), y (n,), phi (m, p) and delta (m,); got "
            f"{X.shape}, {H.shape}, {y.shape}, {phi.shape} and {delta.shape}."
        )
    if q >= n:
        raise ValueError(f"{q} basis functions need more than {q} runs; got {n}. Take fewer.")
    return arrays


def _harmless(phi: FloatArray, delta: FloatArray) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Which points are in range, and all points with those that are not replaced."""
    valid = (np.isfinite(phi) & (phi > 0.0)).all(axis=1) & np.isfinite(delta) & (delta >= 0.0)
    return valid, np.where(valid[:, None], phi, 1.0), np.where(valid, delta, 1.0)


def _slope_power(form: ExponentialForm) -> float:
    """Power that a slope has as a factor; see ``_kernels`` for radial ones."""
    return 1.0 if form.radial else float(form.power)


def _in_lanes(
    prepared: Prepared,
    phi: FloatArray,
    delta: FloatArray,
    information: int,
    n_rows: int,
    n_jobs: int | None,
    out: FloatArray,
) -> None:
    """Four points at a time."""
    (_, A, z, log_det, shift), form = prepared.contrasts, prepared.form
    n = sum(A.shape)
    where = _lanes.layout(n, phi.shape[1], A.shape[1], n_rows)
    pairs, points = prepared.pairs, point_terms(phi, form)
    unused: deque[FloatArray] = deque()

    def work(start: int, stop: int) -> None:
        workspace = _workspace(unused, where[-1])
        _run(
            pairs, A, z, log_det, shift, _slope_power(form), form.polynomial, form.slope,
            form.radial, points, delta, int(information), start, stop, where, workspace, out,
        )  # fmt: skip
        unused.append(workspace)

    # About a millisecond of work, so that handing it to a thread costs little; whole vectors.
    fours = min(max(4_000_000 // ((n_rows + 1) * n**3), 1), 32)
    for_chunks(work, len(phi), LANES * fours, n_jobs)


def _one_by_one(
    prepared: Prepared,
    phi: FloatArray,
    delta: FloatArray,
    stages: Callable[[_Arguments, int, int, int, FloatArray], None],
    numbers: tuple[int, int],
    size: int,
    n_jobs: int | None,
) -> None:
    """One point on each thread, in stages of a fraction of a second.

    BLAS has one thread for each: with more it would add in another order.

    Parameters
    ----------
    prepared, phi, delta, n_jobs
        As in :func:`core_terms`.
    stages : callable
        ``stages(arguments, m, first, last, workspace)`` runs the stages from first to last of
        point m; ``arguments`` are what all loops over single points begin with.
    numbers : tuple of int
        The first and the last stage of a point.
    size : int
        Of a workspace.
    """
    (_, A, z, log_det, shift), form = prepared.contrasts, prepared.form
    (kind, runs), (begin, end) = prepared.runs, numbers
    arguments = (
        _lapack.addresses(), runs, kind, A, z, log_det, shift, _slope_power(form),
        form.polynomial, form.slope, form.radial, scale_terms(phi, form, kind), delta,
    )  # fmt: skip
    each = float(sum(A.shape)) ** 3 / _FLOPS
    step = max(int(0.2 / each), 1)
    unused: deque[FloatArray] = deque()

    def work(start: int, stop: int) -> Iterator[None]:
        workspace = _workspace(unused, size)
        for m in range(start, stop):
            for first in range(begin, end + 1, step):
                stages(arguments, m, first, min(first + step - 1, end), workspace)
                yield
        unused.append(workspace)

    chunk = min(max(int(1e-3 / ((end - begin + 1) * each)), 1), 32)
    with single_threaded_blas():
        for_chunks(work, len(phi), chunk, n_jobs)


def _workspace(unused: deque[FloatArray], size: int) -> FloatArray:
    """One that another chunk has left, or a new one."""
    try:
        return unused.pop()
    except IndexError:
        return np.zeros(size)
