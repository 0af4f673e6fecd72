"""Several outputs: shapes, single outputs, joint predictions, missing values, files."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest
from sklearn.neighbors import NearestNeighbors
from tests.sampling.test_cluster import FakeClient
from threadpoolctl import threadpool_info

import paims
from paims.emulator import (
    JointPrediction,
    _apart,
    _forecast,
    _several,
    _shared_fit,
    _storage,
)
from paims.emulator._joint_outputs import OutputMap
from paims.emulator._mixture import MixturePrediction
from paims.emulator._pilot import look
from paims.emulator._scaling import OutputScaling
from paims.emulator._several_description import check_outputs
from paims.emulator._shared_fit import fewer_points, of_many, scaled_runs
from paims.emulator._table import _Keeper
from paims.gp import Posterior
from paims.gp._kernels import as_kernel
from paims.gp._shared import SharedPosterior
from paims.sampling import CheckpointError, _cluster

WAYS = ("separate", "shared", "components")
rng = np.random.default_rng(0)
X = rng.random((20, 2))
NEW = rng.random((5, 2))


def outputs(X: np.ndarray) -> pd.DataFrame:
    a, b = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2, np.cos(3.0 * X[:, 1]) + X[:, 0]
    return pd.DataFrame({"a": a, "b": b, "both": a + 0.5 * b + 0.1 * np.sin(9.0 * X[:, 0])})


Y = outputs(X)


def emulator(way: str = "auto", **settings: Any) -> paims.Emulator:
    quick = {"n_samples": 200, "prior": "jointly_robust", "kernel": "squared_exponential"}
    return paims.Emulator(**quick | {"random_state": 0, "outputs": way} | settings)


@cache
def fitted(way: str) -> paims.Emulator:
    return emulator(way).fit(X, Y)


@pytest.mark.parametrize("way", WAYS)
def test_shapes_and_names(way: str) -> None:
    found = fitted(way)
    assert found.way_ == way
    assert found.output_names_ == ("a", "b", "both")
    mean, std = found.predict(NEW, return_std=True)
    assert mean.shape == std.shape == (5, 3)
    assert found.predict(NEW, return_cov=True)[1].shape == (5, 5, 3)
    joint = found.predict_distribution(NEW)
    np.testing.assert_allclose(joint.mean, mean)
    assert joint.sample(7, 0).shape == (7, 5, 3)
    assert joint.quantile([0.1, 0.5, 0.9]).shape == (3, 5, 3)
    lower, upper = joint.interval(0.9)
    assert (lower < upper).all()
    np.testing.assert_allclose(joint.cdf(upper), 0.95, atol=1e-8)
    assert joint.logpdf(mean).shape == (5, 3)
    assert found.sample_y(NEW, 4).shape == (5, 3, 4)
    assert found.score(NEW, outputs(NEW)) > 0.8


@pytest.mark.parametrize("way", WAYS)
def test_single_outputs(way: str) -> None:
    found = fitted(way)
    mean, std = found.predict(NEW, return_std=True)
    for j, name in enumerate(found.output_names_):
        one = found[name]
        own, own_std = one.predict(NEW, return_std=True)
        np.testing.assert_allclose(own, mean[:, j], rtol=1e-7)
        np.testing.assert_allclose(own_std, std[:, j], rtol=1e-6)
        assert one.leave_one_out().observed == pytest.approx(Y[name].to_numpy())
        assert one.validate(NEW, outputs(NEW)[name]).scores.n == 5
    with pytest.raises(KeyError, match="no output 'c'; the outputs are a, b, both"):
        found["c"]
    with pytest.raises(AttributeError, match=r"emulator\[name\]"):
        found.leave_one_out()


def test_separate_outputs_are_fitted_as_one_by_one_to_the_bit() -> None:
    found = fitted("separate")
    for name in Y:
        alone = emulator().fit(X, Y[name])
        np.testing.assert_array_equal(found[name].draws_, alone.draws_)
        np.testing.assert_array_equal(found[name].predict(NEW), alone.predict(NEW))
    column = emulator().fit(X, Y[["a"]])
    np.testing.assert_array_equal(column.predict(NEW)[:, 0], found["a"].predict(NEW))


@pytest.mark.parametrize("way", WAYS)
def test_samples_agree_with_the_distributions_of_outputs_and_sums(way: str) -> None:
    joint = fitted(way).predict_distribution(NEW)
    samples = joint.sample(2000, 1)
    weights = {"a": 1.0, "both": -2.0}
    combined = joint.combine(weights)
    for i in range(len(NEW)):
        for j in range(3):
            p = kstest(joint[j].cdf(np.tile(samples[:, i, j][:, None], 5))[:, i], "uniform").pvalue
            assert p > 1e-5
        total = samples[:, i, 0] - 2.0 * samples[:, i, 2]
        p = kstest(combined.cdf(np.tile(total[:, None], 5))[:, i], "uniform").pvalue
        assert p > 1e-5


def test_combination_of_one_output_is_that_output() -> None:
    for way in WAYS:
        joint = fitted(way).predict_distribution(NEW)
        one = joint.combine([0.0, 1.0, 0.0])
        # With hyper-parameters of their own 128 joint draws stand for those of each output.
        tolerance = 0.05 * joint.std[:, 1].max()
        np.testing.assert_allclose(one.mean, joint.mean[:, 1], atol=tolerance)
        np.testing.assert_allclose(one.std, joint.std[:, 1], rtol=0.05)


def test_sum_of_shared_outputs_is_the_process_of_the_sum() -> None:
    """With one correlation a sum of outputs has a posterior of its own: the truth for combine."""
    found = fitted("shared")
    shared = found._several.shared
    best = np.argmax(shared.weights)
    draw = shared.draws[best : best + 1]
    scale = np.array([s.scale * 2.0**s.exponent for s in shared.outputs])
    total = shared.posterior.Y @ scale
    kernel = shared.posterior.kernel
    process = Posterior(shared.posterior.X, total, kernel, prior="jointly_robust")
    truth = process.predict(draw, shared.inputs.apply(NEW))
    one = shared.single(0)
    residuals = shared.posterior.residuals(draw[0])
    mapping = OutputMap(found.output_names_, shared.outputs, residuals, common=True)
    predicted = shared.posterior.predict_outputs(draw, shared.inputs.apply(NEW))
    parts = [
        MixturePrediction(
            predicted.mean[:, :, j],
            np.sqrt(predicted.scale2[:, :, j]),
            np.ones(1),
            float(one.n_runs - one.n_basis),
            shared.outputs[j],
        )
        for j in range(3)
    ]
    combined = JointPrediction(parts, mapping).combine(np.ones(3))
    np.testing.assert_allclose(combined.std, np.sqrt(truth.variance[0]), rtol=1e-8)


def test_two_equal_outputs_have_a_difference_of_zero() -> None:
    twice = pd.DataFrame({"a": Y["a"], "again": Y["a"], "b": Y["b"]})
    for way in WAYS:
        joint = emulator(way).fit(X, twice).predict_distribution(NEW)
        difference = joint.combine({"a": 1.0, "again": -1.0})
        assert (difference.std < 1e-6 * joint.std[:, 0] + 1e-9).all()
        samples = joint.sample(20, 0)
        limit = 1e-6 * joint.std.max()
        np.testing.assert_allclose(samples[:, :, 0], samples[:, :, 1], rtol=0.0, atol=limit)


def _coverage(repetitions: int) -> tuple[float, float, float]:
    """Of single outputs, of their sum, and of the sum if outputs were independent."""
    single, total, control = [], [], []
    root = np.linalg.cholesky(0.2 * np.eye(4) + 0.8)
    for seed in range(repetitions):
        random = np.random.default_rng(seed)
        points = random.random((45, 1))
        D = (points - points.T) ** 2
        L = np.linalg.cholesky(np.exp(-D / (2 * 0.3**2)) + 1e-3 * np.eye(45))
        Z = L @ random.standard_normal((45, 4)) @ root.T + 3.0 * points
        found = emulator("shared", n_samples=100).fit(points[:15], Z[:15])
        joint = found.predict_distribution(points[15:])
        lower, upper = joint.interval()
        single.append(np.mean((Z[15:] > lower) & (Z[15:] < upper)))
        combined = joint.combine(np.ones(4))
        lower, upper = combined.interval()
        truth = Z[15:].sum(axis=1)
        total.append(np.mean((truth > lower) & (truth < upper)))
        narrow = 1.96 * np.sqrt(np.sum(joint.std**2, axis=1))
        control.append(np.mean(np.abs(truth - combined.mean) < narrow))
    return float(np.mean(single)), float(np.mean(total)), float(np.mean(control))


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
def test_intervals_of_sums_hold_and_those_of_independent_outputs_do_not() -> None:
    single, total, control = _coverage(20)
    assert 0.92 < single < 0.985
    assert 0.92 < total < 0.985
    assert control < 0.85


@pytest.mark.parametrize("way", WAYS)
def test_missing_values(way: str) -> None:
    gaps = Y.copy()
    gaps.iloc[2, 0] = gaps.iloc[5, 1] = gaps.iloc[6, 1] = np.nan
    gaps.iloc[9] = np.nan
    with pytest.warns(UserWarning, match="1 of 20 runs have no output at all"):
        found = emulator(way).fit(X, gaps)
    assert found.predict(NEW).shape == (5, 3)
    if way == "separate":
        assert [one.posterior_.n_runs for one in found.outputs_] == [18, 17, 19]
        rows = gaps["a"].notna()
        alone = emulator().fit(X[rows], gaps["a"][rows])
        np.testing.assert_array_equal(found["a"].predict(NEW), alone.predict(NEW))
    assert np.isfinite(found.predict_distribution(NEW).sample(3, 0)).all()


@pytest.mark.parametrize("way", WAYS)
def test_outputs_that_leave_nothing_to_learn(way: str) -> None:
    odd = Y.assign(constant=-2.5, line=3.0 + 2.0 * X[:, 0] - X[:, 1], tiny=1e-200 * Y["a"])
    # Components take what the trend explains as any other output.
    count = 1 if way == "components" else 2
    with pytest.warns(UserWarning, match=rf"{count} output\(s\) leave nothing .*: constant takes"):
        found = emulator(way).fit(X, odd)
    mean, std = found.predict(NEW, return_std=True)
    np.testing.assert_array_equal(mean[:, 3], -2.5)
    np.testing.assert_array_equal(std[:, 3], 0.0)
    np.testing.assert_allclose(mean[:, 4], 3.0 + 2.0 * NEW[:, 0] - NEW[:, 1], atol=0.02)
    np.testing.assert_allclose(mean[:, 5], 1e-200 * mean[:, 0], rtol=1e-6, atol=0.0)
    assert (std[:, 5] > 0.0).all()
    joint = found.predict_distribution(NEW)
    tiny = joint.combine({"tiny": 1.0})
    np.testing.assert_allclose(tiny.mean, mean[:, 5], rtol=0.05)
    np.testing.assert_allclose(joint.sample(3, 0)[:, :, 3], -2.5)
    assert found["constant"].predict(NEW).tolist() == [-2.5] * 5


def test_nothing_but_constants() -> None:
    with pytest.raises(ValueError, match="nothing to emulate"):  # and no word of predictions
        emulator().fit(X, np.ones((20, 2)))


def test_the_first_look_is_not_trapped_where_no_runs_are_correlated() -> None:
    """With many inputs the best of the reference's points is: a climb from there ends at -120."""
    runs = np.random.default_rng(0).random((80, 24))
    a, b, c = runs.T[:3]
    found = np.column_stack([np.sin(3.0 * a) + b**2, np.cos(3.0 * b) + c * a])
    asked = emulator()
    inputs, _, scaled, target = scaled_runs(runs, found, [f"x{i}" for i in range(24)], "ab", asked)
    pilot = look(scaled, target, inputs, asked, as_kernel(asked.kernel))
    model = ("squared_exponential", "linear", "jointly_robust")
    heights = [Posterior(scaled, y, *model)(pilot.together[None])[0] for y in target.T]
    assert np.mean(heights) > -60.0  # -9


