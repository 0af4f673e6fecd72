r"""Which inputs are inert: what the *output* does not depend on.

A long length-scale is not enough for that, as the trend may depend on the input, and a short one
is not needed to act. The criterion is therefore put on the output. Given a draw u of the
hyper-parameters the simulator f is a Gaussian process conditioned on the runs; input l is inert in
the draw if

.. math::
    E\{ E_x \mathrm{Var}[f \mid x_{-l}] \mid u, D \} \le \epsilon \,
    E\{ \mathrm{Var}_x f \mid u, D \}, \qquad \epsilon = 0.01 \text{ by default},

that is, if at most one per cent of the output's variance is expected to involve it. Outer
expectations are over f: besides the emulator's mean (whose part is the total Sobol' index) they
have what the runs leave open, so an input is not called inert for lack of runs. The probability of
being inert is the weight of the draws in which it is.

With :math:`\lambda_l f = f(x) - E[f \mid x_{-l}]`, a linear functional, the left side is the
average over x of :math:`(\lambda_l \mu)^2 + \mathrm{Var}(\lambda_l f \mid u, D)`. The first part
is exact, from the Sobol' indices; the second is an average over 128 Sobol' points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from paims._arrays import FloatArray
from paims._parallel import single_threaded_blas
from paims.diagnostics._effects import (
    MainEffects,
    SobolIndices,
    box_points,
    deviation_terms,
    main_effects,
    sobol_indices,
)
from paims.diagnostics._prediction import as_weights
from paims.diagnostics._separable import Block, SeparableMeans, as_names, weighted_quantile
from paims.gp import Posterior
from paims.gp._checks import check_points
from paims.gp._factorisation import solve_lower, solve_lower_rows

__all__ = ["Inertness", "LengthScales", "Screening", "inertness", "length_scales", "screen"]

_LOG2_POINTS = 7
_LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


@dataclass(frozen=True, eq=False)
class LengthScales:
    r"""Length-scales of p inputs, relative to the inputs' ranges.

    A length-scale says little by itself: kernels scale distances differently. The correlation
    :math:`\rho_l = r(\text{range}_l; \phi_l)` of two points at opposite ends of one input, equal
    in all others, can be read for any kernel: near 1 the process does not see the input (what is
    left of it is in the trend), near 0 the output wiggles within the range.

    Attributes
    ----------
    names : tuple of str
    relative : (m, p) ndarray
        Length-scale of each draw divided by the input's range.
    weights : (m,) ndarray
    levels : (5,) ndarray
        0.05, 0.25, 0.5, 0.75, 0.95.
    quantiles : (5, p) ndarray
        Quantiles of ``relative``.
    correlation : (5, p) ndarray
        Quantiles of the correlation from end to end of the input's range.
    flat_above : float
    probability_flat : (p,) ndarray
        Probability that this correlation is at least ``flat_above``: the process does not see
        the input. The trend may.
    """

    names: tuple[str, ...]
    relative: FloatArray
    weights: FloatArray
    levels: FloatArray
    quantiles: FloatArray
    correlation: FloatArray
    flat_above: float
    probability_flat: FloatArray

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        parts = [
            f"{name} {middle:.3g} ({low:.3g}-{high:.3g})"
            for name, low, middle, high in zip(
                self.names, self.quantiles[0], self.quantiles[2], self.quantiles[4], strict=True
            )
        ]
        text = f"Length-scales, in ranges of the inputs (median, 90 %): {', '.join(parts)}."
        flat = [
            name
            for name, probability in zip(self.names, self.probability_flat, strict=True)
            if probability >= 0.95
        ]
        if flat:
            text += f" The process does not see {', '.join(flat)}; the trend may."
        return text


def length_scales(
    posterior: Posterior,
    u: Any,
    weights: Any = None,
    *,
    flat_above: float = 0.99,
    names: Any = None,
) -> LengthScales:
    """Posterior of the length-scales relative to the ranges of the inputs.

    Parameters
    ----------
    posterior : Posterior
    u : (m, n_params) array_like
        Draws of the hyper-parameters.
    weights : (m,) array_like, optional
        Their weights; equal by default.
    flat_above : float, default 0.99
        Correlation from end to end from which on the process counts as flat in the input.
    names : sequence of str, optional
        Names of the inputs.

    Returns
    -------
    LengthScales
    """
    if not 0.0 < flat_above < 1.0:
        raise ValueError(f"flat_above must lie in (0, 1); got {flat_above!r}.")
    u = check_points("u", u, posterior.n_params)
    w = as_weights(weights, len(u))
    phi, _ = posterior.to_physical(u)
    extent = np.ptp(posterior.X, axis=0)
    relative = posterior.kernel.length_scale(phi) / extent
    correlation = posterior.kernel.factor(np.broadcast_to(extent, phi.shape), phi)
    return LengthScales(
        names=as_names(names, posterior.n_inputs),
        relative=relative,
        weights=w,
        levels=_LEVELS,
        quantiles=weighted_quantile(relative, w, _LEVELS),
        correlation=weighted_quantile(correlation, w, _LEVELS),
        flat_above=flat_above,
        probability_flat=w @ (correlation >= flat_above),
    )


@dataclass(frozen=True, eq=False)
class Inertness:
    """How probable it is that an input does not matter.

    Attributes
    ----------
    names : tuple of str
    threshold : float
        Share of the output's variance up to which an input counts as inert.
    probability : (p,) ndarray
        Weight of the draws in which the input is inert.
    share : (m, p) ndarray
        Expected share of the output's variance that involves the input, for each draw.
    weights : (m,) ndarray
    interval : (3, p) ndarray
        5 %, 50 % and 95 % quantiles of ``share``.
    """

    names: tuple[str, ...]
    threshold: float
    probability: FloatArray
    share: FloatArray
    weights: FloatArray
    interval: FloatArray

    @property
    def inert(self) -> tuple[str, ...]:
        """Inputs that are inert with probability 0.95 or more."""
        return self._named(self.probability >= 0.95)

    @property
    def active(self) -> tuple[str, ...]:
        """Inputs that are inert with probability 0.05 or less."""
        return self._named(self.probability <= 0.05)

    @property
    def undecided(self) -> tuple[str, ...]:
        """All others."""
        return self._named((self.probability > 0.05) & (self.probability < 0.95))

    def _named(self, chosen: npt.NDArray[np.bool_]) -> tuple[str, ...]:
        return tuple(name for name, yes in zip(self.names, chosen, strict=True) if yes)

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        share = f"{100 * self.threshold:.3g} % of the output's variance"
        parts = []
        if self.inert:
            parts.append(
                f"{', '.join(self.inert)}: inert, as less than {share} involves any of them. At "
                "that level they can be held fixed."
            )
        if self.active:
            parts.append(f"{', '.join(self.active)}: active.")
        if self.undecided:
            parts.append(
                f"{', '.join(self.undecided)}: undecided; the runs allow both. Add runs that "
                "vary them."
            )
        return " ".join(parts)


@dataclass(frozen=True, eq=False)
class Screening:
    """All that says which inputs matter.

    Attributes
    ----------
    length_scales : LengthScales
    sobol : SobolIndices
    inertness : Inertness
    effects : MainEffects
    """

    length_scales: LengthScales
    sobol: SobolIndices
    inertness: Inertness
    effects: MainEffects

    @property
    def verdict(self) -> str:
        """What the numbers say, in words."""
        return f"{self.inertness.verdict} {self.sobol.verdict}"

    def __str__(self) -> str:
        names = self.sobol.names
        width = max(5, *(len(name) for name in names))
        head = (
            f"{'input':{width}} {'length/range':>12} {'first':>8} {'total':>8} {'5 %':>8} "
            f"{'95 %':>8} {'P(inert)':>9}"
        )
        rows = [
            f"{name:{width}} {self.length_scales.quantiles[2, i]:12.3g} "
            f"{self.sobol.first[i]:8.4f} {self.sobol.total[i]:8.4f} "
            f"{self.sobol.total_interval[0, i]:8.4f} {self.sobol.total_interval[1, i]:8.4f} "
            f"{self.inertness.probability[i]:9.3f}"
            for i, name in enumerate(names)
        ]
        return "\n".join([head, *rows, self.inertness.verdict])


def inertness(
    posterior: Posterior,
    u: Any,
    weights: Any = None,
    *,
    threshold: float = 0.01,
    box: Any = None,
    names: Any = None,
    sobol: SobolIndices | None = None,
) -> Inertness:
    """Probability of each input to be inert.

    Parameters
    ----------
    posterior, u, weights, box, names
        As in :func:`sobol_indices`.
    threshold : float, default 0.01
        Share of the output's variance up to which an input counts as inert.
    sobol : SobolIndices, optional
        Those of the same draws and box, if they are known already.

    Returns
    -------
    Inertness
    """
    if not 0.0 < threshold < 1.0:
        raise ValueError(f"threshold must lie in (0, 1); got {threshold!r}.")
    means = SeparableMeans(posterior, u, weights, box)
    if sobol is None:
        sobol = sobol_indices(posterior, u, weights, box=box)
    elif sobol.total_draws.shape != (means.n_draws, means.n_inputs):
        raise ValueError(
            f"sobol must be of the same {means.n_draws} draws and {means.n_inputs} inputs; it is "
            f"of {sobol.total_draws.shape}."
        )
    points = box_points(means.box, _LOG2_POINTS)
    left_open = np.empty((means.n_draws, means.n_inputs + 1))
    with single_threaded_blas():
        for block in means.blocks():
            left_open[block.rows] = _posterior_variances(means, block, points).mean(axis=2).T
    involved = sobol.total_draws * sobol.variance_draws[:, None] + left_open[:, 1:]
    share = involved / (sobol.variance_draws + left_open[:, 0])[:, None]
    return Inertness(
        names=as_names(names, means.n_inputs),
        threshold=threshold,
        probability=means.weights @ (share <= threshold),
        share=share,
        weights=means.weights,
        interval=weighted_quantile(share, means.weights, np.array([0.05, 0.5, 0.95])),
    )


def _posterior_variances(means: SeparableMeans, block: Block, points: FloatArray) -> FloatArray:
    r"""Give :math:`\mathrm{Var}(\lambda f \mid u, D)` at points ``(k, p)``, ``(p + 1, b, k)``.

    First for :math:`f - E_x f`, then for each :math:`\lambda_l`. The variance is the paper's
    corr(x*, w* | phi), with its functional in both arguments, times S2/(n - q - 2).
    """
    P, factors = means.posterior, block.factors
    n = P.n_runs
    sigma2 = factors.S2 / (n - P.n_basis - 2.0)
    result = _prior_variances(means, block, points)
    for i, term in enumerate(deviation_terms(means, block, points)):
        V = solve_lower_rows(factors.L, np.ascontiguousarray(term[:, :, :n]))
        result[i] -= np.einsum("bki,bki->bk", V, V)
        if P.n_basis:
            H = (term[:, :, n:] - V @ factors.F).swapaxes(1, 2)
            G = solve_lower(factors.R.swapaxes(1, 2), H)
            result[i] += np.einsum("bqk,bqk->bk", G, G)
    return np.asarray(sigma2[:, None] * np.maximum(result, 0.0))


def _prior_variances(means: SeparableMeans, block: Block, points: FloatArray) -> FloatArray:
    """Prior variances of the functionals, for a variance of 1, shape ``(p + 1, b, k)``."""
    kernel = means.posterior.kernel
    p = means.n_inputs
    single = np.empty((p, len(block.coefficients), len(points)))
    double = np.empty((p, len(block.coefficients), 1))
    for i, rule in enumerate(means.rules):
        phi = means.phi[block.rows, i, None, None]
        at = np.concatenate([points[:, i], rule.nodes])
        averaged = kernel.factor(np.abs(at[:, None] - rule.nodes), phi) @ rule.weights
        single[i] = averaged[:, : len(points)]
        double[i, :, 0] = averaged[:, len(points) :] @ rule.weights
    whole = 1.0 - 2.0 * single.prod(axis=0) + double.prod(axis=0)
    return np.concatenate([whole[None], 1.0 - 2.0 * single + double])


def screen(
    posterior: Posterior,
    u: Any,
    weights: Any = None,
    *,
    threshold: float = 0.01,
    box: Any = None,
    names: Any = None,
) -> Screening:
    """Length-scales, Sobol' indices, main effects and probabilities of being inert.

    Parameters are those of :func:`inertness`.
    """
    sobol = sobol_indices(posterior, u, weights, box=box, names=names)
    return Screening(
        length_scales=length_scales(posterior, u, weights, names=names),
        sobol=sobol,
        inertness=inertness(
            posterior, u, weights, threshold=threshold, box=box, names=names, sobol=sobol
        ),
        effects=main_effects(posterior, u, weights, box=box, names=names),
    )
