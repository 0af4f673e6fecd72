"""Reference distributions: where the annealing starts (the paper's meta-prior, eq. meta_prior).

A reference is anything with ``sample(n, rng)`` and ``log_density(x)``, the latter normalised: the
evidence is measured against it. One that also has ``quantile(u)``, a map from the unit cube of
``n_params`` dimensions, gets its first points from a scrambled Sobol' sequence. One with
``gradient(x)``, that of its log density, lets densities with gradients be sampled by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit, ndtri

from paims._arrays import Array, refuse_what_is_no_number


@runtime_checkable
class Reference(Protocol):
    """What a reference distribution has to offer."""

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return ``n`` independent draws, shape ``(n, n_params)``."""

    def log_density(self, x: Array) -> Array:
        """Return the normalised log density at ``x`` (m, n_params), -inf outside the support."""


class _Transformed:
    """A reference that is a transformation of the unit cube; subclasses say which."""

    n_params: int

    def quantile(self, u: Array) -> Array:
        """Map points ``u`` of the unit cube, shape ``(m, n_params)``, to the reference's space."""
        raise NotImplementedError

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Return ``n`` independent draws, shape ``(n, n_params)``."""
        return self.quantile(rng.random((n, self.n_params)))


class Uniform(_Transformed):
    """Uniform on a box.

    Parameters
    ----------
    lower, upper : array_like, shape (n_params,)
        The box. Scalars are taken as one-dimensional.
    """

    def __init__(self, lower: Any, upper: Any) -> None:
        self.lower, self.upper = _box(lower, upper)
        self.n_params = self.lower.size

    def __repr__(self) -> str:
        return f"Uniform({self.lower.tolist()}, {self.upper.tolist()})"

    def quantile(self, u: Array) -> Array:
        """Map the unit cube to the box."""
        return np.asarray(self.lower + u * (self.upper - self.lower))

    def uniform_ends(self, i: int) -> tuple[float, float] | None:
        """Return the ends of a parameter that is uniform between them; None if it is not."""
        return float(self.lower[i]), float(self.upper[i])

    def log_density(self, x: Array) -> Array:
        """Return minus the log of the box's volume inside, -inf outside."""
        inside = np.all((x >= self.lower) & (x <= self.upper), axis=1)
        return np.where(inside, -np.sum(np.log(self.upper - self.lower)), -np.inf)

    def gradient(self, x: Array) -> Array:
        """Return zeros."""
        return np.zeros_like(x)


class SoftUniform(_Transformed):
    """Uniform on a box plus ``width`` times a standard logistic variable, in each coordinate.

    Flat inside, with exponential tails outside, so that a posterior that reaches past the box is
    still covered. With F the logistic CDF, a, b the box and s the width, the density of a
    coordinate is::

        (F((x - a) / s) - F((x - b) / s)) / (b - a)

    Parameters
    ----------
    lower, upper : array_like, shape (n_params,)
        The box.
    width : array_like
        Scale of the logistic variable, one for all or one per coordinate.
    """

    def __init__(self, lower: Any, upper: Any, width: Any = 1.0) -> None:
        self.lower, self.upper = _box(lower, upper)
        self.width = _alike(
            np.atleast_1d(np.asarray(width, dtype=float)), self.lower, "width", "lower"
        )
        if len(self.width) != len(self.lower):
            raise ValueError(
                f"width must be a scalar or have {len(self.lower)} entries as lower has; got "
                f"{width!r}."
            )
        if not np.all(np.isfinite(self.width)) or np.any(self.width <= 0):
            raise ValueError(f"width must be positive and finite; got {width!r}.")
        self.n_params = self.lower.size

    def __repr__(self) -> str:
        return f"SoftUniform({self.lower.tolist()}, {self.upper.tolist()}, {self.width.tolist()})"

    def quantile(self, u: Array) -> Array:
        """Invert the CDF, which is closed-form.

        CDF(x) = s/(b-a) [log(1 + e^((x-a)/s)) - log(1 + e^((x-b)/s))]; with r = (b-a)/s,
        its inverse is a + s [log(1 - e^(-ur)) - log(1 - e^(-(1-u)r)) + ur].
        """
        u = np.clip(u, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)
        ratio = (self.upper - self.lower) / self.width
        log_head = np.log(-np.expm1(-u * ratio))
        log_tail = np.log(-np.expm1(-(1 - u) * ratio))
        return np.asarray(self.lower + self.width * (log_head - log_tail + u * ratio))

    def log_density(self, x: Array) -> Array:
        """Return the log density, accurate far into both tails.

        F(t) - F(t - r) = (1 - e^-r) F(t) F(r - t), with t = (x-a)/s.
        """
        t = (x - self.lower) / self.width
        ratio = (self.upper - self.lower) / self.width
        each = (
            np.log(-np.expm1(-ratio))
            - np.logaddexp(0.0, -t)
            - np.logaddexp(0.0, t - ratio)
            - np.log(self.upper - self.lower)
        )
        return np.asarray(np.sum(each, axis=1))

    def gradient(self, x: Array) -> Array:
        """Return the gradient of the log density, (F(-t) - F(t - r)) / s."""
        t = (x - self.lower) / self.width
        ratio = (self.upper - self.lower) / self.width
        return np.asarray((expit(-t) - expit(t - ratio)) / self.width)


