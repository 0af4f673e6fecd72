"""What distinguishes the paper's scheme from the default one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from paims._arrays import Array
from paims.sampling._resampling import systematic


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
    forgotten : float
        Sweeps go on until the correlation between the chains' starts and ends, the largest over
        coordinates and log p, is below this, or below 1 - 2/d where that is more. If negative,
        all sweeps are made.
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
    n_jobs : int or None
    """

    n_islands: int
    shrinking: bool
    equal_chains: bool
    recycle: bool
    max_sweeps: int
    forgotten: float
    wanted_share: float = 0.0
    max_rounds: int = 0
    past_one: bool = True
    effective_share: float = 0.5
    max_markers: int = 1000
    n_judges: int = 100
    n_jobs: int | None = None

    def chains(self, weight: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Starting points of the chains (indices into the population) and their lengths."""
        if self.equal_chains:
            index = systematic(weight, len(weight), rng)
            return index, np.ones(len(index), dtype=np.int64)
        counts = rng.multinomial(len(weight), weight)
        index = np.flatnonzero(counts)
        return index, counts[index]

    def enough(self, correlation: float, n_params: int) -> bool:
        """Whether chains with this correlation between starts and ends have moved enough.

        In high dimension a sweep forgets less, and the recycled sample does not need more: with
        0.7 in d = 20, a sampled mixture costs 419,000 evaluations for a mass error of 0.002, with
        0.9 a third less for 0.009; in d = 10, 0.7 and 0.8 are equally accurate and the second
        saves two in five.
        """
        return self.forgotten >= 0.0 and correlation < max(self.forgotten, 1.0 - 2.0 / n_params)

    def second_stage(self, n_params: int) -> Callable[[int, np.random.Generator], Array]:
        """Scales of the second stage's steps: c0, or with shrinkage kernels c0 10^(-2 v^4).

        v is uniform: most steps are about c0, one in six is below c0/10. Where a cluster's
        covariance is far too wide for the place, as at a mode that has no cluster yet, the small
        steps are the ones that move.
        """
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
        forgotten=0.7,
        wanted_share=1.75,
        max_rounds=10,
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
        forgotten=np.inf,
        past_one=False,
        max_markers=10**9,
        n_jobs=n_jobs,
    )
