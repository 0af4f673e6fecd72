r"""The plain NumPy twin of the compiled loop: the terms of the posterior for a batch of points.

It has the compiled loop's interface and mathematics, is what the tests compare it with, and runs
the kernels that numbers do not tell. Per point, with :math:`K = LL^T`:

- whiten, :math:`F = L^{-1}H = Q_1 R` (thin QR) and :math:`w = L^{-1}y`;
- :math:`S^2` is the squared norm of the residual :math:`w - Q_1 Q_1^T w`, or comes from
  contrasts where the constant is in the span of H (:func:`_residual_in_contrasts`);
- :math:`\mathrm{tr} W_i = \mathrm{tr} M_i` and :math:`\mathrm{tr} W_i W_j = \langle M_i, M_j
  \rangle` for the symmetric :math:`M_i = P L^{-1} \partial_i K L^{-T} P`,
  :math:`P = I - Q_1 Q_1^T`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paims._arrays import FloatArray
from paims._parallel import for_chunks, single_threaded_blas
from paims.gp._factorisation import cholesky, diagonal, project_out, solve_lower
from paims.gp._kernels import Kernel

# Doubles in the largest array of a sub-batch: about a megabyte, what a core's cache holds.
_BLOCK_SIZE = 120_000


def core_terms(
    X: FloatArray,
    H: FloatArray,
    y: FloatArray,
    kernel: Kernel,
    phi: FloatArray,
    delta: FloatArray,
    information: int,
    n_jobs: int | None = None,
    prepared: object = None,
) -> FloatArray:
    """Terms of the log posterior for a batch of points.

    Parameters
    ----------
    X : (n, p) ndarray
        Training inputs.
    H : (n, q) ndarray
        Design matrix; q may be 0.
    y : (n,) ndarray
        Training outputs.
    kernel : Kernel
    phi : (m, p) ndarray
        Correlation parameters.
    delta : (m,) ndarray
        Nuggets.
    information : int
        0: log|I| is not wanted (its column is 0); 1: the information matrix with rows for the
        variance and each log phi_i; 2: one more row for the log nugget.
    n_jobs : int, optional
        Number of threads; None for every available core.
    prepared : optional
        What the compiled loop keeps between calls; of no use here.

    Returns
    -------
    (m, 4) ndarray
        log|K|, log|H'K^-1 H| (0 for q = 0), S2 = y'Qy, log|I|. A point that fails is NaN in all
        four, and does not change the others.
    """
    constant_in_span = _spans_constant(H)

    def block(phi: FloatArray, delta: FloatArray) -> FloatArray:
        return _block_terms(X, H, y, kernel, phi, delta, information, constant_in_span)

    return _in_blocks(block, 4, X, phi, delta, n_jobs)


def core_gradients(
    X: FloatArray,
    H: FloatArray,
    y: FloatArray,
    kernel: Kernel,
    phi: FloatArray,
    delta: FloatArray,
    n_jobs: int | None = None,
    prepared: object = None,
) -> tuple[FloatArray, FloatArray]:
    r"""Terms without information, and the gradient of the integrated log likelihood.

    :math:`\partial l = \sum_{jk} M_{jk} \partial K_{jk}` with
    :math:`M = \frac12 (\frac{n-q}{S^2} a a^T - Q)` and :math:`a = Qy`.

    Parameters
    ----------
    X, H, y, kernel, phi, delta, n_jobs, prepared
        As in :func:`core_terms`.

    Returns
    -------
    terms : (m, 4) ndarray
        As in :func:`core_terms`.
    gradient : (m, p + 1) ndarray
        In each log phi_i and in delta; NaN where a point fails.
    """
    constant_in_span = _spans_constant(H)

    def block(phi: FloatArray, delta: FloatArray) -> FloatArray:
        return _block_gradients(X, H, y, kernel, phi, delta, constant_in_span)

    both = _in_blocks(block, 5 + X.shape[1], X, phi, delta, n_jobs)
    return both[:, :4].copy(), both[:, 4:].copy()


def _in_blocks(
    block: Callable[[FloatArray, FloatArray], FloatArray],
    n_columns: int,
    X: FloatArray,
    phi: FloatArray,
    delta: FloatArray,
    n_jobs: int | None,
) -> FloatArray:
    """Rows of sub-batches, side by side; NaN for points that are out of range or fail."""
    n, p = X.shape
    out = np.full((len(phi), n_columns), np.nan)
    valid = (np.isfinite(phi) & (phi > 0.0)).all(axis=1) & np.isfinite(delta) & (delta >= 0.0)
    # Failed points take part with harmless values, so that the shapes of all operations, and
    # hence the bits of the other points, do not depend on them.
    phi = np.where(valid[:, None], phi, 1.0)
    delta = np.where(valid, delta, 1.0)

    def work(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            rows = block(phi[start:stop], delta[start:stop])
        keep = valid[start:stop] & np.isfinite(rows).all(axis=1)
        out[start:stop][keep] = rows[keep]

    with single_threaded_blas():
        for_chunks(work, len(phi), max(1, _BLOCK_SIZE // (n * n * (p + 1))), n_jobs)
    return out


def _block_terms(
    X: FloatArray,
    H: FloatArray,
    y: FloatArray,
    kernel: Kernel,
    phi: FloatArray,
    delta: FloatArray,
    information: int,
    constant_in_span: bool,
) -> FloatArray:
    """Terms of a sub-batch; NaN or infinity where a point fails."""
    n, m = len(H), len(phi)
    if information:
        K, dK = kernel.correlation_and_derivatives(X, X, phi)
    else:
        K, dK = kernel.correlation(X, X, phi), np.empty((m, 0, n, n))
    terms, L, Q1, _ = _regression(K, H, y, delta)
    if constant_in_span and _knows_minus_one(kernel):
        terms[:, 2] = _residual_in_contrasts(X, H, y, kernel, phi, delta)
    if information:
        B = _whitening(L, Q1)
        M = _whitened(B, dK)
        if information == 2:
            M_nugget = _nugget_row(X, kernel, phi, delta, B, constant_in_span)
            M = np.concatenate([M, M_nugget[:, None]], axis=1)
        terms[:, 3] = _log_det_information(M, Q1)
    return terms


def _block_gradients(
    X: FloatArray,
    H: FloatArray,
    y: FloatArray,
    kernel: Kernel,
    phi: FloatArray,
    delta: FloatArray,
    constant_in_span: bool,
) -> FloatArray:
    """Terms and gradients of a sub-batch, with Q = B'B and a = B'e, e the residual."""
    n, q = H.shape
    K, dK = kernel.correlation_and_derivatives(X, X, phi)
    terms, L, Q1, residual = _regression(K, H, y, delta)
    if constant_in_span and _knows_minus_one(kernel):
        terms[:, 2] = _residual_in_contrasts(X, H, y, kernel, phi, delta)
    B = _whitening(L, Q1)
    a = B.swapaxes(1, 2) @ residual
    ratio = ((n - q) / terms[:, 2])[:, None, None]
    M = 0.5 * (ratio * (a @ a.swapaxes(1, 2)) - B.swapaxes(1, 2) @ B)
    in_log_phi = np.einsum("mjk,mijk->mi", M, dK)
    return np.concatenate([terms, in_log_phi, np.trace(M, axis1=1, axis2=2)[:, None]], axis=1)


def _regression(
    K: FloatArray, H: FloatArray, y: FloatArray, delta: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Terms but for the information's, L, Q1 and the whitened residual (m, n, 1)."""
    (n, q), m = H.shape, len(K)
    K[:, np.arange(n), np.arange(n)] += delta[:, None]
    L = cholesky(K)
    Fw = solve_lower(L, np.broadcast_to(np.column_stack([H, y]), (m, n, q + 1)))
    Q1, R = np.linalg.qr(Fw[:, :, :q])
    residual = project_out(Q1, Fw[:, :, q:])
    terms = np.zeros((m, 4))
    terms[:, 0] = 2.0 * np.log(diagonal(L)).sum(axis=1)
    terms[:, 1] = 2.0 * np.log(np.abs(diagonal(R))).sum(axis=1)
    terms[:, 2] = (residual**2).sum(axis=(1, 2))
    return terms, L, Q1, residual


