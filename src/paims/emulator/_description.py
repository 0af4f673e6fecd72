"""What there is to say of an emulator: facts for ``paims info``, its JSON and the report."""

from __future__ import annotations

import platform
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

import paims
from paims._arrays import FloatArray
from paims.emulator._averaging import in_words

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "h5py")


def _versions() -> dict[str, str]:
    found = {"paims": paims.__version__, "Python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


@dataclass(frozen=True)
class Provenance:
    """What the emulator itself does not know.

    Attributes
    ----------
    output : str
        Name of the output.
    source : str
        Name of the file (without its folder) that the runs were read from; empty if unknown.
    seconds : float or None
        How long the fit took.
    versions : dict of str
        Of the packages that made the emulator.
    warnings : tuple of str
        What was said during the fit.
    """

    output: str = "y"
    source: str = ""
    seconds: float | None = None
    versions: dict[str, str] = field(default_factory=_versions)
    warnings: tuple[str, ...] = ()


def feature_names(emulator: Emulator) -> tuple[str, ...]:
    """Names of all inputs, those that never vary too: of the data frame, or x1, x2, ..."""
    names = getattr(emulator, "feature_names_in_", None)
    if names is None or len(set(names)) < len(names):
        return tuple(f"x{i + 1}" for i in range(emulator.n_features_in_))
    return tuple(str(name) for name in names)


def emulator_facts(emulator: Emulator, provenance: Provenance) -> dict[str, Any]:
    """Everything that is said of an emulator, as data for JSON."""
    result, scaling = emulator.result_, emulator.inputs_
    results = emulator.results_.values()
    p = int(scaling.active.sum())
    lower, upper = scaling.undo(np.vstack([np.zeros(p), np.ones(p)]))
    return {
        "output": provenance.output,
        "inputs": [
            {"name": name, "lower": low, "upper": high, "varies": bool(varies)}
            for name, low, high, varies in zip(
                feature_names(emulator), lower, upper, scaling.active, strict=True
            )
        ],
        "n_runs": emulator.posterior_.n_runs,
        "source": provenance.source,
        "settings": _settings(emulator),
        "modes": [
            {
                "mass": mode.mass,
                "mass_error": mode.mass_error,
                "length_scales": dict(
                    zip(mode.input_names, mode.length_scales.tolist(), strict=True)
                ),
                "nugget": mode.nugget,
                "kernel": mode.kernel,
                "says": mode.says,
            }
            for mode in emulator.modes_
        ],
        "kernel_weights": emulator.kernel_weights_,
        "kernel_evidence": emulator.kernel_evidence_,
        "log_evidence": emulator.log_evidence_,
        "log_evidence_error": emulator.log_evidence_error_,
        "n_evaluations": sum(one.n_evaluations for one in results),
        "n_levels": len(result.levels),
        "n_draws": sum(len(one.draws) for one in results),
        "effective_size": _effective_size(emulator),
        "pareto_k": max(one.pareto_k for one in results),
        "n_components": len(emulator.ensemble_.weights),
        "status": str(result.status),
        "seconds": provenance.seconds,
        "versions": provenance.versions,
        "warnings": list(
            dict.fromkeys(
                [*provenance.warnings, *(text for one in results for text in one.warnings)]
            )
        ),
    }


def _effective_size(emulator: Emulator) -> float:
    r"""Of all draws: :math:`1 / \sum_k w_k^2 / m_k` with the effective sizes m of the kernels."""
    weights, results = emulator.kernel_weights_, emulator.results_
    terms = (weight**2 / results[name].effective_size for name, weight in weights.items())
    return float(1.0 / sum(terms))


def _settings(emulator: Emulator) -> dict[str, Any]:
    nugget = emulator.nugget
    return {
        "kernel": ", ".join(emulator.kernel_weights_),
        "mean": str(emulator.mean),
        "prior": _prior(emulator),
        "nugget": nugget if isinstance(nugget, int | float) else str(nugget),
        "nugget_prior": str(emulator.nugget_prior),
        "goal": emulator.goal,
        "predictive": emulator.predictive,
        "scheme": str(emulator.scheme),
        "random_state": emulator.random_state,
    }


def _prior(emulator: Emulator) -> str:
    """The prior; of "auto" what it stood for."""
    if isinstance(emulator.prior, str) and emulator.prior == "auto":
        return str(emulator.posterior_.prior.name)
    return str(emulator.prior)


def kernels_in_words(facts: dict[str, Any]) -> str:
    """Names of the kernels; with their weights if several were tried."""
    evidence = facts["kernel_evidence"]
    if evidence:
        return in_words(facts["kernel_weights"], evidence)
    return str(facts["settings"]["kernel"]).replace("_", " ")


def nugget_in_words(facts: dict[str, Any]) -> str:
    """How the noise was treated."""
    settings = facts["settings"]
    if settings["nugget"] != "estimate":
        return str(settings["nugget"])
    return f"estimated ({settings['nugget_prior'].replace('_', ' ')} prior)"


def facts_in_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """How the emulator was made, as names and values."""
    settings = facts["settings"]
    seed = settings["random_state"]
    rows = [
        ("File of the runs", facts["source"]),
        ("Runs", str(facts["n_runs"])),
        ("Kernels" if facts["kernel_evidence"] else "Kernel", kernels_in_words(facts)),
        ("Trend", settings["mean"]),
        ("Prior", settings["prior"]),
        ("Nugget", nugget_in_words(facts)),
        ("Goal", settings["goal"]),
        ("Prediction", settings["predictive"].replace("_", " ")),
        ("Sampler", f"{settings['scheme']} scheme"),
        ("Seed", "not fixed" if seed is None else str(seed)),
        ("Evaluations of the posterior", f"{facts['n_evaluations']:,}"),
        ("Annealing levels", str(facts["n_levels"])),
        ("Draws", f"{facts['n_draws']:,}, effectively {facts['effective_size']:,.0f}"),
        ("Sampler's end", facts["status"]),
        ("Pareto k-hat of the draws", f"{facts['pareto_k']:.3g}"),
        ("Log evidence", f"{facts['log_evidence']:.3f} ± {facts['log_evidence_error']:.3f}"),
        ("Mixture", f"{facts['n_components']} components"),
    ]
    if facts["seconds"] is not None:
        rows.append(("Time of the fit", f"{facts['seconds']:.1f} s"))
    return rows if facts["source"] else rows[1:]


def held_out_inputs(emulator: Emulator, X: Any) -> FloatArray:
    """Inputs ``(k, n_features)``, which may have lost their names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return emulator._checked(X)
