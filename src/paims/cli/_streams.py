"""Standard input, output and error: closed, full, or in another encoding than the files.

Tables are UTF-8 wherever they come from and go to, so that ``paims predict a.h5 b.csv > c.csv``
writes the file that ``--out c.csv`` writes.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TextIO

from paims._names import visible

__all__ = ["abandon", "drain", "mend", "read_input", "write_output"]


def mend() -> None:
    """Put something in the place of streams that were closed when the program started.

    The next file that is opened would take their place. Reading finds nothing, messages are lost,
    and writing a result is an error.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - stays open
    if sys.stdout is None:
        sys.stdout = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - writing it raises
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    # A name that the terminal's encoding has no character for is no reason to stop.
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def read_input() -> bytes:
    """All of standard input."""
    return sys.stdin.buffer.read()


def write_output(text: str) -> None:
    """Write to standard output: to a terminal what is safe to show, else UTF-8."""
    if sys.stdout.isatty():
        sys.stdout.write(visible(text, keep="\n\t"))
    else:
        sys.stdout.flush()
        rest = memoryview(text.encode(errors="backslashreplace"))
        while rest:  # Without a buffer of Python's, a full disk takes what it can and says so.
            rest = rest[sys.stdout.buffer.write(rest) :]
    sys.stdout.flush()


def drain() -> None:
    """Have everything that was printed written, or raise."""
    sys.stdout.flush()


def abandon(stream: TextIO) -> None:
    """Let go of what cannot be written, so that Python does not try again when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
