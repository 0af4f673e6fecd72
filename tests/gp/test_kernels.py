"""Every kernel, built in or a user's, keeps the promises of a kernel."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from tests.gp import oracle

from paims.gp import (
    KERNELS,
    ExponentialKernel,
    Kernel,
    Matern,
    Matern52,
    Posterior,
    PowerExponential,
    SquaredExponential,
    _compiled,
    _twin,
)
from paims.gp._kernels import as_kernel, has_form


class Spherical(Kernel):
    """A user's kernel with compact support: r = 1 - 1.5 s + 0.5 s^3 for s < 1, else 0."""

    def factor(self, distance, phi):
        s = np.minimum(distance / phi, 1.0)
        return 1.0 - 1.5 * s + 0.5 * s**3

    def factor_derivative(self, distance, phi):
        s = np.minimum(distance / phi, 1.0)
        return 1.5 * s - 1.5 * s**3


class SlowMatern52(Kernel):
    """The Matern 5/2 formula as a user would write it."""

    def factor(self, distance, phi):
        t = np.sqrt(5.0) * distance / phi
        return (1.0 + t + t**2 / 3.0) * np.exp(-t)

    def factor_derivative(self, distance, phi):
        t = np.sqrt(5.0) * distance / phi
        return t**2 * (1.0 + t) / 3.0 * np.exp(-t)


BUILT_IN = [cls() for cls in KERNELS.values()] + [PowerExponential(1.2), PowerExponential(2.0)]
EVERY = [*BUILT_IN, Spherical(), SlowMatern52()]
each_kernel = pytest.mark.parametrize("kernel", EVERY, ids=repr)
each_built_in = pytest.mark.parametrize("kernel", BUILT_IN, ids=repr)


@pytest.fixture
def points() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    return rng.random((7, 3)), rng.random((5, 3)), np.exp(rng.normal(size=(4, 3)))


@each_kernel
def test_correlation_is_a_correlation(kernel: Kernel, points) -> None:
    X, X2, phi = points
    K = kernel.correlation(X, X, phi)
    assert K.shape == (4, 7, 7)
    np.testing.assert_array_equal(K, K.swapaxes(1, 2))
    np.testing.assert_array_equal(np.diagonal(K, axis1=1, axis2=2), 1.0)
    assert (np.linalg.eigvalsh(K) > -1e-12).all()
    assert kernel.correlation(X, X2, phi).shape == (4, 7, 5)
    nearer = kernel.correlation(X, X2, 1.5 * phi)
    assert (nearer >= kernel.correlation(X, X2, phi)).all()


@each_kernel
def test_batch_rows_are_single_calls(kernel: Kernel, points) -> None:
    X, X2, phi = points
    both = kernel.correlation_and_derivatives(X, X2, phi)
    np.testing.assert_array_equal(both[0], kernel.correlation(X, X2, phi))
    for method in (
        kernel.correlation,
        kernel.correlation_minus_one,
        lambda *args: kernel.correlation_and_derivatives(*args)[1],
    ):
        batch = method(X, X2, phi)
        single = np.concatenate([method(X, X2, row[None]) for row in phi])
        np.testing.assert_array_equal(batch, single)


def test_a_radial_kernel_is_the_factor_of_one_distance(points) -> None:
    X, X2, phi = points
    for kernel in (cls() for cls in KERNELS.values() if not cls.separable):
        s = (X[:, None] - X2) / phi[:, None, None]
        expected = kernel.factor(np.sqrt((s**2).sum(axis=-1)), np.array(1.0))
        np.testing.assert_allclose(kernel.correlation(X, X2, phi), expected, rtol=1e-13)
        np.testing.assert_allclose(
            kernel.correlation_minus_one(X, X2, phi), expected - 1.0, rtol=0.0, atol=1e-14
        )


@pytest.mark.parametrize("kernel", [k for k in EVERY if k.separable], ids=repr)
def test_correlation_is_the_product_of_factors(kernel: Kernel, points) -> None:
    X, X2, phi = points
    product = np.ones((4, 7, 5))
    for i in range(3):
        distance = np.abs(X[:, i, None] - X2[:, i])
        product *= kernel.factor(distance, phi[:, i, None, None])
    np.testing.assert_allclose(kernel.correlation(X, X2, phi), product, rtol=1e-13)
    np.testing.assert_allclose(
        kernel.correlation_minus_one(X, X2, phi), product - 1.0, rtol=0.0, atol=1e-14
    )


