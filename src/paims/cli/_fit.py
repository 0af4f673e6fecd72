"""``paims fit``: an emulator from a table of runs."""

from __future__ import annotations

import csv
import fnmatch
import glob
import io
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer

from paims._names import listed
from paims.cli._running import (
    CommandError,
    Interrupted,
    NeedsConsentError,
    collected_warnings,
    say,
)
from paims.cli._tables import Table, is_same_file

if TYPE_CHECKING:
    from paims.emulator import Emulator
    from paims.report import Provenance


_NOTHING = "The fit was not finished; no file was written or changed."


@dataclass(frozen=True)
class Selection:
    """Which columns of the runs are inputs and which are outputs.

    Attributes
    ----------
    inputs, outputs : tuple of str
    several : bool
        Whether several outputs were asked for, even if there is one only.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    several: bool = False

    @property
    def named(self) -> str:
        """The outputs in a few words."""
        more = len(self.outputs) - 3
        return ", ".join(self.outputs[:3]) + (f" and {more} more" if more > 0 else "")


def select(
    table: Table, output: str | Sequence[str] | None, inputs: str | None, ignore: str | None
) -> Selection:
    """Choose columns by name; by default every column but the outputs is an input."""
    asked = [output] if isinstance(output, str) else list(output or ())
    if not asked:
        raise CommandError(
            f"Which column of {table.name} is the output? Say --output NAME; its columns are "
            f"{listed(table.columns)}."
        )
    outputs, several = _outputs(table, asked)
    left_out = names_of(ignore)
    table.check_columns(left_out)
    if inputs is None:
        chosen = [name for name in table.columns if name not in outputs and name not in left_out]
    else:
        chosen = names_of(inputs)
        table.check_columns(chosen)
    both = [name for name in outputs if name in chosen]
    if both:
        raise CommandError(f"Column '{both[0]}' cannot be input and output at once.")
    twice = [name for name in chosen if chosen.count(name) > 1]
    if twice:
        raise CommandError(f"--inputs names '{twice[0]}' twice.")
    if not chosen:
        raise CommandError(f"{table.name} has no column left for the inputs.")
    return Selection(tuple(chosen), tuple(outputs), several)


def _outputs(table: Table, asked: list[str]) -> tuple[list[str], bool]:
    """Columns that are asked for by name or by pattern, and whether that may be several."""
    found: list[str] = []
    patterns = False
    for text in asked:
        if text in table.columns:
            found.append(text)
        elif any(sign in text for sign in "*?["):
            patterns = True
            matching = [name for name in table.columns if fnmatch.fnmatchcase(name, text)]
            if not matching:
                raise CommandError(
                    f"No column of {table.name} fits '{text}'; its columns are "
                    f"{listed(table.columns)}."
                )
            found += matching
        else:
            table.check_columns([text])
    return list(dict.fromkeys(found)), patterns or len(asked) > 1


def names_of(text: str | None) -> list[str]:
    """Names in a text a,b,c; one that has a comma in it is quoted, as in a table."""
    if text is None:
        return []
    rows = list(csv.reader(io.StringIO(text, newline=""), skipinitialspace=True))
    cells = rows[0] if len(rows) == 1 else text.split(",")
    return [name.strip() for name in cells if name.strip()]


@dataclass(frozen=True)
class Resumable:
    """The checkpoint of a fit.

    Attributes
    ----------
    path : Path
    kept : bool
        Whether it stays when the fit is done, as the user has named it.
    command : str
        That goes on.
    """

    path: Path
    kept: bool
    command: str

    @staticmethod
    def beside(
        save: str, checkpoint: str | None, command: str, force: bool, runs: str
    ) -> Resumable:
        """The file that the user names, or one beside the emulator."""
        target = Path(save)
        path = _beside(target) if checkpoint is None else Path(checkpoint)
        found = Resumable(path, checkpoint is not None, command)
        if path.resolve() == target.resolve():
            raise CommandError("--checkpoint and --save must be different files.")
        if is_same_file(path, runs):
            raise CommandError(f"--checkpoint {path} is the table of runs: name another file.")
        if checkpoint is None and path.exists() and not _is_checkpoint(path):
            raise CommandError(
                f"{path}, where the checkpoint would be written, is another kind of file: name "
                "one with --checkpoint."
            )
        if checkpoint is None and force:
            found.done()  # Files of our own, and to begin anew is what is asked.
        return found

    def files(self) -> list[Path]:
        """Those that there are: of the fit, its outputs, and further kernels of each."""
        path = self.path
        own = [
            file
            for file in sorted(path.parent.glob(f"{glob.escape(path.stem)}.*{path.suffix}"))
            if re.fullmatch(
                r"(\.output\d+)?(\.kernel\d+)?",
                file.name[len(path.stem) : len(file.name) - len(path.suffix)],
            )
            and file != path
        ]
        return [file for file in (path, *own) if file.is_file() and _is_checkpoint(file)]

    def interrupted(self) -> Interrupted:
        """What to say when the fit was not finished."""
        files = self.files()
        if not files:
            return Interrupted(_NOTHING)
        where = ", ".join(str(file) for file in files)
        return Interrupted(
            f"The fit was not finished; what it has is in {where}. To go on:\n  {self.command}"
        )

    def done(self) -> None:
        """Remove the files that nobody asked for."""
        if not self.kept:
            for file in self.files():
                file.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    """The checkpoint of an emulator, which no other emulator shares.

    That of ``mod.h5`` is ``mod.checkpoint.h5``; any other name is kept whole and has another
    suffix, so that ``mod``, ``mod.hdf5`` and ``mod.2024`` differ from it and from each other.
    """
    if target.suffix == ".h5":
        return target.with_name(f"{target.stem}.checkpoint.h5")
    return target.with_name(f"{target.name}.checkpoint.hdf5")


def _is_checkpoint(path: Path) -> bool:
    """Whether a file says of itself that it is a checkpoint; only such files are ever removed."""
    from paims.emulator._table import FORMAT as OF_SEVERAL  # noqa: PLC0415 - slow to import
    from paims.sampling._checkpoint import FORMAT  # noqa: PLC0415

    with path.open("rb") as file:
        begin = file.read(64)
    return begin.startswith((f"{FORMAT} ".encode(), f"{OF_SEVERAL} ".encode()))


def fixed_or_estimated(nugget: str) -> str | float:
    """The nugget of the option."""
    if nugget == "estimate":
        return nugget
    try:
        return float(nugget)
    except ValueError:
        raise CommandError(
            f"--nugget must be 'estimate' or a number such as 0 or 1e-6; got {nugget!r}."
        ) from None


def fit_and_save(
    table: Table,
    selection: Selection,
    options: dict[str, Any],
    quiet: bool,
    resumable: Resumable,
    save: str,
    yes: bool,
    executor: Callable[[], Executor] | None = None,
) -> dict[str, Any]:
    """Fit and save an emulator; return its facts."""
    emulator, provenance = fit_emulator(table, selection, options, quiet, resumable, yes, executor)

    from paims.emulator._description import emulator_facts  # noqa: PLC0415 - slow to import
    from paims.report import save_with_provenance  # noqa: PLC0415

    before = _identity(save)
    try:
        try:
            save_with_provenance(emulator, save, provenance)
        except OSError as error:
            raise CommandError(f"{save} cannot be written: {error.strerror or error}.") from None
        resumable.done()
        if selection.several:
            from paims.emulator._several_description import several_facts  # noqa: PLC0415

            return several_facts(emulator, provenance)
        return emulator_facts(emulator, provenance)
    except KeyboardInterrupt:
        if _identity(save) == before:
            raise resumable.interrupted() from None
        raise saved_already(save) from None


def saved_already(save: str) -> Interrupted:
    """What to say when the emulator was saved, and only the rest is missing."""
    return Interrupted(f"The fit was finished and is saved in {save}; paims info {save} shows it.")


def _identity(path: str) -> tuple[int, int] | None:
    """What changes when a file is replaced; None if there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _in_options(text: str) -> str:
    """A text with the library's arguments as options of the command."""
    for argument, option in (
        ("prior", "--prior"),
        ("n_samples", "--samples"),
        ("n_jobs", "--jobs"),
    ):
        text = re.sub(rf"\b{argument}='?(\w+)'?", rf"{option} \1", text)
    return text


