r"""Where the Gaussian process meets the sampler: its posterior as a density to sample.

The paper's section 5: the annealing starts from a reference distribution of
:math:`u = (\log\phi_1, \dots, \log\phi_p, z)` (the meta-prior) and ends at the posterior of u, or
goes on to the set of its optima.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaincinv

from paims._arrays import FloatArray
from paims.gp import (
    BetaNugget,
    EstimatedNugget,
    JointlyRobust,
    Kernel,
    Posterior,
    UniformNugget,
)
from paims.gp._nugget import LOWER_BOUND
from paims.sampling import Mode, Reference, SampleResult, Scheme, SoftUniform, sample
from paims.sampling._modes import climb, connect
from paims.sampling._sample import default_n_samples, least_n_samples

__all__ = [
    "HyperparameterDensity",
    "PaperReference",
    "RobustReference",
    "connect_modes",
    "density",
    "find_best",
    "reference",
    "sample_posterior",
]


# Of the log length-scale, relative to the log of the input's range: a linear or inert input has
# ranges of tens of times its own, a rough one a twentieth.
_LENGTH = (-3.0, 5.0, 0.5)
_LENGTH_PAPER = 3.5
# Of z, the logit of the nugget: from 1e-10.4 to 0.88, with tails.
_Z = (-24.0, 2.0, 1.0)
# Runs from which the reference prior is led to by the jointly robust one; runs from which, with
# many parameters, fewer runs lead, and how many times fewer. With few parameters that does not
# pay: from two fifths of a smooth function's runs it takes as many levels as from the prior.
_SOME_RUNS = 40
_MANY_RUNS = 250
_FEWER_RUNS = 2.5
_MANY_PARAMS = 12


class PaperReference:
    r"""The paper's meta-prior: :math:`\log\phi_i` uniform, the nugget Beta(1/2, 1/2) on (lb, 1).

    As a density in z, with the Jacobian :math:`d\delta/dz`. The paper has :math:`\log\phi_i`
    uniform on [-7, 7] for the squared exponential on inputs in [0, 1], where :math:`\phi` is a
    squared length; for kernels whose :math:`\phi` is a range that is [-3.5, 3.5].

    Parameters
    ----------
    lower, upper : (p,) array_like
        The box of :math:`\log\phi`.
    nugget_lower : float, optional
        Lower bound lb of an estimated nugget; None for a fixed one, which is no parameter.
    """

    def __init__(self, lower: Any, upper: Any, nugget_lower: float | None = None) -> None:
        self.lower = np.atleast_1d(np.asarray(lower, dtype=np.float64))
        self.upper = np.atleast_1d(np.asarray(upper, dtype=np.float64))
        self.nugget_lower = nugget_lower
        self.n_params = self.lower.size + (nugget_lower is not None)

    def quantile(self, u: FloatArray) -> FloatArray:
        r"""Map the unit cube.

        The CDF of the Beta is :math:`\frac{2}{\pi} \arcsin\sqrt\delta`. With
        :math:`\delta = \sin^2 a` and :math:`lb = \sin^2 b`:
        :math:`z = \log \sin(a+b) + \log \sin(a-b) - 2 \log \cos a`.
        """
        p = self.lower.size
        log_phi = self.lower + u[:, :p] * (self.upper - self.lower)
        if self.nugget_lower is None:
            return log_phi
        v = np.clip(u[:, p], np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
        b = np.arcsin(np.sqrt(self.nugget_lower))
        # Angles from both ends, so that neither delta - lb nor 1 - delta is a difference.
        above, below = (0.5 * np.pi - b) * v, (0.5 * np.pi - b) * (1.0 - v)
        z = np.log(np.sin(above + 2.0 * b)) + np.log(np.sin(above)) - 2.0 * np.log(np.sin(below))
        return np.column_stack([log_phi, z])

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return ``n`` independent draws, shape ``(n, n_params)``."""
        return self.quantile(rng.random((n, self.n_params)))

    def log_density(self, x: FloatArray) -> FloatArray:
        """Normalised log density in u; -inf outside the box."""
        p = self.lower.size
        log_phi, z = x[:, :p], x[:, p:]
        inside = np.all((log_phi >= self.lower) & (log_phi <= self.upper), axis=1)
        value = np.full(len(x), -np.sum(np.log(self.upper - self.lower)))
        if self.nugget_lower is not None:
            nugget = EstimatedNugget(BetaNugget(0.5, 0.5), self.nugget_lower)
            value += nugget.log_prior(z) + nugget.log_jacobian(z)
        return np.where(inside, value, -np.inf)

    def __repr__(self) -> str:
        return (
            f"PaperReference({self.lower.tolist()}, {self.upper.tolist()}, {self.nugget_lower!r})"
        )


