"""A fit as the paper makes it: one annealing past temperature 1, seen at both of its ends."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from paims._arrays import FloatArray
from paims.emulator import MixturePrediction
from paims.emulator._compression import compress
from paims.emulator._ensemble import Ensemble
from paims.emulator._scaling import OutputScaling
from paims.emulator._thinning import merge_equal, thin
from paims.gp import Posterior
from paims.inference import find_best, sample_posterior
from paims.sampling import Mode, SampleResult, SamplingWarning

# As many as an emulator has, and draws that they are chosen from.
_N_COMPONENTS = 128
_N_RESERVOIR = 1024


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of a simulator, inputs in the unit cube as in the paper.

    Attributes
    ----------
    X : (n, p) ndarray
    y : (n,) ndarray
        In the simulator's units.
    names : tuple of str
        Of the inputs.
    """

    X: FloatArray
    y: FloatArray
    names: tuple[str, ...]

    def posterior(self, prior: str = "reference", nugget: str | float = "estimate") -> Posterior:
        """The posterior of the hyper-parameters, with the output standardised."""
        scaled = OutputScaling.of(self.y, centre=True).runs(self.y)
        return Posterior(self.X, scaled, prior=prior, nugget=nugget)


@dataclass(frozen=True, eq=False)
class Fit:
    """The hyper-parameters of the runs, sampled with one scheme.

    Attributes
    ----------
    scheme : {"paper", "default"}
    result : SampleResult
        Of goal="optimum": nearly optimal points, and in ``result.posterior`` the draws at
        temperature 1.
    best : Mode
        The point of highest density.
    ensembles : dict of str to Ensemble
        What predictions are made with: "best", "posterior" (draws at temperature 1) and
        "optimum" (draws of the last level).
    notes : tuple of str
        What the sampler warned of.
    """

    scheme: str
    result: SampleResult
    best: Mode
    ensembles: dict[str, Ensemble]
    notes: tuple[str, ...]

    @property
    def at_one(self) -> SampleResult:
        """The draws at temperature 1."""
        return self.result if self.result.posterior is None else self.result.posterior

    @property
    def n_levels(self) -> int:
        """Levels of the whole annealing."""
        return len(self.result.levels)

    @property
    def mixture(self) -> str:
        """Which ensemble is the scheme's own mixture: the paper's is that of the last level."""
        return "optimum" if self.scheme == "paper" else "posterior"

    def predict(self, X: FloatArray, which: str) -> MixturePrediction:
        """Predict at points of the unit cube with one of the ensembles."""
        return self.ensembles[which].mixture(X)

    def moments(self, X: FloatArray, which: str) -> tuple[FloatArray, FloatArray]:
        """Predictive mean and standard deviation, streamed, in the simulator's units."""
        ensemble = self.ensembles[which]
        mean, std = ensemble.moments(X)
        return ensemble.output.value(mean), ensemble.output.difference(std)


def fit(runs: Runs, posterior: Posterior, scheme: str, n_samples: int | None, seed: int) -> Fit:
    """Sample the hyper-parameters and choose what predictions are made with.

    Parameters
    ----------
    runs : Runs
    posterior : Posterior
        Of these runs.
    scheme : {"paper", "default"}
    n_samples : int or None
        Points of each level.
    seed : int
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        result = sample_posterior(
            posterior, n_samples, goal="optimum", scheme=scheme, random_state=seed
        )
    if result.status.name == "interrupted":
        # Half an annealing is no experiment.
        raise KeyboardInterrupt
    output = OutputScaling.of(runs.y, centre=True)
    best = find_best(result, result.modes(min_mass=0.0))
    at_one = result if result.posterior is None else result.posterior
    single = Ensemble(posterior, np.asarray(best.location)[None], np.ones(1), output, "gaussian")
    ensembles = {
        "best": single,
        "posterior": _ensemble(posterior, at_one, output, seed),
        "optimum": _ensemble(posterior, result, output, seed),
    }
    return Fit(scheme, result, best, ensembles, result.warnings)


def _ensemble(
    posterior: Posterior, result: SampleResult, output: OutputScaling, seed: int
) -> Ensemble:
    """A mixture of few components, each Gaussian as in the paper, for all draws of a result."""
    rng = np.random.default_rng(seed)
    draws, weights = merge_equal(result.draws, result.weights)
    index, weights = thin(draws, weights / weights.sum(), _N_RESERVOIR, rng)
    many = Ensemble(posterior, draws[index], weights, output, "gaussian")
    return compress(many, _N_COMPONENTS, rng)[0]
