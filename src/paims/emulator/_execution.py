"""How a fit is run: where to, with whom, and what an interruption leaves."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paims.gp import Posterior
from paims.inference import sample_posterior
from paims.sampling import DensityError, SampleResult, Scheme
from paims.sampling._checkpoint import FORMAT


class FitInterrupted(KeyboardInterrupt):
    """A fit that Ctrl-C or SIGTERM ended: the emulator is not fitted.

    Attributes
    ----------
    result : SampleResult or None
        What the sampler had, which is not yet a sample of the posterior; None if workers had it.
    """

    result: SampleResult | None = None

    @staticmethod
    def of(result: SampleResult, checkpoint: Path | None) -> FitInterrupted:
        """Build from the sampler's result, with what to do next."""
        error = FitInterrupted(
            f"The fit was {result.status.reason} after {len(result.levels)} levels and "
            f"{result.n_evaluations} evaluations; the emulator is not fitted. "
            f"{how_to_go_on(checkpoint)}"
        )
        error.result = result
        return error

    @staticmethod
    def among(n_done: int, n: int, checkpoint: Path | None) -> FitInterrupted:
        """Build from how many of n outputs are fitted."""
        return FitInterrupted(
            f"The fit was interrupted after {n_done} of {n} outputs; the emulator is not fitted. "
            f"{how_to_go_on(checkpoint)}"
        )


def how_to_go_on(checkpoint: Path | None) -> str:
    """What to do after a fit that did not come to its end."""
    if checkpoint is None:
        return "Pass fit(X, y, checkpoint='fit.h5') next time to be able to go on."
    return f"Call fit again with checkpoint={os.fspath(checkpoint)!r} to go on."


@dataclass(frozen=True)
class Execution:
    """How a fit is run; the result does not depend on it.

    Attributes
    ----------
    progress : bool or str
        A text is what the line begins with.
    checkpoint : Path or None
        File of the fit, under its first kernel; each further one has its own beside it.
    checkpoint_every : float
    executor : optional
        As in :meth:`paims.Emulator.fit`.
    alike : int
        Fits like this one that are still to come, itself included, for what is said of the time
        that they take; 0 if that was said already.
    given : Path or None
        What the user knows the file as, where it is one of several: that of all outputs.
    """

    progress: bool | str = False
    checkpoint: Path | None = None
    checkpoint_every: float = 60.0
    executor: Any = None
    alike: int = 1
    given: Path | None = None

    def file(self, kernel: int = 0) -> Path | None:
        """Checkpoint of the run under the i-th kernel."""
        path = self.checkpoint
        if path is None or kernel == 0:
            return path
        return path.with_name(f"{path.stem}.kernel{kernel + 1}{path.suffix}")

    def sample(
        self,
        posterior: Posterior,
        n_samples: int | None,
        scheme: str | Scheme,
        random_state: int | None,
        *,
        goal: str = "posterior",
        kernel: int = 0,
    ) -> SampleResult:
        """Run the sampler; raise :class:`FitInterrupted` if it did not come to its end."""
        try:
            result = sample_posterior(
                posterior,
                n_samples,
                goal=goal,
                scheme=scheme,
                random_state=random_state,
                n_jobs=posterior.n_jobs,
                progress=self.progress,
                checkpoint=self.file(kernel),
                checkpoint_every=self.checkpoint_every,
                executor=self.executor,
            )
        except DensityError as error:
            error.advice = how_to_go_on(self.given or self.checkpoint)
            raise
        if result.status.name == "interrupted":
            raise FitInterrupted.of(result, self.given or self.checkpoint)
        return result

    def remove_others(self, n_kernels: int) -> None:
        """Remove the files of all kernels but the first, which a finished fit has no use for."""
        for i in range(1, n_kernels):
            _remove(self.file(i))

    def remove_all(self, n_kernels: int) -> None:
        """Remove the files of all kernels, of a fit whose result is kept elsewhere."""
        self.remove_others(n_kernels)
        _remove(self.file())


def _remove(path: Path | None) -> None:
    """Remove a file, if it says of itself that it is a checkpoint of the sampler."""
    if path is None or not path.is_file():
        return
    with path.open("rb") as file:
        ours = file.read(64).startswith(f"{FORMAT} ".encode())
    if ours:
        path.unlink(missing_ok=True)
