"""Writes `results.json` and `results.md`: tables that say with what they were measured."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import goals, machine, summary
from benchmarks.peers.cells import Record, Store

Row = dict[str, Any]
# Heading, field, format.
Columns = Sequence[tuple[str, str, str]]
SAMPLERS: Columns = (
    ("sampler", "method", "s"),
    ("setting", "setting", "s"),
    ("seeds", "n", "d"),
    ("failed", "lost", "d"),
    ("evaluations", "n_evaluations", ",.0f"),
    ("seconds", "seconds", ".2f"),
    ("in the density", "density_seconds", ".2f"),
    ("rms error", "rms", ".4f"),
    ("log Z error", "log_evidence_rms", ".3f"),
    ("ours, no more evaluations: rms", "rms_ours", ".4f"),
    ("ours, as accurate: seconds", "seconds_ours", ".2f"),
    ("times faster", "times_faster", ".1f"),
)
EMULATORS: Columns = (
    ("emulator", "method", "s"),
    ("designs", "n", "d"),
    ("failed", "lost", "d"),
    ("RMSE", "rmse", ".4f"),
    ("nlpd", "nlpd", ".3f"),
    ("nlpd of ours on these", "nlpd_ours", ".3f"),
    ("CRPS", "crps", ".4f"),
    ("coverage", "coverage", ".3f"),
    ("trapped", "trapped", "d"),
    ("fit, s", "seconds", ".2f"),
    ("predict, s", "predict_seconds", ".4f"),
)
OVERALL: Columns = (
    ("emulator", "method", "s"),
    ("designs", "n", "d"),
    ("failed", "failed", "d"),
    ("RMSE", "rmse", ".4f"),
    ("nlpd", "nlpd", ".3f"),
    ("nlpd of ours on these", "nlpd_ours", ".3f"),
    ("CRPS", "crps", ".4f"),
    ("coverage", "coverage", ".3f"),
    ("trapped", "trapped", "d"),
    ("fit, s", "seconds", ".2f"),
)
RATES: Columns = (("engine", "method", "s"), ("evaluations/s", "rate", ",.0f"))


def table(rows: Sequence[Row], columns: Columns) -> str:
    """A Markdown table; a number that is not there is a dash."""
    lines = [
        "| " + " | ".join(heading for heading, _, _ in columns) + " |",
        "|" + "|".join("---" if kind == "s" else "---:" for _, _, kind in columns) + "|",
    ]
    for row in rows:
        lost = {"lost": row.get("failed", 0) + row.get("timeouts", 0)}
        cells = [_shown({**row, **lost}.get(field), kind) for _, field, kind in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _shown(value: Any, kind: str) -> str:
    return "-" if value is None else format(value, kind)


def by_case(rows: Sequence[Row], columns: Columns, heading: str) -> str:
    """A table for each case."""
    parts = []
    for case in dict.fromkeys(row["case"] for row in rows):
        of_case = [row for row in rows if row["case"] == case]
        parts.append(f"{heading} {case}\n\n{table(of_case, columns)}")
    return "\n\n".join(parts)


def growth(rows: Sequence[Row], heading: str) -> str:
    """A table for each case: seconds and rms errors by size, and how the seconds grow."""
    parts = []
    for case in dict.fromkeys(row["case"] for row in rows):
        of_case = [row for row in rows if row["case"] == case]
        sizes = sorted({row["size"] for row in of_case})
        columns = (
            ("method", "method", "s"),
            *((f"{size}", f"{size}", "") for size in sizes),
            ("grows as size to the", "power", ".1f"),
        )
        lines = []
        for method in dict.fromkeys(row["method"] for row in of_case):
            done = [
                row for row in of_case if row["method"] == method and row["seconds"] is not None
            ]
            by_size = {f"{r['size']}": f"{r['seconds']:.2f} ({r['rms']:.2g})" for r in done}
            power = _power({row["size"]: row["seconds"] for row in done})
            lines.append({"method": method, "power": power, **by_size})
        parts.append(f"{heading} {case}\n\n{table(lines, columns)}")
    return "\n\n".join(parts)


def _power(seconds: dict[int, float]) -> float | None:
    """Slope of log seconds in log size between the two largest sizes."""
    if len(seconds) < 2:
        return None
    small, large = sorted(seconds)[-2:]
    return float(np.log(seconds[large] / seconds[small]) / np.log(large / small))


def about(records: Sequence[Record], found: dict[str, Any]) -> str:
    """With what, how often and under which load it was measured."""
    load = [record["load"] for record in records if "load" in record]
    wall = [r["seconds"] / r["cpu_seconds"] for r in records if r.get("cpu_seconds", 0.0) > 0.1]
    clock = (
        f" (the clock showed {np.median(wall):.1f} times the processor seconds)" if wall else ""
    )
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return "\n".join(
        [
            f"{found['processor']}, {found['cores']} cores, {found['memory']}, "
            f"{found['system']}, Python {found['python']}; {versions}.",
            "",
            "One thread for everybody. Seconds are processor seconds of "
            "the process without imports and compilation; load of the machine "
            f"{np.min(load):.1f} to {np.max(load):.1f}, median {np.median(load):.1f}{clock}. "
            "Seeds and designs count from 0; their numbers are in the tables.",
        ]
    )


def markdown(records: Sequence[Record], found: dict[str, Any]) -> str:
    """The whole page."""
    sampling, emulation = summary.samplers(records), summary.emulators(records)
    overall = summary.overall(emulation)
    aims = [
        {"goal": goal, "found": text, "verdict": verdict}
        for goal, text, verdict in goals.verdicts(list(records))
    ]
    parts = [
        "<!-- Written by `python -m benchmarks.peers`; not edited by hand. -->",
        about(records, found),
        "## Goals",
        table(aims, (("goal", "goal", "s"), ("verdict", "verdict", "s"), ("found", "found", "s"))),
    ]
    sections = (
        ("Samplers", by_case(sampling, SAMPLERS, "###")),
        ("Emulators", by_case(emulation, EMULATORS, "###")),
        ("Log posterior evaluations", by_case(summary.rates(records), RATES, "###")),
        ("Growth", growth(summary.growth(records), "###")),
    )
    for heading, text in sections:
        if not text:
            continue
        parts.append(f"## {heading}")
        if heading == "Emulators" and overall:
            parts.append("### mean over the cases\n\n" + table(overall, OVERALL))
        parts.append(text)
    return "\n\n".join(parts) + "\n"


def write(store: Store, folder: Path) -> None:
    """Write both files, each whole or not at all."""
    records = list(store)
    if not records:
        raise ValueError(f"{store.path.name} in the output folder has no results yet.")
    found = machine.describe()
    content = {
        "machine": found,
        "samplers": summary.samplers(records),
        "emulators": summary.emulators(records),
        "pointwise": summary.rates(records),
        "scaling": summary.growth(records),
    }
    _replace(folder / "results.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    _replace(folder / "results.md", markdown(records, found))


def _replace(path: Path, text: str) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)
