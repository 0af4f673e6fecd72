"""Tables of the results, in Markdown, and whether the goals are reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.peers.cells import Record
from benchmarks.peers.report import Columns, table
from benchmarks.real import comparison, named
from benchmarks.real.comparison import METHODS, means_wrong
from benchmarks.real.sets import SETS

OURS = "paims"
SAMPLED = ("BoTorch, SAAS", "BoTorch, fully Bayesian")
SCORES = ("crps", "nlpd", "rmse", "coverage")
OVERALL: Columns = (
    ("method", "method", "s"),
    ("version", "version", "s"),
    ("mean CRPS rank", "rank", ".2f"),
    ("CRPS", "crps", ".4f"),
    ("nlpd", "nlpd", ".3f"),
    ("RMSE", "rmse", ".4f"),
    ("95 % covers", "coverage", ".3f"),
    ("processor seconds, median of the sets' means", "seconds", ".1f"),
    ("failed", "lost", "d"),
)
# Fits for which a time is aimed at: the most seconds.
SECONDS = {
    "nilson_kuusk": 3.0,
    "cardiac6": 6.0,
    "cardiac5": 15.0,
    "borehole 480": 30.0,
    "cardiac3, all runs": 120.0,
    "climate1, all runs": 300.0,
}
Row = dict[str, Any]


def of(records: Iterable[Record], experiment: str) -> list[Record]:
    """Records of one of the two experiments."""
    return [record for record in records if record["experiment"] == experiment]


def shared(records: Sequence[Record], methods: Sequence[str]) -> list[Record]:
    """Records of those of the methods that were tried, on what each of them was tried on.

    Sets on which ours was not tried yet are left out; another method that was tried on nothing in
    a set does not take part there.
    """
    kept = []
    for name in {r["case"]: None for r in records if r["method"] == OURS}:
        own = [r for r in records if r["case"] == name and r["method"] in methods]
        tried = {
            method: {(r["setting"], r["seed"]) for r in own if r["method"] == method}
            for method in {r["method"] for r in own}
        }
        common = set.intersection(*tried.values()) if tried else set()
        kept += [r for r in own if (r["setting"], r["seed"]) in common]
    return kept


def ranks(records: Sequence[Record]) -> dict[tuple[str, str], float]:
    """Mean rank of a method's CRPS in a set; a failure is behind everything that ended."""
    found: dict[tuple[str, str], list[float]] = {}
    for place in dict.fromkeys((r["case"], r["setting"], r["seed"]) for r in records):
        rows = [r for r in records if (r["case"], r["setting"], r["seed"]) == place]
        losses = [r["crps"] if r["status"] == "ok" else np.inf for r in rows]
        for row, loss in zip(rows, losses, strict=True):
            better, equal = sum(x < loss for x in losses), sum(x == loss for x in losses)
            found.setdefault((row["method"], place[0]), []).append(better + (equal + 1) / 2)
    return {key: float(np.mean(values)) for key, values in found.items()}


def overall(records: Sequence[Record]) -> list[Row]:
    """One row for each method, the best mean rank first; scores are means of the sets' means."""
    rank, rows = ranks(records), []
    names = [name for name in SETS if any(r["case"] == name for r in records)]
    for method in METHODS:
        own = [r for r in records if r["method"] == method]
        ended = [r for r in own if r["status"] == "ok"]
        if not ended or not all((method, name) in rank for name in names):
            continue
        row: Row = {
            "method": method,
            "version": ended[-1]["version"],
            "rank": float(np.mean([rank[method, name] for name in names])),
            "failed": len(own) - len(ended),
            "seconds": _over_sets(ended, names, "cpu_seconds", np.nanmedian),
        }
        rows.append(row | {field: _over_sets(ended, names, field, np.mean) for field in SCORES})
    return sorted(rows, key=lambda row: row["rank"])


def _over_sets(records: Sequence[Record], names: Sequence[str], field: str, how: Any) -> Any:
    means = [_mean(records, name, field) for name in names]
    if how is np.mean and None in means:
        return None  # without a set it would not compare
    return float(how([value for value in means if value is not None]))


def _mean(records: Sequence[Record], name: str, field: str) -> float | None:
    values = [r[field] for r in records if r["case"] == name]
    return float(np.mean(values)) if values else None


def by_set(records: Sequence[Record], field: str, kind: str) -> str:
    """A table of the means of a field: a row for each method, a column for each set."""
    names = [name for name in SETS if any(r["case"] == name for r in records)]
    columns = [("method", "method", "s"), *((name, name, kind) for name in names)]
    rows = []
    for method in METHODS:
        own = [r for r in records if r["method"] == method and r["status"] == "ok"]
        if own:
            rows.append({"method": method} | {name: _mean(own, name, field) for name in names})
    return table(rows, columns)


def counts(records: Sequence[Record]) -> str:
    """What the tables rest on: pairs of output and split in each set."""
    found = {
        name: len({(r["setting"], r["seed"]) for r in records if r["case"] == name})
        for name in SETS
    }
    return ", ".join(f"{name} {n}" for name, n in found.items() if n)


