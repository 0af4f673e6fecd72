"""Surfaces, quadrature and test sets against what is known in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from paims import simulators
from paims.experiments import Settings
from paims.experiments._fits import Fit, Runs, make_tests
from paims.experiments._functions import branin_letters, letters_by_mass
from paims.experiments._grids import GridMode, Surface, grid_modes, quadrature, surface

AXIS = np.linspace(-7.0, 14.0, 106)
GRID = np.stack(np.meshgrid(AXIS, AXIS, indexing="ij"), axis=-1)
CENTRES = np.array([[-3.0, 1.0], [5.0, 4.0], [5.0, 10.0]])
SHARES = np.array([0.6, 0.3, 0.1])


def mixture() -> Surface:
    """Three round normals, far apart."""
    parts = [
        share * multivariate_normal(centre, 0.5).pdf(GRID)
        for share, centre in zip(SHARES, CENTRES, strict=True)
    ]
    return Surface(AXIS, np.log(np.sum(parts, axis=0) + 1e-300))


class TestSurface:
    def test_finds_the_modes_and_their_masses(self) -> None:
        modes = grid_modes(mixture())
        assert len(modes) == 3
        for mode, centre, share in zip(modes, CENTRES, SHARES, strict=True):
            assert mode.mass == pytest.approx(share, abs=1e-4)
            assert mode.location == pytest.approx(centre, abs=0.1)

    def test_a_shallow_peak_belongs_to_its_neighbour(self) -> None:
        """Two unequal normals whose lower peak stands out by 0.9 of log density."""
        x = AXIS[:, None] + 0.0 * AXIS[None]
        bumps = np.logaddexp(-0.5 * (x - 2.0) ** 2, -0.7 - 0.5 * (x - 5.0) ** 2)
        area = Surface(AXIS, bumps - 0.5 * (AXIS[None] - 3.0) ** 2)
        assert len(grid_modes(area)) == 2
        assert len(grid_modes(area, prominence=2.0)) == 1

    def test_what_rises_to_the_edge_is_no_mode(self) -> None:
        assert grid_modes(Surface(AXIS, AXIS[:, None] + AXIS[None])) == []

    def test_mass_below(self) -> None:
        area = mixture()
        # Only the first normal has both coordinates below 2; it lies in the paper's box.
        inside = SHARES[0] + SHARES[1]
        assert area.mass(3.0) == pytest.approx(SHARES[0] / inside, abs=0.01)
        assert area.mass(-6.9) == pytest.approx(0.0, abs=1e-6)

    def test_points_without_a_value(self) -> None:
        values = mixture().log_density.copy()
        values[:10] = -np.inf
        area = Surface(AXIS, values)
        assert area.failed_share == pytest.approx(10 / 106)
        assert len(grid_modes(area)) == 3
        assert (area.height[:10] == np.inf).all()
        assert area.height.min() == 0.0

    def test_needs_two_parameters(self) -> None:
        simulator = simulators.branin
        X = simulator.design(12, 0)
        with pytest.raises(ValueError, match=r"two parameters; this one has 3.*Fix the nugget"):
            surface(Runs(X, simulator(X), ("a", "b")).posterior())


class TestLetters:
    def test_branin_by_what_the_paper_says(self) -> None:
        places = {"A": (-2.7, 0.0), "B": (-1.9, -2.2), "C": (5.0, 9.3), "D": (11.7, 11.4)}
        modes = [GridMode(np.array(place), 0.0, 0.1) for place in places.values()]
        named = branin_letters(modes[::-1])
        assert list(named) == list("ABCD")
        for letter, place in places.items():
            assert tuple(named[letter].location) == place

    def test_others_by_mass(self) -> None:
        modes = grid_modes(mixture())
        assert [m.mass for m in letters_by_mass(modes).values()] == [m.mass for m in modes]
        assert list(letters_by_mass(modes)) == ["A", "B", "C"]


class TestQuadrature:
    def test_normal_with_correlation(self) -> None:
        cov = np.array([[1.0, 0.6], [0.6, 2.0]])
        normal = multivariate_normal([0.3, -0.7], cov)
        found = quadrature(
            lambda x: normal.logpdf(x) + 3.0, np.array([-12.0, -14.0]), np.array([13.0, 12.0])
        )
        assert found.log_evidence == pytest.approx(3.0, abs=1e-6)
        assert found.mean == pytest.approx([0.3, -0.7], abs=1e-6)
        assert found.sd == pytest.approx(np.sqrt(np.diag(cov)), rel=1e-6)
        assert found.error < 0.01

    def test_the_error_tells_of_a_step_too_long(self) -> None:
        narrow = multivariate_normal([0.3], 0.01)
        found = quadrature(
            lambda x: np.atleast_1d(narrow.logpdf(x)), np.array([-5.0]), np.array([5.0])
        )
        assert found.error > 0.3


class TestTestSets:
    def test_sizes_and_outputs(self) -> None:
        tests = make_tests(simulators.branin, Settings(n_tests=1000, n_designs=7))
        assert tests.X.shape == (1000, 2)
        assert tests.X_small.shape == (7, 25, 2)
        assert tests.y == pytest.approx(simulators.branin(tests.X))
        assert tests.y_small[3] == pytest.approx(simulators.branin(tests.X_small[3]))

    def test_the_small_ones_are_latin_and_differ(self) -> None:
        tests = make_tests(simulators.branin, Settings(n_tests=16, n_designs=5))
        cells = np.sort((25 * tests.X_small).astype(int), axis=1)
        assert (cells == np.arange(25)[None, :, None]).all()
        assert len(np.unique(tests.y_small)) == tests.y_small.size

    def test_the_seed_decides(self) -> None:
        one, same, other = (
            make_tests(simulators.branin, Settings(seed=seed, n_tests=16, n_designs=2))
            for seed in (1, 1, 2)
        )
        assert np.array_equal(one.X_small, same.X_small)
        assert not np.array_equal(one.X_small, other.X_small)


def test_the_mixture_of_a_scheme_is_its_own() -> None:
    nothing: Any = None
    kinds = [Fit(s, nothing, nothing, {}, ()).mixture for s in ("paper", "default")]
    assert kinds == ["optimum", "posterior"]
