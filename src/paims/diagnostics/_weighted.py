"""Quantiles of weighted draws."""

from __future__ import annotations

import numpy as np

from paims.gp._arrays import FloatArray


def weighted_quantile(values: FloatArray, weights: FloatArray, levels: FloatArray) -> FloatArray:
    """Weighted quantiles over the first axis.

    Parameters
    ----------
    values : (m, ...) ndarray
    weights : (m,) ndarray
        With sum 1.
    levels : (k,) ndarray

    Returns
    -------
    (k, ...) ndarray
    """
    flat = values.reshape(len(values), -1)
    order = np.argsort(flat, axis=0)
    ordered = np.take_along_axis(flat, order, axis=0)
    share = weights[order]
    middle = np.cumsum(share, axis=0) - 0.5 * share
    result = np.empty((len(levels), flat.shape[1]))
    for j in range(flat.shape[1]):
        result[:, j] = np.interp(levels, middle[:, j], ordered[:, j])
    return result.reshape(len(levels), *values.shape[1:])
