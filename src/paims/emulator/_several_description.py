"""What there is to say of an emulator of several outputs, and the checks of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from paims._arrays import FloatArray, refuse_what_is_no_number
from paims.diagnostics import LeaveOneOut, Scores, Validation
from paims.emulator._description import Provenance, feature_names, held_out_inputs
from paims.emulator._ensemble import MAX_JOINT, validated
from paims.emulator._several import OutputOfField, left_out_of
from paims.emulator._table import checked_outputs

if TYPE_CHECKING:
    from paims.emulator._estimator import Emulator

# Outputs of a field that are checked one by one: an even choice of more.
_MOST_CHECKED = 200
_LEAST_HELD_OUT = 3


@dataclass(frozen=True, eq=False)
class Checked:
    """An output and its checks: by leaving one out, or against held-out runs."""

    name: str
    loo: LeaveOneOut | None
    validation: Validation | None

    @property
    def scores(self) -> Scores:
        """The scores of either."""
        if self.validation is not None:
            return self.validation.scores
        assert self.loo is not None
        return self.loo.summary

    @property
    def passed(self) -> bool:
        """Whether no check speaks against it."""
        return all(found.passed for found in (self.loo, self.validation) if found is not None)


def check_outputs(
    emulator: Emulator, held_out: tuple[FloatArray, FloatArray] | None = None
) -> list[Checked]:
    """Check every output that has uncertainty; of very many an even choice.

    Parameters
    ----------
    emulator : Emulator
        Of several outputs.
    held_out : tuple of (k, n_features) and (k, m) ndarray, optional
        Runs that it has not seen, NaN where there is no output; without, each run is predicted
        from all others.
    """
    return list(_checks(emulator, held_out))


def held_out_table(emulator: Emulator, X: Any, Y: Any) -> tuple[FloatArray, FloatArray]:
    """Inputs ``(k, n_features)`` and outputs ``(k, m)``, NaN where a run has none."""
    names = emulator.output_names_
    X = held_out_inputs(emulator, X)
    refuse_what_is_no_number("Y", Y)
    if set(names) <= set(getattr(Y, "columns", ())):
        Y = Y[list(names)]
    values = checked_outputs(X, Y)
    if values.shape[1] != len(names):
        raise ValueError(
            f"The held-out runs must have the {len(names)} outputs of the emulator; got shape "
            f"{values.shape}."
        )
    return X, values


def _checks(
    emulator: Emulator, held_out: tuple[FloatArray, FloatArray] | None
) -> Iterator[Checked]:
    several, names = emulator._several, emulator.output_names_
    learnt = [j for j in range(len(names)) if j not in several.certain]
    step = -(-len(learnt) // _MOST_CHECKED)
    if held_out is None:
        of_field = left_out_of(several) if several.way == "components" else None
        for j in learnt[::step]:
            loo = emulator.outputs_[j].leave_one_out() if of_field is None else of_field(j)
            yield Checked(names[j], loo, None)
        return
    X, Y = held_out_table(emulator, *held_out)
    for j in learnt[::step]:
        rows = np.flatnonzero(np.isfinite(Y[:, j]))
        if len(rows) < _LEAST_HELD_OUT:
            raise ValueError(
                f"Output {names[j]} has {len(rows)} held-out run(s): at least {_LEAST_HELD_OUT} "
                "are needed."
            )
        rows = rows[:: -(-len(rows) // MAX_JOINT)]
        one = emulator.outputs_[j]
        if isinstance(one, OutputOfField):
            found = validated(Y[rows, j], several.joint(X[rows])[j])
        else:
            found = one.ensemble_.validate(one.inputs_.apply(X[rows]), Y[rows, j])
        yield Checked(names[j], None, found)


def several_facts(emulator: Emulator, provenance: Provenance) -> dict[str, Any]:
    """Everything that is said of an emulator of several outputs, as data for JSON."""
    several, scaling = emulator._several, emulator._several.inputs
    p = int(scaling.active.sum())
    lower, upper = scaling.undo(np.vstack([np.zeros(p), np.ones(p)]))
    learnt = list(_learnt(emulator))
    texts = [text for row in learnt for text in row.pop("warnings")]
    nugget = emulator.nugget
    return {
        "outputs": list(emulator.output_names_),
        "way": several.way,
        "why": several.why,
        "inputs": [
            {"name": name, "lower": low, "upper": high, "varies": bool(varies)}
            for name, low, high, varies in zip(
                feature_names(emulator), lower, upper, scaling.active, strict=True
            )
        ],
        "n_runs": several.n_runs,
        "source": provenance.source,
        "settings": {
            "kernel": str(emulator.kernel),
            "mean": str(emulator.mean),
            "prior": str(emulator.prior),
            "nugget": nugget if isinstance(nugget, int | float) else str(nugget),
            "nugget_prior": str(emulator.nugget_prior),
            "goal": emulator.goal,
            "predictive": emulator.predictive,
            "scheme": str(emulator.scheme),
            "random_state": emulator.random_state,
            "outputs": emulator.outputs,
        },
        "learnt": learnt,
        "certain": [one.says for one in several.certain.values()],
        "explained": several.explained,
        "seconds": provenance.seconds,
        "versions": provenance.versions,
        "warnings": list(dict.fromkeys([*provenance.warnings, *texts])),
    }


def _learnt(emulator: Emulator) -> Iterator[dict[str, Any]]:
    """One row for each posterior that was sampled."""
    several = emulator._several
    if several.shared is not None:
        shared = several.shared
        _, nugget = shared.posterior.to_physical(shared.modes[0].location[None])
        runs = shared.posterior.n_runs
        yield _row("all outputs", runs, len(shared.modes) - 1, float(nugget[0]), shared.result)
        return
    names = [name for j, name in enumerate(emulator.output_names_) if j not in several.certain]
    if several.way == "components":
        names = [f"component {i + 1}" for i in range(len(several.emulators))]
    for name, one in zip(names, several.emulators, strict=True):
        runs, modes = one.posterior_.n_runs, len(one.modes_)
        yield _row(name, runs, modes, float(one.map_.nugget), one.result_)


def _row(name: str, n_runs: int, n_modes: int, nugget: float, result: Any) -> dict[str, Any]:
    return {
        "name": name,
        "n_runs": n_runs,
        "n_modes": n_modes,
        "nugget": nugget,
        "n_evaluations": result.n_evaluations,
        "effective_size": result.effective_size,
        "status": str(result.status),
        "warnings": [f"{name}: {text}" for text in result.warnings],
    }
