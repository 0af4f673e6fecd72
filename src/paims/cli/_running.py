"""What surrounds every command: errors, warnings, interruption, and what is said where.

Standard output carries results only; messages, warnings and progress go to standard error.
"""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from functools import wraps
from typing import Any, ParamSpec

import typer

from paims._names import visible
from paims.cli._streams import abandon, drain

P = ParamSpec("P")


class ExitCode(IntEnum):
    """Exit codes of all commands."""

    OK = 0
    ERROR = 1  # bad data, bad file, nothing to do
    USAGE = 2  # the command line itself is wrong
    CHECKS = 3  # diagnose: a check speaks against the emulator; reproduce: a finding fails
    INTERRUPTED = 130  # Ctrl-C


class CommandError(Exception):
    """An error that its user can mend; the message says how."""

    code = ExitCode.ERROR


class NeedsConsentError(CommandError):
    """Something that is only done if the command line says that it should."""

    code = ExitCode.USAGE


class Interrupted(Exception):
    """Ctrl-C; the message says what was kept."""


def say(text: str, before: str = "") -> None:
    """Write a line of information to standard error; ``before`` may have colours."""
    # Through typer, which takes the colours away where there is no terminal.
    try:
        typer.echo(before + visible(text, keep="\n"), err=True)
    except OSError:
        abandon(sys.stderr)


def tell(text: str) -> None:
    """Write a line of a result for people to standard output."""
    typer.echo(visible(text, keep="\n"))


def print_json(value: dict[str, Any]) -> None:
    """Write a result for machines to standard output; NaN and infinities become null."""
    typer.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Make a value ready for JSON: arrays to lists, NaN and infinities to null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value


def command(function: Callable[P, None]) -> Callable[P, None]:
    """Turn errors into one line on standard error and an exit code."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
            drain()
        except CommandError as error:
            _fail(str(error))
            raise typer.Exit(error.code) from None
        except MemoryError as error:
            _fail(str(error) or "There is not enough memory.")
            raise typer.Exit(ExitCode.ERROR) from None
        except Interrupted as stop:
            say(f"\npaims: interrupted. {stop}")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except KeyboardInterrupt:
            say("\npaims: interrupted. A file is written whole or not at all.")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever read our output has stopped reading; that is theirs to decide.
            abandon(sys.stdout)
            raise typer.Exit(ExitCode.OK) from None
        except (OSError, ImportError) as error:
            abandon(sys.stdout)
            _fail(str(_explained(error)))
            raise typer.Exit(ExitCode.ERROR) from None

    return run


def _explained(error: OSError | ImportError) -> CommandError:
    """What the system, or a package that is not as it should be, refused."""
    if isinstance(error, ImportError):
        missing = isinstance(error, ModuleNotFoundError) and error.name is not None
        return CommandError(
            f"{error}. Install it with pip install 'paims[app]'." if missing else str(error)
        )
    why = error.strerror or error
    if error.filename is not None:
        return CommandError(f"{error.filename}: {why}.")
    if isinstance(error, FileNotFoundError):
        return CommandError("The working directory is not there any more; change to another.")
    return CommandError(f"Standard output, or the disk, cannot be written: {why}.")


def same_command(context: typer.Context) -> str:
    """The command line that was given, to be given again."""
    words = ["paims", str(context.info_name)]
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[str(parameter.name)]
        if parameter.param_type_name == "argument":
            words.append(str(value))
        else:
            # An option that may be given several times has a list of values.
            for item in value if isinstance(value, list | tuple) else [value]:
                words += [max(parameter.opts, key=len)] + [str(item)] * (item is not True)
    return shlex.join(words)


def _fail(message: str) -> None:
    say(message, typer.style("paims:", fg="red", bold=True) + " ")


@contextmanager
def collected_warnings(shown: bool = True) -> Iterator[list[str]]:
    """Collect warnings as texts, and say each once when the work is done."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    for item in caught:
        if issubclass(item.category, UserWarning | RuntimeWarning):
            text = str(item.message)
            if text not in texts:
                texts.append(text)
                if shown:
                    say(text, typer.style("warning:", fg="yellow") + " ")


@contextmanager
def working(text: str, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal that something goes on."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415 - only when there is a terminal

    with Console(stderr=True).status(text):
        yield
