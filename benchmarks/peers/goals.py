"""What was aimed at, and whether the measurements reach it."""

from __future__ import annotations

from typing import Any

from benchmarks.peers import summary
from benchmarks.peers.summary import OURS

# How many times faster than each sampler at equal accuracy, on the GP posteriors.
FASTER = {"nautilus": 30.0, "dynesty": 30.0, "emcee": 5.0}
FASTER_THAN_BAYESIAN = 3.0
# Ours with its defaults, and with the kernel that has the highest evidence.
VARIANTS = {OURS: "defaults", f"{OURS}, kernel by evidence": 'kernel="auto"'}
Row = dict[str, Any]
Verdict = tuple[str, str, str]


def verdicts(records: list[Row]) -> list[Verdict]:
    """Goal, what was found, and "reached", "missed" or "not measured"."""
    samplers = summary.samplers(records)
    found = [
        as_accurate_as_nautilus(samplers),
        *(faster(samplers, method, factor) for method, factor in FASTER.items()),
    ]
    for mine in VARIANTS:
        emulators = summary.emulators(records, mine)
        found += [
            best_nlpd(summary.overall(emulators), mine),
            faster_than_bayesian(emulators, mine),
            never_trapped(emulators, mine),
        ]
    return found


def _verdict(goal: str, found: list[str], reached: bool) -> Verdict:
    if not found:
        return goal, "", "not measured"
    return goal, "; ".join(found), "reached" if reached else "missed"


def _on_gp(rows: list[Row], method: str) -> list[Row]:
    return [r for r in rows if r["case"].startswith("GP ") and r["method"] == method and r["n"]]


def as_accurate_as_nautilus(rows: list[Row]) -> Verdict:
    """At no more evaluations, rms error at most nautilus's."""
    found, reached = [], True
    for row in _on_gp(rows, "nautilus"):
        ours = row["rms_ours"]
        reached &= ours is not None and ours <= row["rms"]
        shown = "no run as cheap" if ours is None else f"ours {ours:.4f}"
        found.append(f"{row['case']} [{row['setting']}]: {shown}, nautilus {row['rms']:.4f}")
    return _verdict(
        "as accurate as nautilus at no more evaluations, GP posteriors", found, reached
    )


def faster(rows: list[Row], method: str, factor: float) -> Verdict:
    """At no less accuracy, so many times faster."""
    found, reached = [], True
    for row in _on_gp(rows, method):
        ratio = row["times_faster"]
        reached &= ratio is not None and ratio >= factor
        shown = "its accuracy not reached" if ratio is None else f"{ratio:.1f} times"
        found.append(f"{row['case']} [{row['setting']}]: {shown}")
    goal = f"{factor:g} times faster than {method} at its accuracy, GP posteriors"
    return _verdict(goal, found, reached)


def best_nlpd(overall: list[Row], mine: str) -> Verdict:
    """Mean nlpd over all cases: one variant of ours, without the others, and all peers."""
    goal = f"{VARIANTS[mine]}: best mean nlpd"
    others = [row for row in overall if not row["method"].startswith(OURS)]
    overall = sorted(
        [*others, *(row for row in overall if row["method"] == mine)], key=lambda r: r["nlpd"]
    )
    if not any(row["method"] == mine for row in overall):
        return _verdict(goal, [], False)
    place = [row["method"] for row in overall].index(mine)
    shown = [f"{row['method']} {row['nlpd']:.3f}" for row in overall[: place + 1]]
    return _verdict(goal, [f"place {place + 1} of {len(overall)}: {', '.join(shown)}"], not place)


def faster_than_bayesian(rows: list[Row], mine: str) -> Verdict:
    """Against BoTorch on the designs that it was run on."""
    found, reached = [], True
    for row in rows:
        if row["method"].startswith("BoTorch") and row["n"] and row["seconds_ours"]:
            ratio = row["seconds"] / row["seconds_ours"]
            reached &= ratio >= FASTER_THAN_BAYESIAN and row["nlpd_ours"] <= row["nlpd"]
            found.append(
                f"{row['case']}, {row['method']}: {ratio:.1f} times, nlpd ours "
                f"{row['nlpd_ours']:.3f}, theirs {row['nlpd']:.3f}"
            )
    goal = (
        f"{VARIANTS[mine]}: {FASTER_THAN_BAYESIAN:g} times faster than every fully Bayesian peer "
        "at no worse nlpd"
    )
    return _verdict(goal, found, reached)


def never_trapped(rows: list[Row], mine: str) -> Verdict:
    """No design where our RMSE is more than three times the best peer's."""
    ours = [row for row in rows if row["method"] == mine]
    trapped = sum(row["trapped"] for row in ours)
    found = [f"{trapped} of {sum(row['n'] for row in ours)} designs"] if ours else []
    where = [f"{row['case']} {row['trapped']}" for row in ours if row["trapped"]]
    goal = f"{VARIANTS[mine]}: no design with an RMSE of more than 3 times the best peer's"
    return _verdict(goal, found + where, not trapped)