class Normal(_Transformed):
    """Multivariate normal.

    Parameters
    ----------
    mean : array_like, shape (n_params,)
        The mean.
    cov : array_like, shape (n_params, n_params) or (n_params,) or scalar
        The covariance matrix, or the variances of independent coordinates.
    """

    def __init__(self, mean: Any, cov: Any = 1.0) -> None:
        refuse_what_is_no_number("mean", mean)
        refuse_what_is_no_number("cov", cov)
        self.mean = np.atleast_1d(np.asarray(mean, dtype=float))
        self.n_params = self.mean.size
        matrix = np.asarray(cov, dtype=float)
        if matrix.ndim < 2:
            matrix = np.diag(np.broadcast_to(matrix, self.mean.shape))
        if matrix.shape != (self.n_params, self.n_params):
            raise ValueError(
                f"cov must be a scalar, ({self.n_params},) or ({self.n_params}, {self.n_params}); "
                f"got shape {np.shape(cov)}."
            )
        if not (np.all(np.isfinite(self.mean)) and np.allclose(matrix, matrix.T)):
            raise ValueError("mean must be finite and cov symmetric.")
        try:
            self._chol = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise ValueError("cov must be positive definite; its Cholesky factor fails.") from None
        self.cov = matrix

    def __repr__(self) -> str:
        return f"Normal({self.mean.tolist()}, {self.cov.tolist()})"

    def quantile(self, u: Array) -> Array:
        """Map the unit cube through the inverse normal CDF and the Cholesky factor."""
        u = np.clip(u, np.finfo(float).tiny, 1 - np.finfo(float).epsneg)
        return np.asarray(self.mean + ndtri(u) @ self._chol.T)

    def log_density(self, x: Array) -> Array:
        """Return the log density."""
        white = np.linalg.solve(self._chol, (x - self.mean).T)
        log_norm = 0.5 * self.n_params * np.log(2 * np.pi) + np.sum(np.log(np.diag(self._chol)))
        return np.asarray(-0.5 * np.sum(white**2, axis=0) - log_norm)

    def gradient(self, x: Array) -> Array:
        """Return the gradient of the log density."""
        return np.asarray(-np.linalg.solve(self.cov, (x - self.mean).T).T)


class Product(_Transformed):
    """Independent coordinates, each with a frozen SciPy distribution.

    Parameters
    ----------
    *distributions : frozen scipy.stats distributions
        One per coordinate, for instance ``Product(stats.lognorm(0.5), stats.norm(0, 2))``; those
        of SciPy's newer kind, such as ``stats.Normal(mu=0, sigma=2)``, too.
    """

    def __init__(self, *distributions: Any) -> None:
        if not distributions:
            raise ValueError("Product needs at least one distribution.")
        for distribution in distributions:
            if not _is_distribution(distribution):
                raise TypeError(
                    f"Product takes frozen continuous SciPy distributions; got {distribution!r}."
                )
        self.distributions = distributions
        self.n_params = len(distributions)

    def __repr__(self) -> str:
        return f"Product({', '.join(repr(d) for d in self.distributions)})"

    def quantile(self, u: Array) -> Array:
        """Map each coordinate through its distribution's quantile function."""
        columns = [_quantile_fn(d)(u[:, i]) for i, d in enumerate(self.distributions)]
        return np.column_stack(columns)

    def uniform_ends(self, i: int) -> tuple[float, float] | None:
        """Return the ends of a parameter that is uniform between them; None if it is not."""
        distribution = self.distributions[i]
        low, high = (float(end) for end in _quantile_fn(distribution)(np.array([0.0, 1.0])))
        if not (np.isfinite(low) and np.isfinite(high)):
            return None
        inside = low + (high - low) * np.linspace(0.01, 0.99, 50)
        flat = np.allclose(distribution.logpdf(inside), -np.log(high - low), rtol=0, atol=1e-9)
        return (low, high) if flat else None

    def log_density(self, x: Array) -> Array:
        """Return the sum of the coordinates' log densities."""
        return np.asarray(sum(d.logpdf(x[:, i]) for i, d in enumerate(self.distributions)))


