"""The compiled hot loop of the posterior: determinants, residual and information per point.

For a point (phi, delta), with K = k(X, X | phi) + delta I = L L', F = L^-1 H = Q1 R and
P = I - Q1 Q1' (the paper's Q is L^-T P L^-1):

    log|K|           = 2 sum log L_ii
    log|H'K^-1 H|    = 2 sum log|R_ii|
    S2 = y'Qy        = |P L^-1 y|^2
    I                = [[n - q, tr M_i], [tr M_i, <M_i, M_j>]],  M_i = P L^-1 (dK/d log phi_i) L^-T P

The last line is Paulo's information matrix with W_i = dK_i Q, since tr W_i = tr M_i and
tr W_i W_j = <M_i, M_j>; the symmetric form costs half as much and loses fewer digits.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from paims._parallel import for_chunks

SQUARED_EXPONENTIAL, MATERN_32, MATERN_52, POWER_EXPONENTIAL = range(4)
_FAR = 1e4  # beyond this scaled distance every kernel is exactly 0 in double precision


@njit(cache=True, nogil=True)
def _correlation(X, code, power, phi, i, j, slopes):  # type: ignore[no-untyped-def]
    """K0_ij; ``slopes`` receives d log K0_ij / d log phi_k."""
    exponent = 0.0
    factor = 1.0
    for k in range(X.shape[1]):
        d = abs(X[i, k] - X[j, k])
        if code == SQUARED_EXPONENTIAL:
            t = min(0.5 * d * d / phi[k], _FAR)
            exponent -= t
            slopes[k] = t
        elif code == MATERN_32:
            t = min(math.sqrt(3.0) * (d / phi[k]), _FAR)
            exponent -= t
            factor *= 1.0 + t
            slopes[k] = t * t / (1.0 + t)
        elif code == MATERN_52:
            t = min(math.sqrt(5.0) * (d / phi[k]), _FAR)
            exponent -= t
            factor *= 1.0 + t + t * t / 3.0
            slopes[k] = t * t * (1.0 + t) / (3.0 + 3.0 * t + t * t)
        else:
            t = min((d / phi[k]) ** power, _FAR)
            exponent -= t
            slopes[k] = power * t
    decay = math.exp(exponent)
    return factor * decay if decay > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _factorise(K, L_inv):  # type: ignore[no-untyped-def]
    """Overwrite the lower triangle of K by L, fill ``L_inv``; log|K|, NaN when it fails."""
    n = K.shape[0]
    log_det = 0.0
    for j in range(n):
        for i in range(j, n):
            s = K[i, j]
            for k in range(j):
                s -= K[i, k] * K[j, k]
            K[i, j] = s
        if not (K[j, j] > 0.0 and K[j, j] < np.inf):
            return np.nan
        pivot = math.sqrt(K[j, j])
        log_det += 2.0 * math.log(pivot)
        for i in range(j, n):
            K[i, j] /= pivot
    for i in range(n):
        for j in range(i + 1):
            s = 1.0 if i == j else 0.0
            for k in range(j, i):
                s -= K[i, k] * L_inv[k, j]
            L_inv[i, j] = s / K[i, i]
    return log_det


@njit(cache=True, nogil=True)
def _project(FT, w, QT):  # type: ignore[no-untyped-def]
    """Householder QR of F = FT'. Rows of ``QT`` receive Q1'; log|R'R| and |P w|^2."""
    q, n = FT.shape
    log_det = 0.0
    scale = np.empty(q)
    for j in range(q):
        norm2 = 0.0
        for k in range(n):
            norm2 += FT[j, k] * FT[j, k]
        tail2 = 0.0
        for k in range(j, n):
            tail2 += FT[j, k] * FT[j, k]
        if not (tail2 > (n * 2.3e-16) ** 2 * norm2 and norm2 < np.inf):
            return np.nan, np.nan
        log_det += math.log(tail2)
        head = FT[j, j]
        FT[j, j] = head + math.copysign(math.sqrt(tail2), head)
        scale[j] = 2.0 / (tail2 - head * head + FT[j, j] * FT[j, j])
        for i in range(j + 1, q + 1):
            row = w if i == q else FT[i]
            s = 0.0
            for k in range(j, n):
                s += FT[j, k] * row[k]
            s *= scale[j]
            for k in range(j, n):
                row[k] -= s * FT[j, k]
    S2 = 0.0
    for k in range(q, n):
        S2 += w[k] * w[k]
    for i in range(q):
        for k in range(n):
            QT[i, k] = 1.0 if i == k else 0.0
        for j in range(q - 1, -1, -1):
            s = 0.0
            for k in range(j, n):
                s += FT[j, k] * QT[i, k]
            s *= scale[j]
            for k in range(j, n):
                QT[i, k] -= s * FT[j, k]
    return log_det, S2


