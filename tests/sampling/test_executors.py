"""Wherever the density is evaluated, the draws are the same to the bit; workers may die."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from tests.sampling.hurting import Fatal, Floats, Hanging, OnceFatal, raising, single, two_modes
from tests.sampling.test_checkpoint import assert_same

import paims
from paims import gp
from paims.inference import density as density_of
from paims.sampling import DensityError, SampleResult, _shipping
from paims.sampling._density import Density
from paims.sampling._shipping import Shipment, evaluate_shipped
from paims.sampling._workers import Pool, Workers, evaluating, with_retries

BOX = paims.Uniform([-2.0, -2.0], [2.0, 2.0])

# Workers that share nothing with this process: neither threads nor locks nor densities. They come
# from a server that has imported what they need.
CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(["paims.sampling._workers", "tests.sampling.hurting"])
processes = partial(ProcessPoolExecutor, 2, mp_context=CONTEXT)


def sample(density: Any = two_modes, **options: Any) -> SampleResult:
    options = {"n_samples": 200, "random_state": 3, "progress": False, **options}
    return paims.sample(density, BOX, **options)


@pytest.fixture(scope="module")
def alone() -> SampleResult:
    """The run in this process."""
    return sample()


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with processes() as made:
        yield made


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


class TestSame:
    def test_threads(self, alone: SampleResult) -> None:
        with ThreadPoolExecutor(3) as threads:
            assert_same(alone, sample(executor=threads))

    def test_processes(self, alone: SampleResult, pool: ProcessPoolExecutor) -> None:
        assert_same(alone, sample(executor=pool))

    def test_a_density_without_a_name(
        self, alone: SampleResult, pool: ProcessPoolExecutor
    ) -> None:
        assert_same(alone, sample(lambda x: 1.0 * two_modes(x), executor=pool))

    def test_joblib(self, alone: SampleResult) -> None:
        assert_same(alone, sample(executor=joblib.Parallel(n_jobs=2)))
        assert_same(alone, sample(executor=joblib.Parallel(n_jobs=2, backend="threading")))

    def test_dask(self, alone: SampleResult, client: Any) -> None:
        assert_same(alone, sample(executor=client))

    def test_single_points_and_an_optimum(self, pool: ProcessPoolExecutor) -> None:
        options = {"vectorized": False, "goal": "optimum"}
        assert_same(sample(single, **options), sample(single, executor=pool, **options))

    @pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
    def test_other_executors_may_go_on_with_a_run(
        self, alone: SampleResult, pool: ProcessPoolExecutor, client: Any, tmp_path: Path
    ) -> None:
        path = tmp_path / "run.h5"
        sample(executor=pool, checkpoint=path, max_evaluations=500)
        paims.resume(path, two_modes, executor=client, max_evaluations=900)
        assert_same(alone, paims.resume(path, two_modes))

    def test_emulator(self, pool: ProcessPoolExecutor) -> None:
        X = np.linspace(0.0, 3.0, 12)[:, None]
        y = np.sin(2.0 * X[:, 0])
        one, two = (paims.Emulator(n_samples=200, random_state=0) for _ in range(2))
        assert_same(one.fit(X, y).result_, two.fit(X, y, executor=pool).result_)


@pytest.mark.parametrize("prior", ["reference", "jointly_robust", "flat"])
@pytest.mark.parametrize(("n", "p"), [(12, 2), (40, 3)])
def test_posterior_of_a_point_does_not_depend_on_its_batch(prior: str, n: int, p: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((n, p))
    density = density_of(gp.Posterior(X, np.sin(X @ np.arange(1, p + 1)), prior=prior))
    u = rng.normal(size=(101, p + 1)) * 3.0
    whole = density(u)
    assert np.isfinite(whole).sum() > 50
    for cuts in ([1, 2, 3], [37], [16, 64], list(range(0, 101, 7))):
        parts = np.split(u, cuts)
        pieces = np.concatenate([density(part) for part in parts if len(part)])
        assert pieces.tobytes() == whole.tobytes()


class TestPieces:
    """How a batch is split, with a pool that only notes what it is given."""

    class Noting:
        """A pool."""

        n_workers = 2

        def __init__(self, cost: float) -> None:
            self.cost, self.sizes = cost, list[int]()

        def run(self, density: Density, pieces: list[Floats], timeout: float | None) -> Any:
            self.sizes = [len(piece) for piece in pieces]
            for i in reversed(range(len(pieces))):
                answer = density(pieces[i])
                answer.seconds = self.cost * len(pieces[i])
                yield i, answer

        def close(self) -> None: ...

    def sizes(self, cost: float, n: int, every: float | None = None) -> list[int]:
        noting = self.Noting(cost)
        workers = Workers(noting, every, None)
        theta, density = np.arange(float(n))[:, None], Density(lambda x: x[:, 0])
        for _ in range(2):  # the first measures the cost
            values = np.full(n, np.nan)
            for rows, answer in workers(density, theta):
                values[rows] = answer.values
            np.testing.assert_array_equal(values, theta[:, 0])
        return noting.sizes

    def test_costly_points_keep_all_workers_busy_to_the_end(self) -> None:
        assert self.sizes(1.0, 80) == [10] * 8

    def test_cheap_points_go_in_few_pieces(self) -> None:
        assert self.sizes(1e-6, 80) == [40, 40]
        assert self.sizes(0.05 / 25, 100) == [25] * 4

    def test_few_points(self) -> None:
        assert self.sizes(1.0, 3) == [1, 1, 1]

    def test_pieces_are_short_enough_to_be_saved(self) -> None:
        assert self.sizes(10.0, 80, every=25.0) == [2] * 40


def test_the_density_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    shipment = Shipment(Density(two_modes))
    monkeypatch.setattr(_shipping, "_received", {})
    x = np.zeros((3, 2))
    assert evaluate_shipped(shipment.name, None, x) is None
    first = evaluate_shipped(shipment.name, shipment.content, x)
    again = evaluate_shipped(shipment.name, None, x)
    assert first is not None
    assert again is not None
    np.testing.assert_array_equal(first.values, again.values)
    for i in range(10):  # a worker that lives long does not keep what nobody asks for
        evaluate_shipped(str(i), shipment.content, x)
    assert len(_shipping._received) <= 4


class TestDeath:
    def test_of_a_process(self, alone: SampleResult, tmp_path: Path) -> None:
        density = OnceFatal(tmp_path / "died")
        assert_same(alone, sample(density, executor=processes))
        assert density.done.exists()

    def test_of_a_worker_of_joblib(self, alone: SampleResult, tmp_path: Path) -> None:
        density = OnceFatal(tmp_path / "died")
        assert_same(alone, sample(density, executor=joblib.Parallel(n_jobs=2)))
        assert density.done.exists()

    def test_of_a_worker_of_dask(self, alone: SampleResult, client: Any, tmp_path: Path) -> None:
        density = OnceFatal(tmp_path / "died")
        assert_same(alone, sample(density, executor=client))
        assert density.done.exists()

    def test_of_an_executor_that_cannot_be_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "run.h5"
        with processes() as pool, pytest.raises(DensityError, match="function that makes one"):
            sample(OnceFatal(tmp_path / "died"), executor=pool, checkpoint=path)
        assert_same(sample(), paims.resume(path, two_modes))

    def test_of_three_is_reported_with_the_points(self) -> None:
        with pytest.raises(DensityError, match="3 workers died while evaluating") as seen:
            sample(Fatal(), executor=processes)
        assert np.any(seen.value.points[:, 0] > 0.6)
        assert len(seen.value.points) <= 50


class TestRetries:
    """A pool that breaks does not say which of its pieces broke it."""

    PIECES = tuple(np.full((2, 1), float(i)) for i in range(4))
    DENSITY = Density(lambda x: x[:, 0])

    def run(self, breaking: int, error: type[BaseException]) -> tuple[list[int], list[list[int]]]:
        """Numbers of the pieces that are evaluated, and the groups that were tried."""
        groups: list[list[int]] = []

        def run(group: list[int]) -> Iterator[tuple[int, Any]]:
            groups.append(list(group))
            if breaking in group:
                raise error
            yield from ((i, self.DENSITY(self.PIECES[i])) for i in group)

        done = []
        try:
            for i, _ in with_retries(list(self.PIECES), run, lambda: None):
                done.append(i)
        except DensityError as found:
            np.testing.assert_array_equal(found.points, self.PIECES[breaking])
            self.text = str(found)
        return done, groups

    def test_the_guilty_piece_is_found_and_the_others_are_evaluated(self) -> None:
        done, groups = self.run(2, BrokenExecutor)
        assert "3 workers died" in self.text
        assert done == [0, 1]
        assert groups == [[0, 1, 2, 3], [0, 1, 2, 3], [0], [1], [2]]

    def test_what_a_cluster_loses(self) -> None:
        done, _ = self.run(1, CancelledError)
        assert "were lost by the workers 3 times" in self.text
        assert done == [0]


class OfMPI(Executor):
    """Says how many workers it has as mpi4py's executor does."""

    num_workers = 3

    def submit(self, fn: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*arguments, **options))
        return future


