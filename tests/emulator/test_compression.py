"""Few components that predict as many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import paims
from paims.emulator import _ensemble as ensemble_module
from paims.emulator._ensemble import Ensemble, cell_order, compress, merge_equal, thin


def full_ensemble(emulator: paims.Emulator) -> Ensemble:
    result = emulator.result_
    return replace(emulator.ensemble_, draws=result.draws, weights=result.weights)


def difference(a: Ensemble, b: Ensemble) -> tuple[float, float]:
    X = np.random.default_rng(1).random((200, a.posterior.n_inputs))
    (mean, std), (mean_b, std_b) = a.moments(X), b.moments(X)
    off = np.sqrt(np.mean(((mean - mean_b) / std_b) ** 2))
    return float(off), float(np.sqrt(np.mean((std / std_b - 1.0) ** 2)))


def test_equal_draws_are_merged_with_their_weights() -> None:
    draws = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])
    distinct, weights = merge_equal(draws, np.array([0.2, 0.5, 0.3]))
    np.testing.assert_array_equal(distinct, [[0.0, 0.0], [1.0, 2.0]])
    np.testing.assert_allclose(weights, [0.5, 0.5])


@pytest.mark.parametrize(("n_params", "share"), [(2, 0.5), (6, 0.8)])
def test_thinning_is_unbiased_and_less_noisy_than_independent_draws(
    n_params: int, share: float
) -> None:
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((2000, n_params))
    weights = rng.dirichlet(np.full(2000, 0.5))
    truth = weights @ draws
    means = []
    for _ in range(100):
        index, w = thin(draws, weights, 64, rng)
        assert w.sum() == pytest.approx(1.0)
        assert len(index) <= 64
        means.append(w @ draws[index])
    noise = np.std(means, axis=0)
    assert (np.abs(np.mean(means, axis=0) - truth) < 4 * noise / np.sqrt(100)).all()
    independent = np.sqrt(weights @ (draws - truth) ** 2 / 64)
    assert np.mean(noise / independent) < share


def test_thinning_keeps_the_weight_of_a_heavy_draw() -> None:
    draws = np.arange(200.0)[:, None]
    weights = np.full(200, 0.5 / 199)
    weights[77] = 0.5
    index, w = thin(draws, weights, 20, np.random.default_rng(0))
    assert w[index == 77] == pytest.approx(0.5, abs=0.051)
    assert len(index) <= 12


def test_order_keeps_neighbours_together() -> None:
    draws = np.random.default_rng(0).random((2048, 2))
    order = cell_order(draws, np.full(2048, 1 / 2048), 64, np.random.default_rng(1))
    assert sorted(order) == list(range(2048))
    cells = draws[order].reshape(64, 32, 2)
    assert np.ptp(cells, axis=1).max() < 0.35


def test_few_draws_are_all_kept() -> None:
    draws, weights = np.arange(6.0).reshape(3, 2), np.array([0.2, 0.3, 0.5])
    index, w = thin(draws, weights, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(index, [0, 1, 2])
    np.testing.assert_array_equal(w, weights)


def test_fitted_mixture_predicts_as_all_draws_do(emulator: paims.Emulator) -> None:
    assert len(emulator.ensemble_.draws) <= 128
    assert len(emulator.result_.draws) > 1000
    mean, std = difference(emulator.ensemble_, full_ensemble(emulator))
    assert mean < 0.02
    assert std < 0.02


def test_reported_loss_is_the_loss(emulator: paims.Emulator) -> None:
    full = full_ensemble(emulator)
    for n in (8, 32):
        few, report = compress(full, n, np.random.default_rng(2))
        assert report.n_components == len(few.draws) <= n
        assert report.n_before == len(full.draws)
        assert few.weights.sum() == pytest.approx(1.0)
        assert (few.weights > 0.0).all()
        mean, std = difference(few, full)
        # At other points of the box: of the same size as what is reported.
        assert mean < 3 * report.mean_error + 0.002
        assert std < 3 * report.std_error + 0.002
        assert report.mean_error <= report.max_mean_error
        assert str(n) in str(report) or str(report.n_components) in str(report)


def test_new_weights_take_away_most_of_the_noise_of_thinning(emulator: paims.Emulator) -> None:
    full = full_ensemble(emulator)
    plain, fitted = [], []
    for seed in range(3):
        index, weights = thin(full.draws, full.weights, 64, np.random.default_rng(seed))
        plain.append(difference(replace(full, draws=full.draws[index], weights=weights), full))
        fitted.append(difference(compress(full, 64, np.random.default_rng(seed))[0], full))
    assert (np.mean(fitted, axis=0) < 0.5 * np.mean(plain, axis=0)).all()


def test_compress_makes_another_emulator(emulator: paims.Emulator) -> None:
    before = emulator.predict([[0.3, 15.0]], return_std=True)
    small = emulator.compress(10)
    assert len(small.ensemble_.draws) <= 10
    assert small.compression_.n_before == len(emulator.ensemble_.draws)
    assert small.compression_.max_mean_error < 0.3
    mean = small.predict([[0.3, 15.0]])
    assert abs(mean[0] - before[0][0]) < small.compression_.max_mean_error * before[1][0] + 1e-12
    after = emulator.predict([[0.3, 15.0]], return_std=True)
    np.testing.assert_array_equal(before, after)
    np.testing.assert_array_equal(
        small.compress(10).predict([[0.3, 15.0]]), small.predict([[0.3, 15.0]])
    )
    with pytest.raises(ValueError, match="positive integer; got 0"):
        emulator.compress(0)


def test_draws_that_cannot_be_factorised_are_left_out(emulator: paims.Emulator) -> None:
    posterior = paims.gp.Posterior(emulator.posterior_.X, emulator.posterior_.y, nugget=0.0)
    good, bad = [-2.0, -2.0], [40.0, 40.0]
    ensemble = Ensemble(
        posterior, np.array([good, bad]), np.array([0.5, 0.5]), emulator.output_, "student_t"
    )
    assert np.isnan(posterior.predict([bad], [[0.5, 0.5]]).mean).all()
    kept, report = compress(ensemble, 10, np.random.default_rng(0))
    np.testing.assert_array_equal(kept.draws, [good])
    np.testing.assert_array_equal(kept.weights, [1.0])
    assert report.n_before == 2
    with pytest.raises(ValueError, match="cannot be factorised at any"):
        compress(replace(ensemble, draws=np.array([bad, bad])), 10, np.random.default_rng(0))


def test_moments_stream_over_points_and_components(
    emulator: paims.Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensemble_module, "_BLOCK_POINTS", 7)
    monkeypatch.setattr(ensemble_module, "_BLOCK_SIZE", 7 * 10)
    X = np.random.default_rng(0).random((20, 2)) * [1.0, 20.0] + [0.0, 10.0]
    mean, std = emulator.predict(X, return_std=True)
    mixture = emulator.predict_distribution(X)
    np.testing.assert_allclose(mean, mixture.mean, rtol=1e-11)
    np.testing.assert_allclose(std, mixture.std, rtol=1e-9)
