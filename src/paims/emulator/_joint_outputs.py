r"""The predictive distribution of several outputs at once.

Outputs are linear in a few processes: themselves, or principal components. Given one draw of the
hyper-parameters of each, the processes at an input are Student-t with means :math:`\mu_l` and
scales :math:`\sigma_l`, correlated as their residuals are: :math:`R = E^T E`, E the residuals of
the runs as columns of length 1. So a linear combination :math:`\sum_l a_l f_l` is Student-t with
mean :math:`\sum_l a_l \mu_l` and squared scale :math:`|E\,(a_l \sigma_l)_l|^2`, and the mixture
over draws of that is its distribution: no approximation of sums by sampling is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtri

from paims._arrays import FloatArray, IndexArray, refuse_what_is_no_number
from paims._memory import demand
from paims._names import listed
from paims.emulator._mixture import (
    N_MATRICES,
    N_SAMPLED,
    MixturePrediction,
    _square_root,
    as_generator,
)
from paims.emulator._scaling import OutputScaling
from paims.sampling._path import systematic

__all__ = ["JointPrediction", "OutputMap"]

# Draws of all processes that are put together, where each process has draws of its own.
_N_JOINT = 128
# Processes whose residuals are correlated like this are the same.
_SAME = 1.0 - 1e-9
_BLOCK_SIZE = 2**21


@dataclass(frozen=True, eq=False)
class OutputMap:
    """How outputs are made of processes, all of them in their own scaled units.

    Attributes
    ----------
    names : tuple of str
        Of the m outputs.
    scalings : sequence of OutputScaling
        Of the m outputs.
    residuals : (r, l) ndarray
        E, columns of length 1 (or 0 for a process without uncertainty).
    loadings : (l, m) ndarray or None
        Outputs of the processes' values; None if each output is a process.
    noise : (r, m) ndarray or None
        Its Gram matrix is the covariance of what the processes do not explain.
    common : bool
        Whether the i-th draws of all processes are one draw.
    """

    names: tuple[str, ...]
    scalings: Sequence[OutputScaling]
    residuals: FloatArray
    loadings: FloatArray | None = None
    noise: FloatArray | None = None
    common: bool = False

    def index(self, key: str | int) -> int:
        """Position of an output, by its name or number."""
        if isinstance(key, str):
            if key not in self.names:
                known = listed(self.names)
                raise KeyError(f"There is no output {key!r}; the outputs are {known}.")
            return self.names.index(key)
        return range(len(self.names))[key]


class JointPrediction:
    """What the emulator says of m outputs at each of k inputs, jointly.

    Made by :meth:`paims.Emulator.predict_distribution`; everything is in the user's units.
    ``prediction["name"]`` is the :class:`MixturePrediction` of one output.

    Attributes
    ----------
    names : tuple of str
        Of the outputs.
    mean, std : (n_points, n_outputs) ndarray
    """

    def __init__(self, processes: Sequence[MixturePrediction], mapping: OutputMap) -> None:
        self._processes = processes
        self._map = mapping
        self.names = mapping.names
        self._index, self._weights = _coupled(processes, mapping)
        self._marginals: dict[int, MixturePrediction] = {}

    def __repr__(self) -> str:
        return f"<JointPrediction: {len(self)} points, {len(self.names)} outputs>"

    def __len__(self) -> int:
        return len(self._processes[0])

    def __getitem__(self, output: str | int) -> MixturePrediction:
        """The distribution of one output, by its name or number."""
        j = self._map.index(output)
        if self._map.loadings is None:
            return self._processes[j]
        if j not in self._marginals:
            self._marginals[j] = self._mixture(
                self._map.loadings[:, j],
                0.0 if self._map.noise is None else float(np.sum(self._map.noise[:, j] ** 2)),
                self._map.scalings[j],
            )
        return self._marginals[j]

    @property
    def mean(self) -> FloatArray:
        """Mean of each output at each point."""
        return self._moments()[0]

    @property
    def std(self) -> FloatArray:
        """Standard deviation of each output at each point."""
        return self._moments()[1]

    def quantile(self, q: Any) -> FloatArray:
        """Quantiles of each output, shape ``np.shape(q) + (n_points, n_outputs)``."""
        return self._each(lambda one: one.quantile(q))

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Equal-tailed credible intervals of single outputs, each ``(n_points, n_outputs)``."""
        both = self._each(lambda one: np.stack(one.interval(level)))
        return both[0], both[1]

    def cdf(self, Y: Any) -> FloatArray:
        """Probability of each output being at most ``Y`` (n_points, n_outputs)."""
        return self._at(Y, MixturePrediction.cdf)

    def logpdf(self, Y: Any) -> FloatArray:
        """Log predictive density of each output on its own at ``Y`` (n_points, n_outputs)."""
        return self._at(Y, MixturePrediction.logpdf)

    def combine(self, weights: Any) -> MixturePrediction:
        """Distribution of a linear combination of the outputs, such as a sum or a mean.

        Parameters
        ----------
        weights : (n_outputs,) array_like, or mapping of names to numbers
            Of the outputs in the user's units; outputs that a mapping does not name have weight 0.

        Returns
        -------
        MixturePrediction
            With its own mean, std, quantiles and intervals at each point.
        """
        given = self._weight_vector(weights)
        scalings = self._map.scalings
        used = np.flatnonzero(given)
        # In units of the largest term: outputs and weights may be of any size.
        size = [np.frexp(given[j] * s.scale)[1] + s.exponent for j, s in _of(scalings, used)]
        exponent = int(max(size, default=0))
        reduced = np.zeros(len(given))
        shift = 0.0
        for j, s in _of(scalings, used):
            reduced[j] = np.ldexp(given[j] * s.scale, s.exponent - exponent)
            shift += float(np.ldexp(given[j] * s.shift, s.exponent - exponent))
        noise = 0.0
        if self._map.noise is not None:
            noise = float(np.sum((self._map.noise @ reduced) ** 2))
        if self._map.loadings is not None:
            reduced = self._map.loadings @ reduced
        return self._mixture(reduced, noise, OutputScaling(exponent, shift, 1.0))

    def sample(self, size: int = 1, random_state: Any = None) -> FloatArray:
        """Joint samples over points and outputs.

        Parameters
        ----------
        size : int
        random_state : int, Generator, RandomState or None

        Returns
        -------
        (size, n_points, n_outputs) ndarray
        """
        k, E = len(self), self._map.residuals
        widest = max(len(self.names), *E.shape)
        demand(
            8.0 * k * (N_MATRICES * k + N_SAMPLED * size * widest),
            f"A joint sample of {k:,} points and {len(self.names):,} outputs"
            + (f", {size:,} times," if size > 1 else ""),
            "Ask for fewer at once.",
        )
        rng = as_generator(random_state)
        chosen = rng.choice(len(self._weights), size, p=self._weights / self._weights.sum())
        normal = rng.standard_normal((size, k, len(E))) @ E
        level = rng.random(size)
        values = np.empty((size, k, len(self._processes)))
        for p, process in enumerate(self._processes):
            if not E[:, p].any():
                values[:, :, p] = process._scaled.mean
                continue
            dof = process._scaled.dof
            stretch = np.ones(size) if np.isinf(dof) else np.sqrt(dof / chdtri(dof, level))
            own = self._index[chosen, p]
            for block in process._blocks(np.unique(own)):
                mean, scale2 = process._joint(block)
                for j, component in enumerate(block):
                    rows = np.flatnonzero(own == component)
                    root = _square_root(scale2[j])
                    moved = (normal[rows, :, p] * stretch[rows, None]) @ root.T
                    values[rows, :, p] = mean[j] + moved
        if self._map.loadings is not None:
            values = _process_values(self._processes, values) @ self._map.loadings
        if self._map.noise is not None:
            values += rng.standard_normal((size, k, len(self._map.noise))) @ self._map.noise
        for j, scaling in enumerate(self._map.scalings):
            values[:, :, j] = scaling.value(values[:, :, j])
        return values

    def _weight_vector(self, weights: Any) -> FloatArray:
        m = len(self.names)
        if isinstance(weights, Mapping):
            given = np.zeros(m)
            for name, value in weights.items():
                given[self._map.index(name)] = float(value)
        else:
            refuse_what_is_no_number("weights", weights)
            given = np.asarray(weights, dtype=np.float64)
        if given.shape != (m,) or not np.isfinite(given).all():
            raise ValueError(
                f"weights must be {m} finite numbers, one for each output, or a mapping of names "
                f"to numbers; got shape {given.shape}."
            )
        return given

    def _mixture(
        self, coefficients: FloatArray, noise: float, scaling: OutputScaling
    ) -> MixturePrediction:
        """Mixture of a linear combination of the processes, with independent noise added."""
        used = np.flatnonzero(coefficients)
        location, variance, dof = self._combined(coefficients[used], used)
        variance = variance + noise
        scale2 = variance if np.isinf(dof) else variance * ((dof - 2.0) / dof)
        k = len(self)

        def joint(index: IndexArray) -> tuple[FloatArray, FloatArray]:
            cov = self._joint_cov(coefficients[used], used, index)
            cov[:, np.arange(k), np.arange(k)] += noise
            return location[index], cov if np.isinf(dof) else cov * ((dof - 2.0) / dof)

        n_jobs = self._processes[0]._n_jobs
        # Each residual has a matrix of its own on the way, twice.
        n_matrices = N_MATRICES + 2 * len(self._map.residuals)
        return MixturePrediction(
            location, np.sqrt(scale2), self._weights, dof, scaling, joint, n_jobs, n_matrices
        )

    def _joint_cov(
        self, coefficients: FloatArray, used: IndexArray, draws: IndexArray
    ) -> FloatArray:
        """Covariances ``(c, k, k)`` of a combination over the points, at some joint draws."""
        k, E = len(self), self._map.residuals[:, used]
        moved = np.zeros((len(draws), len(E), k, k))
        for i, (a, p) in enumerate(zip(coefficients, used, strict=True)):
            process = self._processes[p]
            if not E[:, i].any():
                continue
            factor = a * np.sqrt(process._scaled.family.variance)
            if self._map.loadings is not None:
                factor *= float(process._output.difference(np.array(1.0)))
            _, scale2 = process._joint(self._index[draws, p])
            root = np.stack([_square_root(matrix) for matrix in scale2])
            moved += E[None, :, i, None, None] * (factor * root)[:, None]
        return np.asarray(np.einsum("crij,crkj->cik", moved, moved), dtype=np.float64)

    def _combined(
        self, coefficients: FloatArray, used: IndexArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Locations and variances ``(s, k)`` of the joint draws, and degrees of freedom."""
        s, k = len(self._weights), len(self)
        location, variance = np.zeros((s, k)), np.zeros((s, k))
        E = self._map.residuals[:, used]
        dof = min((self._processes[p]._scaled.dof for p in used), default=np.inf)
        step = max(1, _BLOCK_SIZE // max(1, s * len(used)))
        for start in range(0, k, step):
            part = slice(start, min(start + step, k))
            spread = np.empty((s, part.stop - start, len(used)))
            for i, (a, p) in enumerate(zip(coefficients, used, strict=True)):
                mean, std = self._process(p, part)
                location[:, part] += a * mean
                spread[:, :, i] = a * std
            variance[:, part] = np.sum((spread @ E.T) ** 2, axis=2)
        return location, variance, dof

    def _process(self, p: int, points: slice) -> tuple[FloatArray, FloatArray]:
        """Means and standard deviations ``(s, k)`` of a process at the joint draws."""
        scaled = self._processes[p]._scaled
        own = self._index[:, p]
        mean = scaled.location[own, points]
        std = scaled.scale[own, points] * np.sqrt(scaled.family.variance)
        if self._map.loadings is not None:  # the outputs are linear in values in its own units
            output = self._processes[p]._output
            mean, std = output.value(mean), output.difference(std)
        return mean, std

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        k, m = len(self), len(self.names)
        mean, std = np.empty((k, m)), np.empty((k, m))
        if self._map.loadings is None:
            for j, process in enumerate(self._processes):
                mean[:, j], std[:, j] = process.mean, process.std
            return mean, std
        W, E, w = self._map.loadings, self._map.residuals, self._weights
        w = w / w.sum()
        noise = 0.0 if self._map.noise is None else np.sum(self._map.noise**2, axis=0)
        for i in range(k):
            pairs = [self._process(p, slice(i, i + 1)) for p in range(len(self._processes))]
            location = np.stack([a[:, 0] for a, _ in pairs], axis=1)
            spread = np.stack([b[:, 0] for _, b in pairs], axis=1)
            centre = w @ location
            off = location - centre
            # Covariance of the processes: within the draws, and between them.
            within = (E.T @ E) * (spread.T @ (w[:, None] * spread))
            cov = within + off.T @ (w[:, None] * off)
            mean[i] = centre @ W
            std[i] = np.sqrt(np.maximum(np.einsum("lj,lj->j", W, cov @ W), 0.0) + noise)
        for j, scaling in enumerate(self._map.scalings):
            mean[:, j], std[:, j] = scaling.value(mean[:, j]), scaling.difference(std[:, j])
        return mean, std

    def _each(self, function: Any) -> FloatArray:
        return np.stack([function(self[j]) for j in range(len(self.names))], axis=-1)

    def _at(self, Y: Any, function: Any) -> FloatArray:
        refuse_what_is_no_number("Y", Y)
        values = np.asarray(Y, dtype=np.float64)
        m = len(self.names)
        if values.shape[-1:] != (m,):
            raise ValueError(
                f"Y must have the {m} outputs as its last axis; got shape {values.shape}."
            )
        return np.stack([function(self[j], values[..., j]) for j in range(m)], axis=-1)


def _of(scalings: Sequence[OutputScaling], used: IndexArray) -> list[tuple[int, OutputScaling]]:
    return [(int(j), scalings[j]) for j in used]


def _process_values(processes: Sequence[MixturePrediction], scaled: FloatArray) -> FloatArray:
    """Values of the processes in their own units."""
    return np.stack(
        [process._output.value(scaled[:, :, p]) for p, process in enumerate(processes)], axis=2
    )


def _coupled(
    processes: Sequence[MixturePrediction], mapping: OutputMap
) -> tuple[IndexArray, FloatArray]:
    """Joint draws: indices ``(s, l)`` of the processes' draws, and their weights.

    Draws of processes that were fitted apart are independent: each process's own are resampled
    systematically and shuffled; but processes that are the same have the same draws.
    """
    if mapping.common:
        weights = max((process.weights for process in processes), key=len)
        own = [
            np.arange(len(weights)) % len(process.weights) for process in processes
        ]  # a certain output has one draw
        return np.stack(own, axis=1), weights
    n = _N_JOINT if any(len(process.weights) > 1 for process in processes) else 1
    columns = []
    E = mapping.residuals
    for p, process in enumerate(processes):
        first = int(np.argmax(np.append(E[:, :p].T @ E[:, p] > _SAME, True)))
        rng = np.random.default_rng(first)
        w = process.weights / process.weights.sum()
        columns.append(rng.permutation(systematic(w, n, rng)))
    return np.stack(columns, axis=1), np.full(n, 1.0 / n)