def test_auto_says_why() -> None:
    different = emulator().fit(X, Y)
    assert different.way_ == "separate"
    assert "raise the log density" in different.why_
    points = np.linspace(0.0, 1.0, 25)
    field = np.sin(3.0 * X[:, :1] + points) * (1.0 + X[:, 1:])
    found = emulator().fit(X, field)
    assert found.way_ == "components"
    assert "too many to learn one by one" in found.why_
    assert len(found.components_) < 8
    truth = np.sin(3.0 * NEW[:, :1] + points) * (1.0 + NEW[:, 1:])
    assert np.abs(found.predict(NEW) - truth).max() < 0.05
    with pytest.raises(ValueError, match="outputs must be one of"):
        emulator("together").fit(X, Y)


@pytest.mark.parametrize("way", WAYS)
def test_files(way: str, tmp_path: Path) -> None:
    found = fitted(way)
    path = tmp_path / "outputs.h5"
    found.save(path)
    back = paims.load_emulator(path)
    assert (back.way_, back.why_, back.output_names_) == (
        found.way_,
        found.why_,
        ("a", "b", "both"),
    )
    for which in (found, back):
        which.predict(NEW)
    np.testing.assert_array_equal(back.predict(NEW), found.predict(NEW))
    a, b = (one.predict_distribution(NEW).sample(3, 4) for one in (found, back))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(back["a"].predict(NEW), found["a"].predict(NEW))


