"""Hamiltonian moves: invariance with controls, many dimensions, and wrong gradients."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import paims
from paims.sampling import _hamiltonian
from paims.sampling._clusters import Clusters
from paims.sampling._hamiltonian import Flow, Leaps, move, unguided
from paims.sampling._sample import as_target, with_leads

Floats = NDArray[np.float64]


class LogGammas:
    """Independent log-gamma variables of shape 2: skew, with a known total of exp(3)."""

    def __call__(self, x: Floats) -> Floats:
        return 3.0 + np.sum(2.0 * x - np.exp(np.minimum(x, 500.0)), axis=1)

    def value_and_gradient(self, x: Floats) -> tuple[Floats, Floats]:
        return self(x), 2.0 - np.exp(np.minimum(x, 500.0))


class Pair:
    """Two Gaussians of masses 0.3 and 0.7 in two dimensions."""

    centres = np.array([[-1.5, 0.0], [1.5, 1.0]])
    sds = np.array([0.5, 0.8])
    masses = np.array([0.3, 0.7])

    def parts(self, x: Floats) -> Floats:
        square = np.sum((x[:, None] - self.centres) ** 2, axis=2)
        return np.log(self.masses / (2 * np.pi * self.sds**2)) - 0.5 * square / self.sds**2

    def __call__(self, x: Floats) -> Floats:
        return np.logaddexp.reduce(self.parts(x), axis=1)

    def value_and_gradient(self, x: Floats) -> tuple[Floats, Floats]:
        share = np.exp(self.parts(x) - self(x)[:, None])
        slope = (self.centres - x[:, None]) / self.sds[:, None] ** 2
        return self(x), np.einsum("nk,nkd->nd", share, slope)

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        k = rng.choice(2, n, p=self.masses)
        return self.centres[k] + self.sds[k, None] * rng.standard_normal((n, 2))


def flow_of(density: Any, reference: Any) -> Flow:
    """One island, with clusters that hardly fit."""
    target, _ = as_target(density, reference, None, None, True)
    covariance = np.array([np.diag([0.2, 1.0]), np.diag([3.0, 0.5])])
    centres = np.array([[1.0, 0.5], [0.5, 0.5]])
    clusters = Clusters.of(np.array([0.5, 0.5]), centres, covariance, np.zeros(2))
    return Flow(with_leads(target, None, None), 1.0, [clusters])


def z_scores(seed: int, n_moves: int = 6, n: int = 4000) -> Floats:
    """How far mass, means and squares are from the truth after moves, in standard errors."""
    density, rng = Pair(), np.random.default_rng(seed)
    flow = flow_of(density, paims.SoftUniform([-6.0, -6.0], [6.0, 6.0]))
    points, slopes = flow.target.evaluate_slopes(
        density.sample(n, rng), np.zeros(n, dtype=np.int64)
    )
    chains = unguided(points, 1.0)
    took = []
    for _ in range(n_moves):
        chains, slopes, accepted = move(chains, slopes, flow, Leaps(0.9, 4), rng)
        took.append(accepted.mean())
    assert 0.3 < np.mean(took) < 0.99
    np.testing.assert_allclose(
        slopes.log_pi, density.value_and_gradient(chains.points.theta)[1], rtol=1e-12, atol=1e-12
    )
    x = chains.points.theta
    truth = density.sample(400_000, np.random.default_rng(99))
    values, exact = (
        np.column_stack([a[:, 0] > 0.0, a, a**2, a[:, 0] * a[:, 1]]) for a in (x, truth)
    )
    error = np.sqrt(values.var(axis=0) / n + exact.var(axis=0) / len(truth))
    return np.asarray((values.mean(axis=0) - exact.mean(axis=0)) / error)


def test_moves_leave_the_density_invariant() -> None:
    scores = np.array([z_scores(seed) for seed in range(4)])
    # 24 standard normal numbers (correlated by threes): beyond 4 once in 700 times.
    assert np.abs(scores).max() < 4.0


def test_control_without_the_probability_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Clusters.draw

    def forgetful(self: Clusters, x: Floats, rng: np.random.Generator) -> Any:
        chol, r, log_rho = drawn(self, x, rng)
        return chol, r, np.zeros_like(log_rho)

    monkeypatch.setattr(Clusters, "draw", forgetful)
    assert np.abs(z_scores(0, n_moves=20, n=20_000)).max() > 6.0


def test_control_without_the_density(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(points: Any, beta: float) -> Floats:
        return np.zeros(len(points))

    monkeypatch.setattr(_hamiltonian, "log_tempered", nothing)
    assert np.abs(z_scores(0)).max() > 6.0


def test_strides_follow_the_acceptance() -> None:
    assert Leaps(0.5).adapted(0.95).stride > 0.5 > Leaps(0.5).adapted(0.2).stride
    assert Leaps.first(16).stride == pytest.approx(0.4)


def wide(d: int) -> paims.SoftUniform:
    return paims.SoftUniform([-6.0] * d, [6.0] * d)


@pytest.mark.parametrize("seed", [0, 1])
def test_many_dimensions(seed: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", paims.SamplingWarning)  # of islands that are apart
        result = paims.sample(LogGammas(), wide(20), 900, random_state=seed)
    assert result.n_gradients > 0
    assert abs(result.log_evidence - 3.0) < 4.0 * result.log_evidence_error < 5.0
    truth = stats.loggamma(2.0)
    n = result.effective_size
    assert np.abs(result.mean - truth.mean()).max() < 4.5 * truth.std() / np.sqrt(n) + 0.05
    assert np.abs(result.sd / truth.std() - 1.0).max() < 0.2


def test_the_argument_is_as_good_as_the_attribute() -> None:
    density = LogGammas()
    own = paims.sample(density, wide(12), 400, random_state=0)
    given = paims.sample(
        density.__call__, wide(12), 400, random_state=0, gradient=density.value_and_gradient
    )
    np.testing.assert_array_equal(own.draws, given.draws)


def test_checkpoints_and_executors_do_not_change_a_bit(tmp_path: Path) -> None:
    density, path = LogGammas(), tmp_path / "run.h5"
    whole = paims.sample(density, wide(12), 400, random_state=0)
    assert whole.n_gradients > 0
    with ThreadPoolExecutor(2) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore", paims.SamplingWarning)
        paims.sample(
            density, wide(12), 400, random_state=0, checkpoint=path, executor=pool,
            max_evaluations=whole.n_evaluations - 1000,
        )  # fmt: skip
    resumed = paims.resume(path, density)
    np.testing.assert_array_equal(whole.draws, resumed.draws)
    assert whole.n_gradients == resumed.n_gradients


def test_a_wrong_gradient_is_refused() -> None:
    density = LogGammas()

    def wrong(x: Floats) -> tuple[Floats, Floats]:
        values, slopes = density.value_and_gradient(x)
        slopes[:, 7] *= 1.05
        return values, slopes

    with pytest.raises(ValueError, match="gradient of log_density is wrong in coordinate 7"):
        paims.sample(density, wide(12), 400, gradient=wrong)

    def short(x: Floats) -> tuple[Floats, Floats]:
        return density(x), x[:, :3]

    with pytest.raises(ValueError, match="gradients of shape"):
        paims.sample(density, wide(12), 400, gradient=short)


@pytest.mark.parametrize(
    "reference",
    [
        paims.Uniform([-1.0, 0.0], [1.0, 2.0]),
        paims.SoftUniform([-1.0, 0.0], [1.0, 2.0], [0.3, 0.5]),
        paims.Normal([0.0, 1.0], [[1.0, 0.4], [0.4, 2.0]]),
    ],
)
def test_gradients_of_references(reference: Any) -> None:
    x = reference.sample(20, np.random.default_rng(0))
    slope, step = reference.gradient(x), 1e-6
    for i in range(2):
        e = step * np.eye(2)[i]
        with np.errstate(invalid="ignore"):
            difference = (reference.log_density(x + e) - reference.log_density(x - e)) / (2 * step)
        inside = np.isfinite(difference)
        np.testing.assert_allclose(slope[inside, i], difference[inside], rtol=1e-6, atol=1e-7)


def test_metric_of_a_gaussian_has_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    d, n = 12, 30
    turn = stats.special_ortho_group(d).rvs(random_state=0)
    covariance = turn @ np.diag(np.logspace(-2, 2, d)) @ turn.T
    x = rng.multivariate_normal(np.zeros(d), covariance, size=n)
    slope = -np.linalg.solve(covariance, x.T).T
    of_points = np.cov(x.T)
    clusters = Clusters.of(np.ones(1), x.mean(axis=0)[None], of_points[None], np.zeros(d))

    def spread(metric: Floats) -> float:
        """Condition number of the density in the metric: 1 if it is the density's own."""
        value = np.linalg.eigvals(np.linalg.solve(covariance, metric)).real
        return float(value.max() / value.min())

    def sharpened() -> Floats:
        [chol] = _hamiltonian._sharpened(clusters, x, slope).chol
        return np.asarray(chol @ chol.T)

    assert spread(of_points) > 10.0
    assert spread(sharpened()) < 1.5  # for the point of the cluster that is added
    monkeypatch.setattr(_hamiltonian, "_ADDED", 0.0)
    assert spread(sharpened()) < 1.0 + 1e-9


