"""The quadrature behind the stored posterior truths, and the stored truths themselves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import gumbel_r, logistic, norm
from tests import gp_truth

from paims import datasets

CASES = [(design, prior) for design in gp_truth.LOADERS for prior in gp_truth.NUGGET_PRIORS]


def _log_density(u):
    """A density with the posteriors' tails: a sheared product of Gumbel and logistic ones."""
    first, second, third = u.T
    return (
        2.5
        + gumbel_r.logpdf(first, -2.0, 0.8)
        + logistic.logpdf(second - 0.5 * first, -1.0, 0.9)
        + logistic.logpdf(third, -5.0, 2.0)
    )


def test_quadrature_finds_a_known_integral():
    events = [(0, -1.0), (2, -1.7), (2, 3.0)]
    best, grid, shifted = gp_truth.integrate(
        _log_density,
        events,
        lower=np.array([-8.0, -40.0, -75.0]),
        upper=np.array([26.0, 40.0, 65.0]),
        depth=26.0,
    )
    mean = [gumbel_r.mean(-2.0, 0.8), 0.0, -5.0]
    mean[1] = -1.0 + 0.5 * mean[0]
    sd_first, sd_second = gumbel_r.std(-2.0, 0.8), logistic.std(-1.0, 0.9)
    sd = [sd_first, np.hypot(sd_second, 0.5 * sd_first), logistic.std(-5.0, 2.0)]
    masses = [
        gumbel_r.sf(-1.0, -2.0, 0.8),
        logistic.sf(-1.7, -5.0, 2.0),
        logistic.sf(3.0, -5.0, 2.0),
    ]
    exact = gp_truth.Truth(0.25, 0, 0, 2.5, list(mean), list(sd), masses)
    assert gp_truth.largest_difference(best, exact) < 1e-6
    assert gp_truth.largest_difference(grid, shifted, tails=False) < 1e-6
    # The refinement left most of the box out.
    assert best.n_points < 0.2 * 2 * 4**3 * 34 * 80 * 140


@pytest.mark.parametrize("threshold", [-2.0, -0.3, 0.0, 0.77, 2.1])
def test_upper_mass_needs_no_grid_point_at_the_threshold(threshold):
    step = 0.4
    x = np.arange(-9.0, 9.0, step)
    found = gp_truth.upper_mass(x, norm.pdf(x), step, threshold)
    assert found == pytest.approx(norm.sf(threshold), abs=1e-10)


def test_refinement_keeps_a_far_small_mode():
    def log_density(u):
        bump = -0.5 * np.sum(u**2, axis=1)
        far = -0.5 * np.sum((u - 14.0) ** 2, axis=1) + np.log(1e-6)
        return np.logaddexp(bump, far)

    best = gp_truth.integrate(
        log_density, [(0, 7.0)], lower=np.full(2, -9.0), upper=np.full(2, 23.0), depth=28.0
    )[0]
    exact = (norm.sf(7.0) + 1e-6 * norm.sf(-7.0)) / (1 + 1e-6)
    assert best.masses[0] == pytest.approx(exact, rel=1e-6)
    assert best.log_evidence == pytest.approx(np.log(2 * np.pi * (1 + 1e-6)), abs=1e-9)


@pytest.mark.parametrize(("design", "nugget_prior"), CASES)
def test_stored_truth_has_converged(design, nugget_prior):
    truth, convergence = gp_truth.stored(design, nugget_prior)
    assert all(0.02 <= mass <= 0.3 for mass in truth.masses)
    assert convergence["grid_to_companion"] < 1e-6
    assert convergence["tails_from_grid_alone"] < 1e-4
    assert convergence["box_wider_at_doubled_step"] < 1e-7
    assert convergence["depth_34_at_doubled_step"] < 1e-7
    entry = next(
        item
        for item in json.loads(gp_truth.PATH.read_text())["cases"]
        if (item["design"], item["nugget_prior"]) == (design, nugget_prior)
    )
    events = [(gp_truth.PARAMETERS.index(t["parameter"]), t["above"]) for t in entry["tails"]]
    assert tuple(events) == gp_truth.EVENTS[design]


def test_unknown_truth_is_named():
    with pytest.raises(ValueError, match="no posterior of 'ishigami'"):
        gp_truth.stored("ishigami", "beta")


def test_stored_truth_is_that_of_the_posterior(shared_dir, monkeypatch):
    # A quick version of one case: small box, one halving; its error is the stored one.
    monkeypatch.setenv(datasets.DATA_DIR_VARIABLE, str(shared_dir / "data"))
    truth, convergence = gp_truth.stored("two_d_model", "uniform")
    found = gp_truth.integrate(
        gp_truth.posterior("two_d_model", "uniform"),
        gp_truth.EVENTS["two_d_model"],
        lower=np.array([-10.0, -10.0, -24.0]),
        upper=np.array([18.0, 24.0, 18.0]),
        n_halvings=1,
        depth=16.0,
    )[0]
    # Cutting at e^-16 and at the smaller box costs some 1e-5.
    assert gp_truth.largest_difference(found, truth) < convergence["step_doubled"] + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("design", "nugget_prior"), CASES)
def test_stored_truth_can_be_recomputed(design, nugget_prior, shared_dir, monkeypatch):
    monkeypatch.setenv(datasets.DATA_DIR_VARIABLE, str(shared_dir / "data"))
    truth, _ = gp_truth.stored(design, nugget_prior)
    # Another lattice than the stored one.
    found = gp_truth.integrate(
        gp_truth.posterior(design, nugget_prior),
        gp_truth.EVENTS[design],
        lower=gp_truth.LOWER + 0.1,
        upper=gp_truth.UPPER + 0.1,
        depth=20.0,
    )[0]
    assert gp_truth.largest_difference(found, truth) < 3e-5
