"""Workers that die: what they had is evaluated again, and what kills them is found."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import BrokenExecutor

from paims._arrays import Array
from paims.sampling._calls import Answer, DensityError, listed

_MOST = 3  # workers that a piece may take down


def with_retries(
    pieces: list[Array],
    run: Callable[[list[int]], Iterator[tuple[int, Answer]]],
    renew: Callable[[], None],
) -> Generator[tuple[int, Answer], None, None]:
    """Evaluate pieces until all are there.

    A pool that breaks does not say which piece broke it. All that were missing go into the next
    pool; after that one has broken too they go one at a time, and the one that is alone when a
    third worker dies is reported.

    Parameters
    ----------
    pieces : list of ndarray
    run : callable
        Evaluates the pieces of some numbers; raises BrokenExecutor when a worker dies.
    renew : callable
        Makes the pool usable again, or raises if that cannot be done.
    """
    todo = list(range(len(pieces)))
    deaths = [0] * len(pieces)
    while todo:
        alone = max(deaths[i] for i in todo) >= _MOST - 1
        group = todo[:1] if alone else list(todo)
        try:
            for i, answer in run(group):
                todo.remove(i)
                yield i, answer
        except BrokenExecutor:
            for i in group:
                deaths[i] += i in todo
            for i in group:
                if i in todo and deaths[i] >= _MOST:
                    raise killed(pieces[i], f"{_MOST} workers") from None
            renew()


def killed(points: Array, workers: str) -> DensityError:
    """Build the error of points that take their workers down."""
    return DensityError.at(
        points,
        f"{workers} died while evaluating the same {len(points)} point(s): {listed(points)}. "
        "Evaluate log_density there by hand: a crash of compiled code, or more memory than a "
        "worker has, are what usually ends a process.",
    )
