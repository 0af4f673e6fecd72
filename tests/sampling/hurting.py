"""Densities that raise, hang, or kill the process that evaluates them.

Light to import: worker processes import this module, and little else.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def two_modes(x: Floats) -> Floats:
    """Log density of two Gaussians with masses 0.3 and 0.7, not normalised."""
    left = -0.5 * np.sum((x + 0.5) ** 2, axis=1) / 0.02
    right = -0.5 * np.sum((x - 0.5) ** 2, axis=1) / 0.01
    return np.logaddexp(left + np.log(0.15), right + np.log(0.7))


def single(x: Floats) -> float:
    return float(two_modes(x[None])[0])


def raising(x: Floats) -> Floats:
    if np.any(x[:, 0] > 0.6):
        raise ZeroDivisionError("the mesh is folded")
    return two_modes(x)


class OnceFatal:
    """Kills its worker once, at the n-th batch of that worker.

    The file tells those that come later that it has happened.
    """

    def __init__(self, done: Path, at: int = 4) -> None:
        self.done, self.at, self.calls, self.home = done, at, 0, os.getpid()

    def __call__(self, x: Floats) -> Floats:
        self.calls += 1
        if os.getpid() != self.home and self.calls >= self.at and not self.done.exists():
            self.done.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return two_modes(x)


class Fatal:
    """Kills every worker that is given a point of some place."""

    def __init__(self) -> None:
        self.home = os.getpid()

    def __call__(self, x: Floats) -> Floats:
        if os.getpid() != self.home and np.any(x[:, 0] > 0.6):
            os.kill(os.getpid(), signal.SIGKILL)
        return two_modes(x)


class Hanging:
    """Does not return once it has been called a few times."""

    def __init__(self, at: int) -> None:
        self.at, self.calls = at, 0

    def __call__(self, x: Floats) -> Floats:
        self.calls += 1
        if self.calls >= self.at:
            time.sleep(3600.0)
        return two_modes(x)


class SwallowingSignals:
    """Sends itself a Ctrl-C at its n-th batch, and takes it for a failure of its own."""

    def __init__(self, at: int) -> None:
        self.at, self.calls = at, 0

    def __call__(self, x: Floats) -> Floats:
        self.calls += 1
        try:
            if self.calls == self.at:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
            return two_modes(x)
        except BaseException:
            return np.full(len(x), -np.inf)


class Noting:
    """Notes the process that it is evaluated in, and takes long."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __call__(self, x: Floats) -> Floats:
        (self.folder / str(os.getpid())).touch()
        time.sleep(0.5)
        return two_modes(x)
