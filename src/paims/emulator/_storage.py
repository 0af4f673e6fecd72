"""Save and load an emulator: one HDF5 file that holds data only, and is read without pickle.

Schema 1::

    /                attributes: format, schema, version (of the library that wrote it)
    /settings        constructor arguments, as JSON
    /about           names of the inputs, modes, compression, the kernel in use, as JSON
    /inputs/...      exponent, lower, width: the scaling of the inputs
    /output          exponent, shift, scale: that of the outputs
    /runs/X, y       scaled runs
    /ensemble/...    draws, weights: the components of the mixture
    /result/...      what the sampler gave; /result/posterior/... for goal="optimum"

    /provenance      where it comes from, as JSON, if that was given

The file has a checksum, which is verified before HDF5 reads it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import paims
from paims._sealed import SealError, get_json, open_sealed, put_array, put_json, write_sealed
from paims.emulator._compression import Compression
from paims.emulator._encoding import decode, encode
from paims.emulator._ensemble import Ensemble
from paims.emulator._estimator import Emulator, set_fitted
from paims.emulator._fitting import Learnt, Problem
from paims.emulator._modes import EmulatorMode, ModeTable
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.emulator._trend import basis_in_units
from paims.gp import Posterior
from paims.gp._nugget import as_nugget
from paims.inference import density
from paims.sampling import SampleResult, SearchInfo, Status

FORMAT = "paims-emulator"
SCHEMA = 1

T = TypeVar("T")


class EmulatorFileError(ValueError):
    """A file that no emulator can be loaded from."""


def save_emulator(
    emulator: Emulator,
    path: str | os.PathLike[str],
    provenance: dict[str, Any] | None = None,
) -> None:
    """Write a fitted emulator to a file, whole or not at all.

    An interruption leaves what was there before. ``provenance`` is kept beside the emulator.
    """
    settings = {
        name: encode(name, value)
        for name, value in emulator.get_params(deep=False).items()
        if name != "random_state"
    }
    seed = emulator.random_state
    settings["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None

    def fill(file: Any) -> None:
        file.attrs.update(format=FORMAT, schema=SCHEMA, version=paims.__version__)
        put_json(file, "settings", settings)
        put_json(file, "about", _about(emulator))
        _put_arrays(file, "inputs", dataclasses.asdict(emulator.inputs_))
        put_json(file, "output", dataclasses.asdict(emulator.output_))
        _put_arrays(file, "runs", {"X": emulator.posterior_.X, "y": emulator.posterior_.y})
        ensemble = emulator.ensemble_
        _put_arrays(file, "ensemble", {"draws": ensemble.draws, "weights": ensemble.weights})
        _put_result(file, "result", emulator.result_)
        if provenance is not None:
            put_json(file, "provenance", provenance)

    write_sealed(Path(path), FORMAT, fill)


def load_emulator(path: str | os.PathLike[str]) -> Emulator:
    """Load an emulator that :meth:`paims.Emulator.save` wrote.

    Nothing in the file is executed. The emulator predicts as the saved one does, to the bit.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    Emulator

    Raises
    ------
    EmulatorFileError
        If the file is something else, is damaged, or is from a newer version of the library.
    """
    return _load(Path(path), _read)


def load_provenance(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What was stored beside an emulator, with the ``version`` of the library that wrote it."""

    def read(file: Any) -> dict[str, Any]:
        stored = get_json(file, "provenance") if "provenance" in file else {}
        return {"version": str(file.attrs["version"]), **stored}

    return _load(Path(path), read)


