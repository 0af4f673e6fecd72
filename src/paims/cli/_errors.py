"""What ends a command early: each kind with its exit code."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of all commands."""

    OK = 0
    ERROR = 1  # bad data, bad file, nothing to do
    USAGE = 2  # the command line itself is wrong
    CHECKS = 3  # diagnose: a check speaks against the emulator; reproduce: a finding fails
    INTERRUPTED = 130  # Ctrl-C


class CommandError(Exception):
    """An error that its user can mend; the message says how."""


class Interrupted(Exception):
    """Ctrl-C; the message says what was kept."""
