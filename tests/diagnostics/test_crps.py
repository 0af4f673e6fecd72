"""The continuous ranked probability score against its definition and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats
from tests.diagnostics.fakes import FakeMixture, mixture

from paims import diagnostics
from paims._student import StudentMixtures
from paims.diagnostics import _scores


def by_definition(fake: FakeMixture, j: int, y: float) -> float:
    """Integral of (F - step)^2, piece by piece between quantiles of the components."""
    c = fake.components
    cuts = np.concatenate([c.means[:, j] + q * c.scales[:, j] for q in (-50, -9, -3, 0, 3, 9, 50)])
    cuts = np.unique(np.concatenate([cuts, [y]]))
    family = stats.norm if np.isinf(fake.dof) else stats.t(fake.dof)

    def squared(x: float) -> float:
        z = (x - c.means[:, j]) / c.scales[:, j]
        return float(fake.weights @ (family.cdf(z) if x < y else family.sf(z))) ** 2

    pieces = [
        integrate.quad(squared, a, b, epsabs=1e-12, epsrel=1e-10, limit=200)[0]
        for a, b in zip([-np.inf, *cuts], [*cuts, np.inf], strict=True)
    ]
    return float(sum(pieces))


@pytest.mark.parametrize(
    ("m", "dof", "spread", "tolerance"),
    [
        (1, 5.0, 1.0, 1e-9),
        (1, np.inf, 1.0, 1e-9),
        (4, 14.0, 0.5, 1e-8),
        (4, np.inf, 2.0, 1e-9),
        (3, 2.0, 0.5, 1e-6),
        (2, 3.0, 60.0, 1e-4),
    ],
)
def test_equals_the_definition(m: int, dof: float, spread: float, tolerance: float) -> None:
    fake = mixture(m=m, k=3, dof=dof, spread=spread, seed=m)
    y = np.array([-0.4, 0.3, 5.0])
    expected = [by_definition(fake, j, y[j]) for j in range(3)]
    np.testing.assert_allclose(diagnostics.crps(y, fake), expected, rtol=tolerance)


def test_equals_monte_carlo() -> None:
    fake = mixture(m=5, k=2, dof=6.0)
    x = fake.sample(200_000, 3)
    y = np.array([0.5, -1.5])
    terms = np.abs(x - y) - 0.5 * np.abs(x - x[np.random.default_rng(0).permutation(len(x))])
    error = terms.std(axis=0) / np.sqrt(len(x))
    assert (np.abs(diagnostics.crps(y, fake) - terms.mean(axis=0)) < 4.0 * error).all()


def test_quadrature_equals_pairs_for_normals() -> None:
    rng = np.random.default_rng(2)
    many = StudentMixtures(
        rng.normal(size=(30, 6)), np.exp(0.4 * rng.normal(size=(30, 6))),
        np.broadcast_to(rng.dirichlet(np.ones(30))[:, None], (30, 6)), np.inf,
    )  # fmt: skip
    np.testing.assert_allclose(_scores._by_quadrature(many), _scores._by_pairs(many), rtol=1e-6)


def test_many_normals_go_through_the_quadrature(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    m = 150
    many = StudentMixtures(
        rng.normal(size=(m, 3)), np.exp(0.4 * rng.normal(size=(m, 3))),
        rng.dirichlet(np.ones(m))[:, None], np.inf,
    )  # fmt: skip
    y = rng.normal(size=3)
    by_quadrature = _scores.crps(y, many)
    monkeypatch.setattr(_scores, "_MAX_IN_PAIRS", 1000)
    np.testing.assert_allclose(by_quadrature, _scores.crps(y, many), rtol=1e-6)


def test_blocks_of_outputs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = mixture(m=3, k=7)
    y = np.linspace(-2.0, 2.0, 7)
    whole = diagnostics.crps(y, fake)
    monkeypatch.setattr(_scores, "_BLOCK_SIZE", 1)
    np.testing.assert_allclose(diagnostics.crps(y, fake), whole, rtol=1e-14)


def test_weights_may_differ_by_output() -> None:
    fake = mixture(m=3, k=2, dof=8.0)
    c = fake.components
    weights = np.array([[0.2, 0.7], [0.5, 0.1], [0.3, 0.2]])
    y = np.array([0.4, -0.2])
    both = _scores.crps(y, StudentMixtures(c.means, c.scales, weights, 8.0))
    for j in range(2):
        fake.weights = weights[:, j]
        assert both[j] == pytest.approx(diagnostics.crps(y, fake)[j], rel=1e-12)


def test_units_of_the_output() -> None:
    fake = mixture(m=3, k=4)
    y = np.linspace(-1.0, 2.0, 4)
    scaled = FakeMixture(
        1e6 * fake.means + 5.0, 1e12 * fake.scale_matrices, fake.dof, fake.weights
    )
    expected = 1e6 * diagnostics.crps(y, fake)
    np.testing.assert_allclose(diagnostics.crps(1e6 * y + 5.0, scaled), expected, rtol=1e-9)


def test_without_spread_it_is_the_absolute_error() -> None:
    for m in (1, 2):
        point = StudentMixtures(np.ones((m, 2)), np.zeros((m, 2)), np.full((m, 1), 1.0 / m), 9.0)
        score = _scores.crps(np.array([3.0, 1.0]), point)
        np.testing.assert_allclose(score, [2.0, 0.0], atol=1e-12)


def test_is_infinite_without_a_mean() -> None:
    assert np.isposinf(diagnostics.crps([0.0], mixture(m=2, k=1, dof=1.0))).all()
