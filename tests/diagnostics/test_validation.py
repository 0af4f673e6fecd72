"""All diagnostics at once, on right and on wrong predictions, and on the paper's data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.diagnostics.fakes import FakeMixture, mixture

from paims import diagnostics


def smooth(m: int, k: int = 60) -> FakeMixture:
    return mixture(m=m, k=k, dof=20.0, spread=0.3, seed=11)


@pytest.mark.parametrize("m", [1, 4])
def test_right_predictions_pass(m: int) -> None:
    fake = smooth(m)
    samples = fake.sample(20, 1)
    results = [diagnostics.validate(y, fake, n_simulations=400) for y in samples]
    # Five checks, most at level 0.01: nine tenths of all should pass by far.
    passed = np.array([[ok for ok, _ in r.checks.values()] for r in results])
    assert passed[:, 1:].mean() > 0.9
    result = results[int(np.argmax(passed.all(axis=1)))]
    assert result.passed
    assert "No check speaks against" in result.verdict
    assert str(result).count("ok  ") == 5
    expected = "scaled F" if m == 1 else "simulation"
    assert result.mahalanobis.reference == expected
    assert result.coverage.reference == "simulation"


def test_parts_are_those_of_the_single_functions() -> None:
    fake = smooth(3)
    y = fake.sample(1, 2)[0]
    result = diagnostics.validate(y, fake, n_simulations=300, random_state=7)
    samples = fake.sample(300, 7)
    assert result.scores == diagnostics.scores(y, fake)
    expected = diagnostics.mahalanobis(y, fake.mean, fake.cov(), samples=samples)
    assert result.mahalanobis.p_value == expected.p_value
    reference = diagnostics.reference_pit(samples)
    u = diagnostics.pit(y, fake)
    assert result.uniformity.ks_p == diagnostics.uniformity(u, reference=reference).ks_p
    np.testing.assert_array_equal(
        result.coverage.lower, diagnostics.coverage_curve(u, reference=reference).lower
    )


def test_a_prediction_that_is_too_sure_fails() -> None:
    fake = smooth(3)
    y = fake.sample(1, 3)[0]
    sure = replace(fake, scale_matrices=fake.scale_matrices / 16.0)
    result = diagnostics.validate(y, sure, n_simulations=300)
    assert not result.passed
    assert not result.mahalanobis.passed
    assert "LOOK" in str(result)
    assert "further off" in result.verdict


def test_errors_that_are_too_small_fail_on_the_safe_side() -> None:
    fake = smooth(3)
    careful = diagnostics.validate(fake.mean, fake, n_simulations=300)
    assert not careful.passed
    assert careful.on_the_safe_side
    for part in (careful.residuals, careful.cholesky, careful.mahalanobis, careful.coverage,
                 careful.uniformity):  # fmt: skip
        assert part.on_the_safe_side
    off = fake.mean + 6.0 * np.sqrt(np.diag(fake.cov())) * (-1.0) ** np.arange(len(fake.mean))
    wrong = diagnostics.validate(off, fake, n_simulations=300)
    for part in (wrong.residuals, wrong.cholesky, wrong.mahalanobis, wrong.coverage,
                 wrong.uniformity):  # fmt: skip
        assert not part.on_the_safe_side
    assert not wrong.on_the_safe_side


def test_transforms_on_one_side_are_not_on_the_safe_side() -> None:
    assert not diagnostics.uniformity(np.linspace(0.5, 0.74, 40)).on_the_safe_side
    assert diagnostics.uniformity(np.linspace(0.4, 0.6, 40)).on_the_safe_side


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 100"):
        diagnostics.validate(np.zeros(4), mixture(), n_simulations=10)

    class Transposed(FakeMixture):
        def sample(self, size: int, random_state: Any = None) -> np.ndarray:
            return super().sample(size, random_state).T

    fake = mixture()
    wrong = Transposed(fake.means, fake.scale_matrices, fake.dof, fake.weights)
    with pytest.raises(ValueError, match=r"shape \(200, 4\); got \(4, 200\)"):
        diagnostics.validate(np.zeros(4), wrong, n_simulations=200)
