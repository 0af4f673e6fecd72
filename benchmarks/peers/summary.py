"""From records of cells to the numbers of the tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmarks.peers.cells import Record

OURS = "paims"
# An emulator is called trapped on a design where its RMSE is this many times the best peer's.
TRAPPED = 3.0


def grouped(
    records: Iterable[Record], experiment: str, *keys: str
) -> dict[tuple[Any, ...], list[Record]]:
    """Records of an experiment by the values of some of their fields, in order of appearance."""
    found: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        if record["experiment"] == experiment:
            found[tuple(record[key] for key in keys)].append(record)
    return dict(found)


def column(
    records: Iterable[Record], name: str, reduce: Callable[[Any], Any] = np.mean
) -> float | None:
    """A field of the records that have it, reduced to one number."""
    values = [record[name] for record in records if record.get(name) is not None]
    return float(reduce(np.array(values))) if values else None


def rms(values: Any) -> float:
    """Root mean square."""
    return float(np.sqrt(np.mean(np.square(values))))


def _counts(records: list[Record]) -> dict[str, int]:
    ok = sum(record["status"] == "ok" for record in records)
    late = sum(record["status"] == "timeout" for record in records)
    return {"n": ok, "failed": len(records) - ok - late, "timeouts": late}


def samplers(records: Iterable[Record]) -> list[Record]:
    """A row for each problem, sampler and setting; then what ours does beside it."""
    rows = []
    groups = grouped(records, "samplers", "case", "method", "setting")
    for (case, method, setting), members in groups.items():
        rows.append(
            {
                "case": case,
                "method": method,
                "setting": setting,
                **_counts(members),
                "n_evaluations": column(members, "n_evaluations", np.median),
                "seconds": column(members, "cpu_seconds", np.median),
                "density_seconds": column(members, "density_seconds", np.median),
                "rms": column(members, "rms", rms),
                "log_evidence_rms": column(members, "log_evidence_error", rms),
            }
        )
    return [{**row, **beside_ours(row, rows)} for row in rows]


def beside_ours(row: Record, rows: list[Record]) -> Record:
    """What ours reaches at no more evaluations, and what it takes to be as accurate.

    Settings of ours as they were run, nothing in between: both comparisons are against us where
    no setting fits exactly. None where no setting fits at all.
    """
    ours = [r for r in rows if (r["case"], r["method"]) == (row["case"], OURS) and r["n"]]
    if row["method"] == OURS or not row["n"]:
        return {"rms_ours": None, "seconds_ours": None, "times_faster": None}
    cheaper = [r["rms"] for r in ours if r["n_evaluations"] <= row["n_evaluations"]]
    as_good = [r["seconds"] for r in ours if r["rms"] <= row["rms"]]
    return {
        "rms_ours": min(cheaper) if cheaper else None,
        "seconds_ours": min(as_good) if as_good else None,
        "times_faster": row["seconds"] / min(as_good) if as_good else None,
    }


def emulators(records: Iterable[Record], mine: str = OURS) -> list[Record]:
    """A row for each case and emulator, with nlpd and time of ``mine`` on the same designs."""
    records = list(records)
    groups = grouped(records, "emulators", "case", "method")
    best = best_rmse(records)
    rows = []
    for (case, method), members in groups.items():
        ok = [record for record in members if record["status"] == "ok"]
        seeds = {record["seed"] for record in ok}
        ours = [r for r in groups.get((case, mine), []) if r["status"] == "ok"]
        rows.append(
            {
                "case": case,
                "method": method,
                **_counts(members),
                **{name: column(ok, name) for name in ("rmse", "nlpd", "crps", "coverage")},
                "nlpd_ours": column([r for r in ours if r["seed"] in seeds], "nlpd"),
                "seconds_ours": column([r for r in ours if r["seed"] in seeds], "cpu_seconds"),
                "seconds": column(ok, "cpu_seconds"),
                "predict_seconds": column(ok, "predict_seconds"),
                "trapped": sum(r["rmse"] > TRAPPED * best[case, r["seed"]] for r in ok),
            }
        )
    return rows


def best_rmse(records: Iterable[Record]) -> dict[tuple[str, int], float]:
    """The least RMSE that a peer reached on each design; infinite where none was run."""
    peers = [record for record in records if not record["method"].startswith(OURS)]
    found: dict[tuple[str, int], float] = defaultdict(lambda: np.inf)
    for (case, seed), members in grouped(peers, "emulators", "case", "seed").items():
        least = column(members, "rmse", np.min)
        if least is not None:
            found[case, seed] = least
    return found


def overall(rows: list[Record]) -> list[Record]:
    """Means over the cases, for the emulators that were run on all of them, best nlpd first."""
    cases = {row["case"] for row in rows}
    methods = {row["method"]: [r for r in rows if r["method"] == row["method"]] for row in rows}
    found = []
    for method, members in methods.items():
        usable = [row for row in members if row["n"]]
        if {row["case"] for row in usable} != cases:
            continue
        found.append(
            {
                "method": method,
                **{
                    name: column(usable, name)
                    for name in ("rmse", "nlpd", "crps", "coverage", "seconds", "nlpd_ours")
                },
                "n": sum(row["n"] for row in usable),
                "failed": sum(row["failed"] + row["timeouts"] for row in members),
                "trapped": sum(row["trapped"] for row in usable),
            }
        )
    return sorted(found, key=lambda row: row["nlpd"])


def rates(records: Iterable[Record]) -> list[Record]:
    """Evaluations per second of each engine in each case."""
    return [
        {
            "case": case,
            "method": method,
            "rate": column(members, "rate", np.max),
            **_counts(members),
        }
        for (case, method), members in grouped(records, "pointwise", "case", "method").items()
    ]


def growth(records: Iterable[Record]) -> list[Record]:
    """Seconds of each method at each size."""
    groups = grouped(records, "scaling", "case", "method", "setting")
    return [
        {
            "case": case.split(": ")[0],
            "method": method,
            "size": int(size),
            "seconds": column(members, "cpu_seconds", np.median),
            "rms": column(members, "rms", rms),
            **_counts(members),
        }
        for (case, method, size), members in groups.items()
    ]
