"""Several kernels: their evidence, their weights, and the mixture of all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from tests.emulator.test_checkpoint import assert_same, interrupted

import paims
from paims.emulator import _forecast as duration
from paims.emulator._averaging import (
    AUTO,
    KernelEvidence,
    _left_out,
    candidates,
    in_words,
    label,
    planned,
    sizes,
    stacking_weights,
)
from paims.emulator._evidence import comparable_evidence, comparison_prior, log_evidence
from paims.emulator._fit import scaled_posteriors
from paims.gp import Kernel, Matern52, Posterior, PowerExponential
from paims.gp._kernels import as_kernel
from paims.inference import find_best, sample_posterior
from paims.sampling import CheckpointError

Runs = tuple[np.ndarray, np.ndarray]
TWO = ("squared_exponential", "matern52")


def fit(runs: Runs, kernel: Any = TWO, **settings: Any) -> paims.Emulator:
    settings = {"n_samples": 300, "random_state": 1, **settings}
    return paims.Emulator(kernel, **settings).fit(*runs)


def path_of(kernel: str, length: float, n: int, seed: int, nugget: float = 1e-6) -> Runs:
    """Values of a process with this kernel."""
    k, x = as_kernel(kernel), np.linspace(0.0, 1.0, n)[:, None]
    phi = k.from_length_scale(np.array([[length]]))
    K = k.correlation(x, x, phi)[0] + nugget * np.eye(n)
    return x, np.linalg.cholesky(K) @ np.random.default_rng(seed).standard_normal(len(x))


@pytest.fixture(scope="module")
def both(runs: Runs) -> paims.Emulator:
    return fit(runs)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("truth", ["squared_exponential", "matern32"])
def test_finds_the_kernel_that_made_the_data(truth: str, seed: int) -> None:
    among = ("matern32", "squared_exponential")
    emulator = fit(path_of(truth, 0.2, 40, seed), among)
    assert tuple(emulator.kernel_evidence_) == among
    assert max(emulator.kernel_evidence_, key=emulator.kernel_evidence_.__getitem__) == truth
    assert emulator.kernel_weights_[truth] > 0.45


def posteriors_of(runs: Runs, *arguments: Any, **settings: Any) -> tuple[Any, Any]:
    asked = paims.Emulator(*arguments, **settings)
    _, output, posteriors = scaled_posteriors(*runs, ["x"], asked)
    return output, posteriors


def test_evidences_are_calibrated_probabilities() -> None:
    # Each kernel makes the data half of the time, its length drawn from the prior: of the cases
    # with probability P for a kernel, the share P is made by it.
    prior, rng = stats.lognorm(0.5, scale=0.3), np.random.default_rng(0)
    made, probability = [], []
    for seed in range(80):
        truth = TWO[seed % 2]
        phi = float(prior.rvs(random_state=rng))
        length = float(as_kernel(truth).length_scale(np.array(phi)))
        data = path_of(truth, length, 8, seed, 0.001)
        output, posteriors = posteriors_of(data, TWO, "constant", prior, 0.001, "uniform")
        log_z = [
            comparable_evidence(
                one, output, sample_posterior(one, 150, random_state=0, n_jobs=1)
            ).log_evidence
            for one in posteriors
        ]
        made.append(truth == TWO[1])
        probability.append(expit(log_z[1] - log_z[0]))
    p = np.array(probability)

    def deviation(p: np.ndarray) -> float:
        return float(np.sum(made - p) / np.sqrt(np.sum(p * (1.0 - p))))

    def weighted(p: np.ndarray) -> float:  # a slope: certain cases count more
        return float(
            np.sum((made - p) * (p - 0.5)) / np.sqrt(np.sum(p * (1 - p) * (p - 0.5) ** 2))
        )

    assert np.mean(np.where(made, p, 1.0 - p)) > 0.65
    assert abs(deviation(p)) < 3.5
    assert abs(weighted(p)) < 3.5
    assert abs(weighted(1.0 - p)) > 3.5  # the other way round
    assert abs(deviation(expit(np.log(p / (1.0 - p)) + 2.0))) > 3.5  # a constant too much


@pytest.mark.parametrize("kernel", ["squared_exponential", "matern52"])
def test_evidence_under_the_comparison_prior_from_draws_under_another(kernel: str) -> None:
    # Against a run under that prior itself, whose evidence needs no draws of another.
    data = path_of("matern52", 0.3, 15, 1, 0.01)
    output, (reference,) = posteriors_of(data, kernel, n_jobs=1)
    _, (direct,) = posteriors_of(data, kernel, prior=comparison_prior(as_kernel(kernel)), n_jobs=1)
    found = comparable_evidence(
        reference, output, sample_posterior(reference, 1000, random_state=0)
    )
    run = sample_posterior(direct, 1000, random_state=1)
    truth = log_evidence(direct, output, run)
    assert comparable_evidence(direct, output, run).log_evidence == truth
    assert found.error < 0.1
    assert abs(found.log_evidence - truth) < 4.0 * np.hypot(found.error, run.log_evidence_error)
    # Without the ratio it would be the reference prior's, whose total is another.
    off = log_evidence(reference, output, sample_posterior(reference, 500, random_state=0))
    assert abs(off - truth) > 1.0


def test_the_comparison_prior_is_one_of_lengths() -> None:
    # The same distribution of lengths under every kernel, and a proper one.
    grid = np.linspace(-40.0, 40.0, 8001)[:, None]
    for kernel in map(as_kernel, (*AUTO, "matern32", "power_exponential")):
        density = np.exp(comparison_prior(kernel).log_density(grid))
        log_length = np.log(kernel.length_scale(np.exp(grid[:, 0])))
        step = grid[1, 0] - grid[0, 0]
        assert density.sum() * step == pytest.approx(1.0, abs=1e-6)
        assert (density * log_length).sum() * step == pytest.approx(1.0, abs=1e-6)
        assert (density * (log_length - 1.0) ** 2).sum() * step == pytest.approx(4.0, abs=1e-4)


def test_weights_are_of_evidence_and_of_runs_left_out(both: paims.Emulator) -> None:
    parts = both._fit.kernels
    values = np.array([both.kernel_evidence_[one.name] for one in parts])
    probability = np.exp(values) / np.exp(values).sum()
    posteriors, results = [one.posterior for one in parts], [one.result for one in parts]
    stacked = stacking_weights(posteriors, results)
    assert stacked is not None
    np.testing.assert_allclose(
        list(both.kernel_weights_.values()), 0.5 * (probability + stacked), rtol=1e-9
    )
    assert sum(both.kernel_weights_.values()) == pytest.approx(1.0)
    assert list(both.kernel_weights_.values()) == sorted(both.kernel_weights_.values())[::-1]


def test_stacking_weights_predict_best(monkeypatch: pytest.MonkeyPatch) -> None:
    log_p = np.random.default_rng(0).normal(size=(3, 30)) * [[1.0], [1.5], [0.8]]
    rows = iter(log_p)
    monkeypatch.setattr("paims.emulator._averaging._left_out", lambda *arguments: next(rows))
    found = stacking_weights([None] * 3, [None] * 3)  # type: ignore[list-item]

    def loss(free: np.ndarray) -> float:
        w = np.append(np.exp(free), 1.0)
        return -float(np.log((w / w.sum()) @ np.exp(log_p)).sum())

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-10})
    assert found is not None
    assert -np.log(found @ np.exp(log_p)).sum() == pytest.approx(best.fun, abs=1e-4)
    # Runs that cannot be left out do not count; without any there are no weights.
    broken = iter(np.where(np.arange(30) == 3, np.nan, log_p))
    monkeypatch.setattr("paims.emulator._averaging._left_out", lambda *arguments: next(broken))
    assert stacking_weights([None] * 3, [None] * 3) is not None  # type: ignore[list-item]
    monkeypatch.setattr(
        "paims.emulator._averaging._left_out", lambda *arguments: np.full(30, np.nan)
    )
    assert stacking_weights([None] * 3, [None] * 3) is None  # type: ignore[list-item]


def test_left_out_runs_are_predicted_by_the_others_under_all_draws() -> None:
    """Against fits to the other runs, mixed by the weights of the draws."""
    X, y = path_of("matern52", 0.3, 9, 2, 0.01)
    posterior = Posterior(X, y, "matern52")
    draws = np.array([[-1.5, -4.0], [0.5, -1.0], [-3.0, -6.0]])
    weights = np.array([0.25, 0.75, 0.0])  # multiples of 1/128: so many draws are taken
    result: Any = SimpleNamespace(draws=draws, weights=weights)
    expected = np.empty(9)
    for i in range(9):
        others = np.arange(9) != i
        rest = Posterior(X[others], y[others], "matern52")
        found = rest.predict(draws, X[i : i + 1])
        density = stats.t(found.dof, found.mean[:, 0], np.sqrt(found.scale2[:, 0])).pdf(y[i])
        expected[i] = np.log(weights @ density)
    np.testing.assert_allclose(_left_out(posterior, result), expected, rtol=1e-8)


@pytest.mark.parametrize(("small", "kept"), [(0.012, True), (0.008, False)])
def test_kernels_of_less_than_one_percent_are_left_out(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, small: float, kept: bool
) -> None:
    monkeypatch.setattr("paims.emulator._averaging.stacking_weights", lambda *arguments: None)
    monkeypatch.setattr(
        KernelEvidence, "weights", lambda self: dict(zip(TWO, (small, 1.0 - small), strict=True))
    )
    expected = {TWO[1]: 1.0 - small, TWO[0]: small} if kept else {TWO[1]: 1.0}
    assert fit(runs).kernel_weights_ == pytest.approx(expected, rel=1e-12)


def test_is_the_mixture_of_fits_of_one_kernel_each(runs: Runs, both: paims.Emulator) -> None:
    new = runs[0][:5] * 0.9
    total, square = np.zeros(5), np.zeros(5)
    for name, weight in both.kernel_weights_.items():
        alone = fit(runs, name, n_samples=250)  # its share of 300
        assert alone.kernel_weights_ == {name: 1.0}
        assert alone.kernel_evidence_ == {}
        np.testing.assert_array_equal(alone.result_.draws, both.results_[name].draws)
        mean, std = alone.predict(new, return_std=True)
        total += weight * mean
        square += weight * (std**2 + mean**2)
    mean, std = both.predict(new, return_std=True)
    np.testing.assert_allclose(mean, total, atol=0.05 * std.min())
    np.testing.assert_allclose(std, np.sqrt(square - total**2), rtol=0.05)
    mixture = both.predict_distribution(new)
    np.testing.assert_allclose(mixture.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(np.sqrt(np.diag(mixture.cov())), std, rtol=1e-6)
    which = both.ensemble_.which
    assert which is not None
    share = [both.ensemble_.weights[which == k].sum() for k in range(2)]
    np.testing.assert_allclose(share, list(both.kernel_weights_.values()), atol=0.05)


def test_components_keep_their_order(both: paims.Emulator) -> None:
    ensemble, X = both.ensemble_, both.posterior_.X[:3]
    rows = np.random.default_rng(0).permutation(len(ensemble.draws))[:20]
    found = ensemble.predict(X, rows)
    assert ensemble.which is not None
    assert set(ensemble.which[rows]) == {0, 1}
    for j, row in enumerate(rows):
        own = ensemble.posteriors[ensemble.which[row]].predict(ensemble.draws[row : row + 1], X)
        np.testing.assert_allclose(found.mean[j], own.mean[0], rtol=1e-9)


def test_modes_say_their_kernel(both: paims.Emulator) -> None:
    assert {mode.kernel for mode in both.modes_} == set(both.kernel_weights_)
    assert sum(mode.mass for mode in both.modes_) == pytest.approx(1.0, abs=0.03)
    for name, weight in both.kernel_weights_.items():
        own = sum(mode.mass for mode in both.modes_ if mode.kernel == name)
        assert own == pytest.approx(weight, abs=0.03)
    masses = [mode.mass for mode in both.modes_]
    assert masses == sorted(masses)[::-1]
    assert "matern52" in repr(both.modes_)
    assert set(both.modes_.to_array()["kernel"]) == set(both.kernel_weights_)
    assert both.map_.kernel == next(iter(both.kernel_weights_))
    # The density of the whole mixture there: that of its kernel, times the kernel's weight.
    one = both._fit.kernels[0]
    top = find_best(one.posterior, one.result, one.result.modes(min_mass=0.0)).log_density
    density = top - one.result.log_evidence + np.log(one.weight)
    assert both.map_.log_density == pytest.approx(density, rel=1e-9)


def test_draws_are_of_all_kernels(both: paims.Emulator) -> None:
    assert len(both.draws_) == len(both.weights_) == len(both.draw_kernels_)
    assert both.weights_.sum() == pytest.approx(1.0)
    for name, weight in both.kernel_weights_.items():
        own = both.draw_kernels_ == name
        assert both.weights_[own].sum() == pytest.approx(weight)
        assert own.sum() == len(both.results_[name].draws)


def test_a_kernel_of_little_weight_is_left_out() -> None:
    emulator = fit(path_of("squared_exponential", 0.3, 30, 0), ("squared_exponential", "matern32"))
    assert list(emulator.kernel_weights_) == ["squared_exponential"]
    assert list(emulator.kernel_evidence_) == ["squared_exponential", "matern32"]
    assert emulator.ensemble_.which is None


def test_evidence_of_the_mixture() -> None:
    evidence = KernelEvidence({"a": 1.0, "b": 2.0}, {"a": 0.1, "b": 0.2})
    value, error = evidence.average()
    assert value == pytest.approx(np.log(0.5 * (np.exp(1.0) + np.exp(2.0))))
    rng = np.random.default_rng(0)
    noisy = np.array([1.0, 2.0]) + rng.normal(size=(20000, 2)) * [0.1, 0.2]
    assert error == pytest.approx(np.std(np.log(np.exp(noisy).mean(axis=1))), rel=0.05)


def test_units_change_nothing(runs: Runs, both: paims.Emulator) -> None:
    X, y = runs
    scaled = fit((1e3 * X, 8.0 * y))
    np.testing.assert_allclose(
        list(scaled.kernel_evidence_.values()),
        np.array(list(both.kernel_evidence_.values())) - len(y) * np.log(8.0),
        rtol=1e-9,
    )
    assert fit(runs, n_jobs=1).kernel_evidence_ == both.kernel_evidence_


def test_goals(runs: Runs, both: paims.Emulator) -> None:
    best = fit(runs, goal="map")
    assert len(best.ensemble_.draws) == 1
    assert best.kernel_weights_ == both.kernel_weights_
    optimum = fit(runs, goal="optimum")
    assert set(optimum.kernel_weights_) == set(both.kernel_weights_)
    assert optimum.ensemble_.which is not None


def test_goes_on_after_an_interruption(runs: Runs, both: paims.Emulator, tmp_path: Path) -> None:
    path = tmp_path / "fit.h5"
    n_files = []
    for at in (9, 110):  # under the first kernel, and under the second
        error = interrupted(runs, path, at, kernel=TWO)
        assert f"checkpoint={str(path)!r} to go on" in str(error)
        n_files.append(len(list(tmp_path.iterdir())))
    assert n_files == [1, 2]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["fit.h5", "fit.kernel2.h5"]
    again = paims.Emulator(TWO, n_samples=300, random_state=1).fit(*runs, checkpoint=path)
    assert_same(again, both)
    assert again.kernel_evidence_ == both.kernel_evidence_
    assert [file.name for file in tmp_path.iterdir()] == ["fit.h5"]


def test_a_checkpoint_of_others_is_refused_before_any_sampling(
    runs: Runs, both: paims.Emulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "fit.h5"
    fit_of = {"n_samples": 300, "random_state": 1}
    paims.Emulator(TWO, **fit_of).fit(*runs, checkpoint=path)
    X, y = runs

    def sample(*arguments: Any, **options: Any) -> None:
        pytest.fail("the sampler was started")

    with monkeypatch.context() as patch:
        patch.setattr("paims.emulator._execution.sample_posterior", sample)
        for changed, settings, text in (
            ((X, np.sin(y)), {}, "density y is"),
            ((X**2, y), {}, "density X is"),
            (runs, {"mean": "constant"}, "density mean is 'Constant' here and 'Linear'"),
            (runs, {"prior": "jointly_robust"}, "density prior is"),
            (runs, {"nugget": 0.01}, "density nugget is 'FixedNugget"),
            (runs, {"random_state": 2}, "random_state is"),
            (runs, {"goal": "optimum"}, "goal is 'optimum' here and 'posterior' in the file"),
            (runs, {"n_samples": 700}, "n_samples is 350 here and 250 in the file"),
            (runs, {"n_samples": None}, "n_samples is 400 here and 250 in the file"),
            (runs, {"scheme": "paper"}, "scheme "),
            (runs, {"kernel": ["matern32", "matern72"]}, "density kernel is"),
        ):
            asked = {"kernel": TWO, **fit_of, **settings}
            with pytest.raises(CheckpointError, match=f"of another run: .*{text}"):
                paims.Emulator(**asked).fit(*changed, checkpoint=path)
        path.with_name("cut.h5").write_bytes(path.read_bytes()[:2000])
        with pytest.raises(CheckpointError, match="cannot be used as a checkpoint"):
            paims.Emulator(TWO, **fit_of).fit(*runs, checkpoint=path.with_name("cut.h5"))
    again = paims.Emulator(TWO, **fit_of).fit(*runs, checkpoint=path)
    assert_same(again, both)
    unseeded = paims.Emulator(TWO, n_samples=300).fit(*runs, checkpoint=path)
    assert_same(unseeded, paims.Emulator(TWO, n_samples=300).fit(*runs, checkpoint=path))


def test_is_saved_and_compressed(runs: Runs, tmp_path: Path) -> None:
    emulator = fit(runs, [PowerExponential(1.5), "matern52"])
    emulator.save(tmp_path / "e.h5")
    loaded = paims.load_emulator(tmp_path / "e.h5")
    assert_same(loaded, emulator)
    assert repr(loaded.posterior_.kernel) == repr(emulator.posterior_.kernel)
    for name in ("kernel_evidence_", "kernel_weights_", "log_evidence_", "log_evidence_error_"):
        assert getattr(loaded, name) == getattr(emulator, name)
    assert [mode.kernel for mode in loaded.modes_] == [mode.kernel for mode in emulator.modes_]
    np.testing.assert_array_equal(loaded.draw_kernels_, emulator.draw_kernels_)
    small = emulator.compress(20)
    assert small.kernel_evidence_ == emulator.kernel_evidence_
    assert len(small.ensemble_.weights) <= 20
    assert small.compression_.mean_error < 0.2
    np.testing.assert_array_equal(loaded.predict(runs[0]), emulator.predict(runs[0]))
    assert repr(clone(loaded).kernel) == repr(emulator.kernel)


def test_candidates() -> None:
    assert [kernel.name for kernel in candidates("auto")] == list(AUTO)
    assert [kernel.name for kernel in candidates("matern32")] == ["matern32"]
    own = Matern52()
    assert candidates(own) == (own,)
    assert candidates((own, "matern32"))[0] is own
    assert label(own) == "matern52"
    assert label(PowerExponential(1.5)) == "PowerExponential(power=1.5)"
    assert len(candidates([PowerExponential(1.5), PowerExponential(1.9)])) == 2
    assert paims.Emulator().kernel == "auto"


def test_words() -> None:
    weights, evidences = {"squared_exponential": 0.75, "matern52": 0.25}, {"matern72": 1.0}
    assert in_words(weights, {**evidences, "squared_exponential": 6.0, "matern52": 5.0}) == (
        "squared exponential 75%, matern52 25%; left out: matern72 (log evidence 5.0 lower)"
    )


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ([], "at least one kernel"),
        (["matern52", "matern52"], "'matern52' twice"),
        (["matern52", "rbf"], "got 'rbf'"),
        ("automatic", "got 'automatic'. An emulator takes \"auto\""),
        (3, "got 3"),
    ],
)
def test_bad_candidates(runs: Runs, kernel: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(runs, kernel)


def test_kernels_share_the_points() -> None:
    kernels: tuple[Kernel, ...] = candidates("auto")
    assert sizes(1, None, 3) == [None]
    assert sizes(1, 700, 3) == [700]
    assert sizes(len(kernels), None, 3) == [267] * 3
    assert sizes(3, 2000, 3) == [667] * 3
    assert sizes(3, None, 20) == [420] * 3
    assert sizes(3, 200, 3) == [200] * 3
    assert sizes(3, 900, 3) == [300] * 3
    assert sizes(3, 5000, 30) == [1667] * 3


def test_with_many_runs_one_kernel_is_taken() -> None:
    def runs(n: int, n_params: int = 3, has_gradient: bool = True) -> list[Any]:
        one = SimpleNamespace(n_runs=n, n_params=n_params, has_gradient=has_gradient)
        return [one] * 3

    asked = paims.Emulator()
    assert planned(runs(249), asked) == [267] * 3
    assert planned(runs(250), asked) == [500]
    assert planned(runs(250, 12), asked) == [600]
    assert planned(runs(250, 20), asked) == [800]
    assert planned(runs(250), paims.Emulator(n_samples=700)) == [700]
    assert planned(runs(250, has_gradient=False), asked) == [267] * 3
    assert planned(runs(250), paims.Emulator(AUTO)) == [267] * 3
    assert planned(runs(250)[:1], paims.Emulator("matern52")) == [None]


def test_the_time_of_all_is_announced(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duration, "seconds_per_evaluation", lambda *arguments: 10.0)
    hours = []
    for kernel in ("matern52", TWO):
        with pytest.warns(duration.LongFitWarning) as said:
            fit(runs, kernel, n_samples=200)
        hours.append(float(str(said[0].message).split(" about ")[1].split(" hours")[0]))
    assert 1.5 < hours[1] / hours[0] < 2.5


def test_progress_says_the_evidences(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    emulator = fit(runs, progress=True)
    said = capsys.readouterr().err
    for name, value in emulator.kernel_evidence_.items():
        assert f"{name}: log evidence {value:.2f}" in said
