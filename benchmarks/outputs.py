"""Several outputs: `python -m benchmarks.outputs WHAT`.

`simulated` draws runs from the model itself, with outputs of a given correlation, and counts how
many held-out outputs, and sums of all outputs, lie in their 95 % intervals; the control treats the
outputs as independent, and has to fail for sums. `real` does the same with the data sets of
:mod:`benchmarks.wheel`, 80 % of the runs for training, outputs scaled by their standard deviation
in the training runs: RMSE, CRPS and coverage; each fit is a line of `outputs.jsonl`, so that a
sweep can be stopped and go on, and `summary` makes `outputs.md` of them, which is part of the
documentation. `times` measures one output and all of them (`times --set cardiac3` all 26 of all
runs), `missing` the coverage of tables with gaps, `sums` the coverage of each output and of their
sum over several splits, and `field` the field beside AutoEmulate's emulators.

Nothing here was tuned on: the split of `--split 0` is for looking, the others are for showing.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import paims
from benchmarks import wheel
from benchmarks.outputs_field import field, of_field
from benchmarks.outputs_scores import Some, coverage, crps, looked_at, rows_of, split_of
from paims.emulator._several import choose_way
from paims.sampling import default_scheme

Floats = NDArray[np.float64]
WAYS = ("separate", "shared", "components")
RESULTS = Path(__file__).with_suffix(".jsonl")
_QUICK = replace(default_scheme(), max_rounds=0)


def simulated(ways: list[str], repetitions: int, samples: int) -> Iterator[str]:
    """Coverage on runs that are drawn from the model."""
    yield "| way | outputs | correlation | single | sum | sum, control | effective outputs |"
    yield "|---|---|---|---|---|---|---|"
    for way in ways:
        for m, correlation in ((4, 0.0), (4, 0.8), (12, 0.9)):
            rows, effective = [], []
            for seed in range(repetitions):
                X, Y = _drawn(m, correlation, seed, alike=way != "separate")
                emulator = paims.Emulator(
                    kernel="squared_exponential", outputs=way, random_state=seed,
                    n_samples=samples, prior="jointly_robust", scheme=_QUICK,
                ).fit(X[:25], Y[:25])  # fmt: skip
                rows.append(coverage(emulator, X[25:], Y[25:], np.ones(m)))
                if way == "shared":
                    effective.append(emulator._several.shared.posterior.effective)
            mean = np.mean(rows, axis=0)
            error = np.std(rows, axis=0) / np.sqrt(repetitions)
            told = " | ".join(f"{a:.3f} ± {b:.3f}" for a, b in zip(mean, error, strict=True))
            count = f"{np.mean(effective):.1f}" if effective else ""
            yield f"| {way} | {m} | {correlation} | {told} | {count} |"


def missing(path: Path, repetitions: int) -> Iterator[str]:
    """Coverage of 50 outputs of 30 runs, of which a tenth are missing, and of all of them."""
    for noise in (1e-3, 0.3):
        for way in ("components", "separate"):
            for seed in range(repetitions if way == "components" else 1):
                cell = {"part": "missing", "way": way, "noise": noise, "seed": seed}
                if any(cell.items() <= row.items() for row in rows_of(path)):
                    continue
                X, Y = _field(seed, noise)
                gaps = np.random.default_rng(seed + 99).random((30, 50)) < 0.1
                row = dict(cell)
                for name, known in (("all", Y[:30]), ("gaps", np.where(gaps, np.nan, Y[:30]))):
                    emulator = paims.Emulator(
                        kernel="squared_exponential", prior="jointly_robust", n_samples=200,
                        random_state=0, outputs=way,
                    ).fit(X[:30], known)  # fmt: skip
                    joint = emulator.predict_distribution(X[30:])
                    lower, upper = joint.interval()
                    row[name] = float(np.mean((lower <= Y[30:]) & (Y[30:] <= upper)))
                    row[f"error_{name}"] = float(np.sqrt(np.mean((joint.mean - Y[30:]) ** 2)))
                with path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                yield json.dumps(row)


def _field(seed: int, noise: float) -> tuple[Floats, Floats]:
    """Runs ``(60, 2)`` and 50 outputs, mixed of four processes and linear trends, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((60, 2))
    processes = []
    for _ in range(4):
        D = (((X[:, None] - X) / rng.uniform(0.3, 1.2, 2)) ** 2).sum(axis=-1)
        L = np.linalg.cholesky(np.exp(-D / 2.0) + 1e-6 * np.eye(60))
        processes.append(L @ rng.standard_normal(60))
    Y = np.column_stack(processes) @ rng.standard_normal((4, 50)) + X @ rng.standard_normal(
        (2, 50)
    )
    return X, Y + noise * rng.standard_normal(Y.shape)


