"""HDF5 files that are there whole or not at all, and that are checked before they are read.

The first 512 bytes, HDF5's user block which other programs skip, hold a line with the kind of the
file and the SHA-256 of the rest. A damaged or foreign file is refused before the HDF5 library,
which was not made for hostile input, sees any of it. The file is built in memory and written
beside its place, flushed to the disk and renamed.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

_BLOCK = 512
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


class SealError(ValueError):
    """A file that is not what was asked for, or not as it was written; the text says which."""


def write_sealed(path: Path, kind: str, fill: Callable[[Any], None]) -> None:
    """Write an HDF5 file, whole or not at all.

    Parameters
    ----------
    path : Path
        An existing file is replaced.
    kind : str
        What the file is; :func:`open_sealed` has to ask for the same.
    fill : callable
        Takes the open ``h5py.File`` and puts the content in.
    """
    import h5py  # noqa: PLC0415 - slow to import, seldom needed

    buffer = io.BytesIO()
    with h5py.File(buffer, "w", userblock_size=_BLOCK) as file:
        fill(file)
    content = memoryview(buffer.getbuffer())[_BLOCK:]
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as out:
            out.write(_seal(kind, content))
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
        _flush_folder(path.parent)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def open_sealed(path: Path, kind: str) -> Iterator[Any]:
    """Open a file of :func:`write_sealed` for reading.

    Raises
    ------
    SealError
        If it is something else or damaged, before HDF5 reads it.
    """
    content = path.read_bytes()
    block, rest = content[:_BLOCK], memoryview(content)[_BLOCK:]
    if not block.startswith(f"{kind} ".encode()):
        if _SIGNATURE in (content[:8], bytes(rest[:8])):
            raise SealError("it is an HDF5 file of something else, or its first bytes are damaged")
        raise SealError("it is not an HDF5 file of this library, or was cut off")
    if block != _seal(kind, rest):
        raise SealError("it is damaged: its checksum does not fit, or it was cut off")
    import h5py  # noqa: PLC0415 - slow to import, seldom needed

    with h5py.File(io.BytesIO(content), "r") as file:
        yield file


def remove_remains(path: Path) -> None:
    """Remove what writers of this file that were killed have left beside it."""
    for remains in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError):
            remains.unlink()


def _seal(kind: str, content: Any) -> bytes:
    return f"{kind} sha256 {hashlib.sha256(content).hexdigest()}\n".encode().ljust(_BLOCK, b"\0")


def _flush_folder(path: Path) -> None:
    """Make the system write a folder's entries to the disk."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return  # Some systems do not open folders.
    try:
        with suppress(OSError):  # Some do not flush them.
            os.fsync(handle)
    finally:
        os.close(handle)


def put_array(parent: Any, name: str, array: Any, compressed: bool = True) -> None:
    """Store an array; compression is smaller and slower."""
    options = {"compression": "gzip", "shuffle": True} if compressed and np.size(array) else {}
    parent.create_dataset(name, data=array, **options)


def put_json(parent: Any, name: str, value: Any) -> None:
    """Store what JSON can say."""
    put_array(parent, name, np.array([json.dumps(value).encode()]))


def get_json(parent: Any, name: str) -> dict[str, Any]:
    """Read what :func:`put_json` stored."""
    value: dict[str, Any] = json.loads(parent[name][0])
    return value
