"""The search for missed modes: its climbs and curvatures, what it finds and what it leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import targets
from tests.sampling.kit import Floats, mixture_of, reference_of, target_of
from tests.sampling.test_checkpoint import Interrupting, assert_same

import paims
from paims.sampling import SampleResult, default_scheme
from paims.sampling._climb import climb, curvature
from paims.sampling._clusters import Clusters
from paims.sampling._proposal import MarkerMixture, Markers
from paims.sampling._recycling import Batch, Recycled, recycle
from paims.sampling._search import Peaks, _missing, _Screen, search
from paims.sampling._target import Points, Target

WITHOUT = replace(default_scheme(), search_share=0.0)


def rotated(d: int, seed: int = 0) -> Floats:
    """A covariance with axes of 0.05 to 1 in random directions."""
    axes, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    return np.asarray((axes * np.geomspace(0.05, 1.0, d) ** 2) @ axes.T)


def quadratic(cov: Floats, centre: float = 0.7) -> Any:
    precision = np.linalg.inv(cov)

    def log_density(x: Floats) -> Floats:
        return np.asarray(-0.5 * np.einsum("na,ab,nb->n", x - centre, precision, x - centre))

    return log_density


class TestClimb:
    @pytest.mark.parametrize("d", [1, 4, 10])
    def test_to_the_top_of_a_gaussian(self, d: int) -> None:
        density = quadratic(rotated(d))
        start = 0.7 + np.random.default_rng(1).uniform(-3.0, 3.0, (6, d))
        top, log_top, _ = climb(density, start, density(start), np.ones(d))
        assert np.all(log_top > -0.05)  # a step that promises less than 0.001 is not taken
        np.testing.assert_array_equal(log_top, density(top))

    def test_along_the_valley_of_rosenbrock(self) -> None:
        target = targets.rosenbrock()
        start = np.array([[-1.0, 1.0], [2.5, 6.2], [0.0, 4.0], [0.3, 0.1], [1.6, 2.6]])
        top, _, _ = climb(
            target.log_likelihood, start, target.log_likelihood(start), np.array([1.0, 5.0])
        )
        assert np.all(target.log_likelihood(top) > -0.05)
        np.testing.assert_allclose(top, 1.0, atol=0.5)

    def test_too_few_steps_do_not_reach_it(self) -> None:
        target = targets.rosenbrock()
        start = np.array([[-1.0, 1.0]])
        _, log_top, _ = climb(
            target.log_likelihood, start, target.log_likelihood(start), np.array([1.0, 5.0]), 2
        )
        assert log_top[0] < -0.5

    def test_to_the_edge_of_the_support(self) -> None:
        def density(x: Floats) -> Floats:
            return np.where(np.all(x <= 1.0, axis=1), 3.0 * np.sum(x, axis=1), -np.inf)

        start = np.array([[-0.5, 0.2], [0.9, -1.0]])
        top, log_top, _ = climb(density, start, density(start), np.ones(2))
        assert np.all(top <= 1.0)
        assert np.all(np.max(top, axis=1) > 0.99)
        assert np.all(log_top > density(start))


class TestCurvature:
    @pytest.mark.parametrize("guess", [0.01, 1.0, 100.0])
    def test_is_exact_for_a_quadratic(self, guess: float) -> None:
        cov = rotated(5)
        found = curvature(quadratic(cov), np.full(5, 0.7), 0.0, guess * np.eye(5))
        assert found is not None
        np.testing.assert_allclose(found, cov, atol=1e-6)

    def test_none_at_an_edge(self) -> None:
        def cut(x: Floats) -> Floats:
            return np.where(x[:, 0] > 0.7, -np.inf, quadratic(np.eye(2))(x))

        assert curvature(cut, np.full(2, 0.7), 0.0, np.eye(2)) is None

    def test_none_at_a_saddle(self) -> None:
        def saddle(x: Floats) -> Floats:
            return x[:, 0] ** 2 - x[:, 1] ** 2

        assert curvature(saddle, np.zeros(2), 0.0, np.eye(2)) is None


def masses(target: targets.Target, result: SampleResult) -> Floats:
    label = target.assign_modes(result.draws)
    return np.bincount(label, result.weights, minlength=len(target.mode_masses))


class TestSpike:
    """Half of the mass is in a spike that the path passes by: a hundred-thousandth in volume."""

    TARGET = targets.spike_and_slab(5)

    def run(self, seed: int, **options: Any) -> SampleResult:
        return paims.sample(
            self.TARGET.log_density, reference_of(self.TARGET), 1000, random_state=seed, **options
        )

    @pytest.mark.parametrize("seed", range(4))
    def test_is_found(self, seed: int) -> None:
        result = self.run(seed)
        assert result.warnings == ()
        error = result.log_evidence - self.TARGET.log_evidence
        assert abs(error) < 5 * result.log_evidence_error
        spike = masses(self.TARGET, result)[0]
        assert abs(spike - self.TARGET.mode_masses[0]) < 5 * 0.5 / np.sqrt(result.effective_size)
        assert result.search is not None
        assert result.search.n_found == 1
        assert result.search.n_starts > 1
        assert result.search.n_evaluations < 0.2 * result.n_evaluations

    def test_is_missed_without_the_search(self) -> None:
        result = self.run(0, scheme=WITHOUT)
        assert result.search is None
        assert masses(self.TARGET, result)[0] < 0.1
        assert result.log_evidence - self.TARGET.log_evidence == pytest.approx(-0.69, abs=0.1)


class TestLostMode:
    """Two modes in six dimensions of which the mixtures have one; made by hand."""

    TRUTH = targets.two_gaussians(6)

    def pool(self, seed: int) -> tuple[Target, list[Batch]]:
        rng = np.random.default_rng(seed)
        target = target_of(self.TRUTH.log_density, reference_of(self.TRUTH))
        pool = []
        for island in range(2):
            first = target.evaluate(target.reference.sample(600, rng), np.full(600, island))
            pool.append(Batch(None, first, first.log_m))
        for island in range(2):
            theta = 0.5 + 0.1 * rng.standard_normal((400, 6))
            mixture = mixture_of(theta, self.TRUTH.log_density(theta), 1.0, clustered=False)
            drawn, _ = mixture.sample(600, rng)
            points = target.evaluate(drawn, np.full(600, island))
            pool.append(Batch(mixture, points, mixture.log_density(drawn)))
        return target, pool

    def small_mass(self, pool: list[Batch]) -> float:
        recycled = recycle(pool)
        return float(recycled.weight[self.TRUTH.assign_modes(recycled.points.theta) == 0].sum())

    @pytest.mark.parametrize("seed", range(3))
    def test_is_found_with_its_mass(self, seed: int) -> None:
        target, pool = self.pool(seed)
        assert self.small_mass(pool) < 0.01
        before = recycle(pool)
        assert before.log_evidence - self.TRUTH.log_evidence < -0.09
        batches, info = search(pool, before, target, 1.0, np.random.default_rng(seed))
        assert info.n_found == 1
        assert {int(batch.points.island[0]) for batch in batches} == {0, 1}
        whole = [*pool, *batches]
        after = recycle(whole)
        assert abs(after.log_evidence - self.TRUTH.log_evidence) < 5 * after.log_evidence_error
        # 600 draws of a Gaussian that is 1.1 times as wide in variance
        assert self.small_mass(whole) == pytest.approx(0.1, abs=5 * 0.1 / np.sqrt(600))

    def test_clusters_of_one_mode_take_one_climb(self) -> None:
        """Each cluster's best point would take a climb: they would eat up the whole budget."""
        target, pool = self.pool(0)
        rng = np.random.default_rng(1)
        parts = [self.in_eight(batch, target, rng) for batch in pool[2:]]
        pool = [*pool[:2], *parts]
        batches, info = search(pool, recycle(pool), target, 0.25, rng)
        assert info.n_found == 1
        assert batches
        assert info.n_starts <= 1 + 2 * 4

    def in_eight(self, batch: Batch, target: Target, rng: np.random.Generator) -> Batch:
        """The same from a mixture whose markers, all of one mode, have eight clusters."""
        theta = batch.points.theta[:400]
        label = (theta[:, :3] > 0.5) @ np.array([1, 2, 4])
        mean = np.array([theta[label == r].mean(axis=0) for r in range(8)])
        share = np.bincount(label) / len(label)
        clusters = Clusters.of(share, mean, np.tile(0.01 * np.eye(6), (8, 1, 1)), np.zeros(6))
        weight, log_p = np.full(400, 1 / 400), self.TRUTH.log_density(theta)
        mixture = MarkerMixture(Markers.of(theta, weight, log_p, clusters, label), 1.0, 0.0)
        drawn, _ = mixture.sample(600, rng)
        points = target.evaluate(drawn, np.full(600, batch.points.island[0]))
        return Batch(mixture, points, mixture.log_density(drawn))

    def test_evaluations_are_counted(self) -> None:
        target, pool = self.pool(0)
        before = target.counts.n_evaluations
        _, info = search(pool, recycle(pool), target, 1.0, np.random.default_rng(0))
        assert info.n_evaluations == target.counts.n_evaluations - before

    def test_hardly_any_evaluations_find_nothing(self) -> None:
        target, pool = self.pool(0)
        batches, info = search(pool, recycle(pool), target, 1e-6, np.random.default_rng(0))
        assert batches == []
        assert info.n_found == 0


