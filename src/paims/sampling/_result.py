"""What a run gives back: weighted draws, what they say, and other people's formats for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from paims._arrays import Array, IntArray
from paims._names import as_variables
from paims.sampling._density import LogDensity
from paims.sampling._errors import Weighting
from paims.sampling._modes import Mode, find_modes
from paims.sampling._modes import climb as climb_to_tops
from paims.sampling._path import systematic
from paims.sampling._periodic import Circles
from paims.sampling._scheme import Plan
from paims.sampling._search import SearchInfo
from paims.sampling._summary import Check, checks_of, summary_of
from paims.sampling._target import Target

Derived = Callable[[Array], Mapping[str, Any]]


if TYPE_CHECKING:
    import pandas


class SamplingWarning(UserWarning):
    """Something about a run that its user should know before using the result."""


@dataclass(frozen=True)
class Status:
    """How a run ended: ``name`` is "converged", "stopped" (by a limit) or "interrupted"."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True)
class Origin:
    """What a result came from, so that it can go on; files do not have it."""

    target: Target
    plan: Plan
    derived: Derived | None = None


@dataclass(frozen=True, repr=False)
class SampleResult:
    """Weighted draws of a density, with its evidence and how they were made.

    Attributes
    ----------
    draws : ndarray, shape (n_draws, n_params)
    log_density : ndarray, shape (n_draws,)
        Of the density that was sampled; with a likelihood and a prior, of their product.
    weights : ndarray, shape (n_draws,)
        Sum to 1.
    names : tuple of str
    levels : structured ndarray
        One row for each annealing level; fields as in ``LevelInfo``. ``pandas.DataFrame(levels)``
        makes a table of it.
    log_evidence : float
        Log of the integral of the density (with a likelihood and a prior: the log evidence).
    log_evidence_error : float
        Its estimated standard error.
    island_log_evidence : tuple of float
        Estimates of the islands on their own path; they should agree.
    n_evaluations : int
    n_nan : int
        How often the density was NaN, which counts as zero.
    pareto_k : float
        Shape of the tail of the recycled importance weights; below 0.7 they can be relied on.
    status : Status
    goal : str
    source : str
        "recycled" (all candidates, importance weighted) or "last level".
    warnings : tuple of str
        What the run noticed.
    posterior : SampleResult or None
        For goal="optimum": the draws of the density itself, at temperature 1.
    n_rejected : int
        How often the density raised an exception that counts as zero (``on_error="reject"``).
    n_lead_evaluations : int
        How often leads were evaluated.
    n_gradients : int
        How many of the evaluations, of the density or of leads, came with a gradient.
    random_state : int or None
        Gives the same run again.
    search : SearchInfo or None
        What the search for missed modes did.
    n_samples : int
        Points at each level.
    wanted_size : float
        Effective size at which the rounds at temperature 1 end.
    island_gap : tuple of float
        How far the log evidences of the two islands are apart, and how far is expected; NaN where
        there are no two.
    island : ndarray of int, shape (n_draws,), or None
        The island that each draw belongs to.
    replicate : ndarray of int, shape (n_draws,), or None
        Which part of which proposal each draw came from: standard errors are taken from the
        differences between the parts.
    log_prior : ndarray, shape (n_draws,), or None
        Log prior density of the draws, if a likelihood and a prior were given.
    derived : mapping of str to ndarray, shape (n_draws,)
        Derived quantities of the draws, by name.
    circles : Circles or None
        The periodic parameters.
    """

    draws: Array
    log_density: Array
    weights: Array
    names: tuple[str, ...]
    levels: Array
    log_evidence: float
    log_evidence_error: float
    island_log_evidence: tuple[float, ...]
    n_evaluations: int
    n_nan: int
    pareto_k: float
    status: Status
    goal: str
    source: str
    warnings: tuple[str, ...] = ()
    posterior: SampleResult | None = None
    n_rejected: int = 0
    n_lead_evaluations: int = 0
    n_gradients: int = 0
    random_state: int | None = None
    search: SearchInfo | None = None
    n_samples: int = 0
    wanted_size: float = 0.0
    island_gap: tuple[float, float] = (float("nan"), float("nan"))
    island: IntArray | None = None
    replicate: IntArray | None = None
    log_prior: Array | None = None
    derived: Mapping[str, Array] = field(default_factory=dict)
    circles: Circles | None = None
    density_fn: LogDensity | None = field(default=None, compare=False)
    origin: Origin | None = field(default=None, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the density behind: the user's function need not survive a change of process."""
        return {**self.__dict__, "density_fn": None, "origin": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return (
            f"<SampleResult: {len(self.draws)} draws of {', '.join(self.names)}; "
            f"effective size {self.effective_size:.0f}; log evidence {self.log_evidence:.4f} "
            f"+- {self.log_evidence_error:.4f}; {self.status}>"
        )

    def __str__(self) -> str:
        return self.summary()

    @property
    def effective_size(self) -> float:
        """Effective number of draws, 1 / sum of squared weights."""
        return float(1.0 / np.sum(self.weights**2))

    @property
    def mean(self) -> Array:
        """Weighted mean of the draws, (n_params,); of periodic parameters the circular mean."""
        mean = np.asarray(self.weights @ self.draws)
        return mean if self.circles is None else self.circles.mean(self.draws, self.weights, mean)

    @property
    def sd(self) -> Array:
        """Weighted standard deviation of the draws, (n_params,); circular where periodic."""
        sd = np.asarray(np.sqrt(self.weights @ (self.draws - self.weights @ self.draws) ** 2))
        return sd if self.circles is None else self.circles.sd(self.draws, self.weights, sd)

    @property
    def mean_error(self) -> Array:
        """Standard error of the mean, (n_params,).

        From the replicates of the proposals, or from the gap between the islands where that is
        larger than it should be.
        """
        return np.array([self._weighting.error(values) for values in self._centred.T])

    @property
    def log_likelihood(self) -> Array | None:
        """Log likelihood of the draws, if a likelihood and a prior were given."""
        return None if self.log_prior is None else self.log_density - self.log_prior

    @property
    def island_agreement(self) -> float:
        """Agreement of the two islands, in the manner of R-hat: 1 is perfect, 1.01 is too much.

        The largest over the parameters' means and the modes' masses; NaN if there are no two
        islands. See ``checks`` for their log evidences.
        """
        weighting = self._weighting
        if not weighting.islands:
            return float("nan")
        _, label = self._modes_and_labels(0.005, None)
        values = [*self._centred.T, *(1.0 * (label == k) for k in np.unique(label))]
        return max(weighting.r_hat(column) for column in values)

    @property
    def checks(self) -> list[Check]:
        """What was checked about the run and what came out, also what could not be checked."""
        return checks_of(self)

    @property
    def _weighting(self) -> Weighting:
        return Weighting(self.weights, self.island, self.replicate)

    @property
    def _centred(self) -> Array:
        """Values whose weighted means err as those of the parameters do."""
        if self.circles is None:
            return self.draws
        return self.circles.linearised(self.draws, self.weights)

    @property
    def best(self) -> tuple[Array, float]:
        """The draw with the highest log density, and that density."""
        index = int(np.argmax(self.log_density))
        return self.draws[index].copy(), float(self.log_density[index])

    def quantile(self, q: float | Sequence[float]) -> Array:
        """Weighted quantiles of each parameter, shape ``np.shape(q) + (n_params,)``.

        A quantile is the smallest draw at which the sum of weights reaches q, so that draws of
        next to no weight do not move it. On a circle it is counted from the cut, which lies where
        the density is low.
        """
        levels = np.asarray(q, dtype=float)
        if not np.all((levels >= 0) & (levels <= 1)):
            raise ValueError(f"q must lie between 0 and 1; got {q!r}.")
        draws = self.draws if self.circles is None else self.circles.laid_out(self.draws)
        found = np.quantile(draws, levels, axis=0, weights=self.weights, method="inverted_cdf")
        return np.asarray(found if self.circles is None else self.circles.closed(found))

    def resample(self, n: int, random_state: Any = None) -> Array:
        """Return ``n`` equally weighted draws, ``(n, n_params)``, in random order.

        For code that knows no weights. More than the effective size brings repeated draws and no
        more information.
        """
        if n < 1:
            raise ValueError(f"n must be at least 1; got {n!r}.")
        rng = np.random.default_rng(random_state)
        return np.asarray(self.draws[rng.permutation(systematic(self.weights, n, rng))])

    def modes(
        self, min_mass: float = 0.005, prominence: float | None = None, climb: bool = False
    ) -> list[Mode]:
        """Return the modes of the density, by falling mass.

        Masses are those of the density itself, for goal="optimum" too.

        Parameters
        ----------
        min_mass : float
            Modes with less of the mass are left out.
        prominence : float, optional
            How much log density a peak has to stand out by.
        climb : bool
            Go on from the best draw of each mode to its top, which evaluates the density; those
            that reach the same top are one mode. A small ``prominence`` finds shallow ones.
        """
        if self.posterior is not None:
            return self.posterior.modes(min_mass, prominence, climb)
        if climb and self.density_fn is None:
            raise ValueError(
                "climb=True needs the density, which this result does not have: it was loaded "
                "from a file or sent from another process. Use climb=False."
            )
        modes, _ = self._modes_and_labels(min_mass, prominence)
        if climb:
            assert self.density_fn is not None
            modes = climb_to_tops(modes, self.density_fn)
        return modes

    def _modes_and_labels(
        self, min_mass: float, prominence: float | None
    ) -> tuple[list[Mode], Array]:
        """Modes with the standard errors of their masses, and the mode of each draw."""
        circles = self.circles
        draws = self.draws if circles is None else circles.laid_out(self.draws)
        found, label = find_modes(draws, self.log_density, self.weights, min_mass, prominence)
        modes = [
            replace(mode, mass_error=self._weighting.error(1.0 * (label == k)))
            for k, mode in enumerate(found)
        ]
        if circles is not None:
            modes = [
                replace(
                    mode, location=circles.closed(mode.location), mean=circles.closed(mode.mean)
                )
                for mode in modes
            ]
        return modes, label

    def summary(self) -> str:
        """Return the parameters, the evidence, the modes, what was checked and what to do."""
        return summary_of(self)

    def with_derived(self, function: Derived, vectorized: bool = True) -> SampleResult:
        """Return the result with derived quantities of its draws.

        Parameters
        ----------
        function : callable
            Takes a batch ``(m, n_params)`` and returns a dictionary of names to ``(m,)`` arrays.
        vectorized : bool
            False for a function of a single point that returns a dictionary of names to numbers.
        """
        values = derive(function, self.draws, self.names, vectorized)
        below = self.posterior
        if below is not None:
            below = below.with_derived(function, vectorized)
        return replace(self, derived=values, posterior=below)

    def rerun(
        self,
        n_samples: int | None = None,
        *,
        random_state: Any = None,
        n_jobs: int | None = None,
        max_evaluations: int | None = None,
        max_seconds: float | None = None,
        progress: bool = True,
        executor: Any = None,
    ) -> SampleResult:
        """Go on from a finished run with more points, at temperature 1.

        The draws of this result are the markers of new rounds, which end as those of
        :func:`paims.sample` do; modes that were missed are searched for again. The new draws join
        the old ones in proportion to the effective sizes, and so do the evidences.

        Parameters
        ----------
        n_samples : int, optional
            Points of each round; by default twice as many as before.
        random_state, n_jobs, max_evaluations, max_seconds, progress, executor
            As in :func:`paims.sample`; evaluations are those of the new run.

        Returns
        -------
        SampleResult
        """
        from paims.sampling._rerun import rerun  # noqa: PLC0415 - which makes results itself

        return rerun(
            self,
            n_samples,
            random_state=random_state,
            n_jobs=n_jobs,
            max_evaluations=max_evaluations,
            max_seconds=max_seconds,
            progress=progress,
            executor=executor,
        )

    def columns(self) -> dict[str, Array]:
        """Return the draws by column, as ``pandas.DataFrame`` takes them.

        The parameters, the derived quantities, ``weight``, ``log_density`` and, if a likelihood
        and a prior were given, ``log_likelihood`` and ``log_prior``.
        """
        out = {name: self.draws[:, i] for i, name in enumerate(self.names)}
        out |= {**self.derived, "weight": self.weights, "log_density": self.log_density}
        if self.log_prior is not None:
            out["log_likelihood"] = self.log_density - self.log_prior
            out["log_prior"] = self.log_prior
        return out

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the draws as a pandas data frame (needs the ``app`` extra); see ``columns``."""
        try:
            import pandas  # noqa: PLC0415 - an extra, and slow to import
        except ImportError:
            raise ImportError(
                "to_dataframe needs pandas: install it with pip install 'paims[app]'."
            ) from None
        return pandas.DataFrame(self.columns())

    def to_inference_data(self, n_draws: int | None = None, random_state: Any = 0) -> Any:
        """Return equally weighted draws as ArviZ's ``DataTree`` (needs the ``arviz`` extra).

        Names that no variable can have, such as ``a/b``, are changed (to ``a_b``).

        Parameters
        ----------
        n_draws : int, optional
            Number of draws; by default the effective size.
        random_state : int, Generator or None
        """
        try:
            import arviz_base  # noqa: PLC0415 - an extra, and slow to import
        except ImportError:
            raise ImportError(
                "to_inference_data needs ArviZ: install it with pip install 'paims[arviz]'."
            ) from None
        rng = np.random.default_rng(random_state)
        size = max(1, int(self.effective_size)) if n_draws is None else n_draws
        index = rng.permutation(systematic(self.weights, size, rng))
        attrs = {
            "inference_library": "paims",
            "log_evidence": self.log_evidence,
            "log_evidence_error": self.log_evidence_error,
            "status": str(self.status),
        }
        names = [*self.names, *self.derived]
        columns = [*self.draws[index].T, *(values[index] for values in self.derived.values())]
        return arviz_base.from_dict(
            {
                "posterior": {
                    name: column[None]
                    for name, column in zip(as_variables(names), columns, strict=True)
                },
                "sample_stats": {"lp": self.log_density[index][None]},
            },
            attrs={"/": attrs},
        )


def derive(
    function: Derived, draws: Array, names: Sequence[str], vectorized: bool
) -> dict[str, Array]:
    """Derived quantities of draws, checked."""
    if vectorized:
        values = function(draws.copy())
    else:
        points = [function(point.copy()) for point in draws]
        values = {name: np.array([point[name] for point in points]) for name in points[0]}
    if not isinstance(values, Mapping):
        raise TypeError(
            "derived must return a dictionary of names to arrays, one value for each point; got "
            f"{type(values).__name__}."
        )
    taken = {*names, "weight", "log_density", "log_likelihood", "log_prior"}
    out = {}
    for name, value in values.items():
        array = np.asarray(value, dtype=float)
        if array.shape != (len(draws),):
            raise ValueError(
                f"derived[{name!r}] must have shape ({len(draws)},) for points of shape "
                f"{draws.shape}; got {array.shape}."
            )
        if str(name) in taken:
            raise ValueError(
                f"derived has the name {str(name)!r}, which is taken: choose another."
            )
        out[str(name)] = array
    return out
