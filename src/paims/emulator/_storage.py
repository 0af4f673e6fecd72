"""Save and load an emulator: one HDF5 file that holds data only, and is read without pickle.

Schema 1, and 2 with several kernels::

    /                attributes: format, schema, version (of the library that wrote it)
    /settings        constructor arguments, as JSON
    /about           names of the inputs, modes, compression, the kernels in use, as JSON
    /inputs/...      exponent, lower, width: the scaling of the inputs
    /output          exponent, shift, scale: that of the outputs
    /runs/X, y       scaled runs
    /ensemble/...    draws, weights: the components of the mixture; which: their kernels
    /result/...      what the sampler gave; /result/posterior/... for goal="optimum"
    /result2/...     what it gave under the second kernel, and so on

    /provenance      where it comes from, as JSON, if that was given

The file has a checksum, which is verified before HDF5 reads it. Nothing that a file says is
executed: numbers, names and the library's own objects can be stored as JSON; what a user has
programmed cannot.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import paims
from paims import gp
from paims._sealed import (
    UNREADABLE,
    SealError,
    get_json,
    open_sealed,
    put_array,
    put_json,
    write_sealed,
)
from paims.emulator._averaging import KernelEvidence, KernelFit, candidates
from paims.emulator._description import Provenance
from paims.emulator._ensemble import Compression, Ensemble
from paims.emulator._estimator import Emulator
from paims.emulator._fit import Fit, posterior_of
from paims.emulator._modes import EmulatorMode, ModeTable
from paims.emulator._scaling import InputScaling, OutputScaling
from paims.emulator._stored_values import (
    check_about,
    check_fit,
    check_provenance,
    check_scaling,
    demand,
)
from paims.gp import Posterior
from paims.inference import density
from paims.sampling import SampleResult, Scheme, SearchInfo, Status

FORMAT = "paims-emulator"
#: The newest that is read: 2 for several kernels, and for several outputs, which
#: ``_several_storage`` describes.
SCHEMA = 2
_SCHEMA_OF_ONE = 1

_NAMED: list[type] = [
    *gp.KERNELS.values(),
    *gp.MEANS.values(),
    *gp.PRIORS.values(),
    *gp.NUGGET_PRIORS.values(),
]
_OTHERS: list[type] = [gp.SciPyPrior, gp.EstimatedNugget, gp.FixedNugget, Scheme]

#: The only classes that a file can name.
_CLASSES = {cls.__name__: cls for cls in _NAMED + _OTHERS}

T = TypeVar("T")


class EmulatorFileError(ValueError):
    """A file that no emulator can be loaded from."""


def save_with_provenance(
    emulator: Emulator,
    path: str | os.PathLike[str],
    provenance: Provenance | None = None,
) -> None:
    """Save an emulator with its provenance, whole or not at all.

    An interruption leaves what was there before. :func:`paims.load_emulator` reads the file as any
    other.
    """
    settings = stored_settings(emulator)  # raises before anything is written

    def fill(file: Any) -> None:
        several = hasattr(emulator, "outputs_")
        one = not several and len(emulator.kernel_weights_) == 1
        schema = _SCHEMA_OF_ONE if one else SCHEMA
        file.attrs.update(format=FORMAT, schema=schema, version=paims.__version__)
        if several:
            from paims.emulator._several_storage import put_several  # noqa: PLC0415 - knows this

            put_json(file, "settings", settings)
            put_several(file, emulator)
        else:
            put_emulator(file, emulator)
        if provenance is not None:
            put_json(file, "provenance", dataclasses.asdict(provenance))

    write_sealed(Path(path), FORMAT, fill)


def stored_settings(emulator: Emulator) -> dict[str, Any]:
    """Constructor's arguments as JSON has them; raises TypeError if one is a program."""
    settings = {
        name: encode(name, value)
        for name, value in emulator.get_params(deep=False).items()
        if name != "random_state"
    }
    seed = emulator.random_state
    settings["random_state"] = int(seed) if isinstance(seed, int | np.integer) else None
    return settings


