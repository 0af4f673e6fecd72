r"""The nugget :math:`\delta`, the paper's :math:`\phi_\delta`: :math:`K = k(X, X) + \delta I`.

An estimated nugget is sampled as :math:`z`, with
:math:`\delta = l_b + (1 - l_b) / (1 + e^{-z})` and :math:`l_b = 10^{-12}` (section 5 of the
paper). Logarithms are formed from :math:`z`, not from :math:`\delta`: near either end the
nugget has lost the digits that they need.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
from scipy.special import betaincc, betaln, expit, log_expit

from paims._arrays import FloatArray
from paims.gp._registry import Named, as_object, follows, registry

__all__ = [
    "NUGGET_PRIORS",
    "BetaNugget",
    "EstimatedNugget",
    "FixedNugget",
    "Nugget",
    "NuggetPrior",
    "ReferenceNugget",
    "SpikeSlabNugget",
    "UniformNugget",
]

LOWER_BOUND = 1e-12
# Where the spike of tiny nuggets begins with few inputs, and how many these are.
_LOW_OF_FEW, _FEW_INPUTS = 1e-10, 3


def _slope(z: FloatArray, lower: float) -> FloatArray:
    r"""Give :math:`d\delta/dz = (1 - l_b)\, s(z)\, s(-z)` with the sigmoid s."""
    result: FloatArray = (1.0 - lower) * expit(z) * expit(-z)
    return result


class NuggetPrior(Named, ABC):
    """Prior density of an estimated nugget, with respect to the nugget itself.

    A new one needs :meth:`log_density`; with :meth:`gradient` it serves
    :meth:`Posterior.value_and_gradient` too.
    """

    #: Whether the nugget is a row of the information matrix of the reference prior.
    uses_information: ClassVar[bool] = False

    @classmethod
    def of_inputs(cls, n_inputs: int) -> Self:
        """What the name stands for with so many inputs."""
        return cls()

    @abstractmethod
    def log_density(self, z: FloatArray, nugget: FloatArray, lower: float) -> FloatArray:
        r"""Log density of :math:`\delta` (not of z) at ``nugget``, both ``(m,)``.

        ``z`` is given beside the nugget for accuracy: :math:`\log(1-\delta) = \log(1-l_b) +
        \log\,\mathrm{sigmoid}(-z)`.
        """

    @property
    def has_gradient(self) -> bool:
        """Whether there is a :meth:`gradient` of this :meth:`log_density`."""
        return follows(type(self), "gradient", "log_density")

    def gradient(self, z: FloatArray, nugget: FloatArray, lower: float) -> FloatArray:
        """Derivative in z of :meth:`log_density`, which takes the same arguments."""
        raise NotImplementedError(f"{self!r} has no gradient.")


class UniformNugget(NuggetPrior):
    r"""Uniform on :math:`(l_b, 1)`, the prior of the paper's text."""

    name = "uniform"

    def log_density(self, z: FloatArray, nugget: FloatArray, lower: float) -> FloatArray:
        r""":math:`-\log(1 - l_b)`."""
        return np.full(np.shape(z), -np.log1p(-lower))

    def gradient(self, z: FloatArray, nugget: FloatArray, lower: float) -> FloatArray:
        """Zeros."""
        return np.zeros(np.shape(z))


class BetaNugget(NuggetPrior):
    r"""Beta(a, b), truncated to :math:`(l_b, 1)`.

    :math:`p(\delta) = \delta^{a-1} (1-\delta)^{b-1} / (B(a, b) \Pr(\delta > l_b))`.

    Parameters
    ----------
    a, b : float, default 0.5
        Exponents; the defaults are the paper's non-informative choice.
    """

    name = "beta"

    def __init__(self, a: float = 0.5, b: float = 0.5) -> None:
        if not (a > 0.0 and b > 0.0):
            raise ValueError(f"a and b must be positive; got a={a!r}, b={b!r}.")
        self.a = float(a)
        self.b = float(b)

    def log_density(self, z: FloatArray, nugget: FloatArray, lower: float) -> FloatArray:
        r""":math:`(a-1)\log\delta + (b-1)\log(1-\delta)`, normalised on :math:`(l_b, 1)`."""
        log_complement = np.log1p(-lower) + log_expit(-z)
        log_mass = betaln(self.a, self.b) + np.log(betaincc(self.a, self.b, lower))
        result: FloatArray = (
            (self.a - 1.0) * np.log(nugget) + (self.b - 1.0) * log_complement - log_mass
        )
        return result

    def gradient(self, z: FloatArray, nugget: FloatArray, lower: float) -> FloatArray:
        r""":math:`(a-1)\, \delta'(z)/\delta - (b-1)\, \mathrm{sigmoid}(z)`."""
        result: FloatArray = (self.a - 1.0) * _slope(z, lower) / nugget
        result -= (self.b - 1.0) * expit(z)
        return result