@njit(cache=True, nogil=True)
def _whiten(dK, L_inv, QT, V, M):  # type: ignore[no-untyped-def]
    """M = P (L^-1 dK L^-T - c I) P with c its mean eigenvalue; the value is c."""
    n = dK.shape[0]
    q = QT.shape[0]
    for i in range(n):
        for j in range(n):
            s = 0.0
            for k in range(i + 1):
                s += L_inv[i, k] * dK[k, j]
            V[i, j] = s
    trace = 0.0
    for i in range(n):
        for j in range(i + 1):
            s = 0.0
            for k in range(j + 1):
                s += V[i, k] * L_inv[j, k]
            M[i, j] = s
            M[j, i] = s
        trace += M[i, i]
    Y = np.zeros((q, n))
    for a in range(q):
        for i in range(n):
            for k in range(n):
                Y[a, i] += M[i, k] * QT[a, k]
            trace -= Y[a, i] * QT[a, i]
    c = trace / (n - q)
    for i in range(n):
        M[i, i] -= c
    for a in range(q):
        for i in range(n):
            Y[a, i] -= c * QT[a, i]
    inner = np.zeros((q, q))
    for a in range(q):
        for b in range(q):
            for i in range(n):
                inner[a, b] += Y[a, i] * QT[b, i]
    for a in range(q):
        for b in range(q):
            for i in range(n):
                Y[a, i] -= 0.5 * inner[a, b] * QT[b, i]
    for i in range(n):
        for j in range(n):
            for a in range(q):
                M[i, j] -= Y[a, i] * QT[a, j] + QT[a, i] * Y[a, j]
    return c


@njit(cache=True, nogil=True)
def _log_det_information(M, dof):  # type: ignore[no-untyped-def]
    """log|I| from the centred M_i: log(n-q) + log|<M_i, M_j> - tr M_i tr M_j/(n-q)|."""
    r, n, _ = M.shape
    G = np.zeros((r, r))
    trace = np.zeros(r)
    for a in range(r):
        for i in range(n):
            trace[a] += M[a, i, i]
    for a in range(r):
        for b in range(a + 1):
            for i in range(n):
                for j in range(n):
                    G[a, b] += M[a, i, j] * M[b, i, j]
            G[a, b] -= trace[a] * trace[b] / dof
    log_det = math.log(dof)
    scale = np.empty(r)
    for a in range(r):
        if not (G[a, a] > 0.0 and G[a, a] < np.inf):
            return np.nan
        scale[a] = math.sqrt(G[a, a])
        log_det += math.log(G[a, a])
    for a in range(r):
        for b in range(a + 1):
            s = G[a, b] / (scale[a] * scale[b])
            for k in range(b):
                s -= G[a, k] * G[b, k]
            if a == b:
                if not s > 0.0:
                    return np.nan
                log_det += math.log(s)
                G[a, a] = math.sqrt(s)
            else:
                G[a, b] = s / G[b, b]
    return log_det


