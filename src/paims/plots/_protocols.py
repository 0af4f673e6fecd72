"""What each figure needs to know; the classes of these names in paims.diagnostics have it.

Figures and diagnostics do not import each other: anything with these attributes can be drawn.
"""

from __future__ import annotations

from typing import Protocol

from paims._arrays import FloatArray, IntArray


class Residuals(Protocol):
    """Standardised residuals of k predictions."""

    @property
    def mean(self) -> FloatArray: ...

    @property
    def scores(self) -> FloatArray: ...

    @property
    def n_outside(self) -> int: ...


class JointErrors(Protocol):
    """Uncorrelated errors of unit variance, in an order."""

    @property
    def errors(self) -> FloatArray: ...

    @property
    def order(self) -> IntArray: ...

    @property
    def kind(self) -> str: ...

    @property
    def rank(self) -> int: ...

    @property
    def bound(self) -> float: ...

    @property
    def n_outside(self) -> int: ...


class QuantileQuantile(Protocol):
    """Ordered scores, what they should be, and a band."""

    @property
    def theoretical(self) -> FloatArray: ...

    @property
    def ordered(self) -> FloatArray: ...

    @property
    def lower(self) -> FloatArray: ...

    @property
    def upper(self) -> FloatArray: ...

    @property
    def order(self) -> IntArray: ...


class Mahalanobis(Protocol):
    """A distance and its usual range."""

    @property
    def distance2(self) -> float: ...

    @property
    def reference(self) -> str: ...

    @property
    def lower(self) -> float: ...

    @property
    def median(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def p_value(self) -> float: ...

    @property
    def passed(self) -> bool: ...


class LeaveOneOut(Protocol):
    """Runs left out in turn."""

    @property
    def pareto_k(self) -> FloatArray: ...


class Coverage(Protocol):
    """Nominal and empirical coverage with a band."""

    @property
    def nominal(self) -> FloatArray: ...

    @property
    def empirical(self) -> FloatArray: ...

    @property
    def lower(self) -> FloatArray: ...

    @property
    def upper(self) -> FloatArray: ...


class Uniformity(Protocol):
    """Probability-integral transforms, their histogram and tests."""

    @property
    def pit(self) -> FloatArray: ...

    @property
    def ks_p(self) -> float: ...

    @property
    def ad_p(self) -> float: ...

    @property
    def edges(self) -> FloatArray: ...

    @property
    def counts(self) -> FloatArray: ...

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...


class LengthScales(Protocol):
    """Quantiles ``(5, p)`` of relative length-scales."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def quantiles(self) -> FloatArray: ...

    @property
    def probability_flat(self) -> FloatArray: ...


class SobolIndices(Protocol):
    """First-order and total indices with intervals ``(2, p)``."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def first(self) -> FloatArray: ...

    @property
    def total(self) -> FloatArray: ...

    @property
    def first_interval(self) -> FloatArray: ...

    @property
    def total_interval(self) -> FloatArray: ...


class MainEffects(Protocol):
    """Main effects ``(p, k)`` with a band."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def x(self) -> FloatArray: ...

    @property
    def mean(self) -> FloatArray: ...

    @property
    def lower(self) -> FloatArray: ...

    @property
    def upper(self) -> FloatArray: ...

    @property
    def overall(self) -> float: ...


class Cloud(Protocol):
    """Points ``(n, 2)`` of an annealing level, its temperature and shares of accepted moves."""

    @property
    def level(self) -> int: ...

    @property
    def points(self) -> FloatArray: ...

    @property
    def temperature(self) -> float: ...

    @property
    def first(self) -> float: ...

    @property
    def second(self) -> float: ...
