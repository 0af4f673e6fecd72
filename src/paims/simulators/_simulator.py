"""What a simulator is: a function on a box that knows its own inputs and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from paims._arrays import FloatArray

Columns = Sequence[FloatArray]


@dataclass(frozen=True)
class Input:
    """One input of a simulator and the range it is studied on.

    Parameters
    ----------
    name : str
        Symbol used in the formula.
    lower, upper : float
        Ends of the range.
    unit : str
        Unit of the range; empty for a pure number.
    description : str
        What the input means.
    """

    name: str
    lower: float
    upper: float
    unit: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            raise ValueError(
                f"The range of input {self.name!r} must be finite; got {self.lower}..{self.upper}."
            )
        if not self.lower < self.upper:
            raise ValueError(
                f"The range of input {self.name!r} must have lower < upper; "
                f"got {self.lower}..{self.upper}."
            )


@dataclass(frozen=True)
class Output:
    """The output of a simulator: its name, unit (empty for a pure number) and meaning."""

    name: str
    unit: str = ""
    description: str = ""


@dataclass(frozen=True)
class Simulator:
    """A deterministic simulator with one output on a box of inputs.

    Calling it with an ``(n_runs, n_inputs)`` array gives the ``(n_runs,)`` outputs. Points
    outside the box are computed as long as the formula gives a finite number there.

    Parameters
    ----------
    name : str
        Name in the registry.
    inputs : tuple of Input
        The inputs, in the order of the columns.
    output : Output
        What is computed.
    reference : str
        Where the formula was published.
    formula : callable
        Takes the sequence of input columns, each ``(n_runs,)``, and returns ``(n_runs,)``.
    description : str
        What is worth knowing about this variant.
    """

    name: str
    inputs: tuple[Input, ...]
    output: Output
    reference: str
    formula: Callable[[Columns], FloatArray] = field(repr=False)
    description: str = ""

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs, in the order of the columns."""
        return tuple(item.name for item in self.inputs)

    @property
    def domain(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of the box, each ``(n_inputs,)``."""
        lower = np.array([item.lower for item in self.inputs])
        upper = np.array([item.upper for item in self.inputs])
        return lower, upper

    def __call__(self, X: ArrayLike) -> FloatArray:
        """Run the simulator.

        Parameters
        ----------
        X : array_like, shape (n_runs, n_inputs)
            Inputs in their own units.

        Returns
        -------
        ndarray, shape (n_runs,)
            Outputs.
        """
        columns = self._validated(X)
        with np.errstate(all="ignore"):
            y = np.asarray(self.formula(tuple(columns.T)), dtype=float)
        bad = np.flatnonzero(~np.isfinite(y))
        if bad.size:
            lower, upper = self.domain
            raise ValueError(
                f"{self.name} has no finite output in {bad.size} of {y.size} rows, the first "
                f"being row {bad[0]}: {columns[bad[0]].tolist()}. Its formula is meant for the "
                f"box from {lower.tolist()} to {upper.tolist()}; move these rows into it."
            )
        return y

    def design(
        self, n: int, random_state: int | np.random.Generator | None = None, *, strength: int = 1
    ) -> FloatArray:
        """Latin hypercube design in the domain.

        Parameters
        ----------
        n : int
            Number of runs.
        random_state : int or numpy.random.Generator, optional
            Seed or generator; the same seed gives the same design.
        strength : {1, 2}
            2 gives an orthogonal-array design; ``n`` must then be the square of a prime.

        Returns
        -------
        ndarray, shape (n, n_inputs)
            Design in the inputs' own units.
        """
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"The number of runs n must be a positive integer; got {n!r}.")
        # Takes longer to import than everything else here together.
        from scipy.stats import qmc  # noqa: PLC0415

        # `seed` is understood by every SciPy that we support; `rng` only since 1.15.
        engine = qmc.LatinHypercube(
            self.n_inputs, strength=strength, seed=np.random.default_rng(random_state)
        )
        lower, upper = self.domain
        return np.asarray(lower + (upper - lower) * engine.random(int(n)), dtype=float)

    def _validated(self, X: ArrayLike) -> FloatArray:
        expected = (
            f"{self.name} takes an array of shape (n_runs, {self.n_inputs}) with the columns "
            f"{', '.join(self.input_names)}"
        )
        try:
            columns = np.asarray(X, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{expected}, all of them numbers; got {type(X).__name__}."
            ) from error
        if columns.ndim != 2 or columns.shape[1] != self.n_inputs:
            raise ValueError(
                f"{expected}; got shape {columns.shape}. A single run is [[...]], with two "
                "pairs of brackets; a single input is a column, x.reshape(-1, 1)."
            )
        bad = np.argwhere(~np.isfinite(columns))
        if bad.size:
            row, column = bad[0]
            raise ValueError(
                f"{expected}, all of them finite; got {columns[row, column]} for "
                f"{self.input_names[column]} in row {row}. Remove or repair such rows first."
            )
        return columns
