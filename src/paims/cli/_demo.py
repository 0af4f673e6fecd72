"""``paims demo``: the whole way on Branin's function, as the paper has it."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import typer

from paims._arrays import FloatArray
from paims.cli._emulators import inputs_of
from paims.cli._files import make_folder, write_text
from paims.cli._fit import Selection, fit_emulator
from paims.cli._predict import joined, predict_rows, prediction_columns
from paims.cli._running import collected_warnings, print_json, say, working
from paims.cli._tables import format_csv, read_table

_OUTPUT = "branin"
_N_RUNS = 18
_N_HELD_OUT = 40
_N_NEW = 25
_FILES = (
    "runs.csv",
    "new.csv",
    "validation.csv",
    "emulator.h5",
    "predictions.csv",
    "report.html",
)


def run_demo(folder: Path, force: bool, as_json: bool) -> None:
    """Write the demo's files and say where they are, with the commands that would do the same."""
    start = monotonic()
    paths = {name: folder / name for name in _FILES}
    make_folder(folder, paths, force)

    from paims import simulators  # noqa: PLC0415 - slow to import, after the checks
    from paims.report import answers, render_report, save_with_provenance, study  # noqa: PLC0415

    tell = (lambda text: None) if as_json else say
    simulator = simulators.branin
    names = list(simulator.input_names)
    runs, held_out = simulator.design(_N_RUNS, 4), simulator.design(_N_HELD_OUT, 99)
    tables: dict[str, tuple[list[str], FloatArray]] = {
        "runs.csv": ([*names, _OUTPUT], np.column_stack([runs, simulator(runs)])),
        "validation.csv": (
            [*names, _OUTPUT],
            np.column_stack([held_out, simulator(held_out)]),
        ),
        "new.csv": (names, simulator.design(_N_NEW, 7)),
    }
    for name, (header, values) in tables.items():
        write_text(str(paths[name]), format_csv(header, values.tolist()))
    tell(f"{_N_RUNS} runs of Branin's function: {paths['runs.csv']}")

    tell(f"$ paims fit {paths['runs.csv']} --output {_OUTPUT} --save {paths['emulator.h5']}")
    table = read_table(str(paths["runs.csv"]))
    selection = Selection(tuple(names), _OUTPUT)
    emulator, provenance = fit_emulator(table, selection, {"random_state": 0}, quiet=as_json)
    save_with_provenance(emulator, paths["emulator.h5"], provenance)

    tell(
        f"$ paims predict {paths['emulator.h5']} {paths['new.csv']} --out "
        f"{paths['predictions.csv']}"
    )
    new = read_table(str(paths["new.csv"]))
    X_new = inputs_of(emulator, new)
    values = predict_rows(emulator, X_new, 0.95, False, True)
    header, rows = joined(new, prediction_columns(_OUTPUT, 0.95), values)
    write_text(str(paths["predictions.csv"]), format_csv(header, rows))

    tell(
        f"$ paims report {paths['emulator.h5']} --validation {paths['validation.csv']} --predict "
        f"{paths['new.csv']} --out {paths['report.html']}"
    )
    with collected_warnings(), working("Computing diagnostics and drawing figures", as_json):
        numbers = study(emulator, (held_out, simulator(held_out)))
        title = "Branin's function, emulated from 18 runs"
        page = render_report(emulator, provenance, new_inputs=X_new, title=title, numbers=numbers)
    write_text(str(paths["report.html"]), page)
    found = answers(numbers)
    report = paths["report.html"].resolve()
    if as_json:
        told: dict[str, Any] = {name: str(path) for name, path in paths.items()}
        print_json({"files": told, "answers": {a.key: a.short for a in found}})
        return
    typer.echo("")
    for answer in found:
        typer.echo(f"{answer.question} {answer.short}.")
    typer.echo(f"\nThe report is {report} ({monotonic() - start:.0f} s). Open it in a browser.")
