"""Targets that hurt (:mod:`benchmarks.hard`), other samplers beside ours.

`python -m benchmarks.peers.foreign` measures what is not in `benchmarks/foreign.jsonl` yet, each
run in a process with a time limit, and writes the table of `docs/benchmarks.md`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import paims
from benchmarks import hard
from benchmarks.peers.cells import Cell, Record, Store
from benchmarks.peers.clock import Clock
from benchmarks.peers.problems import Draws, Problem
from benchmarks.peers.report import Columns, table
from benchmarks.peers.runner import run
from benchmarks.peers.samplers import adapter

RESULTS = Path(__file__).parents[1] / "foreign.jsonl"
PAGE = RESULTS.with_suffix(".md")
LIMIT = 600.0
SEEDS = 3
OURS = "paims"
NESTED = {"nautilus": "n_live = 2000", "dynesty": "nlive = 500"}
SPIKES = {**NESTED, "ultranest": "at least 400 live points"}
# Case: its target, our settings (defaults but for what is said), and who is beside us.
CASES: dict[str, tuple[Callable[[], hard.Case], dict[str, Any], dict[str, str]]] = {
    "spike_and_slab_5d": (lambda: hard.of(hard.targets.spike_and_slab(5)), {}, SPIKES),
    "spike_0.1_offset_5d": (lambda: hard.offset_spike(5, 0.1), {"search": 12.0}, SPIKES),
    "funnel_10d": (lambda: hard.funnel(10), {}, NESTED),
    "rosenbrock_10d": (lambda: hard.even_rosenbrock(10), {"max_evaluations": 1_500_000}, NESTED),
    "log_gamma_20d": (lambda: hard.log_gamma(20), {"max_evaluations": 1_500_000}, NESTED),
    "log_gamma_30d": (lambda: hard.log_gamma(30), {"max_evaluations": 1_500_000}, NESTED),
}
COLUMNS: Columns = (
    ("target", "case", "s"),
    ("sampler", "method", "s"),
    ("setting", "setting", "s"),
    ("runs", "n", "d"),
    ("no result", "lost", "d"),
    ("evaluations", "n_evaluations", ",.0f"),
    ("processor seconds", "cpu_seconds", ".1f"),
    ("log Z errors", "errors", "s"),
    ("worst mass error", "mass_error", ".3f"),
    ("warned", "warned", "s"),
)


def cells(seeds: int = SEEDS) -> list[Cell]:
    """Every sampler on every case."""
    return [
        Cell("foreign", method, case, setting, seed)
        for case, (_, ours, others) in CASES.items()
        for method, setting in {OURS: _worded(ours), **others}.items()
        for seed in range(seeds)
    ]


def _worded(settings: dict[str, Any]) -> str:
    return ", ".join(f"{k} = {v:,g}" for k, v in settings.items()) or "defaults"


def problem(case: hard.Case) -> Problem:
    """A case as every sampler is given it; moments are not compared."""
    lower = np.asarray(case.reference.lower, dtype=float)
    return Problem(
        name=case.name,
        density_fn=case.log_density,
        reference=case.reference,
        log_evidence=case.log_evidence,
        mean=np.zeros_like(lower),
        sd=np.ones_like(lower),
        masses=np.empty(0),
        masses_of=lambda draws, weights: np.empty(0),
    )


@cache
def warm_up() -> None:
    """Load our compiled loops, which is done once in a process and not measured."""
    easy = problem(hard.of(hard.targets.two_gaussians(2)))
    paims.sample(easy.density_fn, easy.reference, 500, random_state=0, n_jobs=1, progress=False)


def measure(cell: Cell) -> dict[str, Any]:
    """Run one sampler once."""
    make, settings, _ = CASES[cell.case]
    case = make()
    target = problem(case)
    row: dict[str, Any] = {}
    if cell.method == OURS:
        warm_up()
    with Clock() as clock:
        if cell.method == OURS:
            result = paims.sample(
                target.log_density, target.reference, random_state=cell.seed, n_jobs=1,
                progress=False, **settings,
            )  # fmt: skip
            row["warned"] = bool(result.warnings)
            found = Draws(result.draws, result.weights, result.log_evidence)
        else:
            found = adapter(cell.method).run(target, cell.setting, cell.seed)
    row |= {
        "seconds": clock.seconds,
        "cpu_seconds": clock.cpu_seconds,
        "n_evaluations": target.n_evaluations,
        "log_evidence_error": found.log_evidence - case.log_evidence,
    }
    if case.masses is not None and case.assign is not None:
        mode = case.assign(found.draws)
        mass = np.bincount(mode, weights=found.weights, minlength=len(case.masses))
        row["mass_error"] = float(np.max(np.abs(mass - case.masses)))
    return row


def report(records: list[Record]) -> str:
    """One row for each sampler and target: medians, and the errors of all runs."""
    rows = []
    for case, (_, ours, others) in CASES.items():
        for method, setting in {OURS: _worded(ours), **others}.items():
            own = [r for r in records if r["case"] == case and r["method"] == method]
            if own:
                rows.append({"case": case, "method": method, "setting": setting, **_row(own)})
    return table(rows, COLUMNS)


def _row(own: list[Record]) -> dict[str, Any]:
    ended = sorted((r for r in own if r["status"] == "ok"), key=lambda r: r["seed"])
    errors = [f"{r['log_evidence_error']:+.2f}" for r in ended]
    row: dict[str, Any] = {
        "n": len(own),
        "failed": len(own) - len(ended),
        "errors": ", ".join(errors) or "-",
        "mass_error": max((r["mass_error"] for r in ended if "mass_error" in r), default=None),
        "warned": f"{sum(r['warned'] for r in ended)}" if ended and "warned" in ended[0] else "-",
    }
    for field in ("n_evaluations", "cpu_seconds"):
        row[field] = float(np.median([r[field] for r in ended])) if ended else None
    return row


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--only", default="", help="regular expression found in a cell's text")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one run")
    parser.add_argument("--again", action="store_true", help="measure again what is there")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true", help="write the table and stop")
    given = parser.parse_args()
    store = Store(given.results)
    if not given.report:
        wanted = [cell for cell in cells(given.seeds) if re.search(given.only, str(cell))]
        run(wanted, store, given.limit, again=given.again)
    PAGE.write_text(report(list(store)) + "\n", encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
