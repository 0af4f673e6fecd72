"""How good the predictions are: interpolation, known functions, the paper's largest experiment."""

from __future__ import annotations

import doctest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paims
from paims import datasets, simulators
from paims.emulator import _estimator as estimator


@pytest.mark.parametrize("nugget", [0, 1e-12])
@pytest.mark.parametrize("name", ["branin", "friedman", "sine"])
def test_interpolates_without_a_nugget(name: str, nugget: float) -> None:
    if name == "sine":
        X = np.linspace(0.0, 3.0, 12)[:, None]
        y = np.sin(2.0 * X[:, 0])
    else:
        simulator = simulators.get(name)
        X = simulator.design(10 * simulator.n_inputs, random_state=1)
        y = simulator(X)
    emulator = paims.Emulator(
        "squared_exponential", nugget=nugget, n_samples=500, random_state=0
    ).fit(X, y)
    mean, std = emulator.predict(X, return_std=True)
    assert np.abs(mean - y).max() <= 1e-6 * np.ptp(y)
    assert std.max() <= 1e-4 * np.ptp(y)
    if name == "sine":
        return  # So smooth that twelve runs leave nothing open between them either.
    between = 0.5 * (X[1:] + X[:-1])
    assert (emulator.predict(between, return_std=True)[1] > std.max()).mean() > 0.9


def test_predicts_a_smooth_function_within_its_own_uncertainty() -> None:
    simulator = simulators.get("otl_circuit")
    new = simulator.design(200, random_state=3)
    truth = simulator(new)
    covered = []
    # The errors at the new points hang together: one design says little.
    for design in (2, 4, 5, 6):
        X = simulator.design(40, random_state=design)
        emulator = paims.Emulator(n_samples=500, random_state=0).fit(X, simulator(X))
        assert emulator.score(new, truth) > 0.99
        lower, upper = emulator.predict_distribution(new).interval(0.95)
        covered.append(np.mean((lower <= truth) & (truth <= upper)))
    assert np.mean(covered) > 0.85


def test_noise_is_told_from_signal() -> None:
    rng = np.random.default_rng(8)
    X = rng.random((60, 1))
    y = np.sin(6.0 * X[:, 0]) + 0.3 * rng.standard_normal(60)
    emulator = paims.Emulator(n_samples=500, random_state=0).fit(X, y)
    new = np.linspace(0.05, 0.95, 50)[:, None]
    _, std = emulator.predict(new, return_std=True)
    _, smooth = emulator.predict(new, return_std=True, include_nugget=False)
    assert 0.2 < np.sqrt(np.mean(std**2 - smooth**2)) < 0.4
    assert np.abs(emulator.predict(new) - np.sin(6.0 * new[:, 0])).max() < 0.35


@pytest.mark.parametrize("goal", ["posterior", "optimum", "map"])
def test_goals_predict_alike_where_the_runs_decide(
    goal: str, runs: tuple[np.ndarray, np.ndarray]
) -> None:
    emulator = paims.Emulator(goal=goal, n_samples=300, random_state=0).fit(*runs)
    assert emulator.score(*runs) > 0.9
    n = len(emulator.ensemble_.draws)
    assert n == 1 if goal == "map" else n > 20
    if goal == "optimum":
        height, typical = emulator.result_.log_density, emulator.result_.posterior.log_density
        assert height.mean() > np.average(typical, weights=emulator.result_.posterior.weights)


def test_examples_of_the_documentation() -> None:
    found = doctest.testmod(estimator)
    assert found.attempted > 0
    assert found.failed == 0


@pytest.fixture
def nilson_kuusk(shared_dir: Path, monkeypatch: pytest.MonkeyPatch) -> datasets.Dataset:
    monkeypatch.setenv(datasets.DATA_DIR_VARIABLE, str(shared_dir / "data"))
    return datasets.load_nilson_kuusk()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "rmse", "nlpd", "least_covered"),
    [
        ({}, 0.0205, -2.55, 0.92),
        ({"nugget_prior": "uniform"}, 0.0205, -2.55, 0.92),
        ({"kernel": "matern52"}, 0.0190, -2.60, 0.85),
    ],
)
def test_nilson_kuusk(
    nilson_kuusk: datasets.Dataset,
    settings: dict[str, Any],
    rmse: float,
    nlpd: float,
    least_covered: float,
) -> None:
    data = nilson_kuusk
    emulator = paims.Emulator(**settings, random_state=0).fit(data.X, data.y)
    mixture = emulator.predict_distribution(data.X_test)
    assert np.sqrt(np.mean((mixture.mean - data.y_test) ** 2)) <= rmse
    assert -mixture.logpdf(data.y_test).mean() <= nlpd
    lower, upper = mixture.interval(0.95)
    covered = np.mean((lower <= data.y_test) & (data.y_test <= upper))
    assert covered >= least_covered
