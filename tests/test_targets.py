"""Every stated truth of the targets, recomputed by quadrature that knows no sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import eigh
from scipy.special import logsumexp
from scipy.stats import kstest, lognorm, multivariate_normal
from tests import targets

SMALL = [target for target in targets.all_targets() if target.d == 2]
EXACT = [target for target in SMALL if target.sampler is not None]


@dataclass(frozen=True)
class Quadrature:
    log_evidence: float
    mean: np.ndarray
    sd: np.ndarray
    masses: np.ndarray
    mean_log_density: float


def _nodes(lower, upper, panels, order=10):
    """Composite Gauss-Legendre nodes and weights."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    edges = np.linspace(lower, upper, panels + 1)
    half = 0.5 * np.diff(edges)[:, None]
    centre = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (centre + half * nodes).ravel(), (half * weights).ravel()


def _integrate(target, axes, to_points=None, log_jacobian=None):
    """Truth of a two-dimensional target on the tensor grid of `axes`, mapped by `to_points`."""
    (s, ws), (t, wt) = axes
    grid = np.stack(np.meshgrid(s, t, indexing="ij"), axis=-1).reshape(-1, 2)
    log_weights = np.log(np.outer(ws, wt)).ravel()
    points = grid if to_points is None else to_points(grid)
    if log_jacobian is not None:
        log_weights += log_jacobian(grid)
    log_terms = target.log_density(points) + log_weights
    log_evidence = logsumexp(log_terms)
    p = np.exp(log_terms - log_evidence)
    coordinates = points[:, : target.d]
    mean = p @ coordinates
    masses = np.bincount(target.assign_modes(points), p, minlength=len(target.mode_masses))
    return Quadrature(
        float(log_evidence),
        mean,
        np.sqrt(p @ (coordinates - mean) ** 2),
        masses,
        float(p[p > 0.0] @ target.log_density(points[p > 0.0])),
    )


def _quadrature(target, refine=1):
    """Grid fit for each target: narrow features decide the panels, odd shapes the coordinates."""
    if target.name == "rosenbrock":
        lower, upper = target.reference.lower, target.reference.upper
        # y = x^2 + t straightens the ridge; t reaches as far as the box allows it everywhere.
        axes = [_nodes(lower[0], upper[0], 20 * refine), _nodes(lower[1], -lower[1], 20 * refine)]
        return _integrate(
            target, axes, lambda g: np.column_stack([g[:, 0], g[:, 0] ** 2 + g[:, 1]])
        )
    if target.name == "shear_building":
        axes = [_nodes(-4.0, 4.0, 40 * refine), _nodes(-5.0, 5.0, 40 * refine)]
        return _integrate(target, axes, np.exp, lambda g: g.sum(axis=1))
    box = target.reference
    panels = {"himmelblau": 40, "eggbox": 64}.get(target.name, 50) * refine
    axes = [_nodes(a, b, panels, 12) for a, b in zip(box.lower, box.upper, strict=True)]
    return _integrate(target, axes)


# Agreement that the grids reach; the shells also lose what their box cuts off.
TOLERANCE = {"gaussian_shells_2d": 1e-7}


@pytest.mark.parametrize("target", SMALL, ids=lambda t: t.name)
def test_truth_by_two_dimensional_quadrature(target):
    found = _quadrature(target)
    tolerance = TOLERANCE.get(target.name, 1e-9)
    assert found.log_evidence == pytest.approx(target.log_evidence, abs=tolerance)
    np.testing.assert_allclose(found.mean, target.mean, atol=tolerance * 10)
    np.testing.assert_allclose(found.sd, target.sd, rtol=tolerance * 10)
    np.testing.assert_allclose(found.masses, target.mode_masses, atol=tolerance * 10)


@pytest.mark.slow
@pytest.mark.parametrize("target", SMALL, ids=lambda t: t.name)
def test_quadrature_has_converged(target):
    coarse, fine = _quadrature(target), _quadrature(target, refine=2)
    tolerance = TOLERANCE.get(target.name, 1e-9)
    assert fine.log_evidence == pytest.approx(coarse.log_evidence, abs=tolerance)
    np.testing.assert_allclose(fine.sd, coarse.sd, rtol=tolerance * 10)


def test_shells_in_five_dimensions():
    # Rotational symmetry about the first axis: s is the distance from it, with the area of the
    # 3-sphere, 2 pi^2 s^3, as Jacobian.
    target = targets.gaussian_shells(5)
    x, wx = _nodes(-6.0, 6.0, 120, 6)
    s, ws = _nodes(0.0, 6.0, 60, 6)
    grid = np.stack(np.meshgrid(x, s, indexing="ij"), axis=-1).reshape(-1, 2)
    points = np.column_stack([grid, np.zeros((len(grid), 3))])
    log_weights = np.log(np.outer(wx, ws)).ravel() + np.log(2 * np.pi**2 * grid[:, 1] ** 3)
    log_terms = target.log_density(points) + log_weights
    log_evidence = logsumexp(log_terms)
    p = np.exp(log_terms - log_evidence)
    assert log_evidence == pytest.approx(target.log_evidence, abs=1e-7)
    assert math.sqrt(p @ grid[:, 0] ** 2) == pytest.approx(target.sd[0], rel=1e-6)
    assert math.sqrt(p @ grid[:, 1] ** 2 / 4) == pytest.approx(target.sd[1], rel=1e-6)
    assert p[grid[:, 0] > 0].sum() == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("d", [1, 3, 10, 20])