KILLED = """
    import os, sys, numpy as np, paims
    from paims.gp import Posterior
    from paims.gp._shared import SharedPosterior
    way, path, at = sys.argv[1], sys.argv[2], int(sys.argv[3])
    calls = 0
    def counting(evaluate):
        def call(self, u):
            global calls
            calls += 1
            if calls == at:
                os._exit(9)  # as a kill would: nothing is tidied up
            return evaluate(self, u)
        return call
    for cls in (Posterior, SharedPosterior):
        cls.__call__ = counting(cls.__call__)
    data = np.load(sys.argv[4])
    paims.Emulator(
        n_samples=200, prior="jointly_robust", kernel="squared_exponential", random_state=0,
        outputs=way,
    ).fit(data["X"], data["Y"], checkpoint=path, checkpoint_every=0.01)
"""


@pytest.mark.parametrize(("way", "at"), [("separate", 60), ("separate", 150), ("shared", 25)])
def test_a_killed_fit_goes_on_to_the_same_bits(way: str, at: int, tmp_path: Path) -> None:
    path, data = tmp_path / "fit.h5", tmp_path / "data.npz"
    np.savez(data, X=X, Y=Y.to_numpy())
    script = textwrap.dedent(KILLED)
    command = [sys.executable, "-W", "ignore", "-c", script, way, str(path), str(at), str(data)]
    assert subprocess.run(command, check=False).returncode == 9
    assert path.exists()
    again = emulator(way).fit(X, Y.to_numpy(), checkpoint=path)
    whole = fitted(way)
    np.testing.assert_array_equal(again.predict(NEW), whole.predict(NEW))
    for j in range(3):
        np.testing.assert_array_equal(again.outputs_[j].draws_, whole.outputs_[j].draws_)
    assert not list(tmp_path.glob("*.output*")) or way == "shared"
    with pytest.raises(CheckpointError, match="another fit: Y is"):
        emulator(way).fit(X, 2.0 * Y.to_numpy(), checkpoint=path)


