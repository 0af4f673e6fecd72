"""Units: nothing that is learnt depends on them."""

from __future__ import annotations

import numpy as np
import pytest

import paims
from paims.emulator._scaling import InputScaling, OutputScaling

NEW = np.array([[0.1, 11.0], [0.5, 20.0], [1.2, 33.0]])


def fitted(X: np.ndarray, y: np.ndarray) -> paims.Emulator:
    return paims.Emulator(
        "squared_exponential", nugget_prior="uniform", n_samples=500, random_state=3
    ).fit(X, y)


@pytest.mark.parametrize(("x_unit", "y_unit"), [(2.0**40, 2.0**-30), (2.0**-900, 2.0**900)])
def test_powers_of_two_change_nothing_to_the_bit(
    emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray], x_unit: float, y_unit: float
) -> None:
    X, y = runs
    other = fitted(X * x_unit, y * y_unit)
    for a, b in zip(
        emulator.predict(NEW, return_std=True),
        other.predict(NEW * x_unit, return_std=True),
        strict=True,
    ):
        np.testing.assert_array_equal(b, a * y_unit)
    np.testing.assert_array_equal(other.result_.draws, emulator.result_.draws)


def test_decimal_units_change_nothing(
    emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = runs
    other = fitted(X * 1e6, y * 1e-9)
    for a, b in zip(
        emulator.predict(NEW, return_std=True),
        other.predict(NEW * 1e6, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(b, a * 1e-9, rtol=1e-9)
    np.testing.assert_allclose(
        other.log_evidence_, emulator.log_evidence_ - len(y) * np.log(1e-9), rtol=1e-9
    )
    np.testing.assert_allclose(
        other.draws_["length_scale_x1"], 1e6 * emulator.draws_["length_scale_x1"], rtol=1e-9
    )
    np.testing.assert_allclose(
        other.beta_["mean"][1:], 1e-15 * emulator.beta_["mean"][1:], rtol=1e-7
    )
    np.testing.assert_allclose(
        other.sigma2_["median"], 1e-18 * emulator.sigma2_["median"], rtol=1e-9
    )
    mixture, same = other.predict_distribution(NEW * 1e6), emulator.predict_distribution(NEW)
    np.testing.assert_allclose(mixture.interval()[0], 1e-9 * same.interval()[0], rtol=1e-9)
    np.testing.assert_allclose(mixture.cov(), 1e-18 * same.cov(), rtol=1e-8)


def test_shifted_units_change_nothing(
    emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray]
) -> None:
    X, y = runs  # As from Celsius to Kelvin.
    other = fitted(X + 273.15, y - 1000.0)
    np.testing.assert_allclose(
        other.predict(NEW + 273.15), emulator.predict(NEW) - 1000.0, rtol=1e-11
    )
    np.testing.assert_allclose(other.beta_["mean"][1:], emulator.beta_["mean"][1:], rtol=1e-8)


@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e300, 1e-300), (1e-300, 1e300), (1e-310, 1e307)])
def test_extreme_units_neither_overflow_nor_underflow(
    emulator: paims.Emulator, runs: tuple[np.ndarray, np.ndarray], x_unit: float, y_unit: float
) -> None:
    X, y = runs
    other = fitted(X * x_unit, y * y_unit)
    mean, std = other.predict(NEW * x_unit, return_std=True)
    expected_mean, expected_std = emulator.predict(NEW, return_std=True)
    np.testing.assert_allclose(mean / y_unit, expected_mean, rtol=1e-6)
    np.testing.assert_allclose(std / y_unit, expected_std, rtol=1e-6)
    mixture = other.predict_distribution(NEW * x_unit)
    assert np.isfinite(mixture.logpdf(mixture.mean)).all()
    assert np.isfinite(mixture.quantile([0.01, 0.99])).all()
    assert np.isfinite(other.sample_y(NEW * x_unit)).all()


def test_scaling_and_its_inverse() -> None:
    X = np.array([[1e-200, 5.0, -3e200], [4e-200, 5.0, 3e200], [2e-200, 5.0, 0.0]])
    scaling = InputScaling.of(X)
    np.testing.assert_array_equal(scaling.active, [True, False, True])
    np.testing.assert_allclose(scaling.apply(X), [[0, 0], [1, 1], [1 / 3, 0.5]], atol=1e-15)
    np.testing.assert_allclose(scaling.undo(scaling.apply(X)), X, rtol=1e-15)
    np.testing.assert_allclose(scaling.range, [3e-200, 6e200], rtol=1e-15)
    assert np.abs(scaling.runs(X) - scaling.apply(X)).max() <= 2.0**-33
    assert scaling.changed_constants(X).size == 0
    assert scaling.changed_constants(np.where(X == 5.0, 6.0, X)).tolist() == [1]


def test_range_beyond_double_precision() -> None:
    X = np.array([[-1.7e308], [1.7e308], [0.0]])
    np.testing.assert_allclose(InputScaling.of(X).apply(X)[:, 0], [0.0, 1.0, 0.5])


def test_far_inputs_stay_finite() -> None:
    scaling = InputScaling.of(np.array([[0.0], [1e-300]]))
    assert np.isfinite(scaling.apply(np.array([[1e300], [-1e300]]))).all()


@pytest.mark.parametrize("centre", [True, False])
def test_output_scaling(centre: bool) -> None:
    y = np.array([3.0, 5.0, 10.0, 6.0])
    scaling = OutputScaling.of(y, centre=centre)
    t = scaling.apply(y)
    assert np.mean(t) == pytest.approx(0.0 if centre else t.mean())
    assert np.mean(t**2) == pytest.approx(1.0)
    np.testing.assert_allclose(scaling.value(t), y)
    unit = y.std() if centre else np.sqrt(np.mean(y**2))
    assert scaling.difference(np.ones(1))[0] == pytest.approx(unit)
    assert scaling.square(np.ones(1))[0] == pytest.approx(unit**2)
    assert np.exp(scaling.log_scale) == pytest.approx(unit)


def test_output_is_not_centred_without_a_constant_in_the_mean() -> None:
    X = np.linspace(0.0, 1.0, 15)[:, None]
    y = 100.0 + np.sin(6.0 * X[:, 0])
    far = [[50.0]]
    zero = paims.Emulator(mean="zero", kernel="matern52", n_samples=300, random_state=0).fit(X, y)
    one = paims.Emulator(
        "squared_exponential", mean="constant", n_samples=300, random_state=0
    ).fit(X, y)
    # Far from the runs a process centred at 0 knows nothing but 0.
    assert abs(zero.predict(far)[0]) < 60.0
    assert one.predict(far)[0] == pytest.approx(100.0, abs=5.0)
    slope = paims.Emulator(
        "squared_exponential", mean=lambda x: x, n_samples=300, random_state=0
    ).fit(X, y)
    assert slope.output_.shift == 0.0
