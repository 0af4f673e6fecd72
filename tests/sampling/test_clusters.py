"""Clusters of weighted points: as many as there are modes, whatever the coordinates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.sampling.kit import TOY, Floats

from paims.sampling import _clusters
from paims.sampling._clusters import Clusters, fit_clusters, single_cluster


def equal(n: int) -> Floats:
    return np.full(n, 1.0 / n)


def lattice(per_mode: int, sd: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Eighteen narrow modes on a chequerboard."""
    peaks = np.array([(i, j) for i in range(6) for j in range(6) if (i + j) % 2 == 0], dtype=float)
    return np.repeat(peaks, per_mode, axis=0) + sd * rng.standard_normal((18 * per_mode, 2)), peaks


def agreement(label: Floats, truth: Floats) -> float:
    """Share of points whose label is that of the majority of those with the same truth."""
    return float(
        np.mean([np.bincount(label[truth == k]).max() / np.sum(truth == k) for k in set(truth)])
    )


@pytest.mark.parametrize("n_params", [2, 5, 10])
class TestNumber:
    def test_one_gaussian_stays_one(self, n_params: int) -> None:
        for seed in range(4):
            x = np.random.default_rng(seed).standard_normal((1000, n_params))
            assert len(fit_clusters(x, equal(1000))[0]) == 1

    def test_separate_modes_are_found(self, n_params: int) -> None:
        rng = np.random.default_rng(0)
        truth = np.repeat([0, 1, 2], [600, 300, 100])
        centres = 8 * np.eye(n_params)[[0, 1, 0]] * np.array([[1], [1], [-1]])
        x = centres[truth] + rng.standard_normal((1000, n_params))
        clusters, label = fit_clusters(x, equal(1000))
        assert len(clusters) == 3
        assert agreement(label, truth) > 0.999
        assert len(np.unique(label)) == 3
        np.testing.assert_allclose(np.sort(clusters.share), [0.1, 0.3, 0.6], atol=2e-3)


def test_covariances_of_modes_of_different_shape() -> None:
    rng = np.random.default_rng(1)
    covs = [np.array([[1.0, 0.9], [0.9, 1.0]]), np.diag([0.01, 4.0])]
    x = np.vstack([rng.multivariate_normal([-4, 0], covs[0], 2000),
                   rng.multivariate_normal([4, 0], covs[1], 2000)])  # fmt: skip
    clusters, _ = fit_clusters(x, equal(4000))
    assert len(clusters) == 2
    order = np.argsort(clusters.mean[:, 0])
    for r, cov in zip(order, covs, strict=True):
        found = clusters.chol[r] @ clusters.chol[r].T
        np.testing.assert_allclose(found, cov, atol=5 * 4.0 * np.sqrt(2 / 2000))
        np.testing.assert_allclose(clusters.inv_chol[r] @ clusters.chol[r], np.eye(2), atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_a_lattice_of_narrow_modes(seed: int) -> None:
    # A mode may be split; no cluster may hold two modes.
    x, _ = lattice(100, 0.05, np.random.default_rng(seed))
    truth = np.repeat(np.arange(18), 100)
    clusters, label = fit_clusters(x, equal(len(x)))
    assert 18 <= len(clusters) <= 32
    assert agreement(truth, label) == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_a_twentieth_in_ten_dimensions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1], [50, 950])
    sd = np.array([0.10, 0.13])[truth, None]
    x = np.array([-0.6, 0.4])[truth, None] + sd * rng.standard_normal((1000, 10))
    clusters, label = fit_clusters(x, equal(1000))
    assert len(clusters) == 2
    assert agreement(label, truth) > 0.99


