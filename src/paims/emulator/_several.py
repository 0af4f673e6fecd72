"""Several outputs of the same runs: fitted apart, with one correlation, or as components."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from paims._arrays import BoolArray, FloatArray
from paims._memory import demand
from paims.diagnostics import LeaveOneOut, Validation, leave_one_out
from paims.emulator._apart import Column, Finished, FitApart, Store
from paims.emulator._averaging import candidates
from paims.emulator._certain import CertainOutput, certain_output
from paims.emulator._checks import held_out_output
from paims.emulator._ensemble import MAX_JOINT, validated
from paims.emulator._execution import Execution
from paims.emulator._joint_outputs import JointPrediction, OutputMap
from paims.emulator._missing import completed
from paims.emulator._mixture import N_MATRICES, MixturePrediction, without_exponent
from paims.emulator._pilot import gain_of_own, look
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.emulator._shared_fit import (
    SharedFit,
    announce_shared,
    fit_shared,
    of_many,
    scaled_runs,
)
from paims.gp import Predictive

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

WAYS = ("auto", "separate", "shared", "components")

# More outputs than this, or more than there are runs, are a field: "auto" takes components.
_FIELD = 32
# Share of the (scaled) outputs' variance that the components have to explain, and their number.
# Of new runs more is left over than of those that the components are made of.
_EXPLAINED = 0.99999
_MOST = 24
# Predictions that are held at once, for each of a hundred draws.
_BLOCK_SIZE = 2**14
# Arrays of all points, draws and outputs that there are at once (measured: 4.0).
_N_ARRAYS = 4.5


@dataclass(frozen=True, eq=False)
class Several:
    """What a fitted emulator of several outputs knows.

    Attributes
    ----------
    way : {"separate", "shared", "components"}
    why : str
        Why this one.
    mapping : OutputMap
    emulators : tuple of Emulator
        Of the outputs ("separate") or of the components, without those that are certain.
    shared : SharedFit or None
    certain : dict of int to CertainOutput
        Outputs without uncertainty, by position.
    explained : float
        Share of the outputs' variance that the components have.
    """

    way: str
    why: str
    mapping: OutputMap
    emulators: tuple[Emulator, ...] = ()
    shared: SharedFit | None = None
    certain: dict[int, CertainOutput] = field(default_factory=dict)
    explained: float = 1.0

    def joint(self, X: FloatArray, include_nugget: bool = True) -> JointPrediction:
        """The outputs at inputs ``X`` (k, n_features), jointly."""
        draws = (
            len(self.shared.draws) * len(self.shared.outputs)
            if self.shared is not None
            else sum(len(one.ensemble_.draws) for one in self.emulators)
        )
        demand(
            _N_ARRAYS * 8.0 * len(X) * draws,
            f"The predictive distribution of {len(X):,} points and {len(self.mapping.names):,} "
            "outputs",
            "Take them in parts; predict(X, return_std=True) does so itself.",
        )
        if self.shared is not None:
            learnt = self.shared.mixtures(X, include_nugget)
        else:
            learnt = [
                one.ensemble_.mixture(one.inputs_.apply(X), include_nugget=include_nugget)
                for one in self.emulators
            ]
        if self.way == "components":
            return JointPrediction(learnt, self.mapping)
        return JointPrediction(self._with_certain(learnt, X), self.mapping)

    @property
    def inputs(self) -> InputScaling:
        """Scaling of the inputs: of the process that has the most runs."""
        if self.shared is not None:
            return self.shared.inputs
        return max(self.emulators, key=lambda one: one.posterior_.n_runs).inputs_

    @property
    def n_runs(self) -> int:
        """Runs of the process that has the most."""
        if self.shared is not None:
            return int(self.shared.posterior.n_runs)
        return max(int(one.posterior_.n_runs) for one in self.emulators)

    def _with_certain(
        self, learnt: Sequence[MixturePrediction], X: FloatArray
    ) -> list[MixturePrediction]:
        rest = iter(learnt)
        return [
            self.certain[j].mixture(X) if j in self.certain else next(rest)
            for j in range(len(self.mapping.names))
        ]

    def learnt(self, j: int) -> int:
        """Position of output j among those that are not certain."""
        return j - sum(1 for i in self.certain if i < j)


class OutputsView(Sequence[Any]):
    """The emulators of single outputs, made when they are asked for."""

    def __init__(self, n: int, make: Callable[[int], Any]) -> None:
        self._n, self._make = n, make
        self._made: dict[int, Any] = {}

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[j] for j in range(*index.indices(self._n))]
        j = range(self._n)[index]
        if j not in self._made:
            self._made[j] = self._make(j)
        return self._made[j]

    def __iter__(self) -> Iterator[Any]:
        return (self[j] for j in range(self._n))


class OutputOfField:
    """One output of a field that is emulated by its components.

    It predicts, samples and is checked as an emulator of one output is. Hyper-parameters, modes
    and draws belong to the components: ``emulator.components_``.
    """

    def __init__(self, several: Several, j: int, check: Callable[[Any], FloatArray]) -> None:
        self._several, self._j, self._check = several, j, check

    def predict_distribution(self, X: Any, include_nugget: bool = True) -> MixturePrediction:
        """As :meth:`paims.Emulator.predict_distribution`."""
        return self._several.joint(self._check(X), include_nugget)[self._j]

    def predict(
        self, X: Any, return_std: bool = False, include_nugget: bool = True
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """As :meth:`paims.Emulator.predict`."""
        mixture = self.predict_distribution(X, include_nugget)
        return (mixture.mean, mixture.std) if return_std else mixture.mean

    def leave_one_out(self) -> LeaveOneOut:
        """As :meth:`paims.Emulator.leave_one_out`, the components being kept."""
        return left_out_of(self._several)(self._j)

    def validate(self, X: Any, y: Any) -> Validation:
        """As :meth:`paims.Emulator.validate`."""
        X = self._check(X)
        y = held_out_output(X, y)
        step = -(-len(y) // MAX_JOINT)
        return validated(y[::step], self.predict_distribution(X[::step]))


def left_out_of(several: Several) -> Callable[[int], LeaveOneOut]:
    """Each run predicted from all others, for the outputs of a field."""
    joint = JointPrediction([_loo_mixture(one) for one in several.emulators], several.mapping)
    values = np.column_stack([one.output_.value(one.posterior_.y) for one in several.emulators])
    mapping = several.mapping
    assert mapping.loadings is not None
    assert mapping.noise is not None
    # What the components do not explain is in the noise's rows, up to their common factor.
    left = mapping.noise * np.sqrt(max(len(values) - 1 - values.shape[1], 1))
    scaled = values @ mapping.loadings + left

    def of(j: int) -> LeaveOneOut:
        small, exponent = without_exponent(joint[j])
        found = small.components
        given = Predictive(found.means, found.scales**2, int(found.dof))
        y = np.ldexp(mapping.scalings[j].value(scaled[:, j]), -exponent)
        return leave_one_out(y, given, joint._weights).in_units(exponent)

    return of


def _loo_mixture(one: Emulator) -> MixturePrediction:
    """The runs of an emulator, each predicted from all others, as a mixture."""
    ensemble = one.ensemble_
    found = ensemble._each(lambda posterior, draws: posterior.leave_one_out(draws))
    return MixturePrediction(
        np.nan_to_num(found.mean),
        np.sqrt(np.nan_to_num(found.scale2, nan=1.0)),
        ensemble.weights,
        float(found.dof),
        ensemble.output,
    )


def fit_several(
    X: FloatArray,
    Y: FloatArray,
    output_names: tuple[str, ...],
    names: Sequence[str],
    asked: Emulator,
    execution_of: Callable[[int, int, str], Execution],
    finished: Finished = lambda i: None,
    store: Store = lambda i, one: None,
) -> Several:
    """Fit an emulator of several outputs.

    Parameters
    ----------
    X : (n, n_features) ndarray
    Y : (n, m) ndarray
        NaN where a run has no output; every run has one.
    output_names, names : sequence of str
        Of the outputs and of the features.
    asked : Emulator
        Whose ``random_state`` is an integer.
    execution_of : callable
        How to run the i-th of n fits of the sampler, which has a name.
    finished, store : callable
        For a fit that was interrupted: the i-th emulator, if it is there, and where it goes.
    """
    certain = {}
    for j, y in enumerate(Y.T):
        rows = ~np.isnan(y)
        if not rows.any():
            raise ValueError(f"Output {output_names[j]} has no run with a value: leave it out.")
        found = certain_output(output_names[j], X[rows], y[rows], asked)
        if found is not None:
            certain[j] = found
    if len(certain) == Y.shape[1]:
        raise ValueError(
            "Every output takes one value only, or is reproduced exactly by the trend: there is "
            "nothing to emulate."
        )
    open_ones = np.delete(Y, list(certain), axis=1)
    open_names = [name for j, name in enumerate(output_names) if j not in certain]
    if asked.outputs == "shared" or (asked.outputs == "auto" and _comparable(*open_ones.shape)):
        whole = execution_of(0, 1, "all outputs")
        announce_shared(X, open_ones, names, open_names, asked, whole)
    way, why = choose_way(X, open_ones, names, open_names, asked)
    if way == "components":  # which can take any output that varies
        certain = {j: one for j, one in certain.items() if one.constant}
    if certain:
        listed = "; ".join(one.says for one in list(certain.values())[:5])
        warnings.warn(
            f"{len(certain)} output(s) leave nothing to learn: {listed}. They are predicted as "
            "such, without uncertainty.",
            UserWarning,
            stacklevel=4,
        )
    rest = np.array([j not in certain for j in range(Y.shape[1])])
    fit_apart = FitApart(X, names, asked, execution_of, finished, store)
    kept = tuple(name for name, used in zip(output_names, rest, strict=True) if used)
    if way == "components":
        several = _as_components(Y, output_names, certain, fit_apart, why)
    elif way == "shared":
        shared = fit_shared(X, Y[:, rest], names, kept, asked, execution_of(0, 1, "all outputs"))
        residuals = shared.posterior.residuals(shared.modes[0].location)
        mapping = _mapped(output_names, shared.outputs, residuals, certain, common=True)
        if asked.outputs == "shared":  # else it is part of the reason
            why += f"; the {len(kept)} outputs count as {shared.posterior.effective:.1f}"
        several = Several("shared", why, mapping, shared=shared)
    else:
        emulators = fit_apart(
            [Column(name, y) for name, y in zip(kept, Y[:, rest].T, strict=True)]
        )
        residuals = _correlated(emulators, ~np.isnan(Y[:, rest]))
        scalings = [one.output_ for one in emulators]
        mapping = _mapped(output_names, scalings, residuals, certain, common=False)
        several = Several("separate", why, mapping, emulators)
    return replace(several, certain=certain)


def predict_table(
    several: Several, X: FloatArray, return_std: bool, return_cov: bool, include_nugget: bool
) -> FloatArray | tuple[FloatArray, FloatArray]:
    """Means ``(k, m)``, and standard deviations ``(k, m)`` or covariances ``(k, k, m)``."""
    if return_cov:
        k, m = len(X), len(several.mapping.names)
        demand(
            (2.0 * m + N_MATRICES) * 8.0 * k**2,
            f"The covariance of {k:,} points, for each of {m:,} outputs,",
            "Ask for fewer at once, or for standard deviations only.",
        )
        joint = several.joint(X, include_nugget)
        return joint.mean, np.stack([joint[j].cov() for j in range(m)], axis=-1)
    if several.way == "separate":
        pairs = [_moments(one, X, include_nugget) for one in several.emulators]
        for j, one in several.certain.items():  # by rising position, so each ends up in its place
            mixture = one.mixture(X)
            pairs.insert(j, (mixture.mean, mixture.std))
        mean, std = (np.stack(parts, axis=1) for parts in zip(*pairs, strict=True))
        return (mean, std) if return_std else mean
    k, m = len(X), len(several.mapping.names)
    mean, std = np.empty((k, m)), np.empty((k, m))
    step = max(1, _BLOCK_SIZE // m)
    for start in range(0, k, step):
        part = slice(start, start + step)
        mean[part], std[part] = several.joint(X[part], include_nugget)._moments()
    return (mean, std) if return_std else mean


def _moments(one: Emulator, X: FloatArray, include_nugget: bool) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of an emulator of one output, as its ``predict`` has them."""
    mean, std = one.ensemble_.moments(one.inputs_.apply(X), include_nugget=include_nugget)
    return one.output_.value(mean), one.output_.difference(std)


