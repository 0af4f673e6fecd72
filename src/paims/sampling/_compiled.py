"""The sampler's hot loops: mixture sums over markers and the EM steps of the clustering.

Single-threaded and GIL-free; callers split the batch into fixed chunks (``paims._parallel``), so
results do not depend on the number of threads. The plain NumPy twins are in the
tests, ``tests/sampling/twin.py``.
"""

from __future__ import annotations

import math

import numpy as np

from paims._jit import njit

# Reassociation lets LLVM vectorise the reductions; infinities and NaN keep their meaning.
_SUMS = {"contract", "reassoc", "nsz"}
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer in the low bits
_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10


@njit("float64(float64)", nogil=True, cache=True, fastmath={"contract"})
def exp_nonpositive(x):
    """Return exp(x) for x <= 0 to 2 ulp, without branches so that loops over it vectorise.

    Numba from PyPI has no vector math library. Below -708 the result is about 1e-308, not 0.
    """
    x = max(x, -708.0)
    shifted = x * 1.4426950408889634 + _ROUND
    k = shifted - _ROUND
    r = x - k * _LN2_HIGH
    r = r - k * _LN2_LOW
    p = 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    bits = (np.float64(shifted).view(np.int64) << np.int64(52)) + np.int64(1023 << 52)
    return p * np.int64(bits).view(np.float64)


@njit("float64(float64[::1])", nogil=True, cache=True, fastmath=_SUMS)
def _log_sum_exp(e):
    peak = -np.inf
    for j in range(e.shape[0]):
        peak = max(peak, e[j])
    if peak == -np.inf:
        return -np.inf
    total = 0.0
    for j in range(e.shape[0]):
        total += exp_nonpositive(e[j] - peak)
    return peak + math.log(total)


@njit(
    "void(float64[::1], float64[::1], float64[:,::1], int64, int64)",
    nogil=True,
    cache=True,
    fastmath=_SUMS,
)
def _add_products(total, v, rows, first, last):
    """Add v . rows[:, j] to total[j], four rows at a time: fewer passes over ``total``."""
    n = v.shape[0]
    a = 0
    while a + 4 <= n:
        v0, v1, v2, v3 = v[a], v[a + 1], v[a + 2], v[a + 3]
        for j in range(first, last):
            total[j] += (v0 * rows[a, j] + v1 * rows[a + 1, j]) + (
                v2 * rows[a + 2, j] + v3 * rows[a + 3, j]
            )
        a += 4
    if a + 2 <= n:
        v0, v1 = v[a], v[a + 1]
        for j in range(first, last):
            total[j] += v0 * rows[a, j] + v1 * rows[a + 1, j]
        a += 2
    if a < n:
        v0 = v[a]
        for j in range(first, last):
            total[j] += v0 * rows[a, j]


@njit(
    "void(float64[:,::1], float64[::1], float64[:,::1], float64[:,:,::1], float64[:,::1],"
    " float64[::1], int64[::1], float64[::1], float64, float64[::1], float64[::1], int64, int64)",
    nogil=True,
    cache=True,
    fastmath=_SUMS,
)
def mixture_sums(
    x,
    log_p,
    mean,
    inv_chol,
    slope,
    base,
    offsets,
    log_p_marker,
    half_precision,
    out_plain,
    out_local,
    start,
    stop,
):
    """Fill ``[start, stop)`` of the log mixture densities without and with local acceptance.

    The exponent of marker j of cluster r at x is
    ``base[j] + slope[:, j] . v - half_precision |v|^2`` with v = L_r^-1 (x - mean_r); see
    ``_proposal.MarkerMixture``. An empty ``out_plain`` or ``out_local`` is not computed.
    """
    n_params = x.shape[1]
    n_markers = base.shape[0]
    exponent = np.empty(n_markers)
    limited = np.empty(n_markers)
    v = np.empty(n_params)
    for i in range(start, stop):
        for r in range(mean.shape[0]):
            first, last = offsets[r], offsets[r + 1]
            norm2 = 0.0
            for a in range(n_params):
                s = 0.0
                for b in range(a + 1):
                    s += inv_chol[r, a, b] * (x[i, b] - mean[r, b])
                v[a] = s
                norm2 += s * s
            constant = -half_precision * norm2
            for j in range(first, last):
                exponent[j] = base[j] + constant
            _add_products(exponent, v, slope, first, last)
        if out_plain.shape[0] > 0:
            out_plain[i] = _log_sum_exp(exponent)
        if out_local.shape[0] > 0:
            for j in range(n_markers):
                limited[j] = exponent[j] + min(0.0, log_p[i] - log_p_marker[j])
            out_local[i] = _log_sum_exp(limited)


