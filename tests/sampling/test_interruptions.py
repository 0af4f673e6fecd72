"""Signals are taken where nothing is lost by it: what is returned, and what is resumed from.

The signals are sent from inside the run, at chosen moments, so that no clock is involved;
`python -m benchmarks.kills` sends them from outside, at random ones.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest
from tests.sampling.hurting import Floats, SwallowingSignals, two_modes
from tests.sampling.test_checkpoint import assert_same

import paims
from paims import _parallel, gp
from paims.sampling import DensityError, SampleResult
from paims.sampling._interruptions import Interruptions

BOX = paims.Uniform([-2.0, -2.0], [2.0, 2.0])
FORKED = partial(ProcessPoolExecutor, 2, mp_context=get_context("fork"))

pytestmark = [
    pytest.mark.filterwarnings("ignore::paims.SamplingWarning"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]


def sample(density: Any = two_modes, path: Path | None = None, **options: Any) -> SampleResult:
    options = {"n_samples": 200, "random_state": 3, "progress": False, **options}
    return paims.sample(density, BOX, checkpoint=path, **options)


@pytest.fixture(scope="module")
def whole() -> SampleResult:
    """The run that nothing disturbs."""
    return sample()


@contextmanager
def signalled(name: str, at: int, number: int = signal.SIGINT) -> Iterator[list[int]]:
    """Send a signal to this process in the middle of the n-th call of a function.

    Yields a list with the number of calls so far.
    """
    module, _, attribute = name.rpartition(".")
    calls = [0]
    with pytest.MonkeyPatch.context() as patch:
        owner = resolve_name(module)
        function = getattr(owner, attribute)

        def counted(*arguments: Any, **options: Any) -> Any:
            calls[0] += 1
            if calls[0] == at:
                os.kill(os.getpid(), number)
            return function(*arguments, **options)

        patch.setattr(owner, attribute, counted)
        yield calls


STEPS = {
    "recycling in a round": ("paims.sampling._run.recycle", 1),
    "search": ("paims.sampling._level.search", 1),
    "climb": ("paims.sampling._search.climb", 1),
    "clusters": ("paims.sampling._markers.fit_clusters", 3),
    "assembly": ("paims.sampling._run.assemble", 1),
    "recycling in the assembly": ("paims.sampling._assembly.recycle", 1),
    "a new mixture": ("paims.sampling._level.marker_mixtures", 4),
    "second stage": ("paims.sampling._sweeps._sweep", 2),
    "level 0": ("paims.sampling._level.require_alive", 1),
    "a write": ("paims._sealed.os.fsync", 3),
    "a rename": ("paims._sealed.os.replace", 3),
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("step", STEPS)
def test_a_signal_in_any_step(step: str, number: int, whole: SampleResult, tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with signalled(*STEPS[step], number) as calls:
        part = sample(path=path)
    assert calls[0] >= STEPS[step][1]
    assert part.status.name == "interrupted"
    assert len(part.draws) > 0
    assert_same(whole, sample(path=path))


@pytest.mark.parametrize("step", ["recycling in the assembly", "a rename"])
@pytest.mark.parametrize("options", [{"goal": "optimum"}, {"scheme": "paper", "n_samples": 500}])
def test_a_signal_with_other_goals(step: str, options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    with signalled(*STEPS[step]) as calls:
        part = sample(path=path, **options)
    assert (part.status.name == "interrupted") == (calls[0] > 0)  # the paper's recycles nothing
    assert_same(sample(**options), sample(path=path, **options))


def test_a_signal_while_the_pool_is_closed() -> None:
    """The result is there by then."""
    with signalled("paims.sampling._workers.Pool.close", 1):
        result = sample(executor=partial(ThreadPoolExecutor, 2))
    assert result.status.name == "interrupted"
    assert len(result.draws) > 0


def test_a_signal_that_the_density_swallows(whole: SampleResult, tmp_path: Path) -> None:
    """What a bare except makes of it, zero density, is no value of the density."""
    path = tmp_path / "run.h5"
    part = sample(SwallowingSignals(9), path)
    assert part.status.name == "interrupted"
    assert_same(whole, paims.resume(path, two_modes, progress=False))


def test_a_signal_that_a_density_in_a_worker_would_swallow(
    whole: SampleResult, tmp_path: Path
) -> None:
    """A terminal sends Ctrl-C to the workers too."""
    assert_same(whole, sample(SwallowingSignals(3), executor=FORKED))
    with FORKED() as pool:
        assert_same(whole, sample(SwallowingSignals(3), executor=pool))


class Submitting(Executor):
    """An executor that would be broken by an exception in its own code."""

    def __init__(self, at: int) -> None:
        self.at, self.calls, self.inside = at, 0, 0

    def submit(self, fn: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        self.calls += 1
        self.inside += 1
        if self.calls == self.at:
            os.kill(os.getpid(), signal.SIGINT)
        future: Future[Any] = Future()
        future.set_result(fn(*arguments, **options))
        self.inside -= 1
        return future


def test_a_signal_inside_an_executor(whole: SampleResult, tmp_path: Path) -> None:
    """Raised there it would leave the pool with two tasks of one number, or a lock that is held.

    With a pool of Python's own: the next tasks were given the results of others, or none.
    """
    path = tmp_path / "run.h5"
    executor = Submitting(20)
    part = sample(path=path, executor=executor)
    assert part.status.name == "interrupted"
    assert executor.inside == 0
    assert_same(whole, sample(path=path, executor=executor))


@pytest.mark.parametrize("ours", [True, False], ids=["factory", "own pool"])
def test_a_pool_after_a_signal_in_its_own_code(
    ours: bool, whole: SampleResult, tmp_path: Path
) -> None:
    path = tmp_path / "run.h5"
    with FORKED() as pool:
        pool.submit(int).result()
        put, n_tasks = pool._work_ids.put, [0]  # type: ignore[attr-defined]

        def putting(number: int) -> None:
            put(number)
            n_tasks[0] += 1
            if n_tasks[0] == 30:
                os.kill(os.getpid(), signal.SIGINT)

        pool._work_ids.put = putting  # type: ignore[attr-defined]
        part = sample(path=path, executor=(lambda: pool) if ours else pool)
        assert part.status.name == "interrupted"
        again = FORKED if ours else pool
        assert_same(whole, sample(path=path, executor=again, batch_timeout=60.0))


class Signalling:
    """Sends a signal to the worker that it is evaluated in, once."""

    def __init__(self, done: Path, number: int) -> None:
        self.done, self.number, self.home, self.calls = done, number, os.getpid(), 0

    def __call__(self, x: Floats) -> Floats:
        self.calls += 1
        if os.getpid() != self.home and self.calls >= 4 and not self.done.exists():
            self.done.touch()
            os.kill(os.getpid(), self.number)
            time.sleep(0.01)
        return two_modes(x)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_one_worker(number: int, whole: SampleResult, tmp_path: Path) -> None:
    density = Signalling(tmp_path / "done", number)
    assert_same(whole, sample(density, executor=FORKED))
    assert density.done.exists()


def test_the_keyboard_waits_while_workers_start(whole: SampleResult) -> None:
    """Else it hits one that is still at its imports, which ends with a traceback on the screen."""

    def held() -> bool:
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())

    seen = []

    class Pool(ProcessPoolExecutor):
        def submit(self, *arguments: Any, **options: Any) -> Future[Any]:  # type: ignore[override]
            seen.append(held())
            return super().submit(*arguments, **options)

    def density(x: Floats) -> Floats:
        assert not held()
        return two_modes(x)

    assert_same(whole, sample(density, executor=lambda: Pool(2, mp_context=get_context("fork"))))
    assert seen
    assert all(seen)
    assert not held()


def test_a_signal_to_one_worker_of_a_pool_that_cannot_be_replaced(
    whole: SampleResult, tmp_path: Path
) -> None:
    density = Signalling(tmp_path / "done", signal.SIGINT)
    with FORKED() as pool:
        assert_same(whole, sample(density, executor=pool))
    assert density.done.exists()
    path = tmp_path / "run.h5"
    density = Signalling(tmp_path / "again", signal.SIGTERM)
    with FORKED() as pool, pytest.raises(DensityError, match=r"function that makes one.*run\.h5"):
        sample(density, path, executor=pool)
    assert_same(whole, sample(path=path))


def test_a_worker_that_exits_is_tried_again() -> None:
    with pytest.raises(DensityError, match=r"lost by the workers 3 times.*sys.exit"):
        sample(lambda x: sys.exit(1), executor=partial(ThreadPoolExecutor, 1))


def test_the_last_interruption_is_not_lost() -> None:
    """One that comes when all is done is in the result, or raised."""
    with signalled("paims.sampling._run.ProgressLine.__exit__", 1):
        assert sample().status.name == "interrupted"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_limits_of_blas_are_lifted_after_an_interruption() -> None:
    before = [library.num_threads for library in _parallel._blas_libraries()]
    for name in ("enter", "leave"):
        with pytest.MonkeyPatch.context() as patch:
            method = getattr(_parallel._Limit, name)

            def interrupted(*who: Any, method: Callable[..., None] = method) -> None:
                method(*who)
                raise KeyboardInterrupt

            patch.setattr(_parallel._Limit, name, interrupted)
            with pytest.raises(KeyboardInterrupt), _parallel.single_threaded_blas():
                pass
        with _parallel.single_threaded_blas():
            pass
        assert [library.num_threads for library in _parallel._blas_libraries()] == before
        assert not _parallel._LIMIT._inside


ORPHANS = """
import os, signal, sys, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import paims
from tests.sampling.hurting import Noting

