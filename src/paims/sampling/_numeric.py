"""Sums of exponentials. SciPy's logsumexp does the same at ten times the cost for small arrays."""

from __future__ import annotations

import numpy as np

from paims._arrays import Array


def log_sum_exp(x: Array) -> float:
    """Log of the sum of exp(x); -inf for an empty or all -inf ``x``."""
    peak = float(np.max(x, initial=-np.inf))
    if np.isneginf(peak):
        return peak
    return peak + float(np.log(np.sum(np.exp(x - peak))))


def log_sum_exp_rows(x: Array) -> Array:
    """Log of the sum of exp over the columns of each row; -inf for a row of -inf."""
    peak = np.max(x, axis=1)
    shift = np.where(np.isneginf(peak), 0.0, peak)
    with np.errstate(divide="ignore"):
        return np.asarray(shift + np.log(np.sum(np.exp(x - shift[:, None]), axis=1)))


def normalised(log_w: Array) -> Array:
    """Weights that sum to 1 from their logs."""
    w = np.exp(log_w - np.max(log_w))
    return np.asarray(w / w.sum())
