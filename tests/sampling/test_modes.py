"""Modes of weighted samples: how many, where, and with what mass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import logsumexp
from tests.sampling.kit import TOY, Floats

from paims.sampling._modes import Mode, _climb, climb, connect, find_modes


def gaussians(
    centres: Floats, masses: Floats, sd: float
) -> tuple[Callable[..., Floats], Callable[..., Floats]]:
    """Sampler and log density of a mixture of isotropic Gaussians."""
    n_params = centres.shape[1]

    def sample(n: int, rng: np.random.Generator) -> Floats:
        chosen = rng.choice(len(masses), size=n, p=masses)
        return centres[chosen] + sd * rng.standard_normal((n, n_params))

    def log_density(x: Floats) -> Floats:
        d2 = np.sum((x[:, None] - centres) ** 2, axis=2)
        norm = n_params * np.log(sd * np.sqrt(2 * np.pi))
        return np.asarray(logsumexp(np.log(masses) - 0.5 * d2 / sd**2 - norm, axis=1))

    return sample, log_density


def equal(n: int) -> Floats:
    return np.full(n, 1.0 / n)


@pytest.mark.parametrize("seed", [0, 1])
class TestKnownMixtures:
    N = 3000

    # apart in two coordinates of many
    @pytest.mark.parametrize("n_params", [2, 5, 10])
    def test_modes_of_two_percent_are_found(self, n_params: int, seed: int) -> None:
        masses = np.array([0.7, 0.2, 0.08, 0.02])
        corners = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=float)
        centres = np.zeros((4, n_params))
        centres[:, :2] = corners
        sample, log_density = gaussians(centres, masses, 0.1)
        x = sample(self.N, np.random.default_rng(seed))
        log_pi = log_density(x)
        modes, label = find_modes(x, log_pi, equal(self.N), min_mass=0.01)
        assert len(modes) == 4
        for mode, mass, centre in zip(modes, masses, centres, strict=True):
            assert mode.mass == pytest.approx(mass, abs=5 * np.sqrt(mass / self.N))
            assert np.linalg.norm(mode.location - centre) < 0.1 * (np.sqrt(n_params) + 3)
            np.testing.assert_allclose(mode.mean, centre, atol=5 * 0.1 / np.sqrt(mass * self.N))
            np.testing.assert_allclose(mode.sd, 0.1, rtol=5 / np.sqrt(2 * mass * self.N))
            assert mode.mass_error == pytest.approx(np.sqrt(mass * (1 - mass) / self.N), rel=0.3)
            assert mode.log_density == pytest.approx(log_density(mode.location[None])[0])
        for k in range(4):
            np.testing.assert_allclose(x[label == k, :2].mean(axis=0), corners[k], atol=0.1)

    @pytest.mark.parametrize("n_params", [2, 5, 10])
    def test_modes_apart_in_every_coordinate(self, n_params: int, seed: int) -> None:
        masses = np.array([0.9, 0.08, 0.02])
        centres = np.array([[0.5], [-0.5], [1.5]]) * np.ones(n_params)
        sample, log_density = gaussians(centres, masses, 0.1)
        x = sample(self.N, np.random.default_rng(seed))
        modes, _ = find_modes(x, log_density(x), equal(self.N), min_mass=0.01)
        assert len(modes) == 3
        for mode, mass in zip(modes, masses, strict=True):
            assert mode.mass == pytest.approx(mass, abs=5 * np.sqrt(mass / self.N))

    @pytest.mark.parametrize("n_params", [2, 5, 10])
    def test_one_gaussian_is_one_mode(self, n_params: int, seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((self.N, n_params))
        modes, label = find_modes(x, -0.5 * np.sum(x**2, axis=1), equal(self.N), min_mass=0.005)
        assert len(modes) == 1
        assert modes[0].mass == pytest.approx(1.0)
        assert np.all(label == 0)


def test_importance_weights_carry_the_masses() -> None:
    # Draws of a wide cloud, weighted: the masses are those of the density, not of the cloud.
    masses = np.array([0.9, 0.1])
    centres = np.array([[-1.0, 0.0], [1.0, 0.0]])
    _, log_density = gaussians(centres, masses, 0.3)
    x = np.random.default_rng(0).uniform(-2.5, 2.5, size=(20_000, 2))
    log_pi = log_density(x)
    w = np.exp(log_pi - log_pi.max())
    w /= w.sum()
    modes, _ = find_modes(x, log_pi, w, min_mass=0.01)
    assert len(modes) == 2
    for mode, mass in zip(modes, masses, strict=True):
        assert abs(mode.mass - mass) < 5 * mode.mass_error
        assert mode.mass_error < 0.01


def test_modes_are_sorted_and_small_ones_left_out() -> None:
    masses = np.array([0.05, 0.55, 0.4])
    centres = np.array([[-2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    sample, log_density = gaussians(centres, masses, 0.2)
    x = sample(4000, np.random.default_rng(1))
    log_pi = log_density(x)
    modes, label = find_modes(x, log_pi, equal(4000), min_mass=0.1)
    assert [round(m.mass, 1) for m in modes] == [0.6, 0.4] or modes[0].mass > modes[1].mass
    assert len(modes) == 2
    lost = np.mean(label == -1)
    assert lost == pytest.approx(0.05, abs=5 * np.sqrt(0.05 / 4000))
    assert len(find_modes(x, log_pi, equal(4000), min_mass=0.01)[0]) == 3


def test_prominence_decides_what_is_one_mode() -> None:
    # Two bumps two and a half sd apart on a line: the saddle is 0.2 below the lower top.
    centres, masses = np.array([[-1.25], [1.25]]), np.array([0.5, 0.5])
    sample, log_density = gaussians(centres, masses, 1.0)
    x = sample(5000, np.random.default_rng(2))
    log_pi = log_density(x)
    saddle = log_density(np.array([[0.0], [1.2]]))
    depth = float(saddle[1] - saddle[0])
    assert 0.05 < depth < 0.5
    count = [
        len(find_modes(x, log_pi, equal(5000), 0.05, prominence=p)[0])
        for p in (0.5 * depth, 2.0 * depth)
    ]
    assert count == [2, 1]


def test_scale_of_the_parameters_does_not_matter() -> None:
    masses, centres = np.array([0.8, 0.2]), np.array([[-1.0, 0.0], [1.0, 0.0]])
    sample, log_density = gaussians(centres, masses, 0.2)
    x = sample(3000, np.random.default_rng(3))
    log_pi = log_density(x)
    plain, label = find_modes(x, log_pi, equal(3000), 0.01)
    scaled, scaled_label = find_modes(x * np.array([1e6, 1e-6]) + 7.0, log_pi, equal(3000), 0.01)
    assert len(plain) == len(scaled) == 2
    assert np.mean(label != scaled_label) < 0.005


def test_more_points_than_the_search_takes() -> None:
    masses, centres = np.array([0.97, 0.03]), np.array([[-1.0, 0.0], [1.0, 0.0]])
    sample, log_density = gaussians(centres, masses, 0.1)
    x = sample(30_000, np.random.default_rng(4))
    modes, label = find_modes(x, log_density(x), equal(30_000), 0.01)
    assert len(modes) == 2
    assert modes[1].mass == pytest.approx(0.03, abs=5 * np.sqrt(0.03 / 30_000))
    assert np.array_equal(label == 1, x[:, 0] > 0)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_points(n: int) -> None:
    x = np.arange(n, dtype=float)[:, None]
    modes, label = find_modes(x, -x[:, 0], equal(n), 0.005)
    assert sum(mode.mass for mode in modes) == pytest.approx(1.0)
    assert len(label) == n


def test_a_constant_density_is_one_mode() -> None:
    x = np.random.default_rng(5).random((1000, 2))
    modes, _ = find_modes(x, np.full(1000, -3.0), equal(1000), 0.005)
    assert len(modes) == 1
    assert modes[0].mass == pytest.approx(1.0)


class TestClimb:
    def mode_at(self, x: Floats, mass: float = 0.6) -> Mode:
        value = float(TOY.log_density(x[None])[0])
        return Mode(x, value, mass, 0.01, x.copy(), np.array([0.4, 0.3]))

    def test_to_the_top(self) -> None:
        start = self.mode_at(np.array([1.2, 0.8]))
        (found,) = climb([start], TOY.log_density)
        axis = np.linspace(-0.05, 0.05, 101)
        grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2) + found.location
        assert found.log_density == pytest.approx(TOY.log_density(grid).max(), abs=1e-6)
        assert np.linalg.norm(found.location - TOY.mean[1]) < 0.05
        assert found.log_density > start.log_density
        assert (found.mass, found.mass_error) == (0.6, 0.01)
        np.testing.assert_array_equal(found.sd, start.sd)

    def test_never_ends_below_its_start(self) -> None:
        start = self.mode_at(np.array([1.2, 0.8]))
        lower = Mode(start.location, 1e3, 0.6, 0.01, start.mean, start.sd)
        assert climb([lower], TOY.log_density) == [lower]

    def test_walls_of_zero_density_hold_it_back(self) -> None:
        def wall(x: Floats) -> Floats:
            return np.where(x[:, 0] <= 1.0, TOY.log_density(x), -np.inf)

        (found,) = climb([self.mode_at(np.array([0.9, 0.5]))], wall)
        assert found.location[0] <= 1.0
        assert np.isfinite(found.log_density)

    def test_a_parameter_without_spread(self) -> None:
        start = Mode(np.array([1.2, 0.8]), -5.0, 1.0, 0.0, np.zeros(2), np.array([0.0, 0.3]))
        assert climb([start], TOY.log_density)[0].log_density > -1.5

    def test_modes_that_reach_the_same_top_are_one(self) -> None:
        starts = [
            self.mode_at(np.array(x), mass)
            for x, mass in (([1.3, 0.3], 0.2), ([-1.2, 0.1], 0.5), ([1.7, 0.7], 0.3))
        ]
        wide, narrow = sorted(climb(starts, TOY.log_density), key=lambda m: m.location[0])
        assert wide.mass == pytest.approx(0.5)
        assert narrow.mass == pytest.approx(0.5)
        assert np.linalg.norm(narrow.location - TOY.mean[1]) < 0.05
        # moments of the union: shares 0.4 and 0.6 of means (1.3, 0.3) and (1.7, 0.7)
        np.testing.assert_allclose(narrow.mean, [1.54, 0.54])
        gap = 0.4 * 0.6 * 0.4**2
        np.testing.assert_allclose(narrow.sd, np.sqrt([0.16 + gap, 0.09 + gap]))


def placed(location: list[float], mass: float, log_density: Callable[..., Floats]) -> Mode:
    x = np.array(location)
    return Mode(x, float(log_density(x[None])[0]), mass, 0.01, x, np.full(len(x), 0.5))


def test_modes_on_one_plateau_are_one() -> None:
    def log_density(x: Floats) -> Floats:
        """Flat along the first axis, on two ridges that a valley parts."""
        return np.asarray(-8.0 * (x[:, 1] ** 2 - 1.0) ** 2 - 0.001 * x[:, 0] ** 2)

    places = [([-9.0, 1.0], 0.2), ([9.0, 1.0], 0.1), ([0.0, 1.0], 0.3), ([4.0, -1.0], 0.4)]
    modes = [placed(*place, log_density) for place in places]
    first, second = connect(modes, log_density)
    assert first.mass == pytest.approx(0.6)
    assert first.mass_error == pytest.approx(0.01 * np.sqrt(3))
    np.testing.assert_array_equal(first.location, [0.0, 1.0])
    np.testing.assert_allclose(first.mean, [-1.5, 1.0])
    variance = (0.2 * 81 + 0.1 * 81) / 0.6 - 1.5**2 + 0.25
    np.testing.assert_allclose(first.sd, [np.sqrt(variance), 0.5])
    assert second == modes[3]
    (everything,) = connect(modes, log_density, prominence=9.0)
    assert everything.mass == pytest.approx(1.0)
    assert connect(modes[:1], log_density) == modes[:1]


def test_a_shoulder_between_two_tops_joins_one_of_them() -> None:
    def log_density(x: Floats) -> Floats:
        """Tops of height 3 and 2 at -1 and 1, on a floor of height 0."""
        t = x[:, 0]
        return np.maximum(3.0 - 3.0 * np.abs(t + 1.0), 2.0 - 2.0 * np.abs(t - 1.0))

    tops = [placed([at], mass, log_density) for at, mass in ((-1.0, 0.6), (1.0, 0.3), (0.0, 0.1))]
    found = connect(tops, log_density, prominence=0.5)
    assert [(mode.location[0], round(mode.mass, 6)) for mode in found] == [(-1.0, 0.7), (1.0, 0.3)]


def peaks_from_the_top(height: np.ndarray, prominence: float) -> np.ndarray:
    """Peak of each point of a line, by going down from the highest point, one at a time."""
    peak: dict[int, int] = {}
    for i in np.argsort(-height):
        beside = {peak[j] for j in (i - 1, i + 1) if j in peak}
        if not beside:
            peak[i] = i
            continue
        higher, lower = max(beside, key=lambda p: height[p]), min(beside, key=lambda p: height[p])
        # On a slope it is of the point above; between two peaks of the higher neighbour's.
        above = max((j for j in (i - 1, i + 1) if j in peak), key=lambda j: height[j])
        peak[i] = peak[above]
        if higher != lower and height[lower] - height[i] < prominence:
            peak = {j: higher if p == lower else p for j, p in peak.items()}
    return np.array([peak[i] for i in range(len(height))])


@pytest.mark.parametrize("prominence", [0.0, 0.3, 1.0, 3.0])
def test_peaks_that_meet_are_joined_from_the_highest_pass_down(prominence: float) -> None:
    rng, n = np.random.default_rng(0), 300
    around = np.clip(np.arange(n)[:, None] + [-1, 1], 0, n - 1)
    for smooth in (1, 5):
        height = np.convolve(rng.normal(size=n + smooth - 1), np.ones(smooth), "valid")
        found = _climb(around, height, prominence)
        np.testing.assert_array_equal(found, peaks_from_the_top(height, prominence))
        assert (len(np.unique(found)) > 1) or prominence == 3.0


def test_two_peaks_meet_at_their_highest_pass_alone() -> None:
    # On a ring there are two ways from one peak to the other, one of them through a deep valley.
    height = np.array([5.0, 4.6, 5.2, 0.0])
    around = np.array([[1, 3], [0, 2], [1, 3], [2, 0]])
    assert set(_climb(around, height, 0.5)) == {2}
    assert set(_climb(around, height, 0.3)) == {0, 2}
    deep = np.array([5.0, 4.6, 5.2, 4.9])
    assert set(_climb(around, deep, 0.2)) == {2}
