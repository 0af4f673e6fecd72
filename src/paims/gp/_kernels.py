r"""Correlation functions.

Most are products :math:`k(x, x' \mid \phi) = \prod_i r(|x_i - x'_i|; \phi_i)`; those of
:class:`RadialMatern` are a function of one scaled distance instead.

How :math:`\phi` enters differs: in :class:`SquaredExponential` it is a squared length (the
paper's choice: linear in the denominator), in all others a range in the units of the input.
:meth:`Kernel.length_scale` converts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from inspect import isfunction
from math import factorial, sqrt
from typing import ClassVar, NamedTuple, TypeGuard

import numpy as np

from paims._arrays import FloatArray
from paims.gp._registry import Named, as_object, registry

__all__ = [
    "KERNELS",
    "ExponentialKernel",
    "Kernel",
    "Matern",
    "Matern32",
    "Matern52",
    "Matern72",
    "PowerExponential",
    "RadialMatern",
    "RadialMatern52",
    "RadialMatern72",
    "SquaredExponential",
]


# From this scaled distance on every built-in correlation is exactly 0 in double precision, and so
# must be its derivative: not 0 times an overflow.
_FAR = 1e4


def _distances(X: FloatArray, X2: FloatArray) -> Iterator[FloatArray]:
    """Distances ``(n, k)`` between the rows of ``X`` and ``X2``, one input after the other."""
    for column, column2 in zip(X.T, X2.T, strict=True):
        distance = column[:, None] - column2
        yield np.abs(distance, out=distance)


class Kernel(Named, ABC):
    r"""A correlation function that is a product of one factor per input.

    A new one needs the two one-dimensional functions :meth:`factor` and
    :meth:`factor_derivative`; it then runs through NumPy. An :class:`ExponentialKernel` needs
    numbers only, and runs compiled.

    Attributes
    ----------
    name : str
        How the kernel is asked for by name.
    phi_power : float
        :math:`\phi = \ell^{\mathrm{phi\_power}}` with the length :math:`\ell` in the units of the
        input.
    separable : bool
        Whether the correlation is the product of the factors. Exact Sobol' indices and effects
        need it; a subclass that says no defines the three methods for several inputs anew.
    """

    phi_power: float = 1.0
    separable: ClassVar[bool] = True

    @property
    def smooth(self) -> bool:
        """Whether the factor has derivatives of every order, at distance 0 too."""
        return False

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


class ExponentialForm(NamedTuple):
    r"""What there is to know of an :class:`ExponentialKernel`, as plain numbers.

    Attributes
    ----------
    scale, phi_power, power : float
        :math:`t = (\mathrm{scale}\, d^{\mathrm{phi\_power}} / \phi)^{\mathrm{power}}`.
    polynomial : (k + 1,) ndarray
        Coefficients of a(t), the constant first.
    slope : (k + 1,) ndarray
        Coefficients of a(t) - a'(t).
    radial : bool
        Whether there is one a(t) exp(-t) of all inputs, :math:`t = (\sum_i t_i)^{1/2}` with the
        :math:`t_i` above (of power 2), instead of a product of one for each.
    """

    scale: float
    phi_power: float
    power: float
    polynomial: FloatArray
    slope: FloatArray
    radial: bool = False


@cache
def _with_slope(a: tuple[float | Fraction, ...]) -> tuple[FloatArray, FloatArray]:
    """Coefficients of a polynomial, and of it without its derivative; kept, as calls are many."""
    slope = [c - k * d for k, (c, d) in enumerate(zip(a, [*a[1:], 0], strict=True), 1)]
    return np.array(a, float), np.array(slope, float)


def _horner(coefficients: FloatArray, t: FloatArray) -> FloatArray:
    """Values of a polynomial, the constant first."""
    *lower, last = coefficients.tolist()
    if not lower or not last:
        result = np.full_like(t, last)
    else:  # a Matern's last is one over an integer, by which it is more exact to divide
        result = np.asarray(t / (1.0 / last) + lower.pop())
    for coefficient in reversed(lower):
        result *= t
        result += coefficient
    return result


class ExponentialKernel(Kernel):
    r"""A factor :math:`r = a(t) e^{-t}`, with a polynomial a and t a scaled distance.

    .. math:: t = (\mathrm{scale}\, d^{\mathrm{phi\_power}} / \phi)^{\mathrm{power}},
              \qquad \frac{\partial \log r}{\partial \log \phi}
              = \mathrm{power}\, t\, \frac{a(t) - a'(t)}{a(t)}

    A new one gives its numbers as class attributes. NumPy, the compiled loop and the page of
    :mod:`paims.report` all compute from them.

    Attributes
    ----------
    scale, power : float
        As above.
    polynomial : sequence of numbers
        Coefficients of a(t), the constant first, which is 1; a(t) >= 1 for all t >= 0.
    """

    scale: float = 1.0
    power: float = 1.0
    polynomial: Sequence[float | Fraction] = (1,)

    @property
    def form(self) -> ExponentialForm:
        """The kernel as plain numbers."""
        polynomials = _with_slope(tuple(self.polynomial))
        return ExponentialForm(self.scale, self.phi_power, self.power, *polynomials)

    def _scaled(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        """Scaled distance t."""
        t = np.asarray(self.scale * distance**self.phi_power / phi)
        if self.power != 1.0:
            t **= self.power
        return np.minimum(t, _FAR, out=t)

    def _growth(self, t: FloatArray) -> FloatArray | None:
        """a(t) - 1; None for a kernel without polynomial."""
        if len(self.polynomial) == 1:
            return None
        growth = _horner(self.form.polynomial[1:], t)
        growth *= t
        return growth

    def _slope(self, t: FloatArray) -> FloatArray:
        r"""Logarithmic derivative :math:`\partial \log r / \partial \log \phi`."""
        if len(self.polynomial) == 1:
            return self.power * t
        return self.power * t * _horner(self.form.slope, t) / _horner(self.form.polynomial, t)

    def factor(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        """a(t) exp(-t)."""
        t = self._scaled(distance, phi)
        growth = self._growth(t)
        decay: FloatArray = np.exp(-t)
        return decay if growth is None else (1.0 + growth) * decay

    def factor_derivative(self, distance: FloatArray, phi: FloatArray) -> FloatArray:
        """Derive the factor: factor times slope."""
        return self.factor(distance, phi) * self._slope(self._scaled(distance, phi))

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
        for i, distance in enumerate(_distances(X, X2)):
            t = self._scaled(distance, phi[:, i, None, None])
            see(i, t)
            exponent -= t
            growth = self._growth(t)
            if growth is not None:
                growth += 1.0
                with np.errstate(over="ignore"):  # of many inputs, where the exponential is 0
                    polynomial = growth * polynomial
        np.exp(exponent, out=exponent)
        np.multiply(exponent, polynomial, out=exponent, where=exponent > 0.0)
        return exponent

    def correlation_minus_one(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """``correlation - 1`` without cancellation."""
        exponent = np.zeros((len(phi), len(X), len(X2)))
        for i, distance in enumerate(_distances(X, X2)):
            t = self._scaled(distance, phi[:, i, None, None])
            exponent -= t
            growth = self._growth(t)
            if growth is not None:
                exponent += np.log1p(growth)
        np.expm1(exponent, out=exponent)
        return exponent

    def correlation_and_derivatives(
        self, X: FloatArray, X2: FloatArray, phi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Correlations, and their derivatives as correlation times slope."""
        derivatives = np.empty((*phi.shape, len(X), len(X2)))

        def see(i: int, t: FloatArray) -> None:
            derivatives[:, i] = self._slope(t)

        correlation = self._product(X, X2, phi, see)
        derivatives *= correlation[:, None]
        return correlation, derivatives


class SquaredExponential(ExponentialKernel):
    r"""Squared exponential, :math:`k = \exp\{-\frac12 \sum_i (x_i - x'_i)^2 / \phi_i\}`.

    The paper's correlation function: :math:`\phi_i` is linear in the denominator, hence a
    squared length, :math:`\phi_i = \ell_i^2`. With :math:`d = |x_i - x'_i|`,
    :math:`\partial k / \partial \log \phi_i = k \, d^2 / (2 \phi_i)`.
    """

    name = "squared_exponential"
    scale = 0.5
    phi_power = 2.0

    @property
    def smooth(self) -> bool:
        """It is."""
        return True


class Matern(ExponentialKernel):
    r"""The Matern family, of smoothness :math:`\nu = m + \frac12` with an integer order m.

    :math:`\phi_i` is a range, :math:`t = \sqrt{2\nu}\, d / \phi`, and

    .. math:: a(t) = \sum_{k=0}^m \frac{m!}{(2m)!} \frac{(2m - k)!}{(m - k)! \, k!} (2t)^k .

    A kernel of the family is a subclass with its ``order``; the process is that many times
    differentiable.

    Attributes
    ----------
    order : int
        m.
    """

    order: ClassVar[int] = 0

    def __init_subclass__(cls) -> None:
        """Work out the numbers of the order."""
        m = cls.order
        cls.scale = sqrt(2 * m + 1)
        cls.polynomial = tuple(
            Fraction(
                2**k * factorial(m) * factorial(2 * m - k),
                factorial(2 * m) * factorial(m - k) * factorial(k),
            )
            for k in range(m + 1)
        )


class Matern32(Matern):
    r"""Matern 3/2, :math:`k = \prod_i (1 + t_i) e^{-t_i}`, :math:`t_i = \sqrt3 |x_i-x'_i|/\phi_i`.

    :math:`\phi_i` is a range. :math:`\partial k / \partial \log \phi_i = k \, t_i^2 / (1 + t_i)`.
    """

    name = "matern32"
    order = 1


class Matern52(Matern):
    r"""Matern 5/2, :math:`k = \prod_i (1 + t_i + t_i^2/3) e^{-t_i}` with :math:`t_i = \sqrt5 s_i`.

    :math:`\phi_i` is a range, :math:`s_i = |x_i - x'_i| / \phi_i`.
    :math:`\partial k / \partial \log \phi_i = k \, t_i^2 (1 + t_i) / (3 + 3 t_i + t_i^2)`.
    """

    name = "matern52"
    order = 2


class Matern72(Matern):
    r"""Matern 7/2, :math:`k = \prod_i (1 + t_i + \frac25 t_i^2 + \frac1{15} t_i^3) e^{-t_i}`.

    :math:`t_i = \sqrt7 |x_i - x'_i| / \phi_i`, and :math:`\phi_i` is a range.
    :math:`\partial k / \partial \log \phi_i
    = k \, t_i^2 (3 + 3 t_i + t_i^2) / (15 + 15 t_i + 6 t_i^2 + t_i^3)`.
    """

    name = "matern72"
    order = 3


class RadialMatern(Matern):
    r"""The Matern family in one scaled distance, as most libraries have it.

    .. math:: k = a(t) e^{-t}, \qquad t^2 = \sum_i t_i^2, \quad
              t_i = \sqrt{2\nu}\, |x_i - x'_i| / \phi_i,
              \qquad \frac{\partial k}{\partial \log \phi_i}
              = t_i^2 \, \frac{a(t) - a'(t)}{t} \, e^{-t},

    with the a of :class:`Matern`; (a - a')/t is a polynomial, as both begin with 1. Along one
    input it is the separable kernel of the same order. Across inputs it falls off more slowly,
    and depends on the direction only through the ranges: processes are not sums or products of
    functions of one input more readily than of any other direction.
    """

    separable = False

    @property
    def form(self) -> ExponentialForm:
        """The kernel as plain numbers, of squares that are summed."""
        return super().form._replace(power=2.0, radial=True)

    def _squares(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> Iterator[FloatArray]:
        """The squares of t_i, ``(m, n, k)``, one input after the other."""
        for i, distance in enumerate(_distances(X, X2)):
            t = self._scaled(distance, phi[:, i, None, None])
            yield np.square(t, out=t)

    def _distance(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """The one scaled distance t."""
        total = np.zeros((len(phi), len(X), len(X2)))
        for square in self._squares(X, X2, phi):
            total += square
        np.sqrt(total, out=total)
        return np.minimum(total, _FAR, out=total)

    def _of(self, t: FloatArray) -> FloatArray:
        """a(t) exp(-t)."""
        return _horner(self.form.polynomial, t) * np.exp(-t)

    def correlation(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """Correlations ``(m, n, k)``."""
        return self._of(self._distance(X, X2, phi))

    def correlation_minus_one(self, X: FloatArray, X2: FloatArray, phi: FloatArray) -> FloatArray:
        """``correlation - 1`` without cancellation."""
        t = self._distance(X, X2, phi)
        growth = t * _horner(self.form.polynomial[1:], t)
        result: FloatArray = np.expm1(np.log1p(growth) - t)
        return result

    def correlation_and_derivatives(
        self, X: FloatArray, X2: FloatArray, phi: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Correlations, and their derivatives in each log phi_i."""
        derivatives = np.empty((*phi.shape, len(X), len(X2)))
        for i, square in enumerate(self._squares(X, X2, phi)):
            derivatives[:, i] = square
        t = self._distance(X, X2, phi)
        derivatives *= (_horner(self.form.slope[1:], t) * np.exp(-t))[:, None]
        return self._of(t), derivatives


class RadialMatern52(RadialMatern):
    r"""Matern 5/2 of one distance, :math:`k = (1 + t + t^2/3) e^{-t}`, :math:`t = \sqrt5 s`.

    :math:`\phi_i` is a range, :math:`s^2 = \sum_i (x_i - x'_i)^2 / \phi_i^2`.
    :math:`\partial k / \partial \log \phi_i = t_i^2 (1 + t) e^{-t} / 3`.
    """

    name = "radial_matern52"
    order = 2


class RadialMatern72(RadialMatern):
    r"""Matern 7/2 of one distance, :math:`k = (1 + t + \frac25 t^2 + \frac1{15} t^3) e^{-t}`.

    :math:`t^2 = 7 \sum_i (x_i - x'_i)^2 / \phi_i^2`, and :math:`\phi_i` is a range.
    :math:`\partial k / \partial \log \phi_i = t_i^2 (3 + 3t + t^2) e^{-t} / 15`.
    """

    name = "radial_matern72"
    order = 3


class PowerExponential(ExponentialKernel):
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

    @property
    def smooth(self) -> bool:
        """With a power of 2."""
        return self.power == 2.0


#: The kernels that can be asked for by name.
KERNELS: dict[str, type[Kernel]] = registry(Kernel, globals())


_FORMULAS = [
    {name: getattr(family, name) for name in dir(family) if isfunction(getattr(family, name))}
    for family in (ExponentialKernel, RadialMatern)
]


def has_form(kernel: Kernel) -> TypeGuard[ExponentialKernel]:
    """Whether the kernel's form tells all of it: a subclass may have changed a formula."""
    return isinstance(kernel, ExponentialKernel) and any(
        all(getattr(type(kernel), name, None) is f for name, f in formulas.items())
        for formulas in _FORMULAS
    )


def as_kernel(kernel: str | Kernel) -> Kernel:
    """Kernel object of a name, or the object itself."""
    return as_object("kernel", kernel, Kernel, KERNELS)
