r"""Priors of the correlation parameters, all as log densities in :math:`\log\phi`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from paims._arrays import FloatArray
from paims.gp._kernels import Kernel
from paims.gp._registry import Named, as_object, follows, registry

__all__ = [
    "PRIORS",
    "Flat",
    "JointlyRobust",
    "LogLaplace",
    "LogNormal",
    "Prior",
    "Reference",
    "SciPyPrior",
]


class Prior(Named, ABC):
    r"""Prior density of :math:`\log\phi`.

    A new one needs :meth:`log_density`; it may take the context that it has no use for as
    ``**context``. With :meth:`gradient` it serves :meth:`Posterior.value_and_gradient` too.

    Attributes
    ----------
    proper : bool
        Whether it makes the posterior of the hyper-parameters proper, that is, whether the
        posterior falls off in every direction.
    normalised : bool
        Whether its total over :math:`\log\phi` is known: 1, or at least the same for every kernel.
        Evidences under it may then be compared between kernels.
    uses_information : bool
        Whether it needs the determinant of the information matrix, which is most of the work of
        an evaluation.
    """

    proper: bool = False
    normalised: bool = False
    uses_information: bool = False

    @abstractmethod
    def log_density(
        self,
        log_phi: FloatArray,
        *,
        nugget: FloatArray,
        X: FloatArray,
        kernel: Kernel,
        log_det_information: FloatArray,
    ) -> FloatArray:
        r"""Log density in :math:`\log\phi` given the nugget.

        Parameters
        ----------
        log_phi : (m, p) ndarray
        nugget : (m,) ndarray
        X : (n, p) ndarray
            Training inputs.
        kernel : Kernel
            Tells how phi relates to a length.
        log_det_information : (m,) ndarray
            log|I|; zeros unless ``uses_information``.

        Returns
        -------
        (m,) ndarray
        """

    @property
    def has_gradient(self) -> bool:
        """Whether there is a :meth:`gradient` of this :meth:`log_density`."""
        return follows(type(self), "gradient", "log_density")

    def gradient(
        self, log_phi: FloatArray, *, nugget: FloatArray, X: FloatArray, kernel: Kernel
    ) -> tuple[FloatArray, FloatArray]:
        r"""Gradient of :meth:`log_density`.

        Parameters
        ----------
        log_phi, nugget, X, kernel
            As for :meth:`log_density`.

        Returns
        -------
        in_log_phi : (m, p) ndarray
        in_nugget : (m,) ndarray
            With respect to the nugget itself; zeros for a prior that does not depend on it.
        """
        raise NotImplementedError(f"{self!r} has no gradient.")

    def check(self, n_inputs: int) -> None:
        """Raise if the prior does not fit ``n_inputs`` inputs; most fit any number."""


class Reference(Prior):
    r"""Reference prior (Paulo 2005), :math:`p(\log\phi) \propto |I(\log\phi)|^{1/2}`.

    .. math::
        I = \begin{pmatrix} n-q & \mathrm{tr} W_j \\ \mathrm{tr} W_i & \mathrm{tr} W_i W_j
        \end{pmatrix}, \qquad W_i = \frac{\partial K}{\partial \log\phi_i} Q .

    The derivatives are with respect to :math:`\log\phi`, so the Jacobian is in it.
    """

    name = "reference"
    proper = True
    uses_information = True

    def log_density(
        self, log_phi: FloatArray, *, log_det_information: FloatArray, **context: Any
    ) -> FloatArray:
        r""":math:`\frac12 \log|I|`."""
        return 0.5 * log_det_information


class JointlyRobust(Prior):
    r"""Jointly robust prior (Gu 2018), with the defaults of the RobustGaSP package.

    With inverse ranges :math:`b_l = 1/\ell_l`, and :math:`\ell_l` the kernel's length scale
    (:math:`\sqrt{\phi_l}` for the squared exponential, :math:`\phi_l` for the others),

    .. math::
        p(b) \propto t^a e^{-b t}, \quad t = \sum_l C_l b_l + \delta, \quad
        C_l = \frac{\max_i x_{il} - \min_i x_{il}}{n^{1/p}},

    and :math:`p(\log\phi) = p(b) \prod_l b_l / \mathrm{phi\_power}`. It has the reference prior's
    tails but no :math:`n^3 p` work: the prior for many runs.

    Parameters
    ----------
    a : float, default 0.2
        Exponent, greater than -p.
    b : float, optional
        Rate; by default :math:`n^{-1/p} (a + p)`.
    include_nugget : bool, default True
        Whether :math:`\delta` is in :math:`t`, as published: with a uniform nugget prior, the
        joint prior of ranges and nugget is then Gu's, truncated at :math:`\delta = 1`. Without
        it ranges and nugget are independent.

    Notes
    -----
    The constant is that of the density without nugget, so it is normalised if the nugget is 0
    or not included.
    """

    name = "jointly_robust"
    proper = True
    normalised = True

    def __init__(
        self, a: float = 0.2, b: float | None = None, *, include_nugget: bool = True
    ) -> None:
        if b is not None and not b > 0.0:
            raise ValueError(f"b must be positive; got {b!r}.")
        self.a = float(a)
        self.b = None if b is None else float(b)
        self.include_nugget = bool(include_nugget)

    def check(self, n_inputs: int) -> None:
        """Raise if ``a <= -p``."""
        if not self.a > -n_inputs:
            raise ValueError(
                f"a must be greater than -p = {-n_inputs} for the prior to be proper; "
                f"got {self.a}."
            )

    def log_density(
        self,
        log_phi: FloatArray,
        *,
        nugget: FloatArray,
        X: FloatArray,
        kernel: Kernel,
        **context: Any,
    ) -> FloatArray:
        r""":math:`a \log t - b t + \sum_l \log b_l` and the constant."""
        p = X.shape[1]
        C, rate = self.scales(X)
        log_b = -log_phi / kernel.phi_power
        t = np.exp(log_b) @ C + (nugget if self.include_nugget else 0.0)
        log_constant = (
            np.log(C).sum()
            + gammaln(p)
            + (self.a + p) * np.log(rate)
            - gammaln(self.a + p)
            - p * np.log(kernel.phi_power)
        )
        result: FloatArray = log_constant + self.a * np.log(t) - rate * t + log_b.sum(axis=1)
        return result

    def gradient(
        self, log_phi: FloatArray, *, nugget: FloatArray, X: FloatArray, kernel: Kernel
    ) -> tuple[FloatArray, FloatArray]:
        r"""In :math:`\log\phi_l`: :math:`-\{(a/t - b) C_l b_l + 1\} / \mathrm{phi\_power}`."""
        C, rate = self.scales(X)
        terms = np.exp(-log_phi / kernel.phi_power) * C
        slope = self.a / (terms.sum(axis=1) + self.include_nugget * nugget) - rate
        in_log_phi: FloatArray = -(slope[:, None] * terms + 1.0) / kernel.phi_power
        return in_log_phi, self.include_nugget * slope

    def scales(self, X: FloatArray) -> tuple[FloatArray, float]:
        """Give C ``(p,)`` and b."""
        n, p = X.shape
        per_input = n ** (-1.0 / p)
        rate = self.b if self.b is not None else per_input * (self.a + p)
        return np.ptp(X, axis=0) * per_input, rate


class LogNormal(Prior):
    r"""Independent normal distributions of :math:`\log\phi_i`: a ridge on the log scale.

    Parameters
    ----------
    mean, sd : float or (p,) array_like, default 0.0 and 3.0
        Of :math:`\log\phi_i`. The defaults are weak for inputs scaled to [0, 1]: 95 % of
        :math:`\log\phi_i` within -6 and 6. Other units want another mean.
    """

    name = "log_normal"
    proper = True
    normalised = True

    def __init__(self, mean: Any = 0.0, sd: Any = 3.0) -> None:
        self.mean, self.sd = _location_and_scale("mean", mean, "sd", sd)

    def check(self, n_inputs: int) -> None:
        """Raise if the parameters are for another number of inputs."""
        _check_length(self.mean, n_inputs)

    def log_density(self, log_phi: FloatArray, **context: Any) -> FloatArray:
        r""":math:`\sum_i \log N(\log\phi_i; \text{mean}_i, \text{sd}_i^2)`."""
        standard = (log_phi - self.mean) / self.sd
        terms = -0.5 * standard**2 - np.log(self.sd) - 0.5 * np.log(2.0 * np.pi)
        result: FloatArray = terms.sum(axis=1)
        return result

    def gradient(self, log_phi: FloatArray, **context: Any) -> tuple[FloatArray, FloatArray]:
        r""":math:`(\text{mean}_i - \log\phi_i) / \text{sd}_i^2`."""
        return (self.mean - log_phi) / self.sd**2, np.zeros(len(log_phi))


class LogLaplace(Prior):
    r"""Independent Laplace distributions of :math:`\log\phi_i`: a lasso on the log scale.

    Parameters
    ----------
    location, scale : float or (p,) array_like, default 0.0 and 2.0
        Of :math:`\log\phi_i`. The defaults are weak for inputs scaled to [0, 1]: 95 % of
        :math:`\log\phi_i` within -6 and 6. Other units want another location.
    """

    name = "log_laplace"
    proper = True
    normalised = True

    def __init__(self, location: Any = 0.0, scale: Any = 2.0) -> None:
        self.location, self.scale = _location_and_scale("location", location, "scale", scale)

    def check(self, n_inputs: int) -> None:
        """Raise if the parameters are for another number of inputs."""
        _check_length(self.location, n_inputs)

    def log_density(self, log_phi: FloatArray, **context: Any) -> FloatArray:
        r""":math:`\sum_i -|\log\phi_i - l_i| / s_i - \log(2 s_i)`, location l and scale s."""
        terms = -np.abs(log_phi - self.location) / self.scale - np.log(2.0 * self.scale)
        result: FloatArray = terms.sum(axis=1)
        return result

    def gradient(self, log_phi: FloatArray, **context: Any) -> tuple[FloatArray, FloatArray]:
        r""":math:`\mathrm{sign}(l_i - \log\phi_i) / s_i`, and 0 at the location itself."""
        return np.sign(self.location - log_phi) / self.scale, np.zeros(len(log_phi))


class Flat(Prior):
    r"""Density 1 in :math:`\log\phi`.

    The posterior is improper: the integrated likelihood tends to positive constants both as
    :math:`\phi \to 0` and, with a nugget, as :math:`\phi \to \infty`. It is here to look at the
    likelihood; a sampler needs bounds of its own with it.
    """

    name = "flat"

    def log_density(self, log_phi: FloatArray, **context: Any) -> FloatArray:
        """Zeros."""
        return np.zeros(len(log_phi))

    def gradient(self, log_phi: FloatArray, **context: Any) -> tuple[FloatArray, FloatArray]:
        """Zeros."""
        return np.zeros_like(log_phi), np.zeros(len(log_phi))


class SciPyPrior(Prior):
    r"""Independent priors of :math:`\phi_i` (not of its logarithm) from SciPy distributions.

    :math:`\log p(\log\phi) = \sum_i \log p_i(\phi_i) + \log\phi_i`.

    Parameters
    ----------
    distributions : frozen distribution or sequence of them
        Each has a method ``logpdf``; one for all inputs, or one for each.
    """

    proper = True
    normalised = True

    def __init__(self, distributions: Any) -> None:
        several = isinstance(distributions, Sequence)
        for distribution in distributions if several else [distributions]:
            if not callable(getattr(distribution, "logpdf", None)):
                raise TypeError(
                    "A prior from SciPy must be a frozen continuous distribution, such as "
                    f"scipy.stats.gamma(2.0), or a list of them; got {distribution!r}."
                )
        self.distributions = list(distributions) if several else distributions

    def check(self, n_inputs: int) -> None:
        """Raise if there are distributions for another number of inputs."""
        if isinstance(self.distributions, list) and len(self.distributions) != n_inputs:
            raise ValueError(
                f"The list of priors must have one distribution for each of the {n_inputs} "
                f"inputs; got {len(self.distributions)}."
            )

    def log_density(self, log_phi: FloatArray, **context: Any) -> FloatArray:
        r""":math:`\sum_i \log p_i(\phi_i) + \log\phi_i`."""
        result: FloatArray = self._terms(log_phi).sum(axis=1)
        return result

    def gradient(self, log_phi: FloatArray, **context: Any) -> tuple[FloatArray, FloatArray]:
        r"""By central differences of fourth order in :math:`\log\phi_i`.

        With steps of 1/1000: right to about ten digits inside the support; 0 within two steps of
        its ends.
        """
        h = 1e-3
        with np.errstate(all="ignore"):
            near = self._terms(log_phi + h) - self._terms(log_phi - h)
            far = self._terms(log_phi + 2.0 * h) - self._terms(log_phi - 2.0 * h)
            slopes = (8.0 * near - far) / (12.0 * h)
        return np.where(np.isfinite(slopes), slopes, 0.0), np.zeros(len(log_phi))

    def _terms(self, log_phi: FloatArray) -> FloatArray:
        """Log density in log phi of each input, ``(m, p)``."""
        p = log_phi.shape[1]
        given = self.distributions
        each = given if isinstance(given, list) else [given] * p
        phi = np.exp(log_phi)
        terms = [each[i].logpdf(phi[:, i]) + log_phi[:, i] for i in range(p)]
        return np.stack(terms, axis=1)

    def __repr__(self) -> str:
        if isinstance(self.distributions, list):
            return f"SciPyPrior([{', '.join(map(_describe, self.distributions))}])"
        return f"SciPyPrior({_describe(self.distributions)})"


def _describe(distribution: Any) -> str:
    """How a frozen distribution was made; SciPy's own repr is an address."""
    if not hasattr(distribution, "dist"):
        return repr(distribution)
    arguments = [f"{value!r}" for value in distribution.args]
    arguments += [f"{key}={value!r}" for key, value in distribution.kwds.items()]
    return f"{distribution.dist.name}({', '.join(arguments)})"