def _comparable(n: int, m: int) -> bool:
    """Whether "auto" compares ways for so many runs and outputs, which takes time."""
    return 1 < m <= min(_FIELD, n)


def choose_way(
    X: FloatArray,
    Y: FloatArray,
    names: Sequence[str],
    output_names: Sequence[str],
    asked: Emulator,
) -> tuple[str, str]:
    """Which way, and why."""
    n, m = Y.shape
    if asked.outputs != "auto":
        return asked.outputs, "as asked"
    if m == 1:
        return "separate", "there is one output"
    if not _comparable(n, m):
        return "components", f"{m} outputs of {n} runs are too many to learn one by one"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs, _, scaled, target = scaled_runs(X, Y, names, output_names, asked)
    kernel = candidates(asked.kernel)[0]
    pilot = look(scaled, target, inputs, asked, kernel)
    gain = pilot.effective * gain_of_own(scaled, target, inputs, asked, kernel, pilot)
    price = 0.5 * np.log(n) * (pilot.effective - 1.0) * len(pilot.together)
    told = (
        f"hyper-parameters of their own raise the log density of the {m} outputs, which count as "
        f"{pilot.effective:.1f}, by {gain:.1f}, where the price of more parameters is {price:.1f}"
    )
    return ("separate" if gain > price else "shared"), told


