"""What commands print: an emulator and its checks, for people and for machines."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from paims._names import shortened, visible
from paims.cli._running import CommandError
from paims.cli._tables import Table
from paims.emulator._description import kernels_in_words, nugget_in_words

if TYPE_CHECKING:
    from paims.diagnostics import LeaveOneOut, Scores, Validation

_MOST_MODES = 5  # columns that 80 characters have room for
_MOST_CHARACTERS = 60  # of a name


def print_emulator(facts: dict[str, Any]) -> None:
    """Inputs, modes and settings as tables."""
    console = _console()
    source = f", from {visible(facts['source'])}" if facts["source"] else ""
    _print_heading(
        console, f"Emulator of {_named(facts['output'])}", f": {facts['n_runs']} runs{source}"
    )
    inputs = _ranges("input")
    for row in facts["inputs"]:
        note = "" if row["varies"] else "one value only: left out"
        inputs.add_row(_named(row["name"]), f"{row['lower']:.6g}", f"{row['upper']:.6g}", note)
    console.print(inputs)
    _print_modes(facts["modes"], console)
    settings = facts["settings"]
    several = "s" if facts["kernel_evidence"] else ""
    console.print(
        f"kernel{several} {kernels_in_words(facts)}; {settings['mean']} trend, "
        f"{settings['prior']} prior, nugget {nugget_in_words(facts)}; "
        f"seed {settings['random_state']}"
    )
    console.print(
        f"{facts['n_evaluations']} evaluations, effective size {facts['effective_size']:.0f}, log "
        f"evidence {facts['log_evidence']:.3f} +- {facts['log_evidence_error']:.3f}; "
        f"{facts['status']}"
    )
    for text in facts["warnings"]:
        console.print(Text.assemble(("warning:", "yellow"), f" {visible(text)}"))


def _console() -> Console:
    """Standard output, on which a text is shown as it is: names are no markup."""
    return Console(highlight=False, markup=False, emoji=False)


def _named(name: str) -> str:
    """A name for a line of a table or a text."""
    return shortened(visible(name), _MOST_CHARACTERS)


def _print_heading(console: Console, heading: str, rest: str = "") -> None:
    console.print(Text.assemble((heading, "bold"), rest))


def _ranges(heading: str) -> RichTable:
    """An empty table of names with their ranges, and a note to each."""
    table = RichTable(box=SIMPLE, show_edge=False)
    table.add_column(heading, overflow="fold")
    table.add_column("from", justify="right", overflow="fold")
    table.add_column("to", justify="right", overflow="fold")
    table.add_column("")
    return table


def _print_modes(modes: list[dict[str, Any]], console: Console) -> None:
    """A column for each mode, as there may be many inputs, and below what each says."""
    shown, more = modes[:_MOST_MODES], modes[_MOST_MODES:]
    table = RichTable(box=SIMPLE, show_edge=False)
    table.add_column("mode", overflow="fold")
    for letter, _ in zip(ascii_uppercase, shown, strict=False):
        table.add_column(letter, justify="right", overflow="fold")
    table.add_row("probability", *(f"{mode['mass']:.3f}" for mode in shown))
    for name in modes[0]["length_scales"] if modes else ():
        table.add_row(
            f"length {_named(name)}", *(f"{m['length_scales'][name]:.4g}" for m in shown)
        )
    table.add_row("nugget", *(f"{mode['nugget']:.3g}" for mode in shown))
    console.print(table)
    for letter, mode in zip(ascii_uppercase, shown, strict=False):
        console.print(f"{letter}: {visible(mode['says'])}", markup=False)
    if more:
        mass = sum(mode["mass"] for mode in more)
        console.print(f"{len(more)} more modes have probability {mass:.3f} together.")


def validation_as_dict(validation: Validation) -> dict[str, Any]:
    """Checks against held-out runs, for machines."""
    return _checks_as_dict(validation.passed, validation.scores, validation.checks)


def loo_as_dict(loo: LeaveOneOut) -> dict[str, Any]:
    """Leave-one-out checks, for machines."""
    checks = {
        "single errors": (loo.residuals.passed, loo.residuals.verdict),
        "coverage": (loo.coverage.passed, loo.coverage.verdict),
    }
    told = _checks_as_dict(loo.passed, loo.summary, checks)
    return {**told, "unreliable_runs": loo.unreliable.tolist()}


def _checks_as_dict(
    passed: bool, scores: Scores, checks: dict[str, tuple[bool, str]]
) -> dict[str, Any]:
    names = ("n", "rmse", "nlpd", "nlpd_error", "crps", "crps_error", "coverage_95", "q2")
    return {
        "passed": passed,
        "scores": {name: getattr(scores, name) for name in names},
        "checks": {
            name: {"passed": fine, "verdict": text} for name, (fine, text) in checks.items()
        },
    }


def print_checks(title: str, checks: dict[str, Any]) -> None:
    """Scores and checks as lines."""
    console = _console()
    scores = checks["scores"]
    _print_heading(console, visible(title))
    console.print(
        f"{scores['n']} outputs: typical error {scores['rmse']:.4g}, explained share of the "
        f"variance {scores['q2']:.4g}, {scores['coverage_95']:.1%} inside 95 % intervals"
    )
    for name, check in checks["checks"].items():
        mark = ("ok  ", "green") if check["passed"] else ("LOOK", "red")
        console.print(Text.assemble(mark, f" {name}: {visible(check['verdict'])}"))


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
    console = _console()
    _print_heading(console, visible(about["file"]), f": {about['n_rows']} rows")
    listed = _ranges("column")
    for column in about["columns"]:
        if "trouble" in column:
            listed.add_row(_named(column["name"]), "", "", visible(column["trouble"]))
        else:
            low, high = f"{column['lower']:.6g}", f"{column['upper']:.6g}"
            listed.add_row(_named(column["name"]), low, high, "")
    console.print(listed)
