"""Quantiles of weighted draws."""

from __future__ import annotations

import numpy as np

from paims._arrays import FloatArray


def weighted_quantile(values: FloatArray, weights: FloatArray, levels: FloatArray) -> FloatArray:
    """Weighted quantiles over the first axis: the least value with at least that weight below.

    Values are not interpolated, so that draws with next to no weight have no influence.

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
    share = np.cumsum(weights[order], axis=0)
    # A weight that is missing by round-off only must not move the quantile by a draw.
    wanted = np.asarray(levels) - 1e-12
    result = np.empty((len(levels), flat.shape[1]))
    for j in range(flat.shape[1]):
        place = np.searchsorted(share[:, j], wanted)
        result[:, j] = ordered[np.minimum(place, len(flat) - 1), j]
    return result.reshape(len(levels), *values.shape[1:])
