"""Several outputs: `python -m benchmarks.outputs WHAT`.

`simulated` draws runs from the model itself, with outputs of a given correlation, and counts how
many held-out outputs, and sums of all outputs, lie in their 95 % intervals; the control treats the
outputs as independent, and has to fail for sums. `real` does the same with the data sets of
:mod:`benchmarks.wheel`, 80 % of the runs for training, outputs scaled by their standard deviation
in the training runs: RMSE, CRPS and coverage; each fit is a line of `outputs.jsonl`, so that a
sweep can be stopped and go on, and `summary` makes `outputs.md` of them, which is part of the
documentation. `times` measures one output and all of them, `missing` the coverage of tables with
gaps.

Nothing here was tuned on: the split of `--split 0` is for looking, the others are for showing.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

import paims
from benchmarks import wheel
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
                rows.append(_coverage(emulator, X[25:], Y[25:], np.ones(m)))
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


def _coverage(emulator: Any, X: Floats, Y: Floats, weights: Floats) -> list[float]:
    """Shares of 95 % intervals that hold: of outputs, of a sum, of the sum's control."""
    joint = emulator.predict_distribution(X)
    lower, upper = joint.interval()
    combined, truth = joint.combine(weights), Y @ weights
    low, high = combined.interval()
    narrow = 1.96 * np.sqrt((joint.std**2) @ weights**2)
    return [
        float(np.mean((lower <= Y) & (upper >= Y))),
        float(np.mean((low <= truth) & (truth <= high))),
        float(np.mean(np.abs(truth - combined.mean) <= narrow)),
    ]


def _split(name: str, split: int) -> tuple[Floats, Floats, Floats, Floats]:
    data = wheel.load(name)
    order = np.random.default_rng(split).permutation(len(data.X))
    train, test = np.split(order, [round(0.8 * len(order))])
    scale = data.Y[train].std(axis=0)
    Y = data.Y / np.where(scale > 0.0, scale, 1.0)
    return data.X[train], Y[train], data.X[test], Y[test]


def _crps(joint: Any, Y: Floats) -> float:
    """Mean CRPS, from the quantiles 1/40, 3/40, ..., 39/40 (twice the mean pinball loss)."""
    levels = np.arange(0.0125, 1.0, 0.025)
    loss = 0.0
    for q, at in zip(levels, joint.quantile(levels), strict=True):
        loss += float(np.mean(np.maximum(q * (Y - at), (q - 1.0) * (Y - at))))
    return 2.0 * loss / len(levels)


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
# Outputs of a field that are fitted apart, and whose CRPS is looked at: an even choice.
_LOOKED_AT = 25


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


def rows_of(path: Path) -> list[dict[str, Any]]:
    """All that was measured."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _measured(cell: dict[str, Any], known: list[dict[str, Any]]) -> dict[str, Any]:
    """Scores of one fit; those of "auto" are those of the way that it takes."""
    X, Y, X_test, Y_test = _split(cell["set"], cell["split"])
    X, Y = X[: cell["runs"]], Y[: cell["runs"], : cell["outputs"]]
    Y_test = Y_test[:, : Y.shape[1]]
    if cell["way"] == "separate" and Y.shape[1] > 1000:
        Y, Y_test = (values[:, :: -(-values.shape[1] // _LOOKED_AT)] for values in (Y, Y_test))
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
    step = -(-Y.shape[1] // _LOOKED_AT)
    some = _Some(joint, range(0, Y.shape[1], step))
    single, total, control = _coverage(emulator, X_test, Y_test, np.ones(Y.shape[1]))
    return {
        "n": len(X), "p": X.shape[1], "m": Y.shape[1], "chosen": emulator.way_,
        "seconds": round(seconds, 2), "cpu": round(cpu, 2), "rmse": rmse,
        "crps": _crps(some, Y_test[:, ::step]), "single": single, "sum": total,
        "control": control, "why": emulator.why_, "version": paims.__version__,
    }  # fmt: skip


class _Some:
    """Some of the outputs of a joint prediction."""

    def __init__(self, joint: Any, outputs: range) -> None:
        self.joint, self.outputs = joint, outputs

    def quantile(self, levels: Floats) -> Floats:
        """As that of a joint prediction."""
        return np.stack([self.joint[j].quantile(levels) for j in self.outputs], axis=-1)


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
    return "\n".join([*lines, "", *_of_times(others), "", *_of_missing(others)]) + "\n"


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
    name: str, ways: list[str], samples: int | None, runs: int | None, path: Path
) -> Iterator[str]:
    """Seconds of one output and of all, with the jointly robust prior; added to the file."""
    X, Y, *_ = _split(name, 0)
    X, Y = X[:runs], Y[:runs]
    _emulator("auto", 100).fit(X[:60, :2], Y[:60, 0])  # what is compiled once
    for way in ("one", *ways):
        outputs = Y[:, 0] if way == "one" else Y
        start, cpu = perf_counter(), process_time()
        _emulator("auto" if way == "one" else way, samples).fit(X, outputs)
        seconds, cpu = perf_counter() - start, process_time() - cpu
        row = {
            "part": "times", "what": name, "n": len(X), "p": X.shape[1], "way": way,
            "m": 1 if way == "one" else Y.shape[1], "samples": samples,
            "seconds": round(seconds, 1), "cpu": round(cpu, 1),
        }  # fmt: skip
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        yield json.dumps(row)


def _of_times(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of the table of times."""
    yield "| set | runs | inputs | outputs | way | processor s | times one output |"
    yield "|---|---:|---:|---:|---|---:|---:|"
    rows = [row for row in rows if row.get("part") == "times"]
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


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outputs", description=__doc__)
    parser.add_argument("what", choices=["simulated", "real", "missing", "times", "summary"])
    parser.add_argument("--set", nargs="+", choices=list(wheel.SHAPES))
    parser.add_argument("--way", nargs="+", choices=["auto", *WAYS])
    parser.add_argument("--split", type=int, default=1)
    parser.add_argument("--full", action="store_true", help="all runs, outputs, default settings")
    parser.add_argument("--samples", type=int, help="points of the sampler at each level")
    parser.add_argument("--runs", type=int, help="only so many training runs")
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
        asked = (ways, given.samples, given.runs, given.results)
        lines = (line for name in names for line in times(name, *asked))
    else:
        given.results.with_suffix(".md").write_text(report(given.results), encoding="utf-8")
        lines = iter([report(given.results)])
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