def test_two_gaussians_in_any_dimension_are_normalised(d):
    target = targets.two_gaussians(d)
    rng = np.random.default_rng(d)
    x = np.vstack([target.sample(30, rng), rng.uniform(-2, 2, (30, d))])
    covariance = 0.01 * np.eye(d)
    exact = logsumexp(
        [
            multivariate_normal(np.full(d, centre), covariance).logpdf(x) + math.log(mass)
            for centre, mass in [(-0.5, 0.1), (0.5, 0.9)]
        ],
        axis=0,
    )
    np.testing.assert_allclose(target.log_density(x), exact - d * math.log(4), rtol=1e-12)
    assert target.log_evidence == pytest.approx(-d * math.log(4))
    np.testing.assert_allclose(target.mean, 0.4)
    np.testing.assert_allclose(target.sd, math.sqrt(0.01 + 0.25 - 0.16))


def test_spike_and_slab_is_normalised():
    target = targets.spike_and_slab(5)
    radius, weights = _nodes(0.0, 8.0, 400)
    x = np.column_stack([radius, np.zeros((len(radius), 4))])
    shell = 8 * math.pi**2 / 3 * radius**4 * weights  # area of the 4-sphere
    p = shell * np.exp(target.log_density(x) - target.log_evidence)
    assert p.sum() == pytest.approx(1.0, abs=1e-9)
    spike = p[target.assign_modes(x) == 0].sum()
    assert spike == pytest.approx(target.mode_masses[0], abs=2e-4)  # to one node of the edge
    assert target.mode_masses[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_random_mixtures_are_what_they_say(seed):
    target = targets.random_mixture(seed)
    assert 2 <= target.d <= 20
    assert 2 <= len(target.mode_masses) <= 10
    assert np.min(target.mode_masses) >= 0.01
    assert np.max(np.abs(target.mean)) <= 1.2
    # Normalised: Gaussians fitted to the exact draws of each mode have the same log density.
    rng = np.random.default_rng(seed)
    x = target.sample(20_000, rng)
    labels = target.assign_modes(x)
    log_q = np.full(len(x), -np.inf)
    for k, mass in enumerate(target.mode_masses):
        own = x[labels == k]
        fitted = multivariate_normal(own.mean(axis=0), np.cov(own.T))
        log_q = np.logaddexp(log_q, math.log(mass) + fitted.logpdf(x))
    log_p = target.log_density(x) - target.log_evidence
    size = len(x) * np.min(target.mode_masses)
    assert abs(np.mean(log_p - log_q)) < 5 * target.d**2 / size + 5 * target.d / math.sqrt(len(x))
    # and the same from the same seed
    np.testing.assert_array_equal(
        targets.random_mixture(seed).log_density(x[:50]), target.log_density(x[:50])
    )


def test_ten_gaussians_are_well_apart_and_inside():
    target = targets.ten_gaussians()
    x = target.sample(200, np.random.default_rng(0))
    assert target.mode_masses.size == 10
    # A draw is within 0.6 (six standard deviations) of its centre, and centres are 1.3 apart.
    assert np.all(np.bincount(target.assign_modes(x), minlength=10) > 0)
    lower, upper = target.reference.lower, target.reference.upper
    assert np.all((x - lower > 0.6) & (upper - x > 0.6))


@pytest.mark.parametrize(("a", "b"), [(5.0, 0.05), (20.0, 3.0)])
def test_rosenbrock_for_other_constants(a, b):
    target = targets.rosenbrock(a, b)
    found = _quadrature(target)
    area = np.prod(target.reference.upper - target.reference.lower)
    assert found.log_evidence == pytest.approx(
        math.log(math.pi / math.sqrt(a * b) / area), abs=1e-9
    )
    assert found.mean[0] == pytest.approx(1.0, abs=1e-9)
    assert found.sd[0] ** 2 == pytest.approx(1 / (2 * b), rel=1e-8)
    np.testing.assert_allclose(found.sd, target.sd, rtol=1e-8)


def test_shear_building_frequencies_and_prior():
    target = targets.shear_building()
    x = np.array([[0.5, 0.9], [1.8, 0.25], [3.0, 2.0]])
    for row, value in zip(x, target.log_likelihood(x), strict=True):
        k1, k2 = 29.7e6 * row
        K = np.array([[k1 + k2, -k2], [-k2, k2]])
        f = np.sqrt(eigh(K, np.diag([16.5e3, 16.1e3]), eigvals_only=True)) / (2 * np.pi)
        J = np.sum((f**2 / np.array([3.13, 9.83]) ** 2 - 1) ** 2)
        assert value == pytest.approx(-J / (2 / 256), rel=1e-9)
    prior = lognorm.logpdf(x, [0.49787, 0.62667], scale=np.exp([0.51024, 0.16958])).sum(axis=1)
    np.testing.assert_allclose(target.reference.log_pdf(x), prior, rtol=1e-12)


@pytest.mark.parametrize(
    ("target", "log_evidence", "digits"),
    [
        (targets.himmelblau(), -5.50385, 5),
        (targets.eggbox(), 235.85594, 5),
        (targets.gaussian_shells(2), -1.7456, 4),
        (targets.gaussian_shells(5), -5.6736, 4),
        (targets.ten_gaussians(), -math.log(100), 12),
        (targets.shear_building(), math.log(1.5095e-3), 4),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_evidence_is_the_one_quoted_in_the_literature(target, log_evidence, digits):
    assert abs(target.log_evidence - log_evidence) < 0.5 * 10.0**-digits


def test_moments_are_those_quoted_in_the_literature():
    himmelblau, shear = targets.himmelblau(), targets.shear_building()
    np.testing.assert_allclose(himmelblau.mean, [0.84216, 0.30284], atol=5e-6)
    np.testing.assert_allclose(himmelblau.sd, [3.15729, 2.45224], atol=5e-6)
    np.testing.assert_allclose(
        himmelblau.mode_masses, [0.34081, 0.28544, 0.21456, 0.15919], atol=5e-6
    )
    assert abs(shear.mean[0] - 1.1170) < 5e-5
    assert abs(shear.sd[0] - 0.6624) < 5e-5


@pytest.mark.parametrize("target", targets.all_targets(), ids=lambda t: t.name)
def test_exact_draws_have_the_stated_moments_and_masses(target):
    rng = np.random.default_rng(12345)
    if target.sampler is None:
        with pytest.raises(NotImplementedError, match=target.name):
            target.sample(3, rng)
        return
    n = 40_000
    x = target.sample(n, rng)
    assert x.shape == (n, target.d)
    assert np.all(np.isfinite(target.log_density(x)))
    assert np.all(np.abs(x.mean(axis=0) - target.mean) < 5 * target.sd / math.sqrt(n))
    squares = (x - target.mean) ** 2
    error = 5 * squares.std(axis=0) / math.sqrt(n)
    assert np.all(np.abs(squares.mean(axis=0) - target.sd**2) < error)
    counts = np.bincount(target.assign_modes(x), minlength=len(target.mode_masses))
    expected = n * target.mode_masses
    assert np.all(np.abs(counts - expected) <= 5 * np.sqrt(expected * (1 - target.mode_masses)))


@pytest.mark.parametrize("target", EXACT, ids=lambda t: t.name)
def test_exact_draws_have_the_entropy_of_the_density(target):
    # Moments hardly see the width of a narrow ridge or peak; the mean log density does.
    values = target.log_density(target.sample(40_000, np.random.default_rng(3)))
    error = 5 * values.std() / math.sqrt(values.size)
    assert abs(values.mean() - _quadrature(target).mean_log_density) < error


@pytest.mark.parametrize("d", [2, 5])
def test_shell_draws_have_the_radius_of_the_density(d):
    target = targets.gaussian_shells(d)
    x = target.sample(40_000, np.random.default_rng(7))
    x[:, 0] -= np.where(x[:, 0] > 0, 3.5, -3.5)

    def density(rho):
        return rho ** (d - 1) * math.exp(-0.5 * ((rho - 2.0) / 0.1) ** 2)

    total = quad(density, 1.0, 3.0, points=[2.0])[0]
    grid = np.linspace(1.0, 3.0, 2001)
    steps = [quad(density, a, b)[0] / total for a, b in pairwise(grid)]
    cdf = np.concatenate([[0.0], np.cumsum(steps)])
    radii = np.linalg.norm(x, axis=1)
    assert kstest(radii, lambda r: np.interp(r, grid, cdf)).pvalue > 1e-3


@pytest.mark.parametrize("target", targets.all_targets(), ids=lambda t: t.name)
def test_interface(target):
    rng = np.random.default_rng(0)
    x = target.reference.sample(50, rng)
    values = target.log_density(x)
    assert values.shape == (50,)
    np.testing.assert_allclose(
        values, target.log_likelihood(x) + target.reference.log_pdf(x), rtol=1e-13
    )
    modes = target.assign_modes(x)
    assert modes.shape == (50,)
    assert np.issubdtype(modes.dtype, np.integer)
    assert target.mode_masses.sum() == pytest.approx(1.0, abs=1e-11)
    assert target.mean.shape == target.sd.shape == (target.d,)
    outside = x.copy()
    outside[3, 0] = -1e3
    np.testing.assert_array_equal(np.isinf(target.log_density(outside)), np.arange(50) == 3)
    with pytest.raises(ValueError, match=rf"\(m, {target.d}\); got"):
        target.log_density(x[0])
