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
from pathlib import Path

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from paims._arrays import FloatArray
from paims._parallel import for_chunks
from paims.gp._compiled import _information, _kernels, _lanes, _simd, _tiles
from paims.gp._compiled._kernels import pair_terms, point_terms
from paims.gp._compiled._lanes import layout, make_run
from paims.gp._compiled._simd import LANES
from paims.gp._kernels import ExponentialKernel

_PARTS = (_information, _kernels, _lanes, _simd, _tiles)


def _version() -> int:
    """Number that changes with the source of the compiled code."""
    try:
        sources = [Path(str(part.__file__)).read_bytes() for part in _PARTS]
    except OSError:  # no sources, so they do not change
        return 0
    return zlib.crc32(b"".join(sources))


_run = make_run(_version())

# order, A, z, log_det and shift, see `contrasts`; and what the pairs of runs bring.
Contrasts = tuple[NDArray[np.intp], FloatArray, FloatArray, float, float]
Prepared = tuple[Contrasts, FloatArray]


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
    """What does not depend on the points: contrasts and pairs of runs; None as `contrasts`.

    For a single point of a few runs it costs several times what the point itself does.
    """
    found = contrasts(H, y)
    return None if found is None else (found, pair_terms(X[found[0]], kernel.form))


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
    X, H, y, phi, delta = (
        np.ascontiguousarray(a, dtype=np.float64) for a in (X, H, y, phi, delta)
    )
    n, p = X.shape
    q, m = H.shape[1], phi.shape[0]
    if H.shape[0] != n or y.shape != (n,) or phi.shape != (m, p) or delta.shape != (m,):
        raise ValueError(
            "shapes must be X (n, p), H (n, q), y (n,), phi (m, p) and delta (m,); got "
            f"{X.shape}, {H.shape}, {y.shape}, {phi.shape} and {delta.shape}."
        )
    if q >= n:
        raise ValueError(f"{q} basis functions need more than {q} runs; got {n}. Take fewer.")
    if information not in range(3):
        raise ValueError(f"information must be 0, 1 or 2; got {information!r}.")
    out = np.full((m, 4), np.nan)
    form = kernel.form
    prepared = prepared or prepare(X, H, y, kernel)
    if prepared is None:
        return out
    (_, A, z, log_det, shift), terms = prepared
    valid = (np.isfinite(phi) & (phi > 0.0)).all(axis=1) & np.isfinite(delta) & (delta >= 0.0)
    points = point_terms(np.where(valid[:, None], phi, 1.0), form)
    nuggets = np.where(valid, delta, 1.0)
    n_rows = p + information - 1 if information else 0
    where = layout(n, p, q, n_rows)
    unused: deque[FloatArray] = deque()

    def work(start: int, stop: int) -> None:
        try:
            workspace = unused.pop()
        except IndexError:
            workspace = np.zeros(where[-1])
        _run(
            terms, A, z, log_det, shift, float(form.power), form.polynomial, form.slope, points,
            nuggets, int(information), start, stop, where, workspace, out,
        )  # fmt: skip
        unused.append(workspace)

    # About a millisecond of work, so that handing it to a thread costs little; whole vectors.
    fours = min(max(4_000_000 // ((n_rows + 1) * n**3), 1), 32)
    for_chunks(work, m, LANES * fours, n_jobs)
    out[~valid] = np.nan
    return out
