"""A Dask cluster that goes away: a line on the screen, some patience, and an error of our own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.sampling.hurting import Floats, two_modes
from tests.sampling.test_checkpoint import assert_same
from tests.sampling.test_executors import OfMPI

import paims
from benchmarks import kills
from paims.sampling import DensityError, SampleResult, _cluster

BOX = paims.Uniform([-2.0, -2.0], [2.0, 2.0])


def sample(density: Any = two_modes, path: Path | None = None, **options: Any) -> SampleResult:
    options = {"n_samples": 200, "random_state": 3, "progress": False, **options}
    return paims.sample(density, BOX, checkpoint=path, **options)


def led(path: Path | None = None, executor: Any = None) -> SampleResult:
    return kills.run("lead and gradients", None if path is None else str(path), executor)


class FakeClient:
    """Has a client's methods; its workers go and come as the test says."""

    __module__ = "distributed.client"
    status = "running"

    def __init__(self, after: int, answers: list[int]) -> None:
        self.after, self.answers, self.n_tasks = after, answers, 0

    def nthreads(self) -> dict[str, int]:
        if self.n_tasks < self.after:
            return {"a": 2}
        return {"a": self.answers.pop(0)} if self.answers else {}

    def get_executor(self, pure: bool) -> Any:
        client = self

        class Fake(OfMPI):
            def submit(self, fn: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
                client.n_tasks += 1
                if client.n_tasks == client.after:
                    future: Future[Any] = Future()
                    future.set_exception(OSError("Timed out trying to connect to tcp://x"))
                    return future
                return super().submit(fn, *arguments, **options)

        return Fake()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cluster, "_PATIENCE", 1.0)
    monkeypatch.setattr(_cluster, "_ASK", 0.1)


def test_workers_that_come_back(hurried: None, capsys: pytest.CaptureFixture[str]) -> None:
    client = FakeClient(30, [0, 0, 2, *[2] * 1000])
    assert_same(sample(), sample(executor=client))
    assert client.n_tasks > 30
    said = capsys.readouterr().err
    assert (
        said.count("paims: the Dask cluster has no workers, or does not answer; waiting 1 s") == 1
    )


def test_a_density_that_raises_is_no_lost_cluster(hurried: None) -> None:
    def raising(x: Floats) -> Floats:
        raise ZeroDivisionError("folded")

    with pytest.raises(DensityError, match="folded"):
        sample(raising, executor=FakeClient(10**9, []))


class TestGone:
    @pytest.fixture
    def cluster(self) -> Iterator[Any]:
        distributed = pytest.importorskip("distributed")
        made = distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        )
        yield made
        with suppress(TimeoutError):  # one without a scheduler does not close in order
            made.close(timeout=1.0)
        # ... and would complain of it in whatever test happens to collect it.
        made.status = distributed.core.Status.closed

    @pytest.mark.filterwarnings("ignore")
    @pytest.mark.parametrize(
        ("what", "run", "at"),
        [
            ("workers", sample, 3),
            ("client", sample, 3),
            ("scheduler", sample, 3),
            # On the leg of the lead, by its gradients, and on that of the density.
            ("workers", led, 8),
            ("scheduler", led, 17),
        ],
    )
    def test_for_good(
        self, what: str, run: Any, at: int, cluster: Any, hurried: None, tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
    ) -> None:  # fmt: skip
        distributed = pytest.importorskip("distributed")
        path = tmp_path / "run.h5"
        client = distributed.Client(cluster, set_as_default=False)
        end = {
            "workers": lambda: cluster.scale(0),
            "client": client.close,
            "scheduler": lambda: cluster.sync(cluster.scheduler.close),
        }[what]
        levels = 0
        write = paims.sampling._checkpoint.Checkpoint.level_done

        def counted(self: Any, progress: Any) -> None:
            nonlocal levels
            write(self, progress)
            levels += 1
            if levels == at:
                end()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(paims.sampling._checkpoint.Checkpoint, "level_done", counted)
            with pytest.raises(DensityError, match="has had no workers, or no scheduler") as seen:
                run(executor=client, path=path)
        client.close()
        assert f"Everything so far is in {str(path)!r}" in str(seen.value)
        assert seen.value.__cause__ is None
        assert seen.value.__suppress_context__
        assert seen.value.result is not None
        assert len(seen.value.result.draws) > 0
        assert "waiting 1 s more" in capsys.readouterr().err
        assert_same(run(), run(path=path))
