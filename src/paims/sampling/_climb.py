"""From a point of a density to the top of its mode, and the mode's shape there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from paims._arrays import Array

Evaluate = Callable[[Array], Array]

_DIFFERENCE = 1e-5  # step of the gradient's differences, in units of the reference's scale
_PROGRESS = 0.1  # log density that a climb has to gain to be doubted again
_GAIN = 1e-3  # a climb ends where a step promises less log density than this
_CURVATURE = 0.3  # step of the second differences, in standard deviations


def climb(
    evaluate: Evaluate, start: Array, log_start: Array, scale: Array, max_steps: int = 60
) -> tuple[Array, Array, Array]:
    """Climb from each start by quasi-Newton (BFGS) steps; all climbs are evaluated together.

    Parameters
    ----------
    evaluate : callable
        Log density of a batch.
    start : ndarray, shape (n, n_params)
    log_start : ndarray, shape (n,)
        Log density there.
    scale : ndarray, shape (n_params,)
        Typical length along each coordinate.
    max_steps : int

    Returns
    -------
    top : ndarray, shape (n, n_params)
    log_top : ndarray, shape (n,)
    inverse : ndarray, shape (n, n_params, n_params)
        Approximate inverse of minus the Hessian.
    """
    n, n_params = start.shape
    identity = np.eye(n_params)

    def height(v: Array) -> Array:
        return evaluate(v * scale)

    x, f = start / scale, log_start.copy()
    inverse, untried = np.tile(identity, (n, 1, 1)), np.ones(n, dtype=bool)
    reach = np.full(n, 0.5)  # longest step
    checked, believed = np.full(n, -np.inf), inverse.copy()  # height and inverse when last doubted
    active = np.flatnonzero(np.isfinite(f))
    slope = np.zeros((n, n_params))
    slope[active] = _gradient(height, x[active], f[active])
    for _ in range(max_steps):
        direction = np.einsum("nij,nj->ni", inverse[active], slope[active])
        gain = np.sum(direction * slope[active], axis=1)
        # In a curved valley the inverse of a step ago may be wrong: nothing to gain by it has to
        # be so by the slope alone, too.
        doubted = (gain <= _GAIN) & (f[active] > checked[active] + _PROGRESS)
        rows = active[doubted]
        checked[rows], believed[rows] = f[rows], inverse[rows]
        inverse[rows], untried[rows] = identity, True
        direction[doubted], gain[doubted] = slope[rows], np.sum(slope[rows] ** 2, axis=1)
        active, direction, gain = (part[gain > _GAIN] for part in (active, direction, gain))
        if not len(active):
            break
        longest = np.where(untried[active], 0.1, reach[active])
        length = np.linalg.norm(direction, axis=1)
        whole = np.minimum(1.0, longest / length)
        share, new_x, new_f = _line(height, x[active], f[active], direction, gain, whole)
        moved = share > 0
        reach[active] = np.where(
            share >= whole, np.minimum(2 * reach[active], 10.0), np.maximum(share * length, 1e-6)
        )
        active, step = active[moved], (new_x - x[active])[moved]
        if not len(active):
            break
        x[active], f[active] = new_x[moved], new_f[moved]
        before = slope[active].copy()
        slope[active] = _gradient(height, x[active], f[active])
        change = before - slope[active]
        product = np.sum(step * change, axis=1)
        size = np.linalg.norm(step, axis=1) * np.linalg.norm(change, axis=1)
        good = product > 1e-10 * size
        rows, step, change, product = active[good], step[good], change[good], product[good]
        first = untried[rows]
        ratio = product[first] / np.sum(change[first] ** 2, axis=1)
        inverse[rows[first]] = ratio[:, None, None] * identity
        untried[rows] = False
        inverse[rows] = _bfgs(inverse[rows], step, change, product)
    inverse = np.where((f > checked + _PROGRESS)[:, None, None], inverse, believed)
    return x * scale, f, inverse * np.outer(scale, scale)


def _bfgs(inverse: Array, step: Array, change: Array, product: Array) -> Array:
    """BFGS update of inverse Hessians (Nocedal & Wright, eq. 6.17)."""
    rho = 1.0 / product
    left = np.eye(step.shape[1]) - rho[:, None, None] * np.einsum("ni,nj->nij", step, change)
    outer = rho[:, None, None] * np.einsum("ni,nj->nij", step, step)
    return np.asarray(left @ inverse @ left.transpose(0, 2, 1) + outer)


def _gradient(height: Evaluate, x: Array, f: Array) -> Array:
    """Gradient by forward differences, backward where the density ends; 0 where both fail."""
    n, n_params = x.shape
    steps = _DIFFERENCE * np.eye(n_params)
    forward = height((x[:, None] + steps).reshape(-1, n_params)).reshape(n, n_params)
    out = (forward - f[:, None]) / _DIFFERENCE
    i, j = np.nonzero(~np.isfinite(out))
    if len(i):
        out[i, j] = (f[i] - height(x[i] - steps[j])) / _DIFFERENCE
        out[~np.isfinite(out)] = 0.0
    return np.asarray(out)


def _line(
    height: Evaluate, x: Array, f: Array, direction: Array, gain: Array, whole: Array
) -> tuple[Array, Array, Array]:
    """Backtracking line search: the share of each direction taken (0 for none), and where to."""
    share, out_x, out_f = np.zeros(len(x)), x.copy(), f.copy()
    trial = whole.copy()
    left = np.arange(len(x))
    for _ in range(12):
        new = x[left] + trial[left, None] * direction[left]
        value = height(new)
        enough = value >= f[left] + 1e-4 * trial[left] * gain[left]
        took = left[enough]
        share[took], out_x[took], out_f[took] = trial[took], new[enough], value[enough]
        left = left[~enough]
        if not len(left):
            break
        trial[left] *= 0.3
    return share, out_x, out_f


def curvature(evaluate: Evaluate, top: Array, log_top: float, guess: Array) -> Array | None:
    """Covariance of a mode from second differences at its top.

    The differences are taken along the axes of a guess, then once more along those of the result
    if the two differ much.

    Returns
    -------
    ndarray, shape (n_params, n_params), or None
        None if the density does not fall in every direction, or ends nearby.
    """
    n_params = len(top)
    values, vectors = np.linalg.eigh(0.5 * (guess + guess.T))
    axes = vectors * np.sqrt(np.maximum(values, 1e-10 * np.max(values)))
    i, j = np.triu_indices(n_params, 1)
    diagonal = np.arange(n_params)
    for _ in range(2):
        steps = _CURVATURE * axes.T
        fall = log_top - evaluate(
            np.concatenate([top + steps, top - steps, top + steps[i] + steps[j]])
        )
        if not np.all(np.isfinite(fall)):
            return None
        plus, minus, both = np.split(fall, [n_params, 2 * n_params])
        hessian = np.empty((n_params, n_params))
        hessian[diagonal, diagonal] = plus + minus
        hessian[i, j] = hessian[j, i] = both - plus[i] - plus[j]
        spread, turn = np.linalg.eigh(hessian / _CURVATURE**2)
        if not np.all(spread > 0):
            return None
        axes = axes @ (turn / np.sqrt(spread))
        if np.max(np.abs(np.log(spread))) < 1.0:
            break
    return np.asarray(axes @ axes.T)
