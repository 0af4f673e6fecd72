"""Save and load an emulator of several outputs.

Schema 2::

    /settings        constructor arguments, as JSON
    /several         way, why, names, scalings, outputs that are certain, as JSON
    /map/...         residuals, and for components loadings and noise
    /emulators/0...  each as a file of one output has it ("separate", "components")
    /shared/...      what a fit with one correlation has: runs, draws, result, modes
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from paims._sealed import get_json, put_json
from paims.emulator._certain import CertainOutput
from paims.emulator._ensemble import Compression
from paims.emulator._estimator import Emulator
from paims.emulator._joint_outputs import OutputMap
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.emulator._several import Several
from paims.emulator._several_values import check_several, check_told
from paims.emulator._shared_fit import SharedFit, shared_posterior
from paims.emulator._storage import (
    _get_arrays,
    _get_result,
    _put_arrays,
    _put_result,
    decode,
    encode,
    get_emulator,
    put_emulator,
)
from paims.sampling import Mode

_MODE_ARRAYS = ("location", "mean", "sd")


def put_several(file: Any, emulator: Emulator) -> None:
    """Write all but the settings."""
    several = emulator._several
    mapping = several.mapping
    names = getattr(emulator, "feature_names_in_", None)
    about = {
        "way": several.way,
        "why": several.why,
        "names": list(mapping.names),
        "common": mapping.common,
        "explained": several.explained,
        "n_features": emulator.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "scalings": [dataclasses.asdict(scaling) for scaling in mapping.scalings],
        "n_emulators": len(several.emulators),
        "certain": {str(j): _certain(one) for j, one in several.certain.items()},
    }
    put_json(file, "several", about)
    arrays = {"residuals": mapping.residuals, "loadings": mapping.loadings, "noise": mapping.noise}
    _put_arrays(file, "map", {key: value for key, value in arrays.items() if value is not None})
    group = file.create_group("emulators")
    for i, one in enumerate(several.emulators):
        put_emulator(group.create_group(str(i)), one)
    if several.shared is not None:
        _put_shared(file.create_group("shared"), several.shared)


def get_several(file: Any) -> Emulator:
    """Read an emulator of several outputs."""
    emulator = Emulator(**{k: decode(v) for k, v in get_json(file, "settings").items()})
    about = get_json(file, "several")
    check_told(about)
    emulator.n_features_in_ = about["n_features"]
    if about["feature_names"] is not None:
        emulator.feature_names_in_ = np.array(about["feature_names"], dtype=object)
    arrays = _get_arrays(file, "map")
    mapping = OutputMap(
        tuple(about["names"]),
        tuple(OutputScaling(**scaling) for scaling in about["scalings"]),
        arrays["residuals"],
        arrays.get("loadings"),
        arrays.get("noise"),
        about["common"],
    )
    stored = file["emulators"]
    emulators = tuple(get_emulator(stored[str(i)]) for i in range(about["n_emulators"]))
    several = Several(
        about["way"],
        about["why"],
        mapping,
        emulators,
        _get_shared(file["shared"], emulator) if "shared" in file else None,
        {int(j): _get_certain(value, emulator) for j, value in about["certain"].items()},
        float(about["explained"]),
    )
    check_several(several, emulator.n_features_in_)
    emulator._set_several(several)
    return emulator


def _certain(one: CertainOutput) -> dict[str, Any]:
    return {
        "name": one.name,
        "beta": one.beta.tolist(),
        "constant": one.constant,
        "inputs": {k: v.tolist() for k, v in dataclasses.asdict(one.inputs_).items()},
        "output": dataclasses.asdict(one.output_),
    }


def _get_certain(value: dict[str, Any], emulator: Emulator) -> CertainOutput:
    inputs = value["inputs"]
    return CertainOutput(
        value["name"],
        np.array(value["beta"]),
        value["constant"],
        emulator.mean,
        InputScaling(
            np.array(inputs["exponent"], dtype=np.int64),
            np.array(inputs["lower"]),
            np.array(inputs["width"]),
        ),
        OutputScaling(**value["output"]),
    )


def _put_shared(group: Any, shared: SharedFit) -> None:
    put_json(
        group,
        "about",
        {
            "input_names": list(shared.names),
            "outputs": [dataclasses.asdict(scaling) for scaling in shared.outputs],
            "effective": shared.posterior.effective,
            "kernel": encode("kernel", shared.posterior.kernel),
            "kernel_evidence": shared.kernel_evidence,
            "compression": dataclasses.asdict(shared.compression),
            "modes": [
                {key: encode(key, value) for key, value in vars(mode).items()}
                for mode in shared.modes
            ],
        },
    )
    _put_arrays(group, "inputs", dataclasses.asdict(shared.inputs))
    _put_arrays(group, "runs", {"X": shared.posterior.X, "Y": shared.posterior.Y})
    _put_arrays(group, "ensemble", {"draws": shared.draws, "weights": shared.weights})
    _put_result(group, "result", shared.result)


def _get_shared(group: Any, emulator: Emulator) -> SharedFit:
    about = get_json(group, "about")
    inputs = InputScaling(**_get_arrays(group, "inputs"))
    runs = _get_arrays(group, "runs")
    posterior = shared_posterior(
        runs["X"], runs["Y"], inputs, emulator, decode(about["kernel"]), about["effective"]
    )
    return SharedFit(
        names=tuple(about["input_names"]),
        inputs=inputs,
        outputs=tuple(OutputScaling(**scaling) for scaling in about["outputs"]),
        posterior=posterior,
        kernel_evidence=about["kernel_evidence"],
        result=_get_result(group["result"], posterior),
        modes=tuple(_mode(value) for value in about["modes"]),
        **_get_arrays(group, "ensemble"),
        compression=Compression(**about["compression"]),
        family=emulator.predictive,
    )


def _mode(value: dict[str, Any]) -> Mode:
    arrays = {key: np.array(item) for key, item in value.items() if isinstance(item, list)}
    return Mode(**value | arrays)
