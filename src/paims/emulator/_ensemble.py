r"""Weighted hyper-parameters: what every prediction is made from.

The thousands of draws of the sampler become an ensemble of few in two steps. With several kernels
their draws come one kernel after the other, each with its share of the weights, and what follows
is done once for all: a kernel gets components by its weight.

*Thinning*. Equal draws are merged. The others are put in an order in which neighbours are alike,
by halving the cloud again and again across its widest direction (a k-d tree with equal masses),
and resampled systematically along it: each of the n components stands for a compact cell that
holds 1/n of the mass. This is unbiased, and less noisy than independent resampling. The two
halves come in random order: always the lower first, and the even steps of systematic resampling
would fall on the same side of all cells.

*Compression*. The weights are moved from :math:`w^0` to the non-negative ones that minimise

.. math::
    \frac1J \sum_j \Big(\frac{\mu_j - \mu^*_j}{\sigma^*_j}\Big)^2
    + \frac1J \sum_j \Big(\frac{s_j}{\sigma^{*2}_j} - 1\Big)^2
    + \rho \sum_c \frac{(w_c - w^0_c)^2}{w^0_c},

with the mean :math:`\mu` and the second moment :math:`s` about :math:`\mu^*` of the mixture at J
points of the training box, the star for those of the many, and a small :math:`\rho` that keeps
the weights near to where they came from. That takes away nine tenths of the noise of thinning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import nnls
from scipy.stats import qmc

from paims._arrays import FloatArray, IndexArray
from paims._memory import demand
from paims.diagnostics import LeaveOneOut, Validation, leave_one_out, validate
from paims.emulator._mixture import MixturePrediction, without_exponent
from paims.emulator._scaling import OutputScaling
from paims.gp import Coefficients, Posterior, Predictive
from paims.sampling._path import systematic

T = TypeVar("T", bound=Any)

# Components of a mixture, and draws that they are chosen from. Against predictions with all draws,
# measured on the paper's three data sets, Friedman and borehole: the mean is off by 0.004 to 0.010
# standard deviations (root mean square over the box), the standard deviation by 0.3 to 1.2 %. The
# noise of the draws themselves is about 0.005 standard deviations.
_N_COMPONENTS = 128
_N_RESERVOIR = 1024
#: More held-out outputs than this would take minutes in the joint diagnostics.
MAX_JOINT = 150
# Points and doubles of a block: predictions of a block are all that is held at once.
_BLOCK_POINTS = 4096
_BLOCK_SIZE = 2**20
# Doubles of a part of the points, for all components, of a mixture in the making.
_PART_SIZE = 2**22
# Arrays of all points and components that a mixture takes: its own two, and what a part takes.
_N_ARRAYS = 2.2
_N_FITTED = 64
_N_HELD_OUT = 32
_N_RUNS = 32
_RHO = 1e-4
# Makes the weights sum to 1 (the rest is done by a division).
_SUM_WEIGHT = 1e3
# Standard deviations below this share of the output's count as this share: where the emulator
# interpolates there is nothing to compare with.
_LEAST_STD = 1e-6


@dataclass(frozen=True)
class WeightedDraws:
    """Draws of the posterior under one kernel.

    Attributes
    ----------
    posterior : Posterior
    draws : (m, n_params) ndarray
    weights : (m,) ndarray
        Need not sum to 1.
    share : float
        Of the kernel, among all.
    """

    posterior: Posterior
    draws: FloatArray
    weights: FloatArray
    share: float = 1.0


@dataclass(frozen=True)
class Ensemble:
    """Weighted hyper-parameters of a Gaussian process on scaled runs.

    Attributes
    ----------
    posterior : Posterior
        Under the first kernel.
    draws : (n_components, n_params) ndarray
    weights : (n_components,) ndarray
        Sum to 1.
    output : OutputScaling
    family : {"student_t", "gaussian"}
        Of the components.
    others : tuple of Posterior
        Of the same runs under further kernels.
    which : (n_components,) ndarray of int, optional
        Kernel of each component: 0 for ``posterior``, then the others. None if there is one.
    """

    posterior: Posterior
    draws: FloatArray
    weights: FloatArray
    output: OutputScaling
    family: str
    others: tuple[Posterior, ...] = ()
    which: IndexArray | None = None

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """One for each kernel."""
        return (self.posterior, *self.others)

    def parts(self) -> Iterator[tuple[Posterior, FloatArray, FloatArray]]:
        """Posterior, draws and weights of each kernel that has any."""
        for posterior, rows in self._groups(np.arange(len(self.draws))):
            yield posterior, self.draws[rows], self.weights[rows]

    def only(self, rows: IndexArray) -> Ensemble:
        """Some of the components; weights are divided by their sum."""
        weights = self.weights[rows]
        which = None if self.which is None else self.which[rows]
        return replace(self, draws=self.draws[rows], weights=weights / weights.sum(), which=which)

    def predict(
        self,
        X: FloatArray,
        rows: IndexArray | None = None,
        *,
        include_nugget: bool = True,
        return_cov: bool = False,
    ) -> Predictive:
        """Predictions of the components, or of some, in scaled units.

        Parameters
        ----------
        X : (k, p) ndarray
            Scaled inputs.
        rows : (c,) ndarray of int, optional
        include_nugget, return_cov : bool
            As in :meth:`paims.gp.Posterior.predict`.
        """
        return self._each(
            lambda posterior, draws: posterior.predict(
                draws, X, include_nugget=include_nugget, return_cov=return_cov
            ),
            rows,
        )

    def coefficients(self) -> Coefficients:
        """Trend coefficients and S2 of the components."""
        return self._each(lambda posterior, draws: posterior.coefficients(draws))

    def _groups(self, rows: IndexArray) -> Iterator[tuple[Posterior, IndexArray]]:
        """Posterior of each kernel, and which of the rows are its components."""
        if self.which is None:
            yield self.posterior, rows
            return
        for k, posterior in enumerate(self.posteriors):
            own = rows[self.which[rows] == k]
            if own.size:
                yield posterior, own

    def _each(
        self, compute: Callable[[Posterior, FloatArray], T], rows: IndexArray | None = None
    ) -> T:
        """What each kernel's posterior says of its components, in their order."""
        rows = np.arange(len(self.draws)) if rows is None else rows
        if self.which is None or not rows.size:
            return compute(self.posterior, self.draws[rows])
        # Kernels come one after the other; ``where`` takes rows in any order back to theirs.
        groups = list(self._groups(rows))
        found = [compute(posterior, self.draws[own]) for posterior, own in groups]
        where = np.argsort(np.argsort(self.which[rows], kind="stable"), kind="stable")
        arrays = {
            field.name: np.concatenate([getattr(one, field.name) for one in found])[where]
            for field in fields(found[0])
            if isinstance(getattr(found[0], field.name), np.ndarray)
        }
        return replace(found[0], **arrays)

    def moments(
        self, X: FloatArray, *, include_nugget: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of the mixture, in scaled units.

        Streams over blocks of points and of components: the memory needed does not depend on
        how many there are.

        Parameters
        ----------
        X : (k, p) ndarray
            Scaled inputs.
        include_nugget : bool

        Returns
        -------
        mean, std : (k,) ndarray
        """
        mean, variance = np.empty(len(X)), np.empty(len(X))
        for start in range(0, len(X), _BLOCK_POINTS):
            part = slice(start, start + _BLOCK_POINTS)
            mean[part], variance[part] = self._moments(X[part], include_nugget)
        return mean, np.sqrt(variance)

    def _moments(self, X: FloatArray, include_nugget: bool) -> tuple[FloatArray, FloatArray]:
        """Mean and variance by the law of total variance, blocks merged as they come."""
        total = 0.0
        mean, between, within = np.zeros(len(X)), np.zeros(len(X)), np.zeros(len(X))
        size = max(1, _BLOCK_SIZE // max(1, len(X)))
        for start in range(0, len(self.draws), size):
            rows = np.arange(start, min(start + size, len(self.draws)))
            w = self.weights[rows]
            block = self.predict(X, rows, include_nugget=include_nugget)
            mass = float(w.sum())
            block_mean = (w @ block.mean) / mass
            step = block_mean - mean
            joint = total + mass
            between += w @ (block.mean - block_mean) ** 2 + step**2 * (total * mass / joint)
            within += w @ block.variance
            mean += step * (mass / joint)
            total = joint
        return mean, (between + within) / total

    def mixture(self, X: FloatArray, *, include_nugget: bool = True) -> MixturePrediction:
        """The mixture at scaled inputs ``X`` (k, p), with its components."""
        demand(
            _N_ARRAYS * 8.0 * len(X) * len(self.draws),
            f"The predictive distribution of {len(X):,} points",
            "Take them in parts; predict(X, return_std=True) does so itself.",
        )
        student = self.family == "student_t"
        location = np.empty((len(self.draws), len(X)))
        scale = np.empty_like(location)
        step = max(1, _PART_SIZE // max(1, len(self.draws)))
        for start in range(0, max(1, len(X)), step):
            part = slice(start, start + step)
            block = self.predict(X[part], include_nugget=include_nugget)
            location[:, part] = block.mean
            np.sqrt(block.scale2 if student else block.variance, out=scale[:, part])

        def joint(index: IndexArray) -> tuple[FloatArray, FloatArray]:
            some = self.predict(X, index, include_nugget=include_nugget, return_cov=True)
            return some.mean, some.scale2 if student else some.variance

        return MixturePrediction(
            location,
            scale,
            self.weights,
            float(block.dof) if student else np.inf,
            self.output,
            joint,
            self.posterior.n_jobs,
        )

    def leave_one_out(self) -> LeaveOneOut:
        """Each run predicted from all others, in the user's units."""
        posterior, output = self.posterior, self.output
        least = posterior.n_basis + 4
        if posterior.n_runs < least:
            raise ValueError(
                f"There are too few runs to leave one out: {posterior.n_runs}, where a trend of "
                f"{posterior.n_basis} basis functions needs {least}. Add runs, or validate with "
                "held-out ones."
            )
        scaled = self._each(lambda posterior, draws: posterior.leave_one_out(draws))
        # In units of a power of two, in which no square overflows; to go back is exact.
        small = replace(output, exponent=0)
        in_units = Predictive(small.value(scaled.mean), small.square(scaled.scale2), scaled.dof)
        found = leave_one_out(small.value(posterior.y), in_units, self.weights)
        return found.in_units(output.exponent)

    def validate(self, X: FloatArray, y: FloatArray) -> Validation:
        """Compare with held-out runs.

        Parameters
        ----------
        X : (k, p) ndarray
            Scaled inputs.
        y : (k,) ndarray
            Outputs in the user's units. Of very many an even choice is taken.
        """
        step = -(-len(y) // MAX_JOINT)
        return validated(y[::step], self.mixture(X[::step]))


def validated(y: FloatArray, mixture: MixturePrediction) -> Validation:
    """Compare a prediction with outputs; none of the squares on the way overflows."""
    small, exponent = without_exponent(mixture)
    with np.errstate(over="ignore", under="ignore"):
        reduced = np.ldexp(y, -exponent)
    return validate(reduced, small).in_units(exponent)


@dataclass(frozen=True)
class Compression:
    """What was lost: measured at points that the weights were not fitted at.

    Those are a Sobol' set in the box of the runs, and (some of) the runs themselves.

    Attributes
    ----------
    n_components, n_before : int
    mean_error, std_error : float
        Root mean square of the difference in the mean, in units of the predictive standard
        deviation, and of the relative difference in the standard deviation.
    max_mean_error, max_std_error : float
        The largest.
    """

    n_components: int
    n_before: int
    mean_error: float
    std_error: float
    max_mean_error: float
    max_std_error: float

    def __str__(self) -> str:
        return (
            f"{self.n_components} components in place of {self.n_before}: the mean differs by "
            f"{self.mean_error:.2g} standard deviations (at most {self.max_mean_error:.2g}), the "
            f"standard deviation by {self.std_error:.2%} (at most {self.max_std_error:.2%})"
        )


def ensemble_of_draws(
    kernels: Sequence[WeightedDraws],
    output: OutputScaling,
    family: str,
    rng: np.random.Generator,
) -> tuple[Ensemble, Compression]:
    """Make an ensemble of few components that predicts as all weighted draws do.

    Parameters
    ----------
    kernels : sequence of WeightedDraws
        One for each kernel.
    output : OutputScaling
    family : {"student_t", "gaussian"}
    rng : Generator
    """
    drawn, weights, which = [], [], []
    for k, one in enumerate(kernels):
        draws, w = merge_equal(one.draws, one.weights)
        index, w = thin(draws, w / w.sum(), max(1, round(_N_RESERVOIR * one.share)), rng)
        drawn.append(draws[index])
        weights.append(one.share * w)
        which.append(np.full(len(w), k))
    many = Ensemble(
        kernels[0].posterior,
        np.concatenate(drawn),
        np.concatenate(weights),
        output,
        family,
        tuple(one.posterior for one in kernels[1:]),
        np.concatenate(which) if len(kernels) > 1 else None,
    )
    return compress(many, _N_COMPONENTS, rng)


def compress(
    ensemble: Ensemble, n_components: int, rng: np.random.Generator
) -> tuple[Ensemble, Compression]:
    """Keep at most ``n_components`` of an ensemble, with new weights, and measure the loss.

    Draws at which the correlation matrix cannot be factorised, which only an edge of the
    numerically possible leaves in a sample, are dropped first.
    """
    fitted, held_out = _points(ensemble)
    predicted = ensemble.predict(np.vstack([fitted, held_out]))
    usable = np.isfinite(predicted.mean).all(axis=1) & np.isfinite(predicted.scale2).all(axis=1)
    if not usable.any():
        raise ValueError(
            "The correlation matrix cannot be factorised at any of the draws. Use "
            "nugget='estimate' or a larger nugget."
        )
    n_before = len(ensemble.draws)
    ensemble = ensemble.only(np.flatnonzero(usable))
    weights = ensemble.weights
    mean, variance = predicted.mean[usable], predicted.variance[usable]
    target_mean, target_std = _moments(mean, variance, weights)
    index, new = thin(ensemble.draws, weights, n_components, rng, ensemble.which)
    if len(index) < len(weights):
        part = slice(len(fitted))
        new = _fit_weights(
            mean[index, part], variance[index, part], new, target_mean[part], target_std[part]
        )
        index, new = index[new > 0.0], new[new > 0.0]
    few_mean, few_std = _moments(mean[index], variance[index], new)
    part = slice(len(fitted), None)
    mean_off = np.abs((few_mean - target_mean) / target_std)[part]
    std_off = np.abs(few_std / target_std - 1.0)[part]
    report = Compression(
        n_components=len(index),
        n_before=n_before,
        mean_error=float(np.sqrt(np.mean(mean_off**2))),
        std_error=float(np.sqrt(np.mean(std_off**2))),
        max_mean_error=float(mean_off.max()),
        max_std_error=float(std_off.max()),
    )
    return replace(ensemble.only(index), weights=new), report


def _points(ensemble: Ensemble) -> tuple[FloatArray, FloatArray]:
    """Points to fit the weights at, and others (with runs among them) to measure at."""
    X = ensemble.posterior.X
    # Not scrambled: the same box has the same points. The first is a corner, which is no loss.
    box = qmc.Sobol(X.shape[1], scramble=False)
    fitted = box.random(_N_FITTED)
    runs = X[:: -(-len(X) // _N_RUNS)]
    return fitted, np.vstack([box.random(_N_HELD_OUT), runs])


def _moments(
    mean: FloatArray, variance: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of the mixture at each point."""
    centre = weights @ mean
    square = weights @ variance + weights @ (mean - centre) ** 2
    return centre, np.maximum(np.sqrt(square), _LEAST_STD)


def _fit_weights(
    mean: FloatArray,
    variance: FloatArray,
    weights: FloatArray,
    target_mean: FloatArray,
    target_std: FloatArray,
) -> FloatArray:
    """The weights that minimise the module's criterion, as a non-negative least squares."""
    off = (mean - target_mean) / target_std
    second = variance / target_std**2 + off**2 - 1.0
    matching = np.hstack([off, second]).T / np.sqrt(len(target_mean))
    staying = np.diag(np.sqrt(_RHO / weights))
    total = np.full((1, len(weights)), _SUM_WEIGHT)
    try:
        found, _ = nnls(
            np.vstack([matching, staying, total]),
            np.concatenate([np.zeros(len(matching)), np.sqrt(_RHO * weights), [_SUM_WEIGHT]]),
            maxiter=30 * len(weights),
        )
    except RuntimeError:
        # Out of iterations: thinned weights are valid too, only noisier, as the report will say.
        return weights
    fitted: FloatArray = found / found.sum()
    return fitted


def merge_equal(draws: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct draws in lexicographic order, with the sums of their weights."""
    distinct, inverse = np.unique(draws, axis=0, return_inverse=True)
    return distinct, np.bincount(inverse.ravel(), weights).astype(np.float64)


def thin(
    draws: FloatArray,
    weights: FloatArray,
    n_components: int,
    rng: np.random.Generator,
    which: IndexArray | None = None,
) -> tuple[IndexArray, FloatArray]:
    """Choose at most ``n_components`` of the draws, with weights, to stand for all.

    Parameters
    ----------
    draws : (m, n_params) ndarray
        Distinct.
    weights : (m,) ndarray
        Sum to 1.
    n_components : int
    rng : Generator
    which : (m,) ndarray of int, optional
        Kernel of each draw; no cell has draws of two.

    Returns
    -------
    index : (c,) ndarray
        Of the chosen draws, ascending.
    weights : (c,) ndarray
        Multiples of 1/n_components; the weights themselves if all draws are kept.
    """
    if len(draws) <= n_components:
        return np.arange(len(draws)), weights
    order = _order(draws, weights, n_components, rng, which)
    chosen = systematic(weights[order], n_components, rng)
    index, count = np.unique(order[chosen], return_counts=True)
    return index, count / n_components


def _order(
    draws: FloatArray,
    weights: FloatArray,
    n_cells: int,
    rng: np.random.Generator,
    which: IndexArray | None,
) -> IndexArray:
    """Order of :func:`cell_order`, one kernel after the other."""
    if which is None:
        return cell_order(draws, weights, n_cells, rng)
    parts = []
    for k in np.unique(which):
        own = np.flatnonzero(which == k)
        mass = float(weights[own].sum())
        parts.append(own[cell_order(draws[own], weights[own] / mass, n_cells * mass, rng)])
    return np.concatenate(parts)


def cell_order(
    draws: FloatArray, weights: FloatArray, n_cells: float, rng: np.random.Generator
) -> IndexArray:
    """Order in which any stretch that holds 1/n_cells of the mass is a compact cell."""
    mean = weights @ draws
    sd = np.sqrt(weights @ (draws - mean) ** 2)
    scaled = (draws - mean) / np.where(sd > 0.0, sd, 1.0)
    smallest = weights.sum() / n_cells
    parts: list[IndexArray] = []
    stack: list[IndexArray] = [np.arange(len(draws))]
    while stack:
        index = stack.pop()
        w = weights[index]
        mass = float(w.sum())
        if len(index) < 2 or mass <= smallest:
            parts.append(index)
            continue
        points = scaled[index]
        centre = (w @ points) / mass
        widest = int(np.argmax(w @ (points - centre) ** 2))
        along = np.argsort(points[:, widest], kind="stable")
        if rng.random() < 0.5:
            along = along[::-1]
        index = index[along]
        half = int(np.searchsorted(np.cumsum(w[along]), 0.5 * mass)) + 1
        half = min(max(half, 1), len(index) - 1)
        stack += [index[half:], index[:half]]
    return np.concatenate(parts)