def _drawn(m: int, correlation: float, seed: int, *, alike: bool) -> tuple[Floats, Floats]:
    """Runs ``(45, 2)`` and correlated outputs ``(45, m)`` with linear trends."""
    rng = np.random.default_rng(seed)
    X = rng.random((45, 2))
    lengths = rng.uniform(0.3, 1.5, (1 if alike else m, 2))
    mixing = np.linalg.cholesky((1.0 - correlation) * np.eye(m) + correlation)
    G = rng.standard_normal((45, m)) @ mixing.T
    Y = np.empty((45, m))
    for j in range(m):
        D = (((X[:, None] - X) / lengths[j % len(lengths)]) ** 2).sum(axis=-1)
        Y[:, j] = np.linalg.cholesky(np.exp(-D / 2.0) + 1e-3 * np.eye(45)) @ G[:, j]
    return X, Y + X @ rng.standard_normal((2, m))


@dataclass(frozen=True)
class Size:
    """How much of a data set is used: training runs, outputs, the sampler's points, kernel."""

    runs: int | None
    outputs: int | None
    samples: int | None = None
    kernel: str = "squared_exponential"


# What two cores can do in an hour or two; `--full` takes everything, with default settings.
SWEEP = {
    "cardiac1": Size(60, 3, 400),
    "cardiac2": Size(60, 3, 580),
    "cardiac3": Size(60, 3, 460),
    "cardiac4": Size(60, 3, 940),
    "cardiac5": Size(60, 3, 400, "auto"),
    "cardiac6": Size(60, 2, 400, "auto"),
    "climate1": Size(60, 3, 700),
    "engineering1": Size(60, 2, 400, "auto"),
    "reactiondiffusion1": Size(None, None, None, "auto"),
}
FULL = Size(None, None, None, "auto")


def sweep(names: list[str], ways: list[str], split: int, full: bool, path: Path) -> Iterator[str]:
    """Measure what is not in the file yet, and add it there, one line for each."""
    for name in names:
        size = FULL if full else SWEEP[name]
        for way in ways:
            if wheel.SHAPES[name][2] > 1000 and way == "shared":
                continue  # one correlation that no one would ask for
            cell = {"set": name, "way": way, "split": split, **asdict(size)}
            if any(cell.items() <= row.items() for row in rows_of(path)):
                continue
            row = cell | _measured(cell, rows_of(path))
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            yield json.dumps(row)


def _measured(cell: dict[str, Any], known: list[dict[str, Any]]) -> dict[str, Any]:
    """Scores of one fit; those of "auto" are those of the way that it takes."""
    X, Y, X_test, Y_test = split_of(cell["set"], cell["split"])
    X, Y = X[: cell["runs"]], Y[: cell["runs"], : cell["outputs"]]
    Y_test = Y_test[:, : Y.shape[1]]
    if cell["way"] == "separate" and Y.shape[1] > 1000:
        some = looked_at(Y.shape[1])
        Y, Y_test = Y[:, some], Y_test[:, some]
    asked = paims.Emulator(
        outputs=cell["way"], kernel=cell["kernel"], n_samples=cell["samples"], random_state=0
    )
    chosen = cell["way"]
    if chosen == "auto":
        names = [
            [f"{letter}{i}" for i in range(A.shape[1])]
            for letter, A in zip("xy", (X, Y), strict=True)
        ]
        chosen, why = choose_way(X, Y, *names, asked)
        same = {**cell, "way": chosen}.items()
        for row in known:
            if same <= row.items():
                return {**row, **cell, "chosen": chosen, "why": why}
    start, cpu = perf_counter(), process_time()
    emulator = asked.fit(X, Y)
    seconds, cpu = perf_counter() - start, process_time() - cpu
    joint = emulator.predict_distribution(X_test)
    rmse = float(np.sqrt(np.mean((joint.mean - Y_test) ** 2)))
    chosen = looked_at(Y.shape[1])
    single, total, control = coverage(emulator, X_test, Y_test, np.ones(Y.shape[1]))
    return {
        "n": len(X), "p": X.shape[1], "m": Y.shape[1], "chosen": emulator.way_,
        "seconds": round(seconds, 2), "cpu": round(cpu, 2), "rmse": rmse,
        "crps": crps(Some(joint, chosen), Y_test[:, chosen]), "single": single, "sum": total,
        "control": control, "why": emulator.why_, "version": paims.__version__,
    }  # fmt: skip


