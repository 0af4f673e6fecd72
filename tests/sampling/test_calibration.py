"""Reported errors are honest: z-scores over many seeds of cheap targets."""

from __future__ import annotations

import numpy as np
import pytest
from tests import targets
from tests.sampling.kit import Floats, reference_of, rms

import paims
from paims.sampling import SampleResult


def gaussian_runs(n_seeds: int, n_samples: int) -> list[SampleResult]:
    reference = paims.Normal([0.0, 0.0], 4.0)
    return [
        paims.sample(
            lambda x: -0.5 * np.sum((x - 1.0) ** 2, axis=1) / 0.09,
            reference,
            n_samples,
            random_state=seed,
            n_jobs=1,
        )
        for seed in range(n_seeds)
    ]


def z_scores(results: list[SampleResult], truth: float) -> Floats:
    return np.array([(r.log_evidence - truth) / r.log_evidence_error for r in results])


@pytest.fixture(scope="module")
def runs() -> list[SampleResult]:
    return gaussian_runs(60, 200)


def calibrated(z: Floats) -> bool:
    """Whether z-scores are those of an honest error; 60 know their spread to 9 %."""
    return bool(0.7 < np.std(z) < 1.4 and abs(np.mean(z)) < 0.4 and np.max(np.abs(z)) < 5)


def test_evidence_errors_are_honest(runs: list[SampleResult]) -> None:
    z = z_scores(runs, np.log(2 * np.pi * 0.09))
    assert calibrated(z)
    assert not calibrated(2 * z)
    assert not calibrated(z / 2)
    assert not calibrated(z + 0.6)


def test_evidence_errors_are_honest_with_several_modes() -> None:
    target = targets.himmelblau()
    results = [
        paims.sample(target.log_density, reference_of(target), 300, random_state=seed, n_jobs=1)
        for seed in range(60)
    ]
    assert calibrated(z_scores(results, target.log_evidence))


def test_evidence_errors_fall_with_the_number_of_points(runs: list[SampleResult]) -> None:
    # By 3 for independent points, by more for quasi-random ones.
    small = np.mean([r.log_evidence_error for r in runs])
    large = np.mean([r.log_evidence_error for r in gaussian_runs(6, 1800)])
    assert 2.0 < small / large < 6.0


def test_effective_size_speaks_of_the_means(runs: list[SampleResult]) -> None:
    z = np.array([(r.mean - 1.0) / (0.3 / np.sqrt(r.effective_size)) for r in runs])
    assert 0.05 < rms(z) < 1.5
    assert abs(np.mean(z)) < 5 / np.sqrt(z.size)


def test_mode_masses_are_within_their_errors() -> None:
    target = targets.two_gaussians(2)
    z = []
    for seed in range(12):
        result = paims.sample(
            target.log_density, reference_of(target), 300, random_state=seed, n_jobs=1
        )
        small = result.modes()[-1]
        assert small.location[0] < 0
        z.append((small.mass - 0.1) / small.mass_error)
    assert 0.05 < rms(z) < 1.5


@pytest.mark.parametrize("kind", ["constant", "half of the box"])
def test_evidence_of_flat_densities(kind: str) -> None:
    # All of the error is that of the mixtures: the reference itself is (half of) the answer.
    box = paims.Uniform([-2.0, -2.0], [2.0, 2.0])

    def flat(x: Floats) -> Floats:
        return np.full(len(x), -1.234)

    def half(x: Floats) -> Floats:
        return np.where(x[:, 0] > 0.0, -1.234, -np.inf)

    density, volume = (flat, 16.0) if kind == "constant" else (half, 8.0)
    z = z_scores(
        [paims.sample(density, box, 400, random_state=s, n_jobs=1) for s in range(20)],
        np.log(volume) - 1.234,
    )
    assert rms(z) < 2.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [targets.two_gaussians(2), targets.himmelblau(), targets.two_gaussians(5)],
    ids=lambda t: t.name,
)
def test_evidence_errors_over_many_seeds(target: targets.Target) -> None:
    results = [
        paims.sample(target.log_density, reference_of(target), 1000, random_state=seed)
        for seed in range(40)
    ]
    z = z_scores(results, target.log_evidence)
    assert 0.05 < rms(z) < 1.3
    assert np.max(np.abs(z)) < 4


@pytest.mark.parametrize("scheme", ["paper"])
def test_evidence_of_the_papers_scheme_is_within_its_larger_error(scheme: str) -> None:
    # Lengths by weight and own markers bias it (known of TMCMC): looser than the default scheme.
    target = targets.two_gaussians(2)
    results = [
        paims.sample(
            target.log_density, reference_of(target), 1000, scheme=scheme, random_state=s, n_jobs=1
        )
        for s in range(4)
    ]
    errors = np.array([r.log_evidence - target.log_evidence for r in results])
    assert np.all(np.abs(errors) < 0.6)
    assert all(r.source == "last level" for r in results)
    assert all(len(r.draws) == 1000 for r in results)
    assert all(r.log_evidence_error > 0.03 for r in results)
