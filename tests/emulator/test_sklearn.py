"""The emulator as a scikit-learn estimator."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import paims
from paims.sampling import default_scheme

# The checks fit dozens of times: few points, one pass, and a prior without n^3 p work.
QUICK = {
    "n_samples": 300,
    "prior": "jointly_robust",
    "mean": "constant",
    "scheme": replace(default_scheme(), max_sweeps=1, max_rounds=0),
    "random_state": 0,
}
# These have 200 runs of 10 inputs.
LARGE = ("check_regressors_train", "check_regressor_data_not_an_array", "check_regressors_int")


def checks() -> Iterator[Any]:
    for settings in ({}, {"goal": "map"}):
        estimator = paims.Emulator(**QUICK | settings)
        for estimator_of_check, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            keywords = getattr(check, "keywords", None) or {}
            label = "-".join([*settings.values(), name, *map(str, keywords.values())])
            marks = [pytest.mark.slow] if name in LARGE or settings else []
            yield pytest.param(estimator_of_check, check, id=label, marks=marks)


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_estimator_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def quick(**settings: Any) -> paims.Emulator:
    return paims.Emulator(**{"n_samples": 300, "random_state": 0} | settings)


def test_clone_and_parameters_keep_what_was_given() -> None:
    kernel = paims.gp.PowerExponential(1.5)
    emulator = quick(kernel=kernel, nugget=1e-3)
    copy = clone(emulator)
    assert copy.kernel is not kernel
    assert copy.kernel.power == 1.5
    assert copy.get_params()["nugget"] == 1e-3
    assert copy.set_params(goal="map").goal == "map"
    assert not hasattr(copy, "ensemble_")


def test_fit_leaves_the_parameters_alone(runs: tuple[np.ndarray, np.ndarray]) -> None:
    emulator = quick()
    before = emulator.get_params()
    emulator.fit(*runs)
    assert emulator.get_params() == before


def test_pipeline_and_grid_search(runs: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = runs
    pipeline = make_pipeline(StandardScaler(), quick())
    np.testing.assert_allclose(
        pipeline.fit(X, y).predict(X), quick().fit(X, y).predict(X), rtol=1e-6
    )
    search = GridSearchCV(quick(), {"kernel": ["squared_exponential", "matern32"]}, cv=2)
    search.fit(X, y)
    assert search.best_params_["kernel"] in ("squared_exponential", "matern32")
    assert search.best_score_ > 0.5


def test_grid_search_in_threads(runs: tuple[np.ndarray, np.ndarray]) -> None:
    from joblib import parallel_backend

    with parallel_backend("threading", n_jobs=2):
        search = GridSearchCV(quick(), {"nugget": [1e-4, "estimate"]}, cv=2).fit(*runs)
    alone = quick(nugget=search.best_params_["nugget"]).fit(*runs)
    np.testing.assert_array_equal(search.predict(runs[0]), alone.predict(runs[0]))


def test_cross_validated_predictions(runs: tuple[np.ndarray, np.ndarray]) -> None:
    predicted = cross_val_predict(quick(), *runs, cv=4)
    assert np.corrcoef(predicted, runs[1])[0, 1] > 0.8


def test_data_frames_keep_their_names(runs: tuple[np.ndarray, np.ndarray]) -> None:
    frame = pd.DataFrame(runs[0], columns=["angle", "speed"])
    emulator = quick().fit(frame, pd.Series(runs[1], name="output"))
    assert emulator.feature_names_in_.tolist() == ["angle", "speed"]
    assert emulator.draws_.dtype.names == ("length_scale_angle", "length_scale_speed", "nugget")
    assert emulator.beta_["name"].tolist() == ["1", "angle", "speed"]
    assert "speed" in emulator.modes_[0].says
    np.testing.assert_array_equal(emulator.predict(frame), quick().fit(*runs).predict(runs[0]))


def test_same_seed_same_emulator_for_any_number_of_threads(
    runs: tuple[np.ndarray, np.ndarray],
) -> None:
    one, two = quick(n_jobs=1).fit(*runs), quick(n_jobs=2).fit(*runs)
    np.testing.assert_array_equal(one.result_.draws, two.result_.draws)
    for a, b in zip(
        one.predict(runs[0], return_std=True), two.predict(runs[0], return_std=True), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    other = quick(random_state=1).fit(*runs)
    assert (one.predict(runs[0]) != other.predict(runs[0])).any()


@pytest.mark.parametrize(
    "random_state", [None, np.random.RandomState(3), np.random.default_rng(3)]
)
def test_random_states(runs: tuple[np.ndarray, np.ndarray], random_state: Any) -> None:
    emulator = quick(random_state=random_state).fit(*runs)
    assert emulator.sample_y(runs[0], 2, random_state).shape == (20, 2)


def test_pickle(emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray]) -> None:
    again = pickle.loads(pickle.dumps(emulator))
    np.testing.assert_array_equal(again.predict(runs[0]), emulator.predict(runs[0]))
    np.testing.assert_array_equal(
        again.log_posterior([[1.0, 10.0]], 0.1), emulator.log_posterior([[1.0, 10.0]], 0.1)
    )


def test_samples_have_scikit_learns_shape(emulator: paims.Emulator) -> None:
    samples = emulator.sample_y([[0.5, 20.0], [0.6, 20.0], [0.7, 20.0]], 5, random_state=0)
    assert samples.shape == (3, 5)
    again = emulator.sample_y([[0.5, 20.0], [0.6, 20.0], [0.7, 20.0]], 5, random_state=0)
    np.testing.assert_array_equal(samples, again)
    _, cov = emulator.predict([[0.5, 20.0], [0.6, 20.0]], return_cov=True)
    assert cov.shape == (2, 2)


def test_score_is_the_coefficient_of_determination(
    emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray]
) -> None:
    residual = runs[1] - emulator.predict(runs[0])
    assert emulator.score(*runs) == pytest.approx(1.0 - residual.var() / runs[1].var(), abs=0.01)


def test_import_is_light() -> None:
    program = (
        "import sys, paims; heavy = {'sklearn', 'numba', 'scipy.stats', 'h5py', 'pandas'}; "
        "found = heavy & set(sys.modules); assert not found, found"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