def box_of(reference: Reference, n_params: int) -> tuple[Array, Array]:
    """Ends of the parameters that are uniform between them; infinite for the others."""
    ends_of = getattr(reference, "uniform_ends", lambda i: None)
    ends = [ends_of(i) or (-np.inf, np.inf) for i in range(n_params)]
    lower, upper = np.array(ends, dtype=float).T
    return lower, upper


def as_reference(given: Any, what: str) -> tuple[Reference, tuple[str, ...] | None]:
    """Make a reference of what a user may give, and take the names from a dictionary.

    Parameters
    ----------
    given : Reference, distribution, sequence or mapping
        A reference as it is; or a frozen SciPy distribution for each parameter, alone, in a list,
        or in a dictionary by name.
    what : str
        Name of the argument, for errors.
    """
    if isinstance(given, Mapping):
        each = {f"{what}[{name!r}]": distribution for name, distribution in given.items()}
        return _product(each, what), tuple(str(name) for name in given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return _product({f"{what}[{i}]": d for i, d in enumerate(given)}, what), None
    if isinstance(given, Reference) and not isinstance(given, type):
        return given, None
    if _is_distribution(given):
        return _product({what: given}, what), None
    raise TypeError(
        f"{what} must have sample(n, rng) and log_density(x), such as paims.Uniform(lower, "
        f"upper), or be a frozen SciPy distribution for each parameter, in a list or in a "
        f"dictionary by name; got {given!r}."
    )


def _product(each: Mapping[str, Any], what: str) -> Product:
    if not each:
        raise ValueError(f"{what} is empty: give one distribution for each parameter.")
    for name, distribution in each.items():
        if getattr(distribution, "numargs", 0):
            raise TypeError(
                f"{name} is a SciPy distribution without its parameters; freeze it, as in "
                f"stats.norm(0, 1). Got {distribution!r}."
            )
        if not _is_distribution(distribution):
            raise TypeError(
                f"{name} must be a frozen continuous SciPy distribution of one parameter, such "
                f"as stats.norm(0, 1); got {distribution!r}. Parameters that depend on one "
                "another need one reference for all, such as paims.Normal(mean, cov)."
            )
    return Product(*each.values())


def _is_distribution(value: Any) -> bool:
    if isinstance(value, type) or not hasattr(value, "logpdf"):
        return False
    return hasattr(value, "ppf") or hasattr(value, "icdf")


def _quantile_fn(distribution: Any) -> Any:
    """The quantile function, which SciPy's newer distributions call icdf."""
    return distribution.ppf if hasattr(distribution, "ppf") else distribution.icdf


def _box(lower: Any, upper: Any) -> tuple[Array, Array]:
    refuse_what_is_no_number("lower", lower)
    refuse_what_is_no_number("upper", upper)
    low = np.atleast_1d(np.asarray(lower, dtype=float))
    high = np.atleast_1d(np.asarray(upper, dtype=float))
    low, high = _alike(low, high, "lower", "upper"), _alike(high, low, "upper", "lower")
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low < high)):
        raise ValueError(
            "lower must be below upper in every coordinate, both finite; "
            f"got lower={low.tolist()}, upper={high.tolist()}."
        )
    return low, high


def _alike(value: Array, other: Array, name: str, other_name: str) -> Array:
    """A vector as long as another, or a scalar made so."""
    if value.ndim != 1 or (len(value) not in {1, len(other)} and len(other) != 1):
        raise ValueError(
            f"{name} and {other_name} must be vectors of the same length or scalars; got shapes "
            f"{value.shape} and {other.shape}."
        )
    return np.broadcast_to(value, (max(len(value), len(other)),)).copy()
