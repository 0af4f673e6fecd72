"""The field of reactiondiffusion1, 2500 outputs of 40 runs, beside AutoEmulate's own emulators.

These need ``autoemulate`` and PyTorch; where they are not installed ours are measured alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from scipy.stats import norm

import paims
from benchmarks.outputs_scores import Floats, Indices, Some, crps, looked_at, rows_of, split_of

# Principal components: of AutoEmulate's examples, and as many as ours take at most.
_COMPONENTS = (8, 24)
_EACH = "each of 25 outputs"


def field(split: int, path: Path) -> Iterator[str]:
    """Errors of all outputs, and scores of some; added to the file."""
    methods = ["paims, components", f"paims, {_EACH}"]
    if find_spec("autoemulate"):
        methods += [f"AutoEmulate, {r} principal components" for r in _COMPONENTS]
        methods.append(f"AutoEmulate, {_EACH}")
    for method in methods:
        cell = {"part": "field", "method": method, "split": split}
        if any(cell.items() <= row.items() for row in rows_of(path)):
            continue
        row = cell | _scored(method, split)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        yield json.dumps(row)


def _scored(method: str, split: int) -> dict[str, Any]:
    X, Y, X_test, Y_test = split_of("reactiondiffusion1", split)
    some = looked_at(Y.shape[1])
    if _EACH in method:
        Y, Y_test, some = Y[:, some], Y_test[:, some], np.arange(len(some))
    start, cpu = perf_counter(), process_time()
    if method.startswith("paims"):
        way = "separate" if _EACH in method else "components"
        emulator = paims.Emulator(outputs=way, random_state=0).fit(X, Y)
        mean, joint = emulator.predict(X_test), Some(emulator.predict_distribution(X_test), some)
    else:
        mean, joint = _by_autoemulate(method, X, Y, X_test, some)
    seconds, cpu = perf_counter() - start, process_time() - cpu
    lower, upper = joint.quantile(np.array([0.025, 0.975]))
    there = Y_test[:, some]
    return {
        "rmse": float(np.sqrt(np.mean((mean - Y_test) ** 2))),
        "rmse_some": float(np.sqrt(np.mean((mean[:, some] - there) ** 2))),
        "crps": crps(joint, there),
        "single": float(np.mean((lower <= there) & (there <= upper))),
        "seconds": round(seconds, 1), "cpu": round(cpu, 1),
    }  # fmt: skip


def _by_autoemulate(
    method: str, X: Floats, Y: Floats, X_test: Floats, some: Indices
) -> tuple[Floats, Any]:
    """Means, and what has quantiles, of a Gaussian process with its default Matérn kernel."""
    import torch  # noqa: PLC0415 - not with us
    from autoemulate.emulators import (  # noqa: PLC0415
        GaussianProcessMatern32,
        TransformedEmulator,
    )
    from autoemulate.transforms import PCATransform, StandardizeTransform  # noqa: PLC0415

    torch.manual_seed(0)
    outputs = [StandardizeTransform()]
    if _EACH not in method:
        outputs.append(PCATransform(n_components=int(method.split()[1])))
    emulator = TransformedEmulator(
        torch.tensor(X, dtype=torch.float32),
        torch.tensor(Y, dtype=torch.float32),
        x_transforms=[StandardizeTransform()],
        y_transforms=outputs,
        model=GaussianProcessMatern32,
    )
    emulator.fit(torch.tensor(X, dtype=torch.float32), torch.tensor(Y, dtype=torch.float32))
    found = emulator.predict(torch.tensor(X_test, dtype=torch.float32))
    mean = found.mean.detach().numpy().astype(np.float64)
    std = np.sqrt(found.variance.detach().numpy().astype(np.float64))
    return mean, _Normal(mean[:, some], std[:, some])


class _Normal:
    """Normal distributions, as a joint prediction."""

    def __init__(self, mean: Floats, std: Floats) -> None:
        self.mean, self.std = mean, std

    def quantile(self, levels: Floats) -> Floats:
        """As that of a joint prediction."""
        return self.mean + norm.ppf(levels)[:, None, None] * self.std


def of_field(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of the table of the field."""
    rows = [row for row in rows if row.get("part") == "field"]
    yield "The field of reactiondiffusion1; means over splits, but for the first of 25 outputs:"
    yield ""
    yield "| method | splits | RMSE, 2500 outputs | RMSE | CRPS | 95 % covers | processor s |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for method in sorted({row["method"] for row in rows}):
        here = [row for row in rows if row["method"] == method]
        mean = {
            k: np.mean([row[k] for row in here]) for k in here[0] if k not in ("part", "method")
        }
        every = "" if _EACH in method else f"{mean['rmse']:.4f}"
        yield (
            f"| {method} | {len(here)} | {every} | {mean['rmse_some']:.4f} | {mean['crps']:.4f} | "
            f"{mean['single']:.3f} | {mean['cpu']:.0f} |"
        )
