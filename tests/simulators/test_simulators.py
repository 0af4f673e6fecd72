"""The simulators against published formulas in exact arithmetic, known truths and the data."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.optimize import minimize

from paims import simulators

ALL = simulators.names()


def _exact_borehole(*x):
    rw, r, Tu, Hu, Tl, Hl, L, Kw = x
    # Resistances in series: radial flow in the aquifers and axial flow along the borehole.
    ln = mp.log(r / rw)
    upper = ln / (2 * mp.pi * Tu)
    lower = ln / (2 * mp.pi * Tl)
    pipe = L / (mp.pi * rw**2 * Kw)
    return (Hu - Hl) / (upper + lower + pipe)


def _exact_otl(*x):
    Rb1, Rb2, Rf, Rc1, Rc2, beta = x
    vb1 = 12 * Rb2 / (Rb1 + Rb2)
    g = beta * (Rc2 + 9)
    return (
        (vb1 + mpf("0.74")) * g / (g + Rf)
        + mpf("11.35") * Rf / (g + Rf)
        + mpf("0.74") * Rf * g / ((g + Rf) * Rc1)
    )


def _exact_piston(*x):
    M, S, V0, k, P0, Ta, T0 = x
    # V is the positive root of k V^2/S^2 + A V/S = P0 V0 Ta/T0, in its cancellation-free form.
    A = P0 * S + mpf("19.62") * M - k * V0 / S
    gas = P0 * V0 * Ta / T0
    V = 2 * S * gas / (A + mp.sqrt(A**2 + 4 * k * gas))
    return 2 * mp.pi * mp.sqrt(M / (k + S**2 * gas / V**2))


def _exact_wing(*x):
    Sw, Wfw, A, Lam, q, taper, tc, Nz, Wdg, Wp = x
    c = mp.cos(Lam * mp.pi / 180)
    log = (
        mp.log(mpf("0.036"))
        + mpf("0.758") * mp.log(Sw)
        + mpf("0.0035") * mp.log(Wfw)
        + mpf("0.6") * (mp.log(A) - 2 * mp.log(c))
        + mpf("0.006") * mp.log(q)
        + mpf("0.04") * mp.log(taper)
        - mpf("0.3") * mp.log(100 * tc / c)
        + mpf("0.49") * mp.log(Nz * Wdg)
    )
    return mp.exp(log) + Sw * Wp


def _exact_robot(*x):
    end, angle = mpmath.mpc(0), mpf(0)
    for theta, length in zip(x[:4], x[4:], strict=True):
        angle += theta
        end += length * mp.expj(angle)
    return abs(end)


def _exact_branin(x1, x2):
    return (
        (x2 - mpf("5.1") / (4 * mp.pi**2) * x1**2 + 5 / mp.pi * x1 - 6) ** 2
        + 10 * (1 - 1 / (8 * mp.pi)) * mp.cos(x1)
        + 10
    )


def _exact_two_d(x1, x2, power):
    top = 2300 * x1**3 + 1900 * x1**2 + 2092 * x1 + 60
    return (1 - mp.exp(-1 / (2 * x2))) * top / (100 * x1**power + 500 * x1**2 + 4 * x1 + 20)


EXACT: dict[str, Callable[..., mpf]] = {
    "branin": lambda x1, x2: _exact_branin(15 * x1 - 5, 15 * x2) + 5 * x1,
    "branin_printed": lambda x1, x2: _exact_branin(15 * x1 - 5, 15 * x2) + 5 * (15 * x1 - 5),
    "branin_standard": _exact_branin,
    "two_d_model": lambda x1, x2: _exact_two_d(x1, x2, 2),
    "two_d_model_cited": lambda x1, x2: _exact_two_d(x1, x2, 3),
    "wave": lambda x: 5 + x + mp.cos(x) + mp.sin(3 * x) / 2,
    "borehole": _exact_borehole,
    "otl_circuit": _exact_otl,
    "piston": _exact_piston,
    "friedman": lambda a, b, c, d, e: (
        10 * mp.sin(mp.pi * a * b) + 20 * (c - mpf(1) / 2) ** 2 + 10 * d + 5 * e
    ),
    "wing_weight": _exact_wing,
    "ishigami": lambda a, b, c: mp.sin(a) + 7 * mp.sin(b) ** 2 + c**4 * mp.sin(a) / 10,
    "robot_arm": _exact_robot,
}


def test_every_simulator_has_an_exact_twin():
    assert set(EXACT) == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_value_equals_published_formula_in_40_digits(name):
    simulator = simulators.get(name)
    X = simulator.design(12, random_state=7)
    with mpmath.workdps(40):
        exact = np.array([float(EXACT[name](*(mpf(float(v)) for v in row))) for row in X])
    scale = np.maximum(np.abs(exact), 0.1 * np.std(exact))
    assert np.max(np.abs(simulator(X) - exact) / scale) < 1e-12


def test_branin_standard_has_its_three_minima():
    minima = np.array([[-np.pi, 12.275], [np.pi, 2.275], [3 * np.pi, 2.475]])
    for start in minima:
        found = minimize(
            lambda x: simulators.branin_standard(x[None])[0],
            start + 0.2,
            method="Nelder-Mead",
            options={"xatol": 1e-9, "fatol": 1e-13},
        )
        np.testing.assert_allclose(found.x, start, atol=2e-4)
        # At the minima the square vanishes and cos x1 is -1, up to the rounded 12.275 etc.
        assert found.fun == pytest.approx(10 / (8 * np.pi), abs=1e-7)


def test_modified_branin_differs_from_the_standard_one_by_its_term_alone():
    X = simulators.branin.design(50, random_state=1)
    standard = simulators.branin_standard(X * 15 - [5, 0])
    np.testing.assert_allclose(simulators.branin(X) - standard, 5 * X[:, 0], atol=1e-11)
    np.testing.assert_allclose(
        simulators.branin_printed(X) - standard, 5 * (15 * X[:, 0] - 5), atol=1e-11
    )


def test_ishigami_variance_and_sobol_indices():
    # The published closed form, by tensor Gauss-Legendre quadrature of the simulator.
    a, b, pi = 7.0, 0.1, np.pi
    variance = a**2 / 8 + b * pi**4 / 5 + b**2 * pi**8 / 18 + 0.5
    first = np.array([0.5 * (1 + b * pi**4 / 5) ** 2, a**2 / 8, 0.0]) / variance
    total = first + np.array([1, 0, 1]) * (8 * b**2 * pi**8 / 225) / variance

    nodes, weights = np.polynomial.legendre.leggauss(40)
    weights = weights / 2
    grid = np.stack(np.meshgrid(*[nodes * pi] * 3, indexing="ij"), axis=-1)
    y = simulators.ishigami(grid.reshape(-1, 3)).reshape(40, 40, 40)

    def average(values, axes):
        for axis in sorted(axes, reverse=True):
            values = np.tensordot(values, weights, axes=(axis, 0))
        return values

    mean = average(y, (0, 1, 2))
    spread = average(y**2, (0, 1, 2)) - mean**2
    assert mean == pytest.approx(3.5, abs=1e-10)
    assert spread == pytest.approx(variance, rel=1e-10)
    assert variance == pytest.approx(13.844588, abs=1e-6)
    for i in range(3):
        others = tuple(j for j in range(3) if j != i)
        main = average(y, others)
        s_first = (np.dot(weights, main**2) - mean**2) / spread
        rest = average(y, (i,))
        s_total = 1 - (average(rest**2, (0, 1)) - mean**2) / spread
        assert s_first == pytest.approx(first[i], abs=1e-10)
        assert s_total == pytest.approx(total[i], abs=1e-10)


def test_robot_arm_ignores_its_first_angle_and_reaches_its_full_length():
    arm = simulators.robot_arm
    X = arm.design(20, random_state=3)
    turned = X.copy()
    turned[:, 0] += 1.0
    np.testing.assert_allclose(arm(turned), arm(X), atol=1e-13)
    straight = X.copy()
    straight[:, 1:4] = 0.0
    np.testing.assert_allclose(arm(straight), X[:, 4:].sum(axis=1), rtol=1e-13)


def test_two_d_model_is_continuous_at_the_edge_of_its_domain():
    edge = simulators.two_d_model([[0.3, 0.0], [0.3, -0.0], [0.3, 1e-3]])
    assert edge[0] == edge[1] == pytest.approx(edge[2], rel=1e-12)


@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        ("branin_sample.mat", "branin", "branin_printed"),
        ("bastos_sample.mat", "two_d_model", "two_d_model_cited"),
    ],
)
def test_published_designs_tell_the_variants_apart(shared_dir, file, right, wrong):
    from scipy.io import loadmat

    content = loadmat(shared_dir / "data" / file)
    X, y = content["X"], content["y"].ravel()

    def misfit(name):
        return np.max(np.abs(simulators.get(name)(X) / y - 1))

    assert misfit(right) < 1e-12
    assert misfit(wrong) > 0.05


@pytest.mark.parametrize("name", ALL)
def test_metadata_are_complete(name):
    simulator = simulators.get(name)
    lower, upper = simulator.domain
    assert simulator.name == name
    assert simulator.n_inputs == len(simulator.inputs) == lower.size == upper.size
    assert np.all(lower < upper)
    assert len(set(simulator.input_names)) == simulator.n_inputs
    assert simulator.output.name
    assert any(character.isdigit() for character in simulator.reference)
    assert simulator.description


@pytest.mark.parametrize("name", ALL)
def test_survives_pickling(name):
    simulator = simulators.get(name)
    copy = pickle.loads(pickle.dumps(simulator))
    X = simulator.design(5, random_state=0)
    np.testing.assert_array_equal(copy(X), simulator(X))


@pytest.mark.parametrize("name", ALL)
def test_corners_of_the_domain_are_finite(name):
    simulator = simulators.get(name)
    lower, upper = simulator.domain
    bits = np.array(np.meshgrid(*[[0, 1]] * simulator.n_inputs)).reshape(simulator.n_inputs, -1).T
    assert np.all(np.isfinite(simulator(lower + bits * (upper - lower))))
