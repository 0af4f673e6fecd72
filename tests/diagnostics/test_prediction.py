"""What the diagnostics take: predictions as mixtures, outputs and weights."""

from __future__ import annotations

import numpy as np
import pytest
from tests.diagnostics.fakes import FakeComponents, FakeMixture, mixture

from paims import diagnostics
from paims._student import StudentMixtures
from paims.diagnostics._prediction import as_mixtures, as_outputs, as_weights


@pytest.mark.parametrize("dof", [3.0, 14.0, np.inf])
def test_mixtures_are_those_of_the_prediction(dof: float) -> None:
    fake = mixture(dof=dof)
    mixtures = as_mixtures(fake)
    np.testing.assert_allclose(mixtures.mean, fake.mean, rtol=1e-12)
    np.testing.assert_allclose(mixtures.std**2, np.diag(fake.cov()), rtol=1e-12)
    assert as_mixtures(mixtures) is mixtures


def test_an_output_predicted_with_certainty_is_in_the_middle_of_its_prediction() -> None:
    certain = StudentMixtures(np.zeros((1, 3)), np.zeros((1, 3)), np.ones((1, 1)), 5.0)
    y = np.array([-1.0, 0.0, 1.0])
    np.testing.assert_array_equal(diagnostics.pit(y, certain), [0.0, 0.5, 1.0])
    scores = diagnostics.standardised_residuals(y, certain).scores
    np.testing.assert_array_equal(scores, [-np.inf, 0.0, np.inf])


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="one value for each draw, 3; got 2"):
        as_weights([0.5, 0.5], 3)
    with pytest.raises(ValueError, match="not be negative"):
        as_weights([-0.5, 1.5], 2)
    with pytest.raises(ValueError, match="not all zero"):
        as_weights([0.0, 0.0], 2)
    with pytest.raises(ValueError, match="each of the 4 predictions; got 2"):
        as_outputs([1.0, 2.0], 4)
    with pytest.raises(ValueError, match="nothing to compare"):
        as_outputs([], 0)
    with pytest.raises(ValueError, match=r"y\[1\] is nan"):
        as_outputs([0.0, np.nan], 2)
    fake = mixture()
    fake.dof = 0.0
    with pytest.raises(ValueError, match="dof must be positive"):
        as_mixtures(fake)


def test_shapes_of_components_must_agree() -> None:
    class Wrong(FakeMixture):
        @property
        def components(self) -> FakeComponents:
            return FakeComponents(np.zeros((2, 3)), np.ones((2, 4)), 5.0)

    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 4\)"):
        as_mixtures(Wrong(np.zeros((2, 3)), np.ones((2, 3, 3)), 5.0, np.full(2, 0.5)))
