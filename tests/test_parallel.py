"""Work over chunks ends when it is asked to; BLAS is kept to one thread and freed afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import scipy.linalg  # noqa: F401 - loads NumPy's BLAS and SciPy's own
from threadpoolctl import ThreadpoolController

from paims._parallel import _blas_libraries, for_chunks, single_threaded_blas


def libraries() -> list:
    # Another test may have loaded libKriging, which has a BLAS of its own that we never call.
    return [library for library in _blas_libraries() if "kriging" not in library.filepath]


def blas_threads() -> set[int]:
    return {library.num_threads for library in libraries()}


def set_blas_threads(numbers: list[int]) -> None:
    """Set them in a thread that ends, so that nobody owns the limit afterwards."""

    def work() -> None:
        for library, number in zip(libraries(), numbers, strict=True):
            library.set_num_threads(number)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = [library.num_threads for library in libraries()]
    set_blas_threads([2] * len(before))
    if blas_threads() != {2}:
        pytest.skip("this BLAS does not let itself be told how many threads to use")
    yield
    set_blas_threads(before)


def test_limit_is_lifted_after_nesting_and_errors() -> None:
    with single_threaded_blas():
        assert blas_threads() == {1}
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}

    def fail_inside() -> None:
        with single_threaded_blas():
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_inside()
    assert blas_threads() == {2}


def test_overlapping_stays_do_not_leave_the_limit_on() -> None:
    entered, leave, left, end = (threading.Event() for _ in range(4))

    def first() -> None:
        with single_threaded_blas():
            entered.set()
            leave.wait(10.0)
        left.set()
        end.wait(10.0)  # it lives on after it has left

    thread = threading.Thread(target=first)
    thread.start()
    assert entered.wait(10.0)
    with single_threaded_blas():
        leave.set()
        assert left.wait(10.0)
        assert blas_threads() == {1}
    assert blas_threads() == {2}
    end.set()
    thread.join()


def test_a_users_own_limit_survives() -> None:
    with ThreadpoolController().limit(limits=2, user_api="blas"), single_threaded_blas():
        pass
    assert blas_threads() == {2}
    with ThreadpoolController().limit(limits=1, user_api="blas"):
        with single_threaded_blas():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_an_error_ends_all_threads_after_their_step(n_jobs: int) -> None:
    seen = []

    def work(start: int, stop: int) -> Iterator[None]:
        for step in range(1000):
            seen.append(start)
            if start == 0 and step == 3:
                raise RuntimeError("broken")
            time.sleep(1e-3)
            yield

    with pytest.raises(RuntimeError, match="broken"):
        for_chunks(work, 100, 1, n_jobs)
    assert 4 <= len(seen) < 500  # 100,000 steps were asked for


BATCH = """
import numpy as np
from paims.gp import Posterior
X = np.random.default_rng(0).random((400, 8))
posterior = Posterior(X, np.sin(3.0 * X.sum(axis=1)), "matern52", prior={prior!r})
posterior(np.zeros((1, 9)))
print("ready", flush=True)
posterior(np.zeros((100_000, 9)))
"""


@pytest.mark.parametrize("prior", ["jointly_robust", "reference"])
def test_a_long_batch_can_be_interrupted(prior: str) -> None:
    command = [sys.executable, "-c", BATCH.format(prior=prior)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.3)
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60.0)
        assert b"KeyboardInterrupt" in errors
        assert time.monotonic() - start < 2.0