def test_an_executor_of_ones_own(alone: SampleResult) -> None:
    assert Pool(OfMPI()).n_workers == 3
    assert_same(alone, sample(executor=OfMPI()))


class KilledWorker(Exception):
    """As Dask calls it."""


def test_a_scheduler_that_gives_up() -> None:
    class GivesUp(OfMPI):
        def submit(self, fn: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(KilledWorker())
            return future

    with pytest.raises(DensityError, match="as many workers as the scheduler allows died"):
        sample(executor=GivesUp())


class TestErrors:
    def test_exception_in_a_worker(self, pool: ProcessPoolExecutor, client: Any) -> None:
        for executor in (pool, client, joblib.Parallel(n_jobs=2)):
            with pytest.raises(DensityError, match="ZeroDivisionError: the mesh") as seen:
                sample(raising, executor=executor)
            assert seen.value.points.shape == (1, 2)
            assert seen.value.points[0, 0] > 0.6

    @pytest.mark.filterwarnings("ignore::paims.SamplingWarning")
    def test_rejected_in_a_worker(self, pool: ProcessPoolExecutor) -> None:
        alone = sample(raising, on_error="reject")
        assert_same(alone, sample(raising, on_error="reject", executor=pool))

    def test_wrong_shape_in_a_worker(self, pool: ProcessPoolExecutor) -> None:
        with pytest.raises(ValueError, match="log_density must return shape"):
            sample(np.sin, executor=pool)

    def test_density_that_cannot_be_sent(self, pool: ProcessPoolExecutor) -> None:
        lock = threading.Lock()
        with pytest.raises(TypeError, match=r"cannot be sent to other processes.*top of a module"):
            sample(lambda x: lock and two_modes(x), executor=pool)

    @pytest.mark.parametrize("executor", [3, "processes", ProcessPoolExecutor])
    def test_unknown_executor(self, executor: Any) -> None:
        with pytest.raises(TypeError, match=r"executor must be None, a concurrent.futures"):
            sample(executor=executor)

    def test_factory_of_something_else(self) -> None:
        with pytest.raises(TypeError, match="it returned 3"):
            sample(executor=lambda: 3)

    def test_no_timeout_with_joblib(self) -> None:
        with pytest.raises(ValueError, match=r"joblib.Parallel\(..., timeout=5\)"):
            sample(executor=joblib.Parallel(n_jobs=2), batch_timeout=5.0)


class TestHanging:
    """The timeout is generous to what does not hang, and nothing to what does."""

    def test_in_this_process(self, alone: SampleResult, tmp_path: Path) -> None:
        path = tmp_path / "run.h5"
        with pytest.raises(DensityError, match=r"did not return within batch_timeout=3") as seen:
            sample(Hanging(6), batch_timeout=3.0, checkpoint=path)
        assert len(seen.value.points) > 1
        assert_same(alone, paims.resume(path, two_modes))

    def test_in_a_process(self) -> None:
        with pytest.raises(DensityError, match=r"did not return within batch_timeout=5"):
            sample(Hanging(3), batch_timeout=5.0, executor=processes)

    def test_what_returns_in_time_is_untouched(
        self, alone: SampleResult, pool: ProcessPoolExecutor
    ) -> None:
        assert_same(alone, sample(batch_timeout=600.0))
        assert_same(alone, sample(batch_timeout=600.0, executor=pool))

    def test_errors_are_those_of_the_density(self) -> None:
        with pytest.raises(DensityError, match="the mesh is folded"):
            sample(raising, batch_timeout=600.0)


def test_an_executor_that_was_made_here_is_shut_down() -> None:
    made = []

    def make() -> ThreadPoolExecutor:
        made.append(ThreadPoolExecutor(1))
        return made[-1]

    sample(executor=make)
    with pytest.raises(RuntimeError, match="after shutdown"):
        made[0].submit(int)


def test_the_users_executor_is_left_open() -> None:
    with ThreadPoolExecutor(1) as threads:
        with evaluating(threads, None, None):
            pass
        assert threads.submit(int).result() == 0