def _location_and_scale(
    location_name: str, location: Any, scale_name: str, scale: Any
) -> tuple[FloatArray, FloatArray]:
    location, scale = np.broadcast_arrays(
        np.asarray(location, dtype=np.float64), np.asarray(scale, dtype=np.float64)
    )
    if location.ndim > 1 or not np.isfinite(location).all():
        raise ValueError(f"{location_name} must be a finite number or one for each input.")
    if not (np.isfinite(scale).all() and (scale > 0.0).all()):
        raise ValueError(f"{scale_name} must be positive and finite; got {scale!r}.")
    return location.copy(), scale.copy()


def _check_length(parameter: FloatArray, n_inputs: int) -> None:
    if parameter.ndim == 1 and len(parameter) != n_inputs:
        raise ValueError(
            f"The prior has parameters for {len(parameter)} inputs, X has {n_inputs} columns."
        )


#: The priors of phi that can be asked for by name.
PRIORS: dict[str, type[Prior]] = registry(Prior, globals())


def as_prior(prior: Any) -> Prior:
    """Prior object of a name or of SciPy distributions, or the object itself."""
    if not isinstance(prior, str | Prior) and (
        isinstance(prior, Sequence) or hasattr(prior, "logpdf")
    ):
        return SciPyPrior(prior)
    distribution = ", a frozen SciPy distribution of phi (or a list of them),"
    return as_object("prior", prior, Prior, PRIORS, distribution)
