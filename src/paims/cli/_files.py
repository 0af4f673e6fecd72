"""Files out: never overwritten unasked, whole or not at all."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from paims.cli._errors import CommandError
from paims.cli._tables import STANDARD


def check_target(target: str, force: bool) -> None:
    """Raise if a file could not be written, before the work that fills it."""
    if target == STANDARD:
        return
    path = Path(target)
    if path.is_dir():
        raise CommandError(f"{target} is a folder; give the name of a file.")
    if path.exists() and not force:
        raise CommandError(f"{target} exists already; --force replaces it.")
    if not path.parent.is_dir():
        raise CommandError(f"There is no folder {path.parent} to write {path.name} into.")
    if not os.access(path.parent, os.W_OK):
        raise CommandError(f"The folder {path.parent} cannot be written to.")


def make_folder(folder: Path, names: Iterable[str], force: bool) -> None:
    """Make the folder that files of these names go into; raise if it holds one of them."""
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"{folder} is a file; give --out a folder.")
    there = [name for name in names if (folder / name).exists()]
    if there and not force:
        raise CommandError(
            f"{folder} already holds {', '.join(there)}; --force replaces them, --out takes "
            "another folder."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(f"The folder {folder} cannot be made: {error.strerror}.") from None


def write_text(target: str, text: str) -> None:
    """Write a file whole, or to standard output for ``-``."""
    if target == STANDARD:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    path = Path(target)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except OSError as error:
        raise CommandError(f"{target} cannot be written: {error.strerror}.") from None
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
