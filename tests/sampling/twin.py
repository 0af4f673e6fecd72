"""Plain NumPy twins of the compiled loops, for the tests to compare them with."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from paims._arrays import Array


def mixture_sums(
    x: Array,
    log_p: Array,
    mean: Array,
    inv_chol: Array,
    slope: Array,
    base: Array,
    offsets: Array,
    log_p_marker: Array,
    half_precision: float,
) -> tuple[Array, Array]:
    """Log mixture densities without and with local acceptance; see ``_compiled``."""
    exponent = np.empty((len(x), len(base)))
    for r in range(len(mean)):
        members = slice(int(offsets[r]), int(offsets[r + 1]))
        v = (x - mean[r]) @ inv_chol[r].T
        exponent[:, members] = (
            base[members] + v @ slope[:, members] - half_precision * np.sum(v**2, axis=1)[:, None]
        )
    limited = exponent + np.minimum(0.0, log_p[:, None] - log_p_marker)
    with np.errstate(divide="ignore"):
        return (
            np.asarray(logsumexp(exponent, axis=1)),
            np.asarray(logsumexp(limited, axis=1)),
        )


def expectation(
    x: Array, w: Array, log_share: Array, mean: Array, inv_chol: Array
) -> tuple[float, Array]:
    """E-step: weighted mean log likelihood and log responsibilities."""
    columns = []
    for r in range(len(mean)):
        v = (x - mean[r]) @ inv_chol[r].T
        log_det = np.sum(np.log(np.diag(inv_chol[r])))
        constant = log_share[r] + log_det - 0.5 * x.shape[1] * np.log(2 * np.pi)
        columns.append(constant - 0.5 * np.sum(v**2, axis=1))
    log_joint = np.column_stack(columns)
    log_total = np.asarray(logsumexp(log_joint, axis=1))
    return float(w @ log_total), log_joint - log_total[:, None]


def maximisation(x: Array, w: Array, log_resp: Array) -> tuple[Array, Array, Array]:
    """M-step: share, mean and covariance of every cluster."""
    g = w[:, None] * np.exp(log_resp)
    share = g.sum(axis=0)
    mean = (g.T @ x) / share[:, None]
    cov = np.stack(
        [
            (x - mean[r]).T @ ((g[:, r] / share[r])[:, None] * (x - mean[r]))
            for r in range(len(share))
        ]
    )
    return share, mean, cov
