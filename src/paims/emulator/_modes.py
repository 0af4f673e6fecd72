"""The modes of the posterior, and what each says of the inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from paims._arrays import FloatArray
from paims.diagnostics import sobol_indices
from paims.emulator._averaging import label
from paims.emulator._scaling import InputScaling
from paims.gp import Posterior
from paims.gp._means import is_polynomial
from paims.sampling import Mode

__all__ = ["EmulatorMode", "ModeTable", "describe", "draw_table", "length_scales"]

_N_LINES = 32
_N_STEPS = 9
_HARDLY = 1e-3
_STRAIGHT = 1e-2
_INTERPOLATES = 1e-3


@dataclass(frozen=True, eq=False)
class EmulatorMode:
    """One mode of the posterior: an explanation of the runs.

    Attributes
    ----------
    input_names : tuple of str
        The inputs that vary.
    length_scales : (p,) ndarray
        In the units of the inputs.
    nugget : float
        Share of the process's variance that is noise.
    log_density : float
        Log posterior density of u there, normalised by the evidence; with several kernels that of
        the kernel and of u under it.
    mass, mass_error : float
        Share of the posterior that belongs to the mode, and its Monte-Carlo standard error given
        the weight of its kernel.
    effects : (p,) ndarray
        Total Sobol' indices of the predictive mean over the box of the runs, as
        :func:`paims.diagnostics.sobol_indices` computes them: the share of its variance that
        would be left if all other inputs were known. Estimated for a trend that is a function of
        the user's, which has no exact ones.
    curvatures : (p,) ndarray
        Share of each effect that no straight line explains.
    noise : float
        Standard deviation of the noise relative to that of the outputs.
    kernel : str
        Name of the kernel under which it is a mode.
    """

    input_names: tuple[str, ...]
    length_scales: FloatArray
    nugget: float
    log_density: float
    mass: float
    mass_error: float
    effects: FloatArray
    curvatures: FloatArray
    noise: float
    kernel: str = ""

    @property
    def says(self) -> str:
        """What the mode says of the inputs and the noise, in words."""
        order = np.argsort(-self.effects, kind="stable")
        parts = []
        for i in order:
            name, effect = self.input_names[i], self.effects[i]
            if effect < _HARDLY:
                parts.append(f"{name} hardly matters")
            elif self.curvatures[i] < _STRAIGHT:
                parts.append(f"{name} acts nearly linearly ({effect:.1%})")
            else:
                parts.append(f"{name} bends the output ({effect:.1%})")
        noise = (
            "the runs are nearly interpolated"
            if self.noise < _INTERPOLATES
            else f"noise has {self.noise:.2g} of the outputs' standard deviation"
        )
        return f"{', '.join(parts)}; {noise}"

    def __repr__(self) -> str:
        lengths = ", ".join(
            f"{name}: {value:.4g}"
            for name, value in zip(self.input_names, self.length_scales, strict=True)
        )
        return (
            f"<mode with mass {self.mass:.3f} +- {self.mass_error:.3f}: {self.kernel}, "
            f"length-scales {lengths}; nugget {self.nugget:.3g}; "
            f"log density {self.log_density:.3f}; {self.says}>"
        )


class ModeTable(Sequence[EmulatorMode]):
    """The modes by falling mass; prints as a table."""

    def __init__(self, modes: Sequence[EmulatorMode]) -> None:
        self._modes = tuple(modes)

    def __len__(self) -> int:
        return len(self._modes)

    @overload
    def __getitem__(self, index: int) -> EmulatorMode: ...
    @overload
    def __getitem__(self, index: slice) -> ModeTable: ...
    def __getitem__(self, index: int | slice) -> EmulatorMode | ModeTable:
        """Mode, or a table of some."""
        if isinstance(index, slice):
            return ModeTable(self._modes[index])
        return self._modes[index]

    def __iter__(self) -> Iterator[EmulatorMode]:
        return iter(self._modes)

    def to_array(self) -> npt.NDArray[np.void]:
        """Structured array, one row for each mode; ``pandas.DataFrame`` takes it."""
        names = self._modes[0].input_names if self._modes else ()
        numbers = ["mass", "mass_error", *map(length_field, names), "nugget", "log_density"]
        dtype = [*((name, float) for name in numbers), ("kernel", object), ("says", object)]
        rows = [
            (m.mass, m.mass_error, *m.length_scales, m.nugget, m.log_density, m.kernel, m.says)
            for m in self._modes
        ]
        return np.array(rows, dtype=dtype)

    def __repr__(self) -> str:
        if not self._modes:
            return "<no modes>"
        names = self._modes[0].input_names
        several = len({mode.kernel for mode in self._modes}) > 1
        header = [
            "mass",
            *["kernel"] * several,
            *(f"length {name}" for name in names),
            "nugget",
            "log density",
        ]
        rows = [
            [
                f"{m.mass:.3f} +- {m.mass_error:.3f}",
                *[m.kernel] * several,
                *(f"{value:.4g}" for value in m.length_scales),
                f"{m.nugget:.3g}",
                f"{m.log_density:.3f}",
            ]
            for m in self._modes
        ]
        widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
        lines = ["  ".join(cell.rjust(w) for cell, w in zip(header, widths, strict=True))]
        for row, mode in zip(rows, self._modes, strict=True):
            lines.append("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)))
            lines.append(f"    {mode.says}")
        return "\n".join(lines)


def length_field(name: str) -> str:
    """Field of an input's length-scale in a table."""
    return f"length_scale_{name}"


