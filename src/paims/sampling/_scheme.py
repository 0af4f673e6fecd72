"""What a run was asked for: its plan, and the choices of the paper's and the default scheme.

A plan is all that the draws depend on beside the density, and can be stored as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from paims._arrays import Array
from paims.sampling._path import systematic
from paims.sampling._references import Normal, Reference, SoftUniform, Uniform
from paims.sampling._target import Target

_REFERENCES: dict[str, tuple[type, tuple[str, ...]]] = {
    "Uniform": (Uniform, ("lower", "upper")),
    "SoftUniform": (SoftUniform, ("lower", "upper", "width")),
    "Normal": (Normal, ("mean", "cov")),
}


@dataclass(frozen=True)
class Scheme:
    """The choices of a sampling scheme. Use :func:`default_scheme` or :func:`paper_scheme`.

    Attributes
    ----------
    n_islands : int
        Two populations that see each other's markers only, or one that sees its own.
    shrinking : bool
        Per-mode shrinkage kernels with a chosen spread; otherwise the paper's random walks from
        the markers with decaying spread and one covariance.
    equal_chains : bool
        One chain for each point, systematically resampled; otherwise chain lengths multinomial by
        weight, as in TMCMC.
    recycle : bool
        Whether all candidates form the final sample.
    max_sweeps : int
        Most transitions of a chain in a level.
    max_correlation : float or None
        Sweeps go on until the correlation between the chains' starts and ends, the largest over
        coordinates and log p, is below this, or below 1 - 2/d where that is more. None makes all
        ``max_sweeps``.
    wanted_share : float
        Rounds at temperature 1 go on until the recycled sample has this effective size, relative
        to the number of points.
    max_rounds : int
        Most rounds at temperature 1 after the first.
    past_one : bool
        Whether goal="optimum" compares the spread of the log density with that at temperature 1.
        The paper compares with level 0, where it may be so large that temperature 1 already
        counts as cold.
    effective_share : float
        gamma of the temperature rule.
    max_markers : int
        Markers of an island are thinned to this number.
    n_judges : int
        Points on which the spread is judged.
    efficient : float
        Importance efficiency of the mixtures above which there is no second stage.
    least_share : float
        Least share of the candidates that come from one cluster of markers.
    wide_share : float
        Share of the markers whose kernels are wider than their cluster.
    hopeless : float
        Importance efficiency of the mixtures below which, if there are gradients, the chains make
        Hamiltonian moves in their place,
    many_params : int
        if there are at least so many parameters: with fewer, random steps do as well for less.
    search_share : float
        Evaluations spent on the search for missed modes, relative to those before it; 0 for none.
    bending : float
        Importance efficiency of the mixtures below which maps are tried that straighten clusters.
    n_jobs : int or None
    """

    n_islands: int
    shrinking: bool
    equal_chains: bool
    recycle: bool
    max_sweeps: int
    max_correlation: float | None
    wanted_share: float = 0.0
    max_rounds: int = 0
    past_one: bool = True
    effective_share: float = 0.5
    max_markers: int = 1000
    n_judges: int = 100
    efficient: float = 1.0
    least_share: float = 0.0
    wide_share: float = 0.0
    hopeless: float = 0.0
    many_params: int = 12
    search_share: float = 0.0
    bending: float = 0.0
    n_jobs: int | None = None

    @staticmethod
    def from_stored(values: Mapping[str, Any]) -> Scheme:
        """Build from the values of a file, also of those that have ``forgotten``.

        It was the name of ``max_correlation``, with a negative number for None.
        """
        values = dict(values)
        if "forgotten" in values:
            forgotten = values.pop("forgotten")
            values["max_correlation"] = None if forgotten < 0.0 else forgotten
        return Scheme(**values)

    def chains(self, weight: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Starting points of the chains (indices into the population) and their lengths."""
        if self.equal_chains:
            index = systematic(weight, len(weight), rng)
            return index, np.ones(len(index), dtype=np.int64)
        counts = rng.multinomial(len(weight), weight)
        index = np.flatnonzero(counts)
        return index, counts[index]

    def enough(self, correlation: float, n_params: int = 1) -> bool:
        """Whether chains with this correlation between starts and ends have moved enough.

        In high dimension a sweep forgets less, and the recycled sample does not need more: with
        0.7 in d = 20, a sampled mixture costs 419,000 evaluations for a mass error of 0.002, with
        0.9 a third less for 0.009; in d = 10, 0.7 and 0.8 are equally accurate and the second
        saves two in five.
        """
        if self.max_correlation is None:
            return False
        return correlation < max(self.max_correlation, 1.0 - 2.0 / n_params)

    def leaps(self, n_params: int, efficiency: float) -> bool:
        """Whether chains make Hamiltonian moves, if they can."""
        return n_params >= self.many_params and efficiency < self.hopeless

    def second_stage(
        self, n_params: int, efficiency: float = 0.0
    ) -> Callable[[int, np.random.Generator], Array] | None:
        """Scales of the second stage's steps: c0, or with shrinkage kernels c0 10^(-2 v^4).

        None where the mixtures' importance efficiency is so good that their candidates are
        better spent evaluations.

        v is uniform: most steps are about c0, one in six is below c0/10. Where a cluster's
        covariance is far too wide for the place, as at a mode that has no cluster yet, the small
        steps are the ones that move.
        """
        if efficiency > self.efficient:
            return None
        largest = self.second_scale(n_params)

        def scales(n: int, rng: np.random.Generator) -> Array:
            if not self.shrinking:
                return np.full(n, largest)
            return np.asarray(largest * 10.0 ** (-2.0 * rng.random(n) ** 4))

        return scales

    def second_scale(self, n_params: int) -> float:
        """c0 of the second stage: 2.38 / sqrt(d), the optimal scaling of a random walk."""
        return 2.38 / float(np.sqrt(n_params))

    def decayed_spread(self, n_params: int, level: int) -> float:
        """c_k = nu^k c_0 with nu = 1/2 (paper, section 3.2)."""
        return self.second_scale(n_params) * 0.5**level


