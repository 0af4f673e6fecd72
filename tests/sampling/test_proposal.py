"""The mixture of kernels: densities against brute force, draws against densities, its choices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare, kstest, norm
from tests.sampling.kit import TOY, Floats, brute_kernels, labelled_markers, mean_z, mixture_of

from paims.sampling._clusters import single_cluster
from paims.sampling._proposal import (
    SPREADS,
    MarkerMixture,
    Markers,
    choose_spread,
    sobol,
)

CASES = ["shrinking", "nearly collapsed", "collapsed", "paper"]


def some_mixture(kind: str, n: int = 30, seed: int = 0) -> MarkerMixture:
    rng = np.random.default_rng(seed)
    theta = TOY.sample(n, rng)
    weight = rng.gamma(1.0, size=n)
    log_p = TOY.log_density(theta)
    if kind == "paper":
        return mixture_of(theta, log_p, 0.5, weight, clustered=False, shrinking=False)
    label = (theta[:, 0] > 0.8).astype(np.int64)
    spread = {"shrinking": 0.4, "nearly collapsed": np.sqrt(1 - 1e-14), "collapsed": 1.0}[kind]
    return MarkerMixture.shrinking(labelled_markers(theta, log_p, weight, label), spread)


@pytest.mark.parametrize("kind", CASES)
class TestDensities:
    def test_mixture_is_the_sum_of_its_kernels(self, kind: str) -> None:
        mixture = some_mixture(kind)
        x = np.vstack([TOY.sample(50, np.random.default_rng(1)), [[40.0, -30.0]]])
        expected = logsumexp(brute_kernels(mixture, x), axis=1)
        np.testing.assert_allclose(mixture.log_density(x), expected, rtol=1e-10)
        np.testing.assert_allclose(
            mixture.log_densities(x, TOY.log_density(x))[0], expected, rtol=1e-10
        )

    def test_p_hat_has_the_local_acceptance_of_every_marker(self, kind: str) -> None:
        mixture = some_mixture(kind)
        x = np.vstack([TOY.sample(50, np.random.default_rng(1)), mixture.markers.theta])
        log_p = TOY.log_density(x)
        local = np.minimum(0.0, log_p[:, None] - mixture.markers.log_p)
        expected = logsumexp(brute_kernels(mixture, x) + local, axis=1)
        np.testing.assert_allclose(mixture.log_p_hat(x, log_p), expected, rtol=1e-9)
        np.testing.assert_allclose(mixture.log_densities(x, log_p)[1], expected, rtol=1e-9)

    def test_p_hat_beyond_all_markers(self, kind: str) -> None:
        # everywhere accepted, nowhere accepted, zero density
        mixture = some_mixture(kind)
        x = np.zeros((3, 2))
        log_p = np.array([1e3, -1e3, -np.inf])
        found = mixture.log_p_hat(x, log_p)
        kernels = brute_kernels(mixture, x)[0]
        assert found[0] == pytest.approx(logsumexp(kernels), rel=1e-10)
        assert found[1] == pytest.approx(logsumexp(kernels - 1e3 - mixture.markers.log_p))
        assert found[2] == -np.inf

    def test_integrates_to_one(self, kind: str) -> None:
        mixture = some_mixture(kind)
        axis = np.linspace(-14.0, 14.0, 561)
        grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
        total = np.sum(np.exp(mixture.log_density(grid))) * (axis[1] - axis[0]) ** 2
        assert total == pytest.approx(1.0, abs=1e-6)

    def test_without_is_the_mixture_of_the_other_markers(self, kind: str) -> None:
        mixture = some_mixture(kind)
        markers = mixture.markers
        chosen = np.array([0, 7, 29])
        kernels = brute_kernels(mixture, markers.theta[chosen])
        kernels[np.arange(3), chosen] = -np.inf
        expected = logsumexp(kernels, axis=1) - np.log1p(-markers.weight[chosen])
        whole = mixture.log_density(markers.theta[chosen])
        np.testing.assert_allclose(mixture.log_density_without(chosen, whole), expected, rtol=1e-8)


def test_collapse_is_the_limit_of_the_general_formula() -> None:
    limit, general = some_mixture("collapsed"), some_mixture("nearly collapsed")
    assert limit.retained == 0.0 < general.retained < 1e-6
    x = TOY.sample(100, np.random.default_rng(2))
    log_p = TOY.log_density(x)
    for a, b in zip(limit.log_densities(x, log_p), general.log_densities(x, log_p), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize("spread", [0.3, 0.8, 1.0])
def test_shrinkage_keeps_the_moments_of_the_clusters(spread: float) -> None:
    # E = mean of the markers, Cov = a^2 Cov + c^2 Cov = Cov, by quadrature of the density
    rng = np.random.default_rng(3)
    theta = TOY.sample(60, rng)
    cluster = single_cluster(theta, np.full(60, 1 / 60))
    markers = Markers.of(theta, np.full(60, 1 / 60), np.zeros(60), cluster, np.zeros(60, int))
    mixture = MarkerMixture.shrinking(markers, spread)
    axis = np.linspace(-14.0, 14.0, 401)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    p = np.exp(mixture.log_density(grid)) * (axis[1] - axis[0]) ** 2
    np.testing.assert_allclose(p @ grid, theta.mean(axis=0), atol=1e-6)
    cov = (grid - p @ grid).T @ ((grid - p @ grid) * p[:, None])
    np.testing.assert_allclose(cov, np.cov(theta.T, bias=True), atol=1e-6)


class TestSample:
    @pytest.mark.parametrize("kind", ["shrinking", "collapsed", "paper"])
    def test_draws_follow_the_density(self, kind: str) -> None:
        # For x ~ q: the marker's own kernel is standard normal, markers come by weight, and a
        # functional of x has its mean under q.
        mixture = some_mixture(kind)
        markers, clusters = mixture.markers, mixture.markers.clusters
        x, j = mixture.sample(30_000, np.random.default_rng(4))
        counts = np.bincount(j, minlength=len(markers.weight))
        assert chisquare(counts, markers.weight * len(x)).pvalue > 1e-5
        r = markers.label[j]
        centre = mixture.retained * markers.theta[j] + (1 - mixture.retained) * clusters.mean[r]
        white = np.einsum("nab,nb->na", clusters.inv_chol[r], x - centre) / mixture.spread
        for column in white.T:
            assert kstest(column, norm.cdf).pvalue > 1e-5
        assert abs(mean_z(white[:, 0] * white[:, 1])) < 5

    def test_draws_fill_cells_as_the_density_says(self) -> None:
        mixture = some_mixture("shrinking")
        x, _ = mixture.sample(30_000, np.random.default_rng(5))
        axis = np.linspace(-5.0, 5.0, 801)
        middle = 0.5 * (axis[1:] + axis[:-1])
        grid = np.stack(np.meshgrid(middle, middle, indexing="ij"), -1).reshape(-1, 2)
        p = np.exp(mixture.log_density(grid)) * (axis[1] - axis[0]) ** 2
        cells = np.floor(grid[:, 0] + 5).astype(int) * 10 + np.floor(grid[:, 1] + 5).astype(int)
        expected = np.bincount(cells, p, minlength=100)
        inside = np.all(np.abs(x) < 5.0, axis=1)
        drawn = np.floor(x[inside] + 5).astype(int)
        counts = np.bincount(drawn[:, 0] * 10 + drawn[:, 1], minlength=100)
        used = expected * len(x) > 5
        z = (counts[used] - expected[used] * len(x)) / np.sqrt(expected[used] * len(x))
        assert np.max(np.abs(z)) < 5

    def test_order_is_random(self) -> None:
        # chains take candidates in order: neighbours must not be correlated
        x, j = some_mixture("shrinking").sample(4096, np.random.default_rng(6))
        for values in (x[:, 0], j.astype(float)):
            assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 5 / np.sqrt(4096)


@pytest.mark.parametrize("n", [1, 2, 100, 1000])
def test_sobol_points_are_in_the_open_cube_and_even(n: int) -> None:
    u = sobol(n, 3, np.random.default_rng(n))
    assert u.shape == (n, 3)
    assert np.all((u > 0) & (u < 1))
    if n >= 100:
        # far closer to one half than independent draws: 1/sqrt(12 n)
        assert np.max(np.abs(u.mean(axis=0) - 0.5)) < 1 / np.sqrt(12 * n)
        assert len(np.unique(u[:, 0])) == n


class TestMarkers:
    def test_sorted_by_cluster_with_their_weights_and_densities(self) -> None:
        rng = np.random.default_rng(7)
        theta = TOY.sample(50, rng)
        label = rng.integers(3, size=50)
        markers = labelled_markers(theta, np.arange(50.0), np.arange(1.0, 51.0), label)
        assert markers.weight.sum() == pytest.approx(1.0)
        np.testing.assert_array_equal(np.diff(markers.offset), np.bincount(label))
        back = markers.log_p.astype(int)
        np.testing.assert_array_equal(markers.theta, theta[back])
        np.testing.assert_array_equal(markers.label, label[back])
        np.testing.assert_allclose(markers.weight, (back + 1) / np.sum(np.arange(1, 51)))

    def test_white_coordinates(self) -> None:
        markers = some_mixture("shrinking").markers
        for r in range(2):
            member = markers.label == r
            white = markers.white[:, member]
            w = markers.weight[member] / markers.weight[member].sum()
            np.testing.assert_allclose(white @ w, 0.0, atol=1e-10)

    def test_find_markers(self) -> None:
        # ties in a coordinate must not hide a marker
        theta = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [1.0, 0.0], [1.0, 2.0]])
        mixture = mixture_of(theta, np.zeros(5), 0.5, clustered=False)
        x = np.vstack([mixture.markers.theta[::-1], [[0.0, 2.5]], [[0.5, 2.0]], [[2.0, 0.0]]])
        np.testing.assert_array_equal(mixture.find_markers(x), [4, 3, 2, 1, 0, -1, -1, -1])


class TestChooseSpread:
    def cost(self, markers: Markers, x: Floats, log_p: Floats, spread: float) -> float:
        log_q = MarkerMixture.shrinking(markers, spread).log_density(x)
        return float(logsumexp(log_p - log_q))

    def test_takes_the_best_of_the_grid(self) -> None:
        markers = some_mixture("shrinking", n=200).markers
        x = TOY.sample(150, np.random.default_rng(8))
        log_p = TOY.log_density(x)
        chosen, efficiency, _ = choose_spread(markers, x, log_p)
        costs = [self.cost(markers, x, log_p, spread) for spread in SPREADS]
        assert chosen.spread == SPREADS[int(np.argmin(costs))]
        assert chosen.retained == pytest.approx(np.sqrt(1 - chosen.spread**2))
        ratio = np.exp(log_p - chosen.log_density(x))
        assert efficiency == pytest.approx(1 / (np.mean(ratio) * np.mean(1 / ratio)))

    def test_depends_on_where_it_is_judged(self) -> None:
        # Points of the wide mode only, against points of the narrow one only.
        markers = some_mixture("shrinking", n=400, seed=1).markers
        rng = np.random.default_rng(9)
        x = TOY.sample(400, rng)
        log_p = TOY.log_density(x)
        side = x[:, 0] > 0.6
        for member in (side, ~side):
            costs = [self.cost(markers, x[member], log_p[member], s) for s in SPREADS]
            chosen, _, _ = choose_spread(markers, x[member], log_p[member])
            assert chosen.spread == SPREADS[int(np.argmin(costs))]

    def test_gaussian_markers_collapse_and_a_ring_does_not(self) -> None:
        rng = np.random.default_rng(10)
        gauss, judges = rng.standard_normal((2, 300, 2))
        markers = mixture_of(gauss, np.zeros(300), 1.0, clustered=False).markers
        log_p = -0.5 * np.sum(judges**2, axis=1)
        chosen, efficiency, _ = choose_spread(markers, judges, log_p)
        assert chosen.spread >= 0.8
        assert efficiency > 0.9
        assert efficiency == pytest.approx(choose_spread(markers, judges, log_p + 7.0)[1])

        def ring(n: int) -> Floats:
            phi, radius = rng.uniform(0, 2 * np.pi, n), 1 + 0.05 * rng.standard_normal(n)
            return (radius * np.array([np.cos(phi), np.sin(phi)])).T

        markers = mixture_of(ring(300), np.zeros(300), 1.0, clustered=False).markers
        x = ring(300)
        log_p = -0.5 * ((np.hypot(*x.T) - 1) / 0.05) ** 2
        chosen, efficiency, _ = choose_spread(markers, x, log_p)
        assert chosen.spread <= 0.3
        assert efficiency < 0.8

    def test_judges_that_no_mixture_reaches(self) -> None:
        markers = some_mixture("shrinking").markers
        x = np.full((5, 2), 1e4)
        chosen, _, _ = choose_spread(markers, x, np.zeros(5))
        assert chosen.spread in SPREADS


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_sums_do_not_depend_on_the_number_of_threads(n_jobs: int) -> None:
    base = some_mixture("shrinking", n=200)
    x = TOY.sample(1000, np.random.default_rng(11))
    log_p = TOY.log_density(x)
    mixture = MarkerMixture(base.markers, base.spread, base.retained, n_jobs)
    for a, b in zip(base.log_densities(x, log_p), mixture.log_densities(x, log_p), strict=True):
        assert np.array_equal(a, b)


def test_one_marker_is_its_kernel() -> None:
    cluster = single_cluster(TOY.sample(50, np.random.default_rng(0)), np.full(50, 0.02))
    theta = np.array([[0.3, -0.2]])
    markers = Markers.of(theta, np.ones(1), np.zeros(1), cluster, np.zeros(1, dtype=np.int64))
    mixture = MarkerMixture(markers, 0.5, 1.0)
    x = np.array([[0.0, 0.0], [5.0, 5.0]])
    np.testing.assert_allclose(mixture.log_density(x), brute_kernels(mixture, x)[:, 0])
