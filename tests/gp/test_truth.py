"""The posterior against values with 60 digits, and against libKriging."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat
from tests.gp import oracle

from paims.gp import (
    KERNELS,
    MEANS,
    PRIORS,
    JointlyRobust,
    Posterior,
    PowerExponential,
    SquaredExponential,
    _compiled,
    _twin,
)

ENGINES = {"twin": _twin.core_terms, "compiled": _compiled.core_terms}
CASES = json.loads(oracle.VALUES.read_text())


@pytest.fixture(scope="module")
def branin(shared_dir: Path) -> dict[str, Any]:
    """Seven points of Branin's posterior, computed elsewhere with 60 digits."""
    runs = loadmat(shared_dir / "data" / "branin_sample.mat")
    reference = json.loads(
        (shared_dir / "reference" / "branin-posterior-60-digits.json").read_text()
    )
    points = reference["points"]
    return {
        "X": np.array(runs["X"], dtype=float),
        "y": np.array(runs["y"], dtype=float).ravel(),
        "phi": np.exp([point["log_phi"] for point in points]),
        "nugget": np.array([point["nugget"] for point in points]),
        "terms": np.array(
            [
                [point[key] for key in ("log_det_K", "log_det_HKH", "S2", "log_det_I")]
                for point in points
            ]
        ),
        "log_det_I_with_nugget": np.array([point["log_det_I_with_nugget"] for point in points]),
    }


@pytest.mark.parametrize("engine", ENGINES)
def test_branin_points(engine: str, branin: dict[str, Any]) -> None:
    X, y = branin["X"], branin["y"]
    H = np.column_stack([np.ones(len(X)), X])
    tolerance = np.where(branin["nugget"] >= 1e-8, 1e-8, 1e-4)
    for information, expected_information in [
        (1, branin["terms"][:, 3]),
        (2, branin["log_det_I_with_nugget"]),
    ]:
        expected = np.column_stack([branin["terms"][:, :3], expected_information])
        points = branin["phi"], branin["nugget"]
        actual = ENGINES[engine](X, H, y, SquaredExponential(), *points, information)
        error = np.abs(actual / expected - 1.0)
        assert (error <= tolerance[:, None]).all(), f"information={information}\n{error}"


@pytest.mark.parametrize("engine", ENGINES)
def test_branin_long_ranges_keep_digits_of_the_residual(
    engine: str, branin: dict[str, Any]
) -> None:
    # All correlations are within 0.003 of 1 and the condition number is 2e13: K itself, rounded,
    # gives S2 to 1e-5 or 1e-4 by luck of the processor; K - 1 has the digits that K has lost.
    X, y = branin["X"], branin["y"]
    H = np.column_stack([np.ones(len(X)), X])
    kernel = SquaredExponential()
    point = branin["phi"][3:4], branin["nugget"][3:4]
    assert np.abs(kernel.correlation_minus_one(X, X, point[0])).max() < 0.003
    S2 = ENGINES[engine](X, H, y, kernel, *point, 1)[0, 2]
    np.testing.assert_allclose(S2, branin["terms"][3, 2], rtol=1e-6)


def test_branin_posterior_is_the_sum_of_its_parts(branin: dict[str, Any]) -> None:
    posterior = Posterior(branin["X"], branin["y"])
    usable = branin["nugget"] > 1e-12  # an estimated nugget is above its bound
    u = posterior.from_physical(branin["phi"][usable], branin["nugget"][usable])
    log_det_K, log_det_HKH, S2, log_det_I = branin["terms"][usable].T
    nugget = branin["nugget"][usable]
    jacobian = np.log(nugget - 1e-12) + np.log1p(-nugget) - np.log1p(-1e-12)
    expected = -7.5 * np.log(S2) - 0.5 * (log_det_K + log_det_HKH - log_det_I) + jacobian + 1e-12
    np.testing.assert_allclose(posterior(u), expected, rtol=1e-9)


def posterior_of(case: dict[str, Any]) -> tuple[Posterior, np.ndarray]:
    kernel = case["kernel"]
    posterior = Posterior(
        case["X"],
        case["y"],
        PowerExponential(case["power"]) if kernel == "power_exponential" else kernel,
        case["mean"],
        case["prior"],
        "estimate" if case["nugget"] is None else case["nugget"],
        case["nugget_prior"],
    )
    z = [] if case["z"] is None else [case["z"]]
    return posterior, np.array([[*case["log_phi"], *z]])


def identity(case: dict[str, Any]) -> str:
    nugget = "fixed" if case["z"] is None else f"{case['nugget_prior']}_{case['z']}"
    return f"{case['kernel']}-{case['mean']}-{case['prior']}-{nugget}"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES, ids=identity)
def test_posterior_equals_oracle(
    case: dict[str, Any], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compiled, "core_terms", ENGINES[engine])
    posterior, u = posterior_of(case)
    parts = {"log_posterior": posterior(u), **posterior.parts(u)}
    assert parts.keys() == case["expected"].keys()
    for name, expected in case["expected"].items():
        np.testing.assert_allclose(
            parts[name], expected, rtol=1e-9, atol=1e-11, err_msg=name, strict=False
        )


def test_the_oracle_knows_every_kernel_and_mean() -> None:
    # If not: python -m tests.gp.oracle
    assert {case["kernel"] for case in CASES} == set(KERNELS)
    assert {case["mean"] for case in CASES} == set(MEANS)
    assert {case["prior"] for case in CASES} == set(PRIORS)


@pytest.mark.slow
def test_oracle_values_are_those_of_the_oracle() -> None:
    cases = oracle.cases()
    assert len(cases) == len(CASES)
    for case, stored in zip(cases, CASES, strict=True):
        assert {**case, "expected": oracle.compute(case)} == stored


@pytest.mark.parametrize("mean", ["constant", "linear", "quadratic"])
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("gauss", "squared_exponential"), ("matern5_2", "matern52"), ("matern3_2", "matern32")],
)
def test_marginal_posterior_equals_libkriging(theirs: str, ours: str, mean: str) -> None:
    libkriging = pytest.importorskip("pylibkriging")
    rng = np.random.default_rng(7)
    n, p = 20, 2
    X = rng.random((n, p))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] ** 2
    ranges = np.exp(rng.uniform(-3.0, -0.5, (100, p)))
    parameters = {"theta": ranges[:1], "is_theta_estim": False}
    peer = libkriging.Kriging(
        y, np.asfortranarray(X), theirs, mean, False, "none", "LMP", parameters
    )
    expected = np.array([peer.logMargPostFun(theta, False)[0] for theta in ranges])
    # Its prior is a log t - b t in the inverse ranges, without constant and Jacobian.
    C, a = np.ptp(X, axis=0) / n ** (1 / p), 0.2
    t = (C / ranges).sum(axis=1)
    peer_log_prior = a * np.log(t) - (a + p) / n ** (1 / p) * t

    likelihood = Posterior(X, y, ours, mean, "flat", nugget=0.0)
    u = likelihood.from_physical(likelihood.kernel.from_length_scale(ranges))
    np.testing.assert_allclose(likelihood(u), expected - peer_log_prior, rtol=0.0, atol=1e-8)

    robust = Posterior(X, y, ours, mean, JointlyRobust(), nugget=0.0)
    without_jacobian = robust(u) + np.log(ranges).sum(axis=1)
    constant = without_jacobian - expected
    np.testing.assert_allclose(constant, constant[0], rtol=0.0, atol=1e-8)