class SpikeSlabNugget(NuggetPrior):
    r"""No noise to speak of, or any: a spike of tiny nuggets beside the uniform prior.

    .. math:: p(\delta) = \frac{w}{M} \frac{\delta}{(\delta^2 + a^2)(1 + \delta^2/b^2)}
              + \frac{1 - w}{1 - l_b}, \qquad
              M = \frac{1}{2 (1 - a^2/b^2)}
              \log\frac{(1 + a^2)(l_b^2 + b^2)}{(l_b^2 + a^2)(1 + b^2)}.

    The spike is uniform in :math:`\log\delta` between a and b and falls as :math:`\delta^2` and
    :math:`\delta^{-2}` beyond. The runs decide between spike and slab: the uniform prior alone
    gives a deterministic simulator no chance, as the nuggets below :math:`10^{-5}` have
    probability :math:`10^{-5}`. The burden of proof is on "no noise", which is the bolder claim.
    The nugget is a share of the process's variance: where length-scales are long and the variance
    large, a tiny one may still be noise that matters.

    Parameters
    ----------
    low, high : float, default 1e-8 and 1e-5
        a and b. Nuggets below a change predictions little; from b on a nugget is noise. The name
        alone stands for a = 1e-10 with up to three inputs, where runs lie close to each other and
        a smooth simulator is known that well.
    probability : float, default 0.1
        w, prior probability of the spike.
    """

    name = "spike_slab"

    def __init__(self, low: float = 1e-8, high: float = 1e-5, probability: float = 0.1) -> None:
        if not LOWER_BOUND <= low < high <= 1.0:
            raise ValueError(
                f"low and high must be such that {LOWER_BOUND} <= low < high <= 1; "
                f"got {low!r} and {high!r}."
            )
        if not 0.0 < probability < 1.0:
            raise ValueError(f"probability must be in (0, 1); got {probability!r}.")
        self.low = float(low)
        self.high = float(high)
        self.probability = float(probability)

    @classmethod
    def of_inputs(cls, n_inputs: int) -> Self:
        """With few inputs a spike that reaches further down, by ``benchmarks.functions``."""
        return cls(_LOW_OF_FEW) if n_inputs <= _FEW_INPUTS else cls()

    def log_density(self, z: FloatArray, nugget: FloatArray, lower: float) -> FloatArray:
        """Log of the sum of the two, each normalised on :math:`(l_b, 1)`."""
        spike, slab = self._log_parts(nugget, lower)
        result: FloatArray = np.logaddexp(spike, slab)
        return result

    def gradient(self, z: FloatArray, nugget: FloatArray, lower: float) -> FloatArray:
        r"""The spike's share of the density, times :math:`\delta'(z)` and its own slope.

        That is :math:`1/\delta - 2\delta/(\delta^2 + a^2) - 2\delta/(\delta^2 + b^2)`.
        """
        spike, slab = self._log_parts(nugget, lower)
        slope = 1.0 / nugget - 2.0 * nugget / (nugget**2 + self.low**2)
        slope -= 2.0 * nugget / (nugget**2 + self.high**2)
        result: FloatArray = expit(spike - slab) * slope * _slope(z, lower)
        return result

    def _log_parts(self, nugget: FloatArray, lower: float) -> tuple[FloatArray, float]:
        """Logs of spike and slab."""
        a2, b2, w = self.low**2, self.high**2, self.probability
        # The ratio in M is near 1 for a spike below the lower bound: from its difference to 1.
        excess = (b2 - a2) * (1.0 - lower**2) / ((lower**2 + a2) * (1.0 + b2))
        mass = 0.5 * np.log1p(excess) * b2 / (b2 - a2)
        spike = np.log(w / mass) + np.log(nugget) - np.log(nugget**2 + a2)
        spike -= np.log1p(nugget**2 / b2)
        return spike, float(np.log1p(-w) - np.log1p(-lower))


