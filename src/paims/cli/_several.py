"""What commands do with an emulator of several outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.box import SIMPLE
from rich.table import Table as RichTable
from rich.text import Text

from paims._arrays import FloatArray
from paims._names import listed, visible
from paims.cli._describe import (
    _console,
    _named,
    _print_heading,
    loo_as_dict,
    validation_as_dict,
)
from paims.cli._emulators import _blocks, prediction_columns
from paims.cli._running import CommandError
from paims.cli._tables import Table
from paims.emulator._several_description import Checked, check_outputs, several_facts

if TYPE_CHECKING:
    from paims.emulator import Emulator

__all__ = [
    "diagnosed",
    "one_output",
    "outputs_of",
    "predict_columns",
    "predict_outputs",
    "print_diagnosed",
    "print_several",
    "several_facts",
]

_SHOWN = 12


def one_output(emulator: Emulator, name: str | None) -> Any:
    """The emulator of one output, or of a component as "component 2"."""
    names = list(emulator.output_names_)
    if emulator.way_ == "components":
        names = [f"component {i + 1}" for i in range(len(emulator.components_))]
    if name not in names:
        raise CommandError(f"Whose draws? Say --output NAME; there are {listed(names)}.")
    at = names.index(name)
    found = emulator.components_[at] if emulator.way_ == "components" else emulator.outputs_[at]
    if not hasattr(found, "draws_"):
        raise CommandError(f"{name} leaves nothing to learn: there are no draws of it.")
    return found


def predict_columns(emulator: Emulator, level: float) -> list[str]:
    """Names of the columns that a prediction adds."""
    return [
        column for name in emulator.output_names_ for column in prediction_columns(name, level)
    ]


def predict_outputs(
    emulator: Emulator, X: FloatArray, level: float, smooth: bool, quiet: bool
) -> FloatArray:
    """Mean, std and interval of each output at each row, ``(n, 4 m)``."""
    m = len(emulator.output_names_)
    out = np.empty((len(X), m, 4))
    for rows in _blocks(len(X), quiet):
        joint = emulator._several.joint(X[rows], include_nugget=not smooth)
        mean, std = joint._moments()
        parts = [mean, std, *joint.interval(level)]
        out[rows] = np.stack(parts, axis=-1)
    return out.reshape(len(X), 4 * m)


def outputs_of(emulator: Emulator, table: Table) -> FloatArray:
    """The emulator's outputs in a table, ``(n, m)``; NaN where a cell is empty."""
    return table.values(emulator.output_names_, missing=True)


def diagnosed(
    emulator: Emulator, held_out: tuple[FloatArray, FloatArray] | None
) -> dict[str, Any]:
    """Checks of each output, for machines."""
    try:
        found = check_outputs(emulator, held_out)
    except ValueError as error:
        raise CommandError(str(error)) from None
    outputs = {one.name: _as_dict(one) for one in found}
    return {
        "passed": all(told["passed"] for told in outputs.values()),
        "n_outputs": len(emulator.output_names_) - len(emulator._several.certain),
        "outputs": outputs,
    }


def _as_dict(one: Checked) -> dict[str, Any]:
    return loo_as_dict(one.loo) if one.loo is not None else validation_as_dict(one.validation)  # type: ignore[arg-type]


def print_diagnosed(title: str, told: dict[str, Any]) -> None:
    """One row for each output; of many the worst."""
    console = _console()
    _print_heading(console, visible(title))
    ranked = sorted(told["outputs"].items(), key=lambda item: item[1]["scores"]["q2"])
    shown = ranked if len(ranked) <= _SHOWN else ranked[:_SHOWN]
    table = _table("output", "typical error", "explained", "inside 95 %", "")
    for name, checks in shown:
        scores = checks["scores"]
        wrong = [key for key, check in checks["checks"].items() if not check["passed"]]
        mark = Text("ok", "green") if checks["passed"] else Text("LOOK", "red")
        mark.append(f" {', '.join(wrong)}" if not checks["passed"] else "")
        table.add_row(
            _named(name),
            f"{scores['rmse']:.4g}",
            f"{scores['q2']:.4f}",
            f"{scores['coverage_95']:.1%}",
            mark,
        )
    console.print(table)
    failed = sum(not checks["passed"] for _, checks in ranked)
    text = f"{failed} of {len(ranked)} outputs have a check that speaks against them"
    if len(ranked) > len(shown):
        text += f"; shown are the {len(shown)} that are explained worst"
    if len(ranked) < told["n_outputs"]:
        text += f"; {len(ranked)} of {told['n_outputs']} outputs were checked, evenly chosen"
    console.print(f"{text}.")


def print_several(facts: dict[str, Any]) -> None:
    """Outputs and settings as tables."""
    console = _console()
    source = f", from {visible(facts['source'])}" if facts["source"] else ""
    heading = f"Emulator of {len(facts['outputs'])} outputs"
    _print_heading(console, heading, f": {facts['n_runs']} runs{source}")
    inputs = _table("input", "from", "to", "")
    for row in facts["inputs"]:
        note = "" if row["varies"] else "one value only: left out"
        inputs.add_row(_named(row["name"]), f"{row['lower']:.6g}", f"{row['upper']:.6g}", note)
    console.print(inputs)
    console.print(f"{facts['way']}: {visible(facts['why'])}")
    table = _table("learnt", "runs", "modes", "nugget", "evaluations", "effective size")
    for row in facts["learnt"][:_SHOWN]:
        table.add_row(
            _named(row["name"]),
            str(row["n_runs"]),
            str(row["n_modes"]),
            f"{row['nugget']:.3g}",
            str(row["n_evaluations"]),
            f"{row['effective_size']:.0f}",
        )
    console.print(table)
    if len(facts["learnt"]) > _SHOWN:
        console.print(f"and {len(facts['learnt']) - _SHOWN} more")
    for text in facts["certain"]:
        console.print(f"{visible(text)}: predicted without uncertainty")
    settings = facts["settings"]
    console.print(
        f"{settings['kernel']} kernel, {settings['mean']} trend, {settings['prior']} prior; "
        f"seed {settings['random_state']}"
    )
    for text in facts["warnings"]:
        console.print(Text.assemble(("warning:", "yellow"), f" {visible(text)}"))


def _table(*headings: str) -> RichTable:
    table = RichTable(box=SIMPLE, show_edge=False)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place and heading else "left")
    return table