def test_metric_of_few_points_stays_that_of_the_cluster() -> None:
    rng = np.random.default_rng(0)
    clusters = Clusters.of(np.ones(1), np.zeros((1, 6)), 4.0 * np.eye(6)[None], np.zeros(6))
    x = np.repeat(rng.standard_normal((5, 6)), 4, axis=0)
    [chol] = _hamiltonian._sharpened(clusters, x, -x).chol
    np.testing.assert_allclose(chol @ chol.T, 4.0 * np.eye(6))


def test_moves_are_a_quarter_of_a_turn() -> None:
    assert [Leaps(stride).number for stride in (0.1, 0.4, 0.6, 1.5)] == [8, 6, 4, 3]
    assert Leaps(0.1, 2).number == 2


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
@pytest.mark.parametrize("at", [4, 20])
def test_a_run_that_is_stopped_within_a_move_goes_on_to_the_same_bits(
    at: int, tmp_path: Path
) -> None:
    """The checkpoint has gradients beside the values of the batch that was in work."""
    weight, calls = np.linspace(1.0, 9.0, 12), 0

    def log_density(x: np.ndarray) -> np.ndarray:
        return gradient(x)[0]

    def gradient(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        links = np.diff(x, axis=1)
        slope = -x * weight - x**3
        slope[:, 1:] -= 600.0 * links
        slope[:, :-1] += 600.0 * links
        value = -np.sum(0.5 * weight * x**2 + 0.25 * x**4, axis=1)
        return value - 300.0 * np.sum(links**2, axis=1), slope

    def stopped(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return gradient(x)

    def run(gradient: Any, **options: Any) -> paims.SampleResult:
        box = paims.Uniform([-3.0] * 12, [3.0] * 12)
        return paims.sample(
            log_density, box, 260, gradient=gradient, random_state=4, progress=False, **options
        )

    path = tmp_path / "run.h5"
    part = run(stopped, checkpoint=path, checkpoint_every=1e-9)
    assert part.status.name == "interrupted"
    with h5py.File(path) as file:
        assert file["journal/values"].size > file["journal/known"].size
    again, whole = run(gradient, checkpoint=path), run(gradient)
    assert whole.levels["n_leaps"].any()
    np.testing.assert_array_equal(again.draws, whole.draws)
    np.testing.assert_array_equal(again.weights, whole.weights)
    assert again.log_evidence == whole.log_evidence