@each_kernel
def test_derivatives_equal_finite_differences(kernel: Kernel, points) -> None:
    X, X2, phi = points
    step = 1e-5
    derivatives = kernel.correlation_and_derivatives(X, X2, phi)[1]
    assert derivatives.shape == (4, 3, 7, 5)
    for i in range(3):
        up, down = phi.copy(), phi.copy()
        up[:, i] *= np.exp(step)
        down[:, i] *= np.exp(-step)
        difference = kernel.correlation(X, X2, up) - kernel.correlation(X, X2, down)
        np.testing.assert_allclose(derivatives[:, i], difference / (2.0 * step), atol=1e-9)


@each_built_in
def test_value_and_derivative_equal_mpmath(kernel: Kernel) -> None:
    power = getattr(kernel, "power", None)
    x, w, log_phi = [0.1, 0.75], [0.62, 0.7], [-1.3, 0.4]
    arrays = np.array([x]), np.array([w]), np.exp([log_phi])
    with mp.workdps(40):
        exact = [[mp.mpf(v) for v in values] for values in (x, w, log_phi)]
        value = float(oracle.correlation(kernel.name, power, *exact))
        slopes = [float(oracle.derivative(kernel.name, power, *exact, i)) for i in range(2)]
    np.testing.assert_allclose(kernel.correlation(*arrays)[0, 0, 0], value, rtol=1e-14)
    np.testing.assert_allclose(
        kernel.correlation_and_derivatives(*arrays)[1][0, :, 0, 0], slopes, rtol=1e-14
    )


@each_built_in
def test_minus_one_keeps_digits_for_long_ranges(kernel: Kernel) -> None:
    x, w, log_phi = [0.2], [0.9], [16.0]
    with mp.workdps(60):
        exact = [[mp.mpf(v) for v in values] for values in (x, w, log_phi)]
        expected = oracle.correlation(kernel.name, getattr(kernel, "power", None), *exact) - 1
    actual = kernel.correlation_minus_one(np.array([x]), np.array([w]), np.exp([log_phi]))[0, 0, 0]
    # A Matern factor's own 1 + t against exp(t) still costs digits: t^2 is left of t.
    tolerance = 1e-7 if isinstance(kernel, Matern) else 1e-13
    assert abs(actual / float(expected) - 1.0) < tolerance


@each_built_in
def test_extreme_ranges_give_zero_not_nan(kernel: Kernel) -> None:
    X = np.array([[0.0], [1.0]])
    for log_phi in (-740.0, -400.0, -20.0):
        phi = np.exp([[log_phi]])
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(kernel.correlation(X, X, phi)[0], np.eye(2))
            derivatives = kernel.correlation_and_derivatives(X, X, phi)[1]
            np.testing.assert_array_equal(derivatives[0, 0], np.zeros((2, 2)))


@each_kernel
def test_length_scale_is_inverted(kernel: Kernel) -> None:
    phi = np.array([0.01, 1.0, 50.0])
    np.testing.assert_allclose(kernel.from_length_scale(kernel.length_scale(phi)), phi, rtol=1e-14)


def test_length_scale_has_the_units_of_the_input() -> None:
    rng = np.random.default_rng(2)
    X = rng.random((6, 2))
    for kernel in BUILT_IN:
        lengths = np.array([[0.3, 0.8]])
        K = kernel.correlation(X, X, kernel.from_length_scale(lengths))
        scaled = kernel.correlation(
            100.0 * X, 100.0 * X, kernel.from_length_scale(100.0 * lengths)
        )
        np.testing.assert_allclose(K, scaled, rtol=1e-12)
    assert SquaredExponential().length_scale(np.array([9.0]))[0] == 3.0
    assert Matern52().length_scale(np.array([9.0]))[0] == 9.0


