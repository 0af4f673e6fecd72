"""The outputs of runs as a table: checked, named, and fitted with one checkpoint."""

from __future__ import annotations

import glob
import hashlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

from paims._arrays import FloatArray
from paims._sealed import UNREADABLE, get_json, open_sealed, put_json, write_sealed
from paims.emulator._description import feature_names
from paims.emulator._execution import Execution
from paims.emulator._mixture import as_generator
from paims.emulator._several import Several, fit_several
from paims.sampling import CheckpointError
from paims.sampling._lock import only_run

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

FORMAT = "paims-fit"


def is_table(y: Any) -> bool:
    """Whether outputs come in columns."""
    return np.ndim(y) == 2 and not hasattr(y, "todense")


def output_names(Y: Any, n: int) -> tuple[str, ...]:
    """Names of a data frame's columns, or y1, y2, ..."""
    names = [str(name) for name in getattr(Y, "columns", ())]
    if len(names) != n:
        return tuple(f"y{j + 1}" for j in range(n))
    return tuple(names)


def checked_outputs(X: FloatArray, Y: Any) -> FloatArray:
    """Outputs ``(n, m)``, finite or NaN."""
    if np.shape(Y)[1] == 0:
        raise ValueError("y has no columns: give one for each output.")
    columns = [str(name) for name in getattr(Y, "columns", ())]
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise ValueError(
            f"y has several columns of the name {twice[0]!r}: give each output its own name."
        )
    values = check_array(
        Y, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0, input_name="y"
    )
    check_consistent_length(X, values)
    endless = np.flatnonzero(np.isinf(values).any(axis=0))
    if endless.size:
        j = int(endless[0])
        rows = np.flatnonzero(np.isinf(values[:, j]))
        raise ValueError(
            f"Input y contains infinity: output {output_names(Y, values.shape[1])[j]} in "
            f"{len(rows)} run(s), row {rows[0]} first. NaN says that a run has no value."
        )
    return np.asarray(values, dtype=np.float64)


def fit_table(emulator: Emulator, X: FloatArray, Y: Any, execution: Execution) -> Several:
    """Fit an emulator to checked inputs ``X`` (n, n_features) and a table of outputs."""
    values = checked_outputs(X, Y)
    names = output_names(Y, values.shape[1])
    empty = np.isnan(values).all(axis=1)
    if empty.any():
        warnings.warn(
            f"{int(empty.sum())} of {len(X)} runs have no output at all and are left out.",
            UserWarning,
            stacklevel=4,
        )
        X, values = X[~empty], values[~empty]
    if len(X) == 0:
        raise ValueError("No run has any output: there is nothing to learn from.")
    asked = copy(emulator)
    seed = emulator.random_state
    if not isinstance(seed, int | np.integer):
        asked.random_state = int(as_generator(seed).integers(2**62))
    path = execution.checkpoint
    with nullcontext() if path is None else only_run(path):
        keeping: Any = ()
        if path is not None:
            keeper = _Keeper(path, _description(asked, X, values), asked)
            asked.random_state = keeper.begin(fixed=seed is not None)
            keeping = keeper.finished, keeper.store
        named = feature_names(emulator)
        try:
            return fit_several(X, values, names, named, asked, _executions(execution), *keeping)
        except Exception:
            if path is not None:
                keeper.drop_nothing()
            raise


def _executions(execution: Execution) -> Callable[[int, int, str], Execution]:
    def of(i: int, n: int, name: str) -> Execution:
        path = execution.checkpoint
        if path is not None:
            path = path.with_name(f"{path.stem}.output{i + 1}{path.suffix}")
        return Execution(
            progress=f"{name} ({i + 1} of {n})"
            if execution.progress and n > 1
            else execution.progress,
            checkpoint=path,
            checkpoint_every=execution.checkpoint_every,
            executor=execution.executor,
            alike=n if i == 0 else 0,
            given=execution.checkpoint,
        )

    return of


def _description(asked: Emulator, X: FloatArray, Y: FloatArray) -> dict[str, str]:
    """Runs and settings, for comparison with those of a file."""
    told = {
        name: repr(value)
        for name, value in asked.get_params(deep=False).items()
        if name not in ("random_state", "n_jobs", "progress")
    }
    for name, array in (("X", X), ("Y", Y)):
        content = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
        told[name] = f"{array.shape} with sha256 {content}"
    return told


@dataclass(frozen=True, eq=False)
class _Keeper:
    """The checkpoint of a fit of several outputs: those that are done, each whole.

    The one in work has the sampler's own file beside it, which is removed when it is done.
    """

    path: Path
    description: dict[str, str]
    asked: Emulator

    def begin(self, *, fixed: bool) -> int:
        """Check the file or write it; return the seed of the fit."""
        if not self.path.exists():
            self._begin()
            return int(self.asked.random_state)
        with self._opened() as file:
            stored = get_json(file, "about")
            seed, there = int(stored["seed"]), dict(stored["description"])
        here = self.description | ({"seed": str(self.asked.random_state)} if fixed else {})
        there |= {"seed": str(seed)} if fixed else {}
        other = [name for name in here if here[name] != there.get(name)]
        if other:
            listed = "; ".join(
                f"{name} is {there.get(name)} there, {here[name]} here" for name in other
            )
            raise CheckpointError(
                f"The checkpoint {str(self.path)!r} is of another fit: {listed}. Give another "
                "file, or remove this one to begin anew."
            )
        self.asked.random_state = seed
        return seed

    def drop_nothing(self) -> None:
        """Remove the file of a fit that was refused: it would be in the way of another."""
        beside = self.path.parent.glob(f"{glob.escape(self.path.stem)}.output*{self.path.suffix}")
        with suppress(CheckpointError), self._opened() as file:
            if list(file) == ["about"] and not any(beside):
                self.path.unlink()

    def finished(self, i: int) -> Any:
        """Fit of the i-th process, if it is there.

        Before anything is computed it raises TypeError where none could be stored.
        """
        from paims.emulator._storage import (  # noqa: PLC0415 - knows this module
            get_emulator,
            stored_settings,
        )

        try:
            stored_settings(self.asked)
        except TypeError as error:
            raise TypeError(f"{error} Or fit without a checkpoint.") from None
        with self._opened() as file:
            return get_emulator(file[str(i)])._fit if str(i) in file else None

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            with open_sealed(self.path, FORMAT) as file:
                yield file
        except UNREADABLE as error:
            raise CheckpointError(
                f"{str(self.path)!r} cannot be gone on from: {error}. Give another file, or "
                "remove this one to begin anew."
            ) from None

    def store(self, i: int, one: Emulator) -> None:
        """Keep what is done."""
        with open_sealed(self.path, FORMAT) as before:

            def fill(file: Any) -> None:
                for name in before:
                    before.copy(name, file)
                put_emulator(file.create_group(str(i)), one)

            from paims.emulator._storage import put_emulator  # noqa: PLC0415 - knows this module

            write_sealed(self.path, FORMAT, fill)

    def _begin(self) -> None:
        about = {"description": self.description, "seed": int(self.asked.random_state)}
        write_sealed(self.path, FORMAT, lambda file: put_json(file, "about", about))