def put_emulator(group: Any, emulator: Emulator) -> None:
    """Write an emulator of one output."""
    put_json(group, "settings", stored_settings(emulator))
    put_json(group, "about", _about(emulator))
    _put_arrays(group, "inputs", dataclasses.asdict(emulator.inputs_))
    put_json(group, "output", dataclasses.asdict(emulator.output_))
    _put_arrays(group, "runs", {"X": emulator.posterior_.X, "y": emulator.posterior_.y})
    ensemble = emulator.ensemble_
    arrays: dict[str, Any] = {"draws": ensemble.draws, "weights": ensemble.weights}
    if ensemble.which is not None:
        arrays["which"] = ensemble.which
    _put_arrays(group, "ensemble", arrays)
    for i, result in enumerate(emulator.results_.values()):
        _put_result(group, _result_name(i), result)


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


def read_provenance(path: str | os.PathLike[str]) -> Provenance:
    """Provenance in an emulator's file; what is not there is left unknown."""

    def read(file: Any) -> Provenance:
        stored = get_json(file, "provenance") if "provenance" in file else {}
        known = {item.name for item in dataclasses.fields(Provenance)}
        values = {key: value for key, value in stored.items() if key in known}
        values.setdefault("versions", {"paims": str(file.attrs["version"])})
        values["warnings"] = tuple(values.get("warnings", ()))
        found = Provenance(**values)
        check_provenance(found)
        return found

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
    except UNREADABLE as error:
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
    if "several" in file:
        from paims.emulator._several_storage import get_several  # noqa: PLC0415 - knows this

        return get_several(file)
    return get_emulator(file)


def get_emulator(file: Any) -> Emulator:
    """Read an emulator of one output."""
    settings = {name: decode(value) for name, value in get_json(file, "settings").items()}
    about = get_json(file, "about")
    emulator = Emulator(**settings)
    emulator.n_features_in_ = int(about["n_features"])
    check_about(about)
    if about["feature_names"] is not None:
        emulator.feature_names_in_ = np.array(about["feature_names"], dtype=object)
    inputs = InputScaling(**_get_arrays(file, "inputs"))
    output = OutputScaling(**get_json(file, "output"))
    check_scaling(emulator.n_features_in_, inputs, output)
    runs = _get_arrays(file, "runs")
    prior = about.get("prior")  # what "auto" stood for
    kernels = _get_kernels(
        file,
        emulator,
        posterior_for=lambda kernel: posterior_of(
            runs["X"], runs["y"], inputs, emulator, kernel, prior
        ),
    )
    # Files of schema 1 do not say the kernel of a mode: there was one.
    modes = [_mode({"kernel": kernels[0].name, **value}) for value in about["modes"]]
    demand(len(modes) > 1, "it has no modes")
    fit = Fit(
        names=tuple(about["input_names"]),
        inputs=inputs,
        output=output,
        kernels=kernels,
        evidence=KernelEvidence(
            about.get("kernel_evidence", {}), about.get("kernel_evidence_error", {})
        ),
        modes=ModeTable(modes[1:]),
        best=modes[0],
        ensemble=_get_ensemble(file, kernels, output, emulator.predictive),
        compression=Compression(**about["compression"]),
    )
    check_fit(fit)
    emulator._set_fit(fit)
    return emulator


def _result_name(kernel: int) -> str:
    return "result" if kernel == 0 else f"result{kernel + 1}"


def _get_kernels(
    file: Any, emulator: Emulator, posterior_for: Callable[[gp.Kernel], Posterior]
) -> tuple[KernelFit, ...]:
    """The kernels that are kept; in a file of schema 1 the one that was chosen."""
    about = get_json(file, "about")
    if "kernels" in about:
        listed = [(decode(item["kernel"]), float(item["weight"])) for item in about["kernels"]]
    elif "kernel" in about:
        listed = [(decode(about["kernel"]), 1.0)]
    else:
        listed = [(candidates(emulator.kernel)[0], 1.0)]
    total = sum(weight for _, weight in listed)
    demand(abs(total - 1.0) < 1e-6, f"the weights of its kernels sum to {total:.6g}")
    found = []
    for i, (kernel, weight) in enumerate(listed):
        posterior = posterior_for(kernel)
        found.append(KernelFit(posterior, _get_result(file[_result_name(i)], posterior), weight))
    return tuple(found)


