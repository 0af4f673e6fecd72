"""What was aimed at, and whether the measurements reach it."""

from __future__ import annotations

from typing import Any

from benchmarks.peers.summary import OURS

# How many times faster than each sampler at equal accuracy, on the GP posteriors.
FASTER = {"nautilus": 30.0, "dynesty": 30.0, "emcee": 5.0}
FASTER_THAN_BAYESIAN = 3.0
Row = dict[str, Any]
Verdict = tuple[str, str, str]


def verdicts(samplers: list[Row], emulators: list[Row], overall: list[Row]) -> list[Verdict]:
    """Goal, what was found, and "reached", "missed" or "not measured"."""
    return [
        as_accurate_as_nautilus(samplers),
        *(faster(samplers, method, factor) for method, factor in FASTER.items()),
        best_nlpd(overall),
        faster_than_bayesian(emulators),
        never_trapped(emulators),
    ]


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


def best_nlpd(overall: list[Row]) -> Verdict:
    """Mean nlpd over all cases: ours with its defaults, without its other variants, and peers."""
    goal = "best mean nlpd, ours with its defaults and all peers"
    overall = [row for row in overall if not row["method"].startswith(f"{OURS}, ")]
    if not any(row["method"] == OURS for row in overall):
        return _verdict(goal, [], False)
    place = [row["method"] for row in overall].index(OURS)
    shown = [f"{row['method']} {row['nlpd']:.3f}" for row in overall[: place + 1]]
    return _verdict(goal, [f"place {place + 1} of {len(overall)}: {', '.join(shown)}"], not place)


def faster_than_bayesian(rows: list[Row]) -> Verdict:
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
    goal = "3 times faster than every fully Bayesian peer at no worse nlpd"
    return _verdict(goal, found, reached)


def never_trapped(rows: list[Row]) -> Verdict:
    """No design where our RMSE is more than three times the best peer's."""
    ours = [row for row in rows if row["method"] == OURS]
    trapped = sum(row["trapped"] for row in ours)
    found = [f"{trapped} of {sum(row['n'] for row in ours)} designs"] if ours else []
    where = [f"{row['case']} {row['trapped']}" for row in ours if row["trapped"]]
    goal = "no design where our RMSE is more than 3 times the best peer's"
    return _verdict(goal, found + where, not trapped)