class RobustReference:
    r"""The jointly robust prior of :math:`\log\phi`, drawn exactly; z as in the soft box.

    :math:`T = \sum_l C_l b_l` is Gamma(a + p, b) and its shares are uniform on the simplex
    (Gu 2019), with inverse ranges :math:`b_l`; a density in :math:`\log\phi`. In many dimensions
    it lies far nearer to a posterior under this prior than a box does.

    Parameters
    ----------
    prior : JointlyRobust
        The nugget, if it is in its T, is left out.
    X : (n, p) ndarray
        Runs.
    kernel : Kernel
    z : SoftUniform or None
        Distribution of an estimated nugget's z.
    """

    def __init__(
        self, prior: JointlyRobust, X: FloatArray, kernel: Kernel, z: SoftUniform | None
    ) -> None:
        self.prior = JointlyRobust(prior.a, prior.b, include_nugget=False)
        self.X, self.kernel, self.z = X, kernel, z
        self.n_inputs = X.shape[1]
        self.n_params = self.n_inputs + (z is not None)

    def quantile(self, u: FloatArray) -> FloatArray:
        """Map the unit cube: one coordinate gives T, p - 1 break the stick of its shares."""
        p = self.n_inputs
        scales, rate = self.prior.scales(self.X)
        total = gammaincinv(self.prior.a + p, u[:, 0]) / rate
        share, left = np.empty((len(u), p)), np.ones(len(u))
        for i in range(p - 1):
            # Of a uniform point of the simplex the next share is Beta(1, p - 1 - i) of the rest.
            kept = (1.0 - u[:, 1 + i]) ** (1.0 / (p - 1 - i))
            share[:, i], left = left * (1.0 - kept), left * kept
        share[:, p - 1] = left
        tiny = np.finfo(float).tiny
        inverse = np.maximum(total[:, None] * share / scales, tiny)
        log_phi = -self.kernel.phi_power * np.log(inverse)
        if self.z is None:
            return np.asarray(log_phi)
        return np.column_stack([log_phi, self.z.quantile(u[:, p:])])

    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Return ``n`` independent draws, shape ``(n, n_params)``."""
        return self.quantile(rng.random((n, self.n_params)))

    def log_density(self, x: FloatArray) -> FloatArray:
        """Normalised log density in u."""
        log_phi, z = x[:, : self.n_inputs], x[:, self.n_inputs :]
        with np.errstate(over="ignore", invalid="ignore"):
            value = self.prior.log_density(
                log_phi, nugget=np.zeros(len(x)), X=self.X, kernel=self.kernel
            )
        value = np.where(np.isnan(value), -np.inf, value)
        return np.asarray(value if self.z is None else value + self.z.log_density(z))

    def gradient(self, x: FloatArray) -> FloatArray:
        """Gradient of the log density."""
        slope, _ = self.prior.gradient(
            x[:, : self.n_inputs], nugget=np.zeros(len(x)), X=self.X, kernel=self.kernel
        )
        if self.z is None:
            return slope
        return np.hstack([slope, self.z.gradient(x[:, self.n_inputs :])])

    def __repr__(self) -> str:
        return f"RobustReference({self.prior!r}, n_inputs={self.n_inputs}, z={self.z!r})"


@dataclass(frozen=True)
class HyperparameterDensity:
    """The posterior of u, made proper where its prior is not.

    An improper prior of phi (such as ``"flat"``, or a user's that does not say ``proper = True``)
    is multiplied by ``bounds``, a distribution of log phi; without it nothing would stop the
    draws from wandering off. A proper one stays as it is (``bounds`` is None).
    """

    posterior: Posterior
    bounds: Reference | None

    @property
    def description(self) -> dict[str, str]:
        """Data and model in words: what a checkpoint has to agree with."""
        posterior = self.posterior
        return {
            "X": _named(posterior.X),
            "y": _named(posterior.y),
            "H": _named(posterior.H),
            "kernel": repr(posterior.kernel),
            "mean": type(posterior.mean).__name__,
            "prior": repr(posterior.prior),
            "nugget": repr(posterior.nugget),
            **{name: _named(array) for name, array in posterior.identity.items()},
        }

    @property
    def value_and_gradient(self) -> Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None:
        """Log densities and gradients; None if the posterior has none."""
        if self.bounds is not None or not self.posterior.has_gradient:
            return None
        return self.posterior.value_and_gradient

    def __call__(self, u: FloatArray) -> FloatArray:
        """Log densities ``(m,)``, not normalised."""
        log_density = self.posterior(u)
        if self.bounds is None:
            return log_density
        log_phi = np.asarray(u)[:, : self.posterior.n_inputs]
        return np.asarray(log_density + self.bounds.log_density(log_phi))


def _named(array: FloatArray) -> str:
    """Size of an array, and the beginning of a checksum of its content."""
    size = " x ".join(str(length) for length in array.shape)
    content = np.ascontiguousarray(array).tobytes()
    return f"{size} with sha256 {hashlib.sha256(content).hexdigest()[:16]}"


def reference(posterior: Posterior, scheme: str | Scheme = "default") -> Reference:
    r"""Build the distribution of u from which the annealing starts.

    With :math:`r_i` the range of input i, by default :math:`\log(\ell_i / r_i)` is
    SoftUniform(-3, 5, 0.5): the log phi of the squared exponential is SoftUniform(-6, 10, 1) on
    inputs scaled to [0, 1], as :math:`\phi = \ell^2`. z is SoftUniform(-24, 2, 1).

    Parameters
    ----------
    posterior : Posterior
    scheme : {"default", "paper"} or Scheme
        "paper" gives :class:`PaperReference`.
    """
    power = posterior.kernel.phi_power
    shift = power * np.log(np.ptp(posterior.X, axis=0))
    estimated = posterior.nugget.n_params == 1
    if isinstance(scheme, str) and scheme == "paper":
        lower = getattr(posterior.nugget, "lower", None) if estimated else None
        return PaperReference(shift - power * _LENGTH_PAPER, shift + power * _LENGTH_PAPER, lower)
    prior = posterior.prior
    if type(prior) is JointlyRobust:
        z = SoftUniform(*_Z) if estimated else None
        return RobustReference(prior, posterior.X, posterior.kernel, z)
    low, high, width = _length_box(posterior)
    if estimated:
        low, high, width = np.append(low, _Z[0]), np.append(high, _Z[1]), np.append(width, _Z[2])
    return SoftUniform(low, high, width)


def _length_box(posterior: Posterior) -> tuple[FloatArray, FloatArray, FloatArray]:
    power = posterior.kernel.phi_power
    shift = power * np.log(np.ptp(posterior.X, axis=0))
    width = np.full(posterior.n_inputs, power * _LENGTH[2])
    return shift + power * _LENGTH[0], shift + power * _LENGTH[1], width


def density(posterior: Posterior) -> HyperparameterDensity:
    """Build the density of u to sample."""
    bounds = None if posterior.prior.proper else SoftUniform(*_length_box(posterior))
    return HyperparameterDensity(posterior, bounds)


def affordable_prior(n_runs: int, n_inputs: int) -> str:
    r"""Name of the prior that ``"auto"`` stands for.

    The reference prior where :math:`p n^3 \le 10^7` and :math:`p \le 10`, and beyond that the
    jointly robust one, which was made to approximate it: it costs no product of matrices for each
    input, and has a gradient.

    Parameters
    ----------
    n_runs, n_inputs : int
    """
    affordable = n_inputs <= 10 and n_inputs * float(n_runs) ** 3 <= 1e7
    return "reference" if affordable else "jointly_robust"


def leads(posterior: Posterior) -> list[Posterior]:
    """Cheaper posteriors that lead to one, the cheapest first.

    Many runs of many inputs are led to by fewer of them, and the reference prior by the jointly
    robust one. Empty where the posterior itself costs little, and for a prior of one's own.

    Parameters
    ----------
    posterior : Posterior
    """
    prior, nugget = posterior.prior, posterior.nugget
    if not (prior.uses_information or type(prior) is JointlyRobust):
        return []
    if nugget.uses_information:
        nugget = EstimatedNugget(UniformNugget(), getattr(nugget, "lower", LOWER_BOUND))
    robust = prior if type(prior) is JointlyRobust else JointlyRobust()
    order = np.random.default_rng(0).permutation(posterior.n_runs)
    found = []
    size = posterior.n_runs if posterior.n_params >= _MANY_PARAMS else 0
    while size >= _MANY_RUNS:
        size = int(size / _FEWER_RUNS)
        found.append(np.sort(order[:size]))
    chosen = [np.asarray(rows) for rows in reversed(found)]
    if prior.uses_information and posterior.n_runs >= _SOME_RUNS:
        chosen.append(np.arange(posterior.n_runs))
    return [posterior.of_runs(rows, robust, nugget) for rows in chosen]


def points_of_a_fit(n_params: int, scheme: str | Scheme = "default") -> int:
    """Points at each level that the predictions of an emulator need.

    Eight hundred give the same scores as two thousand; in many dimensions the
    clusters' covariances need more. The paper's scheme has the sampler's own default.
    """
    if isinstance(scheme, str) and scheme == "paper":
        return default_n_samples(n_params)
    return max(800, least_n_samples(n_params))


def sample_posterior(
    posterior: Posterior,
    n_samples: int | None = None,
    *,
    scheme: str | Scheme = "default",
    progress: bool | str = False,
    executor: Any = None,
    **options: Any,
) -> SampleResult:
    """Sample the hyper-parameters of a Gaussian process.

    Parameters
    ----------
    posterior : Posterior
    n_samples : int, optional
        By default as many as :func:`points_of_a_fit` says.
    scheme, progress, executor
        As in :func:`paims.sample`.
    **options
        Its other arguments, but for the density, its leads and the names, which are those of the
        posterior.

    Returns
    -------
    SampleResult
        Draws of u; names are those of ``posterior.parameter_names``.
    """
    if executor is not None:  # As many threads as workers are enough.
        posterior = copy(posterior)
        posterior.n_jobs = 1
    by_paper = isinstance(scheme, str) and scheme == "paper"
    ahead = [] if by_paper else leads(posterior)
    if n_samples is None:
        n_samples = points_of_a_fit(posterior.n_params, scheme)
    return sample(
        density(posterior),
        reference(ahead[0] if ahead else posterior, scheme),
        n_samples,
        scheme=scheme,
        lead=[density(cheaper) for cheaper in ahead],
        names=posterior.parameter_names,
        progress=progress,
        executor=executor,
        **options,
    )


def connect_modes(result: SampleResult, modes: Sequence[Mode]) -> list[Mode]:
    """Join modes without a valley between them: below some nugget the density hardly changes.

    Parameters
    ----------
    result : SampleResult
        Of :func:`sample_posterior`; knows its density.
    modes : sequence of Mode
    """
    if result.density_fn is None:
        raise ValueError("The result does not know its density; its modes cannot be connected.")
    return connect(list(modes), result.density_fn)


def find_best(
    posterior: Posterior, result: SampleResult, modes: Sequence[Mode], n_starts: int = 4
) -> Mode:
    """Find the point of highest density: climb from the highest modes.

    Parameters
    ----------
    posterior : Posterior
        Whose gradient, if it has one, is followed.
    result : SampleResult
        Of :func:`sample_posterior`; knows its density.
    modes : sequence of Mode
        Its modes, whatever their mass: a high peak may have little.
    n_starts : int
        Most modes to climb from.

    Returns
    -------
    Mode
        The top, with the mass of the mode that it belongs to.
    """
    if result.density_fn is None:
        raise ValueError("The result does not know its density; it cannot be climbed.")
    starts = sorted(modes, key=lambda mode: -mode.log_density)[:n_starts]
    location, height = result.best
    if height > starts[0].log_density:
        # The draws of goal="optimum" are higher than those of the posterior.
        off = [np.abs(location - m.mean) / np.where(m.sd > 0.0, m.sd, 1.0) for m in starts]
        nearest = int(np.argmin([distance.max() for distance in off]))
        starts[nearest] = replace(starts[nearest], location=location, log_density=height)
    tops = climb(starts, result.density_fn, density(posterior).value_and_gradient)
    return max(tops, key=lambda mode: mode.log_density)