def report(path: Path) -> str:
    """The page's table, and in how many sets each way is no worse than separate fits."""
    rows = [row for row in rows_of(path) if "set" in row]
    lines = [
        "| set | runs | inputs | outputs | kernel | way | processor s | RMSE | CRPS | single | "
        "sum | sum, control |",
        "|---|---:|---:|---:|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in sorted(rows, key=_place):
        way = row["way"] if row["way"] != "auto" else f"auto ({row['chosen']})"
        scores = " | ".join(f"{row[key]:.3f}" for key in ("single", "sum", "control"))
        lines.append(
            f"| {row['set']} | {row['n']} | {row['p']} | {row['m']} | "
            f"{row['kernel'].replace('_', ' ')} | {way} | {row['cpu']:.0f} | "
            f"{row['rmse']:.4f} | {row['crps']:.4f} | {scores} |"
        )
    lines.append("")
    for way in ("auto", "shared", "components"):
        pairs = _pairs(rows, way)
        good = sum(a <= b for a, b in pairs)
        lines.append(f"- CRPS of *{way}* no worse than of separate fits: {good} of {len(pairs)}")
    others = rows_of(path)
    tables = [of(others) for of in (of_field, _of_sums, _of_times, _of_missing)]
    return "\n".join([*lines, *(line for table in tables for line in ("", *table))]) + "\n"


def _of_missing(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of the table of outputs that are missing."""
    yield "50 outputs of 30 runs, a tenth of them missing, beside the same without gaps:"
    yield ""
    yield "| noise | way | tables | 95 % covers, no gaps | gaps | error, no gaps | gaps |"
    yield "|---:|---|---:|---:|---:|---:|---:|"
    rows = [row for row in rows if row.get("part") == "missing"]
    for noise, way in sorted({(row["noise"], row["way"]) for row in rows}):
        here = [row for row in rows if (row["noise"], row["way"]) == (noise, way)]
        mean = {key: np.mean([row[key] for row in here]) for key in ("all", "gaps")}
        error = [np.mean([row[f"error_{key}"] for row in here]) for key in ("all", "gaps")]
        yield (
            f"| {noise:g} | {way} | {len(here)} | {mean['all']:.3f} | {mean['gaps']:.3f} | "
            f"{error[0]:.4f} | {error[1]:.4f} |"
        )


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["set"], row["n"], row["split"], ["separate", *WAYS, "auto"].index(row["way"])


def _pairs(rows: list[dict[str, Any]], way: str) -> list[tuple[float, float]]:
    """CRPS of a way and of separate fits, of the same runs."""
    keys = ("set", "split", "runs", "outputs", "samples", "kernel")
    alone = {tuple(row[k] for k in keys): row for row in rows if row["way"] == "separate"}
    both = [(row, alone.get(tuple(row[k] for k in keys))) for row in rows if row["way"] == way]
    return [(row["crps"], other["crps"]) for row, other in both if other is not None]


def times(
    name: str,
    ways: list[str],
    samples: int | None,
    runs: int | None,
    outputs: int | None,
    path: Path,
) -> Iterator[str]:
    """Seconds of one output and of all, with the jointly robust prior; added to the file.

    Separate fits are made by two processes.
    """
    X, Y, *_ = split_of(name, 0)
    X, Y = X[:runs], Y[:runs, :outputs]
    _emulator("auto", 100).fit(X[:60, :2], Y[:60, 0])  # what is compiled once
    for way in ("one", *ways):
        start, cpu = perf_counter(), _spent()
        if way == "one":
            _emulator("auto", samples).fit(X, Y[:, 0])
        else:
            executor = _two_processes if way == "separate" else None
            _emulator(way, samples).fit(X, Y, executor=executor)
        seconds, cpu = perf_counter() - start, _spent() - cpu
        row = {
            "part": "times", "what": name, "n": len(X), "p": X.shape[1], "way": way,
            "m": 1 if way == "one" else Y.shape[1], "samples": samples,
            "seconds": round(seconds, 1), "cpu": round(cpu, 1),
        }  # fmt: skip
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        yield json.dumps(row)


def _two_processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2)


def _spent() -> float:
    """Processor seconds of this process and of those that it has started."""
    for process in multiprocessing.active_children():
        process.join()
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def sums(names: list[str], splits: int, path: Path) -> Iterator[str]:
    """Coverage of each of the first outputs and of their sum, over several splits.

    A sum is no better covered than the output that has most of its variance.
    """
    for name in names:
        for split in range(1, 1 + splits):
            cell = {"part": "sums", "what": name, "split": split}
            if any(cell.items() <= row.items() for row in rows_of(path)):
                continue
            X, Y, X_test, Y_test = split_of(name, split)
            m = SWEEP[name].outputs or 3
            Y, Y_test = Y[:60, :m], Y_test[:, :m]
            emulator = _emulator("separate", SWEEP[name].samples).fit(X[:60], Y)
            joint = emulator.predict_distribution(X_test)
            lower, upper = joint.interval()
            _, total, control = coverage(emulator, X_test, Y_test, np.ones(m))
            variance = np.mean(joint.std**2, axis=0)
            row = cell | {
                "each": np.mean((lower <= Y_test) & (Y_test <= upper), axis=0).tolist(),
                "sum": total, "control": control, "n_test": len(Y_test),
                "share": (variance / variance.sum()).tolist(),
            }  # fmt: skip
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            yield json.dumps(row)


def _of_sums(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of the table of sums."""
    rows = [row for row in rows if row.get("part") == "sums"]
    yield "Separate fits of 60 runs, mean over splits:"
    yield ""
    yield "| set | splits | held out | each output | share of the variances | sum | sum, control |"
    yield "|---|---:|---:|---|---|---:|---:|"
    for name in sorted({row["what"] for row in rows}):
        here = [row for row in rows if row["what"] == name]
        each, share = (
            ", ".join(f"{v:.3f}" for v in np.mean([row[key] for row in here], axis=0))
            for key in ("each", "share")
        )
        total, control = (np.mean([row[key] for row in here]) for key in ("sum", "control"))
        yield (
            f"| {name} | {len(here)} | {sum(row['n_test'] for row in here)} | {each} | {share} | "
            f"{total:.3f} | {control:.3f} |"
        )


def _of_times(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of the table of times."""
    rows = [row for row in rows if row.get("part") == "times"]
    if not rows:
        yield "Times of all outputs of cardiac3 beside one: not measured with the present code."
        return
    yield "| set | runs | inputs | outputs | way | processor s | times one output |"
    yield "|---|---:|---:|---:|---|---:|---:|"
    one = {(row["what"], row["n"]): row["cpu"] for row in rows if row["way"] == "one"}
    for row in rows:
        yield (
            f"| {row['what']} | {row['n']} | {row['p']} | {row['m']} | {row['way']} | "
            f"{row['cpu']:.1f} | {row['cpu'] / one[row['what'], row['n']]:.1f} |"
        )


def _emulator(way: str, samples: int | None) -> Any:
    return paims.Emulator(
        outputs=way, random_state=0, n_samples=samples, prior="jointly_robust",
        kernel="squared_exponential",
    )  # fmt: skip


_PARTS = ("simulated", "real", "missing", "times", "sums", "field")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outputs", description=__doc__)
    parser.add_argument("what", choices=[*_PARTS, "summary"])
    parser.add_argument("--set", nargs="+", choices=list(wheel.SHAPES))
    parser.add_argument("--way", nargs="+", choices=["auto", *WAYS])
    parser.add_argument("--split", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="all runs, outputs, default settings")
    parser.add_argument("--samples", type=int, help="points of the sampler at each level")
    parser.add_argument("--runs", type=int, help="only so many training runs")
    parser.add_argument("--outputs", type=int, help="only so many outputs")
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = given.way or list(WAYS)
    if given.what == "simulated":
        lines = simulated(ways, given.repetitions, given.samples or 200)
    elif given.what == "real":
        names = given.set or list(wheel.SHAPES)
        lines = sweep(names, given.way or [*WAYS, "auto"], given.split, given.full, given.results)
    elif given.what == "missing":
        lines = missing(given.results, min(given.repetitions, 10))
    elif given.what == "times":
        names = given.set or ["cardiac6"]
        asked = (ways, given.samples, given.runs, given.outputs, given.results)
        lines = (line for name in names for line in times(name, *asked))
    elif given.what == "sums":
        names = given.set or ["cardiac5", "cardiac6", "engineering1"]
        lines = sums(names, min(given.repetitions, 5), given.results)
    elif given.what == "field":
        lines = field(given.split, given.results)
    else:
        given.results.with_suffix(".md").write_text(report(given.results), encoding="utf-8")
        lines = iter([report(given.results)])
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