class ReferenceNugget(NuggetPrior):
    r"""Reference prior, jointly with :math:`\phi`: :math:`\log\delta` is one more row of I.

    :math:`|I|^{1/2}` is then a density in :math:`(\log\phi, \log\delta)`. In
    :math:`\delta` it is :math:`|I|^{1/2} / \delta`: this class gives the
    :math:`-\log\delta`, the determinant comes with the prior of :math:`\phi`, which must be the
    reference prior too.
    """

    name = "reference"
    uses_information = True

    def log_density(self, z: FloatArray, nugget: FloatArray, lower: float) -> FloatArray:
        r""":math:`-\log\delta`, from a density in :math:`\log\delta` to one in :math:`\delta`."""
        return -np.log(nugget)

    def gradient(self, z: FloatArray, nugget: FloatArray, lower: float) -> FloatArray:
        r""":math:`-\delta'(z) / \delta`; the determinant's is with the prior of phi."""
        return -_slope(z, lower) / nugget


class Nugget(ABC):
    """How the nugget is treated: estimated or fixed."""

    #: Number of parameters, 0 or 1.
    n_params: ClassVar[int]
    #: Whether the nugget is a row of the information matrix of the reference prior.
    uses_information: bool = False

    @abstractmethod
    def value(self, z: FloatArray) -> FloatArray:
        """Nuggets ``(m,)`` of a batch ``z`` of shape ``(m, n_params)``."""

    @abstractmethod
    def parameter(self, nugget: FloatArray) -> FloatArray:
        """Parameters ``(m, n_params)`` of nuggets ``(m,)``; inverse of :meth:`value`."""

    @abstractmethod
    def log_prior(self, z: FloatArray) -> FloatArray:
        """Log prior density ``(m,)`` with respect to the nugget (0 if it is fixed)."""

    @abstractmethod
    def log_jacobian(self, z: FloatArray) -> FloatArray:
        r"""Log Jacobian :math:`\log |d\delta/dz|`, shape ``(m,)`` (0 if it is fixed)."""

    @property
    def has_gradient(self) -> bool:
        """Whether there are :meth:`slope` and :meth:`gradient` of what the others give."""
        cls = type(self)
        return (
            follows(cls, "slope", "value")
            and follows(cls, "gradient", "log_prior")
            and follows(cls, "gradient", "log_jacobian")
        )

    def slope(self, z: FloatArray) -> FloatArray:
        r"""Derivative :math:`d\delta/dz`, shape ``(m, n_params)``."""
        raise NotImplementedError(f"{self!r} has no gradient.")

    def gradient(self, z: FloatArray) -> FloatArray:
        """Derivative in z of log prior and log Jacobian together, shape ``(m, n_params)``."""
        raise NotImplementedError(f"{self!r} has no gradient.")