def _load(path: Path, read: Callable[[Any], T]) -> T:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r} to load an emulator from.")
    try:
        with open_sealed(path, FORMAT) as file:
            _check_header(file, path)
            return read(file)
    except EmulatorFileError:
        raise
    except SealError as error:
        raise EmulatorFileError(
            f"{str(path)!r} cannot be loaded as an emulator: {error}. Save the emulator again, or "
            "copy the file again from where it is whole."
        ) from None
    except (OSError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise EmulatorFileError(
            f"{str(path)!r} is a damaged emulator file ({error}): save the emulator again, or "
            "copy the file again from where it is whole."
        ) from error


def _check_header(file: Any, path: Path) -> None:
    schema = int(file.attrs["schema"])
    if schema > SCHEMA:
        raise EmulatorFileError(
            f"{str(path)!r} has schema {schema}, written by version {file.attrs['version']} of "
            f"paims; this is version {paims.__version__}, which reads up to schema {SCHEMA}. "
            "Upgrade paims."
        )


def _read(file: Any) -> Emulator:
    settings = {name: decode(value) for name, value in get_json(file, "settings").items()}
    about = get_json(file, "about")
    emulator = Emulator(**settings)
    emulator.n_features_in_ = int(about["n_features"])
    if about["feature_names"] is not None:
        emulator.feature_names_in_ = np.array(about["feature_names"], dtype=object)
    inputs = InputScaling(**_get_arrays(file, "inputs"))
    output = OutputScaling(**get_json(file, "output"))
    runs = _get_arrays(file, "runs")
    posterior = Posterior(
        runs["X"],
        runs["y"],
        _kernel(emulator, about),
        basis_in_units(emulator.mean, inputs),
        emulator.prior,
        as_nugget(emulator.nugget, emulator.nugget_prior),
        n_jobs=emulator.n_jobs,
    )
    ensemble = Ensemble(
        posterior,
        **_get_arrays(file, "ensemble"),
        output=output,
        family=emulator.predictive,
    )
    modes = [_mode(value) for value in about["modes"]]
    learnt = Learnt(
        result=_get_result(file["result"], posterior),
        modes=ModeTable(modes[1:]),
        best=modes[0],
        ensemble=ensemble,
        compression=Compression(**about["compression"]),
    )
    problem = Problem(inputs, output, posterior, tuple(about["input_names"]))
    set_fitted(emulator, problem, learnt, about.get("kernel_evidence", {}))
    return emulator


def _kernel(emulator: Emulator, about: dict[str, Any]) -> Any:
    """The kernel in use: of several that were compared, the one that was chosen."""
    return decode(about["kernel"]) if "kernel" in about else emulator.kernel


def _about(emulator: Emulator) -> dict[str, Any]:
    names = getattr(emulator, "feature_names_in_", None)
    modes = [emulator.map_, *emulator.modes_]
    return {
        "n_features": emulator.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "input_names": list(emulator.map_.input_names),
        "modes": [
            {key: encode(key, value) for key, value in vars(mode).items()} for mode in modes
        ],
        "compression": dataclasses.asdict(emulator.compression_),
        "kernel": encode("kernel", emulator.posterior_.kernel),
        "kernel_evidence": emulator.kernel_evidence_,
    }


def _mode(value: dict[str, Any]) -> EmulatorMode:
    arrays = ("length_scales", "effects", "curvatures")
    fields: dict[str, Any] = value | {key: np.array(value[key]) for key in arrays}
    return EmulatorMode(**fields | {"input_names": tuple(value["input_names"])})


def _put_result(parent: Any, name: str, result: SampleResult) -> None:
    """Write every field of a result but its density, which is that of the posterior."""
    group = parent.create_group(name)
    plain: dict[str, Any] = {}
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        if isinstance(value, SampleResult):
            _put_result(group, field.name, value)
        elif isinstance(value, np.ndarray):
            put_array(group, field.name, value)
        elif isinstance(value, Status | SearchInfo):
            plain[field.name] = dataclasses.asdict(value)
        elif field.name not in ("density_fn", "origin", "derived", "circles"):
            plain[field.name] = encode(field.name, value)
    put_json(group, "plain", plain)


def _get_result(group: Any, posterior: Posterior) -> SampleResult:
    fields: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in get_json(group, "plain").items()
    }
    fields["status"] = Status(**fields["status"])
    if fields.get("search") is not None:
        fields["search"] = SearchInfo(**fields["search"])
    for name in group:
        if name == "posterior":
            fields[name] = _get_result(group[name], posterior)
        elif name != "plain":
            fields[name] = group[name][()]
    known = {field.name for field in dataclasses.fields(SampleResult)}
    fields = {key: value for key, value in fields.items() if key in known}
    return SampleResult(**fields, density_fn=density(posterior))


def _put_arrays(parent: Any, name: str, arrays: dict[str, Any]) -> None:
    group = parent.create_group(name)
    for key, array in arrays.items():
        put_array(group, key, array)


def _get_arrays(parent: Any, name: str) -> dict[str, Any]:
    return {key: item[()] for key, item in parent[name].items()}