def _mapped(
    names: tuple[str, ...],
    scalings: Sequence[OutputScaling],
    residuals: FloatArray,
    certain: dict[int, CertainOutput],
    common: bool,
) -> OutputMap:
    """How outputs follow from processes, with those that are certain in their places."""
    E, given = np.zeros((len(residuals), len(names))), iter(scalings)
    learnt = [j for j in range(len(names)) if j not in certain]
    E[:, learnt] = residuals
    each = tuple(certain[j].output_ if j in certain else next(given) for j in range(len(names)))
    return OutputMap(names, each, _compact(E), common=common)


def _compact(E: FloatArray) -> FloatArray:
    """A matrix of fewer rows with the same Gram matrix."""
    if len(E) <= E.shape[1]:
        return E
    return np.asarray(np.linalg.qr(E, mode="r"), dtype=np.float64)


def _correlated(emulators: Sequence[Emulator], known: BoolArray) -> FloatArray:
    """Residuals of length 1 whose correlations are those of leaving one out.

    Parameters
    ----------
    emulators : sequence of Emulator
    known : (n, l) ndarray of bool
        Which runs each of them has.
    """
    n, m = known.shape
    scores = np.full((n, m), np.nan)
    for j, one in enumerate(emulators):
        if one.posterior_.n_runs >= one.posterior_.n_basis + 4:
            # In scaled units, whose squares neither overflow nor underflow.
            scaled = replace(one.ensemble_, output=OutputScaling(0, 0.0, 1.0))
            scores[known[:, j], j] = scaled.leave_one_out().scores
    there = np.isfinite(scores)
    filled = np.where(there, scores, 0.0)
    if (there.any(axis=0)).all() and there[:, 0].all() and there.all():
        norm = np.sqrt(np.sum(filled**2, axis=0))
        return _compact(filled / np.where(norm > 0.0, norm, 1.0))
    # Each pair by the runs that both have.
    squares = filled**2
    own = np.sqrt(np.maximum((squares.T @ there) * (there.T @ squares), 1e-300))
    R = np.where(np.eye(m) > 0.0, 1.0, (filled.T @ filled) / own)
    value, vector = np.linalg.eigh(0.5 * (R + R.T))
    E = np.sqrt(np.maximum(value, 0.0))[:, None] * vector.T
    return np.asarray(E / np.sqrt(np.sum(E**2, axis=0)), dtype=np.float64)


