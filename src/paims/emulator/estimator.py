"""The emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from paims.emulator.ensemble import Ensemble
from paims.emulator.mixture import MixturePrediction
from paims.emulator.scaling import InputScaling, OutputScaling
from paims.emulator.thinning import thin
from paims.emulator.trend import basis_in_units, spans_constant
from paims.emulator.validation import (
    check_choice,
    check_constant_columns,
    check_enough_runs,
    check_repeats,
    check_varying_output,
)
from paims.gp import Basis, Kernel, Nugget, NuggetPrior, Posterior, Prior
from paims.gp.nugget import FixedNugget, as_nugget
from paims.inference import find_best, sample_posterior
from paims.sampling import Scheme

FloatArray = npt.NDArray[np.float64]

_N_COMPONENTS = 256


class Emulator(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A Gaussian-process emulator that predicts with all modes of its posterior."""

    def __init__(
        self,
        kernel: str | Kernel = "squared_exponential",
        mean: str | Basis | Callable[[FloatArray], Any] = "linear",
        prior: str | Prior | Any = "reference",
        nugget: str | float | Nugget = "estimate",
        nugget_prior: str | NuggetPrior = "uniform",
        goal: str = "posterior",
        n_samples: int | None = None,
        predictive: str = "student_t",
        scheme: str | Scheme = "default",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.prior = prior
        self.nugget = nugget
        self.nugget_prior = nugget_prior
        self.goal = goal
        self.n_samples = n_samples
        self.predictive = predictive
        self.scheme = scheme
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    def fit(self, X: Any, y: Any) -> Emulator:
        """Learn."""
        check_choice("goal", self.goal, ("posterior", "optimum", "map"))
        check_choice("predictive", self.predictive, ("student_t", "gaussian"))
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        y = y.astype(np.float64)
        self.inputs_ = InputScaling.of(X)
        names = self._feature_names()
        check_constant_columns(~self.inputs_.active, names, len(X))
        scaled = self.inputs_.runs(X)
        basis = basis_in_units(self.mean, self.inputs_)
        H = basis(scaled)
        check_enough_runs(len(X), H.shape[1], self.mean)
        centre = spans_constant(H)
        check_varying_output(y, centred=centre)
        self.output_ = OutputScaling.of(y, centre=centre)
        target = self.output_.runs(y)
        nugget = as_nugget(self.nugget, self.nugget_prior)
        if isinstance(nugget, FixedNugget):
            check_repeats(scaled, target, nugget.nugget)
        self.posterior_ = Posterior(
            scaled, target, self.kernel, basis, self.prior, nugget, n_jobs=self.n_jobs
        )
        seed = np.random.default_rng(self.random_state).integers(2**63)
        self.result_ = sample_posterior(
            self.posterior_,
            self.n_samples,
            goal="optimum" if self.goal == "optimum" else "posterior",
            scheme=self.scheme,
            random_state=int(seed),
            n_jobs=self.n_jobs,
            progress=self.progress,
        )
        if self.goal == "map":
            best, _ = find_best(self.result_)
            draws, weights = best[None], np.ones(1)
        else:
            rng = np.random.default_rng([int(seed), 1])
            draws, weights = thin(self.result_.draws, self.result_.weights, _N_COMPONENTS, rng)
        self.ensemble_ = Ensemble(self.posterior_, draws, weights, self.output_, self.predictive)
        return self

    def _feature_names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i + 1}" for i in range(self.n_features_in_)] if names is None else list(names)

    def _scaled(self, X: Any) -> FloatArray:
        check_is_fitted(self, "ensemble_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.inputs_.apply(X)

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        include_nugget: bool = True,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predict."""
        scaled = self._scaled(X)
        mean, std = self.ensemble_.moments(scaled, include_nugget=include_nugget)
        if return_std:
            return self.output_.value(mean), self.output_.difference(std)
        return self.output_.value(mean)

    def predict_distribution(self, X: Any, include_nugget: bool = True) -> MixturePrediction:
        """Predict."""
        return self.ensemble_.mixture(self._scaled(X), include_nugget=include_nugget)
