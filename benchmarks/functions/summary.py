"""Tables of the results, in Markdown, and whether the goals are reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.functions import comparison, named, weights
from benchmarks.functions.cases import CASES, CHOOSING, INPUTS, SHOWING
from benchmarks.functions.comparison import METHODS, OURS
from benchmarks.peers.cells import Record
from benchmarks.peers.designs import NILSON_KUUSK
from benchmarks.peers.report import Columns, Row, table
from benchmarks.real.summary import GOALS, _verdict, of

SCORES = ("nlpd", "crps", "rmse", "coverage")
MINE = "paims"
SINGLE = ("paims, squared exponential", "paims, Matérn 7/2", "paims, Matérn 5/2")
OVERALL: Columns = (
    ("method", "method", "s"),
    ("functions", "functions", "d"),
    ("designs", "designs", "d"),
    ("failed", "lost", "d"),
    ("nlpd", "nlpd", ".3f"),
    ("nlpd of paims on these", "mine", ".3f"),
    ("paims has the lower", "won", ".0%"),
    ("CRPS", "crps", ".4f"),
    ("RMSE", "rmse", ".4f"),
    ("95 % covers", "coverage", ".3f"),
    ("least of a function", "least", ".3f"),
    ("processor seconds, median", "seconds", ".1f"),
)
NAMED: Columns = (
    ("runs", "case", "s"),
    ("kernel", "setting", "s"),
    ("designs", "designs", "d"),
    ("nlpd", "nlpd", ".3f"),
    ("RMSE", "rmse", ".4f"),
    ("95 % covers", "coverage", ".3f"),
    ("least of a design", "least", ".3f"),
    ("processor seconds", "cpu_seconds", ".1f"),
)
WEIGHING: Columns = (
    ("weights", "way", "s"),
    ("designs", "designs", "d"),
    ("nlpd", "nlpd", ".3f"),
    ("CRPS", "crps", ".4f"),
    ("RMSE", "rmse", ".4f"),
    ("95 % covers", "coverage", ".3f"),
    ("least of a function", "least", ".3f"),
)


def over_functions(rows: Sequence[Row], field: str) -> list[float]:
    """Mean of a field for each function, over its designs."""
    by_case: dict[str, list[float]] = {}
    for row in rows:
        by_case.setdefault(row["case"], []).append(row[field])
    return [float(np.mean(values)) for values in by_case.values()]


def means(rows: Sequence[Row]) -> Row:
    """Means over functions of their means, and the least coverage of one."""
    found: Row = {field: float(np.mean(over_functions(rows, field))) for field in SCORES}
    found["least"] = min(over_functions(rows, "coverage"))
    return found | {"designs": len(rows), "functions": len({row["case"] for row in rows})}


def overall(records: Sequence[Record]) -> list[Row]:
    """One row for each method, the best first, beside ours on the same functions and designs.

    A design that ours was not tried on does not count.
    """
    mine = {
        (r["case"], r["seed"]): r for r in records if r["method"] == MINE and r["status"] == "ok"
    }
    rows = []
    for method in METHODS:
        own = [r for r in records if r["method"] == method]
        own = [r for r in own if (r["case"], r["seed"]) in mine]
        ended = [r for r in own if r["status"] == "ok"]
        if not ended:
            continue
        row = {"method": method, "failed": len(own) - len(ended)} | means(ended)
        row["seconds"] = float(np.median([r["cpu_seconds"] for r in ended]))
        beside = [mine[r["case"], r["seed"]] for r in ended]
        row["mine"] = float(np.mean(over_functions(beside, "nlpd")))
        won = [a["nlpd"] < b["nlpd"] for a, b in zip(beside, ended, strict=True)]
        row["won"] = float(np.mean(won)) if method != MINE else None
        rows.append(row)
    return sorted(rows, key=lambda row: row["nlpd"])


def on_common(records: Sequence[Record]) -> list[Row]:
    """The same on what ours, the single kernels and the quick peers all ended on."""
    tried = [m for m in METHODS if m not in (comparison.SLOW, comparison.SPIKE)]
    ended: dict[str, set[tuple[str, int]]] = {}
    for r in records:
        if r["status"] == "ok" and r["method"] in tried:
            ended.setdefault(r["method"], set()).add((r["case"], r["seed"]))
    if len(ended) < 2:
        return []
    common = set.intersection(*ended.values())
    return overall(
        [r for r in records if (r["case"], r["seed"]) in common and r["method"] in tried]
    )


def weighing(records: Sequence[Record], names: Sequence[str], setting: str) -> list[Row]:
    """One row for each way to weigh the kernels, over some of the functions."""
    own = [r for r in records if r["status"] == "ok" and r["setting"] == setting]
    own = [r for r in own if r["case"] in names]
    rows = []
    for way in dict.fromkeys(way for r in own for way in r["ways"]):
        each = [{"case": r["case"], **r["ways"][way]} for r in own if way in r["ways"]]
        rows.append({"way": way} | means(each))
    return sorted(rows, key=lambda row: row["nlpd"])


def worst_ratio(records: Sequence[Record]) -> tuple[float, str]:
    """Largest RMSE of ours relative to the best peer's on the same design, and where."""
    worst, where = 0.0, ""
    for mine in (r for r in records if r["method"] == MINE and r["status"] == "ok"):
        peers = [
            r["rmse"]
            for r in records
            if r["status"] == "ok"
            and r["method"] not in OURS
            and (r["case"], r["seed"]) == (mine["case"], mine["seed"])
        ]
        if peers and mine["rmse"] / max(min(peers), 1e-12) > worst:
            worst = mine["rmse"] / max(min(peers), 1e-12)
            where = f"{mine['case']}, design {mine['seed']}"
    return worst, where


