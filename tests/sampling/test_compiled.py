"""The compiled loops against their plain NumPy twins, on ordinary and on awkward input."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.special import logsumexp
from tests.sampling import twin
from tests.sampling.kit import Floats

from paims.sampling import _compiled
from paims.sampling._clusters import Clusters

RTOL = 1e-12


def clusters_of(n_params: int, n_clusters: int, rng: np.random.Generator) -> Clusters:
    a = rng.standard_normal((n_clusters, n_params, n_params))
    cov = a @ np.swapaxes(a, 1, 2) + 0.5 * np.eye(n_params)
    return Clusters.of(
        rng.gamma(2.0, size=n_clusters),
        rng.standard_normal((n_clusters, n_params)),
        cov,
        np.zeros(n_params),
    )


def sums_of(
    x: Floats, log_p: Floats, clusters: Clusters, sizes: list[int], rng: np.random.Generator
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Mixture sums of random tables by the compiled loop and by its twin."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n = int(offsets[-1])
    args = (
        clusters.mean,
        clusters.inv_chol,
        np.ascontiguousarray(rng.standard_normal((x.shape[1], n))),
        rng.standard_normal(n) - 5.0,
        offsets,
        3 * rng.standard_normal(n),
        0.7,
    )
    plain, local = np.full(len(x), np.nan), np.full(len(x), np.nan)
    half = len(x) // 2
    _compiled.mixture_sums(x, log_p, *args, plain, local, half, len(x))
    assert np.all(np.isnan(plain[:half]))
    _compiled.mixture_sums(x, log_p, *args, plain, local, 0, half)
    return (plain, local), twin.mixture_sums(x, log_p, *args)


class TestMixtureSums:
    @pytest.mark.parametrize("n_params", [1, 2, 3, 4, 5, 7, 10])
    def test_random_input(self, n_params: int) -> None:
        rng = np.random.default_rng(n_params)
        x = 2 * rng.standard_normal((23, n_params))
        found, expected = sums_of(
            x, rng.standard_normal(23), clusters_of(n_params, 3, rng), [5, 1, 40], rng
        )
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=RTOL)

    def test_zero_density_and_everywhere_accepted(self) -> None:
        rng = np.random.default_rng(0)
        log_p = np.array([-np.inf, 1e6, -1e6, 0.0])
        x = rng.standard_normal((4, 2))
        found, expected = sums_of(x, log_p, clusters_of(2, 2, rng), [6, 7], rng)
        assert found[1][0] == -np.inf
        assert found[1][1] == pytest.approx(found[0][1], rel=1e-14)
        np.testing.assert_allclose(found[1], expected[1], rtol=RTOL)

    def test_one_marker(self) -> None:
        rng = np.random.default_rng(1)
        x = rng.standard_normal((6, 3))
        found, expected = sums_of(x, np.zeros(6), clusters_of(3, 1, rng), [1], rng)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=RTOL)

    def test_far_points(self) -> None:
        # log densities of -1e11: beyond any exponential, but finite and right
        rng = np.random.default_rng(2)
        x = 1e5 * rng.standard_normal((6, 2))
        found, expected = sums_of(x, np.zeros(6), clusters_of(2, 2, rng), [10, 20], rng)
        assert np.all(np.isfinite(found[0]))
        assert np.min(found[0]) < -1e8
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-10)

    def test_empty_outputs_are_left_alone(self) -> None:
        rng = np.random.default_rng(3)
        clusters = clusters_of(2, 1, rng)
        x, table, base = rng.standard_normal((4, 2)), np.zeros((2, 5)), np.zeros(5)
        offsets = np.array([0, 5])
        both = [np.empty(4), np.empty(4)]
        none = np.empty(0)
        for plain, local in ((both[0], none), (none, both[1]), (none, none)):
            _compiled.mixture_sums(
                x, np.zeros(4), clusters.mean, clusters.inv_chol, table, base, offsets,
                np.zeros(5), 0.5, plain, local, 0, 4,
            )  # fmt: skip
        np.testing.assert_allclose(both[0], both[1])


class TestExponential:
    def test_two_ulps(self) -> None:
        x = np.concatenate([-np.geomspace(1e-18, 707.0, 3000), [0.0, -np.log(2.0), -0.5]])
        with mp.workdps(40):
            exact = [mp.exp(mp.mpf(float(v))) for v in x]
            error = [
                abs(mp.mpf(_compiled.exp_nonpositive(float(v))) - e)
                / mp.mpf(float(np.spacing(float(e))))
                for v, e in zip(x, exact, strict=True)
            ]
        assert max(error) < 2.0

    def test_ends(self) -> None:
        assert _compiled.exp_nonpositive(0.0) == 1.0
        assert 0.0 <= _compiled.exp_nonpositive(-np.inf) < 1e-307
        assert 0.0 <= _compiled.exp_nonpositive(-1e300) < 1e-307


class TestExpectation:
    @pytest.mark.parametrize(("n_params", "n_clusters"), [(1, 1), (2, 3), (6, 4)])
    def test_random_input(self, n_params: int, n_clusters: int) -> None:
        rng = np.random.default_rng(n_params)
        clusters = clusters_of(n_params, n_clusters, rng)
        x = 3 * rng.standard_normal((50, n_params))
        w = rng.dirichlet(np.ones(50))
        log_resp = np.empty((50, n_clusters))
        args = (np.log(clusters.share), clusters.mean, clusters.inv_chol)
        value = _compiled.expectation(x, w, log_resp, *args)
        expected_value, expected = twin.expectation(x, w, *args)
        assert value == pytest.approx(expected_value, rel=RTOL)
        np.testing.assert_allclose(log_resp, expected, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(logsumexp(log_resp, axis=1), 0.0, atol=1e-12)

    def test_far_points_have_finite_responsibilities(self) -> None:
        rng = np.random.default_rng(0)
        clusters = clusters_of(2, 3, rng)
        x = np.array([[1e6, -1e6], [0.0, 0.0]])
        log_resp = clusters.log_responsibilities(x)[1]
        assert np.all(np.isfinite(log_resp))
        assert np.max(log_resp[0]) == pytest.approx(0.0, abs=1e-9)


class TestMaximisation:
    @pytest.mark.parametrize(("n_params", "n_clusters"), [(1, 1), (2, 3), (6, 4)])
    def test_random_input(self, n_params: int, n_clusters: int) -> None:
        rng = np.random.default_rng(n_params)
        x = rng.standard_normal((60, n_params)) + 5.0
        w = rng.dirichlet(np.ones(60))
        log_resp = np.log(rng.dirichlet(np.ones(n_clusters), size=60))
        out = (
            np.empty(n_clusters),
            np.empty((n_clusters, n_params)),
            np.empty((n_clusters, n_params, n_params)),
        )
        _compiled.maximisation(x, w, log_resp, *out)
        for a, b in zip(out, twin.maximisation(x, w, log_resp), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)

    def test_hard_assignment_gives_sample_moments(self) -> None:
        rng = np.random.default_rng(1)
        x = rng.standard_normal((40, 2))
        label = np.arange(40) % 2
        log_resp = np.where(label[:, None] == np.arange(2), 0.0, -1e300)
        out = np.empty(2), np.empty((2, 2)), np.empty((2, 2, 2))
        _compiled.maximisation(x, np.full(40, 1 / 40), log_resp, *out)
        for r in range(2):
            np.testing.assert_allclose(out[1][r], x[label == r].mean(axis=0))
            np.testing.assert_allclose(out[2][r], np.cov(x[label == r].T, bias=True))


class TestWholeEM:
    def run_twin(
        self, x: Floats, w: Floats, log_resp: Floats, floor: Floats, n_steps: int
    ) -> tuple[float, Floats]:
        value = -np.inf
        for _ in range(n_steps):
            share, mean, cov = twin.maximisation(x, w, log_resp)
            inv = np.linalg.inv(np.linalg.cholesky(cov + np.diag(floor)))
            previous = value
            value, log_resp = twin.expectation(x, w, np.log(share), mean, inv)
            if value - previous < 1e-4:
                break
        return value, log_resp

    @pytest.mark.parametrize("n_steps", [1, 4, 30])
    @pytest.mark.parametrize("n_params", [1, 2, 5])
    def test_follows_the_twins(self, n_params: int, n_steps: int) -> None:
        rng = np.random.default_rng(n_params)
        x = np.concatenate([rng.standard_normal((60, n_params)) + s for s in (-1.5, 1.5)])
        w = rng.dirichlet(np.full(120, 2.0))
        start = np.log(rng.dirichlet([2.0, 1.0], size=120))
        floor = np.full(n_params, 1e-9)
        log_resp = start.copy()
        value = _compiled.expectation_maximisation(x, w, log_resp, floor, n_steps)
        expected_value, expected = self.run_twin(x, w, start, floor, n_steps)
        assert value == pytest.approx(expected_value, rel=1e-9)
        np.testing.assert_allclose(log_resp, expected, rtol=1e-6, atol=1e-9)

    def test_a_dead_cluster_is_minus_infinity(self) -> None:
        x = np.random.default_rng(0).standard_normal((30, 2))
        log_resp = np.tile([0.0, -1e300], (30, 1))
        w = np.full(30, 1 / 30)
        value = _compiled.expectation_maximisation(x, w, log_resp, np.full(2, 1e-9), 5)
        assert value == -np.inf

    def test_a_singular_cluster_is_minus_infinity(self) -> None:
        x = np.ones((30, 2))
        value = _compiled.expectation_maximisation(
            x, np.full(30, 1 / 30), np.zeros((30, 1)), np.zeros(2), 5
        )
        assert value == -np.inf