def test_power_two_is_the_squared_exponential(points) -> None:
    X, X2, phi = points
    np.testing.assert_allclose(
        PowerExponential(2.0).correlation(X, X2, np.sqrt(2.0 * phi)),
        SquaredExponential().correlation(X, X2, phi),
        rtol=1e-13,
    )


def test_users_kernel_runs_through_the_twin() -> None:
    rng = np.random.default_rng(3)
    X = rng.random((12, 2))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2
    u = np.column_stack([rng.normal(size=(20, 2)), rng.uniform(-10.0, 0.0, 20)])
    np.testing.assert_allclose(
        Posterior(X, y, SlowMatern52())(u), Posterior(X, y, "matern52")(u), rtol=1e-9
    )
    assert np.isfinite(Posterior(X, y, Spherical())(u)).all()


@pytest.mark.parametrize(
    "formula",
    [
        "factor",
        "factor_derivative",
        "correlation",
        "correlation_minus_one",
        "correlation_and_derivatives",
    ],
)
def test_a_subclass_with_a_formula_of_its_own_is_not_compiled(formula: str) -> None:
    changed = type("Changed", (SquaredExponential,), {formula: lambda self, *arguments: None})

    class Rescaled(SquaredExponential):
        scale = 1.0

    assert all(has_form(cls()) for cls in KERNELS.values())
    assert has_form(Rescaled())
    assert not has_form(changed())
    assert not has_form(SlowMatern52())


def test_polynomials_of_the_matern_family() -> None:
    coefficients = {
        1: [1, 1],
        2: [1, 1, 1 / 3],
        3: [1, 1, 2 / 5, 1 / 15],
        4: [1, 1, 3 / 7, 2 / 21, 1 / 105],
    }
    for order, expected in coefficients.items():
        kernel = type("Some", (Matern,), {"order": order})()
        np.testing.assert_array_equal(kernel.form.polynomial, expected)
        assert kernel.scale**2 == pytest.approx(2 * order + 1)


def test_a_users_numbers_run_compiled_as_through_numpy() -> None:
    class Damped(ExponentialKernel):
        """The polynomial's slope does not vanish at 0, and phi is a cubed length."""

        scale, phi_power, power = 0.7, 3.0, 0.5
        polynomial = (1, 0.5, 0.25)

    rng = np.random.default_rng(3)
    X = rng.random((12, 2))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2
    phi, delta = np.exp(rng.normal(size=(9, 2))), np.full(9, 1e-3)
    H = np.ones((12, 1))
    for kernel in (Damped(), type("Matern112", (Matern,), {"order": 5})()):
        assert has_form(kernel)
        arguments = X, H, y, kernel, phi, delta, 2
        np.testing.assert_allclose(
            _compiled.core_terms(*arguments), _twin.core_terms(*arguments), rtol=1e-9
        )
        for i in range(2):
            step = np.where(np.arange(2) == i, 1e-5, 0.0)
            above, below = (kernel.correlation(X, X, phi * np.exp(s)) for s in (step, -step))
            derivative = kernel.correlation_and_derivatives(X, X, phi)[1][:, i]
            np.testing.assert_allclose(derivative, (above - below) / 2e-5, atol=1e-9)


def test_names_and_errors() -> None:
    names = ["matern32", "matern52", "matern72", "power_exponential", "squared_exponential"]
    assert set(names) <= set(KERNELS)
    for name in names:
        assert as_kernel(name).name == name
    kernel = PowerExponential(1.5)
    assert as_kernel(kernel) is kernel
    with pytest.raises(ValueError, match=r"matern32.*got 'rbf'"):
        as_kernel("rbf")
    with pytest.raises(ValueError, match=r"\(0, 2\].*2\.1"):
        PowerExponential(2.1)


@pytest.mark.parametrize("kernel", BUILT_IN, ids=repr)
def test_far_points_with_many_inputs_are_uncorrelated(kernel: Kernel) -> None:
    # The product of the polynomials overflows where the exponential is 0.
    X, phi = np.array([[0.0] * 80, [1.0] * 80]), np.full((1, 80), 1e-4)
    correlation, derivatives = kernel.correlation_and_derivatives(X, X, phi)
    np.testing.assert_array_equal(correlation[0], np.eye(2))
    np.testing.assert_array_equal(derivatives, 0.0)
