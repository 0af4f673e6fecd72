"""A fit as the paper makes it, and its errors on test sets.

One annealing past temperature 1, seen at both of its ends.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import qmc

from paims._arrays import FloatArray
from paims.emulator import MixturePrediction
from paims.emulator._ensemble import Ensemble, WeightedDraws, ensemble_of_draws
from paims.emulator._scaling import OutputScaling
from paims.experiments._outcome import Settings
from paims.gp import Posterior
from paims.inference import find_best, sample_posterior
from paims.sampling import Mode, SampleResult, SamplingWarning
from paims.simulators import Simulator

#: Points of the paper's test sets, which are not published.
N_PAPER_TESTS = 25


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
    def n_levels_to_one(self) -> int:
        """Levels down to temperature 1."""
        return int(np.argmax(self.result.levels["beta"] >= 1.0)) + 1

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
    best = find_best(posterior, result, result.modes(min_mass=0.0))
    at_one = result if result.posterior is None else result.posterior
    single = Ensemble(posterior, np.asarray(best.location)[None], np.ones(1), output, "gaussian")
    ensembles = {"best": single}
    for name, draws in (("posterior", at_one), ("optimum", result)):
        # Gaussian components, as in the paper.
        rng = np.random.default_rng(seed)
        own = WeightedDraws(posterior, draws.draws, draws.weights)
        ensembles[name], _ = ensemble_of_draws([own], output, "gaussian", rng)
    return Fit(scheme, result, best, ensembles, result.warnings)


@dataclass(frozen=True, eq=False)
class TestSets:
    """Inputs that no emulator has seen, with their outputs.

    Attributes
    ----------
    X, y : (n_tests, p) and (n_tests,) ndarray
        Sobol' points.
    X_small, y_small : (n_designs, 25, p) and (n_designs, 25) ndarray
        Latin hypercubes.
    """

    __test__ = False

    X: FloatArray
    y: FloatArray
    X_small: FloatArray
    y_small: FloatArray


@dataclass(frozen=True, eq=False)
class Accuracy:
    """Errors of one ensemble on the test sets.

    Attributes
    ----------
    rmse : float
        On the large set.
    rmse_small : (n_designs,) ndarray
        On each small one.
    residuals : (n_tests,) ndarray
        Standardised (the paper's equation residuals), on the large set.
    mean : (n_tests,) ndarray
        Predictive means there.
    """

    rmse: float
    rmse_small: FloatArray
    residuals: FloatArray
    mean: FloatArray

    def below(self, figure: float) -> int:
        """How many of the small sets have a smaller error than a figure."""
        return int(np.sum(self.rmse_small < figure))


def notes(fits: Mapping[str, Fit]) -> list[str]:
    """What the sampler warned of, by scheme."""
    return [f"{scheme} scheme: {text}" for scheme, one in fits.items() for text in one.notes]


def levels_to_one(fits: Mapping[str, Fit]) -> str:
    """Levels down to temperature 1, by scheme, as a sentence."""
    listed = ", ".join(f"{one.n_levels_to_one} ({scheme})" for scheme, one in fits.items())
    return f"Levels down to temperature 1: {listed}."


def make_tests(simulator: Simulator, settings: Settings) -> TestSets:
    """Draw the test sets of a simulator on the unit cube."""
    p = simulator.n_inputs
    n_bits = max(1, int(np.ceil(np.log2(settings.n_tests))))
    X = qmc.Sobol(p, scramble=False).random_base2(n_bits)[: settings.n_tests]
    seeds = np.random.SeedSequence(settings.seed).spawn(settings.n_designs)
    small = np.array(
        [simulator.design(N_PAPER_TESTS, np.random.default_rng(seed)) for seed in seeds]
    )
    y_small = simulator(small.reshape(-1, p)).reshape(settings.n_designs, N_PAPER_TESTS)
    return TestSets(X, simulator(X), small, y_small)


def accuracy(fit: Fit, which: str, tests: TestSets) -> Accuracy:
    """Errors of one of a fit's ensembles ("best", "posterior" or "optimum")."""
    mean, std = fit.moments(tests.X, which)
    flat = tests.X_small.reshape(-1, tests.X.shape[1])
    small = fit.moments(flat, which)[0].reshape(tests.y_small.shape)
    return Accuracy(
        rmse=float(np.sqrt(np.mean((tests.y - mean) ** 2))),
        rmse_small=np.sqrt(np.mean((tests.y_small - small) ** 2, axis=1)),
        residuals=(tests.y - mean) / std,
        mean=mean,
    )
