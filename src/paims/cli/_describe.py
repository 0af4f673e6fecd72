"""What commands print: an emulator and its checks, for people and for machines."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table as RichTable

from paims.cli._errors import CommandError
from paims.cli._tables import Table

if TYPE_CHECKING:
    from paims.diagnostics import LeaveOneOut, Scores, Validation
    from paims.emulator import Emulator
    from paims.report import Provenance

_MOST_MODES = 5  # columns that 80 characters have room for


def emulator_as_dict(emulator: Emulator, provenance: Provenance) -> dict[str, Any]:
    """All that ``info --json`` and ``fit --json`` say."""
    from paims.report import feature_names  # noqa: PLC0415 - slow to import

    result = emulator.result_
    ends = emulator.inputs_.undo(_corners(emulator))
    return {
        "output": provenance.output,
        "inputs": [
            {"name": name, "lower": low, "upper": high, "varies": bool(varies)}
            for name, low, high, varies in zip(
                feature_names(emulator), ends[0], ends[1], emulator.inputs_.active, strict=True
            )
        ],
        "n_runs": emulator.posterior_.n_runs,
        "source": provenance.source,
        "settings": {
            "kernel": emulator.posterior_.kernel.name,
            "mean": str(emulator.mean),
            "prior": str(emulator.prior),
            "nugget": emulator.nugget
            if isinstance(emulator.nugget, int | float)
            else str(emulator.nugget),
            "nugget_prior": str(emulator.nugget_prior),
            "goal": emulator.goal,
            "predictive": emulator.predictive,
            "random_state": emulator.random_state,
        },
        "modes": [
            {
                "mass": mode.mass,
                "mass_error": mode.mass_error,
                "length_scales": dict(
                    zip(mode.input_names, mode.length_scales.tolist(), strict=True)
                ),
                "nugget": mode.nugget,
                "says": mode.says,
            }
            for mode in emulator.modes_
        ],
        "kernel_evidence": emulator.kernel_evidence_,
        "log_evidence": emulator.log_evidence_,
        "log_evidence_error": emulator.log_evidence_error_,
        "n_evaluations": result.n_evaluations,
        "effective_size": result.effective_size,
        "n_components": len(emulator.ensemble_.weights),
        "status": str(result.status),
        "seconds": provenance.seconds,
        "versions": provenance.versions,
        "warnings": list(dict.fromkeys([*provenance.warnings, *result.warnings])),
    }


def _corners(emulator: Emulator) -> Any:
    import numpy as np  # noqa: PLC0415

    p = int(emulator.inputs_.active.sum())
    return np.vstack([np.zeros(p), np.ones(p)])


def print_emulator(emulator: Emulator, provenance: Provenance) -> None:
    """Inputs, modes and settings as tables."""
    about = emulator_as_dict(emulator, provenance)
    console = Console(highlight=False)
    source = f", from {about['source']}" if about["source"] else ""
    console.print(f"[bold]Emulator of {provenance.output}[/bold]: {about['n_runs']} runs{source}")
    inputs = RichTable(box=SIMPLE, show_edge=False)
    for heading in ("input", "from", "to", ""):
        inputs.add_column(heading, justify="left" if heading in ("input", "") else "right")
    for row in about["inputs"]:
        note = "" if row["varies"] else "one value only: left out"
        inputs.add_row(row["name"], f"{row['lower']:.6g}", f"{row['upper']:.6g}", note)
    console.print(inputs)
    _print_modes(emulator, console)
    settings = about["settings"]
    console.print(
        f"{settings['kernel'].replace('_', ' ')} kernel, {settings['mean']} trend, "
        f"{settings['prior']} prior, nugget {_nugget(settings)}; seed "
        f"{settings['random_state']}"
    )
    if about["kernel_evidence"]:
        from paims.emulator._choosing import in_words  # noqa: PLC0415 - slow to import

        console.print(f"kernel chosen by log evidence: {in_words(about['kernel_evidence'])}")
    console.print(
        f"{about['n_evaluations']} evaluations, effective size {about['effective_size']:.0f}, log "
        f"evidence {about['log_evidence']:.3f} +- {about['log_evidence_error']:.3f}; "
        f"{about['status']}"
    )
    for text in about["warnings"]:
        console.print(f"[yellow]warning:[/yellow] {text}")


def _nugget(settings: dict[str, Any]) -> str:
    """How the noise was treated, in words."""
    if settings["nugget"] != "estimate":
        return str(settings["nugget"])
    return f"estimated ({settings['nugget_prior'].replace('_', ' ')} prior)"


def _print_modes(emulator: Emulator, console: Console) -> None:
    """A column for each mode, as there may be many inputs, and below what each says."""
    modes = list(emulator.modes_)
    shown, more = modes[:_MOST_MODES], modes[_MOST_MODES:]
    table = RichTable(box=SIMPLE, show_edge=False)
    table.add_column("mode")
    for letter, _ in zip(ascii_uppercase, shown, strict=False):
        table.add_column(letter, justify="right")
    table.add_row("probability", *(f"{mode.mass:.3f}" for mode in shown))
    for i, name in enumerate(emulator.map_.input_names):
        table.add_row(f"length {name}", *(f"{mode.length_scales[i]:.4g}" for mode in shown))
    table.add_row("nugget", *(f"{mode.nugget:.3g}" for mode in shown))
    console.print(table)
    for letter, mode in zip(ascii_uppercase, shown, strict=False):
        console.print(f"{letter}: {mode.says}", markup=False)
    if more:
        mass = sum(mode.mass for mode in more)
        console.print(f"{len(more)} more modes have probability {mass:.3f} together.")


def scores_as_dict(scores: Scores) -> dict[str, Any]:
    """Scores, for machines."""
    names = ("n", "rmse", "nlpd", "nlpd_error", "crps", "crps_error", "coverage_95", "q2")
    return {name: getattr(scores, name) for name in names}


def validation_as_dict(validation: Validation) -> dict[str, Any]:
    """Checks against held-out runs, for machines."""
    return {
        "passed": validation.passed,
        "scores": scores_as_dict(validation.scores),
        "checks": {
            name: {"passed": passed, "verdict": text}
            for name, (passed, text) in validation.checks.items()
        },
    }


def loo_as_dict(loo: LeaveOneOut) -> dict[str, Any]:
    """Leave-one-out checks, for machines."""
    checks = {
        "single errors": (loo.residuals.passed, loo.residuals.verdict),
        "coverage": (loo.coverage.passed, loo.coverage.verdict),
    }
    return {
        "passed": loo.passed,
        "scores": scores_as_dict(loo.summary),
        "checks": {
            name: {"passed": passed, "verdict": text} for name, (passed, text) in checks.items()
        },
        "unreliable_runs": loo.unreliable.tolist(),
    }


def print_checks(title: str, checks: dict[str, Any]) -> None:
    """Scores and checks as lines."""
    console = Console(highlight=False)
    scores = checks["scores"]
    console.print(f"[bold]{title}[/bold]")
    console.print(
        f"{scores['n']} outputs: typical error {scores['rmse']:.4g}, explained share of the "
        f"variance {scores['q2']:.4g}, {scores['coverage_95']:.1%} inside 95 % intervals"
    )
    for name, check in checks["checks"].items():
        mark = "[green]ok  [/green]" if check["passed"] else "[red]LOOK[/red]"
        console.print(f"{mark} {name}: {check['verdict']}")


def table_as_dict(table: Table) -> dict[str, Any]:
    """Columns of a table with their ranges; a column with text says where it begins."""
    columns = []
    for name in table.columns:
        try:
            values = table.values([name])
        except CommandError as error:
            columns.append({"name": name, "trouble": str(error)})
        else:
            columns.append({"name": name, "lower": values.min(), "upper": values.max()})
    return {"file": table.name, "n_rows": len(table), "columns": columns}


def print_table(about: dict[str, Any]) -> None:
    """Columns of a table, for people."""
    console = Console(highlight=False)
    console.print(f"[bold]{about['file']}[/bold]: {about['n_rows']} rows", markup=True)
    listed = RichTable(box=SIMPLE, show_edge=False)
    for heading in ("column", "from", "to", ""):
        listed.add_column(heading, justify="left" if heading in ("column", "") else "right")
    for column in about["columns"]:
        if "trouble" in column:
            listed.add_row(column["name"], "", "", column["trouble"])
        else:
            listed.add_row(column["name"], f"{column['lower']:.6g}", f"{column['upper']:.6g}", "")
    console.print(listed)