def length_scales(posterior: Posterior, inputs: InputScaling, draws: FloatArray) -> FloatArray:
    """Length-scales ``(m, p)`` in the units of the inputs."""
    phi, _ = posterior.to_physical(draws)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(posterior.kernel.length_scale(phi) * inputs.range, dtype=np.float64)


def draw_table(
    posterior: Posterior, inputs: InputScaling, draws: FloatArray, names: Sequence[str]
) -> npt.NDArray[np.void]:
    """Draws in physical units: a structured array with the length-scales and the nugget."""
    dtype = [*((length_field(name), float) for name in names), ("nugget", float)]
    table = np.empty(len(draws), dtype=dtype)
    for name, column in zip(names, length_scales(posterior, inputs, draws).T, strict=True):
        table[length_field(name)] = column
    table["nugget"] = posterior.to_physical(draws)[1]
    return table


def describe(
    mode: Mode,
    posterior: Posterior,
    inputs: InputScaling,
    names: Sequence[str],
    log_evidence: float,
) -> EmulatorMode:
    """Describe a mode of u in physical units and by what it does to predictions."""
    u = mode.location[None]
    effects, curvatures = _effects_along_lines(posterior, u)
    nugget = float(posterior.to_physical(u)[1][0])
    S2 = float(posterior.coefficients(u).S2[0])
    if is_polynomial(posterior.mean) and posterior.kernel.separable and np.isfinite(S2):
        effects = np.nan_to_num(sobol_indices(posterior, u).total_draws[0])
    return EmulatorMode(
        input_names=tuple(names),
        length_scales=length_scales(posterior, inputs, u)[0],
        nugget=nugget,
        log_density=mode.log_density - log_evidence,
        mass=mode.mass,
        mass_error=mode.mass_error,
        effects=effects,
        curvatures=curvatures,
        noise=float(np.sqrt(nugget * S2 / (posterior.n_runs - posterior.n_basis - 2))),
        kernel=label(posterior.kernel),
    )


def _effects_along_lines(posterior: Posterior, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Total effects of the predictive mean and their curved shares, from lines in the box."""
    p = posterior.n_inputs
    base = qmc.Sobol(p, scramble=False).fast_forward(1).random(_N_LINES)
    steps = (np.arange(_N_STEPS) + 0.5) / _N_STEPS
    lines = np.broadcast_to(base, (p, _N_STEPS, _N_LINES, p)).copy()
    for i in range(p):
        lines[i, :, :, i] = steps[:, None]
    mean = posterior.predict(u, lines.reshape(-1, p)).mean.reshape(p, _N_STEPS, _N_LINES)
    along = mean - mean.mean(axis=1, keepdims=True)
    variation = np.mean(along**2, axis=(1, 2))
    direction = (steps - steps.mean()) / np.linalg.norm(steps - steps.mean())
    straight = np.mean(np.einsum("g,igl->il", direction, along) ** 2, axis=1) / _N_STEPS
    with np.errstate(divide="ignore", invalid="ignore"):
        curved = np.where(variation > 0.0, 1.0 - straight / variation, 0.0)
        total = mean.var()
        effects = variation / total if total > 0.0 else np.zeros(p)
    return np.asarray(effects), np.clip(curved, 0.0, 1.0)