@njit(cache=True, nogil=True)
def _run(X, H, y, code, power, phi, delta, information, start, stop, out):  # type: ignore[no-untyped-def]
    n, p = X.shape
    q = H.shape[1]
    rows = p + (information == 2) if information else 0
    K = np.empty((n, n))
    L = np.empty((n, n))
    L_inv = np.zeros((n, n))
    V = np.empty((n, n))
    FT = np.empty((q, n))
    QT = np.empty((q, n))
    w = np.empty(n)
    slopes = np.empty(p)
    M = np.empty((rows, n, n))
    for m in range(start, stop):
        out[m] = np.nan
        good = delta[m] >= 0.0 and delta[m] < np.inf
        for k in range(p):
            good = good and phi[m, k] > 0.0 and phi[m, k] < np.inf
        if not good:
            continue
        for i in range(n):
            for j in range(i + 1):
                K[i, j] = _correlation(X, code, power, phi[m], i, j, slopes)
                K[j, i] = K[i, j]
                L[i, j] = K[i, j] + (delta[m] if i == j else 0.0)
                if rows:
                    for k in range(p):
                        M[k, i, j] = K[i, j] * slopes[k]
                        M[k, j, i] = K[i, j] * slopes[k]
        log_det_K = _factorise(L, L_inv)
        if not abs(log_det_K) < np.inf:
            continue
        for i in range(n):
            w[i] = 0.0
            FT[:, i] = 0.0
            for k in range(i + 1):
                w[i] += L_inv[i, k] * y[k]
                for a in range(q):
                    FT[a, i] += L_inv[i, k] * H[k, a]
        log_det_HKH, S2 = _project(FT, w, QT)
        if not (abs(log_det_HKH) < np.inf and abs(S2) < np.inf):
            continue
        log_det_I = 0.0
        if rows:
            if information == 2:
                M[p] = 0.0
                for i in range(n):
                    M[p, i, i] = delta[m]
            for k in range(rows):
                K[:] = M[k]
                _whiten(K, L_inv, QT, V, M[k])
            log_det_I = _log_det_information(M, n - q)
            if not abs(log_det_I) < np.inf:
                continue
        out[m, 0] = log_det_K
        out[m, 1] = log_det_HKH
        out[m, 2] = S2
        out[m, 3] = log_det_I


def core_terms(
    X: NDArray[np.float64],
    H: NDArray[np.float64],
    y: NDArray[np.float64],
    kernel_code: int,
    power: float,
    phi: NDArray[np.float64],
    delta: NDArray[np.float64],
    information: int,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    """Determinants, residual and information of the posterior at a batch of points.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Inputs of the training runs.
    H : ndarray of shape (n, q)
        Basis functions at the training runs; q may be 0.
    y : ndarray of shape (n,)
        Outputs of the training runs.
    kernel_code : int
        0 squared exponential, 1 Matern 3/2, 2 Matern 5/2, 3 power exponential.
    power : float
        Exponent of the power exponential, in (0, 2]; ignored by the others.
    phi : ndarray of shape (m, p)
        Correlation lengths, one row per point.
    delta : ndarray of shape (m,)
        Nuggets.
    information : int
        0: log|I| is not wanted; 1: rows sigma2, log phi_1..p; 2: also log delta.
    n_jobs : int, optional
        Number of threads; None or -1 for every available core. The result does not depend on it.

    Returns
    -------
    ndarray of shape (m, 4)
        log|K|, log|H'K^-1 H| (0 for q = 0), S2 = y'Qy, log|I| (0 when not wanted). A point that
        fails has NaN in all four; it does not touch the others.
    """
    arrays = [np.ascontiguousarray(a, dtype=np.float64) for a in (X, H, y, phi, delta)]
    out = np.empty((arrays[3].shape[0], 4))

    def work(start: int, stop: int) -> None:
        _run(
            arrays[0],
            arrays[1],
            arrays[2],
            int(kernel_code),
            float(power),
            arrays[3],
            arrays[4],
            int(information),
            start,
            stop,
            out,
        )

    for_chunks(work, out.shape[0], 8, n_jobs)
    return out