def _knows_minus_one(kernel: Kernel) -> bool:
    """Whether the kernel has K - 1 with digits of its own, not by subtraction."""
    return type(kernel).correlation_minus_one is not Kernel.correlation_minus_one


def _residual_in_contrasts(
    X: FloatArray,
    H: FloatArray,
    y: FloatArray,
    kernel: Kernel,
    phi: FloatArray,
    delta: FloatArray,
) -> FloatArray:
    r"""S2 from contrasts that do not see the constant; NaN where a point fails.

    With an orthonormal basis N of the complement of H, :math:`S^2 = y^T N (N^T K N)^{-1} N^T y`
    and, as :math:`N^T 1 = 0`, :math:`N^T K N = N^T (K_0 - 1 1^T) N + \delta I`. Where ranges are
    long the entries of K0 are near 1 and their rounding is all that tells them apart: a condition
    number of 1e13 leaves S2 four digits or fewer, and which ones depends on the processor.
    """
    q = H.shape[1]
    N = np.linalg.qr(H, mode="complete")[0][:, q:]
    C = N.T @ kernel.correlation_minus_one(X, X, phi) @ N
    C = 0.5 * (C + C.swapaxes(1, 2))
    C[:, np.arange(len(H) - q), np.arange(len(H) - q)] += delta[:, None]
    Lc = cholesky(C)
    w = solve_lower(Lc, np.broadcast_to((N.T @ y)[:, None], (len(C), len(H) - q, 1)))
    S2: FloatArray = (w**2).sum(axis=(1, 2))
    return S2


