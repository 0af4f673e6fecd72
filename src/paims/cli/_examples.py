"""``paims demo`` and ``paims reproduce``: worked examples, from the runs to the results."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

import paims
from paims.cli._emulators import (
    inputs_of,
    joined,
    predict_rows,
    prediction_columns,
    write_report,
)
from paims.cli._fit import fit_emulator, select
from paims.cli._running import (
    CommandError,
    ExitCode,
    Interrupted,
    plain,
    print_json,
    say,
    working,
)
from paims.cli._tables import format_csv, make_folder, read_table, write_text

if TYPE_CHECKING:
    from paims.experiments import Outcome, Settings

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
_SCHEMES = {"both": ("paper", "default"), "paper": ("paper",), "default": ("default",)}
_RESULTS = ("results.json", "results.md")
_INTRODUCTION = (
    "The experiments of Garbuno-Inigo, DiazDelaO and Zuev (2016), Gaussian process "
    "hyper-parameter estimation using Parallel Asymptotically Independent Markov Sampling, "
    "Computational Statistics & Data Analysis 103."
)


def run_demo(folder: Path, force: bool, as_json: bool) -> None:
    """Write the demo's files and say where they are, with the commands that would do the same."""
    start = monotonic()
    paths = {name: str(folder / name) for name in _FILES}
    make_folder(folder, paths, force)
    tell = (lambda text: None) if as_json else say
    runs, new, held_out = (paths[name] for name in ("runs.csv", "new.csv", "validation.csv"))
    saved, predicted, page = (paths[name] for name in _FILES[3:])
    _write_runs(paths)
    tell(f"{_N_RUNS} runs of Branin's function: {runs}")

    from paims.report import save_with_provenance  # noqa: PLC0415 - slow to import

    tell(f"$ paims fit {runs} --output {_OUTPUT} --save {saved}")
    table = read_table(runs)
    selection = select(table, _OUTPUT, None, None)
    emulator, provenance = fit_emulator(table, selection, {"random_state": 0}, quiet=as_json)
    save_with_provenance(emulator, saved, provenance)

    tell(f"$ paims predict {saved} {new} --out {predicted}")
    X_new = inputs_of(emulator, read_table(new))
    values = predict_rows(emulator, X_new, 0.95, False, True)
    header, rows = joined(read_table(new), prediction_columns(_OUTPUT, 0.95), values)
    write_text(predicted, format_csv(header, rows))

    tell(f"$ paims report {saved} --validation {held_out} --predict {new} --out {page}")
    unseen = read_table(held_out)
    found, _ = write_report(
        emulator,
        provenance,
        page,
        (inputs_of(emulator, unseen), unseen.values([_OUTPUT])[:, 0]),
        X_new,
        "Branin's function, emulated from 18 runs",
        as_json,
    )
    if as_json:
        print_json({"files": paths, "answers": {a.key: a.short for a in found}})
        return
    typer.echo("")
    for answer in found:
        typer.echo(f"{answer.question} {answer.short}.")
    seconds = monotonic() - start
    typer.echo(f"\nThe report is {Path(page).resolve()} ({seconds:.0f} s). Open it in a browser.")


def _write_runs(paths: dict[str, str]) -> None:
    """Simulate the demo's tables: runs, held-out runs, and inputs to predict at."""
    from paims.simulators import branin  # noqa: PLC0415 - slow to import

    names = list(branin.input_names)
    for name, n, seed in (("runs.csv", _N_RUNS, 4), ("validation.csv", _N_HELD_OUT, 99)):
        X = branin.design(n, seed)
        table = np.column_stack([X, branin(X)])
        write_text(paths[name], format_csv([*names, _OUTPUT], table.tolist()))
    write_text(paths["new.csv"], format_csv(names, branin.design(_N_NEW, 7).tolist()))


def run_reproduce(
    which: str,
    scheme: str,
    seed: int,
    n_samples: int | None,
    folder: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Run experiments, write their results, and exit with 3 if a finding does not hold."""
    from paims import experiments  # noqa: PLC0415 - slow to import

    if which != "all" and which not in experiments.NAMES:
        raise CommandError(
            f"There is no experiment '{which}'; use one of {', '.join(experiments.NAMES)} or all."
        )
    if scheme not in _SCHEMES:
        raise CommandError(f"--scheme must be paper, default or both; got '{scheme}'.")
    names = experiments.NAMES if which == "all" else (which,)
    make_folder(folder, _RESULTS, force)
    settings = experiments.Settings(schemes=_SCHEMES[scheme], seed=seed, n_samples=n_samples)
    outcomes = []
    start = monotonic()
    for name in names:
        outcomes.append(_run(name, settings, folder, as_json))
        if not as_json:
            say(f"{name}: {len(outcomes[-1].pictures)} figures, {_verdict(outcomes[-1])}.")
    results = _results(outcomes, settings)
    write_text(str(folder / "results.json"), json.dumps(plain(results), indent=2) + "\n")
    write_text(str(folder / "results.md"), _markdown(outcomes))
    failed = [check for outcome in outcomes for check in outcome.failed]
    if as_json:
        told = {"files": [str(folder / name) for name in _RESULTS], **results}
        print_json(told)
    else:
        for check in failed:
            typer.echo(f"does not hold: {check.key}. {check.detail}")
        n_checks = sum(len(outcome.checks) for outcome in outcomes)
        typer.echo(
            f"{n_checks - len(failed)} of {n_checks} findings of the paper hold. See "
            f"{folder / 'results.md'} ({monotonic() - start:.0f} s)."
        )
    if failed:
        raise typer.Exit(ExitCode.CHECKS)


def _run(name: str, settings: Settings, folder: Path, as_json: bool) -> Outcome:
    from paims import experiments  # noqa: PLC0415 - slow to import

    try:
        with working(f"Running {name}", as_json):
            outcome = experiments.run(name, settings)
            for picture in outcome.pictures:
                picture.save(folder)
    except KeyboardInterrupt:
        raise Interrupted(
            f"Figures that were done stay in {folder}; results.json and results.md were not "
            "written."
        ) from None
    except (ImportError, ConnectionError, FileNotFoundError, ValueError) as error:
        raise CommandError(f"{name}: {error}") from error
    except OSError as error:
        raise CommandError(f"{name}: {folder} cannot be written: {error.strerror}.") from None
    return outcome


def _verdict(outcome: Outcome) -> str:
    if not outcome.checks:
        return "no finding to check"
    if outcome.failed:
        return f"{len(outcome.failed)} of {len(outcome.checks)} findings do not hold"
    return f"{len(outcome.checks)} findings hold"


def _results(outcomes: list[Outcome], settings: Settings) -> dict[str, Any]:
    from paims.experiments import FORMAT_VERSION  # noqa: PLC0415 - slow to import

    return {
        "format": "paims reproduction",
        "format_version": FORMAT_VERSION,
        "paims": paims.__version__,
        "settings": asdict(settings),
        "passed": not any(outcome.failed for outcome in outcomes),
        "experiments": {outcome.name: outcome.as_dict() for outcome in outcomes},
    }


def _markdown(outcomes: list[Outcome]) -> str:
    sections = [outcome.as_markdown() for outcome in outcomes]
    return "\n".join(["# The paper, reproduced\n", _INTRODUCTION + "\n", *sections])
