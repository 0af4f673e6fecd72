r"""The posterior of a Gaussian process's hyper-parameters, trend and variance integrated out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from paims._arrays import FloatArray, IndexArray
from paims._parallel import n_threads
from paims.gp import _twin
from paims.gp._checks import as_float_array, check_finite, check_points, check_runs
from paims.gp._kernels import Kernel, as_kernel, has_form
from paims.gp._means import Basis, as_basis, design_matrix
from paims.gp._nugget import FixedNugget, Nugget, NuggetPrior, as_nugget
from paims.gp._predictive import Coefficients, Conditional, Predictive
from paims.gp._priors import Prior, as_prior

__all__ = ["Posterior"]


class Posterior:
    r"""Log posterior density of :math:`u = (\log\phi_1, \dots, \log\phi_p, z)`.

    .. math::
        \log p(u \mid D) = -\tfrac{n-q}{2} \log S^2 - \tfrac12 \log|K|
        - \tfrac12 \log|H^T K^{-1} H| + \log p(\log\phi \mid \delta) + \log p(\delta)
        + \log|d\delta/dz| + \text{const}

    This is the paper's equation for :math:`p(\phi \mid D)` as a density in u, with every
    Jacobian. The paper's n - p is n - q here, q the number of basis functions.

    Calling the object with a batch ``(m, d)`` gives ``(m,)`` log densities. A point at which K
    is not positive definite to working precision, or that is not finite, has density zero
    (``-inf``); nothing is added to K to prevent it, and no other point is affected.

    Parameters
    ----------
    X : (n, p) array_like
        Inputs of the runs, taken as they are: scaling them is up to the caller.
    y : (n,) array_like
        Outputs of the runs, taken as they are.
    kernel : str or Kernel, default "squared_exponential"
        A name of ``paims.gp.KERNELS``, or an object.
    mean : str, callable or Basis, default "linear"
        A name of ``paims.gp.MEANS``, a function from ``(n, p)`` to ``(n, q)``, or an object.
    prior : str, Prior or SciPy distribution(s), default "reference"
        Prior of phi: a name of ``paims.gp.PRIORS``, or an object.
    nugget : "estimate", float or Nugget, default "estimate"
        A number is a fixed nugget; 0 is allowed.
    nugget_prior : str or NuggetPrior, default "uniform"
        Prior of an estimated nugget: a name of ``paims.gp.NUGGET_PRIORS``, or an object;
        "reference" only with ``prior="reference"``.
        Not used if ``nugget`` is a number or an object, which brings its own.
    n_jobs : int, optional
        Number of threads; None or -1 for every available core. Results do not depend on it.

    Attributes
    ----------
    X, y, H : ndarray
        Inputs, outputs and design matrix.
    n_runs, n_inputs, n_basis, n_params : int
        n, p, q and the dimension of u.
    parameter_names : list of str
    n_evaluations, n_failures : int
        Points evaluated by calls so far, and how many of them failed numerically.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        kernel: str | Kernel = "squared_exponential",
        mean: str | Basis | Callable[[FloatArray], Any] = "linear",
        prior: str | Prior | Any = "reference",
        nugget: str | float | Nugget = "estimate",
        nugget_prior: str | NuggetPrior = "uniform",
        *,
        n_jobs: int | None = None,
    ) -> None:
        self.X, self.y = check_runs(X, y)
        self.kernel = as_kernel(kernel)
        self.mean = as_basis(mean)
        self.prior = as_prior(prior)
        self.nugget = as_nugget(nugget, nugget_prior, self.X.shape[1])
        n_threads(n_jobs)  # raises if it is none
        self.n_jobs = n_jobs
        self.H = design_matrix(self.mean, self.X)
        self.n_runs, self.n_inputs = self.X.shape
        self.n_basis = self.H.shape[1]
        self.prior.check(self.n_inputs)
        self._check_combination()
        self.n_params = self.n_inputs + self.nugget.n_params
        self.parameter_names = [f"log_phi_{i + 1}" for i in range(self.n_inputs)]
        self.parameter_names += ["z"] * self.nugget.n_params
        self.n_evaluations = 0
        self.n_failures = 0
        self._lock = threading.Lock()
        self._prepared: tuple[tuple[float, ...], Any] | None = None

    def _check_combination(self) -> None:
        if self.nugget.uses_information and not self.prior.uses_information:
            raise ValueError(
                "nugget_prior='reference' is a row of the reference prior's information matrix: "
                f"it needs prior='reference'; got prior={self.prior!r}."
            )
        if isinstance(self.nugget, FixedNugget) and self.nugget.nugget == 0.0:
            n_distinct = len(np.unique(self.X, axis=0))
            if n_distinct < self.n_runs:
                raise ValueError(
                    f"X has {self.n_runs - n_distinct} repeated row(s): K is singular without a "
                    "nugget. Use nugget='estimate' or drop the repetitions."
                )
        fit = self.H @ np.linalg.lstsq(self.H, self.y, rcond=None)[0]
        if np.abs(self.y - fit).max() <= 1e-13 * np.abs(self.y).max():
            raise ValueError(
                "y is reproduced exactly by the mean's basis functions (or is zero): there is no "
                "residual for a process to explain, and the posterior is not defined. Take a "
                "smaller basis, or no Gaussian process."
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_prepared": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return (
            f"Posterior(n_runs={self.n_runs}, n_inputs={self.n_inputs}, kernel={self.kernel!r}, "
            f"mean={self.mean!r}, prior={self.prior!r}, nugget={self.nugget!r})"
        )

    @property
    def identity(self) -> dict[str, FloatArray]:
        """What tells this posterior from others of the same X, y and model: nothing here."""
        return {}

    def of_runs(self, rows: IndexArray, prior: Prior, nugget: Nugget) -> Posterior:
        """Posterior given some of the runs, with another prior: one that leads to this one."""
        return Posterior(
            self.X[rows], self.y[rows], self.kernel, self.mean, prior, nugget, n_jobs=self.n_jobs
        )

    def __call__(self, u: Any) -> FloatArray:
        """Log posterior density, up to a constant.

        Parameters
        ----------
        u : (m, n_params) array_like

        Returns
        -------
        (m,) ndarray
            Never NaN; ``-inf`` where a point fails or a prior is zero.
        """
        u = check_points("u", u, self.n_params)
        phi, nugget = self.to_physical(u)
        return self._log_density(self._parts(u, nugget, self._core_terms(phi, nugget)))

    @property
    def has_gradient(self) -> bool:
        """Whether there is :meth:`value_and_gradient`: where prior and nugget have theirs.

        All that come with the library do, but for the reference prior.
        """
        return self.prior.has_gradient and self.nugget.has_gradient

    def value_and_gradient(self, u: Any) -> tuple[FloatArray, FloatArray]:
        r"""Log posterior density, up to a constant, and its gradient in u.

        .. math:: \frac{\partial}{\partial\theta} \log p(y \mid \phi, \delta)
                  = \sum_{jk} M_{jk} \frac{\partial K_{jk}}{\partial\theta}, \qquad
                  M = \frac12 \Big( \frac{n-q}{S^2} a a^T - Q \Big), \quad a = Qy,

        to which priors and Jacobian add theirs. One inverse and one pass over the pairs of runs
        more than a value: about three values, for all parameters together.

        Parameters
        ----------
        u : (m, n_params) array_like

        Returns
        -------
        values : (m,) ndarray
            What a call gives, up to rounding.
        gradients : (m, n_params) ndarray
            0 where the value is ``-inf``, or where it cannot be computed.

        Raises
        ------
        NotImplementedError
            Without :attr:`has_gradient`.

        Examples
        --------
        >>> import numpy as np
        >>> from paims.gp import Posterior
        >>> X = np.linspace(0.0, 1.0, 9)[:, None]
        >>> posterior = Posterior(X, np.sin(6.0 * X[:, 0]), prior="jointly_robust")
        >>> value, gradient = posterior.value_and_gradient([[-2.0, -9.0]])
        >>> gradient.shape
        (1, 2)
        """
        u = check_points("u", u, self.n_params)
        self._require_gradient()
        phi, nugget = self.to_physical(u)
        engine, *arguments = self._engine()
        core, slopes = engine.core_gradients(
            *arguments[:4], phi, nugget, self.n_jobs, arguments[4]
        )
        values = self._log_density(self._parts(u, nugget, core))
        return self._with_slopes(u, nugget, values, slopes)

    def _require_gradient(self) -> None:
        if not self.has_gradient:
            raise NotImplementedError(
                f"There is no gradient of {self.prior!r} with {self.nugget!r}: take another prior "
                "of the library, such as 'jointly_robust', or give yours a method gradient."
            )

    def _with_slopes(
        self, u: FloatArray, nugget: FloatArray, values: FloatArray, slopes: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Values, and gradients in u from those of the likelihood in log phi and the nugget."""
        z = u[:, self.n_inputs :]
        with np.errstate(all="ignore"):
            in_log_phi, in_nugget = self.prior.gradient(
                u[:, : self.n_inputs], nugget=nugget, X=self.X, kernel=self.kernel
            )
            by_nugget = (slopes[:, -1] + in_nugget)[:, None] * self.nugget.slope(z)
            gradients = np.hstack(
                [slopes[:, :-1] + in_log_phi, by_nugget + self.nugget.gradient(z)]
            )
        failed = ~np.isfinite(gradients).all(axis=1) | np.isneginf(values)
        gradients[failed] = 0.0
        return values, gradients

    def _log_density(self, parts: dict[str, FloatArray]) -> FloatArray:
        """Sum of the parts, -inf where a point fails; counts them."""
        with np.errstate(all="ignore"):
            log_density = (
                -0.5 * (self.n_runs - self.n_basis) * np.log(parts["S2"])
                - 0.5 * parts["log_det_K"]
                - 0.5 * parts["log_det_HKH"]
                + parts["log_prior"]
                + parts["log_nugget_prior"]
                + parts["log_jacobian"]
            )
        # S2 = 0 would be an infinite density: a residual lost to underflow.
        failed = np.isnan(parts["log_det_K"]) | ~(parts["S2"] > 0.0)
        with self._lock:
            self.n_evaluations += len(failed)
            self.n_failures += int(failed.sum())
        result: FloatArray = np.where(failed | np.isnan(log_density), -np.inf, log_density)
        return result

    def parts(self, u: Any) -> dict[str, FloatArray]:
        """Terms of the log posterior density.

        Parameters
        ----------
        u : (m, n_params) array_like

        Returns
        -------
        dict of str to (m,) ndarray
            ``log_det_K``, ``log_det_HKH`` (0 without a basis), ``S2``, ``log_prior`` (in log
            phi, given the nugget), ``log_nugget_prior`` (in the nugget) and ``log_jacobian``
            (from the nugget to z); the last two are 0 for a fixed nugget. The first three, and a
            reference prior, are NaN where a point fails.
        """
        u = check_points("u", u, self.n_params)
        phi, nugget = self.to_physical(u)
        return self._parts(u, nugget, self._core_terms(phi, nugget))

    def _parts(self, u: FloatArray, nugget: FloatArray, core: FloatArray) -> dict[str, FloatArray]:
        log_phi, z = u[:, : self.n_inputs], u[:, self.n_inputs :]
        with np.errstate(all="ignore"):
            log_prior = self.prior.log_density(
                log_phi,
                nugget=nugget,
                X=self.X,
                kernel=self.kernel,
                log_det_information=core[:, 3],
            )
            log_nugget_prior = self.nugget.log_prior(z)
            log_jacobian = self.nugget.log_jacobian(z)
        return {
            "log_det_K": core[:, 0],
            "log_det_HKH": core[:, 1],
            "S2": core[:, 2],
            "log_prior": log_prior,
            "log_nugget_prior": log_nugget_prior,
            "log_jacobian": log_jacobian,
        }

    def _core_terms(self, phi: FloatArray, nugget: FloatArray) -> FloatArray:
        """Columns log|K|, log|H'K^-1 H|, S2, log|I|; compiled where numbers tell the kernel."""
        information = int(self.prior.uses_information) * (1 + int(self.nugget.uses_information))
        engine, *arguments = self._engine()
        terms: FloatArray = engine.core_terms(
            *arguments[:4], phi, nugget, information, self.n_jobs, arguments[4]
        )
        return terms

    def _engine(self) -> tuple[Any, FloatArray, FloatArray, FloatArray, Kernel, Any]:
        """The module that computes, what it wants to know of the runs, and what it keeps."""
        runs = (self.X, self.H, self.y, self.kernel)
        if not has_form(self.kernel):
            return (_twin, *runs, None)
        # Imported at the first evaluation: Numba takes a good part of a second.
        from paims.gp import _compiled  # noqa: PLC0415

        kernel, prepared = self.kernel, self._prepared
        numbers = (kernel.scale, kernel.phi_power, kernel.power)
        if prepared is None or prepared[0] != numbers:
            made = _compiled.prepare(self.X, self.H, self.y, kernel)
            self._prepared = prepared = numbers, made
        return (_compiled, *runs, prepared[1])

    def to_physical(self, u: Any) -> tuple[FloatArray, FloatArray]:
        """Correlation parameters phi ``(m, p)`` and nuggets ``(m,)`` of a batch ``u``."""
        u = check_points("u", u, self.n_params)
        with np.errstate(over="ignore", under="ignore"):
            phi = np.exp(u[:, : self.n_inputs])
            nugget = self.nugget.value(u[:, self.n_inputs :])
        return phi, nugget

    def from_physical(self, phi: Any, nugget: Any = None) -> FloatArray:
        """Points u ``(m, n_params)`` of phi ``(m, p)`` and nuggets ``(m,)`` or one nugget.

        The nugget may be left out if it is fixed.
        """
        phi = check_points("phi", phi, self.n_inputs)
        if not (np.isfinite(phi).all() and (phi > 0.0).all()):
            raise ValueError("phi must be positive and finite.")
        if nugget is None:
            if not isinstance(self.nugget, FixedNugget):
                raise ValueError("The nugget is estimated: from_physical needs its value.")
            nugget = self.nugget.nugget
        nugget = np.broadcast_to(np.asarray(nugget, dtype=np.float64), (len(phi),))
        return np.column_stack([np.log(phi), self.nugget.parameter(nugget)])

    def _conditional(self) -> Conditional:
        return Conditional(self.X, self.H, self.y, self.kernel, self.n_jobs)

    def predict(
        self, u: Any, X_new: Any, *, include_nugget: bool = True, return_cov: bool = False
    ) -> Predictive:
        r"""Predictive distribution given each u.

        .. math::
            \mu(x) = h^T \hat\beta + t^T K^{-1} (y - H \hat\beta), \qquad
            \mathrm{scale}^2(x, w) = \frac{S^2}{n - q} \{ k(x, w) - t_x^T K^{-1} t_w
            + (h_x - H^T K^{-1} t_x)^T (H^T K^{-1} H)^{-1} (h_w - H^T K^{-1} t_w) \}

        Parameters
        ----------
        u : (m, n_params) array_like
        X_new : (k, p) array_like
        include_nugget : bool, default True
            Whether the nugget's variance is in: of a new run (True) or of the smooth part of the
            simulator (False).
        return_cov : bool, default False
            Whether ``scale2`` is the whole matrix.

        Returns
        -------
        Predictive
            Squared scales are not below 0: what round-off left there is set to 0.
        """
        X_new = as_float_array("X_new", X_new, 2)
        if X_new.shape[1] != self.n_inputs:
            raise ValueError(
                f"X_new must have the {self.n_inputs} columns of X; got {X_new.shape[1]}."
            )
        check_finite("X_new", X_new)
        return self._conditional().predict(
            *self.to_physical(u), X_new, self.mean(X_new), include_nugget, return_cov
        )

    def leave_one_out(self, u: Any) -> Predictive:
        r"""Prediction of each run from all others, given each u.

        Trend and variance are integrated out anew for each run, the hyper-parameters u are kept.
        The nugget's variance is included, as runs are predicted.

        Parameters
        ----------
        u : (m, n_params) array_like

        Returns
        -------
        Predictive
            With ``(m, n)`` arrays and n - 1 - q degrees of freedom. NaN for a run without which
            the basis functions are linearly dependent.
        """
        return self._conditional().leave_one_out(*self.to_physical(u))

    def coefficients(self, u: Any) -> Coefficients:
        r"""Trend coefficients and S2 given each u.

        Parameters
        ----------
        u : (m, n_params) array_like

        Returns
        -------
        Coefficients
        """
        return self._conditional().coefficients(*self.to_physical(u))