@pytest.mark.parametrize("cuts", [True, False])
def test_a_small_mode_across_a_narrow_axis(cuts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # Halves of the longest axes, without cuts where two Gaussians fit best, miss it here.
    if not cuts:
        monkeypatch.setattr(_clusters, "_MAX_CUTS", 0)
    rng = np.random.default_rng(2)
    x = np.geomspace(0.1, 1.0, 10) * rng.standard_normal((1000, 10))
    x[:30, 0] += 0.6
    assert len(fit_clusters(x, equal(1000))[0]) == (2 if cuts else 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_stray_point_hides_nothing(seed: int) -> None:
    # Two Gaussians fit best with one of them on the stray point, which is no cluster.
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(4), 100)
    line = truth[:, None] * np.ones(2) + 0.05 * rng.standard_normal((400, 2))
    x = np.vstack([line, [[-2.0, 5.0]]])
    clusters, label = fit_clusters(x, equal(401))
    assert 4 <= len(clusters) <= 6
    assert agreement(truth, label[:400]) == 1.0


def test_a_small_far_mode_is_its_own_cluster() -> None:
    rng = np.random.default_rng(2)
    x = np.vstack([rng.standard_normal((980, 3)), 12 + 0.3 * rng.standard_normal((20, 3))])
    _, label = fit_clusters(x, equal(1000))
    assert set(label[980:]).isdisjoint(label[:980])


def test_weights_are_respected() -> None:
    # Weighted points of a wide cloud imitate a narrow Gaussian.
    rng = np.random.default_rng(3)
    x = 3 * rng.standard_normal((4000, 2))
    log_w = multivariate_normal([1, -1], 0.5).logpdf(x) - multivariate_normal([0, 0], 9).logpdf(x)
    w = np.exp(log_w - np.max(log_w))
    w /= w.sum()
    clusters, _ = fit_clusters(x, w)
    assert len(clusters) == 1
    np.testing.assert_allclose(clusters.mean[0], [1, -1], atol=0.15)
    np.testing.assert_allclose(clusters.chol[0] @ clusters.chol[0].T, 0.5 * np.eye(2), atol=0.12)


def test_weights_say_how_many_points_there_are() -> None:
    # The same 60 + 60 points are two modes with equal weights; with one mode weighed down to
    # less than a point it cannot be a cluster of its own.
    rng = np.random.default_rng(4)
    x = np.vstack([rng.standard_normal((60, 2)), 9 + rng.standard_normal((60, 2))])
    assert len(fit_clusters(x, equal(120))[0]) == 2
    w = np.concatenate([np.ones(60), np.full(60, 1e-4)])
    assert len(fit_clusters(x, w / w.sum())[0]) == 1


def test_a_few_heavy_points_far_away() -> None:
    # Duplicates merged into heavy markers: weight of 120 points on 12.
    rng = np.random.default_rng(0)
    x = np.vstack([rng.standard_normal((10_000, 2)), 50 + rng.standard_normal((12, 2))])
    w = np.concatenate([np.full(10_000, 0.93 / 10_000), np.full(12, 0.07 / 12)])
    clusters, label = fit_clusters(x, w)
    assert set(label[10_000:]).isdisjoint(label[:10_000])
    assert clusters.share[label[-1]] == pytest.approx(0.07, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_affine_maps_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = TOY.sample(600, rng)
    a, b = np.array([[3.0, 1.0], [-0.5, 0.02]]), np.array([100.0, -3.0])
    clusters, label = fit_clusters(x, equal(600))
    mapped, mapped_label = fit_clusters(x @ a.T + b, equal(600))
    assert len(clusters) == len(mapped)
    # the same partition, whatever the order of its parts
    pairs = set(zip(label.tolist(), mapped_label.tolist(), strict=True))
    share = np.mean([dict(pairs)[i] == j for i, j in zip(label, mapped_label, strict=True)])
    assert share > 0.97


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_scale_of_the_coordinates_changes_nothing(scale: float) -> None:
    x = TOY.sample(400, np.random.default_rng(5))
    _, label = fit_clusters(x, equal(400))
    _, scaled = fit_clusters(scale * x, equal(400))
    np.testing.assert_array_equal(label, scaled)


def test_same_points_same_clusters() -> None:
    x, _ = lattice(40, 0.05, np.random.default_rng(6))
    first, second = fit_clusters(x, equal(len(x))), fit_clusters(x, equal(len(x)))
    np.testing.assert_array_equal(first[1], second[1])
    np.testing.assert_array_equal(first[0].chol, second[0].chol)


class TestAwkwardPoints:
    def test_duplicates(self) -> None:
        rng = np.random.default_rng(7)
        x = np.repeat(rng.standard_normal((30, 2)), 20, axis=0)
        clusters, label = fit_clusters(x, equal(600))
        assert np.all(np.isfinite(clusters.chol))
        assert len(label) == 600

    def test_all_points_equal(self) -> None:
        clusters, label = fit_clusters(np.ones((50, 3)), equal(50))
        assert len(clusters) == 1
        assert np.all(label == 0)
        np.testing.assert_allclose(clusters.mean[0], 1.0)
        assert np.all(np.isfinite(clusters.inv_chol))

    def test_points_on_a_line(self) -> None:
        t = np.random.default_rng(8).standard_normal(300)
        x = np.column_stack([t, 2 * t, -t])
        clusters, _ = fit_clusters(x, equal(300))
        cov = clusters.chol[0] @ clusters.chol[0].T
        np.testing.assert_allclose(cov[0, 0], np.var(t), rtol=1e-6)

    def test_fewer_points_than_parameters(self) -> None:
        x = np.random.default_rng(9).standard_normal((4, 6))
        clusters, _ = fit_clusters(x, equal(4))
        assert len(clusters) == 1

    def test_limit_of_the_number(self) -> None:
        x, _ = lattice(60, 0.05, np.random.default_rng(10))
        assert len(fit_clusters(x, equal(len(x)), max_clusters=5)[0]) <= 5


def test_moments_are_those_of_the_points_that_belong_to_a_cluster() -> None:
    # the shrinkage kernels keep the covariance of a cluster only if it is that of its markers
    rng = np.random.default_rng(11)
    x = TOY.sample(800, rng)
    w = rng.dirichlet(np.ones(800))
    clusters, label = fit_clusters(x, w)
    assert len(clusters) > 1
    for r in range(len(clusters)):
        member = label == r
        assert clusters.share[r] == pytest.approx(w[member].sum())
        np.testing.assert_allclose(
            clusters.mean[r], np.average(x[member], axis=0, weights=w[member]), rtol=1e-9
        )
        cov = np.cov(x[member].T, aweights=w[member], ddof=0)
        np.testing.assert_allclose(clusters.chol[r] @ clusters.chol[r].T, cov, rtol=1e-6)


class TestSteadied:
    """Covariances from few points, as proposals should have them."""

    def one(self, x: Floats) -> Clusters:
        return single_cluster(x, equal(len(x)))

    def efficiency(self, cluster: Clusters, x: Floats) -> float:
        """Effective size per point of standard normal x for the cluster's Gaussian as proposal."""
        white = (x - cluster.mean[0]) @ cluster.inv_chol[0].T
        log_det = np.sum(np.log(np.diag(cluster.inv_chol[0])))
        log_ratio = -0.5 * np.sum(x**2, axis=1) + 0.5 * np.sum(white**2, axis=1) - log_det
        return float(1.0 / (np.mean(np.exp(log_ratio)) * np.mean(np.exp(-log_ratio))))

    def test_few_points_propose_better(self) -> None:
        rng = np.random.default_rng(0)
        judges = rng.standard_normal((4000, 10))
        plain, steadied = [], []
        for _ in range(20):
            cluster = self.one(rng.standard_normal((40, 10)))
            plain.append(self.efficiency(cluster, judges))
            steadied.append(self.efficiency(cluster.steadied(np.array([40.0])), judges))
        assert np.median(steadied) > 2 * np.median(plain)

    def test_many_points_are_left_as_they_are(self) -> None:
        cluster = self.one(TOY.sample(2000, np.random.default_rng(1)))
        steadied = cluster.steadied(np.array([1e9]))
        np.testing.assert_allclose(steadied.chol, cluster.chol, rtol=1e-6)
        np.testing.assert_array_equal(steadied.mean, cluster.mean)

    @pytest.mark.parametrize("size", [20.0, 500.0])
    def test_a_thin_ridge_stays_thin(self, size: float) -> None:
        # A diagonal line: what is added in proportion to the variances alone would make it round.
        rng = np.random.default_rng(2)
        along, across = 0.3 * rng.standard_normal(500), 1e-4 * rng.standard_normal(500)
        cluster = self.one(np.column_stack([along + across, along - across]))
        steadied = cluster.steadied(np.array([size]))
        narrow = np.array([1.0, -1.0]) / np.sqrt(2)
        before, after = (
            narrow @ one.chol[0] @ one.chol[0].T @ narrow for one in (cluster, steadied)
        )
        most = 1 / (1 - np.sqrt(2 / size)) ** 2
        assert before < after < 1.001 * most * before
        assert 2 / size * 0.3**2 > 100 * most * before


def test_single_cluster_is_mean_and_covariance() -> None:
    rng = np.random.default_rng(12)
    x, w = TOY.sample(100, rng), rng.dirichlet(np.ones(100))
    cluster = single_cluster(x, w)
    assert len(cluster) == 1
    np.testing.assert_allclose(cluster.mean[0], w @ x)
    cov = np.cov(x.T, aweights=w, ddof=0)
    np.testing.assert_allclose(cluster.chol[0] @ cluster.chol[0].T, cov, rtol=1e-6)


def test_responsibilities_are_those_of_the_mixture() -> None:
    clusters = Clusters.of(TOY.share, TOY.mean, TOY.cov, np.zeros(2))
    x = TOY.sample(50, np.random.default_rng(13))
    value, log_rho = clusters.log_responsibilities(x)
    joint = np.column_stack(
        [
            s * multivariate_normal(m, c).pdf(x)
            for s, m, c in zip(TOY.share, TOY.mean, TOY.cov, strict=True)
        ]
    )
    np.testing.assert_allclose(np.exp(log_rho), joint / joint.sum(axis=1, keepdims=True))
    assert value == pytest.approx(np.mean(np.log(joint.sum(axis=1))))
