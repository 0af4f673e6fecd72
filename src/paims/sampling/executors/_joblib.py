"""Workers of ``joblib.Parallel``, with any of its backends."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from paims._arrays import Array
from paims.sampling._calls import Answer, Call
from paims.sampling._inside import hung
from paims.sampling.executors._retries import with_retries
from paims.sampling.executors._shipping import Shipment, evaluate


class JoblibPool:
    """Evaluates pieces by ``joblib.Parallel``.

    Parameters
    ----------
    parallel : joblib.Parallel
    """

    def __init__(self, parallel: Any) -> None:
        self._parallel = parallel
        self._shipment: Shipment | None = None

    @property
    def n_workers(self) -> int:
        """Jobs at once."""
        from joblib import effective_n_jobs  # noqa: PLC0415 - only for those who use it

        return int(effective_n_jobs(self._parallel.n_jobs))

    def run(
        self, call: Call, pieces: list[Array], timeout: float | None
    ) -> Generator[tuple[int, Answer], None, None]:
        """Evaluate pieces; they are there all at once. joblib itself replaces dead workers."""
        return with_retries(pieces, lambda group: self._once(call, pieces, group), lambda: None)

    def close(self) -> None:
        """Leave joblib's workers to joblib."""

    def _once(
        self, call: Call, pieces: list[Array], group: list[int]
    ) -> Iterator[tuple[int, Answer]]:
        from joblib import delayed  # noqa: PLC0415 - only for those who use it

        if self._shipment is None or self._shipment.call is not call:
            self._shipment = Shipment(call)
        name, content = self._shipment.name, None
        while group:
            tasks = [delayed(evaluate)(name, content, pieces[i]) for i in group]
            try:
                answers = list(self._parallel(tasks))
            except TimeoutError:
                points = np.concatenate([pieces[i] for i in group])
                raise hung(points, self._parallel.timeout) from None
            for i, answer in zip(group, answers, strict=True):
                if answer is not None:
                    yield i, answer
            group = [i for i, answer in zip(group, answers, strict=True) if answer is None]
            content = self._shipment.content