def test_what_a_kill_leaves_beside_the_checkpoint_goes_and_nothing_else(tmp_path: Path) -> None:
    """Between an output that is kept and its sampler's file that is not needed any more."""
    path, beside = tmp_path / "fit.h5", tmp_path / "fit.output1.h5"
    emulator("separate").fit(X, Y, checkpoint=path)
    paims.sample(lambda x: -np.sum(x**2, axis=1), paims.Uniform([-1.0], [1.0]), checkpoint=beside)
    whole = emulator("separate").fit(X, Y, checkpoint=path)
    assert not beside.exists()
    whole.save(beside)  # A name like any other.
    emulator("separate").fit(X, Y, checkpoint=path)
    paims.load_emulator(beside)


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
@pytest.mark.parametrize("way", ["separate", "shared"])
def test_an_interruption_names_the_checkpoint_to_go_on_with(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, calls = tmp_path / "fit.h5", 0

    def interrupted(evaluate: Any) -> Any:
        def call(self: Any, u: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 150 or (calls > 20 and way == "shared"):
                signal.raise_signal(signal.SIGINT)
            return evaluate(self, u)

        return call

    with monkeypatch.context() as patch:
        for cls in (Posterior, SharedPosterior):
            patch.setattr(cls, "__call__", interrupted(cls.__call__))
        with pytest.raises(paims.emulator.FitInterrupted, match=f"checkpoint='{path}' to go on"):
            emulator(way).fit(X, Y, checkpoint=path, checkpoint_every=0.01)
    again, whole = emulator(way).fit(X, Y, checkpoint=path), fitted(way)
    np.testing.assert_array_equal(again.predict(NEW), whole.predict(NEW))


def broken() -> Future[Any]:
    """What a pool gives whose worker has died."""
    future: Future[Any] = Future()
    future.set_exception(BrokenExecutor())
    return future


KILLED_WITH_WORKERS = """
    import multiprocessing, os, signal, sys
    from concurrent.futures import ProcessPoolExecutor
    import numpy as np
    import paims
    from paims.emulator._table import _Keeper

    store = _Keeper.store

    def stored(self, i, one):
        store(self, i, one)
        print(*(child.pid for child in multiprocessing.active_children()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    _Keeper.store = stored
    data = np.load(sys.argv[2])
    paims.Emulator(
        n_samples=200, prior="jointly_robust", kernel="squared_exponential", random_state=0,
        outputs="separate",
    ).fit(data["X"], data["Y"], checkpoint=sys.argv[1], executor=lambda: ProcessPoolExecutor(2))
"""


def wait_for(condition: Callable[[], bool]) -> None:
    end = monotonic() + 60.0
    while not condition():
        assert monotonic() < end
        sleep(0.05)


def two_processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2)


class TestWorkers:
    """Outputs that are fitted apart, each by one worker."""

    @pytest.mark.parametrize("way", ["separate", "components"])
    def test_the_bits_are_those_of_one_after_the_other(self, way: str) -> None:
        gaps = Y.copy()
        gaps.iloc[3, 1] = np.nan
        here = emulator(way, n_jobs=2).fit(X, gaps)
        for executor in (two_processes, ThreadPoolExecutor(2)):
            there = emulator(way, n_jobs=2).fit(X, gaps, executor=executor)
            for a, b in zip(
                here.predict(NEW, return_std=True),
                there.predict(NEW, return_std=True),
                strict=True,
            ):
                np.testing.assert_array_equal(a, b)
            emulators = there._several.emulators
            assert [one.posterior_.n_jobs for one in emulators] == [2] * len(emulators)
            assert {p.n_jobs for one in emulators for p in one.ensemble_.posteriors} == {2}

    def test_functions_without_a_name(self) -> None:
        def fit(executor: Any) -> paims.Emulator:
            trend = lambda X: np.column_stack([np.ones(len(X)), X[:, 0]])  # noqa: E731
            return emulator("separate", mean=trend).fit(X, Y, executor=executor)

        np.testing.assert_array_equal(fit(two_processes).predict(NEW), fit(None).predict(NEW))

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_what_is_done_is_kept(
        self, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "fit.h5"
        with monkeypatch.context() as patch:
            store = _Keeper.store

            def stored(self: _Keeper, i: int, one: paims.Emulator) -> None:
                store(self, i, one)
                signal.raise_signal(number)

            patch.setattr(_Keeper, "store", stored)
            # Two of them may be done at once.
            text = rf"after (\d) of 3 outputs.*checkpoint='{path}' to go on"
            with pytest.raises(paims.emulator.FitInterrupted, match=text) as seen:
                emulator("separate").fit(X, Y, checkpoint=path, executor=two_processes)
        done = int(re.search(text, str(seen.value))[1])
        assert 1 <= done < 3
        kept = []
        with monkeypatch.context() as patch:
            patch.setattr(_Keeper, "store", lambda self, i, one: kept.append(i))
            again = emulator("separate").fit(X, Y, checkpoint=path)
        assert len(kept) == 3 - done
        np.testing.assert_array_equal(again.predict(NEW), fitted("separate").predict(NEW))
        whole = emulator("separate").fit(X, Y, checkpoint=path)  # without workers, from the same
        np.testing.assert_array_equal(again.predict(NEW), whole.predict(NEW))

    def test_a_signal_while_the_last_is_kept_is_not_lost(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path, store, kept, number = tmp_path / "fit.h5", _Keeper.store, [], signal.SIGTERM

        def stored(self: _Keeper, i: int, one: paims.Emulator) -> None:
            store(self, i, one)
            kept.append(i)
            if len(kept) == 3:
                signal.raise_signal(number)

        monkeypatch.setattr(_Keeper, "store", stored)
        before = signal.getsignal(number)
        with pytest.raises(paims.emulator.FitInterrupted, match="after 3 of 3 outputs"):
            emulator("separate").fit(X, Y, checkpoint=path, executor=two_processes)
        assert signal.getsignal(number) is before
        again = emulator("separate").fit(X, Y, checkpoint=path)
        assert len(kept) == 3
        np.testing.assert_array_equal(again.predict(NEW), fitted("separate").predict(NEW))

    def test_what_cannot_be_kept_ends_the_workers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(self: _Keeper, i: int, one: paims.Emulator) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(_Keeper, "store", full)
        before = signal.getsignal(signal.SIGINT)
        others = set(multiprocessing.active_children())  # of other tests
        with pytest.raises(OSError, match="No space left") as caught:
            emulator("separate").fit(X, Y, checkpoint=tmp_path / "f.h5", executor=two_processes)
        # Though the error, and so the frames that it went through, are still there.
        assert caught.value.__traceback__ is not None
        assert signal.getsignal(signal.SIGINT) is before
        wait_for(lambda: others.issuperset(multiprocessing.active_children()))

    def test_a_kill_leaves_no_worker_and_goes_on_to_the_same_bits(self, tmp_path: Path) -> None:
        path, data = tmp_path / "fit.h5", tmp_path / "data.npz"
        np.savez(data, X=X, Y=Y.to_numpy())
        command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(KILLED_WITH_WORKERS)]
        done = subprocess.run(
            [*command, str(path), str(data)], check=False, stdout=subprocess.PIPE, text=True
        )
        assert done.returncode == -signal.SIGKILL
        workers = [Path(f"/proc/{pid}") for pid in done.stdout.split()]
        assert len(workers) == 2
        if Path("/proc/self").exists():
            wait_for(lambda: not any(worker.exists() for worker in workers))
        again = emulator("separate").fit(X, Y.to_numpy(), checkpoint=path)
        np.testing.assert_array_equal(again.predict(NEW), fitted("separate").predict(NEW))

    def test_threads_share_the_work_on_each_output(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """They cannot be ended, so that Ctrl-C would have to wait for whole outputs."""
        monkeypatch.setattr(_apart, "FitOne", None)
        for executor in (ThreadPoolExecutor(2), lambda: ThreadPoolExecutor(2)):
            found = emulator("separate").fit(X, Y[["a", "b"]], executor=executor)
            np.testing.assert_array_equal(
                found.predict(NEW), fitted("separate").predict(NEW)[:, :2]
            )

    def test_an_output_is_kept_without_another_look_at_the_others(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_storage, "get_emulator", None)
        emulator("separate").fit(X, Y, checkpoint=tmp_path / "fit.h5")

    def test_what_cannot_be_sent_is_said(self) -> None:
        lock = threading.Lock()

        def trend(X: np.ndarray) -> np.ndarray:
            with lock:
                return np.ones((len(X), 1))

        with pytest.raises(TypeError, match="a fit of an emulator was given, cannot be sent"):
            emulator("separate", mean=trend).fit(X, Y, executor=two_processes)

    def test_a_forked_worker_does_not_wait_for_threads_that_it_has_not(self) -> None:
        """Those of OpenMP, which a fork leaves behind: with more than one it never returned."""

        def trend(X: np.ndarray) -> np.ndarray:
            if multiprocessing.parent_process() is not None:
                openmp = [one for one in threadpool_info() if one["user_api"] == "openmp"]
                if any(one["num_threads"] != 1 for one in openmp):
                    raise ValueError("OpenMP has several threads")
            return np.ones((len(X), 1))

        NearestNeighbors(algorithm="brute").fit(np.eye(600)).kneighbors(np.eye(600))  # has them
        emulator("separate", mean=trend).fit(X, Y, executor=two_processes)

    def test_a_worker_that_dies_over_and_over(self) -> None:
        def trend(X: np.ndarray) -> np.ndarray:
            if multiprocessing.parent_process() is not None:
                os._exit(1)
            return np.ones((len(X), 1))

        with pytest.raises(RuntimeError, match=r"workers that fitted (a|b|both)"):
            emulator("separate", mean=trend).fit(X, Y, executor=two_processes)

    def test_a_worker_that_is_killed_is_replaced(self, tmp_path: Path) -> None:
        mark = tmp_path / "killed"

        def trend(X: np.ndarray) -> np.ndarray:
            if multiprocessing.parent_process() is not None and not mark.exists():
                mark.touch()
                os._exit(1)
            return np.column_stack([np.ones(len(X)), X])

        found = emulator("separate", mean=trend).fit(X, Y, executor=two_processes)
        there = emulator("separate", mean=trend).fit(X, Y)
        np.testing.assert_array_equal(found.predict(NEW), there.predict(NEW))

    @pytest.mark.parametrize(
        ("gone", "outputs"), [("broken", Y), ("workers", Y), ("broken", Y["a"])]
    )
    def test_workers_that_are_gone_leave_the_checkpoint(
        self, gone: str, outputs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "fit.h5"
        pool: Any = ThreadPoolExecutor(1)
        if gone == "workers":  # of a cluster, after the first output
            monkeypatch.setattr(_cluster, "_PATIENCE", 0.3)
            monkeypatch.setattr(_cluster, "_ASK", 0.1)
            pool = FakeClient(4, [])
            text = "cluster has had no workers"
        else:
            text = "the executor that you passed cannot be used again"
            monkeypatch.setattr(pool, "submit", lambda *a, **k: broken())
        with pytest.raises(RuntimeError, match=text) as seen:
            emulator("separate").fit(X, outputs, checkpoint=path, executor=pool)
        assert str(seen.value).endswith(f" Call fit again with checkpoint={str(path)!r} to go on.")
        monkeypatch.undo()
        again = emulator("separate").fit(X, outputs, checkpoint=path).predict(NEW)
        whole = fitted("separate").predict(NEW)
        np.testing.assert_array_equal(again, whole[:, 0] if again.ndim == 1 else whole)

    def test_warnings_and_errors_are_those_of_the_output(self) -> None:
        def trend(X: np.ndarray) -> np.ndarray:
            warnings.warn("a trend of sorts", RuntimeWarning, stacklevel=2)
            return np.ones((len(X), 1))

        with pytest.warns(RuntimeWarning, match="a trend of sorts") as caught:
            emulator("separate", mean=trend).fit(X, Y, executor=two_processes)
        assert len(caught) >= 3
        few = Y.copy()
        few.iloc[3:, 2] = np.nan
        with pytest.raises(ValueError, match="Output both: Found n_samples=3"):
            emulator("separate").fit(X, few, executor=two_processes)

    @pytest.mark.filterwarnings("error::paims.emulator.VeryLongFitWarning")
    def test_the_time_is_said_before_it_is_spent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(_forecast, "VERY_LONG", 1e-3)
        monkeypatch.setattr(_forecast, "_LONG", 1e-3)
        with pytest.raises(paims.emulator.VeryLongFitWarning, match="will take about"):
            emulator("separate").fit(X, Y, executor=two_processes)


@pytest.mark.filterwarnings("error::paims.emulator.VeryLongFitWarning")
@pytest.mark.parametrize("way", ["auto", *WAYS])
def test_the_time_is_said_before_the_first_look(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: Any) -> None:
        raise AssertionError("a first look of minutes was begun")

    monkeypatch.setattr(_several, "look", look)
    monkeypatch.setattr(_shared_fit, "look", look)
    monkeypatch.setattr(_forecast, "VERY_LONG", 1e-3)
    monkeypatch.setattr(_forecast, "_LONG", 1e-3)
    with pytest.raises(paims.emulator.VeryLongFitWarning, match="will take about"):
        emulator(way).fit(X, Y, checkpoint=tmp_path / "fit.h5")
    assert not list(tmp_path.iterdir())


def test_scaled_outputs_give_scaled_predictions() -> None:
    scalings = [OutputScaling(0, 0.0, 1.0), OutputScaling(-900, 0.0, 1.0)]
    parts = [
        MixturePrediction(np.zeros((1, 2)), np.ones((1, 2)), np.ones(1), np.inf, scaling)
        for scaling in scalings
    ]
    joint = JointPrediction(parts, OutputMap(("p", "q"), scalings, np.eye(2)))
    both = joint.combine([2.0**-900, 1.0])
    np.testing.assert_allclose(both.std, np.sqrt(2.0) * 2.0**-900, rtol=1e-12)
    with pytest.raises(ValueError, match="weights must be 2 finite numbers"):
        joint.combine([1.0, 2.0, 3.0])


def test_a_field_with_gaps_is_learnt_nearly_as_well_as_without() -> None:
    random = np.random.default_rng(3)
    points, at = random.random((60, 2)), np.linspace(0.0, 1.0, 50)
    field = np.exp(-((at - points[:, :1]) ** 2) / 0.18) * (1.0 + points[:, 1:])
    field += np.sin(5.0 * points[:, :1] * points[:, 1:] + 3.0 * at)
    gaps = np.where(random.random((40, 50)) < 0.1, np.nan, field[:40])
    error = []
    for known in (field[:40], gaps):
        found = emulator("components").fit(points[:40], known)
        error.append(np.sqrt(np.mean((found.predict(points[40:]) - field[40:]) ** 2)))
    assert error[1] < 1.5 * error[0]
    assert f"{np.isnan(gaps).sum()} missing values were filled in" in found.why_


def test_errors_name_the_output() -> None:
    few = Y.assign(b=np.where(np.arange(20) < 4, Y["b"], np.nan))
    for way in ("auto", "separate", "shared"):
        with pytest.raises(ValueError, match=r"Output b: Found n_samples=4 run\(s\), too few"):
            emulator(way).fit(X, few)
    endless = Y.assign(b=np.where(np.arange(20) == 3, np.inf, Y["b"]))
    with pytest.raises(ValueError, match=r"contains infinity: output b in 1 run\(s\), row 3"):
        emulator().fit(X, endless)
    twice = pd.DataFrame(Y.to_numpy(), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="several columns of the name 'a'"):
        emulator().fit(X, twice)
    nothing = Y.assign(b=np.nan)
    with pytest.raises(ValueError, match="Output b has no run with a value"):
        emulator().fit(X, nothing)


def test_many_long_fits_take_fewer_points() -> None:
    asked = paims.Emulator()
    for few in ((8, 500, 21), (26, 200, 21)):
        assert fewer_points(asked, *few) is asked
    assert fewer_points(asked, 26, 500, 21).n_samples == 460
    assert fewer_points(asked, 26, 500, 3).n_samples == 400
    assert (asked.n_samples, asked.scheme) == (None, "default")
    assert fewer_points(emulator(), 26, 500, 21).n_samples == 200
    # Larger steps where chains follow gradients, of the default scheme only.
    assert fewer_points(asked, 26, 500, 21).scheme.effective_share == 0.2
    assert fewer_points(asked, 26, 500, 3).scheme == "default"
    assert fewer_points(paims.Emulator(scheme="paper"), 26, 500, 21).scheme == "paper"


def test_many_components_take_fewer_points() -> None:
    """Of few runs too: none of them counts for much."""
    assert of_many(paims.Emulator(), 9, 2).n_samples == 400
    assert of_many(paims.Emulator(), 8, 2).n_samples is None


def test_little_is_left_over_of_runs_that_are_new() -> None:
    """What the components do not explain of the runs they are made of says little of others."""
    runs = np.random.default_rng(1).random((60, 1))
    fields = np.exp(-((15.0 * (np.linspace(0.0, 1.0, 60) - runs)) ** 2))  # a wave that travels
    settings = {"mean": "constant", "n_samples": 60, "nugget": 1e-6}
    mapping = emulator("components", **settings).fit(runs[:40], fields[:40])._several.mapping
    scaled = np.column_stack(
        [scaling.apply(y) for scaling, y in zip(mapping.scalings, fields[40:].T, strict=True)]
    )
    left = scaled - scaled @ mapping.loadings.T @ mapping.loadings
    assert np.sqrt(np.mean(left**2)) < 0.03  # 0.0206; 0.053 with 99.98 % explained


def test_a_table_without_columns() -> None:
    with pytest.raises(ValueError, match="y has no columns"):
        emulator().fit(X, Y[[]])


def test_fifty_outputs_with_gaps_are_covered() -> None:
    """Held-out outputs lie in their intervals, and not in those of a fit that hears no noise."""
    random = np.random.default_rng(1)
    points = random.random((60, 2))
    hidden = [np.sin(4.0 * points[:, 0]), points[:, 0] * points[:, 1], np.cos(3.0 * points[:, 1])]
    truth = np.column_stack(hidden) @ random.standard_normal((3, 50))
    noisy = truth + 0.1 * random.standard_normal(truth.shape)
    gaps = np.where(random.random((30, 50)) < 0.1, np.nan, noisy[:30])
    found = emulator("components").fit(points[:30], gaps)
    joint = found.predict_distribution(points[30:])
    lower, upper = joint.interval()
    inside = np.mean((lower <= noisy[30:]) & (noisy[30:] <= upper))
    assert 0.91 < inside < 0.985
    mapping = replace(found._several.mapping, noise=None)
    quiet = replace(found._several, mapping=mapping).joint(points[30:], include_nugget=False)
    lower, upper = quiet.interval()
    assert np.mean((lower <= noisy[30:]) & (noisy[30:] <= upper)) < 0.85


@pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
def test_lines_of_progress_name_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    kernels = ["squared_exponential", "matern52"]
    emulator("separate", n_samples=100, kernel=kernels, progress=True).fit(X, Y[["a", "b"]])
    told = capsys.readouterr().err
    for line in ("a (1 of 2): squared_exponential", "b (2 of 2): matern52"):
        assert f"{line}: log evidence" in told


@pytest.mark.parametrize("unit", [1e200, 1e-160])
def test_checks_do_not_depend_on_the_unit(unit: float) -> None:
    """Of fields neither, whose squares are beyond double precision."""

    def scores(unit: float) -> list[tuple[float, float, float]]:
        found = emulator("components").fit(X, unit * Y)
        checked = check_outputs(found, (NEW, unit * outputs(NEW).to_numpy()))
        return [(one.scores.q2, one.scores.crps / unit, one.scores.coverage_95) for one in checked]

    np.testing.assert_allclose(scores(unit), scores(1.0), rtol=1e-6)