def _get_ensemble(
    file: Any, kernels: tuple[KernelFit, ...], output: OutputScaling, family: str
) -> Ensemble:
    arrays = _get_arrays(file, "ensemble")
    which = arrays.pop("which", None)
    if which is not None:
        demand(which.shape == arrays["weights"].shape, "its mixture has lost kernels")
        fine = (which >= 0) & (which < len(kernels))
        demand(bool(fine.all()), "its mixture names a kernel that is not there")
    several = len(kernels) > 1
    return Ensemble(
        kernels[0].posterior,
        **arrays,
        output=output,
        family=family,
        others=tuple(one.posterior for one in kernels[1:]),
        which=which if several else None,
    )


def _about(emulator: Emulator) -> dict[str, Any]:
    names = getattr(emulator, "feature_names_in_", None)
    modes = [emulator.map_, *emulator.modes_]
    several = len(emulator.kernel_weights_) > 1
    return {
        "n_features": emulator.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
        "input_names": list(emulator.map_.input_names),
        "modes": [
            {
                key: encode(key, value)
                for key, value in vars(mode).items()
                if several or key != "kernel"  # which readers of schema 1 do not know
            }
            for mode in modes
        ],
        "compression": dataclasses.asdict(emulator.compression_),
        "kernel": encode("kernel", emulator.posterior_.kernel),
        "prior": emulator.posterior_.prior.name if _is_auto(emulator.prior) else None,
        "kernels": [
            {"kernel": encode("kernel", one.posterior.kernel), "weight": one.weight}
            for one in emulator._fit.kernels
        ],
        "kernel_evidence": emulator._fit.evidence.log_evidence,
        "kernel_evidence_error": emulator._fit.evidence.error,
    }


def _is_auto(prior: Any) -> bool:
    return isinstance(prior, str) and prior == "auto"


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


def encode(name: str, value: Any) -> Any:
    """JSON value of a constructor argument.

    Parameters
    ----------
    name : str
        Of the argument, for the error.
    value : object
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return encode(name, value.item())
    if isinstance(value, np.ndarray):
        return encode(name, value.tolist())
    if isinstance(value, list | tuple):
        return [encode(name, item) for item in value]
    if _CLASSES.get(type(value).__name__) is type(value):
        arguments = {key: encode(name, getattr(value, key)) for key in _arguments(type(value))}
        return {"class": type(value).__name__, "arguments": arguments}
    if hasattr(value, "dist") and hasattr(value, "kwds"):
        return _encode_distribution(name, value)
    raise TypeError(
        f"The emulator cannot be saved: its {name} is {value!r}, a program of yours, and files "
        "hold data only. Use one of the library's own, or keep the script that fits the emulator."
    )


def decode(value: Any) -> Any:
    """Argument of a JSON value.

    Raises
    ------
    ValueError
        If the value names what cannot be made.
    """
    if isinstance(value, list):
        return [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "distribution" in value:
        return _decode_distribution(value)
    if value.get("class") not in _CLASSES:
        raise ValueError(f"it names an unknown class {value.get('class')!r}")
    arguments = {key: decode(item) for key, item in value["arguments"].items()}
    if value["class"] == Scheme.__name__:
        return Scheme.from_stored(arguments)
    return _CLASSES[value["class"]](**arguments)


def _arguments(cls: type) -> list[str]:
    if dataclasses.is_dataclass(cls):
        return [field.name for field in dataclasses.fields(cls)]
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return []
    return [key for key in inspect.signature(cls.__init__).parameters if key != "self"]  # type: ignore[misc]


def _encode_distribution(name: str, value: Any) -> Any:
    from scipy import stats  # noqa: PLC0415 - slow to import, seldom needed

    known: Any = getattr(stats, value.dist.name, None)
    if type(known) is not type(value.dist):
        raise TypeError(
            f"The emulator cannot be saved: its {name} has the distribution {value.dist!r}, "
            "which is not one of scipy.stats."
        )
    return {
        "distribution": value.dist.name,
        "arguments": encode(name, list(value.args)),
        "keywords": {key: encode(name, item) for key, item in value.kwds.items()},
    }


def _decode_distribution(value: dict[str, Any]) -> Any:
    from scipy import stats  # noqa: PLC0415 - slow to import, seldom needed

    distribution = getattr(stats, str(value["distribution"]), None)
    if not isinstance(distribution, stats.rv_continuous):
        raise ValueError(f"it names an unknown distribution {value['distribution']!r}")
    return distribution(*value["arguments"], **value["keywords"])
