"""The annealing path (paper, section 3.2), and what is done with the weights along it."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from paims._arrays import Array
from paims.sampling._target import Points


def log_tempered(points: Points, beta: float) -> Array:
    """Log density of the path at inverse temperature ``beta``.

    (1 - beta) log m + beta log pi up to beta = 1, beta log pi beyond. The paper tempers pi alone,
    which is the same when the reference m is flat.
    """
    dead = np.isneginf(points.log_pi)
    if beta < 1.0:  # a lead may be zero where the target is not
        dead = dead | np.isneginf(points.log_m)
    safe_pi = np.where(dead, 0.0, points.log_pi)
    safe_m = np.where(dead | np.isneginf(points.log_m), 0.0, points.log_m)
    log_p = beta * safe_pi + (max(0.0, 1.0 - beta) * safe_m)
    return np.where(dead, -np.inf, log_p)


def log_incremental_weights(points: Points, beta_old: float, beta_new: float) -> Array:
    """Log of p_new / p_old at points of p_old; -inf where the target is zero."""
    dead = np.isneginf(points.log_pi) | (np.isneginf(points.log_m) & (beta_old < 1.0))
    alive = points[~dead]
    log_w = np.full(len(points), -np.inf)
    log_w[~dead] = log_tempered(alive, beta_new) - log_tempered(alive, beta_old)
    return log_w


def next_beta(points: Points, beta_old: float, share: float, ceiling: float) -> float:
    """Solve for the inverse temperature whose weights have the wanted effective size.

    The effective size is ``share`` of the points with non-zero density (paper, the equation for
    tau_k, with gamma = share). A step that would pass ``ceiling`` stops exactly there.
    """
    if beta_old == ceiling:
        return beta_old
    alive = points[np.isfinite(points.log_pi) & np.isfinite(points.log_m)]
    wanted = share * len(alive)

    def surplus(log_step: float) -> float:
        log_w = log_incremental_weights(alive, beta_old, beta_old + np.exp(log_step))
        return effective_size(log_w) - wanted

    if np.isfinite(ceiling):
        log_high = np.log(ceiling - beta_old)
    else:
        spread = float(np.std(alive.log_pi))
        log_high = np.log(1e6 / spread) if spread > 0 else 0.0
    if surplus(log_high) >= 0:
        return float(ceiling) if np.isfinite(ceiling) else beta_old + float(np.exp(log_high))
    log_low = log_high
    while surplus(log_low) < 0:
        log_low -= 2.0
    log_step = brentq(surplus, log_low, min(log_low + 2.0, log_high), xtol=1e-6)
    return beta_old + float(np.exp(log_step))


def effective_size(log_w: Array) -> float:
    """Effective sample size (sum w)^2 / sum w^2 of log weights."""
    peak = np.max(log_w, initial=-np.inf)
    if np.isneginf(peak):
        return 0.0
    w = np.exp(log_w - peak)
    return float(np.sum(w) ** 2 / np.sum(w**2))


def normalised(log_w: Array) -> Array:
    """Weights that sum to 1 from their logs."""
    w = np.exp(log_w - np.max(log_w))
    return np.asarray(w / w.sum())


def log_sum_exp(x: Array) -> float:
    """Log of the sum of exp(x); -inf for an empty or all -inf ``x``.

    SciPy's does the same at ten times the cost for small arrays.
    """
    peak = float(np.max(x, initial=-np.inf))
    if np.isneginf(peak):
        return peak
    return peak + float(np.log(np.sum(np.exp(x - peak))))


def log_mean_exp(x: Array) -> float:
    """Log of the mean of exp(x)."""
    return log_sum_exp(x) - float(np.log(len(x)))


def log_sum_exp_rows(x: Array) -> Array:
    """Log of the sum of exp over the columns of each row; -inf for a row of -inf."""
    peak = np.max(x, axis=1)
    shift = np.where(np.isneginf(peak), 0.0, peak)
    with np.errstate(divide="ignore"):
        return np.asarray(shift + np.log(np.sum(np.exp(x - shift[:, None]), axis=1)))


def systematic(weight: Array, n: int, rng: np.random.Generator) -> Array:
    """Systematic resampling: ``n`` indices, each point within one of its expected number."""
    edges = np.cumsum(weight)
    ticks = (rng.random() + np.arange(n)) / n * edges[-1]
    return np.asarray(np.minimum(np.searchsorted(edges, ticks, side="right"), len(weight) - 1))