folder, method = sys.argv[1:]
box = paims.Uniform([-2.0, -2.0], [2.0, 2.0])
make = lambda: ProcessPoolExecutor(2, mp_context=get_context(method))
if __name__ == "__main__":
    paims.sample(Noting(folder), box, 200, random_state=3, progress=False, executor=make)
"""


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_killed_parent_leaves_no_workers(method: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ORPHANS)
    notes = tmp_path / "notes"
    notes.mkdir()
    parent = subprocess.Popen(
        [sys.executable, str(script), str(notes), method],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        _wait(lambda: len(list(notes.iterdir())) == 2)
    finally:
        parent.kill()
        parent.wait()
    workers = [int(note.name) for note in notes.iterdir()]
    assert parent.pid not in workers
    _wait(lambda: not any(_alive(worker) for worker in workers))


def _wait(there: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # a zombie that nobody has buried is not alive
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


class TestEmulator:
    X = np.linspace(0.0, 3.0, 12)[:, None]
    y = np.sin(2.0 * X[:, 0])

    STEPS = (
        ("paims.emulator._fit.find_best", 1),
        ("paims.emulator._fit.ensemble_of_draws", 1),
        ("paims.emulator._fit.connect_modes", 1),
        ("paims.emulator._estimator.Fit.trend_and_variance", 1),
        ("paims.sampling._assembly.recycle", 2),  # in the second comparison
    )

    @pytest.mark.parametrize(("name", "at"), STEPS)
    def test_fit(self, name: str, at: int, tmp_path: Path) -> None:
        """An emulator that was fitted before stays as it was; the fit goes on to the same end."""
        path = tmp_path / "fit.h5"
        options: dict[str, Any] = {"n_samples": 200, "random_state": 0}
        if at == 2:
            options["kernel"] = ["matern52", "matern32"]
        emulator = paims.Emulator(**options).fit(self.X[:10], self.y[:10])
        before = dict(vars(emulator))
        with signalled(name, at) as calls, pytest.raises(KeyboardInterrupt):
            emulator.fit(np.hstack([self.X, self.X**2]), self.y, checkpoint=path)
        assert calls[0] >= at
        assert vars(emulator) == before
        emulator.predict(self.X)
        emulator.fit(np.hstack([self.X, self.X**2]), self.y, checkpoint=path)
        fresh = paims.Emulator(**options).fit(np.hstack([self.X, self.X**2]), self.y)
        assert_same(emulator.result_, fresh.result_)
        np.testing.assert_array_equal(emulator.ensemble_.draws, fresh.ensemble_.draws)

    def test_compress(self) -> None:
        emulator = paims.Emulator(n_samples=200, random_state=0).fit(self.X, self.y)
        before = dict(vars(emulator))
        with (
            signalled("paims.emulator._estimator.compress", 1),
            pytest.raises(KeyboardInterrupt),
        ):
            emulator.compress(3)
        assert vars(emulator) == before


def test_other_threads_do_not_touch_signals() -> None:
    found: list[SampleResult] = []
    thread = threading.Thread(target=lambda: found.append(sample()))
    thread.start()
    thread.join()
    assert found[0].status.name == "converged"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_long_batch_is_left_in_the_middle(number: int) -> None:
    """Some hundreds of runs with the information matrix: a point alone takes a while."""
    rng = np.random.default_rng(0)
    X = rng.random((300, 20))
    posterior = gp.Posterior(X, np.sin(X @ np.arange(20.0) / 5.0), prior="reference")
    u = np.tile(posterior.from_physical(np.full((1, 20), 2.0), np.array([1e-3])), (64, 1))
    posterior(u[:2])
    start = time.monotonic()
    posterior(u[:2])
    whole = (time.monotonic() - start) * 32
    with Interruptions() as interruptions:
        timer = threading.Timer(0.02 * whole, os.kill, (os.getpid(), number))
        start = time.monotonic()
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            interruptions.let_into(posterior, u)
    assert time.monotonic() - start < 0.5 * whole
