"""Designs, the registry, and what bad input gets."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from paims import simulators
from paims.simulators import Input, Output, Simulator


def _strata(X, simulator):
    lower, upper = simulator.domain
    return np.sort(np.floor((X - lower) / (upper - lower) * len(X)).astype(int), axis=0)


def test_design_is_a_latin_hypercube_in_the_domain():
    simulator = simulators.piston
    X = simulator.design(30, random_state=5)
    assert X.shape == (30, 7)
    np.testing.assert_array_equal(_strata(X, simulator), np.arange(30)[:, None].repeat(7, 1))


def test_design_depends_on_the_seed_alone():
    design = simulators.borehole.design
    np.testing.assert_array_equal(design(9, 1), design(9, 1))
    np.testing.assert_array_equal(design(9, 1), design(9, np.random.default_rng(1)))
    assert np.any(design(9, 1) != design(9, 2))
    rng = np.random.default_rng(1)
    assert np.any(design(9, rng) != design(9, rng))


def test_design_without_a_seed_leaves_the_global_generator_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    simulators.wave.design(4)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_design_of_strength_two_fills_pairs_of_inputs():
    X = simulators.ishigami.design(25, random_state=0, strength=2)
    lower, upper = simulators.ishigami.domain
    cells = np.floor((X - lower) / (upper - lower) * 5).astype(int)
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        assert len({(a, b) for a, b in cells[:, [i, j]]}) == 25


@pytest.mark.parametrize("n", [0, -3, 2.5, "ten", True])
def test_design_rejects_a_bad_number_of_runs(n):
    with pytest.raises(ValueError, match=r"positive integer; got"):
        simulators.wave.design(n)


def test_numpy_integer_is_a_number_of_runs():
    assert simulators.wave.design(np.int64(3)).shape == (3, 1)


@pytest.mark.parametrize(
    "X", [np.zeros(8), np.zeros((3, 7)), np.zeros((3, 9)), 1.0, np.zeros((2, 8, 1))]
)
def test_wrong_shape_names_the_columns(X):
    with pytest.raises(ValueError, match=r"borehole .*\(n_runs, 8\).*rw, r, Tu.*got shape"):
        simulators.borehole(X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_non_finite_input_names_the_place(value):
    X = simulators.borehole.design(4, random_state=0)
    X[2, 3] = value
    with pytest.raises(ValueError, match=rf"got {value} for Hu in row 2"):
        simulators.borehole(X)


def test_text_is_not_a_number():
    with pytest.raises(ValueError, match=r"all of them numbers; got list"):
        simulators.wave([["a"]])


def test_no_finite_output_is_an_error_that_names_the_row():
    X = simulators.borehole.design(3, random_state=0)
    X[1, 0] = -0.1
    with pytest.raises(ValueError, match=r"1 of 3 rows, the first being row 1.*box from"):
        simulators.borehole(X)


def test_outside_the_domain_is_computed_where_the_formula_allows():
    assert simulators.wave([[8.0]])[0] == pytest.approx(13 + np.cos(8) + 0.5 * np.sin(24))


def test_takes_data_frames_and_empty_batches():
    pandas = pytest.importorskip("pandas")
    X = simulators.friedman.design(6, random_state=0)
    frame = pandas.DataFrame(X, columns=simulators.friedman.input_names)
    np.testing.assert_array_equal(simulators.friedman(frame), simulators.friedman(X))
    assert simulators.friedman(np.zeros((0, 5))).shape == (0,)


def test_integers_are_computed_as_numbers():
    assert simulators.friedman([[1, 1, 1, 1, 1]])[0] == pytest.approx(20.0)


def test_registry():
    assert simulators.get("borehole") is simulators.borehole
    assert simulators.get("OTL-Circuit") is simulators.otl_circuit
    assert simulators.names()[0] == "branin"
    assert set(simulators.names()) <= set(simulators.__all__)
    with pytest.raises(ValueError, match=r"no simulator 'bore'; use one of branin, "):
        simulators.get("bore")
    with pytest.raises(ValueError, match="no simulator 3"):
        simulators.get(3)


def test_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        simulators.wave.name = "other"
    lower, _ = simulators.wave.domain
    lower[0] = 99.0
    assert simulators.wave.domain[0][0] == -5.0


def test_a_range_must_be_finite_and_ordered():
    with pytest.raises(ValueError, match=r"'a' must have lower < upper; got 1.0..1.0"):
        Input("a", 1.0, 1.0)
    with pytest.raises(ValueError, match="'a' must be finite"):
        Input("a", 0.0, np.inf)


def test_users_can_define_their_own():
    double = Simulator("double", (Input("x", 0.0, 1.0),), Output("y"), "none", lambda c: 2 * c[0])
    np.testing.assert_array_equal(double([[1.0], [2.0]]), [2.0, 4.0])