class EstimatedNugget(Nugget):
    r"""A nugget to be estimated, :math:`\delta = l_b + (1 - l_b)\,\mathrm{sigmoid}(z)`.

    Parameters
    ----------
    prior : str or NuggetPrior, default "uniform"
        A name of ``paims.gp.NUGGET_PRIORS``, or an object.
    lower : float, default 1e-12
        Lower bound :math:`l_b`.
    """

    n_params = 1

    def __init__(self, prior: str | NuggetPrior = "uniform", lower: float = LOWER_BOUND) -> None:
        if not 0.0 < lower < 1.0:
            raise ValueError(f"lower must be in (0, 1); got {lower!r}.")
        self.prior = as_nugget_prior(prior)
        self.lower = float(lower)
        self.uses_information = self.prior.uses_information

    def value(self, z: FloatArray) -> FloatArray:
        r""":math:`l_b + (1 - l_b)\,\mathrm{sigmoid}(z)`."""
        result: FloatArray = self.lower + (1.0 - self.lower) * expit(z[:, 0])
        return result

    def parameter(self, nugget: FloatArray) -> FloatArray:
        r""":math:`z = \log(\delta - l_b) - \log(1 - \delta)`."""
        inside = (nugget > self.lower) & (nugget < 1.0)
        if not inside.all():
            raise ValueError(
                f"An estimated nugget lies in ({self.lower}, 1); got {nugget[~inside][0]}."
            )
        return (np.log(nugget - self.lower) - np.log1p(-nugget))[:, None]

    def log_prior(self, z: FloatArray) -> FloatArray:
        """Log density of the prior at the nugget of z."""
        return self.prior.log_density(z[:, 0], self.value(z), self.lower)

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        r""":math:`\log\{(1 - l_b)\, s(z)\, s(-z)\}` with the sigmoid s."""
        # (1 - lb) s (1 - s) with s = sigmoid(z) and 1 - s = sigmoid(-z): nothing cancels.
        result: FloatArray = np.log1p(-self.lower) + log_expit(z[:, 0]) + log_expit(-z[:, 0])
        return result

    @property
    def has_gradient(self) -> bool:
        """Whether the prior has one."""
        return super().has_gradient and self.prior.has_gradient

    def slope(self, z: FloatArray) -> FloatArray:
        r""":math:`(1 - l_b)\, s(z)\, s(-z)` with the sigmoid s."""
        return _slope(z, self.lower)

    def gradient(self, z: FloatArray) -> FloatArray:
        r"""The prior's, and :math:`s(-z) - s(z)` of the Jacobian."""
        prior = self.prior.gradient(z[:, 0], self.value(z), self.lower)
        result: FloatArray = prior[:, None] + expit(-z) - expit(z)
        return result

    def __repr__(self) -> str:
        return f"EstimatedNugget(prior={self.prior!r}, lower={self.lower!r})"


class FixedNugget(Nugget):
    """A known nugget.

    Parameters
    ----------
    nugget : float, default 0.0
        Not negative. With 0 the emulator interpolates; the correlation matrix is then singular
        to working precision for long ranges, and such points have zero density.
    """

    n_params = 0

    def __init__(self, nugget: float = 0.0) -> None:
        if not (np.isfinite(nugget) and nugget >= 0.0):
            raise ValueError(f"A fixed nugget must be finite and not negative; got {nugget!r}.")
        self.nugget = float(nugget)

    def value(self, z: FloatArray) -> FloatArray:
        """Repeat the number m times."""
        return np.full(len(z), self.nugget)

    def parameter(self, nugget: FloatArray) -> FloatArray:
        """No parameter."""
        if not (nugget == self.nugget).all():
            raise ValueError(f"The nugget is fixed at {self.nugget}; got another value.")
        return np.empty((len(nugget), 0))

    def log_prior(self, z: FloatArray) -> FloatArray:
        """Zeros."""
        return np.zeros(len(z))

    def log_jacobian(self, z: FloatArray) -> FloatArray:
        """Zeros."""
        return np.zeros(len(z))

    def slope(self, z: FloatArray) -> FloatArray:
        """No columns."""
        return np.empty((len(z), 0))

    def gradient(self, z: FloatArray) -> FloatArray:
        """No columns."""
        return np.empty((len(z), 0))

    def __repr__(self) -> str:
        return f"FixedNugget({self.nugget!r})"


#: The priors of the nugget that can be asked for by name.
NUGGET_PRIORS: dict[str, type[NuggetPrior]] = registry(NuggetPrior, globals())


def as_nugget_prior(prior: str | NuggetPrior) -> NuggetPrior:
    """Nugget prior of a name, or the object itself."""
    return as_object("nugget_prior", prior, NuggetPrior, NUGGET_PRIORS)


def as_nugget(nugget: str | float | Nugget, prior: str | NuggetPrior, n_inputs: int) -> Nugget:
    """Nugget treatment of ``"estimate"``, of a number, or the object itself.

    ``prior`` is used only for ``"estimate"``; what its name stands for may depend on the number
    of inputs.
    """
    if isinstance(nugget, Nugget):
        return nugget
    if isinstance(nugget, str) and nugget == "estimate":
        named = as_nugget_prior(prior)
        return EstimatedNugget(named.of_inputs(n_inputs) if isinstance(prior, str) else named)
    if isinstance(nugget, int | float | np.number) and not isinstance(nugget, bool):
        return FixedNugget(float(nugget))
    raise ValueError(
        "nugget must be 'estimate', a number that is not negative, or an object of a subclass "
        f"of paims.gp.Nugget; got {nugget!r}."
    )