@njit(
    "float64(float64[:,::1], float64[::1], float64[:,::1], float64[::1], float64[:,::1],"
    " float64[:,:,::1])",
    nogil=True,
    cache=True,
)
def expectation(x, w, log_resp, log_share, mean, inv_chol):
    """E-step: fill the log responsibilities; return the weighted mean log likelihood."""
    n, n_params = x.shape
    n_clusters = mean.shape[0]
    total = 0.0
    for r in range(n_clusters):
        log_det = 0.0
        for a in range(n_params):
            log_det += math.log(inv_chol[r, a, a])
        constant = log_share[r] + log_det - 0.5 * n_params * math.log(2.0 * math.pi)
        for i in range(n):
            norm2 = 0.0
            for a in range(n_params):
                s = 0.0
                for b in range(a + 1):
                    s += inv_chol[r, a, b] * (x[i, b] - mean[r, b])
                norm2 += s * s
            log_resp[i, r] = constant - 0.5 * norm2
    for i in range(n):
        peak = -np.inf
        for r in range(n_clusters):
            peak = max(peak, log_resp[i, r])
        s = 0.0
        for r in range(n_clusters):
            s += exp_nonpositive(log_resp[i, r] - peak)
        log_total = peak + math.log(s)
        total += w[i] * log_total
        for r in range(n_clusters):
            log_resp[i, r] -= log_total
    return total


@njit(
    "void(float64[:,::1], float64[::1], float64[:,::1], float64[::1], float64[:,::1],"
    " float64[:,:,::1])",
    nogil=True,
    cache=True,
)
def maximisation(x, w, log_resp, share, mean, cov):
    """M-step: fill the weighted share, mean and covariance of every cluster."""
    n, n_params = x.shape
    for r in range(mean.shape[0]):
        share[r] = 0.0
        mean[r] = 0.0
        cov[r] = 0.0
        for i in range(n):
            g = w[i] * exp_nonpositive(log_resp[i, r])
            share[r] += g
            for a in range(n_params):
                mean[r, a] += g * x[i, a]
        if share[r] <= 0.0:
            continue
        for a in range(n_params):
            mean[r, a] /= share[r]
        for i in range(n):
            g = w[i] * exp_nonpositive(log_resp[i, r]) / share[r]
            for a in range(n_params):
                da = g * (x[i, a] - mean[r, a])
                for b in range(a + 1):
                    cov[r, a, b] += da * (x[i, b] - mean[r, b])
        for a in range(n_params):
            for b in range(a):
                cov[r, b, a] = cov[r, a, b]


@njit("boolean(float64[:,::1], float64[::1], float64[:,::1])", nogil=True, cache=True)
def _inverse_cholesky(cov, floor, out):
    """Fill ``out`` with the inverse of the Cholesky factor of cov + diag(floor); False if none."""
    n = cov.shape[0]
    factor = np.zeros((n, n))
    for a in range(n):
        for b in range(a + 1):
            s = cov[a, b]
            if a == b:
                s += floor[a]
            for k in range(b):
                s -= factor[a, k] * factor[b, k]
            if a == b:
                if not s > 0.0:
                    return False
                factor[a, a] = math.sqrt(s)
            else:
                factor[a, b] = s / factor[b, b]
    out[:] = 0.0
    for b in range(n):
        out[b, b] = 1.0 / factor[b, b]
        for a in range(b + 1, n):
            s = 0.0
            for k in range(b, a):
                s -= factor[a, k] * out[k, b]
            out[a, b] = s / factor[a, a]
    return True


@njit(
    "float64(float64[:,::1], float64[::1], float64[:,::1], float64[::1], int64)",
    nogil=True,
    cache=True,
)
def expectation_maximisation(x, w, log_resp, floor, n_steps):
    """EM from responsibilities, in place; the mean log likelihood, -inf if a cluster dies."""
    n_clusters, n_params = log_resp.shape[1], x.shape[1]
    share = np.empty(n_clusters)
    mean = np.empty((n_clusters, n_params))
    cov = np.empty((n_clusters, n_params, n_params))
    inv_chol = np.empty((n_clusters, n_params, n_params))
    value = -np.inf
    for _ in range(n_steps):
        maximisation(x, w, log_resp, share, mean, cov)
        for r in range(n_clusters):
            if share[r] < 1e-8 or not _inverse_cholesky(cov[r], floor, inv_chol[r]):
                return -np.inf
        previous = value
        value = expectation(x, w, log_resp, np.log(share), mean, inv_chol)
        if value - previous < 1e-4:
            break
    return value
