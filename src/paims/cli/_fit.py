"""``paims fit``: an emulator from a table of runs."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from paims.cli._errors import CommandError, Interrupted
from paims.cli._running import collected_warnings, interruptible
from paims.cli._tables import Table

if TYPE_CHECKING:
    from paims.emulator import Emulator
    from paims.report import Provenance


@dataclass(frozen=True)
class Selection:
    """Which columns of the runs are inputs and which is the output."""

    inputs: tuple[str, ...]
    output: str


def select(table: Table, output: str | None, inputs: str | None, ignore: str | None) -> Selection:
    """Choose columns by name; by default every column but the output is an input."""
    if output is None:
        raise CommandError(
            f"Which column of {table.name} is the output? Say --output NAME; its columns are "
            f"{', '.join(table.columns)}."
        )
    table.check_columns([output])
    left_out = _names(ignore)
    table.check_columns(left_out)
    if inputs is None:
        chosen = [name for name in table.columns if name != output and name not in left_out]
    else:
        chosen = _names(inputs)
        table.check_columns(chosen)
    if output in chosen:
        raise CommandError(f"Column '{output}' cannot be input and output at once.")
    twice = [name for name in chosen if chosen.count(name) > 1]
    if twice:
        raise CommandError(f"--inputs names '{twice[0]}' twice.")
    if not chosen:
        raise CommandError(f"{table.name} has no column left for the inputs.")
    return Selection(tuple(chosen), output)


def _names(text: str | None) -> list[str]:
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def fit_emulator(
    table: Table, selection: Selection, options: dict[str, Any], quiet: bool
) -> tuple[Emulator, Provenance]:
    """Fit an emulator, with progress on a terminal; Ctrl-C leaves nothing behind.

    Parameters
    ----------
    table : Table
    selection : Selection
    options : dict
        Arguments of :class:`paims.Emulator`.
    quiet : bool
        Neither progress nor warnings on standard error.
    """
    advice = "Other columns can be left out with --ignore, or inputs chosen with --inputs."
    y = table.values([selection.output])[:, 0]
    X = table.values(selection.inputs, advice)

    import pandas as pd  # noqa: PLC0415 - slow to import, after the checks that may fail

    from paims.emulator import Emulator  # noqa: PLC0415
    from paims.report import Provenance  # noqa: PLC0415

    emulator = Emulator(**options, progress=not quiet)
    start = monotonic()
    # The sampler answers Ctrl-C with the draws it has, which are not yet the posterior's.
    with interruptible() as pressed, collected_warnings(shown=False) as texts:
        try:
            emulator.fit(pd.DataFrame(X, columns=list(selection.inputs)), y)
        except ValueError as error:
            if not pressed():
                raise CommandError(f"{table.name}: {error}") from None
        except KeyboardInterrupt:
            pass
        except Exception:
            if not pressed():
                raise
    if pressed():
        raise Interrupted("The fit was not finished; no file was written or changed.")
    provenance = Provenance(
        output=selection.output,
        source=table.name,
        seconds=monotonic() - start,
        warnings=tuple(texts),
    )
    return emulator, provenance
