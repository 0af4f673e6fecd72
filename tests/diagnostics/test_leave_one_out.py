"""Leave-one-out of the mixture against refits, and Pareto smoothing against ArviZ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from paims import diagnostics
from paims.diagnostics._leave_one_out import smoothed_log_weights
from paims.gp import Posterior, Predictive


def runs(n: int = 11) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.random((n, 1))
    return X, np.sin(7.0 * X[:, 0]) + 0.1 * rng.normal(size=n)


def grid() -> np.ndarray:
    """A grid in (log phi, z) that covers the posterior."""
    log_phi, z = np.meshgrid(np.linspace(-5.0, 2.0, 25), np.linspace(-12.0, 2.0, 25))
    return np.column_stack([log_phi.ravel(), z.ravel()])


def posterior(X: np.ndarray, y: np.ndarray) -> Posterior:
    # A prior that does not depend on the design, so that a refit has the same one.
    return Posterior(X, y, mean="constant", prior="log_normal")


def normalised(log_weight: np.ndarray) -> np.ndarray:
    return np.exp(log_weight - logsumexp(log_weight))


def test_equals_refits_without_each_run() -> None:
    X, y = runs()
    u = grid()
    full = posterior(X, y)
    result = diagnostics.leave_one_out(
        y, full.leave_one_out(u), normalised(full(u)), smooth_above=np.inf
    )
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        refit = posterior(X[others], y[others])
        w = normalised(refit(u))
        prediction = refit.predict(u, X[i : i + 1])
        location, scale = prediction.mean[:, 0], np.sqrt(prediction.scale2[:, 0])
        t = stats.t(prediction.dof)
        mean = w @ location
        variance = w @ (prediction.variance[:, 0] + (location - mean) ** 2)
        assert result.mean[i] == pytest.approx(mean, rel=1e-6, abs=1e-9)
        assert result.std[i] == pytest.approx(np.sqrt(variance), rel=1e-6)
        assert result.pit[i] == pytest.approx(w @ t.cdf((y[i] - location) / scale), rel=1e-6)
        density = w @ (t.pdf((y[i] - location) / scale) / scale)
        assert result.log_density[i] == pytest.approx(np.log(density), rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(result.standardised, (y - result.mean) / result.std)
    assert result.elpd == pytest.approx(result.log_density.sum())
    assert result.summary.nlpd == pytest.approx(-result.elpd / len(y))
    np.testing.assert_allclose(result.scores, stats.norm.ppf(result.pit), rtol=1e-9)


def test_posterior_weights_alone_would_be_wrong() -> None:
    """Negative control: keeping the draws' weights does not predict as a refit does."""
    X, y = runs()
    u = grid()
    full = posterior(X, y)
    w = normalised(full(u))
    loo = full.leave_one_out(u)
    result = diagnostics.leave_one_out(y, loo, w, smooth_above=np.inf)
    assert np.abs(w @ loo.mean - result.mean).max() > 1e-3


def test_draws_without_weight_do_not_count() -> None:
    X, y = runs()
    u = grid()[::7]
    full = posterior(X, y)
    w = normalised(full(u))
    w[w < 1e-3] = 0.0
    loo = full.leave_one_out(u)
    kept = w > 0.0
    whole = diagnostics.leave_one_out(y, loo, w)
    part = diagnostics.leave_one_out(
        y, Predictive(loo.mean[kept], loo.scale2[kept], loo.dof), w[kept]
    )
    np.testing.assert_allclose(whole.mean, part.mean, rtol=1e-12)
    np.testing.assert_allclose(whole.pareto_k, part.pareto_k)


def test_a_failed_draw_is_an_error_unless_it_has_no_weight() -> None:
    loo = Predictive(np.zeros((3, 4)), np.ones((3, 4)), 5)
    loo.mean[1] = np.nan
    y = np.array([0.1, -0.2, 0.3, 0.0])
    with pytest.raises(ValueError, match="the first is draw 1"):
        diagnostics.leave_one_out(y, loo)
    assert np.isfinite(diagnostics.leave_one_out(y, loo, [0.5, 0.0, 0.5]).mean).all()


def test_a_run_that_the_trend_needs_is_left_open() -> None:
    loo = Predictive(np.zeros((3, 4)), np.ones((3, 4)), 5)
    loo.mean[:, 2] = np.nan
    loo.scale2[:, 2] = np.nan
    result = diagnostics.leave_one_out([0.1, -0.2, 0.3, 0.0], loo)
    assert list(result.indispensable) == [2]
    assert result.summary.n == 3
    for name in ("mean", "std", "pit", "log_density", "pareto_k", "effective_size"):
        np.testing.assert_array_equal(np.isnan(getattr(result, name)), [False, False, True, False])
    assert "not determined without run(s) 2" in result.verdict
    loo.mean[:] = np.nan
    with pytest.raises(ValueError, match="No run could be left out"):
        diagnostics.leave_one_out(np.zeros(4), loo)