def spikes(records: Sequence[Record], names: Sequence[str]) -> list[Row]:
    """Where a spike of tiny nuggets begins: the default beside what it has with many inputs."""
    tried = (MINE, comparison.SPIKE)
    own = [r for r in records if r["method"] in tried and r["case"] in names]
    ended = [
        {(r["case"], r["seed"]) for r in own if (r["method"], r["status"]) == (method, "ok")}
        for method in tried
    ]
    common = set.intersection(*ended)
    return overall([r for r in own if (r["case"], r["seed"]) in common])


def verdicts(records: Sequence[Record]) -> list[Row]:
    """Goals, what was found, and whether that reaches them."""
    rows = {row["method"]: row for row in overall(records)}
    if MINE not in rows:
        return []
    mine = rows[MINE]
    better, shown = [], []
    for method, row in rows.items():
        if method in SINGLE or method not in OURS:
            better.append(row["mine"] < row["nlpd"])
            shown.append(f"{method} {row['nlpd']:.3f} (ours there {row['mine']:.3f})")
    ratio, where = worst_ratio(records)
    covers, least = mine["coverage"], mine["least"]
    return [
        _verdict(
            "mean nlpd better than every single kernel's and every peer's",
            "; ".join(shown),
            bool(better) and all(better),
        ),
        _verdict("RMSE at most three times the best peer's", f"{ratio:.1f}: {where}", ratio <= 3),
        _verdict("coverage 0.93 to 0.97 in the mean", f"{covers:.3f}", 0.93 <= covers <= 0.97),
        _verdict("no function covered less than 0.80", f"{least:.3f}", least >= 0.80),
    ]


def named_verdicts(records: Sequence[Record]) -> list[Row]:
    """Goals of the named sets of runs, and the price of three kernels."""
    rows = {row["case"]: row for row in named.rows(records) if row["setting"] == named.DEFAULT}
    found = []
    for case, field, goal in (
        (named.BRANIN, "least", 0.90),
        (named.FRIEDMAN, "nlpd", -3.45),
        (NILSON_KUUSK, "nlpd", -2.63),
        (NILSON_KUUSK, "coverage", 0.92),
    ):
        if case in rows:
            value, low = rows[case][field], field == "nlpd"
            text = f"{case}: {'nlpd <=' if low else 'covers at least'} {goal:.2f}"
            reached = value <= goal if low else value >= goal
            found.append(_verdict(text, f"{value:.3f}", reached))
    ratios = named.times(records)
    if ratios:
        shown = ", ".join(f"{case} {ratio:.2f}" for case, ratio in ratios.items())
        text = "time of the default at most that of the squared exponential alone"
        found.append(_verdict(text, shown, max(ratios.values()) <= 1.0))
    return found


def by_function(records: Sequence[Record]) -> str:
    """A table of mean nlpd: a row for each function, a column for each method."""
    ended = [r for r in records if r["status"] == "ok"]
    tried = [method for method in METHODS if any(r["method"] == method for r in ended)]
    columns = [("function", "case", "s"), ("inputs", "inputs", "d")]
    columns += [(method, method, ".2f") for method in tried]
    rows = []
    for case in CASES:
        row: dict[str, Any] = {"case": case, "inputs": INPUTS[case]}
        for method in tried:
            values = [r["nlpd"] for r in ended if (r["case"], r["method"]) == (case, method)]
            row[method] = float(np.mean(values)) if values else None
        if any(row[method] is not None for method in tried):
            rows.append(row)
    return table(rows, columns)


def report(records: Iterable[Record]) -> str:
    """The whole page."""
    records = list(records)
    compared, weighed, apart = (
        of(records, part.__name__) for part in (comparison, weights, named)
    )
    goals = verdicts(compared) + named_verdicts(apart)
    parts = [table(goals, GOALS)] if goals else []
    if compared:
        parts.append("**All methods**, each beside ours on what both were tried on.")
        parts.append(table(overall(compared), OVERALL))
        common = on_common(compared)
        if common:
            parts.append("**On the functions and designs that all of these ended on.**")
            parts.append(table(common, OVERALL))
        parts.append("**nlpd** by function.")
        parts.append(by_function(compared))
    if apart:
        parts.append(
            "**Named runs**; the nlpd of Nilson and Kuusk's is in the units of their data."
        )
        parts.append(table(named.rows(apart), NAMED))
    halves = (("decided by", CHOOSING), ("shown on", SHOWING))
    for title, names in halves:
        rows = spikes(compared, names)
        if rows:
            tried = rows[0]["functions"]
            parts.append(f"**Where the spike begins**, {title} these {tried} functions.")
            parts.append(table(rows, OVERALL))
    for setting in weights.SETTINGS:
        for title, names in halves:
            rows = weighing(weighed, names, setting)
            if rows:
                tried = rows[0]["functions"]
                parts.append(f"**Ways to weigh {setting}**, {title} these {tried} functions.")
                parts.append(table(rows, WEIGHING))
    return "\n\n".join(parts)
