r"""Separable correlation functions :math:`k(x, x' \mid \phi) = \prod_i r(|x_i - x'_i|; \phi_i)`.

How :math:`\phi` enters differs: in :class:`SquaredExponential` it is a squared length (the
paper's choice: linear in the denominator), in all others a range in the units of the input.
:meth:`Kernel.length_scale` converts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar

import numpy as np

from paims._arrays import FloatArray

__all__ = [
    "Kernel",
    "Matern32",
    "Matern52",
    "Matern72",
    "PowerExponential",
    "SquaredExponential",
    "as_kernel",
]


# From this scaled distance on every built-in correlation is exactly 0 in double precision, and so
# must be its derivative: not 0 times an overflow.
_FAR = 1e4


def _distances(X: FloatArray, X2: FloatArray) -> Iterator[FloatArray]:
    """Distances ``(n, k)`` between the rows of ``X`` and ``X2``, one input after the other."""
    for column, column2 in zip(X.T, X2.T, strict=True):
        distance = column[:, None] - column2
        yield np.abs(distance, out=distance)


class Kernel(ABC):
    r"""A correlation function that is a product of one factor per input.

    A new one needs the two one-dimensional functions :meth:`factor` and
    :meth:`factor_derivative`; it then runs through NumPy. Those built in also have compiled code.

    Attributes
    ----------
    name : str
        How the kernel is asked for by name.
    phi_power : float
        :math:`\phi = \ell^{\mathrm{phi\_power}}` with the length :math:`\ell` in the units of the
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

    def correlation_and_derivatives(
        self, X: FloatArray, X2: FloatArray, phi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        r"""Correlations ``(m, n, k)`` and :math:`\partial k / \partial \log \phi_i`.

        The derivatives have shape ``(m, p, n, k)``.
        """
        distances = list(_distances(X, X2))
        factors = np.stack(
            [self.factor(d, phi[:, i, None, None]) for i, d in enumerate(distances)], axis=1
        )
        # Products of the other factors, not a division by this one: a factor may be zero.
        derivatives = np.ones_like(factors)
        np.cumprod(factors[:, :-1], axis=1, out=derivatives[:, 1:])
        after = np.ones_like(factors[:, 0])
        for i in range(len(distances) - 1, -1, -1):
            derivatives[:, i] *= after
            derivatives[:, i] *= self.factor_derivative(distances[i], phi[:, i, None, None])
            after *= factors[:, i]
        return self.correlation(X, X2, phi), derivatives

    def length_scale(self, phi: FloatArray) -> FloatArray:
        r"""Length :math:`\ell = \phi^{1/\mathrm{phi\_power}}` in the units of the input."""
        return np.asarray(phi, dtype=np.float64) ** (1.0 / self.phi_power)

    def from_length_scale(self, length_scale: FloatArray) -> FloatArray:
        r""":math:`\phi` of a length in the units of the input; inverse of :meth:`length_scale`."""
        return np.asarray(length_scale, dtype=np.float64) ** self.phi_power

    def __repr__(self) -> str:
        arguments = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"{type(self).__name__}({arguments})"


class _ExponentialKernel(Kernel):
    r"""A factor :math:`r = a(t) e^{-t}`, with t a scaled distance and a polynomial a(t) >= 1.

    Correlations take one exponential for each pair, and derivatives are the correlation times
    a slope.
    """

    @abstractmethod
    def scaled(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        """Scaled distance t."""

    def polynomial_minus_one(self, t: FloatArray) -> FloatArray | None:
        """a(t) - 1; None for a kernel without polynomial."""
        return None

    @abstractmethod
    def slope(self, t: FloatArray) -> FloatArray:
        r"""Logarithmic derivative :math:`\partial \log r / \partial \log \phi`."""

    def _scaled(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> Iterator[FloatArray]:
        """Scaled distances ``(m, n, k)``, one input after the other."""
        for i, distance in enumerate(_distances(X, X2)):
            t = self.scaled(distance, phi[:, i, None, None])
            yield np.minimum(t, _FAR, out=t)

    def factor(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        """a(t) exp(-t)."""
        t = np.minimum(self.scaled(distance, phi), _FAR)
        excess = self.polynomial_minus_one(t)
        decay: FloatArray = np.exp(-t)
        return decay if excess is None else (1.0 + excess) * decay

    def factor_derivative(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        """Derive the factor: factor times slope."""
        t = np.minimum(self.scaled(distance, phi), _FAR)
        return self.factor(distance, phi) * self.slope(t)

    def correlation(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """Correlations ``(m, n, k)``."""
        return self._product(X, X2, phi, lambda i, t: None)

    def _product(
        self,
        X: FloatArray,
        X2: FloatArray,
        phi: FloatArray,
        see: Callable[[int, FloatArray], None],
    ) -> FloatArray:
        """Correlations; ``see(i, t)`` is shown the scaled distances on the way."""
        exponent = np.zeros((len(phi), len(X), len(X2)))
        polynomial: FloatArray | float = 1.0
        for i, t in enumerate(self._scaled(X, X2, phi)):
            see(i, t)
            exponent -= t
            excess = self.polynomial_minus_one(t)
            if excess is not None:
                excess += 1.0
                with np.errstate(over="ignore"):  # of many inputs, where the exponential is 0
                    polynomial = excess * polynomial
        np.exp(exponent, out=exponent)
        np.multiply(exponent, polynomial, out=exponent, where=exponent > 0.0)
        return exponent

    def correlation_minus_one(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """``correlation - 1`` without cancellation."""
        exponent = np.zeros((len(phi), len(X), len(X2)))
        for t in self._scaled(X, X2, phi):
            exponent -= t
            excess = self.polynomial_minus_one(t)
            if excess is not None:
                exponent += np.log1p(excess)
        np.expm1(exponent, out=exponent)
        return exponent

    def correlation_and_derivatives(
        self, X: FloatArray, X2: FloatArray, phi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Correlations, and their derivatives as correlation times slope."""
        derivatives = np.empty((*phi.shape, len(X), len(X2)))

        def see(i: int, t: FloatArray) -> None:
            derivatives[:, i] = self.slope(t)

        correlation = self._product(X, X2, phi, see)
        derivatives *= correlation[:, None]
        return correlation, derivatives


class SquaredExponential(_ExponentialKernel):
    r"""Squared exponential, :math:`k = \exp\{-\frac12 \sum_i (x_i - x'_i)^2 / \phi_i\}`.

    The paper's correlation function: :math:`\phi_i` is linear in the denominator, hence a
    squared length, :math:`\phi_i = \ell_i^2`. With :math:`d = |x_i - x'_i|`,
    :math:`\partial k / \partial \log \phi_i = k \, d^2 / (2 \phi_i)`.
    """

    name = "squared_exponential"
    phi_power = 2.0

    def scaled(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`t = d^2 / (2\phi)`."""
        return 0.5 * distance**2 / phi

    def slope(self, t: FloatArray) -> FloatArray:
        """The slope is t."""
        return t


class _Matern(_ExponentialKernel):
    r"""A Matern kernel of smoothness :math:`\nu`, half an odd number."""

    twice_smoothness: ClassVar[float]

    def scaled(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`t = \sqrt{2\nu} d / \phi`."""
        scaled: FloatArray = np.sqrt(self.twice_smoothness) * distance / phi
        return scaled


class Matern32(_Matern):
    r"""Matern 3/2, :math:`k = \prod_i (1 + t_i) e^{-t_i}`, :math:`t_i = \sqrt3 |x_i-x'_i|/\phi_i`.

    :math:`\phi_i` is a range. :math:`\partial k / \partial \log \phi_i = k \, t_i^2 / (1 + t_i)`.
    """

    name = "matern32"
    twice_smoothness = 3.0

    def polynomial_minus_one(self, t: FloatArray) -> FloatArray:
        """A copy of t."""
        return t.copy()

    def slope(self, t: FloatArray) -> FloatArray:
        r""":math:`t^2 / (1 + t)`."""
        return t * t / (1.0 + t)


class Matern52(_Matern):
    r"""Matern 5/2, :math:`k = \prod_i (1 + t_i + t_i^2/3) e^{-t_i}` with :math:`t_i = \sqrt5 s_i`.

    :math:`\phi_i` is a range, :math:`s_i = |x_i - x'_i| / \phi_i`.
    :math:`\partial k / \partial \log \phi_i = k \, t_i^2 (1 + t_i) / (3 + 3 t_i + t_i^2)`.
    """

    name = "matern52"
    twice_smoothness = 5.0

    def polynomial_minus_one(self, t: FloatArray) -> FloatArray:
        r""":math:`t + t^2/3`."""
        return t * (1.0 + t / 3.0)

    def slope(self, t: FloatArray) -> FloatArray:
        r""":math:`t^2 (1 + t) / (3 + 3t + t^2)`."""
        return t * t * (1.0 + t) / (3.0 + 3.0 * t + t * t)


class Matern72(_Matern):
    r"""Matern 7/2, :math:`k = \prod_i (1 + t_i + \frac25 t_i^2 + \frac1{15} t_i^3) e^{-t_i}`.

    :math:`t_i = \sqrt7 |x_i - x'_i| / \phi_i`, and :math:`\phi_i` is a range.
    :math:`\partial k / \partial \log \phi_i
    = k \, t_i^2 (3 + 3 t_i + t_i^2) / (15 + 15 t_i + 6 t_i^2 + t_i^3)`.
    """

    name = "matern72"
    twice_smoothness = 7.0

    def polynomial_minus_one(self, t: FloatArray) -> FloatArray:
        r""":math:`t + \frac25 t^2 + \frac1{15} t^3`."""
        return t * (1.0 + t * (0.4 + t / 15.0))

    def slope(self, t: FloatArray) -> FloatArray:
        r""":math:`t^2 (3 + 3t + t^2) / (15 + 15t + 6t^2 + t^3)`."""
        return t * t * (3.0 + t * (3.0 + t)) / (15.0 + t * (15.0 + t * (6.0 + t)))


class PowerExponential(_ExponentialKernel):
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

    def scaled(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        r""":math:`t = (d/\phi)^\alpha`."""
        scaled: FloatArray = (distance / phi) ** self.power
        return scaled

    def slope(self, t: FloatArray) -> FloatArray:
        r""":math:`\alpha t`."""
        return self.power * t


#: The kernels with compiled code; the position is the code by which the compiled loop knows it.
COMPILED_KERNELS: tuple[type[Kernel], ...] = (
    SquaredExponential,
    Matern32,
    Matern52,
    Matern72,
    PowerExponential,
)


#: The kernels that can be asked for by name, with compiled code or without.
NAMED_KERNELS: tuple[type[Kernel], ...] = COMPILED_KERNELS


def compiled_code(kernel: Kernel) -> int | None:
    """Code of a kernel that has compiled code, else None.

    The exact type is asked for: a subclass may have changed the formula.
    """
    return COMPILED_KERNELS.index(type(kernel)) if type(kernel) in COMPILED_KERNELS else None


def as_kernel(kernel: str | Kernel) -> Kernel:
    """Kernel object of a name, or the object itself."""
    if isinstance(kernel, Kernel):
        return kernel
    by_name = {cls.name: cls for cls in NAMED_KERNELS}
    if isinstance(kernel, str) and kernel in by_name:
        return by_name[kernel]()
    raise ValueError(
        f"kernel must be one of {sorted(by_name)} or an object of a subclass of "
        f"paims.gp.Kernel; got {kernel!r}."
    )