def default_scheme(n_jobs: int | None = None) -> Scheme:
    """Two islands, equal chains, shrinkage kernels, recycling."""
    return Scheme(
        n_islands=2,
        shrinking=True,
        equal_chains=True,
        recycle=True,
        max_sweeps=10,
        max_correlation=0.7,
        wanted_share=2.25,
        max_rounds=10,
        effective_share=0.4,
        efficient=0.4,
        least_share=0.05,
        wide_share=0.1,
        hopeless=0.02,
        search_share=0.05,
        bending=0.7,
        n_jobs=n_jobs,
    )


def paper_scheme(n_jobs: int | None = None) -> Scheme:
    """The paper's choices."""
    return Scheme(
        n_islands=1,
        shrinking=False,
        equal_chains=False,
        recycle=False,
        max_sweeps=1,
        max_correlation=np.inf,
        past_one=False,
        max_markers=10**9,
        n_jobs=n_jobs,
    )


@dataclass(frozen=True)
class Plan:
    """How a target is sampled.

    Attributes
    ----------
    n_samples : int
    goal : str
    scheme : Scheme
    names : tuple of str
    seed : int
    periodic : tuple of int
        Parameters that are periodic.
    """

    n_samples: int
    goal: str
    scheme: Scheme
    names: tuple[str, ...]
    seed: int
    periodic: tuple[int, ...] = ()


def as_settings(plan: Plan, target: Target) -> dict[str, Any]:
    """Everything that the draws depend on, as JSON."""
    scheme = asdict(plan.scheme)
    del scheme["n_jobs"]
    return {
        "random_state": plan.seed,
        "n_samples": plan.n_samples,
        "goal": plan.goal,
        "scheme": scheme,
        "names": list(plan.names),
        "periodic": list(plan.periodic),
        "vectorized": target.density.vectorized,
        "times_reference": target.times_reference,
        "reference": _encoded(target.reference),
        "density": getattr(target.density.log_density, "description", None),
        "leads": [getattr(lead.log_density, "description", None) for lead in target.leads],
    }


def upgraded_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a file with the names of today."""
    scheme = asdict(Scheme.from_stored(settings["scheme"]))
    del scheme["n_jobs"]
    return {"periodic": [], "leads": [], **settings, "scheme": scheme}


def plan_of(settings: dict[str, Any], n_jobs: int | None) -> Plan:
    """Read the plan of a checkpoint."""
    return Plan(
        settings["n_samples"],
        settings["goal"],
        Scheme(**settings["scheme"], n_jobs=n_jobs),
        tuple(settings["names"]),
        settings["random_state"],
        tuple(settings["periodic"]),
    )


def stored_reference(settings: dict[str, Any]) -> Reference | None:
    """The reference of a checkpoint; None if it is a program of the user's."""
    stored = settings["reference"]
    if stored["class"] not in _REFERENCES or "arguments" not in stored:
        return None
    made: Reference = _REFERENCES[stored["class"]][0](**stored["arguments"])
    return made


def _encoded(reference: Reference) -> dict[str, Any]:
    name = type(reference).__name__
    known, arguments = _REFERENCES.get(name, (None, ()))
    if known is not type(reference):
        return {"class": name}
    return {
        "class": name,
        "arguments": {key: np.asarray(getattr(reference, key)).tolist() for key in arguments},
    }