def _as_components(
    Y: FloatArray,
    names: tuple[str, ...],
    certain: dict[int, CertainOutput],
    fit_apart: FitApart,
    why: str,
) -> Several:
    """Principal components of the scaled outputs, each with an emulator of its own."""
    n = len(Y)
    scalings = [
        certain[j].output_ if j in certain else OutputScaling.of(y[~np.isnan(y)], centre=True)
        for j, y in enumerate(Y.T)
    ]
    Z = np.zeros(Y.shape)
    for j, scaling in enumerate(scalings):
        if j not in certain:
            Z[:, j] = scaling.apply(Y[:, j])
    full = completed(fit_apart.X, Z, fit_apart.asked)
    Z = full.values
    U, S, V = np.linalg.svd(Z, full_matrices=False)
    share = np.cumsum(S**2) / np.sum(S**2)
    room = max(1, min(_MOST, n - 3, int(np.sum(S / S[0] > 1e-10))))
    r = min(int(np.searchsorted(share, _EXPLAINED)) + 1, room)
    scores = U[:, :r] * S[:r]
    fit_apart = replace(fit_apart, asked=of_many(fit_apart.asked, r, fit_apart.X.shape[1]))
    emulators = fit_apart(
        [Column(f"component {i + 1}", np.ascontiguousarray(scores[:, i])) for i in range(r)]
    )
    E = _correlated(emulators, np.ones((n, r), dtype=bool))
    noise = (Z - scores @ V[:r]) / np.sqrt(max(n - 1 - r, 1))
    loadings = V[:r].copy()
    loadings[:, list(certain)] = noise[:, list(certain)] = 0.0
    mapping = OutputMap(names, tuple(scalings), E, loadings=loadings, noise=noise)
    why += f"; {r} components have {share[r - 1]:.2%} of the scaled outputs' variance"
    if full.n_missing:
        why += (
            f"; {full.n_missing} missing values were filled in, to about {full.error:.2g} of an "
            "output's spread, and are taken as known"
        )
    return Several("components", why, mapping, emulators, explained=float(share[r - 1]))