def test_influential_runs_are_named() -> None:
    rng = np.random.default_rng(3)
    location = np.zeros((400, 20))
    # Draws that predict the first run well or not at all: its weights have a heavy tail.
    location[:, 0] = 0.7 * rng.normal(size=400)
    y = 0.5 * rng.normal(size=20)
    result = diagnostics.leave_one_out(y, Predictive(location, np.full((400, 20), 0.3), 400))
    assert 0.7 < result.pareto_k[0] < 3.0
    assert list(result.unreliable) == [0]
    assert "run(s) 0" in result.verdict
    assert result.effective_size[0] < 0.2 * result.effective_size[1]
    assert result.effective_size[1] == pytest.approx(400.0)


def test_a_tenth_of_the_runs_may_be_unreliable() -> None:
    X, y = runs(20)
    u = grid()
    full = posterior(X, y)
    result = diagnostics.leave_one_out(y, full.leave_one_out(u), normalised(full(u)))
    fine = replace(result, pareto_k=np.zeros(20))
    assert fine.passed
    assert fine.checks == {
        "single errors": (True, fine.residuals.verdict), "coverage": (True, fine.coverage.verdict)
    }  # fmt: skip
    for count, passed in ((2, True), (3, False)):
        k = np.where(np.arange(20) < count, 0.9, 0.1)
        assert replace(result, pareto_k=k).passed is passed


def test_a_single_draw_has_no_weights_to_change() -> None:
    X, y = runs()
    full = posterior(X, y)
    u = np.array([[-2.0, -6.0]])
    loo = full.leave_one_out(u)
    result = diagnostics.leave_one_out(y, loo)
    np.testing.assert_allclose(result.mean, loo.mean[0])
    assert np.isnan(result.pareto_k).all()
    assert not result.unreliable.size
    assert "those of all runs" in result.verdict


def test_few_draws_cannot_be_judged() -> None:
    X, y = runs()
    full = posterior(X, y)
    u = grid()[::60]
    result = diagnostics.leave_one_out(y, full.leave_one_out(u))
    assert result.n_draws == len(u) < 20
    assert np.isinf(result.pareto_k).all()
    assert f"{len(u)} draws are too few" in result.verdict
    assert not result.passed


def test_weights_are_kept_where_their_tail_is_light() -> None:
    log_weight = 0.3 * np.random.default_rng(1).normal(size=500)
    result, k = smoothed_log_weights(log_weight)
    assert k < 0.5
    np.testing.assert_allclose(np.exp(result), normalised(log_weight), rtol=1e-12)


@pytest.mark.parametrize("shape", [0.7, 1.0, 1.5])
def test_smoothing_agrees_with_arviz(shape: float) -> None:
    arviz = pytest.importorskip("arviz_stats.base", reason="ArviZ is an extra")
    # The tail of 3 sqrt(2500) points is a whole number: we round it up, ArviZ down.
    log_weight = np.log(stats.genpareto(shape).rvs(2500, random_state=2) + 1.0)
    ours, k = smoothed_log_weights(log_weight, 0.0)
    # ArviZ takes log likelihoods, whose inverses are the weights.
    theirs, their_k = arviz.array_stats.psislw(-log_weight)
    assert k == pytest.approx(float(their_k), rel=1e-6)
    assert logsumexp(ours) == pytest.approx(0.0, abs=1e-12)
    # The scale of the fitted tail is estimated in another way: a few per cent.
    largest = np.argsort(log_weight)[-50:]
    np.testing.assert_allclose(ours[largest], theirs[largest], atol=0.08)
    # And the largest weight is tamed at all: without smoothing it differs by more.
    assert np.abs(np.log(normalised(log_weight))[largest] - theirs[largest]).max() > 0.08


def test_smoothing_keeps_order_and_the_largest() -> None:
    log_weight = np.log(stats.genpareto(1.2).rvs(1000, random_state=4) + 1.0)
    log_weight[:3] = -np.inf
    result, _ = smoothed_log_weights(log_weight)
    assert np.isneginf(result[:3]).all()
    order = np.argsort(log_weight)
    assert (np.diff(result[order][3:]) >= 0.0).all()
    body = order[3:500]
    difference = result[body] - log_weight[body]
    np.testing.assert_allclose(difference, difference[0])
    # None is larger, relative to the body, than the largest was.
    assert result[order[-1]] - log_weight[order[-1]] <= difference[0] + 1e-12


def test_smoothing_reduces_the_error_of_estimates() -> None:
    raw, smooth = [], []
    for seed in range(100):
        x = np.random.default_rng(seed).exponential(size=1000)
        # Proposal Exp(1), target Exp(0.45): ratios exp(0.55 x) have a tail with k = 0.55.
        log_weight = 0.55 * x
        raw.append(normalised(log_weight) @ x)
        smooth.append(np.exp(smoothed_log_weights(log_weight, 0.0)[0]) @ x)
    truth = 1.0 / 0.45
    assert np.mean((np.array(smooth) - truth) ** 2) < np.mean((np.array(raw) - truth) ** 2)
