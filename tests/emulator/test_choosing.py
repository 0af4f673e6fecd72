"""Of several kernels, the one with the highest evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.base import clone
from tests.emulator.test_checkpoint import assert_same, interrupted

import paims
from paims.emulator import _forecast as duration
from paims.emulator._choosing import AUTO, candidates, choose, comparison_sizes, in_words, label
from paims.emulator._execution import Execution
from paims.emulator._fit import scaled_posteriors
from paims.gp import Kernel, Matern52, PowerExponential
from paims.gp._kernels import as_kernel
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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("truth", ["squared_exponential", "matern32"])
def test_finds_the_kernel_that_made_the_data(truth: str, seed: int) -> None:
    among = ("matern32", "squared_exponential")
    emulator = fit(path_of(truth, 0.2, 40, seed), among)
    assert emulator.posterior_.kernel.name == truth
    assert tuple(emulator.kernel_evidence_) == among
    assert max(emulator.kernel_evidence_, key=emulator.kernel_evidence_.__getitem__) == truth


def test_evidences_are_calibrated_probabilities() -> None:
    # Each kernel makes the data half of the time, its length drawn from the prior: of the cases
    # with probability P for a kernel, the share P is made by it.
    prior, rng = stats.lognorm(0.5, scale=0.3), np.random.default_rng(0)
    made, probability = [], []
    for seed in range(80):
        truth = TWO[seed % 2]
        phi = float(prior.rvs(random_state=rng))
        length = float(as_kernel(truth).length_scale(np.array(phi)))
        X, y = path_of(truth, length, 8, seed, 0.001)
        asked = paims.Emulator(TWO, "constant", prior, 0.001, "uniform", n_samples=150, n_jobs=1)
        _, output, posteriors = scaled_posteriors(X, y, ["x"], asked)
        _, evidences = choose(posteriors, output, asked, Execution())
        made.append(truth == TWO[1])
        probability.append(expit(evidences[TWO[1]] - evidences[TWO[0]]))
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


def test_is_the_fit_with_that_kernel(runs: Runs) -> None:
    emulator = fit(runs, "auto")
    assert tuple(emulator.kernel_evidence_) == AUTO
    chosen = emulator.posterior_.kernel.name
    alone = fit(runs, chosen)
    assert_same(emulator, alone)
    assert alone.kernel_evidence_ == {}


def test_evidences_are_those_of_fits(runs: Runs) -> None:
    compared = fit(runs, n_samples=1000).kernel_evidence_
    for kernel, value in compared.items():
        whole = fit(runs, kernel, n_samples=2000)
        # The comparison has a quarter of the points: twice the error.
        assert abs(value - whole.log_evidence_) < 4.0 * np.sqrt(5.0) * whole.log_evidence_error_


def test_the_choice_depends_on_the_runs_only(runs: Runs) -> None:
    first = fit(runs).kernel_evidence_
    assert fit(runs, random_state=2, n_jobs=1).kernel_evidence_ == first
    assert fit(runs, goal="map").kernel_evidence_ == first
    X, y = runs
    scaled = fit((1e3 * X, 8.0 * y)).kernel_evidence_
    np.testing.assert_allclose(
        list(scaled.values()), np.array(list(first.values())) - len(y) * np.log(8.0), rtol=1e-9
    )


def test_goes_on_after_an_interruption(runs: Runs, tmp_path: Path) -> None:
    path = tmp_path / "fit.h5"
    whole = fit(runs)
    n_files = []
    for at in (9, 60, 50):  # in the first comparison, in the second, in the fit itself
        error = interrupted(runs, path, at, kernel=TWO)
        assert f"checkpoint={str(path)!r} to go on" in str(error)
        n_files.append(len(list(tmp_path.iterdir())))
    assert n_files == [1, 2, 3]
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["fit.h5", "fit.kernel1.h5", "fit.kernel2.h5"]
    again = paims.Emulator(TWO, n_samples=300, random_state=1).fit(*runs, checkpoint=path)
    assert_same(again, whole)
    assert again.kernel_evidence_ == whole.kernel_evidence_
    assert [file.name for file in tmp_path.iterdir()] == ["fit.h5"]


def test_a_checkpoint_of_others_is_refused_before_the_comparison(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
            (runs, {"n_samples": 400}, "n_samples is 400 here and 300 in the file"),
            (runs, {"n_samples": None}, "n_samples is 2000 here and 300 in the file"),
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
    assert_same(again, fit(runs))
    unseeded = paims.Emulator(TWO, n_samples=300).fit(*runs, checkpoint=path)
    assert_same(unseeded, paims.Emulator(TWO, n_samples=300).fit(*runs, checkpoint=path))


def test_is_saved_and_compressed(runs: Runs, tmp_path: Path) -> None:
    emulator = fit(runs, [PowerExponential(1.5), "matern52"])
    emulator.save(tmp_path / "e.h5")
    loaded = paims.load_emulator(tmp_path / "e.h5")
    assert_same(loaded, emulator)
    assert repr(loaded.posterior_.kernel) == repr(emulator.posterior_.kernel)
    assert loaded.kernel_evidence_ == emulator.kernel_evidence_
    assert emulator.compress(4).kernel_evidence_ == emulator.kernel_evidence_
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


def test_words_of_a_choice() -> None:
    assert in_words({"matern52": 1.0, "squared_exponential": 4.25}) == (
        "squared exponential 4.25, matern52 1.00"
    )
    assert in_words({"matern52": 1.0, "matern72": -1.9}).endswith(
        "matern72 -1.90; the runs hardly tell the first two apart"
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


def test_sizes_of_comparisons() -> None:
    kernels: tuple[Kernel, ...] = candidates("auto")
    assert comparison_sizes(kernels[:1], None, 3) == []
    assert comparison_sizes(kernels, None, 3) == [500] * 3
    assert comparison_sizes(kernels, None, 20) == [1500] * 3
    assert comparison_sizes(kernels, 200, 3) == [200] * 3
    assert comparison_sizes(kernels, 1000, 30) == [620] * 3  # fewer would be refused


def test_the_time_of_comparisons_is_announced(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duration, "seconds_per_evaluation", lambda *arguments: 1.0)
    with pytest.warns(duration.LongFitWarning, match="about 5 hours"):
        fit(runs, n_samples=600)
    with pytest.warns(duration.LongFitWarning, match="about 2 hours"):
        fit(runs, "matern52", n_samples=600)


def test_progress_says_the_evidences(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    emulator = fit(runs, progress=True)
    said = capsys.readouterr().err
    for name, value in emulator.kernel_evidence_.items():
        assert f"{name}: log evidence {value:.2f}" in said