def none_doubted(self: _Screen) -> Any:
    """In place of ``_Screen.doubted``: what a cluster excuses is believed."""
    return np.empty(0, dtype=np.int64)


class TestDoubted:
    """A cluster that lies across two modes explains the points of one that has no top yet."""

    SD = 0.1  # of two equal modes at -0.5 and 0.5 in each of two coordinates

    def log_density(self, x: Floats) -> Floats:
        half = [0.5 * np.sum(((x - c) / self.SD) ** 2, axis=1) for c in (-0.5, 0.5)]
        return np.asarray(np.logaddexp(-half[0], -half[1]))

    def screen(self) -> _Screen:
        """With 40 points of each mode, one cluster across both and the top of the first mode."""
        rng = np.random.default_rng(0)
        theta = np.repeat([[-0.5, -0.5], [0.5, 0.5]], 40, axis=0)
        theta += self.SD * rng.standard_normal((80, 2))
        cov = np.cov(theta.T)
        across, peaks = Peaks(), Peaks()
        across.add(np.zeros(2), 0.0, np.linalg.inv(np.linalg.cholesky(cov)))
        peaks.add(np.full(2, -0.5), 0.0, np.eye(2) / self.SD)
        screen = _Screen(across, np.ones(2))
        screen.include(theta, self.log_density(theta), peaks)
        return screen

    def test_only_they_are_climbed_from(self) -> None:
        screen = self.screen()
        assert len(screen.starts(np.random.default_rng(0))) == 0  # the cluster excuses all
        rows = screen.doubted()
        assert 2 <= len(rows) <= 4
        assert np.all(rows >= 40)  # of the second mode
        apart = screen.theta[rows][:, None] - screen.theta[rows]
        distance = np.sqrt(np.sum(apart**2, axis=2))[np.triu_indices(len(rows), 1)]
        assert distance.min() >= 0.1
        # the first is the one whose density the top explains least, for its distance
        fall = 0.5 * np.sum(((screen.theta + 0.5) / self.SD) ** 2, axis=1)
        excess = screen.log_pi + fall - 3.2
        assert rows[0] == np.argmax(excess / np.maximum(fall, 1.0))

    def test_none_twice_and_none_once_explained(self) -> None:
        screen = self.screen()
        first = screen.doubted()
        assert not set(first) & set(screen.doubted())
        screen = self.screen()
        screen.explain_by(np.full(2, 0.5), 0.0, np.eye(2) / self.SD)
        assert len(screen.doubted()) == 0

    def test_all_while_there_is_no_top(self) -> None:
        screen, peaks = _Screen(Peaks(), np.ones(2)), Peaks()
        assert len(screen.doubted()) == 0  # nor any point
        screen.include(np.zeros((3, 2)), np.zeros(3), peaks)
        assert len(screen.starts(np.random.default_rng(0))) > 0  # no cluster: none is excused
        assert len(screen.doubted()) == 0

    @staticmethod
    def errors(number: int) -> tuple[float, float]:
        """Of log evidence and the worst mass, for a member of the random family."""
        target = targets.random_mixture(number)
        result = paims.sample(target.log_density, reference_of(target), random_state=0)
        assert result.search is not None
        assert result.search.n_evaluations < 0.2 * result.n_evaluations
        worst = np.max(np.abs(masses(target, result) - target.mode_masses))
        return abs(result.log_evidence - target.log_evidence), float(worst)

    # Each has a mode, of mass 0.07 to 0.1, all of whose points a cluster across others excuses.
    MEMBERS = (44, 58, 220)

    @pytest.mark.parametrize("number", MEMBERS)
    def test_members_of_the_family_are_right(self, number: int) -> None:
        evidence, mass = self.errors(number)
        assert evidence < 0.05
        assert mass < 0.02

    def test_and_wrong_without_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A negative control; which of them are lost may change with the rest of the sampler."""
        monkeypatch.setattr(_Screen, "doubted", none_doubted)
        found = [self.errors(number) for number in self.MEMBERS]
        assert any(evidence > 0.05 and mass > 0.05 for evidence, mass in found)


@pytest.mark.parametrize(
    "target",
    [targets.two_gaussians(2), targets.himmelblau(), targets.two_gaussians(5)],
    ids=lambda t: t.name,
)
def test_nothing_is_found_where_all_is_known(target: targets.Target) -> None:
    for seed in range(3):
        result = paims.sample(target.log_density, reference_of(target), 600, random_state=seed)
        assert result.search is not None
        assert result.search.n_found == 0
        assert result.search.n_starts > 0
        assert result.search.n_evaluations < 0.15 * result.n_evaluations


def test_no_share_is_no_search() -> None:
    target = targets.two_gaussians(2)
    with_it = list(paims.anneal(target.log_density, reference_of(target), 300, random_state=0))
    without = list(
        paims.anneal(target.log_density, reference_of(target), 300, random_state=0, scheme=WITHOUT)
    )
    assert [level.info is None for level in without] == [True] + [False] * (len(without) - 1)
    assert sum(level.info is None for level in with_it) == 2
    assert without[-1].state.search is None


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_interrupted_inside(share: float, tmp_path: Path) -> None:
    """A search that goes on ends as the one that was never interrupted, to the bit."""
    target = TestSpike.TARGET
    path = tmp_path / "run.h5"

    def sample(density: Any, **options: Any) -> SampleResult:
        return paims.sample(
            density, reference_of(target), 600, random_state=0, progress=False, **options
        )

    sizes: list[int] = []

    def counting(x: Floats) -> Floats:
        sizes.append(len(x))
        return target.log_density(x)

    whole = sample(counting)
    assert whole.search is not None
    at_one = int(np.argmax(whole.levels["beta"] == 1.0))
    before = 600 + int(whole.levels["n_evaluations"][: at_one + 1].sum())
    first, last = np.searchsorted(
        np.cumsum(sizes), [before + 1, before + whole.search.n_evaluations]
    )
    at = 1 + round(first + share * (last - first))
    interrupted = Interrupting(at, target.log_density)
    part = sample(interrupted, checkpoint=path)
    assert part.status.name == "interrupted"
    assert part.search is None
    assert len(part.levels) == at_one + 1
    again = Interrupting(None, target.log_density)
    ended = paims.resume(path, again, progress=False)
    assert_same(whole, ended)
    assert ended.search == whole.search
    # what the search had evaluated is not evaluated again, but for what recognises the density
    assert interrupted.n_points > before
    assert interrupted.n_points + again.n_points <= sum(sizes) + 2


class TestMissing:
    """When a mode counts as missing, by a sample of two islands around the top of a normal."""

    TOP, LOG_MASS = np.zeros(2), 0.0  # all of the mass by Laplace

    def sample(self, n_near: tuple[int, int], heavy: float = 1.0) -> Recycled:
        """So many points near the top on each island, the others of 100 far away."""
        rng = np.random.default_rng(0)
        theta = rng.standard_normal((200, 2)) * 0.3
        island = np.repeat([0, 1], 100)
        for i in range(2):
            theta[100 * i + n_near[i] : 100 * (i + 1)] += 50.0
        weight = np.ones(200)
        weight[[0, 100]] = heavy
        points = Points(theta, np.zeros(200), np.zeros(200), island)
        log_weight = np.log(weight / weight.sum())
        return Recycled(points, log_weight, np.arange(200) % 4 + 4 * island)

    def test_known_by_both_islands(self) -> None:
        assert not _missing(self.sample((90, 90)), self.TOP, np.eye(2), self.LOG_MASS)

    @pytest.mark.parametrize("n_near", [(90, 5), (5, 90), (5, 5)])
    def test_one_island_without_it_is_enough(self, n_near: tuple[int, int]) -> None:
        assert _missing(self.sample(n_near), self.TOP, np.eye(2), self.LOG_MASS)

    def test_the_mass_of_one_point_is_not_known_well(self) -> None:
        assert _missing(self.sample((90, 90), heavy=1e4), self.TOP, np.eye(2), self.LOG_MASS)

    def test_a_mode_of_no_mass_is_not_missed(self) -> None:
        assert not _missing(self.sample((0, 0)), self.TOP, np.eye(2), np.log(1e-4))
