r"""The emulator's mean as a sum of products of functions of one input each.

.. math::
    f_s(x) = h(x)^T \hat\beta_s + \sum_i \alpha_{si} \prod_l r(|x_l - x_{il}|; \phi_{sl}),
    \qquad \alpha_s = K^{-1} (y - H \hat\beta_s),

and the monomials of a polynomial trend are such products too. Every integral of :math:`f_s` over
a box is therefore made of integrals over one input, done by Gauss-Legendre quadrature.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtrs

from paims._arrays import FloatArray
from paims.diagnostics._double_double import MAX_ROWS
from paims.diagnostics._prediction import as_weights
from paims.gp import Kernel, Posterior
from paims.gp._checks import as_float_array, check_finite, check_points
from paims.gp._factorisation import Factorisation
from paims.gp._means import is_polynomial

__all__ = [
    "Block",
    "SeparableMeans",
    "as_names",
    "products_of_others",
    "weighted_quantile",
]

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)
# Doubles in the largest array of a block of draws: small, so that a block stays in the cache.
_BLOCK_SIZE = 30_000


@dataclass(frozen=True, eq=False)
class Rule:
    """Quadrature with respect to the uniform distribution on an interval.

    Attributes
    ----------
    nodes, weights : (n_nodes,) ndarray
        Weights sum to 1.
    """

    nodes: FloatArray
    weights: FloatArray


def composite_rule(lower: float, upper: float, n_panels: int) -> Rule:
    """Gauss-Legendre rule with 8 nodes in each of ``n_panels`` equal panels."""
    edges = np.linspace(lower, upper, n_panels + 1)
    half = 0.5 * np.diff(edges)
    middle = 0.5 * (edges[1:] + edges[:-1])
    nodes = (middle[:, None] + half[:, None] * _NODES).ravel()
    return Rule(nodes, np.tile(0.5 * _NODE_WEIGHTS / n_panels, n_panels))


def _n_panels(kernel: Kernel, length: float) -> int:
    """Panels for a length-scale, as a part of the interval.

    Smooth correlations need a panel per length-scale. Others have a kink at each run, where
    their derivatives jump: small panels make the error there negligible (1e-8 for a Matern 3/2
    of length 0.1, 1e-6 for an exponential) at a cost that does not grow with the number of runs.
    """
    least, per_length = (2, 1.0) if kernel.smooth else (8, 2.0)
    return int(np.clip(np.ceil(per_length / length), least, MAX_ROWS // len(_NODES)))


@dataclass(frozen=True, eq=False)
class Block:
    """Some draws: their factors of K, the coefficients of the mean, and its terms.

    Attributes
    ----------
    rows : slice
        Which draws.
    factors : Factorisation
    coefficients : (b, n_terms) ndarray
        alpha and beta.
    sides : list of (b, n_nodes, n_terms) ndarray
        For each input, the factors of all terms at the nodes of its rule.
    integrals : (p, b, n_terms) ndarray
        Their averages over the box's sides.
    """

    rows: slice
    factors: Factorisation
    coefficients: FloatArray
    sides: list[FloatArray]
    integrals: FloatArray


class SeparableMeans:
    """The means of an emulator at some draws, over a box.

    Parameters
    ----------
    posterior : Posterior
    u : (m, n_params) array_like
        Draws; those without weight are dropped.
    weights : (m,) array_like, optional
    box : (p, 2) array_like, optional
        Lower and upper end of each input, in the posterior's units; the training range by
        default.

    Attributes
    ----------
    phi, nugget, weights : ndarray
        Of the kept draws.
    rules : list of Rule
        One quadrature rule for each input.
    n_terms : int
        n + q, the number of products.
    """

    def __init__(self, posterior: Posterior, u: Any, weights: Any = None, box: Any = None) -> None:
        u = check_points("u", u, posterior.n_params)
        if not len(u):
            raise ValueError("u holds no draw.")
        w = as_weights(weights, len(u))
        kept = w > 0.0
        self.posterior = posterior
        self.weights = w[kept] / w[kept].sum()
        self.phi, self.nugget = posterior.to_physical(u[kept])
        self.box = _checked_box(box, posterior.X)
        if not is_polynomial(posterior.mean):
            raise ValueError(
                "Effects of the inputs are integrated exactly, which needs a polynomial trend: "
                f"mean='zero', 'constant', 'linear' or 'quadratic'; got {posterior.mean!r}."
            )
        if not posterior.kernel.separable:
            raise ValueError(
                "Effects of the inputs are integrated exactly, which needs a kernel that is a "
                f"product of one factor per input; got {posterior.kernel!r}."
            )
        self.exponents = posterior.mean.exponents(posterior.n_inputs)
        self.n_terms = posterior.n_runs + posterior.n_basis
        lengths = posterior.kernel.length_scale(self.phi).min(axis=0) / np.diff(self.box)[:, 0]
        self.rules = [
            composite_rule(lower, upper, _n_panels(posterior.kernel, float(length)))
            for (lower, upper), length in zip(self.box, lengths, strict=True)
        ]

    @property
    def n_draws(self) -> int:
        """Number of draws with weight."""
        return len(self.weights)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return len(self.box)

    def blocks(self) -> Iterator[Block]:
        """Blocks of draws that need little memory."""
        n_nodes = max(len(rule.nodes) for rule in self.rules)
        size = max(1, _BLOCK_SIZE // (self.n_terms * max(n_nodes, self.n_terms)))
        P = self.posterior
        for start in range(0, self.n_draws, size):
            rows = slice(start, min(start + size, self.n_draws))
            with np.errstate(all="ignore"):
                factors = Factorisation(P.X, P.H, P.y, P.kernel, self.phi[rows], self.nugget[rows])
            if factors.failed.any():
                raise ValueError(
                    f"The correlation matrix of {int(factors.failed.sum())} draw(s) with positive "
                    "weight could not be factorised. Give such draws weight 0."
                )
            alpha = [
                dtrtrs(L.T, e, lower=0, trans=0)[0]
                for L, e in zip(factors.L, factors.residual, strict=True)
            ]
            sides = [self.factor(rows, i, rule.nodes) for i, rule in enumerate(self.rules)]
            integrals = [
                (rule.weights @ side) for rule, side in zip(self.rules, sides, strict=True)
            ]
            yield Block(
                rows,
                factors,
                np.concatenate([alpha, factors.beta], axis=1),
                sides,
                np.stack(integrals),
            )

    def without_mean(self, block: Block) -> tuple[FloatArray, FloatArray]:
        """Coefficients of f - E f, and what is left of the mean.

        A trend with a constant takes the mean up to round-off; without one nothing is taken.
        """
        c = block.coefficients.copy()
        products = block.integrals.prod(axis=0)
        constant = np.flatnonzero(~self.exponents.any(axis=1))
        if constant.size:
            c[:, self.posterior.n_runs + constant[0]] -= (c * products).sum(axis=1)
        return c, (c * products).sum(axis=1)

    def factor(self, rows: slice, i_input: int, x: FloatArray) -> FloatArray:
        """Factors ``(b, k, n_terms)`` of all terms in one input at the values ``x`` (k,)."""
        n = self.posterior.n_runs
        phi = self.phi[rows, i_input, None, None]
        distance = np.abs(x[:, None] - self.posterior.X[:, i_input])
        result = np.empty((len(phi), len(x), self.n_terms))
        result[:, :, :n] = self.posterior.kernel.factor(distance, phi)
        result[:, :, n:] = x[:, None] ** self.exponents[:, i_input]
        return result


def products_of_others(values: FloatArray) -> FloatArray:
    """Product over the first axis of all entries but one, for each, without a division."""
    result = np.ones_like(values)
    np.cumprod(values[:-1], axis=0, out=result[1:])
    after = np.ones_like(values[0])
    for i in range(len(values) - 1, -1, -1):
        result[i] *= after
        after = after * values[i]
    return result


def _checked_box(box: Any, X: FloatArray) -> FloatArray:
    p = X.shape[1]
    if box is None:
        return np.column_stack([X.min(axis=0), X.max(axis=0)])
    checked = as_float_array("box", box, 2)
    if checked.shape != (p, 2):
        raise ValueError(
            f"box must have a row (lower, upper) for each of the {p} inputs; got {checked.shape}."
        )
    check_finite("box", checked)
    empty = np.flatnonzero(~(checked[:, 0] < checked[:, 1]))
    if empty.size:
        raise ValueError(
            f"The box's lower ends must be below its upper ends; input {empty[0]} has "
            f"{tuple(checked[empty[0]].tolist())}."
        )
    return checked


def as_names(names: Any, n_inputs: int) -> tuple[str, ...]:
    """Names of the inputs; x1 .. xp by default."""
    if names is None:
        return tuple(f"x{i + 1}" for i in range(n_inputs))
    result = tuple(str(name) for name in names)
    if len(result) != n_inputs:
        raise ValueError(f"names must have one for each of the {n_inputs} inputs; got {result}.")
    return result


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