def verdicts(records: Sequence[Record]) -> list[Row]:
    """Goals, what was found, and whether that reaches them."""
    fits = [r for r in of(records, named.__name__) if r["status"] == "ok"]
    rows = [_within(fits, case, limit) for case, limit in SECONDS.items()]
    nilson = [r for r in fits if r["case"] == "nilson_kuusk"]
    for field, goal, sign in (("nlpd", -2.60, -1.0), ("coverage", 0.92, 1.0)):
        values = [r[field] for r in nilson]
        value = float(np.mean(values)) if values else None
        text = f"nilson_kuusk: {field} {'<=' if sign < 0 else '>='} {goal:g}"
        shown = "" if value is None else f"{value:.3f}, mean of {len(values)}"
        rows.append(_verdict(text, shown, value is not None and sign * value >= sign * goal))
    compared = of(records, comparison.__name__)
    return [*rows, *_over_all_sets(compared), *_against_exact(fits), _forecasts(fits)]


def _forecasts(fits: Sequence[Record]) -> Row:
    """Seconds of a fit over those that it was said to take; the least of several counts."""
    shares = {}
    for case in named.CASES:
        own = [r for r in fits if r["case"] == case and r["setting"] == named.DEFAULTS]
        own = [r for r in own if "forecast" in r]
        if own:
            best = min(own, key=lambda r: r["seconds"])
            shares[case] = best["seconds"] / best["forecast"]
    shown = ", ".join(f"{case} {share:.2f}" for case, share in shares.items())
    within = all(0.5 <= share <= 2.0 for share in shares.values())
    return _verdict("seconds within a factor of 2 of the forecast", shown, within)


def _verdict(goal: str, found: str, reached: bool) -> Row:
    word = ("reached" if reached else "missed") if found else "not measured"
    return {"goal": goal, "found": found, "verdict": word}


def _within(fits: Sequence[Record], case: str, limit: float) -> Row:
    own = [r for r in fits if r["case"] == case and r["setting"] == named.DEFAULTS]
    seconds = sorted(r["seconds"] for r in own)
    shown = f"{', '.join(f'{s:.1f}' for s in seconds)} s" if own else ""
    return _verdict(f"{case}: <= {limit:g} s", shown, bool(own) and seconds[0] <= limit)


def _over_all_sets(compared: Sequence[Record]) -> list[Row]:
    mine = [r for r in compared if r["method"] == OURS]
    fine = []
    for name in SETS:
        own = [r for r in mine if r["case"] == name]
        if own and all(r["status"] == "ok" and not means_wrong(r) for r in own):
            fine.append(name)
    tried = len({r["case"] for r in mine})
    rows = [
        _verdict(
            "every set finishes, without a warning that means 'wrong'",
            f"{len(fine)} of {tried} sets tried" if mine else "",
            len(fine) == len(SETS),
        )
    ]
    for title, methods in GROUPS.items():
        found = overall(shared(compared, methods))
        shown = ", ".join(f"{row['method']} {row['rank']:.2f}" for row in found)
        first = bool(found) and found[0]["method"] == OURS
        rows.append(_verdict(f"mean CRPS rank first, {title}", shown, first))
    ended = [r for r in mine if r["status"] == "ok"]
    names = [name for name in SETS if any(r["case"] == name for r in ended)]
    covers = _over_sets(ended, names, "coverage", np.mean) if ended else None
    shown = "" if covers is None else f"{covers:.3f}, mean of {len(names)} sets"
    reached = covers is not None and 0.93 <= covers <= 0.97
    return [*rows, _verdict("95 % intervals cover 0.93 to 0.97, mean over sets", shown, reached)]


def _against_exact(fits: Sequence[Record]) -> list[Row]:
    own = {r["setting"]: r for r in fits if r["case"] == "borehole 240" and r["seed"] == 0}
    nlpd = evidence = ""
    close = same = False
    if named.EXACT in own and named.ONE_KERNEL in own:
        a, b = own[named.ONE_KERNEL], own[named.EXACT]
        nlpd = f"{a['nlpd']:.4f}, exact {b['nlpd']:.4f}"
        close = abs(a["nlpd"] - b["nlpd"]) <= 0.01
    if named.EXACT in own and named.REFERENCE in own:
        a, b = own[named.REFERENCE], own[named.EXACT]
        error = float(np.hypot(a["log_evidence_error"], b["log_evidence_error"]))
        away = abs(a["log_evidence"] - b["log_evidence"])
        evidence = f"{away:.4f} apart, reported errors together {error:.4f}"
        same = away <= 3 * error
    return [
        _verdict("borehole 240: nlpd within 0.01 of the exact run's", nlpd, close),
        _verdict("borehole 240: log evidence within 3 reported errors", evidence, same),
    ]


GROUPS: dict[str, tuple[str, ...]] = {
    "all methods": tuple(METHODS),
    "without the samplers": tuple(m for m in METHODS if m not in SAMPLED),
}
GOALS: Columns = (("goal", "goal", "s"), ("found", "found", "s"), ("", "verdict", "s"))


def report(records: Iterable[Record]) -> str:
    """The whole page."""
    records = list(records)
    compared = of(records, comparison.__name__)
    parts = [table(verdicts(records), GOALS)]
    for title, methods in GROUPS.items():
        own = shared(compared, methods)
        parts.append(f"**{title.capitalize()}**; pairs of output and split: {counts(own)}.")
        parts.append(table(overall(own), OVERALL))
    for title, field, kind in (
        ("CRPS", "crps", ".4f"), ("nlpd", "nlpd", ".3f"), ("95 % covers", "coverage", ".3f"),
        ("Processor seconds", "cpu_seconds", ".1f"),
    ):  # fmt: skip
        parts.append(f"**{title}** by set, of all that each method was tried on.")
        parts.append(by_set(compared, field, kind))
    return "\n\n".join(parts)
