"""What a stored emulator of several outputs may say; :mod:`paims.emulator._stored_values` too."""

from __future__ import annotations

from typing import Any

import numpy as np

from paims.emulator._certain import CertainOutput
from paims.emulator._joint_outputs import OutputMap
from paims.emulator._several import Several
from paims.emulator._shared_fit import SharedFit
from paims.emulator._stored_values import (
    ROUNDING,
    are_texts,
    check_features,
    check_mass,
    check_output,
    check_result,
    check_scaling,
    check_weighted,
    demand,
    demand_numbers,
    is_number,
)
from paims.emulator._trend import basis_in_units

__all__ = ["check_several", "check_told"]

_WAYS = ("separate", "shared", "components")


def check_told(about: dict[str, Any]) -> None:
    """Raise if what a file says of its outputs is not of the kinds that it should be."""
    demand(about["way"] in _WAYS, f"its outputs were learnt in the way {about['way']!r}")
    demand(isinstance(about["why"], str), "why they were is no text")
    names = about["names"]
    demand(are_texts(names) and len(names) > 0, "a name of its outputs is no text")
    demand(len(set(names)) == len(names), "two of its outputs have one name")
    demand(isinstance(about["common"], bool), "whether draws are common is not said")
    demand(about["common"] == (about["way"] == "shared"), "its draws are not as its way has them")
    demand(is_number(about["explained"]), "the share that it explains is no number")
    demand(0.0 <= about["explained"] <= 1.0 + ROUNDING, f"it explains {about['explained']}")
    check_features(about)
    n = about["n_emulators"]
    demand(type(n) is int and n >= 0, f"it has {n!r} emulators")
    demand(isinstance(about["certain"], dict), "its certain outputs are in a list")


def check_several(several: Several, n_features: int) -> None:
    """Raise if a number is none that a fit could have left."""
    mapping, m = several.mapping, len(several.mapping.names)
    demand(len(mapping.scalings) == m, "it has lost scalings of outputs")
    for scaling in mapping.scalings:
        check_output(scaling)
    for j, one in several.certain.items():
        demand(0 <= j < m, f"it has no output {j}")
        demand(one.name == mapping.names[j], f"its output {j} has two names")
        _check_certain(one, n_features)
    n_learnt = m - len(several.certain)
    shared = several.shared
    demand((shared is not None) == (several.way == "shared"), "its way is another")
    if shared is not None:
        demand(len(several.emulators) == 0, "it has emulators beside the shared one")
        demand(len(shared.outputs) == n_learnt, "it has another number of shared outputs")
        _check_shared(shared, n_features)
    else:
        demand(len(several.emulators) > 0, "it has no emulators")
        for emulator in several.emulators:
            demand(emulator.n_features_in_ == n_features, "an emulator in it has other inputs")
    if several.way == "components":
        _check_map(mapping, len(several.emulators))
    else:
        demand(several.way == "shared" or len(several.emulators) == n_learnt, "it lost emulators")
        demand(mapping.loadings is None and mapping.noise is None, "it has loadings")
        _check_map(mapping, m)


def _check_map(mapping: OutputMap, n_processes: int) -> None:
    m = len(mapping.names)
    residuals = mapping.residuals
    _demand_table("residuals", residuals, n_processes)
    lengths = np.sum(residuals**2, axis=0)
    demand(bool((lengths <= 1.0 + ROUNDING).all()), "its residuals are longer than 1")
    if n_processes < m or mapping.loadings is not None:
        demand(mapping.loadings is not None, "it has lost its loadings")
        _demand_table("loadings", mapping.loadings, m)
        demand(len(mapping.loadings) == n_processes, "it has lost loadings")  # type: ignore[arg-type]
    if mapping.noise is not None:
        _demand_table("noise", mapping.noise, m)


def _demand_table(what: str, values: Any, n_columns: int) -> None:
    demand(values.ndim == 2 and values.dtype.kind == "f", f"its {what} are no table of numbers")
    demand(values.shape[1] == n_columns, f"its {what} are of {values.shape[1]} columns")
    demand(len(values) > 0, f"its {what} are empty")
    with np.errstate(over="ignore"):
        fine = np.isfinite(values).all() and np.isfinite(np.sum(values**2))
    demand(bool(fine), f"its {what} are not finite")


def _check_certain(one: CertainOutput, n_features: int) -> None:
    check_scaling(n_features, one.inputs_, one.output_)
    demand(isinstance(one.constant, bool), f"whether {one.name} is constant is not said")
    beta = one.beta
    demand(beta.ndim == 1 and beta.dtype.kind == "f", "a trend in it is no row of numbers")
    demand(bool(np.isfinite(beta).all()), "a trend in it is not finite")
    if not one.constant:
        middle = one.inputs_.apply(np.zeros((1, n_features)))
        n_basis = basis_in_units(one.mean, one.inputs_)(middle).shape[1]
        demand(len(beta) == n_basis, f"a trend in it has {len(beta)} of {n_basis} terms")


def _check_shared(shared: SharedFit, n_features: int) -> None:
    for output in shared.outputs:
        check_scaling(n_features, shared.inputs, output)
    posterior = shared.posterior
    n_inputs, n_params = int(shared.inputs.active.sum()), posterior.n_params
    demand(posterior.n_outputs == len(shared.outputs), "it has runs of other outputs")
    demand(are_texts(shared.names), "a name of its inputs is no text")
    demand(len(shared.names) == n_inputs, f"it has {len(shared.names)} names for its inputs")
    demand(0.0 < posterior.effective < np.inf, f"its outputs count as {posterior.effective}")
    demand_numbers("kernel_evidence", shared.kernel_evidence)
    demand_numbers("compression", vars(shared.compression))
    check_weighted("mixture", shared.draws, shared.weights, n_params)
    check_result(shared.result, n_params)
    demand(len(shared.modes) > 1, "it has no modes")
    for mode in shared.modes:
        for name in ("location", "mean", "sd"):
            values = np.asarray(getattr(mode, name))
            fine = values.shape == (n_params,) and values.dtype.kind == "f"
            demand(fine, f"the {name} of a mode is not {n_params} numbers")
        demand(bool(np.isfinite(mode.location).all()), "the location of a mode is not finite")
        check_mass(mode)