def _whitening(L: FloatArray, Q1: FloatArray) -> FloatArray:
    """B = P L^-1."""
    return project_out(Q1, solve_lower(L, np.broadcast_to(np.eye(L.shape[1]), L.shape)))


def _whitened(B: FloatArray, dK: FloatArray) -> FloatArray:
    """M_i = B dK_i B' with B = P L^-1, for ``dK`` of shape (m, r, n, n)."""
    M: FloatArray = B[:, None] @ dK @ B.swapaxes(1, 2)[:, None]
    return M


def _nugget_row(
    X: FloatArray,
    kernel: Kernel,
    phi: FloatArray,
    delta: FloatArray,
    B: FloatArray,
    constant_in_span: bool,
) -> FloatArray:
    """Row of log delta, up to a multiple of the variance's row: M of delta I or of -k(X, X).

    The two differ by P, the variance's row, so the determinant is the same; the smaller of them
    has the digits. k(X, X) - 1 replaces k(X, X) where P removes constants.
    """
    if constant_in_span:
        kernel_part = kernel.correlation_minus_one(X, X, phi)
    else:
        kernel_part = kernel.correlation(X, X, phi)
    from_nugget = delta[:, None, None] * (B @ B.swapaxes(1, 2))
    from_kernel = -_whitened(B, kernel_part[:, None])[:, 0]
    smaller = (from_nugget**2).sum(axis=(1, 2)) <= (from_kernel**2).sum(axis=(1, 2))
    row: FloatArray = np.where(smaller[:, None, None], from_nugget, from_kernel)
    return row


def _log_det_information(M: FloatArray, Q1: FloatArray) -> FloatArray:
    """log|I| of the M_i, shape (m, r, n, n).

    The variance's row is eliminated by subtracting from each M_i its part along P. The rest is
    scaled, as it spans many orders of magnitude, and goes through a QR factorisation: its Gram
    matrix would square the condition number, and where a row nearly depends on the others (a
    large nugget, long ranges) lose the digits that are left.
    """
    m, r, n, _ = M.shape
    freedom = n - Q1.shape[2]
    P = np.eye(n) - Q1 @ Q1.swapaxes(1, 2)
    mean = np.trace(M, axis1=2, axis2=3) / freedom
    centred = (M - mean[:, :, None, None] * P[:, None]).reshape(m, r, n * n)
    scale = np.sqrt((centred**2).sum(axis=2))
    R = np.linalg.qr((centred / scale[:, :, None]).swapaxes(1, 2))[1]
    log_det: FloatArray = np.log(freedom) + 2.0 * (
        np.log(np.abs(diagonal(R))).sum(axis=1) + np.log(scale).sum(axis=1)
    )
    return log_det


def _spans_constant(H: FloatArray) -> bool:
    """Whether a constant is in the span of the columns of H."""
    if H.shape[1] == 0:
        return False
    ones = np.ones(len(H))
    residual = ones - H @ np.linalg.lstsq(H, ones, rcond=None)[0]
    return bool(np.abs(residual).max() < 1e-12)
