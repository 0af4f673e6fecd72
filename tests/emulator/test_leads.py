"""What leads to a posterior, where it begins, and which prior "auto" stands for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import paims
from paims import inference
from paims.emulator import _fit as fitting
from paims.gp import JointlyRobust, Posterior
from paims.gp._shared import SharedPosterior
from paims.inference import RobustReference, affordable_prior, leads


def runs(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).random((n, p))
    return X, np.sin(4.0 * X[:, 0]) + X.sum(axis=1) ** 2


def robust(n: int = 30, p: int = 3, kernel: str = "matern52") -> RobustReference:
    posterior = Posterior(*runs(n, p), kernel=kernel, prior="jointly_robust")
    reference = inference.reference(posterior)
    assert isinstance(reference, RobustReference)
    return reference


@pytest.mark.parametrize("kernel", ["squared_exponential", "matern52"])
def test_robust_reference_draws_its_density(kernel: str) -> None:
    reference, n = robust(kernel=kernel), 20_000
    x = reference.sample(n, np.random.default_rng(0))
    # Any normalised density over that of the draws has the mean 1.
    other = paims.Normal(x.mean(axis=0), 0.25 * np.cov(x.T))
    ratio = np.exp(other.log_density(x) - reference.log_density(x))
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std() / np.sqrt(n)
    assert ratio.std() < 5.0
    scales, rate = reference.prior.scales(reference.X)
    inverse = np.exp(-x[:, :3] / reference.kernel.phi_power) * scales
    total = inverse.sum(axis=1)
    assert stats.kstest(total, stats.gamma(3.2, scale=1.0 / rate).cdf).pvalue > 1e-3
    for share in (inverse / total[:, None]).T:  # uniform on the simplex: Beta(1, p - 1) each
        assert stats.kstest(share, stats.beta(1.0, 2.0).cdf).pvalue > 1e-3


def test_gradient_of_the_robust_reference() -> None:
    reference = robust()
    x = reference.sample(20, np.random.default_rng(1))
    for i in range(reference.n_params):
        step = 1e-5 * np.eye(reference.n_params)[i]
        up, down = reference.log_density(x + step), reference.log_density(x - step)
        np.testing.assert_allclose(reference.gradient(x)[:, i], (up - down) / 2e-5, atol=1e-6)


def test_one_input_and_a_fixed_nugget() -> None:
    posterior = Posterior(*runs(12, 1), prior="jointly_robust", nugget=1e-6)
    x = np.linspace(-20.0, 40.0, 20_001)[:, None]
    density = np.exp(inference.reference(posterior).log_density(x))
    assert np.trapezoid(density, x[:, 0]) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "p", "sizes"),
    [(30, 2, []), (60, 2, [60]), (60, 12, []), (300, 12, [120]), (900, 12, [144, 360])],
)
def test_what_leads(n: int, p: int, sizes: list[int]) -> None:
    posterior = Posterior(*runs(n, p), prior=affordable_prior(n, p))
    found = leads(posterior)
    assert [lead.n_runs for lead in found] == sizes
    assert all(type(lead.prior) is JointlyRobust for lead in found)


def test_nothing_leads_to_a_prior_of_ones_own() -> None:
    assert leads(Posterior(*runs(60, 2), prior="log_normal")) == []


def test_fewer_runs_lead_to_several_outputs_at_once() -> None:
    X, y = runs(300, 12)
    Y = np.column_stack([y, y**2, np.sqrt(y), np.where(np.arange(300) < 20, y, np.nan)])
    shared = SharedPosterior(X, Y, prior="jointly_robust", effective=2.0)
    (lead,) = leads(shared)
    assert (lead.n_runs, lead.n_outputs, lead.effective) == (120, 3, 1.5)
    rows = np.sort(np.random.default_rng(0).permutation(300)[:120])
    np.testing.assert_array_equal(lead.Y, Y[rows, :3])
    (lead,) = leads(SharedPosterior(*(one[:60, :2] for one in (X, Y[:, :2]))))
    assert type(lead.prior) is JointlyRobust


@pytest.mark.parametrize("seed", [0, 1])
def test_a_lead_changes_the_cost_and_not_the_result(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior = Posterior(*runs(50, 2))
    led = inference.sample_posterior(posterior, 600, random_state=seed)
    monkeypatch.setattr(inference, "leads", lambda posterior: [])
    alone = inference.sample_posterior(posterior, 600, random_state=seed)
    assert led.n_lead_evaluations > 0 == alone.n_lead_evaluations
    assert led.n_evaluations < alone.n_evaluations
    error = np.hypot(led.log_evidence_error, alone.log_evidence_error)
    assert abs(led.log_evidence - alone.log_evidence) < 4.0 * error + 0.01
    noise = alone.sd * np.sqrt(1.0 / led.effective_size + 1.0 / alone.effective_size)
    assert np.all(np.abs(led.mean - alone.mean) < 5.0 * noise + 0.02 * alone.sd)


@pytest.mark.parametrize(
    ("n", "p", "prior"),
    [
        (18, 2, "reference"),
        (100, 5, "reference"),
        (144, 6, "jointly_robust"),
        (100, 10, "reference"),
        (20, 11, "jointly_robust"),
    ],
)
def test_affordable_prior(n: int, p: int, prior: str) -> None:
    assert affordable_prior(n, p) == prior


def test_auto_is_kept_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = runs(14, 2)
    asked = paims.Emulator("matern52", n_samples=300, random_state=0)
    emulator = asked.fit(X, y)
    assert emulator.posterior_.prior.name == "reference"
    emulator.save(tmp_path / "emulator.h5")
    monkeypatch.setattr(fitting, "affordable_prior", lambda n, p: "jointly_robust")
    loaded = paims.load_emulator(tmp_path / "emulator.h5")
    assert loaded.prior == "auto"
    assert loaded.posterior_.prior.name == "reference"
    assert asked.fit(X, y).posterior_.prior.name == "jointly_robust"


def test_many_runs_take_one_kernel() -> None:
    x = np.random.default_rng(0).random((250, 1))
    y = np.abs(x[:, 0] - 0.5) + 0.01 * np.random.default_rng(1).standard_normal(250)
    emulator = paims.Emulator(n_samples=200, random_state=0).fit(x, y)
    assert list(emulator.kernel_weights_.values()) == [1.0]
    assert emulator.posterior_.kernel.name == "matern52"  # a kink is anything but smooth