def _ask(forecast: str) -> None:
    """Ask on a terminal whether a fit of hours should begin; raise if it should not."""
    from paims.emulator._forecast import INTERRUPTIBLE  # noqa: PLC0415 - slow to import

    text = _in_options(forecast.removesuffix(INTERRUPTIBLE).rstrip())
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NeedsConsentError(f"{text} To start it all the same, add --yes.")
    say(text)
    if not typer.confirm("Start it all the same (Ctrl-C keeps a checkpoint)?", err=True):
        raise CommandError("The fit was not started.")


def processes(n: int) -> Executor:
    """A pool of worker processes, begun anew: a copy of this one would have its threads' locks."""
    return ProcessPoolExecutor(n, mp_context=get_context("spawn"))


def fit_emulator(
    table: Table,
    selection: Selection,
    options: dict[str, Any],
    quiet: bool,
    resumable: Resumable | None = None,
    yes: bool = True,
    executor: Callable[[], Executor] | None = None,
) -> tuple[Emulator, Provenance]:
    """Fit an emulator, with progress on a terminal; Ctrl-C leaves the checkpoint only.

    Parameters
    ----------
    table : Table
    selection : Selection
    options : dict
        Arguments of :class:`paims.Emulator`.
    quiet : bool
        Neither progress nor warnings on standard error.
    resumable : Resumable, optional
        Where to go on from, and where to leave what is there.
    yes : bool
        Whether to start a fit of hours without a question.
    executor : callable, optional
        Makes the workers.
    """
    advice = "Other columns can be left out with --ignore, or inputs chosen with --inputs."
    Y = table.values(selection.outputs, missing=selection.several)
    X = table.values(selection.inputs, advice)

    import pandas as pd  # noqa: PLC0415 - slow to import, after the checks that may fail

    from paims.emulator import Emulator, LongFitWarning, VeryLongFitWarning  # noqa: PLC0415
    from paims.report import Provenance  # noqa: PLC0415
    from paims.sampling import CheckpointError, DensityError  # noqa: PLC0415

    checkpoint = None if resumable is None else resumable.path
    if resumable is not None and resumable.files() and not quiet:
        say(f"Going on from {resumable.files()[0]}.")
    emulator = Emulator(**options, progress=not quiet)
    start = monotonic()
    with collected_warnings(shown=False) as texts:
        # How long this machine takes is said at once, and is nothing to keep.
        warnings.simplefilter("ignore", LongFitWarning)
        if not yes:
            warnings.simplefilter("error", VeryLongFitWarning)
        try:
            frame = pd.DataFrame(X, columns=list(selection.inputs))
            y = pd.DataFrame(Y, columns=list(selection.outputs)) if selection.several else Y[:, 0]
            try:
                emulator.fit(frame, y, checkpoint=checkpoint, executor=executor)
            except VeryLongFitWarning as warning:
                _ask(str(warning))
                warnings.simplefilter("ignore", LongFitWarning)
                emulator.fit(frame, y, checkpoint=checkpoint, executor=executor)
        except CheckpointError as error:
            raise CommandError(str(error)) from None
        except ValueError as error:
            raise CommandError(f"{table.name}: {error}") from None
        except MemoryError as error:
            raise CommandError(f"{table.name}: {_in_options(str(error))}") from None
        except DensityError as error:  # of workers that are gone
            kept = "" if resumable is None else f" {resumable.interrupted()}"
            raise CommandError(f"{error.args[0]}{kept}") from None
        except KeyboardInterrupt:  # FitInterrupted is one too
            if resumable is None:
                raise Interrupted(_NOTHING) from None
            raise resumable.interrupted() from None
    provenance = Provenance(
        output=selection.named,
        source=table.name,
        seconds=monotonic() - start,
        warnings=tuple(texts),
    )
    return emulator, provenance
