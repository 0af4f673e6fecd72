r"""Separable correlation functions :math:`k(x, x' \mid \phi) = \prod_i r(|x_i - x'_i|; \phi_i)`.

How :math:`\phi` enters differs: in :class:`SquaredExponential` it is a squared length (the
paper's choice: linear in the denominator), in all others a range in the units of the input.
:meth:`Kernel.length_scale` converts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from paims.gp._arrays import FloatArray

__all__ = [
    "Kernel",
    "Matern32",
    "Matern52",
    "PowerExponential",
    "SquaredExponential",
    "as_kernel",
]


def _distances(X: FloatArray, X2: FloatArray) -> FloatArray:
    """Distances ``(p, n, k)`` between the rows of ``X`` and ``X2``, one input at a time."""
    distances: FloatArray = np.abs(X.T[:, :, None] - X2.T[:, None, :])
    return distances


class Kernel(ABC):
    r"""A correlation function that is a product of one factor per input.

    A new one needs the two one-dimensional functions :meth:`factor` and
    :meth:`factor_derivative`; it then runs through NumPy. Those built in also have compiled code.

    Attributes
    ----------
    name : str
        How the kernel is asked for by name.
    phi_power : float
        :math:`\phi = \ell^{\text{phi\_power}}` with the length :math:`\ell` in the units of the
        input.
    """

    name: ClassVar[str] = "user"
    phi_power: float = 1.0

    @abstractmethod
    def factor(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r"""Correlation :math:`r(d; \phi)` of one input, for broadcastable arrays, ``d >= 0``."""

    @abstractmethod
    def factor_derivative(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r"""Give :math:`\partial r(d; \phi) / \partial \log \phi`."""

    def correlation(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        r"""Correlations between two sets of points, for a batch of parameters.

        Parameters
        ----------
        X : (n, p) ndarray
        X2 : (k, p) ndarray
        phi : (m, p) ndarray
            Positive parameters, one row for each matrix wanted.

        Returns
        -------
        (m, n, k) ndarray
            :math:`\prod_i r(|x_i - x'_i|; \phi_i)`.
        """
        result = np.ones((len(phi), len(X), len(X2)))
        for i, distance in enumerate(_distances(X, X2)):
            result *= self.factor(distance, phi[:, i, None, None])
        return result

    def correlation_minus_one(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """``correlation - 1``; a kernel may know it without cancellation for long ranges."""
        return self.correlation(X, X2, phi) - 1.0

    def derivatives(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        r"""Give :math:`\partial k / \partial \log \phi_i`, shape ``(m, p, n, k)``."""
        distances = _distances(X, X2)
        factors = np.stack(
            [self.factor(d, phi[:, i, None, None]) for i, d in enumerate(distances)], axis=1
        )
        # Products of the other factors, not a division by this one: a factor may be zero.
        result = np.ones_like(factors)
        np.cumprod(factors[:, :-1], axis=1, out=result[:, 1:])
        after = np.ones_like(factors[:, 0])
        for i in range(len(distances) - 1, -1, -1):
            result[:, i] *= after
            result[:, i] *= self.factor_derivative(distances[i], phi[:, i, None, None])
            after *= factors[:, i]
        return result

    def length_scale(self, phi: FloatArray) -> FloatArray:
        r"""Length :math:`\ell = \phi^{1/\text{phi\_power}}` in the units of the input."""
        return np.asarray(phi, dtype=np.float64) ** (1.0 / self.phi_power)

    def from_length_scale(self, length_scale: FloatArray) -> FloatArray:
        r""":math:`\phi` of a length in the units of the input; inverse of :meth:`length_scale`."""
        return np.asarray(length_scale, dtype=np.float64) ** self.phi_power

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({arguments})"


class _PositiveKernel(Kernel):
    """A kernel without zeros: its derivative is the correlation times a slope."""

    @abstractmethod
    def slope(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r"""Logarithmic derivative :math:`\partial \log r / \partial \log \phi`."""

    def factor_derivative(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        """Derive the factor: factor times slope."""
        return self.factor(distance, phi) * self.slope(distance, phi)

    def derivatives(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """Derive the correlation: correlation times slope, shape ``(m, p, n, k)``."""
        result = np.empty((*phi.shape, len(X), len(X2)))
        for i, distance in enumerate(_distances(X, X2)):
            result[:, i] = self.slope(distance, phi[:, i, None, None])
        result *= self.correlation(X, X2, phi)[:, None]
        return result


class SquaredExponential(_PositiveKernel):
    r"""Squared exponential, :math:`k = \exp\{-\frac12 \sum_i (x_i - x'_i)^2 / \phi_i\}`.

    The paper's correlation function: :math:`\phi_i` is linear in the denominator, hence a
    squared length, :math:`\phi_i = \ell_i^2`. With :math:`d = |x_i - x'_i|`,
    :math:`\partial k / \partial \log \phi_i = k \, d^2 / (2 \phi_i)`.
    """

    name = "squared_exponential"
    phi_power = 2.0

    def _exponent(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        exponent = np.zeros((len(phi), len(X), len(X2)))
        for i, distance in enumerate(_distances(X, X2)):
            exponent -= distance**2 / phi[:, i, None, None]
        exponent *= 0.5
        return exponent

    def correlation(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """Correlations ``(m, n, k)``, with one exponential for each pair."""
        exponent = self._exponent(X, X2, phi)
        np.exp(exponent, out=exponent)
        return exponent

    def correlation_minus_one(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """``correlation - 1`` without cancellation."""
        exponent = self._exponent(X, X2, phi)
        np.expm1(exponent, out=exponent)
        return exponent

    def factor(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`\exp\{-d^2 / (2\phi)\}`."""
        return np.exp(-0.5 * distance**2 / phi)

    def slope(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`d^2 / (2\phi)`."""
        return 0.5 * distance**2 / phi


class Matern32(_PositiveKernel):
    r"""Matern 3/2, :math:`k = \prod_i (1 + a_i) e^{-a_i}`, :math:`a_i = \sqrt3 |x_i-x'_i|/\phi_i`.

    :math:`\phi_i` is a range. :math:`\partial k / \partial \log \phi_i = k \, a_i^2 / (1 + a_i)`.
    """

    name = "matern32"

    def factor(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`(1 + a) e^{-a}`, :math:`a = \sqrt3 d / \phi`."""
        a = np.sqrt(3.0) * distance / phi
        result: FloatArray = (1.0 + a) * np.exp(-a)
        return result

    def slope(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`a^2 / (1 + a)`."""
        a = np.sqrt(3.0) * distance / phi
        result: FloatArray = a * a / (1.0 + a)
        return result


class Matern52(_PositiveKernel):
    r"""Matern 5/2, :math:`k = \prod_i (1 + a_i + a_i^2/3) e^{-a_i}` with :math:`a_i = \sqrt5 s_i`.

    :math:`\phi_i` is a range, :math:`s_i = |x_i - x'_i| / \phi_i`.
    :math:`\partial k / \partial \log \phi_i = k \, a_i^2 (1 + a_i) / (3 + 3 a_i + a_i^2)`.
    """

    name = "matern52"

    def factor(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`(1 + a + a^2/3) e^{-a}`, :math:`a = \sqrt5 d / \phi`."""
        a = np.sqrt(5.0) * distance / phi
        result: FloatArray = (1.0 + a + a * a / 3.0) * np.exp(-a)
        return result

    def slope(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`a^2 (1 + a) / (3 + 3a + a^2)`."""
        a = np.sqrt(5.0) * distance / phi
        result: FloatArray = a * a * (1.0 + a) / (3.0 + 3.0 * a + a * a)
        return result


class PowerExponential(_PositiveKernel):
    r"""Power exponential, :math:`k = \exp\{-\sum_i (|x_i - x'_i| / \phi_i)^\alpha\}`.

    :math:`\phi_i` is a range, :math:`\alpha` the ``power``.
    :math:`\partial k / \partial \log \phi_i = k \, \alpha \, (|x_i - x'_i| / \phi_i)^\alpha`.

    Parameters
    ----------
    power : float, default 1.9
        Exponent, in (0, 2]. With 2 the process is infinitely smooth (then
        :math:`\phi_i^2 = 2 \phi_i^{SE}` for the :class:`SquaredExponential`), below 2 it is not
        differentiable but better conditioned.
    """

    name = "power_exponential"

    def __init__(self, power: float = 1.9) -> None:
        if not 0.0 < power <= 2.0:
            raise ValueError(
                f"power must be in (0, 2], or the correlation is not positive definite; "
                f"got {power!r}."
            )
        self.power = float(power)

    def _exponent(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        exponent = np.zeros((len(phi), len(X), len(X2)))
        for i, distance in enumerate(_distances(X, X2)):
            exponent -= (distance / phi[:, i, None, None]) ** self.power
        return exponent

    def correlation(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """Correlations ``(m, n, k)``, with one exponential for each pair."""
        exponent = self._exponent(X, X2, phi)
        np.exp(exponent, out=exponent)
        return exponent

    def correlation_minus_one(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """``correlation - 1`` without cancellation."""
        exponent = self._exponent(X, X2, phi)
        np.expm1(exponent, out=exponent)
        return exponent

    def factor(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`\exp\{-(d/\phi)^\alpha\}`."""
        return np.exp(-((distance / phi) ** self.power))

    def slope(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`\alpha (d/\phi)^\alpha`."""
        return self.power * (distance / phi) ** self.power


#: The kernels with compiled code; the position is the code by which the compiled loop knows it.
COMPILED_KERNELS: tuple[type[Kernel], ...] = (
    SquaredExponential,
    Matern32,
    Matern52,
    PowerExponential,
)


def compiled_code(kernel: Kernel) -> int | None:
    """Code of a kernel that has compiled code, else None.

    The exact type is asked for: a subclass may have changed the formula.
    """
    return COMPILED_KERNELS.index(type(kernel)) if type(kernel) in COMPILED_KERNELS else None


def as_kernel(kernel: str | Kernel) -> Kernel:
    """Kernel object of a name, or the object itself."""
    if isinstance(kernel, Kernel):
        return kernel
    by_name = {cls.name: cls for cls in COMPILED_KERNELS}
    if isinstance(kernel, str) and kernel in by_name:
        return by_name[kernel]()
    raise ValueError(
        f"kernel must be one of {sorted(by_name)} or an object of a subclass of "
        f"paims.gp.Kernel; got {kernel!r}."
    )
