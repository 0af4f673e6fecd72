"""Emulators from files, tables in the order that they want, and tables out of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paims._arrays import FloatArray
from paims._names import as_variables, visible
from paims._sealed import whole_file
from paims.cli._running import CommandError, collected_warnings, working
from paims.cli._tables import Table, write_text

if TYPE_CHECKING:
    from paims.emulator import Emulator
    from paims.report import Answer, Provenance

_BLOCK = 512


def open_emulator(source: str) -> tuple[Emulator, Provenance]:
    """Emulator of a file, and where it comes from."""
    from paims.emulator import EmulatorFileError, load_emulator  # noqa: PLC0415 - slow to import
    from paims.report import read_provenance  # noqa: PLC0415

    path = Path(source)
    if not path.exists():
        raise CommandError(f"There is no file {source}; paims fit makes an emulator.")
    if path.is_dir():
        raise CommandError(f"{source} is a folder; give the file of an emulator.")
    try:
        return load_emulator(path), read_provenance(path)
    except EmulatorFileError as error:
        raise CommandError(str(error)) from None


def inputs_of(emulator: Emulator, table: Table) -> FloatArray:
    """The emulator's inputs in a table, ``(n_rows, n_features)``; other columns are ignored."""
    from paims.emulator._description import feature_names  # noqa: PLC0415 - slow to import

    return table.values(feature_names(emulator))


def extrapolation(emulator: Emulator, X: FloatArray) -> tuple[int, list[str]]:
    """How many rows lie outside the box of the runs, and what to say of rows that differ."""
    from paims.emulator._description import feature_names  # noqa: PLC0415 - slow to import

    inputs = emulator._several.inputs if hasattr(emulator, "outputs_") else emulator.inputs_
    scaled = inputs.apply(X)
    outside = int(((scaled < 0.0) | (scaled > 1.0)).any(axis=1).sum())
    notes = []
    if outside:
        notes.append(
            f"{outside} of {len(X)} rows lie outside the range of the runs; there the emulator "
            "extrapolates."
        )
    changed = [feature_names(emulator)[i] for i in inputs.changed_constants(X)]
    if changed:
        notes.append(
            f"{', '.join(changed)} took one value only in the runs; the emulator knows nothing of "
            "what other values change."
        )
    return outside, notes


def predict_rows(
    emulator: Emulator, X: FloatArray, level: float, smooth: bool, quiet: bool
) -> FloatArray:
    """Mean, std and interval at each row, ``(n, 4)``; shows a bar when there is much to do."""
    out = np.empty((len(X), 4))
    for rows in _blocks(len(X), quiet):
        scaled = emulator.inputs_.apply(X[rows])
        mixture = emulator.ensemble_.mixture(scaled, include_nugget=not smooth)
        out[rows] = np.column_stack([mixture.mean, mixture.std, *mixture.interval(level)])
    return out


def _blocks(n: int, quiet: bool) -> Iterator[slice]:
    blocks = [slice(start, start + _BLOCK) for start in range(0, n, _BLOCK)]
    if quiet or len(blocks) == 1:
        yield from blocks
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import
    from rich.progress import track  # noqa: PLC0415

    yield from track(blocks, "Predicting", console=Console(stderr=True), transient=True)


def prediction_columns(output: str, level: float) -> list[str]:
    """Names of the columns that a prediction adds."""
    percent = f"{100 * level:g}"
    return [
        f"{output}_mean",
        f"{output}_std",
        f"{output}_lower_{percent}",
        f"{output}_upper_{percent}",
    ]


def joined(
    table: Table, columns: Sequence[str], values: FloatArray
) -> tuple[list[str], list[Any]]:
    """The table with new columns; raises if it has them already."""
    taken = [name for name in columns if name in table.columns]
    if taken:
        raise CommandError(
            f"{table.name} already has a column '{taken[0]}'; rename it, as predictions go there."
        )
    rows = [[*row, *new] for row, new in zip(table.rows, values.tolist(), strict=True)]
    return [*table.columns, *columns], rows


def write_report(
    emulator: Emulator,
    provenance: Provenance,
    out: str,
    held_out: tuple[FloatArray, FloatArray] | None,
    new_inputs: FloatArray | None,
    title: str | None,
    quiet: bool,
) -> tuple[tuple[Answer, ...], int]:
    """Write the page; return its answers and its size in bytes."""
    from paims.report import (  # noqa: PLC0415 - slow to import
        answers,
        render_report,
        study,
    )
    from paims.report._several import several_answers, several_study  # noqa: PLC0415

    several = hasattr(emulator, "outputs_")
    with collected_warnings(), working("Computing diagnostics and drawing figures", quiet):
        numbers: Any = (several_study if several else study)(emulator, held_out)
        page = render_report(
            emulator, provenance, new_inputs=new_inputs, title=title, numbers=numbers
        )
    write_text(out, page)
    told = several_answers(numbers) if several else answers(numbers)
    return told, len(page.encode())


def draws(
    emulator: Emulator, n_draws: int | None, weighted: bool, seed: int
) -> tuple[list[str], FloatArray]:
    """Draws of the length-scales and the nugget: equally weighted, or all with their weights."""
    from paims.sampling._path import systematic  # noqa: PLC0415 - slow to import

    table, weights = emulator.draws_, np.asarray(emulator.weights_)
    names = list(table.dtype.names or ())
    values = np.column_stack([table[name] for name in names])
    if weighted:
        return [*names, "weight"], np.column_stack([values, weights])
    size = max(1, int(emulator.result_.effective_size)) if n_draws is None else n_draws
    rng = np.random.default_rng(seed)
    return names, values[rng.permutation(systematic(weights, size, rng))]


def write_netcdf(path: Path, names: Sequence[str], values: FloatArray) -> None:
    """Draws as ArviZ's DataTree, in NetCDF."""
    try:
        import arviz_base  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        raise CommandError(
            "NetCDF needs ArviZ: pip install 'paims[arviz]', or write CSV (--out draws.csv)."
        ) from None
    variables = as_variables(names)
    posterior = {name: values[:, i][None] for i, name in enumerate(variables)}
    attrs = {"/": {"inference_library": "paims"}}
    tree = arviz_base.from_dict({"posterior": posterior}, attrs=attrs)
    for name, variable in zip(names, variables, strict=True):
        if name != variable:
            tree["posterior"][variable].attrs["long_name"] = visible(name)
    # Whole in memory first: HDF5 does not survive a disk that is full.
    content = tree.to_netcdf(None, engine="h5netcdf")
    try:
        with whole_file(path) as out:
            out.write(content)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror or error}.") from None
